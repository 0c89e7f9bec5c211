//! Queries, their formats and their failures.

use std::io::Read;
use std::process::Command;

use crate::server::{Server, in_address};

const ROWS: &str = "INSERT INTO trades FORMAT CSV
2026-11-29 16:03:28.500,alpha,1.5,10,0.25
2026-11-29T16:03:29Z,\"it's \"\"b\"\"\",,20,-1
1970-01-01 00:00:00,tab\there,1e300,-3,0.1
";

fn with_rows(data: &std::path::Path) -> Server {
    let server = Server::with_trades(data, &[]);
    server.post("/", ROWS).ok();
    server
}

#[test]
fn answers_are_in_the_format_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_rows(folder.path());
    for format in ["TabSeparated", "TabSeparatedWithNames", "CSV", "CSVWithNames", "JSON", "JSONEachRow"] {
        let sql = "SELECT *, size / 4 AS quarter FROM trades ORDER BY ts";
        let reply = server.post("/", &format!("{sql} FORMAT {format}"));
        assert_eq!(reply.header("x-clickhouse-format"), Some(format));
        insta::assert_snapshot!(format!("answer_{}", format.to_lowercase()), reply.ok());
        // Wherever it was said.
        let address = format!("/?query={}", in_address(sql));
        let wanted = server.post("/", &format!("{sql} FORMAT {format}")).ok();
        assert_eq!(server.get(&format!("{address}&default_format={format}")).ok(), wanted);
        let header = format!("X-ClickHouse-Format: {format}");
        assert_eq!(server.send("GET", &address, &[&header], b"").ok(), wanted);
        let other = server.get(&format!("{address}%20FORMAT%20{format}&default_format=TSV"));
        assert_eq!(other.ok(), wanted);
        assert_eq!(server.post(&address, &format!(" FORMAT {format};")).ok(), wanted);
    }
    let types: Vec<_> =
        [("JSON", "application/json"), ("CSV", "text/csv"), ("TSV", "text/tab-separated-values")]
            .map(|(format, kind)| (server.post("/", &format!("SELECT 1 FORMAT {format}")), kind))
            .into_iter()
            .map(|(reply, kind)| reply.header("content-type").unwrap().starts_with(kind))
            .collect();
    assert_eq!(types, [true; 3]);
}

#[test]
fn curl_asks_as_it_asks_clickhouse() {
    let test = "ask::curl_asks_as_it_asks_clickhouse";
    let folder = tempfile::tempdir().unwrap();
    let server = with_rows(folder.path());
    let curl = |words: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail-with-body", "--max-time", "60"]).args(words);
        command.output()
    };
    let url = format!("http://localhost:{}/", server.port);
    let ping = format!("{url}ping");
    let Ok(pong) = curl(&[&ping]) else { return planish_skip::skip(test, "no curl") };
    assert_eq!(pong.stdout, b"Ok.\n");
    for words in [
        vec!["--data-binary", "SELECT sum(size) FROM trades", &url],
        vec!["--get", "--data-urlencode", "query=SELECT sum(size) FROM trades", &url],
    ] {
        let output = curl(&words).unwrap();
        assert_eq!((output.status.success(), output.stdout.as_slice()), (true, &b"27\n"[..]), "{words:?}");
    }
    let rows: String = (0..100_000).map(|row| format!("{row},beta,1,1,0\n")).collect();
    let file = folder.path().join("rows.csv");
    std::fs::write(&file, rows).unwrap();
    let insert = format!("{url}?query=INSERT%20INTO%20trades%20FORMAT%20CSV");
    let body = format!("@{}", file.display());
    // A large body: curl waits for `100 Continue`, and then sends chunks.
    for words in [
        vec!["--data-binary", &body, &insert],
        vec!["--header", "Transfer-Encoding: chunked", "--data-binary", &body, &insert],
    ] {
        let output = curl(&words).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(server.ask("SELECT count(*) FROM trades WHERE sym = 'beta'"), "200000");
    let failed = curl(&["--data-binary", "SELECT nothing FROM trades", &url]).unwrap();
    assert_eq!(failed.status.code(), Some(22));
    let told = String::from_utf8(failed.stdout).unwrap();
    assert!(
        told.starts_with("Code: 47. DB::Exception: ") && told.ends_with(" (UNKNOWN_IDENTIFIER)\n"),
        "{told}"
    );
}

