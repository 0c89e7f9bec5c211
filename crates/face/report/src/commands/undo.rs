//! `planish undo`: what was put back, and what was left because someone else changed it.

use anstyle::Style;
use planish_model::{Class, Entry, EntryId, EntryStep, Outcome, OutcomeKind, Undo, When};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, risk, styles};
use crate::table::{Cell, Table};
use crate::units;

/// One entry that was undone, as far as it could be.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UndoneEntry {
    /// Its number.
    pub entry: EntryId,
    /// Whether something of it is still on the host.
    pub open: bool,
    /// What was done to each place, in the order in which it was written.
    pub outcomes: Vec<Outcome>,
    /// The entry as it was before that, with the originals that counted: it gives the table its other columns.
    #[serde(skip)]
    #[schemars(skip)]
    pub written: Option<Entry>,
}

/// What `undo` did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UndoReport {
    /// Newest entry first.
    pub entries: Vec<UndoneEntry>,
}

impl Report for UndoReport {
    const COMMAND: &'static str = "undo";

    fn text(&self, page: &mut Page<'_>) {
        for entry in &self.entries {
            page.heading(&format!("entry {}{}", entry.entry, if entry.open { ", still open" } else { "" }));
            // What was before us is the original: of what a newer entry set nobody wants it yet.
            let mut table = Table::new(&["knob", "now", "before", "risk", "why"]);
            let key =
                |outcome: &Outcome| (without_place(outcome), entry.original(outcome).map(str::to_owned));
            for group in entry.outcomes.chunk_by(|a, b| key(a) == key(b)) {
                let first = &group[0];
                if entry.step(first).is_some_and(|step| step.undo.outlives_boot() || step.undo == Undo::Moved)
                {
                    // The whole text of a file is no value, nor is the name of a record.
                    for file in group {
                        let (path, blank) = (file.place.as_str().into(), Cell::default);
                        let risk = risk(Class::Safe, When::Now);
                        table.row([path, blank(), blank(), risk, outcome_cell(file, None)]);
                    }
                    continue;
                }
                let places: Vec<&str> = group.iter().map(|outcome| outcome.place.as_str()).collect();
                let value = |text: &str| page.value(&first.knob, text);
                let class = entry.step(first).map(|step| step.class).or_else(|| page.class(&first.knob));
                table.row([
                    page.knob(&first.knob, &places),
                    first.read_back.as_deref().map(value).unwrap_or_default().into(),
                    entry.original(first).map(value).unwrap_or_default().into(),
                    risk(class.unwrap_or(Class::Safe), When::Now),
                    outcome_cell(first, None),
                ]);
            }
            page.table(&table);
        }
    }
}

impl UndoneEntry {
    fn step(&self, outcome: &Outcome) -> Option<&EntryStep> {
        let steps = &self.written.as_ref()?.steps;
        steps.iter().find(|step| step.knob == outcome.knob && step.place == outcome.place)
    }

    /// What stood at the outcome's place before planish wrote there first.
    fn original(&self, outcome: &Outcome) -> Option<&str> {
        self.step(outcome)?.original().map(|original| original.value.as_str())
    }
}

/// What places must share to read as one line: everything but where they are, and what they changed beside them.
pub(crate) fn without_place(outcome: &Outcome) -> Outcome {
    Outcome { place: String::new(), caused: Vec::new(), ..outcome.clone() }
}

/// How an outcome reads: a word, its reason, and who holds what undo wants back.
pub(crate) fn outcome_cell(outcome: &Outcome, extra: Option<String>) -> Cell {
    let (parts, style) = words(outcome, extra);
    Cell::styled(parts.join("; "), style)
}

/// The same of a step, and of what took it back.
pub(crate) fn taken_back_cell(outcome: &Outcome, undone: &Outcome) -> Cell {
    let ((mut parts, style), (mut back, back_style)) = (words(outcome, None), words(undone, None));
    match undone.outcome {
        OutcomeKind::NotReached => back.clear(),
        OutcomeKind::Done => "taken back".clone_into(&mut back[0]),
        OutcomeKind::Satisfied => "found as it was before".clone_into(&mut back[0]),
        _ => {}
    }
    parts.extend(back);
    Cell::styled(parts.join("; "), if back_style == styles::GOOD { style } else { back_style })
}

