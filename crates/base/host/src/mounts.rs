//! Options of mounted file systems, as files: when a read writes its time, and what a tmpfs may hold.
//!
//! ```text
//! /planish/mounts/-/atime            relatime, noatime or strictatime                    0644
//! /planish/mounts/dev-shm/size       what a tmpfs may hold, in bytes                     0644, 0444 without a limit
//! /planish/mounts/dev-shm/size_min   what its files take: it cannot be made smaller      0444
//! /planish/mounts/dev-shm/size_max   the memory of this machine: nothing larger helps    0444
//! /planish/mounts/dev-shm/huge       which of its files get huge pages                   0644
//! ```
//!
//! A mount is called as its unit of systemd is: `/dev/shm` is `dev-shm`, `/` is `-`, and what is neither a letter, a
//! digit nor one of `:_.` is `\xNN` (`systemd-escape --path`).
//!
//! Which mounts are there: those of this process's namespace that can be reached by their path, and no other. Of
//! several on one path the topmost counts; what lies below another mount is nobody's. Left out are file systems that
//! are read-only, those of a server (their times are the server's), and those below folders that programs keep for
//! themselves: the mounts of the system below /run, /proc and /sys, and of containers.
//!
//! The size of a tmpfs and its huge pages are the file system's, however often it is mounted: the first mount of the
//! whole of it has them. The access time is each mount's own, also where two show one file system.
//!
//! Whoever has mounts of its own sees its copies: the unit that compares by a timer has all of them read-only, and a
//! part of /tmp in the place of the whole. What can be read there is read, and nothing of it can be set. Nor is the
//! access time of any other copy: it would be that of the copy alone, and gone with it ([`are_apart`]).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use planish_sorted::CollectMap as _;
use planish_sys::file;
use planish_sys::mount::{self, AccessTime, MountPoint, Room};
use rustix::io::Errno;

/// Folder of the mounts, one folder each.
pub const FOLDER: &str = "/planish/mounts";

/// There where this process has mounts of its own, and not those of process 1; a recording says so by such a file.
pub const APART: &str = "/planish/mounts_apart";

/// The table of the mounts of this process.
const TABLE: &str = "/proc/self/mountinfo";
/// Where kernels that have transparent huge pages tell of those in shared memory.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
/// A host of containers has thousands of mounts, each of some hundred bytes.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// File systems on disks that write the time of a read into their inodes.
const ON_DISK: [&str; 9] = ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "xfs"];

/// Whether a file system has whoever looks at its files wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It is here.
    Never,
    /// What is looked for is mounted first.
    Once,
    /// It asks another machine or a program.
    Always,
}

/// File systems that ask another machine; each `fuse` asks a program.
const WAITING: [&str; 10] =
    ["9p", "afs", "ceph", "cifs", "coda", "lustre", "nfs", "nfs4", "orangefs", "smb3"];

/// Folders below which programs make mounts for themselves: they come and go with a session, a container, a unit.
const OF_PROGRAMS: [&str; 10] = [
    "/dev",
    "/proc",
    "/run",
    "/snap",
    "/sys",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/run",
];
/// The one mount below them that is for the services of this machine.
const SHARED_MEMORY: &str = "/dev/shm";

/// A line of `/proc/self/mountinfo` (Documentation/filesystems/proc.rst, 3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its number, and that of the mount that it lies on.
    id: u32,
    parent: u32,
    /// The device of its file system, `0:25`: one for all mounts of it.
    device: String,
    /// Which folder of the file system is shown: `/` for the whole of it.
    root: String,
    /// Where it is mounted.
    at: String,
    /// Options of this mount, and of its file system.
    options: String,
    of_system: String,
    /// The kind of file system.
    kind: String,
}

