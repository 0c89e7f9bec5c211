//! How far the memory of each node is from the CPUs of each node, and how fast they read it together.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use planish_arena::{Arena, Fallback, NodeChoice, Page, Preference};
use planish_stats::Rng;
use planish_topo::{Node, Topology};

use crate::Rounds;
use crate::chase::{Cycle, LINE_WORDS, read_all};
use crate::error::LatencyError;
use crate::figure::Figure;
use crate::pin::{on_cpu, pin};

/// CPUs of a node and memory of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCell {
    /// Node of the CPUs.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// The CPU that the latency is measured from.
    pub cpu: u32,
    /// CPUs that read together.
    pub threads: usize,
    /// Distance that the firmware tells; 10 is the own node.
    pub distance: Option<u32>,
    /// A load that waits for memory, in nanoseconds.
    pub latency_ns: Result<Figure, String>,
    /// What each round gave of it.
    pub rounds_ns: Vec<f64>,
    /// Bytes that the CPUs read together in a second.
    pub read_bytes_per_s: Result<Figure, String>,
}

impl NodeCell {
    /// Whether the memory belongs to the CPUs.
    pub fn is_local(&self) -> bool {
        self.cpu_node == self.memory_node
    }
}

/// What was measured of all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFigures {
    /// Every node with CPUs that are measured, by every node with memory.
    pub cells: Vec<NodeCell>,
    /// Of each node with memory, the latency of single pages in nanoseconds.
    pub pages: Vec<(u32, Vec<f64>)>,
    /// Of each node with memory, how much was measured and on which pages it really lies.
    pub backing: Vec<(u32, Vec<(String, u64)>)>,
}

/// Cache that is taken to be there where sysfs tells none.
const CACHE_BYTES: u64 = 32 << 20;
/// Memory of a node is so many times as large as its largest cache.
const CACHES: u64 = 4;
/// Never more than this, and never less than two caches.
const BYTES_MAX: u64 = 1 << 30;
/// Of what a node has free, so much is taken at most: one part of this.
const OF_FREE: u64 = 4;
/// Loads of a round.
const STEPS: usize = 200_000;
/// CPUs that read together, at most: by then the memory is the limit.
const THREADS_MAX: usize = 64;

/// Memory of one node, until it is measured.
struct Ground {
    node: u32,
    arena: Arena,
    bytes: usize,
}

