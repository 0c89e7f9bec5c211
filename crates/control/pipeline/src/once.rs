//! Trial boots: boot parameters for one boot, then back.
//!
//! ```text
//! apply --persist --once ──> armed ──(boot)──> running ──> confirm: apply --persist, and the entry for once goes
//!                              │                  └─(boot)──┐
//!                              └──(did not come up)─────────┴──> over: check says so, undo takes the entry away
//! ```
//!
//! The default entry of the loader is not touched before the confirm. A trial boot is for boot parameters alone: what a
//! running host is given needs no boot, and files of `--persist` would bring it at every boot, also at the one after.

use std::time::Duration;

use planish_act::Sink;
use planish_journal::Intent;
use planish_model::{
    CarriedOver, Class, DefaultEntry, Drift, Entry, EntryId, EntryStep, Exit, KnobId, OnceBoot, OnceFormat,
    OnceWrite, Original, Outcome, Persist, PersistFile, Plan, Skipped, TrialBoot, TrialBootState, Undo,
    ValueType, marked, marker,
};
use tracing::info_span;

use crate::apply::{Applied, ApplyOptions, apply};
use crate::boot::earlier::{self, Asked};
use crate::carry_out::{self, PutBack};
use crate::error::PipelineError;
use crate::session::{PATIENCE, Session};
use crate::undo::{Manner, undo_selected};
use crate::{gone, intent, settle, unconfirmed};

/// The boot parameters of a plan, as a plan of their own: what a trial boot is for.
#[must_use]
pub fn boot_alone(plan: &Plan) -> Plan {
    let is_given = |row: &&Skipped| plan.boot.iter().any(|step| step.place == row.place);
    // What is refused of the whole is refused of its boot: half of what was asked for is not what was asked for.
    let is_refused = |row: &&Skipped| row.impossible || row.short_of_memory;
    let rows = plan.skipped.iter().filter(|row| is_given(row) || is_refused(row)).cloned().collect();
    let (profile, host_id, boot_id) = (plan.profile.clone(), plan.host_id.clone(), plan.boot_id.clone());
    let alone = Plan::new(profile, host_id, boot_id, Vec::new(), rows).with_boot(plan.boot.clone());
    Plan { allowed: plan.allowed.clone(), ..alone }
}

/// The arguments that a plan gives the kernel.
fn arguments(session: &Session, plan: &Plan) -> Result<Option<String>, PipelineError> {
    let catalogue = session.sound_catalogue()?;
    let mut given = Vec::new();
    for step in &plan.boot {
        given.extend(catalogue.knob(&step.knob)?.argument(&step.wanted));
    }
    Ok((!given.is_empty()).then(|| given.join(" ")))
}

/// What a trial boot of a plan would write, and from which entry it is copied.
fn look(session: &Session, plan: &Plan, entries: &[Entry]) -> Result<OnceBoot, PipelineError> {
    let refused = |reason: String, cure: String| PipelineError::Once { reason, cure };
    let Some(arguments) = arguments(session, plan)? else {
        return Err(refused(
            format!("{} has no boot parameter that the next boot does not give anyway", plan.profile),
            "apply without --once".to_owned(),
        ));
    };
    let there = trial_boots(session, entries).into_iter().next();
    if let Some(TrialBoot { entry, .. }) = there {
        let cure = format!("planish undo {entry}, or keep it where it runs: planish confirm");
        return Err(refused(format!("entry {entry} is a trial boot already"), cure));
    }
    refuse_carried_over(session, entries)?;
    let wanted: Vec<(&KnobId, &str)> =
        plan.boot.iter().map(|step| (&step.knob, step.wanted.as_str())).collect();
    let asked = Asked { wanted: &wanted, arguments: &arguments, entries, going: None };
    if let Some((reason, cure)) = earlier::in_default(session, &asked)? {
        return Err(refused(reason, cure));
    }
    // Twelve digits of the hash of the plan, which is for this boot of this host.
    let arguments = format!("{arguments} {}", marker(&format!("{:.12}", plan.hash)));
    planish_observe::once(session.host(), &session.boot_loader(), &arguments)
        .map_err(|refusal| refused(refusal.reason, refusal.cure))
}

