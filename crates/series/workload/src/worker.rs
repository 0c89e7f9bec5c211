//! Threads that run rounds, each pinned and with buffers of its own, from load to end.
//!
//! They are started before the timed part and wait on a channel, so that no slice pays for a thread's stack.
//! Each draws from its own stream of the slice's seed.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use planish_sys::{CpuSet, affinity};

use crate::error::WorkloadError;
use crate::options::{Limit, Query};
use crate::query::Session;
use crate::rng::Rng;

/// Rounds that the checksum covers, and the least that any timed part runs.
pub const CHECKED_ROUNDS: u64 = 4;

/// Longest latency that is told apart, in nanoseconds; above, it counts as this.
pub(crate) const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// One timed part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) seed: u64,
    pub(crate) limit: Limit,
}

/// What one thread did in one timed part.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) ops: u64,
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) checksum: u64,
    /// Ops and CPU time of each kind of query, in the order of [`Query::ALL`].
    pub(crate) queries: [(u64, Duration); Query::ALL.len()],
}

impl Tally {
    /// Adds what another thread did at the same time.
    pub(crate) fn merge(mut self, other: &Self) -> Self {
        self.rounds += other.rounds;
        self.ops += other.ops;
        self.wall = self.wall.max(other.wall);
        self.cpu += other.cpu;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        for (mine, theirs) in self.queries.iter_mut().zip(&other.queries) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
        self
    }
}

/// A thread that waits for jobs.
pub(crate) struct Worker {
    jobs: Sender<Job>,
    tallies: Receiver<Result<Tally, WorkloadError>>,
    /// Latencies of the last job; locked by the worker while it runs one.
    pub(crate) latency: Arc<Mutex<Histogram<u64>>>,
}

impl Worker {
    /// Starts a thread on `cpu`; it ends when the `Worker` is dropped.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        index: usize,
        cpu: Option<u32>,
        queries: Vec<Query>,
        session: Session<'scope>,
    ) -> Result<Self, WorkloadError> {
        let (jobs, job_queue) = channel();
        let (tally_queue, tallies) = channel();
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3);
        let latency = Arc::new(Mutex::new(histogram.expect("three digits between fixed bounds are allowed")));
        let shared = Arc::clone(&latency);
        let run = move || {
            let mut rounds = Rounds { index: index as u64, queries, session, latency: shared };
            if let Err(error) = pin(cpu) {
                // Reported for the first job; whoever waits for it ends the run.
                let _ = tally_queue.send(Err(error));
                return;
            }
            for job in job_queue {
                if tally_queue.send(rounds.run(job)).is_err() {
                    return;
                }
            }
        };
        let named = std::thread::Builder::new().name(format!("workload-{index}"));
        named.spawn_scoped(scope, run).map_err(|source| WorkloadError::Thread { source })?;
        Ok(Self { jobs, tallies, latency })
    }

    /// Begins a job.
    pub(crate) fn begin(&self, job: Job) {
        // A worker that could not be pinned has ended; `finish` tells why.
        let _ = self.jobs.send(job);
    }

    /// Waits for the job that was begun.
    pub(crate) fn finish(&self) -> Result<Tally, WorkloadError> {
        self.tallies.recv().expect("a worker answers before it ends")
    }
}

fn pin(cpu: Option<u32>) -> Result<(), WorkloadError> {
    let Some(cpu) = cpu else { return Ok(()) };
    let cpus: CpuSet = [cpu].into_iter().collect();
    affinity::set(None, &cpus).map_err(|source| WorkloadError::Pin { cpus: cpus.to_string(), source })
}

/// The loop of one thread.
struct Rounds<'a> {
    index: u64,
    queries: Vec<Query>,
    session: Session<'a>,
    latency: Arc<Mutex<Histogram<u64>>>,
}

impl Rounds<'_> {
    fn run(&mut self, job: Job) -> Result<Tally, WorkloadError> {
        let mut latency = self.latency.lock().expect("no worker panics while it runs a job");
        latency.reset();
        let mut rng = Rng::split(job.seed, self.index);
        self.queries.sort_unstable();
        let mut tally = Tally::default();
        let start = Instant::now();
        loop {
            rng.shuffle(&mut self.queries);
            for &query in &self.queries {
                let done = self.session.run(query, &mut rng)?;
                let (ops, cpu) = &mut tally.queries[query as usize];
                *ops += self.session.query_rows();
                *cpu += done.cpu;
                tally.ops += self.session.query_rows();
                tally.cpu += done.cpu;
                latency.saturating_record(u64::try_from(done.wall.as_nanos()).unwrap_or(u64::MAX));
                if tally.rounds < CHECKED_ROUNDS {
                    tally.checksum = tally.checksum.rotate_left(1).wrapping_add(done.digest);
                }
            }
            tally.rounds += 1;
            tally.wall = start.elapsed();
            let is_done = match job.limit {
                Limit::Time(time) => tally.wall >= time && tally.rounds >= CHECKED_ROUNDS,
                Limit::Rounds(rounds) => tally.rounds >= rounds,
            };
            if is_done {
                return Ok(tally);
            }
        }
    }
}
