//! `planish move` on real nodes: memory of a process that runs goes to another node and comes back, also after a kill,
//! and what somebody bound stays. Judged by the kernel's own numa_maps.

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// Working set of the process that is moved.
const SET_MIB: u64 = 16;
/// What else it may have: its stacks, its libraries' data.
const REST_MIB: u64 = 6;

/// Runs every check on a guest of two nodes with CPUs.
pub fn run_all(shape: &Shape, report: &mut Report) {
    if !planish::knows("move") {
        return;
    }
    if shape.node_count - shape.node_cpuless_count < 2 {
        report.check("move.one-node", one_node);
        return;
    }
    report.check("move.there-and-back", there_and_back);
    report.check("move.spread", spread);
    report.check("move.killed", killed);
}

/// A process with its working set bound to node 0, until dropped.
struct Victim(Child);

impl Victim {
    fn start() -> Result<Self> {
        let size = format!("{SET_MIB}M");
        let words = ["workload", "series", "--bytes", &size, "--pages", "4k", "--serve"];
        let mut workload = planish::command(&words);
        workload.args(["--node", "0", "--warm-up", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = workload.spawn().context("start a workload")?;
        let mut ready = String::new();
        let output = child.stdout.take().context("its output")?;
        BufReader::new(output).read_line(&mut ready).context("wait for the workload")?;
        ensure!(ready.contains("ready"), "the workload said {ready:?}");
        Ok(Self(child))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Bytes of private memory by node, in the kernel's words.
    fn nodes(&self) -> Result<BTreeMap<u32, u64>> {
        let text = settings::read(&format!("/proc/{}/numa_maps", self.0.id()))?;
        let mut nodes = BTreeMap::new();
        for line in text.lines().filter(|line| line.contains(" anon=") && !line.contains(" file=")) {
            let words = || line.split(' ').filter_map(|word| word.split_once('='));
            let size = words().find(|(key, _)| *key == "kernelpagesize_kB").context("no page size")?.1;
            let page_bytes = size.parse::<u64>().context("a number")? << 10;
            for (key, pages) in words() {
                let node = key.strip_prefix('N').and_then(|node| node.parse().ok());
                if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
                    *nodes.entry(node).or_default() += pages * page_bytes;
                }
            }
        }
        Ok(nodes)
    }

    fn on(&self, node: u32) -> Result<u64> {
        Ok(self.nodes()?.get(&node).copied().unwrap_or(0))
    }

    fn cpus(&self) -> Result<String> {
        let status = settings::read(&format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Ok(line.context("no Cpus_allowed_list")?.trim().to_owned())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn one_node() -> Result<Outcome> {
    let victim = Victim::start()?;
    let run = planish::run(&["move", &victim.pid(), "--to", "0"])?;
    ensure!(run.exit == 3, "left with {}: {}", run.exit, run.stderr);
    Ok(Outcome::Ok(run.stderr.lines().next().unwrap_or_default().to_owned()))
}

fn there_and_back() -> Result<Outcome> {
    let victim = Victim::start()?;
    let (before, cpus) = (victim.nodes()?, victim.cpus()?);
    ensure!(victim.on(0)? >= SET_MIB * MIB, "it begins with {before:?}");
    let bound = planish::json(&["move", &victim.pid(), "--to", "1"], &[0, 1])?;
    let stayed = bound["result"]["processes"][0]["stayed"].to_string();
    ensure!(stayed.contains("policy"), "nothing of a policy in {bound}");
    ensure!(victim.on(0)? >= SET_MIB * MIB, "bound memory was moved: {:?}", victim.nodes()?);
    planish::json(&["undo", "--all"], &[0])?;

    let pid = victim.pid();
    let words = ["move", &pid, "--to", "1", "--against-policy", "--threads"];
    let moved = planish::json(&words, &[0, 1])?;
    let there = victim.nodes()?;
    ensure!(victim.on(1)? >= SET_MIB * MIB, "{there:?} after {moved}");
    ensure!(victim.on(0)? < REST_MIB * MIB, "{there:?} after {moved}");
    let node_1 = settings::read("/sys/devices/system/node/node1/cpulist")?;
    ensure!(victim.cpus()? == node_1, "threads on CPU {}, node 1 has {node_1}", victim.cpus()?);
    // What planish told afterwards is what the kernel says.
    let told = moved["result"]["processes"][0]["nodes"].as_array().context("no nodes")?;
    let on_1 = told.iter().find(|row| row["node"] == 1).and_then(|row| row["after_bytes"].as_u64());
    ensure!(on_1.is_some_and(|told| told.abs_diff(there[&1]) < MIB), "told {told:?}, is {there:?}");

    planish::json(&["undo"], &[0])?;
    let back = victim.nodes()?;
    ensure!(victim.on(0)?.abs_diff(before[&0]) < MIB, "{back:?}, and before {before:?}");
    ensure!(victim.cpus()? == cpus, "threads on CPU {}, before {cpus}", victim.cpus()?);
    Ok(Outcome::Ok(format!("{} KiB on node 1, and {} KiB back on node 0", there[&1] >> 10, back[&0] >> 10)))
}

fn spread() -> Result<Outcome> {
    let victim = Victim::start()?;
    planish::json(&["move", &victim.pid(), "--to", "0-1", "--against-policy"], &[0, 1])?;
    let nodes = victim.nodes()?;
    let halves = nodes.get(&0).copied().unwrap_or(0).abs_diff(nodes.get(&1).copied().unwrap_or(0));
    planish::json(&["undo"], &[0])?;
    ensure!(halves <= 6 * MIB, "not in halves: {nodes:?}");
    ensure!(victim.on(0)? >= SET_MIB * MIB, "not back: {:?}", victim.nodes()?);
    Ok(Outcome::Ok(format!("{nodes:?}")))
}

/// Killed in the middle of a slow move, every page comes back.
fn killed() -> Result<Outcome> {
    let victim = Victim::start()?;
    let before = victim.nodes()?;
    let pid = victim.pid();
    let words = ["move", &pid, "--to", "1", "--against-policy", "--rate", "2"];
    let mut child = planish::command(&words).stderr(Stdio::null()).spawn().context("start a move")?;
    for _ in 0..100 {
        sleep(Duration::from_millis(100));
        if victim.on(1)? >= 3 * MIB {
            break;
        }
    }
    child.kill().context("kill the move")?;
    child.wait().context("wait for the move")?;
    let half = victim.nodes()?;
    let undone = planish::json(&["undo", "--all"], &[0])?;
    ensure!(half.get(&1).is_some_and(|bytes| (3 * MIB..SET_MIB * MIB).contains(bytes)), "killed at {half:?}");
    ensure!(victim.on(0)?.abs_diff(before[&0]) < MIB, "{:?}, before {before:?}: {undone}", victim.nodes()?);
    Ok(Outcome::Ok(format!("killed with {} KiB on node 1, all back", half[&1] >> 10)))
}
