//! How many huge pages a service needs.
//!
//! Each shared region is rounded up to whole pages by itself, since no two regions share a page; headroom
//! comes on top; the sum is spread over the nodes with CPUs. The arithmetic is part of the answer: a number
//! that nobody can follow is a number that nobody dares to reserve.

use planish_model::page_pool::spread;
use planish_model::{Observation, SizeRow, Sizing, fitting, units::bytes, units::counted};
use planish_sorted::CollectMap as _;

use crate::budget::{Budgets, ByNode};
use crate::pool::{spread_nodes, without_pools};

/// Headroom where none is asked for: what a service maps besides its main region, and small growth.
pub const DEFAULT_HEADROOM_PERCENT: u32 = 20;

/// Regions of one size that the service maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What it is: `/dev/zero (deleted)`, `shared_memory_size_in_huge_pages`, `region`.
    pub name: String,
    /// How many of them.
    pub count: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// Size in bytes of the reserved huge pages that it lies on already; `None` for one on ordinary pages.
    pub pool_page_bytes: Option<u64>,
}

impl Region {
    /// Whole pages of a size that all of them need.
    fn pages(&self, page_bytes: u64) -> u64 {
        self.count.saturating_mul(self.bytes.div_ceil(page_bytes))
    }
}

/// What is to be sized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRequest {
    /// Whose regions they are, for people.
    pub subject: String,
    /// The name of the service's program, when it is one that is sized.
    pub service: Option<String>,
    /// The regions.
    pub regions: Vec<Region>,
    /// Bytes of private memory beside them, which no pool helps unless the program asks for it.
    pub private_bytes: u64,
    /// Headroom on top, in percent.
    pub headroom_percent: u32,
}

