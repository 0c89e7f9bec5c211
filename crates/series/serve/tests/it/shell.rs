//! The commands of a shell: load, query.

use std::path::Path;
use std::process::{Command, Output};

use crate::server::PROGRAM;

const COLUMNS: &str = "ts TIMESTAMP(3), sym SYMBOL, price DOUBLE, size BIGINT";

fn run(words: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(PROGRAM).args(words).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().unwrap(), text(&stdout), text(&stderr))
}

fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn files_of_every_format_are_loaded_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let csv = file(folder.path(), "a.csv", "ts,sym,price,size\n1970-01-01 00:00:01,alpha,1.5,10\n");
    let tsv = file(folder.path(), "a.tsv", "sym\tts\tprice\tsize\nbeta\t1970-01-01 00:00:02\t\t20\n");
    let json = file(
        folder.path(),
        "a.jsonl",
        "{\"ts\":\"1970-01-01 00:00:03\",\"sym\":\"c\",\"price\":3,\"size\":30}",
    );
    let (code, out, told) =
        run(&["load", &csv, &tsv, &json, "--into", &data, "--table", "t", "--columns", COLUMNS]);
    assert_eq!((code, out.as_str()), (0, ""), "{told}");
    assert_eq!(told.matches(": 1 rows, 0 left out").count(), 3, "{told}");
    let lines = file(folder.path(), "a.lp", "t,sym=d price=4,size=40i 4\n");
    assert_eq!(run(&["load", &lines, "--into", &data, "--unit", "s"]).0, 0);
    let ask = |sql: &str, format: &str| {
        let (code, out, told) = run(&["query", sql, "--data", &data, "--format", format]);
        assert_eq!(code, 0, "{told}");
        out
    };
    let all = "SELECT * FROM t ORDER BY ts";
    insta::assert_snapshot!("shell_table", ask(all, "table"));
    insta::assert_snapshot!("shell_tsv", ask(all, "tsv"));
    insta::assert_snapshot!("shell_csv", ask(all, "csv"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ask(all, "json")).unwrap()["rows"], 4);
    assert_eq!(ask(all, "jsoneachrow").lines().count(), 4);
    assert_eq!(run(&["query", "SELECT 1 AS a", "--data", &data]).1, "a\n1\n");
    assert_eq!(run(&["query", "SELECT 1 AS a FORMAT CSV", "--data", &data]).1, "1\n");
    // A stream of Arrow goes back in.
    let words = ["query", all, "--data", &data, "--format", "arrow"];
    let arrow = Command::new(PROGRAM).args(words).output().unwrap().stdout;
    let arrow = file(folder.path(), "a.arrows", arrow);
    let copy = ["load", &arrow, "--into", &data, "--table", "copy", "--columns", COLUMNS];
    assert_eq!(run(&copy).0, 0);
    assert_eq!(ask("SELECT * FROM copy ORDER BY ts", "csv"), ask(all, "csv"));
}

#[test]
fn a_row_with_a_fault_is_told_and_left_out_or_refuses_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let csv = file(folder.path(), "a.csv", "ts,sym,price,size\n1,a,1,1\nx,a,1,1\n2,a,1,1\n");
    let load = ["load", &csv, "--into", &data, "--table", "t", "--columns", COLUMNS];
    let (code, _, told) = run(&[&load[..], &["--strict"]].concat());
    assert_eq!(code, 4, "{told}");
    let count = ["query", "SELECT count(*) FROM t FORMAT TSV", "--data", &data];
    assert_eq!(run(&count).1, "0\n");
    let (code, _, told) = run(&load);
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains("2 rows, 1 left out") && told.contains("line 3, column 1: \"x\" is no time"),
        "{told}"
    );
    assert_eq!(run(&count).1, "2\n");
}

