//! Cache-directed sort (CDSort), the order that LLVM's linker uses by default since 18.
//!
//! Starts with a chain for every function and joins, again and again, the two chains whose union gains most, in the
//! better of their two sequences. A union gains by locality of frequency (the chance that a page of its density is
//! cached) and of distance (short calls share a line or a page); small chains go first. Chains are then laid by
//! density. Model and constants are those of `CodeLayout.cpp` in LLVM; `tests/lld.rs` compares the results.
//!
//! Fast, because most unions are never weighed. The address of a function inside its chain is kept, so that a trial
//! costs the calls between two chains and nothing else; and since joining chains only takes calls of their other edges
//! further apart, what an edge gained by distance before bounds what it gains after. Only an edge whose bound could
//! be the best of all is weighed by its calls. The order is that of weighing everything: `reference` holds it to that.

mod calls;
#[cfg(test)]
mod reference;

use planish_sorted::SortSmall as _;

use crate::graph::{Graph, Node};
use crate::heap::{Heap, Key};
use crate::plain::by_density;
use calls::{Calls, List, NONE, Place};

/// Chains of more functions together are not joined.
pub const CHAIN_NODES_MAX: usize = 128;
/// Pages that are taken to be cached.
const CACHE_ENTRIES_LOG2: u32 = 4;
/// Bytes of such a page.
const CACHE_PAGE_BYTES: f64 = 2048.0;
/// How much locality of frequency counts beside that of distance.
const FREQUENCY_SCALE: f64 = 0.25;
/// A gain below this is none.
const EPSILON: f64 = 1e-8;
/// Above what rounding can add to a sum of up to 2^32 terms, as a share of what they weigh: each is at most
/// 1.8 times its weight, and each sum is off by at most 2^-53 of all of them.
const ROUNDING: f64 = 1e-5;

struct Chain {
    nodes: Vec<u32>,
    /// Edges to other chains; those that ended stay in the list until it is next used.
    links: Vec<Link>,
    /// Where in the list the best stands of the edges that it owned when they were last compared.
    best: usize,
}

/// An edge as one of its chains knows it. The gains of a chain stand side by side, so that few edges are looked at.
#[derive(Clone, Copy)]
struct Link {
    edge: u32,
    /// What the better union gains, or more until the edge is weighed; nothing where another chain answers for it.
    gain: f64,
}

/// What the gain of a union takes of a chain, apart from it: it is asked for every edge, and the rest is not.
#[derive(Clone, Copy)]
struct Size {
    bytes: u64,
    weight: u64,
    nodes: usize,
    /// Misses of its pages, see [`Sorter::misses`].
    misses: f64,
}

/// All calls between two chains.
struct Edge {
    ends: (u32, u32),
    /// What the calls gain by being near in the better union; or more until it is weighed.
    distance: f64,
    /// The end from which it was last looked at: only that chain answers for it.
    owner: u32,
    /// Whether the first chain comes first in the better union.
    is_forward: bool,
    is_weighed: bool,
    /// Joined, joined into another, or between chains that are too long for good.
    is_dead: bool,
}

impl Edge {
    fn answers_to(&self, chain: u32) -> bool {
        self.owner == chain && !self.is_dead
    }

    fn other_end(&self, end: u32) -> u32 {
        if self.ends.0 == end { self.ends.1 } else { self.ends.0 }
    }
}

struct Sorter {
    chains: Vec<Chain>,
    sizes: Vec<Size>,
    edges: Vec<Edge>,
    /// The calls of each edge, apart from it since they are asked for seldom, and what they weigh together.
    lists: Vec<(List, f64)>,
    calls: Calls,
    /// Where each function is.
    places: Vec<Place>,
    weight_total: f64,
}

