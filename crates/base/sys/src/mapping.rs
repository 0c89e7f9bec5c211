//! Anonymous memory on pages of a chosen size, unmapped as it was mapped.
//!
//! ```text
//! Thp: over-map by one huge page, then trim both ends so that the first byte lies on a huge page
//!
//!      mapped    |.......H===============H===============H........|
//!      trimmed   |xxxxxxx                                xxxxxxxxx|   munmap
//!      kept              H===============H===============H            madvise(MADV_HUGEPAGE)
//! ```
//!
//! Of shared memory the *object* must begin where a huge page does, too (`file_thp_enabled` and
//! `thp_vma_suitable_order` compare offset and address): it is mapped over what was kept of such addresses.
//!
//! What is *asked for* is not what is *had*: the kernel may back a THP mapping with base pages. The caller
//! (`planish-arena`) reads the achieved backing back from smaps; this module only asks.
//!
//! Populate after the memory policy is set, never by `MAP_POPULATE`: a page's node is fixed by its first
//! touch.

use std::ops::Range;
use std::ptr::{NonNull, null_mut};

use linux_raw_sys::general as raw;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use crate::error::{Error, Result};
use crate::pages;
use crate::raw::syscall;

/// Which pages a mapping asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageRequest {
    /// Base pages only: the mapping is excluded from transparent huge pages, also where they are `always`.
    Base,
    /// Transparent huge pages where the kernel has them free; base pages elsewhere.
    Thp,
    /// Pages of exactly this many bytes from the reserved pool.
    HugeTlb(usize),
}

/// How to map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapOptions {
    /// Pages to ask for.
    pub page: PageRequest,
    /// Shared with children that are forked later; private otherwise.
    pub shared: bool,
    /// Give every page its memory now. Leave it off where a memory policy is still to be set.
    pub populate: bool,
    /// Set pages of a pool aside when they are mapped. Without it a short pool is told by `Advice::PopulateWrite`, and
    /// a touch without that ends the process; but what [`Mapping::discard`] drops is there for others. With it such
    /// pages are free and still set aside for this mapping (seen on Linux 6.18).
    pub reserve: bool,
    /// Take the addresses alone, which nobody may touch until [`Mapping::open`] gives the right, piece by piece. Only
    /// what was opened counts where the kernel limits what may be asked for (vm.overcommit_memory).
    pub closed: bool,
}

impl MapOptions {
    /// A private mapping that is not populated.
    pub fn new(page: PageRequest) -> Self {
        Self { page, shared: false, populate: false, reserve: true, closed: false }
    }
}

/// What to tell the kernel about a range (madvise(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Back with transparent huge pages.
    HugePage,
    /// Never back with transparent huge pages.
    NoHugePage,
    /// Put what is there onto huge pages now, by copying (Linux 6.1).
    Collapse,
    /// Fault every page in for reading, reporting failure instead of SIGBUS (Linux 5.14).
    PopulateRead,
    /// The same for writing.
    PopulateWrite,
    /// Leave it out of a child that fork(2) makes.
    DontFork,
    /// Have a child that fork(2) makes find zeros there (Linux 4.14).
    WipeOnFork,
}

impl Advice {
    fn number(self) -> u32 {
        match self {
            Self::HugePage => raw::MADV_HUGEPAGE,
            Self::NoHugePage => raw::MADV_NOHUGEPAGE,
            Self::Collapse => raw::MADV_COLLAPSE,
            Self::PopulateRead => raw::MADV_POPULATE_READ,
            Self::PopulateWrite => raw::MADV_POPULATE_WRITE,
            Self::DontFork => raw::MADV_DONTFORK,
            Self::WipeOnFork => raw::MADV_WIPEONFORK,
        }
    }
}

/// An owned anonymous mapping, zeroed at first; unmapped on drop. Readable and writable, or as far as it was opened.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    /// Always a whole number of `page_bytes`: munmap of a hugetlb range refuses anything else.
    bytes: usize,
    page_bytes: usize,
    request: PageRequest,
    /// Of an object that outlives the page tables of a process, as those of tmpfs and pools do.
    shared: bool,
}

// SAFETY: a `Mapping` is the only owner of its range (created in `map_anonymous`, removed in `Drop`) and
// has no tie to the thread that mapped it: memory maps belong to the process.
unsafe impl Send for Mapping {}
// SAFETY: the methods that take `&self` hand out a raw pointer or call the kernel, which serialises on the
// process's map lock; none reads or writes the memory itself (`discard` takes `&mut self`).
unsafe impl Sync for Mapping {}

