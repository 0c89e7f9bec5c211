//! From two samples to what a person reads: rates, shares, costs. Pure: a recording comes to the same.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Numastat, ProcessSample, Sample};

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TopRow {
    /// Its PID.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
    /// Owner (effective user); null while its status was not read.
    pub user: Option<u32>,
    /// Threads.
    pub threads: u32,
    /// CPUs that it kept busy since the sample before; null in the first.
    pub cpus: Option<f64>,
    /// Resident bytes, pages of a pool included as soon as its status was read.
    pub resident_bytes: u64,
    /// Share of its memory that is remote to its threads; null where nobody looked.
    pub remote_share: Option<f64>,
    /// Bytes of page tables; null while its status was not read.
    pub page_table_bytes: Option<u64>,
    /// The same for each resident byte.
    pub page_table_share: Option<f64>,
    /// Share of its memory on huge pages that are mapped as such; null while it was not walked.
    pub huge_share: Option<f64>,
    /// Seconds since the walk that told it.
    pub huge_age_s: Option<f64>,
    /// Bytes in swap; null while its status was not read.
    pub swapped_bytes: Option<u64>,
    /// Page faults in a second, of both kinds; null in the first sample.
    pub faults_per_s: Option<f64>,
    /// Of these, those that waited for a disk.
    pub major_faults_per_s: Option<f64>,
}

/// A pool of huge pages on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TopPool {
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Pages.
    pub pages: u64,
    /// Of these, free.
    pub free_pages: u64,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TopNode {
    /// Its number; null for a machine whose kernel knows no nodes.
    pub node: Option<u32>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Of this, used.
    pub used_bytes: u64,
    /// Of this, free.
    pub free_bytes: u64,
    /// On transparent huge pages.
    pub thp_bytes: u64,
    /// Its pools of huge pages, by size.
    pub pools: Vec<TopPool>,
    /// Pages in a second that were wanted here and got here; null in the first sample, as the next three.
    pub hit_per_s: Option<f64>,
    /// Got here because the node that was wanted had none.
    pub miss_per_s: Option<f64>,
    /// Wanted here and got elsewhere.
    pub foreign_per_s: Option<f64>,
    /// Got here by a thread that ran on another node.
    pub other_per_s: Option<f64>,
    /// Loads of its CPUs in a second that its own memory answered; null without a PMU, as the next three.
    pub local_loads_per_s: Option<f64>,
    /// Loads of its CPUs that memory of another node answered.
    pub remote_loads_per_s: Option<f64>,
    /// Bytes in a second that those local loads brought. Prefetches and stores are not in it.
    pub local_bytes_per_s: Option<f64>,
    /// Bytes in a second that those remote loads brought.
    pub remote_bytes_per_s: Option<f64>,
    /// Bytes in a second that its memory controllers read, for whomever; null where they are not counted, as the next.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes in a second that they wrote.
    pub written_bytes_per_s: Option<f64>,
}

/// Seconds from one sample to the next; `None` where no time has passed.
fn seconds(sample: &Sample, before: Option<&Sample>) -> Option<f64> {
    let passed = sample.at_ms.checked_sub(before?.at_ms)?;
    (passed > 0).then(|| passed as f64 / 1000.0)
}

/// What a counter has grown by in a second. One that fell began anew.
fn rate(now: u64, before: u64, seconds: f64) -> f64 {
    now.saturating_sub(before) as f64 / seconds
}

/// The processes of `sample`, by PID; rates are those since `before`.
#[must_use]
pub fn rows(sample: &Sample, before: Option<&Sample>) -> Vec<TopRow> {
    let passed = seconds(sample, before);
    let earlier: HashMap<(u32, u64), &ProcessSample> = before
        .iter()
        .flat_map(|before| &before.processes)
        .map(|process| ((process.pid, process.start_ticks), process))
        .collect();
    let of = |process: &ProcessSample| {
        let then = earlier.get(&(process.pid, process.start_ticks)).copied();
        row(process, then.zip(passed), sample)
    };
    sample.processes.iter().map(of).collect()
}

fn row(process: &ProcessSample, then: Option<(&ProcessSample, f64)>, sample: &Sample) -> TopRow {
    let status = process.status.as_ref();
    let pool_bytes = status.map_or(0, |status| status.hugetlb_bytes);
    let resident_bytes = process.resident_bytes.saturating_add(pool_bytes);
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let walk = process.walk.as_ref();
    let huge = |walk: &super::WalkSample| {
        share(walk.thp_bytes.saturating_add(walk.hugetlb_bytes), walk.resident_bytes)
    };
    let grown =
        |of: fn(&ProcessSample) -> u64| then.map(|(then, seconds)| rate(of(process), of(then), seconds));
    let faults = |of: &ProcessSample| of.minor_faults.saturating_add(of.major_faults);
    TopRow {
        pid: process.pid,
        name: process.name.clone(),
        user: status.and_then(|status| status.user),
        threads: process.threads,
        cpus: grown(|of| of.cpu_ticks).map(|ticks| ticks / sample.ticks_per_s.max(1) as f64),
        resident_bytes,
        remote_share: process.places.as_ref().map(|places| 1.0 - places.local_share),
        page_table_bytes: status.map(|status| status.page_table_bytes),
        page_table_share: status.and_then(|status| share(status.page_table_bytes, resident_bytes)),
        huge_share: walk.and_then(huge),
        huge_age_s: walk.map(|walk| sample.at_ms.saturating_sub(walk.at_ms) as f64 / 1000.0),
        swapped_bytes: status.map(|status| status.swapped_bytes),
        faults_per_s: grown(faults),
        major_faults_per_s: grown(|of| of.major_faults),
    }
}

