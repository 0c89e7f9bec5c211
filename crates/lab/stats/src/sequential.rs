//! One rung, pair by pair, until there is a verdict.
//!
//! ```text
//!            push(pair log) ...... between looks: Continue
//!                 |
//!               look -- a guard is surely breached -------------> Drop
//!                 |---- test, estimate and all guards agree ----> Keep
//!                 |---- 95 % bound below min_gain --------------> Drop
//!                 |---- last look ------------------------------> Inconclusive (the caller undoes)
//!                 '---- otherwise ------------------------------> Continue
//! ```
//!
//! Keep needs everything at once: the exact tail within what this look may spend, the interval at the
//! look's own level clear of 0, an estimate of at least the minimum gain, and every guard shown to be
//! within its margin. That is an intersection, so the guards need no correction for their number; for the number of
//! looks each spends [`GUARD_ERROR`](crate::spending::GUARD_ERROR), as keeping spends alpha. Drop on
//! futility spends nothing: stopping early for lack of gain cannot create a false keep.
//!
//! `unavailable`, the fourth verdict of a trial, is not a statistical one and is not made here.

use serde::Serialize;

use crate::error::{StatsError, finite};
use crate::interval::Estimate;
use crate::signed_rank::{Null, SignedRank};
use crate::spending::Design;
use crate::summary::Better;
use crate::walsh::{Walsh, hodges_lehmann};

/// One-sided confidence that there is too little gain.
const BOUND_LEVEL: f64 = 0.95;

/// One-sided confidence that a guard is breached. Higher, because it is asked of every guard at every look:
/// noisy guards would otherwise stop a good arm by chance, and one that is merely not shown to hold keeps
/// nothing anyway.
pub(crate) const BREACH_LEVEL: f64 = 0.99;

/// Does the arm pay?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It pays; a confirmation comes next.
    Keep,
    /// It does not pay enough, or costs what it must not.
    Drop,
    /// The pairs could not tell; undone like a drop.
    Inconclusive,
}

/// Why a trial stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Keep: gain and guards are shown.
    Pays,
    /// Drop: the interval lies below 0.
    Worse,
    /// Drop: the upper bound of the gain at this look is below the minimum.
    TooSmall,
    /// Drop: a guard metric surely lost more than its margin.
    GuardBreached,
    /// Inconclusive: the gain is shown, a guard is not.
    GuardOpen,
    /// Inconclusive: the gain is neither shown nor excluded.
    NotEnoughPairs,
    /// Inconclusive: it ended before the fewest pairs of its design, whatever these show.
    EndedEarly,
}

/// A metric that an arm may not spoil.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guard {
    /// Name of the metric.
    pub name: String,
    /// Lowest loss that is tolerated, in the unit of the pair values: zero or negative.
    pub floor: f64,
}

impl Guard {
    /// A guard on a positive metric, fed with pair logs: p99 may grow by 3 % is `Guard::new("p99",
    /// Better::Lower, 0.03)`.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] for a margin that has no logarithm.
    pub fn new(name: impl Into<String>, better: Better, margin: f64) -> Result<Guard, StatsError> {
        Ok(Guard { name: name.into(), floor: better.log_gain(-margin)? })
    }

    /// A guard on a metric that may be zero, such as an error rate, fed with plain differences of which
    /// positive is better (baseline - arm). It may lose `margin` in its own unit. With a margin of 0 it
    /// holds where both arms are nearly always equal, as when neither has errors; where the differences
    /// scatter around 0 it stays open.
    pub fn of_difference(name: impl Into<String>, margin: f64) -> Guard {
        Guard { name: name.into(), floor: -margin }
    }
}

/// What the pairs say of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuardState {
    /// The loss is within the margin: of metrics that are worse by just more than it, at most 5 in 100 are called so at
    /// any look of a trial. Each look by itself has a higher confidence, [`Bound::level`].
    Held,
    /// The loss exceeds the margin, at 99 % one-sided confidence of this look alone.
    Breached,
    /// Neither is shown.
    Open,
}

/// A guard at the end of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardFinding {
    /// The guard.
    pub guard: Guard,
    /// What the pairs say of it.
    pub state: GuardState,
    /// What the metric loses at most, which is what holds it; none where the look could not afford any.
    pub bound: Option<Bound>,
}

