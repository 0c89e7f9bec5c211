//! The steps by which programs are made, each a command that a user could type.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use planish_sys::affinity;
use serde_json::{Value, json};

use super::again::is_as_wanted;
use super::folder::Folder;
use super::{FOLDER, HUGE_LEAST, Made, PROGRAM, told};
use crate::build::fingerprint;
use crate::child::{Finished, Launch, run_once};
use crate::error::TrialError;
use crate::file::{TextSpec, TextWord};
use crate::postgres::account;
use crate::run::RunOptions;
use crate::sample::ArmError;

/// How long the build may take, and each step after it.
const BUILD_LIMIT: Duration = Duration::from_secs(3 * 3600);
const STEP_LIMIT: Duration = Duration::from_secs(3600);

/// Samples a second: a run of a few seconds shall name more than the hottest functions.
const RATE_HZ: &str = "19997";

/// The orders that are tried, of those that `text order` knows.
const ORDERS: [&str; 5] = ["c3", "cdsort", "cdsort-calls", "density", "weight"];

/// Flags of every link: text that fits huge pages, and relocations for BOLT. So arms differ in nothing else.
const FLAGS: &str =
    "-fuse-ld=lld -Wl,--emit-relocs -Wl,-z,max-page-size=2097152 -Wl,-z,separate-loadable-segments";

/// Bytes that counted branches take at most.
const COUNTS_BYTES_MAX: u64 = 1 << 30;

/// The file name of every program.
const NAME: &str = "program";

/// What all steps share.
pub(super) struct Steps<'a> {
    pub(super) folder: &'a Folder,
    pub(super) spec: &'a TextSpec,
    /// What the profile is recorded of.
    pub(super) sample: Vec<String>,
    /// The user's own source.
    pub(super) source: Option<PathBuf>,
    pub(super) options: &'a RunOptions,
}

