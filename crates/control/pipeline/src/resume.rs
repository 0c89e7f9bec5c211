//! What a trial whose arms are boots needs of a machine besides [`crate::apply_once`]: to be started anew, and to have
//! this program go on after it.
//!
//! Five files, one entry of the journal. The unit goes on with the trial after each boot, whichever it is. The second
//! one is the dead-man of a boot on trial: where going on fails or takes too long in such a boot, it starts the machine
//! anew, and the loader, which takes the entry of a trial boot once, boots its default. A timer, which hangs on nothing
//! that a boot may wait for, starts it too, so that a boot which never comes to the first unit is left as well. What
//! hangs before systemd runs is beyond both: somebody, or a watchdog, has to switch the machine off and on.
//!
//! In a boot by the default entry the condition of the dead-man does not hold. Where the argument that it asks for has
//! come into the default entry all the same (a kernel that was installed in a boot on trial may copy its command line),
//! it could start the machine again and again: it therefore takes its own file away first, and does nothing where it
//! cannot. The next boot for which the loader is told writes that file again.

use std::io;
use std::process::{Command, Stdio};

use planish_model::{Entry, EntryId};
use planish_observe::is_systemd;

use crate::error::PipelineError;
use crate::install::{Installed, UnitFile, install, is_plain, refuse_unless};
use crate::session::{PATIENCE, Session};
use crate::state::ROOT_STATE;
use crate::undo::{Manner, Undone, undo_selected};

/// The unit that goes on.
const SERVICE: &str = "/etc/systemd/system/planish-trial.service";
/// The unit that leaves a boot on trial in which that failed.
const BACK: &str = "/etc/systemd/system/planish-trial-back.service";
/// What starts that one when all has taken too long.
const TIMER: &str = "/etc/systemd/system/planish-trial-back.timer";
/// What makes a boot start the first.
const PULLED_IN: &str = "/etc/systemd/system/multi-user.target.d/90-planish-trial.conf";
/// What makes a boot start the timer: a target that every boot begins with, whatever hangs or fails behind it.
const EARLY: &str = "/etc/systemd/system/sysinit.target.d/90-planish-trial.conf";

/// How long a boot may take until it starts what goes on, in seconds. Servers count their memory and check their disks.
const START_SECONDS_MAX: u64 = 1200;

/// What the entry is called in the log.
const NAME: &str = "trial-resume";

/// How a trial goes on after a boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeUnit {
    /// The program, as systemd is to start it: an absolute path.
    pub program: String,
    /// The folder of `--state`, where there is one.
    pub state: Option<String>,
    /// The folder that it starts in: an absolute path.
    pub folder: String,
    /// Where it looks for programs: the `PATH` of whoever began.
    pub path: String,
    /// How long what is done in one boot may take at most, in seconds.
    pub seconds_max: u64,
}

/// Refuses a machine that could not go on by itself after a boot.
///
/// # Errors
/// No systemd runs here.
pub fn can_resume(session: &Session) -> Result<(), PipelineError> {
    if !session.host().is_live() || is_systemd(session.host()) {
        return Ok(());
    }
    Err(PipelineError::Once {
        reason: "no systemd runs here, which would go on with it after a boot".to_owned(),
        cure: "try each by hand: planish apply PROFILE --persist --once".to_owned(),
    })
}

/// The files of a resume, without writing anything.
///
/// # Errors
/// Words that would mean something else in a unit.
pub fn resume_units(wanted: &ResumeUnit) -> Result<Vec<UnitFile>, PipelineError> {
    let absolute = |path: &str| path.starts_with('/') && path.chars().all(is_plain);
    refuse_unless(absolute(&wanted.program), "program", &wanted.program)?;
    refuse_unless(absolute(&wanted.folder), "working folder", &wanted.folder)?;
    let is_list = |c: char| is_plain(c) || c == ':';
    refuse_unless(wanted.path.chars().all(is_list), "PATH", &wanted.path)?;
    if let Some(state) = &wanted.state {
        refuse_unless(absolute(state), "state folder", state)?;
    }
    let pulled_in = "[Unit]\nWants=planish-trial.service\n".to_owned();
    let early = "[Unit]\nWants=planish-trial-back.timer\n".to_owned();
    // What leaves a boot is there before anything that could need it.
    let texts = [
        (BACK, back()),
        (TIMER, timer(wanted)),
        (EARLY, early),
        (SERVICE, service(wanted)),
        (PULLED_IN, pulled_in),
    ];
    Ok(texts.into_iter().map(|(path, text)| UnitFile { path: path.to_owned(), text }).collect())
}