impl Mount {
    /// The mounts of a table, in its order. A line that is none is passed over, as is a path that is no UTF-8 text:
    /// nobody could name it.
    #[must_use]
    pub fn all(table: &str) -> Vec<Self> {
        table.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        // Optional fields stand before the dash, as many as there are.
        let (own, system) = line.split_once(" - ")?;
        let mut words = own.split(' ');
        let (id, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (device, root, at) = (words.next()?, words.next()?, plain(words.next()?)?);
        let options = words.next()?;
        let mut words = system.split(' ');
        let kind = words.next()?;
        let of_system = words.nth(1)?;
        at.starts_with('/').then(|| Self {
            id,
            parent,
            device: device.to_owned(),
            root: root.to_owned(),
            at,
            options: options.to_owned(),
            of_system: of_system.to_owned(),
            kind: kind.to_owned(),
        })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.at
    }

    /// Whether looking at a file of it may wait.
    pub(crate) fn waits(&self) -> Waits {
        match self.kind.as_str() {
            "autofs" => Waits::Once,
            kind if WAITING.contains(&kind) || kind.starts_with("fuse") => Waits::Always,
            _ => Waits::Never,
        }
    }

    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|own| own == option)
    }

    /// Whether it is another's to set, and ours to look at: a mount that was made read-only, or a part of a tmpfs.
    fn is_fixed(&self) -> bool {
        self.has("ro") || self.is_tmpfs() && self.root != "/"
    }

    fn is_tmpfs(&self) -> bool {
        self.kind == "tmpfs"
    }

    /// When a read writes its time: a mount that tells no word writes it always.
    #[must_use]
    pub fn access_time(&self) -> AccessTime {
        let told = [AccessTime::Never, AccessTime::Relative].into_iter().find(|time| self.has(time.word()));
        told.unwrap_or(AccessTime::Strict)
    }

    /// Which files of a tmpfs get huge pages: a mount that tells no word, none.
    #[must_use]
    pub fn huge(&self) -> &str {
        let mut options = self.of_system.split(',');
        options.find_map(|option| option.strip_prefix("huge=")).unwrap_or("never")
    }

    /// Whether what a tmpfs holds may go to swap.
    #[must_use]
    pub fn has_swap(&self) -> bool {
        !self.of_system.split(',').any(|own| own == "noswap")
    }

    /// Whether both are one mount, whatever its options are by now.
    fn is_same(&self, other: &Self) -> bool {
        let of =
            |mount: &Self| (mount.id, [&mount.device, &mount.root, &mount.at, &mount.kind].map(Clone::clone));
        of(self) == of(other)
    }

    /// Whether it may be one that somebody tunes; whether it can be reached is another question.
    fn is_meant(&self) -> bool {
        let below = |folder: &&str| {
            self.at.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_kept = self.at != SHARED_MEMORY && OF_PROGRAMS.iter().any(below);
        let is_read_only = self.of_system.split(',').any(|own| own == "ro");
        (self.is_tmpfs() || ON_DISK.contains(&self.kind.as_str())) && !is_read_only && !is_kept
    }
}

/// A path of a table of mounts: a blank, a tab, a line break, a backslash and `#` are `\ooo` there (`mangle` of
/// fs/proc_namespace.c). `None` for one that was no text.
fn plain(told: &str) -> Option<String> {
    let mut path = String::with_capacity(told.len());
    let mut rest = told;
    while let Some((before, after)) = rest.split_once('\\') {
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let code = code.filter(u8::is_ascii)?;
        path += before;
        path.push(char::from(code));
        rest = after.get(3..)?;
    }
    path += rest;
    (!path.contains('\u{fffd}')).then_some(path)
}

/// How the folder of a mount is called: as its unit of systemd, without the kind at the end.
#[must_use]
pub fn name_of(path: &str) -> String {
    let inner = path.trim_matches('/');
    if inner.is_empty() {
        return "-".to_owned();
    }
    let mut name = String::with_capacity(inner.len());
    for (index, byte) in inner.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if index == 0 => name += "\\x2e",
            b':' | b'_' | b'.' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name += &format!("\\x{byte:02x}"),
        }
    }
    name
}

/// What can be read and set of a mount, by the names of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// When a read writes its time.
    AccessTime,
    /// What a tmpfs may hold.
    Size,
    /// What its files take.
    SizeMin,
    /// The memory of the machine.
    SizeMax,
    /// Which of its files get huge pages.
    Huge,
}

impl Setting {
    const ALL: [(Self, &'static str); 5] = [
        (Self::AccessTime, "atime"),
        (Self::Size, "size"),
        (Self::SizeMin, "size_min"),
        (Self::SizeMax, "size_max"),
        (Self::Huge, "huge"),
    ];

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own)| *own == name).map(|(setting, _)| *setting)
    }
}

