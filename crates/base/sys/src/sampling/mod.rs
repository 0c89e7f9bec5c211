//! Samples of running code by `perf_event_open`: the raw records of the kernel, with the reason where better ones
//! cannot be had.
//!
//! ```text
//!                       CPU 0                    CPU 1
//!   thread or group     side band ── ring        side band ── ring       always on: mmap, comm, fork
//!                       sampler ─────┘           sampler ─────┘          on and off: the duty cycle
//!   next thread         side band ───┘ ...                               all of a CPU write into its one ring
//! ```
//!
//! - Every event is bound to a CPU, because the kernel maps no ring of an inherited event that is not
//!   (`perf_mmap` in kernel/events/core.c), and only what is inherited follows threads and children made later.
//! - Mappings come by an event of their own that never stops: while the samples pause, a program may load code.
//! - Threads are listed once. A thread that is born of a thread not opened yet, in the millisecond between the
//!   listing and the opening, is missed.
//!
//! Nothing here says what a record means; `planish-profile` reads them. Source: perf_event_open(2).

mod access;
mod attr;
mod ring;

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use linux_raw_sys::general as nr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

use attr::{Form, Whom};
use ring::Ring;

use crate::error::Error;
use crate::pages;
use crate::perf::{has_pmu, may_always, paranoid_level};
pub use crate::perf_event::ATTRIBUTE_BYTES;
use crate::perf_event::Attr;
use crate::raw::syscall;
use crate::set::CpuSet;

/// What a sample is taken by, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The last taken branches of user code, at every so many cycles: calls and blocks are counted.
    Branches,
    /// CPU cycles, with the stack by frame pointers.
    Cycles,
    /// Time on a CPU, with the stack by frame pointers: any machine has it.
    CpuClock,
    /// Time on a CPU, without stacks.
    CpuClockFlat,
    /// Loads and stores, with their address and what answered them.
    Accesses,
}

impl Source {
    /// All that tell where time goes, the best first.
    pub const ALL: [Self; 4] = [Self::Branches, Self::Cycles, Self::CpuClock, Self::CpuClockFlat];

    /// The word on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Branches => "branches",
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
            Self::CpuClockFlat => "flat",
            Self::Accesses => "accesses",
        }
    }

    fn is_branches(self) -> bool {
        self == Self::Branches
    }

    fn is_hardware(self) -> bool {
        matches!(self, Self::Branches | Self::Cycles | Self::Accesses)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Who is sampled.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// These threads, and the threads and children that they make later.
    Threads(&'a [Pid]),
    /// The processes of a control group: its folder in the hierarchy of perf_event (version 1) or of version 2.
    Cgroup(BorrowedFd<'a>),
    /// Everything that runs.
    All,
}

/// Why a source cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The machine shows the kernel no performance counters; common in guests.
    #[error("no PMU in this machine")]
    NoPmu,
    /// There are counters, but no record of branches.
    #[error("this CPU, or the host of this guest, has no branch stacks")]
    NoBranchStacks,
    /// There are counters, and none of them samples accesses to memory.
    #[error("this CPU, or the host of this guest, samples no accesses to memory (Intel PEBS, AMD IBS)")]
    NoAccesses,
    /// The kernel is set to refuse us this.
    #[error("kernel.perf_event_paranoid is {level}, and we lack CAP_PERFMON")]
    Paranoid {
        /// Value of the setting.
        level: i32,
    },
    /// Refused although the setting would allow it.
    #[error(
        "perf_event_open is refused ({errno}): another user's process, a seccomp filter or a security module"
    )]
    Blocked {
        /// What the kernel answered.
        errno: Errno,
    },
    /// The kernel was built without perf events.
    #[error("this kernel has no perf_event_open")]
    NoKernel,
    /// Any other refusal.
    #[error("perf_event_open failed ({errno})")]
    Failed {
        /// What the kernel answered.
        errno: Errno,
    },
}

