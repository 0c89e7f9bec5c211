//! CPUs, caches, NUMA nodes, devices and interrupts of a machine, live or recorded.
//!
//! Everything is read from /sys and /proc through a [`Host`](planish_host::Host) and nothing is assumed: CPUs
//! may be offline, node numbers sparse, nodes without CPUs or without memory, kernels without NUMA. What the
//! kernel says in words that cannot be understood is not dropped in silence but listed in
//! [`Topology::oddities`].
//!
//! Source: Documentation/admin-guide/cputopology.rst,
//! Documentation/ABI/stable/sysfs-devices-{system-cpu,node}.
#![forbid(unsafe_code)]

mod allowed;
mod caches;
mod cpus;
mod devices;
mod irqs;
mod isolated;
mod nodes;
mod reader;
mod topology;

pub use caches::{Cache, CacheKind};
pub use cpus::{Cpu, core_threads, present_cpus};
pub use devices::{Device, devices};
pub use irqs::Irq;
pub use isolated::isolated;
pub use nodes::{Node, Pool, Rating, rating};
pub use reader::Oddity;
pub use topology::Topology;
