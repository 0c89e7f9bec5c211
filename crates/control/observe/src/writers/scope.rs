//! Which knobs a second writer sets on this host, by its own configuration.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use planish_formats::shell::{Ask, Effect, Files, effects};
use planish_formats::{texts as formats, unit};
use planish_host::{Host, Near};
use planish_model::{Again, KnobId, Writer, WriterScope, place};
use planish_sys::file;

use super::named::{Named, meant, of_sysctl};
use super::unit::Units;
use super::{Look, profiles};
use crate::persisted::udev::is_rule;

/// Bytes of a script that is looked into: those that set something up are shorter.
const SCRIPT_BYTES_MAX: u64 = 256 << 10;

/// Bytes of scripts of a writer that are followed, each as often as it is started: a host that starts more of them is
/// none that anybody would wait for.
const SCRIPTS_BYTES_MAX: usize = 8 << 20;

/// Words of texts that are looked at, of all writers of a host: about a second on a slow machine. Hosts of
/// distributions have a twentieth of that.
const WORDS_MAX: usize = 400_000;

/// What the configuration of a writer tells.
#[derive(Default)]
pub(super) struct Scope {
    /// The knobs; `None` where it cannot be told, and all of the row count.
    pub(super) knobs: Option<Vec<KnobId>>,
    /// Where it was read.
    pub(super) evidence: Vec<String>,
    /// The active profile.
    pub(super) profile: Option<String>,
    /// What its texts say of each knob.
    pub(super) named: Named,
    /// The lines of the host's files that it writes again.
    pub(super) again: Again,
}

/// The knobs that a writer sets.
pub(super) fn of(look: &Look<'_>, writer: &Writer) -> Scope {
    let host = look.host();
    match &writer.scope {
        None => Scope::default(),
        Some(WriterScope::Profile { active, folders, file, options, again }) => {
            let Ok(text) = host.read_lossy(active) else { return Scope::default() };
            let profile = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if profile.is_empty() {
                // It runs and sets nothing.
                return Scope { knobs: Some(Vec::new()), ..Scope::default() };
            }
            let row = profiles::Row { folders, file, is_kept: true, options, again: again.as_ref() };
            let profiles::Read { named, is_whole, again } = profiles::read(look, &row, &profile);
            let mut evidence = vec![format!("its profile is {profile} ({active})")];
            if again.is_sure && !again.lines.is_empty() {
                evidence.push(
                    "it writes the lines of /etc/sysctl.d and /etc/sysctl.conf again behind it".to_owned(),
                );
            }
            let knobs = is_whole.then(|| named.knobs());
            Scope { knobs, evidence, profile: Some(profile), named, again }
        }
        Some(WriterScope::Names { folders, options }) => names(look, folders, options),
        Some(WriterScope::Mentioned { files, executable }) => {
            let scripts = Scripts::of(look, writer);
            let texts = files.iter().flat_map(|file| texts(&look.near, file, *executable, &look.units));
            let mut scope = mentioned(texts, &scripts);
            if scripts.given.get() > SCRIPTS_BYTES_MAX {
                let most = SCRIPTS_BYTES_MAX >> 20;
                scope
                    .evidence
                    .push(format!("scripts are started of more than {most} MiB: the rest is not followed"));
            }
            scope
        }
    }
}

/// The scripts that the texts of a writer start or read.
struct Scripts<'l, 'h> {
    look: &'l Look<'h>,
    /// The text that starts them.
    at: RefCell<String>,
    /// Folders whose files another writer is told by.
    of_others: Vec<&'l str>,
    known: RefCell<BTreeMap<String, Option<String>>>,
    given: Cell<usize>,
}

impl<'l, 'h> Scripts<'l, 'h> {
    fn of(look: &'l Look<'h>, writer: &Writer) -> Self {
        // Those that are there where this one is.
        let is_beside = |other: &&Writer| other.id != writer.id && other.programs == writer.programs;
        let others = look.catalogue().writers().iter().filter(is_beside);
        let files = others.filter_map(|other| match &other.scope {
            Some(WriterScope::Mentioned { files, executable: true }) => Some(files),
            _ => None,
        });
        let of_others = files.flatten().filter_map(|file| file.strip_suffix("/{any}")).collect();
        Self { look, at: RefCell::default(), of_others, known: RefCell::default(), given: Cell::new(0) }
    }
}

