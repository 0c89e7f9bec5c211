//! Randomised paired trials of any layer, and the one value that tells what they found.
#![forbid(unsafe_code)]

mod adapter;
mod arm;
pub mod boots;
mod build;
mod child;
mod collect;
mod control;
mod duet;
mod error;
mod file;
mod hooks;
mod host;
mod kernel;
mod ladder;
mod measured;
mod numa;
mod outcome;
mod port;
pub mod postgres;
mod proof;
pub mod prove;
#[doc(hidden)]
pub mod raw;
mod resident;
mod run;
mod sample;
mod start;
mod text;

pub use adapter::{AdapterKind, HttpLoad, Number, SliceArm};
pub use child::Launch;
pub use control::{Phase, Progress, SECONDS_MAX, Silent, Stop, Tick};
pub use error::TrialError;
pub use file::{
    ArmSpec, BootSpec, BootsSpec, NewTrial, QuickSpec, ServiceSpec, TextSpec, TextWord, TrialFile,
    WarmUpSpec, WorkloadSpec, Worth, new,
};
pub use hooks::{ResetSpec, SettleSpec};
pub use host::{Action, Applied, HostControl, Kept, PipelineHost};
pub use ladder::{Confirm, GuardSpec, LadderOptions, PairsCure, SEED_LIMIT, WarmUpPlan, fresh_seed};
pub use outcome::*;
pub use proof::{Honesty, Proofs};
pub use resident::{Freshness, ResidentArm, ResidentArms, Slicing, run_resident};
pub use run::{Ground, RunOptions, honesty, run, run_on, selfcheck, selfcheck_on};
pub use sample::{ArmError, Collected, Metric, Sample, Window};
