//! A folder that format 1 wrote, kept as it was: every later planish must open it.
//!
//! It was written by this test when PLANISH_TABLE_WRITE_FIXTURE named an empty folder. The folder of format 2 is that
//! of a table with a key: see `corrections`.

use std::path::Path;
use std::sync::Arc;

use planish_table::{Ack, Disk, Durable, FORMAT_VERSION, Options, TimeUnit, log::LOG_VERSION};

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
    assert_eq!(feed::check_from(&durable, 0), BATCHES);
    assert_eq!(feed::append(&durable, BATCHES).unwrap(), Ack::Known);
    assert_eq!(feed::append(&durable, BATCHES + 1).unwrap(), Ack::New);
    durable.flush(i64::MAX).unwrap();
    assert_eq!(feed::check_from(&durable, 0), BATCHES + 1);
    // Whoever raises one of them adds a folder of the version before, and keeps this one.
    assert_eq!((FORMAT_VERSION, LOG_VERSION), (2, 2));
}
