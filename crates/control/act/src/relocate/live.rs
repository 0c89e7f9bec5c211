//! The processes of the machine that we run on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

use planish_host::{Host, ReadError};
use planish_residency::{
    Area, ResidencyError, folio_pages, parse_maps, parse_numa_maps, parse_stat, stat_of,
};
use planish_sys::pagemap::{FrameFlags, Pagemap, Run};
use planish_sys::policy::{self, PageAt};
use planish_sys::{CpuSet, Errno, affinity, pages, process};
use rustix::process::Pid;

use super::{Identity, Mapped, Process, Processes, RelocateError, Room, Spaces, Thread};

/// The processes of this machine.
#[derive(Debug)]
pub struct LiveProcesses {
    host: Host,
    base_bytes: u64,
    chunk_bytes: u64,
    /// The high watermarks of nodes. To read them locks every zone, and they change with settings alone.
    high_bytes: RefCell<BTreeMap<u32, u64>>,
}

impl Default for LiveProcesses {
    fn default() -> Self {
        let base_bytes = pages::base_bytes() as u64;
        let chunk_bytes = pages::thp_bytes().map_or(2 << 20, |bytes| bytes as u64).max(base_bytes);
        Self { host: Host::live(), base_bytes, chunk_bytes, high_bytes: RefCell::default() }
    }
}

impl Processes for LiveProcesses {
    fn open(&self, pid: u32) -> Result<Option<Box<dyn Process + '_>>, RelocateError> {
        let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let refused = |source| RelocateError::Refused { pid, source };
        let handle = match process::pidfd(raw) {
            Ok(handle) => handle,
            Err(error) if error.errno() == Some(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        // Where the first thread has ended and others go on, they have the memory, and /proc shows it by them.
        let shown = planish_residency::shown_as(&self.host, pid);
        let memory = i32::try_from(shown).ok().and_then(Pid::from_raw).unwrap_or(raw);
        // Opened once: it stays with the address space that the process has now.
        let pagemap = match Pagemap::open(Some(memory)) {
            Ok(pagemap) => RefCell::new(Some(pagemap)),
            Err(error) if matches!(error.errno(), Some(Errno::NOENT | Errno::SRCH)) => return Ok(None),
            // Threads can be moved without seeing the memory (CAP_SYS_NICE); whoever asks for pages is refused then.
            Err(planish_sys::Error::Forbidden { .. }) => RefCell::new(None),
            Err(error) => return Err(refused(error)),
        };
        let spaces = self.spaces()?;
        Ok(Some(Box::new(LiveProcess { host: &self.host, pid, shown, memory, spaces, handle, pagemap })))
    }

    fn spaces(&self) -> Result<Spaces, RelocateError> {
        let elsewhere = |why| Err(RelocateError::Elsewhere { why });
        let me = self.host.read("/proc/self/stat").ok();
        let me = me.and_then(|stat| stat.split(' ').next()?.parse::<u32>().ok());
        if me != Some(std::process::id()) {
            return elsewhere(
                "/proc here is that of another PID namespace: its numbers name other processes than ours",
            );
        }
        let number = |name: &str| {
            let link = self.host.read_link(&format!("/proc/self/ns/{name}"))?;
            link.split_once(":[")?.1.strip_suffix(']')?.parse().ok()
        };
        let Some(pids) = number("pid") else {
            return elsewhere(
                "/proc/self/ns does not tell the PID namespace in which numbers of processes are meant",
            );
        };
        Ok(Spaces { pids, time: number("time").unwrap_or(0) })
    }

    fn room(&self, node: u32) -> Option<Room> {
        let text = self.host.read(&format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
        let (free, total) = (meminfo(&text, "MemFree:")?, meminfo(&text, "MemTotal:")?);
        let high = *self.high_bytes.borrow_mut().entry(node).or_insert_with(|| {
            let zones = self.host.read("/proc/zoneinfo").unwrap_or_default();
            high_pages(&zones, node) * self.base_bytes
        });
        Some(Room { free, kept: high + (total / 16).min(512 << 20) })
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }
}

/// `Node 0 MemFree:    123 kB` in bytes.
fn meminfo(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(key))?;
    let kilobytes: u64 = line.split_once(key)?.1.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The high watermarks of the zones of a node, in pages: below their sum the kernel begins to reclaim.
fn high_pages(zoneinfo: &str, node: u32) -> u64 {
    let head = format!("Node {node}, zone");
    let mut is_of_node = false;
    let mut pages: u64 = 0;
    for line in zoneinfo.lines() {
        if line.starts_with("Node ") {
            is_of_node = line.starts_with(&head);
        } else if let Some(high) = line.trim_start().strip_prefix("high ").filter(|_| is_of_node) {
            pages = pages.saturating_add(high.trim().parse().unwrap_or(0));
        }
    }
    pages
}

struct LiveProcess<'a> {
    host: &'a Host,
    pid: u32,
    /// The number of a thread that has not ended, by which its memory is asked for: its own but for a process whose
    /// first thread has.
    shown: u32,
    memory: Pid,
    spaces: Spaces,
    handle: OwnedFd,
    /// `None`: we may not see its memory.
    pagemap: RefCell<Option<Pagemap>>,
}

impl LiveProcess<'_> {
    fn sort(&self, error: planish_sys::Error) -> RelocateError {
        match error.errno() {
            Some(Errno::SRCH) if self.is_whole() => RelocateError::Ended { pid: self.pid },
            _ => RelocateError::Refused { pid: self.pid, source: error },
        }
    }

