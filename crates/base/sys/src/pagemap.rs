//! Which pages of a process are there: `/proc/PID/pagemap`, read in runs and never page by page where the kernel
//! can do better.
//!
//! PAGEMAP_SCAN (Linux 6.7) walks the page tables once and answers in runs of pages that are alike; a hole costs it
//! nothing, so that a sparse mapping of terabytes is read as fast as what lies in it. Nothing is touched: the walk
//! faults no page in and marks none as used.
//!
//! Source: `do_pagemap_scan` in fs/proc/task_mmu.c, Documentation/admin-guide/mm/pagemap.rst.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use linux_raw_sys::general as raw;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::beside::beside;
use crate::error::{Error, Result};
use crate::pages;
use crate::process::word;
use crate::raw::syscall;

/// Pages of a walk at most: it holds the lock of the process's address space for reading, and 16,384 pages keep
/// that below a millisecond.
const PAGES_MAX: u64 = 16 << 10;
/// Runs that one call may return.
const RUNS_MAX: usize = 1024;

/// What the pages of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// There, mapped by base-page entries.
    Base,
    /// There, mapped by one entry for many pages: a transparent huge page, or one from a pool.
    Huge,
    /// The page of zeroes, of one entry or of a huge one: memory that was only ever read.
    Zero,
    /// In swap, or on its way.
    Swapped,
}

/// Addresses whose pages are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whole base pages.
    pub range: Range<u64>,
    /// What they are.
    pub filled: Filled,
}

/// The page tables of a process, opened for reading. Stays with the address space that was there when it was
/// opened: a program that is executed later is not seen through it.
#[derive(Debug)]
pub struct Pagemap {
    file: File,
    /// Whether the kernel tells guard pages apart from swapped ones (Linux 6.15).
    guards: bool,
}

