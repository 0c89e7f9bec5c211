//! What two nodes leave to a process that may not have all of them: a filter forbids the calls of memory policies, as
//! that of a container does, or its cpuset has one node. Each command says the reason and what still works, and none
//! tells a figure that it could not look at.

use crate::check::{Outcome, Report};
use crate::machine::Shape;
use crate::planish::Run;
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts a program under a filter (`tests/vm/programs/denied.c`).
const DENIED: &str = "/bin/denied";
const POLICIES: &[&str] =
    &["mbind=1", "set_mempolicy=1", "get_mempolicy=1", "move_pages=1", "migrate_pages=1"];
const ROOT: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/one-node";

/// Runs every check that costs seconds.
pub fn run_all(shape: &Shape, report: &mut Report) {
    if shape.node_count - shape.node_cpuless_count < 2 || !planish::knows("move") {
        return;
    }
    report.check("refused.policies.map", || filtered(map));
    report.check("refused.policies.run", || filtered(run));
    report.check("refused.policies.move", || filtered(relocate));
    report.check("refused.policies.top", || filtered(top));
    report.check("refused.cpuset", || in_group(outside));
}

/// Those that measure, and so take a minute of an emulated machine.
pub fn run_slow(report: &mut Report) {
    report.check("refused.policies.latency", || filtered(latency));
}

/// A check under the filter, where that was packed.
pub fn filtered(check: fn() -> Result<Outcome>) -> Result<Outcome> {
    if !Path::new(DENIED).exists() {
        return Ok(Outcome::Skip(format!("no {DENIED} was packed")));
    }
    check()
}

/// planish where the calls of memory policies fail.
fn denied(words: &[&str]) -> Result<Run> {
    Ok(Run::from(under(POLICIES, words).output().context("start the filter")?))
}

/// A command line of planish under a filter of these calls, which has not been started yet.
pub fn under(calls: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new(DENIED);
    command.args(calls).args(["--", "/bin/planish"]).args(words).stdin(Stdio::null()).env_clear();
    command.env("PATH", "/bin").env("HOME", "/tmp");
    command
}

