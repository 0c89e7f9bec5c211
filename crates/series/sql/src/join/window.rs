//! Window joins: for each left row what the right rows around it add up to.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use planish_kernels::{Crew, Keys, Times, WindowColumns, WindowJoin};

use crate::SqlError;
use crate::join::exec::OnRows;
use crate::join::marks::Of;
use crate::join::sides::{SideKeys, SideTimes};
use crate::kernel::Threads;
use crate::scan::arrays::{floats, values_of};
use crate::scan::exec::batch;
use crate::scan::spare::Spare;

/// Of the left rows with what is wanted of their windows beside them the columns `outputs`, by their number among all.
pub(super) fn windows(
    (schema, outputs): (&SchemaRef, &[usize]),
    (left, right): (&RecordBatch, &RecordBatch),
    on: &OnRows,
    (from, to): (i64, i64),
    wanted: &[(Of, String)],
    threads: &Threads,
) -> Result<RecordBatch> {
    let times = (SideTimes::of(&on.times.0, left)?, SideTimes::of(&on.times.1, right)?);
    let keys = SideKeys::of(on, (left, times.0.nulls), (right, times.1.nulls))?;
    let mut results: Vec<Option<ArrayRef>> = vec![None; wanted.len()];
    for (index, value) in on.values.iter().enumerate() {
        // What is wanted of one column is found in one go.
        if results[index].is_some() {
            continue;
        }
        let same: Vec<usize> = (index..wanted.len()).filter(|&other| on.values[other].eq(value)).collect();
        let values = value.evaluate(right)?.into_array(right.num_rows())?;
        let values = values_of(&values.slice(times.1.nulls, right.num_rows() - times.1.nulls));
        let of = same.iter().map(|&index| wanted[index].0);
        let mut found = Found::new(left.num_rows(), times.0.nulls, of);
        let run = |crew: &mut Crew| {
            let mut join = WindowJoin::new(from, to)?;
            let left = (Times::new(times.0.known())?, Keys::new(&keys.left, keys.count)?);
            let right = (Times::new(times.1.known())?, Keys::new(&keys.right, keys.count)?);
            join.run_by_key(crew, left, right, &values, found.columns(times.0.nulls))
        };
        threads.with(run)?.map_err(SqlError::from)?;
        for (nth, &index) in same.iter().enumerate() {
            let of = wanted[index].0;
            // One of two names has the column already.
            let known = same[..nth].iter().find(|&&other| wanted[other].0 == of);
            results[index] = match known {
                Some(&other) => results[other].clone(),
                None => Some(found.array(of)),
            };
        }
    }
    let result = |place: usize| results[place].clone().expect("each value was one of the same as some");
    let column = |&output: &usize| match output.checked_sub(left.num_columns()) {
        Some(place) => result(place),
        None => Arc::clone(left.column(output)),
    };
    Ok(batch(schema, outputs.iter().map(column).collect(), left.num_rows())?)
}

/// Results of one column of values. Left rows without a time come first and have none.
struct Found {
    floats: [Option<Spare<f64>>; 6],
    count: Spare<u64>,
}

impl Found {
    fn new(rows: usize, nulls: usize, wanted: impl Iterator<Item = Of>) -> Self {
        let mut floats = [const { None }; 6];
        for of in wanted.filter_map(Self::place) {
            let mut column = Spare::of(rows);
            column[..nulls].fill(f64::NAN);
            floats[of] = Some(column);
        }
        let mut count = Spare::of(rows);
        count[..nulls].fill(0);
        Self { floats, count }
    }

    fn place(of: Of) -> Option<usize> {
        [Of::Sum, Of::Avg, Of::Min, Of::Max, Of::First, Of::Last].iter().position(|other| *other == of)
    }

    fn columns(&mut self, nulls: usize) -> WindowColumns<'_> {
        let [sum, avg, min, max, first, last] =
            self.floats.each_mut().map(|column| column.as_mut().map(|column| &mut column[nulls..]));
        WindowColumns { sum, avg, min, max, first, last, count: Some(&mut self.count[nulls..]) }
    }

    /// The column of one that is wanted, which it is once.
    fn array(&mut self, of: Of) -> ArrayRef {
        let counts = &self.count;
        let Some(place) = Self::place(of) else {
            return Arc::new(Int64Array::from_iter_values(counts.iter().map(|count| count.cast_signed())));
        };
        let mut column = self.floats[place].take().expect("a column for each that is wanted");
        if of == Of::Sum {
            // To the kernel the sum of nothing is 0; to SQL it is null.
            column
                .iter_mut()
                .zip(counts.iter())
                .filter(|(_, count)| **count == 0)
                .for_each(|(sum, _)| *sum = f64::NAN);
        }
        floats(column)
    }
}
