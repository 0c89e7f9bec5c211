//! The control plane of the live host: plan, apply and undo of `planish-pipeline`, with its journal.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::Duration;

use planish_host::Access as HostAccess;
use planish_model::{
    Access, Entry, EntryId, Exit, HostFacts, KnobId, Observation, Outcome, OutcomeKind, Plan, Profile,
    Skipped, Step, VerdictKind,
};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, TrialAtWork, in_force,
};
use planish_sorted::CollectMap as _;
use serde_json::Value;

use super::keep::Measured;
use super::{ARM, Action, Applied, HostControl, Kept};
use crate::error::TrialError;
use crate::sample::ArmError;

/// How often an undo is tried while another planish is at work or pages are still being freed, and how long
/// between.
const TRIES: usize = 20;
const WAIT: Duration = Duration::from_millis(250);

/// The live host of a session.
pub struct PipelineHost<'s> {
    session: &'s Session,
    command: String,
    open: Vec<EntryId>,
    /// From the first write on: whoever types `undo` meanwhile must not take what an arm stands on.
    at_work: Option<TrialAtWork>,
}

impl<'s> PipelineHost<'s> {
    /// The host of `session`; `command` is what root would have to type to get what we may not have.
    #[must_use]
    pub fn new(session: &'s Session, command: &str) -> Self {
        Self { session, command: command.to_owned(), open: Vec::new(), at_work: None }
    }

    /// Keeps other trials that set the host off it until this is dropped: what one sets for a unit the other would take
    /// for its own.
    ///
    /// # Errors
    /// Another one is at work; its process is named. One that was killed has left an arm on the host, which would be
    /// the baseline of this one; its entries are named.
    pub fn begin(&mut self) -> Result<(), TrialError> {
        let at_work = self.session.begin_trial().map_err(|error| TrialError::Refused {
            what: format!("two trials would measure each other's settings: {}", chain(&error)),
            cure: error.hints().into_iter().next().unwrap_or_default(),
        })?;
        self.refuse_what_is_left()?;
        self.at_work = at_work;
        Ok(())
    }

    /// Takes back the arms that a trial has left here which was killed, for the one that goes on with it.
    ///
    /// # Errors
    /// One of them cannot be undone.
    pub(crate) fn take_back_left(&mut self) -> Result<(), ArmError> {
        let entries = in_force(self.session).map_err(|error| refused(&error))?;
        let is_arm = |entry: &&Entry| entry.reason.as_deref().is_some_and(|reason| reason.starts_with(ARM));
        let left: Vec<EntryId> = entries.iter().filter(is_arm).map(|entry| entry.id).collect();
        left.into_iter().rev().try_for_each(|entry| self.undo(entry))
    }

    fn refuse_what_is_left(&self) -> Result<(), TrialError> {
        let entries = in_force(self.session).map_err(|error| not_persisted(&error))?;
        let is_arm = |entry: &&Entry| entry.reason.as_deref().is_some_and(|reason| reason.starts_with(ARM));
        let left: Vec<&Entry> = entries.iter().filter(is_arm).collect();
        let Some(first) = left.first() else { return Ok(()) };
        let what = format!(
            "a trial that was killed has left entry {} on the host ({}), and this one would take that for its baseline",
            first.id,
            first.reason.as_deref().unwrap_or_default()
        );
        let undo = undo_lines(left.iter().rev().map(|entry| entry.id));
        Err(TrialError::Refused { what, cure: format!("take it back first: {undo}") })
    }

