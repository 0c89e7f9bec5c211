//! A program whose file is replaced: killed at every operation, undone, forced; replaced by others, guarded.
#![expect(clippy::disallowed_methods, reason = "plays the program, and those who change it")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use planish_act::program::{LivePrograms, Programs as _, Side};
use planish_model::{Closure, EntryState, Exit, OutcomeKind};
use planish_pipeline::{
    NewProgram, PipelineError, ReplacedProgram, Session, Target, TextFile, check, check_replacement,
    kept_original, replace_program, undo,
};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::Tree;

const PATH: &str = "/usr/local/bin/engine";
const OLD: &[u8] = b"the engine as it was linked";
const NEW: &[u8] = b"the engine, whose text fits huge pages";

fn host() -> Tree {
    let tree = Tree::new();
    tree.put(PATH, std::str::from_utf8(OLD).expect("text"));
    fs::set_permissions(at(&tree, PATH), PermissionsExt::from_mode(0o750)).expect("ours");
    tree
}

fn at(tree: &Tree, path: &str) -> PathBuf {
    tree.root().join(path.trim_start_matches('/'))
}

fn beside(tree: &Tree) -> PathBuf {
    at(tree, "/usr/local/bin/.engine.planish")
}

fn content(tree: &Tree) -> Vec<u8> {
    fs::read(at(tree, PATH)).expect("there is always a whole file")
}

fn new() -> NewProgram<'static> {
    NewProgram { path: PATH, original: OLD, bytes: NEW, packaged: false, reason: None }
}

fn replaced(session: &Session) -> Result<ReplacedProgram, PipelineError> {
    replace_program(session, &new(), &mut |_| Ok(()))
}

fn done(tree: &Tree) {
    let outcome = replaced(&tree.session()).expect("replaced");
    assert_eq!((outcome.why_not, content(tree)), (None, NEW.to_vec()));
}

#[test]
fn a_program_is_replaced_with_all_that_lies_with_it_and_put_back() {
    let tree = host();
    let attribute = rustix::fs::setxattr(at(&tree, PATH), "user.note", b"mine", XattrFlags::empty());
    let before = fs::metadata(at(&tree, PATH)).expect("ours");
    let mut tried = None;
    let outcome = replace_program(&tree.session(), &new(), &mut |path| {
        tried = Some((path.to_owned(), fs::read(path).expect("made"), content(&tree)));
        Ok(())
    });
    let entry = outcome.expect("replaced").entry.expect("an entry");
    assert_eq!(tried, Some((beside(&tree), NEW.to_vec(), OLD.to_vec())), "tried before it has the name");
    assert_eq!((content(&tree), fs::read(beside(&tree)).expect("kept")), (NEW.to_vec(), OLD.to_vec()));
    let now = fs::metadata(at(&tree, PATH)).expect("ours");
    assert_eq!((now.mode(), now.uid(), now.gid()), (before.mode(), before.uid(), before.gid()));
    assert_eq!(
        fs::metadata(beside(&tree)).expect("ours").ino(),
        before.ino(),
        "who runs it goes on running it"
    );
    if attribute.is_ok() {
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(at(&tree, PATH), "user.note", &mut value[..]), Ok(4));
    }
    let kept = kept_original(&tree.session(), PATH).expect("readable");
    assert_eq!(kept, Some((entry, "/usr/local/bin/.engine.planish".to_owned())));
    let file = |tree: &Tree| {
        let checked = check(&tree.session(), None).expect("checked");
        (checked.exit, checked.texts[0].replaced)
    };
    assert_eq!(file(&tree), (Exit::Done, Some((entry, TextFile::Ours))));
    // A second time it is refused, and the first entry named.
    let again = replaced(&tree.session()).expect_err("it is replaced already");
    assert!(again.hints()[0].contains("planish undo 1"), "{:?}", again.hints());

    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, undone.entries[0].0), (Exit::Done, entry), "{undone:?}");
    assert_eq!((content(&tree), beside(&tree).exists()), (OLD.to_vec(), false));
    assert_eq!(fs::metadata(at(&tree, PATH)).expect("ours").ino(), before.ino());
    assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::Undone));
}

