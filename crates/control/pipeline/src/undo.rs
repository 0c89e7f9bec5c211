//! `planish undo`: the host as it was, save for what others have set since.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_act::stack::Resolved;
use planish_act::{Sink, boot, hand_over, hand_pages, stack, take_back as take_back_step};
use planish_host::{Host, resctrl};
use planish_journal::{Handed, Journal, JournalError, NOT_CONFIRMED};
use planish_model::place::mount_point;
use planish_model::{Closure, Entry, EntryId, EntryStep, Exit, Original, Outcome, OutcomeKind, Step, Undo};
use planish_observe::GivenPools;
use tracing::info_span;

use crate::contents::Contents;
use crate::error::PipelineError;
use crate::session::Session;
use crate::{
    bereft, copied, devices, gone, install, next_boot, pools, program, relocate, settle, transition, unborne,
    units, until_reboot,
};

/// Which entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The newest that still holds something.
    Newest,
    /// This one.
    Entry(EntryId),
    /// All that still hold something, newest first.
    All,
}

/// What an undo did.
#[derive(Clone, Debug, Default)]
pub struct Undone {
    /// Each entry with how its steps were taken back.
    pub entries: Vec<(EntryId, Vec<Outcome>)>,
    /// The same entries as they were before that, with the originals that counted: those of the entries whose places
    /// they had taken, too.
    pub before: Vec<Entry>,
    /// How the command ends.
    pub exit: Exit,
    /// Whether the journal says so too.
    pub recorded: bool,
    /// What to know or to do next.
    pub hints: Vec<String>,
    /// The entry that left a value to somebody else which force would write, and no file; where there was nothing to
    /// take back, the newest of this boot.
    pub kept: Option<EntryId>,
}

/// How far an undo goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner<'a> {
    /// How long it waits for another planish to finish.
    pub patience: Duration,
    /// What someone else set since is overwritten.
    pub force: bool,
    /// It is the timer that asks, since nobody confirmed the entry.
    pub by_timer: bool,
    /// A journal that is damaged, or cannot be written, ends nothing. These entries are known from before.
    pub salvage: Option<&'a [Entry]>,
}

/// Takes entries back, newest first. What someone else set since is kept and told, unless forced.
///
/// # Errors
/// No such entry, a journal that cannot be used or that is root's, another planish at work: for entries that are
/// not named and without force, a trial that runs is one also between its writes.
pub fn undo(session: &Session, target: Target, force: bool) -> Result<Undone, PipelineError> {
    session.refuse_hidden()?;
    if session.is_untouched()? {
        match target {
            Target::Entry(id) => return Err(JournalError::NoEntry { id }.into()),
            Target::Newest | Target::All if !force => session.refuse_trial()?,
            Target::Newest | Target::All => {}
        }
    }
    let manner = Manner { patience: Duration::ZERO, force, by_timer: false, salvage: force.then_some(&[]) };
    let mut undone = undo_selected(session, manner, |journal| {
        if !force && !matches!(target, Target::Entry(_)) {
            session.refuse_trial()?;
        }
        let selected = select(journal, target, force, &session.host().boot_id())?;
        relocate::refuse_undo(session, journal, &selected)?;
        Ok(selected)
    })?;
    if undone.entries.is_empty() {
        let lost = out_of_reach(session, target)?;
        undone.exit = if lost.is_some() { worse(undone.exit, Exit::Findings) } else { undone.exit };
        undone.hints.extend(lost);
        undone.kept = kept_theirs(session)?;
        undone.hints.extend(undone.kept.map(|id| {
            format!("entry {id} left what someone else set since: planish undo {id} --force writes that, too")
        }));
    }
    Ok(undone)
}

/// Where an archived entry is named that left a value to somebody else: what it takes to set that back by hand. The
/// newest that left the place is in the journal, and can be forced.
fn out_of_reach(session: &Session, target: Target) -> Result<Option<String>, PipelineError> {
    let Target::Entry(id) = target else { return Ok(None) };
    if !session.ledger()?.is_archived(id) {
        return Ok(None);
    }
    let entry = session.in_boot(&session.history()?).into_iter().find(|entry| entry.id == id);
    let left = entry.filter(|entry| entry.steps.iter().any(EntryStep::left_theirs));
    Ok(left.map(|_| {
        format!(
            "entry {id} is archived, and can no longer be forced: planish log --verbose tells its originals"
        )
    }))
}

