//! What a map costs: of a server with 2 GiB of shared memory, and of one with 60,000 mappings; beside what a plain
//! read of smaps costs in the same run, and numastat where it is installed.
//!
//! The server is this program once more. What it shares is either in its own page tables, so that smaps has as much
//! to walk as a map has, or in none of them, as where others have filled it: there smaps tells nothing, and is not
//! compared.
#![expect(unsafe_code, reason = "a server maps pages of a file one by one")]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use planish_sys::{Advice, MapOptions, PageRequest, child, map_anonymous, pages};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice as MmAdvice, MapFlags, ProtFlags, madvise, mmap};

use super::pool::Pool;
use super::{first_line, measured, room};
use crate::rounds::{Arm, Rounds, figure};
use crate::row::{Limit, Rows};

/// Length of the server's shared memory.
const SERVER_BYTES: usize = 2 << 30;
/// Mappings of a splintered or scattered process, below the kernel's usual limit of 65,530.
const MAPPINGS: usize = 60_000;
/// From one page to the next of an object whose mappings lie far apart: farther than a look passes over rather than
/// call again.
const FAR_PAGES: usize = 64;
/// Rounds of each measurement, and of one of a few milliseconds, in which a single interruption is a quarter.
const RUNS: usize = 11;
const RUNS_OF_MILLISECONDS: usize = 51;

/// Adds the rows.
pub fn measure(planish: &Path, rows: &mut Rows) {
    let at_most = |limit| (Limit::AtMost, limit);
    let room = || room(SERVER_BYTES as u64);
    let server = room().and_then(|()| Server::start("base"));
    compare(planish, rows, ("2 GiB shared, base pages", RUNS), at_most(1000.0), Some(5.0), &server);
    drop(server);
    let server = room().and_then(|()| Server::start("base-of-others"));
    compare(planish, rows, ("2 GiB shared, base pages of others", RUNS), at_most(1000.0), None, &server);
    drop(server);
    let pool = room().and_then(|()| Pool::raise(2 << 20, SERVER_BYTES));
    let start =
        |role| pool.as_ref().map_err(|error| anyhow::anyhow!("{error:#}")).and_then(|_| Server::start(role));
    let server = start("huge");
    let kind = ("2 GiB shared, 2 MiB pages", RUNS_OF_MILLISECONDS);
    compare(planish, rows, kind, at_most(5.0), Some(4.0), &server);
    drop(server);
    let server = start("huge-of-others");
    let kind = ("2 GiB shared, 2 MiB pages of others", RUNS_OF_MILLISECONDS);
    compare(planish, rows, kind, at_most(5.0), None, &server);
    drop(server);
    drop(pool);
    let server = Server::start("splintered");
    compare(planish, rows, ("60,000 mappings", RUNS), at_most(150.0), Some(1.0), &server);
    drop(server);
    // Twice as long as a read of smaps: each part is one of the object, too.
    let server = Server::start("scattered");
    compare(planish, rows, ("60,000 mappings of one object", RUNS), at_most(150.0), Some(2.0), &server);
    drop(server);
    let server = Server::start("far");
    compare(
        planish,
        rows,
        ("60,000 mappings of one object, far apart", RUNS),
        at_most(150.0),
        Some(2.0),
        &server,
    );
}

