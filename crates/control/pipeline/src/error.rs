//! Why a command of the control plane did not do what was asked, with its exit code and its cure.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use planish_act::{ActError, SinkError};
use planish_decide::DecideError;
use planish_host::OpenError;
use planish_journal::{JournalError, LockError};
use planish_model::{CatalogueError, EntryId, Exit};
use thiserror::Error;

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// `--root` is no recorded host.
    #[error("cannot open the host")]
    Host(#[from] OpenError),
    /// A wrong row of the user, or a name that does not exist.
    #[error("the catalogue or a name in it is wrong")]
    Catalogue(#[from] Arc<CatalogueError>),
    /// No plan can be made from what was asked.
    #[error("no plan can be made")]
    Decide(#[from] DecideError),
    /// A plan or profile file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A file is neither a plan nor the answer of `planish plan --json`.
    #[error("{} is not a plan", path.display())]
    NotAPlan {
        /// The file.
        path: PathBuf,
        /// Line and column, and what is wrong there.
        #[source]
        source: serde_json::Error,
    },
    /// A plan was changed after it was made.
    #[error("the plan was changed: its steps do not have the hash {hash}")]
    Edited {
        /// The hash that it claims.
        hash: String,
    },
    /// A step that no plan of this catalogue can hold: the file was made or changed by hand.
    #[error("{place}: {why}")]
    Forged {
        /// The place of the step.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A plan for another machine, or for another boot of this one.
    #[error("the plan is for another {what}")]
    Elsewhere {
        /// `host` or `boot of this host`.
        what: &'static str,
    },
    /// The host is not as the plan saw it.
    #[error("the host has moved since the plan was made: {}", moved.join("; "))]
    Moved {
        /// Each place with what it shows and what the plan saw.
        moved: Vec<String>,
    },
    /// We may not write a place of the plan, found before anything was written.
    #[error("cannot write {place}: {why}")]
    NotWritable {
        /// The place.
        place: String,
        /// Why.
        why: String,
    },
    /// A place of the plan cannot be read.
    #[error("cannot read what is there before the first write")]
    Before(#[source] SinkError),
    /// A file of ours is there and planish did not write it.
    #[error("{path} exists and was not written by planish")]
    ForeignFile {
        /// The file.
        path: String,
    },
    /// A recorded host that is no fixture for writing.
    #[error("this host cannot be written")]
    Act(#[from] ActError),
    /// Another planish is at work, or the lock cannot be had.
    #[error("cannot lock the host")]
    Lock(#[from] LockError),
    /// The journal cannot be read or written. Nothing was written to the host.
    #[error("the journal cannot be used")]
    Journal(#[from] JournalError),
    /// The journal failed while the host was being written.
    #[error("the journal failed half way, and the host was {}", if *restored { "put back" } else { "NOT put back" })]
    JournalHalfWay {
        /// The entry.
        entry: EntryId,
        /// Whether every step was taken back.
        restored: bool,
        /// What failed.
        #[source]
        source: JournalError,
    },
    /// The dead-man timer cannot be started. Nothing was written to the host.
    #[error("cannot start the timer that undoes an unconfirmed apply")]
    Watch(#[source] io::Error),
    /// No service of that name or number.
    #[error("no running service `{service}`")]
    NoService {
        /// As it was named.
        service: String,
    },
    /// A service whose maps cannot be read.
    #[error("cannot read the maps of `{service}`")]
    ServiceMaps {
        /// As it was named.
        service: String,
        /// Why.
        #[source]
        source: planish_residency::ResidencyError,
    },
    /// PostgreSQL does not say how much shared memory it wants.
    #[error("{} does not tell shared_memory_size_in_huge_pages: {message}", program.display())]
    Postgres {
        /// The server program.
        program: PathBuf,
        /// Its own words, or the kernel's.
        message: String,
    },
}

impl From<CatalogueError> for PipelineError {
    fn from(error: CatalogueError) -> Self {
        Self::Catalogue(Arc::new(error))
    }
}

impl PipelineError {
    /// How the command ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Host(_)
            | Self::Catalogue(_)
            | Self::Decide(_)
            | Self::Unreadable { .. }
            | Self::NotAPlan { .. }
            | Self::NoService { .. }
            | Self::Journal(JournalError::NoEntry { .. }) => Exit::Usage,
            Self::Edited { .. }
            | Self::Forged { .. }
            | Self::Elsewhere { .. }
            | Self::Moved { .. }
            | Self::NotWritable { .. }
            | Self::Before(_)
            | Self::ForeignFile { .. }
            | Self::Act(_)
            | Self::Lock(_)
            | Self::Journal(_)
            | Self::Watch(_)
            | Self::ServiceMaps { .. }
            | Self::Postgres { .. } => Exit::Refused,
            Self::JournalHalfWay { restored: true, .. } => Exit::FailedRestored,
            Self::JournalHalfWay { restored: false, .. } => Exit::FailedNotRestored,
        }
    }

    /// What to do about it, most likely cure first.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Moved { .. } | Self::Elsewhere { .. } | Self::Edited { .. } | Self::Forged { .. } => {
                "make the plan again: planish plan PROFILE -o FILE".to_owned()
            }
            Self::NotWritable { .. } | Self::ServiceMaps { .. } if !rustix::process::geteuid().is_root() => {
                "run it as root: sudo planish ...".to_owned()
            }
            Self::NotWritable { place, .. } => {
                format!(
                    "see what forbids {place}: planish doctor; a container must be given the right by its host"
                )
            }
            Self::ForeignFile { path } => format!("move it away first: mv {path} {path}.mine"),
            Self::Act(_) => "only recordings with `writable = true` in meta.toml are written".to_owned(),
            Self::Lock(LockError::Held { .. }) => "wait until it has finished, then try again".to_owned(),
            Self::Lock(LockError::Open { path, .. }) => format!("make {} writable for you", path.display()),
            Self::Journal(error) => error.cure(),
            Self::JournalHalfWay { entry, restored: false, source } => {
                format!("{}, then: planish undo {entry}", source.cure())
            }
            Self::JournalHalfWay { source, .. } => source.cure(),
            Self::Watch(_) => "apply without --confirm, or look why processes cannot be started".to_owned(),
            Self::NoService { .. } => "name a process id, or a name as `ps -C NAME` finds it".to_owned(),
            Self::NotAPlan { .. } => "a plan file is what `planish plan PROFILE -o FILE` writes".to_owned(),
            _ => return Vec::new(),
        };
        vec![hint]
    }
}