impl Pagemap {
    /// Opens the page tables of the process `pid` (`None`: this one).
    ///
    /// Another user's process needs CAP_SYS_PTRACE ([`Error::Forbidden`]).
    pub fn open(pid: Option<Pid>) -> Result<Self> {
        let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.as_raw_pid().to_string());
        let opened = File::open(format!("/proc/{process}/pagemap"));
        let file = opened.map_err(|error| Error::of_io("open of pagemap", &error))?;
        Ok(Self { file, guards: true })
    }

    /// Adds the runs of pages in `range` to `runs`, by address.
    ///
    /// # Errors
    /// [`Error::Missing`] before Linux 6.7.
    pub fn scan(&mut self, range: Range<u64>, runs: &mut Vec<Run>) -> Result<()> {
        self.scan_all(range, 0, &mut |region| runs.extend(run_of(region)))
    }

    /// The same, and for each run in `of_file` whether a file keeps its pages: of a disk, or shared memory.
    pub fn scan_by_keeper(
        &mut self,
        range: Range<u64>,
        runs: &mut Vec<Run>,
        of_file: &mut Vec<bool>,
    ) -> Result<()> {
        self.scan_all(range, raw::PAGE_IS_FILE, &mut |region| {
            let run = run_of(region);
            of_file.extend(run.iter().map(|_| region.categories & u64::from(raw::PAGE_IS_FILE) != 0));
            runs.extend(run);
        })
    }

    /// Walks over all of `range`; `also` is told of the pages beside what a run needs.
    fn scan_all(
        &mut self,
        range: Range<u64>,
        also: u32,
        take: &mut dyn FnMut(&raw::page_region),
    ) -> Result<()> {
        let mut vector = vec![raw::page_region { start: 0, end: 0, categories: 0 }; RUNS_MAX];
        let mut from = range.start;
        while from < range.end {
            let (count, walked) = self.scan_some(from..range.end, also, &mut vector)?;
            vector[..count].iter().for_each(&mut *take);
            if walked <= from {
                break;
            }
            from = walked;
        }
        Ok(())
    }

    /// One walk: how many runs it found and how far it came.
    fn scan_some(
        &mut self,
        range: Range<u64>,
        also: u32,
        vector: &mut [raw::page_region],
    ) -> Result<(usize, u64)> {
        let wanted = raw::PAGE_IS_PRESENT | raw::PAGE_IS_SWAPPED;
        let guard = if self.guards { raw::PAGE_IS_GUARD } else { 0 };
        let told = wanted | raw::PAGE_IS_HUGE | raw::PAGE_IS_PFNZERO | guard | also;
        let mut argument = raw::pm_scan_arg {
            size: size_of::<raw::pm_scan_arg>() as u64,
            flags: 0,
            start: range.start,
            end: range.end,
            walk_end: 0,
            vec: vector.as_mut_ptr().addr() as u64,
            vec_len: vector.len() as u64,
            max_pages: PAGES_MAX,
            category_inverted: 0,
            category_mask: 0,
            category_anyof_mask: u64::from(wanted),
            return_mask: u64::from(told),
        };
        let opcode = rustix::ioctl::opcode::read_write::<raw::pm_scan_arg>(b'f', 16);
        // SAFETY: the kernel reads and writes `argument`, and writes at most `vec_len` regions to `vec`, which is
        // the start of `vector` and holds as many; both outlive the call. Without PM_SCAN_WP_MATCHING it changes
        // no page table.
        let outcome = unsafe { syscall!(raw::__NR_ioctl, self.file.as_raw_fd(), opcode, &raw mut argument) };
        match outcome {
            Ok(count) => Ok((count.min(vector.len()), argument.walk_end)),
            Err(Errno::INVAL) if self.guards => {
                self.guards = false;
                self.scan_some(range, also, vector)
            }
            Err(errno @ (Errno::NOTTY | Errno::INVAL)) => {
                Err(Error::Missing { call: "PAGEMAP_SCAN", source: errno })
            }
            Err(errno) => Err(Error::of("PAGEMAP_SCAN", errno)),
        }
    }

    /// The same on kernels without PAGEMAP_SCAN too: there the entries are read one by one. They do not tell huge pages
    /// apart from others, nor the page of zeroes, so that both are [`Filled::Base`].
    pub fn runs(&mut self, range: Range<u64>, runs: &mut Vec<Run>) -> Result<()> {
        match self.scan(range.clone(), runs) {
            Err(Error::Missing { .. }) => self.read_runs(range, runs),
            outcome => outcome,
        }
    }

    /// What [`Self::scan_by_keeper`] tells, on kernels without PAGEMAP_SCAN: by the entries, of which every page of
    /// `range` has one, be it there or not. They tell huge pages and the page of zeroes as [`Filled::Base`], and before
    /// Linux 6.11 of a file's huge pages not that a file keeps them.
    ///
    /// # Errors
    /// The read fails, or the process has ended or executes another program (ESRCH).
    pub fn read_by_keeper(
        &self,
        range: Range<u64>,
        runs: &mut Vec<Run>,
        of_file: &mut Vec<bool>,
    ) -> Result<()> {
        let base = pages::base_bytes() as u64;
        let end = range.end;
        let reached = self.read_entries(range, |entries, from| {
            add_entries(entries, from, base, runs, Some(&mut *of_file))
        })?;
        // The kernel reads nothing of memory that is gone, and calls that no error.
        if reached < end { Err(Error::of("read of pagemap", Errno::SRCH)) } else { Ok(()) }
    }

    fn read_runs(&self, range: Range<u64>, runs: &mut Vec<Run>) -> Result<()> {
        let base = pages::base_bytes() as u64;
        self.read_entries(range, |entries, from| add_entries(entries, from, base, runs, None)).map(drop)
    }

    /// Reads the entries of `range` and gives them to `take` piece by piece, each with the address of its first page;
    /// where it ended: short of the end of `range` where the kernel has no more.
    fn read_entries(&self, range: Range<u64>, mut take: impl FnMut(&[u8], u64)) -> Result<u64> {
        let base = pages::base_bytes() as u64;
        let mut bytes = Vec::new();
        let mut from = range.start;
        while from < range.end {
            let pages = ((range.end - from) / base).clamp(1, PAGES_MAX);
            bytes.resize(pages as usize * 8, 0u8);
            let read = self
                .file
                .read_at(&mut bytes, from / base * 8)
                .map_err(|error| Error::of_io("read of pagemap", &error))?;
            let count = read / 8;
            if count == 0 {
                break;
            }
            take(&bytes[..count * 8], from);
            from += count as u64 * base;
        }
        Ok(from)
    }

    /// Reads the page frame numbers of consecutive pages from `address`; how many were read. 0 stands for a page
    /// that is not there; all are 0 without CAP_SYS_ADMIN.
    pub fn frames(&self, address: u64, frames: &mut [u64]) -> Result<usize> {
        let base = pages::base_bytes() as u64;
        let mut bytes = vec![0u8; size_of_val(frames)];
        let read = self.file.read_at(&mut bytes, address / base * 8);
        let read = read.map_err(|error| Error::of_io("read of pagemap", &error))?;
        let entries = bytes[..read].chunks_exact(8);
        let count = entries.len();
        for (frame, entry) in frames.iter_mut().zip(entries) {
            *frame = frame_of(word(entry));
        }
        Ok(count)
    }

    /// The page frame numbers of pages at `addresses`, as [`Self::frames`] tells them: those that lie near each other
    /// in rising order in one call, with what lies between. Of many, half at a time on a thread of its own.
    ///
    /// # Errors
    /// The first read that fails.
    pub fn frames_at(&self, addresses: &[usize]) -> Result<Vec<u64>> {
        if addresses.len() < HALVED_FROM {
            return self.frames_in_order(addresses);
        }
        let (some, further) = addresses.split_at(addresses.len() / 2);
        let (further, some) = beside(|| self.frames_in_order(further), || self.frames_in_order(some));
        let mut frames = some?;
        frames.append(&mut further?);
        Ok(frames)
    }

    fn frames_in_order(&self, addresses: &[usize]) -> Result<Vec<u64>> {
        let base = pages::base_bytes();
        let mut frames = Vec::with_capacity(addresses.len());
        let (mut all, mut rest) = (Vec::new(), addresses);
        while let Some(first) = rest.first().copied() {
            let follows = |pair: &&[usize]| {
                (pair[0]..=pair[0] + GAP * base).contains(&pair[1])
                    && pair[1] - first < FRAMES_PER_READ * base
            };
            let count = 1 + rest.windows(2).take_while(follows).count();
            let (near, further) = rest.split_at(count);
            rest = further;
            all.clear();
            all.resize((near[count - 1] - first) / base + 1, 0);
            self.frames(first as u64, &mut all)?;
            frames.extend(near.iter().map(|address| all[(address - first) / base]));
        }
        Ok(frames)
    }
}

