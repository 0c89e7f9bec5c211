//! Line protocol over bare TCP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::{PROGRAM, Server};

const COUNT: &str = "SELECT count(*) FROM trades";

fn start(data: &Path) -> Server {
    Server::with_trades(data, &["--line-protocol", "127.0.0.1:0"])
}

fn lines(rows: std::ops::Range<usize>) -> String {
    rows.map(|row| format!("trades,sym=a price=1,size={row}i,fee=0 {}\n", row * 1_000_000)).collect()
}

/// Ends a client's side; the last word of the server.
fn last_word(mut stream: TcpStream) -> String {
    stream.shutdown(Shutdown::Write).unwrap();
    let mut word = String::new();
    stream.read_to_string(&mut word).unwrap();
    word
}

/// Sends some bytes as a whole; the last word.
fn send(server: &Server, bytes: &str) -> String {
    let mut stream = server.connect_lines();
    stream.write_all(bytes.as_bytes()).unwrap();
    last_word(stream)
}

#[track_caller]
fn wait_for_rows(server: &Server, wanted: &str) {
    let began = Instant::now();
    while server.ask(COUNT) != wanted {
        assert!(began.elapsed() < Duration::from_secs(30), "{} rows", server.ask(COUNT));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lines_in_pieces_of_any_size_are_taken_in_and_the_last_word_says_how_many() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    std::thread::scope(|scope| {
        for (client, piece_bytes) in [37, 1000, 1 << 20].into_iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                let text = lines(client * 5000..client * 5000 + 5000);
                let mut stream = server.connect_lines();
                text.as_bytes().chunks(piece_bytes).for_each(|piece| stream.write_all(piece).unwrap());
                assert_eq!(last_word(stream), "Ok. 5000 rows\n");
            });
        }
    });
    assert_eq!(server.ask("SELECT count(*), count(DISTINCT size) FROM trades"), "15000\t15000");
    assert_eq!(server.metric("planish_series_inserted_rows_total"), 15_000.0);
    server.wait_for("planish_series_line_connections", 0.0);
    assert_eq!(server.metric("planish_series_line_failures_total"), 0.0);
    assert_eq!(send(&server, ""), "Ok. 0 rows\n");
    // A line without a time has that at which it came.
    assert_eq!(send(&server, "trades,sym=now price=1,size=0i,fee=0\n"), "Ok. 1 rows\n");
    let late = "SELECT count(*) FROM trades WHERE sym = 'now' AND ts > now() - INTERVAL '1 hour'";
    assert_eq!(server.ask(late), "1");
}

#[test]
fn rows_are_there_while_the_connection_stays_and_so_are_tables_that_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut stream = server.connect_lines();
    stream.write_all(lines(0..3).as_bytes()).unwrap();
    wait_for_rows(&server, "3");
    server.wait_for("planish_series_inserted_rows_total", 3.0);
    assert_eq!(server.metric("planish_series_line_connections"), 1.0);
    // Before and behind the one that is there, by name.
    for name in ["a", "z"] {
        server.post("/", &format!("CREATE TABLE {name} (time TIMESTAMP(9), x DOUBLE)")).ok();
    }
    let text = format!("z x=1 1\n{}a x=2 2\nz x=3 3\n", lines(3..5));
    stream.write_all(text.as_bytes()).unwrap();
    wait_for_rows(&server, "5");
    assert_eq!(last_word(stream), "Ok. 8 rows\n");
    assert_eq!(server.ask("SELECT (SELECT count(*) FROM a), (SELECT sum(x) FROM z)"), "1\t4");
}

#[test]
fn the_first_fault_ends_a_connection_and_is_told_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let other = server.connect_lines();
    for (bad, told) in [
        (
            "trades,sym=a price=x,size=1i,fee=0 1\n",
            "Code: 117. DB::Exception: line 3, column 20: \"x\" is no float",
        ),
        ("nowhere,sym=a price=1 1\n", "Code: 60. DB::Exception: line 3, column 1: no table nowhere"),
        (
            "trades,sym=a price=1,size=1i 1\n",
            "Code: 117. DB::Exception: line 3, column 1: column fee has no value",
        ),
    ] {
        let before: u64 = server.ask(COUNT).parse().unwrap();
        // More behind it than a socket holds.
        let text = format!("{}{bad}{}", lines(0..2), lines(2..200_000));
        let mut stream = server.connect_lines();
        let mut behind = stream.try_clone().unwrap();
        // Nobody reads it to its end.
        let sender = std::thread::spawn(move || behind.write_all(text.as_bytes()).is_ok());
        let mut word = Vec::new();
        // The kernel may break a connection that was not read to its end.
        let _ = stream.read_to_end(&mut word);
        let word = String::from_utf8(word).unwrap();
        assert!(word.starts_with(told) && word.contains("; 2 rows were taken in ("), "{word}");
        drop(stream);
        sender.join().unwrap();
        assert_eq!(server.ask(COUNT), (before + 2).to_string());
    }
    server.wait_for("planish_series_line_failures_total", 3.0);
    assert_eq!(last_word(other), "Ok. 0 rows\n");
    let (_, told) = server.terminate();
    assert_eq!(told.lines().count(), 3, "{told}");
    for line in told.lines() {
        assert!(line.starts_with("planish-series: lines of 127.0.0.1:"), "{told}");
        assert!(line.contains(" end: line 3, column ") && line.ends_with("2 rows were taken in"), "{told}");
    }
}

