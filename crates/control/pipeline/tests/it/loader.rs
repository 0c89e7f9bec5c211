//! What loaders and packages do between an apply of boot parameters and its undo: entries are renamed, copied, removed.

use planish_model::{EntryId, Exit};
use planish_pipeline::{ApplyOptions, Session, Target, Undone, apply, confirm, undo};

use crate::boot::{PERSIST, more, persist, wants};
use crate::crash::undo_everything;
use crate::faults::{Fuse, MOMENTS, fused, until_killed};
use crate::tree::*;

const FOLDER: &str = "/efi/loader/entries";
const TEXT: &str = "title F\nversion 6.12\nlinux /vmlinuz-6.12\noptions root=UUID=1 ro\n";

fn entry(name: &str) -> String {
    format!("{FOLDER}/{name}.conf")
}

/// The small host, started by systemd-boot, with one entry of this name.
fn started_by(name: &str) -> Tree {
    let tree = Tree::new();
    tree.put("/efi/EFI/systemd/systemd-bootx64.efi", "");
    tree.put(&entry(name), TEXT);
    tree
}

/// The loader, or a program that blesses a boot, gives an entry another name.
fn rename(tree: &Tree, from: &str, to: &str) {
    let text = tree.get(from);
    tree.remove(from);
    tree.put(to, &text);
}

fn undo_all(tree: &Tree) -> Undone {
    undo(&tree.session(), Target::All, false).expect("undone")
}

/// Names of an entry before a boot and behind it.
const COUNTED: [(&str, &str); 4] =
    [("f-6.12+3", "f-6.12+2-1"), ("f-6.12+3", "f-6.12"), ("f-6.12+2-1", "f-6.12"), ("f-6.12", "f-6.12+3")];

