//! Whose boot parameters are, said beside them in every file of a boot loader that is edited.

use std::collections::BTreeMap;

use planish_model::{EntryId, Exit, Plan, Want};
use planish_pipeline::{ApplyOptions, Session, Target, apply, check, confirm, preview, undo};

use crate::boot::{DEFAULTS, ENTRY, ENV, all, debian, more, persist, rocky, wants};
use crate::crash::undo_everything;
use crate::faults::{Fuse, MOMENTS, Moment, fused, until_killed};
use crate::tree::*;

const KERNEL_CMDLINE: &str = "/etc/kernel/cmdline";
const ARCH: &str = "/efi/loader/entries/arch.conf";

/// The small host, started by systemd-boot, with a command line for kernels that are installed later.
fn systemd() -> Tree {
    let tree = Tree::new();
    tree.put("/efi/EFI/systemd/systemd-bootx64.efi", "");
    tree.put(ARCH, "title A\nlinux /vmlinuz\noptions   root=UUID=1 ro\n");
    tree.put(KERNEL_CMDLINE, "root=UUID=1 ro\n");
    tree
}

/// A host, and the files of it that are edited.
type Host = (fn() -> Tree, &'static [&'static str]);

const HOSTS: [Host; 2] =
    [(rocky, &[ENTRY, KERNEL_CMDLINE, ENV, DEFAULTS]), (systemd, &[ARCH, KERNEL_CMDLINE])];

/// The entries that a text names.
fn named(text: &str) -> Vec<u64> {
    planish_boot::tags(text).map(|tag| tag.entry).collect()
}

#[test]
fn each_file_names_the_entries_that_gave_its_arguments_and_no_other() {
    for (make, files) in HOSTS {
        for first in [1, 2] {
            let tree = make();
            let start = tree.snapshot();
            persist(&tree, &wants());
            persist(&tree, &more());
            let read = |tree: &Tree| files.iter().map(|file| named(&tree.get(file))).collect::<Vec<_>>();
            assert_eq!(read(&tree), vec![vec![1, 2]; files.len()], "{files:?}");
            let undone = undo(&tree.session(), Target::Entry(EntryId(first)), false).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{first} first: {:?}", undone.hints);
            assert_eq!(read(&tree), vec![vec![3 - first]; files.len()], "{first} first: {files:?}");
            undo_everything(&tree.session());
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{first} first");
        }
    }
}

/// What somebody does to every file that is edited, on either side of what planish put in.
fn edited(path: &str, text: &str) -> String {
    match path {
        ENV => {
            let text = text.replace("saved_entry=m-6.12\n", "saved_entry=m-6.12\nboot_success=1\n");
            text[..1024].to_owned()
        }
        KERNEL_CMDLINE => {
            let end = text.trim_end().len();
            format!("{} panic=7{}", &text[..end], &text[end..])
        }
        DEFAULTS => format!("GRUB_TIMEOUT=1\n{text}GRUB_DISABLE_OS_PROBER=true\n"),
        _ => format!("{}# a note\n", text.replacen("options", "initrd /i\noptions", 1)),
    }
}

#[test]
fn a_kill_anywhere_leaves_no_word_of_planish_beside_what_others_wrote_meanwhile() {
    for (make, files) in HOSTS {
        // As if planish had never been there.
        let theirs: BTreeMap<&str, String> = {
            let tree = make();
            files.iter().map(|file| (*file, edited(file, &tree.get(file)))).collect()
        };
        let edit = |tree: &Tree| files.iter().for_each(|file| tree.put(file, &edited(file, &tree.get(file))));
        let persist_in = |session: &Session| {
            apply(session, &plan_of(session, &wants()), &PERSIST).expect("applied");
        };
        let killed = |scene: &dyn Fn(&Session), before: &dyn Fn(&Tree), behind: &dyn Fn(&Tree)| {
            for operation in 0.. {
                for moment in MOMENTS {
                    let tree = make();
                    before(&tree);
                    let session = fused(tree.options(), &Fuse::at(operation, moment));
                    if until_killed(|| scene(&session)).is_some() {
                        return operation;
                    }
                    drop(session);
                    behind(&tree);
                    undo_everything(&tree.session());
                    // A block that was torn and that somebody has changed besides is left alone.
                    let is_whole = |file: &str| moment != Moment::Torn || file != ENV;
                    for (file, text) in theirs.iter().filter(|(file, _)| is_whole(file)) {
                        assert_eq!(tree.get(file), *text, "{file}, killed {moment:?} operation {operation}");
                    }
                }
            }
            0
        };
        assert!(killed(&persist_in, &|_| {}, &edit) > 5);
        let applied = |tree: &Tree| {
            persist_in(&tree.session());
            edit(tree);
        };
        assert!(killed(&undo_everything, &applied, &|_| {}) > 5);
    }
}

