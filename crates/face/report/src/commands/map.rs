//! `planish map`: where the memory of a process or service lies.
//!
//! The rows are those of `planish-residency`, written down again: what programs read stays as it is when that crate
//! changes. Addresses are hexadecimal text, since a JSON number does not hold 64 bits.

mod picture;
mod postgres;
mod query;
mod text;

use planish_residency as residency;
use planish_residency::{AreaPages, Backing, Kind, Map, Member, Part, Unseen, sum_of};
use planish_sorted::SortSmall as _;
use planish_trial::postgres::Layout;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::picture::{MapArea, MapPart, MapPicture};
pub use self::postgres::{MapBackend, MapBuffers, MapPiece, MapPostgres};
pub use self::query::{MapChange, MapQuery};

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MapKind {
    /// Code, of a file or of the kernel.
    Text,
    /// Constants and variables of programs and libraries.
    Data,
    /// The heap that grows from the program's end.
    Heap,
    /// Anonymous memory of one process.
    Anon,
    /// The stack of the main thread.
    Stack,
    /// Memory that processes share and no disk keeps.
    Shared,
    /// Any other file.
    File,
}

/// On which pages memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MapBacking {
    /// Base pages.
    Base,
    /// Pages that the kernel keeps together, larger than a base page and mapped by base-page entries.
    Mthp,
    /// Transparent huge pages.
    Thp,
    /// Pages from a reserved pool.
    Hugetlb,
}

/// Memory of one kind, backing and name on one node; what processes share counts once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapRow {
    /// What it is for.
    pub kind: MapKind,
    /// On which pages it lies.
    pub backing: MapBacking,
    /// Name of its mappings; empty for plain anonymous memory.
    pub name: String,
    /// NUMA node; null where nobody tells.
    pub node: Option<u32>,
    /// Size of one of its pages in bytes.
    pub page_bytes: u64,
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Whether that is about right only: node and page size were told apart in proportion, pages were not seen since
    /// others alone have mapped them, or several processes count the same pages.
    pub estimated: bool,
}

/// What lies on one node, and who runs there.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MapNode {
    /// The node; null for memory whose node nobody tells.
    pub node: Option<u32>,
    /// Resident bytes on it.
    pub resident_bytes: u64,
    /// Whether a part of them is an estimate or was not seen.
    pub estimated: bool,
    /// Of these, bytes on pages larger than a base page.
    pub huge_bytes: u64,
    /// Whether a part of those is an estimate or was not seen.
    pub huge_estimated: bool,
    /// Threads that ran on it last.
    pub threads: usize,
}

/// Sums over everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapTotals {
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Of these, on base pages.
    pub base_bytes: u64,
    /// On larger pages that base-page entries map.
    pub mthp_bytes: u64,
    /// On transparent huge pages.
    pub thp_bytes: u64,
    /// On pages from a reserved pool.
    pub hugetlb_bytes: u64,
    /// In swap; of shared memory, of what is mapped of it.
    pub swapped_bytes: u64,
    /// What is mapped of shared memory that is allocated and not written yet: in memory, but on no node that is told,
    /// and in no other sum.
    pub unwritten_bytes: u64,
    /// Kept in memory by mlock(2), by processes: shared memory that several of them lock counts in each.
    pub locked_bytes: u64,
    /// Page tables of all processes, each address space once.
    pub page_table_bytes: u64,
    /// The names of those of these sums that are about right only: a part of them is an estimate, or was not seen.
    pub estimated: Vec<&'static str>,
}

/// Private memory on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapPrivate {
    /// The node; null where nobody tells.
    pub node: Option<u32>,
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Whether a part of them is an estimate.
    pub estimated: bool,
}

/// Threads that ran on one node last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapThreads {
    /// The node; null where nobody tells.
    pub node: Option<u32>,
    /// The CPUs that they ran on, `0-3,8`.
    pub cpus: String,
    /// How many.
    pub threads: usize,
    /// CPU time that they have used in their lives, in clock ticks: wherever they used it, which the kernel does not
    /// keep.
    pub cpu_ticks: u64,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapProcess {
    /// Its PID.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
    /// The PID of an earlier one whose address space it has, too (CLONE_VM, vfork): what lies there counts with that
    /// one, and its page tables and locked memory count once in the sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_of: Option<u32>,
    /// How its private memory was seen.
    pub seen_by: MapSeenBy,
    /// Threads.
    pub threads: u32,
    /// Where they ran last.
    pub ran_on: Vec<MapThreads>,
    /// The CPUs that it may run on; empty where untold.
    pub allowed_cpus: String,
    /// The nodes that it may take memory from.
    pub allowed_nodes: String,
    /// Memory that is its own, by node: heap, stacks, anonymous memory, and what it has written of private mappings of
    /// files. Of pages that a fork left shared, those that no earlier process has counted.
    pub private: Vec<MapPrivate>,
    /// Bytes of files that its page tables map: code, data that nobody wrote, files of disks. The page cache has them
    /// once, however many processes map them.
    pub file_mapped_bytes: u64,
    /// Bytes of shared memory that its page tables map.
    pub shared_mapped_bytes: u64,
    /// Its page tables.
    pub page_table_bytes: u64,
    /// In swap.
    pub swapped_bytes: u64,
    /// Kept in memory by mlock(2).
    pub locked_bytes: u64,
}

