//! Upserts and deletes by key, against a map from keys to rows: in memory, through flushes, compactions and reopening,
//! and with the power lost at every write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use planish_table::{
    Ack, Cells, Column, Disk, Durable, Filter, Kind, Options, Origin, Partitioning, Piece, Reading, Schema,
    Storage, Table, TableError,
};
use proptest::prelude::*;

use crate::feed;
use crate::simulated::{Fault, Rng, SimDisk};

const SPAN: i64 = 20;
const TIMES: i64 = 60;
const SYMBOLS: [&str; 4] = ["a", "b", "c", "Δ"];
pub const PRODUCER: &str = "corrector";

/// Set, to an empty folder, where the fixture of this version is to be written anew.
const WRITE_FIXTURE: &str = "PLANISH_TABLE_WRITE_FIXTURE_2";
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v2");

/// Symbol, time, number: what a row is known by. The symbol as its place in `SYMBOLS`.
pub type Key = (usize, i64, i64);
pub type Model = BTreeMap<Key, f64>;

pub fn schema() -> Schema {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns =
        [("price", Kind::Float), ("number", Kind::Int), ("time", Kind::Time), ("symbol", Kind::Symbol)];
    let partitioning = Partitioning { span: SPAN, symbols: Some(2) };
    let schema = Schema::new(columns.map(column).to_vec(), partitioning).unwrap();
    schema.with_key(&["symbol", "time", "number"]).unwrap()
}

/// What happens to a table.
#[derive(Debug, Clone)]
pub enum Step {
    Upsert(Vec<(Key, f64)>),
    Delete(Vec<Key>),
    Flush(i64),
    Compact(i64),
    DropBefore(i64),
    Reopen,
}

/// Rows as columns.
struct Batch {
    prices: Vec<f64>,
    numbers: Vec<i64>,
    times: Vec<i64>,
    symbols: Vec<&'static str>,
}

impl Batch {
    fn of<'k>(keys: impl Iterator<Item = (&'k Key, f64)>) -> Self {
        let mut batch =
            Self { prices: Vec::new(), numbers: Vec::new(), times: Vec::new(), symbols: Vec::new() };
        for (&(symbol, time, number), price) in keys {
            batch.prices.push(price);
            batch.numbers.push(number);
            batch.times.push(time);
            batch.symbols.push(SYMBOLS[symbol]);
        }
        batch
    }

    fn rows(&self) -> [Cells<'_>; 4] {
        [
            Cells::Floats(&self.prices),
            Cells::Ints(&self.numbers),
            Cells::Times(&self.times),
            Cells::Symbols(&self.symbols),
        ]
    }

    /// In the order in which the key was declared.
    fn keys(&self) -> [Cells<'_>; 3] {
        [Cells::Symbols(&self.symbols), Cells::Times(&self.times), Cells::Ints(&self.numbers)]
    }
}

fn upsert(rows: &[(Key, f64)]) -> Batch {
    Batch::of(rows.iter().map(|(key, price)| (key, *price)))
}

fn delete(keys: &[Key]) -> Batch {
    Batch::of(keys.iter().map(|key| (key, 0.0)))
}

/// What a step does to a map.
pub fn apply(model: &mut Model, step: &Step) {
    match step {
        Step::Upsert(rows) => model.extend(rows.iter().copied()),
        Step::Delete(keys) => model.retain(|key, _| !keys.contains(key)),
        Step::DropBefore(time) => model.retain(|key, _| key.1.div_euclid(SPAN) >= time.div_euclid(SPAN)),
        Step::Flush(_) | Step::Compact(_) | Step::Reopen => {}
    }
}

/// Adds the rows of a piece, which must be in order, to others, none of which may have their keys.
fn collect(table: &Table<'_>, piece: &Piece<'_>, rows: &mut Model) {
    let dictionary = table.dictionary("symbol").unwrap();
    let keys = piece.keys(3).unwrap().unwrap().as_slice();
    let (prices, numbers) = (piece.floats(0).unwrap(), piece.whole(1).unwrap());
    let times = piece.times().as_slice();
    let order: Vec<_> = (0..piece.rows()).map(|row| (times[row], keys[row], numbers[row])).collect();
    assert!(order.windows(2).all(|two| two[0] < two[1]), "{order:?}");
    for row in 0..piece.rows() {
        let symbol = SYMBOLS.iter().position(|&text| Some(text) == dictionary.text(keys[row])).unwrap();
        let before = rows.insert((symbol, times[row], numbers[row]), prices[row]);
        assert!(before.is_none(), "a key twice: {:?}", order[row]);
    }
}

