//! Wilcoxon's signed-rank test, exact.
//!
//! Under "no effect" the sign of each pair log is the coin that ordered the pair, whatever drift, spikes or
//! position did to its size. So, given the sizes, every pattern of signs is equally likely, and the sum of
//! the ranks of the positive pairs has a distribution that can be counted: each rank is in or out by a fair
//! coin.
//!
//! ```text
//! pair logs    +0.031  -0.004  +0.012  +0.012      sizes ranked, ties share their mean rank
//! ranks           4       1      2.5     2.5       sum of the positive ones: W+ = 9
//! P(W+ >= 9) = 2/16                                counted over the 16 patterns of signs
//! ```
//!
//! Ties get midranks and stay exact: ranks are counted in halves when they have to be. Zeros follow Pratt
//! (1959): they are ranked with the others, then their ranks are left out, so a metric too coarse to tell
//! the arms apart costs power and never validity, and the test agrees with the Walsh averages of
//! [`crate::walsh`].

use statrs::distribution::{ContinuousCDF, Normal};

/// Largest sample with an exact null distribution; above it the normal approximation with continuity
/// correction is used. The exact one costs n^3 / 2 additions (n^3 with ties), a few hundredths of a second,
/// and by then the two differ by less than 3 % of any tail between 0.001 and 0.05.
pub const EXACT_PAIRS_MAX: usize = 400;

/// The null distribution of a sum of ranks, each taken by a fair coin.
#[derive(Clone, Debug)]
pub(crate) enum Null {
    /// `upper[w]` is P(W >= w), for w in `0..=total + 1`. Sums of at most 53 ranks are exact to the last
    /// bit, longer ones to about 1e-13 of their value: all terms are positive and halving is exact.
    Exact { upper: Vec<f64> },
    /// Moments of the same sum.
    Normal { mean: f64, sd: f64 },
}

impl Null {
    /// The distribution for `pairs` sizes without ties: ranks 1 to n.
    pub(crate) fn untied(pairs: usize) -> Null {
        Null::of_ranks(&(1..=pairs).collect::<Vec<_>>())
    }

    fn of_ranks(ranks: &[usize]) -> Null {
        let total: usize = ranks.iter().sum();
        if ranks.len() > EXACT_PAIRS_MAX {
            let squares: f64 = ranks.iter().map(|&rank| (rank as f64).powi(2)).sum();
            return Null::Normal { mean: total as f64 / 2.0, sd: squares.sqrt() / 2.0 };
        }
        let mut chance = vec![0.0; total + 1];
        chance[0] = 1.0;
        let mut reached = 0;
        for &rank in ranks {
            reached += rank;
            for sum in (rank..=reached).rev() {
                chance[sum] = 0.5 * (chance[sum] + chance[sum - rank]);
            }
            chance[..rank].iter_mut().for_each(|chance| *chance *= 0.5);
        }
        // From the far end, so that small tails are sums of small terms.
        let mut upper = chance;
        upper.push(0.0);
        for sum in (0..=total).rev() {
            upper[sum] += upper[sum + 1];
        }
        Null::Exact { upper }
    }

    /// P(W >= sum).
    pub(crate) fn upper_tail(&self, sum: usize) -> f64 {
        match self {
            Null::Exact { upper } => upper.get(sum).copied().unwrap_or(0.0),
            Null::Normal { mean, sd } => Normal::standard().sf((sum as f64 - 0.5 - mean) / sd),
        }
    }

    /// The smallest sum whose upper tail is at most `tail`, and that tail: what a test of this size really
    /// spends. When even the largest sum is too likely, the sum is out of reach and the tail 0.
    pub(crate) fn reject_from(&self, tail: f64) -> (usize, f64) {
        let sum = match self {
            Null::Exact { upper } => upper.partition_point(|&chance| chance > tail),
            Null::Normal { mean, sd } => {
                (mean + 0.5 - Normal::standard().inverse_cdf(tail) * sd).ceil() as usize
            }
        };
        (sum, self.upper_tail(sum))
    }
}

/// The signed-rank test of one sample of pair logs.
#[derive(Clone, Debug)]
pub struct SignedRank {
    null: Null,
    /// Sum of the positive ranks, and of all ranks that have a sign, in units of `1 / per_rank`.
    plus: usize,
    total: usize,
    per_rank: usize,
    /// No ties and no zeros: the ranks are 1 to n.
    untied: bool,
}

