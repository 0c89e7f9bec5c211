//! Memory of an arena that one thread fills.
//!
//! ```text
//!   arena    │ block │   │ block of another thread │ block ............ │  │ ...
//!                                                    │ ... room │ items │
//!                                                  start      next
//! ```
//!
//! A block is filled from its end, which is two steps for each item, and from its start would be four. Taking an item
//! moves `next`: no lock, and no line that another thread writes, for blocks are whole lines. Only when a
//! block is full is the arena asked for another, and what is left of the old one goes back to it.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug, Formatter};
use std::mem::{align_of, size_of};
use std::ops::Range;
use std::ptr;
use std::slice;

use crate::arena::{Arena, LINE_BYTES};
use crate::builder::Growth;
use crate::error::ArenaError;
use crate::plain::Plain;

/// The least that is taken of the arena, so that a chunk in crumbs does not cost a lock for each of them.
const BLOCK_BYTES_MIN: usize = 4096;

/// Whole lines of an arena that nobody else has.
#[derive(Debug)]
pub(crate) struct Block {
    start: *mut u8,
    bytes: usize,
    /// Zero, as the kernel gave it.
    is_clean: bool,
}

impl Block {
    /// The range of a chunk that begins at `chunk`, in which it lies.
    pub(crate) fn of(chunk: *mut u8, range: Range<usize>, is_clean: bool) -> Self {
        // SAFETY: the range lies in the chunk, as the caller took it from there.
        Self { start: unsafe { chunk.add(range.start) }, bytes: range.len(), is_clean }
    }

    fn end(&self) -> *mut u8 {
        // SAFETY: the end of a block is as much an address of it as its start.
        unsafe { self.start.add(self.bytes) }
    }

    fn whole(&self) -> (usize, usize) {
        (self.start.addr(), self.bytes)
    }
}

/// Memory that one thread fills without a lock, and that goes back to the arena as a whole: [`clear`](Self::clear)
/// keeps a block of it for the same thread, and dropping it, which the end of its thread does, leaves all to the next.
///
/// It grows by blocks, each twice the last up to a cap; nothing that was given out moves. Items are as aligned as their
/// type, side by side, and are not dropped. It may be sent to another thread, with what it holds.
///
/// ```
/// # use planish_arena::{Arena, Growth};
/// let arena = Arena::builder().build()?;
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let mut bump = arena.bump(Growth::BLOCKS);
///         scope.spawn(move || {
///             for query in 0..100 {
///                 let found: &mut u64 = bump.alloc(thread * query).expect("memory");
///                 assert_eq!(*found, thread * query);
///                 bump.clear();
///             }
///         });
///     }
/// });
/// # Ok::<(), planish_arena::ArenaError>(())
/// ```
pub struct Bump<'a> {
    /// Where the last item begins, and the next one ends; in the newest block, or nowhere.
    next: Cell<*mut u8>,
    /// The start of that block.
    start: Cell<*mut u8>,
    /// Whether what lies between them is zero.
    is_clean: Cell<bool>,
    arena: &'a Arena,
    blocks: Growth,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// What it has; the one that is being filled is the last.
    taken: Vec<Block>,
    /// Blocks for one item each, which is too large to end the one that is being filled.
    alone: Vec<Block>,
    /// Bytes of the next block, unless an item needs more.
    next_bytes: usize,
}

// SAFETY: a bump is the only owner of its blocks, as a vector is; the arena that they go back to is `Sync`, and what it
// gave out borrows it, so that nothing of it is with another thread when it is sent.
unsafe impl Send for Bump<'_> {}

impl<'a> Bump<'a> {
    pub(crate) fn new(arena: &'a Arena, blocks: Growth) -> Self {
        let next_bytes = blocks.after(0).max(1);
        let state = RefCell::new(State { taken: Vec::new(), alone: Vec::new(), next_bytes });
        // No memory: only items without bytes fit there, which need an address that is aligned and none of null.
        let nowhere = ptr::without_provenance_mut(LINE_BYTES);
        let (next, start) = (Cell::new(nowhere), Cell::new(nowhere));
        Self { next, start, is_clean: Cell::new(false), arena, blocks, state }
    }

