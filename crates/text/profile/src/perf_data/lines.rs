//! Cache lines that CPUs take from each other, out of samples of memory accesses: what `perf c2c` shows.
//!
//! ```text
//!   CPU 0 (node 0)  writes counter.a  ──┐
//!                                       ├── one line of 64 bytes: each write takes it away from the other
//!   CPU 9 (node 1)  reads  counter.b  ──┘    read answered by "hit modified", HITM: the other's cache had it dirty
//! ```
//!
//! A load that another core's cache answered with a line that it had modified is the sign; on AMD and Arm it may be
//! told as coming from a peer's cache. Stores do not say whom they took a line from, so they only tell who writes.
//! Lines are told apart by their physical address where the recorder was allowed to see it, since processes map one
//! page at several places; else by process and address.
//!
//! Source: `union perf_mem_data_src` in include/uapi/linux/perf_event.h; tools/perf/util/mem-events.c
//! (`c2c_decode_stats`).

use std::collections::{BTreeSet, HashMap};

use planish_sorted::SortSmall as _;

use super::container::{Container, kinds};
use super::maps::{ObjectFile, Processes};
use super::sample::Access;
use super::{FORMAT, lost_by};
use crate::error::ProfileError;

/// The unit that caches pass to each other, on every x86 and most Arm processors.
pub const LINE_BYTES: u64 = 64;

/// Lines that are told; the rest is counted.
const LINES_MAX: usize = 100;
/// Places of a line that are told.
const SITES_MAX: usize = 8;

/// What the samples of accesses say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contention {
    /// Samples of loads and of stores.
    pub loads: u64,
    /// The same of stores.
    pub stores: u64,
    /// Loads that another core's cache answered with a modified line, or a peer's cache at all.
    pub taken: u64,
    /// Of these, by a core of another node or socket.
    pub taken_remote: u64,
    /// Loads that memory of another node answered.
    pub memory_remote: u64,
    /// Loads that any memory answered.
    pub memory: u64,
    /// Samples without an access: of other events, or that the CPU could not follow.
    pub others: u64,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Whether lines are told apart by their physical address.
    pub by_physical: bool,
    /// Lines that were taken, the most taken first.
    pub lines: Vec<Line>,
    /// Lines with at least one such load that are left out of these.
    pub lines_more: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its address: as the first process that was seen has it.
    pub address: u64,
    /// Processes that touched it.
    pub pids: Vec<u32>,
    /// CPUs that touched it, where samples tell them.
    pub cpus: Vec<u32>,
    /// Loads of it, and of them those that another core's cache answered, and one of another node.
    pub loads: u64,
    /// See above.
    pub taken: u64,
    /// See above.
    pub taken_remote: u64,
    /// Stores into it.
    pub stores: u64,
    /// Mean weight of the loads that were taken: their cycles, where the CPU tells.
    pub taken_cycles: Option<f64>,
    /// Who touches which part of it, the most taken first.
    pub sites: Vec<LineSite>,
    /// Sites that are left out.
    pub sites_more: usize,
}

/// Code that touches a part of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineSite {
    /// Bytes from the begin of the line.
    pub offset: u64,
    /// Function, or file and offset, or the kernel.
    pub code: String,
    /// Loads of it that were taken from another core.
    pub taken: u64,
    /// Stores.
    pub stores: u64,
    /// All loads.
    pub loads: u64,
}

/// What one access was, by the bits that its CPU filled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kind {
    is_load: bool,
    is_store: bool,
    /// Answered by another core's cache that had it modified, or by a peer's cache.
    is_taken: bool,
    /// By something of another node or socket.
    is_remote: bool,
    /// By memory.
    is_memory: bool,
}

