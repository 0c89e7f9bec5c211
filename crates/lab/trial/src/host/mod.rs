//! Host arms: settings that are applied for a unit or for a whole trial and taken back, through the pipeline
//! and its journal.

mod keep;
mod pipeline;
mod rest;

use std::collections::BTreeMap;

use planish_model::{EntryId, HostFacts, KnobId, Profile};
use serde_json::Value;

pub use pipeline::PipelineHost;
pub(crate) use pipeline::{chain, not_persisted};
pub(crate) use rest::AtRest;

use crate::error::TrialError;
use crate::sample::ArmError;

/// What an apply has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The journal entry to undo; `None` when everything was as wanted already.
    pub entry: Option<EntryId>,
    /// The values read back, by place.
    pub values: BTreeMap<String, Value>,
    /// Pools that got fewer pages than they need, with the kernel's reason.
    pub short: Vec<String>,
}

/// What was persisted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What to know of it: its entry, the files that were written, what none of them brings back.
    pub notes: Vec<String>,
    /// Whether all of it is in force, and no file of the host takes it back at the next boot.
    pub lasts: bool,
}

/// How the reason of an entry begins that holds an arm, for as long as its units run.
pub(crate) const ARM: &str = "arm `";

/// Something that the kernel does once when it is asked to, between the units of a trial. It leaves no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Moves small pages together (`vm.compact_memory`).
    CompactMemory,
    /// Drops the page cache, and the slabs of names and inodes (`vm.drop_caches` = 3).
    DropCaches,
}

impl Action {
    /// The knob, and what is written to it.
    #[must_use]
    pub fn knob(self) -> (KnobId, &'static str) {
        match self {
            Self::CompactMemory => (KnobId::new("vm.compact_memory"), "1"),
            Self::DropCaches => (KnobId::new("vm.drop_caches"), "3"),
        }
    }
}

/// What a trial asks of the control plane. The journal makes it safe: after a `kill -9` at any moment,
/// `planish undo` takes back what was applied.
pub trait HostControl {
    /// Facts of the host, for the outcome.
    fn facts(&self) -> HostFacts;

    /// Whether this host and this user can have it, found without writing.
    fn can_have(&self, profile: &Profile) -> Result<(), ArmError>;

    /// Whether an apply of it would write anything; what the host has already makes no arm of its own.
    fn can_differ(&self, profile: &Profile) -> Result<(), ArmError>;

    /// Applies it and reads back.
    fn apply(&mut self, profile: &Profile) -> Result<Applied, ArmError>;

    /// Goes through all of an apply but its writes: plan, lock, journal, read-back. An arm that changes nothing does
    /// so in the place of a host arm. The values are those that the host has, by place.
    fn rehearse(&mut self, profile: &Profile) -> Result<Applied, ArmError>;

    /// The places that it sets here, each with its knob; those too that are as it wants them.
    fn places(&self, profile: &Profile) -> Vec<(KnobId, String)>;

    /// What a place shows at this moment; `None` where it cannot be read.
    fn value(&self, place: &str) -> Option<String>;

    /// Whether two texts of a place of this knob mean the same.
    fn same(&self, knob: &KnobId, one: &str, other: &str) -> bool;

    /// Takes one entry back.
    fn undo(&mut self, entry: EntryId) -> Result<(), ArmError>;

    /// Takes back every entry of this trial that is still open, the newest first.
    fn undo_all(&mut self) -> Result<(), ArmError>;

    /// Whether this host and this user can have an action, found without writing.
    fn can_do(&self, action: Action) -> Result<(), ArmError>;

    /// Has the kernel do it once.
    fn act(&mut self, action: Action) -> Result<(), ArmError>;

    /// Whether it could be applied for good, as far as a trial can measure it, found without writing.
    ///
    /// # Errors
    /// What refuses it, with the cure.
    fn can_persist(&self, profile: &Profile) -> Result<(), TrialError>;

    /// Applies for good, also after a reboot, what of it a trial can measure; says how to take it back, what was
    /// written and what was not.
    ///
    /// # Errors
    /// What refuses it, with the cure; a write that failed, and whether the host was put back.
    fn persist(&mut self, profile: &Profile, reason: &str) -> Result<Kept, TrialError>;
}
