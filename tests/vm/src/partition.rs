//! A partition of control groups on a real kernel: made by a plan, read back, undone; and one that the kernel takes and
//! calls invalid.

use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::fs;

const ROOT: &str = "/sys/fs/cgroup";
/// A group that nobody but this file knows.
const GROUP: &str = "planish-guest";
const PROFILE: &str = "/etc/planish/profiles/partition.toml";

/// Both of them, each in a group of its own that goes with it.
pub fn run_all(report: &mut Report) {
    if !["plan", "apply", "undo"].iter().all(|command| planish::knows(command)) {
        return;
    }
    if cpus().is_some_and(|cpus| cpus < CPUS_MIN) {
        report.check("cpuset.two-cpus", || in_group(left_alone));
        return;
    }
    report.check("cpuset.partition", || in_group(isolated));
    report.check("cpuset.invalid", || in_group(invalid));
}

/// Fewer CPUs than these are not parted.
const CPUS_MIN: usize = 3;

fn cpus() -> Option<usize> {
    std::thread::available_parallelism().ok().map(Into::into)
}

fn file(name: &str) -> String {
    format!("{ROOT}/{GROUP}/{name}")
}

/// Makes the group and the profile, and takes both away whatever came of it.
fn in_group(check: fn() -> Result<Outcome>) -> Result<Outcome> {
    let controllers = settings::read(&format!("{ROOT}/cgroup.controllers"))?;
    if !controllers.split(' ').any(|name| name == "cpuset") {
        return Ok(Outcome::Skip(format!("no cpuset among {controllers}")));
    }
    let delegated = format!("{ROOT}/cgroup.subtree_control");
    fs::write(&delegated, "+cpuset").context("give groups a cpuset")?;
    fs::create_dir(file("")).context("make a group")?;
    fs::create_dir_all("/etc/planish/profiles").context("make the folder of profiles")?;
    let profile = format!(
        "name = \"partition\"\nsummary = \"x\"\n[want]\n\
         \"cpuset.partition\" = {{ value = \"isolated\", only = \"{GROUP}\" }}\n"
    );
    fs::write(PROFILE, profile).context("write the profile")?;
    let outcome = check();
    fs::remove_file(PROFILE).context("remove the profile")?;
    fs::remove_dir(file("")).context("remove the group")?;
    fs::write(&delegated, "-cpuset").context("take the cpuset away again")?;
    outcome
}

const APPLY: &[&str] = &["apply", "partition", "--yes", "--allow", "availability"];

/// With two CPUs nothing is isolated, and the plan says why.
fn left_alone() -> Result<Outcome> {
    planish::json(APPLY, &[0])?;
    let kind = settings::read(&file("cpuset.cpus.partition"))?;
    ensure!(kind == "member", "it was made {kind}");
    let envelope = planish::json(&["plan", "partition", "--allow", "availability"], &[0])?;
    let skipped = envelope["result"]["skipped"].as_array().context("no rows")?;
    let row = skipped.iter().find(|row| row["knob"] == "cpuset.partition").context("the row is not told")?;
    let told = row["reason"].as_str().context("no reason is told")?;
    ensure!(told.contains('2') && told.contains("CPUs"), "the reason is not told: {told}");
    Ok(Outcome::Ok(format!("left alone: {told}")))
}

/// The last CPU leaves everybody else, and comes back.
fn isolated() -> Result<Outcome> {
    let online = settings::read("/sys/devices/system/cpu/online")?;
    let last = online.rsplit(['-', ',']).next().context("no CPU is online")?.to_owned();
    fs::write(file("cpuset.cpus"), &last).context("give the group a CPU")?;
    let effective = || settings::read(&format!("{ROOT}/cpuset.cpus.effective"));
    let before = effective()?;
    planish::json(APPLY, &[0])?;
    let (kind, others) = (settings::read(&file("cpuset.cpus.partition"))?, effective()?);
    let told = settings::read(&format!("{ROOT}/cpuset.cpus.isolated")).ok();
    // Also after a failure, so that the group can be removed.
    planish::json(&["undo"], &[0])?;
    ensure!(kind == "isolated", "the partition reads {kind}");
    ensure!(others != before && !others.ends_with(&last), "others still have {others} of {before}");
    ensure!(told.as_ref().is_none_or(|told| *told == last), "isolated are {told:?}, not {last}");
    let (kind, others) = (settings::read(&file("cpuset.cpus.partition"))?, effective()?);
    ensure!(kind == "member" && others == before, "after undo {kind}, others have {others} of {before}");
    Ok(Outcome::Ok(format!("CPU {last} of {before} isolated at once, and given back")))
}

/// A group without CPUs: the kernel takes the word and does not keep to it.
fn invalid() -> Result<Outcome> {
    let run = planish::run(APPLY)?;
    let kind = settings::read(&file("cpuset.cpus.partition"))?;
    ensure!(run.exit == 4, "left with {}: {} {}", run.exit, run.stdout.trim(), run.stderr.trim());
    let told = format!("{}{}", run.stdout, run.stderr);
    ensure!(told.contains("calls it invalid") && told.contains("empty"), "the reason is not told: {told}");
    ensure!(kind == "member", "it was left as {kind}");
    Ok(Outcome::Ok("refused with the reason of the kernel, and put back".to_owned()))
}
