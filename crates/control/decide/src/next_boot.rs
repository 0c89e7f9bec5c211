//! Pools of huge pages of the next boot: of all sizes and by all ways together.
//!
//! ```text
//!   arguments of the kernel     hugepages=N: over all nodes, 0:N,1:M: by node     before anything else runs
//!   lines of files              nr_hugepages of one node, or of all               when systemd starts
//!   hugetlb_cma=                held for gigantic pages, and movable data until then
//! ```
//!
//! Each way alone may be within the memory, and all of them more than there is: the kernel takes as much as it finds
//! for the first of them, and process 1 gets none of the rest. Of two numbers for one pool the larger counts, since
//! there is a moment at which it holds.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::page_pool::{self, spread};
use planish_model::{Catalogue, Observation, Persisted, PoolReading, Step, node_bytes, units::bytes};

use crate::boot;
use crate::budget::{Budgets, ByNode};

/// Pages that `hugetlb_cma=` holds memory for: those that are larger than the largest block of the buddy allocator.
const GIGANTIC_BYTES: u64 = 1 << 30;

/// Why all pools of the next boot are together more than its memory can give; `None` where they are not. `boot` are
/// boot parameters that are added, and `lines` what files will set pools to, by place; besides them counts what comes
/// anyway.
#[must_use]
pub fn beyond_next_boot(
    catalogue: &Catalogue,
    observation: &Observation,
    boot: &[Step],
    lines: &BTreeMap<String, u64>,
) -> Option<String> {
    let next = Next { catalogue, observation, boot, lines };
    let sizes: BTreeSet<u64> =
        observation.pools.iter().map(|pool| pool.page_bytes).chain(next.sizes()).collect();
    let (mut wanted, mut told, mut gigantic) = (ByNode::new(), Vec::new(), 0_u64);
    for size in sizes {
        let pages = next.pages(size);
        let count = pages.values().fold(0, |sum: u64, pages| sum.saturating_add(*pages));
        for (node, pages) in pages {
            let of_node = wanted.entry(node).or_default();
            *of_node = of_node.saturating_add(pages.saturating_mul(size));
        }
        if count > 0 {
            let all = count.saturating_mul(size);
            gigantic = gigantic.saturating_add(if size >= GIGANTIC_BYTES { all } else { 0 });
            told.push(format!("{count} pages of {} ({})", bytes(size), bytes(all)));
        }
    }
    let held = next.held().saturating_sub(gigantic);
    if held > 0 {
        let of_host = wanted.entry(None).or_default();
        *of_host = of_host.saturating_add(held);
        told.push(format!("{} that hugetlb_cma= holds besides", bytes(held)));
    }
    let why = Budgets::at_boot(observation).refusal(&wanted)?;
    Some(format!("the next boot would have {}: {why}", told.join(" and ")))
}

/// What the next boot gives.
struct Next<'a> {
    catalogue: &'a Catalogue,
    observation: &'a Observation,
    boot: &'a [Step],
    lines: &'a BTreeMap<String, u64>,
}

