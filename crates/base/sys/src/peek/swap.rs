//! What mincore(2) calls in memory of a window, and is in swap.
//!
//! It tells of the swap cache, too (`mincore_page` in mm/mincore.c): of pages that were just written to swap and have
//! not been freed, or were read back ahead. A read would take them out of swap. smaps tells how much of a mapping is in
//! swap by the page cache of its file (`shmem_swap_usage` in fs/proc/task_mmu.c), and touches nothing, so the window is
//! cut into as many mappings as it takes:
//!
//! ```text
//! mincore   ......########################......   what is to be read
//! smaps           [0] [ 4] [   3  ] [ 0 ]           pages in swap of each naturally aligned block
//!                  ok  no  [0][ 3 ]   ok            none, all, or halves
//! ```
//!
//! cachestat(2) would tell it by one call for each block, since Linux 6.5. It is not asked, since that of 6.8 may sleep
//! where it must not (`mem_cgroup_flush_stats_ratelimited` below `filemap_cachestat` in mm/filemap.c).

use std::ops::Range;

use rustix::io::Errno;
use rustix::mm::Advice;

use super::window::Window;
use crate::error::{Error, Result};
use crate::pages;

/// Blocks that are mappings of their own at a time: with what lies between them a few percent of the mappings that a
/// process may have (`vm.max_map_count`, 65530).
const BLOCKS_AT_ONCE: usize = 1024;

/// What of `runs`, which `window` has in memory by mincore(2), is not in swap.
///
/// # Errors
/// /proc is not there, or we have as many mappings as we may (`ENOMEM`).
pub(super) fn without_swapped(window: &Window<'_>, runs: Vec<Range<u64>>) -> Result<Vec<Range<u64>>> {
    if runs.is_empty() || pages::swapped_bytes() == 0 || all_swapped(window)? == 0 {
        return Ok(runs);
    }
    let page = window.page_bytes();
    let mut waiting: Vec<Range<u64>> = runs.into_iter().flat_map(|run| blocks(run, page)).collect();
    let mut kept: Vec<Range<u64>> = Vec::new();
    while !waiting.is_empty() {
        let mut halves = Vec::new();
        for blocks in waiting.chunks(BLOCKS_AT_ONCE) {
            for (block, swapped) in blocks.iter().zip(swapped_of(window, blocks)?) {
                let bytes = block.end - block.start;
                match swapped {
                    0 => kept.push(block.clone()),
                    // An entry of swap of more than a page counts whole in each block it reaches into (Linux 6.12). It
                    // is naturally aligned as well, and has all of the block then.
                    swapped if swapped >= bytes => {}
                    _ => {
                        let middle = block.start + bytes / 2;
                        halves.extend([block.start..middle, middle..block.end]);
                    }
                }
            }
        }
        waiting = halves;
    }
    kept.sort_unstable_by_key(|block| block.start);
    Ok(joined(kept))
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

/// `blocks`, which are in rising order, with those that touch as one.
fn joined(blocks: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(last) if last.end == block.start => last.end = block.end,
            _ => runs.push(block),
        }
    }
    runs
}

/// Bytes of `window` that are in swap.
fn all_swapped(window: &Window<'_>) -> Result<u64> {
    let range = window.addresses(&window.range());
    let is_inside = |mapping: &Range<u64>| range.start <= mapping.start && mapping.end <= range.end;
    let inside = our_mappings()?.into_iter().filter(|(mapping, _)| is_inside(mapping));
    Ok(inside.map(|(_, swapped)| swapped).sum())
}

/// Bytes of each of `blocks`, which are in rising order and apart, that are in swap.
fn swapped_of(window: &Window<'_>, blocks: &[Range<u64>]) -> Result<Vec<u64>> {
    // Two advices in turn, which change nothing of memory that is unmapped soon: mappings of one advice side by side
    // are one.
    for (number, block) in blocks.iter().enumerate() {
        window.advise(block, if number % 2 == 0 { Advice::LinuxDontFork } else { Advice::LinuxDontDump })?;
    }
    let mappings = our_mappings()?;
    for advice in [Advice::LinuxDoFork, Advice::LinuxDoDump] {
        window.advise(&window.range(), advice)?;
    }
    let of_block = |block: &Range<u64>| {
        let range = window.addresses(block);
        let at = mappings.binary_search_by_key(&range.start, |(mapping, _)| mapping.start);
        let found = at.ok().map(|at| &mappings[at]).filter(|(mapping, _)| mapping.end == range.end);
        found.map(|(_, swapped)| *swapped).ok_or(Error::of("search of /proc/self/smaps", Errno::NXIO))
    };
    blocks.iter().map(of_block).collect()
}

/// What this process has mapped, in rising order, and how many bytes of it are in swap.
#[expect(clippy::disallowed_methods, reason = "what we have mapped ourselves, on no recorded machine")]
fn our_mappings() -> Result<Vec<(Range<u64>, u64)>> {
    let failed =
        |error| Error::of("read of /proc/self/smaps", Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let text = std::fs::read("/proc/self/smaps").map_err(failed)?;
    // A name may be of any bytes.
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(smaps: &str) -> Vec<(Range<u64>, u64)> {
    let mut mappings: Vec<(Range<u64>, u64)> = Vec::new();
    for line in smaps.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if first == "Swap:" {
            let count = rest.trim().strip_suffix(" kB").and_then(|count| count.parse::<u64>().ok());
            if let (Some((_, swapped)), Some(count)) = (mappings.last_mut(), count) {
                *swapped = count << 10;
            }
        } else if let Some((start, end)) = first.split_once('-')
            && let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        {
            mappings.push((start..end, 0));
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
        assert_eq!(parse(text), [(0x7f00..0x7f10, 8192), (0x7f10..0x7f20, 0), (top..top + 4096, 0)]);
    }

    proptest! {
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
