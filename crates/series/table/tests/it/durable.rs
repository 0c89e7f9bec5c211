//! Group commit, policies, retention, backup, and the lock, on simulated and real folders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use planish_arena::{Arena, Fallback, Page, Preference};
use planish_table::{
    Ack, Cells, Column, Disk, Durable, Filter, Kind, Options, Origin, Partitioning, Schema, Storage,
    SyncPolicy, TableError,
};

use crate::feed::{self, Rows};
use crate::simulated::SimDisk;

fn create<'a>(arena: &'a Arena, disk: &SimDisk, options: &Options) -> Durable<'a> {
    Durable::create(arena, Arc::new(disk.clone()), feed::schema(), None, options).unwrap()
}

#[test]
fn many_writers_share_a_sync_and_none_is_forgotten() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let gather = Duration::from_millis(4);
    let durable =
        create(&arena, &disk, &Options { sync: SyncPolicy::Always { gather }, ..Options::default() });
    let before = disk.syncs();
    let (writers, batches) = (8_u64, 25_u64);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let durable = &durable;
            scope.spawn(move || {
                let producer = format!("writer {writer}");
                for sequence in 1..=batches {
                    let rows = Rows::of(1 + writer * batches + sequence);
                    let origin = Origin { producer: &producer, sequence };
                    assert_eq!(durable.append(Some(origin), &rows.cells()).unwrap(), Ack::New);
                    assert_eq!(durable.append(Some(origin), &rows.cells()).unwrap(), Ack::Known);
                }
            });
        }
    });
    let syncs = disk.syncs() - before;
    // How many share one is up to when each of them runs; that they share is not.
    assert!(2 * syncs < (writers * batches) as usize, "{syncs} syncs for {} batches", writers * batches);
    let table = durable.read().unwrap();
    assert_eq!(table.rows() as u64, writers * batches * feed::ROWS);
    assert!((0..writers).all(|writer| table.sequence(&format!("writer {writer}")) == Some(batches)));
    drop(table);
    drop(durable);
    let arena = feed::arena();
    let disk = disk.after_crash(3);
    let (durable, recovery) = Durable::open(&arena, Arc::new(disk), &Options::default()).unwrap();
    assert_eq!((recovery.batches, recovery.tail), (writers * batches, None));
    assert_eq!(durable.read().unwrap().rows() as u64, writers * batches * feed::ROWS);
}

#[test]
fn a_period_syncs_without_being_asked() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let period = Duration::from_millis(20);
    let durable = create(&arena, &disk, &Options { sync: SyncPolicy::Every(period), ..Options::default() });
    feed::append(&durable, 1).unwrap();
    feed::append(&durable, 2).unwrap();
    let begin = Instant::now();
    // The head of the file was synced when it was made; the batches are when the period is over.
    let all_there = || {
        let arena = feed::arena();
        (0..6).all(|seed| {
            let storage: Arc<dyn Storage> = Arc::new(disk.after_crash(seed));
            let (durable, _) = Durable::open(&arena, storage, &Options::default()).unwrap();
            feed::check(&durable) == 2
        })
    };
    while !all_there() {
        assert!(begin.elapsed() < Duration::from_secs(20), "nobody synced");
        std::thread::sleep(period / 4);
    }
}

