//! Profiles as other tools take them.
//!
//! What is written sets values and saves none: the files say so, since undoing is what those tools do not.

mod ansible;
mod files;
mod loader;
mod node_tuning;
mod script;
mod tuned;
mod units;

use std::collections::BTreeSet;

use planish_model::{Profile, mounts, place};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::loader::ArgumentsBy;
use crate::error::ExchangeError;
use crate::item::{Item, Kind};

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// A shell script.
    Script,
    /// `sysctl.d`, `tmpfiles.d`, and a unit that applies both.
    Sysctl,
    /// A profile of tuned.
    Tuned,
    /// Tasks of Ansible.
    Ansible,
    /// Arguments of the kernel command line.
    KernelArgs,
    /// An object of the Node Tuning operator.
    NodeTuning,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 6] =
        [Self::Script, Self::Sysctl, Self::Tuned, Self::Ansible, Self::KernelArgs, Self::NodeTuning];

    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Sysctl => "sysctl",
            Self::Tuned => "tuned",
            Self::Ansible => "ansible",
            Self::KernelArgs => "kernel-args",
            Self::NodeTuning => "node-tuning",
        }
    }
}

/// A file of another tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExportedFile {
    /// Where the tool looks for it.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// Why a format does not carry an item, and which one does; `None` where it carries it.
#[must_use]
pub fn beyond(format: ExportFormat, item: &Item) -> Option<&'static str> {
    let kind = item.kind();
    if let Kind::Share = kind {
        return (format != ExportFormat::Script).then_some(
            "resctrl takes several lines in one write, which only a script does: export script, or planish apply",
        );
    }
    if let Kind::Held = kind {
        let holds = [ExportFormat::Tuned, ExportFormat::NodeTuning].contains(&format);
        return (!holds || item.longest_wake_up().is_none()).then_some(
            "counts while a process holds a file open, which tuned does: export tuned or node-tuning, or planish apply",
        );
    }
    if let Kind::Mount = kind {
        if mounts::line(&item.place, &item.value).is_none() {
            return Some(
                "which mounts are meant only the machine's own table tells: name one by its path, or planish apply",
            );
        }
        let odd = |c: char| c.is_control() || "'\"\\$`{".contains(c);
        if place::mount_point(&item.place).is_some_and(|path| path.contains(odd)) {
            return Some("its path has a character that other tools would take for their own: planish apply");
        }
        let runs_none = [ExportFormat::Tuned, ExportFormat::NodeTuning, ExportFormat::KernelArgs];
        return runs_none.contains(&format).then_some(
            "an option of a mount that is there is set by a remount, which is a command: export script, sysctl or \
             ansible, or planish apply",
        );
    }
    if let Kind::Unit(unit) = kind {
        return units::beyond(format, &unit);
    }
    let Kind::Boot = kind else {
        return (format == ExportFormat::KernelArgs).then_some(
            "set in the running kernel, not on its command line: export script, sysctl, tuned, ansible or \
             node-tuning",
        );
    };
    if item.argument.is_none() {
        return Some("no argument says it, but that one is gone: take that out of the boot loader by hand");
    }
    match format {
        ExportFormat::Script => Some(
            "set on the kernel command line, which the script only tells in a comment: export kernel-args",
        ),
        ExportFormat::Sysctl => {
            Some("set on the kernel command line, and by none of these files: export kernel-args")
        }
        _ => None,
    }
}

/// Writes items for another tool, in order: of two that mean one place the later wins. Arguments of the kernel are
/// given by grubby.
///
/// # Errors
/// A name or value that the format cannot hold, and places that are meant twice where no order is kept.
pub fn export(
    format: ExportFormat,
    name: &str,
    summary: &str,
    items: &[Item],
) -> Result<Vec<ExportedFile>, ExchangeError> {
    export_by(format, &ArgumentsBy::default(), name, summary, items)
}

/// The same for hosts that are given arguments of the kernel in some way.
///
/// # Errors
/// As [`export`].
pub fn export_by(
    format: ExportFormat,
    by: &ArgumentsBy,
    name: &str,
    summary: &str,
    items: &[Item],
) -> Result<Vec<ExportedFile>, ExchangeError> {
    Profile::check_name(name)?;
    items.iter().try_for_each(Item::refuse_odd)?;
    match format {
        ExportFormat::Script | ExportFormat::KernelArgs => {}
        ExportFormat::Sysctl => refuse_overlap(&files::without_order(items))?,
        ExportFormat::Tuned | ExportFormat::Ansible | ExportFormat::NodeTuning => refuse_overlap(items)?,
    }
    if [ExportFormat::Tuned, ExportFormat::NodeTuning].contains(&format) {
        tuned::refuse_crossing(items)?;
    }
    // A summary is one line wherever it stands.
    let summary =
        summary.split_whitespace().collect::<Vec<_>>().join(" ").replace(['"', '\'', '$', '`', '\\'], "");
    let head = Head { name, summary: &summary };
    Ok(match format {
        ExportFormat::Script => script::files(&head, items),
        ExportFormat::Sysctl => files::files(&head, items),
        ExportFormat::Tuned => tuned::files(&head, items),
        ExportFormat::Ansible => ansible::files(&head, items, by),
        ExportFormat::KernelArgs => kernel_args(items),
        ExportFormat::NodeTuning => node_tuning::files(&head, items),
    })
}

/// What every file says of itself.
struct Head<'a> {
    name: &'a str,
    summary: &'a str,
}

impl Head<'_> {
    /// The first lines, as comments.
    fn comment(&self) -> String {
        format!(
            "# {}: {}\n# Written by planish. It sets values and saves none: `planish apply` can undo what it sets.\n",
            self.name, self.summary
        )
    }
}

/// Refuses items of one knob of which one means all places that another means too.
fn refuse_overlap(items: &[Item]) -> Result<(), ExchangeError> {
    let mut places = BTreeSet::new();
    for item in items {
        if is_overlapped(item, items) || !places.insert(&item.place) {
            return Err(ExchangeError::Overlap { knob: item.knob.clone() });
        }
    }
    Ok(())
}

/// Whether another item of its knob means all places that it means.
fn is_overlapped(item: &Item, items: &[Item]) -> bool {
    let wild = |other: &Item| other.place.contains(['*', '?']) && means_all(&other.place, &item.place);
    items.iter().any(|other| other.knob == item.knob && other != item && wild(other))
}

/// Whether a pattern means a place, or every place of a narrower pattern.
fn means_all(pattern: &str, place: &str) -> bool {
    let (mut wide, mut narrow) = (pattern.split('/'), place.split('/'));
    loop {
        match (wide.next(), narrow.next()) {
            (Some(wide), Some(narrow)) if place::includes(&wide.replace("[0-9]*", "*"), narrow) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// The arguments of all boot parameters, in one line.
fn arguments(items: &[Item]) -> String {
    let given: Vec<&str> = items.iter().filter_map(|item| item.argument.as_deref()).collect();
    given.join(" ")
}

fn kernel_args(items: &[Item]) -> Vec<ExportedFile> {
    let given = arguments(items);
    if given.is_empty() {
        return Vec::new();
    }
    vec![ExportedFile { path: "kernel-args".to_owned(), text: given + "\n" }]
}

#[cfg(test)]
mod tests;
