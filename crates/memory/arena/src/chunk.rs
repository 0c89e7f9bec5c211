//! One mapping of an arena: mapped, placed, faulted in and verified, in this order.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::OnceLock;

use planish_sys::policy::Existing;
use planish_sys::{Advice, MapOptions, Mapping, map_anonymous};
use rustix::mm::{MprotectFlags, mprotect};

use crate::achieved::{Extent, SMAPS, backing_of, elsewhere, entries_of, is_all_on, node_bytes_of};
use crate::arena::LINE_BYTES;
use crate::builder::NodeChoice;
use crate::error::ArenaError;
use crate::facts;
use crate::free::Free;
use crate::page::{Offer, Page};
use crate::prefault::prefault;

/// One mapping of an arena, as it was when [`Arena::chunks`](crate::Arena::chunks) was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The kind of page that it was asked for; [`Arena::achieved`](crate::Arena::achieved) tells what it has.
    pub page: Page,
    /// All that may be handed out of it.
    pub bytes: usize,
    /// Handed out, or lost to alignment.
    pub used_bytes: usize,
    /// Given back, and handed out again before anything new is.
    pub spare_bytes: usize,
    /// At its end, never handed out. In the newest chunk that is the room for what comes; in the others it is the tail
    /// that was left when something did not fit, which leases, bumps and smaller slices take.
    pub tail_bytes: usize,
}

/// Memory that is there: every page of it was faulted in, and those that were handed back are again before a slice
/// of them is handed out.
#[derive(Debug)]
pub(crate) struct Mapped {
    mapping: Mapping,
    /// What of the mapping may be used; the rest is guards.
    usable: Range<usize>,
    page: Page,
    used: usize,
    /// What of the used bytes was given back.
    free: Free,
    /// Why it could not be placed on the nodes that were preferred.
    unplaced: Option<ArenaError>,
}

/// Addresses without memory.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) mapping: Mapping,
    pub(crate) usable: Range<usize>,
    /// Why they could not be placed on the nodes that were preferred.
    pub(crate) unplaced: Option<ArenaError>,
}

/// What a chunk is asked for.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) page: Page,
    pub(crate) bytes: usize,
    pub(crate) nodes: &'a NodeChoice,
    pub(crate) threads: NonZeroUsize,
    pub(crate) offer: &'a Offer,
    /// Memory of the kind that processes share.
    pub(crate) shared: bool,
}

