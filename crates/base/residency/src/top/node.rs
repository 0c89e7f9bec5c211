//! What each node tells of its memory.

use planish_host::Host;

use super::{NodeSample, Numastat, PoolSample};

/// Every node, or the machine as one where the kernel knows none.
pub(super) fn read(host: &Host, nodes: &[u32]) -> Vec<NodeSample> {
    if nodes.is_empty() {
        return one(host, "/proc/meminfo", "/sys/kernel/mm/hugepages", None).into_iter().collect();
    }
    let of = |node: &u32| {
        let folder = format!("/sys/devices/system/node/node{node}");
        let sample = one(host, &format!("{folder}/meminfo"), &format!("{folder}/hugepages"), Some(*node))?;
        let numastat = host.read(&format!("{folder}/numastat")).ok().map(|text| parse_numastat(&text));
        Some(NodeSample { numastat, ..sample })
    };
    nodes.iter().filter_map(of).collect()
}

fn one(host: &Host, meminfo: &str, pools: &str, node: Option<u32>) -> Option<NodeSample> {
    let text = host.read(meminfo).ok()?;
    let bytes = |name: &str| meminfo_bytes(&text, name).unwrap_or(0);
    let thp = ["AnonHugePages", "ShmemHugePages", "FileHugePages"];
    Some(NodeSample {
        node,
        memory_bytes: meminfo_bytes(&text, "MemTotal")?,
        free_bytes: bytes("MemFree"),
        thp_bytes: thp.iter().fold(0, |sum: u64, name| sum.saturating_add(bytes(name))),
        pools: host.list(pools).iter().filter_map(|name| pool(host, pools, name)).collect(),
        numastat: None,
    })
}

/// `Node 0 MemFree:  39845888 kB`, or the same without the node in /proc/meminfo.
fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let of = |line: &str| {
        let (head, value) = line.split_once(':')?;
        let own = head.split_ascii_whitespace().next_back() == Some(name);
        let kilobytes = value.split_ascii_whitespace().next()?.parse::<u64>().ok();
        own.then_some(kilobytes?.saturating_mul(1024))
    };
    text.lines().find_map(of)
}

fn pool(host: &Host, folder: &str, name: &str) -> Option<PoolSample> {
    let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    let number = |file: &str| host.read(&format!("{folder}/{name}/{file}")).ok()?.trim().parse::<u64>().ok();
    let pool = PoolSample {
        page_bytes: kilobytes.checked_mul(1024)?,
        pages: number("nr_hugepages")?,
        free_pages: number("free_hugepages").unwrap_or(0),
    };
    (pool.pages > 0).then_some(pool)
}

fn parse_numastat(text: &str) -> Numastat {
    let mut told = Numastat::default();
    for (key, value) in text.lines().filter_map(|line| line.trim().split_once(' ')) {
        let value = value.trim().parse().unwrap_or(0);
        match key {
            "numa_hit" => told.hit = value,
            "numa_miss" => told.miss = value,
            "numa_foreign" => told.foreign = value,
            "other_node" => told.other = value,
            _ => {}
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_meminfo_are_read() {
        let of_node =
            "Node 10 MemTotal:  134217728 kB\nNode 10 MemFree:   1024 kB\nNode 10 HugePages_Total:  3\n";
        assert_eq!(meminfo_bytes(of_node, "MemFree"), Some(1 << 20));
        assert_eq!(meminfo_bytes("MemTotal:  4 kB\nMemFree:  2 kB\n", "MemFree"), Some(2048));
        assert_eq!(meminfo_bytes("MemFree\nMemFree: x kB\n", "MemFree"), None);
    }

    #[test]
    fn numastat_is_told_by_its_names() {
        let told = parse_numastat(
            "numa_hit 5\nnuma_miss 4\nnuma_foreign 3\ninterleave_hit 9\nlocal_node 2\nother_node 1\n",
        );
        assert_eq!(told, Numastat { hit: 5, miss: 4, foreign: 3, other: 1 });
    }
}
