//! The words of pgbench (src/bin/pgbench/pgbench.c, `printResults` and `printProgressReport`), of PostgreSQL 9.6 to 18.

use std::time::Duration;

use crate::outcome::Better;
use crate::sample::{Sample, Window};

/// Metrics that its progress reports have, so that their first ones can be left out.
pub(super) const OF_PROGRESS: [&str; 2] = ["tps", "latency_ms"];

/// One line of `-P`.
struct Interval {
    /// Its end, in seconds since the begin.
    end: f64,
    tps: f64,
    latency_ms: f64,
}

/// Whether pgbench is told to report its progress.
pub(crate) fn reports_progress(command: &[String]) -> bool {
    command.iter().any(|word| word.starts_with("-P") || word.starts_with("--progress"))
}

/// Reads the report at the end, and the progress reports before it.
pub(super) fn read_both(
    report: &str,
    progress: &str,
    left_out: Duration,
    sample: &mut Sample,
) -> Result<(), String> {
    read(report, sample)?;
    read_progress(progress, left_out, sample)
}

/// Reads the progress reports: the throughput of each as a window, and what all but the first add up to where some of
/// the time is left out. Rates of the whole program, such as its CPU time, stay as they are.
pub(super) fn read_progress(progress: &str, left_out: Duration, sample: &mut Sample) -> Result<(), String> {
    let intervals: Vec<Interval> =
        progress.lines().filter_map(Interval::parse).filter(|interval| interval.tps.is_finite()).collect();
    let Some(first) = intervals.first() else { return Ok(()) };
    sample.windows = intervals.iter().map(|interval| interval.tps).collect();
    let length = Duration::try_from_secs_f64(first.end).unwrap_or_default();
    sample.window = Some(Window { metric: "tps".to_owned(), length });
    if left_out.is_zero() {
        return Ok(());
    }
    // Reports come a few milliseconds early or late.
    let begin = left_out.as_secs_f64() + 0.1 * first.end;
    let measured: Vec<&Interval> = intervals.iter().filter(|interval| interval.end > begin).collect();
    let tps: f64 = measured.iter().map(|interval| interval.tps).sum();
    if tps <= 0.0 {
        return Err("pgbench reports no progress after its warm-up".to_owned());
    }
    // Nobody waited in a report without transactions, whose latency pgbench before 12 gives as NaN.
    let busy = measured.iter().filter(|interval| interval.tps > 0.0);
    let waited: f64 = busy.map(|interval| interval.tps * interval.latency_ms).sum();
    let (rate, latency) = (tps / measured.len() as f64, waited / tps);
    if !(rate.is_finite() && latency.is_finite()) {
        return Err("pgbench reports a progress that is no number".to_owned());
    }
    sample.put("tps", "1/s", Better::Higher, rate);
    sample.put("latency_ms", "ms", Better::Lower, latency);
    Ok(())
}

impl Interval {
    /// `progress: 5.0 s, 41178.1 tps, lat 0.048 ms stddev 0.011, 0 failed`
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.strip_prefix("progress: ")?.split(", ");
        let mut number = |unit: &str, prefix: &str| {
            parts.next()?.strip_prefix(prefix)?.split_once(unit)?.0.trim().parse::<f64>().ok()
        };
        let (end, tps, latency_ms) = (number(" s", "")?, number(" tps", "")?, number(" ms", "lat ")?);
        Some(Self { end, tps, latency_ms })
    }
}

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
    rest[..end].parse().ok().filter(|number: &f64| number.is_finite())
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
    fn what_comes_before_the_warm_up_s_end_is_left_out_of_the_progress() {
        let progress = "pgbench (15.14)\nstarting vacuum...end.\n\
            progress: 1.0 s, 1000.0 tps, lat 2.000 ms stddev 0.1, 0 failed\n\
            progress: 2.0 s, 3000.0 tps, lat 1.000 ms stddev 0.1, 0 failed\n\
            progress: 3.0 s, 5000.0 tps, lat 0.500 ms stddev 0.1\n\
            progress: 4.0 s, 0.0 tps, lat NaN ms stddev NaN, 0 failed\n";
        let mut sample = Sample::default().higher("tps", "1/s", 7.0);
        read_progress(progress, Duration::ZERO, &mut sample).expect("sound");
        assert_eq!(
            (sample.value("tps"), sample.windows.as_slice()),
            (Some(7.0), &[1000.0, 3000.0, 5000.0, 0.0][..])
        );
        assert_eq!(sample.window.as_ref().map(|window| window.length), Some(Duration::from_secs(1)));
        read_progress(progress, Duration::from_secs(1), &mut sample).expect("sound");
        let told = (sample.value("tps"), sample.value("latency_ms"));
        assert_eq!(told, (Some(8000.0 / 3.0), Some(0.6875)), "a second without transactions has no latency");
        let idle =
            read_progress(progress, Duration::from_secs(3), &mut sample).expect_err("nothing was done");
        assert!(idle.contains("no progress"), "{idle}");
        assert!(read_progress(progress, Duration::from_secs(9), &mut sample).is_err());
        let mut silent = Sample::default();
        read_progress("", Duration::ZERO, &mut silent).expect("nothing was asked for");
        assert!(silent.window.is_none());
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(
            reports_progress(&command(&["pgbench", "-P", "1"]))
                && reports_progress(&command(&["--progress=1"]))
        );
        assert!(!reports_progress(&command(&["pgbench", "-S"])));
    }

    #[test]
    fn what_is_no_number_is_no_figure() {
        let whole = |tps: &str, latency: &str| {
            format!(
                "number of transactions actually processed: 9\nlatency average = {latency} ms\ntps = {tps} (x)\n"
            )
        };
        assert!(read(&whole("5.5", "1"), &mut Sample::default()).is_ok());
        let long = "9".repeat(400);
        for (tps, latency) in [(long.as_str(), "1"), ("5.5", long.as_str())] {
            assert!(read(&whole(tps, latency), &mut Sample::default()).is_err());
        }
        for line in ["1.0 s, NaN tps, lat 1.0 ms", "1.0 s, inf tps, lat 1.0 ms", "1.0 s, 5.0 tps, lat NaN ms"]
        {
            let mut sample = Sample::default();
            let progress = format!("progress: {line}\nprogress: 2.0 s, 7.0 tps, lat 1.0 ms\n");
            read_progress(&progress, Duration::ZERO, &mut sample).expect("the report has the figures");
            assert!(sample.windows.iter().all(|window| window.is_finite()), "{line}: {:?}", sample.windows);
            let left_out = read_progress(&progress, Duration::from_millis(1), &mut sample);
            let figures = ["tps", "latency_ms"].map(|name| sample.value(name));
            assert!(
                left_out.is_err() || figures.iter().flatten().all(|value| value.is_finite()),
                "{figures:?}"
            );
        }
    }

    #[test]
    fn half_a_report_is_an_error() {
        assert!(read("latency average = 0.048 ms\n", &mut Sample::default()).is_err());
        assert!(read("tps = 1 (without)\nlatency average = 1 ms\n", &mut Sample::default()).is_err());
    }
}
