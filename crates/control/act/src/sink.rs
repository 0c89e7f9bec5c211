//! What act writes through: the live host, or the model of one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::time::Duration;

use planish_host::{Host, bytes, in_root};
use planish_model::{Generator, Holder};
use planish_sys::file;
use rustix::io::Errno;

use crate::error::{Operation, Refusal, SinkError};
use crate::holders;
use crate::program::{LivePrograms, Programs};
use crate::relocate::{LiveProcesses, Processes};

mod cards;
pub(crate) mod edit;
mod held;
mod menu;
mod mounts;
pub(crate) mod resctrl;
mod threads;
pub(crate) mod variable;

/// A host that can be written. Crash tests put themselves between act and the host here.
pub trait Sink {
    /// The text of a place, without its last line break.
    ///
    /// # Errors
    /// The place and what the kernel says.
    fn read(&self, place: &str) -> Result<String, SinkError>;

    /// Writes a place by one write. A place that is not there is never made.
    ///
    /// # Errors
    /// The place and what the kernel says.
    fn write(&self, place: &str, value: &str) -> Result<(), SinkError>;

    /// The content of a file of ours; `None` when there is none.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError>;

    /// The same as text.
    ///
    /// # Errors
    /// As [`Self::read_bytes`], and [`io::ErrorKind::InvalidData`] with the line of the byte that is no UTF-8: what is
    /// read here may be written back. Lines of ours are taken out of such
    /// a file by [`crate::in_chars`].
    fn read_file(&self, path: &str) -> Result<Option<String>, SinkError> {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|odd| SinkError::new(Operation::Read, path, not_utf_8(&odd)))
        };
        self.read_bytes(path)?.map(text).transpose()
    }

    /// The same for looking at it: what is no UTF-8 is told as `\u{fffd}`, and is not to be written back.
    ///
    /// # Errors
    /// As [`Self::read_bytes`].
    fn look_at_file(&self, path: &str) -> Result<Option<String>, SinkError> {
        Ok(self.read_bytes(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Where the symbolic link with the name of a file of ours leads, as it says; `None` for a file, and for nothing.
    /// We write no links there, so that one is somebody else's whatever it leads to: to /dev/null it is the way to
    /// forbid the file.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn link(&self, path: &str) -> Result<Option<String>, SinkError>;

    /// Replaces a file of ours as a whole, or removes it. It is on the disk when this returns.
    ///
    /// # Errors
    /// The file and what the kernel says; then its old content is still there.
    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError>;

    /// Removes a folder that we made, when it is empty. One that holds something stays, one that is gone is gone.
    ///
    /// # Errors
    /// The folder and what the kernel says.
    fn remove_folder(&self, path: &str) -> Result<(), SinkError>;

    /// Replaces the content of a boot loader's file that is there, and keeps its mode and owner. It is on the disk
    /// when this returns.
    ///
    /// # Errors
    /// The file and what the kernel says; then its old content is still there.
    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError>;

    /// Removes what a kill left beside a file that was being replaced: one of ours, or one of others that `is_edited`,
    /// which has no name there that somebody else might give a file. The file itself is not looked at.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn sweep(&self, path: &str, is_edited: bool) -> Result<(), SinkError>;

    /// The variable of the firmware that names the entry to be booted once; `None` where it is not set.
    ///
    /// # Errors
    /// The variable and what the kernel says.
    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError>;

    /// Sets or removes that variable. No other one is written.
    ///
    /// # Errors
    /// The variable and what the kernel says.
    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError>;

    /// Runs the program that makes a boot loader's menu of its sources; false on a host that runs no programs.
    ///
    /// # Errors
    /// The program and its last words.
    fn generate(&self, generator: Generator) -> Result<bool, SinkError>;

    /// Waits for a kernel that works on a pool. A model has nothing to wait for.
    fn pause(&self, time: Duration);

    /// Bytes of a base page: the unit of the orders in `/proc/buddyinfo`.
    fn page_bytes(&self) -> u64;

    /// Programs that map huge pages of a size.
    fn holders(&self, page_bytes: u64) -> Vec<Holder>;

    /// The processes of the host, to be moved; `None` on one where none runs.
    fn processes(&self) -> Option<Box<dyn Processes + '_>> {
        None
    }

    /// The files of programs of a host, to be replaced; `None` on one whose files are not written.
    fn programs<'a>(&'a self, host: &'a Host) -> Option<Box<dyn Programs + 'a>> {
        let _ = host;
        None
    }
}

/// How a place is read and written that is no file; `None` for one of another kind.
type Asked = (fn(&str) -> Option<io::Result<String>>, fn(&str, &str) -> Option<io::Result<()>>);

/// What the kernel is asked through no file.
const ASKED: [Asked; 5] = [
    (cards::read, cards::write),
    (held::read, held::write),
    (resctrl::read, resctrl::write),
    (mounts::read, mounts::write),
    (threads::read, threads::write),
];

/// The machine that we run on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveSink;

impl Sink for LiveSink {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        if let Some(text) = ASKED.iter().find_map(|(read, _)| read(place)) {
            return text.map_err(|error| SinkError::new(Operation::Read, place, error));
        }
        read_text(Path::new(place)).map_err(|error| SinkError::new(Operation::Read, place, error))
    }

    fn write(&self, place: &str, value: &str) -> Result<(), SinkError> {
        in_bounds(place)?;
        let failed = |error| SinkError::new(Operation::Write, place, error);
        if let Some(written) = ASKED.iter().find_map(|(_, write)| write(place, value)) {
            return written.map_err(failed);
        }
        // Without O_CREAT and O_TRUNC: what is not there is not made. std adds O_CLOEXEC.
        let mut file = OpenOptions::new().write(true).open(place).map_err(failed)?;
        let line = format!("{value}\n");
        // One write: the kernel takes each write as a whole value.
        let written = file.write(line.as_bytes()).map_err(failed)?;
        if written == line.len() { Ok(()) } else { Err(failed(io::Error::from(io::ErrorKind::WriteZero))) }
    }

    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        read_own(Path::new("/"), path)
    }

    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        own_link(Path::new("/"), path)
    }

    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
        replace_own(Path::new("/"), path, content)?;
        edit::write_out(path)
    }

    fn remove_folder(&self, path: &str) -> Result<(), SinkError> {
        remove_own_folder(Path::new("/"), path)
    }

    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError> {
        edit::edit(Path::new(path), path, content)?;
        edit::write_out(path)
    }

    fn sweep(&self, path: &str, is_edited: bool) -> Result<(), SinkError> {
        // A generator outlives a planish that is killed, and what it writes is not left behind yet.
        let is_menu = path.ends_with("/grub.cfg");
        if is_menu && menu::is_at_work() { Ok(()) } else { sweep_beside(Path::new("/"), path, is_edited) }
    }

    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        variable::read(Path::new(path), path)
    }

    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError> {
        variable::set(Path::new(path), path, name)
    }

    fn generate(&self, generator: Generator) -> Result<bool, SinkError> {
        menu::generate(generator).map(|()| true)
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn page_bytes(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    fn holders(&self, page_bytes: u64) -> Vec<Holder> {
        holders::of(&Host::live(), page_bytes)
    }

    fn processes(&self) -> Option<Box<dyn Processes + '_>> {
        Some(Box::new(LiveProcesses::default()))
    }

    fn programs<'a>(&'a self, host: &'a Host) -> Option<Box<dyn Programs + 'a>> {
        Some(Box::new(LivePrograms::new(host, Path::new("/"))))
    }
}

