//! Shared memory as it is, whoever has mapped it: one code for each page, so that any part of it can be summed up.

use std::collections::BTreeMap;
use std::ops::Range;

use planish_sys::pagemap::Pagemap;
use planish_sys::peek::{Peek, Present, SharedObject};
use planish_sys::policy::{PageAt, pages_at};
use rustix::process::Pid;

use super::eyes::Eyes;
use super::tables::Tables;
use crate::maps::FileId;
use crate::ranges;
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
    /// Of an object that could not be looked at: what a process has mapped of it, not yet among the extents.
    met: Vec<(Range<u64>, u8)>,
    /// The same where only sums are known: what the parts of it have that some process maps.
    /// None overlaps another one. By their starts, with their ends.
    sums: BTreeMap<u64, (u64, Vec<Part>)>,
    /// Of an object that was looked at, the parts that were: those that are mapped, in rising order and apart.
    seen: Vec<Range<u64>>,
    /// Bytes of them on broken pages.
    poisoned_bytes: u64,
    /// Bytes of the mapped parts that are in swap.
    pub swapped_bytes: u64,
    /// Bytes of the mapped parts that have memory which nobody has written yet: nobody tells where it lies, and no part
    /// counts it.
    pub unwritten_bytes: u64,
    /// Whether that is as much as may be: the object has such memory and holes besides, and which of them are mapped
    /// nobody tells.
    pub unwritten_estimated: bool,
}

