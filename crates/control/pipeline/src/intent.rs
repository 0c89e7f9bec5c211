//! From a plan to the intent of an entry: the last look at the host before the first write.

use planish_act::{Sink, stack};
use planish_host::Access;
use planish_model::{
    Class, Coupling, Entry, EntryStep, KnobId, Original, Plan, Skipped, Step, Undo, VerdictKind, place,
};

use crate::error::PipelineError;
use crate::session::Session;

/// Refuses a plan that is not for this host and this boot of it.
pub(crate) fn refuse_elsewhere(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    if !plan.is_intact() {
        return Err(PipelineError::Edited { hash: plan.hash.to_string() });
    }
    if plan.host_id != session.host().host_id() {
        return Err(PipelineError::Elsewhere { what: "host" });
    }
    if plan.boot_id != session.host().boot_id() {
        return Err(PipelineError::Elsewhere { what: "boot of this host" });
    }
    Ok(())
}

/// Refuses steps that no plan of this catalogue can hold. A hash proves that a file was not changed after it was
/// hashed, and nothing about who made it; root must not write `/proc/sysrq-trigger` because a file says so.
pub(crate) fn refuse_forged(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let catalogue = session.sound_catalogue()?;
    for step in plan.steps.iter().chain(&plan.boot) {
        let forged = |why: String| PipelineError::Forged { place: step.place.clone(), why };
        let knob = catalogue.knob(&step.knob)?;
        if place::captures(&knob.path, &step.place).is_none() {
            return Err(forged(format!("no place of {}", knob.id)));
        }
        if (step.class, step.undo) != (knob.class, knob.undo) {
            return Err(forged(format!("{} is of class {:?} here", knob.id, knob.class).to_lowercase()));
        }
        if matches!(knob.class, Class::Oneway | Class::Action) {
            return Err(forged(format!("{} cannot be undone", knob.id)));
        }
        knob.r#type.validate(&step.wanted).map_err(|error| forged(error.to_string()))?;
        for other in &step.coupled {
            let known = knob.coupled().any(|id| *id == other.knob);
            if !known || place::captures(&catalogue.knob(&other.knob)?.path, &other.place).is_none() {
                return Err(forged(format!("{} is not coupled with it", other.place)));
            }
        }
    }
    for step in &plan.boot {
        let forged = |why: &str| PipelineError::Forged { place: step.place.clone(), why: why.to_owned() };
        if catalogue.knob(&step.knob)?.argument(&step.wanted).is_none() {
            return Err(forged("no argument of the kernel sets it"));
        }
    }
    refuse_forged_lines(session, plan)
}

/// The same for values that are as wanted already: the hash does not cover them, and `--persist` writes them into
/// files that are read at every boot.
fn refuse_forged_lines(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let catalogue = session.sound_catalogue()?;
    for skipped in plan.skipped.iter().filter(|skipped| skipped.satisfied) {
        let forged = |why: String| PipelineError::Forged { place: skipped.place.clone(), why };
        let knob = catalogue.knob(&skipped.knob)?;
        if place::captures(&knob.path, &skipped.place).is_none() {
            return Err(forged(format!("no place of {}", knob.id)));
        }
        if matches!(knob.class, Class::Oneway | Class::Action) {
            return Err(forged(format!("{} cannot be undone", knob.id)));
        }
        let Some(wanted) = &skipped.wanted else { continue };
        knob.r#type.validate(wanted).map_err(|error| forged(error.to_string()))?;
    }
    Ok(())
}

/// Refuses a plan without a step when that is because nothing of it may be written: "nothing to do" would be a green
/// light for a container with a read-only `/proc/sys`.
pub(crate) fn refuse_blocked(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    if !plan.steps.is_empty() {
        return Ok(());
    }
    let blocked = |skipped: &&Skipped| !skipped.satisfied && skipped.verdict.verdict == VerdictKind::Blocked;
    for skipped in plan.skipped.iter().filter(blocked) {
        if matches!(session.host().access(&skipped.place), Access::ReadOnlyMount | Access::Denied(_)) {
            refuse_unwritable(session, &skipped.place)?;
        }
    }
    Ok(())
}

