//! Materialised views: at every moment what their query would answer, and made anew only where something changed.

use std::path::Path;
use std::sync::Arc;

use planish_sql::{Definition, Engine, Source, SqlError};
use planish_table::{
    Cells, Column, Disk, Durable, Follower, Kind, Options, Partitioning, Schema, TimeUnit, View,
};
use proptest::prelude::*;

use crate::fixture::*;

/// Bars in all their columns, whose answer does not depend on the order of rows of one time.
const VIEWS: [(&str, &str); 4] = [
    (
        "by_sym",
        "SELECT xbar(ts, 16) AS b, sym, first_value(price ORDER BY ts) AS o, max(price) AS h, min(price) AS l, \
         last_value(price ORDER BY ts) AS c, sum(size) AS v, count(*) AS n FROM t GROUP BY b, sym",
    ),
    (
        "of_all",
        "SELECT time_bucket(10, ts) AS b, max(price) AS h, count(price) AS n, vwap(price, size) AS w, \
         sum(price * size) AS pv, sum(price * size) / sum(size) AS w2, count(*) AS m FROM t \
         WHERE ts >= -20 AND ts < 60 GROUP BY 1",
    ),
    (
        "of_one",
        "SELECT sym, xbar(ts, 7) AS b, first_value(price ORDER BY ts) IGNORE NULLS AS o, max(price) - min(price) AS r, \
         last_value(price ORDER BY ts) IGNORE NULLS AS c FROM t WHERE sym = 'beta' GROUP BY sym, b",
    ),
    (
        "wide",
        "SELECT sym, max(price) AS h, count(*) AS n, sum(size) AS v, xbar(ts, 500) AS b FROM t GROUP BY sym, b",
    ),
];

fn add_views(engine: &Engine, views: &[(&str, &str)]) {
    for (name, query) in views {
        let view = format!("CREATE MATERIALIZED VIEW {name} AS {query}");
        let view = wait(engine.plan_view(Definition::parse(&view).unwrap())).unwrap();
        engine.add_view(view).unwrap();
    }
}

/// A table of a folder with its views, as a start finds them.
fn open(folder: &Path, division: Division, has_key: bool) -> (Arc<Durable<'static>>, Engine) {
    let disk = Arc::new(Disk::open_plain(folder).unwrap());
    let schema = match has_key {
        true => schema(division).with_key(&["sym", "ts"]).unwrap(),
        false => schema(division),
    };
    let table = match folder.join("manifest").exists() {
        true => Durable::open(arena(), disk, &Options::default()).unwrap().0,
        false => Durable::create(arena(), disk, schema, None, &Options::default()).unwrap(),
    };
    let table = Arc::new(table);
    let engine = engine(2, &[("t", Source::Durable(Arc::clone(&table)))]);
    add_views(&engine, &VIEWS);
    (table, engine)
}

/// What happens to a table.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Row>),
    /// Rows that come in order, as of a feed.
    Feed(usize),
    Delete(Vec<(i64, usize)>),
    Flush(i64),
    Compact,
    Drop(i64),
    Ask,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let key = (-50i64..50, 0..SYMBOLS.len());
    prop_oneof![
        4 => rows(12).prop_map(Step::Append),
        4 => (1usize..30).prop_map(Step::Feed),
        3 => prop::collection::vec(key, 1..8).prop_map(Step::Delete),
        1 => (-60i64..200).prop_map(Step::Flush),
        1 => Just(Step::Compact),
        1 => (-60i64..0).prop_map(Step::Drop),
        4 => Just(Step::Ask),
        1 => Just(Step::Restart),
    ]
}

fn append(table: &Durable<'static>, mut rows: Vec<Row>, division: Division) {
    rows.retain(|row| row.time >= table.kept_from());
    append_all(&rows, division.batch_rows, |batch| {
        table.append(None, batch).unwrap();
    });
}

fn delete(table: &Durable<'static>, keys: &[(i64, usize)]) {
    let keys = keys.iter().filter(|(time, _)| *time >= table.kept_from());
    let (times, symbols): (Vec<i64>, Vec<&str>) =
        keys.map(|(time, symbol)| (*time, SYMBOLS[*symbol])).unzip();
    if !times.is_empty() {
        table.delete(None, &[Cells::Symbols(&symbols), Cells::Times(&times)]).unwrap();
    }
}

