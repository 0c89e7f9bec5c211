//! A service of systemd that a placement puts on a core and a node of its own, and that an undo lets go again.
//!
//! The machine of this stage has two nodes of two CPUs each (`xtask/src/vm/disk/stage.rs`). What the service got is
//! read from its process, never from planish or from systemd.

use super::{files, oracle, reload_units, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Name of the copy of all files from before the apply.
pub const BEFORE: &str = "services";
pub const UNIT: &str = "planish-load.service";
const UNIT_FILE: &str = "/etc/systemd/system/planish-load.service";
const DROP_IN: &str = "/etc/systemd/system/planish-load.service.d/zz-planish.conf";
const PROFILE_FILE: &str = "/etc/planish/profiles/services.toml";
pub const PROFILE: &str = "services";
pub const ALL_CPUS: &str = "0-3";
/// The core of node 1 that does not keep house.
pub const OWN_CPU: &str = "3";
pub const OWN_MEMORY: &str = "bind:1";
pub const HOUSEKEEPING_MASK: &str = "7";
/// Of the first serial port: on the CPU that the service is to have, so that it must go.
pub const INTERRUPT: &str = "/proc/irq/4/smp_affinity_list";
const IRQBALANCE: &str = "/usr/sbin/irqbalance";
/// Of ACPI: one that irqbalance moves, by the cache that a CPU has.
const BALANCED: &str = "/proc/irq/9/smp_affinity_list";
pub const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";

/// All of it, in an order in which each check needs the one before.
pub fn run_all(report: &mut Report) {
    report.check("services.topology", oracle::topology);
    let mut before = BTreeMap::new();
    report.check("services.before", || {
        let outcome = start()?;
        before = interrupts();
        Ok(outcome)
    });
    report.check("services.half", refused_whole);
    report.check("services.apply", apply);
    report.check("services.placed", placed);
    report.check("services.undo", || undo(&before));
    report.check("services.balanced", || balanced(&before));
    report.check("services.files", || {
        tool("systemctl", &["stop", UNIT])?;
        let count = files::ensure_as_kept(BEFORE)?;
        Ok(Outcome::Ok(format!("{count} files byte for byte")))
    });
}

/// A service as an administrator has it: no CPUs and no nodes are said.
fn start() -> Result<Outcome> {
    let unit =
        "[Unit]\nDescription=Something to place\n\n[Service]\nType=exec\nExecStart=/usr/bin/sleep infinity\n";
    fs::write(UNIT_FILE, unit).with_context(|| format!("write {UNIT_FILE}"))?;
    let profile = format!(
        "name = \"{PROFILE}\"\nsummary = \"Of a test guest.\"\n\n[placement]\n\n[[placement.service]]\n\
         unit = \"{UNIT}\"\nnode = 1\n"
    );
    fs::create_dir_all("/etc/planish/profiles").context("make the folder of profiles")?;
    fs::write(PROFILE_FILE, profile).with_context(|| format!("write {PROFILE_FILE}"))?;
    reload_units()?;
    tool("systemctl", &["start", UNIT])?;
    let seen = Process::of_unit()?;
    ensure!(seen.cpus == ALL_CPUS && seen.memory == "default", "at the start it has {seen:?}");
    fs::write(INTERRUPT, OWN_CPU).with_context(|| format!("write {INTERRUPT}"))?;
    let count = files::keep(BEFORE)?;
    Ok(Outcome::Ok(format!("{count} files kept, {seen:?}")))
}

/// Interrupts without the service would be half a placement: refused before anything is written.
fn refused_whole() -> Result<Outcome> {
    let args = ["apply", PROFILE, "--yes", "--allow", "availability", "--exclude", "unit.placement"];
    let run = planish::run(&args)?;
    ensure!(run.exit == 3, "left with {}: {}", run.exit, run.stderr.trim());
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("{count} files as before: {}", run.stderr.lines().next().unwrap_or_default())))
}

/// 1: the argument of the kernel that goes with it is not given, and without --persist it will not be.
pub fn apply_now() -> Result<Value> {
    planish::json(&["apply", PROFILE, "--yes", "--allow", "availability"], &[1])
}

