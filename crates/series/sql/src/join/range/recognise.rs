//! Which groups over which joins are windows.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, JoinOn};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::scalar::ScalarValue;

use crate::functions::units_of;
use crate::join::exec::OnRows;
use crate::join::range::{Of, RangeJoin, Wanted};
use crate::kernel::aggregate_of;

type Plan = Arc<dyn ExecutionPlan>;
type Expression = Arc<dyn PhysicalExpr>;

impl RangeJoin {
    /// The windows that a plan asks for, with the sides that they are of; `None` for any other plan.
    pub(super) fn of(plan: &Plan) -> Option<(Self, Plan, Plan)> {
        let aggregate = aggregate_of(plan)?;
        let joined = Joined::of(aggregate.input())?;
        let groups = aggregate.group_expr().expr().iter().map(|(group, _)| joined.seen(group, 0));
        let groups: Vec<Seen> = groups.collect::<Option<_>>()?;
        let side = groups.first()?.side;
        if groups.iter().any(|group| group.side != side || group.is_cast) {
            return None;
        }
        let keeps_left = match (joined.join_type, side) {
            (JoinType::Inner, _) => false,
            (JoinType::Left, JoinSide::Left) | (JoinType::Right, JoinSide::Right) => true,
            _ => return None,
        };
        let ((left, right), keys) = joined.turned(side)?;
        let Window { times, from, to, reach } = joined.window(side)?;
        let on =
            OnRows { times: (column(&left, times.0), column(&right, times.1)), keys, values: Vec::new() };
        let groups: Vec<usize> = groups.into_iter().map(|group| group.column).collect();
        let by_time = groups.contains(&times.0);
        let mut join = Self { on, from, to, reach, keeps_left, groups, wanted: Vec::new(), by_time };
        let mut values = Vec::new();
        let names = plan.schema();
        for (index, expression) in aggregate.aggr_expr().iter().enumerate() {
            let field = names.field(join.groups.len() + index);
            let wanted = wanted(expression, &joined, side, &mut values)?;
            is_typed(wanted, &values, &right, field.data_type()).then(|| join.wanted.push(wanted))?;
        }
        join.on.values = values.into_iter().map(|value| value.expression(&right)).collect();
        Some((join, left, right))
    }
}

/// A column of a side of a join.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    side: JoinSide,
    column: usize,
    /// As a float.
    is_cast: bool,
}

impl Seen {
    fn data_type(self, side: &Plan) -> DataType {
        if self.is_cast { DataType::Float64 } else { side.schema().field(self.column).data_type().clone() }
    }

    fn expression(self, side: &Plan) -> Expression {
        let column = column(side, self.column);
        if self.is_cast { Arc::new(CastExpr::new(column, DataType::Float64, None)) } else { column }
    }
}

fn column(side: &Plan, index: usize) -> Expression {
    Arc::new(Column::new(side.schema().field(index).name(), index))
}

/// A join of two plans by a condition, seen through projections that may lie on it.
struct Joined<'p> {
    projections: Vec<&'p ProjectionExec>,
    left: &'p Plan,
    right: &'p Plan,
    keys: &'p [(Expression, Expression)],
    filter: &'p JoinFilter,
    join_type: JoinType,
}

