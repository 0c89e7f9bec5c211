//! What the whole machine did between two moments.

use std::time::{Duration, Instant};

use crate::kernel;
use crate::sample::Sample;

/// Names in `/proc/vmstat` (mm/vmstat.c) whose growth is told, and under which name.
const VMSTAT: [(&str, &str); 7] = [
    ("pgfault", "host_faults"),
    ("pgmajfault", "host_faults_major"),
    ("thp_fault_alloc", "thp_fault_alloc"),
    ("thp_fault_fallback", "thp_fault_fallback"),
    ("thp_collapse_alloc", "thp_collapse_alloc"),
    ("compact_stall", "compact_stall"),
    ("compact_success", "compact_success"),
];

/// Pressure files (Documentation/accounting/psi.rst) and the columns made of their `some` lines.
const PRESSURE: [(&str, &str); 3] = [
    ("/proc/pressure/cpu", "psi_cpu_share"),
    ("/proc/pressure/memory", "psi_memory_share"),
    ("/proc/pressure/io", "psi_io_share"),
];

/// The machine's counters at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    at: Instant,
    /// How long the reading took.
    took: Duration,
    stat: Option<String>,
    vmstat: Option<String>,
    pressure: Vec<Option<String>>,
}

impl Snapshot {
    /// Reads them.
    pub(crate) fn take() -> Self {
        let at = Instant::now();
        let stat = kernel::read("/proc/stat");
        let vmstat = kernel::read("/proc/vmstat");
        let pressure = PRESSURE.iter().map(|(path, _)| kernel::read(path)).collect();
        Self { at, took: at.elapsed(), stat, vmstat, pressure }
    }

    /// Adds what has grown since, and the time that both readings took.
    pub(crate) fn add_growth(&self, sample: &mut Sample) {
        let now = Self::take();
        let seconds = now.at.duration_since(self.at).as_secs_f64().max(1e-9);
        for (name, column) in VMSTAT {
            let growth = growth(self.vmstat.as_deref(), now.vmstat.as_deref(), |text| vmstat(text, name));
            sample.collect(column, "", growth.ok_or_else(|| format!("/proc/vmstat has no {name}")));
        }
        for (index, (path, column)) in PRESSURE.iter().enumerate() {
            let (before, after) = (self.pressure[index].as_deref(), now.pressure[index].as_deref());
            let share = growth(before, after, kernel::waited_us).map(|us| us / 1e6 / seconds);
            sample.collect(column, "share", share.ok_or_else(|| format!("no {path} in this kernel")));
        }
        let (before, after) = (self.stat.as_deref(), now.stat.as_deref());
        let ticks = |pick: fn(&kernel::CpuTicks) -> u64| {
            growth(before, after, |text| kernel::cpu_ticks(text).as_ref().map(pick))
        };
        let share = |part: Option<f64>| {
            let whole = ticks(|ticks| ticks.total)?;
            Some(if whole > 0.0 { part? / whole } else { 0.0 })
        };
        let missing = || "/proc/stat cannot be read".to_owned();
        sample.collect("host_cpu_share", "share", share(ticks(|it| it.total - it.idle)).ok_or_else(missing));
        sample.collect("steal_share", "share", share(ticks(|it| it.steal)).ok_or_else(missing));
        sample.bookkeeping += self.took + now.at.elapsed();
    }
}

fn growth(before: Option<&str>, after: Option<&str>, read: impl Fn(&str) -> Option<u64>) -> Option<f64> {
    Some(read(after?)?.saturating_sub(read(before?)?) as f64)
}

fn vmstat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vmstat_names_are_whole_words() {
        let text = "pgfault_x 1\npgfault 12\n";
        assert_eq!(vmstat(text, "pgfault"), Some(12));
        assert_eq!(vmstat(text, "thp_fault_alloc"), None);
    }

    #[test]
    fn every_column_is_there_with_a_value_or_a_reason() {
        let before = Snapshot::take();
        let touched: Vec<u8> = (0..1 << 20).map(|byte| byte as u8).collect();
        let mut sample = Sample::default();
        before.add_growth(&mut sample);
        assert_eq!(touched.len(), 1 << 20);
        assert!(sample.bookkeeping >= before.took && before.took > Duration::ZERO);
        assert_eq!(sample.collectors.len(), VMSTAT.len() + PRESSURE.len() + 2);
        for (name, column) in &sample.collectors {
            match &column.value {
                Ok(value) => assert!(value.is_finite() && *value >= 0.0, "{name} {value}"),
                Err(reason) => assert!(!reason.is_empty(), "{name}"),
            }
        }
    }
}
