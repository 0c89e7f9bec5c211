//! What an order costs: a walk over the call graph through the caches of a CPU's front end.
//!
//! [`Trace`] walks once, by chance and from a fixed seed: from a function it calls on, by the weights of its calls,
//! or returns; at each visit it fetches the entry and some of the lines that were sampled. The walk knows functions
//! and offsets, not addresses, so every order is asked the same fetches. [`simulate`] gives them addresses and
//! counts what misses: L1i of 32 KB (8 ways), an L1 TLB of 64 entries, an L2 TLB of 2048 (8 ways).
//!
//! A model: no prefetch, no prediction, one thread. Its use is to rank orders of one program, which is all it is
//! used for.

use crate::graph::Graph;

const LINE_BYTES: u64 = 64;
const L1_SETS: usize = 64;
const L1_WAYS: usize = 8;
const L1_TLB_ENTRIES: usize = 64;
const L2_TLB_SETS: usize = 256;
/// Cycles that the instructions of a line take when nothing misses, about: without it, a program that misses nothing
/// would gain in percent from nothing.
const CYCLES_FETCH: f64 = 4.0;
/// Cycles that a miss costs, about: from L2, from the L2 TLB, and a walk of the page table.
const CYCLES_L1: f64 = 14.0;
const CYCLES_L1_TLB: f64 = 7.0;
const CYCLES_WALK: f64 = 30.0;
/// Deeper than any real stack of hot functions.
const DEPTH_MAX: usize = 64;
/// The most calls that a visit makes on average.
const CALLS_MAX: f64 = 20.0;
/// Lines that one visit fetches besides the entry.
const LINES_A_VISIT: usize = 3;

/// The fetches of one walk, as functions and offsets in them.
#[derive(Clone, Debug)]
pub struct Trace {
    fetches: Vec<(u32, u32)>,
}

/// Misses of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Misses {
    /// Fetches of lines in all.
    pub fetches: u64,
    /// Fetches that were not in L1i.
    pub l1i: u64,
    /// Fetches whose translation was not in the L1 TLB.
    pub itlb: u64,
    /// Fetches whose translation was in no TLB.
    pub walks: u64,
}

impl Misses {
    /// Cycles for each fetch, about, with what its misses cost.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        let sum =
            self.l1i as f64 * CYCLES_L1 + self.itlb as f64 * CYCLES_L1_TLB + self.walks as f64 * CYCLES_WALK;
        CYCLES_FETCH + sum / self.fetches.max(1) as f64
    }

    /// A count for each thousand fetches.
    #[must_use]
    pub fn per_thousand(&self, count: u64) -> f64 {
        count as f64 * 1000.0 / self.fetches.max(1) as f64
    }
}

/// SplitMix64: the walk must be the same everywhere and for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `bound`, which is above 0.
    fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product; its bias is far below what a walk can show.
        u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).expect("below a u64")
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Weights to choose from, as their sums so far.
struct Wheel {
    sums: Vec<u64>,
    values: Vec<u32>,
}

impl Wheel {
    fn new(parts: impl Iterator<Item = (u32, u64)>) -> Self {
        let mut wheel = Self { sums: Vec::new(), values: Vec::new() };
        let mut sum = 0_u64;
        for (value, weight) in parts.filter(|(_, weight)| *weight > 0) {
            sum = sum.saturating_add(weight);
            wheel.sums.push(sum);
            wheel.values.push(value);
        }
        wheel
    }

    fn turn(&self, random: &mut Random) -> Option<u32> {
        let total = *self.sums.last()?;
        let at = random.below(total);
        self.values.get(self.sums.partition_point(|sum| *sum <= at)).copied()
    }

    fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }
}

impl Trace {
    /// Walks until `fetches` lines were fetched. `hits` gives for each function its sampled offsets with weights;
    /// without any the lines of its first 256 bytes are as likely as each other.
    #[must_use]
    pub fn walk(graph: &Graph, hits: &[Vec<(u64, u64)>], fetches: usize, seed: u64) -> Self {
        let count = graph.nodes().len();
        let mut random = Random(seed);
        let mut degrees = vec![0; count];
        graph.arcs().iter().for_each(|arc| degrees[arc.from as usize] += 1);
        let mut out: Vec<Vec<(u32, u64)>> = degrees.into_iter().map(Vec::with_capacity).collect();
        let mut called = vec![0_u64; count];
        for arc in graph.arcs() {
            out[arc.from as usize].push((arc.to, arc.weight));
            let sum = &mut called[arc.to as usize];
            *sum = sum.saturating_add(arc.weight);
        }
        let callees: Vec<Wheel> = out.into_iter().map(|calls| Wheel::new(calls.into_iter())).collect();
        let lines: Vec<Wheel> = graph.indices().map(|index| lines(graph, index, hits)).collect();
        // A walk starts where weight is.
        let starts = Wheel::new(graph.indices().map(|index| (index, graph.node(index).weight)));
        let mut trace = Self { fetches: Vec::with_capacity(fetches) };
        let mut stack: Vec<u32> = Vec::new();
        while trace.fetches.len() < fetches {
            let Some(&at) = stack.last() else {
                let Some(start) = starts.turn(&mut random) else { break };
                stack.push(start);
                trace.visit(start, &lines, &mut random);
                continue;
            };
            let calls = callees[at as usize].total() as f64;
            let a_visit = (calls / called[at as usize].max(1) as f64).min(CALLS_MAX);
            let goes_on = stack.len() < DEPTH_MAX && random.share() < a_visit / (1.0 + a_visit);
            match callees[at as usize].turn(&mut random).filter(|_| goes_on) {
                Some(callee) => {
                    stack.push(callee);
                    trace.visit(callee, &lines, &mut random);
                }
                None => {
                    stack.pop();
                    // Back in the caller, one of its lines runs on.
                    if let Some(&caller) = stack.last() {
                        trace.line(caller, &lines, &mut random);
                    }
                }
            }
        }
        trace
    }

