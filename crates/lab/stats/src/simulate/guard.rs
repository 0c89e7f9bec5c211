//! A guard that is looked at several times: how often it is called held where it is not, and how often where it is.

use serde::Serialize;

use super::method::{MIN_GAIN, PAIRS};
use super::table::markdown;
use crate::Rng;
use crate::sequential::{BREACH_LEVEL, Decision, Guard, Reason, Sequential};
use crate::spending::{ALPHA, Design, GUARD_ERROR};
use crate::summary::Better;
use crate::walsh::{Walsh, pairs_for_tail};

/// Noise of a pair of the guard's metric, of logs.
const NOISE: f64 = 0.02;

/// Trials behind each row of the table.
pub const GUARD_REPS: u32 = 3000;

/// What an arm that surely gains does to the metric of its guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Spoils {
    /// It makes it worse by the margin, to the digit: called held is wrong.
    ByTheMargin,
    /// Nothing, and the margin is half of the noise of a pair.
    NothingHalfNoise,
    /// Nothing, and the margin is the noise of a pair.
    NothingNoise,
}

impl Spoils {
    /// All, in the order of the table.
    pub const ALL: [Spoils; 3] = [Spoils::ByTheMargin, Spoils::NothingHalfNoise, Spoils::NothingNoise];

    fn name(self) -> &'static str {
        match self {
            Spoils::ByTheMargin => "worse by its margin exactly",
            Spoils::NothingHalfNoise => "as it was, the margin half of the noise of a pair",
            Spoils::NothingNoise => "as it was, the margin the noise of a pair",
        }
    }

    /// Margin and mean change, of logs.
    fn size(self) -> (f64, f64) {
        match self {
            Spoils::ByTheMargin => (NOISE, -NOISE),
            Spoils::NothingHalfNoise => (NOISE / 2.0, 0.0),
            Spoils::NothingNoise => (NOISE, 0.0),
        }
    }
}

/// How trials end in which the gain is sure and the guard is not. Shares of trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GuardCell {
    /// Kept: the guard was called held at some look.
    pub held: f64,
    /// Dropped: it was called breached.
    pub breached: f64,
    /// Would be kept with 95 % at each look by itself.
    pub unspent: f64,
}

/// Whether a guard of these values would be held at some look, if each had its whole error, before it is breached.
fn is_held_unspent(looks: &[usize], values: &[f64], floor: f64) -> bool {
    for &look in looks {
        let walsh = Walsh::new(&values[..look]).expect("a look has pairs");
        if walsh.lower_bound(1.0 - GUARD_ERROR).is_some_and(|bound| bound >= floor) {
            return true;
        }
        if walsh.upper_bound(BREACH_LEVEL).is_some_and(|bound| bound < floor) {
            return false;
        }
    }
    false
}

/// Runs `reps` trials of an arm that surely gains, with a guard on a metric to which it does this.
pub fn guard_cell(spoils: Spoils, reps: u32, seed: u64) -> GuardCell {
    let min_gain = Better::Lower.log_gain(MIN_GAIN).expect("one percent has a logarithm");
    let design = Design::new(PAIRS, ALPHA, min_gain).expect("32 pairs suffice for one rung");
    let (margin, change) = spoils.size();
    // Of the looks that there are, those at which such a gain can be kept.
    let can_keep = |look: &usize| pairs_for_tail(design.budget(*look)) <= *look;
    let looks: Vec<usize> = design.looks().iter().copied().filter(can_keep).collect();
    let (mut held, mut breached, mut unspent) = (0u32, 0u32, 0u32);
    for rep in 0..reps {
        let mut rng = Rng::stream(seed, u64::from(rep));
        let values: Vec<f64> = (0..PAIRS).map(|_| change + NOISE * rng.normal()).collect();
        let mut test = Sequential::new(design.clone(), vec![Guard::of_difference("guard", margin)]);
        for value in &values {
            let gain = 0.5 + 0.001 * rng.normal();
            if test.push(gain, &[*value]).expect("simulated logs are finite") != Decision::Continue {
                break;
            }
        }
        let reason = test.close().reason;
        held += u32::from(reason == Reason::Pays);
        breached += u32::from(reason == Reason::GuardBreached);
        unspent += u32::from(is_held_unspent(&looks, &values, -margin));
    }
    let share = |count: u32| f64::from(count) / f64::from(reps);
    GuardCell { held: share(held), breached: share(breached), unspent: share(unspent) }
}

/// The table of `docs/statistics.md`, as Markdown.
pub fn guard_table(reps: u32, seed: u64) -> String {
    let headings =
        ["the guard's metric is", "called held", "called breached", "held, with 95 % at each look by itself"];
    let rows = Spoils::ALL.into_iter().map(|spoils| {
        let cell = guard_cell(spoils, reps, seed);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        vec![spoils.name().to_owned(), percent(cell.held), percent(cell.breached), percent(cell.unspent)]
    });
    markdown(headings.into_iter(), rows)
}
