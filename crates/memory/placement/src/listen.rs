//! Where the preload tells what became of each segment.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::error::PlacementError;
use crate::wire::{MAGIC, Notice};

/// A socket without a file: it is gone when this process is, and a preload that finds nobody goes on.
#[derive(Debug)]
pub struct Listener {
    socket: UnixDatagram,
    name: String,
}

impl Listener {
    /// Opens a socket under a name of our own.
    ///
    /// # Errors
    /// No socket can be had here.
    pub fn open() -> Result<Self, PlacementError> {
        let name = format!("planish-run-{}", std::process::id());
        let bound =
            SocketAddr::from_abstract_name(&name).and_then(|address| UnixDatagram::bind_addr(&address));
        let socket = bound.map_err(PlacementError::Socket)?;
        socket.set_nonblocking(true).map_err(PlacementError::Socket)?;
        Ok(Self { socket, name })
    }

    /// Its name, for the settings of the preload.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next notice that waits here; what is none is passed over.
    pub fn next(&self) -> Option<Notice> {
        // One byte more than a notice, so that a longer datagram is not taken for one.
        let mut bytes = [0u8; size_of::<Notice>() + 1];
        loop {
            match self.socket.recv(&mut bytes) {
                Ok(length) if length == size_of::<Notice>() => {
                    if let Some(notice) = parse(&bytes[..length]) {
                        return Some(notice);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
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
    fn what_is_no_notice_is_passed_over() {
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
        let notice = listener.next().unwrap();
        assert_eq!((notice.pid, notice.prefault_errno, notice.small_chunks), (77, 12, 0));
        assert_eq!(listener.next(), None);
    }
}