/// Pages from which on two threads ask for half of them each: a thread takes as long as some hundred of them.
pub const HALVED_FROM: usize = 4096;

/// Pages between two wanted ones that are read along rather than by another call, which takes as long as some 200: an
/// entry of a page that is not there is 5 ns of 1.1 us (measured on Linux 6.18).
const GAP: usize = 128;
/// Entries that a call reads at most, with what lies between.
const FRAMES_PER_READ: usize = 64 << 10;

/// What /proc/kpageflags says of consecutive page frames; `None` where we may not read it (it is root's).
#[derive(Debug)]
pub struct FrameFlags {
    file: File,
}

impl FrameFlags {
    /// Opens the flags; needs CAP_SYS_ADMIN and a kernel with CONFIG_PROC_PAGE_MONITOR.
    pub fn open() -> Result<Self> {
        match File::open("/proc/kpageflags") {
            Ok(file) => Ok(Self { file }),
            Err(error) => Err(Error::of_io("open of kpageflags", &error)),
        }
    }

    /// Reads the flags of frames from `first`; how many were read: fewer at the end of memory.
    pub fn read(&self, first: u64, flags: &mut [u64]) -> Result<usize> {
        let mut bytes = vec![0u8; size_of_val(flags)];
        let read = self
            .file
            .read_at(&mut bytes, first * 8)
            .map_err(|error| Error::of_io("read of kpageflags", &error))?;
        let entries = bytes[..read].chunks_exact(8);
        let count = entries.len();
        for (flag, entry) in flags.iter_mut().zip(entries) {
            *flag = word(entry);
        }
        Ok(count)
    }
}

/// The frame number in an entry of pagemap: bits 0-54 of one whose bit 63 (present) is set.
fn frame_of(entry: u64) -> u64 {
    if entry >> 63 == 1 { entry & ((1 << 55) - 1) } else { 0 }
}

/// Adds the pages of consecutive entries, the first one at the address `from`, as runs of pages that are alike; with
/// `of_file` alike in who keeps them, too, and that is told there of each run.
fn add_entries(
    entries: &[u8],
    from: u64,
    base: u64,
    runs: &mut Vec<Run>,
    mut of_file: Option<&mut Vec<bool>>,
) {
    let mut at = from;
    for entry in entries.chunks_exact(8) {
        let (start, entry) = (at, word(entry));
        at += base;
        let Some(filled) = filled_of(entry) else { continue };
        // Bit 61: a page of a file, or of shared memory.
        let is_kept = entry >> 61 & 1 == 1;
        let is_alike = of_file.as_deref().is_none_or(|of_file| of_file.last() == Some(&is_kept));
        match runs.last_mut() {
            Some(last) if last.range.end == start && last.filled == filled && is_alike => last.range.end = at,
            _ => {
                runs.push(Run { range: start..at, filled });
                if let Some(of_file) = of_file.as_deref_mut() {
                    of_file.push(is_kept);
                }
            }
        }
    }
}

