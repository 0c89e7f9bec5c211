//! `planish map`: where the memory of a process, or of a whole service, really lies.
//!
//! ```text
//! who     --> the processes that are meant; process 1, kernel threads and those above us are left alone
//! private --> maps + PAGEMAP_SCAN + move_pages: each page of a process, its size and node
//! entries --> the same without PAGEMAP_SCAN: smaps + one entry of pagemap for each page
//! tables  --> shared memory of which the process has every page in its page tables
//! shared  --> each shared object once, by what is in it and not by what somebody has mapped (peek in sys)
//! threads --> where the threads run, for the share of memory that is local to them
//! ```
//!
//! Nothing is allocated, faulted in or marked as used in any process but ours. Each process is told by its start
//! time before and after: a PID that was given to another, or a program that was executed meanwhile, is noticed.

mod entries;
mod eyes;
mod join;
mod leases;
mod memory;
mod object;
mod private;
mod shared;
mod spaces;
mod tables;
pub(crate) mod threads;
mod who;

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use planish_host::Host;
use serde::Serialize;

use self::eyes::Eyes;
use self::shared::Objects;
use self::spaces::Spaces;
use crate::maps::{Area, Kind, is_segment};
use crate::process::{ResidencyError, shown_as, status};
use crate::ranges;
use crate::rows::{self, Part, Row, add_part};
use crate::stat::Stat;
use crate::status::Status;

pub use self::eyes::Unseen;
pub use self::join::{Piece, join};
pub use self::object::ObjectPages;
use self::object::in_proportion;
pub use self::shared::Object;
pub use self::threads::ThreadsOn;
pub(crate) use self::who::above_us;
pub use self::who::{Who, is_named, members, names, processes_named, stat_of};

/// Parts of equal length that a picture has of a large mapping.
pub const CELLS: usize = 64;

/// Mappings of fewer bytes are not cut: a part would be a page or two.
pub const CUT_BYTES_MIN: u64 = 1 << 20;

/// Programs that a process may execute while it is looked at, before we give up.
const TRIES: usize = 4;

/// What the private memory of a process was seen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenBy {
    /// PAGEMAP_SCAN and move_pages: each page by itself.
    PagemapScan,
    /// The entry of each page and move_pages: the same on kernels without the scan.
    Pagemap,
    /// smaps and numa_maps: nodes and page sizes of a mapping in proportion.
    Smaps,
}

/// A mapping and what lies in it.
#[derive(Clone, Debug)]
pub struct AreaPages {
    /// The mapping.
    pub area: Area,
    /// Its resident pages; none of a shared object, which has its own.
    pub parts: Vec<Part>,
    /// Of these, the pages that are the process's own: no file keeps them, so that it alone can free them.
    pub own: Vec<Part>,
    /// Bytes that the page tables of this process map.
    pub mapped_bytes: u64,
    /// Of these, bytes that a file keeps: of a disk, or shared memory that could not be looked at.
    pub file_bytes: u64,
    /// Bytes of it that are in swap, as far as this process knows.
    pub swapped_bytes: u64,
    /// Index of the shared object behind it.
    pub object: Option<usize>,
    /// Of a private mapping of a file that is mapped shared as well: index of the object that has its pages, but for
    /// those that were written here.
    pub keeper: Option<usize>,
    /// Of a large private mapping of the first process, what lies in each of its [`CELLS`] equal parts; empty where
    /// that is not known.
    pub cells: Vec<Vec<Part>>,
}

impl AreaPages {
    /// A mapping of which nothing is known yet; `object` is the one of its file.
    fn new(area: Area, object: Option<usize>) -> Self {
        let (object, keeper) = if area.is_shared() { (object, None) } else { (None, object) };
        Self {
            area,
            parts: Vec::new(),
            own: Vec::new(),
            mapped_bytes: 0,
            file_bytes: 0,
            swapped_bytes: 0,
            object,
            keeper,
            cells: Vec::new(),
        }
    }