/// Refuses places outside the kernel's own file systems: a row of a user's catalogue may hold any path, and a
/// write without truncation would damage an ordinary file.
pub(crate) fn in_bounds(place: &str) -> Result<(), SinkError> {
    if planish_model::place::is_of_the_kernel(place) {
        return Ok(());
    }
    Err(SinkError {
        operation: Operation::Write,
        place: place.to_owned(),
        refusal: Refusal::OutOfBounds,
        source: io::Error::other(
            "knobs live in /proc/sys, /proc/irq, /sys, /planish/ethtool, /planish/held, /planish/mounts, \
             /planish/resctrl and /planish/threads",
        ),
    })
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = file::read_text(path)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Why a file is not read as text that may be written again. Whoever mends it looks for the line.
fn not_utf_8(odd: &FromUtf8Error) -> io::Error {
    let told = format!("it is not text in UTF-8: {}", bytes::odd_byte(odd));
    io::Error::new(io::ErrorKind::InvalidData, told)
}

/// Reads a file of ours below a root.
pub(crate) fn read_own(root: &Path, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
    match in_root(root, path).and_then(|real| file::read(&real)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SinkError::new(Operation::Read, path, error)),
    }
}

/// Where the link with the name of a file of ours below a root leads.
pub(crate) fn own_link(root: &Path, path: &str) -> Result<Option<String>, SinkError> {
    let (folder, name) = path.rsplit_once('/').expect("our files have a folder and a name");
    match in_root(root, folder).and_then(|folder| fs::read_link(folder.join(name))) {
        Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
        Err(error) => match Errno::from_io_error(&error) {
            // It is no link, and there is nothing, or no folder.
            Some(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => Ok(None),
            _ => Err(SinkError::new(Operation::Read, path, error)),
        },
    }
}

/// Replaces or removes a file of ours below a root: a new file beside it, synced, then one rename. It is for everybody
/// to read, unless the one that is there is not: whoever closed that has a reason.
///
/// The new file has a fixed name, which the host-wide lock keeps to one writer: what a kill leaves of it goes with
/// the next replacement or removal.
pub(crate) fn replace_own(root: &Path, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
    let (folder, name) = path.rsplit_once('/').expect("our files have a folder and a name");
    // The folder may lie behind links; a link with the name of our file is what the rename replaces.
    let folder = in_root(root, folder).map_err(|error| SinkError::new(Operation::Replace, path, error))?;
    let target = folder.join(name);
    let fresh = edit::own_beside(&target);
    let replaced = || -> io::Result<()> {
        remove(&fresh)?;
        let Some(content) = content else {
            remove(&target)?;
            return sync_folder(&folder);
        };
        make_folders(&folder)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(&fresh)?;
        file.write_all(content)?;
        // Lines of others may stand in it, and who may read them is theirs to say.
        if let Some(old) = fs::symlink_metadata(&target).ok().filter(fs::Metadata::is_file) {
            return edit::take_place(&file, &fresh, &target, &old);
        }
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        file.sync_all()?;
        fs::rename(&fresh, &target)?;
        sync_folder(&folder)
    };
    replaced().map_err(|error| {
        // A disk that is full must not keep half a file of ours, too; the first error is the one to tell.
        let _ = remove(&fresh);
        SinkError::new(Operation::Replace, path, error)
    })
}

/// Removes what a kill left beside a file below a root. The folder may lie behind links, and a menu of a boot loader
/// may be one itself.
pub(crate) fn sweep_beside(root: &Path, path: &str, is_edited: bool) -> Result<(), SinkError> {
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    let Ok(folder) = in_root(root, folder) else { return Ok(()) };
    edit::sweep(&folder.join(name), path, is_edited)?;
    match in_root(root, path) {
        Ok(real) => edit::sweep(&real, path, is_edited),
        Err(_) => Ok(()),
    }
}

/// Makes a folder and those above it, with their names on the disk.
fn make_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    file::make_folders(folder, 0o777, sync_folder)
}

