//! Counters of the CPU and the kernel by `perf_event_open`, with the reason where there are none.
//!
//! Own, because the meaning matters more than the call: hardware events count *together* (one group), so that
//! their ratios are of the same instants; a group that the PMU cannot hold is opened event by event and
//! scaled by the time that each really ran; what cannot be counted says why (no PMU in this guest, a paranoid
//! kernel, an event that this CPU lacks), because a missing counter must never read as zero.
//!
//! Reads are per event: the kernel allows no `PERF_FORMAT_GROUP` together with `inherit`, and without inherit
//! the children of a workload would not count. Source: perf_event_open(2), kernel/events/core.c.

#![expect(
    clippy::disallowed_methods,
    reason = "why the running kernel refuses a counter is a fact of it, never of a recorded machine"
)]

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};

use linux_raw_sys::general as nr;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::perf_event::{
    self, Attr, FLAG_DISABLED, FLAG_EXCLUDE_KERNEL, FLAG_INHERIT, Place, TYPE_HARDWARE, TYPE_SOFTWARE,
};
use crate::raw::syscall;

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// CPU cycles.
    Cycles,
    /// Instructions that took effect.
    Instructions,
    /// Loads whose translation was not in the data TLB.
    DtlbLoadMisses,
    /// Fetches whose translation was not in the instruction TLB.
    ItlbLoadMisses,
    /// Misses of the last cache level.
    CacheMisses,
    /// Page faults of both kinds.
    PageFaults,
    /// Switches to another thread.
    ContextSwitches,
    /// Moves to another CPU.
    CpuMigrations,
    /// Nanoseconds on a CPU.
    TaskClock,
}

const TYPE_HW_CACHE: u32 = 3;
/// Cache events are coded as cache | operation << 8 | result << 16; here operation read, result miss.
const READ_MISS: u64 = 1 << 16;

impl Event {
    /// Every event, hardware first.
    pub const ALL: [Self; 9] = [
        Self::Cycles,
        Self::Instructions,
        Self::DtlbLoadMisses,
        Self::ItlbLoadMisses,
        Self::CacheMisses,
        Self::PageFaults,
        Self::ContextSwitches,
        Self::CpuMigrations,
        Self::TaskClock,
    ];

    /// The name that perf(1) uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::DtlbLoadMisses => "dTLB-load-misses",
            Self::ItlbLoadMisses => "iTLB-load-misses",
            Self::CacheMisses => "cache-misses",
            Self::PageFaults => "page-faults",
            Self::ContextSwitches => "context-switches",
            Self::CpuMigrations => "cpu-migrations",
            Self::TaskClock => "task-clock",
        }
    }

    /// Whether the CPU counts it, and not the kernel.
    pub fn is_hardware(self) -> bool {
        self.code().0 != TYPE_SOFTWARE
    }

    /// Type and config of include/uapi/linux/perf_event.h.
    fn code(self) -> (u32, u64) {
        match self {
            Self::Cycles => (TYPE_HARDWARE, 0),
            Self::Instructions => (TYPE_HARDWARE, 1),
            Self::CacheMisses => (TYPE_HARDWARE, 3),
            Self::DtlbLoadMisses => (TYPE_HW_CACHE, 3 | READ_MISS),
            Self::ItlbLoadMisses => (TYPE_HW_CACHE, 4 | READ_MISS),
            Self::TaskClock => (TYPE_SOFTWARE, 1),
            Self::PageFaults => (TYPE_SOFTWARE, 2),
            Self::ContextSwitches => (TYPE_SOFTWARE, 3),
            Self::CpuMigrations => (TYPE_SOFTWARE, 4),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose events are counted; threads and children that it makes later are counted with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The calling thread.
    Calling,
    /// The thread with this id. Threads of its process that exist already are not counted.
    Thread(Pid),
}

/// When counting starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At [`Counters::enable`].
    Explicit,
    /// When the target, or a child that it makes, executes a program: counts the program and nothing of us.
    OnExec,
}

