//! Where a pin is read and written: files of a folder, or a branch of the repository around them.

use std::path::{Path, PathBuf};

use planish_profile::pin::Pin;

use super::git::{Branch, File};
use crate::commands::text::pinned::{copy_beside, parse};
use crate::commands::{read_file, write_file};
use crate::failure::Failure;

/// What is written: the files of planish, and no other.
pub(super) struct Written<'a> {
    pub pin: String,
    pub order: Option<&'a str>,
}

/// Where a pin is.
pub(super) struct Place {
    pin: PathBuf,
    branch: Option<Branch>,
}

impl Place {
    /// Where `pin` is: on a branch, where one is named.
    pub fn open(pin: &Path, branch: Option<&str>) -> Result<Self, Failure> {
        let branch = branch.map(|name| Branch::open(&super::folder_of(pin), name)).transpose()?;
        Ok(Self { pin: pin.to_owned(), branch })
    }

    /// What is pinned there now.
    pub fn pinned(&self) -> Result<Option<Pin>, Failure> {
        let bytes = self.read(&self.pin)?;
        bytes.map(|bytes| parse(&self.pin, &bytes)).transpose()
    }

    /// Whether it has a file.
    pub fn has(&self, path: &Path) -> Result<bool, Failure> {
        Ok(self.read(path)?.is_some())
    }

    /// Whether the copy beside the pin is this order.
    pub fn has_copy(&self, order: &str) -> bool {
        self.read(&copy_beside(&self.pin))
            .is_ok_and(|there| there.is_some_and(|there| there == order.as_bytes()))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        match &self.branch {
            Some(branch) => branch.read(path),
            None if path.symlink_metadata().is_err() => Ok(None),
            None => read_file(path).map(Some),
        }
    }

    /// Writes the pin, last of all files; with a branch, as a commit on it, whose name it returns.
    pub fn write(&self, written: &Written<'_>, message: &str) -> Result<Option<String>, Failure> {
        let copy = copy_beside(&self.pin);
        let order = written.order.map(|order| File { path: &copy, text: order });
        let pin = File { path: &self.pin, text: &written.pin };
        let files: Vec<File<'_>> = order.into_iter().chain([pin]).collect();
        match &self.branch {
            Some(branch) => branch.commit(&files, message).map(Some),
            None => files.iter().try_for_each(|file| write_file(file.path, file.text)).map(|()| None),
        }
    }

    /// The folders of git that a commit and a push write into; none without a branch.
    pub fn folders(&self, remote: Option<&str>) -> Vec<PathBuf> {
        self.branch.as_ref().map_or_else(Vec::new, |branch| branch.folders(remote))
    }

    /// Pushes the branch. Never by force.
    pub fn push(&self, remote: &str) -> Result<(), Failure> {
        self.branch.as_ref().map_or(Ok(()), |branch| branch.push(remote))
    }
}
