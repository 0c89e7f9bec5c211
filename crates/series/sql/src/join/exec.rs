//! A join by time, executed: both sides are read whole, in time order, then a kernel joins them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::UserDefinedLogicalNodeCore;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
    execute_stream,
};
use futures::StreamExt;

use crate::join::asof::Asof;
use crate::join::node::{Kind, On, TimeJoin};
use crate::join::window::windows;
use crate::kernel::Threads;
use crate::scan::ScanExec;
use crate::scan::exec::{memory_of, one_partition};

/// What both kernels get: expressions over the sides, and threads.
pub(super) type OnRows = On<Arc<dyn PhysicalExpr>>;

/// A join by time.
#[derive(Debug)]
pub(super) struct TimeJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    join: Arc<Join>,
    /// The columns of the join that anybody wants; all others are not made.
    outputs: Arc<[usize]>,
    properties: Arc<PlanProperties>,
}

#[derive(Debug)]
struct Join {
    on: OnRows,
    kind: Kind,
    threads: Arc<Threads>,
}

impl TimeJoinExec {
    /// In the place of a node.
    pub(super) fn new(
        node: &TimeJoin,
        (left, right): (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
        on: OnRows,
        threads: Arc<Threads>,
    ) -> Self {
        let properties = one_partition(Arc::clone(node.schema().inner()), None);
        let outputs = (0..node.schema().fields().len()).collect();
        Self {
            left,
            right,
            outputs,
            join: Arc::new(Join { on, kind: node.kind.clone(), threads }),
            properties,
        }
    }
}

/// All rows of a plan, as one batch, for which memory is set aside.
pub(super) async fn all_rows(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    memory: &MemoryReservation,
) -> Result<RecordBatch> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>()
        && let Some(rows) = scan.whole(memory)?
    {
        return Ok(rows);
    }
    let (schema, mut batches) = (plan.schema(), Vec::new());
    let mut stream = execute_stream(plan, context)?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // There are two of it while they are made one.
        memory.try_grow(2 * batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(concat_batches(&schema, &batches)?)
}

impl DisplayAs for TimeJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TimeJoinExec: {}, {}", self.join.kind, self.join.on)
    }
}

impl ExecutionPlan for TimeJoinExec {
    fn name(&self) -> &'static str {
        "TimeJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; 2])
    }

    /// Both sides in order of their times, which for tables they are.
    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = |time: &Arc<dyn PhysicalExpr>| {
            LexOrdering::new([PhysicalSortExpr::new_default(Arc::clone(time))])
                .map(OrderingRequirements::from)
        };
        let (left, right) = &self.join.on.times;
        vec![order(left), order(right)]
    }

    fn apply_expressions(
        &self,
        work: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in self.join.on.all() {
            if work(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [left, right] =
            <[_; 2]>::try_from(children).or_else(|_| internal_err!("a join by time has two inputs"))?;
        let (join, outputs) = (Arc::clone(&self.join), Arc::clone(&self.outputs));
        let properties = Arc::clone(&self.properties);
        Ok(Arc::new(Self { left, right, join, outputs, properties }))
    }

    /// A projection that picks columns becomes a part of the join: to take the partners' rows of a column costs as much
    /// as to find them.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let output = |it: &ProjectionExpr| {
            let column = it.expr.downcast_ref::<Column>()?;
            self.outputs.get(column.index()).copied()
        };
        let Some(outputs) = projection.expr().iter().map(output).collect() else { return Ok(None) };
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let (join, properties) = (Arc::clone(&self.join), one_partition(projection.schema(), None));
        Ok(Some(Arc::new(Self { left, right, join, outputs, properties })))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let (join, outputs, schema) = (Arc::clone(&self.join), Arc::clone(&self.outputs), self.schema());
        let memory = memory_of(self.name(), &context);
        let joined = async move {
            let left = all_rows(left, Arc::clone(&context), &memory).await?;
            let right = all_rows(right, context, &memory).await?;
            match &join.kind {
                Kind::Asof { op, is_left } => {
                    let asof = Asof { on: &join.on, op: *op, is_left: *is_left, threads: &join.threads };
                    asof.join(&schema, (&left, &right), &outputs)
                }
                Kind::Window { from, to, wanted } => {
                    let out = (&schema, &*outputs);
                    windows(out, (&left, &right), &join.on, (*from, *to), wanted, &join.threads)
                }
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::once(joined))))
    }
}
