//! What is not done, as clients are told: a status of HTTP, a number and a word as ClickHouse has them, and a text.

use std::error::Error;

use datafusion::common::{DataFusionError, SchemaError};
use hyper::StatusCode;
use planish_ingest::{IngestError, What};
use planish_sql::SqlError;
use planish_table::TableError;

use crate::views::ViewsError;

/// Kinds of failures, with the names that clients of ClickHouse know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    BadArguments,
    Syntax,
    UnknownTable,
    UnknownColumn,
    UnknownFunction,
    UnknownFormat,
    UnknownSetting,
    UnknownDatabase,
    TableExists,
    NotImplemented,
    IncorrectData,
    TooLarge,
    ReadOnly,
    Denied,
    Unauthenticated,
    Timeout,
    TooMany,
    Memory,
    TableMemory,
    Gone,
    NoPage,
    Method,
    Internal,
}

impl Kind {
    /// Status, number and word.
    pub(crate) fn told(self) -> (StatusCode, u16, &'static str) {
        match self {
            Self::BadArguments => (StatusCode::BAD_REQUEST, 36, "BAD_ARGUMENTS"),
            Self::Syntax => (StatusCode::BAD_REQUEST, 62, "SYNTAX_ERROR"),
            Self::UnknownTable => (StatusCode::NOT_FOUND, 60, "UNKNOWN_TABLE"),
            Self::UnknownColumn => (StatusCode::NOT_FOUND, 47, "UNKNOWN_IDENTIFIER"),
            Self::UnknownFunction => (StatusCode::NOT_FOUND, 46, "UNKNOWN_FUNCTION"),
            Self::UnknownFormat => (StatusCode::NOT_FOUND, 73, "UNKNOWN_FORMAT"),
            Self::UnknownSetting => (StatusCode::NOT_FOUND, 115, "UNKNOWN_SETTING"),
            Self::UnknownDatabase => (StatusCode::NOT_FOUND, 81, "UNKNOWN_DATABASE"),
            Self::TableExists => (StatusCode::CONFLICT, 57, "TABLE_ALREADY_EXISTS"),
            Self::NotImplemented => (StatusCode::NOT_IMPLEMENTED, 48, "NOT_IMPLEMENTED"),
            Self::IncorrectData => (StatusCode::BAD_REQUEST, 117, "INCORRECT_DATA"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, 223, "QUERY_IS_TOO_LARGE"),
            Self::ReadOnly => (StatusCode::FORBIDDEN, 164, "READONLY"),
            Self::Denied => (StatusCode::FORBIDDEN, 497, "ACCESS_DENIED"),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, 516, "AUTHENTICATION_FAILED"),
            Self::Timeout => (StatusCode::REQUEST_TIMEOUT, 159, "TIMEOUT_EXCEEDED"),
            Self::TooMany => (StatusCode::SERVICE_UNAVAILABLE, 202, "TOO_MANY_SIMULTANEOUS_QUERIES"),
            Self::Memory => (StatusCode::INTERNAL_SERVER_ERROR, 241, "MEMORY_LIMIT_EXCEEDED"),
            Self::TableMemory => (StatusCode::SERVICE_UNAVAILABLE, 241, "MEMORY_LIMIT_EXCEEDED"),
            Self::Gone => (StatusCode::BAD_REQUEST, 23, "CANNOT_READ_FROM_ISTREAM"),
            Self::NoPage => (StatusCode::NOT_FOUND, 404, "NO_SUCH_PATH"),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, 405, "METHOD_NOT_ALLOWED"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, 49, "LOGICAL_ERROR"),
        }
    }

    /// Whether the same may go well a second later.
    pub(crate) fn is_for_now(self) -> bool {
        matches!(self, Self::TooMany | Self::TableMemory)
    }
}

/// Why something was not done, with the text for who asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The text of an answer: number, text and word, on one line and its end.
    pub(crate) fn line(&self) -> String {
        let (_, code, word) = self.kind.told();
        format!("Code: {code}. DB::Exception: {} ({word})\n", self.text.trim_end().replace('\n', " "))
    }
}

/// An error with all its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        // Some errors say what their cause says.
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