impl Steps<'_> {
    /// Brings and compiles the source, where that has not been done by these very commands.
    pub(super) fn build(&self) -> Result<(), TrialError> {
        // The link is of what was built, by words that may have changed with it.
        let of = format!("{:?}\n{:?}\n{:?}\n", self.spec.build, self.spec.link, self.source);
        if self.spec.build.is_empty() || self.folder.is_built(&of) {
            return Ok(());
        }
        self.folder.begin()?;
        let launch = self.launch(&self.spec.build, []);
        run_once(&launch, 0, BUILD_LIMIT, &self.options.stop)
            .map_err(|error| self.refused("`build` fails", error))?;
        self.folder.built(&of)
    }

    /// The program as it was linked, with a profile of it, and what it answers to the sample.
    pub(super) fn base(&self) -> Result<(Made, String), TrialError> {
        self.folder.empty("base")?;
        let fails = |error| self.refused("the program as it is linked", error);
        let told = self.link("base", "").map_err(fails)?;
        self.look("base", told).map_err(fails)
    }

    /// Another copy of the program as it was linked.
    pub(super) fn twin(&self, base: &Made) -> Result<PathBuf, TrialError> {
        let twin = self.folder.empty("base-twin")?.join(NAME);
        fs::copy(&base.program, &twin).map_err(|source| TrialError::File { path: twin.clone(), source })?;
        Ok(twin)
    }

    /// A program that is laid out otherwise, and answers the same.
    pub(super) fn lay_out(&self, layout: TextWord, answers: &str) -> Result<Made, ArmError> {
        let name = told::words(&[layout]);
        self.folder.empty(&name).map_err(|error| ArmError::crashed(error.to_string()))?;
        let base = self.program("base").display().to_string();
        let profile = self.profile("base").display().to_string();
        let facts = match layout {
            TextWord::Order => told::order(&self.linked_in_order(&name, &base, &profile, &[])?),
            TextWord::OrderTraced => self.traced(&name, &base, &profile)?,
            TextWord::LldCdsort => {
                let graph = self.path(&name, "graph").display().to_string();
                let words =
                    ["text", "order", &base, "--profile", &profile, "--algorithm", "cdsort", "--form"];
                self.planish(&[&words[..], &["call-graph", "--output", &graph]].concat())?;
                let sort = "-Wl,--call-graph-profile-sort=cdsort";
                self.link(&name, &format!("-Wl,--call-graph-ordering-file={graph} {sort}"))?
            }
            TextWord::BoltFunctions => {
                told::bolt(&self.bolt(&name, &["--profile", &profile, "--layout", "functions"])?)
            }
            TextWord::Bolt => {
                let counts = self.counted(&base)?.display().to_string();
                told::bolt(&self.bolt(&name, &["--profile", &counts, "--layout", "blocks"])?)
            }
            TextWord::Huge => unreachable!("it is no layout"),
        };
        let (made, own) = self.look(&name, facts)?;
        if own == answers {
            return Ok(made);
        }
        Err(ArmError::unavailable(
            "it prints something else to `sample` than the program as it is linked: a layout must not",
        ))
    }

    /// Links in the order that `planish text order` gives, with these words more.
    fn linked_in_order(
        &self,
        name: &str,
        base: &str,
        profile: &str,
        words: &[&str],
    ) -> Result<Value, ArmError> {
        let file = self.path(name, "symbols").display().to_string();
        let all = ["text", "order", base, "--profile", profile, "--output", &file];
        let result = self.planish(&[&all[..], words].concat())?;
        self.link(name, &format!("-Wl,--no-warn-symbol-ordering -Wl,--symbol-ordering-file={file}"))?;
        Ok(result)
    }

    /// The program in the best of our orders by a run under valgrind of each. The walk of `text order` knows the
    /// profile alone, and a trace is of the program itself; it is another one than that which the figures are of.
    fn traced(&self, name: &str, base: &str, profile: &str) -> Result<BTreeMap<String, Value>, ArmError> {
        let lost = |error: std::io::Error| ArmError::crashed(format!("an order: {error}"));
        let (program, best) = (self.program(name), self.path(name, "best"));
        let mut traced: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
        let mut least: Option<(f64, &str)> = None;
        for order in ORDERS {
            self.linked_in_order(name, base, profile, &["--algorithm", order])?;
            let misses = self.trace(&program, "choice", &told::SIMULATED)?;
            if let Some(cost) = told::fetch_cost(&misses)
                && least.is_none_or(|(least, _)| cost < least)
            {
                least = Some((cost, order));
                fs::rename(&program, &best).map_err(lost)?;
            }
            traced.insert(order, misses);
        }
        let why =
            || ArmError::unavailable("no run could be traced: it takes valgrind, and a `trace` in [text]");
        let (_, order) = least.ok_or_else(why)?;
        fs::rename(&best, &program).map_err(lost)?;
        Ok([("order".to_owned(), json!(order)), ("orders_traced".to_owned(), json!(traced))].into())
    }

    /// A copy of a program whose text is on huge pages of the page cache.
    pub(super) fn on_huge_pages(&self, arm: usize, laid: &Made) -> Result<Made, ArmError> {
        let lost = |error: std::io::Error| ArmError::crashed(format!("a copy for huge pages: {error}"));
        // By its number: a name is anybody's.
        let folder = self.folder.empty(&format!("huge-{arm}"));
        let program = folder.map_err(|error| ArmError::crashed(error.to_string()))?.join(NAME);
        fs::copy(&laid.program, &program).map_err(lost)?;
        let text = program.display().to_string();
        let least = format!("{}", 100.0 * HUGE_LEAST);
        let result = self.planish(&["text", "huge", &text, "--least", &least])?;
        let cached = cached(&program, self.options)?;
        if !is_as_wanted(&cached, true) {
            let reason = "its text cannot be put on huge pages here".to_owned();
            let cure = format!("planish text huge {text} tells why, by route; --prepare makes room");
            return Err(ArmError::Unavailable { reason, cure });
        }
        let mut facts = laid.facts.clone();
        // Of base pages, on which this one is not.
        facts.retain(|name, _| !name.starts_with("itlb_4k"));
        facts.extend(cached);
        facts.insert("text_huge_route".to_owned(), result.get("route").cloned().unwrap_or_default());
        facts.extend(self.trace(&program, "figure", &[told::SIMULATED_HUGE])?);
        facts.extend(identity(&program)?);
        Ok(Made { program, facts })
    }

    /// Links the program into a folder of its own. What the command prints (`compiler: clang 19`) becomes facts.
    fn link(&self, name: &str, flags: &str) -> Result<BTreeMap<String, Value>, ArmError> {
        let out = self.program(name).display().to_string();
        let flags = format!("{FLAGS} {flags}").trim_end().to_owned();
        let launch = self.launch(&self.spec.link, [("PLANISH_OUT", out.clone()), ("PLANISH_FLAGS", flags)]);
        let done = self.run(&launch)?;
        if !Path::new(&out).is_file() {
            return Err(ArmError::crashed(format!("`link` ended well and made no {out} (PLANISH_OUT)")));
        }
        let facts = done.stdout.lines().filter_map(|line| line.split_once(": "));
        Ok(facts.map(|(name, value)| (format!("built_{}", name.trim()), json!(value.trim()))).collect())
    }

    /// Lays a program out by BOLT.
    fn bolt(&self, name: &str, words: &[&str]) -> Result<Value, ArmError> {
        let (base, out) =
            (self.program("base").display().to_string(), self.program(name).display().to_string());
        self.planish(&[&["text", "bolt", &base, "--output", &out][..], words].concat())
    }

    /// The branches of the program, counted by BOLT's own instructions in it.
    fn counted(&self, base: &str) -> Result<PathBuf, ArmError> {
        let lost = |error: TrialError| ArmError::crashed(error.to_string());
        let instrumented = self.folder.empty("instrumented").map_err(lost)?;
        // It writes them as the user that it runs as, whom nobody has to trust.
        let ids = self.user()?;
        let written = self.folder.of_user("counts", ids).map_err(lost)?.join("branches");
        let program = instrumented.join(NAME).display().to_string();
        let fdata = written.display().to_string();
        self.planish(&["text", "bolt", base, "--instrument", "--output", &program, "--fdata", &fdata])?;
        self.run(&self.launch(&self.sample, [(PROGRAM, program)]))?;
        let counts = instrumented.join("branches");
        taken(&written, &counts, ids.map(|(user, _)| user)).map_err(|error| {
            ArmError::crashed(format!("the branches that were counted: {}: {error}", written.display()))
        })?;
        Ok(counts)
    }

    /// User and group of the program; `None` where it runs as we do.
    fn user(&self) -> Result<Option<(u32, u32)>, ArmError> {
        let Some(name) = self.spec.user.as_ref().filter(|_| rustix::process::geteuid().is_root()) else {
            return Ok(None);
        };
        let passwd = crate::kernel::read("/etc/passwd").unwrap_or_default();
        let found = account(&passwd, name).and_then(|account| account.ids);
        found
            .map(Some)
            .ok_or_else(|| ArmError::unavailable(format!("this machine has no user `{name}` ([text])")))
    }

    /// What is told of a program, and what it prints: the pages that its samples lie on, and what it misses.
    fn look(&self, name: &str, mut facts: BTreeMap<String, Value>) -> Result<(Made, String), ArmError> {
        let (program, profile) = (self.program(name), self.profile(name));
        let text = program.display().to_string();
        let out = profile.display().to_string();
        let report = self.path(name, "report").display().to_string();
        let own = self.options.program.display().to_string();
        let words =
            [&own, "text", "record", "--rate", RATE_HZ, "--program", &text, "--output", &out, "--quiet"];
        let words = words.into_iter().chain(["--report", &report, "--"]).map(str::to_owned);
        let words: Vec<String> = words.chain(self.sample.iter().cloned()).collect();
        let done = self.run(&self.launch(&words, [(PROGRAM, text.clone())]))?;
        let verified = self.planish(&["text", "verify", &text, "--profile", &out])?;
        facts.extend(told::verify(&verified));
        facts.extend(self.trace(&program, "figure", &told::SIMULATED)?);
        facts.extend(identity(&program)?);
        Ok((Made { program, facts }, done.stdout))
    }

    /// What a cache and a TLB for instructions miss in a run of this name, where the trial says how to run the program
    /// under valgrind. It explains and decides nothing: where it cannot be had, the reason stands in its place.
    fn trace(
        &self,
        program: &Path,
        run: &str,
        of: &[(&str, &str)],
    ) -> Result<BTreeMap<String, Value>, ArmError> {
        let mut facts = BTreeMap::new();
        for (cache, fact) in of.iter().filter(|_| !self.spec.trace.is_empty()) {
            let tracer =
                format!("valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null {cache}");
            let text = program.display().to_string();
            let env = [(PROGRAM, text), ("PLANISH_TRACER", tracer), ("PLANISH_TRACE", run.to_owned())];
            let told = match run_once(&self.launch(&self.spec.trace, env), 0, STEP_LIMIT, &self.options.stop)
            {
                Err(ArmError::Stopped) => return Err(ArmError::Stopped),
                Ok(done) => told::misses(&done.stderr).ok_or_else(|| "valgrind told no misses".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            match told {
                Ok(misses) => facts.insert((*fact).to_owned(), json!(misses)),
                Err(reason) => facts.insert(format!("{fact}_reason"), json!(reason)),
            };
        }
        Ok(facts)
    }

    /// Runs planish, and gives the result of its JSON.
    fn planish(&self, words: &[&str]) -> Result<Value, ArmError> {
        let state = self.folder.path().join("state").display().to_string();
        ask(self.options, &[words, &["--state", &state]].concat())
    }

    fn run(&self, launch: &Launch) -> Result<Finished, ArmError> {
        run_once(launch, 0, STEP_LIMIT, &self.options.stop)
    }

    /// A command of the file, in the folder, with what it finds in its environment.
    fn launch<'v>(&self, command: &[String], more: impl IntoIterator<Item = (&'v str, String)>) -> Launch {
        let cpus = affinity::get(None).map_or(1, |cpus| cpus.count().max(1));
        let own = [
            ("PLANISH", self.options.program.display().to_string()),
            ("PLANISH_JOBS", cpus.to_string()),
            (FOLDER, self.folder.path().display().to_string()),
            (
                "PLANISH_SOURCE",
                self.source.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            ),
        ];
        let env = own.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
        // Others may read what is made, whatever the umask, and not write it: a program that refuses root has to.
        let shell = ["sh", "-c", "umask 022; exec \"$@\"", "sh"].map(str::to_owned);
        let words = shell.into_iter().chain(command.iter().cloned()).collect();
        Launch { env, folder: Some(self.folder.path().to_owned()), ..Launch::of(words) }
    }

    fn path(&self, name: &str, file: &str) -> PathBuf {
        self.folder.path().join(name).join(file)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.path(name, NAME)
    }

    fn profile(&self, name: &str) -> PathBuf {
        self.path(name, "profile")
    }

    fn refused(&self, what: &str, error: ArmError) -> TrialError {
        match error {
            ArmError::Stopped => TrialError::Stopped,
            error => TrialError::Refused {
                what: format!("[text]: {what}: {error}"),
                cure: format!(
                    "its commands run in {}, where they can be tried by hand",
                    self.folder.path().display()
                ),
            },
        }
    }
}

