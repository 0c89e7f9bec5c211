//! What of a wish this machine, this kernel and this process can have: found out before anything is started.

use planish_host::Host;
use planish_sys::policy::{self, Existing};
use planish_sys::{CpuSet, MapOptions, NodeSet, PageRequest, Policy, affinity, map_anonymous, pages};

use crate::error::PlacementError;
use crate::wish::{HeapPages, Prefault, SharedPages, Spread, Wish};

/// Facts that wishes are compared with.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Nodes with memory that this process may take.
    pub nodes: NodeSet,
    /// All nodes with memory.
    pub known: NodeSet,
    /// CPUs that this process may run on.
    pub cpus: CpuSet,
    /// CPUs that are there, and of these the ones that are online; both empty where that is not told.
    pub cpus_present: CpuSet,
    /// See above.
    pub cpus_online: CpuSet,
    /// CPUs of each node.
    pub cpus_of: Vec<(u32, CpuSet)>,
    /// Weight of each node for weighted interleave; none where the kernel has none.
    pub weights: Vec<(u32, u64)>,
    /// Mode of transparent huge pages: `always`, `madvise`, `never`.
    pub thp: String,
    /// The same for shared memory.
    pub shmem_thp: String,
    /// Size of a transparent huge page; `None` without them.
    pub thp_bytes: Option<u64>,
    /// Free pages of each pool, by the size of a page in bytes.
    pub pools: Vec<(u64, u64)>,
    /// Size of the pages of the default pool.
    pub pool_bytes: u64,
    /// Memory of the whole machine.
    pub total_bytes: u64,
    /// The policy that a program inherits from this process (numactl(8), a unit's `NUMAPolicy=`); `None` where it is
    /// the kernel's own, which is local, or is not told.
    pub inherited: Option<Policy>,
}

