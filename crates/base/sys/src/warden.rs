//! A process that ends what we have started when we are ended ourselves.
//!
//! A child that asked for it dies with us (PR_SET_PDEATHSIG), but that holds for the child alone, and not for what it
//! has started: after a `kill -9` of ours a shell dies, and the server that it had started lives on. So each child that
//! leads a group of its own can name it to a *warden*, before its program begins:
//!
//! ```text
//! we --fork--> middle --fork--> warden (adopted by init, in a session of its own, all files closed but one)
//!  |             ends at once     |
//!  |--- socket: groups -----------|      the warden only waits for the next message, or for the end of the socket,
//!  X                              |      which comes when the last of us is gone: then it kills the groups that
//!                                 +--    were named and not taken back, and ends
//! ```
//!
//! A number that was named and belongs to nobody any more could come to belong to a stranger. So what a child has named
//! holds only until we say what became of its start, since we never learn the number of one that could not be started;
//! and we take a group back before its leader is waited for.
//!
//! Nothing is killed where the warden itself was killed before us, as by a signal to every process of the user.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::detach::{fork, wait_for};
use crate::error::{Error, Result};
use crate::raw::{check, syscall};

/// Groups that can be watched at the same time: far more than are ever started beside each other.
const GROUPS_MAX: usize = 4096;

/// What the warden is called in lists of processes: not like us, so that a `pkill` by our name leaves it.
const NAME: &std::ffi::CStr = c"trial-warden";

/// Our end of the socket to a warden.
#[derive(Debug)]
pub struct Warden {
    socket: OwnedFd,
}

impl Warden {
    /// Starts a warden, which lives as long as this value and every copy of its descriptor.
    ///
    /// # Errors
    /// No socket, or no process can be had.
    pub fn start() -> Result<Self> {
        let mut ends = [-1; 2];
        // Packets keep messages apart. Closed by exec, so that no child of ours holds the socket open.
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: `ends` has room for the two descriptors that the call writes.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
        check(made.into()).map_err(|errno| Error::of("socketpair", errno))?;
        // SAFETY: both were made by the call above, and nobody else knows them.
        let [ours, its] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        match fork().map_err(|errno| Error::of("fork", errno))? {
            Some(middle) => {
                drop(its);
                wait_for(middle)?;
                Ok(Self { socket: ours })
            }
            // Other threads may have held locks when this copy was made: from here on only system calls, and no
            // memory is taken or given back.
            None => warden(its.as_raw_fd()),
        }
    }

    /// Has a group killed when we are gone: that of a child which has begun, or any other.
    pub fn watch(&self, group: Pid) {
        send(self.socket.as_raw_fd(), Message::Watch, group.as_raw_pid());
    }

    /// The child that was begun came to nothing.
    pub fn drop_begun(&self) {
        send(self.socket.as_raw_fd(), Message::DropBegun, 0);
    }

    /// Leaves a group alone. Called while its number cannot belong to another group: before its leader is waited for.
    pub fn forget(&self, group: Pid) {
        send(self.socket.as_raw_fd(), Message::Forget, group.as_raw_pid());
    }
}

/// Where a child names its own group: [`crate::child::ChildSetup::warden`].
impl AsRawFd for Warden {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Names the group of the calling process, which it leads. Async-signal-safe.
pub(crate) fn name_own_group(socket: RawFd) {
    send(socket, Message::Begun, rustix::process::getpid().as_raw_pid());
}

/// What is said of a group.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Message {
    /// By a child, of its own, before its program begins.
    Begun,
    /// By us, when it has begun.
    Watch,
    /// By us, when it has not.
    DropBegun,
    /// By us, when it has ended.
    Forget,
}

/// Bytes of a message: what is said, and the number of the group.
const MESSAGE_BYTES: usize = 5;

/// Sends a message, and lets it be where nobody listens: a warden that was killed is no reason to start nothing.
fn send(socket: RawFd, message: Message, group: i32) {
    let [a, b, c, d] = group.to_le_bytes();
    let bytes: [u8; MESSAGE_BYTES] = [message as u8, a, b, c, d];
    // SAFETY: the bytes outlive the call, which reads as many as they are. A descriptor that is none is an error.
    unsafe {
        libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
    }
}

