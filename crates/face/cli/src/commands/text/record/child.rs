//! The command that is recorded: a thread of ours whose events it inherits starts it and waits for it.
//!
//! Events are opened on that thread before the command is there, so that nothing of the command is missed and no
//! stopped process has to be woken up. The thread itself only waits; what little of it is sampled is left out with
//! everything of the recorder.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use planish_sys::child::{ChildSetup, prepare, wait_with_usage};
use planish_sys::process::{pidfd, wait_readable};
use rustix::process::{Pid, Signal};

use crate::failure::Failure;
use crate::signals::code;

/// How often a wait looks whether Ctrl-C was typed.
const LOOK: Duration = Duration::from_millis(200);

/// A thread that will start the command.
pub(crate) struct Waiting {
    /// The thread to open events on.
    pub tid: Pid,
    go: Sender<()>,
    started: Receiver<io::Result<OwnedFd>>,
    over: PipeReader,
    thread: JoinHandle<Option<io::Result<ExitStatus>>>,
}

/// The command runs.
pub(crate) struct Running {
    process: OwnedFd,
    over: PipeReader,
    thread: JoinHandle<Option<io::Result<ExitStatus>>>,
}

/// The command has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub status: ExitStatus,
}

impl Waiting {
    /// Makes the thread. The command starts at [`Waiting::go`]; dropped before, it never does.
    pub fn new(command: &[OsString]) -> io::Result<Self> {
        let (over, held) = io::pipe()?;
        let (tell_tid, tid) = channel();
        let (go, wait) = channel();
        let (tell, started) = channel();
        let mut starting = Command::new(&command[0]);
        starting.args(&command[1..]);
        prepare(&mut starting, ChildSetup::default());
        let thread = std::thread::Builder::new().name("record".to_owned()).spawn(move || {
            // Its other end is readable when this thread is done with the command.
            let _held = held;
            tell_tid.send(rustix::thread::gettid()).ok()?;
            wait.recv().ok()?;
            let started = starting.spawn().and_then(|child| {
                let process = pidfd(Pid::from_child(&child)).map_err(io::Error::other)?;
                Ok((child, process))
            });
            match started {
                Ok((child, process)) => {
                    tell.send(Ok(process)).ok()?;
                    Some(wait_with_usage(child).map(|(status, _)| status).map_err(io::Error::other))
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    None
                }
            }
        })?;
        let tid = tid.recv().map_err(io::Error::other)?;
        Ok(Self { tid, go, started, over, thread })
    }

    /// Starts the command.
    pub fn go(self) -> io::Result<Running> {
        let Self { go, started, over, thread, .. } = self;
        go.send(()).map_err(io::Error::other)?;
        let process = started.recv().map_err(io::Error::other)??;
        Ok(Running { process, over, thread })
    }
}

impl Running {
    /// Readable once the command has ended.
    pub fn end_fd(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// Waits for the end of the command. After Ctrl-C, which a terminal sends to the command too, it is asked to end.
    pub fn end(self, stop: &AtomicBool) -> Result<Ended, Failure> {
        let mut asked = false;
        while !wait_readable(&self.over, Some(LOOK)).map_err(Failure::refused)? {
            if stop.load(Ordering::Relaxed) && !asked {
                asked = true;
                // It may have ended meanwhile, which the wait will tell.
                let _ = rustix::process::pidfd_send_signal(&self.process, Signal::TERM);
            }
        }
        let status = self.thread.join().expect("the thread that waits does not panic");
        let status = status.expect("a command that was started is waited for").map_err(Failure::refused)?;
        Ok(Ended { status })
    }
}

impl Ended {
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// The code that a shell would show: 128 and the signal, where one ended it.
    pub fn code(&self) -> u8 {
        code(self.status)
    }

    pub fn describe(&self) -> String {
        match (self.status.code(), self.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        }
    }
}
