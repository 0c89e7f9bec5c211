//! `planish confirm`: what was applied on trial stays.

use std::time::Duration;

use planish_act::{Sink, boot};
use planish_journal::{Journal, JournalError};
use planish_model::{
    BootFormat, BootValue, Catalogue, DriftState, Entry, EntryId, EntryState, EntryStep, Exit, KnobCheck,
    KnobId, NOT_GIVEN, Outcome, OutcomeKind, Plan, TrialBoot, Undo, Unpersisted, pages_in_file,
};

use crate::apply::{look_again, lost_at_boot, of_file};
use crate::contents::Contents;
use crate::error::PipelineError;
use crate::once::{self, Kept};
use crate::persist::Persistence;
use crate::session::Session;
use crate::{devices, gone, preview, settle, transition, undo};

/// What a confirm did.
#[derive(Clone, Debug, Default)]
pub struct Confirmed {
    /// The entries that stay, oldest first.
    pub entries: Vec<EntryId>,
    /// What they were to persist and nothing brings back at the next boot.
    pub unpersisted: Vec<Unpersisted>,
    /// What the next boot will bring otherwise than they were to persist it, a knob for each place.
    pub lost: Vec<KnobId>,
    /// The files that were written for the next boot, in that order.
    pub files: Vec<String>,
    /// Where nothing waited: the entry that was taken back because nobody had confirmed it in time, and when, in
    /// seconds since 1970.
    pub lapsed: Option<(EntryId, u64)>,
    /// Where nothing waited: trial boots that did not come yet, or came to nothing.
    pub trials: Vec<TrialBoot>,
    /// Findings where the next boot will not bring what they were to persist, where the time was over, and where a
    /// trial boot is not this one.
    pub exit: Exit,
    /// What to know.
    pub hints: Vec<String>,
}

/// Confirms every entry of this boot that waits for it, and writes its files for the next boot.
///
/// In a trial boot, its boot parameters are given to every boot: by an `apply --persist` with an entry of its own.
///
/// Any other entry of an earlier boot is not confirmed: what was tried went with that boot, perhaps because of it, and
/// files must not bring it back. Where files were written, what the next boot will bring is looked at afresh, as
/// `apply --persist` does that waits for nobody.
///
/// # Errors
/// A journal that cannot be used, another planish at work, a file that cannot be written or that someone else
/// wrote meanwhile, a file of the boot loader that would become another one than was shown: then the entries before it
/// are confirmed, and it is not, nor does a file of it stay.
pub fn confirm(session: &Session) -> Result<Confirmed, PipelineError> {
    session.refuse_hidden()?;
    let mut done = confirm_applied(session)?;

    // After this point what was applied on trial stays; what this boot is on trial for is applied anew, for every boot.
    if let Some(Kept { entry, applied }) = once::keep(session)? {
        done.hints.extend(applied.hints);
        done.unpersisted.extend(applied.unpersisted);
        match applied.exit {
            Exit::Done | Exit::Findings => {
                // Where another entry gave it to every boot already, only the trial ends.
                done.entries.push(applied.entry.unwrap_or(entry));
                let given = applied
                    .entry
                    .map_or(String::new(), |new| format!(": entry {new} gives every boot the same"));
                done.hints.push(format!("entry {entry} was the trial boot, and is closed{given}"));
            }
            _ => {}
        }
        done.exit = if applied.exit == Exit::Done { done.exit } else { applied.exit };
    }

    // Whoever confirms believes that it stays.
    if done.entries.is_empty() && done.exit == Exit::Done {
        done.lapsed = lapsed(session)?;
        done.trials = once::boots_on_trial(session)?;
        let is_none = done.lapsed.is_none() && done.trials.is_empty();
        done.exit = if is_none { Exit::Done } else { Exit::Findings };
    }
    Ok(done)
}

/// The entry that was taken back because nobody had confirmed it, where it is the last of this boot for which anybody
/// was asked to.
fn lapsed(session: &Session) -> Result<Option<(EntryId, u64)>, PipelineError> {
    let (boot_id, entries) = (session.host().boot_id(), session.history()?);
    let mut asked = entries.iter().rev().filter(|entry| entry.boot_id == boot_id && entry.wait_end.is_some());
    Ok(asked.next().and_then(|entry| Some((entry.id, entry.lapsed_at()?))))
}

