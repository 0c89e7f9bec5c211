//! Reads a machine step by step, and remembers of each process what is too dear to read at each.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use planish_host::Host;
use planish_sorted::SortSmall as _;
use planish_sys::node_loads::NodeLoads;
use planish_sys::{CpuSet, NodeSet};

use super::bandwidth::Controllers;
use super::{
    Bandwidth, Loads, NodeLoadsSample, PlacesSample, ProcessSample, Reads, SAMPLE_SCHEMA, Sample,
    StatusSample, WalkSample, node,
};
use crate::map::Unseen;
use crate::map::{above_us, stat_of, threads};
use crate::numa_maps::parse_numa_maps;
use crate::process::{Process, ResidencyError, hides_processes, rollup, status};
use crate::smaps::Rollup;

/// What one step may read at most, beside one `stat` a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Files `status`.
    pub statuses: usize,
    /// Walks of page tables.
    pub walks: usize,
    /// Walks for nodes, of processes that are shown.
    pub places: usize,
    /// No walk of either kind begins after so much time in walks.
    pub walking: Duration,
    /// Whether those that are not shown are asked for nodes as well, in turn: as many as are walked, in half of the
    /// time.
    pub places_of_all: bool,
}

impl Budget {
    /// One of many steps.
    pub const STEP: Self = Self {
        statuses: 1000,
        walks: 64,
        places: 8,
        walking: Duration::from_millis(30),
        places_of_all: false,
    };
    /// A step after which nobody looks again.
    pub const ONCE: Self = Self {
        statuses: 20_000,
        walks: 1000,
        places: 40,
        walking: Duration::from_millis(500),
        places_of_all: false,
    };
    /// Of a recorded host, whose files hold nobody's lock.
    const RECORDED: Self = Self {
        statuses: usize::MAX,
        walks: usize::MAX,
        places: usize::MAX,
        walking: Duration::MAX,
        places_of_all: false,
    };
}

/// After a walk its process is left in peace for so many times what it took: the lock of its memory is held a
/// hundredth of the time at most.
const PEACE: u32 = 100;
/// And for so long at least.
const PEACE_MIN: Duration = Duration::from_secs(5);
/// Memory that may be walked every now and then: a walk of more base pages would take half a second.
const WALK_BYTES_MAX: u64 = 64 << 30;
/// Threads whose CPUs are asked one by one.
const THREADS_MAX: u32 = 1024;

/// When something was read of a process, in milliseconds since the first step, and the CPU time that it had used then.
#[derive(Clone, Copy, Debug)]
struct ReadAt {
    at_ms: u64,
    cpu_ticks: u64,
}

/// What is known of one process from earlier steps.
#[derive(Debug, Default)]
struct Known {
    status: Option<StatusSample>,
    status_read: Option<ReadAt>,
    walk: Turn<WalkSample>,
    places: Turn<PlacesSample>,
}

/// Something dear that was read once.
#[derive(Debug)]
struct Turn<T> {
    told: Option<T>,
    /// The last time.
    read: Option<ReadAt>,
    /// Not again before this, in milliseconds since the first step.
    due_ms: u64,
    denied: bool,
}

impl<T> Default for Turn<T> {
    fn default() -> Self {
        Self { told: None, read: None, due_ms: 0, denied: false }
    }
}

/// Why nothing is counted of a machine that does not run.
const RECORDED: &str = "a recorded host has no counters";

/// The counters of loads, or why there are none.
type OpenLoads = Result<(NodeLoads, Vec<(u32, CpuSet)>), String>;

/// Reads samples of one machine.
#[derive(Debug)]
pub struct Reader {
    begun: Instant,
    known: HashMap<(u32, u64), Known>,
    loads: Option<OpenLoads>,
    controllers: Option<Result<Controllers, String>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { begun: Instant::now(), known: HashMap::new(), loads: None, controllers: None }
    }
}

/// One step: its clock, its bounds, and what it has read.
struct Step<'a> {
    host: &'a Host,
    budget: Budget,
    begun: Instant,
    at_ms: u64,
    walked: Duration,
    reads: Reads,
    /// Processes that started us: they are not walked.
    above: u64,
    too_large: u64,
    too_many_threads: u64,
}

