//! Why a file of a boot loader is left alone.

use thiserror::Error;

/// Why a text cannot be changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Odd {
    /// Arguments that a loader would take apart.
    #[error("`{arguments}` has characters that a boot loader would take for its own")]
    Arguments {
        /// The arguments.
        arguments: String,
    },
    /// The text ends in the middle of something.
    #[error("it is cut off: {what}")]
    CutOff {
        /// What has no end, or is not there.
        what: &'static str,
    },
    /// More than one line that the arguments could go to.
    #[error("it has {count} lines `{name}`, and loaders differ in which of them count")]
    Twice {
        /// The name of the lines.
        name: &'static str,
        /// How many there are.
        count: usize,
    },
    /// Something that is not understood.
    #[error("it holds {what}, which is not understood")]
    Unknown {
        /// What it is.
        what: &'static str,
    },
    /// A file of fixed size has no room for it.
    #[error("it has room for {free} more bytes, and {wanted} are needed")]
    NoRoom {
        /// Bytes that are free.
        free: usize,
        /// Bytes that are needed.
        wanted: usize,
    },
}
