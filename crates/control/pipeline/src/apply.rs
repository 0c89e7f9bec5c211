//! `planish apply`: the one way by which a plan reaches a host.

use std::collections::BTreeSet;
use std::time::Duration;

use planish_act::{Sink, boot, stack};
use planish_journal::{Intent, Journal};
use planish_model::{
    Closure, Drift, DriftState, Entry, EntryId, EntryState, EntryStep, Exit, KnobId, Observation, Outcome,
    OutcomeKind, Part, PersistFile, Plan, PoolGoing, Skipped, Step, Undo, Unpersisted,
};
use tracing::info_span;

use crate::carry_out::{self, PutBack, Written};
use crate::contents::Contents;
use crate::error::PipelineError;
use crate::persist::Persistence;
use crate::prepare::{self, Prepared};
use crate::session::Session;
use crate::transition::Completed;
use crate::{gone, intent, settle, transition, unconfirmed, undo, units, watch};

/// How a plan is applied.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Undo it by itself unless it is confirmed within so many seconds.
    pub confirm_seconds: Option<u64>,
    /// Also write files that bring the values back at the next boot.
    pub persist: bool,
    /// Why, for the journal.
    pub reason: Option<String>,
}

impl ApplyOptions {
    /// Those of an apply that writes files, too, and waits for nobody.
    pub(crate) fn to_files() -> Self {
        Self { persist: true, ..Self::default() }
    }

    /// Whether the next boot is provided for now. Where the entry waits for a confirm, that one does it.
    fn is_for_next_boot(&self) -> bool {
        self.persist && self.confirm_seconds.is_none()
    }
}

/// What an apply did.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Its entry; `None` when there was nothing to write.
    pub entry: Option<EntryId>,
    /// How each step ended; after a failure, also how each was taken back.
    pub outcomes: Vec<Outcome>,
    /// The host afterwards, looked at afresh.
    pub drift: Drift,
    /// What was to be persisted and nothing brings back at the next boot.
    pub unpersisted: Vec<Unpersisted>,
    /// Files for the next boot that were due, and what was to change in them. Where the entry waits for a confirm, that
    /// writes them.
    pub files: Vec<PersistFile>,
    /// What became of the huge pages of the entry whose place it took. Where the entry waits for a confirm, that one
    /// takes them.
    pub pools: Vec<PoolGoing>,
    /// How the command ends.
    pub exit: Exit,
    /// What to know or to do next.
    pub hints: Vec<String>,
}

/// Writes a plan to the host, exactly and in order, or refuses it.
///
/// # Errors
/// Refusals, before anything was written; a journal that failed half way, after the host was put back as far as
/// possible. A step that the kernel refuses is no error: the steps before it are taken back, and `exit` tells.
pub fn apply(session: &Session, plan: &Plan, options: &ApplyOptions) -> Result<Applied, PipelineError> {
    prepare::refused_outright(session, plan).into_iter().next().map_or(Ok(()), Err)?;
    let sink = session.sink()?;
    let mut journal = session.writer(Duration::ZERO)?;

    // After this point no other planish writes this host.
    gone::close(&mut journal, &session.host().boot_id())?;
    settle::pools(&mut journal, session.host(), &*sink)?;
    settle::files(session, &mut journal, &*sink)?;
    settle::sweep(&journal, session.host(), &*sink);
    let prepared = prepare::prepare(session, plan, options, &journal.ledger().entries, &*sink)?;
    let Prepared { persistence, is_in_force, files, steps, refusals } = prepared;
    PipelineError::first(refusals)?;
    if is_in_force || steps.is_empty() {
        return nothing_to_write(session, plan, options, persistence, &mut journal, &*sink);
    }

    // After this point every original is on disk, and a kill leaves an entry that undo takes back.
    let entry =
        info_span!("record").in_scope(|| journal.begin(announce(session, plan, options, &journal, steps)))?;
    if let Err(error) = watch::start(session, &journal, entry) {
        journal.close(entry, Closure::Empty)?;
        return Err(error);
    }
    let to_be_confirmed = options.confirm_seconds.is_some();
    let written = carry_out::carry_out(session, &mut journal, entry, to_be_confirmed, &*sink)?;
    if written.failed {
        return put_back(session, plan, &mut journal, written, &*sink);
    }

    // After this point every step is written and read back; an entry whose place it takes can go.
    let old = match goes(plan).filter(|_| !to_be_confirmed) {
        Some(old) => transition::complete(session, &mut journal, old, &*sink)?,
        None => Completed::default(),
    };

    // After this point nothing is written any more; the fresh look trusts none of what was.
    let drift = look_again(session, &as_written(plan, options, &persistence), &journal.ledger().entries);
    let exit = undo::worse(exit_of(&written.outcomes, &drift, options), old.exit);
    let mut hints = hints(&written.outcomes, entry, goes(plan), options);
    hints.extend(old.hints);
    hints.extend(units::to_restart(&written.outcomes));
    hints.extend(units::to_reload(&written.outcomes));
    hints.extend(units::to_isolate(&written.outcomes));
    hints.extend(units::to_reexec(&written.outcomes));
    hints.extend(units::to_confirm(plan).filter(|_| to_be_confirmed));
    hints.extend(journal.torn_note());
    hints.extend(lost_at_boot(&drift).filter(|_| options.is_for_next_boot()));
    if options.is_for_next_boot() {
        hints.extend(persistence.pending.map(|arguments| format!("reboot pending: {arguments}")));
    }
    let (unpersisted, outcomes, pools) = (persistence.left_out, written.outcomes, old.pools);
    Ok(Applied { entry: Some(entry), outcomes, drift, unpersisted, files, pools, exit, hints })
}

