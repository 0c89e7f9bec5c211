//! Pools of huge pages by their names: which file is that of one node, and which stands for those of all nodes
//! together.
//!
//! ```text
//!   /proc/sys/vm/nr_hugepages                                                all nodes, pages of the default size
//!   /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages                   all nodes
//!   /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages   one node
//! ```
//!
//! Whoever writes one of the first two sets the pools of all nodes: the kernel spreads what is missing over them, and
//! takes what is too much from whichever have pages that are free (`mm/hugetlb.c`, `set_max_huge_pages`). A
//! `nr_hugepages_mempolicy` beside each of these means the nodes that its writer may have memory of: all, for what a
//! boot runs.
//!
//! Who writes them is not known here, and what a plan wants of them neither.

use std::collections::BTreeMap;

use planish_sorted::CollectMap as _;

use crate::{BootValue, Observation, Persisted, PoolReading};

const SYSCTLS: &str = "/proc/sys/vm/";
const POOL: &str = "nr_hugepages";
const BY_POLICY: &str = "_mempolicy";

/// The file of the pools of all nodes, for pages of a size.
#[must_use]
pub fn of_all_nodes(page_bytes: u64) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/{POOL}", page_bytes / 1024)
}

/// The name in /sys of a file that has another one, which `sysctl` knows or which goes by a policy of memory. Those of
/// `vm` are for pages of the default size. `None` for every other file.
#[must_use]
pub fn in_sysfs(path: &str, default_page: Option<u64>) -> Option<String> {
    if let Some(file) = path.strip_prefix(SYSCTLS) {
        let file = match file.strip_suffix(BY_POLICY).filter(|file| *file == POOL) {
            Some(file) => file,
            None => Some(file).filter(|file| [POOL, "nr_overcommit_hugepages"].contains(file))?,
        };
        return Some(of_all_nodes(default_page?).replace(POOL, file));
    }
    let name = path.strip_suffix(BY_POLICY)?;
    is_of_all_nodes(name).then(|| name.to_owned())
}

/// The other names of a file, the reverse of [`in_sysfs`].
#[must_use]
pub fn other_names(place: &str, default_page: Option<u64>) -> Vec<String> {
    let mut names = Vec::new();
    if let Some((folder, file)) = place.rsplit_once('/').filter(|_| place.starts_with("/sys/kernel/mm/")) {
        let of_sysctl = format!("{SYSCTLS}{file}");
        if in_sysfs(&of_sysctl, default_page).as_deref() == Some(place) {
            names.push(of_sysctl);
        }
        let by_policy = [format!("{SYSCTLS}{file}{BY_POLICY}"), format!("{folder}/{file}{BY_POLICY}")];
        let is_same = |name: &String| in_sysfs(name, default_page).as_deref() == Some(place);
        names.extend(by_policy.into_iter().filter(is_same));
    }
    names
}

fn is_of_all_nodes(path: &str) -> bool {
    let size = path.strip_prefix("/sys/kernel/mm/hugepages/hugepages-");
    size.and_then(|rest| rest.split_once("kB/")).is_some_and(|(_, file)| file == POOL)
}

/// The file of all nodes for that of one: `None` for a place that is no pool of a node.
#[must_use]
pub fn whole_of(place: &str) -> Option<String> {
    let (_, behind) = place.strip_prefix("/sys/devices/system/node/node")?.split_once('/')?;
    let whole = format!("/sys/kernel/mm/{behind}");
    is_of_all_nodes(&whole).then_some(whole)
}

/// The reverse: the files of each node, with a `*` for its number.
#[must_use]
pub fn on_each_node(whole: &str) -> Option<String> {
    let behind = whole.strip_prefix("/sys/kernel/mm/").filter(|_| is_of_all_nodes(whole))?;
    Some(format!("/sys/devices/system/node/node*/{behind}"))
}

