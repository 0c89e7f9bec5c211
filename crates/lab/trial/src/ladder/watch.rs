//! What the machine did while a block ran: the only ground on which a block may be thrown away.
//!
//! Steal, stalls for a processor and a clock that jumped know nothing of which arm was running, so leaving
//! out their blocks cannot favour one. Thresholds come from the self-check; a share of blocks at most is
//! redone, since a machine that is always busy is the machine that the answer is for.

use std::time::{Duration, Instant, SystemTime};

use crate::kernel;

/// A block with more steal than this share is never believed, however noisy the self-check was.
const STEAL_FLOOR: f64 = 0.05;
/// The same for the share of time in which some task waited for a processor.
const PRESSURE_FLOOR: f64 = 0.30;
/// A span below this has no weather: the kernel counts in ticks of 10 ms, and a single one that the hypervisor took
/// would be half of a short block.
const SPAN_MIN: Duration = Duration::from_millis(100);
/// A clock that moved by more than this against the other was set by someone.
const CLOCK_JUMP: Duration = Duration::from_millis(250);

/// What is read before and after a block.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    wall: SystemTime,
    steal_ticks: Option<u64>,
    total_ticks: u64,
    waited_us: Option<u64>,
}

/// What the machine did during a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weather {
    /// Share of processor time that the hypervisor took.
    pub(crate) steal: Option<f64>,
    /// Share of time in which some task waited for a processor.
    pub(crate) pressure: Option<f64>,
    /// By how much the wall clock left the monotonic one.
    pub(crate) jump: Duration,
}

/// Reads the weather and judges it.
#[derive(Debug)]
pub(crate) struct Watch {
    steal_limit: f64,
    pressure_limit: f64,
    seen: Vec<Weather>,
}

/// A span that is being watched.
#[derive(Debug)]
pub(crate) struct Span(Reading);

impl Watch {
    pub(crate) fn new() -> Self {
        Self { steal_limit: f64::INFINITY, pressure_limit: f64::INFINITY, seen: Vec::new() }
    }

    pub(crate) fn begin(&self) -> Span {
        Span(read())
    }

    pub(crate) fn end(&mut self, span: &Span) -> Weather {
        let weather = weather(&span.0, &read());
        self.seen.push(weather);
        weather
    }

    /// Sets the limits by what has been seen so far: the self-check's own weather.
    pub(crate) fn learn(&mut self) {
        let limit = |values: Vec<f64>, floor: f64| {
            let spread = planish_stats::summary::robust_sigma(&values);
            let centre = planish_stats::summary::median(&values);
            if values.is_empty() { f64::INFINITY } else { floor.max(centre + 6.0 * spread) }
        };
        self.steal_limit = limit(self.seen.iter().filter_map(|seen| seen.steal).collect(), STEAL_FLOOR);
        self.pressure_limit =
            limit(self.seen.iter().filter_map(|seen| seen.pressure).collect(), PRESSURE_FLOOR);
    }

    /// Mean steal and pressure so far.
    pub(crate) fn mean(&self) -> (Option<f64>, Option<f64>) {
        let mean = |values: Vec<f64>| (!values.is_empty()).then(|| planish_stats::summary::mean(&values));
        (
            mean(self.seen.iter().filter_map(|seen| seen.steal).collect()),
            mean(self.seen.iter().filter_map(|seen| seen.pressure).collect()),
        )
    }

    /// Why a block of this weather must be run again, if it must.
    pub(crate) fn objection(&self, weather: &Weather) -> Option<String> {
        if weather.jump > CLOCK_JUMP {
            return Some(format!("the clock was set by {:.1} s meanwhile", weather.jump.as_secs_f64()));
        }
        let over = |what: &str, value: Option<f64>, limit: f64| {
            let value = value.filter(|&value| value > limit)?;
            Some(format!("{what} {:.0} %, limit {:.0} %", 100.0 * value, 100.0 * limit))
        };
        over("steal", weather.steal, self.steal_limit)
            .or_else(|| over("stalls for a processor", weather.pressure, self.pressure_limit))
    }
}

fn read() -> Reading {
    let ticks = kernel::read("/proc/stat").and_then(|text| kernel::cpu_ticks(&text));
    let pressure = kernel::read("/proc/pressure/cpu");
    Reading {
        at: Instant::now(),
        wall: SystemTime::now(),
        steal_ticks: ticks.map(|ticks| ticks.steal),
        total_ticks: ticks.map_or(0, |ticks| ticks.total),
        waited_us: pressure.as_deref().and_then(kernel::waited_us),
    }
}

fn weather(before: &Reading, after: &Reading) -> Weather {
    let elapsed = after.at.saturating_duration_since(before.at);
    let wall = after.wall.duration_since(before.wall).unwrap_or_default();
    let jump = elapsed.abs_diff(wall);
    if elapsed < SPAN_MIN {
        return Weather { steal: None, pressure: None, jump };
    }
    let share = |part: u64, whole: f64| if whole > 0.0 { part as f64 / whole } else { 0.0 };
    let ticks = after.total_ticks.saturating_sub(before.total_ticks) as f64;
    let steal = before.steal_ticks.zip(after.steal_ticks);
    let waited = before.waited_us.zip(after.waited_us);
    Weather {
        steal: steal.map(|(before, after)| share(after.saturating_sub(before), ticks)),
        pressure: waited
            .map(|(before, after)| share(after.saturating_sub(before), elapsed.as_secs_f64() * 1e6)),
        jump,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_redone_for_steal_beyond_what_the_self_check_saw() {
        let mut watch = Watch::new();
        let calm = Weather { steal: Some(0.01), pressure: Some(0.1), jump: Duration::ZERO };
        assert_eq!(watch.objection(&Weather { steal: Some(0.9), ..calm }), None, "nothing is learned yet");
        watch.seen = vec![calm; 8];
        watch.learn();
        assert_eq!(watch.objection(&calm), None);
        assert_eq!(
            watch.objection(&Weather { steal: Some(0.2), ..calm }).as_deref(),
            Some("steal 20 %, limit 5 %")
        );
        assert!(watch.objection(&Weather { jump: Duration::from_secs(2), ..calm }).is_some());
    }

    #[test]
    fn a_span_of_a_few_milliseconds_has_no_weather() {
        let now = Instant::now();
        let reading = |milliseconds: u64, steal_ticks: u64, total_ticks: u64| Reading {
            at: now + Duration::from_millis(milliseconds),
            wall: SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds),
            steal_ticks: Some(steal_ticks),
            total_ticks,
            waited_us: Some(1000 * milliseconds),
        };
        let start = reading(0, 0, 0);
        let calm = Weather { steal: None, pressure: None, jump: Duration::ZERO };
        assert_eq!(weather(&start, &reading(4, 1, 2)), calm, "one tick is no half of the time");
        let seen = weather(&start, &reading(400, 40, 80));
        assert_eq!((seen.steal, seen.pressure), (Some(0.5), Some(1.0)));
    }
}
