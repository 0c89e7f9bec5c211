//! `planish check`: the host against a profile, a plan, or what was applied. Any user may ask.

use std::collections::{BTreeMap, BTreeSet};

use planish_act::boot;
use planish_model::{
    CarriedOver, Drift, Entry, EntryId, EntryStep, Exit, KnobId, Observation, Persisted, Plan, PoolUse,
    TrialBoot, Unpersisted,
};

use crate::apply::held_against;
use crate::boot::lost::{self, LostRun};
use crate::changed::{self, ChangedFile};
use crate::copied;
use crate::error::PipelineError;
use crate::intent;
use crate::interrupted::{self, Interrupted};
use crate::once;
use crate::persist;
use crate::plan::{PlanOptions, plan_and_look};
use crate::pools;
use crate::session::Session;
use crate::source::{Named, Source};
use crate::texts::{self, HeldText};
use crate::transition::{self, Unfinished};
use crate::unconfirmed::{self, Unconfirmed};
use crate::unread::{self, UnreadDropIn};

/// Whose a file of planish's name is that no open entry has lines in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// The undo of this entry left it to whoever had changed lines of ours.
    Changed(EntryId),
    /// The undo of this entry took our lines out: what is left others had put beside them.
    Rest(EntryId),
    /// It is of another state folder, or of a journal that is gone.
    Elsewhere,
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// One row a concrete place.
    pub drift: Drift,
    /// What will be lost at the next boot, and no file can bring back: of all that, `--persist` helps nothing.
    pub unkept: Vec<Unpersisted>,
    /// Files of planish at work here that no open entry of this journal has lines in, with whose they are.
    pub strange_files: Vec<(String, Stranger)>,
    /// Entries that files of the boot loader name as those that gave arguments, and that this journal does not have,
    /// with the lines that name them.
    pub strange_tags: BTreeMap<EntryId, Vec<String>>,
    /// Whether that was compared with a plan for another host.
    pub is_of_another_host: bool,
    /// The profile that was compared with, also where a plan file of it was named.
    pub profile: Option<String>,
    /// Entries that hold values of this boot, oldest first.
    pub open: Vec<Entry>,
    /// Entries of this boot that go by themselves unless they are confirmed.
    pub unconfirmed: Vec<Unconfirmed>,
    /// Entries that are to take the place of another one which is still there, oldest first.
    pub unfinished: Vec<Unfinished>,
    /// Entries that are half way on the host, oldest first.
    pub interrupted: Vec<Interrupted>,
    /// Files that an open entry wrote as a whole, and that are no longer as it wrote them.
    pub changed_files: Vec<ChangedFile>,
    /// Drop-ins of open entries whose service nobody can start.
    pub unread_drop_ins: Vec<UnreadDropIn>,
    /// Files of the boot loader that lack what an open entry put into them.
    pub lost_runs: Vec<LostRun>,
    /// Boots on trial, neither confirmed nor undone, oldest first.
    pub trial_boots: Vec<TrialBoot>,
    /// Lines of the boot loader's files that give the arguments of a trial boot, or of an entry that is undone, to
    /// later boots.
    pub carried_over: Vec<CarriedOver>,
    /// Programs whose text open entries see to, and whether their files are the ones that were put there.
    pub texts: Vec<HeldText>,
    /// What open entries hold of pools of huge pages, and whether anybody uses it; oldest first.
    pub pools: Vec<PoolUse>,
    /// That not all was looked at which may set knobs at the boot.
    pub not_followed: Option<String>,
    /// Done, or findings.
    pub exit: Exit,
}

/// Compares the host with a profile or plan, or with everything that is applied.
///
/// # Errors
/// Names that do not exist, a file that is no plan, a journal that cannot be read.
pub fn check(session: &Session, source: Option<&Source>) -> Result<Checked, PipelineError> {
    check_without(session, source, &[])
}

