//! ASOF joins: for each left row the nearest right row of its key.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt32Array,
};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::{filter, is_not_null, take};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, UInt32Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use planish_kernels::{AsofJoin, Crew, Direction, Keys, NO_ROW, Times};

use crate::SqlError;
use crate::join::exec::OnRows;
use crate::join::sides::{SideKeys, SideTimes};
use crate::kernel::Threads;
use crate::scan::arrays::known;
use crate::scan::exec::batch;
use crate::scan::spare::{Cell, Spare};

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
    /// Of the left rows with their partners beside them the columns `outputs`, by their number among both sides'.
    pub(super) fn join(
        &self,
        schema: &SchemaRef,
        (left, right): (&RecordBatch, &RecordBatch),
        outputs: &[usize],
    ) -> Result<RecordBatch> {
        let partners: ScalarBuffer<u32> = self.partners(left, right)?.into();
        let nulls = partners.contains(&NO_ROW).then(|| known(partners.len(), |row| partners[row] != NO_ROW));
        let partners = UInt32Array::new(partners, nulls);
        let found =
            (partners.null_count() > 0 && !self.is_left).then(|| is_not_null(&partners)).transpose()?;
        let partners = match &found {
            Some(found) => filter(&partners, found)?.as_primitive::<UInt32Type>().clone(),
            None => partners,
        };
        let lefts = left.num_columns();
        let column = |&output: &usize| match output.checked_sub(lefts) {
            Some(output) => taken(right.column(output), &partners),
            None => match &found {
                Some(found) => Ok(filter(left.column(output), found)?),
                None => Ok(Arc::clone(left.column(output))),
            },
        };
        let columns = outputs.iter().map(column).collect::<Result<_>>()?;
        Ok(batch(schema, columns, partners.len())?)
    }

    /// The row of the partner of each left row.
    fn partners(&self, left: &RecordBatch, right: &RecordBatch) -> Result<Spare<u32>> {
        let (direction, is_strict) = match self.op {
            Operator::GtEq => (Direction::Backward, false),
            Operator::Gt => (Direction::Backward, true),
            Operator::LtEq => (Direction::Forward, false),
            Operator::Lt => (Direction::Forward, true),
            op => return internal_err!("an ASOF join by {op}"),
        };
        let times = (SideTimes::of(&self.on.times.0, left)?, SideTimes::of(&self.on.times.1, right)?);
        let keys = SideKeys::of(self.on, (left, times.0.nulls), (right, times.1.nulls))?;
        let mut partners = Spare::of(left.num_rows());
        let (unknown, known) = partners.split_at_mut(times.0.nulls);
        unknown.fill(NO_ROW);
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

/// The rows of a column that are partners; null where there is none.
fn taken(column: &ArrayRef, partners: &UInt32Array) -> Result<ArrayRef> {
    let nulls = partners.nulls().cloned();
    Ok(match column.data_type() {
        DataType::Float64 if column.null_count() == 0 => {
            let cells = column.as_primitive::<Float64Type>().values();
            Arc::new(Float64Array::new(gathered(cells, partners.values()).into(), nulls))
        }
        DataType::Int64 if column.null_count() == 0 => {
            let cells = column.as_primitive::<Int64Type>().values();
            Arc::new(Int64Array::new(gathered(cells, partners.values()).into(), nulls))
        }
        _ => take(column, partners, None)?,
    })
}

/// Cells by their rows; any of them where there is no such row.
fn gathered<T: Cell>(cells: &[T], rows: &[u32]) -> Spare<T> {
    let Some(last) = cells.len().checked_sub(1) else { return Spare::filled(rows.len(), T::default()) };
    let mut found = Spare::of(rows.len());
    found.iter_mut().zip(rows).for_each(|(place, &row)| *place = cells[(row as usize).min(last)]);
    found
}
