//! The queries of the comparison as its peers are asked them, word for word: the answers are those of our own words.
//!
//! What is not taken is told in `docs/series-sql.md`, and tested here too.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use planish_sql::{Engine, Source};
use planish_table::{Cells, Column, Kind, Partitioning, Schema, Table};

use crate::fixture::*;

const WIDTH: i64 = 300_000_000_000;
const HALF: i64 = 5_000_000_000;
const ALPHA: f64 = 2.0 / 21.0;
/// Rows of a block of the EMA in plain SQL.
const BLOCK: i64 = 256;

/// A fixed stream of rows of a day: times differ, and no price is null.
fn some_rows(seed: u64, count: usize, gap: u64) -> Vec<(i64, usize, f64, i64)> {
    let mut state = seed;
    let mut next = |below: u64| {
        // xorshift64*.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    };
    let mut time = 1_767_225_600_000_000_000;
    let mut row = |_| {
        time += 1 + next(gap) as i64;
        (time, next(3) as usize, 50.0 + next(1000) as f64 / 100.0, 1 + next(999) as i64)
    };
    (0..count).map(&mut row).collect()
}

/// `ts, sym, price, vol`, and the number of a row among all and among those of its symbol.
fn table(rows: &[(i64, usize, f64, i64)]) -> Source {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [
        ("ts", Kind::Time),
        ("sym", Kind::Symbol),
        ("price", Kind::Float),
        ("vol", Kind::Int),
        ("rn", Kind::Int),
        ("rs", Kind::Int),
    ];
    let partitioning = Partitioning { span: 3_600_000_000_000, symbols: None };
    let schema = Schema::new(columns.map(column).to_vec(), partitioning).unwrap();
    let mut table = Table::new(arena(), schema);
    let mut counts = HashMap::new();
    let numbers = rows.iter().map(|row| {
        let count = counts.entry(row.1).or_insert(0_i64);
        *count += 1;
        *count - 1
    });
    let by_symbol: Vec<i64> = numbers.collect();
    let times: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let symbols: Vec<&str> = rows.iter().map(|row| SYMBOLS[row.1]).collect();
    let prices: Vec<f64> = rows.iter().map(|row| row.2).collect();
    let sizes: Vec<i64> = rows.iter().map(|row| row.3).collect();
    let all: Vec<i64> = (0..rows.len() as i64).collect();
    let cells = [
        Cells::Times(&times),
        Cells::Symbols(&symbols),
        Cells::Floats(&prices),
        Cells::Ints(&sizes),
        Cells::Ints(&all),
        Cells::Ints(&by_symbol),
    ];
    table.append(&cells).unwrap();
    Source::Memory(Arc::new(RwLock::new(table)))
}

fn engine_of_both(count: usize) -> Engine {
    let (trades, quotes) = (some_rows(11, count, 2_000_000_000), some_rows(12, count * 5 / 4, 1_600_000_000));
    engine(2, &[("t1m", table(&trades)), ("q1m", table(&quotes))])
}

/// How a peer writes what SQL has no word for.
struct Dialect {
    name: &'static str,
    div: fn(&str, i64) -> String,
    first: &'static str,
    last: &'static str,
    tail: &'static str,
}

const DIALECTS: [Dialect; 3] = [
    Dialect {
        name: "DuckDB",
        div: |of, by| format!("({of} // {by})"),
        first: "arg_min(price, ts)",
        last: "arg_max(price, ts)",
        tail: "",
    },
    Dialect {
        name: "DataFusion",
        div: |of, by| format!("({of} / {by})"),
        first: "first_value(price ORDER BY ts)",
        last: "last_value(price ORDER BY ts)",
        tail: "",
    },
    Dialect {
        name: "ClickHouse",
        div: |of, by| format!("intDiv({of}, {by})"),
        first: "argMin(price, ts)",
        last: "argMax(price, ts)",
        tail: " SETTINGS max_threads=1, join_use_nulls=1",
    },
];

#[track_caller]
fn same(engine: &Engine, theirs: &str, ours: &str) {
    let (got, wanted) = (sorted(ask(engine, theirs)), sorted(ask(engine, ours)));
    assert!(!got.is_empty(), "{theirs}");
    assert_like(&got, &wanted, theirs);
}

#[test]
fn bars_and_vwap_run_as_each_peer_writes_them_and_by_kernels() {
    let engine = engine_of_both(2000);
    for Dialect { name, div, first, last, tail } in DIALECTS {
        let bar = div("ts", WIDTH);
        for (key, group, kernel) in [("", "", "kernel=xbar"), ("sym, ", "sym, ", "kernel=keyed_bars")] {
            let theirs = format!(
                "SELECT {key}{bar} AS bar, {first} AS o, max(price) AS h, min(price) AS l, {last} AS c, sum(vol) AS v, \
                 count(*) AS n FROM t1m GROUP BY {group}{bar}{tail}"
            );
            let ours = format!(
                "SELECT {key}xbar(ts, {WIDTH}) / {WIDTH}, first_value(price ORDER BY ts), max(price), min(price), \
                 last_value(price ORDER BY ts), sum(vol), count(*) FROM t1m WHERE vol > -1 \
                 GROUP BY {group}xbar(ts, {WIDTH})"
            );
            same(&engine, &theirs, &ours);
            let plan = explain(&engine, &theirs);
            assert!(plan.contains(kernel), "{name}: {plan}");
        }
        let theirs = format!("SELECT sym, sum(price*vol)/sum(vol) AS y FROM t1m GROUP BY sym{tail}");
        same(&engine, &theirs, "SELECT sym, vwap(price, vol) FROM t1m GROUP BY sym");
        assert!(explain(&engine, &theirs).contains("kernel=keyed_vwap"), "{name}");
    }
}

/// The exact EMA in plain SQL, as DuckDB and DataFusion are asked it: blocks of rows, and what the three before carry.
fn ema_sql(by_symbol: bool, div: fn(&str, i64) -> String) -> String {
    let kept = 1.0 - ALPHA;
    let (number, comma, partition) =
        if by_symbol { ("rs", "sym,", "PARTITION BY sym ") } else { ("rn", "", "") };
    let (end, squared, block) = (kept.powi(256), kept.powi(512), div(number, BLOCK));
    let key = if by_symbol { "AND l.sym=k.sym" } else { "" };
    format!(
        "WITH l AS (SELECT ts, sym, {number}, blk, power({kept:?}, {number}%{BLOCK}) * sum((CASE WHEN {number}=0 \
         THEN price ELSE {ALPHA:?}*price END)*power({kept:?}, -({number}%{BLOCK}))) OVER (PARTITION BY {comma} blk \
         ORDER BY {number} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS loc \
         FROM (SELECT *, {block} AS blk FROM t1m) b0),
      e AS (SELECT {comma} blk, loc, {number} FROM l WHERE {number}%{BLOCK}={}),
      k AS (SELECT {comma} blk+1 AS blk, loc + {end:?}*coalesce(lag(loc) OVER ({partition}ORDER BY blk),0) \
         + {squared:?}*coalesce(lag(loc,2) OVER ({partition}ORDER BY blk),0) AS carry FROM e)
      SELECT l.ts, l.loc + coalesce(k.carry,0)*power({kept:?}, l.{number}%{BLOCK}+1) AS y FROM l LEFT JOIN k \
         ON l.blk=k.blk {key}",
        BLOCK - 1
    )
}

#[test]
fn averages_in_plain_sql_are_those_of_the_kernel() {
    let engine = engine_of_both(2000);
    for Dialect { div, tail, .. } in DIALECTS {
        for (by_symbol, over) in [(false, "ORDER BY ts"), (true, "PARTITION BY sym ORDER BY ts")] {
            let theirs = format!("{}{tail}", ema_sql(by_symbol, div));
            same(&engine, &theirs, &format!("SELECT ts, ema(price, 20) OVER ({over}) FROM t1m"));
        }
    }
}

/// Window joins as the peers are asked them: by a join of ranges, by windows over a union, by buckets.
fn window_joins(by_symbol: bool, div: fn(&str, i64) -> String) -> [String; 3] {
    let (equal, partition) = if by_symbol { ("t.sym=q.sym AND ", "PARTITION BY sym ") } else { ("", "") };
    let bucket = div("ts", HALF);
    [
        format!(
            "SELECT t.ts AS ts, avg(q.price) AS a, max(q.price) AS m, count(q.price) AS n FROM t1m t LEFT JOIN q1m q
      ON {equal} q.ts BETWEEN t.ts-{HALF} AND t.ts+{HALF} GROUP BY t.ts"
        ),
        format!(
            "SELECT ts, a, m, n FROM (SELECT ts, tr, avg(px) OVER w AS a, max(px) OVER w AS m, \
             count(px) OVER w AS n FROM
      (SELECT ts, sym, price AS px, 0 AS tr FROM q1m UNION ALL SELECT ts, sym, NULL AS px, 1 AS tr FROM t1m) u
      WINDOW w AS ({partition}ORDER BY ts RANGE BETWEEN {HALF} PRECEDING AND {HALF} FOLLOWING)) z WHERE tr=1"
        ),
        format!(
            "SELECT t.ts AS ts, avg(q.price) AS a, max(q.price) AS m, count(q.price) AS n \
             FROM (SELECT ts, sym, {bucket} AS bk FROM t1m) t LEFT JOIN
      (SELECT ts AS qts, sym, price, {bucket}-1 AS bk FROM q1m UNION ALL SELECT ts, sym, price, {bucket} FROM q1m \
             UNION ALL SELECT ts, sym, price, {bucket}+1 FROM q1m) q
      ON {equal}t.bk=q.bk AND q.qts >= t.ts-{HALF} AND q.qts <= t.ts+{HALF} GROUP BY t.ts"
        ),
    ]
}