/// Why nothing can be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SamplingError {
    /// None of the threads is there any more.
    #[error("the process has ended")]
    Gone,
    /// No source that was asked for can be had.
    #[error("no samples can be taken{}", told(.0))]
    Refused(Vec<(Source, Refusal)>),
    /// The events do not fit the limit on open files.
    #[error(
        "{needed} open files are needed, for each thread on each CPU two, and at most {limit} are allowed"
    )]
    Files {
        /// Descriptors of the recording.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// Not even small rings may be locked in memory.
    #[error("the kernel grants no memory for records")]
    Rings(#[source] Errno),
    /// A call failed that should not.
    #[error(transparent)]
    Call(#[from] Error),
}

fn told(refused: &[(Source, Refusal)]) -> String {
    refused.iter().map(|(source, why)| format!("; {source}: {why}")).collect()
}

/// Data of one CPU's ring: with its control page what an ordinary user may lock at the default of
/// `kernel.perf_event_mlock_kb`.
const RING_BYTES_MAX: usize = 512 << 10;
/// Below this the side band alone could overflow between two looks.
const RING_BYTES_MIN: usize = 32 << 10;
/// Descriptors that the process needs besides.
const FILES_SPARE: u64 = 64;

/// Open events with their rings.
#[derive(Debug)]
pub struct Sampler {
    source: Source,
    refused: Vec<(Source, Refusal)>,
    form: Form,
    samplers: Vec<OwnedFd>,
    /// Those that own a ring, each with the ring; then those that write into it.
    rings: Vec<(OwnedFd, Ring)>,
    others: Vec<OwnedFd>,
    /// Owners of rings whose threads are gone: they would wake a poll forever.
    hung: Vec<bool>,
}

impl Sampler {
    /// Opens the first source of `wanted` that can be had, on every CPU of `cpus` that is online. Samples start at
    /// [`Sampler::set_on`], the side band at once.
    ///
    /// # Errors
    /// [`SamplingError`]: nothing is left open.
    pub fn open(
        target: Target<'_>,
        wanted: &[Source],
        rate_hz: u64,
        cpus: &CpuSet,
    ) -> Result<Self, SamplingError> {
        let whom: Vec<Whom> = match target {
            Target::Threads(threads) => threads.iter().map(|tid| Whom::Thread(tid.as_raw_pid())).collect(),
            Target::Cgroup(folder) => vec![Whom::Cgroup(folder.as_raw_fd())],
            Target::All => vec![Whom::All],
        };
        let inherit = matches!(target, Target::Threads(_));
        let (form, refused) = choose(&whom, wanted, rate_hz, inherit, cpus)?;
        // The side band and the samples; of accesses stores, and what loads may wait for, besides.
        let each = if form.source == Source::Accesses { 4 } else { 2 };
        let _room = FileRoom::make(each * whom.len() as u64 * cpus.count() as u64)?;
        let mut bytes = RING_BYTES_MAX.max(pages::base_bytes());
        loop {
            match Self::open_all(&whom, Form { watermark_bytes: (bytes / 4) as u32, ..form }, cpus, bytes) {
                // The user's share of locked memory is spent: EPERM, and ENOMEM from a memory group.
                Err(SamplingError::Rings(Errno::PERM | Errno::NOMEM))
                    if bytes / 2 >= RING_BYTES_MIN.max(pages::base_bytes()) =>
                {
                    bytes /= 2;
                }
                opened => return opened.map(|sampler| Self { refused, ..sampler }),
            }
        }
    }

    fn open_all(whom: &[Whom], form: Form, cpus: &CpuSet, bytes: usize) -> Result<Self, SamplingError> {
        let mut sampler = Self {
            source: form.source,
            refused: Vec::new(),
            form,
            samplers: Vec::new(),
            rings: Vec::new(),
            others: Vec::new(),
            hung: Vec::new(),
        };
        for cpu in cpus.iter() {
            sampler.open_cpu(whom, cpu, bytes)?;
        }
        if sampler.rings.is_empty() {
            return Err(SamplingError::Gone);
        }
        sampler.hung = vec![false; sampler.rings.len()];
        Ok(sampler)
    }

    /// All events of one CPU: the first side band that can be opened gets the ring.
    fn open_cpu(&mut self, whom: &[Whom], cpu: u32, bytes: usize) -> Result<(), SamplingError> {
        let mut owner = None;
        for &one in whom {
            let pair = side_band(self.form, one, cpu)
                .and_then(|side| attr::open_source(self.form, one, cpu).map(|samplers| (side, samplers)));
            let (side, samplers) = match pair {
                Ok(pair) => pair,
                // A thread that has ended, or a CPU that was taken offline, since they were listed.
                Err(Errno::SRCH | Errno::NODEV) => continue,
                Err(errno) => return Err(refused_late(self.source, errno)),
            };
            let ring_fd = match owner {
                None => {
                    let ring = Ring::map(&side, bytes).map_err(SamplingError::Rings)?;
                    let fd = side.as_raw_fd();
                    self.rings.push((side, ring));
                    *owner.insert(fd)
                }
                Some(fd) => {
                    control(&side, IOC_SET_OUTPUT, fd)?;
                    self.others.push(side);
                    fd
                }
            };
            samplers.iter().try_for_each(|sampler| control(sampler, IOC_SET_OUTPUT, ring_fd))?;
            self.samplers.extend(samplers);
        }
        Ok(())
    }

    /// What the samples are taken by.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The better sources, each with the reason why it could not be had.
    pub fn refused(&self) -> &[(Source, Refusal)] {
        &self.refused
    }

    /// Whether the kernel's own time is not sampled, because we may not see it or it says nothing.
    pub fn user_only(&self) -> bool {
        self.form.user_only || self.source.is_branches()
    }

    /// Open events.
    pub fn events(&self) -> usize {
        self.samplers.len() + self.rings.len() + self.others.len()
    }

    /// The attribute of the samples, as the kernel was given it. The side band's records end as theirs do.
    pub fn attribute(&self) -> [u8; ATTRIBUTE_BYTES] {
        Attr::sampler(self.form).to_bytes()
    }

    /// Starts or stops the samples, in the target and in all that it has made since. The side band stays on.
    ///
    /// # Errors
    /// [`Error::Call`] where the kernel refuses, which it has no reason to.
    pub fn set_on(&self, on: bool) -> Result<(), Error> {
        let request = if on { IOC_ENABLE } else { IOC_DISABLE };
        self.samplers.iter().try_for_each(|event| control(event, request, 0))
    }

    /// Waits until a ring is a quarter full, `until` is readable, a signal came, or the time is up; true for `until`.
    ///
    /// # Errors
    /// [`Error::Call`] of poll(2).
    pub fn wait(&mut self, until: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<bool, Error> {
        let owners = self.rings.iter().zip(&self.hung).enumerate().filter(|(_, (_, hung))| !**hung);
        let (places, mut waited): (Vec<usize>, Vec<PollFd<'_>>) =
            owners.map(|(index, ((fd, _), _))| (index, PollFd::new(fd, PollFlags::IN))).unzip();
        waited.extend(until.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(errno) => return Err(Error::of("poll", errno)),
        }
        let is_over = until.is_some() && waited.last().is_some_and(|fd| !fd.revents().is_empty());
        let gone = PollFlags::HUP | PollFlags::ERR;
        let hung: Vec<usize> = places
            .iter()
            .zip(&waited)
            .filter_map(|(place, fd)| fd.revents().intersects(gone).then_some(*place))
            .collect();
        hung.into_iter().for_each(|place| self.hung[place] = true);
        Ok(is_over)
    }

    /// Moves what the rings hold to the end of `out`: whole records, in order of each CPU but not of all.
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        self.rings.iter_mut().for_each(|(_, ring)| ring.drain(out));
    }
}

/// The first source that opens on the first of `whom` and of `cpus`, and why the better ones did not.
fn choose(
    whom: &[Whom],
    wanted: &[Source],
    rate_hz: u64,
    inherit: bool,
    cpus: &CpuSet,
) -> Result<(Form, Vec<(Source, Refusal)>), SamplingError> {
    let cpu = cpus.first().ok_or(Error::of_call("perf_event_open", Errno::NODEV))?;
    let mut refused = Vec::new();
    for &source in wanted {
        let is_accesses = source == Source::Accesses;
        let found = if is_accesses { access::find(Path::new(access::DEVICES)) } else { None };
        if is_accesses && found.is_none() {
            refused.push((source, if has_pmu() { Refusal::NoAccesses } else { Refusal::NoPmu }));
            continue;
        }
        let accesses = found.unwrap_or_default();
        let mut form = Form {
            source,
            rate_hz,
            user_only: false,
            inherit,
            watermark_bytes: 1,
            accesses,
            physical: is_accesses,
        };
        let mut tried = try_open(form, whom, cpu);
        if matches!(tried, Err(Errno::ACCESS | Errno::PERM)) {
            // Physical addresses are the kernel's, as its own accesses are.
            (form.user_only, form.physical) = (true, false);
            tried = try_open(form, whom, cpu);
        }
        match tried {
            Ok(()) => return Ok((form, refused)),
            Err(Errno::SRCH) => return Err(SamplingError::Gone),
            Err(errno) => refused.push((source, refusal(source, errno))),
        }
    }
    Err(SamplingError::Refused(refused))
}

/// Opens and closes the event on the first thread that is still there.
fn try_open(form: Form, whom: &[Whom], cpu: u32) -> Result<(), Errno> {
    let mut outcome = Err(Errno::SRCH);
    for &one in whom {
        outcome = attr::open_source(form, one, cpu).map(drop);
        if outcome != Err(Errno::SRCH) {
            break;
        }
    }
    outcome
}

/// The side band, without build ids on a kernel that does not know them.
fn side_band(form: Form, whom: Whom, cpu: u32) -> Result<OwnedFd, Errno> {
    match attr::open(&Attr::side_band(form, true), whom, cpu) {
        Err(Errno::INVAL) => attr::open(&Attr::side_band(form, false), whom, cpu),
        opened => opened,
    }
}

/// A refusal after the first event could be opened.
fn refused_late(source: Source, errno: Errno) -> SamplingError {
    match errno {
        Errno::MFILE | Errno::NFILE => Error::of("perf_event_open", errno).into(),
        errno => SamplingError::Refused(vec![(source, refusal(source, errno))]),
    }
}

fn refusal(source: Source, errno: Errno) -> Refusal {
    let unsupported = matches!(errno, Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL);
    match errno {
        Errno::NOSYS => Refusal::NoKernel,
        _ if unsupported && source.is_hardware() && !has_pmu() => Refusal::NoPmu,
        _ if unsupported && source.is_branches() => Refusal::NoBranchStacks,
        _ if unsupported && source == Source::Accesses => Refusal::NoAccesses,
        Errno::ACCESS | Errno::PERM => match paranoid_level() {
            // Above 2 nobody without the right may sample; above 0 nobody may sample whole CPUs, which is the
            // same answer, so the level is told either way and the caller knows what was asked.
            Some(level) if level > 0 && !may_always() => Refusal::Paranoid { level },
            _ => Refusal::Blocked { errno },
        },
        errno => Refusal::Failed { errno },
    }
}

/// `_IO('$', 0)`, `_IO('$', 1)` and `_IO('$', 5)`.
const IOC_ENABLE: u64 = 0x2400;
const IOC_DISABLE: u64 = 0x2401;
const IOC_SET_OUTPUT: u64 = 0x2405;

/// One of the three requests above; only the last takes an argument, a descriptor.
fn control(event: impl AsFd, request: u64, argument: i32) -> Result<(), Error> {
    let fd = event.as_fd().as_raw_fd();
    // SAFETY: none of these requests takes a pointer; both descriptors are open for the length of the call.
    let outcome = unsafe { syscall!(nr::__NR_ioctl, fd, request, argument) };
    outcome.map(drop).map_err(|errno| Error::of("ioctl", errno))
}

/// Room for descriptors: the soft limit is raised while the events are opened and put back after, so that a program
/// started later begins with the limit that it would have had.
#[derive(Debug)]
pub struct FileRoom(Option<Rlimit>);

impl FileRoom {
    /// Makes room for so many descriptors, beside those that a program has anyway.
    ///
    /// # Errors
    /// The hard limit is lower.
    pub fn make(files: u64) -> Result<Self, SamplingError> {
        let needed = files + FILES_SPARE;
        let now = getrlimit(Resource::Nofile);
        if now.current.is_none_or(|soft| soft >= needed) {
            return Ok(Self(None));
        }
        if let Some(limit) = now.maximum.filter(|hard| *hard < needed) {
            return Err(SamplingError::Files { needed, limit });
        }
        let raised = Rlimit { current: now.maximum, maximum: now.maximum };
        setrlimit(Resource::Nofile, raised).map_err(|errno| Error::of("setrlimit", errno))?;
        Ok(Self(Some(now)))
    }
}

impl Drop for FileRoom {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // Lowering a soft limit is always allowed; open descriptors stay open.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
}

#[cfg(test)]
mod tests;
