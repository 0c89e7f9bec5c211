//! Topologies of many machines: those in `hosts/`, those that others have recorded, and the live one.

mod hosts;
mod oracle;

use planish_sys::CpuSet;
use planish_topo::Topology;

/// What holds for every machine.
fn check(topology: &Topology, name: &str) {
    assert!(!topology.cpus.is_empty() && !topology.nodes.is_empty(), "{name}");
    assert!(topology.oddities.is_empty(), "{name}: {:?}", topology.oddities.first());
    assert!(topology.cpus.is_sorted_by_key(|cpu| cpu.id) && topology.nodes.is_sorted_by_key(|node| node.id));
    assert!(topology.allowed().is_subset(&topology.online()), "{name}");
    for cpu in topology.cpus.iter().filter(|cpu| cpu.online) {
        assert!(cpu.threads.contains(cpu.id), "{name}: {cpu:?}");
        assert!(cpu.node.is_some(), "{name}: {cpu:?}");
    }
    let mut seen = CpuSet::new();
    for node in &topology.nodes {
        assert!(node.cpus.intersection(&seen).is_empty(), "{name}: a CPU on two nodes");
        seen = seen.union(&node.cpus);
        assert!(node.distances.is_empty() || node.distances.len() == topology.nodes.len(), "{name}");
        assert!(node.free_bytes <= node.memory_bytes, "{name}");
        assert!(
            node.pools.iter().all(|pool| pool.free <= pool.total && pool.surplus <= pool.total),
            "{name}"
        );
    }
    assert_eq!(seen, topology.online(), "{name}: every CPU has its node");
    assert!(topology.caches.iter().all(|cache| cache.level >= 1 && !cache.cpus.is_empty()), "{name}");
}
