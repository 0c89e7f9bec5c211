//! Blocks, until every rung has a verdict or the time is out.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use planish_stats::ladder::{Strictness, rung_alpha};
use planish_stats::spending::ALPHA;
use planish_stats::{Decision, Design, Guard, Rng, Sequential, StatsError, Verdict};

use super::builds::builds;
use super::contender::{Contender, could_keep, sentence};
use super::figure::{Lack, figure};
use super::rows::{self, better, gain};
use super::{Climb, ERROR_RATE, LadderOptions, Refusal, SEED_LIMIT};
use crate::control::Phase;
use crate::error::TrialError;
use crate::outcome::{Better, Confirmed, Discard, First, RungVerdict, TrialOutcome, UnitKind};
use crate::sample::{ArmError, Sample};

/// Failures of an arm, with none of the baseline, that are a result.
const FAILURES_TO_DROP: usize = 2;
/// Failures of the baseline after which there is nothing to compare with.
const BASELINE_FAILURES: usize = 3;
/// Share of the blocks that may be redone, and a few more in short runs.
const REDONE_SHARE: f64 = 0.25;
const REDONE_MIN: usize = 3;
/// Share of the time left that is kept for the confirmation.
const CONFIRMATION_SHARE: f64 = 0.4;
/// Fewest pairs that a plan is made for, however short the time: the first number that can say anything.
const PAIRS_MIN: usize = 8;
/// What is added to the time that a trial was too short by: machines have moods.
pub(super) const BUDGET_MARGIN: f64 = 1.1;
/// Why a rung has no verdict that was under test when the user ended the trial.
pub(super) const STOPPED: &str = "stopped by the user";
/// A guard value that is zero in one arm and not in the other, for the sake of its rank.
const ALMOST_NOTHING: f64 = 1e-12;

/// One pair of a rung: a unit of its arm and one of the baseline out of the same block.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) baseline: Rc<Sample>,
    pub(super) arm: Sample,
    pub(super) first: First,
}

/// A rung under test in one race.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) sequential: Sequential,
    /// Metrics of the guards, in the order of the test's.
    pub(super) guarded: Vec<String>,
    pub(super) pairs: Vec<Pair>,
    pub(super) failures: usize,
    pub(super) last_failure: String,
    /// Why it cannot be compared: it ends without a verdict.
    pub(super) incomparable: Option<String>,
}

impl Run {
    /// A run without pairs yet.
    pub(super) fn new(sequential: Sequential, guarded: Vec<String>) -> Self {
        Self {
            sequential,
            guarded,
            pairs: Vec::new(),
            failures: 0,
            last_failure: String::new(),
            incomparable: None,
        }
    }

    /// Why its pairs keep nothing, whatever they show.
    pub(super) fn spoiled(&self, shown: impl FnOnce() -> String) -> Option<String> {
        if self.incomparable.is_some() {
            return self.incomparable.clone();
        }
        let failure = &self.last_failure;
        let failed = || format!("{}, but a unit failed, and its pair has no figure: {failure}", shown());
        (self.failures > 0).then(failed)
    }

    /// What its pairs come to: what they say, unless something spoils that.
    pub(super) fn verdict(
        &self,
        said: Verdict,
        plain: String,
        spoiled: Option<String>,
    ) -> (RungVerdict, String) {
        match (said, spoiled) {
            // What the pairs before it say is the half of the story that could be told.
            (_, Some(spoiled)) if self.incomparable.is_some() => (RungVerdict::Inconclusive, spoiled),
            (Verdict::Keep, Some(spoiled)) => (RungVerdict::Inconclusive, spoiled),
            (Verdict::Keep, None) => (RungVerdict::Keep, plain),
            (Verdict::Drop, _) => (RungVerdict::Drop, plain),
            (Verdict::Inconclusive, _) => (RungVerdict::Inconclusive, plain),
        }
    }

    /// Which arm of each pair ran first.
    pub(super) fn orders(&self) -> Vec<First> {
        self.pairs.iter().map(|pair| pair.first).collect()
    }
}

