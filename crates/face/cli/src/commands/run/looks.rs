//! When the memory of a program is looked at: soon after its start, a little later, and then no more. A look walks all
//! of it, so that no number of segments may bring more of them, nor put the first one off.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Once a segment is placed, others often follow at once.
const SETTLE: Duration = Duration::from_millis(300);
/// How long a program has to map its first segment, and to place those that follow it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks again after the first: workers are often started when a segment stands, and heaps grow.
const LATER: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(30)];

/// How long a look waits for segments that are being filled: the whole memory of a large machine takes minutes.
const FILL: Duration = Duration::from_secs(900);
/// When it is asked for the next time whether they are filled.
const AGAIN: Duration = Duration::from_secs(1);

/// A fill that gets no page for so long is none any more: a page takes some tenths of a second at most.
const STALLED: Duration = Duration::from_secs(5);

/// How far processes are with the segments that they fill.
#[derive(Debug, Default)]
pub(super) struct Fills {
    /// By process and address.
    known: BTreeMap<(u32, u64), (Option<u64>, Instant)>,
}

impl Fills {
    /// Takes note of how many bytes each segment has that is being filled now (`None`: nobody tells, or nothing goes on
    /// in its process). Gives those that have had as many for too long, by their place in `now_filling`.
    pub fn stalled(
        &mut self,
        now_filling: &[((u32, u64), Option<u64>)],
        now: Instant,
    ) -> Vec<(usize, Duration)> {
        self.known.retain(|place, _| now_filling.iter().any(|(filling, _)| filling == place));
        let mut stalled = Vec::new();
        for (index, (place, bytes)) in now_filling.iter().enumerate() {
            let (known, since) = self.known.entry(*place).or_insert((*bytes, now));
            if *known != *bytes || bytes.is_none() {
                (*known, *since) = (*bytes, now);
            }
            let waited = now.duration_since(*since);
            if waited >= STALLED {
                stalled.push((index, waited));
            }
        }
        stalled
    }
}

/// The looks that are still to come.
#[derive(Debug)]
pub(super) struct Looks {
    is_fixed: bool,
    due: Option<Instant>,
    /// When the first segment was placed, while nobody has looked.
    first: Option<Instant>,
    /// Since when the next look waits for what is being filled.
    waits: Option<Instant>,
    done: usize,
}

impl Looks {
    /// Those of a program that starts now; `fixed`: looked at once, after so long.
    pub fn new(now: Instant, fixed: Option<Duration>) -> Self {
        let due = Some(now + fixed.unwrap_or(PATIENCE));
        Self { is_fixed: fixed.is_some(), due, first: None, waits: None, done: 0 }
    }

    /// How long the next one is off; `None` when there is none to come.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }

    /// A segment was placed.
    pub fn placed(&mut self, now: Instant) {
        if self.done == 0 && !self.is_fixed {
            let first = *self.first.get_or_insert(now);
            self.due = Some((now + SETTLE).min(first + PATIENCE));
        }
    }

    /// Puts the look off that is due, since a segment is being filled; false where it is to be now all the same.
    pub fn put_off(&mut self, now: Instant) -> bool {
        let waits = *self.waits.get_or_insert(now);
        if self.is_fixed || now.duration_since(waits) >= FILL {
            return false;
        }
        (self.first, self.due) = (None, Some(now + AGAIN));
        true
    }

