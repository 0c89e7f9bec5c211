//! The Hodges-Lehmann estimate and the interval that the signed-rank test leaves standing.
//!
//! The Walsh averages of a sample are the means of all its pairs, each value paired with itself too, so n values
//! have `n (n + 1) / 2` averages. W+ counts how many of them are positive (Tukey 1949), so shifting the sample
//! until the test just rejects means stepping through the sorted averages. Their median is the estimate; the
//! averages that are k-th from either end are the interval.
//!
//! With ties among the sizes the interval uses the tie-free distribution: the closed interval then covers
//! at least as often as it says.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{Estimate, Interval};
use crate::signed_rank::Null;
use crate::summary::quantile_of_sorted;

/// The sorted Walsh averages of a sample of pair logs. Memory grows with the square of the sample: 400
/// pairs make 80,200 averages.
#[derive(Clone, Debug)]
pub struct Walsh {
    averages: Vec<f64>,
    pairs: usize,
    null: Null,
}

impl Walsh {
    /// Averages of a sample; `None` when it is empty. Every value must be finite.
    pub fn new(logs: &[f64]) -> Option<Walsh> {
        Walsh::with_null(logs, Null::untied(logs.len()))
    }

    /// The same with the tie-free distribution of this many pairs, where it is at hand already.
    pub(crate) fn with_null(logs: &[f64], null: Null) -> Option<Walsh> {
        if logs.is_empty() {
            return None;
        }
        let mut averages = Vec::with_capacity(logs.len() * (logs.len() + 1) / 2);
        for (index, first) in logs.iter().enumerate() {
            averages.extend(logs[index..].iter().map(|second| (first + second) / 2.0));
        }
        averages.sort_unstable_by(f64::total_cmp);
        Some(Walsh { averages, pairs: logs.len(), null })
    }

    /// The Hodges-Lehmann estimate: the median of the averages.
    pub fn median(&self) -> f64 {
        quantile_of_sorted(&self.averages, 0.5)
    }

    /// The interval with at least the two-sided confidence `level`; `None` when so few pairs cannot give
    /// it.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let (from_end, tail) = self.cut((1.0 - level) / 2.0)?;
        Some(self.between(from_end, tail))
    }

    /// The interval at `level`, or the widest there is, from the smallest to the largest pair log, with the
    /// level that it has: 1 - 2 / 2^n.
    pub fn interval_or_widest(&self, level: f64) -> Interval {
        self.interval(level).unwrap_or_else(|| {
            let pairs = i32::try_from(self.pairs).unwrap_or(i32::MAX);
            self.between(1, 0.5f64.powi(pairs))
        })
    }

    /// The value that the effect exceeds with one-sided confidence `level`; `None` when so few pairs cannot
    /// tell.
    pub fn lower_bound(&self, level: f64) -> Option<f64> {
        self.lower_bound_within(1.0 - level).map(|(bound, _)| bound)
    }

    /// The value that the effect exceeds but for an error of at most `tail`, with the error that it really has; `None`
    /// when so few pairs cannot tell.
    pub(crate) fn lower_bound_within(&self, tail: f64) -> Option<(f64, f64)> {
        self.cut(tail).map(|(from_end, attained)| (self.averages[from_end - 1], attained))
    }

    /// The value that the effect stays below with one-sided confidence `level`; `None` when so few pairs
    /// cannot tell.
    pub fn upper_bound(&self, level: f64) -> Option<f64> {
        self.cut(1.0 - level).map(|(from_end, _)| self.averages[self.averages.len() - from_end])
    }

    /// Estimate and [`Walsh::interval_or_widest`] together.
    pub fn estimate(&self, level: f64) -> Estimate {
        Estimate { value: self.median(), interval: self.interval_or_widest(level) }
    }

    /// How far from the ends a bound with this tail lies, counted from 1, and the tail that it really has.
    /// Tails above one half are taken as one half: the bound is then the estimate.
    fn cut(&self, tail: f64) -> Option<(usize, f64)> {
        // A level of 0.75 must not lose its attainable tail of exactly 1/8 to the rounding of (1 - level) /
        // 2.
        let (sum, attained) = self.null.reject_from(tail.min(0.5) * (1.0 + 1e-12));
        let from_end = (self.averages.len() + 1).checked_sub(sum)?;
        (from_end > 0).then_some((from_end, attained))
    }

    fn between(&self, from_end: usize, tail: f64) -> Interval {
        Interval {
            low: self.averages[from_end - 1],
            high: self.averages[self.averages.len() - from_end],
            level: 1.0 - 2.0 * tail,
        }
    }
}

