//! The CPUs of parts of the system: a file each, what the control group has beside it, and what is refused.

use planish_model::{
    Case, Class, Conditions, DriftState, Exit, KnobCheck, OutcomeKind, Plan, VerdictKind, Want,
};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::faults::{Fuse, MOMENTS, fused, until_killed};
use crate::tree::*;

const SYSTEM: &str = "/etc/systemd/system/system.slice.d/zz-planish-allowed-cpus.conf";
const INIT: &str = "/etc/systemd/system/init.scope.d/zz-planish-allowed-cpus.conf";
const GROUP: &str = "/sys/fs/cgroup/system.slice/cpuset.cpus";

fn case(only: &str, value: &str) -> Case {
    Case { value: value.to_owned(), only: Some(only.to_owned()), needs: Conditions::default() }
}

fn wanted(cases: &[(&str, &str)]) -> Source {
    let cases = cases.iter().map(|(only, value)| case(only, value)).collect();
    profile("parts", &[("unit.allowed_cpus", Want::Cases(cases))])
}

fn house() -> Source {
    wanted(&[("system.slice", "0-3"), ("init.scope", "0")])
}

/// A machine of eight CPUs with groups of version 2.
fn tree() -> Tree {
    let tree = Tree::copy_of("metal-2s");
    tree.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    tree.put(GROUP, "\n");
    tree.put("/run/systemd/system/.keep", "");
    tree
}

fn asked(session: &Session, source: &Source) -> Result<Plan, PipelineError> {
    plan(session, source, &PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() })
}

fn applied(session: &Session) -> Applied {
    apply(session, &asked(session, &house()).expect("a plan"), &ApplyOptions::default()).expect("applied")
}

fn row(tree: &Tree, source: Option<&Source>) -> KnobCheck {
    let drift = check(&tree.session(), source).expect("checked").drift;
    drift.knobs.into_iter().find(|row| row.place == SYSTEM).expect("it is looked at")
}

