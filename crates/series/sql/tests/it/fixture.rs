//! Tables of random rows, and answers as values that can be compared.

use std::num::NonZeroUsize;
use std::sync::{Arc, RwLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use planish_arena::{Arena, Growth, Page, Preference};
use planish_sql::{Answer, Engine, Source, SqlError};
use planish_table::{Cells, Column, Kind, Partitioning, Schema, Table, TimeUnit};
use proptest::prelude::*;

pub const SYMBOLS: [&str; 4] = ["alpha", "beta", "it's", ""];

/// A row of a table of trades or quotes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub time: i64,
    pub symbol: usize,
    /// NaN is null.
    pub price: f64,
    pub size: i64,
}

/// How the rows of a table are divided.
#[derive(Debug, Clone, Copy)]
pub struct Division {
    pub span: i64,
    pub symbols: Option<u32>,
    /// Rows that come in one batch.
    pub batch_rows: usize,
}

pub fn division() -> impl Strategy<Value = Division> {
    let symbols = prop_oneof![Just(None), Just(Some(1)), Just(Some(2))];
    (prop_oneof![Just(7), Just(40), Just(1000)], symbols, 1usize..60)
        .prop_map(|(span, symbols, batch_rows)| Division { span, symbols, batch_rows })
}

/// Rows in any order of time, some of them with the same; some prices are null.
pub fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    let price =
        prop_oneof![1 => Just(f64::NAN), 9 => (-400i32..400).prop_map(|price| f64::from(price) / 4.0)];
    let row = (-50i64..50, 0..SYMBOLS.len(), price, -3i64..100);
    prop::collection::vec(
        row.prop_map(|(time, symbol, price, size)| Row { time, symbol, price, size }),
        0..most,
    )
}

pub fn without_nulls(rows: &mut [Row]) {
    rows.iter_mut().filter(|row| row.price.is_nan()).for_each(|row| row.price = 1.25);
}

pub fn schema(division: Division) -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [("ts", Kind::Time), ("sym", Kind::Symbol), ("price", Kind::Float), ("size", Kind::Int)];
    let partitioning = Partitioning { span: division.span, symbols: division.symbols };
    Schema::new(columns.map(column).to_vec(), partitioning).unwrap()
}

/// Memory for as long as the program.
pub fn arena() -> &'static Arena {
    let growth = Growth { first_bytes: 1 << 20, cap_bytes: 64 << 20 };
    let arena = Arena::builder().page(Preference::From(Page::Base)).growth(growth).build().unwrap();
    Box::leak(Box::new(arena))
}

/// Hands `append` the rows in batches.
pub fn append_all(rows: &[Row], batch_rows: usize, mut append: impl FnMut(&[Cells<'_>])) {
    for rows in rows.chunks(batch_rows.max(1)) {
        let times: Vec<i64> = rows.iter().map(|row| row.time).collect();
        let symbols: Vec<&str> = rows.iter().map(|row| SYMBOLS[row.symbol]).collect();
        let prices: Vec<f64> = rows.iter().map(|row| row.price).collect();
        let sizes: Vec<i64> = rows.iter().map(|row| row.size).collect();
        append(&[
            Cells::Times(&times),
            Cells::Symbols(&symbols),
            Cells::Floats(&prices),
            Cells::Ints(&sizes),
        ]);
    }
}

pub fn memory(rows: &[Row], division: Division) -> Source {
    let mut table = Table::new(arena(), schema(division));
    append_all(rows, division.batch_rows, |batch| table.append(batch).unwrap());
    Source::Memory(Arc::new(RwLock::new(table)))
}

pub fn engine(threads: usize, tables: &[(&str, Source)]) -> Engine {
    let engine = Engine::new(NonZeroUsize::new(threads).unwrap()).unwrap();
    for (name, source) in tables {
        engine.add(name, source.clone(), None).unwrap();
    }
    engine
}

/// An engine with one table whose times have a unit.
pub fn engine_with_unit(rows: &[Row], unit: TimeUnit) -> Engine {
    let engine = engine(2, &[]);
    let division = Division { span: 1 << 40, symbols: None, batch_rows: 100 };
    engine.add("trades", memory(rows, division), Some(unit)).unwrap();
    engine
}

pub fn try_ask(engine: &Engine, sql: &str) -> Result<Answer, SqlError> {
    wait(engine.query(sql))
}

pub fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[track_caller]
pub fn ask(engine: &Engine, sql: &str) -> Vec<Vec<Value>> {
    match try_ask(engine, sql) {
        Ok(answer) => values(&answer),
        Err(error) => panic!("{sql}: {}", chain(&error)),
    }
}

/// The whole text of an error.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// The plan that runs.
#[track_caller]
pub fn explain(engine: &Engine, sql: &str) -> String {
    let rows = ask(engine, &format!("EXPLAIN {sql}"));
    let text = |row: &Vec<Value>| match row.last() {
        Some(Value::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    rows.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
}

impl Value {
    /// Whether two are one but for the order of additions.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(one), Self::Float(other)) => {
                one == other || (one - other).abs() <= 1e-9 * (1e4 + one.abs().max(other.abs()))
            }
            _ => self == other,
        }
    }
}

pub fn float(value: f64) -> Value {
    if value.is_nan() { Value::Null } else { Value::Float(value) }
}

/// Rows of an answer.
pub fn values(answer: &Answer) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in &answer.batches {
        let columns: Vec<Vec<Value>> = batch.columns().iter().map(column).collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()),
        );
    }
    rows
}

fn column(array: &ArrayRef) -> Vec<Value> {
    let is_of = match array.data_type() {
        DataType::Float64 | DataType::Decimal128(..) => DataType::Float64,
        DataType::Utf8 | DataType::Utf8View | DataType::Dictionary(..) => DataType::Utf8,
        _ => DataType::Int64,
    };
    let array = cast(array, &is_of).unwrap();
    let value = |row: usize| match (&is_of, array.is_null(row)) {
        (_, true) => Value::Null,
        (DataType::Float64, _) => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        (DataType::Utf8, _) => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        _ => Value::Int(array.as_primitive::<Int64Type>().value(row)),
    };
    (0..array.len()).map(value).collect()
}

/// In some order that does not depend on where rows come from.
pub fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

#[track_caller]
pub fn assert_like(got: &[Vec<Value>], wanted: &[Vec<Value>], context: &str) {
    let is_like = got.len() == wanted.len()
        && got.iter().zip(wanted).all(|(got, wanted)| {
            got.len() == wanted.len() && got.iter().zip(wanted).all(|(got, wanted)| got.is_like(wanted))
        });
    assert!(is_like, "{context}\n   got {got:?}\nwanted {wanted:?}");
}

/// Rows in order of time; those of one time as they came.
pub fn in_time_order(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.time);
    rows
}