#[test]
fn killed_anywhere_there_is_a_whole_file_and_undo_puts_the_original_back() {
    let kills = {
        let (tree, fuse) = (host(), Fuse::counting());
        replaced(&fused(tree.options(), &fuse)).expect("replaced");
        fuse.kills()
    };
    assert!(kills.len() > 8, "{} kills", kills.len());
    for (operation, moment) in kills {
        let tree = host();
        let killed = fused(tree.options(), &Fuse::at(operation, moment));
        assert!(until_killed(|| replaced(&killed)).is_none(), "{operation}");
        drop(killed);
        assert!([OLD, NEW].contains(&content(&tree).as_slice()), "{operation} {moment:?}");
        // Killed once more in the undo, everywhere.
        for second in 0..8 {
            let killed = fused(tree.options(), &Fuse::at(second, Moment::Torn));
            let _ = until_killed(|| undo(&killed, Target::All, false));
        }
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{operation} {moment:?}: {undone:?}");
        assert_eq!(content(&tree), OLD, "{operation} {moment:?}");
        assert!(!beside(&tree).exists(), "{operation} {moment:?}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

#[test]
fn what_is_refused_or_fails_its_trial_leaves_nothing() {
    let tree = host();
    let outcome = replace_program(&tree.session(), &new(), &mut |_| Err("not on huge pages".to_owned()));
    let outcome = outcome.expect("tried");
    assert_eq!((outcome.entry, outcome.why_not.as_deref()), (None, Some("not on huge pages")));
    assert_eq!((content(&tree), beside(&tree).exists()), (OLD.to_vec(), false));
    assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::Empty));
    for (write, errno) in [(0, Errno::NOSPC), (1, Errno::PERM)] {
        let fuse = Fuse::refusing(write, errno);
        let outcome = replaced(&fused(tree.options(), &fuse)).expect("told");
        assert!(outcome.entry.is_none() && outcome.why_not.is_some(), "{outcome:?}");
        assert_eq!((content(&tree), beside(&tree).exists()), (OLD.to_vec(), false), "{errno}");
    }
}

#[test]
fn a_copy_of_the_same_bytes_is_told_from_its_origin() {
    let same = NewProgram { bytes: OLD, ..new() };
    let tree = host();
    let before = fs::metadata(at(&tree, PATH)).expect("ours").ino();
    let outcome = replace_program(&tree.session(), &same, &mut |_| Err("no huge pieces".to_owned()));
    assert_eq!(outcome.expect("tried").why_not.as_deref(), Some("no huge pieces"), "and nothing of names");
    let inode = |tree: &Tree| fs::metadata(at(tree, PATH)).expect("ours").ino();
    assert_eq!((inode(&tree), beside(&tree).exists()), (before, false));
    assert_eq!(tree.entries()[0].state, EntryState::Closed(Closure::Empty));
    let outcome = replace_program(&tree.session(), &same, &mut |_| Ok(())).expect("replaced");
    assert!(outcome.entry.is_some() && inode(&tree) != before);
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!((content(&tree), beside(&tree).exists()), (OLD.to_vec(), false));
}

#[test]
fn what_changes_while_it_is_tried_is_not_lost() {
    let tree = host();
    let upgrade = |_: &Path| {
        tree.put("/usr/local/bin/engine.dpkg-new", "the next version");
        fs::rename(at(&tree, "/usr/local/bin/engine.dpkg-new"), at(&tree, PATH)).expect("ours");
        Ok(())
    };
    let outcome = replace_program(&tree.session(), &new(), &mut { upgrade }).expect("told");
    assert!(outcome.why_not.expect("why").contains("meanwhile"));
    assert_eq!((content(&tree), beside(&tree).exists()), (b"the next version".to_vec(), false));
    // By then it is another file than the one that was looked at.
    assert!(matches!(replaced(&tree.session()), Err(PipelineError::Program { .. })));
}

#[test]
fn what_others_put_there_since_is_kept_unless_forced() {
    let tree = host();
    done(&tree);
    let file = || {
        let checked = check(&tree.session(), None).expect("checked");
        (checked.exit, checked.texts[0].replaced.map(|(_, file)| file))
    };
    tree.remove(PATH);
    assert_eq!(file(), (Exit::Findings, Some(TextFile::Removed)));
    tree.put(PATH, "the next version");
    assert_eq!(file(), (Exit::Findings, Some(TextFile::Overtaken)));
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, content(&tree)), (Exit::Findings, b"the next version".to_vec()));
    assert!(undone.hints.iter().any(|hint| hint.contains("rm /usr/local/bin/.engine.planish")), "{undone:?}");
    let forced = undo(&tree.session(), Target::Entry(undone.entries[0].0), true).expect("forced");
    assert_eq!((forced.exit, content(&tree), beside(&tree).exists()), (Exit::Done, OLD.to_vec(), false));

    // Removed, with its package: force gives it its name again.
    done(&tree);
    tree.remove(PATH);
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Findings);
    let last = tree.entries().last().expect("one").id;
    undo(&tree.session(), Target::Entry(last), true).expect("forced");
    assert_eq!((content(&tree), beside(&tree).exists()), (OLD.to_vec(), false));

    // What such an entry left beside it is in nobody's way.
    done(&tree);
    tree.remove(PATH);
    tree.put(PATH, std::str::from_utf8(OLD).expect("text"));
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert!(!beside(&tree).exists());
}

