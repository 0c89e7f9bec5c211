//! What a run of scans prints: JSON objects of one line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use planish_arena::{Achieved, Page};
use planish_sys::process::Usage;
use serde::Serialize;

use super::ScanOptions;
use super::place::{OnNodes, Place, Seats, sum};
use super::team::Tally;
use crate::outcome::{Latency, nanoseconds};
use crate::run::SCHEMA;
use crate::worker::CHECKED_ROUNDS;

/// Where tables and heaps lie, read back from the kernel before anything was timed, and as it was wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanPlaced {
    /// What was wanted: `default`, `by-one`, `interleave-all`, `interleave-shared`.
    pub place: &'static str,
    /// The kind of page that most of the tables lie on: `base`, `thp`, `hugetlb-2m`, `hugetlb-1g`.
    pub backing: String,
    /// Nodes that the threads and their memory are on.
    pub nodes: Vec<u32>,
    /// CPU and node of each thread.
    pub threads: Vec<[u32; 2]>,
    /// Bytes of the tables on each node.
    pub table_bytes: BTreeMap<u32, usize>,
    /// Bytes of the tables that are shared memory by the words of the kernel: all of them.
    pub table_shared_bytes: usize,
    /// Bytes of the heaps that are: none.
    pub heap_shared_bytes: usize,
    /// Bytes of the heaps on each node.
    pub heap_bytes: BTreeMap<u32, usize>,
    /// Share of the heaps that is on the node of the thread whose it is.
    pub heap_local_share: f64,
    /// What kernel.numa_balancing is: with 1 the kernel moves pages of threads without a policy while they run; null
    /// where it has none.
    pub numa_balancing: Option<u64>,
}

impl ScanPlaced {
    /// What pieces of which everything is known have.
    pub(super) fn of(
        place: Place,
        seats: &Seats,
        [tables, heaps]: [&[Achieved]; 2],
        [on_tables, on_heaps]: [Vec<OnNodes>; 2],
    ) -> Self {
        let on = |pieces: &[OnNodes]| sum(pieces).unwrap_or_default();
        let heap_bytes = on(&on_heaps);
        let own = |(thread, piece): (usize, &OnNodes)| {
            piece.as_ref().and_then(|piece| piece.get(&seats.of(thread).node)).copied().unwrap_or(0)
        };
        let shared = |all: &[Achieved]| -> usize { all.iter().map(|had| had.shared_bytes).sum() };
        let local: usize = on_heaps.iter().enumerate().map(own).sum();
        let all: usize = heap_bytes.values().sum();
        // The worst of them: one table on other pages is another arm.
        let backings = tables.iter().chain(heaps).map(|had| had.mostly().unwrap_or(Page::Base));
        let backing = backings.min().unwrap_or(Page::Base).backing();
        Self {
            place: place.name(),
            backing,
            nodes: seats.nodes.iter().collect(),
            threads: (0..seats.count()).map(|thread| [seats.of(thread).cpu, seats.of(thread).node]).collect(),
            table_bytes: on(&on_tables),
            table_shared_bytes: shared(tables),
            heap_shared_bytes: shared(heaps),
            heap_local_share: local as f64 / all.max(1) as f64,
            heap_bytes,
            numa_balancing: numa_balancing(),
        }
    }
}

fn numa_balancing() -> Option<u64> {
    let mut text = String::new();
    File::open("/proc/sys/kernel/numa_balancing").ok()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// The first line of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanReady {
    /// Name and version of this form.
    pub schema: &'static str,
    /// `ready`.
    pub event: &'static str,
    /// Process, so that whoever started it through a launcher can find it.
    pub pid: u32,
    /// Where its memory lies.
    pub achieved: ScanPlaced,
    /// Bytes of all tables, as asked for.
    pub bytes: usize,
}

impl ScanReady {
    pub(super) fn of(options: &ScanOptions, achieved: ScanPlaced) -> Self {
        let (event, pid) = ("ready", std::process::id());
        Self { schema: SCHEMA, event, pid, achieved, bytes: options.bytes }
    }
}

/// The answer to one slice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanSlice {
    /// `slice`, or `result` of a single run.
    pub event: &'static str,
    /// The seed of the slice.
    pub seed: u64,
    /// Rounds: independent scans of every table, and one parallel scan of all.
    pub rounds: u64,
    /// Rows that were read.
    pub ops: u64,
    /// Length of the slice.
    pub wall_ns: u64,
    /// CPU time of the scans, of all threads.
    pub cpu_ns: u64,
    /// CPU time in user mode, of the whole process.
    pub user_ns: u64,
    /// CPU time in the kernel, of the whole process.
    pub system_ns: u64,
    /// Wall time of one independent scan.
    pub latency_ns: Latency,
    /// Wall time of other operations, by their kind: `parallel`, one parallel scan.
    pub latencies_ns: BTreeMap<&'static str, Latency>,
    /// Digest of the rows that were read in the first rounds; equal for every place of one seed, size and number of
    /// threads.
    pub checksum: String,
    /// Rounds that the checksum covers.
    pub checked_rounds: u64,
    /// Page faults of the slice.
    pub faults: u64,
}

/// The one object of a single run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanOutcome {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Where its memory lies.
    pub achieved: ScanPlaced,
    /// The figures.
    #[serde(flatten)]
    pub figures: ScanSlice,
}

/// One timed part, as measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) seed: u64,
    pub(super) rounds: u64,
    pub(super) wall: Duration,
    pub(super) used: Usage,
    /// Wall time of scans; there from the first round on.
    pub(super) independent: Option<Latency>,
    pub(super) parallel: Option<Latency>,
    rows: u64,
    cpu: Duration,
    checksum: u64,
}

impl Measured {
    /// Nothing yet, of this seed.
    pub(super) fn begin(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Adds what the threads did for one job.
    pub(super) fn add(&mut self, tallies: &[Tally]) {
        let mut sum = 0u64;
        for tally in tallies {
            self.rows += tally.rows;
            self.cpu += tally.cpu;
            sum = sum.wrapping_add(tally.sum);
        }
        if self.rounds < CHECKED_ROUNDS {
            self.checksum = self.checksum.rotate_left(1).wrapping_add(sum);
        }
    }

    fn figures(self, event: &'static str) -> ScanSlice {
        let run = "a timed part has a round";
        ScanSlice {
            event,
            seed: self.seed,
            rounds: self.rounds,
            ops: self.rows,
            wall_ns: nanoseconds(self.wall),
            cpu_ns: nanoseconds(self.cpu),
            user_ns: nanoseconds(self.used.user),
            system_ns: nanoseconds(self.used.system),
            latency_ns: self.independent.expect(run),
            latencies_ns: BTreeMap::from([("parallel", self.parallel.expect(run))]),
            checksum: format!("{:016x}", self.checksum),
            checked_rounds: self.rounds.min(CHECKED_ROUNDS),
            faults: self.used.faults_minor + self.used.faults_major,
        }
    }

    pub(super) fn once(self, achieved: ScanPlaced) -> ScanOutcome {
        ScanOutcome { schema: SCHEMA, achieved, figures: self.figures("result") }
    }

    pub(super) fn slice(self) -> ScanSlice {
        self.figures("slice")
    }
}
