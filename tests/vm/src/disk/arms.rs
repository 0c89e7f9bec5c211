//! A trial whose arms are boots, through GRUB and systemd: it starts the machine anew by itself, and is ended by hand.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `arms` | by the default entry | `trial run --allow reboot`, which starts the machine anew |
//! | `arms-1`, ... | what the trial asked for | looked at while the trial's unit rests, which reboots later |
//! | the first of these that is a boot on trial | the arm | the power is cut, as for a machine that does not come up |
//! | the one behind it | by the default entry | the trial takes in that it is lost, and reboots |
//! | `arms-5` | what the trial asked for | `trial stop` |
//! | `arms-gone` | by the default entry | every file and value as before; then [`super::left`] begins |

use super::profiles;
use super::{MEMORY, Next, boot, files, left, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Boots in which the trial goes on by itself.
const BOOTS: usize = 4;
const MARKER: &str = "planish.trial=";
pub const UNIT: &str = "/etc/systemd/system/planish-trial.service";
/// Beside what is kept: outside of the folders that are compared.
const FILE: &str = "/var/lib/planish-guest/arms.toml";
const CUT: &str = "/var/lib/planish-guest/arms-cut";

/// Two minutes of rest in each boot: the stage has looked by then, also on a busy machine.
const TRIAL: &str = r#"
name = "guest"
summary = "whether boots of the guest come and go"
guards = []
seed = 11
workload = { adapter = "command", command = ["true"] }
[boots]
blocks = 8
units = 1
boot_seconds = 60
settle_seconds = 120
[[boot]]
name = "skew"
want = { "boot.skew_tick" = 1 }
"#;

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    let number = || name.strip_prefix("arms-")?.parse::<usize>().ok();
    match name {
        "arms" => {
            // On a disk that begins here nothing was kept before.
            if !files::is_kept(boot::BEFORE) {
                report.check("arms.before", boot::before);
            }
            report.check("arms.begin", begin);
            Some(Next::ByItself("arms-1".to_owned()))
        }
        "arms-gone" => {
            report.check("arms.gone", boot::as_before);
            left::stage("left", report)
        }
        _ => {
            let number = number()?;
            let next = format!("arms-{}", number + 1);
            // The trial does not rest in the boot behind the cut: it takes in what is lost, and reboots.
            if cut().is_some_and(|cut| number == cut + 1) {
                report.check("arms.back", back);
                return Some(Next::ByItself(next));
            }
            report.check("arms.boot", || look(number));
            if number > BOOTS {
                report.check("arms.stop", stop);
                return Some(Next::Reboot("arms-gone".to_owned()));
            }
            let is_first_on_trial = is_on_trial().is_ok_and(|is| is) && cut().is_none();
            if is_first_on_trial && fs::write(CUT, number.to_string()).is_ok() && tool("sync", &[]).is_ok() {
                return Some(Next::PowerCut(next));
            }
            Some(Next::ByItself(next))
        }
    }
}

/// The number of the boot in which the power was cut.
fn cut() -> Option<usize> {
    fs::read_to_string(CUT).ok()?.parse().ok()
}

/// By the default entry, which is all that is looked at: the machine may go down any moment.
pub fn back() -> Result<Outcome> {
    let command_line = profiles::command_line()?;
    ensure!(!command_line.contains(MARKER), "it was booted twice: {command_line}");
    Ok(Outcome::Ok(command_line))
}

fn is_on_trial() -> Result<bool> {
    Ok(profiles::command_line()?.contains(MARKER))
}

/// Fails in a boot by the default entry; else its command line.
pub fn ensure_on_trial() -> Result<String> {
    let command_line = profiles::command_line()?;
    ensure!(is_on_trial()?, "this boot is by the default entry: {command_line}");
    Ok(command_line)
}

fn begin() -> Result<Outcome> {
    fs::create_dir_all(MEMORY).context("make a folder")?;
    fs::write(FILE, TRIAL).context("write the trial")?;
    let refused = planish::json(&["trial", "run", FILE], &[3])?;
    let menu = settings::read("/boot/grub/grub.cfg")?;
    let begun = planish::json(&["trial", "run", FILE, "--allow", "reboot"], &[0])?;
    ensure!(settings::read("/boot/grub/grub.cfg")? == menu, "the menu itself was changed");
    ensure!(Path::new(UNIT).exists(), "nothing would go on after the boot");
    let boots = &begun["result"]["boots"];
    ensure!(boots["asked"] == 1, "the boots are {boots}");
    let why = refused["messages"][0]["text"].as_str().unwrap_or_default().to_owned();
    Ok(Outcome::Ok(format!("refused before: {why}")))
}

/// What the trial says of itself.
pub fn status() -> Result<Value> {
    let envelope = planish::json(&["trial", "status"], &[0])?;
    Ok(envelope["result"]["trial"].clone())
}

/// This boot is the one that was asked for, and those before it were taken in.
fn look(number: usize) -> Result<Outcome> {
    let trial = status()?;
    let boots = &trial["boots"];
    ensure!(boots["state"] == "under-way", "the boots are {boots}");
    // The boot behind the cut is one that nobody asked for.
    let lost_wanted = usize::from(cut().is_some());
    let asked = number - lost_wanted;
    ensure!(boots["asked"].as_u64() == u64::try_from(asked).ok(), "boot {number}: {boots}");
    let rows = boots["boots"].as_array().cloned().unwrap_or_default();
    ensure!(rows.len() + 1 == asked, "boot {number}: {boots}");
    let lost = rows.iter().filter(|row| !row["lost"].is_null()).count();
    ensure!(lost == lost_wanted, "{lost} boots are lost: {boots}");
    let notes = trial["notes"].to_string();
    let command_line = profiles::command_line()?;
    let is_arm = notes.contains("waited for is of `skew`");
    ensure!(is_arm == command_line.contains(MARKER), "asked for {notes}, and it is {command_line}");
    ensure!(is_arm == command_line.contains("skew_tick=1"), "the command line is {command_line}");
    Ok(Outcome::Ok(format!("boot {number}: {command_line}")))
}

fn stop() -> Result<Outcome> {
    let stopped = planish::json(&["trial", "stop"], &[0, 3, 6])?;
    ensure!(stopped["result"]["trial"]["boots"]["state"] == "ended", "it is {stopped}");
    ensure!(!Path::new(UNIT).exists(), "its unit is there");
    let told = status()?;
    ensure!(told["boots"]["state"] == "ended", "it is {told}");
    let count = files::ensure_as_kept(boot::BEFORE)?;
    Ok(Outcome::Ok(format!("{count} files byte for byte")))
}
