//! Units of systemd, as their files tell: whether one is enabled, and where its program takes arguments from.

use std::collections::{BTreeMap, BTreeSet};

use planish_formats::unit::DECIDING;
use planish_host::Host;
use planish_model::WriterArguments;

use crate::units::{SET_PROPERTY, drop_in_folders};

/// Folders of units, the first one wins (`systemd.unit(5)`).
pub(crate) const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Folders of units that come before those of an administrator (`systemd.unit(5)`).
pub(crate) const BEFORE: [&str; 4] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
];

/// Folders of units that programs make at each start and reload, of other files: of SysV scripts, of containers.
pub(crate) const GENERATED: [&str; 2] = ["/run/systemd/generator", "/run/systemd/generator.late"];

/// The units of a host whose process 1 is systemd; none of another one, whatever files an image left behind.
pub(super) struct Units<'a> {
    host: &'a Host,
    /// Folders in which an enabled unit has a link.
    wants: Vec<String>,
    /// Folders of drop-ins that there are.
    drop_ins: BTreeSet<String>,
    /// Units that a drop-in of another one pulls in, each with that drop-in.
    pulled: BTreeMap<String, String>,
}

impl<'a> Units<'a> {
    pub(super) fn of(host: &'a Host) -> Self {
        let folder = FOLDERS[0];
        let is_systemd = super::is_systemd(host);
        let names = if is_systemd { host.list(folder) } else { Vec::new() };
        let pulls =
            |name: &String| [".wants", ".requires", ".upholds"].iter().any(|kind| name.ends_with(kind));
        let wants = names.into_iter().filter(pulls).map(|name| format!("{folder}/{name}")).collect();
        let folders = SET_PROPERTY.iter().chain(&FOLDERS).filter(|_| is_systemd);
        let drop_ins = folders.flat_map(|folder| {
            let names = host.list(folder).into_iter().filter(|name| name.ends_with(".d"));
            names.map(move |name| format!("{folder}/{name}"))
        });
        let drop_ins: BTreeSet<String> = drop_ins.collect();
        let pulled = pulled(host, &drop_ins);
        Self { host, wants, drop_ins, pulled }
    }

    /// The link by which a unit is enabled, unless it is masked.
    pub(super) fn enabled(&self, unit: &str) -> Option<String> {
        let mut links = self.wants.iter().map(|folder| format!("{folder}/{unit}"));
        let link = links.find(|link| self.host.exists(link)).or_else(|| self.pulled.get(unit).cloned())?;
        mask_of(self.host, unit).is_none().then_some(link)
    }

    /// Whether a unit is masked at the next boot. No recording is to keep it because of us.
    fn is_masked(&self, unit: &str) -> bool {
        mask_by(unit, &|path| {
            let (folder, name) = path.rsplit_once('/')?;
            let path = self.host.real_path(folder).ok()?.join(name);
            let file = path.symlink_metadata().ok()?;
            let is_empty = file.is_file() && file.len() == 0;
            Some(std::fs::read_link(&path).map_or(is_empty, |target| target.to_str().is_some_and(is_null)))
        })
        .is_some()
    }

    /// Whether there is a file of a unit, or a link that masks it. No recording is to keep it because of us.
    pub(super) fn has(&self, unit: &str) -> bool {
        let at = |folder: &&str| Some(self.host.real_path(folder).ok()?.join(unit));
        FOLDERS.iter().filter_map(at).any(|path| path.symlink_metadata().is_ok())
    }

