//! What a kernel refuses.

/// Why a kernel did not run. All of these are found before the first row of output is written, except where a
/// variant says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// Two columns of one table differ in length.
    #[error("column {column} has {got} rows, expected {want}")]
    Length {
        /// The column that does not fit.
        column: &'static str,
        /// Rows that the first column has.
        want: usize,
        /// Rows that this column has.
        got: usize,
    },
    /// A time column descends.
    #[error("time goes backwards at row {row}: {time} after {before}")]
    Unsorted {
        /// First row that is earlier than the one before it.
        row: usize,
        /// The time of the row before.
        before: i64,
        /// The time of this row.
        time: i64,
    },
    /// A chunk begins before the end of the chunk that was fed before it.
    #[error("chunk begins at {time}, before the end {before} of the last one")]
    ChunkOrder {
        /// The last time that was fed.
        before: i64,
        /// The first time of this chunk.
        time: i64,
    },
    /// A dense key is not below the number of keys.
    #[error("key {key} at row {row} is not below {count}")]
    KeyRange {
        /// Row of the key.
        row: usize,
        /// The key.
        key: u32,
        /// How many keys there are.
        count: usize,
    },
    /// A parameter is outside its range.
    #[error("{name} is {value}, wanted {wanted}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        wanted: &'static str,
    },
    /// A lookup table was given a key twice; it then holds the rows before.
    #[error("key {key} at row {row} is already in the lookup table")]
    DuplicateKey {
        /// Row of the second one.
        row: usize,
        /// The key.
        key: u64,
    },
}

impl KernelError {
    /// Fails unless `column` has as many rows as the table.
    pub(crate) fn check_length(column: &'static str, want: usize, got: usize) -> Result<(), Self> {
        if want == got { Ok(()) } else { Err(Self::Length { column, want, got }) }
    }

    /// Fails unless the parameter `is_allowed`.
    pub(crate) fn check_parameter(
        name: &'static str,
        value: impl ToString,
        is_allowed: bool,
        wanted: &'static str,
    ) -> Result<(), Self> {
        if is_allowed { Ok(()) } else { Err(Self::Parameter { name, value: value.to_string(), wanted }) }
    }
}
