//! `planish workload`

mod scan;

use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Subcommand;
use planish_arena::{Fallback, Page};
use planish_model::Exit;
use planish_sys::CpuSet;
use planish_workload::{Limit, Mode, Options, Query, WorkloadError, parse_bytes};

use crate::answer::{Answer, Body};
use crate::context::Context;
use crate::failure::Failure;

const NAME: &str = "workload";

/// Run an embedded workload: what the arms of `planish prove` are made of
///
/// Standard output is the workload's own: one JSON object, or one a line with --serve. With --json that object is the
/// result of the usual one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    Series(Series),
    Scan(scan::Scan),
}

/// Run time-series queries over ticks in an arena
///
/// The same seed does the same work and gives the same checksum on every page size.
#[derive(Debug, clap::Args)]
struct Series {
    /// Working set
    #[arg(long, value_name = "N", default_value = "512M", value_parser = parse_bytes)]
    bytes: usize,
    /// Queries of a round: xbar, ema, window, asof, vwap, lookup; all of them without this
    #[arg(long, value_name = "LIST")]
    queries: Option<String>,
    /// Pages under the working set: 4k, thp, or a reserved size such as 2m or 1g
    #[arg(long, value_name = "PAGE", default_value = "thp")]
    pages: Page,
    /// Whether smaller pages will do when these cannot be had
    #[arg(long, value_name = "WHAT", default_value = "refuse", value_parser = fallback)]
    fallback: Fallback,
    /// Pin the threads to these CPUs
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuSet>,
    /// Put the working set on this NUMA node
    #[arg(long, value_name = "N")]
    node: Option<u32>,
    /// Threads that each run whole rounds
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,
    /// Decides the data and the queries
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Run untimed for so long first
    #[arg(long, value_name = "SECS", default_value = "0.2", value_parser = seconds)]
    warm_up: Duration,
    /// Run timed for so long
    #[arg(long, value_name = "SECS", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Run this many rounds instead of for a time
    #[arg(long, value_name = "N", conflicts_with_all = ["seconds", "serve"])]
    rounds: Option<u64>,
    /// Stay, and run one slice for each line `slice MILLIS SEED` of standard input, until `quit`
    #[arg(long, conflicts_with = "seconds")]
    serve: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let is_printed = !context.globals.json;
    match &args.command {
        Workload::Series(series) => {
            let options = series.options()?;
            if is_printed || series.serve {
                return printed(planish_workload::run(&options));
            }
            told(|out| planish_workload::run_to(&options, out))
        }
        Workload::Scan(scan) => {
            let options = scan.options();
            if is_printed || scan.serve {
                return printed(planish_workload::run_scans(&options));
            }
            told(|out| planish_workload::run_scans_with(&options, io::empty(), out))
        }
    }
}

/// What has printed its own lines. A reader that has seen enough (`| head`) is no failure, as with every other command.
fn printed(done: Result<(), WorkloadError>) -> Result<Answer, Failure> {
    match done {
        Err(WorkloadError::Stream { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            Ok(Answer::printed(NAME))
        }
        done => done.map(|()| Answer::printed(NAME)).map_err(Failure::from),
    }
}

/// The one object of a workload that ends, as the result of the usual one.
fn told(run: impl FnOnce(&mut Vec<u8>) -> Result<(), WorkloadError>) -> Result<Answer, Failure> {
    let mut told = Vec::new();
    run(&mut told)?;
    let result = serde_json::from_slice(&told).expect("a workload that ends tells one JSON object");
    Ok(Answer { body: Body::Json(result), ..Answer::printed(NAME) })
}

impl Series {
    fn options(&self) -> Result<Options, WorkloadError> {
        let limit = self.rounds.map_or(Limit::Time(self.seconds), Limit::Rounds);
        let warm_up = self.warm_up;
        Ok(Options {
            bytes: self.bytes,
            queries: self.queries.as_deref().map_or(Ok(Query::ALL.to_vec()), Query::parse_list)?,
            page: self.pages,
            fallback: self.fallback,
            cpus: self.cpu.clone(),
            node: self.node,
            threads: self.threads,
            seed: self.seed,
            mode: if self.serve { Mode::Serve { warm_up } } else { Mode::Once { warm_up, limit } },
        })
    }
}

fn fallback(word: &str) -> Result<Fallback, &'static str> {
    match word {
        "refuse" => Ok(Fallback::Refuse),
        "allow" => Ok(Fallback::Allow),
        _ => Err("it is refuse or allow"),
    }
}

/// A span of time in seconds, up to an hour.
fn seconds(text: &str) -> Result<Duration, &'static str> {
    const WANTED: &str = "a number of seconds from 0 to 3600 is wanted";
    let number: f64 = text.parse().map_err(|_| WANTED)?;
    if (0.0..=3600.0).contains(&number) { Ok(Duration::from_secs_f64(number)) } else { Err(WANTED) }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::UnknownQuery { .. }
            | WorkloadError::UnknownPlace { .. }
            | WorkloadError::Bytes { .. }
            | WorkloadError::NoQuery
            | WorkloadError::Threads { .. }
            | WorkloadError::NoNode { .. }
            | WorkloadError::TooSmall { .. }
            | WorkloadError::CpuAbsent { .. } => Self::usage(error),
            WorkloadError::Data { .. } => Self::new(Exit::Bug, error),
            WorkloadError::Memory { ref source } => {
                let cure = source.cure();
                Self::refused(error).hint(cure)
            }
            WorkloadError::Misplaced { .. } => Self::refused(error).hint(
                "give each node that much free memory (planish top shows it), or fewer --bytes; --cpu keeps to the \
                 nodes that have it",
            ),
            _ => Self::refused(error),
        }
    }
}
