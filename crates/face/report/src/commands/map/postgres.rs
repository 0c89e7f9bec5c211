//! What PostgreSQL says of its shared memory, laid over the map of it.

use std::collections::BTreeMap;

use planish_residency::{Kind, Map, Object, Part, sum_of};
use planish_sorted::SortSmall as _;
use planish_trial::postgres::Layout;
use schemars::JsonSchema;
use serde::Serialize;

use super::picture::{MapPart, add};
use super::{MapBacking, MapPrivate, MapProcess};

/// Buffers on pages of one size on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapBuffers {
    /// On which pages they lie; null for those of which no page was seen: in swap, or mapped by no process that was
    /// looked at.
    pub backing: Option<MapBacking>,
    /// NUMA node; null where nobody tells.
    pub node: Option<u32>,
    /// Size of one of the pages in bytes; null as the backing is.
    pub page_bytes: Option<u64>,
    /// How many buffers; one that reaches over pages counts where its first byte lies.
    pub buffers: u64,
}

/// A named piece of shared memory, and what of it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapPiece {
    /// Its name: an allocation, a segment, a relation.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where its memory lies; bytes that nobody has used yet are in none.
    pub parts: Vec<MapPart>,
    /// Whether more of it may be in memory: of its segment only what processes have mapped was seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub seen_in_part: bool,
    /// Of a relation, its buffers by where they lie; none where places in the segment are not told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<MapBuffers>,
    /// Bytes that have memory and were not written yet: on no node that is told, and in no part. Of what is mapped of a
    /// segment; 0 for a piece of one.
    pub unwritten_bytes: u64,
    /// Whether they may be fewer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unwritten_estimated: bool,
}

/// A process of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapBackend {
    /// Its PID.
    pub pid: u32,
    /// What it is: `client backend`, `checkpointer`.
    pub kind: String,
    /// The application that it serves; empty for the server's own.
    pub application: String,
    /// Memory that is its own, by node.
    pub private: Vec<MapPrivate>,
    /// Bytes of shared memory that its page tables map.
    pub shared_mapped_bytes: u64,
    /// Its page tables.
    pub page_table_bytes: u64,
}

/// A PostgreSQL server as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapPostgres {
    /// Its version.
    pub version: String,
    /// The main segment; null where none was found that holds what the server tells.
    pub segment: Option<MapPiece>,
    /// The pieces of the main segment, the largest first.
    pub allocations: Vec<MapPiece>,
    /// Other shared memory, such as that of parallel queries.
    pub dynamic: Vec<MapPiece>,
    /// What the buffers hold, by relation, the largest first; empty without pg_buffercache.
    pub relations: Vec<MapPiece>,
    /// Its processes with their own memory.
    pub backends: Vec<MapBackend>,
    /// What could not be told, with what would help.
    pub remarks: Vec<String>,
}

impl MapPostgres {
    /// Lays what the server told over the map of its processes.
    pub(super) fn of(map: &Map, processes: &[MapProcess], layout: &Layout) -> Self {
        let mut remarks = layout.remarks.clone();
        let end = layout.allocations.iter().map(|it| it.offset.saturating_add(it.bytes)).max().unwrap_or(0);
        let main = main_segment(map).filter(|object| object.bytes >= end);
        if main.is_none() {
            remarks.push(
                "the main segment was not seen: see what is told of shared memory under `Not seen`"
                    .to_owned(),
            );
        }
        let is_main = |object: &&Object| main.is_some_and(|main| main.id == object.id);
        if main.is_some_and(|main| !main.looked) {
            remarks.push(
                "what of the main segment no process of the server has mapped: see what is told of shared memory under \
                 `Not seen`"
                    .to_owned(),
            );
        }
        let is_segment = |object: &&Object| object.kind == Kind::Shared && !is_main(object);
        let others = map.objects.iter().filter(is_segment);
        Self {
            version: layout.version.clone(),
            segment: main.map(whole),
            allocations: main.map_or_else(Vec::new, |main| allocations(main, layout)),
            dynamic: others.map(whole).collect(),
            relations: main.map_or_else(Vec::new, |main| relations(main, layout)),
            backends: backends(processes, layout),
            remarks,
        }
    }
}

/// The largest segment without a file of its own that the postmaster maps from its first byte on.
fn main_segment(map: &Map) -> Option<&Object> {
    let postmaster = map.members.first()?;
    let mapped = postmaster.areas.iter().filter(|pages| pages.area.offset == 0);
    let objects = mapped.filter_map(|pages| map.objects.get(pages.object?));
    let anonymous = |object: &&Object| {
        ["/dev/zero", "/anon_hugepage", "/SYSV"].iter().any(|start| object.name.starts_with(start))
    };
    objects.filter(anonymous).max_by_key(|object| object.bytes)
}

