//! NUMA nodes: their CPUs, memory, distances and pools of huge pages.

use planish_host::Host;
use planish_sorted::SortSmall as _;
use planish_sys::{CpuSet, NodeSet};
use serde::Serialize;

use crate::cpus::Cpu;
use crate::reader::{Reader, as_list, meminfo_bytes};

const NODE: &str = "/sys/devices/system/node";

/// A NUMA node. It may have no CPU (memory behind CXL, HBM) or no memory (an empty socket).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Number that the kernel gave it; numbers may be sparse.
    pub id: u32,
    /// Its CPUs that are online.
    #[serde(serialize_with = "as_list")]
    pub cpus: CpuSet,
    /// Its memory in bytes; 0 where it has none or none is told.
    pub memory_bytes: u64,
    /// What of it is free, in bytes.
    pub free_bytes: u64,
    /// Distances to all nodes in the order of [`crate::Topology::nodes`]; 10 is its own memory. Empty where
    /// untold.
    pub distances: Vec<u32>,
    /// What the firmware rates its memory at; `None` where it rates nothing.
    pub rated: Option<Rating>,
    /// Its pools of huge pages, by page size.
    pub pools: Vec<Pool>,
}

/// What the firmware rates the memory of a node at, as the nearest CPUs see it (ACPI HMAT, class 0 of
/// Documentation/admin-guide/mm/numaperf.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rating {
    /// Nanoseconds of a read.
    pub read_latency_ns: Option<u64>,
    /// Nanoseconds of a write.
    pub write_latency_ns: Option<u64>,
    /// Bytes read a second.
    pub read_bytes_per_second: Option<u64>,
    /// Bytes written a second.
    pub write_bytes_per_second: Option<u64>,
}

/// What the firmware rates the memory of `node` at. A rating of 0 is none.
#[must_use]
pub fn rating(host: &Host, node: u32) -> Option<Rating> {
    let number = |name: &str| {
        let path = format!("{NODE}/node{node}/access0/initiators/{name}");
        host.read(&path).ok()?.trim().parse::<u64>().ok().filter(|number| *number > 0)
    };
    // The kernel tells MiB a second.
    let bytes = |name: &str| number(name).map(|mib| mib.saturating_mul(1 << 20));
    let rating = Rating {
        read_latency_ns: number("read_latency"),
        write_latency_ns: number("write_latency"),
        read_bytes_per_second: bytes("read_bandwidth"),
        write_bytes_per_second: bytes("write_bandwidth"),
    };
    (rating != Rating::default()).then_some(rating)
}

/// The pool of huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Size of one page in bytes.
    pub page_bytes: u64,
    /// Pages in the pool, surplus ones included.
    pub total: u64,
    /// Pages that nobody uses.
    pub free: u64,
    /// Pages beyond the persistent ones (`nr_overcommit_hugepages` allows them).
    pub surplus: u64,
}

/// All nodes, by number, and whether the kernel has NUMA at all. Without it there is one node with
/// everything.
pub(crate) fn read(reader: &mut Reader, cpus: &[Cpu]) -> (Vec<Node>, bool) {
    let folders: NodeSet = reader.numbered(NODE, "node").into_iter().collect();
    let online: Option<NodeSet> = reader.list(&format!("{NODE}/online"));
    let ids = online.map_or_else(|| folders.clone(), |online| folders.intersection(&online));
    if ids.is_empty() {
        return (vec![the_only_node(reader, cpus)], false);
    }
    let nodes = ids.iter().map(|id| read_node(reader, id, cpus, ids.count())).collect();
    (nodes, true)
}

fn read_node(reader: &mut Reader, id: u32, cpus: &[Cpu], count: usize) -> Node {
    let folder = format!("{NODE}/node{id}");
    let online: CpuSet = cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect();
    let told = reader.list_or_mask(&format!("{folder}/cpulist"), &format!("{folder}/cpumap"));
    let told: CpuSet = told.unwrap_or_else(|| reader.numbered(&folder, "cpu").into_iter().collect());
    let meminfo = reader.text(&format!("{folder}/meminfo")).unwrap_or_default();
    Node {
        id,
        cpus: told.intersection(&online),
        memory_bytes: meminfo_bytes(&meminfo, "MemTotal").unwrap_or(0),
        free_bytes: meminfo_bytes(&meminfo, "MemFree").unwrap_or(0),
        distances: distances(reader, &format!("{folder}/distance"), count),
        rated: rating(reader.host, id),
        pools: pools(reader, &format!("{folder}/hugepages")),
    }
}

/// Everything on one node, as the kernel without NUMA sees it.
fn the_only_node(reader: &mut Reader, cpus: &[Cpu]) -> Node {
    let meminfo = reader.text("/proc/meminfo").unwrap_or_default();
    Node {
        id: 0,
        cpus: cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect(),
        memory_bytes: meminfo_bytes(&meminfo, "MemTotal").unwrap_or(0),
        free_bytes: meminfo_bytes(&meminfo, "MemFree").unwrap_or(0),
        distances: vec![10],
        rated: None,
        pools: pools(reader, "/sys/kernel/mm/hugepages"),
    }
}

/// One number for each online node.
fn distances(reader: &mut Reader, path: &str, count: usize) -> Vec<u32> {
    let Some(text) = reader.text(path) else { return Vec::new() };
    let parsed = reader.parse(path, &text, |text| {
        let numbers: Option<Vec<u32>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() == count)
    });
    parsed.unwrap_or_default()
}

fn pools(reader: &mut Reader, folder: &str) -> Vec<Pool> {
    let mut pools = Vec::new();
    for name in reader.host.list(folder) {
        let Some(page_bytes) = planish_sys::pages::parse_pool_name(&name) else { continue };
        let mut number = |file: &str| reader.number(&format!("{folder}/{name}/{file}")).unwrap_or(0);
        let total = number("nr_hugepages");
        let (free, surplus) = (number("free_hugepages"), number("surplus_hugepages"));
        pools.push(Pool { page_bytes: page_bytes as u64, total, free, surplus });
    }
    pools.sort_small_by_key(|pool| pool.page_bytes);
    pools
}

/// Tells each CPU its node: from the nodes' lists, or from the link in the CPU's folder, which offline ones
/// keep.
pub(crate) fn assign(reader: &Reader, nodes: &[Node], numa: bool, cpus: &mut [Cpu]) {
    for cpu in cpus {
        let listed = nodes.iter().find(|node| node.cpus.contains(cpu.id)).map(|node| node.id);
        cpu.node = match listed {
            None if !numa => Some(0),
            None => {
                reader.numbered(&format!("/sys/devices/system/cpu/cpu{}", cpu.id), "node").first().copied()
            }
            listed => listed,
        };
    }
}
