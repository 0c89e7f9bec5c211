//! `planish watch-confirm`, hidden: the process that undoes an entry which nobody confirms.

use planish_model::{Catalogue, EntryId, Exit};
use planish_pipeline as pipeline;
use planish_report::UndoReport;

use crate::answer::Answer;
use crate::commands::undo::undone_entries;
use crate::context::Context;
use crate::failure::Failure;

/// Undo an entry at its deadline unless it is confirmed before
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The entry
    #[arg(value_name = "ENTRY")]
    entry: u64,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let undone = pipeline::keep_watch(&session, EntryId(args.entry))?;
    let exit = undone.as_ref().map_or(Exit::Done, |undone| undone.exit);
    let entries = undone.map(|undone| undone_entries(&session, undone.entries, undone.before)).transpose()?;
    let report = UndoReport { entries: entries.unwrap_or_default() };
    Ok(context.answer(&report, &Catalogue::default()).exit(exit))
}
