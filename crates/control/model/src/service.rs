//! One service with its own eyes: what the kernel allows it, where its memory lies, and how long it waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FactValue;

/// A running service as `doctor --service` saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceView {
    /// The name of its program.
    pub name: String,
    /// The same as profiles name it: of Java `java:` and the main class.
    #[serde(default)]
    pub program: String,
    /// Its version, where the path of its program or the database of packages tells.
    #[serde(default)]
    pub version: Option<ProgramVersion>,
    /// The process that was looked at: of several of that name the one with most resident memory.
    pub pid: u32,
    /// Processes of that name. What they waited and faulted is told of all together.
    pub processes: u32,
    /// Threads of the process that was looked at.
    pub threads: u32,
    /// Where it may run, and how long it waited.
    pub cpus: ServiceCpus,
    /// Limits of its control groups, the innermost first.
    pub groups: Vec<GroupLimit>,
    /// Its resident memory; `None` where we may not look.
    pub memory: Option<ServiceMemory>,
    /// Resource limits that matter to servers.
    pub limits: Vec<ServiceLimit>,
    /// The allocator that is loaded: `jemalloc`, `tcmalloc`, `mimalloc`, `glibc`, `musl`; `None` where none is seen, as
    /// in a static program.
    pub allocator: Option<String>,
    /// Whether its mappings could not be read, so that nobody knows whether one is loaded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allocator_unread: bool,
    /// Whether the process lets the kernel give it transparent huge pages; `None` where the kernel does not say.
    pub thp_allowed: Option<bool>,
    /// Faults so far.
    pub faults: ServiceFaults,
    /// Disks below its open files and cards behind its sockets; empty where neither can be seen.
    #[serde(default)]
    pub devices: Vec<ServiceDevice>,
    /// What its clock is read from.
    pub clock: Option<String>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// The version of a program on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramVersion {
    /// As it is written there.
    pub version: String,
    /// The path or the package that tells it.
    pub by: String,
}

/// The CPUs of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceCpus {
    /// Those that it may run on, as a list.
    pub allowed: String,
    /// How many those are.
    pub count: u32,
    /// Nodes that they are of.
    pub nodes: Vec<u32>,
    /// Those of them that the scheduler leaves alone, as a list.
    pub isolated: String,
    /// Nodes that it may take memory from, as a list.
    pub allowed_nodes: String,
    /// Share of the time in which it could have run that its threads waited for a CPU, in percent, since they began.
    pub wait_percent: Option<f64>,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A whole disk, or a controller by which one is reached.
    Disk,
    /// A network card.
    Nic,
}

/// A disk or a network card that a service works with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceDevice {
    /// The kernel's name: `nvme0n1`, `eth0`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// The node that it is attached to; null where the firmware tells none.
    pub node: Option<u32>,
    /// Whether the service may run on a CPU of that node; null where the node is not known.
    pub near: Option<bool>,
    /// What it is used for.
    pub by: String,
}

/// A limit of a control group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupLimit {
    /// The file.
    pub file: String,
    /// What it says, in words of a person: `2.5 CPUs`, `4 GiB`.
    pub limit: String,
    /// What is used of it, or how often it held the service back; empty where the kernel does not say.
    pub used: String,
}

/// The resident memory of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceMemory {
    /// On base pages.
    pub base_bytes: u64,
    /// On transparent huge pages.
    pub thp_bytes: u64,
    /// On pages from a pool.
    pub hugetlb_bytes: u64,
    /// By node; empty on a kernel without NUMA.
    pub nodes: Vec<NodeBytes>,
    /// Page tables.
    pub page_table_bytes: u64,
    /// In swap.
    pub swap_bytes: u64,
    /// Kept in memory by mlock.
    pub locked_bytes: u64,
}

/// Memory on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeBytes {
    /// The node.
    pub node: u32,
    /// Resident bytes.
    pub bytes: u64,
    /// Whether the service may run on a CPU of it.
    pub local: bool,
}

/// A resource limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceLimit {
    /// Its name for systemd and the shell: `nofile`, `memlock`.
    pub name: String,
    /// The limit that holds; `None` for none.
    pub soft: Option<u64>,
    /// How far the process may raise it; `None` for as far as it likes.
    pub hard: Option<u64>,
}

/// Faults of a service since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceFaults {
    /// Without reading from a disk.
    pub minor: u64,
    /// With one.
    pub major: u64,
}

/// A service with the facts that finding rules compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenService {
    /// What is told.
    pub view: ServiceView,
    /// Facts by name: `service.throttled_percent`.
    pub facts: Vec<(&'static str, FactValue)>,
}
