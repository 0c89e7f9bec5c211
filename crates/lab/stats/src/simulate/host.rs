//! Noise as hosts make it, on the scale of logs.

use serde::Serialize;

use crate::Rng;

/// Trials of one experiment: 32 pairs.
pub const TRIALS: usize = 64;

/// What disturbs a host; each includes the ones before it, except that the last two replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// 1 % within a run and 1 % per start, independent.
    Quiet,
    /// And 6 % of the trials are slow by 5 to 70 %, most of them by little.
    Spikes,
    /// And the host drifts: a slow random walk that returns (AR(1), phi 0.97, 3 %), a straight trend of up
    /// to 6 % either way, and a neighbour that takes 8 %, stays for 12 trials on average and away for 24.
    Drift,
    /// And the second trial of a pair is 1.5 % slower.
    DriftPosition,
    /// Drift, and every fourth trial is 6 % slower, as from a cron job; which of the four is random.
    DriftPer4,
}

impl Setting {
    /// All settings, in the order of the tables.
    pub const ALL: [Setting; 5] =
        [Setting::Quiet, Setting::Spikes, Setting::Drift, Setting::DriftPosition, Setting::DriftPer4];

    /// Heading in tables.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Quiet => "quiet",
            Setting::Spikes => "spikes",
            Setting::Drift => "drift",
            Setting::DriftPosition => "drift + position",
            Setting::DriftPer4 => "drift + every 4th",
        }
    }
}

// What the method's first simulation leaves open, the sizes of spikes within their range and how long the
// neighbour stays away, is set so that the usual methods fare here as they did there.
const SPIKE_SHARE: f64 = 0.06;
const SPIKE_MIN: f64 = 0.05;
const SPIKE_MAX: f64 = 0.70;
const SPIKE_MEAN_ABOVE_MIN: f64 = 0.16;
const WALK_PHI: f64 = 0.97;
const WALK_SD: f64 = 0.03;
const TREND_MAX: f64 = 0.06;
const NEIGHBOUR: f64 = 0.08;
const NEIGHBOUR_TRIALS: f64 = 12.0;
const NEIGHBOUR_AWAY_TRIALS: f64 = 24.0;

/// The log cost of [`TRIALS`] consecutive trials of one program that never changes.
pub fn trace(setting: Setting, rng: &mut Rng) -> Vec<f64> {
    trace_of(setting, TRIALS, rng)
}

/// The log cost of any number of consecutive trials; the trend goes on as steeply as in [`TRIALS`] of them.
pub(super) fn trace_of(setting: Setting, trials: usize, rng: &mut Rng) -> Vec<f64> {
    let mut costs: Vec<f64> = (0..trials).map(|_| 0.01 * rng.normal() + 0.01 * rng.normal()).collect();
    if setting == Setting::Quiet {
        return costs;
    }
    add_spikes(&mut costs, rng);
    if setting == Setting::Spikes {
        return costs;
    }
    add_drift(&mut costs, rng);
    let phase = rng.below(4);
    for (slot, cost) in costs.iter_mut().enumerate() {
        match setting {
            Setting::DriftPosition if slot % 2 == 1 => *cost += 0.015f64.ln_1p(),
            Setting::DriftPer4 if slot % 4 == phase => *cost += 0.06f64.ln_1p(),
            _ => {}
        }
    }
    costs
}

/// Makes some of the costs far larger.
pub(super) fn add_spikes(costs: &mut [f64], rng: &mut Rng) {
    for cost in costs {
        if rng.chance(SPIKE_SHARE) {
            *cost += (SPIKE_MIN + rng.exponential(SPIKE_MEAN_ABOVE_MIN)).min(SPIKE_MAX).ln_1p();
        }
    }
}

fn add_drift(costs: &mut [f64], rng: &mut Rng) {
    let mut walk = WALK_SD * rng.normal();
    let mut neighbour = rng.chance(NEIGHBOUR_TRIALS / (NEIGHBOUR_TRIALS + NEIGHBOUR_AWAY_TRIALS));
    let trend = TREND_MAX * (2.0 * rng.uniform() - 1.0);
    for (slot, cost) in costs.iter_mut().enumerate() {
        *cost += walk + trend * slot as f64 / TRIALS as f64 + if neighbour { NEIGHBOUR.ln_1p() } else { 0.0 };
        walk = WALK_PHI * walk + (1.0 - WALK_PHI * WALK_PHI).sqrt() * WALK_SD * rng.normal();
        let stay = if neighbour { NEIGHBOUR_TRIALS } else { NEIGHBOUR_AWAY_TRIALS };
        neighbour ^= rng.chance(1.0 / stay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{autocorrelation_lag1, mean, standard_deviation};

    #[test]
    fn settings_disturb_as_they_say() {
        let all =
            |setting| -> Vec<Vec<f64>> { (0..300).map(|i| trace(setting, &mut Rng::stream(1, i))).collect() };
        let quiet = all(Setting::Quiet).concat();
        assert!((standard_deviation(&quiet) - 0.01 * 2f64.sqrt()).abs() < 3e-4);
        let spikes = all(Setting::Spikes).concat();
        let far = spikes.iter().filter(|cost| **cost > 0.05).count() as f64 / spikes.len() as f64;
        assert!((0.045..0.07).contains(&far), "{far}");
        let correlation =
            mean(&all(Setting::Drift).iter().map(|t| autocorrelation_lag1(t)).collect::<Vec<_>>());
        assert!(correlation > 0.3, "{correlation}");
        let at = |costs: &[Vec<f64>], slot: usize| mean(&costs.iter().map(|t| t[slot]).collect::<Vec<_>>());
        let (plain, cron) = (all(Setting::Drift), all(Setting::DriftPer4));
        let quarter = 0.06f64.ln_1p() / 4.0;
        assert!((at(&cron, 7) - at(&plain, 7) - quarter).abs() < 0.006, "cron begins in any phase");
        let placed = all(Setting::DriftPosition);
        assert!(
            (at(&placed, 7) - at(&plain, 7) - 0.015f64.ln_1p()).abs() < 1e-9,
            "the same streams but for it"
        );
        assert!((at(&placed, 6) - at(&plain, 6)).abs() < 1e-9);
    }
}