impl Kind {
    /// Reads `union perf_mem_data_src`: op 0-4, level 5-18, snoop 19-23, lock 24-25, TLB 26-32, level number 33-36,
    /// remote 37, snoop extension 38-39, blocked 40-42, hops 43-45.
    fn of(source: u64) -> Self {
        const OP_LOAD: u64 = 1 << 1;
        const OP_STORE: u64 = 1 << 2;
        const LEVEL_LOCAL_RAM: u64 = 1 << (5 + 7);
        const LEVEL_REMOTE_RAM: u64 = (1 << (5 + 8)) | (1 << (5 + 9));
        const LEVEL_REMOTE_CACHE: u64 = (1 << (5 + 10)) | (1 << (5 + 11));
        const SNOOP_HITM: u64 = 1 << (19 + 4);
        const REMOTE: u64 = 1 << 37;
        /// `PERF_MEM_SNOOPX_PEER`: another core's cache had it, in whichever state.
        const SNOOP_PEER: u64 = 1 << 39;
        /// `PERF_MEM_LVLNUM_RAM`.
        const NUMBER_RAM: u64 = 0x0d;
        let has = |bits: u64| source & bits != 0;
        let is_load = has(OP_LOAD);
        let is_remote = has(REMOTE | LEVEL_REMOTE_RAM | LEVEL_REMOTE_CACHE);
        let is_ram = source >> 33 & 0xf == NUMBER_RAM;
        let is_taken = is_load && has(SNOOP_HITM | SNOOP_PEER);
        let is_memory = is_load && !is_taken && (is_ram || has(LEVEL_LOCAL_RAM | LEVEL_REMOTE_RAM));
        Self { is_load, is_store: has(OP_STORE), is_taken, is_remote, is_memory }
    }
}

/// Counts of one line while samples are read.
#[derive(Default)]
struct Counted {
    address: u64,
    pids: BTreeSet<u32>,
    cpus: BTreeSet<u32>,
    loads: u64,
    taken: u64,
    taken_remote: u64,
    taken_weight: u64,
    stores: u64,
    /// By offset in the line and place of the code: file and offset; the kernel's is none.
    sites: HashMap<(u64, Option<(u32, u64)>), Site>,
}

#[derive(Clone, Copy, Default)]
struct Site {
    loads: u64,
    taken: u64,
    stores: u64,
}

/// Reads a recording of `perf c2c record`, `perf mem record` or our own. `name` finds the function at an offset of a
/// file.
///
/// # Errors
/// [`ProfileError::Malformed`] and [`ProfileError::Unsupported`] for what cannot be read, and for a recording without
/// a single access.
pub fn contention(
    bytes: &[u8],
    name: &mut dyn FnMut(&ObjectFile, u64) -> Option<String>,
) -> Result<Contention, ProfileError> {
    let container = Container::parse(bytes)?;
    let mut processes = Processes::new(&container);
    let mut told = Contention::default();
    let mut lines: HashMap<(u32, u64), Counted> = HashMap::new();
    let mut has_physical = None;
    for record in container.records() {
        if record.kind != kinds::SAMPLE {
            processes.follow(&record);
            told.lost += lost_by(&record);
            continue;
        }
        let Some((_, sample)) = container.sample(&record) else { continue };
        let kind = sample.access.map(|access| Kind::of(access.source)).unwrap_or_default();
        let Some(access) = sample.access.filter(|_| kind.is_load || kind.is_store) else {
            told.others += 1;
            continue;
        };
        count(&mut told, kind);
        // One way for all of them: a line would be two.
        let by_physical = *has_physical.get_or_insert(access.physical.is_some());
        let key = match access.physical {
            Some(physical) if by_physical => (0, physical / LINE_BYTES),
            _ => (sample.pid, access.address / LINE_BYTES),
        };
        let line = lines.entry(key).or_default();
        let code = sample.is_user.then(|| processes.find(sample.pid, sample.ip)).flatten();
        line.add(access, kind, code);
        line.pids.insert(sample.pid);
        line.cpus.extend(sample.cpu);
    }
    if told.loads + told.stores == 0 {
        let what =
            "a recording without accesses to memory (`perf c2c record` makes one with them)".to_owned();
        return Err(ProfileError::Unsupported { format: FORMAT, what });
    }
    told.by_physical = has_physical == Some(true);
    let mut taken: Vec<Counted> = lines.into_values().filter(|line| line.taken > 0).collect();
    taken.sort_small_by_key(|line| (std::cmp::Reverse((line.taken, line.stores)), line.address));
    told.lines_more = taken.len().saturating_sub(LINES_MAX);
    taken.truncate(LINES_MAX);
    told.lines = taken.into_iter().map(|line| line.told(&processes, name)).collect();
    Ok(told)
}

