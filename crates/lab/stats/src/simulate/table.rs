//! The tables, as values and as Markdown.

use std::fmt::Write;

use serde::Serialize;

use super::host::{Setting, TRIALS, trace};
use super::ladder::{LadderMethod, MIXED_LADDER, NULL_LADDER};
use super::method::Method;
use crate::Rng;
use crate::summary::{Better, mean};

/// Gain of the arm in the power column: 3 % less time.
const GAIN: f64 = 0.03;

/// How often a method errs and how often it sees, on one kind of host. Shares of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FalseKeepCell {
    /// The kind of host.
    pub setting: Setting,
    /// Keeps an arm that does nothing.
    pub false_keep: f64,
    /// Says that equal arms differ, either way.
    pub any_claim: f64,
    /// Keeps an arm that takes 3 % less time.
    pub power: f64,
    /// Mean trials used, of 64, when the arm does nothing.
    pub trials_null: f64,
}

/// One method on all kinds of hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FalseKeepRow {
    /// The method.
    pub method: &'static str,
    /// One cell per [`Setting`].
    pub cells: Vec<FalseKeepCell>,
}

/// False keeps and power of all methods on all kinds of hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FalseKeepTable {
    /// Repetitions per cell and effect.
    pub reps: u32,
    /// Seed of the whole table.
    pub seed: u64,
    /// Trials of one experiment.
    pub trials: usize,
    /// One row per [`Method`].
    pub rows: Vec<FalseKeepRow>,
}

/// Runs one method on one kind of host, `reps` times without and with an effect. Every method meets the
/// same hosts.
pub fn false_keep_cell(method: Method, setting: Setting, reps: u32, seed: u64) -> FalseKeepCell {
    let effect = Better::Lower.log_gain(GAIN).expect("three percent have a logarithm");
    let (mut kept, mut claimed, mut found, mut trials) = (0u32, 0u32, 0u32, 0usize);
    for rep in 0..reps {
        let mut rng = Rng::stream(seed, u64::from(rep));
        let costs = trace(setting, &mut rng);
        let null = method.run(&costs, 0.0, &mut rng.clone());
        kept += u32::from(null.keep);
        claimed += u32::from(null.any);
        trials += null.trials;
        found += u32::from(method.run(&costs, effect, &mut rng).keep);
    }
    let share = |count: u32| f64::from(count) / f64::from(reps);
    FalseKeepCell {
        setting,
        false_keep: share(kept),
        any_claim: share(claimed),
        power: share(found),
        trials_null: trials as f64 / f64::from(reps),
    }
}

/// The table of false keeps: every [`Method`] on every [`Setting`].
pub fn false_keep_table(reps: u32, seed: u64) -> FalseKeepTable {
    let row = |method: Method| FalseKeepRow {
        method: method.name(),
        cells: Setting::ALL.map(|setting| false_keep_cell(method, setting, reps, seed)).to_vec(),
    };
    FalseKeepTable { reps, seed, trials: TRIALS, rows: Method::ALL.map(row).to_vec() }
}

impl FalseKeepTable {
    /// The table as Markdown: false keep / any claim / power, in percent.
    pub fn to_markdown(&self) -> String {
        let headings = Setting::ALL.map(Setting::name);
        let rows = self.rows.iter().map(|row| {
            let cell = |cell: &FalseKeepCell| {
                format!(
                    "{} / {} / {}",
                    percent(cell.false_keep),
                    percent(cell.any_claim),
                    percent(cell.power)
                )
            };
            std::iter::once(row.method.to_owned()).chain(row.cells.iter().map(cell)).collect()
        });
        markdown(std::iter::once("method").chain(headings), rows)
    }
}

/// What a method makes of eight rungs that do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NullLadder {
    /// Share of ladders with any false keep.
    pub any_false_keep: f64,
    /// Mean change of the cost that would be published, as a fraction; the truth is 0.
    pub claimed: f64,
}