/// What `apply --persist --once` of a plan would write, shown before anybody is asked. The default entry stays.
///
/// # Errors
/// Why it would be refused.
pub fn once_preview(session: &Session, plan: &Plan) -> Result<Persist, PipelineError> {
    refuse(session, plan)?;
    let once = look(session, plan, &session.ledger()?.entries)?;
    Ok(Persist { files: shown(session, &once, &session.looking_sink())?, left_out: Vec::new() })
}

fn refuse(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    intent::refuse_elsewhere(session, plan)?;
    intent::refuse_forged(session, plan)?;
    intent::refuse_impossible(plan)?;
    intent::refuse_unbootable(session, plan)?;
    intent::refuse_short_of_memory(plan)
}

/// The writes as changes of files; refuses those that cannot be made.
fn shown(session: &Session, once: &OnceBoot, sink: &dyn Sink) -> Result<Vec<PersistFile>, PipelineError> {
    let mut files = Vec::new();
    for OnceWrite { format, path, text } in &once.writes {
        let added = match format {
            OnceFormat::Block => vec![format!("next_entry={text}")],
            _ => text.lines().map(str::to_owned).collect(),
        };
        let now = match format {
            OnceFormat::Firmware => sink.read_variable(path),
            _ => {
                refuse_link(path, sink)?;
                intent::refuse_folder(session, path)?;
                sink.read_file(path)
            }
        };
        let new = now.map_err(PipelineError::Before)?.is_none();
        files.push(PersistFile { path: path.clone(), new, removed: Vec::new(), added, then: None });
    }
    Ok(files)
}

/// Has the loader boot an entry once that gives the boot parameters of a plan.
///
/// # Errors
/// Refusals, before anything was written: no boot parameter, a loader or a file system with which the machine might not
/// come back to its default entry, a trial boot that is there already. A journal that failed half way.
pub fn apply_once(session: &Session, plan: &Plan, reason: Option<&str>) -> Result<Applied, PipelineError> {
    refuse(session, plan)?;
    let sink = session.sink()?;
    let mut journal = session.writer(PATIENCE)?;

    // After this point no other planish writes this host.
    let boot_id = session.host().boot_id();
    gone::close(&mut journal, &boot_id)?;
    settle::pools(&mut journal, session.host(), &*sink)?;
    settle::files(session, &mut journal, &*sink)?;
    settle::sweep(&journal, session.host(), &*sink);
    unconfirmed::refuse(session, &journal.ledger().entries, plan, &ApplyOptions::to_files())?;
    let once = look(session, plan, &journal.ledger().entries)?;
    let files = shown(session, &once, &*sink)?;
    if let Some(seen) = &plan.persist
        && files.iter().any(|file| !seen.files.contains(file))
    {
        let paths = files.into_iter().map(|file| file.path).collect();
        return Err(PipelineError::Unshown { paths });
    }
    let steps = once.writes.iter().map(|write| step(write, &*sink)).collect::<Result<_, _>>()?;

    // After this point a kill leaves an entry that undo takes back.
    let entry = info_span!("record").in_scope(|| {
        journal.begin(Intent {
            command: session.options.command.clone(),
            reason: reason.map(str::to_owned),
            profile: plan.profile.clone(),
            plan: plan.hash.clone(),
            confirm_by: None,
            on_confirm: Some(Box::new(plan.clone())),
            allowed: plan.allowed.clone(),
            instead_of: None,
            steps,
        })
    })?;
    let written = carry_out::carry_out(session, &mut journal, entry, false, &*sink)?;
    if written.failed {
        let PutBack { failed, outcomes, exit, .. } =
            carry_out::put_back(session, &mut journal, written, &*sink)?;
        let why = failed.detail.unwrap_or_else(|| "no reason is known".to_owned());
        let hints = vec![format!("{}: {why}", failed.place)];
        return Ok(applied(entry, outcomes, Vec::new(), exit, hints));
    }
    let hints = told(session, entry, &once, plan)?.into_iter().chain(journal.torn_note()).collect();
    Ok(applied(entry, written.outcomes, files, Exit::Done, hints))
}

