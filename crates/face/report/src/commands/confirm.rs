//! `planish confirm`: which entries stay.

use planish_model::EntryId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report};

/// The entries that were confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfirmReport {
    /// Oldest first.
    pub entries: Vec<EntryId>,
}

impl Report for ConfirmReport {
    const COMMAND: &'static str = "confirm";

    fn text(&self, page: &mut Page<'_>) {
        self.entries.iter().for_each(|entry| page.line(format!("entry {entry} stays")));
    }
}
