//! Direction of a metric, and the plain descriptions of a sample.

use serde::{Deserialize, Serialize};

use crate::error::{StatsError, positive};

/// Which way a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Time, CPU, memory, misses.
    Lower,
    /// Throughput, hit rate.
    Higher,
}

impl Better {
    /// The pair log of two trials: `ln(baseline / arm)` where lower is better, `ln(arm / baseline)` where
    /// higher is, so that positive is always a gain. Swapping the arms flips the sign to the last bit, and
    /// equal ratios give equal logs, so that ties of coarse metrics stay ties.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] or [`StatsError::NotPositive`] for a value without a logarithm.
    pub fn pair_log(self, baseline: f64, arm: f64) -> Result<f64, StatsError> {
        let (baseline, arm) = (positive("baseline", baseline)?, positive("arm", arm)?);
        let (over, under) = match self {
            Better::Lower => (baseline, arm),
            Better::Higher => (arm, baseline),
        };
        Ok(if over >= under { (over / under).ln() } else { -(under / over).ln() })
    }

    /// The gain that people read, as a fraction of the baseline: 3 % less time is 0.03, 3 % more throughput
    /// is 0.03. Increasing, so it maps the ends of intervals too.
    pub fn gain(self, log: f64) -> f64 {
        match self {
            Better::Lower => -(-log).exp_m1(),
            Better::Higher => log.exp_m1(),
        }
    }

    /// The pair log of a fractional gain: the inverse of [`Better::gain`]. A loss is a negative gain: a p99
    /// that may grow by 3 % has its floor at `Lower.log_gain(-0.03)`.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] for a gain that no metric can have: all of the time, or a throughput below
    /// nothing.
    pub fn log_gain(self, gain: f64) -> Result<f64, StatsError> {
        let log = match self {
            Better::Lower => -(-gain).ln_1p(),
            Better::Higher => gain.ln_1p(),
        };
        if log.is_finite() {
            Ok(log)
        } else {
            Err(StatsError::NotFinite { what: "log of the gain", value: log })
        }
    }
}

/// Mean; NaN for an empty sample.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// Standard deviation with divisor n - 1; NaN below two values.
pub fn standard_deviation(sample: &[f64]) -> f64 {
    let centre = mean(sample);
    let squares: f64 = sample.iter().map(|x| (x - centre).powi(2)).sum();
    (squares / (sample.len() as f64 - 1.0)).sqrt()
}

/// The quantile of order `share` in `[0, 1]`, of type 7 in the list of Hyndman and Fan (1996): linear
/// between the order statistics, minimum at 0 and maximum at 1; the default of R and NumPy. NaN for an
/// empty sample.
pub fn quantile(sample: &[f64], share: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, share)
}

/// [`quantile`] of a sample that is already in ascending order.
pub fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

/// Median; NaN for an empty sample.
pub fn median(sample: &[f64]) -> f64 {
    quantile(sample, 0.5)
}

/// Interquartile range.
pub fn iqr(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, 0.75) - quantile_of_sorted(&sorted, 0.25)
}

/// Standard deviation as the median absolute deviation sees it: 1.4826 MAD, equal to sigma for a normal
/// sample and deaf to spikes.
pub fn robust_sigma(sample: &[f64]) -> f64 {
    let centre = median(sample);
    let deviations: Vec<f64> = sample.iter().map(|x| (x - centre).abs()).collect();
    1.4826 * median(&deviations)
}

/// Pearson's correlation of pairs of values; 0 where one side is constant, NaN below two pairs.
pub fn correlation(pairs: &[(f64, f64)]) -> f64 {
    if pairs.len() < 2 {
        return f64::NAN;
    }
    let (ones, others): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (centre, other_centre) = (mean(&ones), mean(&others));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|&(one, other)| of(one - centre, other - other_centre)).sum()
    };
    let squares = sum(&|one, _| one * one) * sum(&|_, other| other * other);
    if squares > 0.0 { sum(&|one, other| one * other) / squares.sqrt() } else { 0.0 }
}

/// Correlation of neighbours in the given order; 0 for a constant sample, NaN below two values.
pub fn autocorrelation_lag1(sample: &[f64]) -> f64 {
    if sample.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(sample);
    let squares: f64 = sample.iter().map(|x| (x - centre).powi(2)).sum();
    let products: f64 = sample.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_type_seven() {
        let sample = [7.0, 1.0, 3.0, 10.0];
        assert_eq!(quantile(&sample, 0.0), 1.0);
        assert_eq!(quantile(&sample, 0.25), 2.5);
        assert_eq!(median(&sample), 5.0);
        assert_eq!(quantile(&sample, 1.0), 10.0);
        assert_eq!(iqr(&sample), 7.75 - 2.5);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn spread_of_small_samples() {
        assert_eq!(standard_deviation(&[1.0, 3.0]), 2f64.sqrt());
        assert!(standard_deviation(&[1.0]).is_nan());
        assert_eq!(robust_sigma(&[1.0, 2.0, 3.0, 4.0, 100.0]), 1.4826);
        assert_eq!(autocorrelation_lag1(&[2.0, 2.0, 2.0]), 0.0);
        assert!(autocorrelation_lag1(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) > 0.4);
        assert!(autocorrelation_lag1(&[1.0, -1.0, 1.0, -1.0]) < -0.7);
    }

    #[test]
    fn gains_read_as_people_say_them() {
        let log = Better::Lower.pair_log(100.0, 97.0).unwrap();
        assert!((Better::Lower.gain(log) - 0.03).abs() < 1e-12);
        let log = Better::Higher.pair_log(100.0, 103.0).unwrap();
        assert!((Better::Higher.gain(log) - 0.03).abs() < 1e-12);
        assert!(Better::Lower.log_gain(1.0).is_err());
        assert!(Better::Higher.log_gain(-1.5).is_err());
        assert_eq!(
            Better::Lower.pair_log(0.0, 1.0),
            Err(StatsError::NotPositive { what: "baseline", value: 0.0 })
        );
        assert!(Better::Lower.pair_log(1.0, f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn swapping_the_arms_flips_the_sign(a in 1e-9..1e12f64, b in 1e-9..1e12f64) {
            for better in [Better::Lower, Better::Higher] {
                prop_assert_eq!(better.pair_log(a, b).unwrap(), -better.pair_log(b, a).unwrap());
            }
            prop_assert_eq!(Better::Lower.pair_log(a, b), Better::Higher.pair_log(b, a));
        }

        #[test]
        fn the_unit_of_a_metric_does_not_matter(a in 1e-3..1e6f64, b in 1e-3..1e6f64, unit in 1e-6..1e6f64) {
            let plain = Better::Lower.pair_log(a, b).unwrap();
            let scaled = Better::Lower.pair_log(a * unit, b * unit).unwrap();
            prop_assert!((plain - scaled).abs() < 1e-12);
        }

        #[test]
        fn gain_and_log_gain_are_inverse(gain in -0.9..0.9f64) {
            for better in [Better::Lower, Better::Higher] {
                prop_assert!((better.gain(better.log_gain(gain).unwrap()) - gain).abs() < 1e-12);
            }
        }

        #[test]
        fn quantiles_grow_with_their_order(
            sample in prop::collection::vec(-1e6..1e6f64, 1..40), a in 0.0..1.0f64, b in 0.0..1.0f64,
        ) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(quantile(&sample, low) <= quantile(&sample, high));
        }
    }
}
