//! Randomised paired trials of any layer, and the one value that tells what they found.
#![forbid(unsafe_code)]

mod control;
mod error;
mod kernel;
mod ladder;
mod outcome;
mod resident;
mod sample;

pub use control::{Phase, Progress, Silent, Stop, Tick};
pub use error::TrialError;
pub use ladder::{Confirm, GuardSpec, LadderOptions, SEED_LIMIT, fresh_seed};
pub use outcome::*;
pub use resident::{Freshness, ResidentArm, ResidentArms, Slicing, run_resident};
pub use sample::{ArmError, Collected, Metric, Sample};