fn whole(object: &Object) -> MapPiece {
    let parts = object.parts().iter().map(MapPart::from).collect();
    let (name, bytes, buffers) = (object.name.clone(), object.bytes, Vec::new());
    let (unwritten_bytes, unwritten_estimated) =
        (object.pages.unwritten_bytes, object.pages.unwritten_estimated);
    let seen_in_part = object.is_seen_in_part();
    MapPiece { name, bytes, parts, seen_in_part, buffers, unwritten_bytes, unwritten_estimated }
}

/// A piece of `main`, which has these `parts`.
fn piece(main: &Object, name: &str, bytes: u64, parts: impl IntoIterator<Item = Part>) -> MapPiece {
    let mut sums = Vec::new();
    parts.into_iter().for_each(|part| add(&mut sums, MapPart::from(&part)));
    let seen = sum_of(sums.iter().map(|part| part.resident_bytes));
    MapPiece {
        name: name.to_owned(),
        bytes,
        parts: sums,
        seen_in_part: main.is_seen_in_part() && seen < bytes,
        buffers: Vec::new(),
        unwritten_bytes: 0,
        unwritten_estimated: false,
    }
}

fn allocations(main: &Object, layout: &Layout) -> Vec<MapPiece> {
    let mut pieces: Vec<MapPiece> = layout
        .allocations
        .iter()
        .map(|it| piece(main, &it.name, it.bytes, main.pages.parts(&(it.offset..it.offset + it.bytes))))
        .collect();
    pieces.sort_small_by_key(|piece| std::cmp::Reverse(piece.bytes));
    pieces
}

/// The memory of each relation's buffers. Buffers side by side are one range.
fn relations(main: &Object, layout: &Layout) -> Vec<MapPiece> {
    let Some(first) = layout.buffers_offset else { return Vec::new() };
    let start_of = |buffer: i32| {
        let number = u64::try_from(buffer).unwrap_or(1).saturating_sub(1);
        first + number * layout.block_bytes
    };
    let relation = |cached: &planish_trial::postgres::Cached| {
        let runs = cached.buffers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        let parts = runs.flat_map(|run| {
            let start = start_of(run[0]);
            main.pages.parts(&(start..start + run.len() as u64 * layout.block_bytes))
        });
        let whole = piece(main, &cached.relation, cached.buffers.len() as u64 * layout.block_bytes, parts);
        let starts = cached.buffers.iter().map(|buffer| start_of(*buffer));
        let told = main.pages.tells_places();
        let buffers = if told { buffers(starts.map(|start| main.pages.at(start))) } else { Vec::new() };
        MapPiece { buffers, ..whole }
    };
    layout.cached.iter().map(relation).collect()
}

/// Counts buffers by the page that each begins in.
fn buffers(pages: impl Iterator<Item = Option<Part>>) -> Vec<MapBuffers> {
    type Page = (Option<MapBacking>, Option<u32>, Option<u64>);
    let mut counts: BTreeMap<Page, u64> = BTreeMap::new();
    for page in pages {
        let key = page.map(|page| (MapBacking::from(page.backing), page.node, page.page_bytes));
        let key = key.map_or((None, None, None), |(backing, node, bytes)| (Some(backing), node, Some(bytes)));
        *counts.entry(key).or_default() += 1;
    }
    let told = counts.into_iter();
    told.map(|((backing, node, page_bytes), buffers)| MapBuffers { backing, node, page_bytes, buffers })
        .collect()
}

fn backends(processes: &[MapProcess], layout: &Layout) -> Vec<MapBackend> {
    let told = |pid| layout.backends.iter().find(|backend| backend.pid == pid);
    let backend = |process: &MapProcess| {
        let told = told(process.pid);
        let kind = if process.pid == layout.postmaster { "postmaster" } else { "" };
        MapBackend {
            pid: process.pid,
            kind: told.map_or_else(|| kind.to_owned(), |told| told.kind.clone()),
            application: told.map_or_else(String::new, |told| told.application.clone()),
            private: process.private.clone(),
            shared_mapped_bytes: process.shared_mapped_bytes,
            page_table_bytes: process.page_table_bytes,
        }
    };
    processes.iter().map(backend).collect()
}

#[cfg(test)]
mod tests {
    use planish_residency::Backing;

    use super::*;

    #[test]
    fn buffers_are_counted_where_they_begin() {
        let page = |node, backing, page_bytes| {
            Some(Part { backing, node: Some(node), page_bytes, bytes: page_bytes, estimated: false })
        };
        let (small, huge) = (page(0, Backing::Base, 4096), page(1, Backing::Hugetlb, 2 << 20));
        let told = buffers([huge, small, None, small, huge, small].into_iter());
        let told: Vec<_> = told.iter().map(|it| (it.backing, it.node, it.page_bytes, it.buffers)).collect();
        assert_eq!(
            told,
            [
                (None, None, None, 1),
                (Some(MapBacking::Base), Some(0), Some(4096), 3),
                (Some(MapBacking::Hugetlb), Some(1), Some(2 << 20), 2),
            ]
        );
        assert_eq!(buffers(std::iter::empty()), []);
    }
}
