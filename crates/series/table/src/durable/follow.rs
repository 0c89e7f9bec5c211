//! A table of another process, read and never written.
//!
//! ```text
//!   the process that has the table ── log frames, files, manifest ──> folder
//!                                                                       │ read
//!   Follower ── frames behind the last one that it has read ────────────┤ log
//!            └─ anew from the start, where the manifest is another one ─┘ manifest, files, log
//! ```
//!
//! Invariants:
//!
//! - **Nothing is written**, no lock is taken, and who writes knows nothing of who follows.
//! - **What is read is what a recovery would find**: the same manifest, the same batches in the same order, by the same
//!   code. Of the log a frame counts when all of it is there; what is half written is read the next time.
//! - **Every reading is the table after some batch**, and later readings are never of an earlier one.
//!
//! A frame is seen when it is written, which may be before it is synced: a follower may see a batch a moment before its
//! writer hears that it is there. Both are on one machine, which keeps or loses both.

use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use planish_arena::Arena;

use crate::durable::manifest::MANIFEST;
use crate::durable::{Manifest, Reading, State, TimeUnit};
use crate::error::TableError;
use crate::log::tail::Tail;
use crate::schema::Schema;
use crate::storage::{Stamp, Storage};

/// How often a look begins anew, where files go in the middle of it: each time a flush has come in between.
const ATTEMPTS: usize = 20;

/// A table that another process writes. Many threads may read it.
#[derive(Debug)]
pub struct Follower<'a> {
    arena: &'a Arena,
    storage: Arc<dyn Storage>,
    schema: Arc<Schema>,
    time_unit: Option<TimeUnit>,
    /// How far it has come; held while it goes on.
    mark: Mutex<Mark>,
    state: RwLock<State<'a>>,
}

/// How far a follower has come.
#[derive(Debug)]
struct Mark {
    manifest: Stamp,
    log: Tail,
}

impl<'a> Follower<'a> {
    /// Opens a table that is there.
    ///
    /// # Errors
    /// As [`Durable::open`](crate::Durable::open), but that nothing is cut off or removed.
    pub fn open(arena: &'a Arena, storage: Arc<dyn Storage>) -> Result<Self, TableError> {
        let (mark, state) = build(arena, storage.as_ref())?;
        let schema = Arc::new(state.table.schema().clone());
        let time_unit = state.manifest.time_unit;
        Ok(Self { arena, storage, schema, time_unit, mark: Mutex::new(mark), state: RwLock::new(state) })
    }

    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What its times count, as it was said when the table was made.
    #[must_use]
    pub fn time_unit(&self) -> Option<TimeUnit> {
        self.time_unit
    }

    /// Goes on to where the writer is now. Readers wait while batches are taken in.
    ///
    /// # Errors
    /// [`TableError::Memory`], [`TableError::Damaged`], [`TableError::Io`]. The table is as it was before, or after
    /// some of the batches; the next call goes on from there.
    pub fn refresh(&self) -> Result<(), TableError> {
        let mut mark = self.lock();
        if stamp(self.storage.as_ref())? == mark.manifest {
            let mut state = None;
            let read = mark.log.read_on(self.storage.as_ref(), |number, batch| {
                let state =
                    state.get_or_insert_with(|| self.state.write().expect("nothing panics in a batch"));
                state.take_in(number, batch)
            });
            match read {
                // It went because all of it is in files: the manifest says so.
                Err(error) if error.is_gone() => {}
                read => return read,
            }
        }
        let (new_mark, new_state) = build(self.arena, self.storage.as_ref())?;
        // What was there before goes when nobody waits for it.
        let before =
            std::mem::replace(&mut *self.state.write().expect("nothing panics in a batch"), new_state);
        *mark = new_mark;
        drop(mark);
        drop(before);
        Ok(())
    }

    /// The table as it is now.
    ///
    /// A flush of the writer may take a file away that the reading names. [`Reading::read_file`] then says that it is
    /// [gone](TableError::is_gone); a new reading has what came in its place.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub fn read(&self) -> Result<Reading<'_, 'a>, TableError> {
        self.refresh()?;
        let state = self.state.read().expect("nothing panics in a batch");
        Ok(Reading { storage: self.storage.as_ref(), schema: &self.schema, state })
    }

    fn lock(&self) -> MutexGuard<'_, Mark> {
        self.mark.lock().expect("nothing panics while a follower goes on")
    }
}

fn stamp(storage: &dyn Storage) -> Result<Stamp, TableError> {
    let path = storage.path().join(MANIFEST);
    storage.stamp(MANIFEST).map_err(|source| TableError::Io { action: "read", path, source })
}

/// Reads a table from its manifest on. Where the writer flushes meanwhile, and takes away what was about to be read,
/// the manifest is another one: then it begins anew.
fn build<'a>(arena: &'a Arena, storage: &dyn Storage) -> Result<(Mark, State<'a>), TableError> {
    for _ in 0..ATTEMPTS {
        let manifest = stamp(storage)?;
        let built = build_once(arena, storage);
        // Files that are named by a manifest go when there is another one.
        if stamp(storage)? == manifest {
            return built.map(|(log, state)| (Mark { manifest, log }, state));
        }
    }
    let path = storage.path().join(MANIFEST);
    Err(TableError::Io { action: "keep up with", path, source: std::io::ErrorKind::ResourceBusy.into() })
}

fn build_once<'a>(arena: &'a Arena, storage: &dyn Storage) -> Result<(Tail, State<'a>), TableError> {
    let manifest = Manifest::read_there(storage)?;
    let mut log = Tail::find(storage, manifest.table, manifest.replay_from)?;
    let mut state = State::of(arena, manifest, &storage.path().join(MANIFEST))?;
    log.read_on(storage, |number, batch| state.take_in(number, batch))?;
    Ok((log, state))
}