/// Whether an undo left values of an entry to somebody else, and no file: of a file force takes all that others wrote
/// into it along, and nobody is sent there who has not looked. Of a pool that has no page of ours any more there is
/// nothing to force.
fn left_values_alone(entry: &Entry) -> bool {
    let is_left =
        |step: &&EntryStep| step.left_theirs() && (step.undo != Undo::Subtract || step.pages_held() > 0);
    let mut left = entry.steps.iter().filter(is_left).map(|step| step.undo.is_file());
    left.next().is_some_and(|is_file| !is_file && left.all(|is_file| !is_file))
}

/// The first of the entries that were taken back of which values alone were left.
fn kept_of(undone: &Undone, entries: &[Entry]) -> Option<EntryId> {
    let left = |id: &EntryId| entries.iter().any(|entry| entry.id == *id && left_values_alone(entry));
    undone.entries.iter().map(|(id, _)| *id).find(left)
}

/// The newest closed entry of this boot that left values alone to somebody else.
fn kept_theirs(session: &Session) -> Result<Option<EntryId>, PipelineError> {
    let boot_id = session.host().boot_id();
    let kept = |entry: &&Entry| !entry.is_open() && entry.boot_id == boot_id && left_values_alone(entry);
    let entries = session.in_boot(&session.ledger()?.entries);
    Ok(entries.iter().rev().find(kept).map(|entry| entry.id))
}

/// Takes back the entries that are selected once the host is ours.
pub(crate) fn undo_selected(
    session: &Session,
    manner: Manner<'_>,
    select: impl FnOnce(&Journal) -> Result<Vec<EntryId>, PipelineError>,
) -> Result<Undone, PipelineError> {
    let sink = session.sink()?;
    // What is known of entries stands for a journal that is gone.
    if manner.salvage.is_none_or(<[Entry]>::is_empty) && session.is_untouched()? {
        return Ok(Undone { recorded: true, ..Undone::default() });
    }
    let mut journal = match manner.salvage {
        Some(known) => session.salvager(manner.patience, known)?,
        None => session.writer(manner.patience)?,
    };
    let boot_id = session.host().boot_id();
    gone::close(&mut journal, &boot_id)?;
    settle::pools(&mut journal, session.host(), &*sink)?;
    settle::files(session, &mut journal, &*sink)?;
    settle::sweep(&journal, session.host(), &*sink);

    // After this point no other planish writes this host. What an entry holds follows from the journal alone; where
    // some of it is lost, or cannot be written, force meant that, and nobody's value is overwritten besides.
    let force = manner.force && journal.lost().is_empty() && !journal.is_unrecorded();
    let hints_of_journal = journal.torn_note().into_iter().chain(journal.lost().iter().cloned()).collect();
    let exit = if journal.lost().is_empty() { Exit::Done } else { Exit::Findings };
    let recorded = !journal.is_unrecorded();
    let mut undone = Undone { exit, recorded, hints: hints_of_journal, ..Undone::default() };
    let command = format!("{}{}", session.options.command, if manner.by_timer { NOT_CONFIRMED } else { "" });
    let selected = select(&journal)?;
    // Force opens closed ones, too.
    session.refuse_other_host(selected.iter().filter_map(|id| journal.ledger().entry(*id)))?;
    // A timer and a journal that cannot be used have nobody to ask.
    if !manner.force && !manner.by_timer && manner.salvage.is_none() {
        unborne::refuse(session, &journal.ledger().entries, &selected)?;
    }
    let mut taken = Vec::new();
    for id in &selected {
        taken.push(take_entry(session, &mut journal, *id, &command, force, &*sink)?);
    }
    // What the host would not bear between two of them it may bear behind the last.
    let (end, is_recorded) = (taken.len().saturating_sub(1), !journal.is_unrecorded());
    for first in taken[..end].iter_mut().filter(|first| first.is_held() && is_recorded) {
        let again = take_entry(session, &mut journal, first.entry.id, &command, force, &*sink)?;
        first.go_on(again.back);
    }
    for one in taken {
        tell(session, &journal, one, force, &*sink, &mut undone);
    }
    tell_copies(session, &journal.ledger().entries, &mut undone);
    tell_bereft(session, &journal.ledger().entries, &mut undone);
    tell_next_boot(session, &mut undone);
    // What force left is left by force once more.
    undone.kept = kept_of(&undone, &journal.ledger().entries).filter(|_| !force);
    undone.hints.extend(unrecorded(session, &journal));
    journal.sweep_records();
    Ok(undone)
}

/// An entry that was taken back.
struct Taken {
    /// As it was before, at the places where its devices are.
    entry: Entry,
    /// The same with the originals that counted.
    before: Entry,
    back: Back,
}

