//! What loaders and packages do between an apply of boot parameters and its undo: entries are renamed, copied, removed.

use planish_model::{CarriedOver, DriftState, EntryId, Exit};
use planish_pipeline::{
    ApplyOptions, Checked, PipelineError, Session, Target, Undone, apply, check, confirm, undo,
};

use crate::boot::{DEFAULTS, ENTRY, ENV, debian, more, persist, refused, rocky, suse, wants};
use crate::crash::undo_everything;
use crate::faults::{Fuse, MOMENTS, fused, until_killed};
use crate::tree::*;

pub const FOLDER: &str = "/efi/loader/entries";
const TEXT: &str = "title F\nversion 6.12\nlinux /vmlinuz-6.12\noptions root=UUID=1 ro\n";

fn entry(name: &str) -> String {
    format!("{FOLDER}/{name}.conf")
}

/// The small host, started by systemd-boot, with one entry of this name.
pub fn started_by(name: &str) -> Tree {
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

/// A package installs a kernel of a name that is not there yet, with the arguments of the first entry.
pub fn install_another(tree: &Tree) {
    let files = tree.snapshot();
    let mut names = files.keys().filter(|path| path.starts_with(FOLDER) && path.ends_with(".conf"));
    let count = names.clone().count();
    let text = files[names.next().expect("an entry")].replace("6.12", &format!("6.{}", 20 + count));
    tree.put(&entry(&format!("k-6.{}", 20 + count)), &text);
}

/// What the loader calls its first entry after one more boot: a try less, then a good one, then one that is counted
/// anew.
pub fn count(tree: &Tree) {
    let names = ["f-6.12+3", "f-6.12+2-1", "f-6.12"];
    let at = names.iter().position(|name| !tree.get(&entry(name)).is_empty()).expect("an entry");
    rename(tree, &entry(names[at]), &entry(names[(at + 1) % names.len()]));
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

fn checked(tree: &Tree) -> Checked {
    check(&tree.session(), None).expect("checked")
}

/// A host under a loader that reads entries, an entry of it, and one of a kernel that is installed later.
type Copying = (fn() -> Tree, &'static str, &'static str);

fn systemd() -> Tree {
    started_by("f-6.12")
}

const COPYING: [Copying; 2] = [
    (rocky, ENTRY, "/boot/loader/entries/m-6.14.conf"),
    (systemd, "/efi/loader/entries/f-6.12.conf", "/efi/loader/entries/f-6.14.conf"),
];

/// A package installs a kernel, with the arguments of an entry that is there.
fn install(tree: &Tree, from: &str, to: &str) {
    tree.put(to, &tree.get(from).replace("6.12", "6.14"));
}

#[test]
fn an_undo_names_the_copies_that_somebody_made_and_so_does_check() {
    for (make, entry, new) in COPYING {
        let tree = make();
        let start = tree.snapshot();
        persist(&tree, &wants());
        assert_eq!(checked(&tree).carried_over, [], "an open entry gives them");
        tree.reboot(&start);
        install(&tree, entry, new);
        assert_eq!(checked(&tree).carried_over, [], "an open entry gives them");
        let undone = undo_all(&tree);
        assert_eq!(undone.exit, Exit::Findings, "{new}: {:?}", undone.hints);
        let source = format!("{new}:5");
        let told = undone.hints.iter().find(|hint| hint.starts_with(&source)).expect("it is named");
        assert!(told.contains("entry 1 gave it, which is undone"), "{told}");
        let comment = "# planish entry 1: skew_tick=1";
        let cure = format!("take the line `{comment}` out of {new}, and `skew_tick=1` out of {source}");
        assert!(told.ends_with(&cure), "{told}");
        let found = checked(&tree);
        assert_eq!(found.exit, Exit::Findings, "{new}");
        assert_eq!((found.carried_over.len(), found.carried_over[0].source.as_str()), (1, source.as_str()));

        // The cure, as it was told.
        let text = tree.get(new).replace(&format!("{comment}\n"), "");
        tree.put(new, &text.replace(" skew_tick=1", ""));
        assert!(!tree.get(new).contains("planish"), "{new}");
        assert_eq!(checked(&tree).carried_over, [], "{new}");
        assert_eq!(checked(&tree).exit, Exit::Done, "{new}");
    }
}

#[test]
fn a_reboot_is_pending_only_where_it_takes_the_arguments() {
    for (make, entry, new) in COPYING {
        for is_default in [false, true] {
            let tree = make();
            let start = tree.snapshot();
            persist(&tree, &wants());
            tree.reboot(&start);
            if is_default {
                install(&tree, entry, new);
                tree.put(ENV, &tree.get(ENV).replace("saved_entry=m-6.12", "saved_entry=m-6.14"));
            }
            let undone = undo_all(&tree);
            let is_pending = undone.hints.iter().any(|hint| hint.starts_with("reboot pending"));
            assert_eq!(is_pending, !is_default, "{new}: {:?}", undone.hints);
        }
    }
}

#[test]
fn a_command_line_file_that_is_made_from_an_entry_is_named() {
    let tree = systemd();
    persist(&tree, &wants());
    tree.put("/etc/kernel/cmdline", "root=UUID=1 ro skew_tick=1\n");
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Findings);
    let told = |undone: &Undone, cure: &str| {
        let of_file = |hint: &&String| hint.starts_with("/etc/kernel/cmdline:1 gives `skew_tick=1`");
        let hint = undone.hints.iter().find(of_file).expect("it is named").clone();
        assert!(hint.ends_with(cure), "{hint}");
    };
    told(&undone, "take `skew_tick=1` out of /etc/kernel/cmdline:1");
    // From one that had the tag, as kernel-install(8) makes an entry.
    let tree = systemd();
    tree.put("/etc/kernel/cmdline", "root=UUID=1 ro\n");
    persist(&tree, &wants());
    let given = tree.get("/etc/kernel/cmdline");
    undo_all(&tree);
    tree.put("/efi/loader/entries/f-6.14.conf", &TEXT.replace("root=UUID=1 ro\n", &given));
    let cures: Vec<String> = checked(&tree).carried_over.iter().map(CarriedOver::cure).collect();
    let cure = "take `skew_tick=1` and `planish.entry=1` out of /efi/loader/entries/f-6.14.conf:4";
    assert_eq!(cures, [cure]);
}

#[test]
fn what_stood_there_before_or_was_given_anew_is_nobodys_copy() {
    // Another entry than the default had the same argument before.
    let (other, own) = ("/boot/loader/entries/m-6.10.conf", "title O\nlinux /v\noptions ro skew_tick=1\n");
    let tree = rocky();
    tree.put(other, own);
    persist(&tree, &wants());
    let undone = undo_all(&tree);
    assert_eq!((undone.exit, tree.get(other).as_str()), (Exit::Done, own), "{:?}", undone.hints);
    assert_eq!(checked(&tree).carried_over, []);
    // Somebody gives it again, by another tool, and installs a kernel.
    tree.put(ENTRY, &tree.get(ENTRY).replace("quiet", "quiet skew_tick=1"));
    install(&tree, ENTRY, COPYING[0].2);
    assert_eq!(checked(&tree).carried_over, [], "it is theirs by now");
}

#[test]
fn what_a_menu_is_made_from_is_the_hosts_own() {
    // The administrator gives the argument in a line that has no effect; or types it in when ours has gone.
    let own = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet skew_tick=1\"\n";
    for typed_before in [true, false] {
        let tree = debian();
        let put = || tree.put(DEFAULTS, own);
        if typed_before {
            put();
            tree.put(
                "/etc/default/grub.d/50-cloudimg-settings.cfg",
                "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n",
            );
        }
        persist(&tree, &wants());
        let undone = undo_all(&tree);
        assert_eq!(undone.exit, Exit::Done, "{:?}", undone.hints);
        put();
        assert_eq!((checked(&tree).exit, checked(&tree).carried_over), (Exit::Done, Vec::new()));
    }
}

#[test]
fn where_nobody_can_tell_the_next_entry_its_arguments_are_pending_and_not_lost() {
    let tree = rocky();
    tree.put(ENV, &tree.get(ENV).replace("saved_entry=m-6.12", "saved_entry=m-9.99"));
    persist(&tree, &wants());
    let found = checked(&tree);
    let rows: Vec<_> = found.drift.knobs.iter().filter(|row| row.place == "cmdline:skew_tick").collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.state == DriftState::PendingReboot), "{rows:#?}");
    assert!(rows[0].because.as_ref().is_some_and(|why| why.contains("boots next")), "{rows:#?}");
}