/// Whether two queries have the same rows, to the last digit: the numbers are such that floats hold every sum of them.
#[track_caller]
fn assert_same(engine: &Engine, view: &str, plain: &str) {
    let (got, wanted) = (sorted(ask(engine, view)), sorted(ask(engine, plain)));
    let is_same = |(got, wanted): (&Value, &Value)| match (got, wanted) {
        (Value::Float(got), Value::Float(wanted)) => got == wanted || (got.is_nan() && wanted.is_nan()),
        _ => got == wanted,
    };
    let is_row = |(got, wanted): (&Vec<Value>, &Vec<Value>)| got.iter().zip(wanted).all(is_same);
    let is_all = got.len() == wanted.len() && got.iter().zip(&wanted).all(is_row);
    assert!(is_all, "{view}\n   got {got:?}\nwanted {wanted:?}");
}

#[track_caller]
fn check(engine: &Engine, has_key: bool) {
    for (name, query) in VIEWS {
        // Without a key rows of one time and symbol have no order.
        if !has_key && query.contains("first_value") {
            continue;
        }
        let view = format!("SELECT * FROM {name}");
        assert_same(engine, &view, query);
        for condition in ["b >= 0", "b BETWEEN -16 AND 16 AND n > 1", "b > 3 AND b < 2"] {
            if query.contains("AS n") {
                let view = format!("SELECT h, b FROM {name} WHERE {condition}");
                let plain = format!("SELECT h, b FROM ({query}) WHERE {condition}");
                assert_same(engine, &view, &plain);
            }
        }
    }
    for condition in ["sym = 'beta'", "sym = 'none'", "sym = 'beta' AND sym = 'alpha'", "sym = '' AND b <= 0"]
    {
        let view = format!("SELECT b, v FROM wide WHERE {condition}");
        let plain = format!("SELECT b, v FROM ({}) WHERE {condition}", VIEWS[3].1);
        assert_same(engine, &view, &plain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_view_is_its_query_at_every_moment(
        steps in prop::collection::vec(step(), 1..24), division in division(), has_key in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut table, mut engine) = open(folder.path(), division, has_key);
        let mut now = 0;
        for step in steps {
            match step {
                Step::Append(rows) => append(&table, rows, division),
                Step::Feed(count) => {
                    let row = |n: usize| {
                        let price = ((n * 7) % 11) as f64 / 4.0;
                        Row { time: now + n as i64, symbol: n % 3, price, size: n as i64 }
                    };
                    append(&table, (0..count).map(row).collect(), division);
                    now += count as i64 - 1;
                }
                Step::Delete(keys) if has_key => delete(&table, &keys),
                Step::Delete(_) => {}
                Step::Flush(before) => drop(table.flush(before).unwrap()),
                Step::Compact => drop(table.compact(i64::MAX).unwrap()),
                Step::Drop(before) => drop(table.drop_before(before).unwrap()),
                Step::Ask => check(&engine, has_key),
                Step::Restart => {
                    drop((table, engine));
                    (table, engine) = open(folder.path(), division, has_key);
                }
            }
        }
        check(&engine, has_key);
    }
}

const DIVISION: Division = Division { span: 1 << 20, symbols: None, batch_rows: 1 << 16 };

fn rows_of(times: std::ops::Range<i64>) -> Vec<Row> {
    times.map(|time| Row { time, symbol: time.rem_euclid(2) as usize, price: 1.0, size: 1 }).collect()
}

/// How many rows were read for a view.
fn rows_read(engine: &Engine, name: &str) -> u64 {
    let view = engine.views().into_iter().find(|view| view.definition().name() == name).unwrap();
    view.size().rows_read
}

/// The cost of an answer is that of what changed, and of the bars: not of the rows that the table has.
#[test]
fn what_is_read_for_an_answer_does_not_grow_with_the_table() {
    const WIDTH: i64 = 1600;
    let query = "SELECT xbar(ts, 1600) AS b, sym, last_value(price ORDER BY ts) AS c, count(*) AS n FROM t \
                 GROUP BY b, sym";
    let mut of_sizes = Vec::new();
    for buckets in [4, 16, 64] {
        let folder = tempfile::tempdir().unwrap();
        let (table, engine) = open(folder.path(), DIVISION, false);
        add_views(&engine, &[("v", query)]);
        let first = buckets * WIDTH;
        append(&table, rows_of(0..first), DIVISION);
        let bars = |count: i64| assert_eq!(ask(&engine, "SELECT * FROM v").len(), count as usize);
        bars(2 * buckets);
        assert_eq!(rows_read(&engine, "v"), first as u64);
        let mut read = vec![rows_read(&engine, "v")];
        let mut then = |rows: Vec<Row>, count: i64| {
            append(&table, rows, DIVISION);
            bars(count);
            read.push(rows_read(&engine, "v"));
        };
        // A new bucket, more of it, and a late row in the first one.
        then(rows_of(first..first + 1000), 2 * buckets + 2);
        then(rows_of(first + 1000..first + 1010), 2 * buckets + 2);
        then(rows_of(7..8), 2 * buckets + 2);
        // Nothing.
        then(Vec::new(), 2 * buckets + 2);
        // Rows in files are not read where nothing changed.
        table.flush(i64::MAX).unwrap();
        then(rows_of(first + 1010..first + 1020), 2 * buckets + 2);
        of_sizes.push(read.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>());
    }
    // Of the open bucket what lies within a sixteenth of its width is read again.
    let again = (WIDTH as u64 - 1) / 16;
    let wanted = vec![1000, again + 10, WIDTH as u64 + 1, 0, again + 10];
    assert_eq!(of_sizes, vec![wanted; 3]);
}

/// A table with sizes that are floats, and null here and there.
fn float_sizes(folder: &Path, rows: &[(i64, f64, f64)]) -> Engine {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [("ts", Kind::Time), ("price", Kind::Float), ("size", Kind::Float)].map(column).to_vec();
    let schema = Schema::new(columns, Partitioning { span: 50, symbols: None }).unwrap();
    let disk = Arc::new(Disk::open_plain(folder).unwrap());
    let table = Durable::create(arena(), disk, schema, None, &Options::default()).unwrap();
    let of = |of: fn(&(i64, f64, f64)) -> f64| rows.iter().map(of).collect::<Vec<_>>();
    let times: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let (prices, sizes) = (of(|row| row.1), of(|row| row.2));
    table.append(None, &[Cells::Times(&times), Cells::Floats(&prices), Cells::Floats(&sizes)]).unwrap();
    engine(2, &[("t", Source::Durable(Arc::new(table)))])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Where kernels would not do: prices and sizes that are null, in all of a bar too.
    #[test]
    fn nulls_count_as_in_sql(
        rows in prop::collection::vec((prop::sample::select(vec![f64::NAN, 1.5, -2.0]),
                                       prop::sample::select(vec![f64::NAN, 0.0, 3.0, 0.25])), 1..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<_> = (0..).zip(rows).map(|(time, (price, size))| (time, price, size)).collect();
        let engine = float_sizes(folder.path(), &rows);
        let query = "SELECT xbar(ts, 4) AS b, first_value(price ORDER BY ts) AS o, last_value(price ORDER BY ts) AS c, \
                     max(price) AS h, min(price) AS l, count(price) AS n, count(*) AS m, sum(size) AS v, \
                     sum(price * size) AS pv, vwap(price, size) AS w FROM t GROUP BY b";
        add_views(&engine, &[("v", query)]);
        assert_same(&engine, "SELECT * FROM v", query);
    }
}

#[test]
fn whole_numbers_beyond_what_floats_hold_are_exact_and_wrap_as_in_sql() {
    let folder = tempfile::tempdir().unwrap();
    let (table, engine) = open(folder.path(), DIVISION, false);
    let row = |time, size| Row { time, symbol: 0, price: 1.0, size };
    append(&table, vec![row(0, 1 << 60), row(1, 1), row(2, -(1 << 60)), row(3, 1)], DIVISION);
    append(&table, vec![row(600, i64::MAX), row(601, 5)], DIVISION);
    let sums = "SELECT v FROM wide ORDER BY b";
    assert_eq!(ask(&engine, sums), [[Value::Int(2)], [Value::Int(i64::MAX.wrapping_add(5))]]);
    assert_eq!(
        ask(&engine, sums),
        ask(&engine, "SELECT sum(size) FROM t GROUP BY xbar(ts, 500) ORDER BY 1 DESC")
    );
}

#[test]
fn times_with_a_unit_have_buckets_of_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::open_plain(folder.path()).unwrap());
    let unit = Some(TimeUnit::Milliseconds);
    let table =
        Arc::new(Durable::create(arena(), disk, schema(DIVISION), unit, &Options::default()).unwrap());
    let engine = engine(2, &[]);
    engine.add("t", Source::Durable(Arc::clone(&table)), unit).unwrap();
    append(&table, rows_of(-3000..5000), DIVISION);
    for (name, bucket) in [
        ("a", "date_bin(INTERVAL '1 second', ts)"),
        ("b", "time_bucket(INTERVAL '2 seconds', ts)"),
        ("c", "xbar(ts, INTERVAL '1 day')"),
    ] {
        let query = format!("SELECT {bucket} AS b, max(price) AS h, count(*) AS n FROM t GROUP BY b");
        add_views(&engine, &[(name, &query)]);
        let condition = "WHERE b >= TIMESTAMP '1970-01-01 00:00:01'";
        for condition in ["", condition] {
            let view = format!("SELECT * FROM {name} {condition}");
            let plain = format!("SELECT * FROM ({query}) {condition}");
            assert_same(&engine, &view, &plain);
            assert!(!explain(&engine, &view).contains("FilterExec"), "{view}");
        }
    }
}

