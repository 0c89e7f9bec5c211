//! Facts of the running machine that decide whether asking is safe: free pages of a pool, available memory.
//!
//! The mapped memory is this process's own, so these are read from the live machine, never from a recorded
//! one.

#![expect(
    clippy::disallowed_methods,
    reason = "an arena maps memory of the running machine, not of a recorded one"
)]

use std::fs;
use std::path::PathBuf;

use planish_sys::{NodeSet, cgroup, policy};

/// The nodes that memory can be had from; each `None` where the kernel does not tell.
#[derive(Debug)]
pub(crate) struct NodesOffered {
    /// Those with memory.
    pub(crate) there: Option<NodeSet>,
    /// Those that this process may use.
    pub(crate) allowed: Option<NodeSet>,
}

const NODES: &str = "/sys/devices/system/node";

/// What this machine and the cpuset of this process have. A kernel without NUMA has neither folder nor list.
pub(crate) fn nodes_offered() -> NodesOffered {
    let list = |text: &str| NodeSet::parse_list(text.trim()).ok().filter(|nodes| !nodes.is_empty());
    let there = fs::read_to_string(format!("{NODES}/has_memory")).ok();
    let allowed = policy::allowed_nodes().ok().filter(|nodes| !nodes.is_empty());
    NodesOffered { there: there.and_then(|text| list(&text)), allowed }
}

/// How far each node is for CPUs of this one, in the order of those that are online; empty where that is not told.
pub(crate) fn distances(node: u32) -> Vec<(u32, u32)> {
    let read = |name: &str| fs::read_to_string(format!("{NODES}/{name}")).unwrap_or_default();
    let online = NodeSet::parse_list(read("online").trim()).unwrap_or_default();
    let far = read(&format!("node{node}/distance"));
    online.iter().zip(far.split_whitespace().map_while(|number| number.parse().ok())).collect()
}

/// Memory that can be had, and the file of the limit where a control group is what leaves no more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) bytes: u64,
    pub(crate) limit: Option<PathBuf>,
}

/// What the kernel charges a group beside the pages themselves: page tables, which take a 512th where pages are
/// smallest, and charges that each CPU draws ahead.
const CHARGED_BESIDE: u64 = 2 << 20;

/// Pages of `page_bytes` that can still be had: free and not promised to another mapping; counted on `nodes`
/// where given. `None` when the kernel does not say.
///
/// Source: Documentation/admin-guide/mm/hugetlbpage.rst. Promises are kept for the machine, not for each
/// node.
pub(crate) fn pool_free(page_bytes: usize, nodes: Option<&NodeSet>) -> Option<u64> {
    let pool = format!("hugepages/hugepages-{}kB", page_bytes / 1024);
    let all = number(&format!("/sys/kernel/mm/{pool}/free_hugepages"))?;
    let promised = number(&format!("/sys/kernel/mm/{pool}/resv_hugepages"))?;
    let surplus = number(&format!("/sys/kernel/mm/{pool}/nr_overcommit_hugepages"))?
        .saturating_sub(number(&format!("/sys/kernel/mm/{pool}/surplus_hugepages"))?);
    // Saturating: nr_overcommit_hugepages may be set to anything up to the largest number.
    let unpromised = all.saturating_sub(promised).saturating_add(surplus);
    let Some(nodes) = nodes else { return Some(unpromised) };
    let on_nodes: Option<u64> = nodes
        .iter()
        .map(|node| number(&format!("/sys/devices/system/node/node{node}/{pool}/free_hugepages")))
        .sum();
    Some(on_nodes?.saturating_add(surplus).min(unpromised))
}

/// Bytes that can be faulted in without swapping or killing; on `nodes` where given. `None` when unknown.
pub(crate) fn memory_available(nodes: Option<&NodeSet>) -> Option<Available> {
    let machine = machine_available(nodes).map(|bytes| Available { bytes, limit: None });
    let group = cgroup::memory_room().map(|room| Available {
        bytes: (room.bytes - room.bytes / 256).saturating_sub(CHARGED_BESIDE),
        limit: Some(room.file),
    });
    tighter(machine, group)
}

/// Pages of `page_bytes` that the groups of this process leave it.
pub(crate) fn pool_allowed(page_bytes: usize) -> Option<Available> {
    let room = cgroup::hugetlb_room(page_bytes)?;
    Some(Available { bytes: room.bytes, limit: Some(room.file) })
}

fn tighter(one: Option<Available>, other: Option<Available>) -> Option<Available> {
    one.into_iter().chain(other).min_by_key(|available| available.bytes)
}

fn machine_available(nodes: Option<&NodeSet>) -> Option<u64> {
    let whole = meminfo(&fs::read_to_string("/proc/meminfo").ok()?, &["MemAvailable"])?;
    let Some(nodes) = nodes else { return Some(whole) };
    // A node tells no MemAvailable: free pages and clean file cache are what it can give at once.
    let fields = ["MemFree", "Active(file)", "Inactive(file)"];
    let on_nodes: Option<u64> = nodes
        .iter()
        .map(|node| {
            let path = format!("/sys/devices/system/node/node{node}/meminfo");
            meminfo(&fs::read_to_string(path).ok()?, &fields)
        })
        .sum();
    Some(on_nodes?.min(whole))
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Sum in bytes of the named fields; both forms are read: `MemFree: 1 kB` and `Node 0 MemFree: 1 kB`.
fn meminfo(text: &str, fields: &[&str]) -> Option<u64> {
    let field = |name: &&str| {
        text.lines().find_map(|line| {
            let (label, amount) = line.split_once(':')?;
            let is_field = label.split_whitespace().next_back() == Some(name);
            let kilobytes: u64 = amount.split_whitespace().next()?.parse().ok()?;
            is_field.then_some(kilobytes * 1024)
        })
    };
    fields.iter().map(field).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_meminfo_are_read() {
        let whole = "MemTotal:       24684236 kB\nMemAvailable:   10 kB\n";
        assert_eq!(meminfo(whole, &["MemAvailable"]), Some(10 << 10));
        let node = "Node 0 MemFree:  3 kB\nNode 0 Active(file): 4 kB\nNode 0 Inactive(file): 5 kB\n";
        assert_eq!(meminfo(node, &["MemFree", "Active(file)", "Inactive(file)"]), Some(12 << 10));
        assert_eq!(meminfo(node, &["MemAvailable"]), None);
        assert_eq!(meminfo("MemAvailable: many kB", &["MemAvailable"]), None);
    }

    #[test]
    fn the_running_machine_has_memory() {
        assert!(machine_available(None).is_some_and(|bytes| bytes > 0));
        assert!(memory_available(None).is_some());
    }

    #[test]
    fn a_group_counts_where_it_leaves_less_than_the_machine() {
        let available =
            |bytes, limit: Option<&str>| Some(Available { bytes, limit: limit.map(PathBuf::from) });
        let group = || available(5, Some("/g/memory.max"));
        assert_eq!(tighter(available(9, None), group()), group());
        assert_eq!(tighter(available(3, None), group()), available(3, None));
        assert_eq!(tighter(None, group()), group());
        assert_eq!(tighter(None, None), None);
    }
}