/// Notes values that the plan found as wanted and that are not so any more. Pools are left out: others raise and
/// lower them, and a plan wants no more of them than its own need.
fn look_at_satisfied(
    session: &Session,
    plan: &Plan,
    sink: &dyn Sink,
    moved: &mut Vec<String>,
) -> Result<(), PipelineError> {
    for skipped in plan.skipped.iter().filter(|skipped| skipped.satisfied) {
        let Some(wanted) = &skipped.wanted else { continue };
        let knob = session.sound_catalogue()?.knob(&skipped.knob)?;
        // What a kernel was booted with does not change before the next boot, and the plan is for this one.
        if knob.undo == Undo::Restore && knob.boot_parameter().is_none() {
            look(session, sink, &skipped.knob, &skipped.place, wanted, None, moved)?;
        }
    }
    Ok(())
}

/// The steps of an entry, with every original as the host shows it at this moment.
///
/// Refuses before anything is written: a place that we may not write, and a host that shows anything else than
/// the plan saw in any place that it names.
pub(crate) fn steps(
    session: &Session,
    plan: &Plan,
    open: &[Entry],
    sink: &dyn Sink,
) -> Result<Vec<EntryStep>, PipelineError> {
    let mut moved = Vec::new();
    let mut steps = Vec::new();
    for step in &plan.steps {
        refuse_unwritable(session, &step.place)?;
        let mut originals = vec![look(session, sink, &step.knob, &step.place, &step.now, None, &mut moved)?];
        for other in &step.coupled {
            let coupling = Some(other.coupling);
            originals.push(look(session, sink, &other.knob, &other.place, &other.now, coupling, &mut moved)?);
        }
        stack::link(&mut originals, open);
        steps.push(entry_step(step, originals));
    }
    look_at_satisfied(session, plan, sink, &mut moved)?;
    if moved.is_empty() { Ok(steps) } else { Err(PipelineError::Moved { moved }) }
}

fn entry_step(step: &Step, originals: Vec<Original>) -> EntryStep {
    EntryStep {
        knob: step.knob.clone(),
        place: step.place.clone(),
        wanted: step.wanted.clone(),
        class: step.class,
        undo: step.undo,
        raise_pages: step.raise_pages,
        service: step.service.clone(),
        // A pool is taken back by subtraction, whatever its size was: no other place is set back with it.
        originals: match step.undo {
            Undo::Subtract => originals.into_iter().filter(|original| original.coupling.is_none()).collect(),
            _ => originals,
        },
        folders: Vec::new(),
        generator: None,
        outcome: None,
        begun: None,
        undone: None,
    }
}

/// The original at a place; notes when it is not what the plan saw.
fn look(
    session: &Session,
    sink: &dyn Sink,
    knob: &KnobId,
    place: &str,
    seen: &str,
    coupling: Option<Coupling>,
    moved: &mut Vec<String>,
) -> Result<Original, PipelineError> {
    let kind = session.sound_catalogue()?.knob(knob)?.r#type.clone();
    let value = sink.read(place).map_err(PipelineError::Before)?;
    if !kind.same(&value, seen) {
        moved.push(format!("{place} is `{}`, the plan saw `{}`", kind.normal(&value), kind.normal(seen)));
    }
    let (knob, place) = (knob.clone(), place.to_owned());
    Ok(Original { knob, place, r#type: kind, value, coupling, over: None })
}

pub(crate) fn refuse_unwritable(session: &Session, place: &str) -> Result<(), PipelineError> {
    let why = match session.host().access(place) {
        Access::Writable | Access::WriteOnly => return Ok(()),
        Access::Absent => "it is not there".to_owned(),
        Access::ReadOnly => "nobody may write it".to_owned(),
        Access::ReadOnlyMount => "it is mounted read-only".to_owned(),
        Access::Denied(why) => why,
    };
    Err(PipelineError::NotWritable { place: place.to_owned(), why })
}
