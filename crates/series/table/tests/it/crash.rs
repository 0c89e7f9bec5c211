//! Losses of power at every write, full disks, failed syncs, torn and bit-flipped logs: all on a simulated disk.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use planish_table::{Ack, Durable, Options, Origin, Recovery, Storage, SyncPolicy, TableError};

use crate::feed::{self, PRODUCER, Rows};
use crate::simulated::{Fault, Rng, SimDisk};

/// Batches of a scenario.
const BATCHES: u64 = 9;

/// Log files of a few frames, so that there are several.
fn options() -> Options {
    Options { log_file_bytes: 1200, ..Options::default() }
}

fn open<'a>(arena: &'a planish_arena::Arena, disk: &SimDisk) -> Result<(Durable<'a>, Recovery), TableError> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    match disk.list().unwrap().iter().any(|name| name == "manifest") {
        true => Durable::open(arena, storage, &options()),
        false => {
            Ok((Durable::create(arena, storage, feed::schema(), None, &options())?, Recovery::default()))
        }
    }
}

/// Ingest and flush, until something fails; returns the last batch that was acknowledged.
fn scenario(disk: &SimDisk) -> (u64, Option<TableError>) {
    let arena = feed::arena();
    let mut acknowledged = 0;
    let mut run = || -> Result<(), TableError> {
        let (durable, _) = open(&arena, disk)?;
        for sequence in 1..=BATCHES {
            feed::append(&durable, sequence)?;
            acknowledged = sequence;
            if sequence % 4 == 0 {
                // Some rows of the newest batch go to files, the others stay: a replay meets it again.
                durable.flush(feed::through_newest(sequence))?;
            }
        }
        Ok(())
    };
    let error = run().err();
    (acknowledged, error)
}

/// What is there is a beginning of the feed that holds all that was acknowledged; sent again, nothing is doubled.
fn check_and_send_again(disk: &SimDisk, acknowledged: u64, what: &str) -> Recovery {
    let arena = feed::arena();
    let (durable, recovery) = open(&arena, disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let last = feed::check(&durable);
    assert!(last >= acknowledged, "{what}: {acknowledged} batches were acknowledged, {last} are there");
    for sequence in 1..=BATCHES {
        let wanted = if sequence <= last { Ack::Known } else { Ack::New };
        assert_eq!(feed::append(&durable, sequence).unwrap(), wanted, "{what}: batch {sequence}");
    }
    assert_eq!(feed::check(&durable), BATCHES, "{what}");
    durable.flush(i64::MAX).unwrap();
    assert_eq!(feed::check(&durable), BATCHES, "{what}: after a flush");
    recovery
}

#[test]
fn a_loss_of_power_at_any_write_loses_and_doubles_nothing() {
    let whole = SimDisk::default();
    assert_eq!(scenario(&whole).0, BATCHES);
    let (mut torn, mut removed) = (0, 0);
    for at in 0..whole.operations() {
        for seed in 0..2 {
            let disk = SimDisk::default();
            disk.set_fault(Some(Fault::Crash(at)));
            let (acknowledged, _) = scenario(&disk);
            let what = format!("stopped at operation {at}, seed {seed}");
            let recovery = check_and_send_again(&disk.after_crash(seed), acknowledged, &what);
            torn += usize::from(recovery.tail.is_some());
            removed += recovery.removed.len();
        }
        let disk = SimDisk::default();
        disk.set_fault(Some(Fault::Crash(at)));
        let (acknowledged, _) = scenario(&disk);
        check_and_send_again(&disk.after_kill(), acknowledged, &format!("killed at operation {at}"));
    }
    // Else the scenario does not ask what it is here for.
    assert!(torn > 3 && removed > 5, "{torn} torn tails, {removed} files without a manifest");
}

#[test]
fn a_loss_of_power_while_opening_loses_nothing_either() {
    let disk = SimDisk::default();
    disk.set_fault(Some(Fault::Crash(70)));
    let (acknowledged, error) = scenario(&disk);
    assert!(acknowledged > 3 && error.is_some());
    let torn = disk.after_crash(1);
    for at in 0..40 {
        let again = torn.after_kill();
        again.set_fault(Some(Fault::Crash(at)));
        let _ = scenario_send_again(&again, acknowledged);
        for seed in 0..3 {
            check_and_send_again(
                &again.after_crash(seed),
                acknowledged,
                &format!("at {at} of the open, {seed}"),
            );
        }
    }
}

/// Opens and goes on as a producer does: from the first batch that was not acknowledged.
fn scenario_send_again(disk: &SimDisk, acknowledged: u64) -> Result<(), TableError> {
    let arena = feed::arena();
    let (durable, _) = open(&arena, disk)?;
    for sequence in acknowledged + 1..=BATCHES {
        feed::append(&durable, sequence)?;
    }
    durable.flush(i64::MAX).map(drop)
}

pub fn kernel_error(error: &TableError) -> ErrorKind {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let shared = error.downcast_ref::<Arc<io::Error>>().map(AsRef::as_ref);
        if let Some(error) = error.downcast_ref::<io::Error>().or(shared) {
            return error.kind();
        }
        cause = error.source();
    }
    panic!("no error of the kernel behind {error:?}")
}

