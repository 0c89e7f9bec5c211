//! `planish install warm`: has systemd read a program's text into huge pages again, at the moments at which that works.
//!
//! The page cache forgets: a reboot takes all of it, and memory that runs short takes what was used least. What it has
//! forgotten it reads again in small pieces, unless somebody asks for large ones before anybody else reads it; and a
//! page that a process has mapped stays as it is until that process ends (but for kernels that collapse text of files).
//!
//! ```text
//!  --unit db.service   a line before each start of that service. The only moment at which surely nobody runs its
//!                      program: after a boot, and after memory ran short and the service was started anew. The pages
//!                      are charged to its control group, as if it had read them itself.
//!  without             a timer, for what no service starts (compilers, shells' tools): soon after each boot, and again
//!                      and again. A look at what is there already is a moment, and what runs just then is left alone.
//! ```
//!
//! Files of systemd, as `install check` writes them: steps of one entry, which `undo` takes out.

use std::time::Duration;

use planish_model::{Entry, EntryId, EntryStep, Outcome, OutcomeKind};

use crate::calendar;
use crate::error::PipelineError;
use crate::install::{Installed, UnitFile, install, is_plain, refuse_unless};
use crate::session::Session;
use crate::weekly;

/// What the entry is called in the log.
pub(crate) const NAME: &str = "install-warm";

/// What every name of a file of ours has in it.
const OWN: &str = "planish-warm-";

/// A name of a file has 255 bytes at most, and ours has a beginning and an end.
const NAME_BYTES_MAX: usize = 200;

/// How it is asked for.
const VERB: &str = " text huge ";
const ROUTE: &str = " --route warm";

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallWarm {
    /// planish, as systemd is to start it: an absolute path.
    pub program: String,
    /// The program whose text it is, once all links are followed.
    pub binary: String,
    /// The service that starts it; a timer without one.
    pub unit: Option<String>,
    /// When the timer asks, as a calendar event of systemd.
    pub every: String,
}

/// The files, each with its knob, without writing anything.
fn files(wanted: &InstallWarm) -> Result<Vec<(&'static str, UnitFile)>, PipelineError> {
    let absolute = |path: &str| path.starts_with('/') && path.chars().all(is_plain);
    refuse_unless(absolute(&wanted.program), "program", &wanted.program)?;
    refuse_unless(absolute(&wanted.binary), "program", &wanted.binary)?;
    let name = format!("{OWN}{}", escaped(&wanted.binary));
    refuse_unless(name.len() <= NAME_BYTES_MAX, "program", &wanted.binary)?;
    let folder = "/etc/systemd/system";
    if let Some(unit) = &wanted.unit {
        let stem = unit.strip_suffix(".service").unwrap_or_default();
        let is_name = |c: char| is_plain(c) && c != '/';
        let is_sound = stem.starts_with(|c: char| c.is_ascii_alphanumeric()) && stem.chars().all(is_name);
        refuse_unless(is_sound && unit.len() <= NAME_BYTES_MAX, "service", unit)?;
        let path = format!("{folder}/{unit}.d/90-{name}.conf");
        return Ok(vec![("install.warm-start", UnitFile { path, text: before_start(wanted) })]);
    }
    calendar::check(&wanted.every)
        .map_err(|reason| PipelineError::NotATime { text: wanted.every.clone(), reason })?;
    let file = |path: String, text: String| UnitFile { path, text };
    Ok(vec![
        ("install.warm-service", file(format!("{folder}/{name}.service"), service(wanted))),
        ("install.warm-timer", file(format!("{folder}/{name}.timer"), timer(wanted))),
        (
            "install.warm-target",
            file(format!("{folder}/timers.target.d/90-{name}.conf"), format!("[Unit]\nWants={name}.timer\n")),
        ),
    ])
}

/// The files of an installation, without writing anything.
///
/// # Errors
/// Words that would mean something else in a unit, and a time that is none.
pub fn warm_units(wanted: &InstallWarm) -> Result<Vec<UnitFile>, PipelineError> {
    Ok(files(wanted)?.into_iter().map(|(_, file)| file).collect())
}

/// Writes the files, each with its beginning and its end in the journal. What is there already is not written again.
///
/// # Errors
/// As [`warm_units`]; another installation for the same program that is to be undone first; files of somebody else; a
/// journal that cannot be used.
pub fn install_warm(session: &Session, wanted: &InstallWarm) -> Result<Installed, PipelineError> {
    install(session, Duration::ZERO, NAME, None, files(wanted)?)
}

