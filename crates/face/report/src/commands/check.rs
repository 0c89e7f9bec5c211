//! `planish check`: what runs, what is persisted, what the next boot brings, and whether that is what was wanted.

use anstyle::Style;
use planish_model::{BootValue, CarriedOver, DriftState, EntryId, KnobCheck, PoolUse, TrialBoot};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::text_huge::TextCacheRow;
use crate::page::{Page, Report, styles};
use crate::reasons::Shared;
use crate::table::{Cell, Table};
use crate::units;

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
    /// Lines of the boot loader's files that give the arguments of a trial boot to later boots, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried_over: Vec<CarriedOver>,
    /// What open entries asked of pools of huge pages, what they were granted, and what of it is used or lies idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
    /// Programs whose text open entries put on huge pages, or have warmed; and whether it is there now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<CheckTextRow>,
}

/// A program whose text open entries see to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CheckTextRow {
    /// Its file.
    pub program: String,
    /// The entry that replaced the file; null where it is as it was.
    pub entry: Option<EntryId>,
    /// What has the name of a file that was replaced: ours, overtaken (somebody put another one there), removed,
    /// unknown; null where it was not.
    pub file: Option<String>,
    /// The entry that has its text warmed; null without one.
    pub warmed_by: Option<EntryId>,
    /// What the page cache has of it; null where nobody can tell.
    pub cache: Option<TextCacheRow>,
}

impl CheckTextRow {
    /// Of what can lie on huge pages so much must, in percent.
    const LEAST: u64 = 90;

    /// What is not as an entry left it, and what to type.
    #[must_use]
    pub fn finding(&self) -> Option<String> {
        let program = units::harmless(&self.program);
        let entry = self.entry.map(|entry| entry.to_string()).unwrap_or_default();
        match self.file.as_deref() {
            Some("overtaken") => Some(format!(
                "{program} is another file than entry {entry} put there, as after an upgrade of its package: planish \
                 undo {entry} leaves it as it is; then once more: planish text huge {program}"
            )),
            Some("removed") => {
                Some(format!("{program} was removed since entry {entry} replaced it: planish undo {entry}"))
            }
            _ => self.cache.filter(|cache| cache.huge_bytes * 100 < cache.whole_bytes * Self::LEAST).map(
                |cache| {
                    format!("text of {program}, {}: planish text huge {program} --route warm", cache.told())
                },
            ),
        }
    }
}

impl Report for CheckReport {
    const COMMAND: &'static str = "check";

    fn text(&self, page: &mut Page<'_>) {
        // Nothing is written here, so that no risk is told: its place is what files say beside what runs.
        let mut table = Table::new(&["knob", "now", "wanted", "persisted", "next boot", "why"]);
        // Lines of one file differ by their number at least, and are one row all the same.
        let is_line_told = page.is_detailed();
        let key = |check: &KnobCheck| match is_line_told {
            true => KnobCheck { place: String::new(), ..check.clone() },
            false => check.without_place(),
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
        let groups = rows.chunk_by(|a, b| key(a) == key(b)).map(|group| {
            let is_one_line = group.iter().all(|check| check.persisted == group[0].persisted);
            (group, if is_one_line { group[0].clone() } else { key(&group[0]) })
        });
        let groups: Vec<(&[KnobCheck], KnobCheck)> = groups.collect();
        let shared = Shared::of(groups.iter().filter_map(|(_, first)| first.because.as_deref()));
        for (group, first) in &groups {
            let places: Vec<&str> = group.iter().map(|check| check.place.as_str()).collect();
            let value = |text: Option<&String>| match text {
                Some(text) => page.value(&first.knob, text),
                None => "-".to_owned(),
            };
            let at_boot = |found: &Option<BootValue>| value(found.as_ref().map(|found| &found.value));
            table.row([
                page.knob(&first.knob, &places),
                value(first.running.as_ref()).into(),
                value(first.wanted.as_ref()).into(),
                at_boot(&first.persisted).into(),
                at_boot(&first.next_boot).into(),
                why(first, &shared, page),
            ]);
        }
        page.table(&table);
        shared.notes(page);
        pools(&self.pools, page);
        texts(&self.texts, page);
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
            DriftState::OverwrittenAtBoot,
            DriftState::PendingReboot,
            DriftState::NotHere,
            DriftState::NotAllowed,
            DriftState::Unknown,
        ];
        let mut told = Vec::new();
        for state in states {
            let of_state = self.knobs.iter().filter(|check| check.state == state);
            let (apart, ours): (Vec<_>, Vec<_>) = of_state.partition(|check| is_foreign(check));
            for checks in [ours, apart] {
                let Some(first) = checks.first() else { continue };
                // Without a profile most places are nobody's wish.
                let wanted = checks.iter().filter(|check| check.wanted.is_some()).count();
                let of_them = match state {
                    DriftState::Ok if (1..checks.len()).contains(&wanted) => {
                        format!(" ({wanted} of them wanted)")
                    }
                    _ => String::new(),
                };
                told.push(format!("{} {}{of_them}", checks.len(), said(first).0));
            }
        }
        told.join(", ")
    }
}

