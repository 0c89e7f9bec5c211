//! What is written beside a file of somebody else until it takes that file's name.
//!
//! Whoever owns a folder may rename and replace what lies in it at any moment, also what root has put there. So a name
//! that can be guessed may be a link before it is written, and one that can be seen may be one a moment later: what is
//! done by such a path (chown(2), chmod(2), an open that cuts) is done to any file of the host then. Hence a draft is
//! new (`O_EXCL` follows no link), and all that is done to it is done to what is open.
//!
//! What another program writes by a path of its own lies in a folder that is ours alone:
//!
//! ```text
//!  /home/u              theirs: held open, so that names are those of this folder, whatever its path leads to by then
//!    .p.RANDOM.draft    ours, 0700, held open: named as /proc/PID/fd/N, which no rename leads elsewhere
//!      new              what is written; opened with O_NOFOLLOW, then moved out by renameat(2)
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, Dir, Mode, OFlags, accessat, fstat, linkat, mkdirat, openat, renameat, statat,
    statvfs, unlinkat,
};
use rustix::io::Errno;

use crate::file::regular;

/// Names that are taken before one gives up: 64 random bits are never taken by chance.
const TRIES: usize = 8;
/// Of the name that a draft is for so many bytes are told in its own: names have 255.
const NAME_BYTES: usize = 200;

/// A hidden name that nobody can know before it is there.
fn hidden(name: &OsStr) -> OsString {
    // Keyed by random bytes of the kernel, afresh in each process.
    let random: u64 = RandomState::new().hash_one(std::process::id());
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES)];
    OsString::from_vec([&b"."[..], name, format!(".{random:016x}.draft").as_bytes()].concat())
}

/// Makes a new file beside one, for reading and writing, with the mode that `umask` leaves of 0666, and tells its path.
///
/// # Errors
/// The kernel's.
pub fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut tries = 0;
    loop {
        let draft = path.with_file_name(hidden(name));
        match File::options().read(true).write(true).create_new(true).open(&draft) {
            Ok(file) => return Ok((file, draft)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Whether a file of so many bytes could be made beside one, as far as that is known before it is.
///
/// # Errors
/// What the kernel would say: `ENOENT` and `EACCES` of the folder, `EROFS`, `ENOSPC`.
pub fn could_be_beside(path: &Path, bytes: u64) -> io::Result<()> {
    let around = path.parent().filter(|around| !around.as_os_str().is_empty()).unwrap_or(Path::new("."));
    accessat(CWD, around, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
    let seen = statvfs(around)?;
    // What is kept back is for root.
    let blocks = if rustix::process::geteuid().is_root() { seen.f_bfree } else { seen.f_bavail };
    // One that counts no blocks does not tell.
    let is_told = seen.f_blocks > 0;
    if is_told && blocks.saturating_mul(seen.f_frsize) < bytes { Err(Errno::NOSPC.into()) } else { Ok(()) }
}

/// A folder beside a file that nobody but us writes in; it goes, with what is in it, when this does.
#[derive(Debug)]
pub struct PrivateFolder {
    /// The folder around it.
    around: OwnedFd,
    path: PathBuf,
    folder: OwnedFd,
}

impl PrivateFolder {
    /// Makes one.
    ///
    /// # Errors
    /// The kernel's; [`io::ErrorKind::PermissionDenied`] where somebody has put another folder in its place.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let around = path.parent().filter(|around| !around.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let around = openat(CWD, around.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        let mut tries = 0;
        let name = loop {
            let name = hidden(name);
            match mkdirat(&around, &name, Mode::RWXU) {
                Ok(()) => break name,
                Err(Errno::EXIST) if tries < TRIES => tries += 1,
                Err(errno) => return Err(errno.into()),
            }
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&around, &name, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        let is_ours = found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & 0o077 == 0;
        // Of ours, but another one, which was given the name: what is in it would be written over.
        if !is_ours || !names(&folder)?.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "somebody replaces what is made there",
            ));
        }
        Ok(Self { around, path: path.with_file_name(name), folder })
    }

    /// Where it was made, to be told; nothing is to be done by this path.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.path
    }

    /// How a file in it is named for other programs, as long as this process has the folder open.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.folder.as_raw_fd())).join(name)
    }

    /// Writes a file in it, over one that is there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?).write_all(bytes)
    }

    /// Opens a file in it for reading: a regular one with this one name, and no link.
    ///
    /// # Errors
    /// The kernel's, and [`crate::file::Unread`].
    pub fn open(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = regular(openat(&self.folder, name, flags, Mode::empty())?.into())?;
        if fstat(&file)?.st_nlink == 1 {
            return Ok(file);
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "it has another name"))
    }

    /// Removes a file in it; one that is not there is removed already.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        gone(unlinkat(&self.folder, name, AtFlags::empty()))
    }

    /// Gives a file in it a name in the folder around, in place of what has it: of a link the link.
    ///
    /// # Errors
    /// The kernel's.
    pub fn move_out(&self, name: &str, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.folder, name, &self.around, to)?)
    }

    /// Gives a file in the folder around another name there, which no file may have.
    ///
    /// # Errors
    /// The kernel's.
    pub fn link_around(&self, name: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(linkat(&self.around, name, &self.around, to, AtFlags::empty())?)
    }

    /// Gives a file in it a second name in the folder around, until what is returned is dropped: for who has to find
    /// what lies around it (`$ORIGIN`). Whoever owns that folder may put another file there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn lend(&self, name: &str) -> io::Result<Lent<'_>> {
        let to = hidden(self.path.file_name().unwrap_or_default());
        linkat(&self.folder, name, &self.around, &to, AtFlags::empty())?;
        Ok(Lent { path: self.path.with_file_name(&to), folder: self, name: to })
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        for name in names(&self.folder).unwrap_or_default() {
            let _ = unlinkat(&self.folder, &name, AtFlags::empty());
        }
        // Under its name may be another folder by now: only this one is removed, and an empty one at most.
        let name = self.path.file_name().unwrap_or_default();
        let is_it = |found: &rustix::fs::Stat| {
            fstat(&self.folder).is_ok_and(|own| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
        };
        if statat(&self.around, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| is_it(&found)) {
            let _ = unlinkat(&self.around, name, AtFlags::REMOVEDIR);
        }
    }
}