/// Whether a host has a service of this name, or the template of it. Nothing speaks against one where process 1 is no
/// systemd: an image may be made ready for another machine.
#[must_use]
pub fn has_unit(session: &Session, unit: &str) -> bool {
    let host = session.host();
    !planish_observe::is_systemd(host) || planish_observe::has_unit(host, unit)
}

/// The file by which a service is masked, where process 1 is systemd.
#[must_use]
pub fn masked(session: &Session, unit: &str) -> Option<String> {
    let host = session.host();
    planish_observe::is_systemd(host).then(|| planish_observe::masked(host, unit)).flatten()
}

/// A path as a part of a name of a unit: two paths never come to one name.
fn escaped(path: &str) -> String {
    let one = |c: char| match c {
        '/' => "-".to_owned(),
        c if c.is_ascii_alphanumeric() || c == '.' => c.to_string(),
        other => format!("_{:02x}", u32::from(other)),
    };
    path.trim_start_matches('/').chars().map(one).collect()
}

fn command(wanted: &InstallWarm) -> String {
    format!("{}{VERB}{}{ROUTE}", wanted.program, wanted.binary)
}

/// As root, since it looks at who runs the program; and whatever comes of it, the service starts.
fn before_start(wanted: &InstallWarm) -> String {
    format!("[Service]\nExecStartPre=-+{}\n", command(wanted))
}

/// Reads one file, looks at who runs it, and may do nothing else. Who runs a program of another user is told to whom
/// may trace it.
fn service(wanted: &InstallWarm) -> String {
    let (command, binary) = (command(wanted), &wanted.binary);
    format!(
        "[Unit]
Description=Text of {binary} on huge pages
RequiresMountsFor={binary}
[Service]
Type=oneshot
ExecStart={command}
# 1 says that less came of it than was asked for: somebody runs it, or memory lies in small pieces.
SuccessExitStatus=1
TimeoutStartSec=5min
Nice=10
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_SYS_PTRACE
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateDevices=yes
PrivateNetwork=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
UMask=0077
"
    )
}

fn timer(wanted: &InstallWarm) -> String {
    let (every, binary) = (wanted.every.trim(), &wanted.binary);
    format!(
        "[Unit]
Description=Text of {binary} on huge pages, again and again
[Timer]
OnBootSec=30s
OnCalendar={every}
RandomizedDelaySec=60
"
    )
}

/// The programs that open entries have warmed, each with its entry.
pub(crate) fn warmed(entries: &[Entry]) -> Vec<(EntryId, String)> {
    let open = entries.iter().filter(|entry| entry.is_open() && entry.profile == NAME);
    let steps = open.flat_map(|entry| entry.steps.iter().map(move |step| (entry.id, step)));
    let of_line = |line: &str| {
        let (_, rest) = line.strip_prefix("ExecStart")?.split_once(VERB)?;
        rest.strip_suffix(ROUTE).map(str::to_owned)
    };
    let binary = |step: &EntryStep| step.wanted.lines().find_map(of_line).filter(|_| !step.is_undone());
    steps.filter_map(|(entry, step)| Some((entry, binary(step)?))).collect()
}

/// What systemd has to be told after files of ours were taken out, where it may have read them.
pub(crate) fn after_undo(session: &Session, outcomes: &[Outcome]) -> Option<String> {
    let done = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Done);
    let mut taken = done.map(|outcome| outcome.place.as_str()).filter(|place| is_own(place)).peekable();
    let is_told = session.host().is_live() && taken.peek().is_some();
    let timers = taken.filter(|place| place.ends_with(".timer")).filter_map(|place| place.rsplit('/').next());
    let stop: String = timers.map(|timer| format!("systemctl stop {timer}; ")).collect();
    is_told.then(|| format!("tell systemd so: {stop}systemctl daemon-reload"))
}

/// Whether a file is one of these, or one of a publish every week: neither makes a unit start anew.
pub(crate) fn is_own(place: &str) -> bool {
    let name = place.rsplit('/').next().unwrap_or_default();
    place.starts_with("/etc/systemd/system/")
        && [OWN, weekly::OWN].iter().any(|own| name.trim_start_matches("90-").starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_programs_have_one_name() {
        assert_eq!(escaped("/srv/engine"), "srv-engine");
        let paths = ["/a/b", "/a-b", "/a_b", "/a_2db", "/a@b", "/a+b", "/a.b"];
        let names: std::collections::BTreeSet<String> = paths.iter().map(|path| escaped(path)).collect();
        assert_eq!(names.len(), paths.len(), "{names:?}");
    }
}
