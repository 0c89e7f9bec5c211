//! The words of pgbench (src/bin/pgbench/pgbench.c, `printResults` and `printProgressReport`), of PostgreSQL 9.6 to 18.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::latency;
use crate::child::Launch;
use crate::outcome::Better;
use crate::sample::{Sample, Window};

/// Environment variable for `--log-prefix`: a command that names it has its log read for the latencies in it.
const LOG: &str = "PLANISH_PGBENCH_LOG";

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

/// Whether the log of a command is read.
pub(crate) fn has_log(command: &[String]) -> bool {
    command.iter().any(|word| word.contains(LOG))
}

/// Where pgbench writes its log (`-l`), a line for each transaction. The folder goes with it.
pub(super) struct Log(PathBuf);

impl Log {
    /// A place for the log of a command that names it; `None` for others.
    pub(super) fn of(launch: &Launch) -> Result<Option<Self>, String> {
        if !has_log(&launch.command) {
            return Ok(None);
        }
        let of_parts = ["--aggregate-interval", "--sampling-rate"];
        if let Some(option) =
            of_parts.iter().find(|option| launch.command.iter().any(|word| word.contains(**option)))
        {
            return Err(format!(
                "{option} leaves transactions out of the log: latencies cannot be read of it"
            ));
        }
        let name = format!("planish-pgbench-{}-{:06x}", std::process::id(), crate::fresh_seed() & 0xff_ffff);
        let folder = std::env::temp_dir().join(name);
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map(|()| Some(Self(folder.clone()))).map_err(|error| format!("{}: {error}", folder.display()))
    }

    /// The same launch, whose program finds that place.
    pub(super) fn told_to(&self, launch: &Launch) -> Launch {
        let mut launch = launch.clone();
        launch.env.insert(LOG.to_owned(), self.0.join("log").display().to_string());
        launch
    }

    /// Reads the latencies of all threads. At a fixed rate they count from the moment that a transaction was meant to
    /// begin.
    pub(super) fn read(&self, left_out: Duration, sample: &mut Sample) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the log of pgbench: {error}");
        let mut latencies = latency::histogram();
        let mut logs = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "a folder of our own, of what our child has written")]
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let text = planish_sys::file::read_text(&entry.map_err(failed)?.path()).map_err(failed)?;
            logs.push(text);
        }
        let begun = logs.iter().flat_map(|text| text.lines().filter_map(end_us)).min().unwrap_or(0);
        let from = begun + u64::try_from(left_out.as_micros()).unwrap_or(u64::MAX);
        logs.iter().for_each(|text| record(text, from, &mut latencies));
        if latencies.is_empty() {
            return Err(format!("pgbench wrote no log: `-l --log-prefix=\"${LOG}\"`"));
        }
        latency::add(sample, &latencies);
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // What is left of it is in the folder for files that nobody misses.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// When a transaction ended, in microseconds.
fn end_us(line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(4).map(str::parse::<u64>);
    fields.next()?.ok()?.checked_mul(1_000_000)?.checked_add(fields.next()?.ok()?)
}

/// `client transaction time_us script epoch_s epoch_us [lag_us]`; one that failed or was skipped has no time. What
/// ended before `from` is left out.
fn record(log: &str, from: u64, latencies: &mut Histogram<u64>) {
    let time = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    for us in log.lines().filter(|line| end_us(line).is_some_and(|end| end >= from)).filter_map(time) {
        latencies.saturating_record(us.saturating_mul(1000).max(1));
    }
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
    fn a_log_gives_quantiles() {
        let lines: String = (1..=2000).map(|us| format!("0 {us} {us} 0 1499414498 {us} 5\n")).collect();
        let mut latencies = latency::histogram();
        let log = lines + "1 2001 failed 0 1499414498 7\n1 2002 skipped 0 1499414498 7\n";
        record(&log, 0, &mut latencies);
        assert_eq!(latencies.len(), 2000);
        let mut late = latency::histogram();
        record(&log, 1_499_414_498_000_000 + 1501, &mut late);
        assert_eq!(late.len(), 500, "the first ones are a warm-up");
        let mut sample = Sample::default();
        latency::add(&mut sample, &latencies);
        let p90 = sample.value("p90_ns").expect("enough of them");
        assert!((p90 / 1_800_000.0 - 1.0).abs() < 0.002, "{p90}");
    }

    #[test]
    fn a_log_is_written_where_it_was_told_and_gone_afterwards() {
        let words = |script: &str| Launch::of(["sh", "-c", script].map(str::to_owned).to_vec());
        assert!(Log::of(&words("pgbench -l")).expect("nothing is made").is_none());
        let parts = words("pgbench --sampling-rate=0.1 --log-prefix=$PLANISH_PGBENCH_LOG");
        assert!(Log::of(&parts).is_err_and(|error| error.contains("--sampling-rate")));
        let launch = words("echo 0 0 1500 0 1 2 > \"$PLANISH_PGBENCH_LOG.77\"");
        let log = Log::of(&launch).expect("made").expect("it is named");
        let folder = log.0.clone();
        let mut sample = Sample::default();
        let read = |sample: &mut Sample| log.read(Duration::ZERO, sample);
        assert!(read(&mut sample).expect_err("nothing there").contains("--log-prefix"));
        let script = log.told_to(&launch).env[LOG].clone();
        #[expect(clippy::disallowed_methods, reason = "a file of this test's own")]
        fs::write(format!("{script}.77"), "0 0 1500 0 1 2\n").expect("its folder is there");
        read(&mut sample).expect("one transaction");
        let max = sample.value("max_ns").expect("one is enough for the largest");
        assert!((max / 1_500_000.0 - 1.0).abs() < 0.002, "{max}");
        drop(log);
        assert!(!folder.exists());
    }

    #[test]
    fn half_a_report_is_an_error() {
        assert!(read("latency average = 0.048 ms\n", &mut Sample::default()).is_err());
        assert!(read("tps = 1 (without)\nlatency average = 1 ms\n", &mut Sample::default()).is_err());
    }
}