impl Reader {
    /// Looks at all processes. Those that are `shown` come first, and are the only ones that are asked for nodes,
    /// unless the budget says so of all.
    ///
    /// `host` should be one of its own for each step: a host remembers each path that it was asked for.
    pub fn step(&mut self, host: &Host, shown: &[u32], budget: Budget) -> Sample {
        let begun = Instant::now();
        let live = host.is_live();
        let at_ms = if live { millis(self.begun.elapsed()) } else { 0 };
        let budget =
            if live { budget } else { Budget { places_of_all: budget.places_of_all, ..Budget::RECORDED } };
        let nodes = threads::cpus_of_nodes(host);
        let memory_nodes = memory_nodes(host);
        let mut step = Step {
            host,
            budget,
            begun,
            at_ms,
            walked: Duration::ZERO,
            reads: Reads::default(),
            above: 0,
            too_large: 0,
            too_many_threads: 0,
        };
        let (mut processes, kernel_threads) = step.stats();
        let alive: HashSet<(u32, u64)> = processes.iter().map(key).collect();
        self.known.retain(|known, _| alive.contains(known));
        // After this point every process that is known is one of this step.
        let order = self.order(&processes, shown, at_ms, |known| known.status_read);
        self.read_statuses(&mut step, &mut processes, &order);
        if memory_nodes > 1 {
            self.place(&mut step, &processes, shown, &nodes);
        }
        // Last, with what is left of the time: there is always somebody who is due.
        let order = self.order(&processes, shown, at_ms, |known| known.walk.read);
        self.walk(&mut step, &processes, &order);
        for process in &mut processes {
            let known = self.known.entry(key(process)).or_default();
            process.status = known.status;
            process.walk = known.walk.told;
            process.places = known.places.told;
        }
        let unseen = self.unseen(&step, &processes);
        let nodes_told = node::read(host, &nodes.iter().map(|(node, _)| *node).collect::<Vec<_>>());
        let bandwidth = self.bandwidth(host, &nodes);
        let loads = self.loads(host, nodes);
        let mut reads = step.reads;
        if live {
            reads.took_us = Some(micros(step.begun.elapsed()));
            reads.longest_us.get_or_insert(0);
        }
        Sample {
            schema: SAMPLE_SCHEMA.to_owned(),
            unix_seconds: live.then(unix_seconds),
            at_ms,
            // Of another machine it is what all but a few have.
            ticks_per_s: if live { rustix::param::clock_ticks_per_second() } else { 100 },
            memory_nodes,
            processes,
            kernel_threads,
            nodes: nodes_told,
            loads,
            bandwidth,
            reads,
            unseen,
        }
    }

    /// Indices of processes in the order in which they are read: what is shown, what was not `read` yet, the largest of
    /// those first, then what was read longest ago, each tick of CPU time since counting as once more that time: what
    /// runs changes its memory, and what sleeps has it as it was. What sleeps comes all the same, for its time grows.
    fn order(
        &self,
        processes: &[ProcessSample],
        shown: &[u32],
        now_ms: u64,
        read: impl Fn(&Known) -> Option<ReadAt>,
    ) -> Vec<usize> {
        let shown: HashMap<u32, usize> = shown.iter().enumerate().map(|(place, pid)| (*pid, place)).collect();
        let mut order: Vec<usize> = (0..processes.len()).collect();
        order.sort_small_by_cached_key(|at| {
            let process = &processes[*at];
            let waits = self.known.get(&key(process)).and_then(&read).map(|read| {
                let ticks = process.cpu_ticks.saturating_sub(read.cpu_ticks);
                now_ms.saturating_sub(read.at_ms).saturating_mul(ticks.saturating_add(1))
            });
            let place = shown.get(&process.pid).copied().unwrap_or(usize::MAX);
            (place, waits.is_some(), Reverse(waits), Reverse(process.resident_bytes))
        });
        order
    }

