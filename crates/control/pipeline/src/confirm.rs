//! `planish confirm`: what was applied on trial stays.

use std::time::Duration;

use planish_model::{Entry, EntryId, EntryState, OutcomeKind, Undo};

use crate::error::PipelineError;
use crate::gone;
use crate::persist::Contents;
use crate::session::Session;

/// Confirms every entry that waits for it, and writes its files for the next boot.
///
/// # Errors
/// A journal that cannot be used, another planish at work, a file that someone else wrote meanwhile: then the
/// entries before it are confirmed, and it is not.
pub fn confirm(session: &Session) -> Result<Vec<EntryId>, PipelineError> {
    let sink = session.sink()?;
    let mut journal = session.writer(Duration::ZERO)?;
    gone::close(&mut journal, &session.host().boot_id())?;

    // After this point the dead-man timer waits for us, and finds the entry confirmed.
    let waits = |entry: &&Entry| entry.state == EntryState::Unconfirmed;
    let waiting: Vec<Entry> = journal.ledger().entries.iter().filter(waits).cloned().collect();
    let mut confirmed = Vec::new();
    for entry in waiting {
        let files = entry.steps.iter().enumerate();
        for (index, step) in files.filter(|(_, step)| step.undo == Undo::File && step.outcome.is_none()) {
            let outcome = Contents::of(entry.id, step, &journal.ledger().entries).add(step, &*sink);
            if outcome.outcome == OutcomeKind::Theirs {
                return Err(PipelineError::ForeignFile { path: step.place.clone() });
            }
            journal.outcome(entry.id, index, outcome)?;
        }
        journal.confirmed(entry.id)?;
        confirmed.push(entry.id);
    }
    Ok(confirmed)
}