/// Removes a folder of ours below a root, when it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "looks whether a write is needed, in the folder that it would write"
)]
pub(crate) fn remove_own_folder(root: &Path, path: &str) -> Result<(), SinkError> {
    let removed = || -> io::Result<()> {
        let folder = in_root(root, path)?;
        // A read-only mount refuses these two as well, although there is nothing to do.
        match fs::read_dir(&folder).map(|mut names| names.next().is_some()) {
            Ok(true) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            _ => {}
        }
        match fs::remove_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) => Err(error),
            Ok(()) => folder.parent().map_or(Ok(()), sync_folder),
        }
    };
    removed().map_err(|error| SinkError::new(Operation::Replace, path, error))
}

/// Removes a file; one that is not there is removed already: also on a read-only mount, where the kernel refuses to
/// look whether it is.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts the names in a folder on the disk. A folder that is not there has none.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder) {
        Ok(folder) => folder.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_new_folders_are_synced_in_theirs() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("etc/sysctl.d");
        assert_eq!(make_folders(&folder).expect("made"), [root.path().join("etc"), root.path().to_owned()]);
        assert_eq!(make_folders(&folder).expect("there"), Vec::<PathBuf>::new());
    }

    /// Lines of others may stand in a file of ours, and an undo leaves them.
    #[test]
    fn a_file_that_is_replaced_keeps_who_may_read_it() {
        let root = tempfile::tempdir().expect("a folder");
        let path = "/etc/sysctl.d/90-planish.conf";
        let mode = || {
            let real = root.path().join(path.trim_start_matches('/'));
            fs::metadata(real).expect("there").permissions().mode() & 0o7777
        };
        replace_own(root.path(), path, Some(b"a = 1\n")).expect("ours");
        assert_eq!(mode(), 0o644);
        let real = root.path().join(path.trim_start_matches('/'));
        fs::set_permissions(real, fs::Permissions::from_mode(0o600)).expect("ours");
        replace_own(root.path(), path, Some(b"theirs = 1\n")).expect("ours");
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn places_outside_proc_and_sys_are_not_written() {
        for place in [
            "/etc/passwd",
            "/proc/../etc/passwd",
            "/proc/sys/../sysrq-trigger",
            "/proc/self/root/etc/passwd",
            "/proc/sysrq-trigger",
            "proc/sys/vm/swappiness",
            "/system/x",
        ] {
            let error = LiveSink.write(place, "1").expect_err("out of bounds");
            assert_eq!(error.refusal, Refusal::OutOfBounds, "{place}");
        }
    }

    #[test]
    fn a_place_that_is_not_there_is_not_made() {
        let error = LiveSink.write("/proc/sys/vm/planish_has_no_such_file", "1").expect_err("not there");
        assert_eq!(error.operation, Operation::Write);
        assert!(matches!(error.refusal, Refusal::Vanished | Refusal::NotPermitted), "{error}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "plays the process that was killed")]
    fn files_of_ours_are_replaced_whole_and_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let path = "/etc/sysctl.d/90-planish.conf";
        assert_eq!(read_own(root.path(), path).expect("readable"), None);
        replace_own(root.path(), path, Some(b"a = 1\n")).expect("ours");
        replace_own(root.path(), path, Some(b"b = 2\n")).expect("ours");
        assert_eq!(read_own(root.path(), path).expect("readable").as_deref(), Some(&b"b = 2\n"[..]));
        replace_own(root.path(), path, None).expect("ours");
        replace_own(root.path(), path, None).expect("already gone is fine");
        let killed = root.path().join("etc/sysctl.d/.90-planish.conf.new");
        fs::write(&killed, "half a fi").expect("ours");
        replace_own(root.path(), path, Some(b"c = 3\n")).expect("what a kill left is no hindrance");
        fs::write(&killed, "half a fi").expect("ours");
        replace_own(root.path(), path, None).expect("ours");
        let emptied = fs::remove_dir(root.path().join("etc/sysctl.d"));
        assert!(emptied.is_ok(), "no half-written file stays: {emptied:?}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "looks at what was written")]
    fn links_of_a_tree_are_followed_inside_of_it() {
        use std::os::unix::fs::symlink;
        let (root, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::create_dir(root.path().join("etc")).expect("ours");
        symlink(outside.path(), root.path().join("etc/sysctl.d")).expect("ours");
        let path = "/etc/sysctl.d/90-planish.conf";
        replace_own(root.path(), path, Some(b"a = 1\n")).expect("inside");
        assert_eq!(read_own(root.path(), path).expect("inside").as_deref(), Some(&b"a = 1\n"[..]));
        assert_eq!(fs::read_dir(outside.path()).expect("ours").count(), 0, "nothing was written outside");
        let inside = root.path().join(outside.path().strip_prefix("/").expect("absolute"));
        assert!(inside.join("90-planish.conf").exists());
        symlink("/etc/passwd", root.path().join("etc/link.conf")).expect("ours");
        assert_eq!(read_own(root.path(), "/etc/link.conf").expect("inside"), None, "the tree has no passwd");
        replace_own(root.path(), "/etc/link.conf", Some(b"b = 2\n")).expect("the link is replaced");
        assert!(!root.path().join("etc/passwd").exists());
        replace_own(root.path(), path, None).expect("inside");
        assert!(!inside.join("90-planish.conf").exists());
    }
}
