//! Rows of a table as batches.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
};

use crate::SqlError;
use crate::scan::arrays::array;
use crate::scan::provider::SeriesTable;
use crate::scan::source::{Cells, Rows, Wanted, set_aside};

/// Reads the rows that are wanted, in time order, as they are when it starts.
///
/// They are copied then: batches that lent memory of the arena would keep writers out for as long as somebody holds
/// one, and two scans of one table in a query could wait for a writer that waits for one of them.
#[derive(Debug)]
pub(crate) struct ScanExec {
    table: Arc<SeriesTable>,
    /// Columns of the table, in the order in which they are handed on.
    columns: Vec<usize>,
    wanted: Wanted,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    pub(crate) fn new(
        table: Arc<SeriesTable>,
        columns: Vec<usize>,
        wanted: Wanted,
        limit: Option<usize>,
    ) -> Self {
        let schema = Arc::new(table.arrow_schema().project(&columns).expect("columns are the table's"));
        let time = columns.iter().position(|&column| column == table.columns().time());
        // Its batches give way to other tasks by themselves, and nothing that would has to stand between it and a join.
        let properties =
            (*one_partition(schema, time)).clone().with_scheduling_type(SchedulingType::Cooperative);
        Self { table, columns, wanted, limit, properties: Arc::new(properties) }
    }

    pub(crate) fn table(&self) -> &Arc<SeriesTable> {
        &self.table
    }

    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// The rows in batches of some rows, as a query's context has it.
    fn batches(
        &self,
        rows_per_batch: usize,
        memory: &MemoryReservation,
    ) -> Result<Vec<RecordBatch>, SqlError> {
        self.table.source().read(&self.wanted, &self.columns, memory, |rows| {
            let count = rows.count().min(self.limit.unwrap_or(usize::MAX));
            set_aside(memory, count, row_bytes(&self.schema()))?;
            let texts = self.texts(rows);
            let (mut batches, mut left) = (Vec::new(), self.limit.unwrap_or(usize::MAX));
            for slice in &rows.slices {
                let (mut from, end) = (0, slice.times.len().min(left));
                left -= end;
                while from < end {
                    let to = end.min(from + rows_per_batch);
                    batches.push(
                        self.batch(&texts, to - from, |column| vec![slice.columns[column].cut(from..to)])?,
                    );
                    from = to;
                }
            }
            Ok(batches)
        })
    }

    /// All rows as one batch, copied once; `None` where not all are wanted.
    pub(crate) fn whole(&self, memory: &MemoryReservation) -> Result<Option<RecordBatch>, SqlError> {
        if self.limit.is_some() {
            return Ok(None);
        }
        self.table.source().read(&self.wanted, &self.columns, memory, |rows| {
            set_aside(memory, rows.count(), row_bytes(&self.schema()))?;
            let cells = |column| rows.slices.iter().map(|slice| slice.columns[column]).collect();
            self.batch(&self.texts(rows), rows.count(), cells).map(Some)
        })
    }

    /// The texts of each column of symbols.
    fn texts(&self, rows: &Rows<'_>) -> Vec<Option<ArrayRef>> {
        let dictionaries = rows.dictionaries.iter().zip(&self.columns);
        dictionaries.map(|(dictionary, &column)| dictionary.map(|it| self.table.texts(column, it))).collect()
    }

    fn batch<'t>(
        &self,
        texts: &[Option<ArrayRef>],
        rows: usize,
        cells: impl Fn(usize) -> Vec<Cells<'t>>,
    ) -> Result<RecordBatch, SqlError> {
        let schema = self.schema();
        let fields = schema.fields().iter().enumerate();
        let array = |(index, field): (usize, &FieldRef)| {
            array(&cells(index), field.data_type(), texts[index].as_ref())
        };
        batch(&schema, fields.map(array).collect::<Result<_, _>>()?, rows)
    }
}

/// Bytes that a row of a table takes as Arrow's.
pub(crate) fn row_bytes(schema: &SchemaRef) -> usize {
    let bytes = |field: &FieldRef| match field.data_type() {
        DataType::Dictionary(..) => 4,
        DataType::Decimal128(..) => 16,
        _ => 8,
    };
    schema.fields().iter().map(bytes).sum()
}

/// What an operator sets aside of a query's memory, under its name.
pub(crate) fn memory_of(operator: &str, context: &TaskContext) -> MemoryReservation {
    MemoryConsumer::new(operator).register(context.memory_pool())
}

/// Of an operator that hands on all its rows in one partition, in order of a column if there is one.
pub(crate) fn one_partition(schema: SchemaRef, ordered: Option<usize>) -> Arc<PlanProperties> {
    let order = ordered.map(|index| {
        let column = Column::new(schema.field(index).name(), index);
        [PhysicalSortExpr::new_default(Arc::new(column))]
    });
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new_with_orderings(schema, order),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Final,
        Boundedness::Bounded,
    ))
}

/// A batch of columns that fit the schema; of rows without columns too.
pub(crate) fn batch(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, SqlError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
    batch.map_err(|error| SqlError::query("execute")(error.into()))
}

impl fmt::Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from != i64::MIN {
            write!(out, ", time>={}", self.from)?;
        }
        if self.to != i64::MAX {
            write!(out, ", time<={}", self.to)?;
        }
        self.symbols.iter().try_for_each(|symbol| write!(out, ", symbol={symbol}"))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(out, "ScanExec: columns=[{}]{}", names.join(", "), self.wanted)?;
        self.limit.map_or(Ok(()), |limit| write!(out, ", limit={limit}"))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
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
        let batches = self.batches(context.session_config().batch_size(), &memory)?;
        let stream = MemoryStream::try_new(batches, self.schema(), None)?.with_reservation(memory);
        Ok(Box::pin(cooperative(stream)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let (table, columns) = (Arc::clone(&self.table), self.columns.clone());
        Some(Arc::new(Self::new(table, columns, self.wanted.clone(), limit)))
    }
}
