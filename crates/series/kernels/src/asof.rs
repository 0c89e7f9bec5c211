//! ASOF join: for each left row the nearest right row of the same key, before it, after it, or either way.
//!
//! Both tables are merged in time order over a table of the newest right row of each key. Which side the next
//! row comes from is a coin toss that no processor guesses, so a step does both: it writes a right row, to a
//! place that nobody reads if it is not its turn, and it answers a left row, which is answered again if it was
//! not its turn. Because each step waits for the one before it, several stretches of the left table are merged
//! in turn, each with a table of its own. Joins forward are the same merge, walked from the end.

use std::ops::Range;

use crate::crew::{cut_mut, parts_of};
use crate::{Crew, KernelError, Keys, Times};

/// Stands where a left row has no partner.
pub const NO_ROW: u32 = u32::MAX;

/// Stretches of the left table that are merged in turn.
const CHAINS: usize = 4;

/// Where a partner is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Not younger than the left row: the newest of those. Of several with one time, the last in row order.
    #[default]
    Backward,
    /// Not older than the left row: the oldest of those. Of several with one time, the first in row order.
    Forward,
    /// The nearer one of both; of two equally near, the one before.
    Nearest,
}

/// A join by key. Whether the values of a row are null does not matter: the join is on rows.
#[derive(Debug, Clone)]
pub struct AsofJoin {
    direction: Direction,
    is_strict: bool,
    tolerance: Option<u64>,
    key_count: usize,
    scratch: Scratch<u32>,
}

/// What one thread works in.
#[derive(Debug, Clone)]
struct Scratch<T> {
    /// Tables of the newest row of each key, one a chain.
    tables: Vec<T>,
    /// Keys that were found while a table was filled.
    is_found: Vec<bool>,
    /// Partners the other way, where both are wanted.
    others: Vec<T>,
}

impl<T: Copy> Scratch<T> {
    fn new(key_count: usize, none: T) -> Self {
        let tables = vec![none; CHAINS * (key_count + 1)];
        Self { tables, is_found: vec![false; key_count], others: Vec::new() }
    }
}

/// The sides of a join, checked.
#[derive(Clone, Copy)]
struct Sides<'a> {
    left: (&'a [i64], &'a [u32]),
    right: (&'a [i64], &'a [u32]),
    key_count: usize,
}

impl AsofJoin {
    /// A backward join over `key_count` dense keys.
    #[must_use]
    pub fn new(key_count: usize) -> Self {
        Self {
            direction: Direction::Backward,
            is_strict: false,
            tolerance: None,
            key_count,
            scratch: Scratch::new(key_count, NO_ROW),
        }
    }

    /// Looks for partners there.
    #[must_use]
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// Whether a right row of exactly the same time is no partner.
    #[must_use]
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// Takes no partner that is further away than this, in the unit of the time columns.
    #[must_use]
    pub fn tolerance(mut self, tolerance: u64) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Writes the partner row of each left row to `out`, or [`NO_ROW`]. Once used, it does not allocate.
    ///
    /// # Errors
    /// [`KernelError::Length`] when a key column does not fit its time column, `out` does not fit the left
    /// table, or the keys are not counted as in [`new`](Self::new); [`KernelError::Parameter`] when the right
    /// table has [`NO_ROW`] rows or more.
    pub fn run(
        &mut self,
        left: (Times<'_>, Keys<'_>),
        right: (Times<'_>, Keys<'_>),
        out: &mut [u32],
    ) -> Result<(), KernelError> {
        let sides = self.check(left, right, out.len())?;
        let range = 0..sides.left.0.len();
        let mut scratch = std::mem::replace(&mut self.scratch, Scratch::new(0, NO_ROW));
        self.rows_of(sides, range, &mut scratch, out);
        self.scratch = scratch;
        Ok(())
    }

