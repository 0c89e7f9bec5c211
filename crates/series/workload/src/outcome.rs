//! What a run prints: JSON objects of one line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use hdrhistogram::Histogram;
use planish_arena::{Arena, Page};
use planish_sys::process::Usage;
use serde::Serialize;

use crate::error::WorkloadError;
use crate::options::{Options, Query};
use crate::run::SCHEMA;
use crate::worker::{CHECKED_ROUNDS, Tally};

/// On which pages the working set really lies, read back from the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Achieved {
    /// The kind of page that most of it lies on: `base`, `thp`, `hugetlb-2m`, `hugetlb-1g`.
    pub backing: String,
    /// Size of that kind of page in bytes.
    pub page_bytes: usize,
    /// Whether all of it lies on the pages that were asked for.
    pub as_requested: bool,
    /// Bytes on reserved huge pages of any size.
    pub hugetlb_bytes: usize,
    /// Bytes on transparent huge pages.
    pub thp_bytes: usize,
    /// Bytes on base pages (and on sizes between).
    pub base_bytes: usize,
    /// Bytes that are mapped but not there now.
    pub absent_bytes: usize,
    /// Bytes on each node; null where the kernel does not tell.
    pub node_bytes: Option<BTreeMap<u32, usize>>,
    /// Page tables of the whole process (VmPTE) in kilobytes; null where /proc does not tell.
    pub vmpte_kb: Option<u64>,
    /// Why anything is not as asked for.
    pub why_not: Vec<String>,
}

impl Achieved {
    pub(crate) fn of(arena: &Arena) -> Result<Self, WorkloadError> {
        let had = arena.achieved()?;
        let page = had.mostly().unwrap_or(Page::Base);
        let is_hugetlb = |page| matches!(page, Page::HugeTlb(_));
        let hugetlb = had.backing.iter().filter(|had| is_hugetlb(had.page));
        Ok(Self {
            backing: page.backing(),
            page_bytes: page.bytes(),
            as_requested: had.is_as_requested(),
            hugetlb_bytes: hugetlb.map(|had| had.bytes).sum(),
            thp_bytes: had.bytes_on(Page::Thp),
            base_bytes: had.bytes_on(Page::Base),
            absent_bytes: had.absent_bytes,
            vmpte_kb: vmpte_kb(),
            node_bytes: had.node_bytes,
            why_not: had.why_not,
        })
    }
}

fn vmpte_kb() -> Option<u64> {
    let mut status = String::new();
    File::open("/proc/self/status").ok()?.read_to_string(&mut status).ok()?;
    let amount = status.lines().find_map(|line| line.strip_prefix("VmPTE:"))?;
    amount.split_whitespace().next()?.parse().ok()
}

/// Latency of single queries, in nanoseconds, to three digits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: u64,
    /// 90 % are faster.
    pub p90: u64,
    /// 99 % are faster.
    pub p99: u64,
    /// 99.9 % are faster.
    pub p99_9: u64,
    /// The slowest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Distance of the quartiles.
    pub iqr: u64,
    /// Queries that were timed.
    pub count: u64,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: histogram.max(),
            mean: histogram.mean(),
            stddev: histogram.stdev(),
            iqr: at(0.75) - at(0.25),
            count: histogram.len(),
        }
    }
}

/// What one kind of query took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryOutcome {
    /// Ops of this kind.
    pub ops: u64,
    /// CPU time of one op.
    pub cpu_ns_per_op: f64,
}

pub(crate) fn by_query(tally: &Tally, queries: &[Query]) -> BTreeMap<&'static str, QueryOutcome> {
    let outcome = |&query: &Query| {
        let (ops, cpu) = tally.queries[query as usize];
        (query.name(), QueryOutcome { ops, cpu_ns_per_op: cpu.as_nanos() as f64 / ops as f64 })
    };
    queries.iter().map(outcome).collect()
}

/// The figures of a single run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    /// CPU time of the queries for one op, of all threads. The primary figure: neighbours disturb it least.
    pub cpu_ns_per_op: f64,
    /// Wall time for one op.
    pub wall_ns_per_op: f64,
    /// Ops in a second of wall time.
    pub ops_per_s: f64,
    /// CPU time in user mode for one op, of the whole process in the timed part.
    pub user_ns_per_op: f64,
    /// CPU time in the kernel for one op, of the whole process in the timed part.
    pub system_ns_per_op: f64,
    /// Latency of single queries.
    pub latency_ns: Latency,
}

