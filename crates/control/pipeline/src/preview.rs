//! What `--persist` is about to write, shown before anybody is asked: by the steps that would be written, and from the
//! texts that the write itself makes.

use planish_act::{Sink, boot::format_of};
use planish_host::Access;
use planish_model::{BootFormat, Catalogue, Entry, EntryId, EntryStep, Persist, PersistFile, Plan, Undo};

use crate::apply::{ApplyOptions, goes, is_due, without};
use crate::contents::Contents;
use crate::error::PipelineError;
use crate::session::Session;
use crate::{intent, prepare};

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
    let mut refusals = prepare::refused_outright(session, plan);
    let prepared = prepare::prepare(session, plan, &ApplyOptions::to_files(), &entries, &sink)?;
    refusals.extend(prepared.refusals.into_iter().map(|error| unless_hidden(session, error)));
    // Any user may ask, and make a record: what root may write there is root's to find out.
    let is_denied = |place: &str| {
        let folder = place.rsplit_once('/').map_or("/", |(folder, _)| folder);
        let denied = |access: Access| matches!(access, Access::Denied(_));
        denied(session.host().access(place)) || denied(session.host().folder_access(folder))
    };
    refusals.retain(|refusal| match refusal {
        PipelineError::NotWritable { place, .. } if is_denied(place) => false,
        refusal => !refusal.is_for_root() || rustix::process::geteuid().is_root(),
    });
    let persist = Persist { files: prepared.files, left_out: prepared.persistence.left_out };
    Ok(Preview { persist, refusals })
}

/// Whether the host still shows what a plan saw that was made before: what its apply looks at first. It only reads.
///
/// # Errors
/// Each place with what it shows now; a knob that the catalogue does not have, a journal that cannot be read.
pub fn refuse_moved(session: &Session, plan: &Plan) -> Result<(), PipelineError> {
    let entries = session.ledger()?.entries;
    let prepared =
        prepare::prepare(session, plan, &ApplyOptions::default(), &entries, &session.looking_sink())?;
    let is_moved = |refusal: &PipelineError| matches!(refusal, PipelineError::Moved { .. });
    prepared.refusals.into_iter().find(is_moved).map_or(Ok(()), Err)
}

/// The same for an apply that asks: nobody is asked about what is refused anyway.
///
/// # Errors
/// What the apply itself refuses because of its files; a host that cannot be written; a plan whose preview tells of
/// others.
pub fn persisted(session: &Session, plan: &Plan) -> Result<Persist, PipelineError> {
    session.sink()?;
    let Preview { persist, refusals } = preview(session, plan)?;
    PipelineError::first(refusals).map(|()| persist)
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

/// What a plan is to change in the file of a step, and by the going of an entry whose place it takes; `None` for one
/// that has its lines already.
pub(crate) fn due_file(
    session: &Session,
    step: &EntryStep,
    plan: &Plan,
    entries: &[Entry],
    sink: &dyn Sink,
) -> Result<Option<PersistFile>, PipelineError> {
    let is_due = is_due(session, step, plan, entries, sink)?;
    let file =
        is_due.then(|| file(step, &without(entries, goes(plan)), session.catalogue(), sink)).transpose()?;
    // Lines that another entry has from here on, too, are no change.
    Ok(file.filter(|file| file.new || !file.added.is_empty() || !file.removed.is_empty()))
}

/// One file before its write and after it.
fn file(
    step: &EntryStep,
    entries: &[Entry],
    catalogue: &Catalogue,
    sink: &dyn Sink,
) -> Result<PersistFile, PipelineError> {
    // A file of the boot loader is edited; one of ours is replaced as a whole, or refused as somebody else's.
    let now = match step.undo {
        Undo::Edit => sink.read_file(&step.place),
        _ => sink.look_at_file(&step.place),
    };
    changed(step, now.map_err(PipelineError::Before)?.as_deref(), entries, catalogue)
}

/// What stands for the number of the entry in the tag of its arguments: which it will be is known at the write, and a
/// plan that was saved may be applied behind others.
const NO_ENTRY_YET: char = 'N';

/// What the write of a step changes in a file that has this text.
pub(crate) fn changed(
    step: &EntryStep,
    now: Option<&str>,
    entries: &[Entry],
    catalogue: &Catalogue,
) -> Result<PersistFile, PipelineError> {
    let path = &step.place;
    let after = match (step.undo, BootFormat::of_knob(step.knob.as_str())) {
        (Undo::Edit, Some(format)) => {
            let text = now.unwrap_or_default();
            planish_boot::insert_tagged(format_of(format), text, &step.wanted, NO_ENTRY_YET)
                .map_err(|source| PipelineError::BootFile { path: path.clone(), source })?
        }
        _ => Contents::of(EntryId(0), step, entries, catalogue).with_lines().to_owned(),
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
