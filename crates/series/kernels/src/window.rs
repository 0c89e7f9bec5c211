//! Window join: what the right table did around each row of the left one.
//!
//! Both tables are in time order, so both borders of the window only move forward:
//!
//! ```text
//!   right rows   . . . [ a  b  c | d  e ) . . .
//!                      low      split   high
//! ```
//!
//! Rows that leave would have to be subtracted from a running sum, which loses all digits after one large
//! value and turns an infinity into NaN; minima cannot be subtracted at all. So the window is kept as two
//! parts instead: of the older one the aggregate of *every suffix* is stored, of the newer one a running
//! aggregate. Each answer merges two aggregates; when the older part is used up, the newer one is stored in
//! its place. Each right row is added twice in all (the two-stack queue; Tangwongsan, Hirzel and Schneider,
//! "In-order sliding-window aggregation", 2017).

use crate::{KernelError, Times, lanes};

/// Windows of up to this many rows are added up directly; fewer steps than keeping the two parts.
const DIRECT_ROWS: usize = 16;

/// What a window holds. Nulls take no part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowAggregate {
    /// Sum of the values, 0 for none.
    pub sum: f64,
    /// Lowest value; infinity for none, see [`min`](Self::min).
    lowest: f64,
    /// Highest value; minus infinity for none, see [`max`](Self::max).
    highest: f64,
    /// Values that are not null.
    pub count: u64,
}

impl WindowAggregate {
    /// The aggregate of no rows.
    pub const EMPTY: Self = Self { sum: 0.0, lowest: f64::INFINITY, highest: f64::NEG_INFINITY, count: 0 };

    /// Mean value, NaN for none.
    pub fn avg(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.sum / self.count as f64 }
    }

    /// Lowest value, NaN for none.
    pub fn min(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.lowest }
    }

    /// Highest value, NaN for none.
    pub fn max(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.highest }
    }

    #[inline]
    fn add(mut self, value: f64) -> Self {
        self.sum += lanes::or_zero(value);
        self.lowest = lanes::lower(self.lowest, value);
        self.highest = lanes::higher(self.highest, value);
        self.count += u64::from(!value.is_nan());
        self
    }

    #[inline]
    fn merge(self, other: &Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            lowest: lanes::lower(self.lowest, other.lowest),
            highest: lanes::higher(self.highest, other.highest),
            count: self.count + other.count,
        }
    }
}

/// Joins each left row at time `t` with the right rows in `[t - before, t + after]`, both borders included.
///
/// The struct owns the scratch memory of the join and may be used again; once that is as large as the largest
/// window, a join allocates nothing.
#[derive(Debug)]
pub struct WindowJoin {
    before: i64,
    after: i64,
    suffixes: Vec<WindowAggregate>,
}

impl WindowJoin {
    /// A join over `[t - before, t + after]`, in the unit of the time columns. Borders beyond the ends of
    /// `i64` stop there.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] when either is negative.
    pub fn new(before: i64, after: i64) -> Result<Self, KernelError> {
        for (name, value) in [("before", before), ("after", after)] {
            if value < 0 {
                return Err(KernelError::Parameter { name, value: value.to_string(), wanted: "0 or more" });
            }
        }
        Ok(Self { before, after, suffixes: Vec::new() })
    }

    /// Makes room for windows of `rows` right rows, so that no join allocates.
    #[must_use]
    pub fn with_window_rows(mut self, rows: usize) -> Self {
        self.suffixes.reserve_exact(rows);
        self
    }

    /// Writes the aggregate of the window of each left row to `out`.
    ///
    /// # Errors
    /// [`KernelError::Length`] when `values` does not fit `right` or `out` does not fit `left`.
    pub fn run(
        &mut self,
        left: Times<'_>,
        right: Times<'_>,
        values: &[f64],
        out: &mut [WindowAggregate],
    ) -> Result<(), KernelError> {
        let times = right.as_slice();
        KernelError::check_length("value", times.len(), values.len())?;
        KernelError::check_length("out", left.as_slice().len(), out.len())?;
        self.suffixes.clear();
        let mut parts =
            Parts { suffixes: &mut self.suffixes, values, split: 0, newer: WindowAggregate::EMPTY, high: 0 };
        let (mut low, mut high) = (0, 0);
        for (&time, out) in left.as_slice().iter().zip(out) {
            let (first, last) = (time.saturating_sub(self.before), time.saturating_add(self.after));
            while low < times.len() && times[low] < first {
                low += 1;
            }
            high = high.max(low);
            while high < times.len() && times[high] <= last {
                high += 1;
            }
            *out = if high - low <= DIRECT_ROWS {
                values[low..high].iter().fold(WindowAggregate::EMPTY, |sum, &value| sum.add(value))
            } else {
                parts.window(low, high)
            };
        }
        Ok(())
    }
}

/// The two parts of the window: stored suffixes of `[.., split)` and the running aggregate of `[split,
/// high)`.
struct Parts<'a> {
    /// Stored from the split outwards: entry `k` covers the `k + 1` rows below it.
    suffixes: &'a mut Vec<WindowAggregate>,
    values: &'a [f64],
    split: usize,
    newer: WindowAggregate,
    high: usize,
}

