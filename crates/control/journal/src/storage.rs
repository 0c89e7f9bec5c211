//! Where the lines are kept: a file, or what a test puts in its place.

use std::cell::RefCell;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// The operations that the journal needs. Crash tests put themselves between the journal and the file here.
pub trait Storage {
    /// Where it is, for messages.
    fn path(&self) -> &Path;

    /// All bytes; none when there is no journal yet.
    ///
    /// # Errors
    /// The kernel's.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// Cuts the journal to a length: a torn tail.
    ///
    /// # Errors
    /// The kernel's.
    fn cut(&self, length: u64) -> io::Result<()>;

    /// Makes sure that this many more bytes will find room on the disk.
    ///
    /// # Errors
    /// When there is none.
    fn reserve(&self, bytes: u64) -> io::Result<()>;

    /// Appends bytes by one write. After an error nothing of them is left.
    ///
    /// # Errors
    /// The kernel's.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything that was appended is on the disk, and the name of the file too.
    ///
    /// # Errors
    /// The kernel's.
    fn sync(&self) -> io::Result<()>;
}

/// A `journal.jsonl` in a state folder.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    /// `None` when it was opened for reading and is not there.
    file: Option<File>,
    /// The folder, until its list of names has been synced once.
    folder: RefCell<Option<File>>,
}

impl FileStorage {
    /// The name of the journal in its folder.
    pub const FILE_NAME: &str = "journal.jsonl";

    /// Opens the journal of a folder for writing. Both are made if need be, for their owner's eyes only.
    ///
    /// # Errors
    /// The path that failed and the kernel's answer.
    pub fn create(folder: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let path = folder.join(Self::FILE_NAME);
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| (path, error)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        let handle = File::open(folder).map_err(at(folder))?;
        Ok(Self { path, file: Some(file), folder: RefCell::new(Some(handle)) })
    }

    /// Opens the journal of a folder for reading. One that is not there reads as empty.
    ///
    /// # Errors
    /// The path and the kernel's answer: no permission, above all.
    pub fn look(folder: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let path = folder.join(Self::FILE_NAME);
        match File::open(&path) {
            Ok(file) => Ok(Self { path, file: Some(file), folder: RefCell::default() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { path, file: None, folder: RefCell::default() })
            }
            Err(error) => Err((path, error)),
        }
    }

    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Storage for FileStorage {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(mut file) = self.file.as_ref() {
            io::Seek::rewind(&mut file)?;
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.file()?.set_len(length)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let file = self.file()?;
        let end = file.metadata()?.len();
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes) {
            // Some file systems cannot; then the writes themselves must tell.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file()?;
        let end = file.metadata()?.len();
        let written = file.write_all(bytes);
        if written.is_err() {
            // Half a line must not stay: the next append would make it damage in the middle.
            file.set_len(end)?;
        }
        written
    }

    fn sync(&self) -> io::Result<()> {
        self.file()?.sync_data()?;
        // The folder too: a new file whose name is lost is a lost file.
        let mut folder = self.folder.borrow_mut();
        if let Some(handle) = folder.as_ref() {
            handle.sync_all()?;
            *folder = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folder_and_file_are_for_their_owner_only() {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("lib/planish");
        let storage = FileStorage::create(&folder).expect("made");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(storage.path()), 0o600);
    }

    #[test]
    fn a_journal_that_is_not_there_reads_as_empty_and_is_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = FileStorage::look(folder.path()).expect("readable");
        assert_eq!(storage.read().expect("readable"), b"");
        assert!(!storage.path().exists());
    }

    #[test]
    fn reserved_room_does_not_show_in_the_length() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = FileStorage::create(folder.path()).expect("made");
        storage.append(b"one\n").expect("room");
        storage.reserve(1 << 16).expect("room");
        storage.append(b"two\n").expect("room");
        storage.sync().expect("a disk");
        assert_eq!(storage.read().expect("readable"), b"one\ntwo\n");
    }
}
