//! What a trial has started ends with it, also when planish is killed.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use planish_sys::process::{pidfd, wait_readable};
use rustix::process::Pid;

use crate::planish::command;

/// As long as a loaded machine may take for anything below.
const LIMIT: Duration = Duration::from_secs(120);

/// Ended with the test, also where that fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Waits for a file that is written whole, and gives its text.
fn told(path: &Path) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(text) = planish_sys::file::read_text(path) {
            return text;
        }
        assert!(begun.elapsed() < LIMIT, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A service that starts a program in its own group and one in a session of its own, and a load that starts one more:
/// their numbers are in `of_service` and `of_load`.
const TRIAL: &str = r#"
name = "t"
summary = "s"
primary = "wall_s"
[workload]
adapter = "command"
command = ["sh", "-c", "sleep 600 & echo $! > of_load.part; mv of_load.part of_load; wait"]
[service]
command = ["sh", "-c", """
sleep 600 & near=$!
setsid sleep 600 & echo $near $! > of_service.part
while [ "$(cut -d ' ' -f 6 /proc/$!/stat)" != $! ]; do sleep 0.01; done
mv of_service.part of_service; wait"""]
ready_path = "of_service"
ready_seconds = 120
[[rung]]
name = "env"
env = { X = "1" }
"#;

#[test]
fn nothing_that_a_trial_has_started_outlives_a_kill() {
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(home.path().join("t.toml"), TRIAL).expect("a trial");
    let args = ["--json", "--state", "state", "trial", "run", "./t.toml"];
    let mut planish = Ended(command(home.path(), args).stdout(Stdio::null()).spawn().expect("it starts"));
    let started = ["of_service", "of_load"].map(|name| told(&home.path().join(name))).join(" ");
    let handle = |word: &str| -> OwnedFd {
        let pid = word.parse().ok().and_then(Pid::from_raw).expect("a number");
        pidfd(pid).expect("it runs")
    };
    let running: Vec<OwnedFd> = started.split_whitespace().map(handle).collect();
    assert_eq!(running.len(), 3);
    planish.0.kill().expect("our own child");
    for (pidfd, who) in
        running.iter().zip(["in the group of the service", "in a session of its own", "of the load"])
    {
        assert!(
            wait_readable(pidfd, Some(LIMIT)).expect("a pidfd can be waited for"),
            "the one {who} lives on"
        );
    }
}
