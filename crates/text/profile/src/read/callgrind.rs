//! `callgrind.out` of valgrind: exact costs and exact calls.
//!
//! ```text
//! events: Ir
//! fn=(12) scan                        (12) names `scan` from here on
//! 15 400                              a line and its cost
//! cfn=(13) compare                    the next call is of compare
//! calls=50 0                          50 calls, then a line with their inclusive cost
//! 16 2000
//! ```
//! Source: "Callgrind Format Specification" in valgrind's manual.

use std::collections::HashMap;

use super::Read;
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "callgrind";

pub(super) fn looks_like(head: &str) -> bool {
    let has = |start: &str| head.lines().any(|line| line.starts_with(start));
    head.starts_with("# callgrind format") || (has("events:") && (has("fn=") || has("fl=")))
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<Read, ProfileError> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut objects: HashMap<&str, &str> = HashMap::new();
    // Functions of libraries may be called like ours: `ob=` says whose the next ones are.
    let (mut caller_is_ours, mut callee_is_ours) = (true, None);
    let mut event = "Ir";
    let mut positions = 1;
    let mut caller = Place::Outside;
    let mut callee = Place::Outside;
    let mut is_inclusive = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let broken = |what: &str| ProfileError::line(FORMAT, index + 1, what);
        if let Some(name) = line.strip_prefix("fn=") {
            let name = full_name(name, &mut names);
            caller = if caller_is_ours { collector.named(name, None) } else { Place::Outside };
        } else if let Some(name) = line.strip_prefix("cfn=") {
            let (name, is_ours) =
                (full_name(name, &mut names), callee_is_ours.take().unwrap_or(caller_is_ours));
            callee = if is_ours { collector.named(name, None) } else { Place::Outside };
        } else if let Some(object) = line.strip_prefix("ob=") {
            caller_is_ours = collector.is_ours(full_name(object, &mut objects));
        } else if let Some(object) = line.strip_prefix("cob=") {
            callee_is_ours = Some(collector.is_ours(full_name(object, &mut objects)));
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let count = calls.split_ascii_whitespace().next().unwrap_or_default();
            let count = count.parse().map_err(|_| broken("no number of calls"))?;
            collector.call(caller, callee, count);
            is_inclusive = true;
        } else if let Some(events) = line.strip_prefix("events:") {
            event = events.split_ascii_whitespace().next().ok_or_else(|| broken("no event"))?;
        } else if let Some(named) = line.strip_prefix("positions:") {
            positions = named.split_ascii_whitespace().count().max(1);
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line.split_ascii_whitespace().nth(positions);
            // Costs that are left out at the end of a line are zero.
            let cost = cost.map_or(Ok(0), |cost| cost.parse().map_err(|_| broken("no cost")))?;
            if !std::mem::take(&mut is_inclusive) {
                collector.hit(caller, cost);
            }
        }
    }
    Ok(Read::new(event, Weights::Cost, Edges::Calls))
}

/// `(12) scan` names it and `(12)` alone means it again. Recursion levels (`scan'2`) are the same code.
fn full_name<'a>(text: &'a str, names: &mut HashMap<&'a str, &'a str>) -> &'a str {
    let name = match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((id, "")) => names.get(id).copied().unwrap_or(text),
        Some((id, name)) => {
            let name = name.trim();
            names.insert(id, name);
            name
        }
        None => text,
    };
    match name.rsplit_once('\'') {
        Some((stem, level)) if !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cost_and_exact_calls() {
        let text = "# callgrind format\nevents: Ir\n\nfn=(1) main\n10 5\ncfn=(2) scan\ncalls=50 0\n11 2000\n\n\
                    fn=(2)\n15 2000\n+1 3\ncfn=(2)\ncalls=7 0\n* 100\nfn=(3) scan'2\n1 4\n";
        assert!(looks_like(text));
        let mut collector = Collector::new(None);
        let read = read(text, &mut collector).unwrap();
        let profile = collector.finish(read.event, read.weights, read.edges);
        let weights: Vec<_> = profile.functions.iter().map(|f| (f.name.as_str(), f.weight)).collect();
        assert_eq!(weights, [("scan", 2007), ("main", 5)]);
        assert_eq!(profile.edges.iter().map(|edge| edge.weight).collect::<Vec<_>>(), [7, 50]);
    }
}