impl Taken {
    /// Whether a value was left that the host would not have borne.
    fn is_held(&self) -> bool {
        self.back
            .outcomes
            .iter()
            .any(|back| back.outcome == OutcomeKind::InUse && is_value(&self.entry, back))
    }

    /// Adds how the rest of it was taken back later.
    fn go_on(&mut self, again: Back) {
        let Back { outcomes, left, journal_failure } = again;
        for outcome in outcomes {
            match self.back.outcomes.iter_mut().find(|earlier| earlier.place == outcome.place) {
                Some(earlier) => *earlier = outcome,
                None => self.back.outcomes.push(outcome),
            }
        }
        (self.back.left, self.back.journal_failure) = (left, journal_failure);
    }
}

/// Takes one entry back.
fn take_entry(
    session: &Session,
    journal: &mut Journal,
    id: EntryId,
    command: &str,
    force: bool,
    sink: &dyn Sink,
) -> Result<Taken, PipelineError> {
    let mut entry = journal.ledger().entry(id).expect("it was selected from the ledger").clone();
    devices::follow(session.host(), std::slice::from_mut(&mut entry));
    let known = session.in_boot(&journal.ledger().entries);
    let steps = entry.steps.iter().map(|step| before_all(&entry, step, &known)).collect();
    let before = Entry { steps, ..entry.clone() };
    let mut back = undo_entry(session, journal, &entry, command, force, sink);
    match back.journal_failure.take() {
        Some(source) => {
            let restored = back.is_restored(&entry);
            Err(PipelineError::JournalHalfWay { entry: id, restored, source })
        }
        None => Ok(Taken { entry, before, back }),
    }
}

/// A step with the originals that count now; of a pool also that of the entry whose place its own took, which had its
/// pages there before.
fn before_all(entry: &Entry, step: &EntryStep, known: &[Entry]) -> EntryStep {
    let mut step = stack::with_originals(step, known);
    let before = transition::pool_before(entry, &step, known);
    let place = step.place.clone();
    let own = step.originals.iter_mut().find(|original| original.place == place);
    if let Some((own, before)) = own.zip(before) {
        own.value = before;
    }
    step
}

/// Tells how an entry was taken back.
fn tell(
    session: &Session,
    journal: &Journal,
    taken: Taken,
    force: bool,
    sink: &dyn Sink,
    undone: &mut Undone,
) {
    let (Taken { entry, before, back }, entries) = (taken, &journal.ledger().entries);
    undone.hints.extend(hints(&entry, &back.outcomes, force));
    undone.hints.extend(until_reboot::of_earlier_boot(session, &entry, &back.outcomes));
    undone.hints.extend(until_reboot::values(session, entries, &entry, &back.outcomes));
    undone.hints.extend(until_reboot::arguments(session, &entry, &back.outcomes));
    undone.hints.extend(install::after_undo(session, &back.outcomes));
    undone.hints.extend(units::to_restart(&back.outcomes));
    undone.hints.extend(units::to_reload(&back.outcomes));
    undone.hints.extend(units::to_reexec(&back.outcomes));
    undone.exit = worse(undone.exit, exit_of(&entry, &back));
    if journal.is_unrecorded() {
        let is_restored = back.is_restored(&entry);
        let end = if is_restored { Exit::FailedRestored } else { Exit::FailedNotRestored };
        undone.exit = worse(undone.exit, end);
    }
    let told = back.outcomes.into_iter().map(|outcome| with_present(outcome, &entry, sink));
    undone.entries.push((entry.id, told.collect()));
    undone.before.push(before);
}

/// Tells of copies of boot parameters that somebody made, and that an undo leaves.
fn tell_copies(session: &Session, entries: &[Entry], undone: &mut Undone) {
    let ids: Vec<EntryId> = undone.entries.iter().map(|(id, _)| *id).collect();
    let lines = copied::after_undo(session, entries, &ids);
    let told = lines.iter().map(|line| format!("{line}: {}", line.cure()));
    for hint in told.chain(copied::untold(session, entries, &ids)) {
        undone.hints.push(hint);
        undone.exit = worse(undone.exit, Exit::Findings);
    }
}

/// Tells of entries that had found as wanted what went back, or are overruled by it.
fn tell_bereft(session: &Session, entries: &[Entry], undone: &mut Undone) {
    let mut told = bereft::told(entries, &undone.entries, session.catalogue());
    let read = |place: &str| session.host().read(place).ok();
    told.extend(bereft::overruled(entries, &undone.entries, &read));
    told.extend(bereft::of_older(entries, &undone.entries, session.catalogue()));
    if !told.is_empty() {
        undone.exit = worse(undone.exit, Exit::Findings);
        undone.hints.extend(told);
    }
}

