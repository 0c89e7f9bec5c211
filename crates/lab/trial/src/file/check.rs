//! What the types of a trial file cannot say.

use std::collections::BTreeSet;
use std::ops::Range;

use planish_model::{Catalogue, KnobId, Profile, nearest};
use planish_stats::builds::BUILDS_MIN;
use planish_sys::CpuSet;
use toml::Spanned;

use super::place::{Place, at};
use super::{ArmSpec, TrialFile, WarmUpSpec, WorkloadSpec};
use crate::adapter::{
    AdapterKind, HttpLoad, LATENCIES, OF_COMMAND, jitter_may_be_zero, jitter_names, jitter_unit,
    missing_words, pgbench_has_log, reports_progress,
};
use crate::build::{BUILD_HOLE, BUILDS_MAX};
use crate::control::is_time;
use crate::error::{TrialError, did_you_mean};
use crate::hooks::SettleSpec;
use crate::ladder::PAIRS_MAX;
use crate::ladder::boots::inside;
use crate::outcome::{Better, LadderMode, MetricSpec, TrialOutcome};

/// Metrics of a slice, in the order in which one is taken as primary.
const OF_SLICE: [&str; 5] =
    ["cpu_ns_per_op", "wall_ns_per_op", "user_ns_per_op", "system_ns_per_op", "ops_per_s"];

/// Metrics of a server under a load; the first three only where the load counts its operations.
const OF_SERVICE: [&str; 7] = [
    "cpu_ns_per_op",
    "user_ns_per_op",
    "system_ns_per_op",
    "service_cpu_s",
    "service_user_s",
    "service_system_s",
    "rss_bytes",
];

/// How many of these need counted operations.
const OF_COUNTED: usize = 3;

/// A finding at a place of the file.
type Found = Result<(), (Place, String)>;

/// Checks a whole file, the names of knobs and profiles by this catalogue.
pub(super) fn check(
    file: &str,
    text: &str,
    trial: &TrialFile,
    catalogue: &Catalogue,
) -> Result<(), TrialError> {
    numbers(trial)
        .and_then(|()| workload(&trial.workload, trial.service.is_some()))
        .and_then(|()| metrics_named(trial))
        .and_then(|()| primary_above_zero(trial))
        .and_then(|()| margins(trial))
        .and_then(|()| names(trial))
        .and_then(|()| arms(trial, catalogue))
        .and_then(|()| super::text::check(trial, keyed(trial)))
        .and_then(|()| resets(trial, catalogue))
        .and_then(|()| mode(trial))
        .and_then(|()| duet(trial))
        .and_then(|()| boots(trial, catalogue))
        .map_err(|(place, message)| at(file, text, place.span(text), message))
}

/// A finding under a key of the file.
fn wrong(key: &str, message: impl Into<String>) -> Found {
    Err((key.into(), message.into()))
}

