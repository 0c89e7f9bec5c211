//! `sysctl.d` for /proc/sys, `tmpfiles.d` for everything else, and a unit that applies both again: at boot the modules
//! whose files they name may be loaded late. It runs what is a command, too. Disks have rules of udev besides: they
//! come and go. Units get drop-ins.

use planish_model::KnobId;
use planish_udev::DiskKey;

use super::{ExportedFile, Head, units};
use crate::item::Item;

/// The lines for `sysctl.d`.
pub(super) fn sysctl(items: &[Item]) -> String {
    let lines = items.iter().filter_map(|item| Some(format!("{} = {}\n", item.sysctl_key()?, item.value)));
    lines.collect()
}

/// The lines for `tmpfiles.d`.
pub(super) fn tmpfiles(items: &[Item]) -> String {
    let others = items.iter().filter(|item| item.is_other_file());
    others.map(|item| format!("w {} - - - - {}\n", item.place, item.value)).collect()
}

/// The rules for disks.
fn rules(items: &[Item]) -> String {
    items.iter().filter_map(rule).collect()
}

/// The rule for the disks of an item; none of other items, and where a rule would read its value as something else.
fn rule(item: &Item) -> Option<String> {
    let (disks, file) = item.place.strip_prefix("/sys/block/")?.split_once('/')?;
    planish_udev::disk_rule(&DiskKey::Names(disks.to_owned()), file, &item.value)
}

/// Whether a knob stands in rules alone: of those that mean a disk the last one counts, and `tmpfiles.d` has no order.
fn is_ruled(knob: &KnobId, items: &[Item]) -> bool {
    let own = || items.iter().filter(|item| item.knob == *knob);
    own().any(|item| super::is_overlapped(item, items)) && own().all(|item| rule(item).is_some())
}

/// The items that need no order: without those of knobs for which rules give one.
pub(super) fn without_order(items: &[Item]) -> Vec<Item> {
    items.iter().filter(|item| !is_ruled(&item.knob, items)).cloned().collect()
}

pub(super) fn files(head: &Head<'_>, items: &[Item]) -> Vec<ExportedFile> {
    let file = |folder: &str| format!("/etc/{folder}/90-{}.conf", head.name);
    let (sysctl, tmpfiles) = (sysctl(items), tmpfiles(&without_order(items)));
    let mut files = Vec::new();
    let mut starts = String::new();
    if !sysctl.is_empty() {
        let path = file("sysctl.d");
        starts += &format!("ExecStart=/usr/lib/systemd/systemd-sysctl {path}\n");
        files.push(ExportedFile { path, text: head.comment() + &sysctl });
    }
    if !tmpfiles.is_empty() {
        let path = file("tmpfiles.d");
        starts += &format!("ExecStart=/usr/bin/systemd-tmpfiles --create {path}\n");
        files.push(ExportedFile { path, text: head.comment() + &tmpfiles });
    }
    let rules = rules(items);
    if !rules.is_empty() {
        let path = format!("/etc/udev/rules.d/90-{}.rules", head.name);
        files.push(ExportedFile { path, text: head.comment() + &rules });
    }
    for line in items.iter().filter_map(Item::command_line) {
        // systemd takes `$` for a variable of its own, and `%` for what it knows of the unit.
        let line = line.replace('\\', "\\\\").replace('$', "$$").replace('%', "%%").replace('"', "\\\"");
        starts += &format!("ExecStart=/bin/sh -c \"failed=0; {}; exit $$failed\"\n", line.trim_end());
    }
    if !starts.is_empty() {
        let text = format!(
            "{}[Unit]\nDescription=Settings of the profile {}\n\
             After=systemd-sysctl.service systemd-tmpfiles-setup.service systemd-modules-load.service\n\n\
             [Service]\nType=oneshot\nRemainAfterExit=yes\n{starts}\n[Install]\nWantedBy=multi-user.target\n",
            head.comment(),
            head.name
        );
        files
            .push(ExportedFile { path: format!("/etc/systemd/system/{}-settings.service", head.name), text });
    }
    files.extend(units::drop_ins(head, items).into_iter().map(units::DropIn::into_file));
    files
}
