//! The pages of a process on kernels without PAGEMAP_SCAN (before Linux 6.7): what the scan tells, put together from
//! two files.
//!
//! ```text
//! smaps     which mappings have pages at all: the others are not read, however long they are;
//!           how much of each is on huge pages that one entry maps, and on pages of a pool
//! pagemap   of each page whether it is there, and whether a file keeps it
//! ```
//!
//! An entry for a page of a huge one looks as any other: huge are as many blocks as smaps tells, out of those that lie
//! whole in pages that are there. Where there are more of these, their frames and move_pages(2) tell; where that is
//! hidden or leaves more, the first ones are taken and told as an estimate. Before Linux 6.11 an entry of a file's huge
//! page does not say that a file keeps it. The page of zeroes looks as any other, too: who asks for the nodes of pages
//! finds it.
//!
//! Source: `pagemap_pmd_range`, `pagemap_hugetlb_range` in fs/proc/task_mmu.c.

use std::mem;
use std::ops::Range;

use planish_sys::pagemap::{Filled, Pagemap, Run};
use planish_sys::policy::pages_at;
use rustix::process::Pid;

use super::AreaPages;
use super::eyes::Eyes;
use super::object::node_of;
use super::private::of_region;
use super::shared::Objects;
use crate::maps::{Area, Kind};
use crate::process::Process;
use crate::smaps::Region;

/// What was read of all mappings of a process.
#[derive(Default)]
pub(super) struct Entries {
    /// Pages that are alike, by address.
    pub runs: Vec<Run>,
    /// Of each run whether a file keeps its pages.
    pub of_file: Vec<bool>,
    /// Of each mapping whether its huge pages are a guess.
    pub guessed: Vec<bool>,
    /// Mappings of pools, and of others that have huge pages: the size of the pool's.
    pub pools: Vec<(usize, Option<u64>)>,
}

impl Entries {
    fn push(&mut self, range: Range<u64>, filled: Filled, of_file: bool) {
        if range.is_empty() {
            return;
        }
        match self.runs.last_mut() {
            Some(last)
                if last.range.end == range.start
                    && last.filled == filled
                    && self.of_file.last() == Some(&of_file) =>
            {
                last.range.end = range.end;
            }
            _ => {
                self.runs.push(Run { range, filled });
                self.of_file.push(of_file);
            }
        }
    }
}

/// Reads the pages of the mappings of `process`, which are `found`. Those of an object that was looked at have their
/// sum alone, and those that are too long what smaps tells of them.
pub(super) fn read(
    pagemap: &Pagemap,
    pid: Pid,
    process: &Process,
    found: &mut [AreaPages],
    eyes: &mut Eyes,
    objects: &mut Objects,
) -> planish_sys::Result<Entries> {
    let mut read = Entries::default();
    let parts = process.parts();
    for (index, ((region, parts), pages)) in process.regions.iter().zip(parts).zip(found).enumerate() {
        read.guessed.push(false);
        if pages.object.is_some_and(|object| !objects.is_of_tables(object)) {
            pages.mapped_bytes = region.resident_bytes;
            continue;
        }
        if region.resident_bytes == 0 && (region.is_shared() || region.swap_bytes == 0) {
            continue;
        }
        if !eyes.may_read(region.bytes() / eyes.base_bytes) {
            *pages = of_region(region.clone(), parts, pages.object.or(pages.keeper), objects);
            if eyes.counts_pages() {
                // Other processes may have the same ones, and count them too.
                pages.estimate();
            }
            continue;
        }
        let mut one = Entries::default();
        pagemap.read_by_keeper(region.area.range.clone(), &mut one.runs, &mut one.of_file)?;
        let is_huge = |starts: &[u64]| may_be_huge(pagemap, pid, starts, eyes);
        let (one, is_guess) = with_huge(one, &Told::of(region, eyes.thp_bytes), is_huge);
        read.guessed[index] = is_guess;
        if one.runs.iter().any(|run| run.filled == Filled::Huge) {
            read.pools.push((index, region.is_hugetlb().then_some(region.page_bytes)));
        }
        for (run, of_file) in one.runs.into_iter().zip(one.of_file) {
            read.push(run.range, run.filled, of_file);
        }
    }
    Ok(read)
}

