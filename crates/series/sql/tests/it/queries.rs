//! Queries without kernels, functions of single rows, and averages.

use planish_table::TimeUnit;
use proptest::prelude::*;

use crate::fixture::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn where_is_honoured_whatever_answers_it(
        rows in rows(100), division in division(), from in -60i64..60, length in -5i64..80, symbol in 0usize..5,
        lowest in -100i32..100, limit in 0usize..40,
    ) {
        let engine = engine(2, &[("t", memory(&rows, division))]);
        let to = from + length;
        let name = SYMBOLS.get(symbol).copied().unwrap_or("none");
        let quoted = name.replace('\'', "''");
        let all = in_time_order(&rows);
        let value = |row: &Row| {
            let symbol = Value::Text(SYMBOLS[row.symbol].to_owned());
            vec![Value::Int(row.time), symbol, float(row.price), Value::Int(row.size)]
        };
        let check = |condition: &str, is_wanted: &dyn Fn(&Row) -> bool| {
            let sql = format!("SELECT ts, sym, price, size FROM t WHERE {condition}");
            let wanted: Vec<_> = all.iter().filter(|row| is_wanted(row)).map(value).collect();
            assert_like(&sorted(ask(&engine, &sql)), &sorted(wanted.clone()), &sql);
            let count = ask(&engine, &format!("SELECT count(*) FROM t WHERE {condition}"));
            assert_eq!(count, [[Value::Int(wanted.len() as i64)]], "{condition}");
            let some = ask(&engine, &format!("{sql} LIMIT {limit}"));
            assert_eq!(some.len(), limit.min(wanted.len()), "{sql}");
            assert!(some.iter().all(|row| wanted.contains(row)), "{sql}");
        };
        check(&format!("ts >= {from}"), &|row| row.time >= from);
        check(&format!("{from} < ts"), &|row| row.time > from);
        check(&format!("ts BETWEEN {from} AND {to}"), &|row| (from..=to).contains(&row.time));
        check(&format!("ts NOT BETWEEN {from} AND {to}"), &|row| !(from..=to).contains(&row.time));
        check(&format!("ts = {from} AND price > {lowest}"), &|row| row.time == from && row.price > f64::from(lowest));
        check(&format!("sym = '{quoted}'"), &|row| SYMBOLS[row.symbol] == name);
        check(&format!("sym <> '{quoted}' AND ts <= {to}"), &|row| SYMBOLS[row.symbol] != name && row.time <= to);
        check(&format!("sym = '{quoted}' AND ts < {to} AND price IS NULL"), &|row| {
            SYMBOLS[row.symbol] == name && row.time < to && row.price.is_nan()
        });
        check(&format!("sym = '{quoted}' OR ts > {to}"), &|row| SYMBOLS[row.symbol] == name || row.time > to);
        check(&format!("size IN (1, 2, 3) AND ts > {from}"), &|row| (1..=3).contains(&row.size) && row.time > from);
    }

    #[test]
    fn averages_are_those_of_a_loop_by_kernel_and_by_window(
        rows in rows(90), division in division(), threads in 1usize..3, span in 1i64..30,
    ) {
        // Rows of one time have no order in SQL.
        let mut seen = std::collections::HashSet::new();
        let rows: Vec<Row> = rows.into_iter().filter(|row| seen.insert(row.time)).collect();
        let engine = engine(threads, &[("t", memory(&rows, division))]);
        let alpha = 2.0 / (span as f64 + 1.0);
        let mut lasts = [f64::NAN; SYMBOLS.len() + 1];
        let mut wanted = Vec::new();
        for row in in_time_order(&rows) {
            let mut push = |index: usize| {
                let last = &mut lasts[index];
                let next = if last.is_nan() { row.price } else { alpha * row.price + (1.0 - alpha) * *last };
                *last = if row.price.is_nan() { *last } else { next };
                *last
            };
            let (one, all) = (push(row.symbol), push(SYMBOLS.len()));
            wanted.push(vec![Value::Int(row.time), float(one), float(all)]);
        }
        let sql = |from: &str| format!(
            "SELECT ts, ema(price, {span}) OVER (PARTITION BY sym ORDER BY ts), ema(price, {alpha}) OVER (ORDER BY ts) \
             FROM {from} ORDER BY ts"
        );
        let (with, without) = (sql("t"), sql("(SELECT * FROM t WHERE size <> -987654321)"));
        assert_like(&ask(&engine, &with), &wanted, &with);
        assert_like(&ask(&engine, &without), &wanted, &without);
        let one = format!("SELECT ts, ema(price, {span}) OVER (PARTITION BY sym ORDER BY ts) FROM t");
        assert!(explain(&engine, &one).contains("AverageExec: kernel=keyed_ema, value=price"));
        let wanted: Vec<_> = wanted.iter().map(|row| row[..2].to_vec()).collect();
        assert_like(&ask(&engine, &one), &wanted, &one);
    }
}

