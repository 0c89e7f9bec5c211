//! A folder of the file system.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::error::TableError;
use crate::storage::ring::Ring;
use crate::storage::{Output, Storage, WriteError};

/// Whoever holds the lock of this file may write the folder.
const LOCK: &str = "lock";

/// A folder that this process alone writes. The lock goes with the process, however it ends.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    folder: File,
    lock: File,
    ring: Arc<Mutex<Option<Ring>>>,
    why_no_ring: Option<String>,
}

impl Disk {
    /// Opens a folder and takes its lock. Folder and files are made for their owner's eyes only.
    ///
    /// Writes go through io_uring where the kernel and the sandbox allow it (a seccomp filter of containers often does
    /// not), else through pwrite and fdatasync: [`why_no_ring`](Self::why_no_ring) tells.
    ///
    /// # Errors
    /// [`TableError::InUse`] when another process has it; [`TableError::Io`] for what the kernel refuses.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let (ring, why_no_ring) = match Ring::new() {
            Ok(ring) => (Some(ring), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self::with(path, ring, why_no_ring)
    }

    /// The same without io_uring.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_plain(path: &Path) -> Result<Self, TableError> {
        Self::with(path, None, Some("not asked for".to_owned()))
    }

    fn with(path: &Path, ring: Option<Ring>, why_no_ring: Option<String>) -> Result<Self, TableError> {
        let at = |action, path: &Path| {
            let path = path.to_owned();
            move |source| TableError::Io { action, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at("make", path))?;
        // The name of the folder must outlive the power too. One that may not be opened was not made here either.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Ok(parent) = File::open(parent.unwrap_or(Path::new("."))) {
            parent.sync_all().map_err(at("sync", path))?;
        }
        let name = path.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&name);
        let lock = lock.map_err(at("open", &name))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TableError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(at("lock", &name)(source)),
        }
        let folder = File::open(path).map_err(at("open", path))?;
        let ring = Arc::new(Mutex::new(ring));
        Ok(Self { path: path.to_owned(), folder, lock, ring, why_no_ring })
    }

    /// Why writes do not go through io_uring; `None` when they do.
    #[must_use]
    pub fn why_no_ring(&self) -> Option<&str> {
        self.why_no_ring.as_deref()
    }

    fn output(&self, file: io::Result<File>) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(DiskFile { file: file?, ring: Arc::clone(&self.ring) }))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Closing it is not enough: a child between fork and exec has the same lock, and keeps it for as long.
        let _ = self.lock.unlock();
    }
}

impl Storage for Disk {
    fn path(&self) -> &Path {
        &self.path
    }

    #[expect(clippy::disallowed_methods, reason = "lists our own files, not the host's")]
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_file(), entry.file_name().into_string()) {
                names.push(name);
            }
        }
        names.retain(|name| name != LOCK);
        Ok(names)
    }

    #[expect(clippy::disallowed_methods, reason = "reads our own files, not the host's")]
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Output>> {
        let mut options = OpenOptions::new();
        self.output(options.create(true).truncate(true).write(true).mode(0o600).open(self.path.join(name)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Output>> {
        self.output(OpenOptions::new().write(true).open(self.path.join(name)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.folder.sync_all()
    }
}

#[derive(Debug)]
struct DiskFile {
    file: File,
    /// One for all files of the folder; only the log writes often enough to care.
    ring: Arc<Mutex<Option<Ring>>>,
}

impl Output for DiskFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        // Data and length; times of the file are nobody's business.
        self.file.sync_data()
    }

    fn write_and_sync(&mut self, offset: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut ring = self.ring.lock().expect("nothing panics while the ring is in use");
        match ring.as_mut() {
            Some(ring) => ring.write_and_sync(&self.file, offset, bytes),
            None => {
                drop(ring);
                self.write_at(offset, bytes).map_err(WriteError::Write)?;
                self.sync().map_err(WriteError::Sync)
            }
        }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_as_soon_as_it_is_let_go_of() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path()).unwrap();
        assert!(matches!(Disk::open(folder.path()), Err(TableError::InUse { .. })));
        // What a child of another thread has until it runs another program.
        let of_a_child = disk.lock.try_clone().unwrap();
        drop(disk);
        Disk::open(folder.path()).unwrap();
        drop(of_a_child);
    }
}
