//! A journal with a bad byte before its end: refused, and brought back by force as far as its sound lines tell.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use planish_model::{Entry, EntryId, Exit, Nodes, Want};
use planish_pipeline::{ApplyOptions, Session, SessionOptions, Target, apply, log, take_unconfirmed, undo};

use crate::faults::{Fuse, fused, until_killed};
use crate::tree::*;

fn state(tree: &Tree) -> PathBuf {
    tree.root().join("var/lib/planish")
}

/// What the state folder keeps of a damaged journal.
#[expect(clippy::disallowed_methods, reason = "looks at the fixture from outside")]
fn kept(tree: &Tree) -> Vec<Vec<u8>> {
    let names = fs::read_dir(state(tree)).expect("a folder").map(|name| name.expect("readable").path());
    let damaged = |path: &PathBuf| path.to_string_lossy().contains("journal-damaged-");
    names.filter(damaged).map(|path| fs::read(path).expect("readable")).collect()
}

/// Applies one plan, and another one over it.
fn apply_two(session: &Session) {
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    apply(session, &plan_of(session, &everything()), &options).expect("the host takes it");
    let need = Want::Need { need_bytes: 8 << 20, nodes: Nodes::Each(vec![1]) };
    let second = profile("second", &[("vm.swappiness", Want::Int(1)), ("hugepages.2m", need)]);
    apply(session, &plan_of(session, &second), &ApplyOptions::default()).expect("the host takes it");
}

/// A host on which [`apply_two`] ran, whose journal has a wrong digit in the checksum of a line: the damaged bytes, and
/// whether the line is an intent. `None` beyond the last line.
fn damaged(line: usize) -> Option<(Tree, Vec<u8>, bool)> {
    let tree = Tree::new();
    apply_two(&tree.session());
    let (bytes, is_intent) = harm(&state(&tree), line)?;
    Some((tree, bytes, is_intent))
}

/// Puts a wrong digit into the checksum of a line of a journal: the damaged bytes, and whether the line is an intent.
#[expect(clippy::disallowed_methods, reason = "harms the fixture")]
fn harm(state: &Path, line: usize) -> Option<(Vec<u8>, bool)> {
    let path = state.join("journal.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    let start = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
    let is_intent = text[start..].lines().next()?.contains("\"kind\":\"intent\"");
    let mut bytes = text.into_bytes();
    let digit = &mut bytes[start + 8];
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    fs::write(&path, &bytes).expect("ours");
    Some((bytes, is_intent))
}

/// Pages that nobody can count are not taken, and an outcome that is lost leaves open who derived a value.
fn is_told(place: &String) -> bool {
    place.contains("/hugepages-") || place == MIN_FREE
}

/// The cut-off operator has nobody who could type `--force`: the watcher goes on with what it knew when it began.
#[test]
fn a_bad_byte_in_any_line_keeps_no_timer_from_taking_back() {
    let start = Tree::new().snapshot();
    for line in 0.. {
        let tree = crate::crash::waiting();
        let watched = tree.entries().remove(0);
        let Some((_, is_intent)) = harm(&state(&tree), line) else {
            assert!(line > 8, "{line}");
            break;
        };
        let undone =
            take_unconfirmed(&tree.session(), &watched).expect("nothing ends it").expect("unconfirmed");
        let when = format!("line {line}, intent: {is_intent}");
        assert!(undone.recorded && undone.entries.len() == 1, "{when}");
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(is_told), "{when}: {left:?}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{when}");
    }
}

/// Nobody is told of an error of the watcher: it takes back what it knows, and the journal tells of it afterwards.
#[test]
fn a_timer_whose_journal_is_deleted_takes_back_what_it_knows() {
    let start = Tree::new().snapshot();
    for whole_folder in [false, true] {
        let tree = crate::crash::waiting();
        let watched = tree.entries().remove(0);
        match whole_folder {
            true => fs::remove_dir_all(state(&tree)),
            false => fs::remove_file(state(&tree).join("journal.jsonl")),
        }
        .expect("it is there");
        let undone =
            take_unconfirmed(&tree.session(), &watched).expect("nothing ends it").expect("unconfirmed");
        assert!(undone.recorded && undone.entries.len() == 1, "{:?}", undone.hints);
        assert!(undone.hints[0].contains("knew nothing of entry 1 any more"), "{:?}", undone.hints);
        let left = differences(&start, &tree.snapshot());
        assert!(left.iter().all(is_told), "{left:?}");
        let entries = tree.entries();
        assert!(entries.len() == 1 && !entries[0].is_open(), "{entries:?}");
    }
}

/// Who rehearses deletes the copy when he has seen enough.
#[test]
fn a_timer_of_a_copy_that_was_deleted_makes_nothing_of_it_anew() {
    let tree = crate::crash::waiting();
    let (watched, session) = (tree.entries().remove(0), tree.session());
    fs::remove_dir_all(tree.root()).expect("it is there");
    assert!(take_unconfirmed(&session, &watched).expect("nothing to do").is_none());
    assert!(!tree.root().exists());
}

