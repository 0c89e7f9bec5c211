//! Children that we start: how they begin, what they cost, and an end that is certain.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::affinity;
use crate::error::{Error, Result};
use crate::policy::{self, Policy};
use crate::process::{self, Usage};
use crate::raw::check;
use crate::set::CpuSet;
use crate::signals;
use crate::warden;

/// How a child begins. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct ChildSetup {
    /// Die (SIGKILL) when the *thread* that starts the child ends (prctl(2), PR_SET_PDEATHSIG): start such
    /// children from a thread that lives as long as they should. Lost when the child execs a set-user-id
    /// program.
    pub die_with_parent: bool,
    /// Lead a process group of its own, so that [`kill_group`] reaches its children too.
    pub new_group: bool,
    /// Name that group to this [`crate::warden::Warden`] before the program begins. Who starts the child then says
    /// whether it came to be ([`crate::warden::Warden::watch`], [`crate::warden::Warden::drop_begun`]), before the next
    /// one is started.
    pub warden: Option<RawFd>,
    /// Run on these CPUs only.
    pub cpus: Option<CpuSet>,
    /// Take memory by this policy.
    pub policy: Option<Policy>,
    /// Run without transparent huge pages, with all descendants.
    pub without_thp: bool,
    /// Run at this nice value.
    pub nice: Option<i32>,
    /// Lock at most so many bytes in memory (RLIMIT_MEMLOCK, both limits); `u64::MAX` is without a limit.
    pub memlock_bytes: Option<u64>,
}

/// Makes the child that `command` starts begin as `setup` says; what the kernel refuses fails the start. In any case it
/// ignores and blocks the signals that this process was started to ignore and block ([`crate::signals`]): without this
/// call std has it heed SIGPIPE.
pub fn prepare(command: &mut Command, setup: ChildSetup) -> &mut Command {
    if setup.new_group {
        command.process_group(0);
    }
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only async-signal-safe work may be done. `begin` makes plain system calls
    // on masks that were allocated before the fork; its errors carry an errno and allocate nothing.
    unsafe { command.pre_exec(move || begin(&setup, parent).map_err(io::Error::from)) }
}

/// The child's part of [`prepare`].
fn begin(setup: &ChildSetup, parent: Pid) -> std::result::Result<(), Errno> {
    let errno = |error: Error| error.errno().unwrap_or(Errno::INVAL);
    signals::hand_on()?;
    if setup.die_with_parent {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the wish was made: then nobody would ever send the signal.
        if rustix::process::getppid() != Some(parent) {
            return Err(Errno::SRCH);
        }
    }
    if let Some(socket) = setup.warden {
        warden::name_own_group(socket);
    }
    if let Some(cpus) = &setup.cpus {
        affinity::set(None, cpus).map_err(errno)?;
    }
    if let Some(policy) = &setup.policy {
        policy::set_thread_policy(policy).map_err(errno)?;
    }
    if setup.without_thp {
        process::set_thp_disabled(true).map_err(errno)?;
    }
    if let Some(nice) = setup.nice {
        process::set_nice(None, nice).map_err(errno)?;
    }
    if let Some(bytes) = setup.memlock_bytes {
        let limit = Some(bytes).filter(|bytes| *bytes != u64::MAX);
        let limits = Rlimit { current: limit, maximum: limit };
        rustix::process::setrlimit(Resource::Memlock, limits)?;
    }
    Ok(())
}

/// Waits for `child` and tells what it, and the children that it waited for, have used.
///
/// Takes the child, because afterwards its PID may belong to another process. To wait with a limit, wait for
/// its [`process::pidfd`] first. Its standard input is closed if we still hold the other end: a child that
/// reads to the end would wait for us while we wait for it.
pub fn wait_with_usage(mut child: Child) -> Result<(ExitStatus, Usage)> {
    drop(child.stdin.take());
    let pid = i32::try_from(child.id()).expect("a PID is an int in the kernel");
    let mut status = 0;
    // SAFETY: `rusage` is plain integers, for which all-zero is a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers outlive the call. `child` is owned and not yet waited for, so its PID cannot
        // have been given to another process.
        let returned = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut raw) };
        match check(returned.into()) {
            Ok(_) => return Ok((ExitStatus::from_raw(status), Usage::from_kernel(&raw))),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::of("wait4", errno)),
        }
    }
}

/// Ends a child for certain: kills it and waits, so that no zombie and no server stays behind.
pub fn kill_and_wait(mut child: Child) -> io::Result<ExitStatus> {
    // A child that has ended already is not killed: std keeps its status and sends nothing.
    child.kill()?;
    child.wait()
}

/// Has every descendant whose parent ends become a child of this process, instead of init's
/// (prctl(2), PR_SET_CHILD_SUBREAPER): it can then be found, and must be waited for.
pub fn adopt_orphans() -> Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|errno| Error::of("prctl(PR_SET_CHILD_SUBREAPER)", errno))
}