impl Wish<'_> {
    /// Gives the memory, or nothing. Whether it lies on the wanted pages is told by [`Mapped::check_backing`], and
    /// whether on the wanted nodes by [`check_nodes`].
    pub(crate) fn grant(&self) -> Result<Mapped, ArenaError> {
        let bytes = self.whole_pages()?;
        check_room(self.page, bytes, self.nodes)?;
        let (mut mapping, usable) = self.map(bytes, false)?;
        let unplaced = self.place(&mapping, &usable)?;
        prefault(&mut mapping, usable.clone(), self.threads).map_err(|error| self.map_error(error))?;
        let chunk = Mapped { mapping, usable, page: self.page, used: 0, free: Free::default(), unplaced };
        // Free memory may be in pieces; this call compacts and copies, so its failure only leaves what is.
        let _ = chunk.collapse();
        Ok(chunk)
    }

    /// Takes addresses alone, placed and without rights, and tells which of the mapping those are. Memory comes by
    /// [`fill`](Self::fill).
    pub(crate) fn reserve(&self) -> Result<Reserved, ArenaError> {
        let (mapping, usable) = self.map(self.whole_pages()?, true)?;
        let unplaced = self.place(&mapping, &usable)?;
        Ok(Reserved { mapping, usable, unplaced })
    }

    /// Gives the rights to a range of such addresses, whole pages, where there is memory for them. The kernel counts it
    /// with what was opened before from then on.
    pub(crate) fn open(&self, mapping: &Mapping, range: Range<usize>) -> Result<(), ArenaError> {
        check_room(self.page, range.len(), self.nodes)?;
        mapping.open(range).map_err(|error| self.map_error(error))
    }

    /// Gives a range that was opened its memory. What it got before a failure is left there.
    pub(crate) fn fill(&self, mapping: &mut Mapping, range: Range<usize>) -> Result<(), ArenaError> {
        prefault(mapping, range, self.threads).map_err(|error| self.map_error(error))
    }

    /// The bytes in whole pages, of a kind that this kernel has.
    fn whole_pages(&self) -> Result<usize, ArenaError> {
        if !self.offer.has(self.page) {
            return Err(ArenaError::NoSuchPage {
                page: self.page,
                offered_bytes: self.offer.hugetlb.clone(),
            });
        }
        let bytes = self.bytes.checked_next_multiple_of(self.page.bytes());
        bytes.ok_or(ArenaError::TooLarge { count: self.bytes, item_bytes: 1 })
    }

    /// Maps `bytes` between two guards of one page without rights, and tells where between them they lie. A closed
    /// mapping has no rights anywhere.
    ///
    /// A guard stops an overrun. And it keeps the kernel from merging the chunk with a neighbour, which smaps
    /// would then count together: chunks without huge pages would merge with thread stacks, which have none
    /// either since Linux 6.7. Reserved pages never merge, and guards of them would cost two.
    fn map(&self, bytes: usize, closed: bool) -> Result<(Mapping, Range<usize>), ArenaError> {
        let guard_bytes = match self.page {
            Page::HugeTlb(_) => 0,
            Page::Base | Page::Thp => self.page.bytes(),
        };
        let too_large = ArenaError::TooLarge { count: bytes, item_bytes: 1 };
        let mapped_bytes = bytes.checked_add(2 * guard_bytes).ok_or(too_large)?;
        // Pages that are set aside for a mapping come back to it alone when they are handed back.
        let reserve = !tells_short_pool();
        let shared = self.shared;
        let options = MapOptions { reserve, closed, shared, ..MapOptions::new(self.page.request()) };
        let mapping = map_anonymous(mapped_bytes, options).map_err(|error| self.map_error(error))?;
        if shared || matches!(self.page, Page::HugeTlb(_)) {
            // Of shared memory a child would write what our slices are borrowed from. Of a pool it shares every page
            // with us until one of the two writes, and for that write the pool must have a page to spare: where it has
            // none, the writer gets SIGBUS. With pages that are set aside the kernel takes them from the child instead
            // (mm/hugetlb.c, hugetlb_wp), without them from whoever writes first.
            mapping.advise_range(0..mapped_bytes, Advice::DontFork).map_err(|error| self.map_error(error))?;
        }
        let usable = guard_bytes..guard_bytes + bytes;
        if guard_bytes > 0 && !closed {
            for start in [0, usable.end] {
                // SAFETY: the mapping is `mapped_bytes` long, so a guard fits at both ends of `usable`; nobody
                // has memory of it yet, so the rights are taken from no reference.
                let guarded = unsafe {
                    mprotect(mapping.as_ptr().add(start).cast(), guard_bytes, MprotectFlags::empty())
                };
                // Out of mapping entries: without a guard the chunk is as usable, only counted more cautiously.
                let _ = guarded;
            }
        }
        Ok((mapping, usable))
    }

    /// Says why the nodes cannot be chosen, where they are only preferred.
    fn place(&self, mapping: &Mapping, usable: &Range<usize>) -> Result<Option<ArenaError>, ArenaError> {
        let Some(policy) = self.nodes.policy() else { return Ok(None) };
        let Err(source) = mapping.set_policy_range(usable.clone(), &policy, Existing::Stay) else {
            return Ok(None);
        };
        let nodes = policy.nodes().map_or("of the caller".to_owned(), ToString::to_string);
        let error = ArenaError::Placement { nodes, wanted_bytes: self.bytes, source };
        if let NodeChoice::Prefer(_) = self.nodes { Ok(Some(error)) } else { Err(error) }
    }

    fn map_error(&self, source: planish_sys::Error) -> ArenaError {
        let (page, wanted_bytes) = (self.page, self.bytes);
        match page {
            // mmap tells a short pool at once (ENOMEM) where it sets pages aside; else, and of the bound node, it only
            // shows when faulted.
            Page::HugeTlb(page_bytes) if is_shortage(&source) => {
                let free_pages = facts::pool_free(page_bytes, self.nodes.bound());
                ArenaError::PoolShort { page, wanted_bytes, free_pages, source: Some(source) }
            }
            _ => ArenaError::Map { page, wanted_bytes, source },
        }
    }
}

