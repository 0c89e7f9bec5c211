//! Call-chain clustering (C3): Ottoni and Maher, "Optimizing Function Placement for Large-Scale Data-Center
//! Applications", CGO 2017.
//!
//! From the densest function on, each cluster is appended to the one of its likeliest caller, so that callers stand
//! right before their callees; then clusters are laid by density. Limits and thresholds are those of lld's
//! `hfsort`, which `tests/lld.rs` compares with.

use planish_sorted::SortSmall as _;

use crate::graph::Graph;
use crate::plain::density;

/// Clusters do not grow beyond this: a call across more than it gains nothing from being near.
pub const C3_CLUSTER_BYTES_MAX: u64 = 1 << 20;
/// A callee is not appended where that would thin out its caller's cluster to less than one in this.
const DENSITY_LOSS_MAX: f64 = 8.0;
/// The likeliest caller must make more than one in so many of the calls.
const CALLS_SHARE_MIN: u64 = 10;

/// A cluster, kept under its leading function; the list of members is a ring.
struct Cluster {
    bytes: u64,
    weight: u64,
    next: u32,
    last: u32,
}

impl Cluster {
    fn density(&self) -> f64 {
        self.weight as f64 / self.bytes as f64
    }
}

/// The C3 order of a graph.
#[must_use]
pub fn c3(graph: &Graph) -> Vec<u32> {
    clusters(graph).into_iter().flatten().collect()
}

/// The clusters, the densest first.
fn clusters(graph: &Graph) -> Vec<Vec<u32>> {
    let (callers, called) = likeliest_callers(graph);
    let mut clusters: Vec<Cluster> = graph
        .indices()
        .map(|index| {
            let node = graph.node(index);
            Cluster { bytes: node.bytes, weight: node.weight, next: index, last: index }
        })
        .collect();
    let mut leaders: Vec<u32> = graph.indices().collect();
    let mut sorted: Vec<u32> = graph.indices().collect();
    sorted.sort_small_by(|left, right| density(graph.node(*right)).total_cmp(&density(graph.node(*left))));
    for &callee in &sorted {
        let Some((caller, weight)) = callers[callee as usize] else { continue };
        if weight.saturating_mul(CALLS_SHARE_MIN) <= called[callee as usize] {
            continue;
        }
        let leader = find(&mut leaders, caller);
        if leader == callee {
            continue;
        }
        let (into, from) = (&clusters[leader as usize], &clusters[callee as usize]);
        let bytes = into.bytes.saturating_add(from.bytes);
        let weight = into.weight.saturating_add(from.weight);
        let thinned = (weight as f64 / bytes as f64) < into.density() / DENSITY_LOSS_MAX;
        if bytes > C3_CLUSTER_BYTES_MAX || thinned {
            continue;
        }
        leaders[callee as usize] = leader;
        let (into_last, from_last) = (into.last, from.last);
        clusters[into_last as usize].next = callee;
        clusters[from_last as usize].next = leader;
        clusters[leader as usize] = Cluster { bytes, weight, last: from_last, ..clusters[leader as usize] };
    }
    let mut heads: Vec<u32> = graph.indices().filter(|index| leaders[*index as usize] == *index).collect();
    heads.sort_small_by(|left, right| {
        clusters[*right as usize].density().total_cmp(&clusters[*left as usize].density())
    });
    let members = |head: u32| {
        let next = |at: &u32| Some(clusters[*at as usize].next).filter(|next| *next != head);
        std::iter::successors(Some(head), next).collect()
    };
    heads.into_iter().map(members).collect()
}

/// For each function its likeliest caller, and the weight of all calls of it.
fn likeliest_callers(graph: &Graph) -> (Vec<Option<(u32, u64)>>, Vec<u64>) {
    let mut callers = vec![None; graph.nodes().len()];
    let mut called = vec![0_u64; graph.nodes().len()];
    for arc in graph.arcs() {
        let total = &mut called[arc.to as usize];
        *total = total.saturating_add(arc.weight);
        let best: &mut Option<(u32, u64)> = &mut callers[arc.to as usize];
        if arc.from != arc.to && best.is_none_or(|(_, weight)| weight < arc.weight) {
            *best = Some((arc.from, arc.weight));
        }
    }
    (callers, called)
}

/// The leader of a function's cluster, shortening the path on the way.
fn find(leaders: &mut [u32], mut index: u32) -> u32 {
    while leaders[index as usize] != index {
        let above = leaders[leaders[index as usize] as usize];
        leaders[index as usize] = above;
        index = above;
    }
    index
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::{Arc, Node};

    fn graph(nodes: &[(u64, u64)], arcs: &[(u32, u32, u64)]) -> Graph {
        let nodes = nodes.iter().map(|(bytes, weight)| Node { bytes: *bytes, weight: *weight }).collect();
        let arcs =
            arcs.iter().map(|(from, to, weight)| Arc { from: *from, to: *to, weight: *weight, offset: 0 });
        Graph::new(nodes, arcs.collect()).unwrap()
    }

    #[test]
    fn a_callee_follows_its_likeliest_caller() {
        let graph = graph(&[(64, 100), (64, 10), (64, 90), (64, 80)], &[(0, 3, 80), (1, 3, 5), (0, 2, 10)]);
        assert_eq!(c3(&graph), [0, 2, 3, 1]);
    }

    #[test]
    fn clusters_keep_their_limit_and_their_density() {
        let half = C3_CLUSTER_BYTES_MAX / 2 + 1;
        assert_eq!(c3(&graph(&[(half, 9), (half, 90)], &[(0, 1, 90)])), [1, 0], "too large together");
        // Appending a large cold callee would thin out its hot caller.
        assert_eq!(c3(&graph(&[(64, 1000), (6400, 1), (64, 900)], &[(0, 1, 1)])), [0, 2, 1]);
    }

    proptest! {
        #[test]
        fn clusters_hold_every_function_once_and_keep_their_size(graph in crate::graph::any_graph(100, 1 << 18)) {
            let clusters = clusters(&graph);
            for cluster in clusters.iter().filter(|cluster| cluster.len() > 1) {
                let bytes: u64 = cluster.iter().map(|index| graph.node(*index).bytes).sum();
                prop_assert!(bytes <= C3_CLUSTER_BYTES_MAX);
            }
            let mut all: Vec<u32> = clusters.into_iter().flatten().collect();
            all.sort_unstable();
            prop_assert_eq!(all, graph.indices().collect::<Vec<_>>());
        }
    }
}
