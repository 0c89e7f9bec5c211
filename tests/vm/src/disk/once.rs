//! A trial boot through GRUB: once and back, once and cut off, once and kept.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `once` | by the default entry | `apply --persist --once` |
//! | `once-running` | the trial boot | it is looked at, and left by an ordinary reboot |
//! | `once-over` | by the default entry again | undone, every file as before; applied once more |
//! | `once-cut` | the trial boot | the power is cut, as for a machine that does not come up |
//! | `once-back` | by the default entry again | undone, every file as before; applied once more |
//! | `once-confirm` | the trial boot | `confirm` |
//! | `once-kept` | by the default entry, which has the arguments | `undo` |
//! | `once-gone` | as the first | every file and value as before |

use super::profiles::{self, REBOOT};
use super::{Next, boot, files};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};

const APPLY: [&str; 7] = ["apply", REBOOT, "--allow", "availability", "--persist", "--once", "--yes"];
const ENV: &str = "/boot/grub/grubenv";
const MARKER: &str = "planish.trial=";

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    let reboot = |next: &str| Some(Next::Reboot(next.to_owned()));
    match name {
        "once" => {
            // On a disk that begins here nothing was kept before.
            if !files::is_kept(boot::BEFORE) {
                report.check("once.before", boot::before);
            }
            report.check("once.apply", apply);
            reboot("once-running")
        }
        "once-running" => {
            report.check("once.running", running);
            reboot("once-over")
        }
        "once-over" => {
            report.check("once.over", over);
            report.check("once.apply_again", apply);
            reboot("once-cut")
        }
        "once-cut" => {
            report.check("once.cut", running);
            Some(Next::PowerCut("once-back".to_owned()))
        }
        "once-back" => {
            report.check("once.back", over);
            report.check("once.apply_to_keep", apply);
            reboot("once-confirm")
        }
        "once-confirm" => {
            report.check("once.confirm", confirm);
            reboot("once-kept")
        }
        "once-kept" => {
            report.check("once.kept", kept);
            reboot("once-gone")
        }
        "once-gone" => {
            report.check("once.gone", boot::as_before);
            Some(Next::End)
        }
        _ => None,
    }
}

/// The state of the only trial boot, as `check` tells it; none where there is none.
fn state(exits: &[i32]) -> Result<Option<String>> {
    let envelope = planish::json(&["check"], exits)?;
    let boots = envelope["result"]["trial_boots"].as_array().cloned().unwrap_or_default();
    ensure!(boots.len() < 2, "more than one: {boots:?}");
    Ok(boots.first().and_then(|boot| boot["state"].as_str()).map(str::to_owned))
}

/// The default entry keeps its arguments, and GRUB is told.
pub fn apply() -> Result<Outcome> {
    let menu = settings::read("/boot/grub/grub.cfg")?;
    let outcome = armed()?;
    ensure!(settings::read("/boot/grub/grub.cfg")? == menu, "the menu itself was changed");
    let block = settings::read(ENV)?;
    ensure!(block.contains("next_entry=planish-trial\n"), "GRUB was not told: {block}");
    Ok(outcome)
}

/// Applies for one boot, and has check say so.
pub fn armed() -> Result<Outcome> {
    let envelope = planish::json(&APPLY, &[0])?;
    let state = state(&[0, 1])?;
    ensure!(state.as_deref() == Some("armed"), "check says {state:?}");
    Ok(Outcome::Ok(format!("entry {}, armed", envelope["result"]["entry"])))
}

/// This boot has every argument and the marker, and GRUB has taken the name away before it.
pub fn running() -> Result<Outcome> {
    let block = settings::read(ENV)?;
    ensure!(block.contains("next_entry=\n"), "GRUB did not take the name away: {block}");
    on_trial()
}

/// This boot has every argument and the marker, and check says that it is the one.
pub fn on_trial() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(boot::is_given()? && command_line.contains(MARKER), "the command line is {command_line}");
    let state = state(&[0, 1])?;
    ensure!(state.as_deref() == Some("running"), "check says {state:?}");
    Ok(Outcome::Ok(command_line))
}

/// This boot is by the default entry; what is left of the trial boot goes, to the byte.
pub fn over() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(!command_line.contains(MARKER), "it was booted twice: {command_line}");
    let state = state(&[1])?;
    ensure!(state.as_deref() == Some("over"), "check says {state:?}");
    planish::json(&["undo", "--all"], &[0])?;
    boot::as_before()
}

fn confirm() -> Result<Outcome> {
    running()?;
    let envelope = planish::json(&["confirm"], &[0])?;
    let entries = envelope["result"]["entries"].as_array().context("no result.entries")?.len();
    ensure!(entries == 1, "{entries} entries were confirmed");
    let state = state(&[0, 1])?;
    ensure!(state.is_none(), "check says {state:?}");
    let menu = settings::read("/boot/grub/grub.cfg")?;
    let mut all = profiles::lines().filter_map(|line| line.arguments);
    ensure!(all.all(|arguments| menu.contains(arguments)), "the menu was not made anew");
    Ok(Outcome::Ok("the default entry has the arguments".to_owned()))
}

fn kept() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(boot::is_given()?, "not kept: {command_line}");
    ensure!(!command_line.contains(MARKER), "still the trial boot: {command_line}");
    planish::json(&["undo", "--all"], &[0])?;
    let count = files::ensure_as_kept(boot::BEFORE)?;
    Ok(Outcome::Ok(format!("{command_line}; undone, {count} files byte for byte")))
}