/// Refuses what the kernel could only give by killing somebody: a fault that finds no memory on a bound
/// node, none at all, or none that its control group allows, ends a process; a fault in a short pool raises
/// SIGBUS.
fn check_room(page: Page, bytes: usize, nodes: &NodeChoice) -> Result<(), ArenaError> {
    let wanted_bytes = bytes;
    let refused = |available: Option<facts::Available>| match available {
        Some(facts::Available { bytes: available_bytes, limit }) if available_bytes < bytes as u64 => {
            Err(ArenaError::Memory { page, wanted_bytes, available_bytes, limit })
        }
        _ => Ok(()),
    };
    if let Page::HugeTlb(page_bytes) = page {
        let free_pages = facts::pool_free(page_bytes, nodes.bound());
        return match free_pages {
            Some(free) if free < (bytes / page_bytes) as u64 => {
                Err(ArenaError::PoolShort { page, wanted_bytes, free_pages, source: None })
            }
            _ => refused(facts::pool_allowed(page_bytes)),
        };
    }
    refused(facts::memory_available(nodes.bound()))
}

/// Fails where a page lies on another node than those that are named. Where the kernel does not tell, nothing is known
/// to be amiss.
pub(crate) fn check_nodes(extent: Extent, nodes: &NodeChoice) -> Result<(), ArenaError> {
    let Some(named) = nodes.named() else { return Ok(()) };
    let wanted_bytes = extent.had_bytes;
    let elsewhere_bytes = node_bytes_of(&[extent]).map_or(0, |bytes| elsewhere(&bytes, named));
    if elsewhere_bytes == 0 {
        return Ok(());
    }
    Err(ArenaError::Misplaced { nodes: named.to_string(), wanted_bytes, elsewhere_bytes })
}

/// Whether faulting in tells that a pool is short, by an error and not by ending the process: since Linux 5.14.
fn tells_short_pool() -> bool {
    static TELLS: OnceLock<bool> = OnceLock::new();
    let probe = || map_anonymous(1, MapOptions::new(Page::Base.request()))?.advise(Advice::PopulateWrite);
    *TELLS.get_or_init(|| probe().is_ok())
}

fn is_shortage(error: &planish_sys::Error) -> bool {
    use planish_sys::Errno;
    matches!(error.errno(), Some(Errno::NOMEM | Errno::FAULT))
}

impl Mapped {
    /// Takes `bytes` aligned to `align` (a power of two); their offset, or `None` when they do not fit.
    pub(crate) fn take(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let start = self.range().start;
        let offset = (start + self.used).checked_next_multiple_of(align)? - start;
        let end = offset.checked_add(bytes).filter(|&end| end <= self.len())?;
        self.used = end;
        Some(offset)
    }

