//! CPUs that are isolated on a running kernel: files, the restart, the partition; and one that does not keep to it.

use planish_model::{Class, DriftState, Exit, KnobCheck, OutcomeKind, Plan};
use planish_pipeline::{
    Applied, ApplyOptions, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

const SLICE: &str = "/etc/systemd/system/planish.slice";
const UNIT: &str = "/etc/systemd/system/realtime.service.d/zz-planish.conf";
const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.controllers";
const GROUP_CPUS: &str = "/sys/fs/cgroup/planish.slice/cpuset.cpus";
const PARTITION: &str = "/sys/fs/cgroup/planish.slice/cpuset.cpus.partition";
const ISOLATED: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";
const BOOT_ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// What a kernel does beside the write: it tells which CPUs are isolated.
const TELLS: &str = r#"
[[answer]]
place = "/sys/fs/cgroup/planish.slice/cpuset.cpus.partition"
derives = [
  { place = "/sys/fs/cgroup/cpuset.cpus.isolated", value = "1,5", when = "isolated" },
  { place = "/sys/fs/cgroup/cpuset.cpus.isolated", value = "", when = "member" },
]
"#;

/// A kernel that takes the word and does not keep to it.
const INVALID: &str = r#"
[[answer]]
place = "/sys/fs/cgroup/planish.slice/cpuset.cpus.partition"
[[answer.derives]]
place = "/sys/fs/cgroup/planish.slice/cpuset.cpus.partition"
value = "isolated invalid (Cpu list in cpuset.cpus not exclusive)"
when = "isolated"
"#;

const BUSY: &str = r#"
[[answer]]
place = "/sys/fs/cgroup/planish.slice/cpuset.cpus.partition"
errno = "EBUSY"
"#;

fn source(isolation: &str) -> Source {
    let text = format!(
        "name = \"one\"\nsummary = \"x\"\n[placement]\nisolation = \"{isolation}\"\n\
         [[placement.service]]\nunit = \"realtime.service\"\nnode = 0\nisolate = true\n"
    );
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    Source::Inline(Box::new(catalogue.parse_profile("one.toml", &text).expect("a sound profile")))
}

fn options() -> PlanOptions {
    PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() }
}

fn planned(session: &Session) -> Plan {
    plan(session, &source("both"), &options()).expect("a plan")
}

fn applied(session: &Session) -> Applied {
    apply(session, &planned(session), &ApplyOptions::default()).expect("applied")
}

/// The machine before anything is placed, with more answers of its kernel.
fn tree(answers: &str) -> Tree {
    let tree = Tree::copy_of("metal-2s");
    tree.put("/meta.toml", &(tree.get("/meta.toml") + answers));
    tree
}

/// What systemd makes when the first service of the slice starts.
fn start_slice(tree: &Tree) {
    tree.put(GROUP_CPUS, "1,5\n");
    tree.put(PARTITION, "member\n");
    tree.put(ISOLATED, "\n");
}

/// A machine whose slice has started.
fn started(answers: &str) -> Tree {
    let tree = tree(answers);
    start_slice(&tree);
    tree
}

/// What check says of the partition.
fn row(tree: &Tree) -> KnobCheck {
    let drift = check(&tree.session(), None).expect("checked").drift;
    drift.knobs.into_iter().find(|row| row.place == PARTITION).expect("it is looked at")
}

#[test]
fn files_come_first_and_the_partition_after_the_restart() {
    let tree = tree(TELLS);
    let first = planned(&tree.session());
    assert!(!first.steps.iter().any(|step| step.place == PARTITION), "there is no group to write to");
    let waits = first.placement.as_ref().and_then(|placed| placed.partition.as_ref()).expect("told");
    assert!(waits.waits.as_deref().expect("a restart").contains("restart"), "{waits:?}");
    let done = applied(&tree.session());
    let wanted = "[Slice]\nAllowedCPUs=\nAllowedCPUs = 1,5\nCPUSetPartition = isolated\n";
    assert!(tree.get(SLICE).ends_with(wanted), "{}", tree.get(SLICE));
    assert!(tree.get(UNIT).ends_with("Slice = planish.slice\n"), "{}", tree.get(UNIT));
    assert!(
        done.hints.iter().any(|hint| hint.starts_with("planish.slice is there once")),
        "{:?}",
        done.hints
    );

    start_slice(&tree);
    let between = tree.snapshot();
    let second = planned(&tree.session());
    let written = second.steps.iter().filter(|step| step.is_written());
    assert_eq!(written.map(|step| step.place.as_str()).collect::<Vec<_>>(), [PARTITION]);
    let done = applied(&tree.session());
    assert_eq!((tree.get(PARTITION).trim(), tree.get(ISOLATED).trim()), ("isolated", "1,5"), "{done:#?}");
    assert_eq!(applied(&tree.session()).outcomes, [], "applied twice");
    assert_eq!(row(&tree).state, DriftState::LostAtBoot, "a group is made anew at each boot");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&between, &tree.snapshot()), [""; 0]);
}

