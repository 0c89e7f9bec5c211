//! Rungs one after the other: each in pairs with what was kept before it, or, where only two arms fit side by side, with
//! the baseline.
//!
//! ```text
//! baseline      <- a        kept
//! a             <- placebo  a against a, started once more: at a place that the seed draws
//! a             <- b        dropped
//! a             <- c        kept
//! baseline      <- a + c    the confirmation: the total is its figure, not the sum of the steps
//! ```
//!
//! The plan is fixed before the first rung: their order, their number (which shares the error), the place of the
//! placebo. How long a rung may take follows the time that the ones before it have left.

use super::Climb;
use super::contender::Contender;
use super::race::{Leg, Race, ladder_share};
use crate::error::TrialError;
use crate::outcome::{LadderMode, RungVerdict};
use crate::sample::ArmError;

/// What was kept so far: the arm in which it is put together, and the names of its rungs.
#[derive(Default)]
struct Kept {
    arm: usize,
    names: Vec<String>,
}

impl Climb<'_> {
    /// Runs every rung that can be had, and the placebo among them.
    pub(super) fn climb_one_by_one(
        &mut self,
        contenders: &mut [Contender],
        unit_seconds: f64,
    ) -> Result<(), TrialError> {
        let plan = self.plan(contenders);
        let reserve = self.left().mul_f64(1.0 - ladder_share(self.options));
        let mut kept = Kept::default();
        for (over, &index) in plan.iter().enumerate() {
            let is_placebo = index + 1 == contenders.len();
            if self.meet(&mut contenders[index], &kept, is_placebo)? {
                let races = (over, plan.len());
                let leg = Leg { contender: index, reference: kept.arm, races, reserve, unit_seconds };
                Race::leg(self, contenders, &leg)?.run()?;
            }
            let contender = &contenders[index];
            if contender.is_kept() && !is_placebo && self.options.mode == LadderMode::Step {
                kept.arm = contender.arm;
                kept.names.push(contender.name.clone());
            }
        }
        Ok(())
    }

    /// The rungs that can be had in their planned order, the placebo at a place of its own.
    fn plan(&mut self, contenders: &[Contender]) -> Vec<usize> {
        let mut plan: Vec<usize> =
            (0..contenders.len()).filter(|&index| contenders[index].verdict().is_none()).collect();
        if let Some(placebo) = plan.pop_if(|index| *index + 1 == contenders.len()) {
            plan.insert(self.orders.place(plan.len() + 1), placebo);
        }
        plan
    }

    /// Puts a rung on top of what was kept, or what was kept together once more for the placebo; false when that
    /// cannot be run.
    fn meet(&mut self, contender: &mut Contender, kept: &Kept, is_placebo: bool) -> Result<bool, TrialError> {
        if kept.names.is_empty() {
            // As it was planned, and opened at the start.
            return Ok(true);
        }
        contender.against.clone_from(&kept.names);
        let parts = if is_placebo { vec![kept.arm] } else { vec![kept.arm, contender.arm] };
        let name = kept.names.iter().map(String::as_str).chain([contender.name.as_str()]);
        let name = name.collect::<Vec<_>>().join(" + ");
        let contradicts = format!("contradicts what was kept before it: {}", kept.names.join(", "));
        match self.stack(&parts, &name) {
            Some(stack) if !stack.left_out.contains(&contender.arm) => contender.arm = stack.arm,
            _ => {
                contender.conclude(RungVerdict::Inconclusive, contradicts);
                return Ok(false);
            }
        }
        let arm = contender.arm;
        let opened = self.timed(|field| field.open(arm));
        if let Err(error @ ArmError::Host { .. }) = opened {
            return Err(super::host_error(error));
        }
        contender.take_opened(opened, &mut self.refused);
        Ok(contender.verdict().is_none())
    }
}
