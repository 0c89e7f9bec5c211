//! Compaction: the files of a partition as one, without the rows that are gone.
//!
//! Nobody needs it for right answers; readers that know no marks (DuckDB, Polars) see the table by it, and it costs one
//! read and one write of what it rewrites, whenever that suits. So it is asked for, and never begins on its own.

use crate::durable::Durable;
use crate::durable::flush::Writing;
use crate::error::TableError;
use crate::files::{Block, TableFile};
use crate::schema::Place;

/// What a compaction did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compaction {
    /// The new files, one a partition.
    pub files: Vec<TableFile>,
    /// Files that they stand for, which were removed.
    pub replaced: usize,
    /// Rows that were in those and are in no file any more: deleted, or replaced.
    pub gone_rows: u64,
}

impl Durable<'_> {
    /// Writes each partition that ends at or before `before`, and has several files or one with rows that are gone, as
    /// one file. What memory has of it is left to the next flush.
    ///
    /// Appends and readers go on meanwhile. A partition is in memory as a whole while it is written, outside of the
    /// arena.
    ///
    /// # Errors
    /// [`TableError::Damaged`] with the file that is, [`TableError::Io`]: a full disk, above all. Partitions that were
    /// written before stay so; the others are as they were.
    pub fn compact(&self, before: i64) -> Result<Compaction, TableError> {
        let _upkeep = self.keep_up();
        let end = before.div_euclid(self.schema.partitioning().span);
        let mut done = Compaction::default();
        let mut places: Vec<Place> = self.read_state().manifest.files.iter().map(TableFile::place).collect();
        places.sort_unstable();
        places.dedup();
        for place in places.into_iter().filter(|(_, span)| *span < end) {
            self.compact_place(place, &mut done)?;
        }
        Ok(done)
    }

    fn compact_place(&self, place: Place, done: &mut Compaction) -> Result<(), TableError> {
        // Nobody else changes files meanwhile; what batches bring stays in memory.
        let (manifest, dictionaries) = {
            let state = self.read_state();
            (state.manifest.clone(), state.table.dictionaries().to_vec())
        };
        let older: Vec<TableFile> = manifest.files_of(place).cloned().collect();
        let gone_rows: u64 = older.iter().map(|file| file.gone.rows()).sum();
        if older.len() < 2 && gone_rows == 0 {
            return Ok(());
        }
        let mut writing = Writing::new(self, manifest);
        let written = writing.merge(&older, &dictionaries, None).and_then(|rows| {
            writing.replace(&older);
            writing.write(&dictionaries, place, Block::of_rows(&rows))?;
            self.sync_folder()
        });
        if let Err(error) = written {
            writing.undo();
            return Err(error);
        }
        writing.finish(&mut self.write_state())?;
        done.files.append(&mut writing.files);
        done.replaced += older.len();
        done.gone_rows += gone_rows;
        Ok(())
    }
}
