//! Entries: what was done to a host, and what it takes to undo it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Class, Coupling, KnobId, PlanHash, Undo};

/// The number of a journal entry, counted from 1 on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EntryId(pub u64);

impl std::fmt::Display for EntryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A value as it was before our first write: kept byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Original {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// The kernel's text.
    pub value: String,
    /// `None` for the place that a step writes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupling: Option<Coupling>,
}

/// A grant that was shorter than asked, with what the kernel's own lists say about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortGrant {
    /// Pages asked for.
    pub asked: u64,
    /// Pages granted.
    pub granted: u64,
    /// Why: free blocks of the size that were left, by node and zone, before and after compaction.
    pub reason: String,
}

/// How one step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// Written, and read back as wanted.
    Done,
    /// Already as wanted; nothing was written.
    Satisfied,
    /// A pool that got fewer pages than asked.
    Short,
    /// Written, but it reads back as something else, which is now "ours".
    ReadsBack,
    /// The kernel refused the write.
    Failed,
    /// Undo: someone else changed it since; theirs was kept.
    Theirs,
    /// Undo: a step of an earlier boot; nothing to write.
    GoneWithReboot,
    /// Undo: pages are still in use, so the pool could not be lowered; the entry stays open.
    InUse,
    /// The place is no longer there.
    Vanished,
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The value read back afterwards: what is "ours" from now on.
    pub read_back: Option<String>,
    /// For pools: pages that the kernel granted to this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_pages: Option<u64>,
    /// For a short grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortGrant>,
    /// Processes that hold what undo wants back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// The kernel's error or another remark, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A process that holds huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its short name.
    pub command: String,
    /// Bytes of huge pages it maps.
    pub bytes: u64,
}

/// A step of an entry: intent, original and, once it ran, outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryStep {
    /// The knob.
    pub knob: KnobId,
    /// The place.
    pub place: String,
    /// What was going to be written.
    pub wanted: String,
    /// Risk class.
    pub class: Class,
    /// How it is taken back.
    pub undo: Undo,
    /// For pools: pages asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise_pages: Option<u64>,
    /// The value before our first write, and those of the coupled places.
    pub originals: Vec<Original>,
    /// How it ended; `None` when planish was killed before it could say.
    pub outcome: Option<Outcome>,
}

/// How an entry was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Closure {
    /// Undone: every step is back, or theirs was kept.
    Undone,
    /// Its run-time steps went with a reboot.
    GoneWithReboot,
    /// It never wrote anything.
    Empty,
}

/// Whether an entry still holds something on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryState {
    /// Its values are on the host.
    Open,
    /// It waits for `planish confirm` and is undone at its deadline otherwise.
    Unconfirmed,
    /// planish was killed before the entry was complete: `undo` puts the host back.
    Interrupted,
    /// Nothing of it is on the host any more.
    Closed(Closure),
}

/// One apply: a line of `planish log`, and what `planish undo` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its number.
    pub id: EntryId,
    /// Seconds since 1970.
    pub at: u64,
    /// The boot it was made in.
    pub boot_id: String,
    /// Who: user name and, under sudo, who called it.
    pub who: String,
    /// The command or trial that made it.
    pub command: String,
    /// The user's `--reason`.
    pub reason: Option<String>,
    /// The profile.
    pub profile: String,
    /// The plan.
    pub plan: PlanHash,
    /// Steps in the order they were written.
    pub steps: Vec<EntryStep>,
    /// Deadline of the dead-man timer, seconds since 1970.
    pub confirm_by: Option<u64>,
    /// Whether it still holds something.
    pub state: EntryState,
}

impl Entry {
    /// Whether `undo` has something to do with it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.state, EntryState::Closed(_))
    }
}