    fn read_statuses(&mut self, step: &mut Step<'_>, processes: &mut [ProcessSample], order: &[usize]) {
        for at in order.iter().take(step.budget.statuses) {
            let process = &mut processes[*at];
            step.reads.status += 1;
            let Ok(status) = status(step.host, process.pid) else { continue };
            if process.resident_bytes == 0 {
                // The stat of a recorded host may end before this field.
                process.resident_bytes = status.resident_bytes;
            }
            let told = StatusSample {
                at_ms: step.at_ms,
                user: status.user,
                page_table_bytes: status.page_table_bytes,
                swapped_bytes: status.swap_bytes,
                hugetlb_bytes: status.hugetlb_bytes,
            };
            let read = ReadAt { at_ms: step.at_ms, cpu_ticks: process.cpu_ticks };
            let known = self.known.entry(key(process)).or_default();
            (known.status, known.status_read) = (Some(told), Some(read));
        }
    }

    fn walk(&mut self, step: &mut Step<'_>, processes: &[ProcessSample], order: &[usize]) {
        let alone = above_us(step.host);
        let mut due: Vec<usize> = Vec::new();
        for at in order {
            let process = &processes[*at];
            let known = self.known.entry(key(process)).or_default();
            let empty =
                process.resident_bytes == 0 && known.status.is_none_or(|status| status.hugetlb_bytes == 0);
            if empty || known.walk.due_ms > step.at_ms {
                continue;
            }
            if alone.contains(&process.pid) {
                step.above += 1;
            } else if process.resident_bytes > WALK_BYTES_MAX {
                step.too_large += 1;
            } else {
                due.push(*at);
            }
        }
        for at in &due {
            if !step.may_walk(step.reads.walks, step.budget.walks) {
                step.reads.waiting += 1;
                continue;
            }
            let process = &processes[*at];
            step.reads.walks += 1;
            let (found, took) = step.timed(|host| sums(host, process.pid));
            let turn = &mut self.known.entry(key(process)).or_default().walk;
            turn.due_ms = step.due_ms(took);
            turn.read = Some(ReadAt { at_ms: step.at_ms, cpu_ticks: process.cpu_ticks });
            match found {
                Ok(sums) => {
                    turn.told = Some(WalkSample {
                        at_ms: step.at_ms,
                        resident_bytes: sums.resident_bytes,
                        thp_bytes: sums.thp_bytes,
                        hugetlb_bytes: sums.hugetlb_bytes,
                    });
                }
                Err(ResidencyError::Denied { .. }) => (turn.denied, turn.due_ms) = (true, u64::MAX),
                // It has ended, or lets nothing be told: it is asked again when it is due.
                Err(_) => {}
            }
        }
    }

    fn place(
        &mut self,
        step: &mut Step<'_>,
        processes: &[ProcessSample],
        shown: &[u32],
        nodes: &[(u32, CpuSet)],
    ) {
        let Budget { places_of_all, walking, .. } = step.budget;
        let most = if places_of_all { step.budget.walks } else { step.budget.places };
        let shown_pids: HashSet<u32> = shown.iter().copied().collect();
        let alone = above_us(step.host);
        let order = self.order(processes, shown, step.at_ms, |known| known.places.read);
        for process in order.into_iter().map(|at| &processes[at]) {
            let is_shown = shown_pids.contains(&process.pid);
            if process.resident_bytes == 0 || alone.contains(&process.pid) || !(is_shown || places_of_all) {
                continue;
            }
            let turn = &mut self.known.entry(key(process)).or_default().places;
            if turn.due_ms > step.at_ms {
                continue;
            }
            if process.resident_bytes > WALK_BYTES_MAX || process.threads > THREADS_MAX {
                step.too_many_threads += u64::from(process.threads > THREADS_MAX);
                continue;
            }
            // What nobody looks at leaves time to the other walks.
            let has_time = is_shown || step.walked < walking / 2;
            if !has_time || !step.may_walk(step.reads.places, most) {
                step.reads.waiting += 1;
                step.reads.waiting_places += 1;
                continue;
            }
            step.reads.places += 1;
            let (found, took) = step.timed(|host| local_share(host, process.pid, nodes));
            turn.due_ms = step.due_ms(took);
            turn.read = Some(ReadAt { at_ms: step.at_ms, cpu_ticks: process.cpu_ticks });
            match found {
                Ok(share) => {
                    turn.told = share.map(|local_share| PlacesSample { at_ms: step.at_ms, local_share });
                }
                Err(ResidencyError::Denied { .. }) => (turn.denied, turn.due_ms) = (true, u64::MAX),
                Err(_) => {}
            }
        }
    }