/// Rows of one process, of so many rounds: its map by the clock, and its CPU time over that of a plain read of smaps
/// and of numastat, where these have as much to read.
fn compare(
    planish: &Path,
    rows: &mut Rows,
    (name, runs): (&str, usize),
    limit: (Limit, f64),
    smaps_ratio: Option<f64>,
    server: &Result<Server>,
) {
    let has_numastat =
        Command::new("numastat").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    let wall = RefCell::new(Vec::new());
    let rounds = server.as_ref().map_err(|error| anyhow::anyhow!("{error:#}")).and_then(|server| {
        let pid = server.pid();
        let mut map = Command::new(planish);
        map.args(["map", &pid, "--json"]);
        let mut smaps = Command::new("cat");
        smaps.arg(format!("/proc/{pid}/smaps"));
        let mut numastat = Command::new("numastat");
        numastat.args(["-p", &pid]);
        let timed = |command: &mut Command| -> Result<f64> {
            let (milliseconds, cpu) = run(command)?;
            wall.borrow_mut().extend((command.get_program() == planish).then_some(milliseconds));
            Ok(cpu)
        };
        let mut arms: Vec<Arm<'_>> = vec![Box::new(|| timed(&mut map))];
        if smaps_ratio.is_some() {
            arms.push(Box::new(|| timed(&mut smaps)));
        }
        if smaps_ratio.is_some() && has_numastat {
            arms.push(Box::new(|| timed(&mut numastat)));
        }
        Rounds::measure(runs, &mut arms)
    });
    let rounds = || rounds.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
    rows.add(&format!("map, {name}"), "ms", limit, || {
        rounds()?;
        // The first of them was to warm up.
        let logs: Vec<f64> = wall.borrow().iter().skip(1).map(|time: &f64| time.ln()).collect();
        figure(&logs)
    });
    let Some(smaps_ratio) = smaps_ratio else { return };
    rows.add_with_note(
        &format!("map / cat smaps, {name}, CPU time"),
        "ratio",
        (Limit::AtMost, smaps_ratio),
        || {
            let rounds = rounds()?;
            let note = format!("{:.1} ms, cat smaps {:.1} ms", rounds.median(0), rounds.median(1));
            Ok((rounds.over(0, 1)?, note))
        },
    );
    // No limit: it adds up what numa_maps says of the pages that this process has mapped, and looks at none by itself.
    // Neither does it tell the size of a page that base-page entries map, nor what of shared memory lies unmapped.
    rows.beside(&format!("map / numastat -p, {name}, CPU time"), "ratio", || {
        ensure!(has_numastat, "numastat is not installed here (package numactl)");
        rounds()?.over(0, 2)
    });
}

/// Milliseconds of a process by the clock, and of CPU time.
fn run(command: &mut Command) -> Result<(f64, f64)> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let started = command.spawn().with_context(|| format!("start {}", command.get_program().display()))?;
    let (status, usage) = child::wait_with_usage(started).context("wait for it")?;
    let wall = start.elapsed().as_secs_f64() * 1e3;
    ensure!(status.success(), "{command:?} left with {status}");
    Ok((wall, usage.cpu().as_secs_f64() * 1e3))
}

/// A process with memory of one kind, which ends when dropped.
struct Server(Child);

impl Server {
    fn start(role: &str) -> Result<Self> {
        let mut server = Self(measured(role).spawn().context("start the server")?);
        ensure!(first_line(&mut server.0)? == "ready", "the server with {role} pages ended");
        Ok(server)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server's side: takes its memory, says so, and waits until its input ends.
pub fn serve(role: &str) -> Result<()> {
    match role {
        "scattered" => return serve_scattered(2),
        "far" => return serve_scattered(FAR_PAGES),
        _ => {}
    }
    let page = match role {
        "base" | "base-of-others" | "splintered" => PageRequest::Base,
        "huge" | "huge-of-others" => PageRequest::HugeTlb(2 << 20),
        other => bail!("no server has {other} pages"),
    };
    let base = pages::base_bytes();
    let bytes = if role == "splintered" { MAPPINGS * base } else { SERVER_BYTES };
    let shared = role != "splintered";
    let mapping = map_anonymous(bytes, MapOptions { shared, populate: true, ..MapOptions::new(page) })?;
    if role == "splintered" {
        for first in (0..bytes).step_by(2 * base) {
            mapping.advise_range(first..first + base, Advice::HugePage)?;
        }
    }
    if role.ends_with("-of-others") {
        // SAFETY: of shared memory it takes the entries out of our page tables and leaves the pages where they are.
        unsafe { madvise(mapping.as_ptr().cast(), bytes, MmAdvice::LinuxDontNeed)? };
    }
    stand()
}

/// Pages of a file in memory, each mapped by itself; from one to the next are as many as `apart`.
fn serve_scattered(apart: usize) -> Result<()> {
    let base = pages::base_bytes();
    let file = memfd_create("scattered", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, (apart * MAPPINGS * base) as u64)?;
    for number in 0..MAPPINGS {
        let (access, offset) = (ProtFlags::READ | ProtFlags::WRITE, (apart * number * base) as u64);
        // SAFETY: a fresh mapping at an address of the kernel's choice; its one page is written.
        unsafe {
            let page = mmap(null_mut(), base, access, MapFlags::SHARED, &file, offset)?;
            page.cast::<u8>().write_volatile(1);
        }
    }
    stand()
}

/// Says that all is there, and waits until the input ends.
fn stand() -> Result<()> {
    println!("ready");
    std::io::stdout().flush()?;
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}
