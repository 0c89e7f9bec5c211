//! Memory that grows where it is.
//!
//! ```text
//!   no rights │ items ........ │ zeros .... │ addresses without memory and rights ............ │
//!             0              count        there                                              most
//! ```
//!
//! A vector that is full moves: for a while it needs both places, copying takes as long as everything before it did,
//! and whoever points into it is lost. Here the addresses for the most that it may ever have are taken first, which
//! costs nothing, and memory comes piece by piece: placed, faulted in and read back like a chunk of an arena. All of it
//! is of one kind of page, found by the first piece.

use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::{Deref, DerefMut, Range};
use std::slice;

use planish_sys::{Advice, Mapping};

use crate::achieved::{Achieved, Backing, Extent, SMAPS, backing_of, entries_of};
use crate::builder::{Builder, Fallback, nodes_to_ask};
use crate::chunk::{Reserved, Wish, check_nodes};
use crate::error::{ArenaError, not_collapsed, told};
use crate::ladder::{Granted, Ladder};
use crate::page::{Offer, Page};
use crate::plain::Plain;

/// Items in one run of addresses that never moves, however many there will be. Made by
/// [`Builder::growing`](crate::Builder::growing).
#[derive(Debug)]
pub struct Growing<T> {
    memory: Run,
    count: usize,
    most: usize,
    items: PhantomData<T>,
}

impl<T: Plain> Growing<T> {
    pub(crate) fn with(asked: Builder, most: usize) -> Result<Self, ArenaError> {
        const { assert!(size_of::<T>() > 0, "items without bytes need no memory that grows") };
        let most_bytes = most.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
        let most_bytes =
            most_bytes.ok_or(ArenaError::TooLarge { count: most, item_bytes: size_of::<T>() })?;
        // The first byte lies on a base page.
        if align_of::<T>() > Page::Base.bytes() {
            return Err(ArenaError::TooLarge { count: most, item_bytes: align_of::<T>() });
        }
        Ok(Self { memory: Run::begin(asked, most_bytes)?, count: 0, most, items: PhantomData })
    }

    /// Items that there can be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Has `count` items from now on: new ones are zeroed, those beyond are gone. The others stay where they are.
    ///
    /// # Errors
    /// [`ArenaError::Full`] for more than [`most`](Self::most), and as
    /// [`Arena::alloc_slice`](crate::Arena::alloc_slice) where more memory is needed. Nothing has changed then.
    pub fn resize(&mut self, count: usize) -> Result<(), ArenaError> {
        if count <= self.count {
            self.truncate(count);
            return Ok(());
        }
        self.have(count)?;
        self.count = count;
        Ok(())
    }