/// Huge pages by entry: those that nobody uses are memory which nobody else can have.
fn pools(pools: &[PoolUse], page: &mut Page<'_>) {
    if pools.is_empty() {
        return;
    }
    page.heading("huge pages of open entries");
    let mut table = Table::new(&["pool", "entry", "asked", "granted", "used", "idle"]);
    for pool in pools {
        let told = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        table.row([
            page.knob(&pool.knob, &[pool.place.as_str()]),
            pool.entry.to_string().into(),
            pool.asked.to_string().into(),
            pool.granted.to_string().into(),
            told(pool.used).into(),
            told(pool.idle).into(),
        ]);
    }
    page.table(&table);
}

fn texts(texts: &[CheckTextRow], page: &mut Page<'_>) {
    if texts.is_empty() {
        return;
    }
    page.heading("text of programs");
    let mut table = Table::new(&["program", "entry", "file", "warmed by", "now"]);
    let id = |entry: Option<EntryId>| entry.map_or_else(|| "-".to_owned(), |entry| entry.to_string());
    for text in texts {
        let now = text.cache.map_or_else(|| "unknown".to_owned(), |cache| cache.told());
        let now = if text.finding().is_some() { Cell::styled(now, styles::WARNING) } else { now.into() };
        table.row([
            units::harmless(&text.program).into_owned().into(),
            id(text.entry).into(),
            text.file.clone().unwrap_or_else(|| "as it was".to_owned()).into(),
            id(text.warmed_by).into(),
            now,
        ]);
    }
    page.table(&table);
}

/// Whether a place differs from files of the host and planish was never asked to set it: that is told, and no drift
/// that anybody has to mend.
fn is_foreign(check: &KnobCheck) -> bool {
    check.state == DriftState::Drift && check.wanted.is_none()
}

/// The state of a place in a word.
fn said(check: &KnobCheck) -> (&'static str, Style) {
    match check {
        check if is_foreign(check) => ("differs", styles::WARNING),
        check => word(check.state),
    }
}

fn word(state: DriftState) -> (&'static str, Style) {
    match state {
        DriftState::Ok => ("ok", styles::GOOD),
        DriftState::Drift => ("drift", styles::BAD),
        DriftState::LostAtBoot => ("lost at boot", styles::WARNING),
        DriftState::OverwrittenAtBoot => ("overwritten at boot", styles::WARNING),
        DriftState::PendingReboot => ("pending reboot", styles::WARNING),
        DriftState::NotHere => ("not here", Style::new()),
        DriftState::NotAllowed => ("not allowed", styles::WARNING),
        DriftState::Unknown => ("unknown", styles::WARNING),
    }
}

