//! `load --demo`: tables to try queries on.

use std::process::{Command, Output};

use crate::server::PROGRAM;

fn run(words: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(PROGRAM).args(words).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().unwrap(), text(&stdout), text(&stderr))
}

#[test]
fn trades_and_quotes_are_there_and_answer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let other = folder.path().join("other").to_str().unwrap().to_owned();
    let load = ["load", "--demo=70000", "--symbols", "20", "--seed", "3", "--into"];
    let (code, out, told) = run(&[&load[..], &[&data]].concat());
    assert_eq!((code, out.as_str()), (0, ""), "{told}");
    assert!(told.contains("trades: 70000 rows of 20 symbols"), "{told}");
    let ask = |data: &str, sql: &str| {
        let (code, out, told) = run(&["query", sql, "--data", data, "--format", "tsv"]);
        assert_eq!(code, 0, "{sql}: {told}");
        out.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for table in ["trades", "quotes"] {
        let sql = format!(
            "SELECT count(*), count(DISTINCT sym), min(ts) >= TIMESTAMP '2026-01-05 09:30:00' FROM {table}"
        );
        assert_eq!(ask(&data, &sql), ["70000\t20\ttrue"]);
    }
    // Trades are at the bid or the ask that stands.
    let sql = "SELECT count(*) FROM trades t ASOF JOIN quotes q MATCH_CONDITION (t.ts >= q.ts) ON t.sym = q.sym \
               WHERE t.price <> q.bid AND t.price <> q.ask";
    let ties: u32 = ask(&data, sql)[0].parse().unwrap();
    assert!(ties < 70, "{ties} trades at no quote");
    let sum = "SELECT sum(price * size), max(ts) FROM trades";
    assert_eq!(run(&[&load[..], &[&other]].concat()).0, 0);
    assert_eq!(ask(&data, sum), ask(&other, sum));
    // What is there already stays.
    let (code, _, told) = run(&["load", "--demo=10", "--into", &data]);
    assert!(code == 3 && told.contains("there is a table trades already"), "{told}");
    assert_eq!(ask(&data, "SELECT count(*) FROM quotes"), ["70000"]);
}

#[test]
fn a_demo_is_instead_of_files() {
    for words in [
        &["load", "--into", "/tmp/none"][..],
        &["load", "--demo", "a.csv", "--into", "/tmp/none"],
        &["load", "--demo=0", "--into", "/tmp/none"],
        &["load", "--demo", "--table", "t", "--into", "/tmp/none"],
        &["load", "--demo", "--symbols", "0", "--into", "/tmp/none"],
        &["load", "a.csv", "--seed", "1", "--into", "/tmp/none"],
    ] {
        assert_eq!(run(words).0, 2, "{words:?}");
    }
}
