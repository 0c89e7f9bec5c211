//! Calls between chains: which belong together, and how near they are.

use crate::graph::Graph;

/// No call, no edge.
pub(super) const NONE: u32 = u32::MAX;

/// Calls from one function to another.
struct Call {
    from: u32,
    to: u32,
    weight: f64,
    offset: u64,
    /// The next one between the same two chains.
    next: u32,
}

/// Calls between the same two chains, as a list, so that joining two of them costs nothing.
///
/// Sums are taken in the sequence of the list: first the calls of the chain that stayed when two were joined, each
/// side's in the sequence that it had; at the start those from the lower of two functions, then those from the higher,
/// as the graph has them.
#[derive(Clone, Copy)]
pub(super) struct List {
    first: u32,
    last: u32,
}

/// Where a function is: its chain, and its address in that chain.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub chain: u32,
    pub address: u64,
}

/// All calls of a graph that an order can bring nearer.
pub(super) struct Calls {
    calls: Vec<Call>,
    /// What a call weighs that spans all of the code.
    far: f64,
}

impl Calls {
    /// The calls of a graph whose code has so many bytes.
    pub(super) fn new(graph: &Graph, bytes: u64) -> Self {
        let is_between = |index: &u32| {
            let arc = &graph.arcs()[*index as usize];
            arc.from != arc.to && arc.weight > 0
        };
        let order: Vec<u32> = (0..u32::try_from(graph.arcs().len()).expect("checked by Graph::new"))
            .filter(is_between)
            .collect();
        // By the lower function, then by the higher, then those from the lower first: two sorts, the last key first.
        let ends = |index: u32| {
            (graph.arcs()[index as usize].from as usize, graph.arcs()[index as usize].to as usize)
        };
        let nodes = graph.nodes().len();
        let order = sorted(&order, 2 * nodes, |index| {
            let (from, to) = ends(index);
            2 * from.max(to) + usize::from(from > to)
        });
        let order = sorted(&order, nodes, |index| {
            let (from, to) = ends(index);
            from.min(to)
        });
        let call = |index: u32| {
            let arc = &graph.arcs()[index as usize];
            Call { from: arc.from, to: arc.to, weight: arc.weight as f64, offset: arc.offset, next: NONE }
        };
        Self { calls: order.into_iter().map(call).collect(), far: near(bytes) }
    }

    /// Gives the calls between each two functions, in both directions: caller and callee of the first one, and what
    /// all of them weigh.
    pub(super) fn join_pairs(&mut self, mut edge: impl FnMut((u32, u32), List, f64)) {
        let mut first = 0;
        while let Some(&Call { from, to, mut weight, .. }) = self.calls.get(first) {
            let mut last = first;
            let is_same =
                |call: &Call| (call.from, call.to) == (from, to) || (call.to, call.from) == (from, to);
            while let Some(call) = self.calls.get(last + 1).filter(|call| is_same(call)) {
                weight += call.weight;
                last += 1;
                self.calls[last - 1].next = index(last);
            }
            edge((from, to), List { first: index(first), last: index(last) }, weight);
            first = last + 1;
        }
    }

    /// Puts one list behind another.
    pub(super) fn join(&mut self, list: List, behind: List) -> List {
        self.calls[list.last as usize].next = behind.first;
        List { first: list.first, last: behind.last }
    }

    /// What the calls of a list gain by being near: with the first of their two chains first, and with it last.
    pub(super) fn gains(
        &self,
        list: List,
        places: &[Place],
        ends: (u32, u32),
        bytes: (u64, u64),
    ) -> [f64; 2] {
        let mut gains = [0.0; 2];
        let mut at = list.first;
        while at != NONE {
            let call = &self.calls[at as usize];
            let Place { chain, address } = places[call.from as usize];
            let (call_at, target_at) = (address + call.offset, places[call.to as usize].address);
            let spans = if chain == ends.0 {
                [(call_at, target_at + bytes.0), (call_at + bytes.1, target_at)]
            } else {
                [(call_at + bytes.0, target_at), (call_at, target_at + bytes.1)]
            };
            for (gain, (call_at, target_at)) in gains.iter_mut().zip(spans) {
                *gain += call.weight * (near(call_at.abs_diff(target_at)) - self.far);
            }
            at = call.next;
        }
        gains
    }
}

/// Indices in the order of a key below `count`; equal ones stay as they stood.
fn sorted(indices: &[u32], count: usize, key: impl Fn(u32) -> usize) -> Vec<u32> {
    let mut ends = vec![0; count];
    indices.iter().for_each(|index| ends[key(*index)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    let mut sorted = vec![0; indices.len()];
    for index in indices.iter().rev() {
        let end = &mut ends[key(*index)];
        *end -= 1;
        sorted[*end] = *index;
    }
    sorted
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("checked by Graph::new")
}

/// The locality of a call over a distance: its inverse fourth root.
fn near(bytes: u64) -> f64 {
    let distance = if bytes == 0 { 0.1 } else { bytes as f64 };
    1.0 / distance.sqrt().sqrt()
}
