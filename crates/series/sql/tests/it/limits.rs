//! What a query may take, and that it ends when nobody waits for it any more.

use futures::StreamExt;
use planish_sql::{Engine, SqlError};

use crate::fixture::*;

const DIVISION: Division = Division { span: 10_000, symbols: None, batch_rows: 10_000 };

fn some_rows(count: i64) -> Vec<Row> {
    (0..count).map(|time| Row { time, symbol: 0, price: time as f64, size: 1 }).collect()
}

/// How many rows a query has within so many bytes.
fn rows_within(engine: &Engine, sql: &str, memory_bytes: usize) -> Result<usize, String> {
    let told = |error: &dyn std::error::Error| chain(error);
    wait(async {
        let mut stream =
            engine.stream_within(sql, memory_bytes).await.map_err(|error: SqlError| told(&error))?;
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch.map_err(|error| told(&error))?.num_rows();
        }
        Ok(rows)
    })
}

#[test]
fn a_query_that_needs_more_memory_than_it_may_have_ends() {
    const ROWS: usize = 20_000;
    let rows = some_rows(ROWS as i64);
    let engine = engine(2, &[("t", memory(&rows, DIVISION))]);
    for sql in [
        "SELECT * FROM t",
        "SELECT ts, price FROM t ORDER BY price",
        "SELECT DISTINCT ts, price FROM t",
        "SELECT ts, ema(price, 20) OVER (ORDER BY ts) FROM t",
        "SELECT xbar(ts, 1), max(price), count(*) FROM t GROUP BY xbar(ts, 1)",
        "SELECT a.ts, b.price FROM t a ASOF JOIN t b MATCH_CONDITION (a.ts >= b.ts)",
        "SELECT a.ts FROM t a JOIN t b ON a.ts = b.ts",
    ] {
        assert_eq!(rows_within(&engine, sql, 64 << 20), Ok(ROWS), "{sql}");
        let error = rows_within(&engine, sql, 100_000).expect_err(sql);
        assert!(error.contains("Resources exhausted"), "{sql}: {error}");
    }
}

#[test]
fn rows_of_one_symbol_among_others_are_copied_and_count() {
    let mut rows = some_rows(20_000);
    rows.iter_mut().filter(|row| row.time % 2 == 1).for_each(|row| row.symbol = 1);
    let engine = engine(1, &[("t", memory(&rows, DIVISION))]);
    let sql = "SELECT max(price), count(*) FROM t WHERE sym = 'beta' GROUP BY xbar(ts, 100000)";
    assert_eq!(rows_within(&engine, sql, 64 << 20), Ok(1));
    assert!(rows_within(&engine, sql, 100_000).expect_err("copies").contains("Resources exhausted"));
}

/// A join of joins that would take a minute gives way to who wants to end it.
#[test]
fn a_query_ends_when_its_stream_is_dropped() {
    let engine = engine(2, &[("t", memory(&some_rows(1500), DIVISION))]);
    for sql in [
        "SELECT sum(a.size + b.size + c.size) FROM t a, t b, t c",
        "SELECT count(*) FROM t a JOIN t b ON a.size = b.size JOIN t c ON b.size = c.size",
    ] {
        let ended = wait(async {
            let mut stream = engine.stream_within(sql, 4 << 30).await.unwrap();
            let task = tokio::spawn(async move { stream.next().await.is_some() });
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            task.abort();
            task.await
        });
        assert!(ended.is_err_and(|error| error.is_cancelled()), "ran to its end: {sql}");
    }
}
