//! `planish latency`: how far CPUs are from each other and from memory, and what pages of each size cost.

use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// A median over rounds, with the interval of that median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyFigure {
    /// The median.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence that the interval really has, such as 0.965.
    pub level: f64,
    /// Rounds behind it.
    pub rounds: u64,
}

impl LatencyFigure {
    /// The interval in the unit of the figure: `46.10 ns to 48.02 ns`.
    pub(crate) fn ends(&self, unit: &str) -> String {
        format!("{} to {}", units::quantity(self.low, unit), units::quantity(self.high, unit))
    }
}

/// Whether the machine was quiet before anything was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LatencyQuiet {
    /// Whether nothing spoke against it. Where something did, intervals are the whole range of the rounds.
    pub quiet: bool,
    /// What spoke against it.
    pub reasons: Vec<String>,
    /// How long it was looked at, in seconds.
    pub seconds: f64,
    /// Share of processor time that the hypervisor took; null where the kernel does not tell.
    pub steal_share: Option<f64>,
    /// Share of all processors' time that others used.
    pub busy_share: Option<f64>,
    /// Share of time in which some task waited for a processor.
    pub pressure_share: Option<f64>,
    /// Tasks of others that wanted a processor, on average.
    pub runnable: Option<f64>,
    /// The load of the last minute, by which nothing is judged.
    pub load_1m: Option<f64>,
}

impl LatencyQuiet {
    /// The verdict as the first line of a text.
    pub(crate) fn text(&self, page: &mut Page<'_>) {
        let share = |name: &str, share: Option<f64>| {
            share.map_or(format!("{name} untold"), |share| format!("{name} {:.1} %", share * 100.0))
        };
        let mut parts = vec![
            share("stolen", self.steal_share),
            share("used by others", self.busy_share),
            share("waited for", self.pressure_share),
        ];
        parts.extend(self.runnable.map(|count| format!("{count:.1} tasks in the run queue")));
        parts.extend(self.load_1m.map(|load| format!("load {load:.2}")));
        let seen = format!("in {}: {}", units::seconds(self.seconds), parts.join(", "));
        if self.quiet {
            page.fact("quiet", &format!("yes; {seen}"));
        } else {
            page.fact("quiet", &format!("NO: {}; {seen}", self.reasons.join("; ")));
            page.fact("", "each interval is the whole range of its rounds");
        }
    }
}

/// Two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyPair {
    /// The lower number.
    pub first: u32,
    /// The higher one.
    pub second: u32,
    /// A line goes from one to the other and back, in nanoseconds; null where it could not be measured.
    pub round_trip_ns: Option<LatencyFigure>,
    /// Why it could not.
    pub why: Option<String>,
}

/// CPUs that are nearer to each other than to the rest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyClusters {
    /// The clusters, each a list of CPUs.
    pub clusters: Vec<String>,
    /// Round trip within them in nanoseconds, with its interval: the median of their pairs in each round.
    pub within_ns: LatencyFigure,
    /// The same between them, within the next larger ones.
    pub between_ns: LatencyFigure,
    /// Parts that sysfs tells and that are the same: `core`, `L3`, `package`; empty where it knows nothing of them.
    pub sysfs: Vec<String>,
}

/// A way in which sysfs parts the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LatencyPartition {
    /// `core`, `L2`, `cluster`, `L3`, `die`, `package` or `node`.
    pub name: String,
    /// Its parts, each a list of CPUs.
    pub parts: Vec<String>,
    /// Whether round trips show the same parts.
    pub seen: bool,
}

/// CPUs of a node and memory of a node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyNode {
    /// Node of the CPUs.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// The CPU that the latency was measured from.
    pub cpu: u32,
    /// CPUs that read together.
    pub threads: u64,
    /// Distance that the firmware tells; 10 is the own node, null where it tells none.
    pub distance: Option<u32>,
    /// A load that waits for memory, in nanoseconds.
    pub load_ns: Option<LatencyFigure>,
    /// Bytes that the CPUs read together in a second.
    pub read_bytes_per_s: Option<LatencyFigure>,
    /// Why there are no figures.
    pub why: Option<String>,
}

/// The pages that the memory of a node was measured on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LatencyBacking {
    /// The node.
    pub node: u32,
    /// `base`, `thp`: read back, and not what was asked for.
    pub backing: String,
    /// Bytes on such pages.
    pub bytes: u64,
}

