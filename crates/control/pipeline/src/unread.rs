//! Drop-ins of open entries that no start of a service reads: it is masked, or its unit was taken away since. The rest
//! of such an entry, its interrupts and pools, stays as it is for nobody.

use std::collections::BTreeSet;
use std::fmt;

use planish_model::{Entry, EntryId};

use crate::session::Session;
use crate::units::unit_of;
use crate::warm;

/// A drop-in that an open entry wrote, and whose service nobody can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadDropIn {
    /// The entry; of several that have lines in it the newest.
    pub entry: EntryId,
    /// The drop-in.
    pub path: String,
    /// The service.
    pub unit: String,
    /// The file that masks it; without one there is no unit of that name.
    pub masked: Option<String>,
}

impl fmt::Display for UnreadDropIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, path, unit, masked } = self;
        match masked {
            Some(by) => write!(f, "{unit} is masked by {by}")?,
            None => write!(f, "there is no {unit} any more")?,
        }
        write!(
            f,
            ": nothing reads {path} of entry {entry}; to take back what that set for it: planish undo {entry}"
        )
    }
}

/// Those of a host whose process 1 is systemd, each once.
pub(crate) fn unread(session: &Session, entries: &[Entry]) -> Vec<UnreadDropIn> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for entry in entries.iter().rev().filter(|entry| entry.is_open()) {
        let there = entry.steps.iter().filter(|step| step.is_in_file() && !step.is_undone());
        for (path, unit) in there.filter_map(|step| Some((&step.place, unit_of(&step.place)?))) {
            if !seen.insert(path) {
                continue;
            }
            let masked = warm::masked(session, unit);
            if masked.is_some() || !warm::has_unit(session, unit) {
                let (path, unit) = (path.clone(), unit.to_owned());
                found.push(UnreadDropIn { entry: entry.id, path, unit, masked });
            }
        }
    }
    found.reverse();
    found
}
