//! Pools that a kill left in the middle of a write.

use planish_act::Sink;
use planish_journal::{Journal, JournalError};
use planish_model::{EntryId, Outcome};

/// Counts the pages of every pool whose last write was interrupted, before this process writes any pool: once the
/// pool has changed for another reason, its size no longer tells how far the interrupted write came.
pub(crate) fn pools(journal: &mut Journal, boot_id: &str, sink: &dyn Sink) -> Result<(), JournalError> {
    let here = journal.ledger().entries.iter().filter(|entry| entry.is_open() && entry.boot_id == boot_id);
    let settled = |id: EntryId, index: usize, outcome: Option<Outcome>| Some((id, index, outcome?));
    let counted: Vec<(EntryId, usize, Outcome)> = here
        .flat_map(|entry| {
            let steps = entry.steps.iter().enumerate();
            steps.filter_map(|(index, step)| settled(entry.id, index, planish_act::settle(step, sink)))
        })
        .collect();
    for (entry, index, outcome) in counted {
        journal.outcome(entry, index, outcome)?;
    }
    Ok(())
}
