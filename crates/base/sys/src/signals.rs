//! Signals: as this process was given them, as it takes them from itself to pass them on, and as its children get them.
//!
//! ```text
//! execve --> note_given (before main) --> Rust's runtime ignores SIGPIPE --> main
//!                  |                                                          |
//!                  `--> a child, between fork and exec: the mask, and what is ignored, as they were given to us
//! ```
//!
//! What a process ignores and blocks is inherited by what it executes, and services are built on that: systemd has
//! each of them start with SIGPIPE ignored. So a launcher must hand it on, and Rust's runtime hides it before `main`.
//!
//! By raw calls with a word as the set: the wrappers of glibc and musl leave out signals that they use themselves, and
//! not the same ones (34 is SIGRTMIN for glibc, and musl's own).

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use linux_raw_sys::general::{
    __NR_pidfd_send_signal, __NR_rt_sigprocmask, __NR_rt_sigtimedwait, SIG_BLOCK, SIG_SETMASK,
};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::raw::{check, syscall};

/// Signals, as the kernel has a set of them: signal 1 is bit 0.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

/// The highest number of a signal, on x86-64 and aarch64.
const LAST: i32 = 64;
/// Length of a set in bytes, which the kernel wants to be told.
const SET_BYTES: usize = size_of::<u64>();

impl SignalSet {
    /// The set of these numbers, each from 1 to 64.
    #[must_use]
    pub const fn of(numbers: &[i32]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < numbers.len() {
            bits |= bit(numbers[index]);
            index += 1;
        }
        Self(bits)
    }

    /// Whether it has a signal.
    #[must_use]
    pub const fn contains(self, number: i32) -> bool {
        self.0 & bit(number) != 0
    }
}

impl fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((1..=LAST).filter(|number| self.contains(*number))).finish()
    }
}

const fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

/// What this process was given and would not find any more: whom std, this crate and the commands set otherwise.
const CHANGED: [i32; 5] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

static GIVEN_MASK: AtomicU64 = AtomicU64::new(0);
static GIVEN_IGNORED: AtomicU64 = AtomicU64::new(0);

/// Notes how this process was started. It asks and sets nothing: a library with it in it changes no program.
extern "C" fn note_given() {
    let mut mask = 0u64;
    // SAFETY: without a new mask the call only writes the old one, a word as long as it is told.
    let asked = unsafe { change_mask(SIG_BLOCK, std::ptr::null(), &raw mut mask) };
    if asked.is_ok() {
        GIVEN_MASK.store(mask, Ordering::Relaxed);
    }
    let ignored = CHANGED.into_iter().filter(|number| is_ignored(*number)).map(bit).sum();
    GIVEN_IGNORED.store(ignored, Ordering::Relaxed);
}

/// The loader, or the start of a static program, calls it before `main`, and so before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_GIVEN: extern "C" fn() = note_given;

/// Whether this process was started to ignore a signal.
#[must_use]
pub fn was_ignored(number: i32) -> bool {
    if CHANGED.contains(&number) {
        SignalSet(GIVEN_IGNORED.load(Ordering::Relaxed)).contains(number)
    } else {
        is_ignored(number)
    }
}

