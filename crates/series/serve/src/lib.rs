//! The program `planish-series`: tables of a folder, by HTTP and from the shell.
//!
//! ```text
//!   clients ── HTTP ──> route ──> guard: tokens, roles ──> admission ──┬─> query: Engine ──> format ──> chunks
//!                                                                      └─> intake: decoders ──> tables (log, sync)
//!   clients ── lines over TCP ──> lines: one decoder a connection ─────────────────────────> tables (log, sync)
//!   load, query ──────────────────> the same tables, formats and decoders
//! ```
//!
//! Invariants:
//!
//! - **An answer of a write comes after its rows are in the log**, as the table promises, and an input with a fault
//!   leaves nothing behind.
//! - **An answer that ends well is whole.** One that fails on the way has an error's status, or its connection is cut
//!   in the middle of a chunk.
//! - **Whoever waits, waits within bounds**: of time, of memory, of queries that run, of queries that wait.
//! - **Nobody from outside is let in by default**: loopback alone, and other addresses with tokens only.
//!
//! What clients may say is told in `docs/series-serve.md`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod database;
mod ddl;
mod demo;
mod door;
mod duty;
mod ended;
mod failure;
mod format;
mod http;
mod install;
mod intake;
mod lines;
mod load;
mod metrics;
mod notify;
mod parameters;
mod placing;
mod progress;
mod query;
mod serving;
mod statement;
mod stop;
mod tell;
mod tls;
mod tokens;
mod unit;
mod upkeep;
mod views;

use std::process::ExitCode;

/// Runs the program by its arguments.
#[must_use]
pub fn main() -> ExitCode {
    args::run()
}
