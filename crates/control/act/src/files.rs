//! Files of ours: replaced as a whole, and only when nobody else has changed them.

use planish_model::{KnobId, Outcome, OutcomeKind};

use crate::error::SinkError;
use crate::perform::kind_of;
use crate::sink::Sink;

/// What a file of ours should be.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    /// The name that the file goes by in outcomes.
    pub knob: &'a KnobId,
    /// The file.
    pub path: &'a str,
    /// Contents that planish left there; with any other one the file is theirs. `None`: no file.
    pub known: &'a [Option<&'a str>],
    /// The new content; `None` removes the file.
    pub content: Option<&'a str>,
    /// Folders that we made for it, the outermost first: without the file they go too, when they are empty.
    pub folders: &'a [String],
}

/// A link that somebody put where a file of ours was, and that stays.
pub(crate) fn kept_link(mut outcome: Outcome, target: &str) -> Outcome {
    outcome.outcome = OutcomeKind::Theirs;
    outcome.detail = Some(format!("someone put a link to {target} there: theirs was kept"));
    outcome
}

/// Replaces or removes a file of ours; a file that someone else wrote, or a link of its name, is kept, unless forced.
pub fn replace(wanted: &Replacement<'_>, force: bool, sink: &dyn Sink) -> Outcome {
    let mut outcome = Outcome::new(wanted.knob.clone(), wanted.path, OutcomeKind::Done);
    let refused = |mut outcome: Outcome, error: &SinkError| {
        outcome.outcome = kind_of(error);
        outcome.detail = Some(error.in_full());
        outcome
    };
    let link = match sink.link(wanted.path) {
        Ok(link) => link,
        Err(error) => return refused(outcome, &error),
    };
    if let Some(target) = link.as_ref().filter(|_| !force) {
        return kept_link(outcome, target);
    }
    // What a link leads to is no file of ours, whatever it says.
    let now = match link.as_ref().map_or_else(|| sink.read_file(wanted.path), |_| Ok(None)) {
        Ok(now) => now,
        Err(error) => return refused(outcome, &error),
    };
    if link.is_none() && now.as_deref() == wanted.content {
        // A kill may have left the beginning of a new file beside the one that is not there.
        if wanted.content.is_none()
            && let Err(error) =
                sink.replace_file(wanted.path, None).and_then(|()| clear(wanted.folders, sink))
        {
            return refused(outcome, &error);
        }
        outcome.outcome = OutcomeKind::Satisfied;
        outcome.read_back = now;
        return outcome;
    }
    if !force && !wanted.known.contains(&now.as_deref()) {
        outcome.outcome = OutcomeKind::Theirs;
        outcome.detail = Some(match now {
            Some(_) => "someone else wrote this file: theirs was kept".to_owned(),
            None => "someone removed this file: it was not made again".to_owned(),
        });
        return outcome;
    }
    if let Err(error) = sink.replace_file(wanted.path, wanted.content.map(str::as_bytes)) {
        return refused(outcome, &error);
    }
    if wanted.content.is_none()
        && let Err(error) = clear(wanted.folders, sink)
    {
        return refused(outcome, &error);
    }
    match sink.read_file(wanted.path) {
        Ok(read_back) => outcome.read_back = read_back,
        Err(error) => return refused(outcome, &error),
    }
    outcome
}

/// Removes folders that we made, the innermost first, as far as they are empty.
fn clear(folders: &[String], sink: &dyn Sink) -> Result<(), SinkError> {
    folders.iter().rev().try_for_each(|folder| sink.remove_folder(folder))
}
