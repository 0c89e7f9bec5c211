//! What a plan file says is held against host, journal and memory before anything of it is believed.

use planish_model::{EntryId, Exit, KnobId, Nodes, Want};
use planish_pipeline::{ApplyOptions, PipelineError, apply, check};

use crate::life::{apply_here, undo_all};
use crate::tree::*;

/// A plan file is for the host that its reader saw: after somebody set one of two values back, that is no more.
#[test]
fn a_plan_file_of_which_one_value_was_set_back_is_refused_and_its_profile_is_not() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = tree.session();
    let values = profile("values", &[("vm.stat_interval", Want::Int(10)), ("vm.swappiness", Want::Int(10))]);
    let plan = plan_of(&session, &values);
    apply(&session, &plan, &ApplyOptions::default()).expect("applied");
    let applied = tree.snapshot();
    tree.edit(SWAPPINESS, "60");
    let error = apply(&session, &plan, &ApplyOptions::default()).expect_err("the host moved");
    let PipelineError::Moved { moved } = &error else { panic!("{error}") };
    let told = format!("{SWAPPINESS} is `60`, and entry 1, which is this plan, had left `10`");
    assert_eq!(moved, &[told], "and not those that are as the plan left them");
    assert_eq!(apply_here(&tree, &values).exit, Exit::Done);
    assert_eq!(differences(&applied, &tree.snapshot()), [""; 0]);
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_host_that_moved_is_refused() {
    let tree = Tree::new();
    let session = tree.session();
    let plan = plan_of(&session, &everything());
    tree.edit(SWAPPINESS, "33");
    tree.edit(MIN_FREE, "1234");
    let start = tree.snapshot();
    let error = apply(&session, &plan, &ApplyOptions::default()).expect_err("moved");
    assert_eq!(error.exit(), Exit::Refused);
    let text = error.to_string();
    assert!(text.contains("/proc/sys/vm/swappiness is `33`, the plan saw `60`"), "{text}");
    assert!(text.contains("min_free_kbytes is `1234`"), "derived places count, too: {text}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().is_empty());
}

#[test]
fn a_plan_for_another_boot_or_host_is_refused() {
    let tree = Tree::new();
    let plan = plan_of(&tree.session(), &everything());
    tree.put(BOOT_ID, "another\n");
    let error = apply(&tree.session(), &plan, &ApplyOptions::default()).expect_err("another boot");
    assert_eq!(
        (error.to_string().as_str(), error.exit()),
        ("the plan is for another boot of this host", Exit::Refused)
    );
    let mut other = plan.clone();
    other.host_id = "another".to_owned();
    let error = apply(&tree.session(), &other, &ApplyOptions::default()).expect_err("edited");
    assert!(matches!(error, PipelineError::Edited { .. }), "{error}");
}

/// No hash covers what is not written now, and a line of a file is read at every boot.
#[test]
fn what_a_plan_file_says_of_pages_that_came_short_is_held_against_journal_and_memory() {
    let tree = Tree::answering(&format!("[[answer]]\nplace = \"{}\"\nclamp = {{ max = 2 }}\n", pool(1)));
    apply_here(&tree, &everything());
    let session = tree.session();
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let with = |change: &dyn Fn(&mut planish_model::Skipped)| {
        let mut plan = plan_of(&session, &everything());
        let row = plan.skipped.iter_mut().find(|row| row.place == pool(1)).expect("it came short");
        assert_eq!(row.asked_by, Some(EntryId(1)));
        change(row);
        plan
    };
    let error = apply(&session, &with(&|row| row.wanted = Some("100000000".to_owned())), &persist);
    assert!(matches!(error, Err(PipelineError::NoMemory { .. })), "{error:?}");
    apply(&session, &with(&|row| row.asked_by = Some(EntryId(7))), &persist).expect("applied without it");
    assert!(!tree.get("/etc/tmpfiles.d/90-planish.conf").contains(&pool(1)));
}

#[test]
fn a_plan_that_was_forged_is_refused() {
    let tree = Tree::new();
    let session = tree.session();
    let plan = plan_of(&session, &profile("one", &[("vm.swappiness", Want::Int(10))]));
    let forge = |change: &dyn Fn(&mut planish_model::Step)| {
        let mut steps = plan.steps.clone();
        change(&mut steps[0]);
        let (host, boot) = (plan.host_id.clone(), plan.boot_id.clone());
        // With a hash that fits: anybody can compute it.
        let forged = planish_model::Plan::new("one".to_owned(), host, boot, steps, vec![]);
        let error = apply(&session, &forged, &ApplyOptions::default()).expect_err("forged");
        assert!(matches!(error, PipelineError::Forged { .. }), "{error}");
        assert_eq!(error.exit(), Exit::Refused);
        error.to_string()
    };
    let trigger = forge(&|step| step.place = "/proc/sysrq-trigger".to_owned());
    assert_eq!(trigger, "/proc/sysrq-trigger: no place of vm.swappiness");
    forge(&|step| step.class = planish_model::Class::Availability);
    forge(&|step| step.in_all = Some(7));
    forge(&|step| step.undo = planish_model::Undo::None);
    forge(&|step| step.wanted = "10\n11".to_owned());
    forge(&|step| step.wanted = "300".to_owned());
    forge(&|step| {
        step.coupled.push(planish_model::Coupled {
            knob: KnobId::new("vm.stat_interval"),
            place: STAT_INTERVAL.to_owned(),
            now: "1".to_owned(),
            coupling: planish_model::Coupling::Derived,
        });
    });
    assert_eq!(tree.get(SWAPPINESS), "60\n");
    assert!(tree.entries().is_empty());
}

/// The same plan with other steps, and a hash that fits: anybody can compute it.
fn remade(plan: &planish_model::Plan, change: impl Fn(&mut planish_model::Step)) -> planish_model::Plan {
    let mut steps = plan.steps.clone();
    steps.iter_mut().for_each(change);
    let (host, boot) = (plan.host_id.clone(), plan.boot_id.clone());
    planish_model::Plan::new(plan.profile.clone(), host, boot, steps, vec![])
}

/// A plan of one pool: 8 pages on node 1.
fn eight_pages(session: &planish_pipeline::Session) -> planish_model::Plan {
    let need = Want::Need { need_bytes: 16 << 20, nodes: Nodes::Each(vec![1]) };
    plan_of(session, &profile("pool", &[("hugepages.2m", need)]))
}

#[test]
fn a_pool_grows_by_the_pages_that_were_reviewed() {
    let tree = Tree::new();
    // Someone else's pool, which no number may shrink.
    tree.edit(&pool(1), "5");
    let start = tree.snapshot();
    let session = tree.session();
    let plan = eight_pages(&session);
    assert_eq!((plan.steps[0].wanted.as_str(), plan.steps[0].raise_pages), ("13", Some(8)));
    let refused = |plan: &planish_model::Plan| {
        let error = apply(&session, plan, &ApplyOptions::default()).expect_err("forged");
        assert_eq!(error.exit(), Exit::Refused);
        assert!(matches!(error, PipelineError::Forged { .. }), "{error}");
    };
    for raise in [None, Some(0), Some(30_000), Some(u64::MAX - 3), Some(u64::MAX)] {
        refused(&remade(&plan, |step| step.raise_pages = raise));
    }
    for wanted in ["14", "5", "0"] {
        let error =
            apply(&session, &remade(&plan, |step| step.wanted = wanted.to_owned()), &ApplyOptions::default());
        assert_eq!(error.expect_err("not what it grows by").exit(), Exit::Refused, "{wanted}");
    }
    // Within what lent pages could explain, if there were any.
    let lent = remade(&plan, |step| step.raise_pages = Some(10));
    let error = apply(&session, &lent, &ApplyOptions::default()).expect_err("nothing is lent");
    assert!(matches!(error, PipelineError::Moved { .. }), "{error}");
    let value = plan_of(&session, &profile("one", &[("vm.swappiness", Want::Int(10))]));
    refused(&remade(&value, |step| step.raise_pages = Some(8)));
    // Each of these lines says `5 -> 13`, and so does the end of none of them but the first.
    let again = |steps: Vec<planish_model::Step>, skipped| {
        let (host, boot) = (plan.host_id.clone(), plan.boot_id.clone());
        planish_model::Plan::new(plan.profile.clone(), host, boot, steps, skipped)
    };
    refused(&again([&plan.steps[..], &plan.steps[..], &plan.steps[..]].concat(), vec![]));
    let (knob, verdict) = (value.steps[0].knob.clone(), value.steps[0].verdict.clone());
    let as_it_is = planish_model::Skipped::satisfied(knob, SWAPPINESS.to_owned(), "60".to_owned(), verdict);
    refused(&again(value.steps.clone(), vec![as_it_is]));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().is_empty());
}

