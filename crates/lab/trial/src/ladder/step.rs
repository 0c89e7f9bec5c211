//! Rungs one after the other: each in pairs with what was kept before it, or, where only two arms fit side by side,
//! with the baseline.
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
            if let Some(why) = &self.lost {
                super::conclude_all(contenders, &format!("no pair was run: {why}"));
                return Ok(());
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
        if let Err(error) = opened.as_ref().map_err(Clone::clone)
            && error.ends_the_trial()
        {
            return Err(super::host_error(error));
        }
        contender.take_opened(opened, &mut self.refused);
        Ok(contender.verdict().is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use planish_model::HostFacts;
    use planish_stats::Rng;
    use planish_stats::ladder::Strictness;

    use crate::control::{Silent, Stop};
    use crate::ladder::{Confirm, Field, LadderOptions, PairsCure, Stack, climb};
    use crate::outcome::{Achieved, Better, LadderMode, MetricSpec, RungVerdict, TrialOutcome, UnitKind};
    use crate::sample::{ArmError, Sample};

    /// Arms that gain so much, as logs, and whose gains add up when they are put together.
    struct Additive {
        gains: Vec<f64>,
        rng: Rng,
    }

    impl Field for Additive {
        fn unit(&self) -> UnitKind {
            UnitKind::Start
        }

        fn names(&self) -> Vec<String> {
            (0..self.gains.len()).map(|arm| arm.to_string()).collect()
        }

        fn twins(&self) -> [usize; 2] {
            [0, 0]
        }

        fn open(&mut self, _arm: usize) -> Result<Option<Achieved>, ArmError> {
            Ok(None)
        }

        fn shut(&mut self, _arm: usize) {}

        fn block(&mut self, order: &[usize], _seed: u64) -> Vec<Result<Sample, ArmError>> {
            let cost = |arm: &usize| (0.02 * self.rng.normal() - self.gains[*arm]).exp();
            let costs: Vec<f64> = order.iter().map(cost).collect();
            costs.into_iter().map(|cost| Ok(Sample::default().lower("cost", "", cost))).collect()
        }

        fn stack(&mut self, kept: &[usize]) -> Option<Stack> {
            self.gains.push(kept.iter().map(|&arm| self.gains[arm]).sum());
            Some(Stack { arm: self.gains.len() - 1, left_out: Vec::new() })
        }
    }

    fn climbed(rungs: &[f64], seed: u64) -> TrialOutcome {
        let gains = [&[0.0], rungs, &[0.0]].concat();
        let options = LadderOptions {
            trial: "t".to_owned(),
            summary: String::new(),
            quick: false,
            primary: MetricSpec { name: "cost".to_owned(), unit: String::new(), better: Better::Lower },
            mode: LadderMode::Step,
            duet: false,
            min_gain: 0.01,
            rung_gains: Vec::new(),
            hope: 0.9,
            strictness: Strictness::Usual,
            guards: Vec::new(),
            seed,
            budget: Duration::from_secs(600),
            spent: Duration::ZERO,
            pairs_max: 32,
            pairs_cure: PairsCure::alike("raise `pairs`"),
            pairs_min: 0,
            selfcheck_pairs: 8,
            warm_up: crate::ladder::WarmUpPlan::Auto,
            confirm: Confirm::Fresh,
            host: HostFacts::default(),
            refused: Vec::new(),
        };
        let mut field = Additive { gains, rng: Rng::stream(11, seed) };
        climb(&mut field, &options, &mut Silent, &Stop::default()).expect("the baseline runs")
    }

    #[test]
    fn of_eight_rungs_that_do_nothing_almost_none_is_kept_or_believed() {
        let ladders = 100;
        let (mut seen, mut believed) = (0, 0);
        for seed in 0..ladders {
            let outcome = climbed(&[0.0; 8], seed);
            let rungs = || outcome.real_rungs();
            believed += usize::from(rungs().any(|rung| rung.verdict == RungVerdict::Keep));
            // What was kept by its own pairs says so also where the end does not believe it.
            seen += usize::from(rungs().any(|rung| {
                rung.verdict == RungVerdict::Keep
                    || rung.reason.starts_with("seen once")
                    || rung.reason.starts_with("the placebo was kept")
            }));
        }
        assert!(seen <= 6 && believed <= 1, "{seen} seen, {believed} believed of {ladders} ladders");
    }

    #[test]
    fn what_is_claimed_is_the_whole_and_each_rung_its_part() {
        let outcome = climbed(&[0.10, 0.0, 0.08], 3);
        let rung = |name: &str| outcome.rungs.iter().find(|rung| rung.name == name).expect("planned");
        assert_eq!(rung("1").verdict, RungVerdict::Keep, "{}", rung("1").reason);
        assert_eq!((rung("3").verdict, &rung("3").against), (RungVerdict::Keep, &vec!["1".to_owned()]));
        let part = -(-0.08_f64).exp_m1();
        assert!((rung("3").effect.expect("pairs") - part).abs() < 0.02);
        let whole = -(-0.18_f64).exp_m1();
        let total = rung(TrialOutcome::STACK).confirmed.as_ref().expect("run again").gain;
        assert!(total.low < whole && whole < total.high, "{total:?} and {whole}");
    }
}