#[test]
fn an_edit_is_shown_with_a_tag_whose_entry_is_not_known_yet() {
    for (make, files) in HOSTS {
        let tree = make();
        let plan = plan_of(&tree.session(), &wants());
        let shown = preview(&tree.session(), &plan).expect("shown").persist.files;
        for path in files {
            let file = shown.iter().find(|file| file.path == *path).expect("it is shown");
            let is_tagged =
                |line: &String| line.contains("planish entry N: ") || line.contains("planish.entry=N");
            assert!(file.added.iter().any(is_tagged), "{file:?}");
        }
        // A plan that shows it is applied behind another one.
        let persist_too = preview(&tree.session(), &plan).expect("shown").persist;
        let plan = Plan { persist: Some(persist_too), ..plan };
        let session = tree.session();
        let other = profile("other", &[("vm.stat_interval", Want::Int(5))]);
        apply(&session, &plan_of(&session, &other), &ApplyOptions::default()).expect("applied");
        apply(&session, &plan, &PERSIST).expect("as it was shown");
        for path in files {
            assert_eq!(named(&tree.get(path)), [2], "{path}");
        }
        // So is what waits for a confirm.
        let tree = make();
        let session = crate::watch::without_watcher(&tree);
        let options = ApplyOptions { confirm_seconds: Some(3600), ..PERSIST };
        apply(&session, &plan_of(&session, &wants()), &options).expect("applied");
        persist(&tree, &more());
        confirm(&tree.session()).expect("confirmed");
        for path in files {
            assert_eq!(named(&tree.get(path)), [2, 1], "{path}");
        }
    }
}

#[test]
fn a_tag_is_no_setting_of_anything() {
    for (make, _) in HOSTS {
        let tree = make();
        let start = tree.snapshot();
        persist(&tree, &wants());
        tree.reboot(&start);
        // The kernel that a package installed since has the argument, too.
        tree.put(CMDLINE, &format!("{} planish.entry=1\n", tree.get(CMDLINE).trim_end()));
        let observation = serde_json::to_string(&tree.session().observe()).expect("JSON");
        assert!(observation.contains("skew_tick") && !observation.contains("planish.entry"), "{observation}");
        let checked = check(&tree.session(), Some(&wants())).expect("checked");
        let rows = format!("{:?}", checked.drift);
        assert!(rows.contains("skew_tick") && !rows.contains("planish.entry"), "{rows}");
        assert_eq!(checked.exit, Exit::Done);
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        let pending = "reboot pending: this kernel was started with skew_tick=1";
        assert!(undone.hints.iter().any(|hint| hint == pending), "{:?}", undone.hints);
    }
}

#[test]
fn arguments_of_an_entry_that_no_journal_knows_are_told_as_left_over() {
    let strange = |tree: &Tree| check(&tree.session(), None).expect("checked").strange_tags;
    for (make, files) in HOSTS {
        let tree = make();
        persist(&tree, &wants());
        assert_eq!(strange(&tree), BTreeMap::new(), "an open entry");
        let other = make();
        files.iter().for_each(|file| other.put(file, &tree.get(file)));
        let found = strange(&other);
        let paths: Vec<&str> =
            found[&EntryId(1)].iter().filter_map(|line| Some(line.rsplit_once(':')?.0)).collect();
        let mut sorted = files.to_vec();
        sorted.sort_unstable();
        assert!(found.len() == 1 && sorted.iter().all(|file| paths.contains(file)), "{found:?}");
        undo_everything(&tree.session());
        assert_eq!(strange(&tree), BTreeMap::new(), "undone");
    }
    let tree = debian();
    persist(&tree, &wants());
    assert_eq!(strange(&tree), BTreeMap::new());
}

#[test]
fn no_file_has_a_tag_but_while_its_entry_is_in_force() {
    for (name, make) in all() {
        let tree = make();
        persist(&tree, &wants());
        let tagged = tree.snapshot().into_iter().filter(|(_, text)| !named(text).is_empty()).count();
        assert_eq!(tagged == 0, name == "debian", "{name}: its own file is planish's as a whole");
        undo_everything(&tree.session());
        assert!(tree.snapshot().values().all(|text| named(text).is_empty()), "{name}");
    }
}
