//! Adapters: how a program's speed becomes metrics.
//!
//! | adapter | the unit of work | metrics |
//! |---|---|---|
//! | command | one run of a program | `wall_s` `user_s` `system_s` `cpu_s` `rss_bytes` `faults` |
//! | number | the same | what a regular expression or a JSON pointer finds in its output, and those |
//! | pgbench | the same | `tps` `latency_ms` `latency_sd_ms` `error_rate`, in its log `p50_ns` ... `max_ns`, those |
//! | jitter | the same | `gap_p99_99_ns` ... `wake_p99_ns` ... `ticks_per_s` `irqs_per_s` `lost_share`, and those |
//! | http | requests at a fixed rate | `p50_ns` ... `max_ns` `sd_ns` `iqr_ns` `ops_per_s` `error_rate` |
//! | slices | one slice of a resident program | `cpu_ns_per_op` `user_ns_per_op` ... and latencies |

mod http;
mod jitter;
mod latency;
mod number;
mod pgbench;
mod slices;

use std::time::{Duration, Instant};

use planish_sys::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use http::HttpLoad;
pub(crate) use jitter::{
    may_be_zero as jitter_may_be_zero, missing_words, names as jitter_names, unit as jitter_unit,
};
pub(crate) use latency::{LATENCIES, put as put_latency};
pub use number::Number;
pub(crate) use pgbench::{has_log as pgbench_has_log, reports_progress};
pub use slices::SliceArm;
pub(crate) use slices::{read as read_slice, read_ready};

use crate::child::{Finished, Launch, run_once};
use crate::collect::{Snapshot, add_counts, add_memory};
use crate::control::Stop;
use crate::duet::SIDE;
use crate::outcome::Better;
use crate::sample::{ArmError, Sample};

/// The kinds of adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// Runs a program to its end and measures it from outside.
    Command,
    /// The same, and reads numbers from its output.
    Number,
    /// The same, and reads what pgbench says.
    Pgbench,
    /// The same, and reads the jitter of CPUs that `planish latency --jitter --json` measures.
    Jitter,
    /// Sends requests at a fixed rate.
    Http,
    /// Asks a resident program for slices of work, in lines: see `docs/trials.md`.
    Slices,
}

/// A load that is put on an arm once a unit.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    Command(Launch),
    Number(Launch, Vec<Number>),
    Pgbench(Launch),
    Jitter(Launch),
    Http(HttpLoad),
}

/// How one unit of a load is run.
pub(crate) struct Unit<'a> {
    /// Bytes by which the environment of a program that it starts is longer.
    pub(crate) padding: usize,
    /// What is left out of its begin, where it is not run before the unit.
    pub(crate) left_out: Duration,
    /// Windows that it shall have at least, where it can be made longer.
    pub(crate) windows: Option<usize>,
    /// After what it has failed, and so has a warm-up before it.
    pub(crate) limit: Duration,
    pub(crate) stop: &'a Stop,
}

/// Metrics that every program which runs to its end has, with their good direction.
pub(crate) const OF_COMMAND: [&str; 6] = ["wall_s", "user_s", "system_s", "cpu_s", "rss_bytes", "faults"];

