//! The dead-man timer: a process of its own that undoes what nobody confirmed.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use planish_model::{EntryId, EntryState, Exit, Want};
use planish_pipeline::{
    ApplyOptions, Half, Seams, Session, SessionOptions, Target, Undone, apply, check, confirm, keep_watch,
    log, take_unconfirmed, undo,
};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;

/// The variable that makes [`watcher_process`] work: root folder and entry.
const WATCHES: &str = "PLANISH_TEST_WATCHES";

struct Watched(SessionOptions);

impl Seams for Watched {
    /// This test program, told to be the watcher.
    fn watcher(&self, entry: EntryId) -> Option<Command> {
        let mut command = Command::new(std::env::current_exe().expect("a test knows its program"));
        let root = self.0.root.as_ref().expect("a recorded host").display();
        command.args(["--exact", "watch::watcher_process"]).env(WATCHES, format!("{entry} {root}"));
        Some(command)
    }
}

struct Unwatched;

impl Seams for Unwatched {
    fn watcher(&self, _: EntryId) -> Option<Command> {
        Some(Command::new("true"))
    }
}

/// A session that starts no timer.
pub fn without_watcher(tree: &Tree) -> Session {
    without_a_timer(tree.options())
}

/// The same with a state folder of its own.
pub fn without_a_timer(options: SessionOptions) -> Session {
    Session::with_seams(options, Box::new(Unwatched)).expect("a host")
}

/// What a timer does with the newest entry so many seconds later.
pub fn take_late(tree: &Tree, seconds: u64) -> Undone {
    let clock = tree.options().clock.map(|now| now + seconds);
    let session = Session::open(SessionOptions { clock, ..tree.options() }).expect("a host");
    let entry = log(&session).expect("a journal").remove(0);
    take_unconfirmed(&session, &entry).expect("at its time").expect("unconfirmed")
}

fn watched(tree: &Tree) -> Session {
    Session::with_seams(tree.options(), Box::new(Watched(tree.options()))).expect("a host")
}

/// Not a test of its own: the watcher that the others start.
#[test]
fn watcher_process() {
    let Ok(task) = std::env::var(WATCHES) else { return };
    let (entry, root) = task.split_once(' ').expect("entry and root");
    let options = SessionOptions {
        root: Some(root.into()),
        command: "watcher".to_owned(),
        clock: Some(1_763_600_000),
        ..SessionOptions::default()
    };
    let session = Session::open(options).expect("a host");
    keep_watch(&session, EntryId(entry.parse().expect("a number"))).expect("watched");
}

/// A host whose watchers end with it: what they would take back is gone.
struct Timed(Tree);

impl std::ops::Deref for Timed {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.0
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        for pid in watchers_of(self.0.root()) {
            let pid = rustix::process::Pid::from_raw(pid).expect("a process");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// It would wait on a host that is gone, for minutes.
#[test]
fn no_watcher_outlives_the_host_of_its_test() {
    let tree = Timed(Tree::new());
    apply_for(&tree, 600);
    eventually("the watcher", || watchers(&tree) == 1);
    let root = tree.root().to_owned();
    drop(tree);
    eventually("its end", || watchers_of(&root).is_empty());
}

fn apply_for(tree: &Tree, seconds: u64) {
    let session = watched(tree);
    let plan = plan_of(&session, &everything());
    let options = ApplyOptions { confirm_seconds: Some(seconds), ..ApplyOptions::default() };
    let applied = apply(&session, &plan, &options).expect("applied");
    assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.outcomes);
    assert_eq!(tree.get(SWAPPINESS), "10\n");
}

/// Waits for a condition; the machine may be busy.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_nobody_confirms_goes_by_itself() {
    let tree = Timed(Tree::new());
    let start = tree.snapshot();
    apply_for(&tree, 1);
    assert_eq!(tree.entries()[0].state, EntryState::Unconfirmed);
    eventually("the undo", || !tree.entries()[0].is_open());
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(
        tree.entries()[0].lapsed_at().is_some(),
        "the clock of the timer stands still, and it says so itself"
    );

    // A script that confirms and goes on must not take that for a yes.
    let late = confirm(&tree.session()).expect("answered");
    assert_eq!(late.lapsed.map(|(entry, _)| entry), Some(EntryId(1)));
    assert_eq!((late.exit, late.entries.len()), (Exit::Findings, 0));
    apply_for(&tree, 600);
    assert_eq!(confirm(&tree.session()).expect("in time").exit, Exit::Done);
    let again = confirm(&tree.session()).expect("answered");
    assert_eq!((again.exit, again.lapsed), (Exit::Done, None), "what was confirmed since counts");
}

