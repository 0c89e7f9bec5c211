//! Apply, check, undo and log as their users see them.

use std::time::Duration;

use planish_journal::HostLock;
use planish_model::{Closure, DriftState, EntryId, EntryState, Exit, KnobId, Nodes, OutcomeKind, Want};
use planish_pipeline::{
    ApplyOptions, PipelineError, Source, Target, apply, check, confirm, do_once, plan, undo,
};

use crate::tree::*;

pub fn apply_here(tree: &Tree, source: &Source) -> planish_pipeline::Applied {
    let session = tree.session();
    let plan = plan_of(&session, source);
    apply(&session, &plan, &ApplyOptions::default()).expect("applied")
}

pub fn undo_all(tree: &Tree) -> planish_pipeline::Undone {
    undo(&tree.session(), Target::All, false).expect("undone")
}

#[test]
fn a_plan_reaches_the_host_and_goes_again() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let applied = apply_here(&tree, &everything());
    assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.outcomes);
    let values = [SWAPPINESS, STAT_INTERVAL, DIRTY_BYTES, DIRTY_RATIO, MIN_FREE].map(|place| tree.get(place));
    assert_eq!(values, ["10\n", "10\n", "536870912\n", "0\n", "90112\n"]);
    assert_eq!(tree.get(THP), "always [madvise] never\n");
    assert_eq!([pool(0), pool(1)].map(|place| tree.get(&place)), ["11\n", "8\n"]);
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::Undone));
}

#[test]
fn applying_twice_writes_nothing() {
    let tree = Tree::new();
    let session = tree.session();
    let plan = plan_of(&session, &everything());
    apply(&session, &plan, &ApplyOptions::default()).expect("applied");
    let after = tree.snapshot();
    let again = apply(&session, &plan, &ApplyOptions::default()).expect("in force");
    assert_eq!((again.entry, again.exit), (None, Exit::Done));
    let fresh = apply_here(&tree, &everything());
    assert_eq!((fresh.entry, fresh.outcomes.len()), (None, 0), "{:#?}", fresh.outcomes);
    assert_eq!(differences(&after, &tree.snapshot()), [""; 0]);
    assert_eq!(tree.entries().len(), 1);
}

