//! Baselines that crash on the way: what was measured before stays.

use std::time::Duration;

use planish_model::Exit;
use planish_trial::{
    Freshness, Proofs, Rung, RungVerdict, Silent, Slicing, Stop, TrialOutcome, run_resident,
};

use crate::fake::{Fake, Fault, arms, options};
use crate::files::{Bench, LEAN, SWAP, number_trial, verdicts};
use crate::recompute::recompute;

/// A baseline that crashes from its 26th start on: there are 16 in the self-check.
const LAST: &str = "[baseline]\nenv = { LAST = \"26\" }\n";

/// Units of the baseline in the self-check, one a pair: those of the ladder are numbered from here on.
const CHECKED: usize = 8;

/// A rung that surely pays, one that nobody can tell, and the placebo, over a baseline with a fault. Each unit is a
/// fresh start of one slice.
fn climbed(fault: Fault) -> TrialOutcome {
    let rungs = vec![Fake::new("thp", 70.0, 0.01, 3), Fake::new("loud", 97.0, 0.2, 4)];
    let mut arms = arms(rungs, 0.01, 1);
    let baseline = Fake::new("4k", 100.0, 0.01, 8).fault(fault);
    let log = baseline.log.clone();
    arms.baseline = baseline.boxed();
    let slicing = Slicing { slice: Duration::from_millis(1), freshness: Freshness::Restart { slices: 1 } };
    let outcome = run_resident(arms, slicing, &options(1), &mut Silent, &Stop::default())
        .expect("something was measured");
    assert!(!log.borrow().running, "what was started is stopped");
    recompute(&outcome);
    outcome
}

fn rung<'o>(outcome: &'o TrialOutcome, name: &str) -> &'o Rung {
    outcome.rungs.iter().find(|rung| rung.name == name).expect("it was planned")
}

/// What was not done, and why.
fn told(outcome: &TrialOutcome) -> Vec<(&str, &str)> {
    outcome.refused.iter().map(|refusal| (refusal.what.as_str(), refusal.why.as_str())).collect()
}

#[test]
fn three_crashes_of_the_baseline_end_the_rungs_and_keep_their_pairs() {
    // The fifth pair is in block 4, and blocks 5 to 7 have none.
    let outcome = climbed(Fault::CrashIn(CHECKED + 6..CHECKED + 100));
    let why = "the baseline `4k` failed in 3 blocks, the last of them 7: exit status 139";
    for rung in &outcome.rungs {
        assert_eq!((rung.verdict, rung.pairs, rung.tested), (RungVerdict::Inconclusive, 5, Some(false)));
        assert_eq!(rung.reason, format!("not comparable: {why}"), "{}", rung.name);
        assert!(rung.effect.is_some() && rung.pair_logs.len() == 5, "they are told");
    }
    assert_eq!(outcome.blocks.len(), 8, "the time that is left is not spent");
    assert_eq!(told(&outcome), [("the rest of the ladder", why)]);
    let cure = "run the command of `4k` by hand, mend what ends it, and run the trial again";
    assert_eq!(outcome.refused[0].cure, cure);
    assert!(outcome.selfcheck.is_some());
    assert_eq!(outcome.exit, Exit::Inconclusive.code());
}

#[test]
fn the_self_check_stays_where_no_pair_came_after_it() {
    let outcome = climbed(Fault::CrashIn(CHECKED + 1..CHECKED + 100));
    assert!(outcome.selfcheck.as_ref().is_some_and(|check| check.pairs == CHECKED));
    assert!(
        outcome.rungs.iter().all(|rung| rung.pairs == 0 && rung.reason.contains("`4k` failed in 3 blocks"))
    );
    assert_eq!((outcome.blocks.len(), outcome.exit), (3, Exit::Inconclusive.code()));
}

#[test]
fn what_was_kept_before_three_crashes_of_the_baseline_is_confirmed() {
    let outcome = climbed(Fault::CrashIn(CHECKED + 14..CHECKED + 17));
    let thp = rung(&outcome, "thp");
    assert_eq!((thp.verdict, thp.pairs), (RungVerdict::Keep, 12), "{}", thp.reason);
    assert_eq!(thp.confirmed.as_ref().expect("the baseline runs again").pairs, 12);
    let loud = rung(&outcome, "loud");
    assert_eq!((loud.verdict, loud.pairs), (RungVerdict::Inconclusive, 13), "{}", loud.reason);
    let why = "the baseline `4k` failed in 3 blocks, the last of them 15: exit status 139";
    assert_eq!(told(&outcome), [("the rest of the ladder", why)]);
    assert_eq!(outcome.exit, Exit::Done.code(), "something pays");
}

#[test]
fn two_crashes_of_the_baseline_cost_their_pairs_and_nothing_else() {
    let outcome = climbed(Fault::CrashIn(CHECKED + 4..CHECKED + 6));
    let thp = rung(&outcome, "thp");
    assert_eq!((thp.verdict, thp.pairs), (RungVerdict::Keep, 12), "{}", thp.reason);
    assert!(told(&outcome).iter().all(|(what, _)| *what != "the rest of the ladder"));
}

#[test]
fn a_baseline_that_does_not_start_again_ends_the_rungs_at_once() {
    let outcome = climbed(Fault::GoneAt(CHECKED + 6));
    let why = "the baseline `4k` failed in block 5 (exit status 139) and does not start again: no such file";
    let expected = format!("not comparable: {why}");
    assert!(
        outcome.rungs.iter().all(|rung| rung.pairs == 5 && rung.reason == expected),
        "{:?}",
        outcome.rungs
    );
    assert_eq!(told(&outcome), [("the rest of the ladder", why)]);
}

