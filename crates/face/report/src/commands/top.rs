//! `planish top`: all processes and nodes at one moment, and what became of them since the moment before.

use std::cmp::Ordering;

use planish_residency::Unseen;
use planish_residency::top::{self, Reads, Sample, TopNode, TopRow};
use planish_sorted::SortSmall as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::{Cell, Table};
use crate::units;

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TopSort {
    /// Resident memory.
    Resident,
    /// CPU time.
    Cpu,
    /// Share of memory that is remote.
    Remote,
    /// Page tables.
    Tables,
    /// Share of memory on huge pages.
    Huge,
    /// Memory in swap.
    Swap,
    /// Page faults.
    Faults,
    /// PID.
    Pid,
}

impl TopSort {
    /// Every one, in the order of the columns.
    pub const ALL: [Self; 8] = [
        Self::Pid,
        Self::Cpu,
        Self::Resident,
        Self::Remote,
        Self::Tables,
        Self::Huge,
        Self::Swap,
        Self::Faults,
    ];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::Cpu => "cpu",
            Self::Remote => "remote",
            Self::Tables => "tables",
            Self::Huge => "huge",
            Self::Swap => "swap",
            Self::Faults => "faults",
            Self::Pid => "pid",
        }
    }

    /// The key that chooses it on the screen.
    #[must_use]
    pub fn key(self) -> char {
        match self {
            Self::Resident => 'm',
            Self::Cpu => 'c',
            Self::Remote => 'r',
            Self::Tables => 't',
            Self::Huge => 'h',
            Self::Swap => 's',
            Self::Faults => 'f',
            Self::Pid => 'p',
        }
    }

    /// Which of two rows comes first: the one with more, one of whom nothing is known last; the larger of equal ones.
    #[must_use]
    pub fn order(self, a: &TopRow, b: &TopRow) -> Ordering {
        let known = |row: &TopRow| match self {
            Self::Resident => Some(row.resident_bytes as f64),
            Self::Cpu => row.cpus,
            Self::Remote => row.remote_share,
            Self::Tables => row.page_table_bytes.map(|bytes| bytes as f64),
            Self::Huge => row.huge_share,
            Self::Swap => row.swapped_bytes.map(|bytes| bytes as f64),
            Self::Faults => row.faults_per_s,
            Self::Pid => Some(-f64::from(row.pid)),
        };
        let order = |row: &TopRow| known(row).unwrap_or(f64::NEG_INFINITY);
        let larger = b.resident_bytes.cmp(&a.resident_bytes).then(a.pid.cmp(&b.pid));
        order(b).total_cmp(&order(a)).then(larger)
    }
}

/// All processes and nodes at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TopReport {
    /// Seconds since 1970; null of a recorded host.
    pub unix_seconds: Option<u64>,
    /// Seconds since the sample before, which rates are of; null in the first, which has none.
    pub interval_s: Option<f64>,
    /// What the rows are sorted by.
    pub sort: TopSort,
    /// Processes with memory of their own, those that a filter hides among them.
    pub processes: u64,
    /// Threads of the kernel, which are not shown.
    pub kernel_threads: u64,
    /// Nodes that have memory; 0 where the kernel tells of none.
    pub memory_nodes: u32,
    /// The processes.
    pub rows: Vec<TopRow>,
    /// The nodes.
    pub nodes: Vec<TopNode>,
    /// Why loads are not counted; null where they are.
    pub loads_missing: Option<String>,
    /// Why what memory controllers read and wrote is not counted, or not of every node; null where it is.
    pub bandwidth_missing: Option<String>,
    /// What it took to see this.
    pub reads: Reads,
    /// What was not seen.
    pub unseen: Vec<Unseen>,
}