/// A service of the host that writes its own values at each of its restarts, and somebody who applies again.
#[test]
fn a_profile_whose_values_were_set_back_is_applied_once_more() {
    for order in [[1, 2], [2, 1]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let values =
            profile("values", &[("vm.dirty_bytes", Want::Int(1 << 29)), ("vm.swappiness", Want::Int(10))]);
        apply_here(&tree, &values);
        let applied = tree.snapshot();
        tree.edit(DIRTY_RATIO, "20");
        tree.edit(SWAPPINESS, "60");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "as before the first apply");
        let again = apply_here(&tree, &values);
        assert_eq!((again.entry, again.exit), (Some(EntryId(2)), Exit::Done), "what plan prints is written");
        assert_eq!(differences(&applied, &tree.snapshot()), [""; 0]);
        let third = apply_here(&tree, &values);
        assert_eq!(
            (third.entry, third.exit),
            (None, Exit::Done),
            "and a third time there is nothing to write"
        );

        let undone = undo(&tree.session(), Target::Entry(EntryId(order[0])), false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{order:?} {:#?}", undone.entries);
        // The older one has nothing on the host any more, and must not take the newer one's values.
        let left = if order[0] == 1 { &applied } else { &start };
        assert_eq!(differences(left, &tree.snapshot()), [""; 0], "{order:?}");
        let undone = undo(&tree.session(), Target::Entry(EntryId(order[1])), false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{order:?} {:#?}", undone.entries);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
        assert!(tree.entries().iter().all(|entry| entry.state == EntryState::Closed(Closure::Undone)));
    }
}

#[test]
fn an_action_is_done_once_and_told_and_nothing_else_is_one() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = tree.session();
    let compact = KnobId::new("vm.compact_memory");
    let entry = do_once(&session, &compact, "1", Some("why")).expect("the model takes it");
    let told = &tree.entries()[0];
    assert_eq!((told.id, told.state), (entry, EntryState::Closed(Closure::Acted)));
    assert_eq!(
        (told.steps[0].place.as_str(), told.reason.as_deref()),
        ("/proc/sys/vm/compact_memory", Some("why"))
    );
    assert_eq!(undo_all(&tree).entries.len(), 0, "there is nothing to take back");
    for (knob, value) in [("vm.swappiness", "1"), ("vm.compact_memory", "7"), ("vm.no_such", "1")] {
        do_once(&session, &KnobId::new(knob), value, None).expect_err("no such action");
    }
    // Its file is not there on this host.
    let absent = do_once(&session, &KnobId::new("vm.drop_caches"), "3", None).expect_err("absent");
    assert_eq!(absent.exit(), Exit::Refused);
    assert_eq!((tree.entries().len(), differences(&start, &tree.snapshot())), (1, Vec::new()));
    let broken = Tree::answering("[[answer]]\nplace = \"/proc/sys/vm/compact_memory\"\nerrno = \"EIO\"\n");
    let error = do_once(&broken.session(), &compact, "1", None).expect_err("the kernel refuses");
    assert_eq!(
        (error.exit(), broken.entries()[0].state),
        (Exit::Refused, EntryState::Closed(Closure::Empty))
    );
}

#[test]
fn a_recording_that_is_no_fixture_is_not_written() {
    let tree = Tree::new();
    let plan = plan_of(&tree.session(), &everything());
    let meta = tree.get("/meta.toml").replace("writable = true", "writable = false");
    tree.put("/meta.toml", &meta);
    let start = tree.snapshot();
    let error = apply(&tree.session(), &plan, &ApplyOptions::default()).expect_err("not writable");
    assert_eq!(error.exit(), Exit::Refused);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_place_that_may_not_be_written_refuses_the_whole_plan() {
    let tree = Tree::new();
    let plan = plan_of(&tree.session(), &everything());
    let meta = tree.get("/meta.toml");
    tree.put(
        "/meta.toml",
        &meta.replace("writable = true", "writable = true\nread_only = [\"/sys/kernel/mm\"]"),
    );
    let error = apply(&tree.session(), &plan, &ApplyOptions::default()).expect_err("read-only");
    let text = error.to_string();
    assert!(
        text.starts_with("cannot write /sys/kernel/mm/transparent_hugepage/enabled: it is mounted"),
        "{text}"
    );
    assert_eq!(tree.get(SWAPPINESS), "60\n", "nothing before it was written either");
}

#[test]
fn a_step_that_fails_puts_back_those_before_it() {
    for errno in ["EIO", "EPERM", "EBUSY", "EINVAL", "ENOENT"] {
        let tree = Tree::answering(&format!("[[answer]]\nplace = \"{ZONE_RECLAIM}\"\nerrno = \"{errno}\"\n"));
        let start = tree.snapshot();
        let applied = apply_here(&tree, &everything());
        assert_eq!(applied.exit, Exit::FailedRestored, "{errno}: {:#?}", applied.outcomes);
        assert!(applied.hints[0].starts_with("vm.zone_reclaim_mode failed: "), "{:?}", applied.hints);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{errno}");
        assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::Undone), "{errno}");
    }
}

#[test]
fn steps_behind_one_that_fails_are_told_as_not_tried() {
    let tree = Tree::answering(&format!("[[answer]]\nplace = \"{SWAPPINESS}\"\nerrno = \"EIO\"\n"));
    let applied = apply_here(&tree, &everything());
    assert_eq!(applied.exit, Exit::FailedRestored, "{:#?}", applied.outcomes);
    let of = |place: &str| -> Vec<OutcomeKind> {
        applied
            .outcomes
            .iter()
            .filter(|outcome| outcome.place == place)
            .map(|outcome| outcome.outcome)
            .collect()
    };
    assert_eq!(of(ZONE_RECLAIM), [OutcomeKind::NotReached], "it is not as wanted, and nobody wrote it");
    assert!(of(SWAPPINESS).contains(&OutcomeKind::Failed));
    let entry = &tree.entries()[0];
    let step = entry.steps.iter().find(|step| step.place == ZONE_RECLAIM).expect("a step");
    let undone = step.undone.as_ref().expect("told by the journal");
    assert_eq!((undone.outcome, undone.read_back.as_deref()), (OutcomeKind::NotReached, None));
    assert_eq!(entry.state, EntryState::Closed(Closure::Undone));
}

#[test]
fn what_cannot_be_put_back_is_told_and_tried_again() {
    // The pool's first raise is granted; the value after it fails, and so does lowering the pool.
    let rows = format!(
        "[[answer]]\nplace = \"{ZONE_RECLAIM}\"\nerrno = \"EIO\"\n\
         [[answer]]\nplace = \"{SWAPPINESS}\"\nvanish_after = 1\n"
    );
    let tree = Tree::answering(&rows);
    let applied = apply_here(&tree, &everything());
    let vanished = applied.outcomes.iter().any(|outcome| outcome.outcome == OutcomeKind::Vanished);
    assert!(vanished, "{:#?}", applied.outcomes);
    assert_eq!(applied.exit, Exit::FailedNotRestored);
}

#[test]
fn a_place_that_is_gone_at_the_undo_keeps_the_entry_until_it_is_there_again() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_here(&tree, &profile("one", &[("vm.swappiness", Want::Int(10))]));
    tree.remove(SWAPPINESS);
    for _ in 0..2 {
        let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
        assert_eq!(undone.exit, Exit::Findings);
        let told =
            undone.hints.iter().any(|hint| hint.contains(SWAPPINESS) && hint.contains("planish undo 1"));
        assert!(told, "{:?}", undone.hints);
        assert!(tree.entries()[0].is_open());
    }
    tree.put(SWAPPINESS, "10\n");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(!tree.entries()[0].is_open());

    // A device that never comes back: force gives it up.
    apply_here(&tree, &profile("one", &[("vm.swappiness", Want::Int(10))]));
    tree.remove(SWAPPINESS);
    undo(&tree.session(), Target::Newest, true).expect("given up");
    assert!(!tree.entries()[1].is_open());
}

