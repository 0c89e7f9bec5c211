//! Pages, node and CPUs: what is asked for, what is had, and what is said of it.

use std::collections::BTreeMap;
use std::process::Command;

use crate::server::{PROGRAM, Server};

/// The value of a line of a status file.
fn status(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// CPUs that this process may use, as two lists of one: the first and the last.
fn two_cpus() -> [String; 2] {
    let list = status("/proc/self/status", "Cpus_allowed_list");
    let of = |part: Option<&str>| part.unwrap().to_owned();
    [of(list.split([',', '-']).next()), of(list.split([',', '-']).next_back())]
}

/// The CPUs of the threads of a process, by name.
fn threads(pid: u32) -> BTreeMap<String, Vec<String>> {
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = task.unwrap().path().join("status");
        let path = path.to_str().unwrap();
        threads.entry(status(path, "Name")).or_default().push(status(path, "Cpus_allowed_list"));
    }
    threads
}

#[test]
fn threads_and_memory_are_where_they_were_asked_to_be_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let [ingest, queries] = two_cpus();
    let options = [
        "--pages",
        "4k",
        "--ingest-cpus",
        &ingest,
        "--query-cpus",
        &queries,
        "--line-protocol",
        "127.0.0.1:0",
    ];
    let server = Server::with_trades(folder.path(), &options);
    let start = &server.start;
    assert!(
        start.contains("memory for rows: base pages asked for, 2.0 MiB on base pages had; node"),
        "{start}"
    );
    for (cpus, work) in [(&ingest, "ingest"), (&queries, "queries")] {
        assert!(start.contains(&format!("{work} on CPUs {cpus}\n")), "{start}");
        assert!(start.contains(&format!("isolation of CPUs {cpus} for {work}: ")), "{start}");
        assert_eq!(server.metric(&format!("planish_series_cpus{{work=\"{work}\"}}")), 1.0);
    }
    // Every kind of thread is at work.
    server.post("/", "INSERT INTO trades FORMAT CSV\n1,a,1,1,1\n").ok();
    assert_eq!(server.ask("SELECT count(*), sum(size) FROM trades"), "1\t1");
    let _lines = server.connect_lines();
    let threads = threads(server.pid());
    for (name, cpus) in [
        ("http", &ingest),
        ("table-log", &ingest),
        ("upkeep", &ingest),
        ("query", &queries),
        ("crew-1", &queries),
    ] {
        let found = threads.get(name).unwrap_or_else(|| panic!("no {name} in {threads:?}"));
        assert!(found.iter().all(|found| found == cpus), "{name} on {found:?}, not {cpus}");
    }
    assert!(server.metric("planish_series_memory_bytes{page=\"base\"}") >= f64::from(2 << 20));
    assert_eq!(server.metric("planish_series_memory_as_asked"), 1.0);
}

#[test]
fn a_node_gives_memory_and_cpus() {
    let test = "placing::a_node_gives_memory_and_cpus";
    let cpus = std::fs::read_to_string("/sys/devices/system/node/node0/cpulist").unwrap_or_default();
    if cpus.trim().is_empty() {
        return planish_skip::skip(test, "no node 0 with CPUs");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--node-id", "0"]);
    assert!(
        server.start.contains("ingest on CPUs ") && server.start.contains("queries on CPUs "),
        "{}",
        server.start
    );
    assert!(server.start.contains("memory for rows: transparent huge pages asked for, "), "{}", server.start);
    assert!(server.metric("planish_series_memory_node_bytes{node=\"0\"}") > 0.0);
}

#[test]
fn pages_that_a_pool_does_not_have_are_told_and_smaller_ones_taken() {
    let folder = tempfile::tempdir().unwrap();
    // A size of no machine.
    let server = Server::with_trades(folder.path(), &["--pages", "2048g"]);
    assert!(server.start.contains("2048 GB huge pages asked for, 2.0 MiB on "), "{}", server.start);
    assert!(server.start.contains("; this kernel has no 2048 GB huge pages"), "{}", server.start);
    server.post("/", "INSERT INTO trades FORMAT CSV\n1,a,1,1,1\n").ok();
    assert_eq!(server.metric("planish_series_memory_as_asked"), 0.0);
    assert_eq!(server.ask("SELECT count(*) FROM trades"), "1");
}

#[test]
fn a_server_that_was_asked_for_nothing_says_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.start.lines().count(), 1, "{}", server.start);
    let all = status("/proc/self/status", "Cpus_allowed_list");
    assert!(threads(server.pid()).values().flatten().all(|cpus| *cpus == all));
}

#[test]
fn what_is_not_there_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for (words, code, told) in [
        (["--node-id", "1000"], 3, "node 1000 does not exist"),
        (["--ingest-cpus", "4000"], 3, "4000"),
        (["--query-cpus", "0-"], 2, "expected numbers of CPUs"),
        (["--pages", "3m"], 2, "is no page size"),
    ] {
        let mut command = Command::new(PROGRAM);
        let output =
            command.args(["serve", "--listen", "127.0.0.1:0"]).args(words).arg("--data").arg(&data).output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(told), "{words:?}: {stderr}");
    }
    assert!(!data.exists());
}
