//! Why a command ended, and by which code.
//!
//! 0 done; 1 done, and rows with faults were left out; 2 usage; 3 refused, nothing was done; 4 failed.

use crate::database::OpenError;
use crate::failure::chain;
use crate::load::LoadError;

pub(crate) const LEFT_OUT: u8 = 1;
const USAGE: u8 = 2;
const REFUSED: u8 = 3;
const FAILED: u8 = 4;

/// Why a command ended, and by which code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: u8,
    pub(crate) text: String,
}

impl Ended {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { code: USAGE, text: text.into() }
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { code: REFUSED, text: text.into() }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { code: FAILED, text: text.into() }
    }
}

impl From<OpenError> for Ended {
    fn from(error: OpenError) -> Self {
        let text = chain(&error);
        match error.is_in_use() {
            true => Self::refused(format!("{text}: by a server? ask it over HTTP")),
            false => Self::failed(text),
        }
    }
}

impl From<LoadError> for Ended {
    fn from(error: LoadError) -> Self {
        let text = error.text();
        match error {
            LoadError::Open(error) => error.into(),
            LoadError::Usage(_) => Self::usage(text),
            LoadError::File { .. } | LoadError::Rows { .. } => Self::failed(text),
        }
    }
}
