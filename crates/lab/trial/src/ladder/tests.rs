//! Time, by a clock that the field itself turns.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use planish_model::{Exit, HostFacts};
use planish_stats::Rng;
use planish_stats::ladder::Strictness;

use super::*;
use crate::control::Silent;

/// A field whose units take their time on a clock of its own, and no time at all on ours.
struct Slow {
    now: Rc<Cell<Duration>>,
    start: Duration,
    unit: Duration,
    /// Share of a unit that goes into reading counters.
    bookkeeping: f64,
    costs: Vec<f64>,
    rng: Rng,
}

impl Slow {
    fn new(start_seconds: f64, unit_seconds: f64, costs: &[f64]) -> Self {
        Self {
            now: Rc::default(),
            start: Duration::from_secs_f64(start_seconds),
            unit: Duration::from_secs_f64(unit_seconds),
            bookkeeping: 0.0,
            costs: costs.to_vec(),
            rng: Rng::new(4),
        }
    }

    fn spend(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }

    fn clock(&self) -> Clock {
        let now = Rc::clone(&self.now);
        Clock::of(move || now.get())
    }
}

impl Field for Slow {
    fn unit(&self) -> UnitKind {
        UnitKind::Start
    }

    fn names(&self) -> Vec<String> {
        (0..self.costs.len()).map(|arm| format!("arm{arm}")).collect()
    }

    fn twins(&self) -> [usize; 2] {
        [0, self.costs.len() - 1]
    }

    fn open(&mut self, _arm: usize) -> Result<Option<Achieved>, ArmError> {
        self.spend(self.start);
        Ok(None)
    }

    fn shut(&mut self, _arm: usize) {}

    fn block(&mut self, order: &[usize], _seed: u64) -> Vec<Result<Sample, ArmError>> {
        let unit = |&arm: &usize| {
            self.spend(self.unit);
            let mut sample =
                Sample::default().lower("cost", "s", self.costs[arm] * (0.01 * self.rng.normal()).exp());
            sample.bookkeeping = self.unit.mul_f64(self.bookkeeping);
            Ok(sample)
        };
        order.iter().map(unit).collect()
    }
}

pub(super) fn options(budget_seconds: f64, selfcheck_pairs: usize) -> LadderOptions {
    LadderOptions {
        trial: "t".to_owned(),
        summary: String::new(),
        quick: false,
        primary: MetricSpec { name: "cost".to_owned(), unit: "s".to_owned(), better: Better::Lower },
        mode: LadderMode::Block,
        duet: false,
        min_gain: 0.01,
        rung_gains: Vec::new(),
        hope: 0.5,
        strictness: Strictness::Usual,
        guards: Vec::new(),
        seed: 3,
        budget: Duration::from_secs_f64(budget_seconds),
        spent: Duration::ZERO,
        pairs_max: 32,
        pairs_cure: PairsCure { more: "raise `pairs`", beyond: "wait for a quieter hour" },
        pairs_min: 0,
        selfcheck_pairs,
        warm_up: WarmUpPlan::Auto,
        confirm: Confirm::Fresh,
        host: HostFacts::default(),
        refused: Vec::new(),
    }
}

fn run(field: &mut Slow, options: &LadderOptions) -> TrialOutcome {
    let clock = field.clock();
    climb_by(clock, field, options, &mut Silent, &Stop::default()).expect("it runs")
}

const COSTS: [f64; 4] = [100.0, 80.0, 99.0, 100.0];

#[test]
fn a_trial_ends_within_its_budget_and_one_block_however_slow_its_units_are() {
    for unit_seconds in [0.05, 0.4, 1.0, 2.5, 6.0, 20.0, 90.0] {
        for start_seconds in [0.0, 1.0, 15.0] {
            let mut field = Slow::new(start_seconds, unit_seconds, &COSTS);
            let outcome = run(&mut field, &options(60.0, 12));
            let block = unit_seconds * COSTS.len() as f64;
            let limit = 60.0 + f64::max(block, start_seconds) + 1e-6;
            assert!(outcome.seconds <= limit, "{} s of units of {unit_seconds} s", outcome.seconds);
            if outcome.selfcheck.is_none() {
                assert_eq!(outcome.exit, Exit::Inconclusive.code());
                assert!(outcome.refused[0].why.contains("pairs of the self-check"), "{:?}", outcome.refused);
                assert!(outcome.budget_needed_seconds.is_some_and(|seconds| seconds > 60));
                assert!(outcome.rungs.iter().all(|rung| rung.reason == NO_TIME), "{:?}", outcome.rungs);
            }
        }
    }
}

