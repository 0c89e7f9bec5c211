//! A view under its name in SQL.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::kernel::{BarsExec, Cell};
use crate::scan::Pushdown;
use crate::scan::source::Wanted;
use crate::view::View;
use crate::view::exec::KeptBarsExec;

/// What of a view DataFusion is given.
#[derive(Debug)]
pub(crate) struct ViewProvider {
    view: Arc<View>,
    schema: SchemaRef,
    /// Columns that are the bucket and the symbol as they are, if any.
    bucket: Option<usize>,
    symbol: Option<usize>,
}

impl ViewProvider {
    pub(crate) fn new(view: Arc<View>) -> Self {
        let (bucket, symbol) = (view.column(Cell::Bucket), view.column(Cell::Symbol));
        Self { schema: view.plan.schema(), bucket, symbol, view }
    }

    /// Conditions on bucket and symbol choose bars; all others are left to DataFusion.
    fn pushdown(&self) -> Pushdown<'_> {
        let field = |index: usize| self.schema.field(index);
        Pushdown {
            time: self.bucket.map(field).map(|field| (field.name().as_str(), field.data_type())),
            symbol: self.symbol.map(|index| field(index).name().as_str()),
        }
    }
}

#[async_trait]
impl TableProvider for ViewProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        Some(self.view.definition.text())
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer =
            |filter: &&Expr| match self.view.is_kept() && self.pushdown().add(&mut Wanted::all(), filter) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Unsupported,
            };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut wanted = Wanted::all();
        for filter in filters {
            let is_exact = self.pushdown().add(&mut wanted, filter);
            assert!(is_exact, "DataFusion keeps the filters that were called unsupported: {filter}");
        }
        // Operators keep what they have done: each plan has its own.
        let mut plan = reset_plan_states(Arc::clone(&self.view.plan))?;
        if self.view.is_kept() {
            let replace = |node: Arc<dyn ExecutionPlan>| {
                Ok(match node.is::<BarsExec>() {
                    true => {
                        let exec = KeptBarsExec::new(Arc::clone(&self.view), wanted.clone(), &node);
                        Transformed::new(Arc::new(exec) as _, true, TreeNodeRecursion::Jump)
                    }
                    false => Transformed::no(node),
                })
            };
            plan = plan.transform_down(replace).data()?;
        }
        let Some(columns) = projection else { return Ok(plan) };
        let column = |&index: &usize| {
            let name = self.schema.field(index).name();
            (Arc::new(Column::new(name, index)) as _, name.clone())
        };
        Ok(Arc::new(ProjectionExec::try_new(columns.iter().map(column).collect::<Vec<_>>(), plan)?))
    }
}