/// Whether the memory of several nodes is mixed behind what the firmware tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyInterleaveVerdict {
    /// Nodes are what they are told to be.
    None,
    /// Pages of one node lie in two heaps of different distance.
    TwoHeaps,
    /// Several nodes, and no difference between near and far.
    Flat,
    /// It cannot be said.
    Unknown,
}

/// The same with what says so.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyInterleave {
    /// The verdict.
    pub verdict: LatencyInterleaveVerdict,
    /// What says so, or why nothing can be said.
    pub evidence: String,
    /// A load from memory of the own node, in nanoseconds: the mean over the nodes in each round; null where none was
    /// measured.
    pub near_ns: Option<LatencyFigure>,
    /// The same from memory of other nodes.
    pub far_ns: Option<LatencyFigure>,
}

/// One kind of page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyPage {
    /// `base`, `thp`, `hugetlb-2m`.
    pub backing: String,
    /// Size of one page in bytes.
    pub page_bytes: u64,
    /// A random load that waits for the one before, in nanoseconds; null where such pages could not be had.
    pub load_ns: Option<LatencyFigure>,
    /// The same as a share of what it takes on base pages, round by round.
    pub of_base: Option<LatencyFigure>,
    /// Bytes that were on such pages, read back.
    pub achieved_bytes: u64,
    /// Why there are no figures.
    pub why: Option<String>,
    /// What to do about it.
    pub cure: Option<String>,
}

/// How far things are from each other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyReport {
    /// Whether the machine was quiet.
    pub quiet: LatencyQuiet,
    /// The CPUs that were measured.
    pub cpus: String,
    /// Rounds of each figure, each in an order of its own.
    pub rounds: u64,
    /// What drew those orders.
    pub seed: u64,
    /// How long it all took, in seconds.
    pub seconds: f64,
    /// Every pair of CPUs.
    pub pairs: Vec<LatencyPair>,
    /// Levels of clusters that the pairs show, finest first.
    pub clusters: Vec<LatencyClusters>,
    /// How sysfs parts the same CPUs.
    pub sysfs: Vec<LatencyPartition>,
    /// Every node with CPUs by every node with memory.
    pub nodes: Vec<LatencyNode>,
    /// On which pages the memory of the nodes was measured.
    pub node_backing: Vec<LatencyBacking>,
    /// Whether nodes are mixed.
    pub interleave: LatencyInterleave,
    /// Every kind of page, measured from the first CPU.
    pub pages: Vec<LatencyPage>,
}

/// CPUs up to which the matrix has numbers; with more, a character for each pair.
const NUMBERS_MAX: usize = 12;
/// Pairs up to which each has its line with an interval, unless every detail is wanted.
const LINES_MAX: usize = 28;
/// From near to far.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// The place of a value between the least and the greatest, by their ratios: of `count` steps.
pub(crate) fn step(value: f64, least: f64, greatest: f64, count: usize) -> usize {
    // Where all are alike there is nothing to see.
    if greatest < least * 1.1 || least <= 0.0 {
        return 0;
    }
    let place = (value / least).ln() / (greatest / least).ln();
    ((place * count as f64) as usize).min(count - 1)
}

/// The least and the greatest value.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, greatest), value| (value.min(least), value.max(greatest)))
}

impl Report for LatencyReport {
    const COMMAND: &'static str = "latency";

    fn text(&self, page: &mut Page<'_>) {
        self.quiet.text(page);
        let level = self.any_level().filter(|_| self.quiet.quiet);
        let level = level.map_or(String::new(), |level| format!(", intervals of {:.1} %", level * 100.0));
        page.fact(
            "rounds",
            &format!("{} of each figure in random order{level}; CPUs {}", self.rounds, self.cpus),
        );
        self.pair_text(page);
        self.cluster_text(page);
        self.node_text(page);
        self.page_text(page);
    }
}

impl LatencyReport {
    fn any_level(&self) -> Option<f64> {
        let of_pairs = self.pairs.iter().filter_map(|pair| pair.round_trip_ns);
        let of_nodes = self.nodes.iter().filter_map(|node| node.load_ns);
        of_pairs.chain(of_nodes).map(|figure| figure.level).reduce(f64::min)
    }

