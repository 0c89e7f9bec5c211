//! Folded stacks: frames from the root, separated by `;`, then a space and a count.

use super::Read;
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "folded stacks";

pub(super) fn looks_like(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.is_empty());
    lines.next().is_some_and(|line| line.contains(';') && split(line).is_some())
}

fn split(line: &str) -> Option<(&str, u64)> {
    let (stack, count) = line.rsplit_once(' ')?;
    Some((stack, count.parse().ok()?))
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<Read, ProfileError> {
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let broken = || ProfileError::line(FORMAT, index + 1, "no count at its end");
        let (stack, count) = split(line.trim_end()).ok_or_else(broken)?;
        let places: Vec<Place> = stack.rsplit(';').map(|frame| collector.named(bare(frame), None)).collect();
        collector.stack(None, &places, count);
    }
    Ok(Read::new("samples", Weights::Samples, Edges::Stacks))
}

/// A frame without the marks that stack collapsers append: `_[k]`, `_[j]`, `_[i]`, `_[w]`, `+0x1f`.
fn bare(frame: &str) -> &str {
    let frame = match frame.rfind("_[") {
        Some(at) if frame.len() == at + 4 && frame.ends_with(']') => &frame[..at],
        _ => frame,
    };
    frame.split_once("+0x").map_or(frame, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_count_from_the_leaf() {
        let mut collector = Collector::new(None);
        read("main;parse;scan 3\nmain;parse 2\n\nmain;scan_[k] 1\n", &mut collector).unwrap();
        let profile = collector.finish(String::new(), Weights::Samples, Edges::Stacks);
        let weights: Vec<_> = profile.functions.iter().map(|f| (f.name.as_str(), f.weight)).collect();
        assert_eq!(weights, [("scan", 4), ("parse", 2), ("main", 0)]);
        let calls: Vec<_> = profile.edges.iter().map(|e| (e.caller, e.callee, e.weight)).collect();
        assert_eq!(calls, [(1, 0, 3), (2, 0, 1), (2, 1, 5)]);
    }

    #[test]
    fn a_line_without_a_count_is_told() {
        let error = read("main;parse 1\nmain;parse\n", &mut Collector::new(None)).err().expect("an error");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
