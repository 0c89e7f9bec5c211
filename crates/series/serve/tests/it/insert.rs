//! Rows that come over HTTP: all formats, and faults that leave nothing behind.

use std::io::Write;
use std::net::Shutdown;

use crate::server::{Server, in_address};

const COUNT: &str = "SELECT count(*) FROM trades";

#[test]
fn rows_of_every_format_are_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    server.post("/", &crate::server::TRADES.replace("trades", "copy")).ok();
    let rows = "1000,alpha,1.5,10,0.25\n2000,\"b, \"\"c\"\"\",,-20,1\n";
    let reply = server.post("/", &format!("INSERT INTO trades FORMAT CSV\n{rows}"));
    assert_eq!(
        reply.header("x-clickhouse-summary"),
        Some("{\"left_out_rows\":\"0\",\"written_rows\":\"2\"}")
    );
    // Times of CSV that are numbers are nanoseconds.
    assert_eq!(server.ask("SELECT ts FROM trades LIMIT 1"), "1970-01-01 00:00:00.000");
    let all = "SELECT * FROM trades ORDER BY size FORMAT";
    for (inserted, asked) in
        [("CSVWithNames", "CSVWithNames"), ("JSONEachRow", "JSONEachRow"), ("ArrowStream", "ArrowStream")]
    {
        let rows = server.post("/", &format!("{all} {asked}")).body;
        let rows = String::from_utf8_lossy(&rows).replace("\\N", "").into_bytes();
        let rows =
            if asked == "ArrowStream" { server.post("/", &format!("{all} {asked}")).body } else { rows };
        let mut body = format!("INSERT INTO copy FORMAT {inserted}\n").into_bytes();
        body.extend_from_slice(&rows);
        let reply = server.send("POST", "/", &[], &body);
        assert_eq!(reply.status, 200, "{inserted}: {}", reply.text());
    }
    let want = server.ask("SELECT ts, sym, price, size, fee, 3 FROM trades ORDER BY size");
    let columns = "ts, sym, price, size, fee";
    let copies =
        server.ask(&format!("SELECT {columns}, count(*) FROM copy GROUP BY {columns} ORDER BY size"));
    assert_eq!(copies, want);
    // By the address, with columns in another order, one of them left to its null.
    let address = format!("/?query={}", in_address("INSERT INTO trades (fee, size, sym, ts) FORMAT CSV"));
    server.post(&address, "0.5,7,gamma,1970-01-01 00:00:03\n").ok();
    assert_eq!(
        server.ask("SELECT * FROM trades WHERE sym = 'gamma'"),
        "1970-01-01 00:00:03.000\tgamma\t\\N\t7\t0.5"
    );
}

#[test]
fn an_input_with_a_fault_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    let good: String = (0..5000).map(|row| format!("{row},alpha,1,1,0\n")).collect();
    let json: String = (0..5000)
        .map(|row| format!("{{\"ts\":{row},\"sym\":\"a\",\"price\":1,\"size\":1,\"fee\":0}}\n"))
        .collect();
    for (head, rows, told) in [
        ("CSV", format!("{good}x,alpha,1,1,0\n"), "line 5001, column 1: \"x\" is no time"),
        ("CSV", format!("{good}1,alpha,1,1\n"), "4 fields for 5 columns"),
        ("CSV", format!("{good}1,alpha,1,1.5,0\n"), "\"1.5\" is no int, of which column size is"),
        ("CSV", format!("{good}1,alpha,1,1,0.123\n"), "\"0.123\" is no decimal"),
        ("CSV", format!("{good}1,,1,1,0\n"), "column sym has no value"),
        ("CSVWithNames", format!("ts,sym,price,size,cost\n{good}"), "no column cost"),
        ("JSONEachRow", format!("{json}{{\"ts\":1,"), "line 5001"),
        ("JSONEachRow", format!("{json}{{\"ts\":1,\"who\":2}}"), "no column who"),
        ("ArrowStream", good.clone(), "line 1"),
    ] {
        let reply = server.post("/", &format!("INSERT INTO trades FORMAT {head}\n{rows}"));
        assert_eq!(reply.status, 400, "{head}: {}", reply.text());
        assert!(reply.text().contains(told), "{told}: {}", reply.text());
        assert_eq!(server.ask(COUNT), "0", "{head} {told}");
    }
    // By choice the others are taken in.
    let address = "/?faults=leave_out&query=INSERT%20INTO%20trades%20FORMAT%20CSV";
    let reply = server.post(address, &format!("{good}x,alpha,1,1,0\n"));
    assert_eq!(
        reply.header("x-clickhouse-summary"),
        Some("{\"left_out_rows\":\"1\",\"written_rows\":\"5000\"}")
    );
    assert_eq!(server.ask(COUNT), "5000");
}

