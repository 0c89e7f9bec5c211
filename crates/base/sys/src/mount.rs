//! Options of a file system that is mounted already: its access time, and what a tmpfs may hold.
//!
//! `mount -o remount` has to name every option that is to stay: one that is forgotten is gone, `nosuid` and `ro` among
//! them. The calls here name only what they change. `mount_setattr(2)` (Linux 5.12) sets and clears single attributes
//! of one mount; `fspick` and `fsconfig` (Linux 5.2) change the option of a tmpfs that is named, and
//! `shmem_reconfigure`
//! (mm/shmem.c) leaves all others. Where a kernel has neither, nothing is set.
//!
//! A mount is told by its number, not by its path alone: between the look at a table of mounts and the call another one
//! may have come on top of it, and its options are somebody else's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use linux_raw_sys::general as raw;
use rustix::fs::{CWD, Mode, OFlags, fstatfs, openat};
use rustix::io::Errno;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_flag, fsconfig_set_string, fspick};

use crate::file;
use crate::raw::syscall;

/// When reading a file writes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTime {
    /// Once a day, and after a change: the kernel's own choice.
    Relative,
    /// Never.
    Never,
    /// At each read.
    Strict,
}

impl AccessTime {
    /// Its word among the options of a mount.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Relative => "relatime",
            Self::Never => "noatime",
            Self::Strict => "strictatime",
        }
    }

    /// By that word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        [Self::Relative, Self::Never, Self::Strict].into_iter().find(|time| time.word() == word)
    }

    fn attribute(self) -> u32 {
        match self {
            Self::Relative => raw::MOUNT_ATTR_RELATIME,
            Self::Never => raw::MOUNT_ATTR_NOATIME,
            Self::Strict => raw::MOUNT_ATTR_STRICTATIME,
        }
    }
}

/// How much a tmpfs may hold, and holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What it may hold; 0: as much as it likes.
    pub size: u64,
    /// What its files take now, in whole pages.
    pub used: u64,
}

/// A mount that is held open, so that it stays the one that was meant.
#[derive(Debug)]
pub struct MountPoint {
    fd: OwnedFd,
}

impl MountPoint {
    /// The mount of this number at a path. Opening starts no automount, and follows no link at the end of the path.
    ///
    /// # Errors
    /// What the kernel says; `NotFound` where another mount, or none, is at the path now.
    pub fn open(path: &Path, id: u32) -> io::Result<Self> {
        let fd = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        if mount_of(fd.as_fd())? != Some(id) {
            let gone = format!("another mount is at {} now", path.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, gone));
        }
        Ok(Self { fd })
    }

    /// Sets when reading writes a time. Nothing else of the mount changes, and no mount below it.
    ///
    /// # Errors
    /// EPERM without the right, or where another namespace locked it; ENOSYS before Linux 5.12.
    pub fn set_access_time(&self, time: AccessTime) -> io::Result<()> {
        let attributes = raw::mount_attr {
            attr_set: time.attribute().into(),
            // The three are one field: all of it is cleared, and one value set (Documentation of mount_setattr(2)).
            attr_clr: raw::MOUNT_ATTR__ATIME.into(),
            propagation: 0,
            userns_fd: 0,
        };
        // SAFETY: the descriptor is ours and open; the path is a literal that ends with a zero byte; the kernel reads
        // as many bytes of `attributes` as are named, which is its size, before the call returns.
        unsafe {
            syscall!(
                raw::__NR_mount_setattr,
                self.fd.as_raw_fd(),
                c"".as_ptr(),
                raw::AT_EMPTY_PATH,
                &raw const attributes,
                size_of::<raw::mount_attr>(),
            )
        }?;
        Ok(())
    }

    /// Changes one option of a tmpfs, `size` or `huge`, and leaves all others as they are. One that is without swap
    /// says so once more: kernels from 6.4 on, but for the newest, take a call that does not for the wish to have swap,
    /// and refuse it.
    ///
    /// # Errors
    /// What the kernel says, in its own words where it has some: a size below what is used, a word that it was built
    /// without.
    pub fn reconfigure(&self, option: &str, value: &str, has_swap: bool) -> io::Result<()> {
        let flags =
            FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_NO_AUTOMOUNT;
        let context = fspick(&self.fd, "", flags)?;
        let stays = if has_swap { Ok(()) } else { fsconfig_set_flag(&context, "noswap") };
        stays
            .and_then(|()| fsconfig_set_string(&context, option, value))
            .and_then(|()| fsconfig_reconfigure(&context))
            .map_err(|errno| in_its_words(&context, errno))
    }

    /// How much a tmpfs may hold, and holds.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn room(&self) -> io::Result<Room> {
        let seen = fstatfs(&self.fd)?;
        let block = u64::try_from(seen.f_bsize).unwrap_or(0);
        let used = seen.f_blocks.saturating_sub(seen.f_bfree);
        Ok(Room { size: seen.f_blocks.saturating_mul(block), used: used.saturating_mul(block) })
    }
}