#[test]
fn what_an_undo_that_was_killed_left_goes_by_itself() {
    let tree = Timed(Tree::new());
    let start = tree.snapshot();
    apply_for(&tree, 2);
    let killed = fused(tree.options(), &Fuse::at(6, Moment::After));
    assert!(until_killed(|| undo(&killed, Target::Newest, false)).is_none());
    drop(killed);
    assert_ne!(differences(&start, &tree.snapshot()), [""; 0], "the kill came half way");
    eventually("the undo", || !tree.entries()[0].is_open());
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "harms the fixture")]
fn a_journal_that_loses_a_byte_does_not_end_the_watch() {
    let tree = Timed(Tree::new());
    apply_for(&tree, 2);
    let journal = tree.root().join("var/lib/planish/journal.jsonl");
    let bytes = std::fs::read(&journal).expect("a journal");
    // In the second line: on a slow machine the watcher has not read the intent yet.
    let place = bytes.iter().position(|&byte| byte == b'\n').expect("a line") + 13;
    // That byte alone, where it lies: a file that is written anew is empty for a moment, which says that there is no
    // such entry, and a watcher that starts in that moment ends.
    let file = std::fs::OpenOptions::new().write(true).open(&journal).expect("ours");
    file.write_all_at(&[bytes[place] ^ 1], place as u64).expect("written");
    eventually("the undo", || tree.get(SWAPPINESS) == "60\n");
    eventually("the end of the watcher", || watchers(&tree) == 0);
    assert!(tree.entries().iter().all(|entry| !entry.is_open()));
}

#[test]
fn what_the_kernel_refuses_at_the_deadline_is_tried_again() {
    let busy = format!(
        "[[answer]]\nplace = \"{SWAPPINESS}\"\nerrno = \"EBUSY\"\n\
         [answer.errno_while]\nplace = \"{STAT_INTERVAL}\"\nvalue = \"77\"\n"
    );
    let tree = Timed(Tree::answering(&busy));
    let session = watched(&tree);
    let source = profile("one", &[("vm.swappiness", Want::Int(10))]);
    let options = ApplyOptions { confirm_seconds: Some(1), ..ApplyOptions::default() };
    tree.edit(STAT_INTERVAL, "1");
    let applied = apply(&session, &plan_of(&session, &source), &options).expect("applied");
    assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.outcomes);
    tree.edit(STAT_INTERVAL, "77");
    let refused = || tree.entries()[0].steps[0].undone.is_some();
    eventually("the first try", refused);
    assert_eq!((tree.get(SWAPPINESS).as_str(), tree.entries()[0].state), ("10\n", EntryState::Open));
    // Which is nothing that anybody wants to stay so.
    let checked = check(&tree.session(), None).expect("a look");
    let told = checked.interrupted.iter().map(|cut| (cut.how.clone(), cut.to_string())).collect::<Vec<_>>();
    let left = "entry 1 is undone in part, and the rest could not be put back".to_owned();
    assert_eq!((told, checked.exit), (vec![(Half::Left, left)], Exit::Findings));
    tree.edit(STAT_INTERVAL, "1");
    eventually("the undo", || !tree.entries()[0].is_open());
    assert_eq!(tree.get(SWAPPINESS), "60\n");
    eventually("the end of the watcher", || watchers(&tree) == 0);
}

#[test]
fn what_is_confirmed_stays() {
    let tree = Timed(Tree::new());
    apply_for(&tree, 2);
    let session = tree.session();
    assert_eq!(confirm(&session).expect("in time").entries, [EntryId(1)]);
    // Past the deadline, with time for a slow watcher to wake up and do harm.
    std::thread::sleep(Duration::from_millis(3500));
    assert_eq!((tree.get(SWAPPINESS).as_str(), tree.entries()[0].state), ("10\n", EntryState::Open));
}

/// How many processes watch over a host.
fn watchers(tree: &Tree) -> usize {
    watchers_of(tree.root()).len()
}

/// The processes that watch over the host of a folder.
#[expect(clippy::disallowed_methods, reason = "looks for processes of this test")]
fn watchers_of(root: &Path) -> Vec<i32> {
    let wanted = root.display().to_string();
    let names = std::fs::read_dir("/proc").expect("procfs").flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    let watches = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| {
            let text = String::from_utf8_lossy(variable);
            text.starts_with(WATCHES) && text.ends_with(&wanted)
        })
    };
    pids.filter(watches).collect()
}

