//! Proofs: outcomes as they were, stored under the hash of their own bytes, and what they say of our honesty.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use planish_stats::binomial::clopper_pearson;
use planish_sys::file::make_private_folders;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::TrialError;
use crate::outcome::{Rung, RungVerdict, TrialOutcome};

/// How often the placebo was kept, over all proofs of a state folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Honesty {
    /// Ladders whose placebo could have been kept.
    pub placebos: u64,
    /// Placebos that were kept: gains found where there is none.
    pub kept: u64,
    /// Their share; null without any placebo, and so are the ends of its interval.
    pub rate: Option<f64>,
    /// Lower end of its exact 95 % interval (Clopper and Pearson).
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Proofs of trials in which nothing could have kept the placebo, counted by none of the figures above: stopped,
    /// out of time before pairs enough for a verdict, failed, in slices of one start only, or of a version that did not
    /// tell. They would only make the rate smaller.
    pub left_out: u64,
    /// Files that are no proofs, or were changed since they were stored: counted by none of the figures
    /// above.
    pub damaged: Vec<PathBuf>,
}

/// A folder of proofs.
#[derive(Clone, Debug)]
pub struct Proofs {
    folder: PathBuf,
}

impl Proofs {
    /// The proofs of a state folder (`/var/lib/planish`, or what `--state` names).
    #[must_use]
    pub fn of_state(state: &Path) -> Self {
        Self { folder: state.join("proofs") }
    }

    /// Fails where [`Self::store`] would, before the minutes of measuring that it is to tell of. Leaves nothing behind.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn check_writable(&self) -> Result<(), TrialError> {
        let missing: Vec<&Path> = self.folder.ancestors().take_while(|folder| !folder.exists()).collect();
        let file = self.folder.join(format!("{}.test", std::process::id()));
        let tested = write_whole(&file, b"{}").and_then(|()| fs::remove_file(&file));
        // What was made only for the test goes again, the innermost folder first.
        for folder in missing {
            let _ = fs::remove_dir(folder);
        }
        tested.map_err(|source| self.unwritable(source))
    }

    /// Stores an outcome and gives its id, which it gets too. Equal outcomes are one proof.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn store(&self, outcome: &mut TrialOutcome) -> Result<String, TrialError> {
        outcome.proof_id = None;
        let text = serde_json::to_string_pretty(outcome).expect("an outcome is plain data with text keys");
        let id = hex(&Sha256::digest(text.as_bytes()));
        let path = self.path(&id);
        write_whole(&path, text.as_bytes()).map_err(|source| self.unwritable(source))?;
        outcome.proof_id = Some(id.clone());
        Ok(id)
    }

    /// Reads a proof back, and checks that it is what was stored.
    ///
    /// # Errors
    /// It is not there, or was changed since.
    pub fn load(&self, id: &str) -> Result<TrialOutcome, TrialError> {
        let path = self.path(id);
        let mut outcome = load(&path).map_err(|source| TrialError::File { path, source })?;
        outcome.proof_id = Some(id.to_owned());
        Ok(outcome)
    }

    /// The proof of the trial that began last, of those that are `wanted`; `None` without any.
    ///
    /// # Errors
    /// The folder is there and cannot be read.
    pub fn newest(&self, wanted: impl Fn(&TrialOutcome) -> bool) -> Result<Option<TrialOutcome>, TrialError> {
        let told = |path: &PathBuf| {
            let mut outcome = load(path).ok().filter(&wanted)?;
            outcome.proof_id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            Some(outcome)
        };
        let paths = self.paths()?;
        Ok(paths.iter().filter_map(told).max_by_key(|outcome| outcome.started_at))
    }

    /// How often the placebo was kept so far.
    ///
    /// # Errors
    /// The folder is there and cannot be read.
    pub fn honesty(&self) -> Result<Honesty, TrialError> {
        let (mut placebos, mut kept, mut left_out, mut damaged) = (0, 0, 0, Vec::new());
        for path in self.paths()? {
            let Ok(outcome) = load(&path) else {
                damaged.push(path);
                continue;
            };
            // By what the run was, never by how it came out: that would be a choice by outcome.
            let tested = |rung: &&Rung| rung.name == TrialOutcome::PLACEBO && rung.tested == Some(true);
            match outcome.rungs.iter().find(tested) {
                Some(placebo) => {
                    placebos += 1;
                    kept += u64::from(placebo.verdict == RungVerdict::Keep);
                }
                None => left_out += 1,
            }
        }
        let rate = clopper_pearson(kept, placebos, 0.95).expect("fewer are kept than there are");
        // None of none is no share, and 0 % would be good news.
        let of_some = |value| (placebos > 0).then_some(value);
        let (low, high) = (of_some(rate.interval.low), of_some(rate.interval.high));
        Ok(Honesty { placebos, kept, rate: of_some(rate.value), low, high, left_out, damaged })
    }

    fn unwritable(&self, source: io::Error) -> TrialError {
        TrialError::Unwritable { path: self.folder.clone(), source }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    #[expect(clippy::disallowed_methods, reason = "our own folder of proofs, and no file of a host")]
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, TrialError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(TrialError::File { path: self.folder.clone(), source }),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        Ok(paths)
    }
}