#[test]
fn a_timer_that_goes_on_without_its_journal_takes_nothing_from_others() {
    let tree = crate::crash::waiting();
    let watched = tree.entries().remove(0);
    harm(&state(&tree), 0).expect("the intent");
    tree.edit(SWAPPINESS, "33");
    take_unconfirmed(&tree.session(), &watched).expect("nothing ends it").expect("unconfirmed");
    assert_eq!(tree.get(SWAPPINESS), "33\n");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "looks at the fixture from outside")]
fn a_bad_byte_in_any_line_keeps_no_host_from_its_originals() {
    let start = Tree::new().snapshot();
    let mut lines = 0;
    while let Some((tree, bytes, is_intent)) = damaged(lines) {
        lines += 1;
        let when = format!("line {lines}");
        let changed = tree.snapshot();
        for target in [Target::Newest, Target::All, Target::Entry(EntryId(1))] {
            let error = undo(&tree.session(), target, false).expect_err("damaged");
            assert_eq!(error.exit(), Exit::Refused, "{when}: {error}");
            assert!(error.hints()[0].contains("planish undo --all --force"), "{:?}", error.hints());
        }
        assert_eq!(differences(&changed, &tree.snapshot()), [""; 0], "{when}: refused");
        assert_eq!(fs::read(state(&tree).join("journal.jsonl")).expect("there"), bytes, "{when}: untouched");

        let undone = undo(&tree.session(), Target::All, true).expect("the other lines are sound");
        assert_eq!(undone.exit, Exit::Findings, "{when}");
        assert!(undone.hints.iter().any(|hint| hint.starts_with(&format!("{when}: "))), "{:?}", undone.hints);
        assert_eq!(kept(&tree), [bytes], "{when}: nothing of the damaged file is lost");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{when}");
        let left = differences(&start, &tree.snapshot());
        if is_intent {
            assert!(!left.is_empty(), "{when}: its originals are lost");
            let told = |place: &&String| undone.hints.iter().any(|hint| hint.contains(&format!("{place} (")));
            let lost = undone.hints.iter().find(|hint| hint.contains("no undo takes back what it has set: "));
            assert!(lost.is_some() && left.iter().any(|place| told(&place)), "{when}: {:?}", undone.hints);
            assert!(undone.hints.len() < 8, "{when}: one line for all of an entry: {:?}", undone.hints);
            continue;
        }
        assert!(left.iter().all(is_told), "{when}: {left:?}");
        for entry in tree.entries().iter().rev() {
            undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
        }
        assert_eq!(
            differences(&start, &tree.snapshot()),
            [""; 0],
            "{when}: what was told comes back by force"
        );
    }
    assert!(lines > 15, "{lines}");
}

/// The undo that goes on with what it can read is killed, too, and typed once more.
#[test]
fn a_salvage_that_is_killed_anywhere_is_done_again() {
    let start = Tree::new().snapshot();
    let salvage =
        |session: &Session| drop(undo(session, Target::All, true).expect("the other lines are sound"));
    let mut kills = 0;
    for line in [1, 4, 9] {
        let counter = Fuse::counting();
        let (tree, _, is_intent) = damaged(line).expect("there are more");
        assert!(!is_intent, "originals are needed");
        salvage(&fused(tree.options(), &counter));
        for (operation, moment) in counter.kills() {
            let when = format!("line {line}, killed {moment:?} operation {operation}");
            let (tree, bytes, _) = damaged(line).expect("as before");
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            assert!(until_killed(|| salvage(&session)).is_none(), "{when}");
            drop(session);
            salvage(&tree.session());
            assert_eq!(
                kept(&tree),
                [bytes],
                "{when}: nothing of the damaged file is lost, and it is there once"
            );
            assert!(tree.entries().iter().all(|entry| !entry.is_open()), "{when}");
            let left = differences(&start, &tree.snapshot());
            assert!(left.iter().all(is_told), "{when}: {left:?}");
            for entry in tree.entries().iter().rev() {
                undo(&tree.session(), Target::Entry(entry.id), true).expect("forced");
            }
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{when}");
            kills += 1;
        }
    }
    assert!(kills > 100, "{kills}");
}

#[test]
fn what_others_set_is_kept_also_by_the_force_that_salvages() {
    let (tree, ..) = damaged(3).expect("a fourth line");
    tree.edit(SWAPPINESS, "33");
    assert_eq!(undo(&tree.session(), Target::All, true).expect("salvaged").exit, Exit::Findings);
    assert_eq!(tree.get(SWAPPINESS), "33\n");
    // The journal is sound by now, and force is force again.
    for id in [2, 1] {
        undo(&tree.session(), Target::Entry(EntryId(id)), true).expect("forced");
    }
    assert_eq!(tree.get(SWAPPINESS), "60\n");
}

/// The variable that makes [`take_back_without_a_record`] work: the root folder and the state folder, which is
/// read-only.
const READ_ONLY: &str = "PLANISH_TEST_READ_ONLY";

