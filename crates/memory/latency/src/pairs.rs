//! How long a cache line takes from one CPU to another and back.
//!
//! Two threads, each kept on its CPU, write a line in turn: a number goes up by one with each hand-over, and each
//! waits until it sees the other's. So a round trip is two transfers of a modified line, as a lock or a queue pays
//! them. Tools that tell one way halve it.
//!
//! No `pause` in the waiting loop: it takes up to 140 cycles on some processors, which is more than a transfer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use crate::Rounds;
use crate::error::LatencyError;
use crate::figure::Figure;
use crate::pin::pin;

/// Round trips before those that are timed: the line and the code get to where they are used.
const WARM_UP: u64 = 200;
/// Round trips that are timed in a round.
const TRIPS: u64 = 2000;
/// A round takes a thousandth of this; where something holds one of the CPUs, it is given up after it.
const LIMIT: Duration = Duration::from_secs(3);

/// Two CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRow {
    /// The one that began; the lower number.
    pub first: u32,
    /// The one that answered.
    pub second: u32,
    /// Round trip in nanoseconds; why not, where no round came to an end.
    pub round_trip_ns: Result<Figure, String>,
    /// What each round gave, up to the one in which it was given up.
    pub rounds_ns: Vec<f64>,
}

/// Every pair of `cpus`, in the order of their numbers; nothing for a single CPU.
///
/// In each round the pairs come in another order, so that a slow minute falls on all alike.
///
/// # Errors
/// A CPU that was there before cannot be used any more.
pub fn measure_pairs(cpus: &[u32], rounds: &mut Rounds) -> Result<Vec<PairRow>, LatencyError> {
    let pairs: Vec<(u32, u32)> = cpus
        .iter()
        .enumerate()
        .flat_map(|(index, &first)| cpus[index + 1..].iter().map(move |&second| (first, second)))
        .collect();
    let mut seen: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds.count); pairs.len()];
    let mut stuck: Vec<Option<String>> = vec![None; pairs.len()];
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    for _ in 0..rounds.count {
        rounds.rng.shuffle(&mut order);
        for &index in &order {
            if stuck[index].is_some() {
                continue;
            }
            // Whoever begins also has the line made on its node: a coin, so that neither end is favoured.
            let (first, second) = pairs[index];
            let ends = if rounds.rng.coin() { (first, second) } else { (second, first) };
            match ping_pong(ends.0, ends.1) {
                Ok(ns) => seen[index].push(ns),
                Err(error @ LatencyError::Stuck { .. }) => stuck[index] = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
    }
    let rows = pairs.into_iter().zip(seen).enumerate().map(|(index, ((first, second), rounds_ns))| {
        let why = || stuck[index].clone().unwrap_or_else(|| "no round came to an end".to_owned());
        let figure = Figure::of(&rounds_ns, rounds.spread);
        PairRow { first, second, round_trip_ns: figure.ok_or_else(why), rounds_ns }
    });
    Ok(rows.collect())
}

/// A number alone on its line, and on the one that a prefetcher takes along.
#[repr(align(256))]
struct Line(AtomicU64);

/// Lines that are made for one: so many bytes are fresh pages from the kernel, which lie where they are touched first.
const LINES: usize = 1024;

/// Nanoseconds of a round trip, on average over a round.
fn ping_pong(first: u32, second: u32) -> Result<f64, LatencyError> {
    let (ready, failed) = (Barrier::new(2), AtomicBool::new(false));
    let lines: OnceLock<Vec<Line>> = OnceLock::new();
    let side = |cpu: u32, parity: u64| -> Result<Option<Duration>, LatencyError> {
        let pinned = pin(cpu);
        if pinned.is_err() {
            failed.store(true, Ordering::SeqCst);
        } else if parity == 0 {
            lines.get_or_init(|| (0..LINES).map(|_| Line(AtomicU64::new(0))).collect());
        }
        // Both meet before either waits for a line, so that who cannot be pinned keeps nobody waiting.
        ready.wait();
        pinned?;
        let lines = lines.get().filter(|_| !failed.load(Ordering::SeqCst));
        Ok(lines.and_then(|lines| hand_over(&lines[LINES / 2].0, parity)))
    };
    let (began, answered) = std::thread::scope(|scope| {
        let answering = std::thread::Builder::new().spawn_scoped(scope, || side(second, 1));
        let answering = answering.map_err(LatencyError::Thread)?;
        let beginning = std::thread::Builder::new().spawn_scoped(scope, || side(first, 0));
        if beginning.is_err() {
            failed.store(true, Ordering::SeqCst);
            ready.wait();
        }
        let answered = answering.join().expect("handing over does not panic");
        let began = beginning.map_err(LatencyError::Thread)?.join().expect("handing over does not panic");
        Ok::<_, LatencyError>((began, answered))
    })?;
    match (began?, answered?) {
        (Some(took), Some(_)) => Ok(took.as_nanos() as f64 / TRIPS as f64),
        _ => Err(LatencyError::Stuck { first, second }),
    }
}

/// One side of the exchange: `parity` 0 begins and 1 answers. How long the timed trips took; `None` where the other
/// side did not answer in time.
fn hand_over(line: &AtomicU64, parity: u64) -> Option<Duration> {
    let begun = Instant::now();
    let mut timed = begun;
    for trip in 0..WARM_UP + TRIPS {
        if trip == WARM_UP {
            timed = Instant::now();
        }
        let mine = 2 * trip + parity;
        let mut waits = 0_u32;
        while line.load(Ordering::Acquire) != mine {
            waits = waits.wrapping_add(1);
            // The clock is looked at seldom: reading it takes as long as a transfer.
            if waits.is_multiple_of(1 << 16) && begun.elapsed() > LIMIT {
                return None;
            }
        }
        line.store(mine + 1, Ordering::Release);
    }
    if parity == 0 {
        // The last answer belongs to the last trip.
        let all = 2 * (WARM_UP + TRIPS);
        while line.load(Ordering::Acquire) != all {
            if begun.elapsed() > LIMIT {
                return None;
            }
        }
    }
    Some(timed.elapsed())
}

#[cfg(test)]
mod tests {
    use planish_host::Host;
    use planish_stats::Rng;
    use planish_topo::Topology;

    use super::*;
    use crate::figure::Spread;

    fn rounds(count: usize) -> Rounds {
        Rounds { count, spread: Spread::Usual, rng: Rng::new(1) }
    }

    #[test]
    fn each_pair_is_measured_once_and_one_cpu_has_none() {
        let cpus: Vec<u32> = Topology::read(&Host::live()).allowed().iter().take(3).collect();
        let rows = measure_pairs(&cpus, &mut rounds(2)).expect("we may run there");
        assert_eq!(rows.len(), cpus.len() * (cpus.len() - 1) / 2);
        for row in rows {
            assert!(row.first < row.second);
            // On a machine where both CPUs are held for three seconds there is a reason instead.
            if let Ok(figure) = row.round_trip_ns {
                assert!(
                    figure.value > 1.0 && figure.low <= figure.value && figure.value <= figure.high,
                    "{figure:?}"
                );
            }
        }
        assert_eq!(measure_pairs(&cpus[..1], &mut rounds(2)).expect("nothing to do"), []);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_nobody_waits_for_it() {
        for (first, second) in [(0, 3000), (3000, 0), (3000, 3001)] {
            let error = ping_pong(first, second).expect_err("there is none");
            assert!(matches!(error, LatencyError::Pin { cpu: 3000.., .. }), "{error:?}");
        }
    }

    #[test]
    fn who_waits_in_vain_gives_up() {
        let line = AtomicU64::new(77);
        assert_eq!(hand_over(&line, 1), None);
    }
}
