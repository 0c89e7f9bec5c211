//! Flush: sealed partitions from memory to files, in an order that a kill cannot hurt.
//!
//! ```text
//!   1  sync the log            what files will hold is then in the log too, whatever the policy
//!   2  write the files         each under a name for the time being, synced, renamed; then the folder
//!   3  replace the manifest    after this point the files count, and a replay leaves their rows out
//!   4  let go of memory        segments go to the rows to come
//!   5  remove log files        those of which every row is in files
//! ```
//!
//! A kill before 3 leaves files that no manifest names, which the next open removes. A kill after it leaves log files
//! of which nothing is taken in any more.

use crate::durable::{Durable, Manifest, State};
use crate::error::TableError;
use crate::files::{self, Source, TableFile};
use crate::schema::Place;

/// What a flush did.
#[derive(Debug, Clone, PartialEq)]
pub struct Flush {
    /// The new files, with the ratio of each column.
    pub files: Vec<TableFile>,
    /// Rows in them.
    pub rows: u64,
    /// Log files that were removed.
    pub log_files: usize,
}

impl Durable<'_> {
    /// Writes all partitions that end at or before `before` to files, one each, and lets go of their memory, which the
    /// rows to come use. Rows that come too late for the file of their partition go to another file of it.
    ///
    /// Appends are acknowledged meanwhile, and readers wait.
    ///
    /// # Errors
    /// [`TableError::LogLost`] when the log cannot be synced, [`TableError::Io`] when a file cannot be written: a full
    /// disk, above all. The table is then as it was.
    pub fn flush(&self, before: i64) -> Result<Flush, TableError> {
        let mut state = self.write_state();
        // Where memory is short this may stop half way; that is what the flush is for.
        let _ = self.apply_to(&mut state);
        self.committer.sync()?;
        let end = before.div_euclid(self.schema.partitioning().span);
        let places: Vec<Place> = state.table.places().filter(|(_, span)| *span < end).collect();
        if places.is_empty() {
            return Ok(Flush { files: Vec::new(), rows: 0, log_files: 0 });
        }
        let mut manifest = state.manifest.clone();
        let first = manifest.files.len();
        let written = self.write_files(&state, &places, &mut manifest);
        let files = manifest.files[first..].to_vec();
        if let Err(error) = written {
            for file in &files {
                // The next open removes what stays.
                let _ = self.storage.remove(&file.name);
            }
            return Err(error);
        }
        state.settle(&mut manifest, |place| !places.contains(place));
        manifest.write(self.storage.as_ref())?;
        state.manifest = manifest;
        for place in &places {
            state.table.remove(*place);
            state.unflushed.remove(place);
        }
        let log_files = self.trim_log(state.manifest.replay_from);
        let _ = self.apply_to(&mut state);
        Ok(Flush { rows: files.iter().map(|file| file.rows).sum(), files, log_files })
    }

    fn write_files(
        &self,
        state: &State<'_>,
        places: &[Place],
        manifest: &mut Manifest,
    ) -> Result<(), TableError> {
        for &place in places {
            let (group, span) = place;
            let name = format!("{:012}-g{group}-s{span}.parquet", manifest.next_file);
            let source = Source {
                schema: &self.schema,
                place,
                segments: state.table.segments(place),
                dictionaries: state.table.dictionaries(),
                time_unit: manifest.time_unit,
                codecs: &self.codecs,
            };
            manifest.files.push(files::write(self.storage.as_ref(), &name, &source)?);
            manifest.next_file += 1;
            manifest.note_flushed(place, state.applied);
        }
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

impl State<'_> {
    /// Writes into a manifest what the table has come to; `is_kept` tells the partitions that stay in memory.
    pub(super) fn settle(&self, manifest: &mut Manifest, is_kept: impl Fn(&Place) -> bool) {
        manifest.applied = self.applied;
        manifest.producers = self.producers.clone();
        let texts = |dictionary: &crate::Dictionary| dictionary.texts().map(str::to_owned).collect();
        manifest.dictionaries = self.table.dictionaries().iter().map(texts).collect();
        let kept = self.unflushed.iter().filter(|(place, _)| is_kept(place)).map(|(_, batch)| *batch);
        manifest.replay_from = kept.min().unwrap_or(self.applied + 1);
        manifest.flushed.retain(|it| it.through >= manifest.replay_from);
    }
}
