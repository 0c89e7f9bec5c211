//! Error rates of the method on simulated hosts, where the truth is known.

use crate::row::{Figure, Limit, Rows};
use anyhow::{Context, Result};
use planish_stats::binomial::clopper_pearson;
use planish_stats::simulate::{
    Beginning, LadderMethod, Method, Setting, false_keep_cell, ladder_row, layout_cell, step_row,
    warm_up_cell,
};

/// Experiments per setting, and ladders: the interval of a rate of 5 % is then about 1.4 points wide.
const REPS: u32 = 4000;
const SEED: u64 = 20_261_120;
/// Share of null experiments in which an arm that does nothing may be kept.
const FALSE_KEEP_MAX: f64 = 0.05;
/// Share of ladders of eight rungs that do nothing in which any may be kept.
const LADDER_FALSE_KEEP_MAX: f64 = 0.06;
/// Share of self-checks that may leave out a warm-up where there is none.
const FALSE_WARM_UP_MAX: f64 = 0.02;
/// Share of self-checks that must find one of 10 % and a few windows.
const WARM_UP_MIN: [(Setting, f64); 3] =
    [(Setting::Quiet, 0.95), (Setting::Spikes, 0.95), (Setting::Drift, 0.60)];
/// Power at a gain of 3 % that the design promises, less five points.
const POWER_MIN: [(Setting, f64); 5] = [
    (Setting::Quiet, 0.95),
    (Setting::Spikes, 0.93),
    (Setting::Drift, 0.91),
    (Setting::DriftPosition, 0.88),
    (Setting::DriftPer4, 0.54),
];

/// Adds a false-keep and a power row for each kind of host, and the ladder of nothing.
pub fn measure(rows: &mut Rows) {
    for (setting, power_min) in POWER_MIN {
        let cell = false_keep_cell(Method::Choice, setting, REPS, SEED);
        let name = setting.name();
        rows.add(&format!("false keeps, {name}"), "share", (Limit::AtMost, FALSE_KEEP_MAX), || {
            share(cell.false_keep)
        });
        rows.add(&format!("power at 3 %, {name}"), "share", (Limit::AtLeast, power_min), || {
            share(cell.power)
        });
    }
    rows.add("any false keep, 8 null rungs", "share", (Limit::AtMost, LADDER_FALSE_KEEP_MAX), || {
        share(ladder_row(LadderMethod::ChoiceUsual, REPS, SEED).null.any_false_keep)
    });
    let step = step_row(Setting::Drift, REPS, SEED);
    rows.add(
        "any false keep, 8 null rungs in step mode",
        "share",
        (Limit::AtMost, LADDER_FALSE_KEEP_MAX),
        || share(step.null.any_false_keep),
    );
    for (name, layout_sd) in [("1 %", 0.01), ("5 %", 0.05)] {
        let name = format!("any false keep, resident, layouts {name} apart");
        rows.add(&name, "share", (Limit::AtMost, LADDER_FALSE_KEEP_MAX), || {
            share(layout_cell(layout_sd, REPS, SEED).kept)
        });
    }
    warm_ups(rows);
}

/// Adds what the change-point detector sees where there is nothing, and where there is something.
fn warm_ups(rows: &mut Rows) {
    for (setting, found_min) in WARM_UP_MIN {
        let name = setting.name();
        let found = |beginning| share(warm_up_cell(beginning, setting, REPS, SEED).cut);
        rows.add(&format!("false warm-ups, {name}"), "share", (Limit::AtMost, FALSE_WARM_UP_MAX), || {
            found(Beginning::Level)
        });
        rows.add(&format!("warm-ups found, {name}"), "share", (Limit::AtLeast, found_min), || {
            found(Beginning::Step)
        });
    }
}

/// A share of [`REPS`] with its exact interval.
fn share(value: f64) -> Result<Figure> {
    const LEVEL: f64 = 0.95;
    let count = (value * f64::from(REPS)).round() as u64;
    let estimate = clopper_pearson(count, u64::from(REPS), LEVEL).context("interval of a share")?;
    Ok(Figure { value, low: estimate.interval.low, high: estimate.interval.high })
}