    /// Says that this has values on the host, where [`Self::begin`] was not asked to.
    fn be_at_work(&mut self) -> Result<(), ArmError> {
        if self.at_work.is_none() {
            self.at_work = self.session.begin_trial().map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    fn plan(&self, profile: &Profile) -> Result<Plan, PipelineError> {
        planish_pipeline::plan(
            self.session,
            &Source::Inline(Box::new(profile.clone())),
            &PlanOptions::default(),
        )
    }

    fn measured(&self, profile: &Profile) -> Result<Measured, PipelineError> {
        Ok(Measured::of(self.session, profile, self.plan(profile)?))
    }

    /// Why a step cannot be taken by this user on this host.
    fn objection(&self, step: &Step, observation: &Observation) -> Option<ArmError> {
        let access = observation.reading(&step.knob, &step.place).map(|reading| &reading.access)?;
        match access {
            Access::Writable => None,
            Access::NeedsRoot => Some(ArmError::Unavailable {
                reason: format!("only root may set {}", step.knob),
                cure: format!("sudo {}", self.command),
            }),
            Access::ReadOnly(why) => {
                Some(ArmError::unavailable(format!("{} cannot be written: {why}", step.knob)))
            }
            Access::Absent => Some(ArmError::unavailable(format!("{} is not there", step.place))),
        }
    }

    /// What the fresh entry stands for, or why there is none.
    fn settled(&mut self, plan: &Plan, done: planish_pipeline::Applied) -> Result<Applied, ArmError> {
        match done.exit {
            Exit::FailedRestored => return Err(ArmError::unavailable(done.hints.join("; "))),
            Exit::FailedNotRestored => {
                return Err(ArmError::Host { detail: done.hints.join("; "), restored: false });
            }
            _ => {}
        }
        self.open.extend(done.entry);
        let mut values: BTreeMap<String, Value> = plan
            .skipped
            .iter()
            .filter(|skipped| skipped.satisfied)
            .filter_map(|skipped| Some((skipped.place.clone(), skipped.wanted.clone()?.into())))
            .collect_map();
        let read_back = |outcome: &Outcome| Some((outcome.place.clone(), outcome.read_back.clone()?.into()));
        values.extend(done.outcomes.iter().filter_map(read_back));
        let left: Vec<String> = plan.skipped.iter().filter(|skipped| !skipped.satisfied).map(told).collect();
        if !left.is_empty() {
            values.insert("not_set".to_owned(), left.into());
        }
        let short = done.outcomes.iter().filter_map(shortfall).collect();
        Ok(Applied { entry: done.entry, values, short })
    }
}

/// What is not set, and why.
fn told(skipped: &Skipped) -> String {
    format!("{}: {}", skipped.knob, skipped.verdict.reason)
}

/// Whether an arm without this would be another arm. What its trial names itself must be there; a whole profile is
/// taken as `apply` takes it, without what cannot be set here: a governor in a guest, a pool for no named service.
pub(super) fn is_missed(skipped: &Skipped, profile: &Profile) -> bool {
    let is_moot = matches!(skipped.verdict.verdict, VerdictKind::Moot);
    !skipped.satisfied && !is_moot && profile.want.contains_key(&skipped.knob)
}

/// What to type to take back entries, in the order in which they are given.
fn undo_lines(entries: impl Iterator<Item = EntryId>) -> String {
    entries.map(|id| format!("planish undo {id}")).collect::<Vec<_>>().join("; ")
}

/// Why a step that was written is not what was wanted.
fn shortfall(outcome: &Outcome) -> Option<String> {
    match (outcome.outcome, &outcome.short) {
        (OutcomeKind::Short, Some(short)) => {
            Some(format!("{} of {} pages were granted: {}", short.granted, short.asked, short.reason))
        }
        (OutcomeKind::Short | OutcomeKind::ReadsBack, _) => {
            let detail = outcome.detail.as_deref().unwrap_or("it reads back as something else");
            Some(format!("{}: {detail}", outcome.place))
        }
        _ => None,
    }
}

/// An error with its causes in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A refusal of the control plane as an arm that cannot be had; a host that was left half way as what it is.
fn refused(error: &PipelineError) -> ArmError {
    let detail = chain(error);
    match error.exit() {
        Exit::FailedRestored => ArmError::Host { detail, restored: true },
        Exit::FailedNotRestored => ArmError::Host { detail, restored: false },
        _ => ArmError::Unavailable {
            reason: detail,
            cure: error.hints().into_iter().next().unwrap_or_default(),
        },
    }
}

/// The same for what was to be kept: the trial has its outcome, and the cure is for whoever asked.
pub(crate) fn not_persisted(error: &PipelineError) -> TrialError {
    let what = chain(error);
    match error.exit() {
        Exit::FailedRestored => TrialError::Host { detail: what, restored: true },
        Exit::FailedNotRestored => TrialError::Host { detail: what, restored: false },
        _ if matches!(error, PipelineError::Lock(_)) => {
            TrialError::Busy { what, cure: error.hints().join("; ") }
        }
        _ => TrialError::Refused { what, cure: error.hints().join("; ") },
    }
}

impl HostControl for PipelineHost<'_> {
    fn facts(&self) -> HostFacts {
        self.session.observe().host
    }

    fn can_have(&self, profile: &Profile) -> Result<(), ArmError> {
        let plan = self.plan(profile).map_err(|error| refused(&error))?;
        let missed =
            |skipped: &&Skipped| skipped.short_of_memory || skipped.impossible || is_missed(skipped, profile);
        if let Some(missing) = plan.skipped.iter().find(missed) {
            return Err(ArmError::unavailable(told(missing)));
        }
        if plan.steps.is_empty() && !plan.skipped.iter().any(|skipped| skipped.satisfied) {
            let why = plan.skipped.first().map(told).unwrap_or_default();
            return Err(ArmError::unavailable(format!("nothing of it can be set here ({why})")));
        }
        let observation = self.session.observe();
        plan.steps.iter().find_map(|step| self.objection(step, &observation)).map_or(Ok(()), Err)
    }

    fn can_differ(&self, profile: &Profile) -> Result<(), ArmError> {
        let plan = self.plan(profile).map_err(|error| refused(&error))?;
        if plan.steps.iter().any(Step::is_written) {
            return Ok(());
        }
        let entries = in_force(self.session).unwrap_or_default();
        let sets = |entry: &&Entry, place: &str| entry.steps.iter().any(|step| step.place == place);
        let found = plan.skipped.iter().filter(|row| row.satisfied).map(|row| &row.place);
        let had = found.chain(plan.steps.iter().map(|step| &step.place));
        let newest = had.filter_map(|place| entries.iter().rev().find(|entry| sets(entry, place)));
        let newest: BTreeSet<EntryId> = newest.map(|entry| entry.id).collect();
        let undo = undo_lines(newest.into_iter().rev());
        let what = "the host has already all of it that a trial can set here";
        let by_baseline = "give the baseline the value to compare with, in its own `want`";
        Err(ArmError::Unavailable {
            reason: format!("{what}, so that its units would be those of the baseline"),
            cure: match undo.is_empty() {
                true => by_baseline.to_owned(),
                false => format!("{by_baseline}; or take back all that set it: {undo}"),
            },
        })
    }

    fn apply(&mut self, profile: &Profile) -> Result<Applied, ArmError> {
        let plan = self.plan(profile).map_err(|error| refused(&error))?;
        let options = ApplyOptions { reason: Some(profile.summary.clone()), ..ApplyOptions::default() };
        self.be_at_work()?;
        let done = planish_pipeline::apply(self.session, &plan, &options).map_err(|error| refused(&error))?;
        self.settled(&plan, done)
    }

    fn rehearse(&mut self, profile: &Profile) -> Result<Applied, ArmError> {
        let plan = self.plan(profile).map_err(|error| refused(&error))?;
        let nothing =
            Profile { inherits: Vec::new(), want: BTreeMap::new(), placement: None, ..profile.clone() };
        let mut applied = self.apply(&nothing)?;
        let observation = self.session.observe();
        let value = |step: &Step| observation.reading(&step.knob, &step.place)?.value.clone();
        applied
            .values
            .extend(plan.steps.iter().filter_map(|step| Some((step.place.clone(), value(step)?.into()))));
        Ok(applied)
    }

    fn places(&self, profile: &Profile) -> Vec<(KnobId, String)> {
        let Ok(plan) = self.plan(profile) else { return Vec::new() };
        let satisfied = plan.skipped.into_iter().filter(|row| row.satisfied);
        let satisfied = satisfied.map(|row| (row.knob, row.place));
        plan.steps.into_iter().map(|step| (step.knob, step.place)).chain(satisfied).collect()
    }

    fn value(&self, place: &str) -> Option<String> {
        self.session.host().read(place).ok()
    }

    fn same(&self, knob: &KnobId, one: &str, other: &str) -> bool {
        let kind = self.session.catalogue().knob(knob).map(|knob| &knob.r#type);
        kind.map_or(one == other, |kind| kind.same(one, other))
    }

    fn undo(&mut self, entry: EntryId) -> Result<(), ArmError> {
        let mut last = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(WAIT);
            }
            match planish_pipeline::undo(self.session, Target::Entry(entry), false) {
                Ok(undone) if undone.exit == Exit::Done => {
                    self.open.retain(|open| *open != entry);
                    // In the middle of a unit, which ran without it from then on.
                    if undone.entries.is_empty() && attempt == 0 {
                        let detail =
                            format!("someone else has taken back entry {entry}, an arm of this trial");
                        return Err(ArmError::Host { detail, restored: true });
                    }
                    return Ok(());
                }
                Ok(undone) => {
                    let outcomes = undone.entries.iter().flat_map(|(_, outcomes)| outcomes);
                    let theirs = |outcome: &Outcome| outcome.outcome == OutcomeKind::Theirs;
                    if outcomes.clone().any(theirs) && !outcomes.clone().any(is_left) {
                        self.open.retain(|open| *open != entry);
                        let detail =
                            format!("someone else set the host meanwhile: {}", undone.hints.join("; "));
                        return Err(ArmError::Host { detail, restored: true });
                    }
                    last = undone.hints.join("; ");
                }
                Err(error) => last = chain(&error),
            }
        }
        let detail = format!("entry {entry} of the journal cannot be undone: {last}");
        Err(ArmError::Host { detail, restored: false })
    }

