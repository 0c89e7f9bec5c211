//! Code of a file as it lies in the page cache, and what the kernel is asked about it.
//!
//! Whether a file can be mapped by entries for huge pages is a property of the page cache, which all processes share.
//! So it is asked by a mapping of our own, at an address with the remainder that a program's would have, and without
//! running anything:
//!
//! ```text
//! reserve the addresses --> map the file there, readable and executable --> mincore(2): which pages are cached?
//!   --> touch one byte of a piece that is cached as a whole: the fault maps what is there, large or small
//! ```
//!
//! A piece that is not cached is not touched: the fault would read it in small pieces, and so would decide for
//! everybody what was only to be looked at.
//!
//! In the same way it is asked whether somebody listens at a file: see [`uprobe_of`].

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{NonNull, null_mut, read_volatile};

use linux_raw_sys::general as raw;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::error::{Error, Result};
use crate::mapping::Advice;
use crate::pagemap::{Filled, Pagemap};
use crate::pages;
use crate::raw::syscall;

/// A part of a file, mapped as a program's code would be. Unmapped on drop.
#[derive(Debug)]
pub struct CodeMapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is the only owner of its range, which belongs to the process and not to a thread.
unsafe impl Send for CodeMapping {}

impl CodeMapping {
    /// Maps `bytes` bytes of a file from `offset` on at a multiple of `align` (a power of two, a base page at least).
    ///
    /// # Errors
    /// What the kernel says; [`Error::Length`] for no bytes, or more than there are addresses.
    pub fn new(file: &File, offset: u64, bytes: usize, align: usize) -> Result<Self> {
        let wrong = Error::Length { bytes };
        let whole = pages::round_up(bytes, pages::base_bytes());
        let Some(whole) = whole.filter(|_| align.is_power_of_two()) else { return Err(wrong) };
        let Some(room) = whole.checked_add(align) else { return Err(wrong) };
        // SAFETY: the kernel chooses the place, and nobody may touch it.
        let room_at = unsafe { mmap_anonymous(null_mut(), room, ProtFlags::empty(), MapFlags::PRIVATE) };
        let room_at = room_at.map_err(|errno| Error::of("mmap", errno))?.cast::<u8>();
        let lead = room_at.addr().next_multiple_of(align) - room_at.addr();
        let map = |access| {
            // SAFETY: `lead` is at most `align`, so that the range lies inside what was reserved a moment ago, which
            // nobody else knows of. What is mapped is read only.
            unsafe {
                let at = room_at.add(lead).cast();
                mmap(at, whole, access, MapFlags::PRIVATE | MapFlags::FIXED, file, offset)
            }
        };
        let mapped = match map(ProtFlags::READ | ProtFlags::EXEC) {
            // A mount without a right to execute: the page cache is the same.
            Err(Errno::PERM | Errno::ACCESS) => map(ProtFlags::READ),
            mapped => mapped,
        };
        // SAFETY: both ends lie inside the reservation, beside the mapping; an empty one is left out.
        unsafe {
            if lead > 0 {
                let _ = munmap(room_at.cast(), lead);
            }
            if align > lead {
                let _ = munmap(room_at.add(lead + whole).cast(), align - lead);
            }
        }
        match mapped {
            Ok(start) => {
                let start = NonNull::new(start.cast()).expect("it is not mapped at null");
                Ok(Self { start, bytes: whole })
            }
            Err(errno) => {
                // SAFETY: the middle of the reservation, which is left alone by a mapping that failed.
                let _ = unsafe { munmap(room_at.add(lead).cast(), whole) };
                Err(Error::of("mmap", errno))
            }
        }
    }

    /// Its addresses.
    pub fn range(&self) -> Range<u64> {
        let start = self.start.addr().get() as u64;
        start..start + self.bytes as u64
    }

    /// Whether each base page is in the page cache.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn cached(&self) -> Result<Vec<bool>> {
        let mut told = vec![0_u8; self.bytes / pages::base_bytes()];
        // SAFETY: mincore writes one byte for each base page of our own mapping to `told`, which holds as many.
        let outcome =
            unsafe { syscall!(raw::__NR_mincore, self.start.as_ptr(), self.bytes, told.as_mut_ptr()) };
        outcome.map_err(|errno| Error::of("mincore", errno))?;
        Ok(told.into_iter().map(|byte| byte & 1 == 1).collect())
    }

    /// Asks for huge pages, or to collapse what is there, in a part of it (bytes from its start).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn advise(&self, part: Range<usize>, advice: Advice) -> Result<()> {
        let whole = part.start < part.end && part.end <= self.bytes;
        if !whole {
            return Err(Error::Range { start: part.start, end: part.end, bytes: self.bytes });
        }
        let start = self.range().start;
        advise_code(start + part.start as u64..start + part.end as u64, advice)
    }

    /// Reads the byte at `at`, so that its page is mapped. False where the file became shorter than that since, for
    /// which the kernel would end us.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn touch(&self, file: &File, at: usize, offset: u64) -> Result<bool> {
        let length = rustix::fs::fstat(file).map_err(|errno| Error::of("fstat", errno))?.st_size;
        let end = offset.saturating_add(at as u64);
        if at >= self.bytes || end >= u64::try_from(length).unwrap_or(0) {
            return Ok(false);
        }
        // SAFETY: inside the mapping, which `self` keeps, and inside the file a moment ago.
        let _ = unsafe { read_volatile(self.start.as_ptr().add(at)) };
        Ok(true)
    }
}

impl Drop for CodeMapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, is owned by `self` alone and ends its life here.
        let outcome = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(outcome.is_ok(), "munmap of an owned range: {outcome:?}");
    }
}

