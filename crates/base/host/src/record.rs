//! Copies what was asked of a machine into a folder that answers the same.
//!
//! Exactly the paths that were asked for are copied, with the links on the way, so that a recording is as
//! small as it can be and holds nothing that nobody looked at. Of folders that were asked for, links are kept
//! that lead to something in the copy, since /sys tells by them what belongs where; a folder that stays empty
//! gets a file `.keep`, which [`Host::list`] does not show, because version control keeps no empty folders.
#![expect(clippy::disallowed_methods, reason = "the copy is our own file, not the host")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::access::Access;
use crate::answers::{self, name_of_errno};
use crate::bytes;
use crate::error::{ReadError, RecordError};
use crate::host::{Host, KEEP};
use crate::kept;
use crate::meta::{Meta, Origin};
use crate::redact::{Redactions, Redactor};
use crate::resolve::resolve;

/// A link to it masks a file of the same name elsewhere: a part of the configuration, though it has no content.
const NOTHING: &str = "dev/null";

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Files copied.
    pub files: usize,
    /// Files that exist and could not be read; the copy answers with the same error.
    pub unreadable: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

/// Copies `paths` of `host` to the new folder `dest`, described by `meta`.
///
/// Of `meta`, the name, the note, the date and the virtualisation count; the rest is filled in from the
/// machine. `paths` is usually [`Host::reads`] after everything was observed; paths that are not there are
/// left out. Of the database of packages only the versions of `packages` are copied.
pub fn record(
    host: &Host,
    paths: &[String],
    dest: &Path,
    redactions: Redactions,
    packages: &[String],
    meta: Meta,
) -> Result<Recorded, RecordError> {
    prepare(dest)?;
    let name = host.read("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut copy = Copy {
        host,
        dest,
        redactor: Redactor::new(redactions, &name).keeping(packages),
        modes: BTreeMap::new(),
        unreadable: BTreeMap::new(),
        read_only: BTreeSet::new(),
        links: Vec::new(),
        folders: Vec::new(),
        recorded: Recorded { files: 0, unreadable: 0, bytes: 0 },
    };
    for path in paths {
        copy.path(path)?;
    }
    copy.tidy()?;
    let Copy { modes, unreadable, read_only, mut recorded, .. } = copy;
    recorded.unreadable = unreadable.len();
    // A recorded machine that nobody was to write says nothing of how it would answer. A copy that may be written has
    // to answer as a kernel does: an undo that clears a twin would fail on one that just keeps what it is given.
    let own = host.meta().map(|own| own.answer.clone());
    let answer =
        own.filter(|rows| !(meta.writable && rows.is_empty())).unwrap_or_else(|| answers::usual(host));
    let meta = Meta {
        origin: Origin::Recorded,
        arch: host.arch(),
        kernel: host.kernel(),
        page_bytes: host.page_bytes(),
        host_id: Some(host.host_id()),
        // Who rehearses on a copy is its root, whoever made it.
        root: meta.writable || rustix::process::geteuid().is_root(),
        read_only: read_only.into_iter().collect(),
        modes: modes.into_iter().map(|(mode, places)| (format!("{mode:04o}"), places)).collect(),
        unreadable,
        answer,
        ..meta
    };
    let text = toml::to_string_pretty(&meta).map_err(|source| RecordError::Meta { source })?;
    write(&dest.join("meta.toml"), text.as_bytes())?;
    Ok(recorded)
}

/// Makes the destination, which must be new or empty.
fn prepare(dest: &Path) -> Result<(), RecordError> {
    fs::create_dir_all(dest).map_err(|error| RecordError::io(dest, error))?;
    let mut entries = fs::read_dir(dest).map_err(|error| RecordError::io(dest, error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(RecordError::Occupied { path: dest.to_owned() }),
    }
}

struct Copy<'a> {
    host: &'a Host,
    dest: &'a Path,
    redactor: Redactor,
    modes: BTreeMap<u32, Vec<String>>,
    unreadable: BTreeMap<String, String>,
    read_only: BTreeSet<String>,
    /// Links of the copy, from its root.
    links: Vec<PathBuf>,
    /// Folders of the copy that were asked for themselves.
    folders: Vec<PathBuf>,
    recorded: Recorded,
}

