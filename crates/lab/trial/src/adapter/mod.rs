//! Adapters: how a program's speed becomes metrics.
//!
//! | adapter | the unit of work | metrics |
//! |---|---|---|
//! | command | one run of a program | `wall_s` `user_s` `system_s` `cpu_s` `rss_bytes` `faults` |
//! | number | the same | what a regular expression or a JSON pointer finds in its output, and those |
//! | pgbench | the same | `tps` `latency_ms` `latency_sd_ms` `error_rate`, in pgbench's words, and those |
//! | http | requests at a fixed rate | `p50_ns` ... `max_ns` `sd_ns` `iqr_ns` `ops_per_s` `error_rate` |
//! | slices | one slice of a resident program | `cpu_ns_per_op` `user_ns_per_op` ... and latencies |

mod http;
mod latency;
mod number;
mod pgbench;
mod slices;

use std::time::Duration;

use planish_sys::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use http::HttpLoad;
pub(crate) use latency::{LATENCIES, put as put_latency};
pub use number::Number;
pub use slices::SliceArm;

use crate::child::{Launch, run_once};
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
    Http(HttpLoad),
}

/// Metrics that every program which runs to its end has, with their good direction.
pub(crate) const OF_COMMAND: [&str; 6] = ["wall_s", "user_s", "system_s", "cpu_s", "rss_bytes", "faults"];

impl Load {
    /// What comes before the load that is measured, so that its cost is not counted.
    pub(crate) fn warm_up(&self, stop: &Stop) -> Result<(), ArmError> {
        match self {
            Self::Http(load) => load.warm_up(stop),
            Self::Command(_) | Self::Number(..) | Self::Pgbench(_) => Ok(()),
        }
    }

    /// The same load as one of two that run side by side: on these CPUs, and told which one it is.
    pub(crate) fn on_side(&self, side: usize, cpus: &CpuSet) -> Self {
        let mut load = self.clone();
        if let Self::Command(launch) | Self::Number(launch, _) | Self::Pgbench(launch) = &mut load {
            launch.cpus = Some(cpus.clone());
            launch.env.insert(SIDE.to_owned(), side.to_string());
        }
        load
    }

    /// Puts the load on and measures it.
    pub(crate) fn measure(&self, padding: usize, limit: Duration, stop: &Stop) -> Result<Sample, ArmError> {
        match self {
            Self::Command(launch) => run_measured(launch, padding, limit, stop).map(|(sample, _)| sample),
            Self::Number(launch, numbers) => {
                let (mut sample, stdout) = run_measured(launch, padding, limit, stop)?;
                for number in numbers {
                    let value = number.find(&stdout).map_err(ArmError::crashed)?;
                    sample.put(&number.name, number.unit.clone(), number.better, value);
                }
                Ok(sample)
            }
            Self::Pgbench(launch) => {
                let (mut sample, stdout) = run_measured(launch, padding, limit, stop)?;
                pgbench::read(&stdout, &mut sample).map_err(ArmError::crashed)?;
                Ok(sample)
            }
            Self::Http(load) => load.run(stop),
        }
    }
}

/// Runs a program to its end; its cost from outside, and its output.
fn run_measured(
    launch: &Launch,
    padding: usize,
    limit: Duration,
    stop: &Stop,
) -> Result<(Sample, String), ArmError> {
    let before = Snapshot::take();
    let done = run_once(launch, padding, limit, stop)?;
    let (user, system) = (done.usage.user.as_secs_f64(), done.usage.system.as_secs_f64());
    let faults = done.usage.faults_minor + done.usage.faults_major;
    let mut sample = Sample::default();
    sample.put("wall_s", "s", Better::Lower, done.wall.as_secs_f64());
    sample.put("user_s", "s", Better::Lower, user);
    sample.put("system_s", "s", Better::Lower, system);
    sample.put("cpu_s", "s", Better::Lower, user + system);
    sample.put("rss_bytes", "B", Better::Lower, done.usage.resident_bytes_max as f64);
    sample.put("faults", "", Better::Lower, faults as f64);
    before.add_growth(&mut sample);
    add_counts(&mut sample, &done.counts);
    add_memory(&mut sample, &done.memory);
    Ok((sample, done.stdout))
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
        let sample = load.measure(0, Duration::from_secs(60), &Stop::default()).expect("it runs");
        assert!(OF_COMMAND.iter().all(|name| sample.value(name).is_some()));
        assert_eq!(sample.value("rate"), Some(12.5));
        let parts = sample.value("user_s").expect("user") + sample.value("system_s").expect("system");
        assert_eq!(sample.value("cpu_s"), Some(parts));
        crate::collect::tests::assert_complete(&sample);
    }
}
