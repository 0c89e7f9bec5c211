//! The whole machine.

use std::collections::BTreeSet;

use planish_host::Host;
use planish_sys::{CpuSet, NodeSet};
use serde::Serialize;

use crate::caches::{self, Cache};
use crate::cpus::{self, Cpu};
use crate::devices::{self, Device};
use crate::irqs::{self, Irq};
use crate::nodes::{self, Node};
use crate::reader::{Oddity, Reader};

/// What a machine is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Logical CPUs, by number, offline ones included.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes, by number; at least one.
    pub nodes: Vec<Node>,
    /// Whether the kernel knows of NUMA; otherwise the one node was made up to hold everything.
    pub numa: bool,
    /// Caches, by level, kind and first CPU.
    pub caches: Vec<Cache>,
    /// Disks.
    pub disks: Vec<Device>,
    /// Network interfaces.
    pub nics: Vec<Device>,
    /// Interrupts.
    pub irqs: Vec<Irq>,
    /// Files that said something that cannot be understood.
    pub oddities: Vec<Oddity>,
}

impl Topology {
    /// Reads the topology of `host`. Never fails: what a machine does not tell is absent.
    pub fn read(host: &Host) -> Self {
        let mut reader = Reader::new(host);
        let mut cpus = cpus::read(&mut reader);
        let (nodes, numa) = nodes::read(&mut reader, &cpus);
        nodes::assign(&reader, &nodes, numa, &mut cpus);
        let caches = caches::read(&mut reader, &cpus);
        let (disks, nics) = (devices::disks(&mut reader), devices::nics(&mut reader));
        let irqs = irqs::read(&mut reader);
        Self { cpus, nodes, numa, caches, disks, nics, irqs, oddities: reader.oddities }
    }

    /// CPUs that the kernel uses.
    pub fn online(&self) -> CpuSet {
        self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect()
    }

    /// CPUs that the observing process may use.
    pub fn allowed(&self) -> CpuSet {
        self.cpus.iter().filter(|cpu| cpu.allowed).map(|cpu| cpu.id).collect()
    }

    /// Number of cores that are online: of different sets of hardware threads.
    pub fn core_count(&self) -> usize {
        let cores: BTreeSet<_> = self.cpus.iter().filter_map(|cpu| cpu.threads.first()).collect();
        cores.len()
    }

    /// Number of packages that are online; at least one.
    pub fn package_count(&self) -> usize {
        let packages: BTreeSet<_> =
            self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.package).collect();
        packages.len()
    }

    /// Most hardware threads of one core; 1 without SMT.
    pub fn threads_per_core_max(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.threads.count()).max().unwrap_or(1).max(1)
    }

    /// Nodes that have memory.
    pub fn memory_nodes(&self) -> NodeSet {
        self.nodes.iter().filter(|node| node.memory_bytes > 0).map(|node| node.id).collect()
    }

    /// Nodes that have CPUs online.
    pub fn cpu_nodes(&self) -> NodeSet {
        self.nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect()
    }

    /// The node with this number.
    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Size in bytes of the largest cache that this CPU has; 0 where none is told.
    pub fn last_cache_bytes(&self, cpu: u32) -> u64 {
        let own = self.caches.iter().filter(|cache| cache.cpus.contains(cpu));
        own.max_by_key(|cache| cache.level).map_or(0, |cache| cache.bytes)
    }
}
