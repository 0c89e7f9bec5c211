//! The product's ladder in step mode, whole: one host that drifts on through all rungs, a placebo at a hidden place,
//! and the confirmation of what was kept against the baseline.

use serde::Serialize;

use super::host::{Setting, TRIALS, trace_of};
use super::ladder::{MIXED_LADDER, NULL_LADDER};
use super::method::{MIN_GAIN, PAIRS};
use super::table::markdown;
use crate::Rng;
use crate::ladder::{Orders, PairOrder, Strictness, rung_alpha};
use crate::sequential::{Conclusion, Decision, Sequential, Verdict};
use crate::spending::{ALPHA, Design};
use crate::summary::{Better, mean};

/// Where one climb ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Climb {
    /// Rungs that do not help and were kept by their own pairs.
    wrong: usize,
    /// Of these and of the others, those that the end believes.
    wrong_believed: usize,
    real_believed: usize,
    placebo_kept: bool,
    /// Log of the gain that the confirmation claims for the whole, and of the true one.
    claimed: f64,
    truth: f64,
    trials: usize,
}

/// A host that goes on from pair to pair.
struct Host {
    costs: Vec<f64>,
    at: usize,
    orders: Orders,
}

impl Host {
    /// Runs pairs of an arm that is better by `effect` until the test stops.
    fn run(&mut self, design: Design, effect: f64) -> Conclusion {
        let mut test = Sequential::new(design, Vec::new());
        while test.conclusion().is_none() {
            let second_better = self.costs[self.at] - self.costs[self.at + 1];
            self.at += 2;
            let log = match self.orders.pair() {
                PairOrder::ArmFirst => effect - second_better,
                PairOrder::BaselineFirst => effect + second_better,
            };
            if test.push(log, &[]).expect("simulated logs are finite") != Decision::Continue {
                break;
            }
        }
        test.close().clone()
    }
}

/// Climbs rungs that change the cost by `changes`, and the placebo.
fn climb(setting: Setting, changes: &[f64], rng: &mut Rng) -> Climb {
    let races = changes.len() + 2;
    let costs = trace_of(setting, races * TRIALS, rng);
    let mut host = Host { costs, at: 0, orders: Orders::new(rng.next_u64()) };
    let min_gain = Better::Lower.log_gain(MIN_GAIN).expect("one percent has a logarithm");
    let alpha = rung_alpha(changes.len() + 1, Strictness::Usual);
    let design = Design::new(PAIRS, alpha, min_gain).expect("32 pairs suffice for nine rungs");
    let mut plan: Vec<Option<f64>> = changes.iter().map(|change| Some(-change.ln_1p())).collect();
    plan.insert(host.orders.place(plan.len() + 1), None);

    let mut climb = Climb::default();
    let mut kept: Vec<f64> = Vec::new();
    for rung in plan {
        let is_kept = host.run(design.clone(), rung.unwrap_or(0.0)).verdict == Verdict::Keep;
        match rung {
            None => climb.placebo_kept = is_kept,
            Some(effect) if is_kept => kept.push(effect),
            Some(_) => {}
        }
    }
    climb.wrong = kept.iter().filter(|effect| **effect <= 0.0).count();
    if !kept.is_empty() && !climb.placebo_kept {
        let truth = kept.iter().sum();
        let design = Design::confirmation(PAIRS, ALPHA, min_gain).expect("32 pairs suffice for one question");
        let fresh = host.run(design, truth);
        if fresh.verdict == Verdict::Keep {
            climb.claimed = fresh.effect.expect("there are pairs").value;
            climb.truth = truth;
            climb.wrong_believed = climb.wrong;
            climb.real_believed = kept.len() - climb.wrong;
        }
    }
    climb.trials = host.at;
    climb
}

/// What step mode makes of eight rungs that do nothing. Shares of ladders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepNull {
    /// Any of the eight is kept by its own pairs.
    pub any_false_keep: f64,
    /// Any of the eight is still kept at the end: the placebo was not, and the confirmation held.
    pub any_believed: f64,
    /// The placebo is kept.
    pub placebo_kept: f64,
    /// Mean change of the cost that is claimed, as a fraction; the truth is 0.
    pub claimed: f64,
}