#[test]
fn an_original_that_is_gone_is_told_and_given_up_by_force() {
    let tree = host();
    done(&tree);
    fs::remove_file(beside(&tree)).expect("ours");
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, content(&tree)), (Exit::FailedNotRestored, NEW.to_vec()));
    assert!(tree.entries()[0].is_open());
    let forced = undo(&tree.session(), Target::Newest, true).expect("forced");
    assert_eq!((forced.exit, tree.entries()[0].is_open()), (Exit::Findings, false));
}

#[test]
fn an_undo_after_a_reboot_puts_it_back_as_well() {
    let tree = host();
    let start = tree.snapshot();
    done(&tree);
    tree.reboot(&start);
    assert_eq!(content(&tree), NEW, "a file outlives a boot");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((undone.exit, content(&tree)), (Exit::Done, OLD.to_vec()));
    assert_eq!(undone.entries[0].1[0].outcome, OutcomeKind::Done);
}

#[test]
fn guards_name_what_they_guard() {
    let refused = |prepare: &dyn Fn(&Tree)| {
        let tree = host();
        prepare(&tree);
        let before = content(&tree);
        let looked = check_replacement(&tree.session(), PATH, NEW.len() as u64, false).expect_err("guarded");
        assert!(tree.entries().is_empty(), "a look writes nothing");
        let error = replaced(&tree.session()).expect_err("guarded");
        assert_eq!(error.hints(), looked.hints());
        assert_eq!((error.exit(), content(&tree)), (Exit::Refused, before));
        assert!(!error.hints().is_empty() && tree.entries().is_empty() && !beside(&tree).is_file());
        std::error::Error::source(&error).expect("a guard").to_string()
    };
    let mode = |tree: &Tree, mode| {
        fs::set_permissions(at(tree, PATH), PermissionsExt::from_mode(mode)).expect("ours")
    };
    assert!(refused(&|tree| mode(tree, 0o4755)).contains("setuid"));
    assert!(refused(&|tree| mode(tree, 0o2755)).contains("setgid"));
    let linked = |tree: &Tree| fs::hard_link(at(tree, PATH), at(tree, "/usr/local/bin/other")).expect("ours");
    assert!(refused(&linked).contains("2 names"));
    let link = |tree: &Tree| {
        fs::rename(at(tree, PATH), at(tree, "/usr/local/bin/engine-1")).expect("ours");
        std::os::unix::fs::symlink("engine-1", at(tree, PATH)).expect("ours");
    };
    assert!(refused(&link).contains("no plain file"));
    let list = "/.\n/usr/local/bin/engine\n";
    let packaged = |tree: &Tree| tree.put("/var/lib/dpkg/info/engine.list", list);
    assert!(refused(&packaged).contains("a package (engine)"));
    let init = |tree: &Tree| {
        fs::create_dir_all(at(tree, "/sbin")).expect("ours");
        std::os::unix::fs::symlink(PATH, at(tree, "/sbin/init")).expect("ours");
    };
    assert!(refused(&init).contains("process 1"));
    let open_to_all = |tree: &Tree| {
        let folder = at(tree, "/usr/local/bin");
        fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).expect("ours");
    };
    assert!(refused(&open_to_all).contains("/usr/local/bin, in which everybody may put another file"));
    let listed = "p:uprobes/p_engine_0x10 /usr/local/bin/engine:0x0000000000000010\n";
    let listened = |tree: &Tree| tree.put("/sys/kernel/tracing/uprobe_events", listed);
    assert!(refused(&listened).contains("has a uprobe at offset 0x10 (uprobes/p_engine_0x10)"));
    // A flag of the command line allows what a package has.
    let tree = host();
    packaged(&tree);
    let new = NewProgram { packaged: true, ..new() };
    assert!(replace_program(&tree.session(), &new, &mut |_| Ok(())).expect("replaced").entry.is_some());
}

