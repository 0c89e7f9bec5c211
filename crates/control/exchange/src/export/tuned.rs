//! A profile of tuned, by its plugins `sysctl`, `sysfs` and `bootloader`.

use super::{ExportedFile, Head, arguments};
use crate::item::Item;

/// The text of `tuned.conf`.
pub(super) fn text(head: &Head<'_>, items: &[Item]) -> String {
    let mut text = format!("[main]\nsummary = {}\n", head.summary);
    let sysctls: String = super::files::sysctl(items);
    if !sysctls.is_empty() {
        text += &format!("\n[sysctl]\n{sysctls}");
    }
    let others = items.iter().filter(|item| !item.is_boot() && item.sysctl_key().is_none());
    let others: String = others.map(|item| format!("{} = {}\n", item.place, item.value)).collect();
    if !others.is_empty() {
        text += &format!("\n[sysfs]\n{others}");
    }
    let given = arguments(items);
    if !given.is_empty() {
        text += &format!("\n[bootloader]\ncmdline_planish = {given}\n");
    }
    text
}

pub(super) fn files(head: &Head<'_>, items: &[Item]) -> Vec<ExportedFile> {
    let path = format!("/etc/tuned/{}/tuned.conf", head.name);
    vec![ExportedFile { path, text: head.comment() + &text(head, items) }]
}