#[test]
fn theirs_is_kept_and_told_until_it_is_forced() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_here(&tree, &everything());
    tree.edit(SWAPPINESS, "33");
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Findings);
    assert!(
        undone.hints[0].contains("someone set it since: ours was `10`, before it `60`"),
        "{:?}",
        undone.hints
    );
    assert_eq!(differences(&start, &tree.snapshot()), [SWAPPINESS]);
    let forced = undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("forced");
    assert_eq!(forced.exit, Exit::Done, "{:#?}", forced.entries);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// An entry that is undone, and so long that the next writer archives the journal.
fn talk(tree: &Tree) {
    let session = tree.session();
    let long = ApplyOptions { reason: Some("x".repeat(300 << 10)), ..ApplyOptions::default() };
    let quick = profile("quick", &[("vm.zone_reclaim_mode", Want::Int(0))]);
    apply(&session, &plan_of(&session, &quick), &long).expect("applied");
    undo(&session, Target::Newest, false).expect("undone");
}

#[test]
fn what_undo_left_to_others_can_be_forced_after_the_journal_was_archived() {
    let tree = Tree::new();
    let start = tree.snapshot();
    for (wanted, theirs) in [(10, "33"), (11, "60")] {
        apply_here(&tree, &profile("first", &[("vm.swappiness", Want::Int(wanted))]));
        tree.edit(SWAPPINESS, theirs);
        // The second time somebody else sets what was there at the beginning, which is no original of that entry.
        assert_eq!(undo_all(&tree).exit, Exit::Findings);
    }
    talk(&tree);
    assert_eq!(undo_all(&tree).entries.len(), 0, "nothing is open");
    let archive = "/var/lib/planish/journal-000003.jsonl";
    assert!(tree.get(archive).len() > 256 << 10, "a writer came by");
    let force = |id| undo(&tree.session(), Target::Entry(EntryId(id)), true).expect("forced");
    // The newest that left a place stands for those before it: the journal would grow without end.
    let older = force(1);
    assert_eq!((older.exit, older.entries.len()), (Exit::Findings, 0));
    assert!(
        older.hints[0].starts_with("entry 1 is archived, and can no longer be forced"),
        "{:?}",
        older.hints
    );
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    let forced = force(2);
    assert_eq!((forced.exit, forced.entries.len()), (Exit::Done, 1), "{:?}", forced.hints);
    assert_eq!(tree.get(SWAPPINESS), "33\n");
    assert_eq!(force(3).exit, Exit::Done, "it was undone to its end");
}

