//! Warm-ups of resident arms: found, cut, fixed, and never over.

use std::time::Duration;

use planish_trial::{
    Freshness, LadderOptions, ResidentArms, RungVerdict, Silent, Slicing, Stop, TrialOutcome, WarmUp,
    WarmUpPlan, WarmUpState, run_resident,
};

use crate::fake::{Fake, options};

/// 20 % slower for five slices of each start.
fn step(slice: usize) -> f64 {
    if slice < 5 { 0.2 } else { 0.0 }
}

fn run(slices: usize, plan: WarmUpPlan, course: fn(usize) -> f64) -> (TrialOutcome, usize) {
    let options = LadderOptions { warm_up: plan, selfcheck_pairs: 24, ..options(5) };
    let slicing = Slicing { slice: Duration::from_millis(100), freshness: Freshness::Restart { slices } };
    let thp = Fake::new("thp", 80.0, 0.01, 3).course(course);
    let log = thp.log.clone();
    let arms = ResidentArms {
        baseline: Fake::new("4k", 100.0, 0.01, 1).course(course).boxed(),
        rungs: vec![thp.boxed()],
        placebo: Fake::new("4k again", 100.0, 0.01, 2).course(course).boxed(),
    };
    let outcome = run_resident(arms, slicing, &options, &mut Silent, &Stop::default()).expect("it runs");
    let slices = log.borrow().slices;
    (outcome, slices)
}

fn found(outcome: &TrialOutcome) -> &WarmUp {
    outcome.selfcheck.as_ref().and_then(|check| check.warm_up.as_ref()).expect("always told")
}

/// Slices that the rung made in each of its blocks.
fn slices_per_block(outcome: &TrialOutcome, slices: usize) -> usize {
    let with_rung = outcome.blocks.iter().filter(|block| block.iter().any(|name| name == "thp")).count();
    slices / (with_rung + outcome.discarded.len())
}

#[test]
fn a_warm_up_inside_the_unit_is_found_and_run_before_every_measured_unit() {
    let (outcome, slices) = run(20, WarmUpPlan::Auto, step);
    let warm_up = found(&outcome);
    assert_eq!((warm_up.state, warm_up.windows), (WarmUpState::Cut, 20), "{warm_up:?}");
    assert!((5..=6).contains(&warm_up.cut_windows), "{warm_up:?}");
    assert!((warm_up.cut_seconds - 0.1 * warm_up.cut_windows as f64).abs() < 1e-9);
    assert_eq!((warm_up.lengths.len(), warm_up.unsteady_share), (48, Some(0.0)));
    assert_eq!(
        slices_per_block(&outcome, slices),
        20 + warm_up.cut_windows,
        "measured for as long as before"
    );
    // What is left is as quiet as the slices are: a median of twenty of 1 %.
    let check = outcome.selfcheck.as_ref().expect("it was made");
    assert!(check.sigma_d < 0.01 && check.within_starts.is_some_and(|within| within < 0.02), "{check:?}");
    let thp = &outcome.rungs[0];
    assert_eq!(thp.verdict, RungVerdict::Keep);
    assert!((thp.effect.expect("pairs") - 0.2).abs() < 0.01);
}

#[test]
fn a_warm_up_that_is_asked_for_is_found_in_longer_units_of_the_self_check_only() {
    let (outcome, slices) = run(3, WarmUpPlan::Detect, step);
    let warm_up = found(&outcome);
    assert_eq!((warm_up.state, warm_up.windows), (WarmUpState::Cut, 32), "{warm_up:?}");
    assert!((5..=6).contains(&warm_up.cut_windows), "{warm_up:?}");
    assert_eq!(slices_per_block(&outcome, slices), 3 + warm_up.cut_windows);
    let check = outcome.selfcheck.as_ref().expect("it was made");
    // The noise is that of units of three slices, and not of thirty-two: 1 % of each, the median of three 0.67 %.
    assert!((0.005..0.02).contains(&check.sigma_d), "{}", check.sigma_d);
}

#[test]
fn units_of_few_windows_say_that_nobody_looked() {
    let (outcome, slices) = run(3, WarmUpPlan::Auto, step);
    let warm_up = found(&outcome);
    assert_eq!(warm_up.state, WarmUpState::Unknown);
    assert_eq!(warm_up.reason, "a start has 3 windows, and a warm-up takes 16 to be found");
    assert_eq!((slices_per_block(&outcome, slices), warm_up.cut_windows), (3, 0));
}

#[test]
fn a_workload_that_never_becomes_steady_is_called_that() {
    let (outcome, slices) = run(16, WarmUpPlan::Auto, |slice| 0.02 * slice as f64);
    let warm_up = found(&outcome);
    assert_eq!(warm_up.state, WarmUpState::NeverSteady, "{warm_up:?}");
    assert!(warm_up.unsteady_share.is_some_and(|share| share > 0.8));
    assert!(warm_up.lengths.iter().filter(|length| length.is_none()).count() > 40);
    let note = outcome.notes.iter().find(|note| note.starts_with("this workload does not become steady"));
    assert!(note.is_some_and(|note| note.contains("of 48 starts reached no level")), "{:?}", outcome.notes);
    assert_eq!(slices_per_block(&outcome, slices), 16);
}

#[test]
fn a_warm_up_that_is_given_is_run_and_not_looked_for() {
    let (outcome, slices) = run(2, WarmUpPlan::Fixed(Duration::from_millis(450)), step);
    let warm_up = found(&outcome);
    assert_eq!((warm_up.state, warm_up.reason.as_str()), (WarmUpState::Fixed, "0.5 s, as the trial says"));
    assert_eq!(slices_per_block(&outcome, slices), 7, "five slices hold 0.45 s");
    let gain = outcome.rungs[0].effect.expect("pairs");
    assert!((gain - 0.2).abs() < 0.01, "{gain}");

    // Processes that stay are warmed up once, after their start.
    let options = LadderOptions { warm_up: WarmUpPlan::Fixed(Duration::from_millis(500)), ..options(5) };
    let slicing = Slicing { slice: Duration::from_millis(100), freshness: Freshness::Resident };
    let baseline = Fake::new("4k", 100.0, 0.01, 1).course(step);
    let arms = ResidentArms {
        baseline: baseline.boxed(),
        rungs: vec![Fake::new("thp", 80.0, 0.01, 3).course(step).boxed()],
        placebo: Fake::new("4k again", 100.0, 0.01, 2).course(step).boxed(),
    };
    let outcome = run_resident(arms, slicing, &options, &mut Silent, &Stop::default()).expect("it runs");
    let gain = outcome.rungs[0].effect.expect("pairs");
    assert!((gain - 0.2).abs() < 0.01, "{gain}");
}