/// The number of the mount that a descriptor is of (`/proc/PID/fdinfo`, since Linux 3.15).
fn mount_of(fd: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let told = file::read_text(Path::new(&format!("/proc/self/fdinfo/{}", fd.as_raw_fd())))?;
    let line = told.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    Ok(line.and_then(|id| id.trim().parse().ok()))
}

/// An error with what the kernel says beside its number: `e tmpfs: Too small a size for current use`.
fn in_its_words(context: &OwnedFd, errno: Errno) -> io::Error {
    let mut text = [0_u8; 256];
    let plain = io::Error::from(errno);
    let said = rustix::io::read(context, &mut text).unwrap_or(0);
    let said = String::from_utf8_lossy(&text[..said]);
    let said = said.trim_end().trim_start_matches("e ");
    if said.is_empty() { plain } else { io::Error::new(plain.kind(), format!("{said} ({plain})")) }
}

/// Whether this kernel lets this process ask for attributes of a mount to be set: probed by a call that can change
/// nothing, since it has no room for any attribute.
#[must_use]
pub fn has_access_times() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        // SAFETY: no pointer is read: the size of the attributes is zero, which the kernel refuses first (EINVAL).
        let asked = unsafe { syscall!(raw::__NR_mount_setattr, -1, c"".as_ptr(), 0, 0, 0) };
        asked != Err(Errno::NOSYS)
    })
}

/// The same for options of a tmpfs.
#[must_use]
pub fn has_reconfigure() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    // Flags that no kernel has are refused before anything else is looked at.
    let asked = || fspick(CWD, "", FsPickFlags::from_bits_retain(1 << 31)).err();
    *KNOWN.get_or_init(|| asked() != Some(Errno::NOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_access_times_are_those_of_mounts() {
        for word in ["relatime", "noatime", "strictatime"] {
            assert_eq!(AccessTime::by_word(word).map(AccessTime::word), Some(word));
        }
        assert_eq!(AccessTime::by_word("atime"), None);
    }

    #[test]
    fn a_mount_is_opened_by_its_number_alone() {
        // Nothing is set: mounts of this machine are looked at only.
        let here = Path::new("/proc");
        let fd = openat(CWD, here, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("it is mounted");
        let id = mount_of(fd.as_fd()).expect("told").expect("a number");
        MountPoint::open(here, id).expect("the same");
        let other = MountPoint::open(here, id.wrapping_add(1)).expect_err("another number");
        assert_eq!(other.kind(), io::ErrorKind::NotFound);
        let gone = MountPoint::open(Path::new("/proc/planish-has-no-such-file"), id).expect_err("nothing");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_this_kernel_has_is_asked_without_a_change() {
        // Both calls are refused for their arguments, by any kernel that has them and by no other reason.
        let release = rustix::system::uname();
        let mut numbers = release.release().to_str().unwrap_or_default().split('.').map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 12) => {
                assert!(has_access_times() && has_reconfigure());
            }
            _ => planish_skip::skip(
                "mount",
                "this kernel may lack the calls: it is before 5.12, or says no number",
            ),
        }
    }
}
