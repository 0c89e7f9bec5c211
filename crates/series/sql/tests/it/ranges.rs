//! Joins by a range of times, grouped by one side: the answers are those of DataFusion, which makes every pair.

use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use planish_sql::{Answer, Engine};
use planish_table::TimeUnit;
use proptest::prelude::*;

use crate::fixture::*;

/// DataFusion as it is, over the rows of an engine's tables.
fn plain(engine: &Engine, tables: &[&str]) -> SessionContext {
    let context = SessionContext::new();
    for table in tables {
        let Answer { schema, batches } = try_ask(engine, &format!("SELECT * FROM {table}")).unwrap();
        context.register_table(*table, Arc::new(MemTable::try_new(schema, vec![batches]).unwrap())).unwrap();
    }
    context
}

#[track_caller]
fn ask_plain(context: &SessionContext, sql: &str) -> Vec<Vec<Value>> {
    let frame = wait(context.sql(sql)).unwrap();
    let schema = Arc::new(frame.schema().as_arrow().clone());
    values(&Answer { schema, batches: wait(frame.collect()).unwrap() })
}

/// A query, and whether the kernel runs for it. A window of one moment is an equality, and either may run.
#[derive(Debug, Clone)]
struct Query {
    sql: String,
    by_kernel: Option<bool>,
}

const GROUPS: [&str; 6] =
    ["t.ts", "t.ts, t.sym, t.price, t.size", "t.sym", "t.size, t.ts", "t.price", "t.sym, t.ts"];

const AGGREGATES: [&str; 4] = [
    "avg(q.price), max(q.price), count(q.price)",
    "count(*), sum(q.price), min(q.price)",
    "sum(q.size), avg(q.size), min(q.size), max(q.size), count(q.sym), count(*)",
    "sum(q.price) / count(q.ts), max(q.price) - min(q.price), count(1)",
];

/// What WHERE says, and whether it is about both sides at once.
const WHERES: [(&str, bool); 6] = [
    ("", false),
    ("WHERE t.size > 20", false),
    ("WHERE q.size > 20", false),
    ("WHERE t.sym = 'beta' AND t.ts > -20 AND q.price > 0", false),
    ("WHERE t.price IS NULL OR t.size > 50", false),
    ("WHERE q.price > t.price", true),
];

