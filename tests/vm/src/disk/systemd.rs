//! What needs a real systemd: the dead-man timer as a transient unit, and units that planish writes.

use super::boot::BEFORE;
use super::profiles::LIVE;
use super::{files, isolated, reload_units, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const WANTED: &str = "11";
/// What `install check` writes, and what somebody else makes of the value.
const CHECK: &str = "planish-check.service";
const TIMER: &str = "planish-check.timer";
/// A minute of the calendar, a minute of systemd's accuracy, one of random delay, and as much for an emulated machine.
const AT_LATEST: Duration = Duration::from_secs(360);
const DRIFTED: &str = "42";
/// Long enough for an apply under emulation, and for the looks at it, on a busy machine.
const CONFIRM_SECONDS: &str = "90";
/// The deadline, and an undo under emulation behind it.
const PATIENCE: Duration = Duration::from_secs(300);

/// All of it; each check leaves the guest as it was.
pub fn run_all(report: &mut Report) {
    report.check("confirm.unit", watched_by_a_unit);
    report.check("confirm.cut_off", outlives_its_session);
    report.check("confirm.kept", confirmed);
    report.check("units.exported", exported_unit);
    report.check("units.checked", checked_by_a_unit);
    report.check("units.partition", isolated::partition);
    report.check("systemd.files", || {
        let count = files::ensure_as_kept(BEFORE)?;
        Ok(Outcome::Ok(format!("{count} files as before")))
    });
}

/// The transient units that watch for a confirm.
fn watchers() -> Result<Vec<String>> {
    let args = ["list-units", "--all", "--plain", "--no-legend", "planish-confirm-*"];
    let listed = tool("systemctl", &args)?;
    Ok(listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

pub fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<Duration> {
    let begin = Instant::now();
    while !is_so()? {
        ensure!(begin.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        sleep(Duration::from_millis(500));
    }
    Ok(begin.elapsed())
}

fn apply_on_trial() -> Result<String> {
    let before = settings::read(SWAPPINESS)?;
    ensure!(before != WANTED, "swappiness is {before} already");
    planish::json(&["apply", LIVE, "--yes", "--confirm", CONFIRM_SECONDS], &[0])?;
    ensure!(settings::read(SWAPPINESS)? == WANTED, "it was not applied");
    Ok(before)
}

/// Nobody confirms: the unit puts the host back and is gone.
fn watched_by_a_unit() -> Result<Outcome> {
    let before = apply_on_trial()?;
    let units = watchers()?;
    let [unit] = units.as_slice() else { anyhow::bail!("units that watch: {units:?}") };
    let shown =
        tool("systemctl", &["show", "--property=ActiveState,Transient,FragmentPath,ControlGroup", unit])?;
    ensure!(shown.contains("ActiveState=active") && shown.contains("Transient=yes"), "{unit}: {shown}");
    ensure!(shown.contains(&format!("ControlGroup=/system.slice/{unit}")), "{unit}: {shown}");
    let file = shown.lines().find_map(|line| line.strip_prefix("FragmentPath=")).context("no file of it")?;
    let verified = tool("systemd-analyze", &["verify", file])?;
    until("undone", || Ok(settings::read(SWAPPINESS)? == before))?;
    until("the unit ends", || Ok(watchers()?.is_empty()))?;
    let failed = tool("systemctl", &["--failed", "--no-legend", "--plain"])?;
    ensure!(failed.trim().is_empty(), "failed units: {failed}");
    let told = verified.trim();
    Ok(Outcome::Ok(format!("{unit} was active, verified [{told}], put {before} back and went")))
}

/// The session that applied ends with all its processes, as one over a lost connection does.
fn outlives_its_session() -> Result<Outcome> {
    let before = settings::read(SWAPPINESS)?;
    let args = ["--wait", "--collect", "--quiet", "--unit=operator", "--", "/bin/planish"];
    let apply = ["apply", LIVE, "--yes", "--confirm", CONFIRM_SECONDS];
    let args: Vec<&str> = args.into_iter().chain(apply).collect();
    tool("systemd-run", &args)?;
    ensure!(settings::read(SWAPPINESS)? == WANTED, "it was not applied");
    let units = watchers()?;
    ensure!(units.len() == 1, "the watcher went with its session: {units:?}");
    let took = until("undone", || Ok(settings::read(SWAPPINESS)? == before))?;
    until("the unit ends", || Ok(watchers()?.is_empty()))?;
    Ok(Outcome::Ok(format!(
        "the watcher outlived the unit that applied; undone {:.0} s later",
        took.as_secs_f64()
    )))
}

/// A confirm in time ends the watch, and the values stay until an undo.
fn confirmed() -> Result<Outcome> {
    let before = apply_on_trial()?;
    planish::json(&["confirm"], &[0])?;
    let took = until("the unit ends", || Ok(watchers()?.is_empty()))?;
    ensure!(settings::read(SWAPPINESS)? == WANTED, "the watcher undid what was confirmed");
    planish::json(&["undo"], &[0])?;
    ensure!(settings::read(SWAPPINESS)? == before, "undo did not put it back");
    Ok(Outcome::Ok(format!(
        "the unit ended {:.0} s after the confirm; undo put {before} back",
        took.as_secs_f64()
    )))
}

/// The unit of `export sysctl` is one that systemd takes, and that does what it says.
fn exported_unit() -> Result<Outcome> {
    let before = settings::read(SWAPPINESS)?;
    let envelope = planish::json(&["export", "sysctl", LIVE], &[0])?;
    let exported = envelope["result"]["files"].as_array().context("no result.files")?;
    let mut paths = Vec::new();
    for file in exported {
        let (path, text) =
            (file["path"].as_str().context("no path")?, file["text"].as_str().context("no text")?);
        fs::write(path, text).with_context(|| format!("write {path}"))?;
        paths.push(path.to_owned());
    }
    let tried = try_unit(&paths);
    for path in &paths {
        fs::remove_file(path).with_context(|| format!("remove {path}"))?;
    }
    reload_units()?;
    fs::write(SWAPPINESS, &before).context("put swappiness back")?;
    let unit = tried?;
    Ok(Outcome::Ok(format!("{unit} verified and started: {} files", paths.len())))
}

fn try_unit(paths: &[String]) -> Result<String> {
    let file = paths.iter().find(|path| path.ends_with(".service")).context("no unit was exported")?;
    let told = tool("systemd-analyze", &["verify", file])?;
    ensure!(told.trim().is_empty(), "systemd-analyze: {told}");
    let unit = file.rsplit('/').next().unwrap_or_default();
    reload_units()?;
    tool("systemctl", &["start", unit])?;
    let now = settings::read(SWAPPINESS)?;
    tool("systemctl", &["stop", unit])?;
    ensure!(now == WANTED, "after the start swappiness is {now}");
    Ok(unit.to_owned())
}

/// The service of `install check`: it sees what it is to compare, and fails at a drift when its timer starts it.
fn checked_by_a_unit() -> Result<Outcome> {
    let before = settings::read(SWAPPINESS)?;
    planish::json(&["apply", LIVE, "--yes"], &[0])?;
    planish::json(&["install", "check", "--every", "*:0/1", "--yes"], &[0])?;
    reload_units()?;
    let tried = run_check();
    // Whatever came of it, the guest is left as it was.
    fs::write(SWAPPINESS, WANTED).context("put our value back")?;
    planish::json(&["undo", "--all"], &[0])?;
    reload_units()?;
    let told = tried?;
    ensure!(settings::read(SWAPPINESS)? == before, "undo did not put swappiness back");
    Ok(Outcome::Ok(told))
}

fn run_check() -> Result<String> {
    // What runs is as wanted, and nothing persists it: a warning, which is no failure of the unit.
    tool("systemctl", &["start", CHECK])?;
    let calm = last_run()?;
    ensure!(calm.contains("ExecMainStatus=1") && calm.contains("Result=success"), "as wanted: {calm}");
    ensure!(calm.contains("AF_UNIX") && calm.contains("AF_NETLINK"), "it cannot ask network cards: {calm}");
    fs::write(SWAPPINESS, DRIFTED).context("change swappiness")?;
    // It was due five minutes after the boot, or comes with the next minute: nobody starts the service but it.
    tool("systemctl", &["start", TIMER])?;
    let drifted = after_the_timer();
    tool("systemctl", &["stop", TIMER])?;
    let drifted = drifted?;
    tool("systemctl", &["is-failed", CHECK])?;
    tool("systemctl", &["reset-failed", CHECK])?;
    Ok(format!(
        "{CHECK} ended with 1 where nothing persists it, and failed with 2 at a drift {} s after {TIMER} was started",
        drifted.as_secs()
    ))
}

/// Waits until the timer has started the service and that has failed at the drift; how long it took.
fn after_the_timer() -> Result<Duration> {
    let begin = Instant::now();
    let fired = || tool("systemctl", &["show", "--property=LastTriggerUSec", "--value", TIMER]);
    while begin.elapsed() < AT_LATEST {
        let last = last_run()?;
        if !["", "n/a"].contains(&fired()?.trim()) && last.contains("ExecMainStatus=2") {
            return Ok(begin.elapsed());
        }
        sleep(Duration::from_secs(1));
    }
    anyhow::bail!(
        "{} s after it was started: fired at `{}`, {}",
        AT_LATEST.as_secs(),
        fired()?.trim(),
        last_run()?
    )
}

/// How the service ended last, and which sockets it may open.
fn last_run() -> Result<String> {
    tool("systemctl", &["show", "--property=ExecMainStatus,Result,RestrictAddressFamilies", CHECK])
}
