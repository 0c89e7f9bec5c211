//! Fills: rows for the buckets of time in which there is nothing.
//!
//! ```text
//!   SELECT time_bucket_gapfill(w, ts) b, locf(max(p)) FROM t GROUP BY b
//!
//!   Projection: locf(..)             Projection: column        Projection
//!     Aggregate: gapfill   ─ analyse ─>  GapFill       ─ planner ─>  GapFillExec ──> fill_bars
//!                                          Aggregate                  AggregateExec, or the kernel of bars
//! ```
//!
//! The functions are those of TimescaleDB. HAVING goes below the node: it is about groups that are there.

mod analyse;
mod exec;
mod marks;
mod node;
mod planner;
mod range;

pub(crate) use analyse::Fills;
pub(crate) use marks::functions;
pub(crate) use planner::FillPlanner;
