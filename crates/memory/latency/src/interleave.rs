//! Memory of several nodes that is told as one, or as several that are in truth mixed.
//!
//! Firmware can deal pages out over the sockets and tell one node ("node interleaving"), and a hypervisor can place a
//! guest's nodes anywhere. Two signs betray it, both pure functions of latencies:
//!
//! - *Two heaps*: within the memory of one node, some pages are near and some are far.
//! - *Flat*: several nodes are told, and each is as far from its own CPUs as from those of the others.
//!
//! Limits: what is dealt out in pieces smaller than a page is uniform by page, and shows in the second sign alone.

use crate::figure::{Figure, Spread};
use crate::nodes::NodeCell;

/// What latencies say of the nodes that are told.
#[derive(Clone, Debug, PartialEq)]
pub enum Interleave {
    /// Nodes are what they are told to be.
    None {
        /// What says so.
        evidence: String,
    },
    /// The pages of a node lie in two heaps of different distance.
    TwoHeaps {
        /// What says so.
        evidence: String,
    },
    /// Several nodes, and no difference between near and far.
    Flat {
        /// What says so.
        evidence: String,
    },
    /// It cannot be said.
    Unknown {
        /// Why not.
        reason: String,
    },
}

/// Latencies that fall into two heaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoHeaps {
    /// Mean of the nearer heap, in nanoseconds.
    pub near_ns: f64,
    /// Mean of the farther heap.
    pub far_ns: f64,
    /// Share of the farther heap.
    pub far_share: f64,
    /// Share of the variance that lies between the heaps.
    pub between_share: f64,
}

/// Values of less than so many pages are no distribution.
const PAGES_MIN: usize = 64;
/// Of a normal distribution, the best cut puts 2/pi = 0.64 of the variance between its halves, of a uniform one 0.75,
/// of an exponential one 0.69.
const BETWEEN_MIN: f64 = 0.82;
/// A remote socket is slower by a third and more; below this, rows and banks of the memory can be the cause.
const RATIO_MIN: f64 = 1.15;
/// A heap of less is spikes. Of interleaved memory a node has its share: half of two, an eighth of eight.
const SHARE_MIN: f64 = 0.08;
/// Nodes of which near and far differ by less are alike.
const FLAT_MAX: f64 = 1.05;