/// How the private memory of a process was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapSeenBy {
    /// Each page by itself.
    PagemapScan,
    /// Each page by itself, on kernels without PAGEMAP_SCAN.
    Pagemap,
    /// Nodes and page sizes of a mapping in proportion.
    Smaps,
}

/// Code that a program made at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapJit {
    /// Whose it is.
    pub pid: u32,
    /// First address.
    pub start: String,
    /// The address after the last.
    pub end: String,
    /// Name of the mapping; often empty.
    pub name: String,
    /// Bytes that are there.
    pub resident_bytes: u64,
    /// Of these, bytes on pages larger than a base page.
    pub huge_bytes: u64,
    /// Whether a part of those is an estimate or was not seen.
    pub huge_estimated: bool,
}

/// Where the memory of a process or service lies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MapReport {
    /// Who it is, for people.
    pub subject: String,
    /// Memory by kind, name, backing and node.
    pub rows: Vec<MapRow>,
    /// Sums.
    pub totals: MapTotals,
    /// What lies where, by node.
    pub nodes: Vec<MapNode>,
    /// The share of memory that is local to the threads by where they ran last, each page weighed by the CPU time of
    /// the threads that ran on its node last, wherever they used it; null where nodes are not told.
    pub local_share: Option<f64>,
    /// Whether a part of the memory that it is a share of is an estimate or was not seen.
    pub local_share_estimated: bool,
    /// The processes, the first one first.
    pub processes: Vec<MapProcess>,
    /// PIDs of processes below, or of the first one, whose memory may not be seen: nothing of theirs is in any sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<u32>,
    /// Code made at run time.
    pub jit: Vec<MapJit>,
    /// The address space of the first process.
    pub picture: MapPicture,
    /// What a PostgreSQL server says of it; null where none was asked.
    pub postgres: Option<MapPostgres>,
    /// What one query of it changed, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<MapQuery>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

impl MapReport {
    /// The report of a PostgreSQL server, over whose map its own words are laid.
    #[must_use]
    pub fn of_postgres(map: &Map, layout: &Layout) -> Self {
        let report = Self::from(map);
        let postgres = MapPostgres::of(map, &report.processes, layout);
        Self { postgres: Some(postgres), ..report }
    }
}

impl From<Kind> for MapKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text,
            Kind::Data => Self::Data,
            Kind::Heap => Self::Heap,
            Kind::Anon => Self::Anon,
            Kind::Stack => Self::Stack,
            Kind::Shared => Self::Shared,
            Kind::File => Self::File,
        }
    }
}

impl From<Backing> for MapBacking {
    fn from(backing: Backing) -> Self {
        match backing {
            Backing::Base => Self::Base,
            Backing::Mthp => Self::Mthp,
            Backing::Thp => Self::Thp,
            Backing::Hugetlb => Self::Hugetlb,
        }
    }
}

impl MapKind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Data => "data",
            Self::Heap => "heap",
            Self::Anon => "anon",
            Self::Stack => "stack",
            Self::Shared => "shared",
            Self::File => "file",
        }
    }
}

impl MapBacking {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Mthp => "mthp",
            Self::Thp => "thp",
            Self::Hugetlb => "hugetlb",
        }
    }
}

impl From<&Map> for MapReport {
    fn from(map: &Map) -> Self {
        let rows: Vec<MapRow> = map.rows().into_iter().map(MapRow::from).collect();
        Self {
            subject: subject(map),
            totals: totals(map, &rows),
            nodes: nodes(map, &rows),
            local_share: map.local_share(),
            local_share_estimated: map.misses_pages()
                || rows.iter().any(|row| row.estimated && row.node.is_some()),
            processes: map.members.iter().map(|member| MapProcess::of(map, member)).collect(),
            jit: spaces(map).flat_map(|member| jit(map, member)).collect(),
            denied: map.denied.iter().map(|denied| denied.pid).collect(),
            picture: MapPicture::of(map),
            postgres: None,
            query: None,
            unseen: map.unseen.clone(),
            rows,
        }
    }
}

