//! What is not taken in, where it stands, and what to do about it.

use std::fmt;

use planish_table::TableError;

/// A row that was not taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line of the input, from 1; the row of a stream of Arrow.
    pub line: u64,
    /// Byte of the line, from 1; the field of a line of CSV, or of a row of Arrow.
    pub column: u64,
    /// What is wrong.
    pub what: What,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}; {}", self.line, self.column, self.what, self.what.cure())
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum What {
    /// The text is not what the format asks for at this place.
    #[error("expected {expected}")]
    Syntax {
        /// What should stand here.
        expected: &'static str,
    },
    /// The parser of the format says no.
    #[error("{reason}")]
    Parser {
        /// In its words.
        reason: Box<str>,
    },
    /// No table has this name.
    #[error("no table {name}")]
    NoTable {
        /// The beginning of the name.
        name: Box<str>,
    },
    /// The table has no such column.
    #[error("the table has no column {name}")]
    NoColumn {
        /// The beginning of the name.
        name: Box<str>,
    },
    /// A column has two values.
    #[error("column {name} is there twice")]
    Twice {
        /// Its name.
        name: Box<str>,
    },
    /// A value is not of the column's kind, or not exactly.
    #[error("\"{text}\" is no {kind}, of which column {name} is")]
    Value {
        /// Name of the column.
        name: Box<str>,
        /// Its kind.
        kind: &'static str,
        /// The beginning of the value.
        text: Box<str>,
        /// What would be one.
        cure: &'static str,
    },
    /// A column that knows no null has no value.
    #[error("column {name} has no value")]
    Missing {
        /// Its name.
        name: Box<str>,
    },
    /// A row has fewer or more fields than there are columns.
    #[error("{got} fields for {want} columns")]
    Fields {
        /// Columns that were named.
        want: usize,
        /// Fields of the row.
        got: usize,
    },
    /// A time that the table's unit, in 64 bits, has no number for.
    #[error("time {text} is outside of what the table's unit can count")]
    Time {
        /// The beginning of the time.
        text: Box<str>,
    },
    /// A row from before what the table keeps.
    #[error("time {time} is before what the table keeps")]
    TooOld {
        /// In the table's unit.
        time: i64,
        /// The earliest time that is kept.
        kept_from: i64,
    },
    /// A line, or a row, that is longer than what is kept in memory for it.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The input ended in the middle.
    #[error("the input ends in the middle of a row")]
    Ended,
}

impl What {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::Syntax { .. } | Self::Parser { .. } => "correct the line".to_owned(),
            Self::NoTable { .. } => "create the table first, or correct the name".to_owned(),
            Self::NoColumn { .. } => "correct the name, or have unknown columns left out".to_owned(),
            Self::Twice { .. } => "leave one of them".to_owned(),
            Self::Value { cure, .. } => (*cure).to_owned(),
            Self::Missing { .. } => "send one, or give the column a value for where there is none".to_owned(),
            Self::Fields { .. } => "quote fields that hold a delimiter".to_owned(),
            Self::Time { .. } => "check the unit of the times that are sent".to_owned(),
            Self::TooOld { kept_from, .. } => format!("send rows from {kept_from} on"),
            Self::TooLong { .. } => "close quotes, or raise the limit".to_owned(),
            Self::Ended => "send the rest".to_owned(),
        }
    }
}

/// Why an input was not taken in to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// A row has a fault, and rows with faults were not to be left out. Nothing of this input was taken in.
    #[error("{0}")]
    Refused(Fault),
    /// A row has a fault, and was to end the input: rows before it are taken in, and none behind it.
    #[error("{0}")]
    Stopped(Fault),
    /// More rows than one batch holds, in an input that is to be taken in as a whole or not at all. Nothing of it was.
    #[error(
        "line {line}: more rows than are taken in at once ({rows} of {limit_bytes} bytes); send them in parts"
    )]
    TooMuch {
        /// The line at which it was too much.
        line: u64,
        /// Rows that a batch may have.
        rows: usize,
        /// Bytes that a batch may have.
        limit_bytes: usize,
    },
    /// Nothing more can be read of the input: what comes next has no beginning.
    #[error("{0}")]
    Broken(Fault),
    /// The columns of the input do not fit the table. Nothing was taken in.
    #[error("the input has no rows for this table: {0}")]
    Columns(Fault),
    /// The value for where there is none is none of this column.
    #[error("{0}; {cure}", cure = .0.cure())]
    Fill(What),
    /// The table refused rows.
    #[error("lines {first} to {last} were not taken in")]
    Table {
        /// Line of the first row of the batch.
        first: u64,
        /// Line of the last.
        last: u64,
        /// What the table says.
        #[source]
        source: TableError,
    },
    /// Bytes after an error: nobody knows where the next row begins.
    #[error("the input ended with an error before; begin a new one")]
    Ended,
}

/// Bytes of somebody's text that are shown.
const SHOWN_BYTES: usize = 40;

/// The beginning of a text, fit for a message: on one line, whatever it is.
pub(crate) fn shown(text: &[u8]) -> Box<str> {
    let beginning = &text[..text.len().min(SHOWN_BYTES)];
    let mut shown = String::from_utf8_lossy(beginning).escape_debug().collect::<String>();
    if beginning.len() < text.len() {
        shown.push_str("...");
    }
    shown.into()
}
