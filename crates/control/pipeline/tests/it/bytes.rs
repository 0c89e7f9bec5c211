//! Files of ours into which somebody wrote in another encoding than UTF-8: an undo takes its own lines out, and leaves
//! those bytes as they are.

use planish_model::{EntryId, Exit, OutcomeKind, Want};
use planish_pipeline::{PipelineError, Target, apply, undo};

use crate::boot::{DEFAULTS, ENTRY, KERNEL_CMDLINE, Named, OWN, debian, persist, rocky, suse, wants};
use crate::tree::*;

/// A comment in Latin-1, and a line whose value is so.
const THEIRS: &[u8] = b"# Gr\xfc\xdfe\nkernel.theirs = \xe9\n";

/// Behind, or before, what is in a file.
fn add(tree: &Tree, path: &str, bytes: &[u8], is_before: bool) {
    let now = tree.bytes(path);
    tree.put(path, &if is_before { [bytes, &now].concat() } else { [&now, bytes].concat() });
}

fn undone(tree: &Tree, target: Target, force: bool) -> Exit {
    undo(&tree.session(), target, force).expect("undone").exit
}

#[test]
fn an_undo_leaves_bytes_that_are_no_utf_8_where_they_are() {
    for target in [Target::Newest, Target::Entry(EntryId(1)), Target::All] {
        for (force, is_before) in [(false, false), (false, true), (true, false), (true, true)] {
            let tree = Tree::new();
            let start = tree.snapshot();
            apply(&tree.session(), &plan_of(&tree.session(), &everything()), &PERSIST).expect("applied");
            add(&tree, SYSCTL_FILE, THEIRS, is_before);
            add(&tree, TMPFILES_FILE, THEIRS, is_before);
            assert_eq!(undone(&tree, target, force), Exit::Done, "{target:?}, {force}");
            assert_eq!((&*tree.bytes(SYSCTL_FILE), &*tree.bytes(TMPFILES_FILE)), (THEIRS, THEIRS));
            assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{target:?}, {force}");
            [SYSCTL_FILE, TMPFILES_FILE].iter().for_each(|path| tree.remove(path));
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        }
    }
}

#[test]
fn lines_of_an_older_entry_stay_beside_bytes_that_are_no_utf_8() {
    let tree = Tree::new();
    let want = |value| profile("one", &[("vm.swappiness", Want::Int(value))]);
    let other = profile("other", &[("vm.stat_interval", Want::Int(9))]);
    for source in [want(10), other] {
        apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    }
    add(&tree, SYSCTL_FILE, THEIRS, false);
    let plan = plan_of(&tree.session(), &want(11));
    let error = apply(&tree.session(), &plan, &PERSIST).expect_err("someone edited it");
    assert!(matches!(error, PipelineError::ForeignFile { .. }), "{error}");
    assert_eq!(undone(&tree, Target::Newest, false), Exit::Done);
    let left = tree.bytes(SYSCTL_FILE);
    assert!(left.ends_with(THEIRS), "{}", String::from_utf8_lossy(&left));
    let ours = str::from_utf8(&left[..left.len() - THEIRS.len()]).expect("ours");
    assert!(ours.ends_with("\nvm.swappiness = 10\n") && !ours.contains("stat_interval"), "{ours}");
    assert_eq!(undone(&tree, Target::Newest, false), Exit::Done);
    assert_eq!(tree.bytes(SYSCTL_FILE), THEIRS);
    // What is left is somebody else's, and the cure moves it aside.
    let error = apply(&tree.session(), &plan_of(&tree.session(), &want(11)), &PERSIST).expect_err("theirs");
    assert!(
        error.hints().concat().starts_with(&format!("move it away first: mv -n {SYSCTL_FILE} ")),
        "{error}"
    );
    tree.put("/etc/sysctl.d/50-was-90-planish.conf", &tree.bytes(SYSCTL_FILE));
    tree.remove(SYSCTL_FILE);
    apply(&tree.session(), &plan_of(&tree.session(), &want(11)), &PERSIST).expect("nothing is in the way");
}

