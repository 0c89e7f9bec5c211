//! Salvage: what is left of a damaged table, into another folder.
//!
//! Opening a damaged table is refused, and stays so: nobody but its owner can know whether what is left is worth more
//! than a backup. Who decides for it calls this. The damaged folder is only read.
//!
//! Every batch whose checksum holds is kept, under its number. Batches that are lost keep theirs too, as frames without
//! a payload, so that the numbers in the manifest stay true. A file that is not as it was written is left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::durable::Manifest;
use crate::durable::manifest::MANIFEST;
use crate::error::TableError;
use crate::files::{FileZone, TableFile};
use crate::log::frame::{HEAD_BYTES, Head, write_frame};
use crate::log::reader::{file_name, first_of};
use crate::log::{Batch, Change, Frame, LOG_VERSION, search};
use crate::schema::Schema;
use crate::storage::Storage;

/// No log misses more batches in one place: a frame that says so was not written by a table.
const MISSED_MAX: u64 = u32::MAX as u64;

/// What was kept, and what was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
    /// Batches of the log that are in the new folder.
    pub batches: u64,
    /// Rows, or keys to delete, in those.
    pub rows: u64,
    /// Files that are in the new folder.
    pub files: usize,
    /// Batches that are not.
    pub lost: Vec<LostBatches>,
    /// What is known of their numbers at their producers.
    pub sequences: Vec<MissingSequences>,
    /// Files that are not.
    pub lost_files: Vec<LostFile>,
}

/// Neighbours in the log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostBatches {
    /// Number of the first.
    pub from: u64,
    /// Number of the last; `None` at the end of the log, where nothing tells how many there were, if any.
    pub through: Option<u64>,
    /// The file of the log in which they lay, or behind which they were missed.
    pub path: PathBuf,
    /// Where they began.
    pub offset: u64,
    /// Bytes from there on that are of no use; 0 where a whole file is missing.
    pub bytes: u64,
}

/// Batches of a producer that are lost. The table answers that it knows them: whoever has them still sends them without
/// an origin, or under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSequences {
    /// Its name.
    pub producer: String,
    /// Numbers above this one; `None` where the log tells of no earlier one: then files may hold some of them.
    pub after: Option<u64>,
    /// Up to this one.
    pub through: u64,
}

/// A file that was not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostFile {
    /// Its name.
    pub name: String,
    /// Rows that it had.
    pub rows: u64,
    /// First and last time of those.
    pub times: Option<(i64, i64)>,
    /// What is wrong with it.
    pub reason: String,
}

/// Copies what is left of a table into an empty folder, from which it can be opened.
///
/// In a table with a key, a lost batch may have replaced or deleted rows: those are then there as they were before it.
///
/// # Errors
/// What is wrong with the manifest: without it nobody knows what the files are. [`TableError::Exists`] when the other
/// folder has a table. [`TableError::Newer`] when a later planish wrote some of it. [`TableError::Io`]. The manifest is
/// written last: a salvage that failed cannot be opened.
pub fn salvage(from: &dyn Storage, to: &dyn Storage) -> Result<Salvage, TableError> {
    let path = from.path().join(MANIFEST);
    let manifest = Manifest::read(from)?;
    let mut manifest = manifest.ok_or_else(|| TableError::Io {
        action: "read",
        path,
        source: std::io::ErrorKind::NotFound.into(),
    })?;
    if Manifest::read(to)?.is_some() {
        return Err(TableError::Exists { path: to.path().join(MANIFEST) });
    }
    let mut salvage = Salvage::default();
    salvage.copy_files(from, to, &mut manifest)?;
    let schema = manifest.schema()?;
    let mut log = Log {
        to,
        manifest: &manifest,
        schema: &schema,
        next: manifest.replay_from,
        known: manifest.applied + 1,
        bad: None,
        last: BTreeMap::new(),
        has_lost: false,
        out: Vec::new(),
        salvage,
    };
    log.copy(from)?;
    let salvage = log.salvage;
    manifest.write(to)?;
    Ok(salvage)
}

fn read(storage: &dyn Storage, name: &str) -> Result<Vec<u8>, TableError> {
    let path = storage.path().join(name);
    storage.read(name).map_err(|source| TableError::Io { action: "read", path, source })
}

fn put(to: &dyn Storage, name: &str, bytes: &[u8]) -> Result<(), TableError> {
    let written = to.create(name).and_then(|mut output| {
        output.write_at(0, bytes)?;
        output.sync()
    });
    let path = to.path().join(name);
    written.map_err(|source| TableError::Io { action: "write", path, source })
}