#[test]
fn a_plan_for_which_memory_ran_short_is_refused() {
    let tree = Tree::new();
    let session = tree.session();
    let plan = eight_pages(&session);
    tree.put(
        "/proc/meminfo",
        "MemTotal:       67108864 kB\nMemAvailable:   1000000 kB\nHugepagesize: 2048 kB\n",
    );
    let start = tree.snapshot();
    let error = apply(&session, &plan, &ApplyOptions::default()).expect_err("no room any more");
    assert!(matches!(error, PipelineError::NoMemory { .. }), "{error}");
    assert_eq!(error.exit(), Exit::Refused);
    assert!(error.to_string().contains("16 MiB would leave"), "{error}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().is_empty());
}

/// The service would start on small pages, or not at all, and automation had seen a green apply.
#[test]
fn a_pool_that_memory_cannot_give_is_refused_by_profile_and_by_plan_file_alike() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let need = || Want::Need { need_bytes: 56 << 30, nodes: Nodes::Spread };
    let alone = profile("alone", &[("hugepages.2m", need())]);
    let among = profile("among", &[("hugepages.2m", need()), ("vm.stat_interval", Want::Int(10))]);
    let session = tree.session();
    let mut plans = Vec::new();
    for source in [&alone, &among] {
        let plan = plan_of(&session, source);
        for persist in [false, true] {
            let error = apply(&session, &plan, &ApplyOptions { persist, ..ApplyOptions::default() });
            let error = error.expect_err("60 GB are available");
            assert!(matches!(error, PipelineError::NoMemory { .. }), "{error}");
            assert_eq!(error.exit(), Exit::Refused);
            assert!(error.to_string().contains("hugepages.2m: 56 GiB would leave "), "{error}");
            assert!(error.hints()[0].ends_with("planish plan PROFILE --exclude hugepages.2m"), "{error}");
        }
        let checked = check(&session, Some(source)).expect("readable");
        assert_eq!(checked.exit, Exit::Findings);
        let pools = checked.drift.knobs.iter().filter(|row| row.knob.as_str() == "hugepages.2m");
        let told: Vec<&str> = pools.filter_map(|row| row.because.as_deref()).collect();
        assert_eq!(told.len(), 2, "each node");
        assert!(told[0].starts_with("3 of 14339 pages are there: 56 GiB would leave "), "{told:?}");
        plans.push(plan);
    }
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(tree.entries().is_empty());

    // What was said when the plan was made still holds for its file when there is room again.
    let meminfo = "MemTotal:       67108864 kB\nMemAvailable:   67000000 kB\nHugepagesize: 2048 kB\n";
    tree.put("/proc/meminfo", meminfo);
    let error = apply(&session, &plans[1], &ApplyOptions::default()).expect_err("it is not in the plan");
    assert!(matches!(error, PipelineError::NoMemory { .. }), "{error}");
    assert_eq!(tree.get(STAT_INTERVAL), "1\n");
}

