//! What mincore(2) calls in memory of a window, and is in swap.
//!
//! It tells of the swap cache, too (`mincore_page` in mm/mincore.c): of pages that were just written to swap and have
//! not been freed, or were read back ahead. A read would take them out of swap. smaps tells how much of a mapping is in
//! swap by the page cache of its file (`shmem_swap_usage` in mm/shmem.c), and touches nothing, so the window is cut
//! into as many mappings as it takes:
//!
//! ```text
//! object    ....####ssss####cc##ssss####....   # in memory, s in swap, c in the swap cache as well
//! mincore   ----####----########----####----
//! lseek     ----########################----   what has data: in memory or in swap
//! smaps         [     10 in swap       ]       2 more than mincore calls absent: halves of the block, and so on
//! ```
//!
//! cachestat(2) would tell it by one call for each block, since Linux 6.5. It is not asked: until 6.9 it could end in
//! an oops on just such memory (d5d39c707a4c, "mm: cachestat: fix two shmem bugs"), and until 6.10 sleep where it must
//! not.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

use super::window::Window;
use crate::error::{Error, Result};
use crate::pages;

/// Blocks that are mappings of their own at a time: with what lies between them a few percent of the mappings that a
/// process may have (`vm.max_map_count`, 65530).
const BLOCKS_AT_ONCE: usize = 1024;

/// Reads of smaps for one object at most: some 10 ms each with [`BLOCKS_AT_ONCE`].
const SEARCHES: u32 = 400;

/// How many of [`SEARCHES`] are left.
#[derive(Debug)]
pub(super) struct Searches(AtomicU32);

impl Default for Searches {
    fn default() -> Self {
        Self(AtomicU32::new(SEARCHES))
    }
}

impl Searches {
    /// Takes one.
    fn take(&self) -> Result<()> {
        let one_less = |left: u32| left.checked_sub(1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        taken.map(drop).map_err(|_| Error::SwapCache)
    }
}

/// What `window` has in memory by mincore(2) and not in swap.
///
/// # Errors
/// [`Error::SwapCache`]; /proc is not there, or we have as many mappings as we may (`ENOMEM`).
pub(super) fn without_swapped(window: &Window<'_>, searches: &Searches) -> Result<Vec<Range<u64>>> {
    let runs = window.in_core_or_cached()?;
    if runs.is_empty() || pages::swapped_bytes() == 0 || all_swapped(window)? == 0 {
        return Ok(runs);
    }
    let pieces = window.pieces().iter().cloned();
    let blocks = pieces.flat_map(|piece| blocks(piece, window.page_bytes())).collect();
    let whole = window.whole_object();
    let kept = sift(blocks, &runs, &window.data(), (&whole, window.page_bytes()), |blocks| {
        searches.take()?;
        swapped_of(window, blocks)
    })?;
    // Some of it may have gone to swap meanwhile, and be read back from there.
    let still = window.in_core_or_cached()?;
    Ok(kept.iter().flat_map(|part| parts_in(&still, part)).collect())
}

/// What of `runs` is not in swap. `blocks` have all of them; `data` is what is in memory or in swap; `ask` tells how
/// many bytes of each of some blocks are in swap, and of the `whole` object what lies beyond its end as well.
fn sift(
    blocks: Vec<Range<u64>>,
    runs: &[Range<u64>],
    data: &[Range<u64>],
    (whole, page): (&Range<u64>, u64),
    mut ask: impl FnMut(&[Range<u64>]) -> Result<Vec<u64>>,
) -> Result<Vec<Range<u64>>> {
    let (mut waiting, mut kept) = (blocks, Vec::new());
    while !waiting.is_empty() {
        let mut halves = Vec::new();
        for blocks in waiting.chunks(BLOCKS_AT_ONCE) {
            for (block, swapped) in blocks.iter().zip(ask(blocks)?) {
                let (bytes, there) = (block.end - block.start, length_in(runs, block));
                let cached = swapped.saturating_sub(length_in(data, block).saturating_sub(there));
                // An entry of swap of more than a page counts whole in each block it reaches into (Linux 6.12). It is
                // naturally aligned as well, and has all of the block then.
                let is_all_swapped = swapped >= bytes || cached >= there;
                let half = bytes / 2 / page * page;
                if cached == 0 {
                    kept.extend(parts_in(runs, block));
                } else if half > 0 && (!is_all_swapped || block == whole) {
                    halves.extend([block.start..block.start + half, block.start + half..block.end]);
                }
            }
        }
        // Those without memory have nothing to be kept.
        halves.retain(|block| length_in(runs, block) > 0);
        waiting = halves;
    }
    kept.sort_unstable_by_key(|part| part.start);
    Ok(joined(kept))
}

/// What of `ranges`, which are in rising order and apart, lies in `block`.
fn parts_in(ranges: &[Range<u64>], block: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let first = ranges.partition_point(|range| range.end <= block.start);
    let (start, end) = (block.start, block.end);
    let over = ranges[first..].iter().take_while(move |range| range.start < end);
    over.map(move |range| range.start.max(start)..range.end.min(end))
}

/// Bytes of it.
fn length_in(ranges: &[Range<u64>], block: &Range<u64>) -> u64 {
    parts_in(ranges, block).map(|part| part.end - part.start).sum()
}

/// `run` in as few blocks as there are of which each has as many pages as a power of two, and begins at a multiple of
/// that.
fn blocks(run: Range<u64>, page: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = run.start / page;
    let end = run.end.div_ceil(page);
    std::iter::from_fn(move || {
        let most = (end - at).checked_ilog2()?;
        let pages = 1 << most.min(at.trailing_zeros());
        let block = at * page..(at + pages) * page;
        at += pages;
        Some(block)
    })
}

/// `parts`, which are in rising order, with those that touch as one.
fn joined(parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match runs.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => runs.push(part),
        }
    }
    runs
}

