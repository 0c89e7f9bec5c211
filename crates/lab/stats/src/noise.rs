//! The A/A self-check: both arms are the same, so everything seen is noise.
//!
//! It answers, before any budget is spent: how noisy is this host, which effect could it show, how long
//! would the wanted one take, and is the set-up broken? A passing check does not prove that the set-up is
//! valid; the placebo rung of each ladder goes on asking.

use serde::{Deserialize, Serialize};

use crate::error::{StatsError, positive};
use crate::interval::Estimate;
use crate::ladder::PairOrder;
use crate::summary::{
    Better, autocorrelation_lag1, correlation, mean, median, robust_sigma, standard_deviation,
};
use crate::walsh::{Walsh, normal_quantile, pairs_for_tail};

/// Confidence of the A/A interval and of the position effect: one alarm in a hundred on a sound host.
pub const CHECK_LEVEL: f64 = 0.99;

/// Budgets, in pairs, that the report lists a detectable effect for.
pub const MDE_PAIRS: [usize; 3] = [16, 32, 64];

/// A start that is slower than its neighbours by more robust sigmas than this is a spike.
const SPIKE_SIGMAS: f64 = 3.5;

/// Neighbours on either side that a start is compared with, so that drift is not taken for spikes.
const SPIKE_NEIGHBOURS: usize = 3;

/// What the A/A phase measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Starts {
    /// The primary metric of every start in the order of running; starts 2i and 2i + 1 are pair i. All
    /// above zero.
    pub values: Vec<f64>,
    /// The coin of every pair.
    pub orders: Vec<PairOrder>,
    /// The metric in windows within each start, in the same order; empty when the workload has no windows.
    pub windows: Vec<Vec<f64>>,
    /// Direction of the metric.
    pub better: Better,
}

/// The noise of a host under a workload. All spreads and effects are pair logs or standard deviations of
/// logs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseReport {
    /// Pairs measured.
    pub pairs: usize,
    /// 1.4826 times the median absolute deviation of the pair logs.
    pub sigma_d: f64,
    /// Standard deviation of the metric over its mean.
    pub cv: f64,
    /// Correlation of neighbouring starts.
    pub autocorrelation_lag1: f64,
    /// Correlation of neighbouring starts that belong to different arms. What one arm leaves to the next (scattered
    /// memory, caches) shows here, and so does a mood of the machine: compare it with that of all neighbours.
    pub cross_arm_lag1: f64,
    /// Share of starts that are far slower than their neighbours: by more than 3.5 robust sigmas of a start, which is
    /// 2.5 times `sigma_d`. On a loud host that is a lot, and a pair of a fast and a slow start differs by up to twice
    /// as much with no spike in it.
    pub spike_share: f64,
    /// By how much the second trial of a pair is better than the first.
    pub position: Estimate,
    /// Baseline against itself; its interval ought to hold 0.
    pub aa: Estimate,
    /// Standard deviation between starts, with what varies within them taken off; none without windows.
    pub between_starts: Option<f64>,
    /// Standard deviation between windows of one start; none without windows.
    pub within_starts: Option<f64>,
}

/// Is an experiment on this host worth its time?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum Fitness {
    /// The wanted gain can be shown.
    Ok {
        /// Effect that the budget detects.
        mde: f64,
    },
    /// It cannot, within the budget.
    Noisy {
        /// Effect that the budget detects.
        mde: f64,
        /// Pairs that the wanted gain would take.
        pairs_needed: usize,
    },
    /// Equal arms differ: nothing that this set-up says can be believed.
    Broken,
}

impl NoiseReport {
    /// Describes an A/A phase.
    ///
    /// # Errors
    /// [`StatsError::TooFewPairs`] below the eight pairs that an alarm at [`CHECK_LEVEL`] takes,
    /// [`StatsError::Length`] when lists do not fit together, [`StatsError::NotPositive`] or
    /// [`StatsError::NotFinite`] for a value without a logarithm.
    pub fn new(starts: &Starts) -> Result<NoiseReport, StatsError> {
        let pairs = starts.orders.len();
        let needed = pairs_for_tail((1.0 - CHECK_LEVEL) / 2.0);
        if pairs < needed {
            return Err(StatsError::TooFewPairs { pairs, needed, alpha: 1.0 - CHECK_LEVEL });
        }
        length("starts", starts.values.len(), 2 * pairs)?;
        let second_better: Vec<f64> = starts
            .values
            .chunks_exact(2)
            .map(|pair| starts.better.pair_log(pair[0], pair[1]))
            .collect::<Result<_, _>>()?;
        let pair_logs: Vec<f64> = second_better
            .iter()
            .zip(&starts.orders)
            .map(|(&log, order)| if *order == PairOrder::BaselineFirst { log } else { -log })
            .collect();
        let costs: Vec<f64> = starts
            .values
            .iter()
            .map(|value| if starts.better == Better::Lower { value.ln() } else { -value.ln() })
            .collect();
        let sigma_d = robust_sigma(&pair_logs);
        let spread = components(&starts.windows, starts.values.len())?;
        Ok(NoiseReport {
            pairs,
            sigma_d,
            cv: standard_deviation(&starts.values) / mean(&starts.values),
            autocorrelation_lag1: autocorrelation_lag1(&costs),
            cross_arm_lag1: cross_arm_lag1(&costs, &starts.orders),
            spike_share: spike_share(&costs, sigma_d / 2f64.sqrt()),
            position: estimate(&second_better),
            aa: estimate(&pair_logs),
            between_starts: spread.map(|(between, _)| between),
            within_starts: spread.map(|(_, within)| within),
        })
    }

