//! The programs of a trial whose arms are one program, laid out differently.
//!
//! ```text
//! build, once ──> link ──> base ──> record ──> order ──> link ──> order, lld-cdsort
//!                            ├──> BOLT by what was recorded ─────> bolt-functions
//!                            └──> instrument ──> run ──> BOLT ───> bolt
//!                            every one of them ──> record, trace ──> what is told of it
//!                            a copy of it, read in huge pieces ──> huge
//! ```
//!
//! The steps are commands of planish itself, started as children, as a user would type them: what is proven is what is
//! shipped. They keep a journal of their own in the folder of the programs, and change nothing outside of it.
//!
//! A layout that cannot be had here (no `llvm-bolt`) is an arm that is unavailable, and the others go on. The program
//! as it was linked must be had, and what it is recorded to do.

mod folder;
mod steps;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use self::folder::Folder;
use self::steps::Steps;
use crate::arm::Recipe;
use crate::control::{Phase, Tick};
use crate::error::TrialError;
use crate::file::{TextWord, TrialFile};
use crate::outcome::TrialOutcome;
use crate::run::Ground;
use crate::sample::ArmError;

/// Where an arm finds its program.
const PROGRAM: &str = "PLANISH_TEXT";
/// Where all commands find what `build` has left.
const FOLDER: &str = "PLANISH_FOLDER";

/// Of what can lie on huge pages so much must, for an arm to have been on huge pages.
const HUGE_LEAST: f64 = 0.90;

/// The program of an arm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextArm {
    /// What was done to it; nothing for the program as it was linked.
    pub(crate) words: Vec<TextWord>,
    /// The folder of all programs.
    folder: PathBuf,
    /// The program, or why there is none.
    made: Result<Made, ArmError>,
}

/// A program, and what was read of it.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    program: PathBuf,
    facts: BTreeMap<String, Value>,
}

impl TextArm {
    /// What its program finds in its environment.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        let program =
            self.made.as_ref().ok().map(|made| (PROGRAM.to_owned(), made.program.display().to_string()));
        self.env_of_load().into_iter().chain(program).collect()
    }

    /// What a load that is put on its server finds: the same for all arms.
    pub(crate) fn env_of_load(&self) -> BTreeMap<String, String> {
        [(FOLDER.to_owned(), self.folder.display().to_string())].into()
    }

    /// What was read of its program, by name.
    pub(crate) fn facts(&self) -> BTreeMap<String, Value> {
        self.made.as_ref().map(|made| made.facts.clone()).unwrap_or_default()
    }

    /// Whether there is a program.
    pub(crate) fn check(&self) -> Result<(), ArmError> {
        self.made.as_ref().map(drop).map_err(Clone::clone)
    }

    /// The words of a file for it, such as `order, huge`.
    pub(crate) fn words(&self) -> String {
        told::words(&self.words)
    }
}

