//! A table that outlives its process: a [`Table`] in memory, a log, and files of sealed partitions.
//!
//! ```text
//!   submit ──> log (one sync for many) ──> acknowledged ──> table in memory ── flush ──> Parquet files
//!                        │                                                                   │
//!                        └── replayed when opened <── manifest: files, and where the log takes over
//! ```
//!
//! Invariants:
//!
//! - **Live is replayed.** The table takes in nothing but what the log holds, in the log's order, by the same code
//!   when a batch was just acknowledged and when the table is opened. So what was recovered is what was there.
//! - **A row is in one place.** The manifest says for each flushed partition up to which batch files hold its rows; a
//!   replay leaves those out. It is replaced as a whole, and only then memory and log are let go of.
//! - **Of one key the newest counts**: what is in memory comes before files, and of a partition's files no two have one
//!   key, for a flush marks in older files what it replaces. Deleted keys whose rows may lie in files are kept in
//!   memory until then.
//! - **Readers see whole batches**, and every batch that was acknowledged before they came.

mod changes;
mod compact;
mod flush;
mod follow;
mod manifest;
mod recover;
mod retain;
mod salvage;
mod state;

use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::TableError;
use crate::files::{Codec, FileRows, TableFile};
use crate::log::batch::{PRODUCER_BYTES_MAX, encode};
use crate::log::committer::{BATCH_BYTES_MAX, Committer};
use crate::log::writer::Files;
use crate::log::{Ack, Batch, Change, LOG_VERSION, Origin, SyncPolicy};
use crate::scan::Filter;
use crate::schema::{Column, Kind, Schema};
use crate::storage::Storage;
use crate::table::{Cells, Table};

pub use changes::Changes;
pub use compact::Compaction;
pub use flush::Flush;
pub use follow::Follower;
pub(crate) use manifest::Manifest;
pub use manifest::{FORMAT_VERSION, TimeUnit};
pub use recover::Recovery;
pub use retain::{Backup, Dropped};
pub use salvage::{LostBatches, LostFile, MissingSequences, Salvage, salvage};

use state::State;

/// Most of a decimal that eighteen digits hold.
const DECIMAL_MAX: u64 = 999_999_999_999_999_999;

/// How a table is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// When batches are acknowledged.
    pub sync: SyncPolicy,
    /// Bytes of a log file after which the next begins. A flush removes whole files only.
    pub log_file_bytes: u64,
    /// How columns are written to files, by name; others as [`Codec::of`] says.
    pub codecs: Vec<(String, Codec)>,
    /// Bytes of memory that a flush keeps for the rows to come; the rest of what it frees goes to the kernel. Rows that
    /// need more fault it in again, in the middle of ingest.
    pub spare_bytes: usize,
}

/// Of [`Options::spare_bytes`]: a flush of what a few seconds bring should cost no faults.
const SPARE_BYTES: usize = 64 << 20;

impl Default for Options {
    fn default() -> Self {
        let (sync, codecs) = (SyncPolicy::default(), Vec::new());
        Self { sync, log_file_bytes: 64 << 20, codecs, spare_bytes: SPARE_BYTES }
    }
}

/// A durable table. Many threads may append to it and read it.
#[derive(Debug)]
pub struct Durable<'a> {
    storage: Arc<dyn Storage>,
    schema: Arc<Schema>,
    codecs: Vec<Codec>,
    spare_bytes: usize,
    committer: Committer,
    log_files: Files,
    /// Held while files are added or replaced: a flush and a compaction wait for each other.
    upkeep: Mutex<()>,
    state: RwLock<State<'a>>,
    /// Rows from before this time are refused.
    kept_from: AtomicI64,
}

/// A batch that was handed in.
#[derive(Debug)]
#[must_use = "nothing is acknowledged before `wait` says so"]
pub struct Ticket<'d, 'a> {
    durable: &'d Durable<'a>,
    answer: Receiver<Result<Ack, TableError>>,
}

impl Ticket<'_, '_> {
    /// Waits until the batch is in the log as the policy says.
    ///
    /// # Errors
    /// [`TableError::LogWrite`]: nothing of it was taken in, and it may be sent again. [`TableError::SequenceGap`]: the
    /// one before it must be sent first. [`TableError::LogLost`]: it may or may not be there when the table is opened
    /// anew; sent again with its number, it is taken in once.
    pub fn wait(self) -> Result<Ack, TableError> {
        let ack = self.answer.recv().expect("the committer answers before it ends")?;
        // Who reads brings the table up to the log; so does this, where nobody reads. That memory is short is told to
        // who reads, or hands in the next: this batch is safe.
        if let Ok(mut state) = self.durable.state.try_write() {
            let _ = self.durable.apply_to(&mut state);
        }
        Ok(ack)
    }
}