/// Tells of a limit that went out of a file, and of the mode that another one keeps.
fn tell_next_boot(session: &Session, undone: &mut Undone) {
    let mut outcomes = undone.entries.iter().flat_map(|(_, outcomes)| outcomes);
    if outcomes.any(|outcome| outcome.knob.is_persistence() && outcome.outcome == OutcomeKind::Done) {
        let starved = next_boot::starves(session, &BTreeMap::new());
        undone.exit = if starved.is_some() { worse(undone.exit, Exit::Findings) } else { undone.exit };
        undone.hints.extend(starved);
    }
}

/// The outcome of a place that was left to a newer entry, with what it shows: nothing was written, so that nothing was
/// read back. The journal needs none of it.
fn with_present(outcome: Outcome, entry: &Entry, sink: &dyn Sink) -> Outcome {
    let is_left = outcome.outcome == OutcomeKind::HandedOver && outcome.read_back.is_none();
    let step = entry.steps.iter().find(|step| step.place == outcome.place && step.undo == Undo::Restore);
    match step.filter(|_| is_left) {
        Some(step) => Outcome { read_back: sink.read(&step.place).ok(), ..outcome },
        None => outcome,
    }
}

/// What to do after an undo that nothing could record.
fn unrecorded(session: &Session, journal: &Journal) -> Option<String> {
    let folder = session.state_folder().display();
    let hint = format!(
        "nothing of this is in the journal: make {folder} writable, then once more: planish undo --all"
    );
    journal.is_unrecorded().then_some(hint)
}

/// The entries that a target means, newest first.
fn select(
    journal: &Journal,
    target: Target,
    force: bool,
    boot_id: &str,
) -> Result<Vec<EntryId>, PipelineError> {
    let ledger = journal.ledger();
    let open = |entry: &&Entry| entry.is_open();
    // Of what is closed, force takes what was left to somebody else and is still there in this boot. Not where lines
    // of the journal are lost, or none can be written: then it overwrites nobody's value.
    let overwrites = force && journal.lost().is_empty() && !journal.is_unrecorded();
    let left = |entry: &Entry| {
        let is_here = |step: &EntryStep| entry.boot_id == boot_id || step.undo.outlives_boot();
        entry.steps.iter().any(|step| step.left_theirs() && is_here(step))
    };
    Ok(match target {
        Target::Newest => ledger.entries.iter().rev().find(open).map(|entry| entry.id).into_iter().collect(),
        Target::All => {
            let meant = |entry: &&Entry| entry.is_open() || (overwrites && left(entry));
            ledger.entries.iter().rev().filter(meant).map(|entry| entry.id).collect()
        }
        Target::Entry(id) if ledger.is_archived(id) => Vec::new(),
        Target::Entry(id) => {
            let entry = ledger.entry(id).ok_or(JournalError::NoEntry { id })?;
            // An entry that kept theirs is closed; force opens it once more.
            let pending = entry.steps.iter().any(|step| is_pending(step, force));
            if entry.is_open() || pending { vec![id] } else { Vec::new() }
        }
    })
}

/// Whether a step is still to be taken back.
fn is_pending(step: &EntryStep, force: bool) -> bool {
    !step.is_undone() || (force && step.left_theirs())
}

/// How taking back an entry went.
pub(crate) struct Back {
    /// How each step that was still there was taken back, in the order of the writes.
    pub outcomes: Vec<Outcome>,
    /// Whether something of the entry is still on the host.
    pub left: bool,
    /// Why the journal does not say all of this.
    pub journal_failure: Option<JournalError>,
}

impl Back {
    /// Whether the host is as it was. It is not where someone else's value was kept.
    pub fn is_restored(&self, entry: &Entry) -> bool {
        !self.left && self.outcomes.iter().all(|outcome| is_back(entry, outcome))
    }
}

/// Whether an undo found nothing any more where this entry had written.
fn lost_place(entry: &Entry, back: &Outcome) -> bool {
    entry.steps.iter().any(|step| step.place == back.place && step.is_lost(back))
}

/// Whether a place is as it was. One that vanished is, as long as nothing was written to it.
pub(crate) fn is_back(entry: &Entry, back: &Outcome) -> bool {
    match back.outcome {
        OutcomeKind::Vanished => !lost_place(entry, back),
        OutcomeKind::Done | OutcomeKind::Satisfied | OutcomeKind::NotReached => true,
        kind => matches!(kind, OutcomeKind::HandedOver | OutcomeKind::GoneWithReboot),
    }
}

