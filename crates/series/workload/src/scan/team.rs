//! The threads of a run, their memory, and what each of them does when it is told to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use planish_arena::{Arena, NodeChoice, Page, Preference};
use planish_sys::policy;
use planish_sys::process::thread_cpu_time;

use super::ScanOptions;
use super::outcome::ScanPlaced;
use super::place::{OnNodes, Place, Seats, known, misplaced, sit};
use crate::error::WorkloadError;
use crate::rng::{Rng, mix};

/// Words of a row: a cache line.
pub(super) const WORDS_OF_ROW: usize = 8;

/// Words of one piece of a parallel scan: 256 KiB, as long as a thread takes some ten microseconds for.
const WORDS_OF_PIECE: usize = 32 << 10;

/// One thread's memory.
struct Share {
    /// The table that it filled, one of many where it fills them all. Shared memory, as the buffers of a database are.
    tables: Vec<Arena>,
    /// Private memory.
    heap: Arena,
}

/// The memory of a run, where it was wanted.
pub(super) struct Memory {
    tables: Vec<Arena>,
    heaps: Vec<Arena>,
    table_words: usize,
    heap_words: usize,
    page: Page,
}

/// The tables and heaps, as rows.
pub(super) struct Rows<'a> {
    tables: Vec<&'a [u64]>,
    heaps: Vec<&'a mut [u64]>,
}

impl Memory {
    /// Takes memory for tables and heaps of these bytes: each from the thread that is to fill it, on its CPU.
    pub(super) fn take(
        options: &ScanOptions,
        seats: &Seats,
        (table_bytes, heap_bytes): (usize, usize),
    ) -> Result<Self, WorkloadError> {
        let one = |nodes: NodeChoice, bytes: usize, shared: bool| {
            let builder = Arena::builder().page(Preference::From(options.page)).fallback(options.fallback);
            let builder = builder.shared(shared);
            // The calling thread faults it in, by its own policy where none is named.
            builder.node(nodes).prefault_threads(std::num::NonZeroUsize::MIN).capacity(bytes).build()
        };
        let place = options.place;
        let share = |thread: usize| -> Result<Share, WorkloadError> {
            settle(place, seats, thread)?;
            let own = (0..seats.count()).filter(|table| place.filler(*table) == thread);
            let table = |_| one(place.of_tables(seats), table_bytes, true);
            let tables = own.map(table).collect::<Result<_, _>>()?;
            Ok(Share { tables, heap: one(NodeChoice::Inherit, heap_bytes, false)? })
        };
        let shares = on_seats(seats, share)?;
        let (mut tables, mut heaps) = (Vec::new(), Vec::new());
        for share in shares {
            tables.extend(share.tables);
            heaps.push(share.heap);
        }
        let (table_words, heap_words) = (table_bytes / 8, heap_bytes / 8);
        Ok(Self { tables, heaps, table_words, heap_words, page: options.page })
    }

