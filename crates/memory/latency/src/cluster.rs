//! Which CPUs are near each other, by the round trips alone; and what sysfs says of it.
//!
//! ```text
//! sorted round trips   46 47 48 49  |  205 210 214 ...     a step of a quarter or more is a border
//! nearer than it       CPUs that hang together by such pairs are a cluster,
//! believed             if nearly all of their pairs are that near; else the border is an accident of noise
//! ```
//!
//! Each border that is believed is a level: hardware threads of a core, cores of a cache, of a package. Pure.

use planish_sorted::SortSmall as _;
use planish_sys::CpuSet;
use planish_topo::Topology;

use crate::figure::{Figure, Spread};
use crate::pairs::PairRow;

/// CPUs that are near each other.
pub type Cluster = CpuSet;

/// Clusters within which round trips are shorter than between them.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterLevel {
    /// The clusters, by their first CPU; some may be of one CPU.
    pub clusters: Vec<Cluster>,
    /// Median round trip of pairs within a cluster, in nanoseconds, round by round.
    pub within_ns: Figure,
    /// Median round trip of pairs that this border parts and the next larger one does not.
    pub between_ns: Figure,
    /// Parts of the machine, as sysfs tells them, that are the same clusters: `core`, `L3`, `package`; none where sysfs
    /// knows nothing of them.
    pub sysfs: Vec<String>,
}

/// A way in which sysfs parts the CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// What it is called: `core`, `L2`, `cluster`, `L3`, `die`, `package`, `node`.
    pub name: String,
    /// Its parts, by their first CPU.
    pub parts: Vec<Cluster>,
}

/// How much longer the next round trip must be for a border to lie before it.
const STEP: f64 = 1.25;
/// The share of pairs in clusters that must be nearer than the border.
const NEAR_MIN: f64 = 0.95;

/// The levels of clusters that round trips show, finest first. None where all pairs are alike, or there are no two
/// pairs to compare.
pub fn clusters(rows: &[PairRow], partitions: &[Partition], spread: Spread) -> Vec<ClusterLevel> {
    let told = |row: &PairRow| row.round_trip_ns.as_ref().ok().map(|figure| figure.value);
    let mut rows: Vec<(&PairRow, f64)> = rows.iter().filter_map(|row| Some((row, told(row)?))).collect();
    rows.sort_small_by(|one, other| one.1.total_cmp(&other.1));
    let pairs: Vec<(u32, u32, f64)> = rows.iter().map(|(row, ns)| (row.first, row.second, *ns)).collect();
    let all: CpuSet = pairs.iter().flat_map(|&(first, second, _)| [first, second]).collect();
    let borders = pairs.windows(2).enumerate().filter(|(_, two)| two[1].2 >= two[0].2 * STEP);
    let mut levels: Vec<(usize, Vec<Cluster>)> = Vec::new();
    for (index, _) in borders {
        let near = &pairs[..=index];
        let clusters = components(near, &all);
        let inside = |(first, second, _): &&(u32, u32, f64)| {
            clusters.iter().any(|cluster| cluster.contains(*first) && cluster.contains(*second))
        };
        let inside_count = pairs.iter().filter(inside).count();
        let believed = near.len() as f64 >= NEAR_MIN * inside_count as f64;
        let parts_them = clusters.len() > 1 && clusters.len() < all.count();
        let is_new = levels.last().is_none_or(|(_, last)| *last != clusters);
        if believed && parts_them && is_new {
            levels.push((index, clusters));
        }
    }
    let ends = levels.iter().skip(1).map(|(index, _)| index + 1).chain([pairs.len()]);
    let begins = [0].into_iter().chain(levels.iter().map(|(index, _)| index + 1));
    let told = levels.iter().zip(begins).zip(ends);
    told.map(|(((border, clusters), begin), end)| ClusterLevel {
        within_ns: middle(&rows[begin..=*border], spread),
        between_ns: middle(&rows[border + 1..end], spread),
        sysfs: same(clusters, partitions, &all),
        clusters: clusters.clone(),
    })
    .collect()
}

/// The median of some pairs in each round, and of these medians the figure.
fn middle(rows: &[(&PairRow, f64)], spread: Spread) -> Figure {
    let rounds: Vec<&[f64]> = rows.iter().map(|(row, _)| row.rounds_ns.as_slice()).collect();
    let median = |round: &[f64]| Figure::of(round, Spread::Usual).map_or(f64::NAN, |figure| figure.value);
    Figure::over(&rounds, spread, median).expect("a pair with a figure has rounds")
}

/// CPUs that hang together by these pairs.
fn components(near: &[(u32, u32, f64)], all: &CpuSet) -> Vec<Cluster> {
    let mut parts: Vec<CpuSet> = all.iter().map(|cpu| [cpu].into_iter().collect()).collect();
    for &(first, second, _) in near {
        let of =
            |cpu: u32| parts.iter().position(|part| part.contains(cpu)).expect("each CPU is in one part");
        let (one, other) = (of(first), of(second));
        if one != other {
            let taken = parts.swap_remove(one.max(other));
            let kept = &mut parts[one.min(other)];
            *kept = kept.union(&taken);
        }
    }
    parts.sort_small_by_key(CpuSet::first);
    parts
}

