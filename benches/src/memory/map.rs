//! What a map costs: of a server with 2 GiB of shared memory, and of one with 60,000 mappings; beside what a plain
//! read of smaps costs in the same run, and numastat where it is installed.
//!
//! The server is this program once more. Its memory is all its own mapping too, so that smaps has as much to walk as
//! a map has: what smaps leaves out of a real server's segment is no saving of time here.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous, pages};

use crate::process::milliseconds;
use crate::row::{Figure, Limit, Rows};

/// Length of the server's shared memory.
const SERVER_BYTES: usize = 2 << 30;
/// Memory that must stay free beside the server.
const SPARE_BYTES: u64 = 6 << 30;
/// Mappings of a splintered process, below the kernel's usual limit of 65,530.
const MAPPINGS: usize = 60_000;
/// Runs of each measurement.
const RUNS: usize = 9;

/// Measures every row of the memory plane.
pub fn measure(planish: &Path, rows: &mut Rows) -> Result<()> {
    let at_most = |limit| (Limit::AtMost, limit);
    let room = || room(SERVER_BYTES as u64);
    let server = room().and_then(|()| Server::start("base"));
    compare(planish, rows, "2 GiB shared, base pages", at_most(1000.0), 12.0, &server);
    drop(server);
    let pool = room().and_then(|()| Pool::raise(2 << 20, SERVER_BYTES));
    let server =
        pool.as_ref().map_err(|error| anyhow::anyhow!("{error:#}")).and_then(|_| Server::start("huge"));
    compare(planish, rows, "2 GiB shared, 2 MiB pages", at_most(5.0), 8.0, &server);
    drop(server);
    drop(pool);
    let server = Server::start("splintered");
    compare(planish, rows, "60,000 mappings", at_most(150.0), 1.0, &server);
    Ok(())
}

/// Three rows of one process: its map, the same over a plain read of smaps, and over numastat.
fn compare(
    planish: &Path,
    rows: &mut Rows,
    name: &str,
    limit: (Limit, f64),
    smaps_ratio: f64,
    server: &Result<Server>,
) {
    let server = || server.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
    let timed = |command: &dyn Fn(&str) -> Command| -> Result<Figure> {
        let pid = server()?.pid();
        milliseconds(RUNS, &[0], || Ok(()), || command(&pid))
    };
    let map = |pid: &str| {
        let mut command = Command::new(planish);
        command.args(["map", pid, "--json"]);
        command
    };
    let smaps = |pid: &str| {
        let mut command = Command::new("cat");
        command.arg(format!("/proc/{pid}/smaps"));
        command
    };
    let numastat = |pid: &str| {
        let mut command = Command::new("numastat");
        command.args(["-p", pid]);
        command
    };
    let mut own = None;
    rows.add(&format!("map, {name}"), "ms", limit, || {
        let figure = timed(&map)?;
        own = Some(figure);
        Ok(figure)
    });
    let ratio = |other: Result<Figure>| {
        let (own, other) = (own.context("the map was not measured")?, other?);
        let over = |value: f64| value / other.value;
        Ok(Figure { value: over(own.value), low: over(own.low), high: over(own.high) })
    };
    rows.add(&format!("map / cat smaps, {name}"), "ratio", (Limit::AtMost, smaps_ratio), || {
        ratio(timed(&smaps))
    });
    if Command::new("numastat").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok() {
        let name = format!("map / numastat -p, {name}");
        rows.add(&name, "ratio", (Limit::AtMost, smaps_ratio), || ratio(timed(&numastat)));
    }
}

/// Refuses to take memory that the machine does not have to spare.
fn room(bytes: u64) -> Result<()> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let available = kilobytes.context("no MemAvailable")? << 10;
    ensure!(available >= bytes + SPARE_BYTES, "{} MiB are available, too few", available >> 20);
    Ok(())
}

/// Pages added to the pool of one size; given back when dropped.
struct Pool {
    file: String,
    added: u64,
}

impl Pool {
    fn raise(page_bytes: usize, bytes: usize) -> Result<Self> {
        let file = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", page_bytes >> 10);
        let wanted = bytes.div_ceil(page_bytes) as u64;
        let before = Self::size(&file)?;
        std::fs::write(&file, (before + wanted).to_string()).with_context(|| format!("write {file}"))?;
        let pool = Self { added: Self::size(&file)?.saturating_sub(before), file };
        ensure!(pool.added >= wanted, "the kernel granted {} of {wanted} pages", pool.added);
        Ok(pool)
    }

    fn size(file: &str) -> Result<u64> {
        let text = std::fs::read_to_string(file).with_context(|| format!("read {file}"))?;
        text.trim().parse().with_context(|| format!("{file} is no number"))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // By subtraction: others raise and lower the pool too.
        let left = Self::size(&self.file).map(|now| now.saturating_sub(self.added));
        let written = left.and_then(|left| Ok(std::fs::write(&self.file, left.to_string())?));
        if let Err(error) = written {
            eprintln!("{} keeps {} pages of ours: {error:#}", self.file, self.added);
        }
    }
}

/// A process with memory of one kind, which ends when dropped.
struct Server(Child);

impl Server {
    fn start(role: &str) -> Result<Self> {
        let program = std::env::current_exe().context("our own path")?;
        let mut command = Command::new(program);
        command.args(["server", "--role", role]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Self(command.spawn().context("start the server")?);
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().context("its output")?).read_line(&mut line)?;
        ensure!(line.trim() == "ready", "the server with {role} pages ended");
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
    let page = match role {
        "base" | "splintered" => PageRequest::Base,
        "huge" => PageRequest::HugeTlb(2 << 20),
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
    println!("ready");
    std::io::stdout().flush()?;
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}
