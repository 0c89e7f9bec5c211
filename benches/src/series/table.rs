//! Durable tables: rows a second into a table whose every batch is synced, out of its log, and what memory they take.
//!
//! The disk is the one under TMPDIR. Memory is faulted in beforehand, as a server does it: what is timed is the way of
//! rows through log, sync and table, not the machine's first touch of a page.

use super::data::{self, DAY, SYMBOLS};
use super::figure;
use crate::row::{Figure, Limit, Rows};
use anyhow::{Context, Result, ensure};
use planish_arena::{Arena, Growth, Page, Preference};
use planish_table::{
    Cells, Column, Disk, Durable, Filter, Kind, Options, Partitioning, Schema, SyncPolicy, TimeUnit,
};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: usize = 10_000_000;
const BATCH_ROWS: usize = 50_000;
/// Batches that are on their way before the first of them is waited for.
const IN_FLIGHT: usize = 64;
const HOUR: i64 = DAY / 24;
const RUNS: usize = 7;
/// time, symbol, price, size
const ROW_BYTES: usize = 8 + 4 + 8 + 8;

/// Adds the rows.
pub fn measure(rows: &mut Rows) -> Result<()> {
    let columns = data::arena(data::table_bytes(ROWS))?;
    eprintln!("making the table");
    let ticks = data::Table::generate(&columns, 31, ROWS, SYMBOLS, DAY)?;
    let names: Vec<String> = (0..SYMBOLS).map(|symbol| format!("SYM{symbol:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let feed = Feed { ticks, names };
    let (mut ingested, mut recovered) = (Vec::new(), Vec::new());
    let mut run = || -> Result<()> {
        for _ in 0..RUNS {
            let (ingest, recovery) = feed.run()?;
            ingested.push(ingest.ln());
            recovered.push(recovery.ln());
        }
        Ok(())
    };
    let done = run();
    let failed = || match &done {
        Ok(()) => Ok(()),
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    let at_least = |limit| (Limit::AtLeast, limit);
    rows.add("durable ingest, group commit of 10 ms", "Mrows/s", at_least(5.0), || {
        failed().and_then(|()| figure(&ingested))
    });
    rows.add("recovery from the log", "Mrows/s", at_least(2.0), || {
        failed().and_then(|()| figure(&recovered))
    });
    rows.add_with_note("memory of a table / bytes of its columns", "ratio", (Limit::AtMost, 1.3), || {
        feed.memory()
    });
    Ok(())
}

struct Feed<'a> {
    ticks: data::Table<'a>,
    names: Vec<&'a str>,
}

impl Feed<'_> {
    /// Millions of rows a second into the log and table, and out of the log.
    fn run(&self) -> Result<(f64, f64)> {
        let folder = tempfile::tempdir().context("a folder for the table")?;
        let arena = data::arena(ROWS * ROW_BYTES * 13 / 10)?;
        let durable = create(&arena, folder.path())?;
        let start = Instant::now();
        self.ingest(&durable)?;
        let ingest = speed(start);
        drop(durable);
        drop(arena);
        let arena = data::arena(ROWS * ROW_BYTES * 13 / 10)?;
        let disk = Arc::new(Disk::open(folder.path())?);
        let start = Instant::now();
        let (_, recovery) = Durable::open(&arena, disk, &options())?;
        let recovered = speed(start);
        ensure!(recovery.rows == ROWS && recovery.tail.is_none(), "{recovery:?}");
        Ok((ingest, recovered))
    }

    fn ingest(&self, durable: &Durable<'_>) -> Result<()> {
        let mut waiting = VecDeque::new();
        for first in (0..ROWS).step_by(BATCH_ROWS) {
            let rows = first..(first + BATCH_ROWS).min(ROWS);
            let cells = [
                Cells::Times(&self.ticks.times[rows.clone()]),
                Cells::Keyed { texts: &self.names, keys: &self.ticks.symbols[rows.clone()] },
                Cells::Floats(&self.ticks.prices[rows.clone()]),
                Cells::Ints(&self.ticks.sizes[rows]),
            ];
            waiting.push_back(durable.submit(None, &cells)?);
            if waiting.len() > IN_FLIGHT
                && let Some(ticket) = waiting.pop_front()
            {
                ticket.wait()?;
            }
        }
        for ticket in waiting {
            ticket.wait()?;
        }
        ensure!(durable.read()?.rows() == ROWS, "rows are missing");
        Ok(())
    }

    /// Mapped memory over bytes of columns in an arena that grows; then what a flush makes of it, for the note.
    fn memory(&self) -> Result<(Figure, String)> {
        let folder = tempfile::tempdir().context("a folder for the table")?;
        let growth = Growth { first_bytes: 2 << 20, cap_bytes: 64 << 20 };
        let arena = Arena::builder().page(Preference::From(Page::Thp)).growth(growth).build()?;
        let durable = create(&arena, folder.path())?;
        self.ingest(&durable)?;
        let ratio = arena.achieved()?.mapped_bytes as f64 / (ROWS * ROW_BYTES) as f64;
        let start = Instant::now();
        let flush = durable.flush(i64::MAX)?;
        let flushed = speed(start);
        ensure!(
            flush.rows == ROWS as u64 && durable.read()?.scan(Filter::ALL).next().is_none(),
            "not flushed"
        );
        let mut ratios = Vec::new();
        for (index, column) in durable.schema().columns().iter().enumerate() {
            let sum = |bytes: fn(&planish_table::FileColumn) -> u64| -> u64 {
                flush.files.iter().map(|file| bytes(&file.columns[index])).sum()
            };
            let ratio = sum(|it| it.memory_bytes) as f64 / sum(|it| it.file_bytes) as f64;
            ratios.push(format!("{} {ratio:.2}", column.name));
        }
        let note = format!("flushed at {flushed:.2} Mrows/s; smaller in files: {}", ratios.join(", "));
        Ok((Figure::exact(ratio), note))
    }
}

fn speed(start: Instant) -> f64 {
    ROWS as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn options() -> Options {
    Options { sync: SyncPolicy::Always { gather: Duration::from_millis(10) }, ..Options::default() }
}

/// The columns: time, symbol, price, size.
pub fn schema() -> Result<Schema> {
    let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
    let columns =
        [("time", Kind::Time), ("symbol", Kind::Symbol), ("price", Kind::Float), ("size", Kind::Int)];
    let partitioning = Partitioning { span: HOUR, symbols: None };
    Ok(Schema::new(columns.map(column).to_vec(), partitioning)?)
}

/// A table with these columns and a group commit of 10 ms.
pub fn create<'a>(arena: &'a Arena, folder: &Path) -> Result<Durable<'a>> {
    let disk = Disk::open(folder)?;
    if let Some(reason) = disk.why_no_ring() {
        eprintln!("no io_uring: {reason}");
    }
    Ok(Durable::create(arena, Arc::new(disk), schema()?, Some(TimeUnit::Nanoseconds), &options())?)
}
