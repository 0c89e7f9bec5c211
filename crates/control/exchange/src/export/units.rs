//! Drop-ins of systemd: one file for each unit, with all that it gets.
//!
//! A drop-in named `override.conf` is what `systemctl edit` writes, and of two the later name counts: ours come behind
//! it, as those of an apply do, and before those of an apply. A unit that is not there loses nothing by a drop-in.

use planish_model::quoted;

use super::{ExportFormat, ExportedFile, Head};
use crate::item::{Item, Unit};

/// Where the drop-ins of units lie that an administrator writes.
const FOLDER: &str = "/etc/systemd/system";

/// All settings of one unit.
pub(super) struct DropIn {
    /// The unit, with its kind.
    pub(super) unit: String,
    profile: String,
    section: String,
    lines: String,
}

impl DropIn {
    pub(super) fn folder(&self) -> String {
        format!("{FOLDER}/{}.d", self.unit)
    }

    pub(super) fn path(&self) -> String {
        format!("{}/zz-export-{}.conf", self.folder(), self.profile)
    }

    /// The text of the file. It begins with its own path, as `systemctl cat` tells it: nothing else says which unit the
    /// settings are of.
    pub(super) fn text(&self) -> String {
        let Self { profile, section, lines, .. } = self;
        format!("# {}\n# Of the profile {profile}, by planish export.\n{section}\n{lines}", self.path())
    }

    pub(super) fn into_file(self) -> ExportedFile {
        ExportedFile { path: self.path(), text: self.text() }
    }

    /// Lines of a script: nothing happens where there is no systemd.
    fn script(&self) -> String {
        let (folder, path) = (self.folder(), self.path());
        let text: Vec<String> = self.text().lines().map(quoted).collect();
        format!(
            "[ ! -d {FOLDER} ] || mkdir -p {folder} || failed=1\n\
             [ ! -d {folder} ] || printf '%s\\n' {} > {path} || failed=1\n",
            text.join(" ")
        )
    }
}

/// The drop-ins that items come to, in their order. Of two items for one setting the later counts.
pub(super) fn drop_ins(head: &Head<'_>, items: &[Item]) -> Vec<DropIn> {
    let mut all: Vec<DropIn> = Vec::new();
    for Unit { name, section, lines } in items.iter().filter_map(Item::of_unit).filter(Unit::is_one) {
        match all.iter_mut().find(|one| one.unit == name) {
            Some(one) => one.lines += lines,
            None => all.push(DropIn {
                unit: name.to_owned(),
                profile: head.name.to_owned(),
                section: section.to_owned(),
                lines: lines.to_owned(),
            }),
        }
    }
    all
}

/// The lines of a script for all units.
pub(super) fn lines(head: &Head<'_>, items: &[Item]) -> String {
    let all = drop_ins(head, items);
    if all.is_empty() {
        return String::new();
    }
    let lines: String = all.iter().map(DropIn::script).collect();
    format!(
        "\n{}{lines}[ ! -d /run/systemd/system ] || systemctl daemon-reload || failed=1\n",
        from_when(&all)
    )
}

/// From when on the settings count, as comments. Parts of the system have their CPUs set as systemd reads its files: to
/// start one anew would end every session in it, or every guest.
fn from_when(all: &[DropIn]) -> String {
    let names = all.iter().map(|one| one.unit.as_str());
    let (services, parts): (Vec<&str>, Vec<&str>) = names.partition(|unit| unit.ends_with(".service"));
    let mut text = String::new();
    if !services.is_empty() {
        let services = services.join(" ");
        text +=
            &format!("# What a service gets counts from its next start on: systemctl restart {services}\n");
    }
    if !parts.is_empty() {
        let parts = parts.join(", ");
        text += &format!("# For all that runs in them, from the daemon-reload below on: {parts}\n");
    }
    text
}

/// Why a format does not carry a setting of a unit.
pub(super) fn beyond(format: ExportFormat, unit: &Unit<'_>) -> Option<&'static str> {
    match format {
        _ if !unit.is_one() => Some(
            "which units are meant only the machine's own folders tell: name one in `only`, or planish apply",
        ),
        _ if unit.name.contains(|c: char| !c.is_ascii_alphanumeric() && !"@:_.-".contains(c)) => Some(
            "the name of the unit has a character that other tools would take for their own: planish apply",
        ),
        ExportFormat::Script | ExportFormat::Sysctl | ExportFormat::Ansible => None,
        ExportFormat::Tuned | ExportFormat::KernelArgs | ExportFormat::NodeTuning => Some(
            "what systemd gives a unit stands in a drop-in, which this format has no words for: export script, \
             sysctl or ansible, or planish apply",
        ),
    }
}
