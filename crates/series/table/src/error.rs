//! What a table refuses.

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
}