    fn read(&self, name: &str) -> Result<String, RelocateError> {
        let path = format!("/proc/{}/{name}", self.shown);
        self.host.read_lossy(&path).map_err(|source| match source {
            source if has_ended(&source) && self.is_whole() => RelocateError::Ended { pid: self.pid },
            source => self.unread(source),
        })
    }

    /// Whether its memory is shown by its own number, which is there until it ends.
    fn is_whole(&self) -> bool {
        self.shown == self.pid
    }

    fn unread(&self, source: ReadError) -> RelocateError {
        ResidencyError::Read { process: self.pid.to_string(), source }.into()
    }
}

/// Whether a file of a process cannot be read because the process, or the thread, is no more. Any other error may pass.
fn has_ended(error: &ReadError) -> bool {
    match error {
        ReadError::Absent { .. } => true,
        ReadError::Io { source, .. } => source.raw_os_error() == Some(Errno::SRCH.raw_os_error()),
        _ => false,
    }
}

/// Addresses of a process of ours fit our own.
fn ours(addresses: &[u64]) -> Vec<usize> {
    addresses.iter().map(|address| usize::try_from(*address).unwrap_or(usize::MAX)).collect()
}

impl Process for LiveProcess<'_> {
    fn identity(&self) -> Result<Option<Identity>, RelocateError> {
        // A descriptor of a process becomes readable with its end.
        if process::wait_readable(&self.handle, Some(Duration::ZERO)).map_err(|error| self.sort(error))? {
            return Ok(None);
        }
        let stat = match stat_of(self.host, self.pid) {
            Ok(stat) => stat,
            Err(ResidencyError::NoProcess { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Of a thread that ends meanwhile, the others go on: that is no end of the process.
        let layout = if self.is_whole() { stat.layout } else { stat_of(self.host, self.shown)?.layout };
        let mark = process::exec_mark(self.memory);
        let spaces = self.spaces;
        Ok(Some(Identity { pid: self.pid, start_ticks: stat.start_ticks, layout, mark, spaces }))
    }

    fn areas(&self) -> Result<Vec<Area>, RelocateError> {
        parse_maps(&self.read("maps")?)
            .map_err(|line| ResidencyError::Odd { path: format!("/proc/{}/maps", self.pid), line }.into())
    }

    fn mapped(&self) -> Result<Vec<Mapped>, RelocateError> {
        let odd = |path: &str, line| ResidencyError::Odd { path: format!("/proc/{}/{path}", self.pid), line };
        // smaps walks all page tables, as numa_maps does: it is read only where something is locked.
        let (areas, flags) = if locks_some(&self.read("status")?) {
            areas_of(&self.read("smaps")?).map_err(|line| odd("smaps", line))?
        } else {
            let areas = self.areas()?;
            let none = vec![(false, false); areas.len()];
            (areas, none)
        };
        let numa_maps = match self.read("numa_maps") {
            Err(RelocateError::Ended { .. }) if self.identity()?.is_some() => {
                return Err(RelocateError::NoNuma { pid: self.pid });
            }
            text => text?,
        };
        let placements = parse_numa_maps(&numa_maps).map_err(|line| odd("numa_maps", line))?;
        let placement = |start| {
            let at = placements.binary_search_by_key(&start, |placement| placement.start).ok()?;
            placements.get(at)
        };
        let base_bytes = pages::base_bytes() as u64;
        let mapped = areas.into_iter().zip(flags).map(|(area, (is_locked, is_pool))| {
            let placement = placement(area.range.start);
            Mapped {
                policy: placement.map(|placement| placement.policy.clone()),
                is_locked,
                // Pages of a pool are told by their size; transparent ones count as base pages.
                is_pool: is_pool || placement.is_some_and(|placement| placement.page_bytes > base_bytes),
                area,
            }
        });
        Ok(mapped.collect())
    }

    fn swapped_bytes(&self) -> Result<Option<u64>, RelocateError> {
        let status = self.read("status")?;
        let swapped = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
        let kilobytes = swapped.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Ok(kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024)))
    }

    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, RelocateError> {
        let mut runs = Vec::new();
        let mut pagemap = self.pagemap.borrow_mut();
        let found = match pagemap.as_mut() {
            Some(pagemap) => pagemap.runs(range, &mut runs),
            // Refused as before, and this time for good.
            None => Pagemap::open(Some(self.memory)).and_then(|mut pagemap| pagemap.runs(range, &mut runs)),
        };
        found.map_err(|error| self.sort(error))?;
        Ok(runs)
    }

    fn folio(&self, address: u64, within: &Range<u64>) -> Option<Range<u64>> {
        let base = pages::base_bytes() as u64;
        let count = (within.end - within.start) / base;
        let mut frames = vec![0u64; usize::try_from(count).ok()?];
        let mut flags = frames.clone();
        let read = self.pagemap.borrow().as_ref()?.frames(within.start, &mut frames).ok()?;
        let at = usize::try_from((address - within.start) / base).ok()?;
        // Frames are root's to see: others are told 0.
        let frame = frames[..read].get(at).copied().filter(|frame| *frame != 0)?;
        // No folio reaches over a multiple of the pages of a huge one, and all are aligned.
        let first = frame / count * count;
        let read = FrameFlags::open().ok()?.read(first, &mut flags).ok()?;
        let pages = *folio_pages(&flags[..read]).get(usize::try_from(frame - first).ok()?)?;
        let start = frame / u64::from(pages) * u64::from(pages);
        let folio = start..start + u64::from(pages);
        let is_of = |frame: &u64| folio.contains(frame);
        let (start, last) = (frames.iter().position(is_of)?, frames.iter().rposition(is_of)?);
        Some(within.start + start as u64 * base..within.start + (last as u64 + 1) * base)
    }

    fn pages_at(&self, addresses: &[u64]) -> Result<Vec<PageAt>, RelocateError> {
        policy::pages_at(Some(self.memory), &ours(addresses)).map_err(|error| self.sort(error))
    }

    fn move_pages(&self, addresses: &[u64], nodes: &[u32]) -> Result<Vec<PageAt>, RelocateError> {
        policy::move_pages(Some(self.memory), &ours(addresses), nodes).map_err(|error| self.sort(error))
    }

    fn threads(&self) -> Result<Vec<Thread>, RelocateError> {
        let folder = format!("/proc/{}/task", self.pid);
        let mut tids: Vec<u32> = self.host.list(&folder).iter().filter_map(|tid| tid.parse().ok()).collect();
        tids.sort_unstable();
        if self.identity()?.is_none() {
            return Err(RelocateError::Ended { pid: self.pid });
        }
        if tids.is_empty() {
            // Each process has a thread: the list cannot be read.
            return Err(ResidencyError::Odd { path: folder, line: String::new() }.into());
        }
        // One that ends meanwhile is none.
        tids.into_iter().filter_map(|tid| self.thread(tid).transpose()).collect()
    }

    fn thread(&self, tid: u32) -> Result<Option<Thread>, RelocateError> {
        let folder = format!("/proc/{}/task/{tid}", self.pid);
        let read = |name: &str| match self.host.read_lossy(&format!("{folder}/{name}")) {
            Ok(text) => Ok(Some(text)),
            Err(error) if has_ended(&error) => Ok(None),
            Err(error) => Err(self.unread(error)),
        };
        let (Some(stat), Some(status)) = (read("stat")?, read("status")?) else { return Ok(None) };
        // Not by sched_getaffinity(2), which leaves out CPUs that are offline.
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let cpus = list.and_then(|list| CpuSet::parse_list(list.trim()).ok());
        match (parse_stat(&stat), cpus) {
            (Some(stat), Some(cpus)) => Ok(Some(Thread { tid, start_ticks: stat.start_ticks, cpus })),
            _ => Err(ResidencyError::Odd { path: folder, line: stat }.into()),
        }
    }

    fn pin(&self, thread: u32, cpus: &CpuSet) -> Result<(), RelocateError> {
        if self.identity()?.is_none() {
            return Err(RelocateError::Ended { pid: self.pid });
        }
        // The kernel would take the number of one that has ended for that of a thread of anybody. It runs nowhere.
        if self.thread(thread)?.is_none() {
            return Ok(());
        }
        let Some(tid) = i32::try_from(thread).ok().and_then(Pid::from_raw) else {
            return Err(RelocateError::Ended { pid: self.pid });
        };
        match affinity::set(Some(tid), cpus) {
            Err(error) if error.errno() == Some(Errno::SRCH) => match self.identity()? {
                Some(_) => Ok(()),
                None => Err(RelocateError::Ended { pid: self.pid }),
            },
            outcome => outcome.map_err(|error| self.sort(error)),
        }
    }
}