#[test]
fn a_copy_under_another_entry_that_is_open_is_told_with_the_one_that_gave_it() {
    let (make, entry, new) = COPYING[0];
    let tree = make();
    persist(&tree, &wants());
    install(&tree, entry, new);
    persist(&tree, &more());
    assert!(tree.get(new).contains(" skew_tick=1 rcupdate.rcu_normal_after_boot=1"), "{}", tree.get(new));
    let undone = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone");
    assert_eq!(undone.exit, Exit::Findings, "{:?}", undone.hints);
    assert!(undone.hints.iter().any(|hint| hint.starts_with(new)), "{:?}", undone.hints);
    let undone = undo_all(&tree);
    assert_eq!(undone.exit, Exit::Done, "its own are out of the copy, too: {:?}", undone.hints);
    assert!(!tree.get(new).contains("rcupdate"), "{}", tree.get(new));
}

#[test]
fn an_entry_that_has_a_copy_gets_no_second_one() {
    for (make, entry, new) in COPYING {
        let tree = make();
        persist(&tree, &wants());
        install(&tree, entry, new);
        undo_all(&tree);
        let copy = tree.get(new);
        // The one that is booted by default has none, so that they are due.
        if new.starts_with(FOLDER) {
            tree.put("/efi/loader/loader.conf", "default f-6.12.conf\n");
        }
        assert_eq!(persist(&tree, &wants()).exit, Exit::Done);
        assert!(tree.get(entry).contains("skew_tick=1"), "{}", tree.get(entry));
        assert_eq!(tree.get(new), copy, "it gives them once");
        assert_eq!(undo_all(&tree).exit, Exit::Findings);
        assert_eq!(tree.get(new), copy);
        // With another value behind it a copy gives nothing.
        tree.put(new, &copy.replace("skew_tick=1", "skew_tick=1 skew_tick=0"));
        persist(&tree, &wants());
        assert!(tree.get(new).contains("skew_tick=0 skew_tick=1"), "{}", tree.get(new));
    }
}

