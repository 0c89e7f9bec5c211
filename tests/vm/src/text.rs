//! The text of a program on huge pages, by the page cache of this kernel: a tmpfs that has them, and planish itself as
//! the program, since it is what this guest has of code.

use crate::check::{Outcome, Report};
use crate::planish;
use anyhow::{Context, Result, ensure};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

const FOLDER: &str = "/text";
const PROGRAM: &str = "/text/engine";

/// Runs them.
pub fn run_all(report: &mut Report) {
    report.check("text.tmpfs", || {
        fs::create_dir_all(FOLDER).context("make a folder")?;
        mount("tmpfs", FOLDER, "tmpfs", MountFlags::empty(), Some(c"huge=always"))
            .context("mount a tmpfs")?;
        let outcome = on_huge_pages();
        unmount(FOLDER, UnmountFlags::DETACH).context("unmount it")?;
        outcome
    });
}

fn on_huge_pages() -> Result<Outcome> {
    fs::copy("/bin/planish", PROGRAM).context("copy planish")?;
    let before = fs::read(PROGRAM).context("read the program")?;
    let done =
        planish::json(&["text", "huge", PROGRAM, "--route", "copy", "--prepare=drop-caches"], &[0, 1])?;
    let result = &done["result"];
    let prepared = &result["prepared"];
    let actions = prepared["actions"].as_array().map_or(0, Vec::len);
    // What was cached so already needs no room.
    ensure!(
        actions == 2 || result["route"] == "already",
        "caches dropped, memory moved together: {prepared}"
    );
    let on = format!("{} of {} bytes", result["after"]["huge_bytes"], result["after"]["whole_bytes"]);
    let room =
        format!("free huge pages {} before, {} then", prepared["pages_before"], prepared["pages_after"]);
    if result["route"] != "copy" {
        return Ok(Outcome::Skip(format!("{on}; {room}; {}", result["routes"])));
    }
    let told = Command::new(PROGRAM).arg("version").stdin(Stdio::null()).output().context("start it")?;
    ensure!(told.status.success(), "the copy left with {}", told.status);
    let checked = planish::json(&["check"], &[0, 1])?;
    ensure!(
        checked["result"]["texts"][0]["file"] == "ours",
        "check tells of it: {}",
        checked["result"]["texts"]
    );
    let undone: Value = planish::json(&["undo"], &[0])?;
    ensure!(fs::read(PROGRAM).context("read it again")? == before, "undo puts the original back: {undone}");
    Ok(Outcome::Ok(format!("{on} by copy; {room}")))
}