/// Takes an entry back, with its beginning and its end in the journal.
pub(crate) fn undo_entry(
    session: &Session,
    journal: &mut Journal,
    entry: &Entry,
    command: &str,
    force: bool,
    sink: &dyn Sink,
) -> Back {
    // A disk that is full now must not keep the host from coming back: the failure is told at the end.
    let _stage = info_span!("act").entered();
    let unannounced = journal.begin_undo(entry.id, command, force).err();
    let heir = transition::heir(entry.id, &journal.ledger().entries).map(|heir| heir.id);
    let mut back = take_back(session, journal, entry, force, sink);
    let gone = |outcome: &Outcome| outcome.outcome == OutcomeKind::GoneWithReboot;
    let ended = if back.left {
        journal.left_open(entry.id)
    } else if let Some(heir) = heir {
        journal.replaced(entry.id, heir)
    } else if back.outcomes.iter().all(gone) && !back.outcomes.is_empty() {
        journal.close(entry.id, Closure::GoneWithReboot)
    } else {
        journal.close(entry.id, Closure::Undone)
    };
    back.journal_failure = unannounced.or(back.journal_failure).or(ended.err());
    back
}

/// Whether an undo leaves something of a step on the host. A place that vanished may come back with our value; force
/// gives it up.
fn is_left(step: &EntryStep, outcome: &Outcome, force: bool) -> bool {
    matches!(outcome.outcome, OutcomeKind::InUse | OutcomeKind::Failed) || (step.is_lost(outcome) && !force)
}

/// Looks once more, behind all steps, at those that were refused: what goes back with another, as a hint does with its
/// governor, is there by then. The outcomes are in the order of the writes.
fn look_behind_all(
    journal: &mut Journal,
    (known, own): (&[Entry], usize),
    (force, sink): (bool, &dyn Sink),
    mut back: Back,
) -> Back {
    let entry = &known[own];
    let mut failure = None;
    for outcome in back.outcomes.iter_mut().filter(|outcome| outcome.outcome == OutcomeKind::Failed) {
        let mut steps = entry.steps.iter().enumerate();
        let is_it = |step: &EntryStep| step.undo == Undo::Restore && step.place == outcome.place;
        let Some((index, step)) = steps.find(|(_, step)| is_it(step)) else { continue };
        let step = stack::with_originals(step, known);
        let Some((original, now)) = step.original().zip(sink.read(&step.place).ok()) else { continue };
        if original.r#type.same(&now, &original.value) {
            outcome.outcome = OutcomeKind::Satisfied;
            (outcome.read_back, outcome.detail) = (Some(now), None);
            failure = failure.or(journal.undone(entry.id, index, outcome.clone()).err());
        }
    }
    let is_left = |outcome: &Outcome| {
        let mut steps = entry.steps.iter().filter(|step| step.place == outcome.place);
        steps.any(|step| is_left(step, outcome, force))
    };
    back.left = back.left && back.outcomes.iter().any(is_left);
    back.journal_failure = back.journal_failure.take().or(failure);
    back.outcomes.reverse();
    back
}

