//! A program's file that changes names with a copy of it that lies beside it, and changes them back.
//!
//! ```text
//!  NAME  original          NAME  original           NAME  new
//!                  make                    exchange
//!                 ─────>   .NAME.planish   ─────>   .NAME.planish
//!                          new                      original
//! ```
//!
//! The exchange is one call (renameat2 with `RENAME_EXCHANGE`): there is a whole file under the name at every moment,
//! and a kill leaves one of the three pictures above, or a piece of a copy where the second has one. Which of them it
//! is, the sums of both files tell; so nothing but the journal, which has them, is needed to go back. Who runs the
//! original goes on running it.

use std::io;

use planish_model::{EntryStep, Outcome, OutcomeKind};

use crate::error::SinkError;

mod guard;
mod live;
mod rights;

pub use guard::ProgramRefusal;
pub use live::LivePrograms;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That with the program's name.
    Named,
    /// That beside it.
    Beside,
}

/// What tells whether a file is the same as a moment ago, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Device and inode.
    pub file: (u64, u64),
    /// Its length.
    pub bytes: u64,
    /// When its content, and its name or rights, changed last, in nanoseconds.
    pub changed: [i128; 2],
}

/// The files of programs on a host.
pub trait Programs {
    /// Refuses programs whose file is not replaced, and tells the mark of one that may be.
    ///
    /// # Errors
    /// Why it is not replaced.
    fn guard(&self, path: &str, packaged: bool) -> Result<Mark, ProgramRefusal>;

    /// The sum of a file's content; `None` where there is none.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn sum(&self, path: &str, side: Side) -> Result<Option<String>, SinkError>;

    /// The mark of a program's file.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn mark(&self, path: &str) -> Result<Mark, SinkError>;

    /// Where in a program's file a uprobe is armed for all processes: it belongs to the file, whatever that is called.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn probed(&self, path: &str) -> Result<Option<u64>, SinkError>;

    /// Whether a file of so many bytes could be made beside a program, as far as that is known before it is made.
    ///
    /// # Errors
    /// As [`Self::make`] would.
    fn room(&self, path: &str, bytes: u64) -> Result<(), SinkError>;

    /// Makes the file beside a program that is still the one of this mark, with its owner, mode, and all else that lies
    /// with it: capabilities, access lists, labels. It is on the disk when this returns, in the page cache in pieces of
    /// huge pages.
    ///
    /// # Errors
    /// The file and what the kernel says, or that it is another one; then nothing is left of it.
    fn make(&self, path: &str, origin: &Mark, bytes: &[u8]) -> Result<(), SinkError>;

    /// Gives the file beside a program what lies with that now, content apart: who has changed its mode meant the
    /// program. Whether anything differed.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn keep_rights(&self, path: &str) -> Result<bool, SinkError>;

    /// Has both files change names.
    ///
    /// # Errors
    /// The file and what the kernel says; then neither has another name.
    fn exchange(&self, path: &str) -> Result<(), SinkError>;

    /// Gives the file beside a program the program's name, which no file has.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn give_name(&self, path: &str) -> Result<(), SinkError>;

    /// Removes the file beside a program; one that is not there is removed already.
    ///
    /// # Errors
    /// The file and what the kernel says.
    fn remove(&self, path: &str) -> Result<(), SinkError>;

    /// Where a file really is, to be tried.
    fn real(&self, path: &str, side: Side) -> std::path::PathBuf;
}

/// The name of the file beside a program.
#[must_use]
pub fn beside(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/.{name}.planish"),
        None => format!(".{path}.planish"),
    }
}

