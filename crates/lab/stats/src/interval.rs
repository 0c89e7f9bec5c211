//! An interval never travels without its level, nor an estimate without its interval.

use serde::Serialize;

/// A closed interval and the confidence that it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided confidence actually attained, at least what was asked for; for instance 0.9609 where 0.95
    /// was asked of 8 pairs.
    pub level: f64,
}

impl Interval {
    /// Whether `value` lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval of an increasing function of the quantity, at the same level: `log.map(|d|
    /// better.gain(d))`.
    pub fn map(&self, increasing: impl Fn(f64) -> f64) -> Interval {
        Interval { low: increasing(self.low), high: increasing(self.high), level: self.level }
    }
}

/// A point estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The point.
    pub value: f64,
    /// Where the quantity may lie.
    pub interval: Interval,
}
