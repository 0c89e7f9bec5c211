//! When a trial may look, and how much of its error each look may spend.
//!
//! Looking after every pair and stopping at the first good moment is how honest people fool themselves:
//! fifteen claims in a hundred where five were promised. So the looks are planned, at most six of them, and
//! the error is shared out: after a fraction t of the pairs at most alpha t^1.5 may be spent (the power
//! family of Kim and DeMets, 1987). A look that cannot spend all of its share, because the tail of a rank
//! test moves in steps, leaves the rest to the next one.
//!
//! ```text
//! pairs            8      12      16      20      24      32
//! t^1.5         .125    .230    .354    .494    .650   1.000
//! ```
//! The second row is the share of the keep side, alpha / 2, that may be spent by then.
//!
//! The shares are added up (a union bound), so the promise holds for every dependence between looks, and
//! for ties.
//!
//! Whether a guard holds is asked at the same looks, and the first that finds gain and guards together keeps. So its
//! error, [`GUARD_ERROR`], is shared out alike, for each guard by itself.

use serde::Serialize;

use crate::error::{StatsError, finite, probability};
use crate::walsh::pairs_for_tail;

/// The looks of a trial of 32 pairs; longer trials look at the same fractions.
pub const LOOKS: [usize; 6] = [8, 12, 16, 20, 24, 32];

/// Pairs below which a confirmation does not look.
pub const CONFIRMATION_PAIRS_MIN: usize = 12;

/// Two-sided significance of a single question, of a confirmation for one.
pub const ALPHA: f64 = 0.05;

/// One-sided error of a guard over all looks: how often a metric that is worse by just more than its margin is called
/// held.
pub const GUARD_ERROR: f64 = 0.05;

const PAIRS_CANONICAL: usize = LOOKS[LOOKS.len() - 1];
const POWER: f64 = 1.5;

/// What is fixed before the first pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Design {
    looks: Vec<usize>,
    alpha: f64,
    min_gain: f64,
    pairs_min: usize,
}

impl Design {
    /// A trial of at most `pairs_max` pairs at two-sided significance `alpha` (see
    /// [`crate::ladder::rung_alpha`]) that keeps nothing whose estimate is below `min_gain`, a pair log
    /// ([`crate::Better::log_gain`]).
    ///
    /// Up to 32 pairs the looks are those of [`LOOKS`] that fit, and one at the end. Trials of short slices
    /// afford more pairs: they look at the same fractions of their length, so 320 pairs look at 80, 120,
    /// 160, 200, 240 and 320.
    ///
    /// # Errors
    /// [`StatsError::TooFewPairs`] when not even unanimous pairs could be significant; others for numbers
    /// out of range.
    pub fn new(pairs_max: usize, alpha: f64, min_gain: f64) -> Result<Design, StatsError> {
        finite("min_gain", min_gain)?;
        let needed = pairs_for_tail(probability("alpha", alpha)? / 2.0);
        if pairs_max < needed {
            return Err(StatsError::TooFewPairs { pairs: pairs_max, needed, alpha });
        }
        Ok(Design { looks: planned_looks(pairs_max), alpha, min_gain, pairs_min: 0 })
    }

    /// The fresh run that a kept arm must pass: the same machinery, and no look before
    /// [`CONFIRMATION_PAIRS_MIN`] pairs, nor a keep where the time is out before. A shorter `pairs_max` is raised to
    /// that. Its `alpha` is [`ALPHA`] where
    /// pairs of the same kind have kept the arm before, since it then asks one question.
    ///
    /// # Errors
    /// As [`Design::new`].
    pub fn confirmation(pairs_max: usize, alpha: f64, min_gain: f64) -> Result<Design, StatsError> {
        let mut design = Design::new(pairs_max.max(CONFIRMATION_PAIRS_MIN), alpha, min_gain)?;
        design.looks.retain(|&look| look >= CONFIRMATION_PAIRS_MIN);
        design.pairs_min = CONFIRMATION_PAIRS_MIN;
        Ok(design)
    }

