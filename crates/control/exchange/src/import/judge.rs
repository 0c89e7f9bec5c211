//! What is asked of values besides their rows: what a plan on some host would refuse. This crate knows no host.

use planish_model::{Knob, KnobId, Profile};

/// What a plan would refuse.
pub trait Judge {
    /// Why no plan takes a value for some places of a knob, whatever else is wanted.
    fn alone(&self, knob: &Knob, only: Option<&str>, value: &str) -> Option<String>;

    /// What no plan takes of a profile, though each value could be wanted alone.
    fn together(&self, profile: &Profile) -> Option<Mistaken>;
}

/// Values that no plan takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistaken {
    /// Their knobs: one, or those that speak against each other.
    pub knobs: Vec<KnobId>,
    /// Why not.
    pub reason: String,
}