impl Files for Scripts<'_, '_> {
    fn text(&self, path: &str, must_run: bool) -> Option<String> {
        let known = self.known.borrow().get(path).cloned();
        let text = known.unwrap_or_else(|| {
            let text = script(&self.look.near, path);
            self.known.borrow_mut().insert(path.to_owned(), text.clone());
            text
        });
        let text = text.filter(|_| !must_run || is_executable(self.look.near.path(path)))?;
        self.given.set(self.given.get() + text.len());
        if self.given.get() > SCRIPTS_BYTES_MAX {
            self.left_out("");
            return None;
        }
        Some(text)
    }

    /// Of a folder like `/etc/cron.daily` its own row tells, with what to do about it.
    fn names(&self, folder: &str) -> Vec<String> {
        let is_told = self.of_others.contains(&folder);
        let mut names = if is_told { Vec::new() } else { self.look.near.list(folder) };
        names.sort();
        names
    }

    fn may_go_on(&self, file: &str, work: usize) -> bool {
        let work = self.look.work.get() + work;
        self.look.work.set(work);
        if work > WORDS_MAX {
            self.left_out(file);
        }
        work <= WORDS_MAX
    }

    fn left_out(&self, file: &str) {
        let at = self.at.borrow();
        self.look.is_left_out(if file.is_empty() { &at } else { file });
    }
}

/// A file a parameter.
fn names(look: &Look<'_>, folders: &[String], options: &BTreeMap<String, Vec<String>>) -> Scope {
    let (host, catalogue) = (look.host(), look.catalogue());
    let Some((folder, names)) = folders.iter().find_map(|folder| {
        let names = host.list(folder);
        (!names.is_empty()).then_some((folder, names))
    }) else {
        return Scope::default();
    };
    let mut knobs = BTreeSet::new();
    for name in &names {
        // A listed folder is no file: what is in it is kept by a recording because it was looked at.
        host.exists(&format!("{folder}/{name}"));
        knobs.extend(of_sysctl(&look.places, name));
        let words = options.iter().filter(|(pattern, _)| place::matches(pattern, name));
        knobs.extend(words.flat_map(|(_, patterns)| meant(catalogue, patterns)));
    }
    let evidence = vec![format!("{} parameters in {folder}", names.len())];
    Scope { knobs: Some(knobs.into_iter().collect()), evidence, ..Scope::default() }
}

/// Texts that write knobs as `sysctl` does, or by their path.
fn mentioned(texts: impl Iterator<Item = (String, String)>, scripts: &Scripts<'_, '_>) -> Scope {
    let look = scripts.look;
    let mut named = Named::default();
    let (mut evidence, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, text) in texts {
        // Red Hat's /etc/rc.local is a link to another of these files, and a script has one in each runlevel. Of the
        // file of a template each instance runs what its own drop-ins leave of it.
        let real = look.host().real_path(&path).and_then(std::fs::canonicalize);
        if real.is_ok_and(|real| !seen.insert((real, text.clone()))) {
            continue;
        }
        scripts.at.replace(path.clone());
        if named.add(look, &effects_in(&path, &text, Some(scripts)), &path) {
            let line = format!("{path} names knobs");
            evidence.retain(|known| *known != line);
            evidence.push(line);
        }
    }
    Scope { knobs: Some(named.knobs()), evidence, named, ..Scope::default() }
}

/// The files that a name with `{any}` or `{enabled}` at its end stands for, each with its text: of a unit, what counts
/// of it. Their contents are not asked of the host, which would remember them.
fn texts(near: &Near<'_>, file: &str, executable: bool, units: &Units<'_>) -> Vec<(String, String)> {
    let host = near.host();
    let paths = match file.rsplit_once('/') {
        Some((folder, "{enabled}")) => return units.commands_in(folder),
        Some((folder, "{started}")) => init_scripts(host, folder, units),
        Some((folder, "{rules}")) => super::rules::files(host, folder),
        Some((folder, "{any}")) => host.list(folder).iter().map(|name| format!("{folder}/{name}")).collect(),
        _ => vec![file.to_owned()],
    };
    let counted = paths.into_iter().filter(|path| !executable || is_executable(near.path(path)));
    let text = |path: &str| Some(lossy(&near.read_up_to(path, file::BYTES_MAX).ok()?));
    counted.filter_map(|path| text(&path).map(|text| (path, text))).collect()
}

