//! Materialised views of a server: made and dropped, there again after a kill, told of.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::{PROGRAM, Server, TRADES, in_address};

const QUERY: &str = "SELECT time_bucket(INTERVAL '1 second', ts) AS bar, sym, first_value(price ORDER BY ts) AS o, \
                     max(price) AS h, min(price) AS l, last_value(price ORDER BY ts) AS c, sum(size) AS v, \
                     vwap(price, size) AS w FROM trades GROUP BY bar, sym";
const BARS: &str = "SELECT * FROM bars ORDER BY bar, sym";

fn create() -> String {
    format!("CREATE MATERIALIZED VIEW bars AS {QUERY}")
}

/// Rows of some milliseconds.
fn rows(times: std::ops::Range<i64>) -> String {
    let row = |time: i64| {
        let (symbol, cents) = (["a", "b", "c"][time as usize % 3], 100 + time % 7);
        format!("{time},{symbol},{}.25,{},0\n", cents, time % 11)
    };
    format!("INSERT INTO trades FORMAT CSV\n{}", times.map(row).collect::<String>())
}

#[track_caller]
fn check(server: &Server) -> String {
    let bars = server.ask(BARS);
    assert_eq!(bars, server.ask(&format!("{QUERY} ORDER BY bar, sym")));
    bars
}

#[test]
fn a_view_is_kept_and_is_there_again_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::with_trades(folder.path(), &[]);
    server.post("/", &rows(0..2500)).ok();
    server.post("/", &create()).ok();
    for round in 0..4 {
        assert!(server.ask("SHOW TABLES").contains("public\tbars\tVIEW"));
        let begin = 2500 + round * 700;
        server.post("/", &rows(begin..begin + 700)).ok();
        assert!(!check(&server).is_empty());
        // A late row.
        server.post("/", &format!("INSERT INTO trades FORMAT CSV\n{},a,9999,1,0\n", 1500 + round)).ok();
        assert!(check(&server).contains("\t9999\t"));
        let plan = server.ask(&format!("EXPLAIN {BARS}"));
        assert!(plan.contains("KeptBarsExec: view=bars, of=trades, width=1000"), "{plan}");
        assert_eq!(server.metric("planish_series_views"), 1.0);
        let bars = server.metric("planish_series_view_bars");
        assert_eq!(bars.to_string(), server.ask("SELECT count(*) FROM bars"));
        assert!(server.metric("planish_series_view_memory_bytes") > bars * 50.0);
        server.kill();
        // What a kill amid a change of the definitions leaves.
        std::fs::write(folder.path().join("views.new"), "planish-views 1 ").unwrap();
        server = Server::start(folder.path());
    }
    // Nobody asked, and the bars are made.
    let began = Instant::now();
    while server.metric("planish_series_view_bars") == 0.0 {
        assert!(began.elapsed() < Duration::from_secs(30), "nobody keeps the view");
        std::thread::sleep(Duration::from_millis(10));
    }
    let read = server.metric("planish_series_view_rows_read");
    assert_eq!(read, 5304.0);
    check(&server);
    assert_eq!(server.metric("planish_series_view_rows_read"), read);
    server.post("/", "DROP MATERIALIZED VIEW bars").ok();
    assert_eq!(server.post("/", BARS).status, 404);
    assert_eq!(server.metric("planish_series_view_memory_bytes"), 0.0);
    server.kill();
    let server = Server::start(folder.path());
    assert_eq!(server.metric("planish_series_views"), 0.0);
    server.post("/", &create()).ok();
    check(&server);
}

#[test]
fn what_is_no_view_is_refused_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    server.post("/", &create()).ok();
    server.post("/", &create().replace("VIEW bars", "VIEW IF NOT EXISTS bars")).ok();
    server.post("/", "DROP MATERIALIZED VIEW IF EXISTS other").ok();
    let named = |name: &str| create().replace("VIEW bars", &format!("VIEW {name}"));
    for (sql, status, told) in [
        (create(), 409, "there is a view bars already"),
        (named("trades"), 409, "there is a table trades already"),
        (named("\"../x\""), 400, "no name of a table"),
        (create().replace("FROM trades", "FROM bars"), 404, "no table bars to make a view of"),
        (
            format!("{} HAVING max(price) > 1", named("other")),
            501,
            "HAVING (line 1, column 275) cannot be kept by a materialized view; bars of all groups are kept",
        ),
        (named("other").replace("SELECT", "SELEC"), 400, "SYNTAX_ERROR"),
        (format!("{} WHERE {}", named("other"), "1 + ".repeat(2000)), 413, "2000 words"),
        ("CREATE TABLE bars (ts TIMESTAMP)".to_owned(), 409, "bars is a view already"),
        ("DROP MATERIALIZED VIEW other".to_owned(), 404, "no view other"),
        ("DROP MATERIALIZED VIEW trades".to_owned(), 404, "no view trades"),
        ("DROP TABLE trades".to_owned(), 501, "DROP is not for queries"),
        ("INSERT INTO bars FORMAT CSV\n1,a\n".to_owned(), 400, "bars is a view: rows go to its table"),
    ] {
        let reply = server.post("/", &sql);
        assert!(
            reply.status == status && reply.text().contains(told),
            "{sql}: {} {}",
            reply.status,
            reply.text()
        );
    }
    for sql in [named("other"), "DROP MATERIALIZED VIEW bars".to_owned()] {
        let reply = server.get(&format!("/?query={}", in_address(&sql)));
        assert!(reply.status == 403 && reply.text().contains("a GET changes nothing"), "{}", reply.text());
    }
    // One as deep as may be ends nobody.
    let deep = format!("SELECT {}max(price) AS h,", "1 + ".repeat(900));
    let reply = server.post("/", &named("deep").replace("SELECT", &deep));
    assert!(matches!(reply.status, 200 | 400 | 501), "{}", reply.text());
    assert_eq!(server.get("/ping").ok(), "Ok.\n");
    check(&server);
}

