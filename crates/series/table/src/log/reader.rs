//! Reading the log of a folder: file by file, each batch to whoever takes it in.

use std::path::PathBuf;

use crate::error::TableError;
use crate::log::batch::Batch;
use crate::log::frame::{Bad, HEAD_BYTES, Head, LOG_VERSION, scan};
use crate::storage::Storage;

/// Bytes at the end of the log that a loss of power had torn; they were cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The file.
    pub path: PathBuf,
    /// Where the torn bytes began.
    pub offset: u64,
    /// How many there were.
    pub bytes: u64,
    /// Whole frames among them, behind the tear. None of them was known to be synced.
    pub frames: usize,
    /// What was wrong at the place where they began.
    pub reason: &'static str,
}

/// Where the log ended.
#[derive(Debug)]
pub(crate) struct End {
    /// Number of the next batch.
    pub(crate) next: u64,
    /// The files that stay, oldest first: number of the first batch, and name.
    pub(crate) files: Vec<(u64, String)>,
    /// What was torn.
    pub(crate) tail: Option<Tail>,
    /// Batches that a salvage could not keep.
    pub(crate) lost: u64,
}

/// Name of the log file that begins with a batch.
pub(crate) fn file_name(first: u64) -> String {
    format!("{first:020}.log")
}

pub(crate) fn first_of(name: &str) -> Option<u64> {
    name.strip_suffix(".log").filter(|digits| digits.len() == 20)?.parse().ok()
}

/// Reads every batch from `from` on; cuts off a torn tail. Files that hold nothing from there on are removed.
pub(crate) fn read(
    storage: &dyn Storage,
    table: u64,
    from: u64,
    mut take: impl FnMut(u64, Batch) -> Result<(), TableError>,
) -> Result<End, TableError> {
    let io = |action, name: &str| {
        let path = storage.path().join(name);
        move |source| TableError::Io { action, path, source }
    };
    let names = storage.list().map_err(io("list", ""))?;
    let mut files: Vec<(u64, String)> =
        names.into_iter().filter_map(|name| Some((first_of(&name)?, name))).collect();
    files.sort();
    // What a flush was about to remove when it was killed.
    let needed = files.iter().rposition(|(first, _)| *first <= from).unwrap_or(0);
    for (_, name) in files.drain(..needed) {
        storage.remove(&name).map_err(io("remove", &name))?;
    }
    let mut end = End { next: from, files: Vec::new(), tail: None, lost: 0 };
    if let Some((first, name)) = files.first() {
        if *first > from {
            let path = storage.path().join(name);
            return Err(TableError::LogMissing { path, from, first: *first });
        }
        end.next = *first;
    }
    let count = files.len();
    for (index, (first, name)) in files.into_iter().enumerate() {
        let bytes = storage.read(&name).map_err(io("read", &name))?;
        let file = File { storage, table, name: &name, bytes: &bytes, is_last: index + 1 == count };
        if file.read(first, from, &mut end, &mut take)? {
            end.files.push((first, name));
        }
    }
    Ok(end)
}

/// One file of the log.
struct File<'a> {
    storage: &'a dyn Storage,
    table: u64,
    name: &'a str,
    bytes: &'a [u8],
    is_last: bool,
}

impl File<'_> {
    /// Hands on its batches; says whether the file stays.
    fn read(
        &self,
        first: u64,
        from: u64,
        end: &mut End,
        take: &mut impl FnMut(u64, Batch) -> Result<(), TableError>,
    ) -> Result<bool, TableError> {
        let head = Head::parse(self.bytes).map_err(|version| TableError::Newer {
            path: self.path(),
            version,
            known: LOG_VERSION,
        })?;
        let scan = scan(self.bytes, self.table, end.next);
        match head {
            Some(head) if head.table != self.table => {
                return Err(self.damaged(24, "it belongs to another table"));
            }
            Some(head) if head.first != first || first != end.next => {
                return Err(self.damaged(24, "batches are missing before it"));
            }
            Some(_) => {}
            // The head is synced before anything else is written to the file.
            None if self.is_last && self.bytes.len() <= HEAD_BYTES => {
                end.tail = Some(self.tail(0, 0, "the head of the file is cut short"));
                self.storage.remove(self.name).map_err(|source| self.io("remove", source))?;
                self.storage.sync_folder().map_err(|source| self.io("sync", source))?;
                return Ok(false);
            }
            None => return Err(self.damaged(0, "the head of the file is not what was written")),
        }
        let version = head.map_or(LOG_VERSION, |head| head.version);
        for frame in &scan.frames {
            let behind = frame.first + u64::from(frame.count);
            if behind <= from {
                continue;
            }
            if frame.is_lost(version) {
                end.lost += behind - frame.first.max(from);
                continue;
            }
            let damaged = |reason| self.damaged(frame.payload.start, reason);
            let batches = Batch::split(&self.bytes[frame.payload.clone()], frame.count).map_err(damaged)?;
            for (number, batch) in (frame.first..).zip(batches) {
                if number >= from {
                    take(number, Batch::parse(batch, version).map_err(damaged)?)?;
                }
            }
        }
        end.next = scan.next;
        if let Some(bad) = scan.bad {
            self.settle(&bad, end)?;
        }
        Ok(true)
    }

    /// Tells damage from a torn tail, and cuts off a tail.
    fn settle(&self, bad: &Bad, end: &mut End) -> Result<(), TableError> {
        if !self.is_last || bad.is_damage() {
            return Err(self.damaged(bad.offset, bad.reason));
        }
        let mut output = self.storage.open(self.name).map_err(|source| self.io("open", source))?;
        output.cut(bad.offset as u64).map_err(|source| self.io("cut", source))?;
        output.sync().map_err(|source| self.io("sync", source))?;
        end.tail = Some(self.tail(bad.offset, bad.frames_after, bad.reason));
        Ok(())
    }

    fn tail(&self, offset: usize, frames: usize, reason: &'static str) -> Tail {
        let bytes = (self.bytes.len() - offset) as u64;
        Tail { path: self.path(), offset: offset as u64, bytes, frames, reason }
    }

    fn path(&self) -> PathBuf {
        self.storage.path().join(self.name)
    }

    fn damaged(&self, offset: usize, reason: &'static str) -> TableError {
        TableError::Damaged { path: self.path(), offset: offset as u64, reason: reason.to_owned() }
    }

    fn io(&self, action: &'static str, source: std::io::Error) -> TableError {
        TableError::Io { action, path: self.path(), source }
    }
}
