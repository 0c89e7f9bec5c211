//! Joins by time against loops over all pairs of rows.

use proptest::prelude::*;

use crate::fixture::*;

fn text(symbol: usize) -> Value {
    Value::Text(SYMBOLS[symbol].to_owned())
}

/// Right rows whose times differ within a symbol: of equal ones, which is the partner is not SQL's business.
fn quotes(rows: Vec<Row>) -> Vec<Row> {
    let mut seen = std::collections::HashSet::new();
    rows.into_iter().filter(|row| seen.insert((row.time, row.symbol))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_asof_join_finds_the_nearest_of_all_pairs(
        left in rows(60), right in rows(60), one in division(), other in division(), threads in 1usize..3,
    ) {
        let right = quotes(right);
        let engine = engine(threads, &[("t", memory(&left, one)), ("q", memory(&right, other))]);
        for (op, by) in [(">=", 0), (">", 1), ("<=", 2), ("<", 3)] {
            let partner = |row: &Row| {
                let is_candidate = |it: &&Row| it.symbol == row.symbol && match by {
                    0 => row.time >= it.time,
                    1 => row.time > it.time,
                    2 => row.time <= it.time,
                    _ => row.time < it.time,
                };
                right.iter().filter(is_candidate).min_by_key(|it| row.time.abs_diff(it.time)).copied()
            };
            let pair = |row: &Row, partner: Option<Row>| {
                let price = partner.map_or(Value::Null, |it| float(it.price));
                let time = partner.map_or(Value::Null, |it| Value::Int(it.time));
                vec![Value::Int(row.time), text(row.symbol), Value::Int(row.size), time, price]
            };
            let select = "SELECT t.ts, t.sym, t.size, q.ts, q.price FROM t";
            let all: Vec<_> = left.iter().map(|row| pair(row, partner(row))).collect();
            let inner: Vec<_> =
                left.iter().filter_map(|row| partner(row).map(|it| pair(row, Some(it)))).collect();
            for (sql, wanted) in [
                (format!("{select} ASOF JOIN q MATCH_CONDITION (t.ts {op} q.ts) ON t.sym = q.sym"), &all),
                (format!("{select} ASOF LEFT JOIN q ON t.sym = q.sym AND t.ts {op} q.ts"), &all),
                (format!("{select} ASOF JOIN q ON t.sym = q.sym AND t.ts {op} q.ts"), &inner),
            ] {
                assert_like(&sorted(ask(&engine, &sql)), &sorted(wanted.clone()), &sql);
                // A join reads a table at once where it lies right upon it.
                let plan = explain(&engine, &sql);
                assert!(plan.contains("kernel=asof_join") && !plan.contains("CooperativeExec"), "{plan}");
            }
            // WHERE is about the pairs, and not about who may be a partner.
            let sql = format!(
                "{select} ASOF JOIN q MATCH_CONDITION (t.ts {op} q.ts) ON t.sym = q.sym \
                 WHERE q.price > 10 AND t.sym = 'beta'"
            );
            let wanted = left.iter().filter(|row| SYMBOLS[row.symbol] == "beta").filter_map(|row| {
                partner(row).filter(|it| it.price > 10.0).map(|it| pair(row, Some(it)))
            });
            assert_like(&sorted(ask(&engine, &sql)), &sorted(wanted.collect()), &sql);
            // Here it is about partners.
            let sql = format!(
                "{select} ASOF JOIN (SELECT * FROM q WHERE price > 10) AS q MATCH_CONDITION (t.ts {op} q.ts) \
                 ON t.sym = q.sym"
            );
            let wanted = left.iter().map(|row| {
                let is_candidate = |it: &&Row| it.price > 10.0 && it.symbol == row.symbol && match by {
                    0 => row.time >= it.time,
                    1 => row.time > it.time,
                    2 => row.time <= it.time,
                    _ => row.time < it.time,
                };
                pair(row, right.iter().filter(is_candidate).min_by_key(|it| row.time.abs_diff(it.time)).copied())
            });
            assert_like(&sorted(ask(&engine, &sql)), &sorted(wanted.collect()), &sql);
        }
    }

    #[test]
    fn a_window_join_adds_up_all_pairs_in_the_window(
        left in rows(50), right in rows(90), one in division(), other in division(), by_symbol in any::<bool>(),
        before in -5i64..30, length in 0i64..40, threads in 1usize..3,
    ) {
        let engine = engine(threads, &[("t", memory(&left, one)), ("q", memory(&right, other))]);
        let (from, to) = (-before, length - before);
        let on = if by_symbol { "t.sym = q.sym AND " } else { "" };
        let window = format!("q.ts BETWEEN t.ts - {before} AND t.ts + {to}").replace("+ -", "- ").replace("- -", "+ ");
        let sql = format!(
            "SELECT t.ts, t.sym, t.price, wj_sum(q.price) AS s, wj_avg(q.price), wj_min(q.price), wj_max(q.price), \
             wj_count(q.price) + 0, wj_max(q.size) FROM t WINDOW JOIN q ON {on}{window} WHERE t.ts > -30"
        );
        let row = |row: &Row| {
            let inside = right.iter().filter(|it| {
                (!by_symbol || it.symbol == row.symbol) && (row.time + from..=row.time + to).contains(&it.time)
            });
            let inside: Vec<&Row> = inside.collect();
            let prices: Vec<f64> = inside.iter().map(|it| it.price).filter(|price| !price.is_nan()).collect();
            let sum: f64 = prices.iter().sum();
            let some = |value: f64| if prices.is_empty() { Value::Null } else { Value::Float(value) };
            vec![
                Value::Int(row.time),
                text(row.symbol),
                float(row.price),
                some(sum),
                some(sum / prices.len() as f64),
                some(prices.iter().copied().fold(f64::INFINITY, f64::min)),
                some(prices.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
                Value::Int(prices.len() as i64),
                inside.iter().map(|it| it.size).max().map_or(Value::Null, |size| Value::Float(size as f64)),
            ]
        };
        let wanted = left.iter().filter(|row| row.time > -30).map(row).collect();
        assert_like(&sorted(ask(&engine, &sql)), &sorted(wanted), &sql);
        assert!(explain(&engine, &sql).contains(&format!("kernel=window_join, from={from}, to={to}")));
    }
}

#[test]
fn joins_by_time_that_are_none_are_refused_with_what_to_write() {
    let division = Division { span: 10, symbols: None, batch_rows: 9 };
    let rows = [Row { time: 1, symbol: 0, price: 1.0, size: 5 }];
    let engine = engine(1, &[("t", memory(&rows, division)), ("q", memory(&rows, division))]);
    for (sql, told) in [
        ("SELECT * FROM t ASOF JOIN q", "MATCH_CONDITION"),
        ("SELECT * FROM t ASOF JOIN q ON t.sym = q.sym", "MATCH_CONDITION"),
        ("SELECT * FROM t ASOF JOIN q ON t.ts >= q.ts AND q.price > 3", "into a subquery"),
        ("SELECT * FROM t ASOF JOIN q ON t.ts >= q.ts OR t.sym = q.sym", "with AND between"),
        ("SELECT * FROM t ASOF JOIN q ON t.price >= q.price", "cast both"),
        ("SELECT * FROM t WINDOW JOIN q ON q.ts BETWEEN t.ts AND t.ts + 1", "wj_sum"),
        ("SELECT wj_avg(q.price) FROM t WINDOW JOIN q ON q.ts > t.ts", "two borders"),
        (
            "SELECT wj_avg(q.price) FROM t WINDOW JOIN q ON q.ts BETWEEN t.ts + 2 AND t.ts + 1",
            "before it begins",
        ),
        ("SELECT wj_avg(t.price) FROM t WINDOW JOIN q ON q.ts BETWEEN t.ts AND t.ts + 1", "right side"),
        (
            "SELECT wj_avg(q.price) FROM t WINDOW JOIN q ON q.ts BETWEEN t.ts AND t.ts + 1 WHERE q.size > 1",
            "WINDOW JOIN (SELECT",
        ),
        ("SELECT wj_avg(price) FROM q", "WINDOW JOIN"),
    ] {
        let error = try_ask(&engine, sql).unwrap_err();
        assert!(chain(&error).contains(told), "{sql}: {}", chain(&error));
    }
}
