//! The processes of the machine that we run on.

use std::cell::RefCell;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

use planish_host::Host;
use planish_residency::{Area, ResidencyError, parse_maps, parse_numa_maps, parse_stat, stat_of};
use planish_sys::pagemap::{Pagemap, Run};
use planish_sys::policy::{self, PageAt};
use planish_sys::{CpuSet, affinity, pages, process};
use rustix::process::Pid;

use super::{Identity, Mapped, Process, Processes, RelocateError, Room, Thread};

/// The processes of this machine.
#[derive(Debug)]
pub struct LiveProcesses {
    host: Host,
    base_bytes: u64,
    chunk_bytes: u64,
}

impl Default for LiveProcesses {
    fn default() -> Self {
        let base_bytes = pages::base_bytes() as u64;
        let chunk_bytes = pages::thp_bytes().map_or(2 << 20, |bytes| bytes as u64).max(base_bytes);
        Self { host: Host::live(), base_bytes, chunk_bytes }
    }
}

impl Processes for LiveProcesses {
    fn open(&self, pid: u32) -> Result<Option<Box<dyn Process + '_>>, RelocateError> {
        let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let refused = |source| RelocateError::Refused { pid, source };
        let handle = match process::pidfd(raw) {
            Ok(handle) => handle,
            Err(error) if error.errno() == Some(planish_sys::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        // Opened once: it stays with the address space that the process has now.
        let pagemap = RefCell::new(Pagemap::open(Some(raw)).map_err(refused)?);
        Ok(Some(Box::new(LiveProcess { host: &self.host, pid, raw, handle, pagemap })))
    }

    fn room(&self, node: u32) -> Option<Room> {
        let text = self.host.read(&format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
        let (free, total) = (meminfo(&text, "MemFree:")?, meminfo(&text, "MemTotal:")?);
        let zones = self.host.read("/proc/zoneinfo").unwrap_or_default();
        let high = high_pages(&zones, node) * self.base_bytes;
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
    raw: Pid,
    handle: OwnedFd,
    pagemap: RefCell<Pagemap>,
}

impl LiveProcess<'_> {
    fn sort(&self, error: planish_sys::Error) -> RelocateError {
        match error.errno() {
            Some(planish_sys::Errno::SRCH) => RelocateError::Ended { pid: self.pid },
            _ => RelocateError::Refused { pid: self.pid, source: error },
        }
    }

    fn read(&self, name: &str) -> Result<String, RelocateError> {
        let path = format!("/proc/{}/{name}", self.pid);
        self.host.read(&path).map_err(|source| match source {
            source if source.is_absent() => RelocateError::Ended { pid: self.pid },
            source => ResidencyError::Read { process: self.pid.to_string(), source }.into(),
        })
    }
}

/// Addresses of a process of ours fit our own.
fn ours(addresses: &[u64]) -> Vec<usize> {
    addresses.iter().map(|address| usize::try_from(*address).unwrap_or(usize::MAX)).collect()
}

impl Process for LiveProcess<'_> {
    fn identity(&self) -> Option<Identity> {
        // A descriptor of a process becomes readable with its end.
        if process::wait_readable(&self.handle, Some(Duration::ZERO)).unwrap_or(true) {
            return None;
        }
        let stat = stat_of(self.host, self.pid).ok()?;
        let mark = process::exec_mark(self.raw);
        Some(Identity { pid: self.pid, start_ticks: stat.start_ticks, layout: stat.layout, mark })
    }

    fn mapped(&self) -> Result<Vec<Mapped>, RelocateError> {
        let odd = |path: &str, line| ResidencyError::Odd { path: format!("/proc/{}/{path}", self.pid), line };
        let (areas, flags) = areas_of(&self.read("smaps")?).map_err(|line| odd("smaps", line))?;
        let numa_maps = match self.read("numa_maps") {
            Err(RelocateError::Ended { .. }) if self.identity().is_some() => {
                return Err(RelocateError::NoNuma { pid: self.pid });
            }
            text => text?,
        };
        let placements = parse_numa_maps(&numa_maps).map_err(|line| odd("numa_maps", line))?;
        let policy = |start| {
            let at = placements.binary_search_by_key(&start, |placement| placement.start).ok()?;
            Some(placements[at].policy.clone())
        };
        let mapped = areas.into_iter().zip(flags).map(|(area, (is_locked, is_pool))| Mapped {
            policy: policy(area.range.start),
            is_locked,
            is_pool,
            area,
        });
        Ok(mapped.collect())
    }

    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, RelocateError> {
        let mut runs = Vec::new();
        self.pagemap.borrow_mut().runs(range, &mut runs).map_err(|error| self.sort(error))?;
        Ok(runs)
    }

    fn pages_at(&self, addresses: &[u64]) -> Result<Vec<PageAt>, RelocateError> {
        policy::pages_at(Some(self.raw), &ours(addresses)).map_err(|error| self.sort(error))
    }

    fn move_pages(&self, addresses: &[u64], nodes: &[u32]) -> Result<Vec<PageAt>, RelocateError> {
        policy::move_pages(Some(self.raw), &ours(addresses), nodes).map_err(|error| self.sort(error))
    }

    fn threads(&self) -> Result<Vec<Thread>, RelocateError> {
        let folder = format!("/proc/{}/task", self.pid);
        let mut tids: Vec<u32> = self.host.list(&folder).iter().filter_map(|tid| tid.parse().ok()).collect();
        tids.sort_unstable();
        if tids.is_empty() || self.identity().is_none() {
            return Err(RelocateError::Ended { pid: self.pid });
        }
        // One that ends meanwhile is none.
        Ok(tids.into_iter().filter_map(|tid| self.thread(tid)).collect())
    }

    fn thread(&self, tid: u32) -> Option<Thread> {
        let folder = format!("/proc/{}/task/{tid}", self.pid);
        let stat = self.host.read_bytes(&format!("{folder}/stat")).ok()?;
        let stat = parse_stat(&String::from_utf8_lossy(&stat))?;
        let status = self.host.read(&format!("{folder}/status")).ok()?;
        // Not by sched_getaffinity(2), which leaves out CPUs that are offline.
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let cpus = CpuSet::parse_list(list.trim()).ok()?;
        Some(Thread { tid, start_ticks: stat.start_ticks, cpus })
    }

    fn pin(&self, thread: u32, cpus: &CpuSet) -> Result<(), RelocateError> {
        if self.identity().is_none() {
            return Err(RelocateError::Ended { pid: self.pid });
        }
        let Some(tid) = i32::try_from(thread).ok().and_then(Pid::from_raw) else {
            return Err(RelocateError::Ended { pid: self.pid });
        };
        affinity::set(Some(tid), cpus).map_err(|error| self.sort(error))
    }
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
    fn a_node_keeps_its_watermarks() {
        let zones = "Node 0, zone   DMA\n  pages free     100\n        high     30\n\
                     Node 0, zone   Normal\n        high     400\n    high_min 7\n\
                     Node 10, zone   Normal\n        high     9000\n";
        assert_eq!((high_pages(zones, 0), high_pages(zones, 10), high_pages(zones, 1)), (430, 9000, 0));
        assert_eq!(meminfo("Node 0 MemTotal:  10 kB\nNode 0 MemFree:   3 kB\n", "MemFree:"), Some(3072));
    }
}
