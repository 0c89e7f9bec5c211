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

impl Figure {
    /// One figure of several things: each round gives what `of_round` makes of all their values in it. A thing that was
    /// given up has fewer rounds, and is in none behind its last.
    pub fn over(rounds: &[&[f64]], spread: Spread, of_round: fn(&[f64]) -> f64) -> Option<Self> {
        let count = rounds.iter().map(|values| values.len()).max()?;
        let round = |index: usize| -> Vec<f64> {
            rounds
                .iter()
                .filter_map(|values| values.get(index).copied())
                .filter(|it| it.is_finite())
                .collect()
        };
        let values: Vec<f64> =
            (0..count).map(round).filter(|it| !it.is_empty()).map(|it| of_round(&it)).collect();
        Self::of(&values, spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_several_things_is_one_of_their_rounds() {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let near: Vec<f64> = (1..=15).map(f64::from).collect();
        let far: Vec<f64> = near.iter().map(|value| value + 10.0).collect();
        let both = Figure::over(&[&near, &far], Spread::Usual, mean).expect("rounds");
        assert_eq!((both.low, both.value, both.high, both.rounds), (9.0, 13.0, 17.0, 15));
        // One that was given up after two rounds is in these.
        let short = Figure::over(&[&near, &far[..2]], Spread::Whole, mean).expect("rounds");
        assert_eq!((short.low, short.high, short.rounds), (3.0, 15.0, 15));
        assert_eq!(Figure::over(&[], Spread::Usual, mean), None);
        assert_eq!(Figure::over(&[&[]], Spread::Usual, mean), None);
    }

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
