//! `planish topo`: CPUs, caches, nodes and where devices are attached.
//!
//! The rows are those of `planish-topo`, written down again: what programs read stays as it is when that crate
//! changes. Sets of CPUs are in the kernel's list form, `0-3,8`.

use planish_topo::{CacheKind, Topology};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// A logical CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CpuRow {
    /// Number that the kernel gave it.
    pub id: u32,
    /// Number of its core, unique within its package and die; null while it is offline.
    pub core: Option<u32>,
    /// Number of its package (socket).
    pub package: Option<u32>,
    /// NUMA node that it belongs to.
    pub node: Option<u32>,
    /// Whether the kernel uses it.
    pub online: bool,
    /// Whether the observing process may run on it.
    pub allowed: bool,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeRow {
    /// Number that the kernel gave it.
    pub id: u32,
    /// Its CPUs that are online.
    pub cpus: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Distances to all nodes, in their order; 10 is its own memory. Empty where untold.
    pub distances: Vec<u32>,
    /// What the firmware rates its memory at; missing where it rates nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated: Option<RatingRow>,
}

/// What the firmware rates the memory of a node at, as the nearest CPUs see it (ACPI HMAT); null where it is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RatingRow {
    /// Nanoseconds of a read.
    pub read_latency_ns: Option<u64>,
    /// Nanoseconds of a write.
    pub write_latency_ns: Option<u64>,
    /// Bytes read a second.
    pub read_bytes_per_second: Option<u64>,
    /// Bytes written a second.
    pub write_bytes_per_second: Option<u64>,
}

impl RatingRow {
    fn sentence(self) -> String {
        let latency = self.read_latency_ns.map(|ns| format!("{ns} ns"));
        let bandwidth = self.read_bytes_per_second.map(|bytes| format!("{}/s", units::bytes(bytes)));
        [latency, bandwidth].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CacheRow {
    /// 1 is nearest to the CPU.
    pub level: u32,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The CPUs that share it.
    pub cpus: String,
}

/// A disk or a network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceRow {
    /// Kernel's name.
    pub name: String,
    /// NUMA node that it is attached to; null where there is none or the firmware tells none.
    pub node: Option<u32>,
}

/// A file that said something that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OddityRow {
    /// Path on the host.
    pub path: String,
    /// What it said, shortened.
    pub text: String,
}

/// What a machine is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TopoReport {
    /// Logical CPUs, offline ones included.
    pub cpus: Vec<CpuRow>,
    /// NUMA nodes; one for a kernel that knows of none.
    pub nodes: Vec<NodeRow>,
    /// Caches, each once.
    pub caches: Vec<CacheRow>,
    /// Disks that are devices.
    pub disks: Vec<DeviceRow>,
    /// Network interfaces that are devices.
    pub nics: Vec<DeviceRow>,
    /// What the kernel said and nobody understood.
    pub oddities: Vec<OddityRow>,
}

impl From<&Topology> for TopoReport {
    fn from(topology: &Topology) -> Self {
        let cpus = topology.cpus.iter().map(|cpu| CpuRow {
            id: cpu.id,
            core: cpu.core,
            package: cpu.package,
            node: cpu.node,
            online: cpu.online,
            allowed: cpu.allowed,
        });
        let nodes = topology.nodes.iter().map(|node| NodeRow {
            id: node.id,
            cpus: node.cpus.to_string(),
            memory_bytes: node.memory_bytes,
            distances: node.distances.clone(),
            rated: node.rated.map(|rated| RatingRow {
                read_latency_ns: rated.read_latency_ns,
                write_latency_ns: rated.write_latency_ns,
                read_bytes_per_second: rated.read_bytes_per_second,
                write_bytes_per_second: rated.write_bytes_per_second,
            }),
        });
        let caches = topology.caches.iter().map(|cache| CacheRow {
            level: cache.level,
            kind: kind(cache.kind).to_owned(),
            bytes: cache.bytes,
            cpus: cache.cpus.to_string(),
        });
        let devices = |all: &[planish_topo::Device]| {
            let real = all.iter().filter(|device| !device.is_virtual);
            real.map(|device| DeviceRow { name: device.name.clone(), node: device.node }).collect()
        };
        let oddities =
            topology.oddities.iter().map(|odd| OddityRow { path: odd.path.clone(), text: odd.text.clone() });
        Self {
            cpus: cpus.collect(),
            nodes: nodes.collect(),
            caches: caches.collect(),
            disks: devices(&topology.disks),
            nics: devices(&topology.nics),
            oddities: oddities.collect(),
        }
    }
}