#[test]
fn an_entry_that_is_cut_off_anywhere_refuses_everything() {
    for (make, entry, _) in COPYING {
        let whole = make().get(entry);
        let options = whole.find("options").expect("they are there");
        let end = options + whole[options..].find('\n').expect("a line");
        for at in (0..=end).filter(|at| at % 5 == 0 || *at + 3 > end) {
            let tree = make();
            tree.put(entry, &whole[..at]);
            let error = refused(&tree, &wants());
            assert!(error.to_string().contains(entry), "{at}: {error}");
            assert!(!error.hints().is_empty(), "{at}: {error}");
        }
        // What cannot be read may be the one that is booted.
        let tree = make();
        tree.remove(entry);
        tree.put(&format!("{entry}/x"), "");
        let error = refused(&tree, &wants());
        assert!(matches!(error, PipelineError::BootLoader { .. }), "{error}");
        assert!(error.to_string().contains(entry), "{error}");
    }
}

#[test]
fn where_the_default_is_no_entry_of_a_file_nothing_is_taken_for_given() {
    let tree = rocky();
    tree.put(ENV, &tree.get(ENV).replace("saved_entry=m-6.12", "saved_entry=imaged"));
    // The running kernel has it, and no file says so.
    tree.put(CMDLINE, &tree.line_of_loader("quiet skew_tick=1"));
    let start = tree.snapshot();
    assert_eq!(persist(&tree, &wants()).exit, Exit::Done);
    assert!(tree.get(ENTRY).contains("skew_tick=1"));
    let once = tree.snapshot();
    persist(&tree, &wants());
    assert_eq!(differences(&once, &tree.snapshot()), [""; 0], "applied twice is applied once");
    assert_eq!(undo_all(&tree).exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A new file in the place of one of several names parts it from the others, and no undo brings them together.
#[test]
fn a_file_of_several_names_is_not_edited() {
    for (make, path) in [(rocky as fn() -> Tree, DEFAULTS), (suse, DEFAULTS), (rocky, ENTRY)] {
        let tree = make();
        let other = tree.root().join("other");
        std::fs::hard_link(tree.root().join(path.trim_start_matches('/')), &other).expect("ours");
        let error = refused(&tree, &wants());
        let told = error.to_string() + &error.hints().concat();
        assert!(told.contains(&format!("{path} has 2 names (hard links)")), "{told}");
        assert!(told.contains("-samefile"), "{told}");
        std::fs::remove_file(other).expect("ours");
        assert_eq!(persist(&tree, &wants()).exit, Exit::Done);
    }
    // The block is written where it lies, and a file of ours has one name.
    for (make, path) in [(rocky as fn() -> Tree, ENV), (debian, DEFAULTS)] {
        let tree = make();
        let real = tree.root().join(path.trim_start_matches('/'));
        std::fs::hard_link(&real, tree.root().join("other")).expect("ours");
        assert_eq!(persist(&tree, &wants()).exit, Exit::Done, "{path}");
        undo_everything(&tree.session());
        assert_eq!(tree.get("/other"), tree.get(path), "{path}");
    }
}

/// What a newer entry gave is no difference that an undo of the older one has kept of somebody else.
#[test]
fn what_another_entry_gave_is_no_edit_of_somebodys() {
    for make in [rocky, suse, systemd] {
        for first in [1, 2] {
            let tree = make();
            persist(&tree, &wants());
            persist(&tree, &more());
            let undone = undo(&tree.session(), Target::Entry(EntryId(first)), false).expect("undone");
            assert_eq!(undone.exit, Exit::Done);
            assert!(
                !undone.hints.iter().any(|hint| hint.contains("differs otherwise")),
                "{:?}",
                undone.hints
            );
        }
        let tree = make();
        persist(&tree, &wants());
        persist(&tree, &more());
        let path = if tree.get(DEFAULTS).is_empty() { entry("f-6.12") } else { DEFAULTS.to_owned() };
        tree.put(&path, &format!("# theirs\n{}", tree.get(&path)));
        let undone = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone");
        assert!(undone.hints.iter().any(|hint| hint.contains("differs otherwise")), "{:?}", undone.hints);
    }
}
