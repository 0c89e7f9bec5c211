//! Ctrl-C and kill: they ask a command to stop, and never cut a write of the host in two; while a program of the
//! user's runs, they are its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use planish_sys::signals::{self, Received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGXCPU,
};
use signal_hook::flag;

/// The signals by which a person, a terminal or a service manager ends a program.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// A flag that is set when the command should stop.
///
/// Once is enough and more changes nothing: the command then puts the host back, which must not be cut short. Under
/// nohup the end of a terminal asks nobody to stop. SIGINT is heeded also where it was ignored: a shell without jobs
/// does that to each command behind `&`, and `kill -INT` is how a script ends a recording.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut heeded = ENDING.iter().filter(|signal| **signal != SIGHUP || !signals::was_ignored(SIGHUP));
    heeded.try_for_each(|signal| flag::register(*signal, Arc::clone(&stop)).map(drop))?;
    Ok(stop)
}

/// Keeps those signals from ending the program: a write of the host that was begun comes to its end.
pub(crate) fn hold() {
    // A flag that nobody reads. Where even that cannot be had, the journal still makes an interrupted entry undoable.
    let _ = stop_flag();
}

/// Signals that are those of programs that we run for the user: one thread takes them from us and passes them on.
///
/// Ours stay the faults, which it would be wrong to lay to a program, and SIGCHLD.
#[derive(Debug)]
pub(crate) struct Forward(Arc<Passing>);

#[derive(Debug, Default)]
struct Passing {
    /// One of [`ENDING`] came.
    is_asked_to_end: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    programs: Vec<Arc<OwnedFd>>,
    /// What came while there was no program: it is the next one's.
    early: Vec<Received>,
    /// A key or a person asked that all stop: we do when the programs have, as a shell waits for it.
    is_asked_to_stop: bool,
}

impl Forward {
    /// From here on these signals end the programs and not us, until this process ends.
    ///
    /// No other thread takes them: the kernel likes to choose the first one, which may sleep in a look at memory that a
    /// file system does not answer for, and holds the signal then. Programs are started by
    /// [`planish_sys::child::prepare`], which has them heed what we heeded.
    pub fn catch() -> io::Result<Self> {
        let (set, passing) = (signals::of_programs(), Arc::new(Passing::default()));
        let (tell, is_ready) = channel();
        let pass = {
            let passing = Arc::clone(&passing);
            move || {
                // Each thread for itself, again: the start of the first one may have unblocked some.
                let is_blocked = signals::block(set).is_ok();
                if tell.send(()).is_ok() && is_blocked {
                    while let Ok(received) = signals::wait(set) {
                        passing.take(received);
                    }
                }
            }
        };
        // Before there is a thread that has them not blocked: it would be ended, and all others with it.
        signals::block(set).map_err(io::Error::other)?;
        let started = std::thread::Builder::new().name("signals".to_owned()).spawn(pass);
        // Without it the process goes on as it was, to be another program perhaps.
        started.inspect_err(|_| signals::block_what_was_given())?;
        signals::block(set).map_err(io::Error::other)?;
        // No program is started before: it would be left alone where one of them ends us now.
        is_ready.recv().map_err(io::Error::other)?;
        Ok(Self(passing))
    }

    /// Whether the programs were asked to end through us.
    pub fn is_asked_to_end(&self) -> bool {
        self.0.is_asked_to_end.load(Ordering::Relaxed)
    }

    /// These programs get what was sent since the ones before them have ended, and what will be.
    pub fn begin(&self, programs: Vec<Arc<OwnedFd>>) {
        let mut state = self.0.state();
        state.programs = programs;
        let early = std::mem::take(&mut state.early);
        early.iter().for_each(|received| state.send(received));
    }

    /// They have ended.
    pub fn end(&self) {
        self.0.state().programs.clear();
    }
}

impl Passing {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, received: Received) {
        let number = received.number();
        let was_ignored = number != SIGCHLD && signals::was_ignored(number);
        // To ignore it has kept it from us as well as from the program, whatever that wants of it now.
        if was_ignored && received.is_of_kernel() {
            return;
        }
        if !was_ignored && ENDING.contains(&number) {
            self.is_asked_to_end.store(true, Ordering::Relaxed);
        }
        let mut state = self.state();
        match number {
            SIGTSTP | SIGTTIN | SIGTTOU => state.is_asked_to_stop = true,
            SIGCONT => state.is_asked_to_stop = false,
            _ => {}
        }
        match number {
            SIGCHLD => {}
            _ if state.programs.is_empty() => state.early.push(received),
            _ if has_reached_them(&received) => {}
            _ => state.send(&received),
        }
        if state.is_asked_to_stop && state.has_stopped() {
            state.is_asked_to_stop = false;
            // Who has us go on sends SIGCONT, which goes to the programs as well.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        }
    }
}

impl State {
    fn send(&self, received: &Received) {
        for program in &self.programs {
            // It may have ended meanwhile.
            let _ = signals::pass_on(received, program);
        }
    }

    /// Whether no program runs: some are stopped, and others have ended at most.
    fn has_stopped(&self) -> bool {
        let stopped = |program: &Arc<OwnedFd>| {
            let asked = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            matches!(waitid(WaitId::PidFd(program.as_fd()), asked), Ok(Some(_)))
        };
        let ended = |program: &Arc<OwnedFd>| {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(program, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        };
        let mut programs = self.programs.iter();
        self.programs.is_empty()
            || self.programs.iter().any(stopped) && programs.all(|program| stopped(program) || ended(program))
    }
}

/// Whether the kernel has sent a signal to the programs by itself. The keys of a terminal, its size and its end are for
/// the whole group in the foreground: twice would be another wish than once. A session's leader alone learns that the
/// terminal is gone, and CPU time beyond its limit is each process's own.
fn has_reached_them(received: &Received) -> bool {
    let is_leader = || rustix::process::getsid(None) == Ok(rustix::process::getpid());
    received.is_of_kernel()
        && match received.number() {
            SIGINT | SIGQUIT | SIGTSTP | SIGTTIN | SIGTTOU | SIGWINCH | SIGXCPU => true,
            SIGHUP | SIGCONT => !is_leader(),
            _ => false,
        }
}

/// The code that a shell would show for a program: 128 and the signal, where one ended it.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
