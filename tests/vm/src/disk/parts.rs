//! The CPUs of parts of the system under a real systemd: limited while everything runs, kept over a boot, and given
//! back one by one. The kernel refuses to empty the list of a group in which something runs, and systemd only logs
//! that: the group of the part that is undone first has its old list as long as the other part has one, unless it is
//! given all of them.
//!
//! | stage | this boot is | what happens |
//! |---|---|---|
//! | `parts` | the first | both are limited; one is undone, killed half way, and given its CPUs back; limited again |
//! | `parts-held` | with both files | both are limited; both are undone, and nothing of it is left |

use super::boot::BEFORE;
use super::systemd::until;
use super::{Next, boot, files, reload_units, tool};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Stdio;

const PROFILES: &str = "/etc/planish/profiles";
const ROOT: &str = "/sys/fs/cgroup";
const ALL: &str = "0-2";
/// Services that nobody starts anew: one in each part, and one that is pinned.
const SYSTEM: &str = "planish-probe-system.service";
const USER: &str = "planish-probe-user.service";
const PINNED: &str = "planish-probe-pinned.service";
/// Undos that are killed until one of them leaves the group as it was without its file.
const KILLS: u32 = 5;

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    match name {
        "parts" => {
            report.check("parts.before", boot::before);
            report.check("parts.pinned", || with_profiles(pinned));
            report.check("parts.limited", || with_profiles(limited));
            report.check("parts.emptied", emptied);
            report.check("parts.killed", || with_profiles(killed));
            report.check("parts.one", || with_profiles(one_of_two));
            report.check("parts.again", || with_profiles(again));
            Some(Next::Reboot("parts-held".to_owned()))
        }
        "parts-held" => {
            report.check("parts.boot", || with_profiles(held));
            report.check("parts.instead", || with_profiles(instead));
            report.check("parts.undone", undone);
            Some(Next::End)
        }
        _ => None,
    }
}

/// The profiles are there for one check: files are compared without them.
fn with_profiles(check: fn() -> Result<Outcome>) -> Result<Outcome> {
    let system = "{ value = \"0-1\", only = \"system.slice\" }";
    let user = "{ value = \"0,2\", only = \"user.slice\" }";
    let all =
        [("system", system.to_owned()), ("user", user.to_owned()), ("both", format!("{system}, {user}"))];
    for (name, cases) in &all {
        let text = format!("name = \"{name}\"\nsummary = \"x\"\n[want]\n\"unit.allowed_cpus\" = [{cases}]\n");
        fs::write(format!("{PROFILES}/{name}.toml"), text).context("write a profile")?;
    }
    let outcome = check();
    for (name, _) in &all {
        fs::remove_file(format!("{PROFILES}/{name}.toml")).context("remove a profile")?;
    }
    outcome
}

fn file_of(part: &str) -> String {
    format!("/etc/systemd/system/{part}.d/zz-planish-allowed-cpus.conf")
}

fn apply(profile: &str) -> Result<serde_json::Value> {
    planish::json(&["apply", profile, "--yes", "--allow", "availability"], &[0, 1])
}

/// Both parts against their profiles, row by row: one that was not looked at is none.
fn check_both(exit: i32) -> Result<()> {
    for (profile, wanted) in [("system", "0-1"), ("user", "0,2")] {
        let told = planish::json(&["check", profile], &[exit])?;
        let row = &told["result"]["knobs"][0];
        ensure!(row["wanted"] == wanted && (row["running"] == wanted) == (exit == 0), "{profile}: {row}");
    }
    Ok(())
}

/// A service without a file, in a part of the system.
fn start(unit: &str, part: &str, more: &[&str]) -> Result<()> {
    let unit = format!("--unit={unit}");
    let slice = format!("--slice={part}");
    let args = ["--quiet", "--collect", &unit, &slice];
    let args: Vec<&str> = args.into_iter().chain(more.iter().copied()).chain(["sleep", "infinity"]).collect();
    tool("systemd-run", &args).map(drop)
}

/// The CPUs that the process of a service may run on.
fn allowed(unit: &str) -> Result<String> {
    let pid = tool("systemctl", &["show", "--property=MainPID", "--value", unit])?;
    let status = settings::read(&format!("/proc/{}/status", pid.trim()))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list.context("no Cpus_allowed_list")?.trim().to_owned())
}

/// What a group was given, and what it has; nothing where the controller is off.
fn group(part: &str) -> (String, String) {
    let read = |file: &str| settings::read(&format!("{ROOT}/{part}/{file}")).unwrap_or_default();
    (read("cpuset.cpus"), read("cpuset.cpus.effective"))
}

