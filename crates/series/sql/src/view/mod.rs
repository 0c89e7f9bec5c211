//! Materialised views: bars of a table that are kept, and kept current.
//!
//! ```text
//!   CREATE MATERIALIZED VIEW ── define: words ──> plan: bars and nothing else ──> View
//!                                                                                │
//!   table ── batches ──> Changes: which buckets ──┐                              │
//!     └────── rows of those buckets, of one moment ──> Bars (by bucket and symbol) ──> KeptBarsExec under a query
//! ```
//!
//! Invariants:
//!
//! - **What a view shows is what its query would**: a bar is made of the rows of its bucket, as they are at one moment.
//!   A bucket of which a row came, was replaced or deleted is made anew before the next answer. Of the newest bucket
//!   the earlier part is summed up, and stays so while nothing of that part changes.
//! - **Every answer is of one moment**: all buckets that changed are read under one reading of the table.
//! - **It is made of the table, and never the other way round**: bars are in memory alone, and are made when they are
//!   first asked for. What is durable of a view is its text, which is somebody else's business.
//!
//! Locks are taken in this order: bars of a view, state of the table, what it has noted.

mod bars;
mod define;
mod exec;
mod keep;
mod plan;
mod provider;
mod sums;

use std::sync::{Arc, Mutex, RwLock};

use datafusion::physical_plan::ExecutionPlan;

pub use define::Definition;
pub use keep::ViewSize;
pub(crate) use provider::ViewProvider;

use crate::SqlError;
use crate::kernel::{Bars, Cell, Width};
use crate::scan::source::Wanted;
use crate::scan::{SeriesTable, Source};
use crate::view::define::not_kept;
use crate::view::keep::Kept;
use crate::view::sums::Part;

/// A view that is planned, and may be added to the engine that planned it.
#[derive(Debug)]
pub struct View {
    definition: Definition,
    table: Arc<SeriesTable>,
    /// What of the rows is asked for.
    asked: Bars,
    width: i64,
    wanted: Wanted,
    /// Of the query, with bars at its end.
    plan: Arc<dyn ExecutionPlan>,
    kept: RwLock<Kept>,
    /// Of what is kept.
    size: Mutex<ViewSize>,
}

impl View {
    /// A view by the plan of its definition.
    pub(crate) fn of(
        definition: Definition,
        table: Arc<SeriesTable>,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<Self, SqlError> {
        if let Source::Memory(_) = table.source() {
            let what = format!("the table {}, which is in memory alone", definition.table());
            return Err(not_kept(what, definition.whole(), "a view is of a table with a log"));
        }
        let bars = plan::bars_of(&definition, &plan)?;
        let (asked, wanted) = (bars.bars().clone(), bars.wanted().clone());
        let width = asked.by_time().map_or(i64::MAX, Width::width);
        let is_whole_size = asked
            .size()
            .is_some_and(|size| table.columns().columns()[size].kind != planish_table::Kind::Float);
        let mut parts: Vec<Part> = Vec::new();
        for part in asked.cells().iter().flat_map(|cell| Part::of(*cell, is_whole_size)) {
            if !parts.contains(part) {
                parts.push(*part);
            }
        }
        let (kept, size) = (RwLock::new(Kept::new(parts)), Mutex::default());
        Ok(Self { definition, table, asked, width, wanted, plan, kept, size })
    }

    /// What it was made by.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Whether bars are held. Of a table of another process they are not: it is read anew as a whole whenever its
    /// writer has flushed, and so would be all bars.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.table.source(), Source::Durable(_))
    }

    /// Which column of the view is a column of the bars as it is.
    fn column(&self, wanted: Cell) -> Option<usize> {
        (0..self.plan.schema().fields().len()).find(|&index| {
            plan::origin(&self.plan, index).and_then(|origin| self.asked.cells().get(origin)) == Some(&wanted)
        })
    }
}
