//! The text of `perf script`.
//!
//! ```text
//! postgres 4711 100.123456: 250000 cpu-clock:u:
//!         55d5c0a1b2c3 ExecInterpExpr+0x123 (/usr/lib/postgresql/15/bin/postgres)
//!         55d5c0a1c111 ExecScan+0x31 (/usr/lib/postgresql/15/bin/postgres)
//!
//! postgres 4711 100.223456: 250000 cpu-clock:u: 55d5c0a1b2c3 ExecInterpExpr+0x123 (/usr/...)
//! ```
//! Branch stacks are read as `-F +brstacksym` prints them: `from+0x1/to+0x0/P/-/-/5`. Addresses alone cannot be
//! placed in this text; `perf.data` itself can.

use super::Read;
use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};

const FORMAT: &str = "perf script";

pub(super) fn looks_like(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| event_at(line).is_some())
}

/// The first word after the time: `4711 100.123456: 250000 cpu-clock:u: ...` gives `250000 cpu-clock:u: ...`.
fn event_at(line: &str) -> Option<&str> {
    let mut rest = line;
    while let Some(at) = rest.find(": ") {
        let word = rest[..at].rsplit(' ').next()?;
        let (seconds, fraction) = word.split_once('.').unwrap_or((word, ""));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_digits(seconds) && is_digits(fraction) {
            return Some(rest[at + 2..].trim_start());
        }
        rest = &rest[at + 2..];
    }
    None
}

/// The number in front of the time: thread, as `tid` or `pid/tid`. Names of threads may hold spaces and digits.
fn thread_of(line: &str) -> u64 {
    let time = line.find(": ").unwrap_or(line.len());
    let words = line[..time].split_ascii_whitespace().rev().skip(1);
    let number = |word: &str| word.rsplit('/').next().and_then(|tid| tid.parse().ok());
    words.filter(|word| !word.starts_with('[')).find_map(number).unwrap_or(0)
}

/// A sample on its way: a stack, or branches.
#[derive(Default)]
struct Sample {
    thread: u64,
    places: Vec<Place>,
    branches: Vec<(Place, Place)>,
}

impl Sample {}

/// What the samples had.
#[derive(Default)]
struct Tally {
    branched: u64,
    stacked: u64,
    is_deep: bool,
}

impl Tally {
    /// Hands over a sample that is complete.
    fn end(&mut self, sample: Option<Sample>, collector: &mut Collector<'_>) {
        let Some(sample) = sample else { return };
        if sample.branches.is_empty() {
            self.stacked += 1;
            self.is_deep |= sample.places.len() > 1;
            collector.stack(Some(sample.thread), &sample.places, 1);
            return;
        }
        self.branched += 1;
        for (from, to) in sample.branches {
            collector.branch(from, to, 1);
        }
    }
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<Read, ProfileError> {
    let mut event = None;
    let mut sample: Option<Sample> = None;
    let mut tally = Tally::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        // Flat samples are set to the right, so a space alone does not make a frame.
        let is_frame = line.starts_with('\t') || (line.starts_with(' ') && event_at(line).is_none());
        let is_frame = is_frame && !line.trim().is_empty();
        if !is_frame {
            tally.end(sample.take(), collector);
        }
        if line.trim().is_empty() || line.contains("PERF_RECORD_") {
            continue;
        }
        if let Some(open) = sample.as_mut() {
            frame(line, open, collector);
            continue;
        }
        let broken = || ProfileError::line(FORMAT, index + 1, "neither a sample nor a frame");
        let rest = event_at(line).ok_or_else(broken)?;
        let mut begun = Sample { thread: thread_of(line), ..Sample::default() };
        // `[period] event: [ip sym+off (dso)]`
        let (head, tail) = rest.split_once(": ").unwrap_or((rest.trim_end().trim_end_matches(':'), ""));
        event.get_or_insert_with(|| head.rsplit(' ').next().unwrap_or_default().to_owned());
        frame(tail, &mut begun, collector);
        sample = Some(begun);
    }
    tally.end(sample.take(), collector);
    let event = event.unwrap_or_default();
    match tally {
        Tally { branched: 1.., stacked: 1.., .. } => {
            let what = "a mix of samples with branch stacks and without".to_owned();
            Err(ProfileError::Unsupported { format: FORMAT, what })
        }
        Tally { branched: 1.., .. } => Ok(Read::new(event, Weights::Branches, Edges::Calls)),
        Tally { is_deep: true, .. } => Ok(Read::new(event, Weights::Samples, Edges::Stacks)),
        _ => Ok(Read::new(event, Weights::Samples, Edges::None)),
    }
}