/// The name that a key ends with.
fn name_of(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn numbers(trial: &TrialFile) -> Found {
    let of_rungs = trial.rung.iter().enumerate();
    let of_rungs = of_rungs.map(|(index, rung)| (format!("rung.{index}.min_gain"), rung.min_gain));
    let own = [("min_gain".to_owned(), trial.min_gain), ("hope".to_owned(), Some(trial.hope))];
    let mut shares = own.into_iter().chain(of_rungs).filter_map(|(key, value)| Some((key, value?)));
    if let Some((key, value)) = shares.find(|(_, value)| !(*value > 0.0 && *value < 1.0)) {
        return wrong(&key, format!("`{}` is a fraction between 0 and 1, not {value}", name_of(&key)));
    }
    if trial.baseline.min_gain.is_some() {
        return wrong("baseline.min_gain", "the baseline gains nothing over itself: `min_gain` is for rungs");
    }
    times(trial)?;
    counts(trial)?;
    if trial.selfcheck_pairs < 8 {
        return wrong("selfcheck_pairs", "fewer than 8 pairs can raise no alarm: `selfcheck_pairs`");
    }
    if trial.seed.is_some_and(|seed| seed >= crate::ladder::SEED_LIMIT) {
        return wrong("seed", "`seed` must be below 2^53");
    }
    Ok(())
}

/// Every time of the file, but for the two that know their own place.
fn times(trial: &TrialFile) -> Found {
    let (workload, settle) = (&trial.workload, &trial.workload.settle);
    let above_zero = [
        ("budget_seconds", trial.budget_seconds),
        ("workload.timeout_seconds", workload.timeout_seconds),
        ("quick.budget_seconds", trial.quick.budget_seconds),
    ];
    let of_service = trial.service.iter().flat_map(|service| {
        [
            ("service.ready_seconds", service.ready_seconds),
            ("service.warmup_seconds", service.warmup_seconds),
            ("service.stop_seconds", service.stop_seconds),
        ]
    });
    let any = [
        ("workload.settle.psi_seconds", settle.psi_seconds),
        ("workload.settle.seconds", settle.seconds),
        ("workload.settle_seconds", workload.settle_seconds),
        ("workload.slice_ms", workload.slice_ms as f64 / 1e3),
    ];
    let is_wrong = |&(_, value): &(&str, f64)| !is_time(value);
    let slip = above_zero.into_iter().find(|it| is_wrong(it) || it.1 == 0.0).map(|it| (it, "above zero"));
    let slip = slip.or_else(|| any.into_iter().chain(of_service).find(is_wrong).map(|it| (it, "from zero")));
    match slip {
        Some(((key, value), least)) => {
            let name = name_of(key);
            wrong(key, format!("`{name}` is a time {least} to 30 days, and not {value} s"))
        }
        None => Ok(()),
    }
}

/// Numbers of pairs that can be planned for.
fn counts(trial: &TrialFile) -> Found {
    let counts = [("pairs", trial.pairs), ("selfcheck_pairs", trial.selfcheck_pairs)];
    if let Some((name, count)) = counts.into_iter().find(|(_, count)| *count > PAIRS_MAX) {
        return wrong(name, format!("`{name}` is {PAIRS_MAX} at most, not {count}"));
    }
    if trial.pairs_min > trial.pairs {
        let (least, most) = (trial.pairs_min, trial.pairs);
        return wrong("pairs_min", format!("`pairs_min` is {least}, and `pairs` allows {most}"));
    }
    let slices = [
        ("workload.slices_per_start", trial.workload.slices_per_start),
        ("quick.slices_per_start", trial.quick.slices_per_start),
    ];
    match slices.into_iter().find(|(_, slices)| *slices == Some(0)) {
        Some((key, _)) => wrong(key, format!("a start has slices: `{}` is 0", name_of(key))),
        None => Ok(()),
    }
}

fn workload(workload: &WorkloadSpec, has_service: bool) -> Found {
    let of_command = |message: String| wrong("workload.command", message);
    match workload.adapter {
        AdapterKind::Http => {
            let Some(load) = &workload.http else {
                return wrong("workload", "adapter `http` needs [workload.http]");
            };
            if !workload.command.is_empty() {
                return of_command(
                    "adapter `http` has no command: the program belongs into [service]".to_owned(),
                );
            }
            load.check().map_err(|(name, message)| (format!("workload.http.{name}").into(), message))?;
            within_limit(load, workload)?;
        }
        _ if workload.command.is_empty() => return of_command("[workload] has no `command`".to_owned()),
        _ if workload.http.is_some() => {
            return wrong("workload.http", "[workload.http] is for adapter `http`");
        }
        AdapterKind::Number if workload.metric.is_empty() => {
            return wrong("workload", "adapter `number` needs at least one [[workload.metric]]");
        }
        AdapterKind::Jitter if !missing_words(&workload.command).is_empty() => {
            let missing = missing_words(&workload.command).join(" ");
            return of_command(format!(
                "adapter `jitter` reads `planish latency --jitter --json`, and `command` is without {missing}"
            ));
        }
        AdapterKind::Slices if has_service => {
            return wrong("service", "a program of adapter `slices` is its own service");
        }
        AdapterKind::Slices if workload.slice_ms == 0 => {
            return wrong("workload.slice_ms", "a slice has a length: `slice_ms`");
        }
        _ => {}
    }
    settle(workload)?;
    warmup(workload)?;
    numbers_of_output(workload, has_service)
}

/// A load that cannot end before its unit has failed would fail on every arm.
fn within_limit(load: &HttpLoad, workload: &WorkloadSpec) -> Found {
    let limit = workload.timeout_seconds;
    let warmup = match workload.warmup.as_ref().map(Spanned::get_ref) {
        Some(WarmUpSpec::Seconds(seconds)) => *seconds,
        Some(WarmUpSpec::Detect) | None => 0.0,
    };
    let times = [
        ("workload.http.seconds", load.seconds),
        ("workload.http.warmup_seconds", load.warmup_seconds),
        ("workload.warmup", warmup),
    ];
    match times.into_iter().find(|(_, seconds)| *seconds >= limit) {
        Some((key, seconds)) => {
            let (name, cure) = (name_of(key), "raise `timeout_seconds` of [workload]");
            wrong(key, format!("`{name}` is {seconds} s, and a unit has failed after {limit} s: {cure}"))
        }
        None => Ok(()),
    }
}

/// Rows of [[workload.metric]]: each a metric of its own, of the one adapter that reads them.
fn numbers_of_output(workload: &WorkloadSpec, has_service: bool) -> Found {
    let measured = OF_COMMAND.iter().chain(if has_service { &OF_SERVICE[OF_COUNTED..] } else { &[] });
    let measured: BTreeSet<&str> = measured.copied().collect();
    let mut seen = BTreeSet::new();
    for (index, number) in workload.metric.iter().enumerate() {
        let name = number.name.as_str();
        let wrong = |message: String| wrong(&format!("workload.metric.{index}"), message);
        if workload.adapter != AdapterKind::Number {
            let own = metrics(workload, has_service);
            let own = distinct(&own).join(", ");
            return wrong(format!("[[workload.metric]] is for adapter `number`; this one has {own}"));
        }
        if measured.contains(name) {
            return wrong(format!("`{name}` is measured from outside: give this number another name"));
        }
        if !seen.insert(name) {
            return wrong(format!("the name `{name}` is taken by another [[workload.metric]]"));
        }
        number.check().or_else(wrong)?;
    }
    Ok(())
}

/// A rest before a start, where there are starts.
fn settle(workload: &WorkloadSpec) -> Found {
    let is_asked = workload.settle != SettleSpec::default() || workload.settle_seconds > 0.0;
    if workload.adapter == AdapterKind::Slices && is_asked {
        let key = if workload.settle_seconds > 0.0 { "workload.settle_seconds" } else { "workload.settle" };
        let message =
            "programs of adapter `slices` are resident beside each other: there is no rest before a start";
        return wrong(key, message);
    }
    let psi_below = workload.settle.psi_below.unwrap_or(1.0);
    if !(psi_below > 0.0 && psi_below <= 100.0) {
        return wrong("workload.settle.psi_below", "`psi_below` is a share in percent, above 0");
    }
    Ok(())
}

/// A warm-up can only be run where a unit consists of pieces that we ask for.
fn warmup(workload: &WorkloadSpec) -> Found {
    let Some(warmup) = &workload.warmup else { return Ok(()) };
    let wrong = |message: &str| Err((warmup.span().into(), message.to_owned()));
    match (workload.adapter, &workload.http) {
        (AdapterKind::Slices, _) => Ok(()),
        (AdapterKind::Http, Some(load)) if load.warmup_seconds == 0.0 => Ok(()),
        (AdapterKind::Pgbench, _) if reports_progress(&workload.command) => Ok(()),
        (AdapterKind::Pgbench, _) => wrong("pgbench tells what came first only with `-P` and its seconds"),
        (AdapterKind::Http, _) => {
            wrong("`warmup` and `warmup_seconds` of [workload.http] say the same: give one")
        }
        _ => wrong("this adapter runs a program from its begin to its end: it has no `warmup` of its own"),
    }
}

/// Unit and good direction of a metric, which follow from its name except for those that the file defines.
pub(super) fn metric_spec(name: &str, workload: &WorkloadSpec) -> MetricSpec {
    if let Some(number) = workload.metric.iter().find(|number| number.name == name) {
        return MetricSpec { name: name.to_owned(), unit: number.unit.clone(), better: number.better };
    }
    let is_jitter = workload.adapter == AdapterKind::Jitter && jitter_names().any(|jitter| jitter == name);
    let (unit, better) = match name {
        _ if is_jitter => (jitter_unit(name), Better::Lower),
        "tps" => ("1/s", Better::Higher),
        _ if name.ends_with("_per_s") => ("1/s", Better::Higher),
        _ if name.ends_with("_ns") || name.ends_with("_per_op") => ("ns", Better::Lower),
        _ if name.ends_with("_ms") => ("ms", Better::Lower),
        _ if name.ends_with("_s") => ("s", Better::Lower),
        _ if name.ends_with("_bytes") => ("B", Better::Lower),
        "error_rate" => ("share", Better::Lower),
        _ => ("", Better::Lower),
    };
    MetricSpec { name: name.to_owned(), unit: unit.to_owned(), better }
}

/// The names of the metrics that the workload will report, the one that is primary by default first.
fn metrics(workload: &WorkloadSpec, has_service: bool) -> Vec<String> {
    let numbers = workload.metric.iter().map(|number| number.name.as_str());
    let of_command = ["cpu_s", "wall_s"].into_iter().chain(OF_COMMAND);
    let names: Vec<&str> = match workload.adapter {
        AdapterKind::Command => of_command.collect(),
        AdapterKind::Number => numbers.chain(of_command).collect(),
        AdapterKind::Pgbench => {
            let of_log = if pgbench_has_log(&workload.command) { &LATENCIES[..] } else { &[] };
            let own = ["tps", "latency_ms", "latency_sd_ms", "error_rate"];
            own.into_iter().chain(of_log.iter().copied()).chain(of_command).collect()
        }
        AdapterKind::Jitter => jitter_names().chain(of_command).collect(),
        AdapterKind::Http => {
            ["p99_ns"].into_iter().chain(LATENCIES).chain(["ops_per_s", "error_rate"]).collect()
        }
        AdapterKind::Slices => OF_SLICE.into_iter().chain(LATENCIES).chain(["error_rate"]).collect(),
    };
    let counted = matches!(workload.adapter, AdapterKind::Http | AdapterKind::Pgbench);
    let of_service = if has_service { &OF_SERVICE[if counted { 0 } else { OF_COUNTED }..] } else { &[] };
    names.iter().chain(of_service).map(|name| (*name).to_owned()).collect()
}

/// The metric that decides when the file names none.
pub(super) fn default_primary(workload: &WorkloadSpec) -> String {
    metrics(workload, false).swap_remove(0)
}

/// A guard on a metric that nobody reports would hold for ever, so its name is checked like that of the primary.
fn metrics_named(trial: &TrialFile) -> Found {
    let names = metrics(&trial.workload, trial.service.is_some());
    let primary = trial.primary.iter().map(|name| (name.span(), name.get_ref()));
    let guards = trial.guards.iter().flatten().map(|guard| (guard.span(), &guard.get_ref().metric));
    for (span, name) in primary.chain(guards) {
        let told_by_program =
            trial.workload.adapter == AdapterKind::Slices && (is_latency(name) || is_latency_of_a_kind(name));
        if told_by_program || names.contains(name) {
            continue;
        }
        // `cpu` is short of `cpu_s` by half its letters, and means nothing else.
        let begun = || names.iter().find(|known| known.starts_with(name) && !name.is_empty()).cloned();
        let nearest = nearest(name, names.iter().map(String::as_str)).map(str::to_owned).or_else(begun);
        let hint = did_you_mean(nearest.as_ref());
        let known = distinct(&names).join(", ");
        return Err((span.into(), format!("this workload has no metric `{name}` among {known}{hint}")));
    }
    Ok(())
}

/// A gain is the log of a ratio: what is 0 when all goes well has none, and its best unit would count for nothing.
fn primary_above_zero(trial: &TrialFile) -> Found {
    let workload = &trial.workload;
    let may_be_zero = |name: &str| {
        name == "error_rate" || workload.adapter == AdapterKind::Jitter && jitter_may_be_zero(name)
    };
    let primary = trial.primary_name();
    if !may_be_zero(&primary) {
        return Ok(());
    }
    let names = metrics(workload, trial.service.is_some());
    let fitting = names.iter().find(|name| !may_be_zero(name)).expect("every adapter measures a time");
    let place = trial.primary.as_ref().map_or_else(|| "workload.metric.0".into(), |name| name.span().into());
    Err((
        place,
        format!(
            "`{primary}` may be 0, and gains are logs of ratios, which need values above zero: decide by \
             `{fitting}`, and read `{primary}` beside it"
        ),
    ))
}

/// A margin of no size guards nothing for ever, and one of the whole has no logarithm.
fn margins(trial: &TrialFile) -> Found {
    for (index, guard) in trial.guards.iter().flatten().enumerate() {
        let margin = guard.get_ref().margin;
        if !(0.0..1.0).contains(&margin) {
            let message = format!("`margin` is a fraction from 0 to below 1, not {margin}");
            return wrong(&format!("guards.{index}.margin"), message);
        }
    }
    Ok(())
}

/// The same names, each once.
fn distinct(names: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    names.iter().map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

/// Latencies that a resident program may tell beside the usual ones: its mean, and quantiles such as `p95_ns`.
fn is_latency(name: &str) -> bool {
    let Some(name) = name.strip_suffix("_ns") else { return false };
    let digits = name.strip_prefix('p').map(|digits| digits.replacen('_', "", 1));
    name == "mean"
        || digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The same of one kind of its operations: `parallel_mean_ns`.
fn is_latency_of_a_kind(name: &str) -> bool {
    let Some((kind, latency)) = name.split_once('_') else { return false };
    let is_word = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_lowercase());
    is_word && (is_latency(latency) || LATENCIES.contains(&latency))
}

fn names(trial: &TrialFile) -> Found {
    let mut seen = BTreeSet::from([TrialOutcome::PLACEBO, TrialOutcome::STACK]);
    if !seen.insert(trial.baseline.name()) {
        let name = trial.baseline.name.as_ref().expect("only a name that was given can be one of these");
        return Err((name.span().into(), format!("the name `{}` is taken", name.get_ref())));
    }
    for (index, rung) in trial.rung.iter().enumerate() {
        let Some(name) = &rung.name else {
            return wrong(&format!("rung.{index}"), "a [[rung]] has no `name`");
        };
        if !seen.insert(name.get_ref()) {
            return Err((name.span().into(), format!("the name `{}` is taken", name.get_ref())));
        }
    }
    for boot in &trial.boot {
        if !seen.insert(boot.name.get_ref()) {
            return Err((boot.name.span().into(), format!("the name `{}` is taken", boot.name.get_ref())));
        }
    }
    // A rung inside a boot is told by both names, which may be those of another rung inside of another boot.
    let mut told = BTreeSet::new();
    for (boot, rung) in trial.boot.iter().flat_map(|boot| trial.rung.iter().map(move |rung| (boot, rung))) {
        let inside = inside(boot.name.get_ref(), rung.name());
        if seen.contains(inside.as_str()) || !told.insert(inside.clone()) {
            let message =
                format!("`{inside}` is how rung `{}` inside this boot is told, and is taken", rung.name());
            return Err((boot.name.span().into(), message));
        }
    }
    Ok(())
}

/// Every arm with its key in the file.
fn keyed(trial: &TrialFile) -> impl Iterator<Item = (String, &ArmSpec)> {
    let rungs = trial.rung.iter().enumerate().map(|(index, rung)| (format!("rung.{index}"), rung));
    std::iter::once(("baseline".to_owned(), &trial.baseline)).chain(rungs)
}

fn arms(trial: &TrialFile, catalogue: &Catalogue) -> Found {
    for (key, arm) in keyed(trial) {
        cpus(arm)?;
        backing(arm, trial.workload.adapter)?;
        profile(arm, catalogue).map_err(|(span, message)| (span.into(), message))?;
        rebuilds(&key, arm, &trial.workload)?;
        if trial.workload.adapter == AdapterKind::Slices {
            only_pools(arm)?;
        }
    }
    Ok(())
}

/// A reset of a knob that nobody sets would never run.
fn resets(trial: &TrialFile, catalogue: &Catalogue) -> Found {
    let arms = || [&trial.baseline].into_iter().chain(&trial.rung);
    for id in trial.reset.keys() {
        let knob = KnobId::new(id.get_ref().as_str());
        catalogue.knob(&knob).map_err(|error| (id.span().into(), short(&error)))?;
        if !arms().any(|arm| super::gain::knobs(arm, catalogue).contains(&knob)) {
            return Err((id.span().into(), format!("no arm sets `{knob}`, so nothing of it is to be reset")));
        }
    }
    let own = keyed(trial).find(|(_, arm)| !arm.reset.is_empty());
    let own = own.map(|(key, arm)| (format!("{key}.reset"), arm.name()));
    let shared = trial.reset.keys().next().map(|id| ("reset".to_owned(), id.get_ref().as_str()));
    match own.or(shared) {
        Some((key, what)) if trial.workload.adapter == AdapterKind::Slices => wrong(
            &key,
            format!("`{what}` has a reset, and programs of adapter `slices` stay beside each other"),
        ),
        _ => Ok(()),
    }
}

fn duet(trial: &TrialFile) -> Found {
    let wanted = trial.duet.as_ref().filter(|duet| *duet.get_ref());
    let objection = wanted.and_then(|duet| Some((duet.span().into(), crate::duet::objection(trial)?)));
    objection.map_or(Ok(()), Err)
}

/// Arms that are boots, and what cannot be beside them.
fn boots(trial: &TrialFile, catalogue: &Catalogue) -> Found {
    let of_key = |(key, message): (String, String)| (Place::from(key), message);
    super::boots::numbers(trial).map_err(of_key)?;
    super::boots::objection(trial).map(of_key).map_or(Ok(()), Err)?;
    super::boots::arms(trial, catalogue).map_err(|(span, message)| (span.into(), message))
}

/// Builds of one recipe need places of their own, and a program that is one of them.
fn rebuilds(key: &str, arm: &ArmSpec, workload: &WorkloadSpec) -> Found {
    let name = arm.name();
    let Some(count) = &arm.rebuilds else {
        let words = arm.program.iter().chain(&arm.args).chain(&arm.build).chain(arm.env.values());
        if words.into_iter().any(|word| word.contains(BUILD_HOLE)) {
            return wrong(key, format!("`{name}` names {BUILD_HOLE}, which only arms with `rebuilds` have"));
        }
        if workload.adapter == AdapterKind::Slices && !arm.build.is_empty() {
            let message = format!("`{name}` has a `build`, which adapter `slices` does not run");
            return wrong(&format!("{key}.build"), message);
        }
        return Ok(());
    };
    let wrong = |message: &str| Err((count.span().into(), message.to_owned()));
    if workload.adapter == AdapterKind::Slices {
        return wrong("programs of adapter `slices` stay resident: they have no builds in turn");
    }
    if !(BUILDS_MIN..=BUILDS_MAX).contains(count.get_ref()) {
        return wrong(&format!("`rebuilds` is a number of builds from {BUILDS_MIN} to {BUILDS_MAX}"));
    }
    if arm.build.is_empty() || !arm.program.as_ref().is_some_and(|program| program.contains(BUILD_HOLE)) {
        return wrong(&format!(
            "`rebuilds` needs a `build` command, and a `program` with {BUILD_HOLE} in its path"
        ));
    }
    Ok(())
}

/// A rung is put on top of what was kept before it, which programs that are resident for good cannot be.
fn mode(trial: &TrialFile) -> Found {
    match &trial.mode {
        Some(mode)
            if *mode.get_ref() == LadderMode::Step && trial.workload.adapter == AdapterKind::Slices =>
        {
            let message = "mode `step` puts rungs together, and arms that are resident together exclude each other: \
                           leave it out, or run them one after the other with the adapter `number`";
            Err((mode.span().into(), message.to_owned()))
        }
        _ => Ok(()),
    }
}

fn cpus(arm: &ArmSpec) -> Found {
    match &arm.cpus {
        Some(list) if list.get_ref() != "one" => match list.get_ref().parse::<CpuSet>() {
            Ok(set) if !set.is_empty() => Ok(()),
            Ok(_) => Err((list.span().into(), "an arm needs a CPU".to_owned())),
            Err(error) => {
                Err((list.span().into(), format!("`{}` is no list of CPUs: {error}", list.get_ref())))
            }
        },
        _ => Ok(()),
    }
}

/// A backing that no program can report would make the arm look like one that the machine cannot have.
fn backing(arm: &ArmSpec, adapter: AdapterKind) -> Found {
    let Some(word) = &arm.backing else { return Ok(()) };
    if adapter != AdapterKind::Slices {
        let message = "`backing` is what a program of the adapter `slices` reports; nobody reads the pages of \
                       another one back: leave it out";
        return Err((word.span().into(), message.to_owned()));
    }
    let is_size = |size: &str| {
        let digits = size.strip_suffix(['k', 'm', 'g']).unwrap_or_default();
        digits.parse::<u32>().is_ok_and(u32::is_power_of_two)
    };
    match word.get_ref().as_str() {
        "base" | "thp" => Ok(()),
        other if other.strip_prefix("hugetlb-").is_some_and(is_size) => Ok(()),
        other => {
            let message =
                format!("`{other}` is no backing: base, thp, or hugetlb- and a size, as in hugetlb-2m");
            Err((word.span().into(), message))
        }
    }
}

/// Profiles and knobs exist, and their values are legal.
pub(super) fn profile(arm: &ArmSpec, catalogue: &Catalogue) -> Result<(), (Range<usize>, String)> {
    if let Some(name) = &arm.profile {
        catalogue.profile(name.get_ref()).map_err(|error| (name.span(), error.to_string()))?;
    }
    for (id, want) in &arm.want {
        let knob = KnobId::new(id.get_ref().as_str());
        catalogue.knob(&knob).map_err(|error| (id.span(), short(&error)))?;
        let lone = Profile {
            name: "trial".to_owned(),
            summary: String::new(),
            inherits: Vec::new(),
            want: [(knob, want.clone())].into(),
            placement: None,
            ..Profile::default()
        };
        catalogue.resolve("trial", &lone).map_err(|error| (id.span(), chain(&error)))?;
    }
    Ok(())
}

/// Programs that are resident together share one host, so they cannot differ in what the host is set to.
fn only_pools(arm: &ArmSpec) -> Found {
    let place = arm.profile.as_ref().map(Spanned::span);
    let other = arm.want.iter().find(|(_, want)| !want.is_bytes()).map(|(id, _)| id.span());
    match place.or(other) {
        Some(span) => Err((
            span.into(),
            "arms that are resident together share the host: only pools of huge pages can be wanted; \
             the adapter `number` runs them one after the other"
                .to_owned(),
        )),
        None => Ok(()),
    }
}

/// The catalogue's message without its own place, which is not that of the trial file.
fn short(error: &planish_model::CatalogueError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or_else(|| text.clone(), |(_, rest)| rest.to_owned())
}

fn chain(error: &planish_model::CatalogueError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{}{cause}", short(error))
}

#[cfg(test)]
mod tests;
