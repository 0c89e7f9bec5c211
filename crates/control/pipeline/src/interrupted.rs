//! Entries that are half way on the host: planish was killed amid an apply or an undo, or an undo could not put
//! something back. One that is at work right now is no matter of anybody's.

use std::fmt;

use planish_model::{Entry, EntryId, EntryState};

use crate::session::Session;
use crate::{gone, transition};

/// An entry that is neither whole on the host nor off it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The entry.
    pub entry: EntryId,
    /// How it came to that.
    pub how: Half,
    /// The entry whose place it was to take: that one is open still.
    pub old: Option<EntryId>,
}

/// How an entry came to be half way on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// A kill amid the apply.
    Applied,
    /// A kill amid the undo.
    Undone,
    /// The undo went to its end, and could not put all of it back.
    Left,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, how, old } = self;
        match how {
            Half::Undone => {
                write!(f, "the undo of entry {entry} was interrupted, which is half way on the host")?
            }
            Half::Applied => write!(f, "entry {entry} was interrupted and is half way on the host")?,
            Half::Left => write!(f, "entry {entry} is undone in part, and the rest could not be put back")?,
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
    let of = |entry: &Entry| {
        let how = match (entry.state, entry.undo_begun) {
            (EntryState::Interrupted, false) => Half::Applied,
            (EntryState::Interrupted, true) => Half::Undone,
            _ if entry.is_undone_in_part() => Half::Left,
            _ => return None,
        };
        let is_open = |old: &EntryId| seen.iter().any(|other| other.id == *old && other.is_open());
        let old = entry.instead_of.filter(is_open).filter(|_| !entry.undo_begun);
        Some(Interrupted { entry: entry.id, how, old })
    };
    let all: Vec<Interrupted> = seen.iter().filter(|entry| !is_told(entry.id)).filter_map(of).collect();
    // Asked last: what was half way when the journal was read may be whole by now, and is then no news either.
    if !all.is_empty() && session.is_written_now() { Vec::new() } else { all }
}