/// What is fixed before the first block of a race.
struct Course {
    phase: Phase,
    /// The arm that every other is compared with: the baseline, or what was kept so far.
    reference: usize,
    /// Time that is kept for what comes after.
    reserve: Duration,
    /// How long a block may take, by the longest one so far: none is begun that would overrun.
    block: Duration,
    /// Races of the ladder that are over, and all of them.
    races: (usize, usize),
}

/// A race of the rungs that are still in it.
pub(super) struct Race<'c, 'a> {
    climb: &'c mut Climb<'a>,
    contenders: &'c mut [Contender],
    /// Index into `contenders`, and the rung's test.
    runs: Vec<(usize, Run)>,
    course: Course,
    /// When it began, in the time of the climb.
    begun: Duration,
    pairs_max: usize,
    reference_failures: usize,
    /// Units of the reference in which the metric was missing.
    reference_lacks: usize,
}

/// One rung of a ladder that is climbed rung by rung.
pub(super) struct Leg {
    /// Index of the rung.
    pub(super) contender: usize,
    /// The arm that it is compared with.
    pub(super) reference: usize,
    /// Rungs before it, and all that were planned.
    pub(super) races: (usize, usize),
    /// Time that is kept for the confirmation.
    pub(super) reserve: Duration,
    /// Time of one unit.
    pub(super) unit_seconds: f64,
}

/// The error that a whole ladder may make: two-sided, shared by its rungs.
pub(super) fn ladder_alpha(strictness: Strictness) -> f64 {
    match strictness {
        Strictness::Usual => 0.10,
        Strictness::Strict => 0.05,
    }
}

/// Share of the time left that the ladder has, when the confirmation is to have the rest.
pub(super) fn ladder_share(options: &LadderOptions) -> f64 {
    match options.confirm {
        super::Confirm::Fresh => 1.0 - CONFIRMATION_SHARE,
        super::Confirm::Skip { .. } => 1.0,
    }
}

/// The fewest pairs of a ladder whose rungs share the error.
pub(super) fn fewest_pairs(rungs: usize, options: &LadderOptions) -> usize {
    planish_stats::walsh::pairs_for_tail(rung_alpha(rungs, options.strictness) / 2.0).max(PAIRS_MIN)
}

/// Pairs that fit into `seconds` when each of `arms` arms takes `unit_seconds` a block, within the plan's
/// limits.
pub(super) fn pairs_in(seconds: f64, unit_seconds: f64, arms: usize, options: &LadderOptions) -> usize {
    let block_seconds = unit_seconds * units_of_a_pair(arms, options) as f64;
    blocks_in(seconds * ladder_share(options), block_seconds, options)
}

/// Seconds into which [`pairs_in`] fits so many pairs.
pub(super) fn seconds_for(pairs: usize, unit_seconds: f64, arms: usize, options: &LadderOptions) -> f64 {
    pairs as f64 * unit_seconds * units_of_a_pair(arms, options) as f64 / ladder_share(options)
}

/// Units that run until each rung has one pair more.
fn units_of_a_pair(arms: usize, options: &LadderOptions) -> usize {
    // One after the other, each rung has a unit of its own to be compared with.
    if options.is_one_by_one() { 2 * (arms - 1) } else { arms }
}

fn blocks_in(seconds: f64, block_seconds: f64, options: &LadderOptions) -> usize {
    let blocks = (seconds / block_seconds.max(1e-6)) as usize;
    blocks.max(PAIRS_MIN).min(options.pairs_max)
}

/// The time of a rung that runs alone: its fair share, and where that is too short for any verdict, what its first look
/// takes. A few rungs that are decided tell more than many that are not.
fn share(for_ladder: Duration, fair: Duration, block: Duration, first_look: usize) -> Duration {
    // None is begun that would overrun, and the next ones may be slower than those of the self-check.
    let least = block * (first_look as u32 + 1) * 5 / 4;
    fair.max(least).min(for_ladder)
}

