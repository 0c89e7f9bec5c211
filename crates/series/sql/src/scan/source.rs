//! Where rows come from, and the order that they are handed on in.
//!
//! ```text
//!   Memory, Durable ── pieces of segments and files, each in order ──> in_order ──> slices, all in order
//! ```
//!
//! Slices are the pieces themselves where these follow one another in time and all their rows are wanted. Groups of
//! symbols lie side by side in time, and rows that came late lie beside files: those are merged into columns of their
//! own, and so are the rows of one symbol among others.

use std::sync::{Arc, PoisonError, RwLock};

use datafusion::execution::memory_pool::MemoryReservation;
use planish_table::{
    Dictionary, Durable, FileRows, Filter, Follower, Kind, Piece, Reading, Schema, Table, TableFile, Zone,
};

use crate::SqlError;

/// A table that queries may read while it grows. Its arena must live as long as the program.
#[derive(Debug, Clone)]
pub enum Source {
    /// In memory alone.
    Memory(Arc<RwLock<Table<'static>>>),
    /// With a log and files.
    Durable(Arc<Durable<'static>>),
    /// The same of another process, which writes it.
    Followed(Arc<Follower<'static>>),
}

/// How often a table of another process is looked at anew where a file goes that was about to be read: each time a
/// flush has come in between.
const LOOKS: usize = 20;

/// Bytes of a cell.
const CELL_BYTES: usize = 8;

/// Takes what some rows need from what a query may have, before they are copied.
///
/// # Errors
/// [`SqlError::Query`] where that is too much.
pub(crate) fn set_aside(memory: &MemoryReservation, rows: usize, row_bytes: usize) -> Result<(), SqlError> {
    memory.try_grow(rows.saturating_mul(row_bytes)).map_err(SqlError::query("execute"))
}

/// Which rows a query wants. All of it is exact: no row that it does not ask for is handed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// First time.
    pub(crate) from: i64,
    /// Last time; this one too.
    pub(crate) to: i64,
    /// What the symbol must be equal to: any number of texts, all of them. They are looked up when the query runs,
    /// since a symbol may come after the query was planned.
    pub(crate) symbols: Vec<String>,
}

impl Wanted {
    /// Every row.
    pub(crate) fn all() -> Self {
        Self { from: i64::MIN, to: i64::MAX, symbols: Vec::new() }
    }
}

/// Cells of a column, lent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cells<'t> {
    /// Times, whole numbers, decimals.
    Whole(&'t [i64]),
    /// Floats; NaN is null.
    Float(&'t [f64]),
    /// Numbers of the column's dictionary.
    Symbol(&'t [u32]),
}

impl<'t> Cells<'t> {
    pub(crate) fn cut(self, rows: std::ops::Range<usize>) -> Self {
        match self {
            Self::Whole(cells) => Self::Whole(&cells[rows]),
            Self::Float(cells) => Self::Float(&cells[rows]),
            Self::Symbol(cells) => Self::Symbol(&cells[rows]),
        }
    }

    pub(crate) fn whole(self) -> &'t [i64] {
        match self {
            Self::Whole(cells) => cells,
            _ => unreachable!("the planner asks for a column of whole numbers by its kind"),
        }
    }

    pub(crate) fn floats(self) -> &'t [f64] {
        match self {
            Self::Float(cells) => cells,
            _ => unreachable!("the planner asks for a column of floats by its kind"),
        }
    }

    pub(crate) fn symbols(self) -> &'t [u32] {
        match self {
            Self::Symbol(cells) => cells,
            _ => unreachable!("the planner asks for a column of symbols by its kind"),
        }
    }
}

/// Cells of a column that were put together.
enum Owned {
    Whole(Vec<i64>),
    Float(Vec<f64>),
    Symbol(Vec<u32>),
}

impl Owned {
    fn lend(&self) -> Cells<'_> {
        match self {
            Self::Whole(cells) => Cells::Whole(cells),
            Self::Float(cells) => Cells::Float(cells),
            Self::Symbol(cells) => Cells::Symbol(cells),
        }
    }
}

/// Rows in time order; not empty.
#[derive(Debug)]
pub(crate) struct Slice<'t> {
    /// Their times.
    pub(crate) times: &'t [i64],
    /// The columns that were asked for.
    pub(crate) columns: Vec<Cells<'t>>,
}

/// All rows that were asked for: slices in time order, each after the one before it.
pub(crate) struct Rows<'t> {
    pub(crate) slices: Vec<Slice<'t>>,
    /// Of the columns that were asked for, which have one.
    pub(crate) dictionaries: Vec<Option<&'t Dictionary>>,
    /// A bound of the magnitudes in the columns that were asked for; 0 for floats.
    pub(crate) magnitudes: Vec<u64>,
}

impl Rows<'_> {
    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.slices.iter().map(|slice| slice.times.len()).sum()
    }
}