    /// What this step could not see, and why.
    fn unseen(&self, step: &Step<'_>, processes: &[ProcessSample]) -> Vec<Unseen> {
        let mut unseen = Vec::new();
        let mut blind = |what: String, why: &str, cure: &str| {
            unseen.push(Unseen { what, why: why.to_owned(), cure: cure.to_owned() });
        };
        let denied = processes.iter().filter(|process| {
            self.known.get(&key(process)).is_some_and(|known| known.walk.denied || known.places.denied)
        });
        let denied = denied.count();
        if denied > 0 {
            let what = format!("huge-page coverage and nodes of {}", counted(denied as u64));
            blind(what, "they are another user's", "run as root (CAP_SYS_PTRACE)");
        }
        if step.above > 0 {
            blind(
                format!("huge-page coverage and nodes of {}", counted(step.above)),
                "they started this command or are process 1, and a walk would hold the lock of their memory",
                "planish map PID looks at one from another session; nothing looks at process 1",
            );
        }
        if step.too_large > 0 {
            let why = "a walk of their page tables would hold the lock of their memory for long";
            blind(
                format!("huge-page coverage and nodes of {}", counted(step.too_large)),
                why,
                "planish map PID looks at one",
            );
        }
        if step.too_many_threads > 0 {
            let why = "they have more threads than are asked each time";
            let what = format!("the remote share of {}", counted(step.too_many_threads));
            blind(what, why, "planish map PID looks at one");
        }
        if step.host.is_live() && !step.host.exists("/proc/self") {
            blind("any process".to_owned(), "/proc is not mounted", "mount it: mount -t proc proc /proc");
        } else if hides_processes(step.host) {
            blind("processes of other users".to_owned(), "/proc is mounted with hidepid", "run as root");
        }
        unseen
    }

    fn bandwidth(&mut self, host: &Host, nodes: &[(u32, CpuSet)]) -> Bandwidth {
        if !host.is_live() {
            return Bandwidth { reason: Some(RECORDED.to_owned()), ..Bandwidth::default() };
        }
        match self.controllers.get_or_insert_with(|| Controllers::open(host, nodes)) {
            Ok(controllers) => controllers.read(),
            Err(reason) => Bandwidth { reason: Some(reason.clone()), ..Bandwidth::default() },
        }
    }

    fn loads(&mut self, host: &Host, nodes: Vec<(u32, CpuSet)>) -> Loads {
        if !host.is_live() {
            return Loads { reason: Some(RECORDED.to_owned()), ..Loads::default() };
        }
        let opened = self.loads.get_or_insert_with(|| {
            let cpus = nodes.iter().flat_map(|(_, cpus)| cpus.iter());
            let loads = NodeLoads::open(cpus).map_err(|reason| reason.to_string())?;
            Ok((loads, nodes))
        });
        let (counters, nodes) = match opened {
            Ok(opened) => opened,
            Err(reason) => return Loads { reason: Some(reason.clone()), ..Loads::default() },
        };
        let line = host.read("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size");
        let line_bytes = line.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(64);
        let read = counters.read();
        let of = |(node, cpus): &(u32, CpuSet)| {
            let own = read.iter().filter(|loads| cpus.contains(loads.cpu));
            let (all, remote) = own.fold((0.0, 0.0), |sum, cpu| (sum.0 + cpu.all, sum.1 + cpu.remote));
            NodeLoadsSample { node: *node, local: f64::max(all - remote, 0.0), remote }
        };
        Loads { reason: None, line_bytes, nodes: nodes.iter().map(of).collect() }
    }
}

