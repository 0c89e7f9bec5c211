//! Where in an input something stands.

use crate::error::{Fault, What};

/// A place of the input: of the row that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its line, from 1.
    pub(crate) line: u64,
    /// Bytes of the line before it.
    before: u64,
}

impl Default for Place {
    fn default() -> Self {
        Self { line: 1, before: 0 }
    }
}

impl Place {
    /// The place behind some bytes.
    pub(crate) fn behind(self, bytes: &[u8]) -> Self {
        match memchr::memrchr(b'\n', bytes) {
            None => Self { before: self.before + bytes.len() as u64, ..self },
            Some(last) => {
                let feeds = memchr::memchr_iter(b'\n', &bytes[..=last]).count() as u64;
                Self { line: self.line + feeds, before: (bytes.len() - last - 1) as u64 }
            }
        }
    }

    /// Goes over some bytes.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        *self = self.behind(bytes);
    }

    /// A fault at a byte of the row that begins here.
    pub(crate) fn fault(self, row: &[u8], at: usize, what: What) -> Fault {
        let Self { line, before } = self.behind(&row[..at.min(row.len())]);
        Fault { line, column: before + 1, what }
    }
}
