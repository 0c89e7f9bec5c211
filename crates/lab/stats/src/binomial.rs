//! The exact interval of a proportion: how often did the placebo rung win?

use statrs::function::beta::beta_reg;

use crate::error::{StatsError, probability};
use crate::interval::{Estimate, Interval};

/// The share of successes with its Clopper-Pearson interval (Biometrika 1934), which covers at least as
/// often as it says for every true share. With no trials at all the share is taken as 0 and the interval is
/// everything.
///
/// # Errors
/// [`StatsError::MoreThanAll`] for more successes than trials, [`StatsError::NotAProbability`] for a level
/// outside (0, 1).
pub fn clopper_pearson(successes: u64, trials: u64, level: f64) -> Result<Estimate, StatsError> {
    let tail = (1.0 - probability("level", level)?) / 2.0;
    if successes > trials {
        return Err(StatsError::MoreThanAll { successes, trials });
    }
    let (hits, misses) = (successes as f64, (trials - successes) as f64);
    let low = if successes == 0 { 0.0 } else { beta_quantile(hits, misses + 1.0, tail) };
    let high = if successes == trials { 1.0 } else { beta_quantile(hits + 1.0, misses, 1.0 - tail) };
    let value = if trials == 0 { 0.0 } else { hits / trials as f64 };
    Ok(Estimate { value, interval: Interval { low, high, level } })
}

/// The quantile of a beta distribution by bisection: the library's own inverse is off in the seventh digit
/// for small shares.
fn beta_quantile(a: f64, b: f64, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if beta_reg(a, b, middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rule_of_three() {
        let placebo = clopper_pearson(0, 60, 0.90).unwrap();
        assert_eq!(placebo.interval.low, 0.0);
        assert!((placebo.interval.high - (1.0 - 0.05f64.powf(1.0 / 60.0))).abs() < 1e-12);
        assert_eq!(
            clopper_pearson(0, 0, 0.95).unwrap().interval,
            Interval { low: 0.0, high: 1.0, level: 0.95 }
        );
        assert!(clopper_pearson(3, 2, 0.95).is_err());
        assert!(clopper_pearson(1, 2, 95.0).is_err());
    }

    proptest! {
        #[test]
        fn failures_are_the_mirror_of_successes(trials in 1u64..400, share in 0.0..=1.0f64) {
            let successes = (share * trials as f64) as u64;
            let hits = clopper_pearson(successes, trials, 0.95).unwrap();
            let misses = clopper_pearson(trials - successes, trials, 0.95).unwrap();
            prop_assert!((hits.interval.low - (1.0 - misses.interval.high)).abs() < 1e-9);
            prop_assert!(hits.interval.contains(hits.value));
        }
    }
}
