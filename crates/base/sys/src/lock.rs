//! The lock that keeps two planish processes from writing one host.
//!
//! It is on the open file (flock(2)), not in its contents: a crash releases it, and no stale file ever locks
//! anybody out. Whoever may open the file, if only for reading, may lock it (flock(2) asks for no more), so that
//! it is for the eyes of its owner alone: any other user could keep root from an undo for as long as they like.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;
use rustix::process::Pid;

/// Mode of a lock file.
const OWN: u32 = 0o600;

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
    /// Locks the file at `path` without waiting. It is made if need be, and closed to all but its owner: an older
    /// planish, or a hand, may have made it with another mode.
    pub fn try_acquire(path: &Path) -> io::Result<TryLock> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).mode(OWN).open(path)?;
        let found = file.metadata()?;
        if found.mode() & 0o777 != OWN && found.uid() == rustix::process::geteuid().as_raw() {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(OWN))?;
        }
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
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// Any user but root: `nobody` on every distribution.
    const SOMEBODY: u32 = 65_534;

    /// Whether another user can open a file for reading, which is all that flock(2) asks for.
    fn somebody_opens(path: &Path) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", "exec 3<\"$0\""]).arg(path).uid(SOMEBODY).gid(SOMEBODY).stderr(Stdio::null());
        command.status().unwrap().success()
    }

    #[test]
    fn another_user_cannot_lock_root_out() {
        if !rustix::process::geteuid().is_root() {
            planish_skip::skip("another_user_cannot_lock_root_out", "needs root to become another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let (fresh, old) = (folder.path().join("fresh"), folder.path().join("old"));
        File::create(&old).unwrap().set_permissions(Permissions::from_mode(0o644)).unwrap();
        assert!(somebody_opens(&old), "the folder and the shell are in nobody's way");
        for path in [fresh, old] {
            let TryLock::Ours(lock) = LockFile::try_acquire(&path).unwrap() else { panic!("nobody has it") };
            assert!(!somebody_opens(&path), "{}", path.display());
            drop(lock);
            assert!(!somebody_opens(&path), "{} stays closed", path.display());
        }
    }

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
