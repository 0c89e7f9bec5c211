//! Randomised paired trials of any layer, and the one value that tells what they found.
#![forbid(unsafe_code)]

mod outcome;

pub use outcome::*;