impl TopReport {
    /// What `sample` shows; rates are those since `before`. Names hold `filter`.
    #[must_use]
    pub fn of(sample: &Sample, before: Option<&Sample>, sort: TopSort, filter: &str) -> Self {
        let mut rows = top::rows(sample, before);
        rows.retain(|row| row.name.contains(filter));
        rows.sort_small_by(|a, b| sort.order(a, b));
        let bandwidth = &sample.bandwidth;
        let untold = bandwidth.nodes.is_empty().then(|| "this recording tells none".to_owned());
        let passed = before.and_then(|before| sample.at_ms.checked_sub(before.at_ms));
        Self {
            unix_seconds: sample.unix_seconds,
            interval_s: passed.filter(|passed| *passed > 0).map(|passed| passed as f64 / 1000.0),
            sort,
            processes: sample.processes.len() as u64,
            kernel_threads: sample.kernel_threads,
            memory_nodes: sample.memory_nodes,
            rows,
            nodes: top::nodes(sample, before),
            loads_missing: sample.loads.reason.clone(),
            bandwidth_missing: bandwidth.reason.clone().or(untold),
            reads: sample.reads,
            unseen: sample.unseen.clone(),
        }
    }

    /// `1,203 processes, 310 threads of the kernel; page faults and CPU over 2.0 s`
    #[must_use]
    pub fn summary(&self) -> String {
        let over = match self.interval_s {
            Some(interval) => format!("rates over {interval:.1} s"),
            None => "no rates yet: they take two looks".to_owned(),
        };
        let (processes, threads) = (self.processes as usize, self.kernel_threads as usize);
        let threads = units::count(threads, "thread");
        format!("{}, {threads} of the kernel; {over}", processes_told(processes))
    }

    /// What a step read, in a line.
    #[must_use]
    pub fn cost(&self) -> String {
        let Reads { stat, status, walks, places, waiting, waiting_places, longest_us, took_us } = self.reads;
        let mut text = format!("read stat {stat}, status {status}, smaps_rollup {walks}, numa_maps {places}");
        if let (Some(longest), Some(took)) = (longest_us, took_us) {
            let told = |us: u64| units::quantity(us as f64 * 1000.0, "ns");
            text += &format!(" in {}, the longest walk {}", told(took), told(longest));
        }
        if waiting > 0 {
            let part = |nodes: u64| format!(", {nodes} of them to be asked for nodes");
            let nodes = Some(waiting_places).filter(|nodes| *nodes > 0).map(part).unwrap_or_default();
            text += &format!("; {waiting} wait for a later step{nodes}");
        }
        text
    }

    /// What the memory controllers of each node read and wrote, two nodes a line; nothing where that is not counted.
    #[must_use]
    pub fn bandwidth(&self) -> Vec<String> {
        let of = |node: &TopNode| {
            let (read, written) = node.read_bytes_per_s.zip(node.written_bytes_per_s)?;
            let whose = node.node.map_or_else(|| "memory".to_owned(), |node| format!("node {node}"));
            Some(format!(
                "{whose}: {}/s read, {}/s written",
                short_bytes(read as u64),
                short_bytes(written as u64)
            ))
        };
        let told: Vec<String> = self.nodes.iter().filter_map(of).collect();
        told.chunks(2).map(|nodes| nodes.join("; ")).collect()
    }

    /// Why a column or a row of loads has no figures.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let one_node = "remote share: n/a, this machine has one node with memory";
        let no_node = "remote share: n/a, this kernel tells of no nodes";
        let mut missing = match self.memory_nodes {
            0 => vec![no_node.to_owned()],
            1 => vec![one_node.to_owned()],
            _ => Vec::new(),
        };
        let loads = "local and remote loads";
        let bandwidth = if self.bandwidth().is_empty() { "bandwidth" } else { "bandwidth of some nodes" };
        match (&self.loads_missing, &self.bandwidth_missing) {
            (Some(reason), Some(same)) if reason == same => {
                missing.push(format!("{loads}, {bandwidth}: n/a, {reason}"));
            }
            (reason, other) => {
                missing.extend(reason.iter().map(|reason| format!("{loads}: n/a, {reason}")));
                missing.extend(other.iter().map(|reason| format!("{bandwidth}: n/a, {reason}")));
            }
        }
        missing
    }
}

