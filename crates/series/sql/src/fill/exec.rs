//! A fill, executed: all groups are read, put in order, and the kernel makes the rows between them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt64Array,
};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::UserDefinedLogicalNodeCore;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
    execute_stream,
};
use futures::StreamExt;
use planish_kernels::{Bar, Fill, fill_bars};

use crate::SqlError;
use crate::fill::marks::How;
use crate::fill::node::GapFill;
use crate::fill::range::Times;
use crate::scan::exec::{batch, memory_of, one_partition, row_bytes};
use crate::scan::source::set_aside;

/// Rows that a fill may make: a single wrong time leaves room for more than fit in memory.
const ROWS_MAX: u64 = 1 << 24;

/// A fill.
#[derive(Debug)]
pub(super) struct GapFillExec {
    input: Arc<dyn ExecutionPlan>,
    filler: Arc<Filler>,
    properties: Arc<PlanProperties>,
}

#[derive(Debug)]
struct Filler {
    schema: SchemaRef,
    groups: usize,
    bucket: usize,
    width: i64,
    times: Times,
    values: Vec<(How, Arc<dyn PhysicalExpr>)>,
}

impl GapFillExec {
    /// In the place of a node.
    pub(super) fn new(
        node: &GapFill,
        input: Arc<dyn ExecutionPlan>,
        width: i64,
        times: Times,
        values: Vec<(How, Arc<dyn PhysicalExpr>)>,
    ) -> Self {
        let schema = Arc::clone(node.schema().inner());
        let properties = one_partition(Arc::clone(&schema), None);
        let (groups, bucket) = (node.groups, node.bucket);
        Self { input, filler: Arc::new(Filler { schema, groups, bucket, width, times, values }), properties }
    }
}

/// The rows of a group: those whose bucket is known in its order, and the others.
struct Group {
    rows: Vec<usize>,
    without_bucket: Vec<usize>,
}

/// What the rows that are handed on are made of. Places are rows of the input; none where there is no row.
#[derive(Default)]
struct Made {
    /// A row of the same group.
    group: Vec<u64>,
    row: Vec<Option<u64>>,
    bucket: Vec<Option<i64>>,
    /// Of each value that is filled.
    filled: Vec<Filled>,
}

/// A value of rows that are handed on.
enum Filled {
    /// Where it is.
    Place(Vec<Option<u64>>),
    Number(Vec<Option<f64>>),
}

impl Filler {
    fn fill(&self, groups: &RecordBatch, memory: &MemoryReservation) -> Result<RecordBatch> {
        let buckets = cast(groups.column(self.bucket), &DataType::Int64)?;
        let buckets = buckets.as_primitive::<Int64Type>();
        let values =
            self.values.iter().map(|(_, value)| value.evaluate(groups)?.into_array(groups.num_rows()));
        let values = values.collect::<Result<Vec<_>>>()?;
        let in_order = self.in_order(groups, buckets)?;
        let mut made =
            Made { filled: self.values.iter().map(|(how, _)| Filled::of(*how)).collect(), ..Made::default() };
        if let Some((first, last)) = self.ends(buckets) {
            let each = last.div_euclid(self.width).abs_diff(first.div_euclid(self.width)).saturating_add(1);
            let rows = each.saturating_mul(in_order.len() as u64);
            if rows > ROWS_MAX {
                return exec_err!(
                    "a fill of {rows} rows ({each} buckets from {first} to {last}); there may be {ROWS_MAX}"
                );
            }
            let row_bytes = row_bytes(&self.schema) + size_of::<Bar>() + 3 * size_of::<Option<u64>>();
            set_aside(memory, usize::try_from(rows).unwrap_or(usize::MAX), row_bytes)?;
            for group in &in_order {
                self.group(group, buckets, &values, (first, last), &mut made)?;
            }
        } else {
            in_order.iter().for_each(|group| made.add_without_bucket(group, &values));
        }
        self.columns(groups, &values, &made)
    }