/// A process with memory on one node, until dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Result<Self> {
        let mut command =
            planish::command(&["workload", "series", "--bytes", "8M", "--pages", "4k", "--serve"]);
        command.args(["--warm-up", "0"]).stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().map(Self).context("start a workload")
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ensure_told(run: &Run, exit: i32, words: &[&str]) -> Result<()> {
    // Words of one sentence may be on two lines.
    let text = format!("{}{}", run.stdout, run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(run.exit == exit, "left with {}: {text}", run.exit);
    for word in words {
        ensure!(text.contains(word), "nothing of {word:?} in {text}");
    }
    Ok(())
}

/// Nodes by smaps and numa_maps, in proportion, and that is said.
fn map() -> Result<Outcome> {
    let sleeper = Sleeper::start()?;
    let run = denied(&["map", &sleeper.pid(), "--json"])?;
    ensure_told(&run, 0, &["\"smaps\"", "move_pages is not permitted", "CAP_SYS_NICE", "in proportion"])?;
    Ok(Outcome::Ok("by smaps and numa_maps, and why".to_owned()))
}

/// Policies are refused with what works without them, and that works.
fn run() -> Result<Outcome> {
    let program = ["--", "/bin/planish", "--version"];
    for wish in ["interleave", "heap=interleave", "shm=bind:1"] {
        let run = denied(&[&["run", "--numa", wish][..], &program].concat())?;
        ensure_told(&run, 125, &["mbind is not permitted", "SYS_NICE", "still work"])?;
    }
    let run = denied(&[&["run", "--cpus", "0", "--thp", "never"][..], &program].concat())?;
    ensure_told(&run, 0, &["planish "])?;
    Ok(Outcome::Ok("policies are refused with the cure, CPUs and pages work".to_owned()))
}

/// No page is moved, none is said to be, and threads are pinned without the calls.
fn relocate() -> Result<Outcome> {
    let sleeper = Sleeper::start()?;
    let refused = denied(&["move", &sleeper.pid(), "--to", "1"])?;
    ensure_told(&refused, 3, &["move_pages is not permitted", "CAP_SYS_NICE", "--cpus"])?;
    let pinned = denied(&["move", &sleeper.pid(), "--cpus", "0"])?;
    ensure_told(&pinned, 0, &[])?;
    planish::json(&["undo"], &[0])?;
    Ok(Outcome::Ok("refused before anything moved; --cpus works".to_owned()))
}

/// The table needs none of the calls.
fn top() -> Result<Outcome> {
    let run = denied(&["top", "--json", "--interval", "0.2"])?;
    ensure_told(&run, 0, &["\"memory_nodes\""])?;
    Ok(Outcome::Ok("all of it".to_owned()))
}

/// Memory that cannot be bound to its node has a reason instead of figures.
fn latency() -> Result<Outcome> {
    let run = denied(&["latency", "--cpus", "0", "--rounds", "6", "--json"])?;
    ensure_told(&run, 0, &["mbind is not permitted"])?;
    let envelope: serde_json::Value = serde_json::from_str(&run.stdout).context("its JSON")?;
    let cells = envelope["result"]["nodes"].as_array().context("no nodes")?;
    ensure!(!cells.is_empty(), "no nodes: {envelope}");
    cells.iter().try_for_each(without_figures)?;
    Ok(Outcome::Ok(format!("{} pairs of nodes without figures, with the reason", cells.len())))
}

/// Refuses a pair of nodes that has a figure, or that lacks the field of one: nothing would be found in a field of
/// another name.
fn without_figures(cell: &serde_json::Value) -> Result<()> {
    for name in ["load_ns", "read_bytes_per_s"] {
        let figure = cell.get(name).with_context(|| format!("no {name}: {cell}"))?;
        ensure!(figure.is_null(), "a figure of memory that is nowhere: {cell}");
    }
    ensure!(cell["why"].is_string(), "no reason: {cell}");
    Ok(())
}

/// Runs a check in a group whose cpuset has node 0 alone.
fn in_group(check: fn() -> Result<Outcome>) -> Result<Outcome> {
    let controllers = settings::read(&format!("{ROOT}/cgroup.controllers"))?;
    if !controllers.split(' ').any(|name| name == "cpuset") {
        return Ok(Outcome::Skip(format!("no cpuset among {controllers}")));
    }
    let write = |path: String, text: &str| fs::write(&path, text).with_context(|| format!("write {path}"));
    let delegated = || format!("{ROOT}/cgroup.subtree_control");
    write(delegated(), "+cpuset")?;
    fs::create_dir(GROUP).context("make a group")?;
    let outcome = write(format!("{GROUP}/cpuset.mems"), "0").and_then(|()| {
        // Children begin in the group of their parent.
        write(format!("{GROUP}/cgroup.procs"), "1")?;
        let outcome = check();
        write(format!("{ROOT}/cgroup.procs"), "1")?;
        outcome
    });
    fs::remove_dir(GROUP).context("remove the group")?;
    write(delegated(), "-cpuset")?;
    outcome
}

/// A node that is there, and that the cpuset does not have.
fn outside() -> Result<Outcome> {
    let program = ["--", "/bin/planish", "--version"];
    for wish in ["shm=bind:1", "heap=prefer:1"] {
        let run = planish::run(&[&["run", "--numa", wish][..], &program].concat())?;
        ensure_told(&run, 125, &["may not take memory from node 1, only from 0", "cpuset.mems"])?;
    }
    let run = planish::run(&[&["run", "--numa", "heap=interleave"][..], &program].concat())?;
    ensure_told(&run, 0, &["planish "])?;
    let sleeper = Sleeper::start()?;
    let run = planish::run(&["move", &sleeper.pid(), "--to", "1"])?;
    ensure_told(&run, 3, &["the cpuset of process", "has node 0, and not 1", "cpuset.mems"])?;
    let run = planish::run(&["map", &sleeper.pid()])?;
    ensure_told(&run, 0, &["memory of node 0"])?;
    drop(sleeper);
    Ok(Outcome::Ok("node 1 is refused by name of the cpuset, and node 0 serves".to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_figure_and_a_field_of_another_name_are_both_refused() {
        let refused = |cell| super::without_figures(&cell).err().map(|error| error.to_string());
        let of = |load| json!({"load_ns": load, "read_bytes_per_s": null, "why": "EPERM"});
        assert_eq!(refused(of(json!(null))), None);
        assert!(refused(of(json!({"value": 80.0}))).is_some_and(|why| why.starts_with("a figure")));
        let other = json!({"latency_ns": null, "read_bytes_per_s": null, "why": "EPERM"});
        assert!(refused(other).is_some_and(|why| why.starts_with("no load_ns")));
    }
}
