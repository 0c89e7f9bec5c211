//! How the bars of a view are made, and keep up with the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use datafusion::arrow::array::ArrayRef;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryPool, MemoryReservation, UnboundedMemoryPool,
};
use planish_table::{Changes, Durable, FileZone, Filter, Kind, Reading, TableFile};

use crate::SqlError;
use crate::scan::Source;
use crate::scan::source::{Cells, Rows, Slice, Wanted, read_of};
use crate::view::View;
use crate::view::bars::{Bars, Piece, Spot};
use crate::view::sums::{Part, Size};

/// Runs of buckets of a partition that are read one by one; where there are more, all between them is read, since a
/// read of a file reads all of it.
const RUNS_MAX: usize = 4;

/// What a view holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewSize {
    /// Bars.
    pub bars: usize,
    /// Bytes of memory that they take, about.
    pub bytes: usize,
    /// Rows that were read for them since it was there.
    pub rows_read: u64,
}

/// What is kept of a view.
#[derive(Debug)]
pub(super) struct Kept {
    /// What the table notes; from before the first row was read.
    changes: Option<Arc<Changes>>,
    /// All rows before this time were read once; `None` when all were.
    unread_from: Option<i64>,
    /// Buckets to be made anew, and from when on they have changed.
    changed: BTreeMap<i64, i64>,
    /// Rows of earlier times are gone.
    kept_from: i64,
    pub(super) bars: Bars,
    /// The texts of all symbols that bars have.
    pub(super) texts: Option<ArrayRef>,
    rows_read: u64,
}

impl Kept {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        Self {
            changes: None,
            unread_from: Some(i64::MIN),
            changed: BTreeMap::new(),
            kept_from: i64::MIN,
            bars: Bars::new(parts),
            texts: None,
            rows_read: 0,
        }
    }

    /// Takes over what a table has noted, and lets go of what it no longer has.
    fn note(&mut self, changes: &Changes, kept_from: i64) {
        for (start, from) in changes.take() {
            let known = self.changed.entry(start).or_insert(from);
            *known = from.min(*known);
        }
        if kept_from > self.kept_from {
            self.kept_from = kept_from;
            let (start, _) = changes.span(kept_from);
            self.bars.drop_before(start);
            if start < kept_from {
                self.changed.insert(start, i64::MIN);
            }
        }
    }
}

