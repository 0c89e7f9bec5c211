//! Which conditions of WHERE the table answers itself.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use crate::scan::provider::SeriesTable;
use crate::scan::source::Wanted;

/// The columns that order and divide a table.
pub(crate) struct Pushdown<'t> {
    pub(crate) time: Option<(&'t str, &'t DataType)>,
    pub(crate) symbol: Option<&'t str>,
}

impl<'t> Pushdown<'t> {
    pub(crate) fn of(table: &'t SeriesTable) -> Self {
        let columns = table.columns();
        let name = |column: usize| columns.columns()[column].name.as_str();
        let time_type = table.arrow_schema().field(columns.time()).data_type();
        Self { time: Some((name(columns.time()), time_type)), symbol: columns.symbol().map(name) }
    }

    /// Narrows what is wanted by a condition; `false`, with nothing done, where the table cannot answer it exactly.
    pub(crate) fn add(&self, wanted: &mut Wanted, condition: &Expr) -> bool {
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let mut both = wanted.clone();
                let is_exact = self.add(&mut both, left) && self.add(&mut both, right);
                if is_exact {
                    *wanted = both;
                }
                is_exact
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(value, _)) => {
                    self.compare(wanted, &column.name, *op, value)
                }
                (Expr::Literal(value, _), Expr::Column(column)) => match op.swap() {
                    Some(op) => self.compare(wanted, &column.name, op, value),
                    None => false,
                },
                _ => false,
            },
            Expr::Between(Between { expr, negated: false, low, high }) => match (&**expr, &**low, &**high) {
                (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) => {
                    let mut both = wanted.clone();
                    let is_exact = self.compare(&mut both, &column.name, Operator::GtEq, low)
                        && self.compare(&mut both, &column.name, Operator::LtEq, high);
                    if is_exact {
                        *wanted = both;
                    }
                    is_exact
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn compare(&self, wanted: &mut Wanted, column: &str, op: Operator, value: &ScalarValue) -> bool {
        if let Some((_, time_type)) = self.time.filter(|(time, _)| *time == column) {
            // A literal that was not coerced to the type of the column is left to DataFusion.
            let time = time_of(value).filter(|_| value.data_type() == *time_type);
            return time.is_some_and(|time| narrow(wanted, op, time));
        }
        if Some(column) == self.symbol && op == Operator::Eq {
            return text_of(value).map(|text| wanted.symbols.push(text.to_owned())).is_some();
        }
        false
    }
}

/// Narrows the range of time.
fn narrow(wanted: &mut Wanted, op: Operator, time: i64) -> bool {
    // Beyond the ends of `i64` nothing is left: an empty range, and not one that wraps.
    let (from, to) = match op {
        Operator::Eq => (Some(time), Some(time)),
        Operator::GtEq => (Some(time), Some(i64::MAX)),
        Operator::LtEq => (Some(i64::MIN), Some(time)),
        Operator::Gt => (time.checked_add(1), Some(i64::MAX)),
        Operator::Lt => (Some(i64::MIN), time.checked_sub(1)),
        _ => return false,
    };
    match (from, to) {
        (Some(from), Some(to)) => {
            wanted.from = wanted.from.max(from);
            wanted.to = wanted.to.min(to);
        }
        _ => (wanted.from, wanted.to) = (i64::MAX, i64::MIN),
    }
    true
}

/// A moment as a number.
fn time_of(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int64(time)
        | ScalarValue::TimestampMillisecond(time, None)
        | ScalarValue::TimestampMicrosecond(time, None)
        | ScalarValue::TimestampNanosecond(time, None) => *time,
        _ => None,
    }
}

fn text_of(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        ScalarValue::Dictionary(_, value) => text_of(value),
        _ => None,
    }
}
