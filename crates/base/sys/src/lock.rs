//! The lock that keeps two planish processes from writing one host.
//!
//! It is on the open file (flock(2)), not in its contents: a crash releases it, and no stale file ever locks
//! anybody out.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::Pid;

/// A lock between processes, held until dropped or until its process ends, however it ends.
///
/// The file stays: removing it would let two processes lock two files of one name.
#[derive(Debug)]
pub struct LockFile {
    file: File,
}

/// What came of trying to lock.
#[derive(Debug)]
pub enum TryLock {
    /// The lock is ours.
    Ours(LockFile),
    /// Another process has it; its PID where the file tells it.
    Held(Option<Pid>),
}

impl LockFile {
    /// Locks the file at `path`, which is made if need be (mode 0644), without waiting.
    pub fn try_acquire(path: &Path) -> io::Result<TryLock> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o644).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Only to tell others who holds it; the lock itself is in the kernel.
                file.set_len(0)?;
                write!(file, "{}", std::process::id())?;
                Ok(TryLock::Ours(Self { file }))
            }
            Err(Errno::WOULDBLOCK) => {
                let mut text = Vec::new();
                file.rewind()?;
                file.take(16).read_to_end(&mut text)?;
                let pid = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
                Ok(TryLock::Held(pid.and_then(Pid::from_raw)))
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Unlocked by hand: a child that another thread is just starting has a copy of the descriptor until
        // it execs, and closing ours alone would leave the lock with it. An error leaves the lock to the end
        // of us.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_names_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let TryLock::Ours(lock) = LockFile::try_acquire(&path).unwrap() else { panic!("nobody else has it") };
        let TryLock::Held(holder) = LockFile::try_acquire(&path).unwrap() else { panic!("we have it") };
        assert_eq!(holder, Some(rustix::process::getpid()));
        (&lock.file).write_all(&[0xff; 20]).unwrap();
        let TryLock::Held(holder) = LockFile::try_acquire(&path).unwrap() else { panic!("we have it") };
        assert_eq!(holder, None, "a file that says nothing still holds");
        drop(lock);
        assert!(matches!(LockFile::try_acquire(&path).unwrap(), TryLock::Ours(_)));
    }
}