impl Salvage {
    /// Whether nothing was lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty() && self.lost_files.is_empty()
    }

    /// Copies the files that are as they were written; the others leave the manifest.
    fn copy_files(
        &mut self,
        from: &dyn Storage,
        to: &dyn Storage,
        manifest: &mut Manifest,
    ) -> Result<(), TableError> {
        let time = manifest.schema()?.time();
        let mut kept = Vec::new();
        for file in std::mem::take(&mut manifest.files) {
            let reason = match read(from, &file.name) {
                Ok(bytes) if bytes.len() as u64 == file.bytes && crc32c::crc32c(&bytes) == file.crc32c => {
                    put(to, &file.name, &bytes)?;
                    self.files += 1;
                    kept.push(file);
                    continue;
                }
                Ok(_) => "its bytes are not those that the manifest tells".to_owned(),
                Err(TableError::Io { source, .. }) => source.to_string(),
                Err(other) => return Err(other),
            };
            self.lost_files.push(LostFile::of(&file, time, reason));
        }
        manifest.files = kept;
        Ok(())
    }
}

impl LostFile {
    fn of(file: &TableFile, time: usize, reason: String) -> Self {
        let times = match file.columns.get(time).map(|column| &column.zone) {
            Some(FileZone::Whole(low, high)) => Some((*low, *high)),
            _ => None,
        };
        Self { name: file.name.clone(), rows: file.live_rows(), times, reason }
    }
}

/// A place from which on bytes of a log file are no frames.
struct Place {
    path: PathBuf,
    offset: u64,
    bytes: u64,
}

/// A log on its way.
struct Log<'s> {
    to: &'s dyn Storage,
    manifest: &'s Manifest,
    schema: &'s Schema,
    /// Number of the next batch.
    next: u64,
    /// All batches below this number were in the log once: what a cut has taken leaves no other trace.
    known: u64,
    /// What was met since the last batch that was kept.
    bad: Option<Place>,
    /// Number of the last batch of each producer that was kept, and whether any was lost since.
    last: BTreeMap<String, (u64, bool)>,
    has_lost: bool,
    /// The log file that is being made.
    out: Vec<u8>,
    salvage: Salvage,
}

