//! The arms of `planish prove numa` on real nodes: where their memory lies by the kernel's own words, and that the
//! proof runs. How fast anything is, no guest can tell.

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Pages of 4 KiB of one table, and of one heap, with four threads on 16 MiB.
const TABLE_PAGES: u64 = 1024;
const HEAP_PAGES: u64 = 256;
const THREADS: usize = 4;
/// Most that the share of a node may differ from what was wanted.
const TOLERANCE: f64 = 0.02;

/// What each place makes of tables and heaps.
const PLACES: [(&str, Spread, Spread); 4] = [
    ("default", Spread::EachOnOne, Spread::EachOnOne),
    ("by-one", Spread::AllOnOne, Spread::EachOnOne),
    ("interleave-all", Spread::Even, Spread::Even),
    ("interleave-shared", Spread::Even, Spread::EachOnOne),
];

/// How pieces of memory lie on two nodes.
#[derive(Clone, Copy)]
enum Spread {
    /// Each on one node, half of them on either.
    EachOnOne,
    /// All on the same one.
    AllOnOne,
    /// Each on both by halves.
    Even,
}

/// Looks at every arm.
pub fn run_all(shape: &Shape, report: &mut Report) {
    if !planish::knows("workload") {
        return;
    }
    for (place, tables, heaps) in PLACES {
        report.check(&format!("scan.{place}"), || match shape.node_count - shape.node_cpuless_count {
            2 => placed(place, tables, heaps),
            nodes => Ok(Outcome::Skip(format!("{nodes} nodes with CPUs, and this takes two"))),
        });
    }
    if shape.node_count - shape.node_cpuless_count == 2 {
        report.check("scan.balanced", balanced);
    }
    if shape.node_count == 1 {
        report.check("prove.numa", one_node);
    }
}

/// The same where the kernel moves nothing by itself between the words of the workload and the look: on a busy machine
/// that takes long enough for it.
fn placed(place: &str, tables: Spread, heaps: Spread) -> Result<Outcome> {
    const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
    let before = settings::read(BALANCING)?;
    fs::write(BALANCING, "0").with_context(|| format!("write {BALANCING}"))?;
    let outcome = seen(place, tables, heaps);
    fs::write(BALANCING, before).with_context(|| format!("restore {BALANCING}"))?;
    outcome
}

/// Starts the workload, and reads of the kernel where each piece of its memory lies.
fn seen(place: &str, tables: Spread, heaps: Spread) -> Result<Outcome> {
    let mut command = planish::command(&["workload", "scan", "--serve", "--bytes", "16M", "--place", place]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start the workload")?;
    let mut ready = String::new();
    BufReader::new(child.stdout.take().context("its output")?).read_line(&mut ready)?;
    let maps = fs::read_to_string(format!("/proc/{}/numa_maps", child.id())).context("read its numa_maps")?;
    child.kill().context("end it")?;
    child.wait().context("wait for it")?;
    let ready: Value = serde_json::from_str(&ready).with_context(|| format!("its first line: {ready}"))?;
    let of = |shared: bool, pages: u64| -> Vec<BTreeMap<u32, u64>> {
        let lines = maps.lines().filter(|line| is_segment(line) == shared);
        lines.map(nodes_of).filter(|on| on.values().sum::<u64>() == pages).collect()
    };
    // Tables are shared memory, and heaps are not.
    let (on_tables, on_heaps) = (of(true, TABLE_PAGES), of(false, HEAP_PAGES));
    ensure!((on_tables.len(), on_heaps.len()) == (THREADS, THREADS), "{on_tables:?} {on_heaps:?}: {maps}");
    check("tables", &on_tables, tables)?;
    check("heaps", &on_heaps, heaps)?;
    told(&ready["achieved"]["table_bytes"], &on_tables)?;
    told(&ready["achieved"]["heap_bytes"], &on_heaps)?;
    Ok(Outcome::Ok(format!("tables {on_tables:?}, heaps {on_heaps:?}")))
}

/// Where automatic balancing is at its quickest, memory is measured where it was put all the same: nobody uses it from
/// elsewhere before.
fn balanced() -> Result<Outcome> {
    const FOLDER: &str = "/sys/kernel/debug/sched/numa_balancing";
    // Linux 6.1 to 6.4 tells nothing of marked pages: there is time to ask between two marks.
    let may_hide = settings::is_before((6, 5))?;
    let period = if may_hide { "100" } else { "1" };
    let quick = [("scan_delay_ms", period), ("scan_period_min_ms", period), ("scan_period_max_ms", period)];
    let path = |name: &str| format!("{FOLDER}/{name}");
    if fs::metadata(FOLDER).is_err() {
        return Ok(Outcome::Skip(format!("no {FOLDER}")));
    }
    let before: Vec<String> =
        quick.iter().map(|(name, _)| settings::read(&path(name))).collect::<Result<_>>()?;
    for (name, value) in quick {
        fs::write(path(name), value).with_context(|| format!("write {}", path(name)))?;
    }
    let words =
        ["workload", "scan", "--bytes", "32M", "--place", "default", "--rounds", "1", "--warm-up", "0"];
    // Once may be luck.
    let runs: Result<Vec<_>> = (0..3).map(|_| planish::run(&words)).collect();
    for ((name, _), before) in quick.into_iter().zip(before) {
        fs::write(path(name), before).with_context(|| format!("restore {}", path(name)))?;
    }
    let mut told_count = 0;
    for run in runs? {
        let is_hidden = may_hide && run.exit == 3 && run.stderr.contains("does not tell");
        ensure!(run.exit == 0 || is_hidden, "left with {}: {}", run.exit, run.stderr);
        told_count += usize::from(!is_hidden);
    }
    Ok(match told_count {
        0 => Outcome::Skip("this kernel hid what it had marked, three times of three".to_owned()),
        told => {
            Outcome::Ok(format!("32 MiB were where they were put, {told} times; {} times hidden", 3 - told))
        }
    })
}

/// Whether a line of numa_maps is of shared memory without a file: `ADDRESS POLICY file=/dev/zero\040(deleted) N0=3`.
fn is_segment(line: &str) -> bool {
    line.contains(" file=/dev/zero")
}

/// Pages of a mapping that is no file of a disk, by node: `ADDRESS POLICY anon=4 N0=3 N1=1`.
fn nodes_of(line: &str) -> BTreeMap<u32, u64> {
    let is_file = line.contains(" file=") && !is_segment(line);
    if is_file || line.contains(" stack") || line.contains(" heap") {
        return BTreeMap::new();
    }
    let node = |word: &str| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        Some((node.parse().ok()?, pages.parse().ok()?))
    };
    line.split(' ').filter_map(node).collect()
}