fn run(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(PROGRAM).args(words).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_shell_makes_asks_and_drops_views_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    server.post("/", &rows(0..3000)).ok();
    let wanted = server.ask(&format!("{QUERY} ORDER BY bar, sym"));
    server.kill();
    let data = folder.path().to_str().unwrap();
    let query = |sql: &str| run(&["query", sql, "--data", data]);
    assert_eq!(query(&create()), (0, String::new(), String::new()));
    assert_eq!(query(&format!("{BARS} FORMAT TSV")), (0, format!("{wanted}\n"), String::new()));
    let (code, _, told) = query(&create());
    assert!(code == 3 && told.contains("there is a view bars already"), "{told}");
    let (code, _, told) = run(&["query", &create()]);
    assert!(code == 2 && told.contains("say --data DIR"), "{told}");
    assert_eq!(query("DROP MATERIALIZED VIEW bars").0, 0);
    assert_eq!(query(BARS).0, 4);
}

#[test]
fn definitions_that_are_damaged_are_named_and_those_without_a_table_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_trades(folder.path(), &[]);
    server.post("/", &create()).ok();
    server.post("/", "CREATE TABLE other (ts TIMESTAMP)").ok();
    server.kill();
    let data = folder.path().to_str().unwrap();
    let (list, table) = (folder.path().join("views.list"), folder.path().join("trades"));
    let whole = std::fs::read(&list).unwrap();
    std::fs::write(&list, &whole[..whole.len() - 5]).unwrap();
    let (code, _, told) = run(&["query", "SELECT 1", "--data", data]);
    assert!(code == 4 && told.contains("views.list is not as it was written; no table needs it"), "{told}");
    std::fs::write(&list, whole).unwrap();
    // Somebody took the table away.
    std::fs::rename(table, folder.path().join("away-trades")).unwrap();
    std::fs::remove_file(folder.path().join("away-trades/manifest")).unwrap();
    let server = Server::start(folder.path());
    assert!(server.start.contains("the view bars is left out: no table trades"), "{}", server.start);
    assert_eq!(server.post("/", BARS).status, 404);
    server.post("/", "DROP MATERIALIZED VIEW bars").ok();
    server.kill();
    assert!(!Server::start(folder.path()).start.contains("left out"));
}

/// Waits until an instance has views as wanted.
#[track_caller]
fn wait_for_views(server: &Server, count: f64) {
    server.wait_for("planish_series_views", count);
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn an_instance_that_follows_has_the_views_too() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Server::start_with(folder.path(), &["--role", "ingest"]);
    writer.post("/", TRADES).ok();
    writer.post("/", &create()).ok();
    writer.post("/", &rows(0..2000)).ok();
    let before = files(folder.path());
    let reader = Server::start_with(folder.path(), &["--role", "query"]);
    check(&reader);
    // They are answered by their query there.
    assert!(reader.ask(&format!("EXPLAIN {BARS}")).contains("BarsExec: kernel=keyed_bars"));
    writer.post("/", &rows(2000..2500)).ok();
    check(&reader);
    writer.post("/", &create().replace("VIEW bars", "VIEW later")).ok();
    wait_for_views(&reader, 2.0);
    assert_eq!(reader.ask("SELECT count(*) FROM later"), reader.ask("SELECT count(*) FROM bars"));
    let reply = reader.post("/", "DROP MATERIALIZED VIEW later");
    assert!(reply.status == 403 && reply.text().contains("--role query"), "{}", reply.text());
    writer.post("/", "DROP MATERIALIZED VIEW later").ok();
    wait_for_views(&reader, 1.0);
    assert_eq!(reader.post("/", "SELECT count(*) FROM later").status, 404);
    assert_eq!(files(folder.path()), before);
}