/// A sample as a line of a recording, with its end. Here and not where it is written: this crate is built small.
#[must_use]
pub fn top_sample_line(sample: &Sample) -> Vec<u8> {
    let mut line = serde_json::to_vec(sample).expect("a sample is plain data");
    line.push(b'\n');
    line
}

/// The sample of such a line.
///
/// # Errors
/// It is none, or one of a schema that is not known; told in words.
pub fn top_sample_of(line: &[u8]) -> Result<Sample, String> {
    let sample: Sample = serde_json::from_slice(line).map_err(|error| format!("not a sample: {error}"))?;
    if sample.schema == top::SAMPLE_SCHEMA {
        return Ok(sample);
    }
    Err(format!("a sample of the schema `{}`, which this planish does not know", sample.schema))
}

fn processes_told(count: usize) -> String {
    if count == 1 {
        "1 process".to_owned()
    } else {
        format!("{} processes", units::grouped(&count.to_string()))
    }
}

/// Rows of a text without `--verbose`.
const ROWS_MAX: usize = 40;

/// What stands in a column of a row, in the order of [`TopSort::ALL`]; the name follows. `nodes` have memory.
#[must_use]
pub fn top_cells(row: &TopRow, nodes: u32) -> [String; 8] {
    let bytes = |bytes: Option<u64>| match bytes {
        Some(0) => "0".to_owned(),
        Some(bytes) => short_bytes(bytes),
        None => "-".to_owned(),
    };
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}%", share * 100.0));
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| units::grouped(&format!("{rate:.0}")));
    let tables = match row.page_table_share {
        Some(share) => format!("{} {:.1}%", bytes(row.page_table_bytes), share * 100.0),
        None => bytes(row.page_table_bytes),
    };
    let faults = match row.major_faults_per_s {
        Some(major) if major >= 0.5 => format!("{} {:.0}d", rate(row.faults_per_s), major),
        _ => rate(row.faults_per_s),
    };
    [
        row.pid.to_string(),
        percent(row.cpus),
        short_bytes(row.resident_bytes),
        if nodes > 1 { percent(row.remote_share) } else { "n/a".to_owned() },
        tables,
        percent(row.huge_share),
        bytes(row.swapped_bytes),
        faults,
    ]
}

/// Who a process runs as, by number: a recording may be of another machine, which calls them otherwise.
#[must_use]
pub fn top_user_cell(row: &TopRow) -> String {
    row.user.map_or("-".to_owned(), |user| user.to_string())
}

/// Bytes in five characters or less and the letter of a power of 1024: `1.2G`, `812M`.
fn short_bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, 'B');
    for next in ['K', 'M', 'G', 'T', 'P', 'E'] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if value < 9.95 && unit != 'B' && value.fract() != 0.0 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// The titles of [`top_cells`].
pub const TOP_TITLES: [&str; 8] =
    ["pid", "cpu", "resident", "remote", "page tables", "huge", "swap", "faults/s"];

/// What is told of a node, cell by cell, under [`TOP_NODE_TITLES`].
#[must_use]
pub fn top_node_cells(node: &TopNode) -> [String; 9] {
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| units::grouped(&format!("{rate:.0}")));
    let bandwidth = |rate: Option<f64>| rate.map_or("n/a".to_owned(), |rate| short_bytes(rate as u64) + "/s");
    let pool =
        |pool: &top::TopPool| format!("{}/{}x{}", pool.free_pages, pool.pages, short_bytes(pool.page_bytes));
    let pools: Vec<String> = node.pools.iter().map(pool).collect();
    [
        node.node.map_or("-".to_owned(), |node| node.to_string()),
        format!("{}/{}", short_bytes(node.used_bytes), short_bytes(node.free_bytes)),
        if pools.is_empty() { "none".to_owned() } else { pools.join(" ") },
        short_bytes(node.thp_bytes),
        rate(node.hit_per_s),
        rate(node.miss_per_s),
        rate(node.foreign_per_s),
        rate(node.other_per_s),
        format!("{} / {}", bandwidth(node.local_bytes_per_s), bandwidth(node.remote_bytes_per_s)),
    ]
}

