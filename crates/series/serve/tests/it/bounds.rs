//! Bounds of time, of memory and of numbers; and that nothing goes on for nobody.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::server::{ENDLESS, Server, in_address};

const RUNNING: &str = "planish_series_queries_running";

#[test]
fn a_query_that_takes_too_long_is_told_so_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--query-time", "20"]);
    let began = Instant::now();
    let reply = server.post("/?max_execution_time=0.3", ENDLESS);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!((reply.status, reply.header("x-clickhouse-exception-code")), (408, Some("159")));
    assert!(reply.text().contains("longer than its 0.300 s"), "{}", reply.text());
    server.wait_for(RUNNING, 0.0);
    // What a client asks for is no more than what the server gives.
    let reply =
        Server::start_with(folder.path(), &["--query-time", "0.3"]).post("/?max_execution_time=0", ENDLESS);
    assert_eq!(reply.status, 408);
}

#[test]
fn a_query_ends_when_its_client_goes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    // Before a byte of the answer, and in the middle of one that is long.
    let long = "SELECT value FROM generate_series(1, 1000000000)";
    for (sql, reads) in [(ENDLESS, 0), (long, 100_000)] {
        let mut stream = server.connect();
        let request = format!("GET /?query={} HTTP/1.1\r\nHost: localhost\r\n\r\n", in_address(sql));
        stream.write_all(request.as_bytes()).unwrap();
        stream.read_exact(&mut vec![0; reads]).unwrap();
        server.wait_for(RUNNING, 1.0);
        drop(stream);
        server.wait_for(RUNNING, 0.0);
    }
    server.wait_for("planish_series_queries_cut_total", 2.0);
}

#[test]
fn a_query_that_needs_too_much_memory_ends_and_others_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--query-memory", "16"]);
    let distinct = |count| {
        format!(
            "SELECT count(*) FROM (SELECT DISTINCT (value * 7919) % 10000019 FROM generate_series(1, {count}))"
        )
    };
    let reply = server.post("/", &distinct(3_000_000));
    let code = |reply: &crate::server::Reply| reply.header("x-clickhouse-exception-code").map(str::to_owned);
    assert_eq!((reply.status, code(&reply).as_deref()), (500, Some("241")), "{}", reply.text());
    assert_eq!(server.ask(&distinct(20_000)), "20000");
    let reply = server.post("/?max_memory_usage=100000", &distinct(20_000));
    assert_eq!(code(&reply).as_deref(), Some("241"), "{}", reply.text());
    server.wait_for(RUNNING, 0.0);
}

#[test]
fn who_finds_no_place_is_told_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--queries", "1", "--waiting", "1"]);
    let request = format!("GET /?query={} HTTP/1.1\r\nHost: localhost\r\n\r\n", in_address(ENDLESS));
    let mut first = server.connect();
    first.write_all(request.as_bytes()).unwrap();
    server.wait_for(RUNNING, 1.0);
    // One that waits in vain, as long as it may.
    let late = server.post("/?max_execution_time=0.2", "SELECT 1");
    assert_eq!((late.status, late.header("retry-after")), (503, Some("1")));
    let mut second = server.connect();
    second.write_all(request.as_bytes()).unwrap();
    server.wait_for("planish_series_queries_waiting", 1.0);
    let third = server.post("/", "SELECT 1");
    assert_eq!((third.status, third.header("retry-after")), (503, Some("1")));
    assert_eq!(third.header("x-clickhouse-exception-code"), Some("202"));
    // A ping is no query.
    assert_eq!(server.get("/ping").ok(), "Ok.\n");
    drop((first, second));
    server.wait_for("planish_series_queries_waiting", 0.0);
    assert_eq!(server.ask("SELECT 1"), "1");
}

#[test]
fn what_was_done_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    server.post("/", "INSERT INTO trades FORMAT CSV\n1,a,1,1,1\n2,a,1,1,1\n").ok();
    server.ask("SELECT * FROM trades");
    server.post("/", "SELECT");
    for (name, wanted) in [
        ("planish_series_requests_total{kind=\"query\",status=\"200\"}", 1.0),
        ("planish_series_requests_total{kind=\"query\",status=\"400\"}", 1.0),
        ("planish_series_requests_total{kind=\"insert\",status=\"200\"}", 1.0),
        ("planish_series_inserted_rows_total", 2.0),
        ("planish_series_query_rows_total", 2.0),
        ("planish_series_query_duration_seconds_count", 2.0),
        ("planish_series_tables", 1.0),
    ] {
        assert_eq!(server.metric(name), wanted, "{name}");
    }
    assert!(server.metric("planish_series_table_memory_bytes") > 0.0);
}

/// Planner and optimizer call themselves once for each operator of a row of them.
#[test]
fn a_query_that_is_deep_is_answered_and_one_that_is_too_deep_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    let most = 1900;
    // Work of the optimizer grows by the square of a row: unoptimised, whole ones take a minute. A third of a row does:
    // frames of the stack are larger there.
    let costly = if cfg!(debug_assertions) { 600 } else { most };
    for (first, next, last, words, most) in [
        ("SELECT 1", " + 1", "", 1, costly),
        ("SELECT 1 WHERE 1 = 1", " OR size = 2", " FROM trades", 3, most),
        ("SELECT 1 + size", " - size", " FROM trades", 2, costly),
        ("SELECT 'a'", " || 'a'", "", 1, costly),
        ("SELECT size", "::BIGINT", " FROM trades", 2, most),
        ("SELECT size IS NULL", " IS NULL", " FROM trades", 2, most),
        ("SELECT 1", " UNION ALL SELECT 1", "", 3, costly),
        ("SELECT size", ", size", " FROM trades", 2, most),
    ] {
        let of = |words_max: usize| {
            let (head, where_from) = (first.split(" WHERE ").next().unwrap(), first.split(" WHERE ").nth(1));
            let chain = next.repeat(words_max / words);
            match where_from {
                Some(condition) => format!("{head}{last} WHERE {condition}{chain}"),
                None => format!("{first}{chain}{last}"),
            }
        };
        // However it is answered, the server is there to be asked the next one.
        let reply = server.post("/?max_execution_time=50", &of(most));
        assert!(matches!(reply.status, 200 | 400 | 408), "{next}: {} {}", reply.status, reply.text());
        let reply = server.post("/", &of(20_000));
        assert_eq!(reply.status, 413, "{next}: {}", reply.text());
    }
    let deep = format!("SELECT {}1{}", "(".repeat(900), ")".repeat(900));
    assert_eq!(server.post("/", &deep).status, 400);
    let list: Vec<String> = (0..50_000).map(|value| value.to_string()).collect();
    assert_eq!(server.ask(&format!("SELECT count(*) FROM trades WHERE size IN ({})", list.join(", "))), "0");
}
