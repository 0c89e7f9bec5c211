//! Function orders: in which sequence a linker should lay the functions of a program.
//!
//! ```text
//! CallProfile + Program ──> Subject ──> Graph ──> by weight, by density, c3, cdsort ──┐
//!                              └────────────────> the order that it has now ──────────┤
//!                                                                                     v
//!                  emit::* <── names <── the best, unless that is a near tie <── simulate: pages, caches
//! ```
//!
//! No order is best for every program, so several are made and each is laid out and run: [`simulate`] walks the call
//! graph and counts what misses the caches of instructions and of translations. The walk does not depend on the
//! order, so that all orders are asked the same question. What wins by less than a margin loses to the order that
//! is there already: a layout that changes for nothing costs every cache and every comparison of two builds.
//!
//! Pure: no file, no clock, and the same order for the same input on every machine.

#![forbid(unsafe_code)]

pub mod bolt;
mod c3;
mod cdsort;
mod choose;
pub mod command_line;
pub mod emit;
pub mod flags;
mod graph;
mod heap;
pub mod pinned;
mod plain;
mod score;
mod simulate;
mod subject;

pub use c3::{C3_CLUSTER_BYTES_MAX, c3};
pub use cdsort::{CHAIN_NODES_MAX, cdsort, cdsort_calls};
pub use choose::{Candidate, Choice, ChooseOptions, Kind, choose};
pub use graph::{Arc, Graph, GraphError, Node, lay_out};
pub use plain::{by_density, by_weight};
pub use score::ext_tsp;
pub use simulate::{Misses, Trace, simulate};
pub use subject::{Subject, SubjectError};
