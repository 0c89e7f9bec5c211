//! Threads pinned to CPUs, each by itself, and given back what they had.
//!
//! A thread that begins meanwhile inherits the CPUs of the one that began it. So threads are listed until nobody new
//! is found; and at an undo those that were born since, and have what we gave their parents, are given what all
//! threads had before, if they all had the same.

use std::collections::BTreeSet;

use planish_sys::CpuSet;

use super::{Process, Reasons, RelocateError, Thread, Threads};
use crate::in_full;

/// How often the list of threads is read again.
const ROUNDS: usize = 8;

/// What pinning came to, in threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Have the CPUs now.
    pub pinned: u64,
    /// Do not, by reason.
    pub left: Reasons,
}

/// What giving back came to, in threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadsBack {
    /// Have what they had.
    pub back: u64,
    /// Had it already.
    pub already: u64,
    /// Have what somebody else gave them since.
    pub theirs: u64,
    /// Ended.
    pub ended: u64,
    /// Were born since, of threads that had different CPUs: nobody can say what they would have had.
    pub unknown: u64,
    /// To be tried again, by reason.
    pub left: Reasons,
}

/// The record of threads that are about to be pinned.
///
/// # Errors
/// The process has ended.
pub fn to_pin(process: &dyn Process, cpus: &CpuSet) -> Result<Threads, RelocateError> {
    Ok(Threads { cpus: cpus.clone(), threads: process.threads()? })
}

/// What every thread had, where all had the same.
fn common(record: &Threads) -> Option<&CpuSet> {
    let first = &record.threads.first()?.cpus;
    record.threads.iter().all(|thread| thread.cpus == *first).then_some(first)
}

fn is_in(record: &Threads, thread: &Thread) -> bool {
    known(record, thread).is_some()
}

fn known<'a>(record: &'a Threads, thread: &Thread) -> Option<&'a Thread> {
    record.threads.iter().find(|one| one.tid == thread.tid && one.start_ticks == thread.start_ticks)
}

/// Pins the threads of a record that is on disk, and those that they begin meanwhile.
pub fn pin(process: &dyn Process, record: &Threads) -> Pinned {
    let mut pinned = Pinned::default();
    let mut tried: BTreeSet<(u32, u64)> = BTreeSet::new();
    let common = common(record);
    for _ in 0..ROUNDS {
        let threads = match process.threads() {
            Ok(threads) => threads,
            Err(RelocateError::Ended { .. }) => break,
            Err(error) => {
                *pinned.left.entry(in_full(&error)).or_default() += 1;
                break;
            }
        };
        let fresh: Vec<Thread> =
            threads.into_iter().filter(|thread| !tried.contains(&(thread.tid, thread.start_ticks))).collect();
        if fresh.is_empty() {
            break;
        }
        for thread in fresh {
            tried.insert((thread.tid, thread.start_ticks));
            // One that is not in the record goes back to what all had; so it must have that now.
            let is_ours = is_in(record, &thread) || common == Some(&thread.cpus);
            match pin_one(process, record, &thread, is_ours) {
                Ok(()) => pinned.pinned += 1,
                Err(reason) => *pinned.left.entry(reason).or_default() += 1,
            }
        }
    }
    pinned
}

fn pin_one(process: &dyn Process, record: &Threads, thread: &Thread, is_ours: bool) -> Result<(), String> {
    if thread.cpus == record.cpus {
        return Ok(());
    }
    if !is_ours {
        return Err("begun meanwhile, with CPUs of its own".to_owned());
    }
    process.pin(thread.tid, &record.cpus).map_err(|error| in_full(&error))?;
    match process.thread(thread.tid).map_err(|error| in_full(&error))? {
        Some(now) if now.cpus != record.cpus => {
            // Its cpuset took CPUs away: it is given back what it had, and not half of what was asked.
            let _ = process.pin(thread.tid, &thread.cpus);
            Err(format!("its cpuset leaves it CPU {} only", now.cpus))
        }
        _ => Ok(()),
    }
}

/// Gives threads what they had.
///
/// # Errors
/// The threads cannot be listed.
pub fn release(process: &dyn Process, record: &Threads, force: bool) -> Result<ThreadsBack, RelocateError> {
    let mut back = ThreadsBack::default();
    let common = common(record);
    let threads = process.threads()?;
    let is_alive = |one: &&Thread| {
        threads.iter().any(|thread| thread.tid == one.tid && thread.start_ticks == one.start_ticks)
    };
    back.ended = record.threads.iter().filter(|one| !is_alive(one)).count() as u64;
    for thread in &threads {
        let before = known(record, thread).map(|one| &one.cpus);
        let is_ours = thread.cpus == record.cpus;
        let to = match (before, common) {
            (Some(before), _) if thread.cpus == *before => {
                back.already += 1;
                continue;
            }
            (Some(before), _) if is_ours || force => before,
            (Some(_), _) => {
                back.theirs += 1;
                continue;
            }
            // Born since.
            (None, Some(common)) if is_ours && common != &record.cpus => common,
            (None, _) => {
                back.unknown += u64::from(is_ours);
                continue;
            }
        };
        match process.pin(thread.tid, to) {
            Ok(()) => back.back += 1,
            Err(RelocateError::Ended { .. }) => back.ended += 1,
            Err(error) => *back.left.entry(in_full(&error)).or_default() += 1,
        }
    }
    Ok(back)
}
