//! Bars by kernels.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use planish_kernels::{Bar, Crew};
use planish_table::Dictionary;

use crate::SqlError;
use crate::kernel::Threads;
use crate::kernel::bars::merge::{Found, Sums, by_symbol, by_time, jobs, vwap_by_symbol};
use crate::kernel::bars::{Bars, Cell};
use crate::kernel::shape::Width;
use crate::scan::arrays::{array, floats, whole};
use crate::scan::exec::{batch, memory_of, one_partition};
use crate::scan::source::{Cells, Rows, Slice, Wanted};
use crate::scan::{ScanExec, SeriesTable};

/// Whole numbers up to here are floats exactly.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// Makes bars by kernels. Where a kernel's bars are not what SQL asks for to the last row and digit (a null among the
/// prices of which all rows are counted; sums of whole numbers beyond 2^53), the plan that it stands for runs instead.
#[derive(Debug)]
pub(crate) struct BarsExec {
    bars: Bars,
    table: Arc<SeriesTable>,
    wanted: Wanted,
    otherwise: Arc<dyn ExecutionPlan>,
    threads: Arc<Threads>,
    properties: Arc<PlanProperties>,
}

impl BarsExec {
    /// Bars in the place of a plan.
    pub(crate) fn new(
        bars: Bars,
        scan: &ScanExec,
        otherwise: Arc<dyn ExecutionPlan>,
        threads: Arc<Threads>,
    ) -> Self {
        let (table, wanted) = (Arc::clone(scan.table()), scan.wanted().clone());
        // Bars come in order of their buckets; so a sort of them has nothing to do.
        let bucket = bars.columns.iter().position(|cell| *cell == Cell::Bucket);
        let properties = one_partition(otherwise.schema(), bucket);
        Self { bars, table, wanted, otherwise, threads, properties }
    }

    /// What is asked for.
    pub(crate) fn bars(&self) -> &Bars {
        &self.bars
    }

