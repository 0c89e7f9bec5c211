//! Latencies of single operations as metrics.

use hdrhistogram::Histogram;

use crate::outcome::Better;
use crate::sample::Sample;

/// Metrics that a histogram of latencies gives.
pub(crate) const LATENCIES: [&str; 7] =
    ["p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns", "sd_ns", "iqr_ns"];

/// Largest latency that is told apart: above it, one is as bad as another.
const LATENCY_NS_MAX: u64 = 600 * 1_000_000_000;

/// A histogram of latencies in nanoseconds, exact to three digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .expect("the bounds are in order and three digits are few")
}

/// Quantiles by the name of their metric.
const QUANTILES: [(&str, f64); 4] = [("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p99_9_ns", 0.999)];

/// Operations that give this metric a meaning: a quantile needs ten beyond it.
fn needed(metric: &str) -> f64 {
    let quantile = QUANTILES.iter().find(|(name, _)| *name == metric);
    quantile.map_or(1.0, |(_, quantile)| (10.0 / (1.0 - quantile)).round())
}

/// Adds a latency of so many operations; where they are too few, it says so instead. `prefix` tells one kind of
/// operation from another.
pub(crate) fn put(sample: &mut Sample, prefix: &str, metric: &str, value: f64, count: f64) {
    let (name, needed) = (format!("{prefix}{metric}"), needed(metric));
    if count >= needed && value.is_finite() {
        sample.put(&name, "ns", Better::Lower, value);
    } else {
        sample.collect(&name, "ns", Err(format!("a unit has {count} operations, and this takes {needed}")));
    }
}

/// Adds quantiles, standard deviation and interquartile range.
pub(super) fn add(sample: &mut Sample, latencies: &Histogram<u64>) {
    let count = latencies.len() as f64;
    let at = |share| latencies.value_at_quantile(share) as f64;
    for (name, quantile) in QUANTILES {
        put(sample, "", name, at(quantile), count);
    }
    put(sample, "", "max_ns", latencies.max() as f64, count);
    put(sample, "", "sd_ns", latencies.stdev(), count);
    put(sample, "", "iqr_ns", at(0.75) - at(0.25), count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_operations_beyond_it() {
        let mut latencies = histogram();
        (1..=1000).for_each(|ns| latencies.record(ns * 1000).expect("within the bounds"));
        let mut sample = Sample::default();
        add(&mut sample, &latencies);
        let p99 = sample.value("p99_ns").expect("ten beyond it");
        assert!((p99 / 990_000.0 - 1.0).abs() < 0.002, "{p99}");
        assert_eq!(sample.value("p99_9_ns"), None, "only one operation is beyond it");
        let why = sample.collectors["p99_9_ns"].value.clone();
        assert_eq!(why, Err("a unit has 1000 operations, and this takes 10000".to_owned()));
        assert!((sample.value("iqr_ns").expect("quartiles") / 500_000.0 - 1.0).abs() < 0.01);
    }
}
