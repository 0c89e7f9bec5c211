//! The new program while it has no name yet: a file in a folder of ours beside the place that it is for, which takes
//! its name by one rename. Whoever owns the folder around it may be another user than we are, root: what is done to the
//! new program is done to what is open, and its folder is none of theirs (see [`planish_sys::draft`]).

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use planish_model::{EntryId, Exit};
use planish_pipeline::{
    NewProgram, check_program, check_replacement, kept_original, replace_program, replaced_before,
};
use planish_sys::draft::{Lent, PrivateFolder, could_be_beside};
use planish_sys::file::{CAPABILITIES, attribute, attributes, give_attribute};

use super::Args;
use super::subject::{Subject, is_same_file};
use crate::commands::{is_there, not_writable, read_file};
use crate::context::Context;
use crate::failure::Failure;
use crate::user_file::end_of;

/// The new program in its folder.
const NEW: &str = "new";

/// Where the new program goes.
pub(super) struct Place {
    pub output: PathBuf,
    /// The same once all links are followed: a link stays one, its end is what gets a new content.
    target: PathBuf,
    /// Where the program goes that has this name now.
    pub kept: Option<PathBuf>,
    /// Whether an entry of the journal keeps the program.
    is_journaled: bool,
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
    pub fn of(args: &Args, subject: &Subject, context: &Context) -> Result<Self, Failure> {
        if args.replace {
            return Self::in_place(args, subject, context);
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
        let end = end_of(&output).map_err(|error| not_writable(&output, error))?;
        // Whole: what tries it out may do that in another folder.
        let target = std::path::absolute(&end).unwrap_or(end);
        let input = subject.path.clone();
        Ok(Self { output, target, kept: None, is_journaled: false, input })
    }

    /// In place of the program: guarded as by `text huge`, and by root kept in the journal, which is root's.
    fn in_place(args: &Args, subject: &Subject, context: &Context) -> Result<Self, Failure> {
        const BESIDE: &str = "write it beside: -o OUT instead of --replace";
        let (input, output) = (subject.path.clone(), args.program.clone());
        let is_journaled = rustix::process::geteuid().is_root();
        let session = context.session()?;
        let path = text_of(&input)?;
        let guarded = |error| Failure::from(error).hint(BESIDE);
        if is_journaled {
            if let Some(why) = replaced_before(&session, path)? {
                return Err(Failure::refused(why).hint(BESIDE));
            }
            // BOLT adds to a program; what it will come to is known afterwards.
            let bytes = subject.bytes.len() as u64;
            let why = check_replacement(&session, path, bytes, args.packaged).map_err(guarded)?;
            if let Some(why) = why {
                return Err(Failure::refused(why).hint(BESIDE));
            }
            return Ok(Self { output, target: input.clone(), kept: None, is_journaled, input });
        }
        check_program(&session, path, args.packaged).map_err(guarded)?;
        let kept = beside(&input, "before-bolt");
        if fs::symlink_metadata(&kept).is_ok() {
            return Err(is_there(&kept));
        }
        let unread = |error| Failure::usage(format!("cannot look at {}: {error}", input.display()));
        let has = File::open(&input).and_then(|file| attributes(&file)).map_err(unread)?;
        if has.iter().any(|name| name == CAPABILITIES) {
            let failed =
                Failure::refused(format!("{} has capabilities, which root alone gives", input.display()));
            return Err(failed.hint("sudo planish ...").hint(BESIDE));
        }
        Ok(Self { output, target: input.clone(), kept: Some(kept), is_journaled, input })
    }

    /// Whether the new program, which is no shorter than the old one, can be written there, as far as that is known
    /// before it is.
    pub fn look(&self, subject: &Subject) -> Result<(), Failure> {
        let could_be = could_be_beside(&self.target, subject.bytes.len() as u64);
        could_be.map_err(|error| not_writable(&self.output, error))
    }

    /// The same beside the name that the user typed.
    pub fn kept_as_typed(&self) -> Option<String> {
        let name = self.kept.as_ref()?.file_name()?;
        Some(self.output.with_file_name(name).display().to_string())
    }

    /// How the new program is told before there is one.
    pub fn told(&self) -> (PathBuf, PathBuf) {
        let folder = beside(&self.target, "draft");
        (folder.join(NEW), folder)
    }
}

fn text_of(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure::usage(format!("{} has a name that is no text", path.display())))
}

/// What came of giving it a name.
pub(super) struct Named {
    /// The entry that puts the program back.
    pub entry: Option<EntryId>,
    /// Where the program lies until then.
    pub original: Option<String>,
}

/// A draft in its folder; both go when this goes, unless the draft has got its name.
pub(super) struct Draft {
    pub folder: PrivateFolder,
}

impl Draft {
    /// Makes the folder, and so finds out whether anything can be written there.
    pub fn beside(place: &Place) -> Result<Self, Failure> {
        let made = PrivateFolder::beside(&place.target);
        Ok(Self { folder: made.map_err(|error| not_writable(&place.output, error))? })
    }

