//! `planish text`

mod import;
mod merge;
mod order;
mod show;

use std::path::Path;

use clap::Subcommand;
use planish_model::Exit;
use planish_profile::{CallProfile, ImportOptions, ProfileError, Program};

use crate::answer::Answer;
use crate::commands::read_file;
use crate::context::Context;
use crate::failure::Failure;

/// Lay out a program's code by what runs: hot functions together
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(import::Args),
    Merge(merge::Args),
    Show(show::Args),
    Order(order::Args),
}

impl Args {
    pub fn name(&self) -> &'static str {
        match self.command {
            Command::Import(_) => "text-import",
            Command::Merge(_) => "text-merge",
            Command::Show(_) => "text-show",
            Command::Order(_) => "text-order",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match &args.command {
        Command::Import(args) => import::run(args, context),
        Command::Merge(args) => merge::run(args, context),
        Command::Show(args) => show::run(args, context),
        Command::Order(args) => order::run(args, context),
    }
}

/// Reads a program's functions.
fn program(path: &Path) -> Result<Program, Failure> {
    let bytes = read_file(path)?;
    Program::parse(&path.to_string_lossy(), &bytes).map_err(|source| in_file(path, source))
}

/// Reads a profile of any format that needs no program; usually one of ours.
fn profile(path: &Path, program: Option<&Program>) -> Result<CallProfile, Failure> {
    let bytes = read_file(path)?;
    let options = ImportOptions { program, ..ImportOptions::default() };
    let imported = planish_profile::import(&bytes, &options).map_err(|source| in_file(path, source))?;
    Ok(imported.profile)
}

/// The program that a profile is of, where it lies where it was and is the same build.
fn program_of(profile: &CallProfile) -> Option<Program> {
    let path = Path::new(&profile.program);
    let found = path.is_absolute().then(|| program(path).ok()).flatten()?;
    let is_same = found.build_id.as_ref().is_some_and(|id| profile.build_ids == [id.clone()]);
    is_same.then_some(found)
}

/// A profile or program that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}")]
struct InFile {
    file: String,
    source: ProfileError,
}

fn in_file(path: &Path, source: ProfileError) -> Failure {
    let hint = match &source {
        ProfileError::UnknownFormat => {
            let words: Vec<&str> = planish_profile::Format::ALL.iter().map(|(word, _)| *word).collect();
            Some(format!("name the format: --format {}", words.join("|")))
        }
        ProfileError::NeedsProgram { .. } => Some("planish ... --program BIN".to_owned()),
        ProfileError::BuildId { .. } => Some("name the build that was sampled with --program".to_owned()),
        ProfileError::Version { .. } => Some("a newer planish wrote it".to_owned()),
        ProfileError::NoEvent { .. } => Some("name one of them with --event".to_owned()),
        _ => None,
    };
    let failure = Failure::new(Exit::Usage, InFile { file: path.display().to_string(), source });
    hint.into_iter().fold(failure, Failure::hint)
}