    /// The same, the left rows shared out among a crew.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_on(
        &self,
        crew: &mut Crew,
        left: (Times<'_>, Keys<'_>),
        right: (Times<'_>, Keys<'_>),
        out: &mut [u32],
    ) -> Result<(), KernelError> {
        let sides = self.check(left, right, out.len())?;
        let threads = crew.threads();
        let parts = parts_of(out.len(), threads).zip(cut_mut(out, threads)).collect();
        let scratch = || Scratch::new(self.key_count, NO_ROW);
        crew.map(parts, |(range, out)| self.rows_of(sides, range, &mut scratch(), out));
        Ok(())
    }

    /// Writes the value of the partner of each left row to `out`, NaN where there is none; the left rows are
    /// shared out among a crew.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`KernelError::Length`] too when `values` does not fit the right table.
    pub fn values_on(
        &self,
        crew: &mut Crew,
        left: (Times<'_>, Keys<'_>),
        right: (Times<'_>, Keys<'_>),
        values: &[f64],
        out: &mut [f64],
    ) -> Result<(), KernelError> {
        let sides = self.check(left, right, out.len())?;
        KernelError::check_length("value", sides.right.0.len(), values.len())?;
        let is_plain = self.tolerance.is_none() && self.direction != Direction::Nearest;
        let threads = crew.threads();
        let parts = parts_of(out.len(), threads).zip(cut_mut(out, threads)).collect();
        crew.map(parts, |(range, out): (Range<usize>, &mut [f64])| {
            if is_plain {
                // SAFETY: a row that is carried is one of the right table, which has as many rows as `values`.
                let payload = (f64::NAN, |row: usize| unsafe { *values.get_unchecked(row) });
                let mut scratch = Scratch::new(self.key_count, f64::NAN);
                let Scratch { tables, is_found, .. } = &mut scratch;
                let is_forward = self.direction == Direction::Forward;
                merge(sides, range, is_forward, self.is_strict, (tables, is_found), payload, out);
                return;
            }
            let mut rows = vec![NO_ROW; out.len()];
            self.rows_of(sides, range, &mut Scratch::new(self.key_count, NO_ROW), &mut rows);
            for (&row, out) in rows.iter().zip(out) {
                *out = values.get(row as usize).copied().unwrap_or(f64::NAN);
            }
        });
        Ok(())
    }

    fn check<'a>(
        &self,
        (left_times, left_keys): (Times<'a>, Keys<'a>),
        (right_times, right_keys): (Times<'a>, Keys<'a>),
        out_rows: usize,
    ) -> Result<Sides<'a>, KernelError> {
        let left = (left_times.as_slice(), left_keys.as_slice());
        let right = (right_times.as_slice(), right_keys.as_slice());
        KernelError::check_length("left key", left.0.len(), left.1.len())?;
        KernelError::check_length("right key", right.0.len(), right.1.len())?;
        KernelError::check_length("out", left.0.len(), out_rows)?;
        KernelError::check_length("left key table", self.key_count, left_keys.count())?;
        KernelError::check_length("right key table", self.key_count, right_keys.count())?;
        let (rows, wanted) = (right.0.len(), "below 4294967295");
        KernelError::check_parameter("rows of the right table", rows, rows < NO_ROW as usize, wanted)?;
        Ok(Sides { left, right, key_count: self.key_count })
    }

    fn rows_of(&self, sides: Sides<'_>, range: Range<usize>, scratch: &mut Scratch<u32>, out: &mut [u32]) {
        let payload = (NO_ROW, |row| row as u32);
        let is_forward = self.direction == Direction::Forward;
        let Scratch { tables, is_found, others } = scratch;
        merge(sides, range.clone(), is_forward, self.is_strict, (tables, is_found), payload, out);
        let distance =
            |time: i64, row: u32| sides.right.0.get(row as usize).map(|&other| other.abs_diff(time));
        if self.direction == Direction::Nearest {
            others.resize(out.len(), NO_ROW);
            merge(sides, range.clone(), true, self.is_strict, (tables, is_found), payload, others);
            for ((&time, out), &other) in sides.left.0[range.clone()].iter().zip(&mut *out).zip(&*others) {
                let is_nearer = match (distance(time, *out), distance(time, other)) {
                    (Some(before), Some(after)) => after < before,
                    (None, _) => true,
                    (Some(_), None) => false,
                };
                *out = if is_nearer { other } else { *out };
            }
        }
        if let Some(tolerance) = self.tolerance {
            for (&time, out) in sides.left.0[range].iter().zip(out) {
                if distance(time, *out).is_none_or(|distance| distance > tolerance) {
                    *out = NO_ROW;
                }
            }
        }
    }
}

