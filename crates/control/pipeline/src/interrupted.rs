//! Entries that are half way on the host: planish was killed amid an apply or an undo. One that is at work right now is
//! no matter of anybody's.

use std::fmt;

use planish_model::{Entry, EntryId, EntryState};

use crate::session::Session;
use crate::{gone, transition};

/// An entry that is neither whole on the host nor off it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The entry.
    pub entry: EntryId,
    /// Whether it was being undone, and not applied.
    pub by_undo: bool,
    /// The entry whose place it was to take: that one is open still.
    pub old: Option<EntryId>,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, by_undo, old } = self;
        match by_undo {
            true => write!(f, "the undo of entry {entry} was interrupted, which is half way on the host")?,
            false => write!(f, "entry {entry} was interrupted and is half way on the host")?,
        }
        match old {
            Some(old) => write!(f, " (it was to take the place of entry {old}, which stays)"),
            None => Ok(()),
        }
    }
}

/// All of them, oldest first, as a reboot since would have left them. What [`transition::unfinished`] names is told
/// there: it goes because another entry is whole.
pub(crate) fn all(session: &Session, entries: &[Entry]) -> Vec<Interrupted> {
    let mut seen = entries.to_vec();
    gone::show(&mut seen, &session.host().boot_id());
    let is_told = |id: EntryId| transition::unfinished(entries).iter().any(|left| left.old == id);
    let cut = seen.iter().filter(|entry| entry.state == EntryState::Interrupted && !is_told(entry.id));
    let of = |entry: &Entry| {
        let is_open = |old: &EntryId| seen.iter().any(|other| other.id == *old && other.is_open());
        let old = entry.instead_of.filter(is_open).filter(|_| !entry.undo_begun);
        Interrupted { entry: entry.id, by_undo: entry.undo_begun, old }
    };
    let all: Vec<Interrupted> = cut.map(of).collect();
    // Asked last: what was half way when the journal was read may be whole by now, and is then no news either.
    if !all.is_empty() && session.is_written_now() { Vec::new() } else { all }
}
