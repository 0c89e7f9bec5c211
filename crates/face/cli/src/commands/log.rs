//! `planish log`

use planish_pipeline::{self as pipeline, PipelineError};
use planish_report::LogReport;
use planish_sorted::SortSmall as _;

use crate::answer::Answer;
use crate::commands::check::{keeps, on_trial};
use crate::commands::once;
use crate::context::Context;
use crate::failure::Failure;

/// List what was done to this host, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let mut entries = pipeline::log(&session)?;
    entries.sort_small_by_key(|entry| std::cmp::Reverse(entry.id));
    let report = LogReport { entries };
    let answer = context.answer(&report, session.catalogue());
    if report.entries.is_empty() {
        return Ok(answer.note("nothing was ever applied here").next(context.line("doctor")));
    }
    let (trials, answer) = match pipeline::boots_on_trial(&session) {
        // What is there of another host is told; on trial it is there.
        Err(error @ PipelineError::OtherHost { .. }) => {
            let told = format!("{error}: whether they are in force there cannot be told from here");
            (Vec::new(), answer.warning(told))
        }
        trials => (trials?, answer),
    };
    let mut answer = once::notes(answer, &trials, context);
    let waiting = pipeline::unconfirmed(&session, &report.entries);
    for waiting in &waiting {
        answer = answer.note(on_trial(waiting, context));
    }
    if waiting.iter().any(keeps) {
        return Ok(answer.next(context.root_line("confirm")));
    }
    if let Some(abandoned) = waiting.iter().find(|waiting| waiting.is_abandoned) {
        return Ok(answer.next(context.root_line(&format!("undo {}", abandoned.entry))));
    }
    // What the entries did is in JSON anyway.
    if !(context.globals.verbose || context.globals.json) {
        return Ok(answer.next(context.line("log --verbose")));
    }
    let open = report.entries.iter().any(planish_model::Entry::is_open);
    Ok(answer.next(context.line(if open { "undo" } else { "doctor" })))
}
