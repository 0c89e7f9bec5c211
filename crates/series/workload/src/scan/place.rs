//! Where memory is wanted, by whom it is filled, and whether it came to lie there.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use planish_arena::NodeChoice;
use planish_sys::policy::{self, Policy};
use planish_sys::{CpuSet, NodeSet, affinity};

use crate::error::WorkloadError;

/// Most that the share of a node may differ from what was wanted. Interleave is a hint: a full node is passed over.
const TOLERANCE: f64 = 0.02;

/// Where tables and heaps lie, by the words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `default`: each table and each heap on the node of the thread that fills it, as first use has it.
    Default,
    /// `by-one`: heaps as by default; all tables on the node of one thread, which filled them before anybody else
    /// came.
    ByOne,
    /// `interleave-all`: tables and heaps page by page round all nodes, as `numactl --interleave=all` has it.
    InterleaveAll,
    /// `interleave-shared`: the tables alone; heaps stay with their threads, as `planish run --numa interleave` has
    /// it.
    InterleaveShared,
}

impl Place {
    /// All of them, in the order of help.
    pub const ALL: [Self; 4] = [Self::Default, Self::ByOne, Self::InterleaveAll, Self::InterleaveShared];

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ByOne => "by-one",
            Self::InterleaveAll => "interleave-all",
            Self::InterleaveShared => "interleave-shared",
        }
    }

    /// The policy of the threads, which their heaps inherit.
    pub(super) fn of_thread(self, seats: &Seats) -> Option<Policy> {
        (self == Self::InterleaveAll).then(|| Policy::Interleave(seats.nodes.clone()))
    }

    /// How the tables are placed. `Inherit` is the policy of the thread that fills them.
    pub(super) fn of_tables(self, seats: &Seats) -> NodeChoice {
        match self {
            Self::InterleaveShared => NodeChoice::Interleave(seats.nodes.clone()),
            Self::Default | Self::ByOne | Self::InterleaveAll => NodeChoice::Inherit,
        }
    }

    /// The thread that fills a table.
    pub(super) fn filler(self, table: usize) -> usize {
        match self {
            Self::ByOne => 0,
            Self::Default | Self::InterleaveAll | Self::InterleaveShared => table,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Place {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        let found = Self::ALL.into_iter().find(|place| place.name() == name);
        found.ok_or_else(|| WorkloadError::UnknownPlace { name: name.to_owned() })
    }
}

/// A thread's CPU, and the node of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) cpu: u32,
    pub(super) node: u32,
}

/// Where the threads run.
#[derive(Debug, Clone)]
pub(super) struct Seats {
    seats: Vec<Seat>,
    /// Nodes that have both a CPU of ours and memory that we may take.
    pub(super) nodes: NodeSet,
}

impl Seats {
    /// Deals threads to nodes in turn. CPUs of nodes without memory are left out: all memory is far from them.
    pub(super) fn take(cpus: Option<&CpuSet>, threads: Option<NonZeroUsize>) -> Result<Self, WorkloadError> {
        let attempt = "ask where this process may run";
        let process = |source| WorkloadError::Process { attempt, source };
        let cpus = cpus.map_or_else(|| affinity::get(None), |cpus| Ok(cpus.clone())).map_err(process)?;
        let found = std::thread::scope(|scope| {
            let named = std::thread::Builder::new().name("seats".to_owned());
            let asked = named.spawn_scoped(scope, || cpus.iter().map(seat).collect::<Result<Vec<Seat>, _>>());
            let asked = asked.map_err(|source| WorkloadError::Thread { source })?;
            asked.join().expect("calls of the kernel do not panic")
        })?;
        // A container may forbid to ask; then memory is taken to be where CPUs are.
        let has_memory = policy::allowed_nodes().ok();
        let has_memory = |node: u32| has_memory.as_ref().is_none_or(|nodes| nodes.contains(node));
        let mut of_node: BTreeMap<u32, Vec<Seat>> = BTreeMap::new();
        for seat in found.into_iter().filter(|seat| has_memory(seat.node)) {
            of_node.entry(seat.node).or_default().push(seat);
        }
        Self::deal(&of_node, threads).ok_or_else(|| WorkloadError::CpuAbsent { cpus: cpus.to_string() })
    }

