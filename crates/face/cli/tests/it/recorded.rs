//! The machines of `hosts/`, and copies of them that a test may change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    root.canonicalize().expect("the crate lies three folders below the root")
}

/// Every recorded machine, by name.
pub fn hosts() -> Vec<(String, PathBuf)> {
    let folder = repository().join("hosts");
    let mut hosts: Vec<(String, PathBuf)> = fs::read_dir(folder)
        .expect("hosts/ can be listed")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("meta.toml").exists())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path))
        .collect();
    hosts.sort();
    assert!(!hosts.is_empty(), "no recorded hosts");
    hosts
}

/// Copies a tree with its symbolic links. Modes of recorded files are in `meta.toml`.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (kind, target) = (entry.file_type().expect("a type"), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&entry.path(), &target);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).expect("a link"), target).expect("a link");
        } else {
            let text = fs::read(entry.path()).expect("a file");
            fs::write(target, text).expect("a file");
        }
    }
}

/// Every file below a folder of a host, by its place.
pub fn texts(host: &Path, folder: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![host.join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.expect("readable").path();
            if entry.is_dir() && !entry.is_symlink() {
                open.push(entry);
            } else if let Ok(text) = fs::read_to_string(&entry) {
                let place = entry.strip_prefix(host).expect("below it");
                found.insert(format!("/{}", place.display()), text);
            }
        }
    }
    found
}
