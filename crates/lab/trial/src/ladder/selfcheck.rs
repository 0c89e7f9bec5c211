//! The A/A self-check: the same arm against itself, to learn what this machine can tell and what it cannot.

use std::time::Instant;

use planish_stats::Estimate;
use planish_stats::ladder::{PairOrder, rung_alpha};
use planish_stats::noise::{Fitness, MDE_PAIRS, NoiseReport, Starts, mde80};
use planish_stats::summary::robust_sigma;

use super::rows::{better, gain};
use super::{Climb, Refusal, race};
use crate::control::Phase;
use crate::error::TrialError;
use crate::outcome::{Detectable, Quieter, SelfCheck, SelfCheckVerdict};
use crate::sample::{ArmError, Metric, Sample};

/// Attempts at one pair before the baseline counts as one that does not run.
const ATTEMPTS: usize = 3;

/// A metric is offered as quieter when its noise is below this share of the primary's.
const QUIETER: f64 = 0.7;

/// What the self-check leads to.
pub(super) struct Check {
    pub(super) outcome: SelfCheck,
    /// Not even the gain that is hoped for could be seen.
    pub(super) hopeless: bool,
    pub(super) refusal: Option<Refusal>,
}

/// The pairs of the phase.
#[derive(Default)]
struct Phasework {
    samples: Vec<Sample>,
    orders: Vec<PairOrder>,
    seconds: f64,
}