/// The plan of a rung. Where many rungs share the error it is made longer than the time seems to allow.
fn planned(pairs_max: usize, limit: usize, alpha: f64, min_gain: f64) -> Result<Design, StatsError> {
    match Design::new(pairs_max, alpha, min_gain) {
        Err(StatsError::TooFewPairs { needed, .. }) if needed <= limit => {
            Design::new(needed, alpha, min_gain)
        }
        design => design,
    }
}

impl<'c, 'a> Race<'c, 'a> {
    /// The ladder itself.
    pub(super) fn ladder(
        climb: &'c mut Climb<'a>,
        contenders: &'c mut [Contender],
        unit_seconds: f64,
    ) -> Result<Self, TrialError> {
        let active: Vec<usize> =
            (0..contenders.len()).filter(|&index| contenders[index].verdict().is_none()).collect();
        let options = climb.options;
        let left = climb.left();
        let pairs_max = pairs_in(left.as_secs_f64(), unit_seconds, active.len() + 1, options);
        let alpha = rung_alpha(active.len(), options.strictness);
        let course = Course {
            phase: Phase::Ladder,
            reference: 0,
            reserve: left.mul_f64(1.0 - ladder_share(options)),
            block: Duration::from_secs_f64(unit_seconds * (active.len() + 1) as f64),
            races: (0, 1),
        };
        let limit = options.pairs_max;
        Self::new(climb, contenders, active, course, |min_gain| planned(pairs_max, limit, alpha, min_gain))
    }

    /// One rung of a ladder that is climbed rung by rung, with its share of the time that is left.
    pub(super) fn leg(
        climb: &'c mut Climb<'a>,
        contenders: &'c mut [Contender],
        leg: &Leg,
    ) -> Result<Self, TrialError> {
        let options = climb.options;
        let (over, all) = leg.races;
        let left = climb.left();
        // The number of pairs may follow the clock: the rungs before do not know what this one will bring.
        let for_ladder = left.saturating_sub(leg.reserve);
        let fair = for_ladder / (all - over) as u32;
        let block = Duration::from_secs_f64(2.0 * leg.unit_seconds);
        let pairs_max = blocks_in(fair.as_secs_f64(), block.as_secs_f64(), options);
        let alpha = rung_alpha(all, options.strictness);
        let course = Course {
            phase: Phase::Ladder,
            reference: leg.reference,
            reserve: Duration::ZERO,
            block,
            races: leg.races,
        };
        let limit = options.pairs_max;
        let mut race = Self::new(climb, contenders, vec![leg.contender], course, |min_gain| {
            planned(pairs_max, limit, alpha, min_gain)
        })?;
        let first_look = race.runs.iter().map(|(_, run)| run.sequential.design().looks()[0]).max();
        race.course.reserve = left - share(for_ladder, fair, block, first_look.unwrap_or(0)).min(left);
        Ok(race)
    }

    /// The fresh run of what was kept.
    pub(super) fn confirmation(
        climb: &'c mut Climb<'a>,
        contenders: &'c mut [Contender],
    ) -> Result<Self, TrialError> {
        let kept: Vec<usize> = (0..contenders.len()).filter(|&index| contenders[index].is_kept()).collect();
        // What slices have seen is no evidence, so that this run is the only test and its rungs share the error. How
        // many there are may follow from the slices, since fresh starts know nothing of them.
        let alpha = match climb.field.unit() {
            UnitKind::Slice => rung_alpha(kept.len(), climb.options.strictness),
            UnitKind::Start | UnitKind::Boot => ALPHA,
        };
        let pairs_max = climb.options.pairs_max;
        let course = Course {
            phase: Phase::Confirm,
            reference: 0,
            reserve: Duration::ZERO,
            block: Duration::ZERO,
            races: (0, 1),
        };
        Self::new(climb, contenders, kept, course, |min_gain| {
            Design::confirmation(pairs_max, alpha, min_gain)
        })
    }

