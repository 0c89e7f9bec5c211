//! The A/A self-check: the same arm against itself, to learn what this machine can tell and what it cannot.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_sorted::CollectMap as _;
use planish_stats::ladder::{PairOrder, rung_alpha};
use planish_stats::noise::{Fitness, MDE_PAIRS, NoiseReport, Starts, mde80};
use planish_stats::summary::robust_sigma;
use planish_stats::{Estimate, Rng};

use super::rows::{better, gain};
use super::{Climb, LadderOptions, Refusal, SEED_LIMIT, race, readback};
use crate::control::Phase;
use crate::error::TrialError;
use crate::outcome::{Detectable, First, Quieter, SelfCheck, SelfCheckVerdict};
use crate::sample::{ArmError, Metric, Sample};

/// Attempts at one pair before the baseline counts as one that does not run.
const ATTEMPTS: usize = 3;

/// Fewest pairs that can raise an alarm at one in a hundred.
const PAIRS_MIN: usize = 8;

/// Share of the time for everything after which no pair beyond the fewest is begun: the rungs are what is asked for.
const TIME_SHARE: f64 = 0.4;

/// The streams of the seed that units of the self-check draw from, apart from those of the blocks.
const STREAM: u64 = 1 << 32;

/// A metric is offered as quieter when its noise is below this share of the primary's.
const QUIETER: f64 = 0.7;

/// How the phase ended.
pub(super) enum Checked {
    /// With an answer.
    Done(Box<Check>),
    /// By the user.
    Stopped,
    /// The time was up before its fewest pairs had run.
    TimeUp {
        /// Pairs that had.
        pairs: usize,
        /// How long one takes.
        pair: Duration,
    },
}

/// What the self-check leads to.
pub(super) struct Check {
    pub(super) outcome: SelfCheck,
    /// Not even the gain that is hoped for could be seen.
    pub(super) hopeless: bool,
    pub(super) refusal: Option<Refusal>,
}

/// The pairs of the phase.
#[derive(Default)]
pub(super) struct Phasework {
    pub(super) samples: Vec<Sample>,
    pub(super) orders: Vec<PairOrder>,
    pub(super) took: Duration,
    /// The longest pair so far.
    longest: Duration,
}

/// How some pairs ended.
#[derive(PartialEq, Eq)]
pub(super) enum Ran {
    All,
    Stopped,
    TimeUp,
}

