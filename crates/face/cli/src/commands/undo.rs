//! `planish undo`

use planish_model::{Closure, Entry, EntryId, EntryState, Exit, Outcome};
use planish_pipeline::{self as pipeline, Session, Target};
use planish_report::{UndoReport, UndoneEntry};

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// Put the host back as it was before an apply
///
/// A value that someone else changed since is left alone and told; --force writes it too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The entry of `planish log`; without it, the newest that is open
    #[arg(value_name = "ENTRY", value_parser = entry_number)]
    entry: Option<u64>,
    /// Undo every open entry, newest first
    #[arg(long, conflicts_with = "entry")]
    all: bool,
    /// Write the originals even where someone else changed the value since; of an entry that is undone already, where
    /// it is named. Of pages that were moved, also those that others moved since; what is hidden or in swap is given up
    #[arg(long)]
    force: bool,
}

/// Open entries that are named before the others are only counted.
const NAMED_MAX: usize = 3;

/// The number of an entry, as `planish log` tells it.
pub(crate) fn entry_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "no number of an entry, such as `planish log` lists them".to_owned())
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let target = match args.entry {
        _ if args.all => Target::All,
        Some(entry) => Target::Entry(EntryId(entry)),
        None => Target::Newest,
    };
    // Half an undo helps nobody: a Ctrl-C that comes from here on waits for its end.
    signals::hold();
    let undone = pipeline::undo(&session, target, args.force)?;
    let taken: Vec<EntryId> = undone.entries.iter().map(|(id, _)| *id).collect();
    let report = UndoReport { entries: undone_entries(&session, undone.entries, undone.before)? };
    let mut answer = context.answer(&report, session.catalogue()).exit(undone.exit);
    if report.entries.is_empty() {
        let told = match undone.kept {
            // Else it reads as if there was nothing to force, and then something.
            Some(_) if args.force && args.entry.is_none() => {
                "no entry is open: what one left that is undone already is written only where it is named"
                    .to_owned()
            }
            // Lines of the journal are lost: what they spoke of is on the host still.
            _ if undone.exit != Exit::Done && args.entry.is_none() => "nothing was taken back".to_owned(),
            _ => nothing(args.entry, &session)?,
        };
        answer = answer.note(told);
    }
    for hint in undone.hints {
        answer = answer.note(hint);
    }
    if matches!(target, Target::Newest) && !report.entries.is_empty() {
        answer = still_open(&session, &taken, context)?.into_iter().fold(answer, Answer::note);
    }
    let next = match undone.kept {
        Some(entry) => context.root_line(&format!("undo {entry} --force")),
        None => context.line("log"),
    };
    Ok(answer.next(next))
}

/// Entries that are open below the one that was taken back: who names none may take the host for clean.
fn still_open(session: &Session, taken: &[EntryId], context: &Context) -> Result<Option<String>, Failure> {
    let mut open = pipeline::in_force(session)?;
    // What it could not take back is told by itself.
    open.retain(|entry| !taken.contains(&entry.id));
    let named: Vec<String> =
        open.iter().rev().take(NAMED_MAX).map(|entry| format!("{} ({})", entry.id, entry.profile)).collect();
    let all = context.root_line("undo --all");
    Ok(match (named.as_slice(), open.len().saturating_sub(NAMED_MAX)) {
        ([], _) => None,
        ([one], _) => Some(format!("entry {one} is open still; to take that back too: {all}")),
        (named, more) => {
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Some(format!("entries {}{more} are open still; to take them back too: {all}", named.join(", ")))
        }
    })
}

/// Why nothing was taken back.
fn nothing(entry: Option<u64>, session: &Session) -> Result<String, Failure> {
    let Some(named) = entry else { return Ok("there is nothing to undo".to_owned()) };
    Ok(match log_entry(session, named)?.map(|entry| entry.state) {
        Some(EntryState::Closed(Closure::Undone)) => format!("entry {named} is undone already"),
        Some(EntryState::Closed(Closure::GoneWithReboot)) => format!("entry {named} went with a reboot"),
        Some(EntryState::Closed(Closure::Replaced)) => {
            let by = log_entry(session, named)?.and_then(|entry| entry.replaced_by);
            by.map_or_else(
                || format!("another entry took the place of entry {named}"),
                |by| {
                    format!(
                        "entry {by} took the place of entry {named}, and brings back what was before both"
                    )
                },
            )
        }
        _ => format!("there is nothing to undo of entry {named}"),
    })
}

fn log_entry(session: &Session, number: u64) -> Result<Option<Entry>, Failure> {
    Ok(pipeline::log(session)?.into_iter().find(|one| one.id == EntryId(number)))
}

/// What was taken back, beside what the journal says of the entry.
pub(crate) fn undone_entries(
    session: &Session,
    undone: Vec<(EntryId, Vec<Outcome>)>,
    before: Vec<Entry>,
) -> Result<Vec<UndoneEntry>, Failure> {
    let log = pipeline::log(session)?;
    let entries = undone.into_iter().map(|(entry, outcomes)| {
        let open = log.iter().any(|one| one.id == entry && one.is_open());
        let written = before.iter().find(|one| one.id == entry).cloned();
        UndoneEntry { entry, open, outcomes, written }
    });
    Ok(entries.collect())
}
