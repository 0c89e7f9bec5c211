//! The machine behind a campaign: the journal's pipeline, the state folder, and the reboot.

use std::time::{SystemTime, UNIX_EPOCH};

use planish_model::{
    Entry, EntryId, EntryState, Exit, KnobId, Plan, Profile, Step, TrialBootState, gone_at_boot, marked,
};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, ResumeUnit, Session, Source, Target, Undone, apply, apply_once,
    boot_alone, boots_on_trial, carried_over, default_entry, end_boots, install_resume, log, plan,
    remove_resume, undo,
};

use super::campaign::{Campaign, End, Inner, Machine, Unmeasured};
use super::state::{self, Saved, SavedUnit};
use super::{Hands, arguments, measure, told};
use crate::arm::Recipe;
use crate::control::Progress;
use crate::error::TrialError;
use crate::file::{BootSpec, TrialFile};
use crate::host::{HostControl, Kept, PipelineHost, chain, not_persisted};
use crate::ladder::boots::is_decided;
use crate::outcome::{RungVerdict, TrialOutcome};
use crate::proof::Proofs;
use crate::run::{Ground, RunOptions, not_kept, note_kept, recipes};

/// How the reason of an entry begins that is a boot of a trial.
pub(super) const REASON: &str = "boot of trial ";

/// A machine of a session, with a trial on it.
pub(super) struct Real<'a> {
    pub(super) session: &'a Session,
    pub(super) trial: &'a TrialFile,
    pub(super) options: &'a RunOptions,
    pub(super) saved: Saved,
    pub(super) host: PipelineHost<'a>,
    pub(super) hands: &'a mut dyn Hands,
    pub(super) progress: &'a mut dyn Progress,
    /// What was found, once it is concluded.
    pub(super) outcome: Option<TrialOutcome>,
}

/// What an undo has left, if anything.
fn left(undone: Result<Undone, PipelineError>) -> Result<(), String> {
    match undone {
        Ok(undone) if undone.exit == Exit::Done => Ok(()),
        Ok(undone) => Err(undone.hints.join("; ")),
        Err(error) => Err(chain(&error)),
    }
}

/// The reason of an entry that persists what a trial has kept.
fn kept_for(trial: &str, proof: &str) -> String {
    format!("trial {trial}, proof {proof}")
}

/// What entries of the journal say of what a trial that has ended has persisted. Its proof was stored before that.
pub(super) fn persisted(session: &Session, outcome: &TrialOutcome) -> Vec<String> {
    let reason = kept_for(&outcome.trial, outcome.proof_id.as_deref().unwrap_or_default());
    let entries = log(session).unwrap_or_default();
    let own = entries.iter().filter(|entry| entry.reason.as_deref() == Some(&reason));
    let told = own.map(|entry| match entry.is_open() {
        true => format!("what it kept is persisted by entry {0}: planish undo {0} takes that back", entry.id),
        false => format!("what it kept was persisted by entry {}, which is open no longer", entry.id),
    });
    told.collect()
}

/// Takes back whatever of boots for once is there.
pub(super) fn take_back(session: &Session) -> Result<(), String> {
    left(end_boots(session, REASON))
}

/// Takes out the unit that goes on.
pub(super) fn remove_unit(session: &Session) -> Result<(), String> {
    left(remove_resume(session))
}

/// Why no boot of a trial says any more what it was asked for: its arguments have come into what later boots are given,
/// or the default entry is another one than at the beginning. Whoever installs a kernel does either.
pub(super) fn spoilt(session: &Session, saved: &Saved) -> Option<String> {
    if let Some((what, cure)) = copied(session, saved) {
        return Some(format!("{what}: {cure}"));
    }
    let (was, is) = (saved.default.as_ref()?, default_entry(session));
    match is {
        Some(is) if is == *was => None,
        Some(is) => Some(format!("the default entry was {was} when it began, and is {is} now")),
        None => {
            Some(format!("the default entry was {was} when it began, and nobody can tell what it is now"))
        }
    }
}

/// Where the arguments of a boot on trial have come into what later boots are given, and what to do about it.
fn copied(session: &Session, saved: &Saved) -> Option<(String, String)> {
    let mut line = carried_over(session).ok()?.into_iter().next()?;
    if line.arguments.is_empty() {
        // An entry that is taken back says no more what it gave; its reason says of which arm it was.
        let entries = log(session).unwrap_or_default();
        let is_it = |entry: &&Entry| entry.trial_boot() == Some(line.name.as_str());
        let entry = entries.iter().rev().find(is_it);
        let name = entry.and_then(|entry| entry.reason.as_deref()?.strip_prefix(REASON)?.split(':').next());
        let arm = name.and_then(|name| name.rsplit('-').next()?.parse::<usize>().ok());
        let given = arm.and_then(|arm| saved.arguments.get(arm.checked_sub(1)?));
        line.arguments = given.cloned().unwrap_or_default();
    }
    Some((line.to_string(), line.cure()))
}

