//! Columns of Arrow as columns of a batch: each value exactly, or its row has a fault.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use planish_table::Kind;

use crate::cell::within_decimal;
use crate::error::{Fault, What, shown};
use crate::intake::Intake;
use crate::moment::{Clock, Unit};
use crate::number::Number;
use crate::rows::{Column, Symbols};
use crate::target::{Field, Fill};

/// Where a column of the table comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// The number of the column in the stream.
    pub(super) column: usize,
}

/// Whether a type of Arrow has values of a kind.
pub(super) fn accepts(kind: Kind, theirs: &DataType) -> bool {
    let is_text =
        |theirs: &DataType| matches!(theirs, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match kind {
        Kind::Time => matches!(theirs, DataType::Timestamp(..) | DataType::Int64),
        Kind::Symbol => match theirs {
            DataType::Dictionary(_, texts) => is_text(texts),
            theirs => is_text(theirs),
        },
        Kind::Int => theirs.is_integer() || *theirs == DataType::Boolean,
        Kind::Float => theirs.is_integer() || matches!(theirs, DataType::Float32 | DataType::Float64),
        Kind::Decimal { .. } => theirs.is_integer() || matches!(theirs, DataType::Decimal128(..)),
    }
}

/// A row that has a fault: which, in which column of the stream, and what.
type Bad = (usize, usize, What);

/// Appends rows to those of the table; returns the faults of those that it left out, in order.
pub(super) fn append(
    batch: &RecordBatch,
    sources: &[Option<Source>],
    first: u64,
    arrived: Option<i64>,
    intake: &mut Intake,
) -> Vec<Fault> {
    let (target, clock, rows) = intake.parts();
    let (base, count) = (rows.count, batch.num_rows());
    let mut bad: Vec<Bad> = Vec::new();
    let mut bytes = 0;
    for (index, (field, column)) in target.fields.iter().zip(&mut rows.columns).enumerate() {
        match sources[index] {
            Some(Source { column: number }) => {
                let mut one = One { field, clock, number, bad: &mut bad };
                bytes += one.append(batch.column(number).as_ref(), column);
            }
            None => {
                let time = arrived.filter(|_| index == target.time).and_then(|ns| clock.of_ns(ns.into()));
                let fill = time.map_or_else(|| field.fill.clone(), Fill::Whole);
                bytes += repeat(column, &fill, count);
                if fill == Fill::Refuse {
                    let what = || What::Missing { name: field.name.as_str().into() };
                    bad.extend((0..count).map(|row| (row, 0, what())));
                }
            }
        }
    }
    if let Column::Times(times) = &rows.columns[target.time] {
        let kept_from = target.kept_from;
        let old = times[base..].iter().enumerate().filter(|(_, time)| **time < kept_from);
        bad.extend(old.map(|(row, &time)| (row, 0, What::TooOld { time, kept_from })));
    }
    bad.sort_by_key(|(row, column, _)| (*row, *column));
    bad.dedup_by_key(|(row, ..)| *row);
    if !bad.is_empty() {
        let removed: Vec<usize> = bad.iter().map(|(row, ..)| *row).collect();
        rows.columns.iter_mut().for_each(|column| column.remove(base, &removed));
    }
    // Texts of rows that are left out stay, cells do not.
    rows.bytes += bytes - bad.len() * rows.columns.iter().map(Column::cell_bytes).sum::<usize>();
    if bad.len() < count {
        rows.told(count - bad.len(), first, first + count as u64 - 1);
    }
    let fault =
        |(row, column, what): Bad| Fault { line: first + row as u64, column: column as u64 + 1, what };
    bad.into_iter().map(fault).collect()
}

/// Appends what stands where nothing came; returns by how many bytes the batch grew.
fn repeat(column: &mut Column, fill: &Fill, count: usize) -> usize {
    let (whole, float) = match fill {
        Fill::Whole(whole) => (*whole, f64::NAN),
        Fill::Float(float) => (0, *float),
        Fill::Refuse | Fill::Text(_) => (0, f64::NAN),
    };
    match column {
        Column::Times(cells) | Column::Ints(cells) | Column::Decimals(cells) => {
            cells.extend(std::iter::repeat_n(whole, count));
            8 * count
        }
        Column::Floats(cells) => {
            cells.extend(std::iter::repeat_n(float, count));
            8 * count
        }
        Column::Symbols(symbols) => {
            let text = if let Fill::Text(text) = fill { text } else { &b""[..] };
            let (key, bytes) = symbols.number(text).expect("it came from a text");
            symbols.keys.extend(std::iter::repeat_n(key, count));
            4 * count + bytes
        }
    }
}

/// One column on its way.
struct One<'i> {
    field: &'i Field,
    clock: Clock,
    number: usize,
    bad: &'i mut Vec<Bad>,
}

