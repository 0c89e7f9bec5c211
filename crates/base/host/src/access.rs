//! Who may write a file, found without opening it for writing.
//!
//! `doctor` and `plan` may be run by any user on any host, so they only look: mode bits (stat), the mount
//! (statvfs) and the kernel's own opinion about us (faccessat with effective ids). What that cannot tell, an
//! error that comes only with the write, is learnt at the first journalled write of `apply`.

use std::path::Path;

use rustix::fs::{Access as Wish, AtFlags, CWD, FileType, StatVfsMountFlags, accessat, statat, statvfs};
use rustix::io::Errno;

/// Who may write a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The file is not there, or is not a file.
    Absent,
    /// Nobody may write it: it has no write bit.
    ReadOnly,
    /// We may write it, and nobody may read it: a trigger, such as `compact_memory`.
    WriteOnly,
    /// We may read and write it.
    Writable,
    /// Somebody may write it, but not we; the text says why.
    Denied(String),
    /// It lies on a file system that is mounted read-only, as /proc/sys does in many containers.
    ReadOnlyMount,
}

impl Access {
    /// Whether we may write.
    pub fn is_writable(&self) -> bool {
        matches!(self, Self::Writable | Self::WriteOnly)
    }

    /// The verdict on a file of `mode` for an observer who is allowed to write (`Ok`) or is not, and why.
    pub(crate) fn of(mode: u32, read_only_mount: bool, allowed: Result<(), String>) -> Self {
        match (mode & 0o222 != 0, read_only_mount, allowed) {
            (false, ..) => Self::ReadOnly,
            (true, true, _) => Self::ReadOnlyMount,
            (true, false, Err(why)) => Self::Denied(why),
            (true, false, Ok(())) if mode & 0o444 == 0 => Self::WriteOnly,
            (true, false, Ok(())) => Self::Writable,
        }
    }

    /// The text of [`Access::Denied`] for a file of `mode` that this user may not write.
    pub(crate) fn other_user(mode: u32) -> String {
        format!("only its owner may write it (mode {:04o})", mode & 0o777)
    }
}

/// The access to the live file at `path`.
pub(crate) fn look(path: &Path) -> Access {
    let Ok(stat) = statat(CWD, path, AtFlags::empty()) else { return Access::Absent };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Access::Absent;
    }
    if stat.st_mode & 0o222 == 0 {
        return Access::ReadOnly;
    }
    // The kernel looks at the mount too where it lets us (`fs/open.c`, `do_faccessat`): only a refusal for another
    // reason leaves open whether anybody could.
    let (read_only_mount, refused) = match accessat(CWD, path, Wish::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => (false, Ok(())),
        Err(Errno::ROFS) => (true, Ok(())),
        Err(Errno::ACCESS) => (is_read_only(path), Err(Access::other_user(stat.st_mode))),
        Err(errno) => (is_read_only(path), Err(format!("the system refuses it ({errno})"))),
    };
    Access::of(stat.st_mode, read_only_mount, refused)
}

/// The access to the live folder at `path`, or to the nearest one above it that is there: whether files can be made in
/// it.
pub(crate) fn look_into(path: &Path) -> Access {
    let is_folder = |path: &&Path| {
        statat(CWD, *path, AtFlags::empty())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    };
    let Some(folder) = path.ancestors().find(is_folder) else { return Access::Absent };
    if is_read_only(folder) {
        return Access::ReadOnlyMount;
    }
    match accessat(CWD, folder, Wish::WRITE_OK | Wish::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Access::Writable,
        Err(Errno::ACCESS) => Access::Denied("only its owner may make files in it".to_owned()),
        Err(errno) => Access::Denied(format!("the system refuses it ({errno})")),
    }
}

/// Whether the mount that holds `path` is read-only.
///
/// Asked for the path and not for its device: a container binds a part of one /proc read-only over another.
pub(crate) fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_files_of_each_kind() {
        assert_eq!(look(Path::new("/proc/no/such/file")), Access::Absent);
        assert_eq!(look(Path::new("/proc/sys")), Access::Absent, "a folder is no place");
        assert_eq!(look(Path::new("/proc/version")), Access::ReadOnly, "0444 also for root");
        let swappiness = look(Path::new("/proc/sys/vm/swappiness"));
        if rustix::process::geteuid().is_root() {
            assert!(matches!(swappiness, Access::Writable | Access::ReadOnlyMount | Access::Denied(_)));
        } else {
            assert!(matches!(swappiness, Access::Denied(_) | Access::ReadOnlyMount), "{swappiness:?}");
        }
        assert_eq!(look_into(&std::env::temp_dir().join("no/such/folder")), Access::Writable);
        assert_ne!(
            look_into(Path::new("/proc/sys/no/such/folder")),
            Access::Writable,
            "nobody makes files there"
        );
        let compact = look(Path::new("/proc/sys/vm/compact_memory"));
        assert_ne!(compact, Access::Writable, "nobody reads a trigger");
    }

    #[test]
    fn the_verdict_goes_from_nobody_to_us() {
        let denied = || Err("no".to_owned());
        assert_eq!(Access::of(0o444, true, Ok(())), Access::ReadOnly);
        assert_eq!(Access::of(0o644, true, denied()), Access::ReadOnlyMount);
        assert_eq!(Access::of(0o644, false, denied()), Access::Denied("no".to_owned()));
        assert_eq!(Access::of(0o200, false, Ok(())), Access::WriteOnly);
        assert_eq!(Access::of(0o644, false, Ok(())), Access::Writable);
    }
}
