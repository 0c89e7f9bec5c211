//! `planish prove`: the experiments that come with the program.
//!
//! `planish prove postgres` is [`crate::postgres`], `planish prove numa` [`crate::numa`], and `planish prove text` a
//! shipped trial file whose programs [`crate::text`] makes. `planish prove series` tells
//! what page sizes and pinning give the embedded workload on this machine. The experiment is the shipped trial file
//! `series`; what is added here is its size: as many bytes for each arm as this machine has to spare while all of them
//! are resident.

use std::path::PathBuf;

use planish_model::{HostFacts, Want};
use planish_pipeline::Session;

use crate::control::Progress;
use crate::error::TrialError;
use crate::file::TrialFile;
use crate::kernel;
use crate::outcome::TrialOutcome;
use crate::postgres::{self, PostgresOptions};
use crate::run::{Ground, RunOptions, on_session, run_on};

pub use crate::numa::{numa, numa_on};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Working sets of one arm that are tried, the largest first.
const SETS: [u64; 3] = [512 * MIB, 256 * MIB, 128 * MIB];

/// Largest working set of the short form: each unit is a fresh start, and most of a start is filling the set.
const QUICK_SET: u64 = 128 * MIB;

/// What an arm takes beyond its working set: page tables, output columns, the program itself.
const OVERHEAD: f64 = 1.25;

/// `planish prove series` on the host of a session.
///
/// # Errors
/// As [`series_on`].
pub fn series(
    session: &Session,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<TrialOutcome, TrialError> {
    on_session(session, options, true, progress, series_on)
}

/// `planish prove postgres` on the host of a session.
///
/// # Errors
/// As [`postgres::prove_on`].
pub fn postgres(
    session: &Session,
    wishes: &PostgresOptions,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<TrialOutcome, TrialError> {
    on_session(session, options, true, progress, |ground| postgres::prove_on(wishes, ground))
}

/// What is wanted of `planish prove text`.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Under a load at a fixed rate, instead of one backend at its full speed.
    pub load: bool,
    /// Where its programs are built and kept.
    pub folder: Option<PathBuf>,
    /// An unpacked source of PostgreSQL, instead of the distribution's package.
    pub source: Option<PathBuf>,
}

/// `planish prove text` on the host of a session, of which nothing is set.
///
/// # Errors
/// As [`run_on`].
pub fn text(
    session: &Session,
    wishes: &TextOptions,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<TrialOutcome, TrialError> {
    let mut trial = TrialFile::shipped(if wishes.load { "text-load" } else { "text" })?;
    let spec = trial.text.as_mut().expect("the shipped files have it, which a test looks at");
    spec.folder.clone_from(&wishes.folder);
    spec.source.clone_from(&wishes.source);
    on_session(session, options, false, progress, |ground| run_on(&trial, ground))
}

/// Runs the trial `series`, at a size that this machine has to spare.
///
/// # Errors
/// As [`run_on`], and when not even the smallest size fits.
pub fn series_on(ground: &mut Ground<'_>) -> Result<TrialOutcome, TrialError> {
    let mut trial = TrialFile::shipped("series")?;
    let facts = ground.host.facts();
    let available = kernel::memory_available_bytes().unwrap_or(facts.available_bytes);
    let most = if ground.options.quick { QUICK_SET } else { SETS[0] };
    let bytes = set_bytes(&trial, &facts, available)?.min(most);
    size(&mut trial, bytes);
    run_on(&trial, ground)
}

/// Memory that stays free whatever we do: a quarter, and 6 GiB where that is less.
pub(crate) fn floor(facts: &HostFacts) -> u64 {
    (facts.memory_bytes / 4).min(6 * GIB)
}

fn set_bytes(trial: &TrialFile, facts: &HostFacts, available: u64) -> Result<u64, TrialError> {
    let spare = available.saturating_sub(floor(facts));
    let fits = |set: &u64| needed(trial, *set) <= spare;
    SETS.into_iter().find(fits).ok_or_else(|| TrialError::Refused {
        what: format!(
            "the arms need {} MiB together and {} MiB can be spared",
            needed(trial, SETS[SETS.len() - 1]) / MIB,
            spare / MIB
        ),
        cure: kernel::memory_cure(),
    })
}

/// Bytes of all arms together, the placebo included.
fn needed(trial: &TrialFile, set: u64) -> u64 {
    let arm = (set as f64 * OVERHEAD) as u64;
    let rungs = trial.rung.iter().map(|rung| if wants_1g(rung) { arm.next_multiple_of(GIB) } else { arm });
    2 * arm + rungs.sum::<u64>()
}

fn wants_1g(rung: &crate::file::ArmSpec) -> bool {
    rung.want.keys().any(|id| id.get_ref().starts_with("hugepages.1g"))
}

/// Sets the size of the working set, and of the pools that must hold it.
fn size(trial: &mut TrialFile, set: u64) {
    let command = &mut trial.workload.command;
    if let Some(place) = command.iter().position(|word| word == "--bytes") {
        command[place + 1] = set.to_string();
    }
    for want in trial.rung.iter_mut().flat_map(|rung| rung.want.values_mut()) {
        if let Want::Need { need_bytes, .. } = want {
            *need_bytes = (set as f64 * OVERHEAD) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(memory_bytes: u64) -> HostFacts {
        HostFacts { memory_bytes, ..HostFacts::default() }
    }

    #[test]
    fn the_set_shrinks_with_the_memory_to_spare() {
        let trial = TrialFile::shipped("series").expect("shipped");
        assert_eq!(set_bytes(&trial, &facts(24 * GIB), 20 * GIB).expect("it fits"), 512 * MIB);
        let small = set_bytes(&trial, &facts(8 * GIB), 5 * GIB).expect("a smaller one fits");
        assert!(small < 512 * MIB, "{small}");
        let error = set_bytes(&trial, &facts(2 * GIB), GIB).expect_err("nothing fits");
        assert!(error.to_string().contains("can be spared"), "{error}");
        assert_eq!(error.exit(), planish_model::Exit::Refused);
    }

    #[test]
    fn size_reaches_the_command_and_the_pools() {
        let mut trial = TrialFile::shipped("series").expect("shipped");
        size(&mut trial, 256 * MIB);
        assert!(trial.workload.command.windows(2).any(|pair| pair[0] == "--bytes" && pair[1] == "268435456"));
        let needs: Vec<u64> = trial
            .rung
            .iter()
            .flat_map(|rung| rung.want.values())
            .filter_map(|want| match want {
                Want::Need { need_bytes, .. } => Some(*need_bytes),
                _ => None,
            })
            .collect();
        assert_eq!(needs, [320 * MIB; 2]);
    }
}
