//! One query of an existing cluster, in a session that stays before and after it, so that both can be mapped.

use std::time::{Duration, Instant};

use postgres::Client;
use postgres::fallible_iterator::FallibleIterator;

use super::existing::{connect, no_answer};
use super::server::sql_error;
use crate::error::TrialError;

/// A session that can run one query, in a transaction that changes no table.
pub struct Query {
    client: Client,
    backend: u32,
}

/// A query that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queried {
    /// The rows that it gave. They were counted, and not kept.
    pub rows: u64,
    /// How long it took, its rows on their way to us included.
    pub took: Duration,
}

impl Query {
    /// Opens the session; the server has started its backend when this returns.
    ///
    /// # Errors
    /// The string is malformed, the server does not let us in or does not answer.
    pub fn open(conn: &str) -> Result<Self, TrialError> {
        let mut client = connect(conn)?;
        // A question to the server has a limit, and a query takes what it takes.
        client.batch_execute("SET statement_timeout = 0").map_err(no_answer)?;
        let row = client.query_one("SELECT pg_backend_pid()", &[]).map_err(no_answer)?;
        Ok(Self { client, backend: row.get::<_, i32>(0).unsigned_abs() })
    }

    /// The process that serves it.
    #[must_use]
    pub fn backend(&self) -> u32 {
        self.backend
    }

    /// Runs one statement to its end.
    ///
    /// # Errors
    /// What the server says of it; a statement that writes is refused by it.
    pub fn run(&mut self, sql: &str) -> Result<Queried, TrialError> {
        let begun = Instant::now();
        let none: [i32; 0] = [];
        // Not by the session's default alone: a block of code could change that, and commit.
        let mut transaction = self.client.build_transaction().read_only(true).start().map_err(no_answer)?;
        let rows = transaction.query_raw(sql, none).and_then(FallibleIterator::count);
        let rows = rows.map_err(|error| TrialError::Usage {
            what: format!("the server refuses the query: {}", sql_error(&error)),
            cure: "give --query one statement that only reads: the session is read-only".to_owned(),
        })?;
        Ok(Queried { rows: rows as u64, took: begun.elapsed() })
    }
}
