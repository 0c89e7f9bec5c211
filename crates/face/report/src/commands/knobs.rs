//! `planish knobs`: every row of the catalogue, and what it means on this host.

use planish_model::{Access, Class, KnobId, Reading, Verdict, VerdictKind, When};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Page, Report, risk, styles, verdict_text};
use crate::table::{Cell, Table};

/// One knob on this host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KnobRow {
    /// Its name.
    pub id: KnobId,
    /// The file, with `{holes}` where one row addresses many places.
    pub place: String,
    /// What may be lost.
    pub class: Class,
    /// When a new value takes effect.
    pub when: When,
    /// What setting it gains.
    pub why: String,
    /// What setting it costs.
    pub cost: String,
    /// Where the kernel documents it.
    pub source: String,
    /// The trial that measured it, or `none yet`.
    pub proof: String,
    /// What values are legal, for people.
    pub legal: String,
    /// Whether it can be set here.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Its places on this host, as they were read.
    pub readings: Vec<Reading>,
}

/// The knobs that were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KnobsReport {
    /// By id.
    pub knobs: Vec<KnobRow>,
}

impl Report for KnobsReport {
    const COMMAND: &'static str = "knobs";

    fn text(&self, page: &mut Page<'_>) {
        if let [one] = self.knobs.as_slice() {
            return one.details(page);
        }
        let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
        for knob in &self.knobs {
            let why = match knob.verdict.verdict {
                VerdictKind::Settable => Cell::from(knob.why.as_str()),
                _ => Cell::styled(verdict_text(&knob.verdict), styles::DIM),
            };
            table.row([
                knob.id.as_str().into(),
                now(&knob.id, &knob.readings, page).into(),
                page.legal(&knob.id).into(),
                risk(knob.class, knob.when),
                why,
            ]);
        }
        page.table(&table);
    }
}

/// The values of all places of a knob, each once, in the order of the places.
pub(super) fn now(id: &KnobId, readings: &[Reading], page: &Page<'_>) -> String {
    let mut values: Vec<String> = Vec::new();
    for reading in readings {
        let value = match reading.value.as_deref() {
            Some(raw) => page.value(id, raw),
            None if reading.access == Access::Absent => "-".to_owned(),
            None => "?".to_owned(),
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    match values.len() {
        0 => "-".to_owned(),
        1..=3 => values.join(", "),
        more => format!("{more} values"),
    }
}

impl KnobRow {
    fn details(&self, page: &mut Page<'_>) {
        let when = match self.when {
            When::Now => "at the write",
            When::Boot => "at the next boot",
            When::Process => "for processes that start after the write",
            When::Reload => "at the next systemctl daemon-reload, for all that runs",
        };
        page.fact("knob", self.id.as_str());
        page.fact("place", &self.place);
        page.fact("here", &verdict_text(&self.verdict));
        page.fact("values", &self.legal);
        page.fact("risk", &format!("{:?}", self.class).to_lowercase());
        page.fact("effect", when);
        page.fact("why", &self.why);
        page.fact("cost", &self.cost);
        page.fact("source", &self.source);
        page.fact("proof", &self.proof);
        let mut table = Table::new(&["place", "now"]);
        for reading in &self.readings {
            let value = reading.value.as_deref().map(|raw| page.value(&self.id, raw));
            let unread = reading.unread.clone().unwrap_or_default();
            table.row([reading.place.as_str().into(), value.unwrap_or(unread).into()]);
        }
        if !table.is_empty() {
            page.gap();
            page.table(&table);
        }
    }
}
