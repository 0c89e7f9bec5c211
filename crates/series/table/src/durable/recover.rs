//! Making a table, and opening it again: manifest, files, log.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, RwLock};

use planish_arena::Arena;

use crate::dictionary::Dictionary;
use crate::durable::changes::Watches;
use crate::durable::manifest::MANIFEST;
use crate::durable::{Durable, Manifest, Options, State, TimeUnit};
use crate::error::TableError;
use crate::files::{Codec, TableFile};
use crate::log::Tail;
use crate::log::committer::Committer;
use crate::log::reader::{self, End};
use crate::log::writer::Writer;
use crate::schema::Schema;
use crate::storage::Storage;
use crate::table::Table;

/// What was found when a table was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Batches of the log that were read.
    pub batches: u64,
    /// Rows that are in memory now.
    pub rows: usize,
    /// Files of sealed partitions.
    pub files: usize,
    /// Rows in those that are not gone.
    pub file_rows: u64,
    /// Bytes at the end of the log that were cut off: what was on its way when the machine stopped.
    pub tail: Option<Tail>,
    /// Batches that a salvage could not keep; told until the log is cut behind them.
    pub lost: u64,
    /// Files that no manifest names, which were removed: those of a flush that was killed.
    pub removed: Vec<String>,
}

impl<'a> Durable<'a> {
    /// Makes a table in a folder that has none.
    ///
    /// # Errors
    /// [`TableError::Exists`] when there is one; [`TableError::Schema`] when a codec does not fit its column;
    /// [`TableError::Io`] for what the kernel refuses.
    pub fn create(
        arena: &'a Arena,
        storage: Arc<dyn Storage>,
        schema: Schema,
        time_unit: Option<TimeUnit>,
        options: &Options,
    ) -> Result<Self, TableError> {
        if Manifest::read(storage.as_ref())?.is_some() {
            return Err(TableError::Exists { path: storage.path().join(MANIFEST) });
        }
        codecs(&schema, options)?;
        let table = RandomState::new().hash_one(std::process::id());
        Manifest::new(table, &schema, time_unit).write(storage.as_ref())?;
        Ok(Self::open(arena, storage, options)?.0)
    }

    /// Opens a table: what was acknowledged is there again.
    ///
    /// # Errors
    /// [`TableError::Damaged`] with file and offset when something is not as it was written; [`TableError::Newer`] when
    /// a later planish wrote it; [`TableError::LogMissing`]; [`TableError::Memory`] when the log has more rows than the
    /// arena; [`TableError::Io`]. Nothing was changed then, but for a torn tail that may have been cut off.
    pub fn open(
        arena: &'a Arena,
        storage: Arc<dyn Storage>,
        options: &Options,
    ) -> Result<(Self, Recovery), TableError> {
        let path = storage.path().join(MANIFEST);
        let manifest = Manifest::read_there(storage.as_ref())?;
        let mut recovery = Recovery {
            files: manifest.files.len(),
            file_rows: manifest.files.iter().map(TableFile::live_rows).sum(),
            ..Recovery::default()
        };
        let mut state = State::of(arena, manifest, &path)?;
        let schema = state.table.schema().clone();
        let codecs = codecs(&schema, options)?;
        let end = state.replay(storage.as_ref(), &mut recovery)?;
        recovery.removed = state.manifest.remove_others(storage.as_ref())?;
        let kept_from = state
            .manifest
            .first_span
            .map_or(i64::MIN, |first| first.saturating_mul(schema.partitioning().span));
        let log_files = Arc::new(Mutex::new(end.files));
        let table = state.manifest.table;
        let writer = Writer::new(
            Arc::clone(&storage),
            table,
            end.next,
            Arc::clone(&log_files),
            options.log_file_bytes,
        );
        let producers = state.producers.clone().into_iter().collect();
        let committer = Committer::start(writer, options.sync, producers)
            .map_err(|source| TableError::Io { action: "start the thread of", path, source })?;
        let durable = Self {
            schema: Arc::new(schema),
            codecs,
            spare_bytes: options.spare_bytes,
            committer,
            log_files,
            upkeep: Mutex::new(()),
            state: RwLock::new(state),
            kept_from: AtomicI64::new(kept_from),
            storage,
        };
        Ok((durable, recovery))
    }
}