    /// What lies in it, by what it is for. A private mapping of a file has pages that are the file's, and such that the
    /// process has written and that no file keeps. Of code and data both count as such.
    fn by_kind(&self) -> impl Iterator<Item = (Kind, &str, Vec<Part>)> {
        let kind = match self.area.kind {
            kind if self.area.is_shared() => kind,
            Kind::Anon if is_segment(&self.area.name) => Kind::Shared,
            kind => kind,
        };
        let splits = !self.area.is_shared() && matches!(kind, Kind::File | Kind::Shared);
        let own = if splits { self.own.as_slice() } else { &[] };
        let unmarked = |part: &Part| Part { bytes: 0, estimated: false, ..*part };
        // Where own pages have a part by themselves, the other one is the file's.
        let bare = |part: &Part| Part { bytes: 0, ..*part };
        let is_apart = |own: &Part| self.parts.iter().any(|part| bare(part) == bare(own));
        let kept = self.parts.iter().map(|part| {
            let alike = |own: &&Part| {
                unmarked(own) == unmarked(part) && (own.estimated == part.estimated || !is_apart(own))
            };
            let (bytes, estimated) =
                own.iter().find(alike).map_or((0, false), |own| (own.bytes, own.estimated));
            let estimated = part.estimated || estimated;
            Part { bytes: part.bytes.saturating_sub(bytes), estimated, ..*part }
        });
        let kept = kept.filter(|part| part.bytes > 0).collect();
        let name = self.area.name.as_str();
        [(kind, name, kept), (Kind::Anon, name, own.to_vec())].into_iter()
    }

    /// Makes all that is told of it an estimate.
    fn estimate(&mut self) {
        let cells = self.cells.iter_mut().flatten();
        let parts = self.parts.iter_mut().chain(&mut self.own).chain(cells);
        parts.for_each(|part| part.estimated = true);
    }

    /// Adds a page of a private mapping, from `start` on; where it has cells, to those that it reaches over, too.
    fn add(&mut self, start: u64, part: Part) {
        add_part(&mut self.parts, part);
        if self.cells.is_empty() {
            return;
        }
        let Range { start: first, end } = self.area.range;
        let cells = self.cells.len() as u64;
        let border = |cell: u64| {
            first + u64::try_from(u128::from(end - first) * u128::from(cell) / u128::from(cells)).unwrap_or(0)
        };
        let (mut at, page_end) = (start.max(first), (start + part.bytes).min(end));
        while at < page_end {
            let cell = u128::from(at - first) * u128::from(cells) / u128::from(end - first);
            let mut cell = u64::try_from(cell).expect("a cell");
            // Rounded down, a border may belong to the cell before it.
            cell += u64::from(border(cell + 1) <= at);
            let next = border(cell + 1).min(page_end);
            add_part(&mut self.cells[cell as usize], Part { bytes: next - at, ..part });
            at = next;
        }
    }
}

/// One process of a map.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its PID.
    pub pid: u32,
    /// Its stat as it was before and after.
    pub stat: Stat,
    /// The cheap facts.
    pub status: Status,
    /// Its mappings, by address.
    pub areas: Vec<AreaPages>,
    /// Where its threads ran last.
    pub threads: Vec<ThreadsOn>,
    /// How its private memory was seen.
    pub seen_by: SeenBy,
    /// The PID of an earlier one that has the same address space (CLONE_VM): what lies in it counts there.
    pub memory_of: Option<u32>,
}

/// A process whose memory we may not see.
#[derive(Clone, Debug)]
pub struct Denied {
    /// Its PID.
    pub pid: u32,
    /// Whether it is the one that is meant, and not one below it.
    pub is_first: bool,
    /// The cheap facts, which any user may know.
    pub status: Status,
}

/// Where the memory of a process or service lies.
#[derive(Clone, Debug)]
pub struct Map {
    /// The processes that were seen, the first one first.
    pub members: Vec<Member>,
    /// Processes of the tree whose memory we may not see, the one that is meant first, if it is one of them: nothing of
    /// theirs is in any sum.
    pub denied: Vec<Denied>,
    /// The memory that they share, each piece once.
    pub objects: Vec<Object>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
    /// Whether large pages that base-page entries map are told; where not, they count as base pages.
    pub tells_large_pages: bool,
}