    fn deal(of_node: &BTreeMap<u32, Vec<Seat>>, threads: Option<NonZeroUsize>) -> Option<Self> {
        let all: usize = of_node.values().map(Vec::len).sum();
        let threads = threads.map_or(all, NonZeroUsize::get);
        let nodes: Vec<&Vec<Seat>> = of_node.values().collect();
        if nodes.is_empty() {
            return None;
        }
        // Where threads are as many as CPUs each has its own, however unevenly nodes have them.
        let longest = of_node.values().map(Vec::len).max().unwrap_or(0);
        let turn = |round: usize| nodes.iter().filter_map(move |seats| seats.get(round)).copied();
        let each: Vec<Seat> = (0..longest).flat_map(turn).collect();
        let seats = (0..threads).map(|thread| each[thread % each.len()]).collect();
        Some(Self { seats, nodes: of_node.keys().copied().collect() })
    }

    pub(super) fn count(&self) -> usize {
        self.seats.len()
    }

    pub(super) fn of(&self, thread: usize) -> Seat {
        self.seats[thread]
    }
}

/// Moves the calling thread onto a CPU, and tells the node of it.
fn seat(cpu: u32) -> Result<Seat, WorkloadError> {
    sit(cpu)?;
    let attempt = "ask for the node of a CPU";
    let here = affinity::here().map_err(|source| WorkloadError::Process { attempt, source })?;
    Ok(Seat { cpu, node: here.node })
}

/// Keeps the calling thread on one CPU.
pub(super) fn sit(cpu: u32) -> Result<(), WorkloadError> {
    let cpus: CpuSet = [cpu].into_iter().collect();
    affinity::pin(&cpus).map_err(|source| match source {
        planish_sys::Error::Outside { .. } => WorkloadError::CpuAbsent { cpus: cpus.to_string() },
        source => WorkloadError::Pin { cpus: cpus.to_string(), source },
    })
}

/// Bytes by node, of one piece of memory; `None` where the kernel does not tell.
pub(super) type OnNodes = Option<BTreeMap<u32, usize>>;

/// What is known of a piece of so many bytes: nothing where some of them are on no node.
pub(super) fn known(on: BTreeMap<u32, usize>, bytes: usize) -> OnNodes {
    let told: usize = on.values().sum();
    (told as f64 >= (1.0 - TOLERANCE) * bytes as f64).then_some(on)
}

/// Adds up pieces; `None` where one of them is unknown.
pub(super) fn sum(pieces: &[OnNodes]) -> OnNodes {
    let mut all = BTreeMap::new();
    for piece in pieces {
        for (node, bytes) in piece.as_ref()? {
            *all.entry(*node).or_insert(0) += bytes;
        }
    }
    Some(all)
}

/// The share of a node.
pub(super) fn share(on: &BTreeMap<u32, usize>, node: u32) -> f64 {
    let all: usize = on.values().sum();
    on.get(&node).copied().unwrap_or(0) as f64 / all.max(1) as f64
}

/// What of the tables and heaps does not lie where it was wanted, in words; empty where all of it does. Pieces on
/// pages of `page_bytes` may be uneven by one of them.
pub(super) fn misplaced(
    place: Place,
    seats: &Seats,
    page_bytes: usize,
    [tables, heaps]: [&[OnNodes]; 2],
) -> Vec<String> {
    let even = |name: &str, pieces: &[OnNodes]| -> Vec<String> {
        let wanted = 1.0 / seats.nodes.count() as f64;
        let check = |(index, piece): (usize, &OnNodes)| {
            let name = format!("{name} {index}");
            let Some(piece) = piece else { return Some(unknown(&name)) };
            let one_page = page_bytes as f64 / piece.values().sum::<usize>().max(1) as f64;
            let is_off = |node: &u32| (share(piece, *node) - wanted).abs() > TOLERANCE.max(one_page);
            seats.nodes.iter().find(is_off).map(|node| short(&name, piece, node, wanted))
        };
        pieces.iter().enumerate().filter_map(check).collect()
    };
    let local = |name: &str, pieces: &[OnNodes], of: &dyn Fn(usize) -> usize| -> Vec<String> {
        let check = |(index, piece): (usize, &OnNodes)| {
            let name = format!("{name} {index}");
            let node = seats.of(of(index)).node;
            match piece {
                Some(piece) if share(piece, node) >= 1.0 - TOLERANCE => None,
                Some(piece) => Some(short(&name, piece, node, 1.0)),
                None => Some(unknown(&name)),
            }
        };
        pieces.iter().enumerate().filter_map(check).collect()
    };
    let of_tables = match place {
        Place::Default | Place::ByOne => local("table", tables, &|table| place.filler(table)),
        Place::InterleaveAll | Place::InterleaveShared => even("table", tables),
    };
    let of_heaps = match place {
        Place::InterleaveAll => even("heap", heaps),
        Place::Default | Place::ByOne | Place::InterleaveShared => local("heap", heaps, &|thread| thread),
    };
    of_tables.into_iter().chain(of_heaps).collect()
}

