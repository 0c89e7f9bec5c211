//! Boots of a trial in which the trial cannot go on: the unit that leaves them, and its timer, lead back to the old
//! entry.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `left` | by the default entry | `trial run --allow reboot`; boots on trial will wait for a service for ever |
//! | `left-1`, `left-2` | by the default entry | as the seed draws it: the placebo, and the baseline |
//! | `left-3` | the arm | it does not come to the unit of the trial: the timer leaves it |
//! | `left-4` | by the default entry | the trial takes in that it is lost, and reboots |
//! | `left-5` | the arm once more | the trial is killed while it rests: its failure leaves the boot |
//! | `left-6` | by the default entry | no arm is left: the trial is over, every file and value as before |

use super::profiles;
use super::{MEMORY, Next, arms, boot, files, tool};
use crate::check::{Outcome, Report};
use crate::planish;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Beside what is kept: outside of the folders that are compared.
const FILE: &str = "/var/lib/planish-guest/left.toml";
const SERVICE: &str = "planish-trial.service";
const TIMER: &str = "planish-trial-back.timer";
const BACK: &str = "/etc/systemd/system/planish-trial-back.service";
/// What a boot on trial waits for.
const HANG: &str = "/etc/systemd/system/planish-hang.service";
const PULLED_IN: &str = "/etc/systemd/system/multi-user.target.wants/planish-hang.service";
/// What fires the timer sooner: it waits for the longest that servers and all units may take, which is 40 minutes here.
const SOONER: &str = "/etc/systemd/system/planish-trial-back.timer.d";
/// For what an emulated machine on a busy one takes, several times over.
const PATIENCE: Duration = Duration::from_secs(600);

/// Half a minute of rest, in which the trial is found and killed. The seed draws the arm as the last of the first block
/// and as the first of the second one: a test of the trial's own draws says so.
const TRIAL: &str = r#"
name = "left"
summary = "whether boots on trial are left"
guards = []
seed = 7
workload = { adapter = "command", command = ["true"] }
[boots]
blocks = 8
units = 1
boot_seconds = 60
settle_seconds = 30
[[boot]]
name = "skew"
want = { "boot.skew_tick" = 1 }
"#;

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    let by_itself = |next: &str| Some(Next::ByItself(next.to_owned()));
    match name {
        "left" => {
            // On a disk that begins here nothing was kept before.
            if !files::is_kept(boot::BEFORE) {
                report.check("left.before", boot::before);
            }
            report.check("left.begin", begin);
            by_itself("left-1")
        }
        "left-1" | "left-2" | "left-4" => {
            report.check("left.default", arms::back);
            let number: usize = name.strip_prefix("left-")?.parse().ok()?;
            by_itself(&format!("left-{}", number + 1))
        }
        "left-3" => {
            report.check("left.hangs", hangs);
            by_itself("left-4")
        }
        "left-5" => {
            report.check("left.killed", killed);
            by_itself("left-6")
        }
        "left-6" => {
            report.check("left.over", over);
            report.check("left.gone", boot::as_before);
            Some(Next::End)
        }
        _ => None,
    }
}

/// What hangs waits for nobody else, and for boots on trial alone.
fn begin() -> Result<Outcome> {
    fs::create_dir_all(MEMORY).context("make a folder")?;
    fs::write(FILE, TRIAL).context("write the trial")?;
    let hang = "[Unit]\nDescription=What never comes\nConditionKernelCommandLine=planish.trial\n\
                [Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n";
    fs::write(HANG, hang).with_context(|| format!("write {HANG}"))?;
    symlink(HANG, PULLED_IN).with_context(|| format!("link {PULLED_IN}"))?;
    fs::create_dir_all(SOONER).with_context(|| format!("make {SOONER}"))?;
    let sooner = "[Timer]\nOnBootSec=\nOnBootSec=600\n";
    fs::write(format!("{SOONER}/sooner.conf"), sooner).context("write the drop-in of the timer")?;
    let begun = planish::json(&["trial", "run", FILE, "--allow", "reboot"], &[0])?;
    let boots = &begun["result"]["boots"];
    ensure!(boots["asked"] == 1, "the boots are {boots}");
    Ok(Outcome::Ok("a boot on trial will wait for ever".to_owned()))
}

/// The boot on trial waits, and the timer runs; the next one is to be an ordinary one.
fn hangs() -> Result<Outcome> {
    arms::ensure_on_trial()?;
    let state = |unit: &str| -> Result<String> {
        let shown = tool("systemctl", &["show", "--property=ActiveState", "--value", unit])?;
        Ok(shown.trim().to_owned())
    };
    let (target, service, timer) = (state("multi-user.target")?, state(SERVICE)?, state(TIMER)?);
    ensure!(target == "inactive" && service == "inactive", "the boot is {target}, the trial {service}");
    ensure!(timer == "active", "the timer is {timer}");
    let next = tool("systemctl", &["show", "--property=TimersMonotonic", "--value", TIMER])?;
    // systemd has read them: they count in this boot, and in no other.
    for file in [HANG, PULLED_IN] {
        fs::remove_file(file).with_context(|| format!("remove {file}"))?;
    }
    fs::remove_dir_all(SOONER).with_context(|| format!("remove {SOONER}"))?;
    tool("sync", &[])?;
    Ok(Outcome::Ok(format!("multi-user.target waits, and so does the timer: {}", next.trim())))
}

/// The trial is killed, once this stage has told what it saw: what leaves the boot is quick.
fn killed() -> Result<Outcome> {
    let command_line = arms::ensure_on_trial()?;
    let begin = Instant::now();
    let pid = loop {
        let shown = tool("systemctl", &["show", "--property=ActiveState,MainPID", SERVICE])?;
        let pid = shown.lines().find_map(|line| line.strip_prefix("MainPID=")).filter(|pid| *pid != "0");
        if let Some(pid) = pid.filter(|_| shown.contains("ActiveState=active")) {
            break pid.to_owned();
        }
        ensure!(begin.elapsed() < PATIENCE, "the trial did not go on: {shown}");
        sleep(Duration::from_millis(200));
    };
    ensure!(Path::new(BACK).exists(), "nothing would leave this boot");
    let kill = format!("sleep 3; kill -KILL {pid}");
    tool("systemd-run", &["--quiet", "--collect", "--", "sh", "-c", &kill])?;
    Ok(Outcome::Ok(format!("process {pid} of the trial will be killed: {command_line}")))
}

/// Both boots were taken in as lost, and the trial has ended by itself.
fn over() -> Result<Outcome> {
    arms::back()?;
    let begin = Instant::now();
    let trial = loop {
        let trial = arms::status()?;
        if trial["boots"]["state"] == "ended" && !Path::new(arms::UNIT).exists() {
            break trial;
        }
        ensure!(begin.elapsed() < PATIENCE, "it goes on: {trial}");
        sleep(Duration::from_secs(1));
    };
    let rows = trial["boots"]["boots"].as_array().cloned().unwrap_or_default();
    let lost: Vec<_> = rows.iter().filter(|row| !row["lost"].is_null()).collect();
    ensure!(rows.len() == 4 && lost.len() == 2, "of {} boots these are lost: {lost:?}", rows.len());
    ensure!(lost.iter().all(|row| row["arm"] == "skew"), "they are not of the arm: {lost:?}");
    let command_line = profiles::command_line()?;
    Ok(Outcome::Ok(format!("two of four boots were left, and it ended by itself: {command_line}")))
}
