//! Records: what an entry must remember that is too long for a line of the journal.
//!
//! Each is a file of its own in the folder `moved` beside the journal, written whole and synced, with its name, before
//! the intent that names it. The name holds the checksum of the bytes: whoever reads it back knows that it is what was
//! written. A record goes when nothing that names it can be undone any more, and never before: [`sweep`] is given the
//! names that are still needed, under the lock of the host, from a journal that was read whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use planish_sys::file;

/// Longest record that is read: more than any that is written.
const BYTES_MAX: u64 = 80 << 20;

/// The folder beside the journal.
fn folder_of(journal: &Path) -> PathBuf {
    journal.with_file_name("moved")
}

/// Why a record cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum RecordFault {
    /// The file is not there, or cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Its bytes are not those that were written.
    #[error("{} is damaged: its checksum is {found}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The checksum of what is there.
        found: String,
    },
    /// A name that no record has.
    #[error("`{name}` is no record")]
    Name {
        /// The name.
        name: String,
    },
}

/// Writes a record. When this returns, the file and its name are on the disk. The answer is its name.
pub(crate) fn keep(journal: &Path, bytes: &[u8]) -> Result<String, RecordFault> {
    let folder = folder_of(journal);
    let at = |what, path: &Path| {
        let path = path.to_owned();
        move |source| RecordFault::File { what, path, source }
    };
    let made = file::make_private_folders(&folder).map_err(at("make", &folder))?;
    let checksum = crc32fast::hash(bytes);
    for number in 1_u32.. {
        let name = format!("{checksum:08x}-{number}.record");
        let path = folder.join(&name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened.map_err(at("make", &path))?,
        };
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if let Err(source) = written {
            // Half a record is in nobody's way, and of no use.
            let _ = fs::remove_file(&path);
            return Err(RecordFault::File { what: "write", path, source });
        }
        for folder in std::iter::once(&folder).chain(&made) {
            sync_folder(folder).map_err(at("sync", folder))?;
        }
        if let Some(above) = folder.parent() {
            sync_folder(above).map_err(at("sync", above))?;
        }
        return Ok(name);
    }
    unreachable!("numbers do not end before the disk does")
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The bytes of a record, which are those that were written.
pub(crate) fn fetch(journal: &Path, name: &str) -> Result<Vec<u8>, RecordFault> {
    let checksum = checksum_of(name).ok_or_else(|| RecordFault::Name { name: name.to_owned() })?;
    let path = folder_of(journal).join(name);
    let bytes = file::read_up_to(&path, BYTES_MAX).map_err(|source| RecordFault::File {
        what: "read",
        path: path.clone(),
        source,
    })?;
    let found = format!("{:08x}", crc32fast::hash(&bytes));
    if found == checksum { Ok(bytes) } else { Err(RecordFault::Damaged { path, found }) }
}

/// The checksum in the name of a record; `None` of any other name, which might lead elsewhere.
fn checksum_of(name: &str) -> Option<&str> {
    let (checksum, number) = name.strip_suffix(".record")?.split_once('-')?;
    let is_hex = checksum.len() == 8 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_hex && is_number).then_some(checksum)
}

/// Removes records that nobody needs. One that cannot be removed is in nobody's way.
#[expect(clippy::disallowed_methods, reason = "lists our own files, not the host's")]
pub(crate) fn sweep(journal: &Path, is_needed: &dyn Fn(&str) -> bool) {
    let Ok(names) = fs::read_dir(folder_of(journal)) else { return };
    for entry in names.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| checksum_of(name).is_some() && !is_needed(name));
        if is_ours {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.jsonl");
        let name = keep(&journal, b"where pages lay").unwrap();
        assert_eq!(fetch(&journal, &name).unwrap(), b"where pages lay");
        assert_ne!(keep(&journal, b"where pages lay").unwrap(), name, "each entry has its own");
        let path = folder.path().join("moved").join(&name);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(7).unwrap();
        assert!(matches!(fetch(&journal, &name), Err(RecordFault::Damaged { .. })));
        for odd in ["../journal.jsonl", "", "0123456-1.record", "../../-1.record", "00000000-.record"] {
            assert!(matches!(fetch(&journal, odd), Err(RecordFault::Name { .. })), "{odd}");
        }
        assert!(matches!(fetch(&journal, "00000000-1.record"), Err(RecordFault::File { .. })));
    }

    #[test]
    fn a_sweep_takes_what_nobody_needs_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.jsonl");
        let (one, two) = (keep(&journal, b"1").unwrap(), keep(&journal, b"2").unwrap());
        let strange = folder.path().join("moved/notes.txt");
        File::create(&strange).unwrap();
        sweep(&journal, &|name| name == one);
        assert!(fetch(&journal, &one).is_ok() && fetch(&journal, &two).is_err() && strange.exists());
        sweep(&folder.path().join("none/journal.jsonl"), &|_| false);
    }
}
