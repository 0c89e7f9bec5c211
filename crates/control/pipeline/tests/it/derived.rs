//! Places that the kernel derives from others, where entries lie over each other.

use planish_model::{Class, EntryId, Exit, OutcomeKind, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Target, apply, check, plan, undo};

use crate::life::{apply_here, undo_all};
use crate::tree::*;

/// Applies a value of `vm.min_free_kbytes`, which must be allowed.
fn set_min_free(tree: &Tree, kbytes: i64) {
    let session = tree.session();
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..Default::default() };
    let profile = profile("min-free", &[("vm.min_free_kbytes", Want::Int(kbytes))]);
    let plan = plan(&session, &profile, &allowed).expect("a plan");
    apply(&session, &plan, &ApplyOptions::default()).expect("the host takes it");
    assert_eq!(tree.get(MIN_FREE), format!("{kbytes}\n"));
}

/// Applies a value of `thp.enabled`, from which the kernel derives `vm.min_free_kbytes`: what it computes.
fn set_thp(tree: &Tree) -> i64 {
    let before = tree.get(MIN_FREE);
    apply_here(tree, &profile("thp", &[("thp.enabled", Want::Text("never".to_owned()))]));
    let derived = tree.get(MIN_FREE);
    assert_ne!(derived, before, "the kernel computes it anew");
    derived.trim().parse().expect("a number")
}

