//! `planish install publish`: the service and the timer that `planish text publish --timer` wrote for its user, as
//! files of systemd that `undo` takes out.
//!
//! What they say is the user's who publishes: the folder of the repository, the keys, the words of the command line.
//! So root installs the two files as they are, once each line of them is one that `text publish` writes: a file that
//! lay in a user's folder must start nothing else as root.

use std::time::Duration;

use crate::calendar;
use crate::error::PipelineError;
use crate::install::{Installed, UnitFile, install, is_plain, refuse_unless};
use crate::session::Session;

/// What the entry is called in the log.
pub(crate) const NAME: &str = "install-publish";

/// What the name of every file of ours begins with.
pub(crate) const OWN: &str = "planish-text-publish-";

/// A name of a file has 255 bytes at most, and ours has a beginning and an end.
const NAME_BYTES_MAX: usize = 200;

/// What a line may set in either file.
const OF_SERVICE: &[&str] = &[
    "AmbientCapabilities",
    "After",
    "Description",
    "ExecStart",
    "Nice",
    "SuccessExitStatus",
    "TimeoutStartSec",
    "Type",
    "UMask",
    "User",
    "Wants",
    "WorkingDirectory",
];
const OF_TIMER: &[&str] = &["Description", "OnCalendar", "Persistent", "RandomizedDelaySec", "WantedBy"];

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallPublish {
    /// What both units are called, without what stands behind the dot.
    pub name: String,
    /// The text of the service.
    pub service: String,
    /// The text of the timer.
    pub timer: String,
}

/// The files of an installation, without writing anything.
///
/// # Errors
/// A name or a line that `text publish` does not write, and a time that is none.
pub fn publish_units(wanted: &InstallPublish) -> Result<Vec<UnitFile>, PipelineError> {
    Ok(files(wanted)?.into_iter().map(|(_, file)| file).collect())
}

/// Writes the files, each with its beginning and its end in the journal. What is there already is not written again.
///
/// # Errors
/// As [`publish_units`]; another installation of this name that is to be undone first; files of somebody else; a
/// journal that cannot be used.
pub fn install_publish(session: &Session, wanted: &InstallPublish) -> Result<Installed, PipelineError> {
    install(session, Duration::ZERO, NAME, None, files(wanted)?)
}

/// The files, each with its knob.
fn files(wanted: &InstallPublish) -> Result<Vec<(&'static str, UnitFile)>, PipelineError> {
    let InstallPublish { name, service, timer } = wanted;
    let is_name = |c: char| is_plain(c) && !"/@+".contains(c);
    let is_sound = name.strip_prefix(OWN).is_some_and(|stem| !stem.is_empty() && stem.chars().all(is_name));
    refuse_unless(is_sound && name.len() <= NAME_BYTES_MAX, "name", name)?;
    lines(service, OF_SERVICE)?;
    lines(timer, OF_TIMER)?;
    let folder = "/etc/systemd/system";
    let file = |path: String, text: &str| UnitFile { path, text: text.to_owned() };
    let pulled_in = format!("[Unit]\nWants={name}.timer\n");
    Ok(vec![
        ("install.publish-service", file(format!("{folder}/{name}.service"), service)),
        ("install.publish-timer", file(format!("{folder}/{name}.timer"), timer)),
        ("install.publish-target", file(format!("{folder}/timers.target.d/90-{name}.conf"), &pulled_in)),
    ])
}

/// Refuses a text with a line that is not of ours.
fn lines(text: &str, keys: &[&str]) -> Result<(), PipelineError> {
    for line in text.lines() {
        let line = line.trim();
        let is_silent =
            line.is_empty() || line.starts_with('#') || line.starts_with('[') && line.ends_with(']');
        if is_silent {
            continue;
        }
        let set = line.split_once('=').filter(|(key, _)| keys.contains(key));
        // Behind a backslash the next line would be a part of this one.
        let set = set.filter(|_| !line.ends_with('\\') && !line.contains(char::is_control));
        let is_sound = set.is_some_and(|(key, value)| match key {
            // A path comes first: signs before it would make systemd start it with other rights.
            "ExecStart" => {
                let is_path = value.trim_start_matches('"').starts_with('/');
                is_path && (value.contains(" text publish ") || value.contains(" text record "))
            }
            "AmbientCapabilities" => value == "CAP_PERFMON",
            _ => true,
        });
        refuse_unless(is_sound, "line", line)?;
        if let Some(("OnCalendar", time)) = set {
            let not_a_time = |reason| PipelineError::NotATime { text: time.to_owned(), reason };
            calendar::check(time).map_err(not_a_time)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_text_publish_does_not_write_is_refused() {
        let sound = |line: &str| lines(line, OF_SERVICE).is_ok();
        for line in [
            "ExecStart=/usr/bin/planish text publish a.planish --store /srv/p",
            "ExecStart=\"/opt/my tools/planish\" text record --unit a.service -o a.planish",
            "AmbientCapabilities=CAP_PERFMON",
            "# ExecStart=/bin/sh",
            "User=1000",
        ] {
            assert!(sound(line), "{line}");
        }
        for line in [
            "ExecStart=/bin/sh -c x",
            "ExecStart=+/usr/bin/planish text publish x",
            "ExecStart=planish text publish x",
            "ExecStartPre=/usr/bin/planish text publish x",
            "ExecStart=/usr/bin/planish text publish x \\",
            "AmbientCapabilities=CAP_SYS_ADMIN",
            "Environment=LD_PRELOAD=/tmp/x",
            "EnvironmentFile=/tmp/x",
            "a word",
        ] {
            assert!(!sound(line), "{line}");
        }
    }
}