/// Why an event cannot be counted here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The machine shows the kernel no performance counters; common in guests.
    #[error("no PMU in this machine")]
    NoPmu,
    /// There are counters, but none for this event.
    #[error("this CPU does not count {event}")]
    NotOnThisCpu {
        /// The event.
        event: Event,
    },
    /// There are counters, but none for loads by node.
    #[error("this CPU does not count loads by node")]
    NoNodeLoads,
    /// The kernel is set to refuse counters to us.
    #[error("kernel.perf_event_paranoid is {level}")]
    Paranoid {
        /// Value of the setting.
        level: i32,
    },
    /// Refused although the setting would allow it: a seccomp filter or a security module.
    #[error("perf_event_open is blocked here ({errno})")]
    Blocked {
        /// What the kernel answered.
        errno: Errno,
    },
    /// The counter was open but never got to run: every slot of the PMU was taken.
    #[error("{event} never got a slot of the PMU")]
    NeverRan {
        /// The event.
        event: Event,
    },
    /// Any other refusal.
    #[error("perf_event_open failed ({errno})")]
    Failed {
        /// What the kernel answered.
        errno: Errno,
    },
}

/// A count, and how much of the time it was really counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// What was counted while the event was on the PMU.
    pub counted: u64,
    /// Time during which it should have counted.
    pub enabled_ns: u64,
    /// Time during which it did count; less where events had to take turns.
    pub running_ns: u64,
    /// The kernel's part is not in it, because we may not count there.
    pub user_only: bool,
}

impl Count {
    /// The count over the whole time, extrapolated where events had to take turns.
    pub fn scaled(&self) -> f64 {
        if self.running_ns == 0 {
            return self.counted as f64;
        }
        self.counted as f64 * (self.enabled_ns as f64 / self.running_ns as f64)
    }

    /// What it came to since an earlier reading, extrapolated by the share of that time in which it ran; `None` where
    /// it did not run since, which is no zero, or began anew.
    pub fn since(&self, before: &Self) -> Option<f64> {
        // The kernel makes 64 bits of what the hardware has, and those may go round.
        let counted = self.counted.wrapping_sub(before.counted);
        let enabled_ns = self.enabled_ns.checked_sub(before.enabled_ns)?;
        let running_ns = self.running_ns.checked_sub(before.running_ns)?;
        let is_sound = running_ns > 0 && counted <= u64::MAX >> 1;
        is_sound.then(|| counted as f64 * (enabled_ns as f64 / running_ns as f64))
    }
}

/// A set of open counters.
#[derive(Debug)]
pub struct Counters {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    event: Event,
    counter: std::result::Result<Counter, Unavailable>,
}

#[derive(Debug)]
struct Counter {
    fd: OwnedFd,
    user_only: bool,
}

impl Counters {
    /// Opens a counter for each event; one that cannot be had says why at [`Counters::read`].
    pub fn open(events: &[Event], target: Target, start: Start) -> Self {
        let grouped = Self::open_with(events, target, start, true);
        if grouped.has_all_that(|event| event.is_hardware()) {
            return grouped;
        }
        // A group is all or nothing; alone, some events may still be had.
        let alone = Self::open_with(events, target, start, false);
        if alone.available().count() > grouped.available().count() { alone } else { grouped }
    }

    fn open_with(events: &[Event], target: Target, start: Start, group: bool) -> Self {
        let mut leader = -1;
        let mut slots = Vec::with_capacity(events.len());
        for &event in events {
            let group_fd = if event.is_hardware() { leader } else { -1 };
            let counter = open(event, target, start, group_fd);
            if let (Ok(counter), true, true, -1) = (&counter, group, event.is_hardware(), leader) {
                leader = counter.fd.as_raw_fd();
            }
            slots.push(Slot { event, counter });
        }
        Self { slots }
    }

