//! What is left of damaged tables: every batch whose checksum holds, and the names of all others.

use std::collections::BTreeSet;
use std::sync::Arc;

use planish_table::{
    Ack, Durable, LostBatches, MissingSequences, Options, Origin, Salvage, Storage, TableError, salvage,
};
use proptest::prelude::*;

use crate::feed::{self, PRODUCER, ROWS, Rows};
use crate::simulated::SimDisk;

const BATCHES: u64 = 20;

/// A closed table: some files, and a log of several.
fn table(flush: bool) -> SimDisk {
    let (arena, disk) = (feed::arena(), SimDisk::default());
    let options = Options { log_file_bytes: 1400, ..Options::default() };
    let durable = Durable::create(&arena, Arc::new(disk.clone()), feed::schema(), None, &options).unwrap();
    for batch in 1..=BATCHES {
        feed::append(&durable, batch).unwrap();
        if flush && batch == 8 {
            durable.flush(feed::through_newest(4)).unwrap();
        }
    }
    disk
}

fn logs(disk: &SimDisk) -> Vec<String> {
    let mut logs: Vec<String> = disk.list().unwrap();
    logs.retain(|name| name.ends_with(".log"));
    logs.sort();
    logs
}

/// Salvages, opens what is left, and looks that all rows but those of lost batches are there, once each.
fn check(disk: &SimDisk) -> (Salvage, BTreeSet<u64>, SimDisk) {
    let before: Vec<_> = disk.list().unwrap().iter().map(|name| disk.read(name).unwrap()).collect();
    let to = SimDisk::default();
    let salvaged = salvage(disk, &to).unwrap();
    let after: Vec<_> = disk.list().unwrap().iter().map(|name| disk.read(name).unwrap()).collect();
    assert!(before == after, "a damaged table is only read");
    let arena = feed::arena();
    let (durable, recovery) = Durable::open(&arena, Arc::new(to.clone()), &Options::default()).unwrap();
    assert_eq!((recovery.tail, recovery.removed), (None, Vec::new()));
    let counts = feed::counts(&durable);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let is_there =
        |batch: u64| (batch * ROWS..(batch + 1) * ROWS).all(|row| counts.contains_key(&(row as i64)));
    let missing: BTreeSet<u64> = (1..=BATCHES).filter(|&batch| !is_there(batch)).collect();
    (salvaged, missing, to)
}

/// Batches of the feed are the batches of the log, so their numbers are known.
fn lost(salvaged: &Salvage) -> BTreeSet<u64> {
    salvaged.lost.iter().flat_map(|lost| lost.from..=lost.through.unwrap_or(BATCHES)).collect()
}

#[test]
fn a_whole_table_is_copied_whole() {
    for flush in [false, true] {
        let (salvaged, missing, to) = check(&table(flush));
        assert!(salvaged.is_whole() && missing.is_empty() && salvaged.sequences.is_empty(), "{salvaged:?}");
        assert_eq!(salvaged.files > 0, flush);
        assert!(salvaged.rows >= salvaged.batches * ROWS);
        let again = salvage(&to, &to);
        assert!(matches!(again, Err(TableError::Exists { .. })), "{again:?}");
    }
}

#[test]
fn the_batch_of_a_flipped_bit_is_named_and_all_others_are_kept() {
    let disk = table(false);
    let name = logs(&disk)[1].clone();
    disk.damage(&name, |bytes| bytes[300] ^= 1);
    let arena = feed::arena();
    let opened = Durable::open(&arena, Arc::new(disk.clone()), &Options::default()).map(drop);
    assert!(matches!(opened, Err(TableError::Damaged { .. })), "never on its own: {opened:?}");
    let (salvaged, missing, to) = check(&disk);
    let [LostBatches { from, through, path, offset, bytes }] = &salvaged.lost[..] else {
        panic!("{salvaged:?}")
    };
    assert_eq!((missing, *through), (BTreeSet::from([*from]), Some(*from)));
    assert!(path.ends_with(&name) && (*offset..*offset + *bytes).contains(&300), "{salvaged:?}");
    let producer = PRODUCER.to_owned();
    let wanted = MissingSequences { producer, after: Some(*from - 1), through: *from };
    assert_eq!(salvaged.sequences, [wanted]);
    // It goes on, and what was lost can be sent under another name.
    let arena = feed::arena();
    let (durable, recovery) = Durable::open(&arena, Arc::new(to), &Options::default()).unwrap();
    assert_eq!(recovery.lost, 1);
    assert_eq!(feed::append(&durable, *from).unwrap(), Ack::Known);
    let origin = Origin { producer: "again", sequence: 1 };
    assert_eq!(durable.append(Some(origin), &Rows::of(*from).cells()).unwrap(), Ack::New);
    assert_eq!(feed::check(&durable), BATCHES);
    durable.flush(i64::MAX).unwrap();
    assert_eq!(feed::append(&durable, BATCHES + 1).unwrap(), Ack::New);
}

