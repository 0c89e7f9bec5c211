//! The lock that keeps two planish processes from writing one host.
//!
//! It is on the open file (flock(2)), not in its contents: a crash releases it, and no stale file ever locks
//! anybody out. Whoever may open the file, if only for reading, may lock it (flock(2) asks for no more), so that
//! it is for the eyes of its owner alone: any other user could keep root from an undo for as long as they like.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

/// Mode of a lock file.
const OWN: u32 = 0o600;

/// Only the file itself, and at once: a lock file is changed when it is taken, and what lies at its path may have been
/// put there by someone else. Behind a symbolic link it would be any file of ours that is emptied, and to open a FIFO
/// may wait for ever.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

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
    ///
    /// # Errors
    /// It cannot be made or opened, or what lies there is no lock file: a symbolic link, a FIFO, a folder, a file that
    /// has a second name.
    pub fn try_acquire(path: &Path) -> io::Result<TryLock> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(OWN);
        Self::try_lock(path, options, FlockOperation::NonBlockingLockExclusive)?.named()
    }

    /// Whether somebody has it, without a trace of who has asked: several may look at once, also where nothing can be
    /// written.
    ///
    /// # Errors
    /// There is no such file; as [`Self::try_acquire`].
    pub fn look(path: &Path) -> io::Result<TryLock> {
        Self::try_lock(path, OpenOptions::new(), FlockOperation::NonBlockingLockShared)
    }

    fn try_lock(path: &Path, mut options: OpenOptions, operation: FlockOperation) -> io::Result<TryLock> {
        options.read(true).custom_flags(PLAIN.bits().cast_signed());
        let mut file =
            options.open(path).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::LOOP) => no_lock("a symbolic link"),
                _ => error,
            })?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(no_lock("no regular file"));
        }
        // A second name would make it a file of another purpose, which is not to be emptied.
        if found.nlink() != 1 {
            return Err(no_lock("a file of several names"));
        }
        let is_to_be_ours = operation == FlockOperation::NonBlockingLockExclusive;
        if is_to_be_ours && found.mode() & 0o777 != OWN && found.uid() == rustix::process::geteuid().as_raw()
        {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(OWN))?;
        }
        match rustix::fs::flock(&file, operation) {
            Ok(()) => Ok(TryLock::Ours(Self { file })),
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

impl TryLock {
    /// Writes who holds it, where that is us: only to tell others, the lock itself is in the kernel.
    fn named(mut self) -> io::Result<Self> {
        if let Self::Ours(LockFile { file }) = &mut self {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())?;
        }
        Ok(self)
    }
}

/// Why nothing is locked there.
fn no_lock(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what} lies where a lock file belongs"))
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
    fn what_lies_at_the_path_of_a_lock_is_left_alone_unless_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let victim = at("victim");
        File::create(&victim).unwrap().write_all(b"root:x:0:0").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&victim, at("link")).unwrap();
        std::os::unix::fs::symlink(at("nothing"), at("dangling")).unwrap();
        fs::hard_link(&victim, at("name")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::from(0o600), 0)
            .unwrap();
        for (name, what) in [
            ("link", "symbolic link"),
            ("dangling", "symbolic link"),
            ("name", "several names"),
            ("fifo", "no regular file"),
        ] {
            let error = LockFile::try_acquire(&at(name)).unwrap_err();
            assert!(error.to_string().contains(what), "{name}: {error}");
        }
        let found = fs::metadata(&victim).unwrap();
        assert_eq!((found.len(), found.mode() & 0o777), (10, 0o644), "neither emptied nor closed");
        assert!(!at("nothing").exists(), "nothing is made behind a link");
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

    #[test]
    fn who_only_looks_leaves_no_name_and_is_in_the_way_of_nobody_else_who_looks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let ours = |held: io::Result<TryLock>| match held.unwrap() {
            TryLock::Ours(lock) => lock,
            TryLock::Held(_) => panic!("nobody is in the way"),
        };
        let alone = ours(LockFile::try_acquire(&path));
        assert!(matches!(LockFile::look(&path).unwrap(), TryLock::Held(Some(_))));
        (&alone.file).rewind().unwrap();
        (&alone.file).write_all(b"another ").unwrap();
        drop(alone);
        drop((ours(LockFile::look(&path)), ours(LockFile::look(&path))));
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert!(text.starts_with("another "), "{text}");
    }
}
