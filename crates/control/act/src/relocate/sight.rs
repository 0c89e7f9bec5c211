//! The mappings of a process while its pages go, which may take hours: looked at again and again, so that what the
//! program maps, locks or gives a policy meanwhile is left alone as it would have been at the beginning.

use std::time::{Duration, Instant};

use planish_residency::Area;

use super::survey::kept;
use super::{Mapped, Pages, Process, Processes, RelocateError, Wish};

/// How old a look at the mappings may be.
const TRUSTED: Duration = Duration::from_secs(1);

/// Policies and locks are told by a walk of the page tables, which holds the program up: so many times what such a walk
/// took passes before the next one.
const WALK_SHARE: u32 = 20;

/// What was seen last, and when.
#[derive(Default)]
pub(super) struct Sight {
    areas: Vec<Area>,
    seen: Option<Instant>,
    mapped: Vec<Mapped>,
    walk_due: Option<Instant>,
}

impl Sight {
    /// Looks at the mappings where the last look is too old.
    ///
    /// # Errors
    /// The process has ended, or cannot be seen.
    pub fn look(&mut self, processes: &dyn Processes, process: &dyn Process) -> Result<(), RelocateError> {
        let now = processes.now();
        if self.seen.is_none_or(|seen| now.saturating_duration_since(seen) >= TRUSTED) {
            self.areas = process.areas()?;
            self.seen = Some(now);
        }
        Ok(())
    }

    /// The same, with policies and locks.
    ///
    /// # Errors
    /// The process has ended, or cannot be seen.
    pub fn look_closely(
        &mut self,
        processes: &dyn Processes,
        process: &dyn Process,
    ) -> Result<(), RelocateError> {
        let begun = processes.now();
        if self.walk_due.is_none_or(|due| begun >= due) {
            self.mapped = process.mapped()?;
            let ended = processes.now();
            let took = ended.saturating_duration_since(begun);
            self.walk_due = Some(ended + TRUSTED.max(took * WALK_SHARE));
        }
        self.look(processes, process)
    }

    /// Whether an address lies in a mapping of the kind and name that the record saw there. One that was unmapped and
    /// mapped again alike by the same program cannot be told from the old one: anonymous memory has no name of its own.
    pub fn is_recorded(&self, pages: &Pages, address: u64) -> bool {
        let before = pages.areas.partition_point(|(range, _)| range.end <= address);
        let recorded = pages.areas.get(before).filter(|(range, _)| range.contains(&address));
        let after = self.areas.partition_point(|area| area.range.end <= address);
        let now = self.areas.get(after).filter(|area| area.range.contains(&address));
        let is_private = |area: &&Area| area.inode == 0 && !area.is_shared();
        match (recorded, now.filter(is_private)) {
            (Some((_, name)), Some(area)) => unnamed(&area.name) == unnamed(name),
            _ => false,
        }
    }

    /// Why what lies at an address stays by the last close look; `None` for what may go.
    pub fn kept(&self, wish: &Wish, address: u64) -> Option<String> {
        let after = self.mapped.partition_point(|mapped| mapped.area.range.end <= address);
        match self.mapped.get(after).filter(|mapped| mapped.area.range.contains(&address)) {
            Some(mapped) => kept(mapped, wish),
            None => Some(MAPPED_ANEW.to_owned()),
        }
    }
}

/// Why a page stays that was not there when the process was looked at first.
pub(super) const MAPPED_ANEW: &str = "mapped anew since it was looked at";

/// The name of a mapping, without what a program calls its own anonymous memory: it may do so at any time.
fn unnamed(name: &str) -> &str {
    if name.starts_with("[anon:") { "" } else { name }
}
