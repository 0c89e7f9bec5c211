//! What a kill left in the middle of a write, and has to be found out before anything else is written: pools, and, once
//! the machine was started anew, files that a boot reads.

use planish_act::Sink;
use planish_host::Host;
use planish_journal::{Journal, JournalError};
use planish_model::{Entry, EntryId, EntryStep, Outcome, OutcomeKind, Undo};

use crate::contents::Contents;
use crate::session::Session;
use crate::{devices, gone};

/// Removes what a kill left beside files that entries of this journal have replaced or were to replace: half of a new
/// one, which nobody reads and nobody else would ever remove. And puts together what a power cut tore: the one file
/// that is written where it lies. What cannot be swept is no reason to keep a host from going back; the next command
/// tries again.
pub(crate) fn sweep(journal: &Journal, host: &Host, sink: &dyn Sink) {
    let mut entries = journal.ledger().entries.clone();
    devices::follow(host, &mut entries);
    // A file that its loader calls otherwise by now may have been replaced under either name.
    let all = journal.ledger().entries.iter().chain(&entries);
    let steps: Vec<&EntryStep> = all
        .filter(|entry| entry.is_open())
        .flat_map(|entry| &entry.steps)
        .filter(|step| step.undo.is_file())
        .collect();
    let edited = steps.iter().filter(|step| step.undo == Undo::Edit).map(|step| step.place.as_str());
    for place in edited.collect::<std::collections::BTreeSet<_>>() {
        let _ = planish_act::boot::mend(place, &entries, sink);
    }
    let places = steps.iter().flat_map(|step| {
        // A file that was there before is somebody else's, as a menu is.
        let own = (step.place.as_str(), step.undo == Undo::Edit && step.original().is_some());
        let menu = step.generator.map(|generator| (generator.output(), true));
        std::iter::once(own).chain(menu)
    });
    for (place, is_edited) in places.collect::<std::collections::BTreeSet<_>>() {
        let _ = sink.sweep(place, is_edited);
    }
}

/// Counts the pages of every pool whose last write was interrupted, and of every pool that somebody lowered since,
/// before this process writes any pool: once the pool has changed for another reason, its size no longer tells how far
/// the interrupted write came, nor that pages are gone.
pub(crate) fn pools(journal: &mut Journal, host: &Host, sink: &dyn Sink) -> Result<(), JournalError> {
    let boot_id = host.boot_id();
    let open = journal.ledger().entries.iter().filter(|entry| entry.is_open());
    let settled = |id: EntryId, index: usize, outcome: Option<Outcome>| Some((id, index, outcome?));
    let counted: Vec<(EntryId, usize, Outcome)> = open
        .flat_map(|entry| {
            // What an earlier boot began, its end took.
            let here = |step: &EntryStep| entry.boot_id == boot_id || step.was_seen_in(&boot_id);
            let steps = entry.steps.iter().enumerate().filter(move |(_, step)| here(step));
            steps.filter_map(|(index, step)| settled(entry.id, index, planish_act::settle(step, sink)))
        })
        .collect();
    for (entry, index, outcome) in counted {
        journal.outcome(entry, index, outcome)?;
    }
    for (entry, index, step) in lowered(journal, host, &boot_id, sink) {
        journal.outcome(entry, index, step.outcome.expect("it is lowered"))?;
        if let Some(left) = step.undone {
            journal.undone(entry, index, left)?;
        }
    }
    Ok(())
}

/// The steps of pools that somebody lowered, as far as the journal does not say so.
fn lowered(
    journal: &Journal,
    host: &Host,
    boot_id: &str,
    sink: &dyn Sink,
) -> Vec<(EntryId, usize, EntryStep)> {
    let entries = &journal.ledger().entries;
    let seen = gone::in_boot(entries, boot_id, host, &|place| sink.read(place).ok());
    let of_entry = |(raw, seen): (&Entry, Entry)| {
        let steps = raw.steps.iter().zip(seen.steps).enumerate();
        let is_new = |(_, (raw, seen)): &(usize, (&EntryStep, EntryStep))| {
            seen.undo == Undo::Subtract
                && seen.is_lowered()
                && !seen.is_undone()
                && seen.outcome != raw.outcome
        };
        let new = steps.filter(is_new).map(|(index, (_, seen))| (raw.id, index, seen));
        new.collect::<Vec<_>>()
    };
    entries.iter().zip(seen).filter(|(raw, _)| raw.is_open()).flat_map(of_entry).collect()
}

/// Finds out which files of earlier boots were written, where a power cut or a kill before a reboot kept their
/// outcomes out of the journal. What they brought at this boot follows from that, and must be known before they go.
pub(crate) fn files(session: &Session, journal: &mut Journal, sink: &dyn Sink) -> Result<(), JournalError> {
    let boot_id = session.host().boot_id();
    let entries = &journal.ledger().entries;
    let mut found: Vec<(EntryId, usize, Outcome)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_open() && entry.boot_id != boot_id) {
        for (index, step) in entry.steps.iter().enumerate() {
            if step.undo != Undo::File || step.outcome.is_some() || step.undone.is_some() {
                continue;
            }
            let Ok(now) = sink.read_file(&step.place) else { continue };
            let kind = match Contents::of(entry.id, step, entries, session.catalogue())
                .was_written(now.as_deref())
            {
                true => OutcomeKind::Done,
                false => OutcomeKind::Failed,
            };
            let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), kind);
            outcome.read_back = now.filter(|_| kind == OutcomeKind::Done);
            outcome.detail = Some("looked at after a reboot".to_owned());
            found.push((entry.id, index, outcome));
        }
    }
    for (entry, index, outcome) in found {
        journal.outcome(entry, index, outcome)?;
    }
    Ok(())
}
