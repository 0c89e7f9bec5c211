//! What the preload of `planish run` adds to a call that it stands in front of, and to one that it has nothing to do
//! with: CPU time of a call in a program that was started with it, less that of the same call in the same program
//! without.
//!
//! Each sample is a process of its own, so that where the loader has put things is drawn anew, and each round has one
//! of either kind.

#![expect(unsafe_code, reason = "the preload stands in front of functions of libc, which are C")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

use anyhow::{Context, Result, bail, ensure};

use super::cpu_ns;
use crate::rounds::{Arm, Rounds};
use crate::row::{Limit, Rows};

const ROUNDS: usize = 25;
/// What a call may take more.
const ADDED_NS_MAX: f64 = 2000.0;
/// What a call may take that has nothing to do with the preload, over the same without: nothing, as far as processes
/// that were loaded to other addresses can be compared.
const OTHER_RATIO_MAX: f64 = 1.02;
/// Less than the preload places.
const SMALL_BYTES: usize = 64 << 10;
/// What it places: the default of `--min`.
const LARGE_BYTES: usize = 16 << 20;

/// A call that is intercepted, with the one that takes back what it gave. What both take more is counted to the one.
struct Cycle {
    /// The word of the process that is measured.
    word: &'static str,
    name: &'static str,
    /// Cycles of a sample.
    count: usize,
}

const CYCLES: [Cycle; 4] = [
    Cycle { word: "private", name: "private mmap, 64 KiB", count: 20_000 },
    Cycle { word: "shared", name: "shared mmap, 64 KiB", count: 10_000 },
    Cycle { word: "sysv", name: "shmget and shmat, 64 KiB", count: 5_000 },
    Cycle { word: "placed", name: "shared mmap, 16 MiB, placed and told", count: 400 },
];
const OTHER: Cycle = Cycle { word: "other", name: "getppid", count: 200_000 };

/// Adds the rows.
pub fn measure(planish: &Path, rows: &mut Rows) {
    for cycle in &CYCLES {
        let name = format!("preload adds to a call: {}", cycle.name);
        rows.add_with_note(&name, "ns", (Limit::AtMost, ADDED_NS_MAX), || {
            let rounds = rounds(planish, cycle)?;
            Ok((rounds.added(0, 1)?, note(&rounds)))
        });
    }
    let name = format!("preload: a call of another kind with it / without, {}", OTHER.name);
    rows.add_with_note(&name, "ratio", (Limit::AtMost, OTHER_RATIO_MAX), || {
        let rounds = rounds(planish, &OTHER)?;
        Ok((rounds.over(0, 1)?, note(&rounds)))
    });
}

fn note(rounds: &Rounds) -> String {
    format!("{:.0} ns, without {:.0} ns", rounds.median(0), rounds.median(1))
}

/// With the preload first, then without.
fn rounds(planish: &Path, cycle: &Cycle) -> Result<Rounds> {
    let program = std::env::current_exe().context("our own path")?;
    let role = format!("calls {}", cycle.word);
    let sample = |command: &mut Command| -> Result<f64> {
        let output = command.stdin(Stdio::null()).output().context("start the process that is measured")?;
        let talk = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", talk.lines().next().unwrap_or("it failed"));
        let text = String::from_utf8_lossy(&output.stdout);
        let (ns, preload) = text.trim().split_once(' ').context("it said nothing")?;
        ensure!((preload == "loaded") == (command.get_program() == planish), "the preload is {preload}");
        Ok(ns.parse()?)
    };
    let mut bare = Command::new(&program);
    bare.args(["server", "--role", &role]);
    let mut preloaded = Command::new(planish);
    // Without pages: to fill a segment is what was asked for, and takes as long as it is large.
    preloaded.args(["run", "--numa", "shm=interleave", "--no-prefault", "--"]).arg(&program);
    preloaded.args(["server", "--role", &role]);
    let mut arms: [Arm<'_>; 2] = [Box::new(|| sample(&mut preloaded)), Box::new(|| sample(&mut bare))];
    Rounds::measure(ROUNDS, &mut arms)
}

/// The measured side: nanoseconds of CPU time of a cycle, and whether the preload is there.
pub fn serve(word: &str) -> Result<()> {
    let cycle = CYCLES.iter().chain([&OTHER]).find(|cycle| cycle.word == word).context("no such cycle")?;
    let run: fn() -> Result<()> = match word {
        "private" => || map(SMALL_BYTES, libc::MAP_PRIVATE),
        "shared" => || map(SMALL_BYTES, libc::MAP_SHARED),
        "placed" => || map(LARGE_BYTES, libc::MAP_SHARED),
        "sysv" => sysv,
        "other" => || {
            // SAFETY: it takes nothing and cannot fail.
            std::hint::black_box(unsafe { libc::getppid() });
            Ok(())
        },
        other => bail!("no cycle {other}"),
    };
    // The first calls look symbols up.
    (0..cycle.count / 10).try_for_each(|_| run())?;
    let before = cpu_ns();
    (0..cycle.count).try_for_each(|_| run())?;
    let ns = (cpu_ns() - before) / cycle.count as f64;
    let maps = std::fs::read_to_string("/proc/self/maps").context("read /proc/self/maps")?;
    println!("{ns} {}", if maps.contains("/planish-preload-") { "loaded" } else { "absent" });
    Ok(())
}

fn map(bytes: usize, kind: i32) -> Result<()> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel likes, which nobody else knows of and which is gone again.
    let unmapped = unsafe {
        let address = libc::mmap(null_mut(), bytes, rights, kind | libc::MAP_ANONYMOUS, -1, 0);
        ensure!(address != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        libc::munmap(address, bytes)
    };
    ensure!(unmapped == 0, "munmap: {}", std::io::Error::last_os_error());
    Ok(())
}

fn sysv() -> Result<()> {
    // SAFETY: a segment of our own, gone with its only attachment.
    let is_done = unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, SMALL_BYTES, libc::IPC_CREAT | 0o600);
        ensure!(id >= 0, "shmget: {}", std::io::Error::last_os_error());
        let address = libc::shmat(id, null(), 0);
        let removed = libc::shmctl(id, libc::IPC_RMID, null_mut());
        removed == 0 && libc::shmdt(address) == 0
    };
    ensure!(is_done, "a System V segment: {}", std::io::Error::last_os_error());
    Ok(())
}
