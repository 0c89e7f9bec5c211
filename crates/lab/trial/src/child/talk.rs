//! Programs that stay: a service that others talk to, and one that we talk to in lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use planish_sys::process::{Usage, pidfd, wait_readable};
use rustix::process::{Pid, Signal, kill_process_group};

use super::family::end;
use super::once::not_started;
use super::{Drain, Launch, STEP, ended, refusal};
use crate::control::Stop;
use crate::sample::ArmError;

/// A program that runs until it is told to end.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    child: Option<Child>,
    stdout: Option<Drain>,
    stderr: Option<Drain>,
}

impl Service {
    /// Starts it.
    pub(crate) fn start(launch: &Launch, padding: usize) -> Result<Self, ArmError> {
        let mut child = launch.spawn(padding, Stdio::null()).map_err(|error| not_started(launch, &error))?;
        let stdout = Some(Drain::of(child.stdout.take()));
        let stderr = Some(Drain::of(child.stderr.take()));
        Ok(Self { name: launch.name().to_owned(), child: Some(child), stdout, stderr })
    }

    /// Its process id while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Fails with its last words when it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), ArmError> {
        let Some(child) = &self.child else {
            return Err(ArmError::crashed(format!("`{}` does not run", self.name)));
        };
        let fd = pidfd(Pid::from_child(child)).map_err(|error| ArmError::crashed(error.to_string()))?;
        let gone = wait_readable(&fd, Some(Duration::ZERO)).unwrap_or(true);
        if !gone {
            return Ok(());
        }
        let Some(child) = self.child.take() else { return Ok(()) };
        let (status, _) = end(child)?;
        let stderr = self.stderr.take().map(Drain::text).unwrap_or_default();
        Err(ArmError::crashed(ended(&self.name, status, &stderr)))
    }

    /// Asks it to end (SIGTERM), kills what is left after `grace`, and tells what it has used.
    pub(crate) fn stop(&mut self, grace: Duration) -> Option<Usage> {
        let child = self.child.take()?;
        let pid = Pid::from_child(&child);
        // A group that is gone already needs no signal; anything else is ended by the kill below.
        let _ = kill_process_group(pid, Signal::TERM);
        if let Ok(fd) = pidfd(pid) {
            let _ = wait_readable(&fd, Some(grace));
        }
        let usage = end(child).ok().map(|(_, usage)| usage);
        (self.stdout, self.stderr) = (None, None);
        usage
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// Longest line that is an answer: who sends more talks about something else, and would fill our memory.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Lines that are read before anybody has asked for them. A program that says more waits.
const LINES_AHEAD: usize = 16;

/// A line, or that there is none within [`LINE_BYTES_MAX`].
type Line = Result<String, TooLong>;

/// A line without an end.
#[derive(Debug)]
struct TooLong;

/// The lines of a stream; the last one may lack its end.
fn lines(stream: impl Read) -> impl Iterator<Item = Line> {
    let mut stream = BufReader::new(stream);
    let mut is_lost = false;
    std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        // A read error ends the lines like their end does: the exit status tells what happened.
        let count = stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).unwrap_or(0);
        if count == 0 || is_lost {
            return None;
        }
        if bytes.pop_if(|byte| *byte == b'\n').is_none() && count as u64 == LINE_BYTES_MAX {
            is_lost = true;
            return Some(Err(TooLong));
        }
        bytes.pop_if(|byte| *byte == b'\r');
        Some(Ok(String::from_utf8_lossy(&bytes).into_owned()))
    })
}

/// A program that answers one line for each line.
#[derive(Debug)]
pub(crate) struct Talker {
    name: String,
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    lines: Receiver<Line>,
    stderr: Option<Drain>,
}

