//! Schedules of the kernel's own threads, on a real kernel: judged by fields 19, 40 and 41 of their `stat`.

use crate::check::{Outcome, Report};
use crate::planish;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::time::{Duration, Instant};

const PROFILES: &str = "/etc/planish/profiles";
const NAME: &str = "ksoftirqd/0";
const COMM: &str = "/proc/1/comm";
/// Nice value, realtime priority and class of an ordinary thread, and of what is asked for.
const ORDINARY: [i64; 3] = [0, 0, 0];
const FIRST: [i64; 3] = [0, 2, 1];
const APPLY: [&str; 5] = ["apply", "threads", "--allow", "availability", "--yes"];
/// Kills of an apply.
const KILLS: u64 = 6;
/// On a busy machine six may all come too late.
const MOST_KILLS: u64 = 60;

/// Set, lost, set again, put back, and killed.
pub fn run_all(report: &mut Report) {
    if !["plan", "apply", "check", "undo"].iter().all(|command| planish::knows(command)) {
        return;
    }
    report.check("threads.life", life);
    report.check("threads.killed", killed);
}

fn life() -> Result<Outcome> {
    ensure!(schedule()? == ORDINARY, "{NAME} shows {:?} before anything was done", schedule()?);
    // Process 1 calls itself so: a program may have any name.
    let own = fs::read_to_string(COMM).context("our own name")?;
    fs::write(COMM, NAME).context("take another name")?;
    let seen = (|| {
        wanted()?;
        let refused = planish::json(&["plan", "threads"], &[0])?;
        ensure!(refused["result"]["steps"].as_array().is_some_and(Vec::is_empty), "unasked: {refused}");
        apply()?;
        ensure!(schedule()? == FIRST, "{NAME} shows {:?} after the apply", schedule()?);
        let named = fs::read_to_string(COMM).context("our own name")?;
        ensure!(named.trim() == NAME && stat(1)? == ORDINARY, "{named}: process 1 was set to {:?}", stat(1)?);
        // Nothing brings it back at a boot, and check says so.
        let checked = planish::json(&["check", "threads"], &[0])?;
        let state = &checked["result"]["knobs"][0]["state"];
        ensure!(state == "lost-at-boot", "check calls it {state}");
        let again = apply()?;
        ensure!(again["result"]["outcomes"].as_array().is_some_and(Vec::is_empty), "applied twice: {again}");
        Ok(())
    })();
    let undone = planish::json(&["undo", "--all"], &[0]);
    let named = fs::write(COMM, own.trim()).context("take our own name back");
    seen?;
    undone?;
    named?;
    ensure!(schedule()? == ORDINARY, "{NAME} shows {:?} after the undo", schedule()?);
    Ok(Outcome::Ok("fifo:2 and ordinary again".to_owned()))
}

/// However an apply is killed, undo leaves the thread as it was.
fn killed() -> Result<Outcome> {
    wanted()?;
    let (mut kill_count, mut set_count) = (0, 0);
    while kill_count < KILLS || (set_count == 0 && kill_count < MOST_KILLS) {
        let moment = kill_count;
        // Every second one as soon as the thread is set, the others at some moment.
        let begin = Instant::now();
        let wait = Duration::from_millis(100 + moment % KILLS * 60);
        planish::killed_when(&APPLY, || {
            if moment % 2 == 0 { Ok(schedule()? == FIRST) } else { Ok(begin.elapsed() >= wait) }
        })?;
        kill_count += 1;
        set_count += usize::from(schedule()? == FIRST);
        planish::json(&["undo", "--all"], &[0])?;
        ensure!(schedule()? == ORDINARY, "killed at moment {moment}: {:?}", schedule()?);
    }
    ensure!(set_count > 0, "of {kill_count} kills none met a thread that was set");
    Ok(Outcome::Ok(format!("{kill_count} kills, {set_count} with the thread set, none of them left it")))
}

fn apply() -> Result<serde_json::Value> {
    planish::json(&APPLY, &[0])
}

/// What the thread of the kernel shows.
fn schedule() -> Result<[i64; 3]> {
    let processes = fs::read_dir("/proc").context("list /proc")?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text("comm").trim() == NAME && text("cmdline").is_empty()
    };
    let pid = pids.into_iter().find(is_it).with_context(|| format!("no {NAME} is here"))?;
    stat(pid)
}

/// Fields 19, 40 and 41 of `stat` (Documentation/filesystems/proc.rst).
fn stat(pid: u32) -> Result<[i64; 3]> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).context("read stat")?;
    let (_, rest) = text.rsplit_once(')').context("a name in brackets")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field =
        |number: usize| fields.get(number - 3).and_then(|field| field.parse().ok()).context("a number");
    Ok([field(19)?, field(40)?, field(41)?])
}

fn wanted() -> Result<()> {
    fs::create_dir_all(PROFILES).with_context(|| format!("make {PROFILES}"))?;
    let text = "name = \"threads\"\nsummary = \"A thread of the kernel before others.\"\n\n[want]\n\
                \"sched.ksoftirqd\" = { value = \"fifo:2\", only = \"0\" }\n";
    fs::write(format!("{PROFILES}/threads.toml"), text).context("write a profile")
}
