//! From nodes to operators.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::fill::FillPlanner;
use crate::join::exec::TimeJoinExec;
use crate::join::node::TimeJoin;
use crate::kernel::Threads;

/// DataFusion's planner, and what it does not know.
#[derive(Debug)]
pub(crate) struct Planner {
    threads: Arc<Threads>,
}

impl Planner {
    pub(crate) fn new(threads: Arc<Threads>) -> Self {
        Self { threads }
    }
}

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let joins = Arc::new(JoinPlanner { threads: Arc::clone(&self.threads) });
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![joins, Arc::new(FillPlanner)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct JoinPlanner {
    threads: Arc<Threads>,
}

#[async_trait]
impl ExtensionPlanner for JoinPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<TimeJoin>() else { return Ok(None) };
        let [left, right] = inputs else { return internal_err!("a join by time has two inputs") };
        let on = node.on.try_map(|expression, is_left| {
            let side = if is_left { &node.left } else { &node.right };
            planner.create_physical_expr(expression, side.schema(), session, context)
        })?;
        let sides = (Arc::clone(left), Arc::clone(right));
        Ok(Some(Arc::new(TimeJoinExec::new(node, sides, on, Arc::clone(&self.threads)))))
    }
}
