//! `planish install check`: has systemd compare the host again and again, and leaves the answer where monitoring looks.
//!
//! Three files, each a step of one entry of the journal, so that `undo` takes them out like anything else. Nothing is
//! started: what systemd reads at the next boot is written, and the command to type for now is told. The timer is
//! pulled in by a drop-in of `timers.target` and not by a link, since files are what the journal keeps originals of.

use std::time::Duration;

use planish_act::Sink;
use planish_model::{Class, Entry, EntryId, EntryStep, Exit, KnobId, Outcome, OutcomeKind, Undo};
use tracing::info_span;

use crate::calendar;
use crate::carry_out::{self, PutBack};
use crate::contents::{self, Contents};
use crate::error::PipelineError;
use crate::session::Session;
use crate::{gone, intent, warm};

/// The unit that compares.
const SERVICE: &str = "/etc/systemd/system/planish-check.service";
/// The unit that says when.
const TIMER: &str = "/etc/systemd/system/planish-check.timer";
/// What makes a boot start the timer.
const PULLED_IN: &str = "/etc/systemd/system/timers.target.d/90-planish.conf";

/// What the entry is called in the log.
pub(crate) const NAME: &str = "install-check";

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallCheck {
    /// The program, as systemd is to start it: an absolute path.
    pub program: String,
    /// When: a calendar event of systemd, such as `hourly` or `*:0/15`.
    pub every: String,
    /// The profile to compare with; what is applied without it.
    pub profile: Option<String>,
    /// What is not compared of the profile: knobs, and second writers whose places are left to them.
    pub exclude: Vec<String>,
    /// The folder of `--state`, where there is one.
    pub state: Option<String>,
}

/// A file as it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFile {
    /// Where.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// What an installation did.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its entry; `None` when all of it was there.
    pub entry: Option<EntryId>,
    /// How each file ended; after a failure, also how each was taken back.
    pub outcomes: Vec<Outcome>,
    /// How the command ends.
    pub exit: Exit,
    /// What to know.
    pub hints: Vec<String>,
}

/// The files of an installation, without writing anything.
///
/// # Errors
/// A profile that does not exist, words that would mean something else in a unit, and a time that is none.
pub fn check_units(session: &Session, wanted: &InstallCheck) -> Result<Vec<UnitFile>, PipelineError> {
    let catalogue = session.sound_catalogue()?;
    if let Some(profile) = &wanted.profile {
        catalogue.profile(profile)?;
    }
    for name in &wanted.exclude {
        catalogue.knob_or_writer(name)?;
    }
    let absolute = |path: &str| path.starts_with('/') && path.chars().all(is_plain);
    refuse_unless(absolute(&wanted.program), "program", &wanted.program)?;
    if let Some(state) = &wanted.state {
        refuse_unless(absolute(state), "state folder", state)?;
    }
    calendar::check(&wanted.every)
        .map_err(|reason| PipelineError::NotATime { text: wanted.every.clone(), reason })?;
    if let Some(profile) = &wanted.profile {
        refuse_unless(profile.chars().all(is_plain) && !profile.starts_with('-'), "profile", profile)?;
    }
    let texts = [(SERVICE, service(wanted)), (TIMER, timer(wanted)), (PULLED_IN, pulled_in())];
    Ok(texts.into_iter().map(|(path, text)| UnitFile { path: path.to_owned(), text }).collect())
}

/// Whether a character of a word means itself on a command line of systemd.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-+@".contains(c)
}

pub(crate) fn refuse_unless(sound: bool, what: &'static str, text: &str) -> Result<(), PipelineError> {
    if sound { Ok(()) } else { Err(PipelineError::NotForAUnit { what, text: text.to_owned() }) }
}

/// Reads all of the host and changes nothing of it. What a private network, IPC or user namespace, or a /proc/sys that
/// is mounted read-only, would hide or change is what is to be compared: so none of those. Network cards tell their
/// settings over netlink alone.
fn service(wanted: &InstallCheck) -> String {
    let state = wanted.state.as_ref().map(|state| format!(" --state {state}")).unwrap_or_default();
    let profile = wanted.profile.as_ref().map(|profile| format!(" {profile}")).unwrap_or_default();
    // Names of the catalogue, which are plain words.
    let exclude: String = wanted.exclude.iter().map(|name| format!(" --exclude {name}")).collect();
    let program = &wanted.program;
    let with = wanted
        .profile
        .as_ref()
        .map_or("what planish applied".to_owned(), |profile| format!("planish profile {profile}"));
    format!(
        "[Unit]
Description=Compare this host with {with}
[Service]
Type=oneshot
ExecStart={program}{state} check{profile}{exclude} --monitor
# 1 is a warning; 2 (drift) and 3 (could not look) leave the unit failed. docs/monitoring.md tells them apart.
SuccessExitStatus=1
TimeoutStartSec=2min
Nice=10
IOSchedulingClass=idle
CapabilityBoundingSet=CAP_DAC_READ_SEARCH
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictAddressFamilies=AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0077
"
    )
}