    fn undo_all(&mut self) -> Result<(), ArmError> {
        let mut failed = Ok(());
        for entry in self.open.clone().into_iter().rev() {
            failed = failed.and(self.undo(entry));
        }
        failed
    }

    fn can_do(&self, action: Action) -> Result<(), ArmError> {
        let (knob, _) = action.knob();
        let access = planish_pipeline::deed_access(self.session, &knob).map_err(|error| refused(&error))?;
        let why = match access {
            HostAccess::Writable | HostAccess::WriteOnly => return Ok(()),
            HostAccess::Absent => "it is not there".to_owned(),
            HostAccess::ReadOnly => "nobody may write it".to_owned(),
            HostAccess::ReadOnlyMount => "it is mounted read-only".to_owned(),
            HostAccess::Denied(_) if !rustix::process::geteuid().is_root() => {
                return Err(ArmError::Unavailable {
                    reason: format!("only root may write {knob}"),
                    cure: format!("sudo {}", self.command),
                });
            }
            HostAccess::Denied(why) => why,
        };
        Err(ArmError::unavailable(format!("{knob} cannot be written: {why}")))
    }

    fn act(&mut self, action: Action) -> Result<(), ArmError> {
        let (knob, value) = action.knob();
        let reason = "between the units of a trial";
        self.be_at_work()?;
        planish_pipeline::do_once(self.session, &knob, value, Some(reason))
            .map(drop)
            .map_err(|error| ArmError::Host { detail: chain(&error), restored: true })
    }

