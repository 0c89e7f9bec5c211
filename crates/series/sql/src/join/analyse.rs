//! Finds the joins by time in a plan whose names are resolved and whose types agree.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, Extension, Filter, Join, LogicalPlan, Operator, Projection,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

use crate::functions::units_of;
use crate::join::marks::{Mark, Of};
use crate::join::node::{Kind, On, TimeJoin};
use crate::join::sides::{Side, comparison, side_of};

/// The rule. It runs before any optimizer rule, which would take the joins for ordinary ones.
#[derive(Debug)]
pub(crate) struct TimeJoins;

impl AnalyzerRule for TimeJoins {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let replace = |plan: LogicalPlan| match plan {
            LogicalPlan::Join(join) => match asof(&join)? {
                Some(node) => Ok(Transformed::yes(extension(node))),
                None => Ok(Transformed::no(LogicalPlan::Join(join))),
            },
            LogicalPlan::Projection(projection) => match window(&projection)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(LogicalPlan::Projection(projection))),
            },
            other => Ok(Transformed::no(other)),
        };
        let plan = plan.transform_up_with_subqueries(replace).data()?;
        refuse_marks(&plan)?;
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "joins_by_time"
    }
}

fn extension(node: TimeJoin) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

/// A mark that is left has nothing to stand for.
fn refuse_marks(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|expression| match Mark::of(expression) {
                None => Ok(TreeNodeRecursion::Continue),
                Some(Mark::Asof { .. }) => plan_err!(
                    "the condition of an ASOF JOIN is one comparison of times, and equalities, with AND between them"
                ),
                Some(Mark::Window) => plan_err!(
                    "a WINDOW JOIN is selected from by wj_sum, wj_avg, wj_min, wj_max, wj_first, wj_last or wj_count"
                ),
                Some(Mark::Of(..)) => plan_err!("{expression} is of a WINDOW JOIN, and there is none to select from"),
            })
        })
    })?;
    Ok(())
}

/// The conditions of a join without its mark; `None` where it has none.
fn conditions(join: &Join) -> Option<(Mark<'_>, Vec<Expr>)> {
    let filter = split_conjunction(join.filter.as_ref()?);
    let mark = filter.iter().find_map(|condition| match Mark::of(condition)? {
        Mark::Of(..) => None,
        mark => Some(mark),
    })?;
    let equal = |(left, right): &(Expr, Expr)| left.clone().eq(right.clone());
    let others = filter.into_iter().filter(|condition| Mark::of(condition).is_none()).cloned();
    Some((mark, join.on.iter().map(equal).chain(others).collect()))
}

fn asof(join: &Join) -> Result<Option<TimeJoin>> {
    let Some((Mark::Asof { is_left }, conditions)) = conditions(join) else { return Ok(None) };
    let (left, right) = (join.left.schema(), join.right.schema());
    let (mut keys, mut by) = (Vec::new(), None);
    for condition in &conditions {
        match comparison(condition, left, right) {
            Some((one, Operator::Eq, other)) => keys.push((one, other)),
            Some((one, op @ (Operator::GtEq | Operator::Gt | Operator::LtEq | Operator::Lt), other))
                if by.is_none() =>
            {
                by = Some((one, op, other));
            }
            _ => {
                return plan_err!(
                    "an ASOF JOIN on {condition}; put conditions of one table into a subquery of it, others into WHERE"
                );
            }
        }
    }
    let Some((one, op, other)) = by else {
        return plan_err!(
            "an ASOF JOIN without a comparison of times; write MATCH_CONDITION (a.time >= b.time)"
        );
    };
    check_times(&one, left, &other, right)?;
    let on = On { times: (one, other), keys, values: Vec::new() };
    let kind = Kind::Asof { op, is_left };
    TimeJoin::new(join.left.as_ref().clone(), join.right.as_ref().clone(), on, kind).map(Some)
}

/// Times are whole numbers or timestamps, of one type on both sides.
fn check_times(one: &Expr, left: &DFSchema, other: &Expr, right: &DFSchema) -> Result<DataType> {
    let types = (one.get_type(left)?, other.get_type(right)?);
    let is_time = matches!(types.0, DataType::Int64 | DataType::Timestamp(..));
    if !is_time || types.0 != types.1 {
        return plan_err!(
            "a join by time of {one} ({}) and {other} ({}); cast both to one type",
            types.0,
            types.1
        );
    }
    Ok(types.0)
}

