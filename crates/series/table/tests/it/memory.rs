//! Tables against a plain vector of rows that is sorted by time.

use std::collections::BTreeMap;

use planish_arena::{Arena, Fallback, Growth, Page, Preference};
use planish_kernels::{Parts, TimeBar, Xbar};
use planish_table::{
    Cells, Column, Filter, Kind, Partitioning, Piece, ROWS_FIRST, ROWS_LAST, Schema, Table, TableError, Zone,
};
use proptest::prelude::*;

const SYMBOLS: [&str; 5] = ["alpha", "beta", "gamma", "delta", ""];

fn arena() -> Arena {
    let growth = Growth { first_bytes: 1 << 20, cap_bytes: 4 << 20 };
    Arena::builder().page(Preference::From(Page::Base)).growth(growth).build().unwrap()
}

fn schema(span: i64, symbols: Option<u32>) -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [
        ("symbol", Kind::Symbol),
        ("time", Kind::Time),
        ("price", Kind::Float),
        ("size", Kind::Int),
        ("fee", Kind::Decimal { scale: 4 }),
    ];
    Schema::new(columns.map(column).to_vec(), Partitioning { span, symbols }).unwrap()
}

/// One row; `number` says when it came.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    symbol: usize,
    time: i64,
    price: f64,
    number: i64,
}

fn append(table: &mut Table<'_>, rows: &[Row]) -> Result<(), TableError> {
    let symbols: Vec<&str> = rows.iter().map(|row| SYMBOLS[row.symbol]).collect();
    let times: Vec<i64> = rows.iter().map(|row| row.time).collect();
    let prices: Vec<f64> = rows.iter().map(|row| row.price).collect();
    let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
    let fees: Vec<i64> = numbers.iter().map(|number| -number).collect();
    table.append(&[
        Cells::Symbols(&symbols),
        Cells::Times(&times),
        Cells::Floats(&prices),
        Cells::Ints(&numbers),
        Cells::Decimals(&fees),
    ])
}

fn rows_of(table: &Table<'_>, piece: &Piece<'_>) -> Vec<Row> {
    let dictionary = table.dictionary("symbol").unwrap();
    let keys = piece.keys(0).unwrap().unwrap();
    let (prices, numbers, fees) =
        (piece.floats(2).unwrap(), piece.whole(3).unwrap(), piece.whole(4).unwrap());
    let symbol = |key| SYMBOLS.iter().position(|&text| Some(text) == dictionary.text(key)).unwrap();
    assert!(numbers.iter().zip(fees).all(|(number, fee)| -number == *fee));
    (0..piece.rows())
        .map(|row| Row {
            symbol: symbol(keys.as_slice()[row]),
            time: piece.times().as_slice()[row],
            price: prices[row],
            number: numbers[row],
        })
        .collect()
}

/// The lowest and highest of each column hold every row of the piece.
fn check_zones(piece: &Piece<'_>) {
    for column in [1, 3, 4] {
        let Some(Zone::Whole(Some((low, high)))) = piece.zone(column) else {
            panic!("a zone of whole numbers")
        };
        assert!(piece.whole(column).unwrap().iter().all(|value| (low..=high).contains(value)));
    }
    match piece.zone(2) {
        Some(Zone::Float(Some((low, high)))) => {
            assert!(
                piece.floats(2).unwrap().iter().all(|value| value.is_nan() || (low..=high).contains(value))
            );
        }
        Some(Zone::Float(None)) => assert!(piece.floats(2).unwrap().iter().all(|value| value.is_nan())),
        other => panic!("{other:?}"),
    }
    assert!(piece.zone(9).is_none() && piece.floats(3).is_none() && piece.keys(1).is_none());
}

fn same(got: &[Row], wanted: &[Row]) -> bool {
    let same = |(left, right): (&Row, &Row)| {
        let is_price = left.price == right.price || (left.price.is_nan() && right.price.is_nan());
        is_price && (left.symbol, left.time, left.number) == (right.symbol, right.time, right.number)
    };
    got.len() == wanted.len() && got.iter().zip(wanted).all(same)
}

