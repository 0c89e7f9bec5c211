//! The files of programs, below a root.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use planish_host::{Host, in_root};
use planish_sys::draft::could_be_beside;
use planish_sys::pages;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::guard::{ProgramRefusal, armed, refuse};
use super::rights::Rights;
use super::{Mark, Programs, Side, beside, other};
use crate::error::{Operation, SinkError};

/// A program's file has at most so many bytes: it is read and made whole.
const BYTES_MAX: u64 = 4 << 30;

/// The programs of a host whose files may be written.
#[derive(Debug)]
pub struct LivePrograms<'a> {
    host: &'a Host,
    root: &'a Path,
}

impl<'a> LivePrograms<'a> {
    /// Those of a host that lies below a root.
    #[must_use]
    pub fn new(host: &'a Host, root: &'a Path) -> Self {
        Self { host, root }
    }

    fn at(&self, path: &str, side: Side) -> io::Result<PathBuf> {
        let name = match side {
            Side::Named => path.to_owned(),
            Side::Beside => beside(path),
        };
        // Links in the folders are followed; one of the file's own name is not.
        let (folder, name) = name.rsplit_once('/').ok_or(io::ErrorKind::InvalidInput)?;
        let folder = if folder.is_empty() { "/" } else { folder };
        Ok(in_root(self.root, folder)?.join(name))
    }

    fn both(&self, path: &str) -> io::Result<(PathBuf, PathBuf)> {
        Ok((self.at(path, Side::Named)?, self.at(path, Side::Beside)?))
    }
}

impl Programs for LivePrograms<'_> {
    fn guard(&self, path: &str, packaged: bool) -> Result<Mark, ProgramRefusal> {
        let unread = |source| ProgramRefusal::Unread { path: path.to_owned(), source };
        let real = self.at(path, Side::Named).map_err(unread)?;
        let metadata = fs::symlink_metadata(&real).map_err(unread)?;
        refuse(self.host, path, &real, &metadata, packaged)?;
        Ok(mark(&metadata))
    }

    fn sum(&self, path: &str, side: Side) -> Result<Option<String>, SinkError> {
        let failed = |error| SinkError::new(Operation::Read, path, error);
        let real = self.at(path, side).map_err(failed)?;
        // A link that somebody put there is theirs, whatever it leads to.
        let odd = || Ok(Some("no plain file".to_owned()));
        match fs::symlink_metadata(&real) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
            Ok(metadata) if !metadata.is_file() => return odd(),
            Ok(_) => {}
        }
        match planish_sys::file::read_unless_link(&real, BYTES_MAX).map_err(failed)? {
            Some(bytes) => Ok(Some(super::sum_of(&bytes))),
            None => odd(),
        }
    }

    fn mark(&self, path: &str) -> Result<Mark, SinkError> {
        let metadata = self.at(path, Side::Named).and_then(fs::symlink_metadata);
        metadata.map(|metadata| mark(&metadata)).map_err(|error| SinkError::new(Operation::Read, path, error))
    }

    fn probed(&self, path: &str) -> Result<Option<u64>, SinkError> {
        let armed = self.at(path, Side::Named).and_then(|real| armed(&real));
        armed.map_err(|error| SinkError::new(Operation::Read, path, error))
    }

    fn room(&self, path: &str, bytes: u64) -> Result<(), SinkError> {
        let room = self.at(path, Side::Beside).and_then(|fresh| could_be_beside(&fresh, bytes));
        room.map_err(|error| SinkError::new(Operation::Replace, path, error))
    }

    fn make(&self, path: &str, origin: &Mark, bytes: &[u8]) -> Result<(), SinkError> {
        let failed = |error| SinkError::new(Operation::Replace, path, error);
        let (real, fresh) = self.both(path).map_err(failed)?;
        let old = planish_sys::file::open_unless_link(&real).map_err(failed)?;
        if mark(&old.metadata().map_err(failed)?) != *origin {
            return Err(other(path, "somebody changed it meanwhile"));
        }
        // Only its owner may open it until it is whole; one that is there is not ours to write into.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(&fresh).map_err(failed)?;
        let made = write_in_pieces(&mut file, bytes).and_then(|()| Rights::of(&old)?.give(&file));
        let made = made.and_then(|()| file.sync_all()).and_then(|()| sync_folder(&fresh));
        made.map_err(|error| {
            let _ = fs::remove_file(&fresh);
            failed(error)
        })
    }

    fn exchange(&self, path: &str) -> Result<(), SinkError> {
        let failed = |error| SinkError::new(Operation::Replace, path, error);
        let (real, fresh) = self.both(path).map_err(failed)?;
        match renameat_with(CWD, &fresh, CWD, &real, RenameFlags::EXCHANGE) {
            Ok(()) => sync_folder(&real).map_err(failed),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                Err(other(path, "this file system cannot have two files change names at once"))
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    fn give_name(&self, path: &str) -> Result<(), SinkError> {
        let failed = |error| SinkError::new(Operation::Replace, path, error);
        let (real, fresh) = self.both(path).map_err(failed)?;
        let renamed = renameat_with(CWD, &fresh, CWD, &real, RenameFlags::NOREPLACE);
        renamed.map_err(io::Error::from).and_then(|()| sync_folder(&real)).map_err(failed)
    }

    fn keep_rights(&self, path: &str) -> Result<bool, SinkError> {
        let failed = |error| SinkError::new(Operation::Replace, path, error);
        let (real, fresh) = self.both(path).map_err(failed)?;
        let open = |file| planish_sys::file::open_unless_link(file).map_err(failed);
        let (named, kept) = (open(&real)?, open(&fresh)?);
        let rights = Rights::of(&named).map_err(failed)?;
        if rights == Rights::of(&kept).map_err(failed)? {
            return Ok(false);
        }
        if rights.is_setuid() {
            return Err(other(path, "it runs with the rights of its owner or group since (chmod u-s,g-s)"));
        }
        rights.give(&kept).and_then(|()| kept.sync_all()).map_err(failed)?;
        Ok(true)
    }

    fn remove(&self, path: &str) -> Result<(), SinkError> {
        let removed = self.at(path, Side::Beside).and_then(|fresh| match fs::remove_file(&fresh) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => sync_folder(&fresh),
        });
        removed.map_err(|error| SinkError::new(Operation::Replace, path, error))
    }

    fn real(&self, path: &str, side: Side) -> PathBuf {
        self.at(path, side).unwrap_or_else(|_| PathBuf::from(path))
    }
}

fn mark(metadata: &fs::Metadata) -> Mark {
    let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    Mark {
        file: (metadata.dev(), metadata.ino()),
        bytes: metadata.len(),
        changed: [
            time(metadata.mtime(), metadata.mtime_nsec()),
            time(metadata.ctime(), metadata.ctime_nsec()),
        ],
    }
}

/// Writes by calls of a whole huge page each: the page cache makes a folio of what one call brings, where the file
/// system has large ones, and of no more (`iomap_get_folio`, `ext4_write_begin`).
fn write_in_pieces(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let piece = pages::thp_bytes().unwrap_or(2 << 20);
    bytes.chunks(piece).try_for_each(|piece| file.write_all(piece))
}

fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
