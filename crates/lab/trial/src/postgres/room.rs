//! The private folder that holds the data of the servers, and the user that they run as.
//!
//! ```text
//! /var/tmp/planish-pg-XXXXXX/      0700, owned by the unprivileged user
//! ├── lock                         flock'ed by us for as long as we live
//! ├── seed/                        the data set, made once, never served
//! ├── off/ thp/ 2m/ 1g/ placebo/   a copy for each server
//! └── s/                           sockets: nothing listens on a network address
//! ```
//!
//! The folder goes with us; when we are killed, the next run sees a lock that nobody holds and removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use planish_sys::lock::{LockFile, TryLock};

use super::budget::Budget;
use super::server::INIT_LIMIT;
use crate::child::{Launch, run_once};
use crate::control::Stop;
use crate::error::TrialError;
use crate::sample::ArmError;

/// Beginning of the name of every room.
const PREFIX: &str = "planish-pg-";

/// Where rooms are made: on disk rather than in a memory file system, and not emptied while a trial runs.
const ABOVE: &str = "/var/tmp";

/// Longest path of a socket folder: the kernel allows 107 bytes, and the server adds `/.s.PGSQL.5432`.
const SOCKET_FOLDER_BYTES_MAX: usize = 90;

/// The user that servers run as. PostgreSQL refuses root, and so do we.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// Its name, which becomes that of the database's superuser.
    pub(crate) name: String,
    /// User and group to change to; `None` to stay who we are.
    pub(crate) ids: Option<(u32, u32)>,
}

impl Account {
    /// Ourselves, or for root the first unprivileged account of these: `postgres`, `nobody`.
    pub(crate) fn choose() -> Result<Self, TrialError> {
        if !rustix::process::geteuid().is_root() {
            let name = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
            return Ok(Self { name, ids: None });
        }
        let passwd = crate::kernel::read("/etc/passwd").unwrap_or_default();
        ["postgres", "nobody"].iter().find_map(|name| account(&passwd, name)).ok_or_else(|| TrialError::Refused {
            what: "PostgreSQL does not run as root, and there is neither a user `postgres` nor a user `nobody`"
                .to_owned(),
            cure: "run as an ordinary user, or make one: useradd --system postgres".to_owned(),
        })
    }
}

/// `name:x:uid:gid:...` of passwd(5).
fn account(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let ids = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Account { name: name.to_owned(), ids: Some(ids) })
    })
}

/// The private folder.
#[derive(Debug)]
pub(crate) struct Room {
    folder: PathBuf,
    account: Account,
    // Held until the folder is gone, so that nobody takes it for a leftover.
    _lock: LockFile,
}

impl Room {
    /// Makes a room with space for `budget`, and removes the rooms of runs that were killed.
    pub(crate) fn make(account: Account, budget: &Budget) -> Result<Self, TrialError> {
        let above = if Path::new(ABOVE).is_dir() { PathBuf::from(ABOVE) } else { std::env::temp_dir() };
        sweep(&above);
        let free = rustix::fs::statvfs(&above).map(|it| it.f_bavail * it.f_frsize).unwrap_or(u64::MAX);
        if free < budget.disk_bytes() + (1 << 30) {
            return Err(TrialError::Refused {
                what: format!(
                    "{} has {} MiB free; the data sets of {} servers need {} MiB, and 1 GiB must stay",
                    above.display(),
                    free >> 20,
                    budget.servers,
                    budget.disk_bytes() >> 20
                ),
                cure: format!("make room there, or try a --scale below {}", budget.scale),
            });
        }
        let room = Self::furnish(&above, account)?;
        if room.sockets().as_os_str().len() > SOCKET_FOLDER_BYTES_MAX {
            return Err(TrialError::Refused {
                what: format!("the path of a socket in {} would be too long", above.display()),
                cure: "set TMPDIR to a shorter path".to_owned(),
            });
        }
        Ok(room)
    }

    fn furnish(above: &Path, account: Account) -> Result<Self, TrialError> {
        let folder =
            above.join(format!("{PREFIX}{}-{:06x}", std::process::id(), crate::fresh_seed() & 0xff_ffff));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| TrialError::File { path, source }
        };
        private_folder(&folder).map_err(failed(&folder))?;
        let lock_path = folder.join("lock");
        let lock = match LockFile::try_acquire(&lock_path).map_err(failed(&lock_path))? {
            TryLock::Ours(lock) => lock,
            TryLock::Held(_) => return Err(failed(&lock_path)(io::ErrorKind::AlreadyExists.into())),
        };
        let room = Self { folder, account, _lock: lock };
        let sockets = room.sockets();
        private_folder(&sockets).map_err(failed(&sockets))?;
        if let Some((user, group)) = room.account.ids {
            for path in [&room.folder, &sockets] {
                chown(path, Some(user), Some(group)).map_err(failed(path))?;
            }
        }
        Ok(room)
    }

    /// The user of the servers.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// The folder of the sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// The folder of one data set.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A launch of a program as the room's user, in the room.
    pub(crate) fn launch(&self, command: Vec<String>) -> Launch {
        let folder = Some(self.folder.clone());
        Launch { folder, user: self.account.ids, ..Launch::of(command) }
    }

    /// Copies the data set `seed` for a server of this name, unless it is there already.
    pub(crate) fn copy(&self, name: &str, stop: &Stop) -> Result<(), ArmError> {
        let to = self.data(name);
        if to.exists() {
            return Ok(());
        }
        let paths = [self.data("seed"), to.clone()].map(|path| path.display().to_string());
        let command = ["cp", "-a", "--reflink=auto"].map(str::to_owned).into_iter().chain(paths).collect();
        run_once(&self.launch(command), 0, INIT_LIMIT, stop).map(drop).inspect_err(|_| {
            // Half a copy must not be taken for a whole one at the next start.
            let _ = fs::remove_dir_all(&to);
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run: the lock falls with us.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Removes rooms whose lock nobody holds.
fn sweep(above: &Path) {
    #[expect(clippy::disallowed_methods, reason = "looks for our own folders, not at the host's settings")]
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let lock = entry.path().join("lock");
        // A room without a lock file is one that is just being made, or another user's that we cannot look
        // into.
        if !ours || File::open(&lock).is_err() {
            continue;
        }
        if let Ok(TryLock::Ours(_lock)) = LockFile::try_acquire(&lock) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_from_passwd() {
        let passwd = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
        assert_eq!(account(passwd, "nobody").and_then(|it| it.ids), Some((65534, 65534)));
        assert_eq!(account(passwd, "postgres"), None);
    }

    #[test]
    fn a_room_goes_with_its_owner_and_a_left_one_is_swept() {
        let above = tempfile::tempdir().expect("a folder");
        let account = Account { name: "me".to_owned(), ids: None };
        let room = Room::furnish(above.path(), account.clone()).expect("made");
        let folder = room.folder.clone();
        sweep(above.path());
        assert!(folder.is_dir(), "its lock is held");
        drop(room);
        assert!(!folder.exists());

        let left = above.path().join(format!("{PREFIX}left"));
        private_folder(&left).expect("made");
        File::create(left.join("lock")).expect("made");
        sweep(above.path());
        assert!(!left.exists(), "nobody held its lock");
    }
}
