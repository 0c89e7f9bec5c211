//! Columns of a table as Arrow's: which type a kind has, and cells copied into arrays.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt32Array,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Schema as ArrowSchema, SchemaRef, TimeUnit as ArrowUnit,
};
use planish_table::{Column, Dictionary, Kind, Schema, TimeUnit};

use crate::SqlError;
use crate::scan::source::Cells;
use crate::scan::spare::{Cell, Spare};

/// Digits that 64 bits may have.
const DIGITS: u8 = 19;

/// The types of a table's columns. Times are timestamps where their unit is known, else whole numbers.
pub(crate) fn schema_of(schema: &Schema, unit: Option<TimeUnit>) -> SchemaRef {
    let field = |Column { name, kind }: &Column| Field::new(name, type_of(*kind, unit), *kind == Kind::Float);
    Arc::new(ArrowSchema::new(schema.columns().iter().map(field).collect::<Vec<_>>()))
}

fn type_of(kind: Kind, unit: Option<TimeUnit>) -> DataType {
    match (kind, unit) {
        (Kind::Time, Some(unit)) => DataType::Timestamp(arrow_unit(unit), None),
        (Kind::Time, None) | (Kind::Int, _) => DataType::Int64,
        (Kind::Symbol, _) => symbol_type(),
        (Kind::Float, _) => DataType::Float64,
        (Kind::Decimal { scale }, _) => DataType::Decimal128(DIGITS, scale.cast_signed()),
    }
}

/// Of a column of symbols.
pub(crate) fn symbol_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Milliseconds => ArrowUnit::Millisecond,
        TimeUnit::Microseconds => ArrowUnit::Microsecond,
        TimeUnit::Nanoseconds => ArrowUnit::Nanosecond,
    }
}

/// The texts of a dictionary, in the order of their numbers.
pub(crate) fn texts_of(dictionary: &Dictionary) -> ArrayRef {
    let texts =
        (0..dictionary.len()).map(|number| u32::try_from(number).ok().and_then(|it| dictionary.text(it)));
    Arc::new(texts.collect::<StringArray>())
}

/// Cells that follow one another as one array of a column's type. `texts` are those of its dictionary.
///
/// # Errors
/// When a symbol's number is not one of the dictionary: memory has been overwritten.
pub(crate) fn array(
    parts: &[Cells<'_>],
    is_of: &DataType,
    texts: Option<&ArrayRef>,
) -> Result<ArrayRef, SqlError> {
    Ok(match is_of {
        DataType::Float64 => floats(joined(parts, |cells| cells.floats())),
        DataType::Dictionary(..) => {
            let texts = texts.expect("a dictionary for each column of symbols");
            let keys = UInt32Array::new(joined(parts, |cells| cells.symbols()).into(), None);
            let symbols = DictionaryArray::try_new(keys, Arc::clone(texts));
            Arc::new(symbols.map_err(|error| SqlError::query("execute")(error.into()))?)
        }
        is_of => whole(joined(parts, |cells| cells.whole()), is_of),
    })
}

fn joined<'t, T: Cell>(parts: &[Cells<'t>], of: impl Fn(Cells<'t>) -> &'t [T]) -> Spare<T> {
    let mut all = Spare::of(parts.iter().map(|&cells| of(cells).len()).sum());
    let mut place = &mut all[..];
    for &cells in parts {
        let (here, behind) = place.split_at_mut(of(cells).len());
        here.copy_from_slice(of(cells));
        place = behind;
    }
    all
}

/// Times, whole numbers or decimals as an array of a column's type.
pub(crate) fn whole(cells: impl Into<ScalarBuffer<i64>>, is_of: &DataType) -> ArrayRef {
    let cells = cells.into();
    match is_of {
        DataType::Timestamp(ArrowUnit::Millisecond, _) => {
            Arc::new(TimestampMillisecondArray::new(cells, None))
        }
        DataType::Timestamp(ArrowUnit::Microsecond, _) => {
            Arc::new(TimestampMicrosecondArray::new(cells, None))
        }
        DataType::Timestamp(ArrowUnit::Nanosecond, _) => Arc::new(TimestampNanosecondArray::new(cells, None)),
        DataType::Decimal128(..) => {
            let wide = cells.iter().copied().map(i128::from);
            Arc::new(Decimal128Array::from_iter_values(wide).with_data_type(is_of.clone()))
        }
        _ => Arc::new(Int64Array::new(cells, None)),
    }
}

/// Floats as an array in which NaN is null.
pub(crate) fn floats(cells: impl Into<ScalarBuffer<f64>>) -> ArrayRef {
    let cells = cells.into();
    let nulls = has_nan(&cells).then(|| known(cells.len(), |row| !cells[row].is_nan()));
    Arc::new(Float64Array::new(cells, nulls))
}

/// Which of some rows are no nulls.
pub(crate) fn known(rows: usize, is_known: impl FnMut(usize) -> bool) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::collect_bool(rows, is_known))
}

/// Whether any of some floats is NaN. In pieces without a branch, which is done by vectors.
pub(crate) fn has_nan(cells: &[f64]) -> bool {
    cells.chunks(1024).any(|cells| cells.iter().fold(false, |any, cell| any | cell.is_nan()))
}

/// The other way: floats as kernels read them.
pub(crate) fn values_of(array: &ArrayRef) -> ScalarBuffer<f64> {
    let array = array.as_primitive::<Float64Type>();
    if array.null_count() == 0 {
        return array.values().clone();
    }
    let mut values = Spare::of(array.len());
    values.iter_mut().zip(array).for_each(|(place, value)| *place = value.unwrap_or(f64::NAN));
    values.into()
}
