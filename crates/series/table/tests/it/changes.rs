//! What a table notes of its changes, for who keeps something that is made of its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use planish_table::{Cells, Column, Disk, Durable, Kind, Options, Partitioning, Schema};

use crate::feed;

fn schema() -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = [("symbol", Kind::Symbol), ("time", Kind::Time), ("price", Kind::Float)];
    let schema =
        Schema::new(columns.map(column).to_vec(), Partitioning { span: 100, symbols: None }).unwrap();
    schema.with_key(&["symbol", "time"]).unwrap()
}

fn append(table: &Durable<'_>, times: &[i64]) {
    let (symbols, prices) = (vec!["a"; times.len()], vec![1.0; times.len()]);
    table.append(None, &[Cells::Symbols(&symbols), Cells::Times(times), Cells::Floats(&prices)]).unwrap();
}

#[test]
fn what_comes_is_replaced_or_goes_is_noted_by_spans_and_nothing_else() {
    let (folder, arena) = (tempfile::tempdir().unwrap(), feed::arena());
    let disk = Arc::new(Disk::open(folder.path()).unwrap());
    let table = Durable::create(&arena, disk, schema(), None, &Options::default()).unwrap();
    append(&table, &[1, 2]);
    let changes = table.watch(10).unwrap();
    let noted = |wanted: &[(i64, i64)]| {
        // What is acknowledged is in the reading, and so in what is noted.
        let _reading = table.read().unwrap();
        assert_eq!(changes.take(), wanted.iter().copied().collect::<BTreeMap<_, _>>());
    };
    noted(&[]);
    append(&table, &[17, 3, 15, -1]);
    append(&table, &[16]);
    noted(&[(-10, -1), (0, 3), (10, 15)]);
    // One that replaces another.
    append(&table, &[17]);
    noted(&[(10, 17)]);
    table.flush(i64::MAX).unwrap();
    table.compact(i64::MAX).unwrap();
    noted(&[]);
    table.delete(None, &[Cells::Symbols(&["a", "b"]), Cells::Times(&[16, 205])]).unwrap();
    noted(&[(10, 16), (200, 205)]);
    // Another width, and one whom nobody asks any more.
    let wide = table.watch(1000).unwrap();
    drop(table.watch(1).unwrap());
    append(&table, &[1500, 20]);
    noted(&[(20, 20), (1500, 1500)]);
    assert_eq!(wide.take(), BTreeMap::from([(0, 20), (1000, 1500)]));
    // Retention is told by the time from which on rows are kept.
    table.drop_before(150).unwrap();
    noted(&[]);
    assert_eq!(table.kept_from(), 100);
}
