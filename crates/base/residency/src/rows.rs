//! Sums over mappings: rows of `planish map`, totals, and the segments that a pool must hold.

use std::collections::BTreeMap;
use std::ops::Range;

use planish_sorted::{CollectMap as _, SortSmall as _};
use serde::Serialize;

use crate::maps::{FileId, Kind};
use crate::numa_maps::Placement;
use crate::ranges;
use crate::smaps::{Backing, Region};

/// The sum of figures that a host tells of itself. Each sum of what is read of /proc goes through here or adds alike:
/// a recorded text may name sizes that no machine has, and the most there is stands for them.
pub fn sum_of(figures: impl IntoIterator<Item = u64>) -> u64 {
    figures.into_iter().fold(0, u64::saturating_add)
}

/// Memory of one kind, backing and name on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What it is for.
    pub kind: Kind,
    /// On which pages it lies.
    pub backing: Backing,
    /// Name of the mapping in maps; empty for plain anonymous memory.
    pub name: String,
    /// NUMA node; `None` where nobody tells.
    pub node: Option<u32>,
    /// Size in bytes of one of its pages.
    pub page_bytes: u64,
    /// Resident bytes.
    pub resident_bytes: u64,
    /// It is about right only: one of its parts is an estimate.
    pub estimated: bool,
}

/// Resident bytes by backing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backings {
    /// On base pages.
    pub base_bytes: u64,
    /// On transparent huge pages.
    pub thp_bytes: u64,
    /// On pages from a pool.
    pub hugetlb_bytes: u64,
}

impl Backings {
    /// On pages of all kinds.
    pub fn total_bytes(&self) -> u64 {
        sum_of([self.base_bytes, self.thp_bytes, self.hugetlb_bytes])
    }

    pub(crate) fn add(&mut self, region: &Region) {
        self.base_bytes = sum_of([self.base_bytes, region.base_bytes()]);
        self.thp_bytes = sum_of([self.thp_bytes, region.thp_bytes()]);
        self.hugetlb_bytes = sum_of([self.hugetlb_bytes, region.hugetlb_bytes]);
    }
}

/// A piece of memory that a pool must hold, or holds: one that processes share, or that has huge pages of its own.
/// It is put together from its mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Name of its mappings in maps.
    pub name: String,
    /// Length in bytes, however little of it is resident here: what a pool must hold.
    pub bytes: u64,
    /// Resident bytes in this process.
    pub resident_bytes: u64,
    /// Size in bytes of the pages that the kernel keeps it in.
    pub page_bytes: u64,
    /// Whether it is of a pool already.
    pub is_hugetlb: bool,
}

/// Resident memory on one kind of pages on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// On which pages it lies.
    pub backing: Backing,
    /// NUMA node; `None` where nobody tells.
    pub node: Option<u32>,
    /// Size in bytes of one of its pages.
    pub page_bytes: u64,
    /// Resident bytes.
    pub bytes: u64,
    /// It is about right only: node and backing were told apart in proportion (see the head of this crate), pages of it
    /// were not seen since others alone have mapped them, or several processes count the same pages.
    pub estimated: bool,
}

/// Adds `part` to those that it is alike.
pub(crate) fn add_part(parts: &mut Vec<Part>, part: Part) {
    let key = |part: &Part| (part.backing, part.node, part.page_bytes, part.estimated);
    match parts.iter_mut().find(|known| key(known) == key(&part)) {
        Some(known) => known.bytes = known.bytes.saturating_add(part.bytes),
        None => {
            // Most mappings have one part, and there may be tens of thousands of them.
            parts.reserve_exact(1);
            parts.push(part);
        }
    }
}

/// The parts of each region; their nodes in proportion where numa_maps alone tells them.
pub(crate) fn parts(
    regions: &[Region],
    placements: &[Placement],
    base_bytes: u64,
    thp_bytes: u64,
) -> Vec<Vec<Part>> {
    let by_start: BTreeMap<u64, &Placement> =
        placements.iter().map(|placement| (placement.start, placement)).collect_map();
    let of = |region: &Region| {
        let nodes = by_start.get(&region.area.range.start).map_or(&[][..], |placement| &placement.nodes);
        let mut parts = Vec::new();
        for (backing, page_bytes) in
            [(Backing::Base, base_bytes), (Backing::Thp, thp_bytes), (Backing::Hugetlb, region.page_bytes)]
        {
            let bytes = region.bytes_on(backing);
            let estimated = nodes.len() > 1 && bytes < region.resident_bytes;
            let split = split(bytes, nodes).into_iter();
            parts.extend(split.map(|(node, bytes)| Part { backing, node, page_bytes, bytes, estimated }));
        }
        parts
    };
    regions.iter().map(of).collect()
}

