//! What a table consists of.

use crate::error::TableError;
use crate::table::Cells;

/// Most digits after the point: more do not fit into 64 bits.
const SCALE_MAX: u8 = 18;
/// Most columns: their number is kept in two bytes.
const COLUMNS_MAX: usize = u16::MAX as usize;

/// Kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed 64-bit count of any one unit since any one moment.
    Time,
    /// Text of few different values, kept as numbers of a dictionary.
    Symbol,
    /// Signed 64-bit whole number; there is no null.
    Int,
    /// 64-bit float; NaN is null.
    Float,
    /// Exact decimal: a whole number of the last of `scale` digits after the point; there is no null.
    Decimal {
        /// Digits after the point, at most 18.
        scale: u8,
    },
}

impl Kind {
    /// Its word in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Symbol => "symbol",
            Self::Int => "int",
            Self::Float => "float",
            Self::Decimal { .. } => "decimal",
        }
    }
}

/// A named column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, unique in the table.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// How rows are divided into partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitioning {
    /// Time that a partition spans, in the unit of the time column; partitions begin at its multiples.
    pub span: i64,
    /// Symbols of a partition, in the order in which they were first seen; `None` for all of them.
    pub symbols: Option<u32>,
}

/// Which partition: its group of symbols and the number of its span of time.
pub(crate) type Place = (u32, i64);

/// The columns of a table, checked. The first column of kind time orders the rows; the first of kind symbol, if
/// any, is the one that partitions and scans know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    columns: Vec<Column>,
    time: usize,
    symbol: Option<usize>,
    partitioning: Partitioning,
    /// The columns of the key, as declared.
    key: Vec<usize>,
    /// The columns that order rows: the time, then the others of the key.
    order: Vec<usize>,
}

impl Schema {
    /// Checks columns and partitioning.
    ///
    /// # Errors
    /// [`TableError::Schema`] names the column that has no name, or one that was there before, or too many digits;
    /// the time column when there is none or its span is not above 0; the symbol column when partitions have no
    /// symbols.
    pub fn new(columns: Vec<Column>, partitioning: Partitioning) -> Result<Self, TableError> {
        let error = |column: &str, reason| TableError::Schema { column: column.to_owned(), reason };
        if columns.len() > COLUMNS_MAX {
            return Err(error(&columns[COLUMNS_MAX].name, "is one column too many"));
        }
        for (index, Column { name, kind }) in columns.iter().enumerate() {
            if name.is_empty() {
                return Err(error(&format!("{}", index + 1), "has no name"));
            }
            if columns[..index].iter().any(|other| other.name == *name) {
                return Err(error(name, "is there twice"));
            }
            if matches!(kind, Kind::Decimal { scale } if *scale > SCALE_MAX) {
                return Err(error(name, "has more than 18 digits after the point"));
            }
        }
        let time = columns.iter().position(|column| column.kind == Kind::Time);
        let time = time.ok_or_else(|| error("time", "is missing: one must be of kind time"))?;
        if partitioning.span <= 0 {
            return Err(error(&columns[time].name, "has partitions that span no time"));
        }
        let symbol = columns.iter().position(|column| column.kind == Kind::Symbol);
        match (partitioning.symbols, symbol) {
            (Some(0), _) => return Err(error("symbol", "has partitions without symbols")),
            (Some(_), None) => return Err(error("symbol", "is missing: partitions are by symbol")),
            _ => {}
        }
        Ok(Self { columns, time, symbol, partitioning, key: Vec::new(), order: vec![time] })
    }

