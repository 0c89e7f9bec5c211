//! `ema(value, n) OVER (.. ORDER BY time)`: the exponential moving average by row.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::scalar::ScalarValue;
use planish_kernels::Ema;

use crate::SqlError;
use crate::scan::arrays::{floats, values_of};

/// `ema(value, span)` with a whole number, `ema(value, alpha)` with a fraction: alpha is 2 / (span + 1).
///
/// It begins with the first value of its partition; a null repeats the last average. A frame means nothing to it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct EmaFunction {
    signature: Signature,
}

impl EmaFunction {
    pub(crate) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// The average that a call asks for, by its second argument.
pub(crate) fn average_of(smoothing: &Arc<dyn PhysicalExpr>) -> Result<Ema> {
    let Some(literal) = smoothing.downcast_ref::<Literal>() else {
        return exec_err!(
            "ema: the second argument is {smoothing}; write a span of rows (20) or an alpha (0.1)"
        );
    };
    let average = match literal.value() {
        ScalarValue::Int64(Some(span)) => Ema::with_span(*span as f64),
        ScalarValue::Float64(Some(alpha)) => Ema::with_alpha(*alpha),
        other => {
            return exec_err!(
                "ema: the second argument is {other}; write a span of rows (20) or an alpha (0.1)"
            );
        }
    };
    Ok(average.map_err(SqlError::from)?)
}

impl WindowUDFImpl for EmaFunction {
    fn name(&self) -> &'static str {
        "ema"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, smoothing] = types else {
            return plan_err!(
                "ema has {} arguments; write ema(value, span) or ema(value, alpha)",
                types.len()
            );
        };
        if !value.is_numeric() {
            return plan_err!("ema: the value is of type {value}, not a number");
        }
        let smoothing = if smoothing.is_integer() { DataType::Int64 } else { DataType::Float64 };
        Ok(vec![DataType::Float64, smoothing])
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        args.input_exprs().first().cloned().into_iter().collect()
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Float64, true)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        let Some(smoothing) = args.input_exprs().get(1) else {
            return exec_err!("ema has one argument; write ema(value, span) or ema(value, alpha)");
        };
        Ok(Box::new(Evaluator { average: average_of(smoothing)? }))
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::None
    }
}

#[derive(Debug)]
struct Evaluator {
    /// Without rows.
    average: Ema,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let values = values_of(&values[0]);
        let mut averages = vec![0.0; rows];
        let mut average = self.average;
        average.feed(&values, &mut averages).map_err(SqlError::from)?;
        Ok(floats(averages))
    }
}