    /// The draft as BOLT and we name it.
    pub fn path(&self) -> PathBuf {
        self.folder.path(NEW)
    }

    /// What a program has printed, or is called with, without names that are of this process alone.
    pub fn told(&self, text: &str) -> String {
        let own = self.folder.path("").display().to_string();
        text.replace(&own, &self.folder.shown().join("").display().to_string())
    }

    /// Whether a file came to be in the folder.
    pub fn has(&self, name: &str) -> bool {
        self.folder.open(name).is_ok()
    }

    /// The same of the draft.
    pub fn is_there(&self) -> bool {
        self.has(NEW)
    }

    /// Writes a file for BOLT.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.folder.write(name, bytes).map_err(|error| not_writable(&self.folder.shown().join(name), error))
    }

    /// Takes away what a run that failed has left: BOLT writes before it knows.
    pub fn clear(&self) {
        // There may be nothing.
        let _ = self.folder.remove(NEW);
    }

    /// Lends the draft a name in the folder around, where `$ORIGIN` means what it will mean; `None` where the file
    /// system knows one name a file.
    pub fn lend(&self) -> Option<Lent<'_>> {
        self.folder.lend(NEW).ok()
    }

    /// Gives it mode and owner of the program, and in its place all that lies with that; tells what it cannot have.
    pub fn resemble(&self, place: &Place, subject: &Subject) -> Result<Vec<String>, Failure> {
        let failed = |error| not_writable(&place.output, error);
        let file = self.folder.open(NEW).map_err(failed)?;
        let (mode, mut notes) = (subject.metadata.mode(), Vec::new());
        let (user, group) = (subject.metadata.uid(), subject.metadata.gid());
        let drafted = file.metadata().map_err(failed)?;
        let differs = (drafted.uid(), drafted.gid()) != (user, group);
        if differs && fchown(&file, Some(user), Some(group)).is_err() {
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
        let old = planish_sys::file::open(&subject.path).map_err(failed)?;
        if place.kept.is_some() {
            take_attributes(&old, &file).map_err(failed)?;
        } else if !place.is_journaled
            && attributes(&old).map_err(failed)?.iter().any(|name| name == CAPABILITIES)
        {
            notes.push("the new program has no capabilities: they were left out".to_owned());
        }
        // After chown(2), which takes bits away.
        file.set_permissions(Permissions::from_mode(mode & 0o777)).map_err(failed)?;
        Ok(notes)
    }

    /// Has it on the disk, and gives it its name.
    pub fn take_name(
        &self,
        place: &Place,
        args: &Args,
        subject: &Subject,
        context: &Context,
    ) -> Result<Named, Failure> {
        if place.is_journaled {
            return self.replace(place, args, subject, context);
        }
        let named = || -> io::Result<()> {
            self.folder.open(NEW)?.sync_all()?;
            if let Some(kept) = &place.kept {
                // Never over one that came meanwhile: link(2) fails then.
                let names = place.input.file_name().zip(kept.file_name());
                let (name, kept) = names.ok_or(io::ErrorKind::InvalidInput)?;
                self.folder.link_around(name, kept)?;
            }
            self.folder.move_out(NEW, place.target.file_name().ok_or(io::ErrorKind::InvalidInput)?)
        };
        named().map_err(|error| not_writable(&place.output, error))?;
        Ok(Named { entry: None, original: place.kept_as_typed() })
    }

    /// Has the program replaced by an entry of the journal, which undo takes back: what it has of attributes, access
    /// lists and owners comes along, or nothing is replaced.
    fn replace(
        &self,
        place: &Place,
        args: &Args,
        subject: &Subject,
        context: &Context,
    ) -> Result<Named, Failure> {
        let (session, path) = (context.session()?, text_of(&place.input)?);
        let bytes = read_file(&self.path())?;
        let (original, packaged) = (&subject.bytes[..], args.packaged);
        let new = NewProgram { path, original, bytes: &bytes, packaged, reason: None };
        // The draft was tried already, and the copy is held to its sum.
        let replaced = replace_program(&session, &new, &mut |_| Ok(()))?;
        match (replaced.why_not, replaced.entry) {
            (None, entry) => {
                let kept = kept_original(&session, path)?;
                Ok(Named { entry, original: kept.map(|(_, original)| original) })
            }
            (Some(why), None) => Err(Failure::new(Exit::FailedRestored, why).hint("planish ...")),
            (Some(why), Some(entry)) => {
                Err(Failure::new(Exit::FailedNotRestored, why).hint(format!("planish undo {entry}")))
            }
        }
    }
}

/// Gives a file the attributes and access lists of another one: what of them cannot be had is an error.
fn take_attributes(old: &File, new: &File) -> io::Result<()> {
    attributes(old)?.iter().try_for_each(|name| give_attribute(new, name, &attribute(old, name)?))
}
