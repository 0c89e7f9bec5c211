//! What the preload told of segments, as far as these are still mapped: a program may map and unmap for its whole life.

use std::collections::BTreeMap;
use std::ops::Range;

use planish_residency::Map;

use crate::wire::{Notice, SKIP_PLACED, SKIP_YET};

/// Segments that are told apart; the rest are counted.
const COUNT_MAX: usize = 4096;

/// Notices in the order in which they came, one a segment.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    list: Vec<Notice>,
    filling: Vec<Notice>,
    given_up: Vec<Notice>,
    /// Those of segments that another process has placed, or a former start.
    placed_before: Vec<Notice>,
    /// When the process of each PID began that has told something: the number may be another's later.
    begun: BTreeMap<u32, Option<u64>>,
    since: u64,
    total: u64,
}

impl Notices {
    /// Takes one more, of a process that began at this tick of the clock (`None`: it has ended). What lay at its
    /// addresses before was unmapped.
    pub fn add(&mut self, notice: Notice, begun: Option<u64>) {
        if self.begun.insert(notice.pid, begun).is_some_and(|known| known != begun) {
            self.forget(notice.pid);
            self.begun.insert(notice.pid, begun);
        }
        let range = range(&notice);
        let is_elsewhere = |known: &Notice| {
            let known = (known.pid, self::range(known));
            known.0 != notice.pid || known.1.end <= range.start || range.end <= known.1.start
        };
        self.all_lists().into_iter().for_each(|list| list.retain(is_elsewhere));
        // What another process of this start has placed is counted by what that one told.
        let is_counted = notice.skipped != SKIP_PLACED || self.list.is_empty();
        let list = match notice.skipped {
            SKIP_YET => &mut self.filling,
            skipped => {
                self.since += u64::from(is_counted);
                self.total += u64::from(is_counted);
                if skipped == SKIP_PLACED { &mut self.placed_before } else { &mut self.list }
            }
        };
        if list.len() < COUNT_MAX {
            list.push(notice);
        }
    }

    /// Those of segments that are being filled.
    #[must_use]
    pub fn filling(&self) -> &[Notice] {
        &self.filling
    }

    /// All of segments that the preload saw.
    pub(crate) fn seen(&self) -> impl Iterator<Item = &Notice> {
        self.list.iter().chain(&self.filling).chain(&self.given_up).chain(&self.placed_before)
    }

    /// Those of segments that had their policy before: a second mapping of what is in [`Notices::list`], or what a
    /// former start has left.
    pub(crate) fn placed_before(&self) -> &[Notice] {
        &self.placed_before
    }

    fn all_lists(&mut self) -> [&mut Vec<Notice>; 4] {
        [&mut self.list, &mut self.filling, &mut self.given_up, &mut self.placed_before]
    }

    /// Those of segments that were placed, and may be mapped still.
    #[must_use]
    pub fn list(&self) -> &[Notice] {
        &self.list
    }

    /// How many came since [`Notices::looked`].
    #[must_use]
    pub fn since(&self) -> u64 {
        self.since
    }

    /// How many came in all, of segments that were placed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Counts anew from here on.
    pub fn looked(&mut self) {
        self.since = 0;
    }

    /// Forgets the segments of these processes that no mapping is left of; those of other processes stay.
    pub fn keep_mapped(&mut self, map: &Map) {
        let is_mapped = |notice: &Notice| {
            let member = map.members.iter().find(|member| member.pid == notice.pid);
            member.is_none_or(|member| {
                let range = range(notice);
                member.areas.iter().any(|pages| range.contains(&pages.area.range.start))
            })
        };
        self.list.retain(is_mapped);
        self.placed_before.retain(is_mapped);
    }

    /// Whether the process that has this PID now has told something.
    #[must_use]
    pub fn has_told(&self, pid: u32) -> bool {
        self.begun.contains_key(&pid)
    }

    /// Forgets the processes that have ended, also where their numbers are others' now: `begun` gives the tick of the
    /// clock at which the process of a PID began.
    pub fn forget_ended(&mut self, begun: impl Fn(u32) -> Option<u64>) {
        let is_it = |(pid, known): &(&u32, &Option<u64>)| known.is_some() && begun(**pid) == **known;
        let gone: Vec<u32> = self.begun.iter().filter(|known| !is_it(known)).map(|(pid, _)| *pid).collect();
        gone.into_iter().for_each(|pid| self.forget(pid));
    }

    /// Takes a segment that is being filled for one that is waited for no more; its second notice may come all the
    /// same.
    pub fn give_up(&mut self, notice: &Notice) {
        self.filling.retain(|filling| filling != notice);
        if self.given_up.len() < COUNT_MAX {
            self.given_up.push(*notice);
        }
    }

