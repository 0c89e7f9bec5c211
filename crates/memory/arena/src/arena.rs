//! The arena: a list of chunks, the last of which is filled from its start.

use std::alloc::Layout;
use std::mem::{align_of, size_of};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use crate::achieved::Achieved;
use crate::builder::{Builder, Fallback, Growth, NodeChoice, nodes_to_ask};
use crate::bump::{Block, Bump};
use crate::chunk::{Chunk, Mapped, Wish, check_nodes};
use crate::error::{ArenaError, not_collapsed, told};
use crate::ladder::{Granted, Ladder};
use crate::lease::Lease;
use crate::page::{Offer, Page};
use crate::plain::Plain;

/// Slices begin on a multiple of this many bytes: a cache line, so that two slices never share one.
pub const LINE_BYTES: usize = if cfg!(target_arch = "aarch64") { 128 } else { 64 };

/// Growing memory of one page size and placement. See the crate for what is promised.
///
/// Slices are borrowed from the arena and may be taken by several threads; taking one locks, using it does
/// not.
#[derive(Debug)]
pub struct Arena {
    asked: Builder,
    offer: Offer,
    state: Mutex<State>,
}

/// What leases are made of.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

#[derive(Debug)]
struct State {
    chunks: Vec<Mapped>,
    /// Bytes of the next chunk, unless a slice needs more.
    next_bytes: usize,
    why_not: Vec<String>,
}

/// How many of the newest chunks are asked for what is left at their ends, so that a slice that fits nowhere is known
/// to soon, however many chunks there are.
const TAILS: usize = 8;

impl State {
    /// What `take` finds in the newest chunk, or else at the ends of those before it.
    fn tail<T>(&mut self, take: impl FnMut(&mut Mapped) -> Option<T>) -> Option<T> {
        self.chunks.iter_mut().rev().take(TAILS).find_map(take)
    }

    /// Keeps each reason once, however many chunks met it.
    fn note(&mut self, reasons: impl IntoIterator<Item = String>) {
        for reason in reasons {
            if !self.why_not.contains(&reason) {
                self.why_not.push(reason);
            }
        }
    }
}

