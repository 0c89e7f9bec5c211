//! The memory of one process: PAGEMAP_SCAN finds its pages, move_pages(2) their nodes.
//!
//! Older kernels have no PAGEMAP_SCAN: there the entries of page tables are read one by one (`entries`), and all else
//! is the same. A container may forbid move_pages: then smaps and numa_maps tell what they can (see the head of this
//! crate).

use std::collections::HashMap;
use std::ops::Range;

use planish_host::Host;
use planish_sys::Errno;
use planish_sys::beside;
use planish_sys::pagemap::{Filled, Pagemap, Run};
use planish_sys::peek::{self, FileSystem};
use planish_sys::policy::pages_at;
use rustix::process::Pid;

use super::entries;
use super::eyes::{Eyes, told};
use super::join::{Piece, join};
use super::object::{NodeOf, node_of};
use super::shared::Objects;
use super::tables::Tables;
use super::{AreaPages, CELLS, CUT_BYTES_MIN, SeenBy};
use crate::maps::{Area, parse_maps, tell_namespace};
use crate::process::{Process, ResidencyError, failed, shown_as};
use crate::rows::{Part, add_part};
use crate::smaps::{Backing, Region};

/// Pages that are asked about in one call: a chunk of work whatever the size of the process.
const PAGES_PER_CALL: usize = 16 << 10;

/// Where the addresses of a process end as a rule: 47 bits of them, without the last page (`TASK_SIZE_MAX` of x86-64
/// with page tables of four levels), and 48 bits on aarch64, where it must be one at which any base page begins: a scan
/// may begin there.
const USUAL_END: u64 = if cfg!(target_arch = "aarch64") { 1 << 48 } else { (1 << 47) - 4096 };

/// Reads the mappings of a process and what lies in them; parts of `objects` that it maps are noted there. `draws`:
/// where in a large mapping, too.
pub(crate) fn read(
    host: &Host,
    pid: u32,
    draws: bool,
    eyes: &mut Eyes,
    objects: &mut Objects,
) -> Result<(Vec<AreaPages>, SeenBy), ResidencyError> {
    let pid = shown_as(host, pid);
    let mut blocked = None;
    if host.is_live() {
        match Walk::open(pid) {
            Ok(walk) => match walk.run(host, draws, eyes, objects) {
                Err(Blocked::Process(error)) => return Err(error),
                Err(Blocked::Means(error)) => blocked = Some(error),
                Ok(seen) => return Ok(seen),
            },
            Err(error) if matches!(error.errno(), Some(Errno::NOENT | Errno::SRCH)) => {
                return Err(ResidencyError::NoProcess { process: pid.to_string() });
            }
            // smaps, which needs the same right, will say so.
            Err(error) => blocked = Some(error),
        }
    }
    // Of a process that we may not see at all: others are seen no worse for it.
    let mut process = Process::read(host, pid)?;
    blocked.iter().for_each(|error| blind(eyes, error));
    tell_namespace(host, pid, process.regions.iter_mut().map(|region| &mut region.area));
    objects.note(process.regions.iter().map(|region| &region.area));
    let parts = process.parts();
    let regions = process.regions.into_iter().zip(parts);
    let mut found: Vec<AreaPages> = Vec::with_capacity(regions.len());
    for (region, parts) in regions {
        let object = objects.find(host, pid, &region.area, None, eyes);
        found.push(of_region(region, parts, object, objects));
    }
    Ok((found, SeenBy::Smaps))
}

