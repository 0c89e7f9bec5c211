//! The embedded workloads of `planish prove series`, time-series queries over ticks in an arena, and of `planish prove
//! numa`, scans of tables on several nodes ([`run_scans`]); and [`Ticks`] for whoever wants to try a table. What
//! follows is about the first.
//!
//! It exists to answer one question honestly: what are larger pages worth to an engine of this kind, on this
//! machine? So the same deterministic work runs on pages of any size, and each run tells on which pages it
//! really ran.
//!
//! - The data (trades, quotes, an order table) come from a seed and fill one arena of a chosen size.
//! - A **round** runs each chosen query once, in an order and on rows that the seed decides. Work is only
//!   ever cut between rounds, so the mix of queries is the same however long a run lasts.
//! - An **op** is one row of the driving table: a trade for bars, averages and joins, a key for the lookup.
//!   Each query of a round has the same number of ops.
//! - The checksum covers the results of the first [`CHECKED_ROUNDS`] rounds, so runs of one seed have one
//!   checksum, whatever their pages or length.
//! - The timed part neither allocates nor faults: memory is prefaulted, buffers are reused, and the faults of
//!   the timed part are counted and told, so that it can be seen.
//!
//! CPU time is that of the queries alone, on the clock of the thread that ran them; drawing the next keys is
//! not counted. Latency is the wall time of one query.
#![forbid(unsafe_code)]

mod data;
mod error;
mod options;
mod outcome;
mod query;
mod rng;
mod run;
mod scan;
mod ticks;
mod worker;

pub use error::WorkloadError;
pub use options::{Limit, Mode, Options, Query, parse_bytes};
pub use outcome::{Achieved, Latency, Metrics, OnceOutcome, QueryOutcome, Ready, SliceOutcome};
pub use run::{SCHEMA, run, run_to, run_with};
pub use scan::{
    Place, ScanOptions, ScanOutcome, ScanPlaced, ScanReady, ScanSlice, run_scans, run_scans_with,
};
pub use ticks::{Quotes, TickOptions, Ticks, Trades};
pub use worker::CHECKED_ROUNDS;
