//! What the pages of an arena really are, read back from /proc/self/smaps and the kernel's page table.
//!
//! A request proves nothing: a THP mapping may lie on base pages (fragmentation, `enabled=never`, a limit of
//! the cgroup), and a preload may turn base pages into huge ones. smaps counts what is mapped now.
//!
//! Source: Documentation/filesystems/proc.rst, fields Rss, AnonHugePages and ShmemPmdMapped (of private and of shared
//! memory, PMD-mapped only), Private_Hugetlb, Shared_Hugetlb (both not in Rss) and KernelPageSize.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

use planish_sorted::SortSmall as _;
use planish_sys::NodeSet;
use planish_sys::pagemap::{Filled, Pagemap, Run};
use planish_sys::policy::{PageAt, pages_at};

use crate::builder::NodeChoice;
use crate::error::ArenaError;
use crate::page::{Page, Preference};

pub(crate) const SMAPS: &str = "/proc/self/smaps";

/// Bytes on one kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backing {
    /// The kind of page.
    pub page: Page,
    /// Bytes that lie on such pages now.
    pub bytes: usize,
}

/// What an arena has, next to what it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Achieved {
    /// The page size that was asked for.
    pub requested: Preference,
    /// Bytes that are mapped, used or not.
    pub mapped_bytes: usize,
    /// Bytes on each kind of page, most first. Pages between base and PMD size (mTHP) count as base pages.
    pub backing: Vec<Backing>,
    /// Bytes that no page is mapped for now: swapped out, reclaimed, or handed back by
    /// [`Arena::trim`](crate::Arena::trim) since they were faulted in.
    pub absent_bytes: usize,
    /// Of the bytes that are there, those in mappings of the kind that processes share.
    pub shared_bytes: usize,
    /// Bytes on each node; `None` where the kernel or a seccomp filter forbids to ask, and less than there is where it
    /// does not tell of some at this moment (`why_not` says so).
    pub node_bytes: Option<BTreeMap<u32, usize>>,
    /// Bytes on other nodes than those that were named; `None` where none was, or the kernel does not tell.
    pub elsewhere_bytes: Option<usize>,
    /// Why anything is not as asked for, in the order it was met.
    pub why_not: Vec<String>,
}

/// Addresses to be read back.
#[derive(Debug)]
pub(crate) struct Extent {
    /// Those that the kernel counts together.
    pub(crate) range: Range<usize>,
    /// Bytes of them, from the first on, that have memory or had it. Addresses alone are beyond, and may be many more.
    pub(crate) had_bytes: usize,
    /// Bytes from one page to the next that may be on another node.
    pub(crate) node_stride: usize,
}

impl Achieved {
    /// Reads back what disjoint extents have.
    pub(crate) fn read(
        (requested, nodes): (Preference, &NodeChoice),
        mut extents: Vec<Extent>,
        mut why_not: Vec<String>,
    ) -> Result<Self, ArenaError> {
        extents.sort_unstable_by_key(|extent| extent.range.start);
        let addresses: Vec<_> = extents.iter().map(|extent| extent.range.clone()).collect();
        let text = smaps().map_err(|source| ArenaError::ReadBack { path: SMAPS, source })?;
        let (backing, shared_bytes) = (account(&text, &addresses), shared_of(&text, &addresses));
        let mapped_bytes: usize = extents.iter().map(|extent| extent.had_bytes).sum();
        let node_bytes = node_bytes_of(&extents);
        if let Err(error) = &node_bytes {
            why_not.push(format!("nodes unknown: {error}"));
        }
        let had_bytes: usize = backing.iter().map(|backing| backing.bytes).sum();
        let absent_bytes = mapped_bytes.saturating_sub(had_bytes);
        let node_bytes = node_bytes.ok();
        let on_nodes = node_bytes.as_ref().map_or(had_bytes, |on| on.values().sum());
        if let bytes @ 1.. = had_bytes.saturating_sub(on_nodes) {
            // Linux 6.1 to 6.4 does of pages that automatic balancing has marked, until they are used.
            why_not.push(format!("of {bytes} bytes the kernel does not tell the node at this moment"));
        }
        let elsewhere_bytes = nodes.named().zip(node_bytes.as_ref()).map(|(named, on)| elsewhere(on, named));
        if let (Some(named), Some(bytes @ 1..)) = (nodes.named(), elsewhere_bytes) {
            why_not.push(format!("{bytes} bytes lie on other nodes than {named}"));
        }
        Ok(Self {
            requested,
            mapped_bytes,
            backing,
            absent_bytes,
            shared_bytes,
            node_bytes,
            elsewhere_bytes,
            why_not,
        })
    }