/// Pools for the regions: one alternative for each page size that the host offers, spread over the nodes.
#[must_use]
pub fn size(observation: &Observation, request: &SizeRequest) -> Sizing {
    let need_bytes =
        request.regions.iter().fold(0, |sum: u64, r| sum.saturating_add(r.count.saturating_mul(r.bytes)));
    let mut arithmetic: Vec<String> = request
        .regions
        .iter()
        .map(|region| {
            format!("{}: {} x {} ({} B)", region.name, region.count, bytes(region.bytes), region.bytes)
        })
        .collect();
    if request.private_bytes > 0 {
        let private = bytes(request.private_bytes);
        arithmetic.push(format!(
            "not counted: {private} of private memory, which lies in a pool only where the program asks for huge pages"
        ));
    }
    let mut sizes: Vec<u64> = observation.pools.iter().map(|pool| pool.page_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = Vec::new();
    for page_bytes in sizes {
        let (own, line) = rows_of(page_bytes, observation, request);
        rows.extend(own);
        arithmetic.push(line);
    }
    if let Some(reason) = without_pools(observation) {
        arithmetic.push(reason.to_owned());
    }
    let (subject, headroom_percent) = (request.subject.clone(), request.headroom_percent);
    Sizing { subject, service: request.service.clone(), need_bytes, headroom_percent, rows, arithmetic }
}

/// The rows of one page size and their line of arithmetic.
fn rows_of(page_bytes: u64, observation: &Observation, request: &SizeRequest) -> (Vec<SizeRow>, String) {
    let whole = request.regions.iter().fold(0, |sum: u64, r| sum.saturating_add(r.pages(page_bytes)));
    let in_pool = request.regions.iter().filter(|region| region.pool_page_bytes == Some(page_bytes));
    let used = in_pool.fold(0, |sum: u64, region| sum.saturating_add(region.pages(page_bytes)));
    let headroom = u128::from(whole) * u128::from(request.headroom_percent);
    let pages = u64::try_from(u128::from(whole) + headroom.div_ceil(100)).unwrap_or(u64::MAX);
    let pools: Vec<_> = observation.pools.iter().filter(|pool| pool.page_bytes == page_bytes).collect();
    // With per-node pools, the global one shows the same pages once more.
    let per_node = pools.iter().any(|pool| pool.node.is_some());
    let nodes: Vec<_> =
        pools.iter().map(|pool| pool.node).filter(|node| node.is_some() == per_node).collect();
    let nodes = spread_nodes(&nodes, observation);
    let (shares, used_shares) = (spread(pages, &nodes), spread(used, &nodes));
    let total = pages.saturating_mul(page_bytes);
    // A node that is full cannot give its share, however much the others have: as a plan reckons it.
    let besides =
        |node: &Option<u32>, pages: u64| pages.saturating_sub(used_shares[node]).saturating_mul(page_bytes);
    let wanted: ByNode = shares.iter().map(|(node, pages)| (*node, besides(node, *pages))).collect_map();
    let refused = Budgets::of(observation).refusal(&wanted);
    let rows: Vec<SizeRow> = shares
        .iter()
        .map(|(node, pages)| SizeRow {
            node: *node,
            page_bytes,
            pages: *pages,
            bytes: pages.saturating_mul(page_bytes),
            used: used_shares[node],
            fits: fitting(&observation.buddy, *node, page_bytes, observation.host.page_bytes),
            free: pools.iter().find(|pool| pool.node == *node).map_or(0, |pool| pool.free),
            refused: refused.clone(),
        })
        .collect();
    let mut line = format!(
        "pages of {}: {whole} + {} % = {} = {}",
        bytes(page_bytes),
        request.headroom_percent,
        counted(pages, "page"),
        bytes(total)
    );
    if rows.len() > 1 {
        let shares: Vec<String> = rows.iter().map(|row| row.pages.to_string()).collect();
        line += &format!(", over {} nodes: {}", rows.len(), shares.join(" + "));
    }
    if used > 0 {
        line += &format!("; {used} of them it has already");
    }
    if let Some(refused) = refused {
        line += &format!("; refused: {refused}");
    }
    (rows, line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::observation;

    fn region() -> Region {
        Region { name: "region".to_owned(), count: 1, bytes: 0, pool_page_bytes: None }
    }

    #[test]
    fn private_memory_is_told_and_not_counted() {
        let with = SizeRequest { private_bytes: 200 << 20, ..request(&[(1, 64 << 20)], 0) };
        let sizing = size(&observation(), &with);
        assert_eq!(sizing.need_bytes, 64 << 20);
        assert!(sizing.arithmetic[1].starts_with("not counted: 200 MiB of private"), "{sizing:?}");
    }

    fn request(regions: &[(u64, u64)], headroom_percent: u32) -> SizeRequest {
        let regions = regions
            .iter()
            .map(|(count, bytes)| Region { count: *count, bytes: *bytes, ..region() })
            .collect();
        SizeRequest {
            subject: "engine".to_owned(),
            service: None,
            regions,
            private_bytes: 0,
            headroom_percent,
        }
    }

    #[test]
    fn the_arithmetic_can_be_followed() {
        let sizing = size(&observation(), &request(&[(1, 1_940_000_000), (2, 3 << 20)], 20));
        assert_eq!(
            sizing.arithmetic,
            [
                "region: 1 x 1.8 GiB (1940000000 B)",
                "region: 2 x 3 MiB (3145728 B)",
                "pages of 2 MiB: 930 + 20 % = 1116 pages = 2.2 GiB, over 2 nodes: 558 + 558",
                "pages of 1 GiB: 4 + 20 % = 5 pages = 5 GiB, over 2 nodes: 3 + 2",
            ]
        );
        assert_eq!(sizing.need_bytes, 1_940_000_000 + (6 << 20));
    }

    #[test]
    fn what_the_service_has_already_is_told_apart() {
        let mut request = request(&[(1, 10 << 21), (1, 4 << 21)], 0);
        request.regions[0].pool_page_bytes = Some(2 << 20);
        let sizing = size(&observation(), &request);
        let rows: Vec<_> = sizing.rows.iter().map(|row| (row.node, row.pages, row.used)).collect();
        assert_eq!(rows[..2], [(Some(0), 7, 5), (Some(1), 7, 5)]);
        assert!(sizing.arithmetic[2].ends_with("; 10 of them it has already"), "{}", sizing.arithmetic[2]);
        assert_eq!(rows[2].2, 0, "not from the pool of other pages");
    }

    #[test]
    fn what_the_host_cannot_give_is_refused_with_the_reason() {
        let sizing = size(&observation(), &request(&[(1, 15 << 30)], 0));
        let refused = sizing.rows[0].refused.as_deref().expect("the host has 16 GiB");
        assert!(refused.contains("the host keeps 1.6 GiB"), "{refused}");
    }

    #[test]
    fn a_node_that_is_full_refuses_what_the_host_could_give() {
        let mut observation = observation();
        let node = |node, available_bytes| planish_model::NodeMemory {
            node,
            memory_bytes: 8 << 30,
            available_bytes,
        };
        observation.node_memory = vec![node(0, 7 << 30), node(1, 2 << 30)];
        assert_eq!(size(&observation, &request(&[(1, 2 << 30)], 0)).rows[0].refused, None);
        let sizing = size(&observation, &request(&[(1, 4 << 30)], 0));
        let refused = sizing.rows[0].refused.as_deref().expect("the half of it is too much for node 1");
        assert!(refused.starts_with("node 1: 2 GiB would leave 0 B of"), "{refused}");
    }

    #[test]
    fn what_lies_in_free_blocks_is_told_by_node() {
        let mut observation = observation();
        observation.host.page_bytes = 4096;
        let blocks = "Node 0, zone DMA32 0 0 0 0 0 0 0 0 0 1 2\nNode 0, zone Normal 9 0 0 0 0 0 0 0 0 0 3\n\
                      Node 1, zone Normal 9 9 9 9 9 9 9 9 9 0 0\n";
        observation.buddy = planish_model::BuddyRow::parse_all(blocks);
        let sizing = size(&observation, &request(&[(1, 16 << 20)], 0));
        let fits: Vec<_> = sizing.rows.iter().map(|row| (row.node, row.page_bytes >> 20, row.fits)).collect();
        assert_eq!(
            fits,
            [(Some(0), 2, Some(11)), (Some(1), 2, Some(0)), (Some(0), 1024, None), (Some(1), 1024, None)]
        );
        observation.buddy.clear();
        assert_eq!(size(&observation, &request(&[(1, 1)], 0)).rows[0].fits, None, "nobody tells");
    }

    #[test]
    fn a_host_without_pools_says_so() {
        let mut observation = observation();
        observation.pools.clear();
        let reason = |observation: &Observation| {
            let sizing = size(observation, &request(&[(1, 1)], 20));
            assert!(sizing.rows.is_empty());
            sizing.arithmetic[1].clone()
        };
        let unseen =
            "the huge-page pools of this kernel cannot be seen: /sys/kernel/mm/hugepages is not there";
        assert_eq!(reason(&observation), unseen, "/proc/meminfo names a size");
        observation.host.huge_page_bytes.clear();
        assert_eq!(reason(&observation), "this kernel has no huge-page pools");
    }

    proptest! {
        #[test]
        fn the_pages_hold_every_region(
            regions in proptest::collection::vec((1_u64..20, 1_u64..1 << 32), 1..6), headroom in 0_u32..200,
        ) {
            let sizing = size(&observation(), &request(&regions, headroom));
            for page_bytes in [2_u64 << 20, 1 << 30] {
                let own = sizing.rows.iter().filter(|row| row.page_bytes == page_bytes);
                let pages: u64 = own.clone().map(|row| row.pages).sum();
                let each = regions.iter().map(|(count, bytes)| count * bytes.div_ceil(page_bytes));
                let whole: u64 = each.sum();
                prop_assert!(pages >= whole);
                prop_assert!(pages <= whole + (whole * u64::from(headroom)).div_ceil(100));
                prop_assert_eq!(own.map(|row| row.bytes).sum::<u64>(), pages * page_bytes);
            }
        }
    }
}