impl View {
    /// What it holds; told at once, also while the bars are made.
    #[must_use]
    pub fn size(&self) -> ViewSize {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bars, after some batch: what [`catch_up`](Self::catch_up) came to, or a later one.
    pub(super) fn kept(&self) -> RwLockReadGuard<'_, Kept> {
        // A panic leaves buckets that are to be made anew noted as such.
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the bars those of now, so that a query has little to make anew. Whoever asks waits meanwhile. The first
    /// time takes long: it goes no further than to the end of a partition when `is_over` says so.
    ///
    /// # Errors
    /// What reading the table says. What was not made anew then is made by the next call, or query.
    pub fn refresh(&self, is_over: impl Fn() -> bool) -> Result<(), SqlError> {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        self.catch_up(&MemoryConsumer::new("view").register(&pool), is_over)
    }

    /// Makes anew what has changed: afterwards the bars are those of a moment that all that was acknowledged before the
    /// call comes before. The first time it reads the whole table, a partition at a time.
    ///
    /// # Errors
    /// What reading says. Buckets that were not read then are read the next time.
    pub(super) fn catch_up(
        &self,
        memory: &MemoryReservation,
        is_over: impl Fn() -> bool,
    ) -> Result<(), SqlError> {
        let Source::Durable(table) = self.table.source() else { return Ok(()) };
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let changes = match &kept.changes {
            Some(changes) => Arc::clone(changes),
            None => Arc::clone(kept.changes.insert(table.watch(self.width)?)),
        };
        while let Some(from) = kept.unread_from {
            if is_over() {
                return Ok(());
            }
            kept.unread_from = self.read_next(table, &changes, &mut kept, (from, memory))?;
        }
        let reading = table.read()?;
        // Nothing comes in while it is held: what is noted now is what the reading has.
        kept.note(&changes, table.kept_from());
        self.read_changed(&reading, &changes, &mut kept, memory)?;
        self.take_texts(&reading, &mut kept)
    }

    /// Reads the next partition that has rows from a time on, to the end of its last bucket; returns from when on there
    /// is more. Rows come in between two of them: those are noted as any others.
    fn read_next(
        &self,
        table: &Durable<'static>,
        changes: &Changes,
        kept: &mut Kept,
        (from, memory): (i64, &MemoryReservation),
    ) -> Result<Option<i64>, SqlError> {
        let reading = table.read()?;
        let Some(first) = first_time(&reading, from) else { return Ok(None) };
        let span = reading.schema().partitioning().span;
        let last = first.saturating_add(span - 1 - first.rem_euclid(span));
        // Buckets are read whole, so the next one begins where the last one has ended.
        let ((start, _), (_, end)) = (changes.span(first), changes.span(last));
        self.read(&reading, kept, (start, end), |rows| spots_of(rows, changes), memory)?;
        Ok(end.checked_add(1))
    }

    /// Reads the buckets that have changed.
    fn read_changed(
        &self,
        reading: &Reading<'_, 'static>,
        changes: &Changes,
        kept: &mut Kept,
        memory: &MemoryReservation,
    ) -> Result<(), SqlError> {
        let span = reading.schema().partitioning().span;
        let changed: Vec<(i64, i64)> = kept.changed.iter().map(|(start, from)| (*start, *from)).collect();
        for of_partition in changed.chunk_by(|one, next| one.0.div_euclid(span) == next.0.div_euclid(span)) {
            let spot = |&(start, from): &(i64, i64)| kept.bars.spot(changes.span(start), from);
            let spots: Vec<Spot> = of_partition.iter().map(spot).collect();
            let is_next = |one: &Spot, next: &Spot| one.end.checked_add(1) == Some(next.from);
            let runs: Vec<&[Spot]> = match spots.chunk_by(is_next).count() {
                0..=RUNS_MAX => spots.chunk_by(is_next).collect(),
                _ => vec![&spots],
            };
            for run in runs {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                self.read(reading, kept, (first.from, last.end), |_| run.to_vec(), memory)?;
                for spot in run {
                    kept.changed.remove(&spot.start);
                }
            }
        }
        Ok(())
    }

    /// Reads the rows of some times, and makes buckets of them.
    fn read(
        &self,
        reading: &Reading<'_, 'static>,
        kept: &mut Kept,
        (first, last): (i64, i64),
        spots: impl FnOnce(&Rows<'_>) -> Vec<Spot>,
        memory: &MemoryReservation,
    ) -> Result<(), SqlError> {
        let Wanted { from, to, symbols } = &self.wanted;
        let wanted = Wanted { from: (*from).max(first), to: (*to).min(last), symbols: symbols.clone() };
        let size = self.asked.size().unwrap_or(self.asked.price());
        let mut columns = vec![self.asked.price(), size];
        columns.extend(self.table.columns().symbol().filter(|_| self.asked.by_symbol()));
        let is_whole = self.table.columns().columns()[size].kind == Kind::Int;
        kept.rows_read += read_of(reading, &wanted, (&columns, memory), |rows| {
            let spots = spots(rows);
            Ok(match is_whole {
                true => kept.bars.put(&spots, &pieces(rows, |cells| cells.whole())),
                false => kept.bars.put(&spots, &pieces(rows, |cells| cells.floats())),
            })
        })?;
        let size = ViewSize { bars: kept.bars.count(), bytes: kept.bars.bytes(), rows_read: kept.rows_read };
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        Ok(())
    }

    /// Keeps the texts of symbols, of which the bars have numbers.
    fn take_texts(&self, reading: &Reading<'_, 'static>, kept: &mut Kept) -> Result<(), SqlError> {
        let columns = self.table.columns();
        let Some(column) = columns.symbol().filter(|_| self.asked.by_symbol()) else { return Ok(()) };
        let dictionary = reading.dictionary(&columns.columns()[column].name)?;
        kept.texts = Some(self.table.texts(column, dictionary));
        Ok(())
    }
}

/// The slices of rows as bars take them.
fn pieces<'t, S: Size>(rows: &Rows<'t>, sizes: impl Fn(Cells<'t>) -> &'t [S]) -> Vec<Piece<'t, S>> {
    let piece = |slice: &Slice<'t>| Piece {
        times: slice.times,
        keys: slice.columns.get(2).map_or(&[][..], |keys| keys.symbols()),
        prices: slice.columns[0].floats(),
        sizes: sizes(slice.columns[1]),
    };
    rows.slices.iter().map(piece).collect()
}

/// The buckets that rows lie in: few, where the spans of time between rows are long.
fn spots_of(rows: &Rows<'_>, changes: &Changes) -> Vec<Spot> {
    let mut spots: Vec<Spot> = Vec::new();
    for slice in &rows.slices {
        let mut row = 0;
        while let Some(&time) = slice.times.get(row) {
            let (start, end) = changes.span(time);
            if spots.last().is_none_or(|last| last.start != start) {
                spots.push(Spot { start, end, from: start });
            }
            row += slice.times[row..].partition_point(|&time| time <= end);
        }
    }
    spots
}

/// A time at or behind another one before which no row lies; `None` where there is no row behind it at all.
fn first_time(reading: &Reading<'_, 'static>, from: i64) -> Option<i64> {
    let time = reading.schema().time();
    let of_file = |file: &TableFile| match file.columns.get(time).map(|column| &column.zone) {
        Some(FileZone::Whole(low, high)) => (*high >= from).then_some((*low).max(from)),
        _ => None,
    };
    let filter = Filter { from, ..Filter::ALL };
    let in_memory = reading.scan(filter).filter_map(|piece| piece.times().as_slice().first().copied());
    let all: BTreeSet<i64> = reading.files().iter().filter_map(of_file).chain(in_memory).collect();
    all.first().copied()
}
