//! An entry that was announced, carried out: its steps written, and all of it taken back where one of them fails.

use planish_act::{Sink, boot, perform};
use planish_journal::{Journal, JournalError};
use planish_model::{Entry, EntryId, Exit, Outcome, OutcomeKind, Undo};
use tracing::info_span;

use crate::contents::Contents;
use crate::error::PipelineError;
use crate::session::Session;
use crate::undo;

/// What the writes came to.
pub(crate) struct Written {
    /// The entry as it is now, with outcomes that a failed journal may not have.
    pub entry: Entry,
    /// How each step ended.
    pub outcomes: Vec<Outcome>,
    /// Whether the last of them failed: then [`put_back`] must follow.
    pub failed: bool,
    journal_failure: Option<JournalError>,
}

/// Writes the steps of an entry and says in the journal that they are written. Files that outlive a boot are left to
/// the confirm where there is one: a reboot would bring the values back unconfirmed.
///
/// # Errors
/// A journal that failed half way, after the host was put back as far as possible.
pub(crate) fn carry_out(
    session: &Session,
    journal: &mut Journal,
    id: EntryId,
    to_be_confirmed: bool,
    sink: &dyn Sink,
) -> Result<Written, PipelineError> {
    let mut written = info_span!("act").in_scope(|| write(session, journal, id, to_be_confirmed, sink));
    if !written.failed && written.journal_failure.is_none() {
        written.journal_failure = journal.applied(id).err();
    }
    let Some(source) = written.journal_failure.take() else { return Ok(written) };
    mark_unreached(&mut written.entry);
    let back = undo::take_back(session, journal, &written.entry, false, sink);
    Err(PipelineError::JournalHalfWay { entry: id, restored: back.is_restored(&written.entry), source })
}

/// Writes step after step, each outcome into the journal before the next write. Stops at the first failure.
fn write(
    session: &Session,
    journal: &mut Journal,
    id: EntryId,
    to_be_confirmed: bool,
    sink: &dyn Sink,
) -> Written {
    let entry = journal.ledger().entry(id).expect("it was begun just now").clone();
    let mut written = Written { entry, outcomes: Vec::new(), failed: false, journal_failure: None };
    let mut caused = Vec::new();
    for index in 0..written.entry.steps.len() {
        let step = &mut written.entry.steps[index];
        let outcome = match step.undo {
            undo if undo.outlives_boot() && to_be_confirmed => continue,
            Undo::File => {
                Contents::of(id, step, &journal.ledger().entries, session.catalogue()).add(step, sink)
            }
            Undo::Edit => boot::add(step, id, sink),
            _ => perform(step, &caused, sink, &mut |write| Ok(journal.pool(id, index, write)?)),
        };
        caused.extend(outcome.caused.iter().cloned());
        written.failed = is_failure(&outcome);
        written.outcomes.push(outcome.clone());
        step.outcome = Some(outcome.clone());
        if let Err(error) = journal.outcome(id, index, outcome) {
            written.journal_failure = Some(error);
            break;
        }
        if written.failed {
            break;
        }
    }
    written
}

/// Whether an entry must not go on after this. A short grant and a changed read-back are told, not undone.
fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome.outcome, OutcomeKind::Failed | OutcomeKind::Vanished | OutcomeKind::Theirs)
}

/// What taking a failed entry back came to.
pub(crate) struct PutBack {
    /// The step that failed.
    pub failed: Outcome,
    /// How each step ended, and how each was taken back.
    pub outcomes: Vec<Outcome>,
    /// What of it was left since it is in use, or since the host would not bear what was there before: what it takes
    /// to have it back.
    pub in_use: Vec<String>,
    /// Whether all else is back.
    pub is_only_in_use: bool,
    /// How the command ends.
    pub exit: Exit,
}

/// Marks the steps of an entry that were never begun: what their places show is nothing that planish brought about.
/// After a kill nobody could tell; here the one that writes them does.
fn mark_unreached(entry: &mut Entry) {
    for step in entry.steps.iter_mut().filter(|step| step.outcome.is_none() && step.begun.is_none()) {
        let (knob, place) = (step.knob.clone(), step.place.clone());
        step.outcome = Some(Outcome::new(knob, place, OutcomeKind::NotReached));
    }
}

/// After a failed step: takes back what was written, so that an entry is carried out whole or not at all.
///
/// # Errors
/// A journal that failed half way.
pub(crate) fn put_back(
    session: &Session,
    journal: &mut Journal,
    written: Written,
    sink: &dyn Sink,
) -> Result<PutBack, PipelineError> {
    let (mut entry, mut outcomes) = (written.entry, written.outcomes);
    mark_unreached(&mut entry);
    let failed = outcomes.last().expect("a step failed").clone();
    let command = format!("{} (put back)", session.options.command);
    let back = undo::undo_entry(session, journal, &entry, &command, false, sink);
    let restored = back.is_restored(&entry);
    if let Some(source) = back.journal_failure {
        return Err(PipelineError::JournalHalfWay { entry: entry.id, restored, source });
    }
    let (in_use, rest): (Vec<Outcome>, Vec<Outcome>) =
        back.outcomes.iter().cloned().partition(|outcome| outcome.outcome == OutcomeKind::InUse);
    let is_only_in_use = rest.iter().all(|outcome| undo::is_back(&entry, outcome));
    let in_use = undo::hints(&entry, &in_use, false);
    outcomes.extend(back.outcomes);
    let exit = if restored { Exit::FailedRestored } else { Exit::FailedNotRestored };
    Ok(PutBack { failed, outcomes, in_use, is_only_in_use, exit })
}
