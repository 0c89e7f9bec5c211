//! How often a warm-up is seen where there is none, and found where there is one; and what leaving it out does to
//! verdicts.

use serde::Serialize;

use super::host::{Setting, TRIALS, add_spikes, trace};
use super::method::Method;
use super::table::markdown;
use crate::Rng;
use crate::summary::{Better, mean, median};
use crate::warmup::{Finding, WarmUp};

/// Repetitions behind the tables of the warm-up in `docs/statistics.md`.
pub const WARM_UP_REPS: u32 = 300;

/// Starts of a self-check of eight pairs, and windows of each.
const STARTS: usize = 16;
const WINDOWS: usize = 24;

/// Windows of a measured unit.
const MEASURED: usize = 6;

/// Gain of the arm in the power column.
const GAIN: f64 = 0.03;

const WALK_PHI: f64 = 0.97;
const WALK_SD: f64 = 0.03;

/// How a program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// At its level.
    Level,
    /// 10 % slower for 3 to 6 windows, as many as the start likes.
    Step,
    /// 30 % slower, a third of that after every three windows.
    Exponential,
    /// It becomes slower all the time, by 20 % over its unit.
    Growing,
}

impl Beginning {
    /// All of them, in the order of the table.
    pub const ALL: [Beginning; 4] =
        [Beginning::Level, Beginning::Step, Beginning::Exponential, Beginning::Growing];

    /// First column of the table.
    pub fn name(self) -> &'static str {
        match self {
            Beginning::Level => "level from the first window on",
            Beginning::Step => "10 % slower for 3 to 6 windows",
            Beginning::Exponential => "30 % slower, fading (e-fold: 3 windows)",
            Beginning::Growing => "slower all the time, 20 % in 24 windows",
        }
    }

    /// Log costs of the windows of one start, without noise.
    fn costs(self, rng: &mut Rng) -> Vec<f64> {
        let steps = 3 + rng.below(4);
        let cost = |window: usize| match self {
            Beginning::Level => 0.0,
            Beginning::Step if window < steps => 0.10f64.ln_1p(),
            Beginning::Step => 0.0,
            Beginning::Exponential => (0.30 * (-(window as f64) / 3.0).exp()).ln_1p(),
            Beginning::Growing => 0.20f64.ln_1p() * window as f64 / WINDOWS as f64,
        };
        (0..WINDOWS).map(cost).collect()
    }
}

/// Kinds of hosts: what disturbs the windows of a start. The others differ between starts only.
pub const WARM_UP_SETTINGS: [Setting; 3] = [Setting::Quiet, Setting::Spikes, Setting::Drift];

/// Log costs of the windows of one start: 1 % of noise, in the other settings spikes, in the last a slow walk of 3 %
/// and a neighbour of 8 % who comes for 12 windows and stays away for 24, on average.
fn windows(beginning: Beginning, setting: Setting, rng: &mut Rng) -> Vec<f64> {
    let mut costs = beginning.costs(rng);
    costs.iter_mut().for_each(|cost| *cost += 0.01 * rng.normal());
    if setting == Setting::Quiet {
        return costs;
    }
    add_spikes(&mut costs, rng);
    if setting == Setting::Spikes {
        return costs;
    }
    let mut walk = WALK_SD * rng.normal();
    let mut neighbour = rng.chance(1.0 / 3.0);
    for cost in &mut costs {
        *cost += walk + if neighbour { 0.08f64.ln_1p() } else { 0.0 };
        walk = WALK_PHI * walk + (1.0 - WALK_PHI * WALK_PHI).sqrt() * WALK_SD * rng.normal();
        neighbour ^= rng.chance(if neighbour { 1.0 / 12.0 } else { 1.0 / 24.0 });
    }
    costs
}

fn phase(beginning: Beginning, setting: Setting, rng: &mut Rng) -> WarmUp {
    let start = |rng: &mut Rng| windows(beginning, setting, rng).iter().map(|log| log.exp()).collect();
    let starts: Vec<Vec<f64>> = (0..STARTS).map(|_| start(rng)).collect();
    WarmUp::of(&starts).expect("simulated windows are above zero")
}

/// What the detector says of one kind of program on one kind of host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WarmUpCell {
    /// The kind of host.
    pub setting: Setting,
    /// Share of the phases in which a warm-up was left out.
    pub cut: f64,
    /// Windows that were left out then, on average.
    pub windows: f64,
    /// Share of the phases that were called never steady.
    pub never: f64,
}

