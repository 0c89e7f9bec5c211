//! Two profiles that want the same: both entries hold it, and it goes back with the last of them.

use planish_model::{
    Case, Class, Conditions, DriftState, EntryId, Exit, Nodes, OutcomeKind, Part, Plan, Want,
};
use planish_pipeline::{
    Applied, ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, plan, undo,
};

use crate::tree::*;

const FIRST: [(&str, &str); 2] = [("vm.swappiness", "5"), ("thp.enabled", "never")];

fn wants(name: &str, values: &[(&str, &str)]) -> Source {
    let want = |text: &str| text.parse().map_or_else(|_| Want::Text(text.to_owned()), Want::Int);
    let wants: Vec<_> = values.iter().map(|(knob, text)| (*knob, want(text))).collect();
    profile(name, &wants)
}

fn applied(tree: &Tree, source: &Source, options: &ApplyOptions) -> Applied {
    apply(&tree.session(), &plan_of(&tree.session(), source), options).expect("applied")
}

fn undone(tree: &Tree, entry: u64) -> (Exit, Vec<String>) {
    let undone = undo(&tree.session(), Target::Entry(EntryId(entry)), false).expect("undone");
    (undone.exit, undone.hints)
}

/// Places that show something else than an entry wants.
fn drifts(tree: &Tree) -> usize {
    let rows = check(&tree.session(), None).expect("checked").drift.knobs;
    rows.iter().filter(|row| row.state == DriftState::Drift).count()
}

/// What each step is beside: the entry that has set it.
fn beside(plan: &Plan) -> Vec<(&str, Option<u64>)> {
    plan.steps.iter().map(|step| (step.knob.as_str(), step.beside.map(|entry| entry.0))).collect()
}

