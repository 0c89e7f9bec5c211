//! What a host shows against what it should show.
//!
//! Pure, and suspicious: it looks at a fresh observation and at the journal's entries, and never at what act
//! says that it wrote. A value counts as right when it *means* the same (normal form), never because a write
//! succeeded.
//!
//! Two things are told apart that other tools mix up. What cannot exist here is [`NotHere`], never a failure.
//! What our own steps changed besides their own place (the kernel recomputed it) is no drift.
//!
//! [`NotHere`]: planish_model::DriftState::NotHere

#![forbid(unsafe_code)]

mod compare;
mod given;
mod verify;
mod wish;

pub use verify::verify;