    /// Bytes on `page`.
    pub fn bytes_on(&self, page: Page) -> usize {
        self.backing.iter().filter(|backing| backing.page == page).map(|backing| backing.bytes).sum()
    }

    /// Whether every byte that is there lies on the page that was asked for. Where bytes are mapped and the kernel
    /// shows none of them, nothing is known to be as asked for.
    pub fn is_as_requested(&self) -> bool {
        match self.requested {
            Preference::Largest => self.why_not.is_empty(),
            Preference::From(page) => self.mapped_bytes == 0 || is_all_on(&self.backing, page),
        }
    }

    /// The kind of page that most of the bytes lie on; `None` for an empty arena.
    pub fn mostly(&self) -> Option<Page> {
        self.backing.first().map(|backing| backing.page)
    }
}

/// Whether something is there, and all of it on `page`.
pub(crate) fn is_all_on(backing: &[Backing], page: Page) -> bool {
    !backing.is_empty() && backing.iter().all(|backing| backing.page == page)
}

/// Bytes of `ranges` (sorted, disjoint) on each kind of page.
pub(crate) fn backing_of(ranges: &[Range<usize>]) -> io::Result<Vec<Backing>> {
    Ok(account(&smaps()?, ranges))
}

/// Of a range in a mapping that was made for `page`: the bytes that are in memory, and of these the ones that the
/// entries of the page table show on such pages. `None` where they do not tell (before Linux 6.7). It takes as long as
/// the range is, and smaps as the process has pages.
pub(crate) fn entries_of(range: &Range<usize>, page: Page) -> Option<(usize, usize)> {
    let wanted = if page == Page::Base { Filled::Base } else { Filled::Huge };
    let mut runs = Vec::new();
    let range = range.start as u64..range.end as u64;
    Pagemap::open(None).and_then(|mut map| map.scan(range, &mut runs)).ok()?;
    let bytes = |run: &Run| (run.range.end - run.range.start) as usize;
    let on_wanted = runs.iter().filter(|run| run.filled == wanted).map(bytes).sum();
    let there = runs.iter().filter(|run| run.filled != Filled::Swapped).map(bytes).sum();
    Some((there, on_wanted))
}

