//! What a query is refused for.

use datafusion::error::DataFusionError;
use planish_kernels::KernelError;
use planish_table::TableError;

use crate::files::Files;

/// Why a query has no answer. Nothing was changed: queries only read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The text could not be parsed, planned or executed.
    #[error("cannot {action} the query")]
    Query {
        /// `parse`, `plan` or `execute`.
        action: &'static str,
        /// What DataFusion says.
        #[source]
        source: Box<DataFusionError>,
    },
    /// The text has more than one statement, or none.
    #[error("{count} statements in one query, expected one")]
    Statements {
        /// How many there are.
        count: usize,
    },
    /// A statement that would change something.
    #[error("{statement} is not for queries, which only read")]
    NotAQuery {
        /// Its first word.
        statement: String,
    },
    /// A definition of a view that cannot be kept.
    #[error("{what} (line {line}, column {column}) cannot be kept by a materialized view; {cure}")]
    NotKept {
        /// What of it.
        what: String,
        /// Where that begins, from 1 on; 0 where nobody knows.
        line: u64,
        /// The same.
        column: u64,
        /// What helps.
        cure: String,
    },
    /// A view of a table that is not there.
    #[error("no table {name} to make a view of; views of views are not there")]
    NoTable {
        /// The name.
        name: String,
    },
    /// A view by a function that has another value at another moment.
    #[error("a function of the moment, as now(), cannot be kept by a materialized view; write a constant")]
    OfTheMoment,
    /// A table of this name is there.
    #[error("there is a table or view {name} already")]
    Exists {
        /// Its name.
        name: String,
    },
    /// The folder of files that may be read is not to be had.
    #[error("cannot let queries read {files}")]
    Files {
        /// What was to be allowed.
        files: Files,
        /// Why not.
        source: std::io::Error,
    },
    /// A prepared statement got other values than it has places for.
    #[error("{got} values for a statement with {want} places")]
    Values {
        /// Places.
        want: usize,
        /// Values.
        got: usize,
    },
    /// The system gives no threads.
    #[error("cannot start threads for kernels")]
    Threads(#[source] std::io::Error),
    /// A table could not be read.
    #[error("cannot read the table")]
    Table(#[from] TableError),
    /// A kernel refused its columns.
    #[error("a kernel refused its columns")]
    Kernel(#[from] KernelError),
}

impl SqlError {
    /// Of a step of DataFusion.
    pub(crate) fn query(action: &'static str) -> impl Fn(DataFusionError) -> Self {
        move |source| Self::Query { action, source: Box::new(source) }
    }
}

/// On the way through DataFusion.
impl From<SqlError> for DataFusionError {
    fn from(error: SqlError) -> Self {
        Self::External(Box::new(error))
    }
}
