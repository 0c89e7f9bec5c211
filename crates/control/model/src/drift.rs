//! Drift: what a host shows against what it should show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KnobId;

/// How one place compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftState {
    /// As wanted.
    Ok,
    /// Something else than wanted.
    Drift,
    /// As wanted now, and not after the next boot: a file overwrites it (`next_boot` tells), or nothing brings it
    /// back (`next_boot` is null). Of a setting of a unit: not after its next start (`persisted` tells), be that a
    /// boot or not.
    LostAtBoot,
    /// As wanted now, and not after the next boot: another program (a unit, `rc.local`, `cron`, `tuned`) sets it after
    /// the files of the host were read (`overwritten_by` tells which), so that no file of ours helps.
    OverwrittenAtBoot,
    /// Wanted at the next boot only, and persisted.
    PendingReboot,
    /// Cannot exist here: never a failure.
    NotHere,
    /// Here, not as wanted, and left so since nobody allowed it: `because` says what to type. No failure, either.
    NotAllowed,
    /// Could not be read; of a boot parameter that planish had the boot loader give: whether the next boot gives it
    /// cannot be told.
    Unknown,
}

/// A value that a boot sets, and who sets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootValue {
    /// The value.
    pub value: String,
    /// The file that says so; null for an argument of the kernel's command line, and for a program that writes it.
    pub file: Option<String>,
    /// The line of that file, from 1; null where the whole file says it.
    pub line: Option<u64>,
    /// Who says so, in words: file and line, or `kernel command line: nmi_watchdog=0`.
    pub source: String,
}

impl BootValue {
    /// A value from a source: `/etc/sysctl.d/90-x.conf:3` is a line of a file, a path alone is a file, and all else is
    /// in no file.
    pub fn new(value: impl Into<String>, source: impl Into<String>) -> Self {
        let (value, source) = (value.into(), source.into());
        let (path, line) = match source.rsplit_once(':') {
            Some((path, line)) => match line.parse::<u64>() {
                Ok(line) => (path, Some(line)),
                Err(_) => (source.as_str(), None),
            },
            None => (source.as_str(), None),
        };
        let file = path.starts_with('/').then(|| path.to_owned());
        Self { value, line: line.filter(|_| file.is_some()), file, source }
    }

    /// The same without the number of the line: what lines of one file have in common.
    #[must_use]
    pub fn without_line(&self) -> Self {
        let source = self.file.clone().unwrap_or_else(|| self.source.clone());
        Self { line: None, source, ..self.clone() }
    }
}

/// Another program that sets a place after the files of the host were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overwriter {
    /// Its name, a row of the catalogue: what to type so that it lets go is there.
    pub writer: String,
    /// The files of it that name the knob, where they can be read.
    pub files: Vec<String>,
}

/// One place of a knob: what runs, what is persisted, what the next boot will bring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobCheck {
    /// The knob.
    pub knob: KnobId,
    /// The concrete path.
    pub place: String,
    /// The value that runs, in normal form.
    pub running: Option<String>,
    /// The value that a file of the host wants at a boot, and which file and line: of several the one that is applied
    /// last.
    pub persisted: Option<BootValue>,
    /// The value after the next boot, where files tell, and who brings it: not the persisted one where a line behind it
    /// clears it, or where the boot loader's menu is older than its files.
    pub next_boot: Option<BootValue>,
    /// Files that want another value, or the same, and lose against `persisted`, in the order in which they are
    /// applied: to edit one of those changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<BootValue>,
    /// The value of the profile or plan, where one was named, applied or persisted by planish.
    pub wanted: Option<String>,
    /// How it compares.
    pub state: DriftState,
    /// Who will set it after the files of the host were read, where that is what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwritten_by: Option<Overwriter>,
    /// Why: who changed it, who will overwrite it, why it cannot be here.
    pub because: Option<String>,
}

impl KnobCheck {
    /// What places must share to be told as one: all but where they are, and the lines that one file has for each.
    #[must_use]
    pub fn without_place(&self) -> Self {
        let bare = |found: &Option<BootValue>| found.as_ref().map(BootValue::without_line);
        Self {
            place: String::new(),
            persisted: bare(&self.persisted),
            next_boot: bare(&self.next_boot),
            overridden: self.overridden.iter().map(BootValue::without_line).collect(),
            ..self.clone()
        }
    }

    /// Whether an entry had the boot loader give it, and nobody can tell whether that does.
    #[must_use]
    pub fn is_untold_at_boot(&self) -> bool {
        // What runs can be read of each kernel: its command line has it or has it not.
        self.state == DriftState::Unknown && self.place.starts_with("cmdline:") && self.running.is_some()
    }
}

/// All places that were compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// One row a concrete place.
    pub knobs: Vec<KnobCheck>,
}

impl Drift {
    /// Whether everything is as wanted, and neither a file nor another program will change that at the next boot. What
    /// planish was never asked to set is told and not judged; what merely nobody persisted was not wanted after a boot.
    /// What it had the boot loader give must be seen there.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.knobs.iter().any(|knob| match knob.state {
            DriftState::Drift => knob.wanted.is_some(),
            DriftState::LostAtBoot => knob.next_boot.is_some(),
            DriftState::OverwrittenAtBoot => true,
            DriftState::Unknown => knob.is_untold_at_boot(),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_line_of_a_file_or_neither() {
        for (source, file, line) in [
            ("/etc/sysctl.d/90-x.conf:3", Some("/etc/sysctl.d/90-x.conf"), Some(3)),
            (
                "/etc/systemd/system/a.service.d/zz.conf",
                Some("/etc/systemd/system/a.service.d/zz.conf"),
                None,
            ),
            ("/etc/a:b", Some("/etc/a:b"), None),
            ("kernel command line: default_hugepagesz=1G", None, None),
            ("kernel command line: a:3", None, None),
            ("tuned:3", None, None),
        ] {
            let told = BootValue::new("1", source);
            assert_eq!((told.file.as_deref(), told.line, told.source.as_str()), (file, line, source));
        }
        let (three, four) = (BootValue::new("1", "/etc/a:3"), BootValue::new("1", "/etc/a:4"));
        assert_ne!(three, four);
        assert_eq!(three.without_line(), four.without_line());
        assert_eq!(three.without_line().source, "/etc/a");
        let argument = BootValue::new("1", "kernel command line: a=1");
        assert_eq!(argument.without_line(), argument);
    }
}
