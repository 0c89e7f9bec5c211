//! Window joins as plain SQL writes them: a join by a range of times, and groups of the rows of one side.
//!
//! ```text
//!   SELECT t.ts, avg(q.price) FROM t JOIN q ON q.sym = t.sym AND q.ts BETWEEN t.ts - 5 AND t.ts + 5 GROUP BY t.ts
//!
//!   groups ── join of all pairs ─┬─ t          RangeJoinExec ─┬─ t
//!                                └─ q    ──>                  ├─ q
//!                                                             └─ groups ── join ..   (otherwise)
//! ```
//!
//! DataFusion makes every pair of rows before it adds them up. The kernel adds up the window of each row of the grouped
//! side, and makes no pair. Rows of one group are merged behind it, so that nothing need be unique; where the time is
//! among the groups and no two rows have the same, which is looked at each time, each row is its group.
//!
//! Invariant: an answer is that of the plan which stands below as `otherwise`, or that plan runs. It runs for what a
//! kernel that knows floats alone has another answer to: NaN among the values (which SQL adds up, and which are nulls
//! to the kernel), whole numbers that are no floats, and windows that reach beyond the ends of all times.

mod exec;
mod groups;
mod recognise;
mod values;

use std::fmt;

use crate::join::exec::OnRows;

pub(crate) use exec::RangeJoinExec;

/// What a plan asks for. `left` is the side that is grouped, wherever it stands in the query.
#[derive(Debug)]
struct RangeJoin {
    /// Times, keys, and what is added up.
    on: OnRows,
    from: i64,
    to: i64,
    /// How far from a time of either side the condition computes.
    reach: i64,
    /// Whether left rows without a partner stay.
    keeps_left: bool,
    /// Columns of the left side that are grouped by.
    groups: Vec<usize>,
    /// What is wanted of each group.
    wanted: Vec<Wanted>,
    /// Whether the time of the left side is among the groups.
    by_time: bool,
}

/// What is wanted of the windows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Pairs of rows: `count(*)`.
    Pairs,
    /// Of a value, by its place.
    Of(Of, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Sum,
    Avg,
    Min,
    Max,
    Count,
}

impl RangeJoin {
    /// What is wanted of a value.
    fn wanted_of(&self, value: usize) -> impl Iterator<Item = Of> {
        self.wanted.iter().filter_map(move |wanted| match wanted {
            Wanted::Of(of, other) if *other == value => Some(*of),
            _ => None,
        })
    }
}

impl fmt::Display for RangeJoin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.keeps_left { "left" } else { "inner" };
        write!(out, "kernel=window_join, {kind}, from={}, to={}, {}", self.from, self.to, self.on)
    }
}
