//! A store in a folder: a file a blob. It is there whole or not at all, also after a power cut.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use planish_sys::file::{Unread, make_folders, read_up_to};

use crate::error::StoreError;
use crate::store::{BYTES_MAX, Got};

/// Reads a blob of at most [`BYTES_MAX`] bytes.
pub(crate) fn get(folder: &Path, handle: &str) -> Result<Got, StoreError> {
    let path = there(folder)?.join(handle);
    match read_up_to(&path, BYTES_MAX) {
        Ok(bytes) => Ok(Got::Bytes(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Got::Missing)
        }
        Err(error) if is_too_long(&error) => Ok(Got::TooLong),
        Err(source) => Err(StoreError::File { what: "read", path, source }),
    }
}

fn is_too_long(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Unread>());
    matches!(inner, Some(Unread::TooLong { .. }))
}

/// Writes a blob under its name, in place of whatever has it.
pub(crate) fn put(folder: &Path, handle: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let path = there(folder)?.join(handle);
    write_whole(&path, bytes).map_err(|source| StoreError::File { what: "write", path, source })
}

/// The folder itself is never made: where a disk is not mounted, a store on another one would be begun unseen.
fn there(folder: &Path) -> Result<&Path, StoreError> {
    if folder.is_dir() { Ok(folder) } else { Err(StoreError::NoFolder { path: folder.to_owned() }) }
}

/// Writes a file that is there whole or not at all, also after a power cut, and makes the folders above it. A kill
/// leaves a draft beside it, whose name no blob has.
///
/// # Errors
/// The kernel's.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    make_folders(folder, 0o777, sync)?;
    let draft: PathBuf = folder.join(format!(".{name}.{}.draft", std::process::id()));
    let mut file = File::create(&draft)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Half a draft helps nobody on a disk that is full.
        let _ = fs::remove_file(&draft);
    }
    written.and_then(|()| sync(folder))
}