impl Parts<'_> {
    /// The aggregate of rows `[low, high)`; neither border may ever go back.
    fn window(&mut self, low: usize, high: usize) -> WindowAggregate {
        if low >= self.split {
            self.restart(low, high);
        } else {
            for &value in &self.values[self.high..high] {
                self.newer = self.newer.add(value);
            }
            self.high = high;
        }
        self.suffixes[self.split - low - 1].merge(&self.newer)
    }

    /// The older part is used up: the whole window becomes the older part.
    fn restart(&mut self, low: usize, high: usize) {
        self.suffixes.clear();
        let mut suffix = WindowAggregate::EMPTY;
        for &value in self.values[low..high].iter().rev() {
            suffix = suffix.add(value);
            self.suffixes.push(suffix);
        }
        self.split = high;
        self.high = high;
        self.newer = WindowAggregate::EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, magnitude, null_or_value, sorted_times};
    use proptest::prelude::*;

    fn join(left: &[i64], right: &[i64], values: &[f64], before: i64, after: i64) -> Vec<WindowAggregate> {
        let mut out = vec![WindowAggregate::EMPTY; left.len()];
        let (left, right) = (Times::new(left).unwrap(), Times::new(right).unwrap());
        WindowJoin::new(before, after).unwrap().run(left, right, values, &mut out).unwrap();
        out
    }

    fn check_against_naive(left: &[i64], right: &[i64], values: &[f64], before: i64, after: i64) {
        let got = join(left, right, values, before, after);
        for (&time, got) in left.iter().zip(got) {
            let inside = |row: &usize| right[*row] >= time - before && right[*row] <= time + after;
            let rows: Vec<f64> = (0..right.len()).filter(inside).map(|row| values[row]).collect();
            let known: Vec<f64> = rows.into_iter().filter(|value| !value.is_nan()).collect();
            let scale = magnitude(&known);
            assert_eq!(got.count, known.len() as u64);
            assert_close(got.sum, known.iter().sum(), scale);
            assert_close(got.avg(), known.iter().sum::<f64>() / known.len() as f64, scale);
            assert_close(got.min(), known.iter().copied().reduce(f64::min).unwrap_or(f64::NAN), 0.0);
            assert_close(got.max(), known.iter().copied().reduce(f64::max).unwrap_or(f64::NAN), 0.0);
        }
    }

    proptest! {
        #[test]
        fn equals_the_nested_loop(
            left in sorted_times(40), right in sorted_times(150),
            values in prop::collection::vec(null_or_value(), 150), before in 0i64..20, after in 0i64..20,
        ) {
            check_against_naive(&left, &right, &values[..right.len()], before, after);
        }

        /// Dense rows, so that windows are long and short in turn and both ways of adding up are crossed.
        #[test]
        fn equals_the_nested_loop_on_bursts(
            steps in prop::collection::vec(0i64..3, 1..300), skip in prop::collection::vec(0i64..9, 1..60),
            values in prop::collection::vec(null_or_value(), 300), before in 0i64..30, after in 0i64..30,
        ) {
            let climb = |steps: &[i64]| -> Vec<i64> {
                steps.iter().scan(-50, |time, step| { *time += step; Some(*time) }).collect()
            };
            let (left, right) = (climb(&skip), climb(&steps));
            check_against_naive(&left, &right, &values[..right.len()], before, after);
        }
    }

    #[test]
    fn one_huge_value_does_not_spoil_the_windows_after_it() {
        let right: Vec<i64> = (0..200).collect();
        let mut values = vec![0.1; 200];
        values[10] = 1e300;
        values[11] = f64::INFINITY;
        let got = join(&[100], &right, &values, 40, 0);
        assert!((got[0].sum - 4.1).abs() < 1e-12);
        let got = join(&right, &right, &values, 20, 0);
        assert!((got[150].sum - 2.1).abs() < 1e-12);
        assert_eq!(got[15].sum, f64::INFINITY);
    }

    #[test]
    fn nothing_on_either_side() {
        assert!(join(&[], &[1], &[1.0], 5, 5).is_empty());
        let [none] = join(&[3], &[], &[], 5, 5)[..] else { panic!("one row") };
        assert_eq!((none.count, none.sum), (0, 0.0));
        assert!(none.avg().is_nan() && none.min().is_nan() && none.max().is_nan());
    }

    #[test]
    fn windows_stop_at_the_ends_of_time() {
        let ends = [i64::MIN, i64::MAX];
        let got = join(&ends, &ends, &[1.0, 2.0], i64::MAX, i64::MAX);
        assert_eq!(got.iter().map(|window| window.sum).collect::<Vec<_>>(), [1.0, 2.0]);
    }

    #[test]
    fn reuse_does_not_remember() {
        let right: Vec<i64> = (0..100).collect();
        let times = Times::new(&right).unwrap();
        let mut out = [WindowAggregate::EMPTY; 100];
        let mut join = WindowJoin::new(30, 0).unwrap().with_window_rows(31);
        let room = join.suffixes.capacity();
        join.run(times, times, &[1.0; 100], &mut out).unwrap();
        join.run(times, times, &[2.0; 100], &mut out).unwrap();
        assert_eq!((out[0].sum, out[99].sum), (2.0, 62.0));
        assert_eq!(join.suffixes.capacity(), room);
    }

    #[test]
    fn refuses_a_negative_border() {
        assert!(matches!(WindowJoin::new(-1, 0), Err(KernelError::Parameter { name: "before", .. })));
    }
}
