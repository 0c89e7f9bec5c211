//! Looking at shared memory without touching it.
//!
//! Page tables show the pages that *one process* has mapped; of a segment that others have filled, most is missing.
//! Mapping the segment ourselves and touching it would allocate its holes. So:
//!
//! ```text
//! /proc/PID/map_files/A-B --O_PATH--> a regular file on tmpfs or hugetlbfs? --open for reading--> map it here,
//! private, without reserving --> register with userfaultfd, which makes our fault in a hole an error --> have the
//! pages that are there mapped --> move_pages(2) and pagemap on our own mapping tell node and frame
//! ```
//!
//! - Nothing is allocated in the object. On tmpfs the kernel reads what mincore(2) says is there; were it a hole by
//!   then, the fault would be a missing one of userfaultfd, and as such ends with EFAULT (`shmem_get_folio_gfp` in
//!   mm/shmem.c, UFFD_FEATURE_SIGBUS). What is allocated and was never written (posix_fallocate) is absent to mincore,
//!   and not written here either. On hugetlbfs UFFDIO_CONTINUE looks up the page cache
//!   (`hugetlb_mfill_atomic_pte` in mm/hugetlb.c), and MAP_NORESERVE keeps the pool's reservations.
//! - Nothing looks written: a read fault maps a page clean. UFFDIO_CONTINUE maps it dirty, which unmapping hands on to
//!   the page (`mfill_atomic_install_pte` in mm/userfaultfd.c); pages of a pool are dirty from the first
//!   (`hugetlb_add_to_page_cache`).
//! - What is in swap stays there: shared memory is asked by mincore(2) first.
//! - Pages do not look used afterwards: the mapping is advised as read at random, for which unmapping leaves the
//!   accessed bits out (`vma_has_recency` in include/linux/mm_inline.h).
//!
//! - Nobody is held up or told that something was written: the file is opened for reading only, and of a private
//!   mapping userfaultfd asks no more (VM_MAYWRITE, which a shared one has only of a file opened for writing). A
//!   shared one made sealing a memfd fail with EBUSY and running a program fail with ETXTBSY while it stood, and
//!   ended with IN_CLOSE_WRITE for those who watch the folder. Private mappings of hugetlbfs are used from Linux 6.1
//!   on: kernels of before took pages of the file for anonymous ones, and keep the shared mapping.
//! - A lease for writing would be broken by any open, which ends a holder without a handler: who looks asks
//!   /proc/locks right before. A lease that comes between the two is broken, and we do not wait for it (O_NONBLOCK).
//!
//! Devices are never opened: a mapping of a GPU may have a side effect on open.

use std::fs::File;
use std::io::{PipeReader, PipeWriter};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use linux_raw_sys::general as raw;
use linux_raw_sys::ioctl;
use rustix::fs::{
    Access, AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, SealFlags, accessat, fcntl_get_seals, fstat,
    fstatfs, memfd_create, openat,
};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::mm::{Advice as MmAdvice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::pages;
use crate::raw::syscall;

/// Bytes that are mapped at a time: page tables of ours for 1 GiB of base pages are 2 MiB.
const WINDOW_BYTES: u64 = 1 << 30;
/// Pages from a pool that are mapped at a time at most.
const WINDOW_PAGES: u64 = 4096;

/// Bytes that are taken for data where there is some: mincore(2) knows the holes in them, and tells those of 512 pages
/// in the time of a few calls. A file whose every other page is a hole has as many extents as pages.
const STRIDE: u64 = 2 << 20;

/// Pages that one call has mapped at most: UIO_MAXIOV in include/uapi/linux/uio.h.
const PIECES_MAX: u64 = 1024;

/// UFFDIO_CONTINUE_MODE_DONTWAKE in include/uapi/linux/userfaultfd.h: nobody waits for these pages.
const CONTINUE_MODE_DONTWAKE: u64 = 1;

const TMPFS_MAGIC: u64 = 0x0102_1994;
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// What kind of file system a mapped file is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Memory: tmpfs, shared anonymous, memfd, System V.
    Tmpfs,
    /// A pool of huge pages.
    Hugetlbfs {
        /// Size in bytes of one of its pages.
        page_bytes: u64,
    },
    /// Any other, or no regular file.
    Other,
}

