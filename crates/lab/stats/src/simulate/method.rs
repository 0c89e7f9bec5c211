//! Ways to compare two arms, ours and those in use.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::host::TRIALS;
use crate::Rng;
use crate::sequential::{Conclusion, Decision, Sequential};
use crate::signed_rank::SignedRank;
use crate::spending::Design;
use crate::summary::{Better, mean, standard_deviation};
use crate::walsh::hodges_lehmann;

pub(super) const PAIRS: usize = TRIALS / 2;
const ALPHA: f64 = 0.05;
pub(super) const MIN_GAIN: f64 = 0.01;

/// A way to decide whether an arm pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All baseline trials, then all arm trials; keep what is more than 1 % better on average.
    BeforeAfterMeans,
    /// The same order, Welch's t test at 0.05: what hyperfine's own script does.
    BlocksWelch,
    /// Pairs in the fixed order ABAB, signed-rank test at 0.05.
    FixedOrder,
    /// Pairs ordered by coin, signed-rank test at 0.05 after the last pair.
    CoinFixedLength,
    /// The same test after every fourth pair, stopping at the first success.
    CoinPeeking,
    /// Pairs ordered by coin, signed-rank test at six looks that share 0.05, futility: [`Sequential`].
    Choice,
}

/// What a method said after one experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// It would keep the arm.
    pub keep: bool,
    /// It says that the arms differ, either way.
    pub any: bool,
    /// Pair log that it would report.
    pub log: f64,
    /// Trials used.
    pub trials: usize,
}

impl Method {
    /// All methods, in the order of the table.
    pub const ALL: [Method; 6] = [
        Method::BeforeAfterMeans,
        Method::BlocksWelch,
        Method::FixedOrder,
        Method::CoinFixedLength,
        Method::CoinPeeking,
        Method::Choice,
    ];

    /// First column of the table.
    pub fn name(self) -> &'static str {
        match self {
            Method::BeforeAfterMeans => "before/after means, keep if > 1 % better",
            Method::BlocksWelch => "before/after blocks, Welch (hyperfine style)",
            Method::FixedOrder => "fixed ABAB pairs, signed rank",
            Method::CoinFixedLength => "coin-flip pairs, signed rank, fixed length",
            Method::CoinPeeking => "... and a look after every 4 pairs",
            Method::Choice => "planish: coin flip, signed rank, 6 spent looks, futility 1 %",
        }
    }

    /// Runs the method on a host trace of [`TRIALS`] log costs, with an arm that is better by the pair log
    /// `effect`.
    pub fn run(self, trace: &[f64], effect: f64, rng: &mut Rng) -> Claim {
        match self {
            Method::BeforeAfterMeans => {
                let (before, after) = blocks(trace, effect, PAIRS);
                let log = mean(&before) - mean(&after);
                Claim { keep: log > MIN_GAIN, any: log.abs() > MIN_GAIN, log, trials: TRIALS }
            }
            Method::BlocksWelch => {
                let (before, after) = blocks(trace, effect, PAIRS);
                by_p(mean(&before) - mean(&after), welch(&before, &after), TRIALS)
            }
            Method::FixedOrder => by_signed_rank(&pairs(trace, effect, |_| false)),
            Method::CoinFixedLength => by_signed_rank(&pairs(trace, effect, |_| rng.coin())),
            Method::CoinPeeking => {
                let logs = pairs(trace, effect, |_| rng.coin());
                let looks = (8..=PAIRS).step_by(4).map(|taken| by_signed_rank(&logs[..taken]));
                looks.reduce(|last, next| if last.any { last } else { next }).expect("there is a first look")
            }
            Method::Choice => choice(&pairs(trace, effect, |_| rng.coin()), ALPHA),
        }
    }
}

/// Costs of `each` baseline trials followed by `each` arm trials.
pub(super) fn blocks(trace: &[f64], effect: f64, each: usize) -> (Vec<f64>, Vec<f64>) {
    (trace[..each].to_vec(), trace[each..2 * each].iter().map(|cost| cost - effect).collect())
}

/// Pair logs of consecutive trials; the arm goes first where `arm_first` says so.
pub(super) fn pairs(trace: &[f64], effect: f64, mut arm_first: impl FnMut(usize) -> bool) -> Vec<f64> {
    let of_pair = |(index, costs): (usize, &[f64])| {
        let second_better = costs[0] - costs[1];
        effect + if arm_first(index) { -second_better } else { second_better }
    };
    trace.chunks_exact(2).enumerate().map(of_pair).collect()
}

/// The product's own procedure on pairs that are already there.
pub(super) fn choice(logs: &[f64], alpha: f64) -> Claim {
    let end = conclude(logs, alpha);
    let effect = end.effect.expect("a trial with pairs has an estimate");
    Claim {
        keep: end.verdict == crate::Verdict::Keep,
        any: end.differs(),
        log: effect.value,
        trials: 2 * end.pairs,
    }
}

fn conclude(logs: &[f64], alpha: f64) -> Conclusion {
    let min_gain = Better::Lower.log_gain(MIN_GAIN).expect("one percent has a logarithm");
    let design = Design::new(PAIRS, alpha, min_gain).expect("32 pairs suffice for every alpha in use");
    let mut trial = Sequential::new(design, Vec::new());
    for &log in logs {
        if trial.push(log, &[]).expect("simulated logs are finite") != Decision::Continue {
            break;
        }
    }
    trial.close().clone()
}

fn by_signed_rank(logs: &[f64]) -> Claim {
    let log = hodges_lehmann(logs).expect("there are pairs");
    by_p(log, SignedRank::new(logs).two_sided(), 2 * logs.len())
}

pub(super) fn by_p(log: f64, p: f64, trials: usize) -> Claim {
    let any = p <= ALPHA;
    Claim { keep: any && log > 0.0, any, log, trials }
}

/// Two-sided p-value of Welch's unequal-variances t test.
pub(super) fn welch(one: &[f64], two: &[f64]) -> f64 {
    let error = |sample: &[f64]| standard_deviation(sample).powi(2) / sample.len() as f64;
    let (error_one, error_two) = (error(one), error(two));
    let weight = |sample: &[f64], error: f64| error * error / (sample.len() as f64 - 1.0);
    let freedom = (error_one + error_two).powi(2) / (weight(one, error_one) + weight(two, error_two));
    let t = (mean(one) - mean(two)) / (error_one + error_two).sqrt();
    let student = StudentsT::new(0.0, 1.0, freedom).expect("samples vary, so freedom is above zero");
    2.0 * student.sf(t.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_cancel_what_both_trials_share() {
        let mut trace = vec![0.0; TRIALS];
        trace.iter_mut().enumerate().for_each(|(slot, cost)| *cost = (slot / 2) as f64);
        assert!(pairs(&trace, 0.03, |pair| pair % 3 == 0).iter().all(|log| *log == 0.03));
        let (before, after) = blocks(&trace, 0.5, 2);
        assert_eq!((before, after), (vec![0.0, 0.0], vec![0.5, 0.5]));
    }

    #[test]
    fn welch_knows_a_textbook_case() {
        // scipy.stats.ttest_ind([1, 2, 3, 4], [2, 4, 6, 9], equal_var=False)
        let p = welch(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 6.0, 9.0]);
        assert!((p - 0.164_702_079_627_808_06).abs() < 1e-9, "{p}");
    }
}
