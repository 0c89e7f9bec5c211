//! Why a host did not take a write, or did not show a value.

use std::fmt;
use std::io;

use rustix::io::Errno;
use thiserror::Error;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reading a place.
    Read,
    /// Writing a place.
    Write,
    /// Replacing or removing a file of ours.
    Replace,
    /// Running the program that makes a boot loader's menu.
    Generate,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Replace => "replace",
            Self::Generate => "run",
        })
    }
}

/// What the kernel's error number means for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// EPERM, EACCES: no right, a lock-down, a container.
    NotPermitted,
    /// EROFS: the mount is read-only.
    ReadOnly,
    /// EBUSY: something uses it.
    Busy,
    /// EIO: the device refuses, as managed interrupts do.
    Io,
    /// EINVAL, ERANGE: the kernel does not accept the value.
    Invalid,
    /// ENOSPC, ENOMEM: no room, no vectors left.
    NoRoom,
    /// ENOENT, ENODEV, ENXIO: the place is gone.
    Vanished,
    /// A place that planish does not write at all.
    OutOfBounds,
    /// EOPNOTSUPP: the device or its driver cannot do it.
    Unsupported,
    /// Anything else.
    Other,
}

impl Refusal {
    /// The meaning of an error of the kernel.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::PERM | Errno::ACCESS) => Self::NotPermitted,
            Some(Errno::ROFS) => Self::ReadOnly,
            Some(Errno::BUSY) => Self::Busy,
            Some(Errno::IO) => Self::Io,
            Some(Errno::INVAL | Errno::RANGE) => Self::Invalid,
            Some(Errno::OPNOTSUPP) => Self::Unsupported,
            Some(Errno::NOSPC | Errno::NOMEM) => Self::NoRoom,
            Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Self::Vanished,
            Some(_) => Self::Other,
            // One of the kernel with words of its own beside the number.
            None => match error.kind() {
                io::ErrorKind::PermissionDenied => Self::NotPermitted,
                io::ErrorKind::ResourceBusy => Self::Busy,
                io::ErrorKind::InvalidInput => Self::Invalid,
                io::ErrorKind::StorageFull => Self::NoRoom,
                io::ErrorKind::NotFound => Self::Vanished,
                _ => Self::Other,
            },
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "not permitted",
            Self::ReadOnly => "the mount is read-only",
            Self::Busy => "it is busy",
            Self::Io => "the device refuses",
            Self::Invalid => "the kernel does not accept the value",
            Self::NoRoom => "there is no room",
            Self::Vanished => "it is no longer there",
            Self::OutOfBounds => "it is not a place that planish writes",
            Self::Unsupported => "the device cannot do it",
            Self::Other => "it failed",
        })
    }
}

/// A read or write that a host refused.
#[derive(Debug, Error)]
#[error("cannot {operation} {place}: {refusal}")]
pub struct SinkError {
    /// What was tried.
    pub operation: Operation,
    /// The place.
    pub place: String,
    /// What it means.
    pub refusal: Refusal,
    /// The kernel's answer.
    #[source]
    pub source: io::Error,
}

impl SinkError {
    /// An error of the kernel at a place.
    #[must_use]
    pub fn new(operation: Operation, place: &str, source: io::Error) -> Self {
        let refusal = match Refusal::of(&source) {
            // No value is refused where one is read.
            Refusal::Invalid if operation == Operation::Read => Refusal::Other,
            refusal => refusal,
        };
        Self { operation, place: place.to_owned(), refusal, source }
    }

    /// The error with its cause on one line, for the detail of an outcome.
    #[must_use]
    pub fn in_full(&self) -> String {
        format!("{self} ({})", self.source)
    }
}

/// An error with its causes on one line.
#[must_use]
pub fn in_full(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Why a host cannot be written at all.
#[derive(Debug, Error)]
pub enum ActError {
    /// A recorded host that is no fixture for writing.
    #[error("{name} is a recorded host, and nobody said that it may be written")]
    NotWritable {
        /// The recorded host.
        name: String,
    },
}