impl SignedRank {
    /// Ranks the sample. Sizes tie when they are equal to the last bit; [`crate::Better::pair_log`] sees to
    /// it that equal ratios are.
    pub fn new(logs: &[f64]) -> SignedRank {
        let (mut ranks, positive) = doubled_midranks(logs);
        // Without ties every doubled rank is even, and the distribution is half as long.
        let per_rank = if ranks.iter().all(|rank| rank % 2 == 0) { 1 } else { 2 };
        if per_rank == 1 {
            ranks.iter_mut().for_each(|rank| *rank /= 2);
        }
        let plus = ranks.iter().zip(&positive).filter(|(_, positive)| **positive).map(|(rank, _)| rank).sum();
        let untied = ranks.iter().copied().eq(1..=logs.len());
        SignedRank { null: Null::of_ranks(&ranks), plus, total: ranks.iter().sum(), per_rank, untied }
    }

    /// The null distribution, if it is the tie-free one of the whole sample: distributions are the costly part.
    pub(crate) fn untied(&self) -> Option<&Null> {
        self.untied.then_some(&self.null)
    }

    /// W+, the sum of the ranks of the positive pair logs.
    pub fn statistic(&self) -> f64 {
        self.plus as f64 / self.per_rank as f64
    }

    /// P(W+ this large or larger | no effect): small when the arm is better.
    pub fn upper_tail(&self) -> f64 {
        self.null.upper_tail(self.plus)
    }

    /// P(W+ this small or smaller | no effect): small when the arm is worse.
    pub fn lower_tail(&self) -> f64 {
        self.null.upper_tail(self.total - self.plus)
    }

    /// The two-sided p-value: twice the smaller tail, at most 1.
    pub fn two_sided(&self) -> f64 {
        (2.0 * self.upper_tail().min(self.lower_tail())).min(1.0)
    }

    /// The largest tail probability not above `tail` that this sample can have, given its ties: what a
    /// one-sided test at `tail` really spends.
    pub fn attainable(&self, tail: f64) -> f64 {
        self.null.reject_from(tail).1
    }
}

