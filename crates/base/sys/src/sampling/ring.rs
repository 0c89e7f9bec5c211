//! The ring that the kernel writes records into and we read them from.
//!
//! ```text
//!   one page of control          data, a power of two of bytes
//!   | data_head data_tail ..  |  ......[tail ======== head)........  |     a record may wrap at the end
//! ```
//!
//! Both positions only grow; the place is the position modulo the length. The kernel writes up to `tail + length`
//! and then drops, telling so in a LOST record. Memory order, as include/uapi/linux/perf_event.h asks for it: the
//! head is read with acquire before the data, the tail is written with release after the data was copied.

use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::pages;

/// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A mapped ring; unmapped on drop.
#[derive(Debug)]
pub(super) struct Ring {
    control: NonNull<u8>,
    /// Length of the control page, after which the data begins.
    control_bytes: usize,
    /// Length of the data: a power of two.
    data_bytes: usize,
    /// Whether it is ours to unmap; not in tests on pages of their own.
    is_mapped: bool,
}

// SAFETY: a `Ring` is the only reader of its pages and has no tie to the thread that mapped them.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event with `data_bytes` of data: a power of two and whole pages.
    pub fn map(event: impl AsFd, data_bytes: usize) -> Result<Self, Errno> {
        let control_bytes = pages::base_bytes();
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: without MAP_FIXED and with a null hint the kernel chooses a free range, so nothing that anything
        // else refers to is replaced.
        let start = unsafe { mmap(null_mut(), control_bytes + data_bytes, access, flags, event, 0)? };
        let control = NonNull::new(start.cast()).expect("the kernel maps nothing at null without MAP_FIXED");
        Ok(Self { control, control_bytes, data_bytes, is_mapped: true })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` lives and is longer than both offsets; they are
        // multiples of 8 in a page-aligned range; the kernel and we touch these words by whole-word accesses only.
        unsafe { AtomicU64::from_ptr(self.control.as_ptr().add(offset).cast()) }
    }

    /// Moves all records that are complete to the end of `out`, and gives their room back to the kernel.
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        // Only we write the tail.
        let tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let waiting = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX).min(self.data_bytes);
        let start = (tail as usize) & (self.data_bytes - 1);
        let before_end = waiting.min(self.data_bytes - start);
        // SAFETY: start < data_bytes and start + before_end <= data_bytes, inside the mapped data. The kernel writes
        // nothing between tail and head until the tail is moved, which happens below.
        let data = |at: usize, length: usize| unsafe {
            let data = self.control.as_ptr().add(self.control_bytes);
            std::slice::from_raw_parts(data.add(at).cast_const(), length)
        };
        out.extend_from_slice(data(start, before_end));
        out.extend_from_slice(data(0, waiting - before_end));
        self.position(DATA_TAIL).store(head, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: the range was mapped by `map`, is owned by `self` alone and ends its life here.
            let outcome =
                unsafe { munmap(self.control.as_ptr().cast(), self.control_bytes + self.data_bytes) };
            debug_assert!(outcome.is_ok(), "munmap of an owned range: {outcome:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{MapOptions, Mapping, PageRequest, map_anonymous};
    use proptest::prelude::*;

    /// Pages that look like those of an event, and a writer that does what the kernel does.
    struct Fake {
        pages: Mapping,
        ring: Ring,
    }

    impl Fake {
        fn new(data_pages: usize, position: u64) -> Self {
            let page = pages::base_bytes();
            let pages = map_anonymous((1 + data_pages) * page, MapOptions::new(PageRequest::Base)).unwrap();
            let control = NonNull::new(pages.as_ptr()).unwrap();
            let ring = Ring { control, control_bytes: page, data_bytes: data_pages * page, is_mapped: false };
            ring.position(DATA_HEAD).store(position, Ordering::Relaxed);
            ring.position(DATA_TAIL).store(position, Ordering::Relaxed);
            Self { pages, ring }
        }

        /// Writes as the kernel does; false where there is no room.
        fn write(&self, bytes: &[u8]) -> bool {
            let tail = self.ring.position(DATA_TAIL).load(Ordering::Acquire);
            let head = self.ring.position(DATA_HEAD).load(Ordering::Relaxed);
            if head - tail + bytes.len() as u64 > self.ring.data_bytes as u64 {
                return false;
            }
            for (at, byte) in (head..).zip(bytes) {
                let place = (at as usize) & (self.ring.data_bytes - 1);
                // SAFETY: inside the data of the mapping, which this test owns.
                unsafe { self.pages.as_ptr().add(self.ring.control_bytes + place).write(*byte) };
            }
            self.ring.position(DATA_HEAD).store(head + bytes.len() as u64, Ordering::Release);
            true
        }
    }

    #[test]
    fn a_record_that_wraps_comes_out_whole() {
        let bytes = pages::base_bytes() as u64;
        let mut fake = Fake::new(1, bytes - 3);
        assert!(fake.write(b"abcdefgh"));
        let mut out = b"before ".to_vec();
        fake.ring.drain(&mut out);
        assert_eq!(out, b"before abcdefgh");
        fake.ring.drain(&mut out);
        assert_eq!(out.len(), 15, "nothing comes twice");
    }

    #[test]
    fn a_full_ring_is_read_and_written_again() {
        let bytes = pages::base_bytes();
        let mut fake = Fake::new(1, 5);
        let full: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
        assert!(fake.write(&full) && !fake.write(b"x"), "no room is no room");
        let mut out = Vec::new();
        fake.ring.drain(&mut out);
        assert_eq!(out, full);
        assert!(fake.write(&full));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_in_order(lengths in prop::collection::vec((1_usize..3000, any::<bool>()), 1..60)) {
            let mut fake = Fake::new(2, u64::from(u32::MAX) - 1000);
            let (mut written, mut read) = (Vec::new(), Vec::new());
            for (length, drains) in lengths {
                let record: Vec<u8> = (0..length).map(|index| (index + written.len()) as u8).collect();
                if fake.write(&record) {
                    written.extend_from_slice(&record);
                }
                if drains {
                    fake.ring.drain(&mut read);
                    prop_assert_eq!(&read, &written);
                }
            }
            fake.ring.drain(&mut read);
            prop_assert_eq!(read, written);
        }
    }
}