/// The table at one moment: rows in memory, and files of the others.
#[derive(Debug)]
pub struct Reading<'d, 'a> {
    storage: &'d dyn Storage,
    schema: &'d Arc<Schema>,
    state: RwLockReadGuard<'d, State<'a>>,
}

impl<'a> Deref for Reading<'_, 'a> {
    type Target = Table<'a>;

    fn deref(&self) -> &Table<'a> {
        &self.state.table
    }
}

impl Reading<'_, '_> {
    /// All files, in the order in which they were written.
    #[must_use]
    pub fn files(&self) -> &[TableFile] {
        &self.state.manifest.files
    }

    /// The files that may hold rows of a filter: what the zones of the manifest do not rule out.
    pub fn files_of(&self, filter: &Filter) -> impl Iterator<Item = &TableFile> {
        let (time, symbol) = (self.schema.time(), self.schema.symbol());
        let filter = *filter;
        self.files().iter().filter(move |file| file.may_hold(time, symbol, &filter))
    }

    /// Reads a file back, checked against the manifest, without the rows of it that were deleted or replaced since.
    ///
    /// # Errors
    /// [`TableError::Io`] and [`TableError::Damaged`] with the file.
    pub fn read_file(&self, file: &TableFile) -> Result<FileRows, TableError> {
        let dictionaries = self.state.table.dictionaries();
        let mut rows = crate::files::read(self.storage, file, self.schema, dictionaries)?;
        rows.hide(&self.state.gone_of(self.schema, file, &rows));
        Ok(rows)
    }

    /// Number of the last batch of a producer that is in the table.
    #[must_use]
    pub fn sequence(&self, producer: &str) -> Option<u64> {
        self.state.producers.get(producer).copied()
    }
}

impl<'a> Durable<'a> {
    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What its times count, as it was said when the table was made.
    #[must_use]
    pub fn time_unit(&self) -> Option<TimeUnit> {
        self.read_state().manifest.time_unit
    }

    /// The earliest time that rows may have: what [`drop_before`](Self::drop_before) left, or the least there is.
    #[must_use]
    pub fn kept_from(&self) -> i64 {
        self.kept_from.load(Ordering::Relaxed)
    }