    /// Adds an item.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    pub fn push(&mut self, item: T) -> Result<(), ArenaError> {
        self.have(self.count + 1)?;
        // SAFETY: `have` has made memory for one more item than `count`.
        unsafe { self.start().add(self.count).write(item) };
        self.count += 1;
        Ok(())
    }

    /// Adds items, all of them or none.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    pub fn extend_from_slice(&mut self, items: &[T]) -> Result<(), ArenaError> {
        let before = self.count;
        self.resize(before.saturating_add(items.len()))?;
        self[before..].copy_from_slice(items);
        Ok(())
    }

    /// Has `count` items at the most from now on. Their memory stays for others, until [`trim`](Self::trim).
    pub fn truncate(&mut self, count: usize) {
        let Some(gone) = self.count.checked_sub(count) else { return };
        self.count = count;
        // SAFETY: those items were had until now, and nobody refers to them while `self` is borrowed exclusively. Zero
        // is a value of a `Plain` type, which has no drop; what lies above the items is zero then, as `have` says.
        unsafe { self.start().add(count).write_bytes(0, gone) };
    }

    /// Hands the memory above the items to the kernel, whole pages of it; returns how many bytes those were. Pages of a
    /// pool are free in it again.
    pub fn trim(&mut self) -> usize {
        self.memory.trim(self.count * size_of::<T>())
    }

    /// Where the first item is, or will be. Stays the same as long as this lives, and valid for as many items as there
    /// are; for owners that no lifetime can be written for.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start()
    }

    /// What it has, read back from the kernel now. Addresses that never had memory do not count; those that were
    /// trimmed are absent.
    ///
    /// # Errors
    /// As [`Arena::achieved`](crate::Arena::achieved).
    pub fn achieved(&self) -> Result<Achieved, ArenaError> {
        self.memory.achieved()
    }

    /// Puts what wanted transparent huge pages and lies on others onto huge pages now, as
    /// [`Arena::collapse`](crate::Arena::collapse) does, and tells what is had afterwards.
    ///
    /// # Errors
    /// As [`achieved`](Self::achieved).
    pub fn collapse(&self) -> Result<Achieved, ArenaError> {
        self.memory.collapse()
    }

    fn start(&self) -> *mut T {
        self.memory.as_ptr().cast()
    }

    /// Memory for `count` items; what lies above those that there are is zero, as it came from the kernel or was left
    /// by `truncate`.
    fn have(&mut self, count: usize) -> Result<(), ArenaError> {
        if count > self.most {
            let bytes = |count: usize| count.saturating_mul(size_of::<T>());
            return Err(ArenaError::Full { wanted_bytes: bytes(count), most_bytes: bytes(self.most) });
        }
        let bytes = count * size_of::<T>();
        if bytes > self.memory.there { self.memory.grow(bytes) } else { Ok(()) }
    }
}

impl<T: Plain> Deref for Growing<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `have` made memory for `count` items, each of which was written, or is zero, a value of a `Plain`
        // type. It begins on a page, and no item wants more (`with`). The mutable one is borrowed from `self` alone.
        unsafe { slice::from_raw_parts(self.start(), self.count) }
    }
}

impl<T: Plain> DerefMut for Growing<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start(), self.count) }
    }
}

/// The memory of it, in bytes.
#[derive(Debug)]
struct Run {
    asked: Builder,
    offer: Offer,
    page: Page,
    mapping: Mapping,
    /// What of the mapping may get memory, in whole pages; a page without rights lies before and behind it, but round
    /// pages of a pool.
    usable: Range<usize>,
    /// Bytes from the start on that have memory, whole pages.
    there: usize,
    /// The most that `there` ever was.
    had: usize,
    /// Bytes from the start on that were opened, also for a piece that then failed: for the kernel one mapping, which
    /// smaps counts as one.
    opened: usize,
    /// Bytes of the next piece, unless more is needed.
    next_bytes: usize,
    why_not: Vec<String>,
}

impl Run {
    /// Addresses for `most_bytes`, and memory for the first piece.
    fn begin(asked: Builder, most_bytes: usize) -> Result<Self, ArenaError> {
        let offer = Offer::of_this_kernel();
        let most_bytes = most_bytes.max(1);
        let first_bytes =
            if asked.capacity_bytes > 0 { asked.capacity_bytes } else { asked.growth.first_bytes };
        let first_bytes = first_bytes.clamp(1, most_bytes);
        let (nodes, missing) = nodes_to_ask(&asked)?;
        let begun = |page: Page, bytes: usize| -> Result<Granted<Self>, ArenaError> {
            let threads = asked.threads;
            let wish = Wish { page, bytes: most_bytes, nodes: &nodes, threads, offer: &offer, shared: false };
            let Reserved { mapping, usable, unplaced } = wish.reserve()?;
            if asked.fallback == Fallback::Refuse
                && let Some(error) = unplaced
            {
                return Err(error);
            }
            let unplaced = unplaced.map(|error| told(&error));
            let (asked, offer) = (asked.clone(), offer.clone());
            let mut run = Self {
                asked,
                offer,
                page,
                mapping,
                usable,
                there: 0,
                had: 0,
                opened: 0,
                next_bytes: 0,
                why_not: unplaced.into_iter().collect(),
            };
            let shortfall = run.fill(bytes)?;
            Ok((run, shortfall))
        };
        let ladder = Ladder { asked: &asked, offer: &offer };
        let (mut run, why_not) = ladder.descend(first_bytes, first_bytes, begun)?;
        run.why_not.extend(missing.into_iter().chain(why_not));
        Ok(run)
    }

