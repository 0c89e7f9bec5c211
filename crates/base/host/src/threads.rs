//! Threads of the kernel of which each CPU has one, as files: the schedule of each is its text.
//!
//! ```text
//! /planish/threads/ksoftirqd/3     other, or fifo:2: see planish_sys::schedule     0644
//! ```
//!
//! `ksoftirqd` runs what interrupts leave for later, and `ktimers`, on kernels with PREEMPT_RT, timers. A thread is
//! known by its name, and any program may give itself that name: it must be a thread of the kernel (a flag that no
//! program has, and a parent that is the kernel's own) and of that CPU, too. In a container none of them is seen, and
//! nothing is there.

use std::collections::BTreeMap;
use std::io;

use planish_sys::schedule::Schedule;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::host::Host;

/// Folder of the places.
pub const FOLDER: &str = "/planish/threads";

/// The kinds of threads that have one.
pub const KINDS: [&str; 2] = ["ksoftirqd", "ktimers"];

/// The thread of the kernel that is the parent of all others (kernel/kthread.c).
const KTHREADD: u32 = 2;

/// `PF_KTHREAD` (include/linux/sched.h), which the ninth field of `stat` shows.
const PF_KTHREAD: u32 = 0x0020_0000;

/// A kind of threads, and a CPU.
pub(crate) type Key = (&'static str, u32);

/// The thread that a place is of.
#[must_use]
pub fn at(place: &str) -> Option<(&'static str, u32)> {
    let (kind, cpu) = place.strip_prefix(FOLDER)?.strip_prefix('/')?.split_once('/')?;
    let kind = KINDS.into_iter().find(|known| *known == kind)?;
    let number: u32 = cpu.parse().ok()?;
    // `+3` and `03` are no names of a CPU.
    (number.to_string() == cpu).then_some((kind, number))
}

/// All such threads by kind and CPU, with their numbers.
pub(crate) fn all(host: &Host) -> BTreeMap<Key, Vec<u32>> {
    among(host, kernels(host))
}

fn among(host: &Host, pids: Vec<u32>) -> BTreeMap<Key, Vec<u32>> {
    let mut found: BTreeMap<Key, Vec<u32>> = BTreeMap::new();
    for pid in pids {
        if let Some(key) = key(host, pid) {
            found.entry(key).or_default().push(pid);
        }
    }
    found
}

/// Numbers of the kernel's threads. A kernel that does not list children tells them only among all processes.
fn kernels(host: &Host) -> Vec<u32> {
    let children = host.read(&format!("/proc/{KTHREADD}/task/{KTHREADD}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    if !children.is_empty() {
        return children;
    }
    every_process(host)
}

fn every_process(host: &Host) -> Vec<u32> {
    host.list("/proc").into_iter().filter_map(|name| name.parse().ok()).collect()
}

/// What thread of the kernel a number is of, if it is of one of these.
fn key(host: &Host, pid: u32) -> Option<Key> {
    // Who is of another name is passed over by the shorter file.
    let name = host.read_lossy(&format!("/proc/{pid}/comm")).ok()?;
    let (kind, cpu) = name.trim().split_once('/')?;
    let kind = KINDS.into_iter().find(|known| *known == kind)?;
    let cpu: u32 = cpu.parse().ok()?;
    let stat = host.read_lossy(&format!("/proc/{pid}/stat")).ok()?;
    is_kernels(&stat).then_some(())?;
    let status = host.read_lossy(&format!("/proc/{pid}/status")).ok()?;
    is_of_cpu(&status, cpu).then_some((kind, cpu))
}

/// Whether a line of `stat` is that of a thread of the kernel: the second field may hold anything, the fields behind
/// its last bracket are the kernel's.
fn is_kernels(stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_whitespace();
    let parent = fields.nth(1).and_then(|field| field.parse::<u32>().ok());
    let flags = fields.nth(4).and_then(|field| field.parse::<u32>().ok());
    parent == Some(KTHREADD) && flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// Whether a thread may run on that CPU and no other. One whose CPU is offline is parked, and may be bound to none.
fn is_of_cpu(status: &str, cpu: u32) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let is_parked = field("State:").is_some_and(|state| state.starts_with('P'));
    is_parked || field("Cpus_allowed_list:").and_then(|list| list.parse().ok()) == Some(cpu)
}

/// The number of the thread of a place, looked for anew: threads come and go.
///
/// # Errors
/// `ENOENT` where there is none, `EEXIST` where there are several.
pub fn find(host: &Host, place: &str) -> io::Result<Pid> {
    let key = at(place).ok_or(Errno::NOENT)?;
    match all(host).get(&key) {
        // A list of children may lack some while others end (fs/proc/array.c).
        None => one(among(host, every_process(host)).get(&key)),
        found => one(found),
    }
}

/// Whether a number is still that of the thread of a place: a look at this one alone.
#[must_use]
pub fn is_still(host: &Host, place: &str, pid: Pid) -> bool {
    let number = u32::try_from(pid.as_raw_pid()).ok();
    number.and_then(|number| key(host, number)).is_some_and(|key| Some(key) == at(place))
}

/// The one thread of those that were found.
pub(crate) fn one(found: Option<&Vec<u32>>) -> io::Result<Pid> {
    match found.map(Vec::as_slice) {
        None | Some([]) => Err(Errno::NOENT.into()),
        Some([pid]) => {
            let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
            pid.ok_or_else(|| Errno::NOENT.into())
        }
        Some(_) => Err(Errno::EXIST.into()),
    }
}

/// The text of a thread.
///
/// # Errors
/// `ENOENT` for one that is gone meanwhile, and what the kernel says.
pub fn text(pid: Pid) -> io::Result<String> {
    match Schedule::of(pid) {
        Ok(schedule) => Ok(schedule.to_string()),
        Err(error) => match error.errno() {
            Some(Errno::SRCH) => Err(Errno::NOENT.into()),
            errno => Err(errno.unwrap_or(Errno::IO).into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "14 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 4619 0 0 20 0 1 0 24 0 0";

    #[test]
    fn a_place_names_a_kind_and_a_cpu() {
        assert_eq!(at("/planish/threads/ksoftirqd/12"), Some(("ksoftirqd", 12)));
        assert_eq!(at("/planish/threads/ktimers/0"), Some(("ktimers", 0)));
        for none in
            ["/planish/threads/kworker/0", "/planish/threads/ksoftirqd", "/planish/threads/ksoftirqd/03"]
        {
            assert_eq!(at(none), None, "{none}");
        }
        assert_eq!(at("/planish/threads/ksoftirqd/+3"), None);
    }

    #[test]
    fn a_program_that_calls_itself_so_is_none_of_the_kernels() {
        assert!(is_kernels(STAT));
        // A child of process 1, a name with fields of its own, and a flag that is missing.
        for other in [
            "900 (ksoftirqd/0) S 1 900 900 0 -1 69238848 0 0",
            "900 (ksoftirqd/0) S 2 0 0 0 -1 69238848) S 1 900 900 0 -1 4194560 0 0",
            "900 (ksoftirqd/0) S 2 0 0 0 -1 4194560 0 0",
            "",
        ] {
            assert!(!is_kernels(other), "{other}");
        }
    }

    #[test]
    fn a_thread_is_of_its_cpu_or_parked() {
        assert!(is_of_cpu("Name:\tksoftirqd/3\nState:\tS (sleeping)\nCpus_allowed_list:\t3\n", 3));
        assert!(!is_of_cpu("State:\tS (sleeping)\nCpus_allowed_list:\t0-3\n", 3));
        assert!(is_of_cpu("State:\tP (parked)\nCpus_allowed_list:\t0-3\n", 3));
    }

    #[test]
    fn of_several_threads_of_one_name_none_is_meant() {
        assert_eq!(one(Some(&vec![14])).expect("one").as_raw_nonzero().get(), 14);
        assert_eq!(Errno::from_io_error(&one(None).expect_err("none")), Some(Errno::NOENT));
        assert_eq!(Errno::from_io_error(&one(Some(&vec![14, 15])).expect_err("two")), Some(Errno::EXIST));
    }

    #[test]
    fn the_threads_of_this_machine_answer_as_files_do() {
        let host = Host::live();
        let names = host.list(&format!("{FOLDER}/ksoftirqd"));
        if names.is_empty() {
            return planish_skip::skip("threads", "no thread of the kernel is seen here, as in a container");
        }
        for name in names {
            let path = format!("{FOLDER}/ksoftirqd/{name}");
            let text = host.read(&path).expect("it was listed");
            assert!(Schedule::parse(&text).is_some(), "{path}: {text}");
            assert!(host.exists(&path) && host.access(&path) != crate::Access::Absent);
            let pid = find(&host, &path).expect("it is there");
            assert!(is_still(&host, &path, pid), "{path}");
            assert!(!is_still(&host, &format!("{FOLDER}/ksoftirqd/99999"), pid), "{path}");
            assert!(!is_still(&host, &path, rustix::process::getpid()), "this is a program");
        }
        assert!(host.read(&format!("{FOLDER}/ksoftirqd/99999")).expect_err("no such CPU").is_absent());
    }
}