/// The CDSort order of a graph.
#[must_use]
pub fn cdsort(graph: &Graph) -> Vec<u32> {
    let mut sorter = Sorter::new(graph);
    sorter.join_chains();
    let density = |chain: u32| {
        let size = sorter.sizes[chain as usize];
        size.weight as f64 / size.bytes as f64
    };
    let mut chains: Vec<u32> =
        graph.indices().filter(|chain| !sorter.chains[*chain as usize].nodes.is_empty()).collect();
    chains.sort_small_by(|left, right| density(*right).total_cmp(&density(*left)));
    chains.into_iter().flat_map(|chain| sorter.chains[chain as usize].nodes.iter().copied()).collect()
}

/// The order that LLVM's linker makes of a call graph alone (`--call-graph-ordering-file`): a function weighs what
/// calls it, whatever was sampled in it. Samples say where time goes, and calls what is fetched next; in a profile of
/// every fetch the two disagree about what is hot. Functions without a call, which that linker leaves where they
/// are, come last, the densest first.
#[must_use]
pub fn cdsort_calls(graph: &Graph) -> Vec<u32> {
    let (calls_in, calls_out) = calls(graph);
    let node = |(node, weight): (&Node, &u64)| Node { weight: *weight, ..*node };
    let nodes = graph.nodes().iter().zip(&calls_in).map(node).collect();
    let by_calls = Graph::new(nodes, graph.arcs().to_vec()).expect("its ends are those of a graph");
    let has_calls = |index: &u32| calls_in[*index as usize] > 0 || calls_out[*index as usize] > 0;
    let mut order = cdsort(&by_calls);
    order.retain(has_calls);
    order.extend(by_density(graph).into_iter().filter(|index| !has_calls(index)));
    order
}

impl Sorter {
    fn new(graph: &Graph) -> Self {
        let hot = graph.nodes().iter().filter(|node| node.weight > 0);
        let bytes_total: u64 = hot.map(|node| node.bytes).fold(0, u64::saturating_add);
        let mut sorter = Self {
            chains: Vec::with_capacity(graph.nodes().len()),
            sizes: Vec::with_capacity(graph.nodes().len()),
            edges: Vec::with_capacity(graph.arcs().len()),
            lists: Vec::with_capacity(graph.arcs().len()),
            calls: Calls::new(graph, bytes_total),
            places: graph.indices().map(|chain| Place { chain, address: 0 }).collect(),
            weight_total: graph.nodes().iter().map(|node| node.weight as f64).sum(),
        };
        for (index, weight) in graph.indices().zip(weights(graph)) {
            let bytes = graph.node(index).bytes;
            sorter.chains.push(Chain { nodes: vec![index], links: Vec::new(), best: 0 });
            sorter.sizes.push(Size { bytes, weight, nodes: 1, misses: sorter.misses(weight, bytes) });
        }
        let (edges, lists) = (&mut sorter.edges, &mut sorter.lists);
        let mut degrees = vec![0; sorter.chains.len()];
        sorter.calls.join_pairs(|ends, calls, weight| {
            let (is_forward, is_weighed, is_dead) = (true, false, false);
            edges.push(Edge { ends, distance: 0.0, owner: ends.0, is_forward, is_weighed, is_dead });
            lists.push((calls, weight));
            degrees[ends.0 as usize] += 1;
            degrees[ends.1 as usize] += 1;
        });
        sorter.chains.iter_mut().zip(degrees).for_each(|(chain, degree)| chain.links.reserve_exact(degree));
        for edge in 0..u32::try_from(sorter.edges.len()).expect("no more edges than calls") {
            let (gain, (owner, other)) = (sorter.weigh(edge), sorter.edges[edge as usize].ends);
            sorter.chains[owner as usize].links.push(Link { edge, gain });
            sorter.chains[other as usize].links.push(Link { edge, gain: 0.0 });
        }
        sorter
    }