    /// Memory for `bytes` in all, which are more than there is and no more than the most: a piece of twice the last, or
    /// of what is needed where memory is short.
    fn grow(&mut self, bytes: usize) -> Result<(), ArenaError> {
        let wanted = bytes.max(self.there.saturating_add(self.next_bytes));
        let shortfall = match self.fill(wanted) {
            Err(error) if wanted > bytes && !error.is_final() => self.fill(bytes)?,
            outcome => outcome?,
        };
        if let Some(why) = shortfall
            && !self.why_not.contains(&why)
        {
            self.why_not.push(why);
        }
        Ok(())
    }

    /// Memory up to `bytes`, rounded up to whole pages; and in what it falls short of the wish where that is allowed.
    fn fill(&mut self, bytes: usize) -> Result<Option<String>, ArenaError> {
        let end = bytes.min(self.usable.len()).next_multiple_of(self.page.bytes());
        let place = self.usable.start + self.there..self.usable.start + end;
        let before = if self.missing(&place).is_some() { Vec::new() } else { self.backing()? };
        let Builder { nodes, threads, .. } = &self.asked;
        let (page, bytes) = (self.page, place.len());
        let wish = Wish { page, bytes, nodes, threads: *threads, offer: &self.offer, shared: false };
        // What is refused here has changed nothing.
        wish.open(&self.mapping, place.clone())?;
        self.opened = self.opened.max(end);
        if let Err(error) = wish.fill(&mut self.mapping, place.clone()) {
            // What it got before it failed goes back; where the kernel refuses that, the next attempt has it.
            let _ = self.mapping.discard(place);
            return Err(error);
        }
        let mut missed_bytes = self.missed_bytes(&place, &before)?;
        if missed_bytes > 0 && self.page == Page::Thp {
            // Free memory may be in pieces; this call compacts and copies, so its failure only leaves what is.
            let _ = self.mapping.advise_range(place.clone(), Advice::Collapse);
            missed_bytes = self.missed_bytes(&place, &before)?;
        }
        let mut shortfall = None;
        if missed_bytes > 0 {
            let (page, wanted_bytes) = (self.page, place.len());
            let error = ArenaError::NotBacked { page, wanted_bytes, had_bytes: wanted_bytes - missed_bytes };
            if self.asked.fallback == Fallback::Refuse {
                let _ = self.mapping.discard(place);
                return Err(error);
            }
            shortfall = Some(error.to_string());
        }
        if self.asked.fallback == Fallback::Refuse {
            let start = self.mapping.as_ptr().addr() + place.start;
            let node_stride = self.page.node_stride();
            let piece = Extent { range: start..start + place.len(), had_bytes: place.len(), node_stride };
            if let Err(error) = check_nodes(piece, &self.asked.nodes) {
                let _ = self.mapping.discard(place);
                return Err(error);
            }
        }
        self.there = end;
        self.had = self.had.max(end);
        self.next_bytes = self.asked.growth.after(place.len());
        Ok(shortfall)
    }

    /// What a piece that was filled has less on its kind of page than it is long: by the entries of the page table, or
    /// by what smaps says more of all than `before`.
    fn missed_bytes(&self, place: &Range<usize>, before: &[Backing]) -> Result<usize, ArenaError> {
        match self.missing(place) {
            Some(bytes) => Ok(bytes),
            None => Ok(missed(before, &self.backing()?, self.page, place.len())),
        }
    }

    fn missing(&self, place: &Range<usize>) -> Option<usize> {
        let start = self.mapping.as_ptr().addr();
        let (there, wanted) = entries_of(&(start + place.start..start + place.end), self.page)?;
        // Where the kernel shows nothing, nothing is known to be as asked for.
        Some(if there == 0 { place.len() } else { there - wanted })
    }

