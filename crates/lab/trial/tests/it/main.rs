//! Trials with synthetic arms: the noise and the truth are known, so the verdicts can be wrong.

mod fake;
mod files;
mod host;
mod resident;
