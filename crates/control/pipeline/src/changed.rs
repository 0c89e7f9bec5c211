//! Files that are planish's as a whole, and that are no longer as an open entry wrote them: units, and drop-ins of
//! units of others. One line more or less makes another unit of them, so that they are compared by the byte. Files in
//! which each line stands for itself, those of sysctl.d and their like, are compared line by line, with the places that
//! they set.

use std::collections::BTreeSet;
use std::fmt;

use planish_host::ReadError;
use planish_model::{Entry, EntryId, EntryStep, OnceFormat};

use crate::contents::Contents;
use crate::install;
use crate::session::Session;
use crate::{warm, weekly};

/// A file that an open entry wrote, and that somebody changed, took away or overruled since: what it was to do may not
/// be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The entry; of several that have lines in it the newest.
    pub entry: EntryId,
    /// The file.
    pub path: String,
    /// Whether it is there.
    pub is_there: bool,
    /// Where the link leads that is there in its place.
    pub link: Option<String>,
    /// Whether a command of its own installed it, and no profile.
    pub is_installed: bool,
    /// The line of others by which the unit runs something else, or nothing: its file is as it was written.
    pub overruled: Option<String>,
}

impl fmt::Display for ChangedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, path, is_there, link, is_installed, overruled } = self;
        if let Some(by) = overruled {
            return write!(
                f,
                "{by} has the unit run otherwise than {path} of entry {entry}: remove it, or planish undo {entry}"
            );
        }
        // There is nothing of others in what is gone.
        let (how, force) = match link {
            Some(target) => (format!("was replaced by a link to {target}"), " --force"),
            None if *is_there => ("was changed".to_owned(), " --force"),
            None => ("was taken away".to_owned(), ""),
        };
        let (did, again) = if *is_installed { ("installed", "install") } else { ("wrote", "apply") };
        write!(
            f,
            "{path} {how} since entry {entry} {did} it: planish undo {entry}{force}, then {again} it again"
        )
    }
}

/// Those of a host. What may not be read may be as it was.
pub(crate) fn changed(session: &Session, entries: &[Entry]) -> Vec<ChangedFile> {
    let is_whole = |step: &EntryStep| {
        let is_of_loader = OnceFormat::of_knob(step.knob.as_str()).is_some();
        step.is_in_file() && !step.is_undone() && !is_of_loader && !Contents::is_by_lines(step)
    };
    // The lines of the newest entry come last.
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for entry in entries.iter().rev().filter(|entry| entry.is_open()) {
        for step in entry.steps.iter().filter(|step| is_whole(step)) {
            if seen.insert(step.place.as_str()) {
                found.extend(compared(session, entry, step, entries));
            }
        }
    }
    found.reverse();
    found
}

fn compared(session: &Session, entry: &Entry, step: &EntryStep, entries: &[Entry]) -> Option<ChangedFile> {
    let link = session.host().read_link(&step.place);
    // Bytes that are no text are none of ours.
    let now = match session.host().read_lossy(&step.place) {
        // What a link leads to is no file of ours, also one with its text.
        _ if link.is_some() => None,
        Ok(text) => Some(text),
        Err(error) if error.is_absent() => None,
        Err(ReadError::Denied { .. }) => return None,
        // A folder has its name.
        Err(_) => Some(String::new()),
    };
    let is_installed = [install::NAME, warm::NAME, weekly::NAME].contains(&entry.profile.as_str());
    let is_there = now.is_some() || link.is_some();
    let is_as_written =
        Contents::of(entry.id, step, entries, session.catalogue()).is_as_written(step, now.as_deref());
    let overruled = planish_observe::overruled(session.host(), &step.place).filter(|_| is_as_written);
    let is_found = !is_as_written || overruled.is_some();
    let (entry, path) = (entry.id, step.place.clone());
    is_found.then_some(ChangedFile { entry, path, is_there, link, is_installed, overruled })
}
