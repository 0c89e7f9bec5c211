//! `planish install`: the files that were written, and what is left to do.

use planish_model::{EntryId, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::undo::outcome_cell;
use crate::page::{Page, Report};
use crate::table::Table;

/// A file of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstallFile {
    /// Where.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// What `install check` wrote.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InstallCheckReport {
    /// Its entry in the journal; `null` where all of it was there.
    pub entry: Option<EntryId>,
    /// The files.
    pub files: Vec<InstallFile>,
    /// How each was written; after a failure, also how each was taken back.
    pub outcomes: Vec<Outcome>,
}

impl Report for InstallCheckReport {
    const COMMAND: &'static str = "install-check";

    fn text(&self, page: &mut Page<'_>) {
        if page.is_detailed() {
            for file in &self.files {
                page.heading(&file.path);
                page.line(file.text.trim_end());
            }
            page.gap();
        }
        let mut table = Table::new(&["file", "outcome"]);
        for file in &self.files {
            let mut outcomes = self.outcomes.iter().filter(|outcome| outcome.place == file.path).peekable();
            if outcomes.peek().is_none() {
                table.row([file.path.as_str().into(), "there already".into()]);
            }
            for outcome in outcomes {
                table.row([file.path.as_str().into(), outcome_cell(outcome, None)]);
            }
        }
        page.table(&table);
    }
}