impl Log<'_> {
    fn copy(&mut self, from: &dyn Storage) -> Result<(), TableError> {
        let path = from.path().to_owned();
        let names = from.list().map_err(|source| TableError::Io { action: "list", path, source })?;
        let mut names: Vec<(u64, String)> =
            names.into_iter().filter_map(|name| Some((first_of(&name)?, name))).collect();
        names.sort();
        // What a flush was about to remove when it was killed is missed by nobody.
        let needed = names.iter().rposition(|(first, _)| *first <= self.next).unwrap_or(0);
        let mut path = from.path().to_owned();
        for (_, name) in names.into_iter().skip(needed) {
            path = from.path().join(&name);
            let bytes = read(from, &name)?;
            let begin = self.next;
            self.copy_file(&bytes, &path)?;
            self.put(begin)?;
        }
        let begin = self.next;
        if self.next < self.known {
            self.fill(self.known, &path);
        } else if let Some(Place { path, offset, bytes }) = self.bad.take() {
            self.salvage.lost.push(LostBatches { from: self.next, through: None, path, offset, bytes });
        }
        self.put(begin)?;
        for (producer, &through) in &self.manifest.producers {
            let last = self.last.get(producer).copied();
            let (after, has_lost) = last.map_or((None, self.has_lost), |(last, lost)| (Some(last), lost));
            if has_lost && after.is_none_or(|after| after < through) {
                let producer = producer.clone();
                self.salvage.sequences.push(MissingSequences { producer, after, through });
            }
        }
        Ok(())
    }

    /// Keeps what can be kept of a file.
    fn copy_file(&mut self, bytes: &[u8], path: &Path) -> Result<(), TableError> {
        let newer = |version| TableError::Newer { path: path.to_owned(), version, known: LOG_VERSION };
        let head = Head::parse(bytes).map_err(newer)?;
        let frames = search(bytes, self.manifest.table, HEAD_BYTES);
        let version = head.map_or_else(|| version_of(bytes, &frames), |head| head.version);
        self.learn(head.filter(|head| head.table == self.manifest.table).map_or(0, |head| head.first));
        let mut end = HEAD_BYTES.min(bytes.len());
        for frame in frames {
            let start = frame.payload.start - HEAD_BYTES;
            if start > end {
                self.note(path, end, start);
            }
            end = frame.payload.end;
            let first = frame.first;
            self.learn(first.saturating_add(frame.count.into()).max(frame.synced));
            let is_needed = first >= self.next && frame.count > 0;
            // What spans the place where files take over is cut there.
            let is_cut = first < self.next && first.saturating_add(frame.count.into()) > self.next;
            if !is_needed && !is_cut {
                continue;
            }
            let batches = batches_of(bytes, &frame, version, self.schema);
            if frame.is_lost(version) || self.is_far(first) || batches.is_none() {
                self.note(path, start, end);
                continue;
            }
            self.fill(first, path);
            self.keep(batches.unwrap_or_default(), first, version);
        }
        if end < bytes.len() {
            self.note(path, end, bytes.len());
        }
        Ok(())
    }

    /// Takes note that the log has had all batches below a number.
    fn learn(&mut self, next: u64) {
        if !self.is_far(next) {
            self.known = self.known.max(next);
        }
    }

    fn is_far(&self, number: u64) -> bool {
        number.saturating_sub(self.next) > MISSED_MAX
    }

    /// Notes bytes that are of no use; the first of them count until a batch is kept again.
    fn note(&mut self, path: &Path, start: usize, end: usize) {
        let (offset, bytes) = (start as u64, (end - start) as u64);
        match &mut self.bad {
            Some(bad) if bad.path == path => bad.bytes = offset + bytes - bad.offset,
            Some(_) => {}
            None => self.bad = Some(Place { path: path.to_owned(), offset, bytes }),
        }
    }

    /// Puts frames without a payload in the place of the batches that are missing before one.
    fn fill(&mut self, until: u64, path: &Path) {
        if until <= self.next {
            return;
        }
        let missed = Place { path: path.to_owned(), offset: 0, bytes: 0 };
        let Place { path, offset, bytes } = self.bad.take().unwrap_or(missed);
        let lost = LostBatches { from: self.next, through: Some(until - 1), path, offset, bytes };
        self.salvage.lost.push(lost);
        self.has_lost = true;
        self.last.values_mut().for_each(|(_, has_lost)| *has_lost = true);
        let count = u32::try_from(until - self.next).expect("frames that are further away are not believed");
        self.write(self.next, count, &[]);
    }

    /// Keeps the batches of a frame that are still needed.
    fn keep(&mut self, batches: Vec<(Batch, &[u8])>, first: u64, version: u32) {
        let skip = usize::try_from(self.next.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut kept = Vec::new();
        for (batch, bytes) in batches.into_iter().skip(skip) {
            self.salvage.rows += batch.rows as u64;
            kept.push(Batch::renew(bytes, version));
            if let Some((producer, sequence)) = batch.origin {
                self.judge(producer, sequence);
            }
        }
        self.bad = None;
        self.salvage.batches += kept.len() as u64;
        self.write(self.next, u32::try_from(kept.len()).expect("a frame counts them so"), &kept.concat());
    }

    /// Tells whether batches of a producer are missing before this one.
    fn judge(&mut self, producer: String, sequence: u64) {
        let last = self.last.get(&producer).copied();
        let (after, has_lost) = last.map_or((None, self.has_lost), |(last, lost)| (Some(last), lost));
        if has_lost && after.unwrap_or(0) + 1 < sequence {
            let (producer, through) = (producer.clone(), sequence - 1);
            self.salvage.sequences.push(MissingSequences { producer, after, through });
        }
        self.last.insert(producer, (sequence, false));
    }

    fn write(&mut self, first: u64, count: u32, payload: &[u8]) {
        if self.out.is_empty() {
            self.out.extend_from_slice(&Head::new(self.manifest.table, first).to_bytes());
        }
        write_frame(&mut self.out, self.manifest.table, (first, count, first), |out| {
            out.extend_from_slice(payload);
        });
        self.next = first + u64::from(count);
    }

    /// Writes the file that was made, whose first batch is told.
    fn put(&mut self, first: u64) -> Result<(), TableError> {
        if !self.out.is_empty() {
            put(self.to, &file_name(first), &self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}

/// The batches of a frame, if all of them are and fit the table.
fn batches_of<'b>(
    bytes: &'b [u8],
    frame: &Frame,
    version: u32,
    schema: &Schema,
) -> Option<Vec<(Batch, &'b [u8])>> {
    let parse = |bytes: &'b [u8]| {
        let batch = Batch::parse(bytes, version).ok()?;
        let fits = batch.with_cells(|cells| match batch.change {
            Change::Rows => schema.check(cells).is_ok(),
            Change::Delete => schema.check_keys(cells).is_ok(),
        });
        fits.then_some((batch, bytes))
    };
    let batches = Batch::split(bytes.get(frame.payload.clone())?, frame.count).ok()?;
    batches.into_iter().map(parse).collect()
}

/// Of a file whose head is damaged: the version by which most of its frames can be read.
fn version_of(bytes: &[u8], frames: &[Frame]) -> u32 {
    let reads = |version: &u32| {
        let batches =
            |frame: &Frame| Batch::split(&bytes[frame.payload.clone()], frame.count).unwrap_or_default();
        let batches = frames.iter().flat_map(batches);
        batches.filter(|batch| Batch::parse(batch, *version).is_ok()).count()
    };
    (1..=LOG_VERSION).max_by_key(reads).unwrap_or(LOG_VERSION)
}