/// What the writes came to. No place of the running host has changed, so that none is looked at.
fn applied(
    entry: EntryId,
    outcomes: Vec<Outcome>,
    files: Vec<PersistFile>,
    exit: Exit,
    hints: Vec<String>,
) -> Applied {
    let drift = Drift { knobs: Vec::new() };
    let (unpersisted, pools) = (Vec::new(), Vec::new());
    Applied { entry: Some(entry), outcomes, drift, unpersisted, files, pools, exit, hints }
}

/// What to know after the writes.
fn told(
    session: &Session,
    entry: EntryId,
    once: &OnceBoot,
    plan: &Plan,
) -> Result<Vec<String>, PipelineError> {
    let arguments = arguments(session, plan)?.unwrap_or_default();
    Ok(vec![
        format!("the next boot, and no other, gives {arguments} (a copy of `{}`)", once.copied),
        format!(
            "start the machine anew when it suits; there planish confirm keeps it, planish undo {entry} does not"
        ),
    ])
}

/// Refuses a link with the name of a file of a trial boot: it is somebody else's, also where it leads to nothing.
fn refuse_link(path: &str, sink: &dyn Sink) -> Result<(), PipelineError> {
    let Some(target) = sink.link(path).map_err(PipelineError::Before)? else { return Ok(()) };
    let reason = format!("{path} is a link to {target}");
    Err(PipelineError::Once { reason, cure: "take it away first, or put a file in its place".to_owned() })
}

/// A step of a trial boot, with what is there before it.
fn step(write: &OnceWrite, sink: &dyn Sink) -> Result<EntryStep, PipelineError> {
    let OnceWrite { format, path, text } = write;
    let knob = KnobId::new(format.knob());
    let before = match format {
        // Somebody may have named an entry since it was looked at: theirs has no place in the journal to come back to.
        OnceFormat::Firmware => match sink.read_variable(path).map_err(PipelineError::Before)? {
            Some(name) => {
                let reason = format!("the firmware has the loader take `{name}` next");
                let cure = "take it out first: bootctl set-oneshot ''".to_owned();
                return Err(PipelineError::Once { reason, cure });
            }
            None => None,
        },
        _ => {
            refuse_link(path, sink)?;
            sink.read_file(path).map_err(PipelineError::Before)?
        }
    };
    let original = before.map(|value| Original {
        knob: knob.clone(),
        place: path.clone(),
        r#type: ValueType::Text { text: true },
        value,
        coupling: None,
        over: None,
    });
    let originals = original.into_iter().collect();
    let step = EntryStep::new(knob, path.clone(), text.clone(), Class::Availability, Undo::Edit);
    Ok(EntryStep { originals, ..step })
}

/// Every trial boot that is neither confirmed nor undone, oldest first, and how far it is.
pub(crate) fn trial_boots(session: &Session, entries: &[Entry]) -> Vec<TrialBoot> {
    let cmdline = session.host().read_lossy("/proc/cmdline").unwrap_or_default();
    let boot_id = session.host().boot_id();
    let boots = entries.iter().filter(|entry| entry.is_open()).filter_map(|entry| {
        let name = entry.trial_boot()?;
        let is_named = entry.steps.iter().any(|step| is_named(session, step));
        let state = if marked(&cmdline).any(|marked| marked == name) {
            TrialBootState::Running
        } else {
            match (entry.boot_id == boot_id, is_named) {
                (true, true) => TrialBootState::Armed,
                (true, false) => TrialBootState::Disarmed,
                (false, true) => TrialBootState::PassedOver,
                (false, false) => TrialBootState::Over,
            }
        };
        let plan = entry.on_confirm.as_deref();
        let arguments = plan.and_then(|plan| arguments(session, plan).ok().flatten()).unwrap_or_default();
        Some(TrialBoot { entry: entry.id, state, arguments })
    });
    boots.collect()
}

/// Whether a step names the entry of the next boot, and the loader has not taken the name yet.
fn is_named(session: &Session, step: &EntryStep) -> bool {
    let format = OnceFormat::of_knob(step.knob.as_str()).filter(|format| format.is_trigger());
    let seen = format.and_then(|format| planish_observe::once_seen(session.host(), format, &step.place));
    seen.as_deref() == Some(step.wanted.as_str())
}

/// The entry that the boot loader takes when nothing names one for once; `None` where nobody can tell.
#[must_use]
pub fn default_entry(session: &Session) -> Option<DefaultEntry> {
    planish_observe::default_entry(session.host(), &session.boot_loader())
}

