//! Which CPUs a thread may run on, and where it runs now.
//!
//! rustix's set ends at 1024 CPUs, so the calls are made raw with a mask that grows.

use linux_raw_sys::general as raw;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::raw::syscall;
use crate::set::{CpuSet, ID_MAX};

/// A logical CPU and the NUMA node that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Logical CPU.
    pub cpu: u32,
    /// NUMA node; 0 on a kernel without NUMA.
    pub node: u32,
}

/// Lets the thread `tid` (`None`: the calling one) run on `cpus` only.
///
/// The kernel silently takes away CPUs that are offline or outside the cpuset; [`get`] reads what is left.
/// A set of which nothing is left is EINVAL.
pub fn set(tid: Option<Pid>, cpus: &CpuSet) -> Result<()> {
    let words = cpus.words();
    // SAFETY: the kernel reads `size_of_val(words)` bytes at `words`, which outlives the call.
    let outcome =
        unsafe { syscall!(raw::__NR_sched_setaffinity, raw_tid(tid), size_of_val(words), words.as_ptr()) };
    outcome.map(drop).map_err(|errno| Error::of("sched_setaffinity", errno))
}

/// The CPUs that the thread `tid` (`None`: the calling one) may run on, within its cpuset.
pub fn get(tid: Option<Pid>) -> Result<CpuSet> {
    let mut words = vec![0u64; 16];
    loop {
        // SAFETY: the kernel writes at most `size_of_val` bytes to `words`, which holds that many.
        let outcome = unsafe {
            let bytes = size_of_val(words.as_slice());
            syscall!(raw::__NR_sched_getaffinity, raw_tid(tid), bytes, words.as_mut_ptr())
        };
        match outcome {
            Ok(_) => return Ok(CpuSet::from_words(words)),
            // The mask of this kernel is longer than ours.
            Err(Errno::INVAL) if words.len() * 64 <= ID_MAX as usize => words.resize(words.len() * 2, 0),
            Err(errno) => return Err(Error::of("sched_getaffinity", errno)),
        }
    }
}

/// The CPUs that the calling thread can be given: those that are online and in its cpuset, whatever its affinity is.
///
/// A CPU that `isolcpus` keeps free of ordinary tasks is in nobody's affinity, and can be had all the same: what
/// forbids a CPU is a cpuset. Cpusets have three kinds of files, and in a container none may be seen, so the kernel
/// itself is asked, by a thread that ends with it.
pub fn allowed() -> Result<CpuSet> {
    // More than Linux can be built for; the kernel reads as much of a mask as its own are long.
    let all = CpuSet::from_words(vec![u64::MAX; 256]);
    std::thread::scope(|scope| {
        let asked =
            std::thread::Builder::new().spawn_scoped(scope, || set(None, &all).and_then(|()| get(None)));
        let thread = asked
            .map_err(|error| Error::of("clone", Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)))?;
        thread.join().expect("two calls of the kernel do not panic")
    })
}

/// Keeps the calling thread on exactly these CPUs, or leaves it as it was.
///
/// # Errors
/// [`Error::Outside`] where the kernel would leave any of them out, as [`set`] does without a word.
pub fn pin(cpus: &CpuSet) -> Result<()> {
    if cpus.is_empty() {
        return Err(Error::of("sched_setaffinity", Errno::INVAL));
    }
    let before = get(None)?;
    let kept = match set(None, cpus) {
        // None of them can be used, and nothing was changed.
        Err(error) if error.errno() == Some(Errno::INVAL) => CpuSet::new(),
        outcome => outcome.and_then(|()| get(None))?,
    };
    if kept == *cpus {
        return Ok(());
    }
    if !kept.is_empty() {
        set(None, &before)?;
    }
    Err(Error::Outside { cpus: cpus.difference(&kept), allowed: allowed()? })
}

/// Where the calling thread runs at this moment; stale as soon as it is known unless the thread is pinned.
pub fn here() -> Result<Location> {
    let (mut cpu, mut node) = (0u32, 0u32);
    // SAFETY: the kernel writes one u32 to each pointer; the third argument has been ignored since 2.6.24.
    let outcome = unsafe { syscall!(raw::__NR_getcpu, &raw mut cpu, &raw mut node, 0) };
    outcome.map(|_| Location { cpu, node }).map_err(|errno| Error::of("getcpu", errno))
}

fn raw_tid(tid: Option<Pid>) -> i32 {
    tid.map_or(0, Pid::as_raw_pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        let before = get(None).unwrap();
        let last = before.last().unwrap();
        std::thread::spawn(move || {
            let one: CpuSet = [last].into_iter().collect();
            set(None, &one).unwrap();
            assert_eq!(get(None).unwrap(), one);
            assert_eq!(here().unwrap().cpu, last);
        })
        .join()
        .unwrap();
        assert_eq!(get(None).unwrap(), before, "the affinity is the thread's own");
    }

    #[test]
    fn a_set_without_a_usable_cpu_is_refused() {
        for cpus in [CpuSet::new(), CpuSet::parse_list("5000").unwrap()] {
            assert_eq!(set(None, &cpus).unwrap_err().errno(), Some(Errno::INVAL));
        }
    }

    #[test]
    fn a_thread_is_pinned_to_all_of_the_cpus_or_stays_where_it_was() {
        let allowed = allowed().unwrap();
        assert!(get(None).unwrap().is_subset(&allowed));
        std::thread::spawn(move || {
            let first: CpuSet = allowed.iter().take(1).collect();
            pin(&first).unwrap();
            assert_eq!(get(None).unwrap(), first);
            assert_eq!(super::allowed().unwrap(), allowed, "what can be had is not what one has");
            // Beyond the 1024 of glibc's and rustix's sets; no kernel has CPU 100000.
            for beyond in ["5000", "100000"].map(|list| CpuSet::parse_list(list).unwrap()) {
                for wanted in [beyond.clone(), beyond.union(&allowed)] {
                    match pin(&wanted).unwrap_err() {
                        Error::Outside { cpus, allowed: told } => {
                            assert_eq!((cpus, told), (beyond.clone(), allowed.clone()))
                        }
                        other => panic!("{other}"),
                    }
                    assert_eq!(get(None).unwrap(), first, "nothing was changed");
                }
            }
            assert_eq!(pin(&CpuSet::new()).unwrap_err().errno(), Some(Errno::INVAL));
            pin(&allowed).unwrap();
            assert_eq!(get(None).unwrap(), allowed);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_that_does_not_exist_is_an_error() {
        let beyond = Pid::from_raw(i32::MAX);
        assert_eq!(get(beyond).unwrap_err().errno(), Some(Errno::SRCH));
    }
}
