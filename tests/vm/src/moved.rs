//! `planish move` on real nodes: memory of a process that runs goes to another node and comes back, also after a kill,
//! and what somebody bound stays. Judged by the kernel's own numa_maps.

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
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
    report.check("move.range", range);
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

    /// The addresses of the mapping that has most pages on node 0.
    fn largest(&self) -> Result<Range<u64>> {
        let text = settings::read(&format!("/proc/{}/numa_maps", self.0.id()))?;
        let of = |line: &str| {
            let pages = line.split(' ').find_map(|word| word.strip_prefix("N0="))?.parse::<u64>().ok()?;
            Some((pages, line.split(' ').next()?.to_owned()))
        };
        let private = text.lines().filter(|line| line.contains(" anon=") && !line.contains(" file="));
        let (_, start) = private.filter_map(of).max().context("no private memory on node 0")?;
        let maps = settings::read(&format!("/proc/{}/maps", self.0.id()))?;
        let whole = maps.lines().filter_map(|line| line.split(' ').next()?.split_once('-'));
        let hex = |text: &str| u64::from_str_radix(text, 16).context("an address");
        let start = hex(&start)?;
        let of_start = whole.map(|(from, end)| Ok((hex(from)?, hex(end)?))).collect::<Result<Vec<_>>>()?;
        let end = of_start.into_iter().find(|(from, _)| *from == start).context("its mapping")?.1;
        Ok(start..end)
    }

    /// Pages by node of the mapping that begins at an address, and of all others together.
    fn here_and_elsewhere(&self, start: u64) -> Result<[BTreeMap<String, u64>; 2]> {
        let text = settings::read(&format!("/proc/{}/numa_maps", self.0.id()))?;
        let mut pages = [BTreeMap::new(), BTreeMap::new()];
        for line in text.lines().filter(|line| line.contains(" anon=") && !line.contains(" file=")) {
            let head = line.split(' ').next().unwrap_or_default();
            let side = usize::from(u64::from_str_radix(head, 16) != Ok(start));
            for (key, count) in line.split(' ').filter_map(|word| word.split_once('=')) {
                let is_node = key.strip_prefix('N').is_some_and(|node| node.parse::<u32>().is_ok());
                if let (true, Ok(count)) = (is_node, count.parse::<u64>()) {
                    *pages[side].entry(key.to_owned()).or_default() += count;
                }
            }
        }
        Ok(pages)
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

/// Of one mapping the named pages go, each of them, and no other of the process does; an undo brings them back.
fn range() -> Result<Outcome> {
    let victim = Victim::start()?;
    let (pid, set) = (victim.pid(), victim.largest()?);
    let [before, others] = victim.here_and_elsewhere(set.start)?;
    let bytes = set.end - set.start;
    ensure!(bytes >= MIB && !before.contains_key("N1"), "{set:x?}: {before:?}");
    let (start, end) = (set.start + bytes / 4 / 4096 * 4096, set.start + bytes / 2 / 4096 * 4096);
    let part = format!("{start:x}-{end:x}");
    let words = ["move", &pid, "--to", "1", "--against-policy", "--rate", "50", "--range", &part];
    let moved = planish::json(&words, &[0, 1])?;
    let told = &moved["result"]["processes"][0];
    ensure!(told["ranges"][0]["start"] == format!("{start:x}"), "{moved}");
    let pages = told["moved_bytes"].as_u64().context("nothing moved")? >> 12;
    let [there, others_there] = victim.here_and_elsewhere(set.start)?;
    ensure!((1..=(end - start) >> 12).contains(&pages), "{pages} pages of {part}");
    ensure!(there.get("N1") == Some(&pages), "{there:?} after {moved}");
    ensure!(
        there.get("N0") == before.get("N0").map(|all| all - pages).as_ref(),
        "{there:?}, before {before:?}"
    );
    // What it faults in meanwhile lies on the node of its threads, which is any.
    ensure!(
        others_there.get("N1").unwrap_or(&0).abs_diff(*others.get("N1").unwrap_or(&0)) < 16,
        "{others_there:?}"
    );
    planish::json(&["undo"], &[0])?;
    let [back, _] = victim.here_and_elsewhere(set.start)?;
    ensure!(back == before, "{back:?}, before {before:?}");

    let beyond = format!("{:x}-{:x}", 0x1000, 0x3000);
    for (absent, word) in
        [(beyond.as_str(), "nothing mapped at 1000-3000"), ("/no/such", "no mapping /no/such")]
    {
        let run = planish::run(&["move", &pid, "--to", "1", "--range", absent])?;
        ensure!(run.exit == 3 && run.stderr.contains(word), "left with {}: {}", run.exit, run.stderr);
    }
    // By its name: what of the stack is not on node 1 yet goes there.
    let stack = planish::json(&["move", &pid, "--to", "1", "--range", "[stack]"], &[0, 1])?;
    ensure!(stack["result"]["processes"][0]["ranges"][0]["name"] == "[stack]", "{stack}");
    ensure!(victim.here_and_elsewhere(set.start)?[0] == before, "the rest went with the stack");
    planish::json(&["undo", "--all"], &[0])?;
    Ok(Outcome::Ok(format!("{pages} pages of {part} alone, and back")))
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