#[test]
fn what_two_profiles_want_goes_back_with_the_last_of_them() {
    let now = ApplyOptions::default();
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let before = [tree.get(SWAPPINESS), tree.get(THP)];
        applied(&tree, &wants("first", &FIRST), &now);
        let set = tree.snapshot();
        let second = wants("second", &FIRST);
        let planned = plan_of(&tree.session(), &second);
        assert_eq!(beside(&planned), [("thp.enabled", Some(1)), ("vm.swappiness", Some(1))]);
        assert_eq!(planned.overlays, [], "nothing of it goes with the first");
        let done = applied(&tree, &second, &now);
        assert!(done.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::TakenOver));
        assert_eq!((done.entry, done.exit), (Some(EntryId(2)), Exit::Done), "{:?}", done.hints);
        assert_eq!(differences(&set, &tree.snapshot()), [""; 0], "nothing was written");
        assert_eq!(applied(&tree, &second, &now).entry, None, "applied twice");
        assert_eq!(applied(&tree, &wants("first", &FIRST), &now).entry, None, "applied twice");
        assert_eq!(applied(&tree, &wants("third", &FIRST[..1]), &now).entry, Some(EntryId(3)));
        let mut open = vec![1, 2, 3];
        for entry in order {
            assert_eq!(undone(&tree, entry).0, Exit::Done, "{order:?}: {entry}");
            open.retain(|other| *other != entry);
            let held = |is_any: bool, set: &str, before: &str| (if is_any { set } else { before }).to_owned();
            let swappiness = held(!open.is_empty(), "5\n", &before[0]);
            let thp = held(open.iter().any(|entry| *entry != 3), "always madvise [never]\n", &before[1]);
            assert_eq!([tree.get(SWAPPINESS), tree.get(THP)], [swappiness, thp], "{order:?}: {open:?}");
            assert_eq!(
                check(&tree.session(), None).expect("checked").exit,
                Exit::Done,
                "{order:?}: {open:?}"
            );
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

/// The second entry of a profile that was edited holds what the profile still wants of the first.
#[test]
fn what_an_edited_profile_wants_goes_back_with_the_last_of_its_entries() {
    let edited = [("vm.swappiness", "5"), ("vm.stat_interval", "10")];
    for options in [&ApplyOptions::default(), &PERSIST] {
        for order in [[1, 2], [2, 1]] {
            let tree = Tree::new();
            let start = tree.snapshot();
            applied(&tree, &wants("own", &FIRST), options);
            let first = tree.snapshot();
            let planned = plan_of(&tree.session(), &wants("own", &edited));
            assert_eq!(beside(&planned), [("vm.stat_interval", None), ("vm.swappiness", Some(1))]);
            applied(&tree, &wants("own", &edited), options);
            assert_eq!(applied(&tree, &wants("own", &edited), options).entry, None, "applied twice");
            assert_eq!(undone(&tree, order[0]).0, Exit::Done, "{order:?}");
            match order[0] {
                1 => {
                    assert_eq!([SWAPPINESS, STAT_INTERVAL].map(|place| tree.get(place)), ["5\n", "10\n"]);
                    let line = |text: &String| {
                        text.contains("vm.swappiness = 5\\n") || text.contains("vm.swappiness = 5\n")
                    };
                    let is_in_file = tree.snapshot().get(SYSCTL_FILE).is_some_and(line);
                    assert_eq!(is_in_file, options.persist);
                }
                _ => assert_eq!(differences(&first, &tree.snapshot()), [""; 0], "as the first left it"),
            }
            assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{order:?}");
            assert_eq!(undone(&tree, order[1]).0, Exit::Done, "{order:?}");
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
        }
    }
}

/// A profile that was edited: what the kernel derived for its first entry, pages, and drop-ins.
#[test]
fn what_an_edited_profile_found_of_its_first_entry_stays_with_the_second() {
    let drop_in = Case {
        value: "500000".to_owned(),
        only: Some("clickhouse-server".to_owned()),
        needs: Conditions::default(),
    };
    let limit = ("unit.nofile", Want::Case(Box::new(drop_in)));
    let pool_of =
        |pages: u64| ("hugepages.2m", Want::Need { need_bytes: pages << 21, nodes: Nodes::Each(vec![0]) });
    let interval = ("vm.stat_interval", Want::Int(10));
    let apply_allowed = |tree: &Tree, source: &Source, options: &ApplyOptions| {
        let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
        let planned = plan(&tree.session(), source, &allowed).expect("a plan");
        apply(&tree.session(), &planned, options).expect("applied")
    };
    for options in [&ApplyOptions::default(), &PERSIST] {
        let tree = Tree::copy_of("metal-2s");
        let start = tree.snapshot();
        let thp = ("thp.enabled", Want::Text("never".to_owned()));
        applied(&tree, &profile("own", &[thp, limit.clone(), pool_of(4)]), options);
        let derived = tree.get(MIN_FREE);
        let min_free = ("vm.min_free_kbytes", Want::Int(derived.trim().parse().expect("a number")));
        let edited = profile("own", &[min_free, limit.clone(), pool_of(4), interval.clone()]);
        let done = apply_allowed(&tree, &edited, options);
        assert_eq!(done.exit, Exit::Done, "{:?}", done.hints);
        assert_eq!(apply_allowed(&tree, &edited, options).entry, None, "applied twice");
        let drop_ins = |tree: &Tree| {
            tree.snapshot().keys().filter(|file| file.contains("zz-planish")).cloned().collect::<Vec<_>>()
        };
        let there = drop_ins(&tree);
        assert_eq!(there.iter().filter(|file| file.ends_with(".conf")).count(), 1, "{there:?}");
        let (exit, hints) = undone(&tree, 1);
        assert_eq!(exit, Exit::Findings, "pages have one owner: {hints:?}");
        let persist = if options.persist { " --persist" } else { "" };
        let told = format!(
            "entry 2 (own) is open, and may count on what its older one had, which nobody else holds: hugepages.2m; \
             again: planish apply FILE{persist}, the file of that profile"
        );
        assert_eq!(hints.iter().filter(|hint| hint.contains("entry 2")).collect::<Vec<_>>(), [&told]);
        assert_eq!((tree.get(MIN_FREE), drop_ins(&tree)), (derived, there));
        apply_allowed(&tree, &edited, options);
        assert_eq!(tree.get(&pool(0)).trim(), "4", "asked for once more");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// A profile that was edited to the value of another one's entry has it from that, and holds it.
#[test]
fn what_an_edited_profile_has_of_another_one_is_held_too() {
    for with_more in [false, true] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let now = ApplyOptions::default();
        applied(&tree, &wants("own", &[("vm.swappiness", "10")]), &now);
        applied(&tree, &wants("other", &[("vm.swappiness", "20")]), &now);
        let more = ("vm.stat_interval", "10");
        let edited = [("vm.swappiness", "20"), more];
        let edited = wants("own", if with_more { &edited } else { &edited[..1] });
        let planned = plan_of(&tree.session(), &edited);
        assert!(beside(&planned).contains(&("vm.swappiness", Some(2))), "{:?}", beside(&planned));
        applied(&tree, &edited, &now);
        assert_eq!(undone(&tree, 2).0, Exit::Done);
        assert_eq!(tree.get(SWAPPINESS), "20\n");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// A boot parameter is one entry's: who plans it beside that is told.
#[test]
fn a_boot_parameter_that_another_entry_has_given_is_told() {
    let tree = Tree::copy_of("rhel9-guest");
    let keep = PlanOptions { persist: true, ..PlanOptions::default() };
    let planned = |source: &Source| plan(&tree.session(), source, &keep).expect("a plan");
    let first = planned(&wants("first", &[("boot.skew_tick", "1")]));
    assert_eq!(first.remarks, [""; 0]);
    apply(&tree.session(), &first, &PERSIST).expect("applied");
    let second = planned(&wants("second", &[("boot.skew_tick", "1"), ("vm.stat_interval", "10")]));
    let told = "entry 1 (first) alone has the boot loader give skew_tick=1: an undo of it takes that from second, too";
    assert_eq!(second.remarks, [told]);
    let edited = planned(&wants("first", &[("boot.skew_tick", "1"), ("vm.stat_interval", "10")]));
    apply(&tree.session(), &edited, &PERSIST).expect("applied");
    let (exit, hints) = undone(&tree, 1);
    assert_eq!(exit, Exit::Findings, "{hints:?}");
    assert!(hints.iter().any(|hint| hint.contains("nobody else holds: skew_tick=1; again:")), "{hints:?}");
}

/// The pages of a pool are their first owner's, however many others have there; who counts on them is told.
#[test]
fn pages_of_an_edited_profile_are_told_when_its_first_entry_goes() {
    let pool_of =
        |pages: u64| ("hugepages.2m", Want::Need { need_bytes: pages << 21, nodes: Nodes::Each(vec![0]) });
    let now = ApplyOptions::default();
    for edited in [&[pool_of(4), ("vm.stat_interval", Want::Int(10))][..], &[pool_of(8)]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        applied(&tree, &profile("own", &[pool_of(4)]), &now);
        applied(&tree, &profile("other", &[pool_of(16)]), &now);
        let edited = profile("own", edited);
        let planned = plan_of(&tree.session(), &edited);
        let apart = |overlay: &planish_model::Overlay| overlay.shared.is_empty() && overlay.knobs.is_empty();
        assert!(
            planned.overlays.iter().all(apart),
            "nothing of it is of the other one: {:?}",
            planned.overlays
        );
        apply(&tree.session(), &planned, &now).expect("applied");
        let (exit, hints) = undone(&tree, 1);
        assert_eq!(exit, Exit::Findings, "{hints:?}");
        let told = "entry 3 (own) is open, and may count on";
        assert!(hints.iter().any(|hint| hint.starts_with(told)), "{hints:?}");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// So it is where another plan takes them over.
#[test]
fn pages_that_another_plan_takes_over_are_told_too() {
    let pool_of =
        |pages: u64| ("hugepages.2m", Want::Need { need_bytes: pages << 21, nodes: Nodes::Each(vec![0]) });
    let tree = Tree::new();
    let start = tree.snapshot();
    let now = ApplyOptions::default();
    applied(&tree, &profile("own", &[pool_of(4)]), &now);
    applied(&tree, &profile("own", &[pool_of(4), ("vm.stat_interval", Want::Int(10))]), &now);
    let session = tree.session();
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..PlanOptions::default() };
    let planned = plan(&session, &profile("other", &[pool_of(4)]), &options).expect("a plan");
    let done = apply(&session, &planned, &now).expect("applied");
    let told = "entry 2 (own) is open, and may count on";
    assert!(done.hints.iter().any(|hint| hint.starts_with(told)), "{:?}", done.hints);
    assert_eq!(done.exit, Exit::Findings);
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// The lines of files that a profile has by its first entry are the second one's, too.
#[test]
fn lines_of_an_edited_profile_go_with_the_last_of_its_entries() {
    let tree = Tree::new();
    let start = tree.snapshot();
    applied(&tree, &wants("own", &[("thp.enabled", "never")]), &PERSIST);
    applied(&tree, &wants("own", &[("thp.enabled", "never"), ("vm.stat_interval", "10")]), &PERSIST);
    assert_eq!(undone(&tree, 1).0, Exit::Done);
    assert!(tree.get(TMPFILES_FILE).contains("transparent_hugepage/enabled - - - - never"));
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    assert_eq!(undone(&tree, 2).0, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// Tried first, and kept then: the second entry has the files, and holds the values.
#[test]
fn what_is_tried_and_then_kept_goes_back_with_the_last_entry() {
    let source = wants("own", &FIRST);
    let keep = |tree: &Tree| {
        let options = PlanOptions { persist: true, ..PlanOptions::default() };
        let planned = plan(&tree.session(), &source, &options).expect("a plan");
        (beside(&planned).len(), apply(&tree.session(), &planned, &PERSIST).expect("applied"))
    };
    for order in [[1, 2], [2, 1]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        applied(&tree, &source, &ApplyOptions::default());
        let first = tree.snapshot();
        let (held, done) = keep(&tree);
        assert_eq!((held, done.entry, done.exit), (2, Some(EntryId(2)), Exit::Done), "{:?}", done.hints);
        let (held, done) = keep(&tree);
        assert_eq!((held, done.entry, done.exit), (0, None, Exit::Done), "applied twice: {:?}", done.hints);
        let (exit, hints) = undone(&tree, order[0]);
        assert_eq!(exit, Exit::Done, "{order:?}: {hints:?}");
        match order[0] {
            1 => assert_eq!(tree.get(SWAPPINESS), "5\n"),
            _ => assert_eq!(differences(&first, &tree.snapshot()), [""; 0], "as the first left it"),
        }
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{order:?}");
        assert_eq!(undone(&tree, order[1]).0, Exit::Done, "{order:?}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

/// Where somebody has set one value since, the next apply writes that one, and holds the rest.
#[test]
fn an_entry_that_mends_one_value_holds_the_others() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let source = wants("own", &FIRST);
    applied(&tree, &source, &ApplyOptions::default());
    tree.edit(SWAPPINESS, "33");
    let planned = plan_of(&tree.session(), &source);
    assert_eq!(beside(&planned), [("thp.enabled", Some(1)), ("vm.swappiness", None)]);
    applied(&tree, &source, &ApplyOptions::default());
    undone(&tree, 1);
    assert_eq!([SWAPPINESS, THP].map(|place| tree.get(place)), ["5\n", "always madvise [never]\n"]);
    undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [SWAPPINESS], "what somebody had set");
}

/// In files, too, over a reboot between the undos.
#[test]
fn what_two_profiles_have_each_boot_set_goes_back_with_the_last_of_them() {
    for (first, last) in [(1, 2), (2, 1)] {
        for reboots in [false, true] {
            let tree = Tree::new();
            let start = tree.snapshot();
            applied(&tree, &wants("first", &FIRST), &PERSIST);
            applied(&tree, &wants("second", &FIRST), &PERSIST);
            if reboots {
                tree.reboot(&start);
                for (place, value) in [(SWAPPINESS, "5"), (THP, "never")] {
                    tree.edit(place, value);
                }
            }
            let (exit, hints) = undone(&tree, first);
            assert_eq!(exit, Exit::Done, "{first}, {reboots}: {hints:?}");
            assert_eq!(tree.get(SWAPPINESS).trim(), "5");
            assert!(tree.get(SYSCTL_FILE).contains("\nvm.swappiness = 5\n"));
            assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done, "{first}, {reboots}");
            let (exit, hints) = undone(&tree, last);
            assert_eq!(exit, Exit::Done, "{last}, {reboots}: {hints:?}");
            let left = differences(&start, &tree.snapshot());
            let boot = |line: &String| line.contains("boot_id");
            assert!(left.iter().all(|line| reboots && boot(line)), "{first}, {reboots}: {left:?}");
        }
    }
}

/// A value that somebody set after the first entry goes with no entry.
#[test]
fn what_somebody_has_set_since_is_held_beside_no_entry() {
    let tree = Tree::new();
    let start = tree.snapshot();
    applied(&tree, &wants("first", &FIRST), &ApplyOptions::default());
    tree.edit(SWAPPINESS, "33");
    let second = wants("second", &[("vm.swappiness", "33"), ("vm.stat_interval", "10")]);
    assert_eq!(beside(&plan_of(&tree.session(), &second)), [("vm.stat_interval", None)]);
    applied(&tree, &second, &ApplyOptions::default());
    assert_eq!(undone(&tree, 1).0, Exit::Findings, "theirs is kept, and told");
    assert_eq!(tree.get(SWAPPINESS).trim(), "33");
    undo(&tree.session(), Target::All, true).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// The second entry takes the place of one and holds what another one has set beside that.
#[test]
fn what_takes_the_place_of_one_entry_holds_beside_another() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let now = ApplyOptions::default();
    applied(&tree, &wants("first", &FIRST), &now);
    applied(&tree, &wants("second", &[("vm.stat_interval", "10")]), &now);
    let third = wants("third", &[("vm.swappiness", "5"), ("vm.stat_interval", "10")]);
    let instead = |session: &Session, source: &Source| {
        let options = PlanOptions { instead_of: Some(EntryId(2)), ..PlanOptions::default() };
        plan(session, source, &options)
    };
    let alone = instead(&tree.session(), &wants("alone", &FIRST));
    let error = alone.expect_err("it takes nothing over").to_string();
    assert!(error.contains("takes nothing over from it"), "{error}");
    let planned = instead(&tree.session(), &third).expect("a plan");
    let parts: Vec<_> = planned.steps.iter().map(|step| (step.part, step.beside)).collect();
    assert_eq!(parts, [(Some(Part::TakenOver), None), (Some(Part::TakenOver), Some(EntryId(1)))]);
    let done = apply(&tree.session(), &planned, &now).expect("applied");
    assert_eq!(done.exit, Exit::Done, "{:?}", done.hints);
    assert_eq!(undone(&tree, 1).0, Exit::Done);
    assert_eq!((tree.get(SWAPPINESS).trim(), tree.get(STAT_INTERVAL).trim()), ("5", "10"));
    assert_eq!(undone(&tree, 3).0, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// One twin is a setting with the other: what goes back with the last entry is the one that was live.
#[test]
fn twins_that_two_profiles_want_go_back_as_they_were() {
    let allowed = PlanOptions { allow_classes: vec![Class::Durability], ..PlanOptions::default() };
    for order in [[1, 2], [2, 1]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let bytes = [("vm.dirty_bytes", "268435456")];
        for name in ["first", "second"] {
            let session = tree.session();
            let plan = plan(&session, &wants(name, &bytes), &allowed).expect("a plan");
            apply(&session, &plan, &ApplyOptions::default()).expect("applied");
        }
        assert_eq!(undone(&tree, order[0]).0, Exit::Done);
        assert_eq!(tree.get(DIRTY_BYTES).trim(), "268435456", "{order:?}");
        assert_eq!(undone(&tree, order[1]).0, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

/// Pages have no two owners: those of an older entry that a size in all counts go with that one, which is told before
/// and after.
#[test]
fn pages_that_a_size_in_all_counts_are_told_when_they_go() {
    let total = |name: &str, total_bytes| {
        profile(name, &[("hugepages.2m", Want::Total { total_bytes, nodes: Nodes::Spread })])
    };
    for (options, again) in [
        (ApplyOptions::default(), "again: planish apply FILE, the file of that profile"),
        (
            PERSIST,
            "its files bring that at each boot, and until then: planish apply FILE --persist, the file of that profile",
        ),
    ] {
        let tree = Tree::copy_of("metal-2s");
        let start = tree.snapshot();
        applied(&tree, &total("first", 40 << 20), &options);
        let second = total("second", 80 << 20);
        let planned = plan_of(&tree.session(), &second);
        let [shared] = planned.overlays.as_slice() else { panic!("{planned:#?}") };
        assert_eq!((shared.entry, shared.shared.len()), (EntryId(1), 1), "{shared:?}");
        assert_eq!(applied(&tree, &second, &options).entry, Some(EntryId(2)));
        assert_eq!(drifts(&tree), 0);
        let (exit, hints) = undone(&tree, 1);
        let told = "entry 2 (second) is open, and had found as wanted what went back now: hugepages.2m; ";
        assert!(hints.contains(&format!("{told}{again}")), "{hints:?}");
        assert_eq!(exit, Exit::Findings);
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Findings);
        assert_eq!(applied(&tree, &second, &options).entry, Some(EntryId(3)));
        assert_eq!(drifts(&tree), 0);
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// No plan file has a step held that is not there, or that is beside nothing that a plan holds.
#[test]
fn a_step_that_a_file_calls_held_has_to_be_there() {
    let tree = Tree::new();
    applied(&tree, &wants("first", &FIRST), &ApplyOptions::default());
    let honest = plan_of(&tree.session(), &wants("second", &[("vm.swappiness", "7")]));
    for (part, beside) in
        [(Some(Part::TakenOver), Some(EntryId(1))), (None, Some(EntryId(1))), (Some(Part::Back), None)]
    {
        let mut steps = honest.steps.clone();
        (steps[0].part, steps[0].beside) = (part, beside);
        let Plan { profile, host_id, boot_id, .. } = honest.clone();
        let forged = Plan::new(profile, host_id, boot_id, steps, Vec::new());
        let error = apply(&tree.session(), &forged, &ApplyOptions::default()).expect_err("no plan holds it");
        assert!(matches!(error, PipelineError::Forged { .. }), "{part:?}: {error}");
        assert_eq!((tree.get(SWAPPINESS).trim(), tree.entries().len()), ("5", 1));
    }
}
