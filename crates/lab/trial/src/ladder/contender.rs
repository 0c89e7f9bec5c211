//! A rung on its way: from a planned arm to a verdict.

use planish_stats::spending::CONFIRMATION_PAIRS_MIN;
use planish_stats::{Conclusion, Reason, Verdict};

use super::builds::claim;
use super::race::Run;
use super::rows;
use super::{LadderOptions, Refusal};
use crate::outcome::{Achieved, Builds, Confirmed, Gain, Rung, RungVerdict, TrialOutcome};
use crate::sample::ArmError;

/// A rung, the placebo included.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) arm: usize,
    pub(super) name: String,
    /// Smallest gain at which it is worth keeping, as a fraction.
    pub(super) min_gain: f64,
    /// What it is compared with.
    pub(super) against: Vec<String>,
    pub(super) achieved: Option<Achieved>,
    /// Whether it could have been kept.
    pub(super) tested: bool,
    verdict: Option<RungVerdict>,
    reason: String,
    run: Option<Run>,
    confirmed: Option<Confirmed>,
    builds: Option<Builds>,
}

impl Contender {
    /// A rung that is still to be tried.
    pub(super) fn new(arm: usize, name: String, min_gain: f64) -> Self {
        Self {
            arm,
            name,
            min_gain,
            against: Vec::new(),
            achieved: None,
            tested: false,
            verdict: None,
            reason: String::new(),
            run: None,
            confirmed: None,
            builds: None,
        }
    }

    /// Takes in what became of opening its arm. One that cannot be had is `unavailable` from there on.
    pub(super) fn take_opened(
        &mut self,
        opened: Result<Option<Achieved>, ArmError>,
        refused: &mut Vec<Refusal>,
    ) {
        match opened {
            Ok(achieved) => self.achieved = achieved,
            Err(ArmError::Unavailable { reason, cure }) => {
                if !cure.is_empty() {
                    let what = format!("rung `{}`", self.name);
                    refused.push(Refusal { what, why: reason.clone(), cure });
                }
                self.conclude(RungVerdict::Unavailable, reason);
            }
            Err(ArmError::Stopped) => {
                self.conclude(RungVerdict::Inconclusive, "stopped before it was started".to_owned());
            }
            Err(error) => self.conclude(RungVerdict::Drop, format!("it does not start: {error}")),
        }
    }

    /// Everything that was kept, put together: believed only if its fresh run against the baseline holds.
    pub(super) fn stack(arm: usize, min_gain: f64, baseline: &str) -> Self {
        let mut stack = Self::new(arm, TrialOutcome::STACK.to_owned(), min_gain);
        stack.against = vec![baseline.to_owned()];
        stack.conclude(RungVerdict::Keep, "all that was kept, together".to_owned());
        stack
    }

    /// Whether it is kept so far.
    pub(super) fn is_kept(&self) -> bool {
        self.verdict == Some(RungVerdict::Keep)
    }

    /// The estimate of its own pairs, as a log; nothing is less than any.
    pub(super) fn effect(&self) -> f64 {
        let conclusion = self.run.as_ref().and_then(|run| run.sequential.conclusion());
        conclusion.and_then(|conclusion| conclusion.effect).map_or(f64::NEG_INFINITY, |effect| effect.value)
    }

    /// The gain of its own pairs, with its interval.
    pub(super) fn gain(&self, options: &LadderOptions) -> Option<Gain> {
        let effect = self.run.as_ref()?.sequential.conclusion()?.effect?;
        Some(rows::gain(rows::better(options.primary.better), &effect))
    }

    /// Whether what its pairs say dropped it, and not a crash.
    pub(super) fn is_dropped_by_pairs(&self) -> bool {
        let conclusion = self.run.as_ref().and_then(|run| run.sequential.conclusion());
        let says_drop = conclusion.is_some_and(|conclusion| conclusion.verdict == Verdict::Drop);
        self.verdict == Some(RungVerdict::Drop) && says_drop
    }

    /// A kept rung was run again as a part of the stack, or left out of it.
    pub(super) fn share_fate(&mut self, stack: &Self, left_out: bool) {
        if left_out {
            let pairs = self.pairs();
            let reason = format!("pays alone, by {pairs} pairs, and contradicts a better rung of the stack");
            self.conclude(RungVerdict::Inconclusive, reason);
        } else if stack.is_kept() {
            self.reason += "; confirmed as a part of the stack";
        } else {
            self.unconfirmed(format!("the stack: {}", stack.reason));
        }
    }

