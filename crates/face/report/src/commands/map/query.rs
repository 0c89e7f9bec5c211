//! What one query of a PostgreSQL server left in memory: the map after it, less the map before it.

use std::collections::BTreeMap;

use planish_residency::sum_of;
use planish_trial::postgres::Queried;
use schemars::JsonSchema;
use serde::Serialize;

use super::text::{backing_cell, node_cell, resident};
use super::{MapBackend, MapBacking, MapKind, MapPiece, MapReport};
use crate::page::Page;
use crate::table::{Cell, Table};
use crate::units;

/// Something that a query made more or less of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapChange {
    /// What it is: the kind of memory of all processes, a relation, or a sum of the query's own process.
    pub what: String,
    /// On which pages it lies; null for a sum over all of them, and for buffers of which no page was seen.
    pub backing: Option<MapBacking>,
    /// Of a relation, the size of one of these pages in bytes; null as the backing is, and for all else.
    pub page_bytes: Option<u64>,
    /// NUMA node; null where nobody tells, and for a sum.
    pub node: Option<u32>,
    /// Bytes before the query.
    pub before_bytes: u64,
    /// Bytes after it.
    pub after_bytes: u64,
    /// Whether either is about right only.
    pub estimated: bool,
    /// Of a relation, its buffers that lay there before the query; one that reaches over pages counts where its first
    /// byte lies. Null where that is not told, and for all else.
    pub before_buffers: Option<u64>,
    /// The same after it.
    pub after_buffers: Option<u64>,
}

/// One query, and what it changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MapQuery {
    /// The process that served it.
    pub pid: u32,
    /// Rows that it gave.
    pub rows: u64,
    /// How long it took in seconds, its rows on their way included.
    pub seconds: f64,
    /// Memory by kind, backing and node, where it is another amount than before; whoever caused it.
    pub memory: Vec<MapChange>,
    /// Relations in the buffers with more or less in memory than before, by name, page size and node.
    pub relations: Vec<MapChange>,
    /// The process that served it: private and shared memory, and page tables.
    pub process: Vec<MapChange>,
}

impl MapReport {
    /// The report of the map after a query, which was served by a process, with what is other than before it.
    #[must_use]
    pub fn after_query(self, before: &Self, pid: u32, queried: &Queried) -> Self {
        let query = MapQuery {
            pid,
            rows: queried.rows,
            seconds: queried.took.as_secs_f64(),
            memory: changes(&memory(before), &memory(&self)),
            relations: changes(&relations(before), &relations(&self)),
            process: changes(&process(before, pid), &process(&self, pid)),
        };
        Self { query: Some(query), ..self }
    }
}

/// What there is, with the pages, their size, and the node where they are told apart.
type Key = (String, Option<MapBacking>, Option<u64>, Option<u32>);
type Amounts = BTreeMap<Key, Amount>;

/// How much of it there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    bytes: u64,
    estimated: bool,
    /// Of a relation whose places are told.
    buffers: Option<u64>,
}

impl Amount {
    fn of(bytes: u64, estimated: bool) -> Self {
        Self { bytes, estimated, buffers: None }
    }

    fn add(&mut self, bytes: u64, estimated: bool) {
        self.bytes = sum_of([self.bytes, bytes]);
        self.estimated |= estimated;
    }
}

fn memory(report: &MapReport) -> Amounts {
    let mut amounts = Amounts::new();
    for row in &report.rows {
        let key = (MapKind::word(row.kind).to_owned(), Some(row.backing), None, row.node);
        amounts.entry(key).or_default().add(row.resident_bytes, row.estimated);
    }
    amounts
}

fn relations(report: &MapReport) -> Amounts {
    by_place(report.postgres.iter().flat_map(|told| &told.relations))
}

/// Bytes and buffers of each relation on pages of each size on each node.
fn by_place<'a>(relations: impl Iterator<Item = &'a MapPiece>) -> Amounts {
    let mut amounts = Amounts::new();
    for piece in relations {
        for part in &piece.parts {
            let key = (piece.name.clone(), Some(part.backing), Some(part.page_bytes), part.node);
            let amount = amounts.entry(key).or_default();
            amount.add(part.resident_bytes, part.estimated);
            if !piece.buffers.is_empty() {
                amount.buffers.get_or_insert(0);
            }
        }
        for told in &piece.buffers {
            let key = (piece.name.clone(), told.backing, told.page_bytes, told.node);
            *amounts.entry(key).or_default().buffers.get_or_insert(0) += told.buffers;
        }
    }
    amounts
}

