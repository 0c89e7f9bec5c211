//! The kernel's tables of names and numbers: `/proc/meminfo`, `/proc/vmstat` and their like.
//!
//! Pure functions over text. A line that is not understood is passed over: kernels add lines and never
//! explain them.

use std::collections::BTreeMap;

use planish_sorted::CollectMap as _;

/// Bytes by name from `/proc/meminfo` or a node's `meminfo`; counts without a unit stay counts.
pub(crate) fn meminfo(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            // A node's table says `Node 0 MemTotal: 4 kB`.
            let name = name.rsplit(' ').next()?;
            let mut words = rest.split_whitespace();
            let number: u64 = words.next()?.parse().ok()?;
            Some((name, if words.next() == Some("kB") { number.saturating_mul(1024) } else { number }))
        })
        .collect_map()
}

/// Counters by name from `/proc/vmstat`.
pub(crate) fn vmstat(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let (name, number) = line.split_once(' ')?;
            Some((name, number.trim().parse().ok()?))
        })
        .collect_map()
}

/// `avg300` of the `some` line of a file of `/proc/pressure`, in percent.
pub(crate) fn pressure_some_percent(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("avg300="))?.parse().ok()
}

/// Share of CPU time since boot that the hypervisor kept for others, in percent, from `/proc/stat`.
pub(crate) fn steal_percent(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let times: Vec<f64> = line.split_whitespace().skip(1).map_while(|time| time.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times are part of user.
    let total: f64 = times.iter().take(8).sum();
    (total > 0.0).then(|| times.get(7).map(|steal| 100.0 * steal / total)).flatten()
}

/// Swap devices by path, from `/proc/swaps`.
pub(crate) fn swaps(text: &str) -> Vec<&str> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn memory_is_in_bytes_and_counts_stay_counts() {
        let table = meminfo("MemTotal:  16 kB\nHugePages_Total:   3\nNode 0 MemFree:  2 kB\nodd\n");
        assert_eq!(table["MemTotal"], 16384);
        assert_eq!(table["HugePages_Total"], 3);
        assert_eq!(table["MemFree"], 2048);
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn pressure_and_steal() {
        let text =
            "some avg10=0.00 avg60=0.10 avg300=2.50 total=1\nfull avg10=0.00 avg60=0.00 avg300=9.0 total=0\n";
        assert_eq!(pressure_some_percent(text), Some(2.5));
        assert_eq!(steal_percent("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n"), Some(10.0));
        assert_eq!(steal_percent("cpu  0 0 0 0 0 0 0 0 0 0\n"), None);
        assert_eq!(steal_percent("cpu  1 1\n"), None);
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "\\PC{0,200}") {
            let _ = (meminfo(&text), vmstat(&text), swaps(&text));
            let _ = (pressure_some_percent(&text), steal_percent(&text));
        }
    }
}
