//! The interval of a median, whatever the distribution.
//!
//! Latencies of repeated rounds lean to one side: a neighbour makes some of them longer and none shorter. The signed
//! ranks of [`crate::walsh`] ask for symmetry, which pair logs have and these have not. What holds for every continuous
//! distribution: a value lies below the median with probability 1/2, so the number of those that do is binomial, and
//! the median lies between the k-th values from either end unless fewer than k fell on one side (Thompson 1936).
//!
//! ```text
//! 15 rounds, sorted      1 2 3 [4 ... 12] 13 14 15       P(at most 3 on one side) = 576 / 32768, so 0.965
//! ```

use crate::interval::{Estimate, Interval};
use crate::summary::quantile_of_sorted;

/// The median of a sample, with the shortest interval between order statistics of at least the two-sided confidence
/// `level`; where the sample is too small for it, from its smallest to its largest value with the level that this has.
/// `None` for an empty sample. Every value must be finite.
pub fn median_estimate(sample: &[f64], level: f64) -> Option<Estimate> {
    if sample.is_empty() {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (from_end, level) = cut(sorted.len(), level);
    let interval = Interval { low: sorted[from_end - 1], high: sorted[sorted.len() - from_end], level };
    Some(Estimate { value: quantile_of_sorted(&sorted, 0.5), interval })
}

/// How far from the ends the interval lies, counted from 1, and its level.
fn cut(count: usize, level: f64) -> (usize, f64) {
    // P(B = k) of a fair coin, by its ratio to the one before; in logs, so that no power of two is too small.
    let n = count as f64;
    let mut log_term = -n * std::f64::consts::LN_2;
    let mut below = log_term.exp();
    let mut best = (1, 1.0 - 2.0 * below);
    for k in 1..count / 2 {
        log_term += ((n - k as f64 + 1.0) / k as f64).ln();
        below += log_term.exp();
        let has = 1.0 - 2.0 * below;
        if has < level {
            break;
        }
        best = (k + 1, has);
    }
    // One value tells nothing about where the median is.
    (best.0, best.1.max(0.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Rng;

    #[test]
    fn ends_lie_where_tables_have_them() {
        // David and Nagaraja, Order Statistics, 7.1: n = 15, 4th and 12th for 0.965; n = 10, 2nd and 9th for 0.979.
        let sample: Vec<f64> = (1..=15).map(f64::from).collect();
        let estimate = median_estimate(&sample, 0.95).unwrap();
        assert_eq!((estimate.value, estimate.interval.low, estimate.interval.high), (8.0, 4.0, 12.0));
        assert!((estimate.interval.level - (1.0 - 2.0 * 576.0 / 32768.0)).abs() < 1e-12);
        let ten = median_estimate(&sample[..10], 0.95).unwrap().interval;
        assert_eq!((ten.low, ten.high), (2.0, 9.0));
        assert!((ten.level - (1.0 - 2.0 * 11.0 / 1024.0)).abs() < 1e-12);
    }

    #[test]
    fn a_small_sample_says_how_little_it_knows() {
        assert_eq!(median_estimate(&[], 0.95), None);
        let one = median_estimate(&[3.0], 0.95).unwrap();
        assert_eq!(one, Estimate { value: 3.0, interval: Interval { low: 3.0, high: 3.0, level: 0.0 } });
        let four = median_estimate(&[4.0, 1.0, 3.0, 2.0], 0.95).unwrap();
        assert_eq!(four.interval, Interval { low: 1.0, high: 4.0, level: 0.875 });
        // A level that nothing has gives the whole range.
        let all = median_estimate(&[5.0, 4.0, 1.0, 3.0, 2.0, 9.0, 7.0], 1.0).unwrap();
        assert_eq!((all.interval.low, all.interval.high), (1.0, 9.0));
    }

    #[test]
    fn it_covers_the_median_of_a_lopsided_distribution() {
        let (mut rng, runs) = (Rng::new(7), 4000);
        let median = std::f64::consts::LN_2;
        let covered = (0..runs).filter(|_| {
            let sample: Vec<f64> = (0..15).map(|_| rng.exponential(1.0)).collect();
            median_estimate(&sample, 0.95).unwrap().interval.contains(median)
        });
        let share = covered.count() as f64 / f64::from(runs);
        assert!((0.955..0.975).contains(&share), "0.965 in theory: {share}");
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(
            sample in proptest::collection::vec(-1e9..1e9_f64, 1..80),
            level in 0.5..1.0_f64,
        ) {
            let estimate = median_estimate(&sample, level).unwrap();
            prop_assert!(estimate.interval.contains(estimate.value));
            let most = 1.0 - 2.0 * 0.5_f64.powi(sample.len() as i32);
            prop_assert!(estimate.interval.level >= level.min(most) - 1e-12);
        }
    }
}
