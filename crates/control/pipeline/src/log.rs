//! `planish log`: what was done to this host.

use planish_model::Entry;

use crate::error::PipelineError;
use crate::session::Session;

/// All entries, oldest first, as a reboot since would have left them.
///
/// # Errors
/// A journal that cannot be read, or that is root's.
pub fn log(session: &Session) -> Result<Vec<Entry>, PipelineError> {
    session.refuse_hidden()?;
    session.history()
}

/// Entries of the own journal that hold something in this boot, oldest first. What root applied is not among them where
/// only root may read it.
///
/// # Errors
/// A journal that cannot be read.
pub fn in_force(session: &Session) -> Result<Vec<Entry>, PipelineError> {
    session.open_entries()
}