/// `pages` over the nodes as evenly as whole pages go; the first nodes take what is left over.
#[must_use]
pub fn spread(pages: u64, nodes: &[Option<u32>]) -> BTreeMap<Option<u32>, u64> {
    let count = nodes.len() as u64;
    let share = |index: usize| pages / count + u64::from((index as u64) < pages % count);
    nodes.iter().enumerate().map(|(index, node)| (*node, share(index))).collect_map()
}

/// What a boot gives the pool of a node as its share of what is given to all nodes together, and the line that gives
/// it: `persisted` by place. `None` for a pool that is no node's, and where no line is for all.
#[must_use]
pub fn share<'a>(
    pools: &[PoolReading],
    persisted: &'a BTreeMap<String, Persisted>,
    place: &str,
) -> Option<(u64, &'a Persisted)> {
    let pool = pools.iter().find(|pool| pool.place == place && pool.node.is_some())?;
    let line = persisted.get(&of_all_nodes(pool.page_bytes))?;
    let same = pools.iter().filter(|other| other.page_bytes == pool.page_bytes);
    let nodes: Vec<Option<u32>> = same.map(|pool| pool.node).collect();
    Some((spread(line.pages()?, &nodes).get(&pool.node).copied()?, line))
}

/// Pages of all nodes together that a boot ends with, for the file that shows them, as far as lines tell; `None` where
/// it is no such file, or where no node has a line of its own. A line for one node is written on top of the shares: it
/// is that of tmpfiles.d, and what `sysctl` and the command line give is there by then. What the command line gives one
/// node (`is_before`, by place) is there before any file, and the larger of the two counts.
#[must_use]
pub fn sum(
    pools: &[PoolReading],
    persisted: &BTreeMap<String, Persisted>,
    place: &str,
    is_before: impl Fn(&str) -> bool,
) -> Option<u64> {
    let is_one = |pool: &&PoolReading| pool.node.is_some() && of_all_nodes(pool.page_bytes) == place;
    let nodes = || pools.iter().filter(is_one);
    let own = |pool: &PoolReading| persisted.get(&pool.place).and_then(Persisted::pages);
    nodes().find_map(own)?;
    let pages = |pool: &PoolReading| {
        let share = share(pools, persisted, &pool.place).map_or(0, |(pages, _)| pages);
        own(pool).map_or(share, |own| if is_before(&pool.place) { own.max(share) } else { own })
    };
    Some(nodes().map(pages).fold(0, u64::saturating_add))
}

impl Observation {
    /// See [`share`].
    #[must_use]
    pub fn pool_share(&self, place: &str) -> Option<(u64, &Persisted)> {
        share(&self.pools, &self.persisted, place)
    }

    /// The same of a line in a file of this host: what the command line of the kernel gives is there before any file is
    /// read, and no program writes it again.
    #[must_use]
    pub fn pool_share_of_files(&self, place: &str) -> Option<(u64, &Persisted)> {
        let by_boot_line = whole_of(place).is_some_and(|whole| self.by_boot_line.contains_key(&whole));
        self.pool_share(place).filter(|_| !by_boot_line)
    }

    /// Pages that a boot gives a pool without us, and the line that gives them: one for it, or its share of what is
    /// given to the pools of all nodes together, on the kernel's command line too; the larger of the two. A line of
    /// ours is read after those, and sets the whole size: what it is over is theirs still. We give files no line for
    /// all nodes where there are nodes: one in a file of our name was written into it by somebody else.
    #[must_use]
    pub fn pool_by_others(&self, place: &str) -> Option<(u64, &str)> {
        let own = self.persisted.get(place).and_then(|found| {
            if !found.is_ours() {
                return Some((found.pages()?, found.source.as_str()));
            }
            let is_of_others = |line: &&BootValue| Persisted::own_file(&line.source).is_none();
            let theirs = found.overridden.iter().rev().find(is_of_others)?;
            Some((theirs.value.trim().parse().ok()?, theirs.source.as_str()))
        });
        let share = self.pool_share(place).filter(|(_, line)| !line.is_of_our_boot());
        own.into_iter()
            .chain(share.map(|(pages, line)| (pages, line.source.as_str())))
            .max_by_key(|(pages, _)| *pages)
    }

