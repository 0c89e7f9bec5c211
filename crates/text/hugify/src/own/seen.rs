//! What of some addresses of this process lies on huge pages for certain.
//!
//! ```text
//!  a mapping    |H|H|H|.|.|.|H|.|        smaps: four huge pages somewhere in it
//!  wanted             |_______|          pagemap (Linux 6.7): one of them in here
//! ```
//!
//! Before Linux 6.7 only a whole mapping tells. What may lie beside the wanted addresses is taken to lie there, so that
//! less is told than there is, and never more: too little costs a copy, too much leaves the hot text where it was.

use std::ops::Range;

use planish_host::Host;
use planish_residency::{Region, parse_smaps};
use planish_sys::pagemap::{Filled, Pagemap};

/// Bytes on huge pages at these addresses; `None` where nobody tells.
pub(super) fn huge_bytes_in(wanted: &[Range<u64>], huge_bytes: u64) -> Option<u64> {
    scanned(wanted).or_else(|| Some(at_least(&regions()?, wanted, huge_bytes)))
}

/// What this process has mapped.
pub(super) fn regions() -> Option<Vec<Region>> {
    parse_smaps(&Host::live().read_lossy("/proc/self/smaps").ok()?).ok()
}

/// Whether all of these addresses are on memory that no file names.
pub(super) fn has_no_file(wanted: &[Range<u64>]) -> bool {
    let is_in = |region: &&Region| {
        let at = &region.area.range;
        wanted.iter().any(|range| range.start < at.end && at.start < range.end)
    };
    let of_pool = |name: &str| name.starts_with("/anon_hugepage");
    regions().is_some_and(|regions| {
        let mut names = regions.iter().filter(is_in).map(|region| region.area.name.as_str());
        names.all(|name| name.is_empty() || of_pool(name))
    })
}

fn scanned(wanted: &[Range<u64>]) -> Option<u64> {
    let mut pagemap = Pagemap::open(None).ok()?;
    let mut runs = Vec::new();
    wanted.iter().try_for_each(|range| pagemap.scan(range.clone(), &mut runs)).ok()?;
    let huge = runs.iter().filter(|run| run.filled == Filled::Huge);
    Some(huge.map(|run| run.range.end - run.range.start).sum())
}

/// Of the huge pages of each mapping, those for which there is no room beside the wanted addresses.
fn at_least(regions: &[Region], wanted: &[Range<u64>], huge_bytes: u64) -> u64 {
    let whole = |range: &Range<u64>| {
        let start = range.start.next_multiple_of(huge_bytes);
        (range.end / huge_bytes * huge_bytes).saturating_sub(start)
    };
    let certain = |region: &Region| {
        let at = &region.area.range;
        let both = |range: &Range<u64>| range.start.max(at.start)..range.end.min(at.end);
        let inside: u64 = wanted.iter().map(|range| whole(&both(range))).sum();
        let beside = whole(at).saturating_sub(inside);
        (region.thp_bytes() + region.hugetlb_bytes).saturating_sub(beside).min(inside)
    };
    regions.iter().map(certain).sum()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous, pages};

    use super::*;

    const HUGE: u64 = 2 << 20;

    fn mapped(start: u64, end: u64, huge_bytes: u64) -> Region {
        let text = format!(
            "{start:x}-{end:x} r-xp 00000000 fe:00 7 /srv/engine\nFilePmdMapped: {} kB\n",
            huge_bytes >> 10
        );
        parse_smaps(&text).unwrap().remove(0)
    }

    /// 22 MiB of cold text in huge pieces made "already" of a hot range of 4 MiB on base pages.
    #[test]
    fn huge_pages_of_cold_text_count_for_no_hot_one() {
        let regions = [mapped(10 * HUGE, 24 * HUGE, 11 * HUGE)];
        let hot = 22 * HUGE..24 * HUGE;
        assert_eq!(at_least(&regions, from_ref(&hot), HUGE), 0, "all may be cold");
        let regions = [mapped(10 * HUGE, 24 * HUGE, 13 * HUGE)];
        assert_eq!(at_least(&regions, from_ref(&hot), HUGE), HUGE, "one at least is hot");
        let regions = [mapped(10 * HUGE, 24 * HUGE, 14 * HUGE)];
        assert_eq!(at_least(&regions, from_ref(&hot), HUGE), 2 * HUGE);
        // A mapping of its own, as a copy has; and ends of mappings in which no huge page fits.
        let regions =
            [mapped(10 * HUGE + 4096, 22 * HUGE, 11 * HUGE), mapped(22 * HUGE, 24 * HUGE, 2 * HUGE)];
        assert_eq!(at_least(&regions, from_ref(&hot), HUGE), 2 * HUGE);
        assert_eq!(at_least(&regions, &[0..HUGE, 23 * HUGE..24 * HUGE], HUGE), HUGE);
        assert_eq!(at_least(&regions, &[], HUGE), 0);
    }

    #[test]
    fn memory_of_a_file_and_without_one_are_told_apart() {
        let mapping = map_anonymous(4096, MapOptions::new(PageRequest::Base)).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        assert!(has_no_file(from_ref(&(start..start + 4096))));
        let own = memory_of_a_file_and_without_one_are_told_apart as *const () as u64;
        assert!(
            !has_no_file(from_ref(&(own..own + 1))) && !has_no_file(&[start..start + 4096, own..own + 1])
        );
    }

    /// The same by the kernel: of memory of which one half lies on huge pages, neither half has that of the other.
    #[test]
    fn each_half_of_a_mapping_is_told_by_itself() {
        let test = "each_half_of_a_mapping_is_told_by_itself";
        let Some(huge) = pages::thp_bytes() else {
            return planish_skip::skip(test, "no transparent huge pages");
        };
        let mapping = map_anonymous(4 * huge, MapOptions::new(PageRequest::Thp)).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        let (huge, middle) = (huge as u64, start + 2 * huge as u64);
        mapping.advise_range(0..2 * huge as usize, Advice::PopulateWrite).unwrap();
        let told = |range| huge_bytes_in(from_ref(&range), huge).unwrap();
        if told(start..middle) < 2 * huge {
            return planish_skip::skip(test, "no huge page is free");
        }
        assert_eq!(told(middle..middle + 2 * huge), 0);
        assert_eq!(told(start..middle + 2 * huge), 2 * huge);
    }
}
