//! `planish_numa_*`: nodes, their CPUs and distances, and where threads and pages are.

use std::ffi::c_void;

use planish_host::Host;
use planish_sys::policy::{self, PageAt};
use planish_sys::{Errno, Error, NodeSet, affinity};
use planish_topo::{Node, Topology};

use crate::guard::{Fault, guard};
use crate::pointer::{List, Place};
use crate::result::planish_result;

/// The nodes that this process can take memory from.
pub(crate) fn nodes(host: &Host) -> Result<NodeSet, Fault> {
    let memory = Topology::read(host).memory_nodes();
    match policy::allowed_nodes() {
        Ok(allowed) => Ok(allowed.intersection(&memory)),
        // A kernel without NUMA.
        Err(Error::Forbidden { .. } | Error::Missing { .. }) => Ok(memory),
        Err(error) => Err(error.into()),
    }
}

fn node(topology: &Topology, id: u32) -> Result<&Node, Fault> {
    topology.node(id).ok_or_else(|| {
        let message = format!("this machine has no node {id}");
        Fault::new(planish_result::PLANISH_ERROR_NO_SUCH_NODE, message, "choose one of planish_numa_nodes")
    })
}

/// The CPUs of a node that are online.
pub(crate) fn cpus_of(id: u32) -> Result<planish_sys::CpuSet, Fault> {
    Ok(node(&Topology::read(&Host::live()), id)?.cpus.clone())
}

/// The nodes that memory can be had from.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_numa_nodes(
    nodes: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let list = unsafe { List::new(nodes, capacity, count) }?;
        list.put(self::nodes(&Host::live())?.iter());
        Ok(())
    })
}

/// The CPUs of a node.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_numa_cpus(
    node: u32,
    cpus: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let list = unsafe { List::new(cpus, capacity, count) }?;
        list.put(cpus_of(node)?.iter());
        Ok(())
    })
}

/// How far one node is from another.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_numa_distance(from: u32, to: u32, distance: *mut u32) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(distance, "distance") }?;
        let topology = Topology::read(&Host::live());
        let from = node(&topology, from)?;
        node(&topology, to)?;
        let at = topology.nodes.iter().position(|node| node.id == to);
        let Some(told) = at.and_then(|at| from.distances.get(at)) else {
            let message = format!("the kernel tells no distance from node {} to node {to}", from.id);
            let cure = "measure it: planish latency";
            return Err(Fault::new(planish_result::PLANISH_ERROR_MISSING, message, cure));
        };
        place.put(*told);
        Ok(())
    })
}

/// The node with memory that is nearest.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_numa_memory_node(from: u32, node: *mut u32) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(node, "node") }?;
        let host = Host::live();
        let (topology, usable) = (Topology::read(&host), nodes(&host)?);
        let from = self::node(&topology, from)?;
        let far = topology.nodes.iter().map(|node| node.id).zip(&from.distances);
        let nearest = far.filter(|(node, _)| usable.contains(*node)).min_by_key(|(_, far)| **far);
        let own = usable.contains(from.id).then_some(from.id);
        let Some(node) = own.or(nearest.map(|(node, _)| node)) else {
            let message = format!("the kernel tells no distance from node {} to one with memory", from.id);
            let cure = "choose one of planish_numa_nodes";
            return Err(Fault::new(planish_result::PLANISH_ERROR_MISSING, message, cure));
        };
        place.put(node);
        Ok(())
    })
}

/// Where the calling thread runs.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_numa_here(cpu: *mut u32, node: *mut u32) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (cpu, node) = unsafe { (Place::new(cpu, "cpu")?, Place::new(node, "node")?) };
        let here = affinity::here()?;
        cpu.put(here.cpu);
        node.put(here.node);
        Ok(())
    })
}

/// Where a page lies.
///
/// # Safety
/// As planish.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn planish_numa_node_of(address: *const c_void, node: *mut u32) -> planish_result {
    guard(|| {
        // SAFETY: the caller's promise; the address itself is only looked up by the kernel, whatever it is.
        let place = unsafe { Place::new(node, "node") }?;
        match policy::pages_at(None, &[address.addr()])?.first() {
            Some(PageAt::Node(node)) => {
                place.put(*node);
                Ok(())
            }
            // The kernel tells FAULT of memory that was only read, which lies on no page of its own, and of addresses
            // that are not mapped (mm/migrate.c, do_pages_stat_array).
            Some(PageAt::Absent | PageAt::Failed(Errno::FAULT)) | None => {
                let message = format!("no page is there at {address:?}");
                Err(Fault::new(planish_result::PLANISH_ERROR_ABSENT, message, "write to it first"))
            }
            Some(PageAt::Failed(errno)) => Err(Error::of_call("move_pages", *errno).into()),
        }
    })
}