    /// What services that are enabled, or that such a unit starts or pulls in, have a boot run by files of a folder:
    /// the files, each with its commands. No recording is to keep the texts of units for it.
    pub(super) fn commands_in(&self, folder: &str) -> Vec<(String, String)> {
        let wanted = self.wants.iter().flat_map(|wants| self.host.list(wants));
        let begin = std::iter::once("default.target".to_owned());
        let mut waiting: Vec<String> = begin.chain(wanted).chain(self.pulled.keys().cloned()).collect();
        let read = |path: &str| super::unremembered(self.host, path);
        let mut told: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        while let Some(unit) = waiting.pop() {
            if told.contains_key(&unit) || self.is_masked(&unit) {
                continue;
            }
            let files = self.files(&unit, &read);
            waiting.extend(files.iter().flat_map(|(_, text)| pulled_by(&unit, text)));
            waiting.extend(
                STARTERS.iter().find_map(|kind| Some(format!("{}.service", unit.strip_suffix(kind)?))),
            );
            let of_service = if unit.ends_with(".service") { commands(&files) } else { Vec::new() };
            told.insert(unit, of_service);
        }
        let told = told.into_values().flatten();
        told.filter(|(path, _)| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))).collect()
    }

    /// Where the program of a unit takes its arguments from: the last file of variables, and the variable on its
    /// command line. `None` where it takes none.
    pub(super) fn arguments(&self, unit: &str) -> Option<WriterArguments> {
        let files = self.files(unit, &|path| self.host.read_lossy(path).ok());
        let texts: Vec<String> = files.into_iter().map(|(_, text)| text).collect();
        let (file, variable) = source(&texts.join("\n"))?;
        let value = value_in(self.host, &file, &variable).map(|(_, value)| value).unwrap_or_default();
        Some(WriterArguments { file, variable, value })
    }

    /// The file of a unit and its drop-ins, in the order in which they count: of several folders the first has the file
    /// and each drop-in, and drop-ins go by their names. An instance has those of its template, too, and each unit
    /// those of what its name begins with, and of its kind.
    fn files(&self, unit: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let template = unit.split_once('@').map(|(name, _)| format!("{name}@.service"));
        let names: Vec<&str> = [Some(unit), template.as_deref()].into_iter().flatten().collect();
        let mut places = names.iter().flat_map(|name| FOLDERS.map(|folder| format!("{folder}/{name}")));
        let found = places.find_map(|path| {
            let text = read(&path)?;
            Some((path, text))
        });
        let Some(found) = found else { return Vec::new() };
        let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
        let folders = drop_in_folders(&[unit.to_owned()]).into_iter();
        for folder in folders.filter(|folder| self.drop_ins.contains(folder)) {
            for name in self.host.list(&folder).into_iter().filter(|name| name.ends_with(".conf")) {
                let path = format!("{folder}/{name}");
                drop_ins.entry(name).or_insert(path);
            }
        }
        let drop_ins = drop_ins.into_values().map(|path| (read(&path).unwrap_or_default(), path));
        std::iter::once(found).chain(drop_ins.map(|(text, path)| (path, text))).collect()
    }
}

/// What masks a unit at the next boot, where systemd is process 1: that boot runs nothing of it. It is a link to
/// /dev/null or an empty file, in the first folder that has the unit at all (`systemd.unit(5)`). What lies in /run goes
/// with this boot.
pub(crate) fn mask_of(host: &Host, unit: &str) -> Option<String> {
    let found = || mask_by(unit, &|path| is_mask(host, path));
    super::is_systemd(host).then(found).flatten()
}

/// Whether the file of a unit masks it; `None` where there is no such file.
pub(crate) fn is_mask(host: &Host, path: &str) -> Option<bool> {
    match host.read_link(path) {
        Some(target) => Some(is_null(&target)),
        None => host.read(path).ok().map(|text| text.is_empty()),
    }
}

fn mask_by(unit: &str, is_mask: &dyn Fn(&str) -> Option<bool>) -> Option<String> {
    let stay = FOLDERS.iter().filter(|folder| !folder.starts_with("/run/"));
    let first = stay.map(|folder| format!("{folder}/{unit}")).find_map(|path| Some((is_mask(&path)?, path)));
    first.filter(|(is_mask, _)| *is_mask).map(|(_, path)| path)
}

