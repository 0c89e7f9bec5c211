//! `planish check`

use planish_model::{DriftState, Exit, KnobCheck, quoted};
use planish_pipeline::{self as pipeline, Source, Unconfirmed};
use planish_report::{CheckReport, units};

use crate::answer::{Answer, Body};
use crate::commands::monitor;
use crate::context::Context;
use crate::failure::Failure;

/// Compare the host with a profile, a plan, or what was applied
///
/// Every place is named: what runs, what is persisted, what the next boot brings, and who causes a difference.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile or a plan file; without it, everything that is applied
    #[arg(value_name = "PROFILE|F")]
    source: Option<String>,
    /// Print one line and end as monitoring expects: 0 ok, 1 warning, 2 critical, 3 unknown
    #[arg(long)]
    monitor: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if args.monitor { monitored(args, context) } else { told(args, context) }
}

/// One line, whatever happens: what keeps planish from looking is an answer, too.
fn monitored(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.json {
        let failure = Failure::usage("--monitor prints one line of its own");
        return Err(failure.hint("leave out --json, or leave out --monitor"));
    }
    let looked = || {
        let session = context.session()?;
        let source = args.source.as_deref().map(Source::named);
        let checked = pipeline::check(&session, source.as_ref())?;
        let report = CheckReport { against: args.source.clone(), knobs: checked.drift.knobs };
        // A named profile needs no journal.
        Ok::<_, Failure>(monitor::line(&report, source.is_none() && session.hidden_state().is_some()))
    };
    let (text, code) = match looked() {
        Ok((text, level)) => (text, level as u8),
        Err(failure) => (monitor::unknown(&failure.message("", "").text), monitor::Level::Unknown as u8),
    };
    Ok(Answer { body: Body::Text(text), ..Answer::printed("check") }.code(code))
}

fn told(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let source = args.source.as_deref().map(Source::named);
    let checked = pipeline::check(&session, source.as_ref())?;
    let report = CheckReport { against: args.source.clone(), knobs: checked.drift.knobs };
    let mut answer = context.answer(&report, session.catalogue()).exit(checked.exit);
    if report.knobs.iter().any(|knob| knob.state == DriftState::PendingReboot) {
        answer = answer.note("a reboot is pending");
    }
    for waiting in &checked.unconfirmed {
        answer = answer.note(on_trial(waiting, context));
    }
    // A plan file is for the host as it was before its apply, and what is on trial is persisted by no apply.
    // A profile in a file of its own goes by that file; a plan file is for this moment, and its profile is named.
    let typed = args.source.as_deref().filter(|source| source.ends_with(".toml"));
    let profile = typed.or(checked.profile.as_deref()).map_or("PROFILE".to_owned(), quoted);
    let cure = context.root_line(&format!("apply {profile} --persist"));
    let lost = lost(&report, &cure).filter(|_| checked.unconfirmed.is_empty());
    for note in [lost, foreign(&report)] {
        answer = note.into_iter().fold(answer, Answer::note);
    }
    if let Some(folder) = session.hidden_state() {
        let folder = folder.display();
        answer = answer.warning(format!("what root applied is in {folder}, which only root may read"));
    }
    let next = match (checked.exit, &args.source) {
        (Exit::Done, _) if session.hidden_state().is_some() => context.root_line("check"),
        (Exit::Done, _) => context.line("log"),
        (_, Some(source)) => context.line(&format!("plan {}", quoted(source))),
        (_, None) if context.globals.verbose => context.line("log"),
        (_, None) => context.line("check --verbose"),
    };
    Ok(answer.next(next))
}

/// What goes by itself, when, and what keeps it.
fn on_trial(waiting: &Unconfirmed, context: &Context) -> String {
    let Unconfirmed { entry, is_whole, .. } = waiting;
    let cure = if *is_whole { "confirm".to_owned() } else { format!("undo {entry}") };
    format!("{waiting}: {}", context.root_line(&cure))
}

/// What runs as wanted, and only until the next boot.
fn lost(report: &CheckReport, cure: &str) -> Option<String> {
    let lost = report.knobs.iter().filter(|knob| knob.state == DriftState::LostAtBoot);
    let count = lost.clone().count();
    // Where files say otherwise, a file of ours may not help: their rows name them.
    lost.into_iter()
        .any(|knob| knob.next_boot.is_none())
        .then(|| format!("{} will not outlast a reboot: {cure}", units::count(count, "place")))
}

/// What other files of the host want otherwise, and planish never set.
fn foreign(report: &CheckReport) -> Option<String> {
    let foreign = |knob: &&KnobCheck| knob.state == DriftState::Drift && knob.wanted.is_none();
    let count = report.knobs.iter().filter(foreign).count();
    (count > 0).then(|| {
        let places = units::count(count, "place");
        format!("{places} that planish never set: the host's own files say otherwise")
    })
}