impl Arena {
    /// Begins to describe an arena.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn with(asked: Builder) -> Self {
        let next_bytes = asked.growth.first_bytes.max(1);
        let state = State { chunks: Vec::new(), next_bytes, why_not: Vec::new() };
        Self { asked, offer: Offer::of_this_kernel(), state: Mutex::new(state) }
    }

    /// A slice of `count` zeroed items.
    ///
    /// # Errors
    /// When a new chunk is needed and cannot be had: the variants of [`ArenaError`] say what is missing, and
    /// [`ArenaError::cure`] what to do. The arena is then as it was.
    #[expect(
        clippy::mut_from_ref,
        reason = "each slice is handed out once: `take` never returns a byte twice"
    )]
    pub fn alloc_slice<T: Plain>(&self, count: usize) -> Result<&mut [T], ArenaError> {
        let start = self.take::<T>(count)?;
        // SAFETY: `take` gives `count` items of room, aligned for `T`, that no other slice has or gets while
        // `self` is borrowed; chunks stay mapped until `self` is dropped. The bytes are zero as the kernel
        // gave them, for `take` never gives bytes a second time, and zero is a value of a `Plain` type.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
    }

    /// A slice of `count` copies of `value`.
    ///
    /// # Errors
    /// As [`alloc_slice`](Self::alloc_slice).
    #[expect(
        clippy::mut_from_ref,
        reason = "each slice is handed out once: `take` never returns a byte twice"
    )]
    pub fn alloc_filled<T: Copy>(&self, count: usize, value: T) -> Result<&mut [T], ArenaError> {
        let start = self.take::<T>(count)?;
        for index in 0..count {
            // SAFETY: `take` gives `count` items of room, aligned for `T`, and `index` is below `count`.
            unsafe { start.add(index).write(value) };
        }
        // SAFETY: as in `alloc_slice`, but that every item was written just now instead of being zero. `T` is
        // `Copy` and so has no drop to be missed.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
    }

    /// Zeroed bytes of a size and an alignment that are known at run time only; at least a cache line's.
    ///
    /// # Errors
    /// As [`alloc_slice`](Self::alloc_slice).
    #[expect(
        clippy::mut_from_ref,
        reason = "each slice is handed out once: `take_bytes` never returns a byte twice"
    )]
    pub fn alloc_bytes(&self, layout: Layout) -> Result<&mut [u8], ArenaError> {
        let start = self.take_bytes(layout.size(), layout.align())?;
        let start = start.ok_or(ArenaError::TooLarge { count: layout.size(), item_bytes: 1 })?;
        // SAFETY: as in `alloc_slice`, for as many bytes.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, layout.size()) })
    }

    /// A slice of `count` zeroed items that is memory for the next lease when it is dropped. Leases take memory that
    /// others gave back before they take new one.
    ///
    /// # Errors
    /// As [`alloc_slice`](Self::alloc_slice).
    pub fn lease<T: Plain>(&self, count: usize) -> Result<Lease<'_, T>, ArenaError> {
        let too_large = || ArenaError::TooLarge { count, item_bytes: size_of::<T>() };
        // Whole lines, so that what is given back fits together without gaps.
        let bytes = count.checked_mul(size_of::<T>()).and_then(|it| it.checked_next_multiple_of(LINE_BYTES));
        let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize - LINE_BYTES).ok_or_else(too_large)?;
        if bytes > 0
            && align_of::<T>() <= LINE_BYTES
            && let Some(start) = self.take_again(bytes)
        {
            // SAFETY: `take_again` gives `bytes` of room at a line, given to nobody else; zero is a value of a `Plain`
            // type, whatever the owner before left there.
            unsafe { start.write_bytes(0, bytes) };
            return Ok(Lease::new(self, start.cast(), count, bytes));
        }
        let start = match bytes {
            0 => std::ptr::dangling_mut(),
            _ if align_of::<T>() <= LINE_BYTES => self.take::<Line>(bytes / LINE_BYTES)?.cast(),
            // Would leave gaps of its own size behind; nobody has such a type.
            _ => return Err(too_large()),
        };
        Ok(Lease::new(self, start, count, bytes))
    }

    /// Hands memory that nobody leases to the kernel, until no more than `keep_bytes` of it are left: chunks of which
    /// nothing is handed out as a whole, of others every page without a leased byte. Returns how many bytes those were.
    /// Pages of a pool are free in it again.
    ///
    /// What is leased later from such pages is faulted in by the call that leases it.
    pub fn trim(&self, keep_bytes: usize) -> usize {
        let mut state = self.lock();
        let had_bytes = |state: &State| state.chunks.iter().map(Mapped::there).sum::<usize>();
        let before = had_bytes(&state);
        let spare_bytes: usize = state.chunks.iter().map(Mapped::spare).sum();
        let mut wanted = spare_bytes.saturating_sub(keep_bytes);
        state.chunks.retain(|chunk| {
            let is_kept = !chunk.is_all_free() || chunk.spare() > wanted;
            wanted -= if is_kept { 0 } else { chunk.spare() };
            is_kept
        });
        for chunk in &mut state.chunks {
            wanted = wanted.saturating_sub(chunk.trim(wanted));
        }
        before - had_bytes(&state)
    }

    /// Puts what wanted transparent huge pages and lies on others onto huge pages now, and tells what is had
    /// afterwards, with the reason where the kernel did not. Who takes memory meanwhile waits.
    ///
    /// A fresh chunk has been through this. What undoes it comes later: pages that were swapped out or given back come
    /// back one by one, and memory that was in pieces may be whole again. The kernel copies while others read and write
    /// (MADV_COLLAPSE, Linux 6.1), at about the speed of the memory.
    ///
    /// # Errors
    /// As [`achieved`](Self::achieved).
    pub fn collapse(&self) -> Result<Achieved, ArenaError> {
        let failed: Vec<String> = {
            let state = self.lock();
            let refused = state.chunks.iter().filter_map(Mapped::collapse);
            refused.map(|error| not_collapsed(&error)).collect()
        };
        let mut achieved = self.achieved()?;
        for why in failed {
            if !achieved.why_not.contains(&why) {
                achieved.why_not.push(why);
            }
        }
        Ok(achieved)
    }

    /// Takes back what leases and bumps had: addresses and lengths.
    pub(crate) fn give_back(&self, all: impl IntoIterator<Item = (usize, usize)>) {
        let mut state = self.lock();
        for (start, bytes) in all {
            let chunk = state.chunks.iter_mut().find(|chunk| chunk.range().contains(&start));
            let chunk = chunk.expect("a chunk stays as long as something of it is leased");
            let offset = start - chunk.range().start;
            chunk.give_back(offset..offset + bytes);
        }
    }

    /// Makes sure that slices of `bytes` in all fit into the newest chunk, so that they cause no call to the
    /// kernel. Each slice may add up to [`LINE_BYTES`] of alignment.
    ///
    /// # Errors
    /// As [`alloc_slice`](Self::alloc_slice).
    pub fn reserve(&self, bytes: usize) -> Result<(), ArenaError> {
        if bytes == 0 {
            return Ok(());
        }
        let mut state = self.lock();
        let has_room = state.chunks.last().is_some_and(|chunk| chunk.unused() >= bytes);
        if !has_room {
            let chunk = self.new_chunk(bytes, bytes, &mut state)?;
            state.chunks.push(chunk);
        }
        Ok(())
    }

    /// Bytes handed out, alignment included.
    pub fn used_bytes(&self) -> usize {
        self.lock().chunks.iter().map(Mapped::used).sum()
    }

    /// What the arena has, read back from the kernel now.
    ///
    /// # Errors
    /// [`ArenaError::ReadBack`] when /proc/self/smaps cannot be read.
    pub fn achieved(&self) -> Result<Achieved, ArenaError> {
        let state = self.lock();
        let extents = state.chunks.iter().map(Mapped::extent).collect();
        Achieved::read((self.asked.preference, &self.asked.nodes), extents, state.why_not.clone())
    }

    /// Its chunks, oldest first: what of each is handed out, spare, and left at its end.
    pub fn chunks(&self) -> Vec<Chunk> {
        self.lock().chunks.iter().map(Mapped::told).collect()
    }

    /// Memory that one thread fills without a lock, in blocks of `blocks` ([`Growth::BLOCKS`] fits most). What it took
    /// goes back to the arena as a whole, also when its thread ends, and is the next one's.
    ///
    /// A block is what the tails of chunks have, or what others gave back, before it is new memory.
    pub fn bump(&self, blocks: Growth) -> Bump<'_> {
        Bump::new(self, blocks)
    }

    /// Whole lines for a bump: `least` bytes, and more up to `most` where they are there at once.
    pub(crate) fn block(&self, (least, most): (usize, usize)) -> Result<Block, ArenaError> {
        let mut state = self.lock();
        let how = self.how();
        for chunk in &mut state.chunks {
            // One that has no pages is passed over: a new chunk says what is missing, or has other pages.
            if let Ok(Some(range)) = chunk.take_some_again((least, most), how) {
                return Ok(Block::of(chunk.as_ptr(), range, false));
            }
        }
        if let Some(block) = state.tail(|chunk| {
            let range = chunk.take_tail((least, most))?;
            Some(Block::of(chunk.as_ptr(), range, true))
        }) {
            return Ok(block);
        }
        let mut chunk = self.new_chunk(most.max(state.next_bytes), least, &mut state)?;
        let range = chunk.take_tail((least, most)).expect("a new chunk is as large as what it was made for");
        let block = Block::of(chunk.as_ptr(), range, true);
        state.chunks.push(chunk);
        Ok(block)
    }

    /// How memory that was given back is faulted in again.
    fn how(&self) -> (&NodeChoice, NonZeroUsize, bool) {
        (&self.asked.nodes, self.asked.threads, self.asked.fallback == Fallback::Refuse)
    }

    /// Room for `count` items, aligned to a cache line at least, given to nobody else.
    fn take<T>(&self, count: usize) -> Result<*mut T, ArenaError> {
        let start = match count.checked_mul(size_of::<T>()) {
            Some(bytes) => self.take_bytes(bytes, align_of::<T>())?,
            None => None,
        };
        let start = start.ok_or(ArenaError::TooLarge { count, item_bytes: size_of::<T>() })?;
        Ok(start.cast())
    }

    /// Room for `bytes`, aligned to a cache line at least, given to nobody else; `None` for more than an address space
    /// has.
    fn take_bytes(&self, bytes: usize, align: usize) -> Result<Option<*mut u8>, ArenaError> {
        if bytes > (isize::MAX as usize - LINE_BYTES).saturating_sub(align) {
            return Ok(None);
        }
        if bytes == 0 {
            return Ok(Some(std::ptr::without_provenance_mut(align)));
        }
        let align = align.max(LINE_BYTES);
        let mut state = self.lock();
        let take = |chunk: &mut Mapped| {
            let offset = chunk.take(bytes, align)?;
            // SAFETY: `Mapped::take` keeps the offset within the mapping.
            Some(unsafe { chunk.as_ptr().add(offset) })
        };
        if let Some(start) = state.tail(take) {
            return Ok(Some(start));
        }
        // A chunk begins on a page, so only an alignment above that needs room of its own.
        let least = if align > Page::Base.bytes() { bytes + align } else { bytes };
        let wanted = least.max(state.next_bytes);
        let mut chunk = self.new_chunk(wanted, least, &mut state)?;
        let start = take(&mut chunk).expect("a new chunk is as large as what it was made for");
        state.chunks.push(chunk);
        Ok(Some(start))
    }

    /// Room that a lease gave back, with every page of it there; `None` when there is none, or the kernel has no pages
    /// for it.
    fn take_again(&self, bytes: usize) -> Option<*mut u8> {
        let how = self.how();
        let mut state = self.lock();
        state.chunks.iter_mut().find_map(|chunk| {
            // One that has no pages is passed over: a new chunk says what is missing, or has other pages.
            let offset = chunk.take_again(bytes, how).ok().flatten()?;
            // SAFETY: what is free of a chunk lies in its mapping.
            Some(unsafe { chunk.as_ptr().add(offset) })
        })
    }

    /// A chunk of `wanted` bytes, or of `least` where memory is short; down the ladder if that is allowed.
    fn new_chunk(&self, wanted: usize, least: usize, state: &mut State) -> Result<Mapped, ArenaError> {
        let (nodes, missing) = nodes_to_ask(&self.asked)?;
        let ladder = Ladder { asked: &self.asked, offer: &self.offer };
        let (mut chunk, why_not) =
            ladder.descend(wanted, least, |page, bytes| self.try_chunk(page, bytes, &nodes))?;
        state.note(missing.into_iter().chain(why_not).chain(chunk.unplaced().as_ref().map(told)));
        state.next_bytes = self.asked.growth.after(chunk.len());
        Ok(chunk)
    }

    /// A chunk, and in what it falls short of the wish where that is allowed.
    fn try_chunk(&self, page: Page, bytes: usize, nodes: &NodeChoice) -> Result<Granted<Mapped>, ArenaError> {
        let Builder { threads, fallback, shared, .. } = &self.asked;
        let wish = Wish { page, bytes, nodes, threads: *threads, offer: &self.offer, shared: *shared };
        let mut chunk = wish.grant()?;
        match (chunk.check_backing(), fallback) {
            (Ok(()), Fallback::Allow) => Ok((chunk, None)),
            (Err(error), Fallback::Allow) => Ok((chunk, Some(error.to_string()))),
            (backing, Fallback::Refuse) => {
                backing.and(chunk.unplaced().map_or(Ok(()), Err))?;
                check_nodes(chunk.extent(), nodes)?;
                Ok((chunk, None))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while the chunks are half changed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Preference;

    /// The lock is held here, so that a bump which wanted it would wait for ever.
    #[test]
    fn a_bump_takes_no_lock_within_its_block() {
        let arena = Arena::builder().page(Preference::From(Page::Base)).build().expect("an arena");
        let bump = arena.bump(Growth::BLOCKS);
        bump.alloc(0u64).expect("a block");
        let held = arena.lock();
        for number in 1..8000u64 {
            assert_eq!(*bump.alloc(number).expect("it fits"), number);
        }
        drop(held);
        assert_eq!(bump.used_bytes(), 8000 * 8);
    }
}