/// Measures every node from every node.
///
/// # Errors
/// A CPU that was there before cannot be used any more. Memory that cannot be had is told in the cells.
pub fn measure_nodes(
    cpus: &[u32],
    topology: &Topology,
    rounds: &mut Rounds,
) -> Result<NodeFigures, LatencyError> {
    let with_memory = topology.nodes.iter().filter(|node| node.memory_bytes > 0);
    let grounds: Vec<(u32, Result<Ground, LatencyError>)> =
        with_memory.map(|node| (node.id, ground(node, topology, cpus))).collect();
    let mut cells = cells(cpus, topology, grounds.iter().map(|(node, _)| *node));
    let mut figures = NodeFigures::default();
    let mut cycles: Vec<(u32, Result<Cycle<'_>, String>)> = Vec::new();
    for (node, ground) in &grounds {
        let cycle = match ground {
            Err(error @ LatencyError::Short { .. }) => Err(format!("{}; {}", told(error), error.cure())),
            Err(error) => Err(told(error)),
            Ok(ground) => lay(ground, &mut rounds.rng),
        };
        if let (Ok(ground), Ok(_)) = (ground, &cycle) {
            figures.backing.push((*node, backing(&ground.arena)));
        }
        cycles.push((*node, cycle));
    }
    measure_cells(&mut cells, cpus, topology, &mut cycles, rounds)?;
    for (node, cycle) in &cycles {
        let (Ok(cycle), Some(cpu)) = (cycle, nearest(*node, cpus, topology)) else { continue };
        let page_ns = on_cpu(cpu, || Ok(page_latencies(cycle.words(), &mut rounds.rng)))?;
        figures.pages.push((*node, page_ns));
    }
    figures.cells = cells;
    Ok(figures)
}

/// Memory of a node: several times its caches, and only of what is free.
fn ground(node: &Node, topology: &Topology, cpus: &[u32]) -> Result<Ground, LatencyError> {
    let cache = cpus.iter().map(|&cpu| topology.last_cache_bytes(cpu)).max().filter(|bytes| *bytes > 0);
    let cache = cache.unwrap_or(CACHE_BYTES);
    let (room, least) = (node.free_bytes / OF_FREE, cache.saturating_mul(2));
    let bytes = cache.saturating_mul(CACHES).min(BYTES_MAX).max(least).min(room);
    // In whole huge pages, for the end of the memory to be as the rest.
    let bytes = bytes - bytes % (Page::Thp.bytes() as u64);
    if bytes < least {
        let node_words = format!("a {OF_FREE}th of what is free on node {}", node.id);
        return Err(LatencyError::Short { node_words, free_bytes: room, needed_bytes: least });
    }
    let bytes = usize::try_from(bytes).expect("a gigabyte fits an address");
    // Where the kernel knows of one node there is no policy to set, and containers forbid to.
    let choice = if topology.nodes.len() == 1 { NodeChoice::Inherit } else { NodeChoice::only(node.id) };
    let arena = Arena::builder().page(Preference::From(Page::Thp)).fallback(Fallback::Allow).node(choice);
    Ok(Ground { node: node.id, arena: arena.capacity(bytes).build()?, bytes })
}

/// Lays the cycle, once the memory is known to be where it belongs.
fn lay<'a>(ground: &'a Ground, rng: &mut Rng) -> Result<Cycle<'a>, String> {
    let words =
        ground.arena.alloc_slice(ground.bytes / size_of::<u64>()).map_err(|error| told(&error.into()))?;
    let achieved = ground.arena.achieved().map_err(|error| told(&error.into()))?;
    let elsewhere = achieved.node_bytes.iter().flatten().find(|(node, _)| **node != ground.node);
    if let Some((other, bytes)) = elsewhere {
        return Err(format!("{bytes} bytes that belong on node {} lie on node {other}", ground.node));
    }
    Ok(Cycle::lay(words, rng))
}

/// On which pages the memory really lies.
fn backing(arena: &Arena) -> Vec<(String, u64)> {
    let achieved = arena.achieved().map(|achieved| achieved.backing).unwrap_or_default();
    achieved.iter().map(|backing| (backing.page.backing(), backing.bytes as u64)).collect()
}

