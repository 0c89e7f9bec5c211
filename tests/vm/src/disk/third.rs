//! Others on the same host: tuned and irqbalance at work, and an administrator who edits between an apply and its undo.
//! Nothing of theirs may be lost, and it must be said.

use super::boot::{self, APPLY};
use super::{files, profiles, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Name of the copy of all files from before the administrator's edits.
const BEFORE: &str = "third";
const UNITS: [&str; 2] = ["tuned", "irqbalance"];
const TUNED_PROFILE: &str = "throughput-performance";
/// What that profile sets it to.
const TUNED_SWAPPINESS: &str = "10";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const TUNED_FILE: &str = "/usr/lib/tuned/throughput-performance/tuned.conf";
const DIRTY_RATIO: &str = "/proc/sys/vm/dirty_ratio";
const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-planish.conf";
const GRUB_DEFAULTS: &str = "/etc/default/grub";
const MENU: &str = "/boot/grub/grub.cfg";
/// tuned is a Python program, and this is an emulated machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// All of it, in an order in which each check needs the one before.
pub fn run_all(report: &mut Report) {
    report.check("third.profiles", || profiles::write().map(|()| Outcome::Ok("written".to_owned())));
    if !Path::new("/usr/sbin/tuned").exists() || !Path::new("/usr/sbin/irqbalance").exists() {
        return report
            .check("third", || Ok(Outcome::Skip("no tuned and irqbalance in this image".to_owned())));
    }
    report.check("third.active", active);
    report.check("third.verify", verified_alike);
    report.check("third.doctor", named_by_doctor);
    report.check("third.plan", named_by_plan);
    report.check("third.sysctl", later_sysctl);
    report.check("third.file", later_file);
    report.check("third.tuned", later_tuned);
    report.check("third.grub", later_grub_defaults);
    report.check("third.still", still_active);
}

/// An administrator starts both, and tuned sets what its profile says.
fn active() -> Result<Outcome> {
    tool("systemctl", &["start", "tuned.service", "irqbalance.service"])?;
    tool("tuned-adm", &["profile", TUNED_PROFILE])?;
    let begin = Instant::now();
    while settings::read(SWAPPINESS)? != TUNED_SWAPPINESS {
        ensure!(begin.elapsed() < PATIENCE, "tuned has not set swappiness within {} s", PATIENCE.as_secs());
        sleep(Duration::from_millis(500));
    }
    let count = files::keep(BEFORE)?;
    Ok(Outcome::Ok(format!("{TUNED_PROFILE}, swappiness {TUNED_SWAPPINESS}, {count} files kept")))
}

/// Its own profile, imported: `check` finds what `tuned-adm verify` does, before and after somebody changes a value.
fn verified_alike() -> Result<Outcome> {
    const THEIRS: &str = "21";
    let imported =
        ["import", TUNED_FILE, "--name", "tuned-own", "--output", "/etc/planish/profiles/tuned-own.toml"];
    planish::json(&imported, &[0])?;
    let clean = (tool("tuned-adm", &["verify"]).is_ok(), drifted()?);
    let before = settings::read(DIRTY_RATIO)?;
    fs::write(DIRTY_RATIO, THEIRS).with_context(|| format!("write {DIRTY_RATIO}"))?;
    let changed = (tool("tuned-adm", &["verify"]).is_ok(), drifted());
    // Also after a failure: the next checks are of what tuned has set.
    fs::write(DIRTY_RATIO, &before).with_context(|| format!("write {DIRTY_RATIO}"))?;
    fs::remove_file("/etc/planish/profiles/tuned-own.toml").context("remove the profile")?;
    let told = settings::read("/var/log/tuned/tuned.log")?;
    ensure!(
        clean.0 && clean.1.is_empty(),
        "as tuned has set it: verified {}, drift {:?}: {told}",
        clean.0,
        clean.1
    );
    let drifted = changed.1?;
    ensure!(!changed.0 && drifted == [DIRTY_RATIO], "changed: verified {}, drift {drifted:?}", changed.0);
    Ok(Outcome::Ok(format!("nothing, then {DIRTY_RATIO} at {THEIRS} instead of {before}: both")))
}

/// Places of the imported profile that are not as it wants them.
fn drifted() -> Result<Vec<String>> {
    let checked = planish::json(&["check", "tuned-own"], &[0, 1])?;
    let rows = checked["result"]["knobs"].as_array().context("no result.knobs")?;
    let drifted = rows.iter().filter(|row| row["state"] == "drift");
    Ok(drifted.filter_map(|row| row["place"].as_str().map(str::to_owned)).collect())
}

fn named_by_doctor() -> Result<Outcome> {
    let envelope = planish::json(&["doctor"], &[0, 1])?;
    let findings = envelope["result"]["findings"].as_array().context("no result.findings")?;
    let mut told = Vec::new();
    for unit in UNITS {
        let finding = findings.iter().find(|finding| finding["id"] == format!("writer.{unit}"));
        let finding = finding.with_context(|| format!("no finding about {unit}"))?;
        let evidence = finding["evidence"].as_str().context("no evidence")?;
        ensure!(evidence.starts_with(&format!("{unit} is at work and sets ")), "{evidence}");
        let cure = finding["cure"].as_str().context("no cure")?;
        ensure!(cure.contains(&format!("--exclude {unit}")), "{cure}");
        told.push(evidence.to_owned());
    }
    Ok(Outcome::Ok(told.join(" / ")))
}

/// The plan names each of them at the place that it writes too, and `--exclude` leaves it to them.
fn named_by_plan() -> Result<Outcome> {
    let before = settings::read(DEFAULT_AFFINITY)?;
    fs::write(DEFAULT_AFFINITY, "1").with_context(|| format!("write {DEFAULT_AFFINITY}"))?;
    let named = writers_named();
    fs::write(DEFAULT_AFFINITY, before).with_context(|| format!("write {DEFAULT_AFFINITY}"))?;
    named
}

fn writers_named() -> Result<Outcome> {
    let plan = planish::json(&["plan", profiles::SHARED, "--allow", "availability"], &[0])?;
    let writers = plan["result"]["second_writers"].as_array().context("no result.second_writers")?;
    for (unit, place) in UNITS.into_iter().zip([SWAPPINESS, DEFAULT_AFFINITY]) {
        let writer = writers.iter().find(|writer| writer["id"] == unit);
        let writer = writer.with_context(|| format!("{unit} is not named: {writers:?}"))?;
        let places = writer["places"].as_array().context("no places")?;
        ensure!(writer["running"] == true && places.iter().any(|at| at == place), "{writer}");
        let exclude = ["plan", profiles::SHARED, "--allow", "availability", "--exclude", unit];
        let left = planish::json(&exclude, &[0])?;
        let steps = left["result"]["steps"].as_array().context("no result.steps")?;
        ensure!(steps.iter().all(|step| step["place"] != place), "{unit} did not keep {place}: {steps:?}");
    }
    Ok(Outcome::Ok(
        "tuned at swappiness, irqbalance at the default affinity; --exclude leaves it to them".to_owned(),
    ))
}

/// The way back from what somebody else has set since: kept, named, exit 1.
fn undo_keeps(place: &str) -> Result<()> {
    let undone = planish::json(&["undo"], &[1])?;
    let theirs = |outcome: &Value| outcome["place"] == place && outcome["outcome"] == "theirs";
    let entries = undone["result"]["entries"].as_array().context("no result.entries")?;
    let outcomes = entries.iter().filter_map(|entry| entry["outcomes"].as_array()).flatten();
    ensure!(outcomes.into_iter().any(theirs), "{place} is not theirs: {undone}");
    let messages = undone["messages"].to_string();
    ensure!(messages.contains(place), "undo does not name {place}: {messages}");
    Ok(())
}

/// An administrator sets a value after the apply.
fn later_sysctl() -> Result<Outcome> {
    const THEIRS: &str = "33";
    let before = settings::read(SWAPPINESS)?;
    planish::json(&["apply", profiles::LIVE, "--yes"], &[0])?;
    tool("sysctl", &["-w", &format!("vm.swappiness={THEIRS}")])?;
    let kept = undo_keeps(SWAPPINESS);
    let now = settings::read(SWAPPINESS)?;
    fs::write(SWAPPINESS, &before).context("put swappiness back")?;
    kept?;
    ensure!(now == THEIRS, "swappiness is {now} after the undo");
    Ok(Outcome::Ok(format!("undo kept {THEIRS}, named it and left with 1")))
}

/// An administrator writes a line into the file that `--persist` made: it stays, and ours go.
fn later_file() -> Result<Outcome> {
    const THEIRS: &str = "vm.stat_interval = 3\n";
    planish::json(&["apply", profiles::LIVE, "--yes", "--persist"], &[0, 1])?;
    let ours = settings::read(SYSCTL_FILE)?;
    ensure!(ours.contains("vm.swappiness = 11"), "{SYSCTL_FILE}: {ours}");
    fs::write(SYSCTL_FILE, format!("{ours}\n{THEIRS}")).with_context(|| format!("write {SYSCTL_FILE}"))?;
    let undone = planish::json(&["undo"], &[0]);
    let now = fs::read_to_string(SYSCTL_FILE).with_context(|| format!("read {SYSCTL_FILE}"));
    // Also after a failure: the last check compares all files.
    fs::remove_file(SYSCTL_FILE).with_context(|| format!("remove {SYSCTL_FILE}"))?;
    let (told, now) = (undone?["messages"].to_string(), now?);
    ensure!(told.contains(SYSCTL_FILE), "the undo does not name {SYSCTL_FILE}: {told}");
    ensure!(now == THEIRS, "{SYSCTL_FILE} is not what the administrator wrote: {now}");
    Ok(Outcome::Ok(format!("undo left `{}` alone in {SYSCTL_FILE}, and named it", THEIRS.trim())))
}

/// tuned writes its profile again after the apply: `check` says who, and an undo leaves what it wrote.
fn later_tuned() -> Result<Outcome> {
    // Something that tuned does not find when it starts again: else its own rollback puts our value back first.
    tool("systemctl", &["stop", "tuned.service"])?;
    let without = settings::read(SWAPPINESS)?;
    planish::json(&["apply", profiles::LIVE, "--yes"], &[0])?;
    tool("systemctl", &["start", "tuned.service"])?;
    let begin = Instant::now();
    while settings::read(SWAPPINESS)? != TUNED_SWAPPINESS {
        ensure!(begin.elapsed() < PATIENCE, "tuned has not set swappiness within {} s", PATIENCE.as_secs());
        sleep(Duration::from_millis(500));
    }
    let checked = planish::json(&["check", profiles::LIVE], &[1])?;
    let rows = checked["result"]["knobs"].as_array().context("no result.knobs")?;
    let row = rows.iter().find(|row| row["place"] == SWAPPINESS).context("no row of swappiness")?;
    ensure!(row["state"] == "drift", "{row}");
    ensure!(
        row["because"].as_str().is_some_and(|because| because.contains("tuned")),
        "nobody is named: {row}"
    );
    undo_keeps(SWAPPINESS)?;
    let now = settings::read(SWAPPINESS)?;
    ensure!(now == TUNED_SWAPPINESS, "swappiness is {now} after the undo");
    Ok(Outcome::Ok(format!("{without} before, check named tuned, undo kept its {now} and left with 1")))
}

/// An administrator gives an argument to the kernel between `apply --persist` and its undo.
fn later_grub_defaults() -> Result<Outcome> {
    const THEIRS: &str = "planish_guest.admin=1";
    let text = settings::read(GRUB_DEFAULTS)? + "\n";
    let edited = format!("{text}GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {THEIRS}\" # an administrator\n");
    // 1: tuned will set another swappiness at its start, and the apply says so.
    planish::json(&APPLY, &[0, 1])?;
    fs::write(GRUB_DEFAULTS, &edited).with_context(|| format!("write {GRUB_DEFAULTS}"))?;
    planish::json(&["undo"], &[0])?;
    let (defaults, menu) = (settings::read(GRUB_DEFAULTS)? + "\n", settings::read(MENU)?);
    // Also after a failure: the next check compares all files.
    fs::write(GRUB_DEFAULTS, &text).with_context(|| format!("write {GRUB_DEFAULTS}"))?;
    tool("update-grub", &[])?;
    ensure!(defaults == edited, "{GRUB_DEFAULTS} is not as the administrator left it");
    ensure!(menu.contains(THEIRS), "the menu does not give what the administrator wrote");
    let mut ours = profiles::lines().filter_map(|line| line.arguments);
    ensure!(ours.all(|arguments| !menu.contains(arguments)), "the menu still gives what was undone");
    Ok(Outcome::Ok(format!("undo left {GRUB_DEFAULTS} byte for byte, and the menu gives {THEIRS}")))
}

/// Both are at work still, and no file is another.
fn still_active() -> Result<Outcome> {
    for unit in UNITS {
        let state = tool("systemctl", &["is-active", unit])?;
        ensure!(state.trim() == "active", "{unit} is {}", state.trim());
    }
    ensure!(!boot::is_given()?, "this boot has the arguments of the profile");
    let profile = tool("tuned-adm", &["active"])?;
    ensure!(profile.contains(TUNED_PROFILE), "{profile}");
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("both active, {} {count} files byte for byte", profile.trim())))
}