/// `55d5c0a1b2c3 name+0x1f (dso)`, or branches.
fn frame(line: &str, sample: &mut Sample, collector: &mut Collector<'_>) {
    let line = line.trim();
    let is_branch = |word: &&str| word.matches('/').count() >= 5 && !word.starts_with(['/', '(']);
    if line.split_ascii_whitespace().next().is_some_and(|word| is_branch(&word)) {
        for word in line.split_ascii_whitespace().filter(is_branch) {
            let mut parts = word.split('/');
            let mut end = || {
                let (name, offset) = split_offset(parts.next().unwrap_or_default());
                if matches!(name, "" | "[unknown]") { Place::Unnamed } else { collector.named(name, offset) }
            };
            let pair = (end(), end());
            sample.branches.push(pair);
        }
        return;
    }
    let Some((address, rest)) = line.split_once(' ') else { return };
    let Ok(address) = u64::from_str_radix(address, 16) else { return };
    let (name, dso) = match rest.rfind(" (") {
        Some(at) => (&rest[..at], rest[at + 2..].trim_end_matches(')')),
        None => (rest, ""),
    };
    // The kernel and libraries may have names that the program has too.
    let is_elsewhere = dso.starts_with('[') || (!dso.is_empty() && !collector.is_ours(dso));
    let place = match split_offset(name.trim()) {
        _ if is_elsewhere => Place::Outside,
        ("" | "[unknown]", _) => Place::Unnamed,
        (name, offset) if dso.is_empty() => collector.named(name, offset),
        (name, offset) => collector.named_at(name, offset, address),
    };
    sample.places.push(place);
}

/// `name+0x1f`, or a name alone.
fn split_offset(text: &str) -> (&str, Option<u64>) {
    match text.rsplit_once("+0x").map(|(name, offset)| (name, u64::from_str_radix(offset, 16))) {
        Some((name, Ok(offset))) => (name, Some(offset)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: &str = "\
server 4711 100.1: 250000 cpu-clock:u: \n\t 55d5 scan+0x1f (/bin/server)\n\t 55d6 parse+0x2 (/bin/server)\n\t\
55d7 main+0x9 (/bin/server)\n\n\
my server  4711/4711 100.2: 250000 cpu-clock:u: \n\t 55d5 scan+0x20 (/bin/server)\n\t 55d6 parse+0x2 (/bin/server)\n\t\
55d7 main+0x9 (/bin/server)\n\n\
server 4711 100.3:   250000 cpu-clock:u: \n\tffff page_fault+0x2 ([kernel])\n\t 55d7 main+0x9 (/bin/server)\n";

    fn profile(text: &str) -> crate::CallProfile {
        assert!(looks_like(text), "{text}");
        let mut collector = Collector::new(None);
        let read = read(text, &mut collector).unwrap();
        collector.finish(read.event, read.weights, read.edges)
    }

    #[test]
    fn frames_that_stay_were_not_called_again() {
        let profile = profile(STACKS);
        assert_eq!(profile.event, "cpu-clock:u");
        assert_eq!((profile.total, profile.outside), (3, 1));
        let name = |index: u32| profile.functions[index as usize].name.as_str();
        let calls: Vec<_> =
            profile.edges.iter().map(|e| (name(e.caller), name(e.callee), e.weight)).collect();
        assert_eq!(calls, [("main", "parse", 1), ("parse", "scan", 2)]);
        assert_eq!(profile.functions[0].hits, [(0x1f, 1), (0x20, 1)]);
    }

    #[test]
    fn flat_samples_stand_on_one_line() {
        let profile =
            profile("server 1 5.5: 1 cycles: 55d5 operator new(unsigned long)+0x1f (/bin/server)\n");
        assert_eq!(profile.functions[0].name, "operator new(unsigned long)");
        assert_eq!(profile.edges_are, Edges::None);
    }

    #[test]
    fn branches_by_name_are_calls() {
        let text = "server 1 5.5: 1 cycles: \n parse+0x8/scan+0x0/P/-/-/5  scan+0x9/parse+0xd/P/-/-/2\n";
        let profile = profile(text);
        assert_eq!((profile.weights, profile.edges_are), (Weights::Branches, Edges::Calls));
        assert_eq!(profile.edges.len(), 1);
    }
}
