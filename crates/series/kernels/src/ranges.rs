//! The rows of a window: where its two borders fall in an ascending column of times.
//!
//! Both borders only move forward from row to row, mostly by a row or none, and nobody can foresee which: a
//! branch for each step would be guessed wrong half the time. So a vector of times is compared at once and the
//! hits are counted; and because each count waits for the one before it, several stretches of the left table
//! are walked in turn.

use crate::Times;
use crate::simd::{Kernel, Simd};

/// Stretches of the left table that are walked in turn.
const CHAINS: usize = 8;

/// One border of a window, relative to a left row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Border {
    /// Distance from the time of the left row; sums stop at the ends of `i64`.
    pub(crate) offset: i64,
    /// Whether right rows at the very time of the border lie before it.
    pub(crate) is_after: bool,
}

impl Border {
    /// First time that does not lie before the border, `None` where every time does.
    #[inline(always)]
    fn time(self, left: i64) -> Option<i64> {
        left.saturating_add(self.offset).checked_add(i64::from(self.is_after))
    }
}

/// Writes the number of right rows before the border of each left row.
pub(crate) struct Positions<'a> {
    pub(crate) left: Times<'a>,
    pub(crate) right: Times<'a>,
    pub(crate) border: Border,
    /// A row at or before the first position.
    pub(crate) from: usize,
    pub(crate) out: &'a mut [u32],
}

impl Kernel for Positions<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { left, right, border, from, out } = self;
        let (left, right) = (left.as_slice(), right.as_slice());
        let Some(&last) = left.last() else { return };
        let stretch = left.len() / CHAINS;
        if stretch == 0 {
            walk(simd, left, right, border, from, out);
            return;
        }
        // The same without a look at the ends of `i64`, which no border of the table reaches.
        let shift = border.offset.wrapping_add(i64::from(border.is_after));
        let is_plain = left[0].checked_add(border.offset).is_some()
            && last.checked_add(border.offset).is_some_and(|time| time < i64::MAX);
        if !is_plain {
            walk(simd, left, right, border, from, out);
            return;
        }
        let out = &mut out[..left.len()];
        let mut at = [from; CHAINS];
        for chain in 0..CHAINS {
            let before = at[chain.saturating_sub(1)];
            at[chain] = far(right, before, left[chain * stretch].wrapping_add(shift));
        }
        for step in 0..stretch {
            for (chain, at) in at.iter_mut().enumerate() {
                let row = chain * stretch + step;
                debug_assert!(row < left.len() && row < out.len());
                // SAFETY: `step` is below `stretch` and `chain` below `CHAINS`, whose product is at most the number
                // of left rows; `out` was just cut to that number.
                let (time, out) = unsafe { (left.get_unchecked(row), out.get_unchecked_mut(row)) };
                *at = advance(simd, right, *at, time.wrapping_add(shift));
                *out = *at as u32;
            }
        }
        let rest = CHAINS * stretch;
        walk(simd, &left[rest..], right, border, at[CHAINS - 1], &mut out[rest..]);
    }
}

/// One row after the other.
#[inline(always)]
fn walk<S: Simd>(simd: S, left: &[i64], right: &[i64], border: Border, mut at: usize, out: &mut [u32]) {
    for (&time, out) in left.iter().zip(out) {
        at = border.time(time).map_or(right.len(), |time| advance(simd, right, at, time));
        *out = at as u32;
    }
}

/// The first row at or after `at` that is not earlier than `time`.
#[inline(always)]
fn advance<S: Simd>(simd: S, times: &[i64], at: usize, time: i64) -> usize {
    let near = &times[at..];
    if near.len() >= S::LANES {
        let below = simd.count_below(near, time);
        if below < S::LANES {
            return at + below;
        }
    }
    far(times, at, time)
}

/// The same, in doubling steps.
#[cold]
#[inline(never)]
fn far(times: &[i64], at: usize, time: i64) -> usize {
    let near = &times[at..];
    let mut step = 8;
    while step < near.len() && near[step] < time {
        step *= 2;
    }
    let low = if step == 8 { 0 } else { step / 2 };
    at + low + near[low..near.len().min(step + 1)].partition_point(|&other| other < time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::testing::sorted_times;
    use proptest::prelude::*;

    fn check(left: &[i64], right: &[i64], border: Border) {
        let before = |time: i64| {
            let border_time = time.saturating_add(border.offset);
            let lies_before =
                |other: &&i64| **other < border_time || (border.is_after && **other == border_time);
            right.iter().filter(lies_before).count() as u32
        };
        let wanted: Vec<u32> = left.iter().map(|&time| before(time)).collect();
        for isa in Isa::all() {
            for from in [0, wanted.first().map_or(0, |&first| first as usize)] {
                let mut out = vec![7; left.len()];
                let (left, right) = (Times::new(left).unwrap(), Times::new(right).unwrap());
                isa.run(Positions { left, right, border, from, out: &mut out });
                assert_eq!(out, wanted);
            }
        }
    }

    proptest! {
        #[test]
        fn equals_counting(
            left in sorted_times(90), right in sorted_times(200), offset in -40i64..40, is_after in any::<bool>(),
        ) {
            check(&left, &right, Border { offset, is_after });
        }
    }

    #[test]
    fn borders_stop_at_the_ends_of_time() {
        let times = [i64::MIN, i64::MIN + 1, -5, 0, i64::MAX - 1, i64::MAX, i64::MAX];
        let left: Vec<i64> = times.iter().flat_map(|&time| [time; 5]).collect();
        for offset in [i64::MIN, -1, 0, 1, i64::MAX] {
            for is_after in [false, true] {
                check(&left, &times, Border { offset, is_after });
            }
        }
    }
}