/// What the page cache has of a program's text now.
pub(super) fn cached(program: &Path, options: &RunOptions) -> Result<BTreeMap<String, Value>, ArmError> {
    ask(options, &["text", "verify", &program.display().to_string()]).map(|result| told::verify(&result))
}

/// Runs planish with these words, and gives the result of its JSON. An exit code that is a finding has one, too.
fn ask(options: &RunOptions, words: &[&str]) -> Result<Value, ArmError> {
    let own = options.program.display().to_string();
    // An error is in the JSON as well, and in better words than an exit code has.
    let shell = ["sh", "-c", "umask 022; \"$@\" || :", "sh", &own, "--json", "--quiet"];
    let command = shell.iter().chain(words).map(|word| (*word).to_owned()).collect();
    let done = run_once(&Launch::of(command), 0, STEP_LIMIT, &options.stop)?;
    let named = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    told::result(&done.stdout).map_err(|why| ArmError::unavailable(format!("planish {named}: {why}")))
}

/// Takes over a file that another user has written: a plain file of his, and no way to one of somebody else's.
fn taken(from: &Path, to: &Path, user: Option<u32>) -> std::io::Result<()> {
    let odd = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    // Without waiting for the other end of a pipe, which somebody may have put there.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file = fs::File::options().read(true).custom_flags(flags.bits().cast_signed()).open(from)?;
    let found = file.metadata()?;
    let owner = user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    if !found.is_file() || found.nlink() != 1 || found.uid() != owner {
        return Err(odd("it is no plain file of the user that the program runs as"));
    }
    if found.len() > COUNTS_BYTES_MAX {
        return Err(odd("it is longer than a count of branches is"));
    }
    std::io::copy(&mut std::io::Read::take(&mut file, COUNTS_BYTES_MAX), &mut fs::File::create(to)?).map(drop)
}

/// Which bytes a verdict is of.
fn identity(program: &Path) -> Result<BTreeMap<String, Value>, ArmError> {
    let sha256 = fingerprint(program)?;
    let path = program.display().to_string();
    Ok([("program".to_owned(), json!(path)), ("program_sha256".to_owned(), json!(sha256))].into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn counts_are_a_plain_file_of_who_wrote_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::File::create(at("secret")).expect("ours");
        symlink(at("secret"), at("link")).expect("a link");
        fs::hard_link(at("secret"), at("second")).expect("another name");
        let made = Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        for odd in ["link", "second", "pipe", "missing"] {
            assert!(taken(&at(odd), &at("to"), None).is_err(), "{odd}");
        }
        fs::remove_file(at("second")).expect("it was there");
        taken(&at("secret"), &at("to"), None).expect("a plain file of ours");
        let stranger = rustix::process::geteuid().as_raw() + 1;
        assert!(taken(&at("secret"), &at("to"), Some(stranger)).is_err());
    }
}
