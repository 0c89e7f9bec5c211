//! `planish confirm`

use planish_model::{Exit, KnobId, gone_at_boot};
use planish_pipeline as pipeline;
use planish_report::{ConfirmReport, units};

use crate::answer::Answer;
use crate::commands::apply::named;
use crate::commands::once;
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// Keep what `apply --confirm` wrote, before its time runs out
///
/// With --persist, this writes the files for the next boot, and ends in exit code 1 where that will not bring what was
/// asked for: a file that is read later takes it back, or nothing here gives a boot parameter. A file of the boot
/// loader that somebody edited since the apply is refused. An entry whose time ran out is undone by then: that is exit
/// code 1, too.
///
/// In the trial boot of `apply --persist --once`, this gives its boot parameters to every boot, in an entry of its own.
/// In another boot, before the trial or after one that came to nothing, it keeps nothing: exit code 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    // It writes files, and has the menu of a boot loader made.
    signals::hold();
    let confirmed = pipeline::confirm(&session)?;
    let report = ConfirmReport { entries: confirmed.entries };
    let mut answer = context.answer(&report, session.catalogue()).exit(confirmed.exit);
    if let Some((entry, at)) = confirmed.lapsed {
        let at = units::moment(at);
        let told = format!("exit code 1: entry {entry} was undone at {at}: nobody confirmed it in time");
        return Ok(answer.warning(told).next(context.line("log")));
    }
    if let [trial, ..] = confirmed.trials.as_slice() {
        let undo = context.root_line(&format!("undo {}", trial.entry));
        let told = "exit code 1: this boot is no trial boot, and confirms none";
        return Ok(once::notes(answer.warning(told), &confirmed.trials, context).next(undo));
    }
    if report.entries.is_empty() {
        return Ok(answer.note("nothing waits to be confirmed").next(context.line("log")));
    }
    for sentence in confirmed.hints.into_iter().chain(gone_at_boot(&confirmed.unpersisted)) {
        answer = answer.note(sentence);
    }
    if !confirmed.files.is_empty() {
        answer = answer.note(format!("written for the next boot: {}", confirmed.files.join(", ")));
    }
    if confirmed.exit == Exit::Findings {
        answer = answer.note(why(&confirmed.lost));
    }
    Ok(answer.next(context.line("check")))
}

/// Why a confirm ended in exit code 1 whose entries stay.
fn why(lost: &[KnobId]) -> String {
    let knobs: Vec<&KnobId> = lost.iter().collect();
    match knobs.len() {
        0 => "exit code 1: not all is as it was asked for, as told above".to_owned(),
        count => format!(
            "exit code 1: {} that the next boot brings otherwise than asked for: {}",
            units::count(count, "place"),
            named(&knobs)
        ),
    }
}