fn process(report: &MapReport, pid: u32) -> Amounts {
    let backends = report.postgres.iter().flat_map(|told| &told.backends);
    let sums = |backend: &MapBackend| {
        let private = sum_of(backend.private.iter().map(|own| own.resident_bytes));
        let estimated = backend.private.iter().any(|own| own.estimated);
        [
            ("private", Amount::of(private, estimated)),
            ("shared mapped", Amount::of(backend.shared_mapped_bytes, false)),
            ("page tables", Amount::of(backend.page_table_bytes, false)),
        ]
    };
    let own = backends.filter(|backend| backend.pid == pid).flat_map(sums);
    own.map(|(what, amount)| ((what.to_owned(), None, None, None), amount)).collect()
}

/// Those with another amount, in the order of their keys.
fn changes(before: &Amounts, after: &Amounts) -> Vec<MapChange> {
    let keys: std::collections::BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let change = |key: &Key| {
        let (what, backing, page_bytes, node) = key.clone();
        let (had, has) = (before.get(key).copied(), after.get(key).copied());
        // What is not there at all has no buffers, where the other side tells of any.
        let buffers = |own: Option<Amount>, other: Option<Amount>| match own {
            Some(own) => own.buffers,
            None => other.and_then(|other| other.buffers).map(|_| 0),
        };
        let (before_buffers, after_buffers) = (buffers(had, has), buffers(has, had));
        let (had, has) = (had.unwrap_or_default(), has.unwrap_or_default());
        let is_other = had.bytes != has.bytes || before_buffers != after_buffers;
        is_other.then_some(MapChange {
            what,
            backing,
            page_bytes,
            node,
            before_bytes: had.bytes,
            after_bytes: has.bytes,
            estimated: had.estimated || has.estimated,
            before_buffers,
            after_buffers,
        })
    };
    keys.into_iter().filter_map(change).collect()
}

/// How much more there is, with a sign where it is less; `tell` writes an amount.
fn more(before: u64, after: u64, tell: impl Fn(u64) -> String) -> String {
    let sign = if after < before { "-" } else { "" };
    format!("{sign}{}", tell(after.abs_diff(before)))
}

impl MapQuery {
    pub(super) fn text(&self, page: &mut Page<'_>) {
        page.heading("What the query changed");
        let rows = units::count(usize::try_from(self.rows).unwrap_or(usize::MAX), "row");
        page.fact(
            "query",
            &format!("{rows} in {}, served by process {}", units::seconds(self.seconds), self.pid),
        );
        let groups = [("memory", &self.memory), ("its process", &self.process)];
        let mut table = Table::new(&["", "what", "backing", ">node", ">before", ">after", ">more by"]);
        for (group, changes) in groups {
            for change in changes {
                let [before, after, by] = change.amounts();
                table.row([
                    group.into(),
                    change.what.as_str().into(),
                    change.backing.map_or_else(|| "".into(), backing_cell),
                    change.backing.map_or_else(|| "".into(), |_| node_cell(change.node)),
                    before,
                    after,
                    by,
                ]);
            }
        }
        let is_same = groups.iter().all(|(_, changes)| changes.is_empty());
        if is_same && self.relations.is_empty() {
            page.line("nothing that can be seen");
        } else if !is_same {
            page.table(&table);
        }
        self.relation_table(page);
    }

    /// What of each relation came to lie on which pages of which node, or left them.
    fn relation_table(&self, page: &mut Page<'_>) {
        if self.relations.is_empty() {
            return;
        }
        let titles = [
            "relation", "backing", ">page", ">node", ">before", ">after", ">more by", ">buffers", ">after",
            ">more by",
        ];
        let mut table = Table::new(&titles);
        for change in &self.relations {
            let [before, after, by] = change.amounts();
            let [buffers, buffers_after, buffers_by] = change.buffers();
            table.row([
                change.what.as_str().into(),
                change.backing.map_or_else(|| "not seen".into(), backing_cell),
                change.page_bytes.map_or_else(String::new, units::bytes).into(),
                node_cell(change.node),
                before,
                after,
                by,
                buffers,
                buffers_after,
                buffers_by,
            ]);
        }
        page.heading("What it changed of relations in the buffers, by page size and node");
        page.table(&table);
    }
}