/// Whether a link leads to /dev/null, however it is written.
fn is_null(target: &str) -> bool {
    target.trim_start_matches("../").trim_start_matches('/') == "dev/null"
}

/// Units that drop-ins pull in, each with the drop-in. Whether the unit that has it is started itself is not asked:
/// better one too many told. No recording is to keep the texts for it.
fn pulled(host: &Host, drop_ins: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut pulled = BTreeMap::new();
    for folder in drop_ins.iter().filter(|folder| FOLDERS[..3].iter().any(|of| folder.starts_with(of))) {
        let owner = folder.rsplit('/').next().and_then(|name| name.strip_suffix(".d")).unwrap_or_default();
        for name in host.list(folder).into_iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            let text = super::unremembered(host, &path).unwrap_or_default();
            for unit in pulled_by(owner, &text) {
                pulled.entry(unit).or_insert_with(|| path.clone());
            }
        }
    }
    pulled
}

/// Kinds of units that start the service of their name, where they name no other one.
const STARTERS: [&str; 3] = [".timer", ".path", ".socket"];

/// Keys that have a unit start others, and those of a timer, path or socket that name what it starts
/// (`systemd.unit(5)`). No later line takes one of the first kind back.
const PULLS: [&str; 8] =
    ["Wants", "Requires", "BindsTo", "Upholds", "OnSuccess", "OnFailure", "Unit", "Service"];

/// The units that the text of a unit or of a drop-in of it pulls in, and those that its commands start.
fn pulled_by(unit: &str, text: &str) -> Vec<String> {
    let whole = without_comments(text).replace("\\\n", " ");
    let mut pulled = Vec::new();
    for (key, value) in whole.lines().filter_map(|line| line.trim().split_once('=')) {
        let words = value.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        match key.trim_end() {
            key if PULLS.contains(&key) => pulled.extend(words.filter_map(|name| filled(unit, name))),
            key if key.starts_with("Exec") => {
                pulled.extend(started(words).iter().filter_map(|name| filled(unit, name)));
            }
            _ => {}
        }
    }
    pulled
}

/// The units that a command has systemd start. A script that it runs is not looked into here.
fn started<'t>(words: impl Iterator<Item = &'t str>) -> Vec<String> {
    let is_systemctl = |word: &str| word.rsplit(['/', '-', '@', ':', '+', '!']).next() == Some("systemctl");
    let mut words = words.skip_while(|word| !is_systemctl(word));
    let mut started = Vec::new();
    if words.find(|word| VERBS.contains(word)).is_none() {
        return started;
    }
    for word in words {
        let name = word.split([';', '|', '&']).next().unwrap_or_default();
        let is_kind = |(_, kind): (&str, &str)| KINDS.contains(&kind);
        if !name.is_empty() && !name.starts_with('-') {
            let has_kind = name.rsplit_once('.').is_some_and(is_kind);
            started.push(if has_kind { name.to_owned() } else { format!("{name}.service") });
        }
        if name.len() < word.len() {
            break;
        }
    }
    started
}

/// What has `systemctl` start a unit.
const VERBS: [&str; 7] =
    ["start", "restart", "try-restart", "reload-or-restart", "try-reload-or-restart", "isolate", "enable"];

/// Kinds of units that a name may end in; without one it is a service.
const KINDS: [&str; 11] = [
    "service",
    "socket",
    "target",
    "timer",
    "path",
    "mount",
    "automount",
    "device",
    "slice",
    "scope",
    "swap",
];

