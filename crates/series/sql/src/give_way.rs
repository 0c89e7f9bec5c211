//! Has operators that make many batches of one give way to others.
//!
//! A query is ended between two batches of an operator that asks the scheduler whether it may go on. Scans do, and what
//! DataFusion puts behind exchanges does; a join that makes a million rows of each row of its inputs does not, and all
//! of it would run before anybody could end it.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Operators that may make many batches of one, by name.
const MULTIPLY: [&str; 6] = [
    "CrossJoinExec",
    "HashJoinExec",
    "NestedLoopJoinExec",
    "PiecewiseMergeJoinExec",
    "SortMergeJoinExec",
    "UnnestExec",
];

/// The rule.
#[derive(Debug)]
pub(crate) struct GiveWay;

impl PhysicalOptimizerRule for GiveWay {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let wrap = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match MULTIPLY.contains(&plan.name()) {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _),
                false => Transformed::no(plan),
            })
        };
        plan.transform_up(wrap).data()
    }

    fn name(&self) -> &'static str {
        "give_way"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