#[test]
fn a_plan_file_that_keeps_quiet_about_a_twin_is_undone_all_the_same() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = tree.session();
    let plan = plan_of(&session, &profile("twin", &[("vm.dirty_bytes", Want::Int(1 << 29))]));
    assert_eq!(plan.steps[0].coupled.len(), 1, "the live twin");
    let other = remade(&plan, |step| step.coupled[0].coupling = planish_model::Coupling::Derived);
    let error = apply(&session, &other, &ApplyOptions::default()).expect_err("it is no derived place");
    assert!(matches!(error, PipelineError::Forged { .. }), "{error}");
    let quiet = remade(&plan, |step| step.coupled.clear());
    assert_eq!(
        apply(&session, &quiet, &ApplyOptions::default()).expect("the host takes it").exit,
        Exit::Done
    );
    assert_ne!(tree.get(DIRTY_BYTES), "0\n");
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// The file of a plan says how large a pool is that needs nothing, and `--persist` writes it for the next boot.
#[test]
fn a_pool_or_boot_parameter_that_a_plan_file_calls_satisfied_is_looked_at() {
    let tree = Tree::new();
    let session = tree.session();
    let plan = plan_of(&session, &profile("one", &[("vm.stat_interval", Want::Int(10))]));
    let takes_one =
        |knob: &&planish_model::Knob| knob.boot_parameter().is_some() && knob.validate("1").is_ok();
    let parameter = session.catalogue().knobs().find(takes_one).expect("there are");
    let rows = [
        (KnobId::new("hugepages.2m"), pool(0), "1000000"),
        (parameter.id.clone(), parameter.path.clone(), "1"),
    ];
    let start = tree.snapshot();
    for (knob, place, wanted) in rows {
        let mut forged = plan.clone();
        let verdict = planish_model::Verdict::new(planish_model::VerdictKind::Settable, "");
        let satisfied = planish_model::Skipped::satisfied(knob, place.clone(), wanted.to_owned(), verdict);
        forged.skipped.push(satisfied);
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        let error = apply(&session, &forged, &options).expect_err("the host does not show that");
        assert!(matches!(error, PipelineError::Moved { .. }), "{place}: {error}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{place}");
        // Without files for the next boot the row says nothing.
        apply(&session, &forged, &ApplyOptions::default()).expect("applied");
        undo_all(&tree);
    }
}
