//! The figure of a unit: its primary metric, where that can be compared.
//!
//! Gains are logs of ratios, and those need values above zero. A unit that tells none has not failed: it may have done
//! so well that nothing was left to count, or too little for a quantile. So it is no crash of its arm, and no verdict.
//!
//! | the unit of | what becomes of it |
//! |---|---|
//! | the self-check | its pair is run again, twice; then the trial ends before anything was compared |
//! | the reference, zero | the rungs that are still in the race end there, "not comparable" |
//! | the reference, missing | its block has no pairs, and the third such unit ends these rungs |
//! | a rung | the rung ends there, "not comparable" |
//!
//! A zero of the reference leaves its block without pairs, and where less is better the other pairs are those in which
//! it was worse than it can be: they must keep no rung, so that more of them would be time for nothing. A metric is
//! *missing* where a unit did too little for it, so that to leave such a unit of the reference out favours no rung.
//! Other metrics decide nothing, and what they lack ends nothing.

use crate::sample::Sample;

use super::selfcheck::is_speed;

/// What a unit has instead of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lack {
    /// It does not tell the metric.
    Missing,
    /// It tells a number that has no logarithm.
    NotAboveZero(f64),
}

/// The value of the metric `name`.
pub(super) fn figure(sample: &Sample, name: &str) -> Result<f64, Lack> {
    match sample.value(name) {
        None => Err(Lack::Missing),
        Some(value) if value > 0.0 && value.is_finite() => Ok(value),
        Some(value) => Err(Lack::NotAboveZero(value)),
    }
}

/// Another metric of the unit by which speed can be told.
pub(super) fn instead(sample: &Sample, name: &str) -> Option<String> {
    let fits = |(other, metric): &(&String, &crate::sample::Metric)| {
        *other != name && is_speed(other) && metric.value > 0.0
    };
    sample.metrics.iter().find(fits).map(|(other, _)| other.clone())
}