/// Merges the left rows of `range` with all right rows. What is carried for a row is `payload`'s second part
/// of it, and its first part for none.
fn merge<T: Copy>(
    sides: Sides<'_>,
    range: Range<usize>,
    is_forward: bool,
    is_strict: bool,
    (tables, is_found): (&mut [T], &mut [bool]),
    payload: (T, impl Fn(usize) -> T + Copy),
    out: &mut [T],
) {
    let sides = Sides { left: (&sides.left.0[range.clone()], &sides.left.1[range]), ..sides };
    match (is_forward, is_strict) {
        (false, false) => Merge::<_, _, false, false> { sides, payload }.run(tables, is_found, out),
        (false, true) => Merge::<_, _, false, true> { sides, payload }.run(tables, is_found, out),
        (true, false) => Merge::<_, _, true, false> { sides, payload }.run(tables, is_found, out),
        (true, true) => Merge::<_, _, true, true> { sides, payload }.run(tables, is_found, out),
    }
}

/// One merge. Rows are counted from the end where it goes `FORWARD`, so that time runs backwards.
struct Merge<'a, T, P, const FORWARD: bool, const STRICT: bool> {
    sides: Sides<'a>,
    payload: (T, P),
}

/// A stretch of the left rows: the next one, one past the last one, and the next right row.
#[derive(Clone, Copy)]
struct Chain {
    left: usize,
    left_end: usize,
    right: usize,
}

