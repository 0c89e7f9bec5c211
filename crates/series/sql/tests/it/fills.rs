//! Rows for empty buckets, against loops over all buckets.

use std::collections::BTreeMap;

use planish_sql::Engine;
use planish_table::TimeUnit;
use proptest::prelude::*;

use crate::fixture::*;

/// What a group shows in each bucket: `None` where it has no row there.
type Bars = BTreeMap<i64, f64>;

fn last_known(bars: &Bars, bucket: i64) -> Value {
    match bars.get(&bucket) {
        Some(price) => float(*price),
        None => {
            let before = bars.range(..bucket).rev().map(|(_, price)| *price).find(|price| !price.is_nan());
            before.map_or(Value::Null, Value::Float)
        }
    }
}

fn between(bars: &Bars, bucket: i64) -> Value {
    if let Some(price) = bars.get(&bucket) {
        return float(*price);
    }
    let before = bars.range(..bucket).rev().find(|(_, price)| !price.is_nan());
    let after = bars.range(bucket..).find(|(_, price)| !price.is_nan());
    match (before, after) {
        (Some((from, low)), Some((to, high))) => {
            Value::Float(low + (high - low) * (bucket - from) as f64 / (to - from) as f64)
        }
        _ => Value::Null,
    }
}

/// The highest price of each bucket; NaN where all are null.
fn highest(rows: &[&Row], width: i64) -> Bars {
    let mut bars = Bars::new();
    for row in rows {
        let bar = bars.entry(row.time.div_euclid(width) * width).or_insert(f64::NAN);
        *bar = bar.max(row.price);
    }
    bars
}

fn buckets(first: i64, last: i64, width: i64) -> impl Iterator<Item = i64> {
    (first.div_euclid(width)..=last.div_euclid(width)).map(move |number| number * width)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_bucket_has_a_row_and_each_value_what_it_asks_for(
        rows in rows(60), division in division(), width in 1i64..12, from in -60i64..60, length in 0i64..70,
        by_symbol in any::<bool>(), said in 0usize..4,
    ) {
        let engine = engine(2, &[("t", memory(&rows, division))]);
        let to = from + length;
        let is_wanted = |row: &&Row| said == 0 || (from..=to).contains(&row.time);
        let wanted: Vec<&Row> = rows.iter().filter(is_wanted).collect();
        let (call, condition) = match said {
            0 => (format!("time_bucket_gapfill({width}, ts)"), String::new()),
            1 => (format!("time_bucket_gapfill({width}, ts)"), format!("WHERE ts >= {from} AND {to} >= ts")),
            2 => (format!("time_bucket_gapfill({width}, ts)"), format!("WHERE ts BETWEEN {from} AND {to}")),
            _ => (
                format!("time_bucket_gapfill({width}, ts, {from}, {})", to + 1),
                format!("WHERE ts + 0 BETWEEN {from} AND {to}"),
            ),
        };
        let (key, group) = if by_symbol { ("sym", "sym, bar") } else { ("'all'", "bar") };
        let sql = format!(
            "SELECT {key} AS k, {call} AS bar, max(price), locf(max(price)), interpolate(max(price)), \
             coalesce(count(*), 0), locf(count(*)) FROM t {condition} GROUP BY {group}"
        );
        let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in &wanted {
            groups.entry(if by_symbol { SYMBOLS[row.symbol] } else { "all" }).or_default().push(row);
        }
        if said > 0 && !by_symbol {
            groups.entry("all").or_default();
        }
        let times = || wanted.iter().map(|row| row.time);
        let ends = match said {
            0 => times().min().zip(times().max()),
            _ => Some((from, to)),
        };
        let mut answer = Vec::new();
        for (key, rows) in groups {
            let bars = highest(&rows, width);
            let count = |bucket: i64| rows.iter().filter(|row| row.time.div_euclid(width) * width == bucket).count();
            let mut last_count = Value::Null;
            let (first, last) = ends.unwrap();
            for bucket in buckets(first, last, width) {
                if count(bucket) > 0 {
                    last_count = Value::Int(count(bucket) as i64);
                }
                answer.push(vec![
                    Value::Text(key.to_owned()),
                    Value::Int(bucket),
                    bars.get(&bucket).map_or(Value::Null, |price| float(*price)),
                    last_known(&bars, bucket),
                    between(&bars, bucket),
                    Value::Int(count(bucket) as i64),
                    last_count.clone(),
                ]);
            }
        }
        assert_like(&sorted(ask(&engine, &sql)), &sorted(answer), &sql);
    }
}

