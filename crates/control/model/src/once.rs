//! A trial boot: arguments of the kernel in an entry that the boot loader takes once.

use crate::{Entry, EntryId, Persisted};

/// What of a boot loader is written for a trial boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceFormat {
    /// An entry in `custom.cfg`, which GRUB's menu reads.
    Menu,
    /// A file in `loader/entries`, as a whole.
    Entry,
    /// `next_entry` in GRUB's environment block.
    Block,
    /// A variable of the firmware, for systemd-boot.
    Firmware,
}

impl OnceFormat {
    const ALL: [Self; 4] = [Self::Menu, Self::Entry, Self::Block, Self::Firmware];

    /// The name that steps of the journal go by.
    #[must_use]
    pub fn knob(self) -> &'static str {
        match self {
            Self::Menu => "persist.once-menu",
            Self::Entry => "persist.once-entry",
            Self::Block => "persist.once-grubenv",
            Self::Firmware => "persist.once-firmware",
        }
    }

    /// The format of a step of the journal; `None` for any other step.
    #[must_use]
    pub fn of_knob(knob: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.knob() == knob)
    }

    /// Whether it is what makes the loader take the entry, and not the entry itself.
    #[must_use]
    pub fn is_trigger(self) -> bool {
        matches!(self, Self::Block | Self::Firmware)
    }
}

/// What a trial boot takes, found by looking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceBoot {
    /// The title of the default entry, of which a copy is booted.
    pub copied: String,
    /// What is written, in this order: the entry, and what names it.
    pub writes: Vec<OnceWrite>,
}

/// One write of a trial boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceWrite {
    /// What it is.
    pub format: OnceFormat,
    /// Where.
    pub path: String,
    /// The entry, or its name.
    pub text: String,
}

/// Why no trial boot can be made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceRefusal {
    /// What was seen.
    pub reason: String,
    /// What to do about it.
    pub cure: String,
}

/// The entry that a boot loader takes when nothing names one for once, as its own files have it now.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DefaultEntry {
    /// The title in its menu.
    pub title: String,
    /// The file that it is in.
    pub path: String,
    /// Its kernel, and what that is given.
    pub line: String,
}

impl DefaultEntry {
    /// Whether it gives the kernel the mark of a trial boot, which only the entry for once should.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        marked(&self.line).next().is_some()
    }
}

impl std::fmt::Display for DefaultEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { title, path, line } = self;
        write!(f, "`{title}` of {path} (`{line}`)")
    }
}

/// What was given to a trial boot, or by an entry that is undone, in a file that outlives it: who installs a kernel may
/// copy the command line that runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct CarriedOver {
    /// The file and its line.
    pub source: String,
    /// The name of the trial boot; empty where an entry gave them to every boot.
    pub name: String,
    /// The entry that gave them to every boot, and is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// What the kernel was given besides what it always is; empty where nobody knows it any more.
    pub arguments: String,
    /// What says in that file that the entry gave them, and was copied with them: an argument, or a comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl CarriedOver {
    /// What to take out of the line.
    #[must_use]
    pub fn copied(&self) -> String {
        if self.entry.is_some() {
            return self.arguments.clone();
        }
        format!("{} {}", self.arguments, marker(&self.name)).trim_start().to_owned()
    }

    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        let unknown =
            if self.arguments.is_empty() { ", and the arguments of its boot beside it," } else { "" };
        let (copied, source) = (self.copied(), &self.source);
        match self.tag.as_deref() {
            Some(comment) if comment.starts_with('#') => {
                let file = source.rsplit_once(':').map_or(source.as_str(), |(file, _)| file);
                format!("take the line `{comment}` out of {file}, and `{copied}` out of {source}")
            }
            Some(word) => format!("take `{copied}` and `{word}` out of {source}"),
            None => format!("take `{copied}`{unknown} out of {source}"),
        }
    }
}

impl std::fmt::Display for CarriedOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (source, copied) = (&self.source, self.copied());
        if let Some(entry) = self.entry {
            // Nobody copies into what a menu is made from.
            let is_source = Persisted::own_file(source).is_some() || source.starts_with("/etc/default/grub");
            let how = if is_source {
                "had changed the line before"
            } else {
                "has copied it, or had changed the line before"
            };
            return write!(
                f,
                "{source} gives `{copied}` to later boots: entry {entry} gave it, which is undone, and somebody {how}"
            );
        }
        write!(
            f,
            "{source} gives `{copied}` to later boots: a package has copied a trial boot's command line"
        )
    }
}

/// The argument that tells a trial boot from any other. The kernel takes a name with a dot for a parameter of a module
/// of that name, and passes it on to nobody (`kernel/params.c`, `init/main.c`).
const MARKER: &str = "planish.trial=";

/// The argument that marks the trial boot of this name.
#[must_use]
pub fn marker(name: &str) -> String {
    format!("{MARKER}{name}")
}

/// The names of the trial boots that a command line is marked with. A kernel that was installed in one may have taken
/// the marker over: the newest is not alone then.
pub fn marked(cmdline: &str) -> impl Iterator<Item = &str> {
    cmdline.split_whitespace().filter_map(|argument| argument.strip_prefix(MARKER))
}

impl Entry {
    /// The name of the trial boot that the entry is for; `None` for any other entry.
    #[must_use]
    pub fn trial_boot(&self) -> Option<&str> {
        let is_entry = |knob: &str| OnceFormat::of_knob(knob).is_some_and(|format| !format.is_trigger());
        let step = self.steps.iter().find(|step| is_entry(step.knob.as_str()))?;
        marked(&step.wanted).last()
    }
}

/// How far a trial boot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialBootState {
    /// The next boot will be it.
    Armed,
    /// Nothing names its entry any more, and no boot was made since: somebody took it out.
    Disarmed,
    /// This boot is it.
    Running,
    /// The machine was started anew without the loader looking, so that the next boot will be it.
    PassedOver,
    /// The loader took the entry, and this boot is another one: it did not come up, or nobody confirmed it.
    Over,
}

/// A trial boot that an open entry is for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct TrialBoot {
    /// The entry.
    pub entry: EntryId,
    /// How far it is.
    pub state: TrialBootState,
    /// What the kernel is given besides what it always is, without the marker.
    pub arguments: String,
}

impl TrialBoot {
    /// Whether something is to be done about it that was not meant.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        matches!(self.state, TrialBootState::Disarmed | TrialBootState::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_tells_every_trial_boot_that_it_is_marked_with() {
        let line = format!("root=/dev/vda1 ro {} nosmt {}", marker("a1"), marker("b2"));
        assert_eq!(marked(&line).collect::<Vec<_>>(), ["a1", "b2"]);
        assert_eq!(marked("quiet planish.trials=1").next(), None);
        for format in OnceFormat::ALL {
            assert_eq!(OnceFormat::of_knob(format.knob()), Some(format));
        }
        assert_eq!(OnceFormat::of_knob("persist.grub"), None);
    }
}
