//! The statistics of a trial: what may be believed from paired, randomised starts of a service.
//!
//! Everything here is pure: no I/O, no clock, no global state, and one own generator whose seed the caller
//! stores. The method and the simulation behind it are told in `docs/statistics.md`.
//!
//! One sign and one unit hold throughout. A pair is one number, the **pair log**: the log ratio of its two
//! trials, positive when the arm is better than the baseline ([`Better::pair_log`]). Effects, bounds,
//! margins and minimum gains are in that unit; [`Better::gain`] turns them into the fraction that people
//! read, and only reports do so.
#![forbid(unsafe_code)]

pub mod binomial;
pub mod builds;
pub mod ladder;
pub mod noise;
pub mod order;
pub mod sequential;
pub mod signed_rank;
pub mod simulate;
pub mod spending;
pub mod summary;
pub mod walsh;
pub mod warmup;

mod error;
mod interval;
mod rng;

pub use error::StatsError;
pub use interval::{Estimate, Interval};
pub use rng::Rng;
pub use sequential::{
    Bound, Conclusion, Decision, Guard, GuardFinding, GuardState, Reason, Sequential, Verdict,
};
pub use signed_rank::SignedRank;
pub use spending::Design;
pub use summary::Better;
pub use walsh::{Walsh, hodges_lehmann};
pub use warmup::WarmUp;
