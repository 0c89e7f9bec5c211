//! `vwap(price, size)`: the volume-weighted average price.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;
use planish_kernels::Vwap;

/// Sum of price times size over sum of sizes, of the rows where neither is null; null without weight.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct VwapFunction {
    signature: Signature,
}

impl VwapFunction {
    pub(crate) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for VwapFunction {
    fn name(&self) -> &'static str {
        "vwap"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [price, size] if price.is_numeric() && size.is_numeric() => Ok(vec![DataType::Float64; 2]),
            [price, size] => plan_err!("vwap of {price} and {size}; both must be numbers"),
            _ => plan_err!("vwap has {} arguments; write vwap(price, size)", types.len()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |part| Arc::new(Field::new(format!("{}[{part}]", args.name), DataType::Float64, false));
        Ok(["value", "weight"].map(field).to_vec())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sums(Vwap::default())))
    }
}

#[derive(Debug)]
struct Sums(Vwap);

impl Accumulator for Sums {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [prices, sizes] = [0, 1].map(|column| columns[column].as_primitive::<Float64Type>());
        for (price, size) in prices.iter().zip(sizes) {
            if let (Some(price), Some(size)) = (price, size) {
                self.0.merge(Vwap { value: price * size, weight: size });
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mean = self.0.mean();
        Ok(ScalarValue::Float64((!mean.is_nan()).then_some(mean)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok([self.0.value, self.0.weight].map(|sum| ScalarValue::Float64(Some(sum))).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, weights] = [0, 1].map(|column| states[column].as_primitive::<Float64Type>());
        for row in 0..values.len() {
            self.0.merge(Vwap { value: values.value(row), weight: weights.value(row) });
        }
        Ok(())
    }
}