    /// Pairs behind it, those of the longer run where it ran again.
    pub(super) fn pairs(&self) -> usize {
        let fresh = self.confirmed.as_ref().map_or(0, |confirmed| confirmed.pairs);
        self.run.as_ref().map_or(0, |run| run.pairs.len()).max(fresh)
    }

    /// The verdict, once there is one.
    pub(super) fn verdict(&self) -> Option<RungVerdict> {
        self.verdict
    }

    /// Gives the verdict.
    pub(super) fn conclude(&mut self, verdict: RungVerdict, reason: String) {
        self.verdict = Some(verdict);
        self.reason = reason;
    }

    /// Takes over the pairs behind the verdict.
    pub(super) fn take_run(&mut self, run: Run) {
        self.run = Some(run);
    }

    /// Takes in what its builds say: a keep that holds only for some of them is none of the recipe.
    pub(super) fn take_builds(&mut self, builds: Option<Builds>) {
        if let Some(found) = builds.as_ref().filter(|_| self.is_kept()) {
            let (verdict, reason) = claim(found, self.min_gain);
            self.verdict = Some(verdict);
            self.reason += &reason;
        }
        self.builds = builds;
    }

    /// Of an arm with a program of its own, and one build of it, the pairs tell about these bytes and no others.
    fn artefact(achieved: Option<&Achieved>) -> Option<String> {
        let sha256 = achieved?.facts.get("program_sha256")?.as_str()?;
        Some(format!("; holds for this artefact only, sha256 {}", sha256.get(..12)?))
    }

    /// The fresh run holds.
    pub(super) fn confirm(&mut self, confirmed: Confirmed) {
        self.confirmed = Some(confirmed);
    }

    /// The fresh run does not hold what the first one promised.
    pub(super) fn unconfirmed(&mut self, why: String) {
        self.conclude(RungVerdict::Inconclusive, format!("seen once and not confirmed: {why}"));
    }

    /// Slices of one process each have seen it, and nothing else has.
    pub(super) fn only_this_start(&mut self) {
        self.conclude(RungVerdict::Inconclusive, format!("this start only: {}", self.reason));
    }

    /// The rung as it is told. Where it was confirmed, `reason` says by how much.
    pub(super) fn into_rung(self, options: &LadderOptions) -> Rung {
        let conclusion = self.run.as_ref().and_then(|run| run.sequential.conclusion());
        let effect = conclusion.and_then(|conclusion| conclusion.effect);
        let gain = self.gain(options);
        let verdict = self.verdict.unwrap_or(RungVerdict::Inconclusive);
        let empty = Vec::new();
        let pairs = self.run.as_ref().map_or(&empty, |run| &run.pairs);
        let achieved = pairs.last().and_then(|pair| pair.arm.achieved.clone()).or(self.achieved);
        let artefact = (self.builds.is_none() && !pairs.is_empty() && self.name != TrialOutcome::PLACEBO)
            .then(|| Self::artefact(achieved.as_ref()))
            .flatten();
        Rung {
            against: self.against,
            min_gain: Some(self.min_gain),
            verdict,
            effect: gain.map(|gain| gain.effect),
            low: gain.map(|gain| gain.low),
            high: gain.map(|gain| gain.high),
            level: effect.map(|effect| effect.interval.level),
            pairs: pairs.len(),
            achieved,
            reason: self.reason + &artefact.unwrap_or_default(),
            confirmed: self.confirmed,
            builds: self.builds,
            metrics: rows::metrics(pairs),
            collectors: rows::collectors(pairs),
            guards: rows::guards(&options.guards, self.run.as_ref()),
            pair_logs: self.run.as_ref().map_or_else(Vec::new, |run| run.sequential.logs().to_vec()),
            orders: self.run.as_ref().map_or_else(Vec::new, Run::orders),
            tested: Some(self.tested),
            name: self.name,
        }
    }
}

