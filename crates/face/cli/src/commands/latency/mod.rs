//! `planish latency`

mod jitter;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use planish_host::Host;
use planish_latency::{
    LatencyError, Quiet, QuietLimits, Rounds, Spread, choose_cpus, clusters, look, measure_nodes,
    measure_pages, measure_pairs, near_and_far, of_nodes, told_partitions,
};
use planish_model::{Catalogue, Exit};
use planish_report::{Level, Message, latency_html};
use planish_stats::Rng;
use planish_sys::CpuSet;
use planish_topo::Topology;

use crate::answer::Answer;
use crate::commands::{check_page, cpus, write_page};
use crate::context::Context;
use crate::failure::Failure;
use report::Measured;

/// Measure how far CPUs are from each other and from memory, and what pages of each size cost
///
/// From CPU to CPU by a cache line that two threads hand to and fro; from each node to the memory of each node; random
/// loads on pages of each size that is free already. Nothing is set and no pool is raised. Each figure is a median
/// over rounds in random order, with its interval.
///
/// With --jitter: the time that a spinning thread does not get on each CPU, by how much timers are late, and who
/// interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure these CPUs only, such as 0-3,8; isolated ones may be named
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Rounds of each figure, from 6 to 1000; more of them make intervals shorter
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u16).range(6..=1000))]
    rounds: u16,
    /// Also draw it into this HTML file, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measure instead how much of each CPU's time a thread of its own does not get
    #[arg(long)]
    jitter: bool,
    /// With --jitter: time for everything, at most an hour, of which half is spun and half slept
    #[arg(long, value_name = "SECS", default_value = "10", requires = "jitter")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// With --jitter: nanoseconds from which on a gap counts as one, from 50 to 1000000000
    #[arg(long, value_name = "NS", default_value = "1000", requires = "jitter")]
    #[arg(value_parser = clap::value_parser!(u64).range(50..=1_000_000_000))]
    threshold: u64,
}

/// How long the others are watched before anything is measured.
const LOOK: Duration = Duration::from_secs(1);

impl Args {
    pub fn name(&self) -> &'static str {
        if self.jitter { "latency-jitter" } else { "latency" }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if context.globals.root.is_some() {
        return Err(Failure::usage("a recorded host cannot be measured").hint("leave --root out"));
    }
    let topology = Topology::read(&Host::live());
    let cpus = choose_cpus(args.cpus.as_ref(), &topology)?;
    args.html.as_deref().map_or(Ok(()), check_page)?;
    if args.jitter {
        return jitter::run(args, cpus, context);
    }
    run_distances(args, &topology, &cpus, context)
}

/// CPUs, nodes and pages.
fn run_distances(
    args: &Args,
    topology: &Topology,
    cpus: &[u32],
    context: &Context,
) -> Result<Answer, Failure> {
    let begun = Instant::now();
    let quiet = look(LOOK, QuietLimits::default());
    let seed = seed();
    let mut rounds = Rounds { count: args.rounds.into(), spread: spread(&quiet), rng: Rng::new(seed) };
    let pairs = measure_pairs(cpus, &mut rounds)?;
    let nodes = measure_nodes(cpus, topology, &mut rounds)?;
    let pages = measure_pages(cpus[0], topology, &mut rounds)?;
    // After this point nothing is measured any more: what is inferred follows from the figures alone.
    let partitions = told_partitions(topology, cpus);
    let levels = clusters(&pairs, &partitions, rounds.spread);
    let interleave = of_nodes(&nodes.cells, &nodes.pages, rounds.spread);
    let report = report::of(Measured {
        quiet: &quiet,
        cpus,
        rounds: args.rounds.into(),
        seed,
        seconds: begun.elapsed().as_secs_f64(),
        pairs: &pairs,
        levels: &levels,
        partitions: &partitions,
        nodes: &nodes,
        interleave: &interleave,
        distances: near_and_far(&nodes.cells, rounds.spread),
        pages: &pages,
    });
    let page = || latency_html(&report);
    args.html.as_deref().map_or(Ok(()), |path| write_page(path, &page()))?;
    let answer = warn(context.answer(&report, &Catalogue::default()), &quiet, context);
    Ok(answer.next(context.line("latency --jitter")))
}

/// How wide intervals are made.
fn spread(quiet: &Quiet) -> Spread {
    if quiet.is_quiet() { Spread::Usual } else { Spread::Whole }
}

/// A machine that is not quiet is measured all the same, and never in silence.
fn warn(answer: Answer, quiet: &Quiet, context: &Context) -> Answer {
    if quiet.is_quiet() {
        return answer;
    }
    let text = format!("this machine is not quiet: {}", quiet.reasons.join("; "));
    let hint =
        format!("figures hold for it as it is; end what runs beside, then again: {}", context.again(""));
    answer.message(Message::new(Level::Warning, text).hint(hint))
}

/// What the orders are drawn from: another one each time, and one that a JSON number holds.
fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() as u64) & ((1 << 53) - 1)
}

impl From<LatencyError> for Failure {
    fn from(error: LatencyError) -> Self {
        let exit = if error.is_usage() { Exit::Usage } else { Exit::Refused };
        let cure = error.cure();
        Self::new(exit, error).hint(cure)
    }
}
