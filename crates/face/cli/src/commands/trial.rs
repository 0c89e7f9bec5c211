//! `planish trial`

use std::path::PathBuf;

use clap::Subcommand;
use planish_model::{Catalogue, Exit, quoted};
use planish_pipeline::{PipelineError, Session, Source};
use planish_report::{HonestyReport, SelfCheckReport, TrialNewReport, TrialRunReport};
use planish_trial::{NewTrial, SelfCheckVerdict, TrialError, Worth};

use crate::answer::Answer;
use crate::commands::boots;
use crate::commands::plan::file_argument;
use crate::commands::write_new_file;
use crate::context::Context;
use crate::failure::Failure;
use crate::running::{Running, outcome_answer};

/// Measure on your own workload which changes pay
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(New),
    Run(Run),
    /// Tell how far a trial is whose arms are boots; without one, what the last one found
    Status,
    /// End a trial whose arms are boots, and take its unit, its boot entry and its state away
    ///
    /// Also in a boot on trial, which runs on until the machine is started anew: that is left to whoever types this.
    Stop,
    /// Go on with a trial whose arms are boots: what its unit does after each boot
    ///
    /// It may start the machine anew.
    Resume,
    Selfcheck(SelfCheck),
    /// Tell how often the hidden placebo was kept, over all trials whose proofs are here
    Honesty,
}

/// Write a first trial file for a command of yours
#[derive(Debug, clap::Args)]
struct New {
    /// The command to measure, as one line of a shell
    #[arg(long, value_name = "CMD", value_parser = shell_line)]
    cmd: String,
    /// The profile whose worth is asked for; with a slash, a profile in a file that ends in .toml, whose wanted values
    /// the trial file then holds itself
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Write to F, which must not be there yet, instead of stdout
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
}

/// A line that has something in it to run.
fn shell_line(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("it names no command") } else { Ok(text.to_owned()) }
}

/// Run a trial: randomised pairs, intervals, a hidden placebo
///
/// With --keep it ends in exit code 1 where what was kept is not in force afterwards, or is taken back at the next boot
/// by a file that is read later.
///
/// Where arms of the file are boots ([boots], docs/boot-trials.md), it starts this machine anew, again and again, and a
/// unit of systemd goes on after each boot. Without --allow reboot it only says how often, and how long that takes.
#[derive(Debug, clap::Args)]
struct Run {
    /// A trial file; without a slash or the ending .toml, a trial that planish brings along
    #[arg(value_name = "F")]
    trial: String,
    /// Persist what is kept and confirmed, in sysctl.d and tmpfiles.d; boot parameters only where arms are boots
    #[arg(long)]
    keep: bool,
    /// Run the two arms of a pair at the same time, each on its half of the CPUs
    #[arg(long)]
    duet: bool,
    /// Where arms are boots: allow to start the machine anew (reboot), and boot parameters of these classes besides
    /// safe ones: availability, durability
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = boots::allowed)]
    allow: Vec<boots::Allowed>,
    /// Where arms are boots: allow this boot parameter, whatever its class
    #[arg(long, value_name = "KNOB", value_delimiter = ',')]
    allow_knob: Vec<String>,
    #[command(flatten)]
    running: Running,
}

