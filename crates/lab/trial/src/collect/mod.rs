//! Columns that explain a verdict and never decide it: what the machine and the program did during a unit.
//!
//! Each says `available: false` with its reason where this machine cannot count it: a missing counter must
//! never read as zero. System-wide figures (`host_*`, `psi_*`, `thp_*`, `compact_*`) count everything on the
//! machine, the arm of the unit and its neighbours alike.

mod counters;
mod system;
mod tree;

pub(crate) use counters::{Counts, EVENTS, add_counts};
pub(crate) use system::Snapshot;
pub(crate) use tree::{Kin, TreeUsage, family, tree, tree_usage};

use std::time::{Duration, Instant};

use self::counters::Attached;
use crate::kernel;
use crate::sample::Sample;

/// What is collected of the memory of programs: column, and name in `/proc/PID/status`. Of several processes the
/// sizes add up, what they share as often as they share it.
const MEMORY: [(&str, &str); 3] =
    [("vmpte_kb", "VmPTE"), ("rss_kb", "VmRSS"), ("hugetlb_kb", "HugetlbPages")];

/// One unit of programs that run already: what they and the machine do between its ends.
#[derive(Debug)]
pub(crate) struct Window {
    pids: Vec<u32>,
    before: Snapshot,
    counters: Attached,
    /// How long the beginning took, without the snapshot, which tells its own time.
    took: Duration,
}

impl Window {
    /// Begins the unit.
    pub(crate) fn open(pids: Vec<u32>) -> Self {
        let begun = Instant::now();
        let counters = Attached::to(&pids);
        let took = begun.elapsed();
        Self { pids, before: Snapshot::take(), counters, took }
    }

    /// Ends the unit and adds its columns.
    pub(crate) fn close(self, sample: &mut Sample) {
        let begun = Instant::now();
        let counts = self.counters.counts();
        let took = self.took + begun.elapsed();
        self.before.add_growth(sample);
        let begun = Instant::now();
        add_counts(sample, &counts);
        add_memory(sample, &memory(&self.pids));
        sample.bookkeeping += took + begun.elapsed();
    }
}

/// Sizes of the page tables and of the resident memory of programs, in kB, in the order of their columns.
pub(crate) type Memory = [Result<f64, String>; MEMORY.len()];

/// The sums over these processes now; of those that have ended meanwhile, nothing is left to tell.
pub(crate) fn memory(pids: &[u32]) -> Memory {
    let texts: Vec<String> =
        pids.iter().filter_map(|pid| kernel::read(&format!("/proc/{pid}/status"))).collect();
    MEMORY.map(|(_, field)| {
        let sizes: Vec<f64> = texts.iter().filter_map(|text| kilobytes(text, field)).collect();
        match (texts.is_empty(), sizes.is_empty()) {
            (true, _) => Err("its /proc/PID/status cannot be read".to_owned()),
            (_, true) => Err(format!("its /proc/PID/status has no {field}")),
            _ => Ok(sizes.iter().sum()),
        }
    })
}

/// Adds the columns of memory.
pub(crate) fn add_memory(sample: &mut Sample, memory: &Memory) {
    for ((column, _), size) in MEMORY.into_iter().zip(memory) {
        sample.collect(column, "kB", size.clone());
    }
}

/// The columns of a program that this trial does not run, and so cannot look into.
pub(crate) fn add_stranger(sample: &mut Sample, reason: &str) {
    let columns = ["cycles", "instructions", "instructions_per_cycle"];
    let misses = ["dtlb_misses_per_million", "itlb_misses_per_million", "faults"];
    for column in columns.into_iter().chain(misses) {
        sample.collect(column, "", Err(reason.to_owned()));
    }
    for (column, _) in MEMORY {
        sample.collect(column, "kB", Err(reason.to_owned()));
    }
}

/// A field of `/proc/PID/status` that is given in kB.
fn kilobytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The columns that every sample has, with a value or with the reason why there is none.
#[cfg(test)]
pub(crate) const COLUMNS: [&str; 21] = [
    "cycles",
    "instructions",
    "instructions_per_cycle",
    "dtlb_misses_per_million",
    "itlb_misses_per_million",
    "faults",
    "host_faults",
    "host_faults_major",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "compact_stall",
    "compact_success",
    "vmpte_kb",
    "rss_kb",
    "hugetlb_kb",
    "host_cpu_share",
    "psi_cpu_share",
    "psi_memory_share",
    "psi_io_share",
    "steal_share",
];

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Fails unless each column is told, or the metric of the same name is.
    pub(crate) fn assert_complete(sample: &Sample) {
        for column in COLUMNS {
            let told = sample.collectors.get(column).map(|collected| &collected.value);
            let is_told = match told {
                Some(Ok(value)) => value.is_finite(),
                Some(Err(reason)) => !reason.is_empty(),
                None => sample.value(column).is_some(),
            };
            assert!(is_told, "{column}: {told:?}");
        }
    }

    #[test]
    fn fields_of_status_are_found_by_their_whole_name() {
        let text = "VmPTE:\t     484 kB\nVmRSS:\t  100 kB\nHugetlbPages:\t       0 kB\n";
        assert_eq!(kilobytes(text, "VmPTE"), Some(484.0));
        assert_eq!(kilobytes(text, "VmP"), None);
    }

    #[test]
    fn our_own_page_tables_have_a_size() {
        let ours = std::process::id();
        let [page_tables, ..] = memory(&[ours]);
        assert!(page_tables.as_ref().is_ok_and(|&size| size > 0.0), "{page_tables:?}");
        assert!(memory(&[0]).iter().all(Result::is_err));
        assert!(memory(&[0, ours])[0].is_ok(), "one that has ended hides no other");
    }

    #[test]
    fn a_window_tells_every_column_and_a_stranger_what_cannot_be_told() {
        let mut sample = Sample::default();
        Window::open(vec![std::process::id()]).close(&mut sample);
        sample.collect("faults", "", Ok(0.0));
        assert_complete(&sample);
        let mut sample = Sample::default();
        Snapshot::take().add_growth(&mut sample);
        add_stranger(&mut sample, "somebody else runs it");
        assert_complete(&sample);
    }
}
