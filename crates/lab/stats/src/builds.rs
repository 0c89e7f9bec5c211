//! Several builds of one recipe: what may be said of the recipe, and not only of the files that it made.
//!
//! A build is one sample of code layouts, however often it is started (Curtsinger and Berger, ASPLOS 2013), so pairs
//! of one build tell about that build. The level at which the recipe varies is the build, and that is where it must be
//! replicated (Kalibera and Jones, ISMM 2013): one figure a build, and an interval over these figures. With as few of
//! them as people build, no rank test can say anything (three have eight orders of sign), so the interval is
//! Student's, which takes the differences between builds for normal.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::error::{StatsError, probability};
use crate::interval::{Estimate, Interval};
use crate::summary::{mean, standard_deviation};
use crate::walsh::hodges_lehmann;

/// Fewest builds of which a recipe can be judged.
pub const BUILDS_MIN: usize = 3;

/// What the builds of a recipe say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BetweenBuilds {
    /// The Hodges-Lehmann estimate of each build's own pairs, in the order given.
    pub effects: Vec<f64>,
    /// Their mean, with Student's interval over the builds.
    pub effect: Estimate,
    /// Standard deviation between them: how far the next build may lie from these.
    pub spread: f64,
}

/// Judges a recipe by the pair logs of each of its builds, at a two-sided confidence.
///
/// # Errors
/// [`StatsError::TooFewPairs`] below [`BUILDS_MIN`] builds with pairs, and for a level that is none.
pub fn between_builds(builds: &[Vec<f64>], level: f64) -> Result<BetweenBuilds, StatsError> {
    let alpha = 1.0 - probability("level", level)?;
    let effects: Vec<f64> = builds.iter().filter_map(|logs| hodges_lehmann(logs)).collect();
    let count = effects.len();
    if count < BUILDS_MIN {
        return Err(StatsError::TooFewPairs { pairs: count, needed: BUILDS_MIN, alpha });
    }
    let (value, spread) = (mean(&effects), standard_deviation(&effects));
    let student = StudentsT::new(0.0, 1.0, count as f64 - 1.0).expect("three builds leave freedom");
    let half = student.inverse_cdf(1.0 - alpha / 2.0) * spread / (count as f64).sqrt();
    let interval = Interval { low: value - half, high: value + half, level };
    Ok(BetweenBuilds { effects, effect: Estimate { value, interval }, spread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn the_interval_is_student_s_over_builds_whatever_the_number_of_pairs() {
        let one = between_builds(&[vec![0.01; 9], vec![0.02; 30], vec![0.03]], 0.95).expect("three builds");
        // scipy.stats.t.interval(0.95, 2, loc=0.02, scale=0.01 / sqrt(3))
        assert!((one.effect.interval.low - -0.004_841_377_118_437).abs() < 1e-9, "{one:?}");
        assert!((one.effect.interval.high - 0.044_841_377_118_437).abs() < 1e-9);
        assert!((one.effect.value - 0.02).abs() < 1e-12 && (one.spread - 0.01).abs() < 1e-12);
        assert!(between_builds(&[vec![0.01], vec![0.02]], 0.95).is_err());
        assert!(between_builds(&[vec![0.01], vec![0.02], vec![]], 0.95).is_err(), "one was never run");
        assert!(between_builds(&[vec![0.01], vec![0.02], vec![0.3]], 1.5).is_err());
    }

    #[test]
    fn a_recipe_that_does_nothing_is_claimed_no_oftener_than_promised() {
        let reps = 2000;
        let claimed = |builds: usize, pairs: usize| {
            let claims = (0..reps).filter(|&rep| {
                let mut rng = Rng::stream(7, rep);
                // Both recipes are built as often; layouts differ by 2 %, starts of one build by 1 %.
                let logs: Vec<Vec<f64>> = (0..builds)
                    .map(|_| {
                        let build = 0.02 * (rng.normal() - rng.normal());
                        (0..pairs).map(|_| build + 0.01 * rng.normal()).collect()
                    })
                    .collect();
                between_builds(&logs, 0.95).expect("enough builds").effect.interval.low > 0.0
            });
            claims.count() as f64 / reps as f64
        };
        for builds in [3, 5, 8] {
            let share = claimed(builds, 8);
            assert!((0.015..0.035).contains(&share), "{share} of {builds} builds");
        }
    }
}
