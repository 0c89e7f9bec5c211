//! What is told of a trial with boots: before it begins, on its way, and at its end.

use std::time::Duration;

use planish_sorted::CollectMap as _;

use super::campaign::{Boot, Campaign};
use super::state::Saved;
use crate::file::{BootsSpec, TrialFile, blocks_min};
use crate::ladder::boots::{BootRungs, outcome as judged};
use crate::ladder::{Confirm, LadderOptions, PairsCure, WarmUpPlan};
use crate::outcome::{BootRow, Boots, BootsState, Setup, TrialOutcome};

/// What is compared.
pub(super) fn rungs(trial: &TrialFile) -> BootRungs {
    let boots = trial.boot.iter().map(|boot| boot.name.get_ref().clone()).zip(trial.boot_gains());
    let inner = trial.rung.iter().map(|rung| rung.name().to_owned()).zip(trial.rung_gains());
    let baseline = trial.baseline.name().to_owned();
    BootRungs { baseline, boots: boots.collect(), inner: inner.collect() }
}

/// What the verdicts go by.
pub(super) fn options(trial: &TrialFile, saved: &Saved) -> LadderOptions {
    let gains = trial.boot_gains().into_iter().chain(trial.rung_gains());
    LadderOptions {
        trial: trial.name.get_ref().clone(),
        summary: trial.summary.clone(),
        quick: false,
        primary: trial.primary_spec(),
        mode: trial.mode(),
        duet: false,
        min_gain: gains.reduce(f64::min).unwrap_or(trial.hope),
        rung_gains: Vec::new(),
        hope: trial.hope,
        strictness: trial.strictness(),
        guards: trial.guards(),
        seed: saved.campaign.seed(),
        budget: Duration::ZERO,
        spent: Duration::ZERO,
        pairs_max: trial.boots.as_ref().map_or(0, |boots| boots.blocks),
        pairs_cure: PairsCure::alike("raise `blocks` of [boots] in the trial file"),
        pairs_min: 0,
        selfcheck_pairs: 0,
        warm_up: WarmUpPlan::Auto,
        confirm: Confirm::Skip { because: "a fresh run would be as many boots again".to_owned() },
        host: saved.host.clone(),
        refused: Vec::new(),
    }
}

/// The outcome of a campaign as far as it has come. It follows from the state alone, so that one that is told twice,
/// since a kill came in between, is one proof.
pub(super) fn outcome(trial: &TrialFile, saved: &Saved, campaign: &Campaign) -> TrialOutcome {
    let rungs = rungs(trial);
    let mut outcome = judged(&options(trial, saved), &rungs, campaign);
    outcome.command = saved.command.clone();
    outcome.setup = Some(Setup::File(saved.trial.clone()));
    let names = trial.boot.iter().map(|boot| boot.name.get_ref().clone());
    let row = |boot: &Boot| row(trial, &rungs, boot);
    outcome.boots = Some(Boots {
        state: if campaign.end().is_some() { BootsState::Ended } else { BootsState::UnderWay },
        asked: campaign.asked(),
        boots_max: campaign.boots_max(),
        arguments: names.zip(saved.arguments.iter().cloned()).collect(),
        boots: campaign.boots().iter().map(row).collect(),
    });
    if let Some(arm) = campaign.waits_for() {
        outcome.notes.push(format!("the boot that is waited for is of `{}`", rungs.name_of(arm)));
    }
    outcome
}

fn row(trial: &TrialFile, rungs: &BootRungs, boot: &Boot) -> BootRow {
    let primary = trial.primary_name();
    let names = std::iter::once(trial.baseline.name()).chain(trial.rung.iter().map(|rung| rung.name()));
    let of = |inner: &super::campaign::Inner| Some(inner.as_ref().ok()?.get(&primary)?.value);
    let values = boot.inner.as_ref().map_or_else(
        |_| Default::default(),
        |inner| names.map(str::to_owned).zip(inner.iter().map(of)).collect_map(),
    );
    BootRow {
        block: boot.block,
        arm: rungs.name_of(boot.arm).to_owned(),
        lost: boot.inner.as_ref().err().cloned(),
        values,
    }
}

/// What a trial would do to the machine, in one sentence.
pub(super) fn before(trial: &TrialFile, boots: &BootsSpec, arguments: &[String]) -> String {
    let arms = trial.boot.len() + 2;
    let (fewest, planned) = (blocks_min(trial) * arms, boots.blocks * arms);
    let most = Campaign::most(trial.boot.len(), boots.blocks);
    let hours = |count: usize| count as f64 * (boots.boot_seconds + boots.settle_seconds) / 3600.0;
    let given = trial.boot.iter().zip(arguments);
    let given: Vec<String> =
        given.map(|(boot, text)| format!("`{}` is given {text}", boot.name.get_ref())).collect();
    let units = boots.units * (trial.rung.len() + 1);
    format!(
        "it starts this machine anew {fewest} to {planned} times ({arms} boots a block: the default entry, {}, and the \
         default entry as placebo; {most} times at most, where boots are lost), which takes {:.1} to {:.1} h and the \
         time of {units} units in each boot; {}",
        trial.boot.iter().map(|boot| boot.name.get_ref().as_str()).collect::<Vec<_>>().join(", "),
        hours(fewest),
        hours(planned),
        given.join(", ")
    )
}