#[test]
fn a_derived_place_that_a_newer_entry_set_is_handed_over() {
    for force in [false, true] {
        let tree = Tree::new();
        let start = tree.snapshot();
        set_thp(&tree);
        set_min_free(&tree, 200_000);
        let undone = undo(&tree.session(), Target::Entry(EntryId(1)), force).expect("undone");
        assert_eq!((undone.exit, undone.hints.as_slice()), (Exit::Done, [].as_slice()));
        assert_eq!(tree.get(MIN_FREE), "200000\n", "the newer entry's");
        assert_eq!(undo_all(&tree).exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// What the kernel derived for the older one is just what the newer one wants: it holds that beside it, in files, too.
#[test]
fn a_derived_place_that_a_newer_entry_wants_as_it_is_stays_with_that_one() {
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..Default::default() };
    for options in [ApplyOptions::default(), PERSIST] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let derived = set_thp(&tree);
        let source = profile("min-free", &[("vm.min_free_kbytes", Want::Int(derived))]);
        let session = tree.session();
        let planned = plan(&session, &source, &allowed).expect("a plan");
        assert_eq!(planned.steps[0].beside, Some(EntryId(1)));
        let done = apply(&session, &planned, &options).expect("applied");
        assert_eq!((done.entry, done.exit), (Some(EntryId(2)), Exit::Done), "{:?}", done.hints);
        let undone = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone");
        assert_eq!((undone.exit, undone.hints.as_slice()), (Exit::Done, [].as_slice()));
        assert_eq!(tree.get(MIN_FREE), format!("{derived}\n"), "the newer entry's");
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
        assert_eq!(undo_all(&tree).exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

/// Who held what the kernel derived it from had written nothing, and hands it on all the same.
#[test]
fn a_derived_place_of_an_entry_that_holds_its_cause_is_held_beside_that_one() {
    let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..Default::default() };
    let tree = Tree::new();
    let start = tree.snapshot();
    let derived = set_thp(&tree);
    apply_here(&tree, &profile("second", &[("thp.enabled", Want::Text("never".to_owned()))]));
    let undone = |entry| undo(&tree.session(), Target::Entry(EntryId(entry)), false).expect("undone").exit;
    assert_eq!(undone(1), Exit::Done);
    let session = tree.session();
    let source = profile("min-free", &[("vm.min_free_kbytes", Want::Int(derived))]);
    let planned = plan(&session, &source, &allowed).expect("a plan");
    assert_eq!(planned.steps[0].beside, Some(EntryId(2)));
    apply(&session, &planned, &ApplyOptions::default()).expect("applied");
    assert_eq!((undone(2), tree.get(MIN_FREE)), (Exit::Done, format!("{derived}\n")));
    assert_eq!(undone(3), Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// Of two steps of an entry that derive the place, the first one did it: the last one, which is looked at first, made
/// nothing of it.
#[test]
fn a_place_that_an_earlier_step_of_an_entry_derived_goes_back() {
    let word = |text: &str| Want::Text(text.to_owned());
    for newer in [None, Some("madvise")] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_here(
            &tree,
            &profile("both", &[("thp.enabled", word("never")), ("thp.shmem_enabled", word("advise"))]),
        );
        match newer {
            Some(text) => {
                apply_here(&tree, &profile("newer", &[("thp.enabled", word(text))]));
            }
            None => set_min_free(&tree, 130_000),
        }
        for id in [1, 2] {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            assert_eq!((undone.exit, undone.hints.as_slice()), (Exit::Done, [].as_slice()), "{newer:?} {id}");
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{newer:?}");
    }
}

/// Nobody interferes: the kernel derived the number between the two that were set.
#[test]
fn an_entry_is_handed_over_also_where_the_kernel_derived_the_place_in_between() {
    for order in [[1, 2, 3], [2, 1, 3], [2, 3, 1], [1, 3, 2], [3, 2, 1], [3, 1, 2]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        set_min_free(&tree, 20_000);
        set_thp(&tree);
        set_min_free(&tree, 20_000);
        for (at, id) in order.into_iter().enumerate() {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            assert_eq!((undone.exit, undone.hints.as_slice()), (Exit::Done, [].as_slice()), "{order:?} {id}");
            let handed_over = undone.entries[0].1[0].outcome == OutcomeKind::HandedOver;
            assert_eq!(handed_over, id == 1 && at < 2, "{order:?} {id}: what is above it has its original");
            if !order[..=at].contains(&3) {
                assert_eq!(tree.get(MIN_FREE), "20000\n", "{order:?} {id}: the newest one's");
            }
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

/// What the kernel derived over a value of ours is nobody else's, and no force is needed.
#[test]
fn a_place_that_the_kernel_derived_over_an_entry_is_handed_over() {
    for (force, theirs) in [(false, None), (true, None), (false, Some("777"))] {
        let tree = Tree::new();
        let start = tree.snapshot();
        set_min_free(&tree, 20_000);
        let derived = set_thp(&tree).to_string();
        theirs.iter().for_each(|value| tree.edit(MIN_FREE, value));
        let undone = undo(&tree.session(), Target::Entry(EntryId(1)), force).expect("undone");
        let (exit, kind) = match theirs {
            None => (Exit::Done, OutcomeKind::HandedOver),
            Some(_) => (Exit::Findings, OutcomeKind::Theirs),
        };
        assert_eq!((undone.exit, undone.entries[0].1[0].outcome), (exit, kind), "{:?}", undone.hints);
        assert_eq!(tree.get(MIN_FREE).trim(), theirs.unwrap_or(&derived));
        undo_all(&tree);
        let left = if theirs.is_some() { vec![MIN_FREE] } else { Vec::new() };
        assert_eq!(differences(&start, &tree.snapshot()), left);
    }
}

/// The newer entry wants by chance what the kernel derives: what somebody had set between the two is below it.
#[test]
fn a_derived_place_that_someone_set_under_a_newer_entry_is_left_to_that_one() {
    for force in [false, true] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let derived = set_thp(&tree);
        tree.edit(MIN_FREE, "777");
        set_min_free(&tree, derived);
        let undone = undo(&tree.session(), Target::Entry(EntryId(1)), force).expect("undone");
        assert_eq!((undone.exit, undone.hints.as_slice()), (Exit::Done, [].as_slice()));
        assert_eq!(tree.get(MIN_FREE), format!("{derived}\n"), "the newer entry's");
        assert_eq!(undo_all(&tree).exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [MIN_FREE]);
        assert_eq!(tree.get(MIN_FREE), "777\n");
    }
}