fn query() -> impl Strategy<Value = Query> {
    let choices =
        (0..4usize, 0..GROUPS.len(), 0..AGGREGATES.len(), 0..WHERES.len(), any::<bool>(), 0..4usize);
    (choices, -5i64..30, 0i64..40).prop_map(
        |((join, group, aggregate, filter, by_symbol, form), before, length)| {
            let after = length - before;
            let moved = |by: i64| if by < 0 { format!("t.ts - {}", -by) } else { format!("t.ts + {by}") };
            let (low, high) = (moved(-before), moved(after));
            let window = match form {
                0 => format!("q.ts BETWEEN {low} AND {high}"),
                1 => format!("{low} <= q.ts AND q.ts < {}", moved(after + 1)),
                2 => format!("q.ts + {before} > {} AND q.ts - {after} <= t.ts", moved(-1))
                    .replace("+ -", "- ")
                    .replace("- -", "+ "),
                _ => format!("{low} <= q.ts AND q.ts <= {high} AND true"),
            };
            let tables = ["t JOIN q", "t LEFT JOIN q", "q JOIN t", "q RIGHT JOIN t"][join];
            let on = if by_symbol { "q.sym = t.sym AND " } else { "" };
            let ((filter, is_of_both), groups) = (WHERES[filter], GROUPS[group]);
            let sql = format!(
                "SELECT {groups}, {} FROM {tables} ON {on}{window} {filter} GROUP BY {groups}",
                AGGREGATES[aggregate]
            );
            Query { sql, by_kernel: (length > 0).then_some(!is_of_both) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn windows_by_a_join_of_ranges_are_those_of_all_pairs(
        left in rows(60), right in rows(60), one in division(), other in division(), threads in 1usize..3,
        queries in prop::collection::vec(query(), 6),
    ) {
        let engine = engine(threads, &[("t", memory(&left, one)), ("q", memory(&right, other))]);
        let plain = plain(&engine, &["t", "q"]);
        for Query { sql, by_kernel } in queries {
            let wanted = sorted(ask_plain(&plain, &sql));
            assert_like(&sorted(ask(&engine, &sql)), &wanted, &sql);
            let plan = explain(&engine, &sql);
            let is_by_kernel = plan.contains("RangeJoinExec: kernel=window_join");
            assert!(by_kernel.is_none_or(|wanted| wanted == is_by_kernel), "{sql}: {plan}");
        }
    }
}

fn two_tables(left: &[Row], right: &[Row]) -> Engine {
    let division = Division { span: 100, symbols: None, batch_rows: 9 };
    engine(2, &[("t", memory(left, division)), ("q", memory(right, division))])
}

fn row(time: i64, symbol: usize, price: f64, size: i64) -> Row {
    Row { time, symbol, price, size }
}

/// Trades of one moment have one window, of which each counts.
#[test]
fn rows_of_one_group_are_merged() {
    let left = [row(1, 0, 1.0, 1), row(1, 0, 1.0, 1), row(1, 1, 2.0, 1), row(9, 0, 1.0, 1)];
    let engine = two_tables(&left, &[row(0, 0, 4.0, 10), row(2, 0, 6.0, 20), row(2, 1, f64::NAN, 30)]);
    let of = |group: &str, join: &str| {
        let sql = format!(
            "SELECT {group}, count(*), count(q.price), sum(q.price), avg(q.price), sum(q.size) FROM t {join} q \
             ON q.sym = t.sym AND q.ts BETWEEN t.ts - 1 AND t.ts + 1 GROUP BY {group} ORDER BY {group}"
        );
        assert!(explain(&engine, &sql).contains("kernel=window_join"), "{}", explain(&engine, &sql));
        ask(&engine, &sql)
    };
    let known = |group, pairs, count, sum, avg, size| {
        vec![
            group,
            Value::Int(pairs),
            Value::Int(count),
            Value::Float(sum),
            Value::Float(avg),
            Value::Int(size),
        ]
    };
    let text = |symbol: usize| Value::Text(SYMBOLS[symbol].to_owned());
    let none =
        |group, pairs, size| vec![group, Value::Int(pairs), Value::Int(0), Value::Null, Value::Null, size];
    assert_eq!(of("t.ts", "JOIN"), [known(Value::Int(1), 5, 4, 20.0, 5.0, 90)]);
    let both = [known(Value::Int(1), 5, 4, 20.0, 5.0, 90), none(Value::Int(9), 1, Value::Null)];
    assert_eq!(of("t.ts", "LEFT JOIN"), both);
    let both = [known(text(0), 4, 4, 20.0, 5.0, 60), none(text(1), 1, Value::Int(30))];
    assert_eq!(of("t.sym", "JOIN"), both);
    assert_eq!(of("t.sym", "LEFT JOIN"), [known(text(0), 5, 4, 20.0, 5.0, 60), both[1].clone()]);
}

/// The plan that makes all pairs runs where a kernel of floats would give another answer.
#[test]
fn what_floats_cannot_tell_is_not_left_to_the_kernel() {
    let most = i64::MAX - 3;
    let sizes = [
        row(0, 0, 0.0, most),
        row(1, 0, 1.0, 2),
        row(2, 0, f64::INFINITY, 3),
        row(3, 0, f64::NEG_INFINITY, 4),
    ];
    let engine = two_tables(&[row(1, 0, 0.0, 1), row(1, 0, 2.0, 1)], &sizes);
    let plain = plain(&engine, &["t", "q"]);
    for select in [
        "max(q.size), min(q.size) FROM t JOIN q",
        "sum(q.size) FROM t JOIN (SELECT * FROM q WHERE size < 9) q",
        "sum(q.size / 900) FROM t JOIN q",
        // Two infinities add up to NaN, which is a value.
        "sum(q.price), avg(q.price), max(q.price), min(q.price), count(q.price) FROM t LEFT JOIN q",
        // So is what is divided by nothing, and not a null.
        "sum(q.x), count(q.x), max(q.x) FROM t JOIN (SELECT ts, price / 0 AS x FROM q) q",
        "max(q.at) FROM t JOIN (SELECT ts, ts AS at FROM q) q",
    ] {
        let sql = format!("SELECT t.ts, {select} ON q.ts BETWEEN t.ts - 1 AND t.ts + 2 GROUP BY t.ts");
        let (got, wanted) = (ask(&engine, &sql), ask_plain(&plain, &sql));
        // NaN is no number, not even the same.
        assert_eq!(format!("{got:?}"), format!("{wanted:?}"), "{sql}");
    }
    // Behind the last of all times SQL begins anew.
    let sql = "SELECT t.ts, count(*) FROM t JOIN q ON q.ts BETWEEN t.ts + 1 AND t.ts + 9223372036854775807 \
               GROUP BY t.ts";
    assert!(explain(&engine, sql).contains("kernel=window_join"));
    assert_eq!(ask(&engine, sql), ask_plain(&plain, sql));
    let sql = "SELECT t.ts, count(*) FROM t JOIN q ON q.ts + 9223372036854775806 >= t.ts AND q.ts - 9 <= t.ts \
               GROUP BY t.ts";
    assert!(explain(&engine, sql).contains("kernel=window_join"));
    assert_eq!(ask(&engine, sql), ask_plain(&plain, sql));
}

#[test]
fn times_with_a_unit_have_windows_of_intervals() {
    let rows: Vec<Row> = (0..40).map(|row| self::row(row * 400, row as usize % 2, row as f64, 1)).collect();
    let engine = engine_with_unit(&rows, TimeUnit::Milliseconds);
    let plain = plain(&engine, &["trades"]);
    for (interval, by_kernel) in [("1 second", true), ("0.5 seconds", true), ("1 month", false)] {
        let sql = format!(
            "SELECT t.ts, avg(q.price), count(*) FROM trades t JOIN trades q ON q.sym = t.sym \
             AND q.ts BETWEEN t.ts - INTERVAL '{interval}' AND t.ts GROUP BY t.ts ORDER BY t.ts"
        );
        assert_like(&ask(&engine, &sql), &ask_plain(&plain, &sql), &sql);
        assert_eq!(explain(&engine, &sql).contains("from=-"), by_kernel, "{sql}");
    }
}

/// Whatever is no window of rows of the grouped side is left alone.
#[test]
fn other_joins_and_groups_are_left_alone() {
    let rows = [row(1, 0, 1.0, 1), row(2, 1, f64::NAN, 2), row(2, 1, 3.0, 3), row(5, 0, 4.0, 4)];
    let engine = two_tables(&rows, &rows[..3]);
    let plain = plain(&engine, &["t", "q"]);
    let window = "q.ts BETWEEN t.ts - 1 AND t.ts + 1";
    for sql in [
        format!("SELECT q.ts, avg(q.price) FROM t JOIN q ON {window} GROUP BY q.ts"),
        format!("SELECT t.ts, q.sym, avg(q.price) FROM t JOIN q ON {window} GROUP BY t.ts, q.sym"),
        format!("SELECT t.ts, sum(t.size), avg(q.price) FROM t JOIN q ON {window} GROUP BY t.ts"),
        format!("SELECT t.ts, avg(q.price) FROM t FULL JOIN q ON {window} GROUP BY t.ts"),
        format!("SELECT t.ts, avg(q.price) FROM t RIGHT JOIN q ON {window} GROUP BY t.ts"),
        format!("SELECT t.ts, count(DISTINCT q.size) FROM t JOIN q ON {window} GROUP BY t.ts"),
        format!(
            "SELECT t.ts, avg(q.price) FILTER (WHERE q.size > 1) FROM t JOIN q ON {window} GROUP BY t.ts"
        ),
        format!("SELECT t.ts, avg(q.price) FROM t LEFT JOIN q ON {window} AND t.size > 1 GROUP BY t.ts"),
        format!("SELECT t.ts, count(*) FROM t LEFT JOIN q ON {window} WHERE q.price IS NULL GROUP BY t.ts"),
        format!("SELECT t.ts, avg(q.price) FROM t JOIN q ON {window} OR t.sym = q.sym GROUP BY t.ts"),
        format!("SELECT t.ts, avg(q.price) FROM t JOIN q ON t.price = q.price AND {window} GROUP BY t.ts"),
        format!("SELECT t.ts, stddev(q.price) FROM t JOIN q ON {window} GROUP BY t.ts"),
        format!("SELECT t.ts, max(q.sym) FROM t JOIN q ON {window} GROUP BY t.ts"),
        format!("SELECT avg(q.price) FROM t JOIN q ON {window}"),
        format!(
            "SELECT t.ts, t.sym, avg(q.price) FROM t JOIN q ON {window} GROUP BY GROUPING SETS (t.ts, t.sym)"
        ),
        "SELECT t.ts, avg(q.price) FROM t JOIN q ON q.ts >= t.ts GROUP BY t.ts".to_owned(),
        "SELECT t.ts, avg(q.price) FROM t JOIN q ON q.ts BETWEEN t.ts + 2 AND t.ts + 1 GROUP BY t.ts"
            .to_owned(),
        "SELECT t.ts, avg(q.price) FROM t JOIN q ON q.ts BETWEEN t.ts AND t.ts + t.size GROUP BY t.ts"
            .to_owned(),
        "SELECT t.ts, avg(q.price) FROM t JOIN q ON q.price BETWEEN t.price AND t.price + 1 GROUP BY t.ts"
            .to_owned(),
        "SELECT t.ts, avg(q.price) FROM t JOIN q ON q.ts BETWEEN t.ts AND t.size + 9 GROUP BY t.ts"
            .to_owned(),
    ] {
        assert_like(&sorted(ask(&engine, &sql)), &sorted(ask_plain(&plain, &sql)), &sql);
        assert!(!explain(&engine, &sql).contains("RangeJoinExec"), "{sql}");
    }
}

/// Kernels below the sides of a window, conditions upon it, and its order.
#[test]
fn windows_stand_in_larger_queries() {
    let rows: Vec<Row> =
        (0..60).map(|row| self::row(row * 7 % 60, row as usize % 3, row as f64, row)).collect();
    let engine = two_tables(&rows, &rows);
    let plain = plain(&engine, &["t", "q"]);
    let sql = "SELECT b.bar, b.sym, avg(q.price) AS a, count(*) AS n FROM (SELECT ts / 10 * 10 AS bar, sym FROM t \
               GROUP BY 1, 2) b JOIN q ON q.sym = b.sym AND q.ts BETWEEN b.bar AND b.bar + 9 \
               GROUP BY b.bar, b.sym HAVING count(*) > 2 ORDER BY b.bar, b.sym";
    assert!(explain(&engine, sql).contains("kernel=window_join"));
    assert_like(&ask(&engine, sql), &ask_plain(&plain, sql), sql);
    let sql = "SELECT t.ts, max(q.price) FROM t JOIN (SELECT ts, max(price) AS price FROM q GROUP BY ts) q \
               ON q.ts BETWEEN t.ts - 3 AND t.ts GROUP BY t.ts ORDER BY t.ts LIMIT 5";
    assert!(explain(&engine, sql).contains("kernel=window_join"));
    assert_like(&ask(&engine, sql), &ask_plain(&plain, sql), sql);
    // A table is in order of its times, and so are its windows.
    let sql = "SELECT t.ts, max(q.price) FROM t JOIN q ON q.ts BETWEEN t.ts - 3 AND t.ts GROUP BY t.ts ORDER BY t.ts";
    let plan = explain(&engine, sql);
    assert!(plan.find("SortExec").unwrap_or(usize::MAX) > plan.find("RangeJoinExec").unwrap(), "{plan}");
    assert_like(&ask(&engine, sql), &ask_plain(&plain, sql), sql);
}