/// Whether a process has locked some of its memory, by its status; where it does not tell, it may have.
fn locks_some(status: &str) -> bool {
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_none_or(|locked| locked.trim() != "0 kB")
}

/// Whether a mapping is locked, and whether it is of a pool.
type LockedAndPool = (bool, bool);

/// The mappings in the text of smaps, each with whether it is locked and whether it is of a pool.
fn areas_of(smaps: &str) -> Result<(Vec<Area>, Vec<LockedAndPool>), String> {
    let (mut heads, mut flags) = (String::new(), Vec::new());
    for line in smaps.lines() {
        if let Some(words) = line.strip_prefix("VmFlags:") {
            let has = |flag: &str| words.split_ascii_whitespace().any(|word| word == flag);
            if let Some(last) = flags.last_mut() {
                *last = (has("lo"), has("ht"));
            }
        } else if line.split(' ').next().is_some_and(|word| !word.ends_with(':')) {
            heads += line;
            heads.push('\n');
            flags.push((false, false));
        }
    }
    let areas = parse_maps(&heads)?;
    // The zip of a line that is none would shift every flag behind it.
    if areas.len() == flags.len() {
        Ok((areas, flags))
    } else {
        Err(heads.lines().last().unwrap_or("").to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use planish_sys::pagemap::Filled;
    use planish_sys::{MapOptions, PageRequest, map_anonymous};

    use super::super::named::whole;
    use super::*;

    #[test]
    fn flags_belong_to_the_mapping_above_them() {
        let smaps = "1000-2000 rw-p 00000000 00:00 0 [heap]\nSize: 4 kB\nVmFlags: rd wr mr mw me lo ac\n\
                     2000-3000 rw-s 00000000 00:0f 7 /anon_hugepage (deleted)\nVmFlags: rd wr sh ht\n\
                     3000-4000 rw-p 00000000 00:00 0 \nSize: 4 kB\n";
        let (areas, flags) = areas_of(smaps).expect("sound");
        assert_eq!(areas.len(), 3);
        assert_eq!(flags, [(true, false), (false, true), (false, false)]);
        assert!(areas_of("1000-2000 rw-p\n").is_err());
    }

    #[test]
    fn a_file_may_have_a_name_of_any_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        // By another process: the kernel runs no file that somebody has open for writing, as each child has that
        // another test starts while we copy.
        let copied = std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status();
        assert!(copied.expect("it starts").success());
        let mut child = std::process::Command::new(&program).arg("60").spawn().expect("it starts");
        let processes = LiveProcesses::default();
        let look = || processes.open(child.id()).map(|process| process.expect("it lives").areas());
        let is_mapped = |areas: &[Area]| areas.iter().any(|area| area.name.contains("caf\u{fffd}"));
        // A program has begun before all of it is mapped.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        let mut areas = look();
        while matches!(&areas, Ok(Ok(areas)) if !is_mapped(areas)) && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            areas = look();
        }
        child.kill().expect("ours");
        child.wait().expect("ours");
        let areas = areas.expect("seen").expect("read");
        assert!(is_mapped(&areas), "{areas:?}");
    }

    /// `pthread_exit` in `main`: /proc shows no memory by the number of such a process, and it has all of it.
    #[test]
    fn a_process_whose_first_thread_has_ended_has_its_memory() {
        let test = "a_process_whose_first_thread_has_ended_has_its_memory";
        let exit = if cfg!(target_arch = "x86_64") { 60 } else { 93 };
        let lines = [
            "import ctypes, threading, time",
            "held = bytearray(b'x' * (8 << 20))",
            "threading.Thread(target=lambda: (print('ready', flush=True), time.sleep(60))).start()",
            &format!("ctypes.CDLL(None).syscall({exit}, 0)"),
        ];
        let mut program = std::process::Command::new("python3");
        program.args(["-c", &lines.join("\n")]).stdout(std::process::Stdio::null());
        let Ok(mut child) = program.spawn() else { return planish_skip::skip(test, "no python3") };
        let (processes, host) = (LiveProcesses::default(), Host::live());
        let status = || host.read_lossy(&format!("/proc/{}/status", child.id())).unwrap_or_default();
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !status().contains("State:\tZ") && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let looked = (|| {
            let process = processes.open(child.id())?.expect("it lives");
            let identity = process.identity()?.expect("it lives");
            let areas = process.areas()?;
            let mut runs = Vec::new();
            for area in areas.iter().filter(|area| area.name != "[vsyscall]") {
                runs.extend(process.runs(area.range.clone())?);
            }
            let first = [runs.iter().find(|run| run.filled == Filled::Base).expect("pages").range.start];
            let at = process.pages_at(&first)?;
            Ok::<_, RelocateError>((identity, areas.len(), runs, at))
        })();
        child.kill().expect("ours");
        child.wait().expect("ours");
        let (identity, areas, runs, at) = looked.expect("it is ours");
        assert_eq!(identity.pid, child.id());
        assert!(identity.layout != (0, 0) && areas > 10, "{identity:?} {areas}");
        let bytes: u64 = runs.iter().map(|run| run.range.end - run.range.start).sum();
        assert!(bytes >= 8 << 20 && matches!(at[0], PageAt::Node(_)), "{bytes} {at:?}");
    }

    /// Of memory of our own, by the kernel itself: what page tables tell as base pages is asked by its frames.
    #[test]
    fn pages_are_told_with_those_that_go_with_them() {
        let test = "pages_are_told_with_those_that_go_with_them";
        let Some(huge) = pages::thp_bytes() else { return planish_skip::skip(test, "no THP") };
        let (processes, base) = (LiveProcesses::default(), pages::base_bytes() as u64);
        let me = processes.open(std::process::id()).expect("seen").expect("it lives");
        for (page, bytes) in [(PageRequest::Base, base), (PageRequest::Thp, huge as u64)] {
            let options = MapOptions { populate: true, ..MapOptions::new(page) };
            let mapping = map_anonymous(huge, options).expect("room");
            let at = mapping.as_ptr().addr() as u64 + 3 * base;
            let page = at..at + base;
            let Some(folio) = me.folio(at, &whole(&page, huge as u64)) else {
                return planish_skip::skip(test, "frames, or /proc/kpageflags, are not told");
            };
            if bytes > base && folio == page {
                return planish_skip::skip(test, "the kernel had no huge page");
            }
            assert_eq!(folio, whole(&page, bytes));
        }
    }

    #[test]
    fn what_cannot_be_read_has_not_ended() {
        let error =
            |number| ReadError::Io { path: String::new(), source: std::io::Error::from_raw_os_error(number) };
        assert!(has_ended(&error(Errno::SRCH.raw_os_error())));
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO] {
            assert!(!has_ended(&error(errno.raw_os_error())), "{errno}");
        }
        let spaces = LiveProcesses::default().spaces().expect("our own");
        assert!(spaces.pids > 0);
    }

    #[test]
    fn smaps_is_read_for_locks_alone() {
        assert!(!locks_some("Name:\tdb\nVmLck:\t       0 kB\n"));
        assert!(locks_some("Name:\tdb\nVmLck:\t      16 kB\n") && locks_some("Name:\tdb\n"));
    }

    #[test]
    fn a_node_keeps_its_watermarks() {
        let zones = "Node 0, zone   DMA\n  pages free     100\n        high     30\n\
                     Node 0, zone   Normal\n        high     400\n    high_min 7\n\
                     Node 10, zone   Normal\n        high     9000\n";
        assert_eq!((high_pages(zones, 0), high_pages(zones, 10), high_pages(zones, 1)), (430, 9000, 0));
        assert_eq!(meminfo("Node 0 MemTotal:  10 kB\nNode 0 MemFree:   3 kB\n", "MemFree:"), Some(3072));
    }
}
