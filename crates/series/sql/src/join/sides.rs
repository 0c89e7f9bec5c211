//! The two tables of a join by time: their conditions taken apart, and their columns as kernels read them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;

use crate::join::exec::OnRows;

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
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
    /// How many different ones; all are below it.
    pub(super) count: usize,
}

/// Left rows with a null in their key; no right row has it.
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
                let zeros = |side: &RecordBatch, from| vec![0; side.num_rows() - from];
                Ok(Self { left: zeros(left, left_from), right: zeros(right, right_from), count: 1 })
            }
            ([left], [right]) if is_symbol(left) && is_symbol(right) => Ok(Self::of_symbols(left, right)),
            _ => Self::of_rows(&lefts, &rights),
        }
    }

    /// Texts are compared once, and not once a row.
    fn of_symbols(left: &ArrayRef, right: &ArrayRef) -> Self {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut side = |symbols: &ArrayRef, none: u32| -> Vec<u32> {
            let symbols = symbols.as_dictionary::<UInt32Type>();
            let texts = symbols.values().as_string::<i32>();
            let mut number = |text: Option<&str>| {
                let Some(text) = text else { return none };
                if let Some(&known) = numbers.get(text) {
                    return known;
                }
                let new = FIRST + u32::try_from(numbers.len()).expect("there are fewer texts than keys");
                numbers.insert(text.to_owned(), new);
                new
            };
            let of_texts: Vec<u32> = texts.iter().map(&mut number).collect();
            match symbols.keys().null_count() {
                0 => symbols.keys().values().iter().map(|&key| of_texts[key as usize]).collect(),
                _ => {
                    symbols.keys().iter().map(|key| key.map_or(none, |key| of_texts[key as usize])).collect()
                }
            }
        };
        let (left, right) = (side(left, NO_LEFT), side(right, NO_RIGHT));
        Self { left, right, count: FIRST as usize + numbers.len() }
    }

    fn of_rows(lefts: &[ArrayRef], rights: &[ArrayRef]) -> Result<Self> {
        let fields = lefts.iter().map(|column| SortField::new(column.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let mut numbers: HashMap<OwnedRow, u32> = HashMap::new();
        let mut side = |columns: &[ArrayRef], none: u32| -> Result<Vec<u32>> {
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
            Ok(keys)
        };
        let (left, right) = (side(lefts, NO_LEFT)?, side(rights, NO_RIGHT)?);
        Ok(Self { left, right, count: FIRST as usize + numbers.len() })
    }
}

fn too_many_keys() -> DataFusionError {
    DataFusionError::Execution("a join by time with more than 4294967293 different keys".to_owned())
}

fn is_symbol(column: &ArrayRef) -> bool {
    *column.data_type() == crate::scan::arrays::symbol_type()
}