#[test]
fn what_does_not_fit_is_refused_before_the_log_and_changes_nothing() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let durable = create(&arena, &disk, &Options::default());
    feed::append(&durable, 1).unwrap();
    let operations = disk.operations();
    let rows = Rows::of(2);
    let named = |producer: &str, sequence| {
        durable.append(Some(Origin { producer, sequence }), &rows.cells()).unwrap_err()
    };
    assert!(matches!(named("", 1), TableError::Producer { .. }));
    assert!(matches!(named("feed", 0), TableError::Producer { .. }));
    assert!(matches!(named(&"x".repeat(256), 1), TableError::Producer { .. }));
    assert!(matches!(named("feed", 3), TableError::SequenceGap { want: 2, got: 3, .. }));
    assert!(matches!(named("other", 2), TableError::SequenceGap { want: 1, got: 2, .. }));
    let cells = |symbols: Cells<'static>, fee: &'static [i64]| {
        durable.append(
            None,
            &[symbols, Cells::Times(&[1]), Cells::Floats(&[1.0]), Cells::Ints(&[1]), Cells::Decimals(fee)],
        )
    };
    let keyed = Cells::Keyed { texts: &["a"], keys: &[1] };
    assert!(matches!(cells(keyed, &[1]), Err(TableError::Key { key: 1, texts: 1, .. })));
    assert!(matches!(cells(Cells::Symbols(&["a"]), &[1, 2]), Err(TableError::Length { .. })));
    let digits = cells(Cells::Symbols(&["a"]), &[-1_000_000_000_000_000_000]);
    assert!(matches!(&digits, Err(TableError::Digits { column, .. }) if column == "fee"), "{digits:?}");
    let long = "x".repeat(300 << 20);
    let texts = [long.as_str()];
    let long = durable.append(
        None,
        &[
            Cells::Symbols(&texts),
            Cells::Times(&[1]),
            Cells::Floats(&[1.0]),
            Cells::Ints(&[1]),
            Cells::Decimals(&[1]),
        ],
    );
    assert!(matches!(long, Err(TableError::TooLong { .. })), "{long:?}");
    assert_eq!(disk.operations(), operations, "none of it reached the disk");
    assert_eq!(feed::check(&durable), 1);
}

#[test]
fn rows_that_find_no_memory_are_safe_and_told_to_who_reads() {
    // Pages of a size that no machine has.
    let page = Preference::From(Page::HugeTlb(12 << 10));
    let short = Arena::builder().page(page).fallback(Fallback::Refuse).build().unwrap();
    let disk = SimDisk::default();
    let durable = create(&short, &disk, &Options::default());
    assert_eq!(feed::append(&durable, 1).unwrap(), Ack::New);
    assert!(matches!(durable.read(), Err(TableError::Memory { .. })));
    assert!(matches!(feed::append(&durable, 2), Err(TableError::Memory { .. })), "no more is taken in");
    drop(durable);
    let arena = feed::arena();
    let (durable, _) = Durable::open(&arena, Arc::new(disk), &Options::default()).unwrap();
    assert_eq!(feed::check(&durable), 1);
}

#[test]
fn a_flush_hands_memory_on_and_shortens_the_log() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let durable = create(&arena, &disk, &Options { log_file_bytes: 2000, ..Options::default() });
    let mut used_bytes = 0;
    for round in 0..30 {
        feed::append_all(&durable, round * 10 + 1..=round * 10 + 10);
        let flush = durable.flush(feed::time(((round + 1) * 10 * feed::ROWS) as i64) - feed::SPAN).unwrap();
        assert!(!flush.files.is_empty() && flush.rows > 0);
        if round == 3 {
            used_bytes = arena.used_bytes();
        }
    }
    assert!(arena.used_bytes() <= used_bytes * 3 / 2, "{} bytes, {used_bytes} early on", arena.used_bytes());
    let logs = || disk.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).count();
    assert!(logs() <= 6, "{} files of the log", logs());
    assert_eq!(feed::check(&durable), 300);
    durable.flush(i64::MAX).unwrap();
    assert_eq!((durable.read().unwrap().rows(), logs()), (0, 1));
    assert_eq!(durable.flush(i64::MAX).unwrap().files, []);
    drop(durable);
    let arena = feed::arena();
    let (durable, recovery) = Durable::open(&arena, Arc::new(disk), &Options::default()).unwrap();
    assert_eq!((recovery.rows, recovery.file_rows), (0, 300 * feed::ROWS));
    assert_eq!(feed::check(&durable), 300);
}

