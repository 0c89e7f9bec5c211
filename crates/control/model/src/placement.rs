//! Where services, interrupts and memory are to be: what a profile asks for, and what a plan answers.
//!
//! A request is data and says as little as it must: which unit belongs on which node. Everything else (the CPUs that
//! keep house, the siblings, the interrupts, the boot parameters) follows from the machine and is decided once, for
//! all of it together. The answer is told beside the steps that it came to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpus, KnobId};

/// The knob of interrupts, which are moved with the service that they belong to and no other way: no plan is made of a
/// profile that wants it and places none.
pub const MOVED_WITH_A_SERVICE: &str = "irq.affinity";

/// What is said of it, behind its name.
pub const NO_SERVICE: &str = "is wanted without the service that the interrupts belong to: moved away from it they \
                              cost several times what they cost now";

/// The table `[placement]` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlacementRequest {
    /// CPUs that keep house for everything but the services: a list such as `0,4`. Without it, cores of each node
    /// that has a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub housekeeping: Option<Cpus>,
    /// How many cores of each node with a service keep house; 1 where it is not said. The core of CPU 0 always does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub housekeeping_cores: Option<u32>,
    /// Where the interrupts of the services' devices go. All others go to housekeeping CPUs.
    pub interrupts: Interrupts,
    /// When the CPUs of services with `isolate` are isolated.
    #[serde(skip_serializing_if = "Isolation::is_default")]
    pub isolation: Isolation,
    /// Where everything else runs that systemd starts.
    #[serde(skip_serializing_if = "Others::is_default")]
    pub others: Others,
    /// Interrupts that stay where they are: shell patterns of their names or numbers, such as `ahci*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave: Vec<String>,
    /// The services.
    pub service: Vec<ServiceRequest>,
}

/// Where interrupts of the services' devices go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interrupts {
    /// To the housekeeping CPUs of the device's node, and to all of them where that node has none.
    #[default]
    Housekeeping,
    /// To the cores of the service itself, one queue a core in turn.
    Service,
}

/// Where everything runs that systemd starts and that is not placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Others {
    /// Where the scheduler puts it.
    #[default]
    Anywhere,
    /// On the housekeeping CPUs, from the next start of systemd on (`CPUAffinity=` of its own configuration).
    Housekeeping,
}

impl Others {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// When CPUs are isolated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// By a partition of control groups where the kernel can, and by boot parameters from the next boot on.
    #[default]
    Both,
    /// By a partition alone: refused where the kernel cannot.
    Now,
    /// By boot parameters alone.
    Boot,
}

impl Isolation {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One service of a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceRequest {
    /// Its unit of systemd, such as `postgresql.service`.
    pub unit: String,
    /// The node whose cores it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// How many cores of that node; all that are left without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Its CPUs, in the place of node and cores: whole cores, as a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Where its memory comes from.
    #[serde(default)]
    pub memory: MemoryPolicy,
    /// Whether the kernel keeps everything else off its CPUs, and itself as far as it can. For services that pin each
    /// of their threads to a CPU: on isolated CPUs the scheduler balances nothing, so that others end up on one.
    #[serde(default)]
    pub isolate: bool,
    /// Disks and network cards that it works with, by the kernel's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Bytes of huge pages on its node, by the knob of the pool: `{ "hugepages.2m" = 1073741824 }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<KnobId, u64>,
    /// Percent of the third-level caches of its CPUs that nobody else may fill, in whole ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u32>,
}

/// Where the memory of a service comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPolicy {
    /// From the nodes of its CPUs and from no other: when they are full, it waits or is killed.
    #[default]
    Bind,
    /// From the node of its CPUs as long as that has some.
    Preferred,
    /// From where the kernel finds it, the nearest first.
    Any,
}

/// What a placement came to: every online CPU is in exactly one of its sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// CPUs for everything but the services.
    pub housekeeping: Cpus,
    /// The services, in the order of the request.
    pub services: Vec<PlacedService>,
    /// Interrupts and where each goes.
    pub interrupts: Vec<PlacedIrq>,
    /// What isolates CPUs before the next boot; `None` where nobody asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PlacedPartition>,
    /// Ways of caches that services have to themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<PlacedCache>,
}

/// The share of the caches that a service has to itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedCache {
    /// Its unit.
    pub unit: String,
    /// The group of resctrl that has its CPUs.
    pub group: String,
    /// Its ways of each third-level cache that its CPUs have, as bits.
    pub ways: BTreeMap<u32, u64>,
    /// How many ways such a cache has.
    pub of: u32,
    /// Why the kernel does not keep later groups off these ways; `None` where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shareable: Option<String>,
    /// Whose tasks keep the share of another group, wherever they run: the groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// A partition of control groups that takes the CPUs of isolated services away from all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedPartition {
    /// The slice whose group it is.
    pub slice: String,
    /// Its CPUs.
    pub cpus: Cpus,
    /// What it waits for; `None` for one that is there, or that the plan makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindered: Option<String>,
}

/// Where a service is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedService {
    /// Its unit.
    pub unit: String,
    /// Its CPUs: whole cores.
    pub cpus: Cpus,
    /// The nodes of its CPUs.
    pub nodes: Vec<u32>,
    /// Where its memory comes from.
    pub memory: MemoryPolicy,
    /// Whether the kernel keeps everything else off its CPUs.
    pub isolated: bool,
    /// Devices that it works with and that are not known to be on one of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<FarDevice>,
}

/// A device that is not known to be near its service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FarDevice {
    /// The kernel's name: `nvme0n1`, `eth0`.
    pub name: String,
    /// The node that it is on; `None` where the firmware does not tell.
    pub node: Option<u32>,
}

impl FarDevice {
    /// What is to be known about it.
    #[must_use]
    pub fn remark(&self) -> String {
        match self.node {
            Some(node) => {
                format!("{} is on node {node}: every byte of it crosses between the nodes", self.name)
            }
            None => format!("the firmware does not tell which node {} is on", self.name),
        }
    }
}

/// Where an interrupt goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedIrq {
    /// Its number on this boot.
    pub id: u32,
    /// Who asked for it.
    pub users: Vec<String>,
    /// The CPUs to which it may be delivered: those that it is moved to, or those that it has.
    pub cpus: Cpus,
    /// Why it is left alone; `None` for one that goes where `cpus` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

impl Placement {
    /// CPUs of all services whose CPUs are isolated.
    #[must_use]
    pub fn isolated(&self) -> Cpus {
        let isolated = self.services.iter().filter(|service| service.isolated);
        Cpus::of_all(isolated.map(|service| &service.cpus))
    }
}
