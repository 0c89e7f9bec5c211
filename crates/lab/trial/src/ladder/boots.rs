//! What boots say: rungs whose pairs are boots, and none of whose replicates is a unit inside one.
//!
//! Everything inside one boot shares it: the order in which memory was dealt, devices were found and interrupts were
//! numbered. However many units run there, the boot gives **one** figure, their median. So two kinds of pairs are made:
//!
//! | rung | a pair |
//! |---|---|
//! | a boot | its boot and the baseline's out of one block, by what the inner baseline gave in each |
//! | the placebo | the same, of a second boot by the default entry |
//! | a rung inside a boot | what it and the inner baseline gave in one boot |
//!
//! All share the error of the ladder, and go through the same test as pairs of starts.

use std::rc::Rc;

use planish_sorted::CollectMap as _;
use planish_stats::ladder::rung_alpha;
use planish_stats::{Design, Sequential, StatsError};

use super::LadderOptions;
use super::contender::{Contender, could_keep, sentence};
use super::figure::figure;
use super::race::{Pair, Run, STOPPED, guard_value, guards, ladder_alpha};
use super::rows::better;
use crate::boots::campaign::{Boot, Campaign, End, Inner, LOST_MAX};
use crate::outcome::{First, LadderMode, Rung, RungVerdict, TrialOutcome, UnitKind};
use crate::sample::Sample;

/// Names and smallest gains of what a trial with boots compares.
#[derive(Clone, Debug)]
pub(crate) struct BootRungs {
    /// The inner baseline in a boot by the default entry: what all is compared with.
    pub(crate) baseline: String,
    /// The boots of the file.
    pub(crate) boots: Vec<(String, f64)>,
    /// The rungs inside of each.
    pub(crate) inner: Vec<(String, f64)>,
}

/// One comparison.
struct Question {
    name: String,
    against: String,
    min_gain: f64,
    kind: Kind,
}

/// What its pairs are made of.
#[derive(Clone, Copy)]
enum Kind {
    /// Boots of this arm, each with the baseline's of its block.
    Boots(usize),
    /// In boots of this arm, and of the default entry also in those of the placebo: this inner arm and the baseline.
    Inside { boot: usize, inner: usize },
}

impl BootRungs {
    /// What is compared, in the planned order; the placebo last.
    fn questions(&self, options: &LadderOptions) -> Vec<Question> {
        let mut all = Vec::new();
        let of = |name: &str, against: &str, min_gain, kind| Question {
            name: name.to_owned(),
            against: against.to_owned(),
            min_gain,
            kind,
        };
        for (index, (name, gain)) in self.boots.iter().enumerate() {
            all.push(of(name, &self.baseline, *gain, Kind::Boots(index + 1)));
        }
        for (inner, (name, gain)) in self.inner.iter().enumerate() {
            all.push(of(name, &self.baseline, *gain, Kind::Inside { boot: 0, inner: inner + 1 }));
        }
        for (index, (boot, _)) in self.boots.iter().enumerate() {
            for (inner, (name, gain)) in self.inner.iter().enumerate() {
                let kind = Kind::Inside { boot: index + 1, inner: inner + 1 };
                all.push(of(&self.inside(boot, name), boot, *gain, kind));
            }
        }
        let placebo = Kind::Boots(self.boots.len() + 1);
        all.push(of(TrialOutcome::PLACEBO, &self.baseline, options.min_gain, placebo));
        all
    }

    /// The name of a rung inside a boot.
    pub(crate) fn inside(&self, boot: &str, rung: &str) -> String {
        inside(boot, rung)
    }
}

/// How a rung inside a boot is told.
pub(crate) fn inside(boot: &str, rung: &str) -> String {
    format!("{boot} + {rung}")
}

/// Whether every rung but the placebo has a verdict by its pairs so far.
pub(crate) fn is_decided(options: &LadderOptions, rungs: &BootRungs, campaign: &Campaign) -> bool {
    let questions = rungs.questions(options);
    let (_, real) = questions.split_last().expect("the placebo is one");
    real.iter().all(|question| {
        is_out(question, campaign)
            || run(options, question, questions.len(), campaign)
                .is_ok_and(|run| run.sequential.conclusion().is_some())
    })
}

