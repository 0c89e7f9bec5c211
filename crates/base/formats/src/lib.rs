//! What other tools keep their settings in, as text: scripts of a shell, files of sections, profiles of tuned with
//! those that they include.
//!
//! Pure: text in, text out. An import makes values of it, and a look at a host finds out who else writes there; both
//! read it here, so that the two never tell different things of one file.
//!
//! Non-goals: what a value means, and which knob a path or a key is of. Rules of udev and files of boot loaders have
//! crates of their own.
#![forbid(unsafe_code)]

pub mod ini;
pub mod shell;
pub mod sysctl;
pub mod texts;
pub mod tmpfiles;
pub mod tuned;
pub mod unit;