/// Takes the steps of an entry back, the last one first, and modes and their limits by their values. A journal that
/// fails does not keep values from going back; it keeps pools from being written, since after a kill nobody could tell
/// whose the pages were.
///
/// The entry has its steps at the places where their devices are now.
pub(crate) fn take_back(
    session: &Session,
    journal: &mut Journal,
    entry: &Entry,
    force: bool,
    sink: &dyn Sink,
) -> Back {
    let (host, boot_id, given) = (session.host(), &session.host().boot_id(), session.given_pools());
    let mut back = Back { outcomes: Vec::new(), left: false, journal_failure: None };
    let mut known = gone::in_boot(&journal.ledger().entries, boot_id, host, &|place| sink.read(place).ok());
    let of_boot = known.iter().position(|other| other.id == entry.id).expect("it is in the journal");
    if entry.boot_id == *boot_id {
        // Outcomes that a failed journal does not have.
        known[of_boot] = entry.clone();
    }
    let before = as_before(&given, &known[of_boot], &known, sink);
    for index in way_back(session, entry, &known, force) {
        let (step, mut handed) = (&known[of_boot].steps[index], None);
        if !is_pending(&entry.steps[index], force) && !is_pending(step, force) {
            continue;
        }
        // What no journal keeps must not change hands: the next process would find it with both.
        let known_heir = transition::heir(entry.id, &known).filter(|_| !journal.is_unrecorded());
        let inherits = transition::inherits(known_heir, step);
        let unreached = step.outcome.clone().filter(|outcome| outcome.outcome == OutcomeKind::NotReached);
        let outcome = if let Some(unreached) = unreached {
            unreached
        } else if gone::is_gone(step) {
            Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::GoneWithReboot)
        } else if step.undo == Undo::File {
            let removed = Contents::of(entry.id, step, &known, session.catalogue()).remove(step, force, sink);
            units::give_back(removed, host, &known, force, sink)
        } else if matches!(step.undo, Undo::Moved | Undo::Exchanged) {
            take_back_whole(journal, host, (entry.id, step), &known, force, sink)
        } else {
            let resolved = resolved(session, (&known[of_boot], index, before[index]), &known, (&given, sink));
            match (stack::covering(entry.id, &resolved.step, &known), inherits) {
                (Some(newer), _) => hand_over(&resolved, newer, sink),
                (None, Some((to, at, pages))) => {
                    let record = &mut |write| Ok(journal.pool(entry.id, index, write)?);
                    let (outcome, pages) = hand_pages(&resolved, pages, force, sink, record);
                    handed = handed_to((to, at), (&resolved, before[index]), pages);
                    told_of_pages(outcome, handed)
                }
                (None, None) => {
                    let record = &mut |write| Ok(journal.pool(entry.id, index, write)?);
                    let outcome = match step.undo {
                        Undo::Edit => boot::remove(&resolved.step, entry.id, &known, force, sink),
                        _ => take_back_step(&resolved, force, sink, record),
                    };
                    if entry.boot_id == *boot_id { outcome } else { told_of_reboot(outcome, &resolved.step) }
                }
            }
        };
        back.left |= is_left(step, &outcome, force);
        let told = match handed {
            Some(handed) => journal.undone_and_handed(entry.id, index, outcome.clone(), handed),
            None => journal.undone(entry.id, index, outcome.clone()),
        };
        back.journal_failure = back.journal_failure.take().or(told.err());
        known[of_boot].steps[index].begun = None;
        known[of_boot].steps[index].undone = Some(outcome.clone());
        handed.into_iter().for_each(|handed| take_over(&mut known, handed));
        back.outcomes.push(outcome);
    }
    look_behind_all(journal, (&known, of_boot), (force, sink), back)
}

/// The pages of a step that an entry has now, by its own step `at`. A line of others goes along where it means none.
fn handed_to(
    (to, at): (EntryId, usize),
    (resolved, is_as_before): (&Resolved, bool),
    pages: u64,
) -> Option<Handed> {
    let line = resolved.step.line.filter(|_| is_as_before);
    (pages > 0).then_some(Handed { to, step: at, pages, line })
}

/// Of each step of an entry whether a line of others means none of its pages, as the host is before an undo of it.
fn as_before(given: &GivenPools<'_>, entry: &Entry, known: &[Entry], sink: &dyn Sink) -> Vec<bool> {
    let read = |place: &str| sink.read(place).ok();
    let is_as_before = |step: &EntryStep| pools::is_as_before(given, (entry.id, step), known, &read);
    entry.steps.iter().map(is_as_before).collect()
}

/// Gives pages that a step of an entry held to the one which has them now, as the journal does.
fn take_over(known: &mut [Entry], Handed { to, step, pages, line }: Handed) {
    let heir = known.iter_mut().find(|entry| entry.id == to).expect("it is known to inherit");
    heir.steps[step].take_over(pages, line);
}