/// Twice the midrank of every nonzero size, and whether its sign is positive; zeros hold their ranks and
/// are then left out.
fn doubled_midranks(logs: &[f64]) -> (Vec<usize>, Vec<bool>) {
    let mut sizes: Vec<(f64, bool)> = logs.iter().map(|&log| (log.abs(), log > 0.0)).collect();
    sizes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = Vec::with_capacity(sizes.len());
    let mut signs = Vec::with_capacity(sizes.len());
    let mut before = 0;
    for tied in sizes.chunk_by(|a, b| a.0 == b.0) {
        if tied[0].0 != 0.0 {
            ranks.extend(tied.iter().map(|_| 2 * before + tied.len() + 1));
            signs.extend(tied.iter().map(|(_, positive)| *positive));
        }
        before += tied.len();
    }
    (ranks, signs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

    /// P(W+ >= observed) by going through all patterns of signs.
    fn enumerated(logs: &[f64]) -> f64 {
        let (ranks, signs) = doubled_midranks(logs);
        let sum_of = |taken: &dyn Fn(usize) -> bool| -> usize {
            ranks.iter().enumerate().filter(|(index, _)| taken(*index)).map(|(_, rank)| rank).sum()
        };
        let observed = sum_of(&|index| signs[index]);
        let patterns = 1usize << ranks.len();
        let as_large = (0..patterns).filter(|p| sum_of(&|index| p >> index & 1 == 1) >= observed).count();
        as_large as f64 / patterns as f64
    }

    #[test]
    fn the_example_of_the_module_head() {
        let test = SignedRank::new(&[0.031, -0.004, 0.012, 0.012]);
        assert_eq!(test.statistic(), 9.0);
        assert_eq!(test.upper_tail(), 2.0 / 16.0);
        assert_eq!(test.two_sided(), 0.25);
    }

    #[test]
    fn whole_midranks_are_still_ties() {
        // Three sizes that tie all have rank 2, with the sum of ranks 1 to 3.
        assert!(SignedRank::new(&[1.0, 1.0, -1.0]).untied().is_none());
        assert!(SignedRank::new(&[0.0, 1.0]).untied().is_none());
        assert!(SignedRank::new(&[3.0, 1.0, -2.0]).untied().is_some());
    }

    #[test]
    fn eight_pairs_are_the_first_useful_look() {
        let test = SignedRank::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(test.two_sided(), 2.0 / 256.0);
        assert_eq!(test.attainable(0.025), 5.0 / 256.0);
        assert_eq!(test.attainable(0.003), 0.0);
    }

    #[test]
    fn a_sample_of_zeros_says_nothing() {
        for logs in [&[][..], &[0.0; 9][..], &[-0.0, 0.0][..]] {
            let test = SignedRank::new(logs);
            assert_eq!((test.upper_tail(), test.lower_tail(), test.two_sided()), (1.0, 1.0, 1.0));
        }
    }

    #[test]
    fn the_approximation_takes_over_smoothly() {
        let exact = Null::untied(EXACT_PAIRS_MAX);
        let Null::Exact { upper } = &exact else { panic!("the largest exact sample is approximated") };
        let n = EXACT_PAIRS_MAX as f64;
        let approximate =
            Null::Normal { mean: n * (n + 1.0) / 4.0, sd: (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt() };
        let worst =
            (0..upper.len()).map(|w| (upper[w] - approximate.upper_tail(w)).abs()).fold(0.0, f64::max);
        assert!(worst < 3e-4, "{worst}");
        let stated = |w: &usize| (1e-3..0.05).contains(&upper[*w]);
        let relative = |w| (approximate.upper_tail(w) / upper[w] - 1.0).abs();
        assert!((0..upper.len()).filter(stated).all(|w| relative(w) < 0.03));
        assert!(matches!(Null::untied(EXACT_PAIRS_MAX + 1), Null::Normal { .. }));
        for tail in [0.05, 0.025, 0.001] {
            let (sum, spent) = approximate.reject_from(tail);
            assert!(spent <= tail && approximate.upper_tail(sum - 1) > tail, "{tail}: {sum} {spent}");
        }
    }

    #[test]
    fn coin_flips_reject_as_often_as_stated() {
        // Signs by coin, sizes of any shape and with ties: the stated tail is the true rate.
        let mut rng = Rng::new(11);
        let sizes: Vec<f64> = (0..16).map(|i| f64::from(i / 3) + 0.5).collect();
        let stated = SignedRank::new(&sizes).attainable(0.05);
        let reps = 4000;
        let rejected = (0..reps)
            .filter(|_| {
                let logs: Vec<f64> = sizes.iter().map(|s| if rng.coin() { *s } else { -s }).collect();
                SignedRank::new(&logs).upper_tail() <= 0.05
            })
            .count() as f64;
        let error = (stated * (1.0 - stated) / f64::from(reps)).sqrt();
        assert!((rejected / f64::from(reps) - stated).abs() < 4.0 * error, "{rejected} of {reps}, {stated}");
    }

    proptest! {
        #[test]
        fn tails_are_counted_right(logs in prop::collection::vec((-4i8..=4).prop_map(f64::from), 0..11)) {
            prop_assert_eq!(SignedRank::new(&logs).upper_tail(), enumerated(&logs));
        }

        #[test]
        fn swapping_the_arms_swaps_the_tails(logs in prop::collection::vec(-1.0..1.0f64, 0..40)) {
            let swapped: Vec<f64> = logs.iter().map(|log| -log).collect();
            let (test, mirror) = (SignedRank::new(&logs), SignedRank::new(&swapped));
            prop_assert_eq!(test.upper_tail(), mirror.lower_tail());
            prop_assert_eq!(test.two_sided(), mirror.two_sided());
        }

        #[test]
        fn scale_and_order_do_not_matter(mut logs in prop::collection::vec(-1.0..1.0f64, 1..40)) {
            let before = SignedRank::new(&logs).upper_tail();
            logs.iter_mut().for_each(|log| *log *= 64.0);
            logs.reverse();
            prop_assert_eq!(SignedRank::new(&logs).upper_tail(), before);
        }

        #[test]
        fn what_is_spent_is_never_more_than_allowed(
            logs in prop::collection::vec((-6i8..=6).prop_map(f64::from), 1..30), tail in 0.0001..0.5f64,
        ) {
            prop_assert!(SignedRank::new(&logs).attainable(tail) <= tail);
        }
    }
}