    fn new(
        climb: &'c mut Climb<'a>,
        contenders: &'c mut [Contender],
        active: Vec<usize>,
        course: Course,
        design: impl Fn(f64) -> Result<Design, StatsError>,
    ) -> Result<Self, TrialError> {
        let direction = better(climb.options.primary.better);
        let (guards, guarded) = guards(climb.options, &climb.reported).map_err(TrialError::Design)?;
        let run = |index: usize| -> Result<(usize, Run), StatsError> {
            let design = design(direction.log_gain(contenders[index].min_gain)?)?;
            let sequential = Sequential::new(design.looking_from(climb.options.pairs_min), guards.clone());
            let guarded = guarded.clone();
            Ok((index, Run::new(sequential, guarded)))
        };
        let runs = active.into_iter().map(run).collect::<Result<Vec<_>, _>>().map_err(TrialError::Design)?;
        // All have as many: only the smallest gain is a rung's own.
        let pairs_max = runs.iter().map(|(_, run)| run.sequential.design().pairs_max()).max().unwrap_or(0);
        let begun = climb.clock.elapsed();
        Ok(Self {
            climb,
            contenders,
            runs,
            course,
            begun,
            pairs_max,
            reference_failures: 0,
            reference_lacks: 0,
        })
    }

    /// Runs to the end.
    pub(super) fn run(mut self) -> Result<(), TrialError> {
        let (mut blocks, mut redone) = (0, 0);
        while !self.runs.is_empty()
            && !self.climb.stop.is_set()
            && self.climb.left() > self.course.reserve + self.course.block
        {
            let (over, all) = self.course.races;
            self.climb.tick(self.course.phase, over * self.pairs_max + blocks, all * self.pairs_max);
            let order = self.draw();
            let drawn = self.climb.blocks.len() + self.climb.discarded.len();
            let seed = Rng::stream(self.climb.options.seed, drawn as u64).next_u64() % SEED_LIMIT;
            let span = self.climb.watch.begin();
            self.climb.field.at_block(blocks);
            let (samples, took) = self.climb.block(&order, seed);
            self.course.block = self.course.block.max(took);
            let weather = self.climb.watch.end(&span);
            // Bad weather excuses a block, but no further one may start on a host that could not be put back.
            let lost = |sample: &Result<Sample, ArmError>| match sample {
                Err(error) if error.ends_the_trial() => Some(error.clone()),
                _ => None,
            };
            if let Some(error) = samples.iter().find_map(lost) {
                return Err(super::host_error(error));
            }
            let allowance = REDONE_MIN.max((blocks as f64 * REDONE_SHARE) as usize);
            if let Some(found) = self.climb.watch.objection(&weather).filter(|_| redone < allowance) {
                redone += 1;
                let block = self.climb.blocks.len();
                let covariate = found.covariate.to_owned();
                self.climb.discarded.push(Discard { block, covariate, reason: found.reason });
                continue;
            }
            blocks += 1;
            let names = order.iter().map(|&arm| self.name(arm)).collect();
            self.climb.blocks.push(names);
            self.take(&order, samples)?;
        }
        if self.course.phase == Phase::Ladder && blocks < PAIRS_MIN && !self.runs.is_empty() {
            self.tell_time_needed(blocks);
        }
        self.close();
        Ok(())
    }

    /// The time was up before any verdict was possible: says what time would have been enough.
    fn tell_time_needed(&mut self, done: usize) {
        if self.climb.stop.is_set() || self.climb.budget_needed_seconds.is_some() {
            return;
        }
        let options = self.climb.options;
        // None is begun that would overrun, so the last one needs its time twice.
        let (over, all) = self.course.races;
        let blocks = (self.pairs_max + 1) * (all - over);
        let blocks_seconds = self.course.block.as_secs_f64() * blocks as f64;
        let before = options.spent + self.begun;
        let seconds = before.as_secs_f64() + blocks_seconds / ladder_share(options);
        let seconds = (seconds * BUDGET_MARGIN).ceil() as u64;
        let after = match (over, done) {
            (0, 0) => "with the self-check".to_owned(),
            (_, 0) => format!("after {over} of {all} rungs"),
            _ => format!("after {done} of {} blocks", self.pairs_max),
        };
        self.climb.budget_needed_seconds = Some(seconds);
        self.climb.refused.push(Refusal {
            what: "the ladder".to_owned(),
            why: format!("the time was up {after}"),
            cure: super::budget_cure(seconds),
        });
    }

