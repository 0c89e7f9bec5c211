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

/// What `install warm` wrote.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InstallWarmReport {
    /// The program whose text is warmed.
    pub program: String,
    /// Its entry in the journal; `null` where all of it was there.
    pub entry: Option<EntryId>,
    /// The files.
    pub files: Vec<InstallFile>,
    /// How each was written; after a failure, also how each was taken back.
    pub outcomes: Vec<Outcome>,
}

/// What `install publish` wrote.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InstallPublishReport {
    /// Its entry in the journal; `null` where all of it was there.
    pub entry: Option<EntryId>,
    /// The files.
    pub files: Vec<InstallFile>,
    /// How each was written; after a failure, also how each was taken back.
    pub outcomes: Vec<Outcome>,
}

impl Report for InstallPublishReport {
    const COMMAND: &'static str = "install-publish";

    fn text(&self, page: &mut Page<'_>) {
        told(&self.files, &self.outcomes, page);
    }
}

impl Report for InstallWarmReport {
    const COMMAND: &'static str = "install-warm";

    fn text(&self, page: &mut Page<'_>) {
        told(&self.files, &self.outcomes, page);
    }
}

impl Report for InstallCheckReport {
    const COMMAND: &'static str = "install-check";

    fn text(&self, page: &mut Page<'_>) {
        told(&self.files, &self.outcomes, page);
    }
}

fn told(files: &[InstallFile], outcomes: &[Outcome], page: &mut Page<'_>) {
    if page.is_detailed() {
        for file in files {
            page.heading(&file.path);
            page.line(file.text.trim_end());
        }
        page.gap();
    }
    let mut table = Table::new(&["file", "outcome"]);
    for file in files {
        let mut outcomes = outcomes.iter().filter(|outcome| outcome.place == file.path).peekable();
        if outcomes.peek().is_none() {
            table.row([file.path.as_str().into(), "there already".into()]);
        }
        for outcome in outcomes {
            table.row([file.path.as_str().into(), outcome_cell(outcome, None)]);
        }
    }
    page.table(&table);
}
