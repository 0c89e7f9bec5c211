//! A client library of ClickHouse as a real program uses it.

use std::process::Command;

use crate::server::Server;

/// The library, by its name in the registry of npm.
const LIBRARY: &str = "@clickhouse/client@1";

#[test]
fn the_client_of_node_asks_and_inserts_as_it_does_with_clickhouse() {
    let test = "clients::the_client_of_node_asks_and_inserts_as_it_does_with_clickhouse";
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("clients.mjs");
    std::fs::write(&script, include_str!("clients.mjs")).unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", LIBRARY]).current_dir(folder.path());
    if !npm.output().is_ok_and(|output| output.status.success()) {
        return planish_skip::skip(test, format!("npm brings no {LIBRARY}"));
    }
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let url = format!("http://127.0.0.1:{}", server.port);
    let output = Command::new("node").arg(&script).arg(url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    let wanted = [
        "ping true",
        "create undefined",
        r#"insert "2""#,
        r#"rows [{"sym":"it's","price":1.5},{"sym":"b","price":2.5}]"#,
        r#"json [{"size":1},{"size":2}]"#,
        r#"compact [["sym","size"],["String","Int64"],["it's",1],["b",2]]"#,
        r#"values [{"n":1}]"#,
        "stream 5000050000",
        "late failed 159 TIMEOUT_EXCEEDED",
        "column failed 47 UNKNOWN_IDENTIFIER",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), wanted);
}
