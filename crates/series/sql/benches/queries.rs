//! Times of whole queries, from text to batches: bars, averages, joins and VWAP over a day of trades, what SQL alone
//! costs (the same over a table without rows), and materialised views of a table that grows.
//!
//! `cargo bench --profile engine --package planish-sql -- [THREADS] [ROUNDS]` prints, for each query, the
//! first time (with planning), then lowest and median of those by a plan that is kept.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use planish_arena::{Arena, Growth};
use planish_sql::{Definition, Engine, Source};
use planish_table::{Cells, Column, Disk, Durable, Kind, Options, Partitioning, Schema, Table};

const DAY: i64 = 86_400_000_000_000;
const BATCH_ROWS: usize = 1 << 16;

/// A stream of numbers that is the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        // splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(limit)) >> 64) as u64
    }
}

fn schema() -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [("ts", Kind::Time), ("sym", Kind::Symbol), ("price", Kind::Float), ("vol", Kind::Int)];
    Schema::new(columns.map(column).to_vec(), Partitioning { span: DAY, symbols: None }).unwrap()
}

/// Trades at random times of a span, in order, of random symbols.
fn table(arena: &'static Arena, seed: u64, rows: usize, symbols: usize, span: i64) -> Source {
    let mut table = Table::new(arena, schema());
    fill(seed, rows, symbols, span, |batch| table.append(batch).unwrap());
    Source::Memory(Arc::new(RwLock::new(table)))
}

