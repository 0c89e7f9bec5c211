//! The private folder that holds the data of the servers, and the user that they run as.
//!
//! ```text
//! /var/tmp/planish-pg-XXXXXX/          ours, and nobody else's to write
//! ├── lock                             flock'ed by us for as long as we live
//! ├── data/                            0700, owned by the unprivileged user, like all below
//! │   ├── seed/                        the data set, made once, never served
//! │   └── off/ thp/ 2m/ 1g/ placebo/   a copy for each server
//! └── s/                               sockets, 0700 too: nothing listens on a network address
//! ```
//!
//! The folder goes with us; when we are killed, the next run sees a lock that nobody holds and removes it. It looks at
//! folders of our own user only. Anybody may make a folder of such a name in `/var/tmp`, with a link for a lock in it,
//! and would have root open, and remove, what they like. For the same reason the lock lies outside of what is given to
//! the user of the servers.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
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
pub(crate) fn account(passwd: &str, name: &str) -> Option<Account> {
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
        for path in [room.home(), room.sockets()] {
            private_folder(&path).map_err(failed(&path))?;
            if let Some((user, group)) = room.account.ids {
                chown(&path, Some(user), Some(group)).map_err(failed(&path))?;
            }
        }
        if room.account.ids.is_some() {
            // The user of the servers must pass through; there is nothing else to be seen in it.
            fs::set_permissions(&room.folder, Permissions::from_mode(0o711)).map_err(failed(&room.folder))?;
        }
        Ok(room)
    }

    /// What belongs to the user of the servers.
    fn home(&self) -> PathBuf {
        self.folder.join("data")
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
        self.home().join(name)
    }

    /// A launch of a program as the room's user, in the room.
    pub(crate) fn launch(&self, command: Vec<String>) -> Launch {
        let folder = Some(self.home());
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

/// Removes rooms of ours whose lock nobody holds.
fn sweep(above: &Path) {
    #[expect(clippy::disallowed_methods, reason = "looks for our own folders, not at the host's settings")]
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // A room without a lock file is one that is just being made.
        if !named || !is_ours(&entry.path()) || !entry.path().join("lock").exists() {
            continue;
        }
        if let Ok(TryLock::Ours(_lock)) = LockFile::try_acquire(&entry.path().join("lock")) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this is a folder, and no link to one, of our own user that no other user can write: then whatever lies in
/// it directly was put there by us.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| {
        it.is_dir() && it.uid() == rustix::process::geteuid().as_raw() && it.mode() & 0o022 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

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

    /// A file that a sweep must not touch, and folders that would have it do so: each lock leads there.
    fn traps(above: &Path) -> (PathBuf, Vec<PathBuf>) {
        use std::os::unix::fs::symlink;
        let victim = above.join("victim");
        File::create(&victim).expect("made").write_all(b"root:x:0:0").expect("written");
        fs::set_permissions(&victim, Permissions::from_mode(0o644)).expect("it is ours");
        let trap = |name: &str| {
            let folder = above.join(format!("{PREFIX}{name}"));
            private_folder(&folder).expect("made");
            folder
        };
        let [link, hard, fifo] = ["link", "hard", "fifo"].map(trap);
        symlink(&victim, link.join("lock")).expect("made");
        fs::hard_link(&victim, hard.join("lock")).expect("made");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, fifo.join("lock"), kind, mode, 0).expect("made");
        // A link to a folder that really is one of ours, elsewhere.
        let (room, elsewhere) = (above.join("room"), above.join(format!("{PREFIX}elsewhere")));
        private_folder(&room).expect("made");
        File::create(room.join("lock")).expect("made");
        symlink(&room, &elsewhere).expect("made");
        (victim, vec![link, hard, fifo, elsewhere, room])
    }

    fn assert_untouched(victim: &Path, folders: &[PathBuf]) {
        let found = rustix::fs::stat(victim).expect("it is there");
        assert_eq!((found.st_size, found.st_mode & 0o777), (10, 0o644), "neither emptied nor closed");
        for folder in folders {
            assert!(folder.join("lock").symlink_metadata().is_ok(), "{}", folder.display());
        }
    }

    #[test]
    fn a_sweep_follows_no_link_and_waits_for_no_fifo() {
        let above = tempfile::tempdir().expect("a folder");
        let (victim, folders) = traps(above.path());
        sweep(above.path());
        assert_untouched(&victim, &folders);
    }

    #[test]
    fn a_sweep_passes_over_what_another_user_made_or_can_write() {
        let above = tempfile::tempdir().expect("a folder");
        let left = |name: &str| {
            let folder = above.path().join(format!("{PREFIX}{name}"));
            private_folder(&folder).expect("made");
            File::create(folder.join("lock")).expect("made");
            folder
        };
        let open = left("open");
        fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("it is ours");
        sweep(above.path());
        assert!(open.join("lock").exists(), "anybody could have put its lock there");
        if !rustix::process::geteuid().is_root() {
            let why = "needs root to give a folder to another user";
            return planish_skip::skip("a_sweep_passes_over_what_another_user_made_or_can_write", why);
        }
        let theirs = left("theirs");
        chown(&theirs, Some(65_534), Some(65_534)).expect("root may");
        sweep(above.path());
        assert!(theirs.join("lock").exists());
    }

    #[test]
    fn the_lock_of_a_room_is_out_of_reach_of_the_servers_user() {
        if !rustix::process::geteuid().is_root() {
            let why = "needs root to become another user";
            return planish_skip::skip("the_lock_of_a_room_is_out_of_reach_of_the_servers_user", why);
        }
        let above = tempfile::tempdir().expect("a folder");
        fs::set_permissions(above.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let account = Account { name: "nobody".to_owned(), ids: Some((65_534, 65_534)) };
        let room = Room::furnish(above.path(), account).expect("made");
        let run = |script: &str| {
            let launch = room.launch(["sh", "-c", script].map(str::to_owned).to_vec());
            run_once(&launch, 0, INIT_LIMIT, &Stop::default())
        };
        run("touch mine ../s/mine").expect("its own folders are its own");
        run("rm ../lock || mv ../lock ../other || touch ../new").expect_err("the room itself is not");
    }
}
