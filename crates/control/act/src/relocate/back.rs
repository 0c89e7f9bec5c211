//! Takes a move back: each page to where the record saw it, if it still lies where the move put it.
//!
//! | the page is now | then |
//! |---|---|
//! | where the move put it | it goes back |
//! | where the record saw it | nothing: it never went, or is back |
//! | on another node | somebody moved it since: kept and told, unless forced |
//! | in swap, or hidden for a moment | it keeps its place in the record: the entry stays open, unless it is given up |
//! | not there, or in a mapping of another kind or name | it is none of ours any more |

use std::time::Instant;

use planish_residency::Area;
use planish_sys::pagemap::Filled;
use planish_sys::policy::PageAt;

use super::carry::{Pace, told};
use super::{
    End, Extent, Identity, Mapped, Pages, Process, Processes, Reasons, RelocateError, filled_at, reason_of,
    shift, target,
};

/// Bytes of a batch, as of a move.
const BATCH_BYTES: u64 = 2 << 20;

/// What taking pages back came to, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Back {
    /// Went back.
    pub back: u64,
    /// Were there already.
    pub already: u64,
    /// Lie where somebody else moved them.
    pub theirs: u64,
    /// Could not be seen, or not be moved, by reason: to be tried again.
    pub left: Reasons,
    /// Are no longer there, or in another mapping: nothing to do.
    pub gone: u64,
    /// Why it ended early.
    pub end: Option<End>,
}

impl Back {
    /// Bytes that an undo must come back for.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.left.values().sum()
    }

    fn leave(&mut self, reason: &str, bytes: u64) {
        *self.left.entry(reason.to_owned()).or_default() += bytes;
    }
}

/// Takes the pages of a record back; `force` takes those that somebody else moved, too.
///
/// # Errors
/// The mappings of the process cannot be told.
pub fn take_back(
    processes: &dyn Processes,
    process: &dyn Process,
    identity: &Identity,
    pages: &Pages,
    force: bool,
    pace: &Pace<'_>,
) -> Result<Back, RelocateError> {
    let mut back = Back::default();
    let mapped = process.mapped()?;
    let begun = Instant::now();
    let batch = (BATCH_BYTES / pages.base_bytes).max(1);
    let mut done = 0;
    for extent in &pages.extents {
        let mut first = 0;
        while first < extent.pages {
            let count = batch.min(extent.pages - first);
            let some =
                Extent { start: extent.start + first * pages.base_bytes, pages: count, node: extent.node };
            let end = stopped(processes, process, identity, &some, pages.base_bytes, pace);
            let moved = end.map_or_else(
                || {
                    let outcome = batch_back(processes, process, pages, &mapped, &some, force, &mut back);
                    outcome.err().map(|error| End::Refused(told(&error)))
                },
                Some,
            );
            if let Some(end) = moved {
                let rest = pages.bytes() - done;
                match end {
                    // Its memory went with it.
                    End::Ended | End::Executed => back.gone += rest,
                    _ => back.leave("not tried", rest),
                }
                back.end = Some(end);
                return Ok(back);
            }
            first += count;
            done += count * pages.base_bytes;
            pace.wait(processes, begun, done);
        }
    }
    Ok(back)
}

/// What keeps a batch from going back.
fn stopped(
    processes: &dyn Processes,
    process: &dyn Process,
    identity: &Identity,
    extent: &Extent,
    base_bytes: u64,
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
    let room = processes.room(extent.node);
    // They lay there before: half of what is kept free for others is enough.
    let fits = room.is_some_and(|room| room.free.saturating_sub(room.kept / 2) >= extent.pages * base_bytes);
    (!fits).then_some(End::Full { node: extent.node, room })
}

/// Takes one batch back.
fn batch_back(
    processes: &dyn Processes,
    process: &dyn Process,
    pages: &Pages,
    mapped: &[Mapped],
    extent: &Extent,
    force: bool,
    back: &mut Back,
) -> Result<(), RelocateError> {
    let base = pages.base_bytes;
    let range = extent.range(base);
    let runs = process.runs(range.clone())?;
    let addresses: Vec<u64> = (0..extent.pages).map(|page| range.start + page * base).collect();
    let at = process.pages_at(&addresses)?;
    let mut ours = Vec::new();
    for (address, at) in addresses.iter().zip(at) {
        if !is_same_area(pages, mapped, *address) {
            back.gone += base;
            continue;
        }
        let filled = filled_at(&runs, *address);
        match at {
            PageAt::Node(node) if node == extent.node => back.already += base,
            PageAt::Node(node) if node == target(*address, &pages.targets, pages.chunk_bytes) || force => {
                ours.push((*address, extent.node));
            }
            PageAt::Node(_) => back.theirs += base,
            PageAt::Absent | PageAt::Failed(_) => match filled {
                None | Some(Filled::Zero) => back.gone += base,
                Some(Filled::Swapped) => back.leave("in swap", base),
                Some(_) => back.leave("hidden at this moment, by automatic balancing or a lock", base),
            },
        }
    }
    if ours.is_empty() {
        return Ok(());
    }
    let shifted = shift(processes, process, &ours, &runs)?;
    for (((_, to), at), answer) in ours.iter().zip(shifted.at).zip(shifted.answers) {
        if at == PageAt::Node(*to) {
            back.back += base;
        } else {
            back.leave(if at == PageAt::Absent { reason_of(at) } else { reason_of(answer) }, base);
        }
    }
    Ok(())
}

/// Whether an address lies in a mapping of the kind and name that the record saw there. One that was unmapped and
/// mapped again alike by the same program cannot be told from the old one: anonymous memory has no name of its own.
fn is_same_area(pages: &Pages, mapped: &[Mapped], address: u64) -> bool {
    let before = pages.areas.partition_point(|(range, _)| range.end <= address);
    let recorded = pages.areas.get(before).filter(|(range, _)| range.contains(&address));
    let after = mapped.partition_point(|mapped| mapped.area.range.end <= address);
    let now = mapped.get(after).map(|mapped| &mapped.area).filter(|area| area.range.contains(&address));
    let is_private = |area: &&Area| area.inode == 0 && !area.is_shared();
    match (recorded, now.filter(is_private)) {
        (Some((_, name)), Some(area)) => area.name == *name,
        _ => false,
    }
}