#[test]
fn zones_of_the_manifest_leave_files_out() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let durable = create(&arena, &disk, &Options::default());
    feed::append_all(&durable, 1..=40);
    durable.flush(i64::MAX).unwrap();
    let table = durable.read().unwrap();
    let number = table.dictionary("symbol").unwrap().number("gamma").unwrap();
    let filter = Filter { from: 300, to: 340, symbol: Some(number) };
    let may: Vec<&str> = table.files_of(&filter).map(|file| file.name.as_str()).collect();
    assert!(
        !may.is_empty() && may.len() < table.files().len() / 4,
        "{} of {}",
        may.len(),
        table.files().len()
    );
    let holds = |filter: Filter| {
        let has = |file| {
            let rows = table.read_file(file).unwrap();
            let piece = rows.piece(&Filter { symbol: None, ..filter });
            piece.is_some_and(|piece| piece.keys(0).unwrap().unwrap().as_slice().contains(&number))
        };
        table.files().iter().filter(move |file| has(file)).map(|file| file.name.as_str()).collect::<Vec<_>>()
    };
    assert!(holds(filter).iter().all(|name| may.contains(name)), "a file with such rows was left out");
}

#[test]
fn retention_drops_memory_and_files_and_refuses_older_rows() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let durable = create(&arena, &disk, &Options { log_file_bytes: 2000, ..Options::default() });
    feed::append_all(&durable, 1..=30);
    durable.flush(200).unwrap();
    let kept_from = 400;
    let dropped = durable.drop_before(kept_from).unwrap();
    assert!(dropped.rows > 0 && dropped.file_rows > 0 && dropped.files > 0, "{dropped:?}");
    assert_eq!(feed::check_from(&durable, kept_from), 30);
    let old = durable.append(None, &Rows::of(1).cells()).unwrap_err();
    assert!(matches!(old, TableError::TooOld { kept_from: 400, .. }), "{old:?}");
    for batch in 31..=35 {
        feed::append(&durable, batch).unwrap();
    }
    drop(durable);
    for disk in [disk.after_kill(), disk.after_crash(5)] {
        let arena = feed::arena();
        let (durable, _) = Durable::open(&arena, Arc::new(disk.clone()), &Options::default()).unwrap();
        assert_eq!(feed::check_from(&durable, kept_from), 35);
        assert!(matches!(durable.append(None, &Rows::of(1).cells()), Err(TableError::TooOld { .. })));
        let files = durable.read().unwrap().files().len();
        let parquet = disk.list().unwrap().iter().filter(|name| name.ends_with(".parquet")).count();
        assert_eq!(files, parquet);
    }
}

#[test]
fn a_backup_opens_as_the_table_that_it_was_taken_of() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let durable = create(&arena, &disk, &Options { log_file_bytes: 1500, ..Options::default() });
    feed::append_all(&durable, 1..=20);
    durable.flush(200).unwrap();
    let copy = SimDisk::default();
    let backup = durable.backup(&copy).unwrap();
    assert_eq!(backup.files, copy.list().unwrap().len());
    assert!(matches!(durable.backup(&copy), Err(TableError::Exists { .. })));
    feed::append(&durable, 21).unwrap();
    let other = feed::arena();
    let (restored, recovery) =
        Durable::open(&other, Arc::new(copy.after_crash(1)), &Options::default()).unwrap();
    assert_eq!((feed::check(&restored), recovery.tail), (20, None));
    feed::append(&restored, 21).unwrap();
    assert_eq!((feed::check(&restored), feed::check(&durable)), (21, 21));
    assert!(durable.verify().unwrap() > 0);
    let file = durable.read().unwrap().files()[0].name.clone();
    disk.damage(&file, |bytes| bytes[20] ^= 4);
    let is_named =
        |error: TableError| matches!(error, TableError::Damaged { path, .. } if path.ends_with(&file));
    assert!(is_named(durable.verify().unwrap_err()));
    assert!(is_named(durable.backup(&SimDisk::default()).unwrap_err()), "damage is not copied");
}

