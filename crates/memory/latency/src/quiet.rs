//! Is the machine quiet enough to be measured?
//!
//! Before anything is measured, this process sleeps and looks at what the others do. What is seen is told with every
//! figure; a machine that is not quiet is measured all the same, with wider intervals (see [`crate::Spread`]).

use std::time::Duration;

use planish_host::Host;
use planish_host::activity::{cpu_ticks, load_1m, runnable, waited_us};

/// What a quiet machine stays below.
#[derive(Clone, Copy, Debug)]
pub struct QuietLimits {
    /// Share of processor time that the hypervisor took: a hundredth shifts a mean by as much, and tails by far more.
    pub steal_share: f64,
    /// Share of all processors' time that others used, while we slept.
    pub busy_share: f64,
    /// Share of time in which some task waited for a processor.
    pub pressure_share: f64,
    /// Tasks that wanted a processor at a random moment, without us.
    pub runnable: f64,
}

impl Default for QuietLimits {
    fn default() -> Self {
        Self { steal_share: 0.01, busy_share: 0.05, pressure_share: 0.02, runnable: 0.25 }
    }
}

/// What was seen of a machine at rest. A part that it does not tell is `None`, and counts as quiet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quiet {
    /// How long it was looked at.
    pub seconds: f64,
    /// Share of processor time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// Share of all processors' time that was used.
    pub busy_share: Option<f64>,
    /// Share of time in which some task waited for a processor.
    pub pressure_share: Option<f64>,
    /// Tasks that wanted a processor, on average over the looks, without us.
    pub runnable: Option<f64>,
    /// The load of the last minute: told, and judged by nobody, for it still holds what has ended.
    pub load_1m: Option<f64>,
    /// Why it is not quiet; nothing where it is.
    pub reasons: Vec<String>,
}

/// Looks of one check.
const LOOKS: u32 = 20;

/// Sleeps for `span`, and tells what the others did meanwhile.
pub fn look(span: Duration, limits: QuietLimits) -> Quiet {
    let read = |path: &str| Host::live().read(path).ok();
    let (stat, pressure) = (read("/proc/stat"), read("/proc/pressure/cpu"));
    let begun = std::time::Instant::now();
    let mut running = Vec::new();
    for _ in 0..LOOKS {
        std::thread::sleep(span / LOOKS);
        running.extend(read("/proc/stat").as_deref().and_then(runnable));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (stat_now, pressure_now) = (read("/proc/stat"), read("/proc/pressure/cpu"));
    let growth = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?) as f64);
    let ticks = |text: &Option<String>| text.as_deref().and_then(cpu_ticks);
    let (before, now) = (ticks(&stat), ticks(&stat_now));
    let total = growth(before.map(|it| it.total), now.map(|it| it.total)).filter(|total| *total > 0.0);
    let share = |part: Option<f64>| Some(part? / total?);
    let steal = share(growth(before.map(|it| it.steal), now.map(|it| it.steal)));
    let idle = share(growth(before.map(|it| it.idle), now.map(|it| it.idle)));
    let waited = |text: &Option<String>| text.as_deref().and_then(waited_us);
    let mut quiet = Quiet {
        seconds,
        steal_share: steal,
        busy_share: idle.map(|idle| (1.0 - idle - steal.unwrap_or(0.0)).max(0.0)),
        pressure_share: growth(waited(&pressure), waited(&pressure_now)).map(|us| us / 1e6 / seconds),
        // We read, and so we run.
        runnable: mean(&running).map(|mean| (mean - 1.0).max(0.0)),
        load_1m: read("/proc/loadavg").as_deref().and_then(load_1m),
        reasons: Vec::new(),
    };
    quiet.reasons = quiet.judge(limits);
    quiet
}

fn mean(counts: &[u64]) -> Option<f64> {
    (!counts.is_empty()).then(|| counts.iter().map(|&count| count as f64).sum::<f64>() / counts.len() as f64)
}

impl Quiet {
    /// Whether nothing spoke against it.
    pub fn is_quiet(&self) -> bool {
        self.reasons.is_empty()
    }

    /// What speaks against it.
    fn judge(&self, limits: QuietLimits) -> Vec<String> {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let mut reasons = Vec::new();
        let mut beyond = |value: Option<f64>, limit: f64, say: &dyn Fn(f64) -> String| {
            reasons.extend(value.filter(|value| *value > limit).map(say));
        };
        beyond(self.steal_share, limits.steal_share, &|it| {
            format!("the hypervisor took {} of the time", percent(it))
        });
        beyond(self.busy_share, limits.busy_share, &|it| {
            format!("others used {} of all processors", percent(it))
        });
        beyond(self.pressure_share, limits.pressure_share, &|it| {
            format!("tasks waited for a processor for {} of the time", percent(it))
        });
        beyond(self.runnable, limits.runnable, &|it| format!("{it:.1} tasks of others wanted a processor"));
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_noise_is_told_and_what_is_not_told_counts_as_quiet() {
        let limits = QuietLimits::default();
        assert_eq!(Quiet::default().judge(limits), Vec::<String>::new());
        let loud = Quiet {
            steal_share: Some(0.031),
            busy_share: Some(0.5),
            pressure_share: Some(0.2),
            runnable: Some(1.5),
            load_1m: Some(90.0),
            ..Quiet::default()
        };
        let reasons = loud.judge(limits);
        assert_eq!(reasons.len(), 4, "the load is of a minute that has passed: {reasons:?}");
        assert_eq!(reasons[0], "the hypervisor took 3.1 % of the time");
    }

    #[test]
    fn a_look_at_this_machine_tells_shares() {
        let quiet = look(Duration::from_millis(60), QuietLimits::default());
        assert!(quiet.seconds >= 0.06);
        for share in [quiet.steal_share, quiet.busy_share].into_iter().flatten() {
            assert!((0.0..=1.0).contains(&share), "{quiet:?}");
        }
    }
}