/// What an entry of pagemap stands for: bit 63 is set for a page that is there, bit 62 for one in swap.
fn filled_of(entry: u64) -> Option<Filled> {
    match entry >> 62 {
        0 => None,
        1 => Some(Filled::Swapped),
        _ => Some(Filled::Base),
    }
}

fn run_of(region: &raw::page_region) -> Option<Run> {
    let is = |category: u32| region.categories & u64::from(category) != 0;
    let filled = match () {
        () if is(raw::PAGE_IS_GUARD) => return None,
        () if is(raw::PAGE_IS_SWAPPED) => Filled::Swapped,
        () if is(raw::PAGE_IS_PFNZERO) => Filled::Zero,
        () if is(raw::PAGE_IS_HUGE) => Filled::Huge,
        () => Filled::Base,
    };
    Some(Run { range: region.start..region.end, filled })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mapping::{Advice, MapOptions, PageRequest, map_anonymous};

    fn runs_of(range: Range<u64>) -> Option<Vec<Run>> {
        let mut runs = Vec::new();
        match Pagemap::open(None).and_then(|mut map| map.scan(range, &mut runs)) {
            Ok(()) => Some(runs),
            Err(error) => {
                planish_skip::skip("PAGEMAP_SCAN", error);
                None
            }
        }
    }

    #[test]
    fn pages_that_are_there_are_found_and_holes_are_not() {
        let base = pages::base_bytes();
        let mapping = map_anonymous(64 * base, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.advise_range(3 * base..7 * base, Advice::PopulateWrite).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        let Some(runs) = runs_of(start..start + 64 * base as u64) else { return };
        let base = base as u64;
        assert_eq!(runs, [Run { range: start + 3 * base..start + 7 * base, filled: Filled::Base }]);

        // SAFETY: inside the mapping, whose only user this test is.
        assert_eq!(unsafe { mapping.as_ptr().read() }, 0);
        let runs = runs_of(start..start + base).unwrap();
        assert_eq!(runs, [Run { range: start..start + base, filled: Filled::Zero }]);
    }

    #[test]
    fn entries_tell_the_same_as_the_scan() {
        let base = pages::base_bytes();
        let mapping = map_anonymous(64 * base, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.advise_range(3 * base..7 * base, Advice::PopulateWrite).unwrap();
        mapping.advise_range(9 * base..64 * base, Advice::PopulateWrite).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        let range = start..start + 64 * base as u64;
        let (map, mut read) = (Pagemap::open(None).unwrap(), Vec::new());
        map.read_runs(range.clone(), &mut read).unwrap();
        let run = |pages: Range<u64>| {
            let at = |page| start + page * base as u64;
            Run { range: at(pages.start)..at(pages.end), filled: Filled::Base }
        };
        assert_eq!(read, [run(3..7), run(9..64)]);
        if let Some(scanned) = runs_of(range) {
            assert_eq!(read, scanned);
        }
    }

    /// Shared and private memory, and a page that was only read, against the scan where this kernel has it.
    #[test]
    fn entries_tell_who_keeps_a_page_as_the_scan_does() {
        let base = pages::base_bytes();
        for shared in [false, true] {
            let options = MapOptions { shared, ..MapOptions::new(PageRequest::Base) };
            let mapping = map_anonymous(16 * base, options).unwrap();
            mapping.advise_range(2 * base..5 * base, Advice::PopulateWrite).unwrap();
            let start = mapping.as_ptr().addr() as u64;
            let range = start..start + 16 * base as u64;
            let (mut map, mut runs, mut of_file) = (Pagemap::open(None).unwrap(), Vec::new(), Vec::new());
            map.read_by_keeper(range.clone(), &mut runs, &mut of_file).unwrap();
            let there = start + 2 * base as u64..start + 5 * base as u64;
            assert_eq!(runs, [Run { range: there, filled: Filled::Base }]);
            assert_eq!(of_file, [shared]);
            let (mut scanned, mut kept) = (Vec::new(), Vec::new());
            match map.scan_by_keeper(range, &mut scanned, &mut kept) {
                Ok(()) => assert_eq!((runs, of_file), (scanned, kept)),
                Err(error) => planish_skip::skip("entries_tell_who_keeps_a_page_as_the_scan_does", error),
            }
        }
    }

    #[test]
    fn entries_of_memory_that_is_gone_are_an_error() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let map = Pagemap::open(pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let base = pages::base_bytes() as u64;
        let read = map.read_by_keeper(base..3 * base, &mut Vec::new(), &mut Vec::new());
        assert_eq!(read.unwrap_err().errno(), Some(Errno::SRCH));
    }

    #[test]
    fn more_pages_than_a_walk_takes_are_all_found() {
        let base = pages::base_bytes();
        let bytes = (2 * PAGES_MAX as usize + 5) * base;
        let mapping = map_anonymous(bytes, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.advise(Advice::PopulateWrite).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        let Some(runs) = runs_of(start..start + bytes as u64) else { return };
        assert_eq!(runs.iter().map(|run| run.range.end - run.range.start).sum::<u64>(), bytes as u64);
        assert!(runs.iter().all(|run| run.filled == Filled::Base));
    }

    #[test]
    fn frames_are_told_to_those_who_may_know_them() {
        let base = pages::base_bytes();
        let mapping = map_anonymous(4 * base, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.advise_range(0..2 * base, Advice::PopulateWrite).unwrap();
        let map = Pagemap::open(None).unwrap();
        let mut frames = [7; 4];
        assert_eq!(map.frames(mapping.as_ptr().addr() as u64, &mut frames).unwrap(), 4);
        assert_eq!(frames[2..], [0, 0]);
        let told = frames[0] != 0;
        if !told {
            return planish_skip::skip("frames_are_told_to_those_who_may_know_them", "no CAP_SYS_ADMIN");
        }
        let flags = match FrameFlags::open() {
            Ok(flags) => flags,
            Err(error) => return planish_skip::skip("frames_are_told_to_those_who_may_know_them", error),
        };
        let mut word = [0];
        assert_eq!(flags.read(frames[0], &mut word).unwrap(), 1);
        assert!(word[0] & 1 << 12 != 0, "KPF_ANON of {:#x}", word[0]);
    }

    #[test]
    fn an_entry_without_a_page_has_no_frame() {
        assert_eq!(frame_of(1 << 63 | 1 << 61 | 42), 42);
        assert_eq!(frame_of(1 << 62 | 42), 0, "in swap");
    }

    /// An entry that is there or in swap, and whose page a file keeps or not; other bits as they come.
    fn an_entry() -> impl Strategy<Value = (Option<Filled>, bool, u64)> {
        let filled = prop_oneof![Just(None), Just(Some(Filled::Base)), Just(Some(Filled::Swapped))];
        (filled, any::<bool>(), 0u64..1 << 61).prop_map(|(filled, is_kept, rest)| {
            let there = match filled {
                None => 0,
                Some(Filled::Swapped) => 1 << 62,
                Some(_) => 1 << 63,
            };
            (filled, is_kept, there | u64::from(is_kept) << 61 | rest)
        })
    }

    proptest! {
        #[test]
        fn every_page_is_in_one_run_of_its_like(
            entries in proptest::collection::vec(an_entry(), 0..64),
            cut in 0usize..64,
        ) {
            let bytes: Vec<u8> = entries.iter().flat_map(|(_, _, entry)| entry.to_ne_bytes()).collect();
            let (first, second) = bytes.split_at(cut.min(entries.len()) * 8);
            let (mut runs, mut of_file, mut plain) = (Vec::new(), Vec::new(), Vec::new());
            for (piece, from) in [(first, 400), (second, 400 + first.len() as u64 / 8 * 4)] {
                add_entries(piece, from, 4, &mut runs, Some(&mut of_file));
                add_entries(piece, from, 4, &mut plain, None);
            }
            prop_assert_eq!(runs.len(), of_file.len());
            for (index, (filled, is_kept, _)) in entries.iter().enumerate() {
                let at = 400 + index as u64 * 4;
                let told = runs.iter().zip(&of_file).filter(|(run, _)| run.range.contains(&at));
                let told: Vec<_> = told.map(|(run, kept)| (run.filled, *kept)).collect();
                prop_assert_eq!(told, filled.map(|filled| (filled, *is_kept)).into_iter().collect::<Vec<_>>());
                let told = plain.iter().filter(|run| run.range.contains(&at)).map(|run| run.filled);
                prop_assert_eq!(told.collect::<Vec<_>>(), filled.iter().copied().collect::<Vec<_>>());
            }
            for (pair, kept) in runs.windows(2).zip(of_file.windows(2)) {
                let is_alike = pair[0].filled == pair[1].filled && kept[0] == kept[1];
                prop_assert!(pair[0].range.end < pair[1].range.start || !is_alike, "{:?}", pair);
            }
        }
    }
}
