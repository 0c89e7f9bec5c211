//! A process as a whole.

use std::ops::Range;

use planish_host::{Host, ReadError};
use planish_sys::Errno;

use crate::numa_maps::{Placement, parse_numa_maps};
use crate::rows::{self, Backings, Part, Row, Segment};
use crate::smaps::{Region, Rollup, parse_rollup, parse_smaps};
use crate::status::{Status, parse_status};

/// Why the memory of a process cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ResidencyError {
    /// There is no such process, or it ended while we looked.
    #[error("no process {process}")]
    NoProcess {
        /// Its PID, or `self`.
        process: String,
    },
    /// No process can be seen at all.
    #[error("no process can be seen: /proc is not mounted")]
    NoProc,
    /// A thread was named, which has the memory of its process.
    #[error("{id} is a thread of process {process}")]
    Thread {
        /// What was named.
        id: u32,
        /// The process that it is of.
        process: u32,
    },
    /// It has no memory any more, and its parent has not asked how it ended.
    #[error("process {pid} has ended, and waits for its parent to take note of it")]
    Ended {
        /// Its PID.
        pid: u32,
    },
    /// It was there, and is no more.
    #[error("process {pid} ended while it was looked at")]
    EndedMeanwhile {
        /// Its PID.
        pid: u32,
    },
    /// It is another user's.
    #[error("no permission to see the memory of process {process}")]
    Denied {
        /// Its PID, or `self`.
        process: String,
        /// What the system answered.
        #[source]
        source: ReadError,
    },
    /// It is left alone on purpose.
    #[error("process {pid} is left alone: {reason}")]
    LeftAlone {
        /// Its PID.
        pid: u32,
        /// Why.
        reason: &'static str,
        /// What to look at instead, or from where.
        cure: &'static str,
    },
    /// Several processes have that name, and none of them started the others.
    #[error("several processes are called `{name}`: {}", listed(pids))]
    Several {
        /// The name.
        name: String,
        /// The first of each family.
        pids: Vec<u32>,
    },
    /// It executed one program after another.
    #[error("process {pid} executes programs faster than it can be looked at")]
    Restless {
        /// Its PID.
        pid: u32,
    },
    /// A file of it cannot be read.
    #[error("cannot see the memory of process {process}")]
    Read {
        /// Its PID, or `self`.
        process: String,
        /// What the system answered.
        #[source]
        source: ReadError,
    },
    /// A file of it says something that cannot be understood.
    #[error("{path} has a line that cannot be understood: {line:?}")]
    Odd {
        /// Path on the machine.
        path: String,
        /// The line.
        line: String,
    },
}

impl ResidencyError {
    /// Whether there is no such process, or none any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NoProcess { .. } | Self::Ended { .. } | Self::EndedMeanwhile { .. })
    }

    /// What would help, where something would.
    pub fn cure(&self) -> Option<String> {
        match self {
            Self::Denied { process, .. } => Some(format!(
                "run as root (CAP_SYS_PTRACE; for what shared memory holds CAP_SYS_ADMIN too), or as the owner of \
                 process {process}, if it has no more rights than that user and does not hide its memory \
                 (PR_SET_DUMPABLE)"
            )),
            Self::Several { pids, .. } => Some(format!("name one of {}", listed(pids))),
            Self::LeftAlone { cure, .. } => Some((*cure).to_owned()),
            Self::Thread { process, .. } => Some(format!("name that process: {process}")),
            Self::NoProcess { .. } | Self::Ended { .. } | Self::EndedMeanwhile { .. } => {
                Some("name a program that runs, or a process id: ps -e lists them".to_owned())
            }
            Self::NoProc => Some("mount it: mount -t proc proc /proc".to_owned()),
            Self::Read { source: ReadError::Io { source, .. }, .. } => {
                Errno::from_io_error(source).and_then(more_files).map(str::to_owned)
            }
            Self::Restless { .. } | Self::Read { .. } | Self::Odd { .. } => None,
        }
    }
}

/// What helps where no file can be opened any more.
pub(crate) fn more_files(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::MFILE => Some("allow this command more open files (ulimit -n)"),
        Errno::NFILE => Some("allow this machine more open files: planish knobs fs.file-max"),
        _ => None,
    }
}

fn listed(pids: &[u32]) -> String {
    pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The memory of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The cheap facts.
    pub status: Status,
    /// Its mappings, by address; none of a kernel thread.
    pub regions: Vec<Region>,
    /// Where they lie, by address; none on a kernel without NUMA.
    pub placements: Vec<Placement>,
    base_bytes: u64,
    thp_bytes: u64,
}

