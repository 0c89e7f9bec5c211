//! The ladder: an A/A self-check, then the rungs, then a fresh run of what was kept.
//!
//! The rungs are compared with one baseline in complete random blocks, or (`mode = "step"`) one after the other with
//! what was kept before them.
//!
//! ```text
//! open arms -> self-check -> blocks with planned looks -> confirmation -> outcome
//!     |            |                 |                        |
//!     |            '- broken or      '- a rung leaves when    '- from fresh starts; what does not
//!     |               hopeless: stop    it is decided            hold again is inconclusive
//!     '- an arm that cannot be had is `unavailable` and fails nothing
//! ```
//!
//! Three promises carry the verdicts. Orders are drawn from the stored seed *before* their block runs. No
//! block is thrown away for what an arm did in it, only for what the machine did meanwhile, and then all its
//! arms run again. The placebo is a rung like any other until the last verdict has fallen; where it is kept, nothing
//! else is.
//!
//! Slices of resident processes keep nothing by themselves: each process has one layout, and that is one draw however
//! many slices it works. They choose what is worth running again, and fresh starts give the verdict.

pub(crate) mod boots;
mod builds;
mod contender;
mod figure;
mod race;
mod readback;
mod rows;
mod selfcheck;
mod step;
#[cfg(test)]
mod tests;
mod warm;
mod watch;
mod weather;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use planish_model::{Exit, HostFacts, nearest};
use planish_sorted::SortSmall as _;
use planish_stats::ladder::{Orders, Strictness};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::contender::Contender;
use self::figure::{Lack, figure, instead};
use self::race::Race;
use self::selfcheck::{Check, Checked};
use crate::control::{Clock, Phase, Progress, Stop, Tick};
use crate::error::TrialError;
use crate::outcome::{
    Achieved, Better, Discard, LadderMode, MetricSpec, Refusal, Rung, RungVerdict, SelfCheck,
    SelfCheckVerdict, TrialOutcome, UnitKind,
};
use crate::sample::{ArmError, Sample};

/// Seeds stay below this, so that a reader of JSON with double numbers gives them back unchanged.
pub const SEED_LIMIT: u64 = 1 << 53;

/// A metric that must not become worse by more than its margin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardSpec {
    /// The metric. One that the program does not report guards nothing, and the outcome says so.
    pub metric: String,
    /// By which fraction it may be worse, below 1; for `error_rate`, by how much in absolute terms.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub margin: f64,
}

impl GuardSpec {
    /// p99 +3 %, memory +10 %, errors +0.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        let guard = |metric: &str, margin| Self { metric: metric.to_owned(), margin };
        vec![guard("p99_ns", 0.03), guard("rss_bytes", 0.10), guard(ERROR_RATE, 0.0)]
    }
}

/// Most pairs of a rung, or of a self-check, which may double them. The interval is found among the means of all pairs
/// of pairs, whose number grows with the square: 8 million here, 64 MiB, which are sorted at each look.
pub(crate) const PAIRS_MAX: usize = 4096;

/// The metric that is a share and may be zero, so that it is compared by difference and not by ratio.
pub(crate) const ERROR_RATE: &str = "error_rate";

/// Whether kept rungs are run again from fresh starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// Yes, in as many blocks as the time allows.
    Fresh,
    /// No, and the outcome says why.
    Skip {
        /// Why.
        because: String,
    },
}

/// What each unit runs before it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUpPlan {
    /// What the self-check finds, where its units have windows enough to look at.
    #[default]
    Auto,
    /// The same, and the units of the self-check are made long enough for it.
    Detect,
    /// So much.
    Fixed(Duration),
}

/// What helps where a gain takes more pairs than a ladder runs, as the end of a sentence.
#[derive(Clone, Copy, Debug)]
pub struct PairsCure {
    /// Where a trial may ask for as many.
    pub more: &'static str,
    /// Where none may.
    pub beyond: &'static str,
}

impl PairsCure {
    /// The same for any number: of a ladder whose user cannot ask for more.
    #[must_use]
    pub const fn alike(cure: &'static str) -> Self {
        Self { more: cure, beyond: cure }
    }

    /// For so many pairs.
    fn of(self, pairs: usize) -> &'static str {
        if pairs > PAIRS_MAX { self.beyond } else { self.more }
    }
}

