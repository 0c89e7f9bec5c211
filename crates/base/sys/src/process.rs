//! Processes: what they have used, what they may do, and at which priority they run.

use std::cmp::Ordering;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use linux_raw_sys::general as nr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::CapabilitySet;

use crate::error::{Error, Result};
use crate::raw::{check, syscall};

/// What a process and the children that it waited for have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Largest resident size in bytes; of children, that of the largest one, not their sum.
    pub resident_bytes_max: u64,
    /// Page faults served without I/O.
    pub faults_minor: u64,
    /// Page faults that waited for I/O.
    pub faults_major: u64,
    /// Context switches because the process waited.
    pub switches_voluntary: u64,
    /// Context switches because its time was up or another went first.
    pub switches_involuntary: u64,
}

impl Usage {
    pub(crate) fn from_kernel(raw: &libc::rusage) -> Self {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        Self {
            user: duration(raw.ru_utime.tv_sec, raw.ru_utime.tv_usec * 1000),
            system: duration(raw.ru_stime.tv_sec, raw.ru_stime.tv_usec * 1000),
            resident_bytes_max: count(raw.ru_maxrss) * 1024,
            faults_minor: count(raw.ru_minflt),
            faults_major: count(raw.ru_majflt),
            switches_voluntary: count(raw.ru_nvcsw),
            switches_involuntary: count(raw.ru_nivcsw),
        }
    }

    /// CPU time in both modes.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Whether this process has rights that who started it has not: set-user-id, capabilities of the file, a change of its
/// label (AT_SECURE). What an environment says is not to be believed then.
pub fn is_secure() -> bool {
    // SAFETY: getauxval reads what the kernel has put behind the environment of this process; it has no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether two processes have one address space (CLONE_VM), or how they are in an order of these that stays as long as
/// they do.
///
/// # Errors
/// A process has ended or we may not see it; the kernel or a filter has no such call (CONFIG_KCMP).
pub fn compare_memory(one: Pid, other: Pid) -> Result<Ordering> {
    // `enum kcmp_type` in include/uapi/linux/kcmp.h.
    const KCMP_VM: i32 = 1;
    let (one, other) = (one.as_raw_pid(), other.as_raw_pid());
    // SAFETY: the call takes numbers only and changes nothing.
    let order = unsafe { syscall!(nr::__NR_kcmp, one, other, KCMP_VM, 0, 0) };
    match order.map_err(|errno| Error::of("kcmp", errno))? {
        0 => Ok(Ordering::Equal),
        1 => Ok(Ordering::Less),
        2 => Ok(Ordering::Greater),
        // "Not equal but ordering information is unavailable".
        _ => Err(Error::of("kcmp", Errno::NOSYS)),
    }
}

/// What this process has used itself.
pub fn usage_self() -> Result<Usage> {
    usage(libc::RUSAGE_SELF)
}

/// What all children of this process that have been waited for have used, with theirs.
pub fn usage_children() -> Result<Usage> {
    usage(libc::RUSAGE_CHILDREN)
}

fn usage(who: libc::c_int) -> Result<Usage> {
    // SAFETY: `rusage` is plain integers, for which all-zero is a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage` to the pointer, which outlives the call.
    let returned = unsafe { libc::getrusage(who, &raw mut raw) };
    check(returned.into()).map_err(|errno| Error::of("getrusage", errno))?;
    Ok(Usage::from_kernel(&raw))
}

/// CPU time that the process `pid` (`None`: this one) has used so far in all its threads, without its
/// children.
pub fn cpu_time(pid: Option<Pid>) -> Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: writes one clock id to the pointer.
    let returned = unsafe { libc::clock_getcpuclockid(pid.map_or(0, Pid::as_raw_pid), &raw mut clock) };
    if returned != 0 {
        // This call returns the error instead of setting errno.
        return Err(Error::of("clock_getcpuclockid", Errno::from_raw_os_error(returned)));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec to the pointer.
    let returned = unsafe { libc::clock_gettime(clock, &raw mut time) };
    check(returned.into()).map_err(|errno| Error::of("clock_gettime", errno))?;
    Ok(duration(time.tv_sec, time.tv_nsec))
}

/// CPU time that the calling thread has used so far.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    duration(time.tv_sec, time.tv_nsec)
}

/// Kernel times are never negative; a clock that says otherwise reads as zero.
fn duration(seconds: i64, nanoseconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
        + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// A file descriptor that names the process `pid` for good, also after its PID is given to another.
pub fn pidfd(pid: Pid) -> Result<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| Error::of("pidfd_open", errno))
}

