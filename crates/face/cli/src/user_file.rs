//! Files that a user named for what a command tells: a page, a plan, an order.
//!
//! What is there stays whole until its successor is: a page of yesterday must not be lost to a disk that is full today.
//! So the new content goes into a draft beside the file, which then takes its name. What has no content to lose (a
//! device, a pipe), and what a new file could not stand for (other names, another owner), is written where it is.
//!
//! Root may do this in the folder of somebody else, who can put a link to any file of the host there at any moment. So
//! links are followed that are ours or root's, and no others, and what is written where it is is the file that was
//! looked at, or none.

#![expect(clippy::disallowed_methods, reason = "the user's own files, not the host")]

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use planish_sys::draft::create_beside;
use rustix::fs::OFlags;

/// Links of the kernel, which lead to what is open already and have no other name.
const OPEN_ALREADY: [&str; 5] = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"];

/// Writes `bytes` to a file, whole or not at all where that can be had.
///
/// # Errors
/// The kernel's, and a link of another user; a regular file of the user's own is then as it was.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_open_already(path) {
        return fs::write(path, bytes);
    }
    let name = end_of(path)?;
    match fs::symlink_metadata(&name) {
        // Without a draft there is no place for the file either: the reason is the same.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Draft::beside(name)?.fill(bytes),
        Err(error) => Err(error),
        Ok(there) => match Draft::in_place_of(&name, &there) {
            Some(draft) => draft.fill(bytes),
            None => write_there(&name, &there, bytes),
        },
    }
}

fn is_open_already(path: &Path) -> bool {
    path.to_str().is_some_and(|path| OPEN_ALREADY.iter().any(|open| path.starts_with(open)))
}

/// Where a path ends, once a link that may be followed is. There may be no file yet.
///
/// # Errors
/// The kernel's, and a link that another user has put there.
pub(crate) fn end_of(path: &Path) -> io::Result<PathBuf> {
    let found = fs::symlink_metadata(path);
    let Some(link) = found.ok().filter(|found| found.is_symlink() && !is_open_already(path)) else {
        return Ok(path.to_owned());
    };
    if link.uid() != 0 && link.uid() != rustix::process::geteuid().as_raw() {
        let why = "it is a link of another user, who may have it lead anywhere";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    match fs::canonicalize(path) {
        // It leads to a file that is not there, which is made then.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(path.parent().unwrap_or(Path::new("")).join(fs::read_link(path)?))
        }
        end => end,
    }
}

/// Writes a file where it is. It is cut when it is known to be the one that was looked at: who owns the folder may have
/// put a link or another file there since.
fn write_there(path: &Path, there: &Metadata, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NOCTTY;
    let mut file = File::options().write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    if (found.dev(), found.ino()) != (there.dev(), there.ino()) {
        return Err(io::Error::other("somebody replaced it meanwhile"));
    }
    if found.is_file() {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

/// A file that is not there yet under its name.
struct Draft {
    file: File,
    path: PathBuf,
    /// The name that it takes when it is whole.
    name: PathBuf,
}

impl Draft {
    fn beside(name: PathBuf) -> io::Result<Self> {
        let (file, path) = create_beside(&name)?;
        Ok(Self { file, path, name })
    }

    /// An empty draft with the owner and mode of the file that it stands for, or none: the folder may take no new names
    /// while the file itself can be written.
    fn in_place_of(name: &Path, older: &Metadata) -> Option<Self> {
        if !is_replaceable(older) {
            return None;
        }
        let draft = Self::beside(name.to_owned()).ok()?;
        match draft.resemble(older) {
            Ok(()) => Some(draft),
            Err(_) => {
                draft.discard();
                None
            }
        }
    }

    fn resemble(&self, older: &Metadata) -> io::Result<()> {
        fchown(&self.file, None, Some(older.gid()))?;
        self.file.set_permissions(older.permissions())
    }

    /// Writes the content, has it on the disk, and gives the file its name.
    fn fill(mut self, bytes: &[u8]) -> io::Result<()> {
        let whole = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        let done = whole.and_then(|()| fs::rename(&self.path, &self.name));
        done.inspect_err(|_| self.discard())
    }

    /// Half a draft helps nobody on a disk that is full.
    fn discard(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a new file of ours can stand for this one.
fn is_replaceable(file: &Metadata) -> bool {
    file.is_file() && file.nlink() == 1 && file.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_older_page_is_whole_while_its_successor_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.html");
        fs::write(&page, "yesterday").unwrap();
        fs::set_permissions(&page, fs::Permissions::from_mode(0o640)).unwrap();
        // Who has it open reads all of the older one: it was never cut.
        let mut open = File::open(&page).unwrap();
        replace(&page, b"today").unwrap();
        let mut seen = String::new();
        open.read_to_string(&mut seen).unwrap();
        assert_eq!((seen.as_str(), fs::read_to_string(&page).unwrap().as_str()), ("yesterday", "today"));
        assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["page.html"], "no draft stays");
    }

    #[test]
    fn links_and_other_names_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, first, second] =
            ["real", "link", "first", "second"].map(|name| folder.path().join(name));
        fs::write(&real, "old").unwrap();
        symlink("real", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        fs::write(&first, "old").unwrap();
        fs::hard_link(&first, &second).unwrap();
        replace(&first, b"new").unwrap();
        assert_eq!(fs::read_to_string(&second).unwrap(), "new");
    }

    #[test]
    fn a_name_that_could_be_guessed_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, page] = ["victim", "page.html"].map(|name| folder.path().join(name));
        fs::write(&victim, "precious").unwrap();
        let guessed = folder.path().join(format!(".page.html.{}.draft", std::process::id()));
        symlink(&victim, &guessed).unwrap();
        replace(&page, b"today").unwrap();
        assert!(fs::symlink_metadata(&page).unwrap().is_file());
        // What was looked at and is another one by now: nothing is cut.
        let looked = fs::metadata(&page).unwrap();
        fs::remove_file(&page).unwrap();
        symlink(&victim, &page).unwrap();
        assert!(write_there(&page, &looked, b"today").is_err());
        assert!(write_there(&victim, &looked, b"today").is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn links_of_others_are_not_followed_and_one_that_leads_nowhere_yet_is() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, link, new] = ["victim", "link", "new"].map(|name| folder.path().join(name));
        symlink("new", &link).unwrap();
        replace(&link, b"page").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&new).unwrap(), "page");
        if rustix::process::geteuid().is_root() {
            fs::write(&victim, "precious").unwrap();
            fs::remove_file(&link).unwrap();
            symlink(&victim, &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
            let error = replace(&link, b"page").unwrap_err();
            assert!(error.to_string().contains("link of another user"), "{error}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        }
    }

    #[test]
    fn a_device_that_takes_nothing_is_an_error_and_stays_a_device() {
        let error = replace(Path::new("/dev/full"), b"page").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
