//! Reading a log that grows, and is another's: from where the last look ended, without changing anything.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::error::TableError;
use crate::log::batch::Batch;
use crate::log::frame::{HEAD_BYTES, Head, LOG_VERSION, follow};
use crate::log::reader::{file_name, first_of};
use crate::storage::Storage;

/// A place in a log.
#[derive(Debug)]
pub(crate) struct Tail {
    table: u64,
    /// Batches before this one are not wanted.
    from: u64,
    /// Number of the first batch of the file that is read.
    first: u64,
    /// What is read next of it; 0 before its head.
    offset: u64,
    version: u32,
    /// Number of the batch that comes next in the log.
    next: u64,
    /// Number of the batch that is taken in next: behind `next - 1` where taking in a frame was broken off.
    wanted: u64,
}

impl Tail {
    /// The place from which a log has to be read for the batches from `from` on.
    pub(crate) fn find(storage: &dyn Storage, table: u64, from: u64) -> Result<Self, TableError> {
        let path = storage.path().to_owned();
        let names = storage.list().map_err(|source| TableError::Io { action: "list", path, source })?;
        let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
        firsts.sort_unstable();
        let first = match (firsts.iter().rfind(|first| **first <= from), firsts.first()) {
            (Some(first), _) => *first,
            (None, Some(&first)) => {
                let path = storage.path().join(file_name(first));
                return Err(TableError::LogMissing { path, from, first });
            }
            // Its first file comes with its first batch.
            (None, None) => from,
        };
        Ok(Self { table, from, first, offset: 0, version: LOG_VERSION, next: first, wanted: from })
    }

    /// Hands on what has come since, batch by batch. What is not whole yet is left for the next time.
    ///
    /// # Errors
    /// What `take` says, of a batch that is handed on again by the next call; damage; and what the kernel says, that
    /// the file is not there above all.
    pub(crate) fn read_on(
        &mut self,
        storage: &dyn Storage,
        mut take: impl FnMut(u64, &Batch) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        loop {
            let name = file_name(self.first);
            let path = storage.path().join(&name);
            let bytes = match storage.read_from(&name, self.offset) {
                Ok(bytes) => bytes,
                // The first one of a log, which is not there yet.
                Err(error) if error.kind() == ErrorKind::NotFound && self.offset == 0 => return Ok(()),
                Err(source) => return Err(TableError::Io { action: "read", path, source }),
            };
            let used = self.head(&path, &bytes)?;
            if self.offset == 0 && used == 0 {
                return Ok(());
            }
            self.offset += used as u64;
            self.frames(&path, &bytes[used..], &mut take)?;
            // A file is made when all before it are whole, and named by the batch that comes next.
            if self.next == self.first || !self.is_there(storage)? {
                return Ok(());
            }
            (self.first, self.offset) = (self.next, 0);
        }
    }

    /// Reads the head of the file, if this is its beginning; how many bytes it has, none where it is not whole yet.
    fn head(&mut self, path: &std::path::Path, bytes: &[u8]) -> Result<usize, TableError> {
        if self.offset > 0 {
            return Ok(0);
        }
        let newer = |version| TableError::Newer { path: path.to_owned(), version, known: LOG_VERSION };
        match Head::parse(bytes).map_err(newer)? {
            Some(head) if head.table == self.table && head.first == self.first => {
                self.version = head.version;
                Ok(HEAD_BYTES)
            }
            Some(_) => Err(damaged(path.to_owned(), 0, "it belongs to another table, or another place")),
            // It is being written.
            None if bytes.len() <= HEAD_BYTES => Ok(0),
            None => Err(damaged(path.to_owned(), 0, "the head of the file is not what was written")),
        }
    }

    /// Takes in the whole frames of some bytes.
    fn frames(
        &mut self,
        path: &std::path::Path,
        bytes: &[u8],
        take: &mut impl FnMut(u64, &Batch) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        let start = self.offset;
        let frames = follow(bytes, self.table, self.next);
        let frames =
            frames.map_err(|(offset, reason)| damaged(path.to_owned(), start + offset as u64, reason))?;
        for frame in frames {
            let at = start + frame.payload.start as u64;
            let broken = |reason| damaged(path.to_owned(), at, reason);
            let behind = frame.first + u64::from(frame.count);
            if behind > self.from && !frame.is_lost(self.version) {
                let batches = Batch::split(&bytes[frame.payload.clone()], frame.count).map_err(broken)?;
                for (number, batch) in (frame.first..).zip(batches) {
                    if number >= self.wanted {
                        take(number, &Batch::parse(batch, self.version).map_err(broken)?)?;
                        self.wanted = number + 1;
                    }
                }
            }
            self.next = behind;
            // A file of nothing but marks may be made anew, and has a batch in their place then.
            if frame.count > 0 {
                self.offset = start + frame.payload.end as u64;
            }
        }
        Ok(())
    }

    fn is_there(&self, storage: &dyn Storage) -> Result<bool, TableError> {
        let name = file_name(self.next);
        match storage.stamp(&name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TableError::Io { action: "read", path: storage.path().join(name), source }),
        }
    }
}

fn damaged(path: PathBuf, offset: u64, reason: &str) -> TableError {
    TableError::Damaged { path, offset, reason: reason.to_owned() }
}
