//! A placement that outlasts a reboot, by the line that `check` proposes for that.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `services` | the first | behind its other checks: placed once more, and kept by the proposed line |
//! | `services-booted` | with the argument | what is started is placed from its start on; `undo` |
//! | `services-gone` | as the first | it runs everywhere, every file and value as before |

use super::boot::MENU;
use super::services::{
    ALL_CPUS, BEFORE, DEFAULT_AFFINITY, HOUSEKEEPING_MASK, INTERRUPT, OWN_CPU, OWN_MEMORY, PROFILE, Process,
    UNIT, apply_now,
};
use super::{KNOBS, Next, files, profiles, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};

const ARGUMENT: &str = "irqaffinity=0-2";
const PROPOSED: &str = " will not outlast a reboot: planish ";

/// In the first boot, with nothing applied.
pub fn begin(report: &mut Report) -> Next {
    report.check("kept.apply", keep);
    Next::Reboot("services-booted".to_owned())
}

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    match name {
        "services-booted" => {
            report.check("kept.placed", placed);
            report.check("kept.check", checked);
            report.check("kept.undo", undo);
            Some(Next::Reboot("services-gone".to_owned()))
        }
        "services-gone" => {
            report.check("kept.gone", gone);
            Some(Next::Reboot(KNOBS.to_owned()))
        }
        _ => None,
    }
}

/// Applied for this boot, and then what check tells to type; a placement is kept whole or not at all.
fn keep() -> Result<Outcome> {
    apply_now()?;
    let checked = planish::json(&["check", PROFILE], &[1])?;
    let messages = checked["messages"].as_array().context("no messages")?;
    let line = messages.iter().filter_map(|message| message["text"].as_str()?.split_once(PROPOSED));
    let (_, line) = line.into_iter().next().with_context(|| format!("nothing is proposed: {messages:?}"))?;
    let words: Vec<&str> = line.split(' ').chain(["--yes"]).collect();
    // 1: single interrupts are kept by no file.
    planish::json(&words, &[0, 1])?;
    ensure!(settings::read(MENU)?.contains(ARGUMENT), "{line}: {MENU} does not give {ARGUMENT}");
    Ok(Outcome::Ok(line.to_owned()))
}

/// By nobody but systemd, the loader and the kernel.
fn placed() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(profiles::gives(&command_line, ARGUMENT), "the command line is {command_line}");
    let (default, interrupt) = (settings::read(DEFAULT_AFFINITY)?, settings::read(INTERRUPT)?);
    ensure!(default == HOUSEKEEPING_MASK, "new interrupts go to {default}");
    // The kernel keeps it to the CPUs of its node besides.
    ensure!(["0-1", "0-2"].contains(&interrupt.as_str()), "{INTERRUPT} is {interrupt}");
    tool("systemctl", &["start", UNIT])?;
    let seen = Process::of_unit()?;
    ensure!(seen.cpus == OWN_CPU && seen.memory == OWN_MEMORY, "it has {seen:?}");
    Ok(Outcome::Ok(format!("{seen:?}; {command_line}")))
}

/// All but single interrupts, which a kernel may give more CPUs by the argument than an apply would.
fn checked() -> Result<Outcome> {
    let checked = planish::json(&["check", PROFILE], &[0, 1])?;
    let rows = checked["result"]["knobs"].as_array().context("no result.knobs")?;
    let (single, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["knob"] == "irq.affinity");
    ensure!(others.len() == 3 && others.iter().all(|row| row["state"] == "ok"), "not as wanted: {others:?}");
    let states: Vec<_> = single.iter().map(|row| &row["state"]).collect();
    Ok(Outcome::Ok(format!("exit {}, interrupts {states:?}", checked["exit"])))
}

fn undo() -> Result<Outcome> {
    let undone = planish::json(&["undo", "--all"], &[0])?;
    let entries = undone["result"]["entries"].as_array().context("no result.entries")?.len();
    tool("systemctl", &["stop", UNIT])?;
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("{entries} entries undone, {count} files byte for byte")))
}

fn gone() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(!command_line.contains("irqaffinity"), "the command line is {command_line}");
    let default = settings::read(DEFAULT_AFFINITY)?;
    ensure!(default == "f", "new interrupts go to {default}");
    tool("systemctl", &["start", UNIT])?;
    let seen = Process::of_unit()?;
    tool("systemctl", &["stop", UNIT])?;
    ensure!(seen.cpus == ALL_CPUS && seen.memory == "default", "it has {seen:?}");
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("{seen:?}, {count} files byte for byte")))
}