fn words(outcome: &Outcome, extra: Option<String>) -> (Vec<String>, Style) {
    let (word, style) = match outcome.outcome {
        OutcomeKind::Done => ("done", styles::GOOD),
        OutcomeKind::Satisfied => ("already so", styles::GOOD),
        OutcomeKind::TakenOver => ("taken over", styles::GOOD),
        OutcomeKind::Short => ("short", styles::WARNING),
        OutcomeKind::Lowered => ("lowered by others", styles::WARNING),
        OutcomeKind::ReadsBack => ("reads back as something else", styles::WARNING),
        OutcomeKind::Failed => ("failed", styles::BAD),
        OutcomeKind::NotReached => ("not tried", styles::WARNING),
        OutcomeKind::Theirs => ("left alone", styles::WARNING),
        OutcomeKind::HandedOver => ("left to a newer entry", styles::GOOD),
        OutcomeKind::GoneWithReboot => ("gone with the reboot", styles::GOOD),
        OutcomeKind::InUse if outcome.granted_pages == Some(outcome.claimed()) => ("left", styles::WARNING),
        OutcomeKind::InUse => ("still in use", styles::WARNING),
        OutcomeKind::Vanished => ("no longer there", styles::WARNING),
    };
    let mut parts = vec![word.to_owned()];
    parts.extend(extra);
    if let Some(short) = &outcome.short {
        parts.push(format!("{} of {} pages granted: {}", short.granted, short.asked, short.reason));
    }
    parts.extend(outcome.detail.clone());
    parts.extend(outcome.claim.as_ref().map(ToString::to_string));
    if !outcome.holders.is_empty() {
        let held = outcome.holders.iter();
        let named: Vec<String> = held
            .map(|holder| format!("{} ({}, {})", holder.command, holder.pid, units::bytes(holder.bytes)))
            .collect();
        parts.push(format!("held by {}", named.join(", ")));
    }
    (parts, style)
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, EntryState, KnobId, Original, PlanHash, ValueType};

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn a_file_that_was_edited_is_told_by_its_path() {
        let text = "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX=\"quiet\"\n";
        let (knob, path) = (KnobId::new("persist.boot"), "/etc/default/grub".to_owned());
        let mut step =
            EntryStep::new(knob.clone(), path.clone(), "nosmt".to_owned(), Class::Safe, Undo::Edit);
        step.originals.push(Original {
            knob: knob.clone(),
            place: path.clone(),
            r#type: ValueType::Text { text: true },
            value: text.to_owned(),
            coupling: None,
            over: None,
        });
        let mut back = Outcome::new(knob, path.clone(), OutcomeKind::Done);
        back.read_back = Some(text.to_owned());
        let plan: PlanHash = serde_json::from_str("\"00\"").expect("a hash is text");
        let written = Entry {
            id: EntryId(1),
            at: 0,
            boot_id: String::new(),
            who: String::new(),
            command: String::new(),
            reason: None,
            profile: String::new(),
            plan,
            steps: vec![step],
            confirm_by: None,
            wait_end: None,
            on_confirm: None,
            state: EntryState::Open,
            undo_begun: false,
            instead_of: None,
            replaced_by: None,
            host: None,
            allowed: planish_model::Allowed::default(),
        };
        let entry =
            UndoneEntry { entry: EntryId(1), open: false, outcomes: vec![back], written: Some(written) };
        let catalogue = Catalogue::default();
        let mut page = Page::new(PageOptions { width: 100, detailed: false }, &catalogue);
        UndoReport { entries: vec![entry] }.text(&mut page);
        let told = page.into_text();
        assert!(told.contains(&path) && told.contains("done"), "{told}");
        assert!(!told.contains("GRUB_"), "{told}");
    }
}
