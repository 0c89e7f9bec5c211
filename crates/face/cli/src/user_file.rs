//! Files that a user named for what a command tells: a page, a plan, an order.
//!
//! What is there stays whole until its successor is: a page of yesterday must not be lost to a disk that is full today.
//! So the new content goes into a draft beside the file, which then takes its name. What has no content to lose (a
//! device, a pipe), and what a new file could not stand for (other names, another owner), is written where it is.

#![expect(clippy::disallowed_methods, reason = "the user's own files, not the host")]

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// Writes `bytes` to a file, whole or not at all where that can be had.
///
/// # Errors
/// The kernel's; a regular file of the user's own is then as it was.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(draft) = Draft::beside(path) else { return fs::write(path, bytes) };
    draft.fill(bytes)
}

/// A file that is not there yet under its name.
struct Draft {
    file: File,
    path: PathBuf,
    /// The name that it takes when it is whole.
    name: PathBuf,
}

impl Draft {
    /// An empty draft with the owner and mode of the file that it stands for, or none: the folder may take no new
    /// names while the file itself can be written.
    fn beside(path: &Path) -> Option<Self> {
        let (name, older) = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(_) => return None,
            // A link stays one: its end is what gets a new content.
            Ok(_) => (fs::canonicalize(path).ok()?, Some(fs::metadata(path).ok()?)),
        };
        if !older.as_ref().is_none_or(is_replaceable) {
            return None;
        }
        let draft = format!(".{}.{}.draft", name.file_name()?.to_str()?, std::process::id());
        let path = name.with_file_name(draft);
        let file = File::options().write(true).create_new(true).open(&path).ok()?;
        let draft = Self { file, path, name };
        match older.map_or(Ok(()), |older| draft.resemble(&older)) {
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
    fn a_device_that_takes_nothing_is_an_error_and_stays_a_device() {
        let error = replace(Path::new("/dev/full"), b"page").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