/// An error and its causes.
fn told(error: &LatencyError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn cells(cpus: &[u32], topology: &Topology, memory: impl Iterator<Item = u32> + Clone) -> Vec<NodeCell> {
    let place = |id: u32| topology.nodes.iter().position(|node| node.id == id);
    let mut cells = Vec::new();
    for node in &topology.nodes {
        let own = of_node(cpus, node);
        let Some(&cpu) = own.first() else { continue };
        for memory_node in memory.clone() {
            let distance = place(memory_node).and_then(|place| node.distances.get(place).copied());
            let untried = || Err("not measured".to_owned());
            cells.push(NodeCell {
                cpu_node: node.id,
                memory_node,
                cpu,
                threads: own.len(),
                distance,
                latency_ns: untried(),
                rounds_ns: Vec::new(),
                read_bytes_per_s: untried(),
            });
        }
    }
    cells
}

/// The CPUs of a node that are measured, as many as read together.
fn of_node(cpus: &[u32], node: &Node) -> Vec<u32> {
    cpus.iter().copied().filter(|&cpu| node.cpus.contains(cpu)).take(THREADS_MAX).collect()
}

/// A CPU to measure the memory of a node from: one of its own, where one is measured.
fn nearest(node: u32, cpus: &[u32], topology: &Topology) -> Option<u32> {
    let own = topology.node(node).and_then(|node| of_node(cpus, node).first().copied());
    own.or_else(|| cpus.first().copied())
}

/// Fills in the figures of all cells, in each round in another order.
fn measure_cells(
    cells: &mut [NodeCell],
    cpus: &[u32],
    topology: &Topology,
    cycles: &mut [(u32, Result<Cycle<'_>, String>)],
    rounds: &mut Rounds,
) -> Result<(), LatencyError> {
    let mut seen = vec![(Vec::new(), Vec::new()); cells.len()];
    let mut order: Vec<(usize, bool)> =
        (0..cells.len()).flat_map(|index| [(index, false), (index, true)]).collect();
    for _ in 0..rounds.count {
        rounds.rng.shuffle(&mut order);
        for &(index, is_read) in &order {
            let cell = &cells[index];
            let cycle = cycles.iter_mut().find(|(node, _)| *node == cell.memory_node);
            let Some((_, Ok(cycle))) = cycle else { continue };
            if is_read {
                let node = topology.node(cell.cpu_node).expect("cells are made of nodes");
                seen[index].1.push(read_together(cycle.words(), &of_node(cpus, node))?);
            } else {
                seen[index].0.push(on_cpu(cell.cpu, || Ok(cycle.walk(STEPS)))?);
            }
        }
    }
    for (cell, (latencies, reads)) in cells.iter_mut().zip(seen) {
        let cycle = cycles.iter().find(|(node, _)| *node == cell.memory_node);
        let why = || match cycle {
            Some((_, Err(why))) => why.clone(),
            _ => "no round came to an end".to_owned(),
        };
        cell.latency_ns = Figure::of(&latencies, rounds.spread).ok_or_else(why);
        cell.rounds_ns = latencies;
        cell.read_bytes_per_s = Figure::of(&reads, rounds.spread).ok_or_else(why);
    }
    Ok(())
}

/// Bytes that some CPUs read in a second, each its part, all at the same time.
fn read_together(words: &[u64], cpus: &[u32]) -> Result<f64, LatencyError> {
    let part = words.len().div_ceil(cpus.len().max(1)).next_multiple_of(LINE_WORDS);
    let (ready, go) = (AtomicUsize::new(0), AtomicBool::new(false));
    let spans: Vec<Result<(Instant, Instant), LatencyError>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failed = None;
        for (&cpu, part) in cpus.iter().zip(words.chunks(part)) {
            let (ready, go) = (&ready, &go);
            let work = move || {
                let pinned = pin(cpu);
                ready.fetch_add(1, Ordering::SeqCst);
                while !go.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                pinned?;
                let begun = Instant::now();
                read_all(part);
                Ok((begun, Instant::now()))
            };
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => failed = Some(LatencyError::Thread(error)),
            }
        }
        while ready.load(Ordering::SeqCst) < threads.len() {
            std::thread::sleep(Duration::from_micros(50));
        }
        go.store(true, Ordering::SeqCst);
        let spans = threads.into_iter().map(|thread| thread.join().expect("reading does not panic"));
        spans.chain(failed.map(Err)).collect()
    });
    let spans: Vec<(Instant, Instant)> = spans.into_iter().collect::<Result<_, _>>()?;
    let begun = spans.iter().map(|(begun, _)| *begun).min();
    let ended = spans.iter().map(|(_, ended)| *ended).max();
    let took = begun.zip(ended).map_or(0.0, |(begun, ended)| ended.duration_since(begun).as_secs_f64());
    Ok(size_of_val(words) as f64 / took.max(1e-9))
}

/// Words of the pages that are told apart: the least that memory is dealt out in, whatever its backing here.
const PAGE_WORDS: usize = 4096 / size_of::<u64>();
/// Lines of such a page that one pass reads.
const LINES: usize = 16;
/// Passes, each over other lines: none is read twice, and so none is in a cache.
const PASSES: usize = PAGE_WORDS / LINE_WORDS / LINES;
/// Pages that are measured, at most.
const PAGES_MAX: usize = 8192;

