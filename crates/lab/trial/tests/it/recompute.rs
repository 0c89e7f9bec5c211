//! Computes every gain and interval of an outcome again, from the log ratios that it tells and nothing else.

use planish_stats::builds::{BUILDS_MIN, between_builds};
use planish_stats::noise::CHECK_LEVEL;
use planish_stats::summary::robust_sigma;
use planish_stats::{Better, Estimate, Walsh, hodges_lehmann};
use planish_trial::{Builds, First, Gain, GuardRow, Rung, RungVerdict, SelfCheck, TrialOutcome};

/// Level of the interval of a metric that decides nothing.
const ROW_LEVEL: f64 = 0.95;

/// Panics, naming the figure, where one is not what its pairs say or has no pairs at all.
pub fn recompute(outcome: &TrialOutcome) {
    let better = direction(outcome.primary.better);
    for rung in &outcome.rungs {
        own_pairs(rung, better);
        assert_eq!(rung.tested.is_some(), !outcome.version.is_empty(), "{}", rung.name);
        if let Some(fresh) = &rung.confirmed {
            let at = format!("{}, confirmed", rung.name);
            assert_eq!((fresh.pair_logs.len(), fresh.orders.len()), (fresh.pairs, fresh.pairs), "{at}");
            same(&at, fresh.gain, again(&fresh.pair_logs, fresh.level.expect("its level"), better));
            fresh.guards.iter().for_each(|guard| held(&at, guard, rung, fresh.pairs));
        }
        for (name, row) in &rung.metrics {
            let at = format!("{}, {name}", rung.name);
            assert_eq!(row.gain.is_some(), !row.pair_logs.is_empty(), "{at}");
            if let Some(gain) = row.gain {
                same(&at, gain, again(&row.pair_logs, ROW_LEVEL, direction(row.better)));
            }
        }
        if let Some(primary) = rung.metrics.get(&outcome.primary.name) {
            assert_eq!(primary.pair_logs, rung.pair_logs, "{}: one metric has one set of pairs", rung.name);
        }
        rung.guards.iter().for_each(|guard| held(&rung.name, guard, rung, rung.pairs));
        if let Some(found) = &rung.builds {
            builds(rung, found, better);
        }
    }
    if let Some(check) = &outcome.selfcheck {
        noise(check, better);
    }
}

fn direction(better: planish_trial::Better) -> Better {
    match better {
        planish_trial::Better::Lower => Better::Lower,
        planish_trial::Better::Higher => Better::Higher,
    }
}

fn own_pairs(rung: &Rung, better: Better) {
    let name = &rung.name;
    assert_eq!((rung.pair_logs.len(), rung.orders.len()), (rung.pairs, rung.pairs), "{name}");
    assert_eq!(rung.effect.is_some(), rung.pairs > 0, "{name}");
    if rung.verdict == RungVerdict::Keep {
        assert_eq!(rung.tested, Some(true), "{name} was kept and could not have been");
    }
    let (Some(effect), Some(low), Some(high)) = (rung.effect, rung.low, rung.high) else { return };
    let level = rung.level.expect("an interval has its level");
    same(name, Gain { effect, low, high }, again(&rung.pair_logs, level, better));
}

fn again(logs: &[f64], level: f64, better: Better) -> Gain {
    of(&Walsh::new(logs).expect("a gain has pairs").estimate(level), better)
}

fn of(estimate: &Estimate, better: Better) -> Gain {
    let interval = estimate.interval.map(|log| better.gain(log));
    Gain { effect: better.gain(estimate.value), low: interval.low, high: interval.high }
}

fn same(at: &str, told: Gain, found: Gain) {
    for (told, found) in [(told.effect, found.effect), (told.low, found.low), (told.high, found.high)] {
        near(at, told, found);
    }
}

fn near(at: &str, told: f64, found: f64) {
    assert!((told - found).abs() <= 1e-12 * told.abs().max(1.0), "{at}: told {told}, computed {found}");
}

/// A guard holds, or is spoiled, by its own pairs.
fn held(at: &str, guard: &GuardRow, rung: &Rung, pairs: usize) {
    let at = format!("{at}, guard {}", guard.metric);
    let Some(walsh) = Walsh::new(&guard.pair_values) else {
        assert_eq!((guard.held, guard.low), (None, None), "{at}");
        return;
    };
    assert_eq!(guard.pair_values.len(), pairs, "{at}");
    let is_share = guard.metric == "error_rate";
    let floor = match rung.metrics.get(&guard.metric) {
        Some(row) if !is_share => direction(row.better).log_gain(-guard.margin).expect("a margin"),
        _ => -guard.margin,
    };
    // Versions that did not tell the level had 95 % at each look; today's has at least that, or no bound at all.
    let is_judged = guard.low.is_some() || guard.held.is_some();
    let level = guard.level.or(is_judged.then_some(0.95));
    assert!(level.is_none_or(|level| level >= 0.95), "{at}");
    let lower = level.and_then(|level| walsh.lower_bound(level));
    let is_held = lower.is_some_and(|bound| bound >= floor);
    let is_spoiled = walsh.upper_bound(0.99).is_some_and(|bound| bound < floor);
    assert_eq!(guard.held, if is_held { Some(true) } else { is_spoiled.then_some(false) }, "{at}");
    assert_eq!(guard.low.is_none(), is_share || lower.is_none(), "{at}");
    if let (Some(told), Some(lower)) = (guard.low, lower) {
        near(&at, told, lower.exp_m1());
    }
}

fn builds(rung: &Rung, found: &Builds, better: Better) {
    let at = |index: usize| format!("{}, build {index}", rung.name);
    let mut logs: Vec<f64> = Vec::new();
    for build in &found.builds {
        assert_eq!(build.pair_logs.len(), build.pairs, "{}", at(build.index));
        let effect = hodges_lehmann(&build.pair_logs).expect("a build has pairs");
        near(&at(build.index), build.effect, better.gain(effect));
        logs.extend(&build.pair_logs);
    }
    let mut all = rung.pair_logs.clone();
    all.sort_by(f64::total_cmp);
    logs.sort_by(f64::total_cmp);
    assert_eq!(logs, all, "{}: every pair is of one build", rung.name);
    let of_builds: Vec<Vec<f64>> = found.builds.iter().map(|build| build.pair_logs.clone()).collect();
    let whole = between_builds(&of_builds, found.level).ok().filter(|_| found.distinct >= BUILDS_MIN);
    assert_eq!(found.gain.is_some(), whole.is_some(), "{}", rung.name);
    if let (Some(gain), Some(whole)) = (found.gain, whole) {
        same(&rung.name, gain, of(&whole.effect, better));
        near(&rung.name, found.spread.expect("with a gain"), whole.spread);
    }
}

/// What the self-check says of its own pairs.
fn noise(check: &SelfCheck, better: Better) {
    assert_eq!((check.pair_logs.len(), check.orders.len()), (check.pairs, check.pairs), "self-check");
    let of_twin = check.pair_logs.iter().zip(&check.orders);
    let signed: Vec<f64> =
        of_twin.map(|(log, first)| if *first == First::Baseline { *log } else { -log }).collect();
    near("sigma_d", check.sigma_d, robust_sigma(&signed));
    let position = check.position_effect.expect("every self-check has one");
    same("position", position, again(&check.pair_logs, CHECK_LEVEL, better));
}
