//! Drift: what a host shows against what it should show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KnobId;

/// How one place compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftState {
    /// As wanted.
    Ok,
    /// Something else than wanted.
    Drift,
    /// As wanted now, and not after the next boot: a file overwrites it (`next_boot` tells), or nothing brings it
    /// back (`next_boot` is null).
    LostAtBoot,
    /// Wanted at the next boot only, and persisted.
    PendingReboot,
    /// Cannot exist here: never a failure.
    NotHere,
    /// Could not be read.
    Unknown,
}

/// One place of a knob: what runs, what is persisted, what the next boot will bring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobCheck {
    /// The knob.
    pub knob: KnobId,
    /// The concrete path.
    pub place: String,
    /// The value that runs, in normal form.
    pub running: Option<String>,
    /// The value in a file of the host, and which file and line: `10 (/etc/sysctl.d/90-x.conf:3)`.
    pub persisted: Option<String>,
    /// The value after the next boot, where files tell.
    pub next_boot: Option<String>,
    /// The value of the profile or plan, where one was named, applied or persisted by planish.
    pub wanted: Option<String>,
    /// How it compares.
    pub state: DriftState,
    /// Why: who changed it, who will overwrite it, why it cannot be here.
    pub because: Option<String>,
}

/// All places that were compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// One row a concrete place.
    pub knobs: Vec<KnobCheck>,
}

impl Drift {
    /// Whether everything is as wanted, and no file will change that at the next boot. What planish was never asked
    /// to set is told and not judged; what merely nobody persisted was not wanted after a boot.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.knobs.iter().any(|knob| match knob.state {
            DriftState::Drift => knob.wanted.is_some(),
            DriftState::LostAtBoot => knob.next_boot.is_some(),
            _ => false,
        })
    }
}