/// Whether the latencies of pages fall into two heaps: by the cut that leaves the least variance within (Otsu 1979,
/// Fisher 1958). `None` where they are one.
pub fn two_heaps(page_ns: &[f64]) -> Option<TwoHeaps> {
    let mut sorted: Vec<f64> = page_ns.iter().copied().filter(|ns| ns.is_finite()).collect();
    if sorted.len() < PAGES_MIN {
        return None;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    // Single spikes have a large square; they belong to neither heap.
    let trimmed = sorted.len() / 100;
    let sorted = &sorted[..sorted.len() - trimmed];
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let variance = sorted.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>() / count;
    if variance <= 0.0 {
        return None;
    }
    let (mut below, mut best) = (0.0, None::<TwoHeaps>);
    for (index, ns) in sorted[..sorted.len() - 1].iter().enumerate() {
        below += ns;
        let near_count = (index + 1) as f64;
        let (near, far) = (below / near_count, (mean * count - below) / (count - near_count));
        let share = near_count / count;
        let between = share * (1.0 - share) * (far - near).powi(2) / variance;
        if best.is_none_or(|best| between > best.between_share) {
            best =
                Some(TwoHeaps { near_ns: near, far_ns: far, far_share: 1.0 - share, between_share: between });
        }
    }
    best.filter(|heaps| {
        let small = heaps.far_share.min(1.0 - heaps.far_share);
        heaps.between_share >= BETWEEN_MIN && heaps.far_ns >= RATIO_MIN * heaps.near_ns && small >= SHARE_MIN
    })
}

/// How far memory is from the CPUs of its own node, and from those of others, in nanoseconds: the mean over the nodes,
/// round by round. None where no such memory was measured.
pub fn near_and_far(cells: &[NodeCell], spread: Spread) -> (Option<Figure>, Option<Figure>) {
    let mean = |round: &[f64]| round.iter().sum::<f64>() / round.len() as f64;
    let figure = |is_local: bool| {
        let cells = cells.iter().filter(|cell| cell.is_local() == is_local && cell.latency_ns.is_ok());
        let rounds: Vec<&[f64]> = cells.map(|cell| cell.rounds_ns.as_slice()).collect();
        Figure::over(&rounds, spread, mean)
    };
    (figure(true), figure(false))
}

/// `118 ns (116 to 121)`
fn with_ends(figure: Figure) -> String {
    format!("{:.0} ns ({:.0} to {:.0})", figure.value, figure.low, figure.high)
}

/// What the cells of a node x node matrix and the pages of each node say.
pub fn of_nodes(cells: &[NodeCell], pages: &[(u32, Vec<f64>)], spread: Spread) -> Interleave {
    for (node, page_ns) in pages {
        if let Some(heaps) = two_heaps(page_ns) {
            let evidence = format!(
                "of {} pages of node {node}, {:.0} % answer after {:.0} ns and the others after {:.0} ns: the memory \
                 of several sockets is dealt out page by page behind one node",
                page_ns.len(),
                heaps.far_share * 100.0,
                heaps.far_ns,
                heaps.near_ns
            );
            return Interleave::TwoHeaps { evidence };
        }
    }
    let latency = |cell: &NodeCell| cell.latency_ns.as_ref().ok().copied();
    let near: Vec<_> = cells.iter().filter(|cell| cell.is_local()).filter_map(latency).collect();
    let far: Vec<_> = cells.iter().filter(|cell| !cell.is_local()).filter_map(latency).collect();
    let pages_seen: usize = pages.iter().map(|(_, page_ns)| page_ns.len()).sum();
    let uniform = format!("the latencies of {pages_seen} pages are one heap");
    if near.is_empty() || (far.is_empty() && pages_seen < PAGES_MIN) {
        let reason = "latencies of too few nodes and pages could be measured".to_owned();
        return Interleave::Unknown { reason };
    }
    if far.is_empty() {
        return Interleave::None { evidence: format!("one node is told, and {uniform}") };
    }
    let (Some(near_figure), Some(far_figure)) = near_and_far(cells, spread) else {
        return Interleave::Unknown { reason: "no round of the nodes came to an end".to_owned() };
    };
    let (near_told, far_told) = (with_ends(near_figure), with_ends(far_figure));
    // Each node beside its own CPUs: an average could hide one node that is apart.
    let overlap = far.iter().all(|far| near.iter().any(|near| far.low <= near.high * FLAT_MAX));
    if overlap && far_figure.value <= FLAT_MAX * near_figure.value {
        let evidence = format!(
            "several nodes are told, and memory is as far from its own CPUs, {near_told}, as from those of other \
             nodes, {far_told}: it is mixed below them, or an emulator shows nodes that it does not have"
        );
        return Interleave::Flat { evidence };
    }
    let evidence =
        format!("memory of other nodes takes {far_told} and of the own one {near_told}; {uniform}");
    Interleave::None { evidence }
}

#[cfg(test)]
mod tests {
    use planish_stats::Rng;

    use super::*;

    fn of_nodes(cells: &[NodeCell], pages: &[(u32, Vec<f64>)]) -> Interleave {
        super::of_nodes(cells, pages, Spread::Usual)
    }

    fn pages(count: usize, seed: u64, ns: impl Fn(usize, &mut Rng) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|index| ns(index, &mut rng)).collect()
    }

    fn cell(cpu_node: u32, memory_node: u32, ns: f64) -> NodeCell {
        let rounds_ns: Vec<f64> = (0..15).map(|round| ns * (1.0 + f64::from(round - 7) / 400.0)).collect();
        let figure = Figure::of(&rounds_ns, Spread::Usual).expect("rounds");
        NodeCell {
            cpu_node,
            memory_node,
            cpu: cpu_node,
            threads: 1,
            distance: None,
            latency_ns: Ok(figure),
            rounds_ns,
            read_bytes_per_s: Ok(figure),
        }
    }

    #[test]
    fn pages_of_two_sockets_are_two_heaps() {
        for (share, seed) in [(0.5, 1), (0.25, 2), (0.125, 3), (0.8, 4)] {
            let two = pages(4096, seed, |_, rng| {
                let far = if rng.chance(share) { 145.0 } else { 92.0 };
                far + 5.0 * rng.normal() + rng.exponential(3.0)
            });
            let heaps = two_heaps(&two).expect("two heaps");
            assert!((heaps.far_share - share).abs() < 0.03, "{heaps:?}");
            assert!((heaps.near_ns - 95.0).abs() < 4.0 && (heaps.far_ns - 148.0).abs() < 4.0, "{heaps:?}");
        }
    }

    #[test]
    fn one_heap_is_one_however_it_leans() {
        type Draw = fn(&mut Rng) -> f64;
        let shapes: [(&str, Draw); 6] = [
            ("normal", |rng| 95.0 + 10.0 * rng.normal()),
            ("uniform", |rng| 80.0 + 60.0 * rng.uniform()),
            ("a long tail", |rng| 80.0 + rng.exponential(40.0)),
            ("lognormal", |rng| 90.0 * (0.4 * rng.normal()).exp()),
            ("spikes", |rng| if rng.chance(0.03) { 900.0 } else { 95.0 + 4.0 * rng.normal() }),
            ("a narrow pair of banks", |rng| 90.0 + if rng.coin() { 6.0 } else { 0.0 } + 0.5 * rng.normal()),
        ];
        for (name, draw) in shapes {
            for seed in 0..20 {
                let one = pages(4096, seed, |_, rng| draw(rng));
                assert_eq!(two_heaps(&one), None, "{name}, seed {seed}");
            }
        }
        assert_eq!(two_heaps(&[90.0; 4096]), None);
        assert_eq!(
            two_heaps(&pages(40, 1, |index, _| if index % 2 == 0 { 90.0 } else { 150.0 })),
            None,
            "too few"
        );
    }

    #[test]
    fn nodes_that_are_alike_from_both_sides_are_told() {
        let one_heap = vec![(0, pages(4096, 1, |_, rng| 95.0 + 5.0 * rng.normal()))];
        let real = [cell(0, 0, 90.0), cell(0, 1, 140.0), cell(1, 0, 141.0), cell(1, 1, 91.0)];
        assert!(matches!(of_nodes(&real, &one_heap), Interleave::None { .. }));
        let flat = [cell(0, 0, 118.0), cell(0, 1, 119.0), cell(1, 0, 120.0), cell(1, 1, 119.0)];
        let said = of_nodes(&flat, &one_heap);
        assert!(
            matches!(&said, Interleave::Flat { evidence } if evidence.contains("CPUs, 118 ns (117 to 120), as")),
            "{said:?}"
        );
        let (near, far) = near_and_far(&real, Spread::Usual);
        let told =
            [near, far].map(|figure| figure.map(|it| (it.value, it.low < it.value, it.high > it.value)));
        assert_eq!(told, [Some((90.5, true, true)), Some((140.5, true, true))]);
        assert_eq!(near_and_far(&real[..1], Spread::Usual).1, None, "one node has no other");
        // One of four that is apart is enough for the nodes to be real.
        let mut some = flat.to_vec();
        some.push(cell(0, 2, 320.0));
        assert!(matches!(of_nodes(&some, &one_heap), Interleave::None { .. }));
    }

    #[test]
    fn one_node_is_judged_by_its_pages() {
        let cells = [cell(0, 0, 95.0)];
        let mixed =
            pages(2048, 5, |index, rng| if index % 2 == 0 { 90.0 } else { 150.0 } + 3.0 * rng.normal());
        let said = of_nodes(&cells, &[(0, mixed)]);
        assert!(matches!(&said, Interleave::TwoHeaps { evidence } if evidence.contains("50 %")), "{said:?}");
        let plain = pages(2048, 6, |_, rng| 95.0 + 3.0 * rng.normal());
        assert!(matches!(of_nodes(&cells, &[(0, plain)]), Interleave::None { .. }));
        assert!(matches!(of_nodes(&cells, &[]), Interleave::Unknown { .. }));
        assert!(matches!(of_nodes(&[], &[]), Interleave::Unknown { .. }));
    }
}