#[test]
fn a_line_without_its_end_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let text = lines(0..3);
    // Cut in the last number: a time it would be all the same.
    let word = send(&server, &text[..text.len() - 2]);
    assert!(
        word.contains("the last line has no end, and its") && word.ends_with("(CANNOT_READ_FROM_ISTREAM)\n")
    );
    assert_eq!(server.ask(COUNT), "2");
    // One who goes without a word.
    let mut stream = server.connect_lines();
    stream.write_all(&text.as_bytes()[..text.len() - 2]).unwrap();
    drop(stream);
    wait_for_rows(&server, "4");
    server.wait_for("planish_series_line_failures_total", 2.0);
    assert_eq!(server.ask("SELECT max(size) FROM trades"), "1");
}

#[test]
fn what_the_last_word_says_is_there_after_a_kill_and_of_a_stream_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path());
    let mut rows = 0;
    for round in 0..3 {
        assert_eq!(send(&server, &lines(0..100)), "Ok. 100 rows\n");
        rows += 100;
        let mut stream = server.connect_lines();
        let sender = std::thread::spawn(move || {
            for row in 0..1000 {
                let text = lines(row * 100..row * 100 + 100).replace("sym=a", &format!("sym=s{round}"));
                if stream.write_all(text.as_bytes()).is_err() {
                    break;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(20 + 15 * round));
        server.kill();
        sender.join().unwrap();
        server = Server::start_with(folder.path(), &["--line-protocol", "127.0.0.1:0"]);
        assert_eq!(server.ask("SELECT count(*) FROM trades WHERE sym = 'a'"), rows.to_string());
        let sql = format!("SELECT count(*) - coalesce(max(size) + 1, 0) FROM trades WHERE sym = 's{round}'");
        assert_eq!(server.ask(&sql), "0", "rows are missing in the middle");
    }
}

#[test]
fn a_signal_ends_connections_when_what_was_read_is_in_the_logs() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut stream = server.connect_lines();
    stream.write_all(lines(0..1000).as_bytes()).unwrap();
    server.wait_for("planish_series_received_bytes_total", lines(0..1000).len() as f64);
    let (status, told) = server.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(
        told.contains("the server ends; what it had read is in the logs") && told.lines().count() == 1,
        "{told}"
    );
    let mut word = String::new();
    stream.read_to_string(&mut word).unwrap();
    assert!(word.starts_with("Code: 23. DB::Exception: the server ends"), "{word}");
    assert_eq!(Server::start(folder.path()).ask(COUNT), "1000");
}

#[test]
fn a_page_of_a_browser_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let body = lines(0..10);
    for head in [
        "POST / HTTP/1.1",
        "POST /,sym=a HTTP/1.1",
        "GET /?price=1 HTTP/1.1",
        "trades price=1,size=1i HTTP/1.1",
    ] {
        let word = send(&server, &format!("{head}\r\nHost: localhost\r\n\r\n{body}"));
        assert!(word.contains(" line 1, column ") && word.contains("; 0 rows were taken in"), "{word}");
    }
    assert_eq!(server.ask(COUNT), "0");
}

#[test]
fn where_tokens_are_asked_for_the_first_line_is_that_of_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let [reader, writer] = ["read", "write"].map(|role| {
        let mut command = Command::new(PROGRAM);
        let output = command.args(["token", role, "--role", role, "--into"]).arg(&file).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    });
    let data = folder.path().join("data");
    let options = ["--tokens", file.to_str().unwrap(), "--line-protocol", "127.0.0.1:0"];
    let server = Server::start_with(&data, &options);
    let asked = |sql: &str| {
        let header = format!("Authorization: Bearer {writer}");
        server.send("POST", "/", &[&header], sql.as_bytes()).ok()
    };
    asked(crate::server::TRADES);
    let rows = lines(0..2);
    for (first, word) in [
        (format!("{writer}\n"), "Ok. 2 rows\n"),
        (format!("{writer}\r\n"), "Ok. 2 rows\n"),
        (format!("{reader}\n"), "Code: 164. DB::Exception: this token may ask, and not write (READONLY)\n"),
        (
            "guess\n".to_owned(),
            "Code: 516. DB::Exception: the first line is no token that is known (AUTHENTICATION_FAILED)\n",
        ),
        (
            String::new(),
            "Code: 516. DB::Exception: the first line is no token that is known (AUTHENTICATION_FAILED)\n",
        ),
        (
            "x".repeat(10_000),
            "Code: 516. DB::Exception: the first line is no token (AUTHENTICATION_FAILED)\n",
        ),
    ] {
        assert_eq!(send(&server, &format!("{first}{rows}")), word);
    }
    assert_eq!(
        send(&server, &writer),
        "Code: 23. DB::Exception: the connection ended before its token came (CANNOT_READ_FROM_ISTREAM)\n"
    );
    assert_eq!(asked(COUNT), "4\n");
}

#[test]
fn lines_of_other_addresses_want_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--line-protocol", "0.0.0.0:0", "--data"]);
    let refused = command.arg(folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("0.0.0.0:0 is not loopback"));
}
