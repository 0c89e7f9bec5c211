//! Exponential averages by row, in the place of windows that are sorted for them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::windows::{WindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream, WindowExpr,
};
use planish_kernels::{Crew, Ema, KeyedEma, Keys};
use planish_table::{Dictionary, Kind};

use crate::SqlError;
use crate::functions::{EmaFunction, average_of};
use crate::kernel::Threads;
use crate::kernel::shape::{Input, Value};
use crate::scan::SeriesTable;
use crate::scan::arrays::{array, floats};
use crate::scan::exec::{batch, memory_of, one_partition, row_bytes};
use crate::scan::source::{Rows, Slice, Wanted, set_aside};
use crate::scan::spare::Spare;

/// A column of the result.
#[derive(Debug, Clone, Copy)]
enum Output {
    /// One of the scan, by its place among those that are read.
    Read(usize),
    /// An average, by its place among them.
    Average(usize),
}

/// What is averaged: a column, by its place among those that are read.
#[derive(Debug, Clone, Copy)]
struct Average {
    value: usize,
    by_symbol: bool,
    kind: Ema,
}

/// Reads rows in time order and averages columns on the way: nothing is sorted, and rows stay in order.
#[derive(Debug)]
pub(crate) struct AverageExec {
    table: Arc<SeriesTable>,
    wanted: Wanted,
    /// Columns of the table that are read; the symbol column, where averages are by symbol, is among them.
    read: Vec<usize>,
    averages: Vec<Average>,
    outputs: Vec<Output>,
    threads: Arc<Threads>,
    properties: Arc<PlanProperties>,
}

impl AverageExec {
    /// In the place of a window over a scan, and of a projection on it that picks columns; `None` for any other plan.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>, threads: &Arc<Threads>) -> Option<Self> {
        let projection = plan.downcast_ref::<ProjectionExec>();
        let window = projection.map_or(plan, ProjectionExec::input).downcast_ref::<WindowAggExec>()?;
        let input = Input::of(window.input())?;
        let columns = window.input().schema().fields().len();
        let mut exec = Self {
            table: Arc::clone(input.scan.table()),
            wanted: input.scan.wanted().clone(),
            read: Vec::new(),
            averages: Vec::new(),
            outputs: Vec::new(),
            threads: Arc::clone(threads),
            properties: Arc::clone(plan.properties()),
        };
        for expression in window.window_expr() {
            let average = exec.average(expression.as_ref(), &input)?;
            exec.averages.push(average);
        }
        let picked: Vec<usize> = match projection {
            None => (0..columns + exec.averages.len()).collect(),
            Some(projection) => {
                let column =
                    |expression: &Arc<dyn PhysicalExpr>| Some(expression.downcast_ref::<Column>()?.index());
                projection.expr().iter().map(|it| column(&it.expr)).collect::<Option<_>>()?
            }
        };
        for index in picked {
            let output = match index.checked_sub(columns) {
                Some(average) => Output::Average(average),
                None => exec.read(index, window.input(), &input)?,
            };
            exec.outputs.push(output);
        }
        let time = exec.table.columns().time();
        let is_time = |output: &Output| matches!(output, Output::Read(place) if exec.read[*place] == time);
        exec.properties = one_partition(plan.schema(), exec.outputs.iter().position(is_time));
        Some(exec)
    }

    /// A column of the plan under the window, if it is one of the table as it is.
    fn read(&mut self, index: usize, under: &Arc<dyn ExecutionPlan>, input: &Input<'_>) -> Option<Output> {
        let schema = under.schema();
        let field = schema.field(index);
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
        let Value::Column(column) = input.value(&column)? else { return None };
        // One that was cast is another one.
        let is_same = field.data_type() == self.table.arrow_schema().field(column).data_type();
        is_same.then(|| Output::Read(self.place(column)))
    }

    fn average(&mut self, expression: &dyn WindowExpr, input: &Input<'_>) -> Option<Average> {
        let standard = expression.as_any().downcast_ref::<StandardWindowExpr>()?;
        let call = standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>()?;
        let is_ours = call.fun().inner().is::<EmaFunction>();
        let [value, smoothing] = call.args() else { return None };
        let Value::Column(value) = input.value(value)? else { return None };
        let [order] = expression.order_by() else { return None };
        let is_by_time =
            input.value(&order.expr)? == Value::Column(input.time()) && !order.options.descending;
        if !is_ours || !is_by_time || input.kind(value) != Kind::Float {
            return None;
        }
        let by_symbol = match expression.partition_by() {
            [] => false,
            [symbol] => {
                let column = self.table.columns().symbol()?;
                (input.value(symbol)? == Value::Column(column)).then_some(true)?
            }
            _ => return None,
        };
        if by_symbol {
            self.place(self.table.columns().symbol()?);
        }
        // What is no average is an error, which the function itself tells best.
        Some(Average { value: self.place(value), by_symbol, kind: average_of(smoothing).ok()? })
    }

    /// The place of a column of the table among those that are read.
    fn place(&mut self, column: usize) -> usize {
        let known = self.read.iter().position(|&other| other == column);
        known.unwrap_or_else(|| {
            self.read.push(column);
            self.read.len() - 1
        })
    }

    fn batches(&self, memory: &MemoryReservation) -> Result<Vec<RecordBatch>, SqlError> {
        self.table.source().read(&self.wanted, &self.read, memory, |rows| {
            set_aside(memory, rows.count(), row_bytes(&self.schema()))?;
            self.threads.with(|crew| {
                let mut running =
                    self.averages.iter().map(|average| Running::new(average, self, rows)).collect::<Vec<_>>();
                rows.slices.iter().map(|slice| self.batch(crew, &mut running, rows, slice)).collect()
            })?
        })
    }

    fn batch(
        &self,
        crew: &mut Crew,
        running: &mut [Running],
        rows: &Rows<'_>,
        slice: &Slice<'_>,
    ) -> Result<RecordBatch, SqlError> {
        let averages = running.iter_mut().map(|running| running.feed(crew, slice));
        let averages = averages.collect::<Result<Vec<ArrayRef>, _>>()?;
        let schema = self.schema();
        let column = |(index, output): (usize, &Output)| match *output {
            Output::Average(average) => Ok(Arc::clone(&averages[average])),
            Output::Read(place) => {
                let texts =
                    rows.dictionaries[place].map(|dictionary| self.table.texts(self.read[place], dictionary));
                array(&[slice.columns[place]], schema.field(index).data_type(), texts.as_ref())
            }
        };
        let columns = self.outputs.iter().enumerate().map(column).collect::<Result<_, _>>()?;
        batch(&schema, columns, slice.times.len())
    }
}

