//! Programs that are started once and compared in slices: what the layout of each process does to a ladder.
//!
//! Every process draws a layout when it starts, and all its slices share it. The coin deals slices and not layouts, so
//! that no number of slices tells a gain from a layout; pairs of fresh starts do.

use serde::Serialize;

use super::method::{MIN_GAIN, PAIRS};
use super::table::markdown;
use crate::Rng;
use crate::interval::Interval;
use crate::ladder::{Strictness, rung_alpha};
use crate::sequential::{Conclusion, Decision, Sequential, Verdict};
use crate::spending::Design;
use crate::summary::{Better, mean};

/// Rungs of the ladder that do nothing; the placebo comes on top.
const RUNGS: usize = 3;

/// Noise of one slice, of logs.
const SLICE_SD: f64 = 0.003;

/// Standard deviations between the layouts of two starts, of logs, that the table shows.
pub const LAYOUT_SDS: [f64; 4] = [0.005, 0.01, 0.02, 0.05];

/// Ladders behind each row of the table.
pub const LAYOUT_REPS: u32 = 2000;

/// How often any of three rungs that do nothing is kept. Shares of ladders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LayoutCell {
    /// By slices alone.
    pub found: f64,
    /// By slices, where the rung must also gain more than the placebo differs by, and the placebo must not be kept.
    pub doubted: f64,
    /// By fresh starts of both arms in every pair, after the slices: what is done.
    pub kept: f64,
}

/// Pairs until the test stops; each call gives the next one.
fn run(design: Design, mut pair: impl FnMut() -> f64) -> Conclusion {
    let mut test = Sequential::new(design, Vec::new());
    while test.push(pair(), &[]).expect("simulated logs are finite") == Decision::Continue {}
    test.close().clone()
}

fn is_kept(end: &Conclusion) -> bool {
    end.verdict == Verdict::Keep
}

fn ends(end: &Conclusion) -> Interval {
    end.effect.expect("there are pairs").interval
}

/// Whether any rung of one ladder is kept: by slices, by slices and the doubt, by fresh starts.
fn climb(layout_sd: f64, rng: &mut Rng) -> [bool; 3] {
    let min_gain = Better::Lower.log_gain(MIN_GAIN).expect("one percent has a logarithm");
    let design = |alpha| Design::new(PAIRS, alpha, min_gain).expect("32 pairs suffice for four rungs");
    let baseline = layout_sd * rng.normal();
    let slices = design(rung_alpha(RUNGS + 1, Strictness::Usual));
    let seen: Vec<Conclusion> = (0..=RUNGS)
        .map(|_| {
            let layouts = baseline - layout_sd * rng.normal();
            run(slices.clone(), || layouts + SLICE_SD * (rng.normal() - rng.normal()))
        })
        .collect();
    let (placebo, rungs) = seen.split_last().expect("the placebo is one of them");
    let effect = placebo.effect.expect("there are pairs");
    let between = ends(placebo);
    let limit = match between.contains(0.0) {
        true => effect.value.abs(),
        false => between.low.abs().max(between.high.abs()),
    };
    let doubted = !is_kept(placebo) && rungs.iter().any(|rung| is_kept(rung) && ends(rung).low > limit);

    // The placebo is run again like any other.
    let chosen = seen.iter().filter(|end| is_kept(end)).count();
    let of_rungs = chosen - usize::from(is_kept(placebo));
    let alpha = rung_alpha(chosen, Strictness::Usual);
    let fresh = Design::confirmation(PAIRS, alpha, min_gain).expect("32 pairs suffice for four rungs");
    let start_sd = layout_sd.hypot(SLICE_SD);
    let confirmed = (0..of_rungs)
        .filter(|_| is_kept(&run(fresh.clone(), || start_sd * (rng.normal() - rng.normal()))))
        .count();
    [of_rungs > 0, doubted, confirmed > 0]
}

/// Climbs so many ladders of rungs that do nothing, with layouts that differ by `layout_sd`.
pub fn layout_cell(layout_sd: f64, reps: u32, seed: u64) -> LayoutCell {
    let climbs: Vec<[bool; 3]> =
        (0..reps).map(|rep| climb(layout_sd, &mut Rng::stream(seed, u64::from(rep)))).collect();
    let share = |of: usize| mean(&climbs.iter().map(|any| f64::from(u8::from(any[of]))).collect::<Vec<_>>());
    LayoutCell { found: share(0), doubted: share(1), kept: share(2) }
}

/// The table of `docs/statistics.md`, as Markdown.
pub fn layout_table(reps: u32, seed: u64) -> String {
    let headings = [
        "layouts differ by",
        "found by slices",
        "kept if it gains more than the placebo differs by",
        "kept, after fresh starts",
    ];
    let rows = LAYOUT_SDS.into_iter().map(|layout_sd| {
        let cell = layout_cell(layout_sd, reps, seed);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        vec![percent(layout_sd), percent(cell.found), percent(cell.doubted), percent(cell.kept)]
    });
    markdown(headings.into_iter(), rows)
}
