//! What can still be read of a damaged journal, for an undo that was told to go on regardless. Pure.
//!
//! Every line stands for itself: its checksum tells whether it is what planish wrote. What a lost line said is not
//! guessed. For a value that is no harm, since undo compares three texts: a lost outcome looks like a kill after the
//! write, a lost `undone` like a value that is back already. The size of a pool tells nothing of the kind, so that a
//! pool of an open entry is left alone and told. A lost intent takes its originals along: that is told, too, and what
//! the entry set looks like someone else's. What its other lines tell of it is told ([`Orphans`]).

use planish_model::{Entry, EntryId, EntryStep, Outcome, OutcomeKind, Undo};
use planish_sorted::SortSmall as _;

use crate::line::{Fault, Line, decode};
use crate::orphans::Orphans;
use crate::{Event, Ledger};

/// What was read of a damaged journal.
#[derive(Debug)]
pub(crate) struct Salvage {
    /// The entries as far as they are known, oldest first.
    pub entries: Vec<Entry>,
    /// A number that no entry has had, not even one whose intent is lost.
    pub last: EntryId,
    /// What could not be read, by line.
    pub lost: Vec<String>,
}

/// Reads every line that is sound. The text of an error is that of a line which a newer planish wrote: what this one
/// does not understand it must not leave out. A known entry stands in for one of which no intent was read.
pub(crate) fn salvage(bytes: &[u8], known: &[Entry]) -> Result<Salvage, (usize, String)> {
    let (mut ledger, mut lost, mut named) = (Ledger::default(), Vec::new(), 0);
    let (mut due, mut unread, mut archived, mut orphans) = (1, 0, 0, Orphans::default());
    for (index, text) in bytes.split(|&byte| byte == b'\n').enumerate().filter(|(_, text)| !text.is_empty()) {
        let number = index + 1;
        let mut lose = |why: &str| lost.push(format!("line {number}: {why}"));
        let line = match decode(text, None) {
            Ok(line) => line,
            Err(Fault::Newer(why)) => return Err((number, why)),
            Err(Fault::Damaged(why)) => {
                lose(&why);
                unread += 1;
                continue;
            }
        };
        if line.seq < due {
            lose(&format!("number {} was there before", line.seq));
            continue;
        }
        let (seq, id) = (line.seq, line.event.entry());
        named = named.max(id.0);
        if let Event::Continued { last, .. } = &line.event {
            archived = last.0;
        }
        make_way(&mut ledger, &line);
        if seq - due > unread {
            lose(&match (seq - due, seq - due - unread) {
                (1, _) => format!("number {due} before it is not there"),
                (numbers, missing) if numbers == missing => {
                    format!("the numbers {due} to {} before it are not there", seq - 1)
                }
                (_, 1) => format!("one of the numbers {due} to {} before it is not there", seq - 1),
                (_, missing) => {
                    format!("of the numbers {due} to {} before it, {missing} are not there", seq - 1)
                }
            });
        }
        let is_begun = known.iter().any(|entry| entry.id == id) || ledger.entry(id).is_some();
        if (is_begun || !orphans.take(number, &line.event))
            && let Err(why) = ledger.take(line)
        {
            lose(&why);
        }
        (due, unread) = (seq + 1, 0);
    }
    // One that an earlier journal closed is not there either, and is no loss.
    let missing = |entry: &&Entry| entry.id.0 > archived && ledger.entry(entry.id).is_none();
    for entry in known.iter().filter(missing).cloned().collect::<Vec<_>>() {
        ledger.entries.push(entry);
        ledger.entries.sort_small_by_key(|entry| entry.id);
    }
    lost.extend(orphans.told());
    let last = EntryId(named.max(ledger.next_id().0 - 1) + lost.len() as u64);
    ledger.entries.iter_mut().filter(|entry| entry.is_open()).for_each(leave_pools);
    Ok(Salvage { entries: ledger.entries, last, lost })
}

/// Lets an entry follow one whose intent is lost.
fn make_way(ledger: &mut Ledger, line: &Line) {
    match &line.event {
        Event::Intent { entry, .. } if *entry > ledger.next_id() => ledger.last_archived = entry.0 - 1,
        Event::Carried { whole } => ledger.last_archived = ledger.last_archived.max(whole.id.0),
        _ => {}
    }
}

/// Marks the pools of an entry as those whose pages nobody can count any more.
fn leave_pools(entry: &mut Entry) {
    let pools = entry.steps.iter_mut().filter(|step| step.undo == Undo::Subtract && !step.is_undone());
    for step in pools {
        step.outcome = Some(uncounted(step));
        (step.begun, step.undone) = (None, None);
    }
}

/// The outcome of a pool of which lines may be lost.
fn uncounted(step: &EntryStep) -> Outcome {
    let known = step.undone.as_ref().or(step.outcome.as_ref()).and_then(|outcome| outcome.granted_pages);
    let pages = known.or(step.raise_pages).unwrap_or(0);
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Theirs);
    outcome.granted_pages = Some(pages);
    outcome.detail = Some(format!(
        "a part of the journal is lost: up to {pages} pages of this pool are ours, unless they went back already; \
         --force gives them back"
    ));
    outcome
}
