//! Files that a text of the host names, whoever wrote it.
//!
//! Nobody asked us to look at one. So none is looked at where that may wait, and nothing is opened that is no file: a
//! device may begin to work by it, as a watchdog does.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use planish_sorted::CollectMap as _;
use planish_sys::file;

use crate::mounts::{self, Mount, Waits};
use crate::{Host, resolve};

/// A host as far as looking at its files asks no other machine, and has nothing mounted.
pub struct Near<'h> {
    host: &'h Host,
    /// Where something is mounted below the host's root, in the order in which it was, and whether it waits. What
    /// the root itself lies on is used all the time.
    mounts: OnceCell<Vec<(PathBuf, Waits)>>,
    /// Folders on the way to files that were looked at: no links, and nothing waits in them. Hundreds of files lie in a
    /// few.
    passed: RefCell<HashSet<PathBuf>>,
}

impl<'h> Near<'h> {
    /// That of a host.
    #[must_use]
    pub fn of(host: &'h Host) -> Self {
        Self { host, mounts: OnceCell::new(), passed: RefCell::default() }
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &'h Host {
        self.host
    }

    fn root(&self) -> &Path {
        self.host.folder().unwrap_or(Path::new("/"))
    }

    fn below_root(&self, all: &[Mount]) -> Vec<(PathBuf, Waits)> {
        let root = self.root();
        let is_below = |at: &&Mount| Path::new(at.path()) != root && Path::new(at.path()).starts_with(root);
        all.iter().filter(is_below).map(|mount| (mount.path().into(), mount.waits())).collect()
    }

    /// Whether something is mounted there.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where looking at it may wait: on what does, or behind it. Behind an automount
    /// is what was mounted there already.
    fn is_mount(&self, path: &Path) -> io::Result<bool> {
        // Without a table nothing is known of any.
        let mounts = || self.below_root(&mounts::all_of_this_process().unwrap_or_default());
        let all = self.mounts.get_or_init(mounts);
        // Of several at one place the last one is seen.
        let held: BTreeMap<&Path, Waits> = all
            .iter()
            .filter(|(at, _)| path.starts_with(at))
            .map(|(at, waits)| (&**at, *waits))
            .collect_map();
        let Some((nearest, waits)) = held.last_key_value() else { return Ok(false) };
        let is_mount = *nearest == path;
        if held.values().any(|waits| *waits == Waits::Always) || *waits == Waits::Once && !is_mount {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(is_mount)
    }

    /// Where a file lies, all links followed inside the host. Nothing need be there.
    ///
    /// # Errors
    /// A circle of links, and [`io::ErrorKind::Unsupported`] where looking may wait.
    pub fn path(&self, path: &str) -> io::Result<PathBuf> {
        let may_be_link = |path: &Path| Ok(!self.passed.borrow().contains(path) && !self.is_mount(path)?);
        let resolved = resolve::resolve_where(self.root(), path, &may_be_link)?;
        let path = self.root().join(resolved.path);
        let mut passed = self.passed.borrow_mut();
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != self.root()) {
            if !passed.insert(folder.to_owned()) {
                break;
            }
        }
        // An automount itself is one until something is mounted there; nothing is below what is only a name.
        self.is_mount(&path.join("_"))?;
        Ok(path)
    }

    /// The content of a regular file of at most `limit` bytes. No recording is to keep it.
    ///
    /// # Errors
    /// As [`Self::path`], the kernel's, and [`file::Unread`].
    pub fn read_up_to(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        file::look_and_read_up_to(&self.path(path)?, limit)
    }

    /// The same of a text; of a program no more is read than tells it.
    ///
    /// # Errors
    /// As [`Self::read_up_to`], and [`io::ErrorKind::InvalidData`] for what is no text.
    pub fn read_text_up_to(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        file::look_and_read_text_up_to(&self.path(path)?, limit)
    }