impl Process {
    /// Reads the process `pid` of `host`.
    pub fn read(host: &Host, pid: u32) -> Result<Self, ResidencyError> {
        Self::read_folder(host, &pid.to_string())
    }

    /// Reads the calling process; on a recorded machine, the one that observed it.
    pub fn read_self(host: &Host) -> Result<Self, ResidencyError> {
        Self::read_folder(host, "self")
    }

    fn read_folder(host: &Host, process: &str) -> Result<Self, ResidencyError> {
        let status = status_of(host, process)?;
        let read = |process: &str| {
            let path = format!("/proc/{process}/smaps");
            host.read_lossy(&path).map_err(|error| failed(process, error))
        };
        let mut process = process.to_owned();
        let mut text = read(&process)?;
        if let Some(thread) = other_thread(host, &process).filter(|_| text.is_empty()) {
            process = thread.to_string();
            text = read(&process)?;
        }
        let process = process.as_str();
        let path = format!("/proc/{process}/smaps");
        let regions = parse_smaps(&text).map_err(|line| ResidencyError::Odd { path, line })?;
        let path = format!("/proc/{process}/numa_maps");
        let placements = match host.read_lossy(&path) {
            Ok(text) => parse_numa_maps(&text).map_err(|line| ResidencyError::Odd { path, line })?,
            // A kernel without NUMA has no such file.
            Err(error) if error.is_absent() => Vec::new(),
            Err(error) => return Err(failed(process, error)),
        };
        Ok(Self { status, regions, placements, base_bytes: host.page_bytes(), thp_bytes: thp_bytes(host) })
    }

    /// Memory by kind, name, backing and node.
    pub fn rows(&self) -> Vec<Row> {
        let parts = self.parts();
        let memory = self.regions.iter().zip(&parts);
        rows::rows(
            memory.map(|(region, parts)| (region.area.kind, region.area.name.as_str(), parts.as_slice())),
        )
    }

    /// The resident parts of each region.
    pub(crate) fn parts(&self) -> Vec<Vec<Part>> {
        rows::parts(&self.regions, &self.placements, self.base_bytes, self.thp_bytes)
    }

    /// Resident bytes by backing.
    pub fn total(&self) -> Backings {
        let mut total = Backings::default();
        self.regions.iter().for_each(|region| total.add(region));
        total
    }

    /// Resident bytes by backing of the mappings that lie in `range`, whole ones only.
    ///
    /// For memory that we mapped ourselves: the kernel may have split our mapping in several, but joins one
    /// of ours with a neighbour only when both are alike; [`Process::covers`] tells whether that has
    /// happened.
    pub fn within(&self, range: &Range<u64>) -> Backings {
        let mut total = Backings::default();
        let inside =
            |region: &&Region| range.start <= region.area.range.start && region.area.range.end <= range.end;
        self.regions.iter().filter(inside).for_each(|region| total.add(region));
        total
    }

    /// Whether the mappings that touch `range` cover all of it and nothing else.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let mut reached = range.start;
        for region in self.regions.iter().filter(|region| overlap(&region.area.range, range)) {
            if region.area.range.start != reached {
                return false;
            }
            reached = region.area.range.end;
        }
        reached == range.end
    }

    /// The mapping that holds `address`.
    pub fn region_at(&self, address: u64) -> Option<&Region> {
        let next = self.regions.partition_point(|region| region.area.range.end <= address);
        self.regions.get(next).filter(|region| region.area.range.start <= address)
    }

    /// The segments that a pool must hold: those that it shares with others, and those that it has from a pool already;
    /// the largest first.
    pub fn segments(&self) -> Vec<Segment> {
        rows::segments(&self.regions)
    }

    /// Resident bytes of its private memory in mappings of at least `least` bytes that no pool holds: heaps and caches,
    /// which lie on reserved pages only where the program itself asks for them.
    pub fn private_bytes(&self, least: u64) -> u64 {
        rows::private_bytes(&self.regions, least)
    }
}