    /// Groups by their keys, in order of these.
    fn in_order(&self, groups: &RecordBatch, buckets: &Int64Array) -> Result<Vec<Group>> {
        let keys: Vec<&ArrayRef> = self.keys().map(|column| groups.column(column)).collect();
        let empty = || Group { rows: Vec::new(), without_bucket: Vec::new() };
        let mut rows: Vec<usize> = (0..groups.num_rows()).collect();
        let mut in_order = Vec::new();
        let mut add = |row: usize, is_new: bool| {
            if is_new {
                in_order.push(empty());
            }
            let Some(group) = in_order.last_mut() else { return };
            match buckets.is_null(row) {
                true => group.without_bucket.push(row),
                false => group.rows.push(row),
            }
        };
        if keys.is_empty() {
            rows.sort_by_key(|&row| buckets.value(row));
            if rows.is_empty() && self.times.from.is_some() && self.times.to.is_some() {
                // The one group that there is, of no row.
                return Ok(vec![empty()]);
            }
            rows.into_iter().enumerate().for_each(|(index, row)| add(row, index == 0));
            return Ok(in_order);
        }
        let fields = keys.iter().map(|key| SortField::new(key.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let keys: Vec<ArrayRef> = keys.into_iter().cloned().collect();
        let keys = converter.convert_columns(&keys)?;
        rows.sort_by(|&one, &other| {
            keys.row(one).cmp(&keys.row(other)).then(buckets.value(one).cmp(&buckets.value(other)))
        });
        let mut before = None;
        for row in rows {
            let key = keys.row(row);
            add(row, before != Some(key));
            before = Some(key);
        }
        Ok(in_order)
    }

    /// Columns of groups but the bucket.
    fn keys(&self) -> impl Iterator<Item = usize> {
        (0..self.groups).filter(|&column| column != self.bucket)
    }

    /// The first and the last bucket of the answer: as it was said, and as far as there are rows.
    fn ends(&self, buckets: &Int64Array) -> Option<(i64, i64)> {
        let start = |time: i64| time.saturating_sub(time.rem_euclid(self.width));
        let known = || buckets.iter().flatten();
        let said = [self.times.from, self.times.to].map(|time| time.map(start));
        let first = known().chain(said[0]).min()?;
        let last = known().chain(said[1]).max()?;
        // Of a WHERE that no time meets, the first is behind the last.
        (first <= last).then_some((first, last))
    }

    /// Makes the rows of a group.
    fn group(
        &self,
        group: &Group,
        buckets: &Int64Array,
        values: &[ArrayRef],
        ends: (i64, i64),
        made: &mut Made,
    ) -> Result<()> {
        let run = |how: Fill, price: &dyn Fn(usize) -> Option<f64>| {
            let mut bars = Vec::with_capacity(group.rows.len() + 2);
            bars.extend(group.rows.iter().map(|&row| bar(buckets.value(row), price(row))));
            if bars.first().is_none_or(|first: &Bar| first.start > ends.0) {
                bars.insert(0, bar(ends.0, None));
            }
            // A bar that is there stays as it is, so the one that ends the fill lies behind the last.
            let ends_before = bars.last().is_none_or(|last: &Bar| last.start < ends.1);
            let beyond = ends.1.checked_add(self.width).filter(|_| ends_before);
            if ends_before {
                bars.push(bar(beyond.unwrap_or(ends.1), None));
            }
            let mut out = Vec::new();
            let rows_max = usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
            fill_bars(&bars, self.width, how, rows_max, &mut out).map_err(SqlError::from)?;
            out.truncate(out.len() - usize::from(beyond.is_some()));
            Ok::<_, SqlError>(out)
        };
        // Numbers of rows are whole and below 2^53, so that they may be prices.
        let rows = run(Fill::Null, &|row| Some(row as f64))?;
        let any = group.rows.first().or(group.without_bucket.first()).copied().unwrap_or(0) as u64;
        for bar in &rows {
            made.group.push(any);
            made.row.push(place(bar.close));
            made.bucket.push(Some(bar.start));
        }
        for (value, filled) in values.iter().zip(&mut made.filled) {
            match filled {
                Filled::Place(places) => {
                    let bars = run(Fill::Previous, &|row| value.is_valid(row).then_some(row as f64))?;
                    places.extend(bars.iter().map(|bar| place(bar.close)));
                }
                Filled::Number(numbers) => {
                    let value = value.as_primitive::<Float64Type>();
                    let known = |row: usize| value.is_valid(row).then(|| value.value(row));
                    let bars = run(Fill::Linear, &|row| known(row).filter(|number| !number.is_nan()))?;
                    numbers.extend(bars.iter().map(|bar| Some(bar.close).filter(|price| !price.is_nan())));
                }
            }
        }
        made.add_without_bucket(group, values);
        Ok(())
    }

    fn columns(&self, groups: &RecordBatch, values: &[ArrayRef], made: &Made) -> Result<RecordBatch> {
        let (of_group, of_row) = (UInt64Array::from(made.group.clone()), UInt64Array::from(made.row.clone()));
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (index, column) in groups.columns().iter().enumerate() {
            columns.push(match index {
                index if index == self.bucket => {
                    let buckets: ArrayRef = Arc::new(Int64Array::from(made.bucket.clone()));
                    cast(&buckets, column.data_type())?
                }
                index if index < self.groups => take(column, &of_group, None)?,
                _ => take(column, &of_row, None)?,
            });
        }
        for (value, filled) in values.iter().zip(&made.filled) {
            columns.push(match filled {
                Filled::Place(places) => take(value, &UInt64Array::from(places.clone()), None)?,
                Filled::Number(numbers) => Arc::new(Float64Array::from(numbers.clone())),
            });
        }
        Ok(batch(&self.schema, columns, made.bucket.len())?)
    }
}

impl Filled {
    fn of(how: How) -> Self {
        match how {
            How::Previous => Self::Place(Vec::new()),
            How::Linear => Self::Number(Vec::new()),
        }
    }
}

impl Made {
    /// Rows whose time is null stay as they are, behind the others of their group.
    fn add_without_bucket(&mut self, group: &Group, values: &[ArrayRef]) {
        for &row in &group.without_bucket {
            let place = row as u64;
            self.group.push(place);
            self.row.push(Some(place));
            self.bucket.push(None);
            for (value, filled) in values.iter().zip(&mut self.filled) {
                match filled {
                    Filled::Place(places) => places.push(Some(place)),
                    Filled::Number(numbers) => {
                        let value = value.as_primitive::<Float64Type>();
                        numbers.push(value.is_valid(row).then(|| value.value(row)));
                    }
                }
            }
        }
    }
}

/// A bar that shows one price.
fn bar(start: i64, price: Option<f64>) -> Bar {
    let (count, price) = (u64::from(price.is_some()), price.unwrap_or(f64::NAN));
    Bar { start, open: price, high: price, low: price, close: price, volume: 0.0, count, vwap: f64::NAN }
}

/// The row that a price is the number of.
fn place(price: f64) -> Option<u64> {
    (!price.is_nan()).then_some(price as u64)
}

impl DisplayAs for GapFillExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Filler { width, times, values, .. } = &*self.filler;
        write!(out, "GapFillExec: kernel=fill_bars, width={width}")?;
        times.from.map_or(Ok(()), |from| write!(out, ", time>={from}"))?;
        times.to.map_or(Ok(()), |to| write!(out, ", time<={to}"))?;
        values.iter().try_for_each(|(how, value)| write!(out, ", {how}={value}"))
    }
}

impl ExecutionPlan for GapFillExec {
    fn name(&self) -> &'static str {
        "GapFillExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn apply_expressions(
        &self,
        work: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for (_, value) in &self.filler.values {
            if work(value)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children).or_else(|_| internal_err!("a fill has one input"))?;
        let (filler, properties) = (Arc::clone(&self.filler), Arc::clone(&self.properties));
        Ok(Arc::new(Self { input, filler, properties }))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (input, filler) = (Arc::clone(&self.input), Arc::clone(&self.filler));
        let memory = memory_of(self.name(), &context);
        let filled = async move {
            let (schema, mut batches) = (input.schema(), Vec::new());
            let mut stream = execute_stream(input, context)?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                // There are two of it while they are made one.
                memory.try_grow(2 * batch.get_array_memory_size())?;
                batches.push(batch);
            }
            filler.fill(&concat_batches(&schema, &batches)?, &memory)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::once(filled))))
    }
}
