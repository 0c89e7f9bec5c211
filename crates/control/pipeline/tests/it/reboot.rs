//! The usual life: applied with `--persist`, weeks and reboots, undone. What a file of ours brings at a boot is ours as
//! if it had been written in it.

use planish_model::{DriftState, EntryId, EntryState, Exit, Nodes, Want};
use planish_pipeline::{Applied, ApplyOptions, Source, Target, Undone, apply, check, undo};

use crate::crash::undo_everything;
use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

fn swappiness(name: &str, value: i64) -> Source {
    profile(name, &[("vm.swappiness", Want::Int(value))])
}

/// So many pages of 2 MB on the first node.
fn pages(name: &str, count: u64) -> Source {
    let need = Want::Need { need_bytes: count << 21, nodes: Nodes::Each(vec![0]) };
    profile(name, &[("hugepages.2m", need)])
}

fn apply_with(tree: &Tree, source: &Source, options: &ApplyOptions) -> Applied {
    let session = tree.session();
    apply(&session, &plan_of(&session, source), options).expect("applied")
}

fn undo_one(tree: &Tree, target: Target) -> Undone {
    undo(&tree.session(), target, false).expect("undone")
}

fn line(tree: &Tree) -> String {
    let text = tree.get(TMPFILES_FILE);
    text.lines()
        .find_map(|line| line.strip_prefix(&format!("w! {} - - - - ", pool(0))))
        .unwrap_or("")
        .to_owned()
}

fn state_of(tree: &Tree, source: Option<&Source>, place: &str) -> (DriftState, String) {
    let drift = check(&tree.session(), source).expect("checked").drift;
    let row = drift.knobs.into_iter().find(|row| row.place == place).expect("a row");
    (row.state, row.because.unwrap_or_default())
}

#[test]
fn values_that_a_file_brought_at_boot_go_back_with_it() {
    let tree = Tree::new();
    let start = tree.snapshot();
    assert_eq!(apply_with(&tree, &everything(), &PERSIST).exit, Exit::Done);
    for _ in 0..2 {
        tree.reboot(&start);
        assert_eq!((tree.get(SWAPPINESS).as_str(), tree.get(DIRTY_RATIO).as_str()), ("10\n", "0\n"));
        assert_eq!(tree.get(THP), "always [madvise] never\n");
    }
    let undone = undo_one(&tree, Target::Newest);
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{:#?}", undone.entries);
    assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    assert_eq!(undone.hints.len(), 1, "{:?}", undone.hints);
    assert!(
        undone.hints[0].contains("vm.swappiness")
            && undone.hints[0].ends_with(": back to what was there before entry 1, in an earlier boot"),
        "{:?}",
        undone.hints
    );
}

/// What the kernel derives it derives at each boot: a number of before an earlier boot is written by no undo.
#[test]
fn what_the_kernel_derives_is_of_its_boot() {
    let tree = Tree::new();
    tree.edit(MIN_FREE, "70000");
    let start = tree.snapshot();
    let never = profile("never", &[("thp.enabled", Want::Text("never".to_owned()))]);
    assert_eq!(apply_with(&tree, &never, &PERSIST).exit, Exit::Done);
    let original = |tree: &Tree| {
        let steps = tree.entries().into_iter().flat_map(|entry| entry.steps);
        steps.flat_map(|step| step.originals).find(|original| original.place == MIN_FREE).map(|o| o.value)
    };
    assert_eq!(original(&tree).as_deref().map(str::trim), Some("70000"));
    let later =
        [start, [(MIN_FREE.to_owned(), "112640\n".to_owned())].into()].into_iter().flatten().collect();
    tree.reboot(&later);
    assert_eq!((tree.get(THP).trim(), tree.get(MIN_FREE).trim()), ("always madvise [never]", "112640"));
    let undone = undo_one(&tree, Target::Newest);
    assert_eq!((undone.exit, tree.get(THP).trim()), (Exit::Done, "[always] madvise never"));
    assert_eq!(tree.get(MIN_FREE).trim(), "112640", "{:?}", undone.hints);
    let told = "thp.enabled: back to what was there before entry 1, in an earlier boot";
    assert!(undone.hints.iter().any(|hint| hint == told), "{:?}", undone.hints);
}

#[test]
fn entries_over_each_other_and_over_reboots_end_at_the_first_original() {
    // Undone in either order, and with a reboot between the two or not.
    for (order, reboots) in [([2, 1], 1), ([1, 2], 1), ([2, 1], 2), ([1, 2], 2)] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_with(&tree, &swappiness("a", 10), &PERSIST);
        if reboots == 2 {
            tree.reboot(&start);
        }
        apply_with(&tree, &swappiness("b", 5), &PERSIST);
        tree.reboot(&start);
        assert_eq!(tree.get(SWAPPINESS), "5\n");
        for id in order {
            let undone = undo_one(&tree, Target::Entry(EntryId(id)));
            assert_eq!(undone.exit, Exit::Done, "{order:?} {reboots}: {:#?}", undone.entries);
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?} {reboots}");
    }
}