/// Everything that is fixed before the first unit.
#[derive(Clone, Debug)]
pub struct LadderOptions {
    /// Name of the trial.
    pub trial: String,
    /// What it asks.
    pub summary: String,
    /// Whether it is the short form; told in the outcome.
    pub quick: bool,
    /// The metric that decides.
    pub primary: MetricSpec,
    /// How it is climbed.
    pub mode: LadderMode,
    /// Whether the two arms of a pair run at the same time.
    pub duet: bool,
    /// Smallest gain worth keeping, as a fraction: of the rung that needs the least. The self-check and the placebo go
    /// by it.
    pub min_gain: f64,
    /// The same for each rung, in their planned order; empty where all need the same.
    pub rung_gains: Vec<f64>,
    /// Largest gain that is hoped for, as a fraction: an experiment that could not even see this is refused.
    pub hope: f64,
    /// How much error the whole ladder may make.
    pub strictness: Strictness,
    /// Metrics that must not become worse.
    pub guards: Vec<GuardSpec>,
    /// Seed of every draw, below [`SEED_LIMIT`].
    pub seed: u64,
    /// Time for everything that is still to come.
    pub budget: Duration,
    /// Time that was spent before: on making data and raising pools.
    pub spent: Duration,
    /// Pairs of a rung at most.
    pub pairs_max: usize,
    /// Pairs before which none is judged, where there is time for so many.
    pub pairs_min: usize,
    /// What helps where these are too few.
    pub pairs_cure: PairsCure,
    /// Pairs of the self-check; 8 at least.
    pub selfcheck_pairs: usize,
    /// What each unit runs before it is measured.
    pub warm_up: WarmUpPlan,
    /// Whether kept rungs are run again.
    pub confirm: Confirm,
    /// The machine, for the outcome.
    pub host: HostFacts,
    /// What was refused before the ladder began; told first in the outcome.
    pub refused: Vec<Refusal>,
}

impl LadderOptions {
    /// Smallest gain at which an arm of the plan is worth keeping; the placebo is held to the least of all.
    fn min_gain_of(&self, arm: usize) -> f64 {
        let gain = arm.checked_sub(1).and_then(|rung| self.rung_gains.get(rung));
        gain.copied().unwrap_or(self.min_gain)
    }

    /// Whether rungs run one after the other, each in pairs with what it is compared with.
    fn is_one_by_one(&self) -> bool {
        self.mode == LadderMode::Step || self.duet
    }
}

/// A seed for a trial whose user gave none.
#[must_use]
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mixed = planish_stats::Rng::stream(now.as_nanos() as u64, u64::from(std::process::id())).next_u64();
    mixed % SEED_LIMIT
}

/// The side of a trial that touches programs and the host. Arm 0 is the baseline, the last one the placebo.
pub(crate) trait Field {
    /// What one replicate is.
    fn unit(&self) -> UnitKind;

    /// Names of all arms.
    fn names(&self) -> Vec<String>;

    /// The two arms of a self-check pair: the same one twice, or two that are made alike.
    fn twins(&self) -> [usize; 2];

    /// Makes an arm ready, from a fresh start; also for one that is ready already. `None`: it tells with its
    /// samples.
    fn open(&mut self, arm: usize) -> Result<Option<Achieved>, ArmError>;

    /// Lets go of an arm that is no longer needed.
    fn shut(&mut self, arm: usize);

    /// One unit of each arm in `order`, in that order; equal seeds are equal work.
    fn block(&mut self, order: &[usize], seed: u64) -> Vec<Result<Sample, ArmError>>;

    /// Gives the units of the self-check at least so many windows, for a warm-up to be seen; none is the end of it.
    fn lengthen(&mut self, _windows: Option<usize>) {}

    /// Runs each arm for so long before it is measured, from now on; false where that cannot be.
    fn warm_up(&mut self, _time: Duration) -> bool {
        false
    }

    /// A sample of before as such a unit would give it now, and by how many seconds the unit is longer now. `None`
    /// where it must be run again.
    fn recut(&self, _sample: &Sample) -> Option<(Sample, f64)> {
        None
    }

    /// The next block is that of so many pairs before it: whose turn it is of what takes turns.
    fn at_block(&mut self, _block: usize) {}

    /// Every block starts its arms afresh from now on, also where they stayed resident until now.
    fn start_afresh(&mut self) {}

