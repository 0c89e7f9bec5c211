//! Where the preload tells what became of each segment.

use std::fs::{self, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use planish_host::Host;
use planish_sys::{datagram, file};
use rustix::fs::{FileType, Mode, OFlags};

use crate::error::PlacementError;
use crate::wire::{MAGIC, Notice};

/// Datagrams that are passed over in one go: who sends them without end does not keep us from everything else.
const PASSED_MAX: usize = 64;

/// A path of a socket is at most so long, with the zero byte behind it one more (`sun_path` of unix(7)).
const PATH_BYTES_MAX: usize = 107;
/// How the names of our files begin.
const BEGIN: &str = "answers-";

/// Two sockets under one name. An abstract one, which needs no path and no right, so that it is reached out of a chroot
/// and by other users, but only in our network namespace; and one by path, for those who are in another. The first is
/// gone when this process is, and the file of the second is removed; a preload that finds nobody goes on.
#[derive(Debug)]
pub struct Listener {
    abstract_socket: UnixDatagram,
    by_path: Option<(UnixDatagram, PathBuf)>,
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
    /// Opens sockets under a name that no other has: a PID would be that of others in other PID namespaces. Where
    /// `folder` can have none, there is the abstract one only.
    ///
    /// # Errors
    /// No socket can be had here.
    pub fn open(folder: &Path) -> Result<Self, PlacementError> {
        // Keys of a hash are random, and differ each time.
        let number = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{BEGIN}{number:016x}"));
        // What the settings of the preload cannot hold is no path for it.
        let can_be_told = path.to_str().filter(|path| path.len() <= PATH_BYTES_MAX && !path.contains(':'));
        let by_path = can_be_told.and_then(|_| bind_path(folder, &path).ok());
        let name = match (&by_path, can_be_told) {
            (Some(_), Some(path)) => path.to_owned(),
            // Nobody is to find a file by this name in its folder.
            _ => format!("/planish-run-{number:016x}"),
        };
        let bound =
            SocketAddr::from_abstract_name(&name).and_then(|address| UnixDatagram::bind_addr(&address));
        let listener = Self {
            abstract_socket: bound.map_err(PlacementError::Socket)?,
            by_path: by_path.map(|socket| (socket, path)),
            name,
        };
        for socket in listener.files() {
            let named = datagram::name_senders(socket);
            named.map_err(|error| PlacementError::Socket(io::Error::other(error)))?;
        }
        Ok(listener)
    }

    /// What becomes readable when a notice comes.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let by_path = self.by_path.iter().map(|(socket, _)| socket.as_fd());
        by_path.chain([self.abstract_socket.as_fd()])
    }

    /// Its name, for the settings of the preload.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a preload in this process can tell something here: it is in our network namespace, or finds the socket
    /// by its path.
    pub fn is_reached_from(&self, host: &Host, pid: u32) -> bool {
        let network = |pid: &str| host.read_link(&format!("/proc/{pid}/ns/net"));
        let is_there = |path: &Path| {
            let inode = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
            let seen = std::path::absolute(path)
                .map(|path| PathBuf::from(format!("/proc/{pid}/root{}", path.display())));
            inode(path).is_some_and(|own| seen.is_ok_and(|seen| inode(&seen) == Some(own)))
        };
        network(&pid.to_string()) == network("self")
            || self.by_path.as_ref().is_some_and(|(_, path)| is_there(path))
    }

    /// The next notice that waits here, whoever sent it; what is none is passed over, for some time.
    pub fn next(&self) -> Option<Told> {
        // One byte more than a notice, so that a longer datagram is not taken for one.
        let mut bytes = [0u8; size_of::<Notice>() + 1];
        for _ in 0..PASSED_MAX {
            // A socket that is broken tells no more than one that is silent.
            let mut next =
                self.files().filter_map(|socket| datagram::receive(socket, &mut bytes).ok().flatten());
            let (length, sender) = next.next()?;
            drop(next);
            if let Some(notice) =
                bytes.get(..length).filter(|_| length == size_of::<Notice>()).and_then(parse)
            {
                return Some(Told { notice: Notice { pid: sender.pid, ..notice }, user: sender.user });
            }
        }
        None
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.by_path {
            // What is left of it is removed by the next one.
            let _ = fs::remove_file(path);
        }
    }
}

