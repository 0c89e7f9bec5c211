//! BOLT's fdata: what `perf2bolt` aggregates and what instrumented programs write.
//!
//! ```text
//! 1 main 3f 1 scan 0 2 1204           branch: from main+3f to scan+0, 2 mispredicted, 1204 times
//! no_lbr cycles:u                     head of the form without branches
//! 1 scan 1c 77                        77 samples at scan+1c
//! ```
//! The first number says what the name is: 0 no symbol, 1 a symbol, 3 and 4 ranges of no symbol. Spaces in names
//! are written `\ `. Source: bolt/lib/Profile/DataReader.cpp of LLVM.

use super::Read;
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "fdata";

pub(super) fn looks_like(head: &str) -> bool {
    let first = head.lines().find(|line| *line != "boltedcollection").unwrap_or_default();
    if first.starts_with("no_lbr") {
        return true;
    }
    let words = words(first);
    words.len() == 8 && hex(&words[2]).is_some() && hex(&words[5]).is_some() && words[0].len() == 1
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<Read, ProfileError> {
    let mut flat: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        if line == "boltedcollection" {
            let what = "a profile of a program that BOLT has already laid out".to_owned();
            return Err(ProfileError::Unsupported { format: FORMAT, what });
        }
        if let Some(events) = line.strip_prefix("no_lbr") {
            flat = Some(events.trim().to_owned());
            continue;
        }
        let words = words(line);
        let broken = |what: &str| ProfileError::line(FORMAT, index + 1, what);
        match (flat.is_some(), words.as_slice()) {
            (_, []) => {}
            (true, [kind, name, offset, count]) => {
                let place = place(collector, kind, name, offset).ok_or_else(|| broken("no sample"))?;
                collector.hit(place, count.parse().map_err(|_| broken("no count"))?);
            }
            (false, [from, from_name, from_offset, to, to_name, to_offset, _, count]) => {
                let from =
                    place(collector, from, from_name, from_offset).ok_or_else(|| broken("no branch"))?;
                let to = place(collector, to, to_name, to_offset).ok_or_else(|| broken("no branch"))?;
                let count = count.parse().map_err(|_| broken("no count"))?;
                collector.branch(from, to, count);
            }
            // Records of memory loads (`4 name off ...`) say nothing of code.
            (_, [kind, ..]) if matches!(kind.as_str(), "4" | "5" | "6") => {}
            _ => return Err(broken("neither a branch nor a sample")),
        }
    }
    Ok(match flat {
        Some(event) => Read::new(event, Weights::Samples, Edges::None),
        None => Read::new("branches", Weights::Branches, Edges::Calls),
    })
}

fn place(collector: &mut Collector<'_>, kind: &str, name: &str, offset: &str) -> Option<Place> {
    let offset = hex(offset)?;
    match kind {
        "1" => Some(collector.named(name, Some(offset))),
        "0" | "3" => Some(Place::Outside),
        _ => None,
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Words apart by spaces, where `\ ` is a space inside of one and `\\` a backslash.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.extend(letters.next()),
            ' ' if !word.is_empty() => words.push(std::mem::take(&mut word)),
            ' ' => {}
            _ => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> crate::CallProfile {
        assert!(looks_like(text), "{text}");
        let mut collector = Collector::new(None);
        let read = read(text, &mut collector).unwrap();
        collector.finish(read.event, read.weights, read.edges)
    }

    #[test]
    fn a_branch_to_an_entry_is_a_call() {
        let profile =
            profile("1 main 3f 1 scan 0 2 1204\n1 scan 1c 1 scan 4 0 9000\n1 scan 40 1 main 44 0 1204\n");
        let weights: Vec<_> = profile.functions.iter().map(|f| (f.name.as_str(), f.weight)).collect();
        assert_eq!(weights, [("scan", 10204), ("main", 1204)]);
        assert_eq!(profile.edges.len(), 1);
        assert_eq!(profile.edges[0].weight, 1204);
        assert_eq!(profile.edges_are, Edges::Calls);
    }

    #[test]
    fn samples_without_branches_have_no_calls() {
        let profile = profile("no_lbr cycles:u:\n1 my\\ scan 1c 77\n1 main 4 1\n");
        assert_eq!(profile.functions[0].name, "my scan");
        assert_eq!(profile.functions[0].hits, [(0x1c, 77)]);
        assert_eq!(profile.edges_are, Edges::None);
    }
}
