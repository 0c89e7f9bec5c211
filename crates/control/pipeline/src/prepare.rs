//! What an apply comes to before its first write, and why it is refused: the same for the apply itself, which stops at
//! the first reason, and for a look, which tells all of them and ends as that apply would.
//!
//! What only the moment of the write decides is not here: the lock, the right to write, and a host that is a recording.

use planish_act::Sink;
use planish_model::{Entry, EntryStep, PersistFile, Plan};

use crate::apply::{ApplyOptions, due, is_in_force};
use crate::error::PipelineError;
use crate::persist::Persistence;
use crate::session::Session;
use crate::{intent, preview, transition, unconfirmed};

/// What would be written, as host and journal are at this moment.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// What `--persist` comes to; nothing where it is not asked for.
    pub persistence: Persistence,
    /// Whether exactly this plan is in force already.
    pub is_in_force: bool,
    /// Files for the next boot that are due, and what changes in them.
    pub files: Vec<PersistFile>,
    /// The steps of the plan and of its files, each with its originals; none where any of it is refused.
    pub steps: Vec<EntryStep>,
    /// Why it is refused, in the order in which an apply says so.
    pub refusals: Vec<PipelineError>,
}

/// Why a plan is refused whatever the journal says, in that order.
pub(crate) fn refused_outright(session: &Session, plan: &Plan) -> Vec<PipelineError> {
    let first = [intent::refuse_elsewhere(session, plan), intent::refuse_forged(session, plan)];
    if let Some(refusal) = first.into_iter().find_map(Result::err) {
        // What a plan is worth that is for another host, or was changed, nothing else can tell.
        return vec![refusal];
    }
    let more = [
        intent::refuse_impossible(plan),
        intent::refuse_unbootable(session, plan),
        intent::refuse_short_of_memory(plan),
        intent::refuse_blocked(session, plan),
        crate::plan::refuse_overridden(session, plan),
    ];
    more.into_iter().filter_map(Result::err).collect()
}

/// Looks at all that an apply of this plan would write, and at everything that would keep it from that. It only reads.
///
/// # Errors
/// A knob that the catalogue does not have.
pub(crate) fn prepare(
    session: &Session,
    plan: &Plan,
    options: &ApplyOptions,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<Prepared, PipelineError> {
    let mut prepared = Prepared::default();
    let Prepared { persistence, is_in_force: is_there, files, steps, refusals } = &mut prepared;
    refusals.extend(unconfirmed::refuse(session, entries, plan, options).err());
    if options.persist {
        let (found, refusal) = Persistence::look(session, plan, entries, sink)?;
        *persistence = found;
        refusals.extend(refusal);
    }
    match is_in_force(session, entries, plan, persistence, sink) {
        Ok(true) => {
            *is_there = true;
            return Ok(prepared);
        }
        Ok(false) => {}
        Err(error) => refusals.push(error),
    }
    refusals.extend(transition::refuse_moved(session, entries, plan, sink).err());
    for step in &persistence.steps {
        match preview::due_file(session, step, plan, entries, sink) {
            // It is shown also to who may not write it.
            Ok(Some(file)) => {
                refusals.extend(intent::refuse_folder(session, &step.place).err());
                files.push(file);
            }
            Ok(None) => {}
            Err(error) => refusals.push(error),
        }
    }
    refusals.extend(preview::refuse_unshown(plan, files).err());
    let open = session.holding(entries);
    match intent::steps(session, plan, &open, options.persist, sink) {
        Ok(planned) if refusals.is_empty() => {
            for step in planned.into_iter().chain(persistence.steps.iter().cloned()) {
                match due(session, step, plan, entries, sink) {
                    Ok(step) => steps.extend(step),
                    Err(error) => refusals.push(error),
                }
            }
            if !refusals.is_empty() {
                steps.clear();
            }
        }
        Ok(_) => {}
        Err(error) => refusals.push(error),
    }
    Ok(prepared)
}
