//! `planish text huge` and `text bolt --replace`: a program's file that makes place for one whose text fits huge pages,
//! or that BOLT has laid out. An entry of the journal like any other: `planish undo` puts the original back, which lies
//! beside it until then.
//!
//! What the new file is, and whether it does what it is for, is known to who asks for it. Here is what makes it safe:
//! the lock, the guards, the intent before the first write, and an outcome that a fresh look has confirmed.

use std::path::Path;
use std::time::Duration;

use planish_act::Sink;
use planish_act::program::{
    LivePrograms, Programs, Side, beside, has_name, replace, sum_of, take_back as take_program_back,
};
use planish_host::Host;
use planish_model::{
    Class, Closure, Entry, EntryId, EntryStep, KnobId, Original, Outcome, OutcomeKind, Undo, ValueType,
};
use planish_sys::cgroup;
use tracing::info_span;

use crate::error::PipelineError;
use crate::session::Session;
use crate::texts::{self, TextFile};
use crate::{gone, intent};

/// How long another planish may take that is at work.
const PATIENCE: Duration = Duration::from_secs(5);

const KNOB: &str = "text.huge";

/// A program's file, and the one that is to have its name.
pub struct NewProgram<'a> {
    /// The file, as it is called on the host once all links are followed.
    pub path: &'a str,
    /// The content that the new one was made from.
    pub original: &'a [u8],
    /// The new content.
    pub bytes: &'a [u8],
    /// Also where the file is one of a package.
    pub packaged: bool,
    /// For the journal.
    pub reason: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedProgram {
    /// The entry that undoes it; `None` where nothing was replaced.
    pub entry: Option<EntryId>,
    /// Why nothing was; `None` where it was.
    pub why_not: Option<String>,
}

/// Where the original of a program lies that an open entry has replaced, and by which.
///
/// # Errors
/// A journal that cannot be read.
pub fn kept_original(session: &Session, path: &str) -> Result<Option<(EntryId, String)>, PipelineError> {
    Ok(open_entry(&session.ledger()?.entries, path).map(|id| (id, beside(path))))
}

/// What stands in the way of replacing a program that an open entry has replaced, and what to type first; `None` where
/// none has.
///
/// # Errors
/// A journal that cannot be read.
pub fn replaced_before(session: &Session, path: &str) -> Result<Option<String>, PipelineError> {
    let held = texts::held(session, &session.ledger()?.entries);
    let replaced = held.into_iter().filter(|text| text.program == path).find_map(|text| text.replaced);
    Ok(replaced.map(|(entry, file)| match file {
        TextFile::Overtaken | TextFile::Removed => format!(
            "entry {entry} replaced it, and somebody has replaced that since; undo leaves theirs, and comes first: \
             planish undo {entry}"
        ),
        TextFile::Ours | TextFile::Unknown => {
            format!("entry {entry} replaced it already, and undo comes first: planish undo {entry}")
        }
    }))
}

fn open_entry(entries: &[Entry], path: &str) -> Option<EntryId> {
    let holds = |step: &EntryStep| step.undo == Undo::Exchanged && step.place == path && !step.is_undone();
    let open = entries.iter().rev().find(|entry| entry.is_open() && entry.steps.iter().any(holds));
    open.map(|entry| entry.id)
}

/// Fails where [`replace_program`] would for what a program is, whose it is, and what lies with it: before the work
/// that makes the new one.
///
/// # Errors
/// The refusal.
pub fn check_program(session: &Session, path: &str, packaged: bool) -> Result<(), PipelineError> {
    let root = session.host().folder().unwrap_or(Path::new("/"));
    LivePrograms::new(session.host(), root).guard(path, packaged)?;
    Ok(())
}

/// The same for all else that [`replace_program`] looks at before its first write: memory, the entries of the journal,
/// what lies beside the program, and the file system. `bytes` is how long the new file is, or will be at least. Tells
/// why it could not be made, where that is known.
///
/// # Errors
/// Refusals, as of [`replace_program`]; a journal that cannot be read.
pub fn check_replacement(
    session: &Session,
    path: &str,
    bytes: u64,
    packaged: bool,
) -> Result<Option<String>, PipelineError> {
    let sink = session.sink()?;
    let programs = sink.programs(session.host()).ok_or_else(recorded)?;
    refuse_short(session.host(), bytes)?;
    programs.guard(path, packaged)?;
    let entries = session.ledger()?.entries;
    session.refuse_other_host(entries.iter().filter(|entry| entry.is_open()))?;
    refuse_replaced(&entries, path)?;
    is_left_over(&entries, path, &*programs)?;
    Ok(programs.room(path, bytes).err().map(|error| error.in_full()))
}