fn smaps() -> io::Result<String> {
    let mut text = String::new();
    File::open(SMAPS)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Bytes of `ranges` in shared mappings by the text of an smaps file.
fn shared_of(smaps: &str, ranges: &[Range<usize>]) -> usize {
    let shared = areas(smaps).into_iter().filter(|area| area.shared);
    let bytes = |area: Area| {
        let inside: usize = ranges.iter().map(|range| overlap(range, &area.range)).sum();
        (area.resident + area.hugetlb).saturating_sub(area.range.len() - inside)
    };
    shared.map(bytes).sum()
}

/// Bytes of `ranges` on each kind of page by the text of an smaps file.
///
/// Where the kernel merged a neighbour's mapping with ours, only what must be ours is counted as huge.
fn account(smaps: &str, ranges: &[Range<usize>]) -> Vec<Backing> {
    let mut bytes: BTreeMap<Page, usize> = BTreeMap::new();
    for area in areas(smaps) {
        let inside: usize = ranges.iter().map(|range| overlap(range, &area.range)).sum();
        if inside == 0 {
            continue;
        }
        let outside = area.range.len() - inside;
        let thp = area.thp.saturating_sub(outside);
        let resident = area.resident.saturating_sub(outside);
        *bytes.entry(Page::Thp).or_default() += thp;
        *bytes.entry(Page::Base).or_default() += resident.saturating_sub(thp);
        *bytes.entry(Page::HugeTlb(area.page_bytes)).or_default() += area.hugetlb.saturating_sub(outside);
    }
    let mut backing: Vec<Backing> = bytes
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(page, bytes)| Backing { page, bytes })
        .collect();
    backing.sort_small_by_key(|backing| std::cmp::Reverse((backing.bytes, backing.page)));
    backing
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// One mapped area of an smaps file; sizes in bytes.
#[derive(Debug, Default)]
struct Area {
    range: Range<usize>,
    page_bytes: usize,
    resident: usize,
    thp: usize,
    hugetlb: usize,
    shared: bool,
}

fn areas(smaps: &str) -> Vec<Area> {
    let mut areas: Vec<Area> = Vec::new();
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(range) = range_of(first) {
            let shared = words.next().is_some_and(|access| access.ends_with('s'));
            areas.push(Area { range, shared, ..Area::default() });
            continue;
        }
        let (Some(area), Some(Ok(kilobytes))) = (areas.last_mut(), words.next().map(str::parse::<usize>))
        else {
            continue;
        };
        let bytes = kilobytes.saturating_mul(1024);
        match first {
            "KernelPageSize:" => area.page_bytes = bytes,
            "Rss:" => area.resident = bytes,
            "AnonHugePages:" | "ShmemPmdMapped:" => area.thp += bytes,
            "Private_Hugetlb:" | "Shared_Hugetlb:" => area.hugetlb += bytes,
            _ => {}
        }
    }
    areas
}

