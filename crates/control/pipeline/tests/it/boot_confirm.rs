//! Boot parameters on trial: no boot loader learns of them before the confirm, and the confirm brings all of them.

use planish_model::{EntryId, EntryState, Exit, Nodes, Unpersisted, Want};
use planish_pipeline::{ApplyOptions, PipelineError, Target, apply, check, confirm, undo};

use crate::boot::{
    DEFAULTS, ENTRY, ENV, KERNEL_CMDLINE, Named, all, debian, give, more, persist, rocky, suse,
};
use crate::boot::{lines_of, systemd, try_out, wants};
use crate::faults::{Fuse, fused, until_killed};
use crate::tree::*;

#[test]
fn confirm_comes_before_the_boot_loader() {
    let (start, tree) = (rocky().snapshot(), on_trial(rocky));
    let untouched = |place: &&String| place.starts_with("/boot") || place.starts_with("/etc/default");
    assert_eq!(differences(&start, &tree.snapshot()).iter().find(untouched), None);
    confirm(&tree.session()).expect("confirmed");
    assert!(tree.get(ENTRY).contains("skew_tick=1"));
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A host with boot parameters that wait to be confirmed.
fn on_trial(make: fn() -> Tree) -> Tree {
    let tree = make();
    let applied = try_out(&tree, &wants());
    assert_eq!(applied.exit, Exit::Done, "what waits for the confirm is no finding: {:?}", applied.hints);
    tree
}

#[test]
fn a_file_that_was_edited_since_its_apply_is_not_confirmed() {
    let edited: [(Named, &str, &str); 3] = [
        (("rocky entry", rocky), ENTRY, "quiet"),
        (("rocky cmdline", rocky), KERNEL_CMDLINE, "quiet"),
        (("systemd", systemd), "/efi/loader/entries/arch.conf", " ro"),
    ];
    for ((name, make), path, word) in edited {
        let tree = on_trial(make);
        let shown = tree.get(path);
        tree.put(path, &shown.replace(word, &format!(" panic=7 {word}")));
        let before = tree.snapshot();
        let error = confirm(&tree.session()).expect_err(name);
        let PipelineError::NotAsShown { path: told, entry } = &error else { panic!("{name}: {error}") };
        assert_eq!((told.as_str(), *entry, error.exit()), (path, EntryId(1), Exit::Refused), "{name}");
        assert!(error.hints().concat().contains("planish undo 1"), "{name}: {:?}", error.hints());
        assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{name}: no file of it was begun");
        assert_eq!(tree.entries()[0].state, EntryState::Unconfirmed, "{name}");

        // Both cures of the hint: as it was, it is confirmed; and its undo keeps what somebody wrote.
        tree.put(path, &shown);
        assert_eq!(confirm(&tree.session()).expect(name).entries, [EntryId(1)]);
        let tree = on_trial(make);
        tree.put(path, &shown.replace(word, &format!(" panic=7 {word}")));
        undo(&tree.session(), Target::All, false).expect("undone");
        assert!(tree.get(path).contains("panic=7") && !tree.get(path).contains("skew_tick"), "{name}");
        persist(&tree, &wants());
        assert!(tree.get(path).contains("panic=7") && tree.get(path).contains("skew_tick=1"), "{name}");
    }
}

#[test]
fn what_the_write_leaves_alone_keeps_nobody_from_confirming() {
    // GRUB notes in its environment that a boot went well, and an administrator sets a timeout.
    let tree = on_trial(rocky);
    let env = tree.get(ENV).replace("saved_entry=m-6.12\n", "saved_entry=m-6.12\nboot_success=1\n");
    tree.put(ENV, &env[..1024]);
    tree.put(ENTRY, &format!("{}# a note\n", tree.get(ENTRY)));
    assert_eq!(confirm(&tree.session()).expect("confirmed").entries, [EntryId(1)]);
    assert!(tree.get(ENV).contains("boot_success=1") && tree.get(ENV).contains("skew_tick=1"));
    assert!(tree.get(ENTRY).contains("# a note") && tree.get(ENTRY).contains("skew_tick=1"));
    // Defaults get a line of their own, and keep those that are there.
    let tree = on_trial(suse);
    tree.put(DEFAULTS, &tree.get(DEFAULTS).replace("quiet", "panic=7 quiet"));
    assert_eq!(confirm(&tree.session()).expect("confirmed").entries, [EntryId(1)]);
    assert!(tree.get(DEFAULTS).contains("panic=7 quiet") && tree.get(DEFAULTS).contains("skew_tick=1"));
}

#[test]
fn arguments_of_two_entries_on_trial_are_confirmed_together() {
    for (name, make) in all().into_iter().filter(|(name, _)| *name != "debian") {
        let start = make().snapshot();
        let tree = on_trial(make);
        try_out(&tree, &more());
        assert_eq!(confirm(&tree.session()).expect(name).entries, [EntryId(1), EntryId(2)]);
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");

        // An entry that is undone meanwhile takes its own arguments along, which is no edit of somebody's.
        let tree = make();
        persist(&tree, &wants());
        try_out(&tree, &more());
        undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone");
        assert_eq!(confirm(&tree.session()).expect(name).entries, [EntryId(2)]);
        undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
    }
}

#[test]
fn an_edit_with_the_same_argument_in_it_is_no_confirm_that_was_killed() {
    for make in [rocky, systemd] {
        let tree = on_trial(make);
        let (path, format) = lines_of(&tree).remove(0);
        give(&tree, &path, format, "panic=7 skew_tick=1");
        let error = confirm(&tree.session()).expect_err("somebody edited it");
        assert!(matches!(error, PipelineError::NotAsShown { .. }), "{error}");
    }
}

#[test]
fn a_kernel_that_went_since_the_apply_is_named_with_the_way_out() {
    let tree = on_trial(rocky);
    tree.remove(ENTRY);
    let before = tree.snapshot();
    let error = confirm(&tree.session()).expect_err("its entry is gone");
    assert!(matches!(&error, PipelineError::GoneSince { path, .. } if path == ENTRY), "{error}");
    assert_eq!(error.exit(), Exit::Refused);
    assert!(error.hints().concat().contains("planish undo 1"), "{:?}", error.hints());
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    undo(&tree.session(), Target::All, false).expect("undone");
    try_out(&tree, &wants());
    assert_eq!(confirm(&tree.session()).expect("what is there now").entries, [EntryId(2)]);
    assert!(tree.get(KERNEL_CMDLINE).ends_with(" skew_tick=1 planish.entry=2"));
}

#[test]
fn a_parameter_on_trial_is_persisted_by_nobody_else() {
    for (name, make) in all() {
        let tree = on_trial(make);
        let tick = profile("tick", &[("boot.skew_tick", Want::Int(1))]);
        let before = tree.snapshot();
        let session = tree.session();
        let error = apply(&session, &plan_of(&session, &tick), &PERSIST).expect_err(name);
        assert!(
            matches!(&error, PipelineError::Unconfirmed { what, .. } if what == "cmdline:skew_tick"),
            "{error}"
        );
        assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "{name}");
        // Without files there is nothing of it to write, and nothing to refuse.
        apply(&session, &plan_of(&session, &tick), &ApplyOptions::default()).expect(name);
        persist(&tree, &more());
        confirm(&session).expect(name);
        persist(&tree, &tick);
    }
}

