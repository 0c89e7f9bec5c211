//! The text form of AutoFDO's sample profile.
//!
//! ```text
//! main:184019:0                       function: all samples, entries
//!  4: 534                             line offset: samples
//!  8.1: 500 scan:480 print:20         line offset.discriminator: samples, then calls
//!  10: inlined:1000                   an inlined callee, its body indented one further
//!   1: 1000
//! ```
//! What was inlined is code of the function that holds it. Lines say nothing of addresses, so there are no hits.
//! Source: llvm/include/llvm/ProfileData/SampleProfReader.h of LLVM.

use super::Read;
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "AutoFDO text";

pub(super) fn looks_like(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return false };
    let second = lines.next().unwrap_or_default();
    function(first).is_some()
        && !first.starts_with(' ')
        && (second.starts_with(' ') || function(second).is_some())
}

/// `name:total:entries`. A name may hold colons itself.
fn function(line: &str) -> Option<&str> {
    let mut parts = line.trim_end().rsplitn(3, ':');
    let (entries, total) = (parts.next()?, parts.next()?);
    (entries.parse::<u64>().is_ok() && total.parse::<u64>().is_ok()).then(|| parts.next()).flatten()
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<Read, ProfileError> {
    let mut current: Option<Place> = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let broken = |what: &str| ProfileError::line(FORMAT, index + 1, what);
        if !line.starts_with(' ') {
            let name = function(line).ok_or_else(|| broken("no `name:total:entries`"))?;
            // A profile with contexts writes `[main:3 @ scan]`; its last frame is the function.
            let name = name.trim_start_matches('[').trim_end_matches(']');
            current = Some(collector.named(name.rsplit(" @ ").next().unwrap_or(name), None));
            continue;
        }
        let place = current.ok_or_else(|| broken("a line before the first function"))?;
        let line = line.trim();
        if line.starts_with('!') {
            continue;
        }
        let (_, rest) = line.split_once(": ").ok_or_else(|| broken("no `line: samples`"))?;
        let mut words = rest.split_ascii_whitespace();
        let first = words.next().ok_or_else(|| broken("no count"))?;
        let Ok(count) = first.parse() else {
            // `inlined:1000`: the samples follow line by line.
            continue;
        };
        collector.hit(place, count);
        for word in words {
            let (callee, count) = word.rsplit_once(':').ok_or_else(|| broken("no `callee:count`"))?;
            let count = count.parse().map_err(|_| broken("no `callee:count`"))?;
            let callee = collector.named(callee, None);
            collector.call(place, callee, count);
        }
    }
    Ok(Read::new("samples", Weights::Samples, Edges::Calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_samples_belong_to_their_holder() {
        let text = "main:184019:0\n 4: 534\n 8.1: 500 scan:480 print:20\n 10: inlined:1000\n  1: 1000\n\
                    scan:5000:480\n 0: 5000\n !CFGChecksum: 1\n";
        assert!(looks_like(text));
        let mut collector = Collector::new(None);
        read(text, &mut collector).unwrap();
        let profile = collector.finish(String::new(), Weights::Samples, Edges::Calls);
        let weights: Vec<_> = profile.functions.iter().map(|f| (f.name.as_str(), f.weight)).collect();
        assert_eq!(weights, [("scan", 5000), ("main", 2034), ("print", 0)]);
        assert_eq!(profile.edges.iter().map(|edge| edge.weight).collect::<Vec<_>>(), [480, 20]);
    }
}
