//! `planish confirm`: what was applied on trial stays.

use std::time::Duration;

use planish_model::{Entry, EntryId, EntryState, EntryStep, Outcome, OutcomeKind, Undo};

use crate::contents::Contents;
use crate::error::PipelineError;
use crate::gone;
use crate::session::Session;

/// Confirms every entry of this boot that waits for it, and writes its files for the next boot.
///
/// An entry of an earlier boot is not confirmed: what was tried went with that boot, perhaps because of it, and
/// files must not bring it back.
///
/// # Errors
/// A journal that cannot be used, another planish at work, a file that cannot be written or that someone else
/// wrote meanwhile: then the entries before it are confirmed, and it is not.
pub fn confirm(session: &Session) -> Result<Vec<EntryId>, PipelineError> {
    session.refuse_hidden()?;
    let sink = session.sink()?;
    let mut journal = session.writer(Duration::ZERO)?;
    let boot_id = session.host().boot_id();
    gone::close(&mut journal, &boot_id)?;

    // After this point the dead-man timer waits for us, and finds the entry confirmed.
    let waits = |entry: &&Entry| entry.state == EntryState::Unconfirmed && entry.boot_id == boot_id;
    let waiting: Vec<Entry> = journal.ledger().entries.iter().filter(waits).cloned().collect();
    let mut confirmed = Vec::new();
    for entry in waiting {
        let files = entry.steps.iter().enumerate();
        for (index, step) in files.filter(|(_, step)| step.undo.outlives_boot() && step.outcome.is_none()) {
            let outcome = match step.undo {
                Undo::Edit => planish_act::boot::add(step, &*sink),
                _ => Contents::of(entry.id, step, &journal.ledger().entries).add(step, &*sink),
            };
            // Without an outcome in the journal, the next confirm tries the file again.
            refuse_unwritten(step, &outcome)?;
            journal.outcome(entry.id, index, outcome)?;
        }
        journal.confirmed(entry.id)?;
        confirmed.push(entry.id);
    }
    Ok(confirmed)
}

/// Refuses to confirm an entry whose file for the next boot was not written.
fn refuse_unwritten(step: &EntryStep, outcome: &Outcome) -> Result<(), PipelineError> {
    let path = step.place.clone();
    match outcome.outcome {
        OutcomeKind::Done | OutcomeKind::Satisfied => Ok(()),
        OutcomeKind::Theirs => Err(PipelineError::ForeignFile { path }),
        _ => {
            let why = outcome.detail.clone().unwrap_or_else(|| "no reason is known".to_owned());
            Err(PipelineError::NotWritable { place: path, why })
        }
    }
}
