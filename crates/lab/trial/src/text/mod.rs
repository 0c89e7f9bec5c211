//! The programs of a trial whose arms are one program, laid out differently.
//!
//! ```text
//! build, once ──> link ──> base ──> record ──> order ──> link ──> order, order-traced, lld-cdsort
//!                            ├──> BOLT by what was recorded ─────> bolt-functions
//!                            └──> instrument ──> run ──> BOLT ───> bolt
//!                            every one of them ──> record, trace ──> what is told of it
//!                            a copy of it, read in huge pieces ──> huge
//! ```
//!
//! The steps are commands of planish itself, started as children, as a user would type them. (`order-traced` is the one
//! that none of them gives: it takes the best of their orders by a run of each.) They keep a journal of their own in
//! the folder of the programs, and change nothing outside of it.
//!
//! A layout that cannot be had here (no `llvm-bolt`), or that answers otherwise than the program as it was linked, is
//! an arm that is unavailable, and the others go on. The program as it was linked must be had, and what it is recorded
//! to do.

mod again;
mod folder;
mod steps;
mod told;

pub(crate) use again::look_again;
pub(crate) use folder::Folder;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use self::steps::Steps;
use crate::arm::Recipe;
use crate::control::{Phase, Tick};
use crate::error::TrialError;
use crate::file::{TextWord, TrialFile};
use crate::run::Ground;
use crate::sample::ArmError;

/// Where an arm finds its program.
const PROGRAM: &str = "PLANISH_TEXT";
/// Where all commands find what `build` has left.
const FOLDER: &str = "PLANISH_FOLDER";

/// Of what can lie on huge pages so much must, for an arm to be on huge pages.
const HUGE_LEAST: f64 = 0.90;

/// The program of an arm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextArm {
    /// What was done to it; nothing for the program as it was linked.
    pub(crate) words: Vec<TextWord>,
    /// The folder of all programs.
    folder: PathBuf,
    /// Another copy of the program as it was linked, for the placebo: the page cache deals pages to a file once, and
    /// two arms on one file would share that draw.
    twin: Option<PathBuf>,
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

    /// The same arm on the other copy of its program.
    pub(crate) fn twin(&self) -> Self {
        let mut twin = self.clone();
        if let (Ok(made), Some(program)) = (&mut twin.made, &self.twin) {
            made.program.clone_from(program);
            made.facts.insert("program".to_owned(), json!(program));
        }
        twin
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

/// Makes the program of every arm, where the trial has a `[text]`. Nobody else makes programs in the folder that it
/// gives for as long as that is held.
///
/// # Errors
/// The folder is not ours; the build, the link or the recording of the program as it is linked fails; it was stopped.
pub(crate) fn make(
    trial: &TrialFile,
    recipes: &mut [Recipe],
    ground: &mut Ground<'_>,
) -> Result<Option<Folder>, TrialError> {
    let Some(spec) = trial.text_spec() else { return Ok(None) };
    let of_file = trial.text.as_ref();
    let source = of_file.and_then(|text| text.source.as_ref()).map(|source| {
        // Its commands run in another folder than this program.
        let whole = std::fs::canonicalize(source);
        whole.map_err(|error| TrialError::Unreadable { path: source.clone(), source: error })
    });
    let source = source.transpose()?;
    let folder = Folder::open(of_file.and_then(|text| text.folder.clone()), trial.text_name())?;
    let wanted: Vec<Vec<TextWord>> = recipes.iter().map(|recipe| recipe.text_words.clone()).collect();
    let layouts: BTreeSet<TextWord> = wanted.iter().filter_map(|words| layout(words)).collect();
    let of = 3 + layouts.len() + wanted.iter().filter(|words| words.contains(&TextWord::Huge)).count();
    let mut done = 0;
    let mut tick = || {
        ground.progress.tick(&Tick { phase: Phase::Prepare, done, of, left_seconds: f64::INFINITY });
        done += 1;
    };
    let sample = if spec.sample.is_empty() { trial.workload.command.clone() } else { spec.sample.clone() };
    let steps = Steps { folder: &folder, spec: &spec, sample, source, options: ground.options };
    tick();
    steps.build()?;
    tick();
    let (base, answers) = steps.base()?;
    let twin = steps.twin(&base)?;
    let mut made = BTreeMap::from([(None, Ok(base))]);
    for layout in layouts {
        tick();
        let program = steps.lay_out(layout, &answers).map_err(lacking);
        stopped(program.as_ref().err())?;
        made.insert(Some(layout), program);
    }
    tick();
    for (index, (recipe, words)) in recipes.iter_mut().zip(wanted).enumerate() {
        let mut program = made[&layout(&words)].clone();
        if words.contains(&TextWord::Huge) {
            tick();
            program = program.and_then(|laid| steps.on_huge_pages(index, &laid).map_err(lacking));
            stopped(program.as_ref().err())?;
        }
        if let Ok(made) = &mut program {
            made.facts.insert("text".to_owned(), json!(words));
        }
        let twin = Some(twin.clone()).filter(|_| index == 0);
        recipe.text = Some(TextArm { words, folder: folder.path().to_owned(), twin, made: program });
    }
    Ok(Some(folder))
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
