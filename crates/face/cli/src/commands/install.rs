//! `planish install`

mod publish;

use std::env;
use std::path::Path;

use clap::Subcommand;
use planish_hugify::{HugifyError, Image};
use planish_model::{Exit, quoted};
use planish_pipeline::{self as pipeline, InstallCheck, InstallWarm, Installed, Session, Source, UnitFile};
use planish_report::{InstallCheckReport, InstallFile, InstallWarmReport, Level, Message, units};

use crate::answer::Answer;
use crate::commands::apply::agreed_to;
use crate::commands::check::without_profile;
use crate::commands::read_file;
use crate::commands::text::huge_bytes;
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
    Warm(Warm),
    Publish(publish::Args),
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
    /// Of PROFILE, do not compare this knob, or the places of another program that writes them: what an apply with the
    /// same left
    #[arg(long, value_name = "KNOB|WRITER", value_delimiter = ',')]
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

/// Have a program's text read into huge pages again, after each boot and when memory ran short
///
/// What `planish text huge` put on huge pages goes with the page cache. With --unit it is read anew before each start
/// of that service, when nobody runs the program; without it by a timer, soon after each boot and again and again, as
/// long as nobody runs it. Files below /etc/systemd/system, written as an entry of the journal, so that `planish undo`
/// takes them out again. Nothing is started. `planish check` tells what is on huge pages now.
#[derive(Debug, clap::Args)]
pub(crate) struct Warm {
    /// The program, or the shared library: one that fits huge pages, as `planish text huge` makes it
    #[arg(value_name = "BIN")]
    binary: String,
    /// The service that starts it
    #[arg(long, value_name = "NAME.service", conflicts_with = "every")]
    unit: Option<String>,
    /// When the timer asks: a calendar event of systemd
    #[arg(long, value_name = "TIME", default_value = "*:0/15")]
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
            Command::Warm(_) => "install-warm",
            Command::Publish(_) => "install-publish",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match &args.command {
        Command::Check(args) => check(args, context),
        Command::Warm(args) => warm(args, context),
        Command::Publish(args) => publish::run(args, context),
    }
}

fn check(args: &Check, context: &Context) -> Result<Answer, Failure> {
    if let Some(file) = args.profile.as_deref().filter(|profile| profile.contains('/')) {
        // It may be moved or edited, and the service sees no home.
        let told = format!("a timer takes a profile by its name, and {file} is a file");
        let name = file.rsplit('/').next().and_then(|name| name.strip_suffix(".toml")).unwrap_or("NAME");
        return Err(Failure::usage(told).hint(copied(name, context)));
    }
    if args.profile.is_none() && !args.exclude.is_empty() {
        return Err(without_profile("install check", &args.exclude));
    }
    let session = context.session()?;
    if let Some(name) = &args.profile
        && let file = session.named_for_root(name)
        && file != *name
    {
        let told = format!("the timer is root's, and {file} is a file of this user alone");
        return Err(Failure::usage(told).hint(copied(name, context)));
    }
    let wanted = InstallCheck {
        program: program(args.program.as_deref(), context)?,
        every: args.every.clone(),
        profile: args.profile.clone(),
        exclude: args.exclude.clone(),
        state: state(context)?,
    };
    let files = pipeline::check_units(&session, &wanted)?;
    refuse_idle(&session, &wanted)?;
    agreed(&files, args.yes, context)?;
    let installed = pipeline::install_check(&session, &wanted)?;
    let start = "systemctl daemon-reload && systemctl start planish-check.timer";
    let (files, outcomes) = (listed(files), installed.outcomes.clone());
    let report = InstallCheckReport { entry: installed.entry, files, outcomes };
    Ok(told(context.answer(&report, session.catalogue()), &installed, start, context))
}

/// What has the timer find a profile.
fn copied(name: &str, context: &Context) -> String {
    let there = "copy it to /etc/planish/profiles (with --state DIR: DIR/etc/profiles), then";
    format!("{there}: {}", context.root_line(&format!("install check {name}")))
}

/// Refuses a comparison of which `--exclude` leaves nothing: it could only say UNKNOWN, at each turn. What a profile
/// has that is not on this host yet is another matter.
fn refuse_idle(session: &Session, wanted: &InstallCheck) -> Result<(), Failure> {
    let Some(profile) = wanted.profile.as_deref().filter(|_| !wanted.exclude.is_empty()) else {
        return Ok(());
    };
    let checked = pipeline::check_without(session, Some(&Source::named(profile)), &wanted.exclude)?;
    if checked.drift.knobs.iter().any(|knob| knob.wanted.is_some()) {
        return Ok(());
    }
    let left = wanted.exclude.join(",");
    let told = format!(
        "without {left} nothing of {profile} is left to compare on this host: the timer could only say UNKNOWN"
    );
    Err(Failure::usage(told)
        .hint("leave out fewer, or name no profile: then all that is applied is compared"))
}

fn warm(args: &Warm, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    refuse_unknown_unit(args.unit.as_deref(), &session)?;
    let wanted = InstallWarm {
        program: program(args.program.as_deref(), context)?,
        binary: binary(&args.binary, &session, context)?,
        unit: args.unit.clone(),
        every: args.every.clone(),
    };
    let files = pipeline::warm_units(&wanted)?;
    agreed(&files, args.yes, context)?;
    let installed = pipeline::install_warm(&session, &wanted)?;
    let timer =
        files.iter().find_map(|file| file.path.rsplit('/').next().filter(|name| name.ends_with(".timer")));
    let start = timer.map(|timer| format!(" && systemctl start {timer}")).unwrap_or_default();
    let start = format!("systemctl daemon-reload{start}");
    let (files, outcomes) = (listed(files), installed.outcomes.clone());
    let report = InstallWarmReport { program: wanted.binary, entry: installed.entry, files, outcomes };
    Ok(told(context.answer(&report, session.catalogue()), &installed, &start, context))
}