/// Reads a proof that is what was stored under its name.
pub(crate) fn load(path: &Path) -> io::Result<TrialOutcome> {
    let text = planish_sys::file::read_text(path)?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if hex(&Sha256::digest(text.as_bytes())) != name {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not what was stored under this name"));
    }
    serde_json::from_str(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a file that is there whole or not at all, also after a power cut. The folders above it are those of the
/// journal, whoever makes them first: for their owner's eyes only.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    make_private_folders(folder)?;
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let mut file = File::create(&draft)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Half a draft helps nobody on a disk that is full.
        let _ = fs::remove_file(&draft);
    }
    written.and_then(|()| File::open(folder)?.sync_all())
}

/// Bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::UnitKind;
    use crate::outcome::tests::{blank, rung};

    fn with_placebo(seed: u64, verdict: RungVerdict) -> TrialOutcome {
        let mut outcome = blank();
        (outcome.seed, outcome.unit) = (seed, UnitKind::Start);
        outcome.rungs.push(rung(TrialOutcome::PLACEBO, verdict));
        outcome.rungs[0].pairs = 12;
        outcome.rungs[0].tested = Some(true);
        outcome
    }

    #[test]
    fn a_proof_is_found_under_its_hash_and_a_changed_one_is_not_believed() {
        let state = tempfile::tempdir().expect("a folder");
        let proofs = Proofs::of_state(state.path());
        let mut outcome = with_placebo(1, RungVerdict::Drop);
        let id = proofs.store(&mut outcome).expect("it is stored");
        assert_eq!(outcome.proof_id.as_deref(), Some(id.as_str()));
        assert_eq!(proofs.load(&id).expect("it is there"), outcome);
        assert_eq!(proofs.store(&mut outcome).expect("once more"), id, "equal outcomes are one proof");
        let path = proofs.path(&id);
        let mut file = fs::OpenOptions::new().append(true).open(&path).expect("it is ours");
        file.write_all(b" ").expect("it can be changed");
        assert!(proofs.load(&id).is_err());
        assert_eq!(proofs.honesty().expect("readable").damaged, [path]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_known_before_and_a_good_one_is_left_as_it_was() {
        let proofs = Proofs::of_state(Path::new("/proc/no-such-folder/state"));
        let error = proofs.check_writable().expect_err("nobody may write there");
        assert_eq!(error.exit(), planish_model::Exit::Refused);
        assert_eq!(
            error.hints(),
            [
                "make /proc/no-such-folder/state writable and give it room, or name another folder with --state"
            ]
        );
        let folder = tempfile::tempdir().expect("a folder");
        let proofs = Proofs::of_state(&folder.path().join("state"));
        proofs.check_writable().expect("it can be made");
        assert!(!folder.path().join("state").exists(), "a trial that is refused later leaves no folder");
        proofs.store(&mut with_placebo(1, RungVerdict::Drop)).expect("stored");
        proofs.check_writable().expect("it is there");
        assert_eq!(proofs.paths().expect("readable").len(), 1);
    }

    #[test]
    fn honesty_counts_placebos_that_could_have_been_kept_and_how_many_could_not() {
        let state = tempfile::tempdir().expect("a folder");
        let proofs = Proofs::of_state(state.path());
        let none = proofs.honesty().expect("nothing yet");
        assert_eq!((none.placebos, none.rate, none.low, none.high), (0, None, None, None));
        for seed in 0..19 {
            proofs.store(&mut with_placebo(seed, RungVerdict::Drop)).expect("stored");
        }
        proofs.store(&mut with_placebo(99, RungVerdict::Keep)).expect("stored");
        // Short runs, or stopped ones, however many.
        for seed in 100..200 {
            let mut short = with_placebo(seed, RungVerdict::Inconclusive);
            short.rungs[0].tested = Some(false);
            proofs.store(&mut short).expect("stored");
        }
        // Of a version that did not tell, and it does not matter how it came out.
        for (seed, verdict) in [(200, RungVerdict::Drop), (201, RungVerdict::Keep)] {
            let mut before = with_placebo(seed, verdict);
            before.rungs[0].tested = None;
            proofs.store(&mut before).expect("stored");
        }
        let honesty = proofs.honesty().expect("readable");
        assert_eq!((honesty.placebos, honesty.kept, honesty.rate), (20, 1, Some(0.05)));
        assert_eq!(honesty.left_out, 102);
        let (low, high) = honesty.low.zip(honesty.high).expect("there are placebos");
        assert!(low > 0.0 && low < 0.05 && high > 0.05 && high < 0.25);
    }
}
