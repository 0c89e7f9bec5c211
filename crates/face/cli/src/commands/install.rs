//! `planish install`

use std::env;

use clap::Subcommand;
use planish_model::Exit;
use planish_pipeline::{self as pipeline, InstallCheck, UnitFile};
use planish_report::{InstallCheckReport, InstallFile, Level, Message, units};

use crate::answer::Answer;
use crate::commands::apply::agreed_to;
use crate::context::Context;
use crate::failure::Failure;
use crate::{output, signals};

/// Where packages put the program: what a recorded host is taken to have.
const PACKAGED: &str = "/usr/bin/planish";

/// Have systemd do something of planish again and again
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
}

/// Put `planish check --monitor` on a timer of systemd
///
/// A service that may read and nothing else, its timer, and a drop-in that has each boot start it: three files below
/// /etc/systemd/system, written as an entry of the journal, so that `planish undo` takes them out again. Nothing is
/// started: the last line says what to type for now. The unit is left failed by a drift and by what could not be looked
/// at.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Compare with this profile; without it, with everything that is applied
    #[arg(value_name = "PROFILE")]
    profile: Option<String>,
    /// Do not compare this knob, or the places of another program that writes them: what an apply with the same left
    #[arg(long, value_name = "KNOB|WRITER", value_delimiter = ',', requires = "profile")]
    exclude: Vec<String>,
    /// When: a calendar event of systemd, such as hourly, *:0/15 or Mon..Fri 02:30
    #[arg(long, value_name = "TIME", default_value = "hourly")]
    every: String,
    /// Start this program; without it, the one that runs (with --root: /usr/bin/planish)
    #[arg(long, value_name = "PATH")]
    program: Option<String>,
    /// Write without asking
    #[arg(long)]
    yes: bool,
}

impl Args {
    pub fn name(&self) -> &'static str {
        match self.command {
            Command::Check(_) => "install-check",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match &args.command {
        Command::Check(args) => check(args, context),
    }
}

fn check(args: &Check, context: &Context) -> Result<Answer, Failure> {
    if let Some(file) = args.profile.as_deref().filter(|profile| profile.contains('/')) {
        // It may be moved or edited, and the service sees no home.
        let told = format!("a timer takes a profile by its name, and {file} is a file");
        let name = file.rsplit('/').next().and_then(|name| name.strip_suffix(".toml")).unwrap_or("NAME");
        let there = "copy it to /etc/planish/profiles (with --state DIR: DIR/etc/profiles), then";
        return Err(Failure::usage(told)
            .hint(format!("{there}: {}", context.root_line(&format!("install check {name}")))));
    }
    let session = context.session()?;
    let wanted = InstallCheck {
        program: program(args, context)?,
        every: args.every.clone(),
        profile: args.profile.clone(),
        exclude: args.exclude.clone(),
        state: state(context)?,
    };
    let files = pipeline::check_units(&session, &wanted)?;
    if !args.yes {
        if !context.globals.json {
            files.iter().for_each(show);
        }
        agreed_to(&units::count(files.len(), "file"), context)?;
    }
    // Half an installation helps nobody: a Ctrl-C that comes from here on waits for its end.
    signals::hold();
    let installed = pipeline::install_check(&session, &wanted)?;
    let files = files.into_iter().map(|file| InstallFile { path: file.path.to_owned(), text: file.text });
    let report =
        InstallCheckReport { entry: installed.entry, files: files.collect(), outcomes: installed.outcomes };
    let exit = installed.exit;
    let mut answer = context.answer(&report, session.catalogue()).exit(exit);
    let level = if exit == Exit::Done { Level::Note } else { Level::Error };
    for hint in installed.hints {
        answer = answer.message(Message::new(level, hint));
    }
    if report.entry.is_none() {
        answer = answer.note("nothing was written: it is installed so already");
    }
    Ok(match (exit, &context.globals.root) {
        (Exit::Done, None) => answer.next("systemctl daemon-reload && systemctl start planish-check.timer"),
        (Exit::Done, Some(_)) => answer.next(context.line("log")),
        _ => answer.next(context.line("log --verbose")),
    })
}

fn show(file: &UnitFile) {
    output::print(&format!("{}\n{}\n", file.path, file.text), Exit::Done);
}

/// The program that systemd is to start.
fn program(args: &Check, context: &Context) -> Result<String, Failure> {
    if let Some(program) = &args.program {
        return Ok(program.clone());
    }
    if context.globals.root.is_some() {
        return Ok(PACKAGED.to_owned());
    }
    let own = env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    own.ok_or_else(|| {
        Failure::refused("nobody knows where this program lies").hint("name it: --program PATH")
    })
}

/// The folder of `--state` as a unit can name it. That of a recorded host lies on another machine than its units.
pub(crate) fn state(context: &Context) -> Result<Option<String>, Failure> {
    let Some(folder) = context.globals.state.as_ref().filter(|_| context.globals.root.is_none()) else {
        return Ok(None);
    };
    let absolute = std::path::absolute(folder).map_err(Failure::usage)?;
    Ok(Some(absolute.to_string_lossy().into_owned()))
}
