//! Reading files that somebody else names: a user, or a tree that is taken for a host.
//!
//! Opening a FIFO waits for a writer, reading a device may never end, and a file can be longer than memory. So a file
//! is opened without waiting, looked at, and read up to a limit. Files of proc and sysfs are regular ones.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query,
    fsetxattr, fstat, openat,
};
use rustix::io::Errno;

/// Bytes that a description, profile, plan or setting has at most. The longest that we know has a hundredth of it.
pub const BYTES_MAX: u64 = 64 << 20;

/// Why something is not read. The path is told by the error around it.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// A FIFO, a device, a socket.
    #[error("it is {kind}, not a file")]
    NotAFile {
        /// What it is, with its article.
        kind: &'static str,
    },
    /// More than is ever read.
    #[error("it is longer than {} MiB", limit >> 20)]
    TooLong {
        /// The limit in bytes.
        limit: u64,
    },
}

impl From<Unread> for io::Error {
    fn from(unread: Unread) -> Self {
        Self::new(io::ErrorKind::InvalidInput, unread)
    }
}

/// Who besides these users and groups may put another file in the place of what lies at a path, and by which file or
/// folder: it, or one above it, is somebody else's, or may be written by others.
#[must_use]
pub fn who_may_replace<'a>(path: &'a Path, trusted: &[u32], groups: &[u32]) -> Option<(String, &'a Path)> {
    path.ancestors().filter(|path| !path.as_os_str().is_empty()).find_map(|path| {
        let facts = path.metadata().ok()?;
        // In a sticky folder each may rename what is his own, and its owner all.
        let may_write = |right: u32| facts.mode() & 0o1000 == 0 && facts.mode() & right != 0;
        match (facts.uid(), facts.gid()) {
            _ if may_write(0o002) => Some(("everybody".to_owned(), path)),
            (owner, _) if !trusted.contains(&owner) => Some((format!("user {owner}"), path)),
            (_, group) if may_write(0o020) && !groups.contains(&group) => {
                Some((format!("group {group}"), path))
            }
            _ if may_write(0o020) && has_access_list(path) => {
                Some(("whom its access list names".to_owned(), path))
            }
            _ => None,
        }
    })
}

/// Whether rights are given by a list, too: the bits of the group are the most then that any of its entries has.
fn has_access_list(path: &Path) -> bool {
    let mut room = [0_u8; 0];
    rustix::fs::getxattr(path, "system.posix_acl_access", &mut room).is_ok_and(|bytes| bytes > 0)
}

/// The attribute that a program's capabilities lie in. Root alone gives it, and the kernel takes it away from a file
/// that is written.
pub const CAPABILITIES: &str = "security.capability";

/// Names of the attributes that lie with a file (xattr(7): capabilities, access lists, labels); none where the file
/// system has none.
///
/// # Errors
/// The kernel's.
pub fn attributes(file: &File) -> io::Result<Vec<String>> {
    let room = match flistxattr_query(file) {
        Err(Errno::OPNOTSUPP) => 0,
        room => room?,
    };
    let mut names = vec![0_u8; room];
    let length = if room == 0 { 0 } else { flistxattr(file, &mut names[..])? };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The value of one of them.
///
/// # Errors
/// The kernel's: `ENODATA` where the file has none of that name.
pub fn attribute(file: &File, name: &str) -> io::Result<Vec<u8>> {
    let mut value = vec![0_u8; fgetxattr_query(file, name)?];
    let length = if value.is_empty() { 0 } else { fgetxattr(file, name, &mut value[..])? };
    value.truncate(length);
    Ok(value)
}

/// Gives a file an attribute, unless it has it so: a label that the folder gave it already needs no right to be set.
///
/// # Errors
/// The kernel's.
pub fn give_attribute(file: &File, name: &str, value: &[u8]) -> io::Result<()> {
    if attribute(file, name).is_ok_and(|has| has == value) {
        return Ok(());
    }
    Ok(fsetxattr(file, name, value, XattrFlags::empty())?)
}

/// Opens a regular file for reading. Links are followed.
///
/// # Errors
/// The kernel's, and [`Unread::NotAFile`].
pub fn open(path: &Path) -> io::Result<File> {
    regular(open_without_waiting(path)?)
}

/// The same where the path ends in no link.
///
/// # Errors
/// As [`open`]; `ELOOP` for a link.
pub fn open_unless_link(path: &Path) -> io::Result<File> {
    regular(open_with(path, OFlags::NOFOLLOW)?)
}

fn open_without_waiting(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::empty())
}

fn open_with(path: &Path, more: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags | more, Mode::empty())?.into())
}

/// A file that was opened without waiting, if it is a regular one.
///
/// # Errors
/// The kernel's, and [`Unread::NotAFile`].
pub fn regular(file: File) -> io::Result<File> {
    length_of_regular(&file)?;
    Ok(file)
}

