//! Puts kernels in the place of operators that do the same.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::join::RangeJoinExec;
use crate::kernel::Threads;
use crate::kernel::average::AverageExec;
use crate::kernel::bars::{Bars, BarsExec};

/// The rule.
#[derive(Debug)]
pub(crate) struct KernelRule {
    threads: Arc<Threads>,
}

impl KernelRule {
    pub(crate) fn new(threads: Arc<Threads>) -> Self {
        Self { threads }
    }
}

impl PhysicalOptimizerRule for KernelRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.replaced(plan)
    }

    fn name(&self) -> &'static str {
        "kernels"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl KernelRule {
    fn replaced(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let replace = |plan: Arc<dyn ExecutionPlan>| {
            if let Some((bars, input)) = Bars::of(&plan) {
                let exec = BarsExec::new(bars, input.scan, Arc::clone(&plan), Arc::clone(&self.threads));
                // What it stands for is below it, and stays as it is.
                return Ok(Transformed::new(Arc::new(exec) as _, true, TreeNodeRecursion::Jump));
            }
            if let Some(exec) = RangeJoinExec::of(&plan, &self.threads, |side| self.replaced(side))? {
                return Ok(Transformed::new(Arc::new(exec) as _, true, TreeNodeRecursion::Jump));
            }
            match AverageExec::of(&plan, &self.threads) {
                Some(exec) => Ok(Transformed::yes(Arc::new(exec) as _)),
                None => Ok(Transformed::no(plan)),
            }
        };
        plan.transform_down(replace).data()
    }
}
