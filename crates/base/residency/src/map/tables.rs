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
    /// `areas` and `runs`: the mappings of the process and its pages, either in rising order of addresses.
    pub(crate) fn of(pid: Pid, pagemap: &'a Pagemap, areas: &[Area], runs: &[Run]) -> Self {
        let shared: Vec<&Area> = areas.iter().filter(|area| area.is_shared()).collect();
        let ranges: Vec<Range<u64>> = shared.iter().map(|area| area.range.clone()).collect();
        let mut bytes = vec![0; shared.len()];
        for piece in join(&ranges, runs).filter(|piece| matches!(piece.filled, Filled::Base | Filled::Huge)) {
            bytes[piece.area] += piece.range.end - piece.range.start;
        }
        let mut full: HashMap<FileId, Vec<Mapped>> = HashMap::new();
        for (area, _) in shared.iter().zip(bytes).filter(|(area, bytes)| area.bytes() == *bytes) {
            if let (Some(file), Some(extent)) = (area.file(), area.extent()) {
                full.entry(file).or_default().push(Mapped { extent, address: area.range.start });
            }
        }
        full.values_mut().for_each(|parts| *parts = apart(mem::take(parts)));
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
            for Mapped { extent, address } in
                full[first..].iter().take_while(|part| part.extent.start < range.end)
            {
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

/// Those of `parts` that overlap none before them, in rising order: the longest of those that begin together.
fn apart(mut parts: Vec<Mapped>) -> Vec<Mapped> {
    parts.sort_by_key(|part| (part.extent.start, Reverse(part.extent.end)));
    let mut end = 0;
    parts.retain(|part| {
        let is_apart = part.extent.start >= end;
        end = if is_apart { part.extent.end } else { end };
        is_apart
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::parse_maps;

    #[test]
    fn only_whole_mappings_are_told_each_page_once() {
        // Of one file: full; a page short; full at a part of the first; private; full behind it. Of another file, full;
        // of a third one two, the later part first.
        let maps = "1000-3000 rw-s 00000000 00:01 7 /x\n\
                    4000-6000 rw-s 00002000 00:01 7 /x\n\
                    7000-8000 rw-s 00001000 00:01 7 /x\n\
                    9000-a000 rw-p 00008000 00:01 7 /x\n\
                    b000-d000 rw-s 00004000 00:01 7 /x\n\
                    d000-e000 rw-s 00000000 00:01 8 /y\n\
                    e000-f000 rw-s 00001000 00:01 9 /z\n\
                    f000-10000 rw-s 00000000 00:01 9 /z\n";
        let areas = parse_maps(maps).unwrap();
        let run = |range, filled| Run { range, filled };
        let runs = [
            run(0x1000..0x3000, Filled::Base),
            run(0x4000..0x5000, Filled::Base),
            run(0x5000..0x6000, Filled::Swapped),
            run(0x7000..0xa000, Filled::Base),
            run(0xb000..0xc000, Filled::Base),
            run(0xc000..0x10000, Filled::Huge),
        ];
        let pagemap = Pagemap::open(None).unwrap();
        let tables = Tables::of(rustix::process::getpid(), &pagemap, &areas, &runs);
        let pages = |area: usize, ranges: &[Range<u64>]| -> Vec<(u64, usize, usize)> {
            let found = tables.pages(&areas[area].file().unwrap(), ranges, 0x1000).into_iter();
            found.map(|run| (run.offset, run.address, run.count)).collect()
        };
        let all = 0..0x10_0000;
        assert_eq!(pages(0, std::slice::from_ref(&all)), [(0, 0x1000, 2), (0x4000, 0xb000, 2)]);
        assert_eq!(pages(0, &[0x1000..0x2000, 0x3000..0x5000]), [(0x1000, 0x2000, 1), (0x4000, 0xb000, 1)]);
        assert_eq!(pages(5, std::slice::from_ref(&all)), [(0, 0xd000, 1)]);
        assert_eq!(pages(6, &[all]), [(0x1000, 0xe000, 1), (0, 0xf000, 1)], "by address");
    }
}