#[test]
fn nothing_to_undo_is_no_error_and_an_unknown_entry_is() {
    let tree = Tree::new();
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    let error = undo(&tree.session(), Target::Entry(EntryId(7)), false).expect_err("no such entry");
    assert_eq!(error.exit(), Exit::Usage);
    apply_here(&tree, &everything());
    undo_all(&tree);
    let again = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("closed already");
    assert!(again.entries.is_empty());
}

#[test]
fn two_entries_can_go_in_any_order() {
    for order in [[2, 1], [1, 2]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_here(&tree, &everything());
        let second = profile(
            "second",
            &[
                ("vm.swappiness", Want::Int(1)),
                ("vm.dirty_ratio", Want::Int(5)),
                ("thp.enabled", Want::Text("never".to_owned())),
                ("hugepages.2m", Want::Need { need_bytes: 8 << 20, nodes: Nodes::Each(vec![1]) }),
            ],
        );
        apply_here(&tree, &second);
        assert_eq!((tree.get(SWAPPINESS).as_str(), tree.get(&pool(1)).as_str()), ("1\n", "12\n"));
        for id in order {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{order:?} {:#?}", undone.entries);
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

#[test]
fn a_reboot_takes_run_time_values_and_nothing_is_written_for_them() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_here(&tree, &everything());
    tree.reboot(&start);
    tree.put(SWAPPINESS, "10\n"); // set at boot by someone else, to our value
    assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::GoneWithReboot));
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, undone.entries.len()), (Exit::Done, 0));
    assert_eq!(tree.get(SWAPPINESS), "10\n");
}

#[test]
fn files_for_the_next_boot_come_and_go() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let session = tree.session();
    let first = apply(&session, &plan_of(&session, &everything()), &options).expect("applied");
    assert_eq!(first.exit, Exit::Done, "{:#?}", first.outcomes);
    let sysctl = tree.get(SYSCTL_FILE);
    assert!(sysctl.contains("\nvm.swappiness = 10\n"), "{sysctl}");
    assert!(tree.get(TMPFILES_FILE).contains(&format!("w {THP} - - - - madvise\n")));
    let second = profile("second", &[("vm.swappiness", Want::Int(1))]);
    apply(&session, &plan_of(&session, &second), &options).expect("applied");
    let both = tree.get(SYSCTL_FILE);
    assert!(both.contains("vm.swappiness = 1\n") && !both.contains("swappiness = 10"), "{both}");
    tree.reboot(&start);
    undo(&tree.session(), Target::Entry(EntryId(2)), false).expect("undone");
    assert_eq!(tree.get(SYSCTL_FILE), sysctl, "the lines of the first entry are back, byte for byte");
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_plan_that_was_undone_in_part_is_not_in_force() {
    let tree = Tree::new();
    let session = tree.session();
    let plan = plan_of(&session, &everything());
    apply(&session, &plan, &ApplyOptions::default()).expect("applied");
    tree.put(&pool(1).replace("nr_", "free_"), "2\n");
    undo_all(&tree);
    // The pool keeps pages that are in use, so that the plan no longer starts from what it saw.
    let error = apply(&session, &plan, &ApplyOptions::default()).expect_err("the host moved");
    assert!(matches!(error, PipelineError::Moved { .. }), "{error}");
}