#[test]
fn one_process_has_the_folder_and_both_ways_of_writing_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Disk::open(&folder.path().join("ring")).unwrap();
    if let Some(reason) = ring.why_no_ring() {
        planish_skip::skip("one_process_has_the_folder_and_both_ways_of_writing_give_the_same", reason);
    }
    let plain = Disk::open_plain(&folder.path().join("plain")).unwrap();
    assert!(plain.why_no_ring().is_some());
    let again = Disk::open(plain.path()).unwrap_err();
    assert!(matches!(&again, TableError::InUse { path } if path == plain.path()), "{again:?}");
    for disk in [ring, plain] {
        let path = disk.path().to_owned();
        let arena = feed::arena();
        let storage = Arc::new(disk);
        let options = Options { log_file_bytes: 1000, ..Options::default() };
        let durable = Durable::create(&arena, storage.clone(), feed::schema(), None, &options).unwrap();
        let twice = Durable::create(&arena, storage, feed::schema(), None, &options);
        assert!(matches!(twice, Err(TableError::Exists { .. })));
        feed::append_all(&durable, 1..=9);
        durable.flush(100).unwrap();
        drop(durable);
        let arena = feed::arena();
        let (durable, recovery) =
            Durable::open(&arena, Arc::new(Disk::open(&path).unwrap()), &options).unwrap();
        assert_eq!((feed::check(&durable), recovery.tail), (9, None));
    }
}

#[test]
fn a_ring_writes_what_a_plain_write_writes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(folder.path()).unwrap();
    let mut file = disk.create("x").unwrap();
    let mut wanted = Vec::new();
    for (round, length) in [1, 4096, 70_001, 0, 5].into_iter().enumerate() {
        let bytes = vec![round as u8 + 1; length];
        file.write_and_sync(wanted.len() as u64, &bytes).unwrap();
        wanted.extend_from_slice(&bytes);
    }
    assert_eq!(disk.read("x").unwrap(), wanted);
    file.cut(4000).unwrap();
    assert_eq!(disk.read("x").unwrap(), wanted[..4000]);
    disk.open("x").unwrap().sync().unwrap();
}

#[test]
fn ints_and_floats_at_their_ends_come_back_as_they_were() {
    let arena = feed::arena();
    let columns = [("t", Kind::Time), ("i", Kind::Int), ("f", Kind::Float)];
    let columns = columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec();
    let schema = Schema::new(columns, Partitioning { span: i64::MAX, symbols: None }).unwrap();
    let disk = SimDisk::default();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let durable = Durable::create(&arena, storage, schema, None, &Options::default()).unwrap();
    let times = [i64::MIN, -1, 0, i64::MAX];
    let floats = [f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE / 2.0, f64::INFINITY];
    durable.append(None, &[Cells::Times(&times), Cells::Ints(&times), Cells::Floats(&floats)]).unwrap();
    durable.append(None, &[Cells::Times(&[5]), Cells::Ints(&[5]), Cells::Floats(&[f64::NAN])]).unwrap();
    durable.append(None, &[Cells::Times(&[]), Cells::Ints(&[]), Cells::Floats(&[])]).unwrap();
    durable.flush(i64::MAX).unwrap();
    let check = |durable: &Durable<'_>| {
        let table = durable.read().unwrap();
        let (mut times, mut bits) = (Vec::new(), Vec::new());
        let mut take = |piece: &planish_table::Piece<'_>| {
            times.extend_from_slice(piece.times().as_slice());
            assert_eq!(piece.times().as_slice(), piece.whole(1).unwrap());
            bits.extend(piece.floats(2).unwrap().iter().map(|float| float.to_bits()));
        };
        table.scan(Filter::ALL).for_each(|piece| take(&piece));
        for file in table.files() {
            take(&table.read_file(file).unwrap().piece(&Filter::ALL).unwrap());
        }
        let mut rows: Vec<(i64, u64)> = times.into_iter().zip(bits).collect();
        rows.sort_unstable();
        let wanted =
            [(i64::MIN, floats[0]), (-1, floats[1]), (0, floats[2]), (5, f64::NAN), (i64::MAX, floats[3])];
        assert_eq!(rows, wanted.map(|(time, float)| (time, float.to_bits())));
    };
    check(&durable);
    drop(durable);
    let arena = feed::arena();
    check(&Durable::open(&arena, Arc::new(disk), &Options::default()).unwrap().0);
}
