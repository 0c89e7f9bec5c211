//! `planish log`: what was done to this host, newest first.

use planish_model::{Closure, Entry, EntryState, EntryStep, OutcomeKind, Undo};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::undo::{outcome_cell, taken_back_cell};
use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// The entries of the journal. The text shows neighbours that were made and taken back alike in one row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LogReport {
    /// Newest first.
    pub entries: Vec<Entry>,
}

impl Report for LogReport {
    const COMMAND: &'static str = "log";

    fn text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&[">entry", "when", "profile", ">steps", "state", "reason", "who"]);
        // A proof applies and undoes dozens of times: what came back again and again is one row.
        let alike = |a: &Entry, b: &Entry| !page.is_detailed() && are_alike(a, b);
        for group in self.entries.chunk_by(alike) {
            let (newest, oldest) = (&group[0], &group[group.len() - 1]);
            let ids = match group.len() {
                1 => newest.id.to_string(),
                _ => format!("{}..{}", oldest.id, newest.id),
            };
            table.row([
                ids.into(),
                units::moment(newest.at).into(),
                newest.profile.as_str().into(),
                group.iter().map(|entry| entry.steps.len()).sum::<usize>().to_string().into(),
                state(newest),
                newest.reason.as_deref().unwrap_or_default().into(),
                newest.who.as_str().into(),
            ]);
        }
        page.table(&table);
        if page.is_detailed() {
            self.entries.iter().for_each(|entry| steps(entry, page));
        }
    }
}

/// Whether two entries hold nothing any more and differ by number, moment and steps only.
fn are_alike(a: &Entry, b: &Entry) -> bool {
    let told = |entry: &Entry| {
        (
            entry.state,
            entry.replaced_by,
            entry.lapsed_at().is_some(),
            theirs(entry),
            entry.profile.clone(),
            entry.reason.clone(),
            entry.who.clone(),
            entry.command.clone(),
        )
    };
    !a.is_open() && told(a) == told(b)
}

/// Places of an entry that an undo left to somebody else.
fn theirs(entry: &Entry) -> usize {
    entry.steps.iter().filter(|step| step.left_theirs()).count()
}

fn state(entry: &Entry) -> Cell {
    match entry.state {
        EntryState::Closed(Closure::Undone) if theirs(entry) > 0 || entry.lapsed_at().is_some() => {
            let why = if entry.lapsed_at().is_some() { ": not confirmed" } else { "" };
            let left = match theirs(entry) {
                0 => String::new(),
                theirs => format!(", {theirs} theirs"),
            };
            Cell::styled(format!("undone{why}{left}"), styles::WARNING)
        }
        EntryState::Open if entry.is_undone_in_part() => Cell::styled("undone in part", styles::BAD),
        EntryState::Open if entry.steps.iter().any(EntryStep::is_left_in_use) => {
            let mut undone = entry.steps.iter().filter_map(|step| step.undone.as_ref());
            let is_claimed = undone.any(|undone| undone.claim.is_some());
            let why = if is_claimed { "undone, pages left to a line" } else { "undone, pages in use" };
            Cell::styled(why, styles::WARNING)
        }
        EntryState::Open => Cell::styled("open", styles::GOOD),
        EntryState::Unconfirmed => Cell::styled("unconfirmed", styles::WARNING),
        EntryState::Interrupted => Cell::styled("interrupted", styles::BAD),
        EntryState::Closed(Closure::Undone) if has_failed(entry) => "failed, put back".into(),
        EntryState::Closed(Closure::Undone) => "undone".into(),
        EntryState::Closed(Closure::GoneWithReboot) => "gone with the reboot".into(),
        EntryState::Closed(Closure::Empty) => "empty".into(),
        EntryState::Closed(Closure::Acted) => "acted".into(),
        EntryState::Closed(Closure::Replaced) => {
            let by = entry.replaced_by.map(|by| format!(" by {by}")).unwrap_or_default();
            match theirs(entry) {
                0 => format!("replaced{by}").into(),
                theirs => Cell::styled(format!("replaced{by}, {theirs} theirs"), styles::WARNING),
            }
        }
    }
}

/// Whether a step of an apply failed, which then took back all others.
fn has_failed(entry: &Entry) -> bool {
    let failed = |step: &EntryStep| {
        step.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeKind::Failed)
    };
    entry.steps.iter().any(failed)
}

/// What was to be written: a value, or of a file how much; its lines stand below the table, one a line.
fn wanted(step: &EntryStep, page: &Page<'_>) -> Cell {
    match step.undo {
        Undo::File => units::count(step.wanted.lines().count() + step.pools.len(), "line").into(),
        _ => page.value(&step.knob, &step.wanted).into(),
    }
}

/// How a step ended, and how it was taken back behind that: only the first of the two says why it was.
fn came_to(step: &EntryStep) -> Cell {
    match (&step.outcome, &step.undone) {
        (None, None) => "not said".into(),
        (Some(outcome), None) | (None, Some(outcome)) => outcome_cell(outcome, None),
        (Some(outcome), Some(undone)) => taken_back_cell(outcome, undone),
    }
}

fn steps(entry: &Entry, page: &mut Page<'_>) {
    page.heading(&format!("entry {}: {}", entry.id, entry.command));
    page.fact("plan", &entry.plan.to_string());
    let mut table = Table::new(&["knob", "before", "wanted", "outcome"]);
    for step in &entry.steps {
        // Of a move the journal has the name of a record, of a program the sum of its file: neither is a value.
        let original = step.original().filter(|_| !matches!(step.undo, Undo::Moved | Undo::Exchanged));
        let before = original.map(|original| page.value(&step.knob, &original.value));
        table.row([
            page.knob(&step.knob, &[&step.place]),
            before.unwrap_or_default().into(),
            wanted(step, page),
            came_to(step),
        ]);
    }
    page.table(&table);
    let has_lines = |step: &&EntryStep| !step.wanted.is_empty() || !step.pools.is_empty();
    for file in entry.steps.iter().filter(|step| step.undo == Undo::File).filter(has_lines) {
        page.gap();
        page.line(format!("{}:", file.place));
        file.wanted.lines().for_each(|line| page.line(format!("  {line}")));
        // The line of a pool is the sum over all entries: its size stands in the file.
        for pool in &file.pools {
            page.line(format!("  {} for the pool {}", units::counted(pool.pages, "page"), pool.place));
        }
    }
}