    /// Names in a folder, as [`Host::list`] has them.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        if self.path(path).is_ok() { self.host.list(path) } else { Vec::new() }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of this test")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_looked_at_where_that_may_wait() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["proc", "sys", "srv", "home/a", "home/b", "opt"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["srv/x", "home/a/x", "home/b/x", "opt/x"] {
            std::fs::write(at(file), "text").unwrap();
        }
        symlink("../srv/x", at("opt/to-srv")).unwrap();
        symlink("/home/a", at("opt/to-a")).unwrap();
        let host = Host::open(root.path()).unwrap();
        let line = |id: u32, folder: &str, kind: &str| {
            let at = at(folder);
            format!("{id} 1 0:{id} / {} rw - {kind} x rw\n", at.to_str().unwrap().trim_end_matches('/'))
        };
        let table = [
            line(1, "", "nfs4"),
            line(2, "srv", "nfs4"),
            line(6, "srv/local", "ext4"),
            line(3, "home", "autofs"),
            line(4, "home/b", "autofs"),
            line(5, "home/b", "ext4"),
        ];
        let near = Near::of(&host);
        near.mounts.set(near.below_root(&Mount::all(&table.concat()))).unwrap();
        let read = |path: &str| near.read_up_to(path, 9).map_err(|error| error.kind());
        for path in
            ["/srv/x", "/home/a/x", "/opt/to-srv", "/opt/to-a/x", "/home/no/../../srv/x", "/srv/local/x"]
        {
            assert_eq!(read(path), Err(io::ErrorKind::Unsupported), "{path}");
        }
        assert_eq!((near.list("/home/a"), near.list("/home")), (Vec::new(), Vec::new()));
        for path in ["/opt/x", "/home/b/x"] {
            assert_eq!(read(path), Ok(b"text".to_vec()), "{path}");
        }
        assert_eq!(near.list("/home/b"), ["x"]);
        // What lies beside a file that was looked at waits no less for that.
        for (path, kind) in
            [("/home/a/x", Err(io::ErrorKind::Unsupported)), ("/opt/to-a/x", Err(io::ErrorKind::Unsupported))]
        {
            assert_eq!(read(path), kind, "{path}");
        }
    }

    #[test]
    fn links_are_followed_as_often_as_they_are_passed_and_a_program_is_no_text() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["proc", "sys", "usr/bin"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        symlink("usr/bin", at("bin")).unwrap();
        symlink("../usr/bin/a", at("usr/b")).unwrap();
        for (name, bytes) in [("a", &b"text"[..]), ("c", &[b'x'; 9000]), ("d", b"\x7fELF\0")] {
            std::fs::write(at("usr/bin").join(name), bytes).unwrap();
        }
        std::fs::write(at("usr/bin/e"), [&[b'x'; 8000][..], &[0]].concat()).unwrap();
        let host = Host::open(root.path()).unwrap();
        let near = Near::of(&host);
        let read = |path: &str| near.read_text_up_to(path, 9000).map(|bytes| bytes.len());
        for _ in 0..2 {
            for (path, length) in [("/bin/a", 4), ("/usr/b", 4), ("/usr/bin/a", 4), ("/bin/c", 9000)] {
                assert_eq!(read(path).ok(), Some(length), "{path}");
            }
            for path in ["/bin/d", "/usr/bin/e"] {
                assert_eq!(
                    read(path).map_err(|error| error.kind()),
                    Err(io::ErrorKind::InvalidData),
                    "{path}"
                );
            }
            assert!(near.read_text_up_to("/bin/c", 8999).is_err() && read("/bin/none").is_err());
        }
    }

    #[test]
    fn kinds_that_wait_are_those_of_the_network_of_programs_and_of_automounts() {
        let waits =
            |kind: &str| Mount::all(&format!("2 1 0:2 / /a rw - {kind} x rw"))[0].waits() != Waits::Never;
        assert!(["autofs", "nfs", "nfs4", "cifs", "fuse.sshfs", "fuseblk", "ceph"].into_iter().all(waits));
        assert!(!["ext4", "xfs", "tmpfs", "overlay", "sysfs", "proc", "btrfs"].into_iter().any(waits));
    }
}
