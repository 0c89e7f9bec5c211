//! A program that runs to its end and is measured whole.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use planish_sys::perf::{Counters, Start, Target};
use planish_sys::process::{Usage, pidfd, wait_readable};
use rustix::process::Pid;

use super::family::{end, spawn};
use super::{Drain, Launch, STEP, ended};
use crate::collect::{Counts, EVENTS, Memory, memory, tree};
use crate::control::Stop;
use crate::outcome::Achieved;
use crate::sample::ArmError;

/// A program that has run to its end, and succeeded.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) wall: Duration,
    /// Of the program and every child that it waited for.
    pub(crate) usage: Usage,
    pub(crate) counts: Counts,
    /// What it was read back to be bound to, where its launch binds it.
    pub(crate) bound: Option<Achieved>,
    /// The largest of the times that it was looked at while it ran.
    pub(crate) memory: Memory,
}

/// Runs a program to its end, at most for `limit`.
pub(crate) fn run_once(
    launch: &Launch,
    padding: usize,
    limit: Duration,
    stop: &Stop,
) -> Result<Finished, ArmError> {
    // All that costs time of ours comes before the clock.
    let mut command = launch.command(padding);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let counters = Counters::open(&EVENTS, Target::Calling, Start::OnExec);
    let begun = Instant::now();
    let mut child = spawn(&mut command).map_err(|error| not_started(launch, &error))?;
    let stdout = Drain::of(child.stdout.take());
    let stderr = Drain::of(child.stderr.take());
    let mut sizes = Sizes::default();
    let bound = launch.bound(child.id());
    let waited = wait(&child, begun, limit, stop, &mut sizes);
    let wall = begun.elapsed();
    let ended_now = end(child);
    let counts = counters.read();
    let stdout = stdout.text();
    let stderr = stderr.text();
    waited?;
    let bound = bound?;
    let (status, usage) = ended_now?;
    if !status.success() {
        return Err(ArmError::crashed(ended(launch.name(), status, &stderr)));
    }
    Ok(Finished { stdout, stderr, wall, usage, counts, bound, memory: sizes.told() })
}

/// The memory of a program while it runs, looked at seldom and ever more seldom: after 0.1 s, 0.2 s, 0.4 s ...
#[derive(Default)]
struct Sizes {
    next: Duration,
    largest: Option<Memory>,
}

impl Sizes {
    fn look(&mut self, root: u32, elapsed: Duration) {
        if elapsed < self.next.max(STEP) {
            return;
        }
        self.next = 2 * elapsed;
        let now = memory(&tree(root));
        self.largest = Some(match self.largest.take() {
            None => now,
            Some(before) => std::array::from_fn(|column| match (&before[column], &now[column]) {
                (Ok(one), Ok(other)) => Ok(one.max(*other)),
                (Ok(one), Err(_)) => Ok(*one),
                (Err(_), other) => other.clone(),
            }),
        });
    }

    fn told(self) -> Memory {
        let short = || Err(format!("it ran for less than {:.1} s", STEP.as_secs_f64()));
        self.largest.unwrap_or_else(|| std::array::from_fn(|_| short()))
    }
}

/// Why a program could not be started. One that is not there is an arm that cannot be had, and so is one on CPUs or a
/// node that this process may not use.
pub(super) fn not_started(launch: &Launch, error: &std::io::Error) -> ArmError {
    let detail = format!("`{}` cannot be started: {error}", launch.name());
    match error.kind() {
        std::io::ErrorKind::InvalidInput if launch.cpus.is_some() || launch.node.is_some() => {
            let cpus = launch.cpus.iter().map(|cpus| format!("CPUs {cpus}"));
            let node = launch.node.iter().map(|node| format!("node {node}"));
            let places: Vec<String> = cpus.chain(node).collect();
            ArmError::unavailable(format!("{detail}: {} cannot be used here", places.join(" and ")))
        }
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => ArmError::unavailable(detail),
        _ => ArmError::crashed(detail),
    }
}

fn wait(
    child: &Child,
    begun: Instant,
    limit: Duration,
    stop: &Stop,
    sizes: &mut Sizes,
) -> Result<(), ArmError> {
    let lost = |error: planish_sys::Error| ArmError::crashed(error.to_string());
    let fd = pidfd(Pid::from_child(child)).map_err(lost)?;
    loop {
        if stop.is_set() {
            return Err(ArmError::Stopped);
        }
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(ArmError::TimedOut { after: limit });
        }
        if wait_readable(&fd, Some(left.min(STEP))).map_err(lost)? {
            return Ok(());
        }
        sizes.look(child.id(), begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        Launch::of(["sh", "-c", script].map(str::to_owned).to_vec())
    }

    fn run(script: &str, limit: Duration) -> Result<Finished, ArmError> {
        run_once(&shell(script), 100, limit, &Stop::default())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_is_measured_with_its_children() {
        let done =
            run("echo out; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done", LONG).expect("it ends well");
        assert_eq!(done.stdout, "out\n");
        assert!(done.usage.cpu() > Duration::ZERO && done.usage.cpu() <= done.wall * 2);
        assert_eq!(done.counts.len(), EVENTS.len());
    }

    #[test]
    fn page_tables_of_a_program_are_those_of_all_that_it_started() {
        let of_one =
            run("exec sleep 0.5", LONG).expect("it ends well").memory[0].clone().expect("it was seen");
        let of_three = run("sleep 0.5 & sleep 0.5; wait", LONG).expect("it ends well").memory[0].clone();
        assert!(of_three.expect("it was seen") > 2.0 * of_one);
        match &run("exit 0", LONG).expect("it ends well").memory[0] {
            Ok(size) => assert!(*size > 0.0, "only a slow machine sees it"),
            Err(reason) => assert_eq!(reason, "it ran for less than 0.1 s"),
        }
    }

    #[test]
    fn the_end_of_a_program_is_told_with_its_last_words() {
        let error = run("echo no such relation >&2; exit 3", LONG).expect_err("it fails");
        assert_eq!(error.to_string(), "`sh` ended with exit status: 3: no such relation");
    }

    #[test]
    fn a_program_that_is_late_is_killed_with_its_children() {
        let begun = Instant::now();
        let limit = Duration::from_millis(200);
        let error = run("sleep 60 & sleep 60", limit).expect_err("it is late");
        assert_eq!(error, ArmError::TimedOut { after: limit });
        assert!(begun.elapsed() < Duration::from_secs(20), "no pipe is held open by a grandchild");
    }

    #[test]
    fn a_stop_ends_a_program() {
        let stop = Stop::default();
        stop.set();
        let error = run_once(&shell("sleep 60"), 0, LONG, &stop).expect_err("stopped");
        assert_eq!(error, ArmError::Stopped);
    }

    #[test]
    fn a_program_that_is_not_there_is_unavailable() {
        let launch = Launch::of(vec!["planish-no-such-program".to_owned()]);
        let error = run_once(&launch, 0, LONG, &Stop::default()).expect_err("not there");
        assert!(matches!(error, ArmError::Unavailable { .. }), "{error:?}");
    }

    #[test]
    fn padding_and_environment_reach_the_program() {
        let mut launch = shell("printf %s \"$PLANISH_TRIAL_PADDING$FOO\" | wc -c");
        launch.env.insert("FOO".to_owned(), "bar".to_owned());
        let done = run_once(&launch, 1000, LONG, &Stop::default()).expect("it ends well");
        assert_eq!(done.stdout.trim(), "1003");
    }
}
