//! Arguments that an open entry put into a file of the boot loader, and that are not in it any more. What the next
//! boot gives is told by the rows of a check; another entry of the menu, the next menu that is made, and the next
//! kernel that is installed come from these files, too.

use std::collections::BTreeSet;
use std::fmt;

use planish_act::boot::{is_in, resolved};
use planish_model::{BootFormat, Entry, EntryId, EntryStep, OutcomeKind, Undo};

use crate::copied::run_of;
use crate::devices;
use crate::session::Session;

/// A file of the boot loader that lacks what an open entry put into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRun {
    /// The entry.
    pub entry: EntryId,
    /// The file.
    pub path: String,
    /// The arguments, as they were put in.
    pub arguments: String,
}

impl fmt::Display for LostRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, path, arguments } = self;
        write!(
            f,
            "{path} gives no `{arguments}` any more, which entry {entry} put there, and boots by it come without: \
             planish undo {entry} --force, then apply it again"
        )
    }
}

/// Whether a step was done, by its entry or by the one whose place that takes.
fn is_held(step: &EntryStep) -> bool {
    let kind = step.outcome.as_ref().map(|outcome| outcome.outcome);
    matches!(kind, Some(OutcomeKind::Done | OutcomeKind::TakenOver))
}

/// Whether a text has all of some arguments, in any order and beside others. A comment gives none.
fn has_all(text: &str, arguments: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let separates = |c: char| c.is_whitespace() || "\"'".contains(c);
    let words: BTreeSet<&str> = lines.flat_map(|line| line.split(separates)).collect();
    arguments.split_whitespace().all(|word| words.contains(word))
}

/// What open entries lack. An entry of the menu whose file is gone went with its kernel, and what may not be read may
/// be as it was.
pub(crate) fn lost(session: &Session, entries: &[Entry]) -> Vec<LostRun> {
    let has_run = |entry: &&Entry| entry.is_open() && entry.steps.iter().any(|step| run_of(step).is_some());
    if !entries.iter().any(|entry| has_run(&entry)) {
        return Vec::new();
    }
    let mut entries = entries.to_vec();
    devices::follow(session.host(), &mut entries);
    let mut lost = Vec::new();
    for entry in entries.iter().filter(has_run) {
        let edited = entry.steps.iter().filter(|step| step.undo == Undo::Edit && !step.is_undone());
        for (step, arguments) in
            edited.filter_map(|step| Some((step, run_of(step).filter(|_| is_held(step))?)))
        {
            let is_of_kernel = BootFormat::of_knob(step.knob.as_str()) == Some(BootFormat::Entry);
            let text = match session.host().read_lossy(&step.place) {
                Ok(text) => text,
                Err(error) if error.is_absent() && !is_of_kernel => String::new(),
                Err(_) => continue,
            };
            if !is_in(&resolved(step, entry.id, &entries), &text) && !has_all(&text, arguments) {
                let (path, arguments) = (step.place.clone(), arguments.to_owned());
                lost.push(LostRun { entry: entry.id, path, arguments });
            }
        }
    }
    lost
}
