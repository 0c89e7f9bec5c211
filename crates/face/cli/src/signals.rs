//! Ctrl-C and kill: they ask a command to stop, and never cut a write of the host in two; while a program of the
//! user's runs, they are its own.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// The signals by which a person, a terminal or a service manager ends a program.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// A flag that is set when the command should stop.
///
/// Once is enough and more changes nothing: the command then puts the host back, which must not be cut short.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    flag_of(&ENDING)
}

/// The same while programs run whose signals these are: see [`Forward`].
pub(crate) fn stop_flag_of_programs() -> io::Result<Arc<AtomicBool>> {
    flag_of(&heeded(&ENDING))
}

fn flag_of(signals: &[i32]) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    signals.iter().try_for_each(|signal| flag::register(*signal, Arc::clone(&stop)).map(drop))?;
    Ok(stop)
}

/// Keeps those signals from ending the program: a write of the host that was begun comes to its end.
pub(crate) fn hold() {
    // A flag that nobody reads. Where even that cannot be had, the journal still makes an interrupted entry undoable.
    let _ = stop_flag();
}

/// Of these signals the ones that this process was not started to ignore, as `nohup` has it ignore SIGHUP. Programs
/// that it starts inherit that only of signals that it does not catch.
fn heeded(signals: &[i32]) -> Vec<i32> {
    let status = planish_sys::file::read_text(Path::new("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Signal 1 is bit 0.
    signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Signals that are those of programs that we run for the user.
pub(crate) struct Forward {
    signals: Signals,
    numbers: Vec<i32>,
}

impl Forward {
    /// From here on these signals end the programs and not us.
    pub fn catch() -> io::Result<Self> {
        let numbers = heeded(&[SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT]);
        Ok(Self { signals: Signals::new(&numbers)?, numbers })
    }

    /// Passes signals on until this process ends. What a terminal sends it sends to the program as well: twice would
    /// be another wish than once.
    ///
    /// From here on no other thread takes them: the kernel likes to choose the first one, which may sleep in a look at
    /// memory that a file system does not answer for, and holds the signal then. Programs are to be started before.
    pub fn begin(self, programs: Vec<OwnedFd>) -> io::Result<()> {
        let Self { mut signals, numbers } = self;
        let pass = move || {
            for number in signals.forever() {
                let by_terminal = matches!(number, SIGINT | SIGQUIT) && is_foreground();
                let Some(signal) = Signal::from_named_raw(number).filter(|_| !by_terminal) else { continue };
                for program in &programs {
                    // It may have ended meanwhile.
                    let _ = rustix::process::pidfd_send_signal(program, signal);
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(pass)?;
        planish_sys::process::block_signals(&numbers).map_err(io::Error::other)
    }
}

/// Whether a terminal's keys reach the group that we and the program are in.
fn is_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let group = terminal.ok().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    group.is_some_and(|group| group == rustix::process::getpgrp())
}

/// The code that a shell would show for a program: 128 and the signal, where one ended it.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
