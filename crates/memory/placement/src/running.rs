//! Programs that were started, and what happens to them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use planish_host::Host;
use planish_residency::{Area, parse_maps, stat_of};
use planish_sys::process::pidfd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::error::PlacementError;
use crate::launch::Launch;
use crate::listen::{Listener, Told};
use crate::program::{missing_loader, other_machine};
use crate::wire::Notice;

/// Processes above another that are looked at: more are none of a real program.
const ANCESTORS_MAX: usize = 256;

/// How long who has ended waits for process 1, where others end too, and where nobody does.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);

/// A program that we started. Dropped, it runs on.
#[derive(Debug)]
pub struct Running {
    /// Its PID.
    pub pid: u32,
    child: Child,
    end: Arc<OwnedFd>,
    ended: Option<ExitStatus>,
}

/// What happens next.
#[derive(Debug)]
pub enum Event {
    /// The preload placed a segment.
    Placed(Notice),
    /// The program of this index has ended.
    Ended(usize, ExitStatus),
    /// The time is up.
    Quiet,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    /// The kernel refuses the program, or what was to be set for it.
    pub fn start(launch: &Launch, name: &OsStr, arguments: &[OsString]) -> Result<Self, PlacementError> {
        let failed = |source: io::Error| {
            let path = launch.program.path.clone();
            match missing_loader(&launch.program.loaded) {
                Some(loader) if source.kind() == io::ErrorKind::NotFound => {
                    PlacementError::NoLoader { path, loader }
                }
                _ => match other_machine(&launch.program.loaded) {
                    Some(machine) if source.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
                        PlacementError::OtherMachine { path, machine }
                    }
                    _ => PlacementError::NotStarted { path, source, set: launch.set_before() },
                },
            }
        };
        let mut command = launch.command(name, arguments);
        let mut child = command.spawn().map_err(failed)?;
        match pidfd(Pid::from_child(&child)) {
            Ok(end) => Ok(Self { pid: child.id(), child, end: Arc::new(end), ended: None }),
            Err(error) => {
                // Nobody could wait for it without blocking.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(io::Error::other(error)))
            }
        }
    }

    /// Its pidfd, to send signals by.
    #[must_use]
    pub fn handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.end)
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Waits until it has ended, without anything else that could fail.
    ///
    /// # Errors
    /// The kernel's, of wait4(2).
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok(status)
    }

    /// Asks it to end.
    pub fn ask_to_end(&self) {
        // It may have ended meanwhile.
        let _ = rustix::process::pidfd_send_signal(&*self.end, Signal::TERM);
    }
}

/// Waits for the next event, at most `limit` (`None`: as long as it takes).
///
/// # Errors
/// The kernel's, of poll(2) and wait4(2).
pub fn next_event(
    host: &Host,
    listener: Option<&Listener>,
    running: &mut [Running],
    limit: Option<Duration>,
) -> io::Result<Event> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let is_first = rustix::process::getpid().is_init();
    loop {
        if let Some(told) = listener.and_then(Listener::next)
            && is_ours(host, &told, running)
        {
            return Ok(Event::Placed(told.notice));
        }
        let (ended, has_buried) = if is_first { bury(running) } else { (next_end(running)?, false) };
        if let Some((index, status)) = ended {
            running[index].ended = Some(status);
            return Ok(Event::Ended(index, status));
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(Event::Quiet);
        }
        let pause = is_first.then_some(if has_buried { OFTEN } else { SELDOM });
        let left = left.into_iter().chain(pause).min().map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let alive = running.iter().filter(|one| one.ended.is_none()).map(|one| one.end.as_fd());
        let files = alive.chain(listener.into_iter().flat_map(Listener::files));
        let mut files: Vec<PollFd<'_>> =
            files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        match poll(&mut files, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The program that has ended, and how.
type End = (usize, ExitStatus);

/// The next program that has ended.
fn next_end(running: &mut [Running]) -> io::Result<Option<End>> {
    for (index, one) in running.iter_mut().enumerate().filter(|(_, one)| one.ended.is_none()) {
        if let Some(status) = one.child.try_wait()? {
            return Ok(Some((index, status)));
        }
    }
    Ok(None)
}

/// The same for process 1 of a container: it has to take note of the end of all processes whose parents have ended
/// before them, which nobody else can. Whether there was one, too.
fn bury(running: &[Running]) -> (Option<End>, bool) {
    let mut has_buried = false;
    // Without a child left there is nothing to wait for, which is told by the programs that have ended.
    while let Some((pid, status)) = rustix::process::wait(WaitOptions::NOHANG).ok().flatten() {
        let is_it = |one: &Running| one.ended.is_none() && one.pid == pid.as_raw_pid().unsigned_abs();
        if let Some(index) = running.iter().position(is_it) {
            return (Some((index, ExitStatus::from_raw(status.as_raw()))), has_buried);
        }
        has_buried = true;
    }
    (None, has_buried)
}

/// Whether a notice is believed: its sender is below a program that we started, or has left it (a daemon) and is its
/// user's still. The name of the socket is known to everybody.
fn is_ours(host: &Host, told: &Told, running: &[Running]) -> bool {
    let programs = || running.iter().map(|one| one.pid);
    let descends = |pid: u32| ancestors(host, pid).any(|above| programs().any(|program| program == above));
    let is_user = || {
        let own = rustix::process::getuid().as_raw();
        told.user == own || programs().any(|program| user_of(host, program) == Some(told.user))
    };
    told.notice.pid != 0 && (is_user() || descends(told.notice.pid))
}

/// A process and those above it, without process 1.
pub(crate) fn ancestors(host: &Host, pid: u32) -> impl Iterator<Item = u32> {
    let above = |pid: &u32| stat_of(host, *pid).ok().map(|stat| stat.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(pid), above).take(ANCESTORS_MAX)
}

/// The mappings of a process; `None` where we may not read them, and none where they cannot be understood.
pub(crate) fn areas(host: &Host, pid: u32) -> Option<Vec<Area>> {
    let maps = host.read_lossy(&format!("/proc/{pid}/maps")).ok()?;
    Some(parse_maps(&maps).unwrap_or_default())
}

/// The real user id of a process.
fn user_of(host: &Host, pid: u32) -> Option<u32> {
    let status = host.read_lossy(&format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().next()?.parse().ok()
}