/// What a scan must give: the partitions in order, each stably sorted by time.
fn check(table: &Table<'_>, model: &[Row], schema: &Schema, filter: Filter) {
    let dictionary = table.dictionary("symbol").unwrap();
    let place = |row: &Row| {
        let number = dictionary.number(SYMBOLS[row.symbol]).unwrap();
        let group = schema.partitioning().symbols.map_or(0, |symbols| number / symbols);
        (group, row.time.div_euclid(schema.partitioning().span))
    };
    let mut wanted: Vec<Row> =
        model.iter().copied().filter(|row| (filter.from..=filter.to).contains(&row.time)).collect();
    wanted.sort_by_key(|row| (place(row), row.time));
    let mut got = Vec::new();
    for piece in table.scan(filter) {
        check_zones(&piece);
        assert!(piece.times().as_slice().is_sorted() && piece.rows() > 0);
        got.extend(rows_of(table, &piece));
    }
    if let Some(symbol) = filter.symbol {
        // Others may come along; of the symbol itself nothing may be missing.
        let is_it = |row: &Row| dictionary.number(SYMBOLS[row.symbol]) == Some(symbol);
        got.retain(is_it);
        wanted.retain(is_it);
    }
    assert!(same(&got, &wanted), "{got:?}\nis not\n{wanted:?}");
}

fn batches() -> impl Strategy<Value = Vec<Vec<(usize, i64, f64)>>> {
    let price = prop_oneof![3 => -9.0f64..9.0, 1 => Just(f64::NAN)];
    let row = (0usize..SYMBOLS.len(), -60i64..60, price);
    prop::collection::vec(prop::collection::vec(row, 0..40), 1..8)
}

