//! What `planish map` tells is what the kernel itself has given away: pages of a pool by node, and on two nodes each
//! node's own counts of shared and anonymous memory, before and after a process that takes some of both.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use crate::check::Outcome;
use crate::machine::Shape;
use crate::placed::pooled;
use crate::{planish, settings};

/// The word that has this program stand still with memory on two nodes.
pub const WORD: &str = "on-nodes";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
pub const POOL_PAGE: u64 = 2 * MIB;
/// Pages of the pool that are mapped, and so reserved; and those of them that are written on each node.
const POOL_PAGES: u64 = 16;
pub const POOL_WRITTEN: [u64; 2] = [6, 4];
/// Bytes of shared and of private memory that are written on each node.
pub const SHARED: [u64; 2] = [20 * MIB, 12 * MIB];
pub const PRIVATE: [u64; 2] = [8 * MIB, 16 * MIB];
/// What else happens in this guest meanwhile, and what a process has beside what it maps for this.
const SLACK: u64 = MIB;

/// Writes memory of each kind from a CPU of each node, says so, and waits to be ended.
pub fn stand() {
    let pool = map(POOL_PAGES * POOL_PAGE, MapFlags::SHARED | MapFlags::HUGETLB | MapFlags::HUGE_2MB);
    let shared = map(SHARED.iter().sum(), MapFlags::SHARED);
    let private = map(PRIVATE.iter().sum(), MapFlags::PRIVATE);
    let (mut pool_at, mut shared_at, mut private_at) = (0, 0, 0);
    for node in [0, 1] {
        run_on(node);
        write(pool, &mut pool_at, POOL_WRITTEN[node] * POOL_PAGE);
        write(shared, &mut shared_at, SHARED[node]);
        write(private, &mut private_at, PRIVATE[node]);
    }
    println!("ready");
    std::io::stdout().flush().expect("standard output");
    sleep(Duration::from_secs(600));
}

fn map(bytes: u64, flags: MapFlags) -> *mut u8 {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place of a new mapping.
    unsafe { mmap_anonymous(std::ptr::null_mut(), bytes as usize, rights, flags) }.expect("memory").cast()
}

/// Writes so many bytes more of a mapping, each page once.
fn write(start: *mut u8, at: &mut usize, bytes: u64) {
    for offset in (*at..*at + bytes as usize).step_by(4096) {
        // SAFETY: inside the mapping, which was made so large and lives as long as this process.
        unsafe { start.add(offset).write_volatile(1) };
    }
    *at += bytes as usize;
}

/// Goes to the first CPU of a node.
fn run_on(node: usize) {
    let list =
        settings::read(&format!("/sys/devices/system/node/node{node}/cpulist")).expect("CPUs of a node");
    let first = list.split([',', '-']).next().and_then(|number| number.parse().ok());
    let mut cpus = CpuSet::new();
    cpus.set(first.expect("a node with CPUs"));
    sched_setaffinity(None, &cpus).expect("a CPU of this guest");
}

/// What the kernel has of both nodes, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    pool_free: [u64; 2],
    pool_reserved: u64,
    shared: [u64; 2],
    anonymous: [u64; 2],
}

impl Kernel {
    fn read() -> Result<Self> {
        // Counts of CPUs are added up now and then; now.
        fs::write("/proc/sys/vm/stat_refresh", "1").context("refresh the counts of memory")?;
        let pool = |node: u32| -> Result<u64> {
            let file =
                format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/free_hugepages");
            Ok(settings::read(&file)?.parse::<u64>()? * POOL_PAGE)
        };
        let of = |node: u32, key: &str| -> Result<u64> {
            let text = settings::read(&format!("/sys/devices/system/node/node{node}/meminfo"))?;
            let line =
                text.lines().find(|line| line.contains(&format!(" {key}:"))).context("no such count")?;
            let count = line.split_ascii_whitespace().nth(3).context("no number")?;
            Ok(count.parse::<u64>()? * KIB)
        };
        let reserved = settings::read("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages")?;
        Ok(Self {
            pool_free: [pool(0)?, pool(1)?],
            pool_reserved: reserved.parse::<u64>()? * POOL_PAGE,
            shared: [of(0, "Shmem")?, of(1, "Shmem")?],
            anonymous: [of(0, "AnonPages")?, of(1, "AnonPages")?],
        })
    }
}