#[test]
fn all_of_it_goes_back_to_the_byte() {
    let tree = started(TELLS);
    let start = tree.snapshot();
    let done = applied(&tree.session());
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
    let order = |place: &str| done.outcomes.iter().position(|outcome| outcome.place == place);
    assert!(order(SLICE) < order(PARTITION) && order(UNIT) < order(PARTITION), "{:#?}", done.outcomes);
    assert_eq!(tree.get(PARTITION).trim(), "isolated");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_partition_that_the_kernel_calls_invalid_takes_all_of_it_back() {
    for (answers, reason) in [(INVALID, "not exclusive"), (BUSY, "it is busy")] {
        let tree = started(answers);
        let start = tree.snapshot();
        let done = applied(&tree.session());
        assert_eq!(done.exit, Exit::FailedRestored, "{:#?}", done.outcomes);
        let mut failed = done.outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Failed);
        let detail = failed.find(|outcome| outcome.place == PARTITION).and_then(|row| row.detail.as_deref());
        assert!(detail.is_some_and(|detail| detail.contains(reason)), "{detail:?}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{reason}");
    }
}

#[test]
fn one_that_becomes_invalid_later_is_drift_and_still_ours() {
    let tree = started(TELLS);
    let start = tree.snapshot();
    applied(&tree.session());
    tree.put(PARTITION, "isolated invalid (No cpu available due to hotplug)\n");
    let seen = row(&tree);
    assert_eq!(seen.state, DriftState::Drift);
    assert_eq!(seen.running.as_deref(), Some("isolated invalid (No cpu available due to hotplug)"));
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_kind_that_somebody_else_chose_since_is_theirs() {
    let tree = started(TELLS);
    applied(&tree.session());
    tree.edit(PARTITION, "root");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Findings);
    assert_eq!(tree.get(PARTITION).trim(), "root");
}

#[test]
fn kills_leave_no_partition_behind() {
    let counter = Fuse::counting();
    applied(&fused(started(TELLS).options(), &counter));
    for answers in [TELLS, INVALID] {
        for operation in (0..counter.operations()).step_by(9) {
            let tree = started(answers);
            let start = tree.snapshot();
            let moment = if operation % 2 == 0 { Moment::Before } else { Moment::After };
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            until_killed(|| applied(&session));
            undo(&tree.session(), Target::All, false).expect("undone");
            assert_eq!(tree.get(PARTITION).trim(), "member", "killed {moment:?} operation {operation}");
            for entry in tree.entries() {
                undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
            }
            let left = differences(&start, &tree.snapshot());
            assert_eq!(left, [""; 0], "killed {moment:?} operation {operation}");
        }
    }
}

#[test]
fn a_kernel_without_partitions_isolates_at_boot_and_says_why() {
    type Prepare = fn(&Tree);
    let cases: [(&str, Prepare); 3] = [
        ("version 1", |tree| tree.remove(CONTROLLERS)),
        ("no cpuset", |tree| tree.put(CONTROLLERS, "cpu io memory\n")),
        ("as in a container", |tree| tree.put("/sys/fs/cgroup/cgroup.type", "domain\n")),
    ];
    for (reason, prepare) in cases {
        let tree = tree("");
        prepare(&tree);
        let placed = planned(&tree.session());
        let partition = placed.placement.as_ref().and_then(|placed| placed.partition.as_ref()).expect("told");
        assert!(partition.hindered.as_deref().is_some_and(|why| why.contains(reason)), "{partition:?}");
        assert!(!placed.steps.iter().any(|step| step.place == SLICE || step.wanted.contains("Slice=")));
        assert!(placed.boot.iter().any(|step| step.place == "cmdline:isolcpus"), "{:?}", placed.boot);
        let error = plan(&tree.session(), &source("now"), &options()).expect_err("refused");
        let error =
            std::error::Error::source(&error).and_then(std::error::Error::source).expect("why").to_string();
        assert!(error.contains("before the next boot") && error.contains(reason), "{error}");
    }
}

#[test]
fn one_way_of_isolating_can_be_chosen() {
    let tree = started(TELLS);
    let steps = |isolation: &str| plan(&tree.session(), &source(isolation), &options()).expect("a plan");
    let now = steps("now");
    assert!(now.steps.iter().any(|step| step.place == PARTITION));
    assert!(!now.boot.iter().any(|step| step.place == "cmdline:isolcpus"), "{:?}", now.boot);
    let boot = steps("boot");
    assert!(!boot.steps.iter().any(|step| step.place == PARTITION || step.place == SLICE));
    assert!(boot.boot.iter().any(|step| step.place == "cmdline:isolcpus"));
}

#[test]
fn cpus_that_the_boot_isolated_need_no_partition() {
    let tree = started(TELLS);
    tree.put(BOOT_ISOLATED, "1,5\n");
    let plan = planned(&tree.session());
    assert!(!plan.steps.iter().any(|step| step.place == PARTITION), "{:?}", plan.steps);
    assert!(plan.steps.iter().any(|step| step.place == SLICE), "the files stay as they are");
}

#[test]
fn a_group_with_other_cpus_is_no_place_for_it() {
    let tree = started(TELLS);
    tree.put(GROUP_CPUS, "1\n");
    let plan = planned(&tree.session());
    assert!(!plan.steps.iter().any(|step| step.place == PARTITION));
    let partition = plan.placement.and_then(|placed| placed.partition).expect("told");
    assert!(partition.waits.is_some_and(|waits| waits.contains("has CPU 1 until")));
}