/// Batches with a row for each of two buckets: who sees one of them sees both.
#[test]
fn all_buckets_of_an_answer_are_of_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (table, engine) = open(folder.path(), DIVISION, false);
    add_views(
        &engine,
        &[("v", "SELECT xbar(ts, 1000) AS b, count(*) AS n, max(price) AS h FROM t GROUP BY b")],
    );
    let row = |time| Row { time, symbol: 0, price: 1.0, size: 1 };
    let all_seen = |engine: &Engine| {
        let counts = ask(engine, "SELECT n FROM v");
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        counts.first() == Some(&vec![Value::Int(200)])
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| while !all_seen(&engine) {});
        }
        (0..200).for_each(|time| append(&table, vec![row(999 - time), row(5000 + time)], DIVISION));
    });
    assert_eq!(ask(&engine, "SELECT sum(n) FROM v"), [[Value::Int(400)]]);
}

fn refused(engine: &Engine, sql: &str) -> String {
    let planned = Definition::parse(sql).and_then(|definition| wait(engine.plan_view(definition)));
    chain(&planned.map(drop).expect_err(sql))
}

/// What follows SELECT, and what is told of it: `{bars}` stands for an aggregate and the table, and what is between
/// two @ for the place where it stands.
const REFUSED: &[(&str, &str)] = &[
    (
        "xbar(ts, 5) AS b, {bars} GROUP BY b HAVING max(price) > 1",
        "HAVING @max(price) > 1@ cannot be kept by a materialized view; bars of all groups are kept",
    ),
    ("DISTINCT xbar(ts, 5) AS b, {bars} GROUP BY b", "DISTINCT @SELECT@"),
    ("xbar(ts, 5) AS b, count(DISTINCT sym) FROM t GROUP BY b", "DISTINCT in count(DISTINCT sym) @count@"),
    ("xbar(ts, 5) AS b, max(price) FILTER (WHERE size > 1) FROM t GROUP BY b", "FILTER in max(price)"),
    ("xbar(ts, 5) AS b, max(price) FROM t, u GROUP BY b", "a join @u GROUP@"),
    ("xbar(t.ts, 5) AS b, max(t.price) FROM t JOIN t u ON t.ts = u.ts GROUP BY b", "a join (line 1"),
    ("xbar(ts, 5) AS b, {bars} GROUP BY b ORDER BY b", "ORDER BY @b@"),
    ("xbar(ts, 5) AS b, {bars} GROUP BY b LIMIT 3", "LIMIT (line 1"),
    (
        "xbar(ts, 5) AS b, {bars} WHERE price > 1 AND ts > 2 GROUP BY b",
        "WHERE price > 1 AND ts > 2 @price > 1@ cannot be kept by a materialized view; a view has ranges",
    ),
    ("sym, {bars} GROUP BY sym", "bars without a bucket of time @sym@"),
    (
        "ts / 5 AS b, {bars} GROUP BY b",
        "a division of the time by 5 @ts / 5@ cannot be kept by a materialized view; write xbar(time, 5)",
    ),
    ("xbar(ts, 5) AS b, size, {bars} GROUP BY b, size", "size @size@ cannot be kept"),
    ("xbar(size, 5) AS b, {bars} GROUP BY b", "xbar(size, 5) @xbar@ cannot be kept"),
    (
        "xbar(ts, 5) AS b, max(price), stddev(price) FROM t GROUP BY b",
        "stddev(price) @stddev@ cannot be kept by a materialized view; a view has first_value",
    ),
    ("xbar(ts, 5) AS b, avg(price) FROM t GROUP BY b", "avg(price) @avg@"),
    ("xbar(ts, 5) AS b, max(price), first_value(price) FROM t GROUP BY b", "first_value(price) (line 1"),
    ("xbar(ts, 5) AS b, count(*) FROM t GROUP BY b", "a query without a price (line 1"),
    ("{bars}", "a query without groups (line 1"),
    ("xbar(ts, 5) AS b, (SELECT 1), {bars} GROUP BY b", "a subquery (line 1"),
    ("xbar(ts, 5) AS b, max(price) OVER (), {bars} GROUP BY b", "OVER in max(price) OVER ()"),
    ("xbar(ts, 5) AS b, max(price) FROM 'a.parquet' GROUP BY b", "no table a.parquet to make a view of"),
    ("xbar(ts, 5) AS b, max(price) FROM nowhere GROUP BY b", "no table nowhere"),
    ("b, max(o) FROM by_sym GROUP BY b", "no table by_sym to make a view of; views of views"),
    ("xbar(ts, 5) AS b, max(price) FROM u GROUP BY b", "the table u, which is in memory alone"),
    ("time_bucket_gapfill(5, ts, 0, 10) AS b, {bars} GROUP BY b", "cannot be kept"),
    ("xbar(ts, 5) AS b, now(), {bars} GROUP BY b", "a function of the moment"),
    ("xbar(ts, 5) AS b, {bars} GROUP BY ALL", "GROUP BY ALL"),
    ("xbar(ts, 5) AS b, {bars} GROUP BY b UNION ALL SELECT 1, 2", "what is no plain SELECT"),
    ("xbar(ts, 5) AS b, {bars} WHERE 1 = 2 GROUP BY b", "a query that is no bars"),
    ("xbar(ts, 5) AS b, nothing, {bars} GROUP BY b", "nothing"),
];

