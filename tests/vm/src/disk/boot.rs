//! Boot parameters through GRUB: given, seen in the next boot, taken back, seen gone in the one after.

use super::profiles::{self, REBOOT};
use super::{MEMORY, Next, files, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::fs;

/// Name of the copy of all files from before the first apply.
pub const BEFORE: &str = "before";
/// The apply of all of it.
pub const APPLY: [&str; 6] = ["apply", REBOOT, "--allow", "availability", "--persist", "--yes"];
pub const MENU: &str = "/boot/grub/grub.cfg";

/// First boot: apply.
pub fn persist(report: &mut Report) -> Next {
    report.check("disk.system", system);
    report.check("reboot.before", before);
    report.check("reboot.apply", apply);
    report.check("reboot.pending", pending);
    Next::Reboot("booted".to_owned())
}

/// Second boot: everything is in force; undo.
pub fn booted(report: &mut Report) -> Next {
    in_force(report, "reboot");
    Next::Reboot("gone".to_owned())
}

/// In a boot that was given all of it: looks, and takes it back.
pub fn in_force(report: &mut Report, name: &str) {
    report.check(&format!("{name}.cmdline"), in_command_line);
    report.check(&format!("{name}.values"), values);
    report.check(&format!("{name}.check"), check);
    report.check(&format!("{name}.undo"), undo);
}

/// Third boot: as if nothing had been.
pub fn gone(report: &mut Report) {
    report.check("reboot.gone", as_before);
}

/// This boot and every file are as before the first apply.
pub fn as_before() -> Result<Outcome> {
    ensure_as_before()?;
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("command line and running values as before, {count} files byte for byte")))
}

/// Whether the running kernel was given the arguments of the profile.
pub fn is_given() -> Result<bool> {
    let command_line = profiles::command_line()?;
    let mut given = profiles::lines().filter_map(|line| line.arguments);
    Ok(given.all(|arguments| profiles::gives(&command_line, arguments)))
}

/// This is what it claims to be: started by GRUB, run by systemd, on a disk.
fn system() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(command_line.contains("BOOT_IMAGE=/boot/vmlinuz-"), "GRUB did not start this: {command_line}");
    Ok(Outcome::Ok(format!("GRUB, {}", run_by_systemd()?)))
}

/// Run by systemd, on a disk, and nothing has failed; in a few words.
pub fn run_by_systemd() -> Result<String> {
    let process_1 = settings::read("/proc/1/comm")?;
    ensure!(process_1 == "systemd", "process 1 is {process_1}");
    let mounts = settings::read("/proc/mounts")?;
    let root = mounts.lines().find(|line| line.split(' ').nth(1) == Some("/")).context("no root")?.to_owned();
    ensure!(root.contains(" ext4 rw"), "the root is {root}");
    let state = tool("systemctl", &["is-system-running", "--wait"]).unwrap_or_else(|error| error.to_string());
    let failed = tool("systemctl", &["--failed", "--no-legend", "--plain"])?;
    ensure!(failed.trim().is_empty(), "{}, failed units: {failed}", state.trim());
    let kernel = settings::read("/proc/sys/kernel/osrelease")?;
    Ok(format!("systemd, Linux {kernel}, {}", state.trim()))
}

/// Writes the profiles, and keeps everything that must be so again after each undo.
pub fn before() -> Result<Outcome> {
    profiles::write()?;
    let (command_line, shown) = (profiles::command_line()?, profiles::shown()?);
    let given = profiles::lines().filter_map(|line| line.arguments);
    let given: Vec<&str> = given.filter(|arguments| profiles::gives(&command_line, arguments)).collect();
    ensure!(given.is_empty(), "given already: {given:?}");
    fs::write(format!("{MEMORY}/cmdline"), &command_line).context("keep the command line")?;
    fs::write(format!("{MEMORY}/shown"), &shown).context("keep the running values")?;
    let count = files::keep(BEFORE)?;
    Ok(Outcome::Ok(format!("{count} files kept; {command_line}")))
}