/// The file system of what the process `pid` has mapped at exactly `range`.
///
/// # Errors
/// [`Error::Forbidden`] without CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; `ENOENT` when it is not mapped so (any
/// more).
pub fn file_system_of(pid: Pid, range: &Range<u64>) -> Result<FileSystem> {
    Ok(Place::of(pid, range)?.file_system)
}

/// The devices of the mounts that the kernel keeps for itself: of shared anonymous memory, memfds and System V segments
/// of base pages, and of those of huge pages of each size. No mountinfo lists them.
#[must_use]
pub fn kernel_mounts() -> Vec<(u32, u32)> {
    // The logarithm of a size stands in the flags, from bit 26 on (include/uapi/linux/memfd.h).
    let huge = |bytes: usize| MemfdFlags::HUGETLB | MemfdFlags::from_bits_retain(bytes.ilog2() << 26);
    let device = |flags: MemfdFlags| {
        let file = memfd_create("planish-look", flags | MemfdFlags::CLOEXEC).ok()?;
        let device = fstat(&file).ok()?.st_dev;
        Some((rustix::fs::major(device), rustix::fs::minor(device)))
    };
    let all = std::iter::once(MemfdFlags::empty()).chain(pages::hugetlb_bytes().into_iter().map(huge));
    all.filter_map(device).collect()
}

/// A mapped file, found without opening it: O_PATH calls no driver. But the file system is asked of it, and one over a
/// network or of a program may never answer: to be tried on memory alone.
struct Place {
    fd: OwnedFd,
    stat: rustix::fs::Stat,
    file_system: FileSystem,
}

impl Place {
    fn of(pid: Pid, range: &Range<u64>) -> Result<Self> {
        let (pid, Range { start, end }) = (pid.as_raw_pid(), range);
        let path = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
        let failed = |errno| Error::of("open of map_files", errno);
        let fd = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        let system = fstatfs(&fd).map_err(failed)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let file_system = match system.f_type as u64 {
            TMPFS_MAGIC if is_file => FileSystem::Tmpfs,
            HUGETLBFS_MAGIC if is_file => FileSystem::Hugetlbfs { page_bytes: system.f_bsize as u64 },
            _ => FileSystem::Other,
        };
        Ok(Self { fd, stat, file_system })
    }
}

/// Opens the file behind `fd`, which is one by O_PATH: without a wait for whoever holds a lease on it, and without
/// a new time of access where that is ours to ask (its owner, CAP_FOWNER). Who may neither ask that nor write the file
/// is refused: mincore(2) tells him that all of it is in memory (`can_do_mincore` in mm/mincore.c), and what is in swap
/// would be read from there.
fn open_again(fd: &OwnedFd, access: OFlags) -> Result<OwnedFd> {
    let again = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = match openat(CWD, &again, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => accessat(CWD, &again, Access::WRITE_OK, AtFlags::EACCESS)
            .and_then(|()| openat(CWD, &again, flags, Mode::empty())),
        outcome => outcome,
    };
    opened.map_err(|errno| Error::of("open of map_files", errno))
}

fn allocated_bytes(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0) * 512
}

/// Whether UFFDIO_CONTINUE leaves a page of hugetlbfs in a private mapping what it is: until Linux 6.0 it was counted
/// as anonymous (`hugetlb_mcopy_atomic_pte` in mm/hugetlb.c), which spoils the page cache.
fn private_pages_of_a_pool_are_sound() -> bool {
    let kernel = rustix::system::uname();
    let mut numbers = kernel.release().to_str().unwrap_or_default().split(['.', '-']).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 1))
}

/// Whether [`SharedObject::of_mapping`] opens what is mapped for writing, too: of a pool, by kernels before 6.1. Such
/// an open breaks every lease, of readers as well.
#[must_use]
pub fn opens_for_writing(pid: Pid, range: &Range<u64>) -> bool {
    let is_of_pool = || matches!(file_system_of(pid, range), Ok(FileSystem::Hugetlbfs { .. }));
    !private_pages_of_a_pool_are_sound() && is_of_pool()
}

