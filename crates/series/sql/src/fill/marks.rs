//! `locf` and `interpolate`, which stand for a fill until the plan is analysed.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What an empty bucket shows of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum How {
    /// The last one that is known.
    Previous,
    /// What lies on the straight line between the last and the next one that are known.
    Linear,
}

impl How {
    fn function(self) -> &'static str {
        match self {
            Self::Previous => "locf",
            Self::Linear => "interpolate",
        }
    }

    /// The fill that a call asks for, and its value.
    pub(super) fn of(expression: &Expr) -> Option<(Self, &Expr)> {
        let Expr::ScalarFunction(call) = expression else { return None };
        let mark = call.func.inner().downcast_ref::<Mark>()?;
        Some((mark.how, call.args.first()?))
    }

    /// What it makes of values of a type.
    pub(super) fn data_type(self, value: DataType) -> DataType {
        match self {
            Self::Previous => value,
            Self::Linear => DataType::Float64,
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.function())
    }
}

/// Both, as functions that name resolution and coercion know.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    let function = |how| {
        let signature = match how {
            How::Previous => Signature::any(1, Volatility::Immutable),
            How::Linear => Signature::exact(vec![DataType::Float64], Volatility::Immutable),
        };
        Arc::new(ScalarUDF::from(Mark { how, signature }))
    };
    [How::Previous, How::Linear].map(function).to_vec()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mark {
    how: How,
    signature: Signature,
}

impl ScalarUDFImpl for Mark {
    fn name(&self) -> &str {
        self.how.function()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.how.data_type(types[0].clone()))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{} has a meaning over GROUP BY time_bucket_gapfill(..) only", self.name())
    }
}