impl MapChange {
    /// Bytes before and after, and how many more they are.
    fn amounts(&self) -> [Cell; 3] {
        let tell = |bytes| resident(bytes, self.estimated);
        let (before, after) = (self.before_bytes, self.after_bytes);
        let by = more(before, after, units::bytes);
        let by = if self.estimated { format!("about {by}") } else { by };
        [tell(before).into(), tell(after).into(), by.into()]
    }

    /// The same of buffers.
    fn buffers(&self) -> [Cell; 3] {
        let tell = |count: Option<u64>| Cell::from(count.map_or_else(|| "-".to_owned(), |it| it.to_string()));
        let by = self.before_buffers.zip(self.after_buffers);
        let by =
            by.map_or_else(|| "-".to_owned(), |(before, after)| more(before, after, |by| by.to_string()));
        [tell(self.before_buffers), tell(self.after_buffers), by.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MapBuffers, MapPart};
    use super::*;

    #[test]
    fn what_is_new_gone_more_or_less_is_told_and_nothing_else() {
        let amounts = |of: &[(&str, u64)]| -> Amounts {
            let amount = |(what, bytes): &(&str, u64)| {
                (((*what).to_owned(), None, None, Some(0)), Amount::of(*bytes, false))
            };
            of.iter().map(amount).collect()
        };
        let before = amounts(&[("gone", 5), ("less", 9), ("more", 1), ("same", 7)]);
        let after = amounts(&[("less", 8), ("more", 2), ("new", 3), ("same", 7)]);
        let told = changes(&before, &after);
        let told: Vec<_> =
            told.iter().map(|it| (it.what.as_str(), it.before_bytes, it.after_bytes)).collect();
        assert_eq!(told, [("gone", 5, 0), ("less", 9, 8), ("more", 1, 2), ("new", 0, 3)]);
    }

    const SMALL: (MapBacking, u64) = (MapBacking::Base, 4096);
    const HUGE: (MapBacking, u64) = (MapBacking::Hugetlb, 2 << 20);

    /// What lies on pages of one size on one node: bytes, buffers.
    type On = ((MapBacking, u64), u32, u64, u64);

    /// A relation with its buffers on pages of a node; `told`: whether the places of buffers are.
    fn relation(name: &str, on: &[On], told: bool) -> MapPiece {
        let part = |((backing, page_bytes), node, bytes, _): &On| {
            let (backing, page_bytes, node) = (*backing, *page_bytes, Some(*node));
            MapPart { backing, node, page_bytes, resident_bytes: *bytes, estimated: !told }
        };
        let buffers = |((backing, page_bytes), node, _, buffers): &On| MapBuffers {
            backing: Some(*backing),
            node: Some(*node),
            page_bytes: Some(*page_bytes),
            buffers: *buffers,
        };
        MapPiece {
            name: name.to_owned(),
            bytes: on.iter().map(|(_, _, bytes, _)| bytes).sum(),
            parts: on.iter().map(part).collect(),
            seen_in_part: false,
            buffers: on.iter().filter(|_| told).map(buffers).collect(),
            unwritten_bytes: 0,
            unwritten_estimated: false,
        }
    }

    fn changed(before: &[MapPiece], after: &[MapPiece]) -> Vec<MapChange> {
        changes(&by_place(before.iter()), &by_place(after.iter()))
    }

    /// Name, page size, node; bytes before and after; buffers before and after.
    type Told<'a> = (&'a str, Option<u64>, Option<u32>, [u64; 2], [Option<u64>; 2]);