/// Whether its boot has been lost too often to be booted any more.
fn is_out(question: &Question, campaign: &Campaign) -> bool {
    let (Kind::Boots(boot) | Kind::Inside { boot, .. }) = question.kind;
    campaign.lost(boot) >= LOST_MAX
}

/// What that comes to: an arm that is lost where the default entry is not has failed, as one that crashes twice. Where
/// the default entry is lost, nothing is left to compare with.
fn lost(question: &Question, campaign: &Campaign) -> Option<(RungVerdict, String)> {
    let (Kind::Boots(own) | Kind::Inside { boot: own, .. }) = question.kind;
    let arm = if campaign.lost(0) >= LOST_MAX { 0 } else { own };
    if campaign.lost(arm) < LOST_MAX {
        return None;
    }
    let why = |boot: &Boot| boot.inner.as_ref().err().filter(|_| boot.arm == arm).cloned();
    let why = campaign.boots().iter().rev().find_map(why).unwrap_or_default();
    Some(match arm {
        0 => (RungVerdict::Inconclusive, format!("{LOST_MAX} boots of the baseline were lost: {why}")),
        _ if arm == campaign.placebo() => {
            (RungVerdict::Inconclusive, format!("{LOST_MAX} of its boots were lost: {why}"))
        }
        _ => (RungVerdict::Drop, format!("{LOST_MAX} of its boots were lost: {why}")),
    })
}

/// The outcome of a campaign that has ended; of one that has not, as far as it has come.
pub(crate) fn outcome(options: &LadderOptions, rungs: &BootRungs, campaign: &Campaign) -> TrialOutcome {
    let questions = rungs.questions(options);
    let count = questions.len();
    let mut contenders: Vec<Contender> =
        questions.iter().enumerate().map(|(at, one)| judged(options, at, one, count, campaign)).collect();
    let placebo = contenders.last().is_some_and(Contender::is_kept);
    if placebo {
        let last = contenders.len() - 1;
        for rung in contenders[..last].iter_mut().filter(|rung| rung.is_kept()) {
            let reason = "the placebo was kept too: this run finds gains where there are none";
            rung.conclude(RungVerdict::Inconclusive, reason.to_owned());
        }
    }
    let rungs_told: Vec<Rung> =
        contenders.into_iter().map(|contender| contender.into_rung(options)).collect();
    let (_, ended) = campaign.end().map_or((None, campaign.started_at()), |(end, at)| (Some(end), *at));
    let mut outcome = TrialOutcome {
        trial: options.trial.clone(),
        summary: options.summary.clone(),
        command: String::new(),
        setup: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        unit: UnitKind::Boot,
        primary: options.primary.clone(),
        mode: LadderMode::Block,
        duet: false,
        baseline: rungs.baseline.clone(),
        baseline_achieved: None,
        min_gain: options.min_gain,
        alpha: ladder_alpha(options.strictness),
        seed: options.seed,
        started_at: campaign.started_at(),
        seconds: ended.saturating_sub(campaign.started_at()) as f64,
        overhead: 0.0,
        quick: false,
        host: options.host.clone(),
        selfcheck: None,
        rungs: rungs_told,
        blocks: blocks(rungs, campaign),
        refused: options.refused.clone(),
        discarded: Vec::new(),
        notes: notes(placebo, campaign),
        budget_needed_seconds: None,
        boots: None,
        exit: 0,
        proof_id: None,
    };
    outcome.exit = outcome.exit_of_rungs().code();
    outcome
}

/// What is to be said of all boots together.
fn notes(placebo: bool, campaign: &Campaign) -> Vec<String> {
    let mut notes = vec![
        "a boot is one replicate, however many units ran in it; there was no self-check of equal boots but the \
         placebo, and no fresh run of what is kept: its gain is that of the run that chose it"
            .to_owned(),
    ];
    match campaign.end() {
        Some((End::Stopped(why) | End::Spent(why), _)) => {
            notes.push(format!("it ended before its last block: {why}"))
        }
        Some((End::NothingLeft, _)) => {
            notes.push("it ended before its last block: nothing was left to compare".to_owned());
        }
        Some((End::Whole, _)) | None => {}
    }
    if placebo {
        let note =
            "the placebo was kept: this run found a gain where there is none, so no rung of it is believed";
        notes.push(note.to_owned());
    }
    notes
}

