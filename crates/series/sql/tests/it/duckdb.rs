//! The same queries of the same rows by DuckDB, where Python has it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use planish_sql::Files;

use crate::fixture::*;

/// A fixed stream of rows: the test is the same everywhere.
fn some_rows(seed: u64, count: usize) -> Vec<Row> {
    let mut state = seed;
    let mut next = |below: u64| {
        // xorshift64*.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    };
    let mut row = |time: usize| Row {
        // One row a time, so that first and last are the same to both.
        time: time as i64 * 7 - 900,
        symbol: next(4) as usize,
        price: if next(12) == 0 { f64::NAN } else { next(800) as f64 / 4.0 - 60.0 },
        size: next(100) as i64 - 3,
    };
    (0..count).map(&mut row).collect()
}

/// Queries in our words, and in DuckDB's where these differ.
fn queries() -> Vec<(String, String)> {
    let same = |sql: &str| (sql.to_owned(), sql.to_owned());
    let pair = |ours: &str, theirs: &str| (ours.to_owned(), theirs.to_owned());
    let mut queries = vec![
        same("SELECT ts, sym, price, size FROM t WHERE ts BETWEEN -100 AND 200 AND price > 3 ORDER BY ts"),
        same("SELECT sym, count(*), sum(size), max(price) FROM t GROUP BY sym ORDER BY sym"),
        same(
            "SELECT sym, avg(price) FROM t WHERE size % 3 = 0 GROUP BY sym HAVING count(*) > 2 ORDER BY sym",
        ),
        same("SELECT a.ts, b.ts FROM t a JOIN q b ON a.sym = b.sym AND a.size = b.size ORDER BY 1, 2"),
        same("SELECT ts, sum(size) OVER (PARTITION BY sym ORDER BY ts ROWS 3 PRECEDING) FROM t ORDER BY ts"),
        same("SELECT DISTINCT sym FROM t WHERE price IS NULL ORDER BY sym"),
        pair(
            "SELECT ts / 50 AS bar, max(price), min(price), count(price), sum(size) FROM t GROUP BY 1 ORDER BY bar",
            "SELECT ts // 50 AS bar, max(price), min(price), count(price), sum(size) FROM t GROUP BY 1 ORDER BY bar",
        ),
        pair(
            "SELECT sym, xbar(ts, 90) AS bar, count(*), vwap(price, size) FROM t GROUP BY sym, bar ORDER BY sym, bar",
            "SELECT sym, CAST(floor(ts / 90.0) AS BIGINT) * 90 AS bar, count(*), \
             sum(price * size) / nullif(sum(CASE WHEN price IS NOT NULL THEN size END), 0) \
             FROM t GROUP BY sym, bar ORDER BY sym, bar",
        ),
        pair(
            "SELECT t.ts, q.ts, q.price FROM t ASOF JOIN q ON t.sym = q.sym AND t.ts >= q.ts ORDER BY t.ts",
            "SELECT t.ts, q.ts, q.price FROM t ASOF JOIN q ON t.sym = q.sym AND t.ts >= q.ts ORDER BY t.ts",
        ),
        pair(
            "SELECT t.ts, q.price FROM t ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.sym = q.sym ORDER BY t.ts",
            "SELECT t.ts, q.price FROM t ASOF LEFT JOIN q ON t.sym = q.sym AND t.ts >= q.ts ORDER BY t.ts",
        ),
        pair(
            "SELECT t.ts, wj_sum(q.price), wj_max(q.price), wj_count(q.price) \
             FROM t WINDOW JOIN q ON t.sym = q.sym AND q.ts BETWEEN t.ts - 60 AND t.ts + 60 ORDER BY t.ts",
            "SELECT t.ts, sum(q.price), max(q.price), count(q.price) FROM t LEFT JOIN q \
             ON t.sym = q.sym AND q.ts BETWEEN t.ts - 60 AND t.ts + 60 GROUP BY t.ts ORDER BY t.ts",
        ),
    ];
    queries.push(pair(
        "SELECT time_bucket_gapfill(30, ts) AS bar, max(price), locf(max(price)), coalesce(count(*), 0) FROM t \
         WHERE ts BETWEEN -1000 AND 1500 AND size % 7 = 0 GROUP BY bar ORDER BY bar",
        "WITH g AS (SELECT CAST(floor(ts / 30.0) AS BIGINT) * 30 AS bar, max(price) AS p, count(*) AS n FROM t \
         WHERE ts BETWEEN -1000 AND 1500 AND size % 7 = 0 GROUP BY 1), \
         b AS (SELECT unnest(range(-1020, 1501, 30)) AS bar) \
         SELECT b.bar, p, CASE WHEN n IS NULL THEN last_value(p IGNORE NULLS) OVER (ORDER BY b.bar \
         ROWS UNBOUNDED PRECEDING) ELSE p END, coalesce(n, 0) FROM b LEFT JOIN g ON b.bar = g.bar ORDER BY b.bar",
    ));
    queries.push(same(
        "SELECT sym, arg_min(price, ts), arg_max(price, ts), max_by(size, price), sum(ts // 7) FROM t \
         GROUP BY sym ORDER BY sym",
    ));
    queries.extend((1..6).map(|symbols| {
        let list = ["'alpha'", "'beta'", "'it''s'", "''", "'none'"][..symbols].join(", ");
        same(&format!("SELECT count(*), sum(price) FROM t WHERE sym IN ({list}) AND ts > {}", symbols * 40))
    }));
    queries
}

/// Files that DuckDB writes of the table `t`, with what it writes them by.
const FILES: [(&str, &str); 5] = [
    ("snappy.parquet", ""),
    ("zstd.parquet", "(COMPRESSION zstd, ROW_GROUP_SIZE 2048)"),
    ("plain.parquet", "(COMPRESSION uncompressed)"),
    ("t.csv", ""),
    ("t.tsv", "(DELIMITER '\\t')"),
];

/// A program that makes both tables and the files, asks all, and prints a line a row, a line `.` a query.
fn script(trades: &[Row], quotes: &[Row], folder: &Path) -> String {
    let mut script = String::from("import duckdb, math\ncon = duckdb.connect()\n");
    for (name, rows) in [("t", trades), ("q", quotes)] {
        let _ = writeln!(
            script,
            "con.execute('CREATE TABLE {name}(ts BIGINT, sym VARCHAR, price DOUBLE, size BIGINT)')"
        );
        let _ = write!(script, "con.executemany('INSERT INTO {name} VALUES (?, ?, ?, ?)', [");
        for row in rows {
            let price = if row.price.is_nan() { "None".to_owned() } else { format!("{:?}", row.price) };
            let _ = write!(script, "({}, {:?}, {price}, {}),", row.time, SYMBOLS[row.symbol], row.size);
        }
        script.push_str("])\n");
    }
    for (name, how) in FILES {
        let sql = format!("COPY t TO '{}' {how}", folder.join(name).display());
        let _ = writeln!(script, "con.execute({sql:?})");
    }
    script.push_str(
        "def cell(x):\n  return 'null' if x is None else f'f{x!r}' if isinstance(x, float) else f's{x}' \
                     if isinstance(x, str) else f'i{int(x)}'\n",
    );
    for (_, sql) in queries() {
        let _ = writeln!(
            script,
            "for row in con.execute({sql:?}).fetchall(): print('|'.join(map(cell, row)))\nprint('.')"
        );
    }
    script
}

fn parse(cell: &str) -> Value {
    match cell.split_at(1) {
        ("f", number) => Value::Float(number.parse().unwrap()),
        ("s", text) => Value::Text(text.to_owned()),
        ("i", number) => Value::Int(number.parse().unwrap()),
        _ => Value::Null,
    }
}

#[test]
fn duckdb_says_the_same() {
    let has = Command::new("python3").args(["-c", "import duckdb"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        planish_skip::skip("duckdb_says_the_same", "python3 has no duckdb");
        return;
    }
    for (seed, span) in [(1, 100), (2, 1000), (3, 31)] {
        let (trades, quotes) = (some_rows(seed, 300), some_rows(seed + 100, 400));
        let division = Division { span, symbols: (seed == 2).then_some(1), batch_rows: 64 };
        let engine = engine(2, &[("t", memory(&trades, division)), ("q", memory(&quotes, division))]);
        let folder = tempfile::tempdir().unwrap();
        engine.allow_files(Files::Under(folder.path().to_owned())).unwrap();
        let script = script(&trades, &quotes, folder.path());
        let output = Command::new("python3").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = String::from_utf8(output.stdout).unwrap();
        let mut lines = output.lines();
        for (ours, _) in queries() {
            let rows = lines.by_ref().take_while(|line| *line != ".");
            let wanted: Vec<Vec<Value>> = rows.map(|line| line.split('|').map(parse).collect()).collect();
            assert_like(&ask(&engine, &ours), &wanted, &ours);
        }
        for (name, _) in FILES {
            for sql in [
                // In CSV an empty text is none.
                "SELECT ts, coalesce(sym, ''), price, size FROM t WHERE ts > 100 ORDER BY ts",
                "SELECT coalesce(sym, '') AS s, count(*), vwap(price, size) FROM t GROUP BY s ORDER BY s",
            ] {
                let of_file = sql.replace("FROM t", &format!("FROM '{name}'"));
                assert_like(&ask(&engine, &of_file), &ask(&engine, sql), &of_file);
            }
        }
    }
}
