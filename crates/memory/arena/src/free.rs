//! What of a chunk was given back, and which pages of that the kernel has.
//!
//! ```text
//!   0                                                        used
//!   │ leased │ free ............................ │ leased │ free │ never handed out
//!            │      │ absent: whole pages │      │
//! ```
//!
//! All numbers are bytes from the start of the chunk. No memory is touched here.

use std::ops::Range;

/// Ranges that are free, and those of them that are absent.
#[derive(Debug, Default)]
pub(crate) struct Free {
    free: Ranges,
    absent: Ranges,
}

impl Free {
    /// Bytes that are free.
    pub(crate) fn bytes(&self) -> usize {
        self.free.bytes()
    }

    /// Bytes that are free and that the kernel has.
    pub(crate) fn absent_bytes(&self) -> usize {
        self.absent.bytes()
    }

    /// The beginning of the first free range of `least` bytes or more: all of it, but `most` at the most.
    pub(crate) fn find(&self, least: usize, most: usize) -> Option<Range<usize>> {
        let free = self.free.0.iter().find(|free| free.len() >= least)?;
        Some(free.start..free.start + free.len().min(most))
    }

    /// The whole pages that are absent and of which a range has a byte.
    pub(crate) fn absent_in(&self, range: &Range<usize>, page_bytes: usize) -> Vec<Range<usize>> {
        let pages = |absent: &Range<usize>| {
            let start = absent.start.max(range.start) / page_bytes * page_bytes;
            start..absent.end.min(range.end).next_multiple_of(page_bytes)
        };
        let touches = |absent: &&Range<usize>| absent.start < range.end && range.start < absent.end;
        self.absent.0.iter().filter(touches).map(pages).collect()
    }

    /// What of a chunk of `bytes` the kernel has.
    pub(crate) fn there(&self, bytes: usize) -> Vec<Range<usize>> {
        let mut there = Ranges::default();
        there.add(0..bytes);
        self.absent.0.iter().for_each(|absent| there.cut(absent));
        there.0
    }

    /// The whole pages that are free and not absent.
    pub(crate) fn whole_pages(&self, page_bytes: usize) -> Vec<Range<usize>> {
        let mut pages = Ranges::default();
        for free in &self.free.0 {
            let whole = free.start.next_multiple_of(page_bytes)..free.end / page_bytes * page_bytes;
            if whole.start < whole.end {
                pages.add(whole);
            }
        }
        self.absent.0.iter().for_each(|absent| pages.cut(absent));
        pages.0
    }

    /// Takes a range that is free.
    pub(crate) fn take(&mut self, range: &Range<usize>) {
        self.free.cut(range);
    }

    /// Takes a range back.
    pub(crate) fn give_back(&mut self, range: Range<usize>) {
        self.free.add(range);
    }

    /// Notes that the kernel has these pages.
    pub(crate) fn is_absent(&mut self, pages: &Range<usize>) {
        self.absent.add(pages.clone());
    }

    /// Notes that these pages are there again.
    pub(crate) fn is_there(&mut self, pages: &Range<usize>) {
        self.absent.cut(pages);
    }
}

/// Disjoint ranges in order, none of which touches the next.
#[derive(Debug, Default)]
struct Ranges(Vec<Range<usize>>);

impl Ranges {
    fn bytes(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    /// Adds a range of which nothing was there.
    fn add(&mut self, mut range: Range<usize>) {
        let first = self.0.partition_point(|other| other.end < range.start);
        let end = self.0.partition_point(|other| other.start <= range.end);
        if first < end {
            range = self.0[first].start.min(range.start)..self.0[end - 1].end.max(range.end);
        }
        self.0.splice(first..end, [range]);
    }

    /// Takes out what is there of a range.
    fn cut(&mut self, range: &Range<usize>) {
        let first = self.0.partition_point(|other| other.end <= range.start);
        let end = self.0.partition_point(|other| other.start < range.end);
        if first >= end {
            return;
        }
        let before = self.0[first].start..range.start;
        let after = range.end..self.0[end - 1].end;
        self.0.splice(first..end, [before, after].into_iter().filter(|rest| rest.start < rest.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: usize = 64;
    const PAGE: usize = 8;

    /// For each byte whether it is in one of the ranges.
    fn map(ranges: &Ranges) -> Vec<bool> {
        assert!(ranges.0.windows(2).all(|two| two[0].end < two[1].start), "{ranges:?}");
        assert!(ranges.0.iter().all(|range| range.start < range.end), "{ranges:?}");
        (0..BYTES).map(|byte| ranges.0.iter().any(|range| range.contains(&byte))).collect()
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_bytes(changes in prop::collection::vec((0..BYTES, 1..20usize, any::<bool>()), 0..40)) {
            let (mut ranges, mut model) = (Ranges::default(), vec![false; BYTES]);
            for (start, length, add) in changes {
                let range = start..(start + length).min(BYTES);
                if !add {
                    ranges.cut(&range);
                    model[range].fill(false);
                } else if !model[range.clone()].contains(&true) {
                    ranges.add(range.clone());
                    model[range].fill(true);
                }
                prop_assert_eq!(&map(&ranges), &model);
            }
            prop_assert_eq!(ranges.bytes(), model.iter().filter(|is_in| **is_in).count());
        }

        #[test]
        fn whole_pages_are_free_and_absent_ones_are_found_again(
            leases in prop::collection::vec((0..BYTES, 1..30usize), 0..6), trimmed in 0..4usize,
            wanted in (0..BYTES, 1..30usize),
        ) {
            let mut free = Free::default();
            free.give_back(0..BYTES);
            for (start, length) in leases {
                free.take(&(start..(start + length).min(BYTES)));
            }
            let is_free = map(&free.free);
            let pages = free.whole_pages(PAGE);
            let whole = |page: &usize| is_free[page * PAGE..(page + 1) * PAGE].iter().all(|free| *free);
            let count: usize = pages.iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(count / PAGE, (0..BYTES / PAGE).filter(whole).count());
            for page in pages.iter().take(trimmed) {
                free.is_absent(page);
            }
            let absent = map(&free.absent);
            let there: Vec<bool> = absent.iter().map(|absent| !absent).collect();
            prop_assert_eq!(map(&Ranges(free.there(BYTES))), there);
            let range = wanted.0..(wanted.0 + wanted.1).min(BYTES);
            let mut back = [false; BYTES];
            for pages in free.absent_in(&range, PAGE) {
                back[pages.clone()].fill(true);
                free.is_there(&pages);
            }
            // Exactly the absent pages that the range has a byte of.
            for byte in 0..BYTES {
                let page = byte / PAGE * PAGE..(byte / PAGE + 1) * PAGE;
                let touched = page.clone().any(|byte| range.contains(&byte)) && absent[byte];
                prop_assert_eq!(back[byte], touched, "byte {}", byte);
            }
            prop_assert!(map(&free.absent)[range].iter().all(|absent| !absent));
            let there: usize = free.whole_pages(PAGE).iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(there + free.absent_bytes(), count);
        }
    }
}
