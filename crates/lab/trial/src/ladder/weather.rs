//! What the machine does while a block runs, read from counters that know nothing of arms.

use std::time::{Duration, Instant, SystemTime};

use planish_host::Host;
use planish_sorted::SortSmall as _;
use planish_sys::cgroup;

use crate::kernel;

/// A span below this has no weather: the kernel counts in ticks of 10 ms, and a single one that the hypervisor took
/// would be half of a short block.
const SPAN_MIN: Duration = Duration::from_millis(100);

/// CPUs whose frequency is looked at, at most: each look may interrupt an idle one.
const CPUS_MAX: usize = 16;

const CPUS: &str = "/sys/devices/system/cpu";

/// Stalls as the kernel's PSI counts them (Documentation/accounting/psi.rst): resource, and whether some or all tasks
/// waited. All of them are told and excuse nothing, those for a processor neither: an arm makes them itself.
pub(super) const STALLS: [(&str, &str); 6] = [
    ("cpu", "some"),
    ("cpu", "full"),
    ("memory", "some"),
    ("memory", "full"),
    ("io", "some"),
    ("io", "full"),
];

/// Running totals at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) wall: SystemTime,
    pub(super) steal_ticks: Option<u64>,
    pub(super) total_ticks: u64,
    pub(super) stalled_us: [Option<u64>; STALLS.len()],
    /// Time in which the groups of this process were held back by a quota.
    pub(super) throttled_us: Option<u64>,
    /// How often CPUs slowed themselves down for heat.
    pub(super) thermal_events: Option<u64>,
}

/// What the machine did during a block. Unknown where it cannot be counted here, or the block was too short for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weather {
    /// Share of processor time that the hypervisor took.
    pub(crate) steal: Option<f64>,
    /// Shares of time in which tasks waited, in the order of [`STALLS`].
    pub(crate) stalls: [Option<f64>; STALLS.len()],
    /// Seconds of one CPU that a quota took, per second.
    pub(crate) throttled: Option<f64>,
    /// Thermal events per second.
    pub(crate) thermal: Option<f64>,
    /// By how much the wall clock left the monotonic one.
    pub(crate) jump: Duration,
}

/// The counters that this machine has.
#[derive(Debug)]
pub(super) struct Station {
    thermal_files: Vec<String>,
}

impl Station {
    pub(super) fn find() -> Self {
        let folder = |cpu: String| format!("{CPUS}/{cpu}/thermal_throttle");
        let counts = |folder: String| {
            ["core", "package"].map(|part| format!("{folder}/{part}_throttle_count")).into_iter()
        };
        let files = cpus().into_iter().map(folder).flat_map(counts);
        Self { thermal_files: files.filter(|file| kernel::read(file).is_some()).collect() }
    }

    pub(super) fn read(&self) -> Reading {
        let ticks = kernel::read("/proc/stat").and_then(|text| kernel::cpu_ticks(&text));
        let pressure = ["cpu", "memory", "io"].map(|name| kernel::read(&format!("/proc/pressure/{name}")));
        let stalled = |(resource, share): (&str, &str)| {
            let place = ["cpu", "memory", "io"].iter().position(|name| *name == resource)?;
            kernel::stalled_us(pressure[place].as_deref()?, share)
        };
        let count = |file: &String| kernel::read(file)?.trim().parse::<u64>().ok();
        let events = || self.thermal_files.iter().filter_map(count).sum();
        Reading {
            at: Instant::now(),
            wall: SystemTime::now(),
            steal_ticks: ticks.map(|ticks| ticks.steal),
            total_ticks: ticks.map_or(0, |ticks| ticks.total),
            stalled_us: STALLS.map(stalled),
            throttled_us: cgroup::cpu_throttling().map(|throttling| throttling.time_us),
            thermal_events: (!self.thermal_files.is_empty()).then(events),
        }
    }
}

/// What happened between two readings.
pub(super) fn weather(before: &Reading, after: &Reading) -> Weather {
    let elapsed = after.at.saturating_duration_since(before.at);
    let wall = after.wall.duration_since(before.wall).unwrap_or_default();
    let jump = elapsed.abs_diff(wall);
    if elapsed < SPAN_MIN {
        return Weather { jump, ..Weather::default() };
    }
    let seconds = elapsed.as_secs_f64();
    let ticks = after.total_ticks.saturating_sub(before.total_ticks) as f64;
    let growth = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?) as f64);
    let stalls = std::array::from_fn(|index| {
        growth(before.stalled_us[index], after.stalled_us[index]).map(|us| us / 1e6 / seconds)
    });
    Weather {
        steal: growth(before.steal_ticks, after.steal_ticks)
            .map(|steal| if ticks > 0.0 { steal / ticks } else { 0.0 }),
        stalls,
        throttled: growth(before.throttled_us, after.throttled_us).map(|us| us / 1e6 / seconds),
        thermal: growth(before.thermal_events, after.thermal_events).map(|events| events / seconds),
        jump,
    }
}

