//! What a script of the user does to the data, seen before anything is measured: it may only read.
//!
//! A server keeps its copy of the data from the first block to the last. The baseline runs in the self-check and in
//! every block, a rung only until it has its verdict; so the tables of the baseline would grow older than those of
//! every rung, each rung would seem to gain, and neither placebo nor confirmation, which run on the same copies, would
//! show it.
//!
//! What a statement does is seen by its effect and not by its words, which a function or a `DO` can hide. It runs in
//! the sessions that are measured later: they begin read-only, and their user may read the tables and write none, for
//! whoever begins a transaction `READ WRITE`. What PostgreSQL does not refuse even so, and yet writes (large objects
//! before version 16, numbers of transactions), shows in the server's log, to which nobody else writes by then.

use std::path::Path;

use planish_stats::Rng;
use postgres::Client;
use postgres::error::SqlState;

use super::script::{Script, Statement};
use super::server::{Server, sql_error, until_stopped};
use super::work::SESSION;
use crate::control::Stop;
use crate::error::TrialError;
use crate::sample::ArmError;

/// How often each statement is run. Reading writes too, once: hints for whoever reads the same row next.
const ROUNDS: usize = 2;

/// A statement that takes longer is given up, and is not refused for it: a slice gives it more time than this.
const LIMIT: &str = "SET statement_timeout = '5s'";

/// Runs one transaction of the script on the data set, and refuses it where it does more than to read.
///
/// # Errors
/// The line of the statement that writes or that PostgreSQL does not take, and why; the server is gone, or the time up.
pub(crate) fn rehearse(
    server: &Server,
    file: &Path,
    script: &Script,
    scale: u64,
    stop: &Stop,
) -> Result<(), TrialError> {
    let lost = |error: ArmError| TrialError::of_baseline("seed", &error);
    let mut log = Log { client: server.connect().map_err(lost)? };
    let mut client = server.connect_reader().map_err(lost)?;
    for setting in [SESSION, LIMIT] {
        client.batch_execute(setting).map_err(|error| lost(ArmError::crashed(sql_error(&error))))?;
    }
    let drawn = script.statements(&mut Rng::stream(0, 0), scale);
    let statements = drawn.map_err(|told| refusal(file, 1, &told, "draw smaller numbers"))?;
    let mut written = vec![0; statements.len()];
    for _ in 0..ROUNDS {
        for (statement, written) in statements.iter().zip(&mut written) {
            let before = log.end().map_err(lost)?;
            let is_done = run(&mut client, file, statement, stop)?;
            *written += usize::from(log.end().map_err(lost)? != before);
            if !is_done {
                break;
            }
        }
    }
    match statements.iter().zip(written).find(|(_, written)| *written == ROUNDS) {
        Some((statement, _)) => Err(writes(file, statement, "it writes to the log of the server")),
        None => Ok(()),
    }
}

/// Runs a statement; false where its time was up, and with it its transaction.
fn run(client: &mut Client, file: &Path, statement: &Statement, stop: &Stop) -> Result<bool, TrialError> {
    let ran = until_stopped(client, stop, |client| Ok(client.simple_query(&statement.text).map(drop)));
    let error = match ran.map_err(|error| TrialError::of_baseline("seed", &error))? {
        Ok(()) => return Ok(true),
        Err(error) => error,
    };
    let code = error.code();
    if code == Some(&SqlState::QUERY_CANCELED) {
        let undone = client.batch_execute("ROLLBACK");
        let lost = |error| TrialError::of_baseline("seed", &ArmError::crashed(sql_error(&error)));
        return undone.map(|()| false).map_err(lost);
    }
    let forbidden = [&SqlState::READ_ONLY_SQL_TRANSACTION, &SqlState::INSUFFICIENT_PRIVILEGE];
    if code.is_some_and(|code| forbidden.contains(&code)) {
        return Err(writes(file, statement, &sql_error(&error)));
    }
    let told = format!("PostgreSQL does not take `{}`: {}", statement.text, sql_error(&error));
    Err(refusal(file, statement.line, &told, "try it with psql, on tables that pgbench -i has made"))
}

fn writes(file: &Path, statement: &Statement, told: &str) -> TrialError {
    let told = format!("a script may only read the tables, unlike `{}`: {told}", statement.text);
    let cure =
        "leave it out: what is written in one slice would be read in the next, and age the baseline most";
    refusal(file, statement.line, &told, cure)
}

fn refusal(file: &Path, line: usize, told: &str, cure: &str) -> TrialError {
    TrialError::Usage { what: format!("{}:{line}: {told}", file.display()), cure: cure.to_owned() }
}

/// The write-ahead log of a server.
struct Log {
    client: Client,
}

impl Log {
    /// How far it is written, in the server's own words.
    fn end(&mut self) -> Result<String, ArmError> {
        let row = self.client.query_one("SELECT pg_current_wal_insert_lsn()::text", &[]);
        row.map(|row| row.get(0)).map_err(|error| ArmError::crashed(sql_error(&error)))
    }
}
