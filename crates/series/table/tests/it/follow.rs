//! Followers: of a table that goes on step by step, and of processes that are killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use planish_table::{Durable, Follower, Options, Storage, TableError, View};

use crate::corrections::{self, Model};
use crate::feed;
use crate::kill::{self, this_test};
use crate::simulated::{Rng, SimDisk};

/// What a follower sees, from a reading that no file went away from.
fn seen<T>(
    follower: &Follower<'_>,
    look: impl Fn(&planish_table::Reading<'_, '_>) -> Result<T, TableError>,
) -> T {
    loop {
        let reading = follower.read().unwrap();
        match look(&reading) {
            Ok(seen) => return seen,
            Err(error) => assert!(error.is_gone(), "{error}"),
        }
    }
}

fn counts(follower: &Follower<'_>) -> BTreeMap<i64, usize> {
    seen(follower, feed::counts_of)
}

#[test]
fn a_follower_has_what_the_table_has_after_every_step() {
    let (arena, other) = (feed::arena(), feed::arena());
    let disk = SimDisk::default();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let missing = Follower::open(&other, Arc::clone(&storage)).unwrap_err();
    assert!(missing.is_gone(), "{missing}");
    let options = Options { log_file_bytes: 1500, ..Options::default() };
    let mut durable = Durable::create(&arena, Arc::clone(&storage), feed::schema(), None, &options).unwrap();
    let follower = Follower::open(&other, Arc::clone(&storage)).unwrap();
    assert_eq!((follower.schema(), follower.time_unit()), (durable.schema(), None));
    let mut kept_from = i64::MIN;
    for sequence in 1..=80 {
        feed::append(&durable, sequence).unwrap();
        match sequence % 16 {
            3 => drop(durable.flush(feed::through_newest(sequence)).unwrap()),
            9 => drop(durable.compact(i64::MAX).unwrap()),
            12 => {
                kept_from = feed::time(i64::try_from(sequence).unwrap()).div_euclid(feed::SPAN) * feed::SPAN;
                let _dropped = durable.drop_before(kept_from).unwrap();
            }
            15 => {
                // Another process goes on.
                drop(durable);
                durable = Durable::open(&arena, Arc::clone(&storage), &options).unwrap().0;
            }
            _ => {}
        }
        let there = counts(&follower);
        assert_eq!(there, feed::counts(&durable), "batch {sequence}");
        assert_eq!(feed::check_counts(&there, kept_from), sequence);
        assert_eq!(follower.read().unwrap().sequence(feed::PRODUCER), Some(sequence));
        // One that begins now has the same.
        let (late, arena) = (sequence % 7 == 0, feed::arena());
        if late {
            let follower = Follower::open(&arena, Arc::clone(&storage)).unwrap();
            assert_eq!(counts(&follower), there, "batch {sequence}");
        }
    }
    let operations = disk.operations();
    follower.refresh().unwrap();
    assert_eq!(disk.operations(), operations, "a follower has written");
}

#[test]
fn what_is_half_written_is_read_when_it_is_whole_and_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (arena, other) = (feed::arena(), feed::arena());
    let table = folder.path().join("table");
    let disk = Arc::new(planish_table::Disk::open(&table).unwrap());
    let durable = Durable::create(&arena, disk, feed::schema(), None, &Options::default()).unwrap();
    feed::append_all(&durable, 1..=6);
    drop(durable);
    // A copy of which the log grows byte by byte.
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    feed::copy(&table, &copy);
    let name = format!("{:020}.log", 1);
    let bytes = std::fs::read(table.join(&name)).unwrap();
    std::fs::remove_file(copy.join(&name)).unwrap();
    let follower = Follower::open(&other, Arc::new(View::of(&copy))).unwrap();
    let mut last = 0;
    for end in (0..=bytes.len()).step_by(13).chain([bytes.len()]) {
        std::fs::write(copy.join(&name), &bytes[..end]).unwrap();
        let there = feed::check_counts(&counts(&follower), i64::MIN);
        assert!(there >= last && there <= last + 1, "{there} after {last}");
        last = there;
    }
    assert_eq!(last, 6);
    // A byte of a batch in the middle that later ones say was synced.
    let mut broken = bytes.clone();
    broken[bytes.len() / 2] ^= 1;
    std::fs::write(copy.join(&name), &broken).unwrap();
    let arena = feed::arena();
    let error = Follower::open(&arena, Arc::new(View::of(&copy))).unwrap_err();
    assert!(matches!(&error, TableError::Damaged { path, .. } if path.ends_with(&name)), "{error}");
    let view = View::of(&copy);
    for refused in
        [view.remove(&name).unwrap_err(), view.sync_folder().unwrap_err(), view.create("x").unwrap_err()]
    {
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    }
}