impl ObjectPages {
    /// Looks at the parts `mapped` of `object` without touching them, but for those that were looked at before. What
    /// nobody maps is left alone, however much it is. `tables`: what a process has mapped of this file without a hole,
    /// which need not be looked at.
    pub(crate) fn look(
        &mut self,
        peek: &Peek,
        object: &SharedObject,
        mapped: Vec<Range<u64>>,
        tables: Option<(&Tables<'_>, &FileId)>,
        eyes: &mut Eyes,
    ) -> planish_sys::Result<()> {
        self.unit_bytes = object.page_bytes();
        let own = Pagemap::open(None)?;
        let fresh = ranges::without(&ranges::union(in_units(mapped, self.unit_bytes)), &self.seen);
        let within = ranges::within(&fresh, end_of(object));
        if let Some((tables, file)) = tables {
            self.ask(tables, file, &within, eyes);
        }
        let placed: Vec<Range<u64>> = self.placed().collect();
        // All that the kernel has given a pool's file may be known by now: the rest is holes.
        let is_known = object.is_hugetlb() && ranges::length(&placed) >= object.allocated_bytes;
        let rest = if is_known { Vec::new() } else { ranges::without(&within, &placed) };
        let ours = Mapper { pid: None, pagemap: &own };
        let looked = peek.look(object, &rest, |present| self.add_all(present, ours, eyes))?;
        self.poisoned_bytes += looked.poisoned_bytes;
        self.join_up();
        self.swapped_bytes += self.swapped(object, &within)?;
        self.seen = ranges::union(std::mem::take(&mut self.seen).into_iter().chain(fresh).collect());
        (self.unwritten_bytes, self.unwritten_estimated) = self.unwritten(object);
        eyes.blind_poisoned(self.poisoned_bytes);
        Ok(())
    }

    /// Adds what of `within` a process has mapped without a hole. What is not told is looked at with all else: where a
    /// container forbids to ask (EPERM), what has gone meanwhile, be it the process (ESRCH).
    fn ask(&mut self, tables: &Tables<'_>, file: &FileId, within: &[Range<u64>], eyes: &mut Eyes) {
        let present = tables.pages(file, within, self.unit_bytes);
        let _ = self.add_all(&present, Mapper { pid: Some(tables.pid), pagemap: tables.pagemap }, eyes);
        self.join_up();
    }

    /// Whether all of `range` was looked at.
    pub(crate) fn has_seen(&self, range: &Range<u64>) -> bool {
        ranges::has(&self.seen, range)
    }

    /// Bytes of `parts`, which were looked at, that are in swap: no more than the machine has there, of which others
    /// have their share as well.
    fn swapped(&self, object: &SharedObject, parts: &[Range<u64>]) -> planish_sys::Result<u64> {
        let before = planish_sys::pages::swapped_bytes();
        if before == 0 || object.is_hugetlb() {
            return Ok(0);
        }
        let missing = self.missing(object, parts)?;
        Ok(missing.min(planish_sys::pages::swapped_bytes().max(before)))
    }

    /// Bytes of `parts` that have data and were not in memory when they were looked at, nor are now. One question is
    /// not enough: what is written between it and the next one has data as well, and what is freed had it.
    fn missing(&self, object: &SharedObject, parts: &[Range<u64>]) -> planish_sys::Result<u64> {
        let placed: Vec<Range<u64>> = self.placed().collect();
        let data = object.data_in(&ranges::without(parts, &placed));
        let absent = ranges::without(&data, &object.in_core(&data)?);
        Ok(ranges::length(&object.data_in(&absent)))
    }

    /// Bytes of the mapped parts that have memory which nobody wrote, and whether they may be fewer. What the kernel
    /// has given a file and no data is in is told of all of it, at one moment: the mapped parts have no more of it than
    /// they have holes, and what is not mapped no more than it has holes.
    fn unwritten(&self, object: &SharedObject) -> (u64, bool) {
        let end = end_of(object);
        let found = self.placed_bytes(&(0..end)).saturating_add(self.swapped_bytes);
        let given = object.allocated_bytes_now();
        if object.is_hugetlb() || given <= found.saturating_add(self.poisoned_bytes) {
            return (0, false);
        }
        let data = object.data_in(&[Range { start: 0, end }]);
        // The lesser of before and after: what came or went meanwhile is no difference.
        let given = given.min(object.allocated_bytes_now()).saturating_sub(ranges::length(&data));
        let mapped_bytes = ranges::length(&ranges::within(&self.seen, end));
        let data_of_others = ranges::length(&ranges::without(&data, &self.seen));
        let holes = mapped_bytes.saturating_sub(ranges::length(&data) - data_of_others);
        let others = end.saturating_sub(mapped_bytes);
        share_of_holes(given, holes, others.saturating_sub(data_of_others))
    }

    /// Adds pages that somebody has mapped at this moment: as many in a call as it takes, however they lie.
    fn add_all(
        &mut self,
        present: &[Present],
        mapper: Mapper<'_>,
        eyes: &mut Eyes,
    ) -> planish_sys::Result<()> {
        let unit = usize::try_from(self.unit_bytes).expect("a page fits an address space");
        let (mut addresses, mut offsets) = (Vec::new(), Vec::new());
        for run in present {
            for first in (0..run.count).step_by(PAGES_PER_CALL) {
                let pages = first..run.count.min(first + PAGES_PER_CALL);
                if addresses.len() + pages.len() > PAGES_PER_CALL {
                    self.add(&addresses, &offsets, mapper, eyes)?;
                    addresses.clear();
                    offsets.clear();
                }
                addresses.extend(pages.clone().map(|page| run.address + page * unit));
                offsets.extend(pages.map(|page| run.offset + page as u64 * self.unit_bytes));
            }
        }
        self.add(&addresses, &offsets, mapper, eyes)
    }

    /// Adds the pages at these addresses, which are at these offsets of the object. Of another process's, those that
    /// have gone are left out.
    fn add(
        &mut self,
        addresses: &[usize],
        offsets: &[u64],
        mapper: Mapper<'_>,
        eyes: &mut Eyes,
    ) -> planish_sys::Result<()> {
        // Pages of a pool are larger than base pages, and all else is kept in units of these.
        let is_of_pool = self.unit_bytes > eyes.base_bytes;
        let frames = match is_of_pool || !eyes.sees_folios() {
            true => Vec::new(),
            false => mapper.pagemap.frames_at(addresses)?,
        };
        // A page of another process may have gone since, which its frame tells, or else the question for its node.
        let may_have_gone = mapper.pid.is_some();
        let at = match may_have_gone && frames.is_empty() {
            true => pages_at(mapper.pid, addresses)?.into_iter().map(node_of).collect(),
            false => eyes.nodes_of(|| pages_at(mapper.pid, addresses), addresses.len())?,
        };
        let folios = eyes.folio_pages(&frames);
        for (page, (node, _)) in at.into_iter().enumerate() {
            if may_have_gone && (node.is_none() || frames.get(page) == Some(&0)) {
                continue;
            }
            let (backing, page_bytes) = match folios.get(page) {
                _ if is_of_pool => (Backing::Hugetlb, self.unit_bytes),
                Some(pages) => eyes.backing_of(*pages, true),
                None => (Backing::Base, self.unit_bytes),
            };
            let part = Part { backing, node, page_bytes, bytes: 0, estimated: false };
            self.push(offsets[page], part);
        }
        Ok(())
    }

    /// The code of `part`.
    fn code_of(&mut self, part: Part) -> u8 {
        let known = self.codes.iter().position(|known| *known == part);
        let code = known.unwrap_or_else(|| {
            // More kinds than a byte counts, which no machine has, share the last one.
            if self.codes.len() <= usize::from(u8::MAX) {
                self.codes.push(part);
            }
            self.codes.len() - 1
        });
        u8::try_from(code).expect("there are 256 codes at most")
    }

    /// Adds the unit at `offset`, which is not among them yet.
    fn push(&mut self, offset: u64, part: Part) {
        let code = self.code_of(part);
        match self.extents.last_mut() {
            Some((start, codes)) if *start + codes.len() as u64 * self.unit_bytes == offset => {
                codes.push(code)
            }
            _ => self.extents.push((offset, vec![code])),
        }
    }

    /// Adds `range`, which the page tables of a process map: to be settled when all of the process was read.
    pub(crate) fn meet(&mut self, range: Range<u64>, unit_bytes: u64, part: Part) {
        self.unit_bytes = unit_bytes;
        let code = self.code_of(Part { bytes: 0, ..part });
        match self.met.last_mut() {
            Some((last, known)) if last.end == range.start && *known == code => last.end = range.end,
            _ => self.met.push((range, code)),
        }
    }

    /// Counts what was met, each unit once: whoever maps it, it is the same page.
    pub(crate) fn settle(&mut self) {
        let mut met = std::mem::take(&mut self.met);
        met.sort_unstable_by_key(|(range, _)| range.start);
        let (mut fresh, mut reached) = (Vec::new(), 0);
        for (range, code) in met {
            let mut at = range.start.max(reached);
            reached = reached.max(range.end);
            while at < range.end {
                let next = self.extents.partition_point(|extent| self.place_of(extent).end <= at);
                let next = self.extents.get(next);
                if let Some(known) = next.filter(|(start, _)| *start <= at) {
                    at = self.place_of(known).end;
                    continue;
                }
                let end = next.map_or(range.end, |(start, _)| range.end.min(*start));
                let count = usize::try_from((end - at) / self.unit_bytes).expect("units of an address space");
                fresh.push((at, vec![code; count]));
                at = end;
            }
        }
        if fresh.is_empty() {
            return;
        }
        self.extents.append(&mut fresh);
        self.join_up();
    }

    /// Puts the extents in order, and those that touch together.
    fn join_up(&mut self) {
        self.extents.sort_by_key(|(start, _)| *start);
        let mut joined: Vec<(u64, Vec<u8>)> = Vec::new();
        for (start, mut codes) in std::mem::take(&mut self.extents) {
            match joined.last_mut() {
                Some((first, last)) if *first + last.len() as u64 * self.unit_bytes == start => {
                    last.append(&mut codes);
                }
                _ => joined.push((start, codes)),
            }
        }
        self.extents = joined;
    }

    /// Adds what one mapping of `extent` has in sum. Of mappings that overlap the one with most counts: the others may
    /// have mapped the same pages, or others; both is told as an estimate.
    pub(crate) fn add_sum(&mut self, extent: Range<u64>, parts: Vec<Part>) {
        let over = self.sums_in(&extent).map(|(known, parts)| (known.start, total(parts)));
        let mut over: Vec<(u64, u64)> = over.collect();
        let known = over.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let is_first = over.is_empty();
        if is_first || known < total(&parts) {
            over.drain(..).for_each(|(start, _)| drop(self.sums.remove(&start)));
            over.extend((!is_first).then_some((extent.start, 0)));
            self.sums.insert(extent.start, (extent.end, parts));
        }
        for (start, _) in over {
            let (_, parts) = self.sums.get_mut(&start).expect("it is one of them");
            parts.iter_mut().for_each(|part| part.estimated = true);
        }
    }

    /// The sums of parts that overlap `range`.
    fn sums_in(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, &Vec<Part>)> {
        let (start, end) = (range.start, range.end);
        let first = self.sums.range(..=start).next_back().map_or(start, |(first, _)| *first);
        let sums = self.sums.range(first..end.max(first));
        sums.map(|(start, (end, parts))| (*start..*end, parts)).filter(move |(known, _)| known.end > start)
    }

    /// Makes all that is told of it an estimate.
    pub(crate) fn estimate(&mut self) {
        let sums = self.sums.values_mut().flat_map(|(_, parts)| parts);
        self.codes.iter_mut().chain(sums).for_each(|part| part.estimated = true);
    }

    /// What is told of the page at `offset` of the object, with as many bytes as it has; `None` where none is there or
    /// places are not told.
    pub fn at(&self, offset: u64) -> Option<Part> {
        let next = self.extents.partition_point(|(start, _)| *start <= offset);
        let (start, codes) = self.extents.get(next.checked_sub(1)?)?;
        let unit = usize::try_from((offset - start) / self.unit_bytes).ok()?;
        let part = self.codes[usize::from(*codes.get(unit)?)];
        Some(Part { bytes: self.unit_bytes, ..part })
    }

    /// Whether it is known where in the object its pages lie, and not only how much of a mapping is there.
    pub fn tells_places(&self) -> bool {
        self.sums.is_empty()
    }

    /// What of `range` (bytes of the object) is in memory; a page that reaches over an end counts in part.
    pub fn parts(&self, range: &Range<u64>) -> Vec<Part> {
        let mut bytes = vec![0u64; self.codes.len()];
        let from = self.extents.partition_point(|extent| self.place_of(extent).end <= range.start);
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
        let (mut of_sums, mut is_among) = (Vec::new(), false);
        for (extent, sums) in self.sums_in(range) {
            let common = range.end.min(extent.end).saturating_sub(range.start.max(extent.start));
            let whole = extent.end - extent.start;
            // What is known page by page is among it, or may be.
            let (known, sum) = (self.placed_bytes(&extent), total(sums));
            let is_whole = common == whole && known == 0;
            // Or the sum is of other pages: more may be there than either tells.
            is_among |= common > 0 && known > 0 && sum > 0;
            for part in sums.iter().filter(|part| common > 0 && part.bytes > 0) {
                let bytes = in_proportion(part.bytes, sum.saturating_sub(known), sum);
                let bytes = in_proportion(bytes, common, whole);
                let part = Part { bytes, estimated: part.estimated || !is_whole, ..*part };
                if bytes > 0 {
                    add_part(&mut of_sums, part);
                }
            }
        }
        let mut parts = Vec::new();
        let some = self.codes.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0);
        let some = some.map(|(part, bytes)| Part { bytes, estimated: part.estimated || is_among, ..*part });
        some.chain(of_sums).for_each(|part| add_part(&mut parts, part));
        parts
    }

