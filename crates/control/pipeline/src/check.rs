//! `planish check`: the host against a profile, a plan, or what was applied. Any user may ask.

use planish_model::{Drift, Exit};

use crate::apply::look_again;
use crate::error::PipelineError;
use crate::plan::{PlanOptions, plan};
use crate::session::Session;
use crate::source::Source;

/// What a check found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// One row a concrete place.
    pub drift: Drift,
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
    let drift = look_again(session, plan.as_ref(), &session.ledger()?.entries);
    let exit = if drift.is_clean() { Exit::Done } else { Exit::Findings };
    Ok(Checked { drift, exit })
}
