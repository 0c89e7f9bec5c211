//! Where the preload tells what became of each segment.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use planish_sys::datagram;

use crate::error::PlacementError;
use crate::wire::{MAGIC, Notice};

/// Datagrams that are passed over in one go: who sends them without end does not keep us from everything else.
const PASSED_MAX: usize = 64;

/// A socket without a file: it is gone when this process is, and a preload that finds nobody goes on.
#[derive(Debug)]
pub struct Listener {
    socket: UnixDatagram,
    name: String,
}

/// A notice, and the user whose process sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its `pid` is the sender's, by the word of the kernel; 0 for one outside of our PID namespace.
    pub notice: Notice,
    /// The sender's user id.
    pub user: u32,
}

impl Listener {
    /// Opens a socket under a name that no other has: a PID would be that of others in other PID namespaces.
    ///
    /// # Errors
    /// No socket can be had here.
    pub fn open() -> Result<Self, PlacementError> {
        // Keys of a hash are random, and differ each time.
        let number = RandomState::new().build_hasher().finish();
        let name = format!("planish-run-{number:016x}");
        let bound =
            SocketAddr::from_abstract_name(&name).and_then(|address| UnixDatagram::bind_addr(&address));
        let socket = bound.map_err(PlacementError::Socket)?;
        let named = datagram::name_senders(socket.as_fd());
        named.map_err(|error| PlacementError::Socket(io::Error::other(error)))?;
        Ok(Self { socket, name })
    }

    /// Its name, for the settings of the preload.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next notice that waits here, whoever sent it; what is none is passed over, for some time.
    pub fn next(&self) -> Option<Told> {
        // One byte more than a notice, so that a longer datagram is not taken for one.
        let mut bytes = [0u8; size_of::<Notice>() + 1];
        for _ in 0..PASSED_MAX {
            // A socket that is broken tells no more than one that is silent.
            let (length, sender) = datagram::receive(&self.socket, &mut bytes).ok().flatten()?;
            if let Some(notice) =
                bytes.get(..length).filter(|_| length == size_of::<Notice>()).and_then(parse)
            {
                return Some(Told { notice: Notice { pid: sender.pid, ..notice }, user: sender.user });
            }
        }
        None
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A datagram as the preload lays it: the machines that it is written for are little-endian.
fn parse(bytes: &[u8]) -> Option<Notice> {
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let number = |at: usize| Some(word(at)?.cast_signed());
    let notice = Notice {
        magic: long(0)?,
        address: long(8)?,
        bytes: long(16)?,
        nanoseconds: long(24)?,
        pid: word(32)?,
        kind: word(36)?,
        threads: word(40)?,
        skipped: word(44)?,
        policy_errno: number(48)?,
        prefault_errno: number(52)?,
        huge_errno: number(56)?,
        small_chunks: word(60)?,
    };
    (notice.magic == MAGIC).then_some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_notice_is_passed_over_and_the_sender_is_who_the_kernel_says() {
        let listener = Listener::open().unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        let address = SocketAddr::from_abstract_name(listener.name()).unwrap();
        let mut good = [0u8; 64];
        good[..8].copy_from_slice(&MAGIC.to_le_bytes());
        good[32..36].copy_from_slice(&77u32.to_le_bytes());
        good[52..56].copy_from_slice(&(12i32).to_le_bytes());
        for bytes in [&b"hello"[..], &[0u8; 64], &[1u8; 65], &good] {
            sender.send_to_addr(bytes, &address).unwrap();
        }
        let Told { notice, user } = listener.next().unwrap();
        assert_eq!((notice.pid, user), (std::process::id(), rustix::process::getuid().as_raw()), "not 77");
        assert_eq!((notice.prefault_errno, notice.small_chunks), (12, 0));
        assert_eq!(listener.next(), None);
        assert_ne!(listener.name(), Listener::open().unwrap().name());
    }
}
