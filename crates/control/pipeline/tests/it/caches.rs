//! Ways of the caches: given to services, lost with the boot, taken back; and all that a machine has against it.

use std::error::Error as _;

use planish_model::{Class, DriftState, Exit, KnobCheck, OutcomeKind, Plan, Want};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, outgoing, plan,
    undo,
};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

const DEFAULT: &str = "/planish/resctrl/default";
const GROUP: &str = "/planish/resctrl/groups/planish-realtime";
const OTHER: &str = "/planish/resctrl/groups/planish-analytics";
const MADE: &str = "cpus=1,5 mode=shareable L3:0=1f;1=7fff MB:0=100;1=100";
const LEFT: &str = "cpus= mode=shareable L3:0=7fff;1=7fff MB:0=100;1=100";

/// A third of the cache for a service on CPU 1 and 5.
fn source(cache: &str) -> Source {
    let text = format!(
        "name = \"one\"\nsummary = \"x\"\n[placement]\n[[placement.service]]\nunit = \"realtime.service\"\n\
         node = 0\n{cache}\n"
    );
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    Source::Inline(Box::new(catalogue.parse_profile("one.toml", &text).expect("a sound profile")))
}

fn options() -> PlanOptions {
    PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() }
}

fn planned(session: &Session) -> Plan {
    plan(session, &source("cache = 33"), &options()).expect("a plan")
}

fn applied(session: &Session) -> Applied {
    apply(session, &planned(session), &ApplyOptions::default()).expect("applied")
}

fn tree() -> Tree {
    Tree::copy_of("metal-2s")
}

fn row(tree: &Tree, place: &str) -> KnobCheck {
    let drift = check(&tree.session(), None).expect("checked").drift;
    drift.knobs.into_iter().find(|row| row.place == place).expect("it is looked at")
}

/// Why a plan is refused, from the outer error to the inner one.
fn refusal(tree: &Tree, source: &Source) -> String {
    let error: PipelineError = plan(&tree.session(), source, &options()).expect_err("refused");
    let mut whole = error.to_string();
    let mut inner = error.source();
    while let Some(cause) = inner {
        whole += &format!(": {cause}");
        inner = cause.source();
    }
    whole
}

#[test]
fn a_service_gets_its_ways_and_the_others_lose_them_until_it_is_undone() {
    let tree = tree();
    let start = tree.snapshot();
    let first = planned(&tree.session());
    let places: Vec<&str> = first.steps.iter().map(|step| step.place.as_str()).collect();
    let at = |place: &str| places.iter().position(|other| *other == place).expect("a step");
    assert!(at(DEFAULT) < at(GROUP), "the ways are free before somebody has them: {places:?}");
    let told = &first.placement.as_ref().expect("a placement").cache[0];
    assert_eq!((told.ways[&0], told.of, told.ways.len()), (0x1f, 15, 1), "{told:?}");
    assert!(told.shareable.is_some(), "it has CPUs of one of two caches");

    let done = applied(&tree.session());
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
    assert_eq!(tree.get(DEFAULT), "L3:0=7fe0;1=7fff MB:0=100;1=100\n");
    assert_eq!(tree.get(GROUP).trim(), MADE);
    assert_eq!(tree.get(OTHER), "none\n", "no other service asked");
    assert_eq!(applied(&tree.session()).outcomes, [], "applied twice");
    assert_eq!(row(&tree, GROUP).state, DriftState::LostAtBoot);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn kills_leave_neither_a_group_nor_narrowed_others() {
    let counter = Fuse::counting();
    applied(&fused(tree().options(), &counter));
    for operation in 0..counter.operations() {
        let tree = tree();
        let start = tree.snapshot();
        let moment = if operation % 2 == 0 { Moment::Before } else { Moment::After };
        until_killed(|| applied(&fused(tree.options(), &Fuse::at(operation, moment))));
        undo(&tree.session(), Target::All, false).expect("undone");
        let left = differences(&start, &tree.snapshot());
        let ours: Vec<&String> = left.iter().filter(|place| place.contains("resctrl")).collect();
        assert!(ours.is_empty(), "killed {moment:?} operation {operation}: {ours:?}");
    }
}

#[test]
fn a_group_that_a_kill_left_unfinished_is_drift_and_ours_to_remove() {
    // The live sink makes it in four calls: the state after the first one, and one that lost a CPU.
    for (left, why) in
        [(LEFT, "unfinished"), ("cpus=1 mode=shareable L3:0=1f;1=7fff MB:0=100;1=100", "CPU 5 went offline")]
    {
        let tree = tree();
        let start = tree.snapshot();
        applied(&tree.session());
        tree.put(GROUP, left);
        assert_eq!(row(&tree, GROUP).state, DriftState::Drift, "{why}");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done, "{why}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{why}");
    }
}

