//! A shell script: one line a value, and a loop where many places are meant.

use planish_model::quoted;

use super::{ExportedFile, Head, arguments, units};
use crate::item::{Item, Kind};

/// What the default group of resctrl has.
const SCHEMATA: &str = "/sys/fs/resctrl/schemata";

pub(super) fn files(head: &Head<'_>, items: &[Item]) -> Vec<ExportedFile> {
    let mut text = format!("#!/bin/sh\n{}set -u\nfailed=0\n\n", head.comment());
    for item in items.iter().filter(|item| !item.is_boot() && item.drop_in.is_none()) {
        text += &line(item);
    }
    text += &units::lines(head, items);
    let given = arguments(items);
    if !given.is_empty() {
        text += &format!("\n# Boot with these on the kernel command line:\n#   {given}\n");
    }
    text += "\nexit $failed\n";
    vec![ExportedFile { path: format!("{}.sh", head.name), text }]
}

/// One value. A place that is not there is passed over: a profile is for many machines.
fn line(item: &Item) -> String {
    if let Some(line) = item.command_line() {
        return line;
    }
    if let Kind::Share = item.kind() {
        // The kernel takes a resource a line, and all of them in one write.
        let lines: Vec<String> = item.value.split(' ').map(quoted).collect();
        return format!(
            "[ ! -e {SCHEMATA} ] || printf '%s\\n' {} > {SCHEMATA} || failed=1\n",
            lines.join(" ")
        );
    }
    let (place, value) = (&item.place, quoted(&item.value));
    if place.contains(['*', '?']) {
        format!(
            "for place in {place}; do [ ! -e \"$place\" ] || echo {value} > \"$place\" || failed=1; done\n"
        )
    } else {
        format!("[ ! -e {place} ] || echo {value} > {place} || failed=1\n")
    }
}
