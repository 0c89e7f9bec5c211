//! What `--persist` could not bring back at the next boot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KnobId;

/// A wanted value that no file of ours brings back at the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unpersisted {
    /// The knob.
    pub knob: KnobId,
    /// The concrete path.
    pub place: String,
    /// The value that will be gone.
    pub value: String,
    /// Why nothing brings it back.
    pub reason: String,
    /// What to do instead.
    pub cure: String,
}