/// The Hodges-Lehmann estimate of a sample; `None` when it is empty.
pub fn hodges_lehmann(logs: &[f64]) -> Option<f64> {
    Walsh::new(logs).map(|walsh| walsh.median())
}

/// The fewest pairs whose most extreme outcome, all signs alike, has a one-sided tail of at most `tail`:
/// the smallest n with 2^-n <= `tail`.
pub fn pairs_for_tail(tail: f64) -> usize {
    (1..=1024).find(|&pairs| 0.5f64.powi(pairs) <= tail).map_or(usize::MAX, |pairs| pairs as usize)
}

/// The standard normal quantile of order `share`.
pub fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sample_that_can_be_checked_by_hand() {
        let walsh = Walsh::new(&[1.0, 2.0, 4.0]).unwrap();
        assert_eq!(walsh.averages, [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]);
        assert_eq!(walsh.median(), 2.25);
        assert_eq!(walsh.interval(0.75), Some(Interval { low: 1.0, high: 4.0, level: 0.75 }));
        assert_eq!(walsh.interval(0.95), None);
        assert_eq!(walsh.interval_or_widest(0.95), Interval { low: 1.0, high: 4.0, level: 0.75 });
        assert_eq!(walsh.lower_bound(0.75), Some(1.5));
        assert_eq!(walsh.upper_bound(0.75), Some(3.0));
    }

    #[test]
    fn an_empty_sample_has_no_estimate() {
        assert!(Walsh::new(&[]).is_none());
        assert_eq!(hodges_lehmann(&[]), None);
        assert_eq!(hodges_lehmann(&[0.25]), Some(0.25));
    }

    #[test]
    fn fewest_pairs_of_a_tail() {
        assert_eq!([0.5, 0.025, 0.005, 0.1 / 8.0 / 2.0].map(pairs_for_tail), [1, 6, 8, 8]);
    }

    fn sample() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-0.5..0.5f64, 1..30)
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_estimate(logs in sample(), level in 0.01..0.999f64) {
            let walsh = Walsh::new(&logs).unwrap();
            let interval = walsh.interval_or_widest(level);
            prop_assert!(interval.contains(walsh.median()));
            if let Some(asked) = walsh.interval(level) {
                prop_assert!(asked.level >= level - 1e-9);
            }
        }

        #[test]
        fn more_confidence_is_wider(logs in sample(), a in 0.01..0.999f64, b in 0.01..0.999f64) {
            let (less, more) = if a < b { (a, b) } else { (b, a) };
            let walsh = Walsh::new(&logs).unwrap();
            let (inner, outer) = (walsh.interval_or_widest(less), walsh.interval_or_widest(more));
            prop_assert!(outer.low <= inner.low && inner.high <= outer.high);
        }

        #[test]
        fn swapping_the_arms_mirrors_the_interval(logs in sample()) {
            let mirror: Vec<f64> = logs.iter().map(|log| -log).collect();
            let (one, two) = (Walsh::new(&logs).unwrap(), Walsh::new(&mirror).unwrap());
            prop_assert!((one.median() + two.median()).abs() < 1e-15);
            let (one, two) = (one.interval_or_widest(0.9), two.interval_or_widest(0.9));
            prop_assert_eq!((one.low, one.high), (-two.high, -two.low));
        }

        #[test]
        fn a_shift_moves_everything_with_it(logs in sample(), shift in -1.0..1.0f64) {
            let moved: Vec<f64> = logs.iter().map(|log| log + shift).collect();
            let (one, two) = (Walsh::new(&logs).unwrap(), Walsh::new(&moved).unwrap());
            prop_assert!((one.median() + shift - two.median()).abs() < 1e-12);
            let (one, two) = (one.interval_or_widest(0.9), two.interval_or_widest(0.9));
            prop_assert!((one.low + shift - two.low).abs() < 1e-12);
        }

        #[test]
        fn the_interval_is_what_the_test_does_not_reject(logs in sample(), level in 0.5..0.99f64) {
            let walsh = Walsh::new(&logs).unwrap();
            let Some(interval) = walsh.interval(level) else { return Ok(()) };
            let tail_at = |null: f64| {
                let shifted: Vec<f64> = logs.iter().map(|log| log - null).collect();
                crate::SignedRank::new(&shifted).upper_tail()
            };
            let tail = (1.0 - level) / 2.0;
            prop_assert!(tail_at(interval.low - 1e-9) <= tail + 1e-12);
            prop_assert!(tail_at(interval.low + 1e-9) > tail);
        }
    }
}
