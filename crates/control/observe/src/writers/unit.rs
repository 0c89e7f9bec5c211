//! Units of systemd, as their files tell: whether one is enabled, and where its program takes arguments from.

use std::collections::BTreeSet;

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
}

impl<'a> Units<'a> {
    pub(super) fn of(host: &'a Host) -> Self {
        let folder = FOLDERS[0];
        let names = if super::is_systemd(host) { host.list(folder) } else { Vec::new() };
        let wants = names.into_iter().filter(|name| name.ends_with(".wants") || name.ends_with(".requires"));
        Self { host, wants: wants.map(|name| format!("{folder}/{name}")).collect() }
    }

    /// The link by which a unit is enabled, unless it is masked.
    pub(super) fn enabled(&self, unit: &str) -> Option<String> {
        let link =
            self.wants.iter().map(|folder| format!("{folder}/{unit}")).find(|link| self.host.exists(link))?;
        let is_masked = FOLDERS[..2]
            .iter()
            .any(|folder| self.host.read_link(&format!("{folder}/{unit}")).as_deref() == Some("/dev/null"));
        (!is_masked).then_some(link)
    }

    /// The services of a folder that are enabled. One that is masked there is a link to nothing.
    pub(super) fn enabled_in(&self, folder: &str) -> Vec<String> {
        let wanted: BTreeSet<String> = self.wants.iter().flat_map(|wants| self.host.list(wants)).collect();
        let mut names = if wanted.is_empty() { Vec::new() } else { self.host.list(folder) };
        names.retain(|name| name.ends_with(".service") && wanted.contains(name));
        names
    }

    /// Where the program of a unit takes its arguments from: the last file of variables, and the variable on its
    /// command line. `None` where it takes none.
    pub(super) fn arguments(&self, unit: &str) -> Option<WriterArguments> {
        let (file, variable) = source(&self.text(unit)?)?;
        // A recording keeps those of the usual folders, without what is not asked for. Elsewhere anything may lie.
        let is_usual = ["/etc/default/", "/etc/sysconfig/"].iter().any(|folder| file.starts_with(folder));
        let text = if is_usual { self.host.read(&file).ok() } else { super::unremembered(self.host, &file) };
        let value = text.and_then(|text| value(&text, &variable)).unwrap_or_default();
        Some(WriterArguments { file, variable, value })
    }

    /// The lines of a unit and of its drop-ins.
    fn text(&self, unit: &str) -> Option<String> {
        let mut text = FOLDERS.iter().find_map(|folder| self.host.read(&format!("{folder}/{unit}")).ok())?;
        for folder in FOLDERS {
            for name in
                self.host.list(&format!("{folder}/{unit}.d")).iter().filter(|name| name.ends_with(".conf"))
            {
                text.push('\n');
                text += &self.host.read(&format!("{folder}/{unit}.d/{name}")).unwrap_or_default();
            }
        }
        Some(text)
    }
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

    #[test]
    fn the_last_value_counts_and_comments_do_not() {
        let text = "#ARGS=no\nARGS=\"--old\"\nARGS='--banirq=3'\nARGS2=x\n";
        assert_eq!(value(text, "ARGS").as_deref(), Some("--banirq=3"));
        assert_eq!(value(text, "NONE"), None);
    }
}
