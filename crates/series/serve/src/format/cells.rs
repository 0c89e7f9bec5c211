//! Cells of a batch as text, and what kind of text.

use std::fmt::Write as _;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell<'c> {
    Null,
    /// A number that JSON has.
    Number(&'c str),
    /// One that it has not: `nan`, `inf`, `-inf`.
    NoNumber(&'c str),
    Bool(bool),
    Text(&'c str),
}

/// Columns of a batch whose types are those that cells are read from: texts are plain ones, and no dictionaries.
pub(crate) struct Plain {
    columns: Vec<ArrayRef>,
    rows: usize,
}

impl Plain {
    pub(crate) fn of(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let columns = batch.columns().iter().map(|column| {
            let wanted = plain_type(column.data_type());
            if wanted == *column.data_type() { Ok(column.clone()) } else { cast(column, &wanted) }
        });
        Ok(Self { columns: columns.collect::<Result<_, _>>()?, rows: batch.num_rows() })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn columns(&self) -> Result<Vec<Column<'_>>, ArrowError> {
        self.columns.iter().map(Column::of).collect()
    }
}

fn plain_type(is_of: &DataType) -> DataType {
    match is_of {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            DataType::Int64
        }
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    }
}

/// A column that cells are read from.
pub(crate) struct Column<'a> {
    nulls: Option<NullBuffer>,
    source: Source<'a>,
}

enum Source<'a> {
    Whole(&'a Int64Array),
    Float(&'a Float64Array),
    Small(&'a Float32Array),
    Bool(&'a BooleanArray),
    Text(&'a StringArray),
    /// Numbers of other types.
    Number(ArrayFormatter<'a>),
    /// Without zeros at their end.
    Decimal(ArrayFormatter<'a>),
    /// Everything else: dates and times above all.
    Other(ArrayFormatter<'a>),
}

impl<'a> Column<'a> {
    fn of(array: &'a ArrayRef) -> Result<Self, ArrowError> {
        let formatter = |time: &'static str| {
            let options = FormatOptions::new().with_display_error(false);
            let options = options.with_timestamp_format(Some(time)).with_timestamp_tz_format(Some(time));
            ArrayFormatter::try_new(array.as_ref(), &options)
        };
        let source = match array.data_type() {
            DataType::Int64 => Source::Whole(array.as_primitive::<Int64Type>()),
            DataType::Float64 => Source::Float(array.as_primitive::<Float64Type>()),
            DataType::Float32 => Source::Small(array.as_primitive::<Float32Type>()),
            DataType::Boolean => Source::Bool(array.as_boolean()),
            DataType::Utf8 => Source::Text(array.as_string::<i32>()),
            is_of if is_of.is_integer() => Source::Number(formatter("")?),
            is_of if is_of.is_decimal() => Source::Decimal(formatter("")?),
            DataType::Timestamp(TimeUnit::Second, _) => Source::Other(formatter("%Y-%m-%d %H:%M:%S")?),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                Source::Other(formatter("%Y-%m-%d %H:%M:%S%.3f")?)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Source::Other(formatter("%Y-%m-%d %H:%M:%S%.6f")?)
            }
            _ => Source::Other(formatter("%Y-%m-%d %H:%M:%S%.9f")?),
        };
        Ok(Self { nulls: array.logical_nulls(), source })
    }

    /// The cell of a row; its text may be put into `room`.
    pub(crate) fn cell<'c>(&'c self, row: usize, room: &'c mut String) -> Result<Cell<'c>, ArrowError> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(Cell::Null);
        }
        room.clear();
        Ok(match &self.source {
            Source::Whole(array) => {
                let _ = write!(room, "{}", array.value(row));
                Cell::Number(room)
            }
            Source::Float(array) => float(array.value(row), room),
            Source::Small(array) => small(array.value(row), room),
            Source::Bool(array) => Cell::Bool(array.value(row)),
            Source::Text(array) => Cell::Text(array.value(row)),
            Source::Number(formatter) => {
                formatter.value(row).write(room)?;
                Cell::Number(room)
            }
            Source::Decimal(formatter) => {
                formatter.value(row).write(room)?;
                if room.contains('.') {
                    let digits = room.trim_end_matches('0').trim_end_matches('.').len();
                    room.truncate(digits);
                }
                Cell::Number(room)
            }
            Source::Other(formatter) => {
                formatter.value(row).write(room)?;
                Cell::Text(room)
            }
        })
    }
}

/// Where numbers are written with an exponent, as ClickHouse does.
const PLAIN: std::ops::Range<f64> = 1e-6..1e21;

/// The shortest text that is read back as the same float.
fn float(value: f64, room: &mut String) -> Cell<'_> {
    let is_plain = value == 0.0 || PLAIN.contains(&value.abs());
    let _ = if is_plain { write!(room, "{value}") } else { write!(room, "{value:e}") };
    odd_or(value.is_nan(), value.is_infinite(), value > 0.0, room)
}

fn small(value: f32, room: &mut String) -> Cell<'_> {
    let is_plain = value == 0.0 || PLAIN.contains(&f64::from(value.abs()));
    let _ = if is_plain { write!(room, "{value}") } else { write!(room, "{value:e}") };
    odd_or(value.is_nan(), value.is_infinite(), value > 0.0, room)
}

fn odd_or(is_nan: bool, is_infinite: bool, is_positive: bool, room: &str) -> Cell<'_> {
    match (is_nan, is_infinite, is_positive) {
        (true, ..) => Cell::NoNumber("nan"),
        (_, true, true) => Cell::NoNumber("inf"),
        (_, true, false) => Cell::NoNumber("-inf"),
        _ => Cell::Number(room),
    }
}

/// The types of columns in the words of ClickHouse.
pub(crate) fn type_names(schema: &SchemaRef) -> Vec<String> {
    let name = |field: &datafusion::arrow::datatypes::FieldRef| {
        let name = type_name(field.data_type());
        match field.is_nullable() || *field.data_type() == DataType::Null {
            true => format!("Nullable({name})"),
            false => name,
        }
    };
    schema.fields().iter().map(name).collect()
}

fn type_name(is_of: &DataType) -> String {
    match is_of {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32 => is_of.to_string(),
        DataType::Boolean => "Bool".to_owned(),
        DataType::Null => "Nothing".to_owned(),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => format!("Decimal({digits}, {scale})"),
        DataType::Timestamp(unit, zone) => {
            let digits = match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            };
            match zone {
                Some(zone) => format!("DateTime64({digits}, '{zone}')"),
                None => format!("DateTime64({digits})"),
            }
        }
        DataType::Dictionary(_, values) => type_name(values),
        _ => "String".to_owned(),
    }
}
