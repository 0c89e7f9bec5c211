//! The map as text: the sums, then a table by what and where, then processes, code and what was not seen.

use std::collections::BTreeMap;

use planish_residency::sum_of;
use planish_sorted::SortSmall as _;

use super::{MapBacking, MapKind, MapNode, MapPiece, MapPostgres, MapPrivate, MapProcess, MapReport, MapRow};
use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// Names that a line of the short table tells.
const NAMES_MAX: usize = 2;

impl Report for MapReport {
    const COMMAND: &'static str = "map";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("process", &self.subject);
        page.fact("resident", &self.where_it_lies());
        page.fact("pages", &self.on_which_pages());
        let totals = &self.totals;
        let locked =
            if self.processes.len() > 1 { "locked (what several lock counts in each)" } else { "locked" };
        let costs = [
            ("page_table_bytes", totals.page_table_bytes, "of page tables"),
            ("locked_bytes", totals.locked_bytes, locked),
            ("swapped_bytes", totals.swapped_bytes, "in swap"),
            ("unwritten_bytes", totals.unwritten_bytes, "allocated and not written yet"),
        ];
        let told = costs.iter().filter(|(_, bytes, what)| *bytes > 0 || *what == "of page tables");
        let told: Vec<String> = told
            .map(|(name, bytes, what)| format!("{} {what}", resident(*bytes, totals.is_estimated(name))))
            .collect();
        page.fact("besides", &told.join(", "));
        page.fact("threads", &self.where_they_run());
        page.gap();
        if page.is_detailed() {
            self.rows_by_name(page);
        } else {
            self.rows_in_short(page);
        }
        if let Some(query) = &self.query {
            query.text(page);
        }
        match &self.postgres {
            Some(postgres) => postgres.text(page),
            None => self.process_table(page),
        }
        if page.is_detailed() {
            self.threads_text(page);
        }
        self.jit_table(page);
        if !self.unseen.is_empty() {
            page.heading("Not seen");
            for unseen in &self.unseen {
                page.line(units::one_line(&unseen.to_string()));
            }
        }
    }
}