#[test]
fn a_full_disk_takes_nothing_and_later_goes_on() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let (durable, _) = open(&arena, &disk).unwrap();
    for room in [0, 300, 1000, 0, 1900] {
        let before = feed::check(&durable);
        disk.set_fault(Some(Fault::Room(disk.used_bytes() + room)));
        let mut sequence = before + 1;
        let error = loop {
            match feed::append(&durable, sequence) {
                Ok(ack) => assert_eq!(ack, Ack::New),
                Err(error) => break error,
            }
            sequence += 1;
        };
        assert!(matches!(error, TableError::LogWrite { .. }), "{error:?}");
        assert_eq!(kernel_error(&error), ErrorKind::StorageFull);
        assert_eq!(feed::check(&durable), sequence - 1, "what was refused is not there");
        let ahead = feed::append(&durable, sequence + 1);
        assert!(
            matches!(ahead, Err(TableError::SequenceGap { want, .. }) if want == sequence),
            "a batch must not overtake the one that was refused: {ahead:?}"
        );
        if sequence > 1 {
            let flush = durable.flush(i64::MAX);
            assert!(flush.is_err_and(|error| kernel_error(&error) == ErrorKind::StorageFull));
        }
        assert_eq!(feed::check(&durable), sequence - 1, "a flush that failed changed nothing");
        // Somebody makes room.
        disk.set_fault(None);
        assert_eq!(feed::append(&durable, sequence).unwrap(), Ack::New);
        check_and_send_again_beyond(&disk.after_crash(7), sequence);
    }
    durable.flush(i64::MAX).unwrap();
    feed::check(&durable);
}

fn check_and_send_again_beyond(disk: &SimDisk, acknowledged: u64) {
    let arena = feed::arena();
    let (durable, _) = open(&arena, disk).unwrap();
    assert!(feed::check(&durable) >= acknowledged);
}

