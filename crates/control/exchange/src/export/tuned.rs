//! A profile of tuned, by its plugins `sysctl`, `sysfs`, `cpu`, `net`, `scheduler` and `bootloader`.

use std::collections::BTreeMap;

use super::{ExportedFile, Head, arguments};
use crate::item::Item;

/// The text of `tuned.conf`.
pub(super) fn text(head: &Head<'_>, items: &[Item]) -> String {
    let mut text = format!("[main]\nsummary = {}\n", head.summary);
    let sysctls: String = super::files::sysctl(items);
    if !sysctls.is_empty() {
        text += &format!("\n[sysctl]\n{sysctls}");
    }
    let others = items.iter().filter(|item| item.is_other_file());
    let others: String = others.map(|item| format!("{} = {}\n", item.place, item.value)).collect();
    if !others.is_empty() {
        text += &format!("\n[sysfs]\n{others}");
    }
    // The last one counts, as in a script.
    if let Some(limit) = items.iter().rev().find_map(Item::longest_wake_up) {
        text += &format!("\n[cpu]\nforce_latency = {limit}\n");
    }
    text += &net(items);
    let threads = items.iter().filter_map(Item::of_threads).enumerate();
    let threads: String = threads.map(|(number, threads)| threads.group(number)).collect();
    if !threads.is_empty() {
        text += &format!("\n[scheduler]\n{threads}");
    }
    let given = arguments(items);
    if !given.is_empty() {
        text += &format!("\n[bootloader]\ncmdline_planish = {given}\n");
    }
    text
}

/// Sections of the plugin for network cards: one for all, and one for those of each name or pattern.
fn net(items: &[Item]) -> String {
    let mut cards: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for command in items.iter().filter_map(Item::of_card) {
        cards.entry(command.card).or_default().entry(command.key).or_default().push(command.words);
    }
    let mut text = String::new();
    for (index, (card, keys)) in cards.into_iter().enumerate() {
        text += &match card {
            "*" => "\n[net]\n".to_owned(),
            card => format!("\n[net_{index}]\ntype = net\ndevices = {card}\n"),
        };
        text.extend(keys.into_iter().map(|(key, words)| format!("{key} = {}\n", words.join(" "))));
    }
    text
}

pub(super) fn files(head: &Head<'_>, items: &[Item]) -> Vec<ExportedFile> {
    let path = format!("/etc/tuned/{}/tuned.conf", head.name);
    vec![ExportedFile { path, text: head.comment() + &text(head, items) }]
}
