//! `planish top`: all processes at one moment, cheaply, and what became of them since the moment before.
//!
//! ```text
//! Reader::step  host, what is on the screen  --> Sample      reads; bounded by a Budget
//! rows, nodes   Sample, the Sample before    --> rows        pure; so that a recording plays as the machine did
//! ```
//!
//! What is cheap (stat) is read of every process at each step. What walks page tables (smaps_rollup, numa_maps) holds
//! the lock of the process's memory meanwhile, and takes as long as it has pages: it is spread over steps, has a time
//! for each step, and comes again to one process only after a hundred times the time that it took there. A figure that
//! was read earlier says when.

mod bandwidth;
mod node;
mod reader;
mod rows;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::map::Unseen;

pub use self::reader::{Budget, Reader};
pub use self::rows::{TopNode, TopPool, TopRow, nodes, rows};

/// The form of a recorded sample: the number rises when a field changes its meaning or goes away.
pub const SAMPLE_SCHEMA: &str = "planish.top-sample/1";

/// A machine at one moment: one line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// The form of this object: `planish.top-sample/1`.
    pub schema: String,
    /// Seconds since 1970; null of a recorded host.
    pub unix_seconds: Option<u64>,
    /// Milliseconds since the first sample, by a clock that is never set.
    pub at_ms: u64,
    /// Clock ticks in a second of CPU time.
    pub ticks_per_s: u64,
    /// Nodes that have memory; 0 where the kernel tells of none.
    pub memory_nodes: u32,
    /// Processes that have memory of their own, by PID.
    pub processes: Vec<ProcessSample>,
    /// Threads of the kernel, which have none.
    pub kernel_threads: u64,
    /// Each node, by number.
    pub nodes: Vec<NodeSample>,
    /// Loads from memory, by node.
    pub loads: Loads,
    /// What controllers of memory read and wrote; a recording of an older planish has none.
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// What it took to see this.
    pub reads: Reads,
    /// What was not seen.
    pub unseen: Vec<Unseen>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSample {
    /// Its PID.
    pub pid: u32,
    /// When it began, in clock ticks since boot: with the PID it names a process for good.
    pub start_ticks: u64,
    /// Name of its program, at most 15 bytes.
    pub name: String,
    /// Threads.
    pub threads: u32,
    /// The CPU that its first thread ran on last.
    pub cpu: Option<u32>,
    /// CPU time that it has used.
    pub cpu_ticks: u64,
    /// Page faults that took no disk.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Resident bytes, without pages of a pool.
    pub resident_bytes: u64,
    /// What status said last; null while it has not been its turn.
    pub status: Option<StatusSample>,
    /// What a walk of its page tables said last; null while it was not walked.
    pub walk: Option<WalkSample>,
    /// Where its memory lay last, against where its threads ran; null where nobody looked.
    pub places: Option<PlacesSample>,
}

/// What status said of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusSample {
    /// When, in milliseconds since the first sample.
    pub at_ms: u64,
    /// Owner of the process (its effective user).
    pub user: Option<u32>,
    /// Bytes of page tables.
    pub page_table_bytes: u64,
    /// Bytes in swap.
    pub swapped_bytes: u64,
    /// Resident bytes on pages of a pool.
    pub hugetlb_bytes: u64,
}

/// What smaps_rollup said of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WalkSample {
    /// When, in milliseconds since the first sample.
    pub at_ms: u64,
    /// Resident bytes, pages of a pool included.
    pub resident_bytes: u64,
    /// Of these, on transparent huge pages that are mapped as such.
    pub thp_bytes: u64,
    /// Of these, on pages of a pool.
    pub hugetlb_bytes: u64,
}

/// What numa_maps and the threads of a process said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacesSample {
    /// When, in milliseconds since the first sample.
    pub at_ms: u64,
    /// The share of its memory that is local, each page weighed by the share of CPU time that its threads used on its
    /// node.
    pub local_share: f64,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeSample {
    /// Its number; null for a machine whose kernel knows no nodes.
    pub node: Option<u32>,
    /// Its memory.
    pub memory_bytes: u64,
    /// Of this, free.
    pub free_bytes: u64,
    /// On transparent huge pages: of programs, of shared memory and of files.
    pub thp_bytes: u64,
    /// Its pools of huge pages, by size; those that hold none are left out.
    pub pools: Vec<PoolSample>,
    /// Pages since boot by how they came about; null where the kernel does not count them.
    pub numastat: Option<Numastat>,
}

/// A pool of huge pages on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolSample {
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Pages.
    pub pages: u64,
    /// Of these, free.
    pub free_pages: u64,
}

/// The counters of numastat, in pages since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Numastat {
    /// Wanted here and got here.
    pub hit: u64,
    /// Got here because the node that was wanted had none.
    pub miss: u64,
    /// Wanted here and got elsewhere.
    pub foreign: u64,
    /// Got here by a thread that ran on another node.
    pub other: u64,
}

/// Loads from memory that the CPUs of each node made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loads {
    /// Why there are none; null where they are counted.
    pub reason: Option<String>,
    /// Bytes that a load brings: a line of the caches.
    pub line_bytes: u64,
    /// Since the first sample, by the node of the CPU.
    pub nodes: Vec<NodeLoadsSample>,
}

/// Loads of the CPUs of one node since the first sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeLoadsSample {
    /// The node.
    pub node: u32,
    /// Answered by its own memory.
    pub local: f64,
    /// Answered by memory of another node.
    pub remote: f64,
}

/// What the controllers of memory read and wrote, by node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Why there are no figures, or none of some nodes; null where all are counted.
    pub reason: Option<String>,
    /// Since the first sample, by node.
    pub nodes: Vec<NodeBandwidthSample>,
}

/// What the controllers of one node read and wrote since the first sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeBandwidthSample {
    /// The node of the CPU by which they are counted; null for a machine whose kernel knows no nodes.
    pub node: Option<u32>,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
}

/// What a step read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reads {
    /// Files `stat` of processes.
    pub stat: u64,
    /// Files `status`.
    pub status: u64,
    /// Walks of page tables (smaps_rollup).
    pub walks: u64,
    /// Walks for nodes (numa_maps).
    pub places: u64,
    /// Walks that wait for a later step.
    pub waiting: u64,
    /// Of these, walks for nodes; a recording of an older planish counts none.
    #[serde(default)]
    pub waiting_places: u64,
    /// The longest walk in microseconds; null of a recorded host.
    pub longest_us: Option<u64>,
    /// All of it in microseconds; null of a recorded host.
    pub took_us: Option<u64>,
}
