//! Cache-directed sort (CDSort), the order that LLVM's linker uses by default since 18.
//!
//! Starts with a chain for every function and joins, again and again, the two chains whose union gains most, in the
//! better of their two sequences. A union gains by locality of frequency (the chance that a page of its density is
//! cached) and of distance (short calls share a line or a page); small chains go first. Chains are then laid by
//! density. Model and constants are those of `CodeLayout.cpp` in LLVM; `tests/lld.rs` compares the results.
//!
//! Fast, because the address of a function inside its chain is kept and not laid out anew for each union that is
//! only tried: a trial costs the calls between two chains and nothing else. Calls between the same chains are a
//! linked list, so that joining two lists costs nothing.

use planish_sorted::SortSmall as _;

use crate::graph::Graph;
use crate::heap::{Heap, Key};

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
const NONE: u32 = u32::MAX;

struct Chain {
    nodes: Vec<u32>,
    bytes: u64,
    weight: u64,
    /// Edges to other chains; those that were joined into another stay in the list until it is next used.
    edges: Vec<u32>,
    /// The best of the edges that it owned when they were last compared.
    best: u32,
}

/// All calls between two chains.
struct Edge {
    ends: (u32, u32),
    first: u32,
    last: u32,
    is_dead: bool,
    /// Whether the first chain comes first in the better union.
    is_forward: bool,
    /// What that union gains; nothing above [`EPSILON`] where the two must not be joined.
    gain: f64,
    /// The end from which it was last weighed: only that chain answers for it.
    owner: u32,
}

impl Edge {
    fn key(&self) -> Key {
        Key { gain: self.gain, ends: self.ends }
    }
}

/// Calls from one function to another.
struct Jump {
    from: u32,
    to: u32,
    weight: u64,
    offset: u64,
    next: u32,
}

struct Sorter {
    chains: Vec<Chain>,
    edges: Vec<Edge>,
    jumps: Vec<Jump>,
    /// Chain of each function, and its address in that chain.
    places: Vec<(u32, u64)>,
    weight_total: f64,
    /// What a call weighs that spans all of the code.
    far: f64,
}

/// The CDSort order of a graph.
#[must_use]
pub fn cdsort(graph: &Graph) -> Vec<u32> {
    let mut sorter = Sorter::new(graph);
    sorter.join_chains();
    let mut chains: Vec<&Chain> = sorter.chains.iter().filter(|chain| !chain.nodes.is_empty()).collect();
    let density = |chain: &Chain| chain.weight as f64 / chain.bytes as f64;
    chains.sort_small_by(|left, right| density(right).total_cmp(&density(left)));
    chains.into_iter().flat_map(|chain| chain.nodes.iter().copied()).collect()
}

impl Sorter {
    fn new(graph: &Graph) -> Self {
        let weight_total: f64 = graph.nodes().iter().map(|node| node.weight as f64).sum();
        let hot = graph.nodes().iter().filter(|node| node.weight > 0);
        let bytes_total: u64 = hot.map(|node| node.bytes).fold(0, u64::saturating_add);
        let (mut calls_in, mut calls_out) =
            (vec![0_u64; graph.nodes().len()], vec![0_u64; graph.nodes().len()]);
        let mut jumps: Vec<Jump> = Vec::with_capacity(graph.arcs().len());
        for arc in graph.arcs().iter().filter(|arc| arc.from != arc.to && arc.weight > 0) {
            for (sum, end) in [(&mut calls_in, arc.to), (&mut calls_out, arc.from)] {
                let sum = &mut sum[end as usize];
                *sum = sum.saturating_add(arc.weight);
            }
            jumps.push(Jump {
                from: arc.from,
                to: arc.to,
                weight: arc.weight,
                offset: arc.offset,
                next: NONE,
            });
        }
        // A function runs at least as often as it calls and is called.
        let chain = |index: u32| {
            let node = graph.node(index);
            let weight = node.weight.max(calls_in[index as usize]).max(calls_out[index as usize]);
            Chain { nodes: vec![index], bytes: node.bytes, weight, edges: Vec::new(), best: NONE }
        };
        let mut sorter = Self {
            chains: graph.indices().map(chain).collect(),
            edges: Vec::new(),
            jumps,
            places: graph.indices().map(|index| (index, 0)).collect(),
            weight_total,
            far: near(bytes_total),
        };
        sorter.add_edges();
        sorter
    }