impl From<residency::Row> for MapRow {
    fn from(row: residency::Row) -> Self {
        let residency::Row { kind, backing, name, node, page_bytes, resident_bytes, estimated } = row;
        Self { kind: kind.into(), backing: backing.into(), name, node, page_bytes, resident_bytes, estimated }
    }
}

/// Whether a mapping is of memory that processes share and no disk keeps.
fn is_memory(map: &Map, pages: &AreaPages) -> bool {
    let kind = pages.object.map_or(pages.area.kind, |object| map.objects[object].kind);
    pages.area.is_shared() && kind == Kind::Shared
}

impl MapProcess {
    fn of(map: &Map, member: &Member) -> Self {
        let mut private: Vec<MapPrivate> = Vec::new();
        for part in member.areas.iter().flat_map(|pages| &pages.own) {
            match private.iter_mut().find(|known| known.node == part.node) {
                Some(known) => {
                    known.resident_bytes = sum_of([known.resident_bytes, part.bytes]);
                    known.estimated |= part.estimated;
                }
                None => {
                    let Part { node, bytes: resident_bytes, estimated, .. } = *part;
                    private.push(MapPrivate { node, resident_bytes, estimated });
                }
            }
        }
        private.sort_small_by_key(|private| private.node);
        let shared = member.areas.iter().filter(|pages| is_memory(map, pages));
        let files = member.areas.iter().filter(|pages| !is_memory(map, pages));
        let ran_on = member.threads.iter().map(|on| MapThreads {
            node: on.node,
            cpus: on.cpus.clone(),
            threads: on.threads,
            cpu_ticks: on.cpu_ticks,
        });
        Self {
            pid: member.pid,
            name: member.status.name.clone(),
            memory_of: member.memory_of,
            seen_by: match member.seen_by {
                residency::SeenBy::PagemapScan => MapSeenBy::PagemapScan,
                residency::SeenBy::Pagemap => MapSeenBy::Pagemap,
                residency::SeenBy::Smaps => MapSeenBy::Smaps,
            },
            threads: member.status.threads,
            ran_on: ran_on.collect(),
            allowed_cpus: member.status.allowed_cpus.clone(),
            allowed_nodes: member.status.allowed_nodes.clone(),
            private,
            file_mapped_bytes: sum_of(files.map(|pages| pages.file_bytes)),
            shared_mapped_bytes: sum_of(shared.map(|pages| pages.mapped_bytes)),
            page_table_bytes: member.status.page_table_bytes,
            swapped_bytes: sum_of(member.areas.iter().map(|pages| pages.swapped_bytes)),
            locked_bytes: member.status.locked_bytes,
        }
    }
}

fn subject(map: &Map) -> String {
    let denied = map.denied.iter().find(|denied| denied.is_first).map(|denied| (denied.pid, &denied.status));
    let first = denied.or_else(|| map.members.first().map(|first| (first.pid, &first.status)));
    let Some((pid, status)) = first else { return String::new() };
    let first = format!("{} (pid {pid})", status.name);
    let subject = match map.members.len() + map.denied.len() - 1 {
        0 => first,
        1 => format!("{first} and the process below it"),
        count => format!("{first} and {count} processes below it"),
    };
    match map.denied.len() {
        0 => subject,
        count => format!("{subject}, {count} of which may not be seen"),
    }
}

/// The first process of each address space.
fn spaces(map: &Map) -> impl Iterator<Item = &Member> {
    map.members.iter().filter(|member| member.memory_of.is_none())
}

fn totals(map: &Map, rows: &[MapRow]) -> MapTotals {
    let on = |backing| sum_of(rows.iter().filter(|row| row.backing == backing).map(|row| row.resident_bytes));
    let private = map.members.iter().flat_map(|member| &member.areas).filter(|pages| pages.object.is_none());
    let private = private.map(|pages| pages.swapped_bytes);
    MapTotals {
        estimated: estimated_sums(map, rows),
        resident_bytes: sum_of(rows.iter().map(|row| row.resident_bytes)),
        base_bytes: on(MapBacking::Base),
        mthp_bytes: on(MapBacking::Mthp),
        thp_bytes: on(MapBacking::Thp),
        hugetlb_bytes: on(MapBacking::Hugetlb),
        swapped_bytes: sum_of(private.chain(map.objects.iter().map(|object| object.pages.swapped_bytes))),
        unwritten_bytes: sum_of(map.objects.iter().map(|object| object.pages.unwritten_bytes)),
        locked_bytes: sum_of(spaces(map).map(|member| member.status.locked_bytes)),
        page_table_bytes: sum_of(spaces(map).map(|member| member.status.page_table_bytes)),
    }
}