/// What the next boot is by, as the loader has it now.
pub(super) fn next_boot(session: &Session) -> String {
    match default_entry(session) {
        Some(entry) if entry.is_marked() => {
            format!("the next one has its arguments too, by the default entry {entry}")
        }
        Some(entry) => format!("the next one is by the default entry, {entry}"),
        None => "what the next one is by cannot be told".to_owned(),
    }
}

/// The profile of a boot: its boot parameters, and what else its profile wants, of which nothing is given.
pub(super) fn profile(trial: &TrialFile, boot: &BootSpec) -> Profile {
    let name = boot.name.get_ref();
    Profile {
        name: format!("trial-{}-{name}", trial.name.get_ref()),
        summary: format!("boot `{name}` of trial `{}`", trial.name.get_ref()),
        inherits: boot.profile.iter().map(|name| name.get_ref().clone()).collect(),
        placement: None,
        guide: Vec::new(),
        programs: Vec::new(),
        packages: Vec::new(),
        service_min: None,
        service_max: None,
        want: boot.wants(),
    }
}

/// The boot parameters of a boot, planned for this moment.
pub(super) fn planned(
    session: &Session,
    profile: Profile,
    allowed: &PlanOptions,
) -> Result<Plan, PipelineError> {
    Ok(boot_alone(&plan(session, &Source::Inline(Box::new(profile)), allowed)?))
}

impl Saved {
    /// What was allowed when it began.
    pub(super) fn allowed(&self) -> PlanOptions {
        PlanOptions {
            allow_classes: self.classes.clone(),
            allow_knobs: self.knobs.clone(),
            ..PlanOptions::default()
        }
    }
}

impl SavedUnit {
    pub(super) fn wanted(&self) -> ResumeUnit {
        let Self { program, state, folder, path, seconds_max } = self.clone();
        ResumeUnit { program, state, folder, path, seconds_max }
    }
}

