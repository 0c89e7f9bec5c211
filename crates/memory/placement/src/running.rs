//! Programs that were started, and what happens to them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use planish_sys::process::pidfd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::error::PlacementError;
use crate::launch::Launch;
use crate::listen::Listener;
use crate::wire::Notice;

/// A program that we started. Dropped, it runs on.
#[derive(Debug)]
pub struct Running {
    /// Its PID.
    pub pid: u32,
    child: Child,
    end: OwnedFd,
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
    pub fn start(
        launch: &Launch,
        name: &OsStr,
        arguments: &[OsString],
        variables: &[(&str, String)],
    ) -> Result<Self, PlacementError> {
        let failed = |source| PlacementError::NotStarted { path: launch.program.path.clone(), source };
        let mut command = launch.command(name, arguments);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(failed)?;
        match pidfd(Pid::from_child(&child)) {
            Ok(end) => Ok(Self { pid: child.id(), child, end, ended: None }),
            Err(error) => {
                // Nobody could wait for it without blocking.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(io::Error::other(error)))
            }
        }
    }

    /// A second handle of the process, to send signals by.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.end.try_clone()
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Asks it to end.
    pub fn ask_to_end(&self) {
        // It may have ended meanwhile.
        let _ = rustix::process::pidfd_send_signal(&self.end, Signal::TERM);
    }
}

/// Waits for the next event, at most `limit` (`None`: as long as it takes).
///
/// # Errors
/// The kernel's, of poll(2) and wait4(2).
pub fn next_event(
    listener: Option<&Listener>,
    running: &mut [Running],
    limit: Option<Duration>,
) -> io::Result<Event> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    loop {
        if let Some(notice) = listener.and_then(Listener::next) {
            return Ok(Event::Placed(notice));
        }
        for (index, one) in running.iter_mut().enumerate().filter(|(_, one)| one.ended.is_none()) {
            if let Some(status) = one.child.try_wait()? {
                one.ended = Some(status);
                return Ok(Event::Ended(index, status));
            }
        }
        let alive = running.iter().filter(|one| one.ended.is_none()).map(|one| one.end.as_fd());
        let files = alive.chain(listener.map(AsFd::as_fd));
        let mut files: Vec<PollFd<'_>> =
            files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        match poll(&mut files, limit.as_ref()) {
            Ok(0) => return Ok(Event::Quiet),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
