//! Starts programs as they are, with their memory where it belongs: shared segments spread over nodes, on huge pages
//! and filled before their first use, while every heap stays with the threads that use it.
//!
//! ```text
//! Wish ──> Machine::check ──> Program::find ──> Launch ──> Running ──> Achieved
//! options   nodes, pools,      libc, static,    settings,   the child   by the map: what each
//!           rights             setuid           drop-in                 segment really got
//! ```
//!
//! What a process inherits (CPUs, policy of its threads, limits, THP) is set between fork and exec. What it does not,
//! the placement of single segments, is done by the preload, which is embedded here: see `preload/lib.rs` and
//! `docs/run.md`. Nothing is set on the host, and nothing outlives the program but the file of the preload.

#![forbid(unsafe_code)]

mod achieved;
mod allocator;
mod drop_in;
mod error;
mod filling;
mod launch;
mod left;
mod listen;
mod machine;
mod notices;
mod preload;
mod program;
mod running;
mod runtime;
#[path = "../preload/wire.rs"]
mod wire;
mod wish;

pub use achieved::{Achieved, PrivateAt, SegmentAt, Share};
pub use allocator::Allocator;
pub use error::PlacementError;
pub use filling::filled_bytes;
pub use launch::{Launch, Surroundings};
pub use left::{Left, left, may_hold};
pub use listen::{Listener, Told};
pub use machine::Machine;
pub use notices::Notices;
pub use preload::{PRELOAD, fingerprint, others};
pub use program::{Libc, Program};
pub use running::{Event, Running, next_event};
pub use runtime::Runtimes;
pub use wire::{
    Notice, SKIP_FILLED, SKIP_GROUP, SKIP_NOT, SKIP_PLACED, SKIP_ROOM, SKIP_SPARSE, SKIP_THREADS, SKIP_YET,
};
pub use wish::{HeapPages, Prefault, SharedPages, Spread, TextRoute, Wish, parse_huge, parse_numa};
