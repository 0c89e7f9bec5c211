//! Takes a move back: each page to where the record saw it, if it still lies where the move put it.
//!
//! | the page is now | then |
//! |---|---|
//! | where the move put it | it goes back |
//! | where the record saw it | nothing: it never went, or is back |
//! | on another node | somebody moved it since: kept and told, unless forced |
//! | in swap, or hidden for a moment | it keeps its place in the record: the entry stays open, unless it is given up |
//! | not there, or in a mapping of another kind or name | it is none of ours any more |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use planish_sys::Errno;
use planish_sys::pagemap::Filled;
use planish_sys::policy::PageAt;

use super::carry::{Load, Pace, batches, is_still, span};
use super::sight::Sight;
use super::{End, NO_MEMORY, Processes, Reasons, RelocateError, filled_at, reason_of, shift, target};

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

    /// Whether what is left was kept by something that passes: a node that is full, a signal, a refusal of the kernel.
    /// Not even force gives that up.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        self.left_bytes() > 0 && (self.end.is_some() || self.left.contains_key(NO_MEMORY))
    }

    fn leave(&mut self, reason: &str, bytes: u64) {
        *self.left.entry(reason.to_owned()).or_default() += bytes;
    }
}

/// Takes the pages of a record back; `force` takes those that somebody else moved, too.
pub fn take_back(processes: &dyn Processes, load: &Load<'_>, force: bool, pace: &Pace<'_>) -> Back {
    let pages = load.pages;
    let (mut back, mut sight) = (Back::default(), Sight::default());
    let (begun, mut done) = (Instant::now(), 0);
    for batch in batches(pages) {
        if let Err(end) = go_back(processes, load, force, &batch, pace, &mut sight, &mut back) {
            let rest = pages.bytes() - done;
            match end {
                // Its memory went with it.
                End::Ended | End::Executed => back.gone += rest,
                _ => back.leave("not tried", rest),
            }
            back.end = Some(end);
            return back;
        }
        done += batch.len() as u64 * pages.base_bytes;
        pace.wait(processes, begun, back.back);
    }
    back
}

/// Takes one batch back, unless something keeps all of it from going.
fn go_back(
    processes: &dyn Processes,
    load: &Load<'_>,
    force: bool,
    batch: &[(u64, u32)],
    pace: &Pace<'_>,
    sight: &mut Sight,
    back: &mut Back,
) -> Result<(), End> {
    if (pace.stop)() {
        return Err(End::Stopped);
    }
    sight.look(processes, load.process).map_err(|error| End::of(&error))?;
    let full = full(processes, batch, load.pages.base_bytes);
    is_still(load.process, load.identity)?;
    let before = back.clone();
    batch_back(processes, load, force, batch, (sight, &full), back).map_err(|error| {
        // Whatever was counted of it, it is not known to be done.
        *back = before;
        End::of(&error)
    })
}

/// The nodes that have no room for the pages of a batch that lay there. Those of other nodes go all the same.
fn full(processes: &dyn Processes, batch: &[(u64, u32)], base_bytes: u64) -> BTreeSet<u32> {
    let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, node) in batch {
        *wanted.entry(*node).or_default() += base_bytes;
    }
    let is_full = |(node, bytes): (u32, u64)| {
        // They lay there before: half of what is kept free for others is enough.
        let fits = processes.room(node).is_some_and(|room| room.free.saturating_sub(room.kept / 2) >= bytes);
        (!fits).then_some(node)
    };
    wanted.into_iter().filter_map(is_full).collect()
}

/// Takes one batch back.
fn batch_back(
    processes: &dyn Processes,
    load: &Load<'_>,
    force: bool,
    batch: &[(u64, u32)],
    (sight, full): (&Sight, &BTreeSet<u32>),
    back: &mut Back,
) -> Result<(), RelocateError> {
    let (process, pages) = (load.process, load.pages);
    let base = pages.base_bytes;
    let runs = process.runs(span(batch, base))?;
    let addresses: Vec<u64> = batch.iter().map(|(address, _)| *address).collect();
    let (mut ours, mut from) = (Vec::new(), Vec::new());
    for ((address, home), at) in batch.iter().zip(process.pages_at(&addresses)?) {
        if !sight.is_recorded(pages, *address) {
            back.gone += base;
            continue;
        }
        let is_ours = |node| node == target(*address, &pages.targets, pages.chunk_bytes) || force;
        match at {
            PageAt::Node(node) if node == *home => back.already += base,
            PageAt::Node(node) if is_ours(node) && full.contains(home) => back.leave(NO_MEMORY, base),
            PageAt::Node(node) if is_ours(node) => {
                ours.push((*address, *home));
                from.push(at);
            }
            PageAt::Node(_) => back.theirs += base,
            // Before Linux 6.7 the page tables do not tell a page of zeroes, which no process owns, from another.
            PageAt::Failed(Errno::FAULT) => back.gone += base,
            PageAt::Absent | PageAt::Failed(_) => match filled_at(&runs, *address) {
                None | Some(Filled::Zero) => back.gone += base,
                Some(Filled::Swapped) => back.leave("in swap", base),
                Some(_) => back.leave("hidden at this moment, by automatic balancing or a lock", base),
            },
        }
    }
    if ours.is_empty() {
        return Ok(());
    }
    let shifted = shift(processes, process, &ours, &from, &runs)?;
    for (((_, to), at), answer) in ours.iter().zip(shifted.at).zip(shifted.answers) {
        if at == PageAt::Node(*to) {
            back.back += base;
        } else {
            back.leave(if at == PageAt::Absent { reason_of(at) } else { reason_of(answer) }, base);
        }
    }
    Ok(())
}
