//! `caller callee weight` a line: the input of lld's `--call-graph-ordering-file`, and what hfsort works on.

use super::Read;
use crate::collect::Collector;
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "call graph";

pub(super) fn looks_like(head: &str) -> bool {
    let mut lines = head.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    // The last line of a long head may be cut; the first ones are whole.
    let first: Vec<&str> = lines.by_ref().take(3).collect();
    !first.is_empty() && first.iter().all(|line| split(line).is_some() && !line.contains(';'))
}

fn split(line: &str) -> Option<(&str, &str, u64)> {
    let mut words = line.split_ascii_whitespace();
    let found = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(found)
}

/// The weight of a function is what is called of it: the format has no other.
pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<Read, ProfileError> {
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let broken = || ProfileError::line(FORMAT, index + 1, "not `caller callee weight`");
        let (caller, callee, weight) = split(line).ok_or_else(broken)?;
        let (caller, callee) = (collector.named(caller, None), collector.named(callee, None));
        collector.call(caller, callee, weight);
        collector.hit(callee, weight);
    }
    Ok(Read::new("calls", Weights::Cost, Edges::Calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_weights() {
        let mut collector = Collector::new(None);
        read("# comment\na b 10\na c 5\na b 1\n", &mut collector).unwrap();
        let profile = collector.finish(String::new(), Weights::Cost, Edges::Calls);
        assert_eq!(profile.functions[0].weight, 11);
        assert_eq!(profile.edges.len(), 2);
    }
}