/// A step as it is to be taken back now, with what of its originals the host would not bear, and of a pool with what a
/// line of others gives, unless that is as before and means none of its pages.
fn resolved(
    session: &Session,
    (entry, index, is_as_before): (&Entry, usize, bool),
    known: &[Entry],
    (given, sink): (&GivenPools<'_>, &dyn Sink),
) -> Resolved {
    let mut resolved = stack::resolved(entry, index, known);
    resolved.step = boot::resolved(&resolved.step, entry.id, known);
    resolved.unborne = unborne::at_write(session, &resolved.step);
    if resolved.step.undo == Undo::Subtract && !is_as_before {
        let read = |place: &str| sink.read(place).ok();
        resolved.claim = pools::claim(given, &resolved.step, known, &read);
    }
    resolved
}

/// The order in which the steps of an entry go back, by the values that they go back to: those of entries that it lies
/// over and that are undone count, and not what those had left. What bounds each other goes by no state that a plan is
/// refused for, from what the host has now; what force takes up once more is among them.
pub(crate) fn way_back(session: &Session, entry: &Entry, known: &[Entry], force: bool) -> Vec<usize> {
    let catalogue = session.catalogue();
    let now = |original: &Original| session.host().read(&original.place).ok();
    let going = |step: &EntryStep| {
        let own = stack::with_originals(step, known);
        let back = planish_decide::going_back(catalogue, [&own], &now);
        back.into_iter().find(|back| is_pending(step, force) && back.place == own.place)
    };
    let going: Vec<Option<Step>> = entry.steps.iter().map(going).collect();
    planish_decide::back(&going, catalogue, &|steps| session.observe_steps(steps))
}

/// Takes back what is no value of a place: pages and threads of a process, the file of a program.
fn take_back_whole(
    journal: &Journal,
    host: &Host,
    (id, step): (EntryId, &EntryStep),
    known: &[Entry],
    force: bool,
    sink: &dyn Sink,
) -> Outcome {
    match step.undo {
        Undo::Exchanged => program::take_back(host, step, force, sink),
        _ => relocate::take_back(journal, host, (id, step), known, force, sink),
    }
}

/// What became of a pool some of whose pages another entry has now.
fn told_of_pages(mut outcome: Outcome, handed: Option<Handed>) -> Outcome {
    let Some(Handed { to, pages, .. }) = handed else { return outcome };
    if matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied) {
        outcome.outcome = OutcomeKind::HandedOver;
        outcome.detail = Some(format!("{pages} of its pages are those of entry {to} now"));
    }
    outcome
}

/// A value that a file brought at this boot and that could not be put back: it goes with the next one all the same.
fn told_of_reboot(mut outcome: Outcome, step: &EntryStep) -> Outcome {
    if outcome.outcome == OutcomeKind::Failed {
        let original =
            step.original().map(|original| format!(", its original is `{}`", original.value.trim()));
        let told = format!("in force until the next reboot{}", original.unwrap_or_default());
        outcome.detail = Some(outcome.detail.map_or(told.clone(), |detail| format!("{detail}; {told}")));
    }
    outcome
}

pub(crate) fn exit_of(entry: &Entry, back: &Back) -> Exit {
    let any = |kind: OutcomeKind| back.outcomes.iter().any(|outcome| outcome.outcome == kind);
    if any(OutcomeKind::Failed) {
        Exit::FailedNotRestored
    } else if any(OutcomeKind::Theirs)
        || any(OutcomeKind::InUse)
        || back.outcomes.iter().any(|outcome| boot::has_lost(outcome) || relocate::has_heirs(outcome))
        || back.outcomes.iter().any(|outcome| lost_place(entry, outcome))
    {
        Exit::Findings
    } else {
        Exit::Done
    }
}

pub(crate) fn worse(a: Exit, b: Exit) -> Exit {
    if a.code() >= b.code() { a } else { b }
}

/// Whether a place is a thread of the kernel.
fn is_thread(place: &str) -> bool {
    place.starts_with(planish_model::place::THREADS)
}