/// Fails unless the parts and the services in them have these CPUs.
fn ensure_cpus(when: &str, system: &str, user: &str) -> Result<()> {
    for (part, unit, wanted) in [("system.slice", SYSTEM, system), ("user.slice", USER, user)] {
        let (now, (given, effective)) = (allowed(unit)?, group(part));
        ensure!(now == wanted, "{when}: {unit} has CPU {now}, {part} was given {given} and has {effective}");
        ensure!(
            effective == wanted || (effective.is_empty() && wanted == ALL),
            "{when}: {part} has {effective}"
        );
    }
    Ok(())
}

/// Before Linux 6.2 a list of one part takes what a service of another one was pinned to: refused. Since then it is
/// kept.
fn pinned() -> Result<Outcome> {
    start(SYSTEM, "system.slice", &[])?;
    start(USER, "user.slice", &[])?;
    ensure_cpus("at the start", ALL, ALL)?;
    let file = format!("/etc/systemd/system/{PINNED}");
    fs::write(&file, "[Service]\nCPUAffinity=2\nExecStart=/bin/sleep infinity\n").context("write a unit")?;
    reload_units()?;
    tool("systemctl", &["start", PINNED])?;
    let seen = (|| {
        ensure!(allowed(PINNED)? == "2", "it is pinned to CPU {}", allowed(PINNED)?);
        let run = planish::run(&["apply", "user", "--yes", "--allow", "availability"])?;
        if super::isolated::isolates_groups()? {
            ensure!(run.exit <= 1, "left with {}: {}", run.exit, run.stderr.trim());
            reload_units()?;
            ensure_cpus("beside a pin", ALL, "0,2")?;
            ensure!(allowed(PINNED)? == "2", "limited, it has CPU {}", allowed(PINNED)?);
            planish::json(&["undo", "--all"], &[0])?;
            reload_units()?;
            ensure!(allowed(PINNED)? == "2", "after the undo it has CPU {}", allowed(PINNED)?);
            return Ok(Outcome::Ok("a service of another part kept its pin".to_owned()));
        }
        let told = run.stderr.trim();
        ensure!(run.exit == 3 && told.contains("before Linux 6.2"), "left with {}: {told}", run.exit);
        ensure!(allowed(PINNED)? == "2" && !Path::new(&file_of("user.slice")).exists(), "it was touched");
        // And this is why: nothing but the controller is turned on.
        fs::write(format!("{ROOT}/cgroup.subtree_control"), "+cpuset").context("turn the controller on")?;
        let lost = allowed(PINNED)?;
        fs::write(format!("{ROOT}/cgroup.subtree_control"), "-cpuset").context("turn the controller off")?;
        ensure!(lost == ALL, "with the controller alone it has CPU {lost}");
        Ok(Outcome::Ok(format!("refused: {}", told.lines().next().unwrap_or_default())))
    })();
    let _ = tool("systemctl", &["stop", PINNED]);
    fs::remove_file(&file).context("remove the unit")?;
    reload_units()?;
    seen
}

/// Two entries, one for each part; systemd sets both groups when it reads its files.
fn limited() -> Result<Outcome> {
    for profile in ["system", "user"] {
        let applied = apply(profile)?;
        ensure!(
            applied["messages"].to_string().contains("systemctl daemon-reload"),
            "no word of it: {applied}"
        );
    }
    // Each by the name that it was allowed under.
    check_both(1).context("before systemd has read its files")?;
    reload_units()?;
    ensure_cpus("limited", "0-1", "0,2")?;
    check_both(0)?;
    Ok(Outcome::Ok("system.slice has CPU 0-1 and user.slice 0,2, with the same services".to_owned()))
}

/// What the kernel does with an empty list, and what systemd comes to without the file.
fn emptied() -> Result<Outcome> {
    let refused = fs::write(format!("{ROOT}/user.slice/cpuset.cpus"), "\n");
    let refused = refused.err().context("the kernel took an empty list")?;
    let (file, kept) = (file_of("user.slice"), format!("{}/user.conf", super::MEMORY));
    fs::copy(&file, &kept).context("keep the file")?;
    fs::remove_file(&file).context("remove the file")?;
    reload_units()?;
    let alone = ensure_cpus("without its file", "0-1", "0,2");
    // check finds it: nobody gives that group its CPUs.
    let told = planish::json(&["check"], &[1]);
    fs::copy(&kept, &file).context("put the file back")?;
    reload_units()?;
    alone?;
    let told = told?;
    let rows = told["result"]["knobs"].as_array().context("no result.knobs")?;
    let why =
        |row: &&serde_json::Value| row["because"].as_str().is_some_and(|why| why.contains("no file gives"));
    let row = rows.iter().find(why).with_context(|| format!("check does not tell it: {told}"))?;
    Ok(Outcome::Ok(format!("the kernel says: {refused}; systemd left it; check says: {}", row["because"])))
}

