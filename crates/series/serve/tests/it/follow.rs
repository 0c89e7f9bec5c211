//! Instances that share a folder: one takes rows in, another answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::{PROGRAM, Server, TRADES};

const COUNT: &str = "SELECT count(*), sum(size) FROM trades";

fn row(size: usize) -> String {
    format!("INSERT INTO trades FORMAT CSV\n{size},a,1,{size},1\n")
}

/// The bytes of all files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => drop(all.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all
}

#[test]
fn what_one_instance_has_answered_another_one_sees() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Server::start_with(folder.path(), &["--role", "ingest", "--line-protocol", "127.0.0.1:0"]);
    writer.post("/", TRADES).ok();
    let reader = Server::start_with(folder.path(), &["--role", "query"]);
    assert!(reader.start.contains(" 1 tables in "), "{}", reader.start);
    for size in 1..=50 {
        writer.post("/", &row(size)).ok();
        // At once: a query looks where the log is.
        assert_eq!(reader.ask(COUNT), format!("{size}\t{}", size * (size + 1) / 2));
    }
    // A table that comes later.
    writer.post("/", "CREATE TABLE later (ts TIMESTAMP(9), x DOUBLE)").ok();
    assert_eq!(writer.post("/write", "later x=1.5 1\n").status, 204);
    let began = Instant::now();
    while reader.metric("planish_series_tables") < 2.0 {
        assert!(began.elapsed() < Duration::from_secs(30), "it is not taken up");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(reader.ask("SELECT sum(x) FROM later"), "1.5");
    // The one is killed, and goes on; the other one stays.
    writer.kill();
    assert_eq!(reader.ask(COUNT), "50\t1275");
    let writer = Server::start_with(folder.path(), &["--role", "ingest"]);
    writer.post("/", &row(51)).ok();
    assert_eq!(reader.ask(COUNT), "51\t1326");
    let (status, told) = reader.terminate();
    assert_eq!((status.code(), told.as_str()), (Some(0), ""));
}

#[test]
fn each_instance_does_what_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Server::start_with(folder.path(), &["--role", "ingest"]);
    writer.post("/", TRADES).ok();
    writer.post("/", &row(1)).ok();
    let reader = Server::start_with(folder.path(), &["--role", "query"]);
    for (path, body) in [
        ("/", row(2)),
        ("/", "CREATE TABLE other (ts TIMESTAMP)".to_owned()),
        ("/write", "trades size=1i 1".to_owned()),
    ] {
        let reply = reader.post(path, &body);
        assert!(reply.status == 403 && reply.text().contains("--role query"), "{}", reply.text());
    }
    let reply = writer.post("/", COUNT);
    assert!(reply.status == 403 && reply.text().contains("--role ingest"), "{}", reply.text());
    assert_eq!(reader.ask(COUNT), "1\t1");
    for server in [&writer, &reader] {
        assert_eq!(server.get("/ping").ok(), "Ok.\n");
        assert_eq!(server.metric("planish_series_tables"), 1.0);
    }
}

#[test]
fn one_that_follows_reads_files_beside_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let [data, lists] = ["data", "lists"].map(|name| folder.path().join(name));
    std::fs::create_dir(&lists).unwrap();
    std::fs::write(lists.join("names.csv"), "sym,name\na,Alpha\nb,Beta\n").unwrap();
    let lists = ["--files", lists.to_str().unwrap()];
    let writer = Server::start_with(&data, &["--role", "ingest"]);
    writer.post("/", TRADES).ok();
    writer.post("/", &row(7)).ok();
    let reader = Server::start_with(&data, &[&["--role", "query"], &lists[..]].concat());
    let sql = "SELECT name, sum(size) FROM trades JOIN 'names.csv' n ON trades.sym = n.sym GROUP BY name";
    assert_eq!(reader.ask(sql), "Alpha\t7");
    // One that answers no query reads none.
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--role", "ingest"]).args(lists).arg("--data").arg(folder.path().join("nowhere"));
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("--role ingest answers none"), "{told}");
}

#[test]
fn one_that_follows_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Server::with_trades(folder.path(), &[]);
    writer.post("/", &row(1)).ok();
    writer.kill();
    let before = files(folder.path());
    let reader = Server::start_with(folder.path(), &["--role", "query"]);
    assert_eq!(reader.ask(COUNT), "1\t1");
    std::thread::sleep(Duration::from_millis(300));
    drop(reader.terminate());
    assert!(files(folder.path()) == before, "files have changed");
    let nowhere = folder.path().join("nowhere");
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "127.0.0.1:0", "--role", "query"]).args(words);
        let output = command.arg("--data").arg(&nowhere).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = run(&[]);
    assert!(code == 4 && told.contains("cannot read the folder") && !nowhere.exists(), "{told}");
    let (code, told) = run(&["--line-protocol", "127.0.0.1:0"]);
    assert!(code == 2 && told.contains("--role query does not"), "{told}");
}
