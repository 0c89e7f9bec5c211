//! The energy hint of a CPU is another face of its governor: as long as that is `performance` the kernel refuses any
//! other hint.

use planish_model::{Class, EntryId, Exit, OutcomeKind, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Target, apply, plan, undo};

use crate::transition::{NOW, apply_instead, instead, refused, undo_entry, word};
use crate::tree::*;

const HINT: &str = "/sys/devices/system/cpu/cpu3/cpufreq/energy_performance_preference";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";

/// A host whose governors somebody has set to `performance`.
fn at_performance(host: &str, cpus: usize) -> Tree {
    let tree = Tree::copy_of(host);
    for cpu in 0..cpus {
        tree.edit(&GOVERNOR.replace("cpu3", &format!("cpu{cpu}")), "performance");
    }
    tree
}

/// The governor `performance` refuses any hint but its own: where the new one keeps that governor, the hint is its own,
/// too; where it has another one, the hint goes back behind that.
#[test]
fn a_hint_goes_with_the_governor_that_pins_it() {
    let fast = [("cpu.governor", word("performance")), ("cpu.epp", word("performance"))];
    let shows = |tree: &Tree| [GOVERNOR, HINT].map(|place| tree.get(place).trim().to_owned());
    for (wanted, between) in [("performance", "performance"), ("powersave", "balance_power")] {
        for newest_first in [true, false] {
            let tree = Tree::copy_of("metal-2s");
            for cpu in 0..8 {
                tree.put(&HINT.replace("cpu3", &format!("cpu{cpu}")), "balance_power\n");
            }
            let start = tree.snapshot();
            let session = tree.session();
            apply(&session, &plan_of(&session, &profile("fast", &fast)), &NOW).expect("applied");
            let before = tree.snapshot();
            let other = profile("other", &[("cpu.governor", word(wanted)), ("vm.swappiness", Want::Int(10))]);
            let on_trial = ApplyOptions { confirm_seconds: Some(600), ..NOW };
            apply_instead(&tree, &other, &on_trial);
            assert_eq!(shows(&tree), [wanted, between]);
            undo(&tree.session(), Target::Newest, false).expect("undone");
            assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{wanted}: as the old entry left it");
            let plan = instead(&tree.session(), &other, 1).expect("a plan");
            let applied = apply(&tree.session(), &plan, &NOW).expect("applied");
            assert_eq!(applied.exit, Exit::Done, "{wanted}: {:#?}", applied.hints);
            assert_eq!(shows(&tree), [wanted, between]);
            let above = profile("above", &fast);
            apply(&tree.session(), &plan_of(&tree.session(), &above), &NOW).expect("applied");
            for id in if newest_first { [4, 3] } else { [3, 4] } {
                let open = tree.entries().iter().any(|entry| entry.id == EntryId(id) && entry.is_open());
                assert!(!open || undo_entry(&tree, id).exit == Exit::Done, "{wanted} {id}");
            }
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{wanted}");
        }
    }
}

/// An entry that set the hint alone goes from under one that set the governor, which refuses its original.
#[test]
fn a_hint_under_a_newer_governor_goes_back_with_that() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    for (name, id) in [("hint", "cpu.epp"), ("governor", "cpu.governor")] {
        let session = tree.session();
        let plan = plan_of(&session, &profile(name, &[(id, word("performance"))]));
        apply(&session, &plan, &NOW).expect("applied");
    }
    for id in [1, 2] {
        let undone = undo_entry(&tree, id);
        assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.hints);
    }
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().iter().all(|entry| !entry.is_open()));
}