/// The names of the partitions that part these CPUs in the same way.
fn same(clusters: &[Cluster], partitions: &[Partition], all: &CpuSet) -> Vec<String> {
    let is_same = |partition: &&Partition| {
        let mut parts: Vec<CpuSet> = partition.parts.iter().map(|part| part.intersection(all)).collect();
        parts.retain(|part| !part.is_empty());
        parts.sort_small_by_key(CpuSet::first);
        parts == clusters
    };
    partitions.iter().filter(is_same).map(|partition| partition.name.clone()).collect()
}

/// How sysfs parts the CPUs of `cpus`, finest first; without those that part nothing, or each CPU from each other.
pub fn told_partitions(topology: &Topology, cpus: &[u32]) -> Vec<Partition> {
    let cpus: CpuSet = cpus.iter().copied().collect();
    let mut all = vec![part_by(topology, "core", |cpu| Some(cpu.threads.clone()))];
    let mut levels: Vec<u32> = topology.caches.iter().map(|cache| cache.level).collect();
    levels.sort_unstable();
    levels.dedup();
    for level in levels {
        let of_level = topology.caches.iter().filter(|cache| cache.level == level);
        let parts = of_level.map(|cache| cache.cpus.clone()).collect();
        all.push(Partition { name: format!("L{level}"), parts });
    }
    let numbered = |name: &str, number: fn(&planish_topo::Cpu) -> Option<(u32, u32)>| {
        part_by(topology, name, |cpu| {
            let own = number(cpu)?;
            Some(
                topology
                    .cpus
                    .iter()
                    .filter(|other| number(other) == Some(own))
                    .map(|other| other.id)
                    .collect(),
            )
        })
    };
    all.push(numbered("cluster", |cpu| Some((cpu.package?, cpu.cluster?))));
    all.push(numbered("die", |cpu| Some((cpu.package?, cpu.die?))));
    all.push(numbered("package", |cpu| Some((cpu.package?, 0))));
    all.push(numbered("node", |cpu| Some((cpu.node?, 0))));
    for partition in &mut all {
        partition.parts = partition.parts.iter().map(|part| part.intersection(&cpus)).collect();
        partition.parts.retain(|part| !part.is_empty());
        partition.parts.sort_small_by_key(|part| (part.first(), part.count()));
        partition.parts.dedup();
    }
    all.retain(|partition| {
        let covered: usize = partition.parts.iter().map(CpuSet::count).sum();
        covered == cpus.count() && (2..cpus.count()).contains(&partition.parts.len())
    });
    all
}

fn part_by(
    topology: &Topology,
    name: &str,
    part: impl Fn(&planish_topo::Cpu) -> Option<CpuSet>,
) -> Partition {
    let online = topology.cpus.iter().filter(|cpu| cpu.online);
    Partition { name: name.to_owned(), parts: online.filter_map(part).collect() }
}

#[cfg(test)]
mod tests {
    use planish_host::Host;
    use planish_stats::Rng;
    use proptest::prelude::*;

    use super::*;

    fn clusters(rows: &[PairRow], partitions: &[Partition]) -> Vec<ClusterLevel> {
        super::clusters(rows, partitions, Spread::Usual)
    }

    /// Rounds of a nanosecond up and down.
    fn row(first: u32, second: u32, ns: f64) -> PairRow {
        let rounds_ns: Vec<f64> = (0..15).map(|round| ns + f64::from(round - 7) / 7.0).collect();
        let figure = Figure::of(&rounds_ns, Spread::Usual).expect("rounds");
        PairRow { first, second, round_trip_ns: Ok(figure), rounds_ns }
    }

    /// Round trips of `cpus` CPUs by a rule, each off by up to `noise`.
    fn machine(cpus: u32, noise: f64, seed: u64, ns: impl Fn(u32, u32) -> f64) -> Vec<PairRow> {
        let mut rng = Rng::new(seed);
        let pairs = (0..cpus).flat_map(|first| (first + 1..cpus).map(move |second| (first, second)));
        pairs
            .map(|(first, second)| {
                row(first, second, ns(first, second) * (1.0 + noise * (2.0 * rng.uniform() - 1.0)))
            })
            .collect()
    }

    fn lists(level: &ClusterLevel) -> Vec<String> {
        level.clusters.iter().map(ToString::to_string).collect()
    }

    /// A server of two sockets with two caches each, two cores a cache and two threads a core: thread 2 of core c is
    /// CPU c + 8, as kernels number them.
    fn server(first: u32, second: u32) -> f64 {
        let core = |cpu: u32| cpu % 8;
        match (core(first), core(second)) {
            (one, other) if one == other => 20.0,
            (one, other) if one / 2 == other / 2 => 48.0,
            (one, other) if one / 4 == other / 4 => 190.0,
            _ => 400.0,
        }
    }

