//! Everything that descends from the programs of a trial, and its end.
//!
//! ```text
//! planish (adopts orphans) ---- program, leader of a group --- what it starts, in its group
//!    |                              `--- a daemon, which has left the group (and often the session)
//!    `.... warden: kills the groups that it was told of, when planish is gone
//! ```
//!
//! - A program ends with its whole group, when it is waited for.
//! - What has left the group comes to us when its parent ends, since we adopt orphans (PR_SET_CHILD_SUBREAPER): it is
//!   killed when the last of our programs has ended, so after each unit where starts are the unit.
//! - After a `kill -9` of ours the warden kills the groups of our programs, and those other groups that there were
//!   below a service when it was ready.
//!
//! What is left then is a process that has made itself a group after that, or whose warden was killed as well.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use planish_sys::child::{adopt_orphans, kill_group, wait_with_usage};
use planish_sys::detach::is_helper;
use planish_sys::process::{Usage, pidfd, wait_readable};
use planish_sys::warden::Warden;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid};

use super::STEP;
use crate::collect::{Kin, family};
use crate::sample::ArmError;

/// How often orphans are looked for: each that is killed leaves us its own children, and few daemons nest deeper.
const SWEEPS_MAX: usize = 20;

/// What runs. One for all trials of the process, as its children and orphans are.
static RUNNING: Mutex<Running> = Mutex::new(Running { children: BTreeSet::new(), groups: BTreeSet::new() });

struct Running {
    /// Programs that were started and not yet waited for.
    children: BTreeSet<u32>,
    /// Groups beside theirs that the warden was told of.
    groups: BTreeSet<u32>,
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The warden of this process, started with its first program; `None` where none could be had, and then a `kill -9` of
/// ours may leave something.
fn warden() -> Option<&'static Warden> {
    static WARDEN: OnceLock<Option<Warden>> = OnceLock::new();
    let start = || {
        // First the warden: it is to be init's child, and not ours.
        let warden = Warden::start().ok();
        // A kernel without it leaves orphans to init, as without this call.
        let _ = adopt_orphans();
        warden
    };
    WARDEN.get_or_init(start).as_ref()
}

/// Where a program names its group to the warden.
pub(super) fn warden_socket() -> Option<RawFd> {
    warden().map(Warden::as_raw_fd)
}

/// Starts a program. It is known as ours before anybody can look for orphans.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut running = running();
    let child = command.spawn();
    if let Some(warden) = warden() {
        match &child {
            Ok(child) => warden.watch(Pid::from_child(child)),
            Err(_) => warden.drop_begun(),
        }
    }
    running.children.extend(child.as_ref().map(Child::id));
    child
}

/// Kills what is left of a program and of its group, and tells what it has used. After the last one also what has left
/// its group.
pub(super) fn end(child: Child) -> Result<(ExitStatus, Usage), ArmError> {
    let lost = |error: planish_sys::Error| ArmError::crashed(error.to_string());
    kill_group(&child).map_err(lost)?;
    if let Some(warden) = warden() {
        warden.forget(Pid::from_child(&child));
    }
    let id = child.id();
    let ended = wait_with_usage(child).map_err(lost);
    let mut running = running();
    running.children.remove(&id);
    if running.children.is_empty() {
        running.sweep();
    }
    ended
}

/// Tells the warden of the groups below our programs that are not their own: called when a service is ready, and has
/// started what it starts.
pub(crate) fn watch_descendants() {
    let mut running = running();
    let (Some(warden), Some((us, kin))) = (warden(), family(std::process::id())) else { return };
    let is_ours = |group: u32| kin.iter().any(|it| it.pid == group);
    for it in &kin {
        // Any other group of our session may be that of the user's own job.
        let is_safe = is_ours(it.group) || it.session != us.session;
        if is_helper(it.session) {
            continue;
        }
        let is_new = !running.children.contains(&it.group) && it.group != us.group;
        if is_safe && is_new && running.groups.insert(it.group) {
            number(it.group).into_iter().for_each(|group| warden.watch(group));
        }
    }
}

impl Running {
    /// Ends orphans of programs that have ended. None of ours runs, so that nobody misses them.
    fn sweep(&mut self) {
        for _ in 0..SWEEPS_MAX {
            let orphans = self.orphans();
            if orphans.is_empty() {
                break;
            }
            orphans.into_iter().filter_map(number).for_each(kill_orphan);
        }
        for group in std::mem::take(&mut self.groups).into_iter().filter_map(number) {
            warden().into_iter().for_each(|warden| warden.forget(group));
        }
    }

    /// Children of ours that we did not start here: what is in our own group was started by somebody else in this
    /// process, and is waited for there.
    fn orphans(&self) -> Vec<u32> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if matches!(waitid(WaitId::All, options), Err(Errno::CHILD)) {
            // The usual case, without a look at every process of the machine.
            return Vec::new();
        }
        let Some((us, kin)) = family(std::process::id()) else { return Vec::new() };
        let is_orphan =
            |it: &Kin| it.parent == us.pid && it.group != us.group && !self.children.contains(&it.pid);
        // A helper of planish comes to us as well, and is to stay: a held limit is what an arm may be.
        kin.into_iter().filter(|it| is_orphan(it) && !is_helper(it.session)).map(|it| it.pid).collect()
    }
}

/// Kills an orphan and waits until it is gone, but not for ever: one that changed its user may be out of our reach.
fn kill_orphan(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
    if let Ok(fd) = pidfd(pid) {
        let _ = wait_readable(&fd, Some(STEP));
    }
    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
}

fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use planish_sys::detach::spawn_detached;

    use super::*;
    use crate::child::{Launch, run_once};
    use crate::control::Stop;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> String {
        let launch = Launch::of(["sh", "-c", script].map(str::to_owned).to_vec());
        run_once(&launch, 0, LONG, &Stop::default()).expect("it ends well").stdout
    }

    fn is_gone(pid: i32) -> bool {
        match Pid::from_raw(pid).map(pidfd) {
            Some(Ok(fd)) => wait_readable(&fd, Some(Duration::from_millis(50))).unwrap_or(true),
            _ => true,
        }
    }

    /// Until the orphans have been looked for: other tests of this process have programs of their own, and the last of
    /// all takes a daemon with it.
    fn sweep() {
        let daemon: i32 =
            shell("setsid sleep 600 >/dev/null 2>&1 & echo $!").trim().parse().expect("a number");
        let begun = Instant::now();
        while !is_gone(daemon) {
            assert!(begun.elapsed() < LONG, "the daemon lives on");
            shell("true");
        }
    }

    #[test]
    fn a_daemon_ends_after_the_program_that_started_it() {
        sweep();
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "reads a file that the test had written")]
    fn a_helper_of_planish_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("told");
        let script = format!("echo $$ > {0}.part; mv {0}.part {0}; exec sleep 600", told.display());
        // The warden first, so that orphans come to us.
        shell("true");
        spawn_detached(Command::new("sh").args(["-c", &script])).expect("started");
        let begun = Instant::now();
        let helper: i32 = loop {
            match std::fs::read_to_string(&told) {
                Ok(text) => break text.trim().parse().expect("a number"),
                Err(_) => assert!(begun.elapsed() < LONG, "it never began"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        sweep();
        assert!(!is_gone(helper), "a held limit would have gone with the arm that holds it");
        kill_process(Pid::from_raw(helper).expect("a number"), Signal::KILL).expect("it is ours");
    }
}