impl Lack {
    /// Why a unit of the arm `of` cannot be compared, and what to do about it.
    pub(super) fn told(self, name: &str, of: &str, sample: &Sample) -> String {
        let instead = instead(sample, name).map(|other| format!(", or decide by `{other}`"));
        let instead = instead.unwrap_or_default();
        match self {
            Self::Missing => {
                let why = sample.collectors.get(name).and_then(|collected| collected.value.clone().err());
                let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                format!("not comparable: a unit of `{of}` has no `{name}`{why}; make units longer{instead}")
            }
            Self::NotAboveZero(value) => format!(
                "not comparable: `{name}` is {value} in a unit of `{of}`, and gains are logs of ratios, which need \
                 values above zero; make units longer{instead}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use planish_model::Exit;
    use planish_stats::Rng;

    use crate::control::{Silent, Stop};
    use crate::error::TrialError;
    use crate::ladder::tests::options;
    use crate::ladder::{Field, LadderOptions, climb};
    use crate::outcome::{Achieved, Better, MetricSpec, Rung, RungVerdict, TrialOutcome, UnitKind};
    use crate::sample::{ArmError, Sample};

    /// Pairs of the self-check: so many blocks come before the first of the ladder.
    const CHECKED: usize = 8;

    /// The baseline, a rung that takes half, one that takes as much, and the placebo. `told` replaces what a unit of an
    /// arm says in a block, both counted from 0: with another number, or with none.
    struct Counted {
        told: fn(usize, usize) -> Option<Option<f64>>,
        /// What it says of its processor time instead, in the same way.
        cpu: fn(usize, usize) -> Option<f64>,
        /// The block in which the baseline crashes.
        crash: Option<usize>,
        blocks: usize,
        opened: Vec<usize>,
        rng: Rng,
    }

    impl Counted {
        /// Units that tell this, and nothing else that is out of the way.
        fn told(told: fn(usize, usize) -> Option<Option<f64>>) -> Self {
            let (opened, rng) = (Vec::new(), Rng::new(8));
            Self { told, cpu: |_, _| None, crash: None, blocks: 0, opened, rng }
        }
    }

    impl Field for Counted {
        fn unit(&self) -> UnitKind {
            UnitKind::Start
        }

        fn names(&self) -> Vec<String> {
            ["base", "half", "same", TrialOutcome::PLACEBO].map(str::to_owned).to_vec()
        }

        fn twins(&self) -> [usize; 2] {
            [0, 3]
        }

        fn open(&mut self, arm: usize) -> Result<Option<Achieved>, ArmError> {
            self.opened.push(arm);
            Ok(None)
        }

        fn shut(&mut self, _arm: usize) {}

        fn block(&mut self, order: &[usize], _seed: u64) -> Vec<Result<Sample, ArmError>> {
            let block = self.blocks;
            self.blocks += 1;
            let crash = self.crash == Some(block);
            let unit = |&arm: &usize| {
                if arm == 0 && crash {
                    return Err(ArmError::crashed("exit status 139"));
                }
                let usual = if arm == 1 { 50.0 } else { 100.0 } * (0.01 * self.rng.normal()).exp();
                let cpu = (self.cpu)(arm, block).unwrap_or(usual);
                let sample = Sample::default().lower("cpu_s", "s", cpu);
                Ok(match (self.told)(arm, block).unwrap_or(Some(usual)) {
                    Some(value) => sample.lower("n", "", value),
                    None => sample,
                })
            };
            order.iter().map(unit).collect()
        }
    }

    fn run(told: fn(usize, usize) -> Option<Option<f64>>) -> (Result<TrialOutcome, TrialError>, Vec<usize>) {
        run_of(Counted::told(told), &counted())
    }

    /// A ladder that `n` decides.
    fn counted() -> LadderOptions {
        LadderOptions {
            primary: MetricSpec { name: "n".to_owned(), unit: String::new(), better: Better::Lower },
            hope: 0.9,
            seed: 5,
            ..options(600.0, CHECKED)
        }
    }

    fn run_of(mut field: Counted, options: &LadderOptions) -> (Result<TrialOutcome, TrialError>, Vec<usize>) {
        let outcome = climb(&mut field, options, &mut Silent, &Stop::default());
        (outcome, field.opened)
    }

    fn outcome(told: fn(usize, usize) -> Option<Option<f64>>) -> TrialOutcome {
        run(told).0.expect("the baseline runs")
    }

    fn rung<'a>(outcome: &'a TrialOutcome, name: &str) -> &'a Rung {
        outcome.rungs.iter().find(|rung| rung.name == name).expect("planned")
    }

    #[test]
    fn units_that_tell_a_number_are_compared() {
        let outcome = outcome(|_, _| None);
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.tested), (RungVerdict::Keep, Some(true)), "{}", half.reason);
        assert_eq!(outcome.exit, Exit::Done.code());
    }

    #[test]
    fn a_rung_that_leaves_nothing_to_count_has_not_crashed_and_is_not_kept() {
        let (outcome, opened) = run(|arm, block| (arm == 1 && block >= CHECKED).then_some(Some(0.0)));
        let outcome = outcome.expect("the baseline runs");
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.tested), (RungVerdict::Inconclusive, Some(false)));
        assert_eq!(
            half.reason,
            "not comparable: `n` is 0 in a unit of `half`, and gains are logs of ratios, which need values above \
             zero; make units longer, or decide by `cpu_s`"
        );
        assert_eq!(outcome.exit, Exit::Inconclusive.code(), "it is open whether it pays");
        assert_eq!(opened.iter().filter(|&&arm| arm == 1).count(), 1, "nothing was to be started again");
        assert_ne!(rung(&outcome, "same").verdict, RungVerdict::Keep);
    }

    #[test]
    fn a_rung_that_tells_nothing_is_not_comparable_either() {
        let outcome = outcome(|arm, block| (arm == 1 && block == CHECKED + 3).then_some(None));
        let half = rung(&outcome, "half");
        assert_eq!(half.verdict, RungVerdict::Inconclusive);
        let reason = "not comparable: a unit of `half` has no `n`; make units longer, or decide by `cpu_s`";
        assert_eq!((half.reason.as_str(), half.pairs), (reason, 3));
    }

    #[test]
    fn a_unit_of_the_baseline_without_the_metric_costs_its_block_and_not_the_trial() {
        let outcome = outcome(|arm, block| (arm == 0 && block == CHECKED + 2).then_some(None));
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.pairs), (RungVerdict::Keep, 12), "{}", half.reason);
        let of_half = |block: &&Vec<String>| block.iter().any(|name| name == "half");
        assert!(outcome.blocks.iter().filter(of_half).count() > half.pairs);
    }

    /// Why the rungs end beside a baseline that is zero.
    const ZERO: &str = "not comparable: `n` is 0 in a unit of `base`, and gains are logs of ratios, which need values \
                        above zero; make units longer, or decide by `cpu_s`";

    #[test]
    fn a_zero_of_the_baseline_ends_the_rungs_at_once_and_is_no_failure_of_them() {
        let (outcome, opened) = run(|arm, block| (arm == 0 && block == CHECKED + 2).then_some(Some(0.0)));
        let outcome = outcome.expect("the baseline runs");
        for rung in &outcome.rungs {
            assert_eq!((rung.verdict, rung.pairs, rung.tested), (RungVerdict::Inconclusive, 2, Some(false)));
            assert_eq!(rung.reason, ZERO, "{}", rung.name);
        }
        assert_eq!(outcome.blocks.len(), 3, "what can be kept no more takes no more time");
        assert_eq!(opened.len(), 4, "each arm was made ready once");
        assert_eq!(outcome.exit, Exit::Inconclusive.code());
    }

    #[test]
    fn what_was_kept_before_a_zero_of_the_baseline_stays() {
        // `half` is kept after twelve pairs, and the next twelve blocks confirm it.
        let outcome = outcome(|arm, block| (arm == 0 && block == CHECKED + 13).then_some(Some(0.0)));
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.pairs), (RungVerdict::Keep, 12), "{}", half.reason);
        assert!(half.confirmed.is_some());
        for name in ["same", TrialOutcome::PLACEBO] {
            let rung = rung(&outcome, name);
            assert!(rung.verdict == RungVerdict::Drop || rung.reason == ZERO, "{}", rung.reason);
        }
        assert_eq!(outcome.exit, Exit::Done.code());
    }

    #[test]
    fn a_zero_of_the_baseline_in_the_fresh_run_ends_it_at_once() {
        let (outcome, _) = run(|arm, block| (arm == 0 && block >= CHECKED + 20).then_some(Some(0.0)));
        let outcome = outcome.expect("the baseline runs");
        let half = rung(&outcome, "half");
        assert_eq!(half.reason, format!("seen once and not confirmed: {ZERO}"));
        assert_eq!((half.verdict, half.tested), (RungVerdict::Inconclusive, Some(false)));
        assert_eq!(outcome.blocks.len(), 21, "it is the last block");
    }

    #[test]
    fn a_zero_of_a_metric_that_does_not_decide_ends_nothing() {
        let mut field = Counted::told(|_, _| None);
        field.cpu = |arm, block| (arm == 0 && block == CHECKED + 2).then_some(0.0);
        let outcome = run_of(field, &counted()).0.expect("the baseline runs");
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.pairs), (RungVerdict::Keep, 12), "{}", half.reason);
        assert_eq!(half.metrics["cpu_s"].gain, None, "a ratio over some of the pairs would be a selection");
    }

    #[test]
    fn a_zero_ends_one_rung_of_those_that_run_one_after_the_other() {
        let mode = crate::outcome::LadderMode::Step;
        let options = LadderOptions { mode, ..counted() };
        let zero = |arm, block| (arm == 0 && block == CHECKED + 1).then_some(Some(0.0));
        let outcome = run_of(Counted::told(zero), &options).0.expect("the baseline runs");
        let ended = outcome.rungs.iter().filter(|rung| rung.reason == ZERO);
        assert_eq!(ended.map(|rung| rung.pairs).collect::<Vec<_>>(), [1]);
        assert!(outcome.rungs.iter().any(|rung| rung.pairs >= 8), "{:?}", outcome.rungs);
    }

    #[test]
    fn a_baseline_that_stops_telling_ends_the_rungs_and_keeps_their_pairs() {
        let outcome = outcome(|arm, block| (arm == 0 && block >= CHECKED + 4).then_some(None));
        for rung in &outcome.rungs {
            assert_eq!((rung.verdict, rung.pairs), (RungVerdict::Inconclusive, 4), "{}", rung.reason);
            assert!(
                rung.reason.starts_with("not comparable: a unit of `base` has no `n`"),
                "{}",
                rung.reason
            );
        }
        assert_eq!((outcome.blocks.len(), outcome.exit), (7, Exit::Inconclusive.code()));
    }

    #[test]
    fn a_crash_of_the_baseline_beside_units_without_a_figure_ends_no_trial() {
        let two_lack = |arm, block| (arm == 0 && [9, 10].contains(&block)).then_some(None);
        let mut field = Counted::told(two_lack);
        field.crash = Some(11);
        let outcome = run_of(field, &counted()).0.expect("what was found stays");
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.pairs), (RungVerdict::Keep, 12), "{}", half.reason);
    }

    #[test]
    fn a_unit_without_a_figure_beside_a_baseline_without_one_counts_all_the_same() {
        let outcome = outcome(|arm, block| (arm < 2 && block == CHECKED + 2).then_some(None));
        let half = rung(&outcome, "half");
        assert_eq!((half.verdict, half.pairs), (RungVerdict::Inconclusive, 2), "{}", half.reason);
        assert!(half.reason.starts_with("not comparable: a unit of `half` has no `n`"), "{}", half.reason);
        assert_eq!(rung(&outcome, "same").tested, Some(true));
    }

    #[test]
    fn a_zero_of_the_fresh_run_confirms_nothing() {
        let outcome = outcome(|arm, block| (arm == 1 && block >= CHECKED + 20).then_some(Some(0.0)));
        let half = rung(&outcome, "half");
        assert_eq!(half.verdict, RungVerdict::Inconclusive, "{}", half.reason);
        assert!(half.reason.starts_with("seen once and not confirmed: not comparable: "), "{}", half.reason);
    }

    #[test]
    fn a_self_check_without_a_figure_says_so_before_anything_is_compared() {
        let (error, _) = run(|_, block| (block > 1).then_some(Some(0.0)));
        let error = error.expect_err("nothing can be compared");
        assert!(error.to_string().starts_with("`n` of the baseline is 0, and gains are logs"), "{error}");
        assert_eq!((error.exit(), error.hints().len()), (Exit::Usage, 1));
        assert!(error.hints()[0].ends_with("decide by `primary = \"cpu_s\"`"), "{:?}", error.hints());
        let (error, _) = run(|_, block| (block > 1).then_some(None));
        assert!(matches!(error, Err(TrialError::NoMetric { .. })));
        let once = outcome(|_, block| (block == 1).then_some(Some(0.0)));
        assert_eq!(once.selfcheck.expect("its pair was run again").pairs, CHECKED);
    }
}