/// The length that a file has by what the kernel says, if it is a regular one.
fn length_of_regular(file: &File) -> io::Result<u64> {
    let stat = fstat(file)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(u64::try_from(stat.st_size).unwrap_or(0)),
        FileType::Fifo => "a FIFO",
        FileType::Directory => "a folder",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Socket => "a socket",
        _ => "something else",
    };
    Err(Unread::NotAFile { kind }.into())
}

/// The content of a regular file of at most `limit` bytes.
///
/// # Errors
/// The kernel's, and [`Unread`].
pub fn read_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_while(open_without_waiting(path)?, limit, |_| true)
}

/// The same where the path ends in no link; `None` where it does.
///
/// # Errors
/// As [`read_up_to`].
pub fn read_unless_link(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    match open_with(path, OFlags::NOFOLLOW) {
        Ok(file) => read_while(file, limit, |_| true).map(Some),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same; see [`to_its_end`].
fn read_while(file: File, limit: u64, goes_on: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let length = length_of_regular(&file)?;
    if length > limit {
        return Err(Unread::TooLong { limit }.into());
    }
    to_its_end(file, length, limit, goes_on)
}

/// The same of a path that no user and no program of ours named: what it is is seen before it is opened at all, as a
/// device may begin to work by that. What was seen is what is opened, whatever the path leads to by then.
///
/// # Errors
/// As [`read_up_to`].
pub fn look_and_read_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let seen = seen(path)?;
    read_up_to(&opened(&seen), limit)
}

/// The same of a text. Of a program, which a NUL in its first bytes tells, nothing more is read.
///
/// # Errors
/// As [`read_up_to`], and [`io::ErrorKind::InvalidData`] for what is no text.
pub fn look_and_read_text_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let seen = seen(path)?;
    let bytes = read_while(open_without_waiting(&opened(&seen))?, limit, |first| !first.contains(&0))?;
    if bytes.contains(&0) { Err(io::ErrorKind::InvalidData.into()) } else { Ok(bytes) }
}

/// What a path leads to, not opened yet: a regular file.
fn seen(path: &Path) -> io::Result<File> {
    let seen: File = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.into();
    length_of_regular(&seen)?;
    Ok(seen)
}

/// Where what was seen is opened, whatever its path leads to by then.
fn opened(seen: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", seen.as_raw_fd()))
}

/// Nearly every file of the kernel is shorter.
const SHORT_BYTES: usize = 4096;