impl Climb<'_> {
    /// Runs the phase; `None` when it was stopped before its last pair.
    ///
    /// An alarm comes once in a hundred sound set-ups: it is believed only if it stays with twice the pairs.
    pub(super) fn self_check(&mut self) -> Result<Option<Check>, TrialError> {
        let wanted = self.options.selfcheck_pairs;
        let mut work = Phasework::default();
        if !self.run_pairs(&mut work, wanted)? {
            return Ok(None);
        }
        let mut check = self.judge(&work)?;
        if check.outcome.verdict == SelfCheckVerdict::Broken {
            if !self.run_pairs(&mut work, 2 * wanted)? {
                return Ok(None);
            }
            check = self.judge(&work)?;
        }
        self.learn(&work);
        Ok(Some(check))
    }

    /// Thresholds of the discards, and the metrics that there are.
    fn learn(&mut self, work: &Phasework) {
        self.watch.learn();
        if let Some(sample) = work.samples.first() {
            let direction = |(name, metric): (&String, &Metric)| (name.clone(), metric.better);
            self.reported = sample.metrics.iter().map(direction).collect();
        }
    }

    /// Runs pairs up to a number of them; false when it was stopped.
    fn run_pairs(&mut self, work: &mut Phasework, wanted: usize) -> Result<bool, TrialError> {
        let twins = self.field.twins();
        while work.orders.len() < wanted {
            let done = work.orders.len();
            self.tick(Phase::SelfCheck, done, wanted);
            let coin = self.orders.pair();
            let order = if coin == PairOrder::ArmFirst { [twins[1], twins[0]] } else { twins };
            self.field.round(done);
            let begun = Instant::now();
            let Some(pair) = self.pair(order, done as u64)? else { return Ok(false) };
            work.seconds += begun.elapsed().as_secs_f64();
            work.samples.extend(pair);
            work.orders.push(coin);
        }
        Ok(true)
    }

    /// One pair; a failing baseline is tried again, since one crash is not yet a broken set-up.
    fn pair(&mut self, order: [usize; 2], seed: u64) -> Result<Option<Vec<Sample>>, TrialError> {
        let mut attempts = 0;
        loop {
            let span = self.watch.begin();
            let pair = self.timed(|field| field.block(&order, seed));
            self.watch.end(&span);
            match pair.into_iter().collect::<Result<Vec<Sample>, ArmError>>() {
                Ok(pair) => return Ok(Some(pair)),
                Err(ArmError::Stopped) => return Ok(None),
                Err(error @ ArmError::Host { .. }) => return Err(super::host_error(error)),
                Err(error) => {
                    attempts += 1;
                    if attempts == ATTEMPTS {
                        return Err(self.baseline_error(&error));
                    }
                }
            }
        }
    }

    fn judge(&self, work: &Phasework) -> Result<Check, TrialError> {
        let options = self.options;
        let direction = better(options.primary.better);
        let values =
            work.samples.iter().map(|sample| self.primary(sample)).collect::<Result<Vec<f64>, _>>()?;
        let windows: Vec<Vec<f64>> = work.samples.iter().map(|sample| sample.windows.clone()).collect();
        let starts = Starts {
            values,
            orders: work.orders.clone(),
            windows: if windows.iter().all(|of_start| of_start.len() > 1) { windows } else { Vec::new() },
            better: direction,
        };
        let noise = NoiseReport::new(&starts).map_err(TrialError::Design)?;

        let alpha = rung_alpha(self.names.len() - 1, options.strictness);
        let pair_seconds = work.seconds / work.orders.len() as f64;
        let pairs = race::pairs_in(self.left().as_secs_f64(), pair_seconds / 2.0, self.names.len(), options);
        let min_gain = direction.log_gain(options.min_gain).map_err(TrialError::Design)?;
        let fitness = noise.fitness(min_gain, pairs, alpha);
        let mde = direction.gain(mde80(noise.sigma_d, pairs, alpha));
        let pairs_needed = match fitness {
            Fitness::Noisy { pairs_needed, .. } if pairs_needed < usize::MAX => Some(pairs_needed),
            _ => None,
        };
        let quieter = quieter(&work.samples, &options.primary.name, noise.sigma_d);
        let verdict = match fitness {
            Fitness::Ok { .. } => SelfCheckVerdict::Ok,
            Fitness::Noisy { .. } => SelfCheckVerdict::Noisy,
            Fitness::Broken => SelfCheckVerdict::Broken,
        };
        let hopeless = verdict == SelfCheckVerdict::Noisy && mde > options.hope;
        let hours_needed = pairs_needed.map(|pairs| pairs as f64 * pair_seconds / 3600.0);
        let (steal, psi) = self.watch.mean();
        let mut outcome = SelfCheck {
            verdict,
            pairs: noise.pairs,
            pair_logs: pair_logs(&starts)?,
            sigma_d: noise.sigma_d,
            mde,
            detectable: detectable(noise.sigma_d, alpha, direction),
            cv: noise.cv,
            lag1: noise.autocorrelation_lag1,
            spike_share: noise.spike_share,
            between_starts: noise.between_starts,
            within_starts: noise.within_starts,
            position_effect: Some(gain(direction, &noise.position)),
            steal,
            psi,
            pair_seconds,
            pairs_needed,
            hours_needed,
            quieter,
            advice: String::new(),
        };
        outcome.advice = advice(&outcome, options.min_gain, pairs, &noise.aa);
        let refusal = hopeless.then(|| Refusal {
            what: "the ladder".to_owned(),
            why: format!(
                "{pairs} pairs would see {:.1} % at best, and {:.1} % is hoped for",
                100.0 * mde,
                100.0 * options.hope
            ),
            cure: outcome.advice.clone(),
        });
        Ok(Check { outcome, hopeless, refusal })
    }
}

fn pair_logs(starts: &Starts) -> Result<Vec<f64>, TrialError> {
    let log = |pair: &[f64]| starts.better.pair_log(pair[0], pair[1]).map_err(TrialError::Design);
    starts.values.chunks_exact(2).map(log).collect()
}

/// The gains that other numbers of pairs would see, at the error that a rung of this ladder gets: the plan's own pairs
/// would otherwise see less than the same number in the table.
fn detectable(sigma_d: f64, alpha: f64, direction: planish_stats::Better) -> Vec<Detectable> {
    let row = |pairs| Detectable { pairs, mde: direction.gain(mde80(sigma_d, pairs, alpha)) };
    MDE_PAIRS.map(row).to_vec()
}