/// Replaces a program's file. `trial` is given the new one, beside the old one and with all that lies with that, before
/// it gets the name; what it says against it is told, and nothing is changed.
///
/// # Errors
/// Refusals, before anything was written: a file that is not replaced, or is another one by now; no room. A journal
/// that cannot be used.
pub fn replace_program(
    session: &Session,
    new: &NewProgram<'_>,
    trial: &mut dyn FnMut(&Path) -> Result<(), String>,
) -> Result<ReplacedProgram, PipelineError> {
    let sink = session.sink()?;
    let programs = sink.programs(session.host()).ok_or_else(recorded)?;
    refuse_short(session.host(), new.bytes.len() as u64)?;
    let mark = programs.guard(new.path, new.packaged)?;
    let mut journal = session.writer(PATIENCE)?;
    gone::close(&mut journal, &session.host().boot_id())?;

    // After this point no other planish writes this host.
    refuse_replaced(&journal.ledger().entries, new.path)?;
    let original = sum_of(new.original);
    let named = programs.sum(new.path, Side::Named).map_err(PipelineError::Before)?;
    if named.as_ref() != Some(&original) {
        let why = format!("{} is another file than the one that was looked at", new.path);
        return Err(refusal(why, "once more: planish ..."));
    }
    if is_left_over(&journal.ledger().entries, new.path, &*programs)? {
        programs.remove(new.path).map_err(PipelineError::Before)?;
    }
    let step = step(new, original);
    let entry = info_span!("record").in_scope(|| {
        let steps = vec![step.clone()];
        journal.begin(intent::unplanned(session, "text", new.reason.as_deref(), steps))
    })?;

    // After this point a kill leaves an entry that undo takes back.
    let outcome = info_span!("act").in_scope(|| replace(&step, (mark, new.bytes), trial, &*programs));
    let is_done = outcome.outcome == OutcomeKind::Done;
    let why_not = outcome.detail.clone().filter(|_| !is_done);
    let is_left = !is_done && has_name(&step, &mark, &*programs);
    let half_way = |source| PipelineError::JournalHalfWay { entry, restored: false, source };
    journal.outcome(entry, 0, outcome).map_err(half_way)?;
    journal.applied(entry).map_err(half_way)?;
    if !is_done && !is_left {
        journal.close(entry, Closure::Empty).map_err(half_way)?;
    }
    Ok(ReplacedProgram { entry: (is_done || is_left).then_some(entry), why_not })
}

fn recorded() -> PipelineError {
    refusal("the programs of a recorded host are not replaced", "leave out --root")
}

fn refuse_replaced(entries: &[Entry], path: &str) -> Result<(), PipelineError> {
    open_entry(entries, path).map_or(Ok(()), |id| {
        let why = format!("entry {id} has replaced {path} already");
        Err(refusal(why, format!("take that back first: planish undo {id}")))
    })
}

/// Whether something lies beside a program that an entry left there which is closed: its original, which somebody's new
/// file took the place of, or a copy of ours. What is not ours is refused.
fn is_left_over(entries: &[Entry], path: &str, programs: &dyn Programs) -> Result<bool, PipelineError> {
    let Some(sum) = programs.sum(path, Side::Beside).map_err(PipelineError::Before)? else {
        return Ok(false);
    };
    let steps = entries.iter().flat_map(|entry| &entry.steps);
    let mut steps = steps.filter(|step| step.undo == Undo::Exchanged && step.place == path);
    if steps.any(|step| step.wanted == sum || step.original().is_some_and(|original| original.value == sum)) {
        return Ok(true);
    }
    let aside = beside(path);
    Err(refusal(format!("{aside} is there, and not ours"), format!("move it away: mv {aside} ...")))
}

fn refusal(why: impl Into<String>, cure: impl Into<String>) -> PipelineError {
    PipelineError::Program { why: why.into(), cure: cure.into() }
}

/// Refuses what would take memory that others need: the new file is in the page cache as a whole.
fn refuse_short(host: &Host, bytes: u64) -> Result<(), PipelineError> {
    let meminfo = host.read("/proc/meminfo").unwrap_or_default();
    let kib = |key: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    if let Some((total, available)) = kib("MemTotal:").zip(kib("MemAvailable:"))
        && available.saturating_mul(1024).saturating_sub(bytes) < total.saturating_mul(1024) / 16
    {
        let why =
            format!("{} MiB for the new file would leave too little of {} MiB", mib(bytes), available >> 10);
        return Err(refusal(why, "free memory first, or take a time of less load"));
    }
    match cgroup::memory_room().filter(|room| host.is_live() && room.bytes < bytes) {
        None => Ok(()),
        Some(room) => {
            let (file, left) = (room.file.display(), mib(room.bytes));
            let why =
                format!("the new file has {} MiB, and {file} leaves {left} MiB to this shell", mib(bytes));
            Err(refusal(why, "run it outside of that control group"))
        }
    }
}

fn step(new: &NewProgram<'_>, original: String) -> EntryStep {
    let (knob, place) = (KnobId::new(KNOB), new.path.to_owned());
    let r#type = ValueType::Text { text: true };
    let kept = Original {
        knob: knob.clone(),
        place: place.clone(),
        r#type,
        value: original,
        coupling: None,
        over: None,
    };
    let step = EntryStep::new(knob, place, sum_of(new.bytes), Class::Safe, Undo::Exchanged);
    EntryStep { originals: vec![kept], ..step }
}

/// Takes a step back. It needs nothing but the sums in the journal, in this boot or a later one.
pub(crate) fn take_back(host: &Host, step: &EntryStep, force: bool, sink: &dyn Sink) -> Outcome {
    match sink.programs(host) {
        Some(programs) => take_program_back(step, force, &*programs),
        None => {
            let outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::Failed);
            Outcome { detail: Some("files of programs are not written on this host".to_owned()), ..outcome }
        }
    }
}
