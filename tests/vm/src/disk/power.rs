//! Power cuts among the writes of `apply --persist` and of its undo: the machine must boot again, and an undo there
//! must bring back every file.
//!
//! strace stops planish, or the program that makes the menu, before a named system call, for good. Then the guest says
//! so and the host side kills QEMU. The disk of the next boot holds what had been flushed by then, and nothing else:
//! not what lay in the guest's memory, and not what lay in the cache of its disk.

use super::boot::{self, BEFORE};
use super::{Next, THIRD, files, tool};
use crate::check::{Outcome, Report};
use crate::planish;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const BINARY: &str = "/bin/planish";
const UNDO: [&str; 2] = ["undo", "--all"];
const JOURNAL: &str = "/var/lib/planish/journal.jsonl";
/// A late one of the scripts that make a menu: what the others print is in the file by then.
const LATE_SCRIPT: &str = "/etc/grub.d/30_os-prober";
/// In memory: on the disk it would be one more write.
const TRACE: &str = "/run/planish-trace";
/// An apply with a menu takes two minutes under emulation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A moment of an apply, or of an undo, at which the power goes.
struct Cut {
    name: &'static str,
    command: Stopped,
    /// Stopped before the system call of this name, the one of this number, that names this file or has it open.
    call: &'static str,
    path: &'static str,
    number: usize,
    /// Whether all that was written so far reaches the disk before the cut, as by chance it may; else only what was
    /// flushed on purpose does.
    written: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Apply,
    Undo,
}

const fn cut(
    name: &'static str,
    command: Stopped,
    (call, path, number): (&'static str, &'static str, usize),
    written: bool,
) -> Cut {
    Cut { name, command, call, path, number, written }
}

const CUTS: &[Cut] = &[
    // The intent is written and not yet on the disk: nothing of the apply may be there.
    cut("apply.intent", Stopped::Apply, ("fdatasync", JOURNAL, 1), false),
    cut("apply.first_write", Stopped::Apply, ("write", "/proc/sys/vm/swappiness", 1), false),
    cut("apply.sysctl", Stopped::Apply, ("rename", "/etc/sysctl.d/.90-planish.conf.new", 1), true),
    cut("apply.drop_in", Stopped::Apply, ("fsync", "/etc/default/grub.d/.90-planish.cfg.new", 1), true),
    cut("apply.menu_half", Stopped::Apply, ("execve", LATE_SCRIPT, 1), true),
    cut("apply.menu_whole", Stopped::Apply, ("rename", "/boot/grub/.grub.cfg.planish-new", 1), true),
    // Renamed, and the new name is not on the disk for sure.
    cut("apply.menu_named", Stopped::Apply, ("fsync", "/boot/grub", 1), false),
    cut("apply.outcome", Stopped::Apply, ("fdatasync", JOURNAL, 2), false),
    cut("undo.announced", Stopped::Undo, ("fdatasync", JOURNAL, 1), true),
    // The drop-in is gone, and the menu still gives what was in it.
    cut("undo.drop_in", Stopped::Undo, ("fsync", "/etc/default/grub.d", 1), true),
    cut("undo.menu_half", Stopped::Undo, ("execve", LATE_SCRIPT, 1), true),
    cut("undo.menu_named", Stopped::Undo, ("fsync", "/boot/grub", 1), false),
    cut("undo.sysctl", Stopped::Undo, ("unlink", "/etc/sysctl.d/90-planish.conf", 1), false),
    cut("undo.closed", Stopped::Undo, ("fdatasync", JOURNAL, 2), false),
];

/// The first of these stages.
pub const FIRST: &str = "cut-0";

/// A stage of this module, by its name.
pub fn stage(name: &str, report: &mut Report) -> Option<Next> {
    let (kind, index) = name.split_once('-')?;
    let index: usize = index.parse().ok().filter(|index| *index <= CUTS.len())?;
    match kind {
        "cut" => Some(from_the_start(report, index)),
        "after" => Some(after(report, CUTS.get(index)?, index + 1)),
        _ => None,
    }
}

/// A boot in which the cut before, if there was one, has left nothing.
fn from_the_start(report: &mut Report, index: usize) -> Next {
    // On a disk that begins here nothing was cut before.
    let is_first = !files::is_kept(BEFORE);
    if is_first {
        report.check("reboot.before", boot::before);
    }
    let before = index.checked_sub(1).filter(|_| !is_first);
    let name = before.map_or("start", |before| CUTS[before].name);
    report.check(&format!("power.{name}.gone"), boot::as_before);
    go_on(report, index)
}