/// What it makes of four rungs that help, three that do nothing and one that harms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepMixed {
    /// Share of ladders with any false keep at the end.
    pub any_believed: f64,
    /// Mean number of the four helping rungs that are kept at the end.
    pub real_kept: f64,
    /// Mean change of the cost that the confirmation claims for the whole, as a fraction.
    pub claimed: f64,
    /// Mean true change of the cost by what is kept at the end.
    pub truth: f64,
    /// Mean trials.
    pub trials: f64,
}

/// Step mode on one kind of host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepRow {
    /// The kind of host.
    pub setting: Setting,
    /// Eight rungs that do nothing.
    pub null: StepNull,
    /// The mixed ladder.
    pub mixed: StepMixed,
}

/// Step mode on all kinds of hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTable {
    /// Ladders per row and kind.
    pub reps: u32,
    /// Seed of the whole table.
    pub seed: u64,
    /// One row per [`Setting`].
    pub rows: Vec<StepRow>,
}

/// Climbs both ladders `reps` times on one kind of host.
pub fn step_row(setting: Setting, reps: u32, seed: u64) -> StepRow {
    let climbs = |changes: &[f64], seed: u64| -> Vec<Climb> {
        (0..reps).map(|rep| climb(setting, changes, &mut Rng::stream(seed, u64::from(rep)))).collect()
    };
    let (null, mixed) = (climbs(&NULL_LADDER, seed), climbs(&MIXED_LADDER, seed ^ 1));
    let average = |climbs: &[Climb], of: fn(&Climb) -> f64| mean(&climbs.iter().map(of).collect::<Vec<_>>());
    StepRow {
        setting,
        null: StepNull {
            any_false_keep: average(&null, |climb| f64::from(u8::from(climb.wrong > 0))),
            any_believed: average(&null, |climb| f64::from(u8::from(climb.wrong_believed > 0))),
            placebo_kept: average(&null, |climb| f64::from(u8::from(climb.placebo_kept))),
            claimed: average(&null, |climb| (-climb.claimed).exp_m1()),
        },
        mixed: StepMixed {
            any_believed: average(&mixed, |climb| f64::from(u8::from(climb.wrong_believed > 0))),
            real_kept: average(&mixed, |climb| climb.real_believed as f64),
            claimed: average(&mixed, |climb| (-climb.claimed).exp_m1()),
            truth: average(&mixed, |climb| (-climb.truth).exp_m1()),
            trials: average(&mixed, |climb| climb.trials as f64),
        },
    }
}

/// The table of step mode: every [`Setting`].
pub fn step_table(reps: u32, seed: u64) -> StepTable {
    StepTable { reps, seed, rows: Setting::ALL.map(|setting| step_row(setting, reps, seed)).to_vec() }
}

impl StepTable {
    /// The table as Markdown, changes of the cost in percent.
    pub fn to_markdown(&self) -> String {
        let headings = [
            "host",
            "all null: any false keep",
            "all null: believed at the end",
            "placebo kept",
            "all null: claimed total",
            "mixed: any false keep at the end",
            "mixed: real kept of 4",
            "mixed: claimed vs true",
            "trials",
        ];
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let rows = self.rows.iter().map(|row| {
            vec![
                row.setting.name().to_owned(),
                percent(row.null.any_false_keep),
                percent(row.null.any_believed),
                percent(row.null.placebo_kept),
                format!("{:.2} %", 100.0 * row.null.claimed),
                percent(row.mixed.any_believed),
                format!("{:.1}", row.mixed.real_kept),
                format!("{:.1} vs {:.1} %", 100.0 * row.mixed.claimed, 100.0 * row.mixed.truth),
                format!("{:.0}", row.mixed.trials),
            ]
        });
        markdown(headings.into_iter(), rows)
    }
}
