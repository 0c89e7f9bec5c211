//! Calls that stand for a join by time, or for what is wanted of its windows, until the plan is analysed.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

/// In the condition of an ASOF join.
pub(crate) const ASOF_ROWS: &str = "asof_rows";
/// In the condition of a window join.
pub(crate) const WINDOW_ROWS: &str = "window_rows";

/// What is wanted of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    Count,
}

impl Of {
    const ALL: [(&'static str, Self); 7] = [
        ("wj_sum", Self::Sum),
        ("wj_avg", Self::Avg),
        ("wj_min", Self::Min),
        ("wj_max", Self::Max),
        ("wj_first", Self::First),
        ("wj_last", Self::Last),
        ("wj_count", Self::Count),
    ];

    /// The type of it.
    pub(super) fn data_type(self) -> DataType {
        if self == Self::Count { DataType::Int64 } else { DataType::Float64 }
    }
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Asof,
    Window,
    Of(Of),
}

/// What an expression marks.
#[derive(Debug)]
pub(super) enum Mark<'e> {
    /// An ASOF join; whether all left rows stay.
    Asof { is_left: bool },
    /// A window join.
    Window,
    /// Of its windows.
    Of(Of, &'e Expr),
}

impl<'e> Mark<'e> {
    pub(super) fn of(expression: &'e Expr) -> Option<Self> {
        let Expr::ScalarFunction(call) = expression else { return None };
        match (call.func.inner().downcast_ref::<Function>()?.kind, &*call.args) {
            (Kind::Asof, [Expr::Literal(ScalarValue::Utf8(Some(rows)), _)]) => {
                Some(Self::Asof { is_left: rows == "left" })
            }
            (Kind::Window, []) => Some(Self::Window),
            (Kind::Of(of), [value]) => Some(Self::Of(of, value)),
            _ => None,
        }
    }
}

/// All marks, as functions that name resolution and coercion know.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    // They are gone before anybody could evaluate them beforehand.
    let function = |name, kind, types: Vec<DataType>| {
        let signature = Signature::exact(types, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Function { name, kind, signature }))
    };
    let signature = Signature::nullary(Volatility::Immutable);
    let window = Arc::new(ScalarUDF::from(Function { name: WINDOW_ROWS, kind: Kind::Window, signature }));
    let mut functions = vec![function(ASOF_ROWS, Kind::Asof, vec![DataType::Utf8]), window];
    functions.extend(Of::ALL.map(|(name, of)| function(name, Kind::Of(of), vec![DataType::Float64])));
    functions
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Asof | Kind::Window => DataType::Boolean,
            Kind::Of(of) => of.data_type(),
        })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{} has a meaning in joins by time only", self.name)
    }
}
