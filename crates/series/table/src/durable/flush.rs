//! Flush: sealed partitions from memory to files, in an order that a kill cannot hurt.
//!
//! ```text
//!   1  sync the log            what files will hold is then in the log too, whatever the policy
//!   2  write the files         each under a name for the time being, synced, renamed; then the folder. Rows of older
//!                              files that memory replaces or deletes are found, to be marked
//!   3  replace the manifest    after this point the files count, and a replay leaves their rows out
//!   4  remove old files        those that new ones stand for, or of which every row is gone
//!   5  let go of memory        segments go to the rows to come, and to the kernel
//!   6  remove log files        those of which every row is in files
//! ```
//!
//! A kill before 3 leaves files that no manifest names, which the next open removes; so does one after it. It leaves
//! log files too, of which nothing is taken in any more.

use std::collections::BTreeSet;

use crate::dictionary::Dictionary;
use crate::durable::{Durable, Manifest, State};
use crate::error::TableError;
use crate::files::{self, Block, Source, TableFile};
use crate::key::merge;
use crate::schema::Place;
use crate::segment::Loose;

/// Marks of one file beyond which its partition is written anew: each costs the manifest some ten bytes.
const RUNS_MAX: usize = 1024;
/// A file of which more than one row in this many is gone is written anew.
const GONE_SHARE: u64 = 4;

/// What a flush did.
#[derive(Debug, Clone, PartialEq)]
pub struct Flush {
    /// The new files, with the ratio of each column.
    pub files: Vec<TableFile>,
    /// Rows in them.
    pub rows: u64,
    /// Rows of older files that are gone since: deleted, or replaced.
    pub gone_rows: u64,
    /// Older files that were removed: written anew with the rows of memory, since too much of them was gone, or without
    /// a row that was not.
    pub replaced: usize,
    /// Log files that were removed.
    pub log_files: usize,
    /// Bytes of memory that the kernel got back.
    pub released_bytes: usize,
}

/// Files on their way into a manifest.
pub(super) struct Writing<'d, 'a> {
    durable: &'d Durable<'a>,
    pub(super) manifest: Manifest,
    pub(super) files: Vec<TableFile>,
    gone_rows: u64,
    /// Files that the new ones stand for.
    replaced: Vec<String>,
}

impl Durable<'_> {
    /// Writes what memory has of partitions that end at or before `before` to files, and lets go of it, but for
    /// [`Options::spare_bytes`](crate::Options::spare_bytes). Rows that come too late for the file of their partition
    /// go to another file of it.
    ///
    /// In a table with a key, rows of older files that were deleted or replaced are marked in the manifest. Where more
    /// than a quarter of a file is gone, or in more than a thousand places, its partition is written anew.
    ///
    /// Appends are acknowledged meanwhile, and readers wait.
    ///
    /// # Errors
    /// [`TableError::LogLost`] when the log cannot be synced, [`TableError::Io`] when a file cannot be written: a full
    /// disk, above all; [`TableError::Damaged`] when a file whose rows are to be marked is. The table is then as it
    /// was.
    pub fn flush(&self, before: i64) -> Result<Flush, TableError> {
        let _upkeep = self.keep_up();
        let mut state = self.write_state();
        // Where memory is short this may stop half way; that is what the flush is for.
        let _ = self.apply_to(&mut state);
        self.committer.sync()?;
        let end = before.div_euclid(self.schema.partitioning().span);
        let places: BTreeSet<Place> = state.table.places().chain(state.deleted.keys().copied()).collect();
        let places: Vec<Place> = places.into_iter().filter(|(_, span)| *span < end).collect();
        let mut writing = Writing::new(self, state.manifest.clone());
        if !places.is_empty() {
            if let Err(error) = writing.flush(&state, &places) {
                writing.undo();
                return Err(error);
            }
            state.settle(&mut writing.manifest, |place| !places.contains(place));
            writing.finish(&mut state)?;
        }
        for place in &places {
            state.table.remove(*place);
            state.unflushed.remove(place);
            state.deleted.remove(place);
        }
        let released_bytes = state.table.release(self.spare_bytes);
        let log_files = if places.is_empty() { 0 } else { self.trim_log(state.manifest.replay_from) };
        let _ = self.apply_to(&mut state);
        let Writing { files, gone_rows, replaced, .. } = writing;
        let rows = files.iter().map(|file| file.rows).sum();
        Ok(Flush { files, rows, gone_rows, replaced: replaced.len(), log_files, released_bytes })
    }

    pub(super) fn sync_folder(&self) -> Result<(), TableError> {
        let path = self.storage.path().to_owned();
        self.storage.sync_folder().map_err(|source| TableError::Io { action: "sync", path, source })
    }

    /// Removes the log files that end before a batch; returns how many.
    pub(super) fn trim_log(&self, from: u64) -> usize {
        let mut files = self.log_files.lock().expect("nothing panics while the list is changed");
        // The last one is written to. A file that cannot be removed is told by nobody: the next flush, or open, tries
        // again.
        let unneeded = files.windows(2).take_while(|pair| pair[1].0 <= from).count();
        let gone = files[..unneeded].iter().take_while(|(_, name)| self.storage.remove(name).is_ok()).count();
        files.drain(..gone);
        gone
    }
}

impl<'d, 'a> Writing<'d, 'a> {
    pub(super) fn new(durable: &'d Durable<'a>, manifest: Manifest) -> Self {
        Self { durable, manifest, files: Vec::new(), gone_rows: 0, replaced: Vec::new() }
    }