/// The entries that wait for it in this boot.
fn confirm_applied(session: &Session) -> Result<Confirmed, PipelineError> {
    let sink = session.sink()?;
    if session.is_untouched()? {
        return Ok(Confirmed::default());
    }
    let mut journal = session.writer(Duration::ZERO)?;
    let boot_id = session.host().boot_id();
    gone::close(&mut journal, &boot_id)?;
    settle::files(session, &mut journal, &*sink)?;
    settle::sweep(&journal, session.host(), &*sink);

    // After this point the dead-man timer waits for us, and finds the entry confirmed.
    let waits = |entry: &&Entry| entry.state == EntryState::Unconfirmed && entry.boot_id == boot_id;
    let mut waiting: Vec<Entry> = journal.ledger().entries.iter().filter(waits).cloned().collect();
    devices::follow(session.host(), &mut waiting);
    let followed = |journal: &Journal| {
        let mut entries = journal.ledger().entries.clone();
        devices::follow(session.host(), &mut entries);
        entries
    };
    let mut done = Confirmed::default();
    for entry in &waiting {
        // Without outcomes in the journal, the next confirm tries the files again.
        let written = write_files(entry, &followed(&journal), session.catalogue(), &*sink);
        let written = written.map_err(|failure| failure.told(entry, &done.entries))?;
        if let Err(source) = record(&mut journal, entry.id, &written) {
            let restored = take_out(entry, &written, &followed(&journal), session.catalogue(), &*sink);
            return Err(PipelineError::JournalHalfWay { entry: entry.id, restored, source });
        }
        done.entries.push(entry.id);
        if let Some(old) = entry.instead_of {
            let gone = transition::complete(session, &mut journal, old, &*sink)?;
            done.exit = undo::worse(done.exit, gone.exit);
            done.hints.extend(gone.hints);
        }
        done.files.extend(written.iter().map(|(_, outcome)| outcome.place.clone()));
        done.hints.extend(written.iter().filter_map(|(_, outcome)| of_file(outcome)));
        if written.iter().any(|(_, outcome)| boot::has_lost(outcome)) {
            done.exit = undo::worse(done.exit, Exit::Findings);
        }
    }

    // A kill may have come between an earlier confirm and that.
    for left in transition::unfinished(&journal.ledger().entries) {
        if !waiting.iter().any(|entry| entry.id == left.entry) {
            let gone = transition::complete(session, &mut journal, left.old, &*sink)?;
            done.exit = undo::worse(done.exit, gone.exit);
            done.hints.extend(gone.hints);
        }
    }

    // After this point every file is written and every entry stays; the fresh look trusts none of that.
    let plans = waiting.iter().filter_map(|entry| entry.on_confirm.as_deref());
    let looks = plans.map(|plan| look_ahead(session, plan, &journal.ledger().entries, &*sink));
    for Ahead { left_out, lost, hints, is_known } in looks {
        done.unpersisted.extend(left_out);
        done.hints.extend(hints);
        let is_lost = !lost.is_empty() || !is_known;
        done.exit = if is_lost { undo::worse(done.exit, Exit::Findings) } else { done.exit };
        done.lost.extend(lost);
    }
    Ok(done)
}

/// What the next boot will bring of a plan whose files are written.
struct Ahead {
    left_out: Vec<Unpersisted>,
    /// What comes otherwise than it was to, a knob for each place.
    lost: Vec<KnobId>,
    /// What to tell of that.
    hints: Vec<String>,
    /// Whether anybody can say what is left out.
    is_known: bool,
}

