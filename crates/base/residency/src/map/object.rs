//! Shared memory as it is, whoever has mapped it: one code for each page, so that any part of it can be summed up.

use std::ops::Range;

use planish_sys::pagemap::Pagemap;
use planish_sys::peek::{Peek, Present, SharedObject};
use planish_sys::policy::{PageAt, pages_at};

use super::eyes::Eyes;
use crate::rows::{Part, add_part};
use crate::smaps::Backing;

/// Pages that are asked about in one call.
const PAGES_PER_CALL: usize = 16 << 10;

/// Where the pages of one shared object lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPages {
    /// Size in bytes of the unit that is told apart: a page of its pool, or a base page.
    unit_bytes: u64,
    /// What is told of a unit; its index is the code.
    codes: Vec<Part>,
    /// Units side by side that are there: where in the object, and the code of each.
    extents: Vec<(u64, Vec<u8>)>,
    /// Bytes that are in swap.
    pub swapped_bytes: u64,
    /// Bytes that have memory which nobody has written yet: nobody tells where it lies, and no part counts it.
    pub unwritten_bytes: u64,
}

impl ObjectPages {
    /// Looks at all of `object` without touching it.
    pub(crate) fn look(peek: &Peek, object: &SharedObject, eyes: &mut Eyes) -> planish_sys::Result<Self> {
        let mut pages = Self { unit_bytes: object.page_bytes(), ..Self::default() };
        let own = Pagemap::open(None)?;
        let whole = 0..object.bytes.next_multiple_of(object.page_bytes());
        let looked = peek.look(object, whole, |present| {
            present.iter().try_for_each(|run| pages.add(run, object.is_hugetlb(), &own, eyes))
        })?;
        pages.swapped_bytes = looked.swapped_bytes;
        pages.unwritten_bytes = looked.unwritten_bytes;
        Ok(pages)
    }

    /// Adds pages that are mapped in our window at this moment.
    fn add(
        &mut self,
        run: &Present,
        hugetlb: bool,
        own: &Pagemap,
        eyes: &mut Eyes,
    ) -> planish_sys::Result<()> {
        let unit = usize::try_from(self.unit_bytes).expect("a page fits an address space");
        for first in (0..run.count).step_by(PAGES_PER_CALL) {
            let count = PAGES_PER_CALL.min(run.count - first);
            let start = run.address + first * unit;
            let addresses: Vec<usize> = (0..count).map(|page| start + page * unit).collect();
            let at = eyes.nodes_of(|| pages_at(None, &addresses), count)?;
            let mut frames = vec![0; if hugetlb || !eyes.sees_folios() { 0 } else { count }];
            own.frames(start as u64, &mut frames)?;
            let folios = eyes.folio_pages(&frames);
            for (page, (node, _)) in at.into_iter().enumerate() {
                let (backing, page_bytes) = match folios.get(page) {
                    _ if hugetlb => (Backing::Hugetlb, self.unit_bytes),
                    Some(pages) => eyes.backing_of(*pages, true),
                    None => (Backing::Base, self.unit_bytes),
                };
                let part = Part { backing, node, page_bytes, bytes: 0, estimated: false };
                self.push(run.offset + (first + page) as u64 * self.unit_bytes, part);
            }
        }
        Ok(())
    }

    /// Adds the unit at `offset`, which lies beyond all others.
    fn push(&mut self, offset: u64, part: Part) {
        let known = self.codes.iter().position(|known| *known == part);
        let code = known.unwrap_or_else(|| {
            // More kinds than a byte counts, which no machine has, share the last one.
            if self.codes.len() <= usize::from(u8::MAX) {
                self.codes.push(part);
            }
            self.codes.len() - 1
        });
        let code = u8::try_from(code).expect("there are 256 codes at most");
        match self.extents.last_mut() {
            Some((start, codes)) if *start + codes.len() as u64 * self.unit_bytes == offset => {
                codes.push(code)
            }
            _ => self.extents.push((offset, vec![code])),
        }
    }

    /// What of `range` (bytes of the object) is in memory; a page that reaches over an end counts in part.
    pub fn parts(&self, range: &Range<u64>) -> Vec<Part> {
        let mut bytes = vec![0u64; self.codes.len()];
        let end_of = |(start, codes): &(u64, Vec<u8>)| start + codes.len() as u64 * self.unit_bytes;
        let from = self.extents.partition_point(|extent| end_of(extent) <= range.start);
        for (start, codes) in self.extents[from..].iter().take_while(|(start, _)| *start < range.end) {
            let end = start + codes.len() as u64 * self.unit_bytes;
            let first = range.start.saturating_sub(*start) / self.unit_bytes;
            let last = (range.end.min(end) - start).div_ceil(self.unit_bytes);
            for unit in first..last {
                let from = (start + unit * self.unit_bytes).max(range.start);
                let to = (start + (unit + 1) * self.unit_bytes).min(range.end);
                bytes[usize::from(codes[unit as usize])] += to - from;
            }
        }
        let mut parts = Vec::new();
        let some = self.codes.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0);
        some.for_each(|(part, bytes)| add_part(&mut parts, Part { bytes, ..*part }));
        parts
    }
}

/// The node of a page, and whether it is one that counts as resident.
pub(crate) type NodeOf = (Option<u32>, bool);

/// What the answers of the kernel mean: a page that has gone since, or that is the page of zeroes, is not resident.
pub(crate) fn node_of(at: PageAt) -> NodeOf {
    match at {
        PageAt::Node(node) => (Some(node), true),
        PageAt::Absent | PageAt::Failed(planish_sys::Errno::FAULT) => (None, false),
        PageAt::Failed(_) => (None, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(node: u32, bytes: u64) -> Part {
        Part { backing: Backing::Base, node: Some(node), page_bytes: 4, bytes, estimated: false }
    }

    #[test]
    fn parts_of_an_object_are_cut_at_the_ends_of_the_range() {
        let mut pages = ObjectPages { unit_bytes: 4, ..ObjectPages::default() };
        for (offset, node) in [(4, 0), (8, 1), (12, 0), (40, 1)] {
            pages.push(offset, part(node, 0));
        }
        assert_eq!(pages.extents.len(), 2);
        assert_eq!(pages.parts(&(0..100)), [part(0, 8), part(1, 8)]);
        assert_eq!(pages.parts(&(6..10)), [part(0, 2), part(1, 2)]);
        assert_eq!(pages.parts(&(13..41)), [part(0, 3), part(1, 1)]);
        assert_eq!(pages.parts(&(16..40)), []);
    }
}