#[test]
fn window_joins_in_plain_sql_are_those_of_the_kernel() {
    let engine = engine_of_both(600);
    for Dialect { div, tail, .. } in DIALECTS {
        for by_symbol in [false, true] {
            let equal = if by_symbol { "t.sym = q.sym AND" } else { "" };
            let ours = format!(
                "SELECT t.ts, wj_avg(q.price), wj_max(q.price), wj_count(q.price) FROM t1m t WINDOW JOIN q1m q \
                 ON {equal} q.ts BETWEEN t.ts - {HALF} AND t.ts + {HALF}"
            );
            let theirs = window_joins(by_symbol, div);
            for theirs in &theirs {
                same(&engine, &format!("{theirs}{tail}"), &ours);
            }
            let plan = explain(&engine, &format!("{}{tail}", theirs[0]));
            assert!(plan.contains("RangeJoinExec: kernel=window_join"), "{plan}");
        }
    }
}

#[test]
fn asof_joins_run_as_each_peer_writes_them() {
    let engine = engine_of_both(2000);
    let ours =
        "SELECT t.ts, q.price FROM t1m t ASOF JOIN q1m q MATCH_CONDITION (t.ts >= q.ts) ON t.sym = q.sym";
    let theirs = [
        "SELECT t.ts, q.price AS y FROM t1m t ASOF LEFT JOIN q1m q ON t.sym=q.sym AND t.ts>=q.ts",
        "SELECT t.ts AS ts, q.price AS y FROM t1m t ASOF LEFT JOIN q1m q ON t.sym=q.sym AND t.ts>=q.ts \
         SETTINGS max_threads=1, join_use_nulls=1",
        "SELECT z.ts AS ts, q.price AS y FROM (SELECT ts, sym, tr, max(qts) OVER (PARTITION BY sym ORDER BY ts, tr \
         ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS mq FROM
        (SELECT ts, sym, ts AS qts, 0 AS tr FROM q1m UNION ALL SELECT ts, sym, CAST(NULL AS BIGINT) AS qts, 1 AS tr \
         FROM t1m) u) z LEFT JOIN q1m q ON z.sym=q.sym AND z.mq=q.ts WHERE z.tr=1",
    ];
    for theirs in theirs {
        same(&engine, theirs, ours);
    }
}