fn short(name: &str, on: &BTreeMap<u32, usize>, node: u32, wanted: f64) -> String {
    let has = 100.0 * share(on, node);
    format!("{name}: {has:.1} % on node {node}, wanted {:.1} %", 100.0 * wanted)
}

fn unknown(name: &str) -> String {
    format!(
        "{name}: the kernel does not tell on which nodes it lies (from 6.1 to 6.4 Linux hides pages that \
         kernel.numa_balancing has marked: set it to 0 meanwhile)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(of: &[(u32, &[u32])], threads: Option<usize>) -> Seats {
        let of_node = of
            .iter()
            .map(|&(node, cpus)| (node, cpus.iter().map(|&cpu| Seat { cpu, node }).collect()))
            .collect();
        Seats::deal(&of_node, threads.and_then(NonZeroUsize::new)).expect("somebody can sit")
    }

    fn on(pages: &[(u32, usize)]) -> OnNodes {
        Some(pages.iter().copied().collect())
    }

    #[test]
    fn threads_are_dealt_to_nodes_in_turn() {
        let cpus = |seats: &Seats| (0..seats.count()).map(|thread| seats.of(thread).cpu).collect::<Vec<_>>();
        assert_eq!(cpus(&seats(&[(0, &[0, 1]), (1, &[2, 3])], None)), [0, 2, 1, 3]);
        assert_eq!(cpus(&seats(&[(0, &[0, 1, 2]), (2, &[3])], None)), [0, 3, 1, 2]);
        assert_eq!(cpus(&seats(&[(0, &[0, 1]), (1, &[2, 3])], Some(5))), [0, 2, 1, 3, 0]);
        assert!(Seats::deal(&BTreeMap::new(), None).is_none());
    }

    #[test]
    fn memory_where_it_is_not_wanted_is_named() {
        let two = seats(&[(0, &[0]), (1, &[1])], None);
        let own = [on(&[(0, 100)]), on(&[(1, 100)])];
        let one = [on(&[(0, 100)]), on(&[(0, 100)])];
        let even = [on(&[(0, 51), (1, 49)]), on(&[(0, 50), (1, 50)])];
        let told = |place, tables: &[OnNodes], heaps: &[OnNodes]| misplaced(place, &two, 1, [tables, heaps]);
        assert!(told(Place::Default, &own, &own).is_empty());
        assert!(told(Place::ByOne, &one, &own).is_empty());
        assert!(told(Place::InterleaveAll, &even, &even).is_empty());
        assert!(told(Place::InterleaveShared, &even, &own).is_empty());
        assert_eq!(told(Place::Default, &one, &own), ["table 1: 0.0 % on node 1, wanted 100.0 %"]);
        assert_eq!(told(Place::ByOne, &own, &own), ["table 1: 0.0 % on node 0, wanted 100.0 %"]);
        assert_eq!(told(Place::InterleaveShared, &one, &own).len(), 2, "no table is even");
        assert_eq!(told(Place::InterleaveShared, &even, &even).len(), 2, "no heap is local");
        assert_eq!(
            told(Place::InterleaveAll, &even, &own).len(),
            2,
            "that all heaps together are even is not it"
        );
        let unknown = [None, on(&[(1, 100)])];
        assert!(told(Place::Default, &unknown, &own)[0].contains("does not tell"));
        assert!(told(Place::InterleaveAll, &unknown, &even)[0].contains("does not tell"));
        // A heap of one huge page cannot be even.
        let heaps = [&even[..], &own[..]];
        assert!(misplaced(Place::InterleaveAll, &two, 100, heaps).is_empty());
    }

    #[test]
    fn a_piece_of_which_the_kernel_hides_pages_is_unknown() {
        let of = |bytes| known(BTreeMap::from([(0, 60), (1, 39)]), bytes);
        assert!(of(99).is_some() && of(100).is_some());
        assert_eq!((of(200), known(BTreeMap::new(), 1)), (None, None));
    }

    #[test]
    fn places_are_known_by_their_words() {
        for place in Place::ALL {
            assert_eq!(place.to_string().parse::<Place>().expect("its own word"), place);
        }
        let error = "interleave".parse::<Place>().expect_err("which of two");
        assert!(error.to_string().contains("interleave-shared"), "{error}");
    }
}