    /// Whether something else set the host between its units, so that pairs of before and after are of two hosts.
    fn is_disturbed(&self) -> bool {
        false
    }

    /// What it has to say of all units together.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Puts kept arms, the best first, together into a new arm. `None` where arms exclude each other by
    /// nature.
    fn stack(&mut self, _kept: &[usize]) -> Option<Stack> {
        None
    }
}

/// Kept arms put together.
pub(crate) struct Stack {
    /// The new arm: the last one of the field from now on.
    pub(crate) arm: usize,
    /// Kept arms that contradict a better one.
    pub(crate) left_out: Vec<usize>,
}

/// Runs a ladder from the first start to the outcome, and lets go of every arm whatever happens.
pub(crate) fn climb(
    field: &mut dyn Field,
    options: &LadderOptions,
    progress: &mut dyn Progress,
    stop: &Stop,
) -> Result<TrialOutcome, TrialError> {
    climb_by(Clock::start(), field, options, progress, stop)
}

/// The same by a clock of the caller.
fn climb_by(
    clock: Clock,
    field: &mut dyn Field,
    options: &LadderOptions,
    progress: &mut dyn Progress,
    stop: &Stop,
) -> Result<TrialOutcome, TrialError> {
    let mut climb = Climb::new(clock, field, options, progress, stop);
    let outcome = climb.run();
    climb.tick(Phase::CleanUp, 0, 1);
    for arm in 0..climb.names.len() {
        climb.field.shut(arm);
    }
    outcome
}

/// Runs only the self-check of a field; `None` when it was stopped.
pub(crate) fn check_only(
    field: &mut dyn Field,
    options: &LadderOptions,
    progress: &mut dyn Progress,
    stop: &Stop,
) -> Result<Option<SelfCheck>, TrialError> {
    let mut climb = Climb::new(Clock::start(), field, options, progress, stop);
    let twins = climb.field.twins();
    climb.plan_warm_up();
    let opened = twins.iter().try_for_each(|&arm| climb.timed(|field| field.open(arm)).map(drop));
    climb.opened = climb.clock.elapsed();
    let checked = match opened {
        Ok(()) => climb.self_check(),
        Err(ArmError::Stopped) => Ok(Checked::Stopped),
        Err(error) => Err(climb.baseline_error(&error)),
    };
    for arm in twins {
        climb.field.shut(arm);
    }
    match checked? {
        Checked::Done(check) => Ok(Some(check.outcome)),
        Checked::Stopped => Ok(None),
        Checked::TimeUp { pairs, pair } => {
            let seconds = climb.seconds_needed(climb.opened, pair, 0);
            Err(TrialError::TimeUp { pairs, seconds })
        }
    }
}

/// One climb under way.
pub(crate) struct Climb<'a> {
    pub(crate) field: &'a mut dyn Field,
    pub(crate) options: &'a LadderOptions,
    pub(crate) stop: &'a Stop,
    pub(crate) names: Vec<String>,
    pub(crate) orders: Orders,
    pub(crate) watch: watch::Watch,
    pub(crate) discarded: Vec<Discard>,
    pub(crate) blocks: Vec<Vec<String>>,
    /// Metrics that the baseline reports, learned in the self-check.
    pub(crate) reported: BTreeMap<String, Better>,
    progress: &'a mut dyn Progress,
    clock: Clock,
    /// When all arms were ready.
    opened: Duration,
    started_at: u64,
    in_field: Duration,
    budget_needed_seconds: Option<u64>,
    notes: Vec<String>,
    refused: Vec<Refusal>,
    /// Why no further rung can be compared: the arm to compare it with does not run any more.
    lost: Option<String>,
}

impl<'a> Climb<'a> {
    fn new(
        clock: Clock,
        field: &'a mut dyn Field,
        options: &'a LadderOptions,
        progress: &'a mut dyn Progress,
        stop: &'a Stop,
    ) -> Self {
        let names = field.names();
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        Self {
            field,
            options,
            stop,
            names,
            orders: Orders::new(options.seed),
            watch: watch::Watch::new(),
            discarded: Vec::new(),
            blocks: Vec::new(),
            reported: BTreeMap::new(),
            progress,
            clock,
            opened: Duration::ZERO,
            started_at,
            in_field: Duration::ZERO,
            budget_needed_seconds: None,
            notes: Vec::new(),
            refused: options.refused.clone(),
            lost: None,
        }
    }

