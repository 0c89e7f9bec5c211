//! Arms measured beside each other: in each round every arm once, in an order drawn for this round, so that what the
//! machine does meanwhile meets all of them alike. A ratio is of samples of one round.

use crate::row::Figure;
use anyhow::{Context, Result, ensure};
use planish_stats::{Rng, Walsh, summary};

/// What the interval of a figure promises.
pub const LEVEL: f64 = 0.95;
/// Fewer rounds cannot give an interval of that level.
pub const ROUNDS_MIN: usize = 6;

/// One sample of an arm: a time, or whatever else is above 0.
pub type Arm<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// Samples by arm and round.
pub struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    /// Measures every arm in each of `rounds`, after one round that warms up and does not count.
    pub fn measure(rounds: usize, arms: &mut [Arm<'_>]) -> Result<Self> {
        ensure!(rounds >= ROUNDS_MIN, "{rounds} rounds give no interval");
        let mut rng = Rng::new(rounds as u64);
        let mut samples = vec![Vec::with_capacity(rounds); arms.len()];
        let mut order: Vec<usize> = (0..arms.len()).collect();
        for round in 0..=rounds {
            rng.shuffle(&mut order);
            for &arm in &order {
                let sample = time(arm, arms[arm]()?)?;
                if round > 0 {
                    samples[arm].push(sample);
                }
            }
        }
        Ok(Self(samples))
    }

    /// Two arms that one call measures beside each other, in each of `rounds`, after one that does not count.
    pub fn pairs(rounds: usize, mut pair: impl FnMut() -> Result<[f64; 2]>) -> Result<Self> {
        let mut others = Vec::with_capacity(rounds + 1);
        let arm: Arm<'_> = Box::new(|| {
            let [one, other] = pair()?;
            others.push(time(1, other)?);
            Ok(one)
        });
        let Self(mut samples) = Self::measure(rounds, &mut [arm])?;
        samples.push(others.split_off(1));
        Ok(Self(samples))
    }

    /// What an arm takes.
    pub fn value(&self, arm: usize) -> Result<Figure> {
        figure(&self.0[arm].iter().map(|sample| sample.ln()).collect::<Vec<_>>())
    }

    /// What an arm takes over what another takes.
    pub fn over(&self, arm: usize, other: usize) -> Result<Figure> {
        let pairs = self.0[arm].iter().zip(&self.0[other]);
        figure(&pairs.map(|(one, other)| (one / other).ln()).collect::<Vec<_>>())
    }

    /// What an arm takes more than another: less than nothing, where it takes less.
    pub fn added(&self, arm: usize, other: usize) -> Result<Figure> {
        let pairs = self.0[arm].iter().zip(&self.0[other]);
        let more: Vec<f64> = pairs.map(|(one, other)| one - other).collect();
        let estimate = Walsh::new(&more).context("no sample")?.estimate(LEVEL);
        Ok(Figure { value: estimate.value, low: estimate.interval.low, high: estimate.interval.high })
    }

    /// The median of an arm, to be told beside a ratio.
    pub fn median(&self, arm: usize) -> f64 {
        summary::median(&self.0[arm])
    }

    /// The arm with the least median.
    pub fn fastest(&self, arms: impl Iterator<Item = usize>) -> usize {
        let least = arms.min_by(|one, other| self.median(*one).total_cmp(&self.median(*other)));
        least.expect("there is an arm")
    }
}

/// A sample, where it can be a time.
fn time(arm: usize, sample: f64) -> Result<f64> {
    ensure!(sample > 0.0 && sample.is_finite(), "arm {arm} took {sample}, which nothing takes");
    Ok(sample)
}

/// The figure behind logarithms of samples or ratios: Hodges-Lehmann, with the interval of the signed-rank test.
pub fn figure(logs: &[f64]) -> Result<Figure> {
    let estimate = Walsh::new(logs).context("no sample")?.estimate(LEVEL);
    let interval = estimate.interval.map(f64::exp);
    Ok(Figure { value: estimate.value.exp(), low: interval.low, high: interval.high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn every_arm_has_its_turn_in_each_round_and_the_order_changes() {
        let turns = RefCell::new(Vec::new());
        let arm = |arm: usize| -> Arm<'_> {
            let turns = &turns;
            Box::new(move || {
                turns.borrow_mut().push(arm);
                Ok((arm + 1) as f64 * turns.borrow().len() as f64)
            })
        };
        let rounds = Rounds::measure(8, &mut [arm(0), arm(1), arm(2)]).expect("measured");
        let turns = turns.into_inner();
        let orders: Vec<Vec<usize>> = turns.chunks(3).map(<[usize]>::to_vec).collect();
        assert_eq!(orders.len(), 9, "one to warm up");
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
        assert_eq!(rounds.0.iter().map(Vec::len).collect::<Vec<_>>(), [8; 3]);
        assert_eq!(rounds.fastest([2, 1, 0].into_iter()), 0);
    }

    #[test]
    fn a_ratio_is_of_the_same_round() {
        // What a round takes varies by a hundred, the ratio within it hardly.
        let rounds = Rounds(vec![
            (1..=9).map(|round| f64::from(round * round) * 2.0).collect(),
            (1..=9).map(|round| f64::from(round * round)).collect(),
        ]);
        let ratio = rounds.over(0, 1).expect("a ratio");
        assert!((ratio.value - 2.0).abs() < 1e-9 && ratio.high - ratio.low < 1e-9);
        // Alone the rounds scatter, and so does what is more in each.
        let more = rounds.added(0, 1).expect("a difference");
        assert!(more.low < 10.0 && more.high > 30.0, "{} to {}", more.low, more.high);
        let less = rounds.added(1, 0).expect("a difference");
        assert!((less.value + more.value).abs() < 1e-9 && less.high < 0.0, "{}", less.value);
        let value = rounds.value(1).expect("a value");
        assert!(value.low < 10.0 && value.high > 30.0);
    }

    #[test]
    fn pairs_of_one_call_stay_pairs_and_the_first_does_not_count() {
        let mut call = 0.0;
        let pairs = || {
            call += 1.0;
            Ok([call + 5.0, call])
        };
        let rounds = Rounds::pairs(8, pairs).expect("measured");
        assert_eq!(rounds.0.iter().map(Vec::len).collect::<Vec<_>>(), [8; 2]);
        let more = rounds.added(0, 1).expect("a difference");
        assert_eq!((more.low, more.value, more.high), (5.0, 5.0, 5.0));
        assert_eq!(rounds.0[1][0], 2.0);
        assert!(Rounds::pairs(8, || Ok([1.0, f64::NAN])).is_err());
    }

    #[test]
    fn too_few_rounds_and_what_took_no_time_are_refused() {
        let arm = |sample: f64| -> Arm<'_> { Box::new(move || Ok(sample)) };
        assert!(Rounds::measure(5, &mut [arm(1.0)]).is_err());
        for sample in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Rounds::measure(6, &mut [arm(sample)]).is_err(), "{sample}");
        }
    }
}
