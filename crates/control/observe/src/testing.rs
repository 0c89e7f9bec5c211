//! Trees of files that the tests of this crate read as hosts.
#![expect(clippy::disallowed_methods, reason = "tests write the trees that they read")]

use std::fs;
use std::path::Path;

use planish_host::Host;
use tempfile::TempDir;

/// Writes a file of a tree, with the folders above it.
pub(crate) fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}

/// A host that has these files, and what makes a tree one.
pub(crate) fn host<T: AsRef<[u8]>>(files: &[(&str, T)]) -> (TempDir, Host) {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "/proc/version", "Linux\n");
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    let host = Host::open(folder.path()).expect("a tree");
    (folder, host)
}