/// Fails when the running kernel was given, or shows, anything else than at the start.
fn ensure_as_before() -> Result<()> {
    let kept = |name: &str| settings::read(&format!("{MEMORY}/{name}"));
    let (command_line, shown) = (profiles::command_line()?, profiles::shown()?);
    ensure!(command_line == kept("cmdline")?, "the command line is {command_line}");
    let (kept, shown) = (kept("shown")?, shown.trim_end());
    ensure!(kept == shown, "running: {shown}; at the start: {kept}");
    Ok(())
}

/// Applies, and looks at the menu that came of it.
pub fn apply() -> Result<Outcome> {
    let all = give()?;
    let menu = settings::read(MENU)?;
    let missing: Vec<&&str> = all.iter().filter(|arguments| !menu.contains(**arguments)).collect();
    ensure!(missing.is_empty(), "{MENU} does not give {missing:?}");
    Ok(Outcome::Ok(format!("update-grub was run: {}", all.join(" "))))
}

/// Applies; the arguments that the next boot is to be given.
pub fn give() -> Result<Vec<&'static str>> {
    let envelope = planish::json(&APPLY, &[0])?;
    let messages = envelope["messages"].to_string();
    ensure!(messages.contains("reboot pending"), "no word of the reboot: {messages}");
    let all: Vec<&str> = profiles::lines().filter_map(|line| line.arguments).collect();
    let command_line = profiles::command_line()?;
    ensure!(!profiles::gives(&command_line, all[0]), "the running kernel cannot have it yet");
    let unpersisted = &envelope["result"]["unpersisted"];
    ensure!(unpersisted.as_array().is_none_or(Vec::is_empty), "not persisted: {unpersisted}");
    Ok(all)
}

/// The rows of `check` by knob: state, and what the next boot brings.
fn rows() -> Result<Vec<(String, String, String)>> {
    let envelope = planish::json(&["check", REBOOT], &[0])?;
    let rows = envelope["result"]["knobs"].as_array().context("no result.knobs")?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let told =
        |row: &serde_json::Value| (text(&row["knob"]), text(&row["state"]), text(&row["next_boot"]["value"]));
    Ok(rows.iter().map(told).collect())
}

/// The boot parameters wait for the next boot, and everything else is in force.
pub fn pending() -> Result<Outcome> {
    let rows = rows()?;
    for line in profiles::lines() {
        let row = rows.iter().find(|(knob, _, _)| knob == line.knob);
        let (_, state, next) = row.with_context(|| format!("no row of {}", line.knob))?;
        let expected = if line.arguments.is_some() { "pending-reboot" } else { "ok" };
        ensure!(state == expected, "{} is {state}, next boot {next}", line.knob);
        ensure!(!next.is_empty(), "nothing brings {} at the next boot", line.knob);
    }
    Ok(Outcome::Ok(format!("{} rows wait for the reboot or are ok", rows.len())))
}

fn in_command_line() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    for arguments in profiles::lines().filter_map(|line| line.arguments) {
        ensure!(profiles::gives(&command_line, arguments), "no {arguments} in {command_line}");
    }
    Ok(Outcome::Ok(command_line))
}

fn values() -> Result<Outcome> {
    let mut told = Vec::new();
    for (path, expected) in profiles::lines().filter_map(|line| line.shown) {
        let now = settings::read(path)?;
        ensure!(now == expected, "{path} shows {now}, not {expected}");
        told.push(format!("{path} {now}"));
    }
    if !profiles::has_giant_pages() {
        told.push("no pages of 1 GiB: this CPU has no pdpe1gb".to_owned());
    }
    Ok(Outcome::Ok(told.join(", ")))
}

fn check() -> Result<Outcome> {
    let rows = rows()?;
    let other: Vec<_> = rows.iter().filter(|(_, state, _)| state != "ok").collect();
    ensure!(other.is_empty() && !rows.is_empty(), "not ok after the reboot: {other:?}");
    Ok(Outcome::Ok(format!("{} rows ok", rows.len())))
}

fn undo() -> Result<Outcome> {
    planish::json(&["undo"], &[0])?;
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("{count} files byte for byte as before the apply")))
}
