//! What follows from what was seen: a plan, findings, sizes, and a verdict per knob.
//!
//! Everything here is pure. It reads an [`Observation`](planish_model::Observation), the catalogue and a
//! profile, and no crate below it can open a file: what this crate decides can be decided again, on another
//! machine, from a recorded host, and comes out the same.
//!
//! - [`verdict`]: can this knob be set here, and what is the evidence?
//! - [`plan`]: profile in, writes out, in the order of their dependencies;
//! - [`PlacementError`]: why services and interrupts are not placed as asked: whole or not at all;
//! - [`findings`]: what the machine loses, why, and the cure; and which other programs set knobs too;
//! - [`beyond_memory`]: why the host cannot give the pages of a plan any more;
//! - [`asks_of_file_limits`]: whether a knob needs to know how many open files programs are given;
//! - [`shuts_out`]: why the highest of open files that goes back would keep users out that it lets in now;
//! - [`asks_of_threads`]: whether a plan needs to know which CPUs are threads of one core;
//! - [`beyond_next_boot`]: why all pools of the next boot are more than its memory;
//! - [`size`]: how many huge pages a service needs, with the arithmetic.
//!
//! Undo is not here: it must work from the journal alone, so it lives beside the writes.

#![forbid(unsafe_code)]

mod against;
mod back;
mod boot;
mod bounds;
mod budget;
mod caches;
mod cards;
mod coupled;
mod cpus;
mod error;
mod files;
mod findings;
mod held;
mod mounts;
mod names;
mod next_boot;
mod order;
mod overlays;
mod pages;
mod parts;
mod placement;
mod plan;
mod pool;
mod size;
mod units;
mod verdict;
mod writers;

pub use against::{asks_of_threads, beside};
pub use back::{back, going_back};
pub use boot::unbootable;
pub use bounds::{class_by_value, holds, refusals, ruinous, starves};
pub use budget::{beyond_memory, beyond_memory_at_boot};
pub use cards::{BESIDE_CARDS, spares_loopback, waits_for_its_name};
pub use coupled::coupled;
pub use error::DecideError;
pub use files::{asks_of_file_limits, shuts_out};
pub use findings::{Against, findings, weigh};
pub use names::refuse as refuse_mistaken;
pub use next_boot::beyond_next_boot;
pub use order::{Values, depths_of, in_order, is_bound, within_bounds};
pub use parts::PartError;
pub use placement::{PlacementError, is_placed, refuse_overridden};
pub use plan::{Options, forbidden, plan};
pub use size::{DEFAULT_HEADROOM_PERCENT, Region, SizeRequest, size};
pub use verdict::{unmet, verdict};
pub use writers::{Kept, left_out, second_writers};

#[cfg(test)]
mod testing;
