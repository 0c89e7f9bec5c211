//! Huge-page pools by size and node, and the free blocks that tell why a pool did not grow.

use planish_host::{Host, Pattern};
use planish_model::{BuddyRow, HostFacts, PoolReading};

const PER_NODE: &str = "/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/nr_hugepages";
const GLOBAL: &str = "/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages";

/// The pools, smallest pages first, then by node. Where the kernel has per-node pools the global ones show
/// the same pages once more and are left out.
pub(crate) fn read(host: &Host, facts: &HostFacts) -> Vec<PoolReading> {
    if facts.huge_page_bytes.is_empty() {
        return Vec::new();
    }
    let mut pools = matching(host, PER_NODE);
    if pools.is_empty() {
        pools = matching(host, GLOBAL);
    }
    pools.sort_by_key(|pool| (pool.page_bytes, pool.node));
    pools
}

fn matching(host: &Host, pattern: &str) -> Vec<PoolReading> {
    let pattern = Pattern::parse(pattern).expect("a constant pattern is well formed");
    let number = |path: &str| host.read(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    host.glob(&pattern)
        .into_iter()
        .filter_map(|found| {
            let folder = found.path.strip_suffix("nr_hugepages")?;
            Some(PoolReading {
                node: found.captures.get("node").and_then(|node| node.parse().ok()),
                page_bytes: found.captures.get("kb")?.parse::<u64>().ok()?.checked_mul(1024)?,
                pages: number(&found.path)?,
                free: number(&format!("{folder}free_hugepages")).unwrap_or(0),
                surplus: number(&format!("{folder}surplus_hugepages")).unwrap_or(0),
                place: found.path.clone(),
            })
        })
        .collect()
}

/// Rows of `/proc/buddyinfo`.
pub(crate) fn buddy(text: &str) -> Vec<BuddyRow> {
    text.lines()
        .filter_map(|line| {
            let (node, rest) = line.strip_prefix("Node ")?.split_once(", zone")?;
            let mut words = rest.split_whitespace();
            let zone = words.next()?.to_owned();
            let free = words.map(str::parse).collect::<Result<_, _>>().ok()?;
            Some(BuddyRow { node: node.trim().parse().ok()?, zone, free })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::buddy;

    #[test]
    fn buddy_rows_are_read_by_node_and_zone() {
        let rows =
            buddy("Node 0, zone      DMA      1      0      2\nNode 1, zone   Normal  4 5 6\nodd line\n");
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].node, rows[0].zone.as_str(), rows[0].free.as_slice()),
            (0, "DMA", &[1, 0, 2][..])
        );
        assert_eq!((rows[1].node, rows[1].zone.as_str()), (1, "Normal"));
    }
}
