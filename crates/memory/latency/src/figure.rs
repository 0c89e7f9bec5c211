//! A number that was measured in rounds.

use planish_stats::order::median_estimate;

/// The confidence that intervals are made with, where the rounds suffice for it.
pub const LEVEL: f64 = 0.95;

/// A median over rounds, and where the median of such rounds may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The median.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence that the ends really have.
    pub level: f64,
    /// Rounds behind it.
    pub rounds: usize,
}

/// How wide intervals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// As [`LEVEL`] asks.
    Usual,
    /// From the least to the greatest round: the machine was not quiet.
    Whole,
}

impl Figure {
    /// The figure of some rounds; `None` where none came to an end.
    pub fn of(rounds: &[f64], spread: Spread) -> Option<Self> {
        let finite: Vec<f64> = rounds.iter().copied().filter(|value| value.is_finite()).collect();
        let level = match spread {
            Spread::Usual => LEVEL,
            // No interval has this level, so that the widest is taken.
            Spread::Whole => 1.0,
        };
        let estimate = median_estimate(&finite, level)?;
        let interval = estimate.interval;
        Some(Self {
            value: estimate.value,
            low: interval.low,
            high: interval.high,
            level: interval.level,
            rounds: finite.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_machine_widens_and_hides_nothing() {
        let rounds: Vec<f64> = (1..=15).map(f64::from).collect();
        let usual = Figure::of(&rounds, Spread::Usual).expect("rounds");
        let whole = Figure::of(&rounds, Spread::Whole).expect("rounds");
        assert_eq!((usual.low, usual.value, usual.high), (4.0, 8.0, 12.0));
        assert_eq!((whole.low, whole.value, whole.high, whole.rounds), (1.0, 8.0, 15.0, 15));
        assert!(whole.level > usual.level && usual.level >= LEVEL);
        assert_eq!(Figure::of(&[f64::NAN], Spread::Usual), None);
    }
}
