//! A profile of tuned, by its plugins `sysctl`, `sysfs`, `cpu`, `net`, `scheduler` and `bootloader`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use planish_model::place;
use planish_sorted::SortSmall as _;

use super::{ExportedFile, Head, arguments};
use crate::error::ExchangeError;
use crate::import::may_meet;
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

/// Sections of the plugin for network cards: one for those of each name or pattern, and one for all. Of sections that
/// mean a card the first takes it, and what the others say is not done there (`assign_free_devices` in
/// `tuned/plugins/base.py`): narrow ones come first, and say what wider ones do, too.
fn net(items: &[Item]) -> String {
    let mut cards: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for command in items.iter().filter_map(Item::of_card) {
        cards.entry(command.card).or_default().entry(command.key).or_default().push(command.words);
    }
    let wider = |card: &str| {
        let others = cards.keys().copied().filter(|other| *other != card && place::includes(other, card));
        others.collect::<Vec<_>>()
    };
    let mut order: Vec<&str> = cards.keys().copied().collect();
    order.sort_small_by_key(|card| Reverse(wider(card).len()));
    let mut text = String::new();
    for (index, card) in order.iter().enumerate() {
        text += &match *card {
            "*" => "\n[net]\n".to_owned(),
            card => format!("\n[net_{}]\ntype = net\ndevices = {card}\n", index + 1),
        };
        let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, words) in wider(card).into_iter().chain([*card]).flat_map(|card| &cards[card]) {
            keys.entry(key).or_default().extend(words.iter().map(String::as_str));
        }
        text.extend(keys.into_iter().map(|(key, words)| format!("{key} = {}\n", words.join(" "))));
    }
    text
}

/// Refuses cards of which some are meant by two patterns, neither of which means all of the other's: no order of
/// sections gives those what both say.
pub(super) fn refuse_crossing(items: &[Item]) -> Result<(), ExchangeError> {
    let cards = || items.iter().filter_map(|item| Some((&item.knob, item.of_card()?.card)));
    let crosses = |one: &str, other: &str| {
        !place::includes(one, other) && !place::includes(other, one) && may_meet(one, other)
    };
    let crossing = cards().find(|(_, one)| cards().any(|(_, other)| crosses(one, other)));
    crossing.map_or(Ok(()), |(knob, _)| Err(ExchangeError::Overlap { knob: knob.clone() }))
}

pub(super) fn files(head: &Head<'_>, items: &[Item]) -> Vec<ExportedFile> {
    let path = format!("/etc/tuned/{}/tuned.conf", head.name);
    vec![ExportedFile { path, text: head.comment() + &text(head, items) }]
}
