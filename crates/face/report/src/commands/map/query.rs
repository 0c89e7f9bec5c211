//! What one query of a PostgreSQL server left in memory: the map after it, less the map before it.

use std::collections::BTreeMap;

use planish_trial::postgres::Queried;
use schemars::JsonSchema;
use serde::Serialize;

use super::text::{backing_cell, node_cell};
use super::{MapBackend, MapBacking, MapKind, MapPiece, MapReport};
use crate::page::Page;
use crate::table::Table;
use crate::units;

/// Something that a query made more or less of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapChange {
    /// What it is: the kind of memory of all processes, a relation, or a sum of the query's own process.
    pub what: String,
    /// On which pages it lies; null for a sum over all of them.
    pub backing: Option<MapBacking>,
    /// NUMA node; null where nobody tells, and for a sum.
    pub node: Option<u32>,
    /// Bytes before the query.
    pub before_bytes: u64,
    /// Bytes after it.
    pub after_bytes: u64,
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
    /// Relations in the buffers with more or less in memory than before, by name.
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

/// What there is, with the pages and the node where they are told apart.
type Key = (String, Option<MapBacking>, Option<u32>);
type Amounts = BTreeMap<Key, u64>;

fn memory(report: &MapReport) -> Amounts {
    let mut amounts = Amounts::new();
    for row in &report.rows {
        let key = (MapKind::word(row.kind).to_owned(), Some(row.backing), row.node);
        *amounts.entry(key).or_default() += row.resident_bytes;
    }
    amounts
}

fn relations(report: &MapReport) -> Amounts {
    let relations = report.postgres.iter().flat_map(|told| &told.relations);
    let resident = |piece: &MapPiece| piece.parts.iter().map(|part| part.resident_bytes).sum();
    relations.map(|piece| ((piece.name.clone(), None, None), resident(piece))).collect()
}

fn process(report: &MapReport, pid: u32) -> Amounts {
    let backends = report.postgres.iter().flat_map(|told| &told.backends);
    let sums = |backend: &MapBackend| {
        let private = backend.private.iter().map(|own| own.resident_bytes).sum();
        [
            ("private", private),
            ("shared mapped", backend.shared_mapped_bytes),
            ("page tables", backend.page_table_bytes),
        ]
    };
    let own = backends.filter(|backend| backend.pid == pid).flat_map(sums);
    own.map(|(what, bytes)| ((what.to_owned(), None, None), bytes)).collect()
}

/// Those with another amount, in the order of their keys.
fn changes(before: &Amounts, after: &Amounts) -> Vec<MapChange> {
    let keys: std::collections::BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let bytes = |amounts: &Amounts, key: &Key| amounts.get(key).copied().unwrap_or_default();
    let change = |key: &Key| {
        let (what, backing, node) = key.clone();
        let (before_bytes, after_bytes) = (bytes(before, key), bytes(after, key));
        (before_bytes != after_bytes).then_some(MapChange { what, backing, node, before_bytes, after_bytes })
    };
    keys.into_iter().filter_map(change).collect()
}

impl MapQuery {
    pub(super) fn text(&self, page: &mut Page<'_>) {
        page.heading("What the query changed");
        let rows = units::count(usize::try_from(self.rows).unwrap_or(usize::MAX), "row");
        page.fact(
            "query",
            &format!("{rows} in {}, served by process {}", units::seconds(self.seconds), self.pid),
        );
        let groups =
            [("memory", &self.memory), ("relation", &self.relations), ("its process", &self.process)];
        let mut table = Table::new(&["", "what", "backing", ">node", ">before", ">after", ">more by"]);
        for (group, changes) in groups {
            for change in changes {
                let more = i128::from(change.after_bytes) - i128::from(change.before_bytes);
                let sign = if more < 0 { "-" } else { "" };
                let by = u64::try_from(more.unsigned_abs()).unwrap_or(u64::MAX);
                table.row([
                    group.into(),
                    change.what.as_str().into(),
                    change.backing.map_or_else(|| "".into(), backing_cell),
                    change.backing.map_or_else(|| "".into(), |_| node_cell(change.node)),
                    units::bytes(change.before_bytes).into(),
                    units::bytes(change.after_bytes).into(),
                    format!("{sign}{}", units::bytes(by)).into(),
                ]);
            }
        }
        if groups.iter().all(|(_, changes)| changes.is_empty()) {
            page.line("nothing that can be seen");
        } else {
            page.table(&table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_gone_more_or_less_is_told_and_nothing_else() {
        let amounts = |of: &[(&str, u64)]| -> Amounts {
            of.iter().map(|(what, bytes)| (((*what).to_owned(), None, Some(0)), *bytes)).collect()
        };
        let before = amounts(&[("gone", 5), ("less", 9), ("more", 1), ("same", 7)]);
        let after = amounts(&[("less", 8), ("more", 2), ("new", 3), ("same", 7)]);
        let told = changes(&before, &after);
        let told: Vec<_> =
            told.iter().map(|it| (it.what.as_str(), it.before_bytes, it.after_bytes)).collect();
        assert_eq!(told, [("gone", 5, 0), ("less", 9, 8), ("more", 1, 2), ("new", 0, 3)]);
    }
}
