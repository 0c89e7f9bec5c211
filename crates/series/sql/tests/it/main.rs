//! SQL from outside: against plain loops over rows, against DataFusion without kernels, and against DuckDB.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a helper fails its test")]
#![expect(clippy::disallowed_methods, reason = "files of these tests")]

mod bars;
mod duckdb;
mod files;
mod fills;
mod fixture;
mod joins;
mod limits;
mod peers;
mod plans;
mod queries;
mod ranges;
mod tables;
mod views;