    /// Hands in a batch and waits for its acknowledgement.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit) and [`Ticket::wait`].
    pub fn append(&self, origin: Option<Origin<'_>>, batch: &[Cells<'_>]) -> Result<Ack, TableError> {
        self.submit(origin, batch)?.wait()
    }

    /// Hands in keys of rows to delete and waits for the acknowledgement.
    ///
    /// # Errors
    /// Those of [`submit_delete`](Self::submit_delete) and [`Ticket::wait`].
    pub fn delete(&self, origin: Option<Origin<'_>>, keys: &[Cells<'_>]) -> Result<Ack, TableError> {
        self.submit_delete(origin, keys)?.wait()
    }

    /// Hands in keys, one column a column of the key in the order in which it was declared: rows that have one of them,
    /// and came before, are taken out, wherever they lie. It is a batch like any other, with a number of its producer.
    ///
    /// # Errors
    /// [`TableError::NoKey`] where the table has none; those of [`submit`](Self::submit).
    pub fn submit_delete(
        &self,
        origin: Option<Origin<'_>>,
        keys: &[Cells<'_>],
    ) -> Result<Ticket<'_, 'a>, TableError> {
        self.schema.check_keys(keys)?;
        self.hand_in(Change::Delete, origin, keys)
    }

    /// Hands in a batch, one column a column of the table. In a table with a key its rows replace those that have their
    /// keys, so that sending a batch again changes nothing, as long as none of its keys came in between. With an origin
    /// it may be sent as often as one likes and is taken in once.
    ///
    /// # Errors
    /// When the batch does not fit the table, holds what the table cannot keep ([`TableError::Digits`],
    /// [`TableError::TooOld`]) or is too long; when the origin has no name or the number 0; and
    /// [`TableError::Memory`] when the table has no room for what is in the log already. Nothing was handed in then.
    pub fn submit(
        &self,
        origin: Option<Origin<'_>>,
        batch: &[Cells<'_>],
    ) -> Result<Ticket<'_, 'a>, TableError> {
        self.schema.check(batch)?;
        self.hand_in(Change::Rows, origin, batch)
    }

    /// Hands in a batch that fits the table.
    fn hand_in(
        &self,
        change: Change,
        origin: Option<Origin<'_>>,
        batch: &[Cells<'_>],
    ) -> Result<Ticket<'_, 'a>, TableError> {
        let columns = self.schema.columns();
        let columns: Vec<&Column> = match change {
            Change::Rows => columns.iter().collect(),
            Change::Delete => self.schema.key().iter().map(|&column| &columns[column]).collect(),
        };
        self.check(origin, &columns, batch)?;
        if let Some(lost) = self.committer.lost() {
            return Err(lost);
        }
        if self.committer.is_behind() {
            self.apply()?;
        } else if let Ok(mut state) = self.state.try_write() {
            self.apply_to(&mut state)?;
        }
        let bytes = encode(change, origin, batch)?;
        if bytes.len() > BATCH_BYTES_MAX {
            return Err(TableError::TooLong { bytes: bytes.len(), limit: BATCH_BYTES_MAX });
        }
        let origin = origin.map(|origin| (origin.producer.to_owned(), origin.sequence));
        Ok(Ticket { durable: self, answer: self.committer.submit(bytes, origin) })
    }

    /// The table with every batch that was acknowledged so far. Batches wait for their place in it while it is read;
    /// they are acknowledged all the same, until 64 MiB of them wait. So a thread should let go of it before it hands
    /// in more.
    ///
    /// # Errors
    /// [`TableError::Memory`] when there is no room for an acknowledged batch: flush, then read.
    pub fn read(&self) -> Result<Reading<'_, 'a>, TableError> {
        self.apply()?;
        let state = self.read_state();
        Ok(Reading { storage: self.storage.as_ref(), schema: &self.schema, state })
    }

    /// Returns when all that was acknowledged is on the disk, whatever the policy.
    ///
    /// # Errors
    /// [`TableError::LogLost`] when that cannot be.
    pub fn sync(&self) -> Result<(), TableError> {
        self.committer.sync()
    }

    /// Brings the table up to the log.
    fn apply(&self) -> Result<(), TableError> {
        self.apply_to(&mut self.write_state())
    }

    fn apply_to(&self, state: &mut State<'_>) -> Result<(), TableError> {
        while let Some(ready) = self.committer.peek_ready() {
            let batch =
                Batch::parse(&ready.bytes, LOG_VERSION).expect("the bytes were written by this process");
            let taken = state.take_in(ready.number, &batch);
            self.committer.settle_ready(ready, taken.is_ok());
            taken?;
        }
        Ok(())
    }

    fn keep_up(&self) -> MutexGuard<'_, ()> {
        self.upkeep.lock().expect("nothing panics while files are half written")
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State<'a>> {
        self.state.read().expect("nothing panics while a table is half changed")
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State<'a>> {
        self.state.write().expect("nothing panics while a table is half changed")
    }

    /// Refuses what could not be taken in once it is in the log.
    fn check(
        &self,
        origin: Option<Origin<'_>>,
        columns: &[&Column],
        batch: &[Cells<'_>],
    ) -> Result<(), TableError> {
        if let Some(Origin { producer, sequence }) = origin {
            let reason = match (producer.len(), sequence) {
                (0, _) => Some("has no name"),
                (bytes, _) if bytes > PRODUCER_BYTES_MAX => Some("has a name of more than 255 bytes"),
                (_, 0) => Some("numbers it 0; the first is 1"),
                _ => None,
            };
            if let Some(reason) = reason {
                return Err(TableError::Producer { reason });
            }
        }
        let time = &self.schema.columns()[self.schema.time()];
        let kept_from = self.kept_from.load(Ordering::Relaxed);
        for (column, cells) in columns.iter().zip(batch) {
            if let (Kind::Decimal { .. }, Cells::Decimals(cells)) = (column.kind, cells)
                && let Some(&value) = cells.iter().find(|cell| cell.unsigned_abs() > DECIMAL_MAX)
            {
                return Err(TableError::Digits { column: column.name.clone(), value });
            }
            if let (true, Cells::Times(times)) = (column.name == time.name, cells)
                && let Some(&time) = times.iter().min()
                && time < kept_from
            {
                return Err(TableError::TooOld { time, kept_from });
            }
        }
        // Before a copy of it is made.
        let bytes = batch.iter().map(|cells| cells.rows() * 8).sum();
        if bytes > BATCH_BYTES_MAX {
            return Err(TableError::TooLong { bytes, limit: BATCH_BYTES_MAX });
        }
        Ok(())
    }
}
