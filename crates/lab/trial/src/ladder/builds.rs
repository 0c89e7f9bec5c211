//! What may be claimed of a recipe, from the pairs of its builds.

use std::collections::{BTreeMap, BTreeSet};

use planish_stats::Better;
use planish_stats::builds::{BUILDS_MIN, between_builds};
use planish_stats::hodges_lehmann;
use serde_json::Value;

use super::race::{Pair, Run};
use super::rows::gain;
use crate::outcome::{BuildRow, Builds, RungVerdict};

/// The pairs of a rung by build; `None` for an arm with one program.
pub(super) fn builds(run: &Run, better: Better) -> Option<Builds> {
    let mut of_build: BTreeMap<usize, (Vec<f64>, &Pair)> = BTreeMap::new();
    for (pair, log) in run.pairs.iter().zip(run.sequential.logs()) {
        of_build.entry(pair.arm.build?).or_insert_with(|| (Vec::new(), pair)).0.push(*log);
    }
    if of_build.is_empty() {
        return None;
    }
    let row = |(index, (logs, pair)): (&usize, &(Vec<f64>, &Pair))| {
        let fact = |name: &str| pair.arm.achieved.as_ref()?.facts.get(name);
        BuildRow {
            index: *index,
            seed: fact("build_seed").and_then(Value::as_u64),
            sha256: fact("program_sha256").and_then(Value::as_str).map(str::to_owned),
            pairs: logs.len(),
            effect: better.gain(hodges_lehmann(logs).unwrap_or(0.0)),
            pair_logs: logs.clone(),
        }
    };
    let rows: Vec<BuildRow> = of_build.iter().map(row).collect();
    let distinct = rows.iter().map(|row| &row.sha256).collect::<BTreeSet<_>>().len();
    let level = 1.0 - run.sequential.design().alpha();
    let logs: Vec<Vec<f64>> = of_build.into_values().map(|(logs, _)| logs).collect();
    // Builds of the same bytes are one sample of layouts, however many there are.
    let between = between_builds(&logs, level).ok().filter(|_| distinct >= BUILDS_MIN);
    Some(Builds {
        builds: rows,
        distinct,
        gain: between.as_ref().map(|between| gain(better, &between.effect)),
        level,
        spread: between.map(|between| between.spread),
    })
}

/// What the builds make of a rung that its pairs would keep: the verdict, and what is added to its reason.
pub(super) fn claim(builds: &Builds, min_gain: f64) -> (RungVerdict, String) {
    let (count, distinct) = (builds.builds.len(), builds.distinct);
    match (&builds.gain, builds.spread) {
        (Some(gain), _) if gain.low > 0.0 && gain.effect >= min_gain => {
            (RungVerdict::Keep, format!("; the recipe pays, by {count} builds"))
        }
        (Some(gain), Some(spread)) => {
            let reason = format!(
                "; but its {count} builds differ by {:.1} % (standard deviation), so that the recipe may give \
                 {:.1} % to \
                 {:.1} %: more builds would tell",
                100.0 * spread,
                100.0 * gain.low,
                100.0 * gain.high
            );
            (RungVerdict::Inconclusive, reason)
        }
        _ => {
            let programs =
                if distinct == 1 { "the same program".to_owned() } else { format!("{distinct} programs") };
            let reason = format!(
                "; {count} builds gave {programs}: it holds for what was built, and says nothing of the recipe \
                 (does it use PLANISH_BUILD_SEED?)"
            );
            (RungVerdict::Keep, reason)
        }
    }
}