/// The statistical end of a rung in a sentence.
pub(super) fn sentence(conclusion: &Conclusion, min_gain: f64, better: planish_stats::Better) -> String {
    let pairs = conclusion.pairs;
    match conclusion.reason {
        Reason::Pays => {
            let held = guard_names(conclusion, planish_stats::GuardState::Held);
            let guards =
                if held.is_empty() { "no guard was measured".to_owned() } else { format!("{held} held") };
            format!("pays, by {pairs} pairs; {guards}")
        }
        Reason::Worse => format!("worse than the baseline, by {pairs} pairs"),
        Reason::TooSmall => {
            // A conclusion that is too small has the bound that made it so.
            let ceiling = 100.0 * better.gain(conclusion.ceiling.unwrap_or_default());
            let wanted = 100.0 * min_gain;
            // The interval beside it has another level: that of all looks and rungs, and of both sides.
            format!(
                "gains {ceiling:+.1} % at most by a one-sided 95 % bound of {pairs} pairs, and {wanted:.1} % is wanted"
            )
        }
        Reason::GuardBreached => {
            let state = planish_stats::GuardState::Breached;
            format!("spoils {}, by {pairs} pairs", guard_names(conclusion, state))
        }
        Reason::GuardOpen => {
            let state = planish_stats::GuardState::Open;
            format!("pays, but {pairs} pairs cannot show that it spares {}", guard_names(conclusion, state))
        }
        Reason::NotEnoughPairs | Reason::EndedEarly if pairs == 0 => {
            "no pair was run: the time was up".to_owned()
        }
        Reason::NotEnoughPairs if !has_level(conclusion) => {
            let are = if pairs == 1 { "pair is" } else { "pairs are" };
            format!("{pairs} {are} too few for a verdict at this ladder's level")
        }
        Reason::EndedEarly => {
            format!("{pairs} of at least {CONFIRMATION_PAIRS_MIN} pairs were run: the time was up")
        }
        Reason::NotEnoughPairs => {
            format!("{pairs} pairs neither show nor exclude {:.1} %", 100.0 * min_gain)
        }
    }
}

/// Whether so many pairs can have the level that their look asks for; the interval of fewer is only the widest one.
fn has_level(conclusion: &Conclusion) -> bool {
    conclusion.effect.is_some_and(|effect| effect.interval.level >= 1.0 - 2.0 * conclusion.allowed)
}

/// Whether pairs that ended by a clock were enough to keep a rung.
pub(super) fn could_keep(conclusion: &Conclusion) -> bool {
    has_level(conclusion) && conclusion.reason != Reason::EndedEarly
}

fn guard_names(conclusion: &Conclusion, state: planish_stats::GuardState) -> String {
    let names = conclusion.guards.iter().filter(|found| found.state == state);
    names.map(|found| found.guard.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use planish_stats::{Design, Sequential};

    use super::*;

    fn told(logs: &[f64]) -> String {
        told_with(Vec::new(), logs)
    }

    /// The end of a run in which every guard stays as it was.
    fn told_with(guards: Vec<planish_stats::Guard>, logs: &[f64]) -> String {
        let held = vec![0.0; guards.len()];
        let mut test = Sequential::new(Design::new(32, 0.025, 0.01).expect("a design"), guards);
        for &log in logs {
            if !matches!(test.push(log, &held).expect("a pair"), planish_stats::Decision::Continue) {
                break;
            }
        }
        sentence(test.close(), 0.01, planish_stats::Better::Lower)
    }

    #[test]
    fn a_sentence_claims_what_was_measured() {
        let gains: Vec<f64> = (0..16).map(|pair| 0.1 + 0.001 * f64::from(pair)).collect();
        assert_eq!(told(&gains), "pays, by 12 pairs; no guard was measured");
        let guard = planish_stats::Guard::of_difference("rss_bytes", 0.1);
        assert_eq!(told_with(vec![guard], &gains), "pays, by 12 pairs; rss_bytes held");
        let none: Vec<f64> = (0..16).map(|pair| if pair % 2 == 0 { 0.003 } else { -0.004 }).collect();
        assert_eq!(
            told(&none),
            "gains +0.3 % at most by a one-sided 95 % bound of 8 pairs, and 1.0 % is wanted"
        );
    }

    #[test]
    fn too_few_pairs_do_not_claim_to_have_tried() {
        assert_eq!(told(&[]), "no pair was run: the time was up");
        assert_eq!(told(&[0.2]), "1 pair is too few for a verdict at this ladder's level");
        assert_eq!(told(&[0.2, 0.18, 0.19]), "3 pairs are too few for a verdict at this ladder's level");
        let enough: Vec<f64> = (0..11).map(|pair| if pair % 2 == 0 { 0.2 } else { -0.18 }).collect();
        assert_eq!(told(&enough), "11 pairs neither show nor exclude 1.0 %");
    }
}
