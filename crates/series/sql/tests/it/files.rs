//! Files of others: the answers are those of a table of the same rows.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use planish_sql::{Engine, Files};

use crate::fixture::*;

const DIVISION: Division = Division { span: 40, symbols: None, batch_rows: 1000 };

fn some_rows(from: i64, count: i64) -> Vec<Row> {
    let row = |time: i64| Row {
        time,
        symbol: (time.rem_euclid(3)) as usize,
        price: if time % 7 == 0 { f64::NAN } else { time as f64 / 4.0 },
        size: time % 11,
    };
    (from..from + count).map(row).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let whole = |of: fn(&Row) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) as ArrayRef;
    let symbols = StringArray::from_iter_values(rows.iter().map(|row| SYMBOLS[row.symbol]));
    let prices = rows.iter().map(|row| (!row.price.is_nan()).then_some(row.price));
    RecordBatch::try_from_iter_with_nullable([
        ("ts", whole(|row| row.time), false),
        ("sym", Arc::new(symbols) as ArrayRef, false),
        ("price", Arc::new(prices.collect::<Float64Array>()) as ArrayRef, true),
        ("size", whole(|row| row.size), false),
    ])
    .unwrap()
}

fn parquet(path: &Path, rows: &[Row], compression: Compression) {
    let batch = batch(rows);
    // Small groups of rows, so that some are left out by their zones.
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(50))
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn csv(path: &Path, rows: &[Row], delimiter: char, has_header: bool) {
    let mut text = String::new();
    if has_header {
        text.push_str(&["ts", "sym", "price", "size"].join(&delimiter.to_string()));
        text.push('\n');
    }
    for row in rows {
        let price = if row.price.is_nan() { String::new() } else { row.price.to_string() };
        let fields = [row.time.to_string(), SYMBOLS[row.symbol].to_owned(), price, row.size.to_string()];
        text.push_str(&fields.join(&delimiter.to_string()));
        text.push('\n');
    }
    std::fs::write(path, text).unwrap();
}