/// Starts a child that works in a folder, lets it be looked at, kills it, several times; a look gets the number of the
/// last batch that was acknowledged by then.
fn while_killed(test: &str, variable: &str, folder: &Path, mut look: impl FnMut(u64)) {
    let mut rng = Rng(20_261_130);
    let acknowledged = AtomicU64::new(0);
    for _ in 0..4 {
        let mut child = this_test(test).env(variable, folder).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::scope(|scope| {
            let acknowledged = &acknowledged;
            let reader = scope.spawn(move || {
                for line in lines.map_while(Result::ok) {
                    if let Some(number) = line.strip_prefix("acknowledged ") {
                        acknowledged.fetch_max(number.parse().unwrap(), Ordering::SeqCst);
                    }
                }
            });
            let (began, before) = (Instant::now(), acknowledged.load(Ordering::SeqCst));
            let time = Duration::from_millis(100 + rng.below(100) as u64);
            // Not before it has done something.
            while began.elapsed() < time || acknowledged.load(Ordering::SeqCst) == before {
                assert!(began.elapsed() < Duration::from_secs(60), "the child does nothing");
                look(acknowledged.load(Ordering::SeqCst));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            reader.join().unwrap();
        });
        look(acknowledged.load(Ordering::SeqCst));
    }
    assert!(acknowledged.load(Ordering::SeqCst) > 0);
}

/// Opens a follower as soon as there is a table.
fn follow<'a>(arena: &'a planish_arena::Arena, folder: &Path) -> Option<Follower<'a>> {
    match Follower::open(arena, Arc::new(View::of(folder))) {
        Ok(follower) => Some(follower),
        Err(error) => {
            assert!(error.is_gone(), "{error}");
            None
        }
    }
}

#[test]
fn a_follower_of_processes_that_are_killed_sees_what_was_acknowledged_and_no_gap() {
    let test = "follow::a_follower_of_processes_that_are_killed_sees_what_was_acknowledged_and_no_gap";
    if let Some(folder) = std::env::var_os(kill::KILL_FOLDER) {
        kill::ingest(Path::new(&folder)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let arena = feed::arena();
    let (mut follower, mut last, mut looks) = (None, 0, 0);
    while_killed(test, kill::KILL_FOLDER, folder.path(), |acknowledged| {
        if follower.is_none() {
            follower = follow(&arena, folder.path());
        }
        let Some(follower) = &follower else { return assert_eq!(acknowledged, 0) };
        let there = feed::check_counts(&counts(follower), i64::MIN);
        assert!(there >= acknowledged.max(last), "{there}, after {last}, of {acknowledged}");
        (last, looks) = (there, looks + 1);
    });
    assert!(last > 0 && looks > 4, "{looks} looks, {last} batches");
}

#[test]
fn a_follower_sees_corrections_as_they_were_after_some_batch() {
    let test = "follow::a_follower_sees_corrections_as_they_were_after_some_batch";
    if let Some(folder) = std::env::var_os(kill::CORRECT_FOLDER) {
        kill::correct(Path::new(&folder)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let arena = feed::arena();
    let (mut follower, mut model, mut applied) = (None, Model::new(), 0);
    while_killed(test, kill::CORRECT_FOLDER, folder.path(), |acknowledged| {
        if follower.is_none() {
            follower = follow(&arena, folder.path());
        }
        let Some(follower) = &follower else { return assert_eq!(acknowledged, 0) };
        let (there, rows) = seen(follower, |reading| {
            Ok((reading.sequence(corrections::PRODUCER).unwrap_or(0), corrections::contents_of(reading)?))
        });
        assert!(there >= acknowledged.max(applied), "{there}, after {applied}, of {acknowledged}");
        (applied + 1..=there).map(corrections::batch).for_each(|step| corrections::apply(&mut model, &step));
        assert_eq!(rows, model, "after {there} batches");
        applied = there;
    });
    assert!(applied > 0);
}
