//! Plans that are kept, and prepared statements.

use datafusion::scalar::ScalarValue;

use crate::fixture::*;

fn some_rows() -> Vec<Row> {
    (0..40).map(|time| Row { time, symbol: 0, price: time as f64, size: 1 }).collect()
}

const DIVISION: Division = Division { span: 10, symbols: None, batch_rows: 100 };

#[test]
fn a_plan_can_run_again_and_at_once_with_itself() {
    let engine = engine(2, &[("t", memory(&some_rows(), DIVISION))]);
    // Joins, exchanges and limits keep what they have done.
    let sql =
        "SELECT a.ts, b.price FROM t a JOIN t b ON a.ts = b.ts + 1 WHERE a.price > 5 ORDER BY a.ts LIMIT 7";
    let first = ask(&engine, sql);
    assert_eq!(first.len(), 7);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| assert_eq!(ask(&engine, sql), first)));
        }
    });
}

#[test]
fn what_is_true_of_the_moment_only_is_asked_anew() {
    let engine = engine(1, &[("t", memory(&some_rows(), DIVISION))]);
    let moment = || ask(&engine, "SELECT CAST(now() AS BIGINT) FROM t LIMIT 1");
    let first = moment();
    std::thread::sleep(std::time::Duration::from_millis(3));
    assert_ne!(first, moment());
    let nested =
        || ask(&engine, "SELECT ts FROM t WHERE ts = (SELECT CAST(now() AS BIGINT) - ts FROM t LIMIT 1)");
    assert_eq!(nested(), Vec::<Vec<Value>>::new());
    assert_eq!(format!("{engine:?}"), "Engine { plans: 0, .. }");
}

#[test]
fn a_table_of_another_name_or_another_table_of_the_name_is_planned_anew() {
    let engine = engine(1, &[("t", memory(&some_rows(), DIVISION))]);
    let sql = "SELECT count(*) FROM t";
    assert_eq!(ask(&engine, sql), [[Value::Int(40)]]);
    assert!(matches!(
        engine.add("t", memory(&[], DIVISION), None),
        Err(planish_sql::SqlError::Exists { name }) if name == "t"
    ));
    assert!(engine.remove("t").unwrap());
    assert!(!engine.remove("t").unwrap());
    assert!(try_ask(&engine, sql).is_err());
    engine.add("t", memory(&some_rows()[..3], DIVISION), None).unwrap();
    assert_eq!(ask(&engine, sql), [[Value::Int(3)]]);
}

#[test]
fn prepared_statements_take_values_and_no_text() {
    let engine = engine(1, &[("t", memory(&some_rows(), DIVISION))]);
    let prepared = wait(engine.prepare("SELECT count(*) FROM t WHERE ts >= $1 AND sym = $2")).unwrap();
    assert_eq!(prepared.places(), 2);
    let count = |from: i64, symbol: &str| {
        let answer = wait(prepared.query(&[ScalarValue::from(from), ScalarValue::from(symbol)])).unwrap();
        values(&answer)
    };
    assert_eq!(count(30, "alpha"), [[Value::Int(10)]]);
    assert_eq!(count(39, "alpha"), [[Value::Int(1)]]);
    assert_eq!(count(30, "alpha"), [[Value::Int(10)]]);
    assert_eq!(count(0, "alpha' OR '1' = '1"), [[Value::Int(0)]]);
    let error = wait(prepared.query(&[ScalarValue::from(1)])).unwrap_err();
    assert_eq!(error.to_string(), "1 values for a statement with 2 places");
}

#[test]
fn columns_are_told_also_where_there_is_no_row() {
    let engine = engine(1, &[("t", memory(&some_rows(), DIVISION))]);
    let answer = try_ask(&engine, "SELECT ts, price FROM t WHERE ts > 1000").unwrap();
    assert_eq!((answer.rows(), answer.schema.fields().len()), (0, 2));
}
