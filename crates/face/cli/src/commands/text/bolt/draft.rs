//! The new program while it has no name yet: a file beside the place that it is for, so that it finds what lies beside
//! it (`$ORIGIN`), and takes its name by one rename.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::Args;
use super::subject::{Subject, is_same_file};
use crate::commands::{is_there, not_writable, write_bytes};
use crate::failure::Failure;

/// Where the new program goes.
pub(super) struct Place {
    pub output: PathBuf,
    /// The same once all links are followed: a link stays one, its end is what gets a new content.
    target: PathBuf,
    /// Where the program goes that has this name now.
    pub kept: Option<PathBuf>,
    input: PathBuf,
}

/// `server` and `bolt` as `server.bolt`.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

impl Place {
    pub fn of(args: &Args, subject: &Subject) -> Result<Self, Failure> {
        let input = subject.path.clone();
        if args.replace {
            let kept = beside(&input, "before-bolt");
            if fs::symlink_metadata(&kept).is_ok() {
                return Err(is_there(&kept));
            }
            let refused = |why: &str| {
                let failed =
                    Failure::refused(format!("{} {why}: another file cannot stand for it", input.display()));
                Err(failed.hint("write it beside: -o OUT instead of --replace"))
            };
            if subject.metadata.nlink() > 1 {
                return refused("has other names");
            }
            if subject.is_set_id() {
                return refused("runs as another user");
            }
            return Ok(Self { output: args.program.clone(), target: input.clone(), kept: Some(kept), input });
        }
        let ending = if args.instrument { "instrumented" } else { "bolt" };
        let output = args.output.clone().unwrap_or_else(|| beside(&args.program, ending));
        if is_same_file(&subject.metadata, &output) {
            let failed = Failure::refused(format!("{} is the program itself", output.display()));
            return Err(failed.hint("name another file, or --replace without -o"));
        }
        let there = fs::metadata(&output);
        if there.is_ok_and(|there| !there.is_file()) || output.file_name().is_none() {
            return Err(
                Failure::usage(format!("{} is no file", output.display())).hint("name a file: -o OUT")
            );
        }
        // Whole: what tries it out may do that in another folder.
        let whole = || std::path::absolute(&output).unwrap_or_else(|_| output.clone());
        let target = fs::canonicalize(&output).unwrap_or_else(|_| whole());
        Ok(Self { output, target, kept: None, input })
    }

    /// The same beside the name that the user typed.
    pub fn kept_as_typed(&self) -> Option<String> {
        let name = self.kept.as_ref()?.file_name()?;
        Some(self.output.with_file_name(name).display().to_string())
    }

    /// Another name beside it, which nobody looks for.
    fn hidden(&self, ending: &str) -> PathBuf {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.target.with_file_name(format!(".{name}.{}.{ending}", std::process::id()))
    }

    /// The draft.
    pub fn draft(&self) -> PathBuf {
        self.hidden("draft")
    }

    /// The folder of files that pass between us and BOLT.
    pub fn folder(&self) -> PathBuf {
        self.hidden("bolt")
    }
}

/// A draft and a folder that go when this goes, unless the draft has got its name.
pub(super) struct Draft {
    pub path: PathBuf,
    pub folder: PathBuf,
}

impl Draft {
    /// Makes the folder, and so finds out whether anything can be written there.
    pub fn beside(place: &Place) -> Result<Self, Failure> {
        let folder = place.folder();
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| not_writable(&place.output, error))?;
        Ok(Self { path: place.draft(), folder })
    }

    /// Writes a file for BOLT.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        write_bytes(&self.folder.join(name), bytes)
    }

    /// Takes away what a run that failed has left: BOLT writes before it knows.
    pub fn clear(&self) {
        // There may be nothing.
        let _ = fs::remove_file(&self.path);
    }

    /// Gives it mode and owner of the program; tells what it cannot have.
    pub fn resemble(&self, subject: &Subject) -> Result<Vec<String>, Failure> {
        let failed = |error| not_writable(&self.path, error);
        let (mode, mut notes) = (subject.metadata.mode(), Vec::new());
        let (user, group) = (subject.metadata.uid(), subject.metadata.gid());
        let drafted = fs::metadata(&self.path).map_err(failed)?;
        let differs = (drafted.uid(), drafted.gid()) != (user, group);
        if differs && chown(&self.path, Some(user), Some(group)).is_err() {
            notes.push(
                "the new program is yours: only root can give it the owner of the other one".to_owned(),
            );
        }
        if subject.is_set_id() {
            notes.push(
                "the new program runs as who starts it: set-user-id and set-group-id were left out"
                    .to_owned(),
            );
        }
        // After chown(2), which takes bits away.
        fs::set_permissions(&self.path, Permissions::from_mode(mode & 0o777)).map_err(failed)?;
        Ok(notes)
    }

    /// Has it on the disk, and gives it its name.
    pub fn take_name(&self, place: &Place) -> Result<(), Failure> {
        let named = || -> io::Result<()> {
            File::open(&self.path)?.sync_all()?;
            if let Some(kept) = &place.kept {
                // Never over one that came meanwhile: link(2) fails then.
                fs::hard_link(&place.input, kept)?;
            }
            fs::rename(&self.path, &place.target)
        };
        named().map_err(|error| not_writable(&place.output, error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