    /// Where in the object its pages lie, as far as that is known; in rising order.
    fn placed(&self) -> impl Iterator<Item = Range<u64>> {
        self.extents.iter().map(|extent| self.place_of(extent))
    }

    /// Bytes of `range` whose places are known.
    fn placed_bytes(&self, range: &Range<u64>) -> u64 {
        let from = self.extents.partition_point(|extent| self.place_of(extent).end <= range.start);
        let places = self.extents[from..].iter().map(|extent| self.place_of(extent));
        let within = places.take_while(|place| place.start < range.end);
        within.map(|place| place.end.min(range.end).saturating_sub(range.start.max(place.start))).sum()
    }

    fn place_of(&self, (start, codes): &(u64, Vec<u8>)) -> Range<u64> {
        *start..start + codes.len() as u64 * self.unit_bytes
    }
}

/// Who has pages mapped, to be asked for where they lie.
#[derive(Clone, Copy)]
struct Mapper<'a> {
    /// `None`: we ourselves.
    pid: Option<Pid>,
    pagemap: &'a Pagemap,
}

/// `ranges` with whole units where they begin and end.
fn in_units(ranges: Vec<Range<u64>>, unit_bytes: u64) -> Vec<Range<u64>> {
    let end = |end: u64| end.checked_next_multiple_of(unit_bytes).unwrap_or(end);
    ranges.into_iter().map(|range| range.start / unit_bytes * unit_bytes..end(range.end)).collect()
}

