//! Several arms at once: what each rung may spend, and in which order arms run.
//!
//! The order is drawn before its pair or block starts, from a seed that the record keeps. That coin is the
//! whole justification of the test: a fixed order, even ABBA, is biased by whatever else happens every
//! second or fourth trial.

use serde::{Deserialize, Serialize};

use crate::Rng;
use crate::spending::ALPHA;

/// How much error a ladder may make in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strictness {
    /// A false keep anywhere in the ladder in at most 5 of 100 ladders (two-sided 0.10): right where undo
    /// is cheap.
    #[default]
    Usual,
    /// At most 2.5 of 100 (two-sided 0.05): for figures that get published.
    Strict,
}

/// The two-sided significance of one rung among `rungs` planned ones (Bonferroni), the placebo counted. One
/// rung alone never gets more than 0.05.
pub fn rung_alpha(rungs: usize, strictness: Strictness) -> f64 {
    let whole = match strictness {
        Strictness::Usual => 0.10,
        Strictness::Strict => 0.05,
    };
    (whole / rungs.max(1) as f64).min(ALPHA)
}

/// Who goes first in a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairOrder {
    /// Baseline, then arm.
    BaselineFirst,
    /// Arm, then baseline.
    ArmFirst,
}

/// The source of all orders of one trial.
#[derive(Clone, Debug)]
pub struct Orders {
    seed: u64,
    rng: Rng,
}

impl Orders {
    /// Orders of a seed; the same seed gives the same orders for ever.
    pub fn new(seed: u64) -> Orders {
        Orders { seed, rng: Rng::new(seed) }
    }

    /// The seed, for the record.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The coin of the next pair.
    pub fn pair(&mut self) -> PairOrder {
        if self.rng.coin() { PairOrder::ArmFirst } else { PairOrder::BaselineFirst }
    }

    /// The order of the next complete block: a random permutation of the arms `0..arms`.
    pub fn block(&mut self, arms: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..arms).collect();
        self.rng.shuffle(&mut order);
        order
    }

    /// A place among `places`, each as likely as the others: where a ladder that is climbed rung by rung hides its
    /// placebo.
    ///
    /// # Panics
    /// There is no place to choose from.
    pub fn place(&mut self, places: usize) -> usize {
        self.rng.below(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_shared_among_the_rungs() {
        assert_eq!(rung_alpha(8, Strictness::Usual), 0.0125);
        assert_eq!(rung_alpha(8, Strictness::Strict), 0.00625);
        assert_eq!(rung_alpha(1, Strictness::Usual), 0.05);
        assert_eq!(rung_alpha(0, Strictness::Strict), 0.05);
    }

    #[test]
    fn a_stored_seed_gives_back_its_orders() {
        let mut orders = Orders::new(42);
        let flips: Vec<bool> = (0..12).map(|_| orders.pair() == PairOrder::ArmFirst).collect();
        let blocks: Vec<Vec<usize>> = (0..3).map(|_| orders.block(5)).collect();
        assert_eq!(orders.seed(), 42);
        let heads: String = flips.iter().map(|&head| if head { '1' } else { '0' }).collect();
        assert_eq!(heads, "101111010111");
        assert_eq!(blocks, [[2, 0, 3, 4, 1], [0, 3, 4, 2, 1], [4, 0, 2, 3, 1]]);
    }

    #[test]
    fn every_place_in_a_block_is_equally_likely() {
        let mut orders = Orders::new(1);
        let mut first = [0; 4];
        for _ in 0..4000 {
            first[orders.block(4)[0]] += 1;
        }
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
        let mut hidden = [0; 9];
        for _ in 0..9000 {
            hidden[orders.place(9)] += 1;
        }
        assert!(hidden.iter().all(|count| (900..1100).contains(count)), "{hidden:?}");
    }
}
