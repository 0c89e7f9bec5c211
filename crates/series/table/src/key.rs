//! Keys: what makes a row the same row, and the order of rows.
//!
//! The order of a table with a key is its time, then the other columns of the key; symbols count by their numbers. So
//! what such a table holds depends on which rows it holds, and not on the order in which they came. Without a key it is
//! the time alone, and rows of one time stay in the order in which they came.

use std::cmp::Ordering;
use std::ops::Range;

use crate::segment::{Data, Loose, View};

/// The columns that order some rows, the most important first.
pub(crate) struct Keys<'s> {
    columns: Vec<View<'s>>,
    rows: usize,
}

impl<'s> Keys<'s> {
    pub(crate) fn of(columns: impl IntoIterator<Item = View<'s>>) -> Self {
        let columns: Vec<View<'_>> = columns.into_iter().collect();
        let rows = columns.first().map_or(0, View::rows);
        Self { columns, rows }
    }

    /// Those columns of whole rows that order them.
    pub(crate) fn of_rows(rows: &'s [Loose], order: &[usize]) -> Self {
        Self::of(order.iter().map(|&column| rows[column].view()))
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How a row stands to a row of other keys.
    pub(crate) fn compare(&self, row: usize, other: &Keys<'_>, other_row: usize) -> Ordering {
        let cell = |view: &View<'_>, row: usize| match view {
            Data::Whole(cells) => cells[row],
            Data::Symbol(cells) => i64::from(cells[row]),
            Data::Float(_) => unreachable!("a schema has no float in its key"),
        };
        let pairs = self.columns.iter().zip(&other.columns);
        pairs
            .map(|(mine, other)| cell(mine, row).cmp(&cell(other, other_row)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The first row at or behind `from` that does not come before a row of other keys; with `behind_equal` the first
    /// that comes behind it.
    pub(crate) fn rank(&self, from: usize, other: &Keys<'_>, other_row: usize, behind_equal: bool) -> usize {
        let is_before = |row: usize| match self.compare(row, other, other_row) {
            Ordering::Less => true,
            Ordering::Equal => behind_equal,
            Ordering::Greater => false,
        };
        // What is searched for is mostly near.
        let (mut low, mut step) = (from, 1);
        while low + step <= self.rows && is_before(low + step - 1) {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(self.rows);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The rows whose keys are among others, which are in order as these are.
    pub(crate) fn common(&self, others: &Keys<'_>) -> Vec<usize> {
        let (mut found, mut row) = (Vec::new(), 0);
        for other in 0..others.rows {
            row = self.rank(row, others, other, false);
            if row == self.rows {
                break;
            }
            if self.compare(row, others, other).is_eq() {
                found.push(row);
            }
        }
        found
    }
}

/// Two tables in order as one. Of equal rows those of `old` come first or, where new rows `replace` them, go.
pub(crate) fn merge(old: &[Loose], new: &[Loose], order: &[usize], replace: bool) -> Vec<Loose> {
    let runs = runs(&Keys::of_rows(old, order), &Keys::of_rows(new, order), replace);
    let column = |(old, new): (&Loose, &Loose)| {
        let mut merged = old.empty_like();
        for (olds, news) in &runs {
            merged.extend_from(old, olds.clone());
            merged.extend_from(new, news.clone());
        }
        merged
    };
    old.iter().zip(new).map(column).collect()
}

/// Runs of rows that come from one side: which of the old, then which of the new.
fn runs(old: &Keys<'_>, new: &Keys<'_>, replace: bool) -> Vec<(Range<usize>, Range<usize>)> {
    let mut runs = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < old.rows() || right < new.rows() {
        let olds = if right < new.rows() { old.rank(left, new, right, !replace) } else { old.rows() };
        let is_replaced =
            replace && olds < old.rows() && right < new.rows() && old.compare(olds, new, right).is_eq();
        let next_old = olds + usize::from(is_replaced);
        let news = if next_old < old.rows() { new.rank(right, old, next_old, false) } else { new.rows() };
        runs.push((left..olds, right..news));
        (left, right) = (next_old, news);
    }
    runs
}

/// Leaves the last of equal neighbours.
pub(crate) fn keep_last(rows: &mut Vec<usize>, is_same: impl Fn(usize, usize) -> bool) {
    let mut kept = 0;
    for index in 0..rows.len() {
        if index + 1 == rows.len() || !is_same(rows[index], rows[index + 1]) {
            rows[kept] = rows[index];
            kept += 1;
        }
    }
    rows.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Three columns: a value that is no part of the key, the time, a symbol.
    fn rows(rows: &[(i64, u32, i64)]) -> Vec<Loose> {
        let symbols = rows.iter().map(|row| row.1).collect();
        vec![
            Loose::Whole(rows.iter().map(|row| row.2).collect()),
            Loose::Whole(rows.iter().map(|row| row.0).collect()),
            Loose::Symbol(symbols),
        ]
    }

    fn read(columns: &[Loose]) -> Vec<(i64, u32, i64)> {
        let [value, time, symbol] = columns else { panic!("three columns") };
        (0..time.whole().len())
            .map(|row| (time.whole()[row], symbol.symbols()[row], value.whole()[row]))
            .collect()
    }

    type Map = BTreeMap<(i64, u32), i64>;

    fn table(from: Map) -> Vec<(i64, u32, i64)> {
        from.into_iter().map(|((time, symbol), value)| (time, symbol, value)).collect()
    }

    proptest! {
        #[test]
        fn with_a_key_a_merge_is_the_union_of_maps_and_the_new_wins(
            old in prop::collection::btree_map((-9..9i64, 0..4u32), any::<i64>(), 0..30),
            new in prop::collection::btree_map((-9..9i64, 0..4u32), any::<i64>(), 0..30),
        ) {
            let wanted: Map = old.iter().chain(&new).map(|(key, value)| (*key, *value)).collect();
            let common: BTreeSet<(i64, u32)> = old.keys().filter(|key| new.contains_key(key)).copied().collect();
            let (old, new) = (rows(&table(old)), rows(&table(new)));
            let order = [1, 2];
            prop_assert_eq!(read(&merge(&old, &new, &order, true)), table(wanted));
            let found = Keys::of_rows(&old, &order).common(&Keys::of_rows(&new, &order));
            let found: BTreeSet<(i64, u32)> = found.iter().map(|&row| read(&old)[row]).map(|it| (it.0, it.1)).collect();
            prop_assert_eq!(found, common);
        }

        #[test]
        fn without_a_key_a_merge_is_a_stable_sort(
            old in prop::collection::vec((-9..9i64, 0..4u32, any::<i64>()), 0..30),
            new in prop::collection::vec((-9..9i64, 0..4u32, any::<i64>()), 0..30),
        ) {
            let sorted = |mut rows: Vec<(i64, u32, i64)>| { rows.sort_by_key(|row| row.0); rows };
            let (old, new) = (sorted(old), sorted(new));
            let wanted = sorted(old.iter().chain(&new).copied().collect());
            prop_assert_eq!(read(&merge(&rows(&old), &rows(&new), &[1], false)), wanted);
        }

        #[test]
        fn a_rank_is_a_partition_point(
            times in prop::collection::vec(-20..20i64, 1..60), at in -25..25i64, from in 0..60usize,
        ) {
            let mut times = times;
            times.sort_unstable();
            let other = [at];
            let (keys, other) = (Keys::of([Data::Whole(&times[..])]), Keys::of([Data::Whole(&other[..])]));
            let from = from.min(times.partition_point(|&time| time < at));
            prop_assert_eq!(keys.rank(from, &other, 0, false), times.partition_point(|&time| time < at));
            prop_assert_eq!(keys.rank(from, &other, 0, true), times.partition_point(|&time| time <= at));
        }
    }

    #[test]
    fn of_equal_neighbours_the_last_stays() {
        let mut rows = vec![3, 4, 7, 9, 11];
        keep_last(&mut rows, |left, right| left / 4 == right / 4);
        assert_eq!(rows, [3, 7, 11]);
        keep_last(&mut rows, |_, _| true);
        assert_eq!(rows, [11]);
    }
}