#[test]
fn limits_of_parts_come_and_go_to_the_byte() {
    let tree = tree();
    let start = tree.snapshot();
    let made = asked(&tree.session(), &house()).expect("a plan");
    let step = made.steps.iter().find(|step| step.place == SYSTEM).expect("a step");
    assert_eq!((step.now.as_str(), step.wanted.as_str()), ("(not given)", "0-3"));
    assert_eq!(step.because.as_deref(), Some("its files give nothing; its group has no limit"));
    let done = applied(&tree.session());
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
    assert!(tree.get(SYSTEM).ends_with("[Slice]\nAllowedCPUs=\nAllowedCPUs = 0-3\n"), "{}", tree.get(SYSTEM));
    assert!(tree.get(INIT).ends_with("[Scope]\nAllowedCPUs=\nAllowedCPUs = 0\n"), "{}", tree.get(INIT));
    let reload = |hints: &[String]| hints.iter().any(|hint| hint.ends_with("by: systemctl daemon-reload"));
    assert!(reload(&done.hints), "{:?}", done.hints);
    assert_eq!(applied(&tree.session()).outcomes, [], "applied twice");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert!(undone.exit == Exit::Done && reload(&undone.hints), "{:?}", undone.hints);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn what_the_group_has_is_told_beside_what_the_file_gives() {
    let tree = tree();
    applied(&tree.session());
    for source in [None, Some(house())] {
        let seen = row(&tree, source.as_ref());
        assert_eq!(
            (seen.state, seen.running.as_deref()),
            (DriftState::Drift, Some("(not given)")),
            "{seen:?}"
        );
        let why = seen.because.expect("told");
        assert!(why.starts_with(&format!("{GROUP} has no limit: systemctl daemon-reload")), "{why}");
        let given = seen.persisted.expect("a file");
        assert_eq!((given.value.as_str(), given.file.as_deref()), ("0-3", Some(SYSTEM)));
    }
    // systemd reads its files.
    tree.put(GROUP, "0-3\n");
    assert_eq!(row(&tree, None).state, DriftState::Ok);
    assert_eq!(row(&tree, Some(&house())).state, DriftState::Ok);
    // systemctl set-property --runtime system.slice AllowedCPUs=5
    tree.put(GROUP, "5\n");
    let seen = row(&tree, None);
    assert_eq!((seen.state, seen.running.as_deref()), (DriftState::Drift, Some("5")));
    // What is read behind ours adds to it, and comes with the next reload.
    tree.put(GROUP, "0-3\n");
    let theirs = "/etc/systemd/system/system.slice.d/zzz-own.conf";
    tree.put(theirs, "[Slice]\nAllowedCPUs=6\n");
    let seen = row(&tree, None);
    assert_ne!(seen.state, DriftState::Ok);
    assert!(seen.because.as_deref().is_some_and(|why| why.contains(&format!("{theirs}:2"))), "{seen:?}");
}

#[test]
fn what_somebody_gave_already_is_left_to_them() {
    let tree = tree();
    let theirs = "/etc/systemd/system.control/system.slice.d/50-AllowedCPUs.conf";
    tree.put(theirs, "[Slice]\nAllowedCPUs=0-3\n");
    let made = asked(&tree.session(), &wanted(&[("system.slice", "0,1-3")])).expect("a plan");
    assert_eq!(made.steps, []);
    assert_eq!(made.skipped[0].verdict.reason, format!("{theirs}:2 gives 0-3"));
}

#[test]
fn what_cannot_be_is_refused_before_a_write() {
    let refused = |tree: &Tree, cases: &[(&str, &str)], words: &str| {
        let error = asked(&tree.session(), &wanted(cases)).expect_err(words);
        let told = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let told: Vec<String> = told.map(ToString::to_string).collect();
        assert!(told.join(": ").contains(words), "{told:?}");
        assert_eq!(error.exit(), Exit::Refused, "{told:?}");
    };
    refused(&tree(), &[("system.slice", "0-9")], "this host has CPU 0-7 and no other");
    refused(&tree(), &[("redis.service", "0-3")], "here they are init.scope, system.slice, user.slice");
    let pinned = tree();
    pinned.put(
        "/etc/systemd/system/redis-server.service.d/zz-planish.conf",
        "[Service]\nCPUAffinity=\nCPUAffinity = 4-5\n",
    );
    refused(&pinned, &[("system.slice", "0-3")], "redis-server.service is pinned to CPU 4-5");
    pinned.put("/usr/lib/systemd/system/redis-server.service", "[Service]\nSlice=planish.slice\n");
    assert_eq!(asked(&pinned.session(), &wanted(&[("system.slice", "0-3")])).expect("apart").steps.len(), 1);
    let isolated = tree();
    isolated.put("/sys/devices/system/cpu/isolated", "4-7\n");
    refused(&isolated, &[("user.slice", "5-6")], "CPU 4-7 are isolated");
    let session = tree();
    session.put("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n");
    session.put("/proc/self/status", "Name:\tplanish\nCpus_allowed_list:\t6-7\n");
    refused(&session, &[("user.slice", "0-3")], "this session runs in user.slice on CPU 6-7");
}

#[test]
fn a_host_without_the_groups_for_it_is_none_of_it() {
    for (controllers, why) in [(None, "of version 1"), (Some("cpu io memory\n"), "have no cpuset here")] {
        let tree = tree();
        tree.remove("/sys/fs/cgroup/cgroup.controllers");
        if let Some(names) = controllers {
            tree.put("/sys/fs/cgroup/cgroup.controllers", names);
        }
        let made = asked(&tree.session(), &house()).expect("a plan");
        assert_eq!(made.steps, []);
        for row in &made.skipped {
            assert_eq!(row.verdict.verdict, VerdictKind::Absent);
            assert!(row.verdict.reason.contains(why), "{row:?}");
        }
    }
}

#[test]
fn limits_of_parts_survive_kills() {
    let counter = Fuse::counting();
    applied(&fused(tree().options(), &counter));
    for operation in 0..counter.operations() {
        let tree = tree();
        let start = tree.snapshot();
        let moment = MOMENTS[operation % MOMENTS.len()];
        until_killed(|| applied(&fused(tree.options(), &Fuse::at(operation, moment))));
        undo(&tree.session(), Target::All, false).expect("undone");
        for entry in tree.entries() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "killed {moment:?} operation {operation}");
    }
}
