//! ASOF joins: for each left row the nearest right row of its key.

use datafusion::arrow::array::{Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{filter, filter_record_batch, is_not_null, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use planish_kernels::{AsofJoin, Crew, Direction, Keys, NO_ROW, Times};

use crate::SqlError;
use crate::join::exec::OnRows;
use crate::join::sides::{SideKeys, SideTimes};
use crate::kernel::Threads;
use crate::scan::exec::batch;

/// An ASOF join.
pub(super) struct Asof<'j> {
    pub(super) on: &'j OnRows,
    /// How the left time is to the right one.
    pub(super) op: Operator,
    /// Whether left rows without a partner stay.
    pub(super) is_left: bool,
    pub(super) threads: &'j Threads,
}

impl Asof<'_> {
    /// The left rows with their partners beside them.
    pub(super) fn join(
        &self,
        schema: &SchemaRef,
        left: &RecordBatch,
        right: &RecordBatch,
    ) -> Result<RecordBatch> {
        let partners = self.partners(left, right)?;
        let partners: UInt32Array = match partners.contains(&NO_ROW) {
            true => partners.into_iter().map(|row| (row != NO_ROW).then_some(row)).collect(),
            false => partners.into(),
        };
        if partners.null_count() == 0 || self.is_left {
            return put(schema, left, right, &partners);
        }
        let found = is_not_null(&partners)?;
        put(schema, &filter_record_batch(left, &found)?, right, &filter(&partners, &found)?)
    }

    /// The row of the partner of each left row.
    fn partners(&self, left: &RecordBatch, right: &RecordBatch) -> Result<Vec<u32>> {
        let (direction, is_strict) = match self.op {
            Operator::GtEq => (Direction::Backward, false),
            Operator::Gt => (Direction::Backward, true),
            Operator::LtEq => (Direction::Forward, false),
            Operator::Lt => (Direction::Forward, true),
            op => return internal_err!("an ASOF join by {op}"),
        };
        let times = (SideTimes::of(&self.on.times.0, left)?, SideTimes::of(&self.on.times.1, right)?);
        let keys = SideKeys::of(self.on, (left, times.0.nulls), (right, times.1.nulls))?;
        let mut partners = vec![NO_ROW; left.num_rows()];
        let (_, known) = partners.split_at_mut(times.0.nulls);
        let run = |crew: &mut Crew| {
            let join = AsofJoin::new(keys.count).direction(direction).strict(is_strict);
            let left = (Times::new(times.0.known())?, Keys::new(&keys.left, keys.count)?);
            let right = (Times::new(times.1.known())?, Keys::new(&keys.right, keys.count)?);
            join.run_on(crew, left, right, known)
        };
        self.threads.with(run)?.map_err(SqlError::from)?;
        if times.1.nulls > 0 {
            let nulls = u32::try_from(times.1.nulls);
            let Ok(nulls) = nulls else {
                return internal_err!("4294967296 rows without a time in an ASOF join");
            };
            known.iter_mut().filter(|row| **row != NO_ROW).for_each(|row| *row += nulls);
        }
        Ok(partners)
    }
}

fn put(
    schema: &SchemaRef,
    left: &RecordBatch,
    right: &RecordBatch,
    partners: &dyn Array,
) -> Result<RecordBatch> {
    let rights = right.columns().iter().map(|column| take(column, partners, None));
    let columns = left.columns().iter().cloned().map(Ok).chain(rights);
    Ok(batch(schema, columns.collect::<Result<_, _>>()?, left.num_rows())?)
}