/// The mount and the setting of it that a place is: `/planish/mounts/dev-shm/size`.
#[must_use]
pub fn setting_at(place: &str) -> Option<(&str, Setting)> {
    let (name, file) = place.strip_prefix(FOLDER)?.strip_prefix('/')?.split_once('/')?;
    Some((name, Setting::by_name(file)?)).filter(|_| !name.is_empty())
}

/// The mounts of a machine at one moment, those that are meant and can be reached, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    mounts: BTreeMap<String, Mount>,
    /// Numbers of those that have the settings of their file system.
    of_system: BTreeSet<u32>,
}

/// The mounts of this process, in the order of their table.
pub(crate) fn all_of_this_process() -> io::Result<Vec<Mount>> {
    let bytes = file::read_up_to(Path::new(TABLE), TABLE_BYTES_MAX)?;
    Ok(Mount::all(&String::from_utf8_lossy(&bytes)))
}

impl Table {
    /// That of this process.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn live() -> io::Result<Self> {
        Ok(Self::of(&all_of_this_process()?))
    }

    /// Those of a table that are meant.
    #[must_use]
    pub fn of(all: &[Mount]) -> Self {
        let tree = Tree::of(all);
        let mut table = Self::default();
        let mut systems = BTreeMap::new();
        for mount in all.iter().filter(|mount| mount.is_meant() && tree.can_reach(mount)) {
            if mount.is_tmpfs() {
                let first = systems.entry(&mount.device).or_insert(mount);
                if first.root != "/" && mount.root == "/" {
                    *first = mount;
                }
            }
            table.mounts.insert(name_of(&mount.at), mount.clone());
        }
        table.of_system = systems.into_values().map(|mount| mount.id).collect();
        table
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.mounts.keys().map(String::as_str)
    }

    /// The mount of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Mount> {
        self.mounts.get(name)
    }

    /// Whether a mount of that name has a setting. What the kernel has no call for is not there.
    fn has(&self, name: &str, setting: Setting) -> bool {
        let Some(mount) = self.get(name) else { return false };
        match setting {
            // A tmpfs has no disk that a time would be written to.
            Setting::AccessTime => !mount.is_tmpfs() && mount::has_access_times(),
            // A kernel that was built without huge pages takes no word of theirs.
            Setting::Huge if !Path::new(HUGE_PAGES).exists() => false,
            _ => self.of_system.contains(&mount.id) && mount::has_reconfigure(),
        }
    }

    /// Names of the files of a mount.
    pub(crate) fn files(&self, name: &str) -> Vec<String> {
        let own = Setting::ALL.iter().filter(|(setting, _)| self.has(name, *setting));
        own.map(|(_, file)| (*file).to_owned()).collect()
    }

    /// The permission bits of a file.
    pub(crate) fn mode(&self, name: &str, setting: Setting) -> Option<u32> {
        let is_open = || self.room(name).is_ok_and(|room| room.size == 0);
        let is_fixed = self.get(name).is_some_and(Mount::is_fixed);
        self.has(name, setting).then(|| match setting {
            _ if is_fixed => 0o444,
            // A limit for what has none is refused (`shmem_reconfigure`), so that nobody could put one back.
            Setting::Size if is_open() => 0o444,
            Setting::SizeMin | Setting::SizeMax => 0o444,
            _ => 0o644,
        })
    }

    fn room(&self, name: &str) -> io::Result<Room> {
        let mount = self.get(name).ok_or(Errno::NOENT)?;
        MountPoint::open(Path::new(&mount.at), mount.id)?.room()
    }

    /// The text of a setting.
    ///
    /// # Errors
    /// `NotFound` where there is no such mount, or where it has no such setting; what the kernel says.
    pub fn read(&self, name: &str, setting: Setting) -> io::Result<String> {
        let mount = self.get(name).filter(|_| self.has(name, setting)).ok_or(Errno::NOENT)?;
        Ok(match setting {
            Setting::AccessTime => mount.access_time().word().to_owned(),
            Setting::Huge => mount.huge().to_owned(),
            Setting::Size => self.room(name)?.size.to_string(),
            // The kernel takes 0 for no limit at all.
            Setting::SizeMin => self.room(name)?.used.max(rustix::param::page_size() as u64).to_string(),
            Setting::SizeMax => {
                let told = rustix::system::sysinfo();
                (told.totalram as u64).saturating_mul(told.mem_unit.into()).to_string()
            }
        })
    }

    /// The mount of a name, held open so that it is the one that this table is of.
    ///
    /// # Errors
    /// `NotFound` where there is no such mount, where another one is by now, or where it has no such setting; what the
    /// kernel says.
    pub fn open(&self, name: &str, setting: Setting) -> io::Result<MountPoint> {
        let mount = self.get(name).filter(|_| self.has(name, setting)).ok_or(Errno::NOENT)?;
        let held = MountPoint::open(Path::new(&mount.at), mount.id)?;
        // The kernel gives the smallest free number: one that was unmounted since, and the one that came in its place,
        // may have the same. What is held open keeps its number, and the table of now tells whose it is.
        match Self::live()?.get(name) {
            Some(now) if now.is_same(mount) => Ok(held),
            _ => {
                Err(io::Error::new(io::ErrorKind::NotFound, format!("another mount is at {} now", mount.at)))
            }
        }
    }
}

