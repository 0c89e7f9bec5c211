//! `planish trial run` where arms are boots, and `planish trial status`, `stop` and `resume`.

use planish_model::{Catalogue, Class, Exit, KnobId};
use planish_pipeline::Session;
use planish_report::{
    Level, Message, Report, TrialResumeReport, TrialRunReport, TrialStatusReport, TrialStopReport,
};
use planish_trial::boots::{self, After, BootOptions, Going, Hands, OwnHands};
use planish_trial::{BootsState, Progress, RunOptions, TrialError, TrialFile, TrialOutcome};

use crate::answer::Answer;
use crate::commands::{install, plan};
use crate::context::Context;
use crate::failure::Failure;
use crate::running::{Line, Running, exit_of, refuse_recorded, told_here};

/// What `--allow` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// To start the machine anew.
    Reboot,
    /// Boot parameters of a class.
    Class(Class),
}

/// A word of `--allow`.
pub(crate) fn allowed(word: &str) -> Result<Allowed, String> {
    if word == "reboot" { Ok(Allowed::Reboot) } else { plan::class(word).map(Allowed::Class) }
}

/// What a trial of boots is begun with.
pub(crate) fn options(
    allow: &[Allowed],
    knobs: &[String],
    context: &Context,
) -> Result<BootOptions, Failure> {
    let class = |allowed: &Allowed| match allowed {
        Allowed::Class(class) => Some(*class),
        Allowed::Reboot => None,
    };
    Ok(BootOptions {
        reboot: allow.contains(&Allowed::Reboot),
        classes: allow.iter().filter_map(class).collect(),
        knobs: knobs.iter().map(KnobId::new).collect(),
        state: install::state(context)?,
    })
}

/// Begins one.
pub(crate) fn begin(
    trial: &TrialFile,
    session: &Session,
    run: &RunOptions,
    allowed: &BootOptions,
    mut progress: Line,
    context: &Context,
) -> Result<Answer, Failure> {
    let going = boots::begin(trial, session, run, allowed, &mut OwnHands, &mut progress)?;
    drop(progress);
    Ok(answered(going, TrialRunReport, context))
}

/// Tells how far one is.
pub(crate) fn status(context: &Context) -> Result<Answer, Failure> {
    refuse_recorded(context)?;
    let session = context.session()?;
    let outcome = boots::status(&session)?.map(|outcome| told_here(outcome, context));
    let is_going = outcome.as_ref().is_some_and(is_under_way);
    let answer = context.answer(&TrialStatusReport { trial: outcome }, &Catalogue::default());
    Ok(answer.next(context.line(if is_going { "trial stop" } else { "trial honesty" })))
}

/// Ends one.
pub(crate) fn stop(context: &Context) -> Result<Answer, Failure> {
    begun(boots::stop, |trial| TrialStopReport { trial }, context)
}

/// Goes on with one.
pub(crate) fn resume(context: &Context) -> Result<Answer, Failure> {
    begun(boots::resume, |trial| TrialResumeReport { trial }, context)
}

/// What is done with a trial that was begun before.
type Carry =
    fn(&Session, &RunOptions, &mut dyn Hands, &mut dyn Progress) -> Result<Option<Going>, TrialError>;

/// Carries on with one that was begun before, if there is one.
fn begun<R: Report>(
    carry: Carry,
    report: impl FnOnce(Option<TrialOutcome>) -> R,
    context: &Context,
) -> Result<Answer, Failure> {
    refuse_recorded(context)?;
    let session = context.session()?;
    let (options, mut progress) = Running::of_begun(context)?;
    let going = carry(&session, &options, &mut OwnHands, &mut progress)?;
    drop(progress);
    Ok(match going {
        Some(going) => answered(going, |outcome| report(Some(outcome)), context),
        None => none(&report(None), context),
    })
}

fn none<R: Report>(report: &R, context: &Context) -> Answer {
    let answer = context.answer(report, &Catalogue::default());
    answer.note("no trial of boots is under way").next(context.line("trial status"))
}

fn is_under_way(outcome: &TrialOutcome) -> bool {
    outcome.boots.as_ref().is_some_and(|boots| boots.state == BootsState::UnderWay)
}

/// The report of a trial of boots after a command, with what comes next.
fn answered<R: Report>(going: Going, report: impl FnOnce(TrialOutcome) -> R, context: &Context) -> Answer {
    let outcome = told_here(going.outcome, context);
    let refused = outcome.refused.clone();
    let ended = exit_of(&outcome);
    let answer = context.answer(&report(outcome), &Catalogue::default());
    let (exit, note) = match going.after {
        After::Reboot => {
            (Exit::Done, Some("this machine is being started anew; the trial goes on by itself"))
        }
        After::Interrupted => (Exit::Inconclusive, Some("asked to end: the next boot goes on with it")),
        After::Ended => (ended, None),
    };
    let mut answer = answer.exit(exit);
    for refusal in &refused {
        let text = format!("{}: {}", refusal.what, refusal.why);
        answer = answer.message(Message::new(Level::Warning, text).hint(&refusal.cure));
    }
    if let Some(note) = note {
        answer = answer.note(note);
    }
    answer.next(context.line("trial status"))
}
