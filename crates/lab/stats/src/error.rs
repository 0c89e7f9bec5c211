//! What the callers of this crate can get wrong.

/// A number or a plan that no statistic can be made of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// A measurement was NaN or infinite.
    #[error("{what} is not a finite number: {value}")]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A metric without a logarithm: zero or negative.
    #[error("{what} must be above zero: {value}")]
    NotPositive {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A probability, level or share outside its open range.
    #[error("{what} must lie between 0 and 1: {value}")]
    NotAProbability {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// Even a unanimous sample of this size could not be significant.
    #[error("{pairs} pairs can never be significant at {alpha}: at least {needed} are needed")]
    TooFewPairs {
        /// Pairs that were planned or given.
        pairs: usize,
        /// Fewest that can succeed.
        needed: usize,
        /// Two-sided significance asked for.
        alpha: f64,
    },
    /// So few windows of a start cannot show when it became steady.
    #[error(
        "a start has {windows} window{}, and a warm-up takes {needed} to be found",
        if *windows == 1 { "" } else { "s" }
    )]
    TooFewWindows {
        /// Windows that there are.
        windows: usize,
        /// Fewest that can show it.
        needed: usize,
    },
    /// More successes than trials.
    #[error("{successes} successes in {trials} trials")]
    MoreThanAll {
        /// Successes counted.
        successes: u64,
        /// Trials counted.
        trials: u64,
    },
    /// Lists that belong together differ in length.
    #[error("{what}: {given} given where {wanted} belong")]
    Length {
        /// Which list.
        what: &'static str,
        /// Its length.
        given: usize,
        /// The length that fits.
        wanted: usize,
    },
    /// A pair was pushed after the last look.
    #[error("the trial has already stopped after {pairs} pairs")]
    Stopped {
        /// Pairs at the stop.
        pairs: usize,
    },
}

/// Accepts a finite number.
pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64, StatsError> {
    if value.is_finite() { Ok(value) } else { Err(StatsError::NotFinite { what, value }) }
}

/// Accepts a finite number above zero.
pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, StatsError> {
    if finite(what, value)? > 0.0 { Ok(value) } else { Err(StatsError::NotPositive { what, value }) }
}

/// Accepts a number strictly between 0 and 1.
pub(crate) fn probability(what: &'static str, value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value < 1.0 { Ok(value) } else { Err(StatsError::NotAProbability { what, value }) }
}
