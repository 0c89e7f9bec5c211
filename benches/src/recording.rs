//! What it takes a program to be recorded: this one counts, is asked for the same work again and again, and tells the
//! time for which it had a CPU. That is what lies between two clocks without what it waited for one: the interrupts
//! that take a sample are in it, which a thread's own clock leaves out where the kernel accounts for them apart.

use crate::rounds::{Arm, Rounds};
use crate::row::Figure;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Slices of either arm.
const ROUNDS: usize = 30;
/// How long a slice is to take.
const SLICE: Duration = Duration::from_millis(500);
/// Operations by which the length of a slice is found.
const TRIED: u64 = 2_000_000;
/// How long a recorder may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// The process that is measured: for each line, so many operations, and then the nanoseconds that they took of a CPU.
pub fn serve() -> Result<()> {
    let mut state = 1_u64;
    for line in std::io::stdin().lock().lines() {
        let count: u64 = line?.trim().parse().context("a number of operations")?;
        let (start, waited) = (Instant::now(), waited_ns()?);
        for _ in 0..count {
            state = outer(black_box(state));
        }
        let took = start.elapsed().as_nanos() as u64;
        println!("{} {}", took - (waited_ns()? - waited).min(took), state & 1);
    }
    Ok(())
}

/// How long this thread was ready to run and had no CPU.
fn waited_ns() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").context("read what the scheduler counts")?;
    let waited = text.split_whitespace().nth(1).context("three numbers")?;
    waited.parse().context("a number")
}

// Calls within calls, as programs have them: a sample walks a stack.
#[inline(never)]
fn outer(state: u64) -> u64 {
    middle(state).rotate_left(7) ^ state
}

#[inline(never)]
fn middle(state: u64) -> u64 {
    inner(state ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(middle_hash(state))
}

#[inline(never)]
fn middle_hash(state: u64) -> u64 {
    inner(state >> 3).count_ones().into()
}

#[inline(never)]
fn inner(state: u64) -> u64 {
    let mut hash = black_box(state);
    for _ in 0..16 {
        hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    hash
}

/// That process, which ends with this value.
struct Busy {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Busy {
    fn start() -> Result<Self> {
        let own = std::env::current_exe().context("find this program")?;
        let mut command = Command::new(own);
        command.args(["server", "--role", "busy"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("start this program")?;
        let ask = child.stdin.take().context("a pipe")?;
        let answer = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { child, ask, answer })
    }

    /// Nanoseconds for each of so many operations.
    fn slice(&mut self, count: u64) -> Result<f64> {
        writeln!(self.ask, "{count}").context("ask for work")?;
        let mut line = String::new();
        self.answer.read_line(&mut line).context("wait for work")?;
        let took: f64 = line.split(' ').next().unwrap_or_default().parse().context("it told no time")?;
        Ok(took / count as f64)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// A recorder, which ends with this value.
struct Recorder(Child);

impl Recorder {
    /// Starts it, and waits until it has its events.
    fn start(planish: &Path, pid: u32, folder: &Path) -> Result<Self> {
        let mut command = Command::new(planish);
        command.args(["text", "record", "--pid", &pid.to_string(), "-o"]).arg(folder.join("busy.planish"));
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut recorder = Self(quiet.spawn().context("start planish")?);
        let begun = Instant::now();
        while !recorder.has_events() {
            if let Some(status) = recorder.0.try_wait()? {
                let mut told = String::new();
                recorder
                    .0
                    .stderr
                    .take()
                    .map(|mut told_to| std::io::Read::read_to_string(&mut told_to, &mut told));
                bail!("planish text record left with {status}: {}", told.trim());
            }
            ensure!(begun.elapsed() < PATIENCE, "planish text record did not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        // From its events to its loop.
        std::thread::sleep(Duration::from_millis(50));
        Ok(recorder)
    }

    fn has_events(&self) -> bool {
        let Ok(files) = std::fs::read_dir(format!("/proc/{}/fd", self.0.id())) else { return false };
        let is_event = |link: std::path::PathBuf| link.to_string_lossy().contains("[perf_event]");
        files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).any(is_event)
    }

    /// Ends it as Ctrl-C does; it has to have a profile of what ran.
    fn end(mut self, profile: &Path) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::INT).context("end planish")?;
        let status = self.0.wait().context("wait for planish")?;
        let text = std::fs::read_to_string(profile).context("read the profile")?;
        let is_one = text.lines().any(|line| line.starts_with("F ") && line.contains("inner"));
        ensure!(is_one, "planish text record ({status}) saw nothing of the program");
        std::fs::remove_file(profile).context("remove the profile")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// What a recording at its default rate adds to the CPU time of an operation, in percent: slices of one process with
/// and without it, in pairs, whose order a coin chose. With it the time of an operation, to be told beside.
pub fn added_percent(planish: &Path) -> Result<(Figure, String)> {
    let folder = tempfile::Builder::new().prefix("planish-bench").tempdir()?;
    let busy = std::cell::RefCell::new(Busy::start()?);
    busy.borrow_mut().slice(TRIED)?;
    let count = (SLICE.as_nanos() as f64 / busy.borrow_mut().slice(TRIED)?) as u64;
    let pid = busy.borrow().child.id();
    let mut arms: [Arm<'_>; 2] = [
        Box::new(|| busy.borrow_mut().slice(count)),
        Box::new(|| {
            let recorder = Recorder::start(planish, pid, folder.path())?;
            let took = busy.borrow_mut().slice(count)?;
            recorder.end(&folder.path().join("busy.planish"))?;
            Ok(took)
        }),
    ];
    let rounds = Rounds::measure(ROUNDS, &mut arms)?;
    let Figure { value, low, high } = rounds.over(1, 0)?;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let note = format!(
        "{ROUNDS} pairs of slices of {:.2} s, {:.1} ns an operation",
        SLICE.as_secs_f64(),
        rounds.median(0)
    );
    Ok((Figure { value: percent(value), low: percent(low), high: percent(high) }, note))
}
