//! What a table refuses.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use planish_arena::ArenaError;

/// Why something was not done. The table is then as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The columns do not make a table.
    #[error("column {column}: {reason}")]
    Schema {
        /// Name of the column.
        column: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A batch has another number of columns than the table.
    #[error("a batch of {got} columns for a table of {want}")]
    Columns {
        /// Columns of the table.
        want: usize,
        /// Columns of the batch.
        got: usize,
    },
    /// A column of a batch is of another kind than that of the table.
    #[error("column {column} is of kind {want}, the batch has {got}")]
    Kind {
        /// Name of the column.
        column: String,
        /// Its kind in the table.
        want: &'static str,
        /// Its kind in the batch.
        got: &'static str,
    },
    /// Two columns of a batch differ in length.
    #[error("column {column} has {got} rows, expected {want}")]
    Length {
        /// Name of the column.
        column: String,
        /// Rows of the first column.
        want: usize,
        /// Rows of this one.
        got: usize,
    },
    /// There is no such column.
    #[error("no column {column}")]
    NoColumn {
        /// What was asked for.
        column: String,
    },
    /// Rows were to be deleted by a key.
    #[error("the table has no key to delete by")]
    NoKey,
    /// More symbols than a dictionary can number.
    #[error("more than {limit} symbols")]
    Symbols {
        /// How many there can be.
        limit: usize,
    },
    /// No memory for the rows.
    #[error("no memory for {rows} rows")]
    Memory {
        /// Rows that were to be appended.
        rows: usize,
        /// What the arena says.
        #[source]
        source: ArenaError,
    },
    /// A cell of a column of symbols names a text that did not come with it.
    #[error("column {column} has a key {key} for {texts} texts")]
    Key {
        /// Name of the column.
        column: String,
        /// The key.
        key: u32,
        /// How many texts there are.
        texts: usize,
    },
    /// A decimal that no reader of the flushed files could hold.
    #[error("column {column} has {value} in units of its last digit, which is more than 18 digits")]
    Digits {
        /// Name of the column.
        column: String,
        /// The cell.
        value: i64,
    },
    /// Rows from before what the table keeps.
    #[error("a row of time {time}; the table keeps rows from {kept_from} on")]
    TooOld {
        /// The earliest time of the batch.
        time: i64,
        /// The earliest time that is kept.
        kept_from: i64,
    },
    /// The producer of a batch has no name, or too long a one, or numbers it 0.
    #[error("the producer of a batch {reason}")]
    Producer {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The batch before this one of the same producer never came, or was refused.
    #[error("batch {got} of producer {producer}, whose next is {want}")]
    SequenceGap {
        /// Name of the producer.
        producer: String,
        /// The number that is to come next.
        want: u64,
        /// The number of this batch.
        got: u64,
    },
    /// A batch of more bytes than a frame of the log may have.
    #[error("a batch of {bytes} bytes, more than {limit}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// How many there can be.
        limit: usize,
    },
    /// Another process, or another table of this one, has the folder.
    #[error("{path} is in use")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds a table already.
    #[error("{path} holds a table already")]
    Exists {
        /// Its manifest.
        path: PathBuf,
    },
    /// The kernel refused something of a file.
    #[error("cannot {action} {path}")]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// A batch could not be written to the log. Nothing of it is there, and the log may go on: a full disk, above all.
    #[error("cannot write {path}: the batch was not taken in")]
    LogWrite {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        #[source]
        source: Arc<io::Error>,
    },
    /// The log could not be synced once, and takes nothing any more: nobody knows what the disk holds.
    #[error("cannot sync {path}: nothing is taken in until the table is opened anew")]
    LogLost {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Arc<io::Error>,
    },
    /// A file is not as it was written.
    #[error("{path} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The log begins too late.
    #[error("{path} begins with batch {first}; the batches from {from} on are gone")]
    LogMissing {
        /// The first file that there is.
        path: PathBuf,
        /// The first batch that is needed.
        from: u64,
        /// The first that there is.
        first: u64,
    },
    /// A later planish wrote this.
    #[error("{path} is of version {version}; this planish knows {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest that is known.
        known: u32,
    },
}

impl TableError {
    /// Whether a file is not there that was to be read: in a table that another process writes, one that a flush of it
    /// has taken away.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