/// The entry whose place a plan takes.
pub(crate) fn goes(plan: &Plan) -> Option<EntryId> {
    plan.instead_of.as_ref().map(|instead| instead.entry)
}

/// Whether an apply of this plan would be let to persist it, as far as that can be found without writing: who asks now
/// need not learn it after hours.
///
/// # Errors
/// What an apply with `persist` refuses because of its files: one that is there and is not ours, a folder that we may
/// not write, a boot loader that is not known, a place that waits for a confirm.
pub fn can_persist(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let sink = session.sink()?;
    let entries = session.ledger()?.entries;
    unconfirmed::refuse(session, &entries, plan, &ApplyOptions::to_files())?;
    let persistence = Persistence::of(session, plan, &entries, &*sink)?;
    let refused = |step: &EntryStep| {
        let of_file = match step.undo {
            Undo::File => Contents::of(EntryId(0), step, &entries, session.catalogue())
                .refuse_foreign(&step.place, &*sink),
            _ => Ok(()),
        };
        of_file.and_then(|()| intent::refuse_folder(session, &step.place)).err()
    };
    PipelineError::first(persistence.steps.iter().filter_map(refused).collect())
}

/// Whether exactly this plan is in force already: a plan file that is applied twice.
///
/// An entry of the same plan is no proof: a profile whose values somebody set back makes that plan once more, and what
/// it prints is to be written. Pools count by the journal alone, since others raise and lower them too: one of which
/// pages are gone is not in force. Refuses a plan file of which a part is in force, by the places that are not.
pub(crate) fn is_in_force(
    session: &Session,
    entries: &[Entry],
    plan: &Plan,
    persistence: &Persistence,
    sink: &dyn Sink,
) -> Result<bool, PipelineError> {
    let same = |entry: &&Entry| {
        let files = entry.steps.iter().any(|step| step.knob.is_persistence());
        // An undo that left pages in use keeps its entry open; what it took back is not in force.
        let untouched =
            entry.steps.iter().filter(|step| step.part != Some(Part::Back)).all(|step| step.undone.is_none());
        let whole = untouched && entry.state == EntryState::Open;
        whole && entry.plan == plan.hash && (files || persistence.steps.is_empty())
    };
    let Some(entry) = entries.iter().rev().find(same) else { return Ok(false) };
    let seen = session.holding(entries);
    let mut steps = seen.iter().filter(|seen| seen.id == entry.id).flat_map(|entry| &entry.steps);
    if plan.steps.is_empty() || steps.any(EntryStep::is_lowered) {
        return Ok(false);
    }
    let mut moved = Vec::new();
    let is_value = |step: &&Step| step.undo != Undo::Subtract && step.part != Some(Part::Back);
    let values = || plan.steps.iter().filter(is_value);
    for step in values() {
        let kind = &session.sound_catalogue()?.knob(&step.knob)?.r#type;
        let now = match step.undo {
            Undo::File => sink.read_file(&step.place).ok().flatten(),
            _ => sink.read(&step.place).ok(),
        };
        let own = entry.steps.iter().find(|own| own.place == step.place && own.undo != Undo::File);
        // What the host made of our value is ours, too: writing it again would bring nothing.
        let ours = own.map_or(step.wanted.as_str(), EntryStep::ours);
        if !now.as_deref().is_some_and(|now| kind.same(now, ours) || kind.same(now, &step.wanted)) {
            let now = now.map_or_else(|| "gone".to_owned(), |now| format!("`{}`", kind.normal(&now)));
            let (place, ours, id) = (&step.place, kind.normal(ours), entry.id);
            moved.push(format!("{place} is {now}, and entry {id}, which is this plan, had left `{ours}`"));
        }
    }
    // Some are still ours and some are not: no plan of such a host has this hash, so that it comes from a file.
    if !moved.is_empty() && moved.len() < values().count() {
        return Err(PipelineError::Moved { moved });
    }
    Ok(moved.is_empty())
}