/// What a method makes of four rungs that help, three that do nothing and one that harms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MixedLadder {
    /// Share of ladders with any false keep.
    pub any_false_keep: f64,
    /// Mean number of the four helping rungs that were kept.
    pub real_kept: f64,
    /// Mean change of the cost that would be published, as a fraction.
    pub claimed: f64,
    /// Mean true change of the cost by what was kept.
    pub truth: f64,
}

/// One method on both ladders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LadderRow {
    /// The method.
    pub method: &'static str,
    /// Eight rungs that do nothing.
    pub null: NullLadder,
    /// The mixed ladder.
    pub mixed: MixedLadder,
    /// Mean trials for the mixed ladder.
    pub trials: f64,
}

/// Ladders of eight rungs on a drifting host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LadderTable {
    /// Ladders per row and kind.
    pub reps: u32,
    /// Seed of the whole table.
    pub seed: u64,
    /// One row per [`LadderMethod`].
    pub rows: Vec<LadderRow>,
}

/// Climbs both ladders `reps` times with one method.
pub fn ladder_row(method: LadderMethod, reps: u32, seed: u64) -> LadderRow {
    let climb_all = |changes: &[f64], seed: u64| -> Vec<_> {
        (0..reps).map(|rep| method.climb(changes, &mut Rng::stream(seed, u64::from(rep)))).collect()
    };
    let (null, mixed) = (climb_all(&NULL_LADDER, seed), climb_all(&MIXED_LADDER, seed ^ 1));
    let share = |flags: Vec<bool>| flags.iter().filter(|flag| **flag).count() as f64 / f64::from(reps);
    let average = |values: Vec<f64>| mean(&values);
    // A log gain is minus the log of the cost ratio.
    let change = |log: f64| (-log).exp_m1();
    LadderRow {
        method: method.name(),
        null: NullLadder {
            any_false_keep: share(null.iter().map(|climb| climb.wrong > 0).collect()),
            claimed: average(null.iter().map(|climb| change(climb.claimed)).collect()),
        },
        mixed: MixedLadder {
            any_false_keep: share(mixed.iter().map(|climb| climb.wrong > 0).collect()),
            real_kept: average(mixed.iter().map(|climb| climb.real as f64).collect()),
            claimed: average(mixed.iter().map(|climb| change(climb.claimed)).collect()),
            truth: average(mixed.iter().map(|climb| change(climb.truth)).collect()),
        },
        trials: average(mixed.iter().map(|climb| climb.trials as f64).collect()),
    }
}

/// The table of ladders: every [`LadderMethod`].
pub fn ladder_table(reps: u32, seed: u64) -> LadderTable {
    LadderTable { reps, seed, rows: LadderMethod::ALL.map(|method| ladder_row(method, reps, seed)).to_vec() }
}

impl LadderTable {
    /// The table as Markdown, changes of the cost in percent.
    pub fn to_markdown(&self) -> String {
        let headings = [
            "method",
            "all null: any false keep",
            "all null: claimed total",
            "mixed: any false keep",
            "mixed: real kept of 4",
            "mixed: claimed vs true",
            "trials",
        ];
        let rows = self.rows.iter().map(|row| {
            vec![
                row.method.to_owned(),
                format!("{:.1} %", 100.0 * row.null.any_false_keep),
                format!("{:.1} %", 100.0 * row.null.claimed),
                format!("{:.1} %", 100.0 * row.mixed.any_false_keep),
                format!("{:.1}", row.mixed.real_kept),
                format!("{:.1} vs {:.1} %", 100.0 * row.mixed.claimed, 100.0 * row.mixed.truth),
                format!("{:.0}", row.trials),
            ]
        });
        markdown(headings.into_iter(), rows)
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

pub(super) fn markdown<'a>(
    headings: impl Iterator<Item = &'a str>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let headings: Vec<&str> = headings.collect();
    let mut text = format!("| {} |\n|{}\n", headings.join(" | "), " --- |".repeat(headings.len()));
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).expect("writing to a string cannot fail");
    }
    text
}
