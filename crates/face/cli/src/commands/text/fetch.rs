//! `planish text fetch`: what a pin names, for a build that must not break.
//!
//! ```text
//! the file itself ──> the copy beside the pin ──> the cache ──> the store      each held to the pinned digest
//!                                                                  │
//!                    the last good copy, of an earlier pin <───────┤ with a warning; --strict fails here
//!                    none: the build goes on without             <─┘
//! ```
//!
//! A file is replaced by one rename, and only by what was checked.

use std::path::{Path, PathBuf};

use planish_model::{Catalogue, quoted};
use planish_order::pinned as orders;
use planish_profile::file;
use planish_profile::pin::{Blob, Pin};
use planish_report::{TextFetchReport, TextFetched, TextPinFacts};
use planish_store::{Digest, Location, Store};

use super::pinned::{GateOptions, PIN, copy_beside, folder_of, in_store, parse};
use crate::answer::Answer;
use crate::commands::{read_file, write_bytes};
use crate::context::Context;
use crate::failure::Failure;

/// Get the order, or the profile, that this repository pins its builds to
///
/// What is got has the checksum of the pin. Where it cannot be had (no store, no network, no pin), the last good copy
/// is used, or none, with a warning and exit code 0: a build goes on, by `planish text cc --order F`, which links
/// without an order where there is none. --strict fails instead.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("wanted").required(true).multiple(true)))]
pub(crate) struct Args {
    /// The pin
    #[arg(long, value_name = "F", default_value = PIN)]
    pin: PathBuf,
    /// Write the order to F: a symbol a line, for text cc --order and lld
    #[arg(long, value_name = "F", group = "wanted")]
    order: Option<PathBuf>,
    /// Write the call profile to F
    #[arg(long, value_name = "F", group = "wanted")]
    profile: Option<PathBuf>,
    /// Get it from there, and not from where the pin says: a mirror
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    #[command(flatten)]
    gates: GateOptions,
    /// Fail where something is not as it is pinned, or does not pass a gate
    #[arg(long)]
    strict: bool,
}

/// What is pinned, twice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Order,
    Profile,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Profile => "profile",
        }
    }

    fn blob(self, pin: &Pin) -> &Blob {
        match self {
            Self::Order => &pin.order,
            Self::Profile => &pin.profile,
        }
    }

    fn earlier(self, pin: &Pin) -> Option<&str> {
        let previous = pin.previous.as_ref()?;
        Some(if self == Self::Order { &previous.order } else { &previous.profile })
    }

    /// Whether a build can use it.
    fn is_sound(self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        match self {
            Self::Order => orders::symbols(&text).is_ok(),
            Self::Profile => file::parse(&text).is_ok(),
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let read = read_file(&args.pin).and_then(|bytes| parse(&args.pin, &bytes));
    let (pin, mut troubles) = match read {
        Ok(pin) => (Some(pin), Vec::new()),
        Err(failure) if args.strict => return Err(failure),
        Err(failure) => (None, vec![told(&failure)]),
    };
    let now = super::now(context);
    let doubts = pin.as_ref().map(|pin| args.gates.gates().doubts(pin, now)).unwrap_or_default();
    let doubts: Vec<String> = doubts.iter().map(ToString::to_string).collect();
    if args.strict && !doubts.is_empty() {
        let failed = format!("what {} pins is not followed: {}", args.pin.display(), doubts.join("; "));
        return Err(Failure::refused(failed)
            .hint("planish text publish PROFILE pins a new one; or leave --strict out"));
    }
    let fetch = Fetch { args, pin: pin.as_ref(), cache: cache() };
    let wanted = [(What::Order, &args.order), (What::Profile, &args.profile)];
    let wanted = wanted.into_iter().filter_map(|(what, path)| Some((what, path.as_deref()?)));
    let mut files = Vec::new();
    for (what, path) in wanted {
        let (file, trouble) = fetch.one(what, path)?;
        files.push(file);
        troubles.extend(trouble);
    }
    let report = TextFetchReport {
        pin_file: args.pin.display().to_string(),
        pin: pin.as_ref().map(|pin| TextPinFacts::new(pin, now)),
        files,
        doubts,
    };
    let mut answer = context.answer(&report, &Catalogue::default());
    for doubt in &report.doubts {
        answer = answer.warning(format!("{}: {doubt}", args.pin.display()));
    }
    for trouble in troubles {
        answer = answer.warning(trouble);
    }
    Ok(answer.next(next(args, &report.files)))
}

/// One fetch of one or two files.
struct Fetch<'a> {
    args: &'a Args,
    pin: Option<&'a Pin>,
    cache: Option<Store>,
}