    /// Whether `pairs_max` pairs at two-sided significance `alpha` can show a gain of `min_gain`, a pair
    /// log.
    pub fn fitness(&self, min_gain: f64, pairs_max: usize, alpha: f64) -> Fitness {
        if !self.aa.interval.contains(0.0) {
            return Fitness::Broken;
        }
        let mde = mde80(self.sigma_d, pairs_max, alpha);
        if mde <= min_gain {
            return Fitness::Ok { mde };
        }
        Fitness::Noisy { mde, pairs_needed: pairs_needed(self.sigma_d, min_gain, alpha) }
    }
}

/// The smallest effect, as a pair log, that a trial of `pairs` pairs finds in 80 of 100 runs:
/// `factor * sigma_d / sqrt(pairs)`.
///
/// For two-sided 0.05 the factor is 5.8 up to 16 pairs, 4.4 from 32 on and a straight line between; other
/// significances scale it with the normal quantiles. Simulated spiky and drifting hosts then show 75 to 85
/// % power from 16 pairs on. A host without spikes does better (3.6); below 16 pairs a spiky one does worse
/// (70 %, and hardly more for larger effects: one spike spoils unanimity).
pub fn mde80(sigma_d: f64, pairs: usize, alpha: f64) -> f64 {
    let few = ((32.0 - pairs as f64) / 16.0).clamp(0.0, 1.0);
    let factor = 4.4 + (5.8 - 4.4) * few;
    let power = normal_quantile(0.80);
    let stricter = (normal_quantile(1.0 - alpha / 2.0) + power) / (normal_quantile(0.975) + power);
    factor * stricter * sigma_d / (pairs as f64).sqrt()
}

/// The fewest pairs whose [`mde80`] is at most `gain`, a pair log above zero; at least as many as can be
/// significant at all. A gain of zero or less can never be shown: `usize::MAX`.
pub fn pairs_needed(sigma_d: f64, gain: f64, alpha: f64) -> usize {
    if gain <= 0.0 {
        return usize::MAX;
    }
    let fewest = pairs_for_tail(alpha / 2.0);
    // Above 32 pairs the factor is constant, so the square root can be solved for.
    let many = (mde80(sigma_d, 32, alpha) / gain).powi(2) * 32.0;
    if many > 32.0 {
        return many.ceil() as usize;
    }
    (fewest..32).find(|&pairs| mde80(sigma_d, pairs, alpha) <= gain).unwrap_or(32.max(fewest))
}

/// Hours that `pairs` pairs take when one trial (revert, apply, start, warm-up, window, stop) takes
/// `trial_seconds`.
pub fn hours(pairs: usize, trial_seconds: f64) -> f64 {
    2.0 * pairs as f64 * trial_seconds / 3600.0
}

fn estimate(logs: &[f64]) -> Estimate {
    Walsh::new(logs).expect("an A/A phase has at least eight pairs").estimate(CHECK_LEVEL)
}

fn length(what: &'static str, given: usize, wanted: usize) -> Result<(), StatsError> {
    if given == wanted { Ok(()) } else { Err(StatsError::Length { what, given, wanted }) }
}

/// Correlation of neighbours of different arms: the two of a pair, and those of two pairs in the same order.
fn cross_arm_lag1(costs: &[f64], orders: &[PairOrder]) -> f64 {
    let is_arm = |start: usize| start.is_multiple_of(2) == (orders[start / 2] == PairOrder::ArmFirst);
    let crossing = (1..costs.len()).filter(|&start| is_arm(start) != is_arm(start - 1));
    let neighbours: Vec<(f64, f64)> = crossing.map(|start| (costs[start - 1], costs[start])).collect();
    correlation(&neighbours)
}

/// Share of log costs that lie far above the median of their neighbourhood.
fn spike_share(costs: &[f64], sigma: f64) -> f64 {
    let spikes = costs.iter().enumerate().filter(|(index, cost)| {
        let around = index.saturating_sub(SPIKE_NEIGHBOURS)..(index + SPIKE_NEIGHBOURS + 1).min(costs.len());
        *cost - median(&costs[around]) > SPIKE_SIGMAS * sigma
    });
    spikes.count() as f64 / costs.len() as f64
}