/// The end of an apply that finds all of its plan there: of a kill after the last write, an entry whose place the plan
/// takes may be left.
fn nothing_to_write(
    session: &Session,
    plan: &Plan,
    options: &ApplyOptions,
    persistence: Persistence,
    journal: &mut Journal,
    sink: &dyn Sink,
) -> Result<Applied, PipelineError> {
    let old = match transition::left_by(plan, &journal.ledger().entries) {
        Some(old) => transition::complete(session, journal, old, sink)?,
        None => Completed::default(),
    };
    let drift = look_again(session, plan, &journal.ledger().entries);
    // Without an entry there is nothing to confirm later: the next boot is as it will be.
    let options = &ApplyOptions { confirm_seconds: None, ..options.clone() };
    let (exit, unpersisted) = (undo::worse(exit_of(&[], &drift, options), old.exit), persistence.left_out);
    let lost = lost_at_boot(&drift).filter(|_| options.persist);
    let mut hints: Vec<String> = old.hints.into_iter().chain(journal.torn_note()).chain(lost).collect();
    let left = transition::unfinished(&journal.ledger().entries);
    hints.extend(left.into_iter().map(|left| format!("{left}: planish undo {}", left.old)));
    let (outcomes, files, pools) = (Vec::new(), Vec::new(), old.pools);
    Ok(Applied { entry: None, outcomes, drift, unpersisted, files, pools, exit, hints })
}

