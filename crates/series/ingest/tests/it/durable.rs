//! Lines into a durable table, its process ended and begun again, and compared.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use planish_arena::{Arena, Growth, Page, Preference};
use planish_ingest::{Commit, Decoder, IngestError, LineDecoder, Options, Taken, Target, Unit};
use planish_table::{Disk, Durable, Filter, Options as TableOptions, SyncPolicy, TableError, TimeUnit};

use crate::feed::{Row, feed, schema, target};
use crate::line::encode;

fn arena() -> Arena {
    let growth = Growth { first_bytes: 256 << 10, cap_bytes: 1 << 20 };
    Arena::builder().page(Preference::From(Page::Base)).growth(growth).build().unwrap()
}

fn options() -> TableOptions {
    TableOptions { sync: SyncPolicy::Always { gather: Duration::from_millis(2) }, ..TableOptions::default() }
}

fn create<'a>(arena: &'a Arena, folder: &Path) -> Durable<'a> {
    let disk = Arc::new(Disk::open(folder).unwrap());
    Durable::create(arena, disk, schema(), Some(TimeUnit::Nanoseconds), &options()).unwrap()
}

/// Rows in order of time, as a table gives them back.
fn rows(count: i64) -> Vec<Row> {
    let row = |number: i64| Row {
        symbol: format!("S{}", number % 7),
        time: number * 1000 - 50_000,
        price: (number % 5 > 0).then_some(number as f64 / 8.0),
        size: number,
        fee: number * 37 - 500,
        note: if number % 3 == 0 { String::new() } else { format!("Δ \"{}\"", number % 11) },
    };
    (0..count).map(row).collect()
}

fn read(durable: &Durable<'_>) -> Vec<Row> {
    let table = durable.read().unwrap();
    let (symbols, notes) = (table.dictionary("symbol").unwrap(), table.dictionary("note").unwrap());
    let mut rows = Vec::new();
    for piece in table.scan(Filter::ALL) {
        let keys = |column| piece.keys(column).unwrap().unwrap().as_slice();
        for row in 0..piece.rows() {
            rows.push(Row {
                symbol: symbols.text(keys(0)[row]).unwrap().to_owned(),
                time: piece.times().as_slice()[row],
                price: Some(piece.floats(2).unwrap()[row]).filter(|price| !price.is_nan()),
                size: piece.whole(3).unwrap()[row],
                fee: piece.whole(4).unwrap()[row],
                note: notes.text(keys(5)[row]).unwrap().to_owned(),
            });
        }
    }
    rows
}

#[test]
fn what_was_acknowledged_is_there_when_the_table_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(1000);
    let text = encode(&rows);
    let mut decoder = LineDecoder::new(vec![target()], Options { rows_max: 64, ..Options::default() });
    {
        let arena = arena();
        let durable = create(&arena, folder.path());
        let mut commit = Commit::new(&durable, 3).of_producer("client", 1);
        for piece in text.as_bytes().chunks(1001) {
            decoder.feed(piece, &mut commit).unwrap();
        }
        assert_eq!(decoder.finish(&mut commit).unwrap().rows, 1000);
        assert_eq!(commit.finish().unwrap(), Taken { rows: 1000, known: 0 });
        assert_eq!(commit.next_number(), Some(17));
    }
    let arena = arena();
    let disk = Arc::new(Disk::open(folder.path()).unwrap());
    let (durable, recovery) = Durable::open(&arena, disk, &options()).unwrap();
    assert_eq!((recovery.rows, recovery.tail), (1000, None));
    assert_eq!(read(&durable), rows);
    // The client sends all of it again, in other pieces: batches are cut where they were.
    let mut commit = Commit::new(&durable, 3).of_producer("client", 1);
    decoder.feed(text.as_bytes(), &mut commit).unwrap();
    decoder.finish(&mut commit).unwrap();
    assert_eq!(commit.finish().unwrap(), Taken { rows: 0, known: 1000 });
    assert_eq!(read(&durable), rows);
}

#[test]
fn rows_that_the_table_refuses_are_told_by_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let arena = arena();
    let durable = create(&arena, folder.path());
    let text = encode(&rows(10));
    let options = Options { rows_max: 4, ..Options::default() };
    let mut commit = Commit::new(&durable, 1).of_producer("client", 2);
    let mut decoder = LineDecoder::new(vec![target()], options.clone());
    let error = decoder.feed(text.as_bytes(), &mut commit).unwrap_err();
    assert_eq!(error.to_string(), "lines 1 to 4 were not taken in");
    assert!(matches!(error, IngestError::Table { source: TableError::SequenceGap { .. }, .. }));
    assert!(matches!(decoder.finish(&mut commit), Err(IngestError::Ended)));
    drop(commit);
    // One that is older than what the table keeps refuses its batch, and with the table's word only its row.
    let mut commit = Commit::new(&durable, 4);
    let mut decoder = LineDecoder::new(vec![target()], options.clone());
    feed_all(&mut decoder, &text, &mut commit).unwrap();
    drop(commit);
    durable.flush(i64::MAX).unwrap();
    durable.drop_before(1 << 40).unwrap();
    let mut commit = Commit::new(&durable, 4);
    let mut decoder = LineDecoder::new(vec![target()], options.clone());
    let error = feed_all(&mut decoder, &text, &mut commit).unwrap_err();
    assert!(matches!(error, IngestError::Table { source: TableError::TooOld { .. }, .. }), "{error:?}");
    drop(commit);
    let target = Target::new("ticks", &schema(), Unit::Nanoseconds).kept_from(durable.kept_from());
    let (_, outcome) = feed(&mut LineDecoder::new(vec![target], options), text.as_bytes(), &[]);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.rows, outcome.faulty), (0, 10));
    assert!(outcome.faults[0].to_string().contains("is before what the table keeps"));
}

fn feed_all(
    decoder: &mut LineDecoder,
    text: &str,
    commit: &mut Commit<'_, '_>,
) -> Result<Taken, IngestError> {
    decoder.feed(text.as_bytes(), commit)?;
    decoder.finish(commit)?;
    commit.finish()
}
