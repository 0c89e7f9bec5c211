//! Threads of the kernel: set, told, and put back as they were.

use planish_model::{
    Case, Class, Conditions, DriftState, Exit, KnobCheck, OutcomeKind, Plan, VerdictKind, Want,
};
use planish_pipeline::{
    Applied, ApplyOptions, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::crash::{assert_clean, kill_everywhere};
use crate::tree::*;

fn place(cpu: u32) -> String {
    format!("/planish/threads/ksoftirqd/{cpu}")
}

fn of(only: &str, value: &str) -> Want {
    let (value, only) = (value.to_owned(), Some(only.to_owned()));
    Want::Case(Box::new(Case { value, only, needs: Conditions::default() }))
}

fn two() -> Source {
    let cases = [("3", "fifo:2"), ("5", "fifo:3")];
    let cases = cases.map(|(cpu, value)| match of(cpu, value) {
        Want::Case(case) => *case,
        other => panic!("{other:?}"),
    });
    profile("threads", &[("sched.ksoftirqd", Want::Cases(cases.to_vec()))])
}

fn planned(session: &Session) -> Plan {
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    plan(session, &two(), &options).expect("a plan")
}

fn applied(session: &Session) -> Applied {
    apply(session, &planned(session), &ApplyOptions::default()).expect("applied")
}

fn row(tree: &Tree, cpu: u32) -> KnobCheck {
    let drift = check(&tree.session(), Some(&two())).expect("checked").drift;
    drift.knobs.into_iter().find(|row| row.place == place(cpu)).expect("it is looked at")
}

#[test]
fn threads_are_set_and_put_back_with_class_nice_and_flag() {
    let tree = Tree::copy_of("metal-2s");
    tree.put(&place(5), "batch:3 reset-on-fork\n");
    let start = tree.snapshot();
    let unasked = plan(&tree.session(), &two(), &PlanOptions::default()).expect("a plan");
    assert_eq!(unasked.steps, [], "of class availability");
    let made = planned(&tree.session());
    let steps: Vec<_> =
        made.steps.iter().map(|step| (step.place.clone(), step.now.as_str(), step.wanted.as_str())).collect();
    assert_eq!(steps, [(place(3), "other", "fifo:2"), (place(5), "batch:3 reset-on-fork", "fifo:3")]);
    let done = applied(&tree.session());
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
    assert_eq!((tree.get(&place(3)).trim(), tree.get(&place(5)).trim()), ("fifo:2", "fifo:3"));
    assert_eq!(tree.get(&place(0)).trim(), "other", "nobody asked for it");
    assert_eq!(applied(&tree.session()).outcomes, [], "applied twice");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn nothing_keeps_them_over_a_boot_and_that_is_said() {
    let tree = Tree::copy_of("metal-2s");
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let done = apply(&tree.session(), &planned(&tree.session()), &options).expect("applied");
    assert_eq!(done.unpersisted.len(), 2, "{:?}", done.unpersisted);
    assert!(done.unpersisted[0].reason.starts_with("the kernel makes its threads anew at each boot"));
    assert_eq!(row(&tree, 3).state, DriftState::LostAtBoot);
}

#[test]
fn a_new_thread_with_the_default_is_drift_and_leaves_undo_nothing_to_do() {
    let tree = Tree::copy_of("metal-2s");
    let start = tree.snapshot();
    applied(&tree.session());
    tree.put(&place(3), "other\n");
    let seen = row(&tree, 3);
    assert_eq!(seen.state, DriftState::Drift);
    assert!(
        seen.because.as_deref().is_some_and(|why| why.starts_with("back to the value from before")),
        "{seen:?}"
    );
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_thread_that_is_not_seen_keeps_its_entry_open() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree.session());
    let hidden = tree.get(&place(3));
    tree.remove(&place(3));
    assert_eq!(row(&tree, 5).state, DriftState::LostAtBoot);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings, "{:?}", undone.hints);
    let told = format!("{}: no such thread is seen from here", place(3));
    assert!(undone.hints.iter().any(|hint| hint.starts_with(&told)), "{:?}", undone.hints);
    assert_eq!(tree.get(&place(5)).trim(), "other");
    // Seen again, as from outside of a container, it goes back, too.
    tree.put(&place(3), &hidden);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(tree.get(&place(3)).trim(), "other");
    assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{:?}", tree.entries());
}

#[test]
fn somebody_elses_schedule_is_kept() {
    let tree = Tree::copy_of("metal-2s");
    applied(&tree.session());
    tree.put(&place(3), "fifo:11\n");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Findings);
    assert_eq!((tree.get(&place(3)).trim(), tree.get(&place(5)).trim()), ("fifo:11", "other"));
}

#[test]
fn a_container_sees_none_of_them() {
    let tree = Tree::copy_of("container-ro");
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let made = plan(
        &tree.session(),
        &profile("one", &[("sched.ksoftirqd", Want::Text("fifo:2".to_owned()))]),
        &options,
    )
    .expect("a plan");
    assert_eq!(made.steps, []);
    assert_eq!(made.skipped[0].verdict.verdict, VerdictKind::Absent);
    assert!(made.skipped[0].verdict.reason.contains("sees no thread of the kernel"), "{:?}", made.skipped);
}

#[test]
fn threads_survive_kills() {
    let tree = || {
        let tree = Tree::copy_of("metal-2s");
        tree.put(&place(5), "batch:3\n");
        tree
    };
    assert_clean(&kill_everywhere(&tree, &|_| (), &|session| drop(applied(session))));
}
