//! Faulting a fresh mapping in, by several threads.
//!
//! One thread zeroes a few gigabytes a second; on a guest whose host has to find the memory first, far less.
//! The threads take strides of whole pages from one counter, so that a slow one holds nobody up. Policies are
//! set before: whoever touches a page, the mapping's policy decides its node.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use planish_sys::{Advice, Errno, Error, Mapping, pages};

/// Least bytes that a thread takes at once: enough to hide the call, small enough to share evenly.
const STRIDE_BYTES_MIN: usize = 16 << 20;

/// Gives every page of `range` of `mapping` its memory; the range is whole pages.
///
/// # Errors
/// The first failure of any thread. A pool that is short on the bound node is EFAULT or ENOMEM here, instead
/// of a SIGBUS at some later touch.
pub(crate) fn prefault(
    mapping: &mut Mapping,
    range: Range<usize>,
    threads: NonZeroUsize,
) -> Result<(), Error> {
    let stride = STRIDE_BYTES_MIN.next_multiple_of(mapping.page_bytes());
    let strides = range.len().div_ceil(stride);
    let work = Work {
        mapping,
        end: range.end,
        stride,
        next: AtomicUsize::new(range.start),
        failed: Mutex::new(None),
    };
    let helpers = threads.get().min(strides) - 1;
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // A thread that cannot be had is no failure: the others take its strides.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || work.run());
        }
        work.run();
    });
    work.failed.into_inner().expect("no thread panics with the lock held").map_or(Ok(()), Err)
}

struct Work<'a> {
    mapping: &'a Mapping,
    end: usize,
    stride: usize,
    next: AtomicUsize,
    failed: Mutex<Option<Error>>,
}

impl Work<'_> {
    fn run(&self) {
        loop {
            // Relaxed: the counter only deals out strides; the scope's join publishes the memory.
            let start = self.next.fetch_add(self.stride, Ordering::Relaxed);
            if start >= self.end {
                return;
            }
            let end = (start + self.stride).min(self.end);
            if let Err(error) = self.populate(start, end) {
                self.next.store(self.end, Ordering::Relaxed);
                self.failed.lock().expect("no thread panics with the lock held").get_or_insert(error);
                return;
            }
        }
    }

    fn populate(&self, start: usize, end: usize) -> Result<(), Error> {
        loop {
            match self.mapping.advise_range(start..end, Advice::PopulateWrite) {
                Err(error) if error.errno() == Some(Errno::INTR) => {}
                // Before Linux 5.14.
                Err(error) if error.errno() == Some(Errno::INVAL) => {
                    self.touch(start, end);
                    return Ok(());
                }
                other => return other,
            }
        }
    }

    /// Writes a zero into each base page of the range.
    fn touch(&self, start: usize, end: usize) {
        for offset in (start..end).step_by(pages::base_bytes()) {
            // SAFETY: `run` keeps `end` within the mapping, which `prefault` borrowed exclusively, so nobody
            // has memory of it yet; strides are disjoint, so no two threads write one byte.
            unsafe { self.mapping.as_ptr().add(offset).write_volatile(0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planish_sys::policy::{PageAt, pages_at};
    use planish_sys::{MapOptions, PageRequest, map_anonymous};

    fn resident(mapping: &Mapping) -> Option<usize> {
        let base = pages::base_bytes();
        let addresses: Vec<usize> =
            (0..mapping.len()).step_by(base).map(|offset| mapping.as_ptr().addr() + offset).collect();
        let at = match pages_at(None, &addresses) {
            Ok(at) => at,
            Err(error) => {
                planish_skip::skip("prefault reads pages back", error);
                return None;
            }
        };
        Some(at.iter().filter(|at| matches!(at, PageAt::Node(_))).count())
    }

    #[test]
    fn every_page_is_there_for_any_number_of_threads() {
        for threads in [1, 3, 64] {
            let bytes = 2 * STRIDE_BYTES_MIN + pages::base_bytes();
            let mut mapping = map_anonymous(bytes, MapOptions::new(PageRequest::Base)).unwrap();
            prefault(&mut mapping, 0..bytes, NonZeroUsize::new(threads).unwrap()).unwrap();
            let Some(resident) = resident(&mapping) else { return };
            assert_eq!(resident, bytes / pages::base_bytes());
        }
    }

    #[test]
    fn touching_does_what_populating_does() {
        let mapping = map_anonymous(8 * pages::base_bytes(), MapOptions::new(PageRequest::Base)).unwrap();
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let work = Work { mapping: &mapping, end: mapping.len(), stride: mapping.len(), next, failed };
        work.touch(0, mapping.len());
        let Some(resident) = resident(&mapping) else { return };
        assert_eq!(resident, 8);
    }
}