/// The service that runs is left alone; what it gets at its next start is said.
fn apply() -> Result<Outcome> {
    let before = Process::of_unit()?;
    let applied = apply_now()?;
    ensure_only_the_argument_is_missing(&applied)?;
    let messages = applied["messages"].to_string();
    let command = format!("systemctl daemon-reload; systemctl restart {UNIT}");
    ensure!(messages.contains(&command), "it is not said how it takes effect: {messages}");
    let now = Process::of_unit()?;
    let is_left = (now.pid, &now.cpus, &now.memory) == (before.pid, &before.cpus, &before.memory);
    ensure!(is_left, "the running service was touched: {before:?} to {now:?}");
    let default = settings::read(DEFAULT_AFFINITY)?;
    ensure!(default == HOUSEKEEPING_MASK, "new interrupts go to {default}");
    let moved = settings::read(INTERRUPT)?;
    ensure!(moved != OWN_CPU, "{INTERRUPT} is still {moved}");
    let outcomes = applied["result"]["outcomes"].as_array().context("no result.outcomes")?;
    Ok(Outcome::Ok(format!("{} steps; the process was left alone, {INTERRUPT} is {moved}", outcomes.len())))
}

/// Restarted as planish said: its process has the core and the memory, and nothing else.
fn placed() -> Result<Outcome> {
    reload_units()?;
    tool("systemctl", &["restart", UNIT])?;
    let seen = Process::of_unit()?;
    ensure!(seen.cpus == OWN_CPU && seen.memory == OWN_MEMORY, "after the restart it has {seen:?}");
    ensure!(seen.own_pages.keys().all(|node| *node == 1), "its own pages are elsewhere, too: {seen:?}");
    // 1, as the apply: what it was allowed and could not set is held against the host.
    let checked = planish::json(&["check", PROFILE], &[1])?;
    let count = ensure_only_the_argument_is_missing(&checked)?;
    let verified = tool("systemd-analyze", &["verify", UNIT_FILE])?;
    ensure!(verified.trim().is_empty(), "systemd-analyze: {verified}");
    Ok(Outcome::Ok(format!("{seen:?}, {count} places as wanted")))
}

/// Fails when anything but the argument for the next boot is not as wanted; returns how much is.
fn ensure_only_the_argument_is_missing(envelope: &Value) -> Result<usize> {
    let rows = envelope["result"]["knobs"].as_array().context("no result.knobs")?;
    let is_missing = |row: &&Value| row["state"] == "drift" || row["state"] == "not-here";
    let (missing, there): (Vec<_>, Vec<_>) = rows.iter().partition(is_missing);
    let names: Vec<_> = missing.iter().map(|row| &row["knob"]).collect();
    ensure!(names == ["boot.irqaffinity"], "not as wanted: {missing:?}");
    ensure!(missing[0]["running"] == "(not given)", "{}", missing[0]);
    Ok(there.len())
}

/// Taken back: after the next restart it runs everywhere, and every interrupt is where it was.
fn undo(before: &BTreeMap<String, String>) -> Result<Outcome> {
    let undone = planish::json(&["undo"], &[0])?;
    let messages = undone["messages"].to_string();
    ensure!(messages.contains(&format!("systemctl restart {UNIT}")), "no word of the restart: {messages}");
    ensure!(!fs::exists(DROP_IN).context("look for the drop-in")?, "{DROP_IN} is still there");
    reload_units()?;
    tool("systemctl", &["restart", UNIT])?;
    let seen = Process::of_unit()?;
    ensure!(seen.cpus == ALL_CPUS && seen.memory == "default", "after the undo it has {seen:?}");
    let now = interrupts();
    let moved: Vec<_> = before.iter().filter(|(path, text)| now.get(*path) != Some(*text)).collect();
    ensure!(moved.is_empty() && !before.is_empty(), "were elsewhere before: {moved:?}");
    Ok(Outcome::Ok(format!("{seen:?}, {} masks of interrupts as before", before.len())))
}