#[test]
fn what_is_asked_for_wrongly_is_told_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let csv = file(folder.path(), "a.csv", "ts\n1\n");
    let parquet = file(folder.path(), "a.parquet", "PAR1");
    let arrow = file(folder.path(), "a.arrow", b"ARROW1\0\0");
    for (words, code, told) in [
        (vec!["load", &csv, "--into", &data], 2, "into which --table?"),
        (vec!["load", &csv, "--into", &data, "--table", "t"], 2, "no table t; to make it say --columns"),
        (vec!["load", &csv, "--into", &data, "--table", "t", "--columns", "ts BLOB"], 2, "found BLOB"),
        (vec!["load", &parquet, "--into", &data, "--table", "t"], 2, "no format by this name"),
        (
            vec!["load", &arrow, "--into", &data, "--table", "t", "--columns", "ts TIMESTAMP"],
            4,
            "not a stream",
        ),
        (
            vec!["load", "/nonexistent.csv", "--into", &data, "--table", "t"],
            4,
            "cannot read /nonexistent.csv",
        ),
        (vec!["query", "SELECT 1", "--data", "/nonexistent"], 2, "no such folder"),
        (vec!["query", "SELECT 1 FORMAT Native", "--data", &data], 2, "no format Native"),
        (vec!["query", "SELECT nothing", "--data", &data], 4, "nothing"),
        (vec!["serve", "--data", &data, "--query-time", "0"], 2, "above 0"),
        (vec!["token", "a b", "--into", &csv], 2, "letters"),
    ] {
        let (found, _, stderr) = run(&words);
        assert_eq!(found, code, "{words:?}: {stderr}");
        assert!(stderr.contains(told), "{words:?}: {stderr}");
    }
}

#[test]
fn help_tells_what_there_is() {
    insta::assert_snapshot!("help", run(&["--help"]).1);
    for command in ["serve", "load", "query", "token", "bench", "install", "uninstall"] {
        insta::assert_snapshot!(format!("help_{command}"), run(&[command, "--help"]).1);
    }
}

#[test]
fn bench_measures_a_server_of_its_own_and_takes_it_away() {
    let folder = tempfile::tempdir().unwrap();
    let bench = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "--rounds", "2", "--seconds", "0.3", "--rate", "100", "--rows", "2000"]);
        command.args(words).env("TMPDIR", folder.path()).output().unwrap()
    };
    let output = bench(&["--json", "--", "--threads", "1", "--pages", "4k"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["result"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12, "{json}");
    for row in rows {
        let [low, value, high] = ["low", "value", "high"].map(|key| row[key].as_f64().unwrap());
        assert!(low <= value && value <= high && high > 0.0, "{row}");
    }
    let value = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["value"].as_f64().unwrap();
    // Who is asked a hundred times in a second answers no more.
    assert!((1.0..=110.0).contains(&value("fixed rate, answered")), "{json}");
    assert!(value("fixed rate, median") <= value("fixed rate, highest"));
    let table = String::from_utf8(bench(&[]).stdout).unwrap();
    assert_eq!(table.lines().count(), 13, "{table}");
    assert!(table.ends_with("fixed rate: 100 queries/s, 8 connections\n"), "{table}");
    let refused = bench(&["--", "--node-id", "1000"]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4));
    assert!(
        stderr.contains("the server did not start: planish-series: node 1000 does not exist"),
        "{stderr}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "folders are left behind");
}

/// Progress is for terminals.
#[test]
fn a_long_load_shows_how_far_it_is_on_a_terminal() {
    let test = "shell::a_long_load_shows_how_far_it_is_on_a_terminal";
    let folder = tempfile::tempdir().unwrap();
    let [data, pipe] = ["data", "a.csv"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let made = Command::new("mkfifo").arg(&pipe).output();
    let load = format!("{PROGRAM} load {pipe} --into {data} --table t --columns '{COLUMNS}'");
    let script = Command::new("script")
        .args(["--quiet", "--return", "--command", &load, "/dev/null"])
        .stdout(std::process::Stdio::piped())
        .spawn();
    let (Ok(_), Ok(script)) = (made, script) else { return planish_skip::skip(test, "no mkfifo or script") };
    // A file that takes its time. Where nobody opens it the thread waits for nobody.
    std::thread::spawn(move || {
        let mut file = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let mut write = |text: &str| std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        write("ts,sym,price,size\n");
        for row in 0..15 {
            write(&format!("{row},a,1,1\n"));
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    let shown = String::from_utf8(script.wait_with_output().unwrap().stdout).unwrap();
    assert!(shown.contains("a.csv: 0.0M rows, 0.00M rows/s"), "{shown:?}");
    assert!(shown.contains("\r\u{1b}[K") && shown.contains("a.csv: 15 rows, 0 left out"), "{shown:?}");
}