    /// The same with a key: of rows that agree in these columns the last that came is there, and rows can be deleted by
    /// it. The time column is part of it, and so is the symbol column where it divides partitions: else a row and its
    /// correction could lie in different ones.
    ///
    /// # Errors
    /// [`TableError::NoColumn`]; [`TableError::Schema`] names the column that is missing in the key, is there twice, or
    /// is a float, which may be NaN and then equals nothing.
    pub fn with_key(mut self, names: &[&str]) -> Result<Self, TableError> {
        let key = names.iter().map(|name| self.find(name)).collect::<Result<Vec<_>, _>>()?;
        let error =
            |column: usize, reason| TableError::Schema { column: self.columns[column].name.clone(), reason };
        for (index, &column) in key.iter().enumerate() {
            if key[..index].contains(&column) {
                return Err(error(column, "is in the key twice"));
            }
            if self.columns[column].kind == Kind::Float {
                return Err(error(column, "is a float, which cannot be in a key"));
            }
        }
        let symbol = self.symbol.filter(|_| self.partitioning.symbols.is_some());
        for column in [Some(self.time), symbol].into_iter().flatten() {
            if !key.contains(&column) {
                return Err(error(column, "must be in the key: partitions are by it"));
            }
        }
        self.order.extend(key.iter().filter(|&&column| column != self.time));
        self.key = key;
        Ok(self)
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of the column that orders the rows.
    #[must_use]
    pub fn time(&self) -> usize {
        self.time
    }

    /// Number of the column of symbols.
    #[must_use]
    pub fn symbol(&self) -> Option<usize> {
        self.symbol
    }

    /// Numbers of the columns of the key, in the order in which it was declared; none without a key.
    #[must_use]
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    pub(crate) fn has_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// The columns that order rows, the time first.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// How rows are divided.
    #[must_use]
    pub fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    /// Number of the column of this name.
    ///
    /// # Errors
    /// [`TableError::NoColumn`] when there is none.
    pub fn find(&self, name: &str) -> Result<usize, TableError> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| TableError::NoColumn { column: name.to_owned() })
    }

    /// Rows of a batch that fits the columns.
    pub(crate) fn check(&self, batch: &[Cells<'_>]) -> Result<usize, TableError> {
        check(self.columns.iter().collect(), batch)
    }

    /// Keys of a batch that fits the key.
    pub(crate) fn check_keys(&self, batch: &[Cells<'_>]) -> Result<usize, TableError> {
        if !self.has_key() {
            return Err(TableError::NoKey);
        }
        check(self.key.iter().map(|&column| &self.columns[column]).collect(), batch)
    }

    /// The partition of a row.
    pub(crate) fn place(&self, time: i64, symbol: u32) -> Place {
        let group = self.partitioning.symbols.map_or(0, |symbols| symbol / symbols);
        (group, time.div_euclid(self.partitioning.span))
    }
}

/// Rows of a batch that fits some columns.
fn check(columns: Vec<&Column>, batch: &[Cells<'_>]) -> Result<usize, TableError> {
    if columns.len() != batch.len() {
        return Err(TableError::Columns { want: columns.len(), got: batch.len() });
    }
    let want = batch.first().map_or(0, Cells::rows);
    for (Column { name, kind }, cells) in columns.into_iter().zip(batch) {
        let (column, got) = (name.clone(), cells.rows());
        if kind.name() != cells.kind_name() {
            return Err(TableError::Kind { column, want: kind.name(), got: cells.kind_name() });
        }
        if got != want {
            return Err(TableError::Length { column, want, got });
        }
        if let Cells::Keyed { texts, keys } = cells
            && let Some(key) = keys.iter().find(|&&key| key as usize >= texts.len())
        {
            return Err(TableError::Key { column, key: *key, texts: texts.len() });
        }
    }
    Ok(want)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(columns: &[(&str, Kind)], span: i64, symbols: Option<u32>) -> Result<Schema, TableError> {
        let column = |&(name, kind): &(&str, Kind)| Column { name: name.to_owned(), kind };
        Schema::new(columns.iter().map(column).collect(), Partitioning { span, symbols })
    }

    #[test]
    fn the_first_time_and_the_first_symbol_count() {
        let columns = [
            ("px", Kind::Float),
            ("s", Kind::Symbol),
            ("t", Kind::Time),
            ("u", Kind::Time),
            ("v", Kind::Symbol),
        ];
        let schema = schema(&columns, 10, Some(4)).unwrap();
        assert_eq!((schema.time(), schema.symbol()), (2, Some(1)));
        assert_eq!(schema.find("v").unwrap(), 4);
        assert!(matches!(schema.find("w"), Err(TableError::NoColumn { column }) if column == "w"));
        // Times are floored: -1 lies in the span before 0.
        assert_eq!([schema.place(-1, 3), schema.place(0, 4), schema.place(19, 8)], [(0, -1), (1, 0), (2, 1)]);
    }

    #[test]
    fn a_key_has_the_columns_that_divide_partitions_and_no_float() {
        let columns = [("px", Kind::Float), ("s", Kind::Symbol), ("t", Kind::Time), ("n", Kind::Int)];
        let by_symbol = schema(&columns, 10, Some(4)).unwrap();
        let keyed = by_symbol.clone().with_key(&["s", "n", "t"]).unwrap();
        assert_eq!((keyed.key(), keyed.order()), (&[1, 3, 2][..], &[2, 1, 3][..]));
        assert_eq!((by_symbol.key(), by_symbol.order()), (&[][..], &[2][..]));
        let wrong = |schema: &Schema, key: &[&str]| match schema.clone().with_key(key) {
            Err(TableError::Schema { column, .. } | TableError::NoColumn { column }) => column,
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(&by_symbol, &["s", "t", "px"]), "px");
        assert_eq!(wrong(&by_symbol, &["s", "t", "s"]), "s");
        assert_eq!(wrong(&by_symbol, &["s", "n"]), "t");
        assert_eq!(wrong(&by_symbol, &["t"]), "s");
        assert_eq!(wrong(&by_symbol, &["t", "s", "x"]), "x");
        let by_time = schema(&columns, 10, None).unwrap();
        assert_eq!(by_time.with_key(&["t"]).unwrap().order(), [2]);
    }

    #[test]
    fn what_makes_no_table_is_named() {
        let name = |result: Result<Schema, TableError>| match result {
            Err(TableError::Schema { column, .. }) => column,
            other => panic!("{other:?}"),
        };
        let time = ("t", Kind::Time);
        assert_eq!(name(schema(&[time, ("", Kind::Int)], 1, None)), "2");
        assert_eq!(name(schema(&[time, ("t", Kind::Int)], 1, None)), "t");
        assert_eq!(name(schema(&[time, ("d", Kind::Decimal { scale: 19 })], 1, None)), "d");
        assert_eq!(name(schema(&[("a", Kind::Int)], 1, None)), "time");
        assert_eq!(name(schema(&[time], 0, None)), "t");
        assert_eq!(name(schema(&[time], 1, Some(5))), "symbol");
        assert_eq!(name(schema(&[time, ("s", Kind::Symbol)], 1, Some(0))), "symbol");
    }
}