impl Copy<'_> {
    /// Copies what is at `path`, with the links that lead there.
    fn path(&mut self, path: &str) -> Result<(), RecordError> {
        if self.redactor.hides_mount(path) {
            return Ok(());
        }
        if let Some(devices) = self.host.devices()
            && let Some(mode) = devices.mode(self.host, path)
        {
            // No file of the machine, so that there are no links to it and nothing of it but its text.
            let real = self.dest.join(path.trim_start_matches('/'));
            return mode.map_or(Ok(()), |_| self.file(path, path, &real));
        }
        if kept::is_program_link(path) {
            // Where it leads is told, and the program itself is not copied.
            let target = self.host.read_link(path).and_then(|target| self.redactor.redact_program(&target));
            let at = Path::new(path.trim_start_matches('/'));
            return target.map_or(Ok(()), |target| self.link(at, Path::new(&target)));
        }
        let Ok(resolved) = self.host.resolve(path) else { return Ok(()) };
        let metadata = self.host.real_path(path).and_then(fs::metadata);
        if metadata.is_ok() || resolved.path == Path::new(NOTHING) {
            for link in &resolved.links {
                self.link(&link.at, &link.target)?;
            }
        }
        let Some(metadata) = metadata.ok().filter(|_| resolved.path != Path::new(NOTHING)) else {
            return Ok(());
        };
        let real = self.dest.join(&resolved.path);
        if metadata.is_dir() {
            make_folder(&real)?;
            self.folders.push(real);
            self.links_in(path)
        } else if metadata.is_file() {
            let redacted = self.redactor.redact_path(path);
            let real = self.redactor.redact_path(&format!("/{}", resolved.path.display()));
            let real = self.dest.join(real.trim_start_matches('/'));
            self.file(path, &redacted, &real)
        } else {
            Ok(())
        }
    }

    fn link(&mut self, at: &Path, target: &Path) -> Result<(), RecordError> {
        let real = self.dest.join(at);
        if let Some(parent) = real.parent() {
            make_folder(parent)?;
        }
        match symlink(target, &real) {
            Ok(()) => self.links.push(at.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(RecordError::io(&real, error)),
        }
        Ok(())
    }

    /// Keeps the links in a folder that was asked for. Its files and folders are kept when they are asked
    /// for: a file without its content would lie.
    fn links_in(&mut self, path: &str) -> Result<(), RecordError> {
        for name in self.host.list(path) {
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            let Ok(resolved) = self.host.resolve(&below) else { continue };
            if self.host.read_link(&below).is_some()
                && self.host.real_path(&below).is_ok_and(|real| real.is_dir())
            {
                for link in &resolved.links {
                    self.link(&link.at, &link.target)?;
                }
            }
        }
        Ok(())
    }

    /// Takes away links that lead to nothing that was copied, but for those that mask a file and those to programs, and
    /// puts a file into the folders that stayed empty.
    fn tidy(&self) -> Result<(), RecordError> {
        for link in &self.links {
            // Not by the system's own look-up, which would follow an absolute link out of the copy.
            let path = link.to_string_lossy();
            if kept::is_program_link(&format!("/{path}")) {
                continue;
            }
            let leads = |found: PathBuf| found == Path::new(NOTHING) || self.dest.join(found).exists();
            if !resolve(self.dest, &path).is_ok_and(|found| leads(found.path)) {
                let link = self.dest.join(link);
                fs::remove_file(&link).map_err(|error| RecordError::io(&link, error))?;
            }
        }
        for folder in &self.folders {
            let mut entries = fs::read_dir(folder).map_err(|error| RecordError::io(folder, error))?;
            if entries.next().is_none() {
                write(&folder.join(KEEP), b"")?;
            }
        }
        Ok(())
    }

    /// Copies a file, which is called `redacted` in the recording.
    fn file(&mut self, path: &str, redacted: &str, real: &Path) -> Result<(), RecordError> {
        if let Some(mode) = self.host.mode(path).filter(|mode| *mode != 0o444) {
            self.modes.entry(mode).or_default().push(redacted.to_owned());
        }
        if self.host.access(path) == Access::ReadOnlyMount {
            self.read_only.extend(self.host.read_only_folder(path));
        }
        let bytes = match self.host.read_bytes(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.unreadable.insert(redacted.to_owned(), errno_of(&error));
                Vec::new()
            }
        };
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => self.redactor.redact(path, &text).into_bytes(),
            // What is binary has nothing by which a line is known.
            Err(odd) if odd.as_bytes().contains(&0) => odd.into_bytes(),
            Err(odd) => {
                let redacted = self.redactor.redact(path, &bytes::to_chars(odd.as_bytes()));
                bytes::from_chars(&redacted).unwrap_or_else(|| redacted.into_bytes())
            }
        };
        self.recorded.files += 1;
        self.recorded.bytes += bytes.len() as u64;
        if let Some(parent) = real.parent() {
            make_folder(parent)?;
        }
        write(real, &bytes)
    }
}

