//! Why the journal cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use planish_model::EntryId;
use thiserror::Error;

use crate::FileStorage;

/// Why the journal cannot be read or written. Nothing was written to the host when one of these appears.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The state folder or the file cannot be made, read or written.
    #[error("cannot {what} {}", path.display())]
    Storage {
        /// What was tried: `create`, `read`, `append to`, `reserve room in`, `sync`, `cut`, `keep aside`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A line before the end is damaged.
    #[error("line {line} of {} is damaged: {why}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A line is sound, but of a format that this planish does not know.
    #[error("line {line} of {} was written by a newer planish: {why}", path.display())]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The version, or the kind of event.
        why: String,
    },
    /// No such entry.
    #[error("no entry {id} in the journal")]
    NoEntry {
        /// Its number.
        id: EntryId,
    },
}

/// The journal, by the path of itself or of its folder.
fn journal_at(path: &Path) -> PathBuf {
    if path.ends_with(FileStorage::FILE_NAME) { path.to_owned() } else { path.join(FileStorage::FILE_NAME) }
}

impl JournalError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Storage { path, source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
                format!("look what {0} is and move it away: mv {0} {0}.odd", path.display())
            }
            Self::Storage { what: "read", path, source }
                if source.kind() != io::ErrorKind::PermissionDenied =>
            {
                format!("look at {}, or name another folder with --state", path.display())
            }
            Self::Storage { what: "read", path, .. } => {
                format!(
                    "run as the user that may read {}, or name another folder with --state",
                    path.display()
                )
            }
            // Only where something was ever applied is there anything to take back.
            Self::Storage { what: "create", path, .. } if journal_at(path).exists() => format!(
                "make {} writable and give it room, or name another folder with --state; values go back also where \
                 nothing can be recorded: planish undo --all --force",
                path.parent().unwrap_or(path).display()
            ),
            Self::Storage { path, .. } => format!(
                "make {} writable and give it room, or name another folder with --state",
                path.parent().unwrap_or(path).display()
            ),
            Self::Damaged { path, .. } if path.ends_with(FileStorage::FILE_NAME) => {
                "undo what its sound lines tell, and keep the damaged file beside it: planish undo --all --force"
                    .to_owned()
            }
            Self::Damaged { path, .. } => {
                let path = path.display();
                format!("it is an older journal, of entries that are closed; move it away: mv {path} {path}.damaged")
            }
            Self::Newer { .. } => "use the newer planish that wrote it".to_owned(),
            Self::NoEntry { .. } => "list the entries: planish log".to_owned(),
        }
    }
}