    /// Joins the best pair of chains until none gains.
    ///
    /// The heap holds one entry a chain, the best of the edges that it owns, so that looking at an edge anew touches
    /// no heap. An entry may promise too much, where its edge was not weighed, or after another chain took an edge
    /// over or ended it, and never too little: what comes out first is compared anew unless it still holds.
    fn join_chains(&mut self) {
        let mut heap = Heap::new(self.chains.len());
        for chain in 0..u32::try_from(self.chains.len()).expect("checked by Graph::new") {
            self.compare(chain, &mut heap);
        }
        // The edge to each other chain from the one that is being joined.
        let mut marks = vec![NONE; self.chains.len()];
        while let Some((chain, best)) = heap.first() {
            let edge = &self.edges[best as usize];
            if !edge.answers_to(chain) || !edge.is_weighed {
                self.compare(chain, &mut heap);
                continue;
            }
            heap.remove(edge.ends.1);
            let into = self.join_nodes(best);
            self.join_edges(into, best, &mut marks);
            self.bound(into, &mut marks, &mut heap);
        }
    }

    /// Enters what promises most of the edges that a chain owns, once what promised most before is weighed.
    fn compare(&mut self, chain: u32, heap: &mut Heap) {
        let Chain { links, best, .. } = &mut self.chains[chain as usize];
        let mut links = std::mem::take(links);
        if let Some(link) = links.get_mut(*best) {
            let edge = &self.edges[link.edge as usize];
            if edge.answers_to(chain) && !edge.is_weighed {
                let promised = std::mem::replace(&mut link.gain, self.weigh(link.edge));
                debug_assert!(link.gain <= promised, "{} of {promised}", link.gain);
            }
        }
        let mut best: Option<(Key, usize)> = None;
        let mut least = EPSILON;
        for (at, link) in links.iter_mut().enumerate() {
            if link.gain < least {
                continue;
            }
            let edge = &self.edges[link.edge as usize];
            if !edge.answers_to(chain) {
                link.gain = 0.0;
                continue;
            }
            let key = Key { gain: link.gain, ends: edge.ends };
            if key.gain > EPSILON && best.is_none_or(|(best, _)| key.is_above(&best)) {
                (best, least) = (Some((key, at)), key.gain);
            }
        }
        self.chains[chain as usize].links = links;
        self.enter(chain, best, heap);
    }

    fn enter(&mut self, chain: u32, best: Option<(Key, usize)>, heap: &mut Heap) {
        match best {
            Some((key, at)) => {
                let Chain { links, best, .. } = &mut self.chains[chain as usize];
                *best = at;
                heap.set(chain, key, links[at].edge);
            }
            None => heap.remove(chain),
        }
    }

    /// Joins the nodes of an edge's two chains into its first chain.
    fn join_nodes(&mut self, edge: u32) -> u32 {
        let Edge { ends: (into, from), is_forward, .. } = self.edges[edge as usize];
        let (size, from_size) = (self.sizes[into as usize], self.sizes[from as usize]);
        let mut behind = std::mem::take(&mut self.chains[from as usize].nodes);
        for node in &behind {
            self.places[*node as usize].chain = into;
        }
        let nodes = &mut self.chains[into as usize].nodes;
        if !is_forward {
            std::mem::swap(nodes, &mut behind);
        }
        let shift = if is_forward { size.bytes } else { from_size.bytes };
        for node in &behind {
            self.places[*node as usize].address += shift;
        }
        nodes.extend(behind);
        let bytes = size.bytes.saturating_add(from_size.bytes);
        let weight = size.weight.saturating_add(from_size.weight);
        self.sizes[into as usize] =
            Size { bytes, weight, nodes: size.nodes + from_size.nodes, misses: self.misses(weight, bytes) };
        into
    }