    fn run(&mut self) -> Result<TrialOutcome, TrialError> {
        self.plan_warm_up();
        let (baseline_achieved, mut contenders) = self.open_all()?;
        // After this point every arm that can be had is ready, and the others say why not.

        let checked = self.self_check()?;
        // After this point the noise is known, and thresholds for discards with it.

        let check = self.checked(checked, &mut contenders);
        let verdict = check.as_ref().map(|check| check.outcome.verdict);
        let hopeless = check.as_ref().is_some_and(|check| check.hopeless);
        match verdict {
            None => {}
            Some(SelfCheckVerdict::Broken) => {
                conclude_all(&mut contenders, "two equal arms differ here, so no difference can be believed");
            }
            Some(_) if hopeless => {
                conclude_all(&mut contenders, "the noise would hide even the largest gain that is hoped for");
            }
            Some(_) => {
                let unit_seconds = check.as_ref().map_or(0.0, |check| check.outcome.pair_seconds / 2.0);
                if self.options.is_one_by_one() {
                    self.climb_one_by_one(&mut contenders, unit_seconds)?;
                } else {
                    Race::ladder(self, &mut contenders, unit_seconds)?.run()?;
                }
                // After this point each rung has a verdict of its own pairs; none has been confirmed.
                if self.field.unit() == UnitKind::Slice {
                    self.leave_to_fresh_starts(&mut contenders)?;
                } else if !self.disbelieve_all(&mut contenders) {
                    self.confirm(&mut contenders)?;
                    self.disbelieve_all(&mut contenders);
                }
            }
        }
        let selfcheck = check.map(|check| {
            self.refused.extend(check.refusal);
            check.outcome
        });
        self.tell_of_the_cap(&contenders);
        let rungs = contenders.into_iter().map(|contender| contender.into_rung(self.options)).collect();
        Ok(self.outcome(baseline_achieved, selfcheck, rungs))
    }

    /// The self-check, where it came to an end; without it no rung can be judged.
    fn checked(&mut self, checked: Checked, contenders: &mut [Contender]) -> Option<Check> {
        match checked {
            Checked::Done(check) => return Some(*check),
            Checked::Stopped => conclude_all(contenders, "stopped before the self-check was complete"),
            Checked::TimeUp { pairs, pair } => {
                conclude_all(contenders, NO_TIME);
                let seconds = self.seconds_needed(self.opened, pair, contenders.len());
                self.budget_needed_seconds = Some(seconds);
                self.refused.push(Refusal {
                    what: "the ladder".to_owned(),
                    why: format!("the time was up after {pairs} pairs of the self-check"),
                    cure: budget_cure(seconds),
                });
            }
        }
        None
    }

    /// Time for everything that is enough for a self-check and a ladder of the fewest pairs, when `before` went by
    /// until the first of them and a pair takes as long as this one. Without any so far: as long as two arms took to
    /// be made ready.
    fn seconds_needed(&self, before: Duration, pair: Duration, rungs: usize) -> u64 {
        let starts = before.as_secs_f64() / self.names.len() as f64;
        let pair = if pair.is_zero() { 2.0 * starts } else { pair.as_secs_f64() };
        let blocks = if rungs == 0 { 0.0 } else { race::fewest_pairs(rungs, self.options) as f64 + 1.0 };
        let ladder = blocks * (rungs + 1) as f64 * pair / 2.0 / race::ladder_share(self.options);
        let selfcheck = (self.options.selfcheck_pairs + 1) as f64 * pair;
        let seconds = (self.options.spent + before).as_secs_f64() + selfcheck + ladder;
        (race::BUDGET_MARGIN * seconds).ceil() as u64
    }