/// Kills every process of the group that the child `leader` leads (see [`ChildSetup::new_group`]).
///
/// A group that has ended already is no error. Call it before the leader is waited for: until then its number
/// cannot belong to another group.
pub fn kill_group(leader: &Child) -> Result<()> {
    match rustix::process::kill_process_group(Pid::from_child(leader), Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(Error::of("kill", errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use super::*;
    use crate::process::{pidfd, usage_children, wait_readable};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    #[test]
    fn the_usage_of_a_child_is_its_own() {
        let child = shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7").spawn().unwrap();
        let (status, usage) = wait_with_usage(child).unwrap();
        assert_eq!(status.code(), Some(7));
        assert!(usage.cpu() > Duration::ZERO && usage.cpu() < Duration::from_secs(20));
        assert!(usage.faults_minor > 0 && usage.resident_bytes_max > 64 << 10);
        assert!(usage_children().unwrap().cpu() >= usage.cpu());
    }

    #[test]
    fn a_child_that_reads_to_the_end_is_not_waited_for_in_vain() {
        let mut command = shell("cat; exit 3");
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let fd = pidfd(pid).unwrap();
        let waiter = std::thread::spawn(move || wait_with_usage(child).unwrap().0.code());
        if !wait_readable(&fd, Some(Duration::from_secs(20))).unwrap() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        assert_eq!(waiter.join().unwrap(), Some(3));
    }

    #[test]
    fn a_pidfd_tells_the_end() {
        let child = shell("sleep 60").spawn().unwrap();
        let fd = pidfd(Pid::from_child(&child)).unwrap();
        assert!(!wait_readable(&fd, Some(Duration::from_millis(20))).unwrap());
        assert_eq!(kill_and_wait(child).unwrap().signal(), Some(9));
        assert!(wait_readable(&fd, None).unwrap());
    }

    #[test]
    fn a_child_dies_with_the_thread_that_started_it() {
        let setup = || ChildSetup { die_with_parent: true, ..ChildSetup::default() };
        let start = move || prepare(&mut shell("sleep 60"), setup()).spawn().unwrap();
        let mut child = std::thread::spawn(start).join().unwrap();
        let fd = pidfd(Pid::from_child(&child)).unwrap();
        assert!(wait_readable(&fd, Some(Duration::from_secs(10))).unwrap());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_child_without_thp_says_so() {
        let mut command = shell("grep -q 'THP_enabled:[[:space:]]*0' /proc/self/status");
        prepare(&mut command, ChildSetup { without_thp: true, ..ChildSetup::default() });
        assert!(command.status().unwrap().success());
    }

    #[test]
    fn a_child_has_its_limit_on_locked_memory() {
        let mut command = shell("test \"$(ulimit -l)\" = 32");
        prepare(&mut command, ChildSetup { memlock_bytes: Some(32 << 10), ..ChildSetup::default() });
        assert!(command.status().unwrap().success());
    }

    #[test]
    fn a_child_begins_on_its_cpus_and_nodes() {
        let last = affinity::get(None).unwrap().last().unwrap();
        let script = format!("grep -q '^Cpus_allowed_list:[[:space:]]*{last}$' /proc/self/status");
        let setup = ChildSetup { cpus: Some([last].into_iter().collect()), ..ChildSetup::default() };
        assert!(prepare(&mut shell(&script), setup).status().unwrap().success());

        let Ok(nodes) = policy::thread_policy().and_then(|_| policy::allowed_nodes()) else {
            return planish_skip::skip(
                "a_child_begins_on_its_cpus_and_nodes",
                "memory policies are forbidden",
            );
        };
        let setup = ChildSetup { policy: Some(Policy::Interleave(nodes)), ..ChildSetup::default() };
        let mut command = shell("grep -q 'interleave' /proc/self/numa_maps");
        assert!(prepare(&mut command, setup).status().unwrap().success());
    }

    #[test]
    fn a_setup_that_the_kernel_refuses_fails_the_start() {
        let setup = ChildSetup { cpus: Some(CpuSet::new()), ..ChildSetup::default() };
        let error = prepare(&mut shell("exit 0"), setup).spawn().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::INVAL.raw_os_error()));
    }

    #[test]
    fn a_group_ends_with_its_leader() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("pid");
        let script = format!("sleep 60 & echo $! > {0}.part; mv {0}.part {0}; wait", told.display());
        let setup = ChildSetup { new_group: true, ..ChildSetup::default() };
        let mut leader = prepare(&mut shell(&script), setup).spawn().unwrap();
        while !told.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        #[expect(clippy::disallowed_methods, reason = "a file of this test")]
        let text = std::fs::read_to_string(&told).unwrap();
        let sleeper = pidfd(Pid::from_raw(text.trim().parse().unwrap()).unwrap()).unwrap();
        kill_group(&leader).unwrap();
        assert!(wait_readable(&sleeper, Some(Duration::from_secs(10))).unwrap());
        kill_group(&leader).unwrap();
        assert_eq!(leader.wait().unwrap().signal(), Some(9));
    }
}
