//! The model as plainly as it can be said, slow: before each join every two chains with calls between them are laid
//! out and weighed anew. What [`super::cdsort`] saves must not change what comes out.

use std::collections::BTreeMap;

use super::{CACHE_ENTRIES_LOG2, CACHE_PAGE_BYTES, CHAIN_NODES_MAX, EPSILON, FREQUENCY_SCALE};
use crate::graph::{Arc, Graph};

#[derive(Clone, Default)]
struct Chain {
    nodes: Vec<u32>,
    weight: u64,
}

struct Reference<'a> {
    graph: &'a Graph,
    chains: Vec<Chain>,
    /// Of each two chains the calls, in the sequence in which they are added up.
    edges: Vec<((usize, usize), Vec<Arc>)>,
    weight_total: f64,
    far: f64,
}

/// What [`super::cdsort`] must give.
pub(super) fn cdsort(graph: &Graph) -> Vec<u32> {
    let mut reference = Reference::new(graph);
    while let Some((edge, is_forward)) = reference.best() {
        reference.join(edge, is_forward);
    }
    let mut chains: Vec<&Chain> = reference.chains.iter().filter(|chain| !chain.nodes.is_empty()).collect();
    let density = |chain: &Chain| chain.weight as f64 / reference.bytes(chain) as f64;
    chains.sort_by(|left, right| density(right).total_cmp(&density(left)));
    chains.into_iter().flat_map(|chain| chain.nodes.iter().copied()).collect()
}

impl<'a> Reference<'a> {
    fn new(graph: &'a Graph) -> Self {
        let arcs: Vec<Arc> =
            graph.arcs().iter().copied().filter(|arc| arc.from != arc.to && arc.weight > 0).collect();
        let mut pairs: BTreeMap<(u32, u32), Vec<Arc>> = BTreeMap::new();
        for is_upward in [true, false] {
            for arc in arcs.iter().filter(|arc| (arc.from < arc.to) == is_upward) {
                pairs.entry((arc.from.min(arc.to), arc.from.max(arc.to))).or_default().push(*arc);
            }
        }
        let edge = |calls: Vec<Arc>| ((calls[0].from as usize, calls[0].to as usize), calls);
        let sum = |end: fn(&Arc) -> u32, node| {
            arcs.iter().filter(|arc| end(arc) == node).map(|arc| arc.weight).sum()
        };
        let chain = |node: u32| {
            let calls: (u64, u64) = (sum(|arc| arc.from, node), sum(|arc| arc.to, node));
            Chain { nodes: vec![node], weight: graph.node(node).weight.max(calls.0).max(calls.1) }
        };
        let hot: u64 = graph.nodes().iter().filter(|node| node.weight > 0).map(|node| node.bytes).sum();
        Self {
            graph,
            chains: graph.indices().map(chain).collect(),
            edges: pairs.into_values().map(edge).collect(),
            weight_total: graph.nodes().iter().map(|node| node.weight as f64).sum(),
            far: near(hot),
        }
    }

    /// The edge whose union gains most, and whether its first chain comes first in it.
    fn best(&self) -> Option<(usize, bool)> {
        let gains = self.edges.iter().map(|(ends, calls)| self.gain(*ends, calls)).enumerate();
        let counted = gains.filter(|(_, (gain, _))| *gain > EPSILON);
        let best = counted.max_by(|(one, (gain, _)), (other, (other_gain, _))| {
            gain.total_cmp(other_gain).then(self.edges[*other].0.cmp(&self.edges[*one].0))
        });
        best.map(|(edge, (_, is_forward))| (edge, is_forward))
    }

    fn gain(&self, ends: (usize, usize), calls: &[Arc]) -> (f64, bool) {
        let (left, right) = (&self.chains[ends.0], &self.chains[ends.1]);
        if left.nodes.len() + right.nodes.len() > CHAIN_NODES_MAX {
            return (0.0, true);
        }
        let union =
            Chain { nodes: [&left.nodes[..], &right.nodes].concat(), weight: left.weight + right.weight };
        let frequency = self.misses(left) + self.misses(right) - self.misses(&union);
        let smaller = self.bytes(left).min(self.bytes(right)) as f64;
        let gain = |nodes: Vec<u32>| {
            let gain = FREQUENCY_SCALE * frequency + self.distance(&nodes, calls);
            if gain >= 0.0 { gain / smaller } else { gain }
        };
        let (forward, backward) = (gain(union.nodes), gain([&right.nodes[..], &left.nodes].concat()));
        let is_tie = (forward - backward).abs() < EPSILON;
        let is_forward = if is_tie { ends.0 < ends.1 } else { forward > backward };
        (if is_forward { forward } else { backward }, is_forward)
    }

    fn distance(&self, nodes: &[u32], calls: &[Arc]) -> f64 {
        let mut next = 0;
        let mut addresses = BTreeMap::new();
        for node in nodes {
            addresses.insert(*node, next);
            next += self.graph.node(*node).bytes;
        }
        let mut sum = 0.0;
        for call in calls {
            let span = (addresses[&call.from] + call.offset).abs_diff(addresses[&call.to]);
            sum += call.weight as f64 * (near(span) - self.far);
        }
        sum
    }

    fn misses(&self, chain: &Chain) -> f64 {
        let page = chain.weight as f64 / self.bytes(chain) as f64 * CACHE_PAGE_BYTES;
        let miss = if page >= self.weight_total { 0.0 } else { 1.0 - page / self.weight_total };
        chain.weight as f64 * (0..CACHE_ENTRIES_LOG2).fold(miss, |miss, _| miss * miss)
    }

    fn bytes(&self, chain: &Chain) -> u64 {
        chain.nodes.iter().map(|node| self.graph.node(*node).bytes).sum()
    }

    fn join(&mut self, edge: usize, is_forward: bool) {
        let ((into, from), _) = self.edges.remove(edge);
        let moved = std::mem::take(&mut self.chains[from]);
        let chain = &mut self.chains[into];
        chain.weight += moved.weight;
        let parts = if is_forward { [&chain.nodes, &moved.nodes] } else { [&moved.nodes, &chain.nodes] };
        chain.nodes = parts.map(|part| &part[..]).concat();
        let touches = |ends: (usize, usize), chain: usize| ends.0 == chain || ends.1 == chain;
        let (moved, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.edges).into_iter().partition(|(ends, _)| touches(*ends, from));
        for (ends, calls) in moved {
            let ends = if ends.0 == from { (into, ends.1) } else { (ends.0, into) };
            match kept.iter_mut().find(|(kept, _)| *kept == ends || *kept == (ends.1, ends.0)) {
                Some((_, list)) => list.extend(calls),
                None => kept.push((ends, calls)),
            }
        }
        self.edges = kept;
    }
}

fn near(bytes: u64) -> f64 {
    let distance = if bytes == 0 { 0.1 } else { bytes as f64 };
    1.0 / distance.sqrt().sqrt()
}
