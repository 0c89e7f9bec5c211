//! Memory that a flush hands to the kernel, as the kernel counts it: resident bytes of a process of its own, and free
//! pages of a pool.

use std::process::{Command, Stdio};
use std::sync::Arc;

use planish_arena::{Arena, Fallback, Growth, Page, Preference};
use planish_table::{Cells, Column, Durable, Kind, Options, Partitioning, Schema, SyncPolicy};

const MB: usize = 1 << 20;
const CHILD: &str = "PLANISH_TABLE_RELEASE_CHILD";
const ROWS_OF_BATCH: i64 = 20_000;
const BATCHES: i64 = 100;
/// Times of a partition: some batches.
const SPAN: i64 = 10 * ROWS_OF_BATCH;

fn schema() -> Schema {
    let columns = [("time", Kind::Time), ("price", Kind::Float), ("size", Kind::Int)];
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    Schema::new(columns.map(column).to_vec(), Partitioning { span: SPAN, symbols: None }).unwrap()
}

fn fill(durable: &Durable<'_>) {
    for batch in 0..BATCHES {
        let times: Vec<i64> = (batch * ROWS_OF_BATCH..(batch + 1) * ROWS_OF_BATCH).collect();
        let prices: Vec<f64> = times.iter().map(|time| (time % 1000) as f64).collect();
        durable.append(None, &[Cells::Times(&times), Cells::Floats(&prices), Cells::Ints(&times)]).unwrap();
    }
    durable.sync().unwrap();
    assert_eq!(durable.read().unwrap().rows() as i64, BATCHES * ROWS_OF_BATCH);
}

fn table<'a>(arena: &'a Arena, spare_bytes: usize, folder: &std::path::Path) -> Durable<'a> {
    let disk = Arc::new(planish_table::Disk::open(folder).unwrap());
    let sync = SyncPolicy::Never;
    let options = Options { sync, spare_bytes, log_file_bytes: 4 << 20, ..Options::default() };
    Durable::create(arena, disk, schema(), None, &options).unwrap()
}

fn arena(page: Page, fallback: Fallback) -> Arena {
    let growth = Growth { first_bytes: 8 * MB, cap_bytes: 8 * MB };
    Arena::builder().page(Preference::From(page)).fallback(fallback).growth(growth).build().unwrap()
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * Page::Base.bytes()
}

/// Fills a table, flushes half of it, then all, and tells what the kernel counted.
fn child() {
    let folder = tempfile::tempdir().unwrap();
    let arena = arena(Page::Base, Fallback::Refuse);
    let durable = table(&arena, 0, folder.path());
    fill(&durable);
    let full = resident_bytes();
    let half = durable.flush(BATCHES / 2 * ROWS_OF_BATCH).unwrap();
    let after_half = resident_bytes();
    let rest = durable.flush(i64::MAX).unwrap();
    let after_all = resident_bytes();
    fill(&table(&arena, 0, &folder.path().join("again")));
    println!("counted {full} {} {after_half} {} {after_all}", half.released_bytes, rest.released_bytes);
}

#[test]
fn a_flush_hands_its_memory_to_the_kernel() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "release::a_flush_hands_its_memory_to_the_kernel", "--nocapture"]);
    let output = command.env(CHILD, "1").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let counted = said.lines().find_map(|line| line.split_once("counted ")).map(|(_, numbers)| numbers);
    let counted: Vec<usize> = counted.unwrap().split(' ').map(|number| number.parse().unwrap()).collect();
    let [full, half_released, after_half, rest_released, after_all] = counted[..] else { panic!("{said}") };
    let column_bytes = BATCHES as usize * ROWS_OF_BATCH as usize * 24;
    assert!(half_released > column_bytes / 3 && half_released + rest_released >= column_bytes, "{said}");
    // What encoders of Parquet keep of the heap lies between.
    let heap = 12 * MB;
    assert!(after_half < full - half_released + heap, "{said}");
    assert!(after_all + column_bytes < full + heap, "{said}");
    println!("{said}");
}

#[test]
fn pages_of_a_pool_are_free_for_others_after_a_flush() {
    let test = "pages_of_a_pool_are_free_for_others_after_a_flush";
    let Some(pool) = crate::pool::borrow(test, 2 * MB, 40) else { return };
    let free_before = pool.free();
    let folder = tempfile::tempdir().unwrap();
    let arena = arena(Page::HugeTlb(2 * MB), Fallback::Refuse);
    let durable = table(&arena, 0, folder.path());
    fill(&durable);
    let full = pool.free();
    assert!(free_before - full >= 23, "46 MB of columns: {}", free_before - full);
    durable.flush(BATCHES / 2 * ROWS_OF_BATCH).unwrap();
    assert!(pool.free() >= full + 8, "{} after half of it", pool.free());
    durable.flush(i64::MAX).unwrap();
    assert_eq!((pool.free(), pool.set_aside()), (free_before, 0), "they are free for others");
}

#[test]
fn what_is_spare_stays_for_the_rows_to_come() {
    let arena = arena(Page::Base, Fallback::Refuse);
    let folder = tempfile::tempdir().unwrap();
    let durable = table(&arena, 16 * MB, folder.path());
    fill(&durable);
    let mapped = || arena.achieved().unwrap();
    let full = mapped().mapped_bytes - mapped().absent_bytes;
    let flush = durable.flush(i64::MAX).unwrap();
    let left = mapped().mapped_bytes - mapped().absent_bytes;
    assert_eq!(full - left, flush.released_bytes);
    assert!((16 * MB - 2 * MB..28 * MB).contains(&left), "{left}");
}
