//! What lies between two looks at the clock of a thread that does nothing else.
//!
//! Quantiles are *by time*: the length of the gap in which a random moment falls. By number, a thread that looks every
//! 25 ns and loses the CPU for 4 ms a second has a p99.99 of 25 ns; by time, one moment of 250 lies in such a gap, and
//! that is what an operation meets that comes whenever it comes (the "coordinated omission" of Tene).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::figure::{Figure, Spread};

/// Longest gap that is told apart.
const NS_MAX: u64 = 60_000_000_000;

/// Lengths of nanoseconds, to two digits: 60 KB, which stay in a cache of the second level.
pub(super) fn histogram() -> Histogram<u64> {
    let mut lengths =
        Histogram::new_with_bounds(1, NS_MAX, 2).expect("the bounds are in order, and two digits are few");
    // Zeroes are written, so that no page of it is missing when it counts.
    lengths.reset();
    lengths
}

/// Quantiles that are told.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999)];

/// What one round on one CPU saw.
#[derive(Clone, Debug)]
pub(super) struct Spun {
    lengths: Histogram<u64>,
    ns: u64,
}

impl Spun {
    /// Memory for it, before anything is measured.
    pub(super) fn ready() -> Self {
        Self { lengths: histogram(), ns: 0 }
    }

    /// Looks at the clock until the time is over.
    pub(super) fn spin(&mut self, length: Duration) {
        let length = length.as_nanos() as u64;
        let (begun, mut last) = (Instant::now(), 0);
        while last < length {
            let now = begun.elapsed().as_nanos() as u64;
            self.lengths.saturating_record(now - last);
            last = now;
        }
        self.ns = last;
    }
}

/// Gaps of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Shortest that it holds, in nanoseconds: a power of two, but for the first, which begins with the threshold.
    pub from_ns: u64,
    /// Those that it holds are shorter than this.
    pub below_ns: u64,
    /// How many there were.
    pub count: u64,
}

/// The time that a spinning thread did not get.
#[derive(Clone, Debug, PartialEq)]
pub struct GapFigures {
    /// Time that was spun, in all rounds.
    pub seconds: f64,
    /// Between two looks at the clock when nothing happens, in nanoseconds: what is shorter cannot be seen.
    pub look_ns: u64,
    /// Gaps of at least the threshold, in all rounds.
    pub count: u64,
    /// Their lengths by powers of two, without empty ends.
    pub buckets: Vec<Bucket>,
    /// Gaps in a second.
    pub per_s: Figure,
    /// Share of the time that lies in gaps.
    pub lost_share: Figure,
    /// Quantiles by time, in nanoseconds, by name: `p50`, `p99`, `p99_9`, `p99_99`.
    pub by_time: Vec<(&'static str, Figure)>,
    /// The longest of each round, in nanoseconds.
    pub longest_ns: Figure,
    /// The longest of all.
    pub max_ns: u64,
}

/// What the rounds of a CPU add up to.
pub(super) fn figures(rounds: &[Spun], threshold_ns: u64, spread: Spread) -> GapFigures {
    let each = |value: &dyn Fn(&Spun) -> f64| {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        Figure::of(&values, spread).expect("there is a round, and its time is above zero")
    };
    let mut all = histogram();
    for round in rounds {
        all.add(&round.lengths).expect("all have the same bounds");
    }
    let gaps = |lengths: &Histogram<u64>| -> (u64, f64) {
        let long = lengths.iter_recorded().filter(|it| it.value_iterated_to() >= threshold_ns);
        long.fold((0, 0.0), |(count, ns), it| {
            let here = it.count_at_value();
            (count + here, ns + lengths.median_equivalent(it.value_iterated_to()) as f64 * here as f64)
        })
    };
    let seconds = |round: &Spun| (round.ns as f64 / 1e9).max(1e-9);
    let quantile = |(name, share): (&'static str, f64)| {
        (name, each(&|round| by_time(&round.lengths, share).max(1) as f64))
    };
    GapFigures {
        seconds: rounds.iter().map(seconds).sum(),
        look_ns: all.value_at_quantile(0.5),
        count: gaps(&all).0,
        buckets: buckets(&all, threshold_ns),
        per_s: each(&|round| gaps(&round.lengths).0 as f64 / seconds(round)),
        lost_share: each(&|round| gaps(&round.lengths).1 / 1e9 / seconds(round)),
        by_time: QUANTILES.into_iter().map(quantile).collect(),
        longest_ns: each(&|round| round.lengths.max() as f64),
        max_ns: all.max(),
    }
}

/// The length of the gap in which a random moment falls: with probability `share` it is no longer than this.
pub(super) fn by_time(lengths: &Histogram<u64>, share: f64) -> u64 {
    let mid = |value: u64| lengths.median_equivalent(value) as f64;
    let parts: Vec<(u64, f64)> = lengths
        .iter_recorded()
        .map(|it| (it.value_iterated_to(), mid(it.value_iterated_to()) * it.count_at_value() as f64))
        .collect();
    let total: f64 = parts.iter().map(|(_, ns)| ns).sum();
    let beyond = (1.0 - share) * total;
    let mut longer = 0.0;
    for (value, ns) in parts.iter().rev() {
        longer += ns;
        if longer >= beyond {
            return *value;
        }
    }
    parts.first().map_or(0, |(value, _)| *value)
}

/// The gaps of at least the threshold by powers of two.
fn buckets(lengths: &Histogram<u64>, threshold_ns: u64) -> Vec<Bucket> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for it in lengths.iter_recorded().filter(|it| it.value_iterated_to() >= threshold_ns) {
        // A cell of the histogram may reach over a power of two by a hundredth: it belongs where most of it lies.
        let power = lengths.median_equivalent(it.value_iterated_to()).max(1).ilog2();
        *counts.entry(power).or_default() += it.count_at_value();
    }
    let (Some(first), Some(last)) = (counts.keys().next().copied(), counts.keys().last().copied()) else {
        return Vec::new();
    };
    let bucket = |power: u32| Bucket {
        from_ns: (1_u64 << power).max(threshold_ns.min((2_u64 << power) - 1)),
        below_ns: 2_u64 << power,
        count: counts.get(&power).copied().unwrap_or(0),
    };
    (first..=last).map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spun(lengths: &[(u64, u64)]) -> Spun {
        let mut spun = Spun::ready();
        for &(ns, count) in lengths {
            spun.lengths.saturating_record_n(ns, count);
            spun.ns += ns * count;
        }
        spun
    }