impl One<'_> {
    /// Appends an array of a type that is accepted; returns by how many bytes the batch grew.
    fn append(&mut self, array: &dyn Array, column: &mut Column) -> usize {
        match (column, self.field.kind) {
            (Column::Times(cells), _) => self.times(array, cells),
            (Column::Ints(cells), _) => match array.as_boolean_opt() {
                Some(array) => self.truths(array, cells),
                None => self.integers(array, cells, 0, |value| i64::try_from(value).ok()),
            },
            (Column::Decimals(cells), Kind::Decimal { scale }) => self.decimals(array, cells, scale),
            (Column::Floats(cells), _) => self.floats(array, cells),
            (Column::Symbols(symbols), _) => return self.symbols(array, symbols),
            (Column::Decimals(_), _) => unreachable!("a column of decimals is of that kind"),
        }
        8 * array.len()
    }

    fn times(&mut self, array: &dyn Array, cells: &mut Vec<i64>) {
        let clock = |unit| self.clock.with(unit);
        match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                let clock = clock(Unit::Seconds);
                self.each::<TimestampSecondType, _>(array, cells, 0, |time| clock.of_whole(time));
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                let clock = clock(Unit::Milliseconds);
                self.each::<TimestampMillisecondType, _>(array, cells, 0, |time| clock.of_whole(time));
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let clock = clock(Unit::Microseconds);
                self.each::<TimestampMicrosecondType, _>(array, cells, 0, |time| clock.of_whole(time));
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                let clock = clock(Unit::Nanoseconds);
                self.each::<TimestampNanosecondType, _>(array, cells, 0, |time| clock.of_whole(time));
            }
            _ => {
                let clock = self.clock;
                self.each::<Int64Type, _>(array, cells, 0, |time| clock.of_whole(time));
            }
        }
    }

    fn truths(&mut self, array: &BooleanArray, cells: &mut Vec<i64>) {
        for (row, value) in array.iter().enumerate() {
            let cell = match value {
                Some(value) => i64::from(value),
                None => {
                    self.null(row, 0, |fill| if let Fill::Whole(whole) = fill { Some(*whole) } else { None })
                }
            };
            cells.push(cell);
        }
    }

    fn decimals(&mut self, array: &dyn Array, cells: &mut Vec<i64>, scale: u8) {
        let DataType::Decimal128(_, theirs) = *array.data_type() else {
            let power = 10_i128.pow(scale.into());
            let scaled = |value: i128| within_decimal(i64::try_from(value.checked_mul(power)?).ok()?);
            return self.integers(array, cells, 0, scaled);
        };
        let shift = i32::from(scale) - i32::from(theirs);
        let power = 10_i128.checked_pow(shift.unsigned_abs());
        let convert = |value: i128| {
            let value = match power {
                _ if value == 0 => 0,
                Some(power) if shift >= 0 => value.checked_mul(power)?,
                Some(power) if value % power == 0 => value / power,
                _ => return None,
            };
            within_decimal(i64::try_from(value).ok()?)
        };
        self.each::<Decimal128Type, _>(array, cells, 0, convert);
    }

    fn floats(&mut self, array: &dyn Array, cells: &mut Vec<f64>) {
        match array.data_type() {
            DataType::Float64 => self.each::<Float64Type, _>(array, cells, f64::NAN, Some),
            DataType::Float32 => {
                self.each::<Float32Type, _>(array, cells, f64::NAN, |it| Some(f64::from(it)))
            }
            _ => self.integers(array, cells, f64::NAN, |value| {
                Number::of_whole(i64::try_from(value).ok()?).whole_float()
            }),
        }
    }

    /// Whole numbers of any width.
    fn integers<C: Cell>(
        &mut self,
        array: &dyn Array,
        cells: &mut Vec<C>,
        none: C,
        convert: impl Fn(i128) -> Option<C>,
    ) {
        match array.data_type() {
            DataType::Int8 => self.each::<Int8Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::Int16 => self.each::<Int16Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::Int32 => self.each::<Int32Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::Int64 => self.each::<Int64Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::UInt8 => self.each::<UInt8Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::UInt16 => self.each::<UInt16Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::UInt32 => self.each::<UInt32Type, _>(array, cells, none, |it| convert(it.into())),
            DataType::UInt64 => self.each::<UInt64Type, _>(array, cells, none, |it| convert(it.into())),
            other => unreachable!("{other} was accepted as whole numbers"),
        }
    }

    /// Values of one type; `none` stands for those whose rows have a fault, until they are left out.
    fn each<T: ArrowPrimitiveType, C: Cell>(
        &mut self,
        array: &dyn Array,
        cells: &mut Vec<C>,
        none: C,
        convert: impl Fn(T::Native) -> Option<C>,
    ) {
        let array: &PrimitiveArray<T> = array.as_primitive();
        cells.reserve(array.len());
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        for (row, &value) in array.values().iter().enumerate() {
            let cell = match nulls {
                Some(nulls) if nulls.is_null(row) => self.null(row, none, C::of_fill),
                _ => convert(value).unwrap_or_else(|| {
                    self.refuse(row, format!("{value:?}").as_bytes());
                    none
                }),
            };
            cells.push(cell);
        }
    }

    /// What stands for a null, or a fault.
    fn null<C>(&mut self, row: usize, none: C, of_fill: impl Fn(&Fill) -> Option<C>) -> C {
        of_fill(&self.field.fill).unwrap_or_else(|| {
            self.bad.push((row, self.number, What::Missing { name: self.field.name.as_str().into() }));
            none
        })
    }

    #[cold]
    fn refuse(&mut self, row: usize, text: &[u8]) {
        let (name, kind) = (self.field.name.as_str().into(), self.field.kind.name());
        let cure = "send what the column holds exactly";
        self.bad.push((row, self.number, What::Value { name, kind, text: shown(text), cure }));
    }

    fn symbols(&mut self, array: &dyn Array, symbols: &mut Symbols) -> usize {
        let mut bytes = 4 * array.len();
        let mut number = |text: &str, symbols: &mut Symbols| {
            let (number, grown) = symbols.number(text.as_bytes()).expect("it is a text");
            bytes += grown;
            number
        };
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            for row in 0..array.len() {
                let key = match text(array, row) {
                    Some(text) => number(text, symbols),
                    None => self.no_text(row, symbols, &mut number),
                };
                symbols.keys.push(key);
            }
            return bytes;
        };
        // Each text of the dictionary is looked up once, when the first row has it.
        let (keys, texts) = (dictionary.keys(), dictionary.values().as_ref());
        let places = if texts.is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() };
        let mut known = vec![None; texts.len()];
        for (row, place) in places.into_iter().enumerate() {
            let key = match known.get_mut(place).filter(|_| !keys.is_null(row)) {
                Some(Some(key)) => *key,
                Some(unknown) => match text(texts, place) {
                    Some(text) => *unknown.insert(number(text, symbols)),
                    None => self.no_text(row, symbols, &mut number),
                },
                None => self.no_text(row, symbols, &mut number),
            };
            symbols.keys.push(key);
        }
        bytes
    }

    fn no_text(
        &mut self,
        row: usize,
        symbols: &mut Symbols,
        number: &mut impl FnMut(&str, &mut Symbols) -> u32,
    ) -> u32 {
        let fill =
            if let Fill::Text(text) = &self.field.fill { std::str::from_utf8(text).ok() } else { None };
        match fill {
            Some(text) => number(text, symbols),
            None => self.null(row, 0, |_| None),
        }
    }
}

/// The text of a row, if it has one.
fn text(array: &dyn Array, row: usize) -> Option<&str> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row),
        DataType::Utf8View => array.as_string_view().value(row),
        other => unreachable!("{other} was accepted as text"),
    })
}

/// A cell of a column that is not of symbols.
trait Cell: Copy {
    fn of_fill(fill: &Fill) -> Option<Self>;
}

impl Cell for i64 {
    fn of_fill(fill: &Fill) -> Option<Self> {
        if let Fill::Whole(whole) = fill { Some(*whole) } else { None }
    }
}

impl Cell for f64 {
    fn of_fill(fill: &Fill) -> Option<Self> {
        if let Fill::Float(float) = fill { Some(*float) } else { None }
    }
}
