//! The machine itself: its files, and a memory of which were asked for.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the host")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use planish_sorted::{CollectMap as _, SortSmall as _};
use planish_sys::file;

use crate::access::{self, Access};
use crate::answers::{Answers, errno_by_name};
use crate::bytes;
use crate::devices::Devices;
use crate::error::{OpenError, ReadError};
use crate::meta::{Description, Meta, Origin};
use crate::natural::natural_order;
use crate::pattern::Pattern;
use crate::resolve::{self, Resolved};
use crate::walk::{Match, Walk};

/// Name of the file that stands in an otherwise empty folder of a recording.
pub(crate) const KEEP: &str = ".keep";

/// A machine to read. Paths are always those of the machine: absolute, `/` between components.
#[derive(Debug)]
pub struct Host {
    source: Source,
    /// Every path that was asked for, with how often its content was.
    asked: Mutex<HashMap<String, u32>>,
    /// Where folders of a recorded machine lie that were looked into.
    folders: Mutex<HashMap<String, PathBuf>>,
}

#[derive(Debug)]
enum Source {
    /// The machine, and those of its devices that speak through no file.
    Live(Box<Devices>),
    Recorded {
        folder: PathBuf,
        /// `None` in a bare tree, whose files then speak for themselves.
        description: Option<Box<Description>>,
    },
}

impl Host {
    /// The machine that we run on.
    pub fn live() -> Self {
        Self::of(Source::Live(Box::default()))
    }

