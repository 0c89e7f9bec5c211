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
//! - **Readers see whole batches**, and every batch that was acknowledged before they came.

mod flush;
mod manifest;
mod recover;
mod retain;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::TableError;
use crate::files::{Codec, FileRows, TableFile};
use crate::log::batch::{PRODUCER_BYTES_MAX, encode};
use crate::log::committer::{BATCH_BYTES_MAX, Committer};
use crate::log::writer::Files;
use crate::log::{Ack, Batch, Origin, SyncPolicy};
use crate::scan::Filter;
use crate::schema::{Kind, Place, Schema};
use crate::storage::Storage;
use crate::table::{Cells, Table};

pub use flush::Flush;
pub(crate) use manifest::Manifest;
pub use manifest::{FORMAT_VERSION, TimeUnit};
pub use recover::Recovery;
pub use retain::{Backup, Dropped};

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
}

impl Default for Options {
    fn default() -> Self {
        Self { sync: SyncPolicy::default(), log_file_bytes: 64 << 20, codecs: Vec::new() }
    }
}

/// A durable table. Many threads may append to it and read it.
#[derive(Debug)]
pub struct Durable<'a> {
    storage: Arc<dyn Storage>,
    schema: Arc<Schema>,
    codecs: Vec<Codec>,
    committer: Committer,
    log_files: Files,
    state: RwLock<State<'a>>,
    /// Rows from before this time are refused.
    kept_from: AtomicI64,
}

/// What the log and the manifest come to.
#[derive(Debug)]
struct State<'a> {
    table: Table<'a>,
    manifest: Manifest,
    /// Number of the last batch that the table took in.
    applied: u64,
    /// Number of the last batch of each producer that the table took in.
    producers: BTreeMap<String, u64>,
    /// The first batch that brought rows to each partition in memory.
    unflushed: BTreeMap<Place, u64>,
}

impl State<'_> {
    /// Takes in a batch of the log.
    fn take_in(&mut self, number: u64, batch: &Batch) -> Result<(), TableError> {
        let Self { table, manifest, .. } = self;
        let is_wanted = |place| manifest.is_wanted(place, number);
        let places = batch.with_cells(|cells| table.append_where(cells, is_wanted))?;
        for place in places {
            self.unflushed.entry(place).or_insert(number);
        }
        if let Some((producer, sequence)) = &batch.origin {
            let last = self.producers.entry(producer.clone()).or_default();
            *last = (*last).max(*sequence);
        }
        self.applied = self.applied.max(number);
        Ok(())
    }
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
    durable: &'d Durable<'a>,
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
        let (time, symbol) = (self.durable.schema.time(), self.durable.schema.symbol());
        let filter = *filter;
        self.files().iter().filter(move |file| file.may_hold(time, symbol, &filter))
    }

    /// Reads a file back, checked against the manifest.
    ///
    /// # Errors
    /// [`TableError::Io`] and [`TableError::Damaged`] with the file.
    pub fn read_file(&self, file: &TableFile) -> Result<FileRows, TableError> {
        let Durable { storage, schema, .. } = self.durable;
        crate::files::read(storage.as_ref(), file, schema, self.state.table.dictionaries())
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

    /// Hands in a batch and waits for its acknowledgement.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit) and [`Ticket::wait`].
    pub fn append(&self, origin: Option<Origin<'_>>, batch: &[Cells<'_>]) -> Result<Ack, TableError> {
        self.submit(origin, batch)?.wait()
    }

    /// Hands in a batch, one column a column of the table. With an origin it may be sent as often as one likes and is
    /// taken in once.
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
        self.check(origin, batch)?;
        if let Some(lost) = self.committer.lost() {
            return Err(lost);
        }
        if self.committer.is_behind() {
            self.apply()?;
        } else if let Ok(mut state) = self.state.try_write() {
            self.apply_to(&mut state)?;
        }
        let bytes = encode(origin, batch)?;
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
        let state = self.state.read().expect("nothing panics while a table is half changed");
        Ok(Reading { durable: self, state })
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
            let batch = Batch::parse(&ready.bytes).expect("the bytes were written by this process");
            let taken = state.take_in(ready.number, &batch);
            self.committer.settle_ready(ready, taken.is_ok());
            taken?;
        }
        Ok(())
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State<'a>> {
        self.state.write().expect("nothing panics while a table is half changed")
    }

    /// Refuses what could not be taken in once it is in the log.
    fn check(&self, origin: Option<Origin<'_>>, batch: &[Cells<'_>]) -> Result<(), TableError> {
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
        self.schema.check(batch)?;
        for (column, cells) in self.schema.columns().iter().zip(batch) {
            if let (Kind::Decimal { .. }, Cells::Decimals(cells)) = (column.kind, cells)
                && let Some(&value) = cells.iter().find(|cell| cell.unsigned_abs() > DECIMAL_MAX)
            {
                return Err(TableError::Digits { column: column.name.clone(), value });
            }
        }
        let kept_from = self.kept_from.load(Ordering::Relaxed);
        if let Cells::Times(times) = batch[self.schema.time()]
            && let Some(&time) = times.iter().min()
            && time < kept_from
        {
            return Err(TableError::TooOld { time, kept_from });
        }
        // Before a copy of it is made.
        let bytes = batch.iter().map(|cells| cells.rows() * 8).sum();
        if bytes > BATCH_BYTES_MAX {
            return Err(TableError::TooLong { bytes, limit: BATCH_BYTES_MAX });
        }
        Ok(())
    }
}