    fn can_persist(&self, profile: &Profile) -> Result<(), TrialError> {
        self.measured(profile)
            .and_then(|measured| planish_pipeline::can_persist(self.session, &measured.plan))
            .map_err(|error| not_persisted(&error))
    }

    fn persist(&mut self, profile: &Profile, reason: &str) -> Result<Kept, TrialError> {
        let control = |error: PipelineError| not_persisted(&error);
        let measured = self.measured(profile).map_err(control)?;
        let options =
            ApplyOptions { persist: true, reason: Some(reason.to_owned()), ..ApplyOptions::default() };
        let done = planish_pipeline::apply(self.session, &measured.plan, &options).map_err(control)?;
        match done.exit {
            Exit::Done | Exit::Findings => Ok(measured.told(self.session, profile, &done)),
            exit => Err(TrialError::Host {
                detail: done.hints.join("; "),
                restored: exit != Exit::FailedNotRestored,
            }),
        }
    }
}

impl Drop for PipelineHost<'_> {
    fn drop(&mut self) {
        // Only reached with open entries when a trial has panicked; the journal keeps what this cannot take
        // back.
        let _ = self.undo_all();
    }
}

/// Whether something of a step is still on the host.
fn is_left(outcome: &Outcome) -> bool {
    matches!(outcome.outcome, OutcomeKind::InUse | OutcomeKind::Failed)
}
