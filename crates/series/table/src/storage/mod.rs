//! Where a durable table keeps its files: a folder, or what a test puts in its place.
//!
//! Everything that a table writes goes through these two traits, so that a test can stop at every write, lose what was
//! not synced, fill the disk, or fail a sync. Nothing of that can be switched on from outside of a program.

mod disk;
#[expect(unsafe_code, reason = "the one fence of this crate: buffers that the kernel reads")]
mod ring;
mod view;

use std::fmt::Debug;
use std::io;
use std::path::Path;

pub use disk::Disk;
pub use view::View;

/// By what a file that was replaced is told from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which file it is, among all that there were at one time.
    pub file: u64,
    /// When it was written, in nanoseconds; or what else changes with its bytes.
    pub written: i128,
    /// Its bytes.
    pub bytes: u64,
}

/// A folder of files.
pub trait Storage: Send + Sync + Debug {
    /// Where it is, for messages.
    fn path(&self) -> &Path;

    /// The names of its files, in any order.
    ///
    /// # Errors
    /// The kernel's.
    fn list(&self) -> io::Result<Vec<String>>;

    /// All bytes of a file.
    ///
    /// # Errors
    /// The kernel's.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// The bytes of a file from an offset on; none where it ends before.
    ///
    /// # Errors
    /// The kernel's.
    fn read_from(&self, name: &str, offset: u64) -> io::Result<Vec<u8>> {
        let mut bytes = self.read(name)?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.split_off(offset))
    }

    /// What tells a file from one that took its place.
    ///
    /// # Errors
    /// The kernel's.
    fn stamp(&self, name: &str) -> io::Result<Stamp> {
        let bytes = self.read(name)?;
        Ok(Stamp { file: 0, written: crc32c::crc32c(&bytes).into(), bytes: bytes.len() as u64 })
    }

    /// A new file, or an old one without its bytes. Its name is on the disk only after
    /// [`sync_folder`](Self::sync_folder).
    ///
    /// # Errors
    /// The kernel's.
    fn create(&self, name: &str) -> io::Result<Box<dyn Output>>;

    /// A file that is there, to be cut.
    ///
    /// # Errors
    /// The kernel's.
    fn open(&self, name: &str) -> io::Result<Box<dyn Output>>;

    /// Gives a file another name, in place of the file that may have it.
    ///
    /// # Errors
    /// The kernel's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The kernel's.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when the names of the folder are on the disk as they are.
    ///
    /// # Errors
    /// The kernel's.
    fn sync_folder(&self) -> io::Result<()>;
}

/// A file that is written.
pub trait Output: Send + Debug {
    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// The kernel's; some of the bytes may then be there.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all bytes, and the length, are on the disk.
    ///
    /// # Errors
    /// The kernel's. What was written since the last sync may then be lost, and **a second sync that succeeds does not
    /// mean that it is there**: Linux reports a failed write-back once and then forgets about it.
    fn sync(&mut self) -> io::Result<()>;

    /// Both, in as few calls as there can be.
    ///
    /// # Errors
    /// Which of the two failed.
    fn write_and_sync(&mut self, offset: u64, bytes: &[u8]) -> Result<(), WriteError> {
        self.write_at(offset, bytes).map_err(WriteError::Write)?;
        self.sync().map_err(WriteError::Sync)
    }

    /// Cuts the file to a length.
    ///
    /// # Errors
    /// The kernel's.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// Which half of [`Output::write_and_sync`] failed.
#[derive(Debug)]
pub enum WriteError {
    /// The bytes could not be written: nothing that was there before is in danger.
    Write(io::Error),
    /// They could not be synced: nobody knows what is on the disk.
    Sync(io::Error),
}