pub fn contents(durable: &Durable<'_>) -> Model {
    contents_of(&durable.read().unwrap()).unwrap()
}

/// The same of a reading, of which files may go meanwhile.
pub fn contents_of(table: &Reading<'_, '_>) -> Result<Model, TableError> {
    let mut rows = Model::new();
    table.scan(Filter::ALL).for_each(|piece| collect(table, &piece, &mut rows));
    for file in table.files() {
        if let Some(piece) = table.read_file(file)?.piece(&Filter::ALL) {
            collect(table, &piece, &mut rows);
        }
    }
    Ok(rows)
}

fn options() -> Options {
    Options { log_file_bytes: 700, spare_bytes: 0, ..Options::default() }
}

fn open<'a>(arena: &'a planish_arena::Arena, disk: &SimDisk) -> Result<Durable<'a>, TableError> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    match disk.list().unwrap().iter().any(|name| name == "manifest") {
        true => Ok(Durable::open(arena, storage, &options())?.0),
        false => Durable::create(arena, storage, schema(), None, &options()),
    }
}

/// Does a step; batches are numbered.
pub fn run(durable: &Durable<'_>, step: &Step, sequence: &mut u64) -> Result<Option<Ack>, TableError> {
    let origin = Some(Origin { producer: PRODUCER, sequence: *sequence + 1 });
    let ack = match step {
        Step::Upsert(rows) => durable.append(origin, &upsert(rows).rows())?,
        Step::Delete(keys) => durable.delete(origin, &delete(keys).keys())?,
        Step::Flush(before) => return durable.flush(*before).map(|_| None),
        Step::Compact(before) => return durable.compact(*before).map(|_| None),
        Step::DropBefore(time) => return durable.drop_before(*time).map(|_| None),
        Step::Reopen => return Ok(None),
    };
    *sequence += 1;
    Ok(Some(ack))
}

