//! Why a machine, or one file of it, could not be read or recorded.

use std::io;
use std::path::{Path, PathBuf};

use crate::pattern::PatternError;

/// Why a file of a host could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("{path} does not exist")]
    Absent {
        /// Path on the host.
        path: String,
    },
    /// We may not read it.
    #[error("no permission to read {path}")]
    Denied {
        /// Path on the host.
        path: String,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// Reading failed; some files of the kernel answer so on purpose (EINVAL, EBUSY, EIO).
    #[error("cannot read {path}")]
    Io {
        /// Path on the host.
        path: String,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// It is not UTF-8.
    #[error("{path} is not text in UTF-8: {byte}")]
    NotText {
        /// Path on the host.
        path: String,
        /// The first byte that is none, and its line.
        byte: String,
    },
}

impl ReadError {
    pub(crate) fn of(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Absent { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path, source },
            _ => Self::Io { path, source },
        }
    }

    /// Whether the file is simply not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

/// Why a folder is not a recorded machine.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The folder, or a file in it.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// It holds neither a description nor the trees of a machine.
    #[error("{} holds neither meta.toml nor both proc and sys: not a recorded machine", path.display())]
    NotAHost {
        /// The folder.
        path: PathBuf,
    },
    /// Its description is not TOML, or says what no description can say.
    #[error("{} is not a description of a machine", path.display())]
    Meta {
        /// The file.
        path: PathBuf,
        /// Line, column and what is wrong there.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A pattern in its description is wrong.
    #[error("{} has a wrong pattern", path.display())]
    Pattern {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PatternError,
    },
}

impl OpenError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// Why a machine could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The destination is there already and is not empty: a recording never mixes with another.
    #[error("{} exists and is not empty", path.display())]
    Occupied {
        /// The destination.
        path: PathBuf,
    },
    /// The destination cannot be written.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// The description cannot be written as TOML.
    #[error("cannot describe the machine")]
    Meta {
        /// What is wrong with it.
        #[source]
        source: toml::ser::Error,
    },
}

impl RecordError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}
