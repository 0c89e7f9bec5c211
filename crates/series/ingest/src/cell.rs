//! A value of an input as a cell of a column: exactly, or not at all.

use planish_table::Kind;

use crate::error::{What, shown};
use crate::moment::Clock;
use crate::number::{Number, float};
use crate::target::Field;

/// How a value stood in the input, which says what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A tag of line protocol: a symbol.
    Tag,
    /// Text in quotes.
    Quoted,
    /// A number, or a word like `true`.
    Bare,
    /// A whole number that says so by an `i` or `u` behind it, which is left out here.
    Whole,
    /// A field of CSV, which does not say what it is.
    Field,
}

/// A cell of a row that is being put together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// Nothing came yet.
    Missing,
    /// A time, whole number or decimal.
    Whole(i64),
    Float(f64),
    /// The number of a text among those of its batch.
    Key(u32),
}

/// The cell of a column that is not of symbols.
pub(crate) fn cell(field: &Field, clock: Clock, form: Form, text: &[u8]) -> Result<Cell, What> {
    let text = if form == Form::Field { text.trim_ascii() } else { text };
    let cell = match (field.kind, form) {
        (_, Form::Tag) | (Kind::Symbol, _) => None,
        (Kind::Time, _) => clock.of_text(text).map(Cell::Whole),
        (Kind::Float, Form::Whole) => Number::read(text).and_then(Number::whole_float).map(Cell::Float),
        (Kind::Float, _) => float(text).map(Cell::Float),
        (Kind::Int, Form::Whole) => Number::read(text).and_then(Number::whole).map(Cell::Whole),
        (Kind::Int, _) => Number::read(text).map_or_else(|| word(text), Number::whole).map(Cell::Whole),
        (Kind::Decimal { scale }, _) => decimal(text, scale).map(Cell::Whole),
    };
    cell.ok_or_else(|| refused(field, form, text))
}

/// What is wrong with a value that is no cell of its column.
pub(crate) fn refused(field: &Field, form: Form, text: &[u8]) -> What {
    let cure = match (field.kind, form) {
        (Kind::Symbol, _) => "send it as a tag, or as text in quotes",
        (_, Form::Tag) => "send it as a field: tags are symbols",
        (Kind::Time, _) => "send a number in the unit that was said, or a date and time as of RFC 3339",
        (Kind::Float, Form::Whole) => "send it without an i: it is more than a float holds exactly",
        (Kind::Float, _) => "send a number such as 1.5",
        (Kind::Int, _) => "send a whole number of 64 bits, such as 12i",
        (Kind::Decimal { .. }, _) => "send a number with no more digits after the point, and 18 in all",
    };
    What::Value { name: field.name.as_str().into(), kind: field.kind.name(), text: shown(text), cure }
}

/// Most of a decimal that the table keeps: eighteen digits.
const DECIMAL_MAX: u64 = 999_999_999_999_999_999;

fn decimal(text: &[u8], scale: u8) -> Option<i64> {
    within_decimal(Number::read(text)?.scaled(scale)?)
}

/// A decimal that the table can keep.
pub(crate) fn within_decimal(digits: i64) -> Option<i64> {
    (digits.unsigned_abs() <= DECIMAL_MAX).then_some(digits)
}

/// A truth value as a whole number: tables have no column of them.
fn word(text: &[u8]) -> Option<i64> {
    match text {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => Some(1),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => Some(0),
        _ => None,
    }
}