#[test]
fn a_short_grant_is_a_finding_with_its_reason() {
    let rows = format!("[[answer]]\nplace = \"{}\"\nclamp = {{ max = 2 }}\n", pool(1));
    let tree = Tree::answering(&rows);
    let start = tree.snapshot();
    let applied = apply_here(&tree, &everything());
    assert_eq!(applied.exit, Exit::Findings);
    assert!(
        applied.hints[0].contains("2 of 8 pages granted: free memory is in pieces"),
        "{:?}",
        applied.hints
    );
    undo_all(&tree);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_pool_that_came_short_is_asked_again_only_when_more_is_free() {
    let tree = Tree::answering(&format!("[[answer]]\nplace = \"{}\"\nclamp = {{ max = 2 }}\n", pool(1)));
    apply_here(&tree, &everything());
    let after = tree.snapshot();
    let again = apply_here(&tree, &everything());
    assert_eq!((again.entry, again.exit), (None, Exit::Findings), "a short pool stays a finding");
    let drift = again.drift.knobs.iter().find(|knob| knob.state == DriftState::Drift).expect("the pool");
    assert_eq!(drift.place, pool(1));
    let why = drift.because.as_deref().expect("a reason");
    assert!(why.starts_with("entry 1 got 2 of 8 pages: free memory is in pieces"), "{why}");
    assert_eq!(differences(&after, &tree.snapshot()), [""; 0]);
    tree.put("/proc/buddyinfo", "Node 1, zone Normal 0 0 0 0 0 0 0 0 0 0 64\n");
    let plan = plan_of(&tree.session(), &everything());
    let written = plan.steps.iter().filter(|step| step.is_written());
    assert_eq!(written.map(|step| step.place.as_str()).collect::<Vec<_>>(), [pool(1)]);
}

#[test]
fn a_value_that_reads_back_changed_is_ours() {
    let tree = Tree::answering(&format!("[[answer]]\nplace = \"{SWAPPINESS}\"\nclamp = {{ min = 20 }}\n"));
    let start = tree.snapshot();
    let applied = apply_here(&tree, &everything());
    assert_eq!((applied.exit, tree.get(SWAPPINESS).as_str()), (Exit::Findings, "20\n"));
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// What memory did not give now, a boot can: the file is of what the profile wants, whenever it is written.
#[test]
fn persisting_what_came_short_names_all_that_was_asked_for() {
    let clamped = format!(
        "[[answer]]\nplace = \"{}\"\nclamp = {{ max = 2 }}\n[[answer]]\nplace = \"{SWAPPINESS}\"\n\
         clamp = {{ min = 20 }}\n",
        pool(1)
    );
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let files = ["/etc/sysctl.d/90-planish.conf", "/etc/tmpfiles.d/90-planish.conf"];
    let at_once = Tree::answering(&clamped);
    let session = at_once.session();
    apply(&session, &plan_of(&session, &everything()), &persist).expect("applied");
    let [sysctl, tmpfiles] = files.map(|file| at_once.get(file));
    assert!(tmpfiles.contains(&format!("w! {} - - - - 8\n", pool(1))), "{tmpfiles}");
    assert!(sysctl.contains("vm.swappiness = 10\n"), "{sysctl}");

    let tree = Tree::answering(&clamped);
    let start = tree.snapshot();
    apply_here(&tree, &everything());
    let session = tree.session();
    let plan = plan_of(&session, &everything());
    assert_eq!(plan.steps, [], "nothing is asked for again");
    let later = apply(&session, &plan, &persist).expect("applied");
    assert_eq!(later.unpersisted, []);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(files.map(|file| sorted(&tree.get(file))), [&sysctl, &tmpfiles].map(|text| sorted(text)));
    let again = apply(&session, &plan_of(&session, &everything()), &persist).expect("applied");
    assert_eq!(again.entry, None, "the lines are there");
    undo_all(&tree);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn check_names_drift_and_its_place() {
    let tree = Tree::new();
    apply_here(&tree, &everything());
    let drifted = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("readable");
        let drift = checked.drift.knobs.into_iter().filter(|knob| knob.state == DriftState::Drift);
        drift.map(|knob| knob.place).collect::<Vec<_>>()
    };
    assert_eq!(drifted(&tree), [""; 0]);
    tree.edit(SWAPPINESS, "33");
    assert_eq!(drifted(&tree), [SWAPPINESS]);
    let against = check(&tree.session(), Some(&everything())).expect("readable");
    assert_eq!(against.exit, Exit::Findings);
}

#[test]
fn a_second_planish_is_refused_with_the_pid_of_the_first() {
    let tree = Tree::new();
    let plan = plan_of(&tree.session(), &everything());
    let lock = HostLock::acquire(&tree.root().join("var/lib/planish/lock"), Duration::ZERO).expect("free");
    let error = apply(&tree.session(), &plan, &ApplyOptions::default()).expect_err("locked");
    assert_eq!(error.exit(), Exit::Refused);
    let source = std::error::Error::source(&error).expect("why").to_string();
    assert!(source.contains(&format!("pid {}", std::process::id())), "{source}");
    drop(lock);
    apply(&tree.session(), &plan, &ApplyOptions::default()).expect("free again");
}

#[test]
fn undo_works_with_a_broken_catalogue_of_the_user() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_here(&tree, &everything());
    tree.put("/etc/planish/knobs/own.toml", "[[knob]]\nid = \n");
    let session = tree.session();
    let error = check(&session, None).expect_err("a wrong row");
    assert_eq!(error.exit(), Exit::Usage);
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    tree.remove("/etc/planish/knobs/own.toml");
    assert_eq!(differences(&start, &tree.snapshot()), ["/etc/planish/", "/etc/planish/knobs/"]);
}

#[test]
fn confirm_keeps_what_was_applied_on_trial_and_only_then_persists_it() {
    let tree = Tree::new();
    let session = tree.session();
    let options = ApplyOptions { confirm_seconds: Some(3600), persist: true, ..ApplyOptions::default() };
    let session_quiet = crate::watch::without_watcher(&tree);
    let applied = apply(&session_quiet, &plan_of(&session, &everything()), &options).expect("applied");
    assert_eq!(tree.entries()[0].state, EntryState::Unconfirmed);
    assert_eq!(tree.get(SYSCTL_FILE), "", "a reboot must not bring back what nobody confirmed");
    let confirmed = confirm(&session).expect("confirmed");
    assert_eq!(confirmed.entries, [applied.entry.expect("written")]);
    assert_eq!(
        (confirmed.exit, confirmed.hints),
        (Exit::Done, Vec::new()),
        "files bring all of it, pools too"
    );
    assert!(tree.get(SYSCTL_FILE).contains("vm.swappiness = 10"));
    assert_eq!(tree.entries()[0].state, EntryState::Open);
    assert_eq!(confirm(&session).expect("nothing waits").entries, []);
    assert_eq!(undo_all(&tree).exit, Exit::Done);
}

#[test]
fn what_nobody_confirmed_is_neither_called_done_nor_persisted() {
    let tree = Tree::new();
    let session = crate::watch::without_watcher(&tree);
    let ratio = profile("ratio", &[("vm.swappiness", Want::Int(10)), ("vm.dirty_ratio", Want::Int(30))]);
    let before = plan_of(&session, &ratio);
    let on_trial = ApplyOptions { confirm_seconds: Some(3600), ..ApplyOptions::default() };
    let entry = apply(&session, &before, &on_trial).expect("applied").entry.expect("written");
    let after = tree.snapshot();
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let twin = profile("bytes", &[("vm.dirty_bytes", Want::Int(1 << 29))]);
    for plan in [before.clone(), plan_of(&session, &ratio), plan_of(&session, &twin)] {
        for options in [&ApplyOptions::default(), &persist, &on_trial] {
            let error = apply(&session, &plan, options).expect_err("it is on trial");
            assert!(matches!(error, PipelineError::Unconfirmed { .. }), "{error}");
            assert_eq!(error.exit(), Exit::Refused);
            assert!(
                error.to_string().ends_with("entry 1 is undone in 3600 s unless it is confirmed"),
                "{error}"
            );
            assert!(error.hints()[0].contains("planish confirm"), "{error}");
        }
    }
    // However short its own timer is, and the refusal says why.
    for persist in [false, true] {
        let shorter = ApplyOptions { confirm_seconds: Some(30), persist, reason: None };
        let error = apply(&session, &before, &shorter).expect_err("it is on trial");
        assert!(
            error.to_string().contains("only one entry at a time may try (a timer leaves what"),
            "{error}"
        );
    }
    let checked = check(&session, None).expect("any user may");
    let told =
        planish_pipeline::Unconfirmed { entry, seconds_left: 3600, is_whole: true, is_abandoned: false };
    assert_eq!(checked.unconfirmed, [told]);
    assert_eq!(differences(&after, &tree.snapshot()), [""; 0]);
    // What has nothing to do with it is applied as ever.
    let other = profile("other", &[("vm.stat_interval", Want::Int(10))]);
    apply(&session, &plan_of(&session, &other), &persist).expect("applied");
    confirm(&session).expect("confirmed");
    assert_eq!(check(&session, None).expect("any user may").unconfirmed, []);
    let applied = apply(&session, &plan_of(&session, &ratio), &persist).expect("it is ours to keep now");
    assert!(applied.entry.is_some() && tree.get(SYSCTL_FILE).contains("vm.swappiness = 10"));
    assert_eq!(undo_all(&tree).exit, Exit::Done);
}

#[test]
fn what_a_kill_left_of_an_apply_on_trial_can_only_be_taken_back() {
    let tree = Tree::new();
    let session = crate::watch::without_watcher(&tree);
    let on_trial = ApplyOptions { confirm_seconds: Some(3600), ..ApplyOptions::default() };
    let plan = plan_of(&session, &profile("first", &[("vm.swappiness", Want::Int(10))]));
    apply(&session, &plan, &on_trial).expect("applied");
    // Killed before it could say that every step was tried.
    let journal = "/var/lib/planish/journal.jsonl";
    let lines = tree.get(journal);
    let kept: Vec<&str> = lines.lines().filter(|line| !line.contains("\"kind\":\"applied\"")).collect();
    assert_eq!(kept.len() + 1, lines.lines().count());
    tree.put(journal, &(kept.join("\n") + "\n"));
    let error = apply(&session, &plan_of(&session, &everything()), &ApplyOptions::default());
    let error = error.expect_err("its timer will come");
    assert_eq!(error.hints(), ["take back what a kill left of it: planish undo 1"], "{error}");
    assert_eq!(undo_all(&tree).exit, Exit::Done);
}

#[test]
fn a_row_of_ones_own_for_a_place_of_the_catalogue_stops_every_plan() {
    let tree = Tree::new();
    let row = "[[knob]]\nid = \"my.swappiness\"\npath = \"/proc/sys/vm/swappiness\"\n\
               type = { int = \"weight\" }\nwhen = \"now\"\nclass = \"safe\"\nwhy = \"w\"\ncost = \"c\"\n\
               source = \"s\"\nproof = \"none yet\"\n";
    tree.put("/etc/planish/knobs/own.toml", row);
    for id in ["my.swappiness", "vm.swappiness"] {
        let error = plan(&tree.session(), &profile("own", &[(id, Want::Int(5))]), &Default::default());
        let error = error.expect_err("its class and its bounds would be another one's");
        assert_eq!(error.exit(), Exit::Usage);
        let told = std::error::Error::source(&error).expect("why").to_string();
        assert!(
            told.contains("my.swappiness: /proc/sys/vm/swappiness is a place of vm.swappiness"),
            "{told}"
        );
        assert!(error.hints()[0].contains("want vm.swappiness"), "{error}");
    }
}

#[test]
fn a_value_that_was_as_wanted_is_looked_at_too() {
    let tree = Tree::new();
    let session = tree.session();
    tree.edit("/proc/sys/vm/swappiness", "10");
    let wants = profile("one", &[("vm.swappiness", Want::Int(10)), ("vm.stat_interval", Want::Int(10))]);
    let plan = plan_of(&session, &wants);
    assert_eq!((plan.steps.len(), plan.skipped.len()), (1, 1));
    let refused = |plan: &planish_model::Plan| {
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        let error = apply(&session, plan, &options).expect_err("refused");
        assert_eq!((error.exit(), tree.get(SYSCTL_FILE).as_str()), (Exit::Refused, ""));
        error
    };
    // The hash covers the steps alone.
    let mut forged = plan.clone();
    forged.skipped[0].wanted = Some("10\nkernel.modules_disabled = 1".to_owned());
    assert!(matches!(refused(&forged), PipelineError::Forged { .. }));
    let mut forged = plan.clone();
    forged.skipped[0].place = "/proc/sys/kernel/modules_disabled".to_owned();
    assert!(matches!(refused(&forged), PipelineError::Forged { .. }));
    tree.edit("/proc/sys/vm/swappiness", "30");
    assert!(matches!(refused(&plan), PipelineError::Moved { .. }));
}

#[test]
fn an_undo_that_names_no_entry_leaves_a_running_trial_alone() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_here(&tree, &everything());
    let trial = tree.session().begin_trial().expect("no other trial").expect("a lock can be made");
    let second = tree.session().begin_trial().expect_err("one at a time");
    assert_eq!((second.exit(), second.hints().len()), (Exit::Refused, 1));
    let us = i32::try_from(std::process::id()).expect("a PID is an int");
    assert_eq!(tree.session().trial_at_work(), Some(us));
    for target in [Target::Newest, Target::All] {
        let error = undo(&tree.session(), target, false).expect_err("a trial runs");
        assert!(error.to_string().starts_with(&format!("a trial is at work (pid {us})")), "{error}");
        assert_eq!((error.exit(), error.hints().len()), (Exit::Refused, 1));
    }
    assert_eq!(tree.get(SWAPPINESS), "10\n");
    // A killed trial lets go of its lock like this one, and its entry is undone like any other.
    drop(trial);
    assert_eq!(tree.session().trial_at_work(), None);
    undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn an_entry_that_left_theirs_is_named_when_nothing_else_is_there_to_undo() {
    let tree = Tree::new();
    apply_here(&tree, &everything());
    tree.edit(SWAPPINESS, "33");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Findings);
    for force in [false, true] {
        let nothing = undo(&tree.session(), Target::Newest, force).expect("nothing to undo");
        assert!(nothing.entries.is_empty());
        let hint = nothing.hints.first().expect("it says what would");
        assert!(hint.contains("planish undo 1 --force"), "{hint}");
    }
    // To take all by force is to take that, too; once.
    let forced = undo(&tree.session(), Target::All, true).expect("undone");
    assert_eq!((forced.exit, forced.entries.len(), tree.get(SWAPPINESS).as_str()), (Exit::Done, 1, "60\n"));
    assert!(undo(&tree.session(), Target::All, true).expect("nothing to undo").entries.is_empty());
    let hints = undo(&tree.session(), Target::Newest, true).expect("nothing to undo").hints;
    assert_eq!(hints, [""; 0]);
}