impl MapReport {
    /// Where the threads of each process ran last, with the CPU time that they have used.
    pub fn threads_text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&[">pid", ">node", ">threads", ">their CPU time", "CPUs"]);
        for process in &self.processes {
            let all = sum_of(process.ran_on.iter().map(|on| on.cpu_ticks));
            for on in &process.ran_on {
                table.row([
                    process.pid.to_string().into(),
                    node_cell(on.node),
                    on.threads.to_string().into(),
                    share(on.cpu_ticks, all).into(),
                    on.cpus.as_str().into(),
                ]);
            }
        }
        page.heading("Threads, where they ran last");
        page.table(&table);
    }

    /// `1.2 GiB: 96 % on node 0, 4 % on node 1; 62 % local to its threads`
    fn where_it_lies(&self) -> String {
        let whole = self.totals.resident_bytes;
        let mut text = resident(whole, self.totals.is_estimated("resident_bytes"));
        let on = |node: &MapNode| {
            let share = about(node.estimated, share(node.resident_bytes, whole));
            format!("{share} on {}", node_name(node.node))
        };
        let on: Vec<String> = self.nodes.iter().filter(|node| node.resident_bytes > 0).map(on).collect();
        if !on.is_empty() {
            text += &format!(": {}", on.join(", "));
        }
        match self.local_share {
            Some(local) if local > 0.9999 => {
                let all = if self.local_share_estimated { "all of it that was seen" } else { "all of it" };
                text += &format!("; {all} local to the threads, by where they ran last");
            }
            Some(local) => {
                let share = about(self.local_share_estimated, format!("{:.1} %", local * 100.0));
                text += &format!("; {share} local to the threads by where they ran last, the rest remote");
            }
            None => {}
        }
        text
    }

    fn on_which_pages(&self) -> String {
        let totals = &self.totals;
        let huge = sum_of([totals.thp_bytes, totals.hugetlb_bytes, totals.mthp_bytes]);
        if huge == 0 {
            let known = if totals.is_estimated("base_bytes") { ", as far as is told" } else { "" };
            return format!("base pages only{known}");
        }
        let each = [
            ("hugetlb_bytes", totals.hugetlb_bytes, "of pools"),
            ("thp_bytes", totals.thp_bytes, "transparent huge pages"),
            ("mthp_bytes", totals.mthp_bytes, "large pages mapped by base-page entries"),
            ("base_bytes", totals.base_bytes, "base pages"),
        ];
        let some = each.iter().filter(|(_, bytes, _)| *bytes > 0);
        let tell = |(name, bytes, what): &(&str, u64, &str)| {
            let share = about(totals.is_estimated(name), share(*bytes, totals.resident_bytes));
            format!("{share} {what}")
        };
        let told: Vec<String> = some.map(tell).collect();
        told.join(", ")
    }

    fn where_they_run(&self) -> String {
        let Some(first) = self.processes.first() else { return String::new() };
        let threads = sum_of(self.processes.iter().map(|process| u64::from(process.threads)));
        let mut on: BTreeMap<Option<u32>, (usize, &str)> = BTreeMap::new();
        for ran in self.processes.iter().flat_map(|process| &process.ran_on) {
            let (threads, cpus) = on.entry(ran.node).or_default();
            *threads += ran.threads;
            *cpus = &ran.cpus;
        }
        // Of several processes the tables tell the CPUs of each.
        let is_one = self.processes.len() == 1;
        let told = |(node, (threads, cpus)): (Option<u32>, (usize, &str))| {
            let cpus = if is_one && !cpus.is_empty() { format!(" (CPUs {cpus})") } else { String::new() };
            format!("{threads} on {}{cpus}", node_name(node))
        };
        let is_told = on.iter().any(|(node, (_, cpus))| node.is_some() || (is_one && !cpus.is_empty()));
        let on: Vec<String> = on.into_iter().map(told).collect();
        let mut text = units::counted(threads, "thread");
        if is_told {
            text += &format!(", where they ran last: {}", on.join(", "));
        }
        if !first.allowed_cpus.is_empty() {
            let same = |process: &MapProcess| process.allowed_cpus == first.allowed_cpus;
            let who = if self.processes.iter().all(same) { "" } else { "those of the first process " };
            text += &format!("; {who}may run on CPUs {}", first.allowed_cpus);
        }
        if !first.allowed_nodes.is_empty() {
            text += &format!(" and take memory of node {}", first.allowed_nodes);
        }
        text
    }

    /// One line for all names that lie alike.
    fn rows_in_short(&self, page: &mut Page<'_>) {
        type Alike = (MapKind, MapBacking, u64, Option<u32>);
        let mut alike: BTreeMap<Alike, Vec<&MapRow>> = BTreeMap::new();
        for row in &self.rows {
            alike.entry((row.kind, row.backing, row.page_bytes, row.node)).or_default().push(row);
        }
        let mut table = Table::new(&["kind", "backing", ">page", ">node", ">resident", "what"]);
        for ((kind, backing, page_bytes, node), mut rows) in alike {
            rows.sort_small_by_key(|row| std::cmp::Reverse(row.resident_bytes));
            let estimated = rows.iter().any(|row| row.estimated);
            table.row([
                kind.word().into(),
                backing_cell(backing),
                units::bytes(page_bytes).into(),
                node_cell(node),
                resident(sum_of(rows.iter().map(|row| row.resident_bytes)), estimated).into(),
                names(&rows).into(),
            ]);
        }
        page.table(&table);
    }

    fn rows_by_name(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["kind", "backing", ">page", ">node", ">resident", "name"]);
        for row in &self.rows {
            table.row([
                row.kind.word().into(),
                backing_cell(row.backing),
                units::bytes(row.page_bytes).into(),
                node_cell(row.node),
                resident(row.resident_bytes, row.estimated).into(),
                row.name.as_str().into(),
            ]);
        }
        page.table(&table);
    }

    fn process_table(&self, page: &mut Page<'_>) {
        if self.processes.len() < 2 {
            return;
        }
        let titles = [
            ">pid",
            "program",
            ">private",
            ">of files",
            ">shared mapped",
            ">page tables",
            "private by node; threads",
        ];
        let mut table = Table::new(&titles);
        for process in &self.processes {
            let private = sum_of(process.private.iter().map(|private| private.resident_bytes));
            let estimated = process.private.iter().any(|private| private.estimated);
            let cpus: Vec<&str> = process.ran_on.iter().map(|on| on.cpus.as_str()).collect();
            table.row([
                process.pid.to_string().into(),
                process.name.as_str().into(),
                resident(private, estimated).into(),
                units::bytes(process.file_mapped_bytes).into(),
                units::bytes(process.shared_mapped_bytes).into(),
                units::bytes(process.page_table_bytes).into(),
                format!("{}; CPUs {}", private_memory(process), cpus.join(",")).into(),
            ]);
        }
        page.heading("Processes");
        page.table(&table);
    }

    fn jit_table(&self, page: &mut Page<'_>) {
        if self.jit.is_empty() {
            return;
        }
        let mut table = Table::new(&[">pid", "addresses", ">resident", ">on larger pages", "name"]);
        for jit in &self.jit {
            table.row([
                jit.pid.to_string().into(),
                format!("{}-{}", jit.start, jit.end).into(),
                units::bytes(jit.resident_bytes).into(),
                resident(jit.huge_bytes, jit.huge_estimated).into(),
                jit.name.as_str().into(),
            ]);
        }
        page.heading("Code made at run time");
        page.table(&table);
    }
}

