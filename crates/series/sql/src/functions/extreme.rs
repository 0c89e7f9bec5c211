//! `arg_min` and `arg_max`: the value where another one is least or greatest, as DuckDB and ClickHouse have them.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, NullTreatment};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Expr, Signature, SortExpr, Volatility, simplify::SimplifyContext,
};

/// `arg_min(value, by)` is `first_value(value ORDER BY by)`, `arg_max` the last one, of the rows where neither is null.
/// It becomes that before it runs, and so finds its kernel.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Extreme {
    is_max: bool,
    aliases: Vec<String>,
    signature: Signature,
}

impl Extreme {
    pub(crate) fn both() -> [Self; 2] {
        [false, true].map(|is_max| {
            // DuckDB's other names, and ClickHouse's.
            let aliases = if is_max { ["argmax", "max_by"] } else { ["argmin", "min_by"] };
            let signature = Signature::any(2, Volatility::Immutable);
            Self { is_max, aliases: aliases.map(str::to_owned).to_vec(), signature }
        })
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &'static str {
        if self.is_max { "arg_max" } else { "arg_min" }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        exec_err!("{} is for GROUP BY; over a window write first_value or last_value", self.name())
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let is_max = self.is_max;
        Some(Box::new(move |call, context| by_order(is_max, call, context)))
    }
}

fn by_order(is_max: bool, call: AggregateFunction, context: &SimplifyContext) -> Result<Expr> {
    let AggregateFunctionParams { mut args, distinct, filter, .. } = call.params;
    let by = args.remove(1);
    let filter = match context.nullable(&by)? {
        false => filter,
        true => {
            let known = by.clone().is_not_null();
            Some(Box::new(filter.map_or(known.clone(), |filter| filter.and(known))))
        }
    };
    let function = if is_max { last_value_udaf() } else { first_value_udaf() };
    let order = vec![SortExpr::new(by, true, is_max)];
    let ignores = Some(NullTreatment::IgnoreNulls);
    Ok(Expr::AggregateFunction(AggregateFunction::new_udf(function, args, distinct, filter, order, ignores)))
}

/// Both functions.
pub(super) fn functions() -> Vec<Arc<datafusion::logical_expr::AggregateUDF>> {
    Extreme::both().map(|function| Arc::new(function.into())).to_vec()
}