    /// Starts every arm once; a rung that fails is out, a baseline that fails ends the trial.
    fn open_all(&mut self) -> Result<(Option<Achieved>, Vec<Contender>), TrialError> {
        let count = self.names.len();
        let mut baseline = None;
        let mut contenders = Vec::new();
        for arm in 0..count {
            self.tick(Phase::Prepare, arm, count);
            // The baseline is made ready in any case: whether it runs at all is worth knowing.
            let is_late = arm > 0 && self.left().is_zero();
            let opened = if is_late { Err(ArmError::Stopped) } else { self.timed(|field| field.open(arm)) };
            if let Err(error) = opened.as_ref().map_err(Clone::clone)
                && error.ends_the_trial()
            {
                return Err(host_error(error));
            }
            if arm == 0 {
                baseline = opened.map_err(|error| self.baseline_error(&error))?;
                continue;
            }
            // The placebo is the last arm; under its own name it would not be hidden from a curious caller.
            let name = if arm + 1 == count { TrialOutcome::PLACEBO } else { &self.names[arm] };
            let mut contender = Contender::new(arm, name.to_owned(), self.options.min_gain_of(arm));
            contender.against = vec![self.names[0].clone()];
            contender.take_opened(opened, &mut self.refused);
            if is_late {
                contender.conclude(RungVerdict::Inconclusive, NO_TIME.to_owned());
            }
            contenders.push(contender);
        }
        self.opened = self.clock.elapsed();
        Ok((baseline, contenders))
    }

    /// What slices of resident processes seem to gain, the placebo among it, is kept only by fresh starts: one start of
    /// each program is one draw of its layout.
    fn leave_to_fresh_starts(&mut self, contenders: &mut Vec<Contender>) -> Result<(), TrialError> {
        if let Confirm::Skip { because } = &self.options.confirm {
            let note = format!(
                "every figure here is of one start of each program, and only fresh starts tell a gain from the layout \
                 that a start got; none was run: {because}"
            );
            self.notes.push(note);
            for contender in contenders.iter_mut() {
                contender.tested = false;
                if contender.is_kept() {
                    contender.only_this_start();
                }
            }
            return Ok(());
        }
        self.field.start_afresh();
        self.confirm(contenders)?;
        self.disbelieve_all(contenders);
        Ok(())
    }

    /// Takes back every keep where something other than the rungs can have made it; whether it did.
    ///
    /// What made two equal arms differ may have made the others. Who sets the host between two units may have made a
    /// gain, or taken one away by making all arms alike: then a drop by pairs is none, either. The placebo's own
    /// verdict stays, so that it is counted.
    fn disbelieve_all(&self, contenders: &mut [Contender]) -> bool {
        let Some((placebo, rungs)) = contenders.split_last_mut() else { return false };
        let of_two_hosts = self.field.is_disturbed();
        let reason = if placebo.is_kept() {
            "the placebo was kept too: this run finds gains where there are none"
        } else if of_two_hosts {
            "something else set the host between two units: its pairs are of two hosts"
        } else {
            return false;
        };
        let is_doubtful =
            |rung: &&mut Contender| rung.is_kept() || (of_two_hosts && rung.is_dropped_by_pairs());
        for rung in rungs.iter_mut().filter(is_doubtful) {
            rung.conclude(RungVerdict::Inconclusive, reason.to_owned());
        }
        true
    }

    /// Runs kept rungs again from fresh starts: each by itself, or all together where they can be.
    fn confirm(&mut self, contenders: &mut Vec<Contender>) -> Result<(), TrialError> {
        let mut kept: Vec<&Contender> = contenders.iter().filter(|contender| contender.is_kept()).collect();
        if kept.is_empty() {
            return Ok(());
        }
        if let Confirm::Skip { because } = &self.options.confirm {
            self.notes.push(format!("kept rungs were not run again: {because}"));
            return Ok(());
        }
        if self.stop.is_set() {
            for contender in contenders.iter_mut().filter(|contender| contender.is_kept()) {
                contender.tested = false;
                contender.unconfirmed(race::STOPPED.to_owned());
            }
            return Ok(());
        }
        let min_gain = kept.iter().map(|contender| contender.min_gain).fold(0.0, f64::max);
        // In step mode the last one that was kept is on top of all the others.
        let last = kept[kept.len() - 1].arm;
        kept.sort_small_by(|a, b| b.effect().total_cmp(&a.effect()));
        let kept: Vec<usize> = kept.into_iter().map(|contender| contender.arm).collect();
        let stack = match self.options.mode {
            _ if kept.len() < 2 => None,
            LadderMode::Step => Some(Stack { arm: last, left_out: Vec::new() }),
            LadderMode::Block => self.stack(&kept, TrialOutcome::STACK),
        };
        let Some(stack) = stack else {
            return self.run_fresh(&kept, contenders);
        };
        let mut together = vec![Contender::stack(stack.arm, min_gain, &self.names[0])];
        self.run_fresh(&[stack.arm], &mut together)?;
        let stacked = together.remove(0);
        for contender in contenders.iter_mut().filter(|contender| contender.is_kept()) {
            contender.share_fate(&stacked, stack.left_out.contains(&contender.arm));
        }
        // The placebo stays the last.
        contenders.insert(contenders.len() - 1, stacked);
        Ok(())
    }