    fn told(changes: &[MapChange]) -> Vec<Told<'_>> {
        fn one(it: &MapChange) -> Told<'_> {
            let bytes = [it.before_bytes, it.after_bytes];
            (it.what.as_str(), it.page_bytes, it.node, bytes, [it.before_buffers, it.after_buffers])
        }
        changes.iter().map(one).collect()
    }

    #[test]
    fn a_relation_changes_by_page_size_and_node() {
        let before = [
            relation("grows", &[(SMALL, 0, 16 << 10, 2), (SMALL, 1, 8 << 10, 1)], true),
            relation("gone", &[(HUGE, 1, 8 << 10, 1)], true),
            relation("same", &[(HUGE, 0, 8 << 10, 1)], true),
        ];
        let after = [
            relation(
                "grows",
                &[(SMALL, 0, 16 << 10, 2), (SMALL, 1, 24 << 10, 3), (HUGE, 1, 8 << 10, 1)],
                true,
            ),
            relation("new", &[(SMALL, 0, 12 << 10, 2), (SMALL, 1, 4 << 10, 0)], true),
            relation("same", &[(HUGE, 0, 8 << 10, 1)], true),
        ];
        let (small, huge) = (Some(4096), Some(2 << 20));
        assert_eq!(
            told(&changed(&before, &after)),
            [
                ("gone", huge, Some(1), [8 << 10, 0], [Some(1), Some(0)]),
                ("grows", small, Some(1), [8 << 10, 24 << 10], [Some(1), Some(3)]),
                ("grows", huge, Some(1), [0, 8 << 10], [Some(0), Some(1)]),
                ("new", small, Some(0), [0, 12 << 10], [Some(0), Some(2)]),
                ("new", small, Some(1), [0, 4 << 10], [Some(0), Some(0)]),
            ]
        );
        assert!(changed(&after, &after).is_empty(), "nothing happened");
    }

    #[test]
    fn a_line_tells_bytes_and_buffers_of_a_relation_on_pages_of_a_node() {
        let before = [relation("t", &[(SMALL, 1, 8 << 10, 1), (HUGE, 0, 16 << 10, 2)], true)];
        let after = [relation("t", &[(SMALL, 1, 24 << 10, 3)], true)];
        let relations = changed(&before, &after);
        let query =
            MapQuery { pid: 7, rows: 1, seconds: 0.5, memory: Vec::new(), relations, process: Vec::new() };
        let catalogue = planish_model::Catalogue::default();
        let options = crate::page::PageOptions { width: 160, detailed: false };
        let mut page = Page::new(options, &catalogue);
        query.text(&mut page);
        let text = page.into_text();
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let lines: Vec<String> = lines.collect();
        assert!(lines.contains(&"t base 4 KiB 1 8 KiB 24 KiB 16 KiB 1 3 2".to_owned()), "{text}");
        let gone = lines.iter().find(|line| line.contains("hugetlb")).expect("a line");
        assert!(gone.contains("2 MiB 0 16 KiB 0 B -16 KiB 2 0 -2"), "{text}");
        assert!(!text.contains("nothing that can be seen"), "{text}");
    }

    #[test]
    fn what_moved_without_another_size_is_a_change_of_two_nodes() {
        let at = |node| [relation("moved", &[(SMALL, node, 8 << 10, 1)], true)];
        assert_eq!(
            told(&changed(&at(0), &at(1))),
            [
                ("moved", Some(4096), Some(0), [8 << 10, 0], [Some(1), Some(0)]),
                ("moved", Some(4096), Some(1), [0, 8 << 10], [Some(0), Some(1)]),
            ]
        );
    }

    #[test]
    fn buffers_without_a_page_that_was_seen_are_told_and_such_without_a_place_are_not_counted() {
        let mut swapped = relation("t", &[], true);
        let buffers = |buffers| MapBuffers { backing: None, node: None, page_bytes: None, buffers };
        swapped.buffers.push(buffers(2));
        let there = [relation("t", &[(SMALL, 0, 16 << 10, 2)], true)];
        assert_eq!(
            told(&changed(&there, &[swapped])),
            [
                ("t", None, None, [0, 0], [Some(0), Some(2)]),
                ("t", Some(4096), Some(0), [16 << 10, 0], [Some(2), Some(0)]),
            ]
        );
        let [less, more] = [8 << 10, 16 << 10].map(|bytes| [relation("t", &[(SMALL, 0, bytes, 0)], false)]);
        let changes = changed(&less, &more);
        assert_eq!(told(&changes), [("t", Some(4096), Some(0), [8 << 10, 16 << 10], [None, None])]);
        assert!(changes[0].estimated);
        assert!(!changed(&there, &[])[0].estimated);
    }
}
