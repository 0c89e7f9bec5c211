//! `intDiv(a, b)`, which is also `a // b`: division of whole numbers, cut toward zero.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
    binary_expr,
};

/// ClickHouse's name, in lower case as names without quotes are, and that of `//`.
pub(crate) const INT_DIV: &str = "intdiv";

/// It becomes `/` before it runs, and so finds its kernel. With `/` alone one could not write it for floats by mistake.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntDiv {
    signature: Signature,
}

impl IntDiv {
    pub(crate) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for IntDiv {
    fn name(&self) -> &'static str {
        INT_DIV
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one, other] if one.is_integer() && other.is_integer() => Ok(vec![DataType::Int64; 2]),
            [one, other] => plan_err!("// (intDiv) of {one} and {other}; both must be whole numbers"),
            _ => plan_err!("intDiv has {} arguments; write intDiv(a, b), or a // b", types.len()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    /// Null where one of both is, as the division that it becomes.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(INT_DIV, DataType::Int64, is_nullable)))
    }

    fn simplify(
        &self,
        arguments: Vec<datafusion::logical_expr::Expr>,
        _: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        match <[_; 2]>::try_from(arguments) {
            Ok([one, other]) => Ok(ExprSimplifyResult::Simplified(binary_expr(one, Operator::Divide, other))),
            Err(arguments) => Ok(ExprSimplifyResult::Original(arguments)),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("{INT_DIV} is divided before it runs")
    }
}