/// A socket in a folder, to which every user may write: whoever the program becomes is to be heard.
fn bind_path(folder: &Path, path: &Path) -> io::Result<UnixDatagram> {
    file::make_folders(folder, 0o755, |_| Ok(()))?;
    remove_left(folder);
    let socket = UnixDatagram::bind(path)?;
    // The rights are given to what lies there, which must be a socket: by its name they could be given to what somebody
    // has put in its place, or to what that leads to.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&place)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let again = format!("/proc/self/fd/{}", place.as_raw_fd());
    fs::set_permissions(again, Permissions::from_mode(0o666))?;
    Ok(socket)
}

/// Removes the sockets of launchers that were killed: nobody listens to them.
#[expect(clippy::disallowed_methods, reason = "a folder of our own")]
fn remove_left(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // What is no socket is refused as one whose owner is gone is.
        let is_socket = || path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
        if name.starts_with(BEGIN)
            && is_socket()
            && let Ok(socket) = UnixDatagram::unbound()
            && socket.connect(&path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            let _ = fs::remove_file(&path);
        }
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
#[expect(clippy::disallowed_methods, reason = "a folder of the test's own")]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_notice_is_passed_over_and_the_sender_is_who_the_kernel_says() {
        let folder = tempfile::tempdir().unwrap();
        let listener = Listener::open(folder.path()).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        let address = SocketAddr::from_abstract_name(listener.name()).unwrap();
        let mut good = [0u8; 64];
        good[..8].copy_from_slice(&MAGIC.to_le_bytes());
        good[32..36].copy_from_slice(&77u32.to_le_bytes());
        good[52..56].copy_from_slice(&(12i32).to_le_bytes());
        for bytes in [&b"hello"[..], &[0u8; 64], &[1u8; 65], &good] {
            sender.send_to_addr(bytes, &address).unwrap();
        }
        sender.send_to(&good, listener.name()).unwrap();
        assert!(listener.next().is_some(), "by its path");
        let Told { notice, user } = listener.next().unwrap();
        assert_eq!((notice.pid, user), (std::process::id(), rustix::process::getuid().as_raw()), "not 77");
        assert_eq!((notice.prefault_errno, notice.small_chunks), (12, 0));
        assert_eq!(listener.next(), None);
        assert_ne!(listener.name(), Listener::open(folder.path()).unwrap().name());
    }

    #[test]
    fn the_file_goes_with_its_launcher_or_with_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(folder.path()).unwrap().count();
        let listener = Listener::open(folder.path()).unwrap();
        let mode = Path::new(listener.name()).metadata().unwrap().permissions().mode();
        assert_eq!((mode & 0o777, count()), (0o666, 1));
        // One that was killed leaves its file.
        drop(UnixDatagram::bind(folder.path().join("answers-7")).unwrap());
        let second = Listener::open(folder.path()).unwrap();
        assert_eq!(count(), 2, "those who listen keep theirs");
        drop((listener, second));
        assert_eq!(count(), 0);
        std::os::unix::fs::symlink("/nowhere", folder.path().join("answers-link")).unwrap();
        drop(Listener::open(folder.path()).unwrap());
        assert_eq!(count(), 1, "what is no socket is somebody's");
        let none = Listener::open(Path::new("/proc/self/nowhere")).unwrap();
        assert!(none.by_path.is_none() && none.name().starts_with("/planish-run-"), "{none:?}");
        let long = folder.path().join("x".repeat(100));
        assert!(Listener::open(&long).unwrap().by_path.is_none());
    }
}