fn arrow_file(path: &Path, rows: &[Row]) {
    let batch = batch(rows);
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

fn arrow_stream(path: &Path, rows: &[Row]) {
    let batch = batch(rows);
    let mut writer = StreamWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

/// An engine that may read a folder, with a table `m` of some rows.
fn engine_of(folder: &Path, rows: &[Row]) -> Engine {
    let engine = engine(2, &[("m", memory(rows, DIVISION))]);
    engine.allow_files(Files::Under(folder.to_owned())).unwrap();
    engine
}

#[track_caller]
fn refused(engine: &Engine, sql: &str) -> String {
    match try_ask(engine, sql) {
        Ok(answer) => panic!("{sql}: {} rows", answer.rows()),
        Err(error) => chain(&error),
    }
}

/// Queries, with `{}` for where the rows come from.
const QUERIES: [&str; 9] = [
    "SELECT ts, sym, price, size FROM {}",
    "SELECT ts, price FROM {} WHERE ts BETWEEN 60 AND 130 AND price > 20",
    "SELECT count(*), sum(size), count(price) FROM {} x WHERE x.sym = 'beta'",
    "SELECT xbar(ts, 25) AS bar, first_value(price ORDER BY ts), max(price), sum(size) FROM {} GROUP BY bar",
    "SELECT sym, vwap(price, size) FROM {} GROUP BY sym",
    "SELECT ts, ema(price, 5) OVER (PARTITION BY sym ORDER BY ts) FROM {}",
    "SELECT m.ts, f.price FROM m ASOF JOIN {} f MATCH_CONDITION (m.ts > f.ts) ON m.sym = f.sym",
    "SELECT m.ts, wj_sum(f.size), wj_count(f.price) FROM m WINDOW JOIN {} f ON m.sym = f.sym \
     AND f.ts BETWEEN m.ts - 10 AND m.ts + 10",
    "SELECT ts FROM {} ORDER BY ts DESC LIMIT 3",
];

#[track_caller]
fn same_as_a_table(engine: &Engine, from: &str) {
    for query in QUERIES {
        let sql = query.replace("{}", from);
        assert_like(&sorted(ask(engine, &sql)), &sorted(ask(engine, &query.replace("{}", "m"))), &sql);
    }
}

#[test]
fn files_of_each_format_answer_as_a_table_of_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rows = some_rows(3, 200);
    csv(&at("a.csv"), &rows, ',', true);
    csv(&at("a.tsv"), &rows, '\t', true);
    csv(&at("semicolons.txt"), &rows, ';', true);
    arrow_file(&at("a.arrow"), &rows);
    arrow_stream(&at("a.arrows"), &rows);
    let engine = engine_of(folder.path(), &rows);
    let level = (GzipLevel::default(), BrotliLevel::default(), ZstdLevel::default());
    for (name, compression) in [
        ("plain", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(level.0)),
        ("brotli", Compression::BROTLI(level.1)),
        ("zstd", Compression::ZSTD(level.2)),
        ("lz4", Compression::LZ4_RAW),
    ] {
        parquet(&at(&format!("{name}.parquet")), &rows, compression);
        same_as_a_table(&engine, &format!("'{name}.parquet'"));
    }
    for from in [
        "read_parquet('zstd.parquet')",
        "'a.csv'",
        "\"a.tsv\"",
        "read_csv('a.csv')",
        "read_csv('semicolons.txt', delim = ';')",
        "READ_CSV_AUTO('semicolons.txt', sep => ';', header = true)",
        "'a.arrow'",
        "'a.arrows'",
        "read_arrow('a.arrow')",
    ] {
        same_as_a_table(&engine, from);
    }
    let plan = explain(&engine, "SELECT count(*) FROM 'plain.parquet' WHERE ts > 150 AND size > 3");
    assert!(plan.contains("DataSourceExec") && plan.contains("ts@0 > 150"), "{plan}");
}

#[test]
fn several_files_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("day 2")).unwrap();
    let rows = some_rows(0, 200);
    parquet(&folder.path().join("1.parquet"), &rows[..80], Compression::SNAPPY);
    parquet(&folder.path().join("day 2/2%.parquet"), &rows[80..], Compression::SNAPPY);
    let engine = engine_of(folder.path(), &rows);
    for from in [
        "'**/*.parquet'",
        "read_parquet('**/[12]*.parquet')",
        "read_parquet(['1.parquet', 'day 2/2%.parquet'])",
        "read_parquet('1.parquet', 'day 2/*')",
    ] {
        same_as_a_table(&engine, from);
    }
    assert_eq!(ask(&engine, "SELECT count(*) FROM 'day ?/*.parquet'"), [[Value::Int(120)]]);
}

#[test]
fn columns_without_names_have_numbers() {
    let folder = tempfile::tempdir().unwrap();
    csv(&folder.path().join("a.csv"), &some_rows(1, 3), ',', false);
    let engine = engine_of(folder.path(), &[]);
    let sql = "SELECT column_1, column_4 FROM read_csv('a.csv', header = false)";
    let row = |time| vec![Value::Int(time), Value::Int(time)];
    assert_eq!(ask(&engine, sql), [row(1), row(2), row(3)]);
}

