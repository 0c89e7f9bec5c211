//! What `--persist` is about to write, shown before anybody is asked: by the steps that would be written, and from the
//! texts that the write itself makes.

use planish_act::{Sink, boot::format_of};
use planish_model::{BootFormat, Entry, EntryId, EntryStep, Persist, PersistFile, Plan, Undo};

use crate::apply::{due, goes, is_in_force, without};
use crate::contents::Contents;
use crate::error::PipelineError;
use crate::persist::Persistence;
use crate::session::Session;
use crate::{intent, unconfirmed};

/// What `apply --persist` of a plan comes to, as host and journal are at this moment.
#[derive(Debug)]
pub struct Preview {
    /// What it writes, as far as that can be told.
    pub persist: Persist,
    /// Why that apply is refused, in the order in which it would say so; none where it is not.
    pub refusals: Vec<PipelineError>,
}

/// Looks at what `apply --persist` of a plan would write. It only reads: any host, and as any user who may read. What
/// the apply refuses because of its files is told, and the rest is shown.
///
/// # Errors
/// A plan that is not for this host, or that was changed; a journal that cannot be read.
pub fn preview(session: &Session, plan: &Plan) -> Result<Preview, PipelineError> {
    intent::refuse_elsewhere(session, plan)?;
    intent::refuse_forged(session, plan)?;
    let sink = session.looking_sink();
    let entries = session.ledger()?.entries;
    let mut refusals: Vec<PipelineError> =
        unconfirmed::refuse(session, &entries, plan, true).err().into_iter().collect();
    let (persistence, refusal) = Persistence::look(session, plan, &entries, &sink)?;
    refusals.extend(refusal);
    let mut files = Vec::new();
    match is_due(session, plan, &persistence, &entries, &sink) {
        Ok(false) => {}
        Ok(true) => {
            for step in &persistence.steps {
                match due_file(session, step, &entries, goes(plan), &sink) {
                    Ok(file) => files.extend(file),
                    Err(error) => refusals.push(unless_hidden(session, error)),
                }
            }
        }
        Err(error) => refusals.push(error),
    }
    refusals.extend(refuse_unshown(plan, &files).err());
    Ok(Preview { persist: Persist { files, left_out: persistence.left_out }, refusals })
}

/// The same for an apply that asks: nobody is asked about what is refused anyway.
///
/// # Errors
/// What the apply itself refuses because of its files; a host that cannot be written; a plan whose preview tells of
/// others.
pub fn persisted(session: &Session, plan: &Plan) -> Result<Persist, PipelineError> {
    session.sink()?;
    let Preview { persist, refusals } = preview(session, plan)?;
    refusals.into_iter().next().map_or(Ok(persist), Err)
}

/// To a user who may not read root's journal, a file that root's planish wrote looks like somebody else's.
fn unless_hidden(session: &Session, error: PipelineError) -> PipelineError {
    match (error, session.hidden_state()) {
        (PipelineError::ForeignFile { .. }, Some(folder)) => {
            PipelineError::RootsJournal { folder: folder.to_owned() }
        }
        (error, _) => error,
    }
}

/// The files that are due of a plan that is not in force, each with what a write changes in it.
pub(crate) fn files(
    session: &Session,
    plan: &Plan,
    persistence: &Persistence,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<Vec<PersistFile>, PipelineError> {
    let files = persistence.steps.iter().map(|step| due_file(session, step, entries, goes(plan), sink));
    files.filter_map(Result::transpose).collect()
}

/// Whether any file may be due: none is for a plan that is in force with its files.
fn is_due(
    session: &Session,
    plan: &Plan,
    persistence: &Persistence,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<bool, PipelineError> {
    Ok(!persistence.steps.is_empty() && !is_in_force(session, entries, plan, persistence, sink)?)
}

/// What is to change in the file of a step, and by the going of an entry whose place it takes; `None` for one that has
/// its lines already.
fn due_file(
    session: &Session,
    step: &EntryStep,
    entries: &[Entry],
    gone: Option<EntryId>,
    sink: &dyn Sink,
) -> Result<Option<PersistFile>, PipelineError> {
    let due = due(session, step.clone(), entries, gone, sink)?;
    let file = due.map(|step| file(&step, &without(entries, gone), sink)).transpose()?;
    // Lines that another entry has from here on are no change.
    Ok(file.filter(|file| gone.is_none() || file.new || !file.added.is_empty() || !file.removed.is_empty()))
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
    let paths: Vec<String> = unshown.map(|file| file.path.clone()).collect();
    if paths.is_empty() { Ok(()) } else { Err(PipelineError::Unshown { paths }) }
}