#[test]
fn a_parameter_that_no_loader_gives_is_said_at_the_apply_and_at_the_confirm() {
    let tree = Tree::new();
    let applied = try_out(&tree, &wants());
    let left = |unpersisted: &[Unpersisted]| -> Vec<String> {
        unpersisted.iter().map(|left| left.place.clone()).collect()
    };
    assert_eq!(
        (applied.exit, left(&applied.unpersisted)),
        (Exit::Findings, vec!["cmdline:skew_tick".to_owned()])
    );
    let confirmed = confirm(&tree.session()).expect("confirmed");
    assert_eq!((confirmed.exit, left(&confirmed.unpersisted)), (Exit::Findings, left(&applied.unpersisted)));
    // Without files nobody was promised a next boot.
    let tree = Tree::new();
    let session = crate::watch::without_watcher(&tree);
    let options = ApplyOptions { confirm_seconds: Some(3600), ..ApplyOptions::default() };
    apply(&session, &plan_of(&session, &wants()), &options).expect("applied");
    let confirmed = confirm(&session).expect("confirmed");
    assert_eq!((confirmed.exit, confirmed.unpersisted.len(), confirmed.hints.len()), (Exit::Done, 0, 0));
}

#[test]
fn a_confirm_that_brings_its_parameters_at_the_next_boot_is_done() {
    for (name, make) in all() {
        let tree = on_trial(make);
        let confirmed = confirm(&tree.session()).expect(name);
        assert_eq!(confirmed.exit, Exit::Done, "{name}: {:?}", confirmed.hints);
        // No program runs on a recorded host: who makes the menu is told.
        let told = confirmed.hints.iter().filter(|hint| hint.contains("update-grub makes the menu")).count();
        let by_a_menu = usize::from(name == "debian" || name == "suse");
        assert_eq!((told, confirmed.hints.len()), (by_a_menu, by_a_menu), "{name}: {:?}", confirmed.hints);
    }
    // A file behind ours that starts from nothing.
    let tree = on_trial(debian);
    tree.put("/etc/default/grub.d/99-local.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    let confirmed = confirm(&tree.session()).expect("confirmed");
    assert_eq!(confirmed.exit, Exit::Findings);
    let is_told =
        |left: &Unpersisted| left.place == "cmdline:skew_tick" && left.reason.contains("99-local.cfg:1");
    assert!(confirmed.unpersisted.iter().any(is_told), "{:?}", confirmed.unpersisted);
}

#[test]
fn pages_that_went_with_another_entry_are_not_missed_by_a_confirm() {
    let tree = Tree::new();
    let pages = |name, need_bytes| {
        profile(name, &[("hugepages.2m", Want::Need { need_bytes, nodes: Nodes::Each(vec![1]) })])
    };
    let session = tree.session();
    apply(&session, &plan_of(&session, &pages("ten", 20 << 20)), &ApplyOptions::default()).expect("applied");
    let applied = try_out(&tree, &pages("three", 6 << 20));
    assert_eq!((applied.exit, tree.get(&pool(1)).as_str()), (Exit::Done, "13\n"), "{:#?}", applied.outcomes);
    undo(&session, Target::Entry(EntryId(1)), false).expect("undone");
    let confirmed = confirm(&session).expect("confirmed");
    assert_eq!((confirmed.exit, confirmed.hints, tree.get(&pool(1)).as_str()), (Exit::Done, vec![], "3\n"));
    assert_eq!(check(&session, None).expect("checked").exit, Exit::Done);
}

#[test]
fn a_confirm_that_was_killed_and_is_typed_again_gives_each_argument_once() {
    for (name, make) in all() {
        let (start, whole) = (make().snapshot(), on_trial(make));
        let counter = Fuse::counting();
        confirm(&fused(whole.options(), &counter)).expect("confirmed");
        for (operation, moment) in counter.kills() {
            let when = format!("{name}, killed {moment:?} operation {operation}");
            let tree = on_trial(make);
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            assert!(until_killed(|| confirm(&session)).is_none(), "{when}");
            drop(session);
            confirm(&tree.session()).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_eq!(differences(&whole.snapshot(), &tree.snapshot()), [""; 0], "{when}");
            let entry = tree.entries().remove(0);
            let files = entry.steps.iter().filter(|step| step.generator.is_some());
            for step in files {
                // The program is not run on a recorded host, and each file says that it would be.
                let told = step.outcome.as_ref().and_then(|outcome| outcome.detail.as_deref());
                assert!(told.is_some_and(|told| told.contains("makes the menu")), "{when}: {told:?}");
            }
            undo(&tree.session(), Target::All, false).expect("undone");
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{when}");
        }
    }
}
