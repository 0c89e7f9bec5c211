//! Builds of an arm's program: made once before the trial, each with its own seed, and known by their hashes.
//!
//! One build is one layout of code. A verdict over one artefact holds for its bytes, which is what gets deployed; a
//! claim about the recipe needs several builds, which differ in what the recipe leaves to chance: the order of objects
//! and functions. The build command gets a seed for that (`--shuffle-sections` of lld and mold, an order file).

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use planish_stats::Rng;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::arm::Recipe;
use crate::child::{Launch, run_once};
use crate::control::Stop;
use crate::sample::ArmError;

/// What stands for the number of a build in the words of an arm.
pub(crate) const BUILD_HOLE: &str = "{build}";
/// Most builds of an arm.
pub(crate) const BUILDS_MAX: usize = 64;

/// How long a build may take.
const BUILD_LIMIT: Duration = Duration::from_secs(3 * 3600);
/// Seeds of builds stay below this: linkers take numbers of 32 bits, some of them with a sign.
const SEED_MAX: u64 = 1 << 31;
/// Draws of builds are another stream of the trial's seed than those of its blocks.
const STREAM: u64 = 0x6275_696c_6400;

impl Recipe {
    /// Programs that it has: one a build.
    pub(crate) fn builds(&self) -> usize {
        self.rebuilds.max(1)
    }

    /// What it is with one of its builds.
    pub(crate) fn of_build(&self, index: usize) -> Self {
        let mut recipe = self.clone();
        if self.rebuilds == 0 {
            return recipe;
        }
        let fill = |word: &mut String| *word = word.replace(BUILD_HOLE, &index.to_string());
        recipe.program.iter_mut().for_each(fill);
        recipe.args.iter_mut().for_each(fill);
        recipe.env.values_mut().for_each(fill);
        recipe.build.iter_mut().flatten().for_each(fill);
        recipe
    }

    /// Runs its build commands for one of its builds, and tells what the artefact is.
    pub(crate) fn build(
        &self,
        index: usize,
        seed: u64,
        stop: &Stop,
    ) -> Result<BTreeMap<String, Value>, ArmError> {
        let recipe = self.of_build(index);
        for command in &recipe.build {
            let mut launch = Launch { loud: true, ..Launch::of(command.clone()) };
            launch.env.insert("PLANISH_BUILD_SEED".to_owned(), seed.to_string());
            launch.env.insert("PLANISH_BUILD_INDEX".to_owned(), index.to_string());
            run_once(&launch, 0, BUILD_LIMIT, stop).map_err(|error| match error {
                ArmError::Stopped => ArmError::Stopped,
                error => ArmError::unavailable(format!("its build fails: {error}")),
            })?;
        }
        let mut facts = BTreeMap::new();
        if let Some(program) = &recipe.program {
            let sha256 = fingerprint(program.as_ref())?;
            facts.insert("program".to_owned(), json!(program));
            facts.insert("program_sha256".to_owned(), json!(sha256));
        }
        if self.rebuilds > 0 && !recipe.build.is_empty() {
            facts.insert("build_seed".to_owned(), json!(seed));
        }
        Ok(facts)
    }
}

/// The seed of a build: another one for each arm and each of its builds, and never 0, which linkers take for "any".
pub(crate) fn seed_of(trial_seed: u64, arm: usize, index: usize) -> u64 {
    let stream = STREAM + ((arm as u64) << 8) + index as u64;
    1 + Rng::stream(trial_seed, stream).next_u64() % (SEED_MAX - 1)
}

/// The build whose turn it is in a block: all of them in every so many blocks, in an order of their own.
pub(crate) fn turn_of(trial_seed: u64, block: usize, builds: usize) -> usize {
    let mut order: Vec<usize> = (0..builds).collect();
    Rng::stream(trial_seed, !STREAM - (block / builds) as u64).shuffle(&mut order);
    order[block % builds]
}

/// sha256 of a program: the verdict holds for these bytes and no others.
pub(crate) fn fingerprint(program: &std::path::Path) -> Result<String, ArmError> {
    let missing = |error: std::io::Error| {
        ArmError::unavailable(format!("its program {} cannot be read: {error}", program.display()))
    };
    let mut file = planish_sys::file::open(program).map_err(missing)?;
    let mut hash = Sha256::new();
    let mut chunk = [0; 1 << 16];
    loop {
        match file.read(&mut chunk).map_err(missing)? {
            0 => break,
            length => hash.update(&chunk[..length]),
        }
    }
    Ok(crate::proof::hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_build_has_its_turn_as_often_as_the_others() {
        let turns: Vec<usize> = (0..24).map(|block| turn_of(7, block, 3)).collect();
        for cycle in turns.chunks_exact(3) {
            let mut sorted = cycle.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert!(turns.chunks_exact(3).any(|cycle| cycle != &turns[..3]), "and not always in one order");
        assert_eq!(turn_of(7, 5, 1), 0);
    }

    #[test]
    fn holes_are_filled_and_seeds_differ() {
        let mut recipe = Recipe { program: Some("./out/{build}/app".to_owned()), ..Recipe::default() };
        assert_eq!((recipe.builds(), recipe.of_build(0).program), (1, recipe.program.clone()));
        recipe.rebuilds = 3;
        recipe.build = vec![vec!["make".to_owned(), "OUT=out/{build}".to_owned()]];
        let second = recipe.of_build(2);
        assert_eq!(second.program.as_deref(), Some("./out/2/app"));
        assert_eq!(second.build[0][1], "OUT=out/2");
        let seeds: std::collections::BTreeSet<u64> =
            (0..4).flat_map(|arm| (0..8).map(move |index| seed_of(1, arm, index))).collect();
        assert_eq!(seeds.len(), 32);
        assert!(seeds.iter().all(|seed| (1..SEED_MAX).contains(seed)), "{seeds:?}");
    }
}
