//! Pages that a benchmark adds to a pool go back, however it ends.

#![expect(clippy::disallowed_methods, reason = "a test of huge pages needs a pool of the running machine")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use planish_skip::{Turn, skip};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const PAGES: u64 = 3;

fn pool() -> Option<u64> {
    fs::read_to_string(POOL).ok()?.trim().parse().ok()
}

/// A benchmark in the middle of what it does with pages of a pool, as the leader of a group, as a shell starts it; or a
/// word why not.
fn borrower(test: &str) -> Option<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planish-bench"));
    command.args(["server", "--role", &format!("borrow 2048 {PAGES}")]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it says so or ends");
    if line.trim() == "borrowed" {
        return Some(child);
    }
    let output = child.wait_with_output().expect("it ended");
    skip(test, String::from_utf8_lossy(&output.stderr));
    None
}

/// Waits until the pool has `pages` again.
fn comes_back_to(pages: u64) {
    let start = Instant::now();
    while pool() != Some(pages) {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{:?} pages, and {pages} were there before",
            pool()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ended_by(test: &str, end: impl Fn(&mut Child)) {
    let _turn = match Turn::wait() {
        Ok(turn) => turn,
        Err(reason) => return skip(test, reason),
    };
    let Some(before) = pool() else { return skip(test, "this kernel has no pool of 2 MiB pages") };
    let Some(mut child) = borrower(test) else { return };
    assert_eq!(pool(), Some(before + PAGES));
    end(&mut child);
    comes_back_to(before);
    child.wait().expect("it has ended");
    assert_eq!(pool(), Some(before), "and no more than was added");
}

#[test]
fn pages_go_back_when_the_benchmark_ends() {
    ended_by("pages_go_back_when_the_benchmark_ends", |child| drop(child.stdin.take()));
}

/// As a terminal ends it: the whole group. Not by the signal of Ctrl-C, which a shell has what it runs in the
/// background ignore, and these tests with it.
#[test]
fn pages_go_back_after_the_end_of_the_group() {
    ended_by("pages_go_back_after_the_end_of_the_group", |child| {
        kill_process_group(Pid::from_child(child), Signal::TERM).expect("it is there");
    });
}

#[test]
fn pages_go_back_after_a_kill() {
    ended_by("pages_go_back_after_a_kill", |child| {
        kill_process(Pid::from_child(child), Signal::KILL).expect("it is there");
    });
}

/// Refused before anything is taken, and what was granted in part goes back.
#[test]
fn a_pool_that_cannot_be_raised_so_far_is_left_as_it_was() {
    let test = "a_pool_that_cannot_be_raised_so_far_is_left_as_it_was";
    let _turn = match Turn::wait() {
        Ok(turn) => turn,
        Err(reason) => return skip(test, reason),
    };
    let Some(before) = pool() else { return skip(test, "this kernel has no pool of 2 MiB pages") };
    let mut command = Command::new(env!("CARGO_BIN_EXE_planish-bench"));
    let output = command.args(["server", "--role", "borrow 3000 1"]).output().expect("it runs");
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && talk.contains("hugepages-3000kB"), "{talk}");
    assert_eq!(pool(), Some(before));
}
