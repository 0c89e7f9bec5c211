//! Shared memory as the page tables of a process have it: of a mapping without a hole nothing is left to look for.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem;
use std::ops::Range;

use planish_sys::pagemap::{Filled, Pagemap, Run};
use planish_sys::peek::Present;
use rustix::process::Pid;

use super::join::join;
use crate::maps::{Area, FileId};

/// A part of an object, and where a process has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapped {
    extent: Range<u64>,
    address: u64,
}

/// The shared mappings of a process whose every page is in its page tables.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    /// The process.
    pub pid: Pid,
    /// Its page tables.
    pub pagemap: &'a Pagemap,
    /// Of each file, in rising order and apart.
    full: HashMap<FileId, Vec<Mapped>>,
}

impl<'a> Tables<'a> {
    /// `areas`: the mappings of the process; `runs`: its pages, and of each run whether a file keeps them. Either in
    /// rising order of addresses.
    pub(crate) fn of(pid: Pid, pagemap: &'a Pagemap, areas: &[Area], runs: &[Run], of_file: &[bool]) -> Self {
        let shared: Vec<&Area> = areas.iter().filter(|area| area.is_shared()).collect();
        let ranges: Vec<Range<u64>> = shared.iter().map(|area| area.range.clone()).collect();
        let is_there = |run: &Run| matches!(run.filled, Filled::Base | Filled::Huge);
        let kept = runs.iter().zip(of_file).filter(|(run, of_file)| **of_file && is_there(run));
        let kept: Vec<Run> = kept.map(|(run, _)| run.clone()).collect();
        let mut bytes = vec![0; shared.len()];
        join(&ranges, &kept).for_each(|piece| bytes[piece.area] += piece.range.end - piece.range.start);
        let mut mapped: HashMap<FileId, Vec<(Mapped, bool)>> = HashMap::new();
        for (area, bytes) in shared.iter().zip(bytes) {
            if let (Some(file), Some(extent)) = (area.file(), area.extent()) {
                let part = Mapped { extent, address: area.range.start };
                mapped.entry(file).or_default().push((part, bytes == area.bytes()));
            }
        }
        let full = mapped.into_iter().map(|(file, parts)| (file, full_parts(parts))).collect();
        Self { pid, pagemap, full }
    }

    /// Pages of a file that lie in `ranges` (whole pages, in rising order and apart) and which the process has mapped,
    /// by their addresses there, in rising order of these: those that lie near each other are asked for together.
    pub(crate) fn pages(&self, file: &FileId, ranges: &[Range<u64>], page_bytes: u64) -> Vec<Present> {
        let (mut found, mut first) = (Vec::new(), 0);
        let full = self.full.get(file).map_or(&[][..], Vec::as_slice);
        for range in ranges {
            while full.get(first).is_some_and(|part| part.extent.end <= range.start) {
                first += 1;
            }
            let touched = full[first..].iter().take_while(|part| part.extent.start < range.end);
            for Mapped { extent, address } in touched {
                let (offset, end) = (extent.start.max(range.start), extent.end.min(range.end));
                // Addresses of a process of ours fit our own.
                let address = (address + (offset - extent.start)) as usize;
                found.push(Present { offset, address, count: ((end - offset) / page_bytes) as usize });
            }
        }
        found.sort_unstable_by_key(|run: &Present| run.address);
        found
    }
}

/// Those of `parts`, of which each has every page or has not, that touch none which lacks one: what lies side by side
/// is looked at together, so that a large page of several parts is known for one. In rising order; of parts that
/// overlap the first one, and of those that begin together the longest.
fn full_parts(mut parts: Vec<(Mapped, bool)>) -> Vec<Mapped> {
    parts.sort_by_key(|(part, _)| (part.extent.start, Reverse(part.extent.end)));
    let (mut full, mut group, mut is_full, mut reach) = (Vec::new(), Vec::new(), true, 0);
    for (part, has_all) in parts {
        let extent = part.extent.clone();
        if extent.start > reach {
            full.extend(mem::take(&mut group).into_iter().filter(|_| is_full));
            is_full = true;
        }
        is_full &= has_all;
        if group.last().is_none_or(|last: &Mapped| last.extent.end <= extent.start) {
            group.push(part);
        }
        reach = reach.max(extent.end);
    }
    full.extend(group.into_iter().filter(|_| is_full));
    full
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::parse_maps;

    #[test]
    fn only_whole_mappings_are_told_each_page_once() {
        // Of one file: whole; a part of it once more; a private one; a page short, and whole beside it; whole and apart
        // from these. Of another: whole. Of a third: two, the later part first. Of a fourth: used anew by memory of no
        // file.
        let maps = "1000-3000 rw-s 00000000 00:01 7 /x\n\
                    4000-5000 rw-s 00001000 00:01 7 /x\n\
                    6000-7000 rw-p 00009000 00:01 7 /x\n\
                    8000-a000 rw-s 00004000 00:01 7 /x\n\
                    a000-b000 rw-s 00006000 00:01 7 /x\n\
                    c000-e000 rw-s 0000a000 00:01 7 /x\n\
                    e000-f000 rw-s 00000000 00:01 8 /y\n\
                    10000-11000 rw-s 00001000 00:01 9 /z\n\
                    11000-12000 rw-s 00000000 00:01 9 /z\n\
                    13000-14000 rw-s 00000000 00:01 10 /w\n";
        let areas = parse_maps(maps).unwrap();
        let run = |range, filled| Run { range, filled };
        let runs = [
            run(0x1000..0x9000, Filled::Base),
            run(0x9000..0xa000, Filled::Swapped),
            run(0xa000..0xd000, Filled::Base),
            run(0xd000..0x12000, Filled::Huge),
            run(0x13000..0x14000, Filled::Base),
        ];
        let of_file = [true, true, true, true, false];
        let pagemap = Pagemap::open(None).unwrap();
        let tables = Tables::of(rustix::process::getpid(), &pagemap, &areas, &runs, &of_file);
        let pages = |area: usize, ranges: &[Range<u64>]| -> Vec<(u64, usize, usize)> {
            let found = tables.pages(&areas[area].file().unwrap(), ranges, 0x1000).into_iter();
            found.map(|run| (run.offset, run.address, run.count)).collect()
        };
        let all = 0..0x10_0000;
        let whole = |area| pages(area, std::slice::from_ref(&all));
        assert_eq!(whole(0), [(0, 0x1000, 2), (0xa000, 0xc000, 2)]);
        assert_eq!(pages(0, &[0x1000..0x2000, 0x3000..0xb000]), [(0x1000, 0x2000, 1), (0xa000, 0xc000, 1)]);
        assert_eq!(whole(6), [(0, 0xe000, 1)]);
        assert_eq!(whole(7), [(0x1000, 0x10000, 1), (0, 0x11000, 1)], "by address");
        assert_eq!(whole(9), []);
    }
}