#[test]
fn under_a_persisted_value_lies_one_that_went_with_the_reboot() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_with(&tree, &swappiness("a", 10), &ApplyOptions::default());
    apply_with(&tree, &swappiness("b", 5), &PERSIST);
    tree.reboot(&start);
    let undone = undo_one(&tree, Target::All);
    assert_eq!((undone.exit, tree.get(SWAPPINESS).as_str()), (Exit::Done, "60\n"), "{:#?}", undone.entries);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_file_of_another_entry_that_is_still_applied_brings_the_value_too() {
    for order in [[2, 1], [1, 2]] {
        let tree = Tree::new();
        let start = tree.snapshot();
        apply_with(&tree, &everything(), &ApplyOptions::default());
        let kept = apply_with(&tree, &everything(), &PERSIST);
        assert!(kept.outcomes.iter().all(|outcome| outcome.knob.is_persistence()), "only its files");
        tree.reboot(&start);
        for id in order {
            undo_one(&tree, Target::Entry(EntryId(id)));
        }
        let undone = undo_one(&tree, Target::All);
        assert_eq!(undone.entries.len(), 0);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

#[test]
fn what_someone_set_after_the_boot_is_theirs() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_with(&tree, &swappiness("a", 10), &PERSIST);
    tree.reboot(&start);
    tree.edit(SWAPPINESS, "33");
    assert_eq!(state_of(&tree, None, SWAPPINESS).0, DriftState::Drift);
    let undone = undo_one(&tree, Target::All);
    assert_eq!((undone.exit, tree.get(SWAPPINESS).as_str()), (Exit::Findings, "33\n"));
    let again = undo_one(&tree, Target::Newest);
    assert!(again.hints.iter().any(|hint| hint.contains("--force")), "{:?}", again.hints);
    undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("forced");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_value_that_is_not_put_back_is_told_with_its_original() {
    let tree = Tree::answering(&format!(
        "[[answer]]\nplace = \"{STAT_INTERVAL}\"\nerrno = \"EIO\"\n\
         [answer.errno_while]\nplace = \"{ZONE_RECLAIM}\"\nvalue = \"0\"\n"
    ));
    let start = tree.snapshot();
    apply_with(&tree, &profile("a", &[("vm.stat_interval", Want::Int(10))]), &PERSIST);
    tree.reboot(&start);
    tree.put(ZONE_RECLAIM, "0\n");
    let undone = undo_one(&tree, Target::All);
    assert_eq!(undone.exit, Exit::FailedNotRestored, "{:#?}", undone.entries);
    let told = "in force until the next reboot, its original is `1`";
    assert!(
        undone.hints.iter().any(|hint| hint.contains(STAT_INTERVAL) && hint.contains(told)),
        "{:?}",
        undone.hints
    );
    tree.reboot(&start);
    assert_eq!(undo_one(&tree, Target::All).exit, Exit::Done);
    assert_eq!(tree.entries()[0].state, EntryState::Closed(planish_model::Closure::GoneWithReboot));
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_line_without_an_original_is_told() {
    let tree = Tree::new();
    let start = tree.snapshot();
    tree.edit(SWAPPINESS, "10");
    apply_with(&tree, &swappiness("a", 10), &PERSIST);
    tree.reboot(&start);
    let undone = undo_one(&tree, Target::All);
    let told = format!(
        "{SWAPPINESS} is `10` until the next reboot, from the file: it was so before that entry, too"
    );
    assert_eq!((undone.exit, &undone.hints), (Exit::Done, &vec![told]));
}

#[test]
fn a_persisted_pool_is_held_after_a_reboot_and_does_not_grow() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let source = pages("a", 4);
    apply_with(&tree, &source, &PERSIST);
    // Three are given by the kernel's command line: the line sets the size of the whole pool.
    assert_eq!(line(&tree), "7");
    for boot in 1..4 {
        tree.reboot(&start);
        assert_eq!(tree.get(&pool(0)), "7\n", "boot {boot}");
        let (state, because) = state_of(&tree, Some(&source), &pool(0));
        assert_eq!(state, DriftState::Ok, "boot {boot}: {because}");
        assert_eq!(state_of(&tree, None, &pool(0)).0, DriftState::Ok, "boot {boot}");
        assert_eq!(plan_of(&tree.session(), &source).steps, [], "boot {boot}");
        let again = apply_with(&tree, &source, &PERSIST);
        assert_eq!((again.entry, again.exit), (None, Exit::Done), "boot {boot}");
    }
    tree.edit(&pool(0), "9");
    let undone = undo_one(&tree, Target::All);
    assert_eq!((undone.exit, tree.get(&pool(0)).as_str()), (Exit::Done, "5\n"), "{:#?}", undone.entries);
    assert_eq!(tree.get(TMPFILES_FILE), "");
}

#[test]
fn what_other_files_give_a_pool_at_boot_stays_theirs() {
    let tree = Tree::new();
    tree.put("/etc/sysctl.d/20-theirs.conf", "vm.nr_hugepages = 7\n");
    let start = tree.snapshot();
    apply_with(&tree, &pages("a", 4), &PERSIST);
    // Seven over two nodes are four on the first.
    assert_eq!(line(&tree), "8");
    tree.reboot(&start);
    // And three on the second, which the line of others alone gives.
    tree.put(&pool(1), "3\n");
    assert_eq!(tree.get(&pool(0)), "8\n");
    assert_eq!(state_of(&tree, Some(&pages("a", 4)), &pool(0)).0, DriftState::Ok);
    assert_eq!(undo_one(&tree, Target::All).exit, Exit::Done);
    assert_eq!(tree.get(&pool(0)), "4\n");
}

#[test]
fn a_boot_that_grants_less_takes_no_page_of_others() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_with(&tree, &pages("a", 4), &PERSIST);
    apply_with(&tree, &pages("b", 5), &PERSIST);
    assert_eq!(line(&tree), "12");
    tree.reboot(&start);
    tree.put(&pool(0), "9\n");
    tree.put(&pool(0).replace("nr_", "free_"), "9\n");
    let plan = plan_of(&tree.session(), &pages("b", 5));
    assert_eq!(plan.steps[0].raise_pages, Some(3), "two of its five are there");
    apply_with(&tree, &pages("b", 5), &PERSIST);
    assert_eq!((tree.get(&pool(0)).as_str(), line(&tree).as_str()), ("12\n", "12"));
    // The third one of b counts on what the second has.
    for (id, exit) in [(2, Exit::Findings), (3, Exit::Done), (1, Exit::Done)] {
        assert_eq!(undo_one(&tree, Target::Entry(EntryId(id))).exit, exit, "{id}");
    }
    assert_eq!((tree.get(&pool(0)).as_str(), tree.get(TMPFILES_FILE).as_str()), ("3\n", ""));
}

/// What a line of ours is to bring is wanted, whoever took it or did not give it, and whatever was raised beside it.
#[test]
fn a_pool_that_lacks_pages_of_its_line_is_drift_until_it_has_them_again() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_with(&tree, &pages("a", 8), &PERSIST);
    assert_eq!(line(&tree), "11");
    tree.reboot(&start);
    let of_boot = "the boot had no more for the line of ours, or somebody took the others since";
    // What the second apply raised once more has its own number of what others had.
    for (there, why) in [("7", of_boot), ("4", "someone lowered the pool to 4 pages since")] {
        tree.edit(&pool(0), there);
        let (state, because) = state_of(&tree, None, &pool(0));
        assert_eq!(state, DriftState::Drift, "{because}");
        assert_eq!(because, format!("{there} of 11 pages are there: {why}"));
        assert_eq!(apply_with(&tree, &pages("a", 8), &PERSIST).exit, Exit::Done);
        assert_eq!((tree.get(&pool(0)).as_str(), line(&tree).as_str()), ("11\n", "11"));
        assert_eq!(state_of(&tree, None, &pool(0)).0, DriftState::Ok, "{there}");
    }
    assert_eq!(undo_one(&tree, Target::All).exit, Exit::Done);
    assert_eq!((tree.get(&pool(0)).as_str(), line(&tree).as_str()), ("3\n", ""));
}