/// Runs the detector over `reps` self-checks.
pub fn warm_up_cell(beginning: Beginning, setting: Setting, reps: u32, seed: u64) -> WarmUpCell {
    let found: Vec<WarmUp> =
        (0..reps).map(|rep| phase(beginning, setting, &mut Rng::stream(seed, u64::from(rep)))).collect();
    let share = |of: Finding| found.iter().filter(|one| one.finding == of).count() as f64 / f64::from(reps);
    let cuts: Vec<f64> = found.iter().filter(|one| one.cut > 0).map(|one| one.cut as f64).collect();
    let windows = if cuts.is_empty() { 0.0 } else { mean(&cuts) };
    WarmUpCell { setting, cut: share(Finding::Found), windows, never: share(Finding::NeverSteady) }
}

/// The detector on all kinds of programs and hosts, as Markdown.
pub fn warm_up_table(reps: u32, seed: u64) -> String {
    let rows = Beginning::ALL.map(|beginning| {
        let cell = |setting| {
            let cell = warm_up_cell(beginning, setting, reps, seed);
            let (cut, never) = (100.0 * cell.cut, 100.0 * cell.never);
            let windows = if cell.cut > 0.0 { format!(" ({:.1})", cell.windows) } else { String::new() };
            format!("{cut:.0}{windows} / {never:.0}")
        };
        std::iter::once(beginning.name().to_owned()).chain(WARM_UP_SETTINGS.map(cell)).collect()
    });
    markdown(std::iter::once("program").chain(WARM_UP_SETTINGS.map(Setting::name)), rows.into_iter())
}

/// What is done about a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// The program has none.
    Unneeded,
    /// It is measured with the rest.
    Ignored,
    /// What a self-check finds is left out of both arms, and as much is measured after it.
    Detected,
}

impl Care {
    /// All of them, in the order of the table.
    pub const ALL: [Care; 3] = [Care::Unneeded, Care::Ignored, Care::Detected];

    fn name(self) -> &'static str {
        match self {
            Care::Unneeded => "a program that is level from the first window on",
            Care::Ignored => "10 % slower for 3 to 6 windows, measured with the rest",
            Care::Detected => "the same, left out as the self-check finds it",
        }
    }
}

/// Error and power of the whole method on units of six windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CareCell {
    /// Keeps an arm that does nothing.
    pub false_keep: f64,
    /// Says that equal arms differ, either way.
    pub any_claim: f64,
    /// Keeps an arm that takes 3 % less time.
    pub power: f64,
}

/// Runs experiments of 32 pairs, each with a self-check of its own before it.
pub fn care_cell(care: Care, setting: Setting, reps: u32, seed: u64) -> CareCell {
    let effect = Better::Lower.log_gain(GAIN).expect("three percent have a logarithm");
    let beginning = if care == Care::Unneeded { Beginning::Level } else { Beginning::Step };
    let (mut kept, mut claimed, mut found) = (0u32, 0u32, 0u32);
    for rep in 0..reps {
        let mut rng = Rng::stream(seed, u64::from(rep));
        let cut = if care == Care::Detected { phase(beginning, Setting::Quiet, &mut rng).cut } else { 0 };
        let mut costs = trace(setting, &mut rng);
        for cost in &mut costs[..TRIALS] {
            let windows = windows(beginning, Setting::Quiet, &mut rng);
            *cost += median(&windows[cut..cut + MEASURED]);
        }
        let null = Method::Choice.run(&costs, 0.0, &mut rng.clone());
        kept += u32::from(null.keep);
        claimed += u32::from(null.any);
        found += u32::from(Method::Choice.run(&costs, effect, &mut rng).keep);
    }
    let share = |count: u32| f64::from(count) / f64::from(reps);
    CareCell { false_keep: share(kept), any_claim: share(claimed), power: share(found) }
}

/// Error and power with and without care, as Markdown.
pub fn care_table(reps: u32, seed: u64) -> String {
    let rows = Care::ALL.map(|care| {
        let cell = |setting| {
            let cell = care_cell(care, setting, reps, seed);
            let [keep, claim, power] =
                [cell.false_keep, cell.any_claim, cell.power].map(|share| 100.0 * share);
            format!("{keep:.0} / {claim:.0} / {power:.0}")
        };
        std::iter::once(care.name().to_owned()).chain(WARM_UP_SETTINGS.map(cell)).collect()
    });
    markdown(
        std::iter::once("units of six windows").chain(WARM_UP_SETTINGS.map(Setting::name)),
        rows.into_iter(),
    )
}
