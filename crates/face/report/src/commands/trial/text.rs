//! Of a trial whose arms are one program laid out differently: where its code lies in each, what a simulated CPU misses
//! of it, and what the real one took in user and system time. Time alone does not tell a layout from luck.

use std::collections::BTreeMap;

use planish_trial::{Achieved, MetricRow, TrialOutcome};
use serde_json::Value;

use super::interval;
use crate::table::{Cell, Table};
use crate::units;

/// The fact that every arm of such a trial has.
const PAGES: &str = "pages_4k_99";

/// Metrics that are told beside the one that decides, those that the workload has.
const BESIDE: [&str; 9] = [
    "cpu_s",
    "user_s",
    "system_s",
    "user_ns_per_op",
    "system_ns_per_op",
    "tps",
    "p50_ns",
    "p90_ns",
    "p99_ns",
];

/// Whether the trial is about where code lies.
pub(super) fn is_told(outcome: &TrialOutcome) -> bool {
    arms(outcome).any(|(_, achieved)| achieved.facts.contains_key(PAGES))
}

/// Every arm with what was read of it, the baseline first.
fn arms(outcome: &TrialOutcome) -> impl Iterator<Item = (&str, &Achieved)> {
    let baseline = outcome.baseline_achieved.as_ref().map(|achieved| (outcome.baseline.as_str(), achieved));
    let rungs = outcome.real_rungs().filter_map(|rung| Some((rung.name.as_str(), rung.achieved.as_ref()?)));
    baseline.into_iter().chain(rungs)
}

/// One row for each arm: pages that hold its samples, misses for a million instructions, text on huge pages.
pub(super) fn code(outcome: &TrialOutcome) -> Table {
    let titles = [
        "arm",
        ">pages of 90 %",
        ">of 99 %",
        ">on huge pages",
        ">L1i",
        ">iTLB, 4 KiB",
        ">iTLB, 2 MiB",
        ">branches taken",
    ];
    let mut table = Table::new(&titles);
    for (arm, Achieved { facts, .. }) in arms(outcome) {
        let count = |name: &str| facts.get(name).and_then(Value::as_u64);
        let whole = |name: &str| count(name).map(|count| count.to_string()).unwrap_or_default();
        let misses = |name: &str| match facts.get(name).and_then(Value::as_f64) {
            Some(misses) if misses < 1.0 => format!("{misses:.2}"),
            Some(misses) => format!("{misses:.0}"),
            None => String::new(),
        };
        let huge = count("text_huge_bytes").zip(count("text_whole_bytes"));
        // What is there no more at the end was not there for all of the figures.
        let huge =
            huge.map(|(huge, whole)| (count("text_huge_after_bytes").unwrap_or(huge).min(huge), whole));
        let huge = huge.filter(|(huge, _)| *huge > 0);
        let huge = huge.map(|(huge, whole)| format!("{} of {}", units::bytes(huge), units::bytes(whole)));
        let taken = count("taken_branches_before").zip(count("taken_branches_after"));
        let taken = taken.map(|(before, after)| units::gain(after as f64 / before.max(1) as f64 - 1.0));
        table.row([
            arm.into(),
            whole("pages_4k_90").into(),
            whole(PAGES).into(),
            huge.unwrap_or_default().into(),
            misses("l1i_misses_per_million").into(),
            misses("itlb_4k_misses_per_million").into(),
            misses("itlb_2m_misses_per_million").into(),
            taken.unwrap_or_default().into(),
        ]);
    }
    table
}

/// One row for each arm and metric that is told beside the one that decides, with its gain.
pub(super) fn beside(outcome: &TrialOutcome) -> Table {
    let mut table = Table::new(&["metric", "arm", ">median", ">gain", ">interval (95 %)"]);
    let measured = || outcome.real_rungs().filter(|rung| rung.pairs > 0);
    let longest = measured().max_by_key(|rung| rung.pairs);
    for metric in BESIDE.into_iter().filter(|metric| *metric != outcome.primary.name) {
        let row = |metrics: &BTreeMap<String, MetricRow>| metrics.get(metric).cloned();
        if let Some(row) = longest.and_then(|rung| row(&rung.metrics)) {
            let value = row.baseline.map(|value| units::quantity(value, &row.unit)).unwrap_or_default();
            let name = outcome.baseline.as_str();
            table.row([metric.into(), name.into(), value.into(), Cell::default(), Cell::default()]);
        }
        for (rung, row) in measured().filter_map(|rung| Some((rung, row(&rung.metrics)?))) {
            let value = row.value.map(|value| units::quantity(value, &row.unit)).unwrap_or_default();
            let gain = row.gain.map(|gain| units::gain(gain.effect)).unwrap_or_default();
            let ends = interval(row.gain.map(|gain| gain.low), row.gain.map(|gain| gain.high));
            table.row([Cell::default(), rung.name.as_str().into(), value.into(), gain.into(), ends.into()]);
        }
    }
    table
}
