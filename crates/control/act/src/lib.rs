//! Carries out the steps of a plan and takes them back. The only writer of a host.
//!
//! A plan leaves no choice to act, save one that no plan can take: whether a value is still ours at the moment
//! when it is taken back. That comparison is pure ([`three_way`], [`stack`]) and needs nothing but the journal's
//! entries and the places themselves, so that undo works with a broken catalogue, too.
//!
//! Every write is one write to a file that exists, followed by a read. What the kernel refuses, changes or
//! grants in part is an outcome, and never a panic: see `planish_model::Outcome`.
//!
//! Invariants: nothing is written that is not in an intent of the journal, save the CPUs of a group whose file is taken
//! out ([`groups`]); a pool's size is recorded before
//! each write; nobody's value but ours is written over, unless the user forces it.

#![forbid(unsafe_code)]

pub mod boot;
mod buddy;
mod error;
pub mod files;
pub mod groups;
mod holders;
pub mod in_chars;
mod looking_sink;
mod model_sink;
mod once;
mod perform;
mod pool;
pub mod program;
pub mod relocate;
mod sink;
pub mod stack;
#[cfg(test)]
mod testing;
pub mod three_way;

pub use error::{ActError, Operation, Refusal, SinkError, in_full};
pub use looking_sink::LookingSink;
pub use model_sink::ModelSink;
pub use perform::{hand_over, hand_pages, perform, take_back};
pub use pool::{Recorder, settle};
pub use sink::{LiveSink, Sink};
