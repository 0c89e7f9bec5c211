//! The words of pgbench (src/bin/pgbench/pgbench.c, `printResults`), of PostgreSQL 9.6 to 18.

use crate::outcome::Better;
use crate::sample::Sample;

/// Reads a report into a sample. The deviation of the latency is only there when pgbench was told to measure
/// it (a rate, a progress report or a log); without it the metric is missing.
pub(super) fn read(report: &str, sample: &mut Sample) -> Result<(), String> {
    let tps = tps(report).ok_or("pgbench reports no tps")?;
    let latency = after(report, "latency average = ").ok_or("pgbench reports no latency")?;
    sample.put("tps", "1/s", Better::Higher, tps);
    sample.put("latency_ms", "ms", Better::Lower, latency);
    if let Some(deviation) = after(report, "latency stddev = ") {
        sample.put("latency_sd_ms", "ms", Better::Lower, deviation);
    }
    let done = after(report, "number of transactions actually processed: ").unwrap_or(0.0);
    let failed = after(report, "number of failed transactions: ").unwrap_or(0.0);
    if done + failed <= 0.0 {
        return Err("pgbench processed no transaction".to_owned());
    }
    sample.operations = Some(done);
    sample.put("error_rate", "share", Better::Lower, failed / (done + failed));
    Ok(())
}

/// Transactions per second without the time of connecting; since PostgreSQL 14 the only figure, before it the
/// second.
fn tps(report: &str) -> Option<f64> {
    let lines = || report.lines().filter(|line| line.starts_with("tps = "));
    let without = lines().find(|line| line.contains("without") || line.contains("excluding"));
    after(without.or_else(|| lines().next())?, "tps = ")
}

/// The number that follows `label` at the start of a line.
fn after(report: &str, label: &str) -> Option<f64> {
    let rest = report.lines().find_map(|line| line.strip_prefix(label))?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: <builtin: select only>
scaling factor: 1
query mode: prepared
number of clients: 2
number of transactions actually processed: 90/100
number of failed transactions: 10 (10.000%)
latency average = 0.048 ms
latency stddev = 0.011 ms
initial connection time = 2.706 ms
tps = 41178.123456 (without initial connection time)
";

    const OLD: &str = "number of transactions actually processed: 100/100
latency average = 0.048 ms
tps = 39000.5 (including connections establishing)
tps = 41000.5 (excluding connections establishing)
";

    #[test]
    fn reports_of_both_forms_are_read() {
        let mut sample = Sample::default();
        read(NEW, &mut sample).expect("a whole report");
        assert_eq!(sample.value("tps"), Some(41178.123456));
        assert_eq!(sample.value("latency_sd_ms"), Some(0.011));
        assert_eq!(sample.value("error_rate"), Some(0.1));
        let mut sample = Sample::default();
        read(OLD, &mut sample).expect("a whole report");
        assert_eq!(sample.value("tps"), Some(41000.5));
        assert_eq!(sample.value("latency_sd_ms"), None);
        assert_eq!(sample.value("error_rate"), Some(0.0));
    }

    #[test]
    fn half_a_report_is_an_error() {
        assert!(read("latency average = 0.048 ms\n", &mut Sample::default()).is_err());
        assert!(read("tps = 1 (without)\nlatency average = 1 ms\n", &mut Sample::default()).is_err());
    }
}