/// Whether this process sees other mounts than process 1 does: those of a unit with `PrivateTmp=` and its like, of a
/// login by pam_namespace, of `unshare --mount`. A process 1 that tells nothing at all counts as one of ours.
#[must_use]
pub fn are_apart() -> bool {
    let namespace = |pid: &str| rustix::fs::readlink(format!("/proc/{pid}/ns/mnt"), Vec::new()).ok();
    if let (Some(own), Some(first)) = (namespace("self"), namespace("1")) {
        return own != first;
    }
    // The link of process 1 is for those who may trace it, its table for everybody.
    let table = |pid: &str| {
        let bytes = file::read_up_to(Path::new(&format!("/proc/{pid}/mountinfo")), TABLE_BYTES_MAX);
        bytes.map(|bytes| Mount::all(&String::from_utf8_lossy(&bytes))).unwrap_or_default()
    };
    share_none(&table("self"), &table("1"))
}

/// Whether no mount is in both tables. A number is given to one mount of the machine, whoever sees it.
fn share_none(own: &[Mount], first: &[Mount]) -> bool {
    let first: BTreeSet<u32> = first.iter().map(|mount| mount.id).collect();
    !first.is_empty() && !own.is_empty() && own.iter().all(|mount| !first.contains(&mount.id))
}

/// Mounts by what they lie on: which of them a path leads to.
struct Tree<'a> {
    by_id: BTreeMap<u32, &'a Mount>,
    /// Those that lie on each.
    on: BTreeMap<u32, Vec<&'a Mount>>,
}

impl<'a> Tree<'a> {
    fn of(all: &'a [Mount]) -> Self {
        let mut on: BTreeMap<u32, Vec<&Mount>> = BTreeMap::new();
        for mount in all.iter().filter(|mount| mount.parent != mount.id) {
            on.entry(mount.parent).or_default().push(mount);
        }
        Self { by_id: all.iter().map(|mount| (mount.id, mount)).collect_map(), on }
    }

    /// Whether the path of a mount leads to it: nothing is mounted on top of it, nor on the way to it.
    fn can_reach(&self, mount: &Mount) -> bool {
        if self.lies_on(mount).any(|other| other.at == mount.at) {
            return false;
        }
        let mut child = mount;
        // A table that goes in a circle is none of a kernel.
        for _ in 0..self.by_id.len() {
            let Some(parent) = self.by_id.get(&child.parent).filter(|parent| parent.id != child.id) else {
                return true;
            };
            // Of mounts on one mount, that on a folder on the way hides what lies further down.
            let hides = |other: &&Mount| other.id != child.id && is_above(&other.at, &child.at);
            if self.lies_on(parent).any(|other| hides(&other)) {
                return false;
            }
            child = parent;
        }
        false
    }

    fn lies_on(&self, mount: &Mount) -> impl Iterator<Item = &'a Mount> {
        self.on.get(&mount.id).into_iter().flatten().copied()
    }
}

/// Whether one path is a folder of another, or both are the same.
fn is_above(folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