    /// The CPUs in the order of their numbers.
    pub(crate) fn cpu_numbers(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.pairs.iter().flat_map(|pair| [pair.first, pair.second]).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    fn pair_text(&self, page: &mut Page<'_>) {
        page.heading("From CPU to CPU: round trip of a cache line");
        if self.pairs.is_empty() {
            page.line(format!("CPU {} alone: there is nothing to measure between CPUs", self.cpus));
            return;
        }
        let cpus = self.cpu_numbers();
        let (least, greatest) = range(self.pairs.iter().filter_map(|pair| Some(pair.round_trip_ns?.value)));
        let shade = |ns: f64| SHADES[step(ns, least, greatest, SHADES.len())];
        if cpus.len() > NUMBERS_MAX {
            self.shade_text(page, &cpus, shade);
            let scale = |at: f64| units::quantity(least * (greatest / least).powf(at), "ns");
            let steps = SHADES.iter().zip([0.0, 0.25, 0.5, 0.75]);
            let steps: Vec<String> = steps.map(|(shade, at)| format!("{shade} from {}", scale(at))).collect();
            page.line(format!("{}; ? not measured", steps.join(", ")));
        } else {
            self.matrix_text(page, &cpus, shade);
        }
        if page.is_detailed() || self.pairs.len() <= LINES_MAX {
            let mut table = Table::new(&["CPUs", ">round trip", "interval"]);
            for pair in &self.pairs {
                let cpus = format!("{} - {}", pair.first, pair.second);
                match (&pair.round_trip_ns, &pair.why) {
                    (Some(figure), _) => {
                        table.row([
                            cpus.into(),
                            units::quantity(figure.value, "ns").into(),
                            figure.ends("ns").into(),
                        ]);
                    }
                    (None, why) => {
                        table.row([cpus.into(), "-".into(), why.as_deref().unwrap_or_default().into()])
                    }
                }
            }
            page.gap();
            page.table(&table);
        }
    }

    fn pair(&self, one: u32, other: u32) -> Option<f64> {
        let (first, second) = (one.min(other), one.max(other));
        let pair = self.pairs.iter().find(|pair| pair.first == first && pair.second == second)?;
        pair.round_trip_ns.map(|figure| figure.value)
    }

    fn matrix_text(&self, page: &mut Page<'_>, cpus: &[u32], shade: impl Fn(f64) -> char) {
        let titles: Vec<String> =
            [">ns".to_owned()].into_iter().chain(cpus.iter().map(|cpu| format!(">{cpu}"))).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut table = Table::new(&titles);
        for &row in cpus {
            let cell = |&column: &u32| match self.pair(row, column) {
                _ if row == column => Cell::styled(".", styles::DIM),
                None => "?".into(),
                Some(ns) => format!("{} {ns:.0}", shade(ns)).into(),
            };
            table.row([row.to_string().into()].into_iter().chain(cpus.iter().map(cell)));
        }
        page.table(&table);
    }

    fn shade_text(&self, page: &mut Page<'_>, cpus: &[u32], shade: impl Fn(f64) -> char) {
        let width = cpus.last().map_or(1, |cpu| cpu.to_string().len());
        for &row in cpus {
            let cell = |&column: &u32| match self.pair(row, column) {
                _ if row == column => '.',
                None => '?',
                Some(ns) => shade(ns),
            };
            page.line(format!("{row:>width$} {}", cpus.iter().map(cell).collect::<String>()));
        }
    }

    fn cluster_text(&self, page: &mut Page<'_>) {
        if self.pairs.len() < 2 {
            return;
        }
        page.heading("Clusters");
        if self.clusters.is_empty() {
            page.line("none: every CPU is as near to one as to another");
        }
        let mut table = Table::new(&[">within", "interval", ">between", "interval", "sysfs", "clusters"]);
        for level in &self.clusters {
            let sysfs =
                if level.sysfs.is_empty() { "does not tell".to_owned() } else { level.sysfs.join(", ") };
            table.row([
                units::quantity(level.within_ns.value, "ns").into(),
                level.within_ns.ends("ns").into(),
                units::quantity(level.between_ns.value, "ns").into(),
                level.between_ns.ends("ns").into(),
                sysfs.into(),
                level.clusters.join("  ").into(),
            ]);
        }
        page.table(&table);
        for partition in self.sysfs.iter().filter(|partition| !partition.seen) {
            let parts = partition.parts.join("  ");
            page.fact("not seen", &format!("{} as sysfs tells them: {parts}", partition.name));
        }
    }

    fn node_text(&self, page: &mut Page<'_>) {
        page.heading("From node to memory");
        let (least, greatest) = range(self.nodes.iter().filter_map(|node| Some(node.load_ns?.value)));
        let mut table = Table::new(&[
            ">CPUs of",
            ">memory of",
            ">told",
            ">load",
            "interval",
            ">read",
            "interval",
            ">CPUs",
        ]);
        for node in &self.nodes {
            let mut cells: Vec<Cell> = vec![
                format!("node {}", node.cpu_node).into(),
                format!("node {}", node.memory_node).into(),
                node.distance.map_or("-".to_owned(), |distance| distance.to_string()).into(),
            ];
            match (node.load_ns, node.read_bytes_per_s) {
                (Some(load), Some(read)) => {
                    let shade = SHADES[step(load.value, least, greatest, SHADES.len())];
                    cells.push(format!("{shade} {}", units::quantity(load.value, "ns")).into());
                    cells.push(load.ends("ns").into());
                    cells.push(rate(read.value).into());
                    cells.push(format!("{} to {}", rate(read.low), rate(read.high)).into());
                    cells.push(node.threads.to_string().into());
                }
                _ => cells.extend(["-".into(), node.why.as_deref().unwrap_or_default().into()]),
            }
            table.row(cells);
        }
        page.table(&table);
        let backing = self.node_backing.iter();
        let backing: Vec<String> = backing
            .map(|it| format!("node {}: {} on {}", it.node, units::bytes(it.bytes), it.backing))
            .collect();
        page.fact("measured", &backing.join(", "));
        let verdict = match self.interleave.verdict {
            LatencyInterleaveVerdict::None => "none hidden",
            LatencyInterleaveVerdict::TwoHeaps => "HIDDEN, page by page",
            LatencyInterleaveVerdict::Flat => "HIDDEN, or no real nodes",
            LatencyInterleaveVerdict::Unknown => "unknown",
        };
        page.fact("interleave", &format!("{verdict}: {}", self.interleave.evidence));
    }

    fn page_text(&self, page: &mut Page<'_>) {
        page.heading("By page size: random loads that wait for each other");
        let mut table = Table::new(&["pages", ">load", "interval", ">of base", "interval"]);
        for row in &self.pages {
            let mut cells: Vec<Cell> = vec![row.backing.as_str().into()];
            match (row.load_ns, row.of_base) {
                (Some(load), of_base) => {
                    cells.push(units::quantity(load.value, "ns").into());
                    cells.push(load.ends("ns").into());
                    let share = |share: f64| format!("{:.1} %", share * 100.0);
                    cells.extend(of_base.map(|it| share(it.value).into()));
                    cells.extend(of_base.map(|it| format!("{} to {}", share(it.low), share(it.high)).into()));
                }
                (None, _) => cells.extend(["-".into(), row.why.as_deref().unwrap_or_default().into()]),
            }
            table.row(cells);
        }
        page.table(&table);
        let bytes = self.pages.iter().map(|row| row.achieved_bytes).filter(|bytes| *bytes > 0).min();
        let told = bytes
            .map(|bytes| format!("{} of each that has figures, its pages read back", units::bytes(bytes)));
        page.fact("measured", &told.unwrap_or_default());
        let mut cures: Vec<&str> = self.pages.iter().filter_map(|row| row.cure.as_deref()).collect();
        cures.dedup();
        cures.iter().for_each(|cure| page.fact("cure", cure));
    }
}

/// Bytes in a second, in the powers of two that memory is counted in.
fn rate(bytes_per_s: f64) -> String {
    format!("{}/s", units::quantity(bytes_per_s, "B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_by_ratios_and_alike_values_have_one() {
        let steps: Vec<usize> = [50.0, 99.0, 101.0, 199.0, 201.0, 399.0, 801.0]
            .into_iter()
            .map(|ns| step(ns, 50.0, 800.0, 4))
            .collect();
        assert_eq!(steps, [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!((step(52.0, 50.0, 54.0, 4), step(0.0, 0.0, 0.0, 4)), (0, 0));
        assert_eq!(range([3.0, 1.0, 2.0].into_iter()), (1.0, 3.0));
    }
}