/// Rows of memory: what it is for, its name, where it lies; by kind, name, backing and node.
pub(crate) fn rows<'a>(memory: impl Iterator<Item = (Kind, &'a str, &'a [Part])>) -> Vec<Row> {
    let mut sums: BTreeMap<Key, (u64, bool)> = BTreeMap::new();
    for (kind, name, parts) in memory {
        for Part { backing, node, page_bytes, bytes, estimated } in parts.iter().copied() {
            let sum = sums.entry(Key { kind, name, backing, node, page_bytes }).or_default();
            sum.0 = sum.0.saturating_add(bytes);
            sum.1 |= estimated;
        }
    }
    let row = |(key, (resident_bytes, estimated))| {
        let Key { kind, name, backing, node, page_bytes } = key;
        Row { kind, backing, name: name.to_owned(), node, page_bytes, resident_bytes, estimated }
    };
    sums.into_iter().map(row).collect()
}

/// What memory must have in common to be one row.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    kind: Kind,
    name: &'a str,
    backing: Backing,
    node: Option<u32>,
    page_bytes: u64,
}

/// `bytes` split over nodes in proportion to what lies there; nothing is lost to rounding.
fn split(bytes: u64, nodes: &[(u32, u64)]) -> Vec<(Option<u32>, u64)> {
    let total: u128 = nodes.iter().map(|(_, there)| u128::from(*there)).sum();
    if bytes == 0 {
        return Vec::new();
    }
    if total == 0 {
        return vec![(None, bytes)];
    }
    let (mut left, mut parts) = (bytes, Vec::with_capacity(nodes.len()));
    for (index, (node, there)) in nodes.iter().enumerate() {
        let share = u128::from(bytes) * u128::from(*there) / total;
        let share = u64::try_from(share).expect("a part of a u64");
        let part = if index + 1 == nodes.len() { left } else { share };
        left -= part;
        parts.push((Some(*node), part));
    }
    parts.retain(|(_, part)| *part > 0);
    parts
}

/// What lies in a pool or could, the largest first: shared segments, and private memory that was asked from a pool,
/// which nobody but the program could put there. Mappings of one segment that do not overlap in it add up.
pub(crate) fn segments(regions: &[Region]) -> Vec<Segment> {
    let mut by_object: BTreeMap<Option<FileId>, Vec<&Region>> = BTreeMap::new();
    for region in regions.iter().filter(|region| is_for_a_pool(region)) {
        by_object.entry(region.area.file()).or_default().push(region);
    }
    let mut segments: Vec<Segment> = by_object.into_values().map(|mappings| segment(&mappings)).collect();
    segments.sort_small_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    segments
}

fn is_for_a_pool(region: &Region) -> bool {
    region.area.may_be_pooled() || region.is_hugetlb()
}

/// Resident bytes of private memory in mappings of at least `least` bytes that no pool holds.
pub(crate) fn private_bytes(regions: &[Region], least: u64) -> u64 {
    let is_private = |region: &&Region| {
        matches!(region.area.kind, Kind::Anon | Kind::Heap) && !region.is_hugetlb() && region.bytes() >= least
    };
    regions.iter().filter(is_private).fold(0, |sum, region| sum.saturating_add(region.resident_bytes))
}

fn segment(mappings: &[&Region]) -> Segment {
    let extent = |region: &&Region| region.area.offset..region.area.offset.saturating_add(region.bytes());
    let first = mappings[0];
    Segment {
        name: first.area.name.clone(),
        bytes: union_length(mappings.iter().map(extent).collect()),
        resident_bytes: mappings.iter().fold(0, |sum, region| sum.saturating_add(region.resident_bytes)),
        page_bytes: first.page_bytes,
        is_hugetlb: mappings.iter().any(|region| region.is_hugetlb()),
    }
}