fn look_ahead(session: &Session, plan: &Plan, entries: &[Entry], sink: &dyn Sink) -> Ahead {
    let drift = look_again(session, plan, entries);
    let mut hints: Vec<String> = lost_at_boot(&drift).collect();
    let left_out = match Persistence::look(session, plan, entries, sink) {
        Ok((persistence, _)) => persistence.left_out,
        Err(error) => {
            // The entry stays all the same: a row of the catalogue went since the apply.
            hints.push(error.in_full());
            return Ahead { left_out: Vec::new(), lost: Vec::new(), hints, is_known: false };
        }
    };
    let lost: Vec<&KnobCheck> = drift.knobs.iter().filter(|row| is_lost(row, plan, entries)).collect();
    let is_told = |row: &&&KnobCheck| {
        matches!(row.state, DriftState::LostAtBoot | DriftState::OverwrittenAtBoot)
            || left_out.iter().any(|left| left.place == row.place)
    };
    for row in lost.iter().filter(|row| !is_told(row)) {
        let why = row.because.as_deref().unwrap_or("changed since");
        let next = row.next_boot.as_ref().map_or(NOT_GIVEN, |next| next.value.as_str());
        hints.push(format!("{}: {why}; the next boot brings {next}", row.knob));
    }
    let lost = lost.into_iter().map(|row| row.knob.clone()).collect();
    Ahead { left_out, lost, hints, is_known: true }
}

/// Whether the next boot will bring something else than it is to bring, whatever is there now.
fn is_lost(row: &KnobCheck, plan: &Plan, entries: &[Entry]) -> bool {
    let number = |text: &String| text.parse::<u64>().ok();
    // Others may raise a pool further, and pages that were there at the apply may have gone with another entry: what
    // our file is due to give is what must come.
    let due = || pages_in_file(entries, &row.place).or_else(|| row.wanted.as_ref().and_then(number));
    let is_other = |next: &BootValue| match row.place.ends_with("/nr_hugepages") {
        true => number(&next.value) < due(),
        false => row.wanted.as_ref() != Some(&next.value),
    };
    match row.state {
        DriftState::LostAtBoot => row.next_boot.is_some(),
        DriftState::OverwrittenAtBoot => true,
        DriftState::Drift if plan.boot.iter().any(|step| step.place == row.place) => true,
        DriftState::Drift => row.next_boot.as_ref().is_some_and(is_other),
        _ => false,
    }
}

/// How steps of an entry were written, by their numbers.
type Written = Vec<(usize, Outcome)>;

/// Why the files of an entry are not all written.
struct Failure {
    source: Box<PipelineError>,
    /// Whether those that were written are out again; `None` where there were none.
    restored: Option<bool>,
}

impl Failure {
    /// A refusal, unless something of this command is on the host, or was.
    fn told(self, entry: &Entry, confirmed: &[EntryId]) -> PipelineError {
        if self.restored.is_none() && confirmed.is_empty() {
            return *self.source;
        }
        PipelineError::NotConfirmed {
            entry: entry.id,
            confirmed: confirmed.to_vec(),
            restored: self.restored.unwrap_or(true),
            source: self.source,
        }
    }
}

/// Whether a step is a file that waits for the confirm.
fn is_unwritten(step: &EntryStep) -> bool {
    step.undo.outlives_boot() && step.outcome.is_none()
}

/// Refuses a file of the boot loader in which the write would change other lines than it would have changed at the
/// apply, where they were shown: somebody edited it since. The journal has the text of then. Files of our own are
/// compared by [`Contents::add`]. Lines that do not change may be others: boot loaders keep notes of their own there.
fn refuse_unshown(
    entry: &Entry,
    entries: &[Entry],
    catalogue: &Catalogue,
    sink: &dyn Sink,
) -> Result<(), PipelineError> {
    let edits = entry.steps.iter().filter(|step| step.undo == Undo::Edit && is_unwritten(step));
    for step in edits {
        let Some(original) = step.original() else { continue };
        let now = match sink.read_file(&step.place) {
            Ok(Some(now)) => now,
            Ok(None) => {
                return Err(PipelineError::GoneSince { path: step.place.clone(), entry: entry.id });
            }
            // The write tells it.
            Err(_) => continue,
        };
        let lines = |text: &str| {
            let text = without_ours(entry.id, step, entries, text);
            preview::changed(step, Some(&text), entries, catalogue)
        };
        if lines(&now)? != lines(&original.value)? {
            return Err(PipelineError::NotAsShown { path: step.place.clone(), entry: entry.id });
        }
    }
    Ok(())
}