#[test]
fn what_cannot_be_kept_is_named_with_its_place_and_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let (_table, engine) = open(folder.path(), DIVISION, false);
    engine.add("u", memory(&[], DIVISION), None).unwrap();
    for (query, told) in REFUSED {
        let query = query.replace("{bars}", "max(price) AS h FROM t");
        let sql = format!("CREATE MATERIALIZED VIEW v AS SELECT {query}");
        let told_is = refused(&engine, &sql);
        // The last one.
        let told = match told.split('@').collect::<Vec<_>>().as_slice() {
            [before, at, behind] => {
                let column = sql.rfind(at).unwrap() + 1;
                format!("{before}(line 1, column {column}){behind}")
            }
            _ => (*told).to_owned(),
        };
        assert!(told_is.contains(&told), "{query}\n   got {told_is}\nwanted {told}");
    }
}

#[test]
fn what_stands_around_a_query_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    let (_table, engine) = open(folder.path(), DIVISION, false);
    let query = "SELECT xbar(ts, 5) AS b, max(price) AS h FROM t GROUP BY b";
    for (sql, told) in [
        (format!("CREATE VIEW v AS {query}"), "what stands besides name and query"),
        (format!("CREATE OR REPLACE MATERIALIZED VIEW v AS {query}"), "what stands besides name and query"),
        (format!("CREATE MATERIALIZED VIEW v (b, h) AS {query}"), "what stands besides name and query"),
        (format!("CREATE MATERIALIZED VIEW a.v AS {query}"), "a name of parts, a.v"),
        (format!("CREATE MATERIALIZED VIEW v AS {query}; SELECT 1"), "2 statements"),
        ("CREATE TABLE t (a INT)".to_owned(), "another statement"),
        ("CREATE MATERIALIZED VIEW v".to_owned(), "cannot parse"),
    ] {
        let told_is = refused(&engine, &sql);
        assert!(told_is.contains(told), "{sql}\n   got {told_is}\nwanted {told}");
    }
}