#[test]
fn a_file_that_has_changed_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    let engine = engine_of(folder.path(), &[]);
    for count in [10, 300, 20] {
        parquet(&file, &some_rows(0, count), Compression::SNAPPY);
        for sql in ["SELECT count(ts) FROM 'a.parquet'", "SELECT count(*) FROM read_parquet('*.parquet')"] {
            assert_eq!(ask(&engine, sql), [[Value::Int(count)]]);
        }
        assert_eq!(ask(&engine, "SELECT max(ts) FROM 'a.parquet'"), [[Value::Int(count - 1)]]);
    }
    csv(&folder.path().join("b.csv"), &some_rows(0, 5), ',', true);
    assert_eq!(ask(&engine, "SELECT count(*) FROM 'b.csv'"), [[Value::Int(5)]]);
    std::fs::write(folder.path().join("b.csv"), "other\n1.5\n").unwrap();
    assert_eq!(ask(&engine, "SELECT * FROM 'b.csv'"), [[Value::Float(1.5)]]);
    assert_eq!(format!("{engine:?}"), "Engine { plans: 0, .. }");
}

#[test]
fn nothing_outside_of_the_folder_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("in");
    std::fs::create_dir(&inside).unwrap();
    parquet(&folder.path().join("out.parquet"), &some_rows(0, 3), Compression::SNAPPY);
    std::os::unix::fs::symlink(folder.path().join("out.parquet"), inside.join("link.parquet")).unwrap();
    let engine = engine_of(&inside, &[]);
    let absolute = folder.path().join("out.parquet");
    for path in ["../out.parquet", "../none.parquet", "link.parquet", "*.parquet", absolute.to_str().unwrap()]
    {
        for sql in [
            format!("SELECT * FROM '{path}'"),
            format!("SELECT * FROM read_parquet('{path}')"),
            format!("SELECT (SELECT count(*) FROM \"{path}\")"),
            format!("WITH x AS (SELECT * FROM read_csv(['{path}'])) SELECT * FROM x"),
            format!("EXPLAIN SELECT * FROM '{path}'"),
            // What a call becomes, written by hand.
            format!("SELECT * FROM \"\u{1f}read_parquet\u{1f}44 1 34 0\u{1f}{path}\""),
        ] {
            let told = refused(&engine, &sql);
            assert!(told.contains("leaves the folder"), "{sql}: {told}");
        }
    }
    for (from, told) in [
        ("'none.parquet'", "no such file"),
        ("'a.csv.gz'", "no format by this name"),
        ("nothing", "not found"),
        ("read_parquet()", "without a path"),
        ("'http://localhost/a.parquet'", "no such file"),
        ("'file:///etc/passwd.csv'", "no such file"),
    ] {
        let found = refused(&engine, &format!("SELECT * FROM {from}"));
        assert!(found.contains(told), "{from}: {found}");
    }
    assert!(matches!(
        engine.allow_files(Files::Under(folder.path().join("none"))),
        Err(planish_sql::SqlError::Files { .. })
    ));
}

#[test]
fn without_leave_no_file_is_read_and_with_it_all_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    parquet(&file, &some_rows(0, 3), Compression::SNAPPY);
    let engine = engine(1, &[]);
    let sql = format!("SELECT count(*) FROM '{}'", file.display());
    assert!(refused(&engine, &sql).contains("not read here"));
    engine.allow_files(Files::Any).unwrap();
    assert_eq!(ask(&engine, &sql), [[Value::Int(3)]]);
    let sql = format!("SELECT count(*) FROM read_parquet('{}/*')", folder.path().display());
    assert_eq!(ask(&engine, &sql), [[Value::Int(3)]]);
    engine.allow_files(Files::None).unwrap();
    assert!(refused(&engine, &sql).contains("not read here"));
}

#[test]
fn what_is_no_file_of_its_format_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.arrow"] {
        std::fs::write(folder.path().join(name), "no such bytes at all").unwrap();
    }
    let engine = engine_of(folder.path(), &[]);
    for name in ["a.parquet", "a.arrow"] {
        let _ = refused(&engine, &format!("SELECT * FROM '{name}'"));
    }
    let whole = folder.path().join("b.parquet");
    parquet(&whole, &some_rows(0, 300), Compression::SNAPPY);
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&whole, &bytes[..bytes.len() / 2]).unwrap();
    let _ = refused(&engine, "SELECT * FROM 'b.parquet'");
}