/// A one-sided lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The bound, in the unit of the pair values.
    pub value: f64,
    /// The one-sided confidence that it has at this look.
    pub level: f64,
}

/// A guard under test.
#[derive(Clone, Debug)]
struct Watched {
    guard: Guard,
    values: Vec<f64>,
    /// Error that its looks have spent.
    spent: f64,
}

/// The end of a trial, with everything that a report needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Pairs used.
    pub pairs: usize,
    /// Looks taken, this one included.
    pub looks: usize,
    /// Hodges-Lehmann estimate of the pair log, with the interval at the level of this look, or the widest
    /// one where so few pairs cannot give that level; none without pairs.
    pub effect: Option<Estimate>,
    /// Exact one-sided tail for "better".
    pub tail: f64,
    /// What that tail was compared with.
    pub allowed: f64,
    /// One-sided 95 % upper bound of the pair log at this look alone, which is what futility goes by; none with too
    /// few pairs for one.
    pub ceiling: Option<f64>,
    /// The guards, in the order given.
    pub guards: Vec<GuardFinding>,
}

impl Conclusion {
    /// Whether the interval, at the level of this look, excludes 0: the arms differ, one way or the other.
    /// An interval that is only the widest one claims nothing.
    pub fn differs(&self) -> bool {
        self.effect.is_some_and(|effect| excludes_zero(&effect, self.allowed))
    }
}

fn excludes_zero(effect: &Estimate, allowed: f64) -> bool {
    !effect.interval.contains(0.0) && effect.interval.level >= 1.0 - 2.0 * allowed
}

/// What to do after a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run another pair.
    Continue,
    /// Stop; [`Sequential::conclusion`] has the rest.
    Stop(Verdict),
}

/// A rung under test.
#[derive(Clone, Debug)]
pub struct Sequential {
    design: Design,
    guards: Vec<Watched>,
    logs: Vec<f64>,
    looks: usize,
    spent: f64,
    conclusion: Option<Conclusion>,
}

impl Sequential {
    /// A rung without pairs yet.
    pub fn new(design: Design, guards: Vec<Guard>) -> Sequential {
        let guards =
            guards.into_iter().map(|guard| Watched { guard, values: Vec::new(), spent: 0.0 }).collect();
        Sequential { design, guards, logs: Vec::new(), looks: 0, spent: 0.0, conclusion: None }
    }

    /// Takes the next pair: its pair log, and one value per guard in their order. Pairs go in as they were
    /// run, none left out by outcome.
    ///
    /// # Errors
    /// [`StatsError::Stopped`] after a stop, [`StatsError::Length`] for missing guard values,
    /// [`StatsError::NotFinite`]; nothing is taken then.
    pub fn push(&mut self, log: f64, guard_values: &[f64]) -> Result<Decision, StatsError> {
        if self.conclusion.is_some() {
            return Err(StatsError::Stopped { pairs: self.logs.len() });
        }
        if guard_values.len() != self.guards.len() {
            return Err(StatsError::Length {
                what: "guard values",
                given: guard_values.len(),
                wanted: self.guards.len(),
            });
        }
        finite("pair log", log)?;
        for &value in guard_values {
            finite("guard value", value)?;
        }
        self.logs.push(log);
        for (watched, &value) in self.guards.iter_mut().zip(guard_values) {
            watched.values.push(value);
        }
        if self.design.looks().binary_search(&self.logs.len()).is_err() {
            return Ok(Decision::Continue);
        }
        let last = self.logs.len() == self.design.pairs_max();
        self.conclusion = self.look(last);
        Ok(self
            .conclusion
            .as_ref()
            .map_or(Decision::Continue, |conclusion| Decision::Stop(conclusion.verdict)))
    }

    /// Ends the trial now because its time is out, with a last look that spends no more than its pairs have
    /// earned. Valid as long as the moment was not chosen for what the pairs said; a clock or a budget is
    /// not. A confirmation keeps nothing below its fewest pairs, however unanimous they are. A trial that has
    /// stopped keeps its conclusion.
    pub fn close(&mut self) -> &Conclusion {
        if self.conclusion.is_none() {
            self.conclusion = self.look(true);
        }
        self.conclusion.as_ref().expect("a last look always concludes")
    }