/// The program that is warmed, as the host calls it once all links are followed: one whose file fits huge pages. Of a
/// recorded host it is a file of the record.
fn binary(name: &str, session: &Session, context: &Context) -> Result<String, Failure> {
    let Some(root) = &context.globals.root else {
        let path = std::fs::canonicalize(name)
            .map_err(|source| Failure::usage(Unfound { path: name.to_owned(), source }))
            .map_err(|failure| failure.hint("name a program of this machine, or a shared library"))?;
        refuse_unfit(&path, &path.to_string_lossy(), "planish text huge")?;
        return Ok(path.to_string_lossy().into_owned());
    };
    if !name.starts_with('/') {
        // That is refused with the other words that no unit may have.
        return Ok(name.to_owned());
    }
    let host = session.host();
    let path = host.canonical(name).filter(|path| host.exists(path));
    let path = path.ok_or_else(|| {
        let root = root.display();
        Failure::refused(format!("{root} has no file {name}: nothing tells whether it fits huge pages")).hint(
            format!(
                "copy the program into it first: cp --parents {} {}",
                quoted(name),
                quoted(&root.to_string())
            ),
        )
    })?;
    let file = host.real_path(&path).map_err(Failure::usage)?;
    refuse_unfit(&file, &path, "on that host: planish text huge")?;
    Ok(path)
}

/// Refuses a file whose text no huge page could hold as it is: reading it would help nothing.
fn refuse_unfit(file: &Path, path: &str, cure: &str) -> Result<(), Failure> {
    let image = Image::parse(&read_file(file)?).map_err(|source| {
        Failure::usage(NoProgram { path: path.to_owned(), source })
            .hint("name a program, or a shared library")
    })?;
    if image.is_ready(huge_bytes(None)?) {
        return Ok(());
    }
    let told = format!("{path} does not fit huge pages as it is, and reading it helps nothing");
    Err(Failure::refused(told).hint(format!("{cure} {path}")))
}

/// Refuses a unit that this host has not, or that nobody can start: the drop-in would belong to nothing.
fn refuse_unknown_unit(unit: Option<&str>, session: &Session) -> Result<(), Failure> {
    let Some(unit) = unit else { return Ok(()) };
    if let Some(by) = pipeline::masked(session, unit) {
        let told = format!("{unit} is masked by {by}: nothing would be read, since nobody can start it");
        return Err(Failure::refused(told).hint(format!("systemctl unmask {}", quoted(unit))));
    }
    if pipeline::has_unit(session, unit) {
        return Ok(());
    }
    let stem = unit.strip_suffix(".service").unwrap_or(unit);
    let meant = format!("{unit}.service");
    if pipeline::has_unit(session, &meant) {
        let told = format!("this host has no unit {unit}, but {meant}");
        return Err(
            Failure::refused(told).hint(format!("name it as it is called: --unit {}", quoted(&meant)))
        );
    }
    Err(Failure::refused(format!("this host has no unit {unit}: nothing would be read before it starts"))
        .hint(format!(
            "see what it is called: systemctl list-unit-files '*{stem}*'; or leave --unit out for a timer"
        )))
}

/// Why no program is found.
#[derive(Debug, thiserror::Error)]
#[error("cannot find {path}")]
struct Unfound {
    path: String,
    source: std::io::Error,
}

/// Why a file is no program.
#[derive(Debug, thiserror::Error)]
#[error("{path}")]
struct NoProgram {
    path: String,
    source: HugifyError,
}

/// Shows what would be written, and asks. Half an installation helps nobody: a Ctrl-C that comes from here on waits for
/// its end.
fn agreed(files: &[UnitFile], yes: bool, context: &Context) -> Result<(), Failure> {
    if !yes {
        if !context.globals.json {
            files.iter().for_each(show);
        }
        agreed_to(&units::count(files.len(), "file"), context)?;
    }
    signals::hold();
    Ok(())
}

fn listed(files: Vec<UnitFile>) -> Vec<InstallFile> {
    files.into_iter().map(|file| InstallFile { path: file.path, text: file.text }).collect()
}

/// The answer of an installation, with what to type for now.
fn told(answer: Answer, installed: &Installed, start: &str, context: &Context) -> Answer {
    let exit = installed.exit;
    let level = if exit == Exit::Done { Level::Note } else { Level::Error };
    let tell = |answer: Answer, hint: &String| answer.message(Message::new(level, hint.clone()));
    let mut answer = installed.hints.iter().fold(answer.exit(exit), tell);
    if installed.entry.is_none() {
        answer = answer.note("nothing was written: it is installed so already");
    }
    match (exit, &context.globals.root) {
        (Exit::Done, None) => answer.next(start),
        // Typed here it would start that of this machine.
        (Exit::Done, Some(_)) => {
            answer.note(format!("that host takes it up by: {start}")).next(context.line("log"))
        }
        _ => answer.next(context.line("log --verbose")),
    }
}

fn show(file: &UnitFile) {
    output::print(&format!("{}\n{}\n", file.path, file.text), Exit::Done);
}

/// The program that systemd is to start.
fn program(named: Option<&str>, context: &Context) -> Result<String, Failure> {
    if let Some(program) = named {
        return Ok(program.to_owned());
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