impl Load {
    /// Whether this metric can be had without the first part of a unit.
    pub(crate) fn can_warm_up(&self, metric: &str) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Pgbench(launch) => {
                reports_progress(&launch.command) && pgbench::OF_PROGRESS.contains(&metric)
            }
            Self::Command(_) | Self::Number(..) | Self::Jitter(_) => false,
        }
    }

    /// What comes before the load that is measured, so that its cost is not counted.
    pub(crate) fn warm_up(&self, unit: &Unit<'_>) -> Result<(), ArmError> {
        match self {
            Self::Http(load) => load.warm_up(unit.left_out, unit.limit, unit.stop),
            Self::Command(_) | Self::Number(..) | Self::Pgbench(_) | Self::Jitter(_) => Ok(()),
        }
    }

    /// The program that it starts, if any.
    pub(crate) fn launch(&self) -> Option<&Launch> {
        match self {
            Self::Command(launch)
            | Self::Number(launch, _)
            | Self::Pgbench(launch)
            | Self::Jitter(launch) => Some(launch),
            Self::Http(_) => None,
        }
    }

    /// The same load as one of two that run side by side: on these CPUs, and told which one it is.
    pub(crate) fn on_side(&self, side: usize, cpus: &CpuSet) -> Self {
        let mut load = self.clone();
        if let Self::Command(launch)
        | Self::Number(launch, _)
        | Self::Pgbench(launch)
        | Self::Jitter(launch) = &mut load
        {
            launch.cpus = Some(cpus.clone());
            launch.env.insert(SIDE.to_owned(), side.to_string());
        }
        load
    }

    /// Puts the load on and measures it.
    pub(crate) fn measure(&self, unit: &Unit<'_>) -> Result<Sample, ArmError> {
        match self {
            Self::Command(launch) => run_measured(launch, unit).map(|(sample, _)| sample),
            Self::Number(launch, numbers) => {
                let (mut sample, done) = run_measured(launch, unit)?;
                for number in numbers {
                    let value = number.find(&done.stdout).map_err(ArmError::crashed)?;
                    sample.put(&number.name, number.unit.clone(), number.better, value);
                }
                Ok(sample)
            }
            Self::Pgbench(launch) => {
                let log = pgbench::Log::of(launch).map_err(ArmError::crashed)?;
                let launch = log.as_ref().map_or_else(|| launch.clone(), |log| log.told_to(launch));
                let (mut sample, done) = run_measured(&launch, unit)?;
                pgbench::read_both(&done.stdout, &done.stderr, unit.left_out, &mut sample)
                    .and_then(|()| log.map_or(Ok(()), |log| log.read(unit.left_out, &mut sample)))
                    .map_err(ArmError::crashed)?;
                Ok(sample)
            }
            Self::Jitter(launch) => {
                let (mut sample, done) = run_measured(launch, unit)?;
                jitter::read(&done.stdout, &mut sample).map_err(ArmError::crashed)?;
                Ok(sample)
            }
            Self::Http(load) => load.run(unit.windows, unit.limit, unit.stop),
        }
    }
}

/// What pgbench said of a unit, without the unit.
pub(crate) fn read_pgbench(report: &str, progress: &str, left_out: Duration) -> Result<Sample, String> {
    let mut sample = Sample::default();
    pgbench::read_both(report, progress, left_out, &mut sample).map(|()| sample)
}

/// What a measurement of jitter said, without the measurement.
pub(crate) fn read_jitter(output: &str) -> Result<Sample, String> {
    let mut sample = Sample::default();
    jitter::read(output, &mut sample).map(|()| sample)
}

/// Runs a program to its end; its cost from outside, and what it said.
fn run_measured(launch: &Launch, unit: &Unit<'_>) -> Result<(Sample, Finished), ArmError> {
    let before = Snapshot::take();
    let done = run_once(launch, unit.padding, unit.limit, unit.stop)?;
    let ended = Instant::now();
    let (user, system) = (done.usage.user.as_secs_f64(), done.usage.system.as_secs_f64());
    let faults = done.usage.faults_minor + done.usage.faults_major;
    let mut sample = Sample { achieved: done.bound.clone(), ..Sample::default() };
    sample.put("wall_s", "s", Better::Lower, done.wall.as_secs_f64());
    sample.put("user_s", "s", Better::Lower, user);
    sample.put("system_s", "s", Better::Lower, system);
    sample.put("cpu_s", "s", Better::Lower, user + system);
    sample.put("rss_bytes", "B", Better::Lower, done.usage.resident_bytes_max as f64);
    sample.put("faults", "", Better::Lower, faults as f64);
    add_counts(&mut sample, &done.counts);
    add_memory(&mut sample, &done.memory);
    sample.bookkeeping += ended.elapsed();
    before.add_growth(&mut sample);
    Ok((sample, done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_measured_from_outside() {
        let launch = Launch::of(["sh", "-c", "echo rate: 12.5"].map(str::to_owned).to_vec());
        let number = Number {
            name: "rate".to_owned(),
            unit: "1/s".to_owned(),
            better: Better::Higher,
            regex: Some("rate: ([0-9.]+)".to_owned()),
            pointer: None,
        };
        let load = Load::Number(launch, vec![number]);
        let (stop, limit) = (Stop::default(), Duration::from_secs(60));
        let unit = Unit { padding: 0, left_out: Duration::ZERO, windows: None, limit, stop: &stop };
        let sample = load.measure(&unit).expect("it runs");
        assert!(OF_COMMAND.iter().all(|name| sample.value(name).is_some()));
        assert_eq!(sample.value("rate"), Some(12.5));
        let parts = sample.value("user_s").expect("user") + sample.value("system_s").expect("system");
        assert_eq!(sample.value("cpu_s"), Some(parts));
        crate::collect::tests::assert_complete(&sample);
    }
}