impl Talker {
    /// Starts it and waits for its first line.
    pub(crate) fn start(
        launch: &Launch,
        padding: usize,
        limit: Duration,
        stop: &Stop,
    ) -> Result<(Self, String), ArmError> {
        let mut child = launch.spawn(padding, Stdio::piped()).map_err(|error| not_started(launch, &error))?;
        let (sender, received) = sync_channel(LINES_AHEAD);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                lines(stdout).map_while(|line| sender.send(line).ok()).for_each(drop);
            });
        }
        let stdin = child.stdin.take();
        let stderr = Some(Drain::of(child.stderr.take()));
        let name = launch.name().to_owned();
        let mut talker = Self { name, child: Some(child), stdin, lines: received, stderr };
        let ready = talker.answer(limit, stop)?;
        Ok((talker, ready))
    }

    /// Its process id while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Says a line and waits for the answer.
    pub(crate) fn ask(&mut self, line: &str, limit: Duration, stop: &Stop) -> Result<String, ArmError> {
        let written = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}").and_then(|()| stdin.flush()));
        match written {
            Some(Ok(())) => self.answer(limit, stop),
            // A pipe that nobody reads: the program has ended, and its last words say why.
            _ => Err(self.gone()),
        }
    }

    fn answer(&mut self, limit: Duration, stop: &Stop) -> Result<String, ArmError> {
        let begun = Instant::now();
        loop {
            if stop.is_set() {
                return Err(ArmError::Stopped);
            }
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(ArmError::TimedOut { after: limit });
            }
            match self.lines.recv_timeout(left.min(STEP)) {
                Ok(Ok(line)) => return Ok(line),
                Ok(Err(TooLong)) => {
                    let limit = LINE_BYTES_MAX >> 20;
                    return Err(ArmError::crashed(format!(
                        "`{}` said more than {limit} MiB in one line, where an answer was to come",
                        self.name
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            }
        }
    }

    /// The program has ended, or closed its output: why. Status 3, "refused", is an arm that cannot be had.
    fn gone(&mut self) -> ArmError {
        let Some(child) = self.child.take() else {
            return ArmError::crashed(format!("`{}` does not run", self.name));
        };
        drop(self.stdin.take());
        if let Ok(fd) = pidfd(Pid::from_child(&child)) {
            let _ = wait_readable(&fd, Some(Duration::from_secs(2)));
        }
        let ended_now = end(child);
        let stderr = self.stderr.take().map(Drain::text).unwrap_or_default();
        match ended_now {
            Ok((status, _)) if status.code() == Some(i32::from(planish_model::Exit::Refused.code())) => {
                refusal(&stderr)
            }
            Ok((status, _)) => ArmError::crashed(ended(&self.name, status, &stderr)),
            Err(error) => error,
        }
    }

    /// Lets it end by itself when its input closes, and kills what is left after `grace`.
    pub(crate) fn stop(&mut self, grace: Duration) {
        drop(self.stdin.take());
        let Some(child) = self.child.take() else { return };
        if let Ok(fd) = pidfd(Pid::from_child(&child)) {
            let _ = wait_readable(&fd, Some(grace));
        }
        // What is left is killed; a child that cannot be waited for has been reaped by someone else.
        let _ = end(child);
        self.stderr = None;
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn talker(script: &str) -> Result<(Talker, String), ArmError> {
        let launch = Launch::of(["sh", "-c", script].map(str::to_owned).to_vec());
        Talker::start(&launch, 0, LONG, &Stop::default())
    }

    #[test]
    fn a_talker_answers_line_by_line() {
        let (mut talker, ready) =
            talker("echo ready; while read -r line; do echo \"got $line\"; done").expect("it starts");
        assert_eq!(ready, "ready");
        assert_eq!(talker.ask("one", LONG, &Stop::default()).expect("an answer"), "got one");
        assert!(talker.pid().is_some());
        talker.stop(LONG);
        assert!(talker.ask("two", LONG, &Stop::default()).is_err());
    }

    #[test]
    fn a_talker_that_refuses_is_unavailable_and_one_that_dies_has_crashed() {
        let refused = talker("echo no 1 GB pages are free >&2; exit 3").expect_err("it ends");
        assert_eq!(refused, ArmError::unavailable("no 1 GB pages are free"));
        let hinted = talker("echo 'error: no pages' >&2; echo 'hint: raise the pool' >&2; exit 3")
            .expect_err("it ends");
        let cure = "raise the pool".to_owned();
        assert_eq!(hinted, ArmError::Unavailable { reason: "no pages".to_owned(), cure });
        let crashed = talker("exit 4").expect_err("it ends");
        assert_eq!(crashed, ArmError::crashed("`sh` ended with exit status: 4"));
    }

    #[test]
    fn a_talker_without_end_is_cut_off() {
        let said = |script: &str| talker(script).expect_err("no line").to_string();
        assert!(said("exec cat /dev/zero").contains("more than 1 MiB in one line"));
        let (mut chatty, _) = talker("exec yes").expect("it starts");
        assert_eq!(chatty.ask("one", LONG, &Stop::default()).expect("one of many"), "y");
        chatty.stop(Duration::ZERO);
        let (_, nonsense) = talker("printf 'a\\377\\r\\nb'; read -r x").expect("it starts");
        assert_eq!(nonsense, "a\u{fffd}");
    }

    #[test]
    fn lines_are_told_apart_up_to_their_limit() {
        let limit = LINE_BYTES_MAX as usize;
        let text = [vec![b'x'; limit - 1], b"\n\nlast".to_vec()].concat();
        let told: Vec<_> = lines(&*text).map(|line| line.expect("short enough").len()).collect();
        assert_eq!(told, [limit - 1, 0, 4]);
        let text = [vec![b'x'; 3 * limit], b"\nnext\n".to_vec()].concat();
        let told: Vec<_> = lines(&*text).map(|line| line.is_ok()).collect();
        assert_eq!(told, [false], "what follows is no line of its own");
    }

    #[test]
    fn a_talker_that_is_silent_is_late() {
        let (mut talker, _) = talker("echo ready; sleep 60").expect("it starts");
        let limit = Duration::from_millis(150);
        assert_eq!(talker.ask("one", limit, &Stop::default()), Err(ArmError::TimedOut { after: limit }));
    }

    #[test]
    fn a_service_is_asked_to_end_before_it_is_killed() {
        let script = "trap 'exit 0' TERM; sleep 60 & wait";
        let launch = Launch::of(["sh", "-c", script].map(str::to_owned).to_vec());
        let mut service = Service::start(&launch, 0).expect("it starts");
        assert!(service.check().is_ok());
        let begun = Instant::now();
        assert!(service.stop(LONG).is_some());
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(service.check().is_err());
    }

    #[test]
    fn a_service_that_ends_by_itself_says_why() {
        let launch = Launch::of(["sh", "-c", "echo port taken >&2; exit 1"].map(str::to_owned).to_vec());
        let mut service = Service::start(&launch, 0).expect("it starts");
        let begun = Instant::now();
        let error = loop {
            match service.check() {
                Ok(()) => assert!(begun.elapsed() < LONG),
                Err(error) => break error,
            }
        };
        assert_eq!(error, ArmError::crashed("`sh` ended with exit status: 1: port taken"));
    }
}
