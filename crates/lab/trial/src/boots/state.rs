//! The state of a trial between its boots: one file in the state folder, whole or not there, also after a power cut.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use planish_model::{Class, DefaultEntry, HostFacts, KnobId};
use planish_pipeline::Session;
use planish_sorted::SortSmall as _;
use serde::{Deserialize, Serialize};

use super::campaign::Campaign;
use crate::error::TrialError;
use crate::file::TrialFile;
use crate::proof::write_whole;

/// The file, and how the drafts of it begin that a kill has left.
const NAME: &str = "trial-boots.json";
const STEM: &str = "trial-boots.";

/// The form that is written. A file of another one is refused, and left alone.
pub(super) const VERSION: u32 = 1;

/// All that a boot needs to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) version: u32,
    /// The command line that began it.
    pub(super) command: String,
    /// The trial file as it was resolved.
    pub(super) trial: String,
    /// What was allowed of boot parameters besides those that are safe.
    pub(super) classes: Vec<Class>,
    /// The same, by their names.
    pub(super) knobs: Vec<KnobId>,
    /// Whether what is kept is to be persisted.
    pub(super) keep: bool,
    /// The unit that goes on.
    pub(super) unit: SavedUnit,
    /// The machine, as it was when it began.
    pub(super) host: HostFacts,
    /// The command line of the default entry, as it was when it began.
    pub(super) cmdline: String,
    /// The default entry, as the loader had it then. Who wrote the state without it did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) default: Option<DefaultEntry>,
    /// What each boot gives the kernel.
    pub(super) arguments: Vec<String>,
    /// Where it is.
    pub(super) campaign: Campaign,
}

/// How systemd is to start it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedUnit {
    pub(super) program: String,
    pub(super) state: Option<String>,
    pub(super) folder: String,
    pub(super) path: String,
    pub(super) seconds_max: u64,
}

/// Where it lies.
fn path(session: &Session) -> PathBuf {
    session.state_folder().join(NAME)
}

/// The state that is there, if one is.
pub(super) fn load(session: &Session) -> Result<Option<Saved>, TrialError> {
    let path = path(session);
    let text = match planish_sys::file::read_text(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrialError::File { path, source }),
    };
    let malformed = |error| TrialError::File {
        path: path.clone(),
        source: io::Error::new(io::ErrorKind::InvalidData, error),
    };
    let saved: Saved = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    if saved.version != VERSION {
        let other = format!("it was written by another planish (form {})", saved.version);
        return Err(malformed(other));
    }
    Ok(Some(saved))
}

/// The trial of a state, whose numbers are those of it.
pub(super) fn trial_of(session: &Session, saved: &Saved) -> Result<TrialFile, TrialError> {
    let trial = TrialFile::parse_with("the trial of boots", &saved.trial, session.catalogue())?;
    let blocks = trial.boots.as_ref().map(|boots| boots.blocks);
    if blocks.is_some_and(|blocks| saved.campaign.is_of(trial.boot.len(), blocks)) {
        return Ok(trial);
    }
    let source = io::Error::new(io::ErrorKind::InvalidData, "no trial of boots comes to the numbers in it");
    Err(TrialError::File { path: path(session), source })
}

/// Brings a state to the disk.
pub(super) fn save(session: &Session, saved: &Saved) -> io::Result<()> {
    let text = serde_json::to_string_pretty(saved).expect("a state is plain data with text keys");
    write_whole(&path(session), text.as_bytes())
}

/// Removes it, and drafts of it that a kill has left.
#[expect(clippy::disallowed_methods, reason = "our own state folder, and no file of a host")]
pub(super) fn remove(session: &Session) -> io::Result<()> {
    let folder: &Path = session.state_folder();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // The state itself last: until it is gone, all of this can be done again.
    let mut ours: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    ours.retain(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(STEM))
    });
    ours.sort_small_by_key(|path| path.ends_with(NAME));
    ours.iter().try_for_each(fs::remove_file)?;
    fs::File::open(folder)?.sync_all()
}
