//! A service whose CPU is isolated while it runs, under a real systemd: files, its restart, the partition, and back.

use super::{reload_units, tool};
use crate::check::Outcome;
use crate::{planish, settings};
use anyhow::{Context, Result, bail, ensure};
use std::fs;

const UNIT: &str = "planish-probe.service";
const FILE: &str = "/etc/systemd/system/planish-probe.service";
const PROFILE: &str = "/etc/planish/profiles/isolated.toml";
/// The last of three CPUs.
const CPU: &str = "2";
const SLICE: &str = "/sys/fs/cgroup/planish.slice";

/// Whatever came of it, the service and its profile go.
pub fn partition() -> Result<Outcome> {
    let profile = format!(
        "name = \"isolated\"\nsummary = \"x\"\n[placement]\nisolation = \"now\"\nleave = [\"*\"]\n\
         [[placement.service]]\nunit = \"{UNIT}\"\ncpus = \"{CPU}\"\nisolate = true\nmemory = \"any\"\n"
    );
    fs::write(PROFILE, profile).context("write the profile")?;
    fs::write(FILE, "[Service]\nExecStart=/bin/sleep infinity\n").context("write the unit")?;
    let outcome = if isolates_groups()? { isolate_and_undo() } else { refused() };
    let _ = tool("systemctl", &["stop", UNIT]);
    let _ = tool("systemctl", &["stop", "planish.slice"]);
    fs::remove_file(FILE).context("remove the unit")?;
    fs::remove_file(PROFILE).context("remove the profile")?;
    reload_units()?;
    outcome
}

/// Whether this kernel isolates the CPUs of a control group: since Linux 6.2.
pub fn isolates_groups() -> Result<bool> {
    let release = settings::read("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        bail!("{release} is no release of Linux")
    };
    Ok((major, minor) >= (6, 2))
}

/// Before Linux 6.2 it is refused whole, with the reason and the way by the next boot, and nothing is touched.
fn refused() -> Result<Outcome> {
    let group = restart()?;
    let run = planish::run(&["apply", "isolated", "--yes", "--allow", "availability"])?;
    ensure!(run.exit == 3, "left with {}: {} {}", run.exit, run.stdout.trim(), run.stderr.trim());
    let told = run.stderr.trim();
    ensure!(
        told.contains("since 6.2") && told.contains("isolation = \"boot\""),
        "the reason is not told: {told}"
    );
    let now = restart()?;
    ensure!(now == group && others()? == "0-2", "the service runs in {now}, others have CPU {}", others()?);
    Ok(Outcome::Ok(format!("refused: {}", told.lines().next().unwrap_or_default())))
}

/// Reads the units anew and starts the service anew; the group in which it then runs.
fn restart() -> Result<String> {
    reload_units()?;
    tool("systemctl", &["restart", UNIT])?;
    let shown = tool("systemctl", &["show", "--property=ControlGroup", "--value", UNIT])?;
    Ok(shown.trim().to_owned())
}

/// CPUs that are left to everybody else.
fn others() -> Result<String> {
    settings::read("/sys/fs/cgroup/system.slice/cpuset.cpus.effective")
        .or_else(|_| settings::read("/sys/fs/cgroup/cpuset.cpus.effective"))
}

fn isolate_and_undo() -> Result<Outcome> {
    // Parameters for the next boot are nobody's here: check tells them apart, with exit 1.
    let apply = || planish::json(&["apply", "isolated", "--yes", "--allow", "availability"], &[0, 1]);
    restart()?;
    apply()?;
    let group = restart()?;
    ensure!(group == format!("/planish.slice/{UNIT}"), "the service runs in {group}");
    let given = settings::read(&format!("{SLICE}/cpuset.cpus"))?;
    ensure!(given == CPU, "the slice has CPU {given}");
    let second = apply()?;
    let kind = settings::read(&format!("{SLICE}/cpuset.cpus.partition"))?;
    ensure!(kind == "isolated", "the partition is {kind}; planish told {}", second["result"]);
    let left = others()?;
    ensure!(left == "0-1", "others have CPU {left}");
    let pid = tool("systemctl", &["show", "--property=MainPID", "--value", UNIT])?;
    let status = settings::read(&format!("/proc/{}/status", pid.trim()))?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    ensure!(allowed.map(str::trim) == Some(CPU), "the service may run on {allowed:?}");
    planish::json(&["undo", "--all"], &[0])?;
    let kind = settings::read(&format!("{SLICE}/cpuset.cpus.partition"))?;
    ensure!(kind == "member", "after undo the partition is {kind}");
    let (group, left) = (restart()?, others()?);
    ensure!(group == format!("/system.slice/{UNIT}"), "after undo the service runs in {group}");
    ensure!(left == "0-2", "after undo others have CPU {left}");
    let version = tool("systemctl", &["--version"])?;
    let version = version.lines().next().unwrap_or_default().to_owned();
    Ok(Outcome::Ok(format!("CPU {CPU} was the service's alone without a reboot, and came back ({version})")))
}