/// An average with what the rows so far have left.
enum Running {
    One { value: usize, average: Ema },
    BySymbol { value: usize, symbol: usize, key_count: usize, average: KeyedEma },
}

impl Running {
    fn new(average: &Average, exec: &AverageExec, rows: &Rows<'_>) -> Self {
        let &Average { value, by_symbol, kind } = average;
        let symbol = exec.table.columns().symbol().filter(|_| by_symbol);
        match exec.read.iter().position(|&column| Some(column) == symbol) {
            None => Self::One { value, average: kind },
            Some(symbol) => {
                let key_count = rows.dictionaries[symbol].map_or(0, Dictionary::len);
                Self::BySymbol { value, symbol, key_count, average: KeyedEma::new(kind, key_count) }
            }
        }
    }

    fn feed(&mut self, crew: &mut Crew, slice: &Slice<'_>) -> Result<ArrayRef, SqlError> {
        let mut out = Spare::of(slice.times.len());
        match self {
            Self::One { value, average } => average.run(crew, slice.columns[*value].floats(), &mut out)?,
            Self::BySymbol { value, symbol, key_count, average } => {
                let keys = Keys::new(slice.columns[*symbol].symbols(), *key_count)?;
                average.run(crew, keys, slice.columns[*value].floats(), &mut out)?;
            }
        }
        Ok(floats(out))
    }
}

impl DisplayAs for AverageExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |place: usize| &self.table.columns().columns()[self.read[place]].name;
        write!(out, "AverageExec:")?;
        for (index, average) in self.averages.iter().enumerate() {
            let kernel = if average.by_symbol { "keyed_ema" } else { "ema" };
            write!(
                out,
                "{} kernel={kernel}, value={}",
                if index == 0 { "" } else { "," },
                name(average.value)
            )?;
        }
        write!(out, "{}", self.wanted)
    }
}

impl ExecutionPlan for AverageExec {
    fn name(&self) -> &'static str {
        "AverageExec"
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
        let stream = MemoryStream::try_new(self.batches(&memory)?, self.schema(), None)?;
        Ok(Box::pin(stream.with_reservation(memory)))
    }
}
