//! Growing arenas on huge pages, placed on chosen NUMA nodes, faulted in before they are handed out.
//!
//! ```text
//!  Arena ── chunk ── chunk ── chunk …      each twice the last, up to a cap
//!             │
//!             ├─ 1. map       the page-size ladder: 1 GB, 2 MB, transparent, base (sizes are the kernel's)
//!             ├─ 2. place     mbind, on every rung, before the first touch decides the node
//!             ├─ 3. prefault  by several threads: no query ever faults, no page is missing later
//!             └─ 4. verify    smaps says what the pages really are; a chunk that is not what was asked for
//!                             is kept and told (Fallback::Allow) or given back (Fallback::Refuse)
//! ```
//!
//! Invariants: memory is zeroed, aligned to a cache line and never anyone else's. It is unmapped by its real page
//! size when the arena is dropped, which no slice outlives, for every slice borrows the arena.
//!
//! A slice is handed out for good ([`Arena::alloc_slice`]), or leased ([`Arena::lease`]): a [`Lease`] that is dropped
//! is memory for the next, and [`Arena::trim`] hands what is not leased to the kernel, whole pages of it.
//!
//! A thread that takes many small pieces has them from a [`Bump`] ([`Arena::bump`]): blocks of the arena that are its
//! own, where taking one is a sum and a comparison, without a lock. They go back as a whole.
//!
//! On a machine of several nodes [`Builder::per_node`] makes an arena on each, and [`PerNode::here`] is that of the
//! node where the thread runs.
//!
//! What is left at the end of a chunk when something does not fit is no loss: what is smaller, leases and bumps take
//! it. [`Arena::chunks`] tells how much that is.
//!
//! A slice that grows is no slice of an arena, for another may lie behind it: [`Growing`] has a run of addresses to
//! itself ([`Builder::growing`]).
//!
//! Transparent huge pages may fall apart later, by reclaim or by being given back and taken again:
//! [`Arena::collapse`] has the kernel put them together.
//!
//! What is *had* is never concluded from what was *asked for*: [`Arena::achieved`] reads it back, with bytes
//! for each page size and node, and the reason wherever a wish was not met.
//!
//! A child of fork(2) has no memory of a pool: a page that parent and child share is copied at the first write, and
//! where the pool has no page to spare, that write ends the writer (SIGBUS). So pools are left out of the child
//! (MADV_DONTFORK), which must not touch what the arena gave out on such pages before it calls exec, as programs that
//! are started by fork and exec do not. Slices on base and transparent pages are copied as any memory is.
//!
//! Memory of the kind that processes share ([`Builder::shared`]) is placed and read back alike; that a process shares
//! it with others is not this crate's business.
//!
//! Not here: lazy memory. Raising a pool of huge pages is the control plane's work; this crate only uses what is there.

mod achieved;
mod arena;
mod builder;
mod bump;
mod chunk;
mod error;
mod facts;
mod free;
mod growing;
mod ladder;
mod lease;
mod page;
mod per_node;
mod plain;
mod prefault;

pub use achieved::{Achieved, Backing};
pub use arena::{Arena, LINE_BYTES};
pub use builder::{Builder, Fallback, Growth, NodeChoice};
pub use bump::Bump;
pub use chunk::Chunk;
pub use error::ArenaError;
pub use growing::Growing;
pub use lease::Lease;
pub use page::{Page, ParsePageError, Preference};
pub use per_node::PerNode;
pub use plain::Plain;
pub use planish_sys::NodeSet;
