//! Which aggregates are bars.

use std::sync::Arc;

use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use planish_table::Kind;

use crate::functions::VwapFunction;
use crate::kernel::bars::{Bars, Cell};
use crate::kernel::shape::{Input, Value, aggregate_of};

/// What keeps an aggregate from being bars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// What it reads is no scan of a table: a condition that the table does not answer lies between them.
    Input,
    /// A group, by its number, is neither a bucket of time nor the symbol.
    Group(usize),
    /// No aggregate tells which column is the price.
    NoPrice,
    /// An aggregate, by its name in the plan.
    Aggregate(String),
}

/// What keeps an aggregate from being bars, in a plan of any shape; `None` for what is no aggregate of rows.
pub(crate) fn obstacle(plan: &Arc<dyn ExecutionPlan>) -> Option<Obstacle> {
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    // The one that reads rows is the lowest.
    if !matches!(
        aggregate.mode(),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
    ) {
        return None;
    }
    let mut input = aggregate.input();
    while let (None, [child], true) =
        (Input::of(input), input.children().as_slice(), input.is::<RepartitionExec>())
    {
        input = child;
    }
    match Input::of(input) {
        None => Some(Obstacle::Input),
        Some(input) => Bars::of_rows(aggregate, &input).err(),
    }
}

impl Bars {
    /// The bars that a plan asks for, and the scan that it reads; `None` for any other plan.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<(Self, Input<'_>)> {
        let aggregate = aggregate_of(plan)?;
        let input = Input::of(aggregate.input())?;
        let bars = Self::of_rows(aggregate, &input).ok()?;
        Some((bars, input))
    }

    /// What groups and aggregates ask for of the rows of a scan.
    fn of_rows(aggregate: &AggregateExec, input: &Input<'_>) -> Result<Self, Obstacle> {
        let groups = aggregate.group_expr();
        if groups.is_empty() {
            return Err(Obstacle::Group(0));
        }
        let (mut by_symbol, mut by_time, mut columns) = (false, None, Vec::new());
        for (index, (group, _)) in groups.expr().iter().enumerate() {
            match input.value(group) {
                Some(Value::Column(column))
                    if Some(column) == input.scan.table().columns().symbol() && !by_symbol =>
                {
                    by_symbol = true;
                    columns.push(Cell::Symbol);
                }
                Some(Value::Bucket(width)) if by_time.is_none() => {
                    by_time = Some(width);
                    columns.push(Cell::Bucket);
                }
                _ => return Err(Obstacle::Group(index)),
            }
        }
        let price = aggregate.aggr_expr().iter().find_map(|expression| price_of(expression, input));
        let Some(price) = price else {
            let known = |expression: &&Arc<AggregateFunctionExpr>| {
                !["count", "sum"].contains(&expression.fun().name())
            };
            let other = aggregate.aggr_expr().iter().find(known);
            return Err(other
                .map_or(Obstacle::NoPrice, |expression| Obstacle::Aggregate(expression.name().to_owned())));
        };
        let mut bars = Self { by_symbol, by_time, price, size: None, columns };
        for expression in aggregate.aggr_expr() {
            let cell = bars.cell(expression, input);
            let cell = cell.ok_or_else(|| Obstacle::Aggregate(expression.name().to_owned()))?;
            bars.columns.push(cell);
        }
        Ok(bars)
    }

    /// What an aggregate is of a bar.
    fn cell(&mut self, expression: &AggregateFunctionExpr, input: &Input<'_>) -> Option<Cell> {
        if expression.is_distinct() {
            return None;
        }
        let arguments = expression.expressions();
        let values = arguments.iter().map(|argument| input.value(argument)).collect::<Option<Vec<_>>>()?;
        let ignores_nulls = expression.ignore_nulls();
        let price = Value::Column(self.price);
        match (expression.fun().name(), &*values) {
            ("first_value", [value]) if *value == price => match is_descending(expression, input)? {
                false => Some(Cell::Open { ignores_nulls }),
                true => Some(Cell::Close { ignores_nulls }),
            },
            ("last_value", [value]) if *value == price => match is_descending(expression, input)? {
                false => Some(Cell::Close { ignores_nulls }),
                true => Some(Cell::Open { ignores_nulls }),
            },
            ("max", [value]) if *value == price => Some(Cell::High),
            ("min", [value]) if *value == price => Some(Cell::Low),
            ("count", [Value::Constant]) => Some(Cell::Rows),
            ("count", [Value::Column(column)]) => match input.kind(*column) {
                Kind::Float => (*column == self.price).then_some(Cell::Prices),
                _ => Some(Cell::Rows),
            },
            ("sum", [Value::Column(column)]) => {
                // As a float it would be another sum.
                let is_plain = arguments[0].is::<datafusion::physical_expr::expressions::Column>();
                (is_plain && self.takes_size(*column, input)).then_some(Cell::Volume)
            }
            ("sum", [Value::Product(left, right)]) => {
                let size = if *left == self.price { *right } else { *left };
                let is_of_price = *left == self.price || *right == self.price;
                (is_of_price && self.takes_size(size, input)).then_some(Cell::Value)
            }
            ("vwap", [price_value, Value::Column(size)]) if *price_value == price => {
                let is_ours = expression.fun().inner().is::<VwapFunction>();
                (is_ours && self.takes_size(*size, input)).then_some(Cell::Vwap)
            }
            _ => None,
        }
    }

    /// Whether a column is, or becomes, the one of sizes.
    fn takes_size(&mut self, column: usize, input: &Input<'_>) -> bool {
        matches!(input.kind(column), Kind::Int | Kind::Float) && *self.size.get_or_insert(column) == column
    }
}

/// The column of prices, if an aggregate tells it: what it takes the first, last, highest or lowest of, or weighs.
fn price_of(expression: &AggregateFunctionExpr, input: &Input<'_>) -> Option<usize> {
    let name = expression.fun().name();
    if !["first_value", "last_value", "max", "min", "vwap", "sum"].contains(&name) {
        return None;
    }
    let column = match input.value(expression.expressions().first()?)? {
        Value::Column(column) if name != "sum" => column,
        Value::Product(left, right) if name == "sum" => {
            if input.kind(left) == Kind::Float {
                left
            } else {
                right
            }
        }
        _ => return None,
    };
    (input.kind(column) == Kind::Float).then_some(column)
}

/// Whether an aggregate goes by time from the last to the first; `None` where it goes by anything else.
fn is_descending(expression: &AggregateFunctionExpr, input: &Input<'_>) -> Option<bool> {
    let [order] = expression.order_bys() else { return None };
    let is_time = input.value(&order.expr)? == Value::Column(input.time());
    is_time.then_some(order.options.descending)
}