/// The boots of each block in the order in which they ran, by name.
fn blocks(rungs: &BootRungs, campaign: &Campaign) -> Vec<Vec<String>> {
    let mut blocks: Vec<Vec<String>> = Vec::new();
    for boot in campaign.boots() {
        blocks.resize(blocks.len().max(boot.block + 1), Vec::new());
        blocks[boot.block].push(rungs.name_of(boot.arm).to_owned());
    }
    blocks
}

impl BootRungs {
    /// The name of an arm of a campaign.
    pub(crate) fn name_of(&self, arm: usize) -> &str {
        match arm.checked_sub(1) {
            None => &self.baseline,
            Some(boot) => self.boots.get(boot).map_or(TrialOutcome::PLACEBO, |(name, _)| name),
        }
    }
}

/// The verdict of one comparison.
fn judged(
    options: &LadderOptions,
    at: usize,
    question: &Question,
    count: usize,
    campaign: &Campaign,
) -> Contender {
    let mut contender = Contender::new(at + 1, question.name.clone(), question.min_gain);
    contender.against = vec![question.against.clone()];
    let mut run = match run(options, question, count, campaign) {
        Ok(run) => run,
        Err(error) => {
            contender.conclude(RungVerdict::Inconclusive, error.to_string());
            return contender;
        }
    };
    let ended_by_plan = run.sequential.conclusion().is_some();
    let conclusion = run.sequential.close().clone();
    let direction = better(options.primary.better);
    let plain = sentence(&conclusion, question.min_gain, direction);
    let spoiled = run.spoiled(|| plain.clone());
    // Somebody who watches may stop at a moment that suits him; the test does not allow for that.
    let is_stopped = matches!(campaign.end(), None | Some((End::Stopped(_), _))) && !ended_by_plan;
    contender.tested = spoiled.is_none() && (ended_by_plan || (!is_stopped && could_keep(&conclusion)));
    let (verdict, reason) = if let Some(lost) = lost(question, campaign).filter(|_| !ended_by_plan) {
        lost
    } else if campaign.end().is_none() && !ended_by_plan {
        (RungVerdict::Inconclusive, "under way".to_owned())
    } else if is_stopped {
        (RungVerdict::Inconclusive, STOPPED.to_owned())
    } else {
        run.verdict(conclusion.verdict, plain, spoiled)
    };
    contender.conclude(verdict, reason);
    contender.take_run(run);
    contender
}

/// The pairs of one comparison, taken in as they ran.
fn run(
    options: &LadderOptions,
    question: &Question,
    count: usize,
    campaign: &Campaign,
) -> Result<Run, StatsError> {
    let direction = better(options.primary.better);
    let alpha = rung_alpha(count, options.strictness);
    let both = matches!(question.kind, Kind::Inside { boot: 0, .. });
    let pairs_max = options.pairs_max * if both { 2 } else { 1 };
    let design = Design::new(pairs_max, alpha, direction.log_gain(question.min_gain)?)?;
    let (pairs, failures) = pairs(question.kind, campaign);
    let reported = pairs.first().map(|pair| {
        let of = |(name, metric): (&String, &crate::sample::Metric)| (name.clone(), metric.better);
        pair.baseline.metrics.iter().map(of).collect_map()
    });
    let (guards, guarded) = guards(options, &reported.unwrap_or_default())?;
    let mut run = Run::new(Sequential::new(design, guards), guarded);
    run.failures = failures.len();
    run.last_failure = failures.last().cloned().unwrap_or_default();
    let primary = &options.primary.name;
    for pair in pairs {
        if run.sequential.conclusion().is_some() || run.incomparable.is_some() {
            break;
        }
        let values = (figure(&pair.baseline, primary), figure(&pair.arm, primary));
        match values {
            (Ok(baseline), Ok(arm)) => {
                let guards: Vec<f64> = run.guarded.iter().map(|metric| guard_value(metric, &pair)).collect();
                run.sequential.push(direction.pair_log(baseline, arm)?, &guards)?;
                run.pairs.push(pair);
            }
            (Err(lack), _) => run.incomparable = Some(lack.told(primary, &question.against, &pair.baseline)),
            (_, Err(lack)) => run.incomparable = Some(lack.told(primary, &question.name, &pair.arm)),
        }
    }
    Ok(run)
}