    /// The memory was looked at. `has_doubt`: another look has to confirm what was seen, and comes after the last one,
    /// too, once.
    pub fn looked(&mut self, now: Instant, has_doubt: bool) {
        self.waits = None;
        let confirming = LATER.first().filter(|_| has_doubt && self.done == LATER.len());
        // Who said when to look wants to look then.
        let later = LATER.get(self.done).or(confirming).filter(|_| !self.is_fixed);
        self.due = later.map(|later| now + *later);
        self.done += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(fixed: Option<u64>, placed: &[u64]) -> Vec<u64> {
        looks_while(fixed, placed, 0..0)
    }

    /// When looks happen, in tenths of a second, of a program that places a segment at each of `placed`, and fills one
    /// during `filling`.
    fn looks_while(fixed: Option<u64>, placed: &[u64], filling: std::ops::Range<u64>) -> Vec<u64> {
        looks_in_doubt(fixed, placed, filling, false)
    }

    fn looks_in_doubt(
        fixed: Option<u64>,
        placed: &[u64],
        filling: std::ops::Range<u64>,
        has_doubt: bool,
    ) -> Vec<u64> {
        let begun = Instant::now();
        let tenth = |count: u64| begun + Duration::from_millis(count * 100);
        let mut looks = Looks::new(begun, fixed.map(|count| Duration::from_millis(count * 100)));
        let mut at = Vec::new();
        for now in 0..20_000 {
            if placed.contains(&now) {
                looks.placed(tenth(now));
            }
            let is_due = looks.left(tenth(now)) == Some(Duration::ZERO);
            if is_due && !(filling.contains(&now) && looks.put_off(tenth(now))) {
                looks.looked(tenth(now), has_doubt);
                at.push(now);
            }
        }
        at
    }

    #[test]
    fn segments_neither_put_the_first_look_off_nor_bring_more() {
        assert_eq!(looks(None, &[]), [20, 50, 350]);
        assert_eq!(looks(None, &[1, 2, 4]), [7, 37, 337]);
        assert_eq!(looks(None, &[19]), [22, 52, 352]);
        let each_fifth: Vec<u64> = (1..1000).step_by(2).collect();
        assert_eq!(looks(None, &each_fifth), [21, 51, 351]);
        let each_half: Vec<u64> = (1..1000).step_by(5).collect();
        assert_eq!(looks(None, &each_half), [4, 34, 334]);
        assert_eq!(looks(Some(70), &each_half), [70], "who said when");
    }

    #[test]
    fn a_fill_that_gets_no_page_is_none_any_more() {
        let mut fills = Fills::default();
        let begun = Instant::now();
        let mut stalled = |filling: &[((u32, u64), Option<u64>)], second| {
            let stalled = fills.stalled(filling, begun + Duration::from_secs(second));
            stalled.into_iter().map(|(index, waited)| (index, waited.as_secs())).collect::<Vec<_>>()
        };
        let (one, other) = ((7, 0x1000), (7, 0x9000));
        for (bytes, second) in [(1, 0), (1, 4), (2, 5), (2, 9)] {
            assert_eq!(stalled(&[(other, Some(second)), (one, Some(bytes))], second), []);
        }
        assert_eq!(stalled(&[(other, Some(10)), (one, Some(2))], 10), [(1, 5)]);
        assert_eq!(stalled(&[], 11), []);
        assert_eq!(stalled(&[(one, Some(2))], 60), [], "it filled nothing meanwhile");
        assert_eq!(stalled(&[(one, None)], 64), [], "it was stopped");
        assert_eq!(stalled(&[(one, None)], 70), []);
        assert_eq!(stalled(&[(one, Some(2))], 71), []);
        assert_eq!(stalled(&[(one, Some(2))], 76), [(0, 5)]);
    }

    #[test]
    fn what_the_last_look_doubts_one_more_confirms() {
        assert_eq!(looks_in_doubt(None, &[], 0..0, true), [20, 50, 350, 380]);
        assert_eq!(looks_in_doubt(Some(70), &[], 0..0, true), [70], "who said when");
    }

    #[test]
    fn a_look_waits_until_what_is_being_filled_is_placed() {
        assert_eq!(looks_while(None, &[177], 1..177), [180, 210, 510]);
        assert_eq!(looks_while(None, &[5, 177], 6..177), [180, 210, 510], "the small one was placed at once");
        assert_eq!(looks_while(None, &[5, 177], 20..177), [8, 178, 478], "after the first");
        assert_eq!(looks_while(Some(70), &[177], 1..177), [70]);
        let for_ever = looks_while(None, &[], 1..u64::MAX);
        assert_eq!(for_ever[0], 9020, "{for_ever:?}");
    }
}