    fn has_all_that(&self, wanted: impl Fn(Event) -> bool) -> bool {
        self.slots.iter().all(|slot| !wanted(slot.event) || slot.counter.is_ok())
    }

    /// The events that are being counted.
    pub fn available(&self) -> impl Iterator<Item = Event> + '_ {
        self.slots.iter().filter(|slot| slot.counter.is_ok()).map(|slot| slot.event)
    }

    /// Starts counting, in the target and in all that it has made since.
    pub fn enable(&self) -> Result<()> {
        self.control(IOC_ENABLE)
    }

    /// Stops counting.
    pub fn disable(&self) -> Result<()> {
        self.control(IOC_DISABLE)
    }

    fn control(&self, request: u64) -> Result<()> {
        for counter in self.slots.iter().filter_map(|slot| slot.counter.as_ref().ok()) {
            // SAFETY: these two requests take no pointer; the descriptor is open as long as `self` lives.
            let outcome = unsafe { syscall!(nr::__NR_ioctl, counter.fd.as_raw_fd(), request, 0) };
            outcome.map_err(|errno| Error::of("ioctl", errno))?;
        }
        Ok(())
    }

    /// What each event has come to so far, in the order in which they were asked for.
    pub fn read(&self) -> Vec<(Event, std::result::Result<Count, Unavailable>)> {
        self.slots.iter().map(|slot| (slot.event, slot.read())).collect()
    }
}

impl Slot {
    fn read(&self) -> std::result::Result<Count, Unavailable> {
        let counter = self.counter.as_ref().map_err(Clone::clone)?;
        let mut bytes = [0u8; 24];
        let length =
            rustix::io::read(&counter.fd, &mut bytes).map_err(|errno| Unavailable::Failed { errno })?;
        // End of file means that the kernel took the event off the PMU for good (a group in error state).
        if length < bytes.len() {
            return Err(Unavailable::NeverRan { event: self.event });
        }
        let count = parse_count(&bytes, counter.user_only);
        if self.event.is_hardware() && count.enabled_ns > 0 && count.running_ns == 0 {
            return Err(Unavailable::NeverRan { event: self.event });
        }
        Ok(count)
    }
}

/// What a counter of [`FORMAT_TIMES`] has come to; `None` where it cannot be read.
pub(crate) fn read_count(counter: &OwnedFd, user_only: bool) -> Option<Count> {
    let mut bytes = [0u8; 24];
    let length = rustix::io::read(counter, &mut bytes).ok()?;
    (length == bytes.len()).then(|| parse_count(&bytes, user_only))
}

/// The record of `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`: three native u64.
pub(crate) fn parse_count(bytes: &[u8; 24], user_only: bool) -> Count {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |index: usize| native(words[index]);
    Count { counted: word(0), enabled_ns: word(1), running_ns: word(2), user_only }
}

#[expect(clippy::host_endian_bytes, reason = "the kernel writes integers as this CPU stores them")]
fn native(bytes: [u8; 8]) -> u64 {
    u64::from_ne_bytes(bytes)
}

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
pub(crate) const FORMAT_TIMES: u64 = 3;
const FLAG_ENABLE_ON_EXEC: u64 = 1 << 12;
/// `_IO('$', 0)` and `_IO('$', 1)`.
const IOC_ENABLE: u64 = 0x2400;
const IOC_DISABLE: u64 = 0x2401;

/// Opens one counter, without the kernel's part where we may not count there.
fn open(event: Event, target: Target, start: Start, group: i32) -> std::result::Result<Counter, Unavailable> {
    match open_raw(event, target, start, group, false) {
        Ok(fd) => Ok(Counter { fd, user_only: false }),
        Err(Errno::ACCESS | Errno::PERM) => open_raw(event, target, start, group, true)
            .map(|fd| Counter { fd, user_only: true })
            .map_err(|errno| unavailable(event, errno)),
        Err(errno) => Err(unavailable(event, errno)),
    }
}

