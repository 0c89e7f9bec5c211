//! A folder of the file system that another process writes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::storage::{Output, Stamp, Storage};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// A folder that is read alone: whatever would write to it is refused. It has no lock.
#[derive(Debug, Clone)]
pub struct View {
    path: PathBuf,
}

impl View {
    /// Of a folder, which need not be there yet.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::PermissionDenied.into())
}

impl Storage for View {
    fn path(&self) -> &Path {
        &self.path
    }

    #[expect(clippy::disallowed_methods, reason = "lists our own files, not the host's")]
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // One may go while the others are listed.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    #[expect(clippy::disallowed_methods, reason = "reads our own files, not the host's")]
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(name))
    }

    fn read_from(&self, name: &str, offset: u64) -> io::Result<Vec<u8>> {
        let file = File::open(self.path.join(name))?;
        let mut bytes = Vec::new();
        loop {
            let length = bytes.len();
            bytes.resize(length + PIECE_BYTES, 0);
            let count = file.read_at(&mut bytes[length..], offset + length as u64)?;
            bytes.truncate(length + count);
            if count == 0 {
                return Ok(bytes);
            }
        }
    }

    fn stamp(&self, name: &str) -> io::Result<Stamp> {
        let metadata = fs::metadata(self.path.join(name))?;
        let written = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Ok(Stamp { file: metadata.ino(), written, bytes: metadata.len() })
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn Output>> {
        refused()
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Output>> {
        refused()
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        refused()
    }

    fn sync_folder(&self) -> io::Result<()> {
        refused()
    }
}
