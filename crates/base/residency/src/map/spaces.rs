//! Address spaces that several processes have (CLONE_VM without CLONE_THREAD, vfork(2) until the child executes a
//! program): what lies in one counts with the first process that has it.

use std::cmp::Ordering;

use planish_host::Host;
use planish_sys::process::compare_memory;
use rustix::process::Pid;

use super::{AreaPages, Member};
use crate::process::{ResidencyError, shown_as, status};
use crate::stat::Stat;

/// The address spaces that were met, in an order of the kernel's.
#[derive(Debug, Default)]
pub(crate) struct Spaces(Vec<(Pid, u32)>);

impl Spaces {
    /// The PID of the earlier process that has the address space of `pid`. Where the kernel or a filter does not tell,
    /// each process has one of its own.
    pub(crate) fn known(&mut self, host: &Host, pid: u32) -> Option<u32> {
        if !host.is_live() {
            return None;
        }
        // Of a process whose first thread has ended, another one has it.
        let raw = i32::try_from(shown_as(host, pid)).ok().and_then(Pid::from_raw)?;
        self.known_by(raw, pid, |other| compare_memory(other, raw).ok())
    }

    /// The same by `compare`, which tells how another process is to this one.
    fn known_by(&mut self, raw: Pid, pid: u32, compare: impl Fn(Pid) -> Option<Ordering>) -> Option<u32> {
        let (mut from, mut to) = (0, self.0.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            match compare(self.0[middle].0)? {
                Ordering::Equal => return Some(self.0[middle].1),
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
            }
        }
        self.0.insert(from, (raw, pid));
        None
    }
}

impl Member {
    /// A process that has the address space of `first`: with what it maps, and with nothing that counts there.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn beside(host: &Host, pid: u32, stat: Stat, first: &Self) -> Result<Self, ResidencyError> {
        let status = status(host, pid)?;
        let bare = |pages: &AreaPages| AreaPages {
            area: pages.area.clone(),
            parts: Vec::new(),
            own: Vec::new(),
            cells: Vec::new(),
            swapped_bytes: 0,
            ..*pages
        };
        let areas = first.areas.iter().map(bare).collect();
        let (threads, seen_by) = (Vec::new(), first.seen_by);
        Ok(Self { pid, stat, status, areas, threads, seen_by, memory_of: Some(first.pid) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_space_is_met_once() {
        // Address spaces by PID; the kernel's order of them is another one.
        let space_of = |pid: u32| [7, 3, 7, 9, 3, 1, 9, 7][pid as usize - 1];
        let raw = |pid: u32| Pid::from_raw(pid.cast_signed()).expect("it is more than 0");
        let mut spaces = Spaces::default();
        let known: Vec<Option<u32>> = (1..=8)
            .map(|pid| {
                let order = |other: Pid| space_of(other.as_raw_pid().unsigned_abs()).cmp(&space_of(pid));
                spaces.known_by(raw(pid), pid, |other| Some(order(other)))
            })
            .collect();
        assert_eq!(known, [None, None, Some(1), None, Some(2), None, Some(4), Some(1)]);
        assert_eq!(spaces.known_by(raw(9), 9, |_| None), None, "nobody tells");
    }
}