fn check(name: &str, pieces: &[BTreeMap<u32, u64>], wanted: Spread) -> Result<()> {
    let share = |piece: &BTreeMap<u32, u64>| {
        piece.get(&0).copied().unwrap_or(0) as f64 / piece.values().sum::<u64>().max(1) as f64
    };
    let of_0: Vec<f64> = pieces.iter().map(share).collect();
    let on = |node_0: f64| of_0.iter().filter(|share| (**share - node_0).abs() <= TOLERANCE).count();
    let is_so = match wanted {
        Spread::EachOnOne => on(1.0) == of_0.len() / 2 && on(0.0) == of_0.len() / 2,
        Spread::AllOnOne => on(1.0) == of_0.len() || on(0.0) == of_0.len(),
        Spread::Even => on(0.5) == of_0.len(),
    };
    ensure!(is_so, "{name}: shares of node 0 are {of_0:?}");
    Ok(())
}

/// What the workload said of itself is what the kernel says.
fn told(said: &Value, pieces: &[BTreeMap<u32, u64>]) -> Result<()> {
    for node in [0, 1] {
        let pages: u64 = pieces.iter().filter_map(|piece| piece.get(&node)).sum();
        let bytes = said[node.to_string()].as_u64().unwrap_or(0);
        ensure!(bytes == pages * 4096, "node {node}: {bytes} bytes, and the kernel says {pages} pages");
    }
    Ok(())
}

/// A machine of one node: the placement is checked, nothing is measured, and that is said.
fn one_node() -> Result<Outcome> {
    let envelope = planish::json(&["prove", "numa"], &[0])?;
    let result = &envelope["result"];
    let note = result["notes"][0].as_str().unwrap_or_default();
    ensure!(note.starts_with("one node: only the placement was checked"), "{envelope}");
    let rungs = result["rungs"].as_array().context("no rungs")?;
    ensure!(rungs.len() == 3 && result["selfcheck"].is_null() && result["proof_id"].is_null(), "{envelope}");
    for rung in rungs {
        ensure!(rung["achieved"]["verified"] == true && rung["verdict"] == "unavailable", "{rung}");
    }
    Ok(Outcome::Ok(note.to_owned()))
}

/// On two nodes each arm of the proof has its memory where it is wanted, and what is measured is told of both kinds of
/// scans. How long an emulated machine takes is nobody's to believe: the proof gets no time to come to a verdict.
pub fn proved(shape: &Shape) -> Result<Outcome> {
    ensure!(shape.node_count == 2, "{} nodes", shape.node_count);
    let envelope = planish::json(&["prove", "numa", "--quick", "--budget", "60"], &[6])?;
    let result = &envelope["result"];
    let rungs = result["rungs"].as_array().context("no rungs")?;
    let name = |rung: &Value| rung["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = rungs.iter().map(name).collect();
    ensure!(names == ["interleave-all", "interleave-shared", "by-one", "placebo"], "{names:?}");
    let mut told = Vec::new();
    for rung in rungs.iter().filter(|rung| rung["name"] != "placebo") {
        let (achieved, facts) = (&rung["achieved"], &rung["achieved"]["facts"]);
        ensure!(achieved["verified"] == true, "{}: {envelope}", name(rung));
        ensure!(rung["verdict"] == "inconclusive", "a verdict of an emulated machine: {rung}");
        let local = facts["heap_local_share"].as_f64().context("no share of heaps")?;
        let on = |node: &str| facts["table_bytes"][node].as_f64().unwrap_or(0.0);
        let share = on("0") / (on("0") + on("1"));
        let (wanted, heaps) = match name(rung).as_str() {
            "interleave-all" => (0.5, 0.5),
            "interleave-shared" => (0.5, 1.0),
            _ => (share.round(), 1.0),
        };
        ensure!((share - wanted).abs() <= TOLERANCE && (local - heaps).abs() <= TOLERANCE, "{rung}");
        let percent = |share: f64| (100.0 * share).round();
        told.push(format!("{}: tables {} %, heaps {} % local", name(rung), percent(share), percent(local)));
    }
    Ok(Outcome::Ok(told.join("; ")))
}