#[test]
fn a_changed_line_beside_such_bytes_is_theirs_until_it_is_forced() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let source = profile("one", &[("vm.swappiness", Want::Int(10)), ("vm.stat_interval", Want::Int(9))]);
    apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    tree.put(SYSCTL_FILE, &tree.get(SYSCTL_FILE).replace("swappiness = 10", "swappiness = 12"));
    add(&tree, SYSCTL_FILE, THEIRS, false);
    assert_eq!(undone(&tree, Target::Newest, false), Exit::Findings);
    assert_eq!(tree.bytes(SYSCTL_FILE), [b"vm.swappiness = 12\n", THEIRS].concat());

    let tree = Tree::new();
    apply(&tree.session(), &plan_of(&tree.session(), &source), &PERSIST).expect("applied");
    tree.put(SYSCTL_FILE, &[b"# \xff alone\n", THEIRS].concat());
    assert_eq!(undone(&tree, Target::Newest, false), Exit::Findings, "theirs as a whole");
    assert_eq!(tree.bytes(SYSCTL_FILE), [b"# \xff alone\n", THEIRS].concat());
    assert_eq!(undone(&tree, Target::Entry(EntryId(1)), true), Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// A file that is edited is refused as long as it is no text, with the line; beside drop-ins it is none that is.
#[test]
fn a_file_of_the_boot_loader_that_is_no_utf_8_is_refused_with_its_line_and_a_cure() {
    for (make, path) in [(suse as fn() -> Tree, DEFAULTS), (rocky, DEFAULTS), (rocky, KERNEL_CMDLINE)] {
        let tree = make();
        add(&tree, path, b"\n# Gr\xfc\xdfe\n", false);
        let line = tree.bytes(path).split(|byte| *byte == b'\n').count() - 1;
        let error = crate::boot::refused(&tree, &wants());
        let told = planish_act::in_full(&error);
        assert!(told.contains(path), "{told}");
        assert!(told.contains(&format!("is not text in UTF-8: its line {line} has the byte 0xfc")), "{told}");
        let hints = error.hints().concat();
        let cure =
            format!("have that line in UTF-8, or without the byte: {path} is text for whoever changes it");
        assert!(hints.starts_with(&cure), "{hints}");
    }
    let tree = debian();
    add(&tree, DEFAULTS, b"\n# Gr\xfc\xdfe\n", false);
    let before = tree.bytes(DEFAULTS);
    persist(&tree, &wants());
    assert!(tree.get(OWN).contains("skew_tick=1"));
    assert_eq!(undone(&tree, Target::Newest, false), Exit::Done);
    assert_eq!(tree.bytes(DEFAULTS), before);
}

/// Arguments in files of a boot loader that got such a comment since.
#[test]
fn arguments_go_out_of_a_file_of_the_boot_loader_that_is_no_utf_8() {
    let of_loaders: [(Named, &str); 4] = [
        (("debian", debian), OWN),
        (("suse", suse), DEFAULTS),
        (("rocky", rocky), DEFAULTS),
        (("rocky", rocky), ENTRY),
    ];
    for ((name, make), path) in of_loaders {
        for force in [false, true] {
            let tree = make();
            // Text of others that is UTF-8 comes back as it is, too.
            let comment = "# größer\n";
            if path == DEFAULTS {
                add(&tree, path, comment.as_bytes(), true);
            }
            let before = if path == OWN { Vec::new() } else { tree.bytes(path) };
            persist(&tree, &wants());
            assert!(tree.get(path).contains("skew_tick=1"), "{name}, {path}");
            add(&tree, path, b"# Gr\xfc\xdfe\n", true);
            let undone = undo(&tree.session(), Target::Newest, force).expect("undone");
            let told = format!("{name}, {path}, {force}: {:?} {:?}", undone.entries, undone.hints);
            assert!(undone.entries[0].1.iter().all(|outcome| outcome.outcome == OutcomeKind::Done), "{told}");
            // What a boot to come is given cannot be told of a file that is edited and is no text, and that is said.
            let is_untold = undone.hints.iter().any(|hint| hint.contains("cannot be told"));
            assert_eq!(undone.exit, if is_untold { Exit::Findings } else { Exit::Done }, "{told}");
            assert!(!is_untold || path != OWN, "{told}");
            let now = tree.bytes(path);
            let expected = [b"# Gr\xfc\xdfe\n", &before[..]].concat();
            assert_eq!(String::from_utf8_lossy(&now), String::from_utf8_lossy(&expected), "{name}, {path}");
            assert_eq!(now, expected, "{name}, {path}, {force}");
        }
    }
}
