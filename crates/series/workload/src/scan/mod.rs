//! The workload of `planish prove numa`: threads that scan tables in memory of several nodes and aggregate into heaps
//! of their own.
//!
//! ```text
//!                              private    shared
//!   thread 0 (CPU of node 0)   heap 0     table 0  |
//!   thread 1 (CPU of node 1)   heap 1     table 1  |  every thread reads every table,
//!   thread 2 (CPU of node 0)   heap 2     table 2  |  and its own heap alone
//!   ...
//! ```
//!
//! A **round** is two kinds of scans. *Independent* ones: each thread reads one table from end to end, which one the
//! seed decides, all of them at the same time. Then one *parallel* scan: all threads together read all tables, piece
//! by piece. For each row of 64 bytes a thread adds to one place of its heap, which the row decides: what an aggregate
//! does.
//!
//! Threads stand for the backends of a database, tables for its shared buffers, and so each table is a segment of
//! shared memory (MAP_SHARED): the kernel keeps a policy of it with the segment and not with who touches it, has huge
//! pages for it by rules of its own, and counts it apart. Heaps are private. Threads are those of one process and have
//! one page table, so that every arm can be had without any right; what a segment of another program gets is `planish
//! run`'s to tell.
//!
//! Where memory lies is decided by [`Place`], read back before anything is timed, and compared with what was wanted.

mod outcome;
mod place;
mod team;

use std::io::{self, BufRead, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use planish_arena::{Fallback, Page};
use planish_sys::CpuSet;
use planish_sys::process::usage_self;

pub use outcome::{ScanOutcome, ScanPlaced, ScanReady, ScanSlice};
pub use place::Place;

use crate::error::WorkloadError;
use crate::options::{Limit, Mode};
use crate::outcome::Latency;
use crate::rng::Rng;
use crate::run::{end_with_parent, print, serve, used_between};
use crate::worker::{CHECKED_ROUNDS, LATENCY_NS_MAX};
use outcome::Measured;
use place::Seats;
use team::{Job, Memory, Team, WORDS_OF_ROW};

/// More threads than that measure the scheduler.
const THREADS_MAX: usize = 1024;

/// Bytes of a table at least: a few pieces of a parallel scan.
const TABLE_BYTES_MIN: usize = 256 << 10;

/// Heaps of all threads together, of the bytes of all tables.
const HEAP_SHARE: usize = 4;

/// What a run of scans is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanOptions {
    /// Bytes of all tables; heaps take a quarter of that besides.
    pub bytes: usize,
    /// Where tables and heaps lie.
    pub place: Place,
    /// Pages that they lie on.
    pub page: Page,
    /// Whether smaller pages will do.
    pub fallback: Fallback,
    /// CPUs that the threads run on; those that this process may use when `None`.
    pub cpus: Option<CpuSet>,
    /// Threads, each with a table; one for each of the CPUs when `None`.
    pub threads: Option<NonZeroUsize>,
    /// Decides the rows, and in a single run who reads which table.
    pub seed: u64,
    /// One run or many.
    pub mode: Mode,
}

impl ScanOptions {
    /// Bytes of one table and of one heap, with so many threads; each a whole number of rows, and of heap places a
    /// power of two.
    fn sizes(&self, threads: usize) -> Result<(usize, usize), WorkloadError> {
        let table_bytes = self.bytes / threads / (8 * WORDS_OF_ROW) * (8 * WORDS_OF_ROW);
        if table_bytes < TABLE_BYTES_MIN {
            return Err(WorkloadError::TooSmall {
                bytes: self.bytes,
                least_bytes: threads * TABLE_BYTES_MIN,
            });
        }
        let heap_bytes = table_bytes / HEAP_SHARE;
        Ok((table_bytes, 1 << heap_bytes.ilog2()))
    }
}

/// Runs the scans as this whole process: standard input and output are its own. A server ends with its parent.
///
/// # Errors
/// See [`WorkloadError`]; nothing stays behind but this process.
pub fn run_scans(options: &ScanOptions) -> Result<(), WorkloadError> {
    if matches!(options.mode, Mode::Serve { .. }) {
        end_with_parent()?;
    }
    run_scans_with(options, io::stdin().lock(), io::stdout().lock())
}

/// The same with other input and output, and nothing changed of the calling thread.
///
/// # Errors
/// See [`WorkloadError`].
pub fn run_scans_with(
    options: &ScanOptions,
    input: impl BufRead,
    mut out: impl Write,
) -> Result<(), WorkloadError> {
    let seats = Seats::take(options.cpus.as_ref(), options.threads)?;
    if seats.count() > THREADS_MAX {
        return Err(WorkloadError::Threads { threads: seats.count(), most: THREADS_MAX });
    }
    let memory = Memory::take(options, &seats, options.sizes(seats.count())?)?;
    let mut rows = memory.fill(options.place, &seats, options.seed)?;
    let placed = memory.placed(options.place, &seats, &rows)?;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let team = Team::start(scope, &seats, options.place, &mut rows, &next)?;
        let crew = Crew { team, seats: seats.count() };
        match options.mode {
            Mode::Once { warm_up, limit } => {
                crew.measure(options.seed, Limit::Time(warm_up))?;
                let measured = crew.measure(options.seed, limit)?;
                print(&mut out, &measured.once(placed))
            }
            Mode::Serve { warm_up } => {
                crew.measure(options.seed, Limit::Time(warm_up))?;
                print(&mut out, &ScanReady::of(options, placed))?;
                let slice = |seed, limit| crew.measure(seed, limit).map(Measured::slice);
                serve(slice, input, &mut out)
            }
        }
    })
}

/// The threads, and how they are asked for rounds.
struct Crew<'scope> {
    team: Team<'scope>,
    seats: usize,
}

impl Crew<'_> {
    /// Rounds until the limit, at least those that the checksum covers.
    fn measure(&self, seed: u64, limit: Limit) -> Result<Measured, WorkloadError> {
        let attempt = "read what this process has used";
        let usage = || usage_self().map_err(|source| WorkloadError::Process { attempt, source });
        let mut alone = histogram();
        let mut together = histogram();
        let mut draw = Rng::split(seed, 0);
        let mut tables: Vec<usize> = (0..self.seats).collect();
        let mut measured = Measured::begin(seed);
        let before = usage()?;
        let begun = Instant::now();
        let is_done = |rounds: u64, wall: Duration| match limit {
            Limit::Time(time) => wall >= time && rounds >= CHECKED_ROUNDS,
            Limit::Rounds(wanted) => rounds >= wanted,
        };
        loop {
            draw.shuffle(&mut tables);
            let tallies = self.team.work(|thread| Job::Alone { table: tables[thread] })?;
            tallies.iter().for_each(|tally| record(&mut alone, tally.wall));
            measured.add(&tallies);
            let start = Instant::now();
            let tallies = self.team.work_together()?;
            record(&mut together, start.elapsed());
            measured.add(&tallies);
            measured.rounds += 1;
            measured.wall = begun.elapsed();
            if is_done(measured.rounds, measured.wall) {
                break;
            }
        }
        measured.used = used_between(&before, &usage()?);
        measured.independent = Some(Latency::of(&alone));
        measured.parallel = Some(Latency::of(&together));
        Ok(measured)
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .expect("the bounds are in order and three digits are few")
}

fn record(histogram: &mut Histogram<u64>, wall: Duration) {
    histogram.saturating_record(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX));
}