/// A piece of shared memory: a file on tmpfs or hugetlbfs, with or without a name.
#[derive(Debug)]
pub struct SharedObject {
    file: File,
    page_bytes: u64,
    hugetlb: bool,
    /// Whether our windows on it are private mappings.
    privately: bool,
    /// Bytes that the kernel has given it, swapped ones included.
    pub allocated_bytes: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl SharedObject {
    /// Opens what the process `pid` has mapped, shared, at exactly `range`; `None` when it is neither on tmpfs nor
    /// on hugetlbfs, or is no regular file.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; `ENOENT` when it is not mapped so (any
    /// more).
    pub fn of_mapping(pid: Pid, range: &Range<u64>) -> Result<Option<Self>> {
        let Place { fd, stat, file_system } = Place::of(pid, range)?;
        let (hugetlb, page_bytes) = match file_system {
            FileSystem::Tmpfs => (false, pages::base_bytes() as u64),
            FileSystem::Hugetlbfs { page_bytes } => (true, page_bytes),
            FileSystem::Other => return Ok(None),
        };
        let privately = !hugetlb || private_pages_of_a_pool_are_sound();
        let file = open_again(&fd, OFlags::RDONLY)?;
        // Kernels whose pools need a shared window: it must be one that may be written, and then stands in the way of
        // a seal that can still come.
        let file = match privately {
            true => file,
            false if fcntl_get_seals(&file).is_ok_and(|seals| !seals.contains(SealFlags::SEAL)) => {
                let call = "UFFDIO_CONTINUE in a private mapping of huge pages (Linux 6.1)";
                return Err(Error::Missing { call, source: Errno::OPNOTSUPP });
            }
            false => open_again(&fd, OFlags::RDWR)?,
        };
        Ok(Some(Self {
            file: file.into(),
            page_bytes,
            hugetlb,
            privately,
            allocated_bytes: allocated_bytes(&stat),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
        }))
    }

    /// Size in bytes of its pages: of the pool that it is from, or a base page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Whether it is of a pool of huge pages.
    pub fn is_hugetlb(&self) -> bool {
        self.hugetlb
    }

    /// Bytes that the kernel has given it by now; of a file that cannot be asked, what it had.
    pub fn allocated_bytes_now(&self) -> u64 {
        fstat(&self.file).map_or(self.allocated_bytes, |stat| allocated_bytes(&stat))
    }

    /// The parts of `range` (bytes of the object) that may have memory: where the file has data, small holes in it
    /// among it, or all of it on hugetlbfs, which reports the whole file as data.
    fn extents(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let end = range.end.min(self.bytes.next_multiple_of(self.page_bytes));
        let range = range.start..end;
        if range.is_empty() || self.allocated_bytes == 0 {
            return Vec::new();
        }
        if self.hugetlb {
            return vec![range];
        }
        let (mut extents, mut at): (Vec<Range<u64>>, u64) = (Vec::new(), range.start);
        while at < range.end {
            // An error other than ENXIO (no more data) leaves the rest to be looked at whole.
            let data = match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
                Ok(data) if data < range.end => data / self.page_bytes * self.page_bytes,
                Ok(_) | Err(Errno::NXIO) => break,
                Err(_) => {
                    extents.push(at..range.end);
                    break;
                }
            };
            at = (data / STRIDE + 1).saturating_mul(STRIDE).min(range.end);
            match extents.last_mut() {
                Some(Range { end, .. }) if data - *end < STRIDE / 8 => *end = at,
                _ => extents.push(data..at),
            }
        }
        extents
    }
}

impl SharedObject {
    /// Bytes of `range` that have data, in memory or in swap: two calls for each extent, however small.
    pub fn data_bytes(&self, range: &Range<u64>) -> u64 {
        let (mut bytes, mut at) = (0, range.start);
        while at < range.end {
            let data = match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
                Ok(data) if data < range.end => data,
                _ => break,
            };
            let hole = rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Hole(data));
            at = hole.unwrap_or(range.end).clamp(data + 1, range.end);
            bytes += at.next_multiple_of(self.page_bytes) - data / self.page_bytes * self.page_bytes;
        }
        bytes
    }
}

/// Pages of a shared object that lie side by side, in it and in our window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Where in the object, in bytes.
    pub offset: u64,
    /// Where in our own mapping, to be asked about while the window is open.
    pub address: usize,
    /// How many pages.
    pub count: usize,
}

