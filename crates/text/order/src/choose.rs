//! Makes the orders, lays them out, runs them, and picks one.

use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use crate::graph::{Graph, lay_out};
use crate::simulate::{Misses, Trace, simulate};
use crate::subject::Subject;
use crate::{by_density, by_weight, c3, cdsort, cdsort_calls, ext_tsp};

/// How an order was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As the program has it now.
    Current,
    /// As the last order had it.
    Previous,
    /// The heaviest first.
    Weight,
    /// The densest first.
    Density,
    /// Call-chain clustering.
    C3,
    /// Cache-directed sort.
    Cdsort,
    /// Cache-directed sort by calls alone.
    CdsortCalls,
}

impl Kind {
    /// The orders that can be asked for by name.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("keep", Self::Current),
        ("weight", Self::Weight),
        ("density", Self::Density),
        ("c3", Self::C3),
        ("cdsort", Self::Cdsort),
        ("cdsort-calls", Self::CdsortCalls),
    ];

    /// The word that names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "keep",
            Self::Previous => "previous",
            Self::Weight => "weight",
            Self::Density => "density",
            Self::C3 => "c3",
            Self::Cdsort => "cdsort",
            Self::CdsortCalls => "cdsort-calls",
        }
    }
}

/// One order with what it came to.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How it was made.
    pub kind: Kind,
    /// The functions of the subject, each once.
    pub order: Vec<u32>,
    /// Pages of the functions that hold 99 % of the weight.
    pub pages: usize,
    /// Misses of the walk.
    pub misses: Misses,
    /// The ext-TSP score.
    pub ext_tsp: f64,
}

/// How to choose.
#[derive(Clone, Debug)]
pub struct ChooseOptions {
    /// Size of the pages that the program will run on.
    pub page_bytes: u64,
    /// The fraction by which an order must beat the one that is there.
    pub margin: f64,
    /// Lines that the walk fetches.
    pub fetches: usize,
    /// Seed of the walk.
    pub seed: u64,
}

impl ChooseOptions {
    /// The usual walk on pages of a size.
    #[must_use]
    pub fn on_pages(page_bytes: u64) -> Self {
        Self { page_bytes, margin: 0.01, fetches: 1_000_000, seed: 1 }
    }
}

/// All orders, and the one to take.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The orders that were tried: the one that is there first.
    pub candidates: Vec<Candidate>,
    /// Index of the one to take.
    pub best: usize,
    /// Whether the best was within the margin of the one that is there, which was therefore kept.
    pub is_near_tie: bool,
}

impl Choice {
    /// The order to take.
    #[must_use]
    pub fn chosen(&self) -> &Candidate {
        &self.candidates[self.best]
    }

    /// The fraction of the cycles of fetching that an order saves of those of the order that is there.
    #[must_use]
    pub fn gain(&self, candidate: &Candidate) -> f64 {
        1.0 - candidate.misses.cycles() / self.candidates[0].misses.cycles()
    }
}

/// What makes an order of a graph.
type Maker = fn(&Graph) -> Vec<u32>;

/// All that make one of samples and calls.
const MAKERS: [(Kind, Maker); 5] = [
    (Kind::Weight, by_weight),
    (Kind::Density, by_density),
    (Kind::C3, c3),
    (Kind::Cdsort, cdsort),
    (Kind::CdsortCalls, cdsort_calls),
];

/// Tries every order, or only the wanted one, and picks the one that misses least. `previous` is the order of the
/// last time, by index of the subject: where it is given, it is what must be beaten.
#[must_use]
pub fn choose(
    subject: &Subject,
    previous: Option<Vec<u32>>,
    wanted: Option<Kind>,
    options: &ChooseOptions,
) -> Choice {
    let graph = &subject.graph;
    let makers = MAKERS.into_iter().filter(|(kind, _)| wanted.is_none_or(|wanted| wanted == *kind));
    // No order needs another or the walk: each is made beside it, or here where there may be no more threads.
    let candidates = thread::scope(|scope| {
        let begin = |make: Maker| {
            thread::Builder::new().spawn_scoped(scope, move || make(graph)).map_err(|_refused| make)
        };
        let begun: Vec<_> = makers.map(|(kind, make)| (kind, begin(make))).collect();
        let trace = Trace::walk(graph, &subject.hits, options.fetches, options.seed);
        let measured = |kind: Kind, order: Vec<u32>, addresses: &[u64]| Candidate {
            kind,
            pages: pages(subject, addresses, options.page_bytes),
            misses: simulate(&trace, addresses, options.page_bytes),
            ext_tsp: ext_tsp(graph, addresses),
            order,
        };
        let laid = |kind: Kind, order: Vec<u32>| {
            let addresses = lay_out(graph, &order);
            measured(kind, order, &addresses)
        };
        // The program as it is has cold functions between the hot ones; a previous order was hot alone.
        let mut candidates = vec![measured(Kind::Current, subject.current(), &subject.addresses)];
        if let Some(order) = previous {
            candidates.insert(0, laid(Kind::Previous, order));
        }
        candidates.extend(begun.into_iter().map(|(kind, begun)| {
            let made = |thread: ScopedJoinHandle<'_, Vec<u32>>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            laid(kind, begun.map_or_else(|make| make(graph), made))
        }));
        candidates
    });
    let asked = wanted.and_then(|wanted| candidates.iter().position(|candidate| candidate.kind == wanted));
    let cycles = |index: &usize| candidates[*index].misses.cycles();
    let least =
        (0..candidates.len()).min_by(|left, right| cycles(left).total_cmp(&cycles(right))).unwrap_or(0);
    let wins = cycles(&least) < cycles(&0) * (1.0 - options.margin);
    let best = asked.unwrap_or(if wins { least } else { 0 });
    Choice { best, is_near_tie: asked.is_none() && least != 0 && !wins, candidates }
}

/// Pages of the functions that together hold 99 % of the weight, the heaviest first.
fn pages(subject: &Subject, addresses: &[u64], page_bytes: u64) -> usize {
    const SHARE: f64 = 0.99;
    let order = by_weight(&subject.graph);
    let total: f64 = subject.graph.nodes().iter().map(|node| node.weight as f64).sum();
    let mut pages = std::collections::HashSet::new();
    let mut sum = 0.0;
    for index in order {
        let node = subject.graph.nodes()[index as usize];
        if sum >= total * SHARE || node.weight == 0 {
            break;
        }
        sum += node.weight as f64;
        let start = addresses[index as usize];
        pages.extend(start / page_bytes..=start.saturating_add(node.bytes - 1) / page_bytes);
    }
    pages.len()
}
