//! `planish apply --persist --once`, and what is told of a trial boot ever after.

use planish_model::{Exit, Plan, TrialBoot, TrialBootState};
use planish_pipeline::{self as pipeline, PipelineError, Session};
use planish_report::{Level, Message, units};

use crate::answer::Answer;
use crate::commands::apply::{Args, agreed, told_of};
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// Has the boot loader take an entry once that gives the boot parameters of a plan.
pub(crate) fn run(args: &Args, plan: &Plan, session: &Session, context: &Context) -> Result<Answer, Failure> {
    let mut once = pipeline::boot_alone(plan);
    if !args.yes {
        let shown = pipeline::once_preview(session, &once).map_err(|error| told_where(error, context))?;
        once.persist = Some(shown);
        agreed(&once, session, context)?;
    }
    signals::hold();
    let applied = pipeline::apply_once(session, &once, args.reason.as_deref())
        .map_err(|error| told_where(error, context))?;
    let (exit, hints) = (applied.exit, applied.hints.clone());
    let report = told_of(applied, once);
    let mut answer = context.answer(&report, session.catalogue()).exit(exit);
    let level = if exit == Exit::Done { Level::Note } else { Level::Error };
    for hint in hints {
        answer = answer.message(Message::new(level, hint));
    }
    if !plan.steps.is_empty() && exit == Exit::Done {
        let steps = units::count(plan.steps.len(), "step");
        answer = answer.note(format!("left for later, needing no boot: {steps}; {}", args.without_once()));
    }
    Ok(answer.next(context.line("check")))
}

/// Why no trial boot can be made, with where one can be tried by whoever looks at a recorded host.
fn told_where(error: PipelineError, context: &Context) -> Failure {
    let is_recorded = context.globals.root.is_some() && matches!(error, PipelineError::Once { .. });
    let failure = Failure::from(error);
    if !is_recorded {
        return failure;
    }
    failure.hint("hosts/README.md says on which recorded hosts a trial boot can be tried")
}

/// What a trial boot has come to, and what to do about it.
pub(crate) fn told(boot: &TrialBoot, context: &Context) -> String {
    let TrialBoot { entry, state, arguments } = boot;
    let (keep, undo) = (context.root_line("confirm"), context.root_line(&format!("undo {entry}")));
    let what = format!("the trial boot of entry {entry} ({arguments})");
    match state {
        TrialBootState::Armed => {
            format!("the next boot is {what}, and the one behind it is as ever; to have none: {undo}")
        }
        TrialBootState::PassedOver => {
            format!(
                "the boot loader was not asked since (kexec?): the next boot is {what}; to have none: {undo}"
            )
        }
        TrialBootState::Running => {
            format!("this boot is {what}, and the next one is as ever: keep it: {keep}; give it up: {undo}")
        }
        TrialBootState::Disarmed => format!("somebody had the boot loader forget {what}: {undo}"),
        TrialBootState::Over => format!(
            "{what} is over, and nobody confirmed it: it did not come up, or was left by another start of the machine; \
             this boot is by the default entry: {undo}"
        ),
    }
}

/// The same as notes of an answer.
pub(crate) fn notes(mut answer: Answer, boots: &[TrialBoot], context: &Context) -> Answer {
    for boot in boots {
        answer = answer.note(told(boot, context));
    }
    answer
}
