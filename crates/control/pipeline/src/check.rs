//! `planish check`: the host against a profile, a plan, or what was applied. Any user may ask.

use std::collections::BTreeSet;

use planish_model::{Drift, Entry, Exit, Persisted, Unpersisted};

use crate::apply::look_again;
use crate::error::PipelineError;
use crate::persist;
use crate::plan::{PlanOptions, plan};
use crate::session::Session;
use crate::source::Source;
use crate::unconfirmed::{self, Unconfirmed};

/// What a check found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// One row a concrete place.
    pub drift: Drift,
    /// What will be lost at the next boot, and no file can bring back: of all that, `--persist` helps nothing.
    pub unkept: Vec<Unpersisted>,
    /// Files of planish at work here that no open entry of this journal wrote: those of another state folder.
    pub files_of_others: Vec<String>,
    /// The profile that was compared with, also where a plan file of it was named.
    pub profile: Option<String>,
    /// Entries that hold values of this boot, oldest first.
    pub open: Vec<Entry>,
    /// Entries of this boot that go by themselves unless they are confirmed.
    pub unconfirmed: Vec<Unconfirmed>,
    /// Done, or findings.
    pub exit: Exit,
}

/// Compares the host with a profile or plan, or with everything that is applied.
///
/// # Errors
/// Names that do not exist, a file that is no plan, a journal that cannot be read.
pub fn check(session: &Session, source: Option<&Source>) -> Result<Checked, PipelineError> {
    session.sound_catalogue()?;
    let plan = source.map(|source| plan(session, source, &PlanOptions::default())).transpose()?;
    let entries = session.ledger()?.entries;
    let drift = look_again(session, plan.as_ref(), &entries);
    let unkept = drift.knobs.iter().filter_map(persist::kept_by_no_file).collect();
    let files_of_others = files_of_others(&drift, &entries);
    let exit = if drift.is_clean() { Exit::Done } else { Exit::Findings };
    let profile = plan.map(|plan| plan.profile);
    let unconfirmed = unconfirmed::all(session, &entries);
    let boot_id = session.host().boot_id();
    let open = entries.into_iter().filter(|entry| entry.is_open() && entry.boot_id == boot_id).collect();
    Ok(Checked { drift, unkept, files_of_others, profile, open, unconfirmed, exit })
}

/// The files of a host are one, the journals of several state folders are not: what another one wrote is told apart.
fn files_of_others(drift: &Drift, entries: &[Entry]) -> Vec<String> {
    let sources = drift.knobs.iter().filter_map(|knob| knob.persisted.as_deref()?.rsplit_once(" ("));
    let ours = sources.filter_map(|(_, source)| Persisted::own_file(source.trim_end_matches(')')));
    let open = || entries.iter().filter(|entry| entry.is_open()).flat_map(|entry| &entry.steps);
    let is_known = |file: &str| open().any(|step| step.place == file && !step.is_undone());
    let strange: BTreeSet<&str> = ours.filter(|file| !is_known(file)).collect();
    strange.into_iter().map(str::to_owned).collect()
}
