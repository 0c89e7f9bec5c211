//! The rows of a rung: metrics beside the baseline's, explaining columns, guards.

use std::collections::BTreeMap;

use planish_sorted::CollectMap as _;
use planish_stats::summary::median;
use planish_stats::{Estimate, GuardState, Walsh};

use super::race::{Pair, Run, guard_value};
use super::{ERROR_RATE, GuardSpec};
use crate::outcome::{Better, CollectorRow, Gain, GuardRow, MetricRow};
use crate::sample::Sample;

/// Confidence of the interval of a metric that decides nothing.
const ROW_LEVEL: f64 = 0.95;

/// The direction as the statistics know it.
pub(crate) fn better(better: Better) -> planish_stats::Better {
    match better {
        Better::Lower => planish_stats::Better::Lower,
        Better::Higher => planish_stats::Better::Higher,
    }
}

/// An estimate on pair logs as fractions.
pub(crate) fn gain(better: planish_stats::Better, estimate: &Estimate) -> Gain {
    let interval = estimate.interval.map(|log| better.gain(log));
    Gain { effect: better.gain(estimate.value), low: interval.low, high: interval.high }
}

/// Every metric of the arm beside the baseline's.
pub(super) fn metrics(pairs: &[Pair]) -> BTreeMap<String, MetricRow> {
    let Some(first) = pairs.first() else { return BTreeMap::new() };
    let row = |name: &String| {
        let metric = first.arm.metrics.get(name)?;
        let logs: Vec<f64> = pairs
            .iter()
            .filter_map(|pair| {
                better(metric.better).pair_log(pair.baseline.value(name)?, pair.arm.value(name)?).ok()
            })
            .collect();
        // A ratio over only some of the pairs would be a selection.
        let whole = logs.len() == pairs.len();
        let estimate = Walsh::new(&logs).filter(|_| whole).map(|walsh| walsh.estimate(ROW_LEVEL));
        Some(MetricRow {
            unit: metric.unit.to_string(),
            better: metric.better,
            baseline: median_of(pairs.iter().filter_map(|pair| pair.baseline.value(name))),
            value: median_of(pairs.iter().filter_map(|pair| pair.arm.value(name))),
            gain: estimate.map(|estimate| gain(better(metric.better), &estimate)),
            pair_logs: if whole { logs } else { Vec::new() },
        })
    };
    first.arm.metrics.keys().filter_map(|name| Some((name.clone(), row(name)?))).collect_map()
}

/// Every explaining column of the arm beside the baseline's.
pub(super) fn collectors(pairs: &[Pair]) -> BTreeMap<String, CollectorRow> {
    let Some(last) = pairs.last() else { return BTreeMap::new() };
    let value = |sample: &Sample, name: &str| sample.collectors.get(name)?.value.clone().ok();
    let row = |name: &String| {
        let collected = &last.arm.collectors[name];
        let told = median_of(pairs.iter().filter_map(|pair| value(&pair.arm, name)));
        CollectorRow {
            available: told.is_some(),
            reason: collected.value.clone().err().filter(|_| told.is_none()),
            unit: collected.unit.to_owned(),
            baseline: median_of(pairs.iter().filter_map(|pair| value(&pair.baseline, name))),
            value: told,
        }
    };
    last.arm.collectors.keys().map(|name| (name.clone(), row(name))).collect_map()
}

fn median_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| median(&values))
}

/// What became of each guard.
pub(super) fn guards(specs: &[GuardSpec], run: Option<&Run>) -> Vec<GuardRow> {
    let found = run.and_then(|run| run.sequential.conclusion()).map_or(&[][..], |end| &end.guards);
    let row = |spec: &GuardSpec| {
        let finding = found.iter().find(|finding| finding.guard.name == spec.metric);
        let Some(finding) = finding else {
            let reason = "not reported by the program, or not measured".to_owned();
            return GuardRow {
                metric: spec.metric.clone(),
                margin: spec.margin,
                low: None,
                level: None,
                held: None,
                reason,
                pair_values: Vec::new(),
            };
        };
        // Guards compare logs, which for a few per cent are fractions.
        let low = finding.bound.filter(|_| spec.metric != ERROR_RATE).map(|bound| bound.value.exp_m1());
        let (held, reason) = match finding.state {
            GuardState::Held => (Some(true), "within its margin"),
            GuardState::Breached => (Some(false), "worse than its margin"),
            GuardState::Open => (None, "too noisy to tell"),
        };
        let pairs = run.map_or(&[][..], |run| &run.pairs);
        GuardRow {
            metric: spec.metric.clone(),
            margin: spec.margin,
            low,
            level: finding.bound.map(|bound| bound.level),
            held,
            reason: reason.to_owned(),
            pair_values: pairs.iter().map(|pair| guard_value(&spec.metric, pair)).collect(),
        }
    };
    specs.iter().map(row).collect()
}