fn timer(wanted: &InstallCheck) -> String {
    let every = wanted.every.trim();
    format!(
        "[Unit]
Description=Compare this host with what planish applied, again and again
[Timer]
# Once after each boot, when other programs have set what they set, and then by the calendar.
OnBootSec=5min
OnCalendar={every}
RandomizedDelaySec=60
"
    )
}

fn pulled_in() -> String {
    "[Unit]\nWants=planish-check.timer\n".to_owned()
}

/// Writes the files, each with its beginning and its end in the journal. What is there already is not written again.
///
/// # Errors
/// As [`check_units`]; another installation that is to be undone first; files of somebody else; a journal that cannot
/// be used.
pub fn install_check(session: &Session, wanted: &InstallCheck) -> Result<Installed, PipelineError> {
    let files = check_units(session, wanted)?;
    let names = ["install.service", "install.timer", "install.target"];
    install(session, Duration::ZERO, NAME, None, names.into_iter().zip(files).collect())
}

/// Writes files for systemd as one entry of the journal of this name. Each has its knob beside it.
pub(crate) fn install(
    session: &Session,
    patience: Duration,
    name: &str,
    reason: Option<&str>,
    files: Vec<(&'static str, UnitFile)>,
) -> Result<Installed, PipelineError> {
    let sink = session.sink()?;
    let mut journal = session.writer(patience)?;

    // After this point no other planish writes this host.
    let boot_id = session.host().boot_id();
    gone::close(&mut journal, &boot_id)?;
    let steps = steps(session, files, &journal.ledger().entries, &*sink)?;
    if steps.is_empty() {
        let hints = journal.torn_note().into_iter().collect();
        return Ok(Installed { entry: None, outcomes: Vec::new(), exit: Exit::Done, hints });
    }
    let entry =
        info_span!("record").in_scope(|| journal.begin(intent::unplanned(session, name, reason, steps)))?;
    // After this point a kill leaves an entry that undo takes back.
    let written = carry_out::carry_out(session, &mut journal, entry, false, &*sink)?;
    if written.failed {
        let PutBack { failed, outcomes, exit, .. } =
            carry_out::put_back(session, &mut journal, written, &*sink)?;
        let why = failed.detail.unwrap_or_else(|| "no reason is known".to_owned());
        return Ok(Installed {
            entry: Some(entry),
            outcomes,
            exit,
            hints: vec![format!("{}: {why}", failed.place)],
        });
    }
    let hints = journal.torn_note().into_iter().collect();
    Ok(Installed { entry: Some(entry), outcomes: written.outcomes, exit: Exit::Done, hints })
}

/// What systemd has to be told after its files were taken out, where it may have read them.
pub(crate) fn after_undo(session: &Session, outcomes: &[Outcome]) -> Option<String> {
    let taken = outcomes.iter().any(|outcome| outcome.place == TIMER && outcome.outcome == OutcomeKind::Done);
    let told = session.host().is_live() && taken;
    told.then(|| "tell systemd so: systemctl stop planish-check.timer; systemctl daemon-reload".to_owned())
        .or_else(|| warm::after_undo(session, outcomes))
}

/// The steps that are still to be done: none where all of it is there.
fn steps(
    session: &Session,
    files: Vec<(&'static str, UnitFile)>,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<Vec<EntryStep>, PipelineError> {
    let mut steps = Vec::new();
    for (name, UnitFile { path, text }) in files {
        let step = EntryStep::new(KnobId::new(name), path.clone(), text, Class::Safe, Undo::File);
        let there = |other: &&EntryStep| other.place == step.place && !other.is_undone();
        let of_others = entries.iter().filter(|entry| entry.is_open());
        let earlier =
            of_others.filter_map(|entry| Some((entry.id, entry.steps.iter().find(there)?))).next_back();
        let contents = Contents::of(EntryId(0), &step, entries, session.catalogue());
        if let Some((id, earlier)) = earlier {
            contents.refuse_link(&path, sink)?;
            let now = sink.read_bytes(&path).map_err(PipelineError::Before)?;
            if earlier.wanted != step.wanted
                || now != contents::alone(&step, session.catalogue()).map(String::into_bytes)
            {
                return Err(PipelineError::Installed { entry: id, path });
            }
            continue;
        }
        contents.refuse_foreign(&path, sink)?;
        intent::refuse_folder(session, &path)?;
        let folders = contents.folders(&path, session);
        steps.push(EntryStep { folders, ..step });
    }
    Ok(steps)
}
