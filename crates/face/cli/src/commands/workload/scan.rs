//! `planish workload scan`

use std::num::NonZeroUsize;
use std::time::Duration;

use planish_arena::{Fallback, Page};
use planish_sys::CpuSet;
use planish_workload::{Limit, Mode, Place, ScanOptions, parse_bytes};

use super::{fallback, seconds};

/// Run scans of tables whose memory lies on chosen nodes, with aggregates into heaps of the threads
///
/// A round is one table for each thread, all at the same time, and then one parallel scan of all tables. Memory that is
/// not read back to lie where it was wanted is refused. The same seed does the same work in every place.
#[derive(Debug, clap::Args)]
pub(super) struct Scan {
    /// All tables together; heaps take a quarter of that besides
    #[arg(long, value_name = "N", default_value = "256M", value_parser = parse_bytes)]
    bytes: usize,
    /// Where memory lies: default (with the thread that fills it), by-one (tables filled by one thread),
    /// interleave-all (tables and heaps over all nodes), interleave-shared (tables alone)
    #[arg(long, value_name = "PLACE", default_value = "default")]
    place: Place,
    /// Pages under tables and heaps: 4k, thp, or a reserved size such as 2m or 1g
    #[arg(long, value_name = "PAGE", default_value = "4k")]
    pages: Page,
    /// Whether smaller pages will do when these cannot be had
    #[arg(long, value_name = "WHAT", default_value = "refuse", value_parser = fallback)]
    fallback: Fallback,
    /// Run on these CPUs; without this on all that this process may use
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuSet>,
    /// Threads, each with a table and a CPU, dealt to the nodes in turn; without this one for each CPU
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Decides the rows, and who reads which table
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
    pub(super) serve: bool,
}

impl Scan {
    pub(super) fn options(&self) -> ScanOptions {
        let limit = self.rounds.map_or(Limit::Time(self.seconds), Limit::Rounds);
        let warm_up = self.warm_up;
        ScanOptions {
            bytes: self.bytes,
            place: self.place,
            page: self.pages,
            fallback: self.fallback,
            cpus: self.cpu.clone(),
            threads: self.threads,
            seed: self.seed,
            mode: if self.serve { Mode::Serve { warm_up } } else { Mode::Once { warm_up, limit } },
        }
    }
}
