//! `planish trial run` and `planish prove`: the ladder of rungs with its intervals, and the noise behind it.

mod scans;
mod text;

use std::collections::BTreeMap;

use anstyle::Style;
use planish_trial::{
    Better, Boots, BootsState, Builds, Confirmed, Gain, LadderMode, Rung, RungVerdict, SelfCheck,
    SelfCheckVerdict, TrialOutcome, UnitKind,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::doctor::host_facts;
use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

/// What `trial run` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TrialRunReport(pub TrialOutcome);

/// What `prove` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ProveReport(pub TrialOutcome);

/// What `trial selfcheck` found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct SelfCheckReport(pub SelfCheck);

/// Where a trial is whose arms are boots.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialStatusReport {
    /// The trial as far as it has come, or the last that has ended; null where there was none.
    pub trial: Option<TrialOutcome>,
}

/// What `trial stop` ended.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialStopReport {
    /// The trial as far as it had come; null where none was under way.
    pub trial: Option<TrialOutcome>,
}

/// What `trial resume` went on with.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialResumeReport {
    /// The trial as far as it has come; null where none was under way.
    pub trial: Option<TrialOutcome>,
}

impl Report for TrialStatusReport {
    const COMMAND: &'static str = "trial-status";

    fn text(&self, page: &mut Page<'_>) {
        if let Some(trial) = &self.trial {
            outcome(trial, page);
        } else {
            page.line("No trial of boots is under way, and none has run here.");
        }
    }
}

impl Report for TrialStopReport {
    const COMMAND: &'static str = "trial-stop";

    fn text(&self, page: &mut Page<'_>) {
        self.trial.iter().for_each(|trial| outcome(trial, page));
    }
}

impl Report for TrialResumeReport {
    const COMMAND: &'static str = "trial-resume";

    fn text(&self, page: &mut Page<'_>) {
        self.trial.iter().for_each(|trial| outcome(trial, page));
    }
}

impl Report for TrialRunReport {
    const COMMAND: &'static str = "trial-run";

    fn text(&self, page: &mut Page<'_>) {
        outcome(&self.0, page);
    }
}

impl Report for ProveReport {
    const COMMAND: &'static str = "prove";

    fn text(&self, page: &mut Page<'_>) {
        outcome(&self.0, page);
    }
}

impl Report for SelfCheckReport {
    const COMMAND: &'static str = "trial-selfcheck";

    fn text(&self, page: &mut Page<'_>) {
        noise(&self.0, page);
    }
}

fn outcome(outcome: &TrialOutcome, page: &mut Page<'_>) {
    page.fact("trial", &format!("{}: {}", outcome.trial, outcome.summary));
    host_facts(&outcome.host, page);
    let primary = &outcome.primary;
    page.fact("metric", &format!("{} ({}, {})", primary.name, primary.unit, direction(primary.better)));
    page.fact("baseline", &baseline(outcome));
    if outcome.mode == LadderMode::Step {
        page.fact("mode", "step: each rung over what was kept before it, the total over the baseline");
    }
    if outcome.duet {
        page.fact("duet", "both arms of a pair ran at the same time, each on its half of the CPUs");
    }
    let took = units::seconds(outcome.seconds);
    let own = outcome.overhead * 100.0;
    let own = match outcome.unit {
        UnitKind::Boot => String::new(),
        _ => format!(", of which {own:.2} % went into bookkeeping"),
    };
    page.fact("took", &format!("{took}{own}; seed {}", outcome.seed));
    page.gap();
    page.table(&ladder(outcome));
    page.gap();
    if scans::are_told(outcome) {
        if outcome.rungs.iter().any(|rung| rung.pairs > 0) {
            page.table(&scans::table(outcome));
            page.gap();
        }
        page.table(&scans::placed(outcome));
    } else {
        page.table(&arms(outcome));
    }
    if outcome.rungs.iter().any(|rung| rung.pairs > 0) {
        page.line("Values are medians of each arm alone, gains come from pairs: on a machine that drifts they differ.");
    }
    if text::is_told(outcome) {
        page.heading("Code");
        page.table(&text::code(outcome));
        page.line(
            "Pages hold the samples of that very program; misses are simulated, for a million instructions.",
        );
        page.gap();
        page.table(&text::beside(outcome));
    }
    if let Some(boots) = &outcome.boots {
        page.heading("Boots");
        self::boots(boots, page);
    }
    if let Some(selfcheck) = &outcome.selfcheck {
        page.heading("Noise");
        noise(selfcheck, page);
    }
    if page.is_detailed() {
        outcome.rungs.iter().for_each(|rung| details(rung, page));
    }
    refused(outcome, page);
    if !outcome.notes.is_empty() || !outcome.discarded.is_empty() {
        page.gap();
        let discarded = outcome.discarded.iter();
        page.fact("redone", &redone(outcome));
        discarded.for_each(|one| page.fact("redone", &format!("block {}: {}", one.block, one.reason)));
        outcome.notes.iter().for_each(|note| page.fact("note", note));
    }
    if let Some(proof) = &outcome.proof_id {
        page.gap();
        page.fact("proof", proof);
    }
}