/// The latency of single pages of some memory: of each the least of some passes, in nanoseconds.
///
/// The first half is measured, and the second is read before each pass, to have the first out of the caches.
fn page_latencies(words: &[u64], rng: &mut Rng) -> Vec<f64> {
    let (measured, other) = words.split_at(words.len() / 2);
    let mut pages: Vec<usize> = (0..measured.len() / PAGE_WORDS).collect();
    rng.shuffle(&mut pages);
    pages.truncate(PAGES_MAX);
    let mut lines: Vec<usize> = (0..PAGE_WORDS / LINE_WORDS).collect();
    rng.shuffle(&mut lines);
    let mut least = vec![f64::INFINITY; pages.len()];
    for pass in 0..PASSES {
        read_all(other);
        let lines = &lines[pass * LINES..(pass + 1) * LINES];
        for (least, &page) in least.iter_mut().zip(&pages) {
            *least = least.min(page_latency(&measured[page * PAGE_WORDS..][..PAGE_WORDS], lines));
        }
    }
    least
}

/// Nanoseconds of a load from one page, each waiting for the one before.
fn page_latency(page: &[u64], lines: &[usize]) -> f64 {
    // The compiler does not know that this is nothing, so that each address needs the value before.
    let nothing = black_box(0_u64);
    let begun = Instant::now();
    let mut value = 0;
    for line in lines {
        value = page[line * LINE_WORDS + (value & nothing) as usize];
    }
    black_box(value);
    begun.elapsed().as_nanos() as f64 / lines.len() as f64
}

#[cfg(test)]
mod tests {
    use planish_host::Host;

    use super::*;
    use crate::figure::Spread;

    #[test]
    fn the_nodes_of_this_machine_are_measured_and_their_backing_is_read_back() {
        let mut topology = Topology::read(&Host::live());
        // A small cache makes a small memory: this is a test of the way and not of the figures.
        topology.caches.iter_mut().for_each(|cache| cache.bytes = 1 << 20);
        let cpus: Vec<u32> = topology.allowed().iter().take(2).collect();
        let mut rounds = Rounds { count: 2, spread: Spread::Usual, rng: Rng::new(1) };
        let figures = measure_nodes(&cpus, &topology, &mut rounds).expect("CPUs that we may use");
        assert!(figures.cells.iter().any(|cell| cell.latency_ns.is_ok()), "{figures:?}");
        for cell in &figures.cells {
            let (Ok(latency), Ok(read)) = (&cell.latency_ns, &cell.read_bytes_per_s) else { continue };
            assert!(latency.value > 0.1 && read.value > 1e6, "{cell:?}");
            assert!(cpus.contains(&cell.cpu) && cell.threads >= 1);
        }
        let bytes: u64 = figures.backing.iter().flat_map(|(_, parts)| parts).map(|(_, bytes)| bytes).sum();
        assert!(bytes >= 4 << 20, "{figures:?}");
        assert!(figures.pages.iter().all(|(_, pages)| pages.iter().all(|ns| ns.is_finite() && *ns > 0.0)));
    }

    #[test]
    fn a_node_without_room_says_so_in_each_of_its_cells() {
        let mut topology = Topology::read(&Host::live());
        topology.nodes.iter_mut().for_each(|node| node.free_bytes = 1 << 20);
        let cpus: Vec<u32> = topology.allowed().iter().take(1).collect();
        let mut rounds = Rounds { count: 1, spread: Spread::Usual, rng: Rng::new(1) };
        let figures = measure_nodes(&cpus, &topology, &mut rounds).expect("CPUs that we may use");
        assert!(!figures.cells.is_empty() && figures.pages.is_empty());
        for cell in figures.cells {
            let why = cell.latency_ns.expect_err("there is no room");
            assert!(why.contains("leaves 262144 bytes") && why.contains("page cache"), "{why}");
        }
    }
}