/// A second name of a file, which goes when this does.
#[derive(Debug)]
pub struct Lent<'a> {
    folder: &'a PrivateFolder,
    name: OsString,
    /// The file by that name.
    pub path: PathBuf,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(&self.folder.around, &self.name, AtFlags::empty());
    }
}

fn gone(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of this test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn listed(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_name_is_never_the_same_twice_and_never_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let (one, two) = (create_beside(&path).unwrap().1, create_beside(&path).unwrap().1);
        assert_ne!(one, two);
    }

    #[test]
    fn what_is_laid_where_it_was_made_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, aside) = (folder.path().join("theirs"), folder.path().join("aside"));
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("new"), "precious").unwrap();
        let ours = PrivateFolder::beside(&folder.path().join("p")).unwrap();
        assert_eq!(fs::metadata(ours.shown()).unwrap().mode() & 0o777, 0o700);
        // The owner of the folder around it may rename it, and have its name lead elsewhere.
        fs::rename(ours.shown(), &aside).unwrap();
        symlink(&theirs, ours.shown()).unwrap();
        ours.write("new", b"ours").unwrap();
        fs::write(ours.path("more"), "by its path").unwrap();
        assert_eq!(fs::read_to_string(theirs.join("new")).unwrap(), "precious");
        assert!(aside.join("new").is_file() && aside.join("more").is_file());
        ours.move_out("new", OsStr::new("p")).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("p")).unwrap(), "ours");
        let link = ours.shown().to_owned();
        drop(ours);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && listed(&aside).is_empty());
    }

    #[test]
    fn a_link_in_it_is_no_file_of_ours_and_a_second_name_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("target"), folder.path().join("p"));
        fs::write(&target, "precious").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        {
            let ours = PrivateFolder::beside(&path).unwrap();
            symlink(&target, ours.path("new")).unwrap();
            assert!(ours.open("new").is_err() && ours.write("new", b"ours").is_err());
            ours.remove("new").unwrap();
            ours.remove("new").unwrap();
            ours.write("new", b"ours").unwrap();
            let lent = ours.lend("new").unwrap();
            assert_eq!(fs::read(&lent.path).unwrap(), b"ours");
            assert!(ours.open("new").is_err(), "somebody else has a name of it");
            drop(lent);
            assert_eq!(listed(folder.path()).len(), 2, "the target, and the folder");
            assert!(ours.open("new").is_ok());
        }
        assert_eq!(listed(folder.path()), ["target"]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}