    /// Gives the edges of the chain that is gone to the one that took it in.
    fn join_edges(&mut self, into: u32, joined: u32, marks: &mut [u32]) {
        let from = self.edges[joined as usize].ends.1;
        self.edges[joined as usize].is_dead = true;
        let mut links = std::mem::take(&mut self.chains[into as usize].links);
        let mut moved = std::mem::take(&mut self.chains[from as usize].links);
        links.retain(|link| {
            let edge = &self.edges[link.edge as usize];
            if !edge.is_dead {
                marks[edge.other_end(into) as usize] = link.edge;
            }
            !edge.is_dead
        });
        moved.retain(|link| {
            let edge = &mut self.edges[link.edge as usize];
            if edge.is_dead {
                return false;
            }
            let other = edge.other_end(from);
            edge.ends = if edge.ends.0 == from { (into, other) } else { (other, into) };
            let same = marks[other as usize];
            if same == NONE {
                return true;
            }
            edge.is_dead = true;
            let (distance, (behind, weight)) = (edge.distance, self.lists[link.edge as usize]);
            let list = &mut self.lists[same as usize];
            *list = (self.calls.join(list.0, behind), list.1 + weight);
            self.edges[same as usize].distance += distance + list.1 * ROUNDING;
            false
        });
        // The fewer behind the more: so most lists have room.
        if links.len() < moved.len() {
            std::mem::swap(&mut links, &mut moved);
        }
        links.extend(moved);
        self.chains[into as usize].links = links;
    }

    /// Enters the edge of a chain just joined that promises most, without a look at any call: a union only takes
    /// them further apart than they were, so they gain no more than they did.
    fn bound(&mut self, chain: u32, marks: &mut [u32], heap: &mut Heap) {
        let mut best: Option<(Key, usize)> = None;
        let mut links = std::mem::take(&mut self.chains[chain as usize].links);
        let size = self.sizes[chain as usize];
        let mut at = 0;
        links.retain_mut(|link| {
            let edge = &self.edges[link.edge as usize];
            let other = edge.other_end(chain);
            marks[other as usize] = NONE;
            let other = &self.sizes[other as usize];
            let is_short = size.nodes + other.nodes <= CHAIN_NODES_MAX;
            if is_short {
                link.gain = self.gain(&size, other, edge.distance);
                let key = Key { gain: link.gain, ends: edge.ends };
                if key.gain > EPSILON && best.is_none_or(|(best, _)| key.is_above(&best)) {
                    best = Some((key, at));
                }
                at += 1;
            }
            let edge = &mut self.edges[link.edge as usize];
            (edge.owner, edge.is_weighed, edge.is_dead) = (chain, false, !is_short);
            is_short
        });
        self.chains[chain as usize].links = links;
        self.enter(chain, best, heap);
    }

    /// Computes what joining an edge's chains gains.
    fn weigh(&mut self, index: u32) -> f64 {
        let edge = &self.edges[index as usize];
        let (left, right) = (&self.sizes[edge.ends.0 as usize], &self.sizes[edge.ends.1 as usize]);
        let distance = self.calls.gains(
            self.lists[index as usize].0,
            &self.places,
            edge.ends,
            (left.bytes, right.bytes),
        );
        let [forward, backward] = distance.map(|gain| self.gain(left, right, gain));
        // Of equals the sequence that the functions have now.
        let is_tie = (forward - backward).abs() < EPSILON;
        let is_forward = if is_tie { edge.ends.0 < edge.ends.1 } else { forward > backward };
        let edge = &mut self.edges[index as usize];
        (edge.is_forward, edge.is_weighed) = (is_forward, true);
        edge.distance = distance[0].max(distance[1]);
        if is_forward { forward } else { backward }
    }

    /// What the union of two chains gains whose calls gain `distance` by being near.
    fn gain(&self, left: &Size, right: &Size, distance: f64) -> f64 {
        let (weight, bytes) =
            (left.weight.saturating_add(right.weight), left.bytes.saturating_add(right.bytes));
        let frequency = left.misses + right.misses - self.misses(weight, bytes);
        let gain = FREQUENCY_SCALE * frequency + distance;
        // Small chains go first; a loss is not made smaller by that.
        if gain >= 0.0 { gain / left.bytes.min(right.bytes) as f64 } else { gain }
    }

    /// How many calls of code of this density miss the pages that are cached.
    fn misses(&self, weight: u64, bytes: u64) -> f64 {
        let page = weight as f64 / bytes as f64 * CACHE_PAGE_BYTES;
        if page >= self.weight_total {
            return 0.0;
        }
        let mut miss = 1.0 - page / self.weight_total;
        for _ in 0..CACHE_ENTRIES_LOG2 {
            miss *= miss;
        }
        weight as f64 * miss
    }
}

