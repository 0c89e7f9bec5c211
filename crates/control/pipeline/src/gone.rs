//! Entries of an earlier boot: a reboot takes run-time values with it, and nobody has to.

use planish_journal::{Journal, JournalError};
use planish_model::{Closure, Entry, EntryState, EntryStep, Outcome, OutcomeKind};

/// Whether a step of an entry went with a reboot. Files stay.
pub(crate) fn is_gone(entry: &Entry, step: &EntryStep, boot_id: &str) -> bool {
    entry.boot_id != boot_id && !step.undo.outlives_boot()
}

/// Whether an entry has nothing left but what a reboot took.
fn is_all_gone(entry: &Entry, boot_id: &str) -> bool {
    entry.is_open() && entry.steps.iter().all(|step| step.is_undone() || is_gone(entry, step, boot_id))
}

/// How a step that went with a reboot is taken back: not at all.
pub(crate) fn outcome(step: &EntryStep) -> Outcome {
    Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::GoneWithReboot)
}

/// Shows entries as a reboot left them, for readers of the journal.
pub(crate) fn show(entries: &mut [Entry], boot_id: &str) {
    for entry in entries {
        if is_all_gone(entry, boot_id) {
            entry.state = EntryState::Closed(Closure::GoneWithReboot);
        }
    }
}

/// Closes entries that a reboot took, for writers of the journal.
pub(crate) fn close(journal: &mut Journal, boot_id: &str) -> Result<(), JournalError> {
    let gone: Vec<_> = journal
        .ledger()
        .entries
        .iter()
        .filter(|entry| is_all_gone(entry, boot_id))
        .map(|entry| entry.id)
        .collect();
    for entry in gone {
        journal.close(entry, Closure::GoneWithReboot)?;
    }
    Ok(())
}