/// Once all that a boot starts has started: what is measured must not share the machine with its boot. No fences
/// around it: it runs the user's workload and writes the host, as it does from a shell.
fn service(wanted: &ResumeUnit) -> String {
    let ResumeUnit { program, state, folder, path, seconds_max } = wanted;
    let kept = state.as_deref().unwrap_or(ROOT_STATE);
    let state = state.as_ref().map(|state| format!(" --state {state}")).unwrap_or_default();
    format!(
        "[Unit]
Description=Go on with a trial of planish whose arms are boots of this machine
# Without the disk of its state it would find no trial. One that is not mounted is a failure.
RequiresMountsFor={kept} {folder} {program}
After=multi-user.target
OnFailure=planish-trial-back.service
[Service]
Type=simple
WorkingDirectory={folder}
Environment=PATH={path}
ExecStart={program}{state} trial resume
# A finding, and an end without a verdict: those are ends all the same. A refusal is none.
SuccessExitStatus=1 6
RuntimeMaxSec={seconds_max}
"
    )
}

/// The argument that marks a boot on trial is on its command line, and on no other. It waits for nothing that a boot
/// starts, and where its file cannot be taken away, or is gone with an undo, it leaves the machine alone.
fn back() -> String {
    format!(
        "[Unit]
Description=Leave a boot on trial in which the trial of planish did not go on
DefaultDependencies=no
ConditionKernelCommandLine=planish.trial
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'rm {BACK} && (systemctl --no-block reboot || systemctl --force reboot)'
"
    )
}

/// As long as a boot and all that is done in it may take.
fn timer(wanted: &ResumeUnit) -> String {
    let seconds = wanted.seconds_max.saturating_add(START_SECONDS_MAX);
    format!(
        "[Unit]
Description=Leave a boot on trial that takes too long
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
ConditionKernelCommandLine=planish.trial
[Timer]
OnBootSec={seconds}
AccuracySec=1s
"
    )
}

/// Whether an entry is of such files.
fn is_resume(entry: &Entry) -> bool {
    entry.profile == NAME && entry.is_open()
}

/// Has this program go on with a trial after each boot. What is there as it is wanted is not written again; what a kill
/// left half done is taken out first.
///
/// # Errors
/// As [`resume_units`]; files of somebody else; a journal that cannot be used.
pub fn install_resume(session: &Session, wanted: &ResumeUnit) -> Result<Installed, PipelineError> {
    let files = || -> Result<_, PipelineError> {
        let names = [
            "install.resume-back",
            "install.resume-timer",
            "install.resume-early",
            "install.resume",
            "install.resume-target",
        ];
        Ok(names.into_iter().zip(resume_units(wanted)?).collect())
    };
    match install(session, PATIENCE, NAME, None, files()?) {
        Err(PipelineError::Installed { .. }) => {
            remove_resume(session)?;
            install(session, PATIENCE, NAME, None, files()?)
        }
        installed => installed,
    }
}

/// Takes these files out again. Called again it finds nothing.
///
/// # Errors
/// A journal that cannot be used.
pub fn remove_resume(session: &Session) -> Result<Undone, PipelineError> {
    undo_all_of(session, is_resume)
}

/// Takes back every trial boot whose entry has a reason that begins so, however far it is. Called again it finds
/// nothing.
///
/// # Errors
/// A journal that cannot be used.
pub fn end_boots(session: &Session, reason: &str) -> Result<Undone, PipelineError> {
    undo_all_of(session, |entry| {
        let is_for_it = entry.reason.as_deref().is_some_and(|text| text.starts_with(reason));
        entry.is_open() && entry.trial_boot().is_some() && is_for_it
    })
}

fn undo_all_of(session: &Session, wanted: impl Fn(&Entry) -> bool) -> Result<Undone, PipelineError> {
    let manner = Manner { patience: PATIENCE, force: false, by_timer: false, salvage: None };
    undo_selected(session, manner, |journal| {
        let entries = journal.ledger().entries.iter().rev();
        Ok(entries.filter(|entry| wanted(entry)).map(|entry| entry.id).collect::<Vec<EntryId>>())
    })
}

/// Has systemd start the machine anew, in order. It has only begun when this returns.
///
/// # Errors
/// A recorded machine, which cannot be started; systemd refuses.
pub fn reboot(session: &Session) -> Result<(), PipelineError> {
    systemctl(session, "reboot", &["reboot"])
}

/// Has systemd end the unit that goes on with a trial, and the timer that leaves this boot, where they run.
///
/// # Errors
/// As [`reboot`].
pub fn stop_resume(session: &Session) -> Result<(), PipelineError> {
    if !session.host().is_live() || !is_systemd(session.host()) {
        return Ok(());
    }
    // One that was never loaded cannot be stopped, and that is no failure: whether one is at work is seen by its lock.
    for unit in ["planish-trial.service", "planish-trial-back.timer"] {
        let _ = systemctl(session, "stop", &["stop", unit]);
    }
    Ok(())
}

fn systemctl(session: &Session, verb: &'static str, words: &[&str]) -> Result<(), PipelineError> {
    let failed = |source| PipelineError::Systemd { verb, source };
    if !session.host().is_live() {
        return Err(failed(io::Error::other("this machine is a record")));
    }
    let mut command = Command::new("systemctl");
    command.arg("--no-ask-password").args(words).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(failed(io::Error::other(format!("{status}")))) }
}
