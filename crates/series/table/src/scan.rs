//! Scans: columns of segments, cut to what is asked for.

use std::ops::Range;

use planish_kernels::{KernelError, Keys, Times};

use crate::schema::Schema;
use crate::segment::{Data, Loose, Segment, Zone, zone_of};

/// Which rows are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// First time.
    pub from: i64,
    /// Last time; this one too.
    pub to: i64,
    /// Number of a symbol: partitions and segments that cannot hold it are left out. What is left may hold other
    /// symbols as well.
    pub symbol: Option<u32>,
}

impl Filter {
    /// Every row.
    pub const ALL: Self = Self { from: i64::MIN, to: i64::MAX, symbol: None };
}

/// Rows of one segment, in time order: slices of its columns, nothing copied.
#[derive(Debug)]
pub struct Piece<'t> {
    columns: Vec<Column<'t>>,
    zones: Vec<Zone>,
    time: usize,
}

#[derive(Debug, Clone, Copy)]
enum Column<'t> {
    Whole(&'t [i64]),
    /// With the number of symbols that there are.
    Symbol(&'t [u32], usize),
    Float(&'t [f64]),
}

impl<'t> Piece<'t> {
    /// The rows of a segment that a filter asks for, if any. `keys` says how many symbols each column of symbols
    /// has.
    pub(crate) fn of(
        schema: &Schema,
        segment: &'t Segment<'_>,
        filter: &Filter,
        keys: &[usize],
    ) -> Option<Self> {
        let symbol = schema.symbol().zip(filter.symbol);
        if symbol.is_some_and(|(column, symbol)| !may_hold(segment.zone(column), i64::from(symbol))) {
            return None;
        }
        let times = segment.times(schema.time());
        let begin = times.partition_point(|&time| time < filter.from);
        let end = times.partition_point(|&time| time <= filter.to);
        (begin < end).then(|| Self::cut(schema, segment, begin..end, keys))
    }

    fn cut(schema: &Schema, segment: &'t Segment<'_>, rows: Range<usize>, keys: &[usize]) -> Self {
        let mut keys = keys.iter();
        let mut columns = Vec::with_capacity(segment.columns.len());
        for column in &segment.columns {
            columns.push(match column {
                Data::Whole(column) => Column::Whole(&column[rows.clone()]),
                Data::Float(column) => Column::Float(&column[rows.clone()]),
                Data::Symbol(column) => {
                    let count = keys.next().expect("a dictionary for each column of symbols");
                    Column::Symbol(&column[rows.clone()], *count)
                }
            });
        }
        let zones = (0..columns.len()).map(|column| segment.zone(column)).collect();
        Self { columns, zones, time: schema.time() }
    }

    /// The rows of loose columns, in time order, that a filter asks for, if any.
    pub(crate) fn of_loose(
        schema: &Schema,
        columns: &'t [Loose],
        filter: &Filter,
        keys: &[usize],
    ) -> Option<Self> {
        let times = columns[schema.time()].whole();
        let begin = times.partition_point(|&time| time < filter.from);
        let end = times.partition_point(|&time| time <= filter.to);
        if begin >= end {
            return None;
        }
        let mut keys = keys.iter();
        let mut zones = Vec::new();
        let columns = columns.iter().map(|column| {
            let cells = column.view().cut(begin..end);
            zones.push(zone_of(cells));
            match cells {
                Data::Whole(cells) => Column::Whole(cells),
                Data::Float(cells) => Column::Float(cells),
                Data::Symbol(cells) => {
                    Column::Symbol(cells, *keys.next().expect("a dictionary for each column of symbols"))
                }
            }
        });
        let columns = columns.collect();
        Some(Self { columns, zones, time: schema.time() })
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.times().as_slice().len()
    }

    /// The time column that orders the table.
    #[must_use]
    pub fn times(&self) -> Times<'t> {
        Times::of_sorted(self.whole(self.time).expect("the time column is of whole numbers"))
    }

    /// A column of times, whole numbers or decimals; `None` for another kind, and where there is no such column.
    #[must_use]
    pub fn whole(&self, column: usize) -> Option<&'t [i64]> {
        match self.columns.get(column)? {
            Column::Whole(column) => Some(column),
            _ => None,
        }
    }

    /// A column of floats; `None` for another kind, and where there is no such column.
    #[must_use]
    pub fn floats(&self, column: usize) -> Option<&'t [f64]> {
        match self.columns.get(column)? {
            Column::Float(column) => Some(column),
            _ => None,
        }
    }

    /// A column of symbols, as keys of all symbols that the table has; `None` for another kind, and where there is
    /// no such column.
    ///
    /// # Errors
    /// [`KernelError::KeyRange`] when the column holds what is no symbol: memory has been overwritten.
    pub fn keys(&self, column: usize) -> Option<Result<Keys<'t>, KernelError>> {
        match self.columns.get(column)? {
            Column::Symbol(column, count) => Some(Keys::new(column, *count)),
            _ => None,
        }
    }

    /// Lowest and highest value of a column in the whole segment, of which these may be only some rows; `None` where
    /// there is no such column.
    #[must_use]
    pub fn zone(&self, column: usize) -> Option<Zone> {
        self.zones.get(column).copied()
    }
}

fn may_hold(zone: Zone, value: i64) -> bool {
    match zone {
        Zone::Whole(Some((low, high))) => (low..=high).contains(&value),
        Zone::Whole(None) | Zone::Float(_) => false,
    }
}