impl<'a> State<'a> {
    /// What a manifest says, without the log.
    pub(super) fn of(arena: &'a Arena, manifest: Manifest, path: &Path) -> Result<Self, TableError> {
        let damaged = |reason: String| TableError::Damaged { path: path.to_owned(), offset: 0, reason };
        let schema = manifest.schema().map_err(|error| damaged(error.to_string()))?;
        let dictionaries = manifest.dictionaries.iter().map(|texts| Dictionary::of(texts));
        let dictionaries = dictionaries.collect::<Option<Vec<_>>>();
        let dictionaries = dictionaries.ok_or_else(|| damaged("a symbol is there twice".to_owned()))?;
        Ok(Self {
            table: Table::with_dictionaries(arena, schema, dictionaries),
            applied: manifest.applied,
            producers: manifest.producers.clone(),
            unflushed: BTreeMap::new(),
            deleted: BTreeMap::new(),
            watches: Watches::default(),
            manifest,
        })
    }

    /// Takes in what the log holds and files do not.
    fn replay(&mut self, storage: &dyn Storage, recovery: &mut Recovery) -> Result<End, TableError> {
        let (table, from, known) = (self.manifest.table, self.manifest.replay_from, self.applied);
        let end = reader::read(storage, table, from, |number, batch| {
            recovery.batches += 1;
            self.take_in(number, &batch)
        })?;
        if end.next <= known {
            let path = storage.path().join(MANIFEST);
            let reason = format!("it knows {known} batches, the log ends before batch {}", end.next);
            return Err(TableError::Damaged { path, offset: 0, reason });
        }
        // Those that a salvage could not keep have no rows, and their numbers.
        self.applied = self.applied.max(end.next - 1);
        recovery.rows = self.table.rows();
        recovery.lost = end.lost;
        recovery.tail = end.tail.clone();
        Ok(end)
    }
}

impl Manifest {
    /// Removes what a killed flush left, after a look whether all of its own files are there.
    fn remove_others(&self, storage: &dyn Storage) -> Result<Vec<String>, TableError> {
        let io = |action, name: &str| {
            let path = storage.path().join(name);
            move |source| TableError::Io { action, path, source }
        };
        let names = storage.list().map_err(io("list", ""))?;
        let here: HashSet<&str> = names.iter().map(String::as_str).collect();
        if let Some(file) = self.files.iter().find(|file| !here.contains(file.name.as_str())) {
            let path = storage.path().join(&file.name);
            return Err(TableError::Damaged { path, offset: 0, reason: "it is gone".to_owned() });
        }
        let own: HashSet<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let is_left = |name: &String| {
            name.ends_with(".new") || (name.ends_with(".parquet") && !own.contains(name.as_str()))
        };
        let left: Vec<String> = names.iter().filter(|name| is_left(name)).cloned().collect();
        for name in &left {
            storage.remove(name).map_err(io("remove", name))?;
        }
        Ok(left)
    }
}

/// The codec of each column.
fn codecs(schema: &Schema, options: &Options) -> Result<Vec<Codec>, TableError> {
    let mut codecs: Vec<Codec> = schema.columns().iter().map(|column| Codec::of(column.kind)).collect();
    for (name, codec) in &options.codecs {
        let column = schema.find(name)?;
        if !codec.fits(schema.columns()[column].kind) {
            let reason = "cannot be written with this encoding";
            return Err(TableError::Schema { column: name.clone(), reason });
        }
        codecs[column] = *codec;
    }
    Ok(codecs)
}
