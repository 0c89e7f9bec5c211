//! The folder in which the programs are built, and kept for the next run: compiling is most of the time.
//!
//! Everybody may read in it, since a program that refuses root is run as another user. Without a name of the user's it
//! lies in `/var/tmp`, where anybody may make a folder of that name: one that is not ours, or that others may write, is
//! refused, since what lies in it is run.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use planish_sys::lock::{LockFile, TryLock};

use crate::error::TrialError;

/// Where folders without a name of the user's lie: on a disk, and not emptied by a reboot.
const ABOVE: &str = "/var/tmp";

/// The file that says of which commands the build is.
const STAMP: &str = "built";

/// The folder of the programs of a trial.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Two runs would link over each other's programs.
    _lock: LockFile,
}

impl Folder {
    /// Opens the folder of a name, and makes it where it is not there.
    pub(super) fn open(named: Option<PathBuf>, name: &str) -> Result<Self, TrialError> {
        let us = rustix::process::geteuid().as_raw();
        let path = named.unwrap_or_else(|| Path::new(ABOVE).join(format!("planish-text-{name}-{us}")));
        let failed = |source: io::Error| TrialError::File { path: path.clone(), source };
        // Flags of linkers are words between blanks, and commas are theirs.
        let whole = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        if whole.to_str().is_none_or(|text| text.contains([' ', ',', '\'', '"', '\n', '\t'])) {
            return Err(TrialError::Refused {
                what: format!(
                    "{}: blanks, commas and quotes in its path would break flags of the linker",
                    path.display()
                ),
                cure: "name another folder: `folder` of [text], --folder".to_owned(),
            });
        }
        match fs::DirBuilder::new().mode(0o755).create(&path) {
            // The umask is somebody else's, and a program that refuses root must pass through.
            Ok(()) => fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(failed)?,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            Err(_) => {}
        }
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        let objection = if !found.is_dir() {
            Some("is no folder")
        } else if found.uid() != us {
            Some("belongs to another user")
        } else if found.mode() & 0o022 != 0 {
            Some("may be written by others")
        } else {
            None
        };
        if let Some(objection) = objection {
            return Err(TrialError::Refused {
                what: format!("{} {objection}, and what lies in it would be run", path.display()),
                cure: "remove it, or name another folder: `folder` of [text], --folder".to_owned(),
            });
        }
        let path = fs::canonicalize(&path).map_err(failed)?;
        match LockFile::try_acquire(&path.join("lock")).map_err(failed)? {
            TryLock::Ours(lock) => Ok(Self { path, _lock: lock }),
            TryLock::Held(_) => Err(TrialError::Refused {
                what: format!("another trial builds its programs in {}", path.display()),
                cure: "wait for it, or name another folder: `folder` of [text], --folder".to_owned(),
            }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it, empty.
    pub(super) fn empty(&self, name: &str) -> Result<PathBuf, TrialError> {
        let path = self.path.join(name);
        // What is removed lies in here, whatever anybody makes a name of.
        assert!(
            path.parent() == Some(&self.path) && !name.starts_with('.'),
            "{name} is no name of a folder in here"
        );
        let cleared = match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir(&path),
        };
        let cleared = cleared.and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
        cleared.map_err(|source| TrialError::File { path: path.clone(), source })?;
        Ok(path)
    }

    /// An empty folder in which this user, and nobody else, may write.
    pub(super) fn of_user(&self, name: &str, ids: Option<(u32, u32)>) -> Result<PathBuf, TrialError> {
        let path = self.empty(name)?;
        let given = match ids {
            Some((user, group)) => chown(&path, Some(user), Some(group)),
            None => Ok(()),
        };
        given
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o700)))
            .map_err(|source| TrialError::File { path: path.clone(), source })?;
        Ok(path)
    }

    /// Whether the build of these commands has come to its end.
    pub(super) fn is_built(&self, of: &str) -> bool {
        planish_sys::file::read_text(&self.path.join(STAMP)).is_ok_and(|found| found == of)
    }

    /// What is built next is of other commands.
    pub(super) fn begin(&self) -> Result<(), TrialError> {
        match fs::remove_file(self.path.join(STAMP)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(TrialError::File { path: self.path.join(STAMP), source })
            }
            _ => Ok(()),
        }
    }

    /// The build of these commands has come to its end.
    pub(super) fn built(&self, of: &str) -> Result<(), TrialError> {
        let path = self.path.join(STAMP);
        #[expect(clippy::disallowed_methods, reason = "a file of our own, in our own folder")]
        fs::write(&path, of).map_err(|source| TrialError::File { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_others_is_refused_and_one_is_used_once() {
        let above = tempfile::tempdir().expect("a folder");
        let named = |name: &str| Some(above.path().join(name));
        let open = |name: &str| Folder::open(named(name), "t").map_err(|error| error.to_string());
        let ours = open("ours").expect("it is made");
        assert!(open("ours").expect_err("it is locked").contains("another trial"));
        assert!(!ours.is_built("a"));
        ours.built("a").expect("written");
        assert!(ours.is_built("a") && !ours.is_built("b"));
        ours.begin().expect("gone");
        ours.begin().expect("it was gone already");
        assert!(!ours.is_built("a"));
        drop(ours);
        open("ours").expect("it is free again");
        fs::set_permissions(above.path().join("ours"), Permissions::from_mode(0o777)).expect("ours");
        assert!(open("ours").expect_err("others write").contains("may be written by others"));
        assert!(open("a b").expect_err("a blank").contains("would break flags"));
        std::os::unix::fs::symlink("ours", above.path().join("link")).expect("a link");
        assert!(open("link").expect_err("a link").contains("is no folder"));
    }

    #[test]
    fn what_lay_there_is_gone() {
        let above = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(Some(above.path().join("f")), "t").expect("made");
        let inner = folder.empty("base").expect("made");
        fs::create_dir(inner.join("old")).expect("made");
        assert!(!folder.empty("base").expect("anew").join("old").exists());
        let own = folder.of_user("counts", None).expect("made");
        assert_eq!(fs::metadata(own).expect("there").mode() & 0o7777, 0o700);
        for out in ["../f", "a/../../f", "/etc", "..", "a/b"] {
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| folder.empty(out)));
            assert!(tried.is_err(), "{out}");
        }
    }
}