impl Machine {
    /// Looks at this machine.
    ///
    /// # Errors
    /// Not even the CPUs of this process are told.
    pub fn look(host: &Host) -> Result<Self, PlacementError> {
        let list = |path: &str| NodeSet::parse_list(host.read(path).ok()?.trim()).ok();
        let known = list("/sys/devices/system/node/has_memory").unwrap_or_else(|| [0].into_iter().collect());
        let allowed = policy::allowed_nodes().unwrap_or_else(|_| known.clone());
        let cpus = |state: &str| {
            let list = host.read(&format!("/sys/devices/system/cpu/{state}")).unwrap_or_default();
            CpuSet::parse_list(list.trim()).unwrap_or_default()
        };
        let meminfo = host.read("/proc/meminfo").unwrap_or_default();
        let kilobytes = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
        };
        Ok(Self {
            nodes: known.intersection(&allowed),
            cpus: affinity::get(None).map_err(PlacementError::Machine)?,
            cpus_present: cpus("present"),
            cpus_online: cpus("online"),
            cpus_of: known.iter().map(|node| (node, cpus_of(host, node))).collect(),
            weights: known.iter().filter_map(|node| Some((node, weight(host, node)?))).collect(),
            thp: mode(host, "enabled"),
            shmem_thp: mode(host, "shmem_enabled"),
            thp_bytes: pages::thp_bytes().map(|bytes| bytes as u64),
            pools: pages::hugetlb_bytes()
                .into_iter()
                .map(|bytes| (bytes as u64, free(host, bytes)))
                .collect(),
            pool_bytes: kilobytes("Hugepagesize:").unwrap_or(0) << 10,
            total_bytes: kilobytes("MemTotal:").unwrap_or(0) << 10,
            inherited: policy::thread_policy()
                .ok()
                .flatten()
                .filter(|policy| !matches!(policy, Policy::Default | Policy::Local)),
            known,
        })
    }

    /// Whether everything of a wish that does not depend on the program can be had.
    ///
    /// # Errors
    /// The first wish that cannot.
    pub fn check(&self, wish: &Wish) -> Result<(), PlacementError> {
        self.check_contradictions(wish)?;
        let spreads = [&wish.shared, &wish.heap].into_iter().flatten();
        for nodes in spreads.clone().filter_map(Spread::nodes).chain(&wish.nodes) {
            self.check_nodes(nodes)?;
        }
        if let Some(nodes) = &wish.nodes {
            self.cpus_on(nodes)?;
        }
        wish.cpus.as_ref().map_or(Ok(()), |cpus| self.check_cpus(cpus))?;
        let bound = wish.nodes.clone().map(Spread::Bind);
        spreads
            .chain(&bound)
            .filter(|spread| **spread != Spread::Local)
            .try_for_each(|spread| self.try_policy(spread))?;
        self.check_pages(wish)?;
        check_memlock(wish.memlock_bytes)
    }

    fn check_contradictions(&self, wish: &Wish) -> Result<(), PlacementError> {
        let contradiction = match () {
            () if wish.nodes.is_some() && wish.heap.is_some() => "--node already says where the heap goes",
            () if wish.nodes.is_some() && wish.cpus.is_some() => "--node already says which CPUs",
            () if wish.without_thp && wish.shared_pages == Some(SharedPages::Thp) => {
                "--thp never and --huge shm exclude each other"
            }
            () if wish.without_thp && wish.heap_pages == Some(HeapPages::Thp) => {
                "--thp never and --huge heap exclude each other"
            }
            () if wish.prefault == Prefault::Never
                && wish.shared_pages == Some(SharedPages::Thp)
                && self.shmem_thp == "never" =>
            {
                "shmem_enabled is never, so only prefaulting makes huge pages of shared memory: --no-prefault keeps it"
            }
            () => return Ok(()),
        };
        Err(PlacementError::Contradiction(contradiction))
    }

    fn check_nodes(&self, nodes: &NodeSet) -> Result<(), PlacementError> {
        let missing = nodes.difference(&self.known);
        if !missing.is_empty() {
            return Err(PlacementError::NoNode { missing, known: self.known.clone() });
        }
        let forbidden = nodes.difference(&self.nodes);
        if !forbidden.is_empty() {
            return Err(PlacementError::NodeForbidden { forbidden, allowed: self.nodes.clone() });
        }
        Ok(())
    }

    /// A CPU that is not there is more often a wrong number than one to do without.
    fn check_cpus(&self, wanted: &CpuSet) -> Result<(), PlacementError> {
        let missing = wanted.difference(&self.cpus);
        if missing.is_empty() {
            return Ok(());
        }
        let (present, online) = (&self.cpus_present, &self.cpus_online);
        let is_told = !present.is_empty() && !online.is_empty();
        let absent = if is_told { missing.difference(present) } else { CpuSet::new() };
        let there = missing.difference(&absent);
        let offline = if is_told { there.difference(online) } else { CpuSet::new() };
        let forbidden = there.difference(&offline);
        Err(PlacementError::NoCpu { absent, offline, forbidden, allowed: self.cpus.clone() })
    }

    /// The CPUs of nodes that this process may run on.
    ///
    /// # Errors
    /// There is none.
    pub fn cpus_on(&self, nodes: &NodeSet) -> Result<CpuSet, PlacementError> {
        let of = self.cpus_of.iter().filter(|(node, _)| nodes.contains(*node));
        let cpus = of.fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus)).intersection(&self.cpus);
        if cpus.is_empty() { Err(PlacementError::NoCpuOn { nodes: nodes.clone() }) } else { Ok(cpus) }
    }

    /// Nodes that have both memory and a CPU for this process.
    pub fn nodes_with_cpus(&self) -> NodeSet {
        let alone = |node: u32| [node].into_iter().collect::<NodeSet>();
        self.nodes.iter().filter(|node| self.cpus_on(&alone(*node)).is_ok()).collect()
    }

    /// Sets a policy on a page of our own: what the kernel refuses there it would refuse the program.
    fn try_policy(&self, spread: &Spread) -> Result<(), PlacementError> {
        let refused = |source| PlacementError::Policy { wanted: spread.describe(&self.nodes), source };
        let page = map_anonymous(1, MapOptions::new(PageRequest::Base)).map_err(refused)?;
        page.set_policy(&spread.policy(&self.nodes), Existing::Stay).map_err(refused)
    }

    fn check_pages(&self, wish: &Wish) -> Result<(), PlacementError> {
        match wish.shared_pages {
            Some(SharedPages::Pool(size)) => self.check_pool(size.unwrap_or(self.pool_bytes))?,
            Some(SharedPages::Thp) if self.thp_bytes.is_none() || self.shmem_thp == "deny" => {
                return Err(PlacementError::NoShmemThp { mode: self.shmem_thp.clone() });
            }
            _ => {}
        }
        match wish.heap_pages {
            Some(HeapPages::Pool) => self.check_pool(self.pool_bytes),
            Some(HeapPages::Thp) if self.thp == "never" => {
                Err(PlacementError::NoThp { mode: self.thp.clone() })
            }
            _ => Ok(()),
        }
    }

    fn check_pool(&self, page_bytes: u64) -> Result<(), PlacementError> {
        match self.pools.iter().find(|(size, _)| *size == page_bytes) {
            None => Err(PlacementError::NoPool { page_bytes }),
            Some((_, 0)) => Err(PlacementError::EmptyPool { page_bytes }),
            Some(_) => Ok(()),
        }
    }
}

/// Raising a limit beyond the hard one is root's.
fn check_memlock(wanted: Option<u64>) -> Result<(), PlacementError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let hard = rustix::process::getrlimit(rustix::process::Resource::Memlock).maximum.unwrap_or(u64::MAX);
    let rights = planish_sys::process::rights().ok();
    if wanted <= hard || rights.is_some_and(|rights| rights.resource) {
        return Ok(());
    }
    Err(PlacementError::Memlock { limit: hard, is_root: rights.is_some_and(|rights| rights.user == 0) })
}