/// Lines of the boot loader's files that give a trial boot's arguments to later boots, since somebody copied its
/// command line: see [`planish_observe::carried_over`].
///
/// # Errors
/// A journal that cannot be read.
pub fn carried_over(session: &Session) -> Result<Vec<CarriedOver>, PipelineError> {
    Ok(named(session, &session.ledger()?.entries))
}

/// The same, with what their trial boots gave, where these entries know it.
pub(crate) fn named(session: &Session, entries: &[Entry]) -> Vec<CarriedOver> {
    let mut found = planish_observe::carried_over(session.host());
    for line in &mut found {
        let is_it = |entry: &&Entry| entry.trial_boot() == Some(line.name.as_str());
        let plan = entries.iter().rev().find(is_it).and_then(|entry| entry.on_confirm.as_deref());
        line.arguments = plan.and_then(|plan| arguments(session, plan).ok().flatten()).unwrap_or_default();
    }
    found
}

/// Refuses to go on with boots on trial where one of them has become an ordinary boot: what is told of a boot by its
/// mark, and that the next one is as ever, would be untrue.
fn refuse_carried_over(session: &Session, entries: &[Entry]) -> Result<(), PipelineError> {
    match named(session, entries).first() {
        None => Ok(()),
        Some(line) => Err(PipelineError::Once { reason: line.to_string(), cure: line.cure() }),
    }
}

/// Every trial boot that is neither confirmed nor undone, for those who look.
///
/// # Errors
/// A journal that cannot be read.
pub fn boots_on_trial(session: &Session) -> Result<Vec<TrialBoot>, PipelineError> {
    Ok(trial_boots(session, &session.ledger()?.entries))
}

/// What a confirm kept.
pub(crate) struct Kept {
    /// The entry of the trial boot, which is closed.
    pub entry: EntryId,
    /// The apply that gives the same to every boot.
    pub applied: Applied,
}

/// Gives every boot what this one, a trial boot, was given: by an `apply --persist` of its boot parameters, with an
/// entry of its own. Then the entry for once goes. A kill between the two leaves both, and the next confirm finds the
/// first done.
///
/// # Errors
/// As [`crate::apply()`] with `persist`; a journal that cannot be used.
pub(crate) fn keep(session: &Session) -> Result<Option<Kept>, PipelineError> {
    let entries = session.ledger()?.entries;
    let running =
        trial_boots(session, &entries).into_iter().find(|boot| boot.state == TrialBootState::Running);
    let Some(TrialBoot { entry: id, .. }) = running else { return Ok(None) };
    let entry = entries.iter().find(|entry| entry.id == id).expect("it was found in them");
    let Some(tried) = entry.on_confirm.as_deref() else { return Ok(None) };
    refuse_carried_over(session, &entries)?;
    let row = |step: &planish_model::Step| {
        Skipped::satisfied(step.knob.clone(), step.place.clone(), step.wanted.clone(), step.verdict.clone())
    };
    let (host_id, boot_id) = (session.host().host_id(), session.host().boot_id());
    let rows = tried.boot.iter().map(row).collect();
    let plan = Plan::new(tried.profile.clone(), host_id, boot_id, Vec::new(), rows);
    let options = ApplyOptions { confirm_seconds: None, persist: true, reason: entry.reason.clone() };
    let mut applied = apply(session, &plan, &options)?;
    // They are given already.
    applied.hints.retain(|hint| !hint.starts_with("reboot pending"));
    if !matches!(applied.exit, Exit::Done | Exit::Findings) {
        return Ok(Some(Kept { entry: id, applied }));
    }

    // After this point the default entry has them, and the one for once can go.
    let manner = Manner { patience: Duration::ZERO, force: false, by_timer: false, salvage: None };
    let undone = undo_selected(session, manner, |_| Ok(vec![id]))?;
    let of_boot = |hint: &String| !hint.starts_with("reboot pending");
    applied.hints.extend(undone.hints.into_iter().filter(of_boot));
    if undone.exit != Exit::Done {
        applied.exit = undone.exit;
    }
    Ok(Some(Kept { entry: id, applied }))
}
