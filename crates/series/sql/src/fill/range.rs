//! Which times the rows below groups can have, by WHERE.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, Operator, Projection};
use datafusion::scalar::ScalarValue;

/// The first and the last time that WHERE leaves, where it says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
}

impl Times {
    /// Those of a time below groups, in a plan that is optimized: conditions lie where the optimizer has put them.
    ///
    /// A join may leave out rows by other conditions as well, so the search ends there.
    pub(super) fn below(groups: &LogicalPlan, time: &Expr, is_of: &DataType) -> Self {
        let mut times = Self::default();
        let Expr::Column(column) = time else { return times };
        let (mut name, mut plan) = (column.name.clone(), groups);
        let mut is_below_groups = false;
        loop {
            plan = match plan {
                LogicalPlan::Aggregate(aggregate) if !is_below_groups => {
                    is_below_groups = true;
                    &aggregate.input
                }
                LogicalPlan::Filter(filter) => {
                    // Above the groups it is HAVING, or what was made of it.
                    if is_below_groups {
                        times.narrow([&filter.predicate], &name, is_of);
                    }
                    &filter.input
                }
                LogicalPlan::Projection(projection) if is_below_groups => {
                    match under(projection, &name) {
                        Some(under) => name = under,
                        None => return times,
                    }
                    &projection.input
                }
                LogicalPlan::Projection(projection) => &projection.input,
                LogicalPlan::SubqueryAlias(alias) => &alias.input,
                LogicalPlan::Sort(sort) => &sort.input,
                LogicalPlan::TableScan(scan) => {
                    times.narrow(&scan.filters, &name, is_of);
                    return times;
                }
                _ => return times,
            };
        }
    }

    fn narrow<'e>(&mut self, conditions: impl IntoIterator<Item = &'e Expr>, name: &str, is_of: &DataType) {
        for condition in conditions.into_iter().flat_map(split_conjunction) {
            match condition {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                    if is_column(left, name) {
                        self.compare(*op, right, is_of);
                    } else if is_column(right, name)
                        && let Some(op) = op.swap()
                    {
                        self.compare(op, left, is_of);
                    }
                }
                Expr::Between(Between { expr, negated: false, low, high }) if is_column(expr, name) => {
                    self.compare(Operator::GtEq, low, is_of);
                    self.compare(Operator::LtEq, high, is_of);
                }
                _ => {}
            }
        }
    }

    fn compare(&mut self, op: Operator, value: &Expr, is_of: &DataType) {
        let Expr::Literal(value, _) = value else { return };
        let Some(value) = number(value, is_of) else { return };
        let (from, to) = match op {
            Operator::GtEq => (Some(value), None),
            Operator::Gt => (value.checked_add(1), None),
            Operator::LtEq => (None, Some(value)),
            Operator::Lt => (None, value.checked_sub(1)),
            Operator::Eq => (Some(value), Some(value)),
            _ => (None, None),
        };
        self.from = self.from.max(from);
        self.to = [self.to, to].into_iter().flatten().min();
    }
}

fn is_column(expression: &Expr, name: &str) -> bool {
    matches!(expression, Expr::Column(column) if column.name == name)
}

/// The name of the column below a projection that one of its own is.
fn under(projection: &Projection, name: &str) -> Option<String> {
    let index = projection.schema.fields().iter().position(|field| field.name() == name)?;
    plain(&projection.expr[index])
}

/// The name of the column that an expression is, whatever it is called.
fn plain(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Column(column) => Some(column.name.clone()),
        Expr::Alias(alias) => plain(&alias.expr),
        _ => None,
    }
}

/// A time as a number of its unit; `None` for null, and for what is of another type.
pub(super) fn number(value: &ScalarValue, is_of: &DataType) -> Option<i64> {
    if value.data_type() != *is_of {
        return None;
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(number) => number,
        _ => None,
    }
}
