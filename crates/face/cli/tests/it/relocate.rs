//! `planish move` of live processes: threads for real, and what is refused with which code. Memory needs a second node:
//! the guests have one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::planish::{Run, command, run};

/// A process that sleeps until dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    #[expect(clippy::disallowed_methods, reason = "a test asks the kernel itself")]
    fn cpus(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it sleeps");
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.expect("every kernel says so").trim().to_owned()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs with a state of its own; while another test has the lock of the host, once more.
fn with_state(state: &Path, args: &[&str]) -> Run {
    let begun = Instant::now();
    loop {
        let place = ["--json", "--state", state.to_str().expect("text")];
        let run: Run = command(state, place.iter().chain(args)).output().expect("the binary starts").into();
        let is_busy = run.exit == 3 && run.stdout.contains("at work");
        if !is_busy || begun.elapsed() > Duration::from_secs(60) {
            return run;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn threads_are_pinned_and_given_their_cpus_back() {
    let test = "threads_are_pinned_and_given_their_cpus_back";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(test, "the lock of the host is root's");
    }
    let (sleeper, state) = (Sleeper::start(), tempfile::tempdir().expect("a folder"));
    let before = sleeper.cpus();
    let first = before.split([',', '-']).next().expect("a CPU").to_owned();
    if before == first {
        return planish_skip::skip(test, "one CPU");
    }
    let moved = with_state(state.path(), &["move", &sleeper.pid(), "--cpus", &first]);
    assert_eq!(moved.exit, 0, "{moved:?}");
    let envelope = moved.envelope();
    assert_eq!(envelope["result"]["processes"][0]["threads"]["pinned"], 1);
    assert_eq!(sleeper.cpus(), first);
    let folder = state.path().join("var/moved");
    assert_eq!(folder.read_dir().expect("records").count(), 1);
    let again = with_state(state.path(), &["move", &sleeper.pid(), "--cpus", &first, "--tree"]);
    assert!(again.stdout.contains(&format!(" map {} --tree\"", sleeper.pid())), "{}", again.stdout);
    assert_eq!((again.exit, &again.envelope()["result"]["entry"]), (0, &serde_json::Value::Null));
    let undone = with_state(state.path(), &["undo"]);
    assert_eq!(undone.exit, 0, "{undone:?}");
    assert_eq!(sleeper.cpus(), before);
    assert_eq!(folder.read_dir().expect("the folder stays").count(), 0);
}

#[test]
fn a_process_that_ended_leaves_nothing_to_undo() {
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip("a_process_that_ended_leaves_nothing_to_undo", "the lock is root's");
    }
    let (sleeper, state) = (Sleeper::start(), tempfile::tempdir().expect("a folder"));
    let before = sleeper.cpus();
    let first = before.split([',', '-']).next().expect("a CPU").to_owned();
    let moved = with_state(state.path(), &["move", &sleeper.pid(), "--cpus", &first]);
    drop(sleeper);
    if moved.envelope()["result"]["entry"].is_null() {
        return planish_skip::skip("a_process_that_ended_leaves_nothing_to_undo", "one CPU");
    }
    let undone = with_state(state.path(), &["undo"]);
    assert_eq!(undone.exit, 0, "{undone:?}");
    assert!(undone.stdout.contains("has ended"), "{undone:?}");
}

/// The first node with memory, where there is another one.
#[expect(clippy::disallowed_methods, reason = "a test asks the kernel itself")]
fn first_of_several_nodes() -> Option<String> {
    let list = std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()?;
    list.trim().split_once([',', '-']).map(|(first, _)| first.to_owned())
}

/// A machine with one node refuses every move of memory, whatever is named of it: that says nothing of parts.
#[test]
fn a_part_that_cannot_be_moved_leaves_no_entry() {
    let test = "a_part_that_cannot_be_moved_leaves_no_entry";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(test, "the lock of the host is root's");
    }
    let Some(node) = first_of_several_nodes() else {
        return planish_skip::skip(
            test,
            "memory on one node: the model of the pipeline and the guests have two",
        );
    };
    let (sleeper, state) = (Sleeper::start(), tempfile::tempdir().expect("a folder"));
    for (part, word) in [
        ("1000-2000", "nothing mapped at 1000-2000"),
        ("/no/such/mapping", "has no mapping /no/such/mapping"),
    ] {
        let refused = with_state(state.path(), &["move", &sleeper.pid(), "--to", &node, "--range", part]);
        let envelope = refused.envelope();
        assert_eq!((refused.exit, &envelope["result"]), (3, &serde_json::Value::Null), "{refused:?}");
        let told = envelope["messages"].to_string();
        assert!(told.contains(word), "{told}");
    }
    assert!(!state.path().join("var/moved").exists(), "no record");
    let log = with_state(state.path(), &["log"]);
    assert_eq!(
        (log.exit, log.envelope()["result"]["entries"].as_array().map(Vec::len)),
        (0, Some(0)),
        "{log:?}"
    );
}

#[test]
fn what_cannot_be_moved_has_its_code() {
    let sleeper = Sleeper::start();
    let pid = sleeper.pid();
    for (args, exit, word) in [
        (&["move", &pid][..], 2, "--to"),
        (&["move", &pid, "--to", "x"], 2, "neither an id nor a range"),
        (&["move", &pid, "--to", "0", "--only", "shared"], 2, "is not moved"),
        (&["move", &pid, "--to", "0", "--only", "heaps"], 2, "heap, anon and stack"),
        (&["move", &pid, "--to", "0", "--range", "heap"], 2, "START-END"),
        (&["move", &pid, "--to", "0", "--range", "7f00-7e00"], 2, "not above the first one"),
        (&["move", &pid, "--cpus", "0", "--range", "[heap]"], 2, "--to"),
        (&["move", &pid, "--to", "900"], 3, "node"),
        (&["move", &pid, "--to", "900", "--threads"], 3, "does not exist here"),
        (&["move", &pid, "--cpus", "90000"], 3, "is not online"),
        (&["move", "1", "--cpus", "0", "--dry-run"], 3, "is left alone"),
        (&["move", "4194999", "--cpus", "0", "--dry-run"], 2, "no process"),
        (&["move", "nosuchservice", "--cpus", "0", "--dry-run"], 2, "no process"),
    ] {
        let run = run(args);
        assert_eq!(run.exit, exit, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(word), "{args:?}: {}", run.stderr);
    }
    let looked = run(["--json", "move", &pid, "--cpus", "0", "--dry-run"]);
    assert_eq!(looked.exit, 0, "{}", looked.stderr);
    assert_eq!(looked.envelope()["result"]["dry_run"], true);
}