/// The sums that have a part which is an estimate, or may have one that was not seen.
fn estimated_sums(map: &Map, rows: &[MapRow]) -> Vec<&'static str> {
    let on = |backing| rows.iter().any(|row| row.estimated && row.backing == backing);
    // Of what pages that is which nobody saw, those tell that were seen of the same object. A pool is never in swap.
    let in_part =
        || map.objects.iter().filter(|object| object.is_seen_in_part()).map(residency::Object::parts);
    let of_pool = |parts: &[Part]| parts.iter().any(|part| part.backing == Backing::Hugetlb);
    let misses_pool = in_part().any(|parts| parts.is_empty() || of_pool(&parts));
    let misses_others = in_part().any(|parts| !of_pool(&parts));
    let (untold_large, denied) = (!map.tells_large_pages, !map.denied.is_empty());
    let unwritten = map.objects.iter().any(|object| object.pages.unwritten_estimated);
    let sums = [
        ("resident_bytes", rows.iter().any(|row| row.estimated) || map.misses_shared_pages()),
        ("base_bytes", on(MapBacking::Base) || misses_others || untold_large),
        ("mthp_bytes", on(MapBacking::Mthp) || misses_others || untold_large),
        ("thp_bytes", on(MapBacking::Thp) || misses_others),
        ("hugetlb_bytes", on(MapBacking::Hugetlb) || misses_pool),
        ("swapped_bytes", misses_others),
        ("unwritten_bytes", misses_others || unwritten),
    ];
    // What the kernel tells of a process as a whole is exact, and missing of those that may not be seen.
    let of_processes = [("locked_bytes", false), ("page_table_bytes", false)];
    let sums = sums.into_iter().chain(of_processes);
    sums.filter(|(_, estimated)| *estimated || denied).map(|(name, _)| name).collect()
}

impl MapTotals {
    /// Whether the sum of this name is about right only.
    pub(crate) fn is_estimated(&self, name: &str) -> bool {
        self.estimated.contains(&name)
    }
}

fn nodes(map: &Map, rows: &[MapRow]) -> Vec<MapNode> {
    let threads = map.members.iter().flat_map(|member| &member.threads);
    let mut ids: Vec<Option<u32>> =
        rows.iter().map(|row| row.node).chain(threads.clone().map(|on| on.node)).collect();
    ids.sort_unstable();
    ids.dedup();
    let node = |node| {
        let here = rows.iter().filter(|row| row.node == node);
        let huge = here.clone().filter(|row| row.backing != MapBacking::Base);
        // What was not seen may lie anywhere.
        let misses = map.misses_pages();
        MapNode {
            node,
            estimated: misses || here.clone().any(|row| row.estimated),
            huge_estimated: misses || !map.tells_large_pages || huge.clone().any(|row| row.estimated),
            resident_bytes: sum_of(here.map(|row| row.resident_bytes)),
            huge_bytes: sum_of(huge.map(|row| row.resident_bytes)),
            threads: threads.clone().filter(|on| on.node == node).map(|on| on.threads).sum(),
        }
    };
    ids.into_iter().map(node).filter(|node| node.resident_bytes > 0 || node.threads > 0).collect()
}

/// The code that a process made itself; mappings side by side are one area.
fn jit(map: &Map, member: &Member) -> Vec<MapJit> {
    let mut found: Vec<MapJit> = Vec::new();
    let mut reached = 0;
    for pages in member.areas.iter().filter(|pages| pages.area.is_jit()) {
        let huge = |part: &&Part| part.backing != Backing::Base;
        let huge_bytes = sum_of(pages.parts.iter().filter(huge).map(|part| part.bytes));
        let estimated = !map.tells_large_pages || pages.parts.iter().any(|part| part.estimated);
        let range = &pages.area.range;
        match found.last_mut() {
            Some(last) if reached == range.start && last.name == pages.area.name => {
                last.end = format!("{:x}", range.end);
                last.resident_bytes = sum_of([last.resident_bytes, pages.mapped_bytes]);
                last.huge_bytes = sum_of([last.huge_bytes, huge_bytes]);
                last.huge_estimated |= estimated;
            }
            _ => found.push(MapJit {
                pid: member.pid,
                start: format!("{:x}", range.start),
                end: format!("{:x}", range.end),
                name: pages.area.name.clone(),
                resident_bytes: pages.mapped_bytes,
                huge_bytes,
                huge_estimated: estimated,
            }),
        }
        reached = range.end;
    }
    found
}