#[test]
fn a_pool_that_lacks_pages_is_drift_also_where_the_line_came_later() {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_with(&tree, &pages("a", 8), &ApplyOptions::default());
    apply_with(&tree, &pages("a", 8), &PERSIST);
    assert_eq!((tree.entries().len(), line(&tree).as_str()), (2, "11"));
    tree.reboot(&start);
    assert_eq!(state_of(&tree, None, &pool(0)).0, DriftState::Ok);
    tree.edit(&pool(0), "7");
    let (state, because) = state_of(&tree, None, &pool(0));
    assert_eq!(state, DriftState::Drift, "{because}");
}

#[test]
fn an_undo_of_either_of_two_pools_lowers_the_file_by_its_own() {
    for (first, rest) in [(1, "8"), (2, "7")] {
        for reboot in [false, true] {
            let tree = Tree::new();
            let start = tree.snapshot();
            tree.edit(&pool(0), "5000");
            apply_with(&tree, &pages("a", 4), &PERSIST);
            apply_with(&tree, &pages("b", 5), &PERSIST);
            assert_eq!(line(&tree), "12", "nothing of what others have by hand");
            if reboot {
                tree.reboot(&start);
                assert_eq!(tree.get(&pool(0)), "12\n");
            }
            for source in [None, Some(pages("a", 4)), Some(pages("b", 5))] {
                let (state, because) = state_of(&tree, source.as_ref(), &pool(0));
                assert_eq!(state, DriftState::Ok, "{source:?} {reboot}: {because}");
            }
            assert_eq!(undo_one(&tree, Target::Entry(EntryId(first))).exit, Exit::Done);
            assert_eq!(line(&tree), rest, "{first} first");
            assert_eq!(state_of(&tree, None, &pool(0)).0, DriftState::Ok);
            assert_eq!(undo_one(&tree, Target::All).exit, Exit::Done);
            let others = if reboot { "3\n" } else { "8\n" };
            assert_eq!((tree.get(&pool(0)).as_str(), line(&tree).as_str()), (others, ""));
        }
    }
}