#[test]
fn what_is_not_taken_is_refused_and_not_guessed() {
    let engine = engine_of_both(2000);
    for sql in [
        // Another average: it begins at alpha times the first value, and ages by the time column.
        "SELECT ts, exponentialMovingAverage(6.9)(price, rn) OVER (ORDER BY rn ROWS BETWEEN UNBOUNDED PRECEDING \
         AND CURRENT ROW) AS y FROM t1m",
        "SELECT ts, first(price) o, max(price) h FROM t1m SAMPLE BY 5m ALIGN TO CALENDAR",
        "SELECT sum(vol) FROM t1m SETTINGS join_use_nulls=0",
        "SELECT price // 2 FROM t1m",
        "SELECT arg_min(price) FROM t1m",
        "SELECT arg_min(price, ts) OVER (ORDER BY ts) FROM t1m",
    ] {
        assert!(try_ask(&engine, sql).is_err(), "{sql}");
    }
}

/// Rows where either is null do not count, in both systems.
#[test]
fn the_value_at_an_extreme_is_of_rows_where_both_are_known() {
    let row = |time, price, size| Row { time, symbol: 0, price, size };
    let rows = [row(1, f64::NAN, 5), row(2, 7.0, 1), row(3, 8.0, 9), row(4, f64::NAN, 30), row(5, 6.0, 4)];
    let division = Division { span: 100, symbols: None, batch_rows: 9 };
    let engine = engine(1, &[("t", memory(&rows, division))]);
    for (call, wanted) in [
        ("arg_min(price, ts)", Value::Float(7.0)),
        ("arg_max(price, ts)", Value::Float(6.0)),
        ("max_by(price, size)", Value::Float(8.0)),
        ("argMin(size, price)", Value::Int(4)),
        ("argMax(size, price)", Value::Int(9)),
        ("arg_max(size, price) FILTER (WHERE ts <> 3)", Value::Int(1)),
        ("arg_min(size, price) FILTER (WHERE price IS NULL)", Value::Null),
        ("arg_max(ts, size)", Value::Int(4)),
    ] {
        assert_eq!(ask(&engine, &format!("SELECT {call} FROM t")), [[wanted]], "{call}");
    }
    assert_eq!(ask(&engine, "SELECT -7 // 2, 7 // -2, intDiv(-1, 5)"), [[-3, -3, 0].map(Value::Int)]);
}
