//! Columns that explain a verdict and never decide it: what the machine and the program did during a unit.
//!
//! Each says `available: false` with its reason where this machine cannot count it: a missing counter must
//! never read as zero. System-wide figures (`host_*`, `psi_*`, `thp_*`, `compact_*`) count everything on the
//! machine, the arm of the unit and its neighbours alike.

mod counters;
mod system;
mod tree;

pub(crate) use counters::add_counts;
pub(crate) use system::Snapshot;
pub(crate) use tree::{TreeTime, tree_time};

use crate::kernel;
use crate::sample::Sample;

/// Adds the size of a program's page tables and its resident size, read while it runs.
pub(crate) fn add_process(sample: &mut Sample, pid: u32) {
    let status = kernel::read(&format!("/proc/{pid}/status"));
    let field = |name: &str| {
        let text = status.as_deref().ok_or_else(|| "its /proc/PID/status cannot be read".to_owned())?;
        kilobytes(text, name).ok_or_else(|| format!("its /proc/PID/status has no {name}"))
    };
    sample.collect("vmpte_kb", "kB", field("VmPTE"));
    sample.collect("rss_kb", "kB", field("VmRSS"));
    sample.collect("hugetlb_kb", "kB", field("HugetlbPages"));
}

/// A field of `/proc/PID/status` that is given in kB.
fn kilobytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_status_are_found_by_their_whole_name() {
        let text = "VmPTE:\t     484 kB\nVmRSS:\t  100 kB\nHugetlbPages:\t       0 kB\n";
        assert_eq!(kilobytes(text, "VmPTE"), Some(484.0));
        assert_eq!(kilobytes(text, "VmP"), None);
    }

    #[test]
    fn our_own_page_tables_have_a_size() {
        let mut sample = Sample::default();
        add_process(&mut sample, std::process::id());
        let collected = &sample.collectors["vmpte_kb"];
        assert!(collected.value.as_ref().is_ok_and(|&size| size > 0.0), "{collected:?}");
        add_process(&mut sample, 0);
        assert!(sample.collectors["vmpte_kb"].value.is_err());
    }
}
