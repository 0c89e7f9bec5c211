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

use planish_sys::pagemap::FrameFlags;

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
    /// Flags that were read last: of which frame the first ones are, and how many.
    window: (u64, usize),
    buffer: Vec<u64>,
}

/// Frames that are read ahead once two in a row were asked for.
const AHEAD: usize = 64;

impl Folios {
    pub(crate) fn new(flags: FrameFlags, block_frames: u64) -> Self {
        let buffer = vec![0; usize::try_from(block_frames).unwrap_or(512)];
        Self { flags, block_frames, blocks: HashMap::new(), window: (0, 0), buffer }
    }

    /// Pages of the folio that holds `frame`; 1 where the kernel does not tell.
    ///
    /// Most frames stand alone and say so themselves; only for the others the whole block is read.
    pub(crate) fn pages_of(&mut self, frame: u64) -> u64 {
        let block = frame / self.block_frames;
        if !self.blocks.contains_key(&block) {
            if self.flags_of(frame) & (COMPOUND_HEAD | COMPOUND_TAIL) == 0 {
                return 1;
            }
            self.load(block);
        }
        let place = usize::try_from(frame % self.block_frames).expect("below the frames of a block");
        match self.blocks.get(&block) {
            Some(Some(pages)) => pages.get(place).copied().unwrap_or(1).into(),
            _ => 1,
        }
    }

    /// The flags of one frame; 0 where the kernel does not tell.
    fn flags_of(&mut self, frame: u64) -> u64 {
        let (first, count) = self.window;
        let inside = |at: u64| usize::try_from(at).ok().filter(|at| *at < count);
        if let Some(at) = frame.checked_sub(first).and_then(inside) {
            return self.buffer[at];
        }
        let ahead = if frame == first + count as u64 { AHEAD.min(self.buffer.len()) } else { 1 };
        let read = self.flags.read(frame, &mut self.buffer[..ahead]).unwrap_or(0);
        self.window = (frame, read);
        self.buffer[..read].first().copied().unwrap_or(0)
    }

    fn load(&mut self, block: u64) {
        if self.blocks.len() >= BLOCKS_MAX {
            self.blocks.clear();
        }
        let read = self.flags.read(block * self.block_frames, &mut self.buffer).unwrap_or(0);
        self.window = (block * self.block_frames, read);
        let pages = folio_pages(&self.buffer[..read]);
        self.blocks.insert(block, pages.iter().any(|pages| *pages > 1).then_some(pages));
    }
}

/// For each frame the number of pages of its folio.
pub(crate) fn folio_pages(flags: &[u64]) -> Box<[u16]> {
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