/// Where the last page of `object` ends.
fn end_of(object: &SharedObject) -> u64 {
    object.bytes.next_multiple_of(object.page_bytes())
}

/// How much of `bytes`, which lie in the holes of the mapped parts and of the others, is in the mapped ones: as much as
/// may be, and whether it may be less.
fn share_of_holes(bytes: u64, holes: u64, holes_of_others: u64) -> (u64, bool) {
    let most = bytes.min(holes);
    (most, bytes.saturating_sub(holes_of_others) < most)
}

/// Bytes of all parts.
fn total(parts: &[Part]) -> u64 {
    parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes))
}

/// `bytes` in proportion, as `part` is to `whole`, which is more than nothing.
pub(super) fn in_proportion(bytes: u64, part: u64, whole: u64) -> u64 {
    let bytes = u128::from(bytes) * u128::from(part) / u128::from(whole);
    u64::try_from(bytes).expect("a part of a u64")
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
    use std::collections::BTreeSet;

    use std::os::fd::OwnedFd;

    use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous};
    use proptest::prelude::*;
    use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};

    use super::*;

    fn part(node: u32, bytes: u64) -> Part {
        Part { backing: Backing::Base, node: Some(node), page_bytes: 4, bytes, estimated: false }
    }

    /// Shared memory of our own, which can be looked at, and its file.
    struct Segment {
        mapping: planish_sys::Mapping,
        object: SharedObject,
        file: OwnedFd,
        peek: Peek,
        eyes: Eyes,
    }

    impl Segment {
        /// `None` where it may not be looked at, with a word.
        fn new(test: &str, pages: u64) -> Option<Self> {
            let options = MapOptions { shared: true, ..MapOptions::new(PageRequest::Base) };
            let mapping = map_anonymous(usize::try_from(bytes(pages)).unwrap(), options).unwrap();
            let range = range_of(&mapping);
            let mut eyes = Eyes::open(&planish_host::Host::live(), false);
            let object = SharedObject::of_mapping(rustix::process::getpid(), &range);
            let (Some(peek), Ok(Some(object))) = (eyes.peek.take(), object) else {
                planish_skip::skip(test, "shared memory may not be looked at");
                return None;
            };
            let path = format!("/proc/self/map_files/{:x}-{:x}", range.start, range.end);
            let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap();
            Some(Self { mapping, object, file, peek, eyes })
        }

        fn write(&self, pages: Range<u64>) {
            pages.for_each(|page| assert_eq!(rustix::io::pwrite(&self.file, &[1], bytes(page)), Ok(1)));
        }

        fn allocate(&self, flags: FallocateFlags, pages: Range<u64>) {
            fallocate(&self.file, flags, bytes(pages.start), bytes(pages.end - pages.start)).unwrap();
        }

        /// What a look at `pages` finds, which opens it anew.
        fn look(&mut self, pages: Range<u64>) -> ObjectPages {
            self.look_beside(pages, None)
        }

        fn look_beside(&mut self, pages: Range<u64>, tables: Option<(&Tables<'_>, &FileId)>) -> ObjectPages {
            let opened = SharedObject::of_mapping(rustix::process::getpid(), &range_of(&self.mapping));
            self.object = opened.unwrap().expect("it is on tmpfs");
            let mut found = ObjectPages::default();
            let mapped = std::iter::once(bytes(pages.start)..bytes(pages.end)).collect();
            found.look(&self.peek, &self.object, mapped, tables, &mut self.eyes).unwrap();
            found
        }
    }

    fn range_of(mapping: &planish_sys::Mapping) -> Range<u64> {
        let start = mapping.as_ptr().addr() as u64;
        start..start + mapping.len() as u64
    }

    fn bytes(pages: u64) -> u64 {
        pages * planish_sys::pages::base_bytes() as u64
    }

    #[test]
    fn what_is_written_while_it_is_looked_at_is_not_in_swap() {
        let Some(mut segment) = Segment::new("what_is_written_while_it_is_looked_at_is_not_in_swap", 256)
        else {
            return;
        };
        segment.allocate(FallocateFlags::empty(), 0..64);
        segment.write(0..16);
        // Of nobody's: an object of which a part is mapped has always been given more than is found of it.
        segment.write(128..256);
        let mapped = || std::iter::once(0..bytes(128));
        let found = segment.look(0..128);
        let told = |found: &ObjectPages| found.unwritten(&segment.object);
        let missing = || found.missing(&segment.object, &mapped().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            (total(&found.parts(&(0..bytes(256)))), missing(), told(&found)),
            (bytes(16), 0, (bytes(48), false))
        );
        // Allocated before and written now; written now in a hole.
        segment.write(32..64);
        segment.write(100..110);
        assert_eq!((missing(), told(&found)), (0, (bytes(16), false)));
        // Freed, and as much written elsewhere.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        segment.allocate(punch, 0..8);
        segment.write(110..118);
        assert_eq!((missing(), told(&found)), (0, (bytes(16), false)));
    }

    /// The same by somebody who writes all the time.
    #[test]
    fn a_segment_that_is_being_filled_is_not_in_swap() {
        let Some(mut segment) = Segment::new("a_segment_that_is_being_filled_is_not_in_swap", 64 << 10)
        else {
            return;
        };
        segment.write(0..256);
        let file = segment.file.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            (256..64 << 10).for_each(|page| assert_eq!(rustix::io::pwrite(&file, &[1], bytes(page)), Ok(1)));
        });
        while !writer.is_finished() {
            let found = segment.look(256..64 << 10);
            assert_eq!((found.swapped_bytes, found.unwritten_bytes), (0, 0));
        }
        writer.join().unwrap();
    }

    #[test]
    fn what_a_process_has_mapped_is_what_a_look_finds() {
        let test = "what_a_process_has_mapped_is_what_a_look_finds";
        let Some(mut segment) = Segment::new(test, 64) else { return };
        segment.mapping.advise_range(0..segment.mapping.len(), Advice::PopulateWrite).unwrap();
        let range = range_of(&segment.mapping);
        let mut pagemap = Pagemap::open(None).unwrap();
        let (mut runs, mut of_file) = (Vec::new(), Vec::new());
        if let Err(error) = pagemap.scan_by_keeper(range.clone(), &mut runs, &mut of_file) {
            return planish_skip::skip(test, error);
        }
        let maps = planish_host::Host::live().read_lossy("/proc/self/maps").unwrap();
        let mut areas = crate::maps::parse_maps(&maps).unwrap();
        areas.retain(|area| area.range == range);
        let file = areas[0].file().expect("shared memory is a file");
        let tables = Tables::of(rustix::process::getpid(), &pagemap, &areas, &runs, &of_file);
        let asked = |segment: &mut Segment| {
            let mut found = ObjectPages { unit_bytes: bytes(1), ..ObjectPages::default() };
            let all = 0..bytes(64);
            found.ask(&tables, &file, std::slice::from_ref(&all), &mut segment.eyes);
            let pages = |part: Range<u64>| (part.start / bytes(1), part.end / bytes(1));
            found.placed().map(pages).collect::<Vec<_>>()
        };
        assert_eq!(asked(&mut segment), [(0, 64)]);
        // Of the pages that were in the page tables, some are nowhere by now, and some in the object alone.
        segment.allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 8..24);
        segment.write(16..24);
        assert_eq!(asked(&mut segment), [(0, 8), (24, 64)]);
        let (one, other) = (segment.look_beside(0..64, Some((&tables, &file))), segment.look(0..64));
        let told = |found: &ObjectPages| -> Vec<Option<Part>> {
            (0..64).map(|page| found.at(bytes(page))).collect()
        };
        assert_eq!(told(&one), told(&other));
        assert_eq!(total(&one.parts(&(0..bytes(64)))), bytes(56));
        // The same where nobody tells frames.
        segment.eyes.hide_frames();
        assert_eq!(asked(&mut segment), [(0, 8), (24, 64)]);
    }

    /// Of a table of cases: bytes that lie in holes, holes of the mapped parts and of the others; what is told of the
    /// mapped ones, and whether it is as much as may be.
    #[test]
    fn what_nobody_wrote_lies_in_the_holes_of_what_is_mapped() {
        for (bytes, holes, others, told) in [
            (64, 64, 0, (64, false)),
            (32, 64, 0, (32, false)),
            (1024, 4, 1020, (4, false)),
            (512, 4, 1020, (4, true)),
            (1022, 4, 1020, (4, true)),
            (0, 4, 1020, (0, false)),
        ] {
            assert_eq!(share_of_holes(bytes, holes, others), told, "{bytes} in {holes} and {others}");
        }
    }

    #[test]
    fn a_page_that_several_processes_map_counts_once() {
        let mut pages = ObjectPages::default();
        for maps in [[(8, 16, 0), (24, 28, 1)], [(0, 12, 0), (8, 28, 0)], [(40, 44, 1), (0, 4, 1)]] {
            maps.iter().for_each(|(start, end, node)| pages.meet(*start..*end, 4, part(*node, 0)));
            pages.settle();
        }
        assert_eq!(
            pages.extents.iter().map(|(start, codes)| (*start, codes.len())).collect::<Vec<_>>(),
            [(0, 7), (40, 1)]
        );
        assert_eq!(pages.parts(&(0..100)), [part(0, 24), part(1, 8)]);
    }

    proptest! {
        /// Whatever processes map of an object, in however many mappings: it is their union.
        #[test]
        fn what_processes_map_of_an_object_is_the_union(
            processes in proptest::collection::vec(
                proptest::collection::vec((0u64..40, 1u64..12), 0..6), 0..5),
        ) {
            let (mut pages, mut union) = (ObjectPages::default(), BTreeSet::new());
            for process in processes {
                for (first, count) in process {
                    pages.meet(first * 4..(first + count) * 4, 4, part(0, 0));
                    union.extend(first..first + count);
                }
                pages.settle();
            }
            let bytes = |range: Range<u64>| total(&pages.parts(&range));
            prop_assert_eq!(bytes(0..1000), union.len() as u64 * 4);
            for page in 0..60 {
                let is_there = union.contains(&page);
                prop_assert_eq!(bytes(page * 4..page * 4 + 4), if is_there { 4 } else { 0 }, "page {}", page);
            }
        }
    }

    /// One process was read page by page, of another one only the sum is known: nothing of it counts twice, and as the
    /// sum may be of other pages, all is an estimate.
    #[test]
    fn what_is_known_by_pages_is_among_a_sum() {
        let mut pages = ObjectPages::default();
        pages.meet(0..8, 4, part(0, 0));
        pages.settle();
        pages.add_sum(0..32, vec![part(1, 16)]);
        let about = |node, bytes| Part { estimated: true, ..part(node, bytes) };
        assert_eq!(pages.parts(&(0..32)), [about(0, 8), about(1, 8)]);
        pages.meet(40..44, 4, part(0, 0));
        pages.settle();
        assert_eq!(pages.parts(&(32..64)), [part(0, 4)], "beyond the sum");
        pages.add_sum(64..72, vec![part(1, 8)]);
        assert_eq!(pages.parts(&(64..72)), [part(1, 8)], "of another part nothing is known by pages");
        let mut less = ObjectPages::default();
        less.meet(0..8, 4, part(0, 0));
        less.settle();
        less.add_sum(0..32, vec![part(1, 4)]);
        assert_eq!(less.parts(&(0..32)), [about(0, 8)]);
    }

    #[test]
    fn of_sums_the_largest_counts_as_an_estimate() {
        let mut pages = ObjectPages::default();
        pages.add_sum(0..8, vec![part(0, 8)]);
        assert_eq!(pages.parts(&(0..8)), [part(0, 8)], "one process: what it says");
        pages.add_sum(16..24, vec![part(1, 4)]);
        let about = |node, bytes| Part { estimated: true, ..part(node, bytes) };
        pages.add_sum(0..16, vec![part(0, 12)]);
        assert_eq!(pages.parts(&(0..16)), [about(0, 12)]);
        pages.add_sum(0..16, vec![part(1, 11)]);
        assert_eq!(pages.parts(&(0..24)), [about(0, 12), part(1, 4)]);
        assert_eq!(pages.parts(&(0..4)), [about(0, 3)]);
    }

    /// A process may have as many mappings of one object, and smaps tells a sum of each.
    #[test]
    fn sixty_thousand_sums_of_one_object_are_taken_at_once() {
        let (mut pages, begun, count) = (ObjectPages::default(), std::time::Instant::now(), 60_000);
        pages.meet(0..4, 4, part(0, 0));
        pages.settle();
        let extents = || (0..count).map(|number| number * 8..number * 8 + 4);
        extents().rev().for_each(|extent| pages.add_sum(extent, vec![part(1, 4)]));
        let told: u64 = extents().map(|extent| total(&pages.parts(&extent))).sum();
        assert_eq!(told, count * 4);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    #[test]
    fn one_page_is_told_by_its_place() {
        let mut pages = ObjectPages { unit_bytes: 4, ..ObjectPages::default() };
        assert_eq!(pages.at(0), None, "nothing is there");
        for (offset, node) in [(4, 0), (8, 1), (40, 1)] {
            pages.push(offset, part(node, 0));
        }
        let told = [0, 3, 4, 7, 8, 11, 12, 39, 40, 43, 44].map(|offset| pages.at(offset));
        let [zero, one] = [0, 1].map(|node| Some(part(node, 4)));
        assert_eq!(told, [None, None, zero, zero, one, one, None, None, one, one, None]);
        pages.estimate();
        assert!(
            pages.at(8).is_some_and(|part| part.estimated),
            "what it is made of others have mapped alone"
        );
        let mut sums = ObjectPages::default();
        sums.add_sum(0..8, vec![part(0, 8)]);
        assert_eq!(sums.at(0), None, "of sums no place is known");
        sums.estimate();
        assert!(sums.parts(&(0..8))[0].estimated);
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