    /// A place of its own for `value`.
    ///
    /// # Errors
    /// As [`Arena::alloc_slice`], where a new block is needed. What was given out before stays.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "each place is given out once, until `clear` borrows all of them"
    )]
    pub fn alloc<T: Copy>(&self, value: T) -> Result<&mut T, ArenaError> {
        let (bytes, align) = const { (size_of::<T>(), align_of::<T>()) };
        let start = match self.take(bytes, align) {
            Some(start) => start,
            None => self.take_more(bytes, align)?.0,
        };
        let start = start.cast::<T>();
        // SAFETY: `take` gives room for a `T`, aligned for it, that nobody else has until `clear` or the drop, which
        // want `self` exclusively; its blocks stay mapped as long, for the arena outlives `self`. It is written first.
        unsafe {
            start.write(value);
            Ok(&mut *start)
        }
    }

    /// A slice of `count` zeroed items.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    #[expect(
        clippy::mut_from_ref,
        reason = "each place is given out once, until `clear` borrows all of them"
    )]
    pub fn alloc_slice<T: Plain>(&self, count: usize) -> Result<&mut [T], ArenaError> {
        let too_large = || ArenaError::TooLarge { count, item_bytes: size_of::<T>() };
        let bytes = count.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        let layout = Layout::from_size_align(bytes, align_of::<T>()).map_err(|_| too_large())?;
        let start = self.zeroed(layout)?.cast::<T>();
        // SAFETY: room for `count` items, as in `alloc`; zero is a value of a `Plain` type.
        Ok(unsafe { slice::from_raw_parts_mut(start, count) })
    }

    /// A copy of `items`.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    #[expect(
        clippy::mut_from_ref,
        reason = "each place is given out once, until `clear` borrows all of them"
    )]
    pub fn alloc_copy<T: Copy>(&self, items: &[T]) -> Result<&mut [T], ArenaError> {
        let (bytes, align) = (size_of_val(items), align_of::<T>());
        let start = match self.take(bytes, align) {
            Some(start) => start,
            None => self.take_more(bytes, align)?.0,
        };
        let start = start.cast::<T>();
        // SAFETY: room for as many items, as in `alloc`, and nothing of it can be in `items`.
        unsafe {
            start.copy_from_nonoverlapping(items.as_ptr(), items.len());
            Ok(slice::from_raw_parts_mut(start, items.len()))
        }
    }

    /// Zeroed bytes of a size and an alignment that are known at run time only.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    #[expect(
        clippy::mut_from_ref,
        reason = "each place is given out once, until `clear` borrows all of them"
    )]
    pub fn alloc_bytes(&self, layout: Layout) -> Result<&mut [u8], ArenaError> {
        let start = self.zeroed(layout)?;
        // SAFETY: as in `alloc_slice`, for as many bytes.
        Ok(unsafe { slice::from_raw_parts_mut(start, layout.size()) })
    }

    /// Takes everything back at once, for what comes next: the newest block stays with it, others go to the arena.
    pub fn clear(&mut self) {
        let state = self.state.get_mut();
        let kept = state.taken.pop();
        let gone: Vec<_> = state.taken.drain(..).chain(state.alone.drain(..)).collect();
        if let Some(mut block) = kept {
            self.next.set(block.end());
            block.is_clean = false;
            self.is_clean.set(false);
            state.taken.push(block);
        }
        if !gone.is_empty() {
            self.arena.give_back(gone.iter().map(Block::whole));
        }
    }

    /// Bytes that it has given out, alignment included.
    pub fn used_bytes(&self) -> usize {
        self.held_bytes() - self.room()
    }

    /// Bytes of the arena that it has, given out or not.
    pub fn held_bytes(&self) -> usize {
        let state = self.state.borrow();
        state.taken.iter().chain(&state.alone).map(|block| block.bytes).sum()
    }

    /// Bytes left in the block that is being filled.
    #[inline(always)]
    fn room(&self) -> usize {
        // `next` never passes `start`: a check would cost as much as the rest.
        self.next.get().addr().wrapping_sub(self.start.get().addr())
    }

    /// Room in the block that is being filled, if there is enough.
    #[inline(always)]
    fn take(&self, bytes: usize, align: usize) -> Option<*mut u8> {
        if bytes > self.room() {
            return None;
        }
        let (next, first) = (self.next.get(), self.start.get());
        let back = bytes.wrapping_add(next.addr().wrapping_sub(bytes) & (align - 1));
        // A block begins on a line, so only an alignment above that can lead out of it.
        if align > LINE_BYTES && back > self.room() {
            return None;
        }
        debug_assert!(first.addr() <= next.addr() - back, "the item lies in the block");
        // SAFETY: the item lies in the block, which begins at or before it, as was just compared. Before the first
        // block that is nowhere, and moved by nothing.
        let item = unsafe { next.sub(back) };
        self.next.set(item);
        Some(item)
    }

    fn zeroed(&self, layout: Layout) -> Result<*mut u8, ArenaError> {
        let (bytes, align) = (layout.size(), layout.align());
        let (start, is_clean) = match self.take(bytes, align) {
            Some(start) => (start, self.is_clean.get()),
            None => self.take_more(bytes, align)?,
        };
        if !is_clean {
            // SAFETY: `bytes` of room that nobody else has.
            unsafe { start.write_bytes(0, bytes) };
        }
        Ok(start)
    }

    /// Room in a new block, and whether it is zero.
    #[cold]
    #[inline(never)]
    fn take_more(&self, bytes: usize, align: usize) -> Result<(*mut u8, bool), ArenaError> {
        if bytes == 0 {
            // Nothing needs no memory, but an address that is aligned.
            return Ok((ptr::without_provenance_mut(align), true));
        }
        let too_large = ArenaError::TooLarge { count: bytes, item_bytes: 1 };
        // As in `take`: only an alignment above a line needs room of its own.
        let pad = if align > LINE_BYTES { align } else { 0 };
        let whole = bytes.checked_add(pad).and_then(|it| it.checked_next_multiple_of(LINE_BYTES));
        let Some(needed) = whole.filter(|&it| it <= isize::MAX as usize / 2) else { return Err(too_large) };
        let mut state = self.state.borrow_mut();
        let most = needed.max(state.next_bytes.next_multiple_of(LINE_BYTES));
        let is_alone = needed > most / 4 && self.room() > needed / 4;
        if is_alone {
            let block = self.arena.block((needed, needed))?;
            let (start, is_clean) = (aligned(block.start, align), block.is_clean);
            state.alone.push(block);
            return Ok((start, is_clean));
        }
        let least = needed.max(BLOCK_BYTES_MIN.min(most));
        let block = self.arena.block((least, most))?;
        self.leave_block(&mut state);
        self.start.set(block.start);
        self.next.set(block.end());
        self.is_clean.set(block.is_clean);
        state.next_bytes = self.blocks.after(most);
        let is_clean = block.is_clean;
        state.taken.push(block);
        let start = self.take(bytes, align).expect("a block is as large as what it was taken for");
        Ok((start, is_clean))
    }

    /// Gives back what is left of the block that was being filled: whole lines of it.
    fn leave_block(&self, state: &mut State) {
        let Some(block) = state.taken.last_mut() else { return };
        let left = self.room() / LINE_BYTES * LINE_BYTES;
        if left == 0 {
            return;
        }
        self.arena.give_back([(block.start.addr(), left)]);
        // SAFETY: no more than lies in the block before its items.
        block.start = unsafe { block.start.add(left) };
        block.bytes -= left;
        if block.bytes == 0 {
            state.taken.pop();
        }
    }
}

/// The first address from `start` on that is a multiple of `align`.
fn aligned(start: *mut u8, align: usize) -> *mut u8 {
    start.wrapping_add(start.addr().wrapping_neg() & (align - 1))
}

impl Drop for Bump<'_> {
    fn drop(&mut self) {
        let State { taken, alone, .. } = self.state.get_mut();
        if taken.len() + alone.len() > 0 {
            self.arena.give_back(taken.iter().chain(&*alone).map(Block::whole));
        }
    }
}

impl Debug for Bump<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Bump");
        shown.field("used_bytes", &self.used_bytes()).field("held_bytes", &self.held_bytes()).finish()
    }
}