/// The same with a log, of which views can be.
fn durable(arena: &'static Arena, folder: &Path, seed: u64, rows: usize) -> Arc<Durable<'static>> {
    let disk = Arc::new(Disk::open(folder).unwrap());
    let table = Durable::create(arena, disk, schema(), None, &Options::default()).unwrap();
    fill(seed, rows, 100, DAY, |batch| {
        table.append(None, batch).unwrap();
    });
    Arc::new(table)
}

fn fill(seed: u64, rows: usize, symbols: usize, span: i64, mut append: impl FnMut(&[Cells<'_>])) {
    let mut numbers = Numbers(seed);
    let mut times: Vec<i64> = (0..rows).map(|_| numbers.below(span as u64) as i64).collect();
    times.sort_unstable();
    let names: Vec<String> = (0..symbols).map(|symbol| format!("S{symbol:03}")).collect();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    for times in times.chunks(BATCH_ROWS) {
        let keys: Vec<u32> = times.iter().map(|_| numbers.below(symbols as u64) as u32).collect();
        let price = |key: &u32| f64::from(*key) + 50.0 + numbers.below(1000) as f64 / 100.0;
        let prices: Vec<f64> = keys.iter().map(price).collect();
        let sizes: Vec<i64> = times.iter().map(|_| 1 + numbers.below(999) as i64).collect();
        let symbols = Cells::Keyed { texts: &texts, keys: &keys };
        append(&[Cells::Times(times), symbols, Cells::Floats(&prices), Cells::Ints(&sizes)]);
    }
}

/// Shows what a query takes: its name, what goes before it each time, its text.
type Ask<'a> = dyn Fn(&str, &dyn Fn(), &str) + 'a;

/// Bars of tables that grow, and of views of them: as many bars each, and ever more rows. Each view is asked as it is,
/// and right after a row that came behind all others.
fn views(arena: &'static Arena, engine: &Engine, ask: &Ask<'_>) {
    for (millions, seed) in [(1, 31), (2, 32), (4, 33)] {
        let folder = tempfile::tempdir().unwrap();
        let (name, view) = (format!("d{millions}m"), format!("v{millions}m"));
        let table = durable(arena, folder.path(), seed, millions * 1_000_000);
        engine.add(&name, Source::Durable(Arc::clone(&table)), None).unwrap();
        let query =
            format!("SELECT xbar(ts, 300000000000) AS bar, sym, {BARS} FROM {name} GROUP BY bar, sym");
        let definition = Definition::parse(&format!("CREATE MATERIALIZED VIEW {view} AS {query}")).unwrap();
        let planned = futures::executor::block_on(engine.plan_view(definition)).unwrap();
        engine.add_view(planned).unwrap();
        let add = || {
            let (times, symbols) = (Cells::Times(&[DAY - 1]), Cells::Symbols(&["S000"]));
            table.append(None, &[times, symbols, Cells::Floats(&[50.0]), Cells::Ints(&[1])]).unwrap();
        };
        ask(&format!("symbar_{millions}m"), &|| (), &query);
        ask(&format!("view_{millions}m"), &|| (), &format!("SELECT * FROM {view}"));
        ask(&format!("view_row_{millions}m"), &add, &format!("SELECT * FROM {view}"));
        let one = format!("SELECT * FROM {view} WHERE sym = 'S007' AND bar >= {}", DAY / 2);
        ask(&format!("view_sym_{millions}m"), &|| (), &one);
        let size = engine.views().last().unwrap().size();
        println!("{view}: {} bars, {:.1} bytes each", size.bars, size.bytes as f64 / size.bars as f64);
        engine.remove(&view).unwrap();
        engine.remove(&name).unwrap();
    }
}

const BARS: &str = "first_value(price ORDER BY ts) AS o, max(price) AS h, min(price) AS l, \
                    last_value(price ORDER BY ts) AS c, sum(vol) AS v, count(*) AS n";

/// Name and text. A table `empty` has no rows.
fn queries() -> Vec<(&'static str, String)> {
    let window = |left: &str, right: &str, on: &str| {
        format!(
            "SELECT t.ts, wj_avg(q.price) AS a, wj_max(q.price) AS m, wj_count(q.price) AS n FROM {left} t \
             WINDOW JOIN {right} q ON {on} q.ts BETWEEN t.ts - 5000000000 AND t.ts + 5000000000"
        )
    };
    // The same as peers are asked it.
    let range = |left: &str, right: &str, on: &str| {
        format!(
            "SELECT t.ts AS ts, avg(q.price) AS a, max(q.price) AS m, count(q.price) AS n FROM {left} t \
             LEFT JOIN {right} q ON {on} q.ts BETWEEN t.ts-5000000000 AND t.ts+5000000000 GROUP BY t.ts"
        )
    };
    let symbar =
        format!("SELECT sym, ts / 300000000000 AS bar, {BARS} FROM t1m GROUP BY sym, ts / 300000000000");
    vec![
        ("sql_alone", format!("SELECT ts / 300000000000 AS bar, {BARS} FROM empty GROUP BY ts / 300000000000")),
        ("sql_alone_ema", "SELECT ts, ema(price, 20) OVER (ORDER BY ts) AS y FROM empty".to_owned()),
        ("q1_bar_1m", format!("SELECT ts / 300000000000 AS bar, {BARS} FROM t1m GROUP BY ts / 300000000000")),
        ("q1_symbar_1m", symbar),
        ("q2_ema_1m", "SELECT ts, ema(price, 20) OVER (ORDER BY ts) AS y FROM t1m".to_owned()),
        ("q2_ema_sym_1m", "SELECT ts, ema(price, 20) OVER (PARTITION BY sym ORDER BY ts) AS y FROM t1m".to_owned()),
        ("q3_wj_s1", window("ts1", "qs1", "")),
        ("q3_wj_s100", window("ts100", "qs100", "t.sym = q.sym AND")),
        ("q3_wj_dense", window("tsd", "qsd", "")),
        ("q3_range_s1", range("ts1", "qs1", "")),
        ("q3_range_s100", range("ts100", "qs100", "t.sym = q.sym AND")),
        ("q3_range_dense", range("tsd", "qsd", "")),
        (
            "q4_asof_1m",
            "SELECT t.ts, q.price AS y FROM t1m t ASOF JOIN q1m q MATCH_CONDITION (t.ts >= q.ts) ON t.sym = q.sym"
                .to_owned(),
        ),
        ("q5_vwap_1m", "SELECT sym, sum(price * vol) / sum(vol) AS y FROM t1m GROUP BY sym".to_owned()),
    ]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let threads = NonZeroUsize::new(numbers.first().copied().unwrap_or(1)).unwrap();
    let rounds = numbers.get(1).copied().unwrap_or(31).max(1);
    let growth = Growth { first_bytes: 64 << 20, cap_bytes: 1 << 30 };
    let arena: &'static Arena = Box::leak(Box::new(Arena::builder().growth(growth).build().unwrap()));
    let engine = Engine::new(threads).unwrap();
    let tables = [
        ("empty", 1, 0, 1, DAY),
        ("t1m", 11, 1_000_000, 100, DAY),
        ("q1m", 12, 1_000_000, 100, DAY),
        ("ts1", 21, 100_000, 1, DAY),
        ("qs1", 22, 100_000, 1, DAY),
        ("ts100", 23, 100_000, 100, DAY),
        ("qs100", 24, 100_000, 100, DAY),
        ("tsd", 25, 100_000, 1, 1_000_000_000_000),
        ("qsd", 26, 100_000, 1, 1_000_000_000_000),
    ];
    for (name, seed, rows, symbols, span) in tables {
        engine.add(name, table(arena, seed, rows, symbols, span), None).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    println!(
        "query            first ms     min ms  median ms       rows   ({threads} threads, {rounds} rounds)"
    );
    let show = |name: &str, before: &dyn Fn(), sql: &str| {
        let ask = || {
            before();
            let begin = Instant::now();
            let answer = runtime.block_on(engine.query(sql)).unwrap();
            (begin.elapsed(), answer.rows())
        };
        let (first, rows) = ask();
        let mut times: Vec<Duration> = (0..rounds).map(|_| ask().0).collect();
        times.sort_unstable();
        let [first, lowest, median] = [first, times[0], times[times.len() / 2]].map(milliseconds);
        println!("{name:<14} {first:>10.3} {lowest:>10.4} {median:>10.4} {rows:>10}");
    };
    for (name, sql) in queries() {
        show(name, &|| (), &sql);
    }
    views(arena, &engine, &show);
}