/// A number that changes when the process `pid` executes a program, and not otherwise: of the sixteen random bytes that
/// the kernel gives each program at its start (`AT_RANDOM`). `None` where we may not read them. They seed what guards
/// the program's stack, so that not they but a short number made from them is told.
pub fn exec_mark(pid: Pid) -> Option<u32> {
    const AT_RANDOM: u64 = 25;
    let address = auxiliary(pid, AT_RANDOM).ok()??;
    let mut random = [0u8; 16];
    let memory = std::fs::File::open(format!("/proc/{}/mem", pid.as_raw_pid())).ok()?;
    memory.read_exact_at(&mut random, address).ok()?;
    // FNV-1a.
    Some(
        random
            .iter()
            .fold(0x811c_9dc5, |mark: u32, byte| (mark ^ u32::from(*byte)).wrapping_mul(0x0100_0193)),
    )
}

/// What the kernel has told a program at its start, by the kind of the word (`AT_...`).
pub(crate) fn auxiliary(pid: Pid, kind: u64) -> std::io::Result<Option<u64>> {
    let vector = crate::file::read(Path::new(&format!("/proc/{}/auxv", pid.as_raw_pid())))?;
    let words: Vec<u64> = vector.chunks_exact(8).map(word).collect();
    Ok(words.chunks_exact(2).find(|pair| pair[0] == kind).map(|pair| pair[1]))
}

/// Eight bytes as the kernel, which is of our own byte order, wrote them.
#[expect(clippy::host_endian_bytes, reason = "the files hold words of the running kernel")]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"))
}

/// Waits until `fd` is readable (a pidfd: until the process has ended); false when the time is up first.
///
/// A timeout beyond what the clock can show is none.
pub fn wait_readable(fd: impl AsFd, timeout: Option<Duration>) -> Result<bool> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::of("poll", errno)),
        }
    }
}

/// Whether this process runs without transparent huge pages by its own or its parent's wish.
pub fn thp_disabled() -> Result<bool> {
    rustix::thread::transparent_huge_pages_are_disabled().map_err(|errno| Error::of("prctl", errno))
}

/// Asks for, or gives up, a life without transparent huge pages for this process and its later children.
pub fn set_thp_disabled(disabled: bool) -> Result<()> {
    rustix::thread::disable_transparent_huge_pages(disabled).map_err(|errno| Error::of("prctl", errno))
}

/// Puts the thread `tid` (`None`: the calling one) under SCHED_RR at `priority` (1 to 99).
///
/// Needs CAP_SYS_NICE or RLIMIT_RTPRIO. Leave `sched_rt_runtime_us` alone: it is what keeps the machine
/// reachable when the thread spins.
pub fn set_round_robin(tid: Option<Pid>, priority: u8) -> Result<()> {
    set_scheduler(tid, libc::SCHED_RR, priority.into())
}

/// Puts the thread `tid` (`None`: the calling one) back under the ordinary scheduler.
pub fn set_ordinary(tid: Option<Pid>) -> Result<()> {
    set_scheduler(tid, libc::SCHED_OTHER, 0)
}