    /// The order of the next block, drawn before it runs.
    fn draw(&mut self) -> Vec<usize> {
        let mut arms = vec![self.course.reference];
        arms.extend(self.runs.iter().map(|(index, _)| self.contenders[*index].arm));
        self.climb.orders.block(arms.len()).into_iter().map(|place| arms[place]).collect()
    }

    fn name(&self, arm: usize) -> String {
        let contender = self.contenders.iter().find(|contender| contender.arm == arm);
        contender.map_or_else(|| self.climb.names[arm].clone(), |contender| contender.name.clone())
    }

    /// Takes in one block: a pair for each rung whose arm and reference both gave a sample.
    fn take(&mut self, order: &[usize], samples: Vec<Result<Sample, ArmError>>) -> Result<(), TrialError> {
        let place = |arm: usize| order.iter().position(|&other| other == arm).expect("a block has all arms");
        let mut samples: Vec<Option<Result<Sample, ArmError>>> = samples.into_iter().map(Some).collect();
        let baseline_place = place(self.course.reference);
        let baseline = match samples[baseline_place].take().expect("taken once") {
            Ok(sample) => match figure(&sample, &self.climb.options.primary.name) {
                Ok(value) => Some((Rc::new(sample), value)),
                Err(lack) => {
                    self.reference_lacks(&sample, lack);
                    None
                }
            },
            Err(error) => {
                self.reference_failed(error)?;
                None
            }
        };
        let mut runs = std::mem::take(&mut self.runs);
        for (index, run) in &mut runs {
            let arm_place = place(self.contenders[*index].arm);
            let first = if arm_place < baseline_place { First::Arm } else { First::Baseline };
            match samples[arm_place].take().expect("each arm is in a block once") {
                Ok(sample) => match (figure(&sample, &self.climb.options.primary.name), &baseline) {
                    (Ok(value), Some((baseline, of_baseline))) => {
                        let pair = Pair { baseline: Rc::clone(baseline), arm: sample, first };
                        self.push(*index, run, pair, [*of_baseline, value])?;
                    }
                    (Ok(_), None) => {}
                    // Without a pair its lack is one all the same, as a crash would be.
                    (Err(lack), _) => {
                        let name = &self.climb.options.primary.name;
                        run.incomparable = Some(lack.told(name, &self.contenders[*index].name, &sample));
                    }
                },
                Err(error) => self.arm_failed(*index, run, error)?,
            }
        }
        for (index, run) in runs {
            if self.is_over(index, &run) {
                self.end(index, run);
            } else {
                self.runs.push((index, run));
            }
        }
        Ok(())
    }

    /// Takes in a pair by the figures of its baseline and its arm.
    fn push(
        &mut self,
        index: usize,
        run: &mut Run,
        pair: Pair,
        [baseline, arm]: [f64; 2],
    ) -> Result<(), TrialError> {
        let primary = &self.climb.options.primary;
        let log = match better(primary.better).pair_log(baseline, arm) {
            Ok(log) => log,
            Err(error) => {
                let name = &primary.name;
                run.incomparable =
                    Some(format!("not comparable: `{name}` is {arm} beside {baseline}: {error}"));
                return Ok(());
            }
        };
        let guards: Vec<f64> = run.guarded.iter().map(|metric| guard_value(metric, &pair)).collect();
        match run.sequential.push(log, &guards) {
            Ok(Decision::Continue | Decision::Stop(_)) => run.pairs.push(pair),
            Err(error) => self.failed(index, run, error.to_string())?,
        }
        Ok(())
    }

    /// A unit of the reference has run and cannot be compared. A zero ends the rungs at once, without a verdict: their
    /// other pairs could keep none of them, and would be time for nothing. A missing metric ends them when it is one
    /// too many. What was found before stays.
    fn reference_lacks(&mut self, sample: &Sample, lack: Lack) {
        if lack == Lack::Missing {
            self.reference_lacks += 1;
            if self.reference_lacks < BASELINE_FAILURES {
                return;
            }
        }
        let name = self.name(self.course.reference);
        let why = lack.told(&self.climb.options.primary.name, &name, sample);
        for (_, run) in &mut self.runs {
            run.incomparable = Some(why.clone());
        }
    }

