//! Tables as DataFusion sees them: what they hold ([`SeriesTable`]), and how a query gets rows out of them.
//!
//! What of WHERE is a range of time or one symbol is answered by the table itself, exactly, from partitions, zones and
//! the order of rows; the rest is left to DataFusion, which filters the rows that come. Nothing of it is dropped.

pub(crate) mod arrays;
pub(crate) mod exec;
mod provider;
mod pushdown;
pub(crate) mod source;
pub(crate) mod spare;

pub(crate) use exec::ScanExec;
pub(crate) use provider::{Provider, SeriesTable};
pub(crate) use pushdown::Pushdown;
pub use source::Source;