/// Nothing takes it back by itself any more, and whoever relies on that has to know.
#[test]
fn a_timer_that_was_killed_is_told() {
    let tree = Timed(Tree::new());
    let told_at = |clock| {
        let session = Session::open(SessionOptions { clock: Some(clock), ..tree.options() }).expect("a host");
        let checked = check(&session, None).expect("a look");
        let waiting = *checked.unconfirmed.first().expect("it waits");
        assert!(!waiting.is_abandoned || checked.exit == Exit::Findings);
        waiting.to_string()
    };
    const START: u64 = 1_763_600_000;
    apply_for(&tree, 600);
    const LOCK: &str = "/var/lib/planish/watch-1.lock";
    let lock = tree.root().join(&LOCK[1..]);
    let pid = || lock.exists().then(|| tree.get(LOCK).parse().ok())?;
    eventually("the watcher", || pid().is_some());
    assert_eq!(told_at(START), "entry 1 is undone in 600 s unless it is confirmed");
    let watcher = pid().and_then(rustix::process::Pid::from_raw).expect("its number");
    rustix::process::kill_process(watcher, rustix::process::Signal::KILL).expect("ours");
    let abandoned = "entry 1 was to be undone in 600 s unless it is confirmed, and its timer is gone";
    eventually("its end", || told_at(START) == abandoned);
    // Where its lock cannot be seen, the time that is over tells.
    std::fs::remove_file(&lock).expect("it is there");
    assert_eq!(told_at(START + 630), "entry 1 is undone in 0 s unless it is confirmed");
    assert_eq!(told_at(START + 700), "entry 1 was to be undone by now, and its timer is gone");
}

#[test]
fn a_watcher_ends_soon_after_a_confirm() {
    let tree = Timed(Tree::new());
    apply_for(&tree, 90);
    eventually("the watcher", || watchers(&tree) == 1);
    // Long enough for it to have looked once, and stayed.
    std::thread::sleep(Duration::from_millis(5500));
    assert_eq!(watchers(&tree), 1, "nobody has confirmed yet");
    confirm(&tree.session()).expect("in time");
    eventually("the end of the watcher", || watchers(&tree) == 0);
    assert_eq!(tree.get(SWAPPINESS), "10\n");
}

#[test]
fn a_timer_that_cannot_start_refuses_before_the_first_write() {
    struct Broken;
    impl Seams for Broken {
        fn watcher(&self, _: EntryId) -> Option<Command> {
            Some(Command::new("/nonexistent/planish"))
        }
    }
    let tree = Tree::new();
    let start = tree.snapshot();
    let session = Session::with_seams(tree.options(), Box::new(Broken)).expect("a host");
    let plan = plan_of(&session, &everything());
    let options = ApplyOptions { confirm_seconds: Some(60), ..ApplyOptions::default() };
    let error = apply(&session, &plan, &options).expect_err("no timer");
    assert_eq!(error.exit(), Exit::Refused);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert!(!tree.entries()[0].is_open());
}

/// Applies on trial, with files for the next boot and a timer that never comes.
fn on_trial(tree: &Tree) {
    let session = without_watcher(tree);
    let options = ApplyOptions { confirm_seconds: Some(3600), persist: true, ..ApplyOptions::default() };
    apply(&session, &plan_of(&session, &everything()), &options).expect("applied");
}

#[test]
fn what_cannot_be_persisted_is_not_confirmed() {
    let tree = Tree::new();
    on_trial(&tree);
    // A folder where the file should be.
    tree.put("/etc/tmpfiles.d/90-planish.conf/x", "in the way");
    let before = tree.snapshot();
    let error = confirm(&tree.session()).expect_err("no place for the file");
    let because = std::error::Error::source(&error).expect("which file").to_string();
    assert!(because.contains("/etc/tmpfiles.d/90-planish.conf"), "{because}");
    assert_eq!(error.exit(), Exit::FailedRestored, "the other file was written");
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0], "and taken out again");
    assert_eq!(tree.entries()[0].state, EntryState::Unconfirmed);
    tree.remove("/etc/tmpfiles.d/90-planish.conf/x");
    std::fs::remove_dir(tree.root().join("etc/tmpfiles.d/90-planish.conf")).expect("empty");
    assert_eq!(confirm(&tree.session()).expect("room now").entries, [EntryId(1)]);
}

#[test]
fn what_a_reboot_took_is_not_confirmed() {
    let tree = Tree::new();
    let start = tree.snapshot();
    on_trial(&tree);
    tree.reboot(&start);
    assert_eq!(confirm(&tree.session()).expect("nothing of this boot").entries, []);
    assert_eq!(tree.get(SYSCTL_FILE), "", "nobody wants it at every boot now");
}