#[test]
fn missing_files_torn_ends_and_damaged_heads_are_named() {
    let whole = table(false);
    let names = logs(&whole);
    let damaged = |change: &dyn Fn(&SimDisk)| {
        let disk = whole.after_kill();
        change(&disk);
        check(&disk)
    };
    let (salvaged, missing, _) = damaged(&|disk| disk.remove(&names[1]).unwrap());
    assert!(missing.len() > 1 && lost(&salvaged) == missing && salvaged.lost[0].bytes == 0, "{salvaged:?}");
    let (salvaged, missing, _) = damaged(&|disk| disk.damage(&names[0], |bytes| bytes[9] ^= 4));
    assert!(
        salvaged.lost.is_empty() && missing.is_empty(),
        "frames tell their numbers themselves: {salvaged:?}"
    );
    // The last with a batch; behind it the mark that closes the log has a file of its own.
    let last = names.iter().rfind(|name| whole.read(name).unwrap().len() > 100).unwrap();
    let (salvaged, missing, _) = damaged(&|disk| disk.damage(last, |bytes| bytes.truncate(bytes.len() - 50)));
    let [LostBatches { through: Some(BATCHES), path, .. }] = &salvaged.lost[..] else {
        panic!("{salvaged:?}")
    };
    assert!(path.ends_with(last) && missing == BTreeSet::from([BATCHES]), "{missing:?}");
    // Without the mark nothing tells how many there were.
    let mark = names.last().unwrap();
    let (salvaged, missing, _) = damaged(&|disk| {
        disk.remove(mark).unwrap();
        disk.damage(last, |bytes| bytes.truncate(bytes.len() - 50));
    });
    let [LostBatches { from: BATCHES, through: None, .. }] = &salvaged.lost[..] else {
        panic!("{salvaged:?}")
    };
    assert_eq!(missing, BTreeSet::from([BATCHES]));
    // A cut that leaves whole frames, or nothing, leaves nothing behind that is odd: the mark alone tells.
    let first: u64 = last.strip_suffix(".log").unwrap().parse().unwrap();
    // Nothing, and the head of the file alone.
    for bytes in [0, 40] {
        let (salvaged, missing, _) = damaged(&|disk| disk.damage(last, |file| file.truncate(bytes)));
        assert_eq!(lost(&salvaged), (first..=BATCHES).collect::<BTreeSet<u64>>(), "{bytes}: {salvaged:?}");
        assert_eq!(missing, lost(&salvaged), "{bytes}");
    }
    let newer = whole.after_kill();
    newer.damage(&names[0], |bytes| {
        bytes[8] = 9;
        let crc = crc32c::crc32c(&bytes[..36]);
        bytes[36..40].copy_from_slice(&crc.to_le_bytes());
    });
    assert!(matches!(salvage(&newer, &SimDisk::default()), Err(TableError::Newer { version: 9, .. })));
    whole.damage("manifest", |bytes| *bytes.last_mut().unwrap() ^= 1);
    assert!(matches!(salvage(&whole, &SimDisk::default()), Err(TableError::Damaged { .. })));
}

#[test]
fn a_damaged_file_is_left_out_with_its_rows_and_times() {
    let disk = table(true);
    let mut files: Vec<String> = disk.list().unwrap();
    files.retain(|name| name.ends_with(".parquet"));
    disk.damage(&files[0], |bytes| bytes[30] ^= 1);
    disk.remove(&files[1]).unwrap();
    let (salvaged, missing, to) = check(&disk);
    assert!(salvaged.lost.is_empty() && !salvaged.is_whole() && !missing.is_empty());
    let names: Vec<&str> = salvaged.lost_files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, [&files[0], &files[1]]);
    let arena = feed::arena();
    let (durable, _) = Durable::open(&arena, Arc::new(to), &Options::default()).unwrap();
    let there = feed::counts(&durable);
    let gone: Vec<i64> = ((ROWS as i64)..).take_while(|row| *row < ((BATCHES + 1) * ROWS) as i64).collect();
    let gone: Vec<i64> = gone.into_iter().filter(|row| !there.contains_key(row)).collect();
    assert_eq!(salvaged.lost_files.iter().map(|file| file.rows).sum::<u64>(), gone.len() as u64);
    let is_told = |row: &i64| {
        salvaged
            .lost_files
            .iter()
            .any(|file| file.times.is_some_and(|(low, high)| (low..=high).contains(&feed::time(*row))))
    };
    assert!(gone.iter().all(is_told), "{gone:?}: {salvaged:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn whatever_is_damaged_the_rest_opens_and_what_is_lost_is_named(
        flush in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u16>(), 1..=255u8), 1..9),
        cut in prop::option::of((any::<prop::sample::Index>(), any::<u16>())),
    ) {
        let disk = table(flush);
        let names = logs(&disk);
        for (file, at, bits) in changes {
            disk.damage(file.get(&names).as_str(), |bytes| {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= bits;
            });
        }
        if let Some((file, at)) = cut {
            disk.damage(file.get(&names).as_str(), |bytes| bytes.truncate(usize::from(at) % bytes.len()));
        }
        let (salvaged, missing, to) = check(&disk);
        let lost = lost(&salvaged);
        // A lost batch may have rows in files too; nothing is missing that is not named.
        prop_assert!(missing.is_subset(&lost), "{:?} of {:?}", missing, lost);
        prop_assert!(flush || missing == lost || salvaged.lost.iter().any(|lost| lost.through.is_none()));
        let arena = feed::arena();
        let (durable, recovery) = Durable::open(&arena, Arc::new(to), &Options::default()).unwrap();
        let known: u64 = salvaged.lost.iter().filter_map(|lost| Some(lost.through? + 1 - lost.from)).sum();
        prop_assert_eq!((recovery.lost, recovery.batches), (known, salvaged.batches));
        let last = durable.read().unwrap().sequence(PRODUCER).unwrap_or(0);
        for batch in &missing {
            let is_told = |it: &MissingSequences| it.after.unwrap_or(0) < *batch && *batch <= it.through;
            prop_assert!(*batch > last || salvaged.sequences.iter().any(is_told), "{}: {:?}", batch, salvaged);
        }
        prop_assert_eq!(feed::append(&durable, last + 1).unwrap(), Ack::New);
    }
}
