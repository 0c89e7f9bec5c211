//! Actions: writes that make the kernel do something once, and hold no value (dropping caches, compacting memory).
//!
//! No plan can hold one and no profile can want one, since nothing can take it back. The lab asks for them by name
//! between the units of a trial, so that no arm meets what another one has left. Each is an entry of the journal all
//! the same: what was done to a host, when and why, is never only in somebody's memory.

use std::time::Duration;

use planish_host::Access;
use planish_model::{Class, Closure, EntryId, EntryStep, Knob, KnobId, Outcome, OutcomeKind, Undo};
use tracing::info_span;

use crate::error::PipelineError;
use crate::session::Session;
use crate::{gone, intent};

/// How long another planish may take that is at work.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether an action can be had here by this user, found without writing: its access as the host shows it.
///
/// # Errors
/// No such knob, or one that holds a value.
pub fn deed_access(session: &Session, id: &KnobId) -> Result<Access, PipelineError> {
    Ok(session.host().access(&action(session, id)?.path))
}

/// Has the kernel do an action once, with its beginning and its end in the journal.
///
/// # Errors
/// Refusals, before anything was written: no such action, a value that it does not take, no right; the kernel's own
/// refusal; a journal that cannot be used.
pub fn do_once(
    session: &Session,
    id: &KnobId,
    value: &str,
    reason: Option<&str>,
) -> Result<EntryId, PipelineError> {
    let knob = action(session, id)?;
    let forged = |why: String| PipelineError::Forged { place: knob.path.clone(), why };
    knob.validate(value).map_err(|error| forged(error.to_string()))?;
    intent::refuse_unwritable(session, &knob.path)?;
    let sink = session.sink()?;
    let mut journal = session.writer(PATIENCE)?;

    // After this point no other planish writes this host.
    let boot_id = session.host().boot_id();
    gone::close(&mut journal, &boot_id)?;
    let entry = info_span!("record").in_scope(|| {
        journal.begin(intent::unplanned(session, knob.id.as_str(), reason, vec![step(&knob, value)]))
    })?;
    // After this point a kill leaves an entry of which undo says that nothing is to be put back.
    let written = info_span!("act").in_scope(|| sink.write(&knob.path, value));
    let mut outcome = Outcome::new(knob.id.clone(), knob.path.clone(), OutcomeKind::Done);
    if let Err(error) = &written {
        (outcome.outcome, outcome.detail) = (OutcomeKind::Failed, Some(error.in_full()));
    }
    journal.outcome(entry, 0, outcome)?;
    journal.applied(entry)?;
    journal.close(entry, if written.is_ok() { Closure::Acted } else { Closure::Empty })?;
    written.map(|()| entry).map_err(PipelineError::Deed)
}

fn action(session: &Session, id: &KnobId) -> Result<Knob, PipelineError> {
    let knob = session.sound_catalogue()?.knob(id)?;
    if knob.class == Class::Action {
        return Ok(knob.clone());
    }
    let why = format!("{id} holds a value and is no action: a plan sets it");
    Err(PipelineError::Forged { place: knob.path.clone(), why })
}

fn step(knob: &Knob, value: &str) -> EntryStep {
    EntryStep::new(knob.id.clone(), knob.path.clone(), value.to_owned(), Class::Action, Undo::None)
}