/// Whether this process ignores a signal now.
fn is_ignored(number: i32) -> bool {
    // SAFETY: `sigaction` is plain integers and pointers that may be null.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one to the pointer, which outlives it.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Has a signal ignored, or heeded in its default way.
fn set_action(number: i32, action: libc::sighandler_t) -> std::result::Result<(), Errno> {
    // SAFETY: neither value is a handler, so that no code of ours runs by a signal.
    let before = unsafe { libc::signal(number, action) };
    if before == libc::SIG_ERR { check(-1).map(drop) } else { Ok(()) }
}

/// # Safety
/// Each pointer is null, or that of a word which outlives the call.
unsafe fn change_mask(how: u32, new: *const u64, old: *mut u64) -> std::result::Result<(), Errno> {
    // SAFETY: the caller's; the length is that of a word.
    unsafe { syscall!(__NR_rt_sigprocmask, how, new, old, SET_BYTES) }.map(drop)
}

/// Has children of this process waited for, also where it was started to ignore SIGCHLD: the kernel buries them itself
/// then, and nobody learns how they ended. [`crate::child::prepare`] gives programs what we were given.
pub fn heed_children() {
    // For a signal that exists and may be caught the call has no error.
    let _ = set_action(libc::SIGCHLD, libc::SIG_DFL);
}

/// The child's part, between fork and exec: what this process was started with. Plain system calls.
pub(crate) fn hand_on() -> std::result::Result<(), Errno> {
    for number in CHANGED.into_iter().filter(|number| was_ignored(*number)) {
        set_action(number, libc::SIG_IGN)?;
    }
    set_mask(GIVEN_MASK.load(Ordering::Relaxed))
}

/// Blocks no signal in the calling thread. A plain system call.
pub(crate) fn block_none() -> std::result::Result<(), Errno> {
    set_mask(0)
}

/// Has the calling thread block what this process was started with, as before [`block`].
pub fn block_what_was_given() {
    // Of a mask in our own memory the call has no error.
    let _ = set_mask(GIVEN_MASK.load(Ordering::Relaxed));
}

fn set_mask(mask: u64) -> std::result::Result<(), Errno> {
    // SAFETY: the kernel reads one word, which outlives the call.
    unsafe { change_mask(SIG_SETMASK, &raw const mask, std::ptr::null_mut()) }
}

/// Signals that somebody may have meant for a program that we run: all that can be caught, but those by which the
/// processor and the kernel tell a process of its own fault, and what libcs use inside (32, 33). SIGCHLD is among them,
/// and is ours: it tells of the program. Those that this process was started to ignore are among them, too: the program
/// has inherited that, and may have set a handler since. One that is blocked the kernel keeps, ignored or not.
#[must_use]
pub const fn of_programs() -> SignalSet {
    const OWN: SignalSet = SignalSet::of(&[
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        32,
        33,
    ]);
    SignalSet(!OWN.0)
}

/// Keeps signals from the calling thread, and from those that it starts from here on, until [`wait`] takes them.
///
/// The first thread that a program of musl starts, and its first handler, unblock musl's own signals (33, 34), 34 being
/// SIGRTMIN to everybody else: where a thread may be the first, both have to block again after its start.
///
/// # Errors
/// None that is known.
pub fn block(set: SignalSet) -> Result<()> {
    // SAFETY: the kernel reads one word, which outlives the call.
    let blocked = unsafe { change_mask(SIG_BLOCK, &raw const set.0, std::ptr::null_mut()) };
    blocked.map_err(|errno| Error::of("rt_sigprocmask", errno))
}

/// A signal that was sent to this process: the words of a `siginfo_t`, of which the first is its number and the third
/// tells who sent it.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Received([i32; 32]);

const _: () = assert!(size_of::<Received>() == size_of::<libc::siginfo_t>());

impl Received {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.0[0]
    }

    /// Whether the kernel sent it by itself, and not a process.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        self.code() == libc::SI_KERNEL
    }

    fn code(&self) -> i32 {
        self.0[2]
    }
}

/// Waits for one of these signals, which every thread of this process has blocked.
///
/// # Errors
/// None that is known.
pub fn wait(set: SignalSet) -> Result<Received> {
    let mut received = Received([0; 32]);
    let no_limit = std::ptr::null::<libc::timespec>();
    loop {
        // SAFETY: the kernel reads a word and writes one `siginfo_t`, as long as `received`; both outlive the call.
        let taken = unsafe {
            syscall!(__NR_rt_sigtimedwait, &raw const set.0, &raw mut received, no_limit, SET_BYTES)
        };
        match taken {
            Ok(_) => return Ok(received),
            // A debugger, or a stop, may end the call.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(Error::of("rt_sigtimedwait", errno)),
        }
    }
}

/// Sends a process what was received, with the value that sigqueue(3) gave it.
///
/// # Errors
/// It has ended, or may not be signalled.
pub fn pass_on(received: &Received, process: &OwnedFd) -> Result<()> {
    let info =
        if received.code() == libc::SI_QUEUE { std::ptr::from_ref(received) } else { std::ptr::null() };
    // SAFETY: the kernel reads one `siginfo_t`, or makes its own where the pointer is null.
    let sent = unsafe { syscall!(__NR_pidfd_send_signal, process.as_raw_fd(), received.number(), info, 0) };
    sent.map(drop).map_err(|errno| Error::of("pidfd_send_signal", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_made_of() {
        let set = SignalSet::of(&[1, 34, 64]);
        assert_eq!(format!("{set:?}"), "{1, 34, 64}");
        assert!(set.contains(64) && !set.contains(2));
    }

    #[test]
    fn faults_and_what_cannot_be_caught_are_no_programs_signals() {
        let set = of_programs();
        for own in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGBUS, 32, 33] {
            assert!(!set.contains(own), "{own}: {set:?}");
        }
        for theirs in [libc::SIGTERM, libc::SIGABRT, libc::SIGWINCH, libc::SIGCHLD, 34, 64] {
            assert!(set.contains(theirs), "{theirs}: {set:?}");
        }
    }

    /// One thread blocks and takes what it sends to itself: other tests of this process are not asked.
    #[test]
    fn what_is_blocked_is_taken_by_who_waits() {
        let taken = std::thread::spawn(|| {
            let set = SignalSet::of(&[40]);
            block(set).unwrap();
            // SAFETY: sends a blocked signal to the calling thread.
            assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), 40) }, 0);
            let received = wait(set).unwrap();
            (received.number(), received.is_of_kernel())
        });
        assert_eq!(taken.join().unwrap(), (40, false));
    }
}
