//! Windows of rows, and those of one group merged.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use planish_kernels::WindowColumns;

use crate::join::range::Of;

/// What one value adds up to: a window each row, later a group each. What nobody wants is not there.
pub(super) struct Sums {
    sum: Option<Vec<f64>>,
    lowest: Option<Vec<f64>>,
    highest: Option<Vec<f64>>,
    pub(super) count: Vec<u64>,
}

impl Sums {
    /// Of rows that have nothing in their windows yet.
    pub(super) fn new(rows: usize, wanted: &[Of]) -> Self {
        let column = |is_wanted: &dyn Fn(&Of) -> bool, empty: f64| {
            wanted.iter().any(is_wanted).then(|| vec![empty; rows])
        };
        Self {
            sum: column(&|of| matches!(of, Of::Sum | Of::Avg), 0.0),
            lowest: column(&|of| *of == Of::Min, f64::NAN),
            highest: column(&|of| *of == Of::Max, f64::NAN),
            count: vec![0; rows],
        }
    }

    /// Where the kernel puts its results: behind the rows without a time, which have none.
    pub(super) fn columns(&mut self, from: usize) -> WindowColumns<'_> {
        fn behind(column: &mut Option<Vec<f64>>, from: usize) -> Option<&mut [f64]> {
            column.as_mut().map(|column| &mut column[from..])
        }
        WindowColumns {
            sum: behind(&mut self.sum, from),
            min: behind(&mut self.lowest, from),
            max: behind(&mut self.highest, from),
            count: Some(&mut self.count[from..]),
            ..WindowColumns::default()
        }
    }

    /// Rows that stay.
    fn keep(&mut self, stays: &[bool]) {
        [&mut self.sum, &mut self.lowest, &mut self.highest]
            .into_iter()
            .flatten()
            .for_each(|it| keep(it, stays));
        keep(&mut self.count, stays);
    }

    fn merge(&mut self, groups: &[usize], count: usize) {
        let merge = |column: &mut Option<Vec<f64>>, empty: f64, of: fn(f64, f64) -> f64| {
            let Some(rows) = column else { return };
            let mut merged = vec![empty; count];
            rows.iter().zip(groups).for_each(|(row, &group)| merged[group] = of(merged[group], *row));
            *rows = merged;
        };
        merge(&mut self.sum, 0.0, |one, other| one + other);
        // Of nothing they are NaN, which these two take for none.
        merge(&mut self.lowest, f64::NAN, f64::min);
        merge(&mut self.highest, f64::NAN, f64::max);
        self.count = merged(&self.count, groups, count);
    }

    /// A result as a column of a type. Nothing adds up to null.
    pub(super) fn array(&self, of: Of, is_of: &DataType) -> ArrayRef {
        let floats = match of {
            Of::Count => return counts(&self.count),
            Of::Sum | Of::Avg => &self.sum,
            Of::Min => &self.lowest,
            Of::Max => &self.highest,
        };
        let floats = floats.as_deref().expect("a column for each that is wanted");
        // By counts, and not by NaN: what infinities add up to may be one, and is a value.
        let nulls = self.count.contains(&0).then(|| self.count.iter().map(|&count| count > 0).collect());
        let nulls: Option<NullBuffer> = nulls;
        if *is_of == DataType::Int64 {
            // That they are whole numbers, and small enough, was looked at before.
            let whole = floats.iter().map(|float| *float as i64).collect::<Vec<_>>();
            return Arc::new(Int64Array::new(whole.into(), nulls));
        }
        let floats: Vec<f64> = match of {
            Of::Avg => floats.iter().zip(&self.count).map(|(sum, &count)| sum / count as f64).collect(),
            _ => floats.to_vec(),
        };
        Arc::new(Float64Array::new(floats.into(), nulls))
    }
}

fn keep<T: Copy>(column: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    column.retain(|_| *stays.next().expect("one for each row"));
}

fn merged(counts: &[u64], groups: &[usize], count: usize) -> Vec<u64> {
    let mut merged = vec![0; count];
    counts.iter().zip(groups).for_each(|(row, &group)| merged[group] += row);
    merged
}

/// Counts as a column.
pub(super) fn counts(counts: &[u64]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(counts.iter().map(|count| count.cast_signed())))
}

/// Rows of the grouped side with their windows.
pub(super) struct Groups {
    /// What is grouped by.
    pub(super) columns: Vec<ArrayRef>,
    /// Of each value.
    pub(super) sums: Vec<Sums>,
    /// Pairs of each row; empty where nobody needs them.
    pub(super) pairs: Vec<u64>,
}

impl Groups {
    /// Leaves out rows without a pair.
    pub(super) fn keep_pairs(&mut self) -> Result<()> {
        let stays: Vec<bool> = self.pairs.iter().map(|&pairs| pairs > 0).collect();
        if stays.iter().all(|stays| *stays) {
            return Ok(());
        }
        let mask = BooleanArray::from(stays.clone());
        self.columns = self.columns.iter().map(|column| filter(column, &mask)).collect::<Result<_, _>>()?;
        self.sums.iter_mut().for_each(|sums| sums.keep(&stays));
        keep(&mut self.pairs, &stays);
        Ok(())
    }

    /// Makes one row of all that DataFusion takes for one group. Groups are in the order of their first rows.
    pub(super) fn merge(&mut self, schema: SchemaRef) -> Result<()> {
        let mut values = new_group_values(schema, &GroupOrdering::None)?;
        let mut groups = Vec::new();
        values.intern(&self.columns, &mut groups)?;
        let count = values.len();
        self.columns = values.emit(EmitTo::All)?;
        self.sums.iter_mut().for_each(|sums| sums.merge(&groups, count));
        if !self.pairs.is_empty() {
            self.pairs = merged(&self.pairs, &groups, count);
        }
        Ok(())
    }
}
