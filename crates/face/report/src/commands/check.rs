//! `planish check`: what runs, what is persisted, what the next boot brings, and whether that is what was wanted.

use anstyle::Style;
use planish_model::{Class, DriftState, KnobCheck, When};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, risk, styles};
use crate::table::{Cell, Table};

/// What `check` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CheckReport {
    /// The profile or plan file that the host was compared with; `null` for what is applied.
    pub against: Option<String>,
    /// One row a concrete place.
    pub knobs: Vec<KnobCheck>,
}

impl Report for CheckReport {
    const COMMAND: &'static str = "check";

    fn text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
        let key = |check: &KnobCheck| KnobCheck { place: String::new(), ..check.clone() };
        // Of some two hundred knobs most are what nobody asked about.
        let asked = |check: &KnobCheck| {
            check.wanted.is_some() || check.persisted.is_some() || check.because.is_some()
        };
        let shown = |check: &&KnobCheck| match check.state {
            _ if page.is_detailed() => true,
            DriftState::Ok => asked(check),
            DriftState::NotHere => false,
            _ => true,
        };
        let rows: Vec<KnobCheck> = self.knobs.iter().filter(shown).cloned().collect();
        for group in rows.chunk_by(|a, b| key(a) == key(b)) {
            let first = &group[0];
            let places: Vec<&str> = group.iter().map(|check| check.place.as_str()).collect();
            let value = |text: &Option<String>| match text {
                Some(text) => page.value(&first.knob, text),
                None => "-".to_owned(),
            };
            table.row([
                page.knob(&first.knob, &places),
                value(&first.running).into(),
                value(&first.wanted).into(),
                risk(page.class(&first.knob).unwrap_or(Class::Safe), When::Now),
                why(first, page),
            ]);
        }
        page.table(&table);
        page.gap();
        page.fact("places", &self.summary());
    }
}

impl CheckReport {
    fn summary(&self) -> String {
        let states = [
            DriftState::Ok,
            DriftState::Drift,
            DriftState::LostAtBoot,
            DriftState::PendingReboot,
            DriftState::NotHere,
            DriftState::Unknown,
        ];
        let mut told = Vec::new();
        for state in states {
            let of_state = self.knobs.iter().filter(|check| check.state == state);
            let (foreign, ours): (Vec<_>, Vec<_>) = of_state.partition(|check| is_foreign(check));
            for checks in [ours, foreign] {
                told.extend(checks.first().map(|check| format!("{} {}", checks.len(), said(check).0)));
            }
        }
        told.join(", ")
    }
}

/// Whether a place differs from files of the host and planish was never asked to set it: that is told, and no drift
/// that anybody has to mend.
fn is_foreign(check: &KnobCheck) -> bool {
    check.state == DriftState::Drift && check.wanted.is_none()
}

/// The state of a place in a word.
fn said(check: &KnobCheck) -> (&'static str, Style) {
    if is_foreign(check) { ("differs", styles::WARNING) } else { word(check.state) }
}

fn word(state: DriftState) -> (&'static str, Style) {
    match state {
        DriftState::Ok => ("ok", styles::GOOD),
        DriftState::Drift => ("drift", styles::BAD),
        DriftState::LostAtBoot => ("lost at boot", styles::WARNING),
        DriftState::PendingReboot => ("pending reboot", styles::WARNING),
        DriftState::NotHere => ("not here", Style::new()),
        DriftState::Unknown => ("unknown", styles::WARNING),
    }
}

fn why(check: &KnobCheck, page: &Page<'_>) -> Cell {
    let (word, style) = said(check);
    let mut parts = vec![word.to_owned()];
    parts.extend(check.because.clone());
    if check.because.is_some() && !page.is_detailed() {
        return Cell::styled(parts.join("; "), style);
    }
    if let Some(persisted) = &check.persisted {
        parts.push(format!("persisted {persisted}"));
    }
    match &check.next_boot {
        Some(next) if check.next_boot != check.running => {
            parts.push(format!("next boot {}", page.value(&check.knob, next)));
        }
        _ => {}
    }
    Cell::styled(parts.join("; "), style)
}