impl Source {
    /// The columns.
    pub(crate) fn schema(&self) -> Schema {
        match self {
            Self::Memory(table) => table.read().unwrap_or_else(PoisonError::into_inner).schema().clone(),
            Self::Durable(table) => table.schema().clone(),
            Self::Followed(table) => table.schema().clone(),
        }
    }

    /// Hands `work` the rows that are wanted, as they are at one moment: whole batches, and all that were acknowledged.
    /// What has to be put together for it, or read from files, is set aside from `memory` while `work` runs.
    ///
    /// # Errors
    /// What reading says, and `work`.
    pub(crate) fn read<R>(
        &self,
        wanted: &Wanted,
        columns: &[usize],
        memory: &MemoryReservation,
        work: impl FnOnce(&Rows<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let memory = memory.new_empty();
        let wanted_columns = (columns, &memory);
        match self {
            Self::Memory(table) => {
                // Appends are whole or nothing, also where the thread of one panicked.
                let table = table.read().unwrap_or_else(PoisonError::into_inner);
                match filter(&table, wanted)? {
                    Some(filter) => {
                        in_order(&table, table.scan(filter).collect(), filter.symbol, wanted_columns, work)
                    }
                    None => in_order(&table, Vec::new(), None, wanted_columns, work),
                }
            }
            Self::Durable(table) => read_of(&table.read()?, wanted, wanted_columns, work),
            Self::Followed(table) => {
                let mut looks = 0;
                let (table, (filter, files)) = loop {
                    let reading = table.read()?;
                    looks += 1;
                    match files_of(&reading, wanted, &memory) {
                        Err(SqlError::Table(error)) if error.is_gone() && looks < LOOKS => {}
                        files => break (reading, files?),
                    }
                };
                of_reading(&table, (filter, &files), wanted_columns, work)
            }
        }
    }
}

/// The same of a reading that somebody has: as often as one likes, all of it is of one moment.
pub(crate) fn read_of<R>(
    table: &Reading<'_, 'static>,
    wanted: &Wanted,
    (columns, memory): (&[usize], &MemoryReservation),
    work: impl FnOnce(&Rows<'_>) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    let memory = memory.new_empty();
    let (filter, files) = files_of(table, wanted, &memory)?;
    of_reading(table, (filter, &files), (columns, &memory), work)
}

/// The filter of what is wanted, and the rows of files that may have some of it.
fn files_of(
    table: &Reading<'_, 'static>,
    wanted: &Wanted,
    memory: &MemoryReservation,
) -> Result<(Option<Filter>, Vec<FileRows>), SqlError> {
    let Some(filter) = filter(table, wanted)? else { return Ok((None, Vec::new())) };
    let row_bytes = table.schema().columns().len() * CELL_BYTES;
    let read = |file: &TableFile| -> Result<FileRows, SqlError> {
        set_aside(memory, usize::try_from(file.rows).unwrap_or(usize::MAX), row_bytes)?;
        Ok(table.read_file(file)?)
    };
    let files = table.files_of(&filter).map(read).collect::<Result<Vec<_>, _>>()?;
    Ok((Some(filter), files))
}

/// Hands `work` the rows of a reading.
fn of_reading<R>(
    table: &Reading<'_, 'static>,
    (filter, files): (Option<Filter>, &[FileRows]),
    wanted_columns: (&[usize], &MemoryReservation),
    work: impl FnOnce(&Rows<'_>) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    let Some(filter) = filter else { return in_order(table, Vec::new(), None, wanted_columns, work) };
    let pieces = files.iter().filter_map(|file| file.piece(&filter)).chain(table.scan(filter));
    in_order(table, pieces.collect(), filter.symbol, wanted_columns, work)
}

/// The filter of the table's own scan; `None` where no row can be wanted.
fn filter(table: &Table<'_>, wanted: &Wanted) -> Result<Option<Filter>, SqlError> {
    let mut symbol = None;
    if let Some((first, others)) = wanted.symbols.split_first() {
        let schema = table.schema();
        let column = schema.symbol().expect("only the symbol column is filtered by symbols");
        let number = table.dictionary(&schema.columns()[column].name)?.number(first);
        if number.is_none() || others.iter().any(|other| other != first) {
            return Ok(None);
        }
        symbol = number;
    }
    let is_empty = wanted.from > wanted.to;
    Ok((!is_empty).then_some(Filter { from: wanted.from, to: wanted.to, symbol }))
}

/// Puts pieces in order of time, and takes out rows of other symbols.
fn in_order<R>(
    table: &Table<'_>,
    mut pieces: Vec<Piece<'_>>,
    symbol: Option<u32>,
    (columns, memory): (&[usize], &MemoryReservation),
    work: impl FnOnce(&Rows<'_>) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    let schema = table.schema();
    let dictionary = |&column: &usize| {
        let column = &schema.columns()[column];
        (column.kind == Kind::Symbol).then(|| table.dictionary(&column.name)).transpose()
    };
    let dictionaries = columns.iter().map(dictionary).collect::<Result<Vec<_>, _>>()?;
    let ends = |piece: &Piece<'_>| {
        let times = piece.times().as_slice();
        (times[0], times[times.len() - 1])
    };
    let magnitude =
        |&column: &usize| pieces.iter().map(|piece| magnitude(piece.zone(column))).max().unwrap_or(0);
    let magnitudes = columns.iter().map(magnitude).collect();
    pieces.sort_by_key(|piece| ends(piece).0);
    let is_one_after_another = pieces.windows(2).all(|pair| ends(&pair[0]).1 <= ends(&pair[1]).0);
    let symbol = symbol.zip(schema.symbol());
    let is_all_wanted = symbol.is_none_or(|(symbol, column)| {
        let only = Zone::Whole(Some((i64::from(symbol), i64::from(symbol))));
        pieces.iter().all(|piece| piece.zone(column) == Some(only))
    });
    if is_one_after_another && is_all_wanted {
        let slices = pieces.iter().map(|piece| slice(schema, piece, columns)).collect::<Result<_, _>>()?;
        return work(&Rows { slices, dictionaries, magnitudes });
    }
    let rows = pieces.iter().map(|piece| piece.times().as_slice().len()).sum();
    set_aside(memory, rows, size_of::<Place>() + (columns.len() + 1) * CELL_BYTES)?;
    let places = places(&pieces, symbol.map(|(symbol, column)| (column, symbol)))?;
    let owned = columns.iter().map(|&column| put_together(schema, &pieces, column, &places));
    let owned = owned.collect::<Result<Vec<_>, _>>()?;
    let times: Vec<i64> = places.iter().map(|place| place.time).collect();
    let slice = Slice { times: &times, columns: owned.iter().map(Owned::lend).collect() };
    work(&Rows { slices: if times.is_empty() { Vec::new() } else { vec![slice] }, dictionaries, magnitudes })
}

fn magnitude(zone: Option<Zone>) -> u64 {
    match zone {
        Some(Zone::Whole(Some((low, high)))) => low.unsigned_abs().max(high.unsigned_abs()),
        _ => 0,
    }
}

/// Where a row lies.
#[derive(Clone, Copy)]
struct Place {
    time: i64,
    piece: usize,
    row: usize,
}

/// The rows of pieces in order of time; of equal times, in that of the pieces.
fn places(pieces: &[Piece<'_>], only: Option<(usize, u32)>) -> Result<Vec<Place>, SqlError> {
    let mut places = Vec::new();
    for (piece, rows) in pieces.iter().enumerate() {
        let keys = only.and_then(|(column, symbol)| Some((rows.keys(column)?, symbol)));
        let keys = keys.map(|(keys, symbol)| keys.map(|keys| (keys.as_slice(), symbol))).transpose()?;
        for (row, &time) in rows.times().as_slice().iter().enumerate() {
            if keys.is_none_or(|(keys, symbol)| keys[row] == symbol) {
                places.push(Place { time, piece, row });
            }
        }
    }
    // Stable, and quick where most of it is in order.
    places.sort_by_key(|place| place.time);
    Ok(places)
}

/// The rows of a piece, lent for as long as the table lends them.
fn slice<'t>(schema: &Schema, piece: &Piece<'t>, columns: &[usize]) -> Result<Slice<'t>, SqlError> {
    let columns = columns.iter().map(|&column| cells(schema, piece, column)).collect::<Result<_, _>>()?;
    Ok(Slice { times: piece.times().as_slice(), columns })
}

/// The cells of a column of a piece.
fn cells<'t>(schema: &Schema, piece: &Piece<'t>, column: usize) -> Result<Cells<'t>, SqlError> {
    let missing = "a piece has all columns of its table";
    Ok(match schema.columns()[column].kind {
        Kind::Float => Cells::Float(piece.floats(column).expect(missing)),
        Kind::Symbol => Cells::Symbol(piece.keys(column).expect(missing)?.as_slice()),
        Kind::Time | Kind::Int | Kind::Decimal { .. } => Cells::Whole(piece.whole(column).expect(missing)),
    })
}

fn put_together(
    schema: &Schema,
    pieces: &[Piece<'_>],
    column: usize,
    places: &[Place],
) -> Result<Owned, SqlError> {
    let columns = pieces.iter().map(|piece| cells(schema, piece, column)).collect::<Result<Vec<_>, _>>()?;
    let rows = places.iter();
    Ok(match schema.columns()[column].kind {
        Kind::Float => Owned::Float(rows.map(|at| columns[at.piece].floats()[at.row]).collect()),
        Kind::Symbol => Owned::Symbol(rows.map(|at| columns[at.piece].symbols()[at.row]).collect()),
        Kind::Time | Kind::Int | Kind::Decimal { .. } => {
            Owned::Whole(rows.map(|at| columns[at.piece].whole()[at.row]).collect())
        }
    })
}
