//! Units of systemd, as their files tell: whether one is enabled, and where its program takes arguments from.

use std::collections::BTreeMap;
use std::path::Path;

use planish_formats::unit::DECIDING;
use planish_host::Host;
use planish_model::WriterArguments;

/// Folders of units, the first one wins (`systemd.unit(5)`).
pub(crate) const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The units of a host whose process 1 is systemd; none of another one, whatever files an image left behind.
pub(super) struct Units<'a> {
    host: &'a Host,
    /// Folders in which an enabled unit has a link.
    wants: Vec<String>,
    /// Units that a drop-in of another one pulls in, each with that drop-in.
    pulled: BTreeMap<String, String>,
}

impl<'a> Units<'a> {
    pub(super) fn of(host: &'a Host) -> Self {
        let folder = FOLDERS[0];
        let is_systemd = super::is_systemd(host);
        let names = if is_systemd { host.list(folder) } else { Vec::new() };
        let wants = names.into_iter().filter(|name| name.ends_with(".wants") || name.ends_with(".requires"));
        let wants = wants.map(|name| format!("{folder}/{name}")).collect();
        Self { host, wants, pulled: if is_systemd { pulled(host) } else { BTreeMap::new() } }
    }

    /// The link by which a unit is enabled, unless it is masked.
    pub(super) fn enabled(&self, unit: &str) -> Option<String> {
        let mut links = self.wants.iter().map(|folder| format!("{folder}/{unit}"));
        let link = links.find(|link| self.host.exists(link)).or_else(|| self.pulled.get(unit).cloned())?;
        let is_masked = FOLDERS[..2]
            .iter()
            .any(|folder| self.host.read_link(&format!("{folder}/{unit}")).as_deref() == Some("/dev/null"));
        (!is_masked).then_some(link)
    }

    /// Whether a unit is masked. No recording is to keep it because of us.
    fn is_masked(&self, unit: &str) -> bool {
        let link = |folder: &&str| std::fs::read_link(self.host.real_path(folder).ok()?.join(unit)).ok();
        FOLDERS[..2].iter().filter_map(link).any(|target| target == Path::new("/dev/null"))
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
        let mut waiting: Vec<String> = wanted.chain(self.pulled.keys().cloned()).collect();
        let read = |path: &str| super::unremembered(self.host, path);
        let mut told: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        while let Some(unit) = waiting.pop() {
            if told.contains_key(&unit) || self.is_masked(&unit) {
                continue;
            }
            let files = self.files(&unit, &read);
            waiting.extend(files.iter().flat_map(|(_, text)| pulled_by(text)));
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
        // A recording keeps those of the usual folders, without what is not asked for. Elsewhere anything may lie.
        let is_usual = ["/etc/default/", "/etc/sysconfig/"].iter().any(|folder| file.starts_with(folder));
        let text =
            if is_usual { self.host.read_lossy(&file).ok() } else { super::unremembered(self.host, &file) };
        let value = text.and_then(|text| value(&text, &variable)).unwrap_or_default();
        Some(WriterArguments { file, variable, value })
    }

    /// The file of a unit and its drop-ins, in the order in which they count: of several folders the first has the file
    /// and each drop-in, and drop-ins go by their names. An instance has those of its template, too.
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
        for folder in names.iter().flat_map(|name| FOLDERS.map(|folder| format!("{folder}/{name}.d"))) {
            for name in self.host.list(&folder).into_iter().filter(|name| name.ends_with(".conf")) {
                let path = format!("{folder}/{name}");
                drop_ins.entry(name).or_insert(path);
            }
        }
        let drop_ins = drop_ins.into_values().map(|path| (read(&path).unwrap_or_default(), path));
        std::iter::once(found).chain(drop_ins.map(|(text, path)| (path, text))).collect()
    }
}

/// Units that drop-ins pull in, each with the drop-in. Whether the unit that has it is started itself is not asked:
/// better one too many told. No recording is to keep the texts for it.
fn pulled(host: &Host) -> BTreeMap<String, String> {
    let mut pulled = BTreeMap::new();
    for folder in FOLDERS.iter().take(3) {
        for owner in host.list(folder).into_iter().filter(|name| name.ends_with(".d")) {
            let names = host.list(&format!("{folder}/{owner}")).into_iter();
            for path in
                names.filter(|name| name.ends_with(".conf")).map(|name| format!("{folder}/{owner}/{name}"))
            {
                let text = super::unremembered(host, &path).unwrap_or_default();
                for unit in pulled_by(&text) {
                    pulled.entry(unit).or_insert_with(|| path.clone());
                }
            }
        }
    }
    pulled
}

/// Kinds of units that start the service of their name, where they name no other one.
const STARTERS: [&str; 3] = [".timer", ".path", ".socket"];

/// The units that the text of a unit or a drop-in pulls in (`systemd.unit(5)`), and the one that it starts itself.
fn pulled_by(text: &str) -> Vec<String> {
    let whole = without_comments(text).replace("\\\n", " ");
    let lines = whole.lines().filter_map(|line| line.trim().split_once('='));
    let pulls = lines.filter(|(key, _)| {
        ["Wants", "Requires", "BindsTo", "Upholds", "Unit", "Service"].contains(&key.trim_end())
    });
    pulls.flat_map(|(_, units)| units.split_whitespace()).map(str::to_owned).collect()
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

/// What a file of variables sets one to; the last line counts.
fn value(text: &str, variable: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(variable)?.strip_prefix('='));
    values.next_back().map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
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
        assert_eq!(pulled_by(text), ["a.service", "b.timer", "d.service"]);
    }

    #[test]
    fn the_last_value_counts_and_comments_do_not() {
        let text = "#ARGS=no\nARGS=\"--old\"\nARGS='--banirq=3'\nARGS2=x\n";
        assert_eq!(value(text, "ARGS").as_deref(), Some("--banirq=3"));
        assert_eq!(value(text, "NONE"), None);
    }
}
