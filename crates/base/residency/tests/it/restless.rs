//! Processes that end, fork and execute while they are looked at, and those that are not ours to see.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use planish_host::Host;
use planish_residency::{Map, ResidencyError, Who};

/// A shell that runs a script; killed with all that it started when dropped.
struct Shell(Child);

impl Shell {
    fn run(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().expect("there is a shell"))
    }

    fn map(&self, tree: bool) -> Result<Map, ResidencyError> {
        Map::read(&Host::live(), &Who::Pid(self.0.id()), tree)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = planish_sys::child::kill_group(&self.0);
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_ends_meanwhile_is_gone_and_nothing_else() {
    for round in 0..40 {
        let mut shell = Shell::run("exit 0");
        std::thread::sleep(std::time::Duration::from_micros(round * 50));
        match shell.map(false) {
            Ok(map) => assert_eq!(map.members.len(), 1),
            Err(
                ResidencyError::NoProcess { .. }
                | ResidencyError::Ended { .. }
                | ResidencyError::EndedMeanwhile { .. }
                | ResidencyError::Restless { .. },
            ) => {}
            Err(error) => panic!("round {round}: {error:?}"),
        }
        let _ = shell.0.wait();
        // Waited for: its number is free, and must not be taken for it.
        assert!(matches!(shell.map(false), Err(ResidencyError::NoProcess { .. })));
    }
}

#[test]
fn a_process_that_executes_programs_is_whole_or_refused() {
    let shell = Shell::run("a='exec sh -c \"$a\"'; export a; exec sh -c \"$a\"");
    for _ in 0..30 {
        match shell.map(false) {
            Ok(map) => assert!(!map.members[0].areas.is_empty()),
            Err(ResidencyError::Restless { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A program that takes some milliseconds to begin is often in the middle of it: the memory that a look began with is
/// gone then, and the process is not.
#[test]
#[expect(clippy::disallowed_methods, reason = "a script of the test's own")]
fn a_process_that_executes_a_large_program_lives_on() {
    let test = "a_process_that_executes_a_large_program_lives_on";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("again.py");
    let path = path.to_str().expect("text");
    let again =
        format!("import os\nx = bytearray(10 << 20)\nos.execvp('python3', ['python3', '-S', '{path}'])\n");
    std::fs::write(path, again).expect("a script");
    const COUNT: usize = 6;
    let shell = Shell::run(&format!("for child in $(seq {COUNT}); do python3 -S {path} & done; wait"));
    // A busy machine takes its time until the shell has started all of them, and nothing else is left.
    let begun = std::time::Instant::now();
    let count = || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let members = planish_residency::members(&Host::live(), &Who::Pid(shell.0.id()), true);
        members.expect("a shell").len()
    };
    while count() != 1 + COUNT {
        if begun.elapsed().as_secs() >= 20 {
            return planish_skip::skip(test, "no python3");
        }
    }
    let begun = std::time::Instant::now();
    while begun.elapsed().as_secs() < 4 {
        match shell.map(true) {
            Ok(map) => assert_eq!(map.members.len(), 1 + COUNT, "{:?}", map.unseen),
            Err(ResidencyError::Restless { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn a_tree_that_forks_is_read_as_far_as_it_stands() {
    let shell = Shell::run("sleep 60 & while :; do (:); done");
    let mut largest = 0;
    for _ in 0..20 {
        let map = shell.map(true).expect("the shell itself stays");
        assert_eq!(map.members[0].pid, shell.0.id());
        largest = largest.max(map.members.len());
    }
    assert!(largest >= 2, "the sleeper was never seen");
}

/// Run by root: a plain user looks at root's process. Run by a plain user: at process 2 or any other of root's.
#[test]
fn a_process_of_another_user_is_denied_with_the_capability() {
    let test = "a_process_of_another_user_is_denied_with_the_capability";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(test, "only root can become another user");
    }
    let shell = Shell::run("sleep 60");
    let pid = shell.0.id();
    let asked = std::thread::spawn(move || {
        // The raw call changes this thread only, which ends after the look.
        let changed = rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534));
        changed.map(|()| Map::read(&Host::live(), &Who::Pid(pid), false))
    });
    match asked.join().expect("no panic") {
        Ok(Err(error @ ResidencyError::Denied { .. })) => {
            assert!(error.cure().is_some_and(|cure| cure.contains("CAP_SYS_PTRACE")), "{error}");
        }
        Ok(Ok(_)) => panic!("a plain user has seen root's process"),
        Ok(Err(error)) => panic!("{error:?}"),
        Err(errno) => planish_skip::skip(test, errno),
    }
}
