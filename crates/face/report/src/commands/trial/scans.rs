//! Of a trial that is about mean latencies: mean and standard deviation of each kind of operation, and where the
//! memory of each arm lies. A mean alone hides what placement does most to: that some are slow and others not.

use std::collections::BTreeMap;

use planish_trial::{Achieved, MetricRow, TrialOutcome};
use serde_json::Value;

use crate::table::{Cell, Table};
use crate::units;

/// The metrics of operations that are told without a kind.
const MEAN: &str = "mean_ns";
const SPREAD: &str = "sd_ns";

/// Whether the trial is about means, so that their spread is half of the answer.
pub(super) fn are_told(outcome: &TrialOutcome) -> bool {
    outcome.primary.name.ends_with(MEAN)
}

/// One row for each arm and kind of operation.
pub(super) fn table(outcome: &TrialOutcome) -> Table {
    let titles =
        ["arm", "scans", ">mean", ">gain", ">interval (95 %)", ">sd", ">gain of sd", ">interval (95 %)"];
    let mut table = Table::new(&titles);
    let measured = || outcome.rungs.iter().filter(|rung| rung.metrics.contains_key(MEAN));
    // The baseline ran in every block; the rung that stayed longest saw most of them.
    if let Some(longest) = measured().max_by_key(|rung| rung.pairs) {
        rows(&mut table, &outcome.baseline, &longest.metrics, true);
    }
    measured().for_each(|rung| rows(&mut table, &rung.name, &rung.metrics, false));
    table
}

/// The rows of one arm: operations without a kind first, which are the independent scans of `prove numa`.
fn rows(table: &mut Table, arm: &str, metrics: &BTreeMap<String, MetricRow>, is_baseline: bool) {
    let kinds = metrics.keys().filter_map(|name| name.strip_suffix(MEAN));
    for kind in kinds {
        let spread = metrics.get(&format!("{kind}{SPREAD}"));
        let cells = |row: Option<&MetricRow>| -> [Cell; 3] {
            let value = row.and_then(|row| if is_baseline { row.baseline } else { row.value });
            let unit = row.map_or("", |row| row.unit.as_str());
            let gain = row.and_then(|row| row.gain).filter(|_| !is_baseline);
            [
                value.map(|value| units::quantity(value, unit)).unwrap_or_default().into(),
                gain.map(|gain| units::gain(gain.effect)).unwrap_or_default().into(),
                super::interval(gain.map(|gain| gain.low), gain.map(|gain| gain.high)).into(),
            ]
        };
        let name = if kind.is_empty() { "independent" } else { kind.trim_end_matches('_') };
        let [mean, gain, of_mean] = cells(metrics.get(&format!("{kind}{MEAN}")));
        let [sd, gain_of_sd, of_sd] = cells(spread);
        table.row([arm.into(), name.into(), mean, gain, of_mean, sd, gain_of_sd, of_sd]);
    }
}

/// One row for each arm whose placement was read back.
pub(super) fn placed(outcome: &TrialOutcome) -> Table {
    let mut table = Table::new(&["arm", "tables by node", "heaps by node", ">heaps with their threads"]);
    let baseline = outcome.baseline_achieved.as_ref().map(|achieved| (outcome.baseline.as_str(), achieved));
    let rungs = outcome.rungs.iter().filter_map(|rung| Some((rung.name.as_str(), rung.achieved.as_ref()?)));
    for (arm, achieved) in baseline.into_iter().chain(rungs) {
        let local = achieved.facts.get("heap_local_share").and_then(Value::as_f64);
        table.row([
            arm.into(),
            shares(achieved, "table_bytes").into(),
            shares(achieved, "heap_bytes").into(),
            local.map(|share| format!("{:.1} %", 100.0 * share)).unwrap_or_default().into(),
        ]);
    }
    table
}

/// `0: 50.0 %, 1: 50.0 %`
fn shares(achieved: &Achieved, fact: &str) -> String {
    let Some(nodes) = achieved.facts.get(fact).and_then(Value::as_object) else { return String::new() };
    let bytes = |value: &Value| value.as_f64().unwrap_or(0.0);
    let all: f64 = nodes.values().map(bytes).sum();
    let share =
        |(node, value): (&String, &Value)| format!("{node}: {:.1} %", 100.0 * bytes(value) / all.max(1.0));
    nodes.iter().map(share).collect::<Vec<_>>().join(", ")
}
