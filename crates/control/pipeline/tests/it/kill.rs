//! A real `kill -9` at random moments: a process that applies and undoes without end, and its executioner.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use planish_model::Want;
use planish_pipeline::{ApplyOptions, Session, SessionOptions, Source, Target, apply, undo};

use crate::tree::*;

/// The variable that makes [`victim`] work: its root folder.
const VICTIM: &str = "PLANISH_TEST_VICTIM";

/// Values and files. The model of a kernel changes the several files of a pool, or of two twins, one after the
/// other, which a real one does at once: those are left to the kills of [`crate::crash`].
fn values() -> Source {
    profile(
        "values",
        &[
            ("vm.swappiness", Want::Int(10)),
            ("vm.stat_interval", Want::Int(10)),
            ("vm.zone_reclaim_mode", Want::Int(0)),
        ],
    )
}

/// Not a test of its own: the process that is killed.
#[test]
fn victim() {
    let Some(root) = std::env::var_os(VICTIM) else { return };
    let options =
        SessionOptions { root: Some(root.into()), command: "victim".to_owned(), ..SessionOptions::default() };
    let session = Session::open(options).expect("a host");
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    loop {
        apply(&session, &plan_of(&session, &values()), &options).expect("applied");
        undo(&session, Target::Newest, false).expect("undone");
    }
}

#[test]
fn a_killed_process_leaves_a_host_that_comes_back() {
    let mut interrupted = 0;
    for round in 0..24u64 {
        let tree = Tree::new();
        let start = tree.snapshot();
        let mut child = Command::new(std::env::current_exe().expect("a test knows its program"))
            .args(["--exact", "kill::victim"])
            .env(VICTIM, tree.root())
            .stdout(Stdio::null())
            .spawn()
            .expect("started");
        let began = Instant::now();
        while tree.get("/var/lib/planish/journal.jsonl").is_empty() {
            assert!(began.elapsed() < Duration::from_secs(30), "the victim never began");
            std::thread::sleep(Duration::from_micros(200));
        }
        // Spread over several rounds of apply and undo.
        std::thread::sleep(Duration::from_micros(round * 1733 % 30_000));
        child.kill().expect("it runs");
        child.wait().expect("it is ours");
        interrupted += usize::from(tree.entries().iter().any(planish_model::Entry::is_open));
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "round {round}: {:#?}", undone.entries);
        assert!(tree.entries().iter().all(|entry| !entry.is_open()), "round {round}");
    }
    assert!(interrupted > 4, "only {interrupted} of 24 kills hit an open entry");
}
