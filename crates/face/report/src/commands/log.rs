//! `planish log`: what was done to this host, newest first.

use planish_model::{Closure, Entry, EntryState};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::undo::outcome_cell;
use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// The entries of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LogReport {
    /// Newest first.
    pub entries: Vec<Entry>,
}

impl Report for LogReport {
    const COMMAND: &'static str = "log";

    fn text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&[">entry", "when", "profile", ">steps", "state", "reason", "who"]);
        for entry in &self.entries {
            table.row([
                entry.id.to_string().into(),
                units::moment(entry.at).into(),
                entry.profile.as_str().into(),
                entry.steps.len().to_string().into(),
                state(entry),
                entry.reason.as_deref().unwrap_or_default().into(),
                entry.who.as_str().into(),
            ]);
        }
        page.table(&table);
        if page.is_detailed() {
            self.entries.iter().for_each(|entry| steps(entry, page));
        }
    }
}

fn state(entry: &Entry) -> Cell {
    match entry.state {
        EntryState::Open => Cell::styled("open", styles::GOOD),
        EntryState::Unconfirmed => Cell::styled("unconfirmed", styles::WARNING),
        EntryState::Interrupted => Cell::styled("interrupted", styles::BAD),
        EntryState::Closed(Closure::Undone) => "undone".into(),
        EntryState::Closed(Closure::GoneWithReboot) => "gone with the reboot".into(),
        EntryState::Closed(Closure::Empty) => "empty".into(),
    }
}

fn steps(entry: &Entry, page: &mut Page<'_>) {
    page.heading(&format!("entry {}: {}", entry.id, entry.command));
    page.fact("plan", &entry.plan.to_string());
    let mut table = Table::new(&["knob", "before", "wanted", "outcome"]);
    for step in &entry.steps {
        let before = step.original().map(|original| page.value(&step.knob, &original.value));
        let last = step.undone.as_ref().or(step.outcome.as_ref());
        table.row([
            page.knob(&step.knob, &[&step.place]),
            before.unwrap_or_default().into(),
            page.value(&step.knob, &step.wanted).into(),
            last.map_or_else(|| "not said".into(), |outcome| outcome_cell(outcome, None)),
        ]);
    }
    page.table(&table);
}