    /// What kinds of page it lies on.
    fn backing(&self) -> Result<Vec<Backing>, ArenaError> {
        let start = self.as_ptr().addr();
        let range = start..start + self.opened;
        backing_of(&[range]).map_err(|source| ArenaError::ReadBack { path: SMAPS, source })
    }

    fn trim(&mut self, keep_bytes: usize) -> usize {
        let keep = keep_bytes.next_multiple_of(self.page.bytes());
        let place = self.usable.start + keep..self.usable.start + self.there;
        if place.is_empty() || self.mapping.discard(place.clone()).is_err() {
            return 0;
        }
        self.there = keep;
        self.next_bytes = self.asked.growth.after(0);
        place.len()
    }

    fn achieved(&self) -> Result<Achieved, ArenaError> {
        let start = self.as_ptr().addr();
        let range = start..start + self.opened;
        let extent = Extent { range, had_bytes: self.had, node_stride: self.page.node_stride() };
        let asked = (self.asked.preference, &self.asked.nodes);
        Achieved::read(asked, vec![extent], self.why_not.clone())
    }

    fn collapse(&self) -> Result<Achieved, ArenaError> {
        let place = self.usable.start..self.usable.start + self.there;
        let is_wanted = self.page == Page::Thp && !place.is_empty();
        let failed = is_wanted.then(|| self.mapping.advise_range(place, Advice::Collapse).err()).flatten();
        let mut achieved = self.achieved()?;
        achieved.why_not.extend(failed.map(|error| not_collapsed(&error)));
        Ok(achieved)
    }

    fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `usable` lies in the mapping, as `Wish::reserve` made it.
        unsafe { self.mapping.as_ptr().add(self.usable.start) }
    }
}

/// Bytes of a piece that lie on other pages than `page`, by what the whole of it lay on before and after the piece was
/// faulted in.
///
/// All of the piece was faulted in, so what is on other pages since then is of the piece. What is on `page` tells less:
/// pages of earlier pieces may go while this one comes (swap), and a pool may have kept what a failed piece got
/// (before Linux 5.18, MADV_DONTNEED refuses pages of pools).
fn missed(before: &[Backing], after: &[Backing], page: Page, piece_bytes: usize) -> usize {
    if after.is_empty() {
        // The kernel shows nothing, so nothing is known to be as asked for.
        return piece_bytes;
    }
    let elsewhere = |all: &[Backing]| -> usize {
        all.iter().filter(|backing| backing.page != page).map(|backing| backing.bytes).sum()
    };
    elsewhere(after).saturating_sub(elsewhere(before)).min(piece_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_judged_by_its_own_pages() {
        const MB: usize = 1 << 20;
        let on = |page, bytes| Backing { page, bytes };
        let (thp, base, pool) = (Page::Thp, Page::Base, Page::HugeTlb(2 * MB));
        assert_eq!(missed(&[], &[on(thp, 4 * MB)], thp, 4 * MB), 0);
        assert_eq!(missed(&[on(thp, 4 * MB)], &[on(thp, 6 * MB), on(base, 2 * MB)], thp, 4 * MB), 2 * MB);
        assert_eq!(
            missed(&[on(base, MB)], &[on(thp, 4 * MB), on(base, MB)], thp, 4 * MB),
            0,
            "an earlier piece missed"
        );
        assert_eq!(
            missed(&[on(thp, 4 * MB)], &[on(thp, 5 * MB)], thp, 4 * MB),
            0,
            "3 MB of earlier ones went to swap"
        );
        assert_eq!(
            missed(&[on(pool, 4 * MB)], &[on(pool, 4 * MB)], pool, 2 * MB),
            0,
            "kept from a failed piece"
        );
        assert_eq!(missed(&[], &[], pool, 2 * MB), 2 * MB, "the kernel tells nothing of pools");
    }
}
