//! Moves what a record names: batch by batch, paced, and ended between two batches by a signal, a node that fills up,
//! the end of the process, or a program that it executes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use planish_sys::policy::PageAt;

use super::sight::{MAPPED_ANEW, Sight};
use super::{
    Extent, Identity, Pages, Process, Processes, Reasons, RelocateError, Room, Wish, reason_of, shift, target,
};
use crate::in_full;

/// Bytes of a batch: a move of so many holds the locks of an address space for a moment, and no longer.
const BATCH_BYTES: u64 = 2 << 20;

/// Addresses of a batch at most from its first page to its last, since the page tables between them are read.
const SPAN_BYTES: u64 = 16 << 20;

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

impl End {
    pub(super) fn of(error: &RelocateError) -> Self {
        match error {
            RelocateError::Ended { .. } => Self::Ended,
            error => Self::Refused(in_full(error)),
        }
    }
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

/// The pages of a record in batches, each with the node where it lay: across runs, since every call of the kernel for a
/// move interrupts all CPUs, and memory that was dealt out by page lies in runs of one.
pub(super) fn batches(pages: &Pages) -> impl Iterator<Item = Vec<(u64, u32)>> + '_ {
    let base = pages.base_bytes;
    let most = usize::try_from(BATCH_BYTES / base).unwrap_or(1).max(1);
    let of_extent = move |extent: &Extent| {
        let (start, node) = (extent.start, extent.node);
        (0..extent.pages).map(move |page| (start + page * base, node))
    };
    let mut all = pages.extents.iter().flat_map(of_extent).peekable();
    std::iter::from_fn(move || {
        let first = all.next()?;
        let mut batch = vec![first];
        while batch.len() < most {
            let Some(next) = all.next_if(|(address, _)| address - first.0 < SPAN_BYTES) else { break };
            batch.push(next);
        }
        Some(batch)
    })
}

/// The addresses from the first page of a batch to the last one.
pub(super) fn span(batch: &[(u64, u32)], base_bytes: u64) -> Range<u64> {
    let ends = batch.first().zip(batch.last());
    ends.map_or(0..0, |((first, _), (last, _))| *first..last + base_bytes)
}

/// Who is moved, and how.
pub struct Load<'a> {
    /// The process.
    pub process: &'a dyn Process,
    /// Who it was when the record was made.
    pub identity: &'a Identity,
    /// The record, which is on disk.
    pub pages: &'a Pages,
}

/// Moves the pages of a record that is on disk.
pub fn carry(processes: &dyn Processes, load: &Load<'_>, wish: &Wish, pace: &Pace<'_>) -> Carried {
    let pages = load.pages;
    let mut carried = Carried { moved: 0, stayed: Reasons::new(), untried: pages.bytes(), end: End::Whole };
    let (begun, mut sight) = (Instant::now(), Sight::default());
    for batch in batches(pages) {
        let hindered = hindrance(processes, load, &batch, pace, &mut sight);
        let moved = hindered.and_then(|()| {
            let moved = batch_of(processes, load, wish, &batch, &sight, &mut carried);
            moved.map_err(|error| End::of(&error))
        });
        if let Err(end) = moved {
            carried.end = end;
            return carried;
        }
        carried.untried -= batch.len() as u64 * pages.base_bytes;
        pace.wait(processes, begun, pages.bytes() - carried.untried);
    }
    carried
}

/// What keeps a batch from being moved. Who it is, is looked at last.
fn hindrance(
    processes: &dyn Processes,
    load: &Load<'_>,
    batch: &[(u64, u32)],
    pace: &Pace<'_>,
    sight: &mut Sight,
) -> Result<(), End> {
    if (pace.stop)() {
        return Err(End::Stopped);
    }
    let pages = load.pages;
    sight.look_closely(processes, load.process).map_err(|error| End::of(&error))?;
    let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
    for (address, _) in batch {
        *wanted.entry(target(*address, &pages.targets, pages.chunk_bytes)).or_default() += pages.base_bytes;
    }
    for (node, bytes) in wanted {
        let room = processes.room(node);
        // A huge page at the edge of the batch goes with it, whole.
        if room.is_none_or(|room| room.spare() < bytes + pages.chunk_bytes) {
            return Err(End::Full { node, room });
        }
    }
    is_still(load.process, load.identity)
}

/// Whether a process is who it was, and executes what it did.
pub(super) fn is_still(process: &dyn Process, identity: &Identity) -> Result<(), End> {
    match process.identity().map_err(|error| End::of(&error))? {
        Some(now) if now.is_program(identity) => Ok(()),
        Some(now) if now.is_process(identity) => Err(End::Executed),
        _ => Err(End::Ended),
    }
}

/// Moves one batch: what lies where the record saw it, in a mapping that may still be moved.
fn batch_of(
    processes: &dyn Processes,
    load: &Load<'_>,
    wish: &Wish,
    batch: &[(u64, u32)],
    sight: &Sight,
    carried: &mut Carried,
) -> Result<(), RelocateError> {
    let (process, pages) = (load.process, load.pages);
    let addresses: Vec<u64> = batch.iter().map(|(address, _)| *address).collect();
    let runs = process.runs(span(batch, pages.base_bytes))?;
    let stay = |reason: &str, carried: &mut Carried| {
        *carried.stayed.entry(reason.to_owned()).or_default() += pages.base_bytes;
    };
    let (mut wanted, mut from) = (Vec::new(), Vec::new());
    for ((address, before), at) in batch.iter().zip(process.pages_at(&addresses)?) {
        let to = target(*address, &pages.targets, pages.chunk_bytes);
        if !sight.is_recorded(pages, *address) {
            stay(MAPPED_ANEW, carried);
        } else if let Some(reason) = sight.kept(wish, *address) {
            stay(&reason, carried);
        } else {
            match at {
                PageAt::Node(node) if node == to => carried.moved += pages.base_bytes,
                PageAt::Node(node) if node != *before => stay("moved by somebody else meanwhile", carried),
                PageAt::Node(_) => {
                    wanted.push((*address, to));
                    from.push(at);
                }
                _ => stay(reason_of(at), carried),
            }
        }
    }
    let shifted = shift(processes, process, &wanted, &from, &runs)?;
    for (((_, to), at), answer) in wanted.iter().zip(shifted.at).zip(shifted.answers) {
        if at == PageAt::Node(*to) {
            carried.moved += pages.base_bytes;
        } else {
            stay(if at == PageAt::Absent { reason_of(at) } else { reason_of(answer) }, carried);
        }
    }
    Ok(())
}