/// What the commands of a file do, by the form that files of its folder have.
fn effects_in(path: &str, text: &str, ask: Option<Ask<'_>>) -> Vec<Effect> {
    let is_below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    match () {
        () if super::unit::FOLDERS.iter().any(|folder| path.starts_with(folder)) => unit::effects(text, ask),
        () if is_rule(path) => super::rules::effects(text, ask),
        () if is_below(&["/etc/crontab", "/etc/cron.d/"]) => formats::effects_of_table(text, true, ask),
        () if is_below(&["/var/spool/cron/"]) => formats::effects_of_table(text, false, ask),
        () if is_below(&["/etc/sysfs.conf", "/etc/sysfs.d/"]) => formats::effects_of_sysfs(text),
        () if is_below(&["/etc/default/cp", "/etc/sysconfig/cp"]) => formats::effects_of_frequency(text),
        () if is_below(&["/etc/cloud/", "/var/lib/cloud/"]) => formats::effects_of_data(text, ask),
        () => effects(text, ask),
    }
}

/// The scripts that a folder of a runlevel has started, where scripts of SysV are run at all: by an init that is no
/// systemd, or by the generator of one, which makes no unit where there is one of that name
/// (systemd-sysv-generator(8)).
fn init_scripts(host: &Host, folder: &str, units: &Units<'_>) -> Vec<String> {
    let generator = "systemd/system-generators/systemd-sysv-generator";
    let has_generator =
        || ["/usr/lib", "/lib"].iter().any(|root| host.exists(&format!("{root}/{generator}")));
    let is_systemd = super::is_systemd(host);
    if !(if is_systemd { has_generator() } else { may_be_init(host) }) {
        return Vec::new();
    }
    let is_started = |name: &String| {
        let number = name.strip_prefix('S').unwrap_or_default().as_bytes();
        number.len() > 2 && number[..2].iter().all(u8::is_ascii_digit)
    };
    let has_unit = |name: &str| units.has(&format!("{}.service", name.trim_end_matches(".sh")));
    let is_run = |name: &String| !is_systemd || !name.get(3..).is_some_and(has_unit);
    host.list(folder)
        .into_iter()
        .filter(is_started)
        .filter(is_run)
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// Whether process 1 may be an init that runs scripts of SysV. The one of a container or of a machine for one program
/// is that program: the scripts of the image stay where they are. Where nobody can tell, they count.
fn may_be_init(host: &Host) -> bool {
    const INITS: [&str; 11] = [
        "busybox",
        "dinit",
        "finit",
        "init",
        "linuxrc",
        "openrc",
        "openrc-init",
        "runit",
        "runit-init",
        "s6-svscan",
        "sysvinit",
    ];
    const FIRST: &str = "/proc/1/comm";
    // It decides: a recording keeps it.
    let is_known = host.exists(FIRST);
    let name = super::unremembered(host, FIRST).filter(|_| is_known);
    name.is_none_or(|name| INITS.contains(&name.trim_end())) || host.exists("/etc/inittab")
}

/// A text as a shell takes it, whatever bytes are in it.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The text of a file that another one starts or reads: a program, a long one and what is no file are none. No
/// recording is to keep it, as it keeps none of the texts that start it. A shell takes bytes as they come: one that is
/// no UTF-8, in a comment as a rule, hides nothing.
pub(super) fn script(near: &Near<'_>, path: &str) -> Option<String> {
    Some(lossy(&near.read_text_up_to(path, SCRIPT_BYTES_MAX).ok()?))
}

/// Whether a file may be executed by anybody.
fn is_executable(path: std::io::Result<PathBuf>) -> bool {
    let found = path.and_then(std::fs::metadata);
    found.is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}
