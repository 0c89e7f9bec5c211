//! The events of the journal: what each kind of line says.

use planish_model::{Closure, Entry, EntryId, EntryStep, Outcome, Plan, PlanHash, PoolWrite};
use serde::{Deserialize, Serialize};

/// What is about to be done, with everything that undo will need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The command or trial that makes it.
    pub command: String,
    /// The user's `--reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The profile.
    pub profile: String,
    /// The plan.
    pub plan: PlanHash,
    /// Deadline of the dead-man timer, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_by: Option<u64>,
    /// What the confirm is to persist, where there is one that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_confirm: Option<Box<Plan>>,
    /// The steps in the order of their writes, each with its originals and without an outcome.
    pub steps: Vec<EntryStep>,
}

/// One event. Steps are named by their index in the intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Event {
    /// The first line of a journal that continues an archived one.
    Continued {
        /// Name of the archive, in the same folder.
        archive: String,
        /// The last entry that was begun in it.
        last: EntryId,
    },
    /// An entry of the archived journal, as it was then: an open one, or one that undoing an open one asks for.
    Carried {
        /// All of it.
        whole: Box<Entry>,
    },
    /// An entry begins. Synced before the first write to the host.
    Intent {
        /// The entry.
        entry: EntryId,
        /// What is about to be done.
        #[serde(flatten)]
        intent: Intent,
    },
    /// A pool is about to be written.
    Pool {
        /// The entry.
        entry: EntryId,
        /// The step.
        step: usize,
        /// From how many pages to how many.
        write: PoolWrite,
    },
    /// How a step of an apply ended.
    Outcome {
        /// The entry.
        entry: EntryId,
        /// The step.
        step: usize,
        /// How it ended.
        outcome: Outcome,
    },
    /// Every step of an apply was tried. Synced.
    Applied {
        /// The entry.
        entry: EntryId,
    },
    /// The user confirmed it: no dead-man timer runs any more. Synced.
    Confirmed {
        /// The entry.
        entry: EntryId,
    },
    /// It is about to be undone. Synced before the first write to the host.
    Undo {
        /// The entry.
        entry: EntryId,
        /// Who asks: a command, or the dead-man timer.
        command: String,
        /// Whether theirs are overwritten too.
        force: bool,
    },
    /// How taking back a step ended.
    Undone {
        /// The entry.
        entry: EntryId,
        /// The step.
        step: usize,
        /// How it ended.
        outcome: Outcome,
    },
    /// The undo ended and something of the entry is still on the host. Synced.
    LeftOpen {
        /// The entry.
        entry: EntryId,
    },
    /// Nothing of the entry is on the host any more. Synced.
    Closed {
        /// The entry.
        entry: EntryId,
        /// Why.
        closure: Closure,
    },
}

impl Event {
    /// The entry that it speaks of.
    pub(crate) fn entry(&self) -> EntryId {
        match self {
            Self::Continued { last, .. } => *last,
            Self::Carried { whole } => whole.id,
            Self::Intent { entry, .. }
            | Self::Pool { entry, .. }
            | Self::Outcome { entry, .. }
            | Self::Applied { entry }
            | Self::Confirmed { entry }
            | Self::Undo { entry, .. }
            | Self::Undone { entry, .. }
            | Self::LeftOpen { entry }
            | Self::Closed { entry, .. } => *entry,
        }
    }

    /// Whether the line must be on disk before anything else happens.
    pub(crate) fn is_synced(&self) -> bool {
        !matches!(self, Self::Pool { .. } | Self::Outcome { .. } | Self::Undone { .. })
    }
}
