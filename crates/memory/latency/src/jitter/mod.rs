//! How much of a CPU's time a thread does not get, and how late it is woken.
//!
//! ```text
//!  round    spin  |  look at the clock again and again: what lies between two looks was taken by somebody
//!           sleep |  until a moment, again and again: by how much it was missed
//! ```
//!
//! Both halves run on all CPUs at once, in an order that a coin draws. Counters of the kernel stand beside the spinning
//! half: they name who took the time (the local timer, interrupts, softirqs, the hypervisor). Threads are ordinary ones
//! (SCHED_OTHER), so that they starve nobody; what preempts them counts as a gap.

mod gaps;
pub(crate) mod sources;
mod wake;

use std::time::Duration;

use planish_host::Host;

pub use gaps::{Bucket, GapFigures};
pub use sources::{Source, SourceFigures};
pub use wake::WakeFigures;

use crate::Rounds;
use crate::error::LatencyError;
use crate::pin::pin;
use gaps::Spun;
use sources::Totals;
use wake::Woken;

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct JitterPlan {
    /// The CPUs, all at once.
    pub cpus: Vec<u32>,
    /// Time for everything: half of it is spun, half slept.
    pub span: Duration,
    /// A gap is at least so long.
    pub threshold_ns: u64,
}

/// What was found on one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct JitterRow {
    /// The CPU.
    pub cpu: u32,
    /// Time that a spinning thread did not get.
    pub gaps: GapFigures,
    /// By how much timers were late.
    pub wake: WakeFigures,
    /// Who interrupted, while the thread was spinning.
    pub sources: SourceFigures,
}

/// Threads are started and pinned before the half begins, and reaped after it has ended, so that neither falls into it.
const MARGIN: Duration = Duration::from_millis(2);
/// The same for each thread.
const MARGIN_EACH: Duration = Duration::from_micros(100);

/// Measures all CPUs of a plan.
///
/// # Errors
/// A CPU cannot be used, a thread not be started, or the timer fails.
pub fn measure_jitter(plan: &JitterPlan, rounds: &mut Rounds) -> Result<Vec<JitterRow>, LatencyError> {
    let half = plan.span / 2 / u32::try_from(rounds.count.max(1)).unwrap_or(u32::MAX);
    let mut spun: Vec<Vec<Spun>> = vec![Vec::new(); plan.cpus.len()];
    let mut woken: Vec<Vec<Woken>> = vec![Vec::new(); plan.cpus.len()];
    let mut totals: Vec<(Totals, Totals)> = Vec::new();
    for _ in 0..rounds.count {
        let spin_first = rounds.rng.coin();
        let seed = rounds.rng.next_u64();
        for is_spin in [spin_first, !spin_first] {
            if is_spin {
                let before = Totals::read(&Host::live());
                let seen = on_all(&plan.cpus, half, |begin| {
                    let mut one = Spun::ready();
                    sleep_until(begin)?;
                    one.spin(half);
                    Ok(one)
                })?;
                totals.push((before, Totals::read(&Host::live())));
                spun.iter_mut().zip(seen).for_each(|(all, one)| all.push(one));
            } else {
                let seen = on_all(&plan.cpus, half, |begin| {
                    let mut one = Woken::ready()?;
                    sleep_until(begin)?;
                    one.sleep(half, seed)?;
                    Ok(one)
                })?;
                woken.iter_mut().zip(seen).for_each(|(all, one)| all.push(one));
            }
        }
    }
    let rows = plan.cpus.iter().zip(&spun).zip(&woken);
    let row = |((&cpu, spun), woken): ((&u32, &Vec<Spun>), &Vec<Woken>)| JitterRow {
        cpu,
        gaps: gaps::figures(spun, plan.threshold_ns, rounds.spread),
        wake: wake::figures(woken, rounds.spread),
        sources: sources::figures(cpu, &totals, rounds.spread),
    };
    Ok(rows.map(row).collect())
}

/// A moment of the monotonic clock.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The clock counts from the boot: neither part is negative.
    now.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(now.tv_nsec.unsigned_abs())
}

/// Sleeps until a moment of the monotonic clock; whether nothing cut it short.
fn sleep_until(moment_ns: u64) -> Result<bool, LatencyError> {
    let moment = rustix::time::Timespec {
        tv_sec: (moment_ns / 1_000_000_000).try_into().unwrap_or(i64::MAX),
        tv_nsec: (moment_ns % 1_000_000_000) as _,
    };
    match rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &moment) {
        Ok(()) => Ok(true),
        Err(planish_sys::Errno::INTR) => Ok(false),
        Err(error) => Err(LatencyError::Timer(error.into())),
    }
}

/// Does the same on every CPU, beginning at the same moment; the results in the order of the CPUs.
fn on_all<T: Send>(
    cpus: &[u32],
    length: Duration,
    work: impl Fn(u64) -> Result<T, LatencyError> + Sync,
) -> Result<Vec<T>, LatencyError> {
    let margin = MARGIN + MARGIN_EACH * u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let begin = now_ns() + margin.as_nanos() as u64;
    let work = &work;
    std::thread::scope(|scope| {
        let start = |&cpu: &u32| {
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                pin(cpu)?;
                work(begin)
            });
            started.map_err(LatencyError::Thread)
        };
        let threads: Vec<_> = cpus.iter().map(start).collect();
        // Waking us would cost one of the CPUs its time.
        sleep_until(begin + (length + margin).as_nanos() as u64)?;
        threads.into_iter().map(|thread| thread?.join().expect("measuring does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use planish_stats::Rng;
    use planish_topo::Topology;

    use super::*;
    use crate::figure::Spread;

    #[test]
    fn each_cpu_of_this_machine_is_watched() {
        let cpus: Vec<u32> = Topology::read(&Host::live()).allowed().iter().take(2).collect();
        let plan = JitterPlan { cpus: cpus.clone(), span: Duration::from_millis(240), threshold_ns: 1000 };
        let mut rounds = Rounds { count: 6, spread: Spread::Usual, rng: Rng::new(1) };
        let rows = measure_jitter(&plan, &mut rounds).expect("CPUs that we may use");
        assert_eq!(rows.iter().map(|row| row.cpu).collect::<Vec<_>>(), cpus);
        for row in rows {
            assert!(row.gaps.seconds >= 0.12 && row.gaps.max_ns >= 1, "{row:?}");
            let quantiles: Vec<f64> = row.gaps.by_time.iter().map(|(_, figure)| figure.value).collect();
            assert!(quantiles.is_sorted(), "{quantiles:?}");
            assert!(row.wake.count > 0 && row.wake.max_ns >= 1, "{row:?}");
            assert!(row.sources.seconds > 0.0);
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_not_a_hang() {
        let plan = JitterPlan { cpus: vec![0, 3000], span: Duration::from_millis(40), threshold_ns: 1000 };
        let mut rounds = Rounds { count: 2, spread: Spread::Usual, rng: Rng::new(1) };
        assert!(matches!(measure_jitter(&plan, &mut rounds), Err(LatencyError::Pin { cpu: 3000, .. })));
    }
}