/// Names of the CPUs: `cpu0` and so on.
fn cpus() -> Vec<String> {
    let number = |name: &String| name.strip_prefix("cpu")?.parse::<u32>().ok();
    let mut names: Vec<String> =
        Host::live().list(CPUS).into_iter().filter(|name| number(name).is_some()).collect();
    names.sort_small_by_key(number);
    names
}

/// How fast the CPUs ran, as the kernel tells it.
#[derive(Debug)]
pub(super) struct Frequencies {
    /// Files in kHz; none where there is a reason.
    files: Vec<String>,
    /// Whether it is read from `/proc/cpuinfo` instead.
    from_cpuinfo: bool,
    pub(super) reason: Option<String>,
    pub(super) mhz: Option<(f64, f64)>,
}

impl Frequencies {
    pub(super) fn find() -> Self {
        let files = cpus().into_iter().map(|cpu| format!("{CPUS}/{cpu}/cpufreq/scaling_cur_freq"));
        let files: Vec<String> = files.filter(|file| kernel::read(file).is_some()).collect();
        let step = files.len().div_ceil(CPUS_MAX).max(1);
        let files: Vec<String> = files.into_iter().step_by(step).collect();
        let reason =
            if files.is_empty() { why_not(&kernel::read("/proc/cpuinfo").unwrap_or_default()) } else { None };
        Self { from_cpuinfo: files.is_empty() && reason.is_none(), files, reason, mhz: None }
    }

    /// Looks once.
    pub(super) fn look(&mut self) {
        let khz = |file: &String| Some(kernel::read(file)?.trim().parse::<f64>().ok()? / 1000.0);
        let mut seen: Vec<f64> = self.files.iter().filter_map(khz).collect();
        if self.from_cpuinfo {
            seen.extend(mhz_of(&kernel::read("/proc/cpuinfo").unwrap_or_default()));
        }
        for mhz in seen.into_iter().filter(|mhz| *mhz > 0.0) {
            let (low, high) = self.mhz.unwrap_or((mhz, mhz));
            self.mhz = Some((low.min(mhz), high.max(mhz)));
        }
    }
}

/// Why `/proc/cpuinfo` says nothing of how fast the CPUs run.
fn why_not(cpuinfo: &str) -> Option<String> {
    let is_guest = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"));
    if is_guest {
        return Some("a guest is told one fixed figure, whatever its CPUs do".to_owned());
    }
    let none = mhz_of(cpuinfo).is_empty();
    none.then(|| "there is no cpufreq driver, and /proc/cpuinfo tells no MHz".to_owned())
}

fn mhz_of(cpuinfo: &str) -> Vec<f64> {
    let value = |line: &str| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse().ok();
    cpuinfo.lines().filter_map(value).take(CPUS_MAX).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_span_of_a_few_milliseconds_has_no_weather() {
        let now = Instant::now();
        let reading = |milliseconds: u64, steal_ticks: u64, total_ticks: u64| Reading {
            at: now + Duration::from_millis(milliseconds),
            wall: SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds),
            steal_ticks: Some(steal_ticks),
            total_ticks,
            stalled_us: [Some(1000 * milliseconds), None, None, Some(milliseconds), None, None],
            throttled_us: Some(500 * milliseconds),
            thermal_events: Some(milliseconds / 100),
        };
        let start = reading(0, 0, 0);
        let calm = Weather::default();
        assert_eq!(weather(&start, &reading(4, 1, 2)), calm, "one tick is no half of the time");
        let seen = weather(&start, &reading(400, 40, 80));
        assert_eq!((seen.steal, seen.stalls[0], seen.stalls[1]), (Some(0.5), Some(1.0), None));
        assert_eq!((seen.throttled, seen.thermal), (Some(0.5), Some(10.0)));
        assert!((seen.stalls[3].expect("counted") - 0.001).abs() < 1e-9);
    }

    #[test]
    fn a_guest_and_a_machine_without_figures_say_so() {
        let guest = "flags\t\t: fpu hypervisor tsc\ncpu MHz\t\t: 2596.098\n";
        assert!(why_not(guest).is_some_and(|reason| reason.starts_with("a guest")));
        let metal = "flags\t\t: fpu tsc\ncpu MHz\t\t: 2596.098\ncpu MHz\t\t: 3100.5\n";
        assert_eq!((why_not(metal), mhz_of(metal)), (None, vec![2596.098, 3100.5]));
        assert!(why_not("Features : fp asimd\n").is_some_and(|reason| reason.contains("no MHz")));
    }

    #[test]
    fn this_machine_is_read_or_says_why_not() {
        let station = Station::find();
        let reading = station.read();
        assert!(reading.steal_ticks.is_some() && reading.total_ticks > 0);
        let mut frequencies = Frequencies::find();
        frequencies.look();
        match frequencies.mhz {
            Some((low, high)) => assert!(low > 0.0 && low <= high && frequencies.reason.is_none()),
            None => {
                planish_skip::skip("the frequency of this machine", frequencies.reason.expect("it says why"))
            }
        }
    }
}