/// The middle process and, after its fork, the warden. Returns into nobody's copy.
fn warden(socket: RawFd) -> ! {
    // A session of its own: Ctrl-C, and the end of the terminal, are for us.
    let is_warden = rustix::process::setsid().is_ok() && matches!(fork(), Ok(None));
    if is_warden {
        lay_down_everything_but(socket);
        keep(socket);
    }
    // SAFETY: ends this copy without the destructors and buffers that belong to the original.
    unsafe { libc::_exit(0) }
}

/// Closes all files but the socket, holds back all signals, and takes another name.
fn lay_down_everything_but(socket: RawFd) {
    let socket = socket.unsigned_abs();
    let close = |first: u32, last: u32| {
        // SAFETY: closing is sound here, since nothing of this copy uses a file but the socket, which is left out.
        unsafe { syscall!(libc::SYS_close_range, first, last, 0) }.is_ok()
    };
    if socket > 0 {
        close(0, socket - 1);
    }
    if !close(socket + 1, u32::MAX) {
        // Before Linux 5.9: our end of the socket above all, since as long as it is open there is no end.
        for fd in (0..1024).filter(|fd| *fd != socket.cast_signed()) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
    // SAFETY: a set of signals is plain memory that sigfillset fills; the name is a C string that outlives the call.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
    }
}

