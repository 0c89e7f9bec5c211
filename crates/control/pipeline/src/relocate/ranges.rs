//! Parts of memory that were named, by address or by mapping: where they are in each process, and what is refused of
//! them before anything moves.

use std::ops::Range;

use planish_act::relocate::{Found, Named, Process, Processes, Wish, find};

use super::{MoveRequest, Mover, kib, refusal};
use crate::error::PipelineError;

/// Ranges that a line of the journal tells.
const TOLD_MAX: usize = 4;

/// Refuses addresses where more than one process is meant: each has its own.
pub(super) fn refuse_several(request: &MoveRequest, processes: usize) -> Result<(), PipelineError> {
    let named = request.ranges.iter().find(|named| matches!(named, Named::Addresses(_)));
    match named.filter(|_| processes > 1) {
        None => Ok(()),
        Some(named) => Err(refusal(
            format!("the addresses {named} are of one process, and {processes} are meant"),
            "name one of them, without --tree; a mapping by its name, as [heap], is looked for in each",
        )),
    }
}

/// Looks for the named parts in the mappings of a process.
///
/// # Errors
/// It has ended, or has nothing at some of the addresses.
pub(super) fn found(
    processes: &dyn Processes,
    process: &dyn Process,
    request: &MoveRequest,
    pid: u32,
) -> Result<Vec<Found>, PipelineError> {
    if request.ranges.is_empty() {
        return Ok(Vec::new());
    }
    let areas = process.areas()?;
    let of = |named: &Named| {
        find(named, &areas, processes.base_bytes()).map_err(|Range { start, end }| {
            let why = format!("process {pid} has nothing mapped at {start:x}-{end:x}, of {named}");
            refusal(why, cure(pid))
        })
    };
    request.ranges.iter().map(of).collect()
}

fn cure(pid: u32) -> String {
    format!("/proc/{pid}/maps has its mappings, and planish map {pid} what lies in them")
}

/// Refuses a part that no process has, and one that is nowhere memory of a process alone.
pub(super) fn refuse_absent(request: &MoveRequest, movers: &[Mover<'_>]) -> Result<(), PipelineError> {
    let Some(pid) = movers.first().map(|mover| mover.identity.pid) else { return Ok(()) };
    let whose = match movers.len() {
        1 => format!("process {pid}"),
        count => format!("none of {count} processes"),
    };
    for (index, named) in request.ranges.iter().enumerate() {
        let parts = || movers.iter().filter_map(move |mover| mover.found.get(index));
        if !parts().any(|part| part.is_there) {
            let has = if movers.len() == 1 { "has no mapping" } else { "has a mapping" };
            return Err(refusal(format!("{whose} {has} {named}"), cure(pid)));
        }
        if !parts().any(|part| part.is_own) {
            let at = parts().flat_map(|part| &part.ranges).next();
            let at = at.map_or(String::new(), |(range, name)| {
                format!(" ({:x}-{:x} {name})", range.start, range.end)
            });
            let why = format!(
                "{named}{at} is shared with other processes, of a file, of a pool or of the kernel: it is not moved"
            );
            return Err(refusal(
                why,
                "planish run --numa shm= places segments at the next start: docs/move.md",
            ));
        }
    }
    Ok(())
}

/// What to know of the parts: those that were no whole pages, and large pages that are longer.
pub(super) fn notes(request: &MoveRequest, movers: &[Mover<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for mover in movers {
        let widened = request.ranges.iter().zip(&mover.found);
        let widened = widened.filter_map(|(named, found)| Some((named, found.widened.as_ref()?)));
        notes.extend(widened.map(|(named, Range { start, end })| {
            format!("{named} is no whole pages: {start:x}-{end:x} was taken for it")
        }));
        if mover.survey.beyond > 0 {
            notes.push(format!(
                "process {}: {} beyond what was named go with it, of the same large pages",
                mover.identity.pid,
                kib(mover.survey.beyond)
            ));
        }
        if mover.survey.may_take_more {
            notes.push(format!(
                "process {}: root alone can tell whether large pages reach beyond what was named; what lies beyond \
                 goes with them, and may stay there at an undo",
                mover.identity.pid
            ));
        }
    }
    notes
}

/// `, of 7f0000000000-7f0000200000`: what of a process is meant, for the journal; nothing where all of it is.
pub(super) fn told(wish: &Wish) -> String {
    let Some(ranges) = &wish.ranges else { return String::new() };
    let told = ranges.iter().take(TOLD_MAX).map(|Range { start, end }| format!("{start:x}-{end:x}"));
    let told = told.collect::<Vec<_>>().join(", ");
    match ranges.len().saturating_sub(TOLD_MAX) {
        0 => format!(", of {told}"),
        more => format!(", of {told} and {more} more"),
    }
}
