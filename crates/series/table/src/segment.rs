//! A segment: the columns of some rows of a partition, each leased of the arena.

use std::ops::Range;

use planish_arena::{Arena, ArenaError, Lease};

use crate::key::Keys;
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
#[derive(Debug, Clone, Copy)]
pub(crate) enum Data<W, S, F> {
    Whole(W),
    Symbol(S),
    Float(F),
}

/// A column of a segment.
pub(crate) type Slice<'a> = Data<Lease<'a, i64>, Lease<'a, u32>, Lease<'a, f64>>;
/// The cells of a column, lent.
pub(crate) type View<'s> = Data<&'s [i64], &'s [u32], &'s [f64]>;
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

    /// A column of the same kind without rows.
    pub(crate) fn empty_like(&self) -> Self {
        match self {
            Self::Whole(_) => Self::Whole(Vec::new()),
            Self::Symbol(_) => Self::Symbol(Vec::new()),
            Self::Float(_) => Self::Float(Vec::new()),
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        match self {
            Self::Whole(column) => Data::Whole(column),
            Self::Symbol(column) => Data::Symbol(column),
            Self::Float(column) => Data::Float(column),
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

    /// Adds all cells of a column of the same kind.
    pub(crate) fn extend_from_view(&mut self, other: View<'_>) {
        match (self, other) {
            (Self::Whole(mine), Data::Whole(other)) => mine.extend_from_slice(other),
            (Self::Symbol(mine), Data::Symbol(other)) => mine.extend_from_slice(other),
            (Self::Float(mine), Data::Float(other)) => mine.extend_from_slice(other),
            _ => unreachable!("columns of one number are of one kind"),
        }
    }

    /// Adds the rows of some ranges of a column of the same kind.
    pub(crate) fn extend_from_ranges(&mut self, other: &Self, ranges: &[Range<usize>]) {
        ranges.iter().for_each(|range| self.extend_from_view(other.view().cut(range.clone())));
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

impl<'s> View<'s> {
    /// How many cells there are.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Whole(column) => column.len(),
            Self::Symbol(column) => column.len(),
            Self::Float(column) => column.len(),
        }
    }

    pub(crate) fn cut(self, rows: Range<usize>) -> Self {
        match self {
            Self::Whole(column) => Self::Whole(&column[rows]),
            Self::Symbol(column) => Self::Symbol(&column[rows]),
            Self::Float(column) => Self::Float(&column[rows]),
        }
    }
}

/// Rows in order, in memory for more.
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
                Kind::Symbol => Data::Symbol(arena.lease(room)?),
                Kind::Float => Data::Float(arena.lease(room)?),
                Kind::Time | Kind::Int | Kind::Decimal { .. } => Data::Whole(arena.lease(room)?),
            })
        };
        let columns = schema.columns().iter().map(|it| column(it.kind)).collect::<Result<Vec<_>, _>>()?;
        let mut segment = Self { columns, zones: Vec::new(), rows: 0, room };
        segment.clear();
        Ok(segment)
    }

    /// Bytes of its columns, with and without rows.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |column: &Slice<'_>| if matches!(column, Data::Symbol(_)) { 4 } else { 8 };
        self.columns.iter().map(|column| self.room * bytes(column)).sum()
    }

    /// Forgets the rows.
    pub(crate) fn clear(&mut self) {
        self.cut(0);
    }

    /// Keeps the first `rows` rows.
    pub(crate) fn cut(&mut self, rows: usize) {
        self.rows = rows;
        self.zones = (0..self.columns.len()).map(|column| zone_of(self.view(column))).collect();
    }

    /// The cells of a column.
    pub(crate) fn view(&self, column: usize) -> View<'_> {
        let column = match &self.columns[column] {
            Data::Whole(column) => Data::Whole(&column[..]),
            Data::Symbol(column) => Data::Symbol(&column[..]),
            Data::Float(column) => Data::Float(&column[..]),
        };
        column.cut(0..self.rows)
    }

    /// The columns that order its rows.
    pub(crate) fn keys(&self, order: &[usize]) -> Keys<'_> {
        Keys::of(order.iter().map(|&column| self.view(column)))
    }

    /// Writes rows of loose columns in the place of rows that it has: pairs of its row and theirs.
    pub(crate) fn replace(&mut self, rows: &[Loose], pairs: &[(usize, usize)]) {
        for (column, loose) in self.columns.iter_mut().zip(rows) {
            for &(mine, other) in pairs {
                match (&mut *column, loose) {
                    (Data::Whole(column), Data::Whole(loose)) => column[mine] = loose[other],
                    (Data::Symbol(column), Data::Symbol(loose)) => column[mine] = loose[other],
                    (Data::Float(column), Data::Float(loose)) => column[mine] = loose[other],
                    _ => unreachable!("columns of one number are of one kind"),
                }
            }
        }
        self.cut(self.rows);
    }

    /// Takes rows out, which are told in order.
    pub(crate) fn remove(&mut self, gone: &[usize]) {
        fn close_gaps<T: Copy>(cells: &mut [T], rows: usize, gone: &[usize]) {
            let ends = gone.iter().skip(1).copied().chain([rows]);
            for (index, (&row, end)) in gone.iter().zip(ends).enumerate() {
                cells.copy_within(row + 1..end, row - index);
            }
        }
        for column in &mut self.columns {
            match column {
                Data::Whole(column) => close_gaps(column, self.rows, gone),
                Data::Symbol(column) => close_gaps(column, self.rows, gone),
                Data::Float(column) => close_gaps(column, self.rows, gone),
            }
        }
        self.cut(self.rows - gone.len());
    }

    /// Writes rows of loose columns behind its own, for which there is room.
    pub(crate) fn push(&mut self, rows: &[Loose], range: Range<usize>) {
        let place = self.rows..self.rows + range.len();
        for ((column, zone), loose) in self.columns.iter_mut().zip(&mut self.zones).zip(rows) {
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
            *zone = zone.merge(zone_of(loose.view().cut(range.clone())));
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

/// Lowest and highest of the cells of a column.
pub(crate) fn zone_of(cells: View<'_>) -> Zone {
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