    /// The end, once there is one.
    pub fn conclusion(&self) -> Option<&Conclusion> {
        self.conclusion.as_ref()
    }

    /// What was fixed at the start.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The pair logs so far, in the order of their running.
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// The estimate so far, for a progress line. Nothing may be decided by it.
    pub fn running_estimate(&self) -> Option<f64> {
        hodges_lehmann(&self.logs)
    }

    fn look(&mut self, last: bool) -> Option<Conclusion> {
        self.looks += 1;
        let allowed = (self.design.budget(self.logs.len()) - self.spent).max(0.0);
        let test = SignedRank::new(&self.logs);
        self.spent += test.attainable(allowed);

        let guard_budget = self.design.guard_budget(self.logs.len());
        let guards: Vec<GuardFinding> =
            self.guards.iter_mut().map(|watched| watched.look(guard_budget)).collect();
        let null = test.untied().cloned().unwrap_or_else(|| Null::untied(self.logs.len()));
        let walsh = Walsh::with_null(&self.logs, null);
        let effect = walsh.as_ref().map(|walsh| walsh.estimate(1.0 - 2.0 * allowed));
        let differs = effect.is_some_and(|it| excludes_zero(&it, allowed));
        let shown = test.upper_tail() <= allowed
            && effect.is_some_and(|it| it.interval.low > 0.0 && it.value >= self.design.min_gain());
        let ceiling = walsh.as_ref().and_then(|walsh| walsh.upper_bound(BOUND_LEVEL));
        let futile = ceiling.is_some_and(|bound| bound < self.design.min_gain());
        let ended_early = self.logs.len() < self.design.pairs_min();
        let worse = differs && effect.is_some_and(|it| it.value < 0.0);

        let (verdict, reason) = if guards.iter().any(|it| it.state == GuardState::Breached) {
            (Verdict::Drop, Reason::GuardBreached)
        } else if ended_early {
            (Verdict::Inconclusive, Reason::EndedEarly)
        } else if shown && guards.iter().all(|it| it.state == GuardState::Held) {
            (Verdict::Keep, Reason::Pays)
        } else if futile {
            (Verdict::Drop, if worse { Reason::Worse } else { Reason::TooSmall })
        } else if last {
            (Verdict::Inconclusive, if shown { Reason::GuardOpen } else { Reason::NotEnoughPairs })
        } else {
            return None;
        };
        let (pairs, looks, tail) = (self.logs.len(), self.looks, test.upper_tail());
        Some(Conclusion { verdict, reason, pairs, looks, effect, tail, allowed, ceiling, guards })
    }
}

