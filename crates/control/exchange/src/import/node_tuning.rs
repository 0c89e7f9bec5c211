//! An object of the Node Tuning operator: the profiles of tuned that it holds, of which each node gets one.
//!
//! Which one, labels of nodes and pods tell, and those are in no file. So one profile is read: the one that `recommend`
//! names, or the one that includes all others of the object.

use std::collections::BTreeSet;

use super::collect::Collector;
use super::tuned;
use super::yaml::Node;
use planish_formats::ini::tuned_entries;
use planish_formats::tuned::{Asked, Files};

/// A profile of tuned in an object.
pub(super) struct Profile<'a> {
    name: &'a str,
    data: &'a Node,
}

/// The profiles of tuned in a document.
pub(super) fn profiles(document: &Node) -> Vec<Profile<'_>> {
    let profiles = document.get("spec").and_then(|spec| spec.get("profile"));
    let items = profiles.map_or(&[][..], Node::items).iter();
    let profile = items.map(|item| {
        Some(Profile { name: item.text_of("name").unwrap_or_default(), data: item.get("data")? })
    });
    profile.flatten().collect()
}

/// The names of the profiles that nodes get by a document.
fn recommended(document: &Node) -> Vec<&str> {
    let recommend = document.get("spec").and_then(|spec| spec.get("recommend"));
    let items = recommend.map_or(&[][..], Node::items).iter();
    items.filter_map(|item| item.text_of("profile")).collect()
}

pub(super) fn read(documents: &[Node], files: Option<&Files<'_>>, collector: &mut Collector<'_>) {
    let all: Vec<Profile<'_>> = documents.iter().flat_map(profiles).collect();
    let named: Vec<&str> = documents.iter().flat_map(recommended).collect();
    let chosen: BTreeSet<&str> = all.iter().map(|one| one.name).filter(|name| named.contains(name)).collect();
    let chosen = if chosen.is_empty() { all.iter().map(|one| one.name).collect() } else { chosen };
    let included: BTreeSet<&str> =
        chosen.iter().flat_map(|name| included(&all, name)).filter(|name| chosen.contains(name)).collect();
    let left: Vec<&Profile<'_>> =
        all.iter().filter(|one| chosen.contains(one.name) && !included.contains(one.name)).collect();
    let [one] = left.as_slice() else {
        return refuse(&all, &chosen, collector);
    };
    let with = self::included(&all, one.name);
    for other in all.iter().filter(|other| other.name != one.name && !with.contains(other.name)) {
        let why = format!("`recommend` gives no node this profile, and {} does not include it", one.name);
        collector.refuse(other.data.line, &format!("profile {}", other.name), why);
    }
    let beside = |asked: Asked<'_>| {
        let own = match asked {
            Asked::Profile(name) => all.iter().find(|other| other.name == name),
            Asked::Variables(_) => None,
        };
        own.map(|other| other.data.numbered()).or_else(|| files.and_then(|files| files(asked)))
    };
    // Without others, and without a folder to look in, what is included is said to be missing.
    let follows = all.len() > 1 || files.is_some();
    tuned::read(&one.data.numbered(), follows.then_some(&beside as &Files<'_>), collector);
}

/// The profiles of the object that one includes, be it through others; not itself.
fn included<'a>(all: &[Profile<'a>], name: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        for data in all.iter().filter(|one| one.name == name).filter_map(|one| one.data.text()) {
            let entries = tuned_entries(data);
            let includes = entries.iter().filter(|entry| (entry.section, entry.key) == ("main", "include"));
            let names =
                includes.filter_map(|entry| entry.value).flat_map(|value| value.split([',', ';', ' ']));
            for other in names.map(|name| name.trim_start_matches('-')) {
                let own = all.iter().map(|one| one.name).find(|own| *own == other);
                if own.is_some_and(|own| found.insert(own)) {
                    open.push(other.to_owned());
                }
            }
        }
    }
    found.remove(name);
    found
}

/// Refuses each of several profiles of which a node gets one.
fn refuse(all: &[Profile<'_>], chosen: &BTreeSet<&str>, collector: &mut Collector<'_>) {
    let names: Vec<&str> = chosen.iter().copied().collect();
    for one in all {
        let why = format!(
            "each node gets one of {}, by labels that are in no file: import a file with one of them",
            names.join(" and ")
        );
        collector.refuse(one.data.line, &format!("profile {}", one.name), why);
    }
}