fn why(check: &KnobCheck, shared: &Shared<'_>, page: &Page<'_>) -> Cell {
    let (word, style) = said(check);
    let mut parts = vec![word.to_owned()];
    parts.extend(check.because.as_deref().map(|because| shared.told(because)));
    // The reason names the file already where that is what is wrong.
    let is_told = |source: &str| check.because.as_ref().is_some_and(|because| because.contains(source));
    // Where the files give a parameter nothing, they keep none.
    let is_kept = |found: &&BootValue| !page.is_nothing(&check.knob, &found.value);
    let persisted = check.persisted.as_ref().filter(is_kept);
    if let Some(persisted) = persisted.filter(|found| !is_told(&found.source)) {
        parts.push(format!("persisted in {}", persisted.source));
    }
    if let Some(next) = check.next_boot.as_ref().filter(|next| !is_told(&next.source)) {
        let is_other = check.persisted.as_ref().is_none_or(|found| found.source != next.source);
        parts.extend(is_other.then(|| format!("at the next boot by {}", next.source)));
    }
    if page.is_detailed() {
        for lost in &check.overridden {
            let value = page.value(&check.knob, &lost.value);
            parts.push(format!("which overrides {value} of {}", lost.source));
        }
    }
    Cell::styled(parts.join("; "), style)
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, KnobId};

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn what_nobody_allowed_is_named_and_not_told_as_not_here() {
        let check = |state: DriftState, because: &str| KnobCheck {
            knob: KnobId::new("vm.overcommit_memory"),
            place: "/proc/sys/vm/overcommit_memory".to_owned(),
            running: Some("0".to_owned()),
            persisted: None,
            next_boot: None,
            overridden: Vec::new(),
            overwritten_by: None,
            wanted: Some("1".to_owned()),
            state,
            because: Some(because.to_owned()),
        };
        let catalogue = Catalogue::embedded().expect("sound");
        let mut page = Page::new(PageOptions { width: 200, detailed: false }, &catalogue);
        let knobs = vec![
            check(DriftState::NotAllowed, "may stall the host: --allow availability"),
            check(
                DriftState::NotAllowed,
                "weakens a protection: allow it by name, --allow-knob vm.overcommit_memory",
            ),
            check(DriftState::NotHere, "needs a newer kernel"),
            check(DriftState::NotHere, "means nothing here"),
        ];
        CheckReport {
            against: None,
            knobs,
            trial_boots: Vec::new(),
            carried_over: Vec::new(),
            pools: Vec::new(),
            texts: Vec::new(),
        }
        .text(&mut page);
        let text = page.into_text();
        assert_eq!(text.matches("not allowed; ").count(), 2, "{text}");
        assert!(
            text.contains("--allow availability") && text.contains("2 not here, 2 not allowed"),
            "{text}"
        );
        assert!(!text.contains("means nothing here"), "{text}");
    }

    #[test]
    fn places_that_one_file_persists_are_one_row() {
        let check = |cpu: u32, source: &str| KnobCheck {
            knob: KnobId::new("cpu.governor"),
            place: format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
            running: Some("performance".to_owned()),
            persisted: Some(BootValue::new("performance", source)),
            next_boot: Some(BootValue::new("performance", source)),
            overridden: vec![BootValue::new("powersave", source.replace("a.conf", "0.conf"))],
            overwritten_by: None,
            wanted: Some("performance".to_owned()),
            state: DriftState::Ok,
            because: None,
        };
        let told = |sources: [&str; 2], detailed| {
            let knobs = vec![check(0, sources[0]), check(1, sources[1])];
            let catalogue = Catalogue::embedded().expect("sound");
            let mut page = Page::new(PageOptions { width: 200, detailed }, &catalogue);
            CheckReport {
                against: None,
                knobs,
                trial_boots: Vec::new(),
                carried_over: Vec::new(),
                pools: Vec::new(),
                texts: Vec::new(),
            }
            .text(&mut page);
            page.into_text()
        };
        let one = told(["/etc/a.conf:4", "/etc/a.conf:5"], false);
        assert!(
            one.contains("cpu.governor x2")
                && one.contains("ok; persisted in /etc/a.conf")
                && !one.contains("conf:"),
            "{one}"
        );
        for (second, detailed) in [("/etc/b.conf:4", false), ("/etc/a.conf:5", true)] {
            let two = told(["/etc/a.conf:4", second], detailed);
            assert!(two.contains(" in /etc/a.conf:4") && two.contains(&format!(" in {second}")), "{two}");
            assert_eq!(two.contains("overrides powersave of /etc/0.conf:4"), detailed, "{two}");
        }
        let same = told(["/etc/a.conf:4", "/etc/a.conf:4"], false);
        assert!(same.contains("x2") && same.contains(" in /etc/a.conf:4"), "{same}");
    }

    /// As of a running trial boot, whose parameters no file gives.
    #[test]
    fn a_parameter_that_no_file_gives_is_persisted_in_none() {
        let catalogue = Catalogue::embedded().expect("sound");
        let mut page = Page::new(PageOptions { width: 200, detailed: false }, &catalogue);
        let check = |id: &str, running: &str, persisted: &str| KnobCheck {
            knob: KnobId::new(id),
            place: format!("cmdline:{id}"),
            running: Some(running.to_owned()),
            persisted: Some(BootValue::new(persisted, "/etc/default/grub:6")),
            next_boot: Some(BootValue::new(persisted, "/etc/default/grub:6")),
            overridden: Vec::new(),
            overwritten_by: None,
            wanted: Some(running.to_owned()),
            state: DriftState::Ok,
            because: Some("given to this boot alone, the trial boot of entry 1".to_owned()),
        };
        let given = check("boot.skew_tick", "0", "0");
        let none = [check("boot.skew_tick", "1", planish_model::NOT_GIVEN), check("boot.nosmt", "1", "0")];
        let told = |knobs: &[KnobCheck], page: &mut Page<'_>| {
            CheckReport {
                against: None,
                knobs: knobs.to_vec(),
                trial_boots: Vec::new(),
                carried_over: Vec::new(),
                pools: Vec::new(),
                texts: Vec::new(),
            }
            .text(page);
        };
        told(&none, &mut page);
        let text = page.into_text();
        assert!(text.contains("of entry 1") && !text.contains("persisted in"), "{text}");
        let mut page = Page::new(PageOptions { width: 200, detailed: false }, &catalogue);
        told(&[given], &mut page);
        let text = page.into_text();
        assert!(text.contains("persisted in /etc/default/grub:6"), "{text}");
    }

    #[test]
    fn what_runs_what_is_persisted_and_what_the_next_boot_brings_stand_apart() {
        let catalogue = Catalogue::embedded().expect("sound");
        let mut page = Page::new(PageOptions { width: 200, detailed: false }, &catalogue);
        let check = KnobCheck {
            knob: KnobId::new("vm.dirty_ratio"),
            place: "/proc/sys/vm/dirty_ratio".to_owned(),
            running: Some("20".to_owned()),
            persisted: Some(BootValue::new("30", "/etc/sysctl.d/90-planish.conf:4")),
            next_boot: Some(BootValue::new("0", "/etc/sysctl.d/99-local.conf:2")),
            overridden: Vec::new(),
            overwritten_by: None,
            wanted: Some("40".to_owned()),
            state: DriftState::Drift,
            because: Some("changed since entry 1".to_owned()),
        };
        CheckReport {
            against: None,
            knobs: vec![check],
            trial_boots: Vec::new(),
            carried_over: Vec::new(),
            pools: Vec::new(),
            texts: Vec::new(),
        }
        .text(&mut page);
        let text = page.into_text();
        let row = text.lines().nth(1).expect("a row");
        let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells[..5], ["vm.dirty_ratio", "20 %", "40 %", "30 %", "0 %"], "{text}");
        let places =
            ["persisted in /etc/sysctl.d/90-planish.conf:4", "next boot by /etc/sysctl.d/99-local.conf:2"];
        assert!(places.iter().all(|place| row.contains(place)), "{text}");
    }
}