impl Watched {
    /// What its pairs say at this look, by which `budget` may be spent.
    ///
    /// It is spent at every look, whatever the gain: the looks at which the gain is shown depend on the same pairs.
    fn look(&mut self, budget: f64) -> GuardFinding {
        let walsh = Walsh::new(&self.values);
        let allowed = (budget - self.spent).max(0.0);
        let lower = walsh.as_ref().and_then(|walsh| walsh.lower_bound_within(allowed));
        self.spent += lower.map_or(0.0, |(_, tail)| tail);
        let upper = walsh.as_ref().and_then(|walsh| walsh.upper_bound(BREACH_LEVEL));
        let state = if lower.is_some_and(|(bound, _)| bound >= self.guard.floor) {
            GuardState::Held
        } else if upper.is_some_and(|bound| bound < self.guard.floor) {
            GuardState::Breached
        } else {
            GuardState::Open
        };
        let bound = lower.map(|(value, tail)| Bound { value, level: 1.0 - tail });
        GuardFinding { guard: self.guard.clone(), state, bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::spending::{ALPHA, CONFIRMATION_PAIRS_MIN};
    use proptest::prelude::*;

    fn design(pairs_max: usize) -> Design {
        Design::new(pairs_max, 0.05, 0.01).unwrap()
    }

    /// Pushes until a stop; panics when the last look does not stop.
    fn run(mut trial: Sequential, mut pair: impl FnMut(usize) -> (f64, Vec<f64>)) -> Conclusion {
        for index in 0..trial.design().pairs_max() {
            let (log, guards) = pair(index);
            if let Decision::Stop(verdict) = trial.push(log, &guards).unwrap() {
                let conclusion = trial.conclusion().unwrap().clone();
                assert_eq!(conclusion.verdict, verdict);
                return conclusion;
            }
        }
        panic!("the last look did not conclude")
    }

    /// Small alternating deviations, distinct in size.
    fn wiggle(index: usize) -> f64 {
        (if index.is_multiple_of(2) { 1e-4 } else { -1e-4 }) * (1.0 + index as f64 / 64.0)
    }

    #[test]
    fn a_clear_gain_is_kept_at_the_first_look_that_can_afford_it() {
        let end = run(Sequential::new(design(32), vec![]), |i| (0.05 + wiggle(i), vec![]));
        // Eight unanimous pairs have a tail of 1/256, more than the 0.003125 that the first look may spend.
        assert_eq!((end.verdict, end.reason, end.pairs, end.looks), (Verdict::Keep, Reason::Pays, 12, 2));
        assert_eq!(end.tail, 0.5f64.powi(12));
        let effect = end.effect.unwrap();
        assert!((effect.value - 0.05).abs() < 1e-3 && effect.interval.low > 0.0);
    }

    #[test]
    fn what_a_look_cannot_spend_the_next_one_may() {
        let mut trial = Sequential::new(design(32), vec![]);
        // Too scattered for a stop at either of the first two looks.
        let logs: Vec<f64> = (0..12).map(|i| 0.012 + 300.0 * wiggle(i)).collect();
        logs.iter().for_each(|&log| assert_eq!(trial.push(log, &[]), Ok(Decision::Continue)));
        let spent = SignedRank::new(&logs).attainable(trial.design().budget(12));
        assert_eq!(trial.spent, spent, "the first look could spend nothing");
        assert!(
            spent > trial.design().budget(12) - trial.design().budget(8),
            "the second spent more than its own share"
        );
    }

    #[test]
    fn the_ways_to_drop() {
        let small = run(Sequential::new(design(32), vec![]), |i| (0.004 + wiggle(i), vec![]));
        assert_eq!((small.verdict, small.reason, small.pairs), (Verdict::Drop, Reason::TooSmall, 8));
        let worse = run(Sequential::new(design(16), vec![]), |i| (-0.05 + wiggle(i), vec![]));
        assert_eq!((worse.verdict, worse.reason), (Verdict::Drop, Reason::Worse));
        let p99 = || vec![Guard::new("p99", Better::Lower, 0.03).unwrap()];
        let breached =
            run(Sequential::new(design(32), p99()), |i| (0.05 + wiggle(i), vec![-0.08 + wiggle(i)]));
        assert_eq!(
            (breached.verdict, breached.reason, breached.pairs),
            (Verdict::Drop, Reason::GuardBreached, 8)
        );
        assert_eq!(breached.guards[0].state, GuardState::Breached);
    }

    #[test]
    fn a_guard_that_cannot_be_shown_keeps_nothing() {
        let p99 = vec![Guard::new("p99", Better::Lower, 0.03).unwrap()];
        let end =
            run(Sequential::new(design(12), p99), |i| (0.05 + wiggle(i), vec![-0.03 + 400.0 * wiggle(i)]));
        assert_eq!((end.verdict, end.reason), (Verdict::Inconclusive, Reason::GuardOpen));
    }

    #[test]
    fn no_errors_in_either_arm_hold_a_guard_without_margin() {
        let errors = vec![Guard::of_difference("errors", 0.0)];
        let end = run(Sequential::new(design(12), errors.clone()), |i| (0.05 + wiggle(i), vec![0.0]));
        assert_eq!((end.verdict, end.guards[0].state), (Verdict::Keep, GuardState::Held));
        let end = run(Sequential::new(design(12), errors), |i| (0.05 + wiggle(i), vec![-1.0]));
        assert_eq!(end.reason, Reason::GuardBreached);
    }

    #[test]
    fn a_shown_but_small_gain_is_not_kept() {
        // Clear of 0 and around the minimum: neither kept nor excluded, whatever the number of pairs.
        let end = run(Sequential::new(design(32), vec![]), |i| (0.0099 + 30.0 * wiggle(i), vec![]));
        assert_eq!((end.verdict, end.reason, end.pairs), (Verdict::Inconclusive, Reason::NotEnoughPairs, 32));
        assert!(end.effect.unwrap().interval.low > 0.0);
    }

    #[test]
    fn when_time_is_out_the_pairs_still_count() {
        let mut trial = Sequential::new(design(32), vec![]);
        for index in 0..14 {
            assert_eq!(trial.push(0.012 + 200.0 * wiggle(index), &[]), Ok(Decision::Continue));
        }
        let end = trial.close().clone();
        assert_eq!(
            (end.pairs, end.looks, end.allowed),
            (14, 3, trial.design().budget(14) - spent_before(&trial))
        );
        assert_eq!(trial.push(0.1, &[]), Err(StatsError::Stopped { pairs: 14 }));
        assert_eq!(trial.close(), &end);

        let mut empty = Sequential::new(design(32), vec![]);
        assert_eq!(empty.close().reason, Reason::NotEnoughPairs);
        assert_eq!(empty.running_estimate(), None);
    }

    #[test]
    fn a_confirmation_that_ends_before_twelve_pairs_keeps_nothing() {
        for pairs_max in [12, 16, 32, 64] {
            let design = Design::confirmation(pairs_max, ALPHA, 0.01).unwrap();
            for pairs in 0..=pairs_max {
                let mut trial = Sequential::new(design.clone(), vec![]);
                for index in 0..pairs {
                    if trial.push(0.05 + wiggle(index), &[]).unwrap() != Decision::Continue {
                        break;
                    }
                }
                let end = trial.close();
                let kept = end.verdict == Verdict::Keep;
                assert_eq!(kept, pairs >= CONFIRMATION_PAIRS_MIN, "{pairs} of {pairs_max}: {end:?}");
                assert_eq!(kept, end.reason != Reason::EndedEarly);
            }
        }
    }

    fn spent_before(trial: &Sequential) -> f64 {
        SignedRank::new(&trial.logs()[..12]).attainable(trial.design().budget(12))
    }

    #[test]
    fn bad_numbers_are_refused_and_not_taken() {
        let mut trial = Sequential::new(design(32), vec![Guard::of_difference("errors", 0.0)]);
        assert!(matches!(trial.push(f64::NAN, &[0.0]), Err(StatsError::NotFinite { .. })));
        assert!(matches!(trial.push(0.0, &[f64::INFINITY]), Err(StatsError::NotFinite { .. })));
        assert!(matches!(trial.push(0.0, &[]), Err(StatsError::Length { given: 0, wanted: 1, .. })));
        assert!(trial.logs().is_empty());
    }

    #[test]
    fn ties_never_cost_validity() {
        // A coarse metric: half of the pairs tie at 0, the rest at one step. The keep rate stays within the
        // keep side of alpha.
        let mut rng = Rng::new(3);
        let free = Design::new(32, 0.20, -1.0).unwrap();
        let reps = 1500;
        let kept = (0..reps)
            .filter(|_| {
                let end = run(Sequential::new(free.clone(), vec![]), |_| {
                    (if rng.coin() { 0.0 } else { 1.0 } * if rng.coin() { 0.02 } else { -0.02 }, vec![])
                });
                end.verdict == Verdict::Keep
            })
            .count();
        assert!(kept > 0 && kept as f64 <= 0.10 * f64::from(reps), "{kept}");
    }

    proptest! {
        #[test]
        fn spending_stays_within_the_plan(
            logs in prop::collection::vec(-0.2..0.2f64, 32), alpha in 0.02..0.3f64,
        ) {
            // With a minimum gain that nothing can miss there is no futility, so most looks are taken.
            let mut trial = Sequential::new(Design::new(32, alpha, -9.0).unwrap(), vec![]);
            for log in logs {
                if trial.push(log, &[]).unwrap() != Decision::Continue {
                    break;
                }
                prop_assert!(trial.spent <= trial.design.budget(trial.logs.len()) + 1e-15);
            }
        }

        #[test]
        fn a_keep_and_its_mirror_never_both_hold(logs in prop::collection::vec(-0.1..0.1f64, 32)) {
            let keeps = |sign: f64| {
                let end = run(Sequential::new(design(32), vec![]), |i| (sign * logs[i], vec![]));
                end.verdict == Verdict::Keep
            };
            prop_assert!(!(keeps(1.0) && keeps(-1.0)));
        }
    }
}
