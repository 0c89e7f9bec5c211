//! Where the threads of a process run: the other half of local and remote.

use std::collections::BTreeMap;

use planish_host::Host;
use planish_sys::CpuSet;
use serde::Serialize;

use crate::rows::sum_of;
use crate::stat::parse_stat;

/// The threads that ran on one node last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadsOn {
    /// The node; `None` where the kernel tells no CPU or knows no node of it.
    pub node: Option<u32>,
    /// The CPUs that they ran on, in the kernel's list form.
    pub cpus: String,
    /// How many.
    pub threads: usize,
    /// CPU time that they have used in their lives, in clock ticks: wherever they used it, which the kernel does not
    /// keep.
    pub cpu_ticks: u64,
}

/// The CPUs of each node, by node.
pub(crate) fn cpus_of_nodes(host: &Host) -> Vec<(u32, CpuSet)> {
    let folder = "/sys/devices/system/node";
    let nodes = host.list(folder).into_iter();
    let nodes = nodes.filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok());
    let cpus = |node| {
        let list = host.read(&format!("{folder}/node{node}/cpulist")).ok()?;
        Some((node, CpuSet::parse_list(&list).ok()?))
    };
    nodes.filter_map(cpus).collect()
}

/// The threads of the process `pid`, by the node that they ran on last.
pub(crate) fn read(host: &Host, pid: u32, nodes: &[(u32, CpuSet)]) -> Vec<ThreadsOn> {
    let folder = format!("/proc/{pid}/task");
    let mut stats: Vec<_> = host
        .list(&folder)
        .iter()
        .filter_map(|tid| host.read_lossy(&format!("{folder}/{tid}/stat")).ok())
        .filter_map(|text| parse_stat(&text))
        .collect();
    if stats.is_empty() {
        // A recorded host may have the process only.
        let whole = host.read_lossy(&format!("/proc/{pid}/stat")).ok();
        stats.extend(whole.and_then(|text| parse_stat(&text)));
    }
    let mut by_node: BTreeMap<Option<u32>, (CpuSet, usize, u64)> = BTreeMap::new();
    for stat in stats {
        let node = stat.cpu.and_then(|cpu| nodes.iter().find(|(_, cpus)| cpus.contains(cpu)));
        let entry = by_node.entry(node.map(|(node, _)| *node)).or_insert((CpuSet::new(), 0, 0));
        if let Some(cpu) = stat.cpu.filter(|cpu| *cpu <= planish_sys::set::ID_MAX) {
            entry.0.insert(cpu);
        }
        entry.1 += 1;
        entry.2 = entry.2.saturating_add(stat.cpu_ticks);
    }
    let on = |(node, (cpus, threads, cpu_ticks)): (_, (CpuSet, _, _))| ThreadsOn {
        node,
        cpus: cpus.to_string(),
        threads,
        cpu_ticks,
    };
    by_node.into_iter().map(on).collect()
}

/// The share of the threads' CPU time that those have used which ran on each node last: of their number where they have
/// used none.
pub(crate) fn weights<'a>(threads: impl Iterator<Item = &'a ThreadsOn>) -> BTreeMap<u32, f64> {
    let on_nodes: Vec<(u32, u64, usize)> =
        threads.filter_map(|on| Some((on.node?, on.cpu_ticks, on.threads))).collect();
    let ticks = sum_of(on_nodes.iter().map(|(_, ticks, _)| *ticks));
    let total = if ticks > 0 { ticks } else { on_nodes.iter().map(|(_, _, count)| *count as u64).sum() };
    let mut weights = BTreeMap::new();
    for (node, node_ticks, count) in on_nodes {
        let weight = if ticks > 0 { node_ticks } else { count as u64 };
        *weights.entry(node).or_insert(0.0) += weight as f64 / total as f64;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(node: u32, threads: usize, cpu_ticks: u64) -> ThreadsOn {
        ThreadsOn { node: Some(node), cpus: String::new(), threads, cpu_ticks }
    }

    #[test]
    fn weights_are_shares_of_cpu_time() {
        let told = weights([on(0, 9, 100), on(1, 1, 300)].iter());
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [(0, 0.25), (1, 0.75)]);
        let idle = weights([on(0, 3, 0), on(1, 1, 0)].iter());
        assert_eq!(idle.into_iter().collect::<Vec<_>>(), [(0, 0.75), (1, 0.25)]);
        assert!(weights([].iter()).is_empty());
    }

    #[test]
    fn our_own_threads_are_found() {
        let host = Host::live();
        let threads = read(&host, std::process::id(), &cpus_of_nodes(&host));
        assert!(threads.iter().map(|on| on.threads).sum::<usize>() >= 1);
        assert!(threads.iter().any(|on| !on.cpus.is_empty()));
    }
}