/// What smaps tells of a mapping; what of `parts` is the `object`'s of its file is noted there.
pub(super) fn of_region(
    region: Region,
    parts: Vec<Part>,
    object: Option<usize>,
    objects: &mut Objects,
) -> AreaPages {
    let own_bytes = region.own_bytes();
    let (own, kept) = match region.area.is_shared() {
        true => (Vec::new(), parts.clone()),
        false => {
            let kept_bytes = region.resident_bytes.saturating_sub(own_bytes);
            (in_proportion(&region, &parts, own_bytes), in_proportion(&region, &parts, kept_bytes))
        }
    };
    if let (Some(object), Some(extent)) = (object, region.area.extent())
        && objects.is_of_tables(object)
    {
        if region.area.is_shared() {
            // smaps knows of pools what maps does not.
            objects.list[object].kind = region.area.kind;
        }
        objects.list[object].pages.add_sum(extent, kept);
    }
    AreaPages {
        mapped_bytes: region.resident_bytes,
        swapped_bytes: region.swap_bytes,
        file_bytes: region.resident_bytes.saturating_sub(own_bytes),
        parts: if object.is_some() { own.clone() } else { parts },
        own,
        ..AreaPages::new(region.area, object)
    }
}

/// `bytes` of what a region has, out of each of its parts in proportion: which of several parts they are is not known.
fn in_proportion(region: &Region, parts: &[Part], bytes: u64) -> Vec<Part> {
    let whole = region.resident_bytes.max(1);
    let guessed = parts.len() > 1 && bytes < region.resident_bytes;
    let part = |part: &Part| {
        let bytes =
            u64::try_from(u128::from(part.bytes) * u128::from(bytes) / u128::from(whole)).unwrap_or(bytes);
        Part { bytes, estimated: part.estimated || guessed, ..*part }
    };
    parts.iter().map(part).filter(|part| part.bytes > 0).collect()
}

fn blind(eyes: &mut Eyes, error: &planish_sys::Error) {
    const CURE: &str = "Linux 6.7 or newer, and CAP_SYS_NICE in a container";
    let why = told(error);
    eyes.blind("the node of each page: nodes and page sizes are told apart in proportion", &why, CURE);
    // smaps knows no frames, and of large pages those alone that one entry maps.
    eyes.blind(
        "private large pages that are mapped by base-page entries: they count as base pages",
        &why,
        CURE,
    );
    eyes.blind_pages(&why, CURE);
}

/// Why a walk ended.
enum Blocked {
    /// The process: it is gone, or not ours to see.
    Process(ResidencyError),
    /// The kernel or a filter: another way is left.
    Means(planish_sys::Error),
}

/// A walk over the page tables of a process.
struct Walk {
    pid: u32,
    raw: Pid,
    pagemap: Pagemap,
    /// Sizes of pool pages, by index of the mapping; `None` for one that is of no pool.
    pools: HashMap<usize, Option<u64>>,
    /// smaps, where nothing else told the size of pool pages.
    smaps: Option<Process>,
    /// Whether the pages were found by their entries: the page of zeroes is not told then.
    by_entries: bool,
    /// Of each mapping whether its huge pages are a guess; empty where none is.
    guessed: Vec<bool>,
}

/// The mappings of a process, and runs of pages that are there.
struct Looked<T> {
    areas: Vec<T>,
    runs: Vec<Run>,
    /// Of each run whether a file keeps its pages.
    of_file: Vec<bool>,
}

/// A page, or a huge one, that is to be asked about.
#[derive(Clone, Copy)]
struct Entry {
    area: usize,
    bytes: u64,
    /// Whether a file keeps it.
    of_file: bool,
    /// `None`: mapped by a base-page entry.
    huge: Option<(Backing, u64)>,
}

/// Pages that are asked about together.
#[derive(Default)]
struct Chunk {
    entries: Vec<Entry>,
    addresses: Vec<usize>,
    /// Whether a file keeps the pages of the piece that is being added.
    of_file: bool,
}

impl Chunk {
    /// Adds one huge page, or base pages side by side.
    fn take(&mut self, range: Range<u64>, kind: Entry) {
        let bytes = range.end - range.start;
        let unit = if kind.huge.is_some() { bytes } else { kind.bytes };
        let count = self.entries.len() + usize::try_from(bytes / unit).unwrap_or(0);
        // Addresses of a process of ours fit our own.
        let addresses = range.step_by(unit as usize).map(|address| address as usize);
        self.addresses.extend(addresses);
        self.entries.resize(count, Entry { bytes: unit, ..kind });
    }
}