#[test]
fn a_look_tells_what_the_replacement_would_be_refused_for_and_writes_nothing() {
    let look = |tree: &Tree, bytes: u64| check_replacement(&tree.session(), PATH, bytes, false);
    let why = |tree: &Tree, bytes: u64| look(tree, bytes).expect_err("refused").to_string();
    let tree = host();
    assert!(matches!(look(&tree, 1), Ok(None)));
    tree.put("/proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 100000 kB\n");
    assert!(why(&tree, 64 << 20).contains("would leave too little"));
    assert!(matches!(look(&tree, 1), Ok(None)));
    tree.put("/proc/meminfo", "");
    let full = look(&tree, 1 << 60).expect("told").expect("no disk has room for that");
    assert!(full.starts_with("cannot replace /usr/local/bin/engine: there is no room"), "{full}");
    fs::write(beside(&tree), "somebody's").expect("ours");
    assert!(why(&tree, 1).contains("is there, and not ours"));
    fs::remove_file(beside(&tree)).expect("ours");
    assert!(tree.entries().is_empty() && content(&tree) == OLD);
    done(&tree);
    assert!(why(&tree, 1).contains("entry 1 has replaced"));
    assert_eq!(tree.entries().len(), 1);
}

#[test]
fn what_takes_the_name_after_the_guard_gives_nothing_to_the_copy() {
    let tree = host();
    let session = tree.session();
    let programs = LivePrograms::new(session.host(), tree.root());
    let mark = programs.guard(PATH, false).expect("it may be replaced");
    let secret = at(&tree, "/secret");
    fs::write(&secret, "of root").expect("ours");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o4711)).expect("ours");
    fs::rename(at(&tree, PATH), at(&tree, "/usr/local/bin/saved")).expect("ours");
    std::os::unix::fs::symlink(&secret, at(&tree, PATH)).expect("ours");
    programs.make(PATH, &mark, NEW).expect_err("it is a link");
    assert!(!beside(&tree).exists());
    fs::remove_file(at(&tree, PATH)).expect("ours");
    fs::rename(&secret, at(&tree, PATH)).expect("ours");
    let error = programs.make(PATH, &mark, NEW).expect_err("it is another file");
    assert!(error.in_full().contains("changed it meanwhile"), "{}", error.in_full());
    assert!(!beside(&tree).exists());
    assert!(matches!(programs.sum(PATH, Side::Named), Ok(Some(_))));
}

#[test]
fn rights_that_were_changed_since_stay_with_the_program() {
    let tree = host();
    done(&tree);
    fs::set_permissions(at(&tree, PATH), PermissionsExt::from_mode(0o700)).expect("ours");
    let attribute = rustix::fs::setxattr(at(&tree, PATH), "user.note", b"new", XattrFlags::empty());
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    let told = undone.entries[0].1[0].detail.as_deref();
    assert!(told.is_some_and(|told| told.contains("were changed since, and are kept")), "{told:?}");
    assert_eq!((content(&tree), undone.exit), (OLD.to_vec(), Exit::Done));
    assert_eq!(fs::metadata(at(&tree, PATH)).expect("ours").mode() & 0o7777, 0o700);
    if attribute.is_ok() {
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(at(&tree, PATH), "user.note", &mut value[..]), Ok(3));
    }
    // What would run with other rights is not given them on.
    let tree = host();
    done(&tree);
    fs::set_permissions(at(&tree, PATH), PermissionsExt::from_mode(0o4750)).expect("ours");
    let left = undo(&tree.session(), Target::Newest, false).expect("told");
    assert_ne!(left.exit, Exit::Done);
    assert_eq!(content(&tree), NEW, "{left:?}");
    fs::set_permissions(at(&tree, PATH), PermissionsExt::from_mode(0o750)).expect("ours");
    let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!((undone.exit, content(&tree)), (Exit::Done, OLD.to_vec()));
}

#[test]
fn a_stranger_beside_it_is_left_alone() {
    let tree = host();
    fs::write(beside(&tree), "somebody's").expect("ours");
    let error = replaced(&tree.session()).expect_err("it is in the way");
    assert!(matches!(error, PipelineError::Program { .. }), "{error:?}");
    assert_eq!(fs::read(beside(&tree)).expect("there"), b"somebody's");
}

#[test]
fn a_disk_that_keeps_only_what_was_synced_keeps_one_of_both_files() {
    let (tree, fuse) = (host(), Fuse::counting());
    let session = fused(tree.options(), &Rc::clone(&fuse));
    replaced(&session).expect("replaced");
    // The intent is a line of the journal, and on the disk before the first write of the host.
    let kinds = fuse.kinds();
    let first = kinds.iter().position(|kind| *kind == crate::faults::Kind::Other).expect("a write");
    assert!(kinds[..first].contains(&crate::faults::Kind::Line), "{kinds:?}");
}