/// Lines of a table of PostgreSQL without `--verbose`.
const PIECES_MAX: usize = 12;

impl MapPostgres {
    fn text(&self, page: &mut Page<'_>) {
        page.heading(&format!("Shared memory of PostgreSQL {}", self.version));
        let segment =
            self.segment.iter().map(|it| MapPiece { name: "the main segment".to_owned(), ..it.clone() });
        let others = self.dynamic.iter().cloned();
        piece_table(page, "segment", &segment.chain(others).collect::<Vec<_>>());
        for (heading, title, pieces) in [
            ("Pieces of the main segment", "piece", &self.allocations),
            ("Relations in the buffers", "relation", &self.relations),
        ] {
            if !pieces.is_empty() {
                page.heading(heading);
                piece_table(page, title, pieces);
            }
        }
        page.heading("Processes");
        let mut table =
            Table::new(&[">pid", "process", ">shared mapped", ">page tables", "private memory by node"]);
        for backend in &self.backends {
            let names = [backend.kind.as_str(), backend.application.as_str()];
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            table.row([
                backend.pid.to_string().into(),
                names.join(", ").into(),
                units::bytes(backend.shared_mapped_bytes).into(),
                units::bytes(backend.page_table_bytes).into(),
                private_by_node(&backend.private).into(),
            ]);
        }
        page.table(&table);
        if !self.remarks.is_empty() {
            page.gap();
            self.remarks.iter().for_each(|remark| page.fact("not told", remark));
        }
    }
}

/// Named pieces with what of them is where.
fn piece_table(page: &mut Page<'_>, title: &str, pieces: &[MapPiece]) {
    let mut table = Table::new(&[title, ">bytes", ">resident", "where"]);
    let shown = if page.is_detailed() { pieces.len() } else { PIECES_MAX };
    for piece in pieces.iter().take(shown) {
        let sum = sum_of(piece.parts.iter().map(|part| part.resident_bytes));
        let estimated = piece.seen_in_part || piece.parts.iter().any(|part| part.estimated);
        let unwritten = (piece.unwritten_bytes > 0).then(|| {
            format!(
                "besides {} allocated and not written yet, on a node that is not told",
                resident(piece.unwritten_bytes, piece.unwritten_estimated)
            )
        });
        let each = piece.parts.iter().map(|part| {
            let (node, page) = (node_name(part.node), units::bytes(part.page_bytes));
            let share = about(part.estimated, share(part.resident_bytes, sum));
            format!("{share} of it on {node}, {} {page}", part.backing.word())
        });
        table.row([
            piece.name.as_str().into(),
            units::bytes(piece.bytes).into(),
            resident(sum, estimated).into(),
            each.chain(unwritten).collect::<Vec<_>>().join("; ").into(),
        ]);
    }
    page.table(&table);
    if pieces.len() > shown {
        page.line(format!("and {} smaller ones (--verbose)", pieces.len() - shown));
    }
}

