//! `planish check`: what runs, what is persisted, what the next boot brings, and whether that is what was wanted.

use anstyle::Style;
use planish_model::{Class, DriftState, KnobCheck, TrialBoot, When};
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
    /// Boots on trial that are neither confirmed nor undone, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trial_boots: Vec<TrialBoot>,
}

impl Report for CheckReport {
    const COMMAND: &'static str = "check";

    fn text(&self, page: &mut Page<'_>) {
        let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
        // Lines of one file differ by their number at least, and are one row all the same.
        let is_line_told = page.is_detailed();
        let key = |check: &KnobCheck| {
            let persisted = check.persisted.as_deref().filter(|_| !is_line_told).map(without_line);
            let persisted = persisted.or_else(|| check.persisted.clone());
            KnobCheck { place: String::new(), persisted, ..check.clone() }
        };
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
            let is_one_line = group.iter().all(|check| check.persisted == group[0].persisted);
            let first = &if is_one_line { group[0].clone() } else { key(&group[0]) };
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

/// `10 (/etc/sysctl.d/90-planish.conf:4)` without the number of the line.
fn without_line(persisted: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (source, line) = persisted.rsplit_once(':').unwrap_or_default();
    let is_line = line.strip_suffix(')').is_some_and(is_number);
    if is_line { format!("{source})") } else { persisted.to_owned() }
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

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, KnobId};

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn places_that_one_file_persists_are_one_row() {
        let check = |cpu: u32, source: &str| KnobCheck {
            knob: KnobId::new("cpu.governor"),
            place: format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
            running: Some("performance".to_owned()),
            persisted: Some(format!("performance ({source})")),
            next_boot: Some("performance".to_owned()),
            wanted: Some("performance".to_owned()),
            state: DriftState::Ok,
            because: None,
        };
        let told = |sources: [&str; 2], detailed| {
            let knobs = vec![check(0, sources[0]), check(1, sources[1])];
            let catalogue = Catalogue::embedded().expect("sound");
            let mut page = Page::new(PageOptions { width: 200, detailed }, &catalogue);
            CheckReport { against: None, knobs, trial_boots: Vec::new() }.text(&mut page);
            page.into_text()
        };
        let one = told(["/etc/a.conf:4", "/etc/a.conf:5"], false);
        assert!(
            one.contains("cpu.governor x2") && one.contains("persisted performance (/etc/a.conf)"),
            "{one}"
        );
        for (second, detailed) in [("/etc/b.conf:4", false), ("/etc/a.conf:5", true)] {
            let two = told(["/etc/a.conf:4", second], detailed);
            assert!(two.contains("(/etc/a.conf:4)") && two.contains(&format!("({second})")), "{two}");
        }
        let same = told(["/etc/a.conf:4", "/etc/a.conf:4"], false);
        assert!(same.contains("x2") && same.contains("(/etc/a.conf:4)"), "{same}");
        assert_eq!(without_line("10 (kernel command line: a)"), "10 (kernel command line: a)");
    }
}