impl Fetch<'_> {
    /// Gets one file; with it, what to say where it is not as it is pinned.
    fn one(&self, what: What, path: &Path) -> Result<(TextFetched, Option<String>), Failure> {
        let report = |from: &str, bytes: Option<&[u8]>| TextFetched {
            what: what.word().to_owned(),
            file: path.display().to_string(),
            from: from.to_owned(),
            sha256: bytes.map(|bytes| Digest::of(bytes).to_string()),
        };
        let there = read_there(path);
        let missed = match self.pin.map(|pin| self.as_pinned(what, pin, there.as_deref())) {
            Some(Ok(("there", bytes))) => return Ok((report("there", Some(&bytes)), None)),
            Some(Ok((from, bytes))) => match write_bytes(path, &bytes) {
                Ok(()) => return Ok((report(from, Some(&bytes)), None)),
                Err(failure) => failure,
            },
            Some(Err(failure)) => failure,
            None => Failure::refused("nothing is pinned"),
        };
        if self.args.strict {
            return Err(missed);
        }
        let why = told(&missed);
        let place = path.display();
        if let Some(bytes) = there.filter(|bytes| what.is_sound(bytes)) {
            let told = format!("{place} stays as it is, the last good copy: {why}");
            return Ok((report("earlier", Some(&bytes)), Some(told)));
        }
        if let Some(bytes) = self.earlier(what)
            && write_bytes(path, &bytes).is_ok()
        {
            let told = format!("{place} is the last good copy, of an earlier pin: {why}");
            return Ok((report("earlier", Some(&bytes)), Some(told)));
        }
        let told = format!("no {} in {place}, and the build goes on without: {why}", what.word());
        Ok((report("none", None), Some(told)))
    }

    /// The bytes that are pinned, and where they are from.
    fn as_pinned(
        &self,
        what: What,
        pin: &Pin,
        there: Option<&[u8]>,
    ) -> Result<(&'static str, Vec<u8>), Failure> {
        let blob = what.blob(pin);
        let digest: Digest = blob.sha256.parse().map_err(|error| {
            Failure::usage(format!("{}: {}.sha256: {error}", self.args.pin.display(), what.word()))
        })?;
        let (from, bytes) = self.by_digest(what, pin, &digest, there)?;
        // One of the two was edited by hand, and nobody knows which.
        if u64::try_from(bytes.len()) != Ok(blob.bytes) {
            let (pinned, found) = (blob.bytes, bytes.len());
            let failed = format!("the {} has {found} bytes, and {pinned} are pinned", what.word());
            return Err(Failure::refused(failed).hint("planish text publish PROFILE pins a new one"));
        }
        Ok((from, bytes))
    }

    /// The bytes of a checksum.
    fn by_digest(
        &self,
        what: What,
        pin: &Pin,
        digest: &Digest,
        there: Option<&[u8]>,
    ) -> Result<(&'static str, Vec<u8>), Failure> {
        let blob = what.blob(pin);
        let is_it = |bytes: &&[u8]| Digest::of(bytes) == *digest;
        if let Some(bytes) = there.filter(is_it) {
            return Ok(("there", bytes.to_vec()));
        }
        if let Some(bytes) = self.beside(what).filter(|bytes| is_it(&bytes.as_slice())) {
            return Ok(("beside", bytes));
        }
        if let Some(cache) = &self.cache
            && let Ok(bytes) = cache.get(&digest.handle(), digest)
        {
            return Ok(("cache", bytes));
        }
        let store = self.args.store.as_deref().map_or_else(
            || Store::open(&pin.store, &folder_of(&self.args.pin)),
            |store| Store::open(store, Path::new(".")),
        );
        let bytes = store.and_then(|store| store.get(&blob.handle, digest)).map_err(in_store)?;
        // What was pinned by hand may be anything.
        if !what.is_sound(&bytes) {
            let failed =
                format!("{} of {} is no {} that a build could use", blob.handle, pin.store, what.word());
            return Err(Failure::refused(failed).hint("planish text publish PROFILE pins a sound one"));
        }
        if let Some(cache) = &self.cache {
            // Without a cache the next build asks the store.
            let _ = cache.put(&bytes);
        }
        Ok(("store", bytes))
    }

    /// The copy of the order that the repository keeps.
    fn beside(&self, what: What) -> Option<Vec<u8>> {
        (what == What::Order).then(|| read_there(&copy_beside(&self.args.pin))).flatten()
    }

    /// A copy of an earlier pin.
    fn earlier(&self, what: What) -> Option<Vec<u8>> {
        let cached = || {
            let digest: Digest = what.earlier(self.pin?)?.parse().ok()?;
            self.cache.as_ref()?.get(&digest.handle(), &digest).ok()
        };
        self.beside(what).or_else(cached).filter(|bytes| what.is_sound(bytes))
    }
}

/// A file that need not be there.
fn read_there(path: &Path) -> Option<Vec<u8>> {
    path.symlink_metadata().ok()?;
    read_file(path).ok()
}

/// A store of this user for what was fetched once. None where there is no home, or no room in it.
fn cache() -> Option<Store> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    let folder = absolute("XDG_CACHE_HOME").or_else(home)?.join("planish/text");
    std::fs::create_dir_all(&folder).ok()?;
    Some(Store::at(Location::Folder(folder)))
}

fn told(failure: &Failure) -> String {
    let message = failure.message("planish text fetch", "");
    let hint =
        message.hint.filter(|hint| !hint.is_empty()).map(|hint| format!(" ({})", hint.replace('\n', "; ")));
    message.text + &hint.unwrap_or_default()
}

fn next(args: &Args, files: &[TextFetched]) -> String {
    // What is not there is no use to a build.
    let is_there = |what: What| files.iter().any(|file| file.what == what.word() && file.from != "none");
    let order = args.order.as_ref().filter(|_| is_there(What::Order));
    match (order, args.profile.as_ref().filter(|_| is_there(What::Profile))) {
        (Some(order), _) => {
            format!("make CC=\"planish text cc --order {} -- cc\"", quoted(&order.to_string_lossy()))
        }
        (None, Some(profile)) => format!("planish text show {}", quoted(&profile.to_string_lossy())),
        (None, None) => "planish text fetch --help".to_owned(),
    }
}