/// The causes of an error that are DataFusion's, the first last.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> Vec<&'e DataFusionError> {
    let mut causes = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let boxed = || error.downcast_ref::<Box<DataFusionError>>().map(|boxed| &**boxed);
        causes.extend(error.downcast_ref::<DataFusionError>().or_else(boxed));
        next = error.source();
    }
    causes
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        match &error {
            SqlError::NotAQuery { .. } | SqlError::NotKept { .. } | SqlError::OfTheMoment => {
                Self::new(Kind::NotImplemented, error.to_string())
            }
            SqlError::Statements { .. } => Self::new(Kind::Syntax, error.to_string()),
            SqlError::NoTable { .. } => Self::new(Kind::UnknownTable, error.to_string()),
            SqlError::Exists { .. } => Self::new(Kind::TableExists, error.to_string()),
            SqlError::Query { action: "parse", .. } => Self::new(Kind::Syntax, text_of(&error)),
            _ => Self::new(kind_of(&error), text_of(&error)),
        }
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::new(kind_of(&error), text_of(&error))
    }
}

impl From<datafusion::arrow::error::ArrowError> for Failure {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        Self::new(Kind::Internal, error.to_string())
    }
}

/// The text of what began it, without the words of who passed it on.
fn text_of(error: &(dyn Error + 'static)) -> String {
    match causes(error).last() {
        Some(DataFusionError::External(error)) => chain(error.as_ref()),
        Some(cause) => cause.strip_backtrace(),
        None => chain(error),
    }
}

fn kind_of(error: &(dyn Error + 'static)) -> Kind {
    let is_query =
        !matches!(error.downcast_ref::<SqlError>(), None | Some(SqlError::Query { action: "execute", .. }));
    match causes(error).last() {
        Some(DataFusionError::ResourcesExhausted(_)) => Kind::Memory,
        Some(DataFusionError::NotImplemented(_)) => Kind::NotImplemented,
        Some(DataFusionError::SQL(..)) => Kind::Syntax,
        Some(DataFusionError::SchemaError(cause, _)) => match **cause {
            SchemaError::FieldNotFound { .. } => Kind::UnknownColumn,
            _ => Kind::BadArguments,
        },
        // DataFusion has words for these, and no variants.
        Some(DataFusionError::Plan(text)) if text.starts_with("table '") => Kind::UnknownTable,
        Some(DataFusionError::Plan(text)) if text.starts_with("Invalid function") => Kind::UnknownFunction,
        Some(DataFusionError::Plan(_) | DataFusionError::Configuration(_)) => Kind::BadArguments,
        // What values do while they are computed: a division by zero, a text that is no number.
        Some(DataFusionError::ArrowError(..) | DataFusionError::Execution(_)) => Kind::BadArguments,
        _ if is_query => Kind::BadArguments,
        _ => Kind::Internal,
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        let kind = match &error {
            TableError::Memory { .. } => Kind::TableMemory,
            TableError::TooLong { .. } => Kind::TooLarge,
            TableError::Digits { .. } | TableError::TooOld { .. } | TableError::Symbols { .. } => {
                Kind::IncorrectData
            }
            TableError::Exists { .. } => Kind::TableExists,
            TableError::Schema { .. } => Kind::BadArguments,
            _ => Kind::Internal,
        };
        Self::new(kind, chain(&error))
    }
}

impl From<ViewsError> for Failure {
    fn from(error: ViewsError) -> Self {
        Self::new(Kind::Internal, chain(&error))
    }
}

impl From<IngestError> for Failure {
    fn from(error: IngestError) -> Self {
        let text = chain(&error);
        match error {
            IngestError::Refused(fault)
            | IngestError::Stopped(fault)
            | IngestError::Broken(fault)
            | IngestError::Columns(fault) => {
                let kind = match fault.what {
                    What::NoTable { .. } => Kind::UnknownTable,
                    _ => Kind::IncorrectData,
                };
                Self::new(kind, text)
            }
            IngestError::TooMuch { .. } => Self::new(Kind::TooLarge, text),
            IngestError::Table { source, .. } => Self::new(Self::from(source).kind, text),
            _ => Self::new(Kind::BadArguments, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_line_with_its_number_and_word() {
        let failure = Failure::from(TableError::TooOld { time: 1, kept_from: 5 });
        assert_eq!(
            failure.line(),
            "Code: 117. DB::Exception: a row of time 1; the table keeps rows from 5 on (INCORRECT_DATA)\n"
        );
        assert_eq!(failure.kind.told().0, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_cause_counts_through_boxes_of_errors() {
        let inner = DataFusionError::ResourcesExhausted("too little".to_owned());
        let inner = SqlError::Query { action: "execute", source: Box::new(inner) };
        let outer = DataFusionError::External(Box::new(inner));
        let outer = SqlError::Query { action: "execute", source: Box::new(outer) };
        let failure = Failure::from(outer);
        assert_eq!(failure.kind, Kind::Memory);
        assert_eq!(failure.text, "Resources exhausted: too little");
    }
}
