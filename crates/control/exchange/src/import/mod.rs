//! Foreign files: what each line sets, collected to a profile.

mod ansible;
mod ansible_tasks;
mod ansible_vars;
mod arguments;
mod cmdline;
mod collect;
mod devices;
mod folder;
mod grub;
mod judge;
mod node_tuning;
mod recognise;
mod saptune;
mod script;
mod shell;
mod sysctl;
mod tmpfiles;
mod tuned;
mod tuned_boot;
mod udev;
mod unit;
mod words;
mod write;
mod written;
mod yaml;

use planish_model::{Catalogue, KnobId, Profile};
use schemars::JsonSchema;
use serde::Serialize;

use collect::Collector;
pub(crate) use devices::may_meet;
pub use folder::{NamedFile, TOGETHER, import_files};
pub use judge::{Judge, Mistaken};
pub use planish_formats::tuned::{Asked, Files};
pub use recognise::{recognise, recognise_file};

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportFormat {
    /// Lines of `sysctl -w` and `echo > file`.
    Script,
    /// `sysctl.d(5)`.
    Sysctl,
    /// `tmpfiles.d(5)`.
    Tmpfiles,
    /// A profile of tuned: `tuned.conf`.
    Tuned,
    /// A note of saptune.
    Saptune,
    /// Arguments of the kernel command line.
    KernelArgs,
    /// Tasks of Ansible.
    Ansible,
    /// An object of the Node Tuning operator.
    NodeTuning,
    /// Rules of udev.
    Udev,
    /// A unit of systemd, or a drop-in of one.
    Unit,
}

impl ImportFormat {
    /// The word of the format, as it is typed and as JSON says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Sysctl => "sysctl",
            Self::Tmpfiles => "tmpfiles",
            Self::Tuned => "tuned",
            Self::Saptune => "saptune",
            Self::KernelArgs => "kernel-args",
            Self::Ansible => "ansible",
            Self::NodeTuning => "node-tuning",
            Self::Udev => "udev",
            Self::Unit => "unit",
        }
    }

    /// The format that files of a name or of a folder have, where that tells: `thp.sh`, `sysctl.d/90-x.conf`.
    #[must_use]
    pub fn of_name(path: &str) -> Option<Self> {
        let mut parts = path.rsplit('/');
        let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match (folder, name, ending.as_deref().unwrap_or_default()) {
            (_, "rc.local", _) | (_, _, "sh" | "bash" | "ksh") => Some(Self::Script),
            (_, _, "rules") => Some(Self::Udev),
            ("default", "grub", _) | ("grub.d", _, "cfg") => Some(Self::KernelArgs),
            (_, "tuned.conf", _) => Some(Self::Tuned),
            (_, "sysctl.conf", _) | ("sysctl.d", _, "conf") => Some(Self::Sysctl),
            ("tmpfiles.d", _, "conf") => Some(Self::Tmpfiles),
            _ if unit::unit_of(path).is_some() => Some(Self::Unit),
            _ => None,
        }
    }

    /// The format that a text looks like.
    #[must_use]
    pub fn guess(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if text.starts_with("#!") {
            return Self::Script;
        }
        if recognise::is_yaml(text) {
            let is_object = text.lines().any(|line| line.trim_end() == "kind: Tuned");
            return if is_object { Self::NodeTuning } else { Self::Ansible };
        }
        let plain: Vec<&str> = lines.by_ref().filter(|line| !line.starts_with(['#', ';'])).collect();
        if plain.iter().any(|line| grub::is_one(line)) {
            return Self::KernelArgs;
        }
        if plain.first().is_some_and(|line| unit::is_section(line)) {
            return Self::Unit;
        }
        // `[ -f /x ]` is a test of the shell.
        let section = |line: &&&str| {
            line.strip_prefix('[').is_some_and(|rest| !rest.starts_with(['[', ' ']) && rest.contains(']'))
        };
        if plain.iter().any(|line| section(&line)) {
            let note = |line: &&str| {
                let line = line.to_ascii_lowercase();
                ["[version", "[block", "[grub", "[limits", "[reminder", "[rpm"]
                    .iter()
                    .any(|s| line.starts_with(s))
            };
            return if plain.iter().any(note) { Self::Saptune } else { Self::Tuned };
        }
        if plain.iter().any(|line| udev::is_rule(line)) {
            return Self::Udev;
        }
        if plain.iter().any(|line| line.starts_with('w') && line.contains(" - - ")) {
            return Self::Tmpfiles;
        }
        if plain.iter().any(|line| script::is_command_of_one(line)) {
            return Self::Script;
        }
        let setting =
            |line: &&str| line.split_once('=').is_some_and(|(key, _)| key.trim().contains(['.', '/']));
        match plain.as_slice() {
            [line] if arguments::are(line) => Self::KernelArgs,
            [word] if arguments::is_one(word) => Self::KernelArgs,
            lines if lines.iter().any(setting) => Self::Sysctl,
            _ => Self::Script,
        }
    }
}