#[test]
fn a_table_that_grows_is_read_as_it_is_now() {
    let division = Division { span: 10, symbols: Some(1), batch_rows: 9 };
    let source = memory(&[Row { time: 1, symbol: 0, price: 1.0, size: 5 }], division);
    let engine = engine(2, &[("t", source.clone())]);
    let by_symbol = "SELECT sum(size) FROM t WHERE sym = 'beta'";
    let bars = "SELECT xbar(ts, 10), count(*), max(price) FROM t GROUP BY xbar(ts, 10)";
    assert_eq!(ask(&engine, by_symbol), [[Value::Null]]);
    assert_eq!(ask(&engine, bars).len(), 1);
    let planish_sql::Source::Memory(table) = source else { unreachable!() };
    append_all(&[Row { time: 70, symbol: 1, price: 9.0, size: 7 }], 1, |batch| {
        table.write().unwrap().append(batch).unwrap();
    });
    // Both plans are kept, from when the symbol was not there.
    assert_eq!(ask(&engine, by_symbol), [[Value::Int(7)]]);
    assert_eq!(ask(&engine, bars).len(), 2);
}

#[test]
fn local_buckets_and_intervals_count_in_the_unit_of_the_table() {
    let hour = 3_600_000;
    let row = |time| Row { time, symbol: 0, price: 1.0, size: 1 };
    // 2026-10-24T22:00Z is midnight in Berlin; that day has 25 hours.
    let midnight = 1_792_879_200_000_i64;
    let rows: Vec<Row> = (0..48).map(|hours| row(midnight + hours * hour)).collect();
    let engine = engine_with_unit(&rows, TimeUnit::Milliseconds);
    let sql = "SELECT time_bucket(INTERVAL '1 day', ts, 'Europe/Berlin') AS day, count(*) FROM trades \
               GROUP BY day ORDER BY day";
    let days = ask(&engine, sql);
    assert_eq!(days[0], [Value::Int(midnight), Value::Int(25)]);
    assert_eq!(days[1], [Value::Int(midnight + 25 * hour), Value::Int(23)]);
    let utc = "SELECT xbar(ts, INTERVAL '1 day') AS day, count(*), max(price) FROM trades GROUP BY day ORDER BY day";
    assert_eq!(ask(&engine, utc)[0][1], Value::Int(2));
    assert!(explain(&engine, utc).contains("kernel=xbar, width=86400000"));
    let bin =
        "SELECT date_bin(INTERVAL '1 day', ts) AS d, count(*), max(price) FROM trades GROUP BY d ORDER BY d";
    assert_eq!(ask(&engine, bin), ask(&engine, utc));
    assert!(explain(&engine, bin).contains("kernel=xbar"));
    let from = "SELECT count(*) FROM trades WHERE ts >= TIMESTAMP '2026-10-25T00:00:00'";
    assert_eq!(ask(&engine, from), [[Value::Int(46)]]);
    assert!(explain(&engine, from).contains("time>=1792886400000"), "{}", explain(&engine, from));
}

#[test]
fn what_is_wrong_with_a_query_is_told_with_what_to_write() {
    let division = Division { span: 10, symbols: None, batch_rows: 9 };
    let engine = engine(1, &[("t", memory(&[Row { time: 1, symbol: 0, price: 1.0, size: 5 }], division))]);
    for (sql, told) in [
        ("SELECT xbar(ts) FROM t", "xbar(time, width)"),
        ("SELECT xbar(ts, 0) FROM t", "a width is above 0"),
        ("SELECT xbar(ts, -1), max(price) FROM t GROUP BY 1", "a width is above 0"),
        ("SELECT xbar(ts, INTERVAL '1 second') FROM t", "write a number"),
        ("SELECT time_bucket(10, ts, 'Europe/Berlin') FROM t", "numbers without a unit"),
        ("SELECT ema(price, 0) OVER (ORDER BY ts) FROM t", "span"),
        ("SELECT ema(price, 1.5) OVER (ORDER BY ts) FROM t", "alpha"),
        ("SELECT vwap(price) FROM t", "vwap(price, size)"),
        ("SELECT nothing FROM t", "nothing"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("DROP TABLE t", "DROP is not for queries"),
        ("INSERT INTO t SELECT * FROM t", "INSERT is not for queries"),
        ("SET datafusion.execution.batch_size = 1", "SET is not for queries"),
        ("EXPLAIN COPY t TO 'file.csv'", "COPY is not for queries"),
        ("SELECT )", "cannot parse"),
    ] {
        let error = try_ask(&engine, sql).unwrap_err();
        assert!(chain(&error).contains(told), "{sql}: {}", chain(&error));
    }
}
