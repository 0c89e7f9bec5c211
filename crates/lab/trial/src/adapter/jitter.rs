//! What `planish latency --jitter --json` says (`docs/schema/latency-jitter.json`), as metrics.
//!
//! Latencies are those of the worst CPU, for a service waits for its slowest thread; rates are the mean of the CPUs.
//! Quantiles of gaps are by time, so that they are above zero on the quietest CPU, and ratios of them have logarithms.

use serde_json::Value;

use crate::outcome::Better;
use crate::sample::Sample;

/// Latencies in nanoseconds: name, where a CPU has it, and which member of a list of quantiles is meant.
const LATENCIES: [(&str, &str, Option<&str>); 9] = [
    ("gap_p99_99_ns", "/gaps/by_time", Some("p99_99")),
    ("gap_p99_9_ns", "/gaps/by_time", Some("p99_9")),
    ("gap_p99_ns", "/gaps/by_time", Some("p99")),
    ("gap_max_ns", "/gaps/max_ns", None),
    ("wake_p50_ns", "/wake/late", Some("p50")),
    ("wake_p99_ns", "/wake/late", Some("p99")),
    ("wake_p99_9_ns", "/wake/late", Some("p99_9")),
    ("wake_p99_99_ns", "/wake/late", Some("p99_99")),
    ("wake_max_ns", "/wake/max_ns", None),
];

/// Means over the CPUs: name, unit, and where a CPU has it.
const MEANS: [(&str, &str, &str); 6] = [
    ("lost_share", "share", "/gaps/lost_share/value"),
    ("gaps_per_s", "1/s", "/gaps/per_s/value"),
    ("ticks_per_s", "1/s", "/ticks_per_s/value"),
    ("irqs_per_s", "1/s", "/irqs_per_s/value"),
    ("softirqs_per_s", "1/s", "/softirqs_per_s/value"),
    ("stolen_share", "share", "/steal_share/value"),
];

/// The names of all metrics, the one that decides by default first.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    LATENCIES.iter().map(|(name, ..)| *name).chain(MEANS.iter().map(|(name, ..)| *name))
}

/// Whether a metric is 0 on a CPU that nothing disturbs.
pub(crate) fn may_be_zero(name: &str) -> bool {
    MEANS.iter().any(|(mean, ..)| *mean == name)
}

/// The unit of a metric of this adapter; all are better when they are lower.
pub(crate) fn unit(name: &str) -> &'static str {
    let mean = MEANS.iter().find(|(mean, ..)| *mean == name);
    mean.map_or("ns", |(_, unit, _)| *unit)
}

/// What is missing on a command line whose output has these metrics.
pub(crate) fn missing_words(command: &[String]) -> Vec<&'static str> {
    let wanted = ["latency", "--jitter", "--json"];
    wanted.into_iter().filter(|wanted| !command.iter().any(|word| word == wanted)).collect()
}

/// Reads a report into a sample. What it cannot tell (too few wake-ups for a quantile, counters that a container does
/// not show) becomes a column with the reason.
pub(super) fn read(output: &str, sample: &mut Sample) -> Result<(), String> {
    let envelope: Value =
        serde_json::from_str(output).map_err(|error| format!("the output is no JSON: {error}"))?;
    let schema = envelope["schema"].as_str().unwrap_or_default();
    if schema != "planish.latency-jitter/1" {
        return Err(format!("the output is `{schema}` and not that of `planish latency --jitter --json`"));
    }
    let cpus = envelope.pointer("/result/cpus").and_then(Value::as_array).filter(|cpus| !cpus.is_empty());
    let cpus = cpus.ok_or("the output tells of no CPU")?;
    for (name, at, quantile) in LATENCIES {
        let of_cpus: Option<Vec<f64>> = cpus.iter().map(|cpu| latency(cpu, at, quantile)).collect();
        match of_cpus.map(|values| values.into_iter().fold(0.0, f64::max)) {
            Some(worst) => sample.put(name, "ns", Better::Lower, worst),
            None => sample.collect(name, "ns", Err(why_not(cpus, at, quantile))),
        }
    }
    for (name, unit, at) in MEANS {
        let of_cpus: Option<Vec<f64>> = cpus.iter().map(|cpu| cpu.pointer(at)?.as_f64()).collect();
        match of_cpus {
            Some(values) => {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                sample.put(name, unit, Better::Lower, mean);
            }
            None => sample.collect(name, unit, Err("the kernel shows no counters of this CPU".to_owned())),
        }
    }
    Ok(())
}

