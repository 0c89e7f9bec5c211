//! Call profiles: what samples of any source say of one program, as a weighted call graph.
//!
//! ```text
//! perf.data, perf script, folded stacks, pprof, BOLT fdata, AutoFDO text, callgrind, hfsort ──> read::*
//!                                                                                                 │
//! ELF file ──> Program: functions, aliases counted once, segments ──────────────────────────> Collector
//!                                                                                                 │
//! docs/text-profile.md <── file::{parse, write} <── merge <───────────────────────────────── CallProfile
//! docs/text-publish.md <── pin::Pin: which profile and order builds follow, and its gates <────────┘
//! ```
//!
//! Everything here works on bytes that the caller has read: no reader opens a file, so that each can be fuzzed and
//! a profile of another machine reads like one of this. A reader never trusts a length in its input and never
//! allocates by one.
//!
//! What a weight means is said in the profile ([`Weights`], [`Edges`]), because stacks weigh by time and branches
//! by calls, and the two must not be added.

#![forbid(unsafe_code)]

mod allows;
mod collect;
mod error;
pub mod file;
mod merge;
pub mod names;
pub mod origins;
mod overlap;
mod pages;
pub mod perf_data;
pub mod pin;
mod profile;
mod program;
mod read;
mod rewrite;
mod stacks;

pub use allows::{Allows, FileKind, marked_range};
pub use error::ProfileError;
pub use merge::{Dated, MergeOptions, merge};
pub use overlap::overlap;
pub use pages::{HotPages, hot_pages, share_where};
pub use profile::{CallProfile, Edge, Edges, Function, Weights, Window};
pub use program::{Program, ProgramFunction, Segment, build_id};
pub use read::{Format, ImportOptions, Imported, import};
pub use rewrite::{Departed, Rewritable, Rewritten, same_outside};
pub use stacks::{StackFrame, Stacks};
