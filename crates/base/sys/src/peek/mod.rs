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
//! - What is in swap stays there: mincore(2) is asked first, and smaps of what it calls there (swap.rs).
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

mod swap;
mod window;

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsRawFd, OwnedFd};

use linux_raw_sys::general as raw;
use linux_raw_sys::ioctl;
use rustix::fs::{
    Access, AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, SealFlags, accessat, fcntl_get_seals, fstat,
    fstatfs, memfd_create, openat,
};
use rustix::io::Errno;
use rustix::process::Pid;

use self::swap::Searches;
use self::window::{Sink, Window, cut, windows};
use crate::error::{Error, Result};
use crate::pages;
use crate::raw::syscall;

/// Pieces of 512 pages that one window has at most, of however many parts of the object: a page table of ours each,
/// which are 2 MiB for 1 GiB of base pages, or for 512 pages that lie as far apart.
const WINDOW_TABLES: u64 = 512;
/// Pages from a pool that are mapped at a time at most.
const WINDOW_PAGES: u64 = 4096;
/// Pages that mincore(2) passes over rather than be called again, or told by lseek(2) that there is nothing: a call
/// takes as long as some thirty.
const NEAR_PAGES: u64 = 32;

/// Bytes that are taken for data where there is some: mincore(2) knows the holes in them, and tells those of 512 pages
/// in the time of a few calls. A file whose every other page is a hole has as many extents as pages.
const STRIDE: u64 = 2 << 20;

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
    /// How often smaps may still be read for what of it is in swap.
    searches: Searches,
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
            searches: Searches::default(),
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

    /// What of `parts` (bytes of the object) may have memory: where the file has data, small holes in it among it, or
    /// all of it on hugetlbfs, which reports the whole file as data.
    fn extents(&self, parts: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut extents = Vec::with_capacity(parts.len());
        // By now: it may have been filled since it was opened.
        let is_empty = self.allocated_bytes_now() == 0;
        let end = if is_empty { 0 } else { self.bytes.next_multiple_of(self.page_bytes) };
        for part in parts.iter().map(|part| part.start..part.end.min(end)).filter(|part| !part.is_empty()) {
            match self.hugetlb || part.end - part.start <= NEAR_PAGES * self.page_bytes {
                true => extents.push(part),
                false => self.add_data_of(part, &mut extents),
            }
        }
        extents
    }

    fn add_data_of(&self, part: Range<u64>, extents: &mut Vec<Range<u64>>) {
        let (first, mut at) = (extents.len(), part.start);
        while at < part.end {
            // An error other than ENXIO (no more data) leaves the rest to be looked at whole.
            let data = match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
                Ok(data) if data < part.end => data / self.page_bytes * self.page_bytes,
                Ok(_) | Err(Errno::NXIO) => break,
                Err(_) => {
                    extents.push(at..part.end);
                    break;
                }
            };
            at = (data / STRIDE + 1).saturating_mul(STRIDE).min(part.end);
            match extents[first..].last_mut() {
                Some(Range { end, .. }) if data - *end < STRIDE / 8 => *end = at,
                _ => extents.push(data..at),
            }
        }
    }

    /// Opens windows on what of `parts` may have memory, one after the other, until `show` breaks.
    fn each_window(
        &self,
        parts: &[Range<u64>],
        mut show: impl FnMut(&Window<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (unit, most) = match self.hugetlb {
            true => (self.page_bytes, WINDOW_PAGES),
            false => (512 * self.page_bytes, WINDOW_TABLES),
        };
        let pieces = cut(self.extents(parts), unit.saturating_mul(most));
        let mut waiting = windows(&pieces, unit, most);
        waiting.reverse();
        while let Some(pieces) = waiting.pop() {
            match Window::map(self, pieces) {
                // Where addresses are short (RLIMIT_AS), parts that lie near each other still find room.
                Err(error) if error.errno() == Some(Errno::NOMEM) && pieces.len() > 1 => {
                    let (first, second) = pieces.split_at(pieces.len() / 2);
                    waiting.extend([second, first]);
                }
                window => {
                    if show(&window?)?.is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

impl SharedObject {
    /// Whole pages of `parts` that have data, in memory or in swap: two calls for each run of them, however small, and
    /// one for a part without.
    pub fn data_in(&self, parts: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        for part in parts {
            let mut at = part.start;
            while at < part.end {
                let data = match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
                    Ok(data) if data < part.end => data / self.page_bytes * self.page_bytes,
                    _ => break,
                };
                let hole = rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Hole(data));
                let hole = hole.unwrap_or(part.end).clamp(data + 1, part.end);
                at = hole.next_multiple_of(self.page_bytes);
                found.push(data..at);
            }
        }
        found
    }

    /// What of `parts` (whole pages) is in memory, and not in swap; of a pool all of them.
    ///
    /// # Errors
    /// They cannot be mapped here.
    pub fn in_core(&self, parts: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        let mut in_core = Vec::new();
        self.each_window(parts, |window| {
            in_core.append(&mut window.in_core()?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(in_core)
    }
}

/// Pages of a shared object that lie side by side, in it and where they are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Where in the object, in bytes.
    pub offset: u64,
    /// Where they are mapped: by a look in our own memory, to be asked about while its window is open.
    pub address: usize,
    /// How many pages.
    pub count: usize,
}

/// What a look at an object found besides pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Bytes on pages that are there.
    pub present_bytes: u64,
    /// Bytes on pages whose memory is broken, which the kernel maps for nobody any more.
    pub poisoned_bytes: u64,
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

    /// Shows the pages of `parts` (bytes of the object, whole pages, in rising order and apart) that are there, window
    /// by window. What lies between the parts is left alone.
    pub fn look(
        &self,
        object: &SharedObject,
        parts: &[Range<u64>],
        mut show: impl FnMut(&[Present]) -> Result<()>,
    ) -> Result<Looked> {
        let mut looked = Looked::default();
        object.each_window(parts, |window| {
            let in_core = window.in_core()?;
            let found = window.resume(self, &in_core)?;
            looked.poisoned_bytes += found.poisoned * object.page_bytes;
            let pages: usize = found.present.iter().map(|run| run.count).sum();
            looked.present_bytes += pages as u64 * object.page_bytes;
            show(&found.present)?;
            // All that the kernel has given a pool's file has been seen: the rest is holes.
            match object.hugetlb && looked.present_bytes >= object.allocated_bytes {
                true => Ok(ControlFlow::Break(())),
                false => Ok(ControlFlow::Continue(())),
            }
        })?;
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FallocateFlags, fallocate, fcntl_add_seals, ftruncate};
    use std::ptr::null_mut;

    use rustix::io::pwrite;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
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
        let looked = peek.look(&object, &whole(&object), |pages| {
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

    fn whole(object: &SharedObject) -> Vec<Range<u64>> {
        std::iter::once(0..object.bytes).collect()
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
            let looked = peek.look(&object, &whole(&object), |pages| {
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
            let looked = peek.look(&object, &whole(&object), |_| Ok(())).unwrap();
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
        let extents = object.extents(&whole(&object));
        assert_eq!((extents.len(), extents[0].start, extents[0].end), (1, base, object.bytes));
        let data_bytes = |parts: &[Range<u64>]| -> u64 {
            object.data_in(parts).iter().map(|run| run.end - run.start).sum()
        };
        assert_eq!(data_bytes(&whole(&object)), pages * base);
        assert_eq!(
            object.data_in(&[base..4 * base, 9 * base..10 * base]),
            [base..2 * base, 3 * base..4 * base, 9 * base..10 * base]
        );
        assert_eq!(object.in_core(&whole(&object)).unwrap(), object.data_in(&whole(&object)));
        let (mut windows, mut found) = (0, Vec::new());
        let looked = peek.look(&object, &whole(&object), |runs| {
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
    fn parts_that_lie_far_apart_share_a_window_and_nothing_between_them_is_looked_at() {
        let test = "parts_that_lie_far_apart_share_a_window_and_nothing_between_them_is_looked_at";
        let base = pages::base_bytes() as u64;
        // In each fourth part of a page table's reach: one page that is wanted and there, one that is wanted and a
        // hole, one that is there and not wanted.
        let (count, apart) = (4 * 1500, 128 * base);
        let (memfd, range) = mapped_memfd((count * 128) as usize);
        for offset in (0..count).map(|number| number * apart) {
            pwrite(&memfd, &[1], offset).unwrap();
            pwrite(&memfd, &[1], offset + 2 * base).unwrap();
        }
        let found = object_or_skip(test, &range);
        unmap(&range);
        let Some((peek, object)) = found else { return };
        let parts: Vec<Range<u64>> =
            (0..count).map(|number| number * apart..number * apart + 2 * base).collect();
        let (mut windows, mut offsets) = (0, Vec::new());
        let looked = peek.look(&object, &parts, |runs| {
            windows += 1;
            offsets.extend(runs.iter().map(|run| (run.offset, run.count)));
            Ok(())
        });
        assert_eq!(looked.unwrap(), Looked { present_bytes: count * base, ..Looked::default() });
        let expected: Vec<(u64, usize)> = parts.iter().map(|part| (part.start, 1)).collect();
        assert_eq!((windows, offsets), (3, expected), "of 1500 page tables, of which a window has 512");
        assert_eq!(object.allocated_bytes_now(), 2 * count * base, "holes stay holes");
    }

    #[test]
    fn pages_that_go_while_they_are_looked_at_are_not_there_and_do_not_come_back() {
        let test = "pages_that_go_while_they_are_looked_at_are_not_there_and_do_not_come_back";
        let base = pages::base_bytes() as u64;
        let count = 3000;
        let (memfd, range) = mapped_memfd(count as usize);
        (0..count).for_each(|page| assert_eq!(pwrite(&memfd, &[1], page * base), Ok(1)));
        let found = object_or_skip(test, &range);
        unmap(&range);
        let Some((peek, object)) = found else { return };
        let pieces = whole(&object);
        let window = Window::map(&object, &pieces).unwrap();
        let in_core = window.in_core().unwrap();
        assert_eq!(in_core, pieces);
        // The first and the last, some by themselves, more than one call asks for.
        let gone = [0..1, 5..6, 7..8, 900..901, 1300..2500, 2999..3000];
        for pages in &gone {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&memfd, flags, pages.start * base, (pages.end - pages.start) * base).unwrap();
        }
        let found = window.resume(&peek, &in_core).unwrap();
        let runs: Vec<_> = found.present.iter().map(|run| (run.offset / base, run.count as u64)).collect();
        assert_eq!(runs, [(1, 4), (6, 1), (8, 892), (901, 399), (2500, 499)]);
        assert_eq!(found.poisoned, 0);
        assert_eq!(object.allocated_bytes_now(), (4 + 1 + 892 + 399 + 499) * base);
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
            let looked = peek.look(&object, &whole(&object), |_| Ok(())).unwrap();
            assert_eq!(
                looked,
                Looked { present_bytes: base, ..Looked::default() },
                "a look must not write them"
            );
            assert_eq!(object.allocated_bytes_now(), 32 * base);
        }
    }

    /// Whether this is a process for this test alone, which may limit itself; else it has run in one that was.
    fn is_alone(test: &str) -> bool {
        if std::env::var_os(test).is_some() {
            return true;
        }
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", &format!("peek::tests::{test}")]).env(test, "").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{}: {told}", output.status);
        false
    }

    #[test]
    fn where_addresses_are_short_a_window_has_fewer_parts() {
        let test = "where_addresses_are_short_a_window_has_fewer_parts";
        let base = pages::base_bytes() as u64;
        let (count, apart) = (64, 4096 * base);
        let (memfd, range) = mapped_memfd((count * 4096) as usize);
        (0..count).for_each(|part| assert_eq!(pwrite(&memfd, &[1], part * apart), Ok(1)));
        let Some((peek, object)) = object_or_skip(test, &range) else { return };
        if !is_alone(test) {
            return;
        }
        // With what this test has mapped itself, room for a quarter of it.
        let most = Some(count * apart * 5 / 4 + (256 << 20));
        setrlimit(Resource::As, Rlimit { current: most, maximum: most }).unwrap();
        let parts: Vec<Range<u64>> = (0..count).map(|part| part * apart..part * apart + base).collect();
        let (mut windows, mut found) = (0, 0);
        let looked = peek.look(&object, &parts, |runs| {
            (windows, found) = (windows + 1, found + runs.len());
            Ok(())
        });
        assert_eq!((looked.unwrap().present_bytes, found), (count * base, count as usize));
        assert!(windows > 1, "there was room for all of it");
    }

    /// Where files may have no bytes at all, a look writes to none.
    #[test]
    fn a_look_needs_no_room_in_files() {
        let test = "a_look_needs_no_room_in_files";
        let base = pages::base_bytes() as u64;
        let (memfd, range) = mapped_memfd(3000);
        (0..3000).for_each(|page| assert_eq!(pwrite(&memfd, &[1], page * base), Ok(1)));
        let Some((peek, object)) = object_or_skip(test, &range) else { return };
        if !is_alone(test) {
            return;
        }
        setrlimit(Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
        let looked = peek.look(&object, &whole(&object), |_| Ok(())).unwrap();
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
        let looked = peek.look(&object, &whole(&object), |pages| {
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