impl Map {
    /// Looks at the process that is meant, with `tree` at all that descend from it too.
    ///
    /// # Errors
    /// There is no such process, it is left alone, or we may not see it. Of a tree, processes that end meanwhile
    /// are left out, and so are those that we may not see, unless we may see none of them.
    pub fn read(host: &Host, who: &Who, tree: bool) -> Result<Self, ResidencyError> {
        let members = members(host, who, tree)?;
        let eyes = Eyes::open(host, members.len() > 1);
        Self::look(host, members, eyes)
    }

    /// Looks at processes that were there a moment ago, the one that is meant first.
    fn look(host: &Host, members: Vec<(u32, Stat)>, mut eyes: Eyes) -> Result<Self, ResidencyError> {
        let mut objects = Objects::default();
        for (pid, _) in members.iter().filter(|_| members.len() > 1) {
            let pid = shown_as(host, *pid);
            let maps = host.read_lossy(&format!("/proc/{pid}/maps"));
            // Of one that cannot be read, its own turn will tell why.
            objects.note_maps(host, pid, &maps.unwrap_or_default());
        }
        let (read, denied) = read_members(host, members, &mut eyes, &mut objects)?;
        for area in read.iter().flat_map(|member| &member.areas) {
            if let (Some(object), Some(extent)) = (area.object.or(area.keeper), area.area.extent()) {
                objects.list[object].mapped.push(extent);
            }
        }
        // Each once: an object may have tens of thousands of mappings.
        let mapped = objects.list.iter_mut().map(|object| &mut object.mapped);
        mapped.for_each(|mapped| *mapped = ranges::union(mem::take(mapped)));
        let pages = || objects.list.iter().map(|object| &object.pages);
        let is_estimate = pages().any(|pages| pages.unwritten_estimated);
        eyes.blind_unwritten(rows::sum_of(pages().map(|pages| pages.unwritten_bytes)), is_estimate);
        let counts_once = read.len() < 2 || eyes.counts_pages();
        let tells_large_pages = eyes.sees_folios() && !eyes.by_smaps;
        let (members, objects, unseen) = (read, objects.list, eyes.unseen());
        let mut map = Self { members, denied, objects, unseen, tells_large_pages };
        map.estimate(counts_once);
        Ok(map)
    }

    /// Makes an estimate of what was not seen in whole; where all that processes share counts in each of them, of all
    /// that is told by process.
    fn estimate(&mut self, counts_once: bool) {
        let in_part = self.objects.iter_mut().filter(|object| object.is_seen_in_part());
        in_part.for_each(|object| object.pages.estimate());
        if counts_once {
            return;
        }
        self.members.iter_mut().flat_map(|member| &mut member.areas).for_each(AreaPages::estimate);
    }

    /// Whether shared memory may have pages, or be in swap, that nobody told us of.
    pub fn misses_shared_pages(&self) -> bool {
        self.objects.iter().any(Object::is_seen_in_part)
    }

    /// Whether any memory may have pages, or be in swap, that nobody told us of.
    pub fn misses_pages(&self) -> bool {
        self.misses_shared_pages() || !self.denied.is_empty()
    }

    /// Memory by kind, name, backing and node; what processes share counts once.
    pub fn rows(&self) -> Vec<Row> {
        let shared: Vec<(Kind, &str, Vec<Part>)> =
            self.objects.iter().map(|object| (object.kind, object.name.as_str(), object.parts())).collect();
        let private = self.members.iter().flat_map(|member| &member.areas);
        let private: Vec<(Kind, &str, Vec<Part>)> = private.flat_map(AreaPages::by_kind).collect();
        let all = private.iter().chain(&shared);
        rows::rows(all.map(|(kind, name, parts)| (*kind, *name, parts.as_slice())))
    }

