//! Huge-page pools by size and node.

use std::collections::BTreeMap;

use planish_host::{Host, Pattern};
use planish_model::{HostFacts, PoolReading};
use planish_sorted::{CollectMap as _, SortSmall as _};

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
    pools.sort_small_by_key(|pool| (pool.page_bytes, pool.node));
    pools
}

/// Pages that are claimed and not touched yet, by the size of them.
pub(crate) fn claimed(host: &Host, facts: &HostFacts) -> BTreeMap<u64, u64> {
    let of_size = |page_bytes: &u64| {
        let file = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/resv_hugepages", page_bytes / 1024);
        Some((*page_bytes, host.read(&file).ok()?.trim().parse().ok()?))
    };
    facts.huge_page_bytes.iter().filter_map(of_size).collect_map()
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