    /// The same without its looks before so many pairs, or with the last one alone where it has fewer: for an interval
    /// that is to be narrow, and not only clear of zero. The error of a look that is not taken is not spent.
    #[must_use]
    pub fn looking_from(mut self, pairs: usize) -> Design {
        let least = pairs.min(self.pairs_max());
        self.looks.retain(|&look| look >= least);
        self
    }

    /// Numbers of pairs at which the trial looks, ascending.
    pub fn looks(&self) -> &[usize] {
        &self.looks
    }

    /// Pairs at the last look.
    pub fn pairs_max(&self) -> usize {
        *self.looks.last().expect("a design has a last look")
    }

    /// Pairs below which nothing is kept, whatever they show.
    pub fn pairs_min(&self) -> usize {
        self.pairs_min
    }

    /// Two-sided significance over all looks.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Smallest pair log worth keeping.
    pub fn min_gain(&self) -> f64 {
        self.min_gain
    }

    /// One-sided error that may be spent on keeping by the time `pairs` pairs are in.
    pub fn budget(&self, pairs: usize) -> f64 {
        self.alpha / 2.0 * self.share(pairs)
    }

    /// One-sided error that may be spent on calling one guard held by the time `pairs` pairs are in. It is never less
    /// than [`Design::budget`] at the usual alphas, so that pairs which can keep an arm can hold its guards.
    pub fn guard_budget(&self, pairs: usize) -> f64 {
        GUARD_ERROR * self.share(pairs)
    }

    /// Share of an error that may be spent by then.
    fn share(&self, pairs: usize) -> f64 {
        (pairs.min(self.pairs_max()) as f64 / self.pairs_max() as f64).powf(POWER)
    }
}

fn planned_looks(pairs_max: usize) -> Vec<usize> {
    if pairs_max > PAIRS_CANONICAL {
        return LOOKS.iter().map(|look| (look * pairs_max).div_ceil(PAIRS_CANONICAL)).collect();
    }
    LOOKS.into_iter().filter(|&look| look < pairs_max).chain([pairs_max]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn looks_fit_the_length() {
        let looks = |pairs_max| Design::new(pairs_max, 0.05, 0.01).unwrap().looks().to_vec();
        assert_eq!(looks(32), LOOKS);
        assert_eq!(looks(16), [8, 12, 16]);
        assert_eq!(looks(14), [8, 12, 14]);
        assert_eq!(looks(6), [6]);
        assert_eq!(looks(320), [80, 120, 160, 200, 240, 320]);
        assert_eq!(looks(48), [12, 18, 24, 30, 36, 48]);
        assert_eq!(Design::confirmation(32, ALPHA, 0.01).unwrap().looks(), [12, 16, 20, 24, 32]);
        assert_eq!(Design::confirmation(4, ALPHA, 0.01).unwrap().looks(), [12]);
        let from = |pairs| Design::new(32, 0.05, 0.01).unwrap().looking_from(pairs).looks().to_vec();
        assert_eq!((from(0), from(21), from(33)), (LOOKS.to_vec(), vec![24, 32], vec![32]));
    }

    #[test]
    fn hopeless_designs_are_refused() {
        assert_eq!(
            Design::new(5, 0.05, 0.01),
            Err(StatsError::TooFewPairs { pairs: 5, needed: 6, alpha: 0.05 })
        );
        assert!(Design::new(32, 5.0, 0.01).is_err());
        assert!(Design::new(32, 0.05, f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn the_budget_grows_to_alpha(pairs_max in 8usize..500, alpha in 0.01..0.5f64) {
            let design = Design::new(pairs_max, alpha, 0.0).unwrap();
            prop_assert!(design.looks().len() <= 6);
            prop_assert!(design.looks().is_sorted_by(|a, b| a < b));
            let budgets: Vec<f64> = design.looks().iter().map(|&look| design.budget(look)).collect();
            prop_assert!(budgets.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(design.budget(pairs_max), alpha / 2.0);
            prop_assert_eq!(design.guard_budget(pairs_max), GUARD_ERROR);
        }
    }
}