/// The governor would go back to `performance`: the kernel refuses any other hint there, and of that word it is not the
/// new entry's.
#[test]
fn a_hint_that_what_goes_back_would_pin_is_refused() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    let fast = profile("fast", &[("cpu.governor", word("performance"))]);
    let session = tree.session();
    apply(&session, &plan_of(&session, &fast), &NOW).expect("applied");
    let slow = [("cpu.governor", word("powersave")), ("vm.stat_interval", Want::Int(10))];
    let session = tree.session();
    apply(&session, &plan_of(&session, &profile("slow", &slow)), &NOW).expect("applied");
    let before = tree.snapshot();
    for hint in ["power", "performance"] {
        let wants = [("cpu.epp", word(hint)), ("vm.stat_interval", Want::Int(10))];
        let told = refused(instead(&tree.session(), &profile("hint", &wants), 2));
        assert!(told.contains("cpu.governor would go back with it to `performance`"), "{hint}: {told}");
        assert!(told.contains("--exclude cpu.epp"), "{hint}: {told}");
        let excluding = PlanOptions {
            instead_of: Some(EntryId(2)),
            exclude: vec!["cpu.epp".to_owned()],
            ..PlanOptions::default()
        };
        plan(&tree.session(), &profile("hint", &wants), &excluding).expect("the cure");
        let governed = [&wants[..], &[("cpu.governor", word("powersave"))]].concat();
        instead(&tree.session(), &profile("hint", &governed), 2).expect("the other cure");
    }
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// From the governor that pins the hint to one that does not: the governor goes first, and comes back last.
#[test]
fn a_hint_is_set_behind_the_governor_that_frees_it() {
    let tree = at_performance("metal-2s", 8);
    let start = tree.snapshot();
    let session = tree.session();
    let slow = profile("slow", &[("cpu.governor", word("powersave")), ("cpu.epp", word("power"))]);
    let done = apply(&session, &plan_of(&session, &slow), &NOW).expect("applied");
    assert_eq!(
        (done.exit, tree.get(GOVERNOR).trim(), tree.get(HINT).trim()),
        (Exit::Done, "powersave", "power")
    );
    let fast = profile("fast", &[("cpu.governor", word("performance")), ("cpu.epp", word("performance"))]);
    let session = tree.session();
    let done = apply(&session, &plan_of(&session, &fast), &NOW).expect("applied");
    assert_eq!((done.exit, tree.get(HINT).trim()), (Exit::Done, "performance"));
    assert_eq!(undo_entry(&tree, 2).exit, Exit::Done);
    assert_eq!([GOVERNOR, HINT].map(|place| tree.get(place).trim().to_owned()), ["powersave", "power"]);
    assert_eq!(undo_entry(&tree, 1).exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A core that refuses any hint: what the governor made of it goes back with that, behind it.
#[test]
fn a_hint_that_is_refused_comes_back_with_its_governor() {
    let tree = at_performance("metal-1s-amd", 16);
    for cpu in 0..16 {
        tree.put(&HINT.replace("cpu3", &format!("cpu{cpu}")), "performance\n");
    }
    let start = tree.snapshot();
    let session = tree.session();
    let slow = profile("slow", &[("cpu.governor", word("powersave")), ("cpu.epp", word("power"))]);
    let done = apply(&session, &plan_of(&session, &slow), &NOW).expect("tried");
    assert_eq!(done.exit, Exit::FailedRestored, "{:#?}", done.hints);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().iter().all(|entry| !entry.is_open()));
}

/// An undo that brings the governor `performance` back takes the hint of another entry, and names that.
#[test]
fn a_hint_that_an_undo_overrules_is_told_with_its_entry() {
    let tree = at_performance("metal-2s", 8);
    let start = tree.snapshot();
    for (name, knob, value) in [("slow", "cpu.governor", "powersave"), ("hint", "cpu.epp", "power")] {
        let session = tree.session();
        let planned = plan_of(&session, &profile(name, &[(knob, word(value))]));
        assert_eq!(apply(&session, &planned, &NOW).expect("applied").exit, Exit::Done);
    }
    let undone = undo_entry(&tree, 1);
    assert_eq!(undone.exit, Exit::Findings);
    let named =
        "entry 2 (hint) is open, and what it set is overruled by what went back now: cpu.epp; planish undo 2";
    assert!(undone.hints.iter().any(|hint| hint.starts_with(named)), "{:#?}", undone.hints);
    // What was to go back went back: nothing of that is left to anybody.
    let (_, outcomes) = &undone.entries[0];
    assert!(outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{outcomes:#?}");
    assert_eq!(undone.kept, None);
    undo(&tree.session(), Target::All, true).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// The same of a hint that another entry or somebody has set since, beside which nothing of the new one is.
#[test]
fn a_hint_of_others_that_what_goes_back_would_pin_is_refused() {
    for by_entry in [true, false] {
        let tree = Tree::copy_of("metal-2s");
        let fast = profile("fast", &[("cpu.governor", word("performance"))]);
        let slow =
            profile("slow", &[("cpu.governor", word("powersave")), ("vm.stat_interval", Want::Int(10))]);
        let hint = profile("hint", &[("cpu.epp", word("power"))]);
        for source in [&fast, &slow, &hint].into_iter().take(if by_entry { 3 } else { 2 }) {
            let session = tree.session();
            apply(&session, &plan_of(&session, source), &NOW).expect("applied");
        }
        if !by_entry {
            tree.edit(HINT, "power");
        }
        let before = tree.snapshot();
        let wants = [("vm.stat_interval", Want::Int(20))];
        let told = refused(instead(&tree.session(), &profile("other", &wants), 2));
        assert!(told.contains("keeps cpu.epp at `performance` and not at `power`"), "{told}");
        assert!(told.contains("have other want cpu.governor, too"), "{told}");
        let governed = [&wants[..], &[("cpu.governor", word("powersave"))]].concat();
        instead(&tree.session(), &profile("other", &governed), 2).expect("the cure");
        assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    }
}

/// The kernel has one word for a hint while its governor is `performance`, whoever set that.
#[test]
fn a_hint_under_a_governor_that_stays_is_refused_and_one_upon_a_trial_too() {
    let tree = at_performance("metal-2s", 8);
    let start = tree.snapshot();
    let hint = |name: &str, value: &str| {
        profile(name, &[("cpu.epp", word(value)), ("vm.stat_interval", Want::Int(20))])
    };
    let planned = plan_of(&tree.session(), &hint("hint", "balance_power"));
    assert_eq!(planned.steps.len(), 1, "the rest of it is planned: {:#?}", planned.steps);
    let why = &planned.skipped.iter().find(|row| row.impossible).expect("refused").verdict.reason;
    assert_eq!(
        why,
        "the kernel keeps it at `performance` while cpu.governor is at `performance`: want cpu.governor, too"
    );
    let slow = profile("slow", &[("cpu.governor", word("powersave"))]);
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..NOW };
    apply(&tree.session(), &plan_of(&tree.session(), &slow), &on_trial).expect("applied");
    let upon = plan_of(&tree.session(), &hint("hint", "balance_power"));
    let told = apply(&tree.session(), &upon, &NOW).expect_err("the timer would take it").to_string();
    assert!(told.contains("cpu.governor goes back to `performance`"), "{told}");
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// What a step has the kernel make anew is as wanted before it, and is written behind it: applied twice writes nothing.
#[test]
fn what_is_as_wanted_is_written_once_more_behind_what_has_it_made_anew() {
    for (host, cpus, wants) in [
        ("metal-2s", 8, [("cpu.governor", word("powersave")), ("cpu.epp", word("performance"))]),
        ("metal-2s", 0, [("thp.enabled", word("never")), ("vm.min_free_kbytes", Want::Int(112_640))]),
    ] {
        let tree = at_performance(host, cpus);
        for cpu in 0..cpus {
            tree.put(&HINT.replace("cpu3", &format!("cpu{cpu}")), "performance\n");
        }
        let start = tree.snapshot();
        let source = profile("own", &wants);
        let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
        let planned = || plan(&tree.session(), &source, &allowed).expect("a plan");
        let first = planned();
        assert!(first.steps.len() >= 2, "{:#?}", first.steps);
        assert_eq!(apply(&tree.session(), &first, &NOW).expect("applied").exit, Exit::Done, "{wants:?}");
        assert_eq!(planned().steps, [], "applied twice: {wants:?}");
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{wants:?}");
    }
}

/// What another entry has set, or nobody gave leave for, is named where the kernel may make it anew for a step.
#[test]
fn a_value_that_a_step_has_the_kernel_make_anew_is_told_where_the_plan_does_not_set_it() {
    let tree = Tree::copy_of("metal-2s");
    let remarks = |wants: &[(&str, Want)]| {
        plan(&tree.session(), &profile("own", wants), &PlanOptions::default()).expect("a plan").remarks
    };
    let never = ("thp.enabled", word("never"));
    let told = remarks(&[never.clone(), ("vm.min_free_kbytes", Want::Int(112_640))]);
    assert!(
        told.iter().any(|told| told.contains("--allow-knob vm.min_free_kbytes has it written")),
        "{told:?}"
    );
    assert_eq!(remarks(std::slice::from_ref(&never)), [""; 0]);
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let first = profile("first", &[("vm.min_free_kbytes", Want::Int(150_000))]);
    let planned = plan(&tree.session(), &first, &allowed).expect("a plan");
    apply(&tree.session(), &planned, &NOW).expect("applied");
    let told = remarks(&[never]);
    assert!(
        told.iter().any(|told| told.contains("entry 1 (first) has set it: apply that again")),
        "{told:?}"
    );
}