fn errno_of(error: &ReadError) -> String {
    let errno = match error {
        ReadError::Denied { source, .. } | ReadError::Io { source, .. } => Errno::from_io_error(source),
        ReadError::Absent { .. } => Some(Errno::NOENT),
        ReadError::NotText { .. } => None,
    };
    name_of_errno(errno.unwrap_or(Errno::IO)).to_owned()
}

fn make_folder(path: &Path) -> Result<(), RecordError> {
    fs::create_dir_all(path).map_err(|error| RecordError::io(path, error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let path: PathBuf = path.to_owned();
    fs::write(&path, bytes).map_err(|error| RecordError::io(&path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn meta() -> Meta {
        Meta { name: "copy".to_owned(), ..Meta::default() }
    }

    /// Asks the live machine for a bit of everything.
    fn look_at(host: &Host) -> Vec<(String, String, Access)> {
        let paths = [
            "/proc/version",
            "/proc/sys/vm/swappiness",
            "/proc/sys/vm/compact_memory",
            "/proc/self/status",
            "/proc/nothing",
            "/etc/os-release",
        ];
        let mut paths: Vec<String> = paths.map(str::to_owned).into();
        let schedulers = Pattern::parse("/sys/block/{disk}/queue/scheduler").unwrap();
        paths.extend(host.glob(&schedulers).into_iter().map(|found| found.path));
        let cpus = Pattern::parse("/sys/devices/system/cpu/cpu{cpu}").unwrap();
        paths.extend(host.glob(&cpus).into_iter().map(|found| found.path));
        let answers = paths.into_iter().map(|path| {
            let text = host.read(&path).unwrap_or_else(|error| error.to_string());
            let access = host.access(&path);
            (path, text, access)
        });
        answers.collect()
    }

    #[test]
    fn the_copy_answers_as_the_machine_did() {
        let folder = tempfile::tempdir().unwrap();
        let dest = folder.path().join("copy");
        let live = Host::live();
        let before = look_at(&live);
        let none = Redactions { serials: false, macs: false, ids: false, addresses: false, names: false };
        let recorded = record(&live, &live.reads(), &dest, none, &[], meta()).unwrap();
        assert!(recorded.files >= 3 && recorded.bytes > 0);

        let copy = Host::open(&dest).unwrap();
        let after = look_at(&copy);
        assert_eq!(before.len(), after.len());
        for (live, copy) in before.iter().zip(&after) {
            assert_eq!(live.0, copy.0);
            assert_eq!(live.2, copy.2, "{}", live.0);
            // The status of a process changes from one look to the next.
            if live.0 != "/proc/self/status" {
                assert_eq!(live.1, copy.1, "{}", live.0);
            }
        }
        assert_eq!((copy.host_id(), copy.kernel()), (live.host_id(), live.kernel()));
        assert_eq!((copy.arch(), copy.page_bytes()), (live.arch(), live.page_bytes()));
    }

    #[test]
    fn a_copy_of_the_copy_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        let live = Host::live();
        look_at(&live);
        record(&live, &live.reads(), &first, Redactions::default(), &[], meta()).unwrap();
        let copy = Host::open(&first).unwrap();
        look_at(&copy);
        record(&copy, &copy.reads(), &second, Redactions::default(), &[], meta()).unwrap();
        let meta = |folder: &Path| fs::read_to_string(folder.join("meta.toml")).unwrap();
        assert_eq!(meta(&first), meta(&second));
    }

    #[test]
    fn a_copy_that_may_be_written_answers_writes_though_its_machine_says_nothing_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("proc/sys/vm")).unwrap();
        fs::write(root.join("meta.toml"), [planish_skip::MACHINE, "name = \"model\"\n"].concat()).unwrap();
        let twins = ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"];
        for path in twins {
            fs::write(root.join(path.trim_start_matches('/')), "0\n").unwrap();
        }
        let host = Host::open(&root).unwrap();
        for path in twins {
            host.read(path).unwrap();
        }
        let copied = |name: &str, writable: bool| {
            let dest = folder.path().join(name);
            let meta = Meta { writable, ..meta() };
            record(&host, &host.reads(), &dest, Redactions::default(), &[], meta).unwrap();
            let answer = Host::open(&dest).unwrap().answers().for_place(twins[0]);
            answer.zeroes
        };
        assert_eq!(copied("writable", true), [twins[1]]);
        assert!(copied("kept", false).is_empty());
    }

    #[test]
    fn a_link_that_masks_a_file_is_kept_and_one_that_leads_nowhere_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (root, dest) = (folder.path().join("root"), folder.path().join("copy"));
        for path in ["proc", "etc/sysctl.d"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("proc/version"), "Linux version 6.12.0 x\n").unwrap();
        fs::write(root.join("etc/sysctl.conf"), "vm.swappiness = 1\n").unwrap();
        let links =
            [("mask.conf", "/dev/null"), ("98-gone.conf", "/nowhere"), ("99-s.conf", "../sysctl.conf")];
        for (name, target) in links {
            symlink(target, root.join("etc/sysctl.d").join(name)).unwrap();
        }
        let host = Host::open(&root).unwrap();
        for name in host.list("/etc/sysctl.d") {
            let _ = host.read(&format!("/etc/sysctl.d/{name}"));
        }
        record(&host, &host.reads(), &dest, Redactions::default(), &[], meta()).unwrap();
        let copy = Host::open(&dest).unwrap();
        assert_eq!(copy.list("/etc/sysctl.d"), ["99-s.conf", "mask.conf"]);
        assert_eq!(copy.read_link("/etc/sysctl.d/mask.conf").as_deref(), Some("/dev/null"));
        assert_eq!(copy.read_link("/etc/sysctl.d/99-s.conf").as_deref(), Some("../sysctl.conf"));
        assert_eq!(copy.read("/etc/sysctl.conf").unwrap(), "vm.swappiness = 1\n");
    }

    /// A text in another encoding holds as many secrets as one in UTF-8.
    #[test]
    fn a_byte_that_is_no_utf_8_keeps_nothing_from_being_redacted() {
        let folder = tempfile::tempdir().unwrap();
        let (root, dest) = (folder.path().join("root"), folder.path().join("copy"));
        let files: [(&str, &[u8]); 4] = [
            ("proc/version", b"Linux version 6.12.0 x\n"),
            (
                "etc/fstab",
                b"# Gr\xfc\xdfe\n/dev/sda1 / ext4 noatime 0 1\n//srv/x /home/ann cifs password=hunter2 0 0\n",
            ),
            ("etc/sysctl.d/x.conf", b"# Gr\xfc\xdfe\nvm.swappiness = 60\n"),
            ("sys/raw", b"\xff\0\xfe"),
        ];
        for (path, bytes) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), bytes).unwrap();
        }
        let host = Host::open(&root).unwrap();
        files.iter().for_each(|(path, _)| drop(host.read_bytes(&format!("/{path}"))));
        record(&host, &host.reads(), &dest, Redactions::default(), &[], meta()).unwrap();
        let copied = |path: &str| fs::read(dest.join(path)).unwrap();
        assert_eq!(String::from_utf8_lossy(&copied("etc/fstab")), "\nredacted / ext4 noatime 0 0\n\n");
        assert_eq!(copied("etc/sysctl.d/x.conf"), files[2].1, "and nothing is lost of the others");
        assert_eq!(copied("sys/raw"), files[3].1);
    }

    #[test]
    fn a_program_is_told_by_its_path_and_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (root, dest) = (folder.path().join("root"), folder.path().join("copy"));
        for (path, text) in [
            ("proc/version", "Linux version 6.12.0 x\n"),
            ("proc/7/comm", "postgres\n"),
            ("proc/8/comm", "mongod\n"),
            ("usr/lib/postgresql/16/bin/postgres", "ELF"),
            ("home/ann/mongod", "ELF"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        symlink("/usr/lib/postgresql/16/bin/postgres", root.join("proc/7/exe")).unwrap();
        symlink("/home/ann/mongod", root.join("proc/8/exe")).unwrap();
        let host = Host::open(&root).unwrap();
        for pid in [7, 8] {
            assert!(host.exists(&format!("/proc/{pid}/comm")));
            host.read_link(&format!("/proc/{pid}/exe")).unwrap();
        }
        record(&host, &host.reads(), &dest, Redactions::default(), &[], meta()).unwrap();
        let copy = Host::open(&dest).unwrap();
        assert_eq!(copy.read_link("/proc/7/exe").as_deref(), Some("/usr/lib/postgresql/16/bin/postgres"));
        assert_eq!(copy.read_link("/proc/8/exe"), None);
        assert!(!dest.join("usr").exists() && !dest.join("home").exists());
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("precious"), "x").unwrap();
        let outcome = record(&Host::live(), &[], folder.path(), Redactions::default(), &[], meta());
        assert!(matches!(outcome, Err(RecordError::Occupied { .. })));
    }
}
