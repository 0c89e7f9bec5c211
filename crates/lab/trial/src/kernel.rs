//! What the running kernel says of itself, in small files under `/proc` and `/sys`.

use std::fs::File;
use std::io::Read;

/// The text of a file of the live machine; `None` when it is not there or may not be read.
pub(crate) fn read(path: &str) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}
