//! Bars by kernels: the answers of DataFusion without them, row for row, and those of a loop.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::fixture::*;

/// What keeps kernels away without changing anything.
const NO_KERNEL: &str = "size <> -987654321";

/// Groups and what is wanted of them.
fn queries() -> Vec<(&'static str, &'static str)> {
    let ohlc = "first_value(price ORDER BY ts) AS o, max(price) AS h, min(price) AS l, \
                last_value(price ORDER BY ts) AS c, sum(size) AS v, count(*) AS n";
    let known = "max(price), min(price), count(price), sum(size), vwap(price, size)";
    let weights = "sum(price * size) AS pv, sum(size) AS v, vwap(price, size) AS w";
    let mut queries = Vec::new();
    for group in ["xbar(ts, 7)", "ts / 7", "time_bucket(10, ts)", "sym", "sym, xbar(ts, 9)", "ts / 20, sym"] {
        for wanted in [ohlc, known, weights] {
            queries.push((group, wanted));
        }
    }
    queries.push(("sym", "sum(price * size) / sum(size), count(*), max(price)"));
    queries.push(("sym", "vwap(price, size)"));
    queries.push(("sym", "sum(price * size) / sum(size)"));
    queries
}

fn check(rows: &[Row], division: Division, threads: usize, condition: &str) {
    // Rows of one time have no order in SQL, so that the first and last price of them are anyone's.
    let engine = engine(threads, &[("t", memory(rows, division))]);
    for (group, wanted) in queries() {
        let sql =
            |condition: &str| format!("SELECT {group}, {wanted} FROM t WHERE {condition} GROUP BY {group}");
        let with = sql(condition);
        let without = sql(&format!("{condition} AND {NO_KERNEL}"));
        // Of a contradiction DataFusion knows that it has no rows.
        let plan = explain(&engine, &with);
        assert!(plan.contains("BarsExec: kernel=") || plan.contains("EmptyExec"), "{with}: {plan}");
        assert!(!explain(&engine, &without).contains("BarsExec"), "{without}");
        let (got, wanted) = (sorted(ask(&engine, &with)), sorted(ask(&engine, &without)));
        assert_like(&got, &wanted, &with);
    }
}

fn different_times(mut rows: Vec<Row>) -> Vec<Row> {
    let mut seen = std::collections::HashSet::new();
    rows.retain(|row| seen.insert(row.time));
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn bars_are_those_of_datafusion_with_nulls_and_without(
        rows in rows(80), division in division(), threads in 1usize..4, has_nulls in any::<bool>(),
        condition in prop::sample::select(vec![
            "1 = 1", "ts >= -10", "ts BETWEEN -20 AND 13", "sym = 'beta'", "sym = 'it''s' AND ts < 5",
            "ts > 40 AND ts < 3",
            "sym = 'none'", "sym = 'alpha' AND sym = 'beta'",
        ]),
    ) {
        let mut rows = different_times(rows);
        if !has_nulls {
            without_nulls(&mut rows);
        }
        check(&rows, division, threads, condition);
    }

    #[test]
    fn bars_are_those_of_a_loop(mut rows in rows(120), division in division(), threads in 1usize..4) {
        without_nulls(&mut rows);
        let engine = engine(threads, &[("t", memory(&rows, division))]);
        let sql = "SELECT sym, xbar(ts, 13) AS bar, max(price), min(price), sum(size), count(*), vwap(price, size) \
                   FROM t GROUP BY sym, bar";
        let mut groups: BTreeMap<(usize, i64), Vec<Row>> = BTreeMap::new();
        for row in in_time_order(&rows) {
            groups.entry((row.symbol, row.time.div_euclid(13) * 13)).or_default().push(row);
        }
        let bar = |((symbol, start), rows): ((usize, i64), Vec<Row>)| {
            let prices = || rows.iter().map(|row| row.price);
            let weight: i64 = rows.iter().map(|row| row.size).sum();
            let value: f64 = rows.iter().map(|row| row.price * row.size as f64).sum();
            vec![
                Value::Text(SYMBOLS[symbol].to_owned()),
                Value::Int(start),
                Value::Float(prices().fold(f64::NEG_INFINITY, f64::max)),
                Value::Float(prices().fold(f64::INFINITY, f64::min)),
                Value::Int(weight),
                Value::Int(rows.len() as i64),
                if weight == 0 { Value::Null } else { Value::Float(value / weight as f64) },
            ]
        };
        let wanted = sorted(groups.into_iter().map(bar).collect());
        assert_like(&sorted(ask(&engine, sql)), &wanted, sql);
    }
}

#[test]
fn the_first_and_the_last_of_a_bar_go_by_time_and_not_by_when_rows_came() {
    let row = |time, price| Row { time, symbol: 0, price, size: 1 };
    let rows = [row(5, 2.0), row(9, 4.0), row(1, 1.0), row(7, 3.0), row(12, 5.0)];
    let division = Division { span: 6, symbols: Some(1), batch_rows: 1 };
    let engine = engine(2, &[("t", memory(&rows, division))]);
    let sql = "SELECT ts / 10, first_value(price ORDER BY ts), last_value(price ORDER BY ts DESC), \
               last_value(price ORDER BY ts) FROM t GROUP BY ts / 10 ORDER BY 1";
    let bar = |number, open, close| {
        vec![Value::Int(number), Value::Float(open), Value::Float(open), Value::Float(close)]
    };
    assert_eq!(ask(&engine, sql), [bar(0, 1.0, 4.0), bar(1, 5.0, 5.0)]);
    assert!(explain(&engine, sql).contains("kernel=xbar, width=10, price=price"));
}

#[test]
fn buckets_of_negative_times_are_floored_by_xbar_and_cut_by_division() {
    let row = |time| Row { time, symbol: 0, price: 1.0, size: 1 };
    let rows = [-20, -11, -10, -1, 0, 9, 10].map(row);
    let division = Division { span: 1000, symbols: None, batch_rows: 9 };
    let engine = engine(2, &[("t", memory(&rows, division))]);
    let counts = |group: &str| {
        let sql = format!("SELECT {group}, count(*), max(price) FROM t GROUP BY {group} ORDER BY 1");
        let pair = |row: Vec<Value>| match (&row[0], &row[1]) {
            (Value::Int(bar), Value::Int(count)) => (*bar, *count),
            other => panic!("{other:?}"),
        };
        assert!(explain(&engine, &sql).contains("kernel=xbar"));
        ask(&engine, &sql).into_iter().map(pair).collect::<Vec<_>>()
    };
    assert_eq!(counts("xbar(ts, 10)"), [(-20, 2), (-10, 2), (0, 2), (10, 1)]);
    assert_eq!(counts("ts / 10"), [(-2, 1), (-1, 2), (0, 3), (1, 1)]);
}

#[test]
fn sums_beyond_what_floats_hold_exactly_are_exact_all_the_same() {
    let row = |time, size| Row { time, symbol: 0, price: 1.0, size };
    let rows = [row(0, 1 << 60), row(1, 1), row(2, -(1 << 60)), row(3, 1)];
    let division = Division { span: 1000, symbols: None, batch_rows: 9 };
    let engine = engine(1, &[("t", memory(&rows, division))]);
    let sql = "SELECT xbar(ts, 10), sum(size), max(price) FROM t GROUP BY xbar(ts, 10)";
    assert_eq!(ask(&engine, sql), [[Value::Int(0), Value::Int(2), Value::Float(1.0)]]);
}