/// What became of one line of a foreign file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportedLine {
    /// Its number, from 1.
    pub line: usize,
    /// What it sets, or the line itself where that is not known.
    pub text: String,
    /// The knob, for a line that was accepted.
    pub knob: Option<KnobId>,
    /// The line that counts in its place, for one that says nothing wrong and does not count.
    pub overridden_by: Option<usize>,
    /// Why it was refused or does not count; for a line that was accepted, what there is to know of it.
    pub reason: Option<String>,
}

impl ImportedLine {
    /// Whether it became a wanted value.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.knob.is_some()
    }
}

/// A foreign file as a profile, line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The format that it was read as.
    pub format: ImportFormat,
    /// The wanted values of the lines that were accepted.
    pub profile: Profile,
    /// Every line that sets or does something, in order.
    pub lines: Vec<ImportedLine>,
}

/// The text of a foreign file: what is no UTF-8 is marked, and a byte order mark, which editors put in front, is no
/// part of its first line.
#[must_use]
pub fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

/// Reads a foreign file as the profile `name`, and nothing that it includes.
#[must_use]
pub fn import(catalogue: &Catalogue, name: &str, text: &str, format: ImportFormat) -> Imported {
    import_with(catalogue, name, text, format, None, None, None)
}

/// Reads a foreign file as the profile `name`. `files` gives those that a profile of tuned includes; each line of them
/// has the number of the line that includes it, and is told with its own. `path` is where the file lies, which tells
/// the unit that a drop-in is of. `judge` says what a plan would refuse of it.
#[must_use]
pub fn import_with(
    catalogue: &Catalogue,
    name: &str,
    text: &str,
    format: ImportFormat,
    files: Option<&Files<'_>>,
    path: Option<&str>,
    judge: Option<&dyn Judge>,
) -> Imported {
    let mut collector = Collector::new(catalogue, judge);
    match format {
        ImportFormat::Script => script::read(text, &mut collector),
        ImportFormat::Sysctl => sysctl::read(text, &mut collector),
        ImportFormat::Tmpfiles => tmpfiles::read(text, &mut collector),
        ImportFormat::Tuned => tuned::read(text, files, &mut collector),
        ImportFormat::Saptune => saptune::read(text, &mut collector),
        ImportFormat::KernelArgs => arguments::read(text, &mut collector),
        ImportFormat::Udev => udev::read(text, &mut collector),
        ImportFormat::Unit => unit::read_alone(text, path, &mut collector),
        ImportFormat::Ansible | ImportFormat::NodeTuning => match yaml::read(text) {
            Ok(documents) if format == ImportFormat::Ansible => ansible::read(&documents, &mut collector),
            Ok(documents) => node_tuning::read(&documents, files, &mut collector),
            Err(reason) => collector.refuse(1, "", reason),
        },
    }
    imported(collector, name, format)
}

/// What was collected, as a profile.
fn imported(collector: Collector<'_>, name: &str, format: ImportFormat) -> Imported {
    let said = collector.summary().map(str::to_owned);
    let (want, lines) = collector.finish();
    let mut summary = format!(
        "Imported: {} of {} settings.",
        lines.iter().filter(|line| line.is_accepted()).count(),
        lines.len()
    );
    if let Some(said) = said {
        summary = format!("{said} ({summary})");
    }
    let profile = Profile { name: name.to_owned(), summary, want, ..Profile::default() };
    Imported { format, profile, lines }
}

#[cfg(test)]
mod tests;