#[test]
fn any_one_operation_that_fails_is_survived() {
    let whole = SimDisk::default();
    scenario(&whole);
    for at in 0..whole.operations() {
        let disk = SimDisk::default();
        disk.set_fault(Some(Fault::Fail(at, ErrorKind::StorageFull)));
        let (acknowledged, _) = scenario(&disk);
        for seed in 0..2 {
            check_and_send_again(
                &disk.after_crash(seed),
                acknowledged,
                &format!("operation {at} failed, {seed}"),
            );
        }
        check_and_send_again(&disk.after_kill(), acknowledged, &format!("operation {at} failed"));
    }
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_until_the_table_is_opened_anew() {
    for after in 0..8 {
        let disk = SimDisk::default();
        let arena = feed::arena();
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let durable = Durable::create(&arena, storage, feed::schema(), None, &Options::default()).unwrap();
        // With the first batch the file is there: what fails from then on is the sync of a frame.
        feed::append(&durable, 1).unwrap();
        disk.set_fault(Some(Fault::FailSync(disk.operations() + after)));
        let (mut acknowledged, mut sequence) = (1, 2);
        let error = loop {
            match feed::append(&durable, sequence) {
                Ok(_) => acknowledged = sequence,
                Err(error) => break error,
            }
            sequence += 1;
        };
        assert!(matches!(error, TableError::LogLost { .. }), "{error:?}");
        // The disk works again; a log that trusted the next sync would lose the batch that was not synced.
        for _ in 0..3 {
            let again = feed::append(&durable, sequence);
            assert!(matches!(again, Err(TableError::LogLost { .. })), "{again:?}");
        }
        assert!(matches!(durable.sync(), Err(TableError::LogLost { .. })));
        assert!(matches!(durable.flush(i64::MAX), Err(TableError::LogLost { .. })));
        assert_eq!(feed::check(&durable), acknowledged, "readers go on with what was acknowledged");
        drop(durable);
        check_and_send_again(&disk.after_crash(after as u64), acknowledged, &format!("sync failed, {after}"));
    }
}

/// A log of one file, closed, and where its frames begin.
fn closed_log(batches: u64) -> (SimDisk, String) {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let durable =
        Durable::create(&arena, Arc::new(disk.clone()), feed::schema(), None, &Options::default()).unwrap();
    feed::append_all(&durable, 1..=batches);
    drop(durable);
    let name = disk.list().unwrap().into_iter().find(|name| name.ends_with(".log")).unwrap();
    (disk, name)
}

#[test]
fn a_flipped_bit_anywhere_in_a_closed_log_is_reported_with_its_place() {
    let (disk, name) = closed_log(4);
    let bytes = disk.read(&name).unwrap();
    // The mark that closes the log is a frame without a payload.
    let mark = bytes.len() - 40;
    let mut offsets = BTreeSet::new();
    let mut rng = Rng(20_261_121);
    for round in 0..600 {
        let at = if round < 200 { round * bytes.len() / 200 } else { rng.below(bytes.len()) };
        let broken = disk.after_kill();
        broken.damage(&name, |bytes| bytes[at] ^= 1 << (round % 8));
        let arena = feed::arena();
        match Durable::open(&arena, Arc::new(broken.clone()), &Options::default()) {
            Err(TableError::Damaged { path, offset, .. }) => {
                assert!(path.ends_with(&name) && offset <= at as u64, "{at}: {path:?} {offset}");
                offsets.insert(offset);
            }
            Ok((durable, recovery)) => {
                let tail = recovery.tail.expect("what was cut off is told");
                assert!(at >= mark && tail.offset == mark as u64, "{at}: {tail:?}");
                assert_eq!(feed::check(&durable), 4);
            }
            Err(other) => panic!("{at}: {other:?}"),
        }
        assert!(broken.list().unwrap().contains(&name), "a damaged log is left as it is");
    }
    // The head, and each of four frames.
    assert_eq!(offsets.len(), 5, "{offsets:?}");
}

#[test]
fn a_log_cut_anywhere_is_a_torn_tail_and_told() {
    let (disk, name) = closed_log(3);
    let bytes = disk.read(&name).unwrap();
    for cut in (0..bytes.len()).step_by(5) {
        let torn = disk.after_kill();
        torn.damage(&name, |bytes| bytes.truncate(cut));
        let arena = feed::arena();
        let (durable, recovery) = Durable::open(&arena, Arc::new(torn.clone()), &Options::default()).unwrap();
        let last = feed::check(&durable);
        let kept = recovery.tail.as_ref().map_or(cut as u64, |tail| tail.offset);
        assert!(kept <= cut as u64);
        if let Some(tail) = &recovery.tail {
            assert_eq!((tail.offset + tail.bytes, tail.frames), (cut as u64, 0));
        }
        for sequence in last + 1..=5 {
            assert_eq!(feed::append(&durable, sequence).unwrap(), Ack::New);
        }
        drop(durable);
        let arena = feed::arena();
        let (durable, recovery) = Durable::open(&arena, Arc::new(torn), &Options::default()).unwrap();
        assert_eq!((feed::check(&durable), recovery.tail), (5, None));
    }
}

#[test]
fn missing_foreign_and_newer_files_are_refused_by_name() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let (durable, _) = open(&arena, &disk).unwrap();
    feed::append_all(&durable, 1..=9);
    drop(durable);
    let logs: Vec<String> = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    assert!(logs.len() >= 3, "{logs:?}");
    let refused = |change: &dyn Fn(&SimDisk)| {
        let disk = disk.after_kill();
        change(&disk);
        let arena = feed::arena();
        open(&arena, &disk).map(drop).unwrap_err()
    };
    let first = refused(&|disk| disk.remove(&logs[0]).unwrap());
    assert!(matches!(first, TableError::LogMissing { from: 1, .. }), "{first:?}");
    let middle = refused(&|disk| disk.remove(&logs[1]).unwrap());
    assert!(matches!(&middle, TableError::Damaged { path, .. } if path.ends_with(&logs[2])), "{middle:?}");
    let other = closed_log(1);
    let foreign = refused(&|disk| disk.damage(&logs[0], |bytes| *bytes = other.0.read(&other.1).unwrap()));
    assert!(
        matches!(&foreign, TableError::Damaged { reason, .. } if reason.contains("another table")),
        "{foreign:?}"
    );
    let head_and_frame = refused(&|disk| {
        disk.damage(logs.last().unwrap(), |bytes| {
            bytes.truncate(90);
            (bytes[3], bytes[60]) = (0, 0);
        });
    });
    assert!(matches!(head_and_frame, TableError::Damaged { offset: 0, .. }), "{head_and_frame:?}");
    let newer = refused(&|disk| {
        disk.damage(&logs[1], |bytes| {
            bytes[8] = 9;
            let crc = crc32c::crc32c(&bytes[..36]);
            bytes[36..40].copy_from_slice(&crc.to_le_bytes());
        });
    });
    assert!(matches!(newer, TableError::Newer { version: 9, known: 2, .. }), "{newer:?}");
    let newer = refused(&|disk| {
        disk.damage("manifest", |bytes| {
            let at = bytes.iter().position(|&byte| byte == b' ').unwrap() + 1;
            bytes[at] = b'7';
        });
    });
    assert!(matches!(newer, TableError::Newer { version: 7, known: 2, .. }), "{newer:?}");
    let damaged = refused(&|disk| disk.damage("manifest", |bytes| *bytes.last_mut().unwrap() ^= 1));
    assert!(
        matches!(&damaged, TableError::Damaged { path, .. } if path.ends_with("manifest")),
        "{damaged:?}"
    );
}

#[test]
fn what_was_acknowledged_without_a_sync_survives_a_kill_and_a_part_of_it_a_loss_of_power() {
    let arena = feed::arena();
    let disk = SimDisk::default();
    let options = Options { sync: SyncPolicy::Never, ..options() };
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let durable = Durable::create(&arena, storage, feed::schema(), None, &options).unwrap();
    for sequence in 1..=6 {
        let origin = Origin { producer: PRODUCER, sequence };
        assert_eq!(durable.append(Some(origin), &Rows::of(sequence).cells()).unwrap(), Ack::New);
    }
    check_and_send_again(&disk.after_kill(), 6, "killed without a sync");
    let mut lost = 0;
    for seed in 0..20 {
        let disk = disk.after_crash(seed);
        let arena = feed::arena();
        let (durable, _) = open(&arena, &disk).expect("a tail that was never synced is torn, not damaged");
        lost += 6 - feed::check(&durable);
    }
    assert!(lost > 0, "a disk that loses nothing shows nothing");
    durable.sync().unwrap();
    for seed in 0..20 {
        check_and_send_again(&disk.after_crash(seed), 6, "synced");
    }
}