#[test]
fn a_baseline_that_is_gone_by_the_fresh_run_leaves_the_pairs_of_the_ladder() {
    let outcome = climbed(Fault::GoneAt(CHECKED + 14));
    let thp = rung(&outcome, "thp");
    assert_eq!((thp.verdict, thp.pairs, thp.tested), (RungVerdict::Inconclusive, 12, Some(false)));
    let why = "the baseline `4k` does not start afresh: no such file";
    assert_eq!(thp.reason, format!("seen once and not confirmed: not comparable: {why}"));
    assert_eq!(told(&outcome)[1], ("the confirmation", why));
    assert_eq!(outcome.exit, Exit::Inconclusive.code());
}

#[test]
fn three_crashes_of_the_baseline_in_the_fresh_run_leave_the_pairs_of_the_ladder() {
    // The ladder has 32 blocks, for the sake of the loud rung, and these are the first of the fresh run.
    let outcome = climbed(Fault::CrashIn(CHECKED + 33..CHECKED + 100));
    let thp = rung(&outcome, "thp");
    assert_eq!((thp.verdict, thp.pairs, thp.tested), (RungVerdict::Inconclusive, 12, Some(false)));
    let why = "the baseline `4k` failed in 3 blocks, the last of them 34: exit status 139";
    assert_eq!(thp.reason, format!("seen once and not confirmed: not comparable: {why}"));
    assert!(told(&outcome).contains(&("the confirmation", why)), "{:?}", outcome.refused);
}

#[test]
fn a_stop_while_a_crashed_arm_starts_again_is_a_stop() {
    let slicing = Slicing { slice: Duration::from_millis(1), freshness: Freshness::Restart { slices: 1 } };
    for crashed in ["4k", "thp"] {
        let stop = Stop::default();
        let fake = |name: &str, cost, seed, at| {
            let fault = Fault::CrashesAndStopsTrialAt(at, stop.clone());
            let fake = Fake::new(name, cost, 0.01, seed);
            if name == crashed { fake.fault(fault) } else { fake }
        };
        let mut arms = arms(vec![fake("thp", 70.0, 3, 5)], 0.01, 1);
        arms.baseline = fake("4k", 100.0, 8, CHECKED + 5).boxed();
        let outcome =
            run_resident(arms, slicing, &options(1), &mut Silent, &stop).expect("a stop is no error");
        for rung in &outcome.rungs {
            assert_eq!(rung.verdict, RungVerdict::Inconclusive, "{crashed}: {rung:?}");
            assert_eq!(rung.reason, "stopped by the user", "{crashed}");
        }
        assert_eq!(outcome.rungs[0].pairs, 4, "{crashed}");
        assert_eq!(outcome.exit, Exit::Inconclusive.code());
    }
}

#[test]
fn a_ladder_whose_baseline_crashes_leaves_its_proof_and_the_host_as_it_was() {
    let mut bench = Bench::new();
    bench.options.keep = true;
    let trial = number_trial(bench.folder.path(), "selfcheck_pairs = 8", &format!("{LAST}{SWAP}{LEAN}"));
    let outcome = bench.run(&trial).expect("something was measured");
    let why = "the baseline `baseline` failed in 3 blocks, the last of them ";
    assert!(outcome.refused[0].why.starts_with(why), "{:?}", outcome.refused);
    assert!(outcome.refused[0].why.contains("exit status: 9"), "{:?}", outcome.refused);
    assert!(verdicts(&outcome).values().all(|verdict| *verdict == RungVerdict::Inconclusive));
    assert!(outcome.rungs[0].pairs > 0 && outcome.rungs[0].reason.contains(why));
    assert!(bench.host.open.is_empty() && !bench.folder.path().join("fast").exists());
    let proof = outcome.proof_id.as_deref().expect("stored");
    let stored = Proofs::of_state(bench.folder.path()).load(proof).expect("it can be read");
    assert_eq!((&stored.rungs, &stored.refused[0]), (&outcome.rungs, &outcome.refused[0]));
    assert_eq!(outcome.exit, Exit::Inconclusive.code());
}

#[test]
fn rungs_whose_turn_has_not_come_are_not_run_against_a_baseline_that_crashes() {
    let mut bench = Bench::new();
    let idle = "[[rung]]\nname = \"idle\"\nenv = { X = \"1\" }\n";
    let head = "mode = \"step\"\nselfcheck_pairs = 8";
    let trial = number_trial(bench.folder.path(), head, &format!("{LAST}{idle}{SWAP}{LEAN}"));
    let outcome = bench.run(&trial).expect("something was measured");
    let why = "the baseline `baseline` failed in 3 blocks, the last of them ";
    let of_turn = outcome.rungs.iter().filter(|rung| rung.pairs > 0);
    assert_eq!(of_turn.filter(|rung| rung.reason.starts_with(&format!("not comparable: {why}"))).count(), 1);
    let waiting: Vec<&Rung> = outcome.rungs.iter().filter(|rung| rung.pairs == 0).collect();
    assert_eq!(waiting.len(), 3, "{:?}", outcome.rungs);
    assert!(waiting.iter().all(|rung| rung.reason.starts_with(&format!("no pair was run: {why}"))));
    assert_eq!(outcome.refused.len(), 1, "it is told once: {:?}", outcome.refused);
    assert_eq!(outcome.exit, Exit::Inconclusive.code());
}