    /// Puts arms together into a new one of this name.
    fn stack(&mut self, arms: &[usize], name: &str) -> Option<Stack> {
        let stack = self.field.stack(arms)?;
        self.names.push(name.to_owned());
        Some(stack)
    }

    /// Starts the baseline and some arms afresh, and runs those of them that are kept against it. An arm that fails to
    /// start is not confirmed, and without the baseline none is.
    fn run_fresh(&mut self, arms: &[usize], contenders: &mut [Contender]) -> Result<(), TrialError> {
        for &arm in [0].iter().chain(arms) {
            if self.left().is_zero() {
                // The race finds no time either, and says so.
                break;
            }
            match self.timed(|field| field.open(arm)) {
                Ok(_) => {}
                // So does it of a stop.
                Err(ArmError::Stopped) => break,
                Err(error) if error.ends_the_trial() => return Err(host_error(error)),
                Err(error) if arm == 0 => {
                    let why = self.lose(Phase::Confirm, 0, &format!("does not start afresh: {error}"));
                    for contender in contenders.iter_mut().filter(|contender| contender.is_kept()) {
                        contender.tested = false;
                        contender.unconfirmed(format!("not comparable: {why}"));
                    }
                    return Ok(());
                }
                Err(error) => {
                    let started = contenders.iter_mut().find(|contender| contender.arm == arm);
                    let contender = started.expect("each arm is that of a contender");
                    contender.tested = false;
                    contender.unconfirmed(format!("its fresh start failed: {error}"));
                }
            }
        }
        Race::confirmation(self, contenders)?.run()
    }

    /// The arm that others are compared with does not run any more: says so, and why, for their reasons.
    fn lose(&mut self, phase: Phase, arm: usize, how: &str) -> String {
        let name = &self.names[arm];
        let what = match phase {
            Phase::Confirm => "the confirmation",
            _ => "the rest of the ladder",
        };
        let why = match arm {
            0 => format!("the baseline `{name}` {how}"),
            _ => format!("what was kept before, `{name}`, {how}"),
        };
        let cure = format!("run the command of `{name}` by hand, mend what ends it, and run the trial again");
        self.refused.push(Refusal { what: what.to_owned(), why: why.clone(), cure });
        self.lost = Some(why.clone());
        why
    }

    /// Where rungs are open although there was time for more pairs, what ended them is their number.
    fn tell_of_the_cap(&mut self, contenders: &[Contender]) {
        let (left, cap) = (self.left().as_secs(), self.options.pairs_max);
        let is_capped = |contender: &&Contender| {
            contender.verdict() == Some(RungVerdict::Inconclusive) && contender.pairs() >= cap
        };
        // The placebo, the last one, changes nothing: more pairs of it would show nothing either.
        let rungs = &contenders[..contenders.len().saturating_sub(1)];
        let open: Vec<&str> = rungs.iter().filter(is_capped).map(|rung| rung.name.as_str()).collect();
        if !open.is_empty() && left > 0 && !self.stop.is_set() {
            self.refused.push(Refusal {
                what: format!("more pairs of {}", open.join(", ")),
                why: format!("{cap} pairs of a rung are the most here, and {left} s of the budget are left"),
                cure: self.options.pairs_cure.of(cap + 1).to_owned(),
            });
        }
    }

