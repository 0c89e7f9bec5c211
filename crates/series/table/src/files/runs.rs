//! Rows of a file that are gone: deleted, or replaced by what came later.
//!
//! A mark by position, as Delta and Iceberg have it, and not by key: who reads skips rows and compares nothing.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Rows of a file, as runs of neighbours: first row and count, in order, none of which touches the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Runs(Vec<(u64, u64)>);

impl Runs {
    /// Of rows in order.
    pub(crate) fn of(rows: impl IntoIterator<Item = usize>) -> Self {
        let mut runs = Self::default();
        rows.into_iter().for_each(|row| runs.push(row as u64, 1));
        runs
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// How many runs: what keeping them costs.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether they can be rows of a file of so many.
    pub(crate) fn is_sound(&self, rows: u64) -> bool {
        let mut end = None;
        self.0.iter().all(|&(first, count)| {
            let is_behind = end.is_none_or(|end| first > end) && count > 0;
            end = first.checked_add(count);
            is_behind && end.is_some_and(|end| end <= rows)
        })
    }

    /// Rows of one or the other.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all: Vec<(u64, u64)> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        let mut runs = Self::default();
        all.into_iter().for_each(|(first, count)| runs.push(first, count));
        runs
    }

    /// The ranges of the other rows of a file of so many.
    pub(crate) fn rest(&self, rows: usize) -> Vec<Range<usize>> {
        let number = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(rows);
        let starts = self.0.iter().map(|&(first, count)| number(first.saturating_add(count)));
        let ends = self.0.iter().map(|&(first, _)| number(first));
        let ranges = [0].into_iter().chain(starts).zip(ends.chain([rows]));
        ranges.map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
    }

    /// Adds rows that begin no earlier than the last run.
    fn push(&mut self, first: u64, count: u64) {
        match self.0.last_mut() {
            Some((last, held)) if first <= *last + *held => *held = (*held).max(first + count - *last),
            _ => self.0.push((first, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn runs_are_sets_of_rows(
            left in prop::collection::btree_set(0..40usize, 0..40),
            right in prop::collection::btree_set(0..40usize, 0..40),
        ) {
            let runs = Runs::of(left.iter().copied());
            prop_assert!(runs.is_sound(40));
            let both = runs.union(&Runs::of(right.iter().copied()));
            let wanted: BTreeSet<usize> = left.union(&right).copied().collect();
            prop_assert!(both.is_sound(40));
            prop_assert_eq!((both.rows(), both.is_empty()), (wanted.len() as u64, wanted.is_empty()));
            let rest: Vec<usize> = both.rest(40).into_iter().flatten().collect();
            prop_assert_eq!(rest, (0..40).filter(|row| !wanted.contains(row)).collect::<Vec<_>>());
            let highest = wanted.last().map_or(0, |row| *row as u64);
            prop_assert_eq!(both.is_sound(highest), wanted.is_empty());
        }

        #[test]
        fn what_no_file_can_have_is_not_sound_and_harms_nobody(
            runs in prop::collection::vec(any::<(u64, u64)>(), 0..6),
        ) {
            let runs = Runs(runs);
            let is_sound = runs.is_sound(1000);
            prop_assert!(!is_sound || runs.rows() <= 1000);
        }
    }

    #[test]
    fn runs_that_touch_are_one() {
        assert_eq!(Runs::of([3, 4, 5, 9]).0, [(3, 3), (9, 1)]);
        assert!(!Runs(vec![(3, 3), (6, 1)]).is_sound(100) && !Runs(vec![(1, 0)]).is_sound(9));
        assert_eq!(serde_json::to_string(&Runs::of([7])).ok().as_deref(), Some("[[7,1]]"));
    }
}
