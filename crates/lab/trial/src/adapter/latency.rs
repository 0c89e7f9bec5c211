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

/// Whether so many operations give this metric a meaning: a quantile needs ten beyond it.
pub(super) fn is_meant(metric: &str, count: f64) -> bool {
    let quantile = QUANTILES.iter().find(|(name, _)| *name == metric);
    // A hair of slack, since 1 - 0.99 is not a hundredth to the last bit.
    quantile.is_none_or(|(_, quantile)| count * (1.0 - quantile) >= 9.999)
}

/// Adds quantiles, standard deviation and interquartile range.
pub(super) fn add(sample: &mut Sample, latencies: &Histogram<u64>) {
    let count = latencies.len() as f64;
    for (name, quantile) in QUANTILES.into_iter().filter(|(name, _)| is_meant(name, count)) {
        sample.put(name, "ns", Better::Lower, latencies.value_at_quantile(quantile) as f64);
    }
    if latencies.is_empty() {
        return;
    }
    sample.put("max_ns", "ns", Better::Lower, latencies.max() as f64);
    sample.put("sd_ns", "ns", Better::Lower, latencies.stdev());
    let quartile = |share| latencies.value_at_quantile(share) as f64;
    sample.put("iqr_ns", "ns", Better::Lower, quartile(0.75) - quartile(0.25));
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
        assert!((sample.value("iqr_ns").expect("quartiles") / 500_000.0 - 1.0).abs() < 0.01);
    }
}
