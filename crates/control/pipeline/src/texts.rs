//! Programs whose text open entries see to, and whether each is still the file that was put there.

use std::path::Path;

use planish_act::program::{LivePrograms, Programs, Side};
use planish_model::{Entry, EntryId, EntryStep, OutcomeKind, Undo};

use crate::session::Session;
use crate::warm;

/// What has the name of a program that an entry replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFile {
    /// The file that the entry put there.
    Ours,
    /// Another one: somebody replaced it since, as an upgrade of its package does.
    Overtaken,
    /// None.
    Removed,
    /// Nobody can tell.
    Unknown,
}

/// A program whose text open entries see to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldText {
    /// Its file.
    pub program: String,
    /// The entry that replaced the file, and what has its name now.
    pub replaced: Option<(EntryId, TextFile)>,
    /// The entry that has it warmed.
    pub warmed: Option<EntryId>,
}

impl HeldText {
    /// Whether the file that an entry put there has its name no longer.
    #[must_use]
    pub fn is_overtaken(&self) -> bool {
        matches!(self.replaced, Some((_, TextFile::Overtaken | TextFile::Removed)))
    }
}

/// Every such program, in the order of the entries.
pub(crate) fn held(session: &Session, entries: &[Entry]) -> Vec<HeldText> {
    let is_done = |step: &&EntryStep| {
        let done = step.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeKind::Done);
        step.undo == Undo::Exchanged && done && !step.is_undone()
    };
    let open = entries.iter().filter(|entry| entry.is_open());
    let replaced =
        open.flat_map(|entry| entry.steps.iter().filter(is_done).map(move |step| (entry.id, step)));
    let mut held: Vec<HeldText> = Vec::new();
    for (entry, step) in replaced {
        let file = file_now(session, step);
        held.push(HeldText { program: step.place.clone(), replaced: Some((entry, file)), warmed: None });
    }
    for (entry, program) in warm::warmed(entries) {
        match held.iter_mut().find(|text| text.program == program) {
            Some(text) => text.warmed = Some(entry),
            None => held.push(HeldText { program, replaced: None, warmed: Some(entry) }),
        }
    }
    held
}

/// What has the name of a program that a step replaced.
pub(crate) fn file_now(session: &Session, step: &EntryStep) -> TextFile {
    let root = session.host().folder().unwrap_or(Path::new("/"));
    match LivePrograms::new(session.host(), root).sum(&step.place, Side::Named) {
        Ok(Some(sum)) if sum == step.wanted => TextFile::Ours,
        Ok(Some(_)) => TextFile::Overtaken,
        Ok(None) => TextFile::Removed,
        Err(_) => TextFile::Unknown,
    }
}
