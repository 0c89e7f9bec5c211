//! The events of the journal: what each kind of line says.

use planish_model::{Allowed, Closure, Entry, EntryId, EntryStep, Outcome, Plan, PlanHash, PoolWrite, Undo};
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
    /// What was allowed besides what is safe, when the plan was made.
    #[serde(default, skip_serializing_if = "Allowed::is_nothing")]
    pub allowed: Allowed,
    /// The entry whose place it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<EntryId>,
    /// The steps in the order of their writes, each with its originals and without an outcome.
    pub steps: Vec<EntryStep>,
}

/// Pages of a pool that become those of another entry: the one that takes the place of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// That entry.
    pub to: EntryId,
    /// Its step.
    pub step: usize,
    /// How many.
    pub pages: u64,
    /// What a line of others gave when they were raised, where it means none of them still: see
    /// [`planish_model::EntryStep::line`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// How the command of an undo ends that the dead-man timer of an entry began: nobody had confirmed it.
pub const NOT_CONFIRMED: &str = " (nobody confirmed it in time)";

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
        /// Pages that went to another entry with it, and are no more this one's. In one line with the outcome: a kill
        /// between two would leave them to both, or to nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handed: Option<Handed>,
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
        /// The entry that took its place, where that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EntryId>,
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

    /// The oldest version of the format that knows all of it. A planish that does not would leave out what it cannot
    /// name: above all, whose originals an entry has that took the place of another one.
    pub(crate) fn version(&self) -> u32 {
        let in_place = match self {
            Self::Intent { intent, .. } => intent.instead_of.is_some(),
            Self::Carried { whole } => whole.instead_of.is_some() || whole.replaced_by.is_some(),
            _ => false,
        };
        let steps = match self {
            Self::Intent { intent, .. } => intent.steps.as_slice(),
            Self::Carried { whole } => whole.steps.as_slice(),
            _ => &[],
        };
        // An older one knows no step that is taken back so, and would call the line damaged.
        let exchanged = steps.iter().any(|step| step.undo == Undo::Exchanged);
        match (exchanged, in_place) {
            (true, _) => 3,
            (false, true) => 2,
            (false, false) => 1,
        }
    }

    /// Whether the line must be on disk before anything else happens.
    pub(crate) fn is_synced(&self) -> bool {
        !matches!(self, Self::Pool { .. } | Self::Outcome { .. } | Self::Undone { .. })
    }
}
