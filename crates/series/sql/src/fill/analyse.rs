//! Finds the fills in a plan whose names are resolved and whose types agree.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, Extension, Filter, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::fill::marks::How;
use crate::fill::node::{Fill, GapFill, Parts};
use crate::functions::Bucket;

/// The rule. It runs before any optimizer rule, which would evaluate what only marks a fill.
#[derive(Debug)]
pub(crate) struct Fills;

impl AnalyzerRule for Fills {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_marks(&plan)? {
            return Ok(plan);
        }
        let replace = |plan: LogicalPlan| {
            // Counts can be null now, all the way up.
            let plan = plan.recompute_schema()?;
            Ok(Transformed::yes(match plan {
                LogicalPlan::Aggregate(aggregate) => of_groups(aggregate)?,
                LogicalPlan::Filter(filter) => having(filter)?,
                other => with_fills(other)?,
            }))
        };
        let plan = plan.transform_up_with_subqueries(replace).data()?;
        refuse_marks(&plan)?;
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "fills"
    }
}

fn gapfill(expression: &Expr) -> Option<&ScalarFunction> {
    match expression {
        Expr::ScalarFunction(call)
            if call.func.inner().downcast_ref::<Bucket>().is_some_and(Bucket::is_gapfill) =>
        {
            Some(call)
        }
        Expr::Alias(alias) => gapfill(&alias.expr),
        _ => None,
    }
}

fn is_mark(expression: &Expr) -> bool {
    gapfill(expression).is_some() || How::of(expression).is_some()
}

fn has_marks(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            found |= expression.exists(|expression| Ok(is_mark(expression)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// A mark that is left has nothing to stand for.
fn refuse_marks(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let groups = match node {
            LogicalPlan::Aggregate(aggregate) => &*aggregate.group_expr,
            _ => &[],
        };
        node.apply_expressions(|expression| {
            if groups.contains(expression) && gapfill(expression).is_some() {
                return Ok(TreeNodeRecursion::Continue);
            }
            expression.apply(|expression| match (How::of(expression), gapfill(expression)) {
                (Some((how, _)), _) => plan_err!(
                    "{how} is selected of what GROUP BY time_bucket_gapfill(width, time) gives, not in it or in HAVING"
                ),
                (_, Some(_)) => plan_err!("time_bucket_gapfill is for GROUP BY, once and by itself"),
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(())
}

fn extension(parts: Parts) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(GapFill::new(parts)?) }))
}

fn node(plan: &LogicalPlan) -> Option<&GapFill> {
    match plan {
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref::<GapFill>(),
        _ => None,
    }
}

/// Groups with the fill that they ask for.
fn of_groups(aggregate: Aggregate) -> Result<LogicalPlan> {
    let calls = aggregate.group_expr.iter().enumerate();
    let calls: Vec<_> = calls.filter_map(|(index, group)| Some((index, gapfill(group)?))).collect();
    let &[(bucket, call)] = &*calls else {
        return match calls.len() {
            0 => Ok(LogicalPlan::Aggregate(aggregate)),
            count => plan_err!("GROUP BY has time_bucket_gapfill {count} times; write it once"),
        };
    };
    let (width, time, borders) = match &*call.args {
        [width, time] => (width.clone(), time.clone(), None),
        [width, time, start, finish] => (width.clone(), time.clone(), Some((start.clone(), finish.clone()))),
        _ => return plan_err!("write time_bucket_gapfill(width, time) or (width, time, start, finish)"),
    };
    let groups = aggregate.group_expr.len();
    let input = LogicalPlan::Aggregate(aggregate);
    extension(Parts { input, groups, bucket, time, width, borders, fills: Vec::new() })
}

/// HAVING goes below the fill.
fn having(filter: Filter) -> Result<LogicalPlan> {
    let Some(fill) = node(&filter.input) else { return with_fills(LogicalPlan::Filter(filter)) };
    let mut parts = fill.parts();
    parts.input = LogicalPlan::Filter(Filter::try_new(filter.predicate, Arc::new(parts.input))?);
    extension(parts)
}

/// A plan whose calls of `locf` and `interpolate` are columns of the fill below it.
fn with_fills(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut fills: Vec<Fill> = Vec::new();
    let names = NamePreserver::new(&plan);
    let mut expressions = Vec::new();
    for expression in plan.expressions() {
        let name = names.save(&expression);
        let replace = |expression: Expr| {
            let Some((how, value)) = How::of(&expression) else { return Ok(Transformed::no(expression)) };
            let column = expression.schema_name().to_string();
            if !fills.iter().any(|fill| fill.name == column) {
                fills.push(Fill { how, value: value.clone(), name: column.clone() });
            }
            let column = Expr::Column(Column::new_unqualified(column));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        };
        expressions.push(name.restore(expression.transform_down(replace).data()?));
    }
    if fills.is_empty() {
        return Ok(plan);
    }
    let input = match &*plan.inputs() {
        [input] => add(input, &fills)?,
        _ => None,
    };
    match input {
        Some(input) => plan.with_new_exprs(expressions, vec![input]),
        // Told by who refuses what is left.
        None => Ok(plan),
    }
}

/// A plan with more columns of the fill that it lies on; `None` where it lies on none.
fn add(plan: &LogicalPlan, fills: &[Fill]) -> Result<Option<LogicalPlan>> {
    if let Some(fill) = node(plan) {
        let mut parts = fill.parts();
        for fill in fills {
            let foreign = |column: &&Column| !parts.input.schema().is_column_from_schema(column);
            if let Some(column) = fill.value.column_refs().into_iter().find(foreign) {
                return plan_err!("{} of {column}, which is none of the groups", fill.how);
            }
            if !parts.fills.contains(fill) {
                parts.fills.push(fill.clone());
            }
        }
        return extension(parts).map(Some);
    }
    match plan {
        LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
            let [input] = &*plan.inputs() else { return Ok(None) };
            let Some(input) = add(input, fills)? else { return Ok(None) };
            plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
        }
        _ => Ok(None),
    }
}