/// The one object of a single run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnceOutcome {
    /// Name and version of this form.
    pub schema: &'static str,
    /// `result`.
    pub event: &'static str,
    /// The pages of the run.
    pub achieved: Achieved,
    /// Digest of the results of the first rounds; equal for runs of one seed, working set, mix and thread
    /// count.
    pub checksum: String,
    /// Rounds that the checksum covers, of each thread.
    pub checked_rounds: u64,
    /// Rounds of all threads.
    pub rounds: u64,
    /// Ops of all threads.
    pub ops: u64,
    /// Length of the timed part.
    pub wall_ns: u64,
    /// The figures.
    pub metrics: Metrics,
    /// The figures of each kind of query.
    pub queries: BTreeMap<&'static str, QueryOutcome>,
    /// Page faults in the timed part.
    pub page_faults: u64,
}

/// The first line of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ready {
    /// Name and version of this form.
    pub schema: &'static str,
    /// `ready`.
    pub event: &'static str,
    /// Process, so that whoever started it through a launcher can find it.
    pub pid: u32,
    /// The pages of all slices to come.
    pub achieved: Achieved,
    /// Bytes of the working set.
    pub bytes: usize,
    /// Kinds of query in a round.
    pub queries: Vec<&'static str>,
    /// Threads.
    pub threads: usize,
}

impl Ready {
    pub(crate) fn of(options: &Options, achieved: Achieved) -> Self {
        Self {
            schema: SCHEMA,
            event: "ready",
            pid: std::process::id(),
            achieved,
            bytes: options.bytes,
            queries: options.queries.iter().map(|query| query.name()).collect(),
            threads: options.threads.get(),
        }
    }
}

/// The answer to one slice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SliceOutcome {
    /// `slice`.
    pub event: &'static str,
    /// The seed of the slice.
    pub seed: u64,
    /// Rounds of all threads.
    pub rounds: u64,
    /// Ops of all threads.
    pub ops: u64,
    /// Length of the slice.
    pub wall_ns: u64,
    /// CPU time of the queries, of all threads.
    pub cpu_ns: u64,
    /// CPU time in user mode, of the whole process.
    pub user_ns: u64,
    /// CPU time in the kernel, of the whole process.
    pub system_ns: u64,
    /// Latency of single queries.
    pub latency_ns: Latency,
    /// Digest of the results of the first rounds; equal for every server and slice of one seed and mix.
    pub checksum: String,
    /// Rounds that the checksum covers, of each thread.
    pub checked_rounds: u64,
    /// Page faults of the slice.
    pub faults: u64,
    /// The figures of each kind of query.
    pub queries: BTreeMap<&'static str, QueryOutcome>,
}

/// One timed part of all threads, as measured.
pub(crate) struct Measured {
    pub(crate) seed: u64,
    pub(crate) tally: Tally,
    pub(crate) used: Usage,
    pub(crate) latency: Latency,
    pub(crate) queries: Vec<Query>,
    /// Rounds of each thread that the checksum covers.
    pub(crate) checked_rounds: u64,
}

impl Measured {
    pub(crate) fn once(self, achieved: Achieved) -> OnceOutcome {
        let tally = &self.tally;
        let per_op = |time: std::time::Duration| time.as_nanos() as f64 / tally.ops as f64;
        OnceOutcome {
            schema: SCHEMA,
            event: "result",
            achieved,
            checksum: format!("{:016x}", tally.checksum),
            checked_rounds: self.checked_rounds,
            rounds: tally.rounds,
            ops: tally.ops,
            wall_ns: nanoseconds(tally.wall),
            metrics: Metrics {
                cpu_ns_per_op: per_op(tally.cpu),
                wall_ns_per_op: per_op(tally.wall),
                ops_per_s: tally.ops as f64 / tally.wall.as_secs_f64(),
                user_ns_per_op: per_op(self.used.user),
                system_ns_per_op: per_op(self.used.system),
                latency_ns: self.latency,
            },
            queries: by_query(tally, &self.queries),
            page_faults: self.used.faults_minor + self.used.faults_major,
        }
    }

    pub(crate) fn slice(self) -> SliceOutcome {
        let tally = &self.tally;
        SliceOutcome {
            event: "slice",
            seed: self.seed,
            rounds: tally.rounds,
            ops: tally.ops,
            wall_ns: nanoseconds(tally.wall),
            cpu_ns: nanoseconds(tally.cpu),
            user_ns: nanoseconds(self.used.user),
            system_ns: nanoseconds(self.used.system),
            latency_ns: self.latency,
            checksum: format!("{:016x}", tally.checksum),
            checked_rounds: self.checked_rounds,
            faults: self.used.faults_minor + self.used.faults_major,
            queries: by_query(tally, &self.queries),
        }
    }

    /// The rounds of each thread that a checksum over `limit` covers.
    pub(crate) fn checked_rounds(limit: crate::options::Limit) -> u64 {
        match limit {
            crate::options::Limit::Time(_) => CHECKED_ROUNDS,
            crate::options::Limit::Rounds(rounds) => rounds.clamp(1, CHECKED_ROUNDS),
        }
    }
}

pub(crate) fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