/// Compares what `map` tells with what the kernel has given away.
pub fn equals(shape: &Shape) -> Result<Outcome> {
    if shape.node_count - shape.node_cpuless_count < 2 {
        return Ok(Outcome::Skip("one node with CPUs".to_owned()));
    }
    pooled("16", || {
        let before = Kernel::read()?;
        let (there, map, after) = beside_writer(|pid| {
            let there = Kernel::read()?;
            let map = planish::json(&["map", &pid.to_string()], &[0])?;
            Ok((there, map, Kernel::read()?))
        })?;
        ensure!(
            (there.pool_free, there.pool_reserved) == (after.pool_free, after.pool_reserved),
            "the look changed the pool: {there:?}, then {after:?}"
        );
        let unwritten = (POOL_PAGES - POOL_WRITTEN.iter().sum::<u64>()) * POOL_PAGE;
        ensure!(there.pool_reserved - before.pool_reserved == unwritten, "{before:?}, then {there:?}");
        compare(&map, &before, &there)
    })
}

/// Looks at the writer once it stands still, and ends it.
pub fn beside_writer<T>(look: impl FnOnce(u32) -> Result<T>) -> Result<T> {
    beside(WORD, look)
}

/// The same of this program by another word.
pub fn beside<T>(word: &str, look: impl FnOnce(u32) -> Result<T>) -> Result<T> {
    let mut child = Command::new("/proc/self/exe");
    let mut child = child.arg(word).stdout(Stdio::piped()).spawn().context("start the writer")?;
    let mut ready = String::new();
    let read = BufReader::new(child.stdout.take().context("its output")?).read_line(&mut ready);
    let looked = read.context("wait for the writer").and_then(|_| {
        ensure!(ready.contains("ready"), "the writer said {ready:?}");
        look(child.id())
    });
    child.kill().context("end the writer")?;
    child.wait().context("end the writer")?;
    looked
}

/// Copies what this kernel tells of the writer into a folder, for those who read such files elsewhere.
pub fn record(shape: &Shape, folder: &Path) -> Result<()> {
    if shape.node_count - shape.node_cpuless_count < 2 {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let copy = |pid: u32| {
        for file in ["maps", "numa_maps", "smaps", "stat", "status"] {
            let text = fs::read(format!("/proc/{pid}/{file}")).with_context(|| format!("read {file}"))?;
            fs::write(folder.join(file), text).with_context(|| format!("write {file}"))?;
        }
        Ok(Outcome::Ok(String::new()))
    };
    pooled("16", || beside_writer(copy)).map(drop)
}

fn compare(map: &Value, before: &Kernel, there: &Kernel) -> Result<Outcome> {
    let rows = map["result"]["rows"].as_array().context("no result.rows")?;
    let mut told: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for row in rows {
        let of = if row["backing"] == "hugetlb" { "pool" } else { row["kind"].as_str().unwrap_or_default() };
        // What lies nowhere is missed in the sums, if it should be in one of them.
        let Some(node) = row["node"].as_u64() else { continue };
        *told.entry((of, node)).or_default() += row["resident_bytes"].as_u64().unwrap_or(0);
    }
    let of = |what, node: usize| told.get(&(what, node as u64)).copied().unwrap_or(0);
    let mut lines = Vec::new();
    for node in [0, 1] {
        let pool = before.pool_free[node] - there.pool_free[node];
        ensure!(of("pool", node) == pool, "of the pool of node {node} {pool} bytes are taken: {told:?}");
        ensure!(pool == POOL_WRITTEN[node] * POOL_PAGE, "{before:?}, then {there:?}");
        let (shared, anonymous) =
            (there.shared[node] - before.shared[node], there.anonymous[node] - before.anonymous[node]);
        ensure!(shared >= SHARED[node] && anonymous >= PRIVATE[node], "{before:?}, then {there:?}");
        let shared_told = of("shared", node);
        ensure!(shared_told.abs_diff(shared) <= 64 * KIB, "node {node} has {shared} shared: {told:?}");
        let own = of("anon", node) + of("heap", node) + of("stack", node);
        ensure!(own.abs_diff(anonymous) <= SLACK, "node {node} has {anonymous} anonymous: {told:?}");
        lines.push(format!(
            "node {node}: pool {} of {} MiB, shared {} of {} KiB, anonymous {} of {} KiB",
            of("pool", node) / MIB,
            pool / MIB,
            shared_told / KIB,
            shared / KIB,
            own / KIB,
            anonymous / KIB
        ));
    }
    Ok(Outcome::Ok(lines.join("; ")))
}
