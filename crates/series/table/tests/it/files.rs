//! Flushed files in the hands of others: DuckDB, Polars, pandas with pyarrow, where Python has them.

use std::process::Command;
use std::sync::Arc;

use planish_table::{
    Cells, Codec, Column, Compression, Disk, Durable, Encoding, Filter, Kind, Options, Partitioning, Schema,
    TableError, TimeUnit,
};

use crate::feed;

const ROWS: i64 = 5000;
/// 2026-01-01, in nanoseconds.
const BEGIN: i64 = 1_767_225_600_000_000_000;

fn schema() -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [
        ("time", Kind::Time),
        ("symbol", Kind::Symbol),
        ("price", Kind::Float),
        ("walk", Kind::Float),
        ("size", Kind::Int),
        ("fee", Kind::Decimal { scale: 2 }),
    ];
    Schema::new(columns.map(column).to_vec(), Partitioning { span: 1 << 62, symbols: None }).unwrap()
}

/// A table of one file: every third price is null, sizes rise, fees fall below zero.
fn fill(durable: &Durable<'_>) {
    let rows = || 0..ROWS;
    let times: Vec<i64> = rows().map(|row| BEGIN + row * 1_000_000_007).collect();
    let symbols: Vec<&str> = rows().map(|row| ["AAA", "BBB", "Ünï"][(row % 3) as usize]).collect();
    let prices: Vec<f64> =
        rows().map(|row| if row % 3 == 0 { f64::NAN } else { (row % 100) as f64 / 4.0 }).collect();
    let walks: Vec<f64> = rows().map(|row| 100.0 + (row as f64 * 0.37).sin()).collect();
    let sizes: Vec<i64> = rows().map(|row| row * row).collect();
    let fees: Vec<i64> = rows().map(|row| 150 - row).collect();
    let cells = [
        Cells::Times(&times),
        Cells::Symbols(&symbols),
        Cells::Floats(&prices),
        Cells::Floats(&walks),
        Cells::Ints(&sizes),
        Cells::Decimals(&fees),
    ];
    durable.append(None, &cells).unwrap();
    assert_eq!(durable.flush(i64::MAX).unwrap().rows, ROWS as u64);
}

/// What every reader must say: rows, nulls of price, sum of price, of size, of fee, first and last time, rows of "Ünï".
fn wanted() -> [String; 8] {
    let rows = 0..ROWS;
    let nulls = rows.clone().filter(|row| row % 3 == 0).count();
    let prices: f64 = rows.clone().filter(|row| row % 3 != 0).map(|row| (row % 100) as f64 / 4.0).sum();
    let sizes: i64 = rows.clone().map(|row| row * row).sum();
    let fees: i64 = rows.clone().map(|row| 150 - row).sum();
    let (last, strange) = (BEGIN + (ROWS - 1) * 1_000_000_007, rows.filter(|row| row % 3 == 2).count());
    let fees = format!("{}.{:02}", fees / 100, (fees % 100).abs());
    let whole = [ROWS.to_string(), nulls.to_string(), format!("{prices:.3}"), sizes.to_string(), fees];
    let ends = [BEGIN.to_string(), last.to_string(), strange.to_string()];
    [whole.to_vec(), ends.to_vec()].concat().try_into().unwrap()
}

const DUCKDB: &str = r#"
import sys, duckdb
q = duckdb.sql(f"""select count(*), count(*) - count(price), printf('%.3f', sum(price)), sum(size)::bigint, sum(fee),
    epoch_ns(min(time)), epoch_ns(max(time)), count(*) filter (symbol = 'Ünï') from '{sys.argv[1]}'""")
print(*q.fetchall()[0])
"#;

const POLARS: &str = r#"
import sys, polars as pl
t = pl.read_parquet(sys.argv[1])
ns = t["time"].cast(pl.Int64)
print(len(t), t["price"].null_count(), f"{t['price'].sum():.3f}", t["size"].sum(), t["fee"].sum(), ns.min(), ns.max(),
    (t["symbol"] == "Ünï").sum())
"#;

const PANDAS: &str = r#"
import sys, pandas as pd
t = pd.read_parquet(sys.argv[1])
ns = t["time"].astype("datetime64[ns, UTC]").astype("int64")
print(len(t), t["price"].isna().sum(), f"{t['price'].sum():.3f}", t["size"].sum(), sum(t["fee"]), ns.min(), ns.max(),
    (t["symbol"] == "Ünï").sum())