    /// The share of resident bytes on nodes that is local to the threads that may use them, by where they ran last:
    /// each page weighed by the CPU time of the threads that ran on its node last, wherever they used it, since the
    /// kernel keeps no CPU time by node. `None` where nodes are not told.
    pub fn local_share(&self) -> Option<f64> {
        let (mut local, mut total) = (0.0, 0.0);
        let mut add = |parts: &[Part], weights: &BTreeMap<u32, f64>| {
            for part in parts {
                let Some(node) = part.node else { continue };
                local += part.bytes as f64 * weights.get(&node).copied().unwrap_or(0.0);
                total += part.bytes as f64;
            }
        };
        for member in &self.members {
            let weights = threads::weights(member.threads.iter());
            if !weights.is_empty() {
                member.areas.iter().for_each(|pages| add(&pages.parts, &weights));
            }
        }
        let all = threads::weights(self.members.iter().flat_map(|member| &member.threads));
        if !all.is_empty() {
            self.objects.iter().for_each(|object| add(&object.parts(), &all));
        }
        (total > 0.0).then(|| local / total)
    }
}

/// Looks at the members one after the other; those that we may not see, if we may see one at all.
fn read_members(
    host: &Host,
    members: Vec<(u32, Stat)>,
    eyes: &mut Eyes,
    objects: &mut Objects,
) -> Result<(Vec<Member>, Vec<Denied>), ResidencyError> {
    let (mut spaces, nodes) = (Spaces::default(), threads::cpus_of_nodes(host));
    let mut read: Vec<Member> = Vec::with_capacity(members.len());
    let (mut denied, mut refused, is_tree) = (Vec::new(), None, members.len() > 1);
    for (number, (pid, stat)) in members.into_iter().enumerate() {
        let first = if is_tree { spaces.known(host, pid) } else { None };
        let first = first.and_then(|first| read.iter().find(|member| member.pid == first));
        let looked = match first {
            Some(first) => Member::beside(host, pid, stat, first),
            None => Member::read(host, pid, stat, read.is_empty(), eyes, objects),
        };
        match looked {
            Ok(member) => {
                let threads = threads::read(host, pid, &nodes);
                read.push(Member { threads, ..member });
            }
            Err(ResidencyError::NoProcess { .. }) if number > 0 => {
                eyes.blind("processes of the service that ended while it was looked at", "they are gone", "");
            }
            // Of a recording files may be missing; nothing ends there.
            Err(ResidencyError::NoProcess { .. }) if host.is_live() => {
                return Err(ResidencyError::EndedMeanwhile { pid });
            }
            Err(error @ ResidencyError::Denied { .. }) => {
                if let Ok(status) = status(host, pid) {
                    eyes.blind_process(pid, &status, &error);
                    denied.push(Denied { pid, is_first: number == 0, status });
                }
                refused.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match refused.filter(|_| read.is_empty()) {
        Some(error) => Err(error),
        None => Ok((read, denied)),
    }
}

/// Bounds what `areas` have in swap by what the process has there. pagemap calls swapped whatever entry of a page
/// table is no page: a mark of userfaultfd's write protection and one of a page that failed as well, which have no
/// memory. Of shared memory such an entry is always a mark; what of it is in swap has no entry at all.
fn bound_swap(areas: &mut [AreaPages], swap_bytes: u64) {
    areas.iter_mut().filter(|pages| pages.area.is_shared()).for_each(|pages| pages.swapped_bytes = 0);
    let told = rows::sum_of(areas.iter().map(|pages| pages.swapped_bytes));
    for pages in areas.iter_mut().filter(|_| told > swap_bytes) {
        pages.swapped_bytes = in_proportion(pages.swapped_bytes, swap_bytes, told);
    }
}

impl Member {
    fn read(
        host: &Host,
        pid: u32,
        mut stat: Stat,
        draws: bool,
        eyes: &mut Eyes,
        objects: &mut Objects,
    ) -> Result<Self, ResidencyError> {
        for _ in 0..TRIES {
            let looked = private::read(host, pid, draws, eyes, objects);
            let looked = looked.and_then(|looked| Ok((looked, status(host, pid)?)));
            let after = stat_of(host, pid)?;
            if after.start_ticks != stat.start_ticks {
                return Err(ResidencyError::NoProcess { process: pid.to_string() });
            }
            match looked {
                Ok(((mut areas, seen_by), status)) if after.is_same(&stat) => {
                    if seen_by != SeenBy::Smaps {
                        bound_swap(&mut areas, status.swap_bytes);
                    }
                    let (threads, memory_of) = (Vec::new(), None);
                    return Ok(Self { pid, stat, status, areas, threads, seen_by, memory_of });
                }
                // Another program was executed: what was read is of neither.
                Ok(_) => {}
                // So it was where only the memory is gone that was looked at.
                Err(ResidencyError::NoProcess { .. }) if has_memory(host, pid) => {}
                Err(error) => return Err(error),
            }
            stat = after;
        }
        Err(ResidencyError::Restless { pid })
    }
}

/// Whether a process has memory: one that is ending has given it back, however long that takes.
fn has_memory(host: &Host, pid: u32) -> bool {
    let text = host.read_lossy(&format!("/proc/{pid}/status")).unwrap_or_default();
    host.is_live() && text.lines().any(|line| line.starts_with("VmSize:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_in_the_cells_that_it_reaches_over() {
        let area = crate::maps::parse_maps("1000-65000 rw-p 0 0:0 0\n").unwrap().remove(0);
        let whole = area.bytes();
        let mut pages = AreaPages { cells: vec![Vec::new(); 7], ..AreaPages::new(area, None) };
        let part = |node, bytes| Part {
            backing: crate::smaps::Backing::Base,
            node: Some(node),
            page_bytes: 4096,
            bytes,
            estimated: false,
        };
        for page in 0..whole / 4096 {
            pages.add(0x1000 + page * 4096, part(u32::from(page >= 50), 4096));
        }
        let sum = |parts: &[Part]| parts.iter().map(|part| part.bytes).sum::<u64>();
        assert_eq!((pages.cells.len(), sum(&pages.parts)), (7, whole));
        assert!(pages.cells.iter().all(|cell| sum(cell).abs_diff(whole / 7) <= 1), "{:?}", pages.cells);
        let of_node =
            |node| pages.cells.iter().filter(move |cell| cell.iter().all(|it| it.node == Some(node)));
        assert_eq!((of_node(0).count(), of_node(1).count()), (3, 3), "and one is of both");
        pages.add(0x1000, part(2, 2 << 20));
        assert_eq!(pages.cells.iter().map(|cell| sum(cell)).sum::<u64>(), 2 * whole, "cut at the end");
    }

    /// Of a table of cases: parts of a file that is mapped privately, those of them that are own, and what is left to
    /// the file: node, bytes, whether it is an estimate.
    #[test]
    fn what_is_own_of_a_file_is_taken_off_what_is_told_alike() {
        type Told<'a> = &'a [(u32, u64, bool)];
        let cases: [(Told<'_>, Told<'_>, Told<'_>); 5] = [
            (&[(0, 12, false)], &[(0, 4, false)], &[(0, 8, false)]),
            (&[(0, 12, false)], &[(0, 4, true)], &[(0, 8, true)]),
            (&[(0, 4, false), (0, 8, true)], &[(0, 8, true)], &[(0, 4, false)]),
            (&[(0, 8, true), (0, 12, false)], &[(0, 8, true)], &[(0, 12, false)]),
            (&[(0, 12, false), (1, 8, false)], &[(1, 8, false)], &[(0, 12, false)]),
        ];
        let parts = |told: Told<'_>| -> Vec<Part> {
            let part = |(node, bytes, estimated): &(u32, u64, bool)| Part {
                backing: crate::smaps::Backing::Base,
                node: Some(*node),
                page_bytes: 4,
                bytes: *bytes,
                estimated: *estimated,
            };
            told.iter().map(part).collect()
        };
        for (all, own, kept) in cases {
            let area = crate::maps::parse_maps("1000-65000 rw-p 0 8:1 5 /data/table\n").unwrap().remove(0);
            let pages = AreaPages { parts: parts(all), own: parts(own), ..AreaPages::new(area, None) };
            let told: Vec<(Kind, Vec<Part>)> =
                pages.by_kind().map(|(kind, _, parts)| (kind, parts)).collect();
            assert_eq!(told, [(Kind::File, parts(kept)), (Kind::Anon, parts(own))], "{all:?}, own {own:?}");
        }
    }

    /// Of a table of cases: what is an estimate, and what is none.
    #[test]
    fn what_was_not_seen_in_whole_is_an_estimate() {
        let part = |estimated| Part {
            backing: crate::smaps::Backing::Base,
            node: Some(0),
            page_bytes: 4096,
            bytes: 4096,
            estimated,
        };
        let object = |kind, looked, estimated| {
            let mut pages = ObjectPages::default();
            pages.add_sum(0..8192, vec![part(estimated)]);
            let (id, name, mapped) = (None, String::new(), std::iter::once(0..8192).collect());
            Object { id, name, kind, bytes: 8192, pages, looked, mapped }
        };
        // Kind of an object, whether it was looked at, whether it was an estimate; private pages count once; wanted of
        // the object and of private memory.
        for (kind, looked, was, once, wanted) in [
            (Kind::Shared, true, false, true, [false, false]),
            (Kind::Shared, false, false, true, [true, false]),
            (Kind::File, false, false, true, [false, false]),
            (Kind::File, false, true, true, [true, false]),
            (Kind::Shared, true, false, false, [false, true]),
            (Kind::Shared, false, false, false, [true, true]),
        ] {
            let area = crate::maps::parse_maps("1000-65000 rw-p 0 0:0 0\n").unwrap().remove(0);
            let areas = vec![AreaPages {
                parts: vec![part(false)],
                own: vec![part(false)],
                cells: vec![vec![part(false)]],
                ..AreaPages::new(area, None)
            }];
            let member = Member {
                pid: 7,
                stat: Stat::default(),
                status: Status::default(),
                areas,
                threads: Vec::new(),
                seen_by: SeenBy::PagemapScan,
                memory_of: None,
            };
            let (members, objects) = (vec![member], vec![object(kind, looked, was)]);
            let (denied, unseen) = (Vec::new(), Vec::new());
            let mut map = Map { members, denied, objects, unseen, tells_large_pages: true };
            map.estimate(once);
            let case = format!("{kind:?}, looked {looked}, was {was}, once {once}");
            let pages = &map.members[0].areas[0];
            let private = [pages.parts[0], pages.own[0], pages.cells[0][0]].map(|part| part.estimated);
            assert_eq!(map.objects[0].parts()[0].estimated, wanted[0], "{case}");
            assert_eq!(private, [wanted[1]; 3], "{case}");
            assert_eq!(map.misses_shared_pages(), kind == Kind::Shared && !looked, "{case}");
            let told: Vec<(Kind, bool)> = map.rows().iter().map(|row| (row.kind, row.estimated)).collect();
            assert!(told.contains(&(kind, wanted[0])) && told.contains(&(Kind::Anon, wanted[1])), "{case}");
        }
    }

    /// A recording has smaps alone, by which whatever processes share counts in each of them.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes a recorded host")]
    fn a_recorded_tree_tells_that_files_count_in_each_process() {
        let folder = tempfile::tempdir().unwrap();
        for pid in [7, 8] {
            let path = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("stat"), format!("{pid} (db) S {} 7 7 0 -1 64\n", pid - 1)).unwrap();
            std::fs::write(path.join("status"), "Name:\tdb\n").unwrap();
            let code = "1000-5000 r-xp 00000000 08:01 5 /lib/libc.so.6\nRss: 16 kB\n";
            std::fs::write(path.join("smaps"), code).unwrap();
        }
        let host = Host::open(folder.path()).unwrap();
        let told = |map: &Map| -> Vec<(u64, bool)> {
            map.rows().iter().map(|row| (row.resident_bytes, row.estimated)).collect()
        };
        let says =
            |map: &Map| map.unseen.iter().any(|unseen| unseen.what.starts_with("which pages of files"));
        let tree = Map::read(&host, &Who::Pid(7), true).unwrap();
        assert_eq!((told(&tree), says(&tree)), (vec![(32 << 10, true)], true), "{:?}", tree.unseen);
        let alone = Map::read(&host, &Who::Pid(7), false).unwrap();
        assert_eq!((told(&alone), says(&alone)), (vec![(16 << 10, false)], false), "{:?}", alone.unseen);
    }

    /// smaps tells of mappings that are too long to be read entry by entry: in each process what several share.
    #[test]
    fn what_is_too_long_to_be_read_is_an_estimate_of_a_tree() {
        let host = Host::live();
        let mut children = [0; 2].map(|_| std::process::Command::new("sleep").arg("60").spawn().unwrap());
        let look = |count: usize| {
            let of_child = |child: &std::process::Child| (child.id(), stat_of(&host, child.id()).unwrap());
            let found: Vec<(u32, Stat)> = children[..count].iter().map(of_child).collect();
            let mut eyes = Eyes::open(&host, count > 1);
            (eyes.has_scan, eyes.entries_left) = (false, 0);
            Map::look(&host, found, eyes)
        };
        let looked = [1, 2].map(look);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let [alone, tree] = looked.map(|map| map.expect("they are ours"));
        if [&alone, &tree].iter().any(|map| map.members[0].seen_by != SeenBy::Pagemap) {
            let test = "what_is_too_long_to_be_read_is_an_estimate_of_a_tree";
            return planish_skip::skip(test, "the nodes of pages are not told here");
        }
        let marks = |map: &Map| -> Vec<bool> {
            let areas = map.members.iter().flat_map(|member| &member.areas);
            let parts = areas.flat_map(|pages| pages.parts.iter().chain(&pages.own));
            parts.map(|part| part.estimated).collect()
        };
        assert!(marks(&alone).contains(&false), "one process counts nothing twice");
        assert!(marks(&tree).contains(&true) && !marks(&tree).contains(&false), "{:?}", tree.rows());
        assert!(!alone.tells_large_pages && !tree.tells_large_pages, "smaps knows none");
    }

    #[test]
    fn a_process_that_ends_during_a_look_was_there() {
        let host = Host::live();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = members(&host, &Who::Pid(child.id()), false).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let error = Map::look(&host, found, Eyes::open(&host, false)).unwrap_err();
        assert_eq!(error.to_string(), format!("process {} ended while it was looked at", child.id()));
        assert!(error.cure().is_some());
    }

    #[test]
    fn marks_in_page_tables_are_not_in_swap() {
        let maps =
            "1000-9000 rw-p 0 0:0 0\n9000-a000 rw-p 0 0:0 0\na000-b000 rw-s 0 0:1 5 /dev/zero (deleted)\n";
        let bounded = |swap_bytes| -> Vec<u64> {
            let areas = crate::maps::parse_maps(maps).unwrap().into_iter().zip([12 << 10, 4 << 10, 4 << 10]);
            let pages = |(area, swapped_bytes)| AreaPages { swapped_bytes, ..AreaPages::new(area, None) };
            let mut areas: Vec<AreaPages> = areas.map(pages).collect();
            bound_swap(&mut areas, swap_bytes);
            areas.iter().map(|pages| pages.swapped_bytes).collect()
        };
        assert_eq!(bounded(0), [0, 0, 0], "a machine without swap");
        assert_eq!(bounded(8 << 10), [6 << 10, 2 << 10, 0]);
        assert_eq!(bounded(1 << 20), [12 << 10, 4 << 10, 0]);
    }
}
