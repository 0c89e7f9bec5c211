//! Entries of an earlier boot: a reboot takes run-time values with it, and nobody has to, save those that a file of
//! ours brought back. What is left of them is decided by [`planish_model::in_boot`].

use planish_host::Host;
use planish_journal::{Journal, JournalError};
use planish_model::{Closure, Entry, EntryId, EntryState, EntryStep, OutcomeKind};

use crate::{devices, pools, transition};

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

/// The entries that are open and have nothing left, be it that a reboot took it or that a kill came behind the last
/// step of their undo, each with what closes it. How large pools are does not matter.
fn all_gone(entries: &[Entry], boot_id: &str) -> Vec<(EntryId, Closure, Option<EntryId>)> {
    let mut gone = planish_model::in_boot(entries, boot_id, &|_| None);
    // A kill may have come into the write of a pool that is taken back once more, by force.
    let is_back = |step: &EntryStep| step.is_undone() && step.begun.is_none();
    gone.retain(|entry| entry.is_open() && entry.steps.iter().all(is_back));
    let closed = |entry: &Entry| {
        let by_reboot = entry.steps.is_empty() || entry.steps.iter().any(is_gone);
        let heir = transition::heir(entry.id, entries).filter(|_| !by_reboot).map(|heir| heir.id);
        let closure = match (by_reboot, heir) {
            (true, _) => Closure::GoneWithReboot,
            (false, Some(_)) => Closure::Replaced,
            (false, None) => Closure::Undone,
        };
        (entry.id, closure, heir)
    };
    gone.iter().map(closed).collect()
}

/// Shows entries that have nothing left as closed, for readers of the journal.
pub(crate) fn show(entries: &mut [Entry], boot_id: &str) {
    for (id, closure, heir) in all_gone(entries, boot_id) {
        let own = entries.iter_mut().filter(|entry| entry.id == id);
        own.for_each(|entry| (entry.state, entry.replaced_by) = (EntryState::Closed(closure), heir));
    }
}

/// Closes entries that have nothing left, for writers of the journal.
pub(crate) fn close(journal: &mut Journal, boot_id: &str) -> Result<(), JournalError> {
    for (id, closure, heir) in all_gone(&journal.ledger().entries, boot_id) {
        match heir {
            Some(heir) => journal.replaced(id, heir)?,
            None => journal.close(id, closure)?,
        }
    }
    Ok(())
}