    /// Of which rows.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The bars, or `None` where they would not be what is asked for.
    fn run(&self, memory: &MemoryReservation) -> Result<Option<RecordBatch>, SqlError> {
        let bars = &self.bars;
        let size = bars.size.unwrap_or(bars.price);
        let mut columns = vec![bars.price, size];
        columns.extend(self.table.columns().symbol().filter(|_| bars.by_symbol));
        self.table.source().read(&self.wanted, &columns, memory, |rows| {
            let count = rows.count() as u64;
            let is_exact = rows.magnitudes[1].checked_mul(count).is_some_and(|most| most <= EXACT);
            let needs_sizes = bars.columns.iter().any(|cell| cell.needs_sizes());
            let is_known = |slice: &Slice<'_>| match slice.columns[1] {
                Cells::Float(sizes) => !sizes.iter().any(|size| size.is_nan()),
                _ => true,
            };
            if !is_exact || (bars.size.is_some() && needs_sizes && !rows.slices.iter().all(is_known)) {
                return Ok(None);
            }
            let Found { sums, has_nulls } = self.threads.with(|crew| self.find(crew, rows))??;
            if has_nulls && bars.columns.iter().any(|cell| cell.needs_prices(bars.is_vwap())) {
                return Ok(None);
            }
            self.batch(&sums, rows).map(Some)
        })
    }

    fn find(&self, crew: &mut Crew, rows: &Rows<'_>) -> Result<Found, SqlError> {
        let is_whole = matches!(rows.slices.first().map(|slice| slice.columns[1]), Some(Cells::Whole(_)));
        let (threads, width) = (crew.threads(), self.bars.by_time.map(Width::width));
        let key_count = rows.dictionaries.get(2).copied().flatten().map_or(0, Dictionary::len);
        macro_rules! run {
            ($sizes:ident) => {{
                let jobs = jobs(rows, self.bars.by_time, threads, |cells| {
                    let keys = cells.get(2).map_or(&[][..], |cells| cells.symbols());
                    (keys, cells[0].floats(), cells[1].$sizes())
                });
                match width {
                    Some(width) if !self.bars.by_symbol => by_time(crew, jobs, width),
                    None if self.bars.is_vwap() => vwap_by_symbol(crew, jobs, key_count),
                    width => by_symbol(crew, jobs, width, key_count),
                }
            }};
        }
        if is_whole { run!(whole) } else { run!(floats) }
    }

    fn batch(&self, sums: &[Sums], rows: &Rows<'_>) -> Result<RecordBatch, SqlError> {
        let schema = self.schema();
        let cells = self.bars.columns.iter().enumerate();
        let arrays = cells.map(|(index, &cell)| self.array(cell, schema.field(index), sums, rows));
        batch(&schema, arrays.collect::<Result<_, _>>()?, sums.len())
    }

    fn array(&self, cell: Cell, field: &Field, sums: &[Sums], rows: &Rows<'_>) -> Result<ArrayRef, SqlError> {
        let counts = |count: fn(&Sums) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(sums.iter().map(|bar| count(bar).cast_signed())))
        };
        let prices = |price: fn(&Bar) -> f64| {
            floats(sums.iter().map(|bar| price(&bar.state.bar(bar.start))).collect::<Vec<_>>())
        };
        Ok(match cell {
            Cell::Symbol => {
                let keys: Vec<u32> = sums.iter().map(|bar| bar.key).collect();
                let column =
                    self.table.columns().symbol().expect("bars by symbol are of a table that has symbols");
                let dictionary = rows.dictionaries.get(2).copied().flatten();
                let texts = dictionary.map(|dictionary| self.table.texts(column, dictionary));
                array(&[Cells::Symbol(&keys)], field.data_type(), texts.as_ref())?
            }
            Cell::Bucket => {
                let name = |bar: &Sums| match self.bars.by_time {
                    Some(Width::Number(width)) => bar.start / width,
                    _ => bar.start,
                };
                whole(sums.iter().map(name).collect::<Vec<_>>(), field.data_type())
            }
            Cell::Open { .. } => prices(|bar| bar.open),
            Cell::High => prices(|bar| bar.high),
            Cell::Low => prices(|bar| bar.low),
            Cell::Close { .. } => prices(|bar| bar.close),
            Cell::Vwap => prices(|bar| bar.vwap),
            Cell::Rows | Cell::Prices => counts(|bar| bar.state.count),
            // Not `floats`: an infinite price of size 0 makes NaN, which is a value.
            Cell::Value => {
                Arc::new(Float64Array::from_iter_values(sums.iter().map(|bar| bar.state.vwap.value)))
            }
            Cell::Volume if *field.data_type() == DataType::Int64 => {
                Arc::new(Int64Array::from_iter_values(sums.iter().map(|bar| bar.state.volume as i64)))
            }
            Cell::Volume => Arc::new(Float64Array::from_iter_values(sums.iter().map(|bar| bar.state.volume))),
        })
    }
}

impl DisplayAs for BarsExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.table.columns().columns();
        write!(out, "BarsExec: kernel={}", self.bars.kernel())?;
        if let Some(width) = self.bars.by_time {
            write!(out, ", width={}", width.width())?;
        }
        write!(out, ", price={}", columns[self.bars.price].name)?;
        if let Some(size) = self.bars.size {
            write!(out, ", size={}", columns[size].name)?;
        }
        write!(out, "{}, otherwise:", self.wanted)
    }
}

impl ExecutionPlan for BarsExec {
    fn name(&self) -> &'static str {
        "BarsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.otherwise]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let otherwise = children.pop().unwrap_or_else(|| Arc::clone(&self.otherwise));
        let Self { bars, table, wanted, threads, properties, .. } = &*self;
        let (table, threads, properties) = (Arc::clone(table), Arc::clone(threads), Arc::clone(properties));
        Ok(Arc::new(Self {
            bars: bars.clone(),
            table,
            wanted: wanted.clone(),
            otherwise,
            threads,
            properties,
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let memory = memory_of(self.name(), &context);
        match self.run(&memory)? {
            Some(batch) => {
                memory.try_grow(batch.get_array_memory_size())?;
                let stream = MemoryStream::try_new(vec![batch], self.schema(), None)?;
                Ok(Box::pin(stream.with_reservation(memory)))
            }
            None => self.otherwise.execute(partition, context),
        }
    }
}