/// The sum of a content, as steps have it.
#[must_use]
pub fn sum_of(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Has a program replaced: makes the new file, has it tried, and lets both change names. `trial` says why it is not
/// used, where that is so.
///
/// The outcome is [`OutcomeKind::Done`] or [`OutcomeKind::Failed`]; of the latter nothing is left on the host, or the
/// detail says what.
pub fn replace(
    step: &EntryStep,
    (mark, bytes): (Mark, &[u8]),
    trial: &mut dyn FnMut(&std::path::Path) -> Result<(), String>,
    programs: &dyn Programs,
) -> Outcome {
    let path = step.place.as_str();
    let made = programs.make(path, &mark, bytes).map_err(|error| error.in_full());
    let tried = made.and_then(|()| trial(&programs.real(path, Side::Beside)));
    // Who wrote to it, or replaced it, meanwhile is not in the copy.
    let same = tried.and_then(|()| match programs.mark(path) {
        Ok(now) if now == mark => Ok(()),
        Ok(_) => Err("somebody changed it meanwhile".to_owned()),
        Err(error) => Err(error.in_full()),
    });
    let unprobed = same.and_then(|()| match programs.probed(path) {
        Ok(None) => Ok(()),
        Ok(Some(at)) => Err(format!("somebody set a uprobe on it meanwhile, at offset {at:#x}")),
        Err(error) => Err(error.in_full()),
    });
    let exchanged = unprobed.and_then(|()| programs.exchange(path).map_err(|error| error.in_full()));
    let settled = exchanged.and_then(|()| settle(step, programs));
    match settled {
        Ok(()) => Outcome {
            read_back: Some(step.wanted.clone()),
            ..Outcome::new(step.knob.clone(), path, OutcomeKind::Done)
        },
        Err(why) => failed(step, why, &mark, programs),
    }
}

/// Looks at both files afresh. Between the last look and the exchange somebody may have put another file there, which
/// lies beside it now: it goes back to its name.
fn settle(step: &EntryStep, programs: &dyn Programs) -> Result<(), String> {
    let path = step.place.as_str();
    let sum = |side| programs.sum(path, side).map_err(|error| error.in_full());
    let original = step.original().map(|original| original.value.clone());
    let (named, beside) = (sum(Side::Named)?, sum(Side::Beside)?);
    if named.as_deref() == Some(step.wanted.as_str()) && beside == original {
        return Ok(());
    }
    if named.as_deref() == Some(step.wanted.as_str()) && beside.is_some() {
        programs.exchange(path).map_err(|error| error.in_full())?;
    }
    Err("somebody replaced it at the same moment: that file has the name".to_owned())
}

/// Whether the new file has the name: by which file it is, since a copy that is only written otherwise has the sum of
/// its origin.
pub fn has_name(step: &EntryStep, mark: &Mark, programs: &dyn Programs) -> bool {
    match programs.mark(&step.place) {
        Ok(now) if now.file == mark.file => false,
        _ => match programs.sum(&step.place, Side::Named) {
            Ok(sum) => sum.as_deref() == Some(step.wanted.as_str()),
            Err(_) => true,
        },
    }
}

/// Removes what was made, where it did not come to be used.
fn failed(step: &EntryStep, why: String, mark: &Mark, programs: &dyn Programs) -> Outcome {
    let path = step.place.as_str();
    let left = if has_name(step, mark, programs) {
        Some(format!("the new file has its name, and the original is {}", beside(path)))
    } else {
        // On a read-only mount a file that was never made cannot be removed for the same reason.
        programs.remove(path).err().map(|error| error.in_full()).filter(|left| *left != why)
    };
    let detail = left.map_or(why.clone(), |left| format!("{why}; {left}"));
    Outcome { detail: Some(detail), ..Outcome::new(step.knob.clone(), path, OutcomeKind::Failed) }
}

/// Gives a program its original back, where the file with its name is still ours.
pub fn take_back(step: &EntryStep, force: bool, programs: &dyn Programs) -> Outcome {
    let path = step.place.as_str();
    let mut outcome = Outcome::new(step.knob.clone(), path, OutcomeKind::Failed);
    match taken_back(step, force, programs) {
        Ok((kind, detail)) => (outcome.outcome, outcome.detail) = (kind, detail),
        Err(error) => outcome.detail = Some(error.in_full()),
    }
    outcome
}

type Told = (OutcomeKind, Option<String>);

fn taken_back(step: &EntryStep, force: bool, programs: &dyn Programs) -> Result<Told, SinkError> {
    let path = step.place.as_str();
    let original = step.original().map(|original| original.value.as_str());
    let (named, other) = (programs.sum(path, Side::Named)?, programs.sum(path, Side::Beside)?);
    let (is_ours, is_back) = (named.as_deref() == Some(step.wanted.as_str()), named.as_deref() == original);
    let is_kept = other.is_some() && other.as_deref() == original;
    let aside = beside(path);
    if is_back {
        // What lies beside it is ours, or a piece of it: nobody else is given that name.
        programs.remove(path)?;
        return Ok((OutcomeKind::Satisfied, None));
    }
    if is_kept && (is_ours || (force && named.is_some())) {
        // What has been done to its rights since is somebody else's change, and no part of ours.
        let differed = is_ours && programs.keep_rights(path)?;
        // An undo is not kept from anybody by who listens; that he hears nothing from here on is told.
        let probed = programs.probed(path).ok().flatten();
        programs.exchange(path)?;
        programs.remove(path)?;
        let rights =
            differed.then(|| "owner, mode or attributes were changed since, and are kept".to_owned());
        let probed =
            probed.map(|at| format!("its uprobe at offset {at:#x} went with the other file: set it afresh"));
        let told: Vec<String> = rights.into_iter().chain(probed).collect();
        return Ok((OutcomeKind::Done, (!told.is_empty()).then(|| told.join("; "))));
    }
    if is_kept && force {
        programs.give_name(path)?;
        return Ok((OutcomeKind::Done, None));
    }
    if is_ours {
        let lost = format!(
            "the original is no longer in {aside}: what has the name does the same, and a package that has the file \
             brings its own back when it is installed again"
        );
        let kind = if force { OutcomeKind::Theirs } else { OutcomeKind::Failed };
        let cure = if force { "given up: " } else { "" };
        let hint = if force { "" } else { " (--force gives it up)" };
        return Ok((kind, Some(format!("{cure}{lost}{hint}"))));
    }
    let what = if named.is_some() { "somebody replaced it since" } else { "somebody removed it since" };
    let kept = if is_kept {
        format!("; the original of then is {aside}, and goes with: rm {aside}")
    } else {
        String::new()
    };
    Ok((OutcomeKind::Theirs, Some(format!("{what}, theirs was kept{kept}"))))
}

/// An error that this module finds itself.
pub(crate) fn other(path: &str, why: &'static str) -> SinkError {
    SinkError::new(crate::error::Operation::Replace, path, io::Error::other(why))
}
