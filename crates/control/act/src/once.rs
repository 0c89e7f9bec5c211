//! A trial boot: an entry that the loader takes once, and what names it, put there and taken away again.
//!
//! The loader itself takes the name away when it takes the entry, so that an undo finds less than was written. What
//! somebody else has set there meanwhile is no business of ours, and stays.

use planish_boot::once;
use planish_model::{EntryStep, OnceFormat, Outcome, OutcomeKind};

use crate::error::SinkError;
use crate::files;
use crate::perform::kind_of;
use crate::sink::{Sink, edit};

/// Writes a step of a trial boot.
pub(crate) fn add(format: OnceFormat, step: &EntryStep, sink: &dyn Sink) -> Outcome {
    let outcome = Outcome::new(step.knob.clone(), &step.place, OutcomeKind::Done);
    let added = match format {
        OnceFormat::Firmware => name_in_firmware(step, sink),
        _ => added(format, step, sink).and_then(|text| write(step, Some(&text), sink)),
    };
    ended(outcome, added)
}

/// Takes it away again. Whatever of it is there no longer was taken by the loader, or by somebody.
pub(crate) fn remove(format: OnceFormat, step: &EntryStep, force: bool, sink: &dyn Sink) -> Outcome {
    let mut outcome = Outcome::new(step.knob.clone(), &step.place, OutcomeKind::Done);
    if format == OnceFormat::Firmware {
        return match sink.read_variable(&step.place) {
            Ok(Some(name)) if name == step.wanted => {
                ended(outcome, sink.set_variable(&step.place, None).map_err(Failure::Host))
            }
            Ok(_) => satisfied(outcome),
            Err(error) => ended(outcome, Err(Failure::Host(error))),
        };
    }
    match sink.link(&step.place) {
        Ok(Some(target)) if !force => return files::kept_link(outcome, &target),
        Ok(_) => {}
        Err(error) => return ended(outcome, Err(Failure::Host(error))),
    }
    let now = match sink.read_file(&step.place) {
        Ok(Some(now)) => now,
        // A kill may have left the beginning of a new file beside the one that is not there.
        Ok(None) if step.original().is_none() => return ended(satisfied(outcome), write(step, None, sink)),
        Ok(None) => return satisfied(outcome),
        Err(error) => return ended(outcome, Err(Failure::Host(error))),
    };
    let before = step.original().map(|original| original.value.as_str());
    let is_edited = match format {
        OnceFormat::Menu => once::has_entry(&now),
        OnceFormat::Entry => true,
        OnceFormat::Block | OnceFormat::Firmware => false,
    };
    let left = match without(format, step, &now) {
        Some(left) => left,
        None if is_edited && force => before.unwrap_or_default().to_owned(),
        None if is_edited => {
            outcome.outcome = OutcomeKind::Theirs;
            outcome.detail = Some("someone changed the entry of the trial boot: theirs was kept".to_owned());
            return outcome;
        }
        None => return satisfied(outcome),
    };
    if before == Some(now.as_str()) || left == now {
        return satisfied(outcome);
    }
    let is_nothing = left.is_empty() || (format == OnceFormat::Block && once::is_fresh(&left));
    let left = Some(left.as_str()).filter(|_| before.is_some() || !is_nothing);
    if before.is_some() && left != before {
        outcome.detail = Some("it differs otherwise from what it was before: that was kept".to_owned());
    }
    ended(outcome, write(step, left, sink))
}

/// Why a step was not written.
enum Failure {
    Host(SinkError),
    Text(String),
}

fn satisfied(mut outcome: Outcome) -> Outcome {
    outcome.outcome = OutcomeKind::Satisfied;
    outcome
}

fn ended(mut outcome: Outcome, done: Result<(), Failure>) -> Outcome {
    let (kind, detail) = match done {
        Ok(()) => return outcome,
        Err(Failure::Host(error)) => (kind_of(&error), error.in_full()),
        Err(Failure::Text(why)) => (OutcomeKind::Failed, why),
    };
    (outcome.outcome, outcome.detail) = (kind, Some(detail));
    outcome
}

/// The file as it is to be.
fn added(format: OnceFormat, step: &EntryStep, sink: &dyn Sink) -> Result<String, Failure> {
    let now = sink.read_file(&step.place).map_err(Failure::Host)?;
    let text = match format {
        OnceFormat::Menu => once::add(now.as_deref().unwrap_or_default(), &step.wanted),
        OnceFormat::Block => once::arm(now.as_deref()),
        OnceFormat::Entry | OnceFormat::Firmware => Ok(step.wanted.clone()),
    };
    text.map_err(|odd| Failure::Text(odd.to_string()))
}

/// The file without what the step put in; `None` where that is not there as it was put in.
fn without(format: OnceFormat, step: &EntryStep, now: &str) -> Option<String> {
    match format {
        OnceFormat::Menu => once::take_out(now, &step.wanted),
        OnceFormat::Block => once::disarm(now, step.original().map(|original| original.value.as_str())),
        OnceFormat::Entry | OnceFormat::Firmware => (now == step.wanted).then(String::new),
    }
}

/// Writes a file and reads it back. One that was there before keeps its mode and owner.
fn write(step: &EntryStep, text: Option<&str>, sink: &dyn Sink) -> Result<(), Failure> {
    let path = &step.place;
    edit::in_bounds(path).map_err(Failure::Host)?;
    let was_there = step.original().is_some();
    match text {
        Some(text) if was_there => sink.edit_file(path, text.as_bytes()),
        text => sink.replace_file(path, text.map(str::as_bytes)),
    }
    .map_err(Failure::Host)?;
    let now = sink.read_file(path).map_err(Failure::Host)?;
    if now.as_deref() == text { Ok(()) } else { Err(unlike()) }
}

fn name_in_firmware(step: &EntryStep, sink: &dyn Sink) -> Result<(), Failure> {
    sink.set_variable(&step.place, Some(&step.wanted)).map_err(Failure::Host)?;
    let now = sink.read_variable(&step.place).map_err(Failure::Host)?;
    if now.as_deref() == Some(step.wanted.as_str()) { Ok(()) } else { Err(unlike()) }
}

fn unlike() -> Failure {
    Failure::Text("it does not read back as it was written".to_owned())
}

#[cfg(test)]
mod tests;