#[test]
fn a_view_has_a_name_of_its_own_and_is_told_of_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let (table, engine) = open(folder.path(), DIVISION, true);
    let text = "CREATE MATERIALIZED VIEW by_sym AS SELECT xbar(ts, 5) AS b, max(price) FROM t GROUP BY b";
    let again = wait(engine.plan_view(Definition::parse(text).unwrap())).unwrap();
    assert!(matches!(engine.add_view(again), Err(SqlError::Exists { .. })));
    let shown = ask(
        &engine,
        "SELECT table_name, table_type FROM information_schema.tables \
                              WHERE table_name IN ('t', 'by_sym') ORDER BY 1",
    );
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(shown, [[text("by_sym"), text("VIEW")], [text("t"), text("BASE TABLE")]]);
    let defined = ask(&engine, "SELECT definition FROM information_schema.views WHERE table_name = 'wide'");
    assert_eq!(defined, [[Value::Text(format!("CREATE MATERIALIZED VIEW wide AS {}", VIEWS[3].1))]]);
    // EXPLAIN names what answers, and a plan that is kept sees what comes.
    let sql = "SELECT sum(n) FROM by_sym WHERE b >= 16 AND sym = 'beta'";
    let plan = explain(&engine, sql);
    assert!(
        plan.contains(
            "KeptBarsExec: view=by_sym, of=t, width=16, price=price, size=size, time>=16, symbol=beta"
        ),
        "{plan}"
    );
    assert!(!plan.contains("FilterExec") && !plan.contains("ScanExec"), "{plan}");
    for count in 1..5 {
        append(&table, vec![Row { time: 15 + count, symbol: 1, price: 1.0, size: 1 }], DIVISION);
        assert_eq!(ask(&engine, sql), [[Value::Int(count)]]);
    }
    let size = engine.views()[0].size();
    assert!(size.bars > 0 && size.bytes > 50 * size.bars, "{size:?}");
    assert!(engine.remove("by_sym").unwrap() && !engine.remove("by_sym").unwrap());
    assert!(try_ask(&engine, sql).is_err());
    assert_eq!(engine.views().len(), 3);
}

/// A table of another process is read anew whenever that flushes, and so would be all bars.
#[test]
fn a_view_of_a_table_that_is_followed_is_answered_by_its_query() {
    let folder = tempfile::tempdir().unwrap();
    let (table, engine) = open(folder.path(), DIVISION, true);
    let follower = Arc::new(Follower::open(arena(), Arc::new(View::of(folder.path()))).unwrap());
    let other = self::engine(2, &[("t", Source::Followed(follower))]);
    add_views(&other, &VIEWS);
    append(&table, rows_of(0..40), DIVISION);
    for name in ["by_sym", "wide"] {
        let sql = format!("SELECT * FROM {name} WHERE b >= 0");
        assert_eq!(sorted(ask(&other, &sql)), sorted(ask(&engine, &sql)));
        assert!(explain(&other, &sql).contains("BarsExec: kernel=keyed_bars"));
    }
}
