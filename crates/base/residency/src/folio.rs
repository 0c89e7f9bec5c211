//! Folios: the pieces of memory that the kernel keeps together, as /proc/kpageflags shows them.
//!
//! A transparent huge page that page tables map by base-page entries looks like base pages to every other file of
//! /proc. The flags of its page frames tell: one head, then tails.
//!
//! ```text
//! frame   512  513  514  515  516  517  ...
//! flags   head tail tail tail head tail          a folio of 4 pages, then one of 2
//! ```
//!
//! Source: Documentation/admin-guide/mm/pagemap.rst; `stable_page_flags` in fs/proc/page.c.

use std::collections::HashMap;

use planish_sys::beside;
use planish_sys::pagemap::{FrameFlags, HALVED_FROM};

const COMPOUND_HEAD: u64 = 1 << 15;
const COMPOUND_TAIL: u64 = 1 << 16;

/// Blocks that are remembered: 128 MiB of ours at 512 frames a block.
const BLOCKS_MAX: usize = 1 << 17;

/// The folios behind page frames, asked of the kernel block by block.
#[derive(Debug)]
pub(crate) struct Folios {
    flags: FrameFlags,
    /// Frames of a transparent huge page: no folio reaches over a multiple of it, and all are aligned.
    block_frames: u64,
    /// Pages of the folio of each frame of a block; `None` for a block without folios of several pages.
    blocks: HashMap<u64, Option<Box<[u16]>>>,
    /// Flags of one block.
    buffer: Vec<u64>,
}

/// Frames that one call reads at most.
const FRAMES_PER_READ: usize = 4096;
/// Frames between two wanted ones that are read along rather than by another call, which takes as long as some thirty.
const GAP: u64 = 32;

impl Folios {
    pub(crate) fn new(flags: FrameFlags, block_frames: u64) -> Self {
        let buffer = vec![0; usize::try_from(block_frames).unwrap_or(0)];
        Self { flags, block_frames, blocks: HashMap::new(), buffer }
    }

    /// Pages of the folio that holds each of `frames`; 1 for frame 0, and where the kernel does not tell.
    ///
    /// Frames of one process lie near each other in whatever order: sorted, few calls read them all. Most stand
    /// alone and say so themselves; only for the others the whole block is read. One that lies far from all others is
    /// not asked for: whatever it is a part of, this one page is all that is used of it, and each would be a call. But
    /// the first and the last of `frames` are, since their neighbours may be among those of another call. Of many, half
    /// is read on a thread of its own.
    pub(crate) fn pages_of(&mut self, frames: &[u64]) -> Vec<u64> {
        let mut order: Vec<usize> = (0..frames.len()).filter(|index| frames[*index] != 0).collect();
        order.sort_unstable_by_key(|index| frames[*index]);
        let is_at_end = |index: usize| index == 0 || index + 1 == frames.len();
        let (mut runs, mut rest) = (Vec::new(), order.as_slice());
        while !rest.is_empty() {
            let (run, further) = rest.split_at(near(frames, rest));
            if run.len() > 1 || is_at_end(run[0]) {
                runs.push(run);
            }
            rest = further;
        }
        let in_folios = match order.len() < HALVED_FROM {
            true => self.in_folios(frames, &runs),
            false => {
                let (some, further) = runs.split_at(runs.len() / 2);
                let halves = beside(|| self.in_folios(frames, further), || self.in_folios(frames, some));
                [halves.0, halves.1].concat()
            }
        };
        let mut pages = vec![1; frames.len()];
        for index in in_folios {
            pages[index] = self.folio_of(frames[index]);
        }
        pages
    }

    /// Which of `runs`, of which each has `frames` near each other by their indices, are in folios of several pages.
    fn in_folios(&self, frames: &[u64], runs: &[&[usize]]) -> Vec<usize> {
        let (mut found, mut flags) = (Vec::new(), Vec::new());
        for run in runs {
            let (first, last) = (frames[run[0]], frames[run[run.len() - 1]]);
            let length = usize::try_from(last - first + 1).expect("as many frames as a read takes at most");
            flags.resize(length.max(flags.len()), 0);
            let read = self.flags.read(first, &mut flags[..length]).unwrap_or(0);
            let is_in_folio = |index: &&usize| {
                let flags = flags[..read].get((frames[**index] - first) as usize);
                flags.is_some_and(|flags| flags & (COMPOUND_HEAD | COMPOUND_TAIL) != 0)
            };
            found.extend(run.iter().filter(is_in_folio));
        }
        found
    }

    /// Pages of the folio that holds `frame`, by its block.
    fn folio_of(&mut self, frame: u64) -> u64 {
        let block = frame / self.block_frames;
        if !self.blocks.contains_key(&block) {
            self.load(block);
        }
        let place = usize::try_from(frame % self.block_frames).expect("below the frames of a block");
        match self.blocks.get(&block) {
            Some(Some(pages)) => pages.get(place).copied().unwrap_or(1).into(),
            _ => 1,
        }
    }