    fn visit(&mut self, function: u32, lines: &[Wheel], random: &mut Random) {
        self.fetches.push((function, 0));
        for _ in 0..LINES_A_VISIT {
            self.line(function, lines, random);
        }
    }

    fn line(&mut self, function: u32, lines: &[Wheel], random: &mut Random) {
        if let Some(offset) = lines[function as usize].turn(random) {
            self.fetches.push((function, offset));
        }
    }
}

/// The offsets of a function's lines, by weight.
fn lines(graph: &Graph, index: u32, hits: &[Vec<(u64, u64)>]) -> Wheel {
    const UNKNOWN_BYTES: u64 = 256;
    let bytes = graph.node(index).bytes;
    let known = hits.get(index as usize).map_or(&[][..], Vec::as_slice);
    let inside = |offset: u64| u32::try_from(offset).ok().filter(|_| offset < bytes);
    if known.is_empty() {
        let starts = (0..bytes.min(UNKNOWN_BYTES)).step_by(LINE_BYTES as usize);
        return Wheel::new(starts.filter_map(|offset| Some((inside(offset)?, 1))));
    }
    Wheel::new(known.iter().filter_map(|(offset, weight)| Some((inside(*offset)?, *weight))))
}

/// A cache of sets whose least recently used way is replaced.
struct Cache<const WAYS: usize> {
    tags: Vec<[u64; WAYS]>,
}

impl<const WAYS: usize> Cache<WAYS> {
    fn new(sets: usize) -> Self {
        Self { tags: vec![[u64::MAX; WAYS]; sets] }
    }

    /// Whether it was missing; it is in now.
    fn misses(&mut self, tag: u64) -> bool {
        let set = tag as usize % self.tags.len();
        let ways = &mut self.tags[set];
        // Most fetches are of the line or the page of the one before.
        if ways[0] == tag {
            return false;
        }
        let found = ways.iter().position(|way| *way == tag);
        // The ways stand in the order of their last use.
        ways[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        ways[0] = tag;
        found.is_none()
    }
}

/// Runs a walk over functions at these addresses, on pages of this size.
#[must_use]
pub fn simulate(trace: &Trace, addresses: &[u64], page_bytes: u64) -> Misses {
    let mut l1 = Cache::<L1_WAYS>::new(L1_SETS);
    let mut l1_tlb = Cache::<L1_TLB_ENTRIES>::new(1);
    let mut l2_tlb = Cache::<8>::new(L2_TLB_SETS);
    let mut misses = Misses::default();
    let mut last_page = u64::MAX;
    for (function, offset) in &trace.fetches {
        let address = addresses[*function as usize].wrapping_add(u64::from(*offset));
        misses.fetches += 1;
        misses.l1i += u64::from(l1.misses(address / LINE_BYTES));
        let page = address / page_bytes;
        if std::mem::replace(&mut last_page, page) != page && l1_tlb.misses(page) {
            misses.itlb += 1;
            misses.walks += u64::from(l2_tlb.misses(page));
        }
    }
    misses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Arc, Node, lay_out};

    /// Hot functions between cold ones, each calling the next hot one.
    fn scattered() -> Graph {
        let nodes = (0..4000).map(|index| Node { bytes: 512, weight: if index % 20 == 0 { 100 } else { 0 } });
        let arcs = (0..199).map(|hot| Arc { from: hot * 20, to: hot * 20 + 20, weight: 90, offset: 64 });
        Graph::new(nodes.collect(), arcs.collect()).unwrap()
    }

    #[test]
    fn hot_functions_together_miss_less() {
        let graph = scattered();
        let trace = Trace::walk(&graph, &[], 200_000, 1);
        let link_order: Vec<u32> = (0..4000).collect();
        let apart = simulate(&trace, &lay_out(&graph, &link_order), 4096);
        let together = simulate(&trace, &lay_out(&graph, &crate::by_density(&graph)), 4096);
        assert_eq!(apart.fetches, together.fetches);
        assert!(together.itlb * 4 < apart.itlb, "{together:?} {apart:?}");
        assert!(together.cycles() < apart.cycles());
    }

    #[test]
    fn what_fits_misses_once() {
        let graph = Graph::new(vec![Node { bytes: 64, weight: 1 }], Vec::new()).unwrap();
        let trace = Trace::walk(&graph, &[], 1000, 7);
        let misses = simulate(&trace, &[0], 4096);
        assert_eq!((misses.l1i, misses.itlb, misses.walks), (1, 1, 1));
    }

    #[test]
    fn nothing_hot_is_no_walk() {
        let graph = Graph::new(vec![Node { bytes: 64, weight: 0 }], Vec::new()).unwrap();
        assert_eq!(simulate(&Trace::walk(&graph, &[], 1000, 7), &[0], 4096), Misses::default());
    }
}
