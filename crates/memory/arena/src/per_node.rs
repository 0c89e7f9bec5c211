//! An arena on each node.

use planish_sys::affinity;

use crate::arena::Arena;
use crate::builder::{Builder, Fallback, NodeChoice};
use crate::error::ArenaError;
use crate::facts::{self, NodesOffered};

/// Arenas, one on each node that this process may have memory from. Made by [`Builder::per_node`].
///
/// ```text
///  CPUs 0-7        CPUs 8-15       no CPU             CPUs 16-23
///  node 0          node 1          node 2             node 3, without memory
///  arena           arena           arena              the nearest of the others
/// ```
///
/// A kernel without NUMA has one, of node 0.
#[derive(Debug)]
pub struct PerNode {
    /// By number of the node; never empty.
    arenas: Vec<(u32, Arena)>,
    /// For nodes of CPUs without memory that may be used: the arena that is nearest, by node.
    nearest: Vec<(u32, usize)>,
}

impl PerNode {
    pub(crate) fn with(asked: &Builder) -> Result<Self, ArenaError> {
        let nodes = usable(&facts::nodes_offered());
        let on = |node: u32| {
            let choice = match asked.fallback {
                _ if nodes.is_none() => NodeChoice::Inherit,
                Fallback::Allow => NodeChoice::prefer(node),
                Fallback::Refuse => NodeChoice::only(node),
            };
            let arena = asked.clone().node(choice).build();
            arena
                .map(|arena| (node, arena))
                .map_err(|source| ArenaError::OnNode { node, source: source.into() })
        };
        let arenas =
            nodes.clone().unwrap_or_else(|| vec![0]).into_iter().map(on).collect::<Result<_, _>>()?;
        let mut per_node = Self { arenas, nearest: Vec::new() };
        per_node.nearest = per_node.find_nearest();
        Ok(per_node)
    }

    /// The arena of the node where the calling thread runs now, or the nearest one where that node has no memory for
    /// this process. It asks the kernel (getcpu), so that a thread that is pinned keeps what it got.
    pub fn here(&self) -> &Arena {
        // A kernel that does not tell has one node.
        let node = affinity::here().map_or(0, |here| here.node);
        let index = self
            .index_of(node)
            .or_else(|| self.nearest.iter().find(|(without, _)| *without == node).map(|(_, index)| *index));
        &self.arenas[index.unwrap_or(0)].1
    }

    /// The arena of a node; `None` where this process has no memory from it.
    pub fn on(&self, node: u32) -> Option<&Arena> {
        self.index_of(node).map(|index| &self.arenas[index].1)
    }

    /// All of them with their nodes, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &Arena)> {
        self.arenas.iter().map(|(node, arena)| (*node, arena))
    }

    /// The arenas themselves with their nodes, by number: for owners that keep them apart.
    pub fn into_arenas(self) -> Vec<(u32, Arena)> {
        self.arenas
    }

    fn index_of(&self, node: u32) -> Option<usize> {
        self.arenas.binary_search_by_key(&node, |(node, _)| *node).ok()
    }

    /// For each node without an arena the nearest that has one; the first of several that are as near.
    fn find_nearest(&self) -> Vec<(u32, usize)> {
        let first = self.arenas.first().map_or(0, |(node, _)| *node);
        let all = facts::distances(first).into_iter().map(|(node, _)| node);
        let without: Vec<u32> = all.filter(|node| self.index_of(*node).is_none()).collect();
        let nearest = |node: u32| nearest(&facts::distances(node), |node| self.index_of(node));
        without.into_iter().filter_map(|node| Some((node, nearest(node)?))).collect()
    }
}

/// The index of the nearest node that has one, by (node, distance).
fn nearest(distances: &[(u32, u32)], index_of: impl Fn(u32) -> Option<usize>) -> Option<usize> {
    let has = distances.iter().filter_map(|(node, far)| Some((*far, index_of(*node)?)));
    has.min().map(|(_, index)| index)
}

/// The nodes with memory for this process, by number; `None` where the kernel has none.
fn usable(offered: &NodesOffered) -> Option<Vec<u32>> {
    let nodes = match (&offered.there, &offered.allowed) {
        (Some(there), Some(allowed)) => there.intersection(allowed),
        (Some(there), None) => there.clone(),
        // Without the folder of nodes there is one, whatever the list of the process says.
        (None, _) => return None,
    };
    Some(nodes.iter().collect()).filter(|nodes: &Vec<u32>| !nodes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use planish_sys::NodeSet;

    #[test]
    fn nodes_are_those_with_memory_in_the_cpuset() {
        let set = |list: &str| NodeSet::parse_list(list).ok();
        let usable = |there, allowed| usable(&NodesOffered { there, allowed });
        assert_eq!(usable(set("0-3"), set("1,3-9")), Some(vec![1, 3]));
        assert_eq!(usable(set("0-1"), None), Some(vec![0, 1]));
        assert_eq!(usable(None, set("0-63")), None);
        assert_eq!(
            usable(set("0"), set("1")),
            None,
            "the kernel contradicts itself: any memory is better than none"
        );
    }

    #[test]
    fn a_cpu_without_memory_has_the_nearest() {
        let index_of = |node: u32| [0, 2, 5].iter().position(|has| *has == node);
        assert_eq!(nearest(&[(0, 21), (1, 10), (2, 12), (5, 12)], index_of), Some(1), "the first of two");
        assert_eq!(nearest(&[(0, 21), (1, 10), (2, 30), (5, 17)], index_of), Some(2));
        assert_eq!(nearest(&[(1, 10)], index_of), None);
        assert_eq!(nearest(&[], index_of), None);
    }
}