/// A projection over a window join, with WHERE between them or not.
fn window(projection: &Projection) -> Result<Option<LogicalPlan>> {
    let (mut filters, mut under) = (Vec::new(), projection.input.as_ref());
    while let LogicalPlan::Filter(filter) = under {
        filters.push(filter.predicate.clone());
        under = filter.input.as_ref();
    }
    let LogicalPlan::Join(join) = under else { return Ok(None) };
    let Some((Mark::Window, conditions)) = conditions(join) else { return Ok(None) };
    let mut wanted: Vec<(Of, String, Expr)> = Vec::new();
    let names = NamePreserver::new_for_projection();
    let mut expressions = Vec::new();
    for expression in &projection.expr {
        let name = names.save(expression);
        let replace = |expression: Expr| {
            let Some(Mark::Of(of, value)) = Mark::of(&expression) else {
                return Ok(Transformed::no(expression));
            };
            let column = expression.schema_name().to_string();
            if !wanted.iter().any(|(_, name, _)| *name == column) {
                wanted.push((of, column.clone(), value.clone()));
            }
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column))))
        };
        expressions.push(name.restore(expression.clone().transform_up(replace).data()?));
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut plan = extension(window_join(join, &conditions, wanted)?);
    for predicate in filters.into_iter().rev() {
        if let Some(column) =
            predicate.column_refs().into_iter().find(|it| !plan.schema().is_column_from_schema(it))
        {
            return plan_err!(
                "WHERE on {column} of the right side of a WINDOW JOIN; write WINDOW JOIN (SELECT .. WHERE ..) instead"
            );
        }
        plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?);
    }
    let all = Projection::try_new(expressions, Arc::new(plan));
    all.map(|projection| Some(LogicalPlan::Projection(projection)))
}

fn window_join(join: &Join, conditions: &[Expr], wanted: Vec<(Of, String, Expr)>) -> Result<TimeJoin> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let (mut keys, mut borders) = (Vec::new(), Borders::default());
    for condition in conditions {
        match comparison(condition, left, right) {
            Some((one, Operator::Eq, other)) => keys.push((one, other)),
            _ if borders.add(condition, left, right)? => {}
            _ => {
                return plan_err!(
                    "a WINDOW JOIN on {condition}; put it into a subquery of its table, or into WHERE"
                );
            }
        }
    }
    let Borders { times: Some(times), from: Some(from), to: Some(to) } = borders else {
        return plan_err!(
            "a WINDOW JOIN without two borders; write b.time BETWEEN a.time - 5 AND a.time + 5"
        );
    };
    check_times(&times.0, left, &times.1, right)?;
    if from > to {
        return plan_err!("a WINDOW JOIN whose window ends ({to}) before it begins ({from})");
    }
    let mut values = Vec::new();
    let mut names = Vec::new();
    for (of, name, value) in wanted {
        if side_of(&value, left, right) != Some(Side::Right) {
            return plan_err!("{name} of a WINDOW JOIN is not of columns of its right side");
        }
        values.push(value);
        names.push((of, name));
    }
    let kind = Kind::Window { from, to, wanted: names };
    TimeJoin::new(join.left.as_ref().clone(), join.right.as_ref().clone(), On { times, keys, values }, kind)
}

/// A window, as far as its conditions were read.
#[derive(Default)]
struct Borders {
    /// Left and right time.
    times: Option<(Expr, Expr)>,
    from: Option<i64>,
    to: Option<i64>,
}

impl Borders {
    /// Reads a condition; `false` where it is no border.
    fn add(&mut self, condition: &Expr, left: &DFSchema, right: &DFSchema) -> Result<bool> {
        if let Expr::Between(Between { expr, negated: false, low, high }) = condition {
            let (low, high) = ((**low).clone(), (**high).clone());
            let (low, high) = ((**expr).clone().gt_eq(low), (**expr).clone().lt_eq(high));
            return Ok(self.add(&low, left, right)? && self.add(&high, left, right)?);
        }
        let Some((one, op, other)) = comparison(condition, left, right) else { return Ok(false) };
        let ((one, left_offset), (other, right_offset)) = (apart(&one, left)?, apart(&other, right)?);
        // left + left_offset op right + right_offset: the right time is beyond the left one by their difference.
        let Some(offset) = left_offset.checked_sub(right_offset) else { return Ok(false) };
        let times = (one, other);
        if self.times.as_ref().is_some_and(|known| *known != times) {
            return Ok(false);
        }
        self.times = Some(times);
        let (border, offset) = match op {
            Operator::LtEq => (&mut self.from, Some(offset)),
            Operator::Lt => (&mut self.from, offset.checked_add(1)),
            Operator::GtEq => (&mut self.to, Some(offset)),
            Operator::Gt => (&mut self.to, offset.checked_sub(1)),
            _ => return Ok(false),
        };
        let is_first = border.is_none();
        *border = offset;
        Ok(is_first && offset.is_some())
    }
}

/// A time and what is added to it, in its unit.
fn apart(expression: &Expr, schema: &DFSchema) -> Result<(Expr, i64)> {
    let whole = || (expression.clone(), 0);
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) =
        expression
    else {
        return Ok(whole());
    };
    let Some(literal) = literal(right)? else { return Ok(whole()) };
    let offset = units_of(&literal, &left.get_type(schema)?)?;
    let offset = if *op == Operator::Minus { offset.and_then(i64::checked_neg) } else { offset };
    Ok(offset.map_or_else(whole, |offset| ((**left).clone(), offset)))
}

fn literal(expression: &Expr) -> Result<Option<ScalarValue>> {
    Ok(match expression {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Negative(inner) => literal(inner)?.map(|value| value.arithmetic_negate()).transpose()?,
        _ => None,
    })
}