#[test]
fn the_time_that_is_named_is_enough() {
    let mut field = Slow::new(1.0, 6.0, &COSTS);
    let short = run(&mut field, &options(60.0, 8));
    let seconds = short.budget_needed_seconds.expect("it was too short");
    let outcome = run(&mut Slow::new(1.0, 6.0, &COSTS), &options(seconds as f64, 8));
    assert_eq!(outcome.budget_needed_seconds, None, "{:?}", outcome.refused);
    assert!(outcome.selfcheck.is_some() && outcome.rungs[0].pairs >= 8, "{} pairs", outcome.rungs[0].pairs);
}

#[test]
fn a_long_self_check_is_shortened_for_the_sake_of_the_rungs_and_says_so() {
    let outcome = run(&mut Slow::new(0.0, 1.0, &COSTS), &options(100.0, 40));
    let pairs = outcome.selfcheck.as_ref().expect("it was made").pairs;
    assert!((8..=20).contains(&pairs), "{pairs}");
    let note = format!("the self-check made {pairs} of 40 pairs");
    assert!(outcome.notes.iter().any(|one| one.starts_with(&note)), "{:?}", outcome.notes);
    assert!(outcome.rungs[0].pairs > 0);
}

#[test]
fn a_trial_that_its_number_of_pairs_ended_says_so_and_one_that_its_time_ended_does_not() {
    // A fourteenth of what a pair differs by is asked for: no 32 pairs show or exclude that.
    let costs = [100.0, 100.0, 100.0];
    let capped = |budget_seconds| {
        let options = LadderOptions { min_gain: 0.001, ..options(budget_seconds, 8) };
        run(&mut Slow::new(0.0, 1.0, &costs), &options)
    };
    let outcome = capped(10_000.0);
    let rung = &outcome.rungs[0];
    assert_eq!((rung.verdict, rung.pairs), (RungVerdict::Inconclusive, 32), "{}", rung.reason);
    let told = outcome.refused.last().expect("what ended it");
    assert_eq!(told.what, "more pairs of arm1");
    assert!(told.why.starts_with("32 pairs of a rung are the most here, and "), "{}", told.why);
    assert!(told.why.ends_with(" s of the budget are left"), "{}", told.why);
    assert_eq!(told.cure, "raise `pairs`");
    let advice = &outcome.selfcheck.as_ref().expect("it was made").advice;
    assert!(advice.ends_with(", and 32 are run at most: raise `pairs`"), "{advice}");
    let plan = LadderOptions { min_gain: 0.0001, ..options(60.0, 8) };
    let outcome = run(&mut Slow::new(0.0, 1.0, &costs), &plan);
    let advice = &outcome.selfcheck.as_ref().expect("it was made").advice;
    assert!(advice.contains(", and 32 are run at most: wait for a quieter hour"), "{advice}");

    let outcome = capped(60.0);
    assert!(outcome.rungs[0].pairs < 32 && outcome.refused.is_empty(), "{:?}", outcome.refused);
}

#[test]
fn a_self_check_alone_that_has_no_time_names_what_it_takes() {
    let mut field = Slow::new(0.0, 5.0, &COSTS);
    let clock = field.clock();
    let options = options(30.0, 8);
    let (mut silent, stop) = (Silent, Stop::default());
    let mut climb = Climb::new(clock, &mut field, &options, &mut silent, &stop);
    match climb.self_check().expect("it runs") {
        Checked::TimeUp { pairs, pair } => {
            assert_eq!((pairs, pair), (2, Duration::from_secs(10)));
            assert!((90..120).contains(&climb.seconds_needed(Duration::ZERO, pair, 0)));
        }
        Checked::Done(_) | Checked::Stopped => panic!("80 s do not fit into 30 s"),
    }
}