#[test]
fn a_line_that_is_larger_than_what_is_wanted_is_drift() {
    let tree = Tree::new();
    apply_with(&tree, &pages("a", 4), &PERSIST);
    let journal = "/var/lib/planish/journal.jsonl";
    assert!(tree.get(journal).contains("\"pages\":4"));
    // As an older planish left it, whose other entry is undone by now.
    tree.put(TMPFILES_FILE, &tree.get(TMPFILES_FILE).replace(" 7\n", " 37\n"));
    let (state, because) = state_of(&tree, None, &pool(0));
    assert_eq!(state, DriftState::Drift);
    assert!(because.contains("will set 37, and 7 are wanted"), "{because}");
}

#[test]
fn an_undo_after_a_reboot_that_is_killed_anywhere_comes_back() {
    let counter = Fuse::counting();
    undo_everything(&fused(rebooted().0.options(), &counter));
    assert!(counter.operations() >= 20, "{}", counter.operations());
    for (operation, moment) in counter.kills() {
        let when = format!("killed {moment:?} operation {operation}");
        let (tree, start) = rebooted();
        let session = fused(tree.options(), &Fuse::at(operation, moment));
        assert!(until_killed(|| undo_everything(&session)).is_none(), "{when}");
        drop(session);
        let undone = undo_one(&tree, Target::All);
        assert_eq!(undone.exit, Exit::Done, "{when}: {:#?}", undone.entries);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{when}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{when}");
    }
}

type Snapshot = std::collections::BTreeMap<String, String>;

/// A host on which everything was persisted, with a second profile over it, and that was started anew since.
fn rebooted() -> (Tree, Snapshot) {
    let tree = Tree::new();
    let start = tree.snapshot();
    apply_with(&tree, &everything(), &PERSIST);
    apply_with(&tree, &swappiness("over", 1), &PERSIST);
    tree.reboot(&start);
    (tree, start)
}

#[test]
fn a_kill_in_an_undo_and_another_reboot_leave_nothing() {
    let counter = Fuse::counting();
    undo_everything(&fused(rebooted().0.options(), &counter));
    for operation in 0..counter.operations() {
        let (tree, _) = rebooted();
        let start = Tree::new().snapshot();
        let session = fused(tree.options(), &Fuse::at(operation, Moment::Before));
        until_killed(|| undo_everything(&session));
        drop(session);
        tree.reboot(&start);
        let undone = undo_one(&tree, Target::All);
        assert_eq!(undone.exit, Exit::Done, "operation {operation}: {:#?}", undone.entries);
        tree.reboot(&start);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "operation {operation}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()), "operation {operation}");
    }
}
