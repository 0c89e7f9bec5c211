//! What `--persist` is about to write, shown before anybody is asked: by the steps that would be written, and from the
//! texts that the write itself makes.

use planish_act::{Sink, boot::format_of};
use planish_model::{BootFormat, Entry, EntryId, EntryStep, Persist, PersistFile, Plan, Undo};

use crate::apply::{due, is_in_force};
use crate::contents::Contents;
use crate::error::PipelineError;
use crate::persist::Persistence;
use crate::session::Session;
use crate::{intent, unconfirmed};

/// What `apply --persist` of a plan writes for the next boot, as host and journal are at this moment. A plan that has
/// such a preview is compared with it.
///
/// # Errors
/// What the apply itself refuses because of its files; a plan whose preview tells of others.
pub fn persisted(session: &Session, plan: &Plan) -> Result<Persist, PipelineError> {
    intent::refuse_elsewhere(session, plan)?;
    intent::refuse_forged(session, plan)?;
    let sink = session.sink()?;
    let entries = session.ledger()?.entries;
    unconfirmed::refuse(session, &entries, plan)?;
    let persistence = Persistence::of(session, plan, &entries, &*sink)?;
    let files = files(session, plan, &persistence, &entries, &*sink)?;
    refuse_unshown(plan, &files)?;
    Ok(Persist { files, left_out: persistence.left_out })
}

/// The files that are due, each with what a write changes in it.
pub(crate) fn files(
    session: &Session,
    plan: &Plan,
    persistence: &Persistence,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<Vec<PersistFile>, PipelineError> {
    if persistence.steps.is_empty() || is_in_force(session, entries, plan, persistence, sink)? {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for step in &persistence.steps {
        if let Some(step) = due(session, step.clone(), entries, sink)? {
            files.push(file(&step, entries, sink)?);
        }
    }
    Ok(files)
}

/// One file before its write and after it.
fn file(step: &EntryStep, entries: &[Entry], sink: &dyn Sink) -> Result<PersistFile, PipelineError> {
    let now = sink.read_file(&step.place).map_err(PipelineError::Before)?;
    changed(step, now.as_deref(), entries)
}

/// What the write of a step changes in a file that has this text.
pub(crate) fn changed(
    step: &EntryStep,
    now: Option<&str>,
    entries: &[Entry],
) -> Result<PersistFile, PipelineError> {
    let path = &step.place;
    let after = match (step.undo, BootFormat::of_knob(step.knob.as_str())) {
        (Undo::Edit, Some(format)) => {
            let text = now.unwrap_or_default();
            planish_boot::insert(format_of(format), text, &step.wanted)
                .map_err(|source| PipelineError::BootFile { path: path.clone(), source })?
        }
        _ => Contents::of(EntryId(0), step, entries).with_lines().to_owned(),
    };
    let mut file = PersistFile::between(path, now, &after);
    // GRUB's environment is filled up to a size: that says nothing.
    let is_filling =
        |line: &str| step.undo == Undo::Edit && line.len() > 1 && line.bytes().all(|byte| byte == b'#');
    file.removed.retain(|line| !is_filling(line));
    file.added.retain(|line| !is_filling(line));
    Ok(PersistFile { then: step.generator.map(|generator| generator.program().to_owned()), ..file })
}

/// Refuses to write what was not shown. A file that is due no more was written by somebody meanwhile.
pub(crate) fn refuse_unshown(plan: &Plan, files: &[PersistFile]) -> Result<(), PipelineError> {
    let Some(shown) = &plan.persist else { return Ok(()) };
    let unshown = files.iter().filter(|file| !shown.files.contains(file));
    let moved: Vec<String> =
        unshown.map(|file| format!("{} would become another file than was shown", file.path)).collect();
    if moved.is_empty() { Ok(()) } else { Err(PipelineError::Moved { moved }) }
}
