//! Where the lines are kept: a file, or what a test puts in its place.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use planish_sys::file;
use rustix::fs::{FallocateFlags, OFlags};
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

    /// Cuts the journal to a length, and keeps what is cut off, a torn tail, in a file beside it if it can.
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

    /// Keeps the journal under another name in its folder and goes on with other bytes, and with room for more.
    /// At every moment there is a whole journal: after an error, or a kill, the old one or the new one.
    ///
    /// # Errors
    /// The kernel's, or a storage that cannot; then the old one goes on.
    fn archive(&self, name: &str, next: &[u8], reserve: u64) -> io::Result<()> {
        let _ = (name, next, reserve);
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

/// A `journal.jsonl` in a state folder.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    /// `None` when it was opened for reading and is not there.
    file: RefCell<Option<File>>,
    /// The folder, until its list of names has been synced once.
    folder: RefCell<Option<File>>,
}

impl FileStorage {
    /// The name of the journal in its folder.
    pub const FILE_NAME: &str = "journal.jsonl";
    /// The name of a journal that is about to be continued.
    const NEXT_NAME: &str = "journal.next";

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
        file::make_private_folders(folder).map_err(at(folder))?;
        let file = open_own(&path).map_err(at(&path))?;
        let handle = File::open(folder).map_err(at(folder))?;
        Ok(Self { path, file: RefCell::new(Some(file)), folder: RefCell::new(Some(handle)) })
    }

    /// Opens the journal of a folder for reading. One that is not there reads as empty.
    ///
    /// # Errors
    /// The path and the kernel's answer: no permission, above all.
    pub fn look(folder: &Path) -> Result<Self, (PathBuf, io::Error)> {
        Self::look_at(folder.join(Self::FILE_NAME))
    }

    /// The archived journals of a folder, oldest first, for reading.
    ///
    /// # Errors
    /// The path and the kernel's answer.
    #[expect(clippy::disallowed_methods, reason = "lists our own files, not the host's")]
    pub fn archives(folder: &Path) -> Result<Vec<Self>, (PathBuf, io::Error)> {
        let names = match fs::read_dir(folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err((folder.to_owned(), error)),
        };
        let number = |path: &Path| -> Option<u64> {
            let name = path.file_name()?.to_str()?;
            name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse().ok()
        };
        let mut found: Vec<(u64, PathBuf)> = names
            .filter_map(|name| Some(name.ok()?.path()))
            .filter_map(|path| Some((number(&path)?, path)))
            .collect();
        found.sort();
        found.into_iter().map(|(_, path)| Self::look_at(path)).collect()
    }

    fn look_at(path: PathBuf) -> Result<Self, (PathBuf, io::Error)> {
        let file = match file::open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err((path, error)),
        };
        Ok(Self { path, file: RefCell::new(file), folder: RefCell::default() })
    }

    /// Writes what comes after a length to a file of its own, beside what was torn at the same byte before.
    fn keep_tail(&self, length: u64) -> io::Result<()> {
        let bytes = self.read()?;
        let tail = usize::try_from(length).ok().and_then(|length| bytes.get(length..)).unwrap_or_default();
        let path = torn_paths(&self.path, length).find(|path| !path.exists()).expect("numbers do not end");
        let mut kept = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        kept.write_all(tail)?;
        kept.sync_data()
    }

    fn with_file<T>(&self, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let file = self.file.borrow();
        work(file.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?)
    }
}

/// Where the torn tails that began at a byte of a journal are kept, the first one first. Lines that follow may be torn
/// at the same byte once more.
pub(crate) fn torn_paths(journal: &Path, at_byte: u64) -> impl Iterator<Item = PathBuf> {
    (1_u32..).map(move |number| match number {
        1 => journal.with_file_name(format!("journal.torn-{at_byte}")),
        more => journal.with_file_name(format!("journal.torn-{at_byte}-{more}")),
    })
}

/// Opens a file for appending, which is made for its owner's eyes only. A FIFO or device would never end.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    file::regular(options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?)
}

/// Makes sure of room behind the end of a file.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(()); // which fallocate(2) takes for a mistake
    }
    let end = file.metadata()?.len();
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes) {
        // Some file systems cannot; then the writes themselves must tell.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Storage for FileStorage {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(mut file) = self.file.borrow().as_ref() {
            io::Seek::rewind(&mut file)?;
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        // A disk without room for it must not keep the host from coming back.
        let _ = self.keep_tail(length);
        self.with_file(|file| file.set_len(length))
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.with_file(|file| reserve(file, bytes))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.with_file(|mut file| {
            let end = file.metadata()?.len();
            let written = file.write_all(bytes);
            if written.is_err() {
                // Half a line must not stay: the next append would make it damage in the middle.
                file.set_len(end)?;
            }
            written
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with_file(File::sync_data)?;
        // The folder too: a new file whose name is lost is a lost file.
        let mut folder = self.folder.borrow_mut();
        if let Some(handle) = folder.as_ref() {
            handle.sync_all()?;
            *folder = None;
        }
        Ok(())
    }

    fn archive(&self, name: &str, next: &[u8], room: u64) -> io::Result<()> {
        let folder = self.path.parent().expect("the journal is a file of a folder");
        let (next_path, kept) = (folder.join(Self::NEXT_NAME), folder.join(name));
        let mut file = open_own(&next_path)?;
        file.set_len(0)?;
        file.write_all(next)?;
        reserve(&file, room)?;
        file.sync_all()?;
        let handle = File::open(folder)?;
        // A second name for the old journal, then the new one in the place of the first name: the journal is
        // there at every moment. The second name may be there already, from an archiving that was killed.
        match fs::hard_link(&self.path, &kept) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) if !is_one_file(&self.path, &kept)? => return Err(error),
            _ => fs::rename(&next_path, &self.path)?,
        }
        // From here on the new journal goes on, whatever happens: the next sync includes its name.
        self.folder.replace(Some(handle));
        self.file.replace(Some(file));
        Ok(())
    }
}

/// Whether two names are of one file.
fn is_one_file(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (fs::metadata(a)?, fs::metadata(b)?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
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
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(storage.path()), 0o600);
    }

    #[test]
    fn the_names_of_new_folders_are_synced_in_theirs() {
        let outer = tempfile::tempdir().expect("a folder");
        let state = outer.path().join("lib/planish");
        let synced = file::make_private_folders(&state).expect("made");
        assert_eq!(synced, [outer.path().join("lib"), outer.path().to_owned()]);
        assert_eq!(file::make_private_folders(&state).expect("there"), Vec::<PathBuf>::new());
        assert!(state.is_dir());
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

    #[test]
    fn what_is_no_file_is_no_journal() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FileStorage::FILE_NAME);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("ours");
        for opened in [FileStorage::look(folder.path()), FileStorage::create(folder.path())] {
            let (at, error) = opened.expect_err("a FIFO");
            assert_eq!((at, error.to_string().as_str()), (path.clone(), "it is a FIFO, not a file"));
        }
        fs::remove_file(&path).expect("ours");
        std::os::unix::fs::symlink("/dev/full", &path).expect("ours");
        assert!(FileStorage::look(folder.path()).is_err() && FileStorage::create(folder.path()).is_err());
    }
}