/// A text of a boot loader's file without what planish itself may have put in, or taken out, since the intent of this
/// entry: its own arguments, which a confirm that was killed has written already, and those of entries that were
/// applied, confirmed or undone behind it. The text at the apply and the one of now differ by them, and nobody edited
/// anything. What happened before the intent is in both texts, or in neither, and stays there: it may be somebody
/// else's by now.
fn without_ours(id: EntryId, step: &EntryStep, entries: &[Entry], text: &str) -> String {
    let Some(format) = BootFormat::of_knob(step.knob.as_str()).map(boot::format_of) else {
        return text.to_owned();
    };
    let steps = entries.iter().flat_map(|other| other.steps.iter().map(move |step| (other, step)));
    // An undo that was killed has said nothing of its steps yet.
    let is_since = |other: &Entry, step: &EntryStep| step.was_told_behind(other.id, id) || other.undo_begun;
    steps
        .filter(|(other, same)| same.undo == Undo::Edit && same.place == step.place && is_since(other, same))
        .filter(|(_, ours)| boot::is_in(ours, text))
        .fold(text.to_owned(), |text, (other, ours)| {
            planish_boot::remove_tagged(format, &text, &ours.wanted, other.id.0).unwrap_or(text)
        })
}

/// Writes the files of an entry, all or none of them.
fn write_files(
    entry: &Entry,
    entries: &[Entry],
    catalogue: &Catalogue,
    sink: &dyn Sink,
) -> Result<Written, Failure> {
    refuse_unshown(entry, entries, catalogue, sink)
        .map_err(|source| Failure { source: Box::new(source), restored: None })?;
    let mut written = Written::new();
    for (index, step) in entry.steps.iter().enumerate().filter(|(_, step)| is_unwritten(step)) {
        let before = sink.read_file(&step.place).ok();
        let outcome = match step.undo {
            Undo::Edit => boot::add(step, entry.id, sink),
            _ => Contents::of(entry.id, step, entries, catalogue).add(step, sink),
        };
        let refusal = refusal(step, &outcome, || {
            let link = sink.link(&step.place).ok().flatten();
            Contents::of(entry.id, step, entries, catalogue).foreign(&step.place, link, sink)
        });
        // A menu that cannot be made fails when its file is written already.
        if refusal.is_none() || sink.read_file(&step.place).ok() != before {
            written.push((index, outcome));
        }
        if let Some(source) = refusal {
            let restored = (!written.is_empty()).then(|| take_out(entry, &written, entries, catalogue, sink));
            return Err(Failure { source: Box::new(source), restored });
        }
    }
    Ok(written)
}

/// Takes written files out again, the last one first; whether all of them are.
fn take_out(
    entry: &Entry,
    written: &Written,
    entries: &[Entry],
    catalogue: &Catalogue,
    sink: &dyn Sink,
) -> bool {
    let out = written.iter().rev().map(|(index, _)| {
        let step = &entry.steps[*index];
        let outcome = match step.undo {
            Undo::Edit => boot::remove(step, entry.id, entries, false, sink),
            _ => Contents::of(entry.id, step, entries, catalogue).remove(step, false, sink),
        };
        matches!(outcome.outcome, OutcomeKind::Done | OutcomeKind::Satisfied)
    });
    // All are tried, whichever fails.
    out.filter(|is_out| !is_out).count() == 0
}

/// Says in the journal that the files are written, and that the entry is confirmed.
fn record(journal: &mut Journal, id: EntryId, written: &Written) -> Result<(), JournalError> {
    for (index, outcome) in written {
        journal.outcome(id, *index, outcome.clone())?;
    }
    journal.confirmed(id)
}

/// Why an entry must not be confirmed whose file for the next boot came to this.
fn refusal(
    step: &EntryStep,
    outcome: &Outcome,
    foreign: impl FnOnce() -> PipelineError,
) -> Option<PipelineError> {
    match outcome.outcome {
        OutcomeKind::Done | OutcomeKind::Satisfied => None,
        OutcomeKind::Theirs => Some(foreign()),
        _ => {
            let why = outcome.detail.clone().unwrap_or_else(|| "no reason is known".to_owned());
            Some(PipelineError::NotWritable { place: step.place.clone(), why })
        }
    }
}
