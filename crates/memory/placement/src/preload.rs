//! The preload as a file that loaders can open.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use planish_residency::Area;
use planish_sys::file;

use crate::error::PlacementError;

/// The shared object; empty where the build has none for this architecture.
pub const PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/planish-preload.so"));

/// How the name of its file begins.
const NAME: &str = "planish-preload-";

/// Whether a mapping is of the preload, by which a process that has loaded it is known.
pub(crate) fn is_preload(area: &Area) -> bool {
    area.name.contains(NAME)
}

/// Puts the preload into `folder`, under a name of its version, and returns its path.
///
/// It stays there: the programs that a service starts later load it again. Whoever the service runs as must be able to
/// read it, whatever our umask.
///
/// # Errors
/// The folder cannot be written, or its path cannot stand in LD_PRELOAD.
pub(crate) fn put(folder: &Path) -> Result<PathBuf, PlacementError> {
    if PRELOAD.is_empty() {
        return Err(PlacementError::NoPreload);
    }
    let path = folder.join(format!("{NAME}{}-{:016x}.so", env!("CARGO_PKG_VERSION"), fingerprint(PRELOAD)));
    if path.to_string_lossy().contains([' ', ':', '\t', '\n']) {
        return Err(PlacementError::Unspeakable { path });
    }
    // Compared, not trusted: what stands there is executed.
    if file::read(&path).is_ok_and(|bytes| bytes == PRELOAD) {
        return Ok(path);
    }
    write(folder, &path).map_err(|source| PlacementError::Unwritten { path: path.clone(), source })?;
    Ok(path)
}

/// Who besides us and root may change `what` is executed here, as a sentence: of a folder that others may write to, or
/// of one above it, they may replace what lies there between our look and the loader's. Groups are left out: homes are
/// often their owner's own group's.
#[must_use]
pub fn others(folder: &Path, what: &str) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    let own_group = rustix::process::getegid().as_raw();
    let (who, path) = file::who_may_replace(folder, &[0, own], &[0, own_group])?;
    Some(format!(
        "{who} may replace {what} that this program executes, by {}: name a --state folder that is yours",
        path.display()
    ))
}

/// Writes beside it and renames, so that no loader ever opens half of it.
fn write(folder: &Path, path: &Path) -> io::Result<()> {
    file::make_folders(folder, 0o755, |_| Ok(()))?;
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let written = (|| {
        let mut file = File::options().write(true).create_new(true).open(&part)?;
        file.write_all(PRELOAD)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    })();
    if written.is_err() {
        // What is left of it would be in the way of the next try only.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// FNV-1a of a file that is put beside others: tells versions apart, and protects from nothing.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn who_may_replace_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a");
        std::fs::create_dir(&below).unwrap();
        let set = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        for (mode, is_told) in [(0o755, false), (0o777, true), (0o1777, false), (0o775, false)] {
            set(mode);
            let told = others(&below, "the preload");
            assert_eq!(told.is_some(), is_told, "{mode:o} {told:?}");
            assert!(told.is_none_or(|told| told.starts_with("everybody may replace")));
        }
        if std::os::unix::fs::chown(folder.path(), None, Some(65534)).is_ok() {
            assert!(others(&below, "the preload").is_some_and(|told| told.starts_with("group 65534 may")));
            set(0o755);
            assert_eq!(others(&below, "the preload"), None, "they may not write to it");
        }
        if std::os::unix::fs::chown(&below, Some(65534), None).is_ok() {
            assert!(others(&below, "the preload").is_some_and(|told| told.starts_with("user 65534 may")));
        }
    }

    #[test]
    fn the_file_is_written_once_and_mended_where_it_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        let path = put(&below).unwrap();
        let inode = |path: &Path| path.metadata().unwrap().ino();
        let first = inode(&path);
        assert_eq!(put(&below).unwrap(), path);
        assert_eq!(inode(&path), first, "it is there already");
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        put(&below).unwrap();
        assert_eq!(file::read(&path).unwrap(), PRELOAD);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert!(matches!(put(&folder.path().join("a b")), Err(PlacementError::Unspeakable { .. })));
    }
}