/// Length of the union of ranges.
pub(crate) fn union_length(ranges: Vec<Range<u64>>) -> u64 {
    ranges::length(&ranges::union(ranges))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::numa_maps::parse_numa_maps;
    use crate::smaps::parse_smaps;

    #[test]
    fn what_a_program_has_from_a_pool_counts_and_its_heap_does_not() {
        let regions = parse_smaps(
            "100000-500000 rw-p 00000000 00:00 0\nRss: 3072 kB\n\
             500000-508000 rw-p 00000000 00:00 0 [heap]\nRss: 32 kB\n\
             600000-a00000 rw-p 00000000 00:0f 9   /anon_hugepage (deleted)\n\
             KernelPageSize: 2048 kB\nPrivate_Hugetlb: 2048 kB\n\
             b00000-c00000 rw-s 00000000 00:01 7   /dev/zero (deleted)\nRss: 4 kB\n",
        )
        .unwrap();
        let found: Vec<_> =
            segments(&regions).iter().map(|segment| (segment.bytes, segment.is_hugetlb)).collect();
        assert_eq!(found, [(4 << 20, true), (1 << 20, false)]);
        assert_eq!(private_bytes(&regions, 2 << 20), 3 << 20);
        assert_eq!(private_bytes(&regions, 1), (3 << 20) + (32 << 10));
    }

    #[test]
    fn rows_join_pages_and_nodes() {
        let regions = parse_smaps(
            "1000-9000 rw-p 00000000 00:00 0\nRss: 6144 kB\nAnonHugePages: 4096 kB\n\
             a000-b000 rw-s 00000000 00:0f 9   /anon_hugepage (deleted)\n\
             KernelPageSize: 2048 kB\nShared_Hugetlb: 6144 kB\n\
             c000-d000 rw-p 00000000 00:00 0 [heap]\nRss: 8 kB\n",
        )
        .unwrap();
        let placements = parse_numa_maps(
            "1000 default anon=1536 N0=512 N1=1024 kernelpagesize_kB=4\n\
             a000 interleave:0-1 huge N0=2 N1=1 kernelpagesize_kB=2048\n",
        )
        .unwrap();
        let parts = parts(&regions, &placements, 4096, 2 << 20);
        let memory = regions.iter().zip(&parts);
        let rows = rows(
            memory.map(|(region, parts)| (region.area.kind, region.area.name.as_str(), parts.as_slice())),
        );
        let of = |kind, backing| {
            let matching = rows.iter().filter(|row| row.kind == kind && row.backing == backing);
            matching.map(|row| (row.node, row.resident_bytes, row.estimated)).collect::<Vec<_>>()
        };
        assert_eq!(
            of(Kind::Shared, Backing::Hugetlb),
            [(Some(0), 4 << 20, false), (Some(1), 2 << 20, false)]
        );
        assert_eq!(of(Kind::Heap, Backing::Base), [(None, 8 << 10, false)]);
        let thp = of(Kind::Anon, Backing::Thp);
        assert!(thp.iter().all(|(_, _, estimated)| *estimated));
        assert_eq!(thp.iter().map(|(_, bytes, _)| bytes).sum::<u64>(), 4 << 20);
    }

    #[test]
    fn mappings_of_one_segment_add_up_once() {
        let regions = parse_smaps(
            "1000-3000 rw-s 00000000 00:01 7 /dev/zero (deleted)\nRss: 4 kB\n\
             5000-7000 rw-s 00001000 00:01 7 /dev/zero (deleted)\n\
             8000-9000 rw-s 00000000 00:01 8 /SYSV0000 (deleted)\n\
             200000-600000 rw-s 00000000 00:31 7 /mnt/huge/ram\nKernelPageSize: 2048 kB\nShared_Hugetlb: 2048 kB\n\
             a000-f000 rw-p 00000000 00:00 0\n",
        )
        .unwrap();
        let segments = segments(&regions);
        assert_eq!(segments.len(), 3);
        assert!(segments[0].is_hugetlb && segments[0].name == "/mnt/huge/ram");
        assert_eq!((segments[0].bytes, segments[0].resident_bytes), (4 << 20, 2 << 20));
        assert_eq!((segments[1].bytes, segments[1].resident_bytes), (0x3000, 4 << 10));
        assert_eq!(segments[2].name, "/SYSV0000 (deleted)");
    }

    proptest! {
        #[test]
        fn splitting_loses_nothing(
            bytes in 0u64..1 << 50,
            nodes in proptest::collection::vec((0u32..8, 0u64..1 << 50), 0..6),
        ) {
            let parts = split(bytes, &nodes);
            prop_assert_eq!(parts.iter().map(|(_, part)| part).sum::<u64>(), bytes);
        }
    }
}
