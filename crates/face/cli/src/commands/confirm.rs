//! `planish confirm`

use planish_pipeline as pipeline;
use planish_report::ConfirmReport;

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// Keep what `apply --confirm` wrote, before its time runs out
#[derive(Debug, clap::Args)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    // It writes files, and has the menu of a boot loader made.
    signals::hold();
    let report = ConfirmReport { entries: pipeline::confirm(&session)? };
    let answer = context.answer(&report, session.catalogue());
    if report.entries.is_empty() {
        return Ok(answer.note("nothing waits to be confirmed").next(context.line("log")));
    }
    Ok(answer.next(context.line("check")))
}