fn cpus_of(host: &Host, node: u32) -> CpuSet {
    let list = host.read(&format!("/sys/devices/system/node/node{node}/cpulist")).unwrap_or_default();
    CpuSet::parse_list(list.trim()).unwrap_or_default()
}

fn weight(host: &Host, node: u32) -> Option<u64> {
    let path = format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}");
    host.read(&path).ok()?.trim().parse().ok()
}

/// The word in brackets.
fn mode(host: &Host, file: &str) -> String {
    let text = host.read(&format!("/sys/kernel/mm/transparent_hugepage/{file}")).unwrap_or_default();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(|| "absent".to_owned(), |(word, _)| word.to_owned())
}

fn free(host: &Host, page_bytes: usize) -> u64 {
    let path = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/free_hugepages", page_bytes >> 10);
    host.read(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wish::parse_numa;

    fn machine() -> Machine {
        let cpus = |list: &str| CpuSet::parse_list(list).unwrap();
        Machine {
            nodes: [0, 1].into_iter().collect(),
            known: [0, 1, 2].into_iter().collect(),
            cpus: cpus("0-3"),
            cpus_present: cpus("0-7"),
            cpus_online: cpus("0-5"),
            cpus_of: vec![(0, cpus("0-1")), (1, cpus("2-3")), (2, CpuSet::new())],
            weights: Vec::new(),
            thp: "never".to_owned(),
            shmem_thp: "never".to_owned(),
            thp_bytes: Some(2 << 20),
            pools: vec![(2 << 20, 0), (1 << 30, 3)],
            pool_bytes: 2 << 20,
            total_bytes: 8 << 30,
            inherited: None,
        }
    }

    fn why(wish: Wish) -> String {
        machine().check(&wish).unwrap_err().to_string()
    }

    #[test]
    fn nodes_that_cannot_be_had_are_told_with_those_that_can() {
        let numa = |text: &str| {
            let mut wish = Wish::default();
            parse_numa(text, &mut wish).unwrap();
            why(wish)
        };
        assert_eq!(numa("shm=bind:7"), "node 7 does not exist here or has no memory; there is 0-2");
        let forbidden = "this process may not take memory from node 2, only from 0-1 (its cpuset)";
        assert_eq!(numa("heap=prefer:2"), forbidden);
        let nodes = |list: &str| Wish { nodes: Some(NodeSet::parse_list(list).unwrap()), ..Wish::default() };
        let all = Machine { nodes: [0, 1, 2].into_iter().collect(), ..machine() };
        assert_eq!(all.check(&nodes("2")).unwrap_err().to_string(), "node 2 has no CPU to run on");
        assert_eq!(machine().nodes_with_cpus(), NodeSet::parse_list("0-1").unwrap());
    }

    #[test]
    fn pages_that_nobody_has_are_refused_before_the_start() {
        let shared = |pages| Wish { shared_pages: Some(pages), ..Wish::default() };
        assert_eq!(why(shared(SharedPages::Pool(None))), "the pool of pages of 2 MiB has none that is free");
        assert_eq!(why(shared(SharedPages::Pool(Some(4096)))), "no pool of pages of 4 KiB is here");
        machine().check(&shared(SharedPages::Pool(Some(1 << 30)))).unwrap();
        machine().check(&shared(SharedPages::Thp)).unwrap();
        let heap = Wish { heap_pages: Some(HeapPages::Thp), ..Wish::default() };
        assert_eq!(why(heap), "transparent huge pages are switched off: enabled is never");
        let late = Wish { prefault: Prefault::Never, ..shared(SharedPages::Thp) };
        assert!(why(late).contains("--no-prefault keeps it"));
    }

    #[test]
    fn a_cpu_that_cannot_be_had_is_refused_with_the_reason() {
        let wish = |list| Wish { cpus: Some(CpuSet::parse_list(list).unwrap()), ..Wish::default() };
        assert_eq!(why(wish("0,8-9")), "CPU 8-9 does not exist here; it may run on 0-3");
        let each = "CPU 8 does not exist here, CPU 6-7 is offline, CPU 4-5 is outside of what this process may run on \
                    (its cpuset, or its affinity); it may run on 0-3";
        assert_eq!(why(wish("3-8")), each, "one that could be had makes no typo right");
        let untold = Machine { cpus_present: CpuSet::new(), ..machine() };
        let outside = untold.check(&wish("9")).unwrap_err().to_string();
        assert!(outside.starts_with("CPU 9 is outside of what this process may run on"), "{outside}");
        machine().check(&wish("1,3")).unwrap();
    }
}