impl Walk {
    fn open(pid: u32) -> Result<Self, planish_sys::Error> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let raw = raw.ok_or(planish_sys::Error::of_call("open of pagemap", Errno::SRCH))?;
        Ok(Self {
            pid,
            raw,
            pagemap: Pagemap::open(Some(raw))?,
            pools: HashMap::new(),
            smaps: None,
            by_entries: false,
            guessed: Vec::new(),
        })
    }

    fn run(
        mut self,
        host: &Host,
        draws: bool,
        eyes: &mut Eyes,
        objects: &mut Objects,
    ) -> Result<(Vec<AreaPages>, SeenBy), Blocked> {
        let scanned = match eyes.has_scan.then(|| self.scan(host)) {
            Some(Err(Blocked::Means(planish_sys::Error::Missing { .. }))) => {
                eyes.has_scan = false;
                None
            }
            Some(scanned) => Some(scanned?),
            None => None,
        };
        let (looked, seen_by) = match scanned {
            Some(Looked { areas, runs, of_file }) => {
                let tables = Tables::of(self.raw, &self.pagemap, &areas, &runs, &of_file);
                let areas = self.begin(host, areas, draws, Some(&tables), (eyes, objects));
                (Looked { areas, runs, of_file }, SeenBy::PagemapScan)
            }
            None => (self.read_entries(host, draws, (eyes, objects))?, SeenBy::Pagemap),
        };
        let Looked { areas: mut found, runs, of_file } = looked;
        let ranges: Vec<Range<u64>> = found.iter().map(|pages| pages.area.range.clone()).collect();
        let (mut chunk, mut run) = (Chunk::default(), 0);
        for piece in join(&ranges, &runs) {
            // Pieces come in the order of their runs.
            while runs[run].range.end <= piece.range.start {
                run += 1;
            }
            chunk.of_file = of_file[run];
            self.add(host, &piece, &mut found, &mut chunk, (eyes, objects))?;
        }
        self.flush(&mut chunk, &mut found, (eyes, objects))?;
        objects.settle();
        Ok((found, seen_by))
    }

    /// The mappings as those of which nothing is known yet but their objects. `draws`: with parts to be drawn.
    fn begin(
        &self,
        host: &Host,
        areas: Vec<Area>,
        draws: bool,
        tables: Option<&Tables<'_>>,
        (eyes, objects): (&mut Eyes, &mut Objects),
    ) -> Vec<AreaPages> {
        objects.note(&areas);
        let begin = |area: Area| {
            let object = objects.find(host, self.pid, &area, tables, eyes);
            let is_drawn = draws && !area.is_shared() && area.bytes() >= CUT_BYTES_MIN;
            let cells = if is_drawn { vec![Vec::new(); CELLS] } else { Vec::new() };
            AreaPages { cells, ..AreaPages::new(area, object) }
        };
        areas.into_iter().map(begin).collect()
    }

    /// The same as [`Self::scan`] and [`Self::begin`] without PAGEMAP_SCAN.
    fn read_entries(
        &mut self,
        host: &Host,
        draws: bool,
        (eyes, objects): (&mut Eyes, &mut Objects),
    ) -> Result<Looked<AreaPages>, Blocked> {
        let mut process = Process::read(host, self.pid).map_err(Blocked::Process)?;
        tell_namespace(host, self.pid, process.regions.iter_mut().map(|region| &mut region.area));
        let areas = process.regions.iter().map(|region| region.area.clone()).collect();
        let mut areas = self.begin(host, areas, draws, None, (eyes, objects));
        let read = entries::read(&self.pagemap, self.raw, &process, &mut areas, eyes, objects);
        let read = read.map_err(|error| self.sort(error))?;
        (self.by_entries, self.guessed, self.smaps) = (true, read.guessed, Some(process));
        self.pools.extend(read.pools);
        Ok(Looked { areas, runs: read.runs, of_file: read.of_file })
    }

    /// Looks at the mappings, and at the pages that are there.
    ///
    /// Either is a walk of the kernel over all mappings, so that both are done at once: the pages of all addresses
    /// that a process has as a rule. What lies beyond those is looked at behind, and all where a kernel takes no such
    /// range since its address spaces are smaller.
    fn scan(&mut self, host: &Host) -> Result<Looked<Area>, Blocked> {
        let process = self.pid.to_string();
        let path = format!("/proc/{process}/maps");
        let (mut runs, mut of_file) = (Vec::new(), Vec::new());
        let (areas, scanned) = beside(
            || {
                let text = host.read_lossy(&path).map_err(|error| failed(&process, error))?;
                parse_maps(&text).map_err(|line| ResidencyError::Odd { path: path.clone(), line })
            },
            || self.pagemap.scan_by_keeper(0..USUAL_END, &mut runs, &mut of_file),
        );
        let mut areas = areas.map_err(Blocked::Process)?;
        tell_namespace(host, self.pid, &mut areas);
        let scanned = match scanned {
            Err(error) if matches!(error.errno(), Some(Errno::FAULT | Errno::INVAL)) => {
                (runs, of_file) = (Vec::new(), Vec::new());
                Ok(0)
            }
            scanned => scanned.map(|()| USUAL_END),
        };
        let looked_at = scanned.map_err(|error| self.sort(error))?;
        // [vsyscall] lies above what a process may map, and is no memory of its own.
        let user = areas.iter().take_while(|area| area.range.end < 1 << 63);
        let end = user.last().map_or(0, |area| area.range.end);
        if end > looked_at {
            let further = self.pagemap.scan_by_keeper(looked_at..end, &mut runs, &mut of_file);
            further.map_err(|error| self.sort(error))?;
        }
        Ok(Looked { areas, runs, of_file })
    }

    /// Adds the pages of a piece to the chunk, or to the sums where that is all that is asked.
    fn add(
        &mut self,
        host: &Host,
        piece: &Piece,
        found: &mut [AreaPages],
        chunk: &mut Chunk,
        (eyes, objects): (&mut Eyes, &mut Objects),
    ) -> Result<(), Blocked> {
        let bytes = piece.range.end - piece.range.start;
        let area = &mut found[piece.area];
        match piece.filled {
            Filled::Zero => return Ok(()),
            Filled::Swapped => {
                area.swapped_bytes += bytes;
                return Ok(());
            }
            Filled::Base | Filled::Huge => area.mapped_bytes += bytes,
        }
        if area.object.is_some_and(|object| !objects.is_of_tables(object)) {
            return Ok(());
        }
        let huge = match piece.filled {
            Filled::Huge => Some(self.huge_pages(host, piece.area, &found[piece.area].area, eyes)),
            _ => None,
        };
        if let Some((Backing::Hugetlb, _)) = huge {
            found[piece.area].area.kind = found[piece.area].area.pool_kind();
            if let Some(object) = found[piece.area].object {
                objects.list[object].kind = found[piece.area].area.kind;
            }
        }
        let of_file = chunk.of_file;
        let unit = huge.map_or(eyes.base_bytes, |(_, bytes)| bytes);
        let mut at = piece.range.start;
        while at < piece.range.end {
            // Base pages of one chunk at a time, so that their frames are read in one call.
            let room = (PAGES_PER_CALL - chunk.entries.len()) as u64;
            let end = match huge {
                Some(_) => (at / unit + 1) * unit,
                None => at + room * unit,
            };
            let kind = Entry { area: piece.area, bytes: eyes.base_bytes, of_file, huge };
            chunk.take(at..end.min(piece.range.end), kind);
            at = end;
            if chunk.entries.len() >= PAGES_PER_CALL {
                self.flush(chunk, found, (eyes, objects))?;
            }
        }
        Ok(())
    }

    /// Asks for the nodes of a chunk and adds it up.
    fn flush(
        &self,
        chunk: &mut Chunk,
        found: &mut [AreaPages],
        (eyes, objects): (&mut Eyes, &mut Objects),
    ) -> Result<(), Blocked> {
        let count = chunk.entries.len();
        let nodes = eyes.nodes_of(|| pages_at(Some(self.raw), &chunk.addresses), count);
        let mut nodes = nodes.map_err(|error| self.sort(error))?;
        if eyes.sole_node().is_some() {
            self.leave_out_zeroes(chunk, &mut nodes)?;
        }
        let frames = match eyes.wants_frames() {
            true => self.pagemap.frames_at(&chunk.addresses).map_err(|error| self.sort(error))?,
            false => vec![0; count],
        };
        let folios = eyes.folio_pages(&frames);
        let frames = frames.iter().zip(folios);
        let entries = chunk.entries.iter().zip(&chunk.addresses);
        for (((entry, address), (frame, pages)), (node, resident)) in entries.zip(frames).zip(nodes) {
            let area = &mut found[entry.area];
            let has_gone = eyes.wants_frames() && *frame == 0;
            if !(resident || self.is_of_pool(entry)) || has_gone {
                area.mapped_bytes -= entry.bytes;
                continue;
            }
            area.file_bytes += if entry.of_file { entry.bytes } else { 0 };
            let (backing, page_bytes) = entry.huge.unwrap_or_else(|| eyes.backing_of(pages, false));
            let estimated = self.guessed.get(entry.area).copied().unwrap_or(false);
            let start = area.area.offset.saturating_add(*address as u64 - area.area.range.start);
            let keeper = area.keeper.filter(|_| entry.of_file);
            if let Some(object) = area.object.or(keeper) {
                if !objects.is_of_tables(object) {
                    continue;
                }
                let unit = if backing == Backing::Hugetlb { page_bytes } else { eyes.base_bytes };
                let part = Part { backing, node, page_bytes, bytes: 0, estimated };
                objects.list[object].pages.meet(start..start.saturating_add(entry.bytes), unit, part);
                continue;
            }
            let count = entry.bytes / eyes.base_bytes;
            let by_place = entry.of_file && !eyes.counts_frames();
            let (fresh, in_each) = match by_place.then(|| area.area.file()).flatten() {
                Some(file) => (eyes.count_place_once(file, start / eyes.base_bytes, count), false),
                None => (eyes.count_once(*frame, count), eyes.counts_own_in_each()),
            };
            let bytes = fresh * eyes.base_bytes;
            if bytes > 0 {
                let part = Part { backing, node, page_bytes, bytes, estimated: estimated || in_each };
                area.add(*address as u64, part);
                if !entry.of_file {
                    add_part(&mut area.own, part);
                }
            }
        }
        chunk.entries.clear();
        chunk.addresses.clear();
        Ok(())
    }

    /// Whether an entry is surely of a page, as all of a pool are: move_pages finds none of the largest ones before
    /// Linux 6.0. The scan is taken at its word as before.
    fn is_of_pool(&self, entry: &Entry) -> bool {
        self.by_entries && matches!(entry.huge, Some((Backing::Hugetlb, _)))
    }

    /// The huge page of zeroes is no page of this process. Kernels before 6.16 tell it as any huge page
    /// (PAGE_IS_PFNZERO of pagemap_thp_category in fs/proc/task_mmu.c), and move_pages tells it apart, which on a
    /// machine of one node is asked for nothing else. Entries tell neither that one nor the small one.
    fn leave_out_zeroes(&self, chunk: &Chunk, nodes: &mut [NodeOf]) -> Result<(), Blocked> {
        let is_asked = |entry: &Entry| {
            let may_be = match entry.huge {
                Some((backing, _)) => backing == Backing::Thp,
                None => self.by_entries,
            };
            may_be && !entry.of_file
        };
        let entries = chunk.entries.iter().zip(&chunk.addresses).zip(nodes);
        let (addresses, nodes): (Vec<usize>, Vec<&mut NodeOf>) = entries
            .filter(|((entry, _), _)| is_asked(entry))
            .map(|((_, address), node)| (*address, node))
            .unzip();
        if addresses.is_empty() {
            return Ok(());
        }
        let told = match pages_at(Some(self.raw), &addresses) {
            Ok(told) => told,
            // A container may forbid the call. The huge page of zeroes counts then; of small ones there may be many.
            Err(error) if !self.by_entries && matches!(error.errno(), Some(Errno::PERM | Errno::NOSYS)) => {
                return Ok(());
            }
            Err(error) => return Err(self.sort(error)),
        };
        for (node, at) in nodes.into_iter().zip(told) {
            node.1 = node_of(at).1;
        }
        Ok(())
    }

    /// What one entry for many pages stands for in this mapping: a transparent huge page, or one from a pool.
    fn huge_pages(&mut self, host: &Host, index: usize, area: &Area, eyes: &mut Eyes) -> (Backing, u64) {
        let thp = (Backing::Thp, eyes.thp_bytes);
        if area.file().is_none() {
            return thp;
        }
        let known = self.pools.get(&index).copied();
        let pool = known.unwrap_or_else(|| {
            if !eyes.devices.has(host, self.pid, area.device) {
                return None;
            }
            match peek::file_system_of(self.raw, &area.range) {
                Ok(FileSystem::Hugetlbfs { page_bytes }) => Some(page_bytes),
                Ok(_) => None,
                Err(_) => self.pool_by_smaps(host, area, eyes.base_bytes),
            }
        });
        self.pools.insert(index, pool);
        pool.map_or(thp, |page_bytes| (Backing::Hugetlb, page_bytes))
    }

    /// The same by smaps, which costs the kernel a walk but needs no right beyond those we have.
    fn pool_by_smaps(&mut self, host: &Host, area: &Area, base_bytes: u64) -> Option<u64> {
        if self.smaps.is_none() {
            self.smaps = Process::read(host, self.pid).ok();
        }
        let page_bytes = self.smaps.as_ref()?.region_at(area.range.start)?.page_bytes;
        (page_bytes > base_bytes).then_some(page_bytes)
    }

    /// A process that has ended is one thing, a call that is missing another.
    fn sort(&self, error: planish_sys::Error) -> Blocked {
        match error.errno() {
            Some(Errno::SRCH) => {
                Blocked::Process(ResidencyError::NoProcess { process: self.pid.to_string() })
            }
            _ => Blocked::Means(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smaps::parse_smaps;

    /// Of a table of cases: nodes of the parts, bytes that are asked for of 16 KiB, and whether that is an estimate.
    #[test]
    fn which_of_several_parts_a_share_is_of_is_an_estimate() {
        let text = "1000-5000 rw-p 00000000 08:01 7 /x\nRss: 16 kB\n";
        let region = parse_smaps(text).expect("a mapping").remove(0);
        let part = |node: &u32, count: usize| Part {
            backing: Backing::Base,
            node: Some(*node),
            page_bytes: 4096,
            bytes: (16 << 10) / count as u64,
            estimated: false,
        };
        let (one, two): (&[u32], &[u32]) = (&[0], &[0, 1]);
        for (nodes, bytes, wanted) in
            [(one, 16 << 10, false), (one, 4 << 10, false), (two, 16 << 10, false), (two, 4 << 10, true)]
        {
            let parts: Vec<Part> = nodes.iter().map(|node| part(node, nodes.len())).collect();
            let told = in_proportion(&region, &parts, bytes);
            assert_eq!(told.iter().map(|part| part.bytes).sum::<u64>(), bytes, "{nodes:?}");
            assert!(told.iter().all(|part| part.estimated == wanted), "{nodes:?}, {bytes}: {told:?}");
        }
    }
}
