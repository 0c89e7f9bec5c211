//! Entries that are half way on the host: planish was killed amid an apply or an undo, or an undo could not put
//! something back. One that is at work right now is no matter of anybody's.

use std::fmt;

use planish_model::{Entry, EntryId, EntryState, EntryStep};

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
    /// A placement whose unit files hold, while a reboot took what it had placed with them.
    Placed,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, how, old } = self;
        match how {
            Half::Undone => {
                write!(f, "the undo of entry {entry} was interrupted, which is half way on the host")?
            }
            Half::Applied => write!(f, "entry {entry} was interrupted and is half way on the host")?,
            Half::Placed => write!(
                f,
                "entry {entry} keeps services on CPUs of their own, and a reboot took the interrupts, partitions or \
                 pools that it placed with them: apply its profile again, or take it back"
            )?,
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
    let boot_id = session.host().boot_id();
    gone::show(&mut seen, &boot_id);
    let is_told = |id: EntryId| transition::unfinished(entries).iter().any(|left| left.old == id);
    let of = |entry: &Entry| {
        let how = match (entry.state, entry.undo_begun) {
            (EntryState::Interrupted, false) => Half::Applied,
            (EntryState::Interrupted, true) => Half::Undone,
            _ if entry.is_undone_in_part() => Half::Left,
            _ if is_half_placed(entry, entries, &boot_id) => Half::Placed,
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

/// Whether a reboot took a part of what an entry had placed, and neither the boot loader brings it nor did a newer
/// entry of the profile.
fn is_half_placed(entry: &Entry, entries: &[Entry], boot_id: &str) -> bool {
    let places_units = |step: &EntryStep| step.knob.as_str() == "unit.placement" && !step.is_undone();
    let is_of_now =
        |other: &Entry| other.is_open() && other.boot_id == boot_id && other.profile == entry.profile;
    if !entry.is_open()
        || entry.boot_id == boot_id
        || !entry.steps.iter().any(places_units)
        || entry.steps.iter().any(|step| step.boot_arguments().is_some())
        || entries.iter().any(is_of_now)
    {
        return false;
    }
    let in_boot = planish_model::in_boot(entries, boot_id, &|_| None);
    let own = in_boot.iter().find(|other| other.id == entry.id);
    own.is_some_and(|own| own.steps.iter().any(gone::is_gone))
}
