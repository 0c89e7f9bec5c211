//! A segment: the columns of some rows of a partition, each a slice of the arena.

use std::ops::Range;

use planish_arena::{Arena, ArenaError};

use crate::schema::{Kind, Schema};

/// Rows of the first segment of a partition.
pub const ROWS_FIRST: usize = 1 << 10;
/// Rows of the largest segments.
pub const ROWS_LAST: usize = 1 << 16;

/// Lowest and highest value of a column in some rows. Of floats, nulls are left out; decimals are in units of
/// their last digit, symbols are numbers of the dictionary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Zone {
    /// Of a column of whole numbers, times, decimals or symbols; `None` without rows.
    Whole(Option<(i64, i64)>),
    /// Of a column of floats; `None` without a value.
    Float(Option<(f64, f64)>),
}

/// One column of a segment, or of rows on their way into one.
#[derive(Debug)]
pub(crate) enum Data<W, S, F> {
    Whole(W),
    Symbol(S),
    Float(F),
}

/// A column of a segment.
pub(crate) type Slice<'a> = Data<&'a mut [i64], &'a mut [u32], &'a mut [f64]>;
/// A column of rows outside of segments.
pub(crate) type Loose = Data<Vec<i64>, Vec<u32>, Vec<f64>>;

impl Loose {
    pub(crate) fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Symbol => Self::Symbol(Vec::new()),
            Kind::Float => Self::Float(Vec::new()),
            Kind::Time | Kind::Int | Kind::Decimal { .. } => Self::Whole(Vec::new()),
        }
    }

    /// Adds chosen rows of a column of the same kind.
    pub(crate) fn extend_from(&mut self, other: &Self, rows: impl Iterator<Item = usize>) {
        match (self, other) {
            (Self::Whole(mine), Self::Whole(other)) => mine.extend(rows.map(|row| other[row])),
            (Self::Symbol(mine), Self::Symbol(other)) => mine.extend(rows.map(|row| other[row])),
            (Self::Float(mine), Self::Float(other)) => mine.extend(rows.map(|row| other[row])),
            _ => unreachable!("columns of one number are of one kind"),
        }
    }

    /// Adds the rows of a segment's column.
    pub(crate) fn extend_from_slice(&mut self, other: &Slice<'_>, rows: Range<usize>) {
        match (self, other) {
            (Self::Whole(mine), Data::Whole(other)) => mine.extend_from_slice(&other[rows]),
            (Self::Symbol(mine), Data::Symbol(other)) => mine.extend_from_slice(&other[rows]),
            (Self::Float(mine), Data::Float(other)) => mine.extend_from_slice(&other[rows]),
            _ => unreachable!("columns of one number are of one kind"),
        }
    }

    /// A column of symbols.
    pub(crate) fn symbols(&self) -> &[u32] {
        match self {
            Self::Symbol(column) => column,
            _ => unreachable!("the symbol column is of symbols"),
        }
    }

    /// A column of times.
    pub(crate) fn whole(&self) -> &[i64] {
        match self {
            Self::Whole(column) => column,
            _ => unreachable!("the time column is of whole numbers"),
        }
    }
}

/// Rows in time order, in memory for more.
#[derive(Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) columns: Vec<Slice<'a>>,
    zones: Vec<Zone>,
    pub(crate) rows: usize,
    /// Rows that there is memory for.
    pub(crate) room: usize,
}

impl<'a> Segment<'a> {
    /// Takes memory for `room` rows of a table.
    pub(crate) fn new(arena: &'a Arena, schema: &Schema, room: usize) -> Result<Self, ArenaError> {
        let column = |kind| {
            Ok(match kind {
                Kind::Symbol => Data::Symbol(arena.alloc_slice(room)?),
                Kind::Float => Data::Float(arena.alloc_slice(room)?),
                Kind::Time | Kind::Int | Kind::Decimal { .. } => Data::Whole(arena.alloc_slice(room)?),
            })
        };
        let columns = schema.columns().iter().map(|it| column(it.kind)).collect::<Result<Vec<_>, _>>()?;
        let mut segment = Self { columns, zones: Vec::new(), rows: 0, room };
        segment.clear();
        Ok(segment)
    }

