//! By how much a thread that sleeps until a moment is late.
//!
//! What is measured is the timer's interrupt, the way out of an idle state, and the scheduler. The kernel delays the
//! timers of ordinary threads by up to 50 us on purpose, to let several end together; that is set off for the measuring
//! thread alone (PR_SET_TIMERSLACK), for it hides all else. Real-time threads have no such slack.

use std::num::NonZeroU64;
use std::time::Duration;

use hdrhistogram::Histogram;
use planish_stats::Rng;

use super::gaps::{QUANTILES, histogram};
use super::{now_ns, sleep_until};
use crate::error::LatencyError;
use crate::figure::{Figure, LEVEL, Spread};

/// A sleep lasts so long and up to [`SLEEP_MORE_NS`] more: long enough for deep idle states, and never in step with a
/// tick.
const SLEEP_NS: u64 = 250_000;
/// See above.
const SLEEP_MORE_NS: usize = 500_000;
/// A quantile of a sample needs so many values beyond it.
const BEYOND: f64 = 10.0;

/// What one round on one CPU saw.
#[derive(Clone, Debug)]
pub(super) struct Woken {
    late: Histogram<u64>,
}

impl Woken {
    /// Memory for it, and exact timers.
    pub(super) fn ready() -> Result<Self, LatencyError> {
        let least = NonZeroU64::new(1);
        rustix::thread::set_current_timer_slack(least).map_err(|error| LatencyError::Timer(error.into()))?;
        Ok(Self { late: histogram() })
    }

    /// Sleeps and wakes until the time is over.
    pub(super) fn sleep(&mut self, length: Duration, seed: u64) -> Result<(), LatencyError> {
        let mut rng = Rng::new(seed);
        let mut now = now_ns();
        let end = now + length.as_nanos() as u64;
        while now < end {
            let moment = now + SLEEP_NS + rng.below(SLEEP_MORE_NS) as u64;
            let was_slept = sleep_until(moment)?;
            now = now_ns();
            // A sleep that a signal cut short says nothing.
            if was_slept {
                self.late.saturating_record(now.saturating_sub(moment));
            }
        }
        Ok(())
    }
}

/// By how much timers were late.
#[derive(Clone, Debug, PartialEq)]
pub struct WakeFigures {
    /// Wake-ups in all rounds.
    pub count: u64,
    /// Quantiles in nanoseconds, by name; of those that so few wake-ups do not give, how many it takes.
    pub late_ns: Vec<(&'static str, Result<Figure, u64>)>,
    /// The latest of each round; none where no round had a wake-up.
    pub latest_ns: Option<Figure>,
    /// The latest of all.
    pub max_ns: u64,
}

/// What the rounds of a CPU add up to.
pub(super) fn figures(rounds: &[Woken], spread: Spread) -> WakeFigures {
    let mut all = histogram();
    for round in rounds {
        all.add(&round.late).expect("all have the same bounds");
    }
    let latest: Vec<f64> =
        rounds.iter().filter(|round| !round.late.is_empty()).map(|round| round.late.max() as f64).collect();
    let each: Vec<&Histogram<u64>> = rounds.iter().map(|round| &round.late).collect();
    WakeFigures {
        count: all.len(),
        late_ns: QUANTILES
            .iter()
            .map(|&(name, share)| (name, quantile(&all, &each, share, spread)))
            .collect(),
        latest_ns: Figure::of(&latest, spread),
        max_ns: all.max(),
    }
}

/// A quantile of all wake-ups together, with the interval between order statistics that holds it: how many lie below it
/// is binomial. On a machine that is not quiet the quantile of each round lies within the interval, too.
fn quantile(
    all: &Histogram<u64>,
    rounds: &[&Histogram<u64>],
    share: f64,
    spread: Spread,
) -> Result<Figure, u64> {
    let needed = (BEYOND / (1.0 - share)).round();
    let count = all.len() as f64;
    if count < needed {
        return Err(needed as u64);
    }
    // The normal approximation: with ten beyond the quantile it is off by a rank or so.
    let half =
        planish_stats::walsh::normal_quantile(0.5 + LEVEL / 2.0) * (count * share * (1.0 - share)).sqrt();
    let at = |rank: f64| all.value_at_quantile((rank / count).clamp(0.0, 1.0)) as f64;
    let value = at(count * share);
    let (mut low, mut high) = (at(count * share - half), at(count * share + half + 1.0));
    if spread == Spread::Whole {
        let each = rounds
            .iter()
            .filter(|round| !round.is_empty())
            .map(|round| round.value_at_quantile(share) as f64);
        (low, high) = each.fold((low, high), |(low, high), value| (low.min(value), high.max(value)));
    }
    Ok(Figure { value, low, high, level: LEVEL, rounds: rounds.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(late: impl IntoIterator<Item = u64>) -> Woken {
        let mut woken = Woken { late: histogram() };
        late.into_iter().for_each(|ns| woken.late.saturating_record(ns));
        woken
    }

    #[test]
    fn a_quantile_that_the_wake_ups_do_not_give_says_how_many_it_takes() {
        let figures = figures(&[woken((1..=1000).map(|us| us * 1000)), woken([])], Spread::Usual);
        assert_eq!(figures.count, 1000);
        let of = |name: &str| figures.late_ns.iter().find(|(it, _)| *it == name).expect("it is told").1;
        let p99 = of("p99").expect("ten beyond it");
        assert!((p99.value / 990_000.0 - 1.0).abs() < 0.02, "{p99:?}");
        assert!(p99.low < p99.value && p99.value < p99.high && p99.low > 970_000.0, "{p99:?}");
        assert_eq!((of("p99_9"), of("p99_99")), (Err(10_000), Err(100_000)));
        assert_eq!(
            figures.latest_ns.map(|figure| figure.rounds),
            Some(1),
            "a round without wake-ups has no latest"
        );
        assert!((figures.max_ns as f64 / 1e6 - 1.0).abs() < 0.02);
    }

    #[test]
    fn the_interval_of_a_quantile_covers_it() {
        let mut rng = Rng::new(3);
        let (runs, wanted) = (400, 4.605_17e4);
        let covered = (0..runs).filter(|_| {
            let sample = woken((0..2000).map(|_| (rng.exponential(1e4)) as u64));
            let p99 = quantile(&sample.late, &[&sample.late], 0.99, Spread::Usual).expect("twenty beyond it");
            // The histogram has two digits.
            p99.low * 0.99 <= wanted && wanted <= p99.high * 1.01
        });
        let share = covered.count() as f64 / f64::from(runs);
        assert!(share > 0.92, "{share}");
    }

    #[test]
    fn noise_widens_to_the_quantiles_of_the_rounds() {
        let rounds = [woken((0..2000).map(|_| 1000)), woken((0..2000).map(|_| 90_000))];
        let of = |spread| figures(&rounds, spread).late_ns[0].1.expect("the median");
        let (usual, whole) = (of(Spread::Usual), of(Spread::Whole));
        assert!(whole.low <= usual.low && whole.high >= usual.high);
        assert!(whole.low <= 1010.0 && whole.high >= 89_000.0, "{whole:?}");
    }

    #[test]
    fn a_sleeping_thread_is_late_and_never_early() {
        let mut woken = Woken::ready().expect("slack may be set by everybody");
        woken.sleep(Duration::from_millis(20), 1).expect("it sleeps");
        assert!(!woken.late.is_empty());
        assert!(sleep_until(1).expect("a moment that has passed"));
    }
}