    #[test]
    fn quantiles_are_those_of_a_random_moment() {
        // A second: 4 gaps of 1 ms, one of 2 ms; the rest in looks of 25 ns, forty million of them.
        let second = spun(&[(25, 39_760_000), (1_000_000, 4), (2_000_000, 1)]);
        let near = |share: f64, ns: f64| {
            let found = by_time(&second.lengths, share) as f64;
            assert!((found / ns - 1.0).abs() < 0.02, "{share}: {found} and not {ns}");
        };
        // By number even p99.99999 is 25 ns.
        assert_eq!(second.lengths.value_at_quantile(0.999_999), 25);
        near(0.5, 25.0);
        near(0.99, 25.0);
        near(0.995, 1_000_000.0);
        near(0.9979, 1_000_000.0);
        near(0.9985, 2_000_000.0);
        near(0.9999, 2_000_000.0);
    }

    #[test]
    fn what_is_lost_is_counted_from_the_threshold_on() {
        let rounds = vec![spun(&[(25, 39_760_000), (999, 10), (1_000_000, 4), (2_000_000, 1)]); 6];
        let figures = figures(&rounds, 1000, Spread::Usual);
        assert_eq!((figures.count, figures.look_ns), (30, 25));
        assert!((figures.lost_share.value - 0.006).abs() < 1e-4, "{figures:?}");
        assert!((figures.per_s.value - 5.0).abs() < 0.01);
        assert!((figures.max_ns as f64 / 2e6 - 1.0).abs() < 0.01);
        assert_eq!(figures.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), figures.count);
        assert_eq!(
            figures.buckets.first().map(|bucket| (bucket.from_ns, bucket.below_ns)),
            Some((524_288, 1_048_576))
        );
    }

    #[test]
    fn a_second_without_gaps_has_none() {
        let figures = figures(&vec![spun(&[(25, 40_000_000)]); 6], 1000, Spread::Usual);
        assert_eq!((figures.count, figures.buckets.len(), figures.lost_share.value), (0, 0, 0.0));
        assert_eq!(figures.by_time[3].1.value, 25.0);
    }

    #[test]
    fn the_first_bucket_begins_with_the_threshold() {
        let figures = figures(&[spun(&[(25, 1000), (1500, 2), (5000, 1)])], 1200, Spread::Usual);
        let told: Vec<_> = figures.buckets.iter().map(|it| (it.from_ns, it.below_ns, it.count)).collect();
        assert_eq!(told, [(1200, 2048, 2), (2048, 4096, 0), (4096, 8192, 1)]);
    }

    #[test]
    fn a_spinning_thread_sees_its_own_time() {
        let mut spun = Spun::ready();
        spun.spin(Duration::from_millis(5));
        assert!(spun.ns >= 5_000_000 && !spun.lengths.is_empty());
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_stay_within_what_was_seen(
            lengths in proptest::collection::vec((1_u64..10_000_000_000, 1_u64..100_000), 1..40),
        ) {
            let spun = spun(&lengths);
            let found: Vec<u64> = QUANTILES.iter().map(|(_, share)| by_time(&spun.lengths, *share)).collect();
            prop_assert!(found.is_sorted());
            prop_assert!(found[0] >= spun.lengths.min() && found[3] <= spun.lengths.max());
            let counted: u64 = buckets(&spun.lengths, 1).iter().map(|bucket| bucket.count).sum();
            prop_assert_eq!(counted, spun.lengths.len());
        }
    }
}
