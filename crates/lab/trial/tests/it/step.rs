//! Ladders that are climbed rung by rung.

use planish_model::Exit;
use planish_trial::{LadderMode, Rung, RungVerdict, TrialOutcome};

use crate::files::{Bench, LEAN, SWAP, number_trial, verdicts};

const STEP: &str = "mode = \"step\"";

fn climbed(rungs: &str) -> TrialOutcome {
    let mut bench = Bench::new();
    let trial = number_trial(bench.folder.path(), STEP, rungs);
    bench.run(&trial).expect("it runs")
}

fn rung<'o>(outcome: &'o TrialOutcome, name: &str) -> &'o Rung {
    outcome.rungs.iter().find(|rung| rung.name == name).expect("it was planned")
}

#[test]
fn every_rung_is_compared_with_what_was_kept_before_it() {
    let idle = "[[rung]]\nname = \"idle\"\nenv = { X = \"1\" }\n";
    let outcome = climbed(&format!("{idle}{SWAP}{LEAN}"));
    assert_eq!(outcome.mode, LadderMode::Step);
    let names: Vec<&str> = outcome.rungs.iter().map(|rung| rung.name.as_str()).collect();
    assert_eq!(names, ["idle", "swap", "lean", TrialOutcome::STACK, TrialOutcome::PLACEBO]);
    let against = |name| rung(&outcome, name).against.join("+");
    assert_eq!([against("idle"), against("swap"), against("lean")], ["baseline", "baseline", "swap"]);
    assert_eq!(verdicts(&outcome)["idle"], RungVerdict::Drop);
    let effect = |name| rung(&outcome, name).effect.expect("pairs");
    assert!((effect("swap") - 0.2).abs() < 0.01, "{}", effect("swap"));
    // A tenth of what is left, and not of the baseline.
    assert!((effect("lean") - 0.1).abs() < 0.01, "{}", effect("lean"));
    let total = rung(&outcome, TrialOutcome::STACK);
    assert_eq!((total.verdict, against(TrialOutcome::STACK)), (RungVerdict::Keep, "baseline".to_owned()));
    assert!((total.confirmed.as_ref().expect("it has no other pairs").gain.effect - 0.28).abs() < 0.01);
    assert_eq!((rung(&outcome, "swap").min_gain, rung(&outcome, "lean").min_gain), (Some(0.005), Some(0.01)));
    let placebo = rung(&outcome, TrialOutcome::PLACEBO);
    assert_ne!(placebo.verdict, RungVerdict::Keep);
    assert!(placebo.pairs >= 8, "{}", placebo.reason);
    // Only two arms run in a block, and the second half of them knows `swap` as what it is compared with.
    assert!(outcome.blocks.iter().all(|block| block.len() == 2));
    let pair = |one: &str, other: &str| {
        let of =
            |block: &&Vec<String>| block.iter().any(|it| it == one) && block.iter().any(|it| it == other);
        outcome.blocks.iter().filter(of).count()
    };
    assert_eq!(pair("baseline", "swap"), rung(&outcome, "swap").pairs);
    assert_eq!(pair("swap", "lean"), rung(&outcome, "lean").pairs);
    assert_eq!(outcome.exit, Exit::Done.code());
}

#[test]
fn one_kept_rung_is_its_own_total() {
    let outcome = climbed(LEAN);
    let lean = rung(&outcome, "lean");
    assert_eq!(lean.verdict, RungVerdict::Keep, "{}", lean.reason);
    assert!((lean.confirmed.as_ref().expect("run again").gain.effect - 0.1).abs() < 0.01);
    assert!(outcome.rungs.iter().all(|rung| rung.name != TrialOutcome::STACK));
}

#[test]
fn a_rung_that_contradicts_what_was_kept_is_not_run() {
    let other = "[[rung]]\nname = \"leaner\"\nenv = { LEAN = \"2\" }\n";
    let outcome = climbed(&format!("{LEAN}{other}"));
    let leaner = rung(&outcome, "leaner");
    assert_eq!((leaner.verdict, leaner.pairs), (RungVerdict::Inconclusive, 0));
    assert_eq!(leaner.reason, "contradicts what was kept before it: lean");
    assert_eq!(verdicts(&outcome)["lean"], RungVerdict::Keep);
}

#[test]
fn the_placebo_hides_anywhere_and_is_the_stack_against_itself() {
    let (mut places, mut over_stack) = (std::collections::BTreeSet::new(), 0);
    for seed in 0..6 {
        let mut bench = Bench::new();
        bench.options.seed = Some(seed);
        let trial = number_trial(bench.folder.path(), &format!("{STEP}\nconfirm = false"), LEAN);
        let outcome = bench.run(&trial).expect("it runs");
        let placebo = rung(&outcome, TrialOutcome::PLACEBO);
        places.insert(outcome.blocks[0].iter().any(|name| name == TrialOutcome::PLACEBO));
        over_stack += usize::from(placebo.against == ["lean"]);
        let effect = placebo.effect.expect("pairs");
        assert!(effect.abs() < 0.01, "it is what it is compared with: {effect}");
    }
    assert_eq!(places.len(), 2, "before the rung, and after it");
    assert!((1..6).contains(&over_stack));
}