#[test]
fn a_body_that_is_cut_off_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    let rows = "1,alpha,1,1,0\n".repeat(1000);
    for head in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
        for is_half_closed in [true, false] {
            let mut stream = server.connect();
            let path = "/?query=INSERT%20INTO%20trades%20FORMAT%20CSV";
            let request = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            if head.starts_with("Transfer") {
                stream.write_all(format!("{:x}\r\n", rows.len()).as_bytes()).unwrap();
            }
            stream.write_all(rows.as_bytes()).unwrap();
            if is_half_closed {
                stream.shutdown(Shutdown::Write).unwrap();
                let mut rest = Vec::new();
                let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
                assert!(!rest.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&rest));
            }
            drop(stream);
        }
    }
    // All four inputs were begun, and none of them is at work any more.
    server.wait_for("planish_series_received_bytes_total", 4.0 * rows.len() as f64);
    server.post("/", "INSERT INTO trades FORMAT CSV\n7,alpha,1,1,0\n").ok();
    assert_eq!(server.ask(COUNT), "1");
}

#[test]
fn lines_go_to_the_tables_that_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    server.post("/", "CREATE TABLE cpu (time TIMESTAMP(9), host SYMBOL, load DOUBLE)").ok();
    let lines = "trades,sym=a price=1.5,size=2i,fee=0.25 3\ncpu,host=x load=0.5 4\ncpu,host=y load=1 5\n";
    for path in ["/write?db=any&precision=s", "/api/v2/write?org=o&bucket=b&precision=s"] {
        let reply = server.post(path, lines);
        assert_eq!((reply.status, reply.body.len(), reply.is_whole), (204, 0, true), "{}", reply.text());
    }
    assert_eq!(server.ask("SELECT * FROM trades LIMIT 1"), "1970-01-01 00:00:03.000\ta\t1.5\t2\t0.25");
    assert_eq!(server.ask("SELECT host, count(*) FROM cpu GROUP BY host ORDER BY host"), "x\t2\ny\t2");
    // A line without a time has that at which it came.
    assert_eq!(server.post("/write", "cpu,host=now load=1").status, 204);
    let late = "SELECT count(*) FROM cpu WHERE host = 'now' AND time > now() - INTERVAL '1 hour'";
    assert_eq!(server.ask(late), "1");
    let count = || server.ask("SELECT (SELECT count(*) FROM cpu) + (SELECT count(*) FROM trades)");
    assert_eq!(count(), "7");
    for (path, body, status, told) in [
        ("/write", "trades,sym=a price=1,size=2i,fee=0 1\ncpu,host=x load=zero 2\n", 400, "line 2"),
        ("/write", "cpu,host=x load=1 1\nnowhere,host=x load=1 2\n", 404, "no table nowhere"),
        ("/write", "cpu,host=x", 400, "line 1"),
        ("/write?precision=week", "cpu,host=x load=1 1\n", 400, "precision"),
    ] {
        let reply = server.post(path, body);
        assert_eq!(reply.status, status, "{}", reply.text());
        let json: serde_json::Value = serde_json::from_str(reply.text()).unwrap();
        assert!(json["error"].as_str().unwrap().contains(told), "{json}");
        assert_eq!(count(), "7");
    }
    let reply = server.post("/write?faults=leave_out", "cpu,host=x load=1 1\ncpu,host=x load=no 2\n");
    assert!(reply.status == 400 && reply.text().contains("1 rows were taken in, 1 were left out"));
    assert_eq!(count(), "8");
}

#[test]
fn a_packed_body_is_unpacked_and_half_of_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    let lines: String =
        (0..20_000).map(|row| format!("trades,sym=a price={row},size=1i,fee=0 {row}\n")).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(lines.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let gzip = ["Content-Encoding: gzip"];
    assert_eq!(server.send("POST", "/write", &gzip, &packed).status, 204);
    assert_eq!(server.ask(COUNT), "20000");
    for broken in [&packed[..packed.len() / 2], &packed[..packed.len() - 4], lines.as_bytes()] {
        assert_eq!(server.send("POST", "/write", &gzip, broken).status, 400);
    }
    assert_eq!(server.send("POST", "/write", &["Content-Encoding: br"], &packed).status, 501);
    assert_eq!(server.ask(COUNT), "20000");
}

#[test]
fn more_than_is_taken_in_at_once_is_refused_and_a_connection_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    let mut stream = server.connect();
    for (body, status) in [("1,alpha,1,1,0\n", "200"), ("x,alpha,1,1,0\n", "400"), ("2,alpha,1,1,0\n", "200")]
    {
        let path = "/?query=INSERT%20INTO%20trades%20FORMAT%20CSV";
        let length = body.len();
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut head).unwrap();
        assert_eq!(&head[9..], status.as_bytes());
        // The rest of the answer: up to the end of its head, and as many bytes as that says.
        let mut rest = Vec::new();
        while !rest.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
            rest.push(byte[0]);
        }
        let rest = String::from_utf8(rest).unwrap().to_lowercase();
        let length = rest.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
        std::io::Read::read_exact(&mut stream, &mut vec![0; length.parse().unwrap()]).unwrap();
    }
    drop(stream);
    assert_eq!(server.ask(COUNT), "2");
    let rows = "1,a,1,1,0\n".repeat((1 << 20) + 1);
    let reply = server.post("/?query=INSERT%20INTO%20trades%20FORMAT%20CSV", &rows);
    assert_eq!(reply.status, 413, "{}", reply.text());
    assert_eq!(server.ask(COUNT), "2");
}