impl Step<'_> {
    /// Every process with memory of its own, and the number of threads of the kernel.
    fn stats(&mut self) -> (Vec<ProcessSample>, u64) {
        let (mut processes, mut kernel_threads) = (Vec::new(), 0);
        let page_bytes = self.host.page_bytes();
        for pid in self.host.list("/proc").iter().filter_map(|name| name.parse().ok()) {
            self.reads.stat += 1;
            // One that has ended since is none.
            let Ok(stat) = stat_of(self.host, pid) else { continue };
            if stat.is_kernel_thread {
                kernel_threads += 1;
                continue;
            }
            processes.push(ProcessSample {
                pid,
                start_ticks: stat.start_ticks,
                name: stat.name,
                threads: stat.threads,
                cpu: stat.cpu,
                cpu_ticks: stat.cpu_ticks,
                minor_faults: stat.minor_faults,
                major_faults: stat.major_faults,
                resident_bytes: stat.resident_pages.saturating_mul(page_bytes),
                status: None,
                walk: None,
                places: None,
            });
        }
        (processes, kernel_threads)
    }

    fn may_walk(&self, done: u64, most: usize) -> bool {
        (done as usize) < most && self.walked < self.budget.walking
    }

    fn timed<T>(&mut self, walk: impl FnOnce(&Host) -> T) -> (T, Duration) {
        let begun = Instant::now();
        let found = walk(self.host);
        let took = begun.elapsed();
        if self.host.is_live() {
            self.walked += took;
            self.reads.longest_us = self.reads.longest_us.max(Some(micros(took)));
        }
        (found, took)
    }

    /// When a process whose walk took so long may be walked again.
    fn due_ms(&self, took: Duration) -> u64 {
        self.at_ms.saturating_add(millis((took * PEACE).max(PEACE_MIN)))
    }
}

fn counted(processes: u64) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

fn key(process: &ProcessSample) -> (u32, u64) {
    (process.pid, process.start_ticks)
}

/// The sums over the mappings of a process; of a recorded host from the mappings themselves, if that is all it has.
fn sums(host: &Host, pid: u32) -> Result<Rollup, ResidencyError> {
    match rollup(host, pid) {
        Err(ResidencyError::NoProcess { .. }) if !host.is_live() => {
            let total = Process::read(host, pid)?.total();
            Ok(Rollup {
                resident_bytes: total.total_bytes(),
                thp_bytes: total.thp_bytes,
                hugetlb_bytes: total.hugetlb_bytes,
                ..Rollup::default()
            })
        }
        told => told,
    }
}

/// The share of the pages that a process has mapped which is local to its threads; `None` where nodes are not told.
fn local_share(host: &Host, pid: u32, nodes: &[(u32, CpuSet)]) -> Result<Option<f64>, ResidencyError> {
    let read = |pid: u32| {
        let path = format!("/proc/{pid}/numa_maps");
        let text = host.read_lossy(&path).map_err(|error| crate::process::failed(&pid.to_string(), error))?;
        Ok((path, text))
    };
    let (mut path, mut text) = read(pid)?;
    if text.is_empty() {
        (path, text) = read(crate::process::shown_as(host, pid))?;
    }
    let placements = parse_numa_maps(&text).map_err(|line| ResidencyError::Odd { path, line })?;
    let threads = threads::read(host, pid, nodes);
    let weights = threads::weights(threads.iter());
    let (mut local, mut total) = (0.0, 0.0);
    for (node, bytes) in placements.iter().flat_map(|placement| &placement.nodes) {
        local += *bytes as f64 * weights.get(node).copied().unwrap_or(0.0);
        total += *bytes as f64;
    }
    Ok((total > 0.0 && !weights.is_empty()).then(|| local / total))
}

