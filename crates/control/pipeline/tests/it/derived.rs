//! Places that the kernel derives from others, where entries lie over each other.

use planish_model::{Class, EntryId, Exit, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Target, apply, plan, undo};

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