    fn forget(&mut self, pid: u32) {
        self.begun.remove(&pid);
        self.all_lists().into_iter().for_each(|list| list.retain(|notice| notice.pid != pid));
    }
}

/// The addresses of a segment.
pub(crate) fn range(notice: &Notice) -> Range<u64> {
    notice.address..notice.address.saturating_add(notice.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(pid: u32, address: u64, bytes: u64) -> Notice {
        Notice { pid, address, bytes, ..Notice::default() }
    }

    #[test]
    fn a_segment_that_lies_where_another_lay_takes_its_place() {
        let mut notices = Notices::default();
        let first = [notice(7, 0x1000, 0x4000), notice(7, 0x9000, 0x1000), notice(8, 0x1000, 0x4000)];
        first.into_iter().for_each(|notice| notices.add(notice, Some(1)));
        notices.add(notice(7, 0x3000, 0x4000), Some(1));
        assert_eq!(notices.list(), [first[1], first[2], notice(7, 0x3000, 0x4000)]);
        assert_eq!(notices.since(), 4);
        notices.looked();
        notices.forget(7);
        assert_eq!((notices.list(), notices.since(), notices.total()), (&first[2..], 0, 4));
    }

    #[test]
    fn a_segment_is_being_filled_until_it_is_placed_or_its_process_gone() {
        let mut notices = Notices::default();
        let yet = |pid, address| Notice { skipped: SKIP_YET, ..notice(pid, address, 0x1000) };
        [yet(7, 0x1000), yet(7, 0x2000), yet(8, 0x1000)]
            .into_iter()
            .for_each(|notice| notices.add(notice, Some(1)));
        assert_eq!((notices.filling().len(), notices.list().len(), notices.since()), (3, 0, 0));
        notices.add(notice(7, 0x1000, 0x1000), Some(1));
        assert_eq!(notices.filling(), [yet(7, 0x2000), yet(8, 0x1000)]);
        assert_eq!((notices.list().len(), notices.since()), (1, 1));
        notices.forget(8);
        assert_eq!(notices.filling(), [yet(7, 0x2000)]);
    }

    #[test]
    fn who_is_waited_for_no_more_was_seen_all_the_same() {
        let mut notices = Notices::default();
        let yet = Notice { skipped: SKIP_YET, ..notice(7, 0x1000, 0x1000) };
        notices.add(yet, Some(1));
        notices.give_up(&yet);
        assert!(notices.filling().is_empty());
        assert_eq!(notices.seen().copied().collect::<Vec<Notice>>(), [yet]);
        notices.add(notice(7, 0x1000, 0x1000), Some(1));
        assert_eq!(notices.seen().count(), 1, "it was filled in the end");
    }

    #[test]
    fn what_was_placed_before_is_counted_where_nothing_else_was() {
        let placed = |pid, address| Notice { skipped: SKIP_PLACED, ..notice(pid, address, 0x1000) };
        let mut former = Notices::default();
        former.add(placed(7, 0x1000), Some(1));
        assert_eq!((former.since(), former.total(), former.list().len()), (1, 1, 0));
        assert_eq!(former.placed_before(), [placed(7, 0x1000)]);
        let mut own = Notices::default();
        own.add(notice(7, 0x1000, 0x1000), Some(1));
        own.add(placed(8, 0x5000), Some(1));
        assert_eq!((own.since(), own.seen().count()), (1, 2), "a second mapping of it");
        own.add(notice(8, 0x5000, 0x1000), Some(1));
        assert!(own.placed_before().is_empty(), "something else lies there now");
        own.forget(7);
        former.forget(7);
        assert_eq!((own.list().len(), former.seen().count()), (1, 0));
    }

    #[test]
    fn a_program_that_maps_for_long_is_counted_and_not_listed() {
        let mut notices = Notices::default();
        (0..5000u64).for_each(|number| notices.add(notice(7, number << 24, 1 << 24), Some(1)));
        assert_eq!((notices.list().len(), notices.since()), (COUNT_MAX, 5000));
    }

    #[test]
    fn who_has_the_number_of_a_process_that_has_ended_is_another() {
        let mut notices = Notices::default();
        for pid in [7, 8] {
            notices.add(notice(pid, 0x1000, 0x1000), Some(1));
        }
        // Its process has ended before anybody could ask when it began.
        notices.add(notice(9, 0x1000, 0x1000), None);
        notices.forget_ended(|pid| Some(if pid == 8 { 1 } else { 2 }));
        assert_eq!(notices.list(), [notice(8, 0x1000, 0x1000)]);
        assert!(notices.has_told(8) && !notices.has_told(7));
        notices.add(notice(8, 0x9000, 0x1000), Some(3));
        assert_eq!(notices.list(), [notice(8, 0x9000, 0x1000)], "the first 8 was another");
        notices.forget_ended(|_| None);
        assert!(notices.list().is_empty());
    }
}