    /// Joins the calls between each two functions, in both directions, into one edge.
    fn add_edges(&mut self) {
        let mut order: Vec<u32> =
            (0..u32::try_from(self.jumps.len()).expect("checked by Graph::new")).collect();
        // Calls from the lower function stand first: the edge starts where its first call does.
        order.sort_by_key(|index| {
            let jump = &self.jumps[*index as usize];
            (jump.from.min(jump.to), jump.from.max(jump.to), jump.from > jump.to)
        });
        for index in order {
            let (from, to) = (self.jumps[index as usize].from, self.jumps[index as usize].to);
            match self.edges.last_mut() {
                Some(edge) if edge.ends == (from, to) || edge.ends == (to, from) => {
                    self.jumps[edge.last as usize].next = index;
                    edge.last = index;
                }
                _ => {
                    let edge = u32::try_from(self.edges.len()).expect("no more edges than calls");
                    let (ends, first, last) = ((from, to), index, index);
                    let (is_dead, is_forward, gain, owner) = (false, true, 0.0, from);
                    self.edges.push(Edge { ends, first, last, is_dead, is_forward, gain, owner });
                    self.chains[from as usize].edges.push(edge);
                    self.chains[to as usize].edges.push(edge);
                }
            }
        }
    }

    /// Joins the best pair of chains until none gains.
    ///
    /// The heap holds one entry a chain, the best of the edges that it owns, so that weighing an edge anew touches no
    /// heap. An entry may promise too much, after another chain took an edge over or ended it, and never too little:
    /// what comes out first is compared anew unless it still holds.
    fn join_chains(&mut self) {
        let mut heap = Heap::new(self.chains.len());
        for edge in 0..self.edges.len() {
            self.weigh(edge);
        }
        for chain in 0..u32::try_from(self.chains.len()).expect("checked by Graph::new") {
            self.compare(chain, &mut heap);
        }
        // The edge to each chain from the one that is being joined.
        let mut marks = vec![NONE; self.chains.len()];
        while let Some((chain, key)) = heap.pop() {
            let best = self.chains[chain as usize].best;
            let edge = &self.edges[best as usize];
            if edge.is_dead || edge.owner != chain || edge.key() != key {
                self.compare(chain, &mut heap);
                continue;
            }
            heap.remove(edge.ends.0);
            heap.remove(edge.ends.1);
            let into = self.join_nodes(best);
            self.join_edges(into, best, &mut marks);
            let nodes = self.chains[into as usize].nodes.len();
            let edges = std::mem::take(&mut self.chains[into as usize].edges);
            for &index in &edges {
                let edge = &mut self.edges[index as usize];
                edge.owner = into;
                let other = if edge.ends.0 == into { edge.ends.1 } else { edge.ends.0 };
                if nodes + self.chains[other as usize].nodes.len() > CHAIN_NODES_MAX {
                    edge.gain = 0.0;
                } else {
                    self.weigh(index as usize);
                }
            }
            self.chains[into as usize].edges = edges;
            self.compare(into, &mut heap);
        }
    }

    /// Enters the best edge that a chain owns.
    fn compare(&mut self, chain: u32, heap: &mut Heap) {
        let mut best: Option<(Key, u32)> = None;
        for &index in &self.chains[chain as usize].edges {
            let edge = &self.edges[index as usize];
            let counts = !edge.is_dead && edge.owner == chain && edge.gain > EPSILON;
            if counts && best.is_none_or(|(key, _)| edge.key().is_above(&key)) {
                best = Some((edge.key(), index));
            }
        }
        match best {
            Some((key, index)) => {
                self.chains[chain as usize].best = index;
                heap.set(chain, key);
            }
            None => heap.remove(chain),
        }
    }

    /// Joins the nodes of an edge's two chains into its first chain.
    fn join_nodes(&mut self, edge: u32) -> u32 {
        let Edge { ends: (into, from), is_forward, .. } = self.edges[edge as usize];
        let moved = std::mem::take(&mut self.chains[from as usize].nodes);
        let (from_bytes, from_weight) = (self.chains[from as usize].bytes, self.chains[from as usize].weight);
        let chain = &mut self.chains[into as usize];
        let (into_shift, from_shift) = if is_forward { (0, chain.bytes) } else { (from_bytes, 0) };
        for &node in &moved {
            let place = &mut self.places[node as usize];
            *place = (into, place.1 + from_shift);
        }
        if is_forward {
            chain.nodes.extend(moved);
        } else {
            let kept = std::mem::replace(&mut chain.nodes, moved);
            for &node in &kept {
                self.places[node as usize].1 += into_shift;
            }
            chain.nodes.extend(kept);
        }
        chain.bytes = chain.bytes.saturating_add(from_bytes);
        chain.weight = chain.weight.saturating_add(from_weight);
        into
    }

