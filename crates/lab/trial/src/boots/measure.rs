//! What is measured inside one boot: every inner arm, units in random order, and of each metric the median.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_sorted::CollectMap as _;
use planish_stats::Rng;
use planish_stats::summary::median;

use super::campaign::{Figure, Inner, Unmeasured};
use crate::control::{Phase, Progress, Stop, Tick};
use crate::error::TrialError;
use crate::file::{BootsSpec, TrialFile};
use crate::ladder::{Field, SEED_LIMIT, WarmUpPlan};
use crate::run::{Ground, recipes, with_field};
use crate::sample::{ArmError, Sample};

/// What the units inside one boot go by.
struct Inside {
    /// Inner arms, the baseline among them.
    arms: usize,
    units: usize,
    seed: u64,
    rest: Duration,
    warm_up: WarmUpPlan,
}

/// Measures in the boot of this number. The host is as before afterwards.
pub(super) fn measure(
    trial: &TrialFile,
    boots: &BootsSpec,
    number: usize,
    ground: &mut Ground<'_>,
) -> Result<Vec<Inner>, Unmeasured> {
    let recipes = recipes(trial);
    let inside = |seed: u64| Inside {
        arms: recipes.len(),
        units: boots.units,
        seed: Rng::stream(seed, number as u64).next_u64(),
        rest: Duration::from_secs_f64(boots.settle_seconds),
        warm_up: trial.warm_up(),
    };
    let measured = with_field(trial, &recipes, ground, |field, options, progress, stop| {
        Ok(inside(options.seed).run(field, progress, stop))
    });
    let restored = ground.host.undo_all();
    let measured = match measured {
        Ok(measured) => measured,
        Err(TrialError::Host { detail, .. }) => Err(Unmeasured::Host(detail)),
        Err(error) => Err(Unmeasured::Lost(error.to_string())),
    };
    restored.map_err(|error| Unmeasured::Host(error.to_string()))?;
    measured
}

impl Inside {
    /// Opens every arm, runs its units, and lets go of it whatever happens.
    fn run(
        &self,
        field: &mut dyn Field,
        progress: &mut dyn Progress,
        stop: &Stop,
    ) -> Result<Vec<Inner>, Unmeasured> {
        let measured = self.units(field, progress, stop);
        (0..self.arms).for_each(|arm| field.shut(arm));
        measured
    }

    fn units(
        &self,
        field: &mut dyn Field,
        progress: &mut dyn Progress,
        stop: &Stop,
    ) -> Result<Vec<Inner>, Unmeasured> {
        if !stop.sleep(self.rest) {
            return Err(Unmeasured::Stopped);
        }
        if let WarmUpPlan::Fixed(time) = self.warm_up {
            field.warm_up(time);
        }
        let mut samples: Vec<Result<Vec<Sample>, String>> = Vec::new();
        for arm in 0..self.arms {
            samples.push(taken(arm, field.open(arm))?.map(|_| Vec::new()));
        }
        let mut rng = Rng::new(self.seed);
        for unit in 0..self.units {
            progress.tick(&Tick { phase: Phase::Ladder, done: unit, of: self.units, left_seconds: 0.0 });
            let mut order: Vec<usize> = (0..self.arms).filter(|arm| samples[*arm].is_ok()).collect();
            rng.shuffle(&mut order);
            field.at_block(unit);
            let block = field.block(&order, rng.next_u64() % SEED_LIMIT);
            for (arm, sample) in order.into_iter().zip(block) {
                match (taken(arm, sample)?, &mut samples[arm]) {
                    (Ok(sample), Ok(all)) => all.push(sample),
                    (Err(why), all) => *all = Err(why),
                    (Ok(_), Err(_)) => {}
                }
            }
            if stop.is_set() {
                return Err(Unmeasured::Stopped);
            }
        }
        Ok(samples.into_iter().map(|all| all.map(|all| figures(&all))).collect())
    }
}

/// What an arm gave, or why it gives nothing in this boot. Without the baseline the boot gives nothing.
fn taken<T>(arm: usize, got: Result<T, ArmError>) -> Result<Result<T, String>, Unmeasured> {
    match got {
        Ok(got) => Ok(Ok(got)),
        Err(ArmError::Stopped) => Err(Unmeasured::Stopped),
        Err(error) if error.ends_the_trial() => Err(Unmeasured::Host(error.to_string())),
        Err(error) if arm == 0 => Err(Unmeasured::Lost(format!("its workload failed: {error}"))),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// The median of each metric that every unit told.
fn figures(samples: &[Sample]) -> BTreeMap<String, Figure> {
    let Some(first) = samples.first() else { return BTreeMap::new() };
    let of = |(name, metric): (&String, &crate::sample::Metric)| {
        let values: Vec<f64> = samples.iter().filter_map(|sample| sample.value(name)).collect();
        let whole = values.len() == samples.len() && values.iter().all(|value| value.is_finite());
        let figure =
            || Figure { value: median(&values), unit: metric.unit.to_string(), better: metric.better };
        whole.then(|| (name.clone(), figure()))
    };
    first.metrics.iter().filter_map(of).collect_map()
}