impl Next<'_> {
    /// Sizes that the added parameters name.
    fn sizes(&self) -> impl Iterator<Item = u64> {
        let sizes = self.boot.iter().filter_map(|step| self.size_of(step));
        sizes.collect::<Vec<_>>().into_iter()
    }

    fn size_of(&self, step: &Step) -> Option<u64> {
        match self.catalogue.knob(&step.knob).ok()?.boot_parameter()? {
            ("hugepages", Some(size)) => boot::page_bytes(size),
            _ => None,
        }
    }

    /// Pages of a size by node: those of no node where the host has none, or no pool of this size yet.
    fn pages(&self, size: u64) -> BTreeMap<Option<u32>, u64> {
        let of_all = page_pool::of_all_nodes(size);
        let added = self.boot.iter().find(|step| self.size_of(step) == Some(size));
        let added = added.and_then(|step| step.wanted.trim().parse::<u64>().ok());
        let whole = added.unwrap_or_else(|| self.given(&of_all)).max(self.line(&of_all));
        let pools: Vec<&PoolReading> =
            self.observation.pools.iter().filter(|pool| pool.page_bytes == size).collect();
        if pools.is_empty() {
            return BTreeMap::from([(None, whole)]);
        }
        let nodes: Vec<Option<u32>> = pools.iter().map(|pool| pool.node).collect();
        let mut pages = spread(whole, &nodes);
        for pool in pools {
            // What is added for all of them takes the place of what was said by node on the same line.
            let by_node = if added.is_some() { 0 } else { self.given(&pool.place) };
            let of_node = pages.entry(pool.node).or_default();
            *of_node = (*of_node).max(by_node).max(self.line(&pool.place));
        }
        pages
    }

    fn line(&self, place: &str) -> u64 {
        self.lines.get(place).copied().unwrap_or(0)
    }

    /// Pages that files and the command line of the next boot give a place as they are now.
    fn given(&self, place: &str) -> u64 {
        self.observation.persisted.get(place).and_then(Persisted::pages).unwrap_or(0)
    }

    /// Bytes that `hugetlb_cma=` holds.
    fn held(&self) -> u64 {
        const PLACE: &str = "cmdline:hugetlb_cma";
        let added = self.boot.iter().find(|step| step.place == PLACE).map(|step| step.wanted.as_str());
        let found = self.observation.persisted.get(PLACE);
        let comes = found.map(|found| found.at_boot.as_ref().unwrap_or(&found.value).as_str());
        added.or(comes).and_then(|text| node_bytes(text.trim())).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use planish_model::{Case, Conditions, HostFacts, KnobId, NodeMemory, Nodes, Want};

    use super::*;
    use crate::testing::{pool, profile, reading};
    use crate::{Options, plan};

    /// Two nodes of 128 GiB, empty.
    fn host() -> Observation {
        let node = |node| NodeMemory { node, memory_bytes: 128 << 30, available_bytes: 120 << 30 };
        let host = HostFacts {
            memory_bytes: 256 << 30,
            available_bytes: 240 << 30,
            ..crate::testing::observation().host
        };
        let big = |node: u32| PoolReading {
            page_bytes: 1 << 30,
            place: format!("/sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages"),
            ..pool(node, 0)
        };
        let pools = vec![pool(0, 0), pool(1, 0), big(0), big(1)];
        let mut knobs: BTreeMap<KnobId, Vec<_>> = BTreeMap::new();
        for pool in &pools {
            let id = if pool.page_bytes == 2 << 20 { "hugepages.2m" } else { "hugepages.1g" };
            knobs.entry(KnobId::new(id)).or_default().push(reading(&pool.place, "0"));
        }
        for (id, place) in
            [("boot.hugepages.2m", "cmdline:hugepages@2M"), ("boot.hugetlb_cma", "cmdline:hugetlb_cma")]
        {
            knobs.insert(KnobId::new(id), vec![reading(place, planish_model::NOT_GIVEN)]);
        }
        Observation { host, knobs, pools, node_memory: vec![node(0), node(1)], ..Observation::default() }
    }

    /// Why a profile is impossible on it.
    fn told(seen: &Observation, wants: &[(&str, Want)]) -> Vec<(String, String)> {
        let catalogue = Catalogue::embedded().expect("sound");
        let options =
            Options { allow_classes: vec![planish_model::Class::Availability], ..Options::default() };
        let plan = plan(&catalogue, seen, &profile(wants), &[], &options).expect("a plan");
        let rows = plan.skipped.into_iter().filter(|row| row.impossible);
        assert_eq!(plan.boot.iter().filter(|step| step.knob.as_str().starts_with("boot.huge")).count(), {
            let wanted = wants.iter().filter(|(id, _)| id.starts_with("boot.")).count();
            wanted - rows.clone().filter(|row| row.knob.as_str().starts_with("boot.")).count()
        });
        rows.map(|row| (row.knob.to_string(), row.verdict.reason)).collect()
    }

    fn pages(count: u32) -> Want {
        let (value, needs) = (count.to_string(), Conditions::default());
        Want::Case(Box::new(Case { value, only: None, needs }))
    }

    fn gib(count: u64) -> Want {
        Want::Need { need_bytes: count << 30, nodes: Nodes::Spread }
    }

    #[test]
    fn pools_of_the_command_line_and_of_files_are_reckoned_together() {
        let seen = host();
        // 195 GiB by the command line and 94 GiB by lines: each is within 256 GiB.
        assert_eq!(told(&seen, &[("boot.hugepages.2m", pages(100_000))]), []);
        assert_eq!(told(&seen, &[("hugepages.1g", gib(94))]), []);
        let both = told(&seen, &[("boot.hugepages.2m", pages(100_000)), ("hugepages.1g", gib(94))]);
        let why = "the next boot would have 100000 pages of 2 MiB (195.3 GiB) and 94 pages of 1 GiB (94 GiB): \
                   289.3 GiB is more than the 256 GiB available, of which the host keeps 25.6 GiB";
        assert_eq!(both, [("boot.hugepages.2m".to_owned(), why.to_owned())]);
        assert_eq!(told(&seen, &[("boot.hugepages.2m", pages(50_000)), ("hugepages.1g", gib(94))]), []);
    }

    #[test]
    fn a_node_that_cannot_give_its_share_is_named() {
        let one = Want::Need { need_bytes: 80 << 30, nodes: Nodes::Each(vec![1]) };
        let told = told(&host(), &[("boot.hugepages.2m", pages(50_000)), ("hugepages.1g", one)]);
        assert!(
            told[0].1.contains("(80 GiB): node 1: 128.8 GiB is more than the 128 GiB available"),
            "{told:?}"
        );
    }

    #[test]
    fn of_two_numbers_for_one_pool_the_larger_counts_and_what_comes_anyway_counts_too() {
        let mut seen = host();
        assert_eq!(told(&seen, &[("boot.hugepages.2m", pages(100_000)), ("hugepages.2m", gib(180))]), []);
        let place = "/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages";
        let (value, source) = ("90".to_owned(), "/etc/tmpfiles.d/theirs.conf:1".to_owned());
        let line = Persisted { value, source, at_boot: None, overridden: Vec::new() };
        seen.persisted.insert(place.to_owned(), line);
        let told = told(&seen, &[("boot.hugepages.2m", pages(80_000))]);
        assert!(
            told[0].1.contains("and 90 pages of 1 GiB (90 GiB): 246.2 GiB would leave 9.8 GiB"),
            "{told:?}"
        );
    }

    #[test]
    fn gigantic_pages_are_made_of_what_is_held_for_them() {
        let held = |size: &str| ("boot.hugetlb_cma", Want::Text(size.to_owned()));
        assert_eq!(told(&host(), &[held("200G"), ("hugepages.1g", gib(180))]), []);
        let told = told(&host(), &[held("200G"), ("hugepages.2m", gib(100))]);
        assert!(told[0].1.contains("and 200 GiB that hugetlb_cma= holds besides: 300 GiB"), "{told:?}");
    }
}