/// What a look at an object found besides pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Bytes on pages that are there.
    pub present_bytes: u64,
    /// Bytes that have memory, but in swap.
    pub swapped_bytes: u64,
    /// Bytes on pages whose memory is broken, which the kernel maps for nobody any more.
    pub poisoned_bytes: u64,
}

/// Where the kernel copies a byte of each page to: a pipe that is emptied when it is full. Of a file it would ask for
/// the limit of file sizes first, and end us where that is 0 (SIGXFSZ).
#[derive(Debug)]
struct Sink {
    out: PipeReader,
    into: PipeWriter,
}

impl Sink {
    fn new() -> Result<Self> {
        let failed = |error| Error::of("pipe2", Errno::from_io_error(&error).unwrap_or(Errno::IO));
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

/// A userfaultfd whose faults are errors.
#[derive(Debug)]
pub struct Peek {
    fd: OwnedFd,
    sink: Sink,
}

impl Peek {
    /// Makes one. Needs no right of its own, for faults in user mode only (Linux 5.11).
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no minor faults for shared memory (Linux 5.14; hugetlb 5.13).
    pub fn new() -> Result<Self> {
        let flags = OFlags::CLOEXEC.bits() | OFlags::NONBLOCK.bits() | raw::UFFD_USER_MODE_ONLY;
        // SAFETY: userfaultfd takes flags only and returns a new file descriptor, which nobody else owns.
        let fd = unsafe { syscall!(raw::__NR_userfaultfd, flags) };
        let fd = fd.map_err(|errno| Error::of("userfaultfd", errno))?;
        let fd = i32::try_from(fd).expect("descriptors are ints");
        // SAFETY: as above.
        let fd = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd) };
        let minor = raw::UFFD_FEATURE_MINOR_HUGETLBFS | raw::UFFD_FEATURE_MINOR_SHMEM;
        let features = minor | raw::UFFD_FEATURE_MISSING_SHMEM | raw::UFFD_FEATURE_SIGBUS;
        let mut api = raw::uffdio_api { api: raw::UFFD_API.into(), features: features.into(), ioctls: 0 };
        // SAFETY: the kernel reads and writes one `uffdio_api`, which outlives the call.
        let outcome = unsafe { syscall!(raw::__NR_ioctl, fd.as_raw_fd(), ioctl::UFFDIO_API, &raw mut api) };
        outcome.map_err(|errno| match errno {
            Errno::INVAL => Error::Missing { call: "userfaultfd for minor faults", source: errno },
            errno => Error::of("UFFDIO_API", errno),
        })?;
        Ok(Self { fd, sink: Sink::new()? })
    }

    /// Shows the pages of `range` (bytes of the object, whole pages) that are there, window by window.
    pub fn look(
        &self,
        object: &SharedObject,
        range: Range<u64>,
        mut show: impl FnMut(&[Present]) -> Result<()>,
    ) -> Result<Looked> {
        let (mut looked, mut in_core_bytes) = (Looked::default(), 0);
        let window_bytes = if object.hugetlb { object.page_bytes * WINDOW_PAGES } else { WINDOW_BYTES };
        for extent in object.extents(&range) {
            for start in
                (extent.start..extent.end).step_by(usize::try_from(window_bytes).unwrap_or(usize::MAX))
            {
                let end = extent.end.min(start + window_bytes);
                let window = Window::map(object, start..end)?;
                let in_core = window.in_core()?;
                in_core_bytes += in_core.iter().map(|run| run.end - run.start).sum::<u64>();
                let (present, poisoned) = window.resume(self, &in_core)?;
                looked.poisoned_bytes += poisoned * object.page_bytes;
                let pages: usize = present.iter().map(|run| run.count).sum();
                looked.present_bytes += pages as u64 * object.page_bytes;
                show(&present)?;
                // All that the kernel has given a pool's file has been seen: the rest is holes.
                if object.hugetlb && looked.present_bytes >= object.allocated_bytes {
                    return Ok(looked);
                }
            }
        }
        // The lesser of before and after: what came or went meanwhile is no difference.
        let given = object.allocated_bytes.min(object.allocated_bytes_now());
        if !object.hugetlb && given > looked.present_bytes {
            looked.swapped_bytes = object.data_bytes(&range).saturating_sub(in_core_bytes);
        }
        Ok(looked)
    }
}

