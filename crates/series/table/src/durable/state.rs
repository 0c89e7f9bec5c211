//! What the log and the manifest come to, and how a batch changes it.

use std::collections::BTreeMap;

use crate::durable::Manifest;
use crate::durable::changes::Watches;
use crate::error::TableError;
use crate::files::{FileRows, FileZone, Runs, TableFile};
use crate::key::{Keys, merge};
use crate::log::{Batch, Change};
use crate::schema::{Place, Schema};
use crate::segment::{Loose, Zone};
use crate::table::{Cells, Table};

/// What the log and the manifest come to.
#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) table: Table<'a>,
    pub(super) manifest: Manifest,
    /// Number of the last batch that the table took in.
    pub(super) applied: u64,
    /// Number of the last batch of each producer that the table took in.
    pub(super) producers: BTreeMap<String, u64>,
    /// The first batch that changed what is in memory of each partition.
    pub(super) unflushed: BTreeMap<Place, u64>,
    /// Keys whose rows in files are deleted, as columns in order.
    pub(super) deleted: BTreeMap<Place, Vec<Loose>>,
    /// Who wants to know what changes.
    pub(super) watches: Watches,
}

impl State<'_> {
    /// Takes in a batch of the log.
    pub(super) fn take_in(&mut self, number: u64, batch: &Batch) -> Result<(), TableError> {
        let places = batch.with_cells(|cells| {
            self.note(batch.change, cells);
            match batch.change {
                Change::Rows => {
                    let manifest = &self.manifest;
                    self.table.append_where(cells, |place| manifest.is_wanted(place, number))
                }
                Change::Delete => self.delete(number, cells),
            }
        })?;
        for place in places {
            if self.is_in_memory(place) {
                self.unflushed.entry(place).or_insert(number);
            } else {
                // It came and went. The log has both until it is cut behind them, so a replay ends the same.
                self.unflushed.remove(&place);
            }
        }
        if let Some((producer, sequence)) = &batch.origin {
            let last = self.producers.entry(producer.clone()).or_default();
            *last = (*last).max(*sequence);
        }
        self.applied = self.applied.max(number);
        Ok(())
    }

    /// Takes rows out, and notes the keys where files may have such rows; returns the partitions of the keys.
    fn delete(&mut self, number: u64, keys: &[Cells<'_>]) -> Result<Vec<Place>, TableError> {
        let Self { table, manifest, deleted, .. } = self;
        let every: Vec<usize> = (0..table.schema().order().len()).collect();
        let mut places = Vec::new();
        table.delete_where(keys, |place, keys| {
            if !manifest.is_wanted(place, number) {
                return false;
            }
            places.push(place);
            if manifest.files_of(place).next().is_some() {
                let noted =
                    deleted.entry(place).or_insert_with(|| keys.iter().map(Loose::empty_like).collect());
                *noted = merge(noted, keys, &every, true);
            }
            true
        })?;
        Ok(places)
    }

    /// Whether memory has rows of a partition, or takes some from its files.
    pub(super) fn is_in_memory(&self, place: Place) -> bool {
        !self.table.segments(place).is_empty() || self.deleted.contains_key(&place)
    }

    /// The rows of a file that are gone: those that are marked, and those whose keys memory replaces or deletes.
    pub(super) fn gone_of(&self, schema: &Schema, file: &TableFile, rows: &FileRows) -> Runs {
        let mut gone = file.gone.clone();
        if !self.covers(schema, file) {
            return gone;
        }
        let (place, mine) = (file.place(), rows.keys_of_rows());
        for segment in self.table.segments(place) {
            gone = gone.union(&Runs::of(mine.common(&segment.keys(schema.order()))));
        }
        if let Some(deleted) = self.deleted.get(&place) {
            gone = gone.union(&Runs::of(mine.common(&Keys::of(deleted.iter().map(Loose::view)))));
        }
        gone
    }

    /// Whether the times in memory of a file's partition allow that one of its keys is there.
    pub(super) fn covers(&self, schema: &Schema, file: &TableFile) -> bool {
        if !schema.has_key() {
            return false;
        }
        let (low, high) = match file.columns.get(schema.time()).map(|column| &column.zone) {
            Some(FileZone::Whole(low, high)) => (*low, *high),
            _ => (i64::MIN, i64::MAX),
        };
        let rows = self.table.segments(file.place()).iter().any(|segment| {
            matches!(segment.zone(schema.time()), Zone::Whole(Some((first, last))) if first <= high && low <= last)
        });
        let deleted = self.deleted.get(&file.place()).map(|keys| keys[0].whole());
        rows || deleted.is_some_and(|times| times.iter().any(|time| (low..=high).contains(time)))
    }
}