impl Real<'_> {
    /// The boot of a number among the arms of a campaign; none by the default entry.
    fn boot(&self, arm: usize) -> Option<&BootSpec> {
        self.trial.boot.get(arm.checked_sub(1)?)
    }

    fn plan_of(&self, arm: usize) -> Result<Plan, String> {
        let boot = self.boot(arm).ok_or_else(|| "no boot of the trial has this number".to_owned())?;
        planned(self.session, profile(self.trial, boot), &self.saved.allowed()).map_err(|error| chain(&error))
    }

    /// Persists the best boot that was kept, and the best rung that was kept inside of it.
    ///
    /// # Errors
    /// What came in the way, and whether the host is as before.
    fn persist(&mut self, outcome: &mut TrialOutcome) -> Result<(), TrialError> {
        let is_kept = |name: &str| {
            let rung = outcome.rungs.iter().find(|rung| rung.name == name)?;
            rung.effect.filter(|_| rung.verdict == RungVerdict::Keep)
        };
        let boots = self.trial.boot.iter().enumerate();
        let kept = boots.filter_map(|(at, boot)| Some((at + 1, is_kept(boot.name.get_ref())?)));
        let best = kept.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(arm, _)| arm);
        let rungs = told::rungs(self.trial);
        let inside = |recipe: &Recipe| match best {
            Some(arm) => rungs.inside(rungs.name_of(arm), &recipe.name),
            None => recipe.name.clone(),
        };
        let recipes = recipes(self.trial);
        let nested = recipes[1..].iter().filter_map(|recipe| Some((recipe, is_kept(&inside(recipe))?)));
        let nested = nested.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(recipe, _)| recipe);
        let proof = outcome.proof_id.clone().unwrap_or_default();
        let reason = kept_for(&outcome.trial, &proof);
        self.take_back_half(&reason)?;
        if best.is_none() && nested.is_none() {
            outcome.notes.push("nothing was kept, so nothing was persisted".to_owned());
        }
        if let Some(arm) = best {
            note_kept(outcome, self.persist_boot(arm, &reason)?);
        }
        if let Some(profile) = nested.and_then(|recipe| recipe.profile(&outcome.trial)) {
            note_kept(outcome, self.host.persist(&profile, &reason)?);
        }
        Ok(())
    }

    /// Takes back what a kill has left half persisted. What is half there would pass for the whole: the next boot gives
    /// the arguments as soon as one of the loader's files does.
    fn take_back_half(&self, reason: &str) -> Result<(), TrialError> {
        let host = |detail| TrialError::Host { detail, restored: false };
        let entries = log(self.session).map_err(|error| host(chain(&error)))?;
        let is_half = |entry: &&Entry| {
            entry.state == EntryState::Interrupted && entry.reason.as_deref() == Some(reason)
        };
        for entry in entries.iter().rev().filter(is_half) {
            let undone = undo(self.session, Target::Entry(entry.id), false);
            if let Err(error @ PipelineError::Lock(_)) = &undone {
                return Err(not_persisted(error));
            }
            left(undone).map_err(host)?;
        }
        Ok(())
    }

    /// The entry that has persisted a boot: of a conclusion that a kill has cut behind it.
    fn persisted_as(&self, plan: &Plan, reason: &str) -> Option<EntryId> {
        let entries = log(self.session).unwrap_or_default();
        let is_it = |entry: &&Entry| {
            entry.is_open() && entry.reason.as_deref() == Some(reason) && entry.profile == plan.profile
        };
        entries.iter().rev().find(is_it).map(|entry| entry.id)
    }

    /// What every boot is to give for an arm: also what the running kernel was given, as it is where a kill came behind
    /// an apply that has not said so, and the machine was started anew since.
    fn plan_to_keep(&self, arm: usize) -> Result<Plan, String> {
        let due = self.plan_of(arm)?;
        let boot = self.boot(arm).ok_or_else(|| "no boot of the trial has this number".to_owned())?;
        let source = Source::Inline(Box::new(profile(self.trial, boot)));
        let whole = plan(self.session, &source, &self.saved.allowed()).map_err(|error| chain(&error))?;
        let catalogue = self.session.catalogue();
        let is_at_boot = |id: &KnobId| catalogue.knob(id).is_ok_and(|knob| knob.boot_parameter().is_some());
        let running = whole.skipped.into_iter().filter(|row| row.satisfied && is_at_boot(&row.knob));
        let rows = due.skipped.iter().cloned().chain(running).collect();
        let (host_id, boot_id) = (due.host_id.clone(), due.boot_id.clone());
        Ok(Plan::new(due.profile.clone(), host_id, boot_id, Vec::new(), rows).with_boot(due.boot))
    }

    /// Gives the default entry the boot parameters of an arm, by the usual way.
    fn persist_boot(&self, arm: usize, reason: &str) -> Result<Kept, TrialError> {
        let refused = |what| TrialError::Refused { what, cure: String::new() };
        let plan = self.plan_to_keep(arm).map_err(refused)?;
        let options =
            ApplyOptions { persist: true, reason: Some(reason.to_owned()), ..ApplyOptions::default() };
        let done = apply(self.session, &plan, &options).map_err(|error| not_persisted(&error))?;
        if !matches!(done.exit, Exit::Done | Exit::Findings) {
            let restored = done.exit != Exit::FailedNotRestored;
            return Err(TrialError::Host { detail: done.hints.join("; "), restored });
        }
        // Of the plan of now, and not of what each boot was given: somebody may have changed the default meanwhile.
        let is_given = |step: &&Step| !done.unpersisted.iter().any(|left| left.place == step.place);
        let given = arguments(self.session, plan.boot.iter().filter(is_given));
        let earlier = || self.persisted_as(&plan, reason);
        let mut notes = vec![match done.entry.or_else(earlier) {
            Some(entry) if given.is_empty() => {
                format!("persisted as entry {entry}, for every boot: planish undo {entry}")
            }
            Some(entry) => {
                format!(
                    "persisted as entry {entry}, for every boot from the next one on: {given}; planish undo {entry}"
                )
            }
            None => "every boot is given its boot parameters already".to_owned(),
        }];
        notes.extend(done.hints);
        notes.extend(gone_at_boot(&done.unpersisted));
        // A boot parameter that is left out is in force in no boot.
        Ok(Kept { notes, lasts: done.exit == Exit::Done && done.unpersisted.is_empty() })
    }
}

/// Whether the boot loader is still to take the entry for once, although the machine was started anew.
pub(super) fn is_passed_over(session: &Session) -> bool {
    let boots = boots_on_trial(session).unwrap_or_default();
    boots.iter().any(|boot| boot.state == TrialBootState::PassedOver)
}

