//! From the node to its operator.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{ColumnarValue, Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use datafusion::scalar::ScalarValue;

use crate::fill::exec::GapFillExec;
use crate::fill::node::GapFill;
use crate::fill::range::{Times, number};
use crate::functions::width_of;

/// The planner of fills.
pub(crate) struct FillPlanner;

#[async_trait]
impl ExtensionPlanner for FillPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<GapFill>() else { return Ok(None) };
        let [input] = inputs else { return internal_err!("a fill has one input") };
        let is_of = node.input.schema().field(node.bucket).data_type().clone();
        let constant = |expression: &Expr| {
            let constant = planner.create_physical_expr(expression, &DFSchema::empty(), session, context)?;
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
            match constant.evaluate(&row)? {
                ColumnarValue::Scalar(value) => Ok(value),
                ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
            }
        };
        let Some(width) = width_of(&constant(&node.width)?, &is_of)? else {
            return plan_err!("time_bucket_gapfill: the width is null");
        };
        let mut times = Times::below(&node.input, &node.time, &is_of);
        if let Some((start, finish)) = &node.borders {
            times = said(times, [constant(start)?, constant(finish)?], &is_of)?;
        }
        let values = node.fills.iter().map(|fill| {
            let value = planner.create_physical_expr(&fill.value, node.input.schema(), session, context)?;
            Ok((fill.how, value))
        });
        let values = values.collect::<Result<_>>()?;
        Ok(Some(Arc::new(GapFillExec::new(node, Arc::clone(input), width, times, values))))
    }
}

/// The borders that a call says; where one is null, WHERE says it.
fn said(times: Times, [start, finish]: [ScalarValue; 2], is_of: &DataType) -> Result<Times> {
    let from = number(&start, is_of).or(times.from);
    let to = match number(&finish, is_of) {
        Some(finish) => finish.checked_sub(1),
        None => times.to,
    };
    match (from, to) {
        (Some(from), Some(to)) if from > to => {
            plan_err!("time_bucket_gapfill: the start ({from}) is not before the finish")
        }
        _ => Ok(Times { from, to }),
    }
}