    fn outcome(
        &mut self,
        baseline_achieved: Option<Achieved>,
        selfcheck: Option<SelfCheck>,
        rungs: Vec<Rung>,
    ) -> TrialOutcome {
        if self.stop.is_set() {
            self.notes.push("stopped by the user: rungs without a verdict are inconclusive".to_owned());
        }
        self.notes.extend(self.field.notes());
        let seconds = self.clock.elapsed().as_secs_f64();
        let mut outcome = TrialOutcome {
            trial: self.options.trial.clone(),
            summary: self.options.summary.clone(),
            // Both are told by whoever made the field out of a file, or out of options.
            command: String::new(),
            setup: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unit: self.field.unit(),
            primary: self.options.primary.clone(),
            mode: self.options.mode,
            duet: self.options.duet,
            baseline: self.names[0].clone(),
            baseline_achieved,
            min_gain: self.options.min_gain,
            alpha: race::ladder_alpha(self.options.strictness),
            seed: self.options.seed,
            started_at: self.started_at,
            seconds,
            overhead: (seconds - self.in_field.as_secs_f64()).max(0.0) / seconds.max(f64::MIN_POSITIVE),
            quick: self.options.quick,
            host: self.options.host.clone(),
            selfcheck,
            rungs,
            blocks: std::mem::take(&mut self.blocks),
            refused: std::mem::take(&mut self.refused),
            discarded: std::mem::take(&mut self.discarded),
            notes: std::mem::take(&mut self.notes),
            budget_needed_seconds: self.budget_needed_seconds,
            boots: None,
            exit: Exit::Done.code(),
            proof_id: None,
        };
        if outcome.placebo_was_kept() {
            let note = "the placebo was kept: this run found a gain where there is none, so no rung of it is believed";
            outcome.notes.push(note.to_owned());
        }
        outcome.exit = outcome.exit_of_rungs().code();
        outcome
    }

    /// Calls the field and counts the time as that of the arms, not as our own.
    pub(crate) fn timed<T>(&mut self, call: impl FnOnce(&mut dyn Field) -> T) -> T {
        let begun = self.clock.elapsed();
        let answer = call(self.field);
        self.in_field += self.clock.elapsed().saturating_sub(begun);
        answer
    }

    /// One unit of each arm in `order`, and how long the block took. What its units spent on reading counters is our
    /// own time, too.
    pub(crate) fn block(&mut self, order: &[usize], seed: u64) -> (Vec<Result<Sample, ArmError>>, Duration) {
        let begun = self.clock.elapsed();
        let samples = self.timed(|field| field.block(order, seed));
        let ours = samples.iter().flatten().map(|sample| sample.bookkeeping).sum();
        self.in_field = self.in_field.saturating_sub(ours);
        (samples, self.clock.elapsed().saturating_sub(begun))
    }

    pub(crate) fn tick(&mut self, phase: Phase, done: usize, of: usize) {
        let left_seconds = self.left().as_secs_f64();
        self.progress.tick(&Tick { phase, done, of, left_seconds });
    }

    /// Time that is left of the budget.
    pub(crate) fn left(&self) -> Duration {
        self.options.budget.saturating_sub(self.clock.elapsed())
    }

    pub(crate) fn baseline_error(&self, error: &ArmError) -> TrialError {
        TrialError::of_baseline(&self.names[0], error)
    }

    /// The primary metric of a sample of the baseline, as the self-check needs it.
    pub(crate) fn primary(&self, sample: &Sample) -> Result<f64, TrialError> {
        let metric = &self.options.primary.name;
        figure(sample, metric).map_err(|lack| match lack {
            Lack::Missing => TrialError::NoMetric {
                metric: metric.clone(),
                nearest: nearest(metric, sample.metrics.keys().map(String::as_str)).map(str::to_owned),
                known: sample.metrics.keys().cloned().collect(),
            },
            Lack::NotAboveZero(value) => {
                TrialError::NotAboveZero { metric: metric.clone(), value, instead: instead(sample, metric) }
            }
        })
    }
}

/// Why a rung has no pairs when others took the time.
const NO_TIME: &str = "no pair was run: the time was up";

/// What gives a trial more time.
fn budget_cure(seconds: u64) -> String {
    format!("--budget {seconds}, or budget_seconds = {seconds} in a trial file")
}

fn conclude_all(contenders: &mut [Contender], reason: &str) {
    for contender in contenders.iter_mut().filter(|contender| contender.verdict().is_none()) {
        contender.conclude(RungVerdict::Inconclusive, reason.to_owned());
    }
}

/// Why the trial has ended, whichever arm was about to run.
pub(crate) fn host_error(error: ArmError) -> TrialError {
    match error {
        ArmError::Refused { what, cure } => TrialError::Refused { what, cure },
        ArmError::Host { detail, restored } => TrialError::Host { detail, restored },
        other => TrialError::Host { detail: other.to_string(), restored: true },
    }
}