/// Makes the program of every arm, where the trial has a `[text]`.
///
/// # Errors
/// The folder is not ours; the build, the link or the recording of the program as it is linked fails; it was stopped.
pub(crate) fn make(
    trial: &TrialFile,
    recipes: &mut [Recipe],
    ground: &mut Ground<'_>,
) -> Result<(), TrialError> {
    let Some(spec) = trial.text_spec() else { return Ok(()) };
    let of_file = trial.text.as_ref();
    let folder = of_file.and_then(|text| text.folder.clone());
    let source = of_file.and_then(|text| text.source.as_ref()).map(|source| {
        // Its commands run in another folder than this program.
        let whole = std::fs::canonicalize(source);
        whole.map_err(|error| TrialError::Unreadable { path: source.clone(), source: error })
    });
    let source = source.transpose()?;
    let folder = Folder::open(folder, trial.text_name())?;
    let options = ground.options;
    let wanted: Vec<Vec<TextWord>> = recipes.iter().map(|recipe| recipe.text_words.clone()).collect();
    let layouts: BTreeSet<TextWord> = wanted.iter().filter_map(|words| layout(words)).collect();
    let of = 3 + layouts.len() + wanted.iter().filter(|words| words.contains(&TextWord::Huge)).count();
    let mut done = 0;
    let mut tick = || {
        ground.progress.tick(&Tick { phase: Phase::Prepare, done, of, left_seconds: f64::INFINITY });
        done += 1;
    };
    let sample = if spec.sample.is_empty() { trial.workload.command.clone() } else { spec.sample.clone() };
    let steps = Steps { folder: &folder, spec: &spec, sample, source, options };
    tick();
    steps.build()?;
    tick();
    let base = steps.base()?;
    let mut made = BTreeMap::from([(None, Ok(base))]);
    for layout in layouts {
        tick();
        let program = steps.lay_out(layout).map_err(lacking);
        stopped(program.as_ref().err())?;
        made.insert(Some(layout), program);
    }
    tick();
    for (recipe, words) in recipes.iter_mut().zip(wanted) {
        let mut program = made[&layout(&words)].clone();
        if words.contains(&TextWord::Huge) {
            tick();
            program = program.and_then(|laid| steps.on_huge_pages(&recipe.name, &laid).map_err(lacking));
            stopped(program.as_ref().err())?;
        }
        if let Ok(made) = &mut program {
            made.facts.insert("text".to_owned(), json!(words));
        }
        recipe.text = Some(TextArm { words, folder: folder.path().to_owned(), made: program });
    }
    Ok(())
}

/// Looks once more at what was on huge pages before the first unit, and tells it in the outcome: memory that ran short
/// meanwhile takes it away, and then the figure of the arm is of something else.
pub(crate) fn look_again(recipes: &[Recipe], ground: &Ground<'_>, outcome: &mut TrialOutcome) {
    if let Some(text) = recipes.first().and_then(|recipe| recipe.text.as_ref()) {
        let facts = &mut outcome.baseline_achieved.get_or_insert_default().facts;
        facts.extend(text.facts());
    }
    for recipe in recipes.iter().skip(1) {
        let Some((text, Ok(made))) = recipe.text.as_ref().map(|text| (text, &text.made)) else { continue };
        let rung = outcome.rungs.iter_mut().find(|rung| rung.name == recipe.name);
        let mut achieved = rung.map(|rung| rung.achieved.get_or_insert_default());
        // One that never ran has a program all the same.
        achieved.iter_mut().for_each(|achieved| achieved.facts.extend(made.facts.clone()));
        if !text.words.contains(&TextWord::Huge) {
            continue;
        }
        let cached = steps::cached(&made.program, ground.options).unwrap_or_default();
        let is_huge = |facts: &BTreeMap<String, Value>| {
            let bytes = |name: &str| facts.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let whole = bytes("text_whole_bytes");
            whole > 0.0 && bytes("text_huge_bytes") >= HUGE_LEAST * whole
        };
        let held = is_huge(&made.facts) && is_huge(&cached);
        if let Some(achieved) = achieved {
            achieved.verified = Some(held);
            let after = cached.get("text_huge_bytes").cloned().unwrap_or(Value::Null);
            achieved.facts.insert("text_huge_after_bytes".to_owned(), after);
        }
        if !held {
            outcome.notes.push(format!(
                "`{}`: its text was not on huge pages until the end, so that its figure is not of them; \
                 planish text huge {} --prepare makes room",
                recipe.name,
                made.program.display()
            ));
        }
    }
}

fn layout(words: &[TextWord]) -> Option<TextWord> {
    words.iter().copied().find(|word| word.is_layout())
}

/// A program that cannot be made says nothing of what it would do: as with a build that fails, its arm cannot be had.
fn lacking(error: ArmError) -> ArmError {
    match error {
        ArmError::Crashed { .. } | ArmError::TimedOut { .. } => {
            ArmError::unavailable(format!("its program cannot be made: {error}"))
        }
        error => error,
    }
}

/// A stop ends the trial, whichever arm it came in.
fn stopped(error: Option<&ArmError>) -> Result<(), TrialError> {
    match error {
        Some(ArmError::Stopped) => Err(TrialError::Stopped),
        _ => Ok(()),
    }
}