    /// Writes what memory has of some partitions; the folder is synced.
    fn flush(&mut self, state: &State<'_>, places: &[Place]) -> Result<(), TableError> {
        for &place in places {
            if !self.mark(state, place)? {
                let blocks = Block::of_segments(state.table.segments(place));
                self.write(state.table.dictionaries(), place, blocks)?;
            }
            self.manifest.note_flushed(place, state.applied);
        }
        self.durable.sync_folder()
    }

    /// Marks what memory replaces or deletes in the files of a partition. Where that is too much it writes the
    /// partition anew, with what memory has, and says so.
    fn mark(&mut self, state: &State<'_>, place: Place) -> Result<bool, TableError> {
        let Durable { storage, schema, .. } = self.durable;
        let older: Vec<TableFile> = self.manifest.files_of(place).cloned().collect();
        let mut marked = older.clone();
        for file in &mut marked {
            if state.covers(schema, file) {
                let rows = files::read(storage.as_ref(), file, schema, state.table.dictionaries())?;
                file.gone = state.gone_of(schema, file, &rows);
            }
        }
        let gone = |files: &[TableFile]| files.iter().map(|file| file.gone.rows()).sum::<u64>();
        self.gone_rows += gone(&marked) - gone(&older);
        let is_too_much = |file: &TableFile| {
            let (rows, is_all) = (file.gone.rows(), file.live_rows() == 0);
            !is_all && (file.gone.len() > RUNS_MAX || rows.saturating_mul(GONE_SHARE) > file.rows)
        };
        if marked.iter().any(is_too_much) {
            let rows = self.merge(&marked, state.table.dictionaries(), Some(state.table.rows_of(place)))?;
            self.replace(&marked);
            self.write(state.table.dictionaries(), place, Block::of_rows(&rows))?;
            return Ok(true);
        }
        for file in &mut self.manifest.files {
            if let Some(marked) = marked.iter_mut().find(|marked| marked.name == file.name) {
                std::mem::swap(file, marked);
            }
        }
        let empty: Vec<TableFile> =
            self.manifest.files_of(place).filter(|file| file.live_rows() == 0).cloned().collect();
        self.replace(&empty);
        Ok(false)
    }

    /// The rows of some files of a partition and of memory as one, in order.
    pub(super) fn merge(
        &self,
        older: &[TableFile],
        dictionaries: &[Dictionary],
        memory: Option<Vec<Loose>>,
    ) -> Result<Vec<Loose>, TableError> {
        let Durable { storage, schema, .. } = self.durable;
        let mut merged: Option<Vec<Loose>> = None;
        let mut add = |rows: Vec<Loose>| {
            merged = Some(match merged.take() {
                Some(merged) => merge(&merged, &rows, schema.order(), schema.has_key()),
                None => rows,
            });
        };
        for file in older {
            let mut rows = files::read(storage.as_ref(), file, schema, dictionaries)?;
            rows.hide(&file.gone);
            add(rows.into_columns());
        }
        memory.into_iter().for_each(&mut add);
        Ok(merged.unwrap_or_default())
    }

    /// Takes files out of the manifest.
    pub(super) fn replace(&mut self, older: &[TableFile]) {
        let is_older = |file: &TableFile| older.iter().any(|older| older.name == file.name);
        self.manifest.files.retain(|file| !is_older(file));
        self.replaced.extend(older.iter().map(|file| file.name.clone()));
    }

    /// Writes a file of a partition, if there are rows for it.
    pub(super) fn write(
        &mut self,
        dictionaries: &[Dictionary],
        place: Place,
        blocks: Vec<Block<'_>>,
    ) -> Result<(), TableError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let name = Manifest::file_name(self.manifest.next_file, place);
        let Durable { schema, codecs, storage, .. } = self.durable;
        let time_unit = self.manifest.time_unit;
        let source = Source { schema, place, blocks, dictionaries, time_unit, codecs };
        let file = files::write(storage.as_ref(), &name, &source)?;
        self.files.push(file.clone());
        self.manifest.files.push(file);
        self.manifest.next_file += 1;
        Ok(())
    }

    /// Puts the manifest in its place; then the files that it no longer names are removed.
    pub(super) fn finish(&mut self, state: &mut State<'_>) -> Result<(), TableError> {
        let written = self.manifest.write(self.durable.storage.as_ref());
        // After an error nobody knows which of the two is there: names of the new one are not used again.
        state.manifest.next_file = self.manifest.next_file;
        written?;
        state.manifest = self.manifest.clone();
        self.remove(&self.replaced);
        Ok(())
    }

    /// Removes what was written.
    pub(super) fn undo(&self) {
        self.remove(&self.files.iter().map(|file| file.name.clone()).collect::<Vec<_>>());
    }

    fn remove(&self, names: &[String]) {
        for name in names {
            // The next open removes what stays.
            let _ = self.durable.storage.remove(name);
        }
    }
}

impl State<'_> {
    /// Writes into a manifest what the table has come to; `is_kept` tells the partitions that stay in memory.
    pub(super) fn settle(&self, manifest: &mut Manifest, is_kept: impl Fn(&Place) -> bool) {
        manifest.applied = self.applied;
        manifest.producers = self.producers.clone();
        let texts = |dictionary: &Dictionary| dictionary.texts().map(str::to_owned).collect();
        manifest.dictionaries = self.table.dictionaries().iter().map(texts).collect();
        let kept = self.unflushed.iter().filter(|(place, _)| is_kept(place)).map(|(_, batch)| *batch);
        manifest.replay_from = kept.min().unwrap_or(self.applied + 1);
        manifest.flushed.retain(|it| it.through >= manifest.replay_from);
    }
}
