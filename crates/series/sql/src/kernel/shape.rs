//! Expressions as kernels know them: columns of a table, buckets of its time, products.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::scalar::ScalarValue;
use planish_table::Kind;

use crate::functions::{Bucket, width_of};
use crate::scan::ScanExec;

/// A scan, seen through a projection that may lie on it.
pub(crate) struct Input<'p> {
    pub(crate) scan: &'p ScanExec,
    projection: Option<&'p ProjectionExec>,
}

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// A column of the table by its number, maybe as a float.
    Column(usize),
    /// A product of two columns, as floats.
    Product(usize, usize),
    /// A bucket of time.
    Bucket(Width),
    /// One and the same that is not null.
    Constant,
}

/// Buckets of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Named by their start; floored.
    Start(i64),
    /// Named by their number, which is cut toward zero: `time / width` of whole numbers.
    Number(i64),
}

impl Width {
    pub(crate) fn width(self) -> i64 {
        match self {
            Self::Start(width) | Self::Number(width) => width,
        }
    }
}

/// An aggregate over all rows of its input, where planned as one step, or as two with nothing in between yet. `None`
/// where not each group of all rows is wanted: sets of groups, FILTER, a limit.
pub(crate) fn aggregate_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    let outer = plan.downcast_ref::<AggregateExec>()?;
    let aggregate = match outer.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => outer,
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let inner = outer.input().downcast_ref::<AggregateExec>()?;
            (*inner.mode() == AggregateMode::Partial && outer.limit_options().is_none()).then_some(inner)?
        }
        _ => return None,
    };
    let has_filter = aggregate.filter_expr().iter().any(Option::is_some);
    let is_whole = aggregate.group_expr().is_single() && !has_filter && aggregate.limit_options().is_none();
    is_whole.then_some(aggregate)
}

impl<'p> Input<'p> {
    /// A plan that is a scan of all rows that WHERE leaves.
    pub(crate) fn of(plan: &'p Arc<dyn ExecutionPlan>) -> Option<Self> {
        let projection = plan.downcast_ref::<ProjectionExec>();
        let scan = projection.map_or(plan, ProjectionExec::input).downcast_ref::<ScanExec>()?;
        scan.limit().is_none().then_some(Self { scan, projection })
    }

    /// What an expression over the plan is; `None` for all that no kernel knows.
    pub(crate) fn value(&self, expression: &Arc<dyn PhysicalExpr>) -> Option<Value> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            return match self.projection {
                None => self.scan.columns().get(column.index()).copied().map(Value::Column),
                Some(projection) => {
                    let under = Self { scan: self.scan, projection: None };
                    under.value(&projection.expr().get(column.index())?.expr)
                }
            };
        }
        if let Some(cast) = expression.downcast_ref::<CastExpr>() {
            // The kernels read whole numbers as the nearest float, and so does the cast.
            return match self.value(cast.expr())? {
                Value::Column(column) if *cast.cast_type() == DataType::Float64 => {
                    matches!(self.kind(column), Kind::Int | Kind::Float).then_some(Value::Column(column))
                }
                _ => None,
            };
        }
        if let Some(literal) = expression.downcast_ref::<Literal>() {
            return (!literal.value().is_null()).then_some(Value::Constant);
        }
        if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
            return self.binary(binary);
        }
        self.bucket(expression.downcast_ref::<ScalarFunctionExpr>()?)
    }

    fn binary(&self, binary: &BinaryExpr) -> Option<Value> {
        match (self.value(binary.left())?, binary.op()) {
            (Value::Column(left), Operator::Multiply) => match self.value(binary.right())? {
                Value::Column(right) if self.kind(left) == Kind::Float || self.kind(right) == Kind::Float => {
                    Some(Value::Product(left, right))
                }
                _ => None,
            },
            (Value::Column(column), Operator::Divide) if column == self.time() => {
                let is_number =
                    *self.scan.table().arrow_schema().field(column).data_type() == DataType::Int64;
                match binary.right().downcast_ref::<Literal>()?.value() {
                    ScalarValue::Int64(Some(width)) if is_number && *width > 0 => {
                        Some(Value::Bucket(Width::Number(*width)))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn bucket(&self, call: &ScalarFunctionExpr) -> Option<Value> {
        let count = call.args().len();
        let (time, width) = match call.fun().inner().downcast_ref::<Bucket>() {
            Some(bucket) if bucket.is_even(count) => bucket.places(),
            None if call.name() == "date_bin" && count == 2 => (1, 0),
            _ => return None,
        };
        let is_time = self.value(&call.args()[time]) == Some(Value::Column(self.time()));
        let time_type = self.scan.table().arrow_schema().field(self.time()).data_type();
        if !is_time || call.return_type() != time_type {
            return None;
        }
        let width = call.args()[width].downcast_ref::<Literal>()?.value();
        // What is no width is an error, which the function itself tells best.
        let width = width_of(width, time_type).ok()??;
        Some(Value::Bucket(Width::Start(width)))
    }

    /// Number of the column that orders the table.
    pub(crate) fn time(&self) -> usize {
        self.scan.table().columns().time()
    }

    /// Kind of a column of the table.
    pub(crate) fn kind(&self, column: usize) -> Kind {
        self.scan.table().columns().columns()[column].kind
    }
}