fn row(time: i64, symbol: usize, price: f64) -> Row {
    Row { time, symbol, price, size: 1 }
}

const DIVISION: Division = Division { span: 1000, symbols: None, batch_rows: 100 };

fn engine_of(rows: &[Row]) -> Engine {
    engine(2, &[("t", memory(rows, DIVISION))])
}

fn floats(rows: Vec<Vec<Value>>) -> Vec<Vec<f64>> {
    let number = |value: &Value| match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    };
    rows.iter().map(|row| row.iter().map(number).collect()).collect()
}

#[track_caller]
fn check(engine: &Engine, sql: &str, wanted: &[&[f64]]) {
    let got = floats(ask(engine, sql));
    assert_eq!(format!("{got:?}"), format!("{wanted:?}"), "{sql}");
}

const NONE: f64 = f64::NAN;

#[test]
fn a_null_that_is_there_stays_and_is_not_carried_on() {
    let engine = engine_of(&[row(0, 0, 1.0), row(20, 0, NONE), row(40, 0, 5.0)]);
    let sql = "SELECT time_bucket_gapfill(10, ts) AS b, locf(max(price)), interpolate(max(price)) FROM t GROUP BY b \
               ORDER BY b";
    let wanted: [&[f64]; 5] =
        [&[0.0, 1.0, 1.0], &[10.0, 1.0, 2.0], &[20.0, NONE, NONE], &[30.0, 1.0, 4.0], &[40.0, 5.0, 5.0]];
    check(&engine, sql, &wanted);
}

#[test]
fn kernels_run_below_a_fill_and_explain_tells_both() {
    let engine = engine_of(&[row(0, 0, 1.0), row(25, 1, 2.0)]);
    for call in ["time_bucket_gapfill(10, ts)", "time_bucket_gapfill(10, ts, 0, 50)"] {
        let sql = format!(
            "SELECT {call} AS b, sym, max(price), locf(last_value(price ORDER BY ts)) FROM t \
             WHERE ts >= -5 GROUP BY b, sym"
        );
        let plan = explain(&engine, &sql);
        assert!(plan.contains("GapFillExec: kernel=fill_bars, width=10, time>="), "{plan}");
        assert!(plan.contains("kernel=keyed_bars, width=10"), "{plan}");
    }
}

#[test]
fn having_is_about_groups_with_rows_and_windows_see_all() {
    let engine = engine_of(&[row(0, 0, 1.0), row(10, 0, 9.0), row(30, 0, 3.0)]);
    let having = "SELECT time_bucket_gapfill(10, ts) AS b, max(price) FROM t GROUP BY b HAVING max(price) < 5 \
                  ORDER BY b";
    check(&engine, having, &[&[0.0, 1.0], &[10.0, NONE], &[20.0, NONE], &[30.0, 3.0]]);
    let window = "SELECT time_bucket_gapfill(10, ts) AS b, \
                  sum(locf(max(price))) OVER (ORDER BY time_bucket_gapfill(10, ts)) FROM t GROUP BY b ORDER BY b";
    check(&engine, window, &[&[0.0, 1.0], &[10.0, 10.0], &[20.0, 19.0], &[30.0, 22.0]]);
    let average = "SELECT b, ema(p, 1) OVER (ORDER BY b) FROM (SELECT time_bucket_gapfill(10, ts) AS b, \
                   locf(max(price)) AS p FROM t GROUP BY b) ORDER BY b";
    check(&engine, average, &[&[0.0, 1.0], &[10.0, 9.0], &[20.0, 9.0], &[30.0, 3.0]]);
    let value = "SELECT time_bucket_gapfill(10, ts) AS b, locf(sum(price * size) / sum(size)) + 1 FROM t GROUP BY b \
                 ORDER BY 1 LIMIT 3";
    check(&engine, value, &[&[0.0, 2.0], &[10.0, 10.0], &[20.0, 10.0]]);
}