    /// First byte that slices may use; valid for [`len`](Self::len) bytes.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `usable` lies in the mapping, as `Wish::map` made it.
        unsafe { self.mapping.as_ptr().add(self.usable.start) }
    }

    /// Bytes that slices may use, used or not.
    pub(crate) fn len(&self) -> usize {
        self.usable.len()
    }

    /// Bytes that are handed out or lost to alignment.
    pub(crate) fn used(&self) -> usize {
        self.used - self.free.bytes()
    }

    /// Takes what is left at its end, whole lines of it from a line on: `least` bytes, and up to `most` where there is
    /// more.
    pub(crate) fn take_tail(&mut self, (least, most): (usize, usize)) -> Option<Range<usize>> {
        let start = self.range().start;
        let offset = (start + self.used).checked_next_multiple_of(LINE_BYTES)? - start;
        let left = self.len().checked_sub(offset)? / LINE_BYTES * LINE_BYTES;
        let bytes = left.min(most);
        if bytes < least {
            return None;
        }
        self.used = offset + bytes;
        Some(offset..offset + bytes)
    }

    /// What there is to tell of it.
    pub(crate) fn told(&self) -> Chunk {
        Chunk {
            page: self.page,
            bytes: self.len(),
            used_bytes: self.used(),
            spare_bytes: self.free.bytes(),
            tail_bytes: self.unused(),
        }
    }

    /// Why it could not be placed on the nodes that were preferred.
    pub(crate) fn unplaced(&mut self) -> Option<ArenaError> {
        self.unplaced.take()
    }

    /// Bytes at its end that nobody ever had.
    pub(crate) fn unused(&self) -> usize {
        self.len() - self.used
    }

    /// Bytes of it that the kernel does not have.
    pub(crate) fn there(&self) -> usize {
        self.len() - self.free.absent_bytes()
    }

    /// Bytes that were given back and that the kernel does not have.
    pub(crate) fn spare(&self) -> usize {
        self.free.bytes() - self.free.absent_bytes()
    }

    /// Takes a range of `bytes` that was given back, if there is one. Pages of it that the kernel has are faulted in
    /// again. What the range holds is what its last owner left there.
    ///
    /// # Errors
    /// When the kernel has no pages for it, or, where `exact` asks for it, none of the wanted size.
    pub(crate) fn take_again(
        &mut self,
        bytes: usize,
        (nodes, threads, exact): (&NodeChoice, NonZeroUsize, bool),
    ) -> Result<Option<usize>, ArenaError> {
        Ok(self.take_some_again((bytes, bytes), (nodes, threads, exact))?.map(|range| range.start))
    }

    /// The same for `least` bytes, or as many more as the first such range has, up to `most`.
    ///
    /// # Errors
    /// As [`take_again`](Self::take_again).
    pub(crate) fn take_some_again(
        &mut self,
        (least, most): (usize, usize),
        (nodes, threads, exact): (&NodeChoice, NonZeroUsize, bool),
    ) -> Result<Option<Range<usize>>, ArenaError> {
        let Some(range) = self.free.find(least, most) else { return Ok(None) };
        let absent = self.free.absent_in(&range, self.page.bytes());
        if !absent.is_empty() {
            let wanted_bytes = absent.iter().map(ExactSizeIterator::len).sum();
            check_room(self.page, wanted_bytes, nodes)?;
            for pages in absent {
                let place = self.usable.start + pages.start..self.usable.start + pages.end;
                let page = self.page;
                prefault(&mut self.mapping, place, threads).map_err(|source| ArenaError::Map {
                    page,
                    wanted_bytes,
                    source,
                })?;
                self.free.is_there(&pages);
            }
            if exact {
                self.check_backing()?;
            }
        }
        self.free.take(&range);
        Ok(Some(range))
    }

    /// Takes a range back that was handed out.
    pub(crate) fn give_back(&mut self, range: Range<usize>) {
        self.free.give_back(range);
    }

    /// Whether nothing of it is handed out, and something was.
    pub(crate) fn is_all_free(&self) -> bool {
        self.used > 0 && self.used() == 0
    }

    /// Hands whole free pages to the kernel, those at its end first, `bytes` at the most but never less than a page;
    /// returns how many bytes those were.
    pub(crate) fn trim(&mut self, mut bytes: usize) -> usize {
        let mut handed = 0;
        for pages in self.free.whole_pages(self.page.bytes()).into_iter().rev() {
            if bytes == 0 {
                break;
            }
            let take = bytes.next_multiple_of(self.page.bytes()).min(pages.len());
            let pages = pages.end - take..pages.end;
            let place = self.usable.start + pages.start..self.usable.start + pages.end;
            // What the kernel does not take stays where it is, and is as free as before.
            if self.mapping.discard(place).is_ok() {
                self.free.is_absent(&pages);
                handed += take;
                bytes = bytes.saturating_sub(take);
            }
        }
        handed
    }

    /// Puts what the kernel has of it onto huge pages, where such were wanted and are not had; says why that failed.
    pub(crate) fn collapse(&self) -> Option<planish_sys::Error> {
        if self.page != Page::Thp || self.check_backing().is_ok() {
            return None;
        }
        let collapse = |there: Range<usize>| {
            let place = self.usable.start + there.start..self.usable.start + there.end;
            self.mapping.advise_range(place, Advice::Collapse).err()
        };
        // Each range is tried, also after one has failed.
        let failed: Vec<_> = self.free.there(self.len()).into_iter().filter_map(collapse).collect();
        failed.into_iter().next()
    }

    /// The addresses of the usable bytes.
    pub(crate) fn range(&self) -> Range<usize> {
        let start = self.mapping.as_ptr().addr();
        start + self.usable.start..start + self.usable.end
    }

    /// What of it is read back: all of it was faulted in.
    pub(crate) fn extent(&self) -> Extent {
        Extent { range: self.range(), had_bytes: self.len(), node_stride: self.page.node_stride() }
    }

    /// Fails unless all that is there, and not nothing, lies on the pages that were asked for.
    pub(crate) fn check_backing(&self) -> Result<(), ArenaError> {
        if entries_of(&self.range(), self.page).is_some_and(|(there, wanted)| there > 0 && wanted == there) {
            return Ok(());
        }
        let backing =
            backing_of(&[self.range()]).map_err(|source| ArenaError::ReadBack { path: SMAPS, source })?;
        if is_all_on(&backing, self.page) {
            return Ok(());
        }
        let had_bytes =
            backing.iter().filter(|backing| backing.page == self.page).map(|backing| backing.bytes).sum();
        Err(ArenaError::NotBacked { page: self.page, wanted_bytes: self.len(), had_bytes })
    }
}
