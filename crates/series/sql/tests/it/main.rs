//! SQL from outside: against plain loops over rows, against DataFusion without kernels, and against DuckDB.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a helper fails its test")]

mod bars;
mod duckdb;
mod fixture;
mod joins;
mod limits;
mod plans;
mod queries;
mod tables;
