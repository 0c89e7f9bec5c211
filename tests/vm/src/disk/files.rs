//! Every file of the system's settings and of its boot, kept beside and compared byte for byte.

use super::{MEMORY, tool};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const TREES: [&str; 2] = ["/etc", "/boot"];

/// Keeps a copy of all files under a name, and brings it to the disk.
pub fn keep(name: &str) -> Result<usize> {
    let folder = format!("{MEMORY}/{name}");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("make {folder}"))?;
    let args: Vec<&str> =
        ["--archive", "--parents"].into_iter().chain(TREES).chain([folder.as_str()]).collect();
    tool("cp", &args)?;
    tool("sync", &[])?;
    Ok(all(Path::new(&folder))?.len())
}

/// Whether there is a copy under a name.
pub fn is_kept(name: &str) -> bool {
    Path::new(MEMORY).join(name).is_dir()
}

/// Fails with what differs from the copy of that name: content, mode, owner, target of a link, presence.
pub fn ensure_as_kept(name: &str) -> Result<usize> {
    let kept = all(Path::new(&format!("{MEMORY}/{name}")))?;
    let now = all(Path::new("/"))?;
    let gone = kept.keys().filter(|path| !now.contains_key(*path)).map(|path| format!("{path} is gone"));
    let different = now.iter().filter_map(|(path, file)| match kept.get(path) {
        None => Some(format!("{path} is new")),
        Some(before) if before == file => None,
        Some(before) => Some(format!("{path} {}", before.difference(file))),
    });
    let told: Vec<String> = gone.chain(different).collect();
    ensure!(told.is_empty(), "{} files differ: {}", told.len(), told.join("; "));
    Ok(kept.len())
}

#[derive(PartialEq, Eq)]
struct Kept {
    mode: u32,
    owner: (u32, u32),
    content: Vec<u8>,
}

impl Kept {
    fn difference(&self, now: &Self) -> String {
        if self.content != now.content {
            let at = self.content.iter().zip(&now.content).take_while(|(a, b)| a == b).count();
            return format!("has {} bytes for {}, from byte {at} on", now.content.len(), self.content.len());
        }
        format!("has mode {:o} and owner {:?} for {:o} and {:?}", now.mode, now.owner, self.mode, self.owner)
    }
}

/// All files below the trees in a root, by their paths from there.
fn all(root: &Path) -> Result<BTreeMap<String, Kept>> {
    let mut found = BTreeMap::new();
    let mut pending: Vec<PathBuf> = TREES.iter().map(|tree| root.join(&tree[1..])).collect();
    while let Some(path) = pending.pop() {
        let told = || format!("look at {}", path.display());
        let metadata = fs::symlink_metadata(&path).with_context(told)?;
        let content = if metadata.is_dir() {
            for entry in fs::read_dir(&path).with_context(told)? {
                pending.push(entry.with_context(told)?.path());
            }
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).with_context(told)?.into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).with_context(told)?
        };
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let owner = (metadata.uid(), metadata.gid());
        found.insert(name, Kept { mode: metadata.mode(), owner, content });
    }
    Ok(found)
}