/// Tell the noise of this machine under a trial: sigma, the gain that the budget can see, the hours needed
#[derive(Debug, clap::Args)]
struct SelfCheck {
    /// A trial file, or a trial that planish brings along
    #[arg(value_name = "F")]
    trial: String,
    /// Run the two arms of a pair at the same time, each on its half of the CPUs
    #[arg(long)]
    duet: bool,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub fn name(&self) -> &'static str {
        match self.command {
            Command::New(_) => "trial-new",
            Command::Run(_) => "trial-run",
            Command::Status => "trial-status",
            Command::Stop => "trial-stop",
            Command::Resume => "trial-resume",
            Command::Selfcheck(_) => "trial-selfcheck",
            Command::Honesty => "trial-honesty",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match &args.command {
        Command::New(args) => run_new(args, context),
        Command::Run(args) => run_run(args, context),
        Command::Status => boots::status(context),
        Command::Stop => boots::stop(context),
        Command::Resume => boots::resume(context),
        Command::Selfcheck(args) => run_selfcheck(args, context),
        Command::Honesty => run_honesty(context),
    }
}

fn run_new(args: &New, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let stem = args.output.as_ref().and_then(|path| path.file_stem()).map(|stem| stem.to_string_lossy());
    // As the file that the last line proposes: it is named in the text, too.
    let name = stem.map_or_else(|| "trial".to_owned(), |stem| stem.into_owned());
    let worth = args.profile.as_deref().map(|named| worth(named, &session)).transpose()?;
    // With a slash, as everywhere else a file is told from a profile.
    let file = args.output.as_ref().map(|path| path.display().to_string());
    let file = file.map(|path| if path.contains('/') { path } else { format!("./{path}") });
    let wanted = NewTrial { name, file, command: args.cmd.clone(), worth };
    let text = planish_trial::new(&wanted, session.catalogue())?;
    let Some(path) = &args.output else {
        let report = TrialNewReport { file: None, text };
        return Ok(context.answer(&report, session.catalogue()).next(context.again("-o trial.toml")));
    };
    write_new_file(path, &text)?;
    let report = TrialNewReport { file: Some(path.display().to_string()), text };
    let argument = quoted(&file_argument(path, "toml"));
    let answer = context.answer(&report, session.catalogue());
    Ok(answer.next(context.line(&format!("trial selfcheck {argument}"))))
}

/// What a first rung is to be of: a profile of the catalogue, or what one in a file wants.
fn worth(named: &str, session: &Session) -> Result<Worth, Failure> {
    let source = Source::named(named);
    Ok(match source.own_profile(session)? {
        Some(profile) => Worth::Own(Box::new(profile)),
        None if source.is_file_by_name(session) => {
            return Err(PipelineError::FileByName { name: named.to_owned() }.into());
        }
        None => Worth::Profile(named.to_owned()),
    })
}

fn run_run(args: &Run, context: &Context) -> Result<Answer, Failure> {
    let (session, trial) = args.running.trial(&args.trial, context)?;
    if trial.boots.is_some() {
        args.running.refuse_beside_boots(args.duet)?;
        let (mut options, progress) = args.running.start(context)?;
        options.keep = args.keep;
        let allowed = boots::options(&args.allow, &args.allow_knob, context)?;
        return boots::begin(&trial, &session, &options, &allowed, progress, context);
    }
    if !args.allow.is_empty() || !args.allow_knob.is_empty() {
        let error = Failure::usage(format!("no arm of {} is a boot: --allow is for those", args.trial));
        return Err(error.hint("leave --allow and --allow-knob out"));
    }
    if trial.rung.is_empty() {
        let error = Failure::usage(format!("{} has no [[rung]]: it compares nothing", args.trial));
        return Err(error.hint(context.line(&format!("trial selfcheck {}", args.trial))));
    }
    let (mut options, mut progress) = args.running.start(context)?;
    (options.keep, options.duet) = (args.keep, args.duet);
    let outcome = planish_trial::run(&trial, &session, &options, &mut progress)?;
    drop(progress);
    Ok(outcome_answer(outcome, TrialRunReport, &args.running, context))
}

fn run_selfcheck(args: &SelfCheck, context: &Context) -> Result<Answer, Failure> {
    let (session, trial) = args.running.trial(&args.trial, context)?;
    let (mut options, mut progress) = args.running.start(context)?;
    options.duet = args.duet;
    let check = planish_trial::selfcheck(&trial, &session, &options, &mut progress)?;
    drop(progress);
    let Some(check) = check else {
        return Err(Failure::new(Exit::Inconclusive, "stopped before the self-check was complete"));
    };
    let exit = match check.verdict {
        SelfCheckVerdict::Ok => Exit::Done,
        SelfCheckVerdict::Noisy => Exit::Inconclusive,
        SelfCheckVerdict::Broken => Exit::Findings,
    };
    let answer = context.answer(&SelfCheckReport(check), &Catalogue::default()).exit(exit);
    Ok(answer.next(context.line(&format!("trial run {}", args.trial))))
}

fn run_honesty(context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let honesty = planish_trial::honesty(&session)?;
    let hidden = session.hidden_state();
    let none = nothing_counted(honesty.placebos, honesty.left_out, hidden.is_some());
    let answer = context.answer(&HonestyReport(honesty), &Catalogue::default());
    let mut answer = if let Some(note) = none { answer.note(note) } else { answer };
    if let Some(folder) = hidden {
        let folder = folder.display();
        answer =
            answer.warning(format!("a trial that root ran is stored in {folder}, which only root may read"));
    }
    Ok(answer.next(context.line("prove series --quick")))
}

/// Why no placebo counts, where none does: of so many and so many left out. Of `hidden` trials nothing is known.
fn nothing_counted(placebos: u64, left_out: u64, hidden: bool) -> Option<&'static str> {
    match (placebos, left_out) {
        (0, 0) if hidden => Some("no trial of this user has run here yet"),
        (0, 0) => Some("no trial has run here yet"),
        (0, _) => {
            Some("no trial here could have kept its placebo: stopped, short, or in slices of one start")
        }
        _ => None,
    }
}

impl From<TrialError> for Failure {
    fn from(error: TrialError) -> Self {
        let (exit, hints) = (error.exit(), error.hints());
        hints.into_iter().fold(Self::new(exit, error), Self::hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_may_not_see_the_trials_of_root_is_told_of_his_own() {
        assert_eq!(nothing_counted(0, 0, true), Some("no trial of this user has run here yet"));
        assert_eq!(nothing_counted(0, 0, false), Some("no trial has run here yet"));
        assert!(
            nothing_counted(0, 2, true).is_some_and(|why| why.starts_with("no trial here could have kept"))
        );
        assert_eq!(nothing_counted(1, 2, true), None);
    }
}