    /// Forgets the rows.
    pub(crate) fn clear(&mut self) {
        self.cut(0);
    }

    /// Keeps the first `rows` rows.
    pub(crate) fn cut(&mut self, rows: usize) {
        self.rows = rows;
        self.zones = self.columns.iter().map(|column| zone(column, 0..rows)).collect();
    }

    /// Writes rows of loose columns behind its own, for which there is room.
    pub(crate) fn push(&mut self, rows: &[Loose], range: Range<usize>) {
        let place = self.rows..self.rows + range.len();
        for ((column, zone_of), loose) in self.columns.iter_mut().zip(&mut self.zones).zip(rows) {
            match (&mut *column, loose) {
                (Data::Whole(column), Data::Whole(loose)) => {
                    column[place.clone()].copy_from_slice(&loose[range.clone()]);
                }
                (Data::Symbol(column), Data::Symbol(loose)) => {
                    column[place.clone()].copy_from_slice(&loose[range.clone()]);
                }
                (Data::Float(column), Data::Float(loose)) => {
                    column[place.clone()].copy_from_slice(&loose[range.clone()]);
                }
                _ => unreachable!("columns of one number are of one kind"),
            }
            *zone_of = zone_of.merge(zone(column, place.clone()));
        }
        self.rows = place.end;
    }

    /// Lowest and highest value of a column.
    pub(crate) fn zone(&self, column: usize) -> Zone {
        self.zones[column]
    }

    /// The rows of the time column, which is column `time`.
    pub(crate) fn times(&self, time: usize) -> &[i64] {
        match &self.columns[time] {
            Data::Whole(times) => &times[..self.rows],
            _ => unreachable!("the time column is of whole numbers"),
        }
    }
}

impl Zone {
    pub(crate) fn merge(self, other: Self) -> Self {
        fn both<T: PartialOrd>(left: Option<(T, T)>, right: Option<(T, T)>) -> Option<(T, T)> {
            let (Some((low, high)), Some((other_low, other_high))) = (left, right) else { return None };
            Some((
                if other_low < low { other_low } else { low },
                if other_high > high { other_high } else { high },
            ))
        }
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => Self::Whole(both(left, right).or(left).or(right)),
            (Self::Float(left), Self::Float(right)) => Self::Float(both(left, right).or(left).or(right)),
            _ => unreachable!("columns of one number are of one kind"),
        }
    }
}

fn zone(column: &Slice<'_>, rows: Range<usize>) -> Zone {
    match column {
        Data::Whole(column) => zone_of(&Data::Whole(&column[rows])),
        Data::Symbol(column) => zone_of(&Data::Symbol(&column[rows])),
        Data::Float(column) => zone_of(&Data::Float(&column[rows])),
    }
}

/// Lowest and highest of the cells of a column.
pub(crate) fn zone_of(cells: &Data<&[i64], &[u32], &[f64]>) -> Zone {
    fn ends<T: Copy>(values: &[T], lower: impl Fn(T, T) -> T, higher: impl Fn(T, T) -> T) -> Option<(T, T)> {
        let &first = values.first()?;
        Some(
            values
                .iter()
                .fold((first, first), |(low, high), &value| (lower(low, value), higher(high, value))),
        )
    }
    match cells {
        Data::Whole(column) => Zone::Whole(ends(column, Ord::min, Ord::max)),
        Data::Symbol(column) => {
            let ends = ends(column, Ord::min, Ord::max);
            Zone::Whole(ends.map(|(low, high)| (i64::from(low), i64::from(high))))
        }
        // `f64::min` returns the other operand for a NaN, so only a column of nulls ends in one.
        Data::Float(column) => Zone::Float(ends(column, f64::min, f64::max).filter(|(low, _)| !low.is_nan())),
    }
}