impl Climb<'_> {
    /// Runs the phase, with fewer pairs than planned where time is short, and never into the time after the end.
    ///
    /// An alarm comes once in a hundred sound set-ups: it is believed only if it stays with twice the pairs, where
    /// there is time for them.
    pub(super) fn self_check(&mut self) -> Result<Checked, TrialError> {
        let wanted = self.options.selfcheck_pairs.max(PAIRS_MIN);
        let mut work = Phasework::default();
        match self.run_pairs(&mut work, wanted, TIME_SHARE)? {
            Ran::Stopped => return Ok(Checked::Stopped),
            Ran::TimeUp if work.orders.len() < PAIRS_MIN => {
                return Ok(Checked::TimeUp { pairs: work.orders.len(), pair: work.longest });
            }
            Ran::TimeUp => self.notes.push(format!(
                "the self-check made {} of {wanted} pairs: the rest of the time is the ladder's",
                work.orders.len()
            )),
            Ran::All => {}
        }
        let (warm_up, ran) = self.leave_out_warm_up(&mut work)?;
        if ran == Ran::Stopped {
            return Ok(Checked::Stopped);
        }
        let mut check = self.judge(&work)?;
        // What was read back is no matter of chance, and more pairs would not change it.
        if check.outcome.verdict == SelfCheckVerdict::Broken && check.outcome.read_back.is_none() {
            if self.run_pairs(&mut work, 2 * wanted, 1.0)? == Ran::Stopped {
                return Ok(Checked::Stopped);
            }
            check = self.judge(&work)?;
        }
        self.learn(&work);
        check.outcome.limits = self.watch.limits();
        check.outcome.warm_up = Some(warm_up);
        Ok(Checked::Done(Box::new(check)))
    }

    /// The phase once more, with as many pairs; none of it where the time does not even allow the fewest.
    pub(super) fn run_again(&mut self, wanted: usize) -> Result<(Ran, Option<Phasework>), TrialError> {
        let mut again = Phasework::default();
        let ran = self.run_pairs(&mut again, wanted, TIME_SHARE)?;
        let is_enough = again.orders.len() >= PAIRS_MIN;
        Ok((ran, is_enough.then_some(again)))
    }

    /// Thresholds of the discards, and the metrics that there are.
    fn learn(&mut self, work: &Phasework) {
        self.watch.learn();
        if let Some(sample) = work.samples.first() {
            let direction = |(name, metric): (&String, &Metric)| (name.clone(), metric.better);
            self.reported = sample.metrics.iter().map(direction).collect_map();
        }
    }

    /// Runs pairs up to a number of them; those beyond the fewest only within a share of the time for everything.
    fn run_pairs(&mut self, work: &mut Phasework, wanted: usize, share: f64) -> Result<Ran, TrialError> {
        let twins = self.field.twins();
        while work.orders.len() < wanted {
            let done = work.orders.len();
            let share = if done < PAIRS_MIN { 1.0 } else { share };
            let end = self.options.budget.mul_f64(share);
            // None is begun that would overrun.
            if self.clock.elapsed() + work.longest >= end {
                return Ok(Ran::TimeUp);
            }
            self.tick(Phase::SelfCheck, done, wanted);
            let coin = self.orders.pair();
            let order = if coin == PairOrder::ArmFirst { [twins[1], twins[0]] } else { twins };
            self.field.at_block(done);
            let seed = Rng::stream(self.options.seed, STREAM + done as u64).next_u64() % SEED_LIMIT;
            let begun = self.clock.elapsed();
            let Some(pair) = self.pair(order, seed)? else { return Ok(Ran::Stopped) };
            let took = self.clock.elapsed().saturating_sub(begun);
            work.took += took;
            work.longest = work.longest.max(took);
            work.samples.extend(pair);
            work.orders.push(coin);
        }
        Ok(Ran::All)
    }

    /// One pair; a failing baseline is tried again, since one crash is not yet a broken set-up, and so is one whose
    /// unit cannot be compared.
    fn pair(&mut self, order: [usize; 2], seed: u64) -> Result<Option<Vec<Sample>>, TrialError> {
        let mut attempts = 0;
        loop {
            let span = self.watch.begin();
            let (pair, _) = self.block(&order, seed);
            self.watch.end(&span);
            let error = match pair.into_iter().collect::<Result<Vec<Sample>, ArmError>>() {
                Ok(pair) => match pair.iter().try_for_each(|sample| self.primary(sample).map(drop)) {
                    Ok(()) => return Ok(Some(pair)),
                    Err(error) => error,
                },
                Err(ArmError::Stopped) => return Ok(None),
                Err(error) if error.ends_the_trial() => return Err(super::host_error(error)),
                Err(error) => self.baseline_error(&error),
            };
            attempts += 1;
            if attempts == ATTEMPTS {
                return Err(error);
            }
        }
    }

    /// The phase as the statistics take it.
    fn starts(&self, work: &Phasework) -> Result<Starts, TrialError> {
        let values =
            work.samples.iter().map(|sample| self.primary(sample)).collect::<Result<Vec<f64>, _>>()?;
        let windows: Vec<Vec<f64>> = work.samples.iter().map(|sample| sample.windows.clone()).collect();
        Ok(Starts {
            values,
            orders: work.orders.clone(),
            windows: if windows.iter().all(|of_start| of_start.len() > 1) { windows } else { Vec::new() },
            better: better(self.options.primary.better),
        })
    }

    fn judge(&self, work: &Phasework) -> Result<Check, TrialError> {
        let options = self.options;
        let direction = better(options.primary.better);
        let starts = self.starts(work)?;
        let noise = NoiseReport::new(&starts).map_err(TrialError::Design)?;

        let arms = self.names.len();
        let alpha = rung_alpha(arms - 1, options.strictness);
        let pair_seconds = work.took.as_secs_f64() / work.orders.len() as f64;
        let pairs = race::pairs_in(self.left().as_secs_f64(), pair_seconds / 2.0, arms, options);
        let min_gain = direction.log_gain(options.min_gain).map_err(TrialError::Design)?;
        let fitness = noise.fitness(min_gain, pairs, alpha);
        let mde = direction.gain(mde80(noise.sigma_d, pairs, alpha));
        let pairs_needed = match fitness {
            Fitness::Noisy { pairs_needed, .. } if pairs_needed < usize::MAX => Some(pairs_needed),
            _ => None,
        };
        let quieter = quieter(&work.samples, &options.primary.name, noise.sigma_d);
        let read_back = readback::differs(&work.samples);
        let verdict = match fitness {
            _ if read_back.is_some() => SelfCheckVerdict::Broken,
            Fitness::Ok { .. } => SelfCheckVerdict::Ok,
            Fitness::Noisy { .. } => SelfCheckVerdict::Noisy,
            Fitness::Broken => SelfCheckVerdict::Broken,
        };
        let hopeless = verdict == SelfCheckVerdict::Noisy && mde > options.hope;
        let spent = (options.spent + self.clock.elapsed()).as_secs_f64();
        let seconds = |pairs| spent + race::seconds_for(pairs, pair_seconds / 2.0, arms, options);
        let mut outcome = SelfCheck {
            verdict,
            pairs: noise.pairs,
            pair_logs: pair_logs(&starts)?,
            orders: starts.orders.iter().map(|order| first(*order)).collect(),
            sigma_d: noise.sigma_d,
            mde,
            detectable: detectable(noise.sigma_d, alpha, direction),
            cv: noise.cv,
            lag1: noise.autocorrelation_lag1,
            cross_lag1: Some(noise.cross_arm_lag1),
            spike_share: noise.spike_share,
            between_starts: noise.between_starts,
            within_starts: noise.within_starts,
            position_effect: Some(gain(direction, &noise.position)),
            steal: self.watch.mean(|seen| seen.steal),
            psi: self.watch.mean(|seen| seen.stalls[0]),
            pressure: self.watch.pressure(),
            throttled: self.watch.mean(|seen| seen.throttled),
            thermal: self.watch.mean(|seen| seen.thermal),
            frequency: self.watch.frequency(),
            limits: BTreeMap::new(),
            read_back,
            warm_up: None,
            pair_seconds,
            pairs_needed,
            hours_needed: pairs_needed.map(|pairs| seconds(pairs) / 3600.0),
            quieter,
            advice: String::new(),
        };
        outcome.advice = advice(&outcome, options, pairs, &noise.aa);
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

/// Which of the twins ran first.
fn first(order: PairOrder) -> First {
    match order {
        PairOrder::BaselineFirst => First::Baseline,
        PairOrder::ArmFirst => First::Arm,
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
pub(super) fn is_speed(name: &str) -> bool {
    let is_part = name.contains("user_ns") || name.contains("system_ns");
    let is_rate = name.ends_with("_per_op") || name.ends_with("_per_s");
    (is_rate && !is_part) || name == "cpu_s" || name == "wall_s"
}

fn advice(check: &SelfCheck, options: &LadderOptions, pairs: usize, aa: &Estimate) -> String {
    match check.verdict {
        SelfCheckVerdict::Ok => {
            format!("{pairs} pairs see a gain of {:.2} %", 100.0 * check.mde)
        }
        SelfCheckVerdict::Broken if check.read_back.is_some() => format!(
            "{}: look for who else sets this host, or for a program that does not get the pages it asks for",
            check.read_back.as_deref().unwrap_or_default()
        ),
        SelfCheckVerdict::Broken => format!(
            "two equal arms differ by {:.1} % to {:.1} %: look for state that the first unit of a pair \
             leaves to the second, or for a fixed rhythm of the machine",
            100.0 * aa.interval.low,
            100.0 * aa.interval.high
        ),
        SelfCheckVerdict::Noisy => {
            let mut text = format!("{pairs} pairs see a gain of {:.2} %", 100.0 * check.mde);
            if let (Some(needed), Some(hours)) = (check.pairs_needed, check.hours_needed) {
                let minutes = (60.0 * hours).ceil();
                let time = if hours > 1.0 {
                    format!("{hours:.1} hours")
                } else {
                    format!("{minutes:.0} minute{}", if minutes > 1.0 { "s" } else { "" })
                };
                text += &format!(
                    "; for {:.1} % it takes {needed} pairs of each rung, {time} in all",
                    100.0 * options.min_gain
                );
                // No budget buys these.
                if needed > options.pairs_max {
                    let cure = options.pairs_cure.of(needed);
                    text += &format!(", and {} are run at most: {cure}", options.pairs_max);
                }
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