/// The pairs of a comparison, and why some of its boots or units gave none.
fn pairs(kind: Kind, campaign: &Campaign) -> (Vec<Pair>, Vec<String>) {
    let (mut pairs, mut failures) = (Vec::new(), Vec::new());
    let boots = campaign.boots();
    match kind {
        Kind::Boots(arm) => {
            for (at, boot) in boots.iter().enumerate().filter(|(_, boot)| boot.arm == arm) {
                let is_baseline = |other: &&Boot| other.arm == 0 && other.block == boot.block;
                let before = boots[..at].iter().any(|other| is_baseline(&other));
                let of_arm = inner(boot, 0);
                let of_baseline = boots.iter().find(is_baseline).map(|other| inner(other, 0));
                match (of_baseline, of_arm) {
                    (_, Err(why)) => failures.push(why),
                    (Some(Ok(baseline)), Ok(arm)) => {
                        let first = if before { First::Baseline } else { First::Arm };
                        pairs.push(Pair { baseline: Rc::new(baseline), arm, first });
                    }
                    // A block that lacks the baseline has no pairs, and that is no fault of the arm.
                    (Some(Err(_)) | None, Ok(_)) => {}
                }
            }
        }
        Kind::Inside { boot, inner: of } => {
            let is_of = |other: &&Boot| other.arm == boot || (boot == 0 && other.arm == campaign.placebo());
            for boot in boots.iter().filter(is_of) {
                match (inner(boot, 0), inner(boot, of)) {
                    // Orders inside a boot are drawn unit by unit; of the two figures neither is first.
                    (Ok(baseline), Ok(arm)) => {
                        pairs.push(Pair { baseline: Rc::new(baseline), arm, first: First::Baseline });
                    }
                    (Ok(_), Err(why)) => failures.push(why),
                    (Err(_), _) => {}
                }
            }
        }
    }
    (pairs, failures)
}