/// An undo that is killed when the file is gone leaves the group to the next one.
fn killed() -> Result<Outcome> {
    let file = file_of("user.slice");
    planish::json(&["undo"], &[0])?;
    for count in 1..=KILLS {
        let entry = apply("user")?["result"]["entry"].to_string();
        reload_units()?;
        ensure_cpus("limited", "0-1", "0,2")?;
        let mut undo = planish::command(&["undo"]);
        let mut child =
            undo.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("start planish undo")?;
        while Path::new(&file).exists() && child.try_wait().context("wait for it")?.is_none() {}
        child.kill().context("kill it")?;
        let status = child.wait().context("wait for it")?;
        let (given, _) = group("user.slice");
        if !status.success() && given == "0,2" && !Path::new(&file).exists() {
            // Nor does systemd, which reads its files in between, give it anything.
            reload_units()?;
            ensure_cpus("killed", "0-1", "0,2")?;
            return Ok(Outcome::Ok(format!(
                "{status} at kill {count}: the file is gone, and user.slice has {given}"
            )));
        }
        // Too early or too late.
        planish::json(&["undo", &entry], &[0])?;
    }
    anyhow::bail!("none of {KILLS} kills came between the file and the group")
}

/// The rest of the undo: one part has its CPUs again, before and after systemd reads its files, and the other has its
/// list.
fn one_of_two() -> Result<Outcome> {
    let undone = planish::json(&["undo"], &[0])?;
    ensure_cpus("undone", "0-1", ALL)?;
    let told = undone["messages"].to_string();
    ensure!(told.contains("user.slice has CPU 0-2 again"), "no word of it: {undone}");
    let (at_once, _) = group("user.slice");
    reload_units()?;
    ensure_cpus("undone, and read anew", "0-1", ALL)?;
    reload_units()?;
    ensure_cpus("and once more", "0-1", ALL)?;
    planish::json(&["check", "system"], &[0])?;
    let log = tool("journalctl", &["--boot", "--no-pager", "--output=cat", "_PID=1"])?;
    let said = log.lines().rev().find(|line| line.contains("cpuset.cpus")).unwrap_or("nothing").to_owned();
    Ok(Outcome::Ok(format!("user.slice was given {at_once}, and has {ALL}; systemd says: {said}")))
}

/// The part that was undone is limited again, for the next boot.
fn again() -> Result<Outcome> {
    apply("user")?;
    reload_units()?;
    ensure_cpus("limited again", "0-1", "0,2")?;
    Ok(Outcome::Ok("both are limited for the next boot".to_owned()))
}

/// A boot sets both by itself.
fn held() -> Result<Outcome> {
    start(SYSTEM, "system.slice", &[])?;
    start(USER, "user.slice", &[])?;
    until("limited", || Ok(allowed(USER)? == "0,2"))?;
    ensure_cpus("after the boot", "0-1", "0,2")?;
    check_both(0)?;
    Ok(Outcome::Ok("both are limited, and check finds nothing".to_owned()))
}

/// A profile without one of the parts takes the place of one that has it.
fn instead() -> Result<Outcome> {
    planish::json(&["undo", "--all"], &[0])?;
    reload_units()?;
    ensure_cpus("all undone", ALL, ALL)?;
    let applied = apply("both")?;
    reload_units()?;
    ensure_cpus("both by one entry", "0-1", "0,2")?;
    let entry = applied["result"]["entry"].to_string();
    let args = ["apply", "system", "--yes", "--allow", "availability", "--instead-of", &entry];
    planish::json(&args, &[0, 1])?;
    reload_units()?;
    ensure_cpus("one instead of both", "0-1", ALL)?;
    Ok(Outcome::Ok(format!("entry {entry} went, and user.slice has {ALL}")))
}

/// Without the last one nobody needs the controller, and everything is as it was.
fn undone() -> Result<Outcome> {
    planish::json(&["undo", "--all"], &[0])?;
    ensure_cpus("undone", ALL, ALL)?;
    reload_units()?;
    ensure_cpus("undone, and read anew", ALL, ALL)?;
    let check = planish::json(&["check"], &[0, 1])?;
    ensure!(!check.to_string().contains("no file gives"), "check still finds it: {check}");
    let controllers = settings::read(&format!("{ROOT}/cgroup.subtree_control"))?;
    ensure!(!controllers.contains("cpuset"), "the controller is on: {controllers}");
    let _ = tool("systemctl", &["stop", SYSTEM, USER]);
    let count = files::ensure_as_kept(BEFORE)?;
    Ok(Outcome::Ok(format!("the root keeps {controllers}; {count} files as before")))
}
