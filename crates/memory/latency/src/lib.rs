//! How long CPUs wait: for a cache line that another CPU has, for memory by node and by page size, and for their own
//! time.
//!
//! ```text
//!  quiet?  ── who else is at work on this machine, told first and never hidden
//!  cpus    ── which of them can be measured at all
//!  pairs   ── two pinned threads hand one line to and fro          ──> clusters, compared with what sysfs says
//!  nodes   ── a chase through memory bound to a node, from a CPU of each node; and how fast all of it is read
//!             page by page                                         ──> hidden interleave
//!  pages   ── the same chase on base pages, transparent ones and those of the pools that are free
//!  jitter  ── time that a spinning thread does not get, and by how much a sleeping one is late
//! ```
//!
//! [`check_isolation`] tells a program about its own thread: whether it has its CPU to itself, and its memory near.
//!
//! Every figure is a median over rounds in random order with the interval of that median ([`Figure`]); on a machine
//! that is not quiet the interval is the whole range of the rounds. Clusters and interleave are inferred by pure
//! functions of the figures.
//!
//! Nothing is written to the host: no setting, no pool. Memory is that of an arena, which reads back what its pages
//! are; huge pages of a pool are taken only where they are free and promised to nobody.
//!
//! Source for the method: a dependent chase along a random cycle (McVoy and Staelin, lmbench, USENIX 1996).
#![forbid(unsafe_code)]

mod chase;
mod cluster;
mod cpus;
mod error;
mod figure;
mod interleave;
mod isolation;
mod jitter;
mod nodes;
mod pages;
mod pairs;
mod pin;
mod quiet;

pub use cluster::{Cluster, ClusterLevel, Partition, clusters, told_partitions};
pub use cpus::choose_cpus;
pub use error::LatencyError;
pub use figure::{Figure, LEVEL, Spread};
pub use interleave::{Interleave, TwoHeaps, near_and_far, of_nodes, two_heaps};
pub use isolation::{Isolation, Problem, check_isolation};
pub use jitter::{
    Bucket, GapFigures, JitterPlan, JitterRow, Source, SourceFigures, WakeFigures, measure_jitter,
};
pub use nodes::{NodeCell, NodeFigures, measure_nodes};
pub use pages::{PageFigures, PageRow, measure_pages};
pub use pairs::{PairRow, measure_pairs};
pub use quiet::{Quiet, QuietLimits, look};

use planish_stats::Rng;

/// How a measurement is repeated.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Rounds of every figure.
    pub count: usize,
    /// How their intervals are made.
    pub spread: Spread,
    /// What draws the order of each round.
    pub rng: Rng,
}