fn kind(kind: CacheKind) -> &'static str {
    match kind {
        CacheKind::Data => "data",
        CacheKind::Instruction => "instruction",
        CacheKind::Unified => "unified",
    }
}

impl Report for TopoReport {
    const COMMAND: &'static str = "topo";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("cpus", &self.cpu_sentence());
        page.heading("Nodes");
        // Firmware that rates its memory is rare: without it the last cell of each row has no column.
        let has_rating = self.nodes.iter().any(|node| node.rated.is_some());
        let columns = [">node", ">memory", "cpus", "distances", "rated at"];
        let mut nodes = Table::new(&columns[..if has_rating { 5 } else { 4 }]);
        for node in &self.nodes {
            let distances: Vec<String> = node.distances.iter().map(ToString::to_string).collect();
            let cpus = if node.cpus.is_empty() { "none" } else { &node.cpus };
            nodes.row([
                node.id.to_string().into(),
                units::bytes(node.memory_bytes).into(),
                cpus.into(),
                distances.join(" ").into(),
                node.rated.map(RatingRow::sentence).unwrap_or_default().into(),
            ]);
        }
        page.table(&nodes);
        self.cache_table(page);
        self.device_table(page);
        if page.is_detailed() {
            self.cpu_table(page);
        }
        for odd in &self.oddities {
            page.gap();
            page.fact("odd", &format!("{}: {}", odd.path, odd.text));
        }
    }
}

impl TopoReport {
    fn cpu_sentence(&self) -> String {
        let online: Vec<&CpuRow> = self.cpus.iter().filter(|cpu| cpu.online).collect();
        let mut cores: Vec<_> =
            online.iter().filter_map(|cpu| cpu.core.map(|core| (cpu.package, core))).collect();
        cores.sort_unstable();
        cores.dedup();
        let mut packages: Vec<_> = online.iter().map(|cpu| cpu.package).collect();
        packages.sort_unstable();
        packages.dedup();
        let allowed = online.iter().filter(|cpu| cpu.allowed).count();
        let mut parts = vec![format!("{} online", online.len())];
        if online.len() < self.cpus.len() {
            parts.push(format!("{} offline", self.cpus.len() - online.len()));
        }
        if allowed < online.len() {
            parts.push(format!("{allowed} allowed to this process"));
        }
        parts.push(units::count(cores.len(), "core"));
        parts.push(units::count(packages.len(), "package"));
        parts.join(", ")
    }

    /// Caches of one size and level read as one line: a machine of 256 CPUs has hundreds.
    fn cache_table(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["cache", ">size", ">count", "cpus of the first"]);
        let same = |a: &CacheRow, b: &CacheRow| (a.level, &a.kind, a.bytes) == (b.level, &b.kind, b.bytes);
        for group in self.caches.chunk_by(same) {
            let first = &group[0];
            table.row([
                format!("L{} {}", first.level, first.kind).into(),
                units::bytes(first.bytes).into(),
                group.len().to_string().into(),
                first.cpus.as_str().into(),
            ]);
        }
        if !table.is_empty() {
            page.heading("Caches");
            page.table(&table);
        }
    }

    fn device_table(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["device", "kind", "node"]);
        for (kind, devices) in [("disk", &self.disks), ("network", &self.nics)] {
            for device in devices {
                let node = device.node.map_or("none told".to_owned(), |node| node.to_string());
                table.row([device.name.as_str().into(), kind.into(), node.into()]);
            }
        }
        if !table.is_empty() {
            page.heading("Devices");
            page.table(&table);
        }
    }

    fn cpu_table(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&[">cpu", ">core", ">package", ">node", "state"]);
        let number = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
        for cpu in &self.cpus {
            let state = match (cpu.online, cpu.allowed) {
                (false, _) => "offline",
                (true, false) => "online, not allowed to this process",
                (true, true) => "online",
            };
            table.row([
                cpu.id.to_string().into(),
                number(cpu.core).into(),
                number(cpu.package).into(),
                number(cpu.node).into(),
                state.into(),
            ]);
        }
        page.heading("CPUs");
        page.table(&table);
    }
}
