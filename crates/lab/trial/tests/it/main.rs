//! Trials with synthetic arms: the noise and the truth are known, so the verdicts can be wrong.

mod builds;
mod crashes;
mod duet;
mod fake;
mod files;
mod hooks;
mod host;
mod recompute;
mod resident;
mod step;
mod warm;