/// The nodes of `sample`; rates are those since `before`.
#[must_use]
pub fn nodes(sample: &Sample, before: Option<&Sample>) -> Vec<TopNode> {
    let passed = seconds(sample, before);
    let of = |node: &super::NodeSample| {
        let then = before.and_then(|before| before.nodes.iter().find(|then| then.node == node.node));
        let stats = node.numastat.zip(then.and_then(|then| then.numastat)).zip(passed);
        let grown =
            |of: fn(&Numastat) -> u64| stats.map(|((now, then), seconds)| rate(of(&now), of(&then), seconds));
        let loads = loads_per_s(sample, before, node.node, passed);
        let line = sample.loads.line_bytes as f64;
        let bandwidth = bandwidth(sample, before, node.node, passed);
        let pool = |pool: &super::PoolSample| TopPool {
            page_bytes: pool.page_bytes,
            pages: pool.pages,
            free_pages: pool.free_pages,
        };
        TopNode {
            node: node.node,
            memory_bytes: node.memory_bytes,
            used_bytes: node.memory_bytes.saturating_sub(node.free_bytes),
            free_bytes: node.free_bytes,
            thp_bytes: node.thp_bytes,
            pools: node.pools.iter().map(pool).collect(),
            hit_per_s: grown(|it| it.hit),
            miss_per_s: grown(|it| it.miss),
            foreign_per_s: grown(|it| it.foreign),
            other_per_s: grown(|it| it.other),
            local_loads_per_s: loads.map(|(local, _)| local),
            remote_loads_per_s: loads.map(|(_, remote)| remote),
            local_bytes_per_s: loads.map(|(local, _)| local * line),
            remote_bytes_per_s: loads.map(|(_, remote)| remote * line),
            read_bytes_per_s: bandwidth.map(|(read, _)| read),
            written_bytes_per_s: bandwidth.map(|(_, written)| written),
        }
    };
    sample.nodes.iter().map(of).collect()
}

/// Local and remote loads in a second of the CPUs of one node.
fn loads_per_s(
    sample: &Sample,
    before: Option<&Sample>,
    node: Option<u32>,
    passed: Option<f64>,
) -> Option<(f64, f64)> {
    let of = |sample: &Sample| sample.loads.nodes.iter().find(|loads| Some(loads.node) == node).copied();
    let (now, then, seconds) = (of(sample)?, of(before?)?, passed?);
    // Extrapolated counts may fall by a little.
    let rate = |now: f64, then: f64| (now - then).max(0.0) / seconds;
    Some((rate(now.local, then.local), rate(now.remote, then.remote)))
}

/// Bytes in a second that the controllers of one node read and wrote.
fn bandwidth(
    sample: &Sample,
    before: Option<&Sample>,
    node: Option<u32>,
    passed: Option<f64>,
) -> Option<(f64, f64)> {
    let of = |sample: &Sample| sample.bandwidth.nodes.iter().find(|counted| counted.node == node).copied();
    let (now, then, seconds) = (of(sample)?, of(before?)?, passed?);
    let rate = |now: f64, then: f64| (now - then).max(0.0) / seconds;
    Some((rate(now.read_bytes, then.read_bytes), rate(now.written_bytes, then.written_bytes)))
}

#[cfg(test)]
mod tests {
    use super::super::{
        Bandwidth, Loads, NodeBandwidthSample, NodeLoadsSample, NodeSample, PlacesSample, Reads,
        SAMPLE_SCHEMA, StatusSample, WalkSample,
    };
    use super::*;

    fn process(pid: u32, start_ticks: u64, cpu_ticks: u64, faults: u64) -> ProcessSample {
        ProcessSample {
            pid,
            start_ticks,
            name: "x".to_owned(),
            threads: 1,
            cpu: None,
            cpu_ticks,
            minor_faults: faults,
            major_faults: faults / 10,
            resident_bytes: 3000,
            status: None,
            walk: None,
            places: None,
        }
    }

