//! Joins by time: ASOF JOIN and WINDOW JOIN.
//!
//! ```text
//!   LEFT JOIN .. ON asof_rows(..) AND ..        ┬─ analyse ──> TimeJoin ── planner ──> TimeJoinExec ──> asof
//!   wj_avg(..) over LEFT JOIN .. window_rows()  ┘                                                    └─> window
//! ```
//!
//! The node is no join to DataFusion's optimizer, on purpose: a condition of WHERE on a right column must not reach
//! the right table, where it would change who the partners are.

mod analyse;
mod asof;
mod exec;
mod marks;
mod node;
mod planner;
mod range;
mod sides;
mod window;

pub(crate) use analyse::TimeJoins;
pub(crate) use marks::{ASOF_ROWS, WINDOW_ROWS, functions};
pub(crate) use planner::Planner;
pub(crate) use range::RangeJoinExec;