"#;

#[test]
fn others_read_the_files_as_they_are() {
    let arena = feed::arena();
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::open(folder.path()).unwrap());
    let durable =
        Durable::create(&arena, disk, schema(), Some(TimeUnit::Nanoseconds), &Options::default()).unwrap();
    fill(&durable);
    let file = folder.path().join(&durable.read().unwrap().files()[0].name);
    for (module, script) in [("duckdb", DUCKDB), ("polars", POLARS), ("pandas", PANDAS)] {
        let python = |script: &str| Command::new("python3").arg("-c").arg(script).arg(&file).output();
        let needs = if module == "pandas" { "import pandas, pyarrow" } else { &format!("import {module}") };
        if !python(needs).is_ok_and(|output| output.status.success()) {
            planish_skip::skip("others_read_the_files_as_they_are", format_args!("python3 has no {module}"));
            continue;
        }
        let output = python(script).unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words, wanted(), "{module}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn every_codec_gives_back_what_it_was_given_and_tells_its_ratio() {
    let encodings = [Encoding::Plain, Encoding::Dictionary, Encoding::Delta, Encoding::Split];
    for encoding in encodings {
        for compression in [Compression::None, Compression::Lz4, Compression::Snappy] {
            let codec = Codec { encoding, compression };
            let fits = |kind: Kind| match encoding {
                Encoding::Delta => !matches!(kind, Kind::Symbol | Kind::Float),
                Encoding::Split => kind != Kind::Symbol,
                _ => true,
            };
            let of_kind = |column: &&Column| fits(column.kind);
            let codecs =
                schema().columns().iter().filter(of_kind).map(|it| (it.name.clone(), codec)).collect();
            let options = Options { codecs, ..Options::default() };
            let arena = feed::arena();
            let folder = tempfile::tempdir().unwrap();
            let disk = Arc::new(Disk::open(folder.path()).unwrap());
            let durable = Durable::create(&arena, disk, schema(), None, &options).unwrap();
            fill(&durable);
            let table = durable.read().unwrap();
            let [file] = table.files() else { panic!("one file") };
            let rows = table.read_file(file).unwrap();
            let piece = rows.piece(&Filter::ALL).unwrap();
            assert_eq!(piece.rows() as i64, ROWS);
            assert!((0..ROWS).all(|row| piece.whole(4).unwrap()[row as usize] == row * row));
            assert!((0..ROWS).all(|row| piece.floats(2).unwrap()[row as usize].is_nan() == (row % 3 == 0)));
            let exact =
                |row: i64| piece.floats(3).unwrap()[row as usize] == 100.0 + (row as f64 * 0.37).sin();
            assert!((0..ROWS).all(exact));
            let memory_bytes: u64 = file.columns.iter().map(|column| column.memory_bytes).sum();
            assert_eq!(memory_bytes, ROWS as u64 * 44);
            let column_bytes: u64 = file.columns.iter().map(|column| column.file_bytes).sum();
            assert!(column_bytes < file.bytes && file.bytes < column_bytes + 8000);
            if compression == Compression::Lz4 && encoding == Encoding::Dictionary {
                assert!(file.columns[1].ratio() > 10.0, "three symbols: {}", file.columns[1].ratio());
            }
        }
    }
}

#[test]
fn a_codec_that_does_not_fit_its_column_is_refused_by_name() {
    let arena = feed::arena();
    let disk = || Arc::new(crate::simulated::SimDisk::default());
    let delta = Codec { encoding: Encoding::Delta, compression: Compression::None };
    let with = |name: &str| Options { codecs: vec![(name.to_owned(), delta)], ..Options::default() };
    let wrong = Durable::create(&arena, disk(), schema(), None, &with("price")).unwrap_err();
    assert!(matches!(&wrong, TableError::Schema { column, .. } if column == "price"), "{wrong:?}");
    let wrong = Durable::create(&arena, disk(), schema(), None, &with("prise")).unwrap_err();
    assert!(matches!(&wrong, TableError::NoColumn { column } if column == "prise"), "{wrong:?}");
}