    fn sample(at_ms: u64, processes: Vec<ProcessSample>) -> Sample {
        Sample {
            schema: SAMPLE_SCHEMA.to_owned(),
            unix_seconds: None,
            at_ms,
            ticks_per_s: 100,
            memory_nodes: 2,
            processes,
            kernel_threads: 0,
            nodes: Vec::new(),
            loads: Loads::default(),
            bandwidth: Bandwidth::default(),
            reads: Reads::default(),
            unseen: Vec::new(),
        }
    }

    #[test]
    fn rates_are_of_the_same_process_and_a_new_one_with_its_pid_has_none() {
        let before = sample(1000, vec![process(1, 5, 100, 1000), process(2, 5, 100, 1000)]);
        let after =
            sample(3000, vec![process(1, 5, 400, 1500), process(2, 6, 400, 1500), process(3, 5, 9, 9)]);
        let told = rows(&after, Some(&before));
        assert_eq!((told[0].cpus, told[0].faults_per_s), (Some(1.5), Some(275.0)));
        assert_eq!(told[0].major_faults_per_s, Some(25.0));
        assert!(told[1..].iter().all(|row| row.cpus.is_none() && row.faults_per_s.is_none()));
        // Without a sample before, or with none that is older, nothing is divided by nothing.
        assert!(rows(&after, None).iter().all(|row| row.cpus.is_none()));
        assert!(rows(&after, Some(&after)).iter().all(|row| row.cpus.is_none()));
        // A counter that fell began anew.
        assert_eq!(rows(&sample(5000, before.processes.clone()), Some(&after))[0].cpus, Some(0.0));
    }

    #[test]
    fn shares_are_of_what_was_read_and_nothing_is_made_up() {
        let mut seen = process(1, 5, 0, 0);
        seen.status = Some(StatusSample {
            at_ms: 0,
            user: Some(7),
            page_table_bytes: 40,
            swapped_bytes: 9,
            hugetlb_bytes: 1000,
        });
        seen.walk =
            Some(WalkSample { at_ms: 500, resident_bytes: 8000, thp_bytes: 1000, hugetlb_bytes: 1000 });
        seen.places = Some(PlacesSample { at_ms: 0, local_share: 0.75 });
        let told = rows(&sample(2000, vec![seen, process(2, 5, 0, 0)]), None);
        assert_eq!((told[0].resident_bytes, told[0].page_table_share), (4000, Some(0.01)));
        assert_eq!(
            (told[0].huge_share, told[0].huge_age_s, told[0].remote_share),
            (Some(0.25), Some(1.5), Some(0.25))
        );
        let blind = &told[1];
        assert_eq!((blind.huge_share, blind.remote_share, blind.page_table_bytes), (None, None, None));
        assert_eq!((blind.swapped_bytes, blind.user, blind.resident_bytes), (None, None, 3000));
    }

    #[test]
    fn nodes_have_rates_of_pages_and_of_loads() {
        let of = |at_ms: u64, pages: u64, loads: f64| {
            let node = NodeSample {
                node: Some(1),
                memory_bytes: 100,
                free_bytes: 30,
                thp_bytes: 0,
                pools: Vec::new(),
                numastat: Some(Numastat { hit: pages, miss: 1, foreign: 0, other: pages / 2 }),
            };
            let nodes = vec![NodeLoadsSample { node: 1, local: loads * 3.0, remote: loads }];
            let loads = Loads { reason: None, line_bytes: 64, nodes };
            let counted =
                |node, bytes| NodeBandwidthSample { node, read_bytes: bytes, written_bytes: bytes / 2.0 };
            let nodes = vec![counted(Some(0), 9e9), counted(Some(1), pages as f64 * 1000.0)];
            let bandwidth = Bandwidth { reason: None, nodes };
            Sample { nodes: vec![node], loads, bandwidth, ..sample(at_ms, Vec::new()) }
        };
        let told = nodes(&of(2500, 600, 200.0), Some(&of(500, 200, 100.0)));
        assert_eq!((told[0].used_bytes, told[0].free_bytes), (70, 30));
        assert_eq!(
            (told[0].hit_per_s, told[0].miss_per_s, told[0].other_per_s),
            (Some(200.0), Some(0.0), Some(100.0))
        );
        assert_eq!((told[0].local_loads_per_s, told[0].remote_loads_per_s), (Some(150.0), Some(50.0)));
        assert_eq!((told[0].local_bytes_per_s, told[0].remote_bytes_per_s), (Some(9600.0), Some(3200.0)));
        assert_eq!((told[0].read_bytes_per_s, told[0].written_bytes_per_s), (Some(200e3), Some(100e3)));
        let blind = Sample { bandwidth: Bandwidth::default(), ..of(500, 200, 100.0) };
        assert_eq!(nodes(&of(2500, 600, 200.0), Some(&blind))[0].read_bytes_per_s, None, "of no interval");
        let without = Sample { loads: Loads::default(), ..of(2500, 600, 0.0) };
        assert_eq!(
            nodes(&without, Some(&of(500, 200, 1.0)))[0].local_bytes_per_s,
            None,
            "no PMU is not zero"
        );
    }
}
