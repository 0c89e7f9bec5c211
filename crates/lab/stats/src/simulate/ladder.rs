//! A ladder of eight rungs, each tried against what was kept so far.

use super::host::{Setting, trace};
use super::method::{Claim, blocks, by_p, choice, pairs, welch};
use crate::Rng;
use crate::ladder::{Strictness, rung_alpha};
use crate::summary::mean;

/// Eight rungs that do nothing.
pub const NULL_LADDER: [f64; 8] = [0.0; 8];

/// Four rungs that help, three that do nothing, one that harms: change of the cost.
pub const MIXED_LADDER: [f64; 8] = [-0.08, -0.05, -0.03, -0.02, 0.0, 0.0, 0.02, 0.0];

/// A way to climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderMethod {
    /// Five trials before, five after, keep if more than 1 % better.
    Blog,
    /// Sixteen and sixteen, Welch's t test at 0.05.
    Blocks,
    /// The method without a correction for the number of rungs.
    ChoiceUncorrected,
    /// The method with 0.10 shared by the rungs: the default.
    ChoiceUsual,
    /// The method with 0.05 shared by the rungs.
    ChoiceStrict,
}

/// Where one climb ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Climb {
    /// Rungs kept that help, and that do not.
    pub real: usize,
    pub wrong: usize,
    /// Log of the gain that would be published, and of the true one.
    pub claimed: f64,
    pub truth: f64,
    pub trials: usize,
}

impl LadderMethod {
    /// All methods, in the order of the table.
    pub const ALL: [LadderMethod; 5] = [
        LadderMethod::Blog,
        LadderMethod::Blocks,
        LadderMethod::ChoiceUncorrected,
        LadderMethod::ChoiceUsual,
        LadderMethod::ChoiceStrict,
    ];

    /// First column of the table.
    pub fn name(self) -> &'static str {
        match self {
            LadderMethod::Blog => "blog style: 5 before, 5 after, keep if > 1 % better",
            LadderMethod::Blocks => "hyperfine style: 16 + 16, p < .05",
            LadderMethod::ChoiceUncorrected => "planish, .05 per rung",
            LadderMethod::ChoiceUsual => "planish, .10 / 8 (default)",
            LadderMethod::ChoiceStrict => "planish, .05 / 8 (strict)",
        }
    }

    /// Climbs rungs that change the cost by `changes`, on a drifting host.
    pub(super) fn climb(self, changes: &[f64], rng: &mut Rng) -> Climb {
        let mut climb = Climb::default();
        for &change in changes {
            let effect = -change.ln_1p();
            let costs = trace(Setting::Drift, rng);
            let claim = self.rung(&costs, effect, changes.len(), rng);
            climb.trials += claim.trials;
            if claim.keep {
                climb.real += usize::from(effect > 0.0);
                climb.wrong += usize::from(effect <= 0.0);
                climb.claimed += claim.log;
                climb.truth += effect;
            }
        }
        climb
    }

    fn rung(self, costs: &[f64], effect: f64, rungs: usize, rng: &mut Rng) -> Claim {
        let mut chosen = |alpha| choice(&pairs(costs, effect, |_| rng.coin()), alpha);
        match self {
            LadderMethod::Blog => {
                let (before, after) = blocks(costs, effect, 5);
                let log = mean(&before) - mean(&after);
                Claim { keep: log > 0.01, any: log.abs() > 0.01, log, trials: 10 }
            }
            LadderMethod::Blocks => {
                let (before, after) = blocks(costs, effect, 16);
                by_p(mean(&before) - mean(&after), welch(&before, &after), 32)
            }
            LadderMethod::ChoiceUncorrected => chosen(0.05),
            LadderMethod::ChoiceUsual => chosen(rung_alpha(rungs, Strictness::Usual)),
            LadderMethod::ChoiceStrict => chosen(rung_alpha(rungs, Strictness::Strict)),
        }
    }
}