fn count(told: &mut Contention, kind: Kind) {
    told.loads += u64::from(kind.is_load);
    told.stores += u64::from(kind.is_store);
    told.taken += u64::from(kind.is_taken);
    told.taken_remote += u64::from(kind.is_taken && kind.is_remote);
    told.memory += u64::from(kind.is_memory);
    told.memory_remote += u64::from(kind.is_memory && kind.is_remote);
}

impl Counted {
    fn add(&mut self, access: Access, kind: Kind, code: Option<(u32, u64)>) {
        if self.pids.is_empty() {
            self.address = access.address / LINE_BYTES * LINE_BYTES;
        }
        self.loads += u64::from(kind.is_load);
        self.stores += u64::from(kind.is_store);
        if kind.is_taken {
            self.taken += 1;
            self.taken_remote += u64::from(kind.is_remote);
            self.taken_weight = self.taken_weight.saturating_add(access.weight);
        }
        let site = self.sites.entry((access.address % LINE_BYTES, code)).or_default();
        site.loads += u64::from(kind.is_load);
        site.taken += u64::from(kind.is_taken);
        site.stores += u64::from(kind.is_store);
    }

    fn told(self, processes: &Processes, name: &mut dyn FnMut(&ObjectFile, u64) -> Option<String>) -> Line {
        // Several places of one function touch a field: they are one site.
        let mut named: HashMap<(u64, String), Site> = HashMap::new();
        for ((offset, code), counts) in self.sites {
            let code = match code {
                Some((object, at)) => {
                    let file = processes.object(object);
                    name(file, at).unwrap_or_else(|| format!("{}+{at:#x}", file.path))
                }
                None => "(not in a mapped file: the kernel, or code made at run time)".to_owned(),
            };
            let site = named.entry((offset, code)).or_default();
            site.loads += counts.loads;
            site.taken += counts.taken;
            site.stores += counts.stores;
        }
        let site =
            |((offset, code), Site { loads, taken, stores })| LineSite { offset, code, taken, stores, loads };
        let mut sites: Vec<LineSite> = named.into_iter().map(site).collect();
        sites.sort_small_by(|a, b| {
            (b.taken, b.stores)
                .cmp(&(a.taken, a.stores))
                .then_with(|| (a.offset, &a.code).cmp(&(b.offset, &b.code)))
        });
        let sites_more = sites.len().saturating_sub(SITES_MAX);
        sites.truncate(SITES_MAX);
        Line {
            address: self.address,
            pids: self.pids.into_iter().collect(),
            cpus: self.cpus.into_iter().collect(),
            loads: self.loads,
            taken: self.taken,
            taken_remote: self.taken_remote,
            stores: self.stores,
            taken_cycles: (self.taken_weight > 0).then(|| self.taken_weight as f64 / self.taken as f64),
            sites,
            sites_more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As kernels fill them in: op, level, snoop, level number, remote.
    fn source(op: u64, level: u64, snoop: u64, number: u64, remote: u64) -> u64 {
        op | level << 5 | snoop << 19 | number << 33 | remote << 37
    }

    #[test]
    fn the_bits_mean_what_the_kernel_says() {
        let load = |level, snoop, number, remote| Kind::of(source(2, level, snoop, number, remote));
        // arch/x86/events/intel/ds.c: pebs_data_source[0x0a] of Skylake, a hit modified of another core of the
        // package.
        assert_eq!(load(0x42, 0x10, 3, 0), Kind { is_load: true, is_taken: true, ..Kind::default() });
        // The same of another socket: REM_CCE1 with HITM.
        let remote = load(0x402, 0x10, 3, 1);
        assert!(remote.is_taken && remote.is_remote && !remote.is_memory);
        // Local and remote memory.
        let local = load(0x82, 0x02, 0x0d, 0);
        assert!(local.is_memory && !local.is_remote && !local.is_taken);
        let far = load(0x102, 0x02, 0x0d, 1);
        assert!(far.is_memory && far.is_remote);
        // A hit in the own first cache.
        assert_eq!(load(0x0a, 0x02, 1, 0), Kind { is_load: true, ..Kind::default() });
        let store = Kind::of(source(4, 0x0a, 0, 1, 0));
        assert!(store.is_store && !store.is_load && !store.is_taken);
        // Arm SPE and AMD tell a peer's cache.
        assert!(Kind::of(source(2, 0, 0, 0x0a, 0) | 1 << 39).is_taken);
        assert_eq!(Kind::of(1), Kind::default(), "op not available");
    }

    /// What CPUs filled in, and how `perf script -F data_src` prints it, as others showed it in public: of Intel (the
    /// first two of Linux 3.12, the rest with `perf record --filter`, 2023), of AMD's IBS, and of Arm's SPE (2022).
    #[test]
    fn what_cpus_filled_in_means_what_perf_prints() {
        let load = Kind { is_load: true, ..Kind::default() };
        let (taken, memory) = (Kind { is_taken: true, ..load }, Kind { is_memory: true, ..load });
        let (store, remote) = (Kind { is_store: true, ..Kind::default() }, Kind { is_remote: true, ..load });
        let printed = [
            (0x6810_0142, load, "OP LOAD|LVL L1 hit|SNP None"),
            (0x6810_0842, load, "OP LOAD|LVL L3 hit|SNP None"),
            (0x102_6810_0142, load, "OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit"),
            (0x104_6810_0442, load, "OP LOAD|LVL L2 or L2 hit|SNP None"),
            (0x106_6810_0842, load, "OP LOAD|LVL L3 or L3 hit|SNP None"),
            (0x118_6810_0242, load, "OP LOAD|LVL LFB/MAB or LFB/MAB hit|SNP None"),
            (0x5108_0242, load, "OP LOAD|LVL LFB/MAB hit|SNP N/A|TLB L2 miss"),
            (0x5108_8842, remote, "OP LOAD|LVL L3 or Remote Cache (1 hop) hit|SNP N/A"),
            (0x2_2908_0144, store, "OP STORE|LVL L1 hit|SNP N/A"),
            (0x6_2980_0842, taken, "OP LOAD|LVL L3 hit|SNP HitM"),
            (0x1a_4908_1042, memory, "OP LOAD|LVL RAM hit|SNP N/A"),
            (0x1e_2908_0024, store, "OP STORE|LVL N/A|SNP N/A"),
            (NOT_AVAILABLE, Kind::default(), "OP N/A|LVL N/A"),
            (0x8800_0182, load, "OP LOAD|LVL L1 miss|SNP N/A|TLB Walker hit"),
            (0x86_8800_0842, taken, "OP LOAD|LVL L3 or L3 hit|SNP Peer"),
            (0x2_8880_0142, taken, "OP LOAD|LVL L1 hit|SNP HitM"),
            (0x2_8810_0144, store, "OP STORE|LVL L1 hit|SNP None"),
        ];
        for (source, kind, text) in printed {
            assert_eq!(Kind::of(source), kind, "{source:x} {text}");
        }
    }

    /// A recording of the kernel and of perf 6.1: `perf record -c 1 -e page-faults:u -e cpu-clock/period=8000000/u -d
    /// --sample-cpu -W` of a loop over 32 KiB, on a machine without a PMU. Its accesses have addresses, and no CPU
    /// that says what answered them. (The suffix of the kernel's release is overwritten.)
    const RECORDED: &[u8] = include_bytes!("../../tests/faults.perf.data");
    /// `PERF_MEM_NA`, as kernels have it since 6.1: every part says that it is not available.
    const NOT_AVAILABLE: u64 = 0x1e_0508_0021;
    const PID: u32 = 21_120;
    /// What the loop touched first of each page of its array.
    const ARRAY: [u64; 7] = [0x4a_7000, 0x4a_8030, 0x4a_9028, 0x4a_a020, 0x4a_b018, 0x4a_c010, 0x4a_d008];

    #[test]
    fn a_real_recording_is_read_as_perf_script_prints_it() {
        let container = Container::parse(RECORDED).unwrap();
        let names: Vec<&str> = container.events().iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["page-faults:u", "cpu-clock/period=8000000/u"]);
        assert_eq!(container.host().as_deref(), Some("host"));
        let mut processes = Processes::new(&container);
        let (mut faults, mut ticks) = (Vec::new(), 0);
        for record in container.records() {
            if record.kind != kinds::SAMPLE {
                processes.follow(&record);
                continue;
            }
            let (event, sample) = container.sample(&record).expect("a whole sample");
            let access = sample.access.expect("both events tell it");
            assert_eq!((sample.pid, sample.tid, sample.cpu), (PID, PID, Some(0)));
            assert_eq!((access.source, access.physical, access.weight), (NOT_AVAILABLE, None, 0));
            assert!(sample.is_user && Kind::of(access.source) == Kind::default());
            match event {
                0 => faults.push((access.address, processes.find(sample.pid, sample.ip))),
                _ => ticks += u32::from(access.address == 0),
            }
        }
        assert_eq!((faults.len(), ticks), (38, 7));
        // Each page of the array was read, and then written.
        let mut told = |(address, code): (u64, Option<(u32, u64)>)| {
            let (object, offset) = code?;
            (processes.object(object).path == "/tmp/p/spin").then_some((address, offset))
        };
        let expected: Vec<(u64, u64)> =
            (0..7).flat_map(|page| [0x162f, 0x1636].map(|code| (ARRAY[page], code))).collect();
        let faults: Vec<(u64, u64)> = faults.into_iter().filter_map(&mut told).collect();
        assert_eq!(faults[..2], [(0x40_14f0, 0x14f0), (0x7ffc_05a4_2ff8, 0x27d5)]);
        assert!(faults.windows(expected.len()).any(|faults| faults == expected), "{faults:x?}");
    }

    /// What no CPU said is written into the real recording: all else on the way to a line is as it was recorded.
    #[test]
    fn lines_of_a_real_recording_are_found_once_a_cpu_tells_them() {
        let refused = contention(RECORDED, &mut |_, _| None).expect_err("no access is told");
        assert!(refused.to_string().contains("perf c2c record"), "{refused}");
        let (load_taken, mut told) = (source(2, 0x42, 0x10, 3, 0), RECORDED.to_vec());
        let is_told = |at: &usize| told[*at..].starts_with(&NOT_AVAILABLE.to_le_bytes());
        for at in (0..RECORDED.len()).step_by(8).filter(is_told).collect::<Vec<_>>() {
            told[at..at + 8].copy_from_slice(&load_taken.to_le_bytes());
        }
        let found = contention(&told, &mut |_, _| None).unwrap();
        assert_eq!((found.loads, found.taken, found.others, found.lost), (45, 45, 0, 0));
        // Address 0 of the clock's samples, and the two faults of each page of the array.
        let line = found.lines.iter().find(|line| line.address == 0x4a_8000).expect("in the array");
        assert_eq!((line.pids.as_slice(), line.cpus.as_slice(), line.taken), (&[PID][..], &[0][..], 2));
        let sites: Vec<(u64, &str)> =
            line.sites.iter().map(|site| (site.offset, site.code.as_str())).collect();
        assert_eq!(sites, [(0x30, "/tmp/p/spin+0x162f"), (0x30, "/tmp/p/spin+0x1636")]);
    }
}
