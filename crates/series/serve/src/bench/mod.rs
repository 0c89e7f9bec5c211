//! `planish-series bench`: what requests cost, of a server of its own.
//!
//! ```text
//!   client (this process) ── HTTP, lines ──> server (a child, in a folder that goes with it)
//!                                              └─ CPU time, from the kernel's count of that process alone
//! ```
//!
//! Each measure is taken once a round, rounds go over all of them in turn, and what is told is the median of the rounds
//! with the lowest and the highest. Answers are checked: a server that is fast and wrong is an error.

mod measure;
mod server;

use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::args::seconds;
use crate::ended::Ended;
use crate::tell::tell;

use measure::Measures;

/// Measure a server of its own: CPU time of a query of one row, latency at a fixed rate, rows a second of a core
#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// How often each measure is taken
    #[arg(long, default_value = "5", value_name = "N")]
    rounds: NonZeroU32,
    /// Seconds of each measure of queries
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = seconds)]
    seconds: Duration,
    /// Queries a second of the measure at a fixed rate
    #[arg(long, default_value = "500", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Connections of that measure
    #[arg(long, default_value = "8", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    connections: u32,
    /// Rows of each measure of ingest
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = rows())]
    rows: u64,
    /// Write an object of JSON
    #[arg(long)]
    json: bool,
    /// Options of the server, as `-- --pages 2m --query-cpus 1`
    #[arg(last = true, value_name = "OPTIONS")]
    serve: Vec<String>,
}

fn rows() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1000..=100_000_000)
}

/// A figure: the median of its rounds, the lowest and the highest.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    name: &'static str,
    unit: &'static str,
    value: f64,
    low: f64,
    high: f64,
}

impl Row {
    fn of(name: &'static str, unit: &'static str, mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let value = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { name, unit, value, low, high })
    }
}

/// Runs it.
pub(crate) fn bench(options: &BenchOptions) -> Result<ExitCode, Ended> {
    let folder = tempfile::Builder::new().prefix("planish-series-bench-").tempdir();
    let folder = folder.map_err(|error| Ended::failed(format!("cannot make a folder: {error}")))?;
    let measures = Measures {
        seconds: options.seconds,
        rate: options.rate,
        connections: options.connections,
        rows: options.rows,
    };
    let mut rounds = Vec::new();
    for round in 1..=options.rounds.get() {
        tell(&format!("round {round} of {}", options.rounds));
        // A folder and a server each: the next round must not merge its rows with those of this one.
        let data = folder.path().join(round.to_string());
        let server = server::Server::start(&data, &options.serve).map_err(Ended::failed)?;
        rounds.push(measures.take(&server).map_err(Ended::failed)?);
    }
    let rows = rows_of(&rounds);
    let text = if options.json { json_of(options, &rows) } else { table_of(options, &rows) };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Ended::failed(format!("cannot write the figures: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The figures of all rounds; each round has the same ones in the same order.
fn rows_of(rounds: &[Vec<measure::Figure>]) -> Vec<Row> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let row = |(index, figure): (usize, &measure::Figure)| {
        Row::of(figure.name, figure.unit, rounds.iter().map(|round| round[index].value).collect())
    };
    first.iter().enumerate().filter_map(row).collect()
}

fn json_of(options: &BenchOptions, rows: &[Row]) -> String {
    let row = |row: &Row| {
        let Row { name, unit, value, low, high } = row;
        json!({ "name": name, "unit": unit, "value": value, "low": low, "high": high })
    };
    let result = json!({
        "rounds": options.rounds, "rate": options.rate, "connections": options.connections,
        "ingest_rows": options.rows, "server": options.serve, "rows": rows.iter().map(row).collect::<Vec<_>>(),
    });
    format!(
        "{}\n",
        json!({ "schema": "planish-series.bench/1", "version": env!("CARGO_PKG_VERSION"), "result": result })
    )
}

fn table_of(options: &BenchOptions, rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let line = |row: &Row| {
        let Row { name, unit, value, low, high } = row;
        format!("{name:width$}  {:>9} {unit:9}  {} to {}\n", shown(*value), shown(*low), shown(*high))
    };
    let lines: String = rows.iter().map(line).collect();
    let BenchOptions { rounds, rate, connections, .. } = options;
    let how = format!("medians of {rounds} rounds, lowest to highest");
    format!("{lines}{how}; fixed rate: {rate} queries/s, {connections} connections\n")
}

/// Three digits that count.
fn shown(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{value:.*}", usize::try_from(digits).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_median_and_its_range() {
        let row =
            |values: &[f64]| Row::of("a", "us", values.to_vec()).map(|row| (row.value, row.low, row.high));
        assert_eq!(row(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(row(&[4.0, 1.0]), Some((2.5, 1.0, 4.0)));
        assert_eq!(row(&[]), None);
        assert_eq!(
            ["0", "1.23", "12.3", "123", "12345"].map(|text| shown(text.parse().unwrap())),
            ["0", "1.23", "12.3", "123", "12345"]
        );
    }
}