/// What each function weighs: it runs at least as often as it calls and is called.
fn weights(graph: &Graph) -> impl Iterator<Item = u64> {
    let (calls_in, calls_out) = calls(graph);
    let ends = calls_in.into_iter().zip(calls_out);
    graph
        .nodes()
        .iter()
        .zip(ends)
        .map(|(node, (calls_in, calls_out))| node.weight.max(calls_in).max(calls_out))
}

/// Calls into each function and out of it, but for those of itself.
fn calls(graph: &Graph) -> (Vec<u64>, Vec<u64>) {
    let (mut calls_in, mut calls_out) = (vec![0_u64; graph.nodes().len()], vec![0_u64; graph.nodes().len()]);
    for arc in graph.arcs().iter().filter(|arc| arc.from != arc.to && arc.weight > 0) {
        for (sum, end) in [(&mut calls_in, arc.to), (&mut calls_out, arc.from)] {
            let sum = &mut sum[end as usize];
            *sum = sum.saturating_add(arc.weight);
        }
    }
    (calls_in, calls_out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::{Arc, any_graph};

    #[test]
    fn a_chain_of_calls_stays_in_its_sequence() {
        let nodes = vec![Node { bytes: 64, weight: 10 }; 4];
        let arcs = [(2, 0), (0, 3)].map(|(from, to)| Arc { from, to, weight: 10, offset: 32 });
        let order = cdsort(&Graph::new(nodes, arcs.to_vec()).unwrap());
        let place = |node: u32| order.iter().position(|index| *index == node).unwrap();
        assert!(place(2) + 1 == place(0) && place(0) + 1 == place(3), "{order:?}");
    }

    /// As a graph, but with sizes and weights of which many are the same, so that unions tie.
    fn coarse(graph: &Graph) -> Graph {
        let node = |node: &Node| Node { bytes: 16 * (1 + node.bytes % 2), weight: node.weight % 2 };
        let arc = |arc: &Arc| Arc { weight: arc.weight % 3, offset: 8, ..*arc };
        let nodes = graph.nodes().iter().map(node).collect();
        Graph::new(nodes, graph.arcs().iter().map(arc).collect()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_it_saves_changes_no_order(graph in any_graph(180, 4096)) {
            prop_assert_eq!(cdsort(&graph), reference::cdsort(&graph));
            let graph = coarse(&graph);
            prop_assert_eq!(cdsort(&graph), reference::cdsort(&graph));
        }
    }

    #[test]
    fn by_calls_alone_samples_do_not_count() {
        // Two pairs: samples are in the first, calls in the second; and one that was sampled and never called.
        let weights = [1000, 1000, 1, 1, 500];
        let nodes = weights.map(|weight| Node { bytes: 64, weight }).to_vec();
        let arcs =
            [(0, 1, 10), (2, 3, 100)].map(|(from, to, weight)| Arc { from, to, weight, offset: 32 }).to_vec();
        let graph = Graph::new(nodes, arcs).unwrap();
        assert_eq!((cdsort(&graph), cdsort_calls(&graph)), (vec![0, 1, 4, 2, 3], vec![2, 3, 0, 1, 4]));
    }

    proptest! {
        #[test]
        fn it_orders_every_function_once_in_chains_of_bounded_length(graph in any_graph(200, 4096)) {
            let mut sorter = Sorter::new(&graph);
            sorter.join_chains();
            for chain in &sorter.chains {
                prop_assert!(chain.nodes.len() <= CHAIN_NODES_MAX);
                // The addresses that were kept are those of the chain as it stands.
                let mut next = 0;
                for node in &chain.nodes {
                    prop_assert_eq!(sorter.places[*node as usize].address, next);
                    next += graph.node(*node).bytes;
                }
            }
            for make in [cdsort, cdsort_calls] {
                let mut order = make(&graph);
                prop_assert_eq!(&order, &make(&graph));
                order.sort_unstable();
                prop_assert_eq!(order, graph.indices().collect::<Vec<_>>());
            }
        }
    }
}