/// Where the private memory of a process lies, or whose it is, too.
fn private_memory(process: &MapProcess) -> String {
    let of_another = process.memory_of.map(|pid| format!("the memory of process {pid}"));
    of_another.unwrap_or_else(|| private_by_node(&process.private))
}

fn private_by_node(private: &[MapPrivate]) -> String {
    let each = private.iter().map(|private| {
        format!("{} {}", node_name(private.node), resident(private.resident_bytes, private.estimated))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The names of rows, the one with most memory first.
fn names(rows: &[&MapRow]) -> String {
    let known = rows.iter().map(|row| row.name.as_str()).filter(|name| !name.is_empty());
    let known: Vec<&str> = known.collect();
    let mut text = known.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    if known.len() > NAMES_MAX {
        text += &format!(" and {} more", known.len() - NAMES_MAX);
    }
    text
}

pub(super) fn backing_cell(backing: MapBacking) -> Cell {
    let style = if backing == MapBacking::Base { anstyle::Style::new() } else { styles::GOOD };
    Cell::styled(backing.word(), style)
}

pub(super) fn node_cell(node: Option<u32>) -> Cell {
    node.map_or("-".to_owned(), |node| node.to_string()).into()
}

fn node_name(node: Option<u32>) -> String {
    node.map_or("a node that is not told".to_owned(), |node| format!("node {node}"))
}

pub(super) fn resident(bytes: u64, estimated: bool) -> String {
    about(estimated, units::bytes(bytes))
}

/// The mark of what has a part that is an estimate or was not seen.
fn about(estimated: bool, told: String) -> String {
    if estimated { format!("about {told}") } else { told }
}

/// A part of a whole in percent; what is not nothing is not told as such.
fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    match percent {
        _ if part > 0 && percent < 0.5 => "< 1 %".to_owned(),
        _ if part < whole && percent > 99.5 => "> 99 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use planish_model::Catalogue;

    use super::{MapBacking, MapPiece, piece_table, share};
    use crate::commands::MapPart;
    use crate::page::{Page, PageOptions};

    #[test]
    fn memory_that_nobody_wrote_is_told_beside_what_is_resident() {
        let (node, backing) = (Some(0), MapBacking::Base);
        let part = MapPart { node, backing, page_bytes: 4096, resident_bytes: 4096, estimated: false };
        let segment = MapPiece {
            name: "/dev/shm/PostgreSQL.1".to_owned(),
            bytes: 26_976,
            parts: vec![part],
            seen_in_part: false,
            buffers: Vec::new(),
            unwritten_bytes: 24_576,
            unwritten_estimated: false,
        };
        let line = row(segment);
        let told = "4 KiB  100 % of it on node 0, base 4 KiB; besides 24 KiB allocated and not written yet";
        assert!(line.contains(told) && !line.contains("28 KiB"), "{line}");
    }

    #[test]
    fn what_was_seen_in_part_is_not_told_as_nothing() {
        let relation = MapPiece {
            name: "pgbench_accounts".to_owned(),
            bytes: 8192,
            parts: Vec::new(),
            seen_in_part: true,
            buffers: Vec::new(),
            unwritten_bytes: 0,
            unwritten_estimated: false,
        };
        assert!(row(relation.clone()).contains("8 KiB  about 0 B"));
        assert!(!row(MapPiece { seen_in_part: false, ..relation }).contains("about"));
    }

    fn row(piece: MapPiece) -> String {
        let catalogue = Catalogue::default();
        let mut page = Page::new(PageOptions { width: 160, detailed: true }, &catalogue);
        piece_table(&mut page, "segment", &[piece]);
        page.into_text().lines().last().expect("a row").to_owned()
    }

    #[test]
    fn shares_hide_nothing() {
        assert_eq!([share(0, 9), share(1, 900), share(1, 2)], ["0 %", "< 1 %", "50 %"]);
        assert_eq!([share(899, 900), share(9, 9), share(0, 0)], ["> 99 %", "100 %", "0 %"]);
    }
}