#[test]
fn an_entry_that_its_loader_counts_in_is_found_by_its_own_name() {
    for (before, after) in COUNTED {
        let tree = started_by(before);
        let start = tree.snapshot();
        persist(&tree, &wants());
        assert!(tree.get(&entry(before)).ends_with("ro skew_tick=1\n"));
        rename(&tree, &entry(before), &entry(after));
        tree.reboot(&start);
        assert!(tree.get(CMDLINE).contains("skew_tick=1"), "the boot that was counted got them");
        let undone = undo_all(&tree);
        assert_eq!(undone.exit, Exit::Done, "{before} to {after}: {:?}", undone.hints);
        assert_eq!(tree.get(&entry(after)), TEXT, "{before} to {after}");
        assert!(tree.get(&entry(before)).is_empty(), "{before} is not made again");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

#[test]
fn entries_of_planish_go_in_any_order_also_when_the_name_changed_between_them() {
    for first in [1, 2] {
        let (before, after) = COUNTED[0];
        let tree = started_by(before);
        persist(&tree, &wants());
        rename(&tree, &entry(before), &entry(after));
        persist(&tree, &more());
        rename(&tree, &entry(after), &entry("f-6.12"));
        for id in [first, 3 - first] {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{first} first: {:?}", undone.hints);
            let is_there = tree.get(&entry("f-6.12")).contains("skew_tick=1");
            assert_eq!(is_there, id == first && first == 2, "{first} first, after {id}");
        }
        assert_eq!(tree.get(&entry("f-6.12")), TEXT, "{first} first");
    }
}

#[test]
fn a_file_of_another_entry_is_never_taken_for_it() {
    let (name, tree) = ("f-6.12+3", started_by("f-6.12+3"));
    persist(&tree, &wants());
    tree.remove(&entry(name));
    // Names that begin like it, and its own name with another kernel in it.
    let others = ["f-6.12+3-rc1", "f-6.12+x", "f-6.12.conf+3", "f-6.1+3", "f-6.12-rescue", "g-6.12"];
    others.iter().for_each(|other| tree.put(&entry(other), TEXT));
    tree.put(&entry("f-6.12"), &TEXT.replace("vmlinuz-6.12", "vmlinuz-6.13"));
    let before = tree.snapshot();
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Done, "the kernel is gone with its entry: {:?}", undone.hints);
    let left = differences(&before, &tree.snapshot());
    assert_eq!(left, [SYSCTL_FILE, SWAPPINESS]);
}

#[test]
fn of_two_files_of_one_entry_it_is_the_one_that_has_them() {
    for which in ["f-6.12", "f-6.12+1-2"] {
        let tree = started_by("f-6.12+3");
        persist(&tree, &wants());
        ["f-6.12", "f-6.12+1-2"].iter().for_each(|other| tree.put(&entry(other), TEXT));
        rename(&tree, &entry("f-6.12+3"), &entry(which));
        assert_eq!(undo_all(&tree).exit, Exit::Done);
        assert_eq!(tree.get(&entry("f-6.12")), TEXT);
        assert_eq!(tree.get(&entry("f-6.12+1-2")), TEXT);
    }
}

fn on_trial(name: &str) -> Tree {
    let tree = started_by(name);
    let session = crate::watch::without_watcher(&tree);
    let options = ApplyOptions { confirm_seconds: Some(3600), ..PERSIST };
    apply(&session, &plan_of(&session, &wants()), &options).expect("applied");
    tree
}

#[test]
fn what_waits_for_a_confirm_is_written_under_the_new_name() {
    let tree = on_trial("f-6.12+3");
    rename(&tree, &entry("f-6.12+3"), &entry("f-6.12"));
    assert_eq!(confirm(&tree.session()).expect("confirmed").exit, Exit::Done);
    assert!(tree.get(&entry("f-6.12")).ends_with("ro skew_tick=1\n"), "{}", tree.get(&entry("f-6.12")));
    rename(&tree, &entry("f-6.12"), &entry("f-6.12+3"));
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    assert_eq!(tree.get(&entry("f-6.12+3")), TEXT);
    // Somebody edited it besides: what would be written was not shown.
    let tree = on_trial("f-6.12+3");
    rename(&tree, &entry("f-6.12+3"), &entry("f-6.12"));
    tree.put(&entry("f-6.12"), &TEXT.replace(" ro", " rw"));
    let error = confirm(&tree.session()).expect_err("not as shown");
    assert!(error.to_string().contains(&entry("f-6.12")), "{error}");
}

#[test]
fn a_kill_before_or_behind_the_new_name_leaves_what_the_next_undo_takes_back() {
    let (old, new) = (entry("f-6.12+3"), entry("f-6.12"));
    let persist_in = |session: &Session| {
        apply(session, &plan_of(session, &wants()), &PERSIST).expect("applied");
    };
    let killed = |scene: &dyn Fn(&Session), prepare: &dyn Fn(&Tree), then: &dyn Fn(&Tree)| {
        for operation in 0.. {
            for moment in MOMENTS {
                let tree = started_by("f-6.12+3");
                let start = tree.snapshot();
                prepare(&tree);
                let session = fused(tree.options(), &Fuse::at(operation, moment));
                if until_killed(|| scene(&session)).is_some() {
                    return operation;
                }
                drop(session);
                then(&tree);
                let undone = undo_all(&tree);
                assert_eq!(undone.exit, Exit::Done, "{moment:?} {operation}: {:?}", undone.hints);
                let left = differences(&start, &tree.snapshot());
                assert_eq!(left, [old.clone(), new.clone()], "{moment:?} {operation}");
                assert_eq!(tree.get(&new), TEXT, "{moment:?} {operation}");
            }
        }
        0
    };
    let to_new = |tree: &Tree| rename(tree, &old, &new);
    assert!(killed(&persist_in, &|_| {}, &to_new) > 5);
    let applied = |tree: &Tree| {
        persist_in(&tree.session());
        to_new(tree);
    };
    assert!(killed(&undo_everything, &applied, &|_| {}) > 5);
}