/// A step as it is to be written, with the folders that its file needs; `None` for a file that has its lines already,
/// by entries of this profile and none that goes. Refuses a file of our name that is not as we left it, and a file in a
/// folder where none can be written: found out at the write, it would be an entry that failed.
pub(crate) fn due(
    session: &Session,
    step: EntryStep,
    plan: &Plan,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<Option<EntryStep>, PipelineError> {
    if step.undo == Undo::Edit {
        intent::refuse_folder(session, &step.place)?;
    }
    if step.undo != Undo::File {
        return Ok(Some(step));
    }
    let contents = Contents::of(EntryId(0), &step, entries, session.catalogue());
    if !lacks_lines(session, (&step, plan), &contents, entries, sink)? {
        return Ok(None);
    }
    intent::refuse_folder(session, &step.place)?;
    let folders = contents.folders(&step.place, session);
    Ok(Some(EntryStep { folders, ..step }))
}

/// Whether a step is to be written, by whoever may: the same without a look at the folder of its file.
pub(crate) fn is_due(
    session: &Session,
    step: &EntryStep,
    plan: &Plan,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<bool, PipelineError> {
    if step.undo != Undo::File {
        return Ok(true);
    }
    lacks_lines(
        session,
        (step, plan),
        &Contents::of(EntryId(0), step, entries, session.catalogue()),
        entries,
        sink,
    )
}

/// Whether the file of a step lacks lines of it, where those of the entry go whose place the plan takes. Lines that
/// entries of other profiles alone have would go with those.
fn lacks_lines(
    session: &Session,
    (step, plan): (&EntryStep, &Plan),
    contents: &Contents,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<bool, PipelineError> {
    contents.refuse_foreign(&step.place, sink)?;
    let stay = without(entries, goes(plan));
    let has = Contents::of(EntryId(0), step, &stay, session.catalogue()).has(
        step,
        session.sound_catalogue()?,
        sink,
    );
    // What the plan holds is the newer entry's, too, whoever of its profile has it, and so are the lines for it.
    let is_held = step.part == Some(Part::TakenOver)
        || step.knob.is_persistence() && plan.steps.iter().any(|step| step.beside.is_some());
    Ok(is_held || !has || !has_of_profile(step, &plan.profile, &stay))
}

/// Whether open entries of a profile have all lines of a step in its file.
fn has_of_profile(step: &EntryStep, profile: &str, entries: &[Entry]) -> bool {
    let own = entries.iter().filter(|entry| entry.is_open() && entry.profile == profile);
    let files = own.flat_map(|entry| &entry.steps);
    let files = files.filter(|file| file.place == step.place && file.is_in_file() && !file.is_undone());
    let lines: BTreeSet<&str> = files.flat_map(|file| file.wanted.lines()).collect();
    step.wanted.lines().all(|line| lines.contains(line))
}

/// The entries without one that goes.
pub(crate) fn without(entries: &[Entry], gone: Option<EntryId>) -> Vec<Entry> {
    entries.iter().filter(|entry| Some(entry.id) != gone).cloned().collect()
}

/// A plan as far as its steps are on the host: files wait for the confirm, where there is one. What no file will bring
/// does not wait for it.
fn as_written(plan: &Plan, options: &ApplyOptions, persistence: &Persistence) -> Plan {
    let mut written = plan.clone();
    if options.confirm_seconds.is_some() {
        written.steps.retain(|step| !step.undo.outlives_boot());
        let is_left_out = |place: &str| persistence.left_out.iter().any(|left| left.place == place);
        let is_given = |place: &str| {
            options.persist && plan.boot.iter().any(|step| step.place == place) && !is_left_out(place)
        };
        written.skipped.retain(|skipped| !is_given(&skipped.place));
    }
    written
}

/// What is to be there at the next boot: the values that a plan writes or finds, save those that go back, and its boot
/// parameters.
fn for_next_boot(plan: &Plan) -> Plan {
    let written = plan.steps.iter().filter(|step| step.part != Some(Part::Back)).map(|step| {
        let (knob, place, wanted) = (step.knob.clone(), step.place.clone(), step.wanted.clone());
        Skipped::satisfied(knob, place, wanted, step.verdict.clone())
    });
    let is_due =
        |row: &&Skipped| row.satisfied || plan.boot.iter().any(|parameter| parameter.place == row.place);
    let rows = written.chain(plan.skipped.iter().filter(is_due).cloned()).collect();
    let (profile, host_id, boot_id) = (plan.profile.clone(), plan.host_id.clone(), plan.boot_id.clone());
    Plan::new(profile, host_id, boot_id, Vec::new(), rows).with_boot(plan.boot.clone())
}

fn announce(
    session: &Session,
    plan: &Plan,
    options: &ApplyOptions,
    journal: &Journal,
    steps: Vec<EntryStep>,
) -> Intent {
    Intent {
        command: session.options.command.clone(),
        reason: options.reason.clone(),
        profile: plan.profile.clone(),
        plan: plan.hash.clone(),
        allowed: plan.allowed.clone(),
        instead_of: goes(plan),
        confirm_by: options.confirm_seconds.map(|seconds| journal.now().saturating_add(seconds)),
        on_confirm: (options.persist && options.confirm_seconds.is_some())
            .then(|| Box::new(for_next_boot(plan))),
        steps,
    }
}

/// After a failed step: a plan is applied whole or not at all.
fn put_back(
    session: &Session,
    plan: &Plan,
    journal: &mut Journal,
    written: Written,
    sink: &dyn Sink,
) -> Result<Applied, PipelineError> {
    let entry = written.entry.id;
    let PutBack { failed, outcomes, in_use, is_only_in_use, exit } =
        carry_out::put_back(session, journal, written, sink)?;
    let reason = failed.detail.unwrap_or_else(|| "it is no longer there".to_owned());
    let mut hints = vec![format!("{} failed: {reason}", failed.knob)];
    hints.extend(in_use);
    if exit == Exit::FailedNotRestored && !is_only_in_use {
        hints.push(format!("what is left is in `planish log`; try again with: planish undo {entry}"));
    }
    let drift = look_again(session, plan, &journal.ledger().entries);
    let (unpersisted, files, pools) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Applied { entry: Some(entry), outcomes, drift, unpersisted, files, pools, exit, hints })
}

/// The places of a plan, looked at afresh, against the plan and the entries of this boot.
pub(crate) fn look_again(session: &Session, plan: &Plan, entries: &[Entry]) -> Drift {
    held_against(session, Some(plan), entries, &session.observe_planned(plan))
}

/// What was seen of the host against a plan, or without one against all that is applied, and the entries of this boot.
pub(crate) fn held_against(
    session: &Session,
    plan: Option<&Plan>,
    entries: &[Entry],
    observation: &Observation,
) -> Drift {
    let known = session.in_boot(entries);
    // What was there before an entry that is gone by now was there before the one above it: a place that was taken
    // over shows a value of ours, and not what the host brings by itself.
    let of_now = |entry: &Entry| Entry {
        steps: entry.steps.iter().map(|step| stack::with_originals(step, &known)).collect(),
        ..entry.clone()
    };
    let open: Vec<Entry> = known.iter().filter(|entry| entry.is_open()).map(of_now).collect();
    let _stage = info_span!("verify").entered();
    planish_verify::verify(session.catalogue(), plan, &open, observation)
}

/// Findings where the host is not as asked for: now, and where the next boot was asked for, then too.
fn exit_of(outcomes: &[Outcome], drift: &Drift, options: &ApplyOptions) -> Exit {
    let short = |outcome: &Outcome| {
        matches!(outcome.outcome, OutcomeKind::Short | OutcomeKind::ReadsBack) || boot::has_lost(outcome)
    };
    let drifted = drift.knobs.iter().any(|knob| knob.state == DriftState::Drift);
    let lost = options.is_for_next_boot() && !drift.is_clean();
    if drifted || lost || outcomes.iter().any(short) { Exit::Findings } else { Exit::Done }
}

/// What was to be persisted and will be overwritten at boot by a file that is read after ours, or by
/// another program.
pub(crate) fn lost_at_boot(drift: &Drift) -> impl Iterator<Item = String> {
    let is_lost = |state| matches!(state, DriftState::LostAtBoot | DriftState::OverwrittenAtBoot);
    let lost = drift.knobs.iter().filter(|knob| is_lost(knob.state));
    let mut told: Vec<(&KnobId, &str, usize)> = Vec::new();
    for knob in lost {
        let why = knob.because.as_deref().unwrap_or("lost at the next boot");
        let file = without_line(why);
        match told.iter_mut().find(|(id, known, _)| *id == &knob.knob && without_line(known) == file) {
            // Each place has a line of its own in a file.
            Some((_, known, count)) => {
                (*known, *count) = (if *known == why { why } else { file }, *count + 1)
            }
            None => told.push((&knob.knob, why, 1)),
        }
    }
    let sentence = |(id, why, count): (&KnobId, &str, usize)| match count {
        1 => format!("{id}: {why}"),
        count => format!("{id} x{count}: {why}"),
    };
    told.into_iter().map(sentence).collect::<Vec<_>>().into_iter()
}

/// A reason without the number of the line at its end.
fn without_line(why: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    why.rsplit_once(':').filter(|(_, line)| is_number(line)).map_or(why, |(file, _)| file)
}

/// What is to know of a file that was written for the next boot: a menu that is still to be made of it.
pub(crate) fn of_file(outcome: &Outcome) -> Option<String> {
    let detail = outcome.detail.as_ref().filter(|_| outcome.knob.is_persistence())?;
    Some(format!("{}: {detail}", outcome.place))
}

fn hints(
    outcomes: &[Outcome],
    entry: EntryId,
    instead_of: Option<EntryId>,
    options: &ApplyOptions,
) -> Vec<String> {
    let mut hints = Vec::new();
    for outcome in outcomes {
        hints.extend(of_file(outcome));
        if let Some(short) = &outcome.short {
            let (granted, asked) = (short.granted, short.asked);
            hints.push(format!("{}: {granted} of {asked} pages granted: {}", outcome.place, short.reason));
        }
    }
    if let Some(seconds) = options.confirm_seconds {
        if let Some(old) = instead_of {
            hints.push(format!(
                "entry {old} stays until planish confirm: until then undo goes back to what it set"
            ));
        }
        hints.push(format!("entry {entry} is undone in {seconds} s unless: planish confirm"));
        if options.persist {
            hints.push("the files for the next boot are written by planish confirm".to_owned());
        }
    }
    hints
}