/// Bytes of `window` that are in swap.
fn all_swapped(window: &Window<'_>) -> Result<u64> {
    let range = window.addresses(&window.range());
    let inside = |(mapping, _): &&Mapped| range.start <= mapping.start && mapping.end <= range.end;
    let (mut mapped, mut swapped) = (0, 0);
    for (mapping, bytes) in our_mappings()?.iter().filter(inside) {
        mapped += mapping.end - mapping.start;
        swapped += bytes.ok_or_else(untold)?;
    }
    if mapped == range.end - range.start { Ok(swapped) } else { Err(untold()) }
}

/// Bytes of each of `blocks`, which are in rising order and apart, that are in swap.
fn swapped_of(window: &Window<'_>, blocks: &[Range<u64>]) -> Result<Vec<u64>> {
    for (number, block) in blocks.iter().enumerate() {
        window.cut_out(block, number % 2 == 1)?;
    }
    let mappings = our_mappings()?;
    window.mend()?;
    let of_block = |block: &Range<u64>| {
        let range = window.addresses(block);
        let at = mappings.binary_search_by_key(&range.start, |(mapping, _)| mapping.start);
        let found = at.ok().map(|at| &mappings[at]).filter(|(mapping, _)| *mapping == range);
        found.and_then(|(_, swapped)| *swapped).ok_or_else(untold)
    };
    blocks.iter().map(of_block).collect()
}

/// smaps does not tell of a mapping that we have made.
fn untold() -> Error {
    Error::of("search of /proc/self/smaps", Errno::NXIO)
}

/// A mapping of ours, and how many bytes of it are in swap, where that is told.
type Mapped = (Range<u64>, Option<u64>);