/// The titles of [`top_node_cells`].
pub const TOP_NODE_TITLES: [&str; 9] = [
    "node",
    "used/free",
    "pools free/all",
    "thp",
    "hit/s",
    "miss/s",
    "foreign/s",
    "other/s",
    "local / remote loads",
];

impl Report for TopReport {
    const COMMAND: &'static str = "top";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("processes", &self.summary());
        page.fact("cost", &self.cost());
        self.missing().iter().for_each(|missing| page.fact("n/a", missing));
        let mut table = Table::new(&TOP_NODE_TITLES);
        self.nodes.iter().for_each(|node| table.row(top_node_cells(node).map(Cell::from)));
        page.gap();
        page.table(&table);
        self.bandwidth().iter().for_each(|told| page.fact("bandwidth", told));
        page.gap();
        let titles = TOP_TITLES.map(|title| format!(">{title}"));
        let titles: Vec<&str> = titles.iter().map(String::as_str).chain([">uid", "program"]).collect();
        let mut table = Table::new(&titles);
        let shown = if page.is_detailed() { self.rows.len() } else { ROWS_MAX };
        for row in self.rows.iter().take(shown) {
            let cells = top_cells(row, self.memory_nodes).map(Cell::from).into_iter();
            table.row(cells.chain([top_user_cell(row).into(), row.name.as_str().into()]));
        }
        page.table(&table);
        if self.rows.len() > shown {
            page.line(format!("and {} more (--verbose)", self.rows.len() - shown));
        }
        if self.rows.is_empty() {
            page.line("no process to show");
        }
        if !self.unseen.is_empty() {
            page.heading("Not seen");
            for unseen in &self.unseen {
                page.line(units::one_line(&unseen.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, resident_bytes: u64, remote_share: Option<f64>) -> TopRow {
        TopRow {
            pid,
            name: "x".to_owned(),
            user: None,
            threads: 1,
            cpus: None,
            resident_bytes,
            remote_share,
            page_table_bytes: None,
            page_table_share: None,
            huge_share: None,
            huge_age_s: None,
            swapped_bytes: None,
            faults_per_s: None,
            major_faults_per_s: None,
        }
    }

    #[test]
    fn what_is_not_known_comes_last_and_then_the_larger_first() {
        let mut rows = [row(1, 5, None), row(2, 1, Some(0.0)), row(3, 9, None), row(4, 1, Some(0.5))];
        rows.sort_by(|a, b| TopSort::Remote.order(a, b));
        assert_eq!(rows.map(|row| row.pid), [4, 2, 3, 1]);
        let mut rows = [row(7, 5, None), row(2, 1, None)];
        rows.sort_by(|a, b| TopSort::Pid.order(a, b));
        assert_eq!(rows.map(|row| row.pid), [2, 7]);
    }

    fn node(node: u32, bandwidth: Option<(f64, f64)>) -> TopNode {
        TopNode {
            node: Some(node),
            memory_bytes: 0,
            used_bytes: 0,
            free_bytes: 0,
            thp_bytes: 0,
            pools: Vec::new(),
            hit_per_s: None,
            miss_per_s: None,
            foreign_per_s: None,
            other_per_s: None,
            local_loads_per_s: None,
            remote_loads_per_s: None,
            local_bytes_per_s: None,
            remote_bytes_per_s: None,
            read_bytes_per_s: bandwidth.map(|(read, _)| read),
            written_bytes_per_s: bandwidth.map(|(_, written)| written),
        }
    }

    fn report(nodes: Vec<TopNode>, loads: Option<&str>, bandwidth: Option<&str>) -> TopReport {
        TopReport {
            unix_seconds: None,
            interval_s: None,
            sort: TopSort::Pid,
            processes: 0,
            kernel_threads: 0,
            memory_nodes: 2,
            rows: Vec::new(),
            nodes,
            loads_missing: loads.map(str::to_owned),
            bandwidth_missing: bandwidth.map(str::to_owned),
            reads: Reads::default(),
            unseen: Vec::new(),
        }
    }

    #[test]
    fn a_reason_of_a_recording_makes_no_line_of_its_own() {
        let mut told = report(Vec::new(), None, None);
        let (what, why) = ("nodes".to_owned(), "x\ny".to_owned());
        told.unseen = vec![Unseen { what, why, cure: String::new() }];
        told.reads = Reads { waiting: 7, waiting_places: 3, ..Reads::default() };
        let catalogue = planish_model::Catalogue::default();
        let options = crate::page::PageOptions { width: 160, detailed: false };
        let mut page = Page::new(options, &catalogue);
        told.text(&mut page);
        let text = page.into_text();
        assert!(text.contains("nodes: x y\n"), "{text}");
        assert!(text.contains("7 wait for a later step, 3 of them to be asked for nodes"), "{text}");
    }

    #[test]
    fn bandwidth_is_told_by_node_and_its_absence_by_its_reason() {
        let gib = f64::from(1 << 30);
        let all = [0, 1, 2].map(|number| node(number, Some((1.5 * gib, 0.0)))).to_vec();
        let told = report(all, None, None);
        assert_eq!(
            told.bandwidth(),
            [
                "node 0: 1.5G/s read, 0B/s written; node 1: 1.5G/s read, 0B/s written",
                "node 2: 1.5G/s read, 0B/s written"
            ]
        );
        assert!(told.missing().is_empty());
        let some = vec![node(0, Some((gib, gib))), node(1, None)];
        let told = report(some, None, Some("by socket"));
        assert_eq!(told.bandwidth(), ["node 0: 1G/s read, 1G/s written"]);
        assert_eq!(told.missing(), ["bandwidth of some nodes: n/a, by socket"]);
        let none = || vec![node(0, None)];
        let told = report(none(), Some("no PMU"), Some("no PMU"));
        assert_eq!(told.missing(), ["local and remote loads, bandwidth: n/a, no PMU"]);
        let told = report(none(), Some("one"), Some("other"));
        assert_eq!(told.missing(), ["local and remote loads: n/a, one", "bandwidth: n/a, other"]);
        assert!(told.bandwidth().is_empty());
    }

    #[test]
    fn a_recording_of_before_bandwidth_is_played_and_says_so() {
        let nodes =
            r#"[{"node":0,"memory_bytes":9,"free_bytes":1,"thp_bytes":0,"pools":[],"numastat":null}]"#;
        let line = format!(
            r#"{{"schema":"planish.top-sample/1","unix_seconds":5,"at_ms":1,"ticks_per_s":100,"memory_nodes":2,
            "processes":[],"kernel_threads":3,"nodes":{nodes},"loads":{{"reason":null,"line_bytes":64,"nodes":[]}},
            "reads":{{"stat":1,"status":0,"walks":0,"places":0,"waiting":0,"longest_us":0,"took_us":9}},"unseen":[]}}"#
        );
        let old = top_sample_of(line.as_bytes()).expect("as it was");
        let told = TopReport::of(&old, None, TopSort::Pid, "");
        assert_eq!(told.missing(), ["bandwidth: n/a, this recording tells none"]);
        // And one of today comes back as it was.
        let counted = top::NodeBandwidthSample { node: Some(0), read_bytes: 64.0, written_bytes: 0.5 };
        let today = Sample { bandwidth: top::Bandwidth { reason: None, nodes: vec![counted] }, ..old };
        assert_eq!(top_sample_of(&top_sample_line(&today)), Ok(today));
    }

    #[test]
    fn bytes_are_short() {
        let told = [0, 900, 1 << 10, (1 << 20) * 812, (1 << 30) + (200 << 20), 94 << 40].map(short_bytes);
        assert_eq!(told, ["0B", "900B", "1K", "812M", "1.2G", "94T"]);
    }
}