fn set_scheduler(tid: Option<Pid>, policy: libc::c_int, priority: libc::c_int) -> Result<()> {
    // By number: musl's wrapper of this name answers ENOSYS by design.
    let number = linux_raw_sys::general::__NR_sched_setscheduler;
    let (tid, param) = (tid.map_or(0, Pid::as_raw_pid), priority);
    // SAFETY: the kernel reads one `struct sched_param`, a single int, which outlives the call.
    let outcome = unsafe { crate::raw::syscall!(number, tid, policy, &raw const param) };
    outcome.map(drop).map_err(|errno| Error::of("sched_setscheduler", errno))
}

/// Sets the nice value (-20 to 19) of the process `pid` (`None`: this one; of its main thread, to be exact).
///
/// A value below the present one needs CAP_SYS_NICE or RLIMIT_NICE.
pub fn set_nice(pid: Option<Pid>, nice: i32) -> Result<()> {
    rustix::process::setpriority_process(pid, nice).map_err(|errno| Error::of("setpriority", errno))
}

/// What the calling thread may do, by its effective user and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Effective user id; 0 is root, which in a container proves nothing about the host.
    pub user: u32,
    /// CAP_SYS_ADMIN: most of /sys, mounts, perf.
    pub admin: bool,
    /// CAP_SYS_NICE: real-time priority, other processes' affinity and pages.
    pub nice: bool,
    /// CAP_SYS_RESOURCE: limits, overcommitted huge pages.
    pub resource: bool,
}

/// The rights of the calling thread, by capget(2), so that no /proc is needed.
pub fn rights() -> Result<Rights> {
    let sets = rustix::thread::capabilities(None).map_err(|errno| Error::of("capget", errno))?;
    let has = |capability| sets.effective.contains(capability);
    Ok(Rights {
        user: rustix::process::geteuid().as_raw(),
        admin: has(CapabilitySet::SYS_ADMIN),
        nice: has(CapabilitySet::SYS_NICE),
        resource: has(CapabilitySet::SYS_RESOURCE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_clocks_run_while_we_work() {
        let (whole, thread) = (cpu_time(None).unwrap(), thread_cpu_time());
        let sum: u64 = (0..2_000_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0);
        assert!(thread_cpu_time() > thread && cpu_time(None).unwrap() > whole);
        let me = rustix::process::getpid();
        assert!(cpu_time(Some(me)).unwrap() >= whole);
    }

    #[test]
    fn a_process_has_its_own_memory_and_no_child_that_executes_has_it() {
        let me = rustix::process::getpid();
        match compare_memory(me, me) {
            Ok(order) => assert_eq!(order, Ordering::Equal),
            Err(error) => {
                let test = "a_process_has_its_own_memory_and_no_child_that_executes_has_it";
                return planish_skip::skip(test, error);
            }
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Pid::from_child(&child);
        let orders = [compare_memory(me, other), compare_memory(other, me)].map(|order| order.ok());
        child.kill().unwrap();
        child.wait().unwrap();
        let order = orders[0].expect("our own child");
        assert!(order != Ordering::Equal && orders[1] == Some(order.reverse()), "{orders:?}");
    }

    #[test]
    fn a_mark_stays_until_another_program_is_executed() {
        let me = rustix::process::getpid();
        let mark = exec_mark(me).expect("our own memory");
        assert_eq!(exec_mark(me), Some(mark));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = exec_mark(Pid::from_child(&child));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_ne!(other, Some(mark), "another program has other bytes");
    }

    #[test]
    fn the_longest_wait_is_one_without_end() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(wait_readable(&reader, Some(Duration::MAX)).unwrap(), "the end of a pipe is readable");
    }

    #[test]
    fn rights_agree_with_the_user() {
        let rights = rights().unwrap();
        assert_eq!(rights.user, rustix::process::geteuid().as_raw());
        if rights.nice {
            std::thread::spawn(|| {
                set_round_robin(None, 1).unwrap();
                set_ordinary(None).unwrap();
            })
            .join()
            .unwrap();
        } else {
            planish_skip::skip("rights_agree_with_the_user", "no CAP_SYS_NICE: real-time not tried");
        }
        set_nice(None, rustix::process::getpriority_process(None).unwrap()).unwrap();
    }
}