/// The same of a profile without what is `exclude`d, as a plan leaves it: an apply without those places would otherwise
/// be a drift for ever.
///
/// # Errors
/// As [`check`].
pub fn check_without(
    session: &Session,
    source: Option<&Source>,
    exclude: &[String],
) -> Result<Checked, PipelineError> {
    session.sound_catalogue()?;
    let named = source.map(|source| source.load(session)).transpose()?;
    let entries = session.ledger()?.entries;
    let (plan, mut observation) = match named {
        Some(named) => {
            let (plan, observation) = wanted(session, named, exclude, &entries)?;
            (Some(plan), observation)
        }
        None => (None, session.observe()),
    };
    let steps = entries.iter().flat_map(|entry| &entry.steps);
    let places = steps.map(|step| step.place.as_str());
    planish_observe::limits_left(session.host(), places, &mut observation);
    let drift = held_against(session, plan.as_ref(), &entries, &observation);
    let unkept =
        drift.knobs.iter().filter_map(|knob| persist::kept_by_no_file(session.host(), knob)).collect();
    let strange_files = strange_files(&drift, &entries);
    let strange_tags = copied::strange_tags(session, &observation.boot, &entries);
    let trial_boots = once::trial_boots(session, &entries);
    let mut carried_over = once::named(session, &entries);
    carried_over.extend(copied::in_check(session, &observation.boot, &entries));
    let unfinished = transition::unfinished(&entries);
    let interrupted = interrupted::all(session, &entries);
    let changed_files = changed::changed(session, &entries);
    let unread_drop_ins = unread::unread(session, &entries);
    let lost_runs = lost::lost(session, &entries);
    let unconfirmed = unconfirmed::all(session, &entries);
    let texts = texts::held(session, &entries);
    let is_clean = drift.is_clean()
        && !texts.iter().any(HeldText::is_overtaken)
        && changed_files.is_empty()
        && unread_drop_ins.is_empty()
        && lost_runs.is_empty()
        && carried_over.is_empty()
        && unfinished.is_empty()
        && interrupted.is_empty()
        && !unconfirmed.iter().any(|waiting| waiting.is_abandoned)
        && !trial_boots.iter().any(TrialBoot::is_finding);
    let exit = if is_clean { Exit::Done } else { Exit::Findings };
    let is_of_another_host = plan.as_ref().is_some_and(|plan| intent::is_of_another_host(session, plan));
    let pools = pools::held(session.host(), &session.holding(&entries));
    let boot_id = session.host().boot_id();
    let open = entries.into_iter().filter(|entry| entry.is_open() && entry.boot_id == boot_id).collect();
    Ok(Checked {
        drift,
        unkept,
        strange_files,
        strange_tags,
        is_of_another_host,
        profile: plan.map(|plan| plan.profile),
        open,
        unconfirmed,
        unfinished,
        interrupted,
        changed_files,
        unread_drop_ins,
        lost_runs,
        trial_boots,
        carried_over,
        texts,
        pools,
        not_followed: observation.not_followed(),
        exit,
    })
}

/// What a profile wants of the host as it is seen.
fn wanted(
    session: &Session,
    named: Named,
    exclude: &[String],
    entries: &[Entry],
) -> Result<(Plan, Observation), PipelineError> {
    let options = PlanOptions { exclude: exclude.to_vec(), ..allowed_then(session, &named, entries) };
    let (mut plan, observation) = plan_and_look(session, named, &options, entries)?;
    // What is left to others is not held against them either where it happens to be as wanted.
    let catalogue = session.catalogue();
    plan.skipped.retain(|row| {
        planish_decide::left_out(catalogue, &observation, exclude, &row.knob, &row.place).is_none()
    });
    Ok((plan, observation))
}

/// What the entries were allowed that hold values of a profile: it was applied so, and a check that allowed less would
/// look for less.
fn allowed_then(session: &Session, named: &Named, entries: &[Entry]) -> PlanOptions {
    let Named::Profile(profile) = named else { return PlanOptions::default() };
    let mut options = PlanOptions::default();
    // Whoever gives a part of the system its CPUs, and whether it has them, can be told of a limit that nobody applied.
    let is_limit =
        |id: &&KnobId| session.catalogue().knob(id).is_ok_and(|knob| knob.r#type.is_cpus_of_a_unit());
    options.allow_knobs.extend(profile.want.keys().filter(is_limit).cloned());
    for entry in session.holding(entries).iter().filter(|entry| entry.profile == profile.name) {
        let allowed = entry.was_allowed();
        options.allow_classes.extend(allowed.classes);
        // A row may have gone from the catalogue since.
        let is_known = |id: &KnobId| session.catalogue().knob(id).is_ok();
        options.allow_knobs.extend(allowed.knobs.into_iter().filter(is_known));
    }
    options
}

/// The files of a host are one, the journals of several state folders are not: what another one wrote is told apart,
/// and so is what an undo found changed and left.
fn strange_files(drift: &Drift, entries: &[Entry]) -> Vec<(String, Stranger)> {
    // A line that another file overrules is in the way of the next apply all the same.
    let sources = drift.knobs.iter().flat_map(|knob| knob.persisted.iter().chain(&knob.overridden));
    let ours = sources.filter_map(|found| Persisted::own_file(&found.source));
    let is_known = |file: &str| {
        let mut open = entries.iter().filter(|entry| entry.is_open());
        open.any(|entry| step_of(entry, file).is_some_and(|step| !step.is_undone()))
    };
    let left_by = |file: &str| {
        let newest = entries.iter().rev().find_map(|entry| Some((entry.id, step_of(entry, file)?)));
        let (id, step) = newest?;
        let undone = step.undone.as_ref()?;
        let is_rest = undone.detail.as_deref().is_some_and(|detail| detail.starts_with(boot::DIFFERS));
        match step.left_theirs() {
            true => Some(Stranger::Changed(id)),
            false => is_rest.then_some(Stranger::Rest(id)),
        }
    };
    let strange: BTreeSet<&str> = ours.filter(|file| !is_known(file)).collect();
    let whose = |file: &str| left_by(file).unwrap_or(Stranger::Elsewhere);
    strange.into_iter().map(|file| (file.to_owned(), whose(file))).collect()
}

/// The step of an entry that has lines in a file.
fn step_of<'a>(entry: &'a Entry, file: &str) -> Option<&'a EntryStep> {
    entry.steps.iter().find(|step| step.place == file)
}