/// Size in bytes of a transparent huge page. Where /sys is not there to tell, it is what one entry of the page table's
/// last level but one maps: as many base pages as a base page has entries of 8 bytes.
pub(crate) fn thp_bytes(host: &Host) -> u64 {
    let size = host.read("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok();
    let told = size.and_then(|size| size.trim().parse().ok()).filter(|bytes| *bytes > 0);
    told.unwrap_or_else(|| host.page_bytes() * (host.page_bytes() / 8))
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The sums over all mappings of the process `pid`, at a fraction of the cost of [`Process::read`].
pub fn rollup(host: &Host, pid: u32) -> Result<Rollup, ResidencyError> {
    let read = |pid: u32| {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = host.read_lossy(&path).map_err(|error| failed(&pid.to_string(), error))?;
        Ok((path, text))
    };
    let (path, text) = read(pid).or_else(|error| match error {
        ResidencyError::NoProcess { .. } => read(other_thread(host, &pid.to_string()).ok_or(error)?),
        error => Err(error),
    })?;
    parse_rollup(&text).map_err(|line| ResidencyError::Odd { path, line })
}

/// Whether /proc is mounted so that it hides processes of other users (hidepid=2, hidepid=ptraceable): who may see all
/// of them sees process 1.
#[must_use]
pub fn hides_processes(host: &Host) -> bool {
    host.is_live() && host.exists("/proc/self") && !host.exists("/proc/1")
}

/// The cheap facts of the process `pid`, which any user may know.
pub fn status(host: &Host, pid: u32) -> Result<Status, ResidencyError> {
    status_of(host, &pid.to_string())
}

fn status_of(host: &Host, process: &str) -> Result<Status, ResidencyError> {
    let text = status_text(host, process).map_err(|error| failed(process, error))?;
    Ok(parse_status(&text))
}

/// The text of `/proc/PID/status`; of a process whose first thread has ended what one of the others has, by the name of
/// the process.
///
/// # Errors
/// There is no such process.
pub fn status_text(host: &Host, process: &str) -> Result<String, ReadError> {
    let text = host.read_lossy(&format!("/proc/{process}/status"))?;
    let Some(thread) = other_thread_of(host, process, &text) else { return Ok(text) };
    let other = host.read_lossy(&format!("/proc/{thread}/status"))?;
    let is_name = |line: &&str| line.starts_with("Name:");
    let lines = text.lines().filter(is_name).chain(other.lines().filter(|line| !is_name(line)));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

/// The number below which /proc shows the memory of a process: its own, or that of a thread where the first one has
/// ended and others go on (`pthread_exit` in `main`). No listing of /proc has that, and it is there all the same.
pub fn shown_as(host: &Host, pid: u32) -> u32 {
    other_thread(host, &pid.to_string()).unwrap_or(pid)
}

fn other_thread(host: &Host, process: &str) -> Option<u32> {
    let text = host.read_lossy(&format!("/proc/{process}/status")).ok()?;
    other_thread_of(host, process, &text)
}

/// A thread that has not ended of a process whose first one has, by its status.
fn other_thread_of(host: &Host, process: &str, status: &str) -> Option<u32> {
    if !has_ended(status) {
        return None;
    }
    let threads = host.list(&format!("/proc/{process}/task"));
    let mut threads = threads.iter().filter(|thread| *thread != process);
    let lives = |thread: &&String| {
        let text = host.read_lossy(&format!("/proc/{thread}/status"));
        text.is_ok_and(|text| !has_ended(&text))
    };
    threads.find(lives)?.parse().ok()
}

/// Whether a status is one of what waits for its parent to take note, or for the other threads to end.
pub(crate) fn has_ended(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:")).map(str::trim);
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

pub(crate) fn failed(process: &str, source: ReadError) -> ResidencyError {
    let process = process.to_owned();
    match source {
        ReadError::Absent { .. } => ResidencyError::NoProcess { process },
        ReadError::Denied { .. } => ResidencyError::Denied { process, source },
        // ESRCH: it ended between opening the file and reading it.
        ReadError::Io { source: ref error, .. } if error.raw_os_error() == Some(3) => {
            ResidencyError::NoProcess { process }
        }
        source => ResidencyError::Read { process, source },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous};

    use super::*;
    use crate::maps::Kind;
    use crate::smaps::Backing;

    #[test]
    fn where_no_file_can_be_opened_any_more_the_limit_is_named() {
        let cure = |errno: Errno| {
            let source = std::io::Error::from_raw_os_error(errno.raw_os_error());
            let source = ReadError::Io { path: "/proc/7/maps".to_owned(), source };
            ResidencyError::Read { process: "7".to_owned(), source }.cure()
        };
        assert!(cure(Errno::MFILE).is_some_and(|cure| cure.contains("ulimit -n")));
        assert!(cure(Errno::NFILE).is_some_and(|cure| cure.contains("fs.file-max")));
        assert_eq!(cure(Errno::IO), None);
    }

    #[test]
    fn our_own_memory_adds_up() {
        let host = Host::live();
        let process = Process::read_self(&host).unwrap();
        let total = process.total();
        let resident: u64 = process.regions.iter().map(|region| region.resident_bytes).sum();
        assert_eq!(total.total_bytes(), resident);
        assert_eq!(process.rows().iter().map(|row| row.resident_bytes).sum::<u64>(), resident);
        let kinds: Vec<Kind> = process.rows().iter().map(|row| row.kind).collect();
        for kind in [Kind::Text, Kind::Data, Kind::Stack] {
            assert!(kinds.contains(&kind), "{kind:?} is missing");
        }
        assert!(process.status.page_table_bytes > 0 && process.status.threads > 0);
    }

    /// Of a process that stands still: this one maps and unmaps in other tests at the same time.
    #[test]
    fn the_rollup_is_the_sum_of_the_mappings() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // An answer proves that it has started up and waits for more.
        let (mut input, mut output) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        input.write_all(b"x").unwrap();
        output.read_exact(&mut [0]).unwrap();
        let host = Host::live();
        let (process, rollup) = (Process::read(&host, cat.id()).unwrap(), rollup(&host, cat.id()).unwrap());
        drop(input);
        assert!(cat.wait().unwrap().success());
        assert!(rollup.resident_bytes > 0);
        let total = process.total();
        assert_eq!(rollup.resident_bytes, total.total_bytes());
        assert_eq!((rollup.thp_bytes, rollup.hugetlb_bytes), (total.thp_bytes, total.hugetlb_bytes));
    }

    #[test]
    fn memory_that_we_map_is_found_as_it_was_asked_for() {
        let bytes = 4 << 20;
        let options = MapOptions { shared: true, populate: true, ..MapOptions::new(PageRequest::Base) };
        let shared = map_anonymous(bytes, options).unwrap();
        let private = map_anonymous(bytes, MapOptions { shared: false, ..options }).unwrap();
        let process = Process::read_self(&Host::live()).unwrap();
        let segment = process.region_at(shared.as_ptr().addr() as u64).unwrap();
        assert_eq!((segment.area.kind, segment.resident_bytes), (Kind::Shared, bytes as u64));
        assert!(process.segments().iter().any(|segment| segment.bytes == bytes as u64));
        let region = process.region_at(private.as_ptr().addr() as u64).unwrap();
        assert_eq!(region.area.kind, Kind::Anon);
        assert_eq!(region.thp_bytes(), 0, "asked for base pages");
    }

    #[test]
    fn transparent_huge_pages_are_told_from_base_pages() {
        let Ok(mapping) = map_anonymous(8 << 20, MapOptions::new(PageRequest::Thp)) else {
            return planish_skip::skip("transparent_huge_pages_are_told_from_base_pages", "no THP");
        };
        mapping.advise(Advice::PopulateWrite).unwrap();
        let start = mapping.as_ptr().addr() as u64;
        let range = start..start + mapping.len() as u64;
        let process = Process::read_self(&Host::live()).unwrap();
        assert!(process.covers(&range));
        let backings = process.within(&range);
        assert_eq!(backings.total_bytes(), mapping.len() as u64);
        if backings.thp_bytes == 0 {
            let reason = "the kernel had no huge page or THP is set to never";
            return planish_skip::skip("transparent_huge_pages_are_told_from_base_pages", reason);
        }
        let rows = process.rows();
        assert!(rows.iter().any(|row| row.backing == Backing::Thp && row.kind == Kind::Anon));
    }

    #[test]
    fn pages_from_a_pool_are_told_by_size() {
        let test = "pages_from_a_pool_are_told_by_size";
        // In turn with the tests that raise a pool for pages of their own.
        let _turn = match planish_skip::Turn::wait() {
            Ok(turn) => turn,
            Err(reason) => return planish_skip::skip(test, reason),
        };
        let sizes = planish_sys::pages::hugetlb_bytes();
        // Takes pages that are free in a pool already and raises none.
        let mapped = sizes.into_iter().filter_map(|page_bytes| {
            let options = MapOptions { populate: true, ..MapOptions::new(PageRequest::HugeTlb(page_bytes)) };
            map_anonymous(page_bytes, options).ok()
        });
        let mapped: Vec<_> = mapped.collect();
        if mapped.is_empty() {
            return planish_skip::skip(test, "no pool of this machine has a free page");
        }
        let process = Process::read_self(&Host::live()).unwrap();
        for mapping in &mapped {
            let start = mapping.as_ptr().addr() as u64;
            let region = process.region_at(start).unwrap();
            let page_bytes = mapping.page_bytes() as u64;
            assert_eq!((region.area.kind, region.page_bytes), (Kind::Anon, page_bytes));
            let backings = process.within(&(start..start + mapping.len() as u64));
            assert_eq!((backings.hugetlb_bytes, backings.total_bytes()), (page_bytes, page_bytes));
        }
    }

    #[test]
    fn a_process_that_is_not_there_says_so() {
        let error = Process::read(&Host::live(), u32::MAX).unwrap_err();
        assert!(matches!(error, ResidencyError::NoProcess { .. }), "{error}");
    }
}