/// Whether a place is of resctrl: all of them go when it is unmounted, and with them what they held.
fn is_shared_out(place: &str) -> bool {
    place.strip_prefix(resctrl::FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// The mount of a place that is lost.
fn lost_mount(entry: &Entry, outcome: &Outcome) -> Option<String> {
    mount_point(&outcome.place).filter(|_| lost_place(entry, outcome))
}

/// Whether it is told of pages or threads of a process.
fn is_moved(entry: &Entry, outcome: &Outcome) -> bool {
    entry.steps.iter().any(|step| step.place == outcome.place && step.undo == Undo::Moved)
}

/// Whether it is told of a value.
fn is_value(entry: &Entry, outcome: &Outcome) -> bool {
    entry.steps.iter().any(|step| step.place == outcome.place && step.undo == Undo::Restore)
}

/// What is to be done about a place that is not there, or that by force nothing more is done.
fn not_there(entry: &Entry, outcome: &Outcome, force: bool) -> String {
    let (id, place) = (entry.id, &outcome.place);
    if force {
        return given_up(entry, place);
    }
    if is_shared_out(place) {
        return format!(
            "{place}: resctrl is not mounted any more, and who unmounts it gives all caches to everybody, so that \
             nothing is left to put back; to close the entry: planish undo {id} --force"
        );
    }
    if is_thread(place) {
        return format!(
            "{place}: no such thread is seen from here (a container sees none), and it was not put back; where it is \
             seen: planish undo {id}; a thread that ended with its CPU has taken it along: planish undo {id} --force"
        );
    }
    if let Some(point) = lost_mount(entry, outcome) {
        return format!(
            "{place}: nothing that planish sets is mounted at {point} now, and it was not put back; where it is only \
             hidden or elsewhere, and seen again: planish undo {id}; what is mounted anew has its options from that: \
             planish undo {id} --force"
        );
    }
    format!(
        "{place} is not there now (a CPU that is offline, a device that went?) and was not put back; when it is there \
         again: planish undo {id}; to give it up: planish undo {id} --force"
    )
}

/// That a place which is not there was given up by force, and what somebody else would have to write there.
fn given_up(entry: &Entry, place: &str) -> String {
    let step = entry.steps.iter().find(|step| step.place == place);
    let original = step.and_then(EntryStep::original).filter(|original| original.is_of_setting());
    let before =
        original.map(|original| format!("; before entry {} it was {}", entry.id, original.value.trim()));
    format!("{place} is not there now, and was given up{}", before.unwrap_or_default())
}

/// What it takes to have back the pages that an undo left in a pool.
fn pages_left(id: EntryId, outcome: &Outcome) -> Vec<String> {
    let place = &outcome.place;
    let is_used = outcome.granted_pages.is_none_or(|left| left > outcome.claimed());
    let used = outcome.detail.as_deref().filter(|_| is_used).map(|detail| {
        let holders = outcome.holders.iter().map(|held| format!("{} (pid {})", held.command, held.pid));
        let holders: Vec<String> = holders.collect();
        let who = if holders.is_empty() {
            "no running program maps them: look for files in a hugetlbfs and for shared segments (ipcs -m)"
                .to_owned()
        } else {
            format!("held by {}", holders.join(", "))
        };
        format!("{place}: {detail}, {who}; then again: planish undo {id}")
    });
    let claimed = outcome.claim.as_ref().map(|claim| {
        format!(
            "{place}: {claim}; {}: planish undo {id}; to have them back all the same: planish undo {id} --force",
            claim.until()
        )
    });
    used.into_iter().chain(claimed).collect()
}

/// What takes a file back that an undo left to others, and what that costs: the last line of talk proposes force for
/// values alone.
fn by_force(entry: &Entry, place: &str) -> String {
    let (id, is_here) = (entry.id, |step: &&EntryStep| step.place == place && step.undo.is_file());
    let forced = entry.steps.iter().find(is_here).map(|_| {
        format!(
            "; to have it as it was before entry {id}, and lose all that others wrote into it since: \
             planish undo {id} --force"
        )
    });
    forced.unwrap_or_default()
}

pub(crate) fn hints(entry: &Entry, outcomes: &[Outcome], force: bool) -> Vec<String> {
    let id = entry.id;
    let mut hints = Vec::new();
    for outcome in outcomes {
        let detail = outcome.detail.as_deref().unwrap_or("no reason is known");
        match outcome.outcome {
            OutcomeKind::Theirs => {
                // One that tells a line to type has its cure.
                let is_told = force || detail.contains(" by: ");
                let forced = if is_told { String::new() } else { by_force(entry, &outcome.place) };
                hints.push(format!("{}: {detail}{forced}", outcome.place));
            }
            OutcomeKind::Vanished if lost_place(entry, outcome) => {
                hints.push(not_there(entry, outcome, force));
            }
            OutcomeKind::Done | OutcomeKind::Satisfied if units::is_of_part(&outcome.place) => {
                hints.extend(outcome.detail.clone());
            }
            OutcomeKind::InUse if is_moved(entry, outcome) || units::is_of_part(&outcome.place) => {
                hints.push(format!("{}: {detail}; then once more: planish undo {id}", outcome.place));
            }
            OutcomeKind::InUse if is_value(entry, outcome) => {
                hints.push(format!(
                    "{}: {detail}; when less is promised, or another mode is in force, once more: planish undo {id}; \
                     to have it so all the same: planish undo {id} --force",
                    outcome.place
                ));
            }
            OutcomeKind::InUse => hints.extend(pages_left(id, outcome)),
            OutcomeKind::Satisfied if boot::has_lost(outcome) => {
                hints.push(format!("{}: {detail}", outcome.place));
            }
            OutcomeKind::Done if outcome.knob.is_persistence() && outcome.detail.is_some() => {
                hints.push(format!("{}: {detail}", outcome.place));
            }
            OutcomeKind::Done if relocate::has_heirs(outcome) => {
                hints.push(format!("{}: {detail}", outcome.place));
            }
            OutcomeKind::Failed => {
                let place = &outcome.place;
                hints.push(format!(
                    "{place} was not put back: {detail}; when that is mended: planish undo {id}"
                ));
            }
            _ => {}
        }
    }
    hints
}