/// How many blocks were run again, and for what the machine did.
fn redone(outcome: &TrialOutcome) -> String {
    if outcome.discarded.is_empty() {
        return String::new();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for discard in &outcome.discarded {
        *counts.entry(discard.covariate.as_str()).or_default() += 1;
    }
    let causes: Vec<String> = counts.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    let all = outcome.blocks.len() + outcome.discarded.len();
    format!("{} of {all} blocks: {}", outcome.discarded.len(), causes.join(", "))
}

/// The boots so far: one figure each, of every arm that ran inside.
fn boots(boots: &Boots, page: &mut Page<'_>) {
    let word = match boots.state {
        BootsState::UnderWay => "under way",
        BootsState::Ended => "ended",
    };
    page.fact("state", &format!("{word}; {} boots asked for, {} at most", boots.asked, boots.boots_max));
    for (name, arguments) in &boots.arguments {
        page.fact(name, &format!("gives {arguments}"));
    }
    let mut table = Table::new(&["block", "boot", "values"]);
    for row in &boots.boots {
        let told = |(name, value): (&String, &Option<f64>)| match value {
            Some(value) => format!("{name} {value:.6}"),
            None => format!("{name} failed"),
        };
        let values = row.values.iter().map(told).collect::<Vec<_>>().join(", ");
        let told = row.lost.as_ref().map_or(values, |why| format!("lost: {why}"));
        table.row([row.block.to_string().into(), row.arm.as_str().into(), told.into()]);
    }
    page.table(&table);
}

fn baseline(outcome: &TrialOutcome) -> String {
    let got = outcome.baseline_achieved.as_ref().and_then(|achieved| achieved.backing.as_deref());
    let name = &outcome.baseline;
    got.map_or_else(|| name.clone(), |backing| format!("{name}, on {backing} pages"))
}

fn direction(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
}

fn ladder(outcome: &TrialOutcome) -> Table {
    let titles =
        ["rung", "verdict", ">gain", ">needs", ">interval", ">level", ">pairs", ">confirmed", "got", "why"];
    // Where all were compared with the baseline, the line above says so.
    let is_step = outcome.mode == LadderMode::Step;
    let against: &[&str] = if is_step { &["against"] } else { &[] };
    let mut table = Table::new(&[&titles[..1], against, &titles[1..]].concat());
    for rung in &outcome.rungs {
        let (word, style) = verdict(rung.verdict);
        let against = is_step.then(|| rung.against.join(" + ").into());
        let cells: [Cell; 9] = [
            Cell::styled(word, style),
            rung.effect.map(units::gain).unwrap_or_default().into(),
            rung.min_gain.map(|least| format!("{:.1} %", 100.0 * least)).unwrap_or_default().into(),
            interval(rung.low, rung.high).into(),
            rung.level.map(|level| format!("{:.1} %", 100.0 * level)).unwrap_or_default().into(),
            if rung.pairs == 0 { "".into() } else { rung.pairs.to_string().into() },
            rung.confirmed.as_ref().map(confirmed).unwrap_or_default().into(),
            got(rung).into(),
            rung.reason.as_str().into(),
        ];
        table.row([rung.name.as_str().into()].into_iter().chain(against).chain(cells));
    }
    table
}

/// Throughput by the names that adapters give it, the one that people know best first.
const THROUGHPUTS: [&str; 3] = ["select_ops_per_s", "tps", "ops_per_s"];

/// What each arm did: the decisive metric, throughput with its own interval, and the size of its page tables.
fn arms(outcome: &TrialOutcome) -> Table {
    let primary = outcome.primary.name.as_str();
    let measured = || outcome.rungs.iter().filter(|rung| rung.metrics.contains_key(primary));
    let throughput = THROUGHPUTS
        .into_iter()
        .find(|name| *name != primary && measured().any(|rung| rung.metrics.contains_key(*name)));
    let rate = throughput.map_or(String::new(), |name| format!(">{name}"));
    let title = format!(">{primary}");
    let paired = throughput.map_or(String::new(), |name| format!(">gain of {name}"));
    let mut table = Table::new(&["arm", "on", &title, &rate, &paired, ">interval (95 %)", ">page tables"]);
    let cells = |rung: &Rung, is_baseline: bool| -> [Cell; 5] {
        let metric = |name: Option<&str>| name.and_then(|name| rung.metrics.get(name));
        let value = |name: Option<&str>| {
            let row = metric(name)?;
            Some(units::quantity(if is_baseline { row.baseline } else { row.value }?, &row.unit))
        };
        let gain = metric(throughput).and_then(|row| row.gain).filter(|_| !is_baseline);
        let tables = rung.collectors.get("vmpte_kb");
        let tables = tables.and_then(|row| if is_baseline { row.baseline } else { row.value });
        [
            value(Some(primary)).unwrap_or_default().into(),
            value(throughput).unwrap_or_default().into(),
            gain.map(|gain| units::gain(gain.effect)).unwrap_or_default().into(),
            interval(gain.map(|gain| gain.low), gain.map(|gain| gain.high)).into(),
            tables.map(|size| units::quantity(size, "kB")).unwrap_or_default().into(),
        ]
    };
    // The baseline ran in every block; the rung that stayed longest saw most of them.
    if let Some(longest) = measured().max_by_key(|rung| rung.pairs) {
        let on = outcome.baseline_achieved.as_ref().and_then(|achieved| achieved.backing.clone());
        let names: [Cell; 2] = [outcome.baseline.as_str().into(), on.unwrap_or_default().into()];
        table.row(names.into_iter().chain(cells(longest, true)));
    }
    for rung in measured() {
        let names: [Cell; 2] = [rung.name.as_str().into(), got(rung).into()];
        table.row(names.into_iter().chain(cells(rung, false)));
    }
    table
}

fn interval(low: Option<f64>, high: Option<f64>) -> String {
    low.zip(high)
        .map(|(low, high)| format!("{} .. {}", units::gain(low), units::gain(high)))
        .unwrap_or_default()
}

/// The gain of a fresh run, with its interval and the level of that.
fn confirmed(fresh: &Confirmed) -> String {
    let Gain { effect, low, high } = fresh.gain;
    let level = fresh.level.map(|level| format!(", {:.1} %", 100.0 * level)).unwrap_or_default();
    format!("{} ({}{level})", units::gain(effect), interval(Some(low), Some(high)))
}

/// What was read back from the running program: a rung that did not get what it stands for says so.
fn got(rung: &Rung) -> String {
    let Some(achieved) = &rung.achieved else { return String::new() };
    if let Some(part) = achieved.in_part {
        return format!("in part: {} of {} (!)", part.set, part.of);
    }
    let backing = achieved.backing.as_deref();
    match achieved.verified {
        Some(true) => backing.unwrap_or("as asked").to_owned(),
        Some(false) => format!("{} (!)", backing.unwrap_or("something else")),
        None => backing.unwrap_or("not read back").to_owned(),
    }
}

fn verdict(verdict: RungVerdict) -> (&'static str, Style) {
    match verdict {
        RungVerdict::Keep => ("keep", styles::GOOD),
        RungVerdict::Drop => ("drop", styles::BAD),
        RungVerdict::Inconclusive => ("inconclusive", styles::WARNING),
        RungVerdict::Unavailable => ("unavailable", styles::DIM),
    }
}

fn noise(check: &SelfCheck, page: &mut Page<'_>) {
    let word = match check.verdict {
        SelfCheckVerdict::Ok => "ok: the budget can see the smallest gain worth keeping",
        SelfCheckVerdict::Noisy => "noisy: the budget cannot see the smallest gain worth keeping",
        SelfCheckVerdict::Broken => "broken: two identical arms differ",
    };
    page.fact("verdict", word);
    let percent = |fraction: f64| format!("{:.2} %", fraction * 100.0);
    page.fact(
        "sigma",
        &format!("{} between two of a pair, from {} pairs", percent(check.sigma_d), check.pairs),
    );
    page.fact("sees", &format!("gains of {} or more, four times out of five", percent(check.mde)));
    let more: Vec<String> =
        check.detectable.iter().map(|row| format!("{} with {} pairs", percent(row.mde), row.pairs)).collect();
    page.fact("or", &more.join(", "));
    page.fact(
        "spread",
        &format!(
            "CV {}, spikes (by more than 2.5 sigma) {}, neighbours {:+.2}{}",
            percent(check.cv),
            percent(check.spike_share),
            check.lag1,
            check.cross_lag1.map(|lag1| format!(", across arms {lag1:+.2}")).unwrap_or_default()
        ),
    );
    if let Some((between, within)) = check.between_starts.zip(check.within_starts) {
        page.fact("starts", &format!("{} between, {} within one", percent(between), percent(within)));
    }
    if let Some(warm_up) = &check.warm_up {
        page.fact("warm-up", &warm_up.reason);
    }
    if let Some(position) = check.position_effect {
        let ends = interval(Some(position.low), Some(position.high));
        page.fact("position", &format!("running second gains {} ({ends})", units::gain(position.effect)));
    }
    machine(check, page);
    if let Some((pairs, hours)) = check.pairs_needed.zip(check.hours_needed) {
        let (one, all) = (units::seconds(check.pair_seconds), units::seconds(hours * 3600.0));
        page.fact("needs", &format!("{pairs} pairs of each rung, {one} a pair; {all} for the whole trial"));
    }
    if let Some(quieter) = &check.quieter {
        page.fact("quieter", &format!("{} (sigma {})", quieter.metric, percent(quieter.sigma_d)));
    }
    page.fact("advice", &check.advice);
}

/// What the machine did during the self-check.
fn machine(check: &SelfCheck, page: &mut Page<'_>) {
    let percent = |fraction: f64| format!("{:.2} %", fraction * 100.0);
    let share = |name: &str, share: Option<f64>| share.map(|share| format!("{name} {}", percent(share)));
    // Proofs of before have only the first of the stalls.
    let waited = if check.pressure.is_empty() { share("waiting for a CPU", check.psi) } else { None };
    let heat = check.thermal.map(|rate| format!("slowed down for heat {rate:.1} times a second"));
    let told = [share("steal", check.steal), waited, share("CPU quota", check.throttled), heat];
    page.fact("machine", &told.into_iter().flatten().collect::<Vec<_>>().join(", "));
    let stalls = check.pressure.iter().map(|(resource, stall)| {
        let told = [share("some", stall.some), share("full", stall.full)];
        format!("{resource} {}", told.into_iter().flatten().collect::<Vec<_>>().join(" "))
    });
    page.fact("stalls", &stalls.collect::<Vec<_>>().join(", "));
    let frequency = &check.frequency;
    match (frequency.min_mhz.zip(frequency.max_mhz), &frequency.reason) {
        (Some((low, high)), _) => page.fact("CPUs ran", &format!("at {low:.0} to {high:.0} MHz")),
        (None, Some(reason)) => page.fact("CPUs ran", &format!("unknown: {reason}")),
        (None, None) => {}
    }
    let limits = check.limits.iter().map(|(name, limit)| match name.as_str() {
        "thermal" => format!("{name} {limit:.1}/s"),
        _ => format!("{name} {}", percent(*limit)),
    });
    page.fact("limits", &limits.collect::<Vec<_>>().join(", "));
    page.fact("differs", check.read_back.as_deref().unwrap_or_default());
}

/// Metrics, collectors and guards of a rung.
fn details(rung: &Rung, page: &mut Page<'_>) {
    if rung.metrics.is_empty() && rung.collectors.is_empty() && rung.achieved.is_none() {
        return;
    }
    page.heading(&rung.name);
    let mut table = Table::new(&["metric", ">baseline", ">rung", ">gain", "interval"]);
    let value = |value: Option<f64>, unit: &str| value.map(|v| units::quantity(v, unit)).unwrap_or_default();
    for (name, row) in &rung.metrics {
        table.row([
            name.as_str().into(),
            value(row.baseline, &row.unit).into(),
            value(row.value, &row.unit).into(),
            row.gain.map(|gain| units::gain(gain.effect)).unwrap_or_default().into(),
            row.gain.map(|gain| interval(Some(gain.low), Some(gain.high))).unwrap_or_default().into(),
        ]);
    }
    for (name, row) in &rung.collectors {
        let reason = row.reason.clone().unwrap_or_default();
        let why = if row.available { String::new() } else { format!("unavailable: {reason}") };
        table.row([
            name.as_str().into(),
            value(row.baseline, &row.unit).into(),
            value(row.value, &row.unit).into(),
            Cell::default(),
            Cell::styled(why, styles::DIM),
        ]);
    }
    page.table(&table);
    for guard in &rung.guards {
        let held = match guard.held {
            Some(true) => "held",
            Some(false) => "broken",
            None => "not judged",
        };
        page.fact("guard", &format!("{} {held}: {}", guard.metric, guard.reason));
    }
    if let Some(builds) = &rung.builds {
        self::builds(builds, page);
    }
    let facts = rung.achieved.iter().flat_map(|achieved| &achieved.facts);
    let facts: Vec<String> = facts.map(|(name, value)| format!("{name} {value}")).collect();
    page.fact("got", &facts.join(", "));
}

/// What each build gave, and what they say of the recipe.
fn builds(builds: &Builds, page: &mut Page<'_>) {
    let mut table = Table::new(&["build", ">pairs", ">gain", ">seed", "sha256"]);
    for row in &builds.builds {
        table.row([
            row.index.to_string().into(),
            row.pairs.to_string().into(),
            units::gain(row.effect).into(),
            row.seed.map(|seed| seed.to_string()).unwrap_or_default().into(),
            row.sha256.as_deref().unwrap_or_default().into(),
        ]);
    }
    page.table(&table);
    let recipe = match &builds.gain {
        Some(gain) => format!(
            "{} ({}, {:.1} %), from {} different programs",
            units::gain(gain.effect),
            interval(Some(gain.low), Some(gain.high)),
            100.0 * builds.level,
            builds.distinct
        ),
        None => format!("nothing can be said of it: {} different programs", builds.distinct),
    };
    page.fact("recipe", &recipe);
}

fn refused(outcome: &TrialOutcome, page: &mut Page<'_>) {
    if outcome.refused.is_empty() {
        return;
    }
    page.heading("Not done");
    // The advice of the self-check stands above it.
    let advice = outcome.selfcheck.as_ref().map_or("", |check| &check.advice);
    for refusal in &outcome.refused {
        page.line(&refusal.what);
        page.fact("  why", &refusal.why);
        page.fact("  cure", if refusal.cure == advice { "" } else { &refusal.cure });
    }
}