/// Who keeps the pages of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    /// A file, or what stands for one in shared memory.
    File,
    /// Nobody.
    Nobody,
    /// Each entry tells.
    Either,
}

impl Keeper {
    /// The bit for it is missing in entries of huge pages before Linux 6.11, and since then set in those of the huge
    /// page of zeroes.
    fn of(area: &Area) -> Self {
        let is_memory = matches!(area.kind, Kind::Anon | Kind::Heap | Kind::Stack);
        match () {
            () if area.is_shared() => Self::File,
            () if is_memory && area.file().is_none() => Self::Nobody,
            () => Self::Either,
        }
    }

    fn is_file(self, told: bool) -> bool {
        match self {
            Self::File => true,
            Self::Nobody => false,
            Self::Either => told,
        }
    }
}

/// What smaps tells of a mapping.
#[derive(Clone, Copy, Debug)]
struct Told {
    keeper: Keeper,
    /// Whether all of its pages are of a pool.
    is_pool: bool,
    /// Size in bytes of a transparent huge page; 0 without THP.
    huge_bytes: u64,
    /// Transparent huge pages that one entry maps, of files.
    huge_of_file: u64,
    /// The same that no file keeps.
    huge_own: u64,
}

impl Told {
    fn of(region: &Region, huge_bytes: u64) -> Self {
        let count = |bytes: u64| bytes.checked_div(huge_bytes).unwrap_or(0);
        Self {
            keeper: Keeper::of(&region.area),
            is_pool: region.is_hugetlb(),
            huge_bytes,
            huge_of_file: count(region.shmem_huge_bytes.saturating_add(region.file_huge_bytes)),
            huge_own: count(region.anon_huge_bytes),
        }
    }
}

/// What was read of one mapping with its huge pages told apart, and whether some of these are a guess. `is_huge` tells
/// of blocks, by their starts, which of them may be huge pages.
fn with_huge(read: Entries, told: &Told, is_huge: impl Fn(&[u64]) -> Vec<bool>) -> (Entries, bool) {
    let kept: Vec<bool> = read.of_file.iter().map(|kept| told.keeper.is_file(*kept)).collect();
    let mut all = Entries::default();
    let read = read.runs.into_iter().zip(kept);
    if told.is_pool {
        for (run, of_file) in read {
            let filled = if run.filled == Filled::Base { Filled::Huge } else { run.filled };
            all.push(run.range, filled, of_file);
        }
        return (all, false);
    }
    // Runs that the keeper of the mapping has made alike are one.
    read.for_each(|(run, of_file)| all.push(run.range, run.filled, of_file));
    if told.huge_of_file == 0 && told.huge_own == 0 {
        return (all, false);
    }
    let (chosen, is_guess) = choose(&all, told, is_huge);
    let (mut cut, mut chosen) = (Entries::default(), chosen.into_iter().peekable());
    for (run, of_file) in all.runs.into_iter().zip(all.of_file) {
        let mut at = run.range.start;
        while let Some((start, huge_of_file)) = chosen.next_if(|(start, _)| *start < run.range.end) {
            cut.push(at..start, run.filled, of_file);
            at = start + told.huge_bytes;
            cut.push(start..at, Filled::Huge, huge_of_file);
        }
        cut.push(at..run.range.end, run.filled, of_file);
    }
    (cut, is_guess)
}

