//! The checks, in the order in which they run. Each leaves the guest as it found it.

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::{
    cards, control, held, mapped, moved, partition, placed, planish, record, refused, scanned, servers,
    settings, swapped, text, threads, tree, zeroes,
};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Runs every check that this guest can have.
pub fn run_all(shape: &Shape, report: &mut Report) {
    report.check("guest.shape", || guest_shape(shape));
    // As it was booted: checks leave traces of what they did.
    if shape.record {
        return report.check("guest.record", || guest_record(shape));
    }
    if shape.servers {
        return servers::run_all(shape, report);
    }
    if shape.text {
        return text::run_all(report);
    }
    report.check("guest.pools", guest_pools);
    if planish::present() {
        report.check("planish.version", version);
        // A command appears when it works; one that is missing is no failure of the guest.
        for (command, check) in COMMANDS {
            if planish::knows(command) {
                report.check(&format!("planish.{command}"), || check(shape));
            }
        }
        if planish::knows("map") {
            report.check("map.zeroes", zeroes::map);
            report.check("map.kernel", || mapped::equals(shape));
            report.check("map.swap", swapped::stays);
            report.check("map.tree", tree::counts_once);
            report.check("map.tree.tables", tree::counts_once_by_tables);
            report.check("map.tree.frames", tree::counts_without_frames);
        }
        placed::run_all(shape, report);
        scanned::run_all(shape, report);
        moved::run_all(shape, report);
        refused::run_all(shape, report);
        control::run_all(report);
        partition::run_all(report);
        cards::run_all(report);
        held::run_all(report);
        threads::run_all(report);
        report.check("workload.cgroup", limited_workload);
        text::run_all(report);
    }
}

/// A check of one command, given what QEMU was told to build.
type Check = fn(&Shape) -> Result<Outcome>;

const COMMANDS: &[(&str, Check)] = &[("doctor", doctor), ("topo", topo), ("map", map)];

/// QEMU built what was asked for; without this every later comparison would mean nothing.
fn guest_shape(shape: &Shape) -> Result<Outcome> {
    let nodes = numbered("/sys/devices/system/node", "node")?;
    let cpus = numbered("/sys/devices/system/cpu", "cpu")?;
    let mut cpuless_count = 0;
    for node in &nodes {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        cpuless_count += usize::from(settings::read(&path)?.is_empty());
    }
    ensure!(nodes.len() == shape.node_count, "{} nodes, asked for {}", nodes.len(), shape.node_count);
    ensure!(cpus.len() == shape.cpu_count, "{} CPUs, asked for {}", cpus.len(), shape.cpu_count);
    ensure!(cpuless_count == shape.node_cpuless_count, "{cpuless_count} nodes without CPUs");
    Ok(Outcome::Ok(format!("{} nodes, {cpuless_count} without CPUs, {} CPUs", nodes.len(), cpus.len())))
}

/// The kernel grants and takes back pages on each node by itself: the ground that pool knobs stand on.
fn guest_pools() -> Result<Outcome> {
    const WANTED: &str = "4";
    let nodes = numbered("/sys/devices/system/node", "node")?;
    for node in &nodes {
        let pool = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
        if fs::metadata(&pool).is_err() {
            return Ok(Outcome::Skip(format!("no {pool}")));
        }
        let before = settings::read(&pool)?;
        fs::write(&pool, WANTED).with_context(|| format!("write {pool}"))?;
        let granted = settings::read(&pool)?;
        fs::write(&pool, &before).with_context(|| format!("restore {pool}"))?;
        ensure!(granted == WANTED, "node {node} granted {} of {WANTED}", granted);
        ensure!(settings::read(&pool)? == before, "node {node} did not take the pages back");
    }
    Ok(Outcome::Ok(format!("{WANTED} pages on each of {} nodes and back", nodes.len())))
}

/// The static binary starts on this kernel at all.
fn version() -> Result<Outcome> {
    let run = planish::run(&["--version"])?;
    ensure!(run.exit == 0, "left with {}: {}", run.exit, run.stderr.trim());
    Ok(Outcome::Ok(run.stdout))
}

/// The doctor looks and writes nothing: no setting of the guest differs afterwards.
fn doctor(_shape: &Shape) -> Result<Outcome> {
    let before = settings::read_all();
    let envelope = planish::json(&["doctor"], &[0, 1])?;
    let findings = envelope["result"]["findings"].as_array().context("no result.findings")?;
    settings::ensure_same(&before, &settings::read_all())?;
    Ok(Outcome::Ok(format!("{} findings, {} settings untouched", findings.len(), before.len())))
}

