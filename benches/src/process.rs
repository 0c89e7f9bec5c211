//! Wall time of whole processes.

use crate::row::Figure;
use anyhow::{Context, Result, ensure};
use planish_sys::child;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs until caches are warm and pages are mapped.
const WARM_UP_RUNS: usize = 3;

/// Milliseconds of a process: median over `runs`, with the 95 % interval of the median.
///
/// `before` prepares each run and is not timed; an exit code outside `exits` ends the measurement.
pub fn milliseconds(
    runs: usize,
    exits: &[i32],
    mut before: impl FnMut() -> Result<()>,
    mut command: impl FnMut() -> Command,
) -> Result<Figure> {
    let mut times = Vec::with_capacity(runs);
    for run in 0..WARM_UP_RUNS + runs {
        before()?;
        let mut command = command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let status =
            command.status().with_context(|| format!("start {}", command.get_program().display()))?;
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        ensure!(status.code().is_some_and(|code| exits.contains(&code)), "{command:?} left with {status}");
        if run >= WARM_UP_RUNS {
            times.push(elapsed);
        }
    }
    Ok(median(&mut times))
}

/// Most memory that a process had in place at once, in megabytes: the largest of `runs`.
///
/// The kernel counts what this program had when it started the other one, too: a figure below that of the benchmark
/// itself (some megabytes) cannot be seen.
pub fn megabytes(runs: usize, exits: &[i32], mut command: impl FnMut() -> Command) -> Result<Figure> {
    let mut most = 0;
    for _ in 0..runs {
        let mut command = command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started =
            command.spawn().with_context(|| format!("start {}", command.get_program().display()))?;
        let (status, usage) = child::wait_with_usage(started).context("wait for it")?;
        ensure!(status.code().is_some_and(|code| exits.contains(&code)), "{command:?} left with {status}");
        most = most.max(usage.resident_bytes_max);
    }
    Ok(Figure::exact(most as f64 / 1e6))
}

/// The median with the order statistics that enclose it in 95 % of samples, whatever their distribution
/// (normal approximation of the binomial ranks).
pub fn median(sample: &mut [f64]) -> Figure {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    let half_width = 0.98 * count.sqrt();
    let rank = |rank: f64| sample[rank.clamp(0.0, count - 1.0) as usize];
    Figure {
        value: planish_stats::summary::median(sample),
        low: rank((count / 2.0 - half_width).floor()),
        high: rank((count / 2.0 + half_width).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn interval_of_the_median_encloses_it() {
        let mut sample: Vec<f64> = (0..101).rev().map(f64::from).collect();
        let figure = median(&mut sample);
        assert!((figure.value - 50.0).abs() < 1e-9);
        assert_eq!((figure.low, figure.high), (40.0, 61.0));
    }

    #[test]
    fn one_run_is_its_own_interval() {
        let figure = median(&mut [7.0]);
        assert_eq!((figure.low, figure.value, figure.high), (7.0, 7.0, 7.0));
    }
}
