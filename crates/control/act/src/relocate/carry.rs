//! Moves what a record names: batch by batch, paced, and ended between two batches by a signal, a node that fills up,
//! the end of the process, or a program that it executes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use planish_sys::policy::PageAt;

use super::{Identity, Pages, Process, Processes, Reasons, RelocateError, Room, reason_of, shift, target};

/// Bytes of a batch: a move of so many holds the locks of an address space for a moment, and no longer.
const BATCH_BYTES: u64 = 2 << 20;

/// How fast, and until when.
pub struct Pace<'a> {
    /// Bytes a second at most; `None` as fast as it goes.
    pub bytes_per_second: Option<u64>,
    /// Whether to stop now.
    pub stop: &'a dyn Fn() -> bool,
}

impl Pace<'_> {
    /// Waits until so many bytes were due since the beginning.
    pub(super) fn wait(&self, processes: &dyn Processes, begun: Instant, bytes: u64) {
        let Some(rate) = self.bytes_per_second.filter(|rate| *rate > 0) else { return };
        let due = Duration::from_secs_f64(bytes as f64 / rate as f64);
        let early = due.saturating_sub(begun.elapsed());
        if early > Duration::from_millis(1) {
            // So that a signal is heard soon whatever the rate.
            let mut left = early;
            while !left.is_zero() && !(self.stop)() {
                let some = left.min(Duration::from_millis(100));
                processes.pause(some);
                left -= some;
            }
        }
    }
}

/// How a move ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every page was tried.
    Whole,
    /// It was asked to stop.
    Stopped,
    /// A node has no more room.
    Full {
        /// The node.
        node: u32,
        /// What it has.
        room: Option<Room>,
    },
    /// The process has ended.
    Ended,
    /// It executes another program now.
    Executed,
    /// The kernel refused.
    Refused(String),
}

/// What a move came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Bytes that lie where they were to go.
    pub moved: u64,
    /// Bytes that were tried and stayed, by reason.
    pub stayed: Reasons,
    /// Bytes that were not tried.
    pub untried: u64,
    /// How it ended.
    pub end: End,
}

/// Moves the pages of a record that is on disk.
pub fn carry(
    processes: &dyn Processes,
    process: &dyn Process,
    identity: &Identity,
    pages: &Pages,
    pace: &Pace<'_>,
) -> Carried {
    let mut carried = Carried { moved: 0, stayed: Reasons::new(), untried: pages.bytes(), end: End::Whole };
    let begun = Instant::now();
    let batch = (BATCH_BYTES / pages.base_bytes).max(1);
    for extent in &pages.extents {
        let mut first = 0;
        while first < extent.pages {
            let count = batch.min(extent.pages - first);
            let start = extent.start + first * pages.base_bytes;
            if let Some(end) = hindrance(processes, process, identity, start, count, pages, pace) {
                carried.end = end;
                return carried;
            }
            if let Err(error) = batch_of(processes, process, pages, start, count, &mut carried) {
                carried.end = match error {
                    RelocateError::Ended { .. } => End::Ended,
                    error => End::Refused(told(&error)),
                };
                return carried;
            }
            first += count;
            carried.untried -= count * pages.base_bytes;
            pace.wait(processes, begun, pages.bytes() - carried.untried);
        }
    }
    carried
}

/// What keeps a batch from being moved.
fn hindrance(
    processes: &dyn Processes,
    process: &dyn Process,
    identity: &Identity,
    start: u64,
    count: u64,
    pages: &Pages,
    pace: &Pace<'_>,
) -> Option<End> {
    if (pace.stop)() {
        return Some(End::Stopped);
    }
    match process.identity() {
        Some(now) if now.is_program(identity) => {}
        Some(now) if now.is_process(identity) => return Some(End::Executed),
        _ => return Some(End::Ended),
    }
    let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
    for page in 0..count {
        let address = start + page * pages.base_bytes;
        *wanted.entry(target(address, &pages.targets, pages.chunk_bytes)).or_default() += pages.base_bytes;
    }
    wanted.into_iter().find_map(|(node, bytes)| {
        let room = processes.room(node);
        // A huge page at the edge of the batch goes with it, whole.
        let fits = room.is_some_and(|room| room.spare() >= bytes + pages.chunk_bytes);
        (!fits).then_some(End::Full { node, room })
    })
}

/// Moves one batch.
fn batch_of(
    processes: &dyn Processes,
    process: &dyn Process,
    pages: &Pages,
    start: u64,
    count: u64,
    carried: &mut Carried,
) -> Result<(), RelocateError> {
    let runs = process.runs(start..start + count * pages.base_bytes)?;
    let wanted: Vec<(u64, u32)> = (0..count)
        .map(|page| start + page * pages.base_bytes)
        .map(|address| (address, target(address, &pages.targets, pages.chunk_bytes)))
        .collect();
    let shifted = shift(processes, process, &wanted, &runs)?;
    for (((_, to), at), answer) in wanted.iter().zip(shifted.at).zip(shifted.answers) {
        if at == PageAt::Node(*to) {
            carried.moved += pages.base_bytes;
        } else {
            let reason = if at == PageAt::Absent { reason_of(at) } else { reason_of(answer) };
            *carried.stayed.entry(reason.to_owned()).or_default() += pages.base_bytes;
        }
    }
    Ok(())
}

/// An error with its causes.
pub(super) fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        told += &format!(": {cause}");
        source = cause.source();
    }
    told
}