/// The next cut, if there is one.
fn go_on(report: &mut Report, index: usize) -> Next {
    let Some(cut) = CUTS.get(index) else { return Next::Reboot(THIRD.to_owned()) };
    if cut.command == Stopped::Undo {
        report.check(&format!("power.{}.applied", cut.name), boot::apply);
    }
    let mut stopped = None;
    report.check(&format!("power.{}", cut.name), || {
        let (child, call) = stop(cut)?;
        stopped = Some(child);
        if cut.written {
            tool("sync", &[])?;
        }
        let on_disk = if cut.written { "all that was written" } else { "what was flushed" };
        Ok(Outcome::Ok(format!("cut before {call}, {on_disk} stays")))
    });
    if stopped.is_some() {
        return Next::PowerCut(format!("after-{index}"));
    }
    // It never came there: the others are still worth their boots.
    let _ = planish::run(&UNDO);
    Next::Reboot(format!("cut-{}", index + 1))
}

/// The boot after a cut.
fn after(report: &mut Report, cut: &Cut, next: usize) -> Next {
    report.check(&format!("power.{}.undone", cut.name), || undone(cut));
    // With what ran from the start on as it was then, the next cut needs no boot of its own.
    if next < CUTS.len() && boot::as_before().is_ok() {
        return go_on(report, next);
    }
    Next::Reboot(format!("cut-{next}"))
}

/// It booted; undo, and compare every file with the copy from before the first apply.
fn undone(cut: &Cut) -> Result<Outcome> {
    let given = boot::is_given()?;
    let told = planish::json(&UNDO, &[0]).with_context(|| state(cut))?;
    let count = files::ensure_as_kept(BEFORE).with_context(|| format!("{}; undo told {told}", state(cut)))?;
    let again = planish::json(&UNDO, &[0])?;
    let entries = again["result"]["entries"].as_array().context("undo: no result.entries")?;
    ensure!(entries.is_empty(), "the second undo still found {entries:?}");
    let entries = told["result"]["entries"].as_array().context("undo: no result.entries")?;
    Ok(Outcome::Ok(format!(
        "booted {} the arguments, undid {} entries, {count} files byte for byte as before",
        if given { "with" } else { "without" },
        entries.len()
    )))
}

/// What a failure needs to be understood.
fn state(cut: &Cut) -> String {
    let journal = fs::read_to_string(JOURNAL).unwrap_or_default();
    let last = journal.lines().last().unwrap_or_default();
    let last = last.get(..200).unwrap_or(last);
    format!("after the cut before {}({}), the journal ends in {last}", cut.call, cut.path)
}

/// Starts the command of a cut, and returns once it is stopped: what stands, and before which call.
fn stop(cut: &Cut) -> Result<(Child, String)> {
    let _ = fs::remove_file(TRACE);
    let (call, number) = (cut.call, cut.number);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-qqq", "--seccomp-bpf", "-e", "signal=none", "-o", TRACE, "-P", cut.path]);
    command.args(["-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:delay_enter=3600s:when={number}")]);
    let args: &[&str] = match cut.command {
        Stopped::Apply => &boot::APPLY,
        Stopped::Undo => &UNDO,
    };
    command.arg("--").arg(BINARY).args(args);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.context("start strace")?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        // A call that stands has a line without an end. Others are over by the second look.
        let standing = standing();
        sleep(Duration::from_millis(500));
        if standing.is_some() && standing == self::standing() {
            return Ok((child, standing.unwrap_or_default()));
        }
        if let Some(status) = child.try_wait().context("look at strace")? {
            let mut told = String::new();
            let errors = child.stderr.take().context("no stderr")?;
            let _ = std::io::Read::read_to_string(&mut { errors }, &mut told);
            bail!("{} {call} of {} never came; {status}: {}", number, cut.path, told.trim());
        }
    }
    child.kill().context("kill strace")?;
    bail!("not stopped before {call} of {} within {} s", cut.path, PATIENCE.as_secs())
}

/// The call that has begun and not ended.
fn standing() -> Option<String> {
    let text = fs::read_to_string(TRACE).ok()?;
    let last = text.rsplit('\n').next()?.trim();
    (!last.is_empty()).then(|| last.to_owned())
}
