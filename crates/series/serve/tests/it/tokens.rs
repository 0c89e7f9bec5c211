//! Who is let in, and who is not.

use std::path::Path;
use std::process::{Command, Output};

use crate::server::{PROGRAM, Server, TRADES};

fn run(words: &[&str], path: &Path) -> Output {
    Command::new(PROGRAM).args(words).arg(path).output().unwrap()
}

fn token(name: &str, role: &str, file: &Path) -> String {
    let output = run(&["token", name, "--role", role, "--into"], file);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn a_token_is_asked_for_and_a_reader_only_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let (reader, writer) = (token("ann", "read", &file), token("bob", "write", &file));
    let data = folder.path().join("data");
    let server = Server::start_with(&data, &["--tokens", file.to_str().unwrap()]);
    let send = |token: &str, path: &str, body: &str| {
        let header = format!("Authorization: Bearer {token}");
        server.send("POST", path, &[&header], body.as_bytes())
    };
    assert_eq!(send(&writer, "/", TRADES).status, 200);
    let (insert, line) =
        ("INSERT INTO trades FORMAT CSV\n1,a,1,1,1\n", "trades,sym=a price=1,size=1i,fee=1 1");
    for (path, body, of_writer, of_reader) in [
        ("/", "SELECT 1", 200, 200),
        ("/", insert, 200, 403),
        ("/write", line, 204, 403),
        ("/", "CREATE TABLE IF NOT EXISTS trades (ts TIMESTAMP)", 200, 403),
    ] {
        assert_eq!(send(&writer, path, body).status, of_writer, "{body}");
        assert_eq!(send(&reader, path, body).status, of_reader, "{body}");
        assert_eq!(send("guess", path, body).status, 401, "{body}");
        let nobody = server.post(path, body);
        assert_eq!(nobody.status, 401, "{body}");
        assert!(nobody.header("www-authenticate").is_some());
    }
    assert_eq!(server.get("/metrics").status, 401);
    assert_eq!(server.get("/ping").status, 200);
    let key = format!("X-ClickHouse-Key: {reader}");
    assert_eq!(server.send("POST", "/", &[&key], b"SELECT count(*) FROM trades").ok(), "2\n");
}

#[test]
fn other_addresses_than_loopback_want_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let refused = run(&["serve", "--listen", "0.0.0.0:0", "--data"], folder.path());
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("0.0.0.0:0 is not loopback"));
    let missing = folder.path().join("none");
    let words = ["serve", "--listen", "0.0.0.0:0", "--tokens", missing.to_str().unwrap(), "--data"];
    assert_eq!(run(&words, folder.path()).status.code(), Some(3));
    std::fs::write(&missing, "# nobody yet\n").unwrap();
    assert_eq!(run(&words, folder.path()).status.code(), Some(3));
}