/// What this process has mapped, in rising order, and how many bytes of it are in swap.
#[expect(clippy::disallowed_methods, reason = "what we have mapped ourselves, on no recorded machine")]
fn our_mappings() -> Result<Vec<Mapped>> {
    // Where it is not there, no other process has gone.
    let failed = |error| match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
        Errno::NOENT => untold(),
        errno => Error::of("read of /proc/self/smaps", errno),
    };
    let text = std::fs::read("/proc/self/smaps").map_err(failed)?;
    // A name may be of any bytes.
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(smaps: &str) -> Vec<Mapped> {
    let mut mappings: Vec<Mapped> = Vec::new();
    for line in smaps.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if first == "Swap:" {
            let count = rest.trim().strip_suffix(" kB").and_then(|count| count.parse::<u64>().ok());
            if let Some((_, swapped)) = mappings.last_mut() {
                *swapped = count.and_then(|count| count.checked_mul(1024));
            }
        } else if let Some((start, end)) = first.split_once('-')
            && let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        {
            mappings.push((start..end, None));
        }
    }
    mappings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::process::getpid;

    use super::*;
    use crate::mapping::{MapOptions, PageRequest, map_anonymous};
    use crate::peek::SharedObject;

    #[test]
    fn smaps_tells_mappings_and_what_of_them_is_in_swap() {
        let text = "7f00-7f10 r--p 00000000 00:01 1234   /dev/zero (deleted)\nSize:      16 kB\nSwap:       8 kB\n\
                    SwapPss:   4 kB\nVmFlags: rd mr\n7f10-7f20 rw-p 00000000 00:00 0\nSize: 16 kB\nTHPeligible: 0\n\
                    ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\nSwap: 0 kB\n";
        let top = 0xffff_ffff_ff60_0000;
        assert_eq!(
            parse(text),
            [(0x7f00..0x7f10, Some(8192)), (0x7f10..0x7f20, None), (top..top + 4096, Some(0))]
        );
    }

    /// What a page of an object is: a hole, in memory, in the swap cache, or in swap alone.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Page {
        Hole,
        There,
        Cached,
        Swapped,
    }

    /// Pages side by side: of swap an entry of as many as a power of two, which begins at a multiple of that.
    fn pages_of(entries: &[(u8, u32)]) -> Vec<Page> {
        let mut pages = Vec::new();
        for (kind, order) in entries {
            let kind = [Page::Hole, Page::There, Page::Cached, Page::Swapped][usize::from(kind % 4)];
            let most = pages.len().trailing_zeros().min(*order);
            pages.extend(vec![kind; 1 << most]);
        }
        pages
    }

    fn runs_of(pages: &[Page], is_wanted: impl Fn(Page) -> bool) -> Vec<Range<u64>> {
        let wanted = (0..pages.len()).filter(|page| is_wanted(pages[*page]));
        joined(wanted.map(|page| page as u64..page as u64 + 1).collect())
    }

    proptest! {
        #[test]
        fn what_is_kept_is_in_memory_and_not_in_swap(
            entries in proptest::collection::vec((0u8..4, 0u32..5), 0..60),
            (first, beyond) in (0usize..20, 0u64..3),
        ) {
            let pages = pages_of(&entries);
            let end = pages.len() as u64;
            let start = end.min(first as u64);
            let within = |runs: Vec<Range<u64>>| -> Vec<Range<u64>> {
                parts_in(&runs, &(start..end)).collect()
            };
            let runs = within(runs_of(&pages, |page| matches!(page, Page::There | Page::Cached)));
            let data = within(runs_of(&pages, |page| page != Page::Hole));
            // Entries whole, also those that reach over an end of the block.
            let mut entries_at = Vec::new();
            let mut at = 0u64;
            for (kind, order) in &entries {
                let length = 1u64 << at.trailing_zeros().min(*order);
                if kind % 4 >= 2 {
                    entries_at.push(at..at + length);
                }
                at += length;
            }
            let mut asked = 0;
            let kept = sift(blocks(start..end, 1).collect(), &runs, &data, (&(0..end), 1), |blocks| {
                asked += blocks.len();
                let whole = |block: &Range<u64>| {
                    let over = entries_at.iter().filter(|entry| entry.start < block.end && entry.end > block.start);
                    over.map(|entry| entry.end - entry.start).sum::<u64>()
                };
                let beyond = |block: &Range<u64>| if end > 1 && *block == (0..end) { beyond } else { 0 };
                Ok(blocks.iter().map(|block| whole(block) + beyond(block)).collect())
            });
            prop_assert_eq!(kept.unwrap(), within(runs_of(&pages, |page| page == Page::There)));
            // What is in swap alone is no reason to look closer, but where a block begins within an entry.
            if !pages.contains(&Page::Cached) && start == 0 && beyond == 0 {
                prop_assert!(asked <= 2 * 11, "{} blocks", asked);
            }
        }

        #[test]
        fn blocks_are_the_run_and_naturally_aligned(start in 0u64..5000, pages in 0u64..5000) {
            let run = start * 4096..(start + pages) * 4096;
            let found: Vec<_> = blocks(run.clone(), 4096).collect();
            for block in &found {
                let bytes = block.end - block.start;
                prop_assert!(bytes.is_power_of_two() && block.start.is_multiple_of(bytes), "{block:?}");
            }
            prop_assert!(found.len() <= 2 * 13, "{found:?}");
            prop_assert_eq!(joined(found), if pages > 0 { vec![run] } else { Vec::new() });
        }
    }

    #[test]
    fn a_search_has_an_end() {
        let searches = Searches::default();
        (0..SEARCHES).for_each(|_| searches.take().unwrap());
        assert!(matches!(searches.take(), Err(Error::SwapCache)));
    }

    /// Nothing is in swap here, mostly: what is told of each block is found, however they lie, and the window is one
    /// mapping again. A guest has swap.
    #[test]
    fn each_block_is_found_in_smaps() {
        let test = "each_block_is_found_in_smaps";
        let base = pages::base_bytes() as u64;
        let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::Base) };
        let mapping = map_anonymous(5000 * base as usize, options).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        let object = match SharedObject::of_mapping(getpid(), &(start..start + mapping.len() as u64)) {
            Ok(object) => object.expect("it lies on tmpfs"),
            Err(error) => return planish_skip::skip(test, error),
        };
        let pieces = [Range { start: 0, end: 5000 * base }];
        let window = Window::map(&object, &pieces).unwrap();
        let blocks: Vec<Range<u64>> = [0..2, 2..3, 3..4, 8..16, 100..101, 102..103, 4096..4999, 4999..5000]
            .map(|pages: Range<u64>| pages.start * base..pages.end * base)
            .into();
        for _ in 0..2 {
            assert_eq!(swapped_of(&window, &blocks).unwrap(), [0; 8]);
            let whole = window.addresses(&window.range());
            assert!(our_mappings().unwrap().iter().any(|(mapping, _)| *mapping == whole), "it is in pieces");
        }
        assert_eq!(all_swapped(&window).unwrap(), 0);
    }
}
