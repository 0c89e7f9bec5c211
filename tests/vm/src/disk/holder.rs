//! A limit that a process holds, over a boot: systemd starts the process anew, and an undo takes it away for good.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `units` | the first | `apply --persist`, behind what else needs systemd |
//! | `units-held` | with the unit of the limit | it holds; killed, it holds again; `undo` |
//! | `units-gone` | as the first | nobody holds, every file and value as before |

use super::systemd::until;
use super::{Next, boot, tool};
use crate::check::{Outcome, Report};
use crate::held::{NO_LIMIT, holders, in_force, wanted};
use crate::planish;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

const PROFILE: &str = "held";
const PROFILE_FILE: &str = "/etc/planish/profiles/held.toml";
const LIMIT_US: u32 = 20;
const UNIT: &str = "planish-hold.service";
const FILE: &str = "/etc/systemd/system/planish-hold.service";

/// In the first boot: it is held by a process of this boot, and the next one will start its own.
pub fn begin(report: &mut Report) -> Next {
    report.check("held.apply", apply);
    Next::Reboot("units-held".to_owned())
}

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    match name {
        "units-held" => {
            report.check("held.boot", held);
            report.check("held.again", killed);
            report.check("held.undo", undo);
            Some(Next::Reboot("units-gone".to_owned()))
        }
        "units-gone" => {
            report.check("held.gone", || {
                ensure!(in_force()? == NO_LIMIT && holders()?.is_empty(), "{} us are in force", in_force()?);
                boot::as_before()
            });
            Some(Next::End)
        }
        _ => None,
    }
}

fn is_limited() -> Result<bool> {
    Ok(in_force()? == LIMIT_US.cast_signed())
}

fn apply() -> Result<Outcome> {
    ensure!(in_force()? == NO_LIMIT, "{} us are in force before anything was done", in_force()?);
    wanted(PROFILE, LIMIT_US)?;
    planish::json(&["apply", PROFILE, "--yes", "--persist"], &[0])?;
    ensure!(is_limited()? && holders()?.len() == 1, "{} us by {:?}", in_force()?, holders()?);
    let verified = tool("systemd-analyze", &["verify", FILE])?;
    ensure!(verified.trim().is_empty(), "systemd-analyze: {verified}");
    Ok(Outcome::Ok(format!("{LIMIT_US} us are in force, and {FILE} is there")))
}

/// The process of the unit, which alone has the device open.
fn of_unit() -> Result<i32> {
    let shown = tool("systemctl", &["show", "--property=ActiveState,MainPID,NRestarts", UNIT])?;
    let pid = shown.lines().find_map(|line| line.strip_prefix("MainPID=")).context("no MainPID")?;
    let pid: i32 = pid.parse().with_context(|| format!("MainPID={pid}"))?;
    ensure!(shown.contains("ActiveState=active") && holders()? == [pid], "{shown} held by {:?}", holders()?);
    Ok(pid)
}

/// Nobody but the boot has done anything.
fn held() -> Result<Outcome> {
    // This stage and the unit are started side by side.
    until("held", || Ok(is_limited()? && of_unit().is_ok()))?;
    let pid = of_unit()?;
    let restarts = tool("systemctl", &["show", "--property=NRestarts", "--value", UNIT])?;
    ensure!(restarts.trim() == "0", "it took {} starts more", restarts.trim());
    planish::json(&["check", PROFILE], &[0])?;
    Ok(Outcome::Ok(format!("{LIMIT_US} us are in force, held by process {pid} of {UNIT}")))
}

/// What somebody kills, systemd starts again.
fn killed() -> Result<Outcome> {
    let before = of_unit()?;
    tool("kill", &["-KILL", &before.to_string()])?;
    until("held again", || Ok(is_limited()? && of_unit().is_ok_and(|pid| pid != before)))?;
    Ok(Outcome::Ok(format!("process {before} was killed, and {} holds", of_unit()?)))
}

/// What undo ends stays ended.
fn undo() -> Result<Outcome> {
    planish::json(&["undo"], &[0])?;
    ensure!(in_force()? == NO_LIMIT && holders()?.is_empty(), "{} us by {:?}", in_force()?, holders()?);
    ensure!(!Path::new(FILE).exists(), "{FILE} is still there");
    fs::remove_file(PROFILE_FILE).with_context(|| format!("remove {PROFILE_FILE}"))?;
    let state = tool("systemctl", &["show", "--property=ActiveState", "--value", UNIT])?;
    ensure!(state.trim() == "inactive", "{UNIT} is {}", state.trim());
    Ok(Outcome::Ok(format!("no limit is in force, and {UNIT} is {}", state.trim())))
}