/// The addresses of a line that begins an area, `7f0000000000-7f0000200000`; `None` for a field.
fn range_of(word: &str) -> Option<Range<usize>> {
    let (start, end) = word.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

/// Bytes that lie on other nodes than these.
pub(crate) fn elsewhere(node_bytes: &BTreeMap<u32, usize>, nodes: &NodeSet) -> usize {
    node_bytes.iter().filter(|(node, _)| !nodes.contains(**node)).map(|(_, bytes)| bytes).sum()
}

/// Bytes of extents on each node, asking about one address of each page.
pub(crate) fn node_bytes_of(extents: &[Extent]) -> planish_sys::Result<BTreeMap<u32, usize>> {
    /// Addresses in one call; keeps the lists small.
    const BATCH: usize = 1 << 16;
    let mut bytes = BTreeMap::new();
    for Extent { range, had_bytes, node_stride } in extents {
        let mut addresses = (range.start..range.start + had_bytes).step_by(*node_stride);
        loop {
            let batch: Vec<usize> = addresses.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            for at in pages_at(None, &batch)? {
                if let PageAt::Node(node) = at {
                    *bytes.entry(node).or_default() += node_stride;
                }
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
Size:               4096 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                3072 kB
AnonHugePages:      2048 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac hg
7f0040000000-7f0080000000 rw-p 00000000 00:10 7  /anon_hugepage (deleted)
Size:            1048576 kB
KernelPageSize:  1048576 kB
Rss:                   0 kB
AnonHugePages:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb: 1048576 kB
VmFlags: rd wr mr mw me de ht
";

    const M: usize = 1 << 20;

    #[test]
    fn entries_say_of_a_mapping_what_smaps_says() {
        let options = planish_sys::MapOptions::new(Page::Base.request());
        let mapping = planish_sys::map_anonymous(4 * M, options).unwrap();
        let start = mapping.as_ptr().addr();
        let range = start..start + 4 * M;
        let Some(empty) = entries_of(&range, Page::Base) else {
            return planish_skip::skip("entries_say_of_a_mapping_what_smaps_says", "Linux before 6.7");
        };
        assert_eq!(empty, (0, 0));
        mapping.advise_range(0..2 * M, planish_sys::Advice::PopulateWrite).unwrap();
        assert_eq!(entries_of(&range, Page::Base), Some((2 * M, 2 * M)));
        assert_eq!(entries_of(&range, Page::Thp), Some((2 * M, 0)));
        let told = backing_of(std::slice::from_ref(&range)).unwrap();
        assert!(is_all_on(&told, Page::Base) && told[0].bytes == 2 * M, "{told:?}");
    }

    #[test]
    fn each_kind_of_page_is_counted() {
        let ranges = [0x7f00_0000_0000..0x7f00_0040_0000, 0x7f00_4000_0000..0x7f00_8000_0000];
        let wanted = [(Page::HugeTlb(1 << 30), 1 << 30), (Page::Thp, 2 * M), (Page::Base, M)];
        assert_eq!(account(SAMPLE, &ranges), wanted.map(|(page, bytes)| Backing { page, bytes }));
    }

    #[test]
    fn shared_memory_is_told_apart_and_its_huge_pages_are_counted() {
        let shared = SAMPLE.replacen("rw-p", "rw-s", 1).replacen(
            "AnonHugePages:      2048 kB",
            "AnonHugePages:         0 kB\nShmemPmdMapped:     2048 kB",
            1,
        );
        let ranges = [0x7f00_0000_0000..0x7f00_0040_0000, 0x7f00_4000_0000..0x7f00_8000_0000];
        assert_eq!(account(&shared, &ranges), account(SAMPLE, &ranges));
        assert_eq!([shared_of(&shared, &ranges), shared_of(SAMPLE, &ranges)], [3 * M, 0]);
        let pool = shared.replacen("rw-p", "rw-s", 1);
        assert_eq!(shared_of(&pool, &ranges), 3 * M + (1 << 30));
        assert_eq!(shared_of(&pool, &ranges[1..]), 1 << 30);
    }

    #[test]
    fn a_merged_neighbour_lends_us_no_huge_page() {
        // Of 4 MB, 3 MB are ours; 2 MB are huge, of which the neighbour may own 1 MB.
        let ours = 0x7f00_0000_0000..0x7f00_0030_0000;
        let wanted = [(Page::Thp, M), (Page::Base, M)];
        assert_eq!(account(SAMPLE, &[ours]), wanted.map(|(page, bytes)| Backing { page, bytes }));
    }

    /// A kernel that tells no hugetlb fields, or memory that is all swapped out.
    #[test]
    fn what_the_kernel_does_not_show_is_not_as_requested() {
        let page = Page::HugeTlb(2 * M);
        let shown = |backing: Vec<Backing>, mapped_bytes| Achieved {
            requested: Preference::From(page),
            mapped_bytes,
            absent_bytes: mapped_bytes,
            shared_bytes: 0,
            backing,
            node_bytes: None,
            elsewhere_bytes: None,
            why_not: Vec::new(),
        };
        assert!(!shown(vec![], 2 * M).is_as_requested());
        assert!(shown(vec![Backing { page, bytes: 2 * M }], 2 * M).is_as_requested());
        assert!(!shown(vec![Backing { page: Page::Base, bytes: 2 * M }], 2 * M).is_as_requested());
        assert!(shown(vec![], 0).is_as_requested(), "an empty arena misses nothing");
    }

    #[test]
    fn what_lies_on_nodes_that_were_not_named_is_elsewhere() {
        let on: BTreeMap<u32, usize> = [(0, 3 * M), (1, M), (7, 2 * M)].into();
        for (nodes, wanted) in [(vec![0, 1, 7], 0), (vec![0], 3 * M), (vec![1, 2], 5 * M), (vec![9], 6 * M)] {
            assert_eq!(elsewhere(&on, &nodes.into_iter().collect()), wanted);
        }
        assert_eq!(elsewhere(&BTreeMap::new(), &NodeSet::new()), 0);
    }

    #[test]
    fn torn_text_counts_nothing() {
        for text in
            ["", "Rss: 4 kB", "7f00-\nRss: x kB", "zz-yy rw-p\nRss:", "10-20 r\nRss: 99999999999999999999 kB"]
        {
            let everything = 0..usize::MAX;
            assert_eq!(account(text, &[everything]), [], "{text}");
        }
    }
}
