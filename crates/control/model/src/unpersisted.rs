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

/// What will be gone after the next boot, and no file can bring back: one sentence for each knob and reason.
#[must_use]
pub fn gone_at_boot(unpersisted: &[Unpersisted]) -> Vec<String> {
    let groups = unpersisted.chunk_by(|a, b| (&a.knob, &a.reason) == (&b.knob, &b.reason));
    let sentence = |group: &[Unpersisted]| {
        let first = &group[0];
        let places = match group.len() {
            1 => first.place.clone(),
            count => format!("{count} places, such as {}", first.place),
        };
        format!("{} is not persisted ({places}): {}; {}", first.knob, first.reason, first.cure)
    };
    groups.map(sentence).collect()
}
