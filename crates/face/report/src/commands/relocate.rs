//! `planish move`: where memory lay, where it lies now, what stayed and why.

use std::collections::BTreeMap;

use planish_model::EntryId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};
use crate::table::Table;
use crate::units;

/// Bytes on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveNode {
    /// The node.
    pub node: u32,
    /// Bytes there before.
    pub before_bytes: u64,
    /// Bytes there afterwards, by a fresh look; null where nothing was moved.
    pub after_bytes: Option<u64>,
}

/// What stayed where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveStayed {
    /// Why.
    pub reason: String,
    /// How many bytes.
    pub bytes: u64,
}

/// A part of the memory of a process that was named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveRange {
    /// First address, in hex: that of a page.
    pub start: String,
    /// The address after the last.
    pub end: String,
    /// Name of the mapping that it lies in; often empty.
    pub name: String,
}

/// Threads that were to be pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveThreads {
    /// The CPUs that they were to get.
    pub cpus: String,
    /// Threads that had others.
    pub wanted: u64,
    /// Threads that have them now, of those that are there now; null where nothing was tried.
    pub pinned: Option<u64>,
    /// Threads that do not, each with its reason.
    pub left: Vec<MoveLeft>,
}

/// Threads that were not pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveLeft {
    /// Why.
    pub reason: String,
    /// How many threads.
    pub threads: u64,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveProcess {
    /// Its PID.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The parts of its memory that were named, as they were found; null where all of it is meant.
    pub ranges: Option<Vec<MoveRange>>,
    /// Memory of the kinds that were named, by node; where parts were named, of those.
    pub nodes: Vec<MoveNode>,
    /// Bytes that were to go.
    pub wanted_bytes: u64,
    /// Bytes that went; null where nothing was tried.
    pub moved_bytes: Option<u64>,
    /// What stayed, by reason.
    pub stayed: Vec<MoveStayed>,
    /// Why it ended before everything was tried; null where it did not.
    pub ended: Option<String>,
    /// Its threads, where CPUs were named.
    pub threads: Option<MoveThreads>,
}

/// What `move` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MoveReport {
    /// The entry that undoes it; null where nothing was moved.
    pub entry: Option<EntryId>,
    /// Whether it only looked.
    pub dry_run: bool,
    /// The nodes that memory was to go to, in the kernel's list form; null where none were named.
    pub to: Option<String>,
    /// Each process.
    pub processes: Vec<MoveProcess>,
}

/// Parts of a process that its text tells.
const RANGES_MAX: usize = 8;

impl MoveProcess {
    /// Bytes by node, before and after.
    #[must_use]
    pub fn nodes(before: &BTreeMap<u32, u64>, after: Option<&BTreeMap<u32, u64>>) -> Vec<MoveNode> {
        let mut all: Vec<u32> =
            before.keys().chain(after.into_iter().flat_map(BTreeMap::keys)).copied().collect();
        all.sort_unstable();
        all.dedup();
        let on = |bytes: &BTreeMap<u32, u64>, node| bytes.get(&node).copied().unwrap_or(0);
        all.into_iter()
            .map(|node| MoveNode {
                node,
                before_bytes: on(before, node),
                after_bytes: after.map(|after| on(after, node)),
            })
            .collect()
    }

    fn text(&self, dry_run: bool, page: &mut Page<'_>) {
        page.heading(&format!("{} (pid {})", units::one_line(&self.name), self.pid));
        let ranges = self.ranges.as_deref().unwrap_or_default();
        for MoveRange { start, end, name } in ranges.iter().take(RANGES_MAX) {
            page.fact("range", format!("{start}-{end} {}", units::one_line(name)).trim_end());
        }
        if ranges.len() > RANGES_MAX {
            page.fact("range", &format!("and {} more (--json has all)", ranges.len() - RANGES_MAX));
        }
        let mut table = Table::new(&[">node", ">before", ">now"]);
        for node in &self.nodes {
            table.row([
                node.node.to_string().into(),
                units::bytes(node.before_bytes).into(),
                node.after_bytes.map(units::bytes).unwrap_or_default().into(),
            ]);
        }
        page.table(&table);
        match self.moved_bytes {
            Some(moved) => {
                page.fact(
                    "moved",
                    &format!("{} of {}", units::bytes(moved), units::bytes(self.wanted_bytes)),
                );
            }
            None if dry_run => page.fact("would move", &units::bytes(self.wanted_bytes)),
            None => {}
        }
        for stayed in &self.stayed {
            page.fact("stays", &format!("{}: {}", units::bytes(stayed.bytes), stayed.reason));
        }
        if let Some(ended) = &self.ended {
            page.fact("ended early", ended);
        }
        let Some(threads) = &self.threads else { return };
        let count = |number: u64| units::count(usize::try_from(number).unwrap_or(usize::MAX), "thread");
        match threads.pinned {
            Some(pinned) => page.fact("pinned", &format!("{} to CPU {}", count(pinned), threads.cpus)),
            None if threads.wanted == 0 => {
                page.fact("pinned", &format!("all threads have CPU {}", threads.cpus))
            }
            None => page.fact("would pin", &format!("{} to CPU {}", count(threads.wanted), threads.cpus)),
        }
        for left in &threads.left {
            page.fact("not pinned", &format!("{}: {}", count(left.threads), left.reason));
        }
    }
}

impl Report for MoveReport {
    const COMMAND: &'static str = "move";

    fn text(&self, page: &mut Page<'_>) {
        self.processes.iter().for_each(|process| process.text(self.dry_run, page));
    }
}

#[cfg(test)]
mod tests {
    use planish_model::Catalogue;

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn what_went_and_what_stayed_is_told() {
        let before = BTreeMap::from([(0, 96 << 20), (1, 4 << 20)]);
        let after = BTreeMap::from([(0, 1 << 20), (1, 99 << 20)]);
        let range = |at: u32| MoveRange {
            start: format!("{:x}", 0x7f00_1000 + at),
            end: "7f008000".to_owned(),
            name: if at == 0 { "[heap]".to_owned() } else { String::new() },
        };
        let process = MoveProcess {
            pid: 77,
            name: "postgres\n(pid 1)".to_owned(),
            ranges: Some((0..10).map(range).collect()),
            nodes: MoveProcess::nodes(&before, Some(&after)),
            wanted_bytes: 96 << 20,
            moved_bytes: Some(95 << 20),
            stayed: vec![MoveStayed { reason: "pinned".to_owned(), bytes: 1 << 20 }],
            ended: None,
            threads: Some(MoveThreads {
                cpus: "4-7".to_owned(),
                wanted: 3,
                pinned: Some(3),
                left: vec![MoveLeft { reason: "its cpuset".to_owned(), threads: 1 }],
            }),
        };
        let to = Some("1".to_owned());
        let report = MoveReport { entry: Some(EntryId(3)), dry_run: false, to, processes: vec![process] };
        let catalogue = Catalogue::default();
        let mut page = Page::new(PageOptions { width: 100, detailed: false }, &catalogue);
        report.text(&mut page);
        let told = page.into_text();
        assert!(!told.contains("\n(pid 1)"), "a name forges no line: {told}");
        for word in [
            "postgres (pid 1) (pid 77)",
            "7f001000-7f008000 [heap]\n",
            "7f001007-7f008000\n",
            "and 2 more",
            "95 MiB of 96 MiB",
            "1 MiB: pinned",
            "3 threads to CPU 4-7",
            "1 thread: its cpuset",
        ] {
            assert!(told.contains(word), "{word} in {told}");
        }
    }
}
