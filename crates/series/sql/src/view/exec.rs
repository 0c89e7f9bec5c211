//! The operator that hands out the bars of a view.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};

use crate::SqlError;
use crate::kernel::Cell;
use crate::scan::arrays::{array, floats, whole};
use crate::scan::exec::{batch, memory_of};
use crate::scan::source::{Cells, Wanted};
use crate::view::View;
use crate::view::bars::Bucket;
use crate::view::keep::Kept;
use crate::view::sums::Part;

/// Hands out the bars of a view, in the place of the operators that would make them: what changed since the last time
/// is made anew first.
#[derive(Debug)]
pub(super) struct KeptBarsExec {
    view: Arc<View>,
    /// Of which buckets and symbols, by the columns of the view.
    wanted: Wanted,
    properties: Arc<PlanProperties>,
}

impl KeptBarsExec {
    /// In the place of an operator that has the same columns.
    pub(super) fn new(view: Arc<View>, wanted: Wanted, place: &Arc<dyn ExecutionPlan>) -> Self {
        Self { view, wanted, properties: Arc::clone(place.properties()) }
    }

    fn batch(&self, schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
        let kept = self.view.kept();
        let chosen = Chosen::of(&kept, &self.wanted);
        let cells = self.view.asked.cells().iter().zip(schema.fields());
        let columns = cells.map(|(&cell, field)| chosen.array(cell, field)).collect::<Result<_, _>>()?;
        batch(schema, columns, chosen.count())
    }
}

/// Bars that are to be handed out.
struct Chosen<'k> {
    kept: &'k Kept,
    buckets: Vec<(i64, &'k Bucket, Range<usize>)>,
}

impl<'k> Chosen<'k> {
    fn of(kept: &'k Kept, wanted: &Wanted) -> Self {
        let texts = kept.texts.as_ref().map(|texts| texts.as_string::<i32>());
        let number = |symbol: &String| {
            let found = texts?.iter().position(|text| text == Some(symbol.as_str()));
            found.and_then(|found| u32::try_from(found).ok())
        };
        // Two symbols at once are none.
        let symbols: Vec<Option<u32>> = wanted.symbols.iter().map(number).collect();
        let is_none = symbols.iter().any(|symbol| symbol.is_none() || *symbol != symbols[0]);
        let rows = |bucket: &Bucket| match symbols.first() {
            _ if is_none => None,
            None => Some(0..bucket.keys.len()),
            Some(symbol) => {
                let row = bucket.keys.binary_search(&(*symbol)?).ok()?;
                Some(row..row + 1)
            }
        };
        let buckets = kept.bars.range(wanted.from..=wanted.to);
        let buckets = buckets.filter_map(|(start, bucket)| Some((start, bucket, rows(bucket)?))).collect();
        Self { kept, buckets }
    }

    fn count(&self) -> usize {
        self.buckets.iter().map(|(_, _, rows)| rows.len()).sum()
    }

    /// A part of each bar.
    fn words(&self, part: Part) -> impl Iterator<Item = u64> {
        let parts = self.kept.bars.parts();
        let place =
            parts.iter().position(|it| *it == part).expect("a view holds what its columns are made of");
        let words =
            move |bucket: &'k Bucket, row: usize| bucket.words.get(row * parts.len() + place).copied();
        self.buckets.iter().flat_map(move |(_, bucket, rows)| {
            let bucket = *bucket;
            rows.clone().filter_map(move |row| words(bucket, row))
        })
    }

    fn floats(&self, part: Part) -> impl Iterator<Item = f64> {
        self.words(part).map(f64::from_bits)
    }

    fn counts(&self, part: Part) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(self.words(part).map(u64::cast_signed)))
    }

    /// Prices, of which NaN is null.
    fn prices(&self, part: Part) -> ArrayRef {
        floats(self.floats(part).collect::<Vec<_>>())
    }

    /// A sum that is null where it is of no row; NaN is a value.
    fn sums(&self, part: Part, rows: Part) -> ArrayRef {
        let sums = self.floats(part).zip(self.words(rows)).map(|(sum, rows)| (rows > 0).then_some(sum));
        Arc::new(sums.collect::<Float64Array>())
    }

    fn array(&self, cell: Cell, field: &Field) -> Result<ArrayRef, SqlError> {
        Ok(match cell {
            Cell::Symbol => {
                let keys = self.buckets.iter().flat_map(|(_, bucket, rows)| &bucket.keys[rows.clone()]);
                let keys: Vec<u32> = keys.copied().collect();
                array(&[Cells::Symbol(&keys)], field.data_type(), self.kept.texts.as_ref())?
            }
            Cell::Bucket => {
                let starts = self.buckets.iter().flat_map(|(start, _, rows)| rows.clone().map(|_| *start));
                whole(starts.collect::<Vec<_>>(), field.data_type())
            }
            Cell::Open { ignores_nulls: false } => self.prices(Part::First),
            Cell::Open { ignores_nulls: true } => self.prices(Part::FirstKnown),
            Cell::Close { ignores_nulls: false } => self.prices(Part::Last),
            Cell::Close { ignores_nulls: true } => self.prices(Part::LastKnown),
            Cell::High => self.prices(Part::High),
            Cell::Low => self.prices(Part::Low),
            Cell::Rows => self.counts(Part::Rows),
            Cell::Prices => self.counts(Part::Prices),
            Cell::Volume if *field.data_type() == DataType::Int64 => self.counts(Part::VolumeWhole),
            Cell::Volume => self.sums(Part::Volume, Part::Sizes),
            Cell::Value => self.sums(Part::Value, Part::Both),
            Cell::Vwap => {
                let mean =
                    |(value, weight): (f64, f64)| if weight == 0.0 { f64::NAN } else { value / weight };
                floats(self.floats(Part::Value).zip(self.floats(Part::Weight)).map(mean).collect::<Vec<_>>())
            }
        })
    }
}

impl DisplayAs for KeptBarsExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View { definition, width, table, asked, .. } = &*self.view;
        let name = |column: usize| &table.columns().columns()[column].name;
        let (view, table) = (definition.name(), definition.table());
        write!(out, "KeptBarsExec: view={view}, of={table}, width={width}, price={}", name(asked.price()))?;
        asked.size().map_or(Ok(()), |size| write!(out, ", size={}", name(size)))?;
        write!(out, "{}", self.wanted)
    }
}

impl ExecutionPlan for KeptBarsExec {
    fn name(&self) -> &'static str {
        "KeptBarsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let memory = memory_of(self.name(), &context);
        self.view.catch_up(&memory, || false)?;
        let batch = self.batch(&self.schema())?;
        memory.try_grow(batch.get_array_memory_size())?;
        let stream = MemoryStream::try_new(vec![batch], self.schema(), None)?;
        Ok(Box::pin(stream.with_reservation(memory)))
    }
}
