//! What was answered is there after a kill, and an end that was asked for leaves nothing half done.

use std::io::Write;
use std::time::Duration;

use crate::server::{Server, in_address, read_reply};

#[test]
fn a_row_is_there_after_a_kill_right_after_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::with_trades(folder.path(), &[]);
    for round in 1..=4 {
        let row = format!("{round},alpha,1,{round},0.5\n");
        let reply = match round % 2 {
            0 => server.post("/", &format!("INSERT INTO trades FORMAT CSV\n{row}")),
            _ => server
                .post("/write?precision=ms", &format!("trades,sym=a price=1,size={round}i,fee=0.5 {round}")),
        };
        assert!(matches!(reply.status, 200 | 204), "{}", reply.text());
        server.kill();
        server = Server::start(folder.path());
        let sizes = "SELECT count(*), sum(size) FROM trades";
        assert_eq!(server.ask(sizes), format!("{round}\t{}", round * (round + 1) / 2));
    }
    // So is a table without rows.
    server.post("/", "CREATE TABLE other (ts TIMESTAMP)").ok();
    server.kill();
    assert_eq!(Server::start(folder.path()).ask("SELECT count(*) FROM other"), "0");
}

#[test]
fn rows_of_many_writers_are_all_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    let answered = std::thread::scope(|scope| {
        let server = &server;
        let write = |writer: usize| {
            (0..20)
                .filter(|row| {
                    let line = format!("trades,sym=w{writer} price=1,size={row}i,fee=0 {row}");
                    server.post("/write", &line).status == 204
                })
                .count()
        };
        let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum::<usize>()
    });
    assert_eq!(answered, 160);
    server.kill();
    let server = Server::start(folder.path());
    assert_eq!(server.ask("SELECT count(*), count(DISTINCT sym) FROM trades"), "160\t8");
}

#[test]
fn a_signal_ends_it_when_what_is_at_work_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    // An input of which half is there when the signal comes.
    let mut stream = server.connect();
    let path = format!("/?query={}", in_address("INSERT INTO trades FORMAT CSV"));
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 28\r\n\r\n1,alpha,1,1,0\n");
    stream.write_all(head.as_bytes()).unwrap();
    server.wait_for("planish_series_received_bytes_total", 14.0);
    server.ask_to_end();
    while std::net::TcpStream::connect(("127.0.0.1", server.port)).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    stream.write_all(b"2,alpha,1,1,0\n").unwrap();
    let reply = read_reply(&mut stream);
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    let (status, told) = server.terminate();
    assert_eq!((status.code(), told.as_str()), (Some(0), ""));
    let server = Server::start(folder.path());
    assert_eq!(server.ask("SELECT count(*) FROM trades"), "2");
}

#[test]
fn what_does_not_end_in_its_time_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--grace", "0.2"]);
    let mut stream = server.connect();
    let request =
        format!("GET /?query={} HTTP/1.1\r\nHost: localhost\r\n\r\n", in_address(crate::server::ENDLESS));
    stream.write_all(request.as_bytes()).unwrap();
    server.wait_for("planish_series_queries_running", 1.0);
    let (status, told) = server.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(told.contains("requests that were at work were cut off"), "{told}");
}

#[test]
fn one_process_has_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Server::with_trades(folder.path(), &[]);
    let other = std::process::Command::new(crate::server::PROGRAM)
        .args(["query", "SELECT 1", "--data"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&other.stderr).contains("in use: by a server? ask it over HTTP"));
}