/// The row of a quantile, or the number itself.
fn member<'a>(cpu: &'a Value, at: &str, quantile: Option<&str>) -> Option<&'a Value> {
    let found = cpu.pointer(at)?;
    match quantile {
        None => Some(found),
        Some(name) => found.as_array()?.iter().find(|row| row["name"] == name),
    }
}

fn latency(cpu: &Value, at: &str, quantile: Option<&str>) -> Option<f64> {
    let found = member(cpu, at, quantile)?;
    if quantile.is_some() { found.pointer("/ns/value")?.as_f64() } else { found.as_f64() }
}

fn why_not(cpus: &[Value], at: &str, quantile: Option<&str>) -> String {
    let needed = cpus.iter().filter_map(|cpu| member(cpu, at, quantile)?["needed"].as_u64()).max();
    match needed {
        Some(needed) => format!("a CPU has fewer than {needed} wake-ups, which this takes: raise --seconds"),
        None => "the output does not tell it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(scale: f64, p99_9: &str) -> String {
        let figure =
            |value: f64| format!(r#"{{"value": {value}, "low": 1, "high": 9, "level": 0.96, "rounds": 15}}"#);
        let quantile = |name: &str, value: f64| {
            format!(r#"{{"name": "{name}", "ns": {}, "needed": null}}"#, figure(value))
        };
        format!(
            r#"{{"cpu": 1, "gaps": {{"lost_share": {}, "per_s": {}, "by_time": [{}, {}, {}], "max_ns": {}}},
                "wake": {{"late": [{}, {}, {p99_9}], "max_ns": 70000}},
                "ticks_per_s": {}, "irqs_per_s": {}, "softirqs_per_s": null, "steal_share": {}}}"#,
            figure(0.002 * scale),
            figure(250.0 * scale),
            quantile("p99", 30.0),
            quantile("p99_9", 4000.0),
            quantile("p99_99", 9000.0 * scale),
            123_456.0 * scale,
            quantile("p50", 5000.0),
            quantile("p99", 20000.0),
            figure(250.0),
            figure(8.0 * scale),
            figure(0.0),
        )
    }

    fn envelope(cpus: &[String]) -> String {
        format!(r#"{{"schema": "planish.latency-jitter/1", "result": {{"cpus": [{}]}}}}"#, cpus.join(","))
    }

    const TOO_FEW: &str = r#"{"name": "p99_9", "ns": null, "needed": 10000}"#;

    #[test]
    fn latencies_are_of_the_worst_cpu_and_rates_of_the_mean() {
        let mut sample = Sample::default();
        read(&envelope(&[cpu(1.0, TOO_FEW), cpu(3.0, TOO_FEW)]), &mut sample).expect("a whole report");
        assert_eq!(sample.value("gap_p99_99_ns"), Some(27_000.0));
        assert_eq!(
            (sample.value("gap_max_ns"), sample.value("wake_p99_ns")),
            (Some(370_368.0), Some(20_000.0))
        );
        assert_eq!((sample.value("irqs_per_s"), sample.value("ticks_per_s")), (Some(16.0), Some(250.0)));
        assert!(sample.metrics.values().all(|metric| metric.better == Better::Lower));
    }

    #[test]
    fn what_is_not_told_has_its_reason() {
        let mut sample = Sample::default();
        read(&envelope(&[cpu(1.0, TOO_FEW)]), &mut sample).expect("a whole report");
        for name in names() {
            let told = sample.collectors.get(name).map(|collected| collected.value.clone());
            assert_ne!(sample.value(name).is_some(), told.is_some(), "{name}: a value or a reason");
        }
        let why = |name: &str| sample.collectors[name].value.clone().expect_err("no value");
        assert!(why("wake_p99_9_ns").contains("10000 wake-ups"), "{}", why("wake_p99_9_ns"));
        assert!(why("softirqs_per_s").contains("counters"));
    }

    #[test]
    fn another_output_is_refused() {
        let mut sample = Sample::default();
        for (output, says) in [
            ("quiet yes", "no JSON"),
            (r#"{"schema": "planish.latency/1", "result": {}}"#, "planish.latency/1"),
            (r#"{"schema": "planish.latency-jitter/1", "result": null}"#, "no CPU"),
            (r#"{"schema": "planish.latency-jitter/1", "result": {"cpus": []}}"#, "no CPU"),
        ] {
            let error = read(output, &mut sample).expect_err("it has no figures");
            assert!(error.contains(says), "{error}");
        }
        assert!(sample.metrics.is_empty());
    }

    #[test]
    fn a_command_line_without_its_words_is_found_before_it_runs() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(missing_words(&words("planish latency --jitter --json")), Vec::<&str>::new());
        assert_eq!(missing_words(&words("planish latency")), ["--jitter", "--json"]);
    }
}
