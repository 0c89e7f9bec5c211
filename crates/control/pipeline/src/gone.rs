//! Entries of an earlier boot: a reboot takes run-time values with it, and nobody has to, save those that a file of
//! ours brought back. What is left of them is decided by [`planish_model::in_boot`].

use planish_host::Host;
use planish_journal::{Journal, JournalError};
use planish_model::{Closure, Entry, EntryState, EntryStep, OutcomeKind};

use crate::{devices, pools};

/// The entries as they are in this boot, with their steps where their devices are now; `read` gives the text of a
/// place.
pub(crate) fn in_boot(
    entries: &[Entry],
    boot_id: &str,
    host: &Host,
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    devices::follow(host, &mut entries);
    planish_model::in_boot(&entries, boot_id, &|place| pools::pages_in(place, read))
}

/// Whether a reboot took a step, so that taking it back writes nothing.
pub(crate) fn is_gone(step: &EntryStep) -> bool {
    step.undone.as_ref().is_some_and(|undone| undone.outcome == OutcomeKind::GoneWithReboot)
}

/// The entries that are open and have nothing left but what a reboot took. How large pools are does not matter.
fn all_gone(entries: &[Entry], boot_id: &str) -> Vec<Entry> {
    let mut gone = planish_model::in_boot(entries, boot_id, &|_| None);
    gone.retain(|entry| entry.is_open() && entry.steps.iter().all(EntryStep::is_undone));
    gone
}

/// Shows entries as a reboot left them, for readers of the journal.
pub(crate) fn show(entries: &mut [Entry], boot_id: &str) {
    let gone = all_gone(entries, boot_id);
    for entry in entries.iter_mut().filter(|entry| gone.iter().any(|gone| gone.id == entry.id)) {
        entry.state = EntryState::Closed(Closure::GoneWithReboot);
    }
}

/// Closes entries that a reboot took, for writers of the journal.
pub(crate) fn close(journal: &mut Journal, boot_id: &str) -> Result<(), JournalError> {
    for entry in all_gone(&journal.ledger().entries, boot_id) {
        journal.close(entry.id, Closure::GoneWithReboot)?;
    }
    Ok(())
}
