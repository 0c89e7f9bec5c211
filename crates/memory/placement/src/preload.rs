//! The preload as a file that loaders can open.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use planish_sys::file;

use crate::error::PlacementError;

/// The shared object; empty where the build has none for this architecture.
pub const PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/planish-preload.so"));

/// How the name of its file begins, by which a process that has loaded it is known.
pub(crate) const NAME: &str = "planish-preload-";

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

/// FNV-1a: tells versions apart, and protects from nothing.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_written_once_and_mended_where_it_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        let path = put(&below).unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
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
