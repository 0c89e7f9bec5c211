//! `planish apply`: what each step of the plan did, read back from the host.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::{
    EntryId, KnobCheck, Outcome, OutcomeKind, PersistFile, Plan, PlanHash, PoolGoing, Skipped, Step,
    Unpersisted, VerdictKind,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::plan::handed_back;
use crate::commands::undo::{outcome_cell, without_place};
use crate::page::{Page, Report, risk};
use crate::table::{Cell, Table};

/// What `apply` did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ApplyReport {
    /// The journal entry that `undo` takes; `null` when nothing was written.
    pub entry: Option<EntryId>,
    /// The plan, by its hash.
    pub hash: PlanHash,
    /// The profile.
    pub profile: String,
    /// What each step did, in the order of the plan.
    pub outcomes: Vec<Outcome>,
    /// How the host compares with the plan afterwards, from a fresh look at it.
    pub knobs: Vec<KnobCheck>,
    /// What `--persist` was asked to keep and nothing brings back at the next boot.
    pub unpersisted: Vec<Unpersisted>,
    /// The files that `--persist` had to write, and what changes in them; `planish confirm` writes them where the apply
    /// waits for one.
    pub files: Vec<PersistFile>,
    /// Pools of the entry whose place it took: what was taken over, what went back to the host, and what stays with
    /// that entry since it is in use. None where the apply waits for a confirm, which takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolGoing>,
    /// The steps as they were planned: they give the table its other columns.
    #[serde(skip)]
    #[schemars(skip)]
    pub plan: Plan,
}

impl Report for ApplyReport {
    const COMMAND: &'static str = "apply";

    fn text(&self, page: &mut Page<'_>) {
        let mut written = BTreeSet::new();
        let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
        let key = |outcome: &Outcome| {
            let step = self.step(outcome).map(|step| (step.now.clone(), step.wanted.clone()));
            (without_place(outcome), step)
        };
        for group in self.outcomes.chunk_by(|a, b| key(a) == key(b)) {
            let first = &group[0];
            let places: Vec<&str> = group.iter().map(|outcome| outcome.place.as_str()).collect();
            let Some(step) = self.step(first) else {
                // Files that bring the values back at the next boot are no steps of the plan. Each is told: of entries
                // of a boot loader that are alike, one alone would be taken for all that was written.
                for file in group {
                    let (path, blank) = (file.place.as_str().into(), Cell::default);
                    table.row([path, blank(), blank(), blank(), outcome_cell(file, None)]);
                }
                continue;
            };
            let value = |text: &str| page.value(&first.knob, text);
            let before = value(&step.now);
            // Once more the same place: after a failure, what was written is taken back.
            let back = !written.insert(first.place.clone());
            let said = match first.outcome {
                OutcomeKind::Done if back => Some("put back".to_owned()),
                OutcomeKind::Done => Some(format!("was {before}")),
                _ => None,
            };
            table.row([
                page.knob(&first.knob, &places),
                first.read_back.as_deref().map(value).unwrap_or_default().into(),
                if back { before } else { value(&step.wanted) }.into(),
                risk(step.class, step.when),
                outcome_cell(first, said),
            ]);
        }
        page.table(&table);
        handed_back(&self.pools, page);
        if let Some(entry) = self.entry {
            page.gap();
            page.fact("entry", &entry.to_string());
            page.fact("plan", &self.hash.to_string());
        }
    }
}

impl ApplyReport {
    /// What the profile wants and something forbids here, one sentence for each knob and reason; and what it names and
    /// this host has not, which may be a typing error, one for each name. What no machine of this kind has is told by
    /// the plan alone.
    #[must_use]
    pub fn left_alone(&self) -> Vec<String> {
        let blocked = |row: &&Skipped| !row.satisfied && row.verdict.verdict == VerdictKind::Blocked;
        let rows: Vec<&Skipped> = self.plan.skipped.iter().filter(blocked).collect();
        let groups = rows.chunk_by(|a, b| (&a.knob, &a.verdict.reason) == (&b.knob, &b.verdict.reason));
        let sentence = |group: &[&Skipped]| {
            let count = if group.len() > 1 { format!(" x{}", group.len()) } else { String::new() };
            format!("{}{count} is not set: {}", group[0].knob, group[0].verdict.reason)
        };
        let named = self.plan.skipped.iter().filter(|row| row.nothing_named);
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in named {
            missing.entry(&row.verdict.reason).or_default().insert(row.knob.as_str());
        }
        let missing = missing.into_iter().map(|(reason, knobs)| {
            let verb = if knobs.len() == 1 { "is" } else { "are" };
            let knobs: Vec<&str> = knobs.into_iter().collect();
            format!("{} {verb} not set: {reason}", knobs.join(", "))
        });
        groups.map(sentence).chain(missing).collect()
    }

    fn step(&self, outcome: &Outcome) -> Option<&Step> {
        self.plan.steps.iter().find(|step| step.knob == outcome.knob && step.place == outcome.place)
    }
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, KnobId};

    use super::*;
    use crate::page::PageOptions;

    #[test]
    fn every_file_of_the_boot_loader_that_was_written_is_told() {
        let files = ["570.12.1", "503.40.1"].map(|version| format!("/boot/loader/entries/m-{version}.conf"));
        let of = |kind: OutcomeKind| {
            let outcome =
                |path: &String| Outcome::new(KnobId::new("persist.boot-entry"), path.as_str(), kind);
            let plan = Plan::new(String::new(), String::new(), String::new(), Vec::new(), Vec::new());
            let report = ApplyReport {
                entry: Some(EntryId(1)),
                hash: plan.hash.clone(),
                profile: String::new(),
                outcomes: files.iter().map(outcome).collect(),
                knobs: Vec::new(),
                unpersisted: Vec::new(),
                files: Vec::new(),
                pools: Vec::new(),
                plan,
            };
            let catalogue = Catalogue::default();
            let mut page = Page::new(PageOptions { width: 100, detailed: false }, &catalogue);
            report.text(&mut page);
            page.into_text()
        };
        for (kind, word) in [(OutcomeKind::Done, "done"), (OutcomeKind::Failed, "failed")] {
            let told = of(kind);
            for path in &files {
                let row = told.lines().find(|line| line.contains(path.as_str()));
                assert!(row.is_some_and(|row| row.contains(word)), "{path}: {told}");
            }
        }
    }
}