    #[test]
    fn threads_caches_and_sockets_are_found() {
        let levels = clusters(&machine(16, 0.08, 1, server), &[]);
        assert_eq!(levels.len(), 3, "{levels:?}");
        assert_eq!(lists(&levels[0])[..2], ["0,8", "1,9"]);
        assert_eq!(lists(&levels[1]), ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]);
        assert_eq!(lists(&levels[2]), ["0-3,8-11", "4-7,12-15"]);
        let near = |figure: Figure, wanted: f64| (figure.value / wanted - 1.0).abs() < 0.09;
        assert!(near(levels[0].within_ns, 20.0) && near(levels[0].between_ns, 48.0), "{levels:?}");
        assert!(near(levels[1].within_ns, 48.0) && near(levels[2].between_ns, 400.0), "{levels:?}");
    }

    #[test]
    fn distances_within_and_between_have_intervals() {
        let rows = machine(8, 0.0, 1, |one, other| if one / 4 == other / 4 { 50.0 } else { 200.0 });
        let level = &clusters(&rows, &[])[0];
        let (within, between) = (level.within_ns, level.between_ns);
        assert_eq!((within.value, between.value, within.rounds), (50.0, 200.0, 15));
        let ends = |figure: Figure| (figure.value - figure.low, figure.high - figure.value);
        for (below, above) in [ends(within), ends(between)] {
            assert!(
                (below - 4.0 / 7.0).abs() < 1e-9 && (above - 4.0 / 7.0).abs() < 1e-9,
                "4th and 12th of 15"
            );
        }
        let whole = &super::clusters(&rows, &[], Spread::Whole)[0];
        assert!(whole.within_ns.low < within.low && whole.between_ns.high > between.high, "not quiet");
    }

    #[test]
    fn sysfs_is_agreed_with_or_not() {
        let part = |name: &str, lists: &[&str]| Partition {
            name: name.to_owned(),
            parts: lists.iter().map(|list| CpuSet::parse_list(list).expect("a list")).collect(),
        };
        let told = [
            part("core", &["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"]),
            // A hypervisor that tells one cache for all.
            part("L3", &["0-15"]),
            part("package", &["4-7,12-15", "0-3,8-11"]),
            part("node", &["0-3,8-11,90", "4-7,12-15", "91"]),
        ];
        let levels = clusters(&machine(16, 0.05, 2, server), &told);
        assert_eq!(levels[0].sysfs, ["core"]);
        assert_eq!(levels[1].sysfs, Vec::<String>::new(), "nobody told of the caches");
        assert_eq!(
            levels[2].sysfs,
            ["package", "node"],
            "whatever their order, and without CPUs not measured"
        );
    }

    #[test]
    fn alike_pairs_and_too_few_of_them_have_no_clusters() {
        assert_eq!(clusters(&machine(8, 0.1, 3, |_, _| 50.0), &[]), []);
        assert_eq!(clusters(&[row(0, 1, 80.0)], &[]), []);
        assert_eq!(clusters(&[], &[]), []);
    }

    #[test]
    fn a_slow_pair_or_two_make_no_border() {
        let mut rows = machine(8, 0.05, 4, |_, _| 50.0);
        rows[3].round_trip_ns = row(0, 4, 900.0).round_trip_ns;
        rows[9].round_trip_ns = Err("no round came to an end".to_owned());
        rows[9].rounds_ns.clear();
        assert_eq!(clusters(&rows, &[]), [], "seven of eight CPUs are as near to it as before");
    }

    #[test]
    fn a_cluster_may_be_one_cpu() {
        let levels = clusters(&machine(3, 0.0, 5, |_, second| if second == 2 { 300.0 } else { 60.0 }), &[]);
        assert_eq!(levels.iter().map(lists).collect::<Vec<_>>(), [["0-1", "2"]]);
    }

    #[test]
    fn sysfs_of_this_machine_is_told_without_what_parts_nothing() {
        let topology = Topology::read(&Host::live());
        let cpus: Vec<u32> = topology.allowed().iter().collect();
        for partition in told_partitions(&topology, &cpus) {
            assert!((2..cpus.len()).contains(&partition.parts.len()), "{partition:?}");
        }
    }

    proptest! {
        #[test]
        fn equal_clusters_of_any_size_are_found_under_noise(
            groups in 2_u32..6, size in 2_u32..6, noise in 0.0..0.1_f64, ratio in 1.6..6.0_f64, seed in 0_u64..500,
        ) {
            let ns = |one: u32, other: u32| if one / size == other / size { 50.0 } else { 50.0 * ratio };
            let levels = clusters(&machine(groups * size, noise, seed, ns), &[]);
            prop_assert_eq!(levels.len(), 1);
            let wanted: Vec<CpuSet> = (0..groups).map(|group| (group * size..(group + 1) * size).collect()).collect();
            prop_assert_eq!(&levels[0].clusters, &wanted);
        }
    }
}