#[test]
fn borders_are_what_where_says_of_a_plain_table() {
    let engine = engine_of(&[row(12, 0, 1.0), row(18, 0, 2.0)]);
    let all = "SELECT time_bucket_gapfill(10, ts) AS b, max(price) FROM";
    for (from, wanted) in [
        ("t WHERE ts > 9 AND ts < 40", &[&[10.0, 2.0][..], &[20.0, NONE], &[30.0, NONE]][..]),
        ("t WHERE ts >= 5", &[&[0.0, NONE], &[10.0, 2.0]]),
        ("t WHERE ts <= 30 AND sym = 'alpha'", &[&[10.0, 2.0], &[20.0, NONE], &[30.0, NONE]]),
        (
            "(SELECT ts, price FROM t WHERE ts < 30) x WHERE ts >= 0",
            &[&[0.0, NONE], &[10.0, 2.0], &[20.0, NONE]],
        ),
        // Of rows that are not there nothing is known but where they could be.
        ("t WHERE ts BETWEEN 50 AND 65", &[&[50.0, NONE], &[60.0, NONE]]),
        ("t WHERE ts > 50", &[]),
    ] {
        check(&engine, &format!("{all} {from} GROUP BY b ORDER BY b"), wanted);
    }
    let by_symbol = "SELECT time_bucket_gapfill(10, ts) AS b, sym, max(price) FROM t WHERE ts BETWEEN 50 AND 65 \
                     GROUP BY b, sym";
    check(&engine, by_symbol, &[]);
    // Rows outside of the borders that are said stay.
    let said = "SELECT time_bucket_gapfill(10, ts, 30, 40) AS b, max(price) FROM t GROUP BY b ORDER BY b";
    check(&engine, said, &[&[10.0, 2.0], &[20.0, NONE], &[30.0, NONE]]);
    let null = "SELECT time_bucket_gapfill(10, ts, NULL, 40) AS b, max(price) FROM t WHERE ts >= 0 GROUP BY b \
                ORDER BY b";
    check(&engine, null, &[&[0.0, NONE], &[10.0, 2.0], &[20.0, NONE], &[30.0, NONE]]);
}

#[test]
fn times_with_a_unit_are_filled_by_intervals() {
    let engine = engine_with_unit(&[row(0, 0, 1.0), row(150_000, 0, 3.0)], TimeUnit::Milliseconds);
    let sql = "SELECT CAST(time_bucket_gapfill(INTERVAL '1 minute', ts) AS BIGINT) / 1000 AS second, \
               interpolate(avg(price)) FROM trades WHERE ts < TIMESTAMP '1970-01-01 00:04:00' \
               GROUP BY time_bucket_gapfill(INTERVAL '1 minute', ts) ORDER BY 1";
    check(&engine, sql, &[&[0.0, 1.0], &[60.0, 2.0], &[120.0, 3.0], &[180.0, NONE]]);
    let sql = "SELECT time_bucket_gapfill(INTERVAL '1 minute', ts, TIMESTAMP '1970-01-01 00:01:00', \
               TIMESTAMP '1970-01-01 00:05:00') AS b, count(*) FROM trades GROUP BY b";
    assert_eq!(ask(&engine, sql).len(), 5);
}

#[test]
fn what_cannot_be_filled_is_told() {
    let engine = engine_of(&[row(0, 0, 1.0), row(1_000_000_000_000_000, 0, 2.0)]);
    for (sql, told) in [
        ("SELECT locf(price) FROM t", "GROUP BY time_bucket_gapfill"),
        ("SELECT ts / 10, locf(max(price)) FROM t GROUP BY 1", "GROUP BY time_bucket_gapfill"),
        ("SELECT time_bucket_gapfill(10, ts) FROM t", "is for GROUP BY"),
        (
            "SELECT time_bucket_gapfill(10, ts) b, max(price) FROM t GROUP BY b HAVING locf(max(price)) > 1",
            "or in HAVING",
        ),
        (
            "SELECT time_bucket_gapfill(10, ts) b, locf(interpolate(max(price))) FROM t GROUP BY b",
            "or in HAVING",
        ),
        (
            "SELECT time_bucket_gapfill(10, ts) a, time_bucket_gapfill(20, ts) b FROM t GROUP BY a, b",
            "write it once",
        ),
        ("SELECT time_bucket_gapfill(10, ts) + 1 AS b FROM t GROUP BY b", "is for GROUP BY"),
        ("SELECT time_bucket_gapfill(10, ts) b FROM t GROUP BY ROLLUP (b)", "is for GROUP BY"),
        ("SELECT time_bucket_gapfill(10, ts, 5) b FROM t GROUP BY b", "has 3 arguments"),
        ("SELECT time_bucket_gapfill(0, ts) b FROM t GROUP BY b", "a width is above 0"),
        ("SELECT time_bucket_gapfill(10, ts, 50, 50) b FROM t GROUP BY b", "not before the finish"),
        ("SELECT time_bucket_gapfill(10, ts) b FROM t GROUP BY b", "a fill of 100000000000001 rows"),
    ] {
        match try_ask(&engine, sql) {
            Ok(answer) => panic!("{sql}: {} rows", answer.rows()),
            Err(error) => assert!(chain(&error).contains(told), "{sql}: {}", chain(&error)),
        }
    }
}