fn open_raw(
    event: Event,
    target: Target,
    start: Start,
    group: i32,
    user_only: bool,
) -> std::result::Result<OwnedFd, Errno> {
    let (kind, config) = event.code();
    let mut flags = FLAG_DISABLED | FLAG_INHERIT;
    if user_only {
        flags |= FLAG_EXCLUDE_KERNEL;
    }
    if start == Start::OnExec {
        flags |= FLAG_ENABLE_ON_EXEC;
    }
    let read_format = FORMAT_TIMES;
    let attr = Attr { read_format, flags, ..Attr::new(kind, config) };
    let pid = match target {
        Target::Calling => 0,
        Target::Thread(tid) => tid.as_raw_pid(),
    };
    perf_event::open(&attr, Place { pid, group, ..Place::default() }, 0)
}

fn unavailable(event: Event, errno: Errno) -> Unavailable {
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP if !has_pmu() => Unavailable::NoPmu,
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL => Unavailable::NotOnThisCpu { event },
        Errno::ACCESS | Errno::PERM => match paranoid_level() {
            // At 2 a user may still count its own user mode, which is what was tried last.
            Some(level) if level > 2 && !may_always() => Unavailable::Paranoid { level },
            _ => Unavailable::Blocked { errno },
        },
        errno => Unavailable::Failed { errno },
    }
}

/// Whether the kernel has found the CPU's counters: `cpu` on x86, `cpu_core` on hybrids, `armv8_*` on Arm, where
/// `arm_cmn_0`, `arm_smmuv3_pmcg_*` and the like are counters of other parts of the machine.
pub(crate) fn has_pmu() -> bool {
    let Ok(entries) = fs::read_dir("/sys/bus/event_source/devices") else { return false };
    let is_cpu = |name: &str| name.starts_with("cpu") || name.starts_with("armv");
    entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_cpu))
}

/// Whether `kernel.perf_event_paranoid` does not bind us.
pub(crate) fn may_always() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None)
        .is_ok_and(|sets| sets.effective.intersects(CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN))
}

/// Why we may not count for everybody, which takes a level of 0 or less, or CAP_PERFMON.
pub(crate) fn refused_for_all(errno: Errno) -> Unavailable {
    match paranoid_level() {
        Some(level) if level > 0 && !may_always() => Unavailable::Paranoid { level },
        _ => Unavailable::Blocked { errno },
    }
}

