//! The limit that counts while a file is open, on a real kernel: judged by the device itself, which shows the limit in
//! force, whoever holds it.

use crate::check::{Outcome, Report};
use crate::planish;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

const DEVICE: &str = "/dev/cpu_dma_latency";
const PROFILES: &str = "/etc/planish/profiles";
/// What the device shows when nobody limits anything.
pub const NO_LIMIT: i32 = 2_000_000_000;
/// Safe settings that a plan has after the limit, at values that no guest starts with.
const BEHIND: [(&str, u32); 7] = [
    ("vm.dirty_expire_centisecs", 1700),
    ("vm.page-cluster", 2),
    ("vm.stat_interval", 7),
    ("vm.swappiness", 17),
    ("vm.vfs_cache_pressure", 97),
    ("vm.watermark_scale_factor", 17),
    ("kernel.msgmax", 17000),
];
/// Kills of an apply.
const KILLS: u64 = 6;
/// The moment with the limit in force is short: on a busy machine six may all come too late.
const MOST_KILLS: u64 = 60;

/// Set, lost, set again, covered by another, put back, and killed.
pub fn run_all(report: &mut Report) {
    if !["plan", "apply", "check", "undo"].iter().all(|command| planish::knows(command)) {
        return;
    }
    report.check("held.life", life);
    report.check("held.killed", killed);
}

fn life() -> Result<Outcome> {
    if File::open(DEVICE).is_err() {
        return Ok(Outcome::Skip(format!("this kernel has no {DEVICE}")));
    }
    ensure!(in_force()? == NO_LIMIT, "{} us are in force before anything was done", in_force()?);
    let seen = (|| {
        wanted("first", 20)?;
        planish::json(&["apply", "first", "--yes"], &[0])?;
        ensure!(in_force()? == 20 && holders()?.len() == 1, "{} us by {:?}", in_force()?, holders()?);
        planish::json(&["check", "first"], &[0])?;
        let again = planish::json(&["apply", "first", "--yes"], &[0])?;
        ensure!(again["result"]["outcomes"].as_array().is_some_and(Vec::is_empty), "applied twice: {again}");
        // Somebody ends it: check tells, and apply has it held again.
        let pid = holders()?.first().copied().and_then(Pid::from_raw).context("a holder")?;
        kill_process(pid, Signal::KILL).context("end the holder")?;
        wait_for(|| Ok(in_force()? == NO_LIMIT))?;
        planish::json(&["check", "first"], &[1])?;
        planish::json(&["apply", "first", "--yes"], &[0])?;
        ensure!(in_force()? == 20, "{} us after it was applied again", in_force()?);
        wanted("second", 50)?;
        planish::json(&["apply", "second", "--yes"], &[0])?;
        ensure!(in_force()? == 50 && holders()?.len() == 1, "{} us by {:?}", in_force()?, holders()?);
        planish::json(&["undo"], &[0])?;
        ensure!(in_force()? == 20 && holders()?.len() == 1, "{} us by {:?}", in_force()?, holders()?);
        Ok(())
    })();
    let undone = planish::json(&["undo", "--all"], &[0, 1]);
    seen?;
    undone?;
    ensure!(in_force()? == NO_LIMIT && holders()?.is_empty(), "{} us by {:?}", in_force()?, holders()?);
    Ok(Outcome::Ok("20 us, lost, 20, 50, 20 and no limit again".to_owned()))
}

/// However an apply is killed, undo leaves no limit behind.
fn killed() -> Result<Outcome> {
    if File::open(DEVICE).is_err() {
        return Ok(Outcome::Skip(format!("this kernel has no {DEVICE}")));
    }
    wanted("first", 20)?;
    // What is written behind the limit keeps the apply at work while it is in force, also on a busy machine.
    let file = format!("{PROFILES}/first.toml");
    let mut profile = File::options().append(true).open(&file).with_context(|| format!("open {file}"))?;
    for (id, value) in BEHIND {
        writeln!(profile, "\"{id}\" = {value}").with_context(|| format!("write {file}"))?;
    }
    let (mut kill_count, mut held_count, mut met_count) = (0, 0, 0);
    while kill_count < KILLS || (met_count == 0 && kill_count < MOST_KILLS) {
        let moment = kill_count;
        let seen = Cell::new((journal_bytes(), 0));
        let intent_at = Cell::new(None);
        let met = planish::killed_when(&["apply", "first", "--yes"], || {
            let (before, mut line_count) = seen.get();
            let bytes = journal_bytes();
            line_count += usize::from(bytes != before);
            seen.set((bytes, line_count));
            match moment % 3 {
                // A third as soon as the limit is in force: the apply itself keeps it until its holder does.
                0 => Ok(in_force()? == 20),
                // A third behind the outcome of the first step: the holder has it, and there is more to write.
                1 => Ok(line_count >= 2),
                // The others behind the intent: the write comes next.
                _ => {
                    if intent_at.get().is_none() && line_count > 0 {
                        intent_at.set(Some(Instant::now()));
                    }
                    let wait = Duration::from_millis(moment % KILLS * 20);
                    Ok(intent_at.get().is_some_and(|at| at.elapsed() >= wait))
                }
            }
        })?;
        let is_held = in_force()? == 20;
        kill_count += 1;
        held_count += u64::from(is_held);
        met_count += u64::from(is_held && met);
        // At once: a process that is about to hold the limit must not be passed over.
        planish::json(&["undo", "--all"], &[0])?;
        ensure!(
            in_force()? == NO_LIMIT && holders()?.is_empty(),
            "killed at moment {moment}: {} us by {:?}",
            in_force()?,
            holders()?
        );
    }
    ensure!(met_count > 0, "of {kill_count} kills none met an apply at work with the limit in force");
    Ok(Outcome::Ok(format!(
        "{kill_count} kills, {held_count} with the limit in force, {met_count} of them at work: none left it"
    )))
}

/// The limit in force. To read it limits nothing.
pub fn in_force() -> Result<i32> {
    let mut bytes = [0; 4];
    let read = File::open(DEVICE).and_then(|mut device| device.read_exact(&mut bytes));
    read.with_context(|| format!("read {DEVICE}"))?;
    Ok(if cfg!(target_endian = "big") { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) })
}

/// Processes that have the device open.
pub fn holders() -> Result<Vec<i32>> {
    let processes = fs::read_dir("/proc").context("list /proc")?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &i32| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        descriptors
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|at| at.as_os_str() == DEVICE))
    };
    Ok(pids.filter(holds).collect())
}

fn wait_for(holds: impl Fn() -> Result<bool>) -> Result<()> {
    for _ in 0..500 {
        if holds()? {
            return Ok(());
        }
        sleep(Duration::from_millis(10));
    }
    anyhow::bail!("it did not come to that in five seconds")
}

fn journal_bytes() -> u64 {
    fs::metadata("/var/lib/planish/journal.jsonl").map_or(0, |file| file.len())
}

pub fn wanted(name: &str, limit_us: u32) -> Result<()> {
    fs::create_dir_all(PROFILES).with_context(|| format!("make {PROFILES}"))?;
    let text = format!(
        "name = \"{name}\"\nsummary = \"A limit that is held.\"\n\n[want]\n\"cpu.dma_latency_us\" = {limit_us}\n"
    );
    let file = format!("{PROFILES}/{name}.toml");
    fs::write(&file, text).with_context(|| format!("write {file}"))
}