    /// Writes the rows, which the seed decides. Every page is there by now, and each is written from where it was
    /// filled: automatic balancing moves what a new thread of another node uses, and a slow machine gives it the time
    /// to.
    pub(super) fn fill(&self, place: Place, seats: &Seats, seed: u64) -> Result<Rows<'_>, WorkloadError> {
        let mut tables = Vec::new();
        for arena in &self.tables {
            tables.push(arena.alloc_slice::<u64>(self.table_words)?);
        }
        let heaps = self.heaps.iter().map(|arena| arena.alloc_slice::<u64>(self.heap_words));
        let heaps = heaps.collect::<Result<_, _>>()?;
        std::thread::scope(|scope| -> Result<(), WorkloadError> {
            let mut writers = Vec::new();
            for (index, table) in tables.iter_mut().enumerate() {
                let write = move || {
                    sit(seats.of(place.filler(index)).cpu)?;
                    let mut rng = Rng::split(seed, index as u64);
                    table.iter_mut().for_each(|word| *word = rng.next());
                    Ok(())
                };
                let writer = std::thread::Builder::new().spawn_scoped(scope, write);
                writers.push(writer.map_err(|source| WorkloadError::Thread { source })?);
            }
            writers.into_iter().try_for_each(|writer| writer.join().expect("writing words does not panic"))
        })?;
        Ok(Rows { tables: tables.into_iter().map(|table| &*table).collect(), heaps })
    }

    /// Reads back where all of it lies, right after each thread has used its own once more: from 6.1 to 6.4 Linux tells
    /// nothing of pages that automatic balancing has marked, until somebody uses them.
    ///
    /// # Errors
    /// [`WorkloadError::Misplaced`] where that is not where it was wanted: its figures would be those of another arm.
    pub(super) fn placed(
        &self,
        place: Place,
        seats: &Seats,
        rows: &Rows<'_>,
    ) -> Result<ScanPlaced, WorkloadError> {
        on_seats(seats, |thread| {
            sit(seats.of(thread).cpu)?;
            let own = (0..seats.count()).filter(|table| place.filler(*table) == thread);
            own.map(|table| rows.tables[table]).chain([&*rows.heaps[thread]]).for_each(use_pages);
            Ok(())
        })?;
        let read = |arenas: &[Arena]| -> Result<Vec<planish_arena::Achieved>, WorkloadError> {
            arenas.iter().map(|arena| arena.achieved().map_err(WorkloadError::from)).collect()
        };
        let (tables, heaps) = (read(&self.tables)?, read(&self.heaps)?);
        let nodes = |had: &[planish_arena::Achieved]| -> Vec<OnNodes> {
            had.iter().map(|had| known(had.node_bytes.clone()?, had.mapped_bytes)).collect()
        };
        let on = [nodes(&tables), nodes(&heaps)];
        let why_not = misplaced(place, seats, self.page.bytes(), [&on[0], &on[1]]);
        if let Some(first) = why_not.first() {
            let more = why_not.len() - 1;
            return Err(WorkloadError::Misplaced { place: place.name(), first: first.clone(), more });
        }
        Ok(ScanPlaced::of(place, seats, [&tables, &heaps], on))
    }
}

/// Reads a word of each page.
fn use_pages(words: &[u64]) {
    const WORDS_OF_PAGE: usize = 512;
    std::hint::black_box(
        words.iter().step_by(WORDS_OF_PAGE).fold(0, |sum: u64, word| sum.wrapping_add(*word)),
    );
}

/// Puts the calling thread onto the seat of a thread, with the policy that a place gives threads.
fn settle(place: Place, seats: &Seats, thread: usize) -> Result<(), WorkloadError> {
    sit(seats.of(thread).cpu)?;
    let attempt = "set the memory policy of a thread";
    place.of_thread(seats).map_or(Ok(()), |policy| {
        policy::set_thread_policy(&policy).map_err(|source| WorkloadError::Process { attempt, source })
    })
}

/// Runs something on every seat at once, each by a thread of its own that ends with it.
fn on_seats<T: Send>(
    seats: &Seats,
    work: impl Fn(usize) -> Result<T, WorkloadError> + Sync,
) -> Result<Vec<T>, WorkloadError> {
    std::thread::scope(|scope| {
        let start = |thread| {
            let work = &work;
            let started = std::thread::Builder::new().spawn_scoped(scope, move || work(thread));
            started.map_err(|source| WorkloadError::Thread { source })
        };
        let threads = (0..seats.count()).map(start).collect::<Result<Vec<_>, _>>()?;
        threads.into_iter().map(|thread| thread.join().expect("its work does not panic")).collect()
    })
}

/// What a thread is told to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Job {
    /// Read one table from end to end.
    Alone { table: usize },
    /// Take pieces of all tables until none is left.
    Together,
}

/// What a thread did for one job.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) rows: u64,
    pub(super) sum: u64,
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
}