    fn load(&mut self, block: u64) {
        if self.blocks.len() >= BLOCKS_MAX {
            self.blocks.clear();
        }
        let length = usize::try_from(self.block_frames).expect("made for at least as many");
        let read = self.flags.read(block * self.block_frames, &mut self.buffer[..length]).unwrap_or(0);
        let pages = folio_pages(&self.buffer[..read]);
        self.blocks.insert(block, pages.iter().any(|pages| *pages > 1).then_some(pages));
    }
}

/// How many of the sorted `order` lie near enough to its first to be read with it.
fn near(frames: &[u64], order: &[usize]) -> usize {
    let first = frames[order[0]];
    let follows = |pair: &&[usize]| {
        let (before, frame) = (frames[pair[0]], frames[pair[1]]);
        frame - before <= GAP && frame - first < FRAMES_PER_READ as u64
    };
    1 + order.windows(2).take_while(follows).count()
}

/// For each of consecutive frames the number of pages of its folio, by their flags in /proc/kpageflags.
#[must_use]
pub fn folio_pages(flags: &[u64]) -> Box<[u16]> {
    let mut pages = vec![1u16; flags.len()];
    let mut at = 0;
    while at < flags.len() {
        let is_folio = flags[at] & (COMPOUND_HEAD | COMPOUND_TAIL) != 0;
        let tails = flags[at + 1..].iter().take_while(|flags| **flags & COMPOUND_TAIL != 0);
        let count = if is_folio { 1 + tails.count() } else { 1 };
        pages[at..at + count].fill(u16::try_from(count).unwrap_or(u16::MAX));
        at += count;
    }
    pages.into()
}

#[cfg(test)]
mod tests {
    use planish_sys::{MapOptions, PageRequest, map_anonymous};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn folios_are_told_by_heads_and_tails() {
        let (head, tail) = (COMPOUND_HEAD | 1 << 22, COMPOUND_TAIL | 1 << 22);
        let flags = [0, head, tail, tail, tail, head, tail, 0, 0];
        assert_eq!(*folio_pages(&flags), [1, 4, 4, 4, 4, 2, 2, 1, 1]);
        assert_eq!(*folio_pages(&[tail, tail, 0]), [2, 2, 1], "one that began before the block");
        assert_eq!(*folio_pages(&[]), [0; 0]);
    }

    #[test]
    fn frames_near_each_other_are_read_together() {
        let frames = [900, 5, 0, 38, 6, 5000, 38 + 4096];
        let mut order: Vec<usize> = vec![0, 1, 3, 4, 5, 6];
        order.sort_unstable_by_key(|index| frames[*index]);
        assert_eq!(near(&frames, &order), 3, "5, 6 and 38");
        assert_eq!(near(&frames, &order[3..]), 1, "900 lies apart");
        let dense: Vec<u64> = (1..=5000).collect();
        let order: Vec<usize> = (0..5000).collect();
        assert_eq!(near(&dense, &order), FRAMES_PER_READ);
    }

    /// Of memory of our own, by the kernel itself: a huge page is one folio, base pages stand alone.
    #[test]
    fn our_own_folios_are_as_large_as_our_pages() {
        let test = "our_own_folios_are_as_large_as_our_pages";
        let Ok(flags) = FrameFlags::open() else { return planish_skip::skip(test, "no /proc/kpageflags") };
        let base = planish_sys::pages::base_bytes();
        let Some(huge) = planish_sys::pages::thp_bytes() else { return planish_skip::skip(test, "no THP") };
        let mut folios = Folios::new(flags, (huge / base) as u64);
        // So many that two threads ask.
        let bytes = (HALVED_FROM * base).next_multiple_of(huge);
        for (page, wanted) in [(PageRequest::Base, 1), (PageRequest::Thp, (huge / base) as u64)] {
            let mapping =
                map_anonymous(bytes, MapOptions { populate: true, ..MapOptions::new(page) }).unwrap();
            let mut frames = vec![0; bytes / base];
            let pagemap = planish_sys::pagemap::Pagemap::open(None).unwrap();
            let start = mapping.as_ptr().addr();
            pagemap.frames(start as u64, &mut frames).unwrap();
            let addresses: Vec<usize> = (0..frames.len()).map(|page| start + page * base).collect();
            assert_eq!(pagemap.frames_at(&addresses).unwrap(), frames);
            if frames[0] == 0 {
                return planish_skip::skip(test, "the kernel hides frames");
            }
            let pages = folios.pages_of(&frames);
            if page == PageRequest::Thp && pages.contains(&1) {
                return planish_skip::skip(test, "the kernel had no huge page");
            }
            assert!(pages.iter().all(|pages| *pages == wanted), "{page:?}: {pages:?}");
        }
    }

    proptest! {
        #[test]
        fn every_frame_has_a_folio(flags in proptest::collection::vec(0u64..8, 0..64)) {
            let flags: Vec<u64> = flags.into_iter().map(|bits| bits << 15).collect();
            let pages = folio_pages(&flags);
            prop_assert_eq!(pages.len(), flags.len());
            prop_assert!(pages.iter().all(|pages| *pages >= 1));
        }
    }
}