#[test]
fn a_failure_has_its_status_its_number_and_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_rows(folder.path());
    for (sql, status, code) in [
        ("SELEC 1", 400, "62"),
        ("SELECT (1", 400, "62"),
        ("SELECT 'open", 400, "62"),
        ("SELECT 1; SELECT 2", 400, "62"),
        (" ", 400, "62"),
        ("SELECT * FROM nowhere", 404, "60"),
        ("SELECT nothing FROM trades", 404, "47"),
        ("SELECT nothing(1)", 404, "46"),
        ("SELECT 1 FORMAT Native", 404, "73"),
        ("SELECT 1 / 0", 400, "36"),
        ("SELECT CAST('x' AS BIGINT)", 400, "36"),
        ("DROP TABLE trades", 501, "48"),
        ("DELETE FROM trades", 501, "48"),
        ("CREATE TABLE trades (ts TIMESTAMP)", 409, "57"),
        ("CREATE TABLE other (ts TEXT)", 400, "62"),
        ("CREATE TABLE \"../x\" (ts TIMESTAMP)", 400, "36"),
        ("INSERT INTO trades VALUES (1)", 400, "62"),
        ("INSERT INTO nowhere FORMAT CSV\n1", 404, "60"),
        ("INSERT INTO trades FORMAT Native\n1", 404, "73"),
    ] {
        let reply = server.post("/", sql);
        let found = (reply.status, reply.header("x-clickhouse-exception-code"));
        assert_eq!(found, (status, Some(code)), "{sql}: {}", reply.text());
        assert!(reply.text().starts_with(&format!("Code: {code}. ")), "{}", reply.text());
        assert_eq!(reply.text().lines().count(), 1, "{}", reply.text());
    }
    let big = format!("SELECT '{}'", "x".repeat(2 << 20));
    assert_eq!(server.post("/", &big).status, 413);
    assert_eq!(server.ask("SELECT count(*) FROM trades"), "3");
}

#[test]
fn other_requests_are_told_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_rows(folder.path());
    assert_eq!(server.get("/ping").ok(), "Ok.\n");
    assert_eq!(server.get("/").ok(), "Ok.\n");
    let head = server.send("HEAD", "/ping", &[], b"");
    assert_eq!((head.status, head.header("content-length")), (200, Some("4")));
    assert_eq!(server.get("/elsewhere").status, 404);
    assert_eq!(server.send("PUT", "/", &[], b"").status, 405);
    assert_eq!(server.get("/write").status, 405);
    assert_eq!(server.get("/?query=SELECT%201&max_threads=2").status, 404);
    assert_eq!(server.get("/?query=SELECT%201&database=other").status, 404);
    // A GET changes nothing.
    for sql in ["CREATE TABLE other (ts TIMESTAMP)", "INSERT INTO trades FORMAT CSV 1,a,1,1,1"] {
        assert_eq!(server.get(&format!("/?query={}", in_address(sql))).status, 403, "{sql}");
    }
    assert_eq!(server.ask("SHOW TABLES").lines().filter(|line| line.contains("trades")).count(), 1);
    assert_eq!(server.ask("SELECT count(*) FROM trades"), "3");
    for name in ["evil.example", "evil.example:80"] {
        let mut stream = server.connect();
        let request = format!("GET /?query=SELECT%201 HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        assert_eq!(crate::server::read_reply(&mut stream).status, 403);
    }
    let page = server.send("POST", "/", &["Origin: http://evil.example"], b"SELECT 1");
    assert_eq!(page.status, 403);
}

#[test]
fn a_long_answer_comes_in_chunks_and_one_that_fails_on_the_way_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let long = server.post("/", "SELECT value, 'and some text' FROM generate_series(1, 200000)");
    assert_eq!((long.header("transfer-encoding"), long.is_whole), (Some("chunked"), true));
    let text = long.ok();
    assert_eq!(text.lines().count(), 200_000);
    assert_eq!(text.lines().last(), Some("200000\tand some text"));
    // Each thread has more than a megabyte in front of the fault: whichever comes first, the answer has begun by then.
    let text = "text".repeat(16);
    let sql = format!("SELECT 10 / (200000 - value), '{text}' FROM generate_series(1, 200000)");
    let cut = server.post("/", &sql);
    assert_eq!((cut.status, cut.is_whole), (200, false));
    assert!(cut.text().lines().count() < 200_000);
    // Early enough it is a failure like any other.
    let early = server.post("/", "SELECT 10 / (2000 - value), 'text' FROM generate_series(1, 2000)");
    assert_eq!((early.status, early.is_whole), (400, true));
    server.wait_for("planish_series_queries_cut_total", 2.0);
    server.wait_for("planish_series_queries_running", 0.0);
}

#[test]
fn an_answer_is_packed_for_who_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for count in [1, 400_000] {
        let sql = format!("SELECT value FROM generate_series(1, {count})");
        let plain = server.post("/", &sql).ok();
        let gzip = "Accept-Encoding: br;q=1, gzip";
        for (path, header, is_packed) in [
            ("/?enable_http_compression=1", gzip, true),
            ("/", gzip, false),
            ("/?enable_http_compression=1", "Accept-Encoding: identity", false),
            ("/?enable_http_compression=1", "Accept-Encoding: gzip;q=0", false),
        ] {
            let reply = server.send("POST", path, &[header], sql.as_bytes());
            assert_eq!(reply.header("content-encoding"), is_packed.then_some("gzip"), "{path} {header}");
            assert!(reply.is_whole && reply.status == 200);
            let mut text = String::new();
            match is_packed {
                true => {
                    flate2::read::GzDecoder::new(reply.body.as_slice()).read_to_string(&mut text).map(drop)
                }
                false => reply.body.as_slice().read_to_string(&mut text).map(drop),
            }
            .unwrap();
            assert!(text == plain, "{} bytes, expected {}", text.len(), plain.len());
        }
    }
}