/// Advises about memory of this process that somebody else owns. Only for what changes no content: other advice is
/// [`Error::Length`].
///
/// # Errors
/// What the kernel says.
pub fn advise_code(range: Range<u64>, advice: Advice) -> Result<()> {
    let number = match advice {
        Advice::HugePage => raw::MADV_HUGEPAGE,
        Advice::Collapse => raw::MADV_COLLAPSE,
        Advice::PopulateRead => raw::MADV_POPULATE_READ,
        _ => return Err(Error::Length { bytes: 0 }),
    };
    // SAFETY: none changes a content or a right, whoever uses the memory meanwhile; a range that is not mapped is
    // an error.
    let outcome = unsafe { syscall!(raw::__NR_madvise, range.start, range.end - range.start, number) };
    outcome.map(drop).map_err(|errno| Error::of("madvise", errno))
}

/// Asks the kernel to collapse memory of another process into huge pages (Linux 6.1): process_madvise(2).
///
/// # Errors
/// What the kernel says: [`Error::Forbidden`] without CAP_SYS_NICE and the right to trace it.
pub fn collapse_of(process: &OwnedFd, range: Range<u64>) -> Result<()> {
    let part = [range.start, range.end - range.start];
    // SAFETY: the kernel reads one `iovec`, which is an address and a length of 64 bits, from `part`; the addresses
    // are of the other process, whose content stays.
    let outcome = unsafe {
        let number = raw::MADV_COLLAPSE;
        syscall!(raw::__NR_process_madvise, process.as_raw_fd(), part.as_ptr(), 1, number, 0)
    };
    match outcome {
        Ok(done) if done as u64 == part[1] => Ok(()),
        Ok(_) => Err(Error::of("process_madvise", Errno::AGAIN)),
        Err(errno) => Err(Error::of("process_madvise", errno)),
    }
}

/// Where the first uprobe of a file is armed, as an offset in it; `None` where none is for all processes.
///
/// A uprobe belongs to the inode, and no list of the kernel has those of perf_event_open(2). But it puts the breakpoint
/// into every private mapping that may be executed, as that is made (`uprobe_mmap` and `valid_vma` in
/// kernel/events/uprobes.c): into a copy of the page, so that the page cache keeps what the file says. Hence a mapping
/// of ours that nobody touches has no page at all, or those with a breakpoint, however long the file is. One that is
/// armed for a process alone is not put there.
///
/// # Errors
/// It cannot be mapped, or our own memory not be looked at.
pub fn uprobe_of(file: &File) -> Result<Option<u64>> {
    let length = rustix::fs::fstat(file).map_err(|errno| Error::of("fstat", errno))?.st_size;
    let bytes = usize::try_from(length).unwrap_or(0);
    if bytes == 0 {
        return Ok(None);
    }
    let mapping = CodeMapping::new(file, 0, bytes, pages::base_bytes())?;
    let mut runs = Vec::new();
    Pagemap::open(None)?.runs(mapping.range(), &mut runs)?;
    // By a call and not by the mapping: a file that was cut meanwhile is an error of the call, and would end us.
    let own = File::open("/proc/self/mem").map_err(|error| Error::of_io("open of mem", &error))?;
    let (start, page) = (mapping.range().start, pages::base_bytes());
    let (mut has, mut due) = (vec![0; page], vec![0; page]);
    for run in runs.iter().filter(|run| run.filled != Filled::Zero) {
        for at in run.range.clone().step_by(page) {
            let offset = at - start;
            let part = page.min(bytes - usize::try_from(offset).unwrap_or(bytes));
            own.read_exact_at(&mut has[..part], at).map_err(|error| Error::of_io("read of mem", &error))?;
            file.read_exact_at(&mut due[..part], offset).map_err(|error| Error::of_io("pread", &error))?;
            if let Some(first) = has[..part].iter().zip(&due[..part]).position(|(has, due)| has != due) {
                return Ok(Some(offset + first as u64));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_mapped_where_it_was_asked_for_and_nothing_stays() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 64 << 10]).unwrap();
        let align = 2 << 20;
        let mapping = CodeMapping::new(&file, 4096, 32 << 10, align).unwrap();
        let range = mapping.range();
        assert!(range.start.is_multiple_of(align as u64));
        assert_eq!(range.end - range.start, (32_u64 << 10).next_multiple_of(pages::base_bytes() as u64));
        assert!(mapping.cached().unwrap().iter().all(|cached| *cached), "it was just written");
        assert!(mapping.touch(&file, 0, 4096).unwrap());
        file.set_len(0).unwrap();
        assert!(!mapping.touch(&file, 0, 4096).unwrap(), "a touch would end us");
        assert!(mapping.advise(0..64 << 10, Advice::HugePage).is_err(), "more than it is");
        assert!(advise_code(range, Advice::PopulateWrite).is_err(), "that changes what is there");
        for wrong in [0, usize::MAX] {
            assert!(matches!(CodeMapping::new(&file, 0, wrong, align), Err(Error::Length { .. })));
        }
    }

    #[test]
    fn a_file_without_uprobes_has_none_whatever_its_length() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(uprobe_of(&file).unwrap(), None);
        file.write_all(&vec![7; (64 << 10) + 1]).unwrap();
        assert_eq!(uprobe_of(&file).unwrap(), None);
        // A hole of which no disk has room: nothing of it is read.
        file.set_len(1 << 40).unwrap();
        assert_eq!(uprobe_of(&file).unwrap(), None);
    }

    #[test]
    fn a_collapse_that_is_refused_is_told() {
        let me = rustix::process::getpid();
        let handle = crate::process::pidfd(me).unwrap();
        assert!(collapse_of(&handle, 4096..8192).is_err());
    }
}