impl Machine for Real<'_> {
    fn boot_id(&self) -> String {
        self.session.host().boot_id()
    }

    fn marked(&self) -> Option<String> {
        let cmdline = self.session.host().read("/proc/cmdline").unwrap_or_default();
        let marks: Vec<&str> = marked(&cmdline).collect();
        // Also of an entry that is taken back by now. One that is not of this trial is a boot on trial all the same.
        let entries = log(self.session).unwrap_or_default();
        let is_it = |mark: &str| marks.last().is_some_and(|last| *last == mark);
        let entry = entries.iter().rev().find(|entry| entry.trial_boot().is_some_and(is_it));
        let name = entry.and_then(|entry| entry.reason.as_deref()?.strip_prefix(REASON)?.split(':').next());
        name.or(marks.last().copied()).map(str::to_owned)
    }

    fn is_passed_over(&self) -> bool {
        is_passed_over(self.session)
    }

    fn now(&self) -> u64 {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.hands.now().unwrap_or_else(clock)
    }

    fn keep(&mut self, campaign: &Campaign) -> Result<(), String> {
        self.hands.before("keep");
        self.saved.campaign = campaign.clone();
        state::save(self.session, &self.saved).map_err(|error| chain(&error))
    }

    fn resume_at_boot(&mut self) -> Result<(), String> {
        let installed =
            install_resume(self.session, &self.saved.unit.wanted()).map_err(|error| chain(&error))?;
        if installed.exit == Exit::Done { Ok(()) } else { Err(installed.hints.join("; ")) }
    }

    fn boot_once(&mut self, arm: usize, name: &str) -> Result<(), String> {
        let plan = self.plan_of(arm)?;
        let (boot, trial) = (told::rungs(self.trial).name_of(arm).to_owned(), self.trial.name.get_ref());
        let reason = format!("{REASON}{name}: `{boot}` of `{trial}`");
        let applied = apply_once(self.session, &plan, Some(&reason)).map_err(|error| chain(&error))?;
        if applied.exit == Exit::Done { Ok(()) } else { Err(applied.hints.join("; ")) }
    }

    fn take_back(&mut self) -> Result<(), String> {
        take_back(self.session)
    }

    fn shortfall(&self, arm: usize) -> Option<String> {
        let (kernel, first) = (self.host.facts().kernel, &self.saved.host.kernel);
        if kernel != *first {
            return Some(format!("its kernel is {kernel}, and was {first} at the beginning"));
        }
        if self.boot(arm).is_none() {
            let now = self.session.host().read("/proc/cmdline").unwrap_or_default();
            let why = "the default entry is another one than at the beginning: its command line is";
            return (now != self.saved.cmdline).then(|| format!("{why} `{}`", now.trim()));
        }
        let plan = match self.plan_of(arm) {
            Ok(plan) => plan,
            Err(why) => return Some(why),
        };
        let missing: Vec<&str> = plan.boot.iter().map(|step| step.knob.as_str()).collect();
        (!missing.is_empty()).then(|| format!("it came up without {}", missing.join(", ")))
    }

    fn spoilt(&self) -> Option<String> {
        spoilt(self.session, &self.saved)
    }

    fn leads_back(&self) -> bool {
        default_entry(self.session).is_none_or(|entry| !entry.is_marked())
    }

    fn measure(&mut self, boot: usize) -> Result<Vec<Inner>, Unmeasured> {
        self.hands.before("measure");
        let boots = self.trial.boots.as_ref().expect("a trial of boots was checked to have it");
        let proofs = Proofs::of_state(self.session.state_folder());
        let ground = &mut Ground {
            options: self.options,
            host: &mut self.host,
            proofs: &proofs,
            progress: self.progress,
        };
        measure::measure(self.trial, boots, boot, ground)
    }

    fn is_decided(&self, campaign: &Campaign) -> bool {
        let options = told::options(self.trial, &self.saved);
        is_decided(&options, &told::rungs(self.trial), campaign)
    }

    fn reboot(&mut self) -> Result<(), String> {
        self.hands.before("reboot");
        self.hands.reboot(self.session).map_err(|error| chain(&error))
    }

    fn conclude(&mut self, campaign: &Campaign) -> Result<(), String> {
        self.hands.before("conclude");
        let mut outcome = told::outcome(self.trial, &self.saved, campaign);
        let proofs = Proofs::of_state(self.session.state_folder());
        proofs.store(&mut outcome).map_err(|error| chain(&error))?;
        // Somebody who watches may stop at a moment that suits him, also in a boot on trial.
        let is_stopped = matches!(campaign.end(), Some((End::Stopped(_), _)));
        if self.saved.keep && is_stopped {
            outcome.notes.push("it was stopped, so nothing was persisted".to_owned());
        } else if self.saved.keep
            && let Some((what, cure)) = copied(self.session, &self.saved)
        {
            not_kept(&mut outcome, &TrialError::Refused { what, cure });
        } else if self.saved.keep
            && let Err(error) = self.persist(&mut outcome)
        {
            // That one will have finished soon: the state stays, and with it the way to try again.
            if matches!(error, TrialError::Busy { .. }) {
                return Err(format!("what paid is not persisted yet: {error}"));
            }
            not_kept(&mut outcome, &error);
        }
        self.outcome = Some(outcome);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), String> {
        let unit = remove_unit(self.session);
        self.hands.before("clear");
        let state = state::remove(self.session).map_err(|error| chain(&error));
        unit.and(state)
    }
}
