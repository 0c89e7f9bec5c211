//! SQL over time-series tables: DataFusion in front of the kernels.
//!
//! ```text
//!   Engine ── text ──> parse ──> DataFusion: plan, optimize ──> operators ──> batches of Arrow
//!                        │              │                          │
//!                        │              ├─ scan: tables, and what of WHERE they answer themselves
//!                        │              ├─ files: Parquet, CSV and Arrow where they lie
//!                        │              ├─ functions: xbar, time_bucket, vwap, ema
//!                        │              ├─ fill: rows for buckets of time in which there is nothing
//!                        └──────────────┴─ join: ASOF JOIN and WINDOW JOIN
//!                                                                  └─ kernel: under aggregates and windows over scans
//! ```
//!
//! Invariants:
//!
//! - **No condition is dropped.** What a table does not answer exactly is left to DataFusion.
//! - **A kernel runs where its answer is SQL's**, and where it finds that it is not, the operators that it stands for
//!   run.
//! - **Plans hold no rows.** A plan that is kept answers with what the table has when it runs.
//! - **Queries only read**: rows, and nothing else; a statement that would write is refused.
//!
//! What answers mean, and what is not there, is told in `docs/series-sql.md`.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod files;
mod fill;
mod functions;
mod give_way;
mod join;
mod kernel;
mod parse;
mod scan;
mod view;

pub use engine::{Answer, Engine, Prepared};
pub use error::SqlError;
pub use files::Files;
pub use scan::Source;
pub use view::{Definition, View, ViewSize};
