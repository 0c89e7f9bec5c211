//! `planish top --c2c`: cache lines that CPUs take from each other.

use planish_profile::perf_data;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// What samples of memory accesses say of lines that are shared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2cReport {
    /// How long was sampled; null of a recording that is played.
    pub seconds: Option<f64>,
    /// Samples of loads.
    pub loads: u64,
    /// Samples of stores.
    pub stores: u64,
    /// Loads that another core's cache answered: with a line that it had modified (Intel), or at all (AMD, Arm).
    pub taken: u64,
    /// Of these, from a core of another node or socket.
    pub taken_remote: u64,
    /// Loads that memory answered.
    pub memory: u64,
    /// Of these, memory of another node.
    pub memory_remote: u64,
    /// Samples that are no access.
    pub others: u64,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Whether lines are told apart by their physical address; else by process and address.
    pub by_physical: bool,
    /// Lines that were taken, the most taken first.
    pub lines: Vec<C2cLine>,
    /// Such lines that are left out.
    pub lines_more: usize,
}

/// A line of 64 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2cLine {
    /// Its address in the first process that was seen.
    pub address: String,
    /// Processes that touched it.
    pub pids: Vec<u32>,
    /// CPUs that touched it.
    pub cpus: Vec<u32>,
    /// Samples of loads of it.
    pub loads: u64,
    /// Of these, taken from another core.
    pub taken: u64,
    /// Of these, from a core of another node or socket.
    pub taken_remote: u64,
    /// Samples of stores into it.
    pub stores: u64,
    /// Mean cycles of the loads that were taken; null where the CPU does not tell.
    pub taken_cycles: Option<f64>,
    /// Code and the part of the line that it touches, the most taken first.
    pub sites: Vec<C2cSite>,
    /// Such places that are left out.
    pub sites_more: usize,
}

/// Code that touches a part of a line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2cSite {
    /// Bytes from the begin of the line.
    pub offset: u64,
    /// The function; or a file and the offset in it.
    pub code: String,
    /// Loads that were taken from another core.
    pub taken: u64,
    /// Stores.
    pub stores: u64,
    /// All loads.
    pub loads: u64,
}

impl C2cReport {
    /// The report of what was read of a recording.
    #[must_use]
    pub fn of(told: perf_data::Contention, seconds: Option<f64>) -> Self {
        Self {
            seconds,
            loads: told.loads,
            stores: told.stores,
            taken: told.taken,
            taken_remote: told.taken_remote,
            memory: told.memory,
            memory_remote: told.memory_remote,
            others: told.others,
            lost: told.lost,
            by_physical: told.by_physical,
            lines: told.lines.into_iter().map(C2cLine::of).collect(),
            lines_more: told.lines_more,
        }
    }
}

impl C2cLine {
    fn of(line: perf_data::Line) -> Self {
        let site = |site: perf_data::LineSite| C2cSite {
            offset: site.offset,
            code: site.code,
            taken: site.taken,
            stores: site.stores,
            loads: site.loads,
        };
        Self {
            address: format!("{:#x}", line.address),
            pids: line.pids,
            cpus: line.cpus,
            loads: line.loads,
            taken: line.taken,
            taken_remote: line.taken_remote,
            stores: line.stores,
            taken_cycles: line.taken_cycles,
            sites: line.sites.into_iter().map(site).collect(),
            sites_more: line.sites_more,
        }
    }
}

impl Report for C2cReport {
    const COMMAND: &'static str = "top-c2c";

    fn text(&self, page: &mut Page<'_>) {
        if let Some(seconds) = self.seconds {
            page.fact("sampled", &units::seconds(seconds));
        }
        let share = |part: u64| 100.0 * part as f64 / self.loads.max(1) as f64;
        page.fact(
            "samples",
            &format!("{} loads, {} stores, {} others", self.loads, self.stores, self.others),
        );
        page.fact(
            "taken",
            &format!(
                "{} loads from another core's cache, {:.1} %; {} of them from another node",
                self.taken,
                share(self.taken),
                self.taken_remote
            ),
        );
        page.fact(
            "memory",
            &format!("{} loads, {} of them of another node", self.memory, self.memory_remote),
        );
        if self.lost > 0 {
            page.fact("lost", &format!("{} records, which the kernel dropped", self.lost));
        }
        let by = if self.by_physical { "their physical address" } else { "process and address" };
        page.fact("lines", &format!("told apart by {by}"));
        page.gap();
        if self.lines.is_empty() {
            page.line("No load was answered by another core's cache: no line is contended in these samples.");
            return;
        }
        page.table(&self.table());
        if self.lines_more > 0 {
            page.line(format!("and {} lines more", self.lines_more));
        }
    }
}

impl C2cReport {
    /// A row for each place of each line; the line itself in the first of them.
    fn table(&self) -> Table {
        let titles = [
            "line",
            ">taken",
            ">remote",
            ">stores",
            ">cycles",
            ">processes",
            ">CPUs",
            ">at",
            ">taken",
            ">stores",
            "by",
        ];
        let mut table = Table::new(&titles);
        for line in &self.lines {
            let cycles = line.taken_cycles.map(|cycles| format!("{cycles:.0}")).unwrap_or_default();
            let mut of_line = [
                line.address.clone(),
                line.taken.to_string(),
                line.taken_remote.to_string(),
                line.stores.to_string(),
                cycles,
                line.pids.len().to_string(),
                line.cpus.len().to_string(),
            ];
            for site in &line.sites {
                let of_site = [format!("+{}", site.offset), site.taken.to_string(), site.stores.to_string()];
                let cells = of_line.iter().chain(&of_site).chain([&site.code]);
                table.row(cells.map(|cell| cell.as_str().into()));
                of_line = Default::default();
            }
        }
        table
    }
}
