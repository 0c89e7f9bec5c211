//! The rows that are part of the binary, as `build.rs` packed them.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::CatalogueError;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The rows of one kind.
pub(super) struct Rows {
    /// JSON of all their files, one behind the other, packed by LZ4.
    packed: &'static [u8],
    /// How long that JSON is.
    size_bytes: usize,
    /// The name of each file, and where in the JSON it is.
    files: &'static [(&'static str, Range<usize>)],
}

impl Rows {
    /// Reads each file.
    ///
    /// # Errors
    /// Never in a released binary: a test reads them.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Vec<(&'static str, T)>, CatalogueError> {
        let malformed = |file: &str, (line, column), message| CatalogueError::Malformed {
            file: file.to_owned(),
            line,
            column,
            message,
        };
        let whole = |message: String| malformed("catalogue", (1, 1), message);
        let bytes = lz4_flex::block::decompress(self.packed, self.size_bytes)
            .map_err(|error| whole(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| whole(error.to_string()))?;
        let read = |(file, part): &(&'static str, Range<usize>)| {
            let rows = serde_json::from_str(&text[part.clone()])
                .map_err(|error| malformed(file, (error.line(), error.column()), error.to_string()))?;
            Ok((*file, rows))
        };
        self.files.iter().map(read).collect()
    }
}
