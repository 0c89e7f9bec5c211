//! A window on parts of a shared object: what of them is in memory is mapped in it, and holes stay holes.
//!
//! ```text
//! object   ....##......#.............###......      the parts that are wanted, whatever lies between them
//! window       |------------------------|           one mapping, one registration with userfaultfd
//! mincore      --      -             ---            of those that lie near each other in one call, less what smaps has
//!                                                   in swap (swap.rs)
//! writev       **      *             ***            a byte of each page that is there, of 1024 in one call
//! ```

use std::io::{PipeReader, PipeWriter};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{NonNull, null_mut};

use linux_raw_sys::general as raw;
use linux_raw_sys::ioctl;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::mm::{Advice as MmAdvice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::{NEAR_PAGES, Peek, Present, SharedObject, swap};
use crate::error::{Error, Result};
use crate::pages;
use crate::raw::syscall;

/// Bytes of the object that a window of several parts reaches over at most. Addresses are free, but not without end;
/// and where there is memory in swap, the kernel goes through all that lies between to say what of it is.
const WINDOW_SPAN_BYTES: u64 = 1 << 40;
const WINDOW_SPAN_BYTES_BESIDE_SWAP: u64 = 4 << 30;

/// Pages that one call has mapped at most: UIO_MAXIOV in include/uapi/linux/uio.h.
const PIECES_MAX: usize = 1024;

/// UFFDIO_CONTINUE_MODE_DONTWAKE in include/uapi/linux/userfaultfd.h: nobody waits for these pages.
const CONTINUE_MODE_DONTWAKE: u64 = 1;

/// `extents` in pieces that reach over no multiple of `bytes`.
pub(super) fn cut(extents: Vec<Range<u64>>, bytes: u64) -> Vec<Range<u64>> {
    let mut pieces = Vec::with_capacity(extents.len());
    for extent in extents {
        let mut at = extent.start;
        while at < extent.end {
            let end = (at / bytes + 1).saturating_mul(bytes).min(extent.end);
            pieces.push(at..end);
            at = end;
        }
    }
    pieces
}

/// Pieces that make a window together: they lie in `most` blocks of `unit` bytes, however far apart.
pub(super) fn windows(pieces: &[Range<u64>], unit: u64, most: u64) -> Vec<&[Range<u64>]> {
    let span = if pages::swapped_bytes() > 0 { WINDOW_SPAN_BYTES_BESIDE_SWAP } else { WINDOW_SPAN_BYTES };
    windows_of(pieces, unit, most, span)
}

/// The same, each over at most `span` bytes of the object.
fn windows_of(pieces: &[Range<u64>], unit: u64, most: u64, span: u64) -> Vec<&[Range<u64>]> {
    let (mut windows, mut first, mut count) = (Vec::new(), 0, 0);
    for (index, piece) in pieces.iter().enumerate() {
        let (from, to) = (piece.start / unit, piece.end.div_ceil(unit));
        let shares_a_block = index > first && pieces[index - 1].end.div_ceil(unit) > from;
        let more = to - from - u64::from(shares_a_block);
        let is_far = piece.end - pieces[first].start > span;
        if index > first && (count + more > most || is_far) {
            windows.push(&pieces[first..index]);
            (first, count) = (index, to - from);
        } else {
            count += more;
        }
    }
    if first < pieces.len() {
        windows.push(&pieces[first..]);
    }
    windows
}

/// Where the kernel copies a byte of each page to: a pipe that is emptied when it is full. Of a file it would ask for
/// the limit of file sizes first, and end us where that is 0 (SIGXFSZ).
#[derive(Debug)]
pub(super) struct Sink {
    out: PipeReader,
    into: PipeWriter,
}

impl Sink {
    pub(super) fn new() -> Result<Self> {
        let failed = |error| Error::of_io("pipe2", &error);
        let (out, into) = std::io::pipe().map_err(failed)?;
        for end in [out.as_fd(), into.as_fd()] {
            ioctl_fionbio(end, true).map_err(|errno| Error::of("FIONBIO", errno))?;
        }
        Ok(Self { out, into })
    }

    /// Has the kernel read what `pieces` point to, at most [`PIECES_MAX`] of a byte each; EFAULT where one of them
    /// cannot be read: then those before it were, but a pipe does not tell how many.
    fn take(&self, pieces: &[raw::iovec]) -> std::result::Result<usize, Errno> {
        loop {
            // SAFETY: the kernel reads `pieces` and what they point to, which is a fault and no error of ours where it
            // is not there, and changes neither.
            let taken =
                unsafe { syscall!(raw::__NR_writev, self.into.as_raw_fd(), pieces.as_ptr(), pieces.len()) };
            match taken {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.empty()?,
                taken => return taken,
            }
        }
    }

    fn empty(&self) -> std::result::Result<(), Errno> {
        let mut bytes = [0u8; 4096];
        loop {
            match rustix::io::read(&self.out, &mut bytes) {
                Ok(count) if count == bytes.len() => {}
                Ok(_) | Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// What is there of a window.
pub(super) struct Found<'a> {
    window: &'a Window<'a>,
    pub(super) present: Vec<Present>,
    /// How many pages are broken.
    pub(super) poisoned: u64,
}

impl Found<'_> {
    /// Adds `count` pages from `offset` on.
    fn push(&mut self, offset: u64, count: usize) {
        let page_bytes = self.window.object.page_bytes;
        match self.present.last_mut() {
            Some(run) if run.offset + run.count as u64 * page_bytes == offset => run.count += count,
            _ => self.present.push(Present { offset, address: self.window.address_of(offset).addr(), count }),
        }
    }

    /// How many bytes were mapped; 0 where the first page is broken, which it counts.
    fn mapped(&mut self, outcome: Result<u64>) -> Result<u64> {
        match outcome {
            // UFFDIO_CONTINUE and MADV_POPULATE_READ say so of a page that the kernel has found broken (hwpoison).
            Err(error) if matches!(error.errno(), Some(Errno::IO | Errno::HWPOISON)) => {
                self.poisoned += 1;
                Ok(0)
            }
            outcome => outcome,
        }
    }
}

/// Parts of a shared object with what lies between them, mapped here; unmapped on drop.
pub(super) struct Window<'a> {
    object: &'a SharedObject,
    start: NonNull<u8>,
    range: Range<u64>,
    /// What of it is wanted: in rising order and apart.
    pieces: &'a [Range<u64>],
}

impl<'a> Window<'a> {
    /// `pieces`: one at least.
    pub(super) fn map(object: &'a SharedObject, pieces: &'a [Range<u64>]) -> Result<Self> {
        let range = pieces[0].start..pieces[pieces.len() - 1].end;
        let bytes = usize::try_from(range.end - range.start).expect("a window fits an address space");
        let kind = if object.privately { MapFlags::PRIVATE } else { MapFlags::SHARED };
        let flags = kind | MapFlags::NORESERVE;
        // SAFETY: without MAP_FIXED and with a null hint no memory that anything refers to is replaced.
        let start = unsafe { mmap(null_mut(), bytes, ProtFlags::READ, flags, &object.file, range.start) };
        let start = start.map_err(|errno| Error::of("mmap", errno))?;
        let start: NonNull<u8> =
            NonNull::new(start.cast()).expect("the kernel never maps at null without MAP_FIXED");
        // SAFETY: the whole range was mapped above. MADV_RANDOM changes no contents; where it is refused, pages
        // look used afterwards, which is no error.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, MmAdvice::Random) };
        Ok(Self { object, start, range, pieces })
    }

    /// What of the object it reaches over.
    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// What of it is wanted: in rising order and apart.
    pub(super) fn pieces(&self) -> &[Range<u64>] {
        self.pieces
    }

    /// The whole pages of all of the object.
    pub(super) fn whole_object(&self) -> Range<u64> {
        0..self.object.bytes.next_multiple_of(self.object.page_bytes)
    }

    /// What of the pieces has data, in memory or in swap.
    pub(super) fn data(&self) -> Vec<Range<u64>> {
        self.object.data_in(self.pieces)
    }

    /// Size in bytes of the pages of the object.
    pub(super) fn page_bytes(&self) -> u64 {
        self.object.page_bytes
    }

    /// Where bytes of the object are in our memory.
    pub(super) fn addresses(&self, part: &Range<u64>) -> Range<u64> {
        let [start, end] = [part.start, part.end].map(|offset| self.address_of(offset).addr() as u64);
        start..end
    }

    /// Makes a part (whole pages) a mapping of its own, beside others that are `odd` or are not in turn: by advice that
    /// changes nothing of memory which is unmapped soon.
    ///
    /// # Errors
    /// `ENOMEM`: we have as many mappings as we may.
    pub(super) fn cut_out(&self, part: &Range<u64>, odd: bool) -> Result<()> {
        self.advise(part, if odd { MmAdvice::LinuxDontDump } else { MmAdvice::LinuxDontFork })
    }

    /// Makes all of it one mapping again.
    pub(super) fn mend(&self) -> Result<()> {
        self.advise(&self.range, MmAdvice::LinuxDoFork)?;
        self.advise(&self.range, MmAdvice::LinuxDoDump)
    }

    /// `advice`: one that changes no content.
    fn advise(&self, part: &Range<u64>, advice: MmAdvice) -> Result<()> {
        let (start, bytes) = (self.address_of(part.start), (part.end - part.start) as usize);
        // SAFETY: a part of our own mapping, which nobody writes.
        let outcome = unsafe { madvise(start.cast(), bytes, advice) };
        // What mmap calls ENOMEM madvise calls EAGAIN (mm/madvise.c).
        let errno = |errno| if errno == Errno::AGAIN { Errno::NOMEM } else { errno };
        outcome.map_err(|error| Error::of("madvise of a window", errno(error)))
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.range.end - self.range.start).expect("checked when it was mapped")
    }

    /// Where the byte at `offset` of the object is in our memory.
    fn address_of(&self, offset: u64) -> *mut u8 {
        self.start.as_ptr().wrapping_add((offset - self.range.start) as usize)
    }

    /// What of the pieces is in memory and not in swap. Pages from a pool are never in swap, and mincore does not know
    /// the unmapped ones.
    pub(super) fn in_core(&self) -> Result<Vec<Range<u64>>> {
        match self.object.hugetlb {
            true => Ok(self.pieces.to_vec()),
            false => swap::without_swapped(self, &self.object.searches),
        }
    }

    /// What of the pieces is in memory by mincore(2), be it in the cache of swap; in rising order and apart.
    pub(super) fn in_core_or_cached(&self) -> Result<Vec<Range<u64>>> {
        let base = self.object.page_bytes;
        let (mut told, mut runs) = (Vec::new(), Vec::with_capacity(self.pieces.len()));
        for near in self.pieces.chunk_by(|a, b| b.start - a.end <= NEAR_PAGES * base) {
            let (first, end) = (near[0].start, near[near.len() - 1].end);
            let bytes = (end - first) as usize;
            told.clear();
            told.resize(bytes / pages::base_bytes(), 0u8);
            let start = self.address_of(first);
            // SAFETY: mincore writes one byte for each base page of our own mapping to `told`, which holds as many.
            let outcome = unsafe { syscall!(raw::__NR_mincore, start, bytes, told.as_mut_ptr()) };
            outcome.map_err(|errno| Error::of("mincore", errno))?;
            for piece in near {
                let [from, to] = [piece.start, piece.end].map(|offset| ((offset - first) / base) as usize);
                let mut at = piece.start;
                for same in told[from..to].chunk_by(|a, b| a & 1 == b & 1) {
                    let end = at + same.len() as u64 * base;
                    runs.extend((same[0] & 1 == 1).then_some(at..end));
                    at = end;
                }
            }
        }
        Ok(runs)
    }

    /// Maps the pages of `parts` that are there, and counts those that are broken; a hole stays one.
    pub(super) fn resume(&self, peek: &Peek, parts: &[Range<u64>]) -> Result<Found<'_>> {
        let range = raw::uffdio_range { start: self.start.addr().get() as u64, len: self.bytes() as u64 };
        let hugetlb = self.object.hugetlb;
        let mode = if hugetlb { raw::UFFDIO_REGISTER_MODE_MINOR } else { raw::UFFDIO_REGISTER_MODE_MISSING };
        let mut register = raw::uffdio_register { range, mode: mode.into(), ioctls: 0 };
        let fd = peek.fd.as_raw_fd();
        // SAFETY: the kernel reads and writes one `uffdio_register`; the range is our own fresh mapping, which
        // nobody reads or writes, so that no thread of ours can ever wait for a fault in it.
        let outcome = unsafe { syscall!(raw::__NR_ioctl, fd, ioctl::UFFDIO_REGISTER, &raw mut register) };
        outcome.map_err(|errno| Error::of("UFFDIO_REGISTER", errno))?;
        let mut found = Found { window: self, present: Vec::new(), poisoned: 0 };
        if !hugetlb {
            self.read_all(&peek.sink, parts, &mut found)?;
            return Ok(found);
        }
        for part in parts {
            let mut at = part.start;
            while at < part.end {
                let mapped = found.mapped(self.resume_some(fd, at..part.end))?;
                if mapped > 0 {
                    found.push(at, (mapped / self.object.page_bytes) as usize);
                }
                // Where nothing was mapped, on to the page after it.
                at += mapped.max(self.object.page_bytes);
            }
        }
        Ok(found)
    }

    /// Has the pages of `parts` mapped, of however many of them in a call.
    fn read_all(&self, sink: &Sink, parts: &[Range<u64>], found: &mut Found<'_>) -> Result<()> {
        let page_bytes = self.object.page_bytes;
        let step = usize::try_from(page_bytes).expect("a page fits an address space");
        let mut pages = parts.iter().flat_map(|part| part.clone().step_by(step));
        let (mut wanted, mut most): (Vec<u64>, usize) = (Vec::with_capacity(PIECES_MAX), PIECES_MAX);
        loop {
            wanted.extend(pages.by_ref().take(most.saturating_sub(wanted.len())));
            if wanted.is_empty() {
                return Ok(());
            }
            let mapped = found.mapped(self.read_some(sink, &wanted, &mut most))? / page_bytes;
            let mapped = mapped as usize;
            wanted[..mapped].iter().for_each(|offset| found.push(*offset, 1));
            // Where nothing was mapped, on to the page after it.
            wanted.drain(..mapped.max(1));
        }
    }

    /// Has the first of `wanted` pages mapped, `most` of them at most, and as many as that is made next time; the bytes
    /// that it mapped. An error is of the first page.
    ///
    /// The kernel copies a byte of each: a fault of its own, which ends with an error where one of ours would end us,
    /// and which does not mark pages as used, as those of MADV_POPULATE_READ do (FOLL_TOUCH in mm/gup.c).
    fn read_some(&self, sink: &Sink, wanted: &[u64], most: &mut usize) -> Result<u64> {
        let page = self.object.page_bytes;
        let of_page = |offset: &u64| raw::iovec { iov_base: self.address_of(*offset).cast(), iov_len: 1 };
        let mut count = wanted.len().min(*most);
        let pieces: Vec<raw::iovec> = wanted[..count].iter().map(of_page).collect();
        loop {
            match sink.take(&pieces[..count]) {
                Ok(taken) => {
                    *most = (count * 2).clamp(*most, PIECES_MAX);
                    return Ok(taken as u64 * page);
                }
                // One of them has gone meanwhile, or is broken: those before it are found by halves.
                Err(Errno::FAULT) if count > 1 => (count, *most) = (count / 2, count / 2),
                Err(Errno::FAULT) => break,
                Err(errno) => return Err(Error::of("writev of shared memory", errno)),
            }
        }
        let start = self.address_of(wanted[0]);
        // SAFETY: a page of the object is mapped into our own window, and none is changed.
        match unsafe { madvise(start.cast(), page as usize, MmAdvice::LinuxPopulateRead) } {
            // It has come since.
            Ok(()) => Ok(page),
            Err(Errno::FAULT) => Ok(0),
            Err(errno) => Err(Error::of("MADV_POPULATE_READ", errno)),
        }
    }

    /// Maps pages from the start of `part` to the first hole; the bytes that it mapped.
    fn resume_some(&self, fd: i32, part: Range<u64>) -> Result<u64> {
        let start = self.start.addr().get() as u64 + (part.start - self.range.start);
        let mut order = raw::uffdio_continue {
            range: raw::uffdio_range { start, len: part.end - part.start },
            mode: CONTINUE_MODE_DONTWAKE,
            mapped: 0,
        };
        loop {
            // SAFETY: the kernel reads and writes one `uffdio_continue`, which outlives the call; it maps pages of
            // the object into our own window and changes none.
            let outcome = unsafe { syscall!(raw::__NR_ioctl, fd, ioctl::UFFDIO_CONTINUE, &raw mut order) };
            match outcome {
                Ok(_) => return Ok(part.end - part.start),
                // Stopped on the way: `mapped` says how far it came.
                Err(Errno::AGAIN) if order.mapped > 0 => return Ok(order.mapped.unsigned_abs()),
                // The address space was being changed; nothing was done.
                Err(Errno::AGAIN) => order.mapped = 0,
                Err(Errno::FAULT | Errno::NOENT) => return Ok(0),
                // Mapped by fault-around or by an earlier try.
                Err(Errno::EXIST) => return Ok(self.object.page_bytes),
                Err(errno) => return Err(Error::of("UFFDIO_CONTINUE", errno)),
            }
        }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `Window::map`, is owned by `self` alone and ends its life here; its ends
        // lie on pages of the object.
        let outcome = unsafe { munmap(self.start.as_ptr().cast(), self.bytes()) };
        debug_assert!(outcome.is_ok(), "munmap of an owned window: {outcome:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_as_many_parts_as_its_page_tables_reach() {
        let ends = |pieces: &[Range<u64>], unit, most| -> Vec<(u64, u64)> {
            let windows = windows_of(pieces, unit, most, WINDOW_SPAN_BYTES).into_iter();
            windows.map(|window| (window[0].start, window[window.len() - 1].end)).collect()
        };
        assert_eq!(ends(&[], 8, 2), []);
        assert_eq!(ends(&[0..1, 2..3, 6..8, 8..9], 8, 1), [(0, 8), (8, 9)]);
        assert_eq!(ends(&[0..1, 6..9, 10..11, 800..801], 8, 2), [(0, 11), (800, 801)]);
        assert_eq!(ends(&[0..1, 800..801, 808..816, 820..821], 8, 2), [(0, 801), (808, 821)]);
        let far = WINDOW_SPAN_BYTES;
        assert_eq!(ends(&[0..1, 8..9, far..far + 1], 8, 100), [(0, 9), (far, far + 1)]);
    }

    #[test]
    fn what_is_longer_than_a_window_is_cut() {
        assert_eq!(cut(vec![3..20, 32..40], 8), [3..8, 8..16, 16..20, 32..40]);
        let last = u64::MAX - 1..u64::MAX;
        assert_eq!(cut(vec![8..9, last.clone()], 8), [8..9, last]);
    }
}