/// Nodes that have memory; 0 where the kernel tells of none.
fn memory_nodes(host: &Host) -> u32 {
    let list = host.read("/sys/devices/system/node/has_memory").ok();
    let nodes = list.and_then(|list| NodeSet::parse_list(&list).ok());
    nodes.map_or(0, |nodes| u32::try_from(nodes.count()).unwrap_or(u32::MAX))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test makes a recorded host")]
mod tests {
    use std::process::{Child, Command};

    use planish_sys::{Advice, MapOptions, PageRequest, map_anonymous};

    use super::*;

    /// Children that sleep until dropped: processes that we may walk.
    struct Sleepers(Vec<Child>);

    impl Sleepers {
        fn start(count: usize) -> Self {
            let sleepers =
                Self((0..count).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect());
            // The kernel counts the pages of one that has just begun on each CPU by itself: its stat says none yet.
            let until = Instant::now() + Duration::from_secs(20);
            for child in &sleepers.0 {
                while stat_of(&Host::live(), child.id()).unwrap().resident_pages == 0 {
                    assert!(Instant::now() < until, "sleep has no memory");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            sleepers
        }
    }

    impl Drop for Sleepers {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    fn of(sample: &Sample, pid: u32) -> &ProcessSample {
        sample.processes.iter().find(|process| process.pid == pid).unwrap()
    }

    #[test]
    fn our_own_memory_is_told_as_the_kernel_tells_it() {
        let mapping = map_anonymous(16 << 20, MapOptions::new(PageRequest::Base)).unwrap();
        mapping.advise(Advice::PopulateWrite).unwrap();
        let (host, me) = (Host::live(), std::process::id());
        let sample = Reader::default().step(&host, &[me], Budget::ONCE);
        let mine = of(&sample, me);
        let told = mine.status.unwrap();
        let now = status(&host, me).unwrap();
        assert!(told.page_table_bytes > 0 && told.page_table_bytes.abs_diff(now.page_table_bytes) < 1 << 20);
        let walk = mine.walk.unwrap();
        assert!(walk.resident_bytes >= 16 << 20, "{walk:?}");
        assert!(mine.resident_bytes > 8 << 20 && mine.minor_faults > 0);
        assert!(!sample.nodes.is_empty() && sample.nodes[0].free_bytes < sample.nodes[0].memory_bytes);
        // With one node nobody is asked where its pages are; with several, those that are shown are.
        assert_eq!(mine.places.is_some(), sample.memory_nodes > 1);
        assert!(sample.reads.places <= 1, "only what is shown");
        assert!(of(&sample, 1).walk.is_none(), "process 1 is left alone");
        assert!(sample.processes.iter().all(|process| process.name != "kthreadd"), "no thread of the kernel");
    }

    /// Of two that were read at the same time, the one that has run since comes first, and one that sleeps is not left
    /// out for good.
    #[test]
    fn what_runs_is_read_before_what_sleeps() {
        let process = |pid: u32, cpu_ticks: u64, resident_bytes: u64| ProcessSample {
            pid,
            start_ticks: 1,
            name: String::new(),
            threads: 1,
            cpu: None,
            cpu_ticks,
            minor_faults: 0,
            major_faults: 0,
            resident_bytes,
            status: None,
            walk: None,
            places: None,
        };
        let mut reader = Reader::default();
        let read = |at_ms: u64, cpu_ticks: u64| Some(ReadAt { at_ms, cpu_ticks });
        for (pid, at) in [(1, read(1000, 500)), (2, read(1000, 500)), (3, None), (4, read(0, 7)), (5, None)] {
            reader.known.insert((pid, 1), Known { status_read: at, ..Known::default() });
        }
        let order = |processes: &[ProcessSample], shown: &[u32], now_ms: u64| -> Vec<u32> {
            let order = reader.order(processes, shown, now_ms, |known| known.status_read);
            order.into_iter().map(|at| processes[at].pid).collect()
        };
        let now = [
            process(1, 500, 9 << 20),
            process(2, 550, 1 << 20),
            process(3, 0, 2 << 20),
            process(4, 7, 1 << 30),
            process(5, 90, 3 << 20),
        ];
        assert_eq!(
            order(&now, &[], 2000),
            [5, 3, 2, 4, 1],
            "unread by size, then a second times 51, 2 s, 1 s"
        );
        assert_eq!(order(&now, &[1], 2000), [1, 5, 3, 2, 4], "what is shown goes before");
        // 60 s times 1 are more than a second times 51.
        reader.known.insert((2, 1), Known { status_read: read(59_000, 500), ..Known::default() });
        let order = reader.order(&now, &[], 60_000, |known| known.status_read);
        assert_eq!(order.iter().map(|at| now[*at].pid).collect::<Vec<_>>(), [5, 3, 4, 1, 2]);
    }

    /// A machine of two nodes with a CPU each, and a process on the second.
    #[test]
    fn the_remote_share_is_what_the_map_calls_not_local() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/node/has_memory", "0-1\n");
        for node in ["0", "1"] {
            write(&format!("sys/devices/system/node/node{node}/cpulist"), node);
            let told = format!("Node {node} MemTotal: 4096 kB\nNode {node} MemFree: 1024 kB\n");
            write(&format!("sys/devices/system/node/node{node}/meminfo"), &told);
            write(&format!("sys/devices/system/node/node{node}/numastat"), "numa_hit 7\nother_node 2\n");
        }
        let stat = "7 (db) S 4 7 7 0 -1 64 100 0 9 0 50 7 0 0 20 0 1 0 9000 1 4 3 111 4 222 0 0 0 0 0 0 0 0 0 17 1\n";
        write("proc/7/stat", stat);
        write("proc/7/status", "Name:\tdb\nUid:\t1\t26\t1\t1\nVmRSS:\t16 kB\nVmPTE:\t44 kB\nVmSwap:\t8 kB\n");
        let region = "100000-200000 rw-p 00000000 00:00 0\nRss: 16 kB\n";
        write("proc/7/smaps", region);
        write("proc/7/numa_maps", "100000 default anon=4 N0=3 N1=1 kernelpagesize_kB=4\n");
        let host = Host::open(folder.path()).unwrap();
        let mut reader = Reader::default();
        assert_eq!(reader.step(&host, &[], Budget::STEP).processes[0].places, None, "it is not shown");
        let sample = reader.step(&host, &[7], Budget::STEP);
        let db = &sample.processes[0];
        let map = crate::Map::read(&host, &crate::Who::Pid(7), false).unwrap();
        assert_eq!(map.local_share(), Some(0.25));
        assert_eq!(db.places.map(|places| places.local_share), map.local_share());
        assert_eq!((db.resident_bytes, db.cpu_ticks, db.major_faults), (16 << 10, 57, 9));
        let status = db.status.unwrap();
        assert_eq!(
            (status.user, status.page_table_bytes, status.swapped_bytes),
            (Some(26), 44 << 10, 8 << 10)
        );
        assert_eq!(db.walk.map(|walk| (walk.resident_bytes, walk.thp_bytes)), Some((16 << 10, 0)));
        assert_eq!((sample.nodes.len(), sample.nodes[1].numastat.unwrap().other), (2, 2));
        assert_eq!(
            (sample.unix_seconds, sample.at_ms, sample.reads.took_us),
            (None, 0, None),
            "nothing varies"
        );

        // The same with one node: nobody is asked.
        write("sys/devices/system/node/has_memory", "0\n");
        let one = Reader::default().step(&Host::open(folder.path()).unwrap(), &[7], Budget::STEP);
        assert_eq!((one.memory_nodes, one.reads.places, one.processes[0].places), (1, 0, None));
    }

    /// The order by remote share is not known before all are asked: the smallest may have most.
    #[test]
    fn all_are_asked_for_nodes_in_turn_and_who_waits_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/node/has_memory", "0-1\n");
        write("sys/devices/system/node/node0/cpulist", "0\n");
        write("sys/devices/system/node/node1/cpulist", "1\n");
        for pid in 101..=110 {
            let pages = 120 - pid;
            let stat = format!(
                "{pid} (w) S 4 7 7 0 -1 64 1 0 9 0 50 7 0 0 20 0 1 0 9000 1 {pages} 3 111 4 222 0 0 0 0 0 0 0 \
                 0 0 17 0\n"
            );
            write(&format!("proc/{pid}/stat"), &stat);
            let node = u32::from(pid == 110);
            write(
                &format!("proc/{pid}/numa_maps"),
                &format!("100000 default anon=4 N{node}=4 kernelpagesize_kB=4\n"),
            );
        }
        let host = Host::open(folder.path()).unwrap();
        let nodes = threads::cpus_of_nodes(&host);
        let budget = Budget { walks: 4, places: 1, places_of_all: true, ..Budget::STEP };
        let mut reader = Reader::default();
        let mut turns = Vec::new();
        for at_ms in 0..3 {
            let mut step = Step { at_ms, budget, ..step_of(&host) };
            let (processes, _) = step.stats();
            reader.place(&mut step, &processes, &[109], &nodes);
            turns.push((step.reads.places, step.reads.waiting_places, step.reads.waiting));
            assert!(reader.known[&(109, 9000)].places.told.is_some(), "what is shown comes first");
        }
        assert_eq!(turns, [(4, 6, 6), (4, 2, 2), (2, 0, 0)]);
        let told = |pid: u32| reader.known[&(pid, 9000)].places.told.map(|places| places.local_share);
        assert_eq!((told(110), told(101)), (Some(0.0), Some(1.0)));

        // With no time, those that nobody looks at wait first; without that wish nobody else is asked.
        let mut step = Step { budget, walked: budget.walking / 2, ..step_of(&host) };
        let (processes, _) = step.stats();
        Reader::default().place(&mut step, &processes, &[109], &nodes);
        assert_eq!((step.reads.places, step.reads.waiting_places), (1, 9));
        let mut step = Step { budget: Budget::STEP, ..step_of(&host) };
        Reader::default().place(&mut step, &processes, &[109], &nodes);
        assert_eq!((step.reads.places, step.reads.waiting_places), (1, 0));
    }

    fn step_of(host: &Host) -> Step<'_> {
        Step {
            host,
            budget: Budget::STEP,
            begun: Instant::now(),
            at_ms: 0,
            walked: Duration::ZERO,
            reads: Reads::default(),
            above: 0,
            too_large: 0,
            too_many_threads: 0,
        }
    }

    #[test]
    fn a_step_reads_no_more_than_its_budget_and_the_next_ones_the_rest() {
        let sleepers = Sleepers::start(6);
        let budget =
            Budget { statuses: 2, walks: 1, places: 1, walking: Duration::from_secs(9), ..Budget::STEP };
        let shown = sleepers.0[3].id();
        let mut reader = Reader::default();
        let first = reader.step(&Host::live(), &[shown], budget);
        assert_eq!((first.reads.status, first.reads.walks), (2, 1));
        assert!(first.reads.places <= 1 && first.reads.waiting >= 5, "{:?}", first.reads);
        assert!(
            of(&first, shown).status.is_some() && of(&first, shown).walk.is_some(),
            "what is shown comes first"
        );
        let unread =
            |sample: &Sample| sample.processes.iter().filter(|process| process.status.is_none()).count();
        let mut left = unread(&first);
        for _ in 0..3 {
            // Others come and go meanwhile; ours and most others stay.
            let next = reader.step(&Host::live(), &[], budget);
            assert!(next.reads.status <= 2 && next.reads.walks <= 1);
            left = left.min(unread(&next));
        }
        assert!(left < unread(&first), "each step reads some that were not read");
        let none = Budget { walking: Duration::ZERO, ..Budget::ONCE };
        assert_eq!(Reader::default().step(&Host::live(), &[shown], none).reads.walks, 0, "no time, no walk");
    }

    #[test]
    fn a_process_that_was_walked_is_left_in_peace_and_one_that_ended_is_forgotten() {
        let mut sleepers = Sleepers::start(1);
        let pid = sleepers.0[0].id();
        let mut reader = Reader::default();
        let first = of(&reader.step(&Host::live(), &[pid], Budget::ONCE), pid).walk.unwrap();
        let second = of(&reader.step(&Host::live(), &[pid], Budget::ONCE), pid).walk.unwrap();
        assert_eq!(second, first, "what it said is told again, with its time");
        let host = Host::live();
        let slow = Step { at_ms: 1000, ..step_of(&host) };
        assert_eq!(slow.due_ms(Duration::from_millis(400)), 1000 + 40_000, "a hundredth of the time at most");
        assert_eq!(slow.due_ms(Duration::from_micros(1)), 1000 + 5000);
        assert!(reader.known.keys().any(|(known, _)| *known == pid));
        sleepers.0[0].kill().unwrap();
        sleepers.0[0].wait().unwrap();
        let after = reader.step(&Host::live(), &[pid], Budget::STEP);
        assert!(after.processes.iter().all(|process| process.pid != pid));
        assert!(reader.known.keys().all(|(known, _)| *known != pid), "PIDs that came and went are not kept");
    }
}