pub(crate) fn paranoid_level() -> Option<i32> {
    let mut text = String::new();
    fs::File::open("/proc/sys/kernel/perf_event_paranoid").ok()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Advice, MapOptions, PageRequest, map_anonymous};
    use crate::pages;

    fn count_of(counters: &Counters, event: Event) -> std::result::Result<Count, Unavailable> {
        counters.read().into_iter().find(|(read, _)| *read == event).unwrap().1
    }

    #[test]
    fn page_faults_are_counted_to_the_page() {
        let counters = Counters::open(&Event::ALL, Target::Calling, Start::Explicit);
        if let Err(reason) = count_of(&counters, Event::PageFaults) {
            return planish_skip::skip("page_faults_are_counted_to_the_page", reason);
        }
        let (base, count) = (pages::base_bytes(), 256);
        let mapping = map_anonymous(count * base, MapOptions::new(PageRequest::Base)).unwrap();
        counters.enable().unwrap();
        for page in 0..count {
            // SAFETY: inside the mapping, whose only user this test is.
            unsafe { mapping.as_ptr().add(page * base).write_volatile(1) };
        }
        counters.disable().unwrap();
        let faults = count_of(&counters, Event::PageFaults).unwrap();
        assert!((256..320).contains(&faults.counted), "{faults:?}");
        let clock = count_of(&counters, Event::TaskClock).unwrap();
        assert!(clock.counted > 0 && clock.running_ns > 0, "{clock:?}");

        mapping.advise(Advice::PopulateWrite).unwrap();
        let after = count_of(&counters, Event::PageFaults).unwrap();
        assert_eq!(after.counted, faults.counted, "stopped means stopped");
    }

    #[test]
    fn hardware_counts_or_says_why_not() {
        let counters = Counters::open(&Event::ALL, Target::Calling, Start::Explicit);
        counters.enable().unwrap();
        let sum: u64 = (0..5_000_000u64).map(std::hint::black_box).sum();
        counters.disable().unwrap();
        assert!(sum > 0);
        for (event, count) in counters.read().into_iter().filter(|(event, _)| event.is_hardware()) {
            match count {
                Ok(count) => {
                    assert!(count.running_ns > 0 && count.scaled() >= count.counted as f64, "{event}")
                }
                Err(reason) => planish_skip::skip(&format!("count {event}"), reason),
            }
        }
        if let (Ok(cycles), Ok(work)) =
            (count_of(&counters, Event::Cycles), count_of(&counters, Event::Instructions))
        {
            assert!(cycles.counted > 1_000_000 && work.counted > 5_000_000);
        }
    }

    #[test]
    fn on_exec_counts_the_program_and_nothing_of_us() {
        let counters = Counters::open(&[Event::TaskClock, Event::PageFaults], Target::Calling, Start::OnExec);
        if let Err(reason) = count_of(&counters, Event::TaskClock) {
            return planish_skip::skip("on_exec_counts_the_program_and_nothing_of_us", reason);
        }
        let sum: u64 = (0..5_000_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0);
        assert_eq!(count_of(&counters, Event::TaskClock).unwrap().counted, 0, "we are not counted");
        let status = std::process::Command::new("sh").args(["-c", "exit 0"]).status().unwrap();
        assert!(status.success());
        let faults = count_of(&counters, Event::PageFaults).unwrap().counted;
        assert!(faults > 20, "a program that starts faults its pages in: {faults}");
        assert!(count_of(&counters, Event::TaskClock).unwrap().counted > 0);
    }

    #[test]
    fn a_count_that_shared_the_pmu_is_scaled() {
        let count = Count { counted: 100, enabled_ns: 1000, running_ns: 250, user_only: false };
        assert!((count.scaled() - 400.0).abs() < 1e-9);
        assert_eq!(Count { running_ns: 0, ..count }.scaled(), 100.0);
    }

    #[test]
    fn what_was_counted_between_two_readings_is_extrapolated_by_itself() {
        let count =
            |counted, enabled_ns, running_ns| Count { counted, enabled_ns, running_ns, user_only: false };
        let before = count(1000, 10_000, 10_000);
        assert_eq!(count(1500, 12_000, 12_000).since(&before), Some(500.0));
        // It took turns since: a quarter of the time.
        assert_eq!(count(1500, 14_000, 11_000).since(&before), Some(2000.0));
        assert_eq!(count(1000, 12_000, 12_000).since(&before), Some(0.0), "nothing happened");
        assert_eq!(count(1000, 12_000, 10_000).since(&before), None, "it did not run");
        let round = count(u64::MAX - 5, 10_000, 10_000);
        assert_eq!(count(10, 11_000, 11_000).since(&round), Some(16.0), "64 bits went round");
        assert_eq!(count(999, 12_000, 12_000).since(&before), None, "it fell");
        assert_eq!(count(1500, 9000, 9000).since(&before), None, "it began anew");
    }

    #[test]
    fn reasons_are_told_apart() {
        let cache = Event::CacheMisses;
        assert_eq!(unavailable(cache, Errno::MFILE), Unavailable::Failed { errno: Errno::MFILE });
        let missing = unavailable(cache, Errno::NOENT);
        assert_eq!(missing == Unavailable::NoPmu, !has_pmu());
        assert_eq!(Unavailable::NoPmu.to_string(), "no PMU in this machine");
    }
}