impl Mapping {
    /// First byte. Valid for `len` bytes, aligned to at least `page_bytes`, as long as the mapping lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes: what was asked for, rounded up to whole pages of the request.
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty: `map_anonymous` refuses that")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Size in bytes of the pages asked for, to which start and length are aligned.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The pages that were asked for.
    pub fn request(&self) -> PageRequest {
        self.request
    }

    /// Advises about the whole mapping; see [`Mapping::advise_range`].
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.advise_range(0..self.bytes, advice)
    }

    /// Advises about `range` (bytes from the start, whole base pages).
    pub fn advise_range(&self, range: Range<usize>, advice: Advice) -> Result<()> {
        self.madvise(range, advice.number())
    }

    /// Drops the contents of `range`: the next touch sees zeroes, on freshly allocated pages.
    ///
    /// On pages from a pool the range is whole pages of it: the kernel would round the end down and drop
    /// less, or nothing, without a word (`madvise_dontneed_free_valid_vma` in mm/madvise.c).
    ///
    /// Shared memory loses them for everybody who maps it: dropped from page tables alone (`MADV_DONTNEED`) they would
    /// be there again at the next touch.
    ///
    /// Not an [`Advice`], because it changes contents and so needs the mapping to itself.
    pub fn discard(&mut self, range: Range<usize>) -> Result<()> {
        self.check_unit(&range)?;
        self.madvise(range, if self.shared { raw::MADV_REMOVE } else { raw::MADV_DONTNEED })
    }

    /// Makes `range` of a closed mapping readable and writable; on pages from a pool the range is whole pages of it.
    /// What is open already stays so.
    pub fn open(&self, range: Range<usize>) -> Result<()> {
        self.check_unit(&range)?;
        self.check_range(&range)?;
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: `check_range` keeps the range inside this mapping, and no right is taken from anybody.
        let outcome = unsafe { mprotect(self.as_ptr().add(range.start).cast(), range.len(), access) };
        outcome.map_err(|errno| Error::of("mprotect", errno))
    }

    /// Refuses a range that is not whole pages of a pool, where the memory is of one.
    fn check_unit(&self, range: &Range<usize>) -> Result<()> {
        let unit = match self.request {
            PageRequest::HugeTlb(page_bytes) => page_bytes,
            PageRequest::Base | PageRequest::Thp => pages::base_bytes(),
        };
        let is_whole = range.start.is_multiple_of(unit) && range.end.is_multiple_of(unit);
        if is_whole { Ok(()) } else { Err(self.range_error(range)) }
    }

    fn madvise(&self, range: Range<usize>, advice: u32) -> Result<()> {
        self.check_range(&range)?;
        // SAFETY: `check_range` keeps start and length inside this mapping, which `self` keeps mapped. No
        // number but MADV_DONTNEED and MADV_REMOVE changes contents, and these are reached through `&mut self` alone.
        let outcome = unsafe {
            let start = self.as_ptr().add(range.start);
            syscall!(raw::__NR_madvise, start, range.len(), advice)
        };
        outcome.map(drop).map_err(|errno| Error::of("madvise", errno))
    }

    /// Refuses a range that is not whole base pages inside the mapping.
    pub(crate) fn check_range(&self, range: &Range<usize>) -> Result<()> {
        let base = pages::base_bytes();
        let whole = range.start.is_multiple_of(base) && range.end.is_multiple_of(base);
        if whole && range.start < range.end && range.end <= self.bytes {
            Ok(())
        } else {
            Err(self.range_error(range))
        }
    }

    fn range_error(&self, range: &Range<usize>) -> Error {
        Error::Range { start: range.start, end: range.end, bytes: self.bytes }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map_anonymous`, is owned by `self` alone and ends its life here;
        // `bytes` is a whole number of the pages it was mapped with.
        let outcome = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(outcome.is_ok(), "munmap of an owned range: {outcome:?}");
    }
}

/// Maps `len` bytes, rounded up to whole pages of the request.
///
/// Huge pages from a pool are reserved at once, unless that is switched off, so that a short pool is
/// [`Error::PoolShort`] here and not a SIGBUS later; where a policy binds the range to a node whose pool is short,
/// `Advice::PopulateWrite` tells by an error.
pub fn map_anonymous(len: usize, options: MapOptions) -> Result<Mapping> {
    let mapping = match options.page {
        PageRequest::Base => map_base(len, options)?,
        PageRequest::Thp => map_thp(len, options)?,
        PageRequest::HugeTlb(page_bytes) => map_hugetlb(len, page_bytes, options)?,
    };
    if options.populate {
        populate(&mapping)?;
    }
    Ok(mapping)
}

fn map_base(len: usize, options: MapOptions) -> Result<Mapping> {
    let page_bytes = pages::base_bytes();
    let bytes = pages::round_up(len, page_bytes).ok_or(Error::Length { bytes: len })?;
    let start = mmap(bytes, flags_of(options), options.closed).map_err(|errno| Error::of("mmap", errno))?;
    let mapping = Mapping { start, bytes, page_bytes, request: options.page, shared: options.shared };
    match mapping.advise(Advice::NoHugePage) {
        // A kernel without THP does not know the advice and needs none.
        Err(error) if error.errno() == Some(Errno::INVAL) => Ok(mapping),
        other => other.map(|()| mapping),
    }
}

fn map_thp(len: usize, options: MapOptions) -> Result<Mapping> {
    let page_bytes = pages::thp_bytes().ok_or(Error::NoThp)?;
    let bytes = pages::round_up(len, page_bytes).ok_or(Error::Length { bytes: len })?;
    let start = mmap_aligned(bytes, page_bytes, options)?;
    let mapping = Mapping { start, bytes, page_bytes, request: options.page, shared: options.shared };
    mapping.advise(Advice::HugePage)?;
    Ok(mapping)
}

fn map_hugetlb(len: usize, page_bytes: usize, options: MapOptions) -> Result<Mapping> {
    if !pages::hugetlb_bytes().contains(&page_bytes) {
        return Err(Error::NoSuchPageSize { page_bytes });
    }
    let bytes = pages::round_up(len, page_bytes).ok_or(Error::Length { bytes: len })?;
    // The size is told as its base-2 logarithm in the upper flag bits
    // (include/uapi/asm-generic/hugetlb_encode.h).
    let size_bits = page_bytes.trailing_zeros() << raw::MAP_HUGE_SHIFT;
    let flags = flags_of(options) | MapFlags::HUGETLB | MapFlags::from_bits_retain(size_bits);
    let start = mmap(bytes, flags, options.closed).map_err(|errno| match errno {
        Errno::NOMEM => Error::PoolShort { page_bytes, bytes, source: errno },
        errno => Error::of("mmap", errno),
    })?;
    Ok(Mapping { start, bytes, page_bytes, request: options.page, shared: options.shared })
}

fn flags_of(options: MapOptions) -> MapFlags {
    let flags = if options.shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
    let pooled = matches!(options.page, PageRequest::HugeTlb(_));
    if pooled && !options.reserve { flags | MapFlags::NORESERVE } else { flags }
}

fn access_of(closed: bool) -> ProtFlags {
    if closed { ProtFlags::empty() } else { ProtFlags::READ | ProtFlags::WRITE }
}

fn mmap(bytes: usize, flags: MapFlags, closed: bool) -> std::result::Result<NonNull<u8>, Errno> {
    let access = access_of(closed);
    // SAFETY: without MAP_FIXED and with a null hint the kernel chooses a free range, so no memory that
    // anything else refers to is replaced.
    let start = unsafe { mmap_anonymous(null_mut(), bytes, access, flags)? };
    Ok(NonNull::new(start.cast()).expect("the kernel never places a mapping at null without MAP_FIXED"))
}

/// Maps `bytes` so that the first byte lies on a multiple of `align` (a power of two, whole pages).
fn mmap_aligned(bytes: usize, align: usize, options: MapOptions) -> Result<NonNull<u8>> {
    let padded = bytes.checked_add(align).ok_or(Error::Length { bytes })?;
    // Of shared memory these are addresses alone, which the kernel counts for nothing.
    let (flags, closed) = match options.shared {
        true => (MapFlags::PRIVATE | MapFlags::NORESERVE, true),
        false => (flags_of(options), options.closed),
    };
    let mapped = mmap(padded, flags, closed).map_err(|errno| Error::of("mmap", errno))?;
    let head = mapped.align_offset(align);
    let tail = padded - head - bytes;
    // SAFETY: `align_offset` of a byte pointer is below `align`, so head + bytes + tail = padded and each
    // part lies in the range mapped above, which nobody else knows yet.
    unsafe {
        let start = mapped.add(head);
        trim(mapped, head)?;
        trim(start.add(bytes), tail)?;
        if options.shared {
            map_shared_over(start, bytes, options)?;
        }
        Ok(start)
    }
}

/// Maps a new shared object over `bytes` from `start`, from its first byte on; where that fails, nothing stays there.
///
/// # Safety
/// The range must be mapped, owned by the caller and not in use.
unsafe fn map_shared_over(start: NonNull<u8>, bytes: usize, options: MapOptions) -> Result<()> {
    let (at, access) = (start.as_ptr().cast(), access_of(options.closed));
    // SAFETY: promised by the caller: what MAP_FIXED replaces is its own, and nobody refers to it.
    let mapped = unsafe { mmap_anonymous(at, bytes, access, flags_of(options) | MapFlags::FIXED) };
    let Err(errno) = mapped else { return Ok(()) };
    // SAFETY: the same range. What fails here leaves addresses behind and no memory; the first error is told.
    let _ = unsafe { trim(start, bytes) };
    Err(Error::of("mmap", errno))
}

/// Unmaps `bytes` from `start`, if any.
///
/// # Safety
/// The range must be mapped, owned by the caller and not used again.
unsafe fn trim(start: NonNull<u8>, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: promised by the caller.
    unsafe { munmap(start.as_ptr().cast(), bytes) }.map_err(|errno| Error::of("munmap", errno))
}

/// Gives every page of a fresh mapping its memory.
fn populate(mapping: &Mapping) -> Result<()> {
    match mapping.advise(Advice::PopulateWrite) {
        Err(error) if error.errno() == Some(Errno::INVAL) => {
            touch(mapping);
            Ok(())
        }
        other => other,
    }
}

/// Writes one zero into each base page: what `PopulateWrite` does, for kernels before 5.14.
fn touch(mapping: &Mapping) {
    for offset in (0..mapping.len()).step_by(pages::base_bytes()) {
        // SAFETY: `offset` is below `len`; the mapping is fresh, zeroed and not yet handed out (`populate`
        // is called by `map_anonymous` alone), so writing a zero neither races nor changes a value.
        unsafe { mapping.as_ptr().add(offset).write_volatile(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_ends(mapping: &Mapping) {
        // SAFETY: both offsets lie in the mapping, and the test is its only user.
        unsafe {
            mapping.as_ptr().write(1);
            mapping.as_ptr().add(mapping.len() - 1).write(2);
            assert_eq!(mapping.as_ptr().read(), 1);
            assert_eq!(mapping.as_ptr().add(mapping.len() - 1).read(), 2);
        }
    }

    #[test]
    fn base_pages_round_up_and_are_writable() {
        for shared in [false, true] {
            let options = MapOptions { shared, populate: true, ..MapOptions::new(PageRequest::Base) };
            let mapping = map_anonymous(pages::base_bytes() + 1, options).unwrap();
            assert_eq!(mapping.len(), 2 * pages::base_bytes());
            write_ends(&mapping);
        }
    }

    #[test]
    fn thp_starts_on_a_huge_page() {
        let Some(huge) = pages::thp_bytes() else {
            return planish_skip::skip("thp_starts_on_a_huge_page", Error::NoThp);
        };
        for _ in 0..8 {
            let mapping = map_anonymous(1, MapOptions::new(PageRequest::Thp)).unwrap();
            assert_eq!(mapping.as_ptr().addr() % huge, 0);
            assert_eq!(mapping.len(), huge);
            mapping.advise(Advice::PopulateWrite).unwrap();
            write_ends(&mapping);
        }
    }

    #[test]
    fn shared_memory_starts_on_a_huge_page_in_its_object_too() {
        let test = "shared_memory_starts_on_a_huge_page_in_its_object_too";
        let Some(huge) = pages::thp_bytes() else { return planish_skip::skip(test, Error::NoThp) };
        for _ in 0..8 {
            let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::Thp) };
            let mapping = map_anonymous(huge + 1, options).unwrap();
            let start = mapping.as_ptr().addr();
            assert_eq!((start % huge, mapping.len()), (0, 2 * huge));
            let line = maps_line(start);
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            assert_eq!((words[1], words[2].trim_start_matches('0')), ("rw-s", ""), "{line}");
            write_ends(&mapping);
        }
    }

    /// The line of /proc/self/maps whose mapping starts there.
    fn maps_line(start: usize) -> String {
        let mut text = String::new();
        let mut file = std::fs::File::open("/proc/self/maps").expect("this process has mappings");
        std::io::Read::read_to_string(&mut file, &mut text).expect("text");
        let prefix = format!("{start:08x}-");
        text.lines().find(|line| line.starts_with(&prefix)).expect("it is mapped").to_owned()
    }

    #[test]
    fn what_is_discarded_of_shared_memory_is_gone() {
        let base = pages::base_bytes();
        let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::Base) };
        let mut mapping = map_anonymous(2 * base, options).unwrap();
        write_ends(&mapping);
        mapping.discard(0..base).unwrap();
        // SAFETY: both lie inside the mapping, whose only user this test is.
        let ends = unsafe { [mapping.as_ptr().read(), mapping.as_ptr().add(2 * base - 1).read()] };
        assert_eq!(ends, [0, 2], "what was dropped is zero, and nothing else is");
    }

    #[test]
    fn a_size_that_no_pool_has_is_refused_by_name() {
        let error = map_anonymous(1, MapOptions::new(PageRequest::HugeTlb(3 << 20))).unwrap_err();
        assert!(matches!(error, Error::NoSuchPageSize { page_bytes } if page_bytes == 3 << 20));
    }

    #[test]
    fn a_pool_that_is_short_says_so_at_once() {
        for page_bytes in pages::hugetlb_bytes() {
            // More than any machine has: 2^46 bytes of huge pages.
            let asked = map_anonymous(1 << 46, MapOptions::new(PageRequest::HugeTlb(page_bytes)));
            assert!(matches!(asked, Err(Error::PoolShort { .. })), "{asked:?}");
        }
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        for page in [PageRequest::Base, PageRequest::Thp] {
            for bytes in [0, usize::MAX] {
                assert!(map_anonymous(bytes, MapOptions::new(page)).is_err());
            }
        }
    }

    #[test]
    fn ranges_outside_and_off_the_page_are_refused() {
        let base = pages::base_bytes();
        let mut mapping = map_anonymous(4 * base, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.advise_range(base..3 * base, Advice::PopulateWrite).unwrap();
        for bad in [0..5 * base, 1..base, base..base, 2 * base..base] {
            assert!(matches!(mapping.discard(bad), Err(Error::Range { .. })));
        }
        write_ends(&mapping);
        mapping.discard(0..base).unwrap();
        // SAFETY: inside the mapping, whose only user this test is.
        assert_eq!(unsafe { mapping.as_ptr().read() }, 0);
    }

    #[test]
    fn a_closed_mapping_is_opened_piece_by_piece() {
        let base = pages::base_bytes();
        // More than any machine has; addresses cost nothing.
        let options = MapOptions { closed: true, ..MapOptions::new(PageRequest::Base) };
        let mapping = map_anonymous(1 << 44, options).unwrap();
        let populate = |range: Range<usize>| mapping.advise_range(range, Advice::PopulateWrite);
        assert!(populate(0..base).is_err(), "nobody may write there");
        mapping.open(base..3 * base).unwrap();
        mapping.open(2 * base..4 * base).unwrap();
        if let Err(error) = populate(base..4 * base) {
            return planish_skip::skip("a_closed_mapping_is_opened_piece_by_piece", error);
        }
        assert!(populate(0..base).is_err() && populate(4 * base..5 * base).is_err());
        // SAFETY: in what was opened, whose only user this test is.
        unsafe { mapping.as_ptr().add(4 * base - 1).write(1) };
        for bad in [0..1, 0..(1 << 44) + base, base..base] {
            assert!(matches!(mapping.open(bad), Err(Error::Range { .. })));
        }
    }

    #[test]
    fn part_of_a_page_from_a_pool_is_not_discarded_in_silence() {
        let test = "part_of_a_page_from_a_pool_is_not_discarded_in_silence";
        let Some(page_bytes) = pages::hugetlb_bytes().into_iter().next() else {
            return planish_skip::skip(test, "this kernel has no pools");
        };
        let mut mapping = match map_anonymous(1, MapOptions::new(PageRequest::HugeTlb(page_bytes))) {
            Ok(mapping) => mapping,
            Err(error) => return planish_skip::skip(test, error),
        };
        if let Err(error) = mapping.advise(Advice::PopulateWrite) {
            return planish_skip::skip(test, error);
        }
        write_ends(&mapping);
        let part = mapping.discard(0..pages::base_bytes());
        assert!(matches!(part, Err(Error::Range { .. })), "{part:?}");
        mapping.discard(0..page_bytes).unwrap();
        // SAFETY: inside the mapping, whose only user this test is; its page was there and is free for it.
        assert_eq!(unsafe { mapping.as_ptr().read() }, 0);
    }
}