    /// The machine recorded in `folder`.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let meta = folder.join("meta.toml");
        let meta = resolve::in_root(folder, "/meta.toml").map_err(|error| OpenError::io(&meta, error))?;
        let description = match file::read_text(&meta) {
            Ok(text) => Some(Box::new(Description::parse(&text, &meta)?)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OpenError::io(&meta, error)),
            Err(_) if folder.join("proc").is_dir() || folder.join("sys").is_dir() => None,
            Err(_) => return Err(OpenError::NotAHost { path: folder.to_owned() }),
        };
        Ok(Self::of(Source::Recorded { folder: folder.to_owned(), description }))
    }

    /// The same, for whoever judges a machine: a tree that no description stands beside has both of its halves. `/proc`
    /// has a folder `sys`, and is no machine of no CPUs.
    pub fn open_whole(folder: &Path) -> Result<Self, OpenError> {
        let host = Self::open(folder)?;
        let is_whole = host.meta().is_some() || ["proc", "sys"].iter().all(|half| folder.join(half).is_dir());
        if is_whole { Ok(host) } else { Err(OpenError::NotAHost { path: folder.to_owned() }) }
    }

    fn of(source: Source) -> Self {
        Self { source, asked: Mutex::default(), folders: Mutex::default() }
    }

    /// Whether this is the machine that we run on.
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live(_))
    }

    /// Folder of a recorded machine.
    pub fn folder(&self) -> Option<&Path> {
        match &self.source {
            Source::Live(_) => None,
            Source::Recorded { folder, .. } => Some(folder),
        }
    }

    /// Description of a recorded machine; `None` for the live one and for a bare tree.
    pub fn meta(&self) -> Option<&Meta> {
        self.description().map(|description| &description.meta)
    }

    /// Whether somebody looked for the row `name` of the catalogue, of which nothing is here: always on a machine that
    /// can be asked now, and in a recording where it says so ([`Meta::absent`]).
    pub fn looked_for(&self, name: &str) -> bool {
        self.meta().is_none_or(|meta| match &meta.absent {
            Some(names) => names.iter().any(|known| known == name),
            None => meta.origin == Origin::HandMade,
        })
    }

    /// How a recorded machine answers writes; empty for the live one, which answers itself.
    pub fn answers(&self) -> &Answers {
        static NONE: Answers = Answers::none();
        self.description().map_or(&NONE, |description| &description.answers)
    }

    fn description(&self) -> Option<&Description> {
        match &self.source {
            Source::Recorded { description, .. } => description.as_deref(),
            Source::Live(_) => None,
        }
    }

    /// Whether planish may write to this machine at all: the live one, or a recorded one that says so.
    pub fn is_writable(&self) -> bool {
        self.is_live() || self.meta().is_some_and(|meta| meta.writable)
    }

    /// The devices that speak through no file, of the live machine: a recording has files in their stead.
    pub(crate) fn devices(&self) -> Option<&Devices> {
        match &self.source {
            Source::Live(devices) => Some(devices),
            Source::Recorded { .. } => None,
        }
    }

    /// The text of the file at `path`, as the kernel gives it.
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        let bytes = self.read_bytes(path)?;
        String::from_utf8(bytes)
            .map_err(|odd| ReadError::NotText { path: path.to_owned(), byte: bytes::odd_byte(&odd) })
    }

    /// The text of a file that others write, for looking at it: files of settings and scripts, whose readers take bytes
    /// (systemd, udev, the kernel, shells), and names of processes, of files that they map, of places where something
    /// is mounted. Bytes that are no UTF-8, in a comment as a rule, are told as `\u{fffd}` and hide nothing else. It is
    /// not to be written back: what is edited is read by [`Self::read`], which refuses it.
    pub fn read_lossy(&self, path: &str) -> Result<String, ReadError> {
        let bytes = self.read_bytes(path)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned()))
    }

    /// The contents of the file at `path`.
    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.count(path, 1);
        if let Some(text) = self.devices().and_then(|devices| devices.read(self, path)) {
            return text.map(String::into_bytes).map_err(|source| ReadError::of(path, source));
        }
        if let Some(error) = self.description().and_then(|description| description.meta.unreadable.get(path))
        {
            let errno = errno_by_name(error).expect("checked when the description was read");
            return Err(ReadError::of(path, errno.into()));
        }
        // The maps of a live process with a million mappings are longer than any file of a recording.
        let most = if self.is_live() { 16 * file::BYTES_MAX } else { file::BYTES_MAX };
        let limit = bytes_max(path).min(most);
        let read = || match self.in_folder(path)?.map(|at| file::read_unless_link(&at, limit)) {
            Some(Ok(Some(bytes))) => Ok(bytes),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => file::read_up_to(&self.real_path(path)?, limit),
        };
        read().map_err(|source| ReadError::of(path, source))
    }

    /// Names in the folder at `path`, in natural order (`cpu2` before `cpu10`); none when it cannot be
    /// listed.
    ///
    /// A folder that is not there is no error, because the kernel shows only what the machine has.
    pub fn list(&self, path: &str) -> Vec<String> {
        self.remember(path);
        if let Some(names) = self.devices().and_then(|devices| devices.list(self, path)) {
            return names;
        }
        let entries = self.seen_path(path).and_then(fs::read_dir);
        let Ok(entries) = entries else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| self.is_live() || name != KEEP);
        names.sort_small_by(|a, b| natural_order(a, b));
        names
    }

    /// Whether there is a file or folder at `path`.
    pub fn exists(&self, path: &str) -> bool {
        self.remember(path);
        let device = self.devices().and_then(|devices| devices.exists(self, path));
        device.unwrap_or_else(|| self.seen(path).is_ok_and(|(real, found)| found.look(&real).is_some()))
    }

    /// Where the symbolic link at `path` leads, as it says; `None` when it is none.
    pub fn read_link(&self, path: &str) -> Option<String> {
        self.remember(path);
        let (folder, name) = path.rsplit_once('/')?;
        let real = self.seen_path(folder).ok()?.join(name);
        fs::read_link(real).ok()?.into_os_string().into_string().ok()
    }

    /// Who may write the file at `path`, found without opening it.
    pub fn access(&self, path: &str) -> Access {
        self.remember(path);
        if let Some(access) = self.devices().and_then(|devices| devices.access(self, path)) {
            return access;
        }
        let Ok((real, found)) = self.seen(path) else { return Access::Absent };
        let Source::Recorded { description, .. } = &self.source else { return access::look(&real) };
        let Some(metadata) = found.look(&real) else { return Access::Absent };
        if !metadata.is_file() {
            return Access::Absent;
        }
        let Some(description) = description else {
            // A bare tree tells no user: its observer counts as root.
            return Access::of(mode_of(&metadata), false, Ok(()));
        };
        let mode = description.mode(path);
        let allowed = description.meta.root || mode & 0o002 != 0;
        let refused = if allowed { Ok(()) } else { Err(Access::other_user(mode)) };
        Access::of(mode, description.read_only_folder(path).is_some(), refused)
    }

    /// Whether files can be made in the folder at `path`, or in the nearest one above it that is there.
    ///
    /// Of a recorded folder its description tells what was mounted read-only, and nothing tells more. Of a copy to
    /// rehearse on a part may be mounted so by hand; where the whole copy is, it lies on a medium that is only read.
    pub fn folder_access(&self, path: &str) -> Access {
        let Some(root) = self.folder() else { return access::look_into(Path::new(path)) };
        let is_recorded = self.read_only_folder(&format!("{path}/x")).is_some();
        let is_mounted = || {
            let real = self.real_path(path).ok();
            let real = real.iter().flat_map(|real| real.ancestors()).find(|real| real.is_dir());
            real.is_some_and(access::is_read_only) && !access::is_read_only(root)
        };
        if is_recorded || is_mounted() { Access::ReadOnlyMount } else { Access::Writable }
    }

    /// The topmost folder above `path` that lies on the same read-only mount, by the looks of it; `None` when
    /// `path` can be written as far as mounts go.
    pub(crate) fn read_only_folder(&self, path: &str) -> Option<String> {
        if let Some(description) = self.description() {
            return description.read_only_folder(path).map(str::to_owned);
        }
        let mut top = None;
        let mut folder = path.rsplit_once('/')?.0;
        while self.is_live() && !folder.is_empty() && access::is_read_only(Path::new(folder)) {
            top = Some(folder.to_owned());
            folder = folder.rsplit_once('/')?.0;
        }
        top
    }

    /// Permission bits of the file at `path`, of the recording where it is one.
    pub(crate) fn mode(&self, path: &str) -> Option<u32> {
        if let Some(mode) = self.devices().and_then(|devices| devices.mode(self, path)) {
            return mode;
        }
        let metadata = fs::metadata(self.real_path(path).ok()?).ok()?;
        Some(self.description().map_or_else(|| mode_of(&metadata), |description| description.mode(path)))
    }

    /// The existing paths that `pattern` describes, in natural order. For more than one pattern see [`Walk`].
    pub fn glob(&self, pattern: &Pattern) -> Vec<Match> {
        Walk::new(self).glob(pattern)
    }

    /// Where the file at `path` really lies: for `planish-act`, which writes it.
    ///
    /// In a recording links are followed inside its folder only. The file need not exist.
    pub fn real_path(&self, path: &str) -> io::Result<PathBuf> {
        resolve::in_root(self.folder().unwrap_or(Path::new("/")), path)
    }

    /// The same for reading.
    fn seen_path(&self, path: &str) -> io::Result<PathBuf> {
        Ok(self.seen(path)?.0)
    }

    /// The same, with what was found there on the way.
    fn seen(&self, path: &str) -> io::Result<(PathBuf, Found)> {
        if let Some(at) = self.in_folder(path)? {
            match fs::symlink_metadata(&at) {
                Ok(found) if found.is_symlink() => {}
                Ok(found) => return Ok((at, Found::This(found))),
                Err(_) => return Ok((at, Found::Nothing)),
            }
        }
        Ok((self.real_path(path)?, Found::NotLooked))
    }

    /// Where a name of a recorded machine is, with all links on the way followed but itself; `None` where the path has
    /// to be followed as a whole. Such a machine is read in one go, and hundreds of its files lie in the same folders:
    /// where a folder lies is found once. What is written is looked up afresh.
    fn in_folder(&self, path: &str) -> io::Result<Option<PathBuf>> {
        let (Some(root), Some((folder, name))) = (self.folder(), path.rsplit_once('/')) else {
            return Ok(None);
        };
        if matches!(name, "" | "." | "..") {
            return Ok(None);
        }
        if let Some(real) = self.folders().get(folder) {
            return Ok(Some(real.join(name)));
        }
        // By the folder above it, which is known as a rule: one look instead of one for each component.
        let (real, found) =
            if folder.is_empty() { (root.to_owned(), Found::NotLooked) } else { self.seen(folder)? };
        let at = real.join(name);
        if found.look(&real).is_some_and(|found| found.is_dir()) {
            self.folders().insert(folder.to_owned(), real);
        }
        Ok(Some(at))
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<String, PathBuf>> {
        self.folders.lock().expect("no holder of this lock can panic")
    }

    /// The path that `path` leads to once all links are followed, whether or not something is there.
    ///
    /// In /sys it tells where in the tree of devices something hangs.
    pub fn canonical(&self, path: &str) -> Option<String> {
        self.remember(path);
        let resolved = self.resolve(path).ok()?.path;
        Some(format!("/{}", resolved.to_str()?))
    }

    /// The path without links, and the links on the way.
    pub(crate) fn resolve(&self, path: &str) -> io::Result<Resolved> {
        resolve::resolve(self.folder().unwrap_or(Path::new("/")), path)
    }

    /// Every path that was asked for so far, found or not: what [`crate::record()`] copies.
    pub fn reads(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.asked().keys().cloned().collect();
        paths.sort_unstable();
        paths
    }

    /// The files whose content was asked for, each with how often: what a look at a machine costs follows from it.
    pub fn contents_read(&self) -> BTreeMap<String, u32> {
        self.asked()
            .iter()
            .filter(|(_, times)| **times > 0)
            .map(|(path, times)| (path.clone(), *times))
            .collect_map()
    }

    fn remember(&self, path: &str) {
        self.count(path, 0);
    }

    /// Remembers a path, and so many more reads of its content.
    fn count(&self, path: &str, reads: u32) {
        let mut asked = self.asked();
        match asked.get_mut(path) {
            Some(times) => *times = times.saturating_add(reads),
            None => drop(asked.insert(path.to_owned(), reads)),
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.asked.lock().expect("no holder of this lock can panic")
    }
}

/// What was found at the end of a path.
enum Found {
    /// Something that is no link.
    This(fs::Metadata),
    Nothing,
    /// Nobody looked behind its links.
    NotLooked,
}

impl Found {
    /// What is there, looked for where nobody did; `None` where nothing is.
    fn look(self, real: &Path) -> Option<fs::Metadata> {
        match self {
            Self::This(found) => Some(found),
            Self::Nothing => None,
            Self::NotLooked => fs::metadata(real).ok(),
        }
    }
}

fn mode_of(metadata: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o777
}

/// How large a file of the kernel can be that is read as a whole: a recording may hold anything under its name, and
/// what is made of it takes its time. The command line is of a page at most (`COMMAND_LINE_SIZE`), a setting too, but
/// for a list of ports.
fn bytes_max(path: &str) -> u64 {
    const ONE_PAGE: u64 = 64 << 10;
    const LIST: u64 = 1 << 20;
    const SETTINGS: [&str; 6] = [
        "/proc/sys/",
        "/sys/block/",
        "/sys/class/",
        "/sys/devices/system/",
        "/sys/kernel/mm/",
        "/sys/module/",
    ];
    match path {
        "/proc/cmdline" | "/proc/loadavg" | "/proc/meminfo" | "/proc/version" => ONE_PAGE,
        _ if SETTINGS.iter().any(|folder| path.starts_with(folder)) => LIST,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A small machine in a temporary folder.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const META: &str = r#"
        name = "box"
        root = false
        read_only = ["/proc/sys/net"]
        [modes]
        "0644" = ["/proc/sys/**"]
        "0666" = ["/proc/sys/kernel/free"]
        "0200" = ["/proc/sys/vm/compact_memory"]
        [unreadable]
        "/sys/busy" = "EBUSY"
        "/sys/secret" = "EACCES"
    "#;

    #[test]
    fn a_recorded_machine_answers_by_its_description() {
        let root = tree(&[
            ("meta.toml", &[planish_skip::MACHINE, META].concat()),
            ("/proc/sys/vm/swappiness", "60\n"),
            ("/proc/sys/vm/compact_memory", ""),
            ("/proc/sys/net/x", "1\n"),
            ("/proc/sys/kernel/free", "1\n"),
            ("/proc/version", "Linux\n"),
            ("/sys/busy", ""),
            ("/sys/secret", ""),
        ]);
        let host = Host::open(root.path()).unwrap();
        assert!(!host.is_live() && !host.is_writable());
        assert_eq!(host.read("/proc/sys/vm/swappiness").unwrap(), "60\n");
        assert_eq!(host.access("/proc/version"), Access::ReadOnly);
        assert_eq!(host.access("/proc/sys/net/x"), Access::ReadOnlyMount);
        assert_eq!(host.access("/proc/sys/kernel/free"), Access::Writable);
        assert!(matches!(host.access("/proc/sys/vm/swappiness"), Access::Denied(_)));
        assert_eq!(host.access("/proc/sys/vm"), Access::Absent);
        assert!(host.read("/nothing").unwrap_err().is_absent());
        assert!(matches!(host.read("/sys/busy"), Err(ReadError::Io { .. })));
        assert!(matches!(host.read("/sys/secret"), Err(ReadError::Denied { .. })));
        fs::write(root.path().join("sys/bytes"), [0xff, 0xfe]).unwrap();
        assert!(matches!(host.read("/sys/bytes"), Err(ReadError::NotText { .. })));
    }

    #[test]
    fn what_never_ends_is_told_and_not_read() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::error::Error;
        let root = tree(&[("/proc/version", "Linux\n")]);
        let fifo = |path: &str| {
            mknodat(CWD, root.path().join(path), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        };
        fifo("proc/meminfo");
        let host = Host::open(root.path()).unwrap();
        let error = host.read("/proc/meminfo").unwrap_err();
        let why = error.source().unwrap().to_string();
        assert_eq!(
            (error.to_string().as_str(), why.as_str()),
            ("cannot read /proc/meminfo", "it is a FIFO, not a file")
        );
        let long = fs::File::create(root.path().join("proc/long")).unwrap();
        long.set_len(file::BYTES_MAX + 1).unwrap();
        let error = host.read("/proc/long").unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), "it is longer than 64 MiB");
        fifo("meta.toml");
        assert!(matches!(Host::open(root.path()), Err(OpenError::Io { .. })));
    }

    #[test]
    fn a_bare_tree_speaks_for_itself() {
        let root = tree(&[("/proc/sys/vm/swappiness", "60\n"), ("/proc/version", "Linux\n")]);
        let version = root.path().join("proc/version");
        fs::set_permissions(&version, fs::Permissions::from_mode(0o444)).unwrap();
        let host = Host::open(root.path()).unwrap();
        assert_eq!(host.access("/proc/sys/vm/swappiness"), Access::Writable);
        assert_eq!(host.access("/proc/version"), Access::ReadOnly);
        assert!(host.meta().is_none() && !host.is_writable());
    }

    #[test]
    fn a_recording_says_what_was_looked_for() {
        let open = |origin: &str, list: &str| {
            let text = planish_skip::MACHINE.replace("hand-made", origin);
            let meta = format!("name = \"box\"\n{text}{list}");
            let root = tree(&[("meta.toml", &meta), ("/proc/version", "Linux\n")]);
            Host::open(root.path()).unwrap()
        };
        let list = "absent = [\"vm.gone\"]\n";
        for origin in ["recorded", "hand-made"] {
            let host = open(origin, list);
            assert!(host.looked_for("vm.gone") && !host.looked_for("vm.newer"), "{origin}");
        }
        assert!(!open("recorded", "").looked_for("vm.gone"));
        assert!(open("hand-made", "").looked_for("vm.gone") && Host::live().looked_for("vm.gone"));
    }

    #[test]
    fn what_is_no_machine_is_refused() {
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Host::open(empty.path()), Err(OpenError::NotAHost { .. })));
        assert!(matches!(Host::open(Path::new("/nonexistent")), Err(OpenError::NotAHost { .. })));
        let broken = tree(&[("meta.toml", "name = [")]);
        assert!(matches!(Host::open(broken.path()), Err(OpenError::Meta { .. })));
    }

    #[test]
    fn half_a_machine_is_none() {
        let is_one = |files: &[(&str, &str)]| Host::open_whole(tree(files).path()).is_ok();
        let (proc, sys) = (("/proc/version", "Linux\n"), ("/sys/block/.keep", ""));
        assert!(is_one(&[proc, sys]));
        assert!(!is_one(&[proc]) && !is_one(&[sys]));
        let meta = format!("name = \"box\"\n{}", planish_skip::MACHINE);
        assert!(is_one(&[("meta.toml", &meta), proc]));
        assert!(matches!(Host::open_whole(Path::new("/proc")), Err(OpenError::NotAHost { .. })));
    }

    #[test]
    fn no_more_is_read_of_a_file_than_a_kernel_shows() {
        let long = "x".repeat((64 << 10) + 1);
        let list = "1,".repeat(90_000);
        let root = tree(&[
            ("/proc/cmdline", &long),
            ("/proc/meminfo", &long),
            ("/proc/interrupts", &long),
            ("/proc/sys/net/ipv4/ip_local_reserved_ports", &list),
            ("/proc/sys/vm/swappiness", &long.repeat(17)),
        ]);
        let host = Host::open(root.path()).unwrap();
        for (path, is_read) in [
            ("/proc/cmdline", false),
            ("/proc/meminfo", false),
            ("/proc/interrupts", true),
            ("/proc/sys/net/ipv4/ip_local_reserved_ports", true),
            ("/proc/sys/vm/swappiness", false),
        ] {
            assert_eq!(host.read(path).is_ok(), is_read, "{path}");
        }
    }

    #[test]
    fn patterns_find_places_through_links_in_natural_order() {
        let root = tree(&[
            ("/sys/devices/pci/block/sda/queue/scheduler", "none\n"),
            ("/sys/devices/virtual/block/sda10/queue/scheduler", "none\n"),
            ("/sys/devices/virtual/block/sda9/queue/scheduler", "none\n"),
            ("/sys/devices/virtual/block/ram0/size", "0\n"),
            ("/sys/block/.keep", ""),
        ]);
        for (disk, parent) in [("sda", "pci"), ("sda9", "virtual"), ("sda10", "virtual"), ("ram0", "virtual")]
        {
            let target = format!("../devices/{parent}/block/{disk}");
            symlink(target, root.path().join("sys/block").join(disk)).unwrap();
        }
        let host = Host::open(root.path()).unwrap();
        let pattern = Pattern::parse("/sys/block/{disk}/queue/scheduler").unwrap();
        let disks: Vec<String> =
            host.glob(&pattern).into_iter().map(|at| at.captures["disk"].clone()).collect();
        assert_eq!(disks, ["sda", "sda9", "sda10"]);
        let all = host.glob(&Pattern::parse("/sys/**").unwrap());
        assert_eq!(all.len(), 4, "links are not followed, .keep is not shown: {all:?}");
        assert_eq!(host.read_link("/sys/block/sda").as_deref(), Some("../devices/pci/block/sda"));
        assert_eq!(
            host.canonical("/sys/block/sda/queue").as_deref(),
            Some("/sys/devices/pci/block/sda/queue")
        );
        assert!(host.glob(&Pattern::parse("/sys/none/{x}/y").unwrap()).is_empty());
    }

    #[test]
    fn a_file_in_a_folder_that_was_looked_into_is_found_where_it_lies() {
        let outside = tree(&[("/version", "outside\n")]);
        let root = tree(&[("/proc/a/one", "1\n"), ("/proc/a/two", "2\n"), ("/other/three", "3\n")]);
        let at = |path: &str| root.path().join(path);
        symlink("/other", at("proc/b")).unwrap();
        symlink("../../other/three", at("proc/a/link")).unwrap();
        symlink(outside.path(), at("proc/a/away")).unwrap();
        let host = Host::open(root.path()).unwrap();
        let read = |path: &str| host.read(path).ok();
        // Each of them by the first way and by the one of a folder that is known.
        for _ in 0..2 {
            assert_eq!(read("/proc/a/one").as_deref(), Some("1\n"));
            assert_eq!(read("/proc/a/two").as_deref(), Some("2\n"));
            assert_eq!(read("/proc/a/link").as_deref(), Some("3\n"));
            assert_eq!(read("/proc/b/three").as_deref(), Some("3\n"));
            assert_eq!(read("/proc/a/../b/three").as_deref(), Some("3\n"));
            assert_eq!(read("/proc/a/away/version"), None, "no link leads out of the folder");
            assert!(!host.exists("/proc/a/none") && !host.exists("/none/one"));
        }
        fs::write(at("proc/a/later"), "4\n").unwrap();
        assert_eq!(read("/proc/a/later").as_deref(), Some("4\n"));
    }

    #[test]
    fn one_walk_lists_a_folder_once_and_finds_what_each_glob_finds() {
        let root = tree(&[("/sys/c/c0/x", "1\n"), ("/sys/c/c10/x", "1\n"), ("/sys/c/c9/y", "1\n")]);
        let host = Host::open(root.path()).unwrap();
        let walk = Walk::new(&host);
        let paths = |found: Vec<Match>| found.into_iter().map(|at| at.path).collect::<Vec<_>>();
        let (files, all) =
            (Pattern::parse("/sys/c/c{n}/x").unwrap(), Pattern::parse("/sys/c/{any}").unwrap());
        assert_eq!(paths(walk.glob(&files)), ["/sys/c/c0/x", "/sys/c/c10/x"]);
        assert_eq!(paths(walk.candidates(&files)), ["/sys/c/c0/x", "/sys/c/c9/x", "/sys/c/c10/x"]);
        fs::create_dir(root.path().join("sys/c/c11")).unwrap();
        assert_eq!(walk.glob(&all).len(), 3, "it was listed before");
        assert_eq!(host.glob(&all).len(), 4);
    }

    #[test]
    fn what_was_asked_for_is_remembered() {
        let host = Host::live();
        host.read("/proc/version").unwrap();
        let _ = host.read("/proc/nothing");
        host.access("/proc/sys/vm/swappiness");
        assert_eq!(host.reads(), ["/proc/nothing", "/proc/sys/vm/swappiness", "/proc/version"]);
        host.read("/proc/version").unwrap();
        let read: Vec<(String, u32)> = host.contents_read().into_iter().collect();
        assert_eq!(read, [("/proc/nothing".to_owned(), 1), ("/proc/version".to_owned(), 2)]);
    }
}