/// A name with what its specifiers stand for in a unit. `None` with another specifier than those of the name of a unit.
fn filled(unit: &str, name: &str) -> Option<String> {
    let (whole, kind) = unit.rsplit_once('.')?;
    let (prefix, instance) = whole.split_once('@').unwrap_or((whole, ""));
    let mut parts = name.split('%');
    let mut filled = parts.next()?.to_owned();
    while let Some(part) = parts.next() {
        let mut chars = part.chars();
        match chars.next() {
            Some('p') => filled += prefix,
            Some('i') => filled += instance,
            Some('j') => filled += prefix.rsplit('-').next()?,
            Some('N') => filled += whole,
            Some('n') => filled += &format!("{whole}.{kind}"),
            // `%%`: what follows the second one is as it stands.
            None => filled += &format!("%{}", parts.next()?),
            Some(_) => return None,
        }
        filled += chars.as_str();
    }
    Some(filled)
}

/// The commands of a unit's files: a path that is a condition, or that it may write, sets nothing. Whether a condition
/// will hold is known at the boot alone, so that its commands count as if it did: better one too many told than a value
/// called safe that goes. An empty
/// `ExecStart=` takes back those before it.
fn commands(files: &[(String, String)]) -> Vec<(String, String)> {
    let mut lines: Vec<(&str, String, String)> = Vec::new();
    // What decides where all of them write, whichever file says it.
    let mut deciding = String::new();
    for (path, text) in files {
        let whole = without_comments(text).replace("\\\n", " ");
        for (key, value) in whole.lines().filter_map(|line| line.trim().split_once('=')) {
            let key = key.trim_end();
            match (key.starts_with("Exec"), value.trim()) {
                (false, value) if DECIDING.contains(&key) => deciding += &format!("{key}={value}\n"),
                (false, _) => {}
                (true, "") => lines.retain(|(_, known, _)| known != key),
                (true, value) => lines.push((path, key.to_owned(), format!("{key}={value}"))),
            }
        }
    }
    let of_file = |(path, _): &(String, String)| {
        let own = lines.iter().filter(|(from, ..)| from == path).map(|(.., line)| line.as_str());
        let own = own.collect::<Vec<_>>().join("\n");
        (path.clone(), if own.is_empty() { own } else { format!("{deciding}{own}") })
    };
    files.iter().map(of_file).collect()
}

fn without_comments(text: &str) -> String {
    let told = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    told.collect::<Vec<_>>().join("\n")
}

/// The last `EnvironmentFile=` and the variable that the last `ExecStart=` hands over whole.
fn source(text: &str) -> Option<(String, String)> {
    let last = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='));
        values.rfind(|value| !value.trim().is_empty()).map(str::trim)
    };
    let file = last("EnvironmentFile")?.trim_start_matches('-').to_owned();
    let variable = last("ExecStart")?.split_whitespace().find_map(|word| {
        let name = word.strip_prefix('$')?.trim_matches(['{', '}']);
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
    })?;
    Some((file, variable.to_owned()))
}

/// What a file of variables of units sets one to, and its line. A recording keeps those of the usual folders, without
/// what is not asked for. Elsewhere anything may lie.
pub(crate) fn value_in(host: &Host, file: &str, variable: &str) -> Option<(usize, String)> {
    let is_usual = ["/etc/default/", "/etc/sysconfig/"].iter().any(|folder| file.starts_with(folder));
    let text = if is_usual { host.read_lossy(file).ok() } else { super::unremembered(host, file) };
    value(&text?, variable)
}