/// What is left to read, if it is no more than `limit`: files of the kernel have no length, or one that they never
/// reach, and others may grow. Of a short one, as thousands are read in a row, the bytes are kept and no room around
/// them, and its end is not asked for where its `length` tells it. Of a longer one nothing more is read where its first
/// bytes are none that it `goes_on` behind.
fn to_its_end(
    mut file: File,
    length: u64,
    limit: u64,
    goes_on: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut short = [0; SHORT_BYTES];
    let mut filled = 0;
    while filled < SHORT_BYTES && (filled == 0 || filled as u64 != length) {
        match file.read(&mut short[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut bytes = short[..filled].to_vec();
    if filled == SHORT_BYTES && goes_on(&bytes) {
        file.take((limit + 1).saturating_sub(filled as u64)).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > limit { Err(Unread::TooLong { limit }.into()) } else { Ok(bytes) }
}

/// Where what is open already has a name: `perf record -o - ... | planish text import /dev/stdin`, and
/// `<(zcat samples.gz)`.
const OPEN_ALREADY: [&str; 3] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"];

/// The content of what a user hands over: a regular file, or a pipe that is open already, of at most `limit` bytes.
/// Somebody writes into such a pipe, or has ended: reading it waits for no stranger.
///
/// # Errors
/// The kernel's, and [`Unread`].
pub fn read_handed(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let is_open = path.to_str().is_some_and(|path| OPEN_ALREADY.iter().any(|name| path.starts_with(name)));
    if is_open { to_its_end(File::open(path)?, 0, limit, |_| true) } else { read_up_to(path, limit) }
}

/// The content of a regular file of at most [`BYTES_MAX`] bytes.
///
/// # Errors
/// The kernel's, and [`Unread`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, BYTES_MAX)
}

/// The same as text.
///
/// # Errors
/// As [`read`], and [`io::ErrorKind::InvalidData`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text"))
}

/// Makes a folder and those above it, each new one with `mode`, and has `sync` put the names of the new ones on the
/// disk: after a power cut a synced file must be found. Returns the folders that got a new name.
///
/// # Errors
/// The kernel's, and those of `sync`.
pub fn make_folders(
    folder: &Path,
    mode: u32,
    sync: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<Vec<PathBuf>> {
    let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let parents = missing.filter_map(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    let parents: Vec<PathBuf> = parents.map(Path::to_owned).collect();
    DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    parents.iter().try_for_each(|parent| sync(parent))?;
    Ok(parents)
}

/// Makes a folder for its owner's eyes only, and those above it that are missing: [`make_folders`] for state, which may
/// tell what others must not read.
///
/// # Errors
/// As [`make_folders`].
pub fn make_private_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    // One that we may write and not read cannot be synced.
    make_folders(folder, 0o700, |parent| File::open(parent).map_or(Ok(()), |handle| handle.sync_all()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(path: &Path) -> String {
        read(path).expect_err("it is no file to read").to_string()
    }

    #[test]
    fn a_pipe_that_is_open_already_is_read_to_its_end() {
        use std::io::Write as _;

        let (reader, mut writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        writer.write_all(b"samples").unwrap();
        drop(writer);
        assert_eq!(why(&path), "it is a FIFO, not a file");
        assert_eq!(read_handed(&path, 7).unwrap(), b"samples");
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(read_handed(&fifo, 7).is_err(), "nobody writes into it, and nobody may");
    }

    #[test]
    fn attributes_of_a_file_are_read_and_given_on() {
        let files = [tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap()];
        let [from, to] = files.each_ref().map(tempfile::NamedTempFile::as_file);
        let mine = |file: &File| -> Vec<String> {
            attributes(file).unwrap().into_iter().filter(|name| name.starts_with("user.")).collect()
        };
        assert!(mine(from).is_empty());
        for (name, value) in [("user.note", &b"mine"[..]), ("user.empty", b"")] {
            if let Err(error) = give_attribute(from, name, value) {
                return planish_skip::skip("attributes_of_a_file_are_read_and_given_on", error);
            }
            give_attribute(to, name, &attribute(from, name).unwrap()).unwrap();
            assert_eq!(attribute(to, name).unwrap(), value);
        }
        assert_eq!(mine(from).len(), 2);
        assert_eq!(
            attribute(from, "user.none").unwrap_err().raw_os_error(),
            Some(Errno::NODATA.raw_os_error())
        );
    }

    #[test]
    fn what_is_no_file_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(why(&fifo), "it is a FIFO, not a file");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        assert_eq!(why(&link), "it is a FIFO, not a file");
        assert_eq!(why(folder.path()), "it is a folder, not a file");
        assert_eq!(why(Path::new("/dev/zero")), "it is a device, not a file");
        assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Whoever opens a FIFO for writing waits until somebody opens it for reading, be it without waiting.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn what_somebody_names_is_looked_at_before_it_is_opened() {
        use std::time::Duration;

        let folder = tempfile::tempdir().unwrap();
        let (fifo, link, path) =
            (folder.path().join("fifo"), folder.path().join("link"), folder.path().join("file"));
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || File::options().write(true).open(fifo)
        });
        std::thread::sleep(Duration::from_millis(100));
        let error = look_and_read_up_to(&link, 4).expect_err("it is no file");
        assert_eq!(error.to_string(), "it is a FIFO, not a file");
        std::thread::sleep(Duration::from_millis(100));
        let was_opened = writer.is_finished();
        while !writer.is_finished() {
            assert!(read(&fifo).is_err());
        }
        assert!(!was_opened);
        std::fs::write(&path, "text").unwrap();
        assert_eq!(look_and_read_up_to(&path, 4).unwrap(), b"text");
        assert_eq!(look_and_read_up_to(&path, 3).unwrap_err().to_string(), "it is longer than 0 MiB");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn files_are_read_whole_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path).unwrap(), "text");
        assert_eq!(read_up_to(&path, 4).unwrap(), b"text");
        assert_eq!(read_up_to(&path, 3).unwrap_err().to_string(), "it is longer than 0 MiB");
        File::options().write(true).open(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert_eq!(why(&path), "it is longer than 64 MiB");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(read_text(Path::new("/proc/self/status")).unwrap().starts_with("Name:"), "it has no length");
        for length in [0, 1, SHORT_BYTES - 1, SHORT_BYTES, SHORT_BYTES + 1, 3 * SHORT_BYTES] {
            std::fs::write(&path, vec![b'x'; length]).unwrap();
            assert_eq!(read(&path).unwrap().len(), length);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn what_ends_in_a_link_is_left_to_who_follows_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("none", at("broken")).unwrap();
        let read = |name: &str| read_unless_link(&at(name), 4);
        assert_eq!(read("file").unwrap().as_deref(), Some(&b"text"[..]));
        assert_eq!((read("link").unwrap(), read("broken").unwrap()), (None, None));
        assert_eq!(read("none").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(read(".").is_err() && read_unless_link(&at("file"), 3).is_err());
    }
}
