//! The heap of a static program: dlmalloc, over memory that is taken in pieces which have their pages.
//!
//! The allocator of musl gives pages back to the kernel and asks for them again hundreds of times within one command: a
//! third of the CPU time of a plan. dlmalloc keeps them. And as the first touch of a page is a trap, each piece is
//! populated by the call that maps it: of 570 traps of a plan 280 are left, those of code and stack.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};

use crate::pages;

/// The heap grows by this much at a time: a command that does little takes one such piece, and a plan four to eleven.
const PIECE_BYTES: usize = 256 << 10;

/// The global allocator of a program that is linked with musl. A child that is forked while another thread takes memory
/// must take none before it is another program.
pub struct Heap(Mutex<Dlmalloc<Pieces>>);

impl Heap {
    /// An empty one, which takes its first piece when it is first asked for memory.
    #[must_use]
    pub const fn new() -> Self {
        let mut heap = Dlmalloc::new_with_allocator(Pieces);
        assert!(heap.set_granularity(PIECE_BYTES), "a power of two");
        Self(Mutex::new(heap))
    }

    fn locked(&self) -> MutexGuard<'_, Dlmalloc<Pieces>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: what dlmalloc gives is as large and as aligned as it was asked for and nobody else's until it is given back,
// as long as no two calls are in it at once: each is made under the lock.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and alignment of a layout may be asked for.
        unsafe { self.locked().malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.locked().calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller promises that this heap gave the memory, by this layout.
        unsafe { self.locked().free(memory, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.locked().realloc(memory, layout.size(), layout.align(), size) }
    }
}

/// Where dlmalloc has its memory from.
struct Pieces;

// SAFETY: each region is a private mapping of its own, which is unmapped only by `free` and `free_part`.
unsafe impl Allocator for Pieces {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        // What one allocation alone needs may be large, and never be used to its end.
        let populated = if size <= PIECE_BYTES { MapFlags::POPULATE } else { MapFlags::empty() };
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place of a new mapping.
        match unsafe { mmap_anonymous(null_mut(), size, rights, MapFlags::PRIVATE | populated) } {
            Ok(place) => (place.cast(), size, 0),
            Err(_) => (null_mut(), 0, 0),
        }
    }

    fn remap(&self, place: *mut u8, old_size: usize, new_size: usize, can_move: bool) -> *mut u8 {
        let flags = if can_move { MremapFlags::MAYMOVE } else { MremapFlags::empty() };
        // SAFETY: dlmalloc names what it had from `alloc`, and uses the new place from here on.
        unsafe { mremap(place.cast(), old_size, new_size, flags) }.map_or(null_mut(), <*mut _>::cast)
    }

    fn free_part(&self, place: *mut u8, old_size: usize, new_size: usize) -> bool {
        // SAFETY: dlmalloc names what it had from `alloc`, and does not use its end any more.
        unsafe { munmap(place.wrapping_add(new_size).cast(), old_size - new_size) }.is_ok()
    }

    fn free(&self, place: *mut u8, size: usize) -> bool {
        // SAFETY: as above, of all of it.
        unsafe { munmap(place.cast(), size) }.is_ok()
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        pages::base_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::slice;

    use proptest::prelude::*;

    use super::*;
    use crate::file;

    /// Pages that this thread touched first.
    fn fault_count() -> u64 {
        let stat = file::read_text(Path::new("/proc/thread-self/stat")).expect("a thread has it");
        let behind_name = stat.rsplit_once(") ").expect("a name in brackets").1;
        behind_name.split(' ').nth(7).expect("minflt").parse().expect("a number")
    }

    #[test]
    fn what_is_taken_has_its_pages() {
        let heap = Heap::new();
        let layout = Layout::from_size_align(4000, 8).expect("a layout");
        // SAFETY: the layout is not empty; the first piece is mapped here.
        let first = unsafe { heap.alloc(layout) };
        assert!(!first.is_null());
        // Its own faults come once.
        fault_count();
        let before = fault_count();
        let all: Vec<*mut u8> = (0..40)
            .map(|_| {
                // SAFETY: as above; what is written is within what was given.
                unsafe {
                    let memory = heap.alloc(layout);
                    memory.write_bytes(7, layout.size());
                    memory
                }
            })
            .collect();
        let faults = fault_count() - before;
        assert!(faults < 10, "{faults} faults of 40 pages");
        for memory in all.into_iter().chain([first]) {
            // SAFETY: given by this heap, by this layout.
            unsafe { heap.dealloc(memory, layout) };
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_there_until_it_is_given_back(
            sizes in prop::collection::vec((1_usize..600_000, 0_u32..13, 1_usize..600_000), 1..12)
        ) {
            let heap = Heap::new();
            let mut all = Vec::new();
            let layout = |size, align| Layout::from_size_align(size, align).expect("a layout");
            for ((size, align, new_size), mark) in sizes.into_iter().zip(1_u8..) {
                let old = layout(size, 1 << align);
                // SAFETY: neither size is zero; what is written and read is within both.
                unsafe {
                    let memory = heap.alloc_zeroed(old);
                    prop_assert!(!memory.is_null() && memory.addr().is_multiple_of(old.align()));
                    prop_assert!(slice::from_raw_parts(memory, size) == vec![0; size]);
                    memory.write_bytes(mark, size);
                    let memory = heap.realloc(memory, old, new_size);
                    prop_assert!(!memory.is_null() && memory.addr().is_multiple_of(old.align()));
                    all.push((memory, layout(new_size, old.align()), vec![mark; size.min(new_size)]));
                }
            }
            for (memory, layout, written) in all {
                // SAFETY: given by this heap, by this layout, and that much of it was written.
                unsafe {
                    prop_assert!(slice::from_raw_parts(memory, written.len()) == written);
                    heap.dealloc(memory, layout);
                }
            }
        }
    }
}
