//! `planish check`: the host against a profile, a plan, or what was applied. Any user may ask.

use planish_model::{Drift, Entry, Exit};

use crate::apply::look_again;
use crate::error::PipelineError;
use crate::plan::{PlanOptions, plan};
use crate::session::Session;
use crate::source::Source;
use crate::unconfirmed::{self, Unconfirmed};

/// What a check found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// One row a concrete place.
    pub drift: Drift,
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
    let exit = if drift.is_clean() { Exit::Done } else { Exit::Findings };
    let profile = plan.map(|plan| plan.profile);
    let unconfirmed = unconfirmed::all(session, &entries);
    let boot_id = session.host().boot_id();
    let open = entries.into_iter().filter(|entry| entry.is_open() && entry.boot_id == boot_id).collect();
    Ok(Checked { drift, profile, open, unconfirmed, exit })
}
