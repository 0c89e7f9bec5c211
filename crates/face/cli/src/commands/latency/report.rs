//! What was measured, as the report that is printed.

use planish_latency::{
    ClusterLevel, Figure, Interleave, NodeCell, NodeFigures, PageRow, PairRow, Partition, Quiet,
};
use planish_report::{
    LatencyBacking, LatencyClusters, LatencyFigure, LatencyInterleave, LatencyInterleaveVerdict, LatencyNode,
    LatencyPage, LatencyPair, LatencyPartition, LatencyQuiet, LatencyReport,
};
use planish_sys::CpuSet;

/// Everything that a report is made of.
pub(super) struct Measured<'a> {
    pub quiet: &'a Quiet,
    pub cpus: &'a [u32],
    pub rounds: u64,
    pub seed: u64,
    pub seconds: f64,
    pub pairs: &'a [PairRow],
    pub levels: &'a [ClusterLevel],
    pub partitions: &'a [Partition],
    pub nodes: &'a NodeFigures,
    pub interleave: &'a Interleave,
    /// To the memory of the own node, and to that of others.
    pub distances: (Option<Figure>, Option<Figure>),
    pub pages: &'a [PageRow],
}

pub(super) fn of(measured: Measured<'_>) -> LatencyReport {
    let Measured { levels, partitions, nodes, .. } = measured;
    let backing = nodes.backing.iter().flat_map(|(node, parts)| {
        let share = |(backing, bytes): &(String, u64)| LatencyBacking {
            node: *node,
            backing: backing.clone(),
            bytes: *bytes,
        };
        parts.iter().map(share)
    });
    LatencyReport {
        quiet: quiet(measured.quiet),
        cpus: list(measured.cpus),
        rounds: measured.rounds,
        seed: measured.seed,
        seconds: measured.seconds,
        pairs: measured.pairs.iter().map(pair).collect(),
        clusters: levels.iter().map(level).collect(),
        sysfs: partitions.iter().map(|it| partition(it, levels)).collect(),
        nodes: nodes.cells.iter().map(node).collect(),
        node_backing: backing.collect(),
        interleave: interleave(measured.interleave, measured.distances),
        pages: measured.pages.iter().map(page).collect(),
    }
}

/// CPUs in the form of a list.
pub(super) fn list(cpus: &[u32]) -> String {
    cpus.iter().copied().collect::<CpuSet>().to_string()
}

pub(super) fn figure(figure: &Figure) -> LatencyFigure {
    let Figure { value, low, high, level, rounds } = *figure;
    LatencyFigure { value, low, high, level, rounds: rounds as u64 }
}

pub(super) fn quiet(quiet: &Quiet) -> LatencyQuiet {
    LatencyQuiet {
        quiet: quiet.is_quiet(),
        reasons: quiet.reasons.clone(),
        seconds: quiet.seconds,
        steal_share: quiet.steal_share,
        busy_share: quiet.busy_share,
        pressure_share: quiet.pressure_share,
        runnable: quiet.runnable,
        load_1m: quiet.load_1m,
    }
}

fn pair(pair: &PairRow) -> LatencyPair {
    LatencyPair {
        first: pair.first,
        second: pair.second,
        round_trip_ns: pair.round_trip_ns.as_ref().ok().map(figure),
        why: pair.round_trip_ns.as_ref().err().cloned(),
    }
}

fn level(level: &ClusterLevel) -> LatencyClusters {
    LatencyClusters {
        clusters: level.clusters.iter().map(ToString::to_string).collect(),
        within_ns: figure(&level.within_ns),
        between_ns: figure(&level.between_ns),
        sysfs: level.sysfs.clone(),
    }
}

fn partition(partition: &Partition, levels: &[ClusterLevel]) -> LatencyPartition {
    LatencyPartition {
        name: partition.name.clone(),
        parts: partition.parts.iter().map(ToString::to_string).collect(),
        seen: levels.iter().any(|level| level.sysfs.contains(&partition.name)),
    }
}

fn node(cell: &NodeCell) -> LatencyNode {
    LatencyNode {
        cpu_node: cell.cpu_node,
        memory_node: cell.memory_node,
        cpu: cell.cpu,
        threads: cell.threads as u64,
        distance: cell.distance,
        load_ns: cell.latency_ns.as_ref().ok().map(figure),
        read_bytes_per_s: cell.read_bytes_per_s.as_ref().ok().map(figure),
        why: cell.latency_ns.as_ref().err().cloned(),
    }
}

fn interleave(interleave: &Interleave, (near, far): (Option<Figure>, Option<Figure>)) -> LatencyInterleave {
    let (verdict, evidence) = match interleave {
        Interleave::None { evidence } => (LatencyInterleaveVerdict::None, evidence),
        Interleave::TwoHeaps { evidence } => (LatencyInterleaveVerdict::TwoHeaps, evidence),
        Interleave::Flat { evidence } => (LatencyInterleaveVerdict::Flat, evidence),
        Interleave::Unknown { reason } => (LatencyInterleaveVerdict::Unknown, reason),
    };
    let (near_ns, far_ns) = (near.as_ref().map(figure), far.as_ref().map(figure));
    LatencyInterleave { verdict, evidence: evidence.clone(), near_ns, far_ns }
}

fn page(row: &PageRow) -> LatencyPage {
    let (figures, failed) = (row.figures.as_ref().ok(), row.figures.as_ref().err());
    LatencyPage {
        backing: row.backing.clone(),
        page_bytes: row.page_bytes,
        load_ns: figures.map(|figures| figure(&figures.load_ns)),
        of_base: figures.and_then(|figures| figures.of_base.as_ref()).map(figure),
        achieved_bytes: figures.map_or(0, |figures| figures.achieved_bytes),
        why: failed.map(|(why, _)| why.clone()),
        cure: failed.map(|(_, cure)| cure.clone()),
    }
}