fn numbered(batches: Vec<Vec<(usize, i64, f64)>>) -> Vec<Vec<Row>> {
    let mut number = 0;
    let mut row = |(symbol, time, price)| {
        number += 1;
        Row { symbol, time, price, number }
    };
    batches.into_iter().map(|batch| batch.into_iter().map(&mut row).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_in_any_order_come_back_in_time_order(
        batches in batches(), span in prop_oneof![Just(7i64), Just(1000)], symbols in prop::option::of(1u32..4),
        from in -70i64..70, length in 0i64..90, symbol in prop::option::of(0u32..5),
    ) {
        let arena = arena();
        let schema = schema(span, symbols);
        let mut table = Table::new(&arena, schema.clone());
        let mut model = Vec::new();
        for batch in numbered(batches) {
            append(&mut table, &batch).unwrap();
            model.extend(batch);
            check(&table, &model, &schema, Filter::ALL);
        }
        check(&table, &model, &schema, Filter { from, to: from + length, symbol });
        prop_assert_eq!(table.rows(), model.len());
        let before = model.len();
        model.retain(|row| row.time.div_euclid(span) >= from.div_euclid(span));
        prop_assert_eq!(table.drop_before(from), before - model.len());
        check(&table, &model, &schema, Filter::ALL);
    }
}

fn climbing(from: i64, rows: i64) -> Vec<Row> {
    (from..from + rows).map(|time| Row { symbol: 0, time, price: (time % 97) as f64, number: time }).collect()
}

#[test]
fn late_rows_are_merged_across_segments_and_ties_keep_their_order() {
    let arena = arena();
    let schema = schema(i64::MAX, None);
    let mut table = Table::new(&arena, schema.clone());
    let rows = 3 * ROWS_FIRST as i64 + ROWS_FIRST as i64 * 2;
    let mut model = climbing(0, rows);
    append(&mut table, &model).unwrap();
    assert!(table.scan(Filter::ALL).count() >= 3, "rows of several segments");
    for time in [0, 5, ROWS_FIRST as i64, rows - 1, -1, 2 * ROWS_FIRST as i64] {
        let late = Row { symbol: 1, time, price: 0.5, number: -time };
        append(&mut table, &[late, late]).unwrap();
        model.extend([late, late]);
    }
    check(&table, &model, &schema, Filter::ALL);
    check(&table, &model, &schema, Filter { from: 3, to: 9, symbol: None });
}

#[test]
fn partitions_are_right_sized_and_their_memory_is_used_again() {
    let arena = arena();
    let mut table = Table::new(&arena, schema(1000, None));
    append(&mut table, &climbing(0, 1000)).unwrap();
    assert!(table.free_rows() < ROWS_FIRST);
    let used_bytes = arena.used_bytes();
    for span in 1..50 {
        append(&mut table, &climbing(span * 1000, 1000)).unwrap();
        assert_eq!(table.drop_before(span * 1000), 1000);
    }
    assert_eq!((table.rows(), table.partitions()), (1000, 1));
    assert!(arena.used_bytes() <= 2 * used_bytes, "freed segments were not used again");
    let mut large = Table::new(&arena, schema(i64::MAX, None));
    append(&mut large, &climbing(0, 300_000)).unwrap();
    assert!(large.free_rows() < ROWS_LAST);
}

#[test]
fn an_append_that_fails_leaves_everything_as_it_was() {
    let arena = arena();
    let schema = schema(10, None);
    let mut table = Table::new(&arena, schema.clone());
    let model = climbing(0, 25);
    append(&mut table, &model).unwrap();
    let symbols: [&[&str]; 2] = [&["new"], &["new", "newer"]];
    let good = |symbols| {
        [
            Cells::Symbols(symbols),
            Cells::Times(&[1]),
            Cells::Floats(&[1.0]),
            Cells::Ints(&[1]),
            Cells::Decimals(&[1]),
        ]
    };
    let wrong = table.append(&good(symbols[1]));
    assert!(matches!(wrong, Err(TableError::Length { want: 2, got: 1, .. })), "{wrong:?}");
    let mut batch = good(symbols[0]);
    batch[3] = Cells::Decimals(&[1]);
    let wrong = table.append(&batch);
    assert!(matches!(wrong, Err(TableError::Kind { want: "int", got: "decimal", .. })), "{wrong:?}");
    let wrong = table.append(&batch[..4]);
    assert!(matches!(wrong, Err(TableError::Columns { want: 5, got: 4 })), "{wrong:?}");
    assert_eq!(table.dictionary("symbol").unwrap().len(), 1);
    assert!(table.dictionary("price").is_err());
    check(&table, &model, &schema, Filter::ALL);
}

#[test]
fn without_memory_nothing_is_kept_of_a_batch() {
    // Pages of a size that no machine has.
    let page = Preference::From(Page::HugeTlb(12 << 10));
    let arena = Arena::builder().page(page).fallback(Fallback::Refuse).build().unwrap();
    let mut table = Table::new(&arena, schema(10, None));
    let wrong = append(&mut table, &climbing(0, 25));
    assert!(matches!(wrong, Err(TableError::Memory { rows: 25, .. })), "{wrong:?}");
    assert_eq!((table.rows(), table.partitions(), table.free_rows()), (0, 0, 0));
    assert!(table.dictionary("symbol").unwrap().is_empty());
}

#[test]
fn kernels_run_over_scans_as_over_one_column() {
    let arena = arena();
    let mut table = Table::new(&arena, schema(5000, Some(2)));
    let row = |number: i64| Row {
        symbol: (number * 7 % 5) as usize,
        time: number * 3 - 20_000,
        price: (number * number % 1009) as f64,
        number,
    };
    let rows: Vec<Row> = (0..20_000).map(row).collect();
    append(&mut table, &rows).unwrap();
    let width = 777;
    let mut merged: BTreeMap<i64, TimeBar> = BTreeMap::new();
    for piece in table.scan(Filter::ALL) {
        let mut crew = planish_kernels::Crew::new(std::num::NonZeroUsize::MIN).unwrap();
        let mut bars = Parts::new();
        let (prices, sizes) = (piece.floats(2).unwrap(), piece.whole(3).unwrap());
        Xbar::new(width).unwrap().run(&mut crew, piece.times(), prices, sizes, &mut bars).unwrap();
        for bar in bars.iter() {
            merged.entry(bar.start).and_modify(|whole| whole.merge(bar)).or_insert(*bar);
        }
    }
    for (start, bar) in merged {
        let inside: Vec<&Row> =
            rows.iter().filter(|row| row.time.div_euclid(width) * width == start).collect();
        let bar = bar.bar();
        assert_eq!(bar.count, inside.len() as u64);
        assert_eq!((bar.open, bar.close), (inside[0].price, inside[inside.len() - 1].price));
        assert_eq!(bar.volume, inside.iter().map(|row| row.number as f64).sum::<f64>());
        assert_eq!(bar.high, inside.iter().map(|row| row.price).fold(0.0, f64::max));
    }
}