/// One thread: where jobs go, and where what came of them arrives.
type Member = (Sender<Job>, Receiver<Result<Tally, WorkloadError>>);

/// The threads, from load to end: no job pays for a thread's start.
pub(super) struct Team<'scope> {
    members: Vec<Member>,
    /// The next piece of a parallel scan.
    next: &'scope AtomicUsize,
}

impl<'scope> Team<'scope> {
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        seats: &'scope Seats,
        place: Place,
        rows: &'scope mut Rows<'_>,
        next: &'scope AtomicUsize,
    ) -> Result<Self, WorkloadError> {
        let tables: &'scope [&[u64]] = &rows.tables;
        let mut members = Vec::new();
        for (thread, heap) in rows.heaps.iter_mut().enumerate() {
            let (jobs, job_queue) = channel();
            let (tallies, tally_queue) = channel();
            let run = move || {
                if let Err(error) = settle(place, seats, thread) {
                    let _ = tallies.send(Err(error));
                    return;
                }
                let mut reader = Reader { tables, heap, next };
                for job in job_queue {
                    if tallies.send(Ok(reader.run(job))).is_err() {
                        return;
                    }
                }
            };
            let named = std::thread::Builder::new().name(format!("scan-{thread}"));
            named.spawn_scoped(scope, run).map_err(|source| WorkloadError::Thread { source })?;
            members.push((jobs, tally_queue));
        }
        Ok(Self { members, next })
    }

    /// Gives each thread a job, and waits for all of them.
    pub(super) fn work(&self, job: impl Fn(usize) -> Job) -> Result<Vec<Tally>, WorkloadError> {
        for (thread, (jobs, _)) in self.members.iter().enumerate() {
            // One that could not be seated has ended; what it sent last tells why.
            let _ = jobs.send(job(thread));
        }
        let tallies = self.members.iter().map(|(_, tallies)| tallies.recv().expect("a thread answers"));
        tallies.collect()
    }

    /// One parallel scan of all tables.
    pub(super) fn work_together(&self) -> Result<Vec<Tally>, WorkloadError> {
        self.next.store(0, Ordering::Relaxed);
        self.work(|_| Job::Together)
    }
}

/// The loop of one thread.
struct Reader<'a> {
    tables: &'a [&'a [u64]],
    heap: &'a mut [u64],
    next: &'a AtomicUsize,
}

impl Reader<'_> {
    fn run(&mut self, job: Job) -> Tally {
        let (start, before) = (Instant::now(), thread_cpu_time());
        let mut tally = Tally::default();
        match job {
            Job::Alone { table } => self.read(self.tables[table], &mut tally),
            Job::Together => {
                let pieces = self.tables[0].len().div_ceil(WORDS_OF_PIECE);
                loop {
                    let piece = self.next.fetch_add(1, Ordering::Relaxed);
                    let Some(table) = self.tables.get(piece / pieces) else { break };
                    let first = piece % pieces * WORDS_OF_PIECE;
                    self.read(&table[first..table.len().min(first + WORDS_OF_PIECE)], &mut tally);
                }
            }
        }
        tally.cpu = thread_cpu_time().saturating_sub(before);
        tally.wall = start.elapsed();
        tally
    }

    /// Reads rows, and adds each to the place of the heap that it decides.
    fn read(&mut self, words: &[u64], tally: &mut Tally) {
        // A power of two places.
        let mask = self.heap.len() - 1;
        let mut sum = 0u64;
        for row in words.chunks_exact(WORDS_OF_ROW) {
            let value = row.iter().fold(0u64, |value, word| value.wrapping_add(*word));
            let place = &mut self.heap[mix(row[0]) as usize & mask];
            *place = place.wrapping_add(value);
            sum = sum.wrapping_add(value);
        }
        tally.rows += (words.len() / WORDS_OF_ROW) as u64;
        tally.sum = tally.sum.wrapping_add(sum);
    }
}