fn with_state(root: &str, state: &str) -> Session {
    let options = SessionOptions {
        root: Some(root.into()),
        state: Some(state.into()),
        command: "test".to_owned(),
        ..SessionOptions::default()
    };
    Session::open(options).expect("a host")
}

/// Not a test of its own: what [`in_read_only_state`] starts in a mount namespace.
#[test]
fn take_back_without_a_record() {
    let Ok(task) = std::env::var(READ_ONLY) else { return };
    let (root, state) = task.split_once(' ').expect("root and state");
    let session = with_state(root, state);
    let error = undo(&session, Target::All, false).expect_err("read-only");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.hints()[0].contains("planish undo --all --force"), "{:?}", error.hints());
    let undone = undo(&session, Target::All, true).expect("by force");
    assert_eq!(undone.entries.len(), 2);
    assert!(!undone.recorded);
    assert_eq!(undone.exit, Exit::FailedNotRestored, "pools stay: {:#?}", undone.entries);
    assert!(undone.hints.iter().any(|hint| hint.contains("nothing of this is in the journal")));
}

/// Not a test of its own: the same for the watcher of the newest entry.
#[test]
fn watch_without_a_record() {
    let Ok(task) = std::env::var(READ_ONLY) else { return };
    let (root, state) = task.split_once(' ').expect("root and state");
    let session = with_state(root, state);
    let entry = newest(&session);
    let undone = take_unconfirmed(&session, &entry).expect("nothing ends it").expect("unconfirmed");
    assert!(!undone.recorded, "so that it is taken once more");
}

fn newest(session: &Session) -> Entry {
    log(session).expect("sound").pop().expect("an entry")
}

/// Runs one of the tests above where the state folder is read-only; why it cannot, where it cannot.
fn in_read_only_state(test: &str, root: &str, folder: &str) -> Result<(), &'static str> {
    if !rustix::process::geteuid().is_root() {
        return Err("needs root for a read-only mount");
    }
    let mount =
        r#"mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; exec "$0" --exact "$2""#;
    let child = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .arg(std::env::current_exe().expect("a test knows its program"))
        .args([folder, test])
        .env(READ_ONLY, format!("{root} {folder}"))
        .output();
    let Ok(child) = child else { return Err("there is no unshare(1)") };
    let (said, complaint) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    // Not allowed to, or in a root that is no mount of its own (chroot).
    if child.status.code() == Some(77) || complaint.starts_with("unshare:") {
        return Err("no read-only mount can be made here");
    }
    assert!(child.status.success() && said.contains("1 passed"), "{said}{complaint}");
    Ok(())
}

/// An error of the disk that makes it read-only may have harmed the journal as well.
#[test]
fn values_go_back_where_nothing_can_be_recorded() {
    for is_damaged in [false, true] {
        let tree = Tree::new();
        let start = tree.snapshot();
        let state = tempfile::tempdir().expect("a folder");
        let (root, folder) = (tree.root().display().to_string(), state.path().display().to_string());
        apply_two(&with_state(&root, &folder));
        if is_damaged {
            let (_, is_intent) = harm(&state.path().join("var"), 2).expect("a third line");
            assert!(!is_intent, "originals are needed");
        }
        if let Err(why) = in_read_only_state("damage::take_back_without_a_record", &root, &folder) {
            return planish_skip::skip("values_go_back_where_nothing_can_be_recorded", why);
        }
        let left = differences(&start, &tree.snapshot());
        assert!(!left.is_empty() && left.iter().all(is_told), "{left:?}");
        if is_damaged {
            continue; // Pages of which a line is lost come back by hand: see above.
        }
        // With a disk again, the same undo ends what it began. What went back through two entries looks like theirs.
        let session = with_state(&root, &folder);
        assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Findings);
        assert!(log(&session).expect("sound").iter().all(|entry| !entry.is_open()));
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    }
}

#[test]
fn a_timer_takes_back_what_it_cannot_record_and_waits_for_the_record() {
    let tree = Tree::new();
    let start = tree.snapshot();
    let state = tempfile::tempdir().expect("a folder");
    let (root, folder) = (tree.root().display().to_string(), state.path().display().to_string());
    let options = SessionOptions { state: Some(folder.clone().into()), ..tree.options() };
    let session = crate::watch::without_a_timer(options);
    let on_trial = ApplyOptions { confirm_seconds: Some(3600), ..ApplyOptions::default() };
    apply(&session, &plan_of(&session, &everything()), &on_trial).expect("applied");
    if let Err(why) = in_read_only_state("damage::watch_without_a_record", &root, &folder) {
        return planish_skip::skip("a_timer_takes_back_what_it_cannot_record_and_waits_for_the_record", why);
    }
    assert_eq!(tree.get(SWAPPINESS), "60\n");
    let session = with_state(&root, &folder);
    let undone =
        take_unconfirmed(&session, &newest(&session)).expect("a disk again").expect("still unconfirmed");
    assert!(undone.recorded);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(log(&session).expect("sound").iter().all(|entry| !entry.is_open()));
}