/// irqbalance moves the interrupt between an apply and its undo: it is theirs then. Whatever comes of it, all is put
/// back for what comes behind.
fn balanced(before: &BTreeMap<String, String>) -> Result<Outcome> {
    if !Path::new(IRQBALANCE).exists() {
        return Ok(Outcome::Skip("no irqbalance in this image".to_owned()));
    }
    let outcome = balance_and_undo();
    planish::json(&["undo", "--all"], &[0, 1])?;
    let now = interrupts();
    for (path, text) in before.iter().filter(|(path, text)| now.get(*path) != Some(*text)) {
        fs::write(path, text).with_context(|| format!("write {path}"))?;
    }
    outcome
}

fn balance_and_undo() -> Result<Outcome> {
    fs::write(BALANCED, OWN_CPU).with_context(|| format!("write {BALANCED}"))?;
    apply_now()?;
    let placed = settings::read(BALANCED)?;
    ensure!(placed != OWN_CPU, "{BALANCED} is still {placed}");
    // Without the first word it goes into the background, and has moved nothing yet.
    tool(IRQBALANCE, &["--foreground", "--oneshot"])?;
    let theirs = settings::read(BALANCED)?;
    ensure!(theirs != placed, "irqbalance left {BALANCED} at {placed}");
    let undone = planish::json(&["undo"], &[1])?;
    let kept = settings::read(BALANCED)?;
    ensure!(kept == theirs, "{BALANCED} is {kept} after the undo");
    let messages = undone["messages"].to_string();
    ensure!(messages.contains(BALANCED), "undo does not name {BALANCED}: {messages}");
    Ok(Outcome::Ok(format!(
        "{BALANCED}: {placed} by planish, {theirs} by irqbalance: undo kept that, and left with 1"
    )))
}

/// What the kernel gave the service's main process.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    /// As a list.
    pub cpus: String,
    /// Its policy, in the words of numa_maps.
    pub memory: String,
    /// Anonymous pages by node: those that it wrote itself, under this policy.
    own_pages: BTreeMap<u32, u64>,
}

impl Process {
    /// The one that runs now.
    pub fn of_unit() -> Result<Self> {
        let shown = tool("systemctl", &["show", "--property=MainPID", "--value", UNIT])?;
        let pid: u32 = shown.trim().parse().with_context(|| format!("MainPID={shown}"))?;
        ensure!(pid > 0, "{UNIT} does not run");
        let status = settings::read(&format!("/proc/{pid}/status"))?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let maps = settings::read(&format!("/proc/{pid}/numa_maps"))?;
        let mut memory: Vec<&str> = maps.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        memory.dedup();
        let mut own_pages = BTreeMap::new();
        for line in maps.lines().filter(|line| line.contains(" anon=") && !line.contains(" file=")) {
            for (node, pages) in line.split_whitespace().filter_map(on_node) {
                *own_pages.entry(node).or_default() += pages;
            }
        }
        ensure!(!own_pages.is_empty(), "it has no memory of its own: {maps}");
        let cpus = cpus.context("no Cpus_allowed_list")?.trim().to_owned();
        Ok(Self { pid, cpus, memory: memory.join(" "), own_pages })
    }
}

/// `N1=12`: 12 pages on node 1.
fn on_node(word: &str) -> Option<(u32, u64)> {
    let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
    Some((node.parse().ok()?, pages.parse().ok()?))
}

/// Where each interrupt may go, the default among them.
fn interrupts() -> BTreeMap<String, String> {
    let mut masks = BTreeMap::new();
    for entry in fs::read_dir("/proc/irq").into_iter().flatten().flatten() {
        let path = entry.path().join("smp_affinity_list").display().to_string();
        masks.extend(settings::read(&path).ok().map(|text| (path, text)));
    }
    masks.extend(settings::read(DEFAULT_AFFINITY).ok().map(|text| (DEFAULT_AFFINITY.to_owned(), text)));
    masks
}

#[cfg(test)]
mod tests {
    use super::on_node;

    #[test]
    fn pages_of_a_node_are_told_from_other_words() {
        assert_eq!(on_node("N1=12"), Some((1, 12)));
        for other in ["N=1", "anon=3", "Nx=1", "kernelpagesize_kB=4"] {
            assert_eq!(on_node(other), None, "{other}");
        }
    }
}
