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
    /// Arguments behind whose end nothing reaches the kernel.
    #[error("its arguments have `--`: what is put in behind that is for process 1, and not for the kernel")]
    ForProcess1,
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

/// Refuses a text with bytes of zero: no program writes one into a file of a boot loader, and a power cut leaves them
/// where the blocks of a file were never written.
///
/// # Errors
/// That it has some.
pub fn refuse_zeroes(text: &str) -> Result<(), Odd> {
    if text.contains('\0') {
        return Err(Odd::CutOff { what: "it has bytes of zero in it, as a power cut leaves them" });
    }
    Ok(())
}

/// Refuses characters that stand in no file of a boot loader which a person or a program wrote.
pub(crate) fn refuse_control(text: &str) -> Result<(), Odd> {
    refuse_zeroes(text)?;
    let is_odd = |c: char| c.is_ascii_control() && !"\t\n\r\u{b}\u{c}".contains(c);
    if text.contains(is_odd) {
        return Err(Odd::Unknown { what: "a control character" });
    }
    Ok(())
}