/// What a text of variables sets one to, and its line; the last one counts. A line that ends with a backslash goes on
/// in the next one (`EnvironmentFile=` of systemd.exec(5)).
fn value(text: &str, variable: &str) -> Option<(usize, String)> {
    let (mut found, mut begun) = (None, None);
    for (at, line) in (1..).zip(text.lines()) {
        let (at, line) = match begun.take() {
            Some((at, before)) => (at, format!("{before}{line}")),
            None => (at, line.to_owned()),
        };
        let is_comment = line.trim_start().starts_with(['#', ';']);
        if let Some(before) = line.strip_suffix('\\').filter(|_| !is_comment) {
            begun = Some((at, before.to_owned()));
            continue;
        }
        let given = line.split_once('=').filter(|(name, _)| name.trim() == variable);
        if let Some((_, value)) = given {
            found = Some((at, value.trim().trim_matches(['"', '\'']).to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_from_the_last_file_and_the_variable_of_the_command() {
        let unit = "[Service]\nEnvironmentFile=-/usr/lib/irqbalance/defaults.env\n\
                    EnvironmentFile=-/etc/default/irqbalance\n\
                    ExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS\n";
        assert_eq!(source(unit), Some(("/etc/default/irqbalance".to_owned(), "IRQBALANCE_ARGS".to_owned())));
        let older = "EnvironmentFile=/etc/sysconfig/irqbalance\nExecStart=/usr/sbin/irqbalance ${OPTIONS}\n";
        assert_eq!(source(older).map(|(_, variable)| variable).as_deref(), Some("OPTIONS"));
        assert_eq!(source("ExecStart=/usr/bin/x $ARGS\n"), None, "no file to write it into");
        assert_eq!(source("EnvironmentFile=/etc/x\nExecStart=/usr/bin/x --all\n"), None);
    }

    /// A boot asks them, and no file tells what it will find.
    #[test]
    fn a_condition_sets_nothing_and_takes_no_command_away() {
        let text = "[Unit]\nConditionPathExists=/proc/sys/vm/swappiness\n[Service]\n\
                    ExecCondition=/bin/false\nExecStart=/bin/sh -c 'echo 1 > /proc/sys/vm/stat_interval'\n";
        let told = commands(&[("/etc/systemd/system/a.service".to_owned(), text.to_owned())]);
        assert!(told[0].1.contains("vm/stat_interval") && !told[0].1.contains("swappiness"), "{told:?}");
    }

    #[test]
    fn a_drop_in_pulls_in_what_it_names() {
        let text = "[Unit]\n# Wants=no.service\nWants = a.service \\\n  b.timer\nAfter=c.service\nUpholds=d.service\n";
        assert_eq!(pulled_by("x.service", text), ["a.service", "b.timer", "d.service"]);
        let text = "[Unit]\nWants=\"a.service\" 'b.service'\nWants=\nOnSuccess=c.service\nOnFailure=d@%n.service\n\
                    Wants=%p-up@%i.service 100%%.service %H.service e-%j.service %N.timer\n";
        let wanted = [
            "a.service",
            "b.service",
            "c.service",
            "d@x-y@1.service.service",
            "x-y-up@1.service",
            "100%.service",
            "e-y.service",
            "x-y@1.timer",
        ];
        assert_eq!(pulled_by("x-y@1.service", text), wanted);
    }

    #[test]
    fn a_command_starts_what_systemctl_is_told() {
        let started =
            |command: &str| pulled_by("x.service", &format!("[Service]\nExecStartPost={command}\n"));
        assert_eq!(started("-/usr/bin/systemctl --no-block start a b.timer"), ["a.service", "b.timer"]);
        assert_eq!(started("/bin/sh -c 'systemctl restart a.b; true'"), ["a.b.service"]);
        assert_eq!(started("systemctl enable --now %p-late"), ["x-late.service"]);
        assert_eq!(started("systemctl stop a"), [] as [&str; 0]);
        assert_eq!(started("/usr/bin/start a"), [] as [&str; 0]);
    }

    #[test]
    fn the_last_value_counts_and_comments_do_not() {
        let text = "#ARGS=no\nARGS=\"--old\"\nARGS='--banirq=3'\nARGS2=x\n";
        assert_eq!(value(text, "ARGS"), Some((3, "--banirq=3".to_owned())));
        assert_eq!(value(text, "NONE"), None);
        let text = "A=1 \\\nARGS=8\n  ARGS = 7\n# ARGS=1 \\\nB=2\n";
        assert_eq!(value(text, "ARGS"), Some((3, "7".to_owned())));
        assert_eq!(value(text, "B"), Some((5, "2".to_owned())));
    }
}