/// A part of a shared object, mapped here; unmapped on drop.
struct Window<'a> {
    object: &'a SharedObject,
    start: NonNull<u8>,
    range: Range<u64>,
}

impl<'a> Window<'a> {
    fn map(object: &'a SharedObject, range: Range<u64>) -> Result<Self> {
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
        Ok(Self { object, start, range })
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.range.end - self.range.start).expect("checked when it was mapped")
    }

    /// The parts whose pages are in memory and not in swap. Pages from a pool are never in swap, and mincore does
    /// not know the unmapped ones.
    fn in_core(&self) -> Result<Vec<Range<u64>>> {
        if self.object.hugetlb {
            return Ok(vec![self.range.clone()]);
        }
        let base = self.object.page_bytes;
        let mut told = vec![0u8; self.bytes().div_ceil(pages::base_bytes())];
        // SAFETY: mincore writes one byte for each base page of our own mapping to `told`, which holds as many.
        let outcome =
            unsafe { syscall!(raw::__NR_mincore, self.start.as_ptr(), self.bytes(), told.as_mut_ptr()) };
        outcome.map_err(|errno| Error::of("mincore", errno))?;
        let mut runs = Vec::new();
        let mut at = 0;
        for same in told.chunk_by(|a, b| a & 1 == b & 1) {
            let end = at + same.len() as u64;
            if same[0] & 1 == 1 {
                runs.push(self.range.start + at * base..self.range.start + end * base);
            }
            at = end;
        }
        Ok(runs)
    }

    /// Maps the pages of `parts` that are there, and counts those that are broken; a hole stays one.
    fn resume(&self, peek: &Peek, parts: &[Range<u64>]) -> Result<(Vec<Present>, u64)> {
        let range = raw::uffdio_range { start: self.start.addr().get() as u64, len: self.bytes() as u64 };
        let hugetlb = self.object.hugetlb;
        let mode = if hugetlb { raw::UFFDIO_REGISTER_MODE_MINOR } else { raw::UFFDIO_REGISTER_MODE_MISSING };
        let mut register = raw::uffdio_register { range, mode: mode.into(), ioctls: 0 };
        let fd = peek.fd.as_raw_fd();
        // SAFETY: the kernel reads and writes one `uffdio_register`; the range is our own fresh mapping, which
        // nobody reads or writes, so that no thread of ours can ever wait for a fault in it.
        let outcome = unsafe { syscall!(raw::__NR_ioctl, fd, ioctl::UFFDIO_REGISTER, &raw mut register) };
        outcome.map_err(|errno| Error::of("UFFDIO_REGISTER", errno))?;
        let (mut present, mut poisoned): (Vec<Present>, u64) = (Vec::new(), 0);
        let mut most = PIECES_MAX;
        for part in parts {
            let mut at = part.start;
            while at < part.end {
                let some = at..part.end;
                let mapped = match hugetlb {
                    true => self.resume_some(fd, some),
                    false => self.read_some(&peek.sink, some, &mut most),
                };
                let mapped = match mapped {
                    // Both say so of a page that the kernel has found broken (hwpoison).
                    Err(error) if matches!(error.errno(), Some(Errno::IO | Errno::HWPOISON)) => {
                        poisoned += 1;
                        0
                    }
                    mapped => mapped?,
                };
                let count = (mapped / self.object.page_bytes) as usize;
                let page_bytes = self.object.page_bytes;
                let address = self.start.addr().get() + (at - self.range.start) as usize;
                match present.last_mut() {
                    _ if count == 0 => {}
                    Some(run) if run.offset + run.count as u64 * page_bytes == at => run.count += count,
                    _ => present.push(Present { offset: at, address, count }),
                }
                // Where nothing was mapped, on to the page after it.
                at += mapped.max(self.object.page_bytes);
            }
        }
        Ok((present, poisoned))
    }

    /// Has pages mapped from the start of `part` on, `most` of them at most, and as many as that is made next time; the
    /// bytes that it mapped. An error is of the first page.
    ///
    /// The kernel copies a byte of each: a fault of its own, which ends with an error where one of ours would end us,
    /// and which does not mark pages as used, as those of MADV_POPULATE_READ do (FOLL_TOUCH in mm/gup.c).
    fn read_some(&self, sink: &Sink, part: Range<u64>, most: &mut u64) -> Result<u64> {
        let page = self.object.page_bytes;
        let start = self.start.as_ptr().wrapping_add((part.start - self.range.start) as usize);
        let mut count = ((part.end - part.start) / page).min(*most);
        let of_page = |number: u64| {
            let iov_base = start.wrapping_add((number * page) as usize).cast();
            raw::iovec { iov_base, iov_len: 1 }
        };
        let pieces: Vec<raw::iovec> = (0..count).map(of_page).collect();
        loop {
            match sink.take(&pieces[..count as usize]) {
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
    use rustix::fs::{FallocateFlags, fallocate, fcntl_add_seals, ftruncate};
    use rustix::io::pwrite;
    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;
    use crate::mapping::{Advice, MapOptions, PageRequest, map_anonymous};
    use crate::policy::{PageAt, pages_at};

    /// The object behind a mapping of ours, or `None` with a word.
    fn object_or_skip(test: &str, range: &Range<u64>) -> Option<(Peek, SharedObject)> {
        let object = SharedObject::of_mapping(rustix::process::getpid(), range);
        match (Peek::new(), object) {
            (Ok(peek), Ok(Some(object))) => Some((peek, object)),
            (Err(error), _) | (_, Err(error)) => {
                planish_skip::skip(test, error);
                None
            }
            (Ok(_), Ok(None)) => panic!("shared anonymous memory lies on tmpfs or hugetlbfs"),
        }
    }

    fn range_of(mapping: &crate::Mapping) -> Range<u64> {
        let start = mapping.as_ptr().addr() as u64;
        start..start + mapping.len() as u64
    }

    #[test]
    fn pages_of_shared_memory_are_found_and_holes_stay_holes() {
        let test = "pages_of_shared_memory_are_found_and_holes_stay_holes";
        let base = pages::base_bytes();
        let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::Base) };
        let mapping = map_anonymous(600 * base, options).unwrap();
        for filled in [2..5, 7..8, 100..400] {
            mapping.advise_range(filled.start * base..filled.end * base, Advice::PopulateWrite).unwrap();
        }
        let Some((peek, object)) = object_or_skip(test, &range_of(&mapping)) else { return };
        assert!(!object.is_hugetlb());
        let mut found: Vec<(u64, usize)> = Vec::new();
        let mut on_a_node = 0;
        let looked = peek.look(&object, 0..object.bytes, |pages| {
            for run in pages {
                found.push((run.offset / base as u64, run.count));
                let addresses: Vec<usize> = (0..run.count).map(|page| run.address + page * base).collect();
                let at = pages_at(None, &addresses)?;
                on_a_node += at.iter().filter(|at| matches!(at, PageAt::Node(_))).count();
            }
            Ok(())
        });
        assert_eq!(found, [(2, 3), (7, 1), (100, 300)]);
        let present_bytes = 304 * base as u64;
        assert_eq!(looked.unwrap(), Looked { present_bytes, ..Looked::default() });
        assert_eq!(on_a_node, 304);
        let again =
            SharedObject::of_mapping(rustix::process::getpid(), &range_of(&mapping)).unwrap().unwrap();
        assert_eq!(again.allocated_bytes, object.allocated_bytes, "looking allocated something");
    }

    /// A memfd of `count` base pages, mapped shared at the second.
    fn mapped_memfd(count: usize) -> (OwnedFd, Range<u64>) {
        let memfd = memfd_create("planish-peek", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
        let bytes = count * pages::base_bytes();
        ftruncate(&memfd, bytes as u64).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let start = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, &memfd, 0) }.unwrap();
        let start = start.addr() as u64;
        (memfd, start..start + bytes as u64)
    }

    fn unmap(range: &Range<u64>) {
        let bytes = (range.end - range.start) as usize;
        // SAFETY: it was mapped by `mapped_memfd`, and nothing refers into it.
        unsafe { munmap(std::ptr::with_exposed_provenance_mut(range.start as usize), bytes) }.unwrap();
    }

    #[test]
    fn a_memfd_can_be_sealed_while_it_is_looked_at_and_looked_at_when_it_is_sealed() {
        let test = "a_memfd_can_be_sealed_while_it_is_looked_at_and_looked_at_when_it_is_sealed";
        let base = pages::base_bytes() as u64;
        let (memfd, range) = mapped_memfd(8);
        pwrite(&memfd, &[1], 2 * base).unwrap();
        let found = object_or_skip(test, &range);
        unmap(&range);
        let Some((peek, object)) = found else { return };
        for sealed in [SealFlags::WRITE, SealFlags::SEAL] {
            let mut found = Vec::new();
            let looked = peek.look(&object, 0..object.bytes, |pages| {
                found.extend(pages.iter().map(|run| (run.offset, run.count)));
                fcntl_add_seals(&memfd, sealed).map_err(|errno| Error::of("F_ADD_SEALS", errno))
            });
            assert_eq!(looked.unwrap().present_bytes, base);
            assert_eq!(found, [(2 * base, 1)]);
        }
    }

    /// Bytes of a mapping of ours that smaps calls clean, and that it calls dirty.
    #[expect(clippy::disallowed_methods, reason = "a test asks the kernel itself")]
    fn clean_and_dirty(range: &Range<u64>) -> [u64; 2] {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let header = format!("{:x}-{:x} ", range.start, range.end);
        let fields = text.lines().skip_while(|line| !line.starts_with(&header)).skip(1);
        let mut bytes = [0; 2];
        for line in fields.take_while(|line| line.split(' ').next().is_some_and(|word| word.ends_with(':'))) {
            let mut words = line.split_whitespace();
            let (name, number) =
                (words.next().unwrap(), words.next().and_then(|word| word.parse::<u64>().ok()));
            match name {
                "Shared_Clean:" | "Private_Clean:" => bytes[0] += number.unwrap() << 10,
                "Shared_Dirty:" | "Private_Dirty:" => bytes[1] += number.unwrap() << 10,
                _ => {}
            }
        }
        bytes
    }

    #[test]
    fn pages_that_nobody_has_written_look_clean_after_a_look() {
        let test = "pages_that_nobody_has_written_look_clean_after_a_look";
        let base = pages::base_bytes() as u64;
        let (memfd, range) = mapped_memfd(64);
        for page in 0..48 {
            // SAFETY: a byte of the mapping above.
            unsafe {
                std::ptr::with_exposed_provenance::<u8>((range.start + page * base) as usize).read_volatile()
            };
        }
        pwrite(&memfd, &[1], 3 * base).unwrap();
        let before = clean_and_dirty(&range);
        let found = object_or_skip(test, &range);
        if let Some((peek, object)) = found {
            let looked = peek.look(&object, 0..object.bytes, |_| Ok(())).unwrap();
            assert_eq!(looked.present_bytes, 48 * base);
            assert_eq!(clean_and_dirty(&range), before);
            assert_eq!(before, [47 * base, base]);
        }
        unmap(&range);
    }

    /// A file of which every other page is a hole is looked at in few windows, and its holes are none of its data.
    #[test]
    fn a_scattered_file_is_looked_at_at_once() {
        let test = "a_scattered_file_is_looked_at_at_once";
        let base = pages::base_bytes() as u64;
        let count = 3 * STRIDE / base;
        let (memfd, range) = mapped_memfd(count as usize);
        let written = |page: &u64| page % 2 == 1 && *page != 5 && !(700..900).contains(page);
        for page in (0..count).filter(written) {
            pwrite(&memfd, &[1], page * base).unwrap();
        }
        let found = object_or_skip(test, &range);
        unmap(&range);
        let Some((peek, object)) = found else { return };
        let pages = (0..count).filter(written).count() as u64;
        let extents = object.extents(&(0..object.bytes));
        assert_eq!((extents.len(), extents[0].start, extents[0].end), (1, base, object.bytes));
        assert_eq!(object.data_bytes(&(0..object.bytes)), pages * base);
        assert_eq!(object.data_bytes(&(base..4 * base)), 2 * base);
        let (mut windows, mut found) = (0, Vec::new());
        let looked = peek.look(&object, 0..object.bytes, |runs| {
            windows += 1;
            found.extend(runs.iter().map(|run| (run.offset / base, run.count)));
            Ok(())
        });
        assert_eq!(looked.unwrap(), Looked { present_bytes: pages * base, ..Looked::default() });
        assert_eq!(windows, 1);
        let expected: Vec<(u64, usize)> = (0..count).filter(written).map(|page| (page, 1)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_allocated_and_never_written_is_left_so() {
        let test = "what_is_allocated_and_never_written_is_left_so";
        let base = pages::base_bytes() as u64;
        let (memfd, range) = mapped_memfd(64);
        fallocate(&memfd, FallocateFlags::empty(), 0, 32 * base).unwrap();
        pwrite(&memfd, &[1], 3 * base).unwrap();
        let found = object_or_skip(test, &range);
        unmap(&range);
        let Some((peek, object)) = found else { return };
        for _ in 0..2 {
            let looked = peek.look(&object, 0..object.bytes, |_| Ok(())).unwrap();
            assert_eq!(
                looked,
                Looked { present_bytes: base, ..Looked::default() },
                "a look must not write them"
            );
            assert_eq!(object.allocated_bytes_now(), 32 * base);
        }
    }

    /// Where files may have no bytes at all, a look writes to none. In a process of its own, which has that limit.
    #[test]
    fn a_look_needs_no_room_in_files() {
        let test = "a_look_needs_no_room_in_files";
        let base = pages::base_bytes() as u64;
        let (memfd, range) = mapped_memfd(3000);
        (0..3000).for_each(|page| assert_eq!(pwrite(&memfd, &[1], page * base), Ok(1)));
        let Some((peek, object)) = object_or_skip(test, &range) else { return };
        if std::env::var_os(test).is_none() {
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", &format!("peek::tests::{test}")]).env(test, "");
            let output = again.output().unwrap();
            assert!(output.status.success(), "{}", output.status);
            return;
        }
        setrlimit(Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
        let looked = peek.look(&object, 0..object.bytes, |_| Ok(())).unwrap();
        assert_eq!(looked.present_bytes, 3000 * base);
    }

    #[test]
    fn a_look_takes_nothing_from_a_pool() {
        let test = "a_look_takes_nothing_from_a_pool";
        let _turn = match planish_skip::Turn::wait() {
            Ok(turn) => turn,
            Err(reason) => return planish_skip::skip(test, reason),
        };
        let sizes = pages::hugetlb_bytes().into_iter();
        let options =
            |page_bytes| MapOptions { shared: true, ..MapOptions::new(PageRequest::HugeTlb(page_bytes)) };
        let mapped = sizes.filter_map(|bytes| map_anonymous(3 * bytes, options(bytes)).ok()).next();
        let Some(mapping) = mapped else {
            return planish_skip::skip(test, "no pool of this machine has three free pages");
        };
        let page_bytes = mapping.page_bytes();
        mapping.advise_range(page_bytes..2 * page_bytes, Advice::PopulateWrite).unwrap();
        let Some((peek, object)) = object_or_skip(test, &range_of(&mapping)) else { return };
        assert!(object.is_hugetlb());
        let before = object.allocated_bytes;
        let mut found = Vec::new();
        let looked = peek.look(&object, 0..object.bytes, |pages| {
            found.extend(pages.iter().map(|run| (run.offset, run.count)));
            Ok(())
        });
        assert_eq!(found, [(page_bytes as u64, 1)]);
        assert_eq!(looked.unwrap().present_bytes, page_bytes as u64);
        let after =
            SharedObject::of_mapping(rustix::process::getpid(), &range_of(&mapping)).unwrap().unwrap();
        assert_eq!(after.allocated_bytes, before);
    }

    #[test]
    fn private_files_and_gone_mappings_are_told_apart() {
        let me = rustix::process::getpid();
        match SharedObject::of_mapping(me, &(0x1000..0x2000)) {
            Err(error @ Error::Forbidden { .. }) => {
                planish_skip::skip("private_files_and_gone_mappings_are_told_apart", error);
            }
            other => assert_eq!(other.unwrap_err().errno(), Some(Errno::NOENT)),
        }
    }
}
