//! The memory plane: what a map costs, what the preload adds, and what arenas give. Each row stands beside what it is
//! compared with in the same run, in rounds of random order ([`crate::rounds`]).
//!
//! Rows that need more memory than the machine can spare are refused, with the figures. Pages that a row needs of a
//! pool are added to it and given back, also where this program is ended meanwhile ([`pool`]).

mod bump;
mod calls;
mod map;
mod partitions;
mod pool;
mod prefault;
mod random;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use planish_sys::child::{self, ChildSetup};
use rustix::time::{ClockId, clock_gettime};

use crate::row::Rows;

/// Memory that must stay free beside what is measured.
const SPARE_BYTES: u64 = 6 << 30;

/// Measures every row of the memory plane.
pub fn measure(planish: &Path, rows: &mut Rows) -> Result<()> {
    map::measure(planish, rows);
    calls::measure(planish, rows);
    bump::measure(rows);
    partitions::measure(rows);
    prefault::measure(rows);
    random::measure(rows);
    Ok(())
}

/// The side of a process that is started to be measured, or to hold pages.
pub fn serve(role: &str) -> Result<()> {
    let words: Vec<&str> = role.split_whitespace().collect();
    let number = |word: &str| word.parse::<u64>().with_context(|| format!("{word} is no number"));
    match words[..] {
        ["base" | "base-of-others" | "huge" | "huge-of-others" | "splintered" | "scattered" | "far"] => {
            map::serve(role)
        }
        ["calls", word] => calls::serve(word),
        ["arena" | "arena-blocks" | "regions"] => partitions::serve(role),
        ["pool", kilobytes, pages] => pool::keep(number(kilobytes)?, number(pages)?),
        ["borrow", kilobytes, pages] => pool::borrow(number(kilobytes)?, number(pages)?),
        _ => bail!("there is no role {role}"),
    }
}

/// This program as a process that is measured. It is killed when we end, for it may have gigabytes.
fn measured(role: &str) -> Command {
    let mut command = start(role);
    child::prepare(&mut command, ChildSetup { die_with_parent: true, ..ChildSetup::default() });
    command
}

/// This program in another role.
fn start(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["server", "--role", role]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The first line that a child of ours says.
fn first_line(child: &mut Child) -> Result<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Refuses to take memory that the machine does not have to spare.
fn room(bytes: u64) -> Result<()> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let available = kilobytes.context("no MemAvailable")? << 10;
    let (wanted, has) = ((bytes + SPARE_BYTES) >> 20, available >> 20);
    ensure!(
        has >= wanted,
        "{has} MiB are available, and {wanted} are wanted, {} to spare",
        SPARE_BYTES >> 20
    );
    Ok(())
}

/// CPU time that this thread has used, in nanoseconds: what others on the machine take is not in it.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