    /// See [`sum`].
    #[must_use]
    pub fn pool_sum_at_boot(&self, place: &str) -> Option<u64> {
        sum(&self.pools, &self.persisted, place, |node| self.by_boot_line.contains_key(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

    fn node(node: u32) -> String {
        format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
    }

    #[test]
    fn an_old_name_leads_to_the_file_of_the_default_page_size() {
        let two = Some(2 << 20);
        for name in ["/proc/sys/vm/nr_hugepages", "/proc/sys/vm/nr_hugepages_mempolicy"] {
            assert_eq!(in_sysfs(name, two).as_deref(), Some(TWO), "{name}");
            assert_eq!(in_sysfs(name, None), None, "{name}");
        }
        assert_eq!(in_sysfs(&format!("{TWO}_mempolicy"), None).as_deref(), Some(TWO));
        let over = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
        assert_eq!(in_sysfs("/proc/sys/vm/nr_overcommit_hugepages", two).as_deref(), Some(over));
        for none in
            ["/proc/sys/vm/swappiness", "/proc/sys/vm/nr_overcommit_hugepages_mempolicy", TWO, &node(0)]
        {
            assert_eq!(in_sysfs(none, two), None, "{none}");
        }
    }

    #[test]
    fn each_other_name_leads_back() {
        let names = other_names(TWO, Some(2 << 20));
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names.iter().all(|name| in_sysfs(name, Some(2 << 20)).as_deref() == Some(TWO)));
        assert_eq!(other_names(TWO, Some(1 << 30)), [format!("{TWO}_mempolicy")]);
        assert_eq!(other_names(&node(0), Some(2 << 20)), [""; 0]);
        assert_eq!(other_names("/sys/kernel/mm/transparent_hugepage/enabled", Some(2 << 20)), [""; 0]);
    }

    #[test]
    fn the_pool_of_a_node_is_part_of_the_one_of_all() {
        assert_eq!(whole_of(&node(3)).as_deref(), Some(TWO));
        for none in [TWO, "/proc/sys/vm/nr_hugepages", "/sys/devices/system/node/node0/cpulist"] {
            assert_eq!(whole_of(none), None, "{none}");
        }
    }

    #[test]
    fn a_line_for_one_node_comes_on_top_of_the_shares_of_all() {
        let pool = |number: u32| PoolReading {
            node: Some(number),
            page_bytes: 2 << 20,
            place: node(number),
            pages: 0,
            free: 0,
            surplus: 0,
        };
        let line = |value: &str| Persisted {
            value: value.to_owned(),
            source: "/etc/sysctl.d/99-huge.conf:1".to_owned(),
            at_boot: None,
            overridden: Vec::new(),
        };
        let pools = [pool(0), pool(1)];
        let mut persisted = BTreeMap::from([(TWO.to_owned(), line("1025"))]);
        let shares = |persisted: &BTreeMap<_, _>| {
            [0, 1].map(|number| share(&pools, persisted, &node(number)).map(|(pages, _)| pages))
        };
        assert_eq!(shares(&persisted), [Some(513), Some(512)]);
        assert_eq!((share(&pools, &persisted, TWO), sum(&pools, &persisted, TWO, |_| false)), (None, None));
        persisted.insert(node(0), line("1536"));
        assert_eq!(sum(&pools, &persisted, TWO, |_| false), Some(1536 + 512));
        persisted.insert(node(0), line("8"));
        assert_eq!(sum(&pools, &persisted, TWO, |_| true), Some(513 + 512), "it was there before");
        persisted.insert(node(0), line("1536"));
        persisted.remove(TWO);
        assert_eq!((shares(&persisted), sum(&pools, &persisted, TWO, |_| false)), ([None, None], Some(1536)));
    }
}
