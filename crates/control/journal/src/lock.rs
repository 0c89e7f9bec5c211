//! The host-wide lock: one writer of a host at a time, whatever state folders they use.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use planish_sys::lock::{LockFile, TryLock};
use thiserror::Error;

/// How long a waiting process sleeps before its second try; each later pause is twice as long, up to the next one.
const POLL: Duration = Duration::from_millis(20);
/// The longest pause between two tries: who waits for hours must not be felt.
const POLL_MAX: Duration = Duration::from_secs(1);

/// Why the lock was not taken.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another planish has it.
    #[error("another planish is at work{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Its process, where the file tells it.
        pid: Option<i32>,
    },
    /// The lock file cannot be made or opened.
    #[error("cannot open the lock {}", path.display())]
    Open {
        /// The lock file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

/// The right to write a host. Released when dropped, and by the kernel when the process ends in any way.
#[derive(Debug)]
pub struct HostLock {
    _file: LockFile,
}

impl HostLock {
    /// Takes the lock at `path`, waiting for at most `patience` for another planish to finish ([`Duration::MAX`]: for
    /// as long as it takes).
    ///
    /// # Errors
    /// Names the process that has it.
    pub fn acquire(path: &Path, patience: Duration) -> Result<Self, LockError> {
        Self::take(path, patience, LockFile::try_acquire)
    }

    /// Whether nobody has it at this moment, without a trace of who has asked.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub fn look(path: &Path) -> Result<(), LockError> {
        Self::take(path, Duration::ZERO, LockFile::look).map(drop)
    }

    fn take(
        path: &Path,
        patience: Duration,
        try_lock: impl Fn(&Path) -> io::Result<TryLock>,
    ) -> Result<Self, LockError> {
        let failed = |source| LockError::Open { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            planish_sys::file::make_private_folders(folder).map_err(failed)?;
        }
        let start = Instant::now();
        let mut pause = POLL;
        loop {
            match try_lock(path).map_err(failed)? {
                TryLock::Ours(file) => return Ok(Self { _file: file }),
                TryLock::Held(pid) if start.elapsed() >= patience => {
                    let pid = pid.map(|pid| pid.as_raw_pid());
                    return Err(LockError::Held { path: path.to_owned(), pid });
                }
                TryLock::Held(_) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(POLL_MAX);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run/planish.lock");
        let first = HostLock::acquire(&path, Duration::ZERO).expect("free");
        let error = HostLock::acquire(&path, Duration::ZERO).expect_err("taken");
        assert_eq!(error.to_string(), format!("another planish is at work (pid {})", std::process::id()));
        drop(first);
        HostLock::acquire(&path, Duration::ZERO).expect("free again");
    }

    #[test]
    fn patience_outlasts_a_short_holder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("planish.lock");
        let first = HostLock::acquire(&path, Duration::ZERO).expect("free");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| HostLock::acquire(&path, Duration::from_secs(20)));
            std::thread::sleep(POLL * 3);
            drop(first);
            waiting.join().expect("no panic").expect("its turn came");
        });
    }
}
