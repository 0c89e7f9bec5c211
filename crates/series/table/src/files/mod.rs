//! Files of sealed partitions: Parquet, as DuckDB, Polars, pandas and Arrow read it.
//!
//! A file holds all rows of one partition that were in memory when it was written, in order. Rows of it that were
//! deleted or replaced later are marked in the manifest, until the partition is written anew. Types: a time is
//! INT64, with the unit that the table was made with, if any; a symbol is text; an int INT64; a decimal DECIMAL(18,
//! scale); a float DOUBLE, and NaN, which is null in this engine, is null in the file.

mod read;
mod runs;
mod write;

use serde::{Deserialize, Serialize};

use crate::scan::Filter;
use crate::schema::{Kind, Place};

pub use read::FileRows;
pub(crate) use read::read;
pub use runs::Runs;
pub(crate) use write::{Block, Source, write};

/// A file of a table, as the manifest tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableFile {
    /// Its name in the folder.
    pub name: String,
    /// Its group of symbols.
    pub group: u32,
    /// The number of its span of time.
    pub span: i64,
    /// Rows of it.
    pub rows: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// CRC-32C of those.
    pub crc32c: u32,
    /// What each column takes, and lies between.
    pub columns: Vec<FileColumn>,
    /// Rows of it that were deleted or replaced since. [`Reading::read_file`](crate::Reading::read_file) leaves them
    /// out; other readers of the file see them, until [`Durable::compact`](crate::Durable::compact).
    #[serde(default, skip_serializing_if = "Runs::is_empty")]
    pub gone: Runs,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileColumn {
    /// Its name.
    pub name: String,
    /// How its values are written.
    pub codec: Codec,
    /// Bytes of its values in memory.
    pub memory_bytes: u64,
    /// Bytes of them in the file.
    pub file_bytes: u64,
    /// Its lowest and highest value.
    pub zone: FileZone,
}

impl TableFile {
    /// Its partition.
    pub(crate) fn place(&self) -> Place {
        (self.group, self.span)
    }

    /// Rows of it that are not gone.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.rows.saturating_sub(self.gone.rows())
    }

    /// Whether its zones allow rows of a filter; `time` and `symbol` are the numbers of these columns.
    #[must_use]
    pub(crate) fn may_hold(&self, time: usize, symbol: Option<usize>, filter: &Filter) -> bool {
        let is_time = match self.columns.get(time).map(|column| &column.zone) {
            Some(FileZone::Whole(low, high)) => *low <= filter.to && filter.from <= *high,
            _ => true,
        };
        let zone = symbol.and_then(|column| self.columns.get(column)).map(|column| &column.zone);
        let is_symbol = match (zone, filter.symbol) {
            (Some(FileZone::Symbol(low, high)), Some(symbol)) => (*low..=*high).contains(&symbol),
            _ => true,
        };
        is_time && is_symbol
    }
}

impl FileColumn {
    /// How many times smaller it is in the file than in memory.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.memory_bytes as f64 / self.file_bytes.max(1) as f64
    }
}

/// Lowest and highest value of a column in a file, by which whole files need not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileZone {
    /// Of times, ints, and decimals in units of their last digit.
    Whole(i64, i64),
    /// Of symbols, by their numbers in the table's dictionary.
    Symbol(u32, u32),
    /// Of floats, as text: JSON has no infinity.
    Float(String, String),
    /// Nothing but nulls.
    Null,
}

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codec {
    /// First this.
    pub encoding: Encoding,
    /// Then this.
    pub compression: Compression,
}

/// How values become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As they are.
    Plain,
    /// Numbers of a dictionary, as long as that stays small; then as they are. What symbols always get.
    Dictionary,
    /// Differences in as few bits as they need (DELTA_BINARY_PACKED); whole numbers only.
    Delta,
    /// First bytes together, second bytes together, and so on (BYTE_STREAM_SPLIT): floats that resemble each other.
    Split,
}

/// How bytes become fewer. All of them without C: zstd is left out on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4_RAW: the quickest to read.
    Lz4,
    /// For readers that know nothing newer.
    Snappy,
}

impl Codec {
    /// What a column of a kind gets when nobody says otherwise.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        let encoding = match kind {
            Kind::Time => Encoding::Delta,
            Kind::Symbol | Kind::Float => Encoding::Dictionary,
            Kind::Int | Kind::Decimal { .. } => Encoding::Delta,
        };
        Self { encoding, compression: Compression::Lz4 }
    }

    /// Whether values of a kind can be written so.
    pub(crate) fn fits(self, kind: Kind) -> bool {
        match self.encoding {
            Encoding::Plain | Encoding::Dictionary => true,
            Encoding::Delta => !matches!(kind, Kind::Symbol | Kind::Float),
            Encoding::Split => kind != Kind::Symbol,
        }
    }
}
