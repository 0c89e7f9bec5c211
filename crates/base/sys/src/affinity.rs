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
    fn a_thread_that_does_not_exist_is_an_error() {
        let beyond = Pid::from_raw(i32::MAX);
        assert_eq!(get(beyond).unwrap_err().errno(), Some(Errno::SRCH));
    }
}
