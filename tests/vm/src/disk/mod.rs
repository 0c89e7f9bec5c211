//! The guest with a disk: a Debian that its loader starts and systemd runs, whose boots planish changes for real.
//!
//! One program, started by a unit at every boot, does one *stage*: which one, the host side tells in the serial number
//! of the machine. What a stage must remember for the next boot lies on the disk. The host side is
//! `xtask/src/vm/disk`; what the two agree on beside the lines of every guest:
//!
//! ```text
//! DMI serial number   planish-stage-<name>       the stage of this boot
//! second serial port  PLANISH-NEXT <name>        the stage of the next one; none after the last
//!                     PLANISH-CUT <name>         the same, and the power is to be cut now
//! ```
//!
//! A stage that names its next one leaves by an ordinary reboot, at which QEMU ends and is started anew. One that wants
//! its power cut waits for that; the next one finds what was flushed to the disk by then.

mod arms;
mod boot;
mod drop_in;
mod files;
mod holder;
mod isolated;
mod kept;
mod left;
mod loaders;
mod once;
mod oracle;
mod parts;
mod power;
mod profiles;
mod services;
mod systemd;
mod third;

use crate::check::Report;
use crate::control;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::{Command, Stdio};

const SERIAL_NUMBER: &str = "/sys/class/dmi/id/product_serial";
const PREFIX: &str = "planish-stage-";
/// Others on the same host: the stage after the last power cut.
const THIRD: &str = "third";
/// A placement of a service, and the drop-in of `planish run`; the host side gives stages of this name a machine of
/// two nodes.
const SERVICES: &str = "services";
/// Every safe knob of this kernel.
const KNOBS: &str = "knobs";
/// What needs a real systemd, by itself; else it is a part of the third boot.
const UNITS: &str = "units";
/// Before the name of a stage: the same on the image whose kernel isolates CPUs of control groups.
const NEWER: &str = "newer-";
/// What stages leave for each other.
const MEMORY: &str = "/var/lib/planish-guest";

/// The stage of this boot. None on a machine that is not such a guest: then nothing must be done.
pub fn stage() -> Option<String> {
    let text = fs::read_to_string(SERIAL_NUMBER).ok()?;
    text.trim().strip_prefix(PREFIX).map(str::to_owned)
}

/// What comes after a stage.
enum Next {
    /// This stage, after an ordinary reboot.
    Reboot(String),
    /// This stage, after a reboot that somebody else in the guest makes.
    ByItself(String),
    /// This stage, after the power was cut.
    PowerCut(String),
    /// Nothing.
    End,
}

/// Runs a stage and leaves the machine.
pub fn run(stage: &str) {
    let mut report = Report::default();
    let next = match stage.strip_prefix(NEWER).unwrap_or(stage) {
        "persist" => boot::persist(&mut report),
        "booted" => boot::booted(&mut report),
        "gone" => {
            boot::gone(&mut report);
            systemd::run_all(&mut report);
            Next::Reboot(power::FIRST.to_owned())
        }
        UNITS => {
            report.check("units.before", boot::before);
            systemd::run_all(&mut report);
            holder::begin(&mut report)
        }
        THIRD => {
            third::run_all(&mut report);
            Next::Reboot(SERVICES.to_owned())
        }
        SERVICES => {
            services::run_all(&mut report);
            drop_in::run_all(&mut report);
            kept::begin(&mut report)
        }
        KNOBS => {
            control::run_all(&mut report);
            Next::End
        }
        stage => once::stage(stage, &mut report)
            .or_else(|| arms::stage(stage, &mut report))
            .or_else(|| holder::stage(stage, &mut report))
            .or_else(|| kept::stage(stage, &mut report))
            .or_else(|| left::stage(stage, &mut report))
            .or_else(|| loaders::stage(stage, &mut report))
            .or_else(|| parts::stage(stage, &mut report))
            .or_else(|| power::stage(stage, &mut report))
            .unwrap_or_else(|| {
                report.fail("stage", &format!("no stage {stage}"));
                Next::End
            }),
    };
    if let Next::Reboot(next) | Next::ByItself(next) = &next {
        println!("PLANISH-NEXT {next}");
    }
    report.finish();
    match next {
        Next::Reboot(_) => leave("reboot"),
        Next::End => leave("poweroff"),
        // systemd waits for the end of this program before it takes anything down.
        Next::ByItself(_) => {}
        Next::PowerCut(next) => {
            println!("PLANISH-CUT {next}");
            loop {
                std::thread::park();
            }
        }
    }
}

/// In the ordinary way, units stopped and file systems unmounted.
fn leave(verb: &str) {
    let left = Command::new("systemctl").arg(verb).stdin(Stdio::null()).status();
    if !left.is_ok_and(|status| status.success()) {
        eprintln!("init: systemctl {verb} did not work");
    }
}

/// Has systemd read its units anew. systemctl gives it three minutes for that, too little on a busy machine.
fn reload_units() -> Result<()> {
    const MANAGER: [&str; 3] =
        ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
    let args: Vec<&str> = ["call", "--timeout=900"].into_iter().chain(MANAGER).chain(["Reload"]).collect();
    tool("busctl", &args).map(drop)
}

/// Runs a program of the guest; its output, if it left with 0.
fn tool(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("start {program}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{program} {}: {}: {} {}",
        args.join(" "),
        output.status,
        stdout.trim(),
        stderr.trim()
    );
    Ok(stdout)
}
