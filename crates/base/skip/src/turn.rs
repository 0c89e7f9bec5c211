//! One test at a time at what the machine has only once: its pools of huge pages, its quiet.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a test waits for the others.
const PATIENCE: Duration = Duration::from_secs(120);

/// Held by the one test of this process that has its turn: a lock on a file does not tell threads apart.
static PROCESS: Mutex<()> = Mutex::new(());

/// A turn at the machine, against all tests of all checkouts and users, until dropped or until the process
/// ends.
#[derive(Debug)]
pub struct Turn {
    _machine: File,
    _process: MutexGuard<'static, ()>,
}

impl Turn {
    /// Waits for a turn.
    ///
    /// # Errors
    /// The reason, to be skipped with, when the lock cannot be had within two minutes or at all.
    pub fn wait() -> Result<Self, String> {
        // A test that failed in its turn has been told of; the next one may go on.
        let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path();
        let machine = lock(&path, PATIENCE).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { _machine: machine, _process: process })
    }
}

fn path() -> PathBuf {
    std::env::temp_dir().join("planish-tests.lock")
}

fn lock(path: &Path, patience: Duration) -> io::Result<File> {
    let file = open(path)?;
    let start = Instant::now();
    while file.try_lock().is_err() {
        if start.elapsed() >= patience {
            let message = format!("other tests held the machine for {} seconds", patience.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(file)
}

/// Opens the file, which is made if need be. A lock needs no right to write, and another user's file in a
/// shared folder may not even be opened to be made (fs.protected_regular).
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    match OpenOptions::new().append(true).create_new(true).open(path) {
        // Another test was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => File::open(path),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn turns_do_not_overlap() {
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _turn = match Turn::wait() {
                        Ok(turn) => turn,
                        Err(reason) => return crate::skip("turns_do_not_overlap", reason),
                    };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::sleep(Duration::from_millis(5));
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }

    #[test]
    fn a_file_that_cannot_be_written_still_locks_and_is_waited_for() {
        let path = std::env::temp_dir().join(format!("planish-turn-{}", std::process::id()));
        let first = lock(&path, Duration::ZERO).expect("a new file");
        let mut rights = first.metadata().expect("it is there").permissions();
        rights.set_readonly(true);
        first.set_permissions(rights).expect("it is ours");
        let error = lock(&path, Duration::from_millis(50)).expect_err("it is held");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(first);
        drop(lock(&path, Duration::ZERO).expect("it is free"));
        std::fs::remove_file(&path).expect("it can be removed");
    }
}