#[test]
fn a_trial_of_the_hours_that_the_self_check_names_could_see_the_smallest_gain() {
    let check = |options: &LadderOptions| {
        let mut field = Slow::new(3.0, 1.0, &COSTS);
        let clock = field.clock();
        let (mut silent, stop) = (Silent, Stop::default());
        match Climb::new(clock, &mut field, options, &mut silent, &stop).self_check().expect("it runs") {
            Checked::Done(check) => check.outcome,
            Checked::TimeUp { .. } | Checked::Stopped => panic!("8 pairs fit into any of these budgets"),
        }
    };
    let modes = [(LadderMode::Block, false), (LadderMode::Step, false), (LadderMode::Block, true)];
    for (mode, duet) in modes {
        for confirm in [Confirm::Fresh, Confirm::Skip { because: "it is only a try".to_owned() }] {
            let plan = LadderOptions {
                mode,
                duet,
                confirm,
                min_gain: 0.001,
                pairs_max: 1_000_000,
                ..options(100.0, 8)
            };
            let hours = check(&plan).hours_needed.expect("0.1 % is not seen in 100 s");
            let given = |share: f64| {
                let budget = Duration::from_secs_f64(share * hours * 3600.0);
                check(&LadderOptions { budget, ..plan.clone() }).verdict
            };
            assert_eq!(given(1.01), SelfCheckVerdict::Ok, "{mode:?} {duet} {hours}");
            assert_eq!(given(0.97), SelfCheckVerdict::Noisy, "{mode:?} {duet} {hours}");
        }
    }
}

#[test]
fn no_rung_is_judged_before_its_fewest_pairs() {
    let pairs = |pairs_min, budget_seconds| {
        let options = LadderOptions { pairs_min, ..options(budget_seconds, 8) };
        let outcome = run(&mut Slow::new(0.0, 0.5, &COSTS), &options);
        let half = outcome.rungs[0].clone();
        assert_eq!(half.verdict, RungVerdict::Keep, "{}", half.reason);
        (half.pairs, half.confirmed.expect("there is time").pairs)
    };
    assert_eq!(pairs(0, 600.0), (12, 12), "20 % are plain to see");
    assert_eq!(pairs(20, 600.0), (20, 20));
    assert!(pairs(32, 60.0).0 < 32, "there is no time for so many");
}

#[test]
fn reading_counters_is_our_own_time() {
    let mut field = Slow::new(0.0, 0.5, &COSTS);
    field.bookkeeping = 0.04;
    let outcome = run(&mut field, &options(200.0, 8));
    assert!((outcome.overhead - 0.04).abs() < 0.001, "{}", outcome.overhead);
}

#[test]
fn pairs_that_the_clock_ended_count_as_a_test_once_they_could_have_kept_a_rung() {
    let mut seen = [0, 0];
    for budget_seconds in (40..160).step_by(4) {
        let outcome = run(&mut Slow::new(0.0, 1.0, &COSTS), &options(f64::from(budget_seconds), 8));
        let placebo = outcome.rungs.last().expect("the placebo");
        let tested = placebo.tested.expect("told");
        seen[usize::from(tested)] += 1;
        // Two rungs and the placebo share 0.1, so that seven unanimous pairs are the fewest that keep anything.
        assert!(!tested || placebo.pairs >= 7, "{} pairs in {budget_seconds} s", placebo.pairs);
        assert!(tested || placebo.pairs < 16, "{} pairs in {budget_seconds} s", placebo.pairs);
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn a_confirmation_without_time_for_twelve_pairs_keeps_nothing() {
    let mut short = 0;
    for budget_seconds in (100..260).step_by(8) {
        // Fresh starts take time that the ladder has not.
        let costs = [100.0, 80.0, 80.0, 100.0];
        let outcome = run(&mut Slow::new(8.0, 1.0, &costs), &options(f64::from(budget_seconds), 8));
        let rung = &outcome.rungs[0];
        let pairs = rung.confirmed.as_ref().map_or(0, |confirmed| confirmed.pairs);
        if rung.verdict == RungVerdict::Keep {
            assert!(pairs >= 12, "{pairs} in {budget_seconds} s");
        }
        assert!(
            rung.confirmed.is_none() || rung.tested == Some(pairs >= 12),
            "{pairs} in {budget_seconds} s"
        );
        short += usize::from(rung.reason.contains("of at least 12 pairs were run: the time was up"));
        assert_eq!(rung.reason.contains("of at least"), (1..12).contains(&pairs), "{}", rung.reason);
    }
    assert!(short > 0, "none of these budgets was too short");
}