    /// A unit of the reference has crashed or timed out. Where it is one too many, or the reference does not even start
    /// again, the rungs end without a verdict, and what was found before stays.
    fn reference_failed(&mut self, error: ArmError) -> Result<(), TrialError> {
        if error == ArmError::Stopped {
            return Ok(());
        }
        if error.ends_the_trial() {
            return Err(super::host_error(error));
        }
        self.reference_failures += 1;
        // The block has been listed, and blocks count from 0.
        let block = self.climb.blocks.len() - 1;
        let how = if self.reference_failures < BASELINE_FAILURES {
            let Some(why) = self.start_again(self.course.reference)? else { return Ok(()) };
            format!("failed in block {block} ({error}) and does not start again: {why}")
        } else {
            format!("failed in {BASELINE_FAILURES} blocks, the last of them {block}: {error}")
        };
        let why = self.climb.lose(self.course.phase, self.course.reference, &how);
        for (_, run) in &mut self.runs {
            run.incomparable = Some(format!("not comparable: {why}"));
        }
        Ok(())
    }

    /// Starts an arm again; why it does not. A stop is no reason: the race ends by itself.
    fn start_again(&mut self, arm: usize) -> Result<Option<ArmError>, TrialError> {
        match self.climb.timed(|field| field.open(arm)) {
            Ok(_) | Err(ArmError::Stopped) => Ok(None),
            Err(error) if error.ends_the_trial() => Err(super::host_error(error)),
            Err(error) => Ok(Some(error)),
        }
    }

    fn arm_failed(&mut self, index: usize, run: &mut Run, error: ArmError) -> Result<(), TrialError> {
        match error {
            ArmError::Stopped => {}
            error if error.ends_the_trial() => return Err(super::host_error(error)),
            ArmError::Unavailable { reason, .. } => {
                self.contenders[index].conclude(RungVerdict::Unavailable, reason);
            }
            error => self.failed(index, run, error.to_string())?,
        }
        Ok(())
    }

    /// A crash or a timeout: a result. Once keeps the rung from being kept, since its pair has no figure and none is
    /// left out for its outcome; twice drops it where the baseline never failed.
    fn failed(&mut self, index: usize, run: &mut Run, detail: String) -> Result<(), TrialError> {
        run.failures += 1;
        run.last_failure = detail;
        if run.failures >= FAILURES_TO_DROP {
            let (verdict, reason) = if self.reference_failures == 0 {
                (RungVerdict::Drop, "failed twice where the baseline never did")
            } else {
                (RungVerdict::Inconclusive, "fails, and so does the baseline")
            };
            self.contenders[index].conclude(verdict, format!("{reason}: {}", run.last_failure));
            return Ok(());
        }
        // It is not started again for nothing.
        if run.incomparable.is_some() {
            return Ok(());
        }
        if let Some(error) = self.start_again(self.contenders[index].arm)? {
            let reason = format!("failed ({}) and does not start again: {error}", run.last_failure);
            self.contenders[index].conclude(RungVerdict::Drop, reason);
        }
        Ok(())
    }

    fn is_over(&self, index: usize, run: &Run) -> bool {
        let before = if self.course.phase == Phase::Confirm { Some(RungVerdict::Keep) } else { None };
        run.sequential.conclusion().is_some()
            || run.incomparable.is_some()
            || self.contenders[index].verdict() != before
    }

    /// Time is out, or the user has stopped it: what the pairs have earned so far still counts.
    fn close(mut self) {
        let stopped = self.climb.stop.is_set();
        for (index, run) in std::mem::take(&mut self.runs) {
            // Somebody who watches may stop at a moment that suits him; the test does not allow for that.
            if stopped && self.course.phase == Phase::Ladder {
                self.contenders[index].conclude(RungVerdict::Inconclusive, STOPPED.to_owned());
            }
            self.end(index, run);
            if stopped && self.course.phase == Phase::Confirm {
                self.contenders[index].unconfirmed(STOPPED.to_owned());
            }
        }
    }

