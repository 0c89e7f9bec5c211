//! A store in a folder: a file a blob. It is there whole or not at all, also after a power cut.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use planish_sys::draft::create_beside;
use planish_sys::file::{Unread, make_folders, read_up_to};

use crate::digest::FOLDER;
use crate::error::StoreError;
use crate::store::{BYTES_MAX, Got, Object};

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

/// Makes a blob that is there, with these bytes, as young as one that was just put, so that whoever prunes leaves it
/// alone. The time of another user's file is not ours to set: it is put anew, in place of that, where the folder takes
/// new files.
pub(crate) fn freshen(folder: &Path, handle: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let path = there(folder)?.join(handle);
    let set = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
    match set {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // One that stays old is taken away by the next prune although somebody has just pinned it.
            write_whole(&path, bytes).map_err(|source| StoreError::NotRenewed { path, source })
        }
        set => set.map_err(|source| StoreError::File { what: "write", path, source }),
    }
}

/// Every file below the folder of blobs, by its name in it.
pub(crate) fn list(folder: &Path) -> Result<Vec<Object>, StoreError> {
    let top = there(folder)?.join(FOLDER);
    let mut found = Vec::new();
    for (name, path) in entries(&top)? {
        for (inner, path) in if path.is_dir() { entries(&path)? } else { vec![(String::new(), path)] } {
            let name = if inner.is_empty() { name.clone() } else { format!("{name}/{inner}") };
            match path.symlink_metadata() {
                Ok(file) if file.is_file() => {
                    found.push(Object { name, bytes: file.len(), put_at: seconds(file.modified()) });
                }
                Ok(_) => {}
                // Somebody else prunes it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::File { what: "list", path, source }),
            }
        }
    }
    Ok(found)
}

/// What a folder has, by name; nothing where there is none.
#[expect(clippy::disallowed_methods, reason = "a store is no part of a host")]
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, StoreError> {
    let failed = |source| StoreError::File { what: "list", path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let one = |entry: io::Result<fs::DirEntry>| {
        entry.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).map_err(failed)
    };
    entries.map(one).collect()
}

/// Takes a blob away, unless it was put anew since `put_at`; says whether it is gone.
pub(crate) fn delete(folder: &Path, handle: &str, put_at: u64) -> Result<bool, StoreError> {
    let path = there(folder)?.join(handle);
    let deleted = path.symlink_metadata().and_then(|file| {
        let is_as_seen = seconds(file.modified()) == put_at;
        if is_as_seen { fs::remove_file(&path).map(|()| true) } else { Ok(false) }
    });
    match deleted {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        deleted => deleted.map_err(|source| StoreError::File { what: "delete", path, source }),
    }
}

/// Seconds since 1970; 0 for a file from before, or of a file system without times.
fn seconds(time: io::Result<SystemTime>) -> u64 {
    time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
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
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    make_folders(folder, 0o777, sync)?;
    let (mut file, draft) = create_beside(path)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Half a draft helps nobody on a disk that is full.
        let _ = fs::remove_file(&draft);
    }
    written.and_then(|()| sync(folder))
}
