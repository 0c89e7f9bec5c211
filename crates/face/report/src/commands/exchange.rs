//! `planish import` and `planish export`: what foreign files came to, and what goes out.

use planish_model::KnobId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};

/// A foreign file as a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportReport {
    /// The format that it was read as.
    pub format: String,
    /// The name of the profile.
    pub profile: String,
    /// The profile in TOML, with what was refused or overridden as comments.
    pub text: String,
    /// What became of every line.
    pub lines: Vec<ImportRow>,
}

/// What became of one line of a foreign file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportRow {
    /// Its number, from 1.
    pub line: usize,
    /// What it sets.
    pub text: String,
    /// The knob, for a line that was accepted.
    pub knob: Option<KnobId>,
    /// The line that counts in its place, for one that says nothing wrong and does not count.
    pub overridden_by: Option<usize>,
    /// Why it was refused or does not count, or what there is to know of it.
    pub reason: Option<String>,
}

impl Report for ImportReport {
    const COMMAND: &'static str = "import";

    fn text(&self, page: &mut Page<'_>) {
        self.text.lines().for_each(|line| page.line(line));
    }
}

/// A profile for another tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExportReport {
    /// The format.
    pub format: String,
    /// The files.
    pub files: Vec<ExportRow>,
    /// What the profile wants and the files leave out.
    pub left_out: Vec<LeftOutRow>,
    /// What the files set though a plan for this host would not, and why it would not.
    pub not_here: Vec<LeftOutRow>,
}

/// One file of another tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExportRow {
    /// Where the tool looks for it.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// A wanted value that is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOutRow {
    /// The knob.
    pub knob: KnobId,
    /// Why.
    pub reason: String,
}

impl Report for ExportReport {
    const COMMAND: &'static str = "export";

    fn text(&self, page: &mut Page<'_>) {
        let several = self.files.len() > 1;
        for file in &self.files {
            if several {
                // A comment in all formats: what is printed is no less a file of them.
                page.heading(&format!("# {}", file.path));
            }
            file.text.lines().for_each(|line| page.line(line));
        }
    }
}