#[test]
fn a_group_that_a_kill_left_is_finished_by_the_next_apply_and_undone_from_there() {
    let counter = Fuse::counting();
    applied(&fused(tree().options(), &counter));
    let mut finished = 0;
    for operation in 0..counter.operations() {
        let tree = tree();
        let start = tree.snapshot();
        until_killed(|| applied(&fused(tree.options(), &Fuse::at(operation, Moment::Before))));
        if tree.get(DEFAULT) == start[DEFAULT] || tree.get(GROUP) != start[GROUP] {
            continue;
        }
        // The live sink makes a group in four calls: the state behind the first one.
        tree.put(GROUP, LEFT);
        applied(&tree.session());
        assert_eq!(tree.get(GROUP).trim(), MADE, "killed before operation {operation}");
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "killed before operation {operation}: {undone:#?}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "killed before operation {operation}");
        finished += 1;
    }
    assert!(finished > 0, "no kill came between the default group and the other one");
}

#[test]
fn a_group_whose_cpus_all_went_offline_is_made_again_and_undone() {
    let tree = tree();
    let start = tree.snapshot();
    applied(&tree.session());
    tree.put(GROUP, &MADE.replace("cpus=1,5", "cpus="));
    assert_eq!(row(&tree, GROUP).state, DriftState::Drift);
    applied(&tree.session());
    assert_eq!(tree.get(GROUP).trim(), MADE);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn another_share_of_a_group_that_is_made_is_refused_before_a_write() {
    let tree = tree();
    applied(&tree.session());
    let before = tree.snapshot();
    let told = refusal(&tree, &source("cache = 50"));
    assert!(told.contains("no group that is made is changed"), "{told}");
    let error = plan(
        &tree.session(),
        &source("cache = 50"),
        &PlanOptions { instead_of: Some(tree.entries()[0].id), ..options() },
    );
    assert!(error.is_err(), "nor does taking the place of its entry change it: {error:?}");
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    undo(&tree.session(), Target::All, false).expect("undone");
    let half = plan(&tree.session(), &source("cache = 50"), &options()).expect("a plan");
    let done = apply(&tree.session(), &half, &ApplyOptions::default()).expect("applied");
    assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{:#?}", done.outcomes);
}

#[test]
fn a_group_that_has_become_anothers_is_told_and_kept() {
    for theirs in [
        "cpus=1,5 mode=shareable tasks=2 L3:0=1f;1=7fff MB:0=100;1=100",
        "cpus=1,5 mode=shareable monitors=1 L3:0=1f;1=7fff MB:0=100;1=100",
        "cpus=1,5 mode=shareable L3:0=ff;1=7fff MB:0=100;1=100",
    ] {
        let tree = tree();
        let start = tree.snapshot();
        applied(&tree.session());
        tree.put(GROUP, theirs);
        assert_eq!(
            undo(&tree.session(), Target::All, false).expect("undone").exit,
            Exit::Findings,
            "{theirs}"
        );
        assert_eq!(tree.get(GROUP).trim(), theirs);
        for entry in tree.entries() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{theirs}");
    }
}

#[test]
fn a_boot_takes_it_all_and_that_is_said() {
    let tree = tree();
    let start = tree.snapshot();
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let done = apply(&tree.session(), &planned(&tree.session()), &persist).expect("applied");
    let told: Vec<&str> = done
        .unpersisted
        .iter()
        .filter(|row| row.place.contains("resctrl"))
        .map(|row| row.reason.as_str())
        .collect();
    assert_eq!(told.len(), 2, "{:#?}", done.unpersisted);
    assert!(told.iter().all(|reason| reason.contains("mounted empty at each boot")), "{told:?}");
    tree.reboot(&start);
    assert_eq!(tree.get(GROUP), "none\n");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!((tree.get(DEFAULT), tree.get(GROUP)), (start[DEFAULT].clone(), start[GROUP].clone()));
}

#[test]
fn what_the_machine_has_against_it_is_refused_before_a_write() {
    type Prepare = fn(&Tree);
    let cases: [(&str, Prepare); 4] = [
        ("no resctrl", |tree| std::fs::remove_dir_all(tree.root().join("sys/fs/resctrl")).expect("ours")),
        ("not mounted at /sys/fs/resctrl", |tree| {
            std::fs::remove_dir_all(tree.root().join("sys/fs/resctrl")).expect("ours");
            tree.put("/proc/filesystems", "nodev\tresctrl\n");
        }),
        ("CPU 5 is in the group batch", |tree| {
            tree.put("/sys/fs/resctrl/batch/mode", "shareable\n");
            tree.put("/sys/fs/resctrl/batch/cpus_list", "4-5\n");
            tree.put("/sys/fs/resctrl/batch/schemata", "L3:0=1;1=1\n");
        }),
        ("1 more of 1 groups", |tree| tree.put("/sys/fs/resctrl/info/MB/num_closids", "1\n")),
    ];
    for (reason, prepare) in cases {
        let tree = tree();
        prepare(&tree);
        let before = tree.snapshot();
        let told = refusal(&tree, &source("cache = 33"));
        assert!(
            told.contains("realtime.service cannot have a share of the cache") && told.contains(reason),
            "{told}"
        );
        assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{reason}");
        plan(&tree.session(), &source(""), &options()).expect("who asks for no share is placed all the same");
    }
    assert!(refusal(&tree(), &source("cache = 90")).contains("14 of 15 ways"));
}

#[test]
fn what_all_others_have_can_be_wanted_in_part_and_is_held_to_the_machine() {
    let wanted = |value: &str| profile("narrow", &[("resctrl.default", Want::Text(value.to_owned()))]);
    let tree = tree();
    let start = tree.snapshot();
    let plan_of = |value: &str| plan(&tree.session(), &wanted(value), &options());
    let done = apply(&tree.session(), &plan_of("MB:1=50").expect("a plan"), &ApplyOptions::default())
        .expect("applied");
    assert_eq!((done.exit, tree.get(DEFAULT).trim()), (Exit::Done, "L3:0=7fff;1=7fff MB:0=100;1=50"));
    assert_eq!(plan_of("MB:1=50").expect("a plan").steps, [], "applied twice");
    assert_eq!(row(&tree, DEFAULT).state, DriftState::LostAtBoot);
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    for (odd, reason) in [
        ("L3:0=505", "side by side"),
        ("L3:0=0", "needs ways"),
        ("L3:1=8000", "its mask is 7fff"),
        ("L3:2=1", "there are 0, 1"),
        ("L2:0=1", "shares out L3, MB"),
        ("MB:0=55", "no multiple of 10"),
        ("MB:0=5", "the lowest"),
    ] {
        let told = refusal(&tree, &wanted(odd));
        assert!(told.contains(reason), "{odd}: {told}");
    }
    let mounts =
        format!("{}resctrl /sys/fs/resctrl resctrl rw,relatime,mba_MBps 0 0\n", tree.get("/proc/mounts"));
    let by_rate = Tree::copy_of("metal-2s");
    by_rate.put("/proc/mounts", &mounts);
    plan(&by_rate.session(), &wanted("MB:0=1055"), &options()).expect("MB/s have no steps");
    let out = outgoing(&tree.session(), &wanted("MB:0=50;1=50"), &options()).expect("an export");
    let files = planish_exchange::export(planish_exchange::ExportFormat::Script, &out.name, "x", &out.items);
    let script = &files.expect("a script")[0].text;
    let line = "[ ! -e /sys/fs/resctrl/schemata ] || printf '%s\\n' 'MB:0=50;1=50' > /sys/fs/resctrl/schemata \
                || failed=1";
    assert!(script.contains(line), "{script}");
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    let imported =
        planish_exchange::import(&catalogue, "back", script, planish_exchange::ImportFormat::Script);
    let back = imported.profile.want;
    assert_eq!(back.values().collect::<Vec<_>>(), [&Want::Text("MB:0=50;1=50".to_owned())], "{back:?}");
}

#[test]
fn what_was_unmounted_is_told_as_gone_and_can_be_given_up() {
    let tree = tree();
    applied(&tree.session());
    std::fs::remove_dir_all(tree.root().join("sys/fs/resctrl")).expect("ours");
    std::fs::remove_dir_all(tree.root().join("planish/resctrl")).expect("ours");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings);
    let told = |hint: &&String| hint.contains("resctrl is not mounted any more") && hint.contains("--force");
    assert_eq!(undone.hints.iter().filter(told).count(), 2, "{:#?}", undone.hints);
    let id = tree.entries()[0].id;
    undo(&tree.session(), Target::Entry(id), true).expect("given up");
    assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{:#?}", tree.entries());
}

#[test]
fn on_a_machine_of_many_caches_the_ways_of_others_stay_theirs() {
    let tree = Tree::copy_of("metal-1s-amd");
    tree.put("/run/systemd/system/.keep", "");
    tree.put("/etc/systemd/system/postgresql.service", "[Service]\nExecStart=/usr/bin/postgres\n");
    let text = "name = \"one\"\nsummary = \"x\"\n[placement]\n[[placement.service]]\nunit = \"postgresql.service\"\n\
                cpus = \"2-5,10-13\"\nmemory = \"any\"\ncache = 50\n";
    let catalogue = planish_model::Catalogue::embedded().expect("sound");
    let source = Source::Inline(Box::new(catalogue.parse_profile("one.toml", text).expect("sound")));
    let placed = plan(&tree.session(), &source, &options()).expect("a plan");
    let wanted = |place: &str| &placed.steps.iter().find(|step| step.place == place).expect("a step").wanted;
    assert_eq!(
        wanted("/planish/resctrl/default"),
        "L3:0=ffff;1=ff;2=ff;3=ffff MB:0=2048;1=2048;2=2048;3=2048",
        "the lowest free ways are next to those of the group batch, and would leave a hole: this kernel tells of none"
    );
}
