//! A folder that format 1 wrote, kept as it was: every later planish must open it.
//!
//! It was written by this test when PLANISH_TABLE_WRITE_FIXTURE named an empty folder. The folder of format 2 is that
//! of a table with a key: see `corrections`.

use std::path::Path;
use std::sync::Arc;

use planish_table::{
    Ack, Disk, Durable, FORMAT_VERSION, Options, TableError, TimeUnit, log::LOG_VERSION, salvage,
};

use crate::feed;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1");
const BATCHES: u64 = 12;

/// Two log files, a flush, retention, a closing mark.
fn write(folder: &Path) {
    let arena = feed::arena();
    let disk = Arc::new(Disk::open(folder).unwrap());
    let options = Options { log_file_bytes: 1500, ..Options::default() };
    let unit = Some(TimeUnit::Milliseconds);
    let durable = Durable::create(&arena, disk, feed::schema(), unit, &options).unwrap();
    for sequence in 1..=BATCHES {
        feed::append(&durable, sequence).unwrap();
        if sequence == 6 {
            durable.flush(2 * feed::SPAN).unwrap();
            durable.drop_before(0).unwrap();
        }
    }
}

#[test]
fn a_table_of_format_1_opens_and_goes_on() {
    if let Some(folder) = std::env::var_os("PLANISH_TABLE_WRITE_FIXTURE") {
        return write(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let names = feed::copy(Path::new(FIXTURE), folder.path());
    let of_kind = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    assert!(of_kind(".log") >= 2 && of_kind(".parquet") >= 2, "{names:?}");
    let arena = feed::arena();
    let disk = Arc::new(Disk::open(folder.path()).unwrap());
    let (durable, recovery) = Durable::open(&arena, disk, &Options::default()).unwrap();
    assert_eq!((recovery.tail, recovery.removed), (None, Vec::new()));
    assert!(recovery.rows > 0 && recovery.file_rows > 0);
    assert_eq!(durable.schema(), &feed::schema());
    assert_eq!(durable.time_unit(), Some(TimeUnit::Milliseconds));
    assert_eq!(feed::check_from(&durable, 0), BATCHES);
    assert_eq!(feed::append(&durable, BATCHES).unwrap(), Ack::Known);
    assert_eq!(feed::append(&durable, BATCHES + 1).unwrap(), Ack::New);
    durable.flush(i64::MAX).unwrap();
    assert_eq!(feed::check_from(&durable, 0), BATCHES + 1);
    // Whoever raises one of them adds a folder of the version before, and keeps this one.
    assert_eq!((FORMAT_VERSION, LOG_VERSION), (2, 2));
}

/// The folder of format 1 with a manifest that was changed, under a sound checksum.
fn opened(change: impl FnOnce(&mut serde_json::Value)) -> Result<(), TableError> {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    std::fs::create_dir(&table).unwrap();
    feed::copy(Path::new(FIXTURE), &table);
    let outside = folder.path().join("outside.parquet");
    std::fs::write(&outside, "another's").unwrap();
    let path = table.join("manifest");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut manifest = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
    change(&mut manifest);
    let body = manifest.to_string();
    std::fs::write(&path, format!("planish-table 2 {:08x}\n{body}", crc32c::crc32c(body.as_bytes())))
        .unwrap();
    let arena = feed::arena();
    let done =
        Durable::open(&arena, Arc::new(Disk::open(&table)?), &Options::default()).map(|(durable, _)| {
            // What its owner may do next.
            let _ = durable.read().map(|reading| reading.rows());
            let _ = durable.drop_before(i64::MAX);
            let _ = durable.flush(i64::MAX);
        });
    assert!(outside.exists(), "a file of somebody else is gone");
    let to = folder.path().join("other");
    let _ = salvage(&Disk::open(&table)?, &Disk::open(&to)?);
    assert_eq!(std::fs::read(&outside).unwrap(), b"another's");
    done
}

#[test]
fn a_manifest_that_no_table_wrote_is_refused_and_leads_nowhere() {
    opened(|_| ()).unwrap();
    type Change = fn(&mut serde_json::Value);
    let changes: [(&str, Change); 14] = [
        ("a dictionary too few", |it| it["dictionaries"] = Vec::<()>::new().into()),
        ("one too many", |it| it["dictionaries"].as_array_mut().unwrap().push(Vec::<()>::new().into())),
        ("a last batch behind which there is none", |it| it["applied"] = u64::MAX.into()),
        ("a batch before the first", |it| it["replay_from"] = 0.into()),
        ("batches that are not known", |it| it["replay_from"] = 9.into()),
        ("a log of too many", |it| (it["applied"], it["replay_from"]) = ((1_u64 << 61).into(), 1.into())),
        ("a last file behind which there is none", |it| it["next_file"] = u64::MAX.into()),
        ("a number that is used again", |it| it["next_file"] = 3.into()),
        ("partitions out of order", |it| it["flushed"].as_array_mut().unwrap().reverse()),
        ("a file that leads out", |it| it["files"][0]["name"] = "../outside.parquet".into()),
        ("a file of another name", |it| it["files"][0]["name"] = "manifest".into()),
        ("a file twice", |it| it["files"][1] = it["files"][0].clone()),
        ("rows without end", |it| it["files"][0]["rows"] = u64::MAX.into()),
        ("a row that is gone and was never there", |it| {
            it["files"][0]["gone"] = serde_json::json!([[u64::MAX, 2]]);
        }),
    ];
    for (what, change) in changes {
        let error = opened(change).expect_err(what);
        assert!(
            matches!(&error, TableError::Damaged { path, .. } if path.ends_with("manifest")),
            "{what}: {error}"
        );
    }
}
