//! Linux calls that the Rust world does not wrap, behind safe functions.
//!
//! Everything here concerns the machine that runs us: page sizes come from its kernel, never from a
//! constant, and a call that this kernel or this container refuses is a value (see [`Error`]), never a
//! panic. Parsers and decisions live elsewhere; a recorded machine is read by `planish-host`.
//!
//! rustix is used where it has the call. What it lacks (memory policies, `MADV_COLLAPSE`, CPU masks
//! beyond 1024 bits, `perf_event_open`, `wait4`, `sched_setattr`) goes through `libc::syscall` with dynamic masks.

pub mod affinity;
mod beside;
mod bytes;
pub mod cgroup;
pub mod child;
pub mod code;
pub mod datagram;
pub mod detach;
pub mod draft;
mod error;
pub mod ethtool;
pub mod file;
#[cfg(any(target_env = "musl", test))]
mod heap;
pub mod hold;
pub mod loaded;
pub mod lock;
pub mod mapping;
pub mod mount;
pub mod node_loads;
pub mod pagemap;
pub mod pages;
pub mod peek;
pub mod perf;
mod perf_event;
pub mod pmu;
pub mod policy;
pub mod process;
mod raw;
pub mod sampling;
pub mod schedule;
pub mod set;
pub mod signals;
pub mod uncore;
pub mod warden;

pub use beside::beside;
pub use bytes::parse_bytes;
pub use error::{Error, Result};
#[cfg(target_env = "musl")]
pub use heap::Heap;
pub use mapping::{Advice, MapOptions, Mapping, PageRequest, map_anonymous};
pub use policy::Policy;
pub use rustix::io::Errno;
pub use set::{CpuSet, NodeSet};

const _: () = assert!(usize::BITS == 64, "kernel masks are handled as 64-bit words");
