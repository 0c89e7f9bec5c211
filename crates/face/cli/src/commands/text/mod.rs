//! `planish text`

mod bolt;
mod check;
mod fetch;
mod huge;
mod import;
mod link_flags;
mod merge;
mod order;
mod pinned;
mod prune;
mod publish;
pub(crate) mod record;
mod show;
mod verify;
mod wrap;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use planish_model::Exit;
use planish_profile::{CallProfile, ImportOptions, ProfileError, Program, Stacks, perf_data};
use planish_report::TextCacheRow;
use planish_sys::pages;

use crate::answer::Answer;
use crate::commands::read_file;
use crate::context::Context;
use crate::failure::Failure;
use wrap::Tool;
pub(crate) use wrap::called_as;

/// Lay out a program's code by what runs: hot functions together
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(record::Args),
    Import(import::Args),
    Merge(merge::Args),
    Show(show::Args),
    Order(order::Args),
    LinkFlags(link_flags::Args),
    /// Run a compiler so that what it links follows an order, and fits huge pages
    ///
    /// CC="planish text cc --order F -- gcc": compilations get -ffunction-sections, and links what their linker (lld,
    /// gold, GNU ld) takes an order by. All else goes by as it is, questions and configure tests too. A link never
    /// fails by an order: where it cannot be used, the link is done as it was asked for, with one warning on stderr.
    /// Programs with a linker script of their own may need objects as they are: --link-only.
    Cc(wrap::Args),
    /// Run a linker so that what it links follows an order, and fits huge pages
    ///
    /// The same as `planish text cc` for a command line of a linker itself: LD="planish text ld --order F -- ld.lld".
    Ld(wrap::Args),
    Check(check::Args),
    Bolt(bolt::Args),
    Huge(huge::Args),
    Verify(verify::Args),
    Publish(publish::Args),
    Fetch(fetch::Args),
    Prune(prune::Args),
}

impl Args {
    pub fn name(&self) -> &'static str {
        match self.command {
            Command::Record(_) => "text-record",
            Command::Import(_) => "text-import",
            Command::Merge(_) => "text-merge",
            Command::Show(_) => "text-show",
            Command::Order(_) => "text-order",
            Command::LinkFlags(_) => "text-link-flags",
            Command::Cc(_) => Tool::Compiler.name(),
            Command::Ld(_) => Tool::Linker.name(),
            Command::Check(_) => "text-check",
            Command::Bolt(_) => "text-bolt",
            Command::Huge(_) => "text-huge",
            Command::Verify(_) => "text-verify",
            Command::Publish(_) => "text-publish",
            Command::Fetch(_) => "text-fetch",
            Command::Prune(_) => "text-prune",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match &args.command {
        Command::Record(args) => record::run(args, context),
        Command::Import(args) => import::run(args, context),
        Command::Merge(args) => merge::run(args, context),
        Command::Show(args) => show::run(args, context),
        Command::Order(args) => order::run(args, context),
        Command::LinkFlags(args) => link_flags::run(args, context),
        Command::Cc(args) => wrap::run(Tool::Compiler, args, context),
        Command::Ld(args) => wrap::run(Tool::Linker, args, context),
        Command::Check(args) => check::run(args, context),
        Command::Bolt(args) => bolt::run(args, context),
        Command::Huge(args) => huge::run(args, context),
        Command::Verify(args) => verify::run(args, context),
        Command::Publish(args) => publish::run(args, context),
        Command::Fetch(args) => fetch::run(args, context),
        Command::Prune(args) => prune::run(args, context),
    }
}

/// Reads a program's functions.
pub(crate) fn program(path: &Path) -> Result<Program, Failure> {
    let bytes = read_file(path)?;
    Program::parse(&path.to_string_lossy(), &bytes).map_err(|source| in_file(path, source))
}

/// The size of a huge page: as it was given, else that of this kernel.
pub(crate) fn huge_bytes(given: Option<usize>) -> Result<u64, Failure> {
    if given.is_some_and(|bytes| !bytes.is_power_of_two()) {
        return Err(Failure::usage("the size of a page is a power of two").hint("planish ... --page 2M"));
    }
    let bytes = given.or_else(pages::thp_bytes).ok_or_else(|| {
        Failure::usage("this kernel has no transparent huge pages to take the size from")
            .hint("planish ... --page 2M")
    })?;
    Ok(u64::try_from(bytes).expect("an address is 64 bits at most"))
}

/// What the page cache has of a program's text. Nothing is read for that but its headers.
pub(crate) fn cached(path: &Path) -> Option<TextCacheRow> {
    verify::cached(path)
}

/// The present time, in seconds since 1970.
fn now(context: &Context) -> u64 {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    context.globals.clock.unwrap_or_else(clock)
}

/// Reads a profile of any format that needs no program; usually one of ours.
fn profile(path: &Path, program: Option<&Program>) -> Result<CallProfile, Failure> {
    imported(path, program, false).map(|(profile, _)| profile)
}

/// The same with the stacks, if they are wanted and the file has some.
fn imported(
    path: &Path,
    program: Option<&Program>,
    stacks: bool,
) -> Result<(CallProfile, Option<Stacks>), Failure> {
    let bytes = read_file(path)?;
    let options = ImportOptions { program, stacks, ..ImportOptions::default() };
    let imported = planish_profile::import(&bytes, &options).map_err(|source| in_file(path, source))?;
    Ok((imported.profile, imported.stacks))
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

pub(crate) fn in_file(path: &Path, source: ProfileError) -> Failure {
    let hint = match &source {
        ProfileError::UnknownFormat => {
            let words: Vec<&str> = planish_profile::Format::ALL.iter().map(|(word, _)| *word).collect();
            Some(format!("name the format: --format {}", words.join("|")))
        }
        ProfileError::NeedsProgram { .. } => Some("planish ... --program BIN".to_owned()),
        ProfileError::BuildId { .. } => Some("name the build that was sampled with --program".to_owned()),
        ProfileError::Version { .. } => Some("a newer planish wrote it".to_owned()),
        ProfileError::Cut { cut: perf_data::Cut::Killed { .. }, .. } => {
            Some("planish text import F takes what is there".to_owned())
        }
        ProfileError::Cut { .. } => {
            Some("copy or record it again; planish text import F --cut takes what is there".to_owned())
        }
        ProfileError::NoEvent { .. } => Some("name one of them with --event".to_owned()),
        _ => None,
    };
    let failure = Failure::new(Exit::Usage, InFile { file: path.display().to_string(), source });
    hint.into_iter().fold(failure, Failure::hint)
}
