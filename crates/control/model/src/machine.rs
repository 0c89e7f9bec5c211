//! What a machine is made of, as far as a placement asks for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpus, DeviceKind};

/// CPUs, nodes, devices, interrupts and units of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Logical CPUs by number, offline ones too.
    pub cpus: Vec<MachineCpu>,
    /// NUMA nodes by number.
    pub nodes: Vec<MachineNode>,
    /// Disks and network cards that are more than software.
    pub devices: Vec<MachineDevice>,
    /// Interrupts that somebody asked for.
    pub irqs: Vec<MachineIrq>,
    /// Units of systemd that a placement names, as far as this host has them.
    pub units: Vec<String>,
    /// What the files of those units say that a placement must know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unit_files: BTreeMap<String, UnitFiles>,
    /// Whether process 1 is systemd.
    pub systemd: bool,
    /// What its control groups can do for isolation.
    #[serde(default)]
    pub partitions: Partitions,
    /// Services that their files pin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinnedService>,
    /// The CPUs of those parts of the system that have a limit, by the name of their unit: by a file of planish, or as
    /// their control group has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, Cpus>,
    /// Whether the groups right below the root have CPUs of their own already.
    #[serde(default)]
    pub has_cpusets: bool,
    /// Where we run ourselves, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
}

/// The units right below the root of the control groups that systemd puts everything into, each a part of the system
/// whose CPUs can be limited (systemd.special(7)). They are there on every host with systemd, but for the slice of
/// machines, which is there with its file.
/// init.scope is none of them: systemd before 253 does not give it at a boot what its files say.
pub const PARTS: [&str; 3] = ["machine.slice", "system.slice", "user.slice"];

/// The part that a file of ours limits, by where it lies.
#[must_use]
pub fn part_at(place: &str) -> Option<&str> {
    let (unit, file) = place.strip_prefix("/etc/systemd/system/")?.split_once(".d/")?;
    (file == "zz-planish-allowed-cpus.conf" && PARTS.contains(&unit)).then_some(unit)
}

/// A service that its files pin to CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PinnedService {
    /// Its unit.
    pub unit: String,
    /// Its CPUs; none where they are those of its memory nodes.
    pub cpus: Cpus,
    /// The slice that it runs in.
    pub slice: String,
    /// Whether a placement of planish has pinned it.
    #[serde(default)]
    pub placed: bool,
    /// The file and line that pins it.
    #[serde(default)]
    pub source: String,
}

/// What the files of a unit say that a placement must know, besides what pins it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnitFiles {
    /// The unit that it is another name of.
    pub stands_for: Option<String>,
    /// The file by which it is masked: nobody can start it.
    pub masked: Option<String>,
    /// The file and line of a command that ends at once and stands for others (`ExecStart=/bin/true`).
    pub runs_nothing: Option<String>,
    /// The program by which one of its commands places itself (`taskset`, `numactl`), and the file and line.
    pub pins_itself: Option<(String, String)>,
    /// What it, and the slices that it lies in, may use at most.
    pub limits: Vec<UnitLimit>,
}

/// CPUs or memory nodes that a unit may use, and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitLimit {
    /// The unit: the service itself, or a slice.
    pub unit: String,
    /// `AllowedCPUs`, `AllowedMemoryNodes`, those for the start of the system, or the file of its control group.
    pub directive: String,
    /// Whether it is of memory nodes, and not of CPUs.
    pub is_memory: bool,
    /// The CPUs or nodes.
    pub list: Cpus,
    /// The file, and the line where it has several.
    pub source: String,
}

/// A line of a unit's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitLine {
    /// The directive.
    pub directive: String,
    /// Its value; empty where it takes back what was said before.
    pub value: String,
    /// The file and line.
    pub source: String,
}

/// CPUs of a group right below the root that the kernel keeps everybody else off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionCpus {
    /// The name of the group.
    pub group: String,
    /// Its CPUs.
    pub cpus: Cpus,
}

impl PinnedService {
    /// What stands for the unit where systemd pins everything.
    pub const MANAGER: &str = "systemd itself";

    /// The unit right below the root that its group lies in: `a-b.slice` lies in `a.slice` (systemd.slice(5)).
    #[must_use]
    pub fn part(&self) -> String {
        let name = self.slice.strip_suffix(".slice").unwrap_or(&self.slice);
        format!("{}.slice", name.split('-').next().unwrap_or(name))
    }
}

/// What we are started from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The unit right below the root that its group lies in.
    pub part: String,
    /// The CPUs that it may run on.
    pub cpus: Cpus,
}

/// What control groups can do to isolate CPUs on a running kernel, as far as files tell without a write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Partitions {
    /// Why no group here can be a partition; `None` where nothing speaks against it.
    pub hindered: Option<String>,
    /// The CPUs of the slice of planish, once systemd has made its group.
    pub slice: Option<Cpus>,
    /// CPUs that the kernel was told at boot to isolate.
    pub isolated: Cpus,
    /// Groups right below the root that are partitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<PartitionCpus>,
    /// Groups right below the root that somebody has given CPU 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_boot_cpu: Vec<String>,
}

/// A logical CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineCpu {
    /// Its number.
    pub id: u32,
    /// Its node.
    pub node: Option<u32>,
    /// Whether the kernel uses it.
    pub online: bool,
    /// The hardware threads of its core, itself included; empty while it is offline.
    pub threads: Cpus,
}

/// A NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineNode {
    /// Its number.
    pub id: u32,
    /// Its memory in bytes; 0 where it has none.
    pub memory_bytes: u64,
}

/// A disk or a network card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineDevice {
    /// The kernel's name: `nvme0n1`, `eth0`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// The node that it is attached to, where the firmware tells.
    pub node: Option<u32>,
    /// Its PCI address.
    pub pci: Option<String>,
    /// Its interrupts, where its folder lists them.
    pub irqs: Vec<u32>,
}

/// An interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineIrq {
    /// Its number.
    pub id: u32,
    /// Who asked for it: `nvme0q1`, `eth0-TxRx-3`.
    pub users: Vec<String>,
    /// The CPUs to which it may be delivered.
    pub cpus: Cpus,
    /// The node of its device.
    pub node: Option<u32>,
    /// Why it cannot be moved: the kernel places it by itself, or nobody may write it.
    pub fixed: Option<String>,
}

impl Machine {
    /// CPUs that the kernel uses.
    #[must_use]
    pub fn online(&self) -> Cpus {
        self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect()
    }

    /// A CPU by its number.
    #[must_use]
    pub fn cpu(&self, id: u32) -> Option<&MachineCpu> {
        // By number they are at their own place, but where numbers are left out.
        let here = self.cpus.get(id as usize).filter(|cpu| cpu.id == id);
        here.or_else(|| self.cpus.iter().find(|cpu| cpu.id == id))
    }

    /// A node by its number.
    #[must_use]
    pub fn node(&self, id: u32) -> Option<&MachineNode> {
        self.nodes.iter().find(|node| node.id == id)
    }
}