impl<'p> Joined<'p> {
    fn of(plan: &'p Plan) -> Option<Self> {
        let (mut projections, mut plan) = (Vec::new(), plan);
        while let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            projections.push(projection);
            plan = projection.input();
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let is_plain = !join.contains_projection()
                && join.null_equality() == NullEquality::NullEqualsNothing
                && !join.null_aware;
            let (left, right, keys, join_type) = (join.left(), join.right(), join.on(), *join.join_type());
            return is_plain.then_some(Self {
                projections,
                left,
                right,
                keys,
                filter: join.filter()?,
                join_type,
            });
        }
        let join = plan.downcast_ref::<NestedLoopJoinExec>()?;
        let (left, right, join_type) = (join.left(), join.right(), *join.join_type());
        let is_plain = !join.contains_projection();
        is_plain.then_some(Self { projections, left, right, keys: &[], filter: join.filter()?, join_type })
    }

    /// Which column an expression above `level` of the projections is.
    fn seen(&self, expression: &Expression, level: usize) -> Option<Seen> {
        if let Some(cast) = expression.downcast_ref::<CastExpr>() {
            let seen = self.seen(cast.expr(), level)?;
            let is_whole = seen.data_type(self.side(seen.side)) == DataType::Int64;
            let is_plain = is_whole && !seen.is_cast && *cast.cast_type() == DataType::Float64;
            return is_plain.then_some(Seen { is_cast: true, ..seen });
        }
        let index = expression.downcast_ref::<Column>()?.index();
        if let Some(projection) = self.projections.get(level) {
            return self.seen(&projection.expr().get(index)?.expr, level + 1);
        }
        let lefts = self.left.schema().fields().len();
        let (side, column) =
            if index < lefts { (JoinSide::Left, index) } else { (JoinSide::Right, index - lefts) };
        Some(Seen { side, column, is_cast: false })
    }

    fn side(&self, side: JoinSide) -> &'p Plan {
        if side == JoinSide::Right { self.right } else { self.left }
    }

    /// The sides and the keys with `side` left. `None` where keys are equal by another rule than that of bytes.
    fn turned(&self, side: JoinSide) -> Option<((Plan, Plan), JoinOn)> {
        let is_turned = side == JoinSide::Right;
        let (left, right) = if is_turned { (self.right, self.left) } else { (self.left, self.right) };
        let turn = |(left, right): &(Expression, Expression)| {
            let (left, right) = (Arc::clone(left), Arc::clone(right));
            if is_turned { (right, left) } else { (left, right) }
        };
        let keys: JoinOn = self.keys.iter().map(turn).collect();
        let (left_schema, right_schema) = (left.schema(), right.schema());
        for (one, other) in &keys {
            let (one, other) = (one.data_type(&left_schema).ok()?, other.data_type(&right_schema).ok()?);
            (one == other && is_key(&one)).then_some(())?;
        }
        Some(((Arc::clone(left), Arc::clone(right)), keys))
    }

    /// The window around a row of `side`.
    fn window(&self, side: JoinSide) -> Option<Window> {
        let (mut times, mut from, mut to, mut reach) = (None, None, None, 0);
        for condition in split_conjunction(self.filter.expression()) {
            let binary = condition.downcast_ref::<BinaryExpr>()?;
            let (mut one, mut op, mut other) =
                (self.point(binary.left())?, *binary.op(), self.point(binary.right())?);
            if one.side != side {
                (one, op, other) = (other, op.swap()?, one);
            }
            let is_pair = one.side == side && other.side == side.negate();
            let columns = (one.column, other.column);
            if !is_pair || *times.get_or_insert(columns) != columns {
                return None;
            }
            reach = reach.max(one.reach).max(other.reach);
            // one + its offset op other + its offset: the right time is beyond the left one by their difference.
            let offset = one.offset.checked_sub(other.offset)?;
            let (border, offset) = match op {
                Operator::LtEq => (&mut from, offset),
                Operator::Lt => (&mut from, offset.checked_add(1)?),
                Operator::GtEq => (&mut to, offset),
                Operator::Gt => (&mut to, offset.checked_sub(1)?),
                _ => return None,
            };
            border.replace(offset).is_none().then_some(())?;
        }
        let (times, from, to) = (times?, from?, to?);
        let is_time = |it: &DataType| matches!(it, DataType::Int64 | DataType::Timestamp(_, None));
        let types = (self.side(side).schema(), self.side(side.negate()).schema());
        let types = (types.0.field(times.0).data_type(), types.1.field(times.1).data_type());
        let is_window = is_time(types.0) && types.0 == types.1 && from <= to;
        is_window.then_some(Window { times, from, to, reach })
    }

    /// A time in the condition, and what is added to it.
    fn point(&self, expression: &Expression) -> Option<Point> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            let &ColumnIndex { index, side } = self.filter.column_indices().get(column.index())?;
            return Some(Point { side, column: index, offset: 0, reach: 0 });
        }
        let binary = expression.downcast_ref::<BinaryExpr>()?;
        let (time, span) = match (binary.op(), binary.left().is::<Literal>()) {
            (Operator::Plus, true) => (binary.right(), binary.left()),
            (Operator::Plus | Operator::Minus, false) => (binary.left(), binary.right()),
            _ => return None,
        };
        let point = self.point(time)?;
        let schema = self.side(point.side).schema();
        let is_of = schema.field(point.column).data_type();
        let span = span.downcast_ref::<Literal>()?.value();
        let is_number = matches!(span, ScalarValue::Int64(_));
        if is_number != (*is_of == DataType::Int64) {
            return None;
        }
        // Months, which differ in length, are no window of one width.
        let span = units_of(span, is_of).ok()??;
        let offset = match binary.op() {
            Operator::Minus => point.offset.checked_sub(span)?,
            _ => point.offset.checked_add(span)?,
        };
        let reach = point.reach.checked_add(span.checked_abs()?)?;
        Some(Point { offset, reach, ..point })
    }
}

/// A time of a side, and what is added to it.
#[derive(Debug, Clone, Copy)]
struct Point {
    side: JoinSide,
    column: usize,
    offset: i64,
    /// Sum of the magnitudes of what is added.
    reach: i64,
}

/// A window, with the columns of the times: that of the row, then that of the other side.
struct Window {
    times: (usize, usize),
    from: i64,
    to: i64,
    reach: i64,
}

/// Whether two values of a type are equal where their bytes are. Floats are not: 0 and -0.
fn is_key(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_key(value),
        other => !other.is_floating() && !other.is_nested(),
    }
}

/// What an aggregate wants; `values` are what others want something of.
fn wanted(
    expression: &AggregateFunctionExpr,
    joined: &Joined<'_>,
    side: JoinSide,
    values: &mut Vec<Seen>,
) -> Option<Wanted> {
    if expression.is_distinct() || !expression.order_bys().is_empty() {
        return None;
    }
    let arguments = expression.expressions();
    let [argument] = &*arguments else { return None };
    let of = match expression.fun().name() {
        "count" => Of::Count,
        "sum" => Of::Sum,
        "avg" => Of::Avg,
        "min" => Of::Min,
        "max" => Of::Max,
        _ => return None,
    };
    if let Some(literal) = argument.downcast_ref::<Literal>() {
        return (of == Of::Count && !literal.value().is_null()).then_some(Wanted::Pairs);
    }
    let value = joined.seen(argument, 0)?;
    // What is of the grouped side counts once a pair: no kernel knows that.
    if value.side == side {
        return None;
    }
    let known = values.iter().position(|other| *other == value);
    let place = known.unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    });
    Some(Wanted::Of(of, place))
}

/// Whether the kernel's results are of the type that the plan has.
fn is_typed(wanted: Wanted, values: &[Seen], right: &Plan, result: &DataType) -> bool {
    let Wanted::Of(of, value) = wanted else { return *result == DataType::Int64 };
    let is_of = values[value].data_type(right);
    match of {
        Of::Count => *result == DataType::Int64,
        Of::Avg => is_of == DataType::Float64 && *result == DataType::Float64,
        Of::Sum | Of::Min | Of::Max => {
            matches!(is_of, DataType::Float64 | DataType::Int64) && *result == is_of
        }
    }
}