/// Listens until the other end is gone, and ends what was named by then.
fn keep(socket: RawFd) {
    let mut groups = Groups::none();
    loop {
        let mut bytes = [0; MESSAGE_BYTES];
        // SAFETY: `bytes` has room for as many bytes as the call may write.
        let count = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match check(count as i64) {
            Ok(_) if count == bytes.len().cast_signed() => {
                let [message, a, b, c, d] = bytes;
                groups.take(message, i32::from_le_bytes([a, b, c, d]));
            }
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    let begun = Some(&groups.begun).filter(|group| **group > 1);
    for &group in groups.numbers.iter().take(groups.count).chain(begun) {
        // SAFETY: sends a signal; `group` is a group that was named, above 1, so that it is never "all processes".
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// The groups that were named, in memory that is there already.
struct Groups {
    numbers: [i32; GROUPS_MAX],
    count: usize,
    /// That of a child of which we have not heard yet that it has begun; 0 for none.
    begun: i32,
}

impl Groups {
    fn none() -> Self {
        Self { numbers: [0; GROUPS_MAX], count: 0, begun: 0 }
    }

    /// Takes in a message. Numbers up to 1 are none of a group of ours: for kill(2) they are all processes, or the
    /// warden's own group.
    fn take(&mut self, message: u8, group: i32) {
        const BEGUN: u8 = Message::Begun as u8;
        const WATCH: u8 = Message::Watch as u8;
        const DROP_BEGUN: u8 = Message::DropBegun as u8;
        const FORGET: u8 = Message::Forget as u8;
        match message {
            BEGUN => self.begun = group,
            DROP_BEGUN => self.begun = 0,
            WATCH => {
                self.begun = 0;
                if let Some(free) = self.numbers.get_mut(self.count).filter(|_| group > 1) {
                    *free = group;
                    self.count += 1;
                }
            }
            FORGET => {
                let known = self.numbers.iter().take(self.count).position(|&number| number == group);
                let last = self.count.checked_sub(1).and_then(|last| self.numbers.get(last).copied());
                if let (Some(place), Some(last)) = (known, last)
                    && let Some(slot) = self.numbers.get_mut(place)
                {
                    *slot = last;
                    self.count -= 1;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::child::{ChildSetup, prepare};
    use crate::process::{pidfd, wait_readable};

    use Message::{Begun, DropBegun, Forget, Watch};

    /// The groups that are left, and the one of which nothing more was heard.
    fn left(messages: &[(Message, i32)]) -> (Vec<i32>, i32) {
        let mut groups = Groups::none();
        messages.iter().for_each(|&(message, group)| groups.take(message as u8, group));
        (groups.numbers[..groups.count].to_vec(), groups.begun)
    }

    #[test]
    fn what_was_named_and_not_taken_back_is_left() {
        assert_eq!(left(&[(Watch, 5), (Watch, 6), (Watch, 7), (Forget, 6)]), (vec![5, 7], 0));
        assert_eq!(left(&[(Watch, 5), (Forget, 5), (Forget, 5), (Watch, 8), (Forget, 9)]), (vec![8], 0));
        let none: Vec<(Message, i32)> = [1, 0, -1, i32::MIN].map(|group| (Watch, group)).to_vec();
        assert_eq!(left(&none), (Vec::new(), 0));
        let many: Vec<(Message, i32)> = (2..10_000).map(|group| (Watch, group)).collect();
        assert_eq!(left(&many).0.len(), GROUPS_MAX, "more than fit are left out");
    }

    #[test]
    fn a_child_counts_from_its_begin_and_one_that_came_to_nothing_does_not() {
        assert_eq!(left(&[(Begun, 5)]), (Vec::new(), 5));
        assert_eq!(left(&[(Begun, 5), (Watch, 5)]), (vec![5], 0));
        assert_eq!(left(&[(Watch, 4), (Begun, 5), (Forget, 4)]), (Vec::new(), 5), "another one has ended");
        assert_eq!(left(&[(Watch, 4), (Begun, 5), (DropBegun, 0)]), (vec![4], 0));
        assert_eq!(left(&[(Watch, 4), (DropBegun, 0)]), (vec![4], 0), "it never came to name itself");
    }

    /// A shell in a group of its own that has started a program which outlives it; the program's number.
    fn family(warden: &Warden, told: &Path) -> (Child, Pid) {
        let script = format!("sleep 600 & echo $! > {0}.part; mv {0}.part {0}; wait", told.display());
        let setup = ChildSetup { new_group: true, warden: Some(warden.as_raw_fd()), ..ChildSetup::default() };
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null());
        let leader = prepare(&mut command, setup).spawn().unwrap();
        warden.watch(Pid::from_child(&leader));
        let start = Instant::now();
        let mut text = String::new();
        while text.is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "the shell never wrote");
            std::thread::sleep(Duration::from_millis(5));
            let read = File::open(told).and_then(|mut file| file.read_to_string(&mut text));
            assert!(read.is_ok() || text.is_empty());
        }
        (leader, Pid::from_raw(text.trim().parse().unwrap()).unwrap())
    }

    #[test]
    fn a_group_ends_with_us_down_to_grandchildren() {
        let folder = tempfile::tempdir().unwrap();
        let warden = Warden::start().unwrap();
        let (mut leader, sleeper) = family(&warden, &folder.path().join("told"));
        let sleeper = pidfd(sleeper).unwrap();
        // All that the warden ever sees of our end, however it comes, is the end of the socket.
        drop(warden);
        assert!(wait_readable(&sleeper, Some(Duration::from_secs(60))).unwrap());
        leader.wait().unwrap();
    }

    #[test]
    fn a_group_that_was_taken_back_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let warden = Warden::start().unwrap();
        let (mut kept, of_kept) = family(&warden, &folder.path().join("kept"));
        let (mut other, of_other) = family(&warden, &folder.path().join("other"));
        let (of_kept, of_other) = (pidfd(of_kept).unwrap(), pidfd(of_other).unwrap());
        warden.forget(Pid::from_child(&kept));
        drop(warden);
        // The warden does both at the same moment: when one group has ended, the other one would have, too.
        assert!(wait_readable(&of_other, Some(Duration::from_secs(60))).unwrap());
        assert!(!wait_readable(&of_kept, Some(Duration::from_millis(300))).unwrap());
        crate::child::kill_group(&kept).unwrap();
        kept.wait().unwrap();
        other.wait().unwrap();
    }
}
