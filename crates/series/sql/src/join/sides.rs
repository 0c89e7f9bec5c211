//! The two tables of a join by time: their conditions taken apart, and their columns as kernels read them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int64Array, RecordBatch};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;

use crate::join::exec::OnRows;
use crate::scan::spare::Spare;

/// Of which side an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The side whose columns an expression is made of; `None` for columns of both, and of none.
pub(super) fn side_of(expression: &Expr, left: &DFSchema, right: &DFSchema) -> Option<Side> {
    let columns = expression.column_refs();
    let all = |schema: &DFSchema| columns.iter().all(|column: &&Column| schema.is_column_from_schema(column));
    match (columns.is_empty(), all(left), all(right)) {
        (false, true, false) => Some(Side::Left),
        (false, false, true) => Some(Side::Right),
        _ => None,
    }
}

/// A comparison between the sides, with the left side left; `None` for anything else.
pub(super) fn comparison(
    condition: &Expr,
    left: &DFSchema,
    right: &DFSchema,
) -> Option<(Expr, Operator, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = condition else { return None };
    match (side_of(one, left, right)?, side_of(other, left, right)?) {
        (Side::Left, Side::Right) => Some(((**one).clone(), *op, (**other).clone())),
        (Side::Right, Side::Left) => Some(((**other).clone(), op.swap()?, (**one).clone())),
        _ => None,
    }
}

/// Times of a side, which are in order; nulls come first.
pub(super) struct SideTimes {
    times: Int64Array,
    /// Rows without a time.
    pub(super) nulls: usize,
}

impl SideTimes {
    pub(super) fn of(expression: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<Self> {
        let times = expression.evaluate(rows)?.into_array(rows.num_rows())?;
        let times = cast(&times, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
        let nulls = times.null_count();
        Ok(Self { times, nulls })
    }

    /// Those that are known.
    pub(super) fn known(&self) -> &[i64] {
        &self.times.values()[self.nulls..]
    }
}

/// Keys of both sides as dense numbers: equal where all columns are equal, and neither is null.
pub(super) struct SideKeys {
    pub(super) left: ScalarBuffer<u32>,
    pub(super) right: ScalarBuffer<u32>,
    /// All are below it.
    pub(super) count: usize,
}

/// Left rows with a null in a key of several columns; no right row has it.
const NO_LEFT: u32 = 0;
/// Right rows with a null in their key; no left row has it.
const NO_RIGHT: u32 = 1;
/// The first key of rows that may be equal.
const FIRST: u32 = 2;

impl SideKeys {
    /// Of the keys of a join, from a row of each side on.
    pub(super) fn of(
        on: &OnRows,
        (left, left_from): (&RecordBatch, usize),
        (right, right_from): (&RecordBatch, usize),
    ) -> Result<Self> {
        let columns = |side: &RecordBatch, from: usize, key: &Arc<dyn PhysicalExpr>| -> Result<ArrayRef> {
            let column = key.evaluate(side)?.into_array(side.num_rows())?;
            Ok(column.slice(from, column.len() - from))
        };
        let lefts =
            on.keys.iter().map(|(key, _)| columns(left, left_from, key)).collect::<Result<Vec<_>>>()?;
        let rights =
            on.keys.iter().map(|(_, key)| columns(right, right_from, key)).collect::<Result<Vec<_>>>()?;
        match (&*lefts, &*rights) {
            ([], []) => {
                let zeros = |side: &RecordBatch, from| vec![0; side.num_rows() - from].into();
                Ok(Self { left: zeros(left, left_from), right: zeros(right, right_from), count: 1 })
            }
            ([left], [right]) if is_symbol(left) && is_symbol(right) => Ok(Self::of_symbols(left, right)),
            _ => Self::of_rows(&lefts, &rights),
        }
    }

    /// Texts are compared once, and not once a row. Left symbols keep their numbers, so that nothing need be written
    /// where no text is there twice; right ones get those of the same texts, or new ones behind them.
    fn of_symbols(left: &ArrayRef, right: &ArrayRef) -> Self {
        let (left, right) = (left.as_dictionary::<UInt32Type>(), right.as_dictionary::<UInt32Type>());
        let (left_texts, right_texts) = (left.values().as_string::<i32>(), right.values().as_string::<i32>());
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let number = |count: usize| u32::try_from(count).expect("there are fewer texts than keys");
        let lefts = left_texts.iter().enumerate();
        let lefts: Vec<Option<u32>> =
            lefts.map(|(new, text)| Some(*numbers.entry(text?).or_insert(number(new)))).collect();
        let mut count = lefts.len();
        let mut of_right = |text| {
            *numbers.entry(text).or_insert_with(|| {
                count += 1;
                number(count - 1)
            })
        };
        let rights: Vec<Option<u32>> = right_texts.iter().map(|text| text.map(&mut of_right)).collect();
        // No row of the other side has these: what is null is equal to nothing.
        let (no_left, no_right) = (number(count), number(count + 1));
        Self {
            left: keys_of(left, &lefts, no_left),
            right: keys_of(right, &rights, no_right),
            count: count + 2,
        }
    }

    fn of_rows(lefts: &[ArrayRef], rights: &[ArrayRef]) -> Result<Self> {
        let fields = lefts.iter().map(|column| SortField::new(column.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let mut numbers: HashMap<OwnedRow, u32> = HashMap::new();
        let mut side = |columns: &[ArrayRef], none: u32| -> Result<ScalarBuffer<u32>> {
            let rows = converter.convert_columns(columns)?;
            let nulls = columns.iter().map(|column| column.logical_nulls()).collect::<Vec<_>>();
            let is_null = |row: usize| nulls.iter().flatten().any(|nulls| nulls.is_null(row));
            let mut keys = Vec::with_capacity(rows.num_rows());
            for (row, key) in rows.iter().enumerate() {
                if is_null(row) {
                    keys.push(none);
                    continue;
                }
                let new = FIRST as usize + numbers.len();
                let new = u32::try_from(new).map_err(|_| too_many_keys())?;
                keys.push(*numbers.entry(key.owned()).or_insert(new));
            }
            Ok(ScalarBuffer::from(keys))
        };
        let (left, right) = (side(lefts, NO_LEFT)?, side(rights, NO_RIGHT)?);
        Ok(Self { left, right, count: FIRST as usize + numbers.len() })
    }
}

/// The key of each row, of those of the texts.
fn keys_of(symbols: &DictionaryArray<UInt32Type>, of_texts: &[Option<u32>], none: u32) -> ScalarBuffer<u32> {
    let texts = symbols.keys();
    let is_same = |(text, key): (u32, &Option<u32>)| *key == Some(text);
    if texts.null_count() == 0 && (0..).zip(of_texts).all(is_same) {
        return texts.values().clone();
    }
    let of_texts: Vec<u32> = of_texts.iter().map(|key| key.unwrap_or(none)).collect();
    let mut keys = Spare::of(texts.len());
    match texts.null_count() {
        0 => keys.iter_mut().zip(texts.values()).for_each(|(key, &text)| *key = of_texts[text as usize]),
        _ => keys
            .iter_mut()
            .zip(texts)
            .for_each(|(key, text)| *key = text.map_or(none, |text| of_texts[text as usize])),
    }
    keys.into()
}

fn too_many_keys() -> DataFusionError {
    DataFusionError::Execution("a join by time with more than 4294967293 different keys".to_owned())
}

fn is_symbol(column: &ArrayRef) -> bool {
    *column.data_type() == crate::scan::arrays::symbol_type()
}
