//! Real servers on two nodes: PostgreSQL whose shared buffers one backend fills, and Redis, each started plainly, by
//! numactl(8) and by `planish run`. What is compared is what the kernel says of their pages; and beside `planish map`
//! what numastat(8) makes of that.
//!
//! The server is kept on the CPUs of node 0, and the backend that fills the buffers on one of node 1: so a page that
//! follows its first user, one that is spread and one of a heap that stays local can be told apart.

mod numastat;
mod postgres;
mod redis;

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::{placed, planish, refused, scanned};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// CPUs of node 0, as QEMU was told.
const HOME_CPUS: [usize; 2] = [0, 1];
/// Most that the share of a node of spread memory may differ from a half.
const TOLERANCE: f64 = 0.02;
/// Emulated servers take their time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes or pages by node.
type OnNodes = BTreeMap<u32, u64>;

/// Runs every check for which the server was packed.
pub fn run_all(shape: &Shape, report: &mut Report) {
    if !planish::knows("run") {
        return;
    }
    postgres::run_all(report);
    redis::run_all(report);
    numastat::run_all(report);
    if planish::knows("prove") {
        report.check("prove.numa", || scanned::proved(shape));
    }
    refused::run_slow(report);
    placed::run_slow(report);
}

/// A check that needs a program which may not have been packed.
fn with(program: &str, check: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    if Path::new(program).exists() {
        return check();
    }
    Ok(Outcome::Skip(format!("no {program} was packed")))
}

/// The share of a node.
fn share(on: &OnNodes, node: u32) -> f64 {
    on.get(&node).copied().unwrap_or(0) as f64 / on.values().sum::<u64>().max(1) as f64
}

/// Both shares, for people.
fn told(on: &OnNodes) -> String {
    format!("{:.1} / {:.1} %", 100.0 * share(on, 0), 100.0 * share(on, 1))
}

/// Half on each of two nodes.
fn ensure_even(name: &str, on: &OnNodes) -> Result<()> {
    ensure!((share(on, 0) - 0.5).abs() <= TOLERANCE, "{name}: {}", told(on));
    ensure!((share(on, 1) - 0.5).abs() <= TOLERANCE, "{name}: {}", told(on));
    Ok(())
}

/// The same of a heap, some pages of which are huge: it may be uneven by two of them.
fn ensure_even_heap(on: &OnNodes) -> Result<()> {
    /// Pages of 4 KiB.
    const HUGE: f64 = 512.0;
    let all: u64 = on.values().sum();
    let most = TOLERANCE.max(2.0 * HUGE / all.max(1) as f64);
    ensure!((share(on, 0) - 0.5).abs() <= most, "heap: {}, of {all} pages", told(on));
    Ok(())
}

/// What numa_maps says of a process: pages of 4 KiB of its shared segments, and of its private memory.
struct Seen {
    shared: OnNodes,
    private: OnNodes,
}

/// `ADDRESS POLICY [file=NAME] [heap] ... N0=PAGES N1=PAGES kernelpagesize_kB=4`
fn seen(pid: u32) -> Result<Seen> {
    let path = format!("/proc/{pid}/numa_maps");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let (mut shared, mut private) = (OnNodes::new(), OnNodes::new());
    for line in text.lines() {
        let has = |word: &str| line.contains(word);
        let is_shared = has("file=/dev/zero") || has("file=/anon_hugepage") || has("file=/memfd");
        let pages = match () {
            () if is_shared => &mut shared,
            () if has(" file=") || has(" stack") => continue,
            () => &mut private,
        };
        let unit = line.split(' ').find_map(|word| word.strip_prefix("kernelpagesize_kB="));
        let unit = unit.map_or(Ok(4), str::parse::<u64>)? / 4;
        for word in line.split(' ') {
            let Some((node, count)) = word.strip_prefix('N').and_then(|word| word.split_once('=')) else {
                continue;
            };
            *pages.entry(node.parse()?).or_insert(0) += unit * count.parse::<u64>()?;
        }
    }
    Ok(Seen { shared, private })
}

/// Starts a server on the CPUs of node 0.
fn start(words: &[&str]) -> Result<Running> {
    let ours = sched_getaffinity(None).context("our own CPUs")?;
    let mut home = CpuSet::new();
    HOME_CPUS.into_iter().for_each(|cpu| home.set(cpu));
    sched_setaffinity(None, &home).context("keep to node 0")?;
    let started = start_anywhere(words);
    sched_setaffinity(None, &ours).context("run anywhere again")?;
    started
}

/// Starts a server on all CPUs.
fn start_anywhere(words: &[&str]) -> Result<Running> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).env_clear();
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/tmp").env("LC_ALL", "C");
    command.spawn().map(Running).with_context(|| format!("start {}", words.join(" ")))
}

/// Keeps a process on one CPU.
fn pin(pid: u32, cpu: usize) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    let pid = Pid::from_raw(i32::try_from(pid)?);
    sched_setaffinity(pid, &cpus).context("keep a process on a CPU")
}

/// A server, or the launcher of one, which passes signals on. Ended when dropped.
struct Running(Child);

impl Running {
    /// Waits until something is there, as long as the server runs.
    fn wait_for<T>(&mut self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if let Some(status) = self.0.try_wait().context("look at a server")? {
                anyhow::bail!("it left with {status} before {what}");
            }
            ensure!(begun.elapsed() < PATIENCE, "no {what} within {} s", PATIENCE.as_secs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks it to end by a signal, and waits for that. One that has ended by itself was told of before.
    fn end(&mut self, signal: Signal) -> Result<()> {
        if self.0.try_wait().context("look at a server")?.is_some() {
            return Ok(());
        }
        rustix::process::kill_process(Pid::from_child(&self.0), signal).context("end a server")?;
        self.0.wait().context("wait for a server").map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