/// The quietest other metric of the same pairs, if it is quieter by far.
fn quieter(samples: &[Sample], primary: &str, sigma_d: f64) -> Option<Quieter> {
    let first = samples.first()?;
    let noise_of = |name: &String| {
        let values: Vec<f64> = samples.iter().map_while(|sample| sample.value(name)).collect();
        let logs: Vec<f64> = values
            .chunks_exact(2)
            .filter(|pair| pair[0] > 0.0 && pair[1] > 0.0)
            .map(|pair| (pair[0] / pair[1]).ln())
            .collect();
        // A metric that never moves, such as a size, is no measure of speed.
        (2 * logs.len() == samples.len()).then(|| robust_sigma(&logs)).filter(|&sigma| sigma > 0.0)
    };
    first
        .metrics
        .keys()
        .filter(|name| name.as_str() != primary && is_speed(name))
        .filter_map(|name| Some(Quieter { metric: name.clone(), sigma_d: noise_of(name)? }))
        .min_by(|a, b| a.sigma_d.total_cmp(&b.sigma_d))
        .filter(|best| best.sigma_d < QUIETER * sigma_d)
}

/// Whether a metric tells how fast the work is done, and not how it is spread or how much memory it takes.
///
/// Time in user or system mode is quiet only because it leaves the other one out, and with it what huge pages save.
fn is_speed(name: &str) -> bool {
    let is_part = name.contains("user_ns") || name.contains("system_ns");
    let is_rate = name.ends_with("_per_op") || name.ends_with("_per_s");
    (is_rate && !is_part) || name == "cpu_s" || name == "wall_s"
}

fn advice(check: &SelfCheck, min_gain: f64, pairs: usize, aa: &Estimate) -> String {
    match check.verdict {
        SelfCheckVerdict::Ok => {
            format!("{pairs} pairs see a gain of {:.2} %", 100.0 * check.mde)
        }
        SelfCheckVerdict::Broken => format!(
            "two equal arms differ by {:.1} % to {:.1} %: look for state that the first unit of a pair \
             leaves to the second, or for a fixed rhythm of the machine",
            100.0 * aa.interval.low,
            100.0 * aa.interval.high
        ),
        SelfCheckVerdict::Noisy => {
            let mut text = format!("{pairs} pairs see a gain of {:.2} %", 100.0 * check.mde);
            if let (Some(needed), Some(hours)) = (check.pairs_needed, check.hours_needed) {
                let time = if hours < 1.0 {
                    format!("{:.0} minutes", (60.0 * hours).ceil())
                } else {
                    format!("{hours:.1} hours")
                };
                text += &format!("; for {:.1} % it takes {needed} pairs, {time}", 100.0 * min_gain);
            }
            if let Some(quieter) = &check.quieter {
                text += &format!("; `{}` is quieter here: make it the primary metric", quieter.metric);
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_cpu_time_is_not_offered_instead_of_the_whole() {
        let sample = |part: f64, whole: f64| {
            Sample::default()
                .lower("cpu_ns_per_op", "ns", whole)
                .lower("select_user_ns_per_op", "ns", part)
                .lower("system_ns_per_op", "ns", part)
                .lower("wall_ns_per_op", "ns", part)
        };
        let noisy = [10.0, 12.0, 11.0, 9.0, 10.0, 13.0, 12.0, 10.0];
        let quiet = [10.0, 10.1, 10.0, 10.2, 10.1, 10.0, 10.3, 10.1];
        let samples: Vec<Sample> =
            quiet.iter().zip(noisy).map(|(&part, whole)| sample(part, whole)).collect();
        let offered = quieter(&samples, "cpu_ns_per_op", 0.2).expect("one is quieter");
        assert_eq!(offered.metric, "wall_ns_per_op", "the others are parts");
    }
}
