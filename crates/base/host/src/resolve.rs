//! Symbolic links inside a recorded machine.
//!
//! /sys is full of links, most of them relative. In a recording an absolute link, or too many `..`, must not
//! lead out of the folder to the machine that we run on: every path is resolved by hand, with the folder as
//! its root, as `openat2(RESOLVE_IN_ROOT)` would. By hand, since that call is of Linux 5.6 and knows no path that is
//! still to be made. Whoever can change the tree while it is walked can still lead a path out of it: a tree is as
//! trusted as its writers.

use std::io;
use std::path::{Path, PathBuf};

/// Links that one path may pass, as in the kernel (MAXSYMLINKS).
const LINKS_MAX: usize = 40;

/// A symbolic link that was passed on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Where it is, from the root, without a leading slash.
    pub at: PathBuf,
    /// What it says.
    pub target: PathBuf,
}

/// Where a path leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The path from the root without links and without a leading slash. It need not exist.
    pub path: PathBuf,
    /// The links on the way.
    pub links: Vec<Link>,
}

/// Where `path`, absolute on a host, lies when that host's root is the folder `root`. Nothing need be there.
///
/// The one way from a path of a host to a path of this machine, for reading and for writing, for places and for files
/// of ours. Below `/` a path is what it says, and the kernel follows its links.
///
/// # Errors
/// A circle of links, or a link whose text is not UTF-8.
pub fn in_root(root: &Path, path: &str) -> io::Result<PathBuf> {
    if root == Path::new("/") {
        return Ok(PathBuf::from(path));
    }
    Ok(root.join(resolve(root, path)?.path))
}

/// Follows `path` (absolute on the host) below `root`.
pub(crate) fn resolve(root: &Path, path: &str) -> io::Result<Resolved> {
    resolve_where(root, path, &|_| Ok(true))
}

/// The same, where each path on the way, of this machine, is asked about first: whether it may be a link, as looking at
/// one waits where its file system does.
///
/// # Errors
/// As [`in_root`], and those of `may_be_link`.
pub(crate) fn resolve_where(
    root: &Path,
    path: &str,
    may_be_link: &dyn Fn(&Path) -> io::Result<bool>,
) -> io::Result<Resolved> {
    let mut resolved = Resolved::default();
    // Components still to walk, the next one last.
    let mut ahead: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    while let Some(component) = ahead.pop() {
        match component.as_str() {
            "" | "." => continue,
            ".." => {
                resolved.path.pop();
                continue;
            }
            name => resolved.path.push(name),
        }
        if root == Path::new("/") && is_magic(&resolved.path) {
            continue;
        }
        let at = root.join(&resolved.path);
        if !may_be_link(&at)? {
            continue;
        }
        let Ok(target) = std::fs::read_link(at) else { continue };
        let text = target.to_str().ok_or(io::ErrorKind::InvalidData)?;
        let at = resolved.path.clone();
        resolved.path.pop();
        if text.starts_with('/') {
            resolved.path = PathBuf::new();
        }
        ahead.extend(text.split('/').rev().map(str::to_owned));
        resolved.links.push(Link { at, target });
        if resolved.links.len() > LINKS_MAX {
            return Err(rustix::io::Errno::LOOP.into());
        }
    }
    Ok(resolved)
}

/// `/proc/self` leads to another process each time: a recording makes an ordinary folder of it, and in a tree of
/// somebody else it is a link like any other.
fn is_magic(path: &Path) -> bool {
    path == Path::new("proc/self") || path == Path::new("proc/thread-self")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_inside_the_root() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("sys/devices/pci0/block/sda")).unwrap();
        std::fs::create_dir_all(at("sys/block")).unwrap();
        std::fs::create_dir_all(at("etc")).unwrap();
        symlink("../devices/pci0/block/sda", at("sys/block/sda")).unwrap();
        symlink("/../../../etc", at("out")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let path = |path: &str| resolve(root.path(), path).unwrap().path;
        assert_eq!(path("/sys/block/sda/queue"), Path::new("sys/devices/pci0/block/sda/queue"));
        assert_eq!(path("/out/passwd"), Path::new("etc/passwd"));
        assert_eq!(path("/../../sys/./block"), Path::new("sys/block"));
        assert_eq!(path("/nothing/here"), Path::new("nothing/here"));
        assert!(resolve(root.path(), "/loop").is_err());
        let links = resolve(root.path(), "/sys/block/sda/queue").unwrap().links;
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].at, Path::new("sys/block/sda"));
    }

    #[test]
    fn the_kernels_own_links_lead_nowhere_else_in_a_tree() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(root.path().join("proc")).unwrap();
        for name in ["proc/self", "proc/thread-self"] {
            symlink(outside.path(), root.path().join(name)).unwrap();
            let real = in_root(root.path(), &format!("/{name}/status")).unwrap();
            assert!(real.starts_with(root.path()), "{real:?}");
        }
        assert_eq!(resolve(Path::new("/"), "/proc/self/stat").unwrap().path, Path::new("proc/self/stat"));
        assert_eq!(in_root(Path::new("/"), "/proc/self/stat").unwrap(), Path::new("/proc/self/stat"));
    }
}