    /// A rung leaves the race.
    fn end(&mut self, index: usize, mut run: Run) {
        let direction = better(self.climb.options.primary.better);
        let contender = &mut self.contenders[index];
        let min_gain = contender.min_gain;
        let ended_by_plan = run.sequential.conclusion().is_some();
        let conclusion = run.sequential.close().clone();
        // What ends early by a clock has asked its question only where its pairs could have answered it.
        let asked = ended_by_plan || (!self.climb.stop.is_set() && could_keep(&conclusion));
        let spoiled = run.spoiled(|| sentence(&conclusion, min_gain, direction));
        contender.tested =
            asked && spoiled.is_none() && contender.verdict() != Some(RungVerdict::Unavailable);
        if self.course.phase == Phase::Confirm {
            if let Some(effect) = &conclusion.effect {
                contender.confirm(Confirmed {
                    gain: gain(direction, effect),
                    level: Some(effect.interval.level),
                    pairs: conclusion.pairs,
                    pair_logs: run.sequential.logs().to_vec(),
                    orders: run.orders(),
                    guards: rows::guards(&self.climb.options.guards, Some(&run)),
                });
            }
            if conclusion.verdict != Verdict::Keep || spoiled.is_some() {
                let why = spoiled.unwrap_or_else(|| sentence(&conclusion, min_gain, direction));
                contender.unconfirmed(why);
            }
            if contender.name == TrialOutcome::STACK {
                // It has no other pairs than these.
                contender.take_run(run);
            }
            return;
        }
        if contender.verdict().is_none() {
            let plain = sentence(&conclusion, min_gain, direction);
            let (verdict, reason) = run.verdict(conclusion.verdict, plain, spoiled);
            contender.conclude(verdict, reason);
        }
        contender.take_builds(builds(&run, direction));
        contender.take_run(run);
        if contender.verdict() != Some(RungVerdict::Keep) {
            let arm = contender.arm;
            self.climb.timed(|field| field.shut(arm));
        }
    }
}

/// The guards that the metrics of the baseline allow, and their metrics in the same order.
pub(super) fn guards(
    options: &LadderOptions,
    reported: &BTreeMap<String, Better>,
) -> Result<(Vec<Guard>, Vec<String>), StatsError> {
    let mut guards = Vec::new();
    let mut guarded = Vec::new();
    for spec in &options.guards {
        let Some(metric) = reported.get(&spec.metric) else { continue };
        if spec.metric == options.primary.name {
            continue;
        }
        guards.push(if spec.metric == ERROR_RATE {
            Guard::of_difference(&spec.metric, spec.margin)
        } else {
            Guard::new(&spec.metric, better(*metric), spec.margin)?
        });
        guarded.push(spec.metric.clone());
    }
    Ok((guards, guarded))
}

/// The value of a guard for one pair: positive is better. A metric that an arm stopped reporting is as bad as
/// can be.
pub(super) fn guard_value(name: &str, pair: &Pair) -> f64 {
    let (baseline, arm) = (pair.baseline.metrics.get(name), pair.arm.value(name));
    let (Some(baseline), Some(arm)) = (baseline, arm) else { return ALMOST_NOTHING.ln() };
    if name == ERROR_RATE {
        return baseline.value - arm;
    }
    let (one, other) = (baseline.value.max(ALMOST_NOTHING), arm.max(ALMOST_NOTHING));
    better(baseline.better).pair_log(one, other).unwrap_or_else(|_| ALMOST_NOTHING.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_that_runs_alone_has_its_share_or_as_much_as_a_verdict_takes() {
        let seconds = Duration::from_secs;
        assert_eq!(share(seconds(900), seconds(100), seconds(1), 8), seconds(100));
        assert_eq!(share(seconds(90), seconds(10), seconds(4), 8), seconds(45), "the later ones get less");
        assert_eq!(share(seconds(20), seconds(2), seconds(4), 8), seconds(20), "there is no more");
    }
}