/// The blocks that are huge pages, by address, with whether a file keeps each; and whether they are a guess.
fn choose(read: &Entries, told: &Told, is_huge: impl Fn(&[u64]) -> Vec<bool>) -> (Vec<(u64, bool)>, bool) {
    let blocks = |of_file: bool| -> Vec<u64> {
        let runs = read.runs.iter().zip(&read.of_file);
        let runs = runs.filter(|(run, kept)| run.filled == Filled::Base && **kept == of_file);
        runs.flat_map(|(run, _)| whole_blocks(&run.range, told.huge_bytes)).collect()
    };
    let asked = |mut blocks: Vec<u64>| {
        let mut may_be = is_huge(blocks.as_slice()).into_iter();
        blocks.retain(|_| may_be.next().unwrap_or(true));
        blocks
    };
    let limit = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let mut is_guess = false;
    let mut take = |blocks: &mut Vec<u64>, count: usize| {
        if count > 0 && blocks.len() > count {
            *blocks = asked(mem::take(blocks));
            is_guess |= blocks.len() > count;
        }
        blocks.drain(..blocks.len().min(count)).collect::<Vec<u64>>()
    };
    let (mut of_file, mut own) = (blocks(true), blocks(false));
    let mut chosen: Vec<(u64, bool)> = Vec::new();
    chosen.extend(take(&mut own, limit(told.huge_own)).into_iter().map(|start| (start, false)));
    let (mut untold, mut is_more) = (limit(told.huge_of_file), false);
    if told.keeper == Keeper::Either && untold > 0 {
        // Since Linux 6.11 entries name the file of a huge page, and before they do not. These come first: a newer
        // kernel is read so only where it was kept from scanning.
        (own, of_file) = (asked(own), asked(of_file));
        is_more = own.len() + of_file.len() > untold;
        own.truncate(untold);
        untold -= own.len();
        of_file.truncate(untold);
        chosen.extend(own.into_iter().map(|start| (start, true)));
    }
    chosen.extend(take(&mut of_file, untold).into_iter().map(|start| (start, true)));
    chosen.sort_unstable();
    (chosen, is_guess || is_more)
}

/// The starts of blocks of this size that lie whole in `range`, on multiples of it.
fn whole_blocks(range: &Range<u64>, bytes: u64) -> impl Iterator<Item = u64> + use<> {
    let (first, end) = (range.start.next_multiple_of(bytes), range.end);
    (first..end)
        .step_by(usize::try_from(bytes).unwrap_or(usize::MAX))
        .filter(move |start| end - start >= bytes)
}