fn key() -> impl Strategy<Value = Key> {
    (0..SYMBOLS.len(), 0..TIMES, 0..2i64)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec((key(), -9.0..9.0f64), 0..25).prop_map(Step::Upsert),
        3 => prop::collection::vec(key(), 0..25).prop_map(Step::Delete),
        3 => (0..TIMES + SPAN).prop_map(Step::Flush),
        2 => (0..TIMES + SPAN).prop_map(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_table_in_memory_is_a_map_from_keys_to_rows(steps in prop::collection::vec(step(), 1..30)) {
        let arena = feed::arena();
        let (mut table, mut model) = (Table::new(&arena, schema()), Model::new());
        for step in steps {
            let before = model.clone();
            apply(&mut model, &step);
            match &step {
                Step::Upsert(rows) => table.append(&upsert(rows).rows()).unwrap(),
                Step::Delete(keys) => {
                    let removed = table.delete(&delete(keys).keys()).unwrap();
                    prop_assert_eq!(removed, before.len() - model.len());
                }
                _ => {}
            }
            let mut rows = Model::new();
            table.scan(Filter::ALL).for_each(|piece| collect(&table, &piece, &mut rows));
            prop_assert_eq!(&rows, &model);
            prop_assert_eq!((table.rows(), table.partitions() == 0), (model.len(), model.is_empty()));
        }
    }

    #[test]
    fn a_durable_table_is_one_too_wherever_its_rows_lie(
        mut steps in prop::collection::vec(step(), 1..30), drop in prop::option::of((0..30usize, 0..TIMES)),
    ) {
        if let Some((place, time)) = drop {
            let place = place.min(steps.len());
            steps.truncate(place);
            steps.push(Step::DropBefore(time));
            steps.push(Step::Reopen);
        }
        let (disk, mut model, mut sequence) = (SimDisk::default(), Model::new(), 0);
        let mut rest = &steps[..];
        while !rest.is_empty() {
            let arena = feed::arena();
            let durable = open(&arena, &disk).unwrap();
            prop_assert_eq!(&contents(&durable), &model);
            let end = rest.iter().position(|step| matches!(step, Step::Reopen)).map_or(rest.len(), |end| end + 1);
            for step in &rest[..end] {
                apply(&mut model, step);
                let ack = run(&durable, step, &mut sequence).unwrap();
                prop_assert!(ack.is_none_or(|ack| ack == Ack::New));
                prop_assert_eq!(&contents(&durable), &model, "after {:?}", step);
            }
            durable.verify().unwrap();
            rest = &rest[end..];
        }
        let arena = feed::arena();
        let durable = open(&arena, &disk).unwrap();
        prop_assert_eq!(&contents(&durable), &model);
        durable.flush(i64::MAX).unwrap();
        let compaction = durable.compact(i64::MAX).unwrap();
        prop_assert_eq!(&contents(&durable), &model);
        let table = durable.read().unwrap();
        // What others read of the files is now the table: one file a partition, nothing gone in it.
        prop_assert!(table.files().iter().all(|file| file.gone.is_empty()), "{:?}", compaction);
        let rows: u64 = table.files().iter().map(|file| file.rows).sum();
        prop_assert_eq!(rows, model.len() as u64);
        let places: std::collections::BTreeSet<_> = table.files().iter().map(|file| (file.group, file.span)).collect();
        prop_assert_eq!(places.len(), table.files().len());
        prop_assert_eq!(disk.list().unwrap().iter().filter(|name| name.ends_with(".parquet")).count(), places.len());
    }
}

/// One of an endless sequence of batches over the same few keys.
pub fn batch(sequence: u64) -> Step {
    let mut rng = Rng(sequence);
    let mut key = move || (rng.below(SYMBOLS.len()), rng.below(TIMES as usize) as i64, rng.below(2) as i64);
    match sequence % 3 {
        2 => Step::Delete((0..7).map(|_| key()).collect()),
        _ => Step::Upsert((0..9).map(|row| (key(), (sequence * 100 + row) as f64)).collect()),
    }
}

/// Every kind of step, several times, over the same few keys.
fn script() -> Vec<Step> {
    let mut rng = Rng(20_261_122);
    let mut key = move || (rng.below(SYMBOLS.len()), rng.below(TIMES as usize) as i64, rng.below(2) as i64);
    let mut steps = Vec::new();
    for round in 0..6 {
        steps.push(Step::Upsert((0..12).map(|row| (key(), f64::from(round * 100 + row))).collect()));
        steps.push(Step::Delete((0..5).map(|_| key()).collect()));
        match round % 3 {
            0 => steps.push(Step::Flush(TIMES - SPAN)),
            1 => steps.push(Step::Flush(TIMES)),
            _ => steps.push(Step::Compact(TIMES)),
        }
    }
    steps
}

/// The table after each number of batches.
fn histories(steps: &[Step]) -> Vec<Model> {
    let mut histories = vec![Model::new()];
    for step in steps {
        if matches!(step, Step::Upsert(_) | Step::Delete(_)) {
            let mut model = histories.last().unwrap().clone();
            apply(&mut model, step);
            histories.push(model);
        }
    }
    histories
}

/// Runs the script until something fails; returns how many batches were acknowledged.
fn scenario(disk: &SimDisk, steps: &[Step]) -> u64 {
    let arena = feed::arena();
    let mut sequence = 0;
    if let Ok(durable) = open(&arena, disk) {
        for step in steps {
            if run(&durable, step, &mut sequence).is_err() {
                break;
            }
        }
    }
    sequence
}

/// The table is what it was after some number of batches, no fewer than were acknowledged; and goes on from there, the
/// whole script sent again.
fn check_and_send_again(disk: &SimDisk, steps: &[Step], histories: &[Model], acknowledged: u64, what: &str) {
    let arena = feed::arena();
    let durable = open(&arena, disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let there = durable.read().unwrap().sequence(PRODUCER).unwrap_or(0);
    assert!(there >= acknowledged, "{what}: {acknowledged} were acknowledged, {there} are there");
    assert_eq!(contents(&durable), histories[there as usize], "{what}: after {there} batches");
    let mut sequence = 0;
    for step in steps {
        let ack = run(&durable, step, &mut sequence).unwrap();
        let wanted = if sequence <= there { Ack::Known } else { Ack::New };
        assert!(ack.is_none_or(|ack| ack == wanted), "{what}: batch {sequence}");
    }
    assert_eq!(&contents(&durable), histories.last().unwrap(), "{what}: sent again");
    durable.flush(i64::MAX).unwrap();
    durable.compact(i64::MAX).unwrap();
    assert_eq!(&contents(&durable), histories.last().unwrap(), "{what}: compacted");
}

#[test]
fn a_loss_of_power_at_any_write_leaves_the_table_as_it_was_after_some_batch() {
    let steps = script();
    let histories = histories(&steps);
    let whole = SimDisk::default();
    assert_eq!(scenario(&whole, &steps), histories.len() as u64 - 1);
    let mut marked = 0;
    for at in 0..whole.operations() {
        let disk = SimDisk::default();
        disk.set_fault(Some(Fault::Crash(at)));
        let acknowledged = scenario(&disk, &steps);
        let after = disk.after_crash(at as u64 * 7);
        check_and_send_again(&after, &steps, &histories, acknowledged, &format!("stopped at operation {at}"));
        let killed = disk.after_kill();
        let arena = feed::arena();
        if let Ok(durable) = open(&arena, &killed) {
            marked += durable.read().unwrap().files().iter().filter(|file| !file.gone.is_empty()).count();
        }
        let killed = disk.after_kill();
        check_and_send_again(&killed, &steps, &histories, acknowledged, &format!("killed at operation {at}"));
    }
    assert!(marked > 20, "{marked} files with marks: the scenario does not ask what it is here for");
}

#[test]
fn any_one_operation_that_fails_corrects_nothing_by_half() {
    let steps = script();
    let histories = histories(&steps);
    let whole = SimDisk::default();
    scenario(&whole, &steps);
    for at in 0..whole.operations() {
        let disk = SimDisk::default();
        disk.set_fault(Some(Fault::Fail(at, std::io::ErrorKind::StorageFull)));
        let acknowledged = scenario(&disk, &steps);
        let what = format!("operation {at} failed");
        let after = if at % 2 == 0 { disk.after_crash(at as u64) } else { disk.after_kill() };
        check_and_send_again(&after, &steps, &histories, acknowledged, &what);
    }
}

#[test]
fn sending_the_same_rows_again_changes_nothing_without_a_number_too() {
    let arena = feed::arena();
    let durable = open(&arena, &SimDisk::default()).unwrap();
    let rows: Vec<(Key, f64)> =
        (0..40).map(|row| (((row % 4) as usize, row % TIMES, 0), row as f64)).collect();
    for round in 0..3 {
        assert_eq!(durable.append(None, &upsert(&rows).rows()).unwrap(), Ack::New);
        assert_eq!(contents(&durable), rows.iter().copied().collect());
        assert_eq!(durable.flush(i64::MAX).unwrap().gone_rows, if round == 0 { 0 } else { 40 });
    }
    durable.delete(None, &delete(&[rows[3].0, (0, 59, 1)]).keys()).unwrap();
    durable.delete(None, &delete(&[rows[3].0]).keys()).unwrap();
    assert_eq!(contents(&durable).len(), 39);
    let flush = durable.flush(i64::MAX).unwrap();
    assert_eq!((flush.rows, flush.gone_rows, flush.replaced), (0, 1, 0), "{flush:?}");
    assert_eq!(contents(&durable).len(), 39);
}

#[test]
fn few_corrections_are_marked_and_many_write_the_partition_anew() {
    let arena = feed::arena();
    let durable = open(&arena, &SimDisk::default()).unwrap();
    let rows: Vec<(Key, f64)> = (0..40).map(|row| ((0, row % SPAN, row / SPAN), row as f64)).collect();
    durable.append(None, &upsert(&rows).rows()).unwrap();
    durable.flush(i64::MAX).unwrap();
    durable.append(None, &upsert(&[(rows[7].0, -1.0), (rows[9].0, -2.0)]).rows()).unwrap();
    let flush = durable.flush(i64::MAX).unwrap();
    assert_eq!((flush.files.len(), flush.rows, flush.gone_rows, flush.replaced), (1, 2, 2, 0));
    assert_eq!(durable.read().unwrap().files()[0].live_rows(), 38);
    let keys: Vec<Key> = rows[..11].iter().map(|row| row.0).collect();
    durable.delete(None, &delete(&keys).keys()).unwrap();
    let flush = durable.flush(i64::MAX).unwrap();
    // Eleven of forty and two of two: what is left of both goes into one.
    assert_eq!((flush.files.len(), flush.rows, flush.gone_rows, flush.replaced), (1, 29, 11, 2));
    assert_eq!(contents(&durable), rows[11..].iter().copied().collect());
    let rest: Vec<Key> = rows[11..].iter().map(|row| row.0).collect();
    durable.delete(None, &delete(&rest).keys()).unwrap();
    let flush = durable.flush(i64::MAX).unwrap();
    assert_eq!((flush.files.len(), flush.replaced), (0, 1), "a file of which nothing is left goes");
    assert!(durable.read().unwrap().files().is_empty() && contents(&durable).is_empty());
}

#[test]
fn without_a_key_nothing_is_deleted_and_equal_rows_stay() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let durable = Durable::create(&arena, storage, feed::schema(), None, &Options::default()).unwrap();
    feed::append(&durable, 1).unwrap();
    let operations = disk.operations();
    let deleted = durable.delete(None, &[Cells::Symbols(&["a"]), Cells::Times(&[1])]);
    assert!(matches!(deleted, Err(TableError::NoKey)), "{deleted:?}");
    assert_eq!(disk.operations(), operations);
    let keyed = open(&arena, &SimDisk::default()).unwrap();
    let wrong = keyed.delete(None, &[Cells::Times(&[1]), Cells::Symbols(&["a"]), Cells::Ints(&[1])]);
    assert!(matches!(wrong, Err(TableError::Kind { .. })), "{wrong:?}");
    let short = keyed.delete(None, &[Cells::Symbols(&["a"]), Cells::Times(&[1])]);
    assert!(matches!(short, Err(TableError::Columns { want: 3, got: 2 })), "{short:?}");
}

#[test]
fn a_compaction_without_a_key_makes_one_file_of_many_and_keeps_the_order() {
    let disk = SimDisk::default();
    let arena = feed::arena();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let durable = Durable::create(&arena, storage, feed::schema(), None, &Options::default()).unwrap();
    for batch in 1..=20 {
        feed::append(&durable, batch).unwrap();
        durable.flush(feed::through_newest(batch)).unwrap();
    }
    let before = durable.read().unwrap().files().len();
    let compaction = durable.compact(i64::MAX).unwrap();
    let after = durable.read().unwrap().files().len();
    assert!(compaction.files.len() > 3 && after + compaction.replaced == before + compaction.files.len());
    assert_eq!((feed::check(&durable), compaction.gone_rows), (20, 0));
    assert_eq!(durable.compact(i64::MAX).unwrap(), planish_table::Compaction::default());
    drop(durable);
    let arena = feed::arena();
    let (durable, recovery) = Durable::open(&arena, Arc::new(disk), &Options::default()).unwrap();
    assert_eq!((feed::check(&durable), recovery.removed), (20, Vec::new()));
}

/// A table with a key as format 2 wrote it: marks in a file, upserts and deletes in the log.
#[test]
fn a_table_of_format_2_opens_and_goes_on() {
    let steps: Vec<Step> = script().into_iter().filter(|step| !matches!(step, Step::Compact(_))).collect();
    let histories = histories(&steps);
    let folder = tempfile::tempdir().unwrap();
    if let Some(folder) = std::env::var_os(WRITE_FIXTURE) {
        let arena = feed::arena();
        let disk = Arc::new(Disk::open(Path::new(&folder)).unwrap());
        let durable = Durable::create(&arena, disk, schema(), None, &options()).unwrap();
        let mut sequence = 0;
        assert!(steps.iter().all(|step| run(&durable, step, &mut sequence).is_ok()));
        return;
    }
    feed::copy(Path::new(FIXTURE), folder.path());
    let arena = feed::arena();
    let disk = Arc::new(Disk::open(folder.path()).unwrap());
    let (durable, recovery) = Durable::open(&arena, disk, &options()).unwrap();
    assert_eq!((recovery.tail, recovery.removed, recovery.lost), (None, Vec::new(), 0));
    assert_eq!(durable.schema(), &schema());
    assert!(recovery.batches > 1 && durable.read().unwrap().files().iter().any(|file| !file.gone.is_empty()));
    assert_eq!(&contents(&durable), histories.last().unwrap());
    durable.flush(i64::MAX).unwrap();
    durable.compact(i64::MAX).unwrap();
    assert_eq!(&contents(&durable), histories.last().unwrap());
}