/// planish sees the machine that QEMU built.
fn topo(shape: &Shape) -> Result<Outcome> {
    let envelope = planish::json(&["topo"], &[0])?;
    let list = |key: &str| envelope["result"][key].as_array().with_context(|| format!("no result.{key}"));
    let (nodes, cpus) = (list("nodes")?, list("cpus")?);
    let cpuless = nodes.iter().filter(|node| node["cpus"] == "").count();
    ensure!(nodes.len() == shape.node_count, "{} nodes, built {}", nodes.len(), shape.node_count);
    ensure!(cpus.len() == shape.cpu_count, "{} CPUs, built {}", cpus.len(), shape.cpu_count);
    ensure!(cpuless == shape.node_cpuless_count, "{cpuless} nodes without CPUs");
    for (index, node) in nodes.iter().enumerate() {
        let to_itself = &node["distances"][index];
        ensure!(to_itself == 10, "node {index} is {to_itself} away from itself");
    }
    Ok(Outcome::Ok(format!("{} nodes, {} CPUs", nodes.len(), cpus.len())))
}

/// More memory than the control group allows is refused, and nobody is killed for it: what `memory.max` of version 2
/// does, this kernel decides and no fixture.
fn limited_workload() -> Result<Outcome> {
    const TOP: &str = "/sys/fs/cgroup";
    const GROUP: &str = "/sys/fs/cgroup/limited";
    if settings::read(&format!("{TOP}/cgroup.controllers"))?
        .split(' ')
        .all(|controller| controller != "memory")
    {
        return Ok(Outcome::Skip("this kernel has no memory controller".to_owned()));
    }
    let write = |path: String, text: &str| fs::write(&path, text).with_context(|| format!("write {path}"));
    write(format!("{TOP}/cgroup.subtree_control"), "+memory")?;
    fs::create_dir(GROUP).with_context(|| format!("make {GROUP}"))?;
    write(format!("{GROUP}/memory.max"), &(48 << 20).to_string())?;
    // Children begin in the group of their parent.
    write(format!("{GROUP}/cgroup.procs"), "1")?;
    let workload = ["workload", "series", "--pages", "4k", "--rounds", "1", "--bytes"];
    let runs = ["64M", "24M"].map(|bytes| planish::run(&[&workload[..], &[bytes]].concat()));
    write(format!("{TOP}/cgroup.procs"), "1")?;
    fs::remove_dir(GROUP).with_context(|| format!("remove {GROUP}"))?;
    let [large, small] = runs;
    let (large, small) = (large?, small?);
    ensure!(large.exit == 3, "64 MiB of 48 left with {}: {}", large.exit, large.stderr);
    ensure!(large.stderr.contains("/limited/memory.max"), "no limit is named: {}", large.stderr);
    ensure!(small.exit == 0, "24 MiB of 48 left with {}: {}", small.exit, small.stderr);
    Ok(Outcome::Ok("64 MiB of 48 were refused, 24 ran".to_owned()))
}

/// Memory that was bound to a node is found there, page by page, and by the same words that the kernel uses.
fn map(shape: &Shape) -> Result<Outcome> {
    let node = shape.node_count - shape.node_cpuless_count - 1;
    let mut workload =
        planish::command(&["workload", "series", "--bytes", "16M", "--pages", "4k", "--serve"]);
    workload.args(["--node", &node.to_string(), "--warm-up", "0"]);
    let mut child =
        workload.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start a workload")?;
    let mut ready = String::new();
    let read = BufReader::new(child.stdout.take().context("its output")?).read_line(&mut ready);
    let mapped = read.context("wait for the workload").and_then(|_| {
        ensure!(ready.contains("ready"), "the workload said {ready:?}");
        planish::json(&["map", &child.id().to_string()], &[0])
    });
    child.kill().context("end the workload")?;
    child.wait().context("end the workload")?;
    let envelope = mapped?;
    let rows = envelope["result"]["rows"].as_array().context("no result.rows")?;
    let on = |wanted: bool| -> u64 {
        let anon = rows.iter().filter(|row| row["kind"] == "anon" && (row["node"] == node) == wanted);
        anon.filter_map(|row| row["resident_bytes"].as_u64()).sum()
    };
    ensure!(on(true) >= 16 << 20, "{} bytes on node {node}: {rows:?}", on(true));
    ensure!(on(false) < 8 << 20, "{} bytes elsewhere: {rows:?}", on(false));
    let seen_by = envelope["result"]["processes"][0]["seen_by"].as_str().context("no seen_by")?;
    Ok(Outcome::Ok(format!(
        "{} KiB on node {node}, {} KiB elsewhere, by {seen_by}",
        on(true) >> 10,
        on(false) >> 10
    )))
}

/// The guest as a recorded host, sent out by the second serial port: in planish's own form where it can record, with
/// what the kernel tells of a process beside it (`writer/`), else as raw trees.
fn guest_record(shape: &Shape) -> Result<Outcome> {
    const FOLDER: &str = "/tmp/host";
    let file_count = if planish::present() && planish::knows("host") {
        planish::json(&["host", "record", FOLDER], &[0])?;
        mapped::record(shape, &Path::new(FOLDER).join("writer"))?;
        record::send_folder(FOLDER.as_ref())?
    } else {
        record::send_kernel_trees()?
    };
    Ok(Outcome::Ok(format!("{file_count} files")))
}

/// The numbers N of entries `<prefix>N` in a sysfs folder, in order.
fn numbered(folder: &str, prefix: &str) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {folder}"))? {
        let name = entry.with_context(|| format!("list {folder}"))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
        numbers.extend(number.and_then(|number| number.parse::<usize>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