/// Which of the blocks at `starts` may be huge pages: the page is one, and not that of zeroes, and its frames, where
/// they are told, lie side by side behind a multiple of as many.
fn may_be_huge(pagemap: &Pagemap, pid: Pid, starts: &[u64], eyes: &Eyes) -> Vec<bool> {
    // Addresses of a process of ours fit our own.
    let addresses: Vec<usize> = starts.iter().map(|start| *start as usize).collect();
    let at = pages_at(Some(pid), &addresses).ok();
    let count = eyes.thp_bytes / eyes.base_bytes;
    let mut frames = vec![0; usize::try_from(count).unwrap_or(0)];
    let mut is_huge = |(index, start): (usize, &u64)| {
        let is_page = at.as_ref().and_then(|at| at.get(index)).is_none_or(|at| node_of(*at).1);
        is_page
            && match pagemap.frames(*start, &mut frames) {
                Ok(read) if read == frames.len() && frames.first().is_some_and(|first| *first != 0) => {
                    frames[0].is_multiple_of(count) && frames.windows(2).all(|pair| pair[1] == pair[0] + 1)
                }
                _ => true,
            }
    };
    starts.iter().enumerate().map(&mut is_huge).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages of four bytes, sixteen bytes a huge one.
    const HUGE: u64 = 16;

    fn told(keeper: Keeper, huge_of_file: u64, huge_own: u64) -> Told {
        Told { keeper, is_pool: false, huge_bytes: HUGE, huge_of_file, huge_own }
    }

    fn read_of(runs: &[(Range<u64>, Filled, bool)]) -> Entries {
        let mut read = Entries::default();
        for (range, filled, of_file) in runs {
            read.push(range.clone(), *filled, *of_file);
        }
        read
    }

    fn told_of(read: &Entries) -> Vec<(Range<u64>, Filled, bool)> {
        assert_eq!(read.runs.len(), read.of_file.len());
        let runs = read.runs.iter().zip(&read.of_file);
        runs.map(|(run, of_file)| (run.range.clone(), run.filled, *of_file)).collect()
    }

    fn nobody_tells(starts: &[u64]) -> Vec<bool> {
        vec![true; starts.len()]
    }

    #[test]
    fn as_many_blocks_are_huge_as_smaps_tells() {
        let read = || read_of(&[(4..60, Filled::Base, false), (60..64, Filled::Swapped, false)]);
        let (one, is_guess) = with_huge(read(), &told(Keeper::Nobody, 0, 2), nobody_tells);
        let expected = [
            (4..16, Filled::Base, false),
            (16..48, Filled::Huge, false),
            (48..60, Filled::Base, false),
            (60..64, Filled::Swapped, false),
        ];
        assert_eq!((told_of(&one), is_guess), (expected.to_vec(), false));
        // Two blocks might be the one: the second is, if its frames say so.
        let second = |starts: &[u64]| -> Vec<bool> { starts.iter().map(|start| *start == 32).collect() };
        let (one, is_guess) = with_huge(read(), &told(Keeper::Nobody, 0, 1), second);
        let huge = |read: &Entries| -> Vec<(u64, u64)> {
            let runs = read.runs.iter().filter(|run| run.filled == Filled::Huge);
            runs.map(|run| (run.range.start, run.range.end)).collect()
        };
        assert_eq!((huge(&one), is_guess), (vec![(32, 48)], false));
        let (one, is_guess) = with_huge(read(), &told(Keeper::Nobody, 0, 1), nobody_tells);
        assert_eq!((huge(&one), is_guess), (vec![(16, 32)], true), "a guess, and told as one");
        let (one, is_guess) = with_huge(read(), &told(Keeper::Nobody, 0, 9), nobody_tells);
        assert_eq!((huge(&one), is_guess), (vec![(16, 48)], false), "as many as there is room for");
    }

    #[test]
    fn pages_of_a_pool_are_all_huge() {
        let pool = Told { is_pool: true, ..told(Keeper::File, 0, 0) };
        let (one, is_guess) = with_huge(read_of(&[(32..64, Filled::Base, false)]), &pool, nobody_tells);
        assert_eq!((told_of(&one), is_guess), (vec![(32..64, Filled::Huge, true)], false));
    }

    /// Linux 6.1 leaves the bit of a file out of the entries of its huge pages.
    #[test]
    fn huge_pages_of_a_file_are_the_files_whatever_their_entries_say() {
        let shared = read_of(&[(0..16, Filled::Base, false), (16..20, Filled::Base, true)]);
        let (one, _) = with_huge(shared, &told(Keeper::File, 1, 0), nobody_tells);
        assert_eq!(told_of(&one), [(0..16, Filled::Huge, true), (16..20, Filled::Base, true)]);
        let private = || read_of(&[(0..16, Filled::Base, false), (16..24, Filled::Base, true)]);
        let (one, _) = with_huge(private(), &told(Keeper::Either, 1, 0), nobody_tells);
        assert_eq!(told_of(&one), [(0..16, Filled::Huge, true), (16..24, Filled::Base, true)]);
        // Base pages of a file fill a block as well, and say so.
        let beside = || read_of(&[(0..16, Filled::Base, true), (16..32, Filled::Base, false)]);
        let at = |huge: u64| move |starts: &[u64]| starts.iter().map(|start| *start == huge).collect();
        let bare = [(0..16, Filled::Base, true), (16..32, Filled::Huge, true)];
        let (one, is_guess) = with_huge(beside(), &told(Keeper::Either, 1, 0), at(16));
        assert_eq!((told_of(&one), is_guess), (bare.to_vec(), false));
        let (one, is_guess) = with_huge(beside(), &told(Keeper::Either, 1, 0), nobody_tells);
        assert_eq!((told_of(&one), is_guess), (bare.to_vec(), true));
        // Linux 6.11 and later: what was written of the file is no huge page of it.
        let (one, is_guess) = with_huge(beside(), &told(Keeper::Either, 1, 0), at(0));
        let named = [(0..16, Filled::Huge, true), (16..32, Filled::Base, false)];
        assert_eq!((told_of(&one), is_guess), (named.to_vec(), false));
        let all = read_of(&[(0..32, Filled::Base, true)]);
        let (one, is_guess) = with_huge(all, &told(Keeper::Either, 1, 0), nobody_tells);
        let expected = [(0..16, Filled::Huge, true), (16..32, Filled::Base, true)];
        assert_eq!((told_of(&one), is_guess), (expected.to_vec(), true));
        let (one, _) = with_huge(private(), &told(Keeper::Either, 0, 0), nobody_tells);
        assert_eq!(told_of(&one), told_of(&private()), "written, and no huge page");
        let (one, _) = with_huge(private(), &told(Keeper::Nobody, 0, 0), nobody_tells);
        assert_eq!(told_of(&one), [(0..24, Filled::Base, false)], "a page of zeroes may have the bit");
    }

    #[test]
    fn a_mapping_tells_who_keeps_its_pages() {
        let keeper = |line: &str| Keeper::of(&crate::maps::parse_maps(line).unwrap()[0]);
        assert_eq!(keeper("1000-9000 rw-p 0 0:0 0\n"), Keeper::Nobody);
        assert_eq!(keeper("1000-9000 rw-p 0 0:0 0 [heap]\n"), Keeper::Nobody);
        assert_eq!(keeper("1000-9000 rw-s 0 0:1 5 /dev/zero (deleted)\n"), Keeper::File);
        assert_eq!(keeper("1000-9000 rw-p 0 fe:1 5 /lib/libc.so.6\n"), Keeper::Either);
        assert_eq!(keeper("1000-9000 r-xp 0 0:0 0 [vdso]\n"), Keeper::Either);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_where_huge_pages_are_told_apart(
            steps in proptest::collection::vec((0u64..6, 1u64..12, any::<bool>(), any::<bool>()), 0..12),
            huge_of_file in 0u64..4,
            huge_own in 0u64..4,
            keeper in prop_oneof![Just(Keeper::File), Just(Keeper::Nobody), Just(Keeper::Either)],
        ) {
            let (mut at, mut read) = (0, Entries::default());
            for (gap, pages, is_there, of_file) in steps {
                let start = at + gap * 4;
                at = start + pages * 4;
                read.push(start..at, if is_there { Filled::Base } else { Filled::Swapped }, of_file);
            }
            let before = told_of(&read);
            let (one, _) = with_huge(read, &told(keeper, huge_of_file, huge_own), nobody_tells);
            let after = told_of(&one);
            for page in (0..at).step_by(4) {
                let of = |runs: &[(Range<u64>, Filled, bool)]| {
                    let holds: Vec<_> = runs.iter().filter(|(range, ..)| range.contains(&page)).collect();
                    assert!(holds.len() <= 1, "{holds:?}");
                    holds.first().map(|(_, filled, _)| *filled)
                };
                let (was, is) = (of(&before), of(&after));
                prop_assert!(was == is || (was, is) == (Some(Filled::Base), Some(Filled::Huge)), "at {}", page);
            }
            let mut huge = [0, 0];
            for (range, _, of_file) in after.iter().filter(|(_, filled, _)| *filled == Filled::Huge) {
                prop_assert!(range.start.is_multiple_of(HUGE) && range.end.is_multiple_of(HUGE), "{:?}", range);
                prop_assert!(keeper == Keeper::Either || *of_file == (keeper == Keeper::File));
                huge[usize::from(*of_file)] += (range.end - range.start) / HUGE;
            }
            prop_assert!(huge[0] <= huge_own && huge[1] <= huge_of_file, "{:?} huge pages", huge);
        }
    }
}