    /// Gives the edges of the chain that is gone to the one that took it in.
    fn join_edges(&mut self, into: u32, joined: u32, marks: &mut [u32]) {
        let from = self.edges[joined as usize].ends.1;
        self.edges[joined as usize].is_dead = true;
        let mut kept = std::mem::take(&mut self.chains[into as usize].edges);
        kept.retain(|edge| !self.edges[*edge as usize].is_dead);
        let other_end = |edge: &Edge, end: u32| if edge.ends.0 == end { edge.ends.1 } else { edge.ends.0 };
        for &edge in &kept {
            marks[other_end(&self.edges[edge as usize], into) as usize] = edge;
        }
        for index in std::mem::take(&mut self.chains[from as usize].edges) {
            let edge = &mut self.edges[index as usize];
            if edge.is_dead {
                continue;
            }
            let other = other_end(edge, from);
            let same = marks[other as usize];
            if same == NONE {
                edge.ends = if edge.ends.0 == from { (into, other) } else { (other, into) };
                marks[other as usize] = index;
                kept.push(index);
                continue;
            }
            edge.is_dead = true;
            let (first, last) = (edge.first, edge.last);
            let same = &mut self.edges[same as usize];
            self.jumps[same.last as usize].next = first;
            same.last = last;
        }
        for &edge in &kept {
            marks[other_end(&self.edges[edge as usize], into) as usize] = NONE;
        }
        self.chains[into as usize].edges = kept;
    }

    /// Computes what joining an edge's chains gains.
    fn weigh(&mut self, index: usize) {
        let edge = &self.edges[index];
        let (left, right) = (&self.chains[edge.ends.0 as usize], &self.chains[edge.ends.1 as usize]);
        let frequency = FREQUENCY_SCALE * self.frequency_gain(left, right);
        let (forward, backward) = self.distance_gains(edge);
        let smaller = left.bytes.min(right.bytes) as f64;
        // Small chains go first; a loss is not made smaller by that.
        let scaled = |gain: f64| if gain >= 0.0 { gain / smaller } else { gain };
        let (forward, backward) = (scaled(frequency + forward), scaled(frequency + backward));
        // Of equals the sequence that the functions have now.
        let is_tie = (forward - backward).abs() < EPSILON;
        let is_forward = if is_tie { edge.ends.0 < edge.ends.1 } else { forward > backward };
        let gain = if is_forward { forward } else { backward };
        let edge = &mut self.edges[index];
        (edge.is_forward, edge.gain) = (is_forward, gain);
    }

    /// Misses that are saved because the union is denser than the thinner of the two.
    fn frequency_gain(&self, left: &Chain, right: &Chain) -> f64 {
        let misses = |weight: u64, bytes: u64| {
            let page = weight as f64 / bytes as f64 * CACHE_PAGE_BYTES;
            if page >= self.weight_total {
                return 0.0;
            }
            let mut miss = 1.0 - page / self.weight_total;
            for _ in 0..CACHE_ENTRIES_LOG2 {
                miss *= miss;
            }
            weight as f64 * miss
        };
        let apart = misses(left.weight, left.bytes) + misses(right.weight, right.bytes);
        let weight = left.weight.saturating_add(right.weight);
        apart - misses(weight, left.bytes.saturating_add(right.bytes))
    }

    /// What the calls of an edge gain by being near, with its first chain first and with it last.
    fn distance_gains(&self, edge: &Edge) -> (f64, f64) {
        let bytes = |chain: u32| self.chains[chain as usize].bytes;
        let (left_bytes, right_bytes) = (bytes(edge.ends.0), bytes(edge.ends.1));
        let (mut forward, mut backward) = (0.0, 0.0);
        let mut at = edge.first;
        while at != NONE {
            let jump = &self.jumps[at as usize];
            let (chain, start) = self.places[jump.from as usize];
            let (call, target) = (start + jump.offset, self.places[jump.to as usize].1);
            let weight = jump.weight as f64;
            let ends = if chain == edge.ends.0 {
                ((call, target + left_bytes), (call + right_bytes, target))
            } else {
                ((call + left_bytes, target), (call, target + right_bytes))
            };
            forward += weight * (near(ends.0.0.abs_diff(ends.0.1)) - self.far);
            backward += weight * (near(ends.1.0.abs_diff(ends.1.1)) - self.far);
            at = jump.next;
        }
        (forward, backward)
    }
}

/// The locality of a call over a distance: its inverse fourth root.
fn near(bytes: u64) -> f64 {
    let distance = if bytes == 0 { 0.1 } else { bytes as f64 };
    1.0 / distance.sqrt().sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::{Arc, Node, any_graph};

    #[test]
    fn a_chain_of_calls_stays_in_its_sequence() {
        let nodes = vec![Node { bytes: 64, weight: 10 }; 4];
        let arcs = [(2, 0), (0, 3)].map(|(from, to)| Arc { from, to, weight: 10, offset: 32 });
        let order = cdsort(&Graph::new(nodes, arcs.to_vec()).unwrap());
        let place = |node: u32| order.iter().position(|index| *index == node).unwrap();
        assert!(place(2) + 1 == place(0) && place(0) + 1 == place(3), "{order:?}");
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
                    prop_assert_eq!(sorter.places[*node as usize].1, next);
                    next += graph.node(*node).bytes;
                }
            }
            let order = cdsort(&graph);
            prop_assert_eq!(&order, &cdsort(&graph));
            let mut sorted = order;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, graph.indices().collect::<Vec<_>>());
        }
    }
}