/// Standard deviations between and within starts, of the logs of the windows: a one-way analysis of
/// variance with random starts.
fn components(windows: &[Vec<f64>], starts: usize) -> Result<Option<(f64, f64)>, StatsError> {
    if windows.iter().all(|of_start| of_start.len() < 2) {
        return Ok(None);
    }
    length("starts with windows", windows.len(), starts)?;
    let mut logs = Vec::with_capacity(windows.len());
    for of_start in windows {
        let of_start = of_start.iter().map(|&value| Ok(positive("window", value)?.ln()));
        logs.push(of_start.collect::<Result<Vec<f64>, StatsError>>()?);
    }
    logs.retain(|of_start| !of_start.is_empty());
    let centres: Vec<f64> = logs.iter().map(|of_start| mean(of_start)).collect();
    let total: usize = logs.iter().map(Vec::len).sum();
    let squares_within: f64 = logs
        .iter()
        .zip(&centres)
        .map(|(of_start, centre)| of_start.iter().map(|log| (log - centre).powi(2)).sum::<f64>())
        .sum();
    let within = squares_within / (total - logs.len()) as f64;
    // A mean over m windows carries a share 1 / m of the variance within.
    let carried = within * mean(&logs.iter().map(|of_start| 1.0 / of_start.len() as f64).collect::<Vec<_>>());
    let between = if logs.len() < 2 { 0.0 } else { standard_deviation(&centres).powi(2) };
    Ok(Some(((between - carried).max(0.0).sqrt(), within.sqrt())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::ladder::Orders;

    /// A host with a standard deviation of 2 % between starts, and what the caller adds per start.
    fn starts(seed: u64, pairs: usize, extra: impl Fn(usize, PairOrder) -> f64) -> Starts {
        let mut rng = Rng::new(seed);
        let mut orders = Orders::new(seed ^ 1);
        let orders: Vec<PairOrder> = (0..pairs).map(|_| orders.pair()).collect();
        let values =
            (0..2 * pairs).map(|i| 5.0 * (0.02 * rng.normal() + extra(i, orders[i / 2])).exp()).collect();
        Starts { values, orders, windows: vec![], better: Better::Lower }
    }

    #[test]
    fn a_quiet_host_is_described_as_it_is() {
        let report = NoiseReport::new(&starts(1, 200, |_, _| 0.0)).unwrap();
        assert!((report.sigma_d - 0.02 * 2f64.sqrt()).abs() < 0.004, "{}", report.sigma_d);
        assert!((report.cv - 0.02).abs() < 0.003, "{}", report.cv);
        assert!(report.autocorrelation_lag1.abs() < 0.12, "{}", report.autocorrelation_lag1);
        assert!(report.cross_arm_lag1.abs() < 0.14, "{}", report.cross_arm_lag1);
        assert!(report.spike_share < 0.01, "{}", report.spike_share);
        assert!(report.position.interval.contains(0.0) && report.aa.interval.contains(0.0));
        assert_eq!((report.between_starts, report.within_starts), (None, None));
    }

    #[test]
    fn what_is_a_spike_on_a_quiet_host_is_none_on_a_loud_one() {
        let mut costs = [0.0; 20];
        (costs[10], costs[11]) = (0.33, -0.33);
        assert_eq!(spike_share(&costs, 0.02), 0.05, "the slow one; the fast one is no spike");
        assert_eq!(spike_share(&costs, 0.10), 0.0, "though the two differ by 0.66");
        // As it is told: 2.5 times the spread of a pair.
        assert!((SPIKE_SIGMAS / 2f64.sqrt() - 2.5).abs() < 0.05);
    }

    #[test]
    fn spikes_drift_and_position_are_seen() {
        let spiky = NoiseReport::new(&starts(2, 100, |i, _| if i % 20 == 7 { 0.4 } else { 0.0 })).unwrap();
        assert!((spiky.spike_share - 0.05).abs() < 0.011, "{}", spiky.spike_share);
        let drifting = NoiseReport::new(&starts(3, 100, |i, _| 0.002 * i as f64)).unwrap();
        assert!(drifting.autocorrelation_lag1 > 0.8 && drifting.spike_share < 0.02);
        let placed = NoiseReport::new(&starts(4, 100, |i, _| if i % 2 == 1 { 0.03 } else { 0.0 })).unwrap();
        assert!(placed.position.interval.high < 0.0 && placed.position.interval.contains(-0.03));
        assert!(placed.aa.interval.contains(0.0), "the coin cancels the position effect");
    }

    #[test]
    fn what_one_arm_leaves_to_the_next_is_a_correlation_across_arms_only() {
        // Each unit of the baseline is a toss, and the unit of the arm behind or before it has to pay the same.
        let toss = |pair: usize| if Rng::stream(8, pair as u64).coin() { 0.05 } else { -0.05 };
        let carried = NoiseReport::new(&starts(7, 200, |i, _| toss(i / 2))).unwrap();
        assert!(carried.cross_arm_lag1 > 0.5, "{}", carried.cross_arm_lag1);
        assert!(carried.cross_arm_lag1 > carried.autocorrelation_lag1 + 0.1, "{carried:?}");
        let constant = Starts { values: vec![1.0; 16], ..starts(1, 8, |_, _| 0.0) };
        assert_eq!(NoiseReport::new(&constant).unwrap().cross_arm_lag1, 0.0);
    }

    #[test]
    fn unequal_equal_arms_are_broken() {
        let arm = |i: usize, order: PairOrder| i.is_multiple_of(2) == (order == PairOrder::ArmFirst);
        let report =
            NoiseReport::new(&starts(5, 40, |i, order| if arm(i, order) { 0.04 } else { 0.0 })).unwrap();
        assert_eq!(report.fitness(0.01, 32, 0.05), Fitness::Broken);
        assert!(report.aa.interval.contains(-0.04));
    }

    #[test]
    fn alarms_come_at_the_stated_rate() {
        let reps = 2000;
        let alarms = (0..reps)
            .filter(|&seed| {
                let report = NoiseReport::new(&starts(100 + seed, 8, |_, _| 0.0)).unwrap();
                !report.aa.interval.contains(0.0)
            })
            .count();
        // Eight pairs alarm at 2/256: 15.6 expected, standard deviation 3.9.
        assert!((4..=31).contains(&alarms), "{alarms}");
    }

    #[test]
    fn variance_is_put_where_it_is() {
        let mut rng = Rng::new(6);
        let mut aa = starts(6, 200, |_, _| 0.0);
        aa.windows =
            aa.values.iter().map(|v| (0..10).map(|_| v * (0.05 * rng.normal()).exp()).collect()).collect();
        let report = NoiseReport::new(&aa).unwrap();
        assert!((report.between_starts.unwrap() - 0.02).abs() < 0.004, "{:?}", report.between_starts);
        assert!((report.within_starts.unwrap() - 0.05).abs() < 0.003, "{:?}", report.within_starts);
    }

    #[test]
    fn the_rule_for_detectable_effects() {
        assert!((mde80(0.022, 32, 0.05) - 4.4 * 0.022 / 32f64.sqrt()).abs() < 1e-12);
        assert!((mde80(0.022, 16, 0.05) - 5.8 * 0.022 / 4.0).abs() < 1e-12);
        assert!(mde80(0.022, 32, 0.0125) > 1.15 * mde80(0.022, 32, 0.05));
        for gain in [0.005, 0.01, 0.02, 0.04, 0.2] {
            let pairs = pairs_needed(0.022, gain, 0.05);
            assert!(mde80(0.022, pairs, 0.05) <= gain && pairs >= 6, "{gain}: {pairs}");
            assert!(pairs == 6 || mde80(0.022, pairs - 1, 0.05) > gain, "{gain}: {pairs}");
        }
        assert_eq!(pairs_needed(0.02, 0.0, 0.05), usize::MAX);
        assert_eq!(hours(32, 90.0), 1.6);
    }

    #[test]
    fn fitness_names_the_pairs_that_are_missing() {
        let report = NoiseReport::new(&starts(1, 12, |_, _| 0.0)).unwrap();
        assert!(matches!(report.fitness(0.2, 32, 0.05), Fitness::Ok { .. }));
        let Fitness::Noisy { mde, pairs_needed } = report.fitness(0.002, 32, 0.05) else {
            panic!("a gain of 0.2 % cannot be shown here")
        };
        assert!(mde > 0.002 && pairs_needed > 1000);
    }

    #[test]
    fn phases_that_do_not_fit_together_are_refused() {
        let mut aa = starts(1, 12, |_, _| 0.0);
        aa.windows = vec![vec![1.0, 2.0]];
        assert!(matches!(NoiseReport::new(&aa), Err(StatsError::Length { given: 1, wanted: 24, .. })));
        aa.windows.clear();
        aa.values[3] = 0.0;
        assert!(matches!(NoiseReport::new(&aa), Err(StatsError::NotPositive { .. })));
        aa.values.pop();
        assert!(matches!(NoiseReport::new(&aa), Err(StatsError::Length { given: 23, wanted: 24, .. })));
        aa.orders.truncate(7);
        assert!(matches!(NoiseReport::new(&aa), Err(StatsError::TooFewPairs { needed: 8, .. })));
    }
}