/// What an inner arm gave in a boot.
fn inner(boot: &Boot, arm: usize) -> Result<Sample, String> {
    let all = boot.inner.as_ref().map_err(Clone::clone)?;
    let told: &Inner = all.get(arm).ok_or_else(|| "it was not measured".to_owned())?;
    let figures = told.as_ref().map_err(Clone::clone)?;
    let mut sample = Sample::default();
    for (name, figure) in figures {
        sample.put(name, figure.unit.clone(), figure.better, figure.value);
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boots::campaign::Figure;
    use crate::ladder::tests::options;
    use crate::outcome::{Better, MetricSpec};

    const BLOCKS: usize = 8;

    fn ladder() -> LadderOptions {
        let primary = MetricSpec { name: "t".to_owned(), unit: "s".to_owned(), better: Better::Lower };
        LadderOptions { primary, pairs_max: BLOCKS, min_gain: 0.02, guards: Vec::new(), ..options(60.0, 8) }
    }

    fn rungs() -> BootRungs {
        let named = |name: &str| vec![(name.to_owned(), 0.02)];
        BootRungs { baseline: "base".to_owned(), boots: named("arm"), inner: named("in") }
    }

    fn told(value: f64) -> Inner {
        Ok([("t".to_owned(), Figure { value, unit: "s".to_owned(), better: Better::Lower })].into())
    }

    /// Whole blocks of the default entry, an arm and the placebo. What each boot gives, by block and arm: the inner
    /// baseline and the inner rung.
    fn campaign(gives: impl Fn(usize, usize) -> Result<[f64; 2], String>, end: Option<End>) -> Campaign {
        let boot = |block: usize, arm: usize| {
            let inner = gives(block, arm).map(|[base, inner]| vec![told(base), told(inner)]);
            Boot { block, arm, inner }
        };
        let boots = (0..BLOCKS).flat_map(|block| [1, 0, 2].map(|arm| boot(block, arm)));
        Campaign::played(1, BLOCKS, boots.collect(), end)
    }

    fn verdicts(campaign: &Campaign) -> Vec<(String, RungVerdict, usize)> {
        let told = outcome(&ladder(), &rungs(), campaign);
        told.rungs.into_iter().map(|rung| (rung.name, rung.verdict, rung.pairs)).collect()
    }

    /// A twentieth that scatters by a thousandth, so that no two pairs are alike.
    fn paying(block: usize, arm: usize) -> Result<[f64; 2], String> {
        let base = 100.0 + 0.1 * block as f64 + if arm == 2 { 0.05 - 0.02 * block as f64 } else { 0.0 };
        let base = if arm == 1 { 0.9 * base } else { base };
        Ok([base, base * 0.95])
    }

    #[test]
    fn a_boot_is_one_pair_and_what_runs_inside_the_default_boots_has_two_a_block() {
        let whole = campaign(paying, Some(End::Whole));
        let found = verdicts(&whole);
        let keep = |name: &str, pairs| (name.to_owned(), RungVerdict::Keep, pairs);
        assert_eq!(found[..3], [keep("arm", 8), keep("in", 8), keep("arm + in", 8)], "at the first look");
        assert_eq!((found[3].0.as_str(), found[3].1), (TrialOutcome::PLACEBO, RungVerdict::Drop));
        assert!(is_decided(&ladder(), &rungs(), &whole));
        let told = outcome(&ladder(), &rungs(), &whole);
        assert_eq!((told.unit, told.blocks.len(), told.blocks[0].len()), (UnitKind::Boot, BLOCKS, 3));
        assert_eq!(told.rungs[0].orders, [First::Arm; BLOCKS]);
        assert!(told.rungs[0].effect.is_some_and(|gain| (gain - 0.1).abs() < 0.001));
    }

    #[test]
    fn a_boot_that_is_lost_keeps_nothing_and_two_of_them_drop_the_arm() {
        let lose = |count: usize, of: usize| {
            move |block: usize, arm: usize| match arm == of && block < count {
                true => Err("it did not come up".to_owned()),
                false => paying(block, arm),
            }
        };
        let once = outcome(&ladder(), &rungs(), &campaign(lose(1, 1), Some(End::Whole)));
        assert_eq!(once.rungs[0].verdict, RungVerdict::Inconclusive, "{}", once.rungs[0].reason);
        let twice = outcome(&ladder(), &rungs(), &campaign(lose(2, 1), Some(End::NothingLeft)));
        assert_eq!(twice.rungs[0].verdict, RungVerdict::Drop, "{}", twice.rungs[0].reason);
        assert!(twice.rungs[0].reason.ends_with("it did not come up"), "{}", twice.rungs[0].reason);
        let baseline = outcome(&ladder(), &rungs(), &campaign(lose(2, 0), Some(End::NothingLeft)));
        assert_eq!(baseline.rungs[0].verdict, RungVerdict::Inconclusive, "it is no fault of the arm");
    }

    #[test]
    fn a_placebo_that_pays_takes_every_keep_away() {
        let lucky = |block: usize, arm: usize| paying(block, if arm == 2 { 1 } else { arm });
        let found = verdicts(&campaign(lucky, Some(End::Whole)));
        assert_eq!(found[3].1, RungVerdict::Keep);
        assert!(found[..3].iter().all(|(_, verdict, _)| *verdict == RungVerdict::Inconclusive), "{found:?}");
    }

    #[test]
    fn under_way_and_stopped_no_verdict_falls_that_its_look_did_not_give() {
        let short = |end| {
            let all = campaign(paying, None);
            Campaign::played(1, BLOCKS, all.boots()[..9].to_vec(), end)
        };
        for end in [None, Some(End::Stopped("typed".to_owned()))] {
            let found = verdicts(&short(end));
            assert!(found.iter().all(|(_, verdict, _)| *verdict == RungVerdict::Inconclusive), "{found:?}");
        }
        assert!(!is_decided(&ladder(), &rungs(), &short(None)));
    }
}