impl<T: Copy, P: Fn(usize) -> T, const FORWARD: bool, const STRICT: bool> Merge<'_, T, P, FORWARD, STRICT> {
    /// A left row by its number in the order of the merge.
    #[inline(always)]
    fn left(&self, number: usize) -> usize {
        if FORWARD { self.sides.left.0.len() - 1 - number } else { number }
    }

    #[inline(always)]
    fn right(&self, number: usize) -> usize {
        if FORWARD { self.sides.right.0.len() - 1 - number } else { number }
    }

    /// Whether a right row comes before a left row, so that it may be its partner.
    #[inline(always)]
    fn is_before(&self, right: i64, left: i64) -> bool {
        match (FORWARD, STRICT) {
            (false, false) => right <= left,
            (false, true) => right < left,
            (true, false) => right >= left,
            (true, true) => right > left,
        }
    }

    fn run(self, tables: &mut [T], is_found: &mut [bool], out: &mut [T]) {
        let (rows, right_rows) = (self.sides.left.0.len(), self.sides.right.0.len());
        assert!(out.len() == rows && self.sides.left.1.len() == rows, "one result a left row");
        let table_rows = self.sides.key_count + 1;
        tables.fill(self.payload.0);
        let mut chains = [Chain { left: 0, left_end: 0, right: 0 }; CHAINS];
        let mut begin = 0;
        for (index, chain) in chains.iter_mut().enumerate() {
            let (left, left_end) = (rows * index / CHAINS, rows * (index + 1) / CHAINS);
            let right = if left < left_end { self.first_right(left) } else { begin };
            *chain = Chain { left, left_end, right };
            // What the right rows before have left behind: those since the chain before, over its own.
            let (before, own) = tables[..(index + 1) * table_rows].split_at_mut(index * table_rows);
            let inherited = before.len().checked_sub(table_rows).map(|from| &before[from..]);
            self.seed(begin..right, inherited, is_found, own);
            begin = right;
        }
        let mut tables = tables.chunks_exact_mut(table_rows);
        let mut tables: [&mut [T]; CHAINS] = std::array::from_fn(|_| tables.next().expect("a table a chain"));
        while let Some(steps) = self.free_steps(&chains, right_rows) {
            for _ in 0..steps {
                for (chain, table) in chains.iter_mut().zip(&mut tables) {
                    // SAFETY: each step takes one row of either side, and each chain has `steps` rows of both
                    // left.
                    unsafe { self.step(chain, table, out) };
                }
            }
        }
        for (chain, table) in chains.iter_mut().zip(tables) {
            while chain.left < chain.left_end && chain.right < right_rows {
                // SAFETY: both rows are there.
                unsafe { self.step(chain, table, out) };
            }
            for left in chain.left..chain.left_end {
                let row = self.left(left);
                out[row] = table[self.sides.left.1[row] as usize];
            }
        }
    }

    /// How many steps every chain can go without looking whether it is at an end; `None` for none.
    fn free_steps(&self, chains: &[Chain; CHAINS], right_rows: usize) -> Option<usize> {
        let steps = |chain: &Chain| (chain.left_end - chain.left).min(right_rows - chain.right);
        chains.iter().map(steps).min().filter(|&steps| steps > 0)
    }

    /// One right row or one left row, whichever is next.
    ///
    /// # Safety
    /// The chain has a left row below its end and a right row below the rows of the right table.
    #[inline(always)]
    unsafe fn step(&self, chain: &mut Chain, table: &mut [T], out: &mut [T]) {
        let Sides { left: (left_times, left_keys), right: (right_times, right_keys), key_count } = self.sides;
        let (left, right) = (self.left(chain.left), self.right(chain.right));
        debug_assert!(left < left_times.len() && right < right_times.len() && table.len() == key_count + 1);
        // SAFETY: by the caller's promise `left` lies in the left table, and `right` in the right one. The left table
        // has as many rows as `out`, and as many keys: `run` asserts both. `AsofJoin::check` found the right key column
        // as long as the time column. Keys are below `key_count`, which `Keys` checked, and `run` made the table
        // one longer than that.
        unsafe {
            let is_right = self.is_before(*right_times.get_unchecked(right), *left_times.get_unchecked(left));
            // The key, or the place after the last key; not by `if`, which may become a branch.
            let mask = usize::from(is_right).wrapping_neg();
            let key = *right_keys.get_unchecked(right) as usize;
            let place = key_count.wrapping_add(key.wrapping_sub(key_count) & mask);
            *table.get_unchecked_mut(place) = (self.payload.1)(right);
            let key = *left_keys.get_unchecked(left) as usize;
            *out.get_unchecked_mut(left) = *table.get_unchecked(key);
            chain.right += usize::from(is_right);
            chain.left += usize::from(!is_right);
        }
    }

    /// The first right row, in the order of the merge, that does not come before a left row.
    fn first_right(&self, left: usize) -> usize {
        let (times, time) = (self.sides.right.0, self.sides.left.0[self.left(left)]);
        if FORWARD {
            times.len() - times.partition_point(|&other| !self.is_before(other, time))
        } else {
            times.partition_point(|&other| self.is_before(other, time))
        }
    }

    /// Fills the table of a chain with the newest of some right rows for each key, else with what it inherits.
    fn seed(&self, right: Range<usize>, inherited: Option<&[T]>, is_found: &mut [bool], table: &mut [T]) {
        is_found.fill(false);
        let mut missing = is_found.len();
        for right in right.rev() {
            if missing == 0 {
                return;
            }
            let row = self.right(right);
            let key = self.sides.right.1[row] as usize;
            if !std::mem::replace(&mut is_found[key], true) {
                table[key] = (self.payload.1)(row);
                missing -= 1;
            }
        }
        for (key, _) in is_found.iter().enumerate().filter(|found| !found.1) {
            table[key] = inherited.map_or(self.payload.0, |inherited| inherited[key]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{crews, sorted_times};
    use proptest::prelude::*;

    fn naive(join: &AsofJoin, left: (i64, u32), right: &[i64], right_keys: &[u32]) -> u32 {
        let fits = |row: &usize| {
            let is_near = join.tolerance.is_none_or(|tolerance| right[*row].abs_diff(left.0) <= tolerance);
            right_keys[*row] == left.1 && is_near && !(join.is_strict && right[*row] == left.0)
        };
        let before = (0..right.len()).rev().find(|row| fits(row) && right[*row] <= left.0);
        let after = (0..right.len()).find(|row| fits(row) && right[*row] >= left.0);
        let distance = |row: usize| right[row].abs_diff(left.0);
        let row = match (join.direction, before, after) {
            (Direction::Backward, row, _) | (Direction::Forward, _, row) => row,
            (Direction::Nearest, Some(before), Some(after)) => {
                Some(if distance(after) < distance(before) { after } else { before })
            }
            (Direction::Nearest, before, after) => before.or(after),
        };
        row.map_or(NO_ROW, |row| row as u32)
    }

    proptest! {
        #[test]
        fn equals_the_search_of_every_row(
            left in sorted_times(60), right in sorted_times(60), keys in prop::collection::vec(0u32..4, 120),
            direction in prop_oneof![Just(Direction::Backward), Just(Direction::Forward), Just(Direction::Nearest)],
            is_strict in any::<bool>(), tolerance in prop::option::of(0u64..20), key_count in 4usize..6,
        ) {
            let (left_keys, right_keys) = (&keys[..left.len()], &keys[60..60 + right.len()]);
            let mut join = AsofJoin::new(key_count).direction(direction).strict(is_strict);
            join.tolerance = tolerance;
            let search = |(&time, &key): (&i64, &u32)| naive(&join, (time, key), &right, right_keys);
            let wanted: Vec<u32> = left.iter().zip(left_keys).map(search).collect();
            let side = |times, keys| (Times::new(times).unwrap(), Keys::new(keys, key_count).unwrap());
            let (left_side, right_side) = (side(&left, left_keys), side(&right, right_keys));
            let mut got = vec![7; left.len()];
            for _again in 0..2 {
                join.run(left_side, right_side, &mut got).unwrap();
                prop_assert_eq!(&got, &wanted);
            }
            let values: Vec<f64> = (0..right.len()).map(|row| row as f64).collect();
            for crew in &mut crews() {
                join.run_on(crew, left_side, right_side, &mut got).unwrap();
                prop_assert_eq!(&got, &wanted);
                let mut found = vec![7.0; left.len()];
                join.values_on(crew, left_side, right_side, &values, &mut found).unwrap();
                for (found, &row) in found.into_iter().zip(&wanted) {
                    let is_right = if row == NO_ROW { found.is_nan() } else { found == f64::from(row) };
                    prop_assert!(is_right);
                }
            }
        }
    }

    fn join(left: (&[i64], &[u32]), right: (&[i64], &[u32]), count: usize) -> Vec<u32> {
        let mut out = vec![0; left.0.len()];
        let side = |(times, keys)| (Times::new(times).unwrap(), Keys::new(keys, count).unwrap());
        AsofJoin::new(count).run(side(left), side(right), &mut out).unwrap();
        out
    }

    #[test]
    fn a_tie_takes_the_last_row_and_a_younger_row_is_no_partner() {
        let got = join((&[-3, 5, 5], &[0, 0, 1]), (&[-2, 5, 5, 6], &[0, 0, 0, 1]), 2);
        assert_eq!(got, [NO_ROW, 2, NO_ROW]);
    }

    #[test]
    fn distances_do_not_overflow_at_the_ends_of_time() {
        let ends = [i64::MIN, i64::MAX];
        let side = || (Times::new(&ends).unwrap(), Keys::new(&[0, 0], 1).unwrap());
        let mut out = [0; 2];
        let mut join = AsofJoin::new(1).direction(Direction::Nearest).strict(true);
        join.run(side(), side(), &mut out).unwrap();
        assert_eq!(out, [1, 0]);
        join.tolerance(u64::MAX - 1).run(side(), side(), &mut out).unwrap();
        assert_eq!(out, [NO_ROW; 2]);
    }

    #[test]
    fn reuse_does_not_remember_and_nothing_joins_nothing() {
        let mut join = AsofJoin::new(1);
        let side = || (Times::new(&[1]).unwrap(), Keys::new(&[0], 1).unwrap());
        let none = || (Times::new(&[]).unwrap(), Keys::new(&[], 1).unwrap());
        let mut out = [7];
        join.run(side(), side(), &mut out).unwrap();
        assert_eq!(out, [0]);
        join.run(side(), none(), &mut out).unwrap();
        assert_eq!(out, [NO_ROW]);
        join.run(none(), side(), &mut []).unwrap();
    }
}
